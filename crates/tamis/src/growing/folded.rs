//! The fuzzy-folded Bloom filter, with every bit counted: pairs of filters that are folded into
//! one array as they fill.
//!
//! The essay is at [`Folded`].

use crate::bits::positions;
use crate::buf::Buf;
use crate::config::{Config, Param};
use crate::error::{BuildError, BuildErrorKind, DecodeError, Full, FullKind};
use crate::filter::{Filter, Insert, Kind};
use crate::format::{Decoder, Encoder};
use crate::option;
use crate::{math, simd};

/// A Bloom filter that folds pairs of filters into levels as it fills, up to a set number.
/// Insert.
///
/// ```
/// use tamis::{Config, Filter, Folded, Keyed};
///
/// let mut seen: Keyed<Folded> = Keyed::new(&Config::new(10_000).fpr(0.01))?;
/// for i in 0..10_000u64 {
///     seen.insert(&i)?;
/// }
/// assert_eq!(seen.filter().folds(), 3);
/// assert!(seen.contains(&0u64) && seen.filter().fpr() < 0.011);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///   level 0   s buckets of 2 bits   AB AB AB AB AB AB AB AB        A full, B full: folded
///   level 1   s/2 buckets           AB AB AB AB                    A full, B full: folded
///   level 2   s/4 buckets           AB AB                          A takes the insertions, then B
/// ```
///
/// Two Bloom filters A and B of s bits are filled one after the other, each until it is half
/// full. Then they are *folded*: laid over one another into s buckets with the states none, A, B,
/// both. Two filters of half the size follow, and so on. Here A and B lie interleaved from the
/// start, so a fold moves nothing; it only begins the next level.
///
/// # Lookup and insert
///
/// A key has k places in level 0; its places in level j are those shifted right by j. A lookup
/// combines the k buckets of a level by *and*: what is left names the sides that have all of the
/// bits. The newest level is asked first, so there are k(f + 1) probes at most after f folds; the
/// published scheme, with its two open filters apart, needs k(f + 2). An insertion sets one bit
/// in each of its k buckets of the newest level.
///
/// # Cost, and a claim that cannot hold
///
/// The paper's abstract says that folding does not raise the error, that 1.9 times the keys of a
/// "space-optimised" Bloom filter fit at the same rate, in half the space. Count what is stored.
/// After f folds all levels together have 2 − 2⁻ᶠ times the buckets of the first, and hold 2 −
/// 2⁻ᶠ times its keys: 1.875 at f = 3. The factor 1.9 is this one, of keys for each bucket *of
/// the first level*. A bucket that keeps A and B apart has four states, and when both are half
/// full all four are equally likely: two bits, without redundancy. So the bits grow by the very
/// factor by which the keys do, and nothing is gained. A fold into one bit (A *or* B) does save
/// half; its fill is ¾ and its rate ¾ᵏ instead of ½ᵏ: 35.9 % for all levels at k = 7 and f = 3
/// (`math::or_folded_fpr`) where two bits give 6.08 % (`math::folded_fpr`).
///
/// No other encoding can do better, because no filter can: n keys at rate ε need n·log₂(1/ε)
/// bits. The best Bloom filter has 1.4427 times that, so in its bits any design at all holds at
/// most 1.4427 times its keys at the same rate. At 1 % it has 9.585 bits for a key; 1.9 keys in
/// them leave 5.04 bits each, and 2^−5.04 = 3.03 % is the least rate that is possible.
/// `size_by_formula` in the conformance suite holds every kind to this bound, by its own bits and
/// by its measured rate.
///
/// Each of the 2f + 2 sides errs by itself, so for a rate ε all together every one gets 1 − (1 −
/// ε)^(1/(2f+2)): 13.90 bits per key at 1 % and f = 3 (`math::folded_bits_per_key`), against 9.59
/// of one Bloom filter that is sized in advance.
///
/// # What would come nearest to the claim
///
/// A *compacting* filter: keys go into a table that can be listed, and when it is full its
/// fingerprints are built into a static filter, a *run*, of 1.075 log₂(1/ε) bits per key
/// ([`BinaryFuse8`](crate::BinaryFuse8) of arity 4, at any width). With 0.6 of the error for a
/// run of ⅞ of the keys, and the rest in a quotient table at load 0.95, it takes 8.27 bits per
/// key at 1 %: 1.16 times the keys of a Bloom filter. But a run cannot be listed, so it cannot be
/// merged with another, and ⅞ of the keys are in one run only if the table once held them all, at
/// 10.62 bits each. Runs of ½, ¼ and ⅛ of the keys, each with its share of the error, come to
/// 9.57 bits: at 1 % nothing is gained (at 2⁻¹⁶ 19.60 for 23.08 of Bloom).
/// [`Compacting`](crate::Compacting) is such a filter. Its table must give back fingerprints that
/// are long enough to build on, log₂ n + log₂(4/ε) bits, 29 for a million keys at 1 %. Only a
/// table that keeps the first log₂ n of them in a slot's or a chain's number can afford that.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `folds` | 0 to 16 | 3 | the most folds; fewer where a level would have less than 4096 bits |
/// | `k` | 1 to 64 | the smallest filter for the rate | bits that a key sets |
///
/// # When to choose it
///
/// To compare it. Its one merit is that memory is taken in steps that halve, so that a filter
/// filled to a quarter has taken half of it; [`Scalable`](crate::Scalable) grows without a limit,
/// and [`Bloom`](crate::Bloom) is smaller.
///
/// It does not merge. Side united with side, each would hold up to twice its keys, and every side
/// errs by itself: two filters that are half full would err at 9.6 % where 1 % was asked for.
///
/// # Bibliography
///
/// - Singh, Garg, Kaur, Batra, Kumar, Choo, *Fuzzy-folded Bloom filter-as-a-service for big data
///   storage in the cloud*, 2019: the procedure. How a bucket is encoded is not public; the two
///   bits are ours.
/// - Carter, Floyd, Gill, Markowsky, Wegman, *Exact and approximate membership testers*, 1978:
///   the bound.
#[derive(Clone, Debug)]
pub struct Folded {
    shape: Shape,
    /// From the largest on, at least one; the last takes the insertions.
    levels: Vec<Level>,
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Buckets of level 0; halved from level to level.
    buckets: u64,
    k: u32,
    /// The most folds.
    folds: u32,
    /// Keys of a side of level 0; halved likewise.
    side: u64,
}

