//! Numbers in order, in a quotient table of any number of slots.
//!
//! Numbers below a bound u are divided by R: the quotient is the slot where a number wants to
//! stand, the rest is stored, with a tag of a few bits. R need not be a power of two, so the table
//! may have any number of slots, and as its values are in order, it is written anew with more or
//! fewer of them in one pass.
//!
//! ```text
//!  steps      0        1        2                slots  mᵢ₊₁ = mᵢ + ⌊mᵢ/8⌋ + 1
//!             ├────────┼─────────┼─── …          R      ⌊u / mᵢ⌋, and ⌈u/R⌉ slots in the table
//! ```
//!
//! Where there are to be more slots than numbers, because numbers stand in several, R is 1 and the
//! quotient is multiplied by ⌈mᵢ/u⌉. So there is always a next step.
//!
//! A list goes a step up when 97 % of its slots are taken, and down when less than 70 % are. What
//! is only inserted into stands at the first step that has room, so that its bytes do not depend
//! on the order of insertions. A step up is not taken where numbers crowd at the end of a
//! large table that is nearly empty: they are refused.

use super::Unwritten;
use super::sequence::{Entries, Writer};
use super::table::{NoRoom, Table, View, check_used, invalid};
use crate::bits::{fastrange, low_mask};
use crate::error::{DecodeError, FullKind, NoMemory};
use crate::format::Decoder;
use crate::simd::Bits;

/// Slots that no memory has: no list has a step with more.
const MOST_SLOTS: u64 = 1 << 61;

/// What a list is made as: numbers below `bound`, `slots` of them at first, tags of so many bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) bound: u64,
    pub(super) slots: u64,
    pub(super) tag: u32,
}

/// Division by R, exact for numbers below 2⁶³; or, where R is 1, multiplication.
#[derive(Clone, Copy, Debug)]
struct Radix {
    divisor: u64,
    inverse: u64,
    factor: u64,
}

impl Radix {
    fn new(divisor: u64, factor: u64) -> Radix {
        Radix {
            divisor,
            inverse: u64::MAX / divisor,
            factor,
        }
    }

    /// Quotient and rest. The inverse is too small by less than two, so the product is the quotient
    /// or one less.
    #[inline(always)]
    fn split(self, number: u64) -> (u64, u64) {
        let (quotient, _) = fastrange(number, self.inverse);
        let rest = number.wrapping_sub(quotient.wrapping_mul(self.divisor));
        let over = u64::from(rest >= self.divisor);
        (
            (quotient + over).wrapping_mul(self.factor),
            rest.wrapping_sub(over.wrapping_mul(self.divisor)),
        )
    }

    /// The number again; `None` if none is split so.
    #[inline(always)]
    fn join(self, quotient: u64, rest: u64) -> Option<u64> {
        let is_split = rest < self.divisor && quotient.is_multiple_of(self.factor);
        is_split.then(|| {
            (quotient / self.factor)
                .wrapping_mul(self.divisor)
                .wrapping_add(rest)
        })
    }
}

impl Made {
    /// R of a step, or the factor; `None` where it has more slots than any memory.
    fn radix(self, step: u32) -> Option<Radix> {
        let mut slots = self.slots;
        for _ in 0..step {
            slots += slots / 8 + 1;
            if slots > MOST_SLOTS {
                return None;
            }
        }
        let divisor = (self.bound / slots).max(1);
        let factor = if divisor == 1 {
            slots.div_ceil(self.bound)
        } else {
            1
        };
        Some(Radix::new(divisor, factor))
    }

    /// Slots of the table, and the bits of a value.
    fn shape(self, radix: Radix) -> (u64, u32) {
        let bits = u64::BITS - (radix.divisor - 1).leading_zeros() + self.tag;
        let slots = self.bound.div_ceil(radix.divisor) * radix.factor;
        (slots, bits.max(1))
    }

