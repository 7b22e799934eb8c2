//! One block: a chained hash table without pointers, in N bytes.
//!
//! ```text
//! bit 0         L       H = L + F            H + X                                            8·N
//!  │ index      │ flags │ end marks, X bits   │ fingerprint 0, 1, … live − 1     │ 1 0 … 0    │
//! ```
//!
//! [`tinyset`](super) describes what the bits mean. This file reads and rewrites them plainly, a
//! slot at a time and for every shape; the short cuts for the common shapes are in
//! [`fast`](super::fast), and must give the same bits.

use crate::bits::low_mask;
use crate::math::{TINYSET_MAX_WIDTH, fingerprint_fpr, tinyset_widths};
use crate::simd::{Bits, Portable};

use std::ops::Range;

/// The longest fingerprint that is kept.
pub(super) const CAP: u32 = TINYSET_MAX_WIDTH;
/// The most chains: the index is read as one integer.
pub(super) const MOST_CHAINS: u32 = 128;

/// What all blocks of a filter share, besides their size of N bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape<const N: usize> {
    /// Chains, and bits of the index.
    pub(super) chains: u32,
    /// Whether the two removal flags stand after the index.
    pub(super) removable: bool,
}

/// How a block is cut into slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Slots that decide the widths: X. Those from `live` on are free again.
    pub(super) slots: u32,
    /// Slots that hold a fingerprint.
    pub(super) live: u32,
    /// Bits of a fingerprint from slot `extended` on; those before have one more.
    pub(super) width: u32,
    pub(super) extended: u32,
}

/// A fingerprint on its way from one block to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) chain: u32,
    pub(super) fingerprint: u64,
    /// How many bits of the remainder it is.
    pub(super) width: u32,
}

impl Slot {
    /// Whether a slot comes before another, as far as the bits known of both tell. Slots of a
    /// block are in the order of their chains, then of their remainders. This does not depend on
    /// the order of insertion, so neither do the bits of a block.
    pub(super) fn is_before(&self, other: &Slot) -> bool {
        let common = self.width.min(other.width);
        let key = |slot: &Slot| (slot.chain, slot.fingerprint >> (slot.width - common));
        key(self) < key(other)
    }
}

/// The slots of two blocks in one order. The slots of each keep their own order, whatever is known
/// of them: a slot that overtook another of its block would need bits that it has lost.
pub(super) fn interleave(ours: &[Slot], theirs: &[Slot], all: &mut Vec<Slot>) {
    let mut theirs = theirs.iter().peekable();
    all.clear();
    for slot in ours {
        while let Some(other) = theirs.next_if(|other| other.is_before(slot)) {
            all.push(*other);
        }
        all.push(*slot);
    }
    all.extend(theirs);
}

/// The fingerprint of a remainder: its first bits, from the top.
#[inline(always)]
pub(super) fn prefix(remainder: u64, bits: u32) -> u64 {
    remainder >> 1 >> (63 - bits)
}

impl Layout {
    #[inline(always)]
    pub(super) fn width_of(&self, slot: u32) -> u32 {
        self.width + u32::from(slot < self.extended)
    }

    /// Where a slot's fingerprint starts, counted from the end of the header.
    #[inline(always)]
    pub(super) fn offset_of(&self, slot: u32) -> u32 {
        self.slots + slot * self.width + slot.min(self.extended)
    }
}

/// The width law, [`tinyset_widths`], for any number of slots. An empty block is cut as for the
/// longest fingerprints.
#[inline(always)]
pub(super) const fn widths(array: u32, slots: u32) -> (u32, u32) {
    match tinyset_widths(array, slots) {
        Some(widths) => widths,
        None => (CAP, 0),
    }
}

impl<const N: usize> Shape<N> {
    pub(super) const fn header(self) -> u32 {
        self.chains + if self.removable { 2 } else { 0 }
    }

    /// Bits for end marks and fingerprints: A, and the most slots there can be.
    pub(super) const fn array(self) -> u32 {
        8 * N as u32 - self.header()
    }

    #[inline(always)]
    fn index(self, block: &[u8; N]) -> u128 {
        let word = |i: u32| u128::from(read(block, 64 * i, 64));
        let bits = match N {
            8 => word(0),
            _ => word(0) | word(1) << 64,
        };
        bits & u128::MAX >> (128 - self.chains)
    }