#[derive(Clone, Debug)]
struct Level {
    /// Bucket i is bits 2i (A) and 2i + 1 (B).
    words: Buf<u64>,
    keys: [u64; 2],
}

const MOST_K: u32 = 64;
const MOST_FOLDS: u32 = 16;
const MOST_BUCKETS: u64 = 1 << 62;
/// A level is not worth a fold below this many bits.
const LEAST_BITS: u64 = 4096;
/// Buckets in a word.
const PER_WORD: u64 = 32;

impl Shape {
    /// The smallest filter for so many keys with as many of the folds as leave no level too
    /// small.
    fn new(keys: u64, fpr: f64, k: Option<u32>, most_folds: u32) -> Option<Shape> {
        let sized = |folds: u32| {
            let side_fpr = math::share_of_fpr(fpr, 2 * folds + 2);
            let cost = |k: &u32| math::bloom_bits_per_key_at(side_fpr, *k);
            let best = || (1..=math::MAX_K).min_by(|a, b| cost(a).total_cmp(&cost(b)));
            let k = k.or_else(best)?;
            // The last level decides: where the others are larger, their rate is as low or lower.
            let last = keys.div_ceil(2 * ((2 << folds) - 1)).max(1);
            let buckets = math::bloom_bits(last, side_fpr, k)?;
            (buckets <= MOST_BUCKETS >> folds).then_some(Shape {
                buckets: buckets << folds,
                k,
                folds,
                side: last << folds,
            })
        };
        let mut folds = most_folds;
        while folds > 0 && sized(folds)?.bits(folds) < LEAST_BITS {
            folds -= 1;
        }
        sized(folds)
    }

    /// Bits of a level.
    fn bits(&self, level: u32) -> u64 {
        2 * (self.buckets >> level)
    }
}

impl Level {
    fn new(shape: &Shape, level: u32) -> Result<Level, crate::error::NoMemory> {
        Ok(Level {
            words: Buf::zeroed(shape.bits(level) / 64)?,
            keys: [0, 0],
        })
    }

