//! The counting Bloom filters: a Bloom filter of small counters, which forget keys, or tell how
//! often each came.
//!
//! The essay is at [`CountingBy`].

use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use crate::bloom::counters::{Counters, K};
use crate::bloom::{Bloom, insert_all};
use crate::buf::Buf;
use crate::config::{Config, Param};
use crate::error::{BuildError, DecodeError, Full, MergeError};
use crate::filter::{Count, Filter, Insert, Kind, Merge, Remove};
use crate::format::{Decoder, Encoder};
use crate::kinds::Declared;
use crate::option;

/// Which of a key's counters an insertion increases: [`Every`] or [`Least`]. Sealed.
pub trait Rule: Copy + Debug + Send + Sync + sealed::Sealed + 'static {
    #[doc(hidden)]
    const ABOUT: &'static str;
    #[doc(hidden)]
    const PARAMS: &'static [Param];
    /// Bits of a counter where the configuration does not say.
    #[doc(hidden)]
    const WIDTH: u32;
    /// Whether only the least counters are increased.
    #[doc(hidden)]
    const LEAST: bool;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Every {}
    impl Sealed for super::Least {}
}

/// The rule of [`Counting`]: an insertion increases every counter of its key.
#[derive(Clone, Copy, Debug)]
pub struct Every;

/// The rule of [`CountingMinimal`]: an insertion increases only the least counters of its key.
#[derive(Clone, Copy, Debug)]
pub struct Least;

impl Rule for Every {
    const ABOUT: &'static str =
        "a Bloom filter that forgets keys and counts copies, and gives the plain one of those left";
    const PARAMS: &'static [Param] = &[
        K,
        Param {
            name: option::COUNTER_BITS.name,
            values: "2 to 32",
            default: "4",
            about: "bits of a counter: how many copies it counts",
        },
    ];
    const WIDTH: u32 = 4;
    const LEAST: bool = false;
}

impl Rule for Least {
    const ABOUT: &'static str =
        "how often each key came, never too low and seldom too high; keys stay";
    const PARAMS: &'static [Param] = &[
        K,
        Param {
            name: option::COUNTER_BITS.name,
            values: "2 to 32",
            default: "8",
            about: "bits of a counter: how many copies it counts",
        },
    ];
    const WIDTH: u32 = 8;
    const LEAST: bool = true;
}

