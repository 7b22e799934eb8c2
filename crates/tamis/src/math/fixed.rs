//! Static filters: built once from all keys, their rate is `2^-bits`.

/// False-positive rate of a filter that compares one fingerprint.
///
/// `2^-bits`, at any load: the rate of xor, fuse, ribbon and retrieval filters.
///
/// ```
/// use tamis::math::fingerprint_fpr;
///
/// assert_eq!(fingerprint_fpr(8), 1.0 / 256.0);
/// ```
pub fn fingerprint_fpr(bits: u32) -> f64 {
    2f64.powi(-(bits.min(1100) as i32))
}

/// Slots of an xor filter for `keys` keys.
///
/// `3 floor((32 + 1.23 keys) / 3)`: three blocks of equal length (Graf, Lemire
/// 2020). Saturates at `u64::MAX`.
pub fn xor_slots(keys: u64) -> u64 {
    (((32.0 + 1.23 * keys as f64) / 3.0).floor() as u64).saturating_mul(3)
}

/// Bits per key of a large xor filter.
///
/// `1.23 * fingerprint_bits`; small sets pay 32 slots more ([`xor_slots`]).
pub fn xor_bits_per_key(fingerprint_bits: u32) -> f64 {
    1.23 * f64::from(fingerprint_bits)
}

/// Bits per key of a large xor+ filter.
///
/// `1.0824 * fingerprint_bits + 0.5125` (Graf, Lemire 2020): two blocks stay
/// whole, the third keeps the 64 % of its slots that are in use and marks them
/// in a bitmap with a quarter more for its rank directory.
pub fn xor_plus_bits_per_key(fingerprint_bits: u32) -> f64 {
    let block = 1.23 / 3.0;
    (2.0 + 0.64) * block * f64::from(fingerprint_bits) + 1.25 * block
}

/// Longest segment of a binary fuse filter: position fields have 18 bits.
pub const BINARY_FUSE_MAX_SEGMENT: u64 = 1 << 18;

/// Most keys that a geometry is given for.
const BINARY_FUSE_MAX_KEYS: u64 = 1 << 60;

/// Slots per key of a binary fuse filter as published.
///
/// `max(1.125, 0.875 + 0.25 ln 10^6 / ln keys)` for arity 3 and
/// `max(1.075, 0.77 + 0.305 ln(6 * 10^5) / ln keys)` for arity 4 (Graf, Lemire
/// 2022). `NaN` for other arities; fewer than two keys count as two.
pub fn binary_fuse_published_factor(keys: u64, arity: u32) -> f64 {
    let ln = (keys.max(2) as f64).ln();
    match arity {
        3 => (0.875 + 0.25 * 1e6f64.ln() / ln).max(1.125),
        4 => (0.77 + 0.305 * 6e5f64.ln() / ln).max(1.075),
        _ => f64::NAN,
    }
}

/// Slots per key of a binary fuse filter in native files.
///
/// The published factor up to five million keys. Beyond, arity 3 peels with
/// less room: 1.12, from ten million 1.11, from twenty million 1.105 (Vigna
/// 2025). Arity 4 stays as published.
pub fn binary_fuse_factor(keys: u64, arity: u32) -> f64 {
    match (arity, keys) {
        (3, 20_000_001..) => 1.105,
        (3, 10_000_001..) => 1.11,
        (3, 5_000_001..) => 1.12,
        _ => binary_fuse_published_factor(keys, arity),
    }
}

/// Published segment length, before any rule of ours.
fn binary_fuse_segment(keys: u64, arity: u32) -> Option<u64> {
    let ln = (keys.max(2) as f64).ln();
    // Rounding down, not to nearest: the success rate depends on it.
    let log = match arity {
        3 => (ln / 3.33f64.ln() + 2.25).floor(),
        4 => (ln / 2.91f64.ln() - 0.5).floor(),
        _ => return None,
    };
    Some((1u64 << (log.max(0.0) as u32).min(62)).min(BINARY_FUSE_MAX_SEGMENT))
}

