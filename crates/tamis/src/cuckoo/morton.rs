//! The Morton filter: a cuckoo filter whose sparse buckets are packed into cache lines, so that
//! most lookups read one.
//!
//! The essay is at [`Morton`].

use crate::bits::fastrange;
use crate::buf::Buf;
use crate::config::Config;
use crate::error::{
    BuildError, BuildErrorKind, DecodeError, Full, FullKind, MergeError, MergeErrorKind,
};
use crate::filter::{Count, Filter, Insert, Kind, Merge, Remove};
use crate::format::{Decoder, Encoder};
use crate::lookup::{self, Fill, Leveled, NEAR, Ring};
use crate::math;
use crate::simd::block::{self, BLOCK, word};
use crate::simd::{self, Bits, Portable};

/// A Morton filter: insert, remove, count up to six, merge; a lookup mostly reads one line.
///
/// ```
/// use tamis::{Config, Keyed, Morton};
///
/// let mut sessions: Keyed<Morton> = Keyed::new(&Config::new(10_000).fpr(0.01))?;
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
///   a block: 64 bytes
///   ┌─ 16 bits ─┬─ 2 bits for each of b buckets ─┬─ s slots of 8 bits ────────────┐
///   │ overflow  │ 1 0 2 0 0 3 0 1 …              │ 7c │ 1f a3 │ 5e 90 22 │ 08 │ … │
///   └───────────┴─┬───┬─────┬───┬────────────────┴─┬──┴───┬───┴────┬─────┴─┬──┴───┘
///                 │   │     │   └ bucket 7 ────────│──────│────────│───────┘
///                 │   │     └ bucket 5 ────────────│──────│────────┘
///                 │   └ bucket 2 ──────────────────│──────┘
///                 └ bucket 0 ──────────────────────┘        8·s + 2·b + 16 = 512
///
///   hash ──► block, bucket, fingerprint
///   the other place: an odd number of blocks away, up from an even block, down from an odd one
/// ```
///
/// A cuckoo filter reads two lines for each lookup. If its buckets were much too large for its
/// keys, nearly all keys would stand in their first bucket, and the second would hardly have to
/// be read; but most of the table would be empty. Here that table is not stored as it is: of each
/// bucket of three slots only those in use are kept, one after the other, and a counter of two
/// bits says how many they are. A bucket begins where the counters before it add up to: two
/// population counts a word, of all ones, and again of those that count double.
///
/// # Lookup
///
/// If the fingerprint is in its bucket, the answer is yes. If not, it may have been put into its
/// other place, but only if its *overflow bit* is set, which b/16 buckets of a block share. Of a
/// filter that was just filled to 95 % with the paper's blocks of 46 slots and 64 buckets, 88 % of
/// lookups of absent keys end there (`most_lookups_read_one_line`).
///
/// # The other place
///
/// It follows from what is stored, so that a fingerprint can be moved without its key. The
/// fingerprint chooses an odd number d below 128 and a number t: an even block goes d blocks up,
/// an odd one d down, around the end of a table of any even number of blocks; and the numbers of
/// the two buckets add up to t modulo b. So either place leads to the other, they are never in the
/// same block, and they are no more than 8 KiB apart, mostly in one or two pages of memory.
///
/// # Insert
///
/// A key goes to its first place while its bucket holds less than three and its block less than s;
/// else its overflow bit is set and it goes to the other. If both are full, a breadth-first search
/// looks for the shortest chain of moves that makes room, and sets the overflow bit of every place
/// that something is moved from. From a full bucket one of its three can go; from a block that is
/// full any fingerprint can, so that the search is short. It only reads until it has found the
/// chain: an insertion that fails has changed nothing.
///
/// # What removals leave behind
///
/// An overflow bit does not tell how many keys it stands for, so that no removal can clear it;
/// only when the last key leaves, all are cleared (which takes the time of the whole table, if
/// any is set). Where keys come and go for long, every bit is set in the end: then every lookup of
/// an absent key reads two lines and errs twice as often as with none. The filter is sized for
/// that: the rate you ask for is kept whatever comes and goes, and a filter that was just filled
/// errs about 0.6 times as often. `fpr` counts what is true now.
///
/// # The shape of a block
///
/// A slot more costs four buckets: b = 248 − 4·s. More slots take more keys, fewer buckets make
/// the rate higher. As in [`QuotientVector`](crate::QuotientVector) the number of slots is chosen
/// by the rate: the one with which a block takes the most keys, at a load of 95 % at most.
///
/// | rate asked for | slots | buckets | bits/key | just filled | `quotient_vector` |
/// |---|---|---|---|---|---|
/// | 1 % | 52 | 40 | 10.36 | 0.60 % | 10.36 |
/// | 0.54 % | 46 | 64 | 11.72 | 0.31 % | 11.00 |
/// | 2⁻⁸ | 42 | 80 | 12.83 | 0.23 % | 11.51 |
/// | 0.3 % | 38 | 96 | 14.18 | 0.17 % | 12.25 |
///
/// (`sizes_are_those_of_the_formula`.) The second row is the paper's block: 0.27 % without an
/// overflow bit, 0.53 % with all.
///
/// # Limits
///
/// The two buckets of a key hold six copies of it; one more is refused as
/// [`FullKind::Duplicates`]. Removing a key that was never inserted may remove another's
/// fingerprint. The same keys in another order give other bytes. Fingerprints have eight bits, so
/// that no rate below 0.15 % can be had.
///
/// # Cost
///
/// 512/λ bits per key at a rate of at most 2·λ/(b·2⁸), where λ ≤ 0.95·s is the mean number of keys
/// in a block; half of it before any bit is set. A lookup reads one line, or two.
///
/// # When to choose it
///
/// To study it, or where lines are dear and keys seldom leave.
/// [`TinySetRemovable`](crate::TinySetRemovable) answers from one line always, in less space;
/// [`QuotientVector`](crate::QuotientVector) is smaller at the same rate and leaves nothing behind.
///
/// # Bibliography
///
/// - Breslow, Jayasena, *Morton filters: faster, space-efficient cuckoo filters via biasing,
///   compression, and decoupled logical sparsity*, 2018: the blocks, the overflow bits, and the
///   parity that chooses a direction.
/// - Fan, Andersen, Kaminsky, Mitzenmacher, *Cuckoo filter: practically better than Bloom*, 2014:
///   a second place that follows from the first and the fingerprint.
#[derive(Clone, Debug)]
pub struct Morton {
    bytes: Buf<u8>,
    shape: Shape,
    len: u64,
    /// Whether an overflow bit may be set.
    overflowed: bool,
}

