//! The expandable filter: one table that doubles, and fingerprints that get longer.
//!
//! The essay is at [`Aleph`].

mod expand;
mod voids;

use crate::bits::{fastrange, low_mask};
use crate::config::Config;
use crate::error::{
    BuildError, BuildErrorKind, DecodeError, Full, FullKind, MergeError, MergeErrorKind, NoMemory,
};
use crate::filter::{Count, Filter, Insert, Kind, Merge, Remove};
use crate::format::{Decoder, Encoder};
use crate::lookup::{self, Leveled, NEAR, Ring};
use crate::math;
use crate::quotient::table::{MOST_BITS, NoRoom, Shape, Sought, Table, View};
use crate::quotient::{self, OnTable};
use crate::simd::{Bits, Portable};
use voids::Voids;

/// An expandable filter: it grows with its keys in one table, keeps the rate, and lets keys leave.
/// Insert, remove, count, merge.
///
/// ```
/// use tamis::{Aleph, Config, Filter, Keyed};
///
/// let mut seen: Keyed<Aleph> = Keyed::new(&Config::new(100).fpr(0.01))?;
/// for i in 0..10_000u64 {
///     seen.insert(&i)?; // a hundred times the capacity
/// }
/// assert_eq!(seen.filter().expansions(), 7);
/// assert!(seen.filter().fpr() <= 0.01);
/// assert!((0..10_000u64).all(|i| seen.contains(&i)));
/// assert!((0..10_000u64).all(|i| seen.remove(&i)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// A quotient filter ([`Quotient`](crate::Quotient)) keeps of a hash a quotient, which is the
/// number of a slot, and a fingerprint in that slot. When it is full, it doubles: every fingerprint
/// gives one bit to its quotient. No key is needed for that, but the fingerprints get shorter. So
/// the keys that come later keep more bits, to make up for it:
///
/// ```text
///  table of     the end of its hash        its slot           holds a one, then the fingerprint
///  N slots      … 0 1 1 0 0 1 0│0 1 1 1│   s                  0 0 1 0 1 1 1
///  2N           … 0 1 1 0 0 1 0│0 1 1│1    s + N              0 0 0 1 0 1 1
///  4N           … 0 1 1 0 0 1 0│0 1│1 1    s + 3N             0 0 0 0 1 0 1
///  8N           … 0 1 1 0 0 1 0│0│1 1 1    s + 7N             0 0 0 0 0 1 0
///  16N          … 0 1 1 0 0 1 0││0 1 1 1   s + 7N             0 0 0 0 0 0 1    void: a mark
///  32N          … 0 1 1 0 0 1 ?││0 1 1 1   s + 7N, s + 23N    0 0 0 0 0 0 1    two marks
///
///  another key, that comes to the table of 2N slots, has the longest fingerprint there:
///  2N           … 1 0│1 1 0 1 1 0│0        t                  1 1 1 0 1 1 0
/// ```
///
/// # The rate
///
/// An entry of L bits that is made in a table of N slots answers yes to one hash of N·2ᴸ, and to as
/// many when bits move from the fingerprint to the quotient: its share of the errors never changes.
/// Keys of generation X, which come after X doublings, are at most half as many as the slots there
/// are, so together they have ½·2^−L(X), and the first ones 2^−L(0). For the sum of all to stay
/// within a rate, the lengths must be those of a code for the numbers 0, 1, 2, …: the longer the
/// number, the longer its code. Here
///
/// > L(0) = F, L(X) = F + m + (binary digits of X), m being 0 or 1,
///
/// sums to 2⁻ᶠ·(1 + 1.5/2ᵐ) for 63 doublings, more than a hash of 64 bits allows, and F is the
/// least that keeps the rate (`math::aleph_first_bits`). So [`fpr`](Filter::fpr) is at most what
/// was asked for, not in the mean but always, at any number of keys and whatever is removed on the
/// way.
///
/// Pagh, Segev and Wieder prove that a filter which does not know the number of its keys needs
/// log₂ 1/ε + Ω(log log n) bits for each: X is log₂ of the growth, so its binary digits are that
/// term, with the factor 1. InfiniFilter's lengths, F + 2·log₂(X + 1), have the factor 2. Bits of
/// the newest fingerprints at 1 %:
///
/// | doublings | 0 | 1 | 2 | 4 | 8 | 14 | 20 |
/// |---|---|---|---|---|---|---|---|
/// | here | 8 | 9 | 10 | 11 | 12 | 12 | 13 |
/// | InfiniFilter | 7 | 9 | 11 | 12 | 14 | 15 | 16 |
///
/// # Lookup
///
/// One place in one table, however often it has doubled: the run of the quotient, of which as many
/// entries are compared at once as a word holds. An entry matches where the hash has its bits, as
/// many as there are.
///
/// # Void keys
///
/// A key of generation X has no bits left after L(X) further doublings. Its hash names only a part
/// of a quotient then, so it *marks* every slot that its key may have, and twice as many after the
/// next doubling. One mark in a slot is enough for several such keys; which keys there are, a small
/// table beside the large one knows exactly (`growing/aleph/voids.rs`). The share of slots with a
/// mark is at most the rate.
///
/// # Remove
///
/// Of the entries that match, the longest is taken out. It may be another key's; but then the
/// shorter one, which stays, matches that key as well. Where only a mark matches, the void key with
/// the most bits goes, and with it those of its marks that no other void key has. That takes as
/// many steps as there are marks, each of which an expansion has put there: a removal is O(1) in
/// the mean over all operations, not in the worst case. There are no tombstones.
///
/// The table does not shrink, but when the last key leaves, the filter is as new.
///
/// # Insert and grow
///
/// An insertion is one of a quotient filter. When 19 of 20 slots are in use, the table doubles, in
/// sequential passes over the old one. Until it is done both are held, three times the memory of
/// the old one and more; where the system refuses that, the insertion is refused with
/// [`FullKind::Memory`], and nothing has changed. An insertion that makes the table double takes as
/// long as a pass over it; spread over those before it, that is a constant.
///
/// The first table has room for the configuration's capacity. Who can guess the number of keys
/// gives the guess: up to there fingerprints are shortest, and nothing is moved. Beyond it every
/// doubling costs what is said above, be the guess off by two or by a million. (The Aleph filter
/// can also start small and have long fingerprints first, shorter ones near the guess. That saves
/// memory while there are few keys, which is when it is least, and costs all doublings up to
/// there.)
///
/// # Merging
///
/// Filters of one configuration merge, whatever their sizes: the smaller one doubles first, then
/// both are read in order. The shares of both add up, so the rate of the union is at most the sum
/// of their rates, which may be above the one asked for.
///
/// # Cost
///
/// (L + 3.125)/load bits per key, L being the bits of the newest fingerprints: a slot has a one to
/// end the fingerprint, and 2.125 bits of the table. The load is 0.475 just after a doubling and
/// 0.95 just before the next.
///
/// Bits per key at 1 % when full, by formula, and of [`Scalable`](crate::Scalable)
/// (`math::scalable_bits_per_key`):
///
/// | doublings | 0 | 9 | 19 |
/// |---|---|---|---|
/// | this | 11.71 | 15.92 | 16.97 |
/// | `scalable` | 13.53 | 16.24 | 19.62 |
///
/// `tamis-bench paper unknown-size` measures both, and other crates' filters, from 2¹⁰ to 2²⁴
/// keys. Insertions are the price: a list of Bloom filters sets a few bits where a run is moved
/// here.
///
/// # When to choose it
///
/// When the number of keys is not known within a factor of two, or keys leave as well. Where it is
/// known, [`Quotient`](crate::Quotient) has the same table without the longer fingerprints, and
/// [`Cuckoo`](crate::Cuckoo) and [`SplitBlock512`](crate::SplitBlock512) are faster. A key that
/// comes again takes a slot again, up to 64 times: where there are many repeats and none is to be
/// removed, ask `contains` first.
///
/// # Bibliography
///
/// - Pagh, Segev, Wieder, *How to approximate a set without knowing its size in advance*, 2013:
///   what not knowing costs, and that lengthening fingerprints achieve it.
/// - Dayan, Bercea, Reviriego, Pagh, *InfiniFilter: expanding filters to infinity and beyond*,
///   2023: fingerprints of different lengths in one quotient filter; deleting the longest.
/// - Dayan, Bercea, Pagh, *Aleph filter: to infinity in constant time*, 2024: void entries are
///   duplicated, so that one lookup suffices. Deleting them at once is this library's own.
/// - Liu, Yin, Yu, *Succinct filters for sets of unknown sizes*, 2020: log log n with the factor 1.
/// - Elias, *Universal codeword sets and representations of the integers*, 1975: lengths for
///   numbers that have no limit.
#[derive(Clone, Debug)]
pub struct Aleph {
    plan: Plan,
    /// How often the table has doubled.
    generation: u32,
    table: Table,
    /// Slots that hold the mark of a void key.
    marks: u64,
    voids: Option<Voids>,
}