fn fuse_capacity(keys: u64, factor: f64) -> u64 {
    (keys.max(2) as f64 * factor).round() as u64
}

/// Segments in which a first position may fall; `arity - 1` more follow.
fn fuse_segments(capacity: u64, segment: u64, arity: u32) -> u64 {
    capacity
        .div_ceil(segment)
        .saturating_sub(u64::from(arity) - 1)
        .max(1)
}

/// Segment length and count of a binary fuse filter as published.
///
/// `L = 2^floor(ln n / ln 3.33 + 2.25)` (arity 3) or
/// `2^floor(ln n / ln 2.91 - 0.5)` (arity 4), at most 2^18; capacity
/// `round(n * factor)`; count `max(1, ceil(capacity / L) - (arity - 1))`
/// (Graf, Lemire 2022). For reading and writing files of other programs: at
/// some sizes construction with it almost never succeeds.
///
/// `None` for no keys, more than 2^60, or an arity other than 3 and 4.
pub fn binary_fuse_published_geometry(keys: u64, arity: u32) -> Option<(u64, u64)> {
    if !(1..=BINARY_FUSE_MAX_KEYS).contains(&keys) {
        return None;
    }
    let segment = binary_fuse_segment(keys, arity)?;
    let capacity = fuse_capacity(keys, binary_fuse_published_factor(keys, arity));
    Some((segment, fuse_segments(capacity, segment, arity)))
}

/// Segment length and count of a binary fuse filter in native files.
///
/// As [`binary_fuse_published_geometry`] with three differences. The factor is
/// [`binary_fuse_factor`]. For arity 3, if `keys > 1200` and
/// `ceil(capacity / L) < 45`, segments are half as long at the same capacity:
/// so few segments leave no slack just after L has doubled, and construction
/// would nearly always fail at sizes such as 11 520. And for arity 4, if
/// `L <= 16`, which is up to 355 keys, segments are twice as long: in short
/// ones keys have too few slots to choose from, and at some sizes every other
/// construction would fail.
pub fn binary_fuse_geometry(keys: u64, arity: u32) -> Option<(u64, u64)> {
    if !(1..=BINARY_FUSE_MAX_KEYS).contains(&keys) {
        return None;
    }
    let mut segment = binary_fuse_segment(keys, arity)?;
    let capacity = fuse_capacity(keys, binary_fuse_factor(keys, arity));
    if arity == 3 && keys > 1200 && capacity.div_ceil(segment) < 45 {
        segment /= 2;
    }
    if arity == 4 && segment <= 16 {
        segment *= 2;
    }
    Some((segment, fuse_segments(capacity, segment, arity)))
}

/// Slots of a binary fuse filter with the given geometry.
///
/// `(segment_count + arity - 1) * segment_length`, saturating.
pub fn binary_fuse_slots(segment_length: u64, segment_count: u64, arity: u32) -> u64 {
    segment_count
        .saturating_add(u64::from(arity.max(1)) - 1)
        .saturating_mul(segment_length)
}

/// Slots per key of a standard ribbon filter that succeeds 19 times in 20.
///
/// `1.0358 + 0.0038 log2(keys / 2^17)` at width 128 and
/// `1.094 + 0.0083 log2(keys / 2^17)` at width 64, at least 1 (fitted to the
/// table in RocksDB; Dillinger, Walzer 2021). `NaN` for other widths.
pub fn ribbon_factor(keys: u64, width: u32) -> f64 {
    let doublings = (keys.max(1) as f64).log2() - 17.0;
    let factor = match width {
        128 => 1.0358 + 0.0038 * doublings,
        64 => 1.094 + 0.0083 * doublings,
        _ => return f64::NAN,
    };
    factor.max(1.0)
}

/// Slots of a standard ribbon filter for `keys` keys, after `failures` rounds that failed.
///
/// [`ribbon_factor`] slots a key and 12 more, which a table of few keys needs; 2 % and 12 more
/// for each failure. `0` for widths without a factor.
pub fn ribbon_slots(keys: u64, width: u32, failures: u32) -> u64 {
    let failures = f64::from(failures);
    let factor = ribbon_factor(keys, width) + 0.02 * failures;
    (factor * keys as f64 + 12.0 * (1.0 + failures)).ceil() as u64
}