/// A Bloom filter of counters, which a rule increases; see [`Counting`] and [`CountingMinimal`].
///
/// # The idea
///
/// ```text
///                      x₀      x₁          x₂                    as in a Bloom filter: ⌊x·m / 2⁶⁴⌋
///                      ↓       ↓           ↓
///   m counters  … 0 0  2  0 1  1  0 0 3 0  1  0 1 0 …            4 bits each; 15 stays 15
///   m bits      … 0 0  1  0 1  1  0 0 1 0  1  0 1 0 …            the Bloom filter of the same keys
/// ```
///
/// Where a Bloom filter sets a bit, this one increases a counter. A key may be present when none
/// of its counters is zero, so the rate is that of the Bloom filter whose bits say which counters
/// are not zero. [`to_bloom`](CountingBy::to_bloom) makes that filter, byte for byte the one that
/// the same keys would have built. [`CountingPair`](crate::CountingPair) keeps it beside the
/// counters, for lookups of a quarter of the memory.
///
/// # Two rules
///
/// ```text
///   counters of a key   7  4  9  4   →   8  5 10  5   increase every counter: `Counting`
///                       7  4  9  4   →   7  5  9  5   increase only the least: `CountingMinimal`
/// ```
///
/// The least of a key's counters bounds its copies from above: others may have added to a
/// counter, but to all `k` only as often as an absent key is found in a Bloom filter. One copy
/// more makes that bound one more. Counters above the least have been raised by others and bound
/// the copies already, so raising only the least is enough, and most of what keys would add to
/// each other's counters is not added.
///
/// | filter | an insertion | counts too high, Zipf 1.0 / 0.5 | removes | merges |
/// |---|---|---|---|---|
/// | [`Counting`] | adds 1 to every counter | 1.5 % / 3.2 % of keys | yes | yes, exactly |
/// | [`CountingMinimal`] | adds 1 to the least counters | 0.4 % / 1.4 % of keys | no | yes, as a bound |
///
/// Neither counts too low. A test below measures the shares: 10⁵ keys, a million insertions, `k`
/// = 5 and 7.14 counters per key. The first row is the Bloom filter's rate for the keys that
/// came, and so is the error of the question "at least T times?", whatever T is.
///
/// With every counter increased, a key leaves as it came: take the 1 away again. With minimal
/// increase nobody knows afterwards which counters an insertion has raised, so nothing can be
/// taken out. Both merge by adding counters: what bounds the copies here plus what bounds them
/// there bounds their sum. With minimal increase the sum is not the filter of all keys but a
/// looser one. The greater of the two counters, which looks tighter, is no bound at all: three
/// copies here and two there would count as three.
///
/// # Width
///
/// The parameter `counter_bits` is the width of a counter. Four bits are enough to remove
/// distinct keys, and the default of [`Counting`]; counting copies wants more, and
/// [`CountingMinimal`] has 8 by default. The literature calls [`Counting`] with counters of 8
/// bits or more the *spectral Bloom filter with minimum selection*, and [`CountingMinimal`] that
/// *with minimal increase*, or a filter with *conservative update*.
///
/// # A counter that is full
///
/// A counter that has reached its greatest value, 15 of 4 bits, is never changed again: to take 1
/// away would forget that more keys may need it, and deny one of them some day. With distinct
/// keys that does not happen (7·10⁻¹⁷ a counter at capacity). It does happen when one key is
/// inserted 15 times or more. That key then stays, however often it is removed;
/// [`saturated`](Filter::saturated) says how many counters are so stuck, and
/// [`fpr`](Filter::fpr) counts them. Give such data wider counters.
///
/// When even the least of a key's counters is saturated, nothing bounds the copies from above:
/// [`count`](Count::count) gives the greatest value, [`count_limit`](Count::count_limit), which
/// stands for so many or more. A lower bound it is not, whatever is often said: the copies may
/// all have been removed again, without a trace.
///
/// # Cost
///
/// `counter_bits` times the Bloom filter: at 1 %, 38.37 bits per key with 4 bits, 76.74 with 8.
/// Inserting never fails. A lookup reads up to `k` lines, an insertion as many and writes them. A
/// hash table of 64-bit hashes and counts is no larger than 8-bit counters and makes no errors;
/// what these filters add is that the memory is fixed beforehand, that filters can be added up,
/// and that the error grows gently when more keys come than were planned for.
///
/// # When to choose it
///
/// [`Counting`] when the Bloom filter that it contains is what others need (a proxy tells its
/// neighbours what it caches), or when counters must be added. To remove keys alone,
/// [`Cuckoo`](crate::Cuckoo) or [`TinySetRemovable`](crate::TinySetRemovable) take a quarter of
/// the space, and [`VariableIncrement`](crate::VariableIncrement) two thirds of it.
/// [`CountingMinimal`] to ask how often keys came, if none is taken out: it is wrong least often,
/// the more so the more unequal the keys are.
///
/// Compressed counters (of variable length, Huffman-coded in layers, or cut into partitions) are
/// not here. At half fill the entropy of a counter is 1.586 bits, as its keys follow Poisson's law:
/// 15.2 bits a key at 1 %, before anything is said of where a counter begins. A
/// [`Quotient`](crate::Quotient) takes 9.6, and lets keys go as well.
///
/// # Removing what is not in
///
/// The counters of a false positive belong to others; taking from them may deny a member later. A
/// key that the filter denies is refused. A key whose counters are all saturated is never denied:
/// once all its copies were removed it can be "removed" once more, which takes no counter down
/// but [`len`](Filter::len), as long as that is not 0. That removals *must* lead to false
/// negatives is not so: only that misuse does, or taking from a saturated counter.
///
/// # Bibliography
///
/// - Fan, Cao, Almeida, Broder, *Summary cache: a scalable wide-area web cache sharing protocol*,
///   2000: counters of four bits, and why four are enough for distinct keys.
/// - Estan, Varghese, *New directions in traffic measurement and accounting*, 2002: minimal
///   increase, as "conservative update".
/// - Cohen, Matias, *Spectral Bloom filters*, 2003: both rules on wide counters, and a third
///   ([`SpectralRecurring`](crate::SpectralRecurring)).
/// - Bonomi et al., *An improved construction for counting Bloom filters*, 2006: how much less
///   space does the same.
#[derive(Clone, Debug)]
pub struct CountingBy<R: Rule> {
    counters: Counters,
    len: u64,
    rule: PhantomData<R>,
}

/// A counting Bloom filter: insert, remove, count copies, merge, and give the Bloom filter of its
/// keys.
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
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `k` | 1 to 64 | the smallest filter for the rate | counters that a key has |
/// | `counter_bits` | 2 to 32 | 4 | bits of a counter: how many copies it counts |
pub type Counting = CountingBy<Every>;

