//! Counters in place of bits: what [`Counting`](crate::Counting),
//! [`CountingMinimal`](crate::CountingMinimal) and [`SpectralRecurring`](crate::SpectralRecurring)
//! share.
//!
//! A key has `k` places in the array, as in a Bloom filter, and each has a counter of a few bits.
//! A counter that reaches its greatest value is *saturated*: it stands for that many or any more,
//! so it is never changed again. Decreasing it could bring it to zero while keys still need it,
//! and a member would be denied.
//!
//! Two places of one key may be the same. Whatever a key does to its counters, all of them are
//! read first and all are written then, from what was read: a place that comes twice is given the
//! same value twice, and so counts once. Adding and taking away agree, and nothing has to be
//! sorted or compared.

use std::ops::RangeInclusive;

use crate::bits::{low_mask, positions, remix, spread};
use crate::bloom::standard::{MOST_BITS, MOST_K, shape};
use crate::config::{Config, Param};
use crate::error::{BuildError, DecodeError, MergeError, NoMemory};
use crate::format::{Decoder, Encoder};
use crate::lookup::{self, Round};
use crate::option;
use crate::packed::{Packed, View};

/// An array of counters, and how many of them a key has.
#[derive(Clone, Debug)]
pub(super) struct Counters {
    table: Packed,
    len: u64,
    k: u32,
}

/// The counters for looking up: one that is not zero lets a key through.
#[derive(Clone, Copy)]
struct Used<'a> {
    table: View<'a>,
    len: u64,
    k: u32,
}

impl Round for Used<'_> {
    #[inline(always)]
    fn bytes(self) -> usize {
        self.table.size_in_bytes()
    }

    #[inline(always)]
    fn probes(self) -> usize {
        self.k as usize
    }

    #[inline(always)]
    fn start(self, hash: u64) -> u64 {
        hash
    }

    #[inline(always)]
    fn place<const MANY: bool>(self, state: u64) -> (u64, u64) {
        (remix(state), spread::<MANY>(state, self.len).0)
    }

    #[inline(always)]
    fn prefetch(self, place: u64) {
        self.table.prefetch(place);
    }

    #[inline(always)]
    fn test(self, place: u64) -> u64 {
        u64::from(self.table.get(place) != 0)
    }
}

pub(super) const K: Param = Param {
    name: option::K.name,
    values: "1 to 64",
    default: "the smallest filter for the rate",
    about: "counters that a key has",
};

impl Counters {
    /// Counters that are all zero. `width` is that of a counter, in bits, 32 at most.
    pub(super) fn zeroed(len: u64, k: u32, width: u32) -> Result<Counters, NoMemory> {
        Ok(Counters {
            table: Packed::zeroed(len, width)?,
            len,
            k,
        })
    }

    /// As many counters as a Bloom filter would have bits, of the width that the configuration
    /// asks for.
    pub(super) fn sized(
        config: &Config,
        keys: u64,
        fpr: f64,
        widths: RangeInclusive<u64>,
        width: u32,
    ) -> Result<Counters, BuildError> {
        let (len, k) = shape(config, keys, fpr, "counters")?;
        let expected = format!("a whole number from {} to {}", widths.start(), widths.end());
        let width = match config.param::<u32>(option::COUNTER_BITS.name, &expected)? {
            Some(width) if !widths.contains(&u64::from(width)) => {
                return Err(BuildError::parameter("counter_bits", width, expected));
            }
            given => given.unwrap_or(width),
        };
        Ok(Counters::zeroed(len, k, width)?)
    }

    #[inline(always)]
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn k(&self) -> u32 {
        self.k
    }

    pub(super) fn width(&self) -> u32 {
        self.table.width()
    }

    /// The value at which a counter is saturated.
    #[inline(always)]
    pub(super) fn greatest(&self) -> u64 {
        low_mask(self.table.width())
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        self.table.size_in_bytes()
    }

