//! The Bloom filter, as Bloom described it in 1970: `k` bits anywhere in one array.
//!
//! The essay is at [`Bloom`].

use crate::bits::{fastrange, mix64, positions, remix, spread};
use crate::bloom::{BitWords, insert_all};
use crate::buf::Buf;
use crate::config::{Config, Param};
use crate::error::{BuildError, BuildErrorKind, DecodeError, Full, MergeError, NoMemory};
use crate::filter::{Filter, Insert, Kind, Merge};
use crate::format::{Decoder, Encoder};
use crate::lookup::{self, Round};
use crate::math;
use crate::option;
use crate::simd::{self, Table, TableMut};

/// The classic Bloom filter: `k` bits anywhere in an array of `m`. Insert, merge, size estimate.
///
/// ```
/// use tamis::{Bloom, Config, Keyed};
///
/// let mut seen: Keyed<Bloom> = Keyed::new(&Config::new(1000).fpr(0.01))?;
/// seen.insert("alice")?;
/// assert!(seen.contains("alice"));
/// assert!(!seen.contains("bob"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///             x₀        x₁             x₂         x = the hash, then remixed for every probe
///              ↓         ↓              ↓         bit = ⌊x·m / 2⁶⁴⌋
///   m bits  …0010000100001000010110000001000110…  a multiple of 64
/// ```
///
/// A key sets its `k` bits. To look it up, test them and stop at the first 0. At the best `k`
/// half of the bits are set when the filter holds what it was built for: an absent key then
/// passes each test with probability ½ and is refused after two probes on average, while a
/// present key needs all `k`, each in a cache line of its own.
///
/// # Where the bits lie
///
/// The classic shortcut takes two numbers a, b from one hash and uses a + i·b mod m. It is only
/// asymptotically as good as independent bits: at m = 10⁴ and k = 14 it doubles the
/// false-positive rate. Here every probe multiplies and folds the whole 64-bit state, x ← y ⊕ (y
/// ≫ 32) with y = x·φ, which measures like independent probes at every size. The index is the
/// high half of a 128-bit product, so no range is favoured and no array is too long.
///
/// # Cost
///
/// m = n·log₂(1/ε)/ln 2 bits, 44 % above the lower bound. Inserting past the capacity never
/// fails; it raises the rate, which [`fpr`](Filter::fpr) reports from the bits that are set.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `k` | 1 to 64 | the smallest filter for the rate | bits that a key sets |
///
/// # When to choose it
///
/// When filters must be united, intersected or sized without their keys, or when every bit counts
/// at a rate above 1 % and speed does not. For speed take
/// [`SplitBlock512`](crate::SplitBlock512); to remove keys, [`Cuckoo`](crate::Cuckoo); for a
/// fixed set, [`BinaryFuse8`](crate::BinaryFuse8).
///
/// Filters of this kind that are aggregated or distributed over the memories of a chip are the same
/// bits laid out for hardware: in software, one array is what a cache serves best.
///
/// # Bibliography
///
/// - Bloom, *Space/time trade-offs in hash coding with allowable errors*, 1970: the idea.
/// - Kirsch, Mitzenmacher, *Less hashing, same performance*, 2006: the two-number shortcut, and
///   why only asymptotically.
/// - Dillinger, Manolios, *Bloom filters in probabilistic verification*, 2004: what goes wrong
///   with it in practice.
/// - Bose et al., *On the false-positive rate of Bloom filters*, 2008: the classic formula is a
///   lower bound.
/// - Swamidass, Baldi, *Mathematical correction for fingerprint similarity measures*, 2007: the
///   number of keys from the number of ones.
#[derive(Clone, Debug)]
pub struct Bloom {
    pub(super) words: Buf<u64>,
    pub(super) k: u32,
    pub(super) len: u64,
}

/// The largest `k`: no rate that a 64-bit hash can promise needs more.
pub(super) const MOST_K: u32 = 64;
pub(super) const MOST_BITS: u64 = 1 << 63;

pub(super) const K: Param = Param {
    name: option::K.name,
    values: "1 to 64",
    default: "the smallest filter for the rate",
    about: "bits that a key sets",
};

