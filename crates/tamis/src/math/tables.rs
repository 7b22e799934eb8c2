//! Tables of fingerprints: cuckoo, chained and hash compaction.
//!
//! An absent key is compared with the fingerprints of its buckets, so the rate
//! is the number of comparisons times the chance that one matches, and grows
//! in proportion to the load.

use super::{any_match, fingerprint_fpr, is_rate};

/// Slots that a cuckoo lookup compares: two buckets of four.
const CUCKOO_SLOTS: f64 = 8.0;

/// Load that cuckoo tables are sized for.
const CUCKOO_LOAD: f64 = 0.95;

/// Fewest fingerprint bits for which cuckoo tables reach their load.
const CUCKOO_MIN_BITS: u32 = 4;

/// `numerator / load`, `NaN` for a load that is not positive.
fn per_key(numerator: f64, load: f64) -> f64 {
    if load > 0.0 {
        numerator / load
    } else {
        f64::NAN
    }
}

/// False-positive rate of a cuckoo filter with buckets of four.
///
/// `1 - (1 - 1 / (2^f - 1))^(8 load)`: a tag is one of `2^f - 1` values, zero
/// being the mark of an empty slot (Fan, Andersen, Kaminsky, Mitzenmacher
/// 2014). `NaN` for a negative or `NaN` load; 1 when `f` is 0.
///
/// ```
/// use tamis::math::cuckoo_fpr;
///
/// assert!((cuckoo_fpr(12, 0.95) - 0.00185).abs() < 0.00001);
/// ```
pub fn cuckoo_fpr(fingerprint_bits: u32, load: f64) -> f64 {
    if load.is_nan() || load < 0.0 {
        return f64::NAN;
    }
    if fingerprint_bits == 0 {
        return 1.0;
    }
    let half = fingerprint_fpr(fingerprint_bits);
    any_match(half / (1.0 - half), CUCKOO_SLOTS * load)
}

/// Fingerprint bits of a cuckoo filter at rate `fpr` and load 0.95.
///
/// `ceil(log2(8 * 0.95 / fpr + 1))`, and at least four, below which tables do
/// not fill. `None` unless `0 < fpr < 1`, or above 64 bits.
///
/// ```
/// use tamis::math::cuckoo_fingerprint_bits;
///
/// assert_eq!(cuckoo_fingerprint_bits(0.01), Some(10));
/// ```
pub fn cuckoo_fingerprint_bits(fpr: f64) -> Option<u32> {
    if !is_rate(fpr) {
        return None;
    }
    let bits = (CUCKOO_SLOTS * CUCKOO_LOAD / fpr + 1.0).log2().ceil();
    (bits <= 64.0).then_some((bits as u32).max(CUCKOO_MIN_BITS))
}

/// Bits per key of a cuckoo filter.
///
/// `fingerprint_bits / load`.
///
/// ```
/// use tamis::math::cuckoo_bits_per_key;
///
/// assert!((cuckoo_bits_per_key(10, 0.95) - 10.53).abs() < 0.01);
/// ```
pub fn cuckoo_bits_per_key(fingerprint_bits: u32, load: f64) -> f64 {
    per_key(f64::from(fingerprint_bits), load)
}

/// False-positive rate of a table with chains of fingerprints.
///
/// `1 - e^(-load 2^-r)` (Hua, Zhao, Lin, Xu 2008): the keys of a chain are
/// Poisson with mean `load` and each matches with chance `2^-r`. `NaN` for a
/// negative or `NaN` load.
pub fn chain_fpr(load: f64, remainder_bits: u32) -> f64 {
    if load >= 0.0 {
        -(-load * fingerprint_fpr(remainder_bits)).exp_m1()
    } else {
        f64::NAN
    }
}

/// Remainder bits of a table with chains at rate `fpr` and the given load.
///
/// Least r with [`chain_fpr`] at most `fpr`. `None` unless `0 < fpr < 1`
/// and the load is positive and finite, or above 64 bits.
pub fn chain_remainder_bits(fpr: f64, load: f64) -> Option<u32> {
    if !is_rate(fpr) || load.is_nan() || load <= 0.0 {
        return None;
    }
    (0..=64).find(|&r| chain_fpr(load, r) <= fpr)
}

/// Occupied slots that a lookup of an absent key visits in open addressing.
///
/// `load / (1 - load)` with double hashing, `(1 / (1 - load)^2 - 1) / 2` with
/// linear probing (Knuth). `NaN` unless `0 <= load < 1`.
pub fn open_addressing_comparisons(load: f64, linear: bool) -> f64 {
    if !(0.0..1.0).contains(&load) {
        return f64::NAN;
    }
    if linear {
        ((1.0 - load).powi(-2) - 1.0) / 2.0
    } else {
        load / (1.0 - load)
    }
}

