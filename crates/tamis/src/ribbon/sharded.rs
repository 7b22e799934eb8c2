//! Lookups in the tables of shards that were solved separately.

use std::marker::PhantomData;

use crate::build::shards::shard_of;
use crate::filter::Filter;
use crate::lookup::{self, Leveled, Ring};
use crate::ribbon::{Place, Row, Shape};
use crate::simd::ribbon::COLUMNS;
use crate::simd::{Bits, Portable};

/// A filter of such tables. Its functions must be `#[inline(always)]`.
pub(super) trait Sharded: Filter + Sized {
    /// The tables, one after the other; the salts that [`salted`](Sharded::salted) takes; and the
    /// shape of the tables.
    fn tables(&self) -> (&[u64], &[u64], Shape);
    /// The value from which start, row and result of a hash in this shard are derived.
    fn salted(hash: u64, shard: u64, salts: &[u64], shape: &Shape) -> u64;
    /// The result to look for, given the one of the hash.
    fn expected(result: u32) -> u32;
}

/// Looks up many hashes.
pub(super) fn contains_batch<F: Sharded>(filter: &F, hashes: &[u64], out: &mut [bool]) {
    let (_, _, shape) = filter.tables();
    match (shape.width, shape.columns as usize) {
        _ if shape.shards == 0 => lookup::ring(None::<Reader<'_, F, u64, false>>, hashes, out),
        (64, ..=COLUMNS) => lookup::ring(Some(Reader::<F, u64, false>::new(filter)), hashes, out),
        (64, _) => lookup::ring(Some(Reader::<F, u64, true>::new(filter)), hashes, out),
        (_, ..=COLUMNS) => lookup::ring(Some(Reader::<F, u128, false>::new(filter)), hashes, out),
        _ => lookup::ring(Some(Reader::<F, u128, true>::new(filter)), hashes, out),
    }
}

/// Prefetches what a lookup of this hash reads.
#[inline(always)]
pub(super) fn prefetch<F: Sharded>(filter: &F, hash: u64) {
    let reader = Reader::<F, u64, true>::new(filter);
    if reader.shape.shards > 0 {
        reader.prefetch(reader.place(hash));
    }
}

/// The tables, for lookups. `WIDE`: with more columns than are compared at once.
struct Reader<'a, F, R, const WIDE: bool> {
    words: &'a [u64],
    salts: &'a [u64],
    shape: Shape,
    of: PhantomData<(F, R)>,
}

impl<F, R, const WIDE: bool> Clone for Reader<'_, F, R, WIDE> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F, R, const WIDE: bool> Copy for Reader<'_, F, R, WIDE> {}

impl<'a, F: Sharded, R: Row, const WIDE: bool> Reader<'a, F, R, WIDE> {
    #[inline(always)]
    fn new(filter: &'a F) -> Self {
        let (words, salts, shape) = filter.tables();
        Reader {
            words,
            salts,
            shape,
            of: PhantomData,
        }
    }

    /// Whether a hash is contained, as a single call.
    #[inline(always)]
    fn holds<B: Bits>(self, bits: B, filter: &F, hash: u64) -> bool {
        let place = self.place(hash);
        let agrees = self
            .shape
            .agrees_before_the_end::<R, B, WIDE>(bits, self.words, place);
        match agrees {
            Some(agrees) => agrees,
            None => at_the_end::<F, R>(filter, hash),
        }
    }
}

impl<F: Sharded, R: Row, const WIDE: bool> Ring for Reader<'_, F, R, WIDE> {
    type Place = Place<R>;
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        size_of_val(self.words)
    }

    /// The shard of a hash, and the hash salted for it: the geometry of these filters.
    #[inline(always)]
    fn place(self, hash: u64) -> Place<R> {
        let shard = shard_of(hash, self.shape.shards);
        let salted = F::salted(hash, shard, self.salts, &self.shape);
        let (row, result) = R::of(salted);
        let start = self.shape.start(salted);
        Place {
            first: self.shape.first(shard, start),
            start,
            row,
            result: F::expected(result),
        }
    }

    #[inline(always)]
    fn prefetch(self, place: Place<R>) {
        self.shape.prefetch(self.words, place.first);
    }

    #[inline(always)]
    fn probe<B: Bits>(self, bits: B, place: Place<R>) -> bool {
        self.shape.agrees::<R, B, WIDE>(bits, self.words, place)
    }
}

/// The same for a row so near the end that eight words would reach beyond the last. Takes what its
/// caller still has in registers.
#[cold]
#[inline(never)]
fn at_the_end<F: Sharded, R: Row>(filter: &F, hash: u64) -> bool {
    let reader = Reader::<F, R, true>::new(filter);
    reader.probe(Portable, reader.place(hash))
}

impl<F: Sharded> Leveled for F {
    type Answer = bool;

    #[inline(always)]
    fn look_up<B: Bits>(&self, bits: B, hash: u64) -> bool {
        let (_, _, shape) = self.tables();
        match (shape.width, shape.columns as usize) {
            _ if shape.shards == 0 => false,
            (64, ..=COLUMNS) => Reader::<F, u64, false>::new(self).holds(bits, self, hash),
            (64, _) => Reader::<F, u64, true>::new(self).holds(bits, self, hash),
            (_, ..=COLUMNS) => Reader::<F, u128, false>::new(self).holds(bits, self, hash),
            _ => Reader::<F, u128, true>::new(self).holds(bits, self, hash),
        }
    }
}