/// Keys that a bucket holds.
const WAYS: u32 = 3;
/// Copies of one fingerprint that its two buckets hold.
const MOST_COPIES: u64 = 2 * WAYS as u64;
/// Overflow bits of a block, and where its counters begin.
const OVERFLOW_BITS: u32 = 16;
const COUNTERS: usize = 2;
/// The other place is fewer blocks away than this.
const REACH: u64 = 128;
/// A hash has as many bits again, for bucket and fingerprint.
const MOST_BLOCKS: u64 = 1 << 31;
/// The load that a filter is made for.
const LOAD: f64 = 0.95;
/// Blocks that the rate is counted from.
const COUNTED: usize = 1 << 14;
/// Places that a search looks at: nearly always, and for the last keys of a full table.
const FEW: usize = 128;
const MANY: usize = 2048;

/// How the 64 bytes of a block are divided.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    slots: u32,
}

impl Shape {
    fn all() -> impl Iterator<Item = Shape> {
        (38..=54).map(|slots| Shape { slots })
    }

    #[inline(always)]
    fn buckets(self) -> u32 {
        (8 * BLOCK as u32 - OVERFLOW_BITS - 8 * self.slots) / 2
    }

    /// The byte of a block that is its first slot.
    #[inline(always)]
    fn first(self) -> u32 {
        BLOCK as u32 - self.slots
    }

