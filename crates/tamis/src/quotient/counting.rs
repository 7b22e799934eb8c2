//! The counting quotient filter: how often each key came, in as few slots as the counts need.
//!
//! The essay is at [`QuotientCounting`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::RangeInclusive;

use super::counter::{Code, Counter, LEAST_BITS};
use super::counts::{Counts, Sums, added, write};
use super::sequence::Writer;
use super::table::{LOAD, MOST_BITS, NoRoom, Table, View};
use super::{OnTable, Split, Unwritten, doubled, fitting, merged};
use crate::bits::low_mask;
use crate::buf::Buf;
use crate::config::{Config, Param};
use crate::error::{
    BuildError, BuildErrorKind, DecodeError, Full, FullKind, MergeError, MergeErrorKind,
};
use crate::filter::{Count, Filter, Insert, Kind, Merge, Remove};
use crate::format::{Decoder, Encoder};
use crate::kinds::Declared;
use crate::lookup::{self, Leveled, NEAR, Ring};
use crate::math;
use crate::option;
use crate::quotient;
use crate::simd::{Bits, Portable};

/// A counting quotient filter: exact counts of fingerprints, up to 2⁶⁴ − 1 of each.
///
/// ```
/// use tamis::{Config, Keyed, QuotientCounting};
///
/// // Room for 1000 distinct keys, however often they come.
/// let mut visits: Keyed<QuotientCounting> = Keyed::new(&Config::new(1000))?;
/// for _ in 0..12_345 {
///     visits.insert("alice")?;
/// }
/// visits.insert("bob")?;
/// assert_eq!(visits.count("alice"), 12_345);
///
/// let alice = visits.hash("alice");
/// visits.filter_mut().insert_many(alice, 1_000_000_000)?;
/// let top = visits.filter().top(1);
/// assert_eq!(top, [(visits.filter().fingerprint(alice), 1_000_012_345)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// It is a [`Quotient`](crate::Quotient) filter whose runs hold counts. A key that came once takes
/// one slot, twice two, and from three times on its remainder stands on both sides of the count,
/// whose digits are slots of the same r bits:
///
/// ```text
///  a run     remainder 3       7, five times      9, twice      12, once
///            ┌────┐           ┌────┬────┬────┐   ┌────┬────┐    ┌────┐
///            │  3 │           │  7 │  3 │  7 │   │  9 │  9 │    │ 12 │
///            └────┘           └────┴────┴────┘   └────┴────┘    └────┘
///                                    ▲ a symbol smaller than 7 after a 7: the digit of 5 − 3
/// ```
///
/// Remainders ascend, so that a symbol smaller than the one before it can only be part of a count.
/// Counts of up to 2^r take three or four slots, and each slot more multiplies them by 2^r: a key
/// that came a million times costs five slots of 8 bits, where an array of counters would need 20
/// bits in all its counters.
///
/// # Lookup, count
///
/// As in the quotient filter; if the run holds the remainder anywhere, its counts are read one
/// after the other to tell a remainder from a digit.
///
/// # Insert and remove
///
/// The code is rewritten in place, with slots inserted or taken out where its length changes.
/// When no slot is left, the table takes twice the slots and one bit less of each remainder, as
/// [`Quotient::double`](crate::Quotient::double) does: the fingerprints, and so the rate, stay as
/// they are. It goes back when counts have shrunk. Only *distinct* keys raise the rate; a new one
/// is refused when as many are in as the capacity says, and 3 %. Hashes that are not spread, and
/// crowd at the end of a table that is nearly empty and has more than 2²² slots, are refused as
/// well: more slots would hold them, but far too many.
///
/// A remainder keeps two bits at least, so one of r bits lets the slots double r − 2 times: with 7
/// bits or more every single key may have come 2³² times. Built from its keys, without a capacity,
/// a filter may have 5, for 2²⁸ times; with fewer, which you get only by asking for them, it may
/// be full of counts.
///
/// # Merge, list, compare
///
/// Counts of equal fingerprints add up in one pass over both tables. [`counts`](Self::counts) lists
/// fingerprints with their counts in order, [`top`](Self::top) the most frequent, and
/// [`inner_product`](Self::inner_product) is the size of the join of two multisets.
///
/// # Cost
///
/// (r + 2.125) bits a slot at a load of up to 0.97, and a slot for each key that came once. Of 10⁶
/// events that follow Zipf's law, 24 bits at most for each distinct key at 1 %
/// (`cargo test -p tamis --lib a_million_events_by_zipfs_law`). A count is too high only where
/// another key has the same fingerprint: at the rate that was asked for.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `bits` | 4 to 57 | the fewest for the rate, and 7 | bits of a remainder: more make the rate lower |
///
/// # When to choose it
///
/// When keys come again and again, some of them very often, and it matters how often.
///
/// TinyTable, which counts in chains of fingerprints as [`TinySet`](crate::TinySet) stores them and
/// lets a full block borrow slots of the next, is not here. By its own formula it takes (r + 2)/0.9
/// bits a key at a rate of 1 − e^(−2⁻ʳ), 10.0 at 0.78 %; this table takes 9.6 at 0.74 %, finds a
/// run without asking whom its block has borrowed from, and is in order, so that it merges and
/// lists.
///
/// # Bibliography
///
/// - Pandey, Bender, Johnson, Patro, *A general-purpose counting filter: making every bit count*,
///   2017: counters inside the runs. Their code writes a count of three of x > 0 as x 0 x; here it
///   is x d x like all others.
/// - Cohen, Matias, *Spectral Bloom filters*, 2003: counts in arrays, for comparison.
#[derive(Clone, Debug)]
pub struct QuotientCounting {
    table: Table,
    /// How many times the slots have been doubled, each for one bit of the remainders.
    doublings: u32,
    /// Distinct keys that it was made for.
    keys: u64,
    /// Distinct fingerprints that it holds.
    distinct: u64,
    /// The sum of all counts.
    len: u64,
}

