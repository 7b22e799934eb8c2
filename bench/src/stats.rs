//! Medians and spreads: what is made of the samples of a figure.

/// The samples of one figure over the rounds, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Samples(pub(crate) Vec<f64>);

impl Samples {
    /// The value below which a fraction `q` of the samples lies, between neighbours by
    /// interpolation; NaN of none.
    pub(crate) fn quantile(&self, q: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else {
            return f64::NAN;
        };
        let at = q.clamp(0.0, 1.0) * last as f64;
        let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
        below + (above - below) * at.fract()
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Where most samples lie: from the 10th to the 90th percentile.
    pub(crate) fn range(&self) -> (f64, f64) {
        (self.quantile(0.1), self.quantile(0.9))
    }

    /// The width of that range relative to the median; 0 where the median is, and `None` of fewer
    /// than two samples.
    pub(crate) fn spread(&self) -> Option<f64> {
        let ((low, high), median) = (self.range(), self.median());
        let spread = if median == 0.0 {
            0.0
        } else {
            (high - low) / median
        };
        (self.0.len() > 1).then_some(spread)
    }

    /// These or others, whose median is less. To choose sample by sample would be to choose by
    /// noise.
    pub(crate) fn or_less(self, other: Option<Samples>) -> Samples {
        match other {
            Some(other) if other.median() < self.median() => other,
            _ => self,
        }
    }

    /// Samples of the quotient, round by round. Rounds interleave subjects, so that what slows
    /// the machine for a while slows both, and their quotient steadies.
    pub(crate) fn over(&self, other: &Samples) -> Samples {
        Samples(self.0.iter().zip(&other.0).map(|(a, b)| a / b).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(samples: &[f64]) -> Samples {
        Samples(samples.to_vec())
    }

    #[test]
    fn the_median_is_the_middle_whatever_the_order() {
        assert_eq!(of(&[3.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(of(&[4.0, 1.0, 3.0, 2.0]).median(), 2.5);
        assert_eq!(of(&[7.0]).median(), 7.0);
        assert!(of(&[]).median().is_nan());
    }

    #[test]
    fn one_wild_round_does_not_move_the_median() {
        assert_eq!(of(&[5.0, 5.0, 500.0, 5.0, 5.0]).median(), 5.0);
    }

    #[test]
    fn the_spread_is_from_p10_to_p90_relative_to_the_median() {
        let samples = Samples((0..=100).map(f64::from).collect());
        assert_eq!(samples.range(), (10.0, 90.0));
        assert!((samples.spread().unwrap() - 1.6).abs() < 1e-12);
        assert_eq!(of(&[2.0, 2.0, 2.0]).spread(), Some(0.0));
        assert_eq!(of(&[0.0, 0.0, 9.0]).spread(), Some(0.0), "a median of 0");
        assert_eq!(of(&[2.0]).spread(), None, "nobody knows");
    }

    #[test]
    fn the_lesser_samples_are_chosen_as_a_whole() {
        let (three, two) = (of(&[1.0, 3.0, 4.0]), of(&[2.0, 2.0, 9.0]));
        assert_eq!(three.clone().or_less(Some(two.clone())), two);
        assert_eq!(two.clone().or_less(Some(three)), two);
        assert_eq!(two.clone().or_less(None), two);
    }

    #[test]
    fn a_quotient_is_taken_within_each_round() {
        // Twice as slow in a busy round, both of them: the quotient does not see it.
        let quotient = of(&[2.0, 4.0, 2.0]).over(&of(&[1.0, 2.0, 1.0]));
        assert_eq!(quotient, of(&[2.0, 2.0, 2.0]));
        assert_eq!(
            of(&[2.0, 3.0]).over(&of(&[1.0])),
            of(&[2.0]),
            "shared rounds"
        );
    }
}
