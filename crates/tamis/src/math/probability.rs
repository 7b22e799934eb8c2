//! Poisson and binomial laws, stable from a mean of zero to one of 2^63.
//!
//! Factorials are never formed, not even as logarithms: at `n = 2^63` the
//! terms of `ln n!` are near 4e20 and their rounding alone would exceed the
//! answer. Both laws are written instead as a deviance, which is zero at the
//! mean and grows from there, and a small correction (Loader, "Fast and
//! accurate computation of binomial probabilities", 2000).

use std::f64::consts::TAU;

/// Most counts that one expectation adds up singly; wider windows are sampled
/// at so many points.
const MAX_TERMS: f64 = 512.0;
const SAMPLES: f64 = 128.0;

/// How far a sum reaches from the mean, in standard deviations, and beyond.
const REACH_SD: f64 = 12.0;
const REACH_EXTRA: f64 = 40.0;

/// Number of keys that land in one cell.
#[derive(Clone, Copy, Debug)]
pub(super) enum Law {
    /// Very many keys, each with a very small chance.
    Poisson { mean: f64 },
    /// `n` keys, each with chance `p`; `q = 1 - p` is kept because forming it
    /// from a tiny `p` would lose that `p`.
    Binomial { n: f64, p: f64, q: f64 },
}

impl Law {
    /// `n` keys thrown into `cells` equal cells, seen from one cell.
    pub(super) fn per_cell(n: f64, cells: u64) -> Law {
        let p = 1.0 / cells as f64;
        let q = (cells as f64 - 1.0) / cells as f64;
        Law::Binomial { n, p, q }
    }

    fn mean(self) -> f64 {
        match self {
            Law::Poisson { mean } => mean,
            Law::Binomial { n, p, .. } => n * p,
        }
    }

    fn sd(self) -> f64 {
        match self {
            Law::Poisson { mean } => mean.sqrt(),
            Law::Binomial { n, p, q } => (n * p * q).sqrt(),
        }
    }

    fn most(self) -> f64 {
        match self {
            Law::Poisson { .. } => f64::INFINITY,
            Law::Binomial { n, .. } => n,
        }
    }

    /// Probability of exactly `x`; between whole numbers, the smooth curve
    /// through them.
    fn pmf(self, x: f64) -> f64 {
        match self {
            Law::Poisson { mean } => {
                if mean == 0.0 || mean.is_infinite() {
                    f64::from(u8::from(mean == x))
                } else if x <= 0.0 {
                    (-mean).exp()
                } else {
                    (-stirling_error(x) - deviance(x, mean)).exp() / (TAU * x).sqrt()
                }
            }
            Law::Binomial { n, p, q } => {
                if x > n {
                    0.0
                } else if p == 0.0 || q == 0.0 {
                    f64::from(u8::from(x == n * p))
                } else if x <= 0.0 {
                    (n * (-p).ln_1p()).exp()
                } else if x == n {
                    (n * (-q).ln_1p()).exp()
                } else {
                    let y = n - x;
                    let correction = stirling_error(n) - stirling_error(x) - stirling_error(y);
                    let distance = deviance(x, n * p) + deviance(y, n * q);
                    (correction - distance).exp() * (n / (TAU * x * y)).sqrt()
                }
            }
        }
    }

    /// `pmf(x + 1) / pmf(x)`.
    fn ratio(self, x: f64) -> f64 {
        match self {
            Law::Poisson { mean } => mean / (x + 1.0),
            Law::Binomial { n, p, q } => (n - x) / (x + 1.0) * (p / q),
        }
    }

    /// Expected value of `f(count)`.
    ///
    /// Sums over mean +- (12 sd + 40). A window wider than [`MAX_TERMS`] is
    /// sampled at equal steps of 1/5 deviation: on a bell curve that rule is
    /// exact to rounding for a smooth `f`, and the cost stays bounded.
    pub(super) fn expect(self, f: impl Fn(f64) -> f64) -> f64 {
        let mean = self.mean();
        if mean.is_nan() || mean < 0.0 {
            return f64::NAN;
        }
        if mean > 1e15 {
            return f(mean);
        }
        let reach = REACH_SD * self.sd() + REACH_EXTRA;
        let low = (mean - reach).floor().max(0.0);
        let high = (mean + reach).ceil().min(self.most());
        if high - low > MAX_TERMS {
            let step = ((high - low) / SAMPLES).ceil();
            let points = ((high - low) / step) as u32;
            return (0..=points)
                .map(|i| low + step * f64::from(i))
                .map(|x| step * self.pmf(x) * f(x))
                .sum();
        }
        let mode = mean.floor().min(high);
        let peak = self.pmf(mode);
        let mut sum = peak * f(mode);
        let (mut x, mut weight) = (mode, peak);
        while x < high && weight > 0.0 {
            weight *= self.ratio(x);
            x += 1.0;
            sum += weight * f(x);
        }
        let (mut x, mut weight) = (mode, peak);
        while x > low && weight > 0.0 {
            x -= 1.0;
            weight /= self.ratio(x);
            sum += weight * f(x);
        }
        sum
    }

