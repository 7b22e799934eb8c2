//! The formulas by which filters are sized: how large a filter must be for a rate, and which rate
//! a size gives.
//!
//! ```
//! use tamis::math;
//!
//! // A million keys at 1 %: a Bloom filter, and the least that any filter can take.
//! let (bits, k) = math::bloom_size(1_000_000, 0.01).expect("a rate between 0 and 1");
//! assert_eq!(k, 7);
//! assert!((bits as f64 / 1e6 - 9.59).abs() < 0.01);
//! assert!((math::lower_bound_bits_per_key(0.01) - 6.64).abs() < 0.01);
//! ```
//!
//! [`advise`](crate::advise) sizes all kinds. These are for estimates by hand, of the kinds that
//! are chosen most often.
//!
//! * A rate (`fpr`, `load`) is a fraction: one percent is `0.01`.
//! * Counts of keys, bits, words and slots are `u64`; ratios such as bits per key are `f64`.
//!   Nothing here depends on the width of a pointer.
//! * No function panics or runs for long, whatever its arguments. An argument outside the domain
//!   gives `NaN` from a function that returns `f64`, and `None` from one that returns an
//!   `Option`. A filter with no bits or no probes answers yes to everything: its rate is `1.0`.
//! * A solver returns the side of the answer that keeps the promise: the rate at the returned
//!   size is at most the rate asked for.

// A filter, its sizing, its tests and its documentation must agree on one number, so all of them
// call these functions, and none keeps a formula of its own. Those that only this crate and its
// tests call are not public.
pub(crate) mod blocked;
pub(crate) mod bloom;
pub(crate) mod counting;
pub(crate) mod fixed;
pub(crate) mod growing;
pub(crate) mod probability;
pub(crate) mod tables;
pub(crate) mod tinyset;

pub use blocked::{split_block_bits_per_key, split_block_fpr};
pub use bloom::{bloom_bits_per_key, bloom_estimate, bloom_fpr, bloom_size};
pub use counting::{counting_overflow, iblt_size};
pub use fixed::fingerprint_fpr;
pub use probability::binomial_tail;
pub use probability::rate_interval;
pub use tables::{cuckoo_bits_per_key, cuckoo_fingerprint_bits, cuckoo_fpr};

pub(crate) use blocked::*;
pub(crate) use bloom::*;
pub(crate) use counting::*;
pub(crate) use fixed::*;
pub(crate) use growing::*;
pub(crate) use tables::*;
pub(crate) use tinyset::*;
#[cfg(test)]
pub(crate) use {probability::binomial_interval, probability::poisson_tail};

/// The most bits per key any solver here will answer with.
///
/// A block of fixed size has an error floor that falls only in proportion to
/// the space, so a small enough rate would otherwise be "met" at 10^100 bits.
const MAX_BITS_PER_KEY: f64 = 1_048_576.0;

/// Fewest bits per key that any filter of a known set can use.
///
/// `log2(1 / fpr)`, in bits. No design goes below it over a large universe
/// (Carter, Floyd, Gill, Markowsky, Wegman 1978). `NaN` unless
/// `0 < fpr <= 1`.
///
/// ```
/// use tamis::math::lower_bound_bits_per_key;
///
/// assert_eq!(lower_bound_bits_per_key(1.0 / 256.0), 8.0);
/// ```
pub fn lower_bound_bits_per_key(fpr: f64) -> f64 {
    if fpr > 0.0 && fpr <= 1.0 {
        -fpr.log2() + 0.0
    } else {
        f64::NAN
    }
}

/// Least error rate that a filter over 64-bit hashes can have.
///
/// `keys / 2^64`: an absent key whose whole hash equals that of a member is
/// accepted by any filter that sees only the hash.
///
/// ```
/// use tamis::math::hash_floor;
///
/// assert!(hash_floor(1_000_000_000) < 1e-10);
/// ```
pub fn hash_floor(keys: u64) -> f64 {
    keys as f64 * 2f64.powi(-64)
}

/// Whether a 64-bit hash is too short for this many keys at this rate.
///
/// True when `fpr < 16 * keys / 2^64`: the floor would then take more than a
/// sixteenth of the error the caller asked for. `NaN` is refused as well.
///
/// ```
/// use tamis::math::hash_is_too_short;
///
/// assert!(!hash_is_too_short(1_000_000_000, 1e-9));
/// assert!(hash_is_too_short(1_000_000_000, 1e-10));
/// ```
pub fn hash_is_too_short(keys: u64, fpr: f64) -> bool {
    fpr.is_nan() || fpr < 16.0 * hash_floor(keys)
}

