//! Filters that count in order to delete, and tables that can be listed.

use super::bloom::least_count;
use super::probability::{poisson_pmf, poisson_tail};
use super::{
    any_match, fingerprint_fpr, is_rate, least_size, least_size_over, lower_bound_bits_per_key,
};

/// Chance that one cell of a counting Bloom filter passes its greatest value.
///
/// `P[Poisson(mean) >= 2^counter_bits]` with `mean = k keys / cells`, which is
/// ln 2 at half fill (Fan, Cao, Almeida, Broder 2000). For distinct keys: one
/// key inserted often enough saturates its cells at any width.
///
/// ```
/// use tamis::math::counting_overflow;
///
/// // Four bits are enough for a filter that is half full.
/// assert!(counting_overflow(0.69, 4) < 1e-16);
/// ```
pub fn counting_overflow(mean: f64, counter_bits: u32) -> f64 {
    match 1u64.checked_shl(counter_bits) {
        Some(limit) => poisson_tail(limit, mean),
        None => 0.0,
    }
}

/// False-positive rate of a variable-increment counting Bloom filter.
///
/// Increments are uniform on `L..2L`, `L = increments`. A probe errs with
/// `q = 1 - P0 - P1 (L - 1) / L - P2 (L^2 - 1) / (6 L^2)`,
/// `Pj = Poisson(j; k / cells_per_key)`: one or two summands can be told from
/// the increment asked for, three never. The rate is `q^k` (Rottenstreich,
/// Kanizo, Keslassy 2012). `NaN` unless `cells_per_key > 0`; 1 when `k` or
/// `increments` is 0.
pub fn vi_counting_fpr(cells_per_key: f64, k: u32, increments: u32) -> f64 {
    if cells_per_key.is_nan() || cells_per_key <= 0.0 {
        return f64::NAN;
    }
    if k == 0 || increments == 0 {
        return 1.0;
    }
    let (k, l) = (f64::from(k), f64::from(increments));
    let mean = k / cells_per_key;
    let (one, two) = ((l - 1.0) / l, (l * l - 1.0) / (6.0 * l * l));
    // Added up from what is accepted, since 1 - P0 - ... cancels at low fill.
    let (p1, p2) = (mean * (-mean).exp(), mean * mean / 2.0 * (-mean).exp());
    let accepted = if mean.is_finite() {
        p1 * (1.0 - one) + p2 * (1.0 - two) + poisson_tail(3, mean)
    } else {
        1.0
    };
    accepted.min(1.0).powf(k)
}

/// Cells per key and probes of the smallest variable-increment filter.
///
/// Least over k = 1..=32 of the size at which [`vi_counting_fpr`] is `fpr`.
/// `None` unless `0 < fpr < 1` and `increments > 0`.
pub fn vi_counting_size(fpr: f64, increments: u32) -> Option<(f64, u32)> {
    if !is_rate(fpr) || increments == 0 {
        return None;
    }
    // A cell of 64 bits cannot beat the lower bound, so this is below any answer.
    let floor = lower_bound_bits_per_key(fpr) / 64.0;
    least_size_over(1..=super::MAX_K, floor, fpr, |cells, k| {
        vi_counting_fpr(cells, k, increments)
    })
}

