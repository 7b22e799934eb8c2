//! Tables of fingerprints: cuckoo, quotient and their relatives.
//!
//! An absent key is compared with the fingerprints of its buckets, so the rate
//! is the number of comparisons times the chance that one matches, and grows
//! in proportion to the load.

use super::counting::kept_and_spilled;
use super::probability::Law;
use super::{any_match, fingerprint_fpr, is_rate, lower_bound_bits_per_key};

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
pub fn cuckoo_bits_per_key(fingerprint_bits: u32, load: f64) -> f64 {
    per_key(f64::from(fingerprint_bits), load)
}

/// Bits per slot of a cuckoo filter whose buckets are semi-sorted.
///
/// One less than the fingerprint: four sorted nibbles have C(19, 4) = 3876
/// values, which fit in 12 bits instead of 16 (Fan et al. 2014). Fingerprints
/// below five bits have no nibble to spare and stay as they are.
pub fn semi_sort_bits(fingerprint_bits: u32) -> u32 {
    if fingerprint_bits >= 5 {
        fingerprint_bits - 1
    } else {
        fingerprint_bits
    }
}

/// False-positive rate of a Morton filter with 46 slots and 64 buckets a block.
///
/// `(1 + second) * (46 load / 64) / 255`, `second` being the share of lookups
/// that must go on to the other bucket (Breslow, Jayasena 2018).
pub fn morton_fpr(load: f64, second: f64) -> f64 {
    (1.0 + second) * (46.0 * load / 64.0) / 255.0
}

/// Bits per key of a Morton filter with 46 slots in a 512-bit block.
///
/// `512 / (46 load)`.
pub fn morton_bits_per_key(load: f64) -> f64 {
    per_key(512.0 / 46.0, load)
}

/// False-positive rate of a quotient filter, and of any table with chains.
///
/// `1 - e^(-load 2^-r)` (Bender et al. 2012): the keys that share the quotient
/// are Poisson with mean `load` and each matches with chance `2^-r`. With the
/// keys per chain as load it is also the rate of rank-indexed hashing and of
/// TinyTable. `NaN` for a negative or `NaN` load.
pub fn quotient_fpr(load: f64, remainder_bits: u32) -> f64 {
    if load >= 0.0 {
        -(-load * fingerprint_fpr(remainder_bits)).exp_m1()
    } else {
        f64::NAN
    }
}

/// Remainder bits of a quotient filter at rate `fpr` and the given load.
///
/// Least r with [`quotient_fpr`] at most `fpr`. `None` unless `0 < fpr < 1`
/// and the load is positive and finite, or above 64 bits.
pub fn quotient_remainder_bits(fpr: f64, load: f64) -> Option<u32> {
    if !is_rate(fpr) || load.is_nan() || load <= 0.0 {
        return None;
    }
    (0..=64).find(|&r| quotient_fpr(load, r) <= fpr)
}

/// Bits per key of a quotient filter with three metadata bits.
///
/// `(remainder_bits + 3) / load` (Bender et al. 2012).
pub fn quotient_bits_per_key(remainder_bits: u32, load: f64) -> f64 {
    per_key(f64::from(remainder_bits) + 3.0, load)
}

/// Bits per key of a rank-select quotient filter.
///
/// `(remainder_bits + 2.125) / load`: two bits per slot and one offset byte
/// for 64 slots (Pandey, Bender, Johnson, Patro 2017).
pub fn rsqf_bits_per_key(remainder_bits: u32, load: f64) -> f64 {
    per_key(f64::from(remainder_bits) + 2.125, load)
}

/// Bits per key of rank-indexed hashing at exact provisioning.
///
/// `remainder_bits + 1 + 1 / chain_load`: one index bit per item and one per
/// chain (Hua, Zhao, Lin, Xu 2008). Its rate is [`quotient_fpr`] of the chain
/// load.
pub fn rank_indexed_bits_per_key(remainder_bits: u32, chain_load: f64) -> f64 {
    f64::from(remainder_bits) + per_key(1.0, chain_load) + 1.0
}

/// Bits per key of TinyTable, with two index bits to an item.
///
/// `(remainder_bits + 2) / load` (Einziger, Friedman 2016). The compact table
/// of Cleary (1984) costs the same.
pub fn tinytable_bits_per_key(remainder_bits: u32, load: f64) -> f64 {
    per_key(f64::from(remainder_bits) + 2.0, load)
}

/// Bits per key of Cleary's compact table at rate `fpr`.
///
/// `(log2(1 / fpr) + 2) / load` (Cleary 1984; Pagh, Pagh, Rao 2005).
pub fn cleary_bits_per_key(fpr: f64, load: f64) -> f64 {
    per_key(lower_bound_bits_per_key(fpr) + 2.0, load)
}

/// Load that keeps Cleary's table a constant number of bits from optimal.
///
/// `1 - 1 / (2 log2(1 / fpr))` (Pagh, Pagh, Rao 2005).
pub fn cleary_load(fpr: f64) -> f64 {
    1.0 - 0.5 / lower_bound_bits_per_key(fpr)
}

