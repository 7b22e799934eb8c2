//! Filters that travel, grow, slide or fold: sums and products of the others.

use super::{
    any_match, bloom_bits_per_key, bloom_bits_per_key_at, fingerprint_fpr, is_rate,
    lower_bound_bits_per_key,
};
use std::f64::consts::{LN_2, PI};

/// Most parts that a schedule is summed over.
const MAX_PARTS: u32 = 4096;

/// Entropy in bits of a coin that falls on one side with probability `p`.
///
/// `-p log2 p - (1 - p) log2(1 - p)`, 0 at both ends, `NaN` outside.
pub fn binary_entropy(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p == 0.0 || p == 1.0 {
        return 0.0;
    }
    -(p * p.ln() + (1.0 - p) * (-p).ln_1p()) / LN_2
}

/// Bits per key on the wire of a Bloom filter of given size and probes.
///
/// `bits_per_key * H2(1 - e^(-k / bits_per_key))`, an ideal coder
/// (Mitzenmacher 2001).
pub fn compressed_bits_per_key(bits_per_key: f64, k: u32) -> f64 {
    let fill = -(-f64::from(k) / bits_per_key).exp_m1();
    bits_per_key * binary_entropy(fill)
}

/// Memory and wire bits per key of a compressed Bloom filter with `k` probes.
///
/// `m/n = -k / ln(1 - fpr^(1/k))` and [`compressed_bits_per_key`] of it. Fewer
/// probes take more memory and less wire. `None` unless `0 < fpr < 1` and
/// `k > 0`.
pub fn compressed_size(fpr: f64, k: u32) -> Option<(f64, f64)> {
    let memory = bloom_bits_per_key_at(fpr, k);
    (memory > 0.0).then(|| (memory, compressed_bits_per_key(memory, k)))
}

/// How a scalable filter divides its error among its slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScalableSchedule {
    /// Slice i gets `total (1 - ratio) ratio^i` (Almeida, Baquero, Preguica,
    /// Hutchison 2007). Each slice then costs a constant more per key.
    Geometric {
        /// Error of a slice over that of the one before, in (0, 1).
        ratio: f64,
    },
    /// Slice i gets `total * 6 / (pi (i + 1))^2` (Apple 2022). Its extra cost
    /// grows with the logarithm of i only.
    InverseSquare,
}

/// Error rate given to one slice of a scalable filter.
///
/// See [`ScalableSchedule`]. The rates of all slices sum to `total`.
pub fn scalable_slice_fpr(schedule: ScalableSchedule, total: f64, slice: u32) -> f64 {
    match schedule {
        ScalableSchedule::Geometric { ratio } if ratio > 0.0 && ratio < 1.0 => {
            total * (1.0 - ratio) * ratio.powf(f64::from(slice))
        }
        ScalableSchedule::Geometric { .. } => f64::NAN,
        ScalableSchedule::InverseSquare => {
            let place = f64::from(slice) + 1.0;
            total * 6.0 / (PI * PI * place * place)
        }
    }
}

/// Error rate of a scalable filter whose first `slices` slices are full.
///
/// `1 - product of (1 - rate of slice)`, less than `total` for any number.
/// `NaN` above 4096 slices.
pub fn scalable_fpr(schedule: ScalableSchedule, total: f64, slices: u32) -> f64 {
    if slices > MAX_PARTS {
        return f64::NAN;
    }
    let silent: f64 = (0..slices)
        .map(|i| (-scalable_slice_fpr(schedule, total, i)).ln_1p())
        .sum();
    -silent.exp_m1()
}

/// The probability that one of several independent things happens.
pub(crate) fn any(rates: impl Iterator<Item = f64>) -> f64 {
    -rates.map(|rate| (-rate).ln_1p()).sum::<f64>().exp_m1() + 0.0
}

/// Bits of an expandable filter's fingerprints: of the first keys, and how many
/// more those of the first expansion have beyond the one that is always added.
///
/// Keys of generation X, which come after X doublings, keep the first
/// [`aleph_bits`] of what their slot leaves of the hash. Of a table that is
/// filled up to `load` they take the share `load 2^-bits` of all hashes if X is
/// 0, and half of that if not, as half of the table was full before. All
/// shares of 63 doublings sum to `load 2^-first (1 + 1.5 / 2^more)`, which is
/// at most `fpr`: these are the fewest bits after an expansion for which that
/// holds, and of those the fewest before. A rate above one half is taken as
/// one half. `None` unless `0 < fpr < 1`, `0 < load <= 1` and 56 bits suffice.
pub fn aleph_first_bits(fpr: f64, load: f64) -> Option<(u32, u32)> {
    if !(is_rate(fpr) && load > 0.0 && load <= 1.0) {
        return None;
    }
    (1..=56).find_map(|first: u32| {
        let budget = fpr.min(0.5) / load * f64::from(first).exp2();
        (budget >= 1.75).then_some((first, u32::from(budget < 2.5)))
    })
}

