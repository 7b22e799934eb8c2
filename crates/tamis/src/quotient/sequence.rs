//! A quotient table from its first block to its last: read in order, and written in order.
//!
//! Reading and writing keep the blocks that a run reaches over and nothing else, so that the table
//! may lie in memory or stream from one file to another, larger than memory is. From a file no more
//! than [`MOST_HELD`] are kept, whatever it holds.
//!
//! ```text
//!             ┌────────┬────────┬────────┬────────┬────────┬─ …
//!  a table    │ block  │ block  │ block  │ block  │ block  │
//!             └────────┴────────┴────────┴────────┴────────┴─ …
//!              written  ▲ the last quotient's   ▲ the last slot's
//!                       └── held while writing ─┘
//! ```

use std::collections::VecDeque;
use std::io::{self, Write};

use super::table::{BLOCK, HEAD, MOST_BITS, NoRoom, SATURATED, SPARE, Shape, Table};
use super::{Split, Unwritten};
use crate::bits::low_mask;
use crate::error::FullKind;
use crate::format::Data;

/// Bytes of the largest block, and as many after it as reading its last value may reach.
const LARGEST: usize = HEAD + 8 * MOST_BITS as usize + SPARE as usize;

/// The blocks that a run reaches over at most where a table is not held in memory. Hashes that are
/// spread evenly reach over a dozen.
pub(super) const MOST_HELD: usize = 1024;

/// Where the bytes of a table come from, one after the other.
pub(crate) trait Source {
    /// The most blocks that are kept of it while a run goes on.
    const MOST_HELD: usize;

    /// The next bytes; `false` if they cannot be had. The source then knows why.
    fn read(&mut self, out: &mut [u8]) -> bool;
}

impl Source for &[u8] {
    const MOST_HELD: usize = usize::MAX;

    #[inline(always)]
    fn read(&mut self, out: &mut [u8]) -> bool {
        let Some((bytes, rest)) = self.split_at_checked(out.len()) else {
            return false;
        };
        out.copy_from_slice(bytes);
        *self = rest;
        true
    }
}

impl Source for Data<'_> {
    const MOST_HELD: usize = MOST_HELD;

    fn read(&mut self, out: &mut [u8]) -> bool {
        Data::read(self, out)
    }
}

/// A slot that breaks an invariant, and what was expected there.
pub(crate) type Fault = (u64, &'static str);

/// One value of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) quotient: u64,
    pub(crate) value: u64,
    /// Whether its run ends here.
    pub(crate) is_last: bool,
}

/// Every value in the order of slots, and so of quotients, read block by block and once.
///
/// All invariants are checked on the way. The first that is broken is what [`finish`] returns;
/// until then the values are listed as well as they can be read.
///
/// [`finish`]: Entries::finish
#[derive(Clone)]
pub(crate) struct Entries<S> {
    source: S,
    shape: Shape,
    block: [u8; LARGEST],
    runends: u64,
    slot: u64,
    /// Blocks from `first` on that have quotients whose run has not ended, and the last one.
    open: VecDeque<Open>,
    first: u64,
    /// The least quotient whose run has not ended; `NONE` if all have.
    quotient: u64,
    /// The slot after the last that is in use.
    next: u64,
    used: u64,
    fault: Option<Fault>,
}

const NONE: u64 = u64::MAX;

/// What is kept of a block while runs of its quotients have not ended.
#[derive(Clone, Copy)]
struct Open {
    occupieds: u64,
    offset: u8,
}

impl<S: Source> Entries<S> {
    /// Of a table of this shape.
    pub(super) fn new(source: S, shape: Shape) -> Entries<S> {
        Entries {
            source,
            shape,
            block: [0; LARGEST],
            runends: 0,
            slot: 0,
            open: VecDeque::new(),
            first: 0,
            quotient: NONE,
            next: 0,
            used: 0,
            fault: None,
        }
    }

    pub(crate) fn bits(&self) -> u32 {
        self.shape.bits
    }

    /// Reads what is left and returns where the table comes from, with how many slots are in use
    /// or the first fault.
    pub(crate) fn finish(mut self) -> (S, Result<u64, Fault>) {
        while self.next().is_some() {}
        let end = self.shape.slots();
        if self.quotient != NONE {
            self.expected(self.quotient, "a run that ends");
        }
        let mut spare = [0; SPARE as usize];
        if !self.source.read(&mut spare) || spare != [0; SPARE as usize] {
            self.expected(end, "zeros after the last block");
        }
        (self.source, self.fault.map_or(Ok(self.used), Err))
    }

