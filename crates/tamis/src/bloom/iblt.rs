//! The invertible Bloom lookup table: a set that can be subtracted from another, and then read out.
//!
//! # The idea
//!
//! ```text
//!   key x ──► one cell in each of k subtables
//!
//!   subtable 0          subtable 1          …     each cell:  count     keys inserted − keys deleted
//!  ┌────┬────┬────┐    ┌────┬────┬────┐                       keys      exclusive or of them
//!  │    │ x  │    │    │ x⊕y│    │    │                       checks    exclusive or of a 32-bit hash of each
//!  └────┴────┴────┘    └────┴────┴────┘
//!         ╰─ count 1, and the check is that of the key: *pure*. x is listed and taken out of its cells,
//!            which makes the cell of x ⊕ y pure, and so on: peeling
//! ```
//!
//! Insertion and deletion add to the counts and flip bits, so they cancel whatever their order, and tables subtract cell
//! by cell: what two sets have in common vanishes. Two machines that hold nearly the same million keys exchange a table
//! sized for their few *differences* and list them from what is left.
//!
//! Listing succeeds when the table has enough cells for what is in it at the end, whatever came and went meanwhile. It
//! is the peeling of a random hypergraph, which works at once or hardly at all: with k = 4 from 1.295 cells a key on, for
//! many keys. Few keys need more, since two that share all their cells are never told apart.
//! [`Iblt::new`] sizes the table so that 99.9 % of listings succeed; see [`math::iblt_size`].
//!
//! # What can go wrong
//!
//! - More differences than cells for them: [`list`](Iblt::list) says [`Incomplete`], with what it has found. No key in it
//!   is wrong: a cell is taken as pure only if the check of its 32 bits agrees and the key belongs in that cell.
//! - A key inserted twice into one table cancels itself in `keys`, and can never be listed. Insert each key once.
//!
//! # Cost
//!
//! 16 bytes a cell; 1.4 cells, 22.4 bytes, for each of a thousand differences. Insertion touches k cells: 5, or 4 where
//! more than a hundred differences are expected.
//!
//! # When to choose it
//!
//! To find the differences of two sets of 64-bit keys without sending either. It is no filter: it answers for single
//! keys only while it is nearly empty. Longer keys are named by a 64-bit hash, and exchanged by it afterwards.
//!
//! # Bibliography
//!
//! - Eppstein, Goodrich, Uyeda, Varghese, *What's the difference? Efficient set reconciliation without prior context*,
//!   2011: subtraction, and sizes for few differences.
//! - Goodrich, Mitzenmacher, *Invertible Bloom lookup tables*, 2011: the table and its listing.
//! - Molloy, *Cores in random hypergraphs and Boolean formulas*, 2005: when peeling ends.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;

use crate::bits::mix64;
use crate::bloom::positions;
use crate::error::{BuildError, BuildErrorKind, MergeError};
use crate::math;

/// An invertible Bloom lookup table of 64-bit keys: insert, delete, subtract, and list what is left.
///
/// Two sets are reconciled by the table of one:
///
/// ```
/// use tamis::Iblt;
///
/// let (ours, theirs) = (0..10_000u64, 7..10_005u64);
/// let mut table = Iblt::new(20)?;
/// ours.for_each(|key| table.insert(key));
/// let mut received = Iblt::new(20)?;
/// theirs.for_each(|key| received.insert(key));
///
/// table.subtract(&received)?;
/// let difference = table.list()?;
/// assert_eq!(difference.inserted, [0, 1, 2, 3, 4, 5, 6]);
/// assert_eq!(difference.deleted, [10_000, 10_001, 10_002, 10_003, 10_004]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iblt {
    /// The subtables, one after another, all of one size.
    cells: Vec<Cell>,
    k: u32,
    seed: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cell {
    keys: u64,
    checks: u32,
    count: i32,
}

/// What a table holds: keys that were inserted and not deleted, and keys that were deleted and not inserted, each in
/// ascending order. After a subtraction these are the keys of the one set only and of the other only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Keys that are only on this side.
    pub inserted: Vec<u64>,
    /// Keys that are only on the side that was subtracted.
    pub deleted: Vec<u64>,
}

/// What a table tells of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The key is in it neither way.
    Absent,
    /// The key was inserted.
    Inserted,
    /// The key was deleted without having been inserted, or is in the set that was subtracted.
    Deleted,
    /// All its cells hold several keys.
    Unknown,
}

