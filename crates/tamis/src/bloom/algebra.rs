//! Sets seen through their Bloom filters: union, intersection, sizes, similarity, and folding to
//! half the size.
//!
//! The essay is at [`Overlap`].

use crate::bloom::Bloom;
use crate::buf::Buf;
use crate::error::{BuildError, MergeError};
use crate::filter::{Halve, Merge};
use crate::math;
use crate::simd::{self, Bits, Op};

/// A number of keys that was estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// The estimate as computed: unbiased or nearly so, and for an intersection possibly below 0.
    pub raw: f64,
    /// The estimate, no less than 0 and no more than the sets allow.
    pub keys: f64,
    /// The standard error of the raw estimate.
    pub sd: f64,
}

/// What two Bloom filters have in common; see [`Bloom::overlap`].
///
/// Numbers of keys come with their standard errors, and ratios have methods for theirs. Estimates
/// are `None` where a filter that they need has all bits set, so that any number of keys could be
/// in.
///
/// Two Bloom filters of one shape (and one hashing) can be combined bit by bit:
///
/// ```text
///   A       01101001 …      A | B   is the filter of all keys of both, to the bit
///   B       00111000 …      A & B   has every bit of the common keys, and bits where two keys
///                                   met by chance
///
///   halve   b₀b₁ b₂b₃ b₄b₅ …  →  b₀|b₁  b₂|b₃  b₄|b₅ …
///           a place is ⌊x·m / 2⁶⁴⌋, so m/2 halves it
/// ```
///
/// # Sizes
///
/// The number of ones tells the number of distinct keys: n̂ = ln(1 − X/m) / (k·ln(1 − 1/m)), with
/// the standard error √(m·(eᵃ − 1 − a))/k at a = k·n/m: 81 of 103 800 keys for 2²⁰ bits, half
/// full, at k = 7. That of the union comes from A | B, and |A ∩ B| is n̂(A) + n̂(B) − n̂(A | B).
/// One pass that counts A, B and A & B gives all three.
///
/// The bits of A & B are no measure of A ∩ B: disjoint sets share ones by chance. So the cosine
/// of the bit vectors ([`Overlap::dot_raw`]) of two disjoint sets is about their fill, 0.28 for
/// 50 000 keys each in 2²⁰ bits, not 0; [`Overlap::dot_corrected`] is that of the sets.
///
/// # Bibliography
///
/// - Swamidass, Baldi, *Mathematical correction for fingerprint similarity measures*, 2007: keys
///   from ones, for each of union and intersection.
/// - Papapetrou, Siberski, Nejdl, *Cardinality estimation and dynamic length adaptation for Bloom
///   filters*, 2010: the same from likelihood, and the intersection from the ones of A, B and A &
///   B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Overlap {
    bits: u64,
    k: u32,
    /// Ones of A, of B, and of A & B.
    ones: [u64; 3],
}

impl Overlap {
    /// Distinct keys of the filter that was asked.
    pub fn ours(&self) -> Option<Estimate> {
        estimate(self.bits, self.ones[0], self.k)
    }

    /// Distinct keys of the other filter.
    pub fn theirs(&self) -> Option<Estimate> {
        estimate(self.bits, self.ones[1], self.k)
    }

    /// Distinct keys in either.
    pub fn union(&self) -> Option<Estimate> {
        let [a, b, both] = self.ones;
        estimate(self.bits, a - both + b, self.k)
    }

    /// Distinct keys in both.
    pub fn intersection(&self) -> Option<Estimate> {
        let (a, b, union) = (self.ours()?, self.theirs()?, self.union()?);
        let [x, y, both] = self.ones;
        let raw = math::bloom_intersection_estimate(self.bits, x, y, both, self.k);
        let keys = raw.clamp(0.0, a.raw.min(b.raw));
        let sd = math::bloom_intersection_sd(self.bits, a.raw, b.raw, union.raw, self.k);
        Some(Estimate { raw, keys, sd })
    }

    /// The cosine of the two vectors of bits, from 0 to 1. Biased: of disjoint sets it is about
    /// the fill. `None` where a filter is empty.
    pub fn dot_raw(&self) -> Option<f64> {
        let [a, b, both] = self.ones.map(|ones| ones as f64);
        ratio(both, (a * b).sqrt())
    }