/// What was asked for; two filters merge when it is equal.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Plan {
    /// Slots of the first table.
    first: u64,
    /// Bits of a fingerprint, as [`math::aleph_bits`] has them.
    bits: (u32, u32),
}

/// Slots of the smallest table: with its tail it fills two blocks.
const LEAST_SLOTS: u64 = 32;
/// Copies of one key that are kept. More would fill the slots of others: there is
/// [`QuotientCounting`](crate::QuotientCounting) for that.
const MOST_COPIES: u64 = 64;

impl Plan {
    /// Bits of a slot: the longest fingerprint, and a one after it.
    fn width(self, generation: u32) -> u32 {
        math::aleph_bits(self.bits, generation) + 1
    }

    /// Slots and their width after so many expansions. `None` where a hash has no more bits.
    fn shape(self, generation: u32) -> Option<(u64, u32)> {
        let slots = self.first.checked_mul(1u64.checked_shl(generation)?)?;
        let width = self.width(generation);
        let fits = width <= MOST_BITS && slots <= Table::most_quotients(width);
        fits.then_some((slots, width))
    }

    /// How many bits of their hash the keys of each generation up to this one keep, beyond those
    /// that chose a slot of the first table: a set of numbers below 64.
    fn lengths(self, generation: u32) -> u64 {
        let lengths = (0..=generation).map(|x| x + math::aleph_bits(self.bits, x));
        lengths.fold(0, |set, length| set | 1 << length)
    }
}

