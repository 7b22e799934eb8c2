//! The counting Bloom filter: a Bloom filter of small counters, from which keys can be taken out again.
//!
//! # The idea
//!
//! ```text
//!                      x₀      x₁          x₂                    as in a Bloom filter: ⌊x·m / 2⁶⁴⌋
//!                      ↓       ↓           ↓
//!   m counters  … 0 0  2  0 1  1  0 0 3 0  1  0 1 0 …            4 bits each; 15 stays 15
//!   m bits      … 0 0  1  0 1  1  0 0 1 0  1  0 1 0 …            the Bloom filter of the same keys
//! ```
//!
//! Where a Bloom filter sets a bit, this one adds 1 to a counter; to remove a key, take the 1 away again. A key may be
//! present when none of its counters is zero, so the rate is that of the Bloom filter whose bits say which counters are
//! not zero. [`to_bloom`](Counting::to_bloom) makes that filter, byte for byte the one that the same keys would have
//! built. [`CountingPair`](crate::CountingPair) keeps it beside the counters, for lookups of a quarter of the memory.
//!
//! # A counter that is full
//!
//! A counter that has reached 15 is never changed again: to take 1 away would forget that more keys may need it, and
//! deny one of them some day. With distinct keys that does not happen (7·10⁻¹⁷ a counter at capacity,
//! [`counting_overflow`](crate::math::counting_overflow)). It does happen when one key is inserted 15 times or more. That
//! key then stays, however often it is removed; [`saturated`](Counting::saturated) says how many counters are so stuck,
//! and [`fpr`](Filter::fpr) counts them. Give such data wider counters (`counter_bits`).
//!
//! # Counting
//!
//! The least of a key's counters is no fewer than its copies, and more with the probability of a false positive. When
//! even the least is saturated, nothing bounds the copies, and [`count`](Count::count) says so: `u64::MAX`. A lower bound
//! there is none, whatever is often said: the copies may all have been removed again, without a trace.
//!
//! # Cost
//!
//! Four times the Bloom filter: 38.37 bits per key at 1 %, 46.17 at 0.39 %, almost six times the least possible. Inserting
//! never fails. Merging adds the counters. A lookup reads up to `k` lines, an insertion as many and writes them.
//!
//! # When to choose it
//!
//! When the Bloom filter that it contains is what others need (a proxy tells its neighbours what it caches), or when
//! counters must be added. Otherwise [`Cuckoo`](crate::Cuckoo) or [`TinySetRemovable`](crate::TinySetRemovable) remove
//! keys in a quarter of the space, and [`VariableIncrement`](crate::VariableIncrement) in two thirds of it.
//!
//! # Removing what is not in
//!
//! The counters of a false positive belong to others; taking from them may deny a member later. A key that the filter
//! denies is refused. A key whose counters are all saturated is never denied: once all its copies were removed it can
//! be "removed" once more, which takes no counter down but [`len`](Filter::len), as long as that is not 0. That
//! removals *must* lead to false negatives is not so: only that misuse does, or taking from a saturated counter.
//!
//! # Bibliography
//!
//! - Fan, Cao, Almeida, Broder, *Summary cache: a scalable wide-area web cache sharing protocol*, 2000: counters of four
//!   bits, and why four are enough for distinct keys.
//! - Bonomi et al., *An improved construction for counting Bloom filters*, 2006: how much less space does the same.

use std::ops::RangeInclusive;

use crate::bloom::Bloom;
use crate::bloom::counters::{Counters, K};
use crate::buf::Buf;
use crate::config::{Config, Param};
use crate::error::{BuildError, DecodeError, Full, MergeError};
use crate::filter::{Count, Filter, Insert, Kind, Merge, Remove};
use crate::format::{Decoder, Encoder};
use crate::lookup::Batch;

