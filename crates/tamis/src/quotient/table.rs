//! The table that the quotient filters share: sorted runs of short values, found by counting ones.
//!
//! A hash chooses a *quotient*, the slot where its value wants to stand, and the value: the rest of
//! its fingerprint. All values of one quotient form a *run*, and runs stand in the order of their
//! quotients, each at its quotient's slot or, where that is taken, right after the run before it.
//!
//! ```text
//!  slot          0  1  2  3  4  5  6  7  8  9
//!  occupieds     0  1  0  1  1  0  0  0  1  0     quotients that have a run: 1, 3, 4, 8
//!  runends       0  0  1  0  0  1  1  0  1  0     slots in which a run ends:  2, 5, 6, 8
//!  values        ·  a  b  c  d  e  f  ·  g  ·     1: a b    3: c d e    4: f    8: g
//!                                  ▲
//!                                  the run of 4 is moved on by two slots
//! ```
//!
//! The n-th occupied quotient owns the n-th run end, so that a run is found by a rank and a
//! select. To begin both close by, every block of 64 slots keeps its *offset*: how many of its
//! slots, from the first on, hold runs of earlier blocks.
//!
//! ```text
//!  a block    ┌────────┬─────────────┬─────────────┬──────────────────────────────┐
//!             │ offset │  occupieds  │   runends   │  64 values of r bits each    │
//!             └────────┴─────────────┴─────────────┴──────────────────────────────┘
//!              1 byte     8 bytes        8 bytes       8·r bytes
//! ```
//!
//! So a slot takes r + 2.125 bits, and a lookup reads one place: the block, of two lines with r =
//! 8. An offset of 255 stands for that and more; it is then computed from the blocks before.
//! After the slots of the quotients a short tail takes what the last runs move on.
//!
//! Reading never panics, whatever the bytes are: a file that is mapped may change at any time.
//!
//! # Bibliography
//!
//! - Pandey, Bender, Johnson, Patro, *A general-purpose counting filter: making every bit count*,
//!   2017: rank and select in place of three bits a slot, and offsets.
//! - Bender et al., *Don't thrash: how to cache your hash on flash*, 2012: quotient filters.

mod moves;

use super::sequence::{Entries, Fault};
use crate::bits::{fastrange, low_mask};
use crate::buf::Buf;
use crate::error::{DecodeError, NoMemory};
use crate::format::{Decoder, Encoder};
use crate::simd::{self, Bits};

/// Slots of a block.
pub(super) const BLOCK: u64 = 64;
/// Bytes of a block before its values.
pub(super) const HEAD: usize = 17;
/// Where in a block the words of its head are.
const OCCUPIEDS: usize = 1;
const RUNENDS: usize = 9;
/// The offset that stands for itself and more.
pub(super) const SATURATED: u8 = u8::MAX;
/// Bytes after the last block, so that a value is read by one load of eight.
pub(super) const SPARE: u64 = 7;
/// The widest value: one that starts in any bit of a byte is read by one load.
pub(crate) const MOST_BITS: u32 = 57;
/// The load that tables are sized for.
pub(crate) const LOAD: f64 = 0.95;

/// There is no free slot behind a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

/// Runs of values of `bits` bits each, by quotient.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    bytes: Buf<u8>,
    shape: Shape,
    used: u64,
}

/// What follows from the number of quotients and the width of values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(super) quotients: u64,
    pub(super) bits: u32,
    pub(super) blocks: u64,
    /// Bytes from one block to the next.
    pub(super) stride: usize,
    /// How many values a word holds, from whatever bit of a byte on.
    many: u64,
    /// A one in the lowest bit of each of them.
    pub(crate) ones: u64,
}