/// Slots that are used before the table doubles. Beyond, insertions move too many others.
#[inline(always)]
fn most_used(slots: u64) -> u64 {
    slots - slots / 20
}

/// The mark of a void key in a slot: a fingerprint of no bits.
const MARK: u64 = 1;

/// The lowest bits of a number, the last first.
fn reversed(number: u64, bits: u32) -> u64 {
    number
        .reverse_bits()
        .checked_shr(u64::BITS - bits)
        .unwrap_or(0)
}

/// Bits of the fingerprint in a slot, which is a one and then those.
#[inline(always)]
fn length(entry: u64) -> u32 {
    entry.checked_ilog2().unwrap_or(0)
}

/// Whether a hash goes on like an entry, as far as that goes.
#[inline(always)]
fn begins(entry: u64, value: u64) -> bool {
    (entry ^ value) & low_mask(length(entry)) == 0
}

/// The entries that a hash goes on like, as [`begins`] has it for each.
///
/// The zeros at the low end of a difference are the bits that agree; they suffice where the entry,
/// without its lowest bit, has no one above them. A difference of 0 borrows from the next when a
/// one is subtracted, but then it is a match.
#[derive(Clone, Copy)]
struct Beginnings(u64);

impl Sought for Beginnings {
    #[inline(always)]
    fn marks(self, shape: Shape, entries: u64) -> u64 {
        let x = entries ^ self.0.wrapping_mul(shape.ones);
        let from_first_difference = x | !x.wrapping_sub(shape.ones);
        shape.zeros(entries >> 1 & !shape.tops() & from_first_difference)
    }
}

impl From<NoRoom> for FullKind {
    fn from(NoRoom: NoRoom) -> FullKind {
        FullKind::Capacity
    }
}

