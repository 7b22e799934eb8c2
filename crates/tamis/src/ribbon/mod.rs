//! The ribbon family; [`families`](crate::families) has its essay.

mod bumped;
mod groups;
mod homogeneous;
mod retrieval;
mod sharded;
mod solve;
mod standard;
#[cfg(test)]
mod tests;

pub use bumped::RibbonBumped;
pub use homogeneous::RibbonHomogeneous;
pub use retrieval::Retrieval;
pub use standard::Ribbon;

use std::collections::BTreeSet;
use std::ops::{BitAnd, BitOr, BitXor, Shl, Shr};

use crate::bits::{fastrange, low_mask};
use crate::buf::Buf;
use crate::config::Config;
use crate::error::{BuildError, BuildErrorKind, DecodeError, NoMemory};
use crate::format::{Decoder, Encoder};
use crate::math;
use crate::simd::ribbon::{COLUMNS, agree};
use crate::simd::{self, Bits};

/// Slots of a block.
const BLOCK: u64 = 64;
/// Most bits of a slot.
const MOST_COLUMNS: u32 = 32;
/// Columns for which half a vector suffices.
const FEW: usize = COLUMNS / 2;
const MOST_SHARDS: u64 = 1 << 16;
/// Most blocks of a shard: more than any set of shards has.
const MOST_BLOCKS: u64 = 1 << 36;
/// Keys are sorted in stretches of this many starts, a power of two: their hashes fit in the
/// first-level cache.
const STRETCH: usize = 1 << 11;

/// Odd numbers without pattern (from the digits of π and e), by which a hash is spread over a row
/// and a result.
const SPREAD: [u64; 3] = [
    0x9216_D5D9_8979_FB1B,
    0xB7E1_5162_8AED_2A6B,
    0xA409_3822_299F_31D1,
];

/// The coefficients of an equation: as many bits as the ribbon is wide.
pub(crate) trait Row:
    Copy
    + Default
    + Eq
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
{
    const WIDTH: u32;
    const ZERO: Self;
    /// The row and the result of a hash.
    fn of(hash: u64) -> (Self, u32);
    /// The row's words, if it starts at this slot; the last one in use is number
    /// [`Self::WIDTH`]/64.
    fn masks(self, start: u64) -> [u64; 3];
    fn trailing_zeros(self) -> u32;
    /// Whether the number of ones is odd.
    fn parity(self) -> u32;
    fn bit(bit: u32) -> Self;
    fn low(self) -> u64;
}

/// A number multiplied by one of [`SPREAD`] and folded: every bit depends on all below it, and the
/// low ones on the high.
#[inline(always)]
fn spread(x: u64, by: u64) -> u64 {
    let x = x.wrapping_mul(by);
    x ^ x >> 32
}

/// A word shifted up to a start's position in its block, and the part that spills into the next.
#[inline(always)]
fn split(word: u64, start: u64) -> (u64, u64) {
    let offset = start as u32 % 64;
    let near = word << offset;
    // The rotation contains both.
    (near, word.rotate_left(offset) ^ near)
}

impl Row for u64 {
    const WIDTH: u32 = 64;
    const ZERO: u64 = 0;

    #[inline(always)]
    fn of(hash: u64) -> (u64, u32) {
        let row = spread(hash, SPREAD[0]);
        (row | 1, (row.wrapping_mul(SPREAD[1]) >> 32) as u32)
    }

    #[inline(always)]
    fn masks(self, start: u64) -> [u64; 3] {
        let (near, next) = split(self, start);
        [near, next, 0]
    }

    #[inline(always)]
    fn trailing_zeros(self) -> u32 {
        u64::trailing_zeros(self)
    }

    #[inline(always)]
    fn parity(self) -> u32 {
        self.count_ones() & 1
    }

    #[inline(always)]
    fn bit(bit: u32) -> u64 {
        u64::from(bit)
    }

    #[inline(always)]
    fn low(self) -> u64 {
        self
    }
}

impl Row for u128 {
    const WIDTH: u32 = 128;
    const ZERO: u128 = 0;