    /// Ones of the sides.
    fn ones(&self) -> [u64; 2] {
        const A: u64 = u64::MAX / 3;
        let ones = |mask: u64| {
            let count = |word: &u64| u64::from((word & mask).count_ones());
            self.words.iter().map(count).sum()
        };
        [ones(A), ones(!A)]
    }
}

/// The word and the shift of each bucket of a hash in a level: this filter's geometry.
#[inline]
fn probes(hash: u64, buckets: u64, k: u32) -> impl Iterator<Item = (usize, u32)> {
    positions(hash, buckets, k).map(|i| ((i / PER_WORD) as usize, 2 * (i % PER_WORD) as u32))
}

impl Folded {
    /// How many folds there were.
    pub fn folds(&self) -> u32 {
        self.levels.len() as u32 - 1
    }

    /// How many bits a key sets.
    pub fn k(&self) -> u32 {
        self.shape.k
    }

    /// Looks a hash up, and calls `probed` for every bucket that is read.
    #[inline]
    fn search(&self, hash: u64, mut probed: impl FnMut()) -> bool {
        self.levels.iter().rev().any(|level| {
            let words = &*level.words;
            let mut sides = 3;
            for (word, shift) in probes(hash, words.len() as u64 * PER_WORD, self.shape.k) {
                probed();
                sides &= words[word] >> shift;
                if sides == 0 {
                    return false;
                }
            }
            true
        })
    }

    /// The side of the newest level that has room, after a fold where neither has.
    fn open_side(&mut self) -> Result<usize, Full> {
        let level = self.folds();
        let side = self.shape.side >> level;
        let keys = self.levels[level as usize].keys;
        if let Some(open) = keys.iter().position(|&keys| keys < side) {
            return Ok(open);
        }
        let refused = |kind| Full::new(kind, self.len());
        if level == self.shape.folds {
            return Err(refused(FullKind::Capacity));
        }
        let next =
            Level::new(&self.shape, level + 1).map_err(|e| refused(FullKind::Memory(e.bytes)))?;
        if self.levels.try_reserve_exact(1).is_err() {
            return Err(Full::new(
                FullKind::Memory(size_of::<Level>() as u64),
                self.len(),
            ));
        }
        self.levels.push(next);
        Ok(0)
    }
}

impl Filter for Folded {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.search(hash, || ())
    }

    fn len(&self) -> u64 {
        let keys = self.levels.iter().flat_map(|level| level.keys);
        keys.fold(0, u64::saturating_add)
    }

    fn size_in_bytes(&self) -> usize {
        let arrays = self.levels.iter().map(|level| level.words.size_in_bytes());
        self.levels.capacity() * size_of::<Level>() + arrays.sum::<usize>()
    }

    fn fpr(&self) -> f64 {
        let mut denied = 1.0;
        for level in &self.levels {
            let buckets = level.words.len() as f64 * PER_WORD as f64;
            for ones in level.ones() {
                denied *= 1.0 - (ones as f64 / buckets).powi(self.shape.k as i32);
            }
        }
        1.0 - denied
    }

    /// Every line in the newest level; of the others the first.
    #[inline]
    fn prefetch(&self, hash: u64) {
        let last = self.levels.len() - 1;
        for (i, level) in self.levels.iter().enumerate() {
            let k = if i == last { self.shape.k } else { 1 };
            for (word, _) in probes(hash, level.words.len() as u64 * PER_WORD, k) {
                simd::prefetch(&level.words, word);
            }
        }
    }
}

impl Insert for Folded {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let side = self.open_side()?;
        let level = self.folds();
        let Level { words, keys } = &mut self.levels[level as usize];
        let words = words.make_mut();
        for (word, shift) in probes(hash, self.shape.buckets >> level, self.shape.k) {
            words[word] |= 1 << (shift + side as u32);
        }
        keys[side] = keys[side].saturating_add(1);
        Ok(())
    }
}