/// Slots and buckets of a vector quotient filter's 64-byte block.
fn vqf_block(tag_bits: u32) -> Option<(f64, f64)> {
    match tag_bits {
        8 => Some((48.0, 80.0)),
        16 => Some((28.0, 36.0)),
        _ => None,
    }
}

/// False-positive rate of a vector quotient filter.
///
/// `2 (slots load / buckets) 2^-tag_bits` for two blocks of 48 slots and 80
/// buckets (8-bit tags) or 28 and 36 (16-bit tags) (Pandey et al. 2021).
/// `NaN` for other tags.
pub fn vqf_fpr(tag_bits: u32, load: f64) -> f64 {
    match vqf_block(tag_bits) {
        Some((slots, buckets)) => 2.0 * slots * load / buckets * fingerprint_fpr(tag_bits),
        None => f64::NAN,
    }
}

/// Bits per key of a vector quotient filter.
///
/// `512 / (slots load)`; `NaN` for tags of other than 8 or 16 bits.
pub fn vqf_bits_per_key(tag_bits: u32, load: f64) -> f64 {
    match vqf_block(tag_bits) {
        Some((slots, _)) => per_key(512.0 / slots, load),
        None => f64::NAN,
    }
}

/// Slots, and lists, of one 256-bit bin of the prefix filter.
const PREFIX_SLOTS: f64 = 25.0;

/// Share of the keys that a prefix filter passes to its spare.
///
/// `E[(X - 25)+] / E[X]` for `X ~ Poisson(25 load)` (Even, Even, Morrison
/// 2022).
pub fn prefix_spill(load: f64) -> f64 {
    let mean = PREFIX_SLOTS * load;
    kept_and_spilled(mean, PREFIX_SLOTS).1 / mean
}

/// Share of absent keys that a prefix filter looks up in its spare.
///
/// `E[(X - 24) / (X + 1); X > 25]`: a bin that got X fingerprints keeps the
/// 25 least, and the expected gap above the 25th of X uniform values is
/// `1 - 25 / (X + 1)`.
pub fn prefix_forwarded(load: f64) -> f64 {
    let mean = PREFIX_SLOTS * load;
    Law::Poisson { mean }.expect(|x| {
        if x > PREFIX_SLOTS {
            1.0 - PREFIX_SLOTS / (x + 1.0)
        } else {
            0.0
        }
    })
}

/// False-positive rate of a prefix filter over a spare of rate `spare_fpr`.
///
/// `E[min(X, 25)] / 25 / 256 + forwarded * spare_fpr`, an upper bound (Even,
/// Even, Morrison 2022).
pub fn prefix_fpr(load: f64, spare_fpr: f64) -> f64 {
    let kept = kept_and_spilled(PREFIX_SLOTS * load, PREFIX_SLOTS).0;
    kept / PREFIX_SLOTS / 256.0 + prefix_forwarded(load) * spare_fpr
}