    #[inline(always)]
    fn of(hash: u64) -> (u128, u32) {
        let low = spread(hash, SPREAD[0]);
        let high = spread(low, SPREAD[1]);
        let row = u128::from(high) << 64 | u128::from(low) | 1;
        (row, (high.wrapping_mul(SPREAD[2]) >> 32) as u32)
    }

    #[inline(always)]
    fn masks(self, start: u64) -> [u64; 3] {
        let (near, next) = split(self as u64, start);
        let (after, third) = split((self >> 64) as u64, start);
        [near, next | after, third]
    }

    #[inline(always)]
    fn trailing_zeros(self) -> u32 {
        u128::trailing_zeros(self)
    }

    #[inline(always)]
    fn parity(self) -> u32 {
        ((self as u64) ^ (self >> 64) as u64).count_ones() & 1
    }

    #[inline(always)]
    fn bit(bit: u32) -> u128 {
        u128::from(bit)
    }

    #[inline(always)]
    fn low(self) -> u64 {
        self as u64
    }
}

/// Where the numbers of a ribbon's slots lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bits of a row: 64 or 128.
    pub(crate) width: u32,
    /// Bits of a slot.
    pub(crate) columns: u32,
    /// Tables that are solved separately; none in a filter of no keys.
    pub(crate) shards: u64,
    /// Blocks of a shard, more than a row can touch behind its first.
    pub(crate) blocks: u64,
    /// Blocks at the front of a shard that lack the last column.
    pub(crate) short: u64,
}

impl Shape {
    /// The shape with at least so many slots a shard, for this rate or a little less.
    pub(crate) fn new(width: u32, rate: Rate, shards: u64, slots: u64) -> Shape {
        let behind = u64::from(width) / BLOCK;
        let blocks = slots.div_ceil(BLOCK).max(behind + 1);
        Shape {
            width,
            columns: rate.columns,
            shards,
            blocks,
            short: (rate.short * (blocks - behind) as f64) as u64,
        }
    }

    /// Blocks that a start may lie in: a row from there ends inside the table.
    #[inline(always)]
    pub(crate) fn start_blocks(&self) -> u64 {
        self.blocks - u64::from(self.width) / BLOCK
    }

    /// Starts that a row may have.
    #[inline(always)]
    pub(crate) fn starts(&self) -> u64 {
        self.start_blocks() * BLOCK
    }

    /// Slots of a shard.
    pub(crate) fn slots(&self) -> u64 {
        self.blocks * BLOCK
    }

    /// Words of a shard.
    #[inline(always)]
    pub(crate) fn words(&self) -> u64 {
        self.offset(self.blocks)
    }

    /// The first word of a block in its shard.
    #[inline(always)]
    pub(crate) fn offset(&self, block: u64) -> u64 {
        block * u64::from(self.columns - 1) + block.saturating_sub(self.short)
    }

    /// The start of a mixed hash.
    #[inline(always)]
    pub(crate) fn start(&self, mixed: u64) -> u64 {
        fastrange(mixed, self.starts()).0
    }

    /// The bits of a result that the filter keeps.
    #[inline(always)]
    pub(crate) fn kept(&self) -> u32 {
        low_mask(self.columns) as u32
    }

    /// Bits of the result that a row from this start is compared with.
    #[inline(always)]
    pub(crate) fn columns_at(&self, start: u64) -> u32 {
        self.columns - u32::from(start / BLOCK < self.short)
    }

    /// A column's bits in so many slots, at most 128, that of the first lowest.
    fn column(&self, words: &[u64], shard: u64, start: u64, slots: u32, column: u32) -> u128 {
        let (block, offset) = (start / BLOCK, (start % BLOCK) as u32);
        let mut bits = 0;
        for i in 0..(offset + slots).div_ceil(64) {
            let at = self.first(shard, (block + u64::from(i)) * BLOCK) + column as usize;
            let word = u128::from(words[at]);
            bits |= match (64 * i).checked_sub(offset) {
                Some(up) => word << up,
                None => word >> offset,
            };
        }
        bits & u128::MAX >> (128 - slots)
    }

