//! Reading an array at an index computed from a hash, without a bounds check: the index cannot be
//! out of bounds.
//!
//! ```text
//!  Table      ⌊hash·n / 2⁶⁴⌋ < n for every hash: one item of n
//!  Segments   ┌────────┬────────┬────────┬────────┬────────┐
//!             │        │ ▲      │     ▲  │ ▲      │        │
//!             └────────┴─┼──────┴─────┼──┴─┼──────┴────────┘
//!                      first
//!             all of one length L, a power of two
//!             `first` < starts: so many segments follow
//!             (first + i·L) ⊕ low stays in segment i, as low < L
//! ```
//!
//! A check costs little by itself. But the number of lookups that wait for memory at once is the
//! number that fit into the processor's out-of-order window, and checks take up room in it.

use std::ops::Deref;

use crate::bits::{fastrange, fastrange_by_halves};
use crate::buf::{Buf, Word};

/// A non-empty array of items, one of which a hash chooses.
#[derive(Debug)]
pub(crate) struct Table<'a, T>(&'a [T]);

impl<T> Clone for Table<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Table<'_, T> {}

impl<'a, T> Table<'a, T> {
    /// `None` if there are no items.
    #[inline(always)]
    pub(crate) fn new(items: &'a [T]) -> Option<Table<'a, T>> {
        (!items.is_empty()).then_some(Table(items))
    }

    /// The items, or this one if there are none.
    #[inline(always)]
    pub(crate) fn or(items: &'a [T], one: &'a [T; 1]) -> Table<'a, T> {
        Table::new(items).unwrap_or(Table(one))
    }

    #[inline(always)]
    pub(crate) fn items(self) -> &'a [T] {
        self.0
    }

    /// The item of a hash, its index, and what is left of the hash: [`fastrange`] over the items.
    #[inline(always)]
    pub(crate) fn at(self, hash: u64) -> (&'a T, u64, u64) {
        let (index, rest) = fastrange(hash, self.0.len() as u64);
        // SAFETY: there is an item, as `new` has checked, and ⌊hash·n / 2⁶⁴⌋ < n for every hash <
        // 2⁶⁴ and n > 0.
        let item = unsafe { self.0.get_unchecked(index as usize) };
        (item, index, rest)
    }

    /// The item of a hash and its index, as [`at`](Table::at) finds them among fewer than 2³²
    /// items, but by products that vectors have. Among n ≥ 2³² items, one of the first n mod 2³².
    #[inline(always)]
    pub(crate) fn at_by_halves(self, hash: u64) -> (&'a T, u64) {
        let (index, _) = fastrange_by_halves(hash, self.0.len() as u32);
        // SAFETY: there is an item, as `new` has checked. The index is below the number of items
        // modulo 2³², or 0 where that is 0.
        let item = unsafe { self.0.get_unchecked(index as usize) };
        (item, index)
    }

    /// The item of the upper half of a hash: [`half_range`] over the items.
    #[inline(always)]
    pub(crate) fn at_half(self, half: u32) -> &'a T {
        let index = half_range(half, self.0.len() as u64);
        // SAFETY: there is an item, as `new` has checked, and `half_range` stays below their
        // number.
        unsafe { self.0.get_unchecked(index as usize) }
    }
}

/// [`fastrange`] in 32 bits, for fewer than 2³² items. For n < 2³², half·n does not wrap, and
/// ⌊half·n / 2³²⌋ < n; for more, the index is less than 2³², and so less than n.
#[inline(always)]
pub(crate) fn half_range(half: u32, n: u64) -> u64 {
    u64::from(half).wrapping_mul(n) >> 32
}

/// The same for writing.
pub(crate) struct TableMut<'a, T>(&'a mut [T]);