/// Whether a requested rate is one that a filter can be sized for.
fn is_rate(fpr: f64) -> bool {
    fpr > 0.0 && fpr < 1.0
}

/// `1 - (1 - rate)^count`: at least one of `count` comparisons matches.
///
/// Kept in one place because the direct form is 0 for every rate below 1e-16.
fn any_match(rate: f64, count: f64) -> f64 {
    if count == 0.0 {
        return 0.0;
    }
    -(count * (-rate).ln_1p()).exp_m1()
}

/// `ln(1 - e^a)` for `a <= 0`, accurate at both ends of the range.
fn ln_1m_exp(a: f64) -> f64 {
    if a > -std::f64::consts::LN_2 {
        (-a.exp_m1()).ln()
    } else {
        (-a.exp()).ln_1p()
    }
}

/// Least `x` in `[floor, MAX_BITS_PER_KEY]` with `rate(x) <= fpr`, to one part
/// in 10^9, for a rate that falls as `x` grows.
///
/// A rate is nearly a power of the size, so the logarithms are interpolated
/// (the Illinois method: an end that stays is given half its weight). A filter
/// is sized whenever one is made: ten looks at a long sum, not forty.
fn least_size(floor: f64, fpr: f64, rate: impl Fn(f64) -> f64) -> Option<f64> {
    least_size_near(floor, 1.5, fpr, rate)
}

/// As [`least_size`], which tries `floor`, and `factor` times as much until it
/// is enough.
fn least_size_near(floor: f64, factor: f64, fpr: f64, rate: impl Fn(f64) -> f64) -> Option<f64> {
    // Above 0 while the rate is too high; NaN ends the search in None.
    let excess = |x: f64| (rate(x) / fpr).ln();
    let mut low = floor.max(1e-9);
    let mut high = low;
    let (mut at_low, mut at_high) = (f64::INFINITY, excess(high));
    while !(at_high <= 0.0) {
        (low, at_low) = (high, at_high);
        high *= factor;
        if high > MAX_BITS_PER_KEY {
            return None;
        }
        at_high = excess(high);
    }
    let mut kept_low = None;
    while high > low * (1.0 + 1e-9) {
        let guess = ((at_low * high.ln() - at_high * low.ln()) / (at_low - at_high)).exp();
        let middle = if low < guess && guess < high {
            guess
        } else {
            (low * high).sqrt()
        };
        let at_middle = excess(middle);
        let meets = at_middle <= 0.0;
        if meets {
            (high, at_high) = (middle, at_middle);
        } else {
            (low, at_low) = (middle, at_middle);
        }
        if kept_low == Some(meets) {
            *(if meets { &mut at_low } else { &mut at_high }) /= 2.0;
        }
        kept_low = Some(meets);
    }
    Some(high)
}

/// How many k in a row that are no better end a search for the best.
const WORSE: u32 = 3;

/// The `k` that needs least space, with that space; ties go to the smaller.
///
/// The size falls to the best k and rises from there: the search ends after
/// [`WORSE`] that are no better.
fn least_size_over(
    ks: impl IntoIterator<Item = u32>,
    floor: f64,
    fpr: f64,
    rate: impl Fn(f64, u32) -> f64,
) -> Option<(f64, u32)> {
    let meets = |size: f64, k: u32| rate(size, k) <= fpr;
    let mut best: Option<(f64, u32)> = None;
    let mut worse = 0;
    for k in ks {
        // Most k cannot improve on the best so far; one look settles it.
        if best.is_some_and(|(size, _)| !meets(size * (1.0 - 1e-9), k)) {
            worse += 1;
            if worse == WORSE {
                break;
            }
            continue;
        }
        worse = 0;
        if let Some(size) = least_size(floor, fpr, |x| rate(x, k))
            && best.is_none_or(|(least, _)| size < least)
        {
            best = Some((size, k));
        }
    }
    best
}