/// False-positive rate to expect of a variable-increment filter of this size.
///
/// As [`vi_counting_fpr`], but a cell has `Binomial(k keys, 1 / cells)`
/// summands, and the rate is the mean over filters of `q^k`, where `q` varies
/// from one to the next: `E[q]^k exp(k (k - 1) / 2 Var[q] / E[q]^2)`, to second
/// order. `Var[q] = (Var[a] - Cov[a, X]^2 / mean) / cells`, `a` the share of
/// increments that a cell accepts and X its summands: cells share a fixed
/// number of summands, so they vary less than independent ones. It matters
/// below some thousand cells. `NaN` without cells; 1 when `k` or `increments`
/// is 0.
pub fn vi_counting_fpr_of(cells: u64, keys: u64, k: u32, increments: u32) -> f64 {
    if cells == 0 {
        return f64::NAN;
    }
    if k == 0 || increments == 0 {
        return 1.0;
    }
    if keys == 0 {
        return 0.0;
    }
    let (m, k, l) = (cells as f64, f64::from(k), f64::from(increments));
    let summands = keys as f64 * k;
    let mean = summands / m;
    // A single cell has them all.
    let ln_other = (-1.0 / m).ln_1p().max(-700.0);
    let p0 = (summands * ln_other).exp();
    let p1 = mean * ((summands - 1.0) * ln_other).exp();
    let p2 = mean * (summands - 1.0) / m / 2.0 * ((summands - 2.0).max(0.0) * ln_other).exp();
    let more = (1.0 - p0 - p1 - p2).max(0.0);
    // Of two summands L + a and L + b, min(a + b + 1, L) of the L increments are
    // accepted: the mean, and the mean of the squares.
    let l2 = l * l;
    let two = 1.0 - (l2 - 1.0) / (6.0 * l2);
    // Below L, a + b + 1 is s in s of the L^2 ways, and the s^3 add up to
    // (L (L - 1) / 2)^2.
    let two_squared = (l - 1.0).powi(2) / (4.0 * l2) + (l + 1.0) / (2.0 * l);
    let accepted = p1 / l + p2 * two + more;
    let variance = p1 / l2 + p2 * two_squared + more - accepted * accepted;
    let covariance = p1 / l + 2.0 * p2 * two + (mean - p1 - 2.0 * p2) - mean * accepted;
    let spread = ((variance - covariance * covariance / mean) / m).max(0.0);
    let excess = k * (k - 1.0) / 2.0 * spread / (accepted * accepted);
    (accepted.powf(k) * excess.exp()).min(1.0)
}

/// Cells of the smallest variable-increment filter for `keys` at rate `fpr`
/// with `k` probes.
///
/// The size at which [`vi_counting_fpr`] is `fpr`, and as many cells more as
/// [`vi_counting_fpr_of`] needs to be at most that. `None` unless
/// `0 < fpr < 1`, `k` and `increments` are not 0, and there are at most 2^57
/// cells.
pub fn vi_counting_cells(keys: u64, fpr: f64, k: u32, increments: u32) -> Option<u64> {
    if !is_rate(fpr) || k == 0 || increments == 0 {
        return None;
    }
    let floor = lower_bound_bits_per_key(fpr) / 64.0;
    let cells_per_key = least_size(floor, fpr, |cells| vi_counting_fpr(cells, k, increments))?;
    let cells = (keys as f64 * cells_per_key).ceil();
    if !(cells <= 2f64.powi(57)) {
        return None;
    }
    let enough = |cells| cells > 1 << 57 || vi_counting_fpr_of(cells, keys, k, increments) <= fpr;
    least_count((cells as u64).max(1), enough).filter(|&cells| cells <= 1 << 57)
}

/// Chance that a cell of a variable-increment filter passes its greatest value.
///
/// `P[S > 2^counter_bits - 1]`, S the sum of `Poisson(mean)` increments uniform
/// on `L..2L`. Exact, by adding one increment at a time. `NaN` unless
/// `0 <= mean <= 256`, `counter_bits <= 12` and `1 <= increments <= 2^12`.
pub fn vi_counting_overflow(mean: f64, counter_bits: u32, increments: u32) -> f64 {
    if !(0.0..=256.0).contains(&mean) || counter_bits > 12 || !(1..=1 << 12).contains(&increments) {
        return f64::NAN;
    }
    let greatest = (1usize << counter_bits) - 1;
    let l = increments as usize;
    // fits[s]: the increments so far sum to s <= greatest.
    let mut fits = vec![0.0; greatest + 1];
    fits[0] = 1.0;
    let mut overflow = 0.0;
    let mut passed = 0.0;
    for count in 1..=greatest as u64 / u64::from(increments) {
        let mut next = vec![0.0; greatest + 1];
        let mut window = 0.0;
        // next[s] is the mean of fits over s - (2L - 1) ..= s - L.
        for s in l..=greatest {
            window += fits[s - l];
            if s >= 2 * l {
                window -= fits[s - 2 * l];
            }
            next[s] = (window / l as f64).max(0.0);
        }
        // What leaves the range now: every s whose increment takes it past.
        for (s, share) in fits.iter().enumerate() {
            let room = greatest - s;
            let too_big = (2 * l - 1).saturating_sub(room.max(l - 1));
            passed += share * too_big as f64 / l as f64;
        }
        let weight = poisson_pmf(count, mean);
        overflow += weight * passed;
        if count as f64 > mean && weight <= 1e-18 * overflow {
            return overflow.min(1.0);
        }
        fits = next;
    }
    // More increments than that overflow whatever their values.
    let certain = greatest as u64 / u64::from(increments) + 1;
    (overflow + poisson_tail(certain, mean)).min(1.0)
}

