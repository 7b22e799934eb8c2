//! Elimination four slots at a time, for the keys of a bucket.
//!
//! A row that finds its slot taken is added to the row there, moves on to its next slot, and so
//! on. Where nearly all slots are taken this happens many times, and each step waits for the
//! result of the one before. But what becomes of a row in four adjacent slots is known from its
//! bits there: each of the 16 patterns has one sum of the rows that those slots hold. So a *group*
//! of four slots has a table of the sums, and a row passes it with one addition: the method of the
//! four Russians.
//!
//! ```text
//!                 pattern   tail: the 64 slots after the group
//!   a row        │ 0 1 1 0 │ 1 0 0 1 1 0 … 0 1 │
//!   + the sum    │ 0 1 1 0 │ 0 0 1 1 0 1 … 1 0 │    of rows that the group's slots hold
//!   remains      │ 0 0 0 0 │ 1 0 1 0 1 1 … 1 1 │    and begins with the pattern for the next group
//! ```
//!
//! An empty slot leaves a pattern's bit as it is. Where a bit is left, the row's place is in this
//! group: [`Band::insert`] finds it, and the sums are updated with this row. So the band is the
//! same as without groups.
//!
//! # Bibliography
//!
//! - Arlazarov, Dinic, Kronrod, Faradžev, *On economical construction of the transitive closure
//!   of an oriented graph*, 1970: tables of all sums of a few rows.

use crate::ribbon::bumped::{BUCKET, WIDTH};
use crate::ribbon::{Band, Number, Placed};

/// Slots of a group.
const GROUP: usize = 4;
const PATTERNS: usize = 1 << GROUP;
const PATTERN: u64 = PATTERNS as u64 - 1;
/// Groups that the rows of a bucket's keys can touch: they end less than a row's width behind its
/// last start.
const COUNT: usize = (BUCKET as usize + WIDTH as usize) / GROUP;

/// What becomes of each pattern in a group's slots. Aligned to a cache line, as are the vectors
/// that update it.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Group<N> {
    /// For each pattern, the sum of rows behind the group.
    tails: [u64; PATTERNS],
    results: [N; PATTERNS],
    /// For each slot, which patterns leave a bit there: 16 bits per slot, all 0 where it holds a
    /// row.
    left: u64,
}

/// An equation, seen from a group.
#[derive(Clone, Copy)]
struct Seen<N> {
    /// The bits of its row in the group's slots.
    pattern: u64,
    /// The 64 bits after them.
    tail: u64,
    result: N,
}

impl<N: Number> Seen<N> {
    /// An equation whose row starts at a slot.
    #[inline(always)]
    fn new(slot: usize, row: u64, result: N) -> Seen<N> {
        let offset = slot % GROUP;
        Seen {
            pattern: row << offset & PATTERN,
            tail: row >> (GROUP - offset),
            result,
        }
    }
}

impl<N: Number> Group<N> {
    /// A group whose slots hold no rows. Each leaves what it sees: bit p of slot s is bit s of p.
    const EMPTY: Group<N> = Group {
        tails: [0; PATTERNS],
        results: [N::ZERO; PATTERNS],
        left: 0xFF00_F0F0_CCCC_AAAA,
    };

    /// The slots where a pattern leaves a bit: bit 16s for slot s.
    #[inline(always)]
    fn left_of(&self, pattern: u64) -> u64 {
        self.left >> pattern & 0x0001_0001_0001_0001
    }

    /// What becomes of an equation's tail and result.
    #[inline(always)]
    fn after(&self, seen: Seen<N>) -> (u64, N) {
        let pattern = (seen.pattern & PATTERN) as usize;
        let tail = seen.tail ^ self.tails[pattern];
        (tail, seen.result ^ self.results[pattern])
    }

    /// Takes in an equation that leaves a bit: the first slot where it does holds it from now on.
    #[inline(always)]
    fn add(&mut self, seen: Seen<N>) {
        let (left, (tail, result)) = (self.left_of(seen.pattern), self.after(seen));
        // Patterns that leave a bit in that slot leave none there once this row is added.
        let changed = self.left >> left.trailing_zeros() & 0xFFFF;
        self.left ^= changed * left;
        let is_changed = |pattern: usize| changed >> pattern & 1 != 0;
        for (pattern, sum) in self.tails.iter_mut().enumerate() {
            *sum ^= if is_changed(pattern) { tail } else { 0 };
        }
        for (pattern, sum) in self.results.iter_mut().enumerate() {
            let added = if is_changed(pattern) { result } else { N::ZERO };
            *sum = *sum ^ added;
        }
    }
}