/// False-positive rate of hash compaction with independent addresses.
///
/// `1 - (1 - 2^-b)^comparisons` (Wolper, Leroy 1993). Where the address comes
/// from the signature itself, every key is a comparison.
pub fn hash_compaction_fpr(signature_bits: u32, comparisons: f64) -> f64 {
    if comparisons >= 0.0 {
        any_match(fingerprint_fpr(signature_bits), comparisons)
    } else {
        f64::NAN
    }
}

/// Signature bits of hash compaction at rate `fpr`.
///
/// `ceil(log2(comparisons / fpr))`, at least 1. `None` unless `0 < fpr < 1`
/// and `comparisons > 0`, or above 64 bits.
pub fn hash_compaction_bits(fpr: f64, comparisons: f64) -> Option<u32> {
    if !is_rate(fpr) || comparisons.is_nan() || comparisons <= 0.0 {
        return None;
    }
    let bits = (comparisons / fpr).log2().ceil().max(1.0);
    (bits <= 64.0).then_some(bits as u32)
}

/// False-positive rate of a table of signatures with double hashing.
///
/// `sum over k >= 1 of P[K >= k] q (1 - q)^(k - 1)`: the k-th slot visited is
/// the first that matches. `P[K >= k]` is the chance that k distinct slots are
/// all among the `used` of `slots`, and `q = 1 / (2^b - 1)`, zero being the
/// mark of a free slot. For many slots it is `load q / (1 - load + load q)`.
/// [`hash_compaction_fpr`] puts the mean of K for its law and is a little
/// higher. `NaN` unless `used < slots`; 1 when `b` is 0 and a slot is used.
pub fn double_hashing_fpr(used: u64, slots: u64, signature_bits: u32) -> f64 {
    if used >= slots {
        return f64::NAN;
    }
    let half = fingerprint_fpr(signature_bits);
    let q = (half / (1.0 - half)).min(1.0);
    let (mut met, mut fpr, mut reached) = (0u64, 0.0, 1.0);
    // Each term is the one before it times at most load (1 - q).
    while met < used.min(1 << 16) && reached > 1e-18 * fpr {
        reached *= (used - met) as f64 / (slots - met) as f64;
        fpr += reached * q;
        reached *= 1.0 - q;
        met += 1;
    }
    fpr.min(1.0)
}

/// Chance that a table of signatures took a new key for an old one while its
/// `used` slots were filled.
///
/// `1 - exp(-sum)` over the rates [`double_hashing_fpr`] at each number of
/// slots used on the way (Stern, Dill 1996), about `used * fpr / 2` where that
/// is small. The sum is taken at 512 loads. `NaN` unless `used < slots`.
pub fn omission_probability(used: u64, slots: u64, signature_bits: u32) -> f64 {
    if used >= slots {
        return f64::NAN;
    }
    // Each key met the table without itself: loads from 0 to used - 1.
    let steps = used.min(512);
    let mean = (0..steps)
        .map(|i| {
            let at = (i as f64 + 0.5) / steps as f64 * used as f64 - 0.5;
            double_hashing_fpr(at.round() as u64, slots, signature_bits)
        })
        .sum::<f64>()
        / steps.max(1) as f64;
    -(-mean * used as f64).exp_m1()
}

#[cfg(test)]
mod tests {
    use super::super::{bloom_bits_per_key, bucket_capacity, prints};
    use super::*;

    #[test]
    fn cuckoo_figures_match_the_table() {
        for (f, percent) in [
            (8, "2.94"),
            (9, "1.48"),
            (10, "0.741"),
            (11, "0.371"),
            (12, "0.185"),
            // Printed 0.0928, which is 8 * 0.95 * 2^-13 without the correction.
            (13, "0.0927"),
            (16, "0.0116"),
        ] {
            prints(100.0 * cuckoo_fpr(f, 0.95), percent);
        }
        for (fpr, f, bits) in [
            (0.01, 10, "10.53"),
            (1.0 / 256.0, 11, "11.58"),
            (0.002, 12, "12.63"),
        ] {
            assert_eq!(cuckoo_fingerprint_bits(fpr), Some(f));
            prints(cuckoo_bits_per_key(f, 0.95), bits);
        }
    }