/// False-positive rate of a d-left counting Bloom filter.
///
/// `1 - (1 - 2^-r)^(tables * load)`: an absent key is compared with all the
/// remainders of one bucket in each table, `load` in the mean (Bonomi,
/// Mitzenmacher, Panigrahy, Singh, Varghese 2006). Usual: 4 tables, load 6.
pub fn dleft_fpr(remainder_bits: u32, tables: u32, load: f64) -> f64 {
    if load.is_nan() || load < 0.0 {
        return f64::NAN;
    }
    any_match(fingerprint_fpr(remainder_bits), f64::from(tables) * load)
}

/// Bits per key of a d-left counting Bloom filter.
///
/// `(remainder_bits + counter_bits) * cells / load` with buckets of `cells`
/// cells, `load` of them used. Usual: 2-bit counters, 8 cells, load 6.
/// The remainder is real-valued so that a size can be drawn for any rate.
pub fn dleft_bits_per_key(remainder_bits: f64, counter_bits: u32, cells: u32, load: f64) -> f64 {
    (remainder_bits + f64::from(counter_bits)) * f64::from(cells) / load
}

/// Cells per listed key at which an invertible Bloom lookup table decodes.
///
/// `1 / min over 0 < x < 1 of -ln(1 - x) / (k x^(k-1))`: below it, peeling a
/// random k-uniform hypergraph stops at a core (Molloy 2005; Goodrich,
/// Mitzenmacher 2011). The limit for many keys; few keys need more. `NaN`
/// unless `3 <= k <= 64`.
pub fn iblt_cells_per_key(k: u32) -> f64 {
    if !(3..=64).contains(&k) {
        return f64::NAN;
    }
    let k = f64::from(k);
    let keys_per_cell = |x: f64| -(-x).ln_1p() / (k * x.powf(k - 1.0));
    // The curve falls, then rises: shrink around its one minimum.
    let (mut low, mut high) = (1e-6, 1.0 - 1e-15);
    for _ in 0..200 {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if keys_per_cell(left) < keys_per_cell(right) {
            high = right;
        } else {
            low = left;
        }
    }
    1.0 / keys_per_cell(low)
}

/// Cells and hash functions of an invertible Bloom lookup table from which
/// `keys` keys are listed with a probability of 99.9 %.
///
/// Simulated: 4.0 cells a key up to 10 keys and 48 at least, 2.5 for 30 and
/// 1.8 for 100 keys with k = 5; 1.51 for 300 and 1.4 from 1000 keys on with
/// k = 4; between these in proportion to the logarithm of the keys. Few keys
/// need more than `iblt_cells_per_key`, since two that share all their cells
/// cannot be told apart. `u64::MAX` cells where more would be needed.
///
/// ```
/// use tamis::math::iblt_size;
///
/// // To list up to a hundred differences.
/// assert_eq!(iblt_size(100), (180, 5));
/// ```
pub fn iblt_size(keys: u64) -> (u64, u32) {
    const TABLE: [(f64, f64); 5] = [
        (10.0, 4.0),
        (30.0, 2.5),
        (100.0, 1.8),
        (300.0, 1.51),
        (1000.0, 1.4),
    ];
    let n = keys as f64;
    let mut factor = TABLE[0].1;
    for pair in TABLE.windows(2) {
        let ((from, more), (to, fewer)) = (pair[0], pair[1]);
        if n > from {
            let share = (n / from).ln() / (to / from).ln();
            factor = more + (fewer - more) * share.min(1.0);
        }
    }
    let k = if keys <= 100 { 5u32 } else { 4 };
    let cells = (n * factor).ceil().max(48.0) as u64;
    let cells = cells.checked_next_multiple_of(u64::from(k));
    (cells.unwrap_or(u64::MAX), k)
}