/// Bits of a fingerprint that is inserted after so many expansions.
///
/// `first + more + (binary digits of the generation)`, and `first` before any:
/// about `log2 log2 (n / n0)` more, the term by which Pagh, Segev and Wieder
/// prove that a filter of unknown size is larger.
pub fn aleph_bits((first, more): (u32, u32), generation: u32) -> u32 {
    match generation {
        0 => first,
        _ => first + more + u32::BITS - generation.leading_zeros(),
    }
}

/// Rate of an expandable filter after so many expansions, its last table full.
///
/// `load (2^-bits(0) + 1/2 sum over X >= 1 of 2^-bits(X))`: no generation's
/// share changes when bits of its fingerprints become bits of their slots. An
/// upper bound, which ignores that shares overlap. With
/// `bits(X) = F + 2 log2(X + 1)` it is that of InfiniFilter (Dayan et al. 2023).
pub fn widening_fpr(load: f64, bits: impl Fn(u32) -> f64, expansions: u32) -> f64 {
    let later = (1..=expansions).map(|x| (-bits(x)).exp2() / 2.0);
    load * ((-bits(0)).exp2() + later.sum::<f64>())
}

/// Widths of a compacting filter's slice: of the fingerprints in the table that
/// takes its keys, and of those in the run that it becomes.
///
/// A run errs where the whole fingerprint of an absent key is that of a member,
/// `2^-r` with one key a chain, or where those of w bits agree, `2^-w`. Of the
/// widths with `2^-r + 2^-w <= share` these are the ones with the least sum,
/// and of those the ones with the least w, which is what is kept. `None`
/// where 32 bits do not suffice.
pub fn compacting_widths(share: f64) -> Option<(u32, u32)> {
    let widths = 1..=32u32;
    let enough = |r: u32, w: u32| fingerprint_fpr(r) + fingerprint_fpr(w) <= share;
    let pairs = widths.clone().filter_map(|w| {
        let r = widths.clone().find(|&r| enough(r, w))?;
        Some((r, w))
    });
    pairs.min_by_key(|&(r, w)| (r + w, w))
}

/// Rate of a sealed run of `keys` whole fingerprints out of `universe`, of which
/// it keeps `bits` bits each.
pub fn compacting_run_fpr(keys: f64, universe: f64, bits: u32) -> f64 {
    let members = keys / universe;
    members + (1.0 - members) * fingerprint_fpr(bits)
}

/// Bits per key of a scalable Bloom filter whose `slices` slices are full.
///
/// `sum_i growth^i b(rate_i) / sum_i growth^i`, b being
/// [`bloom_bits_per_key`] and slice i holding `growth^i` times the keys of the
/// first. `NaN` unless `1 <= slices <= 4096` and `growth > 0`.
pub fn scalable_bits_per_key(
    schedule: ScalableSchedule,
    total: f64,
    growth: f64,
    slices: u32,
) -> f64 {
    if !(1..=MAX_PARTS).contains(&slices)
        || growth.is_nan()
        || growth <= 0.0
        || growth.is_infinite()
    {
        return f64::NAN;
    }
    // Weights relative to the last slice (or the first, if slices shrink), so
    // that no power overflows.
    let last = if growth >= 1.0 { slices - 1 } else { 0 };
    let (mut bits, mut keys) = (0.0, 0.0);
    for i in 0..slices {
        let weight = growth.powf(f64::from(i) - f64::from(last));
        if weight > 0.0 {
            bits += weight * bloom_bits_per_key(scalable_slice_fpr(schedule, total, i));
            keys += weight;
        }
    }
    bits / keys
}