    /// The position of set bit number `rank` (from 0) in the end marks.
    #[inline(always)]
    fn select(self, block: &[u8; N], rank: u32) -> Option<u32> {
        let mut left = rank;
        let mut from = self.header();
        while from < 8 * N as u32 {
            let marks = read(block, from, (8 * N as u32 - from).min(56));
            let ones = marks.count_ones();
            if left < ones {
                let one = Portable.one(marks, 1 << left);
                return Some(from + one.trailing_zeros() - self.header());
            }
            left -= ones;
            from += 56;
        }
        None
    }

    /// The slot where a chain with `rank` chains before it starts, or would start if it is empty.
    #[inline(always)]
    fn start(self, block: &[u8; N], rank: u32) -> Option<u32> {
        match rank {
            0 => Some(0),
            _ => self.select(block, rank - 1).map(|last| last + 1),
        }
    }

    #[inline(always)]
    fn rank(self, block: &[u8; N], chain: u32) -> u32 {
        (self.index(block) & ((1 << chain) - 1)).count_ones()
    }

    /// The chain's slots, first to end.
    #[inline(always)]
    fn chain(self, block: &[u8; N], chain: u32) -> Option<Range<u32>> {
        if self.index(block) >> chain & 1 == 0 {
            return None;
        }
        let first = self.start(block, self.rank(block, chain))?;
        Some(first..self.end(block, first)?)
    }

    /// The slot after the first end mark from a slot on.
    #[inline(always)]
    fn end(self, block: &[u8; N], first: u32) -> Option<u32> {
        let mut from = self.header() + first;
        while from < 8 * N as u32 {
            let bits = read(block, from, 56);
            if bits != 0 {
                return Some(from + bits.trailing_zeros() + 1 - self.header());
            }
            from += 56;
        }
        None
    }

    /// Reads how a block is cut; `None` for bits that no operation writes.
    pub(super) fn layout(self, block: &[u8; N]) -> Option<Layout> {
        if self.index(block) == 0 {
            let empty = block.iter().all(|&byte| byte == 0);
            return empty.then_some(self.plain(0, 0));
        }
        let layout = self.cut(block)?;
        let plain = self.plain(layout.slots, layout.live);
        let sound = if self.flags(block) >> 1 == 1 {
            layout.extended < plain.extended
        } else {
            // Nothing may be set after the last fingerprint, or after the last end mark where
            // fingerprints have 0 bits.
            highest(block)? < self.header() + plain.offset_of(layout.live)
        };
        sound.then_some(layout)
    }

    /// The removal flags: whether there are free slots, and whether the number of longer slots is
    /// marked.
    #[inline(always)]
    fn flags(self, block: &[u8; N]) -> u64 {
        read(block, self.chains, self.header() - self.chains)
    }

    /// As [`layout`](Shape::layout), for a block that is known to be valid.
    #[inline(always)]
    fn cut(self, block: &[u8; N]) -> Option<Layout> {
        let chains = self.index(block).count_ones();
        let flags = self.flags(block);
        let live = self.start(block, chains)?;
        let slots = match flags & 1 {
            0 => live,
            _ => self.end(block, live)?,
        };
        let plain = self.plain(slots, live);
        if flags >> 1 == 0 {
            return Some(plain);
        }
        // The highest 1 stands behind the last fingerprint.
        let extended = highest(block)?.checked_sub(self.header() + slots + live * plain.width)?;
        Some(Layout { extended, ..plain })
    }

    /// The layout in which as many slots as possible have one bit more.
    #[inline(always)]
    fn plain(self, slots: u32, live: u32) -> Layout {
        let (width, most) = widths(self.array(), slots);
        Layout {
            slots,
            live,
            width,
            extended: most.min(live),
        }
    }

    /// The first bits of a slot's fingerprint, which are its top bits.
    #[inline(always)]
    fn fingerprint(self, block: &[u8; N], layout: &Layout, slot: u32, bits: u32) -> u64 {
        let dropped = layout.width_of(slot) - bits;
        read(
            block,
            self.header() + layout.offset_of(slot) + dropped,
            bits,
        )
    }