    /// The shape that takes the most keys in a block, and how many in the mean, with which the
    /// rate is kept when every overflow bit is set; `None` where more than half the slots would be
    /// empty.
    fn best(fpr: f64) -> Option<(Shape, f64)> {
        let sized = Shape::all().filter_map(|shape| {
            // Two buckets are compared then, as in a vector quotient filter.
            let most = math::vector_quotient_keys_per_block(fpr, 8, shape.buckets());
            let slots = f64::from(shape.slots);
            (most >= slots / 2.0).then_some((shape, most.min(LOAD * slots)))
        });
        sized.max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// The sum of the counters before a bucket: its first slot. Before the bucket after the last
    /// one, the slots in use.
    #[inline(always)]
    fn start(self, block: &[u8; BLOCK], bucket: u32) -> u32 {
        const DOUBLE: u64 = 0xAAAA_AAAA_AAAA_AAAA;
        let mut sum = 0;
        for i in 0..3 {
            let below = !u64::MAX.unbounded_shl((2 * bucket).saturating_sub(64 * i));
            let counters = word(block, COUNTERS + 8 * i as usize) & below;
            sum += counters.count_ones() + (counters & DOUBLE).count_ones();
        }
        sum
    }

    #[inline(always)]
    fn used(self, block: &[u8; BLOCK]) -> u32 {
        self.start(block, self.buckets())
    }

    /// How many fingerprints a bucket has.
    #[inline(always)]
    fn held(self, block: &[u8; BLOCK], bucket: u32) -> u32 {
        u32::from(block[COUNTERS + bucket as usize / 4]) >> (bucket % 4 * 2) & 3
    }

    /// The slots of a bucket that hold a fingerprint: the top bit of byte i where slot i of the
    /// bucket does.
    #[inline(always)]
    fn matches(self, block: &[u8; BLOCK], bucket: u32, fingerprint: u32) -> u32 {
        const LOW: u32 = 0x7F7F_7F7F;
        let byte = self.first() + self.start(block, bucket);
        // Four bytes that are in the block, of which those before the bucket are shifted out.
        let from = byte.min(BLOCK as u32 - 4);
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&block[from as usize..from as usize + 4]);
        let held = u32::from_le_bytes(bytes).unbounded_shr(8 * (byte - from));
        let other = held ^ (fingerprint * 0x0101_0101);
        let equal = !(((other & LOW) + LOW) | other | LOW);
        equal & ((1 << (8 * self.held(block, bucket))) - 1)
    }

    #[inline(always)]
    fn overflows(self, block: &[u8; BLOCK], bucket: u32) -> bool {
        u16::from_le_bytes([block[0], block[1]]) >> (bucket % OVERFLOW_BITS) & 1 == 1
    }

    fn set_overflow(self, block: &mut [u8; BLOCK], bucket: u32) {
        let bit = bucket % OVERFLOW_BITS;
        block[bit as usize / 8] |= 1 << (bit % 8);
    }

    #[inline(always)]
    fn has_room(self, block: &[u8; BLOCK], bucket: u32) -> bool {
        self.held(block, bucket) < WAYS && self.used(block) < self.slots
    }

    /// Puts a fingerprint behind those of its bucket, which has room.
    #[inline(always)]
    fn add<B: Bits>(self, bits: B, block: &mut [u8; BLOCK], bucket: u32, fingerprint: u32) {
        let slot = self.start(block, bucket) + self.held(block, bucket);
        block::open::<1, B>(bits, block, (self.first() + slot) as usize, fingerprint);
        block[COUNTERS + bucket as usize / 4] += 1 << (bucket % 4 * 2);
    }

    /// Takes a fingerprint out of its bucket, which holds it.
    fn take(self, block: &mut [u8; BLOCK], bucket: u32, fingerprint: u32) {
        let found = self.matches(block, bucket, fingerprint);
        let slot = self.start(block, bucket) + found.trailing_zeros() / 8;
        block::close::<1>(block, (self.first() + slot) as usize);
        block[COUNTERS + bucket as usize / 4] -= 1 << (bucket % 4 * 2);
    }

    /// Bucket and fingerprint of each slot in use, in order.
    fn fingerprints(self, block: &[u8; BLOCK]) -> impl Iterator<Item = (u32, u32)> {
        let held = (0..self.buckets()).map(move |bucket| (bucket, self.held(block, bucket)));
        let buckets = held.flat_map(|(bucket, held)| (0..held).map(move |_| bucket));
        let slots = block[self.first() as usize..].iter();
        buckets.zip(slots.map(|&byte| u32::from(byte)))
    }
}