/// How many bits a configuration asks for, and how many of them a key sets. `unit` is what a bit
/// is to the caller: a filter with counters in the place of bits has the same shape.
pub(super) fn shape(
    config: &Config,
    keys: u64,
    fpr: f64,
    unit: &'static str,
) -> Result<(u64, u32), BuildError> {
    let keys = keys.max(1);
    let expected = "a whole number from 1 to 64";
    let size = match config.param::<u32>(option::K.name, expected)? {
        Some(k) if !(1..=MOST_K).contains(&k) => {
            return Err(BuildError::parameter("k", k, expected));
        }
        Some(k) => math::bloom_bits(keys, fpr, k).map(|bits| (bits, k)),
        None => math::bloom_size(keys, fpr),
    };
    let needed = keys as f64 * math::bloom_bits_per_key(fpr);
    let too_large = BuildErrorKind::TooLarge {
        unit,
        needed,
        most: MOST_BITS,
    };
    size.ok_or_else(|| too_large.into())
}

impl Bloom {
    /// An empty filter of `bits` bits, a multiple of 64.
    pub(super) fn of_shape(bits: u64, k: u32) -> Result<Bloom, NoMemory> {
        Ok(Bloom::from_parts(Buf::zeroed(bits / 64)?, k, 0))
    }

    /// The filter that has these words, which `len` keys have set.
    pub(crate) fn from_parts(words: Buf<u64>, k: u32, len: u64) -> Bloom {
        Bloom { words, k, len }
    }

    pub(crate) fn words(&self) -> &Buf<u64> {
        &self.words
    }

    pub(crate) fn words_mut(&mut self) -> &mut [u64] {
        self.words.make_mut()
    }

    pub(super) fn set_len(&mut self, len: u64) {
        self.len = len;
    }

    /// Takes a key out that others may share bits with: the caller clears those that none does.
    pub(super) fn forget(&mut self) {
        self.len = self.len.saturating_sub(1);
    }

    pub(super) fn clear(&mut self, bit: u64) {
        self.words.make_mut()[(bit / 64) as usize] &= !(1 << (bit % 64));
    }

    #[inline(always)]
    fn view(&self) -> View<'_> {
        View::new(&self.words, self.k)
    }

    /// How many bits the array has.
    pub fn bits(&self) -> u64 {
        self.words.len() as u64 * 64
    }

    /// How many bits a key sets.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// How many bits are set.
    pub fn ones(&self) -> u64 {
        self.words
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }

    /// The number of distinct keys, estimated from the bits that are set; `None` when all are,
    /// and any number could be in.
    ///
    /// At half fill the standard error is 0.08 % of the keys for 2²⁰ bits and `k` = 7;
    /// [`estimate`](Bloom::estimate) gives it, and [`overlap`](Bloom::overlap) compares two
    /// filters.
    pub fn estimate_len(&self) -> Option<f64> {
        Some(math::bloom_estimate(self.bits(), self.ones(), self.k)).filter(|keys| keys.is_finite())
    }
}

/// The array, for looking up, of a filter or of one of a filter's groups or slices. The bit
/// ⌊x·m / 2⁶⁴⌋ of m lies in the word ⌊x·(m/64) / 2⁶⁴⌋, and the next six bits of that product tell
/// where.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    words: Table<'a, u64>,
    k: u32,
    /// What hashes are mixed with before the first probe, if they are.
    salt: Option<u64>,
}

impl<'a> View<'a> {
    /// An array without words is one without ones.
    #[inline(always)]
    pub(crate) fn new(words: &'a [u64], k: u32) -> View<'a> {
        View {
            words: Table::or(words, &[0]),
            k,
            salt: None,
        }
    }

    /// The same array for hashes that are mixed first.
    #[inline(always)]
    pub(crate) fn salted(self, salt: u64) -> View<'a> {
        View {
            salt: Some(salt),
            ..self
        }
    }
}