    #[cold]
    fn expected(&mut self, slot: u64, what: &'static str) {
        self.fault.get_or_insert((slot, what));
    }

    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        match self.block.get(at..).and_then(<[u8]>::first_chunk) {
            Some(word) => u64::from_le_bytes(*word),
            None => 0,
        }
    }

    #[inline(always)]
    fn value(&self, slot: u64) -> u64 {
        let bit = (slot % BLOCK) as usize * self.shape.bits as usize;
        self.word(HEAD + bit / 8) >> (bit % 8) & low_mask(self.shape.bits)
    }

    /// Reads the next block that has anything in it; `false` at the end.
    #[inline(never)]
    fn begin_block(&mut self) -> bool {
        let stride = self.shape.stride;
        loop {
            if self.slot >= self.shape.slots() {
                return false;
            }
            if !self.source.read(&mut self.block[..stride]) {
                self.shape.blocks = self.slot / BLOCK;
                self.expected(self.slot, "a block");
                return false;
            }
            let (offset, occupieds) = (self.block[0], self.word(1));
            self.runends = self.word(9);
            let quotients = self.shape.quotients.saturating_sub(self.slot).min(BLOCK);
            if occupieds & !low_mask(quotients as u32) != 0 {
                self.expected(self.slot, "no run beyond the last quotient");
            }
            self.open.push_back(Open { occupieds, offset });
            if self.open.len() == 1 {
                self.check_offset();
            }
            self.advance();
            if self.open.len() > S::MOST_HELD {
                let expected = "runs of 65536 slots at most; merge the filter in memory";
                self.expected(self.quotient, expected);
                // The rest is only read to its end.
                self.first += self.open.drain(..self.open.len() - 1).count() as u64;
                self.advance();
            }
            if self.quotient != NONE || self.block[..stride].iter().any(|&byte| byte != 0) {
                return true;
            }
            self.slot += BLOCK;
        }
    }

    /// Forgets blocks all of whose runs have ended, but for the last that was read.
    #[inline(always)]
    fn advance(&mut self) {
        while self.open.len() > 1 && self.open[0].occupieds == 0 {
            self.open.pop_front();
            self.first += 1;
            self.check_offset();
        }
        self.quotient = match self.open.front() {
            Some(open) if open.occupieds != 0 => {
                BLOCK * self.first + u64::from(open.occupieds.trailing_zeros())
            }
            _ => NONE,
        };
    }

    /// The runs of all blocks before `first` have ended, so its offset is known.
    fn check_offset(&mut self) {
        let offset = self.next.saturating_sub(BLOCK * self.first);
        let stored = self.open.front().map(|open| open.offset);
        if stored != Some(offset.min(u64::from(SATURATED)) as u8) {
            let expected = "the offset that the blocks before give";
            self.expected(BLOCK * self.first, expected);
        }
    }
}

impl<S: Source> Iterator for Entries<S> {
    type Item = Entry;

    /// Inlined, because a pass over a table does little more with each value than read it.
    #[inline(always)]
    fn next(&mut self) -> Option<Entry> {
        loop {
            if self.slot.is_multiple_of(BLOCK) && !self.begin_block() {
                return None;
            }
            let slot = self.slot;
            self.slot += 1;
            let (value, is_last) = (self.value(slot), self.runends >> (slot % BLOCK) & 1 == 1);
            if self.quotient <= slot {
                let quotient = self.quotient;
                self.used += 1;
                self.next = slot + 1;
                if is_last {
                    if let Some(open) = self.open.front_mut() {
                        open.occupieds &= open.occupieds - 1;
                    }
                    self.advance();
                }
                return Some(Entry {
                    quotient,
                    value,
                    is_last,
                });
            }
            if is_last {
                self.expected(slot, "no run end without a run");
            } else if value != 0 {
                self.expected(slot, "a free slot that is zero");
            }
        }
    }
}

/// Where the blocks of a table go, one after the other.
pub(crate) trait Sink {
    /// The most blocks that are held back for it.
    const MOST_HELD: usize;

    /// Takes the next bytes. If it cannot, the sink knows why.
    fn write(&mut self, bytes: &[u8]) -> Result<(), NoRoom>;
    /// Takes so many zeros.
    fn write_zeros(&mut self, bytes: u64) -> Result<(), NoRoom>;
    /// Is told when more blocks would have to be held.
    fn refuse(&mut self) {}
}

