//! Minimum selection: every insertion adds 1 to all counters of its key.
//!
//! See the [family's essay](super) for the layout and the choice. This is the counting Bloom filter with wide counters: a
//! key leaves as it came, filters are added up without loss, and an estimate is wrong exactly as often as an absent key
//! is found, [`fpr`](Filter::fpr). So is the question "at least T times?", whatever T is.

use crate::bloom::counters::Counters;
use crate::bloom::spectral::{DEFAULT_WIDTH, PARAMS, WIDTHS};
use crate::config::{Config, Param};
use crate::error::{BuildError, DecodeError, Full, MergeError};
use crate::filter::{Count, Filter, Insert, Kind, Merge, Remove};
use crate::format::{Decoder, Encoder};
use crate::lookup::Batch;

/// The spectral Bloom filter with minimum selection: insert, remove, count, merge. Counts are never too low.
///
/// ```
/// use tamis::{Config, Keyed, Spectral};
///
/// let config = Config::new(1000).set("counter_bits", 16);
/// let mut requests: Keyed<Spectral> = Keyed::new(&config)?;
/// for _ in 0..1000 {
///     requests.insert("10.0.0.7")?;
/// }
/// requests.remove("10.0.0.7");
/// assert_eq!(requests.count("10.0.0.7"), 999);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Spectral {
    counters: Counters,
    len: u64,
}

impl Spectral {
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

impl Filter for Spectral {
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

impl Insert for Spectral {
    /// Never refuses: a counter that is full stays as it is.
    #[inline(always)]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        self.counters.add(hash);
        self.len = self.len.saturating_add(1);
        Ok(())
    }
}

impl Remove for Spectral {
    fn remove(&mut self, hash: u64) -> bool {
        // With nothing in, only saturated counters can be left of what was.
        if self.len == 0 || !self.counters.holds(hash) {
            return false;
        }
        self.counters.take(hash, |_| ());
        self.len -= 1;
        true
    }
}

impl Count for Spectral {
    /// The least of the hash's counters; `u64::MAX` where all are saturated, as then no number is too high.
    fn count(&self, hash: u64) -> u64 {
        self.counters.bound(hash)
    }
}

impl Merge for Spectral {
    /// Adds the counters: byte for byte the filter of all keys of both.
    fn merge(&mut self, other: &Spectral) -> Result<(), MergeError> {
        self.counters.merge(&other.counters)?;
        self.len = self.len.saturating_add(other.len);
        Ok(())
    }
}

impl Kind for Spectral {
    const ID: u16 = 17;
    const NAME: &'static str = "spectral";
    const ABOUT: &'static str =
        "how often each key came, never too low; keys can leave, filters add up";
    const SOURCE: &'static str = "bloom/spectral/selection.rs";
    const PARAMS: &'static [Param] = PARAMS;

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Spectral, BuildError> {
        let (keys, fpr) = config.check::<Spectral>(hashes)?;
        let mut filter = Spectral {
            counters: Counters::sized(config, keys, fpr, WIDTHS, DEFAULT_WIDTH)?,
            len: 0,
        };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        self.counters.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Spectral, DecodeError> {
        Ok(Spectral {
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

    fn try_merge(&mut self, other: &Spectral) -> Option<Result<(), MergeError>> {
        Some(self.merge(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    #[test]
    fn counts_add_up_and_go_down_again() {
        for width in [8, 13, 16, 32] {
            let config = Config::new(500).set("counter_bits", width);
            let (mut a, b) = (
                Spectral::build(&config, &mut []).unwrap(),
                Spectral::build(&config, &mut [3, 3, 3, 4].map(mix64)).unwrap(),
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
}
