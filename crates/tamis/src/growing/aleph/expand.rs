//! How the table doubles, and how two of them become one: sequential passes over tables in order.

use super::voids::Voids;
use super::{Aleph, MARK, MOST_COPIES, length, most_used};
use crate::bits::low_mask;
use crate::error::FullKind;
use crate::quotient::merged;
use crate::quotient::sequence::{Entry, Writer};
use crate::quotient::table::Table;

impl Aleph {
    /// The table of these numbers, which come in order, and its marks: one in a run, however many
    /// are given.
    pub(super) fn table_of(
        (slots, width): (u64, u32),
        numbers: impl Iterator<Item = u64>,
    ) -> Result<(Table, u64), FullKind> {
        let table = Table::new(slots, width);
        let mut writer = Writer::new(table.map_err(|e| FullKind::Memory(e.bytes))?);
        let (mut last, mut copies, mut marks) = (None, 0, 0);
        for number in numbers {
            let value = number & low_mask(width);
            copies = if last == Some(number) { copies + 1 } else { 1 };
            last = Some(number);
            if value == MARK {
                if copies > 1 {
                    continue;
                }
                marks += 1;
            }
            if copies > MOST_COPIES {
                return Err(FullKind::Duplicates(MOST_COPIES));
            }
            if writer.written() >= most_used(slots) {
                return Err(FullKind::Capacity);
            }
            writer.push(number >> width, value)?;
        }
        Ok((writer.finish(), marks))
    }

    /// The same keys in twice the slots.
    ///
    /// The lowest bit of each fingerprint says which half its quotient goes to. Where there is
    /// none, the key marks both; where it was the only one, the key is void from now on.
    pub(super) fn expanded(&self) -> Result<Aleph, FullKind> {
        let generation = self.generation + 1;
        let shape = self.plan.shape(generation);
        let (slots, width) = shape.ok_or(FullKind::Capacity)?;
        let table = Table::new(slots, width).map_err(|e| FullKind::Memory(e.bytes))?;
        let (mut writer, mut marks, mut marked) = (Writer::new(table), 0, None);
        // Keys that become void now.
        let mut new = 0;
        for side in 0..2 {
            let quotients = side * self.slots();
            for entry in self.table.entries() {
                if entry.value != MARK && entry.value & 1 != side {
                    continue;
                }
                new += usize::from(length(entry.value) == 1);
                let quotient = quotients + entry.quotient;
                let value = (entry.value >> 1).max(MARK);
                if value == MARK {
                    if marked == Some(quotient) {
                        continue;
                    }
                    marked = Some(quotient);
                    marks += 1;
                }
                writer.push(quotient, value)?;
            }
        }
        let mut larger = Aleph {
            plan: self.plan,
            generation,
            table: writer.finish(),
            marks,
            voids: None,
        };
        let new = self.new_voids(new, &larger)?;
        larger.voids = Voids::of(slots, || {
            let old = self.void_numbers().map(|number| 2 * number);
            let new = new.iter().copied();
            merged([
                Box::new(old) as Box<dyn Iterator<Item = u64>>,
                Box::new(new),
            ])
        })?;
        Ok(larger)
    }

    /// The numbers that keys have in the filter after this one which become void there: those with
    /// one bit left, of which there are so many.
    fn new_voids(&self, count: usize, larger: &Aleph) -> Result<Vec<u64>, FullKind> {
        let mut numbers = Vec::new();
        if count == 0 {
            return Ok(numbers);
        }
        let bytes = count as u64 * size_of::<u64>() as u64;
        let reserved = numbers.try_reserve_exact(count);
        reserved.map_err(|_| FullKind::Memory(bytes))?;
        let is_last = |entry: &Entry| length(entry.value) == 1;
        let last = self.table.entries().filter(is_last);
        numbers.extend(last.map(|entry| {
            let quotient = (entry.value & 1) * self.slots() + entry.quotient;
            2 * larger.ordinal(quotient) + 1
        }));
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// This filter after so many expansions; `None` if it has had them.
    pub(super) fn grown_to(&self, generation: u32) -> Result<Option<Aleph>, FullKind> {
        let mut grown: Option<Aleph> = None;
        for _ in self.generation..generation {
            grown = Some(grown.as_ref().unwrap_or(self).expanded()?);
        }
        Ok(grown)
    }

    /// The keys of both, which have expanded equally often.
    pub(super) fn union(&self, other: &Aleph) -> Result<Aleph, FullKind> {
        let shape = (self.slots(), self.table.bits());
        // Only marks of both become one: what cannot fit is not begun.
        let most_shared = self.marks.min(other.marks);
        let least_used = self.table.used() + other.table.used() - most_shared;
        if least_used > most_used(self.slots()) {
            return Err(FullKind::Capacity);
        }
        let (table, marks) = Aleph::table_of(shape, merged([self.numbers(), other.numbers()]))?;
        let voids = || merged([self.void_numbers(), other.void_numbers()]);
        Ok(Aleph {
            plan: self.plan,
            generation: self.generation,
            table,
            marks,
            voids: Voids::of(self.slots(), voids)?,
        })
    }
}