/// A table that is filled.
pub(crate) struct Filled {
    table: Table,
    at: usize,
}

impl Sink for Filled {
    const MOST_HELD: usize = usize::MAX;

    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) -> Result<(), NoRoom> {
        let end = self.at + bytes.len();
        self.table.bytes_mut()[self.at..end].copy_from_slice(bytes);
        self.at = end;
        Ok(())
    }

    /// Memory that nobody writes is zero, and is not taken.
    #[inline(always)]
    fn write_zeros(&mut self, bytes: u64) -> Result<(), NoRoom> {
        self.at += bytes as usize;
        Ok(())
    }
}

/// A table that is written somewhere else.
pub(crate) struct Written<'a> {
    out: &'a mut dyn Write,
    error: Option<io::Error>,
}

impl Sink for Written<'_> {
    const MOST_HELD: usize = MOST_HELD;

    fn write(&mut self, bytes: &[u8]) -> Result<(), NoRoom> {
        self.out.write_all(bytes).map_err(|e| {
            self.error = Some(e);
            NoRoom
        })
    }

    fn write_zeros(&mut self, mut bytes: u64) -> Result<(), NoRoom> {
        let zeros = [0; LARGEST];
        while bytes > 0 {
            let some = bytes.min(LARGEST as u64);
            self.write(&zeros[..some as usize])?;
            bytes -= some;
        }
        Ok(())
    }

    fn refuse(&mut self) {
        let why = "the union has runs of more than 65536 slots; merge the filters in memory";
        self.error = Some(io::Error::other(why));
    }
}

/// A block that is not complete.
#[derive(Clone, Copy)]
struct Block {
    offset: u64,
    occupieds: u64,
    runends: u64,
    /// As many words as a value has bits.
    values: [u64; MOST_BITS as usize],
}

impl Block {
    /// An empty one.
    const NEW: Block = Block {
        offset: 0,
        occupieds: 0,
        runends: 0,
        values: [0; MOST_BITS as usize],
    };

    #[inline(always)]
    fn set(&mut self, slot: u64, bits: u32, value: u64) {
        let bit = (slot % BLOCK) as usize * bits as usize;
        let (word, shift) = (bit / 64, bit % 64);
        self.values[word] |= value << shift;
        if shift + bits as usize > 64 {
            self.values[word + 1] |= value >> (64 - shift);
        }
    }
}

/// Up to so many slots a table grows for values that crowd at its end, as they do under some
/// functions of a weak family: some megabytes at most. A larger one is to be used.
const SMALL: u64 = 1 << 22;

/// Writes a table of values in the order of their quotients, block by block and once.
pub(crate) struct Writer<S = Filled> {
    sink: S,
    shape: Shape,
    /// Blocks from `first` on that are not complete.
    open: VecDeque<Block>,
    first: u64,
    /// The first slot after the last value.
    next: u64,
    /// The quotient of the last value.
    last: Option<u64>,
    used: u64,
}

impl Writer<Filled> {
    /// Into a table that is empty.
    pub(crate) fn new(table: Table) -> Writer<Filled> {
        debug_assert_eq!(table.used(), 0);
        let shape = table.shape();
        Writer::of(Filled { table, at: 0 }, shape)
    }

    pub(crate) fn finish(mut self) -> Table {
        // Memory takes every block.
        let _ = self.write_rest();
        self.sink.table.set_used(self.used);
        self.sink.table
    }
}

impl<'a> Writer<Written<'a>> {
    /// To a stream, a table of this shape.
    pub(crate) fn to(out: &'a mut dyn Write, quotients: u64, bits: u32) -> Writer<Written<'a>> {
        let shape = Shape::new(quotients, bits);
        Writer::of(Written { out, error: None }, shape)
    }

    /// Ends the table, if all values were `written`. An error of the stream is the reason for any
    /// other.
    pub(super) fn finish(mut self, written: Result<(), Unwritten>) -> Result<(), Unwritten> {
        let no_room = |NoRoom| Unwritten::Full(FullKind::Capacity);
        let written = written.and_then(|()| self.write_rest().map_err(no_room));
        match self.sink.error {
            Some(e) => Err(e.into()),
            None => written,
        }
    }
}

impl<S: Sink> Writer<S> {
    fn of(sink: S, shape: Shape) -> Writer<S> {
        Writer {
            sink,
            shape,
            open: VecDeque::new(),
            first: 0,
            next: 0,
            last: None,
            used: 0,
        }
    }