/// The fewest bits of a remainder that is sized by the rate: it can then give five to the quotient,
/// which gives 15 slots to each key, enough to count to 2³² or so.
const USUAL_BITS: u32 = 7;
/// The fewest of one that is sized by counts: it can give three, for 2²⁸ copies of every key.
const BUILT_BITS: u32 = 5;
/// Widths of a remainder, before it gives bits to the quotient: two at least.
const BITS: RangeInclusive<u64> = LEAST_BITS as u64 + 2..=MOST_BITS as u64;

/// A hash's place in the table, and the counter there.
#[derive(Clone, Copy)]
struct Place {
    quotient: u64,
    run: (u64, u64),
    /// The slot where its code begins, or would.
    at: u64,
    counter: Counter,
}

/// Finds a remainder in a run, or where it would stand.
#[inline(always)]
fn find<B: Bits>(view: View<'_>, bits: B, width: u32, hash: u64) -> Place {
    let (quotient, remainder) = view.place(hash);
    let run = view.run(bits, quotient);
    let mut place = Place {
        quotient,
        run,
        at: run.0,
        counter: Counter {
            remainder,
            count: 0,
            len: 0,
        },
    };
    while place.at < run.1 {
        let counter = Counter::read(|slot| view.get(slot), place.at, run.1, width);
        if counter.remainder == remainder {
            place.counter = counter;
        }
        if counter.remainder >= remainder {
            break;
        }
        place.at += counter.len;
    }
    place
}

/// Whether a run holds a remainder: seldom asked, only where a symbol agrees.
#[inline(never)]
fn is_counted(view: View<'_>, (start, end): (u64, u64), remainder: u64, width: u32) -> bool {
    let mut at = start;
    while at < end {
        let counter = Counter::read(|slot| view.get(slot), at, end, width);
        if counter.remainder >= remainder {
            return counter.remainder == remainder;
        }
        at += counter.len;
    }
    false
}