    /// The cosine of the two sets, |A ∩ B| / √(|A|·|B|), from the raw estimates: near 0 for
    /// disjoint sets, on either side.
    pub fn dot_corrected(&self) -> Option<f64> {
        let (a, b) = (self.ours()?.raw, self.theirs()?.raw);
        ratio(self.intersection()?.raw, (a * b).sqrt())
    }

    /// The standard error of [`dot_corrected`](Self::dot_corrected).
    pub fn dot_corrected_sd(&self) -> Option<f64> {
        let (a, b) = (self.ours()?.raw, self.theirs()?.raw);
        let (both, root) = (self.intersection()?.raw, (a * b).sqrt());
        self.sd([
            (1.0 - both / (2.0 * a)) / root,
            (1.0 - both / (2.0 * b)) / root,
            -1.0 / root,
        ])
    }

    /// The Jaccard index, |A ∩ B| / |A ∪ B|, from the clamped estimates.
    pub fn jaccard(&self) -> Option<f64> {
        Some(ratio(self.intersection()?.keys, self.union()?.keys)?.min(1.0))
    }

    /// The standard error of [`jaccard`](Self::jaccard), as it is before clamping.
    pub fn jaccard_sd(&self) -> Option<f64> {
        let (a, b, union) = (self.ours()?.raw, self.theirs()?.raw, self.union()?.raw);
        self.sd([1.0 / union, 1.0 / union, -(a + b) / union.powi(2)])
    }

    /// The share of our keys that the other has too, |A ∩ B| / |A|, from the clamped estimates.
    pub fn containment(&self) -> Option<f64> {
        ratio(self.intersection()?.keys, self.ours()?.keys)
    }

    /// The standard error of [`containment`](Self::containment), as it is before clamping.
    pub fn containment_sd(&self) -> Option<f64> {
        let (a, b, union) = (self.ours()?.raw, self.theirs()?.raw, self.union()?.raw);
        self.sd([(union - b) / a.powi(2), 1.0 / a, -1.0 / a])
    }

    /// The standard error of what changes by these much with |A|, |B| and |A ∪ B|, by the delta
    /// method.
    ///
    /// With V(x) the variance of an estimate of x keys, two estimates have the covariance V of
    /// the number of keys that their sets share: V(|A ∩ B|) for A and B, V(|A|) for A and A ∪ B.
    fn sd(&self, slopes: [f64; 3]) -> Option<f64> {
        let (a, b, union) = (self.ours()?.raw, self.theirs()?.raw, self.union()?.raw);
        let variance =
            |keys: f64| math::bloom_estimate_sd(self.bits, keys.max(0.0), self.k).powi(2);
        let (v_a, v_b, v_both) = (variance(a), variance(b), variance(a + b - union));
        let [by_a, by_b, by_union] = slopes;
        let own = by_a * by_a * v_a + by_b * by_b * v_b + by_union * by_union * variance(union);
        let shared = by_a * by_b * v_both + by_a * by_union * v_a + by_b * by_union * v_b;
        let sd = (own + 2.0 * shared).max(0.0).sqrt();
        sd.is_finite().then_some(sd)
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn estimate(bits: u64, ones: u64, k: u32) -> Option<Estimate> {
    let raw = math::bloom_estimate(bits, ones, k);
    let sd = math::bloom_estimate_sd(bits, raw, k);
    let keys = raw;
    raw.is_finite().then_some(Estimate { raw, keys, sd })
}

/// Counts the ones of two arrays and of what they share, in one pass.
struct CountOnes<'a>(&'a [u64], &'a [u64]);

impl Op for CountOnes<'_> {
    const WIDE: bool = true;
    type Out = [u64; 3];

    #[inline(always)]
    fn run<B: Bits>(self, _: B) -> [u64; 3] {
        let mut ones = [0; 3];
        for (a, b) in self.0.iter().zip(self.1) {
            ones[0] += u64::from(a.count_ones());
            ones[1] += u64::from(b.count_ones());
            ones[2] += u64::from((a & b).count_ones());
        }
        ones
    }
}

/// Set algebra. Both filters must have one shape, and their keys one hashing, which only
/// [`Keyed::merge`](crate::Keyed::merge) can check.
impl Bloom {
    /// The number of distinct keys as [`estimate_len`](Bloom::estimate_len) has it, with its
    /// standard error.
    ///
    /// ```
    /// use tamis::{Bloom, Config, Keyed};
    ///
    /// let ids: Keyed<Bloom> = Keyed::build(&Config::new(10_000), 0..10_000u64)?;
    /// let size = ids.filter().estimate().expect("not all bits are set");
    /// assert!((size.keys - 10_000.0).abs() < 6.0 * size.sd && size.sd < 40.0);
    /// # Ok::<(), tamis::BuildError>(())
    /// ```
    pub fn estimate(&self) -> Option<Estimate> {
        estimate(self.bits(), self.ones(), self.k())
    }

