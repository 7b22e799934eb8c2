//! Bloom filters that keep the probes of a key within one block.
//!
//! All of them pay for the spread of the block loads: blocks that happen to
//! hold more keys than the mean err far more than those with fewer save.

use std::cell::RefCell;

use super::bloom::{choice, distinct, fill};
use super::probability::Law;
use super::{is_rate, least_size, least_size_over, lower_bound_bits_per_key};

/// Most probes per key considered inside one block.
const MAX_BLOCK_K: u32 = 24;

/// Law of the number of keys in a block.
fn load(bits_per_key: f64, block_bits: f64) -> Law {
    // A negative or NaN size makes the mean negative or NaN, and that is what
    // `expect` answers NaN to; -0.0 must not slip through as -infinity.
    let mean = block_bits / bits_per_key.max(0.0);
    Law::Poisson {
        mean: if bits_per_key >= 0.0 { mean } else { f64::NAN },
    }
}

/// False-positive rate of a blocked Bloom filter.
///
/// `sum_c Poisson(c; B / bits_per_key) (1 - (1 - 1/B)^(c k))^k` with blocks of
/// `B = block_bits` bits (Putze, Sanders, Singler 2007). Also holds for a
/// blocked counting filter, in cells. `NaN` for a negative or `NaN` size.
pub fn blocked_fpr(bits_per_key: f64, block_bits: u32, k: u32) -> f64 {
    sectorised_fpr(bits_per_key, 1, block_bits, k)
}

/// Bits per key and probes of the smallest blocked Bloom filter.
///
/// Least over k = 1..=24 of the size at which [`blocked_fpr`] is `fpr`. `None`
/// unless `0 < fpr < 1`, or when 2^20 bits per key are not enough.
pub fn blocked_size(fpr: f64, block_bits: u32) -> Option<(f64, u32)> {
    sectorised_size(fpr, 1, block_bits)
}

/// False-positive rate of a split-block Bloom filter.
///
/// `sum_c Poisson(c; 8 w / bits_per_key) (1 - (1 - 1/w)^c)^8` with eight lanes
/// of `w = lane_bits` bits and one bit set in each (Apache Parquet format;
/// 32 gives its 256-bit blocks, 64 blocks of a whole cache line).
///
/// ```
/// use tamis::math::split_block_fpr;
///
/// assert!((split_block_fpr(10.0, 32) - 0.01265).abs() < 0.00001);
/// ```
pub fn split_block_fpr(bits_per_key: f64, lane_bits: u32) -> f64 {
    sectorised_fpr(bits_per_key, 8, lane_bits, 1)
}

/// Bits per key of a split-block Bloom filter at rate `fpr`.
///
/// Solves [`split_block_fpr`] by bisection. `None` unless `0 < fpr < 1`, or
/// when 2^20 bits per key are not enough. Below 1e-4 the answer passes 1.9
/// times the lower bound and another filter serves better.
///
/// ```
/// use tamis::math::split_block_bits_per_key;
///
/// let bits = split_block_bits_per_key(0.01, 64).expect("a rate between 0 and 1");
/// assert!((bits - 10.10).abs() < 0.01);
/// ```
pub fn split_block_bits_per_key(fpr: f64, lane_bits: u32) -> Option<f64> {
    if !is_rate(fpr) {
        return None;
    }
    least_size(lower_bound_bits_per_key(fpr), fpr, |bits_per_key| {
        split_block_fpr(bits_per_key, lane_bits)
    })
}

/// False-positive rate of a sectorised Bloom filter.
///
/// A block is `sectors` words of `word_bits` bits and a key sets
/// `bits_per_sector` bits in every one of them:
/// `sum_c Poisson(c; s w / bits_per_key) (1 - (1 - 1/w)^(c b))^(b s)`
/// (Lang, Neumann, Kemper, Boncz 2019). One sector is a blocked filter.
fn sectorised_fpr(bits_per_key: f64, sectors: u32, word_bits: u32, bits_per_sector: u32) -> f64 {
    let (s, w, b) = (
        f64::from(sectors),
        f64::from(word_bits),
        f64::from(bits_per_sector),
    );
    if bits_per_key.is_nan() || bits_per_key < 0.0 {
        return f64::NAN;
    }
    if s * w * b == 0.0 || bits_per_key == 0.0 {
        return 1.0;
    }
    load(bits_per_key, s * w).expect(|c| fill(w, c * b).powf(b * s))
}