    #[test]
    fn cuckoo_sizes_keep_their_promise() {
        let mut fpr = 0.99;
        while fpr > 1e-18 {
            let f = cuckoo_fingerprint_bits(fpr).unwrap();
            assert!(cuckoo_fpr(f, 0.95) <= fpr, "{fpr}");
            fpr *= 0.9;
        }
        assert_eq!(cuckoo_fingerprint_bits(1e-300), None);
        for fpr in [0.0, 1.0, f64::NAN, -1.0] {
            assert_eq!(cuckoo_fingerprint_bits(fpr), None);
        }
        assert_eq!(cuckoo_fpr(0, 0.5), 1.0);
        assert_eq!(cuckoo_fpr(1, 0.0), 0.0);
        assert_eq!(cuckoo_fpr(1, 0.5), 1.0);
        assert!(cuckoo_fpr(8, f64::NAN).is_nan());
        assert!(cuckoo_fpr(u32::MAX, 0.95) >= 0.0);
    }

    #[test]
    fn cuckoo_crosses_bloom_where_the_text_says() {
        // Real-valued f at which (f / 0.95) equals the optimal Bloom filter.
        let crossing = |saved: f64| {
            let (mut low, mut high) = (1e-6, 0.2);
            while high - low > 1e-9 {
                let fpr = (low + high) / 2.0;
                let f: f64 = (8.0 * 0.95 / fpr + 1.0f64).log2();
                if (f - saved) / 0.95 < bloom_bits_per_key(fpr) {
                    low = fpr;
                } else {
                    high = fpr;
                }
            }
            100.0 * high
        };
        prints(crossing(0.0), "0.42");
        prints(crossing(1.0), "2.7");
    }

    #[test]
    fn chained_tables_match_the_table() {
        for (chain, r, percent) in [
            (0.75, 7, "0.584"),
            (0.95, 7, "0.739"),
            (1.0, 7, "0.778"),
            (1.0, 8, "0.390"),
            (0.625, 6, "0.972"),
        ] {
            prints(100.0 * chain_fpr(chain, r), percent);
        }
        assert_eq!(chain_remainder_bits(0.004, 0.95), Some(8));
        assert_eq!(chain_remainder_bits(0.0037, 0.95), Some(9));
        assert_eq!(chain_remainder_bits(0.5, f64::INFINITY), None);
        assert_eq!(chain_remainder_bits(f64::NAN, 0.9), None);
        assert!(chain_fpr(f64::NAN, 8).is_nan());
        let capacity = bucket_capacity(64.0, 1e-6).unwrap() as f64;
        prints((64.0 + capacity * (1.0 + 7.0)) / 64.0, "14.1");
    }

    #[test]
    fn hash_compaction_figures_match_the_table() {
        for (load, double, linear) in [(0.8, "4", "12"), (0.5, "1", "1.5")] {
            prints(open_addressing_comparisons(load, false), double);
            prints(open_addressing_comparisons(load, true), linear);
        }
        // Printed 1.56 %: 4 / 256 before the correction for two matches.
        prints(100.0 * hash_compaction_fpr(8, 4.0), "1.55");
        prints(100.0 * hash_compaction_fpr(8, 12.0), "4.6");
        prints(100.0 * hash_compaction_fpr(9, 4.0), "0.78");
        assert_eq!(hash_compaction_bits(0.01, 4.0), Some(9));
        prints(9.0 / 0.8, "11.25");
        assert!(open_addressing_comparisons(1.0, true).is_nan());
        // Many slots: load q / (1 - load + load q), here 0.8 / (0.2 * 511 + 0.8).
        prints(100.0 * double_hashing_fpr(800_000, 1_000_000, 9), "0.777");
        // One of two slots is used: the way starts there or not.
        assert_eq!(double_hashing_fpr(1, 2, 2), 0.5 / 3.0);
        assert_eq!(double_hashing_fpr(0, 2, 9), 0.0);
        assert!(double_hashing_fpr(2, 2, 9).is_nan() && omission_probability(2, 2, 9).is_nan());
        assert_eq!(omission_probability(0, 10, 9), 0.0);
        // 10^6 states, 40 bits: about n eps / 2, less than that as the rate rises faster than the
        // load.
        let eps = double_hashing_fpr(800_000, 1_000_000, 40);
        let omission = omission_probability(800_000, 1_000_000, 40);
        assert!(omission < 800_000.0 * eps / 2.0 && omission > 800_000.0 * eps / 4.0);
        // A key after the first in two slots meets one signature or none.
        assert!((omission_probability(2, 3, 2) - (1.0 - (-1f64 / 9.0).exp())).abs() < 1e-15);
        assert_eq!(hash_compaction_bits(0.01, f64::NAN), None);
    }
}