/// The table, for looking up.
#[derive(Clone, Copy)]
struct Reader<'a> {
    view: View<'a>,
    first: u64,
    generation: u32,
}

impl Reader<'_> {
    /// The slots of a run whose fingerprints the value begins with, marks too, from the shortest
    /// to the longest.
    fn matches(self, (start, end): (u64, u64), value: u64) -> impl DoubleEndedIterator<Item = u64> {
        (start..end).filter(move |&slot| begins(self.view.get(slot), value))
    }
}

impl Ring for Reader<'_> {
    const PREFETCH_FROM: usize = NEAR;
    /// Quotient, and the fingerprint of a key that comes now.
    type Place = (u64, u64);
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        self.view.size_in_bytes()
    }

    /// The high part of the hash chooses a slot of the first table. The lowest bits, one for each
    /// doubling, say how many times the first table's length that slot has moved on; the bits above
    /// them are the fingerprint, of which the lowest is used up next.
    #[inline(always)]
    fn place(self, hash: u64) -> (u64, u64) {
        let (slot, _) = fastrange(hash, self.first);
        let quotient = slot + self.first * (hash & low_mask(self.generation));
        let value = hash >> self.generation & low_mask(self.view.bits() - 1);
        (quotient, value)
    }

    #[inline(always)]
    fn prefetch(self, (quotient, _): (u64, u64)) {
        self.view.prefetch_near(quotient);
    }

    #[inline(always)]
    fn probe<B: Bits>(self, bits: B, (quotient, value): (u64, u64)) -> bool {
        self.view.contains(bits, quotient, Beginnings(value))
    }
}

impl Leveled for Aleph {
    type Answer = bool;

    #[inline(always)]
    fn look_up<B: Bits>(&self, bits: B, hash: u64) -> bool {
        let reader = self.reader();
        reader.probe(bits, reader.place(hash))
    }
}

impl Aleph {
    /// How often the table has doubled.
    pub fn expansions(&self) -> u32 {
        self.generation
    }

    /// Bits of the fingerprints that are inserted now. Older ones have fewer.
    pub fn fingerprint_bits(&self) -> u32 {
        self.table.bits() - 1
    }

    /// Slots that fingerprints want to stand in, one for each quotient.
    pub fn slots(&self) -> u64 {
        self.table.quotients()
    }

    /// The fraction of slots in use.
    pub fn load(&self) -> f64 {
        self.table.used() as f64 / self.slots() as f64
    }

    /// How many keys are void: every bit of their fingerprints chooses a slot by now.
    pub fn voids(&self) -> u64 {
        self.voids.as_ref().map_or(0, Voids::count)
    }

    /// Slots that void keys mark, each of them several.
    pub fn marks(&self) -> u64 {
        self.marks
    }

    fn empty(plan: Plan) -> Result<Aleph, NoMemory> {
        Ok(Aleph {
            plan,
            generation: 0,
            table: Table::new(plan.first, plan.width(0))?,
            marks: 0,
            voids: None,
        })
    }

