//! Tables of fingerprints: cuckoo, vector quotient, chained and hash
//! compaction.
//!
//! An absent key is compared with the fingerprints of its buckets, so the rate
//! is the number of comparisons times the chance that one matches, and grows
//! in proportion to the load.

use super::probability::poisson_pmf;
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

/// False-positive rate of a quotient filter.
///
/// `1 - e^(-load 2^-r)`: a run is a chain, and [`chain_fpr`] is its rate. `NaN` for a negative or
/// `NaN` load.
pub fn quotient_fpr(load: f64, remainder_bits: u32) -> f64 {
    chain_fpr(load, remainder_bits)
}

/// Remainder bits of a quotient filter at rate `fpr` and the given load.
///
/// Least r with [`quotient_fpr`] at most `fpr`; `None` as [`chain_remainder_bits`].
pub fn quotient_bits(load: f64, fpr: f64) -> Option<u32> {
    chain_remainder_bits(fpr, load)
}

/// Bits per key of a quotient filter.
///
/// `(r + metadata) / load`, the metadata of a slot being three bits as published first.
pub fn quotient_bits_per_key(load: f64, remainder_bits: u32, metadata: f64) -> f64 {
    per_key(f64::from(remainder_bits) + metadata, load)
}

/// Bound on the chance that a quotient filter needs more than `tail` slots behind the last home.
///
/// `e^(-t tail)`, `load (e^t - 1) = t`: the fingerprints that have not found a slot yet are a queue
/// that serves one a step, and Poisson many come (Kingman 1964). `NaN` unless `0 < load < 1`.
pub fn quotient_overflow(load: f64, tail: u64) -> f64 {
    if !(load > 0.0 && load < 1.0) {
        return f64::NAN;
    }
    // Below 0 up to the root, above 0 from there on.
    let (mut low, mut high) = (0.0, 800.0);
    for _ in 0..100 {
        let t: f64 = (low + high) / 2.0;
        if load * t.exp_m1() < t {
            low = t;
        } else {
            high = t;
        }
    }
    (-low * tail as f64).exp()
}

/// Load that compact tables of Cleary's are sized for: `1 - 1 / (2 r)`.
///
/// The free cells then cost about as much whatever the rate (Pagh, Pagh, Rao 2005). `NaN` for no
/// bits.
pub fn cleary_load(remainder_bits: u32) -> f64 {
    if remainder_bits == 0 {
        return f64::NAN;
    }
    1.0 - 0.5 / f64::from(remainder_bits)
}

/// Remainder bits of a compact table at rate `fpr` and [its load](cleary_load).
///
/// Least r with [`quotient_fpr`] at most `fpr`; `None` unless `0 < fpr < 1`, or beyond 64 bits.
pub fn cleary_bits(fpr: f64) -> Option<u32> {
    (1..=64).find(|&bits| is_rate(fpr) && quotient_fpr(cleary_load(bits), bits) <= fpr)
}

/// Bits per key of a compact table: `(r + 2) / (1 - 1 / (2 r))`.
pub fn cleary_bits_per_key(remainder_bits: u32) -> f64 {
    quotient_bits_per_key(cleary_load(remainder_bits), remainder_bits, 2.0)
}

/// False-positive rate of a table that holds so many of `homes 2^r` fingerprints, exactly.
pub fn cleary_fpr(held: u64, homes: u64, remainder_bits: u32) -> f64 {
    held as f64 / (homes as f64 * f64::from(remainder_bits).exp2())
}

/// False-positive rate of a vector quotient filter, at most.
///
/// `2 keys / (buckets 2^f)`: an absent key is compared with the fingerprints of
/// its bucket in two blocks, each of which matches with chance `2^-f` (Pandey,
/// Conway, Durie, Bender, Farach-Colton, Johnson 2021). `keys_per_block` is the
/// mean over the blocks, `buckets` are those of one. `NaN` for a negative or
/// `NaN` number of keys, and for no bucket.
pub fn vector_quotient_fpr(fingerprint_bits: u32, buckets: u32, keys_per_block: f64) -> f64 {
    if keys_per_block.is_nan() || keys_per_block < 0.0 || buckets == 0 {
        return f64::NAN;
    }
    let compared = 2.0 * keys_per_block / f64::from(buckets);
    (compared * fingerprint_fpr(fingerprint_bits)).min(1.0)
}

/// Keys per block of a vector quotient filter at rate `fpr`.
///
/// The most with [`vector_quotient_fpr`] at most `fpr`: `fpr buckets 2^f / 2`.
/// `NaN` unless `0 < fpr < 1`.
pub fn vector_quotient_keys_per_block(fpr: f64, fingerprint_bits: u32, buckets: u32) -> f64 {
    if is_rate(fpr) {
        fpr * f64::from(buckets) / (2.0 * fingerprint_fpr(fingerprint_bits))
    } else {
        f64::NAN
    }
}

