//! The invertible Bloom lookup table: a set that can be subtracted from another, and then read
//! out.
//!
//! The essay is at [`Iblt`].

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::bits::{mix64, positions};
use crate::error::{BuildError, BuildErrorKind, DecodeError, DecodeErrorKind, Keys, MergeError};
use crate::math;

/// An invertible Bloom lookup table of 64-bit keys, with values or without: insert, delete,
/// subtract, look up, and list what is left.
///
/// Two sets are reconciled by the table of one, sent to the other. No key may be in a set twice.
///
/// ```
/// use tamis::Iblt;
///
/// let (ours, theirs) = (0..10_000u64, 7..10_005u64);
/// let mut table = Iblt::new(20)?;
/// ours.for_each(|key| table.insert(key));
///
/// let message = {
///     let mut table = Iblt::new(20)?;
///     theirs.for_each(|key| table.insert(key));
///     table.to_bytes()
/// };
/// table.subtract(&Iblt::from_bytes(&message)?)?;
/// let difference = table.list()?;
/// assert_eq!(difference.inserted, [0, 1, 2, 3, 4, 5, 6]);
/// assert_eq!(difference.deleted, [10_000, 10_001, 10_002, 10_003, 10_004]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A table [with values](Iblt::with_values) holds pairs:
///
/// ```
/// use tamis::{Iblt, Lookup};
///
/// let mut ports = Iblt::new(100)?.with_values()?;
/// ports.insert_pair(17, 443)?;
/// ports.insert_pair(23, 8080)?;
/// assert_eq!(ports.get(17), Lookup::Inserted(443));
/// assert_eq!(ports.list_pairs()?.inserted, [(17, 443), (23, 8080)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///   key x ──► one cell in each of k subtables
///
///   subtable 0          subtable 1          …    each cell:
///  ┌────┬────┬────┐    ┌────┬────┬────┐            count   keys inserted − keys deleted
///  │    │ x  │    │    │ x⊕y│    │    │            keys    exclusive or of them
///  └────┴────┴────┘    └────┴────┴────┘            values  exclusive or of theirs, if any
///                                                  checks  exclusive or of a 32-bit hash of each
///         ╰─ count 1, and the check is that of the key: *pure*. x is listed and taken out of
///            its cells, which makes the cell of x ⊕ y pure, and so on: peeling
/// ```
///
/// Insertion and deletion add to the counts and flip bits, so they cancel whatever their order,
/// and tables subtract cell by cell: what two sets have in common vanishes. Two machines that
/// hold nearly the same million keys exchange a table sized for their few *differences* and list
/// them from what is left.
///
/// Listing succeeds when the table has enough cells for what is in it at the end, whatever came
/// and went meanwhile. It is the peeling of a random hypergraph, which works at once or hardly at
/// all: with k = 4 from 1.295 cells a key on, for many keys. Few keys need more, since two that
/// share all their cells are never told apart. [`Iblt::new`] sizes the table so that 99.9 % of
/// listings succeed; see [`math::iblt_size`].
///
/// # What can go wrong
///
/// - More differences than cells for them: [`list`](Iblt::list) says [`Incomplete`], with what it
///   has found. A cell is taken as pure only if the check of its 32 bits agrees and the key
///   belongs in that cell, so a cell of several keys passes for pure with a probability below
///   2⁻³². But for that no key in the list is wrong, *if each key is in at most once on a side*.
/// - A key inserted twice cancels itself in `keys` and leaves 2 in the count. It can never be
///   listed, and it makes others wrong: where x came twice and y was deleted, their common cell
///   says that y was inserted. Insert each key once.
/// - A key that has one value here and another there cancels in `keys` and not in `checks`. It is
///   not listed, and its cells are left: the listing is incomplete. Where values change, let the
///   key be a hash of both, and list the old pair and the new one.
///
/// # Cost
///
/// 16 bytes a cell, 24 with values; 1.4 cells, 22.4 bytes, for each of a thousand differences.
/// Insertion touches k cells: 5, or 4 where more than a hundred differences are expected.
///
/// # When to choose it
///
/// To find the differences of two sets of 64-bit keys without sending either. It is no filter: it
/// answers for single keys only while it is nearly empty. Longer keys are named by a 64-bit hash,
/// and exchanged by it afterwards.
///
/// # Bibliography
///
/// - Eppstein, Goodrich, Uyeda, Varghese, *What's the difference? Efficient set reconciliation
///   without prior context*, 2011: subtraction, and sizes for few differences.
/// - Goodrich, Mitzenmacher, *Invertible Bloom lookup tables*, 2011: the table, its values and
///   its listing. Theirs checks keys alone, and lists a wrong value beside a key whose own changed.
/// - Molloy, *Cores in random hypergraphs and Boolean formulas*, 2005: when peeling ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iblt {
    /// The subtables, one after another, all of one size.
    cells: Vec<Cell>,
    /// One for each cell, or none.
    values: Vec<u64>,
    k: u32,
    seed: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cell {
    keys: u64,
    checks: u32,
    count: i32,
}