/// Slots per key of a homogeneous ribbon filter.
///
/// `1 + (4 + fingerprint_bits / 4) / width` (Dillinger, Huebschle-Schneider,
/// Sanders, Walzer 2021).
pub fn homogeneous_ribbon_factor(fingerprint_bits: u32, width: u32) -> f64 {
    1.0 + (4.0 + f64::from(fingerprint_bits) / 4.0) / f64::from(width)
}

/// Slots of a homogeneous ribbon filter for `keys` keys.
///
/// [`homogeneous_ribbon_factor`] slots a key, and `fingerprint_bits + 8` more, which a table of
/// few keys needs: with d slots more than keys, a random row is one that the keys' imply with
/// probability `2^-d`.
pub fn homogeneous_ribbon_slots(keys: u64, fingerprint_bits: u32, width: u32) -> u64 {
    let factor = homogeneous_ribbon_factor(fingerprint_bits, width);
    (factor * keys as f64).ceil() as u64 + u64::from(fingerprint_bits) + 8
}

/// The rate of a homogeneous ribbon over that of its columns.
///
/// Where no slot is free every key is found, whatever the columns (measured).
pub fn homogeneous_ribbon_excess(width: u32) -> f64 {
    if width == 64 { 1.085 } else { 1.005 }
}

/// Columns of the smallest ribbon filter of a rate, and the share of its slots that lack the last
/// one.
///
/// `r = ceil(log2(1 / fpr))` and `p = fpr 2^r - 1`: the rate of the mixture, [`ribbon_fpr`], is
/// then `fpr` itself. `None` unless `0 < fpr < 1`.
pub fn ribbon_columns(fpr: f64) -> Option<(u32, f64)> {
    if !(fpr > 0.0 && fpr < 1.0) {
        return None;
    }
    let columns = (-fpr.log2()).ceil().max(1.0);
    // Rounding may leave the share a hair outside.
    let short = (fpr * columns.exp2() - 1.0).clamp(0.0, 1.0);
    Some((columns as u32, short))
}

/// False-positive rate of a ribbon in which a share of the slots lacks the last column.
///
/// `(1 + short) 2^-columns`.
pub fn ribbon_fpr(columns: u32, short: f64) -> f64 {
    (1.0 + short) * fingerprint_fpr(columns)
}

/// Slots per bucket of a bumped ribbon filter of the given width.
///
/// `2^floor(log2(width^2 / (4 ceil(log2 width))))` (Dillinger,
/// Huebschle-Schneider, Sanders, Walzer 2022). `None` unless
/// `8 <= width <= 1024`.
pub fn bumped_ribbon_bucket(width: u32) -> Option<u32> {
    if !(8..=1024).contains(&width) {
        return None;
    }
    let log = width.next_power_of_two().trailing_zeros();
    Some(1 << (width * width / (4 * log)).ilog2())
}

/// Bits per key of a Golomb-Rice coded set.
///
/// `P + 1 + 1 / (e^(2^P / M) - 1)` for Rice parameter P and hash range
/// `M` times the keys; the rate is `1 / M` (Putze, Sanders, Singler 2007).
/// `NaN` unless `inverse_fpr >= 1`.
pub fn golomb_bits_per_key(rice_bits: u32, inverse_fpr: f64) -> f64 {
    if inverse_fpr.is_nan() || inverse_fpr < 1.0 {
        return f64::NAN;
    }
    let step = 2f64.powi(rice_bits.min(1023) as i32);
    f64::from(rice_bits) + 1.0 + 1.0 / (step / inverse_fpr).exp_m1()
}

/// Rice parameter that codes a Golomb set in the fewest bits.
///
/// The P of least [`golomb_bits_per_key`], the smaller of two equals. `None`
/// unless `1 <= inverse_fpr <= 2^63`.
pub fn golomb_rice_bits(inverse_fpr: f64) -> Option<u32> {
    if !(1.0..=2f64.powi(63)).contains(&inverse_fpr) {
        return None;
    }
    let size = |p: &u32| golomb_bits_per_key(*p, inverse_fpr);
    (0..64).min_by(|a, b| size(a).total_cmp(&size(b)))
}