/// Slots after those of the quotients.
///
/// At a load of α the slots that runs move on beyond any point are as many as the customers of a
/// queue: more than x with probability e^(−θx), where θ is about 2(1 − α)/α, or 0.1 at 0.95. In a
/// small table they scatter by the root of its size; and 64 are there for copies of the last key.
fn tail(quotients: u64) -> u64 {
    (64 + 6 * quotients.isqrt()).min(512)
}

impl Shape {
    pub(super) fn new(quotients: u64, bits: u32) -> Shape {
        debug_assert!(quotients > 0 && (1..=MOST_BITS).contains(&bits));
        let slots = quotients.saturating_add(tail(quotients));
        let starts = (0..=MOST_BITS - bits).step_by(bits as usize);
        Shape {
            quotients,
            bits,
            blocks: slots.div_ceil(BLOCK),
            stride: HEAD + 8 * bits as usize,
            many: u64::from(MOST_BITS / bits),
            ones: starts.fold(0, |ones, bit| ones | 1 << bit),
        }
    }

    /// The top bit of each value of which a word holds the whole.
    #[inline(always)]
    pub(crate) fn tops(self) -> u64 {
        self.ones << (self.bits - 1)
    }

    /// The top bit of each value in a word that is 0. One above another that is may be marked
    /// wrongly, the lowest never: subtracting 1 from each borrows through the top bit of a 0.
    #[inline(always)]
    pub(crate) fn zeros(self, x: u64) -> u64 {
        x.wrapping_sub(self.ones) & !x & self.tops()
    }

    /// Slots of quotients and tail.
    pub(super) fn slots(self) -> u64 {
        BLOCK * self.blocks
    }

    /// The bytes of a table, or `None` if they exceed the address space.
    fn bytes(self) -> Option<u64> {
        let bytes = self.blocks.checked_mul(self.stride as u64)?;
        bytes.checked_add(SPARE)
    }
}

/// What values are looked for: one, or those [`Within`] bounds.
pub(crate) trait Sought: Copy {
    /// The top bit of each value in a word that is sought. One above another that is may be marked
    /// wrongly, the lowest never.
    fn marks(self, shape: Shape, values: u64) -> u64;
}

impl Sought for u64 {
    #[inline(always)]
    fn marks(self, shape: Shape, values: u64) -> u64 {
        shape.zeros(values ^ self.wrapping_mul(shape.ones))
    }
}

/// The values from `least` on, `many` of them: at most half of all that a slot can hold.
#[derive(Clone, Copy)]
pub(crate) struct Within {
    pub(crate) least: u64,
    pub(crate) many: u64,
}

impl Sought for Within {
    #[inline(always)]
    fn marks(self, shape: Shape, values: u64) -> u64 {
        let (ones, tops) = (shape.ones, shape.tops());
        let least = self.least.wrapping_mul(ones);
        // Each value less the least: the top bits stop borrows, and are subtracted apart.
        let rest = (values | tops).wrapping_sub(least & !tops);
        let above = rest ^ (values ^ !least) & tops;
        // What is `many` or more has its top bit, or gets it.
        let carry = (1u64 << (shape.bits - 1)).wrapping_sub(self.many);
        let more = (above & !tops).wrapping_add(carry.wrapping_mul(ones));
        !(above | more) & tops
    }
}

/// A table for reading, passed by value.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    bytes: &'a [u8],
    shape: Shape,
}

/// What is known of a block beside its values.
#[derive(Clone, Copy)]
struct Head {
    offset: u32,
    occupieds: u64,
    runends: u64,
}

impl Head {
    /// The ends of the runs of this block and later ones; none where all its slots are of earlier
    /// blocks.
    #[inline(always)]
    fn own_ends(self) -> u64 {
        self.runends & u64::MAX.checked_shl(self.offset).unwrap_or(0)
    }
}

impl<'a> View<'a> {
    #[inline(always)]
    pub(crate) fn size_in_bytes(self) -> usize {
        self.bytes.len()
    }

    /// Bits of a value.
    #[inline(always)]
    pub(crate) fn bits(self) -> u32 {
        self.shape.bits
    }