    /// The filter of all keys of both: the same bytes as if they had been inserted into one.
    ///
    /// # Errors
    ///
    /// [`MergeError`] when the shapes differ.
    pub fn union(&self, other: &Bloom) -> Result<Bloom, MergeError> {
        let mut union = self.clone();
        union.merge(other)?;
        Ok(union)
    }

    /// A filter that contains every key that is in both, and what both take for a key.
    ///
    /// It is *not* the filter of the intersection, but one with more bits: its rate is at most
    /// that of either, yet above that of a filter of the common keys alone.
    /// [`len`](crate::Filter::len) is the estimate of [`Overlap::intersection`], rounded, as
    /// nobody counted; where it cannot be made, the smaller of the two counts. It is 0 only where
    /// no bit is set.
    ///
    /// # Errors
    ///
    /// [`MergeError`] when the shapes differ.
    ///
    /// ```
    /// use tamis::{Bloom, Config, Filter, Keyed};
    ///
    /// let config = Config::new(2000).fpr(0.01);
    /// let a: Keyed<Bloom> = Keyed::build(&config, 0..2000u64)?;
    /// let b: Keyed<Bloom> = Keyed::build(&config, 1500..3000u64)?;
    /// let both = a.filter().intersection(b.filter())?;
    /// assert!((1500..2000u64).all(|id| both.contains(a.hash(&id))));
    /// assert!((450..550).contains(&both.len()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn intersection(&self, other: &Bloom) -> Result<Bloom, MergeError> {
        let overlap = self.overlap(other)?;
        let mut both = self.clone();
        for (ours, theirs) in both.words.make_mut().iter_mut().zip(&*other.words) {
            *ours &= theirs;
        }
        let fewer = self.len.min(other.len);
        both.len = overlap
            .intersection()
            .map_or(fewer, |estimate| estimate.keys.round() as u64)
            .max(u64::from(overlap.ones[2] > 0));
        Ok(both)
    }

    /// How much two filters have in common, by one pass over both.
    ///
    /// # Errors
    ///
    /// [`MergeError`] when the shapes differ.
    ///
    /// ```
    /// use tamis::{Bloom, Config, Keyed};
    ///
    /// let config = Config::new(50_000).fpr(0.01);
    /// let monday: Keyed<Bloom> = Keyed::build(&config, 0..50_000u64)?;
    /// let tuesday: Keyed<Bloom> = Keyed::build(&config, 40_000..90_000u64)?;
    /// let overlap = monday.filter().overlap(tuesday.filter())?;
    /// let both = overlap.intersection().expect("neither is saturated");
    /// assert!((both.keys - 10_000.0).abs() < 6.0 * both.sd);
    /// assert!((overlap.containment().expect("as above") - 0.2).abs() < 0.02);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn overlap(&self, other: &Bloom) -> Result<Overlap, MergeError> {
        MergeError::unless_equal("bits", self.bits(), other.bits())?;
        MergeError::unless_equal("k", u64::from(self.k), u64::from(other.k))?;
        Ok(Overlap {
            bits: self.bits(),
            k: self.k,
            ones: simd::dispatch(CountOnes(&self.words, &other.words)),
        })
    }
}