/// Greatest load that a fixed bucket must be built for.
///
/// Least `c` with `P[Poisson(mean) > c] <= overflow`. `None` unless
/// `0 <= mean <= 10^15` and `0 < overflow < 1`.
pub fn bucket_capacity(mean: f64, overflow: f64) -> Option<u64> {
    if !(0.0..=1e15).contains(&mean) || !is_rate(overflow) {
        return None;
    }
    let (mut low, mut high) = (0u64, (mean + 40.0 * mean.sqrt() + 1000.0) as u64);
    while low < high {
        let middle = low + (high - low) / 2;
        if poisson_tail(middle + 1, mean) <= overflow {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::super::{bloom_size, prints};
    use super::*;
    use std::f64::consts::LN_2;

    const EIGHT: f64 = 1.0 / 256.0;

    #[test]
    fn counter_overflows_match_the_table() {
        prints(counting_overflow(LN_2, 4), "7.1e-17");
        prints(counting_overflow(LN_2, 3), "7.2e-7");
        prints(counting_overflow(LN_2, 2), "5.6e-3");
        assert_eq!(counting_overflow(1.0, 64), 0.0);
        assert!(counting_overflow(f64::NAN, 4).is_nan());
    }

    #[test]
    fn counting_filters_cost_four_bits_a_cell() {
        for (fpr, bits) in [(0.01, "38.37"), (EIGHT, "46.17")] {
            let (cells, _) = bloom_size(1_000_000, fpr).unwrap();
            prints(4.0 * cells as f64 / 1e6, bits);
        }
    }

    #[test]
    fn variable_increment_sizes_match_the_table() {
        for (fpr, increments, k, cells, width, bits) in [
            (0.01, 4, 5, "4.121", 6.0, "24.73"),
            (0.01, 4, 5, "4.121", 7.0, "28.85"),
            (0.01, 8, 4, "3.612", 7.0, "25.28"),
            (0.01, 2, 6, "5.376", 5.0, "26.88"),
            (EIGHT, 4, 6, "4.962", 6.0, "29.77"),
            (EIGHT, 8, 0, "4.354", 7.0, "30.48"),
        ] {
            let (size, best) = vi_counting_size(fpr, increments).unwrap();
            prints(size, cells);
            prints(width * size, bits);
            assert!(k == 0 || best == k);
        }
        // Simulated at the one percent sizes.
        prints(100.0 * vi_counting_fpr(4.121, 5, 4), "1.00");
    }

    #[test]
    fn small_variable_increment_filters_need_more_cells() {
        // Simulated, 3000 filters each: 0.99 %, 0.0947 %; 9.9 % at k = 2.
        prints(100.0 * vi_counting_fpr_of(83, 20, 5, 4), "1.00");
        prints(100.0 * vi_counting_fpr_of(125, 20, 7, 4), "0.0945");
        prints(100.0 * vi_counting_fpr_of(208, 100, 2, 4), "9.90");
        // Many cells are as the limit says.
        let many = vi_counting_fpr_of(4_121_000, 1_000_000, 5, 4) / vi_counting_fpr(4.121, 5, 4);
        assert!((many - 1.0).abs() < 1e-5, "{many}");
        assert_eq!(vi_counting_cells(20, 0.01, 5, 4), Some(83));
        let (cells, k) = vi_counting_size(0.01, 4).unwrap();
        let million = vi_counting_cells(1_000_000, 0.01, k, 4).unwrap();
        assert!((million as f64 / 1e6 / cells - 1.0).abs() < 1e-5);
        for (cells, keys, k, l) in [(1, 1, 1, 4), (1, 9, 64, 16), (u64::MAX, 1, 1, 1)] {
            let rate = vi_counting_fpr_of(cells, keys, k, l);
            assert!((0.0..=1.0).contains(&rate), "{cells} {keys}: {rate}");
        }
        assert!(vi_counting_fpr_of(0, 1, 1, 4).is_nan());
        assert_eq!(vi_counting_fpr_of(64, 0, 5, 4), 0.0);
    }

    #[test]
    fn variable_increment_overflows_match_the_table() {
        prints(vi_counting_overflow(5.0 / 4.121, 6, 4), "2.2e-8");
        assert!(vi_counting_overflow(5.0 / 4.121, 7, 4) < 1e-15);
        prints(vi_counting_overflow(4.0 / 3.612, 7, 8), "2.5e-8");
        prints(vi_counting_overflow(6.0 / 5.376, 5, 2), "8e-10");
        // Increments of exactly one are an ordinary counter.
        let plain = vi_counting_overflow(LN_2, 4, 1) / counting_overflow(LN_2, 4);
        assert!((plain - 1.0).abs() < 1e-9, "{plain}");
    }

    #[test]
    fn dleft_figures_match_the_table() {
        for (r, percent, bits) in [
            (11, "1.165", "17.33"),
            (12, "0.584", "18.67"),
            (13, "0.293", "20.0"),
            (13, "0.2926", "20.0"),
            (14, "0.146", "21.33"),
        ] {
            prints(100.0 * dleft_fpr(r, 4, 6.0), percent);
            prints(dleft_bits_per_key(f64::from(r), 2, 8, 6.0), bits);
        }
        for (fpr, bits) in [(0.01, "17.64"), (1e-3, "22.07"), (1e-4, "26.50")] {
            prints(dleft_bits_per_key((24.0f64 / fpr).log2(), 2, 8, 6.0), bits);
        }
    }

    #[test]
    fn invertible_tables_decode_at_the_known_thresholds() {
        for (k, cells) in [
            (3, "1.222"),
            (4, "1.295"),
            (5, "1.425"),
            (6, "1.570"),
            (7, "1.719"),
        ] {
            prints(iblt_cells_per_key(k), cells);
        }
        assert!(iblt_cells_per_key(2).is_nan() && iblt_cells_per_key(u32::MAX).is_nan());
    }

    #[test]
    fn invertible_tables_have_the_simulated_sizes() {
        for (keys, cells, k) in [
            (0, 50, 5),
            (10, 50, 5),
            (30, 75, 5),
            (100, 180, 5),
            (300, 456, 4),
            (1000, 1400, 4),
            (3000, 4200, 4),
            (u64::MAX, u64::MAX, 4),
        ] {
            assert_eq!(iblt_size(keys), (cells, k), "{keys} keys");
        }
        // More keys never get fewer cells, but for the step from five to four.
        let sizes = (0..5000).map(|keys| iblt_size(keys).0);
        assert!(sizes.clone().zip(sizes.skip(1)).all(|(a, b)| b + 1 >= a));
    }

    #[test]
    fn buckets_of_mean_64_need_105_slots() {
        assert_eq!(bucket_capacity(64.0, 1e-6), Some(105));
        assert_eq!(bucket_capacity(0.0, 0.5), Some(0));
        assert_eq!(bucket_capacity(f64::NAN, 0.5), None);
        assert_eq!(bucket_capacity(1.0, 0.0), None);
        assert!(bucket_capacity(1e15, 1e-9).is_some());
    }

    #[test]
    fn odd_arguments_give_the_documented_answers() {
        for x in [f64::NAN, -1.0, 0.0] {
            assert!(vi_counting_fpr(x, 4, 4).is_nan());
        }
        assert!(vi_counting_fpr(1e-300, 4, 4) <= 1.0);
        assert!(vi_counting_fpr(1e300, 4, 4) >= 0.0);
        for (mean, bits, l) in [(f64::NAN, 4, 4), (2e3, 4, 4), (1.0, 13, 4), (1.0, 4, 0)] {
            assert!(vi_counting_overflow(mean, bits, l).is_nan());
        }
        for (mean, bits, l) in [(256.0, 12, 1), (1.0, 0, 1), (1.0, 4, 1 << 12), (0.0, 4, 4)] {
            let p = vi_counting_overflow(mean, bits, l);
            assert!((0.0..=1.0).contains(&p), "{mean} {bits} {l}: {p}");
        }
        assert!(dleft_fpr(8, 4, f64::NAN).is_nan());
    }
}
