//! The vector quotient filter: small quotient filters of one cache line each, two for every key,
//! searched and shifted by vector instructions.
//!
//! The essay is at [`QuotientVector`].

mod shape;

use crate::bits::fastrange;
use crate::buf::Buf;
use crate::config::{Config, Param};
use crate::error::{
    BuildError, BuildErrorKind, DecodeError, Full, FullKind, MergeError, MergeErrorKind,
};
use crate::filter::{Count, Filter, Insert, Kind, Merge, Remove};
use crate::format::{Decoder, Encoder};
use crate::lookup::{self, Fill, Leveled, NEAR, Ring};
use crate::option;
use crate::simd::block::BLOCK;
use crate::simd::{self, Bits, Portable};
use shape::Shape;

/// A vector quotient filter: insert, remove, count, merge, in time that does not grow with the
/// load.
///
/// ```
/// use tamis::{Config, Keyed, QuotientVector};
///
/// let mut sessions: Keyed<QuotientVector> = Keyed::new(&Config::new(10_000).fpr(0.01))?;
/// sessions.insert("4f9a")?;
/// assert!(sessions.contains("4f9a"));
/// assert!(sessions.remove("4f9a"));
/// assert!(!sessions.contains("4f9a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///   a block: 64 bytes      512 − 8·s bits of metadata        s fingerprints of 8 bits
///                        ┌────────────────────────────────┬────┬────┬────┬────┬─ … ─┐
///   block of the key     │ 0 10 0 0 110 0 10 0 …          │ 5e │ 1f │ a3 │ 7c │     │
///                        └────────────────────────────────┴────┴────┴────┴────┴─ … ─┘
///                          │ │  │ │ │                       │    └──┬──┘    │
///                bucket    0 1  2 3 4 5 …                   1       4       6
///
///                          for each bucket as many ones as it has fingerprints, and a zero
///
///   hash ──► block, bucket (one of b = 512 − 9·s), fingerprint
///   the other block: block + other ≡ t(bucket, fingerprint) modulo the number of blocks
/// ```
///
/// A quotient filter keeps what is left of a hash behind the place that the rest of the hash
/// chose, in runs that bits of metadata delimit. A table of them that is nearly full has long
/// clusters to shift and to search. Here the table is cut into blocks of a cache line, none of
/// which can spill into the next; a key has two of them and goes into the emptier, so that all
/// fill alike. In a block all fingerprints are compared at once, one byte each, and a gap for one
/// more opens with a single instruction.
///
/// # Lookup
///
/// Of the first i bits of metadata let z be ones. Then i − z buckets end among them, and bucket i
/// begins z zeros later: behind the zero number z − 1 of the bits from i on, and it ends at number
/// z. As bit i + j, if it is one of bucket i, has i zeros before it and so j ones, it belongs to
/// slot j: shifted down by i, the metadata's bits stand at the numbers of their slots. Two
/// deposits (`pdep`) find both zeros, their difference is the mask of the bucket's slots, and the
/// mask of equal fingerprints is laid over it. There is no branch.
///
/// # Insert
///
/// While the first block is less than three quarters full it takes the key, and the second is not
/// read. Then the emptier of both takes it. If both are full, one of their fingerprints that has
/// room in its other block moves there: as in the [`Cuckoo`](crate::Cuckoo) filter the other
/// block follows from what is stored. That is a single move, after a look at up to 2·s blocks,
/// and never a chain: an insertion has a bound whatever the load. Without moves the paper's filter
/// fills to 94 % before the first refusal, depending on the number of blocks; with them to 98 %,
/// and blocks of fewer and longer fingerprints gain more. Below a load of 94 % there is next to
/// none to make.
///
/// # The shape of a block
///
/// The paper's blocks have 48 slots of 8 bits and 80 buckets, or 28 of 16 and 36. A slot more
/// costs 9 buckets (17), and makes the rate higher. So the number of slots is chosen by the rate:
/// the one with which a block takes the most keys. The loads are at most 95 %, with fingerprints
/// of 16 bits 90 %.
///
/// | rate asked for | slots | buckets | bits/key | `cuckoo` |
/// |---|---|---|---|---|
/// | 1 % | 52 of 8 bits | 44 | 10.36 | 10.53 |
/// | 0.5 % | 48 of 8 bits | 80 | 11.23 | 11.58 |
/// | 2⁻⁸ | 47 of 8 bits | 89 | 11.51 | 11.58 |
/// | 0.3 % | 44 of 8 bits | 116 | 12.25 | 12.63 |
/// | 0.1 % | 29 of 16 bits | 19 | 19.62 | 13.68 |
/// | 0.001 % | 26 of 16 bits | 70 | 22.32 | 21.05 |
///
/// (`sizes_are_those_of_the_formula`; of the cuckoo filter by its own.) Between 0.25 % and
/// 0.004 % there is no good shape: fingerprints are whole bytes.
///
/// # Limits
///
/// The two blocks of a key hold 2·s copies of it; one more is refused as
/// [`FullKind::Duplicates`]. Removing a key that was never inserted may remove another's
/// fingerprint. Where a fingerprint stands depends on the order of insertions, as does the order
/// in its bucket: the same keys in another order give other bytes. A filter from which all keys
/// were removed is as new, to the bit.
///
/// # Cost
///
/// 512/λ bits per key at a rate of at most 2·λ/(b·2^f), where λ ≤ 0.95·s is the mean number of
/// keys in a block. A lookup reads two lines, and so does an insertion from three quarters of the
/// load on.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `bits` | 8 or 16 | whichever takes less space for the rate | bits of a fingerprint: 16 reach lower rates |
///
/// # When to choose it
///
/// When keys come and go at rates from 0.25 % to 1 %, and insertions into a table that is nearly
/// full have to be short. At other rates take [`Cuckoo`](crate::Cuckoo).
///
/// # Bibliography
///
/// - Pandey, Conway, Durie, Bender, Farach-Colton, Johnson, *Vector quotient filters: overcoming
///   the time/space trade-off in filter design*, 2021: the blocks, their metadata, two choices,
///   and the short cut of an insertion.
/// - Azar, Broder, Karlin, Upfal, *Balanced allocations*, 1994: why two choices fill evenly.
/// - Dietzfelbinger, Weidling, *Balanced allocation and dictionaries with tightly packed constant
///   size bins*, 2007: how much moving adds to that.
#[derive(Clone, Debug)]
pub struct QuotientVector {
    bytes: Buf<u8>,
    shape: Shape,
    len: u64,
}

