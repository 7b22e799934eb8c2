//! The spectral Bloom filter with recurring minimum: keys whose least counter stands alone are
//! counted once more elsewhere.
//!
//! The essay is at [`SpectralRecurring`].

use std::ops::RangeInclusive;

use crate::bits::mix64;
use crate::bloom::counters::{Counters, K};
use crate::config::{Config, Param};
use crate::error::{BuildError, DecodeError, Full};
use crate::filter::{Filter, Insert, Kind, Remove};
use crate::format::{Decoder, Encoder};
use crate::option;

/// The spectral Bloom filter with recurring minimum: insert, remove, estimate. Estimates may be
/// too low.
///
/// ```
/// use tamis::{Config, Keyed, SpectralRecurring};
///
/// let mut words: Keyed<SpectralRecurring> = Keyed::new(&Config::new(1000))?;
/// for word in "the cat sat on the mat with the hat".split(' ') {
///     words.insert(word)?;
/// }
/// assert_eq!(words.filter().estimate(words.hash("the")), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```text
///   first array     7  4  9  4    the least comes twice: nobody else was in either, most
///                                 likely. Estimate 4
///                   7  4  9  5    the least stands alone: less certain. The key has counters
///                                 in the second array, too:
///   second array    3  3  8  3    … few keys have, so it errs seldom. Estimate 3
/// ```
///
/// The first array is that of [`Counting`](crate::Counting), with wide counters. When only one
/// counter of a key is free of others, that one is the least, and stands alone; when none is, the
/// least stands alone more often than not. So a lone least counter is a sign of error, and such
/// keys are few enough (about a fifth) for an array of half the size to count them well.
///
/// The second array starts a key with what the first one told when its least counter first stood
/// alone, and adds or takes 1 while it does. But a key may go back and forth, and the second
/// array misses what happens meanwhile. Then it tells **too few**: of the keys in the test of
/// [`Counting`](crate::Counting) 0.14 % and 0.87 %, where 1.3 % and 2.4 % are estimated wrong in
/// all. Hence [`estimate`](SpectralRecurring::estimate) and not [`Count`](crate::Count), whose
/// law that would break; and filters cannot be merged, as the second arrays of two filters know
/// of different keys. `contains` asks the first array alone, which is that of
/// [`Counting`](crate::Counting): no member is denied, and removal is exact there.
///
/// When the last key leaves, the second array is cleared, for which it is walked through.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `k` | 1 to 64 | the smallest filter for the rate | counters that a key has |
/// | `counter_bits` | 8 to 32 | 8 | bits of a counter: how many copies it counts |
///
/// # Cost
///
/// As many counters as a Bloom filter has bits, and half as many again; 115.1 bits per key at 1 %
/// with 8 bits each.
///
/// # When to choose it
///
/// For comparison. It is the best of the three rules that can remove, but gives up the one-sided
/// error for little.
///
/// # Bibliography
///
/// - Cohen, Matias, *Spectral Bloom filters*, 2003: this rule beside the other two; also counters
///   of variable length, which are not made here.
#[derive(Clone, Debug)]
pub struct SpectralRecurring {
    first: Counters,
    /// Half as many counters, for keys whose least counter stands alone.
    second: Counters,
    /// Whether the second array may hold anything.
    used: bool,
    len: u64,
}

/// Widths of a counter.
const WIDTHS: RangeInclusive<u64> = 8..=32;
const DEFAULT_WIDTH: u32 = 8;

impl SpectralRecurring {
    /// How many counters the first array has; the second has half as many.
    pub fn counters(&self) -> u64 {
        self.first.len()
    }

    /// How many counters a key has in an array.
    pub fn k(&self) -> u32 {
        self.first.k()
    }

    /// Bits of a counter.
    pub fn counter_bits(&self) -> u32 {
        self.first.width()
    }

    /// How often the hash was inserted: 0 exactly where it is not contained, seldom too high, and
    /// **seldom too low**. The greatest value of a counter, 255 of eight bits, stands for so many
    /// or more.
    pub fn estimate(&self, hash: u64) -> u64 {
        let told = self.first.least(hash);
        let again = second(hash);
        if self.is_alone(hash) && self.second.holds(again) {
            // The first array's is a bound in any case.
            told.min(self.second.least(again))
        } else {
            told
        }
    }

    /// Whether the least of a hash's counters comes once among them.
    #[inline]
    fn is_alone(&self, hash: u64) -> bool {
        let least = self.first.least(hash);
        self.first.of(hash).filter(|&c| c == least).count() == 1
    }
}