    /// Quotient and value of a hash: the geometry of every filter on this table. The value is the
    /// top of what choosing the quotient leaves of the hash, so that both are the first bits of
    /// one fraction, and `quotient · 2^bits + value` orders the hashes.
    #[inline(always)]
    pub(crate) fn place(self, hash: u64) -> (u64, u64) {
        let (quotient, rest) = fastrange(hash, self.shape.quotients);
        (quotient, rest >> (u64::BITS - self.shape.bits))
    }

    /// Prefetches a quotient's block into the first-level cache, as callers branch on what it
    /// holds: where it begins, and where the value wants to stand.
    #[inline(always)]
    pub(crate) fn prefetch_near(self, quotient: u64) {
        let (head, value) = self.lines(quotient);
        simd::prefetch_near(self.bytes, head);
        simd::prefetch_near(self.bytes, value);
    }

    #[inline(always)]
    fn lines(self, quotient: u64) -> (usize, usize) {
        let head = self.block_at(quotient / BLOCK);
        let bit = (quotient % BLOCK) as usize * self.shape.bits as usize;
        (head, head + HEAD + bit / 8 + 7)
    }

    #[inline(always)]
    fn block_at(self, block: u64) -> usize {
        (block as usize).wrapping_mul(self.shape.stride)
    }

    /// Eight bytes from any place on; 0 beyond the end.
    #[inline(always)]
    fn word(self, at: usize) -> u64 {
        match self.bytes.get(at..at.wrapping_add(8)) {
            Some(bytes) => {
                let mut word = [0; 8];
                word.copy_from_slice(bytes);
                u64::from_le_bytes(word)
            }
            None => 0,
        }
    }

    /// What is known of a block, whose first byte is given; `None` beyond the end.
    #[inline(always)]
    fn head(self, at: usize) -> Option<Head> {
        let head = self.bytes.get(at..at.wrapping_add(HEAD))?;
        let head: &[u8; HEAD] = head.first_chunk()?;
        let [offset, words @ ..] = head;
        let (words, _) = words.as_chunks();
        Some(Head {
            offset: u32::from(*offset),
            occupieds: u64::from_le_bytes(words[0]),
            runends: u64::from_le_bytes(words[1]),
        })
    }

    #[inline(always)]
    fn stored_offset(self, block: u64) -> u8 {
        let offset = self.bytes.get(self.block_at(block));
        offset.copied().unwrap_or(0)
    }

    #[inline(always)]
    fn occupieds(self, block: u64) -> u64 {
        self.word(self.block_at(block) + OCCUPIEDS)
    }

    #[inline(always)]
    fn runends(self, block: u64) -> u64 {
        self.word(self.block_at(block) + RUNENDS)
    }

    /// How many slots from the block's first on hold runs of earlier blocks.
    #[inline(always)]
    fn offset<B: Bits>(self, bits: B, block: u64) -> u64 {
        match self.stored_offset(block) {
            SATURATED => self.long_offset(bits, block),
            offset => u64::from(offset),
        }
    }

    /// The same where it is not stored: from the last block before that has one.
    #[cold]
    #[inline(never)]
    fn long_offset<B: Bits>(self, bits: B, block: u64) -> u64 {
        let mut from = block;
        while from > 0 && self.stored_offset(from) == SATURATED {
            from -= 1;
        }
        let first = u64::from(self.stored_offset(from));
        (from..block).fold(first, |offset, block| self.next_offset(bits, block, offset))
    }

    /// The offset of the block after this one, whose own is given.
    #[inline(always)]
    fn next_offset<B: Bits>(self, bits: B, block: u64, offset: u64) -> u64 {
        let runs = self.occupieds(block).count_ones();
        self.ends(bits, BLOCK * block + offset, runs)
            .saturating_sub(BLOCK * (block + 1))
    }