/// A hash has as many bits again, for bucket and fingerprint.
const MOST_BLOCKS: u64 = 1 << 31;
/// Blocks that the rate is counted from.
const COUNTED: usize = 1 << 14;

/// Where a key may stand.
#[derive(Clone, Copy, Default)]
struct Place {
    block: u32,
    other: u32,
    bucket: u32,
    fingerprint: u32,
}

impl Place {
    /// The place of a hash: this filter's geometry, with [`alternate`].
    #[inline(always)]
    fn of(hash: u64, blocks: usize, shape: Shape) -> Place {
        let (block, rest) = fastrange(hash, blocks as u64);
        let (bucket, rest) = fastrange(rest, u64::from(shape.buckets()));
        let fingerprint = rest >> (64 - 8 * shape.width);
        Place::at(block, bucket, fingerprint, blocks)
    }

    /// The place of a fingerprint that stands in a block.
    #[inline(always)]
    fn at(block: u64, bucket: u64, fingerprint: u64, blocks: usize) -> Place {
        Place {
            block: block as u32,
            other: alternate(block, bucket << 16 | fingerprint, blocks as u64) as u32,
            bucket: bucket as u32,
            fingerprint: fingerprint as u32,
        }
    }

    #[inline(always)]
    fn blocks(self) -> [usize; 2] {
        [self.block as usize, self.other as usize]
    }
}

