//! Looking up in the tables of shards that were solved apart.

use std::marker::PhantomData;

use crate::build::shards::shard_of;
use crate::filter::Filter;
use crate::ribbon::{Place, Row, Shape};
use crate::simd::{self, Bits, COLUMNS, Portable, Probe};

/// A filter of such tables. Its functions must be `#[inline(always)]`.
pub(super) trait Sharded: Filter + Sized {
    /// The tables, one after the other, what [`salted`](Sharded::salted) asks for, and where all of it lies.
    fn tables(&self) -> (&[u64], &[u64], Shape);
    /// What start, row and result of a hash in this shard are made of.
    fn salted(hash: u64, shard: u64, salts: &[u64], shape: &Shape) -> u64;
    /// The result that is looked for, of that which a hash has.
    fn expected(result: u32) -> u32;
}

/// Whether a filter contains a hash.
#[inline(always)]
pub(super) fn contains<F: Sharded>(filter: &F, hash: u64) -> bool {
    simd::dispatch(Lookup(filter, hash))
}

/// The same for many.
pub(super) fn contains_batch<F: Sharded>(filter: &F, hashes: &[u64], out: &mut [bool]) {
    let n = hashes.len().min(out.len());
    simd::dispatch(LookupBatch {
        filter,
        hashes: &hashes[..n],
        out: &mut out[..n],
    });
}

/// Asks for what a hash is looked up in.
#[inline(always)]
pub(super) fn prefetch<F: Sharded>(filter: &F, hash: u64) {
    let reader = Reader::<F, u64, _, true>::new(filter, Portable);
    if reader.shape.shards > 0 {
        reader.prefetch(reader.place(hash));
    }
}

/// The tables, for looking up. `WIDE`: with more columns than are compared at once.
struct Reader<'a, F, R, B, const WIDE: bool> {
    bits: B,
    words: &'a [u64],
    salts: &'a [u64],
    shape: Shape,
    of: PhantomData<(F, R)>,
}

impl<'a, F: Sharded, R: Row, B: Bits, const WIDE: bool> Reader<'a, F, R, B, WIDE> {
    #[inline(always)]
    fn new(filter: &'a F, bits: B) -> Self {
        let (words, salts, shape) = filter.tables();
        Reader {
            bits,
            words,
            salts,
            shape,
            of: PhantomData,
        }
    }
}

impl<F: Sharded, R: Row, B: Bits, const WIDE: bool> Probe for Reader<'_, F, R, B, WIDE> {
    const PREFETCH_FROM: usize = simd::FAR;
    type Place = Place<R>;

    /// The shard of a hash, and the rest as its salt makes it: the geometry of these filters.
    #[inline(always)]
    fn place(&self, hash: u64) -> Place<R> {
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
    fn prefetch(&self, place: Place<R>) {
        self.shape.prefetch(self.words, place.first);
    }

    #[inline(always)]
    fn probe(&self, place: Place<R>) -> bool {
        self.shape
            .agrees::<R, B, WIDE>(self.bits, self.words, place)
    }
}

/// One hash to look up. Two words, so that both are handed over in registers.
struct Lookup<'a, F>(&'a F, u64);

impl<F: Sharded> Lookup<'_, F> {
    #[inline(always)]
    fn with<R: Row, B: Bits, const WIDE: bool>(self, bits: B) -> bool {
        let Lookup(filter, hash) = self;
        let reader = Reader::<F, R, B, WIDE>::new(filter, bits);
        let (shape, place) = (&reader.shape, reader.place(hash));
        match shape.agrees_before_the_end::<R, B, WIDE>(bits, reader.words, place) {
            Some(agrees) => agrees,
            None => at_the_end::<F, R>(filter, hash),
        }
    }
}

/// The same for a row so near the end that eight words would reach beyond the last. It is handed what its caller still has
/// in registers.
#[cold]
#[inline(never)]
fn at_the_end<F: Sharded, R: Row>(filter: &F, hash: u64) -> bool {
    let reader = Reader::<F, R, _, true>::new(filter, Portable);
    reader.probe(reader.place(hash))
}

impl<F: Sharded> simd::Op for Lookup<'_, F> {
    type Out = bool;

    #[inline(always)]
    fn run<B: Bits>(self, bits: B) -> bool {
        let (_, _, shape) = self.0.tables();
        if shape.shards == 0 {
            return false;
        }
        match (shape.width, shape.columns as usize) {
            (64, ..=COLUMNS) => self.with::<u64, B, false>(bits),
            (64, _) => self.with::<u64, B, true>(bits),
            (_, ..=COLUMNS) => self.with::<u128, B, false>(bits),
            _ => self.with::<u128, B, true>(bits),
        }
    }
}

/// Many hashes to look up.
struct LookupBatch<'a, F> {
    filter: &'a F,
    hashes: &'a [u64],
    out: &'a mut [bool],
}

impl<F: Sharded> LookupBatch<'_, F> {
    #[inline(always)]
    fn with<R: Row, B: Bits, const WIDE: bool>(self, bits: B) {
        let reader = Reader::<F, R, B, WIDE>::new(self.filter, bits);
        let bytes = self.filter.size_in_bytes();
        simd::probe_all(&reader, bits, bytes, self.hashes, self.out);
    }
}

impl<F: Sharded> simd::Op for LookupBatch<'_, F> {
    type Out = ();

    #[inline(always)]
    fn run<B: Bits>(self, bits: B) {
        let (_, _, shape) = self.filter.tables();
        if shape.shards == 0 {
            return self.out.fill(false);
        }
        match (shape.width, shape.columns as usize) {
            (64, ..=COLUMNS) => self.with::<u64, B, false>(bits),
            (64, _) => self.with::<u64, B, true>(bits),
            (_, ..=COLUMNS) => self.with::<u128, B, false>(bits),
            _ => self.with::<u128, B, true>(bits),
        }
    }
}