impl<'a, T> TableMut<'a, T> {
    /// `None` if there are no items.
    #[inline(always)]
    pub(crate) fn new(items: &'a mut [T]) -> Option<TableMut<'a, T>> {
        (!items.is_empty()).then_some(TableMut(items))
    }

    /// The item of a hash, and what is left of the hash.
    #[inline(always)]
    pub(crate) fn at(&mut self, hash: u64) -> (&mut T, u64) {
        let (index, rest) = fastrange(hash, self.0.len() as u64);
        // SAFETY: as for `Table::at`.
        (unsafe { self.0.get_unchecked_mut(index as usize) }, rest)
    }

    /// The item of the upper half of a hash.
    #[inline(always)]
    pub(crate) fn at_half(&mut self, half: u32) -> &mut T {
        let index = half_range(half, self.0.len() as u64);
        // SAFETY: as for `Table::at_half`.
        unsafe { self.0.get_unchecked_mut(index as usize) }
    }
}

/// Longer segments than any filter has.
const MOST_LOG: u32 = 32;

/// An array in segments; a lookup reads one word in each of several adjacent ones.
#[derive(Clone, Debug)]
pub(crate) struct Segments<T: Word> {
    words: Buf<T>,
    length: u64,
    /// How many adjacent segments are read.
    run: usize,
    /// How many words have that many segments from their own on.
    starts: u64,
}

impl<T: Word> Segments<T> {
    /// Segments of 2^`log` words, of which `run` adjacent ones are read. Words left over at the
    /// end belong to no segment.
    pub(crate) fn new(words: Buf<T>, log: u32, run: u32) -> Segments<T> {
        let length = 1 << log.min(MOST_LOG);
        let starts = (words.len() as u64 / length + 1).saturating_sub(u64::from(run)) * length;
        Segments {
            words,
            length,
            run: run as usize,
            starts,
        }
    }

    /// A view for lookups; `None` unless exactly `N` segments are read.
    #[inline(always)]
    pub(crate) fn run<const N: usize>(&self) -> Option<Run<'_, T, N>> {
        (N == self.run).then_some(Run {
            words: &self.words,
            length: self.length,
            starts: self.starts,
        })
    }
}

impl<T: Word> Deref for Segments<T> {
    type Target = Buf<T>;

    fn deref(&self) -> &Buf<T> {
        &self.words
    }
}

/// Segments, of which `N` adjacent ones are read. Made only by [`Segments::run`].
#[derive(Clone, Copy)]
pub(crate) struct Run<'a, T, const N: usize> {
    words: &'a [T],
    length: u64,
    starts: u64,
}

impl<'a, T: Word, const N: usize> Run<'a, T, N> {
    #[inline(always)]
    pub(crate) fn words(&self) -> &'a [T] {
        self.words
    }

    /// Where the words of [`at`](Run::at) lie.
    #[inline(always)]
    pub(crate) fn places(&self, first: u64, low: [u64; N]) -> [u64; N] {
        places(self.length, first, low)
    }

    /// A word in the segment of `first` and in each of those that follow.
    ///
    /// # Panics
    ///
    /// If fewer than `N` segments begin with that of `first`.
    #[inline(always)]
    pub(crate) fn at(&self, first: u64, low: [u64; N]) -> [T; N] {
        assert!(first < self.starts, "no segments follow");
        // SAFETY: by `Segments::new` the length L is a power of two, and as `first` < `starts`,
        // the segment of `first` is followed by N − 1 whole ones. The word first + i·L lies in the
        // i-th of them, and changing bits below L leaves it there. `Segments` and this are made
        // together, so the words are those that were counted.
        self.places(first, low)
            .map(|place| unsafe { *self.words.get_unchecked(place as usize) })
    }
}