    /// Width of the strips in which a tail from `x` on is added up: one count,
    /// 1/256 deviation, or the distance of neighbouring `f64`, the greatest.
    fn strip(self, x: f64) -> f64 {
        (self.sd() / 256.0).floor().max(x * f64::EPSILON).max(1.0)
    }

    /// `P[count >= x]` for whole `x` above the mean.
    ///
    /// Terms fall at least geometrically, so adding them stops by itself.
    /// With a deviation above 512 they are taken in strips of 1/256 deviation
    /// by the midpoint rule, whose relative error at six deviations is 2e-5.
    fn tail_above(self, x: f64) -> f64 {
        let strip = self.strip(x);
        let mut middle = x + (strip - 1.0) / 2.0;
        let mut sum = 0.0;
        while middle <= self.most() {
            let term = self.pmf(middle);
            sum += strip * term;
            if term <= sum * 1e-17 {
                break;
            }
            middle += strip;
        }
        sum.min(1.0)
    }

    /// `P[count <= x]` for whole `x` below the mean.
    fn tail_below(self, x: f64) -> f64 {
        let strip = self.strip(x);
        let mut middle = x - (strip - 1.0) / 2.0;
        let mut sum = 0.0;
        while middle >= 0.0 {
            let term = self.pmf(middle);
            sum += strip * term;
            if term <= sum * 1e-17 {
                break;
            }
            middle -= strip;
        }
        sum.min(1.0)
    }
}

/// `ln x! - ((x + 1/2) ln x - x + ln(2 pi) / 2)`: what Stirling's formula misses.
fn stirling_error(x: f64) -> f64 {
    let mut x = x;
    let mut sum = 0.0;
    // The series is good to the last bit from 16 on; smaller x climb there.
    while x < 16.0 {
        sum += (x + 0.5) * (1.0 / x).ln_1p() - 1.0;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    sum + (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0))))
        / x
}

/// `x ln(x / mean) + mean - x`, without cancellation near the mean.
fn deviance(x: f64, mean: f64) -> f64 {
    let t = (x - mean) / mean;
    if t.abs() > 0.1 {
        return x * (x / mean).ln() - (x - mean);
    }
    // mean * ((1 + t) ln(1 + t) - t) = mean * sum (-t)^j / (j (j - 1)), j >= 2.
    let mut sum = 0.0;
    let mut power = t * t;
    let mut j = 2.0;
    while j < 20.0 {
        sum += power / (j * (j - 1.0));
        power *= -t;
        j += 1.0;
    }
    mean * sum
}

/// Probability that a Poisson variable equals `count`.
///
/// `e^-mean mean^count / count!`. `NaN` for a negative or `NaN` mean, 0 for an
/// infinite one.
pub fn poisson_pmf(count: u64, mean: f64) -> f64 {
    if mean >= 0.0 {
        Law::Poisson { mean }.pmf(count as f64)
    } else {
        f64::NAN
    }
}

/// Probability that a Poisson variable is at least `count`.
///
/// `sum over c >= count of e^-mean mean^c / c!`, summed on the side that is
/// small. `NaN` for a negative or `NaN` mean, 1 for an infinite one.
pub fn poisson_tail(count: u64, mean: f64) -> f64 {
    if mean.is_nan() || mean < 0.0 {
        return f64::NAN;
    }
    let x = count as f64;
    if count == 0 || mean.is_infinite() {
        1.0
    } else if x > mean {
        Law::Poisson { mean }.tail_above(x)
    } else {
        1.0 - Law::Poisson { mean }.tail_below(x - 1.0)
    }
}