    #[inline(always)]
    fn reader(&self) -> Reader<'_> {
        Reader {
            view: self.table.view(),
            first: self.plan.first,
            generation: self.generation,
        }
    }

    /// The ordinal of a quotient: a slot of the first table, and then the bits that moved it on.
    fn ordinal(&self, quotient: u64) -> u64 {
        let (slot, moves) = (quotient % self.plan.first, quotient / self.plan.first);
        slot << self.generation | reversed(moves, self.generation)
    }

    /// The quotient of an ordinal.
    fn quotient(&self, ordinal: u64) -> u64 {
        let moves = reversed(ordinal & low_mask(self.generation), self.generation);
        (ordinal >> self.generation) + self.plan.first * moves
    }

    fn full(&self, kind: FullKind) -> Full {
        Full::new(kind, self.len())
    }

    /// Every slot in use as one number, in order: quotient, then value.
    fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let width = self.table.bits();
        let entries = self.table.entries();
        entries.map(move |entry| entry.quotient << width | entry.value)
    }

    /// The numbers of the void keys.
    fn void_numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.voids.iter().flat_map(Voids::numbers)
    }

    /// Makes room for a hash, and inserts it.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, hash: u64) -> Result<(), Full> {
        let mut larger = self.expanded().map_err(|kind| self.full(kind))?;
        let inserted = larger.insert_one(Portable, hash);
        inserted.map_err(|full| self.full(full.kind()))?;
        *self = larger;
        Ok(())
    }

    /// Takes out the longest void key that stands for a quotient, and its marks where no other has
    /// them.
    #[cold]
    #[inline(never)]
    fn remove_void(&mut self, quotient: u64) -> bool {
        let (ordinal, doublings) = (self.ordinal(quotient), self.generation);
        let Some(mut voids) = self.voids.take() else {
            return false;
        };
        let longest = voids.longest(ordinal, doublings);
        if let Some(number) = longest {
            voids.remove(number);
            for ordinal in Voids::span(number) {
                if voids.covering(ordinal, doublings) == 0 {
                    self.remove_mark(self.quotient(ordinal));
                }
            }
        }
        self.voids = Some(voids).filter(|voids| voids.count() > 0);
        self.shrink_if_empty();
        longest.is_some()
    }

    fn remove_mark(&mut self, quotient: u64) {
        let view = self.table.view();
        let run = view.run(Portable, quotient);
        if let Some(at) = view.find(run, MARK) {
            self.table.remove_at(Portable, quotient, run, at);
            self.marks = self.marks.saturating_sub(1);
        }
    }

    /// A filter that every key has left is as new. Where the system has no memory for the first
    /// table, it stays as large as it is.
    #[inline(always)]
    fn shrink_if_empty(&mut self) {
        if self.table.used() == 0
            && self.generation > 0
            && let Ok(fresh) = Aleph::empty(self.plan)
        {
            *self = fresh;
        }
    }

    /// Every invariant beyond those of the tables; the error is a field's name, its value, and what
    /// was expected of it.
    fn check(&self) -> Result<(), (&'static str, u64, &'static str)> {
        let (width, generation) = (self.table.bits(), self.generation);
        let lengths = self.plan.lengths(generation);
        let (mut last, mut copies, mut marks) = (0, 0, 0);
        for number in self.numbers() {
            let value = number & low_mask(width);
            copies = if last == number { copies + 1 } else { 1 };
            if number < last || copies > MOST_COPIES {
                return Err(("table", number, "runs in order, with 64 copies at most"));
            }
            last = number;
            if value == MARK {
                marks += 1;
                let ordinal = self.ordinal(number >> width);
                let is_void = |voids: &Voids| voids.longest(ordinal, generation).is_some();
                if copies > 1 || !self.voids.as_ref().is_some_and(is_void) {
                    return Err(("table", number, "one mark where a void key has one"));
                }
                continue;
            }
            let length = generation + length(value);
            if value == 0 || lengths >> length & 1 == 0 {
                return Err(("table", number, "a fingerprint of a generation's length"));
            }
        }
        let is_length = |d| d <= generation && lengths >> (generation - d) & 1 == 1;
        let marked = match &self.voids {
            Some(voids) => voids.check(self.slots(), is_length),
            None => Ok(0),
        };
        let marked = marked.map_err(|(number, expected)| ("voids", number, expected))?;
        if (marks, marks) != (self.marks, marked) {
            return Err(("marks", self.marks, "as many as the void keys have"));
        }
        Ok(())
    }
}

impl Filter for Aleph {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        lookup::single(self, hash)
    }

    fn len(&self) -> u64 {
        self.table.used().saturating_sub(self.marks) + self.voids()
    }

    fn size_in_bytes(&self) -> usize {
        let voids = self.voids.as_ref().map_or(0, Voids::size_in_bytes);
        self.table.size_in_bytes() + voids
    }

    /// The share of hashes that begin with a fingerprint, each counted once. Reads the whole table.
    fn fpr(&self) -> f64 {
        let (mut run, mut of_length) = (Vec::new(), [0u64; u64::BITS as usize]);
        for entry in self.table.entries() {
            // Those before it in its run are as long or shorter.
            if !run.iter().any(|&shorter| begins(shorter, entry.value)) {
                run.push(entry.value);
                of_length[length(entry.value) as usize] += 1;
            }
            if entry.is_last {
                run.clear();
            }
        }
        let covered = |(bits, &count)| count as f64 * math::fingerprint_fpr(bits);
        (0..).zip(&of_length).map(covered).sum::<f64>() / self.slots() as f64
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        let reader = self.reader();
        reader.prefetch(reader.place(hash));
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::ring(Some(self.reader()), hashes, out);
    }
}