/// A counting Bloom filter with minimal increase: insert, count copies, merge. Counts are never
/// too low, and seldom too high.
///
/// ```
/// use tamis::{Config, CountingMinimal, Keyed};
///
/// let mut words: Keyed<CountingMinimal> = Keyed::new(&Config::new(1000))?;
/// for word in "the cat sat on the mat with the hat".split(' ') {
///     words.insert(word)?;
/// }
/// assert_eq!(words.count("the"), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `k` | 1 to 64 | the smallest filter for the rate | counters that a key has |
/// | `counter_bits` | 2 to 32 | 8 | bits of a counter: how many copies it counts |
pub type CountingMinimal = CountingBy<Least>;

/// Widths of a counter: one bit cannot count.
const WIDTHS: RangeInclusive<u64> = 2..=32;

impl<R: Rule> CountingBy<R> {
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
}

impl Counting {
    /// Takes out one copy of a hash, and tells which counters have become zero; `false` if it is
    /// not in.
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

impl<R: Rule> Filter for CountingBy<R> {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.counters.holds(hash)
    }

    /// While there are none, removing every key leaves the filter as it was when it was new.
    fn saturated(&self) -> u64 {
        self.counters.saturated()
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

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        self.counters.contains_batch(hashes, out);
    }
}

impl<R: Rule> Insert for CountingBy<R> {
    /// Never refuses: a counter that is full stays as it is.
    #[inline(always)]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        if R::LEAST {
            let least = self.counters.least(hash);
            self.counters.raise(hash, least + 1);
        } else {
            self.counters.add(hash);
        }
        self.len = self.len.saturating_add(1);
        Ok(())
    }
}

impl<R: Rule> Extend<u64> for CountingBy<R> {
    /// Inserts every hash; none is refused.
    fn extend<I: IntoIterator<Item = u64>>(&mut self, hashes: I) {
        insert_all(self, hashes);
    }
}

impl Remove for Counting {
    fn remove(&mut self, hash: u64) -> bool {
        self.take(hash, |_| ())
    }
}

impl<R: Rule> Count for CountingBy<R> {
    /// The least of the hash's counters.
    fn count(&self, hash: u64) -> u64 {
        self.counters.least(hash)
    }

    /// The value at which a counter is saturated: 15 of four bits, 255 of eight.
    fn count_limit(&self) -> u64 {
        self.counters.greatest()
    }
}

impl<R: Rule> Merge for CountingBy<R> {
    /// Adds the counters. With [`Every`] that is byte for byte the filter of all keys of both;
    /// with [`Least`] counts are never too low again, but too high more often than if one filter
    /// had taken all keys.
    fn merge(&mut self, other: &CountingBy<R>) -> Result<(), MergeError> {
        self.counters.merge(&other.counters)?;
        self.len = self.len.saturating_add(other.len);
        Ok(())
    }
}