    /// Every counter in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.table.iter()
    }

    pub(super) fn saturated(&self) -> u64 {
        self.iter().filter(|&c| c == self.greatest()).count() as u64
    }

    /// The rate at which absent keys find none of their counters zero.
    pub(super) fn fpr(&self) -> f64 {
        let used = self.iter().filter(|&c| c != 0).count();
        (used as f64 / self.len as f64).powi(self.k as i32)
    }

    /// The values of a key's counters, in the order of its places.
    #[inline(always)]
    pub(super) fn of(&self, hash: u64) -> impl Iterator<Item = u64> {
        positions(hash, self.len, self.k).map(|place| self.table.get(place))
    }

    /// Whether none of a key's counters is zero.
    #[inline(always)]
    pub(super) fn holds(&self, hash: u64) -> bool {
        lookup::sift(self.used(), hash)
    }

    /// The same of many keys.
    pub(super) fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::passes(Some(self.used()), hashes, out);
    }

    #[inline(always)]
    fn used(&self) -> Used<'_> {
        Used {
            table: self.table.view(),
            len: self.len,
            k: self.k,
        }
    }

    /// The least of a key's counters: no fewer than its copies, unless it is saturated.
    #[inline(always)]
    pub(super) fn least(&self, hash: u64) -> u64 {
        self.of(hash).fold(u64::MAX, u64::min)
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        for place in positions(hash, self.len, self.k) {
            self.table.prefetch(place);
        }
    }

    /// Gives each of a key's counters a new value, made from its place and the value that it had.
    #[inline(always)]
    fn change(&mut self, hash: u64, mut new: impl FnMut(u64, u64) -> u64) {
        let mut had = [0u32; MOST_K as usize];
        for (had, value) in had.iter_mut().zip(self.of(hash)) {
            *had = value as u32;
        }
        for (place, had) in positions(hash, self.len, self.k).zip(had) {
            self.table.set(place, new(place, u64::from(had)));
        }
    }

    /// Adds 1 to each of a key's counters that is not saturated.
    #[inline(always)]
    pub(super) fn add(&mut self, hash: u64) {
        let greatest = self.greatest();
        self.change(hash, |_, c| (c + 1).min(greatest));
    }

    /// Raises each of a key's counters to a value, or as far as it goes, and lowers none.
    #[inline(always)]
    pub(super) fn raise(&mut self, hash: u64, value: u64) {
        let value = value.min(self.greatest());
        self.change(hash, |_, c| c.max(value));
    }

    /// Takes 1 from each of a key's counters that is neither saturated nor zero, and tells the
    /// places that become zero.
    pub(super) fn take(&mut self, hash: u64, mut emptied: impl FnMut(u64)) {
        let greatest = self.greatest();
        self.change(hash, |place, c| {
            if c == 1 {
                emptied(place);
            }
            if c == greatest {
                c
            } else {
                c.saturating_sub(1)
            }
        });
    }

    /// Adds the counters of another array of the same shape to these.
    pub(super) fn merge(&mut self, other: &Counters) -> Result<(), MergeError> {
        MergeError::unless_equal("counters", self.len, other.len)?;
        MergeError::unless_equal("k", u64::from(self.k), u64::from(other.k))?;
        let (ours, theirs) = (self.width(), other.width());
        MergeError::unless_equal("counter_bits", u64::from(ours), u64::from(theirs))?;
        let greatest = self.greatest();
        for (place, theirs) in (0..self.len).zip(other.iter()) {
            if theirs != 0 {
                let sum = self.table.get(place) + theirs;
                self.table.set(place, sum.min(greatest));
            }
        }
        Ok(())
    }

    /// Sets every counter to zero.
    pub(super) fn clear(&mut self) {
        for place in 0..self.len {
            if self.table.get(place) != 0 {
                self.table.set(place, 0);
            }
        }
    }

    /// Writes the shape and the array.
    pub(super) fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("counters", self.len);
        out.param("k", u64::from(self.k));
        out.param("counter_bits", u64::from(self.width()));
        self.encode_values(out);
    }

    /// Writes the array alone.
    pub(super) fn encode_values<'a>(&'a self, out: &mut Encoder<'a>) {
        self.table.encode(out);
    }

    /// Reads them. Any values may stand in the array.
    pub(super) fn decode(
        input: &mut Decoder<'_>,
        widths: RangeInclusive<u64>,
    ) -> Result<Counters, DecodeError> {
        let len = input.param_in("counters", 64..=MOST_BITS)?;
        let k = input.param_in("k", 1..=u64::from(MOST_K))? as u32;
        let width = input.param_in("counter_bits", widths)? as u32;
        if !len.is_multiple_of(64) {
            return Err(DecodeError::invalid("counters", len, "a multiple of 64"));
        }
        Counters::decode_values(input, "counters", len, k, width)
    }

    /// Reads an array of a shape that is known.
    pub(super) fn decode_values(
        input: &mut Decoder<'_>,
        name: &'static str,
        len: u64,
        k: u32,
        width: u32,
    ) -> Result<Counters, DecodeError> {
        Ok(Counters {
            table: Packed::decode(input, name, len, width)?,
            len,
            k,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::{fastrange, mix64};

    #[test]
    fn a_lookup_tests_the_counter_that_an_insertion_changes() {
        let mut counters = Counters::zeroed(64 * 15, 7, 5).unwrap();
        (0..50).for_each(|key| counters.add(mix64(key)));
        let used = counters.used();
        for state in (0..10_000).map(mix64).chain([0, u64::MAX]) {
            let place = fastrange(state, counters.len()).0;
            let expected = (remix(state), place);
            assert_eq!(used.place::<false>(state), expected);
            assert_eq!(used.place::<true>(state), expected);
            let is_used = counters.table.get(place) != 0;
            assert_eq!(used.test(place), u64::from(is_used));
        }
    }
}