impl QuotientCounting {
    /// Bits of a remainder.
    pub fn remainder_bits(&self) -> u32 {
        self.table.bits()
    }

    /// Slots for remainders and digits.
    pub fn slots(&self) -> u64 {
        self.table.quotients()
    }

    /// The fraction of slots in use.
    pub fn load(&self) -> f64 {
        self.table.used() as f64 / self.slots() as f64
    }

    /// How many distinct fingerprints are held: the distinct keys, but for those that no filter of
    /// this rate can tell apart.
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    /// The fingerprint of a hash h: ⌊h·slots·2^r / 2⁶⁴⌋, which doubling the slots does not change.
    pub fn fingerprint(&self, hash: u64) -> u64 {
        let (quotient, remainder) = self.table.view().place(hash);
        quotient << self.table.bits() | remainder
    }

    /// Every fingerprint with its count, in ascending order of fingerprints.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> + Clone + '_ {
        Counts::new(self.table.entries())
    }

    /// The fingerprints with the greatest counts, at most `k` of them, the greatest first; of equal
    /// counts the lower fingerprint.
    pub fn top(&self, k: usize) -> Vec<(u64, u64)> {
        let mut least = BinaryHeap::new();
        for (fingerprint, count) in self.counts() {
            least.push(Reverse((count, Reverse(fingerprint))));
            if least.len() > k {
                least.pop();
            }
        }
        let sorted = least.into_sorted_vec().into_iter();
        sorted
            .map(|Reverse((count, Reverse(fingerprint)))| (fingerprint, count))
            .collect()
    }

    /// The sum over all fingerprints of the product of their counts here and there: the number of
    /// pairs that a join of the two multisets has, and more at the rate.
    ///
    /// # Errors
    ///
    /// [`MergeError`] when the filters were made for other sizes or rates, by name.
    pub fn inner_product(&self, other: &QuotientCounting) -> Result<u128, MergeError> {
        self.check_split(other)?;
        let mut theirs = other.counts().peekable();
        let mut sum = 0u128;
        for (fingerprint, count) in self.counts() {
            while theirs.next_if(|&(their, _)| their < fingerprint).is_some() {}
            if let Some(&(_, product)) = theirs.peek().filter(|&&(their, _)| their == fingerprint) {
                sum = sum.saturating_add(u128::from(count) * u128::from(product));
            }
        }
        Ok(sum)
    }

    /// Inserts a hash so many times at once.
    ///
    /// # Errors
    ///
    /// As [`insert`](Insert::insert): the filter is then exactly as it was.
    pub fn insert_many(&mut self, hash: u64, copies: u64) -> Result<(), Full> {
        self.change(Portable, hash, |count| count.checked_add(copies))
    }

    /// Takes out so many copies of a hash; `false` if there are fewer, and then nothing has
    /// changed. See [`remove`](Remove::remove).
    pub fn remove_many(&mut self, hash: u64, copies: u64) -> bool {
        let held = self.count(hash) >= copies;
        held && self
            .change(Portable, hash, |count| count.checked_sub(copies))
            .is_ok()
    }

    fn full(&self, kind: FullKind) -> Full {
        Full::new(kind, self.len)
    }

    /// Makes of a hash's count another one, taking more slots if need be, or changes nothing.
    #[inline(always)]
    fn change<B: Bits>(
        &mut self,
        bits: B,
        hash: u64,
        new: impl Fn(u64) -> Option<u64>,
    ) -> Result<(), Full> {
        let place = find(self.table.view(), bits, self.table.bits(), hash);
        let old = place.counter.count;
        let most = self.full(FullKind::Duplicates(u64::MAX));
        let count = new(old).ok_or(most)?;
        let len = self
            .len
            .saturating_sub(old)
            .checked_add(count)
            .ok_or(most)?;
        if old == 0
            && count > 0
            && self.distinct >= Table::most_used(Table::quotients_for(self.keys))
        {
            return Err(self.full(FullKind::Capacity));
        }
        if self.rewrite(bits, &place, count).is_err() {
            self.grow(hash, count)?;
        }
        self.distinct = (self.distinct + u64::from(count > 0)).saturating_sub(u64::from(old > 0));
        self.len = len;
        if count < old {
            self.shrink();
        }
        Ok(())
    }

    /// Writes another count at a place, or changes nothing.
    #[inline(always)]
    fn rewrite<B: Bits>(&mut self, bits: B, place: &Place, count: u64) -> Result<(), NoRoom> {
        let Place {
            quotient,
            run: (start, mut end),
            at,
            counter,
        } = *place;
        if (counter.count, count) == (0, 1) && self.table.room() > 0 {
            let value = counter.remainder;
            return self
                .table
                .insert_at(bits, quotient, (start, end), at, value);
        }
        self.rewrite_code(bits, quotient, (start, &mut end), at, counter, count)
    }

    fn rewrite_code<B: Bits>(
        &mut self,
        bits: B,
        quotient: u64,
        (start, end): (u64, &mut u64),
        at: u64,
        counter: Counter,
        count: u64,
    ) -> Result<(), NoRoom> {
        let code = match count {
            0 => None,
            _ => Some(Code::new(counter.remainder, count, self.table.bits())),
        };
        let symbols = code.as_ref().map_or(&[][..], Code::symbols);
        let len = symbols.len() as u64;
        if len.saturating_sub(counter.len) > self.table.room() {
            return Err(NoRoom);
        }
        for inserted in counter.len..len {
            let run = (start, *end);
            if let Err(e) = self.table.insert_at(bits, quotient, run, at, 0) {
                for _ in counter.len..inserted {
                    self.table.remove_at(bits, quotient, (start, *end), at);
                    *end -= 1;
                }
                return Err(e);
            }
            *end += 1;
        }
        for _ in len..counter.len {
            self.table.remove_at(bits, quotient, (start, *end), at);
            *end -= 1;
        }
        for (slot, &symbol) in (at..).zip(symbols) {
            self.table.set(slot, symbol);
        }
        Ok(())
    }

    /// Takes twice the slots, as often as it needs, and makes this hash's count `count`.
    #[cold]
    fn grow(&mut self, hash: u64, count: u64) -> Result<(), Full> {
        let fingerprint = self.fingerprint(hash);
        let with = |&(held, _): &(u64, u64)| held != fingerprint;
        let before = || {
            self.counts()
                .take_while(move |&(held, _)| held < fingerprint)
        };
        let after = || {
            self.counts()
                .filter(with)
                .skip_while(move |&(held, _)| held < fingerprint)
        };
        let all = || before().chain([(fingerprint, count)]).chain(after());
        let made = Made {
            doublings: self.doublings + 1,
            ..self.made()
        };
        let grown = written_fitting(made, all);
        (self.table, self.doublings) = grown.map_err(|e| e.into_full(self.len))?;
        Ok(())
    }

    /// Goes back to half the slots, as often as what is left takes less than half of those.
    fn shrink(&mut self) {
        while self.doublings > 0 && self.table.used() <= Table::most_used(self.slots() / 2) / 2 {
            let (split, doublings) = (self.split(), self.doublings - 1);
            // Without memory for a second table the first serves as well.
            match written(split, doublings, self.counts()) {
                Ok(table) => (self.table, self.doublings) = (table, doublings),
                Err(_) => return,
            }
        }
    }

    /// Slots and remainder bits before any doubling.
    fn split(&self) -> (u64, u32) {
        (
            self.slots() >> self.doublings,
            self.table.bits() + self.doublings,
        )
    }

    fn check_split(&self, other: &QuotientCounting) -> Result<(), MergeError> {
        common(self.made(), other.made())?;
        Ok(())
    }

    /// What it was made as.
    fn made(&self) -> Made {
        Made {
            split: self.split(),
            keys: self.keys,
            doublings: self.doublings,
        }
    }
}