/// Error rate each of `parts` filters may have for the whole to have `fpr`.
///
/// `1 - (1 - fpr)^(1 / parts)`: the filters are asked one after the other and
/// any yes is a yes. `NaN` unless `0 <= fpr <= 1` and `parts > 0`.
pub fn share_of_fpr(fpr: f64, parts: u32) -> f64 {
    if !(0.0..=1.0).contains(&fpr) || parts == 0 {
        return f64::NAN;
    }
    any_match(fpr, 1.0 / f64::from(parts))
}

/// Bits per window key of a sliding filter made of whole generations.
///
/// `(G + 1) / G * b(1 - (1 - fpr)^(1 / (G + 1)))`: G generations cover the
/// window and one more is filling; b is [`bloom_bits_per_key`].
pub fn generations_bits_per_key(fpr: f64, generations: u32) -> f64 {
    let g = f64::from(generations);
    (g + 1.0) / g * bloom_bits_per_key(share_of_fpr(fpr, generations.saturating_add(1)))
}

/// False-positive rate of several Bloom filters that share their `k` places.
///
/// `fields[v]` is the number of places at which exactly the filters in the
/// bit set v have a one. A key is found when one filter has a one at all its
/// places: by inclusion and exclusion, `sum over sets T of filters of
/// (-1)^(|T| + 1) f_T^k`, with `f_T` the share of places at which all of T
/// have a one. Exact for places drawn independently, even where the filters
/// hold the same keys. 0 when there are no places. The length must be a power
/// of two; the counts are used up.
pub fn shared_places_fpr(fields: &mut [u64], k: u32) -> f64 {
    let places: u64 = fields.iter().sum();
    if places == 0 {
        return 0.0;
    }
    // Counts of exactly v become counts of at least v.
    let mut bit = 1;
    while bit < fields.len() {
        for set in 0..fields.len() {
            if set & bit == 0 {
                fields[set] += fields[set | bit];
            }
        }
        bit *= 2;
    }
    let terms = fields.iter().enumerate().skip(1).map(|(set, &count)| {
        let all = (count as f64 / places as f64).powf(f64::from(k));
        if set.count_ones() % 2 == 1 { all } else { -all }
    });
    terms.sum::<f64>().clamp(0.0, 1.0)
}

/// False-positive rate of an age-partitioned Bloom filter.
///
/// Chance of `k` matching slices in a row among `k + l`, slice i being filled
/// to `1 - 2^(-(i + 1) / k)` while it still takes keys and to one half after
/// (Shtul, Baquero, Almeida 2020). Followed as the chain of the current run.
/// `NaN` unless `1 <= k <= 256` and `l <= 2^16`.
pub fn apbf_fpr(k: u32, l: u32) -> f64 {
    if !(1..=256).contains(&k) || l > 1 << 16 {
        return f64::NAN;
    }
    run_fpr((0..k + l).map(|slice| apbf_fill(k, slice)), k)
}

/// Fill of a slice of an age-partitioned filter at the end of a generation.
fn apbf_fill(k: u32, slice: u32) -> f64 {
    let young = f64::from(slice.min(k - 1) + 1) / f64::from(k);
    -(-LN_2 * young).exp_m1()
}

/// Chance of `k` slices in a row that all match, each with a chance of its own.
///
/// Followed slice by slice as the chain of the current run, which has k
/// states. 1 when `k` is 0.
pub fn run_fpr(fills: impl IntoIterator<Item = f64>, k: u32) -> f64 {
    if k == 0 {
        return 1.0;
    }
    let mut chain = RunChain::new(k);
    fills.into_iter().for_each(|fill| chain.step(fill));
    chain.found
}

struct RunChain {
    /// At j: the last j slices matched and no k in a row did so far.
    run: Vec<f64>,
    found: f64,
}

impl RunChain {
    fn new(k: u32) -> RunChain {
        let mut run = vec![0.0; k as usize];
        run[0] = 1.0;
        RunChain { run, found: 0.0 }
    }

    fn step(&mut self, fill: f64) {
        let last = self.run.len() - 1;
        let total: f64 = self.run.iter().sum();
        self.found += self.run[last] * fill;
        for j in (1..=last).rev() {
            self.run[j] = self.run[j - 1] * fill;
        }
        self.run[0] = total * (1.0 - fill);
    }
}

/// Most generations of an age-partitioned filter that is sized by its rate.
const MAX_L: u32 = 1024;