/// What a table holds: keys that were inserted and not deleted, and keys that were deleted and
/// not inserted, each in ascending order. After a subtraction these are the keys of the one set
/// only and of the other only. [`Iblt::list_pairs`] gives pairs of key and value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference<T = u64> {
    /// Those that are only on this side.
    pub inserted: Vec<T>,
    /// Those that are only on the side that was subtracted.
    pub deleted: Vec<T>,
}

impl<T> Default for Difference<T> {
    fn default() -> Difference<T> {
        Difference {
            inserted: Vec::new(),
            deleted: Vec::new(),
        }
    }
}

impl Difference<Pair> {
    fn keys(self) -> Difference {
        let keys = |pairs: Vec<Pair>| pairs.into_iter().map(|(key, _)| key).collect();
        Difference {
            inserted: keys(self.inserted),
            deleted: keys(self.deleted),
        }
    }
}

/// A key and its value.
type Pair = (u64, u64);

/// What a table tells of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The key is in it neither way.
    Absent,
    /// The key was inserted, with this value; 0 in a table without values.
    Inserted(u64),
    /// The key, with this value, was deleted without having been inserted, or is in the set that
    /// was subtracted.
    Deleted(u64),
    /// All its cells hold several keys.
    Unknown,
}

/// A table with too few cells for what is in it; some keys could not be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete<T = u64> {
    /// The keys that could. Some are missing; none is wrong, if each key came at most once on a
    /// side and no check of 32 bits agreed by chance.
    pub listed: Difference<T>,
    /// Cells that still hold keys.
    pub cells_left: u64,
}

impl<T> fmt::Display for Incomplete<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = self.listed.inserted.len() + self.listed.deleted.len();
        write!(
            f,
            "only {} could be listed, {} of the cells hold more than can be told apart; make tables for more differences",
            Keys(listed as u64),
            self.cells_left
        )
    }
}

impl<T: fmt::Debug> Error for Incomplete<T> {}

/// A value for a table that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoValues {
    value: u64,
}

impl fmt::Display for NoValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the table has no values, so none can be {}; make it by `Iblt::with_values`",
            self.value
        )
    }
}

impl Error for NoValues {}