/// Where a fingerprint may stand.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Place {
    block: u32,
    bucket: u32,
    fingerprint: u32,
}

impl Place {
    /// The first place of a hash: this filter's geometry, with [`other`](Place::other).
    #[inline(always)]
    fn of(hash: u64, blocks: usize, shape: Shape) -> Place {
        let (block, rest) = fastrange(hash, blocks as u64);
        let (bucket, rest) = fastrange(rest, u64::from(shape.buckets()));
        Place {
            block: block as u32,
            bucket: bucket as u32,
            fingerprint: (rest >> 56) as u32,
        }
    }

    /// The other place of what may stand here, of which this is the other place.
    #[inline(always)]
    fn other(self, blocks: usize, shape: Shape) -> Place {
        let (blocks, block) = (blocks as u64, u64::from(self.block));
        let hashed = u64::from(self.fingerprint).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let (half, rest) = fastrange(hashed, blocks.min(REACH) / 2);
        let distance = 2 * half + 1;
        let moved = match block % 2 {
            0 => block + distance,
            _ => block + blocks - distance,
        };
        let sum = fastrange(rest, u64::from(shape.buckets())).0 as u32;
        let bucket = match sum.checked_sub(self.bucket) {
            Some(bucket) => bucket,
            None => sum + shape.buckets() - self.bucket,
        };
        Place {
            block: if moved < blocks {
                moved
            } else {
                moved - blocks
            } as u32,
            bucket,
            fingerprint: self.fingerprint,
        }
    }
}

/// The blocks, for looking up.
#[derive(Clone, Copy)]
struct Reader<'a> {
    blocks: &'a [[u8; BLOCK]],
    shape: Shape,
}

impl<'a> Reader<'a> {
    #[inline(always)]
    fn block(self, place: Place) -> &'a [u8; BLOCK] {
        &self.blocks[place.block as usize]
    }

    #[inline(always)]
    fn other(self, place: Place) -> Place {
        place.other(self.blocks.len(), self.shape)
    }

    #[inline(always)]
    fn matches(self, place: Place) -> u32 {
        let block = self.block(place);
        self.shape.matches(block, place.bucket, place.fingerprint)
    }

    #[inline(always)]
    fn overflows(self, place: Place) -> bool {
        self.shape.overflows(self.block(place), place.bucket)
    }

    #[inline(always)]
    fn has_room(self, place: Place) -> bool {
        self.shape.has_room(self.block(place), place.bucket)
    }

    /// How often a fingerprint is held, as its first place tells.
    fn copies(self, place: Place) -> u64 {
        let mut copies = self.matches(place).count_ones();
        if self.overflows(place) {
            copies += self.matches(self.other(place)).count_ones();
        }
        u64::from(copies)
    }

    /// What stands in a block, slot by slot.
    fn places(self, block: usize) -> impl Iterator<Item = Place> {
        let held = self.shape.fingerprints(&self.blocks[block]);
        held.map(move |(bucket, fingerprint)| Place {
            block: block as u32,
            bucket,
            fingerprint,
        })
    }
}

impl Ring for Reader<'_> {
    const PREFETCH_FROM: usize = NEAR;
    type Place = Place;
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        size_of_val(self.blocks)
    }

    #[inline(always)]
    fn place(self, hash: u64) -> Place {
        Place::of(hash, self.blocks.len(), self.shape)
    }

    /// The first line only: few lookups read the second.
    #[inline(always)]
    fn prefetch(self, place: Place) {
        simd::prefetch(self.blocks, place.block as usize);
    }

    #[inline(always)]
    fn probe<B: Bits>(self, _: B, place: Place) -> bool {
        self.matches(place) != 0 || self.overflows(place) && self.matches(self.other(place)) != 0
    }
}

/// The blocks, for inserting.
struct Writer<'a> {
    blocks: &'a mut [[u8; BLOCK]],
    shape: Shape,
    overflowed: &'a mut bool,
}