/// The most generations at which an age-partitioned filter meets `fpr`.
///
/// The largest `l` up to 1024 with [`apbf_fpr`] of `k` and `l` at most `fpr`:
/// more generations take less space and have a higher rate. `None` where not
/// even one does, or `k` is none of 1..=256.
pub fn apbf_generations(fpr: f64, k: u32) -> Option<u32> {
    if !(1..=256).contains(&k) {
        return None;
    }
    let mut chain = RunChain::new(k);
    (0..k).for_each(|slice| chain.step(apbf_fill(k, slice)));
    let mut l = 0;
    while l < MAX_L {
        chain.step(apbf_fill(k, k + l));
        if !(chain.found <= fpr) {
            break;
        }
        l += 1;
    }
    (l > 0).then_some(l)
}

/// Slices per key and generations of the smallest age-partitioned filter.
///
/// Least [`apbf_bits_per_key`] over `k` up to 64, each with its
/// [`apbf_generations`]. `None` unless `0 < fpr < 1` and some `k` is enough.
pub fn apbf_size(fpr: f64) -> Option<(u32, u32)> {
    if !is_rate(fpr) {
        return None;
    }
    let mut best: Option<(f64, u32, u32)> = None;
    for k in 1..=64 {
        // A key has k bits in half-full slices, however many generations there are.
        if best.is_some_and(|(bits, ..)| f64::from(k) / LN_2 >= bits) {
            break;
        }
        if let Some(l) = apbf_generations(fpr, k) {
            let bits = apbf_bits_per_key(k, l);
            if best.is_none_or(|(least, ..)| bits < least) {
                best = Some((bits, k, l));
            }
        }
    }
    best.map(|(_, k, l)| (k, l))
}

/// Bits of a slice that is half full when each of `keys` keys has set one.
///
/// `1 / (1 - 2^(-1 / keys))`, about `keys / ln 2`.
pub fn half_full_bits(keys: f64) -> f64 {
    -1.0 / (-LN_2 / keys).exp_m1()
}

/// Bits per window key of an age-partitioned Bloom filter.
///
/// `(k + l) k / (l ln 2)`: k + l slices of `k g / ln 2` bits for a window of
/// l generations of g keys. `NaN` when `l` is 0.
pub fn apbf_bits_per_key(k: u32, l: u32) -> f64 {
    if l == 0 {
        return f64::NAN;
    }
    let (k, l) = (f64::from(k), f64::from(l));
    (k + l) * k / (l * LN_2)
}

/// Slots of a sliding table for this rate: bits of a value, remainders, and the load.
///
/// A value is one of `remainders * stamps`, so `bits` bits hold
/// `floor(2^bits / stamps)` remainders, and an absent key meets its own with
/// probability `load / remainders`. The width is the one with which
/// `(bits + 2.125) / load` is least, where the load is at most `most_load` and
/// no higher than the rate allows; there are 8 remainders at least. `None`
/// unless `0 < fpr < 1`, or above 57 bits.
pub fn sliding_table_size(fpr: f64, stamps: u32, most_load: f64) -> Option<(u32, u64, f64)> {
    if !(fpr > 0.0 && fpr < 1.0) || stamps == 0 {
        return None;
    }
    let remainders = |bits: u32| (1u64 << bits) / u64::from(stamps);
    let sized = |bits: u32| {
        let load = most_load.min(fpr * remainders(bits) as f64);
        (bits, remainders(bits), load)
    };
    let enough = |bits: &u32| remainders(*bits) >= 8 && fpr * remainders(*bits) as f64 >= most_load;
    let (wide, narrow) = (1..=57)
        .find(enough)
        .map(|bits| (sized(bits), sized(bits - 1)))?;
    let cost = |(bits, _, load): (u32, u64, f64)| (f64::from(bits) + 2.125) / load;
    let narrower = narrow.1 >= 8 && cost(narrow) < cost(wide);
    Some(if narrower { narrow } else { wide })
}

/// Bits per window key of a sliding table.
///
/// `(1 + 1 / 2G) (bits + 2.125) / load` with the width and load of
/// [`sliding_table_size`] for G + 1 stamps: a key stays for one to 1 + 1/G
/// windows, evenly spread. `NaN` where there is no such size.
pub fn sliding_table_bits_per_key(fpr: f64, generations: u32, most_load: f64) -> f64 {
    let size = sliding_table_size(fpr, generations.saturating_add(1), most_load);
    size.map_or(f64::NAN, |(bits, _, load)| {
        (1.0 + 0.5 / f64::from(generations)) * (f64::from(bits) + 2.125) / load
    })
}