    /// The chain's slots that match, in order: widths never grow along a chain, so the first is
    /// the most specific.
    fn matches(
        self,
        block: &[u8; N],
        layout: Layout,
        chain: u32,
        remainder: u64,
    ) -> impl Iterator<Item = u32> {
        let slots = self.chain(block, chain).unwrap_or(0..0);
        slots.filter(move |&slot| {
            let width = layout.width_of(slot);
            self.fingerprint(block, &layout, slot, width) == prefix(remainder, width)
        })
    }

    /// Whether a slot of the chain holds a prefix of the remainder: for a valid block, whether
    /// [`count`](Shape::count) is above 0, found sooner.
    pub(super) fn contains(self, block: &[u8; N], chain: u32, remainder: u64) -> bool {
        let index = self.index(block);
        if index >> chain & 1 == 0 {
            return false;
        }
        let rank = (index & ((1 << chain) - 1)).count_ones();
        let (Some(layout), Some(first)) = (self.cut(block), self.start(block, rank)) else {
            return false;
        };
        for slot in first..layout.live {
            let width = layout.width_of(slot);
            let at = self.header() + layout.offset_of(slot);
            if read(block, at, width) == prefix(remainder, width) {
                return true;
            }
            if read(block, self.header() + slot, 1) == 1 {
                return false;
            }
        }
        false
    }

    /// How many slots of the chain hold a prefix of the remainder.
    pub(super) fn count(self, block: &[u8; N], chain: u32, remainder: u64) -> u64 {
        match self.layout(block) {
            Some(layout) => self.matches(block, layout, chain, remainder).count() as u64,
            None => 0,
        }
    }

    /// Length of a chain.
    pub(super) fn chain_len(self, block: &[u8; N], chain: u32) -> u32 {
        self.chain(block, chain)
            .map_or(0, |slots| slots.end - slots.start)
    }

    /// The block with one slot more; `None` if it is full.
    pub(super) fn inserted(self, block: &[u8; N], chain: u32, remainder: u64) -> Option<[u8; N]> {
        let old = self.layout(block)?;
        let first = self.start(block, self.rank(block, chain))?;
        let slots = self.chain(block, chain).unwrap_or(first..first);
        let less = |&slot: &u32| {
            let bits = old.width_of(slot);
            self.fingerprint(block, &old, slot, bits) < prefix(remainder, bits)
        };
        let at = first + slots.take_while(less).count() as u32;
        let slots = old.slots.max(old.live + 1);
        if slots > self.array() {
            return None;
        }
        let mut new = self.plain(slots, old.live + 1);
        if new.width == old.width {
            // Every slot that has the extra bit keeps it while there is room for it; no slot
            // regains it.
            new.extended = new
                .extended
                .min(old.extended + u32::from(at <= old.extended));
        }
        // A chain that already had slots gets one more 0 mark, wherever the slot stands in it.
        let index = self.index(block);
        let mut out = self.header_of(index | 1 << chain, &new);
        out.copy(block, self.header(), first);
        out.push(u64::from(index >> chain & 1 == 0), 1);
        out.copy(block, self.header() + first, old.live - first);
        self.free_marks(&mut out, &new);
        for slot in 0..new.live {
            let bits = new.width_of(slot);
            let fingerprint = if slot == at {
                prefix(remainder, bits)
            } else {
                self.fingerprint(block, &old, slot - u32::from(slot > at), bits)
            };
            out.push(fingerprint, bits);
        }
        Some(self.sealed(out, &new))
    }

    /// The block without the most specific slot that matches; `None` if none does.
    pub(super) fn removed(self, block: &[u8; N], chain: u32, remainder: u64) -> Option<[u8; N]> {
        let old = self.layout(block)?;
        let at = self.matches(block, old, chain, remainder).next()?;
        if old.live == 1 {
            return Some([0; N]);
        }
        let new = Layout {
            live: old.live - 1,
            extended: old.extended - u32::from(at < old.extended),
            ..old
        };
        // A chain of several slots starts with a 0 mark; that one is dropped, wherever the slot
        // stood.
        let slots = self.chain(block, chain)?;
        let mark = self.header() + slots.start;
        let live = self.header() + old.live;
        let place = self.header() + old.offset_of(at);
        // No fingerprint changes its width. Those behind the slot, and the mark behind them, move
        // down by the slot's width; the end marks up to the last in use move down by one.
        let mut out = deleted(block, mark + 1..live, 1);
        out = deleted(
            &out,
            place + old.width_of(at)..8 * N as u32,
            old.width_of(at),
        );
        set(&mut out, live - 1, old.live == old.slots);
        if slots.end - slots.start == 1 {
            set(&mut out, chain, false);
        }
        set(&mut out, self.chains, true);
        set(&mut out, self.chains + 1, self.is_marked(&new));
        let end = self.header() + new.offset_of(new.live);
        if end < 8 * N as u32 {
            set(&mut out, end, self.is_marked(&new));
        }
        Some(out)
    }