/// A function of a count, each value of which is computed once.
fn tabulated(f: impl Fn(f64) -> f64) -> impl Fn(f64) -> f64 {
    let table = RefCell::new(Vec::new());
    move |count| {
        let i = count as usize;
        if i >= 4096 {
            return f(count);
        }
        let mut table = table.borrow_mut();
        if table.len() <= i {
            table.resize(i + 1, None);
        }
        *table[i].get_or_insert_with(|| f(count))
    }
}

/// Bits per key and bits per sector of the smallest sectorised Bloom filter.
///
/// Least over `bits_per_sector` from 1 to `24 / sectors` (at least 1) of the
/// size at which [`sectorised_fpr`] is `fpr`. `None` unless `0 < fpr < 1`, or
/// when 2^20 bits per key are not enough.
fn sectorised_size(fpr: f64, sectors: u32, word_bits: u32) -> Option<(f64, u32)> {
    if !is_rate(fpr) || sectors == 0 || word_bits == 0 {
        return None;
    }
    let most = (MAX_BLOCK_K / sectors).max(1);
    let floor = lower_bound_bits_per_key(fpr);
    // The terms of [`sectorised_fpr`], which a search needs at many sizes.
    let (s, w) = (f64::from(sectors), f64::from(word_bits));
    let term = |b: u32| {
        let b = f64::from(b);
        tabulated(move |c| fill(w, c * b).powf(b * s))
    };
    let terms: Vec<_> = (1..=most).map(term).collect();
    least_size_over(1..=most, floor, fpr, |bits_per_key, b| {
        load(bits_per_key, s * w).expect(&terms[b as usize - 1])
    })
}

/// False-positive rate of a balanced Bloom filter, its overflow list apart.
///
/// A block takes `cap` keys at most, the others go to the list:
/// `sum_c Poisson(c; B / bits_per_key) f(min(c, cap))`, where `f(c)` is the
/// chance that the k bits of a query are covered by those of c keys (Kanizo,
/// Hay, Keslassy 2013, who take the fill for its mean there). Above 24 probes
/// or a cap of 4096 it is taken so here, too.
pub fn balanced_fpr(bits_per_key: f64, block_bits: u32, k: u32, cap: u32) -> f64 {
    if bits_per_key.is_nan() || bits_per_key < 0.0 {
        return f64::NAN;
    }
    if block_bits == 0 || k == 0 {
        return 1.0;
    }
    if k <= MAX_BLOCK_K && cap <= 4096 {
        let covered = cover_block(block_bits, k, cap);
        return capped_fpr(bits_per_key, block_bits, cap, &covered);
    }
    let (w, k, cap) = (f64::from(block_bits), f64::from(k), f64::from(cap));
    load(bits_per_key, w).expect(|c| fill(w, c.min(cap) * k).powf(k))
}

fn capped_fpr(bits_per_key: f64, block_bits: u32, cap: u32, covered: &[f64]) -> f64 {
    load(bits_per_key, f64::from(block_bits)).expect(|c| {
        let keys = c.min(f64::from(cap)) as usize;
        covered.get(keys).copied().unwrap_or(1.0)
    })
}

/// Chances that the k bits of a query are covered by 0, 1, … `most` keys of its
/// block, until nearly certain.
fn cover_block(block_bits: u32, k: u32, most: u32) -> Vec<f64> {
    let bins = f64::from(block_bits);
    let states = k as usize + 1;
    let key = choice(states, k, 1.0, |_| bins);
    covers(distinct(bins, k), &key, most)
}

/// Chances that nothing is uncovered after 0, 1, … `most` steps, until nearly
/// certain.
fn covers(mut uncovered: Vec<f64>, step: &[Vec<f64>], most: u32) -> Vec<f64> {
    let mut covered = Vec::new();
    // By columns, which is how they are read.
    let column = |v: usize| step.iter().map(|row| row[v]).collect();
    let columns: Vec<Vec<f64>> = (0..step.len()).map(column).collect();
    while uncovered[0] < 1.0 - 1e-14 && covered.len() <= most as usize {
        covered.push(uncovered[0]);
        for (v, column) in columns.iter().enumerate() {
            let from = uncovered[v..].iter().zip(&column[v..]);
            uncovered[v] = from.map(|(chance, step)| chance * step).sum();
        }
    }
    covered
}