/// A place in the segment of `first` and in each of those that follow. The segments' length is a
/// power of two, and the bits of `low` below it are xored into the place.
#[inline(always)]
pub(crate) fn places<const N: usize>(length: u64, first: u64, low: [u64; N]) -> [u64; N] {
    let mut segment = first;
    low.map(|low| {
        let place = segment ^ low & (length - 1);
        segment += length;
        place
    })
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;
    use crate::bits::mix64;

    /// The ends of the range, where an index that is one too large would show, and hashes
    /// between.
    fn hashes() -> impl Iterator<Item = u64> {
        let ends = [0, 1, (1 << 32) - 1, 1 << 32, u64::MAX - 1, u64::MAX];
        let many = if cfg!(miri) { 20 } else { 10_000 };
        ends.into_iter().chain((0..many).map(mix64))
    }

    #[test]
    fn every_hash_has_an_item() {
        assert!(Table::<u64>::new(&[]).is_none() && TableMut::<u64>::new(&mut []).is_none());
        for n in [1, 2, 3, 63, 64, 65, 1000] {
            let items: Vec<u64> = (0..n).collect();
            let mut written = items.clone();
            let table = Table::new(&items).unwrap();
            let mut to_write = TableMut::new(&mut written).unwrap();
            for hash in hashes() {
                let (mut index, rest) = fastrange(hash, n);
                assert_eq!(table.at(hash), (&index, index, rest));
                assert_eq!(to_write.at(hash), (&mut index, rest));
                assert_eq!(table.at_by_halves(hash), (&index, index));
                let half = (hash >> 32) as u32;
                let index = (u64::from(half) * n) >> 32;
                assert_eq!(
                    (*table.at_half(half), *to_write.at_half(half)),
                    (index, index)
                );
            }
            assert_eq!((*table.at(0).0, *table.at(u64::MAX).0), (0, n - 1));
            assert_eq!((*table.at_half(0), *table.at_half(u32::MAX)), (0, n - 1));
        }
    }

    #[test]
    fn a_half_finds_an_item_among_more_than_it_can_count() {
        // Items of no size take no memory; the address of one is that of all, but a debug build
        // checks the index.
        let counts = [(1 << 32) - 1, 1 << 32, (1 << 32) + 1, u64::MAX];
        for n in counts.into_iter().filter_map(|n| usize::try_from(n).ok()) {
            let mut items = vec![(); n];
            for half in [0, 1, u32::MAX - 1, u32::MAX] {
                assert_eq!(Table::new(&items).unwrap().at_half(half), &());
                assert_eq!(TableMut::new(&mut items).unwrap().at_half(half), &());
                let hash = u64::from(half) << 32 | u64::from(half);
                assert_eq!(Table::new(&items).unwrap().at_by_halves(hash).0, &());
            }
        }
    }

    #[test]
    fn a_run_reads_one_word_in_each_of_its_segments() {
        for (log, segments) in [(0, 3), (1, 3), (4, 3), (4, 7), (4, 100)] {
            let length = 1u64 << log;
            let words = Buf::filled((0..segments << log).map(|i| i as u64)).unwrap();
            let segmented = Segments::new(words, log, 3);
            assert!(segmented.run::<4>().is_none());
            let run = segmented.run::<3>().unwrap();
            let starts = (segments as u64 - 2) * length;
            for first in 0..starts {
                for low in hashes()
                    .take(100)
                    .map(|hash| [0, hash, hash.rotate_left(9)])
                {
                    let read = run.at(first, low);
                    assert_eq!(read, run.places(first, low), "word i holds i");
                    let segment = read.map(|place| place / length);
                    let expected = [0, 1, 2].map(|i| first / length + i);
                    assert_eq!(segment, expected);
                    assert_eq!(read[0], first);
                }
            }
            for first in [starts, starts + 1, u64::MAX] {
                assert!(catch_unwind(|| run.at(first, [0; 3])).is_err(), "{first}");
            }
        }
    }

    #[test]
    fn what_is_no_whole_segment_is_not_read() {
        for len in 0..60 {
            let words = Buf::filled((0..len).map(|i| i as u64)).unwrap();
            let segmented = Segments::new(words, 3, 4);
            let run = segmented.run::<4>().unwrap();
            // Of fewer than four segments, no run begins.
            let starts = (len as u64 / 8).saturating_sub(3) * 8;
            if starts > 0 {
                assert_eq!(run.at(starts - 1, [7; 4])[3] / 8, len as u64 / 8 - 1);
            }
            assert!(catch_unwind(|| run.at(starts, [0; 4])).is_err(), "{len}");
        }
    }
}