/// The other block of what may stand in a block. Both add up to an odd number t, which bucket and
/// fingerprint choose, modulo the number of blocks, which is even: so they differ, and either
/// leads to the other.
#[inline(always)]
fn alternate(block: u64, what: u64, blocks: u64) -> u64 {
    let hashed = what.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let t = 2 * fastrange(hashed, blocks / 2).0 + 1;
    if t >= block {
        t - block
    } else {
        t + blocks - block
    }
}

/// The blocks, for looking up fingerprints of `WIDTH` bytes.
#[derive(Clone, Copy)]
struct Reader<'a, const WIDTH: u32> {
    blocks: &'a [[u8; BLOCK]],
    slots: u32,
}

impl<const WIDTH: u32> Reader<'_, WIDTH> {
    /// With a width that the compiler knows.
    #[inline(always)]
    fn shape(self) -> Shape {
        Shape {
            width: WIDTH,
            slots: self.slots,
        }
    }
}

impl<const WIDTH: u32> Ring for Reader<'_, WIDTH> {
    /// A block is one vector.
    const WIDE: bool = true;
    const PREFETCH_FROM: usize = NEAR;
    type Place = Place;
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        size_of_val(self.blocks)
    }

    #[inline(always)]
    fn place(self, hash: u64) -> Place {
        Place::of(hash, self.blocks.len(), self.shape())
    }

    #[inline(always)]
    fn prefetch(self, place: Place) {
        for block in place.blocks() {
            simd::prefetch(self.blocks, block);
        }
    }

    #[inline(always)]
    fn probe<B: Bits>(self, bits: B, place: Place) -> bool {
        let (shape, bucket, fingerprint) = (self.shape(), place.bucket, place.fingerprint);
        let [one, two] = place.blocks();
        let one = shape.lanes(bits, &self.blocks[one], bucket, fingerprint);
        let two = shape.lanes(bits, &self.blocks[two], bucket, fingerprint);
        one | two != 0
    }
}

/// The blocks, for inserting fingerprints of `WIDTH` bytes.
struct Writer<'a, const WIDTH: u32> {
    blocks: &'a mut [[u8; BLOCK]],
    slots: u32,
}

impl<const WIDTH: u32> Writer<'_, WIDTH> {
    /// With a width that the compiler knows.
    #[inline(always)]
    fn shape(&self) -> Shape {
        Shape {
            width: WIDTH,
            slots: self.slots,
        }
    }

    #[inline(always)]
    fn place(&self, hash: u64) -> Place {
        Place::of(hash, self.blocks.len(), self.shape())
    }
}

impl<const WIDTH: u32> Fill for Writer<'_, WIDTH> {
    const PREFETCH_FROM: usize = NEAR;
    const WIDE: bool = true;
    type Refusal = FullKind;

    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.blocks)
    }

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        for block in self.place(hash).blocks() {
            simd::prefetch_near(self.blocks, block);
        }
    }

    #[inline(always)]
    fn fill<B: Bits>(&mut self, bits: B, hash: u64) -> Result<(), FullKind> {
        let (shape, place) = (self.shape(), self.place(hash));
        put(bits, self.blocks, shape, place)
    }
}

/// Puts a fingerprint into one of its blocks.
#[inline(always)]
fn put<B: Bits>(
    bits: B,
    blocks: &mut [[u8; BLOCK]],
    shape: Shape,
    place: Place,
) -> Result<(), FullKind> {
    let [first, second] = place.blocks();
    let mut into = first;
    let used = shape.used(&blocks[first]);
    // Below three quarters the second block is not read.
    if 4 * used >= 3 * shape.slots {
        let other = shape.used(&blocks[second]);
        if other < used {
            into = second;
        }
        if used.min(other) >= shape.slots {
            into = make_room(blocks, shape, place)?;
        }
    }
    shape.add(bits, &mut blocks[into], place.bucket, place.fingerprint);
    Ok(())
}