    /// The slot after the end of the n-th run that ends at `from` or later; `from` where n is 0.
    #[inline(always)]
    fn ends<B: Bits>(self, bits: B, from: u64, mut n: u32) -> u64 {
        if n == 0 {
            return from;
        }
        let mut block = from / BLOCK;
        let mut runends = self.runends(block) & u64::MAX << (from % BLOCK);
        while block < self.shape.blocks {
            let ends = runends.count_ones();
            if n <= ends {
                let end = bits.one(runends, 1 << (n - 1));
                return BLOCK * block + u64::from(end.trailing_zeros()) + 1;
            }
            n -= ends;
            block += 1;
            runends = self.runends(block);
        }
        self.shape.slots()
    }

    /// The first slot that quotients up to this one leave free. The slot of the quotient is free
    /// if this is it, or one before.
    #[inline(always)]
    fn reach<B: Bits>(self, bits: B, quotient: u64) -> u64 {
        let (block, bit) = (quotient / BLOCK, quotient % BLOCK);
        let runs = self.occupieds(block) & u64::MAX >> (BLOCK - 1 - bit);
        let from = BLOCK * block + self.offset(bits, block);
        self.ends(bits, from, runs.count_ones())
    }

    #[inline(always)]
    pub(crate) fn is_occupied(self, quotient: u64) -> bool {
        self.occupieds(quotient / BLOCK) >> (quotient % BLOCK) & 1 == 1
    }

    /// The slots of a quotient's run, none if it has none: then they begin where it would.
    #[inline(always)]
    pub(crate) fn run<B: Bits>(self, bits: B, quotient: u64) -> (u64, u64) {
        let end = self.reach(bits, quotient);
        if self.is_occupied(quotient) {
            (self.start(quotient, end).min(end), end)
        } else {
            (end.max(quotient), end.max(quotient))
        }
    }

    /// Where the run of a quotient begins that ends before `end`: after the end of the run before
    /// it, or at its own slot.
    #[inline(always)]
    fn start(self, quotient: u64, end: u64) -> u64 {
        let last = end.wrapping_sub(1);
        let mut block = last / BLOCK;
        let mut runends = self.runends(block) & low_mask((last % BLOCK) as u32);
        while runends == 0 && block > quotient / BLOCK {
            block -= 1;
            runends = self.runends(block);
        }
        let after = BLOCK * block + u64::from(u64::BITS - runends.leading_zeros());
        quotient.max(if runends == 0 { 0 } else { after })
    }

    /// At least 57 bits from where a slot's value starts: that value, and those after it in its
    /// block.
    #[inline(always)]
    fn values(self, slot: u64) -> u64 {
        let bit = (slot % BLOCK) as usize * self.shape.bits as usize;
        self.word(self.block_at(slot / BLOCK) + HEAD + bit / 8) >> (bit % 8)
    }

    #[inline(always)]
    pub(crate) fn get(self, slot: u64) -> u64 {
        self.values(slot) & low_mask(self.shape.bits)
    }

    /// The first slot of a run that holds the value, or one that is sought, compared with as many
    /// at once as a word holds.
    #[inline(always)]
    pub(crate) fn find(self, (start, end): (u64, u64), value: impl Sought) -> Option<u64> {
        let mut slot = start;
        while slot < end {
            let n = self.shape.many.min(end - slot).min(BLOCK - slot % BLOCK);
            let equal = value.marks(self.shape, self.values(slot));
            let found = equal & low_mask(n as u32 * self.shape.bits);
            if found != 0 {
                return Some(slot + u64::from(found.trailing_zeros() / self.shape.bits));
            }
            slot += n;
        }
        None
    }