impl Round for View<'_> {
    #[inline(always)]
    fn bytes(self) -> usize {
        size_of_val(self.words.items())
    }

    #[inline(always)]
    fn probes(self) -> usize {
        self.k as usize
    }

    #[inline(always)]
    fn start(self, hash: u64) -> u64 {
        match self.salt {
            Some(salt) => mix64(hash.wrapping_add(salt)),
            None => hash,
        }
    }

    #[inline(always)]
    fn place<const MANY: bool>(self, state: u64) -> (u64, u64) {
        let words = self.words.items().len() as u64;
        let bit = if MANY {
            let (word, rest) = spread::<MANY>(state, words);
            word << 6 | rest >> 58
        } else {
            fastrange(state, 64 * words).0
        };
        (remix(state), bit)
    }

    #[inline(always)]
    fn prefetch(self, place: u64) {
        simd::prefetch(self.words.items(), (place / 64) as usize);
    }

    #[inline(always)]
    fn test(self, place: u64) -> u64 {
        self.words.items()[(place / 64) as usize] >> (place % 64) & 1
    }

    /// Without a check of the place, which arithmetic keeps inside.
    #[inline(always)]
    fn step(self, state: u64) -> (u64, u64) {
        let (word, _, rest) = self.words.at(state);
        (remix(state), word >> (rest >> 58) & 1)
    }
}

impl Filter for Bloom {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        lookup::sift(self.view(), hash)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.words.size_in_bytes()
    }

    fn fpr(&self) -> f64 {
        (self.ones() as f64 / self.bits() as f64).powi(self.k as i32)
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        for bit in positions(hash, self.bits(), self.k) {
            simd::prefetch(&self.words, (bit / 64) as usize);
        }
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::passes(Some(self.view()), hashes, out);
    }
}

impl Insert for Bloom {
    #[inline]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        if let Some(mut table) = TableMut::new(self.words.make_mut()) {
            let mut state = hash;
            for _ in 0..self.k {
                let (word, rest) = table.at(state);
                *word |= 1 << (rest >> 58);
                state = remix(state);
            }
        }
        self.len = self.len.saturating_add(1);
        Ok(())
    }
}

impl Merge for Bloom {
    /// Sets every bit that is set in either: byte for byte the filter of all keys of both.
    fn merge(&mut self, other: &Bloom) -> Result<(), MergeError> {
        MergeError::unless_equal("bits", self.bits(), other.bits())?;
        MergeError::unless_equal("k", u64::from(self.k), u64::from(other.k))?;
        for (ours, theirs) in self.words.make_mut().iter_mut().zip(&*other.words) {
            *ours |= theirs;
        }
        self.len = self.len.saturating_add(other.len);
        Ok(())
    }
}

impl Extend<u64> for Bloom {
    /// Inserts every hash; none is refused.
    ///
    /// ```
    /// use tamis::{Bloom, Config, Filter, Hashing, Kind};
    ///
    /// let hashing = Hashing::default();
    /// let mut filter = Bloom::build(&Config::new(1000), &mut [])?;
    /// filter.extend((0..1000).map(|id| hashing.hash(&id)));
    /// assert!((0..1000).all(|id| filter.contains(hashing.hash(&id))));
    /// # Ok::<(), tamis::BuildError>(())
    /// ```
    fn extend<I: IntoIterator<Item = u64>>(&mut self, hashes: I) {
        insert_all(self, hashes);
    }
}

impl BitWords for Bloom {
    fn parts(&self) -> (&[u64], u32) {
        (&self.words, self.k)
    }

    fn from_words(
        words: impl ExactSizeIterator<Item = u64>,
        k: u32,
        len: u64,
    ) -> Result<Bloom, BuildError> {
        let words = Buf::filled(words)?;
        Ok(Bloom { words, k, len })
    }

    #[inline(always)]
    fn bits_of(hash: u64, words: u64, k: u32) -> impl Iterator<Item = (usize, u64)> {
        positions(hash, words * 64, k).map(|bit| ((bit / 64) as usize, 1 << (bit % 64)))
    }

    fn has_shape(&self, words: u64, k: u32) -> Result<(), MergeError> {
        MergeError::unless_equal("bits", words * 64, self.bits())?;
        MergeError::unless_equal("k", u64::from(k), u64::from(self.k))
    }
}