    /// The list of these numbers and tags, which come in order, at the first of the steps from one
    /// on that has room.
    pub(super) fn write<I: Iterator<Item = (u64, u64)>>(
        self,
        from: u32,
        used: u64,
        numbers: impl Fn() -> I,
    ) -> Result<List, Unwritten> {
        for step in from.. {
            let radix = self.radix(step).ok_or(NoMemory { bytes: u64::MAX })?;
            let (slots, bits) = self.shape(radix);
            if used > Table::most_used(slots) {
                continue;
            }
            let mut writer = Writer::new(Table::new(slots, bits)?);
            let added = numbers().try_for_each(|(number, tag)| {
                let (quotient, rest) = radix.split(number);
                writer.add(quotient, rest << self.tag | tag)
            });
            match added {
                Err(Unwritten::Full(FullKind::Capacity)) => {}
                added => {
                    return added.map(|()| List {
                        table: writer.finish(),
                        made: self,
                        step,
                        radix,
                    });
                }
            }
        }
        Err(Unwritten::Full(FullKind::Capacity))
    }

    /// Reads the list of a step, with so many slots in use.
    pub(super) fn decode(
        self,
        input: &mut Decoder<'_>,
        step: u64,
        used: u64,
    ) -> Result<List, DecodeError> {
        let known = u32::try_from(step).ok();
        let known = known.and_then(|step| Some((step, self.radix(step)?)));
        let Some((step, radix)) = known else {
            let expected = "a step with slots that an address can reach";
            return Err(DecodeError::invalid("step", step, expected));
        };
        let (slots, bits) = self.shape(radix);
        let most = Table::most_used(slots);
        if used > most {
            return Err(DecodeError::invalid(
                "used",
                used,
                format!("at most {most} slots"),
            ));
        }
        Ok(List {
            table: Table::decode_unchecked(input, slots, bits, used)?,
            made: self,
            step,
            radix,
        })
    }
}

/// Numbers with tags. Equal numbers stand side by side, in the order that their owner gives them.
#[derive(Clone, Debug)]
pub(super) struct List {
    pub(super) table: Table,
    made: Made,
    step: u32,
    radix: Radix,
}

/// The slots of one number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    quotient: u64,
    run: (u64, u64),
    /// The first, or where it would be.
    pub(super) at: u64,
    pub(super) len: u64,
    /// The number as a value with tag 0.
    value: u64,
}

/// A list for reading, passed by value.
#[derive(Clone, Copy)]
pub(super) struct Numbered<'a> {
    pub(super) table: View<'a>,
    bound: u64,
    radix: Radix,
}

impl Numbered<'_> {
    /// Quotient and value of the number that a hash is scaled to: the geometry of lists without
    /// tags.
    #[inline(always)]
    pub(super) fn place(self, hash: u64) -> (u64, u64) {
        self.radix.split(fastrange(hash, self.bound).0)
    }
}

impl List {
    pub(super) fn made(&self) -> Made {
        self.made
    }

    pub(super) fn step(&self) -> u32 {
        self.step
    }

    #[inline(always)]
    pub(super) fn view(&self) -> Numbered<'_> {
        Numbered {
            table: self.table.view(),
            bound: self.made.bound,
            radix: self.radix,
        }
    }

    /// Finds a number, or where it would stand.
    #[inline(always)]
    pub(super) fn group<B: Bits>(&self, bits: B, number: u64) -> Group {
        let view = self.table.view();
        let (quotient, rest) = self.radix.split(number);
        let run = view.run(bits, quotient);
        let (value, tags) = (rest << self.made.tag, 1 << self.made.tag);
        let mut at = run.0;
        while at < run.1 && view.get(at) < value {
            at += 1;
        }
        let mut end = at;
        // Not in order where the file was opened without a look at all of it.
        while end < run.1 && view.get(end).wrapping_sub(value) < tags {
            end += 1;
        }
        Group {
            quotient,
            run,
            at,
            len: end - at,
            value,
        }
    }

    #[inline(always)]
    pub(super) fn tag(&self, slot: u64) -> u64 {
        self.table.view().get(slot) & low_mask(self.made.tag)
    }

    pub(super) fn set_tag(&mut self, group: &Group, slot: u64, tag: u64) {
        self.table.set(slot, group.value | tag);
    }

    /// Inserts a slot into a group, at one of its slots or after them.
    #[inline(always)]
    pub(super) fn insert<B: Bits>(
        &mut self,
        bits: B,
        group: &Group,
        at: u64,
        tag: u64,
    ) -> Result<(), NoRoom> {
        if self.table.room() == 0 {
            return Err(NoRoom);
        }
        let value = group.value | tag;
        self.table
            .insert_at(bits, group.quotient, group.run, at, value)
    }

    /// Takes a slot out of a group.
    #[inline(always)]
    pub(super) fn remove<B: Bits>(&mut self, bits: B, group: &Group, at: u64) {
        self.table.remove_at(bits, group.quotient, group.run, at);
    }

    /// The same numbers, a step up.
    #[cold]
    pub(super) fn grown(&self) -> Result<List, Unwritten> {
        let used = self.table.used();
        self.made.write(self.step + 1, used, || self.numbers())
    }

    /// Goes down as many steps as its numbers allow.
    pub(super) fn shrink(&mut self) {
        while self.step > 0 && 10 * self.table.used() < 7 * self.table.quotients() {
            let used = self.table.used();
            let lower = self.made.write(self.step - 1, used, || self.numbers());
            // Without memory, or room at the end of a smaller table, this one serves as well.
            match lower {
                Ok(list) if list.step < self.step => *self = list,
                _ => return,
            }
        }
    }

    pub(super) fn numbers(&self) -> Numbers<'_> {
        Numbers {
            entries: self.table.entries(),
            list: self,
            last: None,
            fault: None,
        }
    }
}