/// Bits per key of a prefix filter, its spare included.
///
/// `256 / (25 load) + 1.1 spill * spare_bits`, the spare having a tenth more
/// room than the keys it expects, of `spare_bits` bits each.
pub fn prefix_bits_per_key(load: f64, spare_bits: f64) -> f64 {
    per_key(256.0 / PREFIX_SLOTS, load) + 1.1 * prefix_spill(load) * spare_bits
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
/// from the signature itself, every key is a comparison:
/// [`short_hash_floor`](super::short_hash_floor).
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
    use super::super::{bloom_bits_per_key, bucket_capacity, prints, short_hash_floor};
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
        for (fpr, f, bits, sorted) in [
            (0.01, 10, "10.53", "9.47"),
            (1.0 / 256.0, 11, "11.58", "10.53"),
            (0.002, 12, "12.63", "11.58"),
        ] {
            assert_eq!(cuckoo_fingerprint_bits(fpr), Some(f));
            prints(cuckoo_bits_per_key(f, 0.95), bits);
            prints(cuckoo_bits_per_key(semi_sort_bits(f), 0.95), sorted);
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
    fn morton_figures_match_the_table() {
        prints(100.0 * morton_fpr(0.95, 0.0), "0.27");
        // The text rounds 0.5355 down.
        prints(100.0 * morton_fpr(0.95, 1.0), "0.54");
        prints(morton_bits_per_key(0.95), "11.72");
    }

    #[test]
    fn quotient_figures_match_the_table() {
        for (load, r, bits, percent) in [
            (0.75, 7, "13.33", "0.584"),
            (0.95, 7, "10.53", "0.739"),
            (0.95, 8, "11.58", "0.370"),
            (0.9, 8, "12.22", "0.351"),
        ] {
            prints(quotient_bits_per_key(r, load), bits);
            prints(100.0 * quotient_fpr(load, r), percent);
        }
        prints(rsqf_bits_per_key(7, 0.95), "9.61");
        prints(rsqf_bits_per_key(8, 0.95), "10.66");
        for (r, percent) in [(8, "121"), (10, "115"), (16, "107")] {
            let bloom = bloom_bits_per_key(quotient_fpr(0.75, r));
            prints(100.0 * quotient_bits_per_key(r, 0.75) / bloom, percent);
        }
        assert_eq!(quotient_remainder_bits(0.004, 0.95), Some(8));
        assert_eq!(quotient_remainder_bits(0.0037, 0.95), Some(9));
        assert_eq!(quotient_remainder_bits(0.5, f64::INFINITY), None);
        assert_eq!(quotient_remainder_bits(f64::NAN, 0.9), None);
        assert!(quotient_fpr(f64::NAN, 8).is_nan() && quotient_bits_per_key(8, 0.0).is_nan());
    }

    #[test]
    fn chained_tables_match_the_table() {
        for (chain, r, bits, percent) in [
            (1.0, 7, "9.0", "0.778"),
            (1.0, 8, "10.0", "0.390"),
            (0.625, 6, "8.6", "0.972"),
        ] {
            prints(rank_indexed_bits_per_key(r, chain), bits);
            prints(100.0 * quotient_fpr(chain, r), percent);
        }
        let capacity = bucket_capacity(64.0, 1e-6).unwrap() as f64;
        prints((64.0 + capacity * (1.0 + 7.0)) / 64.0, "14.1");
        prints(tinytable_bits_per_key(7, 0.9), "10.0");
        prints(100.0 * quotient_fpr(1.0, 7), "0.78");
        for (log, optimal, at_80) in [
            (8, "10.67", "12.50"),
            (10, "12.63", "15.00"),
            (16, "18.58", "22.50"),
        ] {
            let fpr = 2f64.powi(-log);
            prints(cleary_bits_per_key(fpr, cleary_load(fpr)), optimal);
            prints(cleary_bits_per_key(fpr, 0.8), at_80);
        }
    }

    #[test]
    fn vector_quotient_figures_match_the_table() {
        prints(100.0 * vqf_fpr(8, 0.93), "0.436");
        prints(vqf_bits_per_key(8, 0.93), "11.47");
        prints(vqf_fpr(16, 0.89), "2.1e-5");
        prints(vqf_bits_per_key(16, 0.89), "20.5");
        assert!(vqf_fpr(12, 0.9).is_nan() && vqf_bits_per_key(12, 0.9).is_nan());
    }

    #[test]
    fn prefix_filter_figures_match_the_table() {
        prints(100.0 * prefix_spill(0.95), "5.86");
        prints(100.0 * prefix_spill(1.0), "7.95");
        prints(100.0 * prefix_forwarded(0.95), "5.6");
        prints(100.0 * prefix_fpr(0.95, 0.0), "0.349");
        // Printed 0.375, from a forwarded share rounded up to 5.6 % and 0.44 %.
        let with_spare = 100.0 * prefix_fpr(0.95, 0.0044);
        assert!((with_spare - 0.375).abs() < 0.002, "{with_spare}");
        prints(prefix_bits_per_key(0.95, 0.0), "10.78");
        prints(prefix_bits_per_key(0.95, 12.0), "11.55");
        for load in [f64::NAN, -1.0] {
            assert!(prefix_spill(load).is_nan() && prefix_fpr(load, 0.1).is_nan());
        }
        assert!(prefix_forwarded(1e300) <= 1.0);
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
        prints(100.0 * short_hash_floor(1_000_000, 20), "61.5");
        prints(short_hash_floor(1_000_000, 40), "9.1e-7");
        assert!(open_addressing_comparisons(1.0, true).is_nan());
        // Many slots: load q / (1 - load + load q), here 0.8 / (0.2 * 511 + 0.8).
        prints(100.0 * double_hashing_fpr(800_000, 1_000_000, 9), "0.777");
        // One of two slots is used: the way starts there or not.
        assert_eq!(double_hashing_fpr(1, 2, 2), 0.5 / 3.0);
        assert_eq!(double_hashing_fpr(0, 2, 9), 0.0);
        assert!(double_hashing_fpr(2, 2, 9).is_nan() && omission_probability(2, 2, 9).is_nan());
        assert_eq!(omission_probability(0, 10, 9), 0.0);
        // 10^6 states, 40 bits: about n eps / 2, less than that as the rate rises faster than the load.
        let eps = double_hashing_fpr(800_000, 1_000_000, 40);
        let omission = omission_probability(800_000, 1_000_000, 40);
        assert!(omission < 800_000.0 * eps / 2.0 && omission > 800_000.0 * eps / 4.0);
        // A key after the first in two slots meets one signature or none.
        assert!((omission_probability(2, 3, 2) - (1.0 - (-1f64 / 9.0).exp())).abs() < 1e-15);
        assert_eq!(hash_compaction_bits(0.01, f64::NAN), None);
    }
}