impl Writer<'_> {
    #[inline(always)]
    fn reader(&self) -> Reader<'_> {
        Reader {
            blocks: self.blocks,
            shape: self.shape,
        }
    }

    /// Puts a fingerprint into its place or, with its overflow bit set, into the other.
    #[inline(always)]
    fn put<B: Bits>(&mut self, bits: B, place: Place) -> Result<(), FullKind> {
        let into = match self.reader().has_room(place) {
            true => place,
            false => self.elsewhere(place)?,
        };
        self.add(bits, into);
        Ok(())
    }

    /// One of the two places of a fingerprint, in which there is room now.
    #[inline(never)]
    fn elsewhere(&mut self, place: Place) -> Result<Place, FullKind> {
        let other = self.reader().other(place);
        let into = match self.reader().has_room(other) {
            true => other,
            false => self.make_room(place, other)?,
        };
        if into == other {
            self.leave(place);
        }
        Ok(into)
    }

    #[inline(always)]
    fn add<B: Bits>(&mut self, bits: B, place: Place) {
        let block = &mut self.blocks[place.block as usize];
        self.shape.add(bits, block, place.bucket, place.fingerprint);
    }

    /// Says at a place that a fingerprint of it stands in its other place.
    fn leave(&mut self, place: Place) {
        let block = &mut self.blocks[place.block as usize];
        self.shape.set_overflow(block, place.bucket);
        *self.overflowed = true;
    }

    /// Makes room in one of two full places, or says why not, having changed nothing.
    fn make_room(&mut self, place: Place, other: Place) -> Result<Place, FullKind> {
        let reader = self.reader();
        let held = reader.matches(place).count_ones() + reader.matches(other).count_ones();
        if u64::from(held) == MOST_COPIES {
            return Err(FullKind::Duplicates(MOST_COPIES));
        }
        let found = self.search::<FEW>([place, other]);
        let found = found.or_else(|| self.search::<MANY>([place, other]));
        found.ok_or(FullKind::Capacity)
    }

    /// Searches breadth-first for the shortest chain of moves that makes room in one of the roots,
    /// looking at up to N places, and makes those moves.
    ///
    /// A node is the place that a fingerprint of its parent's block would move to. The shortest
    /// chain comes to no bucket twice, as what could move from it then could have moved from it
    /// before: so a chain does not move a fingerprint twice, nor fill a bucket twice.
    fn search<const N: usize>(&mut self, roots: [Place; 2]) -> Option<Place> {
        let mut nodes = [(Place::default(), 0u16); N];
        (nodes[0].0, nodes[1].0) = (roots[0], roots[1]);
        let (mut len, mut at) = (2, 0);
        while at < len {
            let (reader, full) = (self.reader(), nodes[at].0);
            // A block that is full gives room in any bucket, but not a bucket that is.
            let only = self.shape.held(reader.block(full), full.bucket) == WAYS;
            let movable = |held: &Place| !only || held.bucket == full.bucket;
            let places = reader.places(full.block as usize).filter(movable);
            let mut free = None;
            for there in places.map(|held| reader.other(held)) {
                if reader.has_room(there) {
                    free = Some(there);
                    break;
                }
                if len == N {
                    return None;
                }
                nodes[len] = (there, at as u16);
                len += 1;
            }
            let Some(mut into) = free else {
                at += 1;
                continue;
            };
            loop {
                let from = self.reader().other(into);
                self.add(Portable, into);
                let block = &mut self.blocks[from.block as usize];
                self.shape.take(block, from.bucket, from.fingerprint);
                self.leave(from);
                into = nodes[at].0;
                if at < roots.len() {
                    return Some(into);
                }
                at = usize::from(nodes[at].1);
            }
        }
        None
    }
}

impl Fill for Writer<'_> {
    const PREFETCH_FROM: usize = NEAR;
    const WIDE: bool = true;
    type Refusal = FullKind;

    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.blocks)
    }

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        let place = self.reader().place(hash);
        simd::prefetch_near(self.blocks, place.block as usize);
    }

    #[inline(always)]
    fn fill<B: Bits>(&mut self, bits: B, hash: u64) -> Result<(), FullKind> {
        let place = self.reader().place(hash);
        self.put(bits, place)
    }
}