    /// The false-positive rate: a share of the starts has one column less.
    pub(crate) fn fpr(&self) -> f64 {
        if self.shards == 0 {
            return 0.0;
        }
        math::ribbon_fpr(self.columns, self.short as f64 / self.start_blocks() as f64)
    }

    /// Where the first words of a row lie, in all words.
    #[inline(always)]
    pub(crate) fn first(&self, shard: u64, start: u64) -> usize {
        (shard * self.words() + self.offset(start / BLOCK)) as usize
    }

    /// Prefetches the words of a row.
    #[inline(always)]
    pub(crate) fn prefetch(&self, words: &[u64], first: usize) {
        let all = (self.width as usize / 64 + 1) * self.columns as usize;
        for line in (first..first + all).step_by(8) {
            simd::prefetch(words, line);
        }
        simd::prefetch(words, first + all - 1);
    }

    /// Whether the slots of a row combine to its result. `WIDE` must be set if there are more
    /// columns than are compared at once.
    #[inline(always)]
    pub(crate) fn agrees<R: Row, B: Bits, const WIDE: bool>(
        &self,
        bits: B,
        words: &[u64],
        place: Place<R>,
    ) -> bool {
        let agrees = self.agrees_before_the_end::<R, B, WIDE>(bits, words, place);
        agrees.unwrap_or_else(|| {
            let Place {
                first,
                start,
                row,
                result,
            } = place;
            let (next, third) = (self.columns_at(start), self.columns_at(start + BLOCK));
            agrees_at_the_end(words, first, [next, third], start, row, result)
        })
    }

    /// The same; `None` for rows so near the end that eight words would reach beyond the last.
    #[inline(always)]
    pub(crate) fn agrees_before_the_end<R: Row, B: Bits, const WIDE: bool>(
        &self,
        bits: B,
        words: &[u64],
        place: Place<R>,
    ) -> Option<bool> {
        let columns = self.columns_at(place.start) as usize;
        let mut agree = self.agrees_from::<R, B, COLUMNS>(bits, words, place, 0, columns)?;
        if WIDE {
            // No early exit before the last column: the branch would be unpredictable, and each
            // misprediction would discard the work already begun for later lookups. For the same
            // reason blocks that lack the last column take as many rounds.
            let (all, mut from) = (self.columns as usize, COLUMNS);
            while from + FEW < all {
                agree &= self.agrees_from::<R, B, COLUMNS>(bits, words, place, from, columns)?;
                from += COLUMNS;
            }
            if from < all {
                agree &= self.agrees_from::<R, B, FEW>(bits, words, place, from, columns)?;
            }
        }
        Some(agree)
    }

    /// The same in up to `C` columns from one on.
    #[inline(always)]
    fn agrees_from<R: Row, B: Bits, const C: usize>(
        &self,
        bits: B,
        words: &[u64],
        place: Place<R>,
        from: usize,
        columns: usize,
    ) -> Option<bool> {
        let masks = place.row.masks(place.start);
        let (expected, count) = (place.result >> from, columns.saturating_sub(from));
        // The next block starts where this one ends, and has no fewer columns. A narrow row does
        // not reach the third.
        let far = match R::WIDTH {
            64 => columns,
            _ => columns + self.columns_at(place.start + BLOCK) as usize,
        };
        let [near, next, third] = blocks::<C>(words, place.first + from, columns, far)?;
        Some(match R::WIDTH {
            64 => agree(bits, [near, third], [masks[0], masks[1]], expected, count),
            _ => agree(bits, [near, next, third], masks, expected, count),
        })
    }

    pub(crate) fn encode(&self, out: &mut Encoder<'_>) {
        out.param("width", u64::from(self.width));
        out.param("columns", u64::from(self.columns));
        out.param("shards", self.shards);
        out.param("blocks", self.blocks);
        out.param("short", self.short);
    }