/// Probability of exactly `count` successes in `n` trials.
///
/// `C(n, count) p^count (1 - p)^(n - count)`. `NaN` unless `0 <= p <= 1`.
pub fn binomial_pmf(count: u64, n: u64, p: f64) -> f64 {
    if count > n {
        return if p.is_nan() { f64::NAN } else { 0.0 };
    }
    match trials(n, p) {
        Some(law) => law.pmf(count as f64),
        None => f64::NAN,
    }
}

/// Probability of at least `count` successes in `n` trials.
///
/// `sum over c >= count of C(n, c) p^c (1 - p)^(n - c)`, summed on the side
/// that is small. `NaN` unless `0 <= p <= 1`.
///
/// ```
/// // At a rate of 1 in 256, a read of 120 k-mers has 4 false ones once in 750.
/// let rate = tamis::math::binomial_tail(4, 120, 1.0 / 256.0);
/// assert!((1.0 / rate - 750.0).abs() < 1.0);
/// ```
pub fn binomial_tail(count: u64, n: u64, p: f64) -> f64 {
    let Some(law) = trials(n, p) else {
        return f64::NAN;
    };
    let x = count as f64;
    if count == 0 {
        1.0
    } else if x > law.mean() {
        law.tail_above(x)
    } else {
        1.0 - law.tail_below(x - 1.0)
    }
}

/// Where a rate lies, 19 times out of 20, that `hits` of `trials` were measured of.
///
/// The score interval (Wilson 1927), which stays honest where there are few hits or none: the
/// rates at which the measured one is within 1.96 standard deviations of what is expected.
/// Everything is possible, `(0, 1)`, without trials.
///
/// ```
/// use tamis::math::rate_interval;
///
/// // None of a thousand strangers were found: that tells no rate below 0.4 %.
/// let (low, high) = rate_interval(0, 1000);
/// assert_eq!(low, 0.0);
/// assert!(0.0038 < high && high < 0.0039);
/// ```
pub fn rate_interval(hits: u64, trials: u64) -> (f64, f64) {
    /// Of the normal law, with 2.5 % on either side.
    const Z: f64 = 1.959_963_984_540_054;
    if trials == 0 {
        return (0.0, 1.0);
    }
    let (n, x) = (trials as f64, hits.min(trials) as f64);
    let centre = (x + Z * Z / 2.0) / (n + Z * Z);
    let half = Z / (n + Z * Z) * (x * (n - x) / n + Z * Z / 4.0).sqrt();
    let low = if hits == 0 {
        0.0
    } else {
        (centre - half).max(0.0)
    };
    let high = if hits >= trials {
        1.0
    } else {
        (centre + half).min(1.0)
    };
    (low, high)
}

/// The counts that a test of `n` trials at rate `p` must accept.
///
/// Returns `(low, high)`, both included, as narrow as `P[X < low] <= alpha`
/// and `P[X > high] <= alpha` allow: each side alone errs at most once in
/// `1 / alpha` honest runs. Tails are exact binomial sums; above a deviation
/// of 512 counts they are integrated in strips and good to 2e-5 relative,
/// which moves a bound by less than 1e-5 deviations. A plain normal interval
/// would sit `(z^2 - 1) (1 - 2p) / 6` counts too low on both sides.
///
/// Returns the empty interval `(1, 0)` unless `0 <= p <= 1` and
/// `0 < alpha <= 1/4`, so that a test with a nonsensical rate fails.
pub fn binomial_interval(n: u64, p: f64, alpha: f64) -> (u64, u64) {
    let (Some(law), true) = (trials(n, p), alpha > 0.0 && alpha <= 0.25) else {
        return (1, 0);
    };
    // Counts are searched as whole f64, which are exact up to 2^53 and, beyond,
    // far finer than a deviation.
    let centre = law.mean().floor().min(n as f64);
    let spread = 40.0 * law.sd() + 1000.0;

    let low = last_good((centre - spread).max(0.0), centre + 1.0, |low| {
        law.tail_below(low - 1.0) <= alpha
    });
    let high = last_good((centre + spread).min(n as f64), centre - 1.0, |high| {
        law.tail_above(high + 1.0) <= alpha
    });
    ((low as u64).min(n), (high as u64).min(n))
}