/// Leading term of the least space of a sliding filter, in bits per window key.
///
/// `log2(1 / fpr) + max(log2(window / slack), log2 log2(1 / fpr))` (Naor,
/// Yogev 2013). `window_over_slack` is how many slacks a window holds.
pub fn sliding_lower_bound(fpr: f64, window_over_slack: f64) -> f64 {
    let bits = lower_bound_bits_per_key(fpr);
    if bits.is_nan() || window_over_slack.is_nan() {
        return f64::NAN;
    }
    bits + window_over_slack.log2().max(bits.log2())
}

/// False-positive rate of a folded Bloom filter with all sides full.
///
/// `1 - (1 - 2^-hashes)^(2 folds + 2)`: every fold keeps both its filters
/// apart, two bits to a bucket, and two more are being filled.
pub fn folded_fpr(hashes: u32, folds: u32) -> f64 {
    any_match(fingerprint_fpr(hashes), 2.0 * f64::from(folds) + 2.0)
}

/// False-positive rate of the fold that merges two half-full filters by OR.
///
/// `1 - (1 - 0.75^hashes)^folds (1 - 2^-hashes)^2`. It keeps one bit per
/// bucket and shows what that costs.
pub fn or_folded_fpr(hashes: u32, folds: u32) -> f64 {
    let h = f64::from(hashes);
    let folded = f64::from(folds) * (-(0.75f64.powf(h))).ln_1p();
    let active = 2.0 * (-(0.5f64.powf(h))).ln_1p();
    if h == 0.0 {
        return 1.0;
    }
    -(folded + active).exp_m1()
}

/// Real bits per key of a folded Bloom filter that meets `fpr` when full.
///
/// `b(1 - (1 - fpr)^(1 / (2 folds + 2)))` with b [`bloom_bits_per_key`]. All
/// bits counted: a folded bucket has two.
pub fn folded_bits_per_key(fpr: f64, folds: u32) -> f64 {
    let sides = folds.saturating_mul(2).saturating_add(2);
    bloom_bits_per_key(share_of_fpr(fpr, sides))
}

/// Whether `bits` can hold `keys` at `fpr` at all.
///
/// `keys log2(1 / fpr) <= bits`. A filter for which this is false has been
/// measured wrongly or does not count all its bits.
pub fn is_possible(keys: u64, fpr: f64, bits: u64) -> bool {
    !is_rate(fpr) || keys as f64 * lower_bound_bits_per_key(fpr) <= bits as f64
}

#[cfg(test)]
mod tests {
    use super::super::prints;
    use super::*;

    const EIGHT: f64 = 1.0 / 256.0;

    #[test]
    fn compressed_sizes_match_the_table() {
        for (fpr, k, memory, wire) in [
            (0.01, 7, "9.593", "9.584"),
            (0.01, 4, "10.52", "9.473"),
            (0.01, 2, "18.98", "8.903"),
            (0.01, 1, "99.5", "8.039"),
            (EIGHT, 1, "255.5", "9.421"),
        ] {
            let (m, z) = compressed_size(fpr, k).unwrap();
            prints(m, memory);
            prints(z, wire);
        }
        prints(compressed_bits_per_key(14.0, 2), "7.923");
        prints(compressed_bits_per_key(92.0, 1), "7.923");
        assert_eq!(compressed_size(0.0, 1), None);
        assert_eq!(compressed_size(0.5, 0), None);
        assert_eq!(binary_entropy(0.5), 1.0);
        assert_eq!(binary_entropy(0.0), 0.0);
        assert!(binary_entropy(1.1).is_nan() && binary_entropy(f64::NAN).is_nan());
    }

    #[test]
    fn compacting_widths_are_the_narrowest_within_the_share() {
        for (share, widths) in [
            // The first slice at 1 %, 0.15 of it: 2^-10 + 2^-11 = 0.146 %.
            (0.0015, Some((11, 10))),
            // And the tenth, of 0.0347 %: 2^-12 + 2^-13 = 0.0366 % would be too much.
            (0.0015 * 0.85f64.powi(9), Some((14, 12))),
            (0.75, Some((2, 1))),
            (1.0, Some((1, 1))),
            (2f64.powi(-8), Some((9, 9))),
            (2f64.powi(-31), Some((32, 32))),
            (2f64.powi(-31) * 0.99, None),
            (0.0, None),
            (f64::NAN, None),
        ] {
            assert_eq!(compacting_widths(share), widths, "{share}");
        }
        prints(100.0 * compacting_run_fpr(1.0, 1024.0, 10), "0.1952");
        assert_eq!(compacting_run_fpr(0.0, 64.0, 3), 0.125);
    }