    /// Whether the run of a quotient holds the value, or one that is sought.
    ///
    /// Most runs end in the block of their quotient and are a word long at most. Those are compared
    /// whether there is a run or not: no branch but the one that finds it otherwise.
    #[inline(always)]
    pub(crate) fn contains<B: Bits>(self, bits: B, quotient: u64, value: impl Sought) -> bool {
        let block = self.block_at(quotient / BLOCK);
        let Some(head) = self.head(block) else {
            return false;
        };
        let bit = quotient % BLOCK;
        let is_occupied = head.occupieds >> bit & 1;
        let runs = head.occupieds << (BLOCK - 1 - bit);
        let ends = head.own_ends();
        let end = bits.one(ends, 1u64.wrapping_shl(runs.count_ones()) >> 1);
        let before = head.runends & end.wrapping_sub(1);
        // Slots of the block: where the run ends, and where it starts.
        let last = u64::from(end.trailing_zeros());
        let start = bit.max(BLOCK - u64::from(before.leading_zeros()));
        let len = last.wrapping_sub(start).wrapping_add(1);
        // As integers: of `bool`s the compiler makes a branch for each.
        let is_long = self.shape.many.wrapping_sub(len) >> 63;
        if is_occupied & (u64::from(end == 0) | is_long) != 0 {
            return self.find(self.run(bits, quotient), value).is_some();
        }
        let first = start as usize * self.shape.bits as usize;
        let values = self.word(block + HEAD + first / 8) >> (first % 8);
        let marks = value.marks(self.shape, values);
        let of_run =
            (1u64 << ((len as u32).wrapping_mul(self.shape.bits) % u64::BITS)).wrapping_sub(1);
        marks & of_run & is_occupied.wrapping_neg() != 0
    }

    /// The first quotient from one on and below another that has a run.
    #[inline(always)]
    fn next_occupied(self, from: u64, to: u64) -> Option<u64> {
        let mut block = from / BLOCK;
        let mut occupieds = self.occupieds(block) & u64::MAX << (from % BLOCK);
        while occupieds == 0 && BLOCK * (block + 1) < to {
            block += 1;
            occupieds = self.occupieds(block);
        }
        let quotient = BLOCK * block + u64::from(occupieds.trailing_zeros());
        (occupieds != 0 && quotient < to).then_some(quotient)
    }

    /// The first slot from this one on that is free, or, where `AT_HOME`, in which a run begins
    /// that is its own quotient's: what stands there stays when a slot before it is taken out. The
    /// slot given is the first that runs up to some quotient leave free.
    ///
    /// Goes from the end of all runs up to a slot to the end of those up to there, within a block
    /// in registers.
    #[inline(always)]
    fn first_free<B: Bits, const AT_HOME: bool>(self, bits: B, from: u64) -> Result<u64, NoRoom> {
        let (mut block, mut slot) = (from / BLOCK, (from % BLOCK) as u32);
        while let Some(head) = self.head(self.block_at(block)) {
            if block == self.shape.blocks {
                break;
            }
            let ends = head.own_ends();
            while slot < u64::BITS {
                // Runs of this block up to the slot, or before it.
                let up_to = if AT_HOME {
                    low_mask(slot)
                } else {
                    u64::MAX >> (u64::BITS - 1 - slot)
                };
                let runs = (head.occupieds & up_to).count_ones();
                let end = bits.one(ends, 1u64.wrapping_shl(runs) >> 1);
                let reach = match runs {
                    0 => head.offset,
                    _ => end.trailing_zeros() + 1,
                };
                if reach <= slot {
                    return Ok(BLOCK * block + u64::from(slot));
                }
                slot = reach;
            }
            block += 1;
            let offset = self.offset(bits, block);
            block += offset / BLOCK;
            slot = (offset % BLOCK) as u32;
        }
        Err(NoRoom)
    }
}

impl Table {
    /// An empty table. At most 2^(64 − bits) quotients: a hash has no more bits.
    pub(crate) fn new(quotients: u64, bits: u32) -> Result<Table, NoMemory> {
        let shape = Shape::new(quotients, bits);
        let bytes = shape.bytes().ok_or(NoMemory { bytes: u64::MAX })?;
        Ok(Table {
            bytes: Buf::zeroed(bytes)?,
            shape,
            used: 0,
        })
    }