/// Every number with its tag, in order, which is checked on the way.
#[derive(Clone)]
pub(super) struct Numbers<'a> {
    entries: Entries<&'a [u8]>,
    list: &'a List,
    last: Option<u64>,
    /// The first that is not in order.
    fault: Option<u64>,
}

impl Numbers<'_> {
    /// Reads what is left, and tells whether the list is in order.
    pub(super) fn finish(mut self) -> Result<(), DecodeError> {
        while self.next().is_some() {}
        let used = self.entries.finish().1;
        used.and_then(|used| check_used(used, self.list.table.used()))
            .map_err(invalid)?;
        match self.fault {
            None => Ok(()),
            Some(number) => {
                let expected = "numbers in order, below their bound";
                Err(DecodeError::invalid("number", number, expected))
            }
        }
    }
}

impl Iterator for Numbers<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let entry = self.entries.next()?;
        let made = self.list.made;
        let rest = entry.value >> made.tag;
        let number = self.list.radix.join(entry.quotient, rest);
        let is_good = number.is_some_and(|number| number < made.bound && self.last <= Some(number));
        let number = number.unwrap_or(u64::MAX);
        if !is_good {
            self.fault.get_or_insert(number);
        }
        self.last = Some(number);
        Some((number, entry.value & low_mask(made.tag)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    #[test]
    fn division_is_exact() {
        let divisors = (1..200).chain((0..56).flat_map(|i| [(1 << i) + 1, 1 << i]));
        for divisor in divisors.map(|divisor: u64| divisor.max(1)) {
            let radix = Radix::new(divisor, 1);
            let near = [
                0,
                1,
                divisor - 1,
                divisor,
                divisor + 1,
                (1 << 61) - 1,
                1 << 61,
            ];
            let random = (0..200).map(|i| mix64(i ^ divisor) >> (3 + i % 61));
            for number in near.into_iter().chain(random) {
                assert_eq!(radix.split(number), (number / divisor, number % divisor));
            }
        }
    }

    #[test]
    fn each_step_has_more_slots_and_tells_numbers_apart() {
        for bound in [1, 2, 255, 1 << 20, 1 << 54 | 1 << 55, 1 << 61] {
            let made = Made {
                bound,
                slots: bound.div_ceil(1 << 55),
                tag: 2,
            };
            let mut before = (0, 57);
            let mut steps = 0;
            while let Some(radix) = made.radix(steps) {
                let (slots, bits) = made.shape(radix);
                assert!(slots >= before.0 && bits <= before.1, "{bound}, {steps}");
                let numbers = [0, 1, bound / 3, bound / 2, bound - 1];
                for number in numbers.into_iter().filter(|&number| number < bound) {
                    let (quotient, rest) = radix.split(number);
                    assert!(quotient < slots && rest < 1 << (bits - 2).max(1));
                    assert_eq!(radix.join(quotient, rest), Some(number));
                }
                before = (slots, bits);
                steps += 1;
            }
            assert!(before.0 > 1 << 60 && before.1 <= 7, "{bound}: {before:?}");
        }
    }
}