    /// Quotients, and bits of a value.
    pub(super) fn split(&self) -> Split {
        (self.shape.quotients, self.shape.bits)
    }

    /// How many values were added.
    pub(crate) fn written(&self) -> u64 {
        self.used
    }

    /// [`push`](Writer::push) into a table that is to be no fuller than one that is inserted into.
    #[inline(always)]
    pub(super) fn add(&mut self, quotient: u64, value: u64) -> Result<(), Unwritten> {
        if self.used >= Table::most_used(self.shape.quotients) {
            return Err(Unwritten::Full(FullKind::Capacity));
        }
        let slots = self.shape.quotients;
        let is_crowded = slots > SMALL && self.used < slots / 4;
        self.push(quotient, value)
            .map_err(|NoRoom| match is_crowded {
                true => Unwritten::Crowded,
                false => Unwritten::Full(FullKind::Capacity),
            })
    }

    /// Adds a value to the run of this quotient, which is no less than the last: there is no room
    /// for what comes out of order, from a table that nobody has checked.
    #[inline(always)]
    pub(crate) fn push(&mut self, quotient: u64, value: u64) -> Result<(), NoRoom> {
        debug_assert!(value <= low_mask(self.shape.bits));
        let slot = self.next.max(quotient);
        let is_in_order = self.last <= Some(quotient) && quotient < self.shape.quotients;
        if !is_in_order || slot >= self.shape.slots() {
            return Err(NoRoom);
        }
        if self.last == Some(quotient) {
            let before = slot - 1;
            self.block(before)?.runends &= !(1 << (before % BLOCK));
        } else {
            self.write_until(quotient / BLOCK)?;
            self.block(quotient)?.occupieds |= 1 << (quotient % BLOCK);
            self.last = Some(quotient);
        }
        let bits = self.shape.bits;
        let block = self.block(slot)?;
        block.runends |= 1 << (slot % BLOCK);
        block.set(slot, bits, value);
        self.used += 1;
        self.next = slot + 1;
        Ok(())
    }

    /// The block of a slot that is not written yet.
    #[inline(always)]
    fn block(&mut self, slot: u64) -> Result<&mut Block, NoRoom> {
        let at = (slot / BLOCK - self.first) as usize;
        if at >= S::MOST_HELD {
            self.sink.refuse();
            return Err(NoRoom);
        }
        while self.open.len() <= at {
            self.open.try_reserve(1).map_err(|_| NoRoom)?;
            self.open.push_back(Block::NEW);
        }
        Ok(&mut self.open[at])
    }

    /// Writes the first block that is held: no more quotients of it come. What the values so far
    /// reach of the next is its offset.
    #[inline(always)]
    fn write_first(&mut self) -> Result<(), NoRoom> {
        let block = self.open.pop_front().unwrap_or(Block::NEW);
        let mut bytes = [0; LARGEST];
        bytes[0] = block.offset.min(u64::from(SATURATED)) as u8;
        bytes[1..9].copy_from_slice(&block.occupieds.to_le_bytes());
        bytes[9..HEAD].copy_from_slice(&block.runends.to_le_bytes());
        let (values, _) = bytes[HEAD..].as_chunks_mut::<8>();
        for (bytes, word) in values
            .iter_mut()
            .zip(&block.values[..self.shape.bits as usize])
        {
            *bytes = word.to_le_bytes();
        }
        self.sink.write(&bytes[..self.shape.stride])?;
        self.first += 1;
        let offset = self.next.saturating_sub(BLOCK * self.first);
        if offset > 0 {
            self.block(BLOCK * self.first)?.offset = offset;
        }
        Ok(())
    }

    /// Writes the blocks before this one; where none is held, they are empty.
    #[inline(always)]
    fn write_until(&mut self, end: u64) -> Result<(), NoRoom> {
        while self.first < end {
            if self.open.is_empty() {
                let blocks = end - self.first;
                self.sink.write_zeros(blocks * self.shape.stride as u64)?;
                self.first = end;
            } else {
                self.write_first()?;
            }
        }
        Ok(())
    }

    /// Writes every block that is left.
    fn write_rest(&mut self) -> Result<(), NoRoom> {
        self.write_until(self.shape.blocks)?;
        self.sink.write_zeros(SPARE)
    }
}