impl Halve for Bloom {
    /// The same keys in half the bits, as if they had been inserted there: a filter that turned
    /// out too large shrinks, or fits a smaller one to be merged with. The rate rises to that of
    /// the new fill, with the same `k`.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the number of bits is not a multiple of 128, or memory is short.
    ///
    /// ```
    /// use tamis::{Bloom, Config, Halve, Kind};
    ///
    /// let mut filter = Bloom::build(&Config::new(100_000), &mut [])?;
    /// while let Ok(half) = filter.halve() {
    ///     filter = half;
    /// }
    /// assert_ne!(filter.bits() % 128, 0);
    /// # Ok::<(), tamis::BuildError>(())
    /// ```
    fn halve(&self) -> Result<Bloom, BuildError> {
        if !self.bits().is_multiple_of(128) {
            let expected = "a multiple of 128, to be halved";
            return Err(BuildError::parameter("bits", self.bits(), expected));
        }
        let mut words = Buf::zeroed(self.bits() / 128)?;
        let pairs = self.words.as_chunks::<2>().0;
        for (half, [low, high]) in words.make_mut().iter_mut().zip(pairs) {
            *half = even_bits(low | low >> 1) | even_bits(high | high >> 1) << 32;
        }
        Ok(Bloom {
            words,
            k: self.k,
            len: self.len,
        })
    }
}