/// A table with too few cells for what is in it; some keys could not be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete {
    /// The keys that could. None is wrong; some are missing.
    pub listed: Difference,
    /// Cells that still hold keys.
    pub cells_left: u64,
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = self.listed.inserted.len() + self.listed.deleted.len();
        write!(
            f,
            "only {listed} keys could be listed, {} cells hold more than can be told apart; make tables for more differences",
            self.cells_left
        )
    }
}

impl Error for Incomplete {}

/// Subtables: below 3 nothing peels, above 16 everything costs more.
const TABLES: std::ops::RangeInclusive<u32> = 3..=16;
const MOST_CELLS: u64 = 1 << 32;

impl Iblt {
    /// An empty table from which up to so many keys are listed with a probability of 99.9 %.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when it would be too large, or there is no memory for it.
    pub fn new(differences: u64) -> Result<Iblt, BuildError> {
        let (cells, k) = math::iblt_size(differences);
        Iblt::with_shape(cells, k, 0)
    }

    /// An empty table of at least so many cells in `k` subtables (3 to 16), whose cells and checks depend on a seed. Where
    /// strangers choose the keys, choose the seed afterwards, so that they cannot aim.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the shape is not possible, or there is no memory for it.
    pub fn with_shape(cells: u64, k: u32, seed: u64) -> Result<Iblt, BuildError> {
        if !TABLES.contains(&k) {
            return Err(BuildError::parameter("k", k, "a whole number from 3 to 16"));
        }
        if cells > MOST_CELLS {
            let (unit, needed, most) = ("cells", cells as f64, MOST_CELLS);
            return Err(BuildErrorKind::TooLarge { unit, needed, most }.into());
        }
        let cells = cells.max(1).next_multiple_of(u64::from(k));
        let no_memory = || BuildErrorKind::Memory {
            bytes: cells.saturating_mul(size_of::<Cell>() as u64),
        };
        let len = usize::try_from(cells).map_err(|_| no_memory())?;
        let mut table = Vec::new();
        table.try_reserve_exact(len).map_err(|_| no_memory())?;
        table.resize(len, Cell::default());
        Ok(Iblt {
            cells: table,
            k,
            seed,
        })
    }

    /// How many cells there are, in all subtables.
    pub fn cells(&self) -> u64 {
        self.cells.len() as u64
    }

    /// Whether all cells are empty: nothing is in the table, or what is in it cancels.
    pub fn is_empty(&self) -> bool {
        self.cells.iter().all(|&cell| cell == Cell::default())
    }