impl OnTable for Aleph {
    #[inline(always)]
    fn insert_one<B: Bits>(&mut self, bits: B, hash: u64) -> Result<(), Full> {
        let reader = self.reader();
        let (quotient, value) = reader.place(hash);
        let (start, end) = reader.view.run(bits, quotient);
        if end.saturating_sub(start) >= MOST_COPIES
            && reader.matches((start, end), value).count() as u64 >= MOST_COPIES
        {
            return Err(self.full(FullKind::Duplicates(MOST_COPIES)));
        }
        if self.table.used() < most_used(self.slots()) {
            let entry = value | 1 << (self.table.bits() - 1);
            let mut at = end;
            while at > start && reader.view.get(at - 1) > entry {
                at -= 1;
            }
            let inserted = self
                .table
                .insert_at(bits, quotient, (start, end), at, entry);
            if inserted.is_ok() {
                return Ok(());
            }
            // Hashes that are spread evenly do not crowd at the end of a table that is so empty.
            if self.table.used() < self.slots() / 4 {
                return Err(self.full(FullKind::Capacity));
            }
        }
        self.grow(hash)
    }

    /// Takes out the longest fingerprint that the hash begins with. If it was made of another key,
    /// that key's hash begins with the shorter one, too, which was made of this.
    #[inline(always)]
    fn remove_one<B: Bits>(&mut self, bits: B, hash: u64) -> bool {
        let reader = self.reader();
        let (quotient, value) = reader.place(hash);
        let run = reader.view.run(bits, quotient);
        let Some(at) = reader.matches(run, value).next_back() else {
            return false;
        };
        if reader.view.get(at) == MARK {
            return self.remove_void(quotient);
        }
        self.table.remove_at(bits, quotient, run, at);
        self.shrink_if_empty();
        true
    }
}

impl Insert for Aleph {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        quotient::insert(self, hash)
    }

    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), Full> {
        quotient::insert_batch(self, hashes)
    }
}

impl Remove for Aleph {
    fn remove(&mut self, hash: u64) -> bool {
        quotient::remove(self, hash)
    }
}

impl Count for Aleph {
    fn count(&self, hash: u64) -> u64 {
        let reader = self.reader();
        let (quotient, value) = reader.place(hash);
        let run = reader.view.run(Portable, quotient);
        let copies = reader.matches(run, value).map(|slot| {
            let is_mark = reader.view.get(slot) == MARK;
            let voids = self.voids.as_ref().filter(|_| is_mark);
            voids.map_or(1, |voids| {
                voids.covering(self.ordinal(quotient), self.generation)
            })
        });
        copies.sum()
    }
}

impl Merge for Aleph {
    /// Both tables in one, in a sequential pass, after the smaller has doubled as often as the
    /// larger. The shares of both add up: the rate of the union is the sum of the two at most.
    fn merge(&mut self, other: &Aleph) -> Result<(), MergeError> {
        let (ours, theirs) = (self.plan, other.plan);
        MergeError::unless_equal("first", ours.first, theirs.first)?;
        MergeError::unless_equal("bits", u64::from(ours.bits.0), u64::from(theirs.bits.0))?;
        MergeError::unless_equal("more", u64::from(ours.bits.1), u64::from(theirs.bits.1))?;
        let refused = |kind| MergeErrorKind::Full(self.full(kind));
        let mut generation = self.generation.max(other.generation);
        loop {
            let (grown, met) = (self.grown_to(generation), other.grown_to(generation));
            let (grown, met) = (grown.map_err(refused)?, met.map_err(refused)?);
            let union = grown
                .as_ref()
                .unwrap_or(self)
                .union(met.as_ref().unwrap_or(other));
            match union {
                // Unless they crowd at the end of a table that is nearly empty.
                Err(FullKind::Capacity)
                    if self.table.used() + other.table.used()
                        >= self.plan.first << generation >> 2
                        && self.plan.shape(generation + 1).is_some() =>
                {
                    generation += 1;
                }
                union => {
                    *self = union.map_err(refused)?;
                    return Ok(());
                }
            }
        }
    }
}