    /// Reads every slot of a block, in order.
    pub(super) fn read(self, block: &[u8; N], slots: &mut Vec<Slot>) {
        slots.clear();
        let Some(layout) = self.layout(block) else {
            return;
        };
        let mut index = self.index(block);
        for slot in 0..layout.live {
            let width = layout.width_of(slot);
            slots.push(Slot {
                chain: index.trailing_zeros(),
                fingerprint: self.fingerprint(block, &layout, slot, width),
                width,
            });
            if read(block, self.header() + slot, 1) == 1 {
                index &= index.wrapping_sub(1);
            }
        }
    }

    /// The share of all remainders that a block's chains match, summed over its chains. `slots` is
    /// scratch space.
    pub(super) fn coverage(self, block: &[u8; N], slots: &mut Vec<Slot>) -> f64 {
        self.read(block, slots);
        let mut sum = 0.0;
        for (i, slot) in slots.iter().enumerate() {
            // Widths never grow along a chain: what a later slot covers too is counted there.
            let mut later = slots[i + 1..].iter().take_while(|s| s.chain == slot.chain);
            if !later.any(|s| s.fingerprint == slot.fingerprint >> (slot.width - s.width)) {
                sum += fingerprint_fpr(slot.width);
            }
        }
        sum
    }

    /// The block of these slots, given in order, cut for `cut` slots or for as many as there are,
    /// whichever is more; `None` if they are too many.
    ///
    /// A slot gets the extra bit only if that bit is known, here and in all slots before it.
    pub(super) fn write(self, slots: &[Slot], cut: u32) -> Option<[u8; N]> {
        let live = slots.len() as u32;
        if live.max(cut) > self.array() {
            return None;
        }
        let mut layout = self.plain(live.max(cut), live);
        let known = slots.iter().take_while(|s| s.width > layout.width).count();
        debug_assert!(self.removable || known as u32 >= layout.extended);
        layout.extended = layout.extended.min(known as u32);
        let index = slots.iter().fold(0, |index, s| index | 1u128 << s.chain);
        let mut out = self.header_of(index, &layout);
        for (i, slot) in slots.iter().enumerate() {
            let last = slots.get(i + 1).is_none_or(|next| next.chain != slot.chain);
            out.push(u64::from(last), 1);
        }
        self.free_marks(&mut out, &layout);
        for (i, slot) in slots.iter().enumerate() {
            let bits = layout.width_of(i as u32);
            debug_assert!(bits <= slot.width, "fingerprints never grow");
            out.push(slot.fingerprint >> (slot.width - bits), bits);
        }
        Some(self.sealed(out, &layout))
    }

    /// Starts a block with its index and flags.
    fn header_of(self, index: u128, layout: &Layout) -> Writer<N> {
        let mut out = Writer::new();
        let low = self.chains.min(64);
        out.push(index as u64 & low_mask(low), low);
        out.push((index >> 64) as u64, self.chains - low);
        if self.removable {
            out.push(u64::from(layout.live < layout.slots), 1);
            out.push(u64::from(self.is_marked(layout)), 1);
        }
        out
    }

    /// Whether the number of longer slots must be marked, because it is not the one that the
    /// number of slots implies.
    fn is_marked(self, layout: &Layout) -> bool {
        layout.extended < self.plain(layout.slots, layout.live).extended
    }

    /// The end marks of the free slots: a last chain of their own.
    fn free_marks(self, out: &mut Writer<N>, layout: &Layout) {
        let mut free = layout.slots - layout.live;
        while free > 0 {
            let bits = free.min(56);
            free -= bits;
            out.push(u64::from(free == 0) << (bits - 1), bits);
        }
    }