/// What a filter was made as, and how often its slots were doubled since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) split: Split,
    pub(super) keys: u64,
    pub(super) doublings: u32,
}

impl Made {
    pub(super) fn encode(&self, used: u64, distinct: u64, out: &mut Encoder<'_>) {
        out.param("slots", self.split.0);
        out.param("bits", u64::from(self.split.1));
        out.param("keys", self.keys);
        out.param("doublings", u64::from(self.doublings));
        let sums = [used, distinct];
        out.made(sums.iter().flat_map(|sum| sum.to_le_bytes()).collect());
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<Made, DecodeError> {
        let slots = input.param("slots")?;
        let bits = input.param_in("bits", BITS)? as u32;
        let most = Table::most_quotients(bits);
        if !(1..=most).contains(&slots) {
            return Err(DecodeError::invalid("slots", slots, format!("1 to {most}")));
        }
        let keys = input.param("keys")?;
        let doublings = input.param_in("doublings", 0..=u64::from(bits - LEAST_BITS))? as u32;
        Ok(Made {
            split: (slots, bits),
            keys,
            doublings,
        })
    }

    /// How many doublings leave enough of a remainder, these or more.
    pub(super) fn possible(&self) -> RangeInclusive<u32> {
        self.doublings..=self.split.1.saturating_sub(LEAST_BITS)
    }

    /// The most distinct keys.
    pub(super) fn most(&self) -> u64 {
        Table::most_used(Table::quotients_for(self.keys))
    }
}

/// What a union is made as, before it takes more slots.
pub(super) fn common(ours: Made, theirs: Made) -> Result<Made, MergeError> {
    let ((slots, bits), (their_slots, their_bits)) = (ours.split, theirs.split);
    MergeError::unless_equal("slots", slots, their_slots)?;
    MergeError::unless_equal("bits", u64::from(bits), u64::from(their_bits))?;
    MergeError::unless_equal("keys", ours.keys, theirs.keys)?;
    Ok(Made {
        doublings: ours.doublings.max(theirs.doublings),
        ..ours
    })
}

/// The share of fingerprints that so many are.
pub(super) fn fpr(distinct: u64, (slots, bits): Split) -> f64 {
    distinct as f64 / (slots as f64 * f64::from(bits).exp2())
}

/// The table of these counts, in order, with the slots of a shape doubled so many times.
fn written(
    split: Split,
    doublings: u32,
    counts: impl Iterator<Item = (u64, u64)>,
) -> Result<Table, Unwritten> {
    let (slots, bits) = doubled(split, doublings);
    let mut writer = Writer::new(Table::new(slots, bits)?);
    write(&mut writer, counts)?;
    Ok(writer.finish())
}

/// The same with the fewest doublings that give room, and how many those are.
fn written_fitting<I: Iterator<Item = (u64, u64)>>(
    made: Made,
    counts: impl Fn() -> I,
) -> Result<(Table, u32), Unwritten> {
    fitting(made.possible(), |doublings| {
        Ok((written(made.split, doublings, counts())?, doublings))
    })
}

/// The table, for looking up.
#[derive(Clone, Copy)]
struct Reader<'a> {
    table: View<'a>,
    bits: u32,
}