    pub(crate) fn decode(input: &mut Decoder<'_>) -> Result<Shape, DecodeError> {
        let shape = Shape {
            width: input.param_in("width", 64..=128)? as u32,
            columns: input.param_in("columns", 1..=u64::from(MOST_COLUMNS))? as u32,
            shards: input.param("shards")?,
            blocks: input.param("blocks")?,
            short: input.param("short")?,
        };
        if (shape.shards == 0) != input.is_empty() {
            let expected = "0 exactly when there are no keys";
            return Err(DecodeError::invalid("shards", shape.shards, expected));
        }
        shape.check()?;
        // A builder makes more slots than there are keys.
        let most = shape.slots() * shape.shards;
        if input.len() > most {
            let expected = format!("at most {most}, one for each slot");
            return Err(DecodeError::invalid("keys", input.len(), expected));
        }
        Ok(shape)
    }

    /// Whether a decoded shape keeps every row inside its words, and their number inside 64 bits.
    pub(crate) fn check(&self) -> Result<(), DecodeError> {
        let behind = u64::from(self.width) / BLOCK;
        let expected = |most: u64| format!("at most {most}");
        if self.width != 64 && self.width != 128 {
            return Err(DecodeError::invalid(
                "width",
                u64::from(self.width),
                "64 or 128",
            ));
        }
        if self.shards > MOST_SHARDS {
            return Err(DecodeError::invalid(
                "shards",
                self.shards,
                expected(MOST_SHARDS),
            ));
        }
        if !(behind + 1..=MOST_BLOCKS).contains(&self.blocks) {
            let expected = format!("{} to {MOST_BLOCKS}", behind + 1);
            return Err(DecodeError::invalid("blocks", self.blocks, expected));
        }
        let most = self.start_blocks();
        if self.short > most {
            return Err(DecodeError::invalid("short", self.short, expected(most)));
        }
        Ok(())
    }
}

/// `C` words of a block and of the two after it, which lie so many words further on; `None` where
/// they would reach beyond the last word.
#[inline(always)]
fn blocks<const C: usize>(
    words: &[u64],
    first: usize,
    next: usize,
    far: usize,
) -> Option<[&[u64; C]; 3]> {
    let near = words.get(first..)?;
    let all = near.get(..far + C)?;
    let next = near.get(next..)?;
    Some([all.first_chunk()?, next.first_chunk()?, all.last_chunk()?])
}

/// Whether the slots of a row combine to its result, column by column: the row's block has the
/// first number of columns, and the next block the second. The arguments are numbers, not
/// structures, which callers would have to keep in memory even if they never call this.
#[cold]
#[inline(never)]
fn agrees_at_the_end<R: Row>(
    words: &[u64],
    first: usize,
    columns: [u32; 2],
    start: u64,
    row: R,
    result: u32,
) -> bool {
    let [next, third] = columns.map(|columns| columns as usize);
    let masks = row.masks(start);
    (0..next).all(|column| {
        // A narrow row's third mask is 0, and its third block may not be there.
        let blocks = [0, next, next + third].map(|block| first + block + column);
        let word = |block: usize| words.get(block).copied().unwrap_or(0);
        let under = blocks
            .iter()
            .zip(masks)
            .fold(0, |x, (&block, mask)| x ^ word(block) & mask);
        under.parity() == result.bit(column as u32)
    })
}

/// Where a row's words lie, and what its slots should combine to.
#[derive(Clone, Copy, Default)]
pub(crate) struct Place<R> {
    first: usize,
    /// In its shard.
    start: u64,
    row: R,
    result: u32,
}

/// A rate as columns: this many, of which the last is left out of a share of the blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    columns: u32,
    short: f64,
}

impl Rate {
    /// The fewest bits for a filter of this rate, which is that of its columns times `excess`.
    pub(crate) fn new(kind: &'static str, fpr: f64, excess: f64) -> Result<Rate, BuildError> {
        match math::ribbon_columns(fpr / excess) {
            Some((columns, short)) if columns <= MOST_COLUMNS => Ok(Rate { columns, short }),
            _ => {
                let columns = math::fingerprint_fpr(MOST_COLUMNS);
                let mut least = columns * excess;
                // The advised rate must be accepted: rounding may have left it slightly too low.
                while least / excess < columns {
                    least = least.next_up();
                }
                Err(BuildErrorKind::Unreachable { kind, fpr, least }.into())
            }
        }
    }