impl Morton {
    /// Slots of the table; the filter is sized to hold its capacity in 95 % of them, in fewer
    /// where the rate asks for it.
    pub fn slots(&self) -> u64 {
        self.blocks().len() as u64 * u64::from(self.shape.slots)
    }

    /// The fraction of slots in use.
    pub fn load(&self) -> f64 {
        self.len as f64 / self.slots() as f64
    }

    /// The fraction of hashes whose overflow bit is set: so many lookups of absent keys read two
    /// lines and not one. Reads the whole table.
    pub fn overflow(&self) -> f64 {
        let (reader, buckets) = (self.reader(), self.shape.buckets());
        let set = |block: &[u8; BLOCK]| {
            let set = (0..buckets).filter(|&bucket| reader.shape.overflows(block, bucket));
            set.count() as u64
        };
        let set: u64 = reader.blocks.iter().map(set).sum();
        set as f64 / (reader.blocks.len() as f64 * f64::from(buckets))
    }

    fn with_shape(blocks: u64, shape: Shape) -> Result<Morton, BuildError> {
        Ok(Morton {
            bytes: Buf::zeroed(blocks * BLOCK as u64)?,
            shape,
            len: 0,
            overflowed: false,
        })
    }

    #[inline(always)]
    fn blocks(&self) -> &[[u8; BLOCK]] {
        self.bytes.as_chunks().0
    }

    #[inline(always)]
    fn reader(&self) -> Reader<'_> {
        Reader {
            blocks: self.blocks(),
            shape: self.shape,
        }
    }

    #[inline(always)]
    fn writer(&mut self) -> Writer<'_> {
        Writer {
            blocks: self.bytes.make_mut().as_chunks_mut().0,
            shape: self.shape,
            overflowed: &mut self.overflowed,
        }
    }
}

impl Leveled for Morton {
    type Answer = bool;

    #[inline(always)]
    fn look_up<B: Bits>(&self, bits: B, hash: u64) -> bool {
        let reader = self.reader();
        reader.probe(bits, reader.place(hash))
    }
}

impl Filter for Morton {
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
    /// for what the table holds, copies, overflow bits and all. Of a large table a part is
    /// counted.
    fn fpr(&self) -> f64 {
        let (reader, blocks) = (self.reader(), self.blocks().len());
        let (mut yes, mut held) = (0u64, 0u64);
        for block in (0..blocks).step_by(blocks.div_ceil(COUNTED)) {
            for (place, slot) in reader.places(block).zip(0..) {
                held += 1;
                // Copies answer once.
                let start = self.shape.start(reader.block(place), place.bucket);
                if start + reader.matches(place).trailing_zeros() / 8 != slot {
                    continue;
                }
                // It answers for its other place too, if that one's bit is set and nothing there
                // answers.
                let other = reader.other(place);
                let answers = reader.overflows(other) && reader.matches(other) == 0;
                yes += 1 + u64::from(answers);
            }
        }
        let triples_per_key = match held {
            0 => 1.0,
            _ => yes as f64 / held as f64,
        };
        let triples = blocks as f64 * f64::from(self.shape.buckets()) * 256.0;
        (triples_per_key * self.len as f64 / triples).min(1.0)
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        let reader = self.reader();
        simd::prefetch_near(reader.blocks, reader.place(hash).block as usize);
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::ring(Some(self.reader()), hashes, out);
    }
}

impl Insert for Morton {
    #[inline]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let inserted = lookup::insert(self.writer(), hash);
        inserted.map_err(|kind| Full::new(kind, self.len))?;
        self.len += 1;
        Ok(())
    }

    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), Full> {
        let inserted = lookup::insert_batch(self.writer(), hashes);
        let accepted = match inserted {
            Ok(()) => hashes.len(),
            Err((accepted, _)) => accepted,
        };
        self.len += accepted as u64;
        inserted.map_err(|(accepted, kind)| Full::new(kind, self.len).after(accepted))
    }
}