/// The whole number next to the change from good to bad, on the good side.
fn last_good(good: f64, bad: f64, is_good: impl Fn(f64) -> bool) -> f64 {
    let (mut good, mut bad) = (good, bad);
    // 128 halvings exhaust any pair of f64 that can occur here.
    for _ in 0..128 {
        let middle = ((good + bad) / 2.0).floor();
        if middle == good || middle == bad {
            break;
        }
        if is_good(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    good
}

/// The law of `n` trials, if `p` is a probability.
fn trials(n: u64, p: f64) -> Option<Law> {
    let n = n as f64;
    (0.0..=1.0)
        .contains(&p)
        .then_some(Law::Binomial { n, p, q: 1.0 - p })
}

#[cfg(test)]
mod tests {
    use super::super::prints;
    use super::*;

    /// The examples of Newcombe, "Two-sided confidence intervals for the single proportion", 1998,
    /// table I, method 3.
    #[test]
    fn the_interval_of_a_rate_is_the_published_one() {
        for (hits, trials, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let found = rate_interval(hits, trials);
            assert!((found.0 - low).abs() < 5.1e-5, "{hits}/{trials}: {found:?}");
            assert!(
                (found.1 - high).abs() < 5.1e-5,
                "{hits}/{trials}: {found:?}"
            );
        }
        assert_eq!(rate_interval(0, 0), (0.0, 1.0));
        assert_eq!(rate_interval(7, 7).1, 1.0);
        assert_eq!(rate_interval(9, 7), rate_interval(7, 7));
    }

    #[test]
    fn small_laws_equal_their_textbook_values() {
        prints(poisson_pmf(0, 2.0), "0.135335283237");
        prints(poisson_pmf(3, 2.0), "0.180447044315");
        prints(poisson_pmf(1, 1e-300), "1.000000e-300");
        prints(binomial_pmf(3, 10, 0.5), "0.1171875000000");
        prints(binomial_pmf(0, 10, 0.1), "0.348678440100");
        prints(binomial_pmf(10, 10, 0.1), "1.000000000e-10");
        prints(binomial_pmf(50, 100, 0.5), "0.079589237387");
        assert_eq!(binomial_pmf(11, 10, 0.5), 0.0);
        assert_eq!((poisson_pmf(0, 0.0), poisson_pmf(1, 0.0)), (1.0, 0.0));
        assert_eq!(
            (binomial_pmf(0, 9, 0.0), binomial_pmf(9, 9, 1.0)),
            (1.0, 1.0)
        );
    }

    #[test]
    fn a_tail_is_the_sum_of_its_terms() {
        for (n, p) in [
            (1, 0.3),
            (10, 0.1),
            (120, 1.0 / 256.0),
            (300, 0.5),
            (90, 0.97),
        ] {
            for count in 0..=n + 1 {
                let sum: f64 = (count..=n).map(|c| binomial_pmf(c, n, p)).sum();
                let tail = binomial_tail(count, n, p);
                assert!(
                    (tail - sum).abs() <= 1e-12,
                    "{count} of {n}, {p}: {tail} {sum}"
                );
            }
        }
        assert_eq!(
            (binomial_tail(0, 0, 0.5), binomial_tail(1, 0, 0.5)),
            (1.0, 0.0)
        );
        assert_eq!(
            (binomial_tail(1, 9, 0.0), binomial_tail(9, 9, 1.0)),
            (0.0, 1.0)
        );
        assert!(binomial_tail(1, 9, f64::NAN).is_nan());
    }

    #[test]
    fn laws_sum_to_one() {
        for mean in [0.0, 1e-300, 0.3, 7.0, 56.0, 1e3, 1e5, 1e9, 1e14] {
            let total = Law::Poisson { mean }.expect(|_| 1.0);
            assert!((total - 1.0).abs() < 1e-11, "{mean}: {total}");
            let average = Law::Poisson { mean }.expect(|x| x);
            assert!((average - mean).abs() <= 1e-11 * mean, "{mean}: {average}");
        }
        for cells in [1, 2, 3, 1000, 1 << 40] {
            let total = Law::per_cell(1e6, cells).expect(|_| 1.0);
            assert!((total - 1.0).abs() < 1e-11, "{cells}: {total}");
        }
    }

    #[test]
    fn at_a_huge_mean_the_peak_is_that_of_the_bell() {
        let n = 1u64 << 63;
        let sd = (n as f64 / 4.0).sqrt();
        let peak = binomial_pmf(n / 2, n, 0.5) * sd * TAU.sqrt();
        assert!((peak - 1.0).abs() < 1e-12, "{peak}");
        assert_eq!(poisson_pmf(u64::MAX, 1.0), 0.0);
    }

    #[test]
    fn tails_match_the_counter_figures() {
        prints(poisson_tail(128, 64.0), "1.3e-12");
        prints(poisson_tail(256, 64.0), "6e-73");
        // A given TinySet block of 448 slots overflows at mean 57.
        prints(poisson_tail(449, 57.0).log10(), "-234");
        prints(poisson_tail(129, 57.0), "2e-16");
        let middle = poisson_tail(1_000_000_000_000, 1e12);
        assert!((middle - 0.5).abs() < 1e-3, "{middle}");
    }

    /// The acceptance counts of the statistical tests, ten million probes.
    ///
    /// Rows below a mean of 3000 come from exact Poisson tails and are met to
    /// two counts. The rows above come from the normal law with the binomial
    /// deviation and no correction for skewness; the exact tails sit
    /// `(z^2 - 1) (1 - 2p) / 6` counts higher on both sides, about six.
    #[test]
    fn intervals_match_the_acceptance_counts() {
        const N: u64 = 10_000_000;
        for (p, low, high, normal) in [
            (0.03, 296_765, 303_235, true),
            (0.01, 98_113, 101_887, true),
            (2f64.powi(-8), 37_880, 40_245, true),
            (1e-3, 9_401, 10_599, true),
            (1e-4, 816, 1_196, false),
            (2f64.powi(-16), 85, 232, false),
            (1e-5, 46, 166, false),
            (1e-6, 0, 34, false),
        ] {
            let skew = if normal {
                (5.998f64.powi(2) - 1.0) * (1.0 - 2.0 * p) / 6.0
            } else {
                0.0
            };
            let (exact_low, exact_high) = binomial_interval(N, p, 1e-9);
            for (exact, table) in [(exact_low, low), (exact_high, high)] {
                let gap = exact as f64 - (f64::from(table) + skew);
                assert!(gap.abs() <= 2.0, "{p}: {exact} against {table} + {skew}");
            }
        }
    }

    #[test]
    fn intervals_hold_their_promise_and_no_more() {
        for (n, p, alpha) in [
            (10, 0.5, 0.05),
            (1000, 0.01, 1e-9),
            (1_000_000, 0.3, 1e-6),
            (7, 0.9, 1e-3),
        ] {
            let (low, high) = binomial_interval(n, p, alpha);
            let law = trials(n, p).unwrap();
            let below = |x: u64| (0..x).map(|c| law.pmf(c as f64)).sum::<f64>();
            let above = |x: u64| (x + 1..=n).map(|c| law.pmf(c as f64)).sum::<f64>();
            assert!(
                below(low) <= alpha && below(low + 1) > alpha,
                "{n} {p}: {low}"
            );
            assert!(
                above(high) <= alpha && (high == 0 || above(high - 1) > alpha),
                "{n} {p}: {high}"
            );
        }
    }

    #[test]
    fn strange_intervals_end() {
        assert_eq!(binomial_interval(10, f64::NAN, 0.1), (1, 0));
        assert_eq!(binomial_interval(10, 0.5, 0.0), (1, 0));
        assert_eq!(binomial_interval(10, -0.1, 0.2), (1, 0));
        assert_eq!(binomial_interval(0, 0.5, 1e-9), (0, 0));
        assert_eq!(binomial_interval(10, 0.0, 1e-9), (0, 0));
        assert_eq!(binomial_interval(10, 1.0, 1e-9), (10, 10));
        for p in [
            1e-300,
            1e-18,
            1e-9,
            0.5,
            1.0 - 1e-9,
            1.0 - f64::EPSILON / 2.0,
        ] {
            for n in [1, 1 << 31, 1 << 53, 1 << 63, u64::MAX] {
                for alpha in [5e-324, 1e-9, 0.25] {
                    let (low, high) = binomial_interval(n, p, alpha);
                    assert!(low <= high && high <= n, "{n} {p} {alpha}: {low} {high}");
                }
            }
        }
        let (low, high) = binomial_interval(1 << 60, 0.5, 1e-9);
        let z = (high - low) as f64 / 2.0 / (1u64 << 29) as f64;
        prints(z, "5.998");
    }
}