/// The bits of even number, packed into the low half.
fn even_bits(word: u64) -> u64 {
    let mut x = word & 0x5555_5555_5555_5555;
    x = (x | x >> 1) & 0x3333_3333_3333_3333;
    x = (x | x >> 2) & 0x0F0F_0F0F_0F0F_0F0F;
    x = (x | x >> 4) & 0x00FF_00FF_00FF_00FF;
    x = (x | x >> 8) & 0x0000_FFFF_0000_FFFF;
    (x | x >> 16) & 0xFFFF_FFFF
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::filter::{Filter, Insert};

    fn of_shape(bits: u64, k: u32, hashes: impl IntoIterator<Item = u64>) -> Bloom {
        let words = Buf::zeroed(bits / 64).unwrap();
        let mut filter = Bloom { words, k, len: 0 };
        hashes.into_iter().for_each(|h| filter.insert(h).unwrap());
        filter
    }

    /// Two sets of 50 000 keys with so many in common, in 2²⁰ bits at k = 7.
    fn pair(seed: u64, common: u64) -> Overlap {
        let keys = |from: u64| (from..from + 50_000).map(move |i| mix64(seed << 32 | i));
        let ours = of_shape(1 << 20, 7, keys(0));
        ours.overlap(&of_shape(1 << 20, 7, keys(50_000 - common)))
            .unwrap()
    }

    #[test]
    fn estimates_are_as_near_as_their_standard_error_says() {
        // Common keys, and the deviation of a simulation of the formulas: (mean − truth) 0 to
        // −15.
        for (common, simulated, cosine) in
            [(0, 60.0, 0.284), (5000, 50.0, 0.345), (25_000, 32.0, 0.612)]
        {
            let pairs: Vec<Overlap> = (1..=12).map(|seed| pair(seed, common)).collect();
            let mut squares = 0.0;
            for overlap in &pairs {
                let truth = common as f64;
                let both = overlap.intersection().unwrap();
                let union = overlap.union().unwrap();
                assert!(
                    (both.raw - truth).abs() < 4.0 * both.sd,
                    "{common}: {both:?}"
                );
                assert!(
                    (union.raw - (100_000.0 - truth)).abs() < 4.0 * union.sd,
                    "{union:?}"
                );
                for side in [overlap.ours().unwrap(), overlap.theirs().unwrap()] {
                    assert!((side.raw - 50_000.0).abs() < 4.0 * side.sd, "{side:?}");
                }
                assert!(
                    (both.sd / simulated - 1.0).abs() < 0.2,
                    "{common}: {}",
                    both.sd
                );
                assert!(both.keys >= 0.0 && both.keys <= 50_500.0);
                squares += (both.raw - truth).powi(2) / both.sd.powi(2);
                let near = |got: Option<f64>, truth: f64| (got.unwrap() - truth).abs() < 0.005;
                assert!(near(overlap.dot_raw(), cosine), "{:?}", overlap.dot_raw());
                assert!(near(overlap.dot_corrected(), truth / 50_000.0));
                assert!(near(overlap.jaccard(), truth / (100_000.0 - truth)));
                assert!(near(overlap.containment(), truth / 50_000.0));
            }
            // χ² of 12 at 1e-4 on both sides.
            assert!((1.9..39.2).contains(&squares), "{common}: {squares}");
        }
    }

    #[test]
    fn ratios_scatter_as_their_standard_errors_say() {
        const PAIRS: u64 = 600;
        for common in [200u64, 700, 1400] {
            let mut squares = [0.0; 3];
            for seed in 1..=PAIRS {
                let keys = |from: u64| (from..from + 1500).map(move |i| mix64(seed << 32 | i));
                let ours = of_shape(1 << 14, 5, keys(0));
                let theirs = of_shape(1 << 14, 5, keys(1500 - common));
                let overlap = ours.overlap(&theirs).unwrap();
                let share = common as f64 / 1500.0;
                let jaccard = common as f64 / (3000 - common) as f64;
                for (sum, (got, sd, truth)) in squares.iter_mut().zip([
                    (overlap.dot_corrected(), overlap.dot_corrected_sd(), share),
                    (overlap.containment(), overlap.containment_sd(), share),
                    (overlap.jaccard(), overlap.jaccard_sd(), jaccard),
                ]) {
                    *sum += ((got.unwrap() - truth) / sd.unwrap()).powi(2);
                }
            }
            // χ² of 600 has the deviation √1200: five of them.
            for (i, sum) in squares.into_iter().enumerate() {
                let far = (sum - PAIRS as f64).abs() / (2.0 * PAIRS as f64).sqrt();
                assert!(far < 5.0, "{common}, ratio {i}: {sum}");
            }
        }
    }

    #[test]
    fn full_and_empty_filters_have_no_ratio_instead_of_infinity() {
        let empty = of_shape(128, 3, []);
        let mut full = of_shape(128, 3, []);
        full.words.make_mut().fill(u64::MAX);
        let overlap = empty.overlap(&full).unwrap();
        assert_eq!(overlap.ours().unwrap().raw, 0.0);
        assert_eq!(
            (overlap.theirs(), overlap.union(), overlap.intersection()),
            (None, None, None)
        );
        assert_eq!(
            (
                overlap.dot_raw(),
                overlap.dot_corrected(),
                overlap.jaccard()
            ),
            (None, None, None)
        );
        let nothing = empty.overlap(&empty).unwrap();
        assert_eq!((nothing.jaccard(), nothing.containment()), (None, None));
        assert_eq!(full.intersection(&full).unwrap().len(), 1);
        assert_eq!(full.intersection(&empty).unwrap().len(), 0);
        // Two keys that share a bit by chance: something is in, so it is not empty.
        let one = |hash| of_shape(64, 3, [mix64(hash)]);
        let meets = |&i: &u64| one(0).overlap(&one(i)).unwrap().ones[2] == 1;
        let both = one(0)
            .intersection(&one((1..).find(meets).unwrap()))
            .unwrap();
        assert!(both.len() == 1 && !both.is_empty() && both.ones() == 1);
    }

    #[test]
    fn unions_and_intersections_hold_what_they_must() {
        let keys = |from: u64| (from..from + 3000).map(mix64);
        let (a, b) = (
            of_shape(32_768, 5, keys(0)),
            of_shape(32_768, 5, keys(2000)),
        );
        let union = a.union(&b).unwrap();
        assert_eq!(
            &*union.words,
            &*of_shape(32_768, 5, (0..5000).map(mix64)).words
        );
        let both = a.intersection(&b).unwrap();
        assert!((2000..3000).all(|i| both.contains(mix64(i))));
        assert!(
            both.fpr() < a.fpr() && (800..1200).contains(&both.len()),
            "{}",
            both.len()
        );
        let other = of_shape(32_704, 5, []);
        for error in [a.union(&other), a.intersection(&other)] {
            assert!(
                error
                    .unwrap_err()
                    .to_string()
                    .contains("bits (32768 here, 32704 there)")
            );
        }
        assert!(a.overlap(&of_shape(32_768, 6, [])).is_err());
    }

    #[test]
    fn a_halved_filter_is_the_one_of_half_the_size() {
        for words in [2u64, 6, 200, 1000] {
            let mut filter = of_shape(words * 64, 4, (0..500).map(mix64));
            while let Ok(half) = filter.halve() {
                let direct = of_shape(filter.bits() / 2, 4, (0..500).map(mix64));
                assert_eq!(
                    (&*half.words, half.len(), half.k()),
                    (&*direct.words, 500, 4)
                );
                filter = half;
            }
            let error = filter.halve().unwrap_err().to_string();
            assert!(error.contains("multiple of 128"), "{error}");
        }
    }
}