/// Frees a slot in one of two full blocks by moving a fingerprint to its other block, or says why
/// not, having changed nothing.
#[cold]
fn make_room(blocks: &mut [[u8; BLOCK]], shape: Shape, place: Place) -> Result<usize, FullKind> {
    for full in place.blocks() {
        let movable = places(blocks, shape, full)
            .zip(0..)
            .find(|(held, _)| shape.used(&blocks[held.other as usize]) < shape.slots);
        if let Some((held, slot)) = movable {
            let there = &mut blocks[held.other as usize];
            shape.add(Portable, there, held.bucket, held.fingerprint);
            shape.take(&mut blocks[full], held.bucket, slot);
            return Ok(full);
        }
    }
    Err(if copies(blocks, shape, place) == shape.most_copies() {
        FullKind::Duplicates(shape.most_copies())
    } else {
        FullKind::Capacity
    })
}

/// What stands in a block, slot by slot.
fn places(blocks: &[[u8; BLOCK]], shape: Shape, block: usize) -> impl Iterator<Item = Place> {
    let held = shape.fingerprints(&blocks[block]);
    held.map(move |(bucket, fingerprint)| {
        let (bucket, fingerprint) = (u64::from(bucket), u64::from(fingerprint));
        Place::at(block as u64, bucket, fingerprint, blocks.len())
    })
}

/// How often a place is held.
fn copies(blocks: &[[u8; BLOCK]], shape: Shape, place: Place) -> u64 {
    let [one, two] = place.blocks().map(|block| {
        let slots = shape.matches(&blocks[block], place.bucket, place.fingerprint);
        u64::from(slots.count_ones())
    });
    one + two
}

impl QuotientVector {
    /// Bits of a fingerprint: 8 or 16.
    pub fn fingerprint_bits(&self) -> u32 {
        8 * self.shape.width
    }

    /// Slots of the table; the filter is sized to hold its capacity in 95 % of them, 90 % where
    /// fingerprints have 16 bits, and in fewer where the rate asks for it.
    pub fn slots(&self) -> u64 {
        self.blocks().len() as u64 * u64::from(self.shape.slots)
    }

    /// The fraction of slots in use.
    pub fn load(&self) -> f64 {
        self.len as f64 / self.slots() as f64
    }

    fn with_shape(blocks: u64, shape: Shape) -> Result<QuotientVector, BuildError> {
        Ok(QuotientVector {
            bytes: Buf::zeroed(blocks * BLOCK as u64)?,
            shape,
            len: 0,
        })
    }

    #[inline(always)]
    fn blocks(&self) -> &[[u8; BLOCK]] {
        self.bytes.as_chunks().0
    }

    #[inline(always)]
    fn blocks_mut(&mut self) -> &mut [[u8; BLOCK]] {
        self.bytes.make_mut().as_chunks_mut().0
    }

    #[inline(always)]
    fn place(&self, hash: u64) -> Place {
        Place::of(hash, self.blocks().len(), self.shape)
    }

    #[inline(always)]
    fn reader<const WIDTH: u32>(&self) -> Reader<'_, WIDTH> {
        Reader {
            blocks: self.blocks(),
            slots: self.shape.slots,
        }
    }

    #[inline(always)]
    fn writer<const WIDTH: u32>(&mut self) -> Writer<'_, WIDTH> {
        let slots = self.shape.slots;
        Writer {
            blocks: self.blocks_mut(),
            slots,
        }
    }
}

impl Leveled for QuotientVector {
    type Answer = bool;
    const WIDE: bool = true;

    #[inline(always)]
    fn look_up<B: Bits>(&self, bits: B, hash: u64) -> bool {
        match self.shape.width {
            1 => {
                let reader = self.reader::<1>();
                reader.probe(bits, reader.place(hash))
            }
            _ => {
                let reader = self.reader::<2>();
                reader.probe(bits, reader.place(hash))
            }
        }
    }
}