    /// A rate lower by this factor, or as low as these columns allow: 2⁻ᶜ(1 + s), for c columns
    /// and a share s that is short.
    pub(crate) fn lowered(self, factor: f64) -> Rate {
        let short = ((1.0 + self.short) / factor - 1.0).max(0.0);
        Rate { short, ..self }
    }
}

/// Why a shard was not solved.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An equation contradicts others.
    Conflict,
    /// A hash was given more than once, or some shard is so large that it seems so.
    Repeats,
    Memory(NoMemory),
}

impl From<NoMemory> for Failure {
    fn from(error: NoMemory) -> Failure {
        Failure::Memory(error)
    }
}

/// Hands the hashes in order to `work`, a stretch of starts at a time. Fails if any repeats.
///
/// `hash` is applied to each of `runs`, and `start` to its result; `start` must be monotonic.
#[inline(always)]
pub(crate) fn in_order(
    runs: &[&[u64]],
    starts: u64,
    hash: impl Fn(u64) -> u64,
    start: impl Fn(u64) -> u64,
    mut work: impl FnMut(&[u64]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let stretch_of = |hash| start(hash) as usize / STRETCH;
    let hashes = || runs.iter().copied().flatten().map(|&given| hash(given));
    let mut ends = vec![0usize; (starts as usize).div_ceil(STRETCH)];
    for hash in hashes() {
        ends[stretch_of(hash)] += 1;
    }
    let (mut all, mut largest) = (0, 0);
    for end in &mut ends {
        largest = largest.max(*end);
        all += std::mem::replace(end, all);
    }
    let mut grouped = Buf::<u64>::zeroed(all as u64)?;
    let grouped = grouped.make_mut();
    for hash in hashes() {
        let end = &mut ends[stretch_of(hash)];
        grouped[*end] = hash;
        *end += 1;
    }
    let mut sorted = vec![0; largest];
    let mut from = 0;
    for end in ends {
        let sorted = &mut sorted[..end - from];
        sort(&grouped[from..end], sorted, |hash| {
            start(hash) as usize % STRETCH
        });
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Failure::Repeats);
        }
        work(sorted)?;
        from = end;
    }
    Ok(())
}

/// Sorts the hashes of a stretch, whose places in it are monotonic in the hash.
#[inline(always)]
fn sort(hashes: &[u64], sorted: &mut [u64], place: impl Fn(u64) -> usize) {
    let mut heads = [0u32; STRETCH];
    for &hash in hashes {
        heads[place(hash)] += 1;
    }
    let (mut next, mut most) = (0, 0);
    for head in &mut heads {
        most = most.max(*head);
        next += std::mem::replace(head, next);
    }
    for &hash in hashes {
        let head = &mut heads[place(hash)];
        sorted[*head as usize] = hash;
        *head += 1;
    }
    // Hashes of one place are few and adjacent, unless there are more keys than places.
    if most > 64 {
        sorted.sort_unstable();
        return;
    }
    for i in 1..sorted.len() {
        let hash = sorted[i];
        let mut at = i;
        while at > 0 && sorted[at - 1] > hash {
            sorted[at] = sorted[at - 1];
            at -= 1;
        }
        sorted[at] = hash;
    }
}

/// Where a row went.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// To this slot.
    Slot(usize),
    /// Nowhere: others imply it.
    Implied,
    /// Nowhere: others contradict it.
    Conflict,
}

/// What the slots of a row combine to: a bit for each column.
pub(crate) trait Number: Copy + Eq + BitXor<Output = Self> {
    const ZERO: Self;
    fn bit(self, column: u32) -> u32;
}

impl Number for u32 {
    const ZERO: u32 = 0;

    #[inline(always)]
    fn bit(self, column: u32) -> u32 {
        self >> column & 1
    }
}

impl Number for u64 {
    const ZERO: u64 = 0;

    #[inline(always)]
    fn bit(self, column: u32) -> u32 {
        (self >> column & 1) as u32
    }
}