impl Kind for Bloom {
    const ABOUT: &'static str = "the classic: merge and estimate sizes without the keys";
    const PARAMS: &'static [Param] = &[K];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Bloom, BuildError> {
        let (keys, fpr) = config.check::<Bloom>(hashes)?;
        let (bits, k) = shape(config, keys, fpr, "bits")?;
        let mut filter = Bloom::of_shape(bits, k)?;
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("bits", self.bits());
        out.param("k", u64::from(self.k));
        out.section(&self.words);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Bloom, DecodeError> {
        let bits = input.param_in("bits", 64..=MOST_BITS)?;
        let k = input.param_in("k", 1..=u64::from(MOST_K))? as u32;
        if !bits.is_multiple_of(64) {
            return Err(DecodeError::invalid("bits", bits, "a multiple of 64"));
        }
        let words = input.section("words", bits / 64)?;
        Ok(Bloom::from_parts(words, k, input.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_tests_the_bit_that_an_insertion_sets() {
        for words in [1, 3, 1000] {
            let words = Buf::filled((0..words).map(|i: usize| mix64(i as u64))).unwrap();
            let bits = words.len() as u64 * 64;
            let view = View::new(&words, 1);
            for state in (0..10_000).map(mix64).chain([0, u64::MAX]) {
                let bit = fastrange(state, bits).0;
                let expected = (remix(state), bit);
                assert_eq!(view.place::<false>(state), expected);
                assert_eq!(view.place::<true>(state), expected);
                let is_set = words[(bit / 64) as usize] >> (bit % 64) & 1;
                assert_eq!(view.test(bit), is_set);
            }
        }
    }

    #[test]
    fn sizes_are_those_of_the_formula() {
        // spec: 1 % takes k = 7 and 9.593 bits/key; 0.39 % takes k = 8 and 11.542.
        for (fpr, k, bits_per_key) in [(0.01, 7, 9.593), (1.0 / 256.0, 8, 11.542)] {
            let filter = Bloom::build(&Config::new(1_000_000).fpr(fpr), &mut []).unwrap();
            assert_eq!(filter.k(), k);
            let got = filter.bits() as f64 / 1e6;
            assert!((got - bits_per_key).abs() < 0.001, "{got}");
        }
    }

    #[test]
    fn probes_are_as_good_as_independent_ones() {
        // The shape in which the two-number shortcut doubles the rate: m ≈ 10⁴, n = 500, k = 14.
        // Independent probes give 6.86e-5 at m = 10 007. Mean over many filters, each compared
        // through its own fill.
        let (filters, queries) = (200u64, 200_000u64);
        let (mut hits, mut expected) = (0u64, 0.0);
        for f in 0..filters {
            let mut filter = Bloom::of_shape(10_048, 14).unwrap();
            for i in 0..500 {
                filter.insert(mix64(f << 32 | i)).unwrap();
            }
            hits += (0..queries)
                .filter(|q| filter.contains(mix64(1 << 63 | f << 32 | q)))
                .count() as u64;
            expected += filter.fpr() * queries as f64;
        }
        let (low, high) = math::binomial_interval(
            filters * queries,
            expected / (filters * queries) as f64,
            1e-9,
        );
        assert!(
            (low..=high).contains(&hits),
            "{hits} false positives, {low} to {high} expected"
        );
    }

    #[test]
    fn the_probes_of_a_key_fall_anywhere_in_any_range() {
        for bits in [
            64,
            192,
            3 << 30,
            (1 << 32) - 64,
            1 << 32,
            (1 << 32) + 64,
            1 << 34,
            (1 << 45) + 64,
        ] {
            let mut high = 0u64;
            for i in 0..10_000 {
                for at in positions(mix64(i), bits, 7) {
                    assert!(at < bits);
                    high += u64::from(at >= bits / 2);
                }
            }
            // 70 000 fair coins: six standard deviations are 794.
            assert!(
                (high as f64 - 35_000.0).abs() < 794.0,
                "{bits}: {high} in the upper half"
            );
        }
    }

    #[test]
    fn the_estimate_counts_distinct_keys() {
        let mut filter = Bloom::of_shape(1 << 20, 7).unwrap();
        assert_eq!(filter.estimate_len(), Some(0.0));
        for i in 0..100_000u64 {
            filter.insert(mix64(i)).unwrap();
            filter.insert(mix64(i)).unwrap();
        }
        let estimate = filter.estimate_len().unwrap();
        // One standard deviation is 81 keys; six are allowed.
        assert!((estimate - 100_000.0).abs() < 6.0 * 81.0, "{estimate}");
        assert_eq!(filter.len(), 200_000, "insertions are counted, repeats too");
        let mut full = Bloom::of_shape(64, 1).unwrap();
        full.words.make_mut()[0] = u64::MAX;
        assert_eq!(full.estimate_len(), None);
    }
}