impl Remove for Morton {
    fn remove(&mut self, hash: u64) -> bool {
        let reader = self.reader();
        let place = reader.place(hash);
        // From its first place while it is there: the copy in the other may be of a key that
        // has its first place there, and no overflow bit.
        let from = match reader.matches(place) {
            0 if reader.overflows(place) => reader.other(place),
            _ => place,
        };
        if reader.matches(from) == 0 {
            return false;
        }
        let Writer { blocks, shape, .. } = self.writer();
        let block = &mut blocks[from.block as usize];
        shape.take(block, from.bucket, from.fingerprint);
        self.len -= 1;
        if self.len == 0 && self.overflowed {
            for block in self.writer().blocks {
                block[..COUNTERS].fill(0);
            }
            self.overflowed = false;
        }
        true
    }
}

impl Count for Morton {
    fn count(&self, hash: u64) -> u64 {
        let reader = self.reader();
        reader.copies(reader.place(hash))
    }
}

impl Merge for Morton {
    /// Inserts every fingerprint of the other where it stands there, with its overflow bits: so it
    /// is found from either of its places. Copies of a key add up, to six at most.
    fn merge(&mut self, other: &Morton) -> Result<(), MergeError> {
        let (ours, theirs) = (self.blocks().len() as u64, other.blocks().len() as u64);
        MergeError::unless_equal("blocks", ours, theirs)?;
        let (ours, theirs) = (self.shape.slots, other.shape.slots);
        MergeError::unless_equal("slots", u64::from(ours), u64::from(theirs))?;
        let mut union = self.clone();
        union.overflowed |= other.overflowed;
        for (index, block) in other.blocks().iter().enumerate() {
            for (ours, theirs) in union.writer().blocks[index]
                .iter_mut()
                .zip(&block[..COUNTERS])
            {
                *ours |= theirs;
            }
            for place in other.reader().places(index) {
                let put = union.writer().put(Portable, place);
                put.map_err(|kind| MergeErrorKind::Full(Full::new(kind, union.len)))?;
                union.len += 1;
            }
        }
        *self = union;
        Ok(())
    }
}

impl Kind for Morton {
    const ABOUT: &'static str =
        "remove keys and count copies; most lookups of absent keys read one line, by overflow bits";

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Morton, BuildError> {
        let (keys, _) = config.check::<Morton>(hashes)?;
        let (shape, keys_per_block) = config.sized::<Morton, _>(Shape::best)?;
        let needed = 2.0 * (keys as f64 / keys_per_block / 2.0).ceil().max(1.0);
        if needed > MOST_BLOCKS as f64 {
            return Err(BuildErrorKind::TooLarge {
                unit: "blocks",
                needed,
                most: MOST_BLOCKS,
            }
            .into());
        }
        let mut filter = Morton::with_shape(needed as u64, shape)?;
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("blocks", self.blocks().len() as u64);
        out.param("slots", u64::from(self.shape.slots));
        out.section(&self.bytes);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Morton, DecodeError> {
        let blocks = input.param_in("blocks", 2..=MOST_BLOCKS)?;
        if !blocks.is_multiple_of(2) {
            return Err(DecodeError::invalid("blocks", blocks, "an even number"));
        }
        let shape = Shape {
            slots: input.param_in("slots", 38..=54)? as u32,
        };
        let mut filter = Morton {
            bytes: input.section("blocks", blocks * BLOCK as u64)?,
            shape,
            len: input.len(),
            overflowed: false,
        };
        let (mut used, mut overflowed) = (0, false);
        for (block, index) in filter.blocks().iter().zip(0u64..) {
            let held = shape.used(block);
            let free = block[shape.first() as usize..].iter().skip(held as usize);
            if held > shape.slots || free.into_iter().any(|&byte| byte != 0) {
                let expected = "counters of no more than its slots, and zeros behind those in use";
                return Err(DecodeError::invalid("block", index, expected));
            }
            used += u64::from(held);
            overflowed |= block[..COUNTERS] != [0; COUNTERS];
        }
        if used != filter.len || overflowed && used == 0 {
            let expected = format!("{used}, the slots in use, and no overflow without any");
            return Err(DecodeError::invalid("keys", filter.len, expected));
        }
        filter.overflowed = overflowed;
        Ok(filter)
    }
}

#[cfg(test)]
mod tests;