#[cfg(test)]
mod tests {
    use super::super::{lower_bound_bits_per_key, prints};
    use super::*;

    #[test]
    fn xor_sizes_match_the_table() {
        prints(xor_bits_per_key(8), "9.84");
        prints(xor_bits_per_key(16), "19.68");
        prints(8.0 * xor_slots(1_000_000) as f64 / 1e6, "9.84");
        prints(xor_plus_bits_per_key(8), "9.17");
        prints(xor_plus_bits_per_key(16), "17.83");
        prints(xor_plus_bits_per_key(1000), "1082.9125");
        assert_eq!(xor_slots(0), 30);
        assert_eq!(xor_slots(100), 153);
        assert_eq!(xor_slots(u64::MAX), u64::MAX / 3 * 3);
        prints(100.0 * fingerprint_fpr(8), "0.390625");
        assert_eq!(fingerprint_fpr(0), 1.0);
        assert_eq!(fingerprint_fpr(u32::MAX), 0.0);
    }

    fn bits(keys: u64, arity: u32, geometry: Option<(u64, u64)>) -> f64 {
        let (length, count) = geometry.unwrap();
        8.0 * binary_fuse_slots(length, count, arity) as f64 / keys as f64
    }

    #[test]
    fn published_fuse_sizes_match_the_table() {
        for (keys, three, four) in [
            (100, "15.36", "13.44"),
            (1_000, "11.26", "11.01"),
            (10_000, "10.24", "9.83"),
            (100_000, "9.50", "9.01"),
            (1_000_000, "9.044", "8.618"),
            (10_000_000, "9.018", "8.611"),
            (100_000_000, "9.007", "8.604"),
        ] {
            prints(
                bits(keys, 3, binary_fuse_published_geometry(keys, 3)),
                three,
            );
            prints(bits(keys, 4, binary_fuse_published_geometry(keys, 4)), four);
        }
    }

    #[test]
    fn native_fuse_geometry_differs_where_it_must() {
        // Few segments: half as long, no more space.
        for keys in [3548, 11_520, 12_340, 13_224, 37_440, 126_112] {
            let published = binary_fuse_published_geometry(keys, 3).unwrap();
            let native = binary_fuse_geometry(keys, 3).unwrap();
            assert_eq!(native.0 * 2, published.0, "{keys}");
            let more = bits(keys, 3, Some(native)) - bits(keys, 3, Some(published));
            assert!(more <= 1e-9, "{keys}: {more}");
        }
        // Small, and many segments: as published.
        for keys in [1, 2, 10, 500, 1000, 1200, 1_000_000, 5_000_000] {
            assert_eq!(
                binary_fuse_geometry(keys, 3),
                binary_fuse_published_geometry(keys, 3),
                "{keys}"
            );
        }
        for keys in [1, 2, 10, 100, 355] {
            let published = binary_fuse_published_geometry(keys, 4).unwrap();
            let native = binary_fuse_geometry(keys, 4).unwrap();
            assert_eq!(native.0, 2 * published.0, "{keys}");
            let slots = |(length, count)| binary_fuse_slots(length, count, 4);
            // Whole segments at either length: one of the shorter ones more, or a few where few
            // hold all.
            assert!(slots(native) <= slots(published) + published.0, "{keys}");
        }
        for keys in [356, 1000, 11_520, 1_000_000, 100_000_000] {
            assert_eq!(
                binary_fuse_geometry(keys, 4),
                binary_fuse_published_geometry(keys, 4)
            );
        }
        // Large: tighter than the published 1.125, to within one segment.
        for (keys, factor) in [
            (5_000_001, 1.12),
            (10_000_000, 1.12),
            (10_000_001, 1.11),
            (20_000_000, 1.11),
            (20_000_001, 1.105),
            (1_000_000_000, 1.105),
        ] {
            assert_eq!(binary_fuse_factor(keys, 3), factor);
            let (length, count) = binary_fuse_geometry(keys, 3).unwrap();
            let slots = binary_fuse_slots(length, count, 3) as f64;
            let over = slots - factor * keys as f64;
            assert!(over >= -1.0 && over <= length as f64, "{keys}: {over}");
        }
        // Eight shards of 1.25e7 keys and the largest a thousandth above.
        assert!(8.0 * binary_fuse_factor(12_500_000, 3) * 1.001 <= 8.90);
    }