    #[test]
    fn widening_fingerprints_keep_the_rate() {
        // The schedule of InfiniFilter with F = 8.
        let square = |x: u32| 8.0 + 2.0 * f64::from(x + 1).log2();
        for (expansions, percent) in [(0, "0.391"), (5, "0.487"), (20, "0.508")] {
            prints(100.0 * widening_fpr(1.0, square, expansions), percent);
        }
        let fixed = |_: u32| 10.0;
        for (expansions, percent) in [(0, "0.078"), (10, "0.47"), (20, "0.86")] {
            prints(100.0 * widening_fpr(0.8, fixed, expansions), percent);
        }
        for (fpr, schedule) in [
            (0.5, (2, 1)),
            (0.01, (8, 0)),
            (EIGHT, (9, 1)),
            (0.001, (11, 1)),
            (1e-9, (31, 1)),
            (0.9, (2, 1)),
        ] {
            let found = aleph_first_bits(fpr, 31.0 / 32.0);
            assert_eq!(found, Some(schedule), "{fpr}");
            let rate = widening_fpr(31.0 / 32.0, |x| f64::from(aleph_bits(schedule, x)), 63);
            assert!(rate <= fpr && rate > fpr.min(0.5) / 2.0, "{fpr}: {rate}");
        }
        let bits: Vec<u32> = (0..9).map(|x| aleph_bits((8, 0), x)).collect();
        assert_eq!(bits, [8, 9, 10, 10, 11, 11, 11, 11, 12]);
        for (fpr, load) in [
            (0.0, 1.0),
            (1.0, 1.0),
            (f64::NAN, 1.0),
            (0.5, 0.0),
            (1e-18, 1.0),
        ] {
            assert_eq!(aleph_first_bits(fpr, load), None);
        }
    }

    #[test]
    fn scalable_sizes_match_the_table() {
        let geometric = |ratio| ScalableSchedule::Geometric { ratio };
        let square = ScalableSchedule::InverseSquare;
        for (schedule, slice, bits) in [
            (geometric(0.5), 0, "11.03"),
            (geometric(0.5), 9, "22.58"),
            (geometric(0.85), 0, "13.53"),
            (geometric(0.85), 9, "16.24"),
            (geometric(0.9), 0, "14.38"),
            (geometric(0.9), 9, "16.13"),
            (square, 0, "10.62"),
            (square, 9, "19.70"),
            // Printed 22.87; the formula gives 22.8647.
            (square, 19, "22.86"),
        ] {
            prints(scalable_bits_per_key(schedule, 0.01, 2.0, slice + 1), bits);
        }
        for schedule in [geometric(0.5), geometric(0.85), square] {
            assert!(scalable_fpr(schedule, 0.01, 4096) <= 0.01);
            assert!(scalable_fpr(schedule, 0.01, 4096) > 0.0099);
            assert!(scalable_fpr(schedule, 0.01, 4097).is_nan());
            assert!(scalable_bits_per_key(schedule, 0.01, 2.0, 0).is_nan());
            assert!(scalable_bits_per_key(schedule, 0.01, 0.0, 3).is_nan());
        }
        // So small a ratio that a later slice is left with no error at all.
        assert!(scalable_bits_per_key(geometric(1e-200), 0.01, 2.0, 3).is_nan());
        assert!(scalable_slice_fpr(geometric(1.0), 0.01, 0).is_nan());
    }