/// The groups of a bucket, and of the slots behind it that its rows reach.
pub(super) struct Groups<N> {
    /// The bucket's first slot.
    first: usize,
    groups: Box<[Group<N>; COUNT]>,
}

impl<N: Number> Groups<N> {
    pub(super) fn new() -> Groups<N> {
        Groups {
            first: 0,
            groups: Box::new([Group::EMPTY; COUNT]),
        }
    }

    /// Moves to the bucket that begins at a slot. The band holds only rows there that start before
    /// it, and reach less than a row's width.
    #[inline(always)]
    pub(super) fn begin(&mut self, band: &Band<u64, N>, first: usize) {
        self.first = first;
        self.groups.fill(Group::EMPTY);
        let held = band.rows[first..].iter().zip(&band.results[first..]);
        for (slot, (&row, &result)) in held.take(WIDTH as usize).enumerate() {
            if row != 0 {
                self.groups[slot / GROUP].add(Seen::new(slot, row, result));
            }
        }
    }

    /// Adds an equation whose row starts in the bucket, as [`Band::insert`] would. Nothing else
    /// may have changed the band since the bucket was begun.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        band: &mut Band<u64, N>,
        start: u64,
        row: u64,
        result: N,
    ) -> Placed {
        let slot = start as usize - self.first;
        let mut seen = Seen::new(slot, row, result);
        let mut at = slot / GROUP;
        loop {
            let group = &mut self.groups[at];
            if group.left_of(seen.pattern) != 0 {
                group.add(seen);
                let zeros = seen.pattern.trailing_zeros();
                let slot = self.first + at * GROUP + zeros as usize;
                // A row has at most 64 bits from its first on, so those of earlier groups end
                // before the tail does.
                let row = seen.pattern >> zeros | seen.tail << (GROUP as u32 - zeros);
                return band.insert(slot as u64, row, seen.result);
            }
            let (tail, result) = group.after(seen);
            if tail == 0 {
                return if result == N::ZERO {
                    Placed::Implied
                } else {
                    Placed::Conflict
                };
            }
            seen = Seen {
                pattern: tail & PATTERN,
                tail: tail >> GROUP,
                result,
            };
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    /// Three buckets of equations, whatever their order: by groups, and one slot after the other.
    #[test]
    fn groups_leave_the_band_that_single_slots_do() {
        let slots = 4 * BUCKET;
        let (mut implied, mut conflicts) = (0, 0);
        for case in 0..60 {
            let number = |i: u64| mix64(case << 32 | i);
            let mut by_groups = Band::<u64, u32>::new(slots).unwrap();
            let mut by_slots = Band::<u64, u32>::new(slots).unwrap();
            let mut groups = Groups::new();
            for bucket in 0..3 {
                groups.begin(&by_groups, (bucket * BUCKET) as usize);
                // Few at first, more than there is room for in the end; some cases have starts
                // close to each other.
                let starts = [BUCKET, 40, 3, 1][case as usize % 4];
                for i in 0..case * 3 {
                    let place = number(bucket << 16 | i);
                    // A result of one bit: half of the rows that are sums of others agree with
                    // them.
                    let (start, result) =
                        (bucket * BUCKET + place % starts, (place >> 40) as u32 & 1);
                    // The rows of all widths, and full ones.
                    let row = match place >> 50 & 3 {
                        0 => u64::MAX,
                        1 => number(!place) >> (place >> 52 & 63),
                        _ => number(!place),
                    } | 1;
                    let placed = groups.insert(&mut by_groups, start, row, result);
                    assert_eq!(
                        placed,
                        by_slots.insert(start, row, result),
                        "{case} {bucket}"
                    );
                    implied += u32::from(placed == Placed::Implied);
                    conflicts += u32::from(placed == Placed::Conflict);
                }
            }
            assert!(by_groups.rows == by_slots.rows, "{case}");
            assert!(by_groups.results == by_slots.results, "{case}");
        }
        assert!(implied > 500 && conflicts > 500, "{implied} {conflicts}");
    }
}