impl Filter for QuotientVector {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        lookup::single(self, hash)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.bytes.size_in_bytes()
    }

    /// The share of triples of block, bucket and fingerprint that are answered yes, counted: exact
    /// for what the table holds, copies and all. Of a large table a part is counted, to find how
    /// many fingerprints stand more than once in their buckets.
    fn fpr(&self) -> f64 {
        let (blocks, shape) = (self.blocks(), self.shape);
        let (mut yes, mut held) = (0u64, 0u64);
        for index in (0..blocks.len()).step_by(blocks.len().div_ceil(COUNTED)) {
            for (place, slot) in places(blocks, shape, index).zip(0..) {
                held += 1;
                let (bucket, fingerprint) = (place.bucket, place.fingerprint);
                let alike = shape.matches(&blocks[index], bucket, fingerprint);
                if alike.trailing_zeros() != slot {
                    continue;
                }
                // A fingerprint answers for both its blocks; one that stands in both is counted
                // from either.
                let other = &blocks[place.other as usize];
                let there = shape.matches(other, bucket, fingerprint);
                yes += 2 - u64::from(there != 0);
            }
        }
        let triples_per_key = match held {
            0 => 2.0,
            _ => yes as f64 / held as f64,
        };
        let values = 2f64.powi(8 * shape.width as i32);
        let triples = blocks.len() as f64 * f64::from(shape.buckets()) * values;
        (triples_per_key * self.len as f64 / triples).min(1.0)
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        for block in self.place(hash).blocks() {
            simd::prefetch_near(self.blocks(), block);
        }
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        match self.shape.width {
            1 => lookup::ring(Some(self.reader::<1>()), hashes, out),
            _ => lookup::ring(Some(self.reader::<2>()), hashes, out),
        }
    }
}

impl Insert for QuotientVector {
    #[inline]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let inserted = match self.shape.width {
            1 => lookup::insert(self.writer::<1>(), hash),
            _ => lookup::insert(self.writer::<2>(), hash),
        };
        inserted.map_err(|kind| Full::new(kind, self.len))?;
        self.len += 1;
        Ok(())
    }

    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), Full> {
        let inserted = match self.shape.width {
            1 => lookup::insert_batch(self.writer::<1>(), hashes),
            _ => lookup::insert_batch(self.writer::<2>(), hashes),
        };
        let accepted = match inserted {
            Ok(()) => hashes.len(),
            Err((accepted, _)) => accepted,
        };
        self.len += accepted as u64;
        inserted.map_err(|(accepted, kind)| Full::new(kind, self.len).after(accepted))
    }
}

impl Remove for QuotientVector {
    fn remove(&mut self, hash: u64) -> bool {
        let (place, shape) = (self.place(hash), self.shape);
        for index in place.blocks() {
            let slots = shape.matches(&self.blocks()[index], place.bucket, place.fingerprint);
            if slots != 0 {
                let block = &mut self.blocks_mut()[index];
                shape.take(block, place.bucket, slots.trailing_zeros());
                self.len -= 1;
                return true;
            }
        }
        false
    }
}

impl Count for QuotientVector {
    fn count(&self, hash: u64) -> u64 {
        copies(self.blocks(), self.shape, self.place(hash))
    }
}