impl Ring for Reader<'_> {
    const PREFETCH_FROM: usize = NEAR;
    /// Quotient and remainder.
    type Place = (u64, u64);
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        self.table.size_in_bytes()
    }

    #[inline(always)]
    fn place(self, hash: u64) -> (u64, u64) {
        self.table.place(hash)
    }

    #[inline(always)]
    fn prefetch(self, (quotient, _): (u64, u64)) {
        self.table.prefetch_near(quotient);
    }

    #[inline(always)]
    fn probe<B: Bits>(self, bits: B, (quotient, remainder): (u64, u64)) -> bool {
        // A symbol that agrees is seldom a digit, but a run must be read from its start to know.
        self.table.contains(bits, quotient, remainder)
            && is_counted(
                self.table,
                self.table.run(bits, quotient),
                remainder,
                self.bits,
            )
    }
}

impl Leveled for QuotientCounting {
    type Answer = bool;

    #[inline(always)]
    fn look_up<B: Bits>(&self, bits: B, hash: u64) -> bool {
        let reader = self.reader();
        let place = reader.place(hash);
        reader.prefetch(place);
        reader.probe(bits, place)
    }
}

impl QuotientCounting {
    #[inline(always)]
    fn reader(&self) -> Reader<'_> {
        Reader {
            table: self.table.view(),
            bits: self.table.bits(),
        }
    }
}