/// Checks a value against a figure as it is printed in a table.
#[cfg(test)]
#[track_caller]
fn prints(actual: f64, printed: &str) {
    let value: f64 = printed.parse().expect("a number");
    let mantissa = printed.split('e').next().unwrap_or(printed);
    let decimals = mantissa.split('.').nth(1).map_or(0, str::len) as i32;
    let exponent = printed.split('e').nth(1).map_or(0, |e| e.parse().unwrap());
    let unit = 10f64.powi(exponent - decimals);
    assert!(
        (actual - value).abs() <= 0.5001 * unit,
        "{actual} does not print as {printed}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lower_bounds_match_the_table() {
        for (fpr, bits) in [
            (0.05, "4.32"),
            (0.02, "5.64"),
            (0.01, "6.64"),
            (0.005, "7.64"),
            (0.001, "9.97"),
            (1e-4, "13.29"),
            (1.0 / 784_931.0, "19.582"),
        ] {
            prints(lower_bound_bits_per_key(fpr), bits);
        }
        assert_eq!(lower_bound_bits_per_key(1.0), 0.0);
        for fpr in [0.0, -1.0, 1.5, f64::NAN, f64::INFINITY] {
            assert!(lower_bound_bits_per_key(fpr).is_nan());
        }
    }

    #[test]
    fn overfull_bits_force_a_higher_rate() {
        // 1.9 times the keys in the bits of an optimal Bloom filter.
        for (fpr, forced) in [(0.01, "3.03"), (2f64.powi(-8), "1.48")] {
            prints(100.0 * 2f64.powf(-bloom_bits_per_key(fpr) / 1.9), forced);
        }
    }

    #[test]
    fn hash_floors_match_the_table() {
        prints(hash_floor(1_000_000_000), "5.4e-11");
        prints(hash_floor(10_000_000_000), "5.4e-10");
    }

    #[test]
    fn a_rate_near_the_hash_floor_is_refused() {
        assert!(hash_is_too_short(1 << 40, 0.9 * 2f64.powi(-20)));
        assert!(!hash_is_too_short(1 << 40, 2f64.powi(-20)));
        assert!(hash_is_too_short(1, f64::NAN));
        assert!(!hash_is_too_short(0, 0.0));
    }

    /// Every solver, over the arguments most likely to upset one.
    #[test]
    fn no_solver_panics_or_hangs() {
        let below_one = 1.0 - f64::EPSILON / 2.0;
        for fpr in [
            0.0,
            -0.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            5e-324,
            1e-300,
            1e-9,
            0.5,
            below_one,
            1.0,
            2.0,
            -1.0,
        ] {
            for keys in [0, 1, 2, 1 << 31, 1 << 53, 1 << 63, u64::MAX] {
                if let Some((bits, k)) = bloom_size(keys, fpr) {
                    assert!(is_rate(fpr) && bloom_fpr(bits, keys, k) <= fpr);
                }
                for (word_bits, g) in [(64, 1), (512, 3)] {
                    if let Some((words, k)) = bloom_g_size(keys, fpr, word_bits, g) {
                        assert!(bloom_g_fpr(words, word_bits, keys, k, g) <= fpr);
                    }
                }
                for (k, increments) in [(1, 2), (5, 4), (64, 16)] {
                    if let Some(cells) = vi_counting_cells(keys, fpr, k, increments) {
                        assert!(vi_counting_fpr_of(cells, keys, k, increments) <= fpr);
                    }
                }
                assert!(!binary_fuse_factor(keys, 3).is_nan());
            }
            for block in [0, 1, 64, 512, u32::MAX] {
                if let Some((size, k)) = blocked_size(fpr, block) {
                    assert!(blocked_fpr(size, block, k) <= fpr);
                }
                if let Some(load) = tinyset_mean_load(fpr, block, 64, 2) {
                    assert!(tinyset_fpr(load, block, 64, 2) <= fpr);
                }
                let _ = split_block_bits_per_key(fpr, block);
            }
            for size in [two_choice_size(fpr), vi_counting_size(fpr, 4)] {
                assert!(size.is_none_or(|(size, _)| is_rate(fpr) && size > 0.0));
            }
            let _ = balanced_size(fpr, 512, fpr);
            let _ = scalable_bits_per_key(ScalableSchedule::InverseSquare, fpr, fpr, 4096);
            let _ = generations_bits_per_key(fpr, u32::MAX);
            if let Some((k, l)) = apbf_size(fpr) {
                assert!(is_rate(fpr) && apbf_fpr(k, l) <= fpr);
            }
            let _ = (half_full_bits(fpr), apbf_generations(fpr, u32::MAX));
            let _ = (
                folded_bits_per_key(fpr, u32::MAX),
                sliding_lower_bound(fpr, fpr),
            );
            let _ = (poisson_tail(3, fpr), bucket_capacity(fpr, fpr));
            let _ = (golomb_rice_bits(fpr), chain_remainder_bits(fpr, fpr));
        }
    }
}