impl Merge for QuotientVector {
    /// Inserts every fingerprint of the other. Copies of a key add up, as far as two blocks hold
    /// them.
    fn merge(&mut self, other: &QuotientVector) -> Result<(), MergeError> {
        let blocks = self.blocks().len() as u64;
        MergeError::unless_equal("blocks", blocks, other.blocks().len() as u64)?;
        let (ours, theirs) = (self.fingerprint_bits(), other.fingerprint_bits());
        MergeError::unless_equal("bits", u64::from(ours), u64::from(theirs))?;
        let (ours, theirs) = (self.shape.slots, other.shape.slots);
        MergeError::unless_equal("slots", u64::from(ours), u64::from(theirs))?;
        let mut union = self.clone();
        for block in 0..other.blocks().len() {
            for place in places(other.blocks(), self.shape, block) {
                put(Portable, union.blocks_mut(), self.shape, place)
                    .map_err(|kind| MergeErrorKind::Full(Full::new(kind, union.len)))?;
                union.len += 1;
            }
        }
        *self = union;
        Ok(())
    }
}

impl Kind for QuotientVector {
    const ABOUT: &'static str =
        "keys come and go in short, bounded time; smaller than cuckoo from 1 % to 0.25 %";
    const PARAMS: &'static [Param] = &[Param {
        name: option::BITS.name,
        values: "8 or 16",
        default: "whichever takes less space for the rate",
        about: "bits of a fingerprint: 16 reach lower rates",
    }];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<QuotientVector, BuildError> {
        let (keys, fpr) = config.check::<QuotientVector>(hashes)?;
        let either = |fpr| {
            let bytes = [Shape::best(1, fpr), Shape::best(2, fpr)];
            let more = |a: &(Shape, f64), b: &(Shape, f64)| a.1.total_cmp(&b.1);
            bytes.into_iter().flatten().max_by(more)
        };
        let best = config.sized::<QuotientVector, _>(either)?;
        let (shape, keys_per_block) = match config.param::<u32>("bits", "8 or 16")? {
            None => best,
            Some(bits @ (8 | 16)) => Shape::best(bits / 8, fpr).ok_or_else(|| {
                BuildError::parameter("bits", bits, format!("16 for a rate of {fpr}"))
            })?,
            Some(bits) => return Err(BuildError::parameter("bits", bits, "8 or 16")),
        };
        let needed = 2.0 * (keys as f64 / keys_per_block / 2.0).ceil().max(1.0);
        if needed > MOST_BLOCKS as f64 {
            return Err(BuildErrorKind::TooLarge {
                unit: "blocks",
                needed,
                most: MOST_BLOCKS,
            }
            .into());
        }
        let mut filter = QuotientVector::with_shape(needed as u64, shape)?;
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("blocks", self.blocks().len() as u64);
        out.param("bits", u64::from(self.fingerprint_bits()));
        out.param("slots", u64::from(self.shape.slots));
        out.section(&self.bytes);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<QuotientVector, DecodeError> {
        let blocks = input.param_in("blocks", 2..=MOST_BLOCKS)?;
        if !blocks.is_multiple_of(2) {
            return Err(DecodeError::invalid("blocks", blocks, "an even number"));
        }
        let bits = input.param_in("bits", 8..=16)?;
        let slots = input.param("slots")?;
        let of_shape = |shape: &Shape| u64::from(shape.slots) == slots;
        if !bits.is_multiple_of(8) {
            return Err(DecodeError::invalid("bits", bits, "8 or 16"));
        }
        let Some(shape) = Shape::all(bits as u32 / 8).find(of_shape) else {
            let expected = "43 to 56 slots of 8 bits, or 23 to 29 of 16";
            return Err(DecodeError::invalid("slots", slots, expected));
        };
        let filter = QuotientVector {
            bytes: input.section("blocks", blocks * BLOCK as u64)?,
            shape,
            len: input.len(),
        };
        let mut used = 0;
        for (block, index) in filter.blocks().iter().zip(0u64..) {
            if !shape.is_sound(block) {
                let expected = "as many ones as slots in use, and zeros behind them";
                return Err(DecodeError::invalid("block", index, expected));
            }
            used += u64::from(shape.used(block));
        }
        if used != filter.len {
            let expected = format!("{used}, the slots in use");
            return Err(DecodeError::invalid("keys", filter.len, expected));
        }
        Ok(filter)
    }
}

#[cfg(test)]
mod tests;