impl Kind for Folded {
    const ABOUT: &'static str =
        "the fuzzy fold with its bits counted: growth in halving steps, up to a limit";
    const PARAMS: &'static [Param] = &[
        Param {
            name: option::FOLDS.name,
            values: "0 to 16",
            default: "3",
            about: "the most folds; fewer where a level would have less than 4096 bits",
        },
        Param {
            name: option::K.name,
            values: "1 to 64",
            default: "the smallest filter for the rate",
            about: "bits that a key sets",
        },
    ];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Folded, BuildError> {
        let (keys, fpr) = config.check::<Folded>(hashes)?;
        let expected = "a whole number from 0 to 16";
        let folds = config
            .param::<u32>(option::FOLDS.name, expected)?
            .unwrap_or(3);
        if folds > MOST_FOLDS {
            return Err(BuildError::parameter("folds", folds, expected));
        }
        let expected = "a whole number from 1 to 64";
        let k = config.param::<u32>(option::K.name, expected)?;
        if let Some(k) = k.filter(|k| !(1..=MOST_K).contains(k)) {
            return Err(BuildError::parameter("k", k, expected));
        }
        let shape = Shape::new(keys, fpr, k, folds).ok_or(BuildErrorKind::TooLarge {
            unit: "bits",
            needed: keys as f64 * math::folded_bits_per_key(fpr, folds),
            most: 2 * MOST_BUCKETS,
        })?;
        let mut filter = Folded {
            shape,
            levels: vec![Level::new(&shape, 0)?],
        };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("buckets", self.shape.buckets);
        out.param("k", u64::from(self.shape.k));
        out.param("folds", u64::from(self.shape.folds));
        out.param("side", self.shape.side);
        let keys = self.levels.iter().flat_map(|level| level.keys);
        out.made(keys.flat_map(u64::to_le_bytes).collect());
        for level in &self.levels {
            out.section(&level.words);
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Folded, DecodeError> {
        let buckets = input.param_in("buckets", 64..=MOST_BUCKETS)?;
        let k = input.param_in("k", 1..=u64::from(MOST_K))? as u32;
        let folds = input.param_in("folds", 0..=u64::from(MOST_FOLDS))? as u32;
        let side = input.param_in("side", 1..=u64::MAX)?;
        let shape = Shape {
            buckets,
            k,
            folds,
            side,
        };
        if !buckets.is_multiple_of(64 << folds) || folds > 0 && shape.bits(folds) < LEAST_BITS {
            let expected = format!(
                "a multiple of {}, with {LEAST_BITS} bits in the last level",
                64u64 << folds
            );
            return Err(DecodeError::invalid("buckets", buckets, expected));
        }
        if !side.is_multiple_of(1 << folds) {
            let expected = format!("a multiple of {}", 1u64 << folds);
            return Err(DecodeError::invalid("side", side, expected));
        }
        let bytes = input.next_bytes();
        let rows = bytes / 16;
        if !(1..=u64::from(folds) + 1).contains(&rows) {
            let expected = format!("rows of 16 bytes, 1 to {}", folds + 1);
            return Err(DecodeError::invalid("the table of levels", bytes, expected));
        }
        let table = input.section::<u64>("the table of levels", rows * 2)?;
        let mut levels = Vec::with_capacity(rows as usize);
        for (level, &keys) in table.as_chunks::<2>().0.iter().enumerate() {
            let (newest, side) = (level as u64 + 1 == rows, side >> level);
            let [a, b] = keys;
            // A side is filled before the next is begun, and a level is begun with a key.
            let begun = a > 0 || level == 0;
            let in_order = a == side || newest && a < side && b == 0;
            let filled = b == side || newest && b < side;
            if !begun || !in_order || !filled {
                let expected = format!("sides filled one after the other, of {side} keys each");
                return Err(DecodeError::invalid("a level's keys", a, expected));
            }
            let words = input.section("a level", shape.bits(level as u32) / 64)?;
            levels.push(Level { words, keys });
        }
        let filter = Folded { shape, levels };
        if filter.len() != input.len() {
            let expected = format!("{}, the sum of the levels'", filter.len());
            return Err(DecodeError::invalid("keys", input.len(), expected));
        }
        Ok(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    #[test]
    fn three_folds_have_the_rate_and_the_bits_of_the_formula() {
        // Acceptance A15: k = 7 and 3 folds, full: 6.08 % and 10.10 real bits per key, at most
        // k(f + 2) probes.
        let n = 300_000;
        let config = Config::new(n).fpr(math::folded_fpr(7, 3));
        let mut filter = Folded::build(&config, &mut []).unwrap();
        assert_eq!((filter.k(), filter.shape.folds), (7, 3));
        let capacity: u64 = (0..4).map(|level| 2 * (filter.shape.side >> level)).sum();
        for i in 0..capacity {
            filter.insert(mix64(i)).unwrap();
        }
        assert_eq!(filter.insert(1).unwrap_err().kind(), FullKind::Capacity);
        assert_eq!(filter.folds(), 3);
        let bits_per_key = filter.size_in_bytes() as f64 * 8.0 / capacity as f64;
        assert!((bits_per_key - 10.10).abs() < 0.02, "{bits_per_key}");
        let (queries, mut most) = (1_000_000, 0);
        let mut hits = 0;
        for q in 0..queries {
            let mut probed = 0;
            hits += u64::from(filter.search(mix64(1 << 63 | q), || probed += 1));
            most = most.max(probed);
        }
        assert!(most <= 7 * (3 + 1) && most > 7, "{most} probes");
        let (low, high) = math::binomial_interval(queries, filter.fpr(), 1e-9);
        assert!((low..=high).contains(&hits), "{hits}: {low} to {high}");
        let ratio = hits as f64 / queries as f64 / math::folded_fpr(7, 3);
        assert!((0.97..1.03).contains(&ratio), "{ratio}");
    }

    #[test]
    fn no_key_is_lost_in_any_fold_and_the_levels_halve() {
        let config = Config::new(40_000).fpr(0.02).set("folds", 4);
        let mut filter = Folded::build(&config, &mut []).unwrap();
        let mut folds = 0;
        for i in 0..40_000 {
            filter.insert(mix64(i)).unwrap();
            if filter.folds() > folds {
                folds = filter.folds();
                assert!((0..=i).all(|i| filter.contains(mix64(i))), "fold {folds}");
            }
        }
        assert_eq!(folds, 4);
        assert!((0..40_000).all(|i| filter.contains(mix64(i))));
        for pair in filter.levels.windows(2) {
            assert_eq!(pair[0].words.len(), 2 * pair[1].words.len());
        }
        // Position j of level 0, halved, is position j of level 1.
        let both = positions(mix64(9), filter.shape.buckets, 64).zip(positions(
            mix64(9),
            filter.shape.buckets / 2,
            64,
        ));
        assert!({ both }.all(|(whole, half)| whole / 2 == half));
    }

    #[test]
    fn levels_below_4096_bits_are_not_made() {
        for (keys, folds) in [
            (1, 0),
            (300, 0),
            (1500, 1),
            (3000, 2),
            (6000, 3),
            (1_000_000, 3),
        ] {
            let filter = Folded::build(&Config::new(keys), &mut []).unwrap();
            let shape = filter.shape;
            assert_eq!(shape.folds, folds, "{keys}");
            assert!(folds == 0 || shape.bits(folds) >= LEAST_BITS);
        }
    }

    #[test]
    fn the_figures_of_the_essay() {
        let close =
            |got: f64, told: f64| assert!((got / told - 1.0).abs() < 0.0015, "{got}, {told}");
        close(math::or_folded_fpr(7, 3), 0.3595);
        close(math::folded_bits_per_key(0.01, 3), 13.90);
        close(math::bloom_bits_per_key(0.01) / 1.9, 5.04);
        close(2f64.powf(-math::bloom_bits_per_key(0.01) / 1.9), 0.0303);
        // The compacting filter: a table of quotients, and runs whose shares of the error go by
        // their keys.
        let bits = |fpr: f64| math::lower_bound_bits_per_key(fpr);
        let table = |fpr: f64| (bits(0.4 * fpr) + 2.125) / 0.95;
        let whole = |fpr: f64, runs: &[f64]| {
            let sealed: f64 = runs.iter().sum();
            let run = |keys: &f64| keys * 1.075 * bits(0.6 * fpr * keys / sealed);
            runs.iter().map(run).sum::<f64>() + (1.0 - sealed) * table(fpr)
        };
        close(table(0.01), 10.62);
        close(whole(0.01, &[0.875]), 8.27);
        close(math::bloom_bits_per_key(0.01) / 8.27, 1.16);
        close(whole(0.01, &[0.5, 0.25, 0.125]), 9.57);
        close(whole(2f64.powi(-16), &[0.5, 0.25, 0.125]), 19.60);
        close(math::bloom_bits_per_key(2f64.powi(-16)), 23.08);
        close(1e6f64.log2() + (4.0f64 / 0.01).log2(), 28.58);
        assert!(!math::is_possible(1900, 0.0302, 9585) && math::is_possible(1900, 0.0304, 9585));
    }
}