/// Subtables: below 3 nothing peels, above 16 everything costs more.
const TABLES: std::ops::RangeInclusive<u32> = 3..=16;
const MOST_CELLS: u64 = 1 << 32;
/// What a table's bytes start with.
const SIGNATURE: [u8; 8] = *b"tamisibl";
/// What those of a table with values start with.
const SIGNATURE_OF_PAIRS: [u8; 8] = *b"tamisibm";
/// Bytes before the cells: the signature, the cells, k and the seed.
const HEAD: usize = 32;
const CELL: usize = 16;
const SUM_SEED: u64 = u64::from_le_bytes(SIGNATURE);

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

    /// An empty table of at least so many cells in `k` subtables (3 to 16), whose cells and
    /// checks depend on a seed. Where strangers choose the keys, choose the seed afterwards, so
    /// that they cannot aim.
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
            values: Vec::new(),
            k,
            seed,
        })
    }

    /// The same table with room for a value of 64 bits beside each key. Keys that are in it
    /// already have the value 0.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when there is no memory for the values.
    pub fn with_values(mut self) -> Result<Iblt, BuildError> {
        let (len, bytes) = (self.cells.len(), 8 * self.cells());
        let room = self.values.try_reserve_exact(len - self.values.len());
        room.map_err(|_| BuildErrorKind::Memory { bytes })?;
        self.values.resize(len, 0);
        Ok(self)
    }

    /// Whether there is a value beside each key.
    pub fn has_values(&self) -> bool {
        !self.values.is_empty()
    }

    /// How many cells there are, in all subtables.
    pub fn cells(&self) -> u64 {
        self.cells.len() as u64
    }

    /// Whether all cells are empty: nothing is in the table, or what is in it cancels.
    pub fn is_empty(&self) -> bool {
        (0..self.cells.len()).all(|place| self.is_empty_at(place))
    }

    fn is_empty_at(&self, place: usize) -> bool {
        self.cells[place] == Cell::default() && self.value(place) == 0
    }

    /// What the values of a cell combine to; 0 in a table without values.
    fn value(&self, place: usize) -> u64 {
        self.values.get(place).copied().unwrap_or(0)
    }

    /// Every byte held on the heap.
    pub fn size_in_bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>() + self.values.capacity() * size_of::<u64>()
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

    /// A hash of a key and its value that the key's places say nothing of.
    fn check(&self, key: u64, value: u64) -> u32 {
        let salted = mix64(key ^ self.seed).wrapping_add(0x6A09_E667_F3BC_C909);
        // The value 0 adds nothing: a set has the checks of its keys.
        (mix64(salted.wrapping_add(mix64(value))) >> 32) as u32
    }

    fn add(&mut self, key: u64, value: u64, count: i32) {
        let check = self.check(key, value);
        for place in self.places(key) {
            let cell = &mut self.cells[place];
            cell.keys ^= key;
            cell.checks ^= check;
            cell.count = cell.count.wrapping_add(count);
            if let Some(values) = self.values.get_mut(place) {
                *values ^= value;
            }
        }
    }

    /// The key and the value of a cell that holds one, and whether it was inserted.
    fn pure(&self, place: usize) -> Option<(u64, u64, bool)> {
        let (cell, value) = (self.cells[place], self.value(place));
        let alone = matches!(cell.count, 1 | -1) && cell.checks == self.check(cell.keys, value);
        let at_home = alone && self.places(cell.keys).any(|own| own == place);
        at_home.then_some((cell.keys, value, cell.count == 1))
    }

    /// Puts a key in, with the value 0 if there are values. It must not be in already.
    pub fn insert(&mut self, key: u64) {
        self.add(key, 0, 1);
    }

    /// Takes out a key that has no value, or the value 0, or notes that it is missing here.
    pub fn delete(&mut self, key: u64) {
        self.add(key, 0, -1);
    }

    /// Puts a key in with its value. It must not be in already.
    ///
    /// # Errors
    ///
    /// [`NoValues`] when the table has none and this is not 0. Then nothing has changed.
    pub fn insert_pair(&mut self, key: u64, value: u64) -> Result<(), NoValues> {
        self.add_pair(key, value, 1)
    }

    /// Takes a key out, with the value that it was inserted with, or notes that it is missing
    /// here.
    ///
    /// # Errors
    ///
    /// As [`insert_pair`](Self::insert_pair).
    pub fn delete_pair(&mut self, key: u64, value: u64) -> Result<(), NoValues> {
        self.add_pair(key, value, -1)
    }

    fn add_pair(&mut self, key: u64, value: u64, count: i32) -> Result<(), NoValues> {
        if value != 0 && !self.has_values() {
            return Err(NoValues { value });
        }
        self.add(key, value, count);
        Ok(())
    }

    /// What is known of one key without listing.
    pub fn get(&self, key: u64) -> Lookup {
        for place in self.places(key) {
            if self.is_empty_at(place) {
                return Lookup::Absent;
            }
            match self.pure(place) {
                Some((held, value, true)) if held == key => return Lookup::Inserted(value),
                Some((held, value, false)) if held == key => return Lookup::Deleted(value),
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
    /// [`MergeError`] when the tables differ in cells, subtables or seed, or one has values and
    /// the other none. Then nothing has changed.
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
        let values = |table: &Iblt| u64::from(table.has_values());
        MergeError::unless_equal("values", values(self), values(other))?;
        for (ours, theirs) in self.values.iter_mut().zip(&other.values) {
            *ours ^= theirs;
        }
        for (ours, theirs) in self.cells.iter_mut().zip(&other.cells) {
            ours.keys ^= theirs.keys;
            ours.checks ^= theirs.checks;
            ours.count = counts(ours.count, theirs.count);
        }
        Ok(())
    }

    /// The table as bytes, to be sent.
    ///
    /// The signature `tamisibl`, or `tamisibm` where there are values; then as 64-bit numbers,
    /// the lowest byte first, the cells, `k` and the seed; for each cell the keys (8 bytes), the
    /// checks and the count (4 each); then the values of all cells, if any (8 each); last the
    /// XXH3-64 of all that under the seed `tamisibl`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let size = HEAD + CELL * self.cells.len() + 8 * self.values.len() + 8;
        let mut bytes = Vec::with_capacity(size);
        bytes.extend(match self.has_values() {
            true => SIGNATURE_OF_PAIRS,
            false => SIGNATURE,
        });
        for field in [self.cells(), u64::from(self.k), self.seed] {
            bytes.extend(field.to_le_bytes());
        }
        for cell in &self.cells {
            bytes.extend(cell.keys.to_le_bytes());
            bytes.extend(cell.checks.to_le_bytes());
            bytes.extend(cell.count.to_le_bytes());
        }
        for values in &self.values {
            bytes.extend(values.to_le_bytes());
        }
        bytes.extend(xxh3_64_with_seed(&bytes, SUM_SEED).to_le_bytes());
        bytes
    }

    /// The table of these bytes, whoever sent them.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when they are not what [`to_bytes`](Self::to_bytes) makes, or there is no
    /// memory for the table. The checksum finds damage, not malice: a sender can make a table of
    /// whatever keys it likes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Iblt, DecodeError> {
        let got = bytes.len() as u64;
        let has_values = bytes.starts_with(&SIGNATURE_OF_PAIRS);
        if !has_values && !bytes.starts_with(&SIGNATURE) {
            return Err(DecodeErrorKind::NotAFilter.into());
        }
        let whole = bytes.split_last_chunk::<8>();
        let Some((body, sum)) = whole.filter(|(body, _)| body.len() >= HEAD) else {
            let expected = (HEAD + 8) as u64;
            return Err(DecodeErrorKind::Length { expected, got }.into());
        };
        let (head, rest) = body.split_at(HEAD);
        let words = head.as_chunks::<8>().0;
        let [cells, k, seed] = [1, 2, 3].map(|i| u64::from_le_bytes(words[i]));
        let tables = u32::try_from(k).ok().filter(|k| TABLES.contains(k));
        let tables = tables.ok_or_else(|| DecodeError::invalid("k", k, "3 to 16"))?;
        if cells == 0 || cells > MOST_CELLS.next_multiple_of(k) || !cells.is_multiple_of(k) {
            let expected = format!("a multiple of {k} from {k} to 2^32 or just above");
            return Err(DecodeError::invalid("cells", cells, expected));
        }
        let a_cell = CELL as u64 + 8 * u64::from(has_values);
        let expected = cells * a_cell + (HEAD + 8) as u64;
        if expected != got {
            return Err(DecodeErrorKind::Length { expected, got }.into());
        }
        if xxh3_64_with_seed(body, SUM_SEED) != u64::from_le_bytes(*sum) {
            let (part, offset) = ("table", 0);
            return Err(DecodeErrorKind::Checksum { part, offset }.into());
        }
        // The bytes are there, so the memory asked for is no more than theirs.
        let no_memory = |_| DecodeErrorKind::Memory {
            bytes: cells * a_cell,
        };
        let (of_cells, of_values) = rest.split_at(cells as usize * CELL);
        let mut table = Vec::new();
        table.try_reserve_exact(cells as usize).map_err(no_memory)?;
        table.extend(of_cells.as_chunks::<CELL>().0.iter().map(|cell| {
            let bits = u128::from_le_bytes(*cell);
            Cell {
                keys: bits as u64,
                checks: (bits >> 64) as u32,
                count: (bits >> 96) as i32,
            }
        }));
        let mut values = Vec::new();
        values
            .try_reserve_exact(of_values.len() / 8)
            .map_err(no_memory)?;
        let of_values = of_values.as_chunks().0;
        values.extend(of_values.iter().map(|&values| u64::from_le_bytes(values)));
        Ok(Iblt {
            cells: table,
            values,
            k: tables,
            seed,
        })
    }

    /// Lists all keys that are in the table.
    ///
    /// # Errors
    ///
    /// [`Incomplete`] when some cannot be told apart, with those that can.
    pub fn list(&self) -> Result<Difference, Incomplete> {
        match self.list_pairs() {
            Ok(pairs) => Ok(pairs.keys()),
            Err(Incomplete { listed, cells_left }) => {
                let listed = listed.keys();
                Err(Incomplete { listed, cells_left })
            }
        }
    }

    /// Lists all keys that are in the table, each with its value.
    ///
    /// # Errors
    ///
    /// As [`list`](Self::list).
    pub fn list_pairs(&self) -> Result<Difference<Pair>, Incomplete<Pair>> {
        let mut rest = self.clone();
        let mut listed = Difference::default();
        let mut waiting: VecDeque<usize> = (0..rest.cells.len()).collect();
        // A cell that only looks pure, one in 2³² or fewer, could put in and take out keys for
        // ever.
        let mut left = 2 * rest.cells.len();
        while let Some(place) = waiting.pop_front() {
            let Some((key, value, inserted)) = rest.pure(place) else {
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
            list.push((key, value));
            rest.add(key, value, count);
            waiting.extend(rest.places(key));
        }
        listed.inserted.sort_unstable();
        listed.deleted.sort_unstable();
        let cells_left = (0..rest.cells.len()).filter(|&place| !rest.is_empty_at(place));
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
            table.add(key(trial, i), 0, if i % 2 == 0 { 1 } else { -1 });
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
            // spec: 1.4 cells for each of 1000 keys. So few failures have a probability of 0.1 %
            // where 0.1 % fail.
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
            asked(0..100, Lookup::Inserted(0)),
            asked(100..200, Lookup::Deleted(0)),
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
            incomplete.to_string().contains("only 1 key could"),
            "{incomplete}"
        );
    }

    #[test]
    fn a_key_that_is_in_twice_makes_others_wrong_as_the_essay_says() {
        let wrong = |seed: &u64| {
            let mut table = Iblt::with_shape(20, 4, *seed).unwrap();
            table.insert(1);
            table.insert(1);
            table.delete(2);
            matches!(table.list(), Err(e) if e.listed.inserted == [2])
        };
        assert!((0..200).any(|seed| wrong(&seed)));
    }

    /// A table of pairs against a map: what it tells is true, and all of it where it is complete.
    #[test]
    fn pairs_come_back_with_their_values() {
        for trial in 0..500 {
            let mut table = Iblt::new(40).unwrap().with_values().unwrap();
            let mut truth = std::collections::BTreeMap::new();
            for step in 0..200 {
                let draw = mix64(trial << 16 | step);
                let (key, value) = (draw % 60, mix64(draw) >> (draw % 64));
                if let Some(value) = truth.remove(&key) {
                    table.delete_pair(key, value).unwrap();
                } else {
                    truth.insert(key, value);
                    table.insert_pair(key, value).unwrap();
                }
                for key in 0..60 {
                    match table.get(key) {
                        Lookup::Unknown => {}
                        Lookup::Inserted(value) => assert_eq!(truth.get(&key), Some(&value)),
                        Lookup::Absent => assert_eq!(truth.get(&key), None),
                        Lookup::Deleted(_) => panic!("{key} was inserted first"),
                    }
                }
            }
            match table.list_pairs() {
                Ok(all) => assert!(all.inserted.into_iter().eq(truth) && all.deleted.is_empty()),
                Err(some) => assert!(
                    some.listed
                        .inserted
                        .iter()
                        .all(|(key, value)| truth.get(key) == Some(value))
                ),
            }
        }
    }

    #[test]
    fn maps_are_reconciled_and_a_changed_value_is_said_to_be_left() {
        let map = |keys: std::ops::Range<u64>| {
            let mut table = Iblt::new(20).unwrap().with_values().unwrap();
            keys.for_each(|key| table.insert_pair(key, mix64(key)).unwrap());
            table
        };
        let (mut ours, theirs) = (map(0..10_000), map(5..10_003));
        let unchanged = ours.clone();
        ours.subtract(&Iblt::from_bytes(&theirs.to_bytes()).unwrap())
            .unwrap();
        let difference = ours.list_pairs().unwrap();
        let pairs = |keys: std::ops::Range<u64>| keys.map(|key| (key, mix64(key)));
        assert!(difference.inserted.into_iter().eq(pairs(0..5)));
        assert!(difference.deleted.into_iter().eq(pairs(10_000..10_003)));
        // One key with another value: whatever is listed is true, and it is not all.
        for key in 100..200 {
            let mut changed = unchanged.clone();
            changed.delete_pair(key, mix64(key)).unwrap();
            changed.insert_pair(key, 1).unwrap();
            changed.subtract(&theirs).unwrap();
            let incomplete = changed.list_pairs().unwrap_err();
            let mut listed = incomplete.listed.inserted.iter();
            assert!(listed.all(|&(key, value)| key < 5 && value == mix64(key)));
            assert!(incomplete.cells_left > 0);
        }
    }

    #[test]
    fn a_table_without_values_takes_none() {
        let mut table = Iblt::new(10).unwrap();
        let before = table.clone();
        let error = table.insert_pair(1, 2).unwrap_err();
        assert!(error.to_string().contains("with_values"), "{error}");
        assert!(table == before && !table.has_values());
        table.insert_pair(1, 0).unwrap();
        let mut with = table.clone().with_values().unwrap();
        assert_eq!(with.get(1), Lookup::Inserted(0));
        let error = with.subtract(&table).unwrap_err();
        assert!(error.to_string().contains("values"), "{error}");
        assert_eq!(with.size_in_bytes(), 24 * with.cells() as usize);
    }

    #[test]
    fn bytes_make_the_table_again_and_damaged_ones_none() {
        let shapes = [(1, 3, 0), (40, 4, 7), (100, 16, u64::MAX)].into_iter();
        for ((cells, k, seed), has_values) in shapes.flat_map(|s| [(s, false), (s, true)]) {
            let mut table = Iblt::with_shape(cells, k, seed).unwrap();
            (0..50).for_each(|i| table.insert(mix64(i)));
            (50..90).for_each(|i| table.delete(mix64(i)));
            if has_values {
                table = table.with_values().unwrap();
                (90..99).for_each(|i| table.insert_pair(mix64(i), i).unwrap());
            }
            let bytes = table.to_bytes();
            let a_cell = if has_values { 24 } else { 16 };
            assert_eq!(bytes.len() as u64, 40 + a_cell * table.cells());
            let again = Iblt::from_bytes(&bytes).unwrap();
            assert!(again == table && again.to_bytes() == bytes);
            for end in 0..bytes.len() {
                assert!(Iblt::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
            }
            for bit in 0..8 * bytes.len() {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(Iblt::from_bytes(&damaged).is_err(), "bit {bit}");
            }
            assert!(Iblt::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
        }
        // Forged: the checksum agrees, the shape is none.
        let bytes = Iblt::with_shape(12, 4, 0).unwrap().to_bytes();
        for (at, value, what) in [
            (8, 0, "cells is 0"),
            (8, 13, "cells is 13"),
            (8, u64::MAX, "cells is"),
            (8, u64::MAX - 3, "cells is"),
            (8, 1 << 32, "cut short"),
            (8, 8, "bytes follow"),
            (16, 0, "k is 0"),
            (16, 2, "k is 2"),
            (16, 4 | 1 << 32, "k is"),
            (16, 17, "k is 17"),
        ] {
            let mut forged = bytes.clone();
            forged[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
            let end = forged.len() - 8;
            let sum = xxh3_64_with_seed(&forged[..end], SUM_SEED);
            forged[end..].copy_from_slice(&sum.to_le_bytes());
            let error = Iblt::from_bytes(&forged).unwrap_err().to_string();
            assert!(error.contains(what), "{what}: {error}");
        }
        // Any cells are a table, and listing ends.
        let mut wild = bytes;
        for (i, byte) in wild[HEAD..].iter_mut().enumerate() {
            *byte = mix64(i as u64) as u8;
        }
        let end = wild.len() - 8;
        let sum = xxh3_64_with_seed(&wild[..end], SUM_SEED);
        wild[end..].copy_from_slice(&sum.to_le_bytes());
        assert!(Iblt::from_bytes(&wild).unwrap().list().is_err());
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