    #[test]
    fn sliding_sizes_match_the_table() {
        for (generations, bits) in [(1, "22.05"), (2, "17.80"), (4, "16.16"), (8, "15.92")] {
            prints(generations_bits_per_key(0.01, generations), bits);
        }
        for (k, l, percent, bits) in [
            (7, 5, "1.28", "24.2"),
            (8, 8, "1.11", "23.1"),
            (9, 14, "1.07", "21.3"),
            (10, 7, "0.147", "35.0"),
            (12, 14, "0.105", "32.2"),
            (15, 74, "0.101", "26.0"),
        ] {
            prints(100.0 * apbf_fpr(k, l), percent);
            prints(apbf_bits_per_key(k, l), bits);
        }
        for (fpr, k, l, bits) in [
            (0.5, 2, 2, "5.77"),
            (0.1, 6, 13, "12.65"),
            (0.01, 12, 87, "19.70"),
            (EIGHT, 13, 70, "22.24"),
            (0.001, 16, 139, "25.74"),
            (1e-6, 28, 555, "42.43"),
        ] {
            assert_eq!(apbf_size(fpr), Some((k, l)), "{fpr}");
            prints(apbf_bits_per_key(k, l), bits);
            assert!(apbf_fpr(k, l) <= fpr && apbf_fpr(k, l + 1) > fpr);
            let others = (1..=64).filter_map(|k| Some((k, apbf_generations(fpr, k)?)));
            let least = others
                .map(|(k, l)| apbf_bits_per_key(k, l))
                .fold(f64::MAX, f64::min);
            assert_eq!(least, apbf_bits_per_key(k, l));
        }
        assert_eq!(apbf_generations(0.011, 9), Some(14));
        for fpr in [0.0, 1.0, f64::NAN] {
            assert_eq!(apbf_size(fpr), None);
        }
        prints(half_full_bits(1.0), "2.0");
        prints(half_full_bits(1000.0), "1443.2");
        prints(run_fpr([0.5, 0.5, 0.5], 2), "0.375");
        for (generations, bits, remainders, load, per_key) in [
            (1, 8, 128, 0.93, "16.33"),
            (2, 8, 85, 0.85, "14.89"),
            (4, 9, 102, 0.93, "13.46"),
            (8, 10, 113, 0.93, "13.85"),
            (15, 11, 128, 0.93, "14.58"),
        ] {
            let size = sliding_table_size(0.01, generations + 1, 0.93);
            assert_eq!(size, Some((bits, remainders, load)), "{generations}");
            prints(sliding_table_bits_per_key(0.01, generations, 0.93), per_key);
        }
        // A slightly lower load costs less than another bit for each slot.
        assert_eq!(
            sliding_table_size(0.009, 5, 0.93),
            Some((9, 102, 0.009 * 102.0))
        );
        for fpr in [0.9, 0.5, 0.1] {
            let (bits, remainders, load) = sliding_table_size(fpr, 5, 0.93).unwrap();
            assert!(bits >= 6 && remainders >= 8 && load <= 0.93);
            assert!(load / remainders as f64 <= fpr);
        }
        assert_eq!(sliding_table_size(1e-17, 5, 0.93), None);
        assert_eq!(sliding_table_size(0.0, 5, 0.93), None);
        assert_eq!(sliding_table_size(0.01, 0, 0.93), None);
        prints(sliding_lower_bound(0.01, 4.0), "9.38");
        prints(sliding_lower_bound(EIGHT, 8.0), "11");
        assert!(generations_bits_per_key(0.01, 0).is_infinite());
        assert!(apbf_fpr(0, 3).is_nan() && apbf_bits_per_key(3, 0).is_nan());
    }

    #[test]
    fn filters_that_share_their_places_are_counted_exactly() {
        // Every key of two places against fields of three filters.
        let fields = [0b011u64, 0b110, 0b111, 0b000, 0b100, 0b011];
        let mut counts = [0; 8];
        fields.iter().for_each(|&v| counts[v as usize] += 1);
        let pairs = fields
            .iter()
            .flat_map(|a| fields.iter().map(move |b| a & b));
        let found = pairs.filter(|&both| both != 0).count() as f64 / 36.0;
        assert!((shared_places_fpr(&mut counts, 2) - found).abs() < 1e-12);
        assert_eq!(shared_places_fpr(&mut [0, 0, 0, 7], 9), 1.0);
        assert_eq!(shared_places_fpr(&mut [7, 0, 0, 0], 9), 0.0);
        assert_eq!(shared_places_fpr(&mut [0, 0], 1), 0.0);
    }

    #[test]
    fn folded_figures_match_the_table() {
        prints(100.0 * folded_fpr(7, 3), "6.08");
        // Printed 35.9.
        prints(100.0 * or_folded_fpr(7, 3), "35.95");
        prints(folded_bits_per_key(0.01, 3), "13.90");
        prints(7.0 / LN_2, "10.10");
        assert_eq!(or_folded_fpr(0, 3), 1.0);
    }

    #[test]
    fn nothing_beats_the_information_bound() {
        assert!(is_possible(1000, 0.5, 1000) && !is_possible(1001, 0.5, 1000));
        assert!(is_possible(u64::MAX, 1.0, 0));
    }
}
