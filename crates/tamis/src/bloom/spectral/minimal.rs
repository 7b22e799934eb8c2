//! Minimal increase: an insertion adds 1 only to those counters of its key that are the least.
//!
//! ```text
//!   counters of a key   7  4  9  4     →     7  5  9  5          4 copies at most so far: now 5 at most
//! ```
//!
//! See the [family's essay](super) for the layout and the choice. The least counter bounds the copies, and one copy more
//! makes that bound one more; counters above it have been raised by others and bound the copies already. So estimates
//! are never too low, and far less often too high than with [`Spectral`](crate::Spectral): most of what keys would add
//! to each other's counters is not added.
//!
//! Nobody knows afterwards which counters an insertion has raised, so nothing can be taken out. Filters are merged by
//! adding counters: what bounds the copies here plus what bounds them there bounds their sum. The sum is not the filter
//! of all keys, but a looser one. The greater of the two counters, which looks tighter, is no bound at all: three copies
//! here and two there would count as three.

use crate::bloom::counters::Counters;
use crate::bloom::spectral::{DEFAULT_WIDTH, PARAMS, WIDTHS};
use crate::config::{Config, Param};
use crate::error::{BuildError, DecodeError, Full, MergeError};
use crate::filter::{Count, Filter, Insert, Kind, Merge};
use crate::format::{Decoder, Encoder};
use crate::lookup::Batch;

/// The spectral Bloom filter with minimal increase: insert, count, merge. Counts are never too low, and seldom too high.
///
/// ```
/// use tamis::{Config, Keyed, SpectralMinimal};
///
/// let mut words: Keyed<SpectralMinimal> = Keyed::new(&Config::new(1000))?;
/// for word in "the cat sat on the mat with the hat".split(' ') {
///     words.insert(word)?;
/// }
/// assert_eq!(words.count("the"), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SpectralMinimal {
    counters: Counters,
    len: u64,
}

impl SpectralMinimal {
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

    /// How many counters have reached their greatest value, which they keep. Reads the whole filter.
    pub fn saturated(&self) -> u64 {
        self.counters.saturated()
    }
}

impl Filter for SpectralMinimal {
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

impl Insert for SpectralMinimal {
    /// Never refuses: a counter that is full stays as it is.
    #[inline(always)]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let least = self.counters.least(hash);
        self.counters.raise(hash, least + 1);
        self.len = self.len.saturating_add(1);
        Ok(())
    }
}

impl Count for SpectralMinimal {
    /// The least of the hash's counters; `u64::MAX` where all are saturated, as then no number is too high.
    fn count(&self, hash: u64) -> u64 {
        self.counters.bound(hash)
    }
}

impl Merge for SpectralMinimal {
    /// Adds the counters: counts are again never too low, but too high more often than if one filter had taken all keys.
    fn merge(&mut self, other: &SpectralMinimal) -> Result<(), MergeError> {
        self.counters.merge(&other.counters)?;
        self.len = self.len.saturating_add(other.len);
        Ok(())
    }
}

impl Kind for SpectralMinimal {
    const ID: u16 = 18;
    const NAME: &'static str = "spectral_minimal";
    const ABOUT: &'static str =
        "how often each key came, never too low and seldom too high; keys stay";
    const SOURCE: &'static str = "bloom/spectral/minimal.rs";
    const PARAMS: &'static [Param] = PARAMS;

    fn build(config: &Config, hashes: &mut [u64]) -> Result<SpectralMinimal, BuildError> {
        let (keys, fpr) = config.check::<SpectralMinimal>(hashes)?;
        let mut filter = SpectralMinimal {
            counters: Counters::sized(config, keys, fpr, WIDTHS, DEFAULT_WIDTH)?,
            len: 0,
        };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        self.counters.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<SpectralMinimal, DecodeError> {
        Ok(SpectralMinimal {
            counters: Counters::decode(input, WIDTHS)?,
            len: input.len(),
        })
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }

    fn as_count(&self) -> Option<&dyn Count> {
        Some(self)
    }

    fn try_merge(&mut self, other: &SpectralMinimal) -> Option<Result<(), MergeError>> {
        Some(self.merge(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    /// A small filter filled to three times its capacity, with i % 7 + 1 copies of key i.
    fn crowded(seed: u64) -> SpectralMinimal {
        let mut filter = SpectralMinimal::build(&Config::new(100).fpr(0.1), &mut []).unwrap();
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
        // Of two equal counters the greater is either: the filter that it would make is `a` as it stands.
        let too_low = (0..300).filter(|&i| a.count(key(i)) < copies(i)).count();
        assert!(too_low > 0, "the greater counter would be a bound");
        a.merge(&b).unwrap();
        assert!((0..300).all(|i| a.count(key(i)) >= copies(i)));
        assert_eq!(a.len(), 2 * b.len());
    }
}