    /// Every byte held on the heap.
    pub fn size_in_bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>()
    }

    /// The cells of a key, one in each subtable: this table's geometry.
    fn places(&self, key: u64) -> impl Iterator<Item = usize> + use<> {
        let size = self.cells() / u64::from(self.k);
        let hash = mix64(key.wrapping_add(mix64(!self.seed)));
        let starts = (0..).step_by(size as usize);
        positions(hash, size, self.k)
            .zip(starts)
            .map(|(at, start): (u64, u64)| (start + at) as usize)
    }

    /// A hash of a key that its places say nothing of.
    fn check(&self, key: u64) -> u32 {
        (mix64(mix64(key ^ self.seed).wrapping_add(0x6A09_E667_F3BC_C909)) >> 32) as u32
    }

    fn add(&mut self, key: u64, count: i32) {
        let check = self.check(key);
        for place in self.places(key) {
            let cell = &mut self.cells[place];
            cell.keys ^= key;
            cell.checks ^= check;
            cell.count = cell.count.wrapping_add(count);
        }
    }

    /// The key of a cell that holds one, and whether it was inserted.
    fn pure(&self, place: usize) -> Option<(u64, bool)> {
        let cell = self.cells[place];
        let alone = matches!(cell.count, 1 | -1) && cell.checks == self.check(cell.keys);
        let at_home = alone && self.places(cell.keys).any(|own| own == place);
        at_home.then_some((cell.keys, cell.count == 1))
    }

    /// Puts a key in. It must not be in already.
    pub fn insert(&mut self, key: u64) {
        self.add(key, 1);
    }

    /// Takes a key out, or notes that it is missing here.
    pub fn delete(&mut self, key: u64) {
        self.add(key, -1);
    }

    /// What is known of one key without listing.
    pub fn get(&self, key: u64) -> Lookup {
        for place in self.places(key) {
            if self.cells[place] == Cell::default() {
                return Lookup::Absent;
            }
            match self.pure(place) {
                Some((held, true)) if held == key => return Lookup::Inserted,
                Some((held, false)) if held == key => return Lookup::Deleted,
                Some(_) => return Lookup::Absent,
                None => {}
            }
        }
        Lookup::Unknown
    }

    /// Deletes what was inserted into the other, and inserts what was deleted from it.
    ///
    /// # Errors
    ///
    /// [`MergeError`] when the tables differ in cells, subtables or seed. Then nothing has changed.
    pub fn subtract(&mut self, other: &Iblt) -> Result<(), MergeError> {
        self.combine(other, i32::wrapping_sub)
    }

    /// Inserts what was inserted into the other, and deletes what was deleted from it.
    ///
    /// # Errors
    ///
    /// As [`subtract`](Self::subtract).
    pub fn merge(&mut self, other: &Iblt) -> Result<(), MergeError> {
        self.combine(other, i32::wrapping_add)
    }

    fn combine(&mut self, other: &Iblt, counts: fn(i32, i32) -> i32) -> Result<(), MergeError> {
        MergeError::unless_equal("cells", self.cells(), other.cells())?;
        MergeError::unless_equal("k", u64::from(self.k), u64::from(other.k))?;
        MergeError::unless_equal("seed", self.seed, other.seed)?;
        for (ours, theirs) in self.cells.iter_mut().zip(&other.cells) {
            ours.keys ^= theirs.keys;
            ours.checks ^= theirs.checks;
            ours.count = counts(ours.count, theirs.count);
        }
        Ok(())
    }

    /// Lists all keys that are in the table.
    ///
    /// # Errors
    ///
    /// [`Incomplete`] when some cannot be told apart, with those that can.
    pub fn list(&self) -> Result<Difference, Incomplete> {
        let mut rest = self.clone();
        let mut listed = Difference::default();
        let mut waiting: VecDeque<usize> = (0..rest.cells.len()).collect();
        // A cell that only looks pure, one in 2³² or fewer, could put in and take out keys for ever.
        let mut left = 2 * rest.cells.len();
        while let Some(place) = waiting.pop_front() {
            let Some((key, inserted)) = rest.pure(place) else {
                continue;
            };
            if left == 0 {
                break;
            }
            left -= 1;
            let (list, count) = if inserted {
                (&mut listed.inserted, -1)
            } else {
                (&mut listed.deleted, 1)
            };
            list.push(key);
            rest.add(key, count);
            waiting.extend(rest.places(key));
        }
        listed.inserted.sort_unstable();
        listed.deleted.sort_unstable();
        let cells_left = rest.cells.iter().filter(|&&cell| cell != Cell::default());
        match cells_left.count() as u64 {
            0 => Ok(listed),
            cells_left => Err(Incomplete { listed, cells_left }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Key number `i` of a trial; no two trials share one.
    fn key(trial: u64, i: u64) -> u64 {
        mix64(trial << 24 | i)
    }

    /// A table of `d` keys, every other one deleted, and how its listing ends.
    fn listed(trial: u64, d: u64, cells: u64, k: u32) -> Result<Difference, Incomplete> {
        let mut table = Iblt::with_shape(cells, k, 0).unwrap();
        for i in 0..d {
            table.add(key(trial, i), if i % 2 == 0 { 1 } else { -1 });
        }
        let listed = table.list();
        let found = match &listed {
            Ok(all) => all,
            Err(incomplete) => &incomplete.listed,
        };
        // Whatever is said is true, and what is complete is all.
        let mut truth = Difference::default();
        for i in 0..d {
            let list = if i % 2 == 0 {
                &mut truth.inserted
            } else {
                &mut truth.deleted
            };
            list.push(key(trial, i));
        }
        truth.inserted.sort_unstable();
        truth.deleted.sort_unstable();
        let within = |part: &[u64], whole: &[u64]| {
            part.is_sorted_by(|a, b| a < b)
                && part.iter().all(|key| whole.binary_search(key).is_ok())
        };
        assert!(
            within(&found.inserted, &truth.inserted),
            "a key that was not inserted"
        );
        assert!(
            within(&found.deleted, &truth.deleted),
            "a key that was not deleted"
        );
        assert!(listed.is_err() || *found == truth, "a key is missing");
        listed
    }

    #[test]
    fn tables_of_the_stated_size_list_99_9_per_cent() {
        for (d, trials) in [
            (1, 20_000u64),
            (5, 20_000),
            (10, 20_000),
            (30, 10_000),
            (60, 10_000),
            (100, 10_000),
            (200, 6000),
            (300, 6000),
            (1000, 10_000),
        ] {
            let (cells, k) = math::iblt_size(d);
            let failed = (0..trials)
                .filter(|&t| listed(t, d, cells, k).is_err())
                .count() as u64;
            let (_, most) = math::binomial_interval(trials, 0.001, 1e-6);
            assert!(
                failed <= most,
                "{d} keys, {cells} cells: {failed} of {trials} fail"
            );
            // spec: 1.4 cells for each of 1000 keys. So few failures have a probability of 0.1 % where 0.1 % fail.
            if d == 1000 {
                let (least, _) = math::binomial_interval(trials, 0.001, 0.001);
                assert!(failed < least && cells == 1400, "{failed} of {trials} fail");
            }
        }
    }

    #[test]
    fn a_table_with_too_few_cells_tells_no_wrong_key() {
        let mut incomplete = 0;
        for trial in 0..100_000 {
            let d = 20 + trial % 100;
            incomplete += u64::from(listed(1 << 20 | trial, d, 40, 3 + trial as u32 % 3).is_err());
        }
        assert!(incomplete > 50_000, "{incomplete}");
    }

    #[test]
    fn two_large_sets_are_reconciled_by_a_small_table() {
        let (mut ours, mut theirs) = (Iblt::new(100).unwrap(), Iblt::new(100).unwrap());
        (0..100_000).for_each(|i| ours.insert(i));
        (40..100_050).for_each(|i| theirs.insert(i));
        assert!(ours.list().is_err(), "far more keys than cells");
        let sum = {
            let mut sum = ours.clone();
            sum.merge(&theirs).unwrap();
            sum.subtract(&theirs).unwrap();
            sum
        };
        assert!(sum == ours, "adding and subtracting cancel");
        ours.subtract(&theirs).unwrap();
        let difference = ours.list().unwrap();
        assert!(difference.inserted.iter().copied().eq(0..40));
        assert!(difference.deleted.iter().copied().eq(100_000..100_050));
        difference.inserted.iter().for_each(|&key| ours.delete(key));
        difference.deleted.iter().for_each(|&key| ours.insert(key));
        assert!(ours.is_empty());
    }

    #[test]
    fn single_keys_are_known_while_the_table_is_nearly_empty() {
        let mut table = Iblt::new(1000).unwrap();
        assert_eq!(table.get(0), Lookup::Absent);
        (0..100).for_each(|i| table.insert(i));
        (100..200).for_each(|i| table.delete(i));
        let asked =
            |range: std::ops::Range<u64>, answer| range.filter(|&i| table.get(i) == answer).count();
        let (inserted, deleted) = (
            asked(0..100, Lookup::Inserted),
            asked(100..200, Lookup::Deleted),
        );
        assert_eq!(inserted + asked(0..100, Lookup::Unknown), 100);
        assert_eq!(deleted + asked(100..200, Lookup::Unknown), 100);
        assert!(inserted > 90 && deleted > 90, "{inserted} {deleted}");
        let absent = asked(1000..2000, Lookup::Absent);
        assert_eq!(absent + asked(1000..2000, Lookup::Unknown), 1000);
        assert!(absent > 990, "{absent}");
    }

    #[test]
    fn a_key_that_is_in_twice_is_left_and_said_to_be() {
        let mut table = Iblt::new(10).unwrap();
        table.insert(7);
        table.insert(8);
        table.insert(8);
        let incomplete = table.list().unwrap_err();
        assert_eq!(incomplete.listed.inserted, [7]);
        assert_eq!(incomplete.cells_left, 5);
        assert!(
            incomplete.to_string().contains("only 1 keys"),
            "{incomplete}"
        );
    }

    #[test]
    fn tables_of_other_shapes_are_refused_and_impossible_ones_not_made() {
        let mut table = Iblt::with_shape(100, 4, 1).unwrap();
        table.insert(1);
        let before = table.clone();
        for (cells, k, seed, name) in [(104, 4, 1, "cells"), (100, 5, 1, "k"), (100, 4, 2, "seed")]
        {
            let other = Iblt::with_shape(cells, k, seed).unwrap();
            let error = table.subtract(&other).unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
            assert!(table == before);
        }
        for (cells, k) in [(100, 0), (100, 2), (100, 17), (u64::MAX, 4), (1 << 33, 4)] {
            assert!(Iblt::with_shape(cells, k, 0).is_err());
        }
        assert!(Iblt::new(u64::MAX).is_err());
        assert_eq!(Iblt::new(0).unwrap().list(), Ok(Difference::default()));
    }
}