impl Filter for QuotientCounting {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        lookup::single(self, hash)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn charged(&self) -> u64 {
        self.distinct
    }

    fn size_in_bytes(&self) -> usize {
        self.table.size_in_bytes()
    }

    /// The share of fingerprints that are held.
    fn fpr(&self) -> f64 {
        fpr(self.distinct, (self.slots(), self.table.bits()))
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        let view = self.table.view();
        view.prefetch_near(view.place(hash).0);
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::ring(Some(self.reader()), hashes, out);
    }
}

impl OnTable for QuotientCounting {
    #[inline(always)]
    fn insert_one<B: Bits>(&mut self, bits: B, hash: u64) -> Result<(), Full> {
        self.change(bits, hash, |count| count.checked_add(1))
    }

    #[inline(always)]
    fn remove_one<B: Bits>(&mut self, bits: B, hash: u64) -> bool {
        let changed = self.change(bits, hash, |count| count.checked_sub(1));
        changed.is_ok()
    }
}

impl Insert for QuotientCounting {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        quotient::insert(self, hash)
    }

    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), Full> {
        quotient::insert_batch(self, hashes)
    }
}

impl Remove for QuotientCounting {
    fn remove(&mut self, hash: u64) -> bool {
        quotient::remove(self, hash)
    }
}

impl Count for QuotientCounting {
    fn count(&self, hash: u64) -> u64 {
        let place = find(self.table.view(), Portable, self.table.bits(), hash);
        place.counter.count
    }
}

impl Merge for QuotientCounting {
    /// Adds the counts, in one pass over both. Takes more slots where it has to; refuses to hold
    /// more distinct keys than it was made for.
    fn merge(&mut self, other: &QuotientCounting) -> Result<(), MergeError> {
        let made = common(self.made(), other.made())?;
        let full = |kind| MergeErrorKind::Full(self.full(kind));
        let len = self.len.checked_add(other.len);
        let len = len.ok_or_else(|| full(FullKind::Duplicates(u64::MAX)))?;
        let both = || added(merged([self.counts(), other.counts()]));
        let distinct = both().count() as u64;
        if distinct > made.most() {
            return Err(full(FullKind::Capacity).into());
        }
        let union = written_fitting(made, both);
        let (table, doublings) = union.map_err(|e| MergeErrorKind::Full(e.into_full(self.len)))?;
        *self = QuotientCounting {
            table,
            doublings,
            keys: self.keys,
            distinct,
            len,
        };
        Ok(())
    }
}