    fn sealed(self, mut out: Writer<N>, layout: &Layout) -> [u8; N] {
        if self.is_marked(layout) {
            out.push(1, 1);
        }
        out.finish()
    }
}

/// Up to 57 bits from any position of a block, or 64 from a multiple of 8.
#[inline(always)]
pub(super) fn read<const N: usize>(block: &[u8; N], bit: u32, bits: u32) -> u64 {
    let byte = (bit as usize / 8).min(N - 8);
    let mut word = [0; 8];
    word.copy_from_slice(&block[byte..byte + 8]);
    // A field of 0 bits may start where the block ends.
    let shift = (bit - 8 * byte as u32).min(63);
    u64::from_le_bytes(word) >> shift & low_mask(bits)
}

/// The position of the highest set bit.
fn highest<const N: usize>(block: &[u8; N]) -> Option<u32> {
    let words = block.as_chunks::<8>().0.iter().enumerate().rev();
    let mut words = words.map(|(i, &word)| (i as u32, u64::from_le_bytes(word)));
    let (i, word) = words.find(|(_, word)| *word != 0)?;
    Some(64 * i + word.ilog2())
}

/// The block with a range of bits moved down by 25 or fewer, and zeros where it ended; bits
/// outside the range that are not overwritten stay.
fn deleted<const N: usize>(block: &[u8; N], range: Range<u32>, by: u32) -> [u8; N] {
    let words = block.as_chunks::<8>().0;
    let kept = |j: usize, range: &Range<u32>| {
        let from = |bit: u32| {
            let shift = bit.saturating_sub(64 * j as u32);
            if shift < 64 { u64::MAX << shift } else { 0 }
        };
        from(range.start) & !from(range.end)
    };
    let (cleared, mut above) = (range.start - by..range.end, 0);
    let mut out = [0; N];
    for (j, (word, to)) in words
        .iter()
        .zip(out.as_chunks_mut::<8>().0)
        .enumerate()
        .rev()
    {
        let word = u64::from_le_bytes(*word);
        let moving = word & kept(j, &range);
        let moved = moving >> by | above << 1 << (63 - by);
        *to = (word & !kept(j, &cleared) | moved).to_le_bytes();
        above = moving;
    }
    out
}

fn set<const N: usize>(block: &mut [u8; N], bit: u32, value: bool) {
    let (byte, bit) = (&mut block[bit as usize / 8], bit % 8);
    *byte = *byte & !(1 << bit) | u8::from(value) << bit;
}

/// Writes a block from its first bit to its last.
struct Writer<const N: usize> {
    block: [u8; N],
    /// Bits that do not fill a word yet, and how many.
    word: u64,
    filled: u32,
    /// Where the word will go.
    byte: usize,
}

impl<const N: usize> Writer<N> {
    fn new() -> Writer<N> {
        Writer {
            block: [0; N],
            word: 0,
            filled: 0,
            byte: 0,
        }
    }

    /// Appends the low bits of a value that has no other bits set.
    #[inline(always)]
    fn push(&mut self, value: u64, bits: u32) {
        debug_assert!(bits <= 64 && value & !low_mask(bits) == 0);
        if bits == 0 {
            return;
        }
        self.word |= value << self.filled;
        self.filled += bits;
        if self.filled >= 64 {
            self.block[self.byte..self.byte + 8].copy_from_slice(&self.word.to_le_bytes());
            self.byte += 8;
            self.filled -= 64;
            let written = bits - self.filled;
            self.word = if written < 64 { value >> written } else { 0 };
        }
    }

    /// Appends bits of another block.
    fn copy(&mut self, from: &[u8; N], mut bit: u32, mut bits: u32) {
        while bits > 0 {
            let part = bits.min(56);
            self.push(read(from, bit, part), part);
            bit += part;
            bits -= part;
        }
    }

    fn finish(mut self) -> [u8; N] {
        if self.filled > 0 {
            self.block[self.byte..self.byte + 8].copy_from_slice(&self.word.to_le_bytes());
        }
        self.block
    }
}

#[cfg(test)]
mod tests;
