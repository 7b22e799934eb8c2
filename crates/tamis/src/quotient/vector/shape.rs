//! One block of a vector quotient filter: how its 64 bytes are divided, and how fingerprints are
//! found in it, put in and taken out.
//!
//! The drawing, and how a bucket is found, are in the essay of
//! [`QuotientVector`](super::QuotientVector).

use crate::math;
use crate::simd::block::{self, BLOCK, word};
use crate::simd::{self, Bits, Op};

/// How the 64 bytes of a block are divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shape {
    /// Bytes of a fingerprint: 1 or 2.
    pub(super) width: u32,
    pub(super) slots: u32,
}

/// Words that hold all metadata of any shape.
pub(super) const WORDS: usize = 3;
/// A block of either shape has at most so many buckets: what is before a bucket is counted in two
/// words.
pub(super) const MOST_BUCKETS: u32 = 128;

/// The lowest bits of 128, by their number: which bits of metadata are before a bucket.
const BEFORE: [[u64; 2]; MOST_BUCKETS as usize] = {
    let mut table = [[0; 2]; MOST_BUCKETS as usize];
    let mut bits = 0;
    while bits < table.len() {
        let mask = (1u128 << bits) - 1;
        table[bits] = [mask as u64, (mask >> 64) as u64];
        bits += 1;
    }
    table
};

impl Shape {
    /// Every shape whose fingerprints have so many bytes, if that is a number of bytes at all.
    pub(super) fn all(width: u32) -> impl Iterator<Item = Shape> {
        let slots = match width {
            1 => 43..57,
            2 => 23..30,
            _ => 0..0,
        };
        slots.map(move |slots| Shape { width, slots })
    }

    #[inline(always)]
    pub(super) fn buckets(self) -> u32 {
        8 * BLOCK as u32 - (8 * self.width + 1) * self.slots
    }

    /// Bytes of metadata: a bit for each slot, and one for each bucket.
    #[inline(always)]
    pub(super) fn metadata(self) -> u32 {
        BLOCK as u32 - self.width * self.slots
    }

    /// The first lane of a block that is a slot.
    #[inline(always)]
    pub(super) fn first(self) -> u32 {
        BLOCK as u32 / self.width - self.slots
    }

    /// The load that a filter is made for: below it an insertion hardly ever has to move another
    /// key.
    pub(super) fn load(self) -> f64 {
        match self.width {
            1 => 0.95,
            _ => 0.9,
        }
    }

    /// The keys in a block, in the mean, with which the load and the rate are kept; `None` where
    /// more than half the slots would be empty.
    fn keys_per_block(self, fpr: f64) -> Option<f64> {
        let slots = f64::from(self.slots);
        let most = math::vector_quotient_keys_per_block(fpr, 8 * self.width, self.buckets());
        (most >= slots / 2.0).then_some(most.min(self.load() * slots))
    }