impl<R: Rule> Kind for CountingBy<R>
where
    CountingBy<R>: Declared,
{
    const ABOUT: &'static str = R::ABOUT;
    const PARAMS: &'static [Param] = R::PARAMS;

    fn build(config: &Config, hashes: &mut [u64]) -> Result<CountingBy<R>, BuildError> {
        let (keys, fpr) = config.check::<CountingBy<R>>(hashes)?;
        let mut filter = CountingBy {
            counters: Counters::sized(config, keys, fpr, WIDTHS, R::WIDTH)?,
            len: 0,
            rule: PhantomData,
        };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        self.counters.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<CountingBy<R>, DecodeError> {
        Ok(CountingBy {
            counters: Counters::decode(input, WIDTHS)?,
            len: input.len(),
            rule: PhantomData,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::bits::mix64;
    use crate::{Hashing, Keyed, SpectralRecurring, math};

    fn of(config: &Config) -> Counting {
        Counting::build(config, &mut []).unwrap()
    }

    #[test]
    fn the_essay_tells_the_entropy_of_counters() {
        let mean = std::f64::consts::LN_2;
        let shares = (0..40).map(|count| crate::testing::math::poisson_pmf(count, mean));
        let entropy: f64 = shares.map(|share| -share * share.log2()).sum();
        let per_key = entropy * math::bloom_bits_per_key(0.01);
        assert_eq!(format!("{entropy:.3} {per_key:.1}"), "1.586 15.2");
    }

    fn of_shape(counters: u64, k: u32, width: u32) -> Counting {
        Counting {
            counters: Counters::zeroed(counters, k, width).unwrap(),
            len: 0,
            rule: PhantomData,
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
            assert_eq!(filter.count(key), copies.min(15));
        }
        assert_eq!(filter.count_limit(), 15);
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
                        assert!(filter.count(key) >= copies.min(filter.count_limit()));
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
        assert_eq!(a.count(often), a.count_limit(), "17 copies were inserted");
        assert!((0..17).all(|_| a.remove(often)) && a.contains(often));
        assert!(a.remove(once) && !a.contains(once));
    }

    #[test]
    fn counts_add_up_and_go_down_again() {
        for width in [8, 13, 16, 32] {
            let config = Config::new(500).set("counter_bits", width);
            let (mut a, b) = (
                Counting::build(&config, &mut []).unwrap(),
                Counting::build(&config, &mut [3, 3, 3, 4].map(mix64)).unwrap(),
            );
            for i in 0..100 {
                (0..i).for_each(|_| a.insert(mix64(i)).unwrap());
            }
            a.merge(&b).unwrap();
            assert_eq!([3, 4, 99].map(|i| a.count(mix64(i))), [6, 5, 99]);
            for i in 0..100 {
                (0..i).for_each(|_| assert!(a.remove(mix64(i))));
            }
            assert!(a.counters.iter().eq(b.counters.iter()), "{width} bits");
        }
    }

    /// A small filter filled to three times its capacity, with i % 7 + 1 copies of key i.
    fn crowded(seed: u64) -> CountingMinimal {
        let mut filter = CountingMinimal::build(&Config::new(100).fpr(0.1), &mut []).unwrap();
        for round in 0..7 {
            for i in (0..300).filter(|i| i % 7 >= round) {
                filter.insert(mix64(seed << 32 | i)).unwrap();
            }
        }
        filter
    }

    #[test]
    fn no_count_is_too_low_in_a_crowd() {
        for seed in 0..50 {
            let filter = crowded(seed);
            let mut above = 0;
            for i in 0..300 {
                let told = filter.count(mix64(seed << 32 | i));
                assert!(told > i % 7);
                above += u64::from(told > i % 7 + 1);
            }
            assert!(above > 0, "a crowd makes errors, or this tests nothing");
        }
    }

    #[test]
    fn added_counters_bound_the_copies_and_the_greater_ones_do_not() {
        let (mut a, b) = (crowded(1), crowded(1));
        let copies = |i: u64| 2 * (i % 7 + 1);
        let key = |i: u64| mix64(1 << 32 | i);
        // Of two equal counters the greater is either: the filter that it would make is `a` as it
        // stands.
        let too_low = (0..300).filter(|&i| a.count(key(i)) < copies(i)).count();
        assert!(too_low > 0, "the greater counter would be a bound");
        a.merge(&b).unwrap();
        assert!((0..300).all(|i| a.count(key(i)) >= copies(i)));
        assert_eq!(a.len(), 2 * b.len());
    }

    const KEYS: u64 = 100_000;
    const EVENTS: u64 = 1_000_000;

    /// How often each of 10⁵ keys comes in a million draws, key i with weight (i + 1)^-s, and the
    /// draws in order.
    fn stream(s: f64, seed: u64) -> (Vec<u64>, Vec<u64>) {
        let mut until = Vec::with_capacity(KEYS as usize);
        let mut total = 0.0;
        for i in 0..KEYS {
            total += ((i + 1) as f64).powf(-s);
            until.push(total);
        }
        let mut times = vec![0; KEYS as usize];
        let draws = (0..EVENTS).map(|event| {
            let draw = mix64(seed << 40 | event) as f64 / 2f64.powi(64) * total;
            let key = until.partition_point(|&u| u <= draw).min(KEYS as usize - 1);
            times[key] += 1;
            hash(seed, key as u64)
        });
        let draws = draws.collect();
        (times, draws)
    }

    fn hash(seed: u64, key: u64) -> u64 {
        mix64(1 << 63 | seed << 40 | key)
    }

    /// Keys that came, estimates above the truth, estimates below it.
    fn wrong(times: &[u64], estimate: impl Fn(u64) -> u64) -> [u64; 3] {
        let came = times.iter().enumerate().filter(|&(_, &t)| t > 0);
        came.fold([0; 3], |[came, over, under], (key, &truth)| {
            let told = estimate(key as u64);
            [
                came + 1,
                over + u64::from(told > truth),
                under + u64::from(told < truth),
            ]
        })
    }

    #[test]
    fn errors_are_those_of_the_table() {
        // spec: 10⁵ keys, k = 5, kn/m = 0.7, 32 bits so that nothing saturates.
        let config = Config::new(KEYS).set("k", 5).set("counter_bits", 32);
        // The rate at which k = 5 and kn/m = 0.7 meet.
        let config = config.fpr(math::bloom_fpr_asymptotic(714_304, KEYS, 5));
        for s in [1.0, 0.5] {
            let (mut came, mut selection, mut minimal, mut over, mut under) = (0, 0, 0, 0, 0);
            let mut expected = 0.0;
            for seed in 0..2 {
                let (times, draws) = stream(s, seed);
                let mut ms = Counting::build(&config, &mut []).unwrap();
                let mut mi = CountingMinimal::build(&config, &mut []).unwrap();
                let mut rm = SpectralRecurring::build(&config, &mut []).unwrap();
                assert!((ms.counters() as f64 / KEYS as f64 / 7.143 - 1.0).abs() < 0.001);
                ms.insert_batch(&draws).unwrap();
                mi.insert_batch(&draws).unwrap();
                rm.insert_batch(&draws).unwrap();
                let [n, ms_over, ms_under] = wrong(&times, |i| ms.count(hash(seed, i)));
                let [_, mi_over, mi_under] = wrong(&times, |i| mi.count(hash(seed, i)));
                let [_, rm_over, rm_under] = wrong(&times, |i| rm.estimate(hash(seed, i)));
                assert_eq!((ms_under, mi_under), (0, 0), "never under");
                came += n;
                selection += ms_over;
                minimal += mi_over;
                over += rm_over;
                under += rm_under;
                // Each key against all others that came.
                expected += n as f64 * math::bloom_fpr(ms.counters(), n - 1, 5);
                assert!(times.iter().enumerate().all(|(i, &t)| {
                    let h = hash(seed, i as u64);
                    (t == 0 || ms.contains(h))
                        && ms.contains(h) == mi.contains(h)
                        && ms.contains(h) == rm.contains(h)
                }));
            }
            let share = |wrong: u64| 100.0 * wrong as f64 / came as f64;
            println!(
                "Zipf {s}: {came} keys; wrong: selection {:.3} % ({:.3} % by formula), minimal {:.3} %, recurring {:.3} % \
                 over and {:.3} % under",
                share(selection),
                100.0 * expected / came as f64,
                share(minimal),
                share(over),
                share(under)
            );
            let (low, high) = math::binomial_interval(came, expected / came as f64, 1e-9);
            assert!(
                (low..=high).contains(&selection),
                "{selection}, {low} to {high}"
            );
            assert!(
                (selection as f64 / expected - 1.0).abs() < 0.05,
                "{selection} of {expected}"
            );
            assert!(2 * minimal <= selection, "{minimal} of {selection}");
            assert!(
                over + under < selection,
                "{over} and {under} of {selection}"
            );
            // Under-estimates are few, but they are there: this is why it is no `Count`.
            assert!(under > 0 && share(under) < 1.0, "{under} of {came}");
        }
    }

    #[test]
    fn a_saturated_count_is_the_limit() {
        let config = Config::new(100).set("counter_bits", 8);
        let key = mix64(1);
        let mut every = Counting::build(&config, &mut []).unwrap();
        let mut least = CountingMinimal::build(&config, &mut []).unwrap();
        let mut recurring = SpectralRecurring::build(&config, &mut []).unwrap();
        for copies in 1..=300 {
            every.insert(key).unwrap();
            least.insert(key).unwrap();
            recurring.insert(key).unwrap();
            let told = copies.min(255);
            assert_eq!([every.count(key), least.count(key)], [told; 2]);
            assert_eq!(recurring.estimate(key), told);
        }
        assert_eq!([every.count_limit(), least.count_limit()], [255; 2]);
        assert_eq!([every.saturated(), least.saturated()], [7; 2]);
        assert_eq!(recurring.saturated(), 7);
    }

    #[test]
    fn wide_counters_have_the_size_of_the_formula() {
        // 8 bits for each of the Bloom filter's 9.593 counters, and half as many again.
        let config = Config::new(1_000_000).set("counter_bits", 8);
        let bits = |bytes: usize| bytes as f64 * 8.0 / 1e6;
        let every = Counting::build(&config, &mut []).unwrap();
        let least = CountingMinimal::build(&config, &mut []).unwrap();
        let recurring = SpectralRecurring::build(&config, &mut []).unwrap();
        assert!((bits(every.size_in_bytes()) / 76.74 - 1.0).abs() < 0.001);
        assert_eq!(least.size_in_bytes(), every.size_in_bytes());
        assert!((bits(recurring.size_in_bytes()) / 115.1 - 1.0).abs() < 0.001);
    }
}
