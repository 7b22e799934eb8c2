//! Changing a quotient table: a value is put in or taken out, and what stands behind it moves.
//!
//! ```text
//!              ┌─ the run ─┐                                        insert c after b
//!  before      a   b   e   f   g   ·   h
//!  after       a   b   c   e   f   g   h      up to the first free slot all move on by one
//! ```
//!
//! A slot moves with its run end; the bits of `occupieds` stay, as they belong to quotients. Of
//! every block whose first slot is passed over, the offset grows by one. To take a value out is the
//! inverse, up to the first slot that is free, or holds a run at its own quotient: that one stays.
//! A free slot is all zeros, so that the bytes tell what is held and not how it came there.

use super::{BLOCK, HEAD, NoRoom, OCCUPIEDS, RUNENDS, SATURATED, Shape, Table, View};
use crate::bits::low_mask;
use crate::simd::Bits;

impl Table {
    #[inline(always)]
    fn put_word(&mut self, at: usize, word: u64) {
        self.bytes.make_mut()[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    /// Overwrites the value in a slot.
    #[inline(always)]
    pub(crate) fn set(&mut self, slot: u64, value: u64) {
        put(self.bytes.make_mut(), self.shape, slot, value);
    }

    #[inline(always)]
    fn set_occupied(&mut self, quotient: u64, is: bool) {
        let at = self.view().block_at(quotient / BLOCK) + OCCUPIEDS;
        self.set_bit(at, quotient % BLOCK, is);
    }

    #[inline(always)]
    fn set_runend(&mut self, slot: u64, is: bool) {
        let at = self.view().block_at(slot / BLOCK) + RUNENDS;
        self.set_bit(at, slot % BLOCK, is);
    }

    #[inline(always)]
    fn set_bit(&mut self, at: usize, bit: u64, is: bool) {
        let word = self.view().word(at) & !(1 << bit) | u64::from(is) << bit;
        self.put_word(at, word);
    }

    #[inline(always)]
    fn set_offset(&mut self, block: u64, offset: u64) {
        let at = self.view().block_at(block);
        self.bytes.make_mut()[at] = offset.min(u64::from(SATURATED)) as u8;
    }

    /// Inserts a value into the run of a quotient, at the slot `at` of the run or right after its
    /// last, as [`View::run`] gives them. Changes nothing if there is no room.
    #[inline(always)]
    pub(crate) fn insert_at<B: Bits>(
        &mut self,
        bits: B,
        quotient: u64,
        (start, end): (u64, u64),
        at: u64,
        value: u64,
    ) -> Result<(), NoRoom> {
        debug_assert!((start..=end).contains(&at));
        let free = self.view().first_free::<B, false>(bits, end)?;
        self.move_up(at, free);
        self.set(at, value);
        if start == end {
            self.set_occupied(quotient, true);
            self.set_runend(at, true);
        } else if at == end {
            self.set_runend(at - 1, false);
            self.set_runend(at, true);
        }
        for block in quotient / BLOCK + 1..=free / BLOCK {
            let offset = self.view().stored_offset(block);
            self.set_offset(block, u64::from(offset) + 1);
        }
        self.used += 1;
        Ok(())
    }

    /// Takes out the value in the slot `at` of a quotient's run.
    #[inline(always)]
    pub(crate) fn remove_at<B: Bits>(
        &mut self,
        bits: B,
        quotient: u64,
        (start, end): (u64, u64),
        at: u64,
    ) {
        debug_assert!((start..end).contains(&at));
        let view = self.view();
        let stop = view.first_free::<B, true>(bits, end);
        let stop = stop.unwrap_or(view.shape.slots());
        self.move_down(at, stop - 1);
        if end - start == 1 {
            self.set_occupied(quotient, false);
        } else if at == end - 1 {
            self.set_runend(at - 1, true);
        }
        let mut before = None;
        for block in quotient / BLOCK + 1..=(stop - 1) / BLOCK {
            let view = self.view();
            let offset = match view.stored_offset(block) {
                SATURATED => {
                    let before = before.unwrap_or_else(|| view.offset(bits, block - 1));
                    view.next_offset(bits, block - 1, before)
                }
                offset => u64::from(offset).saturating_sub(1),
            };
            self.set_offset(block, offset);
            before = Some(offset);
        }
        // A file that nobody has verified may say that fewer are in use.
        self.used = self.used.saturating_sub(1);
    }

    /// Takes out the values in the runs of quotients `from..to` that are not to be kept, in one
    /// pass over these runs and those that then move back.
    #[inline(always)]
    pub(crate) fn retain<B: Bits>(
        &mut self,
        bits: B,
        from: u64,
        to: u64,
        keep: impl Fn(u64) -> bool,
    ) {
        let (view, shape) = (self.view(), self.shape);
        let Some(mut quotient) = view.next_occupied(from, to) else {
            return;
        };
        // Where a value is read, where it goes if it is kept, and where its run begins there.
        let mut read = view.run(bits, quotient).0;
        let (mut write, mut start) = (read, read);
        // The run ends of the block that is read, and the quotients that follow in theirs.
        let (mut block, mut ends) = (read / BLOCK, view.runends(read / BLOCK));
        let mut following = view.occupieds(quotient / BLOCK) >> (quotient % BLOCK);
        let bytes = self.bytes.make_mut();
        while read < shape.slots() {
            let view = View { bytes, shape };
            if read / BLOCK != block {
                block = read / BLOCK;
                ends = view.runends(block);
            }
            let value = view.get(read);
            if quotient >= to || keep(value) {
                if write < read {
                    put(bytes, shape, write, value);
                }
                write += 1;
            } else {
                self.used = self.used.saturating_sub(1);
            }
            let is_end = ends >> (read % BLOCK) & 1 == 1;
            read += 1;
            if !is_end {
                continue;
            }
            if write < read {
                flip(bytes, shape, read - 1, RUNENDS);
                if write > start {
                    flip(bytes, shape, write - 1, RUNENDS);
                } else {
                    flip(bytes, shape, quotient, OCCUPIEDS);
                }
            }
            // A run that begins at its own slot stays there, and so do those after it.
            following &= !1;
            let next = if following != 0 {
                quotient + u64::from(following.trailing_zeros())
            } else {
                let after = BLOCK * (quotient / BLOCK + 1);
                let view = View { bytes, shape };
                view.next_occupied(after, to.max(read)).unwrap_or(u64::MAX)
            };
            for slot in write..read.min(next) {
                put(bytes, shape, slot, 0);
            }
            for block in quotient / BLOCK + 1..=next.min(read - 1) / BLOCK {
                let offset = write.saturating_sub(BLOCK * block);
                bytes[block as usize * shape.stride] = offset.min(u64::from(SATURATED)) as u8;
            }
            if next >= to && write.max(next) >= read {
                return;
            }
            following = if following != 0 {
                following >> (next - quotient)
            } else {
                View { bytes, shape }.occupieds(next / BLOCK) >> (next % BLOCK)
            };
            quotient = next;
            read = read.max(next);
            write = write.max(next);
            start = write;
        }
    }

    /// Moves the slots `from..to` on by one, values and run ends; slot `to` is free, and `from` is
    /// left with no run end.
    #[inline(always)]
    fn move_up(&mut self, from: u64, to: u64) {
        let (first, last) = (from / BLOCK, to / BLOCK);
        for block in (first..=last).rev() {
            let low = if block == first { from % BLOCK } else { 0 };
            let high = if block == last { to % BLOCK } else { BLOCK - 1 };
            self.move_up_in(block, low as u32, high as u32);
            if block > first {
                let carried = BLOCK * block - 1;
                let view = self.view();
                let (value, end) = (view.get(carried), view.runends(block - 1) >> 63 == 1);
                self.set(BLOCK * block, value);
                self.set_runend(BLOCK * block, end);
            }
        }
    }

    #[inline(always)]
    fn move_up_in(&mut self, block: u64, low: u32, high: u32) {
        let view = self.view();
        let (at, bits) = (view.block_at(block), self.shape.bits);
        let runends = view.runends(block);
        let moved = low_mask(high + 1) & !low_mask(low);
        self.put_word(
            at + RUNENDS,
            runends & !moved | runends << 1 & moved & !(1 << low),
        );
        if low == high {
            return;
        }
        // The values are words, too: shifted by one value, from the last to the first.
        let (from, to) = ((low + 1) * bits, (high + 1) * bits);
        let (first, last) = ((from / 64) as usize, ((to - 1) / 64) as usize);
        let words = self.words_of(at);
        let word = |words: &[[u8; 8]], i: usize| u64::from_le_bytes(words[i]);
        let mut old = word(words, last);
        let mut mask = low_mask(to - 64 * last as u32);
        for i in (first..=last).rev() {
            let below = if i == 0 { 0 } else { word(words, i - 1) };
            if i == first {
                mask &= u64::MAX << (from % 64);
            }
            let new = old << bits | below >> (64 - bits);
            words[i] = (old & !mask | new & mask).to_le_bytes();
            (old, mask) = (below, u64::MAX);
        }
    }

    /// Moves the slots after `to` up to `last` back by one, over `to`; `last` is left free.
    #[inline(always)]
    fn move_down(&mut self, to: u64, last: u64) {
        let (first, end) = (to / BLOCK, last / BLOCK);
        for block in first..=end {
            let low = if block == first { to % BLOCK } else { 0 };
            let high = if block == end {
                last % BLOCK
            } else {
                BLOCK - 1
            };
            self.move_down_in(block, low as u32, high as u32);
            let highest = BLOCK * block + high;
            if block < end {
                let view = self.view();
                let (value, is_end) = (view.get(highest + 1), view.runends(block + 1) & 1 == 1);
                self.set(highest, value);
                self.set_runend(highest, is_end);
            } else {
                self.set(highest, 0);
            }
        }
    }

    #[inline(always)]
    fn move_down_in(&mut self, block: u64, low: u32, high: u32) {
        let view = self.view();
        let (at, bits) = (view.block_at(block), self.shape.bits);
        let runends = view.runends(block);
        let moved = low_mask(high + 1) & !low_mask(low);
        self.put_word(
            at + RUNENDS,
            runends & !moved | (runends & moved) >> 1 & moved,
        );
        if low == high {
            return;
        }
        let (from, to) = (low * bits, high * bits);
        let (first, last) = ((from / 64) as usize, ((to - 1) / 64) as usize);
        let words = self.words_of(at);
        let word = |words: &[[u8; 8]], i: usize| u64::from_le_bytes(words[i]);
        let mut old = word(words, first);
        let mut mask = u64::MAX << (from % 64);
        for i in first..=last {
            let above = if i + 1 < words.len() {
                word(words, i + 1)
            } else {
                0
            };
            if i == last {
                mask &= low_mask(to - 64 * last as u32);
            }
            let new = old >> bits | above << (64 - bits);
            words[i] = (old & !mask | new & mask).to_le_bytes();
            (old, mask) = (above, u64::MAX);
        }
    }

    /// The values of the block that begins here, as words: one for each bit of a value.
    #[inline(always)]
    fn words_of(&mut self, at: usize) -> &mut [[u8; 8]] {
        let values = at + HEAD..at + self.shape.stride;
        self.bytes.make_mut()[values].as_chunks_mut().0
    }
}

/// Overwrites the value in a slot.
#[inline(always)]
fn put(bytes: &mut [u8], shape: Shape, slot: u64, value: u64) {
    debug_assert!(value <= low_mask(shape.bits));
    let bit = (slot % BLOCK) as usize * shape.bits as usize;
    let at = (slot / BLOCK) as usize * shape.stride + HEAD + bit / 8;
    let mask = low_mask(shape.bits) << (bit % 8);
    let word = View { bytes, shape }.word(at) & !mask | value << (bit % 8);
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// Flips a slot's bit in a word of its block's head.
#[inline(always)]
fn flip(bytes: &mut [u8], shape: Shape, slot: u64, word: usize) {
    let block = (slot / BLOCK) as usize * shape.stride;
    bytes[block + word + (slot % BLOCK / 8) as usize] ^= 1 << (slot % 8);
}