/// Share of the keys that a balanced Bloom filter sends to its list.
///
/// `E[(X - cap)+] / E[X]` for `X ~ Poisson(block_bits / bits_per_key)`.
pub fn balanced_overflow(bits_per_key: f64, block_bits: u32, cap: u32) -> f64 {
    if block_bits == 0 {
        return f64::NAN;
    }
    let cap = f64::from(cap);
    // Divided inside the sum: both sides are infinite together at no space.
    let mean = f64::from(block_bits) / bits_per_key;
    load(bits_per_key, f64::from(block_bits)).expect(|c| {
        if c.is_infinite() {
            1.0
        } else {
            (c - cap).max(0.0) / mean
        }
    })
}

/// Array bits per key, probes and cap of the smallest balanced Bloom filter.
///
/// Least over k near that of [`blocked_size`] and every cap of the size at
/// which [`balanced_fpr`] is at most `fpr` and [`balanced_overflow`] at most
/// `overflow`. The list is not counted. `None` unless both are in (0, 1), and
/// where [`blocked_size`] is.
pub fn balanced_size(fpr: f64, block_bits: u32, overflow: f64) -> Option<(f64, u32, u32)> {
    if !is_rate(fpr) || !is_rate(overflow) || block_bits == 0 {
        return None;
    }
    let floor = lower_bound_bits_per_key(fpr);
    // What the mean load has above the cap goes to the list at least.
    let by_list = |cap: u32| {
        let floor = f64::from(block_bits) * (1.0 - overflow) / f64::from(cap);
        least_size(floor, overflow, |x| balanced_overflow(x, block_bits, cap))
    };
    // Every k asks for much the same caps.
    let by_list = tabulated(|cap| by_list(cap as u32).unwrap_or(f64::NAN));
    // A cap hardly moves the best k.
    let (_, near) = blocked_size(fpr, block_bits)?;
    let mut best: Option<(f64, u32, u32)> = None;
    for k in near.max(2) - 1..=(near + 2).min(MAX_BLOCK_K) {
        let covered = cover_block(block_bits, k, block_bits.min(1 << 16));
        let by_rate =
            |cap: u32| least_size(floor, fpr, |x| capped_fpr(x, block_bits, cap, &covered));
        // The cap cannot matter to a k that is too large even without keys
        // beyond it: skip when the best size so far fails at its own cap.
        if let Some((size, _, cap)) = best
            && capped_fpr(size, block_bits, cap.saturating_sub(1), &covered) > fpr
        {
            continue;
        }
        // A greater cap relaxes the overflow and tightens the rate, so the best
        // cap is where the two requirements cross.
        let (mut low, mut high) = (0, block_bits.min(1 << 16));
        while high - low > 1 {
            let cap = low + (high - low) / 2;
            // Where the list takes more than the rate does, the rate is met there.
            if capped_fpr(by_list(f64::from(cap)), block_bits, cap, &covered) > fpr {
                high = cap;
            } else {
                low = cap;
            }
        }
        for cap in [low, high] {
            let list = by_list(f64::from(cap));
            if let Some(rate) = by_rate(cap).filter(|_| list.is_finite()) {
                let size = rate.max(list);
                if best.is_none_or(|(least, ..)| size < least) {
                    best = Some((size, k, cap));
                }
            }
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::prints;
    use super::*;

    const EIGHT: f64 = 1.0 / 256.0;

    #[test]
    fn blocked_sizes_match_the_table() {
        for (fpr, block_bits, k, bits) in [
            (0.01, 512, 6, "9.896"),
            (EIGHT, 512, 8, "12.095"),
            (1e-3, 512, 9, "15.488"),
            (1e-4, 512, 0, "21.91"),
            (0.01, 256, 0, "10.177"),
            (EIGHT, 256, 0, "12.631"),
            (1e-3, 256, 0, "16.568"),
            (1e-4, 256, 0, "24.63"),
            (0.01, 1024, 0, "9.748"),
            (EIGHT, 1024, 0, "11.818"),
            (0.01, 64, 6, "11.916"),
            (EIGHT, 64, 6, "15.840"),
            (0.01, 32, 0, "14.237"),
            (EIGHT, 32, 0, "20.415"),
        ] {
            let (size, best) = blocked_size(fpr, block_bits).unwrap();
            prints(size, bits);
            assert!(k == 0 || best == k, "{fpr} {block_bits}: {best}");
            assert!(blocked_fpr(size, block_bits, best) <= fpr);
        }
        prints(100.0 * blocked_fpr(10.0, 512, 6), "0.9576");
    }

    #[test]
    fn split_block_rates_and_sizes_match_the_table() {
        for (bits, lane, percent) in [
            (10.0, 32, "1.265"),
            (5.0, 32, "17.9"),
            (20.0, 32, "0.0420"),
            (10.0, 64, "1.049"),
            (20.0, 64, "0.0260"),
        ] {
            prints(100.0 * split_block_fpr(bits, lane), percent);
        }
        for (fpr, lane, bits) in [
            (0.1, 32, "5.99"),
            (0.01, 32, "10.53"),
            (EIGHT, 32, "12.85"),
            (1e-3, 32, "16.89"),
            (1e-4, 32, "26.34"),
            (1e-5, 32, "40.99"),
            (0.01, 64, "10.10"),
            (EIGHT, 64, "12.18"),
            // Printed 15.73; the formula gives 15.7246.
            (1e-3, 64, "15.72"),
            (1e-4, 64, "23.61"),
            (1e-5, 64, "34.98"),
        ] {
            prints(split_block_bits_per_key(fpr, lane).unwrap(), bits);
        }
    }

    #[test]
    fn sectorised_sizes_match_the_table() {
        for (sectors, percent, eighth) in [
            (2, "10.793", "13.850"),
            (4, "10.440", "12.735"),
            (8, "10.099", "12.183"),
        ] {
            prints(sectorised_size(0.01, sectors, 64).unwrap().0, percent);
            prints(sectorised_size(EIGHT, sectors, 64).unwrap().0, eighth);
        }
    }

    #[test]
    fn balanced_sizes_match_the_table() {
        for (fpr, block_bits, k, cap, bits) in [
            // The paper's formula beside it.
            (0.01, 256, 6, 34, "10.120"),  // 10.069
            (EIGHT, 256, 7, 29, "12.562"), // 12.484
            (0.01, 512, 6, 63, "9.836"),   // 9.811
            (EIGHT, 512, 8, 53, "12.002"), // 11.959
            (1e-3, 512, 9, 43, "15.320"),  // 15.254
        ] {
            let (size, best_k, best_cap) = balanced_size(fpr, block_bits, 0.005).unwrap();
            prints(size, bits);
            assert!(
                k == 0 || (best_k, best_cap) == (k, cap),
                "{best_k} {best_cap}"
            );
        }
        prints(100.0 * balanced_overflow(9.811, 512, 63), "0.47");
    }

    #[test]
    fn odd_arguments_give_the_documented_answers() {
        for size in [f64::NAN, -1.0, f64::NEG_INFINITY] {
            assert!(blocked_fpr(size, 512, 6).is_nan());
            assert!(balanced_fpr(size, 512, 6, 60).is_nan());
            assert!(balanced_overflow(size, 512, 60).is_nan());
        }
        for size in [0.0, -0.0, 1e-300, 1e-9, 1e300, f64::INFINITY] {
            for k in [0, 1, 24, u32::MAX] {
                for block in [0, 1, 512, u32::MAX] {
                    let p = blocked_fpr(size, block, k);
                    assert!((0.0..=1.0 + 1e-9).contains(&p), "{size} {block} {k}: {p}");
                }
            }
        }
        for fpr in [0.0, 1.0, f64::NAN, -1.0, 1e-300] {
            assert_eq!(blocked_size(fpr, 64), None);
            assert_eq!(split_block_bits_per_key(fpr, 32), None);
            assert_eq!(balanced_size(fpr, 64, 0.005), None);
        }
    }
}