    /// The fewest quotients for so many values at the usual load.
    pub(crate) fn quotients_for(values: u64) -> u64 {
        ((values as f64 / LOAD).ceil() as u64).max(1)
    }

    /// The most values that are put in: beyond, runs move on too far.
    pub(crate) fn most_used(quotients: u64) -> u64 {
        quotients - quotients / 32
    }

    /// The most quotients for values of this width. A rate that a hash of 64 bits can promise needs
    /// no more fingerprints than 2⁶¹.
    pub(crate) fn most_quotients(bits: u32) -> u64 {
        1 << (61 - bits)
    }

    pub(crate) fn quotients(&self) -> u64 {
        self.shape.quotients
    }

    /// Bits of a value.
    #[inline(always)]
    pub(crate) fn bits(&self) -> u32 {
        self.shape.bits
    }

    /// Slots in use.
    #[inline(always)]
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// How many more values fit.
    pub(crate) fn room(&self) -> u64 {
        Table::most_used(self.shape.quotients).saturating_sub(self.used)
    }

    pub(crate) fn size_in_bytes(&self) -> usize {
        self.bytes.size_in_bytes()
    }

    #[inline(always)]
    pub(crate) fn view(&self) -> View<'_> {
        View {
            bytes: &self.bytes,
            shape: self.shape,
        }
    }

    /// Every value, in the order of quotients.
    pub(crate) fn entries(&self) -> Entries<&[u8]> {
        Entries::new(&self.bytes, self.shape)
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// For a writer that fills an empty table.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.make_mut()
    }

    /// For a writer that has filled it.
    pub(super) fn set_used(&mut self, used: u64) {
        self.used = used;
    }

    /// Takes out every value.
    pub(crate) fn clear(&mut self) {
        self.bytes.make_mut().fill(0);
        self.used = 0;
    }

    pub(crate) fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.section(&self.bytes);
    }

    /// Reads a table of this shape, and checks every invariant where the file is verified.
    pub(crate) fn decode(
        input: &mut Decoder<'_>,
        quotients: u64,
        bits: u32,
        used: u64,
    ) -> Result<Table, DecodeError> {
        let table = Table::decode_unchecked(input, quotients, bits, used)?;
        if input.is_verified() {
            table.check().map_err(invalid)?;
        }
        Ok(table)
    }

    /// The same for a caller that reads all [`entries`](Table::entries), which check themselves.
    pub(crate) fn decode_unchecked(
        input: &mut Decoder<'_>,
        quotients: u64,
        bits: u32,
        used: u64,
    ) -> Result<Table, DecodeError> {
        Ok(Table {
            bytes: input.section("table", Table::bytes(quotients, bits)?)?,
            shape: Shape::new(quotients, bits),
            used,
        })
    }

    /// The bytes of a table of this shape in a file.
    pub(super) fn bytes(quotients: u64, bits: u32) -> Result<u64, DecodeError> {
        let expected = "slots that an address can reach";
        let too_long = || DecodeError::invalid("table", quotients, expected);
        Shape::new(quotients, bits).bytes().ok_or_else(too_long)
    }

    /// Every invariant; the error is a slot, and what was expected there.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let (_, used) = self.entries().finish();
        check_used(used?, self.used)
    }
}

/// Refuses a table that has another number of slots in use than the file says.
pub(super) fn check_used(used: u64, said: u64) -> Result<(), Fault> {
    match used == said {
        true => Ok(()),
        false => Err((used, "as many slots in use as the file has entries")),
    }
}

/// The error of a table that breaks an invariant.
pub(crate) fn invalid((slot, expected): Fault) -> DecodeError {
    DecodeError::invalid("table", slot, expected)
}

#[cfg(test)]
mod tests;
