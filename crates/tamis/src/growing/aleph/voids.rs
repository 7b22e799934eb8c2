//! The keys whose fingerprints are used up, each with the slots that it marks.
//!
//! A hash names a slot of the first table, and its next bits say to which side it goes at each
//! doubling. Read as one number, the slot first and the bits after it, they are its *ordinal*,
//! below the number of slots. A key that is void has no bits left for the last d doublings: it
//! stands for 2^d ordinals in a row. It is kept as one number, of which the lowest one tells d:
//!
//! ```text
//!  ordinals      0   1   2   3   4   5   6   7
//!  numbers       1   3   5   7   9  11  13  15     one ordinal each, d = 0
//!                  2       6      10      14       two, d = 1
//!                      4              12           four, d = 2
//! ```
//!
//! The number is twice the middle of its ordinals. When the table doubles, so does the number.
//! Numbers lie in a small table of their own, exact: the high part is the quotient there, and the
//! low part the value.

use crate::bits::low_mask;
use crate::error::{DecodeError, FullKind, NoMemory};
use crate::format::{Decoder, Encoder};
use crate::quotient::sequence::Writer;
use crate::quotient::table::{MOST_BITS, Table};
use crate::simd::Portable;

/// Numbers below twice the slots of the filter's table, copies too.
#[derive(Clone, Debug)]
pub(super) struct Voids {
    table: Table,
}

/// The number of the key that stands for this ordinal and 2^d − 1 others.
fn number(ordinal: u64, d: u32) -> u64 {
    (ordinal >> d << 1 | 1) << d
}

/// How many quotients there are for numbers below twice the slots, if each keeps so many bits.
fn quotients(slots: u64, bits: u32) -> u64 {
    (2 * slots).div_ceil(1 << bits)
}

impl Voids {
    /// The ordinals that a number stands for.
    pub(super) fn span(number: u64) -> std::ops::Range<u64> {
        let half = 1 << number.trailing_zeros();
        (number - half) / 2..(number + half) / 2
    }

    /// These numbers, which come in order, for a filter of so many slots; `None` if there are none.
    pub(super) fn of<I: Iterator<Item = u64>>(
        slots: u64,
        numbers: impl Fn() -> I,
    ) -> Result<Option<Voids>, FullKind> {
        let count = numbers().count() as u64;
        if count == 0 {
            return Ok(None);
        }
        // Numbers that are spread evenly fit at once; others may want more than the tail.
        let mut result = Err(FullKind::Capacity);
        for spare in 0..3 {
            let wanted = Table::quotients_for(count << spare);
            let bits = (2 * slots / wanted).max(1).ilog2().clamp(1, MOST_BITS);
            let table = Table::new(quotients(slots, bits), bits)
                .map_err(|NoMemory { bytes }| FullKind::Memory(bytes))?;
            let mut writer = Writer::new(table);
            let mut push = |number| writer.push(number >> bits, number & low_mask(bits));
            if numbers().try_for_each(&mut push).is_ok() {
                let table = writer.finish();
                result = Ok(Some(Voids { table }));
                break;
            }
        }
        result
    }

    #[cfg(test)]
    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    pub(super) fn count(&self) -> u64 {
        self.table.used()
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        self.table.size_in_bytes()
    }

    /// Every number in order, copies too.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let bits = self.table.bits();
        let entries = self.table.entries();
        entries.map(move |entry| entry.quotient << bits | entry.value)
    }

    /// How many copies of a number there are.
    fn copies(&self, number: u64) -> u64 {
        let (view, bits) = (self.table.view(), self.table.bits());
        let (quotient, value) = (number >> bits, number & low_mask(bits));
        if !view.is_occupied(quotient) {
            return 0;
        }
        let run = view.run(Portable, quotient);
        let Some(first) = view.find(run, value) else {
            return 0;
        };
        let copies = (first..run.1).take_while(|&slot| view.get(slot) == value);
        copies.count() as u64
    }

    /// The numbers that stand for an ordinal, those that stand for few before those that stand for
    /// many, after so many doublings.
    fn chain(&self, ordinal: u64, doublings: u32) -> impl Iterator<Item = u64> + '_ {
        let all = (0..=doublings).map(move |d| number(ordinal, d));
        all.filter(|&number| self.copies(number) > 0)
    }

    /// The number that stands for an ordinal and for the fewest others: that of the key with the
    /// most bits.
    pub(super) fn longest(&self, ordinal: u64, doublings: u32) -> Option<u64> {
        self.chain(ordinal, doublings).next()
    }

    /// How many keys stand for an ordinal.
    pub(super) fn covering(&self, ordinal: u64, doublings: u32) -> u64 {
        let chain = self.chain(ordinal, doublings);
        chain.map(|number| self.copies(number)).sum()
    }

    /// Takes out a copy of a number that is in.
    pub(super) fn remove(&mut self, number: u64) {
        let (view, bits) = (self.table.view(), self.table.bits());
        let quotient = number >> bits;
        let run = view.run(Portable, quotient);
        if let Some(at) = view.find(run, number & low_mask(bits)) {
            self.table.remove_at(Portable, quotient, run, at);
        }
    }

    pub(super) fn bits(&self) -> u32 {
        self.table.bits()
    }

    pub(super) fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        self.table.encode(out);
    }

    /// Reads so many numbers for a filter of so many slots.
    pub(super) fn decode(
        input: &mut Decoder<'_>,
        slots: u64,
        bits: u32,
        count: u64,
    ) -> Result<Voids, DecodeError> {
        let table = Table::decode(input, quotients(slots, bits), bits, count)?;
        Ok(Voids { table })
    }

    /// Every invariant, and how many slots are marked; the error is a number, and what was
    /// expected of it. `is_length` says whether a number that stands for 2^d ordinals can be.
    pub(super) fn check(
        &self,
        slots: u64,
        is_length: impl Fn(u32) -> bool,
    ) -> Result<u64, (u64, &'static str)> {
        let mut last = 0;
        // Those that no other contains: a number that contains earlier ones takes their place.
        let mut marked: Vec<std::ops::Range<u64>> = Vec::new();
        for number in self.numbers() {
            if number < last || number == 0 || number >= 2 * slots {
                return Err((number, "numbers in order, below twice the slots"));
            }
            if !is_length(number.trailing_zeros()) {
                return Err((number, "a number of a generation's length"));
            }
            last = number;
            let span = Voids::span(number);
            while marked.last().is_some_and(|held| held.start >= span.start) {
                marked.pop();
            }
            if marked.last().is_none_or(|held| held.end <= span.start) {
                marked.push(span);
            }
        }
        Ok(marked.iter().map(|span| span.end - span.start).sum())
    }
}