    #[test]
    fn fuse_geometry_is_sound_for_any_number_of_keys() {
        let mut keys = 1u64;
        while keys < 1 << 60 {
            for arity in [3, 4] {
                for geometry in [binary_fuse_geometry, binary_fuse_published_geometry] {
                    let (length, count) = geometry(keys, arity).unwrap();
                    assert!(length.is_power_of_two() && length <= BINARY_FUSE_MAX_SEGMENT);
                    assert!(binary_fuse_slots(length, count, arity) >= keys);
                }
            }
            keys += keys / 7 + 1;
        }
        for (keys, arity) in [(0, 3), (u64::MAX, 3), (100, 2), (100, 5)] {
            assert_eq!(binary_fuse_geometry(keys, arity), None);
            assert_eq!(binary_fuse_published_geometry(keys, arity), None);
        }
    }

    #[test]
    fn ribbon_sizes_match_the_table() {
        prints(ribbon_factor(1 << 17, 128), "1.0358");
        prints(ribbon_factor(1_000_000, 128), "1.047");
        prints(ribbon_factor(10_000_000, 128), "1.060");
        prints(ribbon_factor(1 << 17, 64), "1.094");
        assert!(8.0 * ribbon_factor(1_000_000, 128) <= 8.40);
        assert!(ribbon_factor(0, 64) >= 1.0 && ribbon_factor(1, 32).is_nan());
        for (width, size) in [(32, "9.50"), (64, "8.75"), (128, "8.375")] {
            prints(8.0 * homogeneous_ribbon_factor(8, width), size);
        }
        for (width, slots) in [(32, 32), (64, 128), (128, 512)] {
            assert_eq!(bumped_ribbon_bucket(width), Some(slots));
        }
        assert_eq!(bumped_ribbon_bucket(0), None);
        assert_eq!(ribbon_columns(1.0 / 256.0), Some((8, 0.0)));
        for fpr in [0.9, 0.75, 0.5, 0.3, 0.01, 1e-9] {
            let (columns, short) = ribbon_columns(fpr).unwrap();
            assert!((ribbon_fpr(columns, short) / fpr - 1.0).abs() < 1e-12);
            // At most 1.5 % of a bit more than the lower bound, from 1 % on.
            let bits = f64::from(columns) - short;
            let least = lower_bound_bits_per_key(fpr);
            assert!(bits >= least && bits < least + 0.0861, "{fpr}: {bits}");
        }
        for fpr in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(ribbon_columns(fpr), None);
        }
        assert_eq!(bumped_ribbon_bucket(u32::MAX), None);
    }

    #[test]
    fn golomb_sizes_match_the_table() {
        prints(golomb_bits_per_key(8, 256.0), "9.58");
        prints(golomb_bits_per_key(8, 256.0) - 8.0, "1.582");
        // Printed 8.116; the formula gives 8.11547.
        prints(golomb_bits_per_key(6, 100.0), "8.115");
        prints(golomb_bits_per_key(19, 784_931.0), "21.052");
        let best = 1.497 * 256.0;
        prints(
            golomb_bits_per_key(8, best) - lower_bound_bits_per_key(1.0 / best),
            "1.47",
        );
        assert_eq!(golomb_rice_bits(100.0), Some(6));
        assert_eq!(golomb_rice_bits(784_931.0), Some(19));
        assert_eq!(golomb_rice_bits(f64::NAN), None);
        assert!(golomb_bits_per_key(8, 0.0).is_nan());
        assert!(golomb_bits_per_key(u32::MAX, 2.0).is_finite());
    }
}