impl Kind for QuotientCounting {
    const ABOUT: &'static str =
        "how often each key came, in place; keys leave, filters merge and list the most frequent";
    const PARAMS: &'static [Param] = &[Param {
        name: option::BITS.name,
        values: "4 to 57",
        default: "the fewest for the rate, and 7",
        about: "bits of a remainder: more make the rate lower",
    }];

    /// The capacity counts distinct keys. If it is given, the slots follow from it and are doubled
    /// where counts need it, so that filters of one configuration merge. If there are more keys, or
    /// none was given, the slots are as many as these keys and counts need.
    fn build(config: &Config, hashes: &mut [u64]) -> Result<QuotientCounting, BuildError> {
        hashes.sort_unstable();
        let runs = || hashes.chunk_by(|a, b| a == b);
        let distinct = runs().count() as u64;
        let (keys, fpr) = config.check_for(Self::INFO, distinct)?;
        let needed = math::quotient_bits(LOAD, fpr);
        let least = math::quotient_fpr(1.0, MOST_BITS);
        let is_given = config.param::<u32>(option::BITS.name, "")?.is_some();
        let bits = config.bits::<Self>(BITS, needed, least)?;
        let bits = if is_given { bits } else { bits.max(USUAL_BITS) };
        let mut split = (Table::quotients_for(keys), bits);
        if config.capacity < distinct {
            let mut counts: Vec<u64> = runs().map(|run| run.len() as u64).collect();
            counts.sort_unstable();
            let least = if is_given { bits } else { BUILT_BITS };
            split = smallest(&counts, least..=bits, fpr);
        }
        loop {
            let (slots, bits) = split;
            let most = Table::most_quotients(bits);
            if slots > most {
                let (unit, needed) = ("slots", slots as f64);
                return Err(BuildErrorKind::TooLarge { unit, needed, most }.into());
            }
            let fingerprint =
                |hash: u64| ((u128::from(hash) * u128::from(slots)) >> (u64::BITS - bits)) as u64;
            let counts = || added(runs().map(|run| (fingerprint(run[0]), run.len() as u64)));
            let len = hashes.len() as u64;
            let (table, doublings) = if config.capacity < distinct {
                match written(split, 0, counts()) {
                    Err(Unwritten::Full(FullKind::Capacity)) => {
                        split.0 += slots / 50 + 4;
                        continue;
                    }
                    table => (table.map_err(|e| e.into_full(len))?, 0),
                }
            } else {
                let made = Made {
                    split,
                    keys,
                    doublings: 0,
                };
                written_fitting(made, counts).map_err(|e| e.into_full(len))?
            };
            let distinct = counts().count() as u64;
            return Ok(QuotientCounting {
                table,
                doublings,
                keys,
                distinct,
                len,
            });
        }
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        let made = self.made();
        made.encode(self.table.used(), self.distinct, out);
        self.table.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<QuotientCounting, DecodeError> {
        let Made {
            split,
            keys,
            doublings,
        } = Made::decode(input)?;
        let sums: Buf<u64> = input.section("sums", 2)?;
        let (slots, bits) = doubled(split, doublings);
        let filter = QuotientCounting {
            table: Table::decode_unchecked(input, slots, bits, sums[0])?,
            doublings,
            keys,
            distinct: sums[1],
            len: input.len(),
        };
        if input.is_verified() {
            filter.check()?;
        }
        Ok(filter)
    }
}

impl QuotientCounting {
    /// Refuses a table that is not in order, and sums that are not its own.
    fn check(&self) -> Result<(), DecodeError> {
        let sums = Sums {
            used: self.table.used(),
            distinct: self.distinct,
            len: self.len,
        };
        Counts::new(self.table.entries()).finish(sums).1
    }
}

/// The shape with the fewest bits for these counts, in order, of all that have the rate. Fewer bits
/// in each remainder make counters longer, and more slots make remainders shorter.
fn smallest(counts: &[u64], widths: RangeInclusive<u32>, fpr: f64) -> (u64, u32) {
    let fingerprints = counts.len() as f64 / -(-fpr).ln_1p();
    let shapes = widths.map(|bits| {
        let width = |remainder, count| Code::new(remainder, count, bits).symbols().len() as f64;
        // Half the remainders have a 0 before the first digit, more or less.
        let runs = counts.chunk_by(|a, b| a == b);
        let symbols = runs.map(|run| {
            let both = width(1, run[0]) + width(low_mask(bits), run[0]);
            both / 2.0 * run.len() as f64
        });
        let slots = Table::quotients_for(symbols.sum::<f64>() as u64);
        let least = (fingerprints / f64::from(bits).exp2()).ceil() as u64;
        (slots.max(least), bits)
    });
    let size = |&(slots, bits): &(u64, u32)| slots as f64 * (f64::from(bits) + 2.125);
    let best = shapes.min_by(|a, b| size(a).total_cmp(&size(b)));
    best.unwrap_or((1, LEAST_BITS))
}

#[cfg(test)]
mod tests;