impl Kind for Aleph {
    const ABOUT: &'static str =
        "grows with its keys at the rate asked for, in one table; keys can leave";

    /// The capacity is that of the first table: what comes after it makes the filter grow.
    fn build(config: &Config, hashes: &mut [u64]) -> Result<Aleph, BuildError> {
        let (keys, _) = config.check::<Aleph>(hashes)?;
        let first = Table::quotients_for(keys).max(LEAST_SLOTS);
        let most = Table::most_quotients(2);
        if first > most {
            return Err(BuildErrorKind::TooLarge {
                unit: "slots",
                needed: first as f64,
                most,
            }
            .into());
        }
        let load = most_used(first) as f64 / first as f64;
        let plan = config.sized::<Aleph, _>(|fpr| {
            let bits = math::aleph_first_bits(fpr, load)?;
            let plan = Plan { first, bits };
            plan.shape(0).map(|_| plan)
        })?;
        let mut filter = Aleph::empty(plan)?;
        let reader = filter.reader();
        let width = plan.width(0);
        let number = |&hash: &u64| {
            let (quotient, value) = reader.place(hash);
            quotient << width | 1 << (width - 1) | value
        };
        hashes.sort_unstable_by_key(number);
        match Aleph::table_of((first, width), hashes.iter().map(number)) {
            Ok((table, _)) => filter.table = table,
            // More than the tail takes: a hash at a time, the table doubles.
            Err(FullKind::Capacity) => filter.insert_batch(hashes)?,
            Err(kind) => return Err(filter.full(kind).into()),
        }
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("first", self.plan.first);
        out.param("bits", u64::from(self.plan.bits.0));
        out.param("more", u64::from(self.plan.bits.1));
        out.param("expansions", u64::from(self.generation));
        out.param("marks", self.marks);
        out.param("voids", self.voids());
        let void_bits = self.voids.as_ref().map_or(0, Voids::bits);
        out.param("void_bits", u64::from(void_bits));
        self.table.encode(out);
        if let Some(voids) = &self.voids {
            voids.encode(out);
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Aleph, DecodeError> {
        let most_bits = u64::from(MOST_BITS);
        let first = input.param_in("first", LEAST_SLOTS..=u64::MAX)?;
        let bits = input.param_in("bits", 1..=most_bits - 1)? as u32;
        let more = input.param_in("more", 0..=1)? as u32;
        let generation = input.param_in("expansions", 0..=60)? as u32;
        let plan = Plan {
            first,
            bits: (bits, more),
        };
        let expected = "slots, for so many expansions, that a hash can choose from";
        let shape = plan.shape(generation);
        let (slots, width) = shape.ok_or_else(|| DecodeError::invalid("first", first, expected))?;
        let marks = input.param_in("marks", 0..=slots)?;
        let voids = input.param_in("voids", 0..=input.len())?;
        let void_bits = input.param_in("void_bits", 0..=most_bits)? as u32;
        if (void_bits == 0) != (voids == 0) {
            let expected = "0 if there are no voids, and only then";
            return Err(DecodeError::invalid(
                "void_bits",
                u64::from(void_bits),
                expected,
            ));
        }
        let used = (input.len() - voids).saturating_add(marks);
        let table = Table::decode(input, slots, width, used)?;
        let voids = match voids {
            0 => None,
            _ => Some(Voids::decode(input, slots, void_bits, voids)?),
        };
        let filter = Aleph {
            plan,
            generation,
            table,
            marks,
            voids,
        };
        if input.is_verified() {
            let checked = filter.check();
            checked
                .map_err(|(name, value, expected)| DecodeError::invalid(name, value, expected))?;
        }
        Ok(filter)
    }
}

#[cfg(test)]
mod tests;