/// A counting Bloom filter: insert, remove, count up to 14, merge, and give the Bloom filter of its keys.
///
/// ```
/// use tamis::{Config, Counting, Filter, Keyed};
///
/// let mut cached: Keyed<Counting> = Keyed::new(&Config::new(1000).fpr(0.01))?;
/// cached.insert("/index.html")?;
/// cached.insert("/index.html")?;
/// assert_eq!(cached.count("/index.html"), 2);
/// assert!(cached.remove("/index.html") && cached.contains("/index.html"));
///
/// let summary = cached.filter().to_bloom()?;
/// assert!(summary.contains(cached.hash("/index.html")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Counting {
    counters: Counters,
    len: u64,
}

/// Widths of a counter: one bit cannot count.
const WIDTHS: RangeInclusive<u64> = 2..=16;
const DEFAULT_WIDTH: u32 = 4;

impl Counting {
    /// How many counters there are.
    pub fn counters(&self) -> u64 {
        self.counters.len()
    }

    /// How many counters a key has.
    pub fn k(&self) -> u32 {
        self.counters.k()
    }

    /// Bits of a counter.
    pub fn counter_bits(&self) -> u32 {
        self.counters.width()
    }

    /// How many counters have reached their greatest value, which they keep whatever is removed.
    ///
    /// While there are none, removing every key leaves the filter as it was when it was new. Reads the whole filter.
    pub fn saturated(&self) -> u64 {
        self.counters.saturated()
    }

    /// The Bloom filter of the keys that are in, equal to the one that they would have built.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the system has no memory for it.
    pub fn to_bloom(&self) -> Result<Bloom, BuildError> {
        let mut words = Buf::<u64>::zeroed(self.counters() / 64)?;
        let mut counters = self.counters.iter();
        for word in words.make_mut() {
            for (bit, counter) in (0..64).zip(&mut counters) {
                *word |= u64::from(counter != 0) << bit;
            }
        }
        Ok(Bloom::from_parts(words, self.k(), self.len))
    }

    /// Takes out one copy of a hash, and tells which counters have become zero; `false` if it is not in.
    #[inline]
    pub(super) fn take(&mut self, hash: u64, emptied: impl FnMut(u64)) -> bool {
        // With nothing in, only saturated counters can be left of what was.
        if self.len == 0 || !self.counters.holds(hash) {
            return false;
        }
        self.counters.take(hash, emptied);
        self.len -= 1;
        true
    }
}

impl Filter for Counting {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.counters.holds(hash)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.counters.size_in_bytes()
    }

    fn fpr(&self) -> f64 {
        self.counters.fpr()
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        self.counters.prefetch(hash);
    }

    fn look_up(&self, batch: Batch<'_>) {
        self.counters.look_up(batch);
    }
}

impl Insert for Counting {
    /// Never refuses: a counter that is full stays as it is.
    #[inline(always)]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        self.counters.add(hash);
        self.len = self.len.saturating_add(1);
        Ok(())
    }
}

impl Remove for Counting {
    fn remove(&mut self, hash: u64) -> bool {
        self.take(hash, |_| ())
    }
}

impl Count for Counting {
    /// The least of the hash's counters; `u64::MAX` where all are saturated, as then no number is too high.
    fn count(&self, hash: u64) -> u64 {
        self.counters.bound(hash)
    }
}

impl Merge for Counting {
    /// Adds the counters: byte for byte the filter of all keys of both.
    fn merge(&mut self, other: &Counting) -> Result<(), MergeError> {
        self.counters.merge(&other.counters)?;
        self.len = self.len.saturating_add(other.len);
        Ok(())
    }
}