/// Share of absent keys that a prefix filter looks up in its spare.
///
/// `sum over x > slots of P[X = x] (x + 1 - slots) / (x + 1)`, X being Poisson:
/// a pocket that x keys were sent to keeps the least of them, and an absent key
/// is equally likely to come anywhere among x (Even, Even, Morrison 2022).
/// `NaN` for a negative or `NaN` number of keys.
pub fn prefix_asked(slots: u32, keys_per_pocket: f64) -> f64 {
    if keys_per_pocket.is_nan() || keys_per_pocket < 0.0 {
        return f64::NAN;
    }
    let slots = u64::from(slots);
    let most = slots + 10 * (keys_per_pocket.sqrt().min(1e6) as u64 + 10);
    let asked = |x: u64| poisson_pmf(x, keys_per_pocket) * (x + 1 - slots) as f64 / (x + 1) as f64;
    (slots + 1..most).map(asked).sum()
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
    fn a_spare_is_asked_as_often_as_the_table_says() {
        for (slots, percent) in [(24, "5.71"), (25, "5.57"), (26, "5.43"), (27, "5.30")] {
            prints(
                100.0 * prefix_asked(slots, 0.95 * f64::from(slots)),
                percent,
            );
        }
        assert_eq!(prefix_asked(25, 0.0), 0.0);
        assert!(prefix_asked(25, -1.0).is_nan() && prefix_asked(25, f64::NAN).is_nan());
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
    fn semi_sorted_cuckoo_is_smaller_than_bloom_where_the_text_says() {
        let size = |f: u32| cuckoo_bits_per_key(f - 1, 0.95);
        // At the rates that whole bits give.
        for f in 4..=32 {
            let smaller = size(f) < bloom_bits_per_key(cuckoo_fpr(f, 0.95));
            assert_eq!(smaller, f >= 9, "{f} bits");
        }
        prints(100.0 * cuckoo_fpr(9, 0.95), "1.48");
        prints(size(9), "8.42");
        prints(bloom_bits_per_key(cuckoo_fpr(9, 0.95)), "8.77");
        // At the rates that are asked for, which are rounded down to those.
        let smaller = |fpr: f64| {
            let f = cuckoo_fingerprint_bits(fpr).unwrap();
            size(f) < bloom_bits_per_key(fpr)
        };
        assert!(smaller(0.01) && !smaller(0.007) && !smaller(0.0064));
        let mut fpr = 0.0063;
        while fpr > 1e-9 {
            assert!(smaller(fpr), "{fpr}");
            fpr *= 0.999;
        }
        prints(size(10), "9.47");
        prints(bloom_bits_per_key(0.01), "9.585");
    }

    #[test]
    fn vector_quotient_figures_match_the_table() {
        // The paper's two shapes, at the loads of its table.
        for (bits, buckets, keys, percent, size) in [
            (8, 80, 0.93 * 48.0, "0.436", "11.47"),
            (16, 36, 0.89 * 28.0, "0.0021", "20.5"),
        ] {
            prints(100.0 * vector_quotient_fpr(bits, buckets, keys), percent);
            prints(512.0 / keys, size);
            let fpr = vector_quotient_fpr(bits, buckets, keys);
            let back = vector_quotient_keys_per_block(fpr, bits, buckets);
            assert!((back / keys - 1.0).abs() < 1e-12);
        }
        assert_eq!(vector_quotient_fpr(8, 80, 0.0), 0.0);
        assert_eq!(vector_quotient_fpr(1, 1, 100.0), 1.0);
        for keys in [-1.0, f64::NAN] {
            assert!(vector_quotient_fpr(8, 80, keys).is_nan());
        }
        assert!(vector_quotient_fpr(8, 0, 1.0).is_nan());
        for fpr in [0.0, 1.0, f64::NAN] {
            assert!(vector_quotient_keys_per_block(fpr, 8, 80).is_nan());
        }
    }

    #[test]
    fn compact_tables_match_the_table() {
        for (bits, size) in [(8, "10.67"), (10, "12.63"), (16, "18.58")] {
            prints(cleary_bits_per_key(bits), size);
            let fpr = quotient_fpr(cleary_load(bits), bits);
            assert_eq!(cleary_bits(fpr), Some(bits));
            assert_eq!(cleary_bits(fpr * 0.999), Some(bits + 1));
        }
        assert_eq!(cleary_fpr(1 << 20, 1 << 20, 8), 1.0 / 256.0);
        assert!(cleary_load(0).is_nan());
        for fpr in [0.0, 1.0, f64::NAN, 1e-30] {
            assert_eq!(cleary_bits(fpr), None);
        }
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
    fn quotient_figures_match_the_table() {
        for (load, r, metadata, bits, percent) in [
            (0.75, 7, 3.0, "13.33", "0.584"),
            (0.9, 7, 3.0, "11.11", "0.70"),
            (0.9, 8, 3.0, "12.22", "0.351"),
            (0.95, 7, 3.0, "10.53", "0.739"),
            (0.95, 8, 3.0, "11.58", "0.370"),
            (0.95, 7, 2.125, "9.61", "0.739"),
            (0.95, 8, 2.125, "10.66", "0.370"),
        ] {
            prints(quotient_bits_per_key(load, r, metadata), bits);
            let fpr = quotient_fpr(load, r);
            prints(100.0 * fpr, percent);
            assert_eq!(quotient_bits(load, fpr), Some(r));
            assert_eq!(quotient_bits(load, 0.999 * fpr), Some(r + 1));
        }
        // "About 20 % bigger" than a Bloom filter of the same rate.
        for (load, r, percent) in [(0.75, 8, "21"), (0.9, 7, "8"), (0.9, 8, "4")] {
            let bloom = bloom_bits_per_key(quotient_fpr(load, r));
            let more = quotient_bits_per_key(load, r, 3.0) / bloom - 1.0;
            prints(100.0 * more, percent);
        }
        prints(quotient_overflow(0.9, 128), "3.1e-12");
        // The root for which the load is t / (e^t - 1), with t = 1.
        let load = 1.0 / 1f64.exp_m1();
        assert!((quotient_overflow(load, 3) / (-3f64).exp() - 1.0).abs() < 1e-12);
        assert!(quotient_overflow(5e-324, 1) < 1e-300);
        assert!(quotient_overflow(1.0, 1).is_nan() && quotient_overflow(f64::NAN, 1).is_nan());
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