    /// The shape that takes the most keys in a block, of those with fingerprints of so many
    /// bytes.
    pub(super) fn best(width: u32, fpr: f64) -> Option<(Shape, f64)> {
        Shape::all(width)
            .filter_map(|shape| Some((shape, shape.keys_per_block(fpr)?)))
            .max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// Copies of one key that its two blocks hold.
    pub(super) fn most_copies(self) -> u64 {
        2 * u64::from(self.slots)
    }

    /// The metadata of a block; bits of slots that share its last word are 0.
    #[inline(always)]
    fn read(self, block: &[u8; BLOCK]) -> [u64; WORDS] {
        let masks = self.masks();
        [
            word(block, 0) & masks[0],
            word(block, 8) & masks[1],
            word(block, 16) & masks[2],
        ]
    }

    /// Replaces the metadata of a block.
    #[inline(always)]
    fn write(self, block: &mut [u8; BLOCK], metadata: [u64; WORDS]) {
        let masks = self.masks();
        for i in 0..WORDS {
            let bytes = 8 * i..8 * i + 8;
            let word = word(block, 8 * i) & !masks[i] | metadata[i] & masks[i];
            block[bytes].copy_from_slice(&word.to_le_bytes());
        }
    }

    /// The bits of the first words that are metadata.
    #[inline(always)]
    fn masks(self) -> [u64; WORDS] {
        not(from(8 * self.metadata()))
    }

    /// Slots of a block that are in use.
    #[inline(always)]
    pub(super) fn used(self, block: &[u8; BLOCK]) -> u32 {
        let [a, b, c] = self.read(block);
        a.count_ones() + b.count_ones() + c.count_ones()
    }

    /// The lanes of a bucket that hold a fingerprint, a bit for each.
    #[inline(always)]
    pub(super) fn lanes<B: Bits>(
        self,
        bits: B,
        block: &[u8; BLOCK],
        bucket: u32,
        fingerprint: u32,
    ) -> u64 {
        let (start, end) = bounds(bits, block, bucket);
        let lanes = end.wrapping_sub(start) << self.first();
        match self.width {
            1 => block::equal::<1, B>(bits, block, fingerprint, lanes),
            _ => block::equal::<2, B>(bits, block, fingerprint, lanes),
        }
    }

    /// The slots of a bucket that hold a fingerprint, a bit for each, at the processor's best
    /// level.
    pub(super) fn matches(self, block: &[u8; BLOCK], bucket: u32, fingerprint: u32) -> u64 {
        struct Matches<'a>(Shape, &'a [u8; BLOCK], u32, u32);
        impl Op for Matches<'_> {
            type Out = u64;
            const WIDE: bool = true;

            #[inline(always)]
            fn run<B: Bits>(self, bits: B) -> u64 {
                let Matches(shape, block, bucket, fingerprint) = self;
                shape.lanes(bits, block, bucket, fingerprint) >> shape.first()
            }
        }
        simd::dispatch(Matches(self, block, bucket, fingerprint))
    }

    /// Puts a fingerprint behind those of its bucket, in a block with a free slot.
    #[inline(always)]
    pub(super) fn add<B: Bits>(
        self,
        bits: B,
        block: &mut [u8; BLOCK],
        bucket: u32,
        fingerprint: u32,
    ) {
        let slot = bounds(bits, block, bucket).1.trailing_zeros();
        let (metadata, above) = (self.read(block), from(bucket + slot));
        let lane = (self.first() + slot) as usize;
        match self.width {
            1 => block::open::<1, B>(bits, block, lane, fingerprint),
            _ => block::open::<2, B>(bits, block, lane, fingerprint),
        }
        // The bits from there on move up by one, and a one comes before them.
        let moved = up(and(metadata, above));
        let one = and(above, not(up(above)));
        self.write(block, or(or(and(metadata, not(above)), moved), one));
    }

    /// Takes a fingerprint out of a slot of its bucket.
    pub(super) fn take(self, block: &mut [u8; BLOCK], bucket: u32, slot: u32) {
        let (metadata, above) = (self.read(block), from(bucket + slot));
        let lane = (self.first() + slot) as usize;
        match self.width {
            1 => block::close::<1>(block, lane),
            _ => block::close::<2>(block, lane),
        }
        let moved = and(down(metadata), above);
        self.write(block, or(and(metadata, not(above)), moved));
    }

    /// Bucket and fingerprint of each slot in use, in order.
    pub(super) fn fingerprints(self, block: &[u8; BLOCK]) -> impl Iterator<Item = (u32, u32)> {
        let metadata = self.read(block);
        let is_one = move |bit: &u32| metadata[*bit as usize / 64] >> (bit % 64) & 1 == 1;
        let ones = (0..8 * self.metadata()).filter(is_one);
        ones.zip(0..self.slots).map(move |(bit, slot)| {
            let lane = (self.first() + slot) as usize;
            let fingerprint = match self.width {
                1 => block::at::<1>(block, lane),
                _ => block::at::<2>(block, lane),
            };
            (bit - slot, fingerprint)
        })
    }

    /// Whether a block is one that insertions and removals make: no more fingerprints than slots,
    /// in buckets that there are, and zeros behind them.
    pub(super) fn is_sound(self, block: &[u8; BLOCK]) -> bool {
        let used = self.used(block);
        let ends = self.read(block).map(|word| 64 - word.leading_zeros());
        let bits = match ends {
            [end, 0, 0] => end,
            [_, end, 0] => 64 + end,
            [_, _, end] => 128 + end,
        };
        // The last one has those of the other slots before it, and the ends of other buckets.
        used <= self.slots
            && bits < self.buckets() + used
            && block[(self.metadata() + self.width * used) as usize..]
                .iter()
                .all(|&byte| byte == 0)
    }
}

/// Where the slots of a bucket begin, and where they end: a bit that is alone, at the number of
/// the first slot and of the first after them. The essay says how.
#[inline(always)]
fn bounds<B: Bits>(bits: B, block: &[u8; BLOCK], bucket: u32) -> (u64, u64) {
    let bucket = bucket as usize % BEFORE.len();
    let [low, high] = BEFORE[bucket];
    let before = (word(block, 0) & low).count_ones() + (word(block, 8) & high).count_ones();
    // 57 bits at least, and no bucket ends behind slot 56.
    let zeros = !(word(block, bucket / 8) >> (bucket % 8));
    let number = 1u64.wrapping_shl(before);
    (bits.one(zeros << 1 | 1, number), bits.one(zeros, number))
}

/// The words of metadata as one number: all bits from this one on.
#[inline(always)]
fn from(bit: u32) -> [u64; WORDS] {
    let word = |first: u32| u64::MAX.unbounded_shl(bit.saturating_sub(first));
    [word(0), word(64), word(128)]
}

#[inline(always)]
fn not([a, b, c]: [u64; WORDS]) -> [u64; WORDS] {
    [!a, !b, !c]
}

#[inline(always)]
fn and(a: [u64; WORDS], b: [u64; WORDS]) -> [u64; WORDS] {
    [a[0] & b[0], a[1] & b[1], a[2] & b[2]]
}

#[inline(always)]
fn or(a: [u64; WORDS], b: [u64; WORDS]) -> [u64; WORDS] {
    [a[0] | b[0], a[1] | b[1], a[2] | b[2]]
}

#[inline(always)]
fn up([a, b, c]: [u64; WORDS]) -> [u64; WORDS] {
    [a << 1, b << 1 | a >> 63, c << 1 | b >> 63]
}

#[inline(always)]
fn down([a, b, c]: [u64; WORDS]) -> [u64; WORDS] {
    [a >> 1 | b << 63, b >> 1 | c << 63, c >> 1]
}
