//! The quotient family; [`families`](crate::families) has its essay.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io;
use std::ops::RangeInclusive;

use crate::error::{Full, FullKind, MergeFilesError, NoMemory};
use crate::filter::Filter;
use crate::lookup::{self, Fill, NEAR};
use crate::simd::{self, Bits, Op};

mod cleary;
mod counter;
mod counting;
mod counts;
mod disk;
mod frozen;
mod list;
pub(crate) mod multiset;
mod rank_select;
mod redundant;
pub(crate) mod sequence;
mod standard;
pub(crate) mod table;
mod vector;

pub use cleary::Cleary;
pub use counting::QuotientCounting;
pub use frozen::FrozenMultiset;
pub use multiset::Multiset;
pub use rank_select::Quotient;
pub use standard::{QuotientSlot, QuotientStandard};
pub use vector::QuotientVector;

/// A filter on a quotient [`table`]: how one hash goes in, and how it leaves. Single calls and
/// batches, with prefetching and at the processor's best level, follow from that.
pub(crate) trait OnTable: Filter {
    fn insert_one<B: Bits>(&mut self, bits: B, hash: u64) -> Result<(), Full>;
    fn remove_one<B: Bits>(&mut self, bits: B, hash: u64) -> bool;
}

struct Filling<'a, F>(&'a mut F);

impl<F: OnTable> Fill for Filling<'_, F> {
    const PREFETCH_FROM: usize = NEAR;
    type Refusal = Full;

    #[inline(always)]
    fn bytes(&self) -> usize {
        self.0.size_in_bytes()
    }

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        self.0.prefetch(hash);
    }

    #[inline(always)]
    fn fill<B: Bits>(&mut self, bits: B, hash: u64) -> Result<(), Full> {
        self.0.insert_one(bits, hash)
    }
}

pub(crate) fn insert<F: OnTable>(filter: &mut F, hash: u64) -> Result<(), Full> {
    filter.prefetch(hash);
    lookup::insert(Filling(filter), hash)
}

pub(crate) fn insert_batch<F: OnTable>(filter: &mut F, hashes: &[u64]) -> Result<(), Full> {
    let inserted = lookup::insert_batch(Filling(filter), hashes);
    inserted.map_err(|(accepted, full)| full.after(accepted))
}

pub(crate) fn remove<F: OnTable>(filter: &mut F, hash: u64) -> bool {
    struct Removing<'a, F>(&'a mut F, u64);
    impl<F: OnTable> Op for Removing<'_, F> {
        type Out = bool;

        #[inline(always)]
        fn run<B: Bits>(self, bits: B) -> bool {
            self.0.remove_one(bits, self.1)
        }
    }
    simd::dispatch(Removing(filter, hash))
}

/// How fingerprints are split: the slots that they want to stand in, one for each quotient, and the
/// bits of a remainder.
type Split = (u64, u32);

/// The same fingerprints in more slots: each doubling makes a bit of the remainder one of the
/// quotient.
fn doubled((slots, bits): Split, times: u32) -> Split {
    (slots << times, bits - times)
}

/// Why a table was not written.
enum Unwritten {
    Full(FullKind),
    /// Values crowd at the end of a large table that is nearly empty, as hashes that are spread do
    /// not: only far too many slots would hold them.
    Crowded,
    /// Of files that are merged: any other reason.
    Files(MergeFilesError),
}

impl Unwritten {
    /// Which limit was met.
    fn into_kind(self) -> FullKind {
        match self {
            Unwritten::Full(kind) => kind,
            Unwritten::Crowded | Unwritten::Files(_) => FullKind::Capacity,
        }
    }

    /// In memory, where nothing else can happen: the error of a filter that holds so many keys.
    fn into_full(self, keys: u64) -> Full {
        Full::new(self.into_kind(), keys)
    }
}

impl From<NoMemory> for Unwritten {
    fn from(e: NoMemory) -> Unwritten {
        Unwritten::Full(FullKind::Memory(e.bytes))
    }
}

impl From<MergeFilesError> for Unwritten {
    fn from(e: MergeFilesError) -> Unwritten {
        Unwritten::Files(e)
    }
}

impl From<io::Error> for Unwritten {
    fn from(e: io::Error) -> Unwritten {
        Unwritten::Files(e.into())
    }
}

/// Writes a table with the fewest doublings that give room.
fn fitting<T>(
    doublings: RangeInclusive<u32>,
    mut write: impl FnMut(u32) -> Result<T, Unwritten>,
) -> Result<T, Unwritten> {
    let full = Unwritten::Full(FullKind::Capacity);
    let mut tries = doublings.map(&mut write);
    let is_last =
        |tried: &Result<T, Unwritten>| !matches!(tried, Err(Unwritten::Full(FullKind::Capacity)));
    tries.find(is_last).unwrap_or(Err(full))
}

/// Sorted lists as one.
pub(crate) struct Merged<I: Iterator<Item: Ord>> {
    lists: Vec<I>,
    /// The next of each list that has not ended, with the list's number.
    heads: BinaryHeap<Reverse<(I::Item, usize)>>,
}

pub(crate) fn merged<I: Iterator<Item: Ord>>(lists: impl IntoIterator<Item = I>) -> Merged<I> {
    let mut lists: Vec<I> = lists.into_iter().collect();
    let heads = lists.iter_mut().enumerate();
    let heads = heads.filter_map(|(i, list)| Some(Reverse((list.next()?, i))));
    let heads = heads.collect();
    Merged { lists, heads }
}

impl<I: Iterator<Item: Ord>> Iterator for Merged<I> {
    type Item = I::Item;

    #[inline]
    fn next(&mut self) -> Option<I::Item> {
        let mut head = self.heads.peek_mut()?;
        match self.lists[head.0.1].next() {
            Some(next) => Some(std::mem::replace(&mut head.0.0, next)),
            None => Some(PeekMut::pop(head).0.0),
        }
    }
}