impl Kind for Counting {
    const ID: u16 = 15;
    const NAME: &'static str = "counting";
    const ABOUT: &'static str =
        "a Bloom filter that forgets keys, and gives the plain one of those left";
    const SOURCE: &'static str = "bloom/counting.rs";
    const PARAMS: &'static [Param] = &[
        K,
        Param {
            name: "counter_bits",
            about: "bits of a counter, 2 to 16; default: 4",
        },
    ];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Counting, BuildError> {
        let (keys, fpr) = config.check::<Counting>(hashes)?;
        let mut filter = Counting {
            counters: Counters::sized(config, keys, fpr, WIDTHS, DEFAULT_WIDTH)?,
            len: 0,
        };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        self.counters.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Counting, DecodeError> {
        Ok(Counting {
            counters: Counters::decode(input, WIDTHS)?,
            len: input.len(),
        })
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }

    fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        Some(self)
    }

    fn as_count(&self) -> Option<&dyn Count> {
        Some(self)
    }

    fn try_merge(&mut self, other: &Counting) -> Option<Result<(), MergeError>> {
        Some(self.merge(other))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::bits::mix64;
    use crate::{Hashing, Keyed, math};

    fn of(config: &Config) -> Counting {
        Counting::build(config, &mut []).unwrap()
    }

    fn of_shape(counters: u64, k: u32, width: u32) -> Counting {
        Counting {
            counters: Counters::zeroed(counters, k, width).unwrap(),
            len: 0,
        }
    }

    /// What a file would hold of a filter's array.
    fn values(filter: &Counting) -> Vec<u64> {
        filter.counters.iter().collect()
    }

    #[test]
    fn sizes_and_rates_are_those_of_the_formula() {
        // spec: 38.37 bits/key at 1 % with k = 7, 46.17 at 0.39 %.
        for (fpr, k, bits_per_key) in [(0.01, 7, 38.37), (1.0 / 256.0, 8, 46.17)] {
            let n = 1_000_000;
            let mut filter = of(&Config::new(n).fpr(fpr));
            assert_eq!(filter.k(), k);
            let got = filter.size_in_bytes() as f64 * 8.0 / n as f64;
            assert!((got / bits_per_key - 1.0).abs() < 0.001, "{got}");
            let members: Vec<u64> = (0..n).map(mix64).collect();
            filter.insert_batch(&members).unwrap();
            let queries = 4_000_000;
            let hits = (0..queries).filter(|i| filter.contains(mix64(1 << 40 | i)));
            let exact = math::bloom_fpr(filter.counters(), n, k);
            let (low, high) = math::binomial_interval(queries, exact, 1e-9);
            let hits = hits.count() as u64;
            assert!((low..=high).contains(&hits), "{hits}, {low} to {high}");
            // 9.6 million counters at 7.1e-17 each.
            assert_eq!(filter.saturated(), 0);
        }
    }

    #[test]
    fn a_key_that_saturates_its_counters_stays() {
        let mut filter = of(&Config::new(1000));
        let key = mix64(1);
        for copies in 1..=20u64 {
            filter.insert(key).unwrap();
            let told = if copies < 15 { copies } else { u64::MAX };
            assert_eq!(filter.count(key), told);
        }
        assert_eq!((filter.len(), filter.saturated()), (20, 7));
        for _ in 0..20 {
            assert!(filter.remove(key));
        }
        assert!(filter.contains(key) && filter.is_empty());
        assert!(!filter.remove(key), "nothing is in");
        assert_eq!((filter.len(), filter.saturated()), (0, 7));
        // The rate knows what is stuck.
        let stuck: f64 = 7.0 / filter.counters() as f64;
        assert_eq!(filter.fpr(), stuck.powi(7));
    }

    #[test]
    fn a_place_that_comes_twice_counts_once() {
        // Eight counters and five places a key: most keys meet themselves.
        for seed in 0..2000 {
            let mut filter = of_shape(8, 5, 4);
            let key = mix64(seed);
            for copies in 1..15 {
                filter.insert(key).unwrap();
                assert_eq!(filter.count(key), copies);
                assert!(values(&filter).iter().all(|&c| c == 0 || c == copies));
            }
            for _ in 1..15 {
                assert!(filter.remove(key));
            }
            assert!(values(&filter).iter().all(|&c| c == 0));
        }
    }

    #[test]
    fn what_is_denied_is_not_removed() {
        let mut filter = of(&Config::new(1000));
        (0..1000).for_each(|i| filter.insert(mix64(i)).unwrap());
        let before = values(&filter);
        for hash in (5000..6000).map(mix64) {
            assert!(filter.contains(hash) || !filter.remove(hash));
        }
        assert_eq!(values(&filter), before);
        assert_eq!(filter.len(), 1000);
    }

    #[test]
    fn a_million_steps_agree_with_a_multiset_and_leave_nothing() {
        // Two bits saturate in earnest, four hardly ever at twice the capacity, eight never.
        for (width, may_stick) in [(2u64, true), (4, false), (8, false)] {
            let mut filter = of(&Config::new(1000).set("counter_bits", width));
            let fresh = values(&filter);
            let mut model: HashMap<u64, u64> = HashMap::new();
            let mut held: Vec<u64> = Vec::new();
            for step in 0..350_000u64 {
                let draw = mix64(step << 8 | width);
                let grow = if step / 20_000 % 2 == 0 { 55 } else { 45 };
                if draw % 100 < grow && held.len() < 2000 {
                    let key = mix64(draw >> 32 & 0xFFF);
                    if model.get(&key).is_some_and(|&copies| copies >= 2) {
                        continue;
                    }
                    filter.insert(key).unwrap();
                    *model.entry(key).or_default() += 1;
                    held.push(key);
                } else if !held.is_empty() {
                    let key = held.swap_remove((draw >> 32) as usize % held.len());
                    assert!(filter.remove(key));
                    if let Some(copies) = model.get_mut(&key) {
                        *copies -= 1;
                    }
                }
                if step % 10_000 == 0 {
                    for (&key, &copies) in &model {
                        assert!(filter.count(key) >= copies);
                        assert!(copies == 0 || filter.contains(key));
                    }
                    assert_eq!(filter.len(), held.len() as u64);
                }
            }
            held.iter().for_each(|&key| assert!(filter.remove(key)));
            assert!(filter.is_empty());
            assert_eq!(filter.saturated() > 0, may_stick, "{width} bits");
            assert_eq!(values(&filter) == fresh, !may_stick, "{width} bits");
            let left = filter.counters.iter().filter(|&c| c != 0).count() as u64;
            assert_eq!(left, filter.saturated(), "only what is stuck is left");
        }
    }

    #[test]
    fn the_bloom_filter_in_it_is_the_one_that_its_keys_build() {
        let config = Config::new(3000).fpr(0.003);
        let mut filter = of(&config);
        (0..4000).for_each(|i| filter.insert(mix64(i)).unwrap());
        (0..1000).for_each(|i| assert!(filter.remove(mix64(i))));
        let mut left: Vec<u64> = (1000..4000).map(mix64).collect();
        let built = Bloom::build(&config, &mut left).unwrap();
        let reduced = filter.to_bloom().unwrap();
        let bytes = |bloom: Bloom| {
            let keyed = Keyed::from_filter(bloom, Hashing::default(), &config).unwrap();
            keyed.to_bytes()
        };
        assert!(bytes(built) == bytes(reduced.clone()));
        assert_eq!(filter.fpr(), reduced.fpr());
    }

    #[test]
    fn merged_counters_stop_at_the_greatest() {
        let config = Config::new(100);
        let (mut a, mut b) = (of(&config), of(&config));
        let (often, once) = (mix64(1), mix64(2));
        (0..9).for_each(|_| a.insert(often).unwrap());
        (0..8).for_each(|_| b.insert(often).unwrap());
        b.insert(once).unwrap();
        a.merge(&b).unwrap();
        assert_eq!((a.len(), a.count(once)), (18, 1));
        assert_eq!(a.count(often), u64::MAX, "17 copies were inserted");
        assert!((0..17).all(|_| a.remove(often)) && a.contains(often));
        assert!(a.remove(once) && !a.contains(once));
    }
}