/// The equations of a shard, one at most for each slot, whose first bit is that slot's.
pub(crate) struct Band<R, N> {
    /// Zero where a slot has none.
    pub(crate) rows: Vec<R>,
    pub(crate) results: Vec<N>,
}

impl<R: Row, N: Number> Band<R, N> {
    pub(crate) fn new(slots: u64) -> Result<Band<R, N>, NoMemory> {
        Ok(Band {
            rows: filled(slots, R::ZERO)?,
            results: filled(slots, N::ZERO)?,
        })
    }

    /// Adds an equation whose row starts at a slot.
    #[inline(always)]
    pub(crate) fn insert(&mut self, start: u64, mut row: R, mut result: N) -> Placed {
        let mut slot = start as usize;
        loop {
            let held = self.rows[slot];
            if held == R::ZERO {
                self.rows[slot] = row;
                self.results[slot] = result;
                return Placed::Slot(slot);
            }
            row = row ^ held;
            result = result ^ self.results[slot];
            if row == R::ZERO {
                return if result == N::ZERO {
                    Placed::Implied
                } else {
                    Placed::Conflict
                };
            }
            let zeros = row.trailing_zeros();
            row = row >> zeros;
            slot += zeros as usize;
        }
    }

    /// Writes the numbers of all slots to a shard's words. A slot without a row gets its result.
    #[inline(always)]
    pub(crate) fn solve(&self, shape: &Shape, words: &mut [u64]) {
        let full = shape.columns - u32::from(shape.short > 0);
        let mut column = 0;
        while column < full {
            column += match full - column {
                8.. => self.substitute::<8>(shape, column, 0, words),
                4.. => self.substitute::<4>(shape, column, 0, words),
                2.. => self.substitute::<2>(shape, column, 0, words),
                _ => self.substitute::<1>(shape, column, 0, words),
            };
        }
        if column < shape.columns {
            self.substitute::<1>(shape, column, shape.short, words);
        }
    }

    /// Back-substitutes some columns, down to a block, and returns how many.
    #[inline(always)]
    fn substitute<const COLUMNS: usize>(
        &self,
        shape: &Shape,
        column: u32,
        down_to: u64,
        words: &mut [u64],
    ) -> u32 {
        // Bit i is the number of the slot i places on.
        let mut after = [R::ZERO; COLUMNS];
        for block in (down_to..shape.blocks).rev() {
            let slots = (block * BLOCK) as usize..((block + 1) * BLOCK) as usize;
            let equations = self.rows[slots.clone()].iter().zip(&self.results[slots]);
            for (&row, &result) in equations.rev() {
                for (c, after) in after.iter_mut().enumerate() {
                    let shifted = *after << 1;
                    let bit = (row & shifted).parity() ^ result.bit(column + c as u32);
                    *after = shifted | R::bit(bit);
                }
            }
            let at = (shape.offset(block) + u64::from(column)) as usize;
            for (word, after) in words[at..at + COLUMNS].iter_mut().zip(after) {
                *word = after.low();
            }
        }
        COLUMNS as u32
    }
}

/// A vector of equal values, or how many bytes are lacking.
fn filled<T: Copy>(len: u64, value: T) -> Result<Vec<T>, NoMemory> {
    let mut values = Vec::new();
    values
        .try_reserve_exact(len as usize)
        .map_err(|_| NoMemory {
            bytes: len.saturating_mul(size_of::<T>() as u64),
        })?;
    values.resize(len as usize, value);
    Ok(values)
}

/// The parameter `width`: 64 or 128; by default the one that gives the smaller table for these
/// keys.
pub(crate) fn width(config: &Config, hashes: &[u64]) -> Result<u32, BuildError> {
    // Two blocks hold this many, and a wide row needs three. Repeats do not count.
    let mut distinct = BTreeSet::new();
    let many = hashes
        .iter()
        .any(|&hash| distinct.insert(hash) && distinct.len() > 100);
    let usual = if many { 128 } else { 64 };
    let width = config.param::<u32>("width", "64 or 128")?.unwrap_or(usual);
    if width != 64 && width != 128 {
        return Err(BuildError::parameter("width", width, "64 or 128"));
    }
    Ok(width)
}