/// The hash that gives a key's places in the second array, which must not be those in the first,
/// halved.
#[inline]
fn second(hash: u64) -> u64 {
    mix64(hash)
}

impl Filter for SpectralRecurring {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.first.holds(hash)
    }

    /// Of the first array.
    fn saturated(&self) -> u64 {
        self.first.saturated()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.first.size_in_bytes() + self.second.size_in_bytes()
    }

    fn fpr(&self) -> f64 {
        self.first.fpr()
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        self.first.prefetch(hash);
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        self.first.contains_batch(hashes, out);
    }
}

impl Insert for SpectralRecurring {
    /// Never refuses: a counter that is full stays as it is.
    #[inline]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        self.first.add(hash);
        if self.is_alone(hash) {
            let again = second(hash);
            if self.second.holds(again) {
                self.second.add(again);
            } else {
                self.second.raise(again, self.first.least(hash));
            }
            self.used = true;
        }
        self.len = self.len.saturating_add(1);
        Ok(())
    }
}

impl Remove for SpectralRecurring {
    fn remove(&mut self, hash: u64) -> bool {
        // With nothing in, only saturated counters can be left of what was.
        if self.len == 0 || !self.first.holds(hash) {
            return false;
        }
        self.first.take(hash, |_| ());
        self.len -= 1;
        let again = second(hash);
        if self.len == 0 {
            if self.used {
                self.second.clear();
                self.used = false;
            }
        } else if self.is_alone(hash) && self.second.holds(again) {
            self.second.take(again, |_| ());
        }
        true
    }
}

impl Kind for SpectralRecurring {
    const ABOUT: &'static str =
        "an estimate of how often each key came, sometimes too low; keys can leave";
    const PARAMS: &'static [Param] = &[
        K,
        Param {
            name: option::COUNTER_BITS.name,
            values: "8 to 32",
            default: "8",
            about: "bits of a counter: how many copies it counts",
        },
    ];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<SpectralRecurring, BuildError> {
        let (keys, fpr) = config.check::<SpectralRecurring>(hashes)?;
        let first = Counters::sized(config, keys, fpr, WIDTHS, DEFAULT_WIDTH)?;
        let mut filter = SpectralRecurring {
            second: Counters::zeroed(first.len() / 2, first.k(), first.width())?,
            first,
            used: false,
            len: 0,
        };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        self.first.encode(out);
        self.second.encode_values(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<SpectralRecurring, DecodeError> {
        let first = Counters::decode(input, WIDTHS)?;
        let (half, k, width) = (first.len() / 2, first.k(), first.width());
        let second = Counters::decode_values(input, "second counters", half, k, width)?;
        let len = input.len();
        if len == 0 && second.iter().any(|c| c != 0) {
            let expected = "some, as the second array is not empty";
            return Err(DecodeError::invalid("keys", 0, expected));
        }
        Ok(SpectralRecurring {
            first,
            second,
            used: true,
            len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_stay_below_capacity_are_estimated_right() {
        // At a tenth of the capacity hardly a counter is shared.
        let mut filter = SpectralRecurring::build(&Config::new(10_000), &mut []).unwrap();
        for i in 0..1000 {
            (0..=i % 50).for_each(|_| filter.insert(mix64(i)).unwrap());
        }
        assert!((0..1000).all(|i| filter.estimate(mix64(i)) == i % 50 + 1));
        assert!((0..1000).all(|i| filter.remove(mix64(i))));
        assert!((0..1000).all(|i| filter.estimate(mix64(i)) == i % 50));
        assert_eq!(filter.estimate(mix64(1 << 40)), 0);
    }

    #[test]
    fn an_estimate_is_zero_exactly_where_the_key_is_denied() {
        let mut filter = SpectralRecurring::build(&Config::new(300).fpr(0.1), &mut []).unwrap();
        for step in 0..20_000u64 {
            let key = mix64(mix64(step) % 700);
            if mix64(!step) % 5 < 3 {
                filter.insert(key).unwrap();
            } else {
                filter.remove(key);
            }
            assert_eq!(filter.estimate(key) > 0, filter.contains(key));
        }
    }

    #[test]
    fn the_second_array_is_empty_when_the_filter_is() {
        let config = Config::new(50).fpr(0.3);
        let mut filter = SpectralRecurring::build(&config, &mut []).unwrap();
        let keys: Vec<u64> = (0..100).map(mix64).collect();
        filter.insert_batch(&keys).unwrap();
        assert!(filter.second.iter().any(|c| c != 0), "it was used");
        keys.iter().for_each(|&key| assert!(filter.remove(key)));
        assert!(filter.second.iter().all(|c| c == 0) && filter.first.iter().all(|c| c == 0));
    }
}
