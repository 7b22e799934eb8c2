//! The optimal Bloom filter replacement: a multiset of hashes, kept exactly and in little space.
//!
//! The essay is at [`Multiset`].

use std::iter::Peekable;

use super::list::{List, Made, Numbered, Numbers};
use super::redundant::{Next, Step, step};
use super::table::{LOAD, MOST_BITS, Table};
use super::{OnTable, Unwritten, counts, frozen::FrozenMultiset, merged};
use crate::bits::fastrange;
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

/// The multiset of Pagh, Pagh and Rao: insert, remove, count and merge, in a time that does not
/// depend on the rate.
///
/// ```
/// use tamis::{Config, Keyed, Multiset};
///
/// let mut visits: Keyed<Multiset> = Keyed::new(&Config::new(1000).fpr(0.001))?;
/// for _ in 0..12_345 {
///     visits.insert("alice")?;
/// }
/// assert_eq!(visits.count("alice"), 12_345);
/// assert!(visits.remove("alice") && visits.contains("alice"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// A hash scaled to u = n/ε numbers collides with one of n others with probability ε at most, if
/// the hash is of a universal family ([`Hashing::universal`](crate::Hashing::universal)). So an
/// approximate set of keys is an *exact* set of numbers below u, and as two keys may share a
/// number, an exact multiset, if one of them is to leave without the other. That is all there is
/// to the reduction; what is left is to store a multiset of small numbers in few bits.
///
/// Its parts are two sorted lists. The *base* has every number that is there, the *upper* list the
/// columns of counts above one:
///
/// ```text
///  number      4     9        23            57                          counts
///  base        4     9  9     23 23 23      57                          4: once
///  column 0    1      0         −1           1                          9: 0 + 2 = twice
///                                                                       23: −1 + 4 = three times
///  upper             9:1      23:0 23:1     57:1                        57: 1 + 2 = three times
///  column 1           1        0             1
///  column 2                       1
///
///  each list is a quotient table: a number wants to stand in slot ⌊number/R⌋, the rest is stored
/// ```
///
/// A count is written in digits −1, 0 and 1, the lowest in column 0, so that to step up and down
/// changes a constant number of digits in the mean (`quotient/redundant.rs`). The digit of column 0
/// is how often the number stands in the base: once for 1, twice for 0, three times for −1. A key
/// that came once, as nearly all do, so costs nothing but its number. Higher digits are tags in the
/// upper list, where the columns of a number stand side by side.
///
/// # Lookup, count
///
/// A lookup reads one place of the base, whatever the rate. A count reads the columns, as many as
/// its logarithm, and one more.
///
/// # Insert and remove
///
/// Each step of a counter adds or takes exactly one slot of the base, and now and then one of the
/// upper list. Either list takes more slots, an eighth at a time, when it is full, and gives them
/// back when keys leave: R changes, the numbers do not, so it is one pass and the rate stays. Keys
/// beyond the capacity are taken, and the rate grows with them. A removal may need a slot, too;
/// only where there is no memory for that does it return `false` and change nothing.
///
/// To remove what was not inserted cannot be detected, as in any filter.
///
/// # Cost
///
/// (r + 2.125)/0.95 bits per key for a rate of 2⁻ʳ, and the upper list: n·ε/2 slots where all
/// keys are distinct. The least for a multiset of hashes is r + 1.443, and for a set with errors r.
///
/// | ε | least | multiset, least | this one | Bloom filter |
/// |---|---|---|---|---|
/// | 2⁻⁸ | 8 | 9.44 | 10.72 | 11.54 |
/// | 2⁻¹⁰ | 10 | 11.44 | 12.79 | 14.43 |
/// | 2⁻¹⁶ | 16 | 17.44 | 19.10 | 23.08 |
///
/// (A million distinct keys, `cargo test -p tamis --lib space_is_that_of_the_formula --
/// --nocapture`.) So the theorem holds: n·log₂(1/ε) + O(n) bits. `cargo run --release -p
/// tamis-bench -- paper optimal` measures it claim by claim.
///
/// # Counts, four ways
///
/// | filter | a count is | keys leave | bits per key at 1 % | 20 copies of each key |
/// |---|---|---|---|---|
/// | [`Counting`](crate::Counting) | the least of 7 counters of 4 bits, 15 at most | yes | 38.4 | counters end at 15 |
/// | [`CountingMinimal`](crate::CountingMinimal) | the least of 7 counters of 8 bits, of which only the least are raised | no | 76.7 | the same |
/// | [`QuotientCounting`](crate::QuotientCounting) | exact for a fingerprint, digits of r bits in its run | yes | 9.6 | three slots a key and more |
/// | `Multiset` | exact for a fingerprint, digits of two bits in a list of their own | yes | 9.6 | two slots in the base, four in the upper list |
///
/// The counter arrays of a spectral Bloom filter err with each of their counters; here a count is
/// wrong only where another key has the same number: with probability ε, and never too low.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `bits` | 1 to 57 | the fewest for the rate | bits of a rest at capacity: more make the rate lower |
///
/// # When to choose it
///
/// To see the theorem at work. [`Quotient`](crate::Quotient) is as small and faster where copies
/// are few, [`QuotientCounting`](crate::QuotientCounting) keeps high counts in fewer slots. What
/// this one has alone is growth by an eighth, which leaves no more than that unused, and
/// [`freeze`](Multiset::freeze).
///
/// # Bibliography
///
/// - Pagh, Pagh, Rao, *An optimal Bloom filter replacement*, 2005: the reduction, the counters, the
///   multiset as sets of digits.
/// - Carter, Floyd, Gill, Markowsky, Wegman, *Exact and approximate membership testers*, 1978: the
///   reduction for sets, and the lower bound.
/// - Pandey, Bender, Johnson, Patro, *A general-purpose counting filter: making every bit count*,
///   2017: the table that the lists stand on, in place of the succinct dictionaries of the paper.
#[derive(Clone, Debug)]
pub struct Multiset {
    base: List,
    upper: List,
    /// Slots and rest bits that the base was made with.
    split: (u64, u32),
    /// Numbers that are held.
    distinct: u64,
    /// The sum of all counts.
    len: u64,
}

/// Widths of a rest.
const BITS: std::ops::RangeInclusive<u64> = 1..=MOST_BITS as u64;
/// Tags of the upper list: a digit in two bits.
const TAG: u32 = 2;
/// Columns of the greatest count.
pub(super) const MOST_COLUMNS: u32 = 65;

/// The digit of column 0 of a number that stands so often in the base.
fn digit_of(copies: u64) -> Option<i8> {
    match copies {
        0 => None,
        1 => Some(1),
        2 => Some(0),
        _ => Some(-1),
    }
}

fn copies_of(digit: Option<i8>) -> u64 {
    digit.map_or(0, |digit| (2 - digit) as u64)
}

/// The tag of a digit: 0, 1, and 2 for −1.
fn tag_of(digit: i8) -> u64 {
    if digit < 0 { 2 } else { digit as u64 }
}

fn digit_of_tag(tag: u64) -> i8 {
    match tag {
        0 | 1 => tag as i8,
        _ => -1,
    }
}

/// The lists of a multiset with this many slots and rest bits.
fn made((slots, bits): (u64, u32)) -> (Made, Made) {
    let bound = slots << bits;
    let base = Made {
        bound,
        slots,
        tag: 0,
    };
    // As few slots as values of 57 bits, tag and all, allow.
    let slots = bound.div_ceil(1 << (MOST_BITS - TAG));
    let upper = Made {
        bound,
        slots,
        tag: TAG,
    };
    (base, upper)
}

/// Which list has no room.
enum Side {
    Base,
    Upper,
}

impl Multiset {
    /// How many numbers a hash can be scaled to, u: the rate is the share of them that is held.
    pub fn range(&self) -> u64 {
        self.base.made().bound
    }

    /// The number of a hash h: ⌊h·u / 2⁶⁴⌋.
    pub fn number(&self, hash: u64) -> u64 {
        fastrange(hash, self.range()).0
    }

    /// How many numbers are held: the distinct keys, but for those that no filter of this rate can
    /// tell apart.
    pub fn distinct(&self) -> u64 {
        self.distinct
    }

    /// Slots of the base and of the upper list, and how many of them are in use: one or two for
    /// each number in the base, three where the lowest digit is −1, and one for each digit in the
    /// other.
    pub fn slots(&self) -> [(u64, u64); 2] {
        [&self.base, &self.upper].map(|list| (list.table.quotients(), list.table.used()))
    }

    /// Every number with its count, in ascending order.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> + Clone + '_ {
        Counts::new(self)
    }

    /// The same multiset for reading alone, with counters in plain binary; smaller from a rate of
    /// 2⁻⁹ on.
    ///
    /// ```
    /// use tamis::{Config, Insert, Kind, Multiset};
    ///
    /// let mut filter = Multiset::build(&Config::new(1000), &mut [])?;
    /// for _ in 0..5 {
    ///     filter.insert(0x9E37_79B9_7F4A_7C15)?;
    /// }
    /// let frozen = filter.freeze()?;
    /// assert_eq!(frozen.count(0x9E37_79B9_7F4A_7C15), 5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] when memory is short.
    pub fn freeze(&self) -> Result<FrozenMultiset, BuildError> {
        FrozenMultiset::new(self.range(), self.len, || self.counts())
    }

    /// The multiset of these counts, which come in order, in plain binary.
    fn of<I: Iterator<Item = (u64, u64)>>(
        split: (u64, u32),
        counts: impl Fn() -> I,
    ) -> Result<Multiset, Unwritten> {
        let (mut in_base, mut in_upper, mut distinct, mut len) = (0, 0, 0, 0u64);
        for (_, count) in counts() {
            in_base += 2 - (count & 1);
            in_upper += u64::from(count.ilog2());
            distinct += 1;
            len = len.saturating_add(count);
        }
        let (base, upper) = made(split);
        let base = base.write(0, in_base, || {
            let copies = |(number, count)| (0..2 - (count & 1)).map(move |_| (number, 0));
            counts().flat_map(copies)
        })?;
        let upper = upper.write(0, in_upper, || {
            let columns = |(number, count): (u64, u64)| {
                (1..=count.ilog2()).map(move |column| (number, count >> column & 1))
            };
            counts().flat_map(columns)
        })?;
        Ok(Multiset {
            base,
            upper,
            split,
            distinct,
            len,
        })
    }

    fn full(&self, kind: FullKind) -> Full {
        Full::new(kind, self.len)
    }

    /// The digit of a column of a number, whose columns above the first begin at a slot of the
    /// upper list.
    fn upper_digit(&self, first: u64, columns: u64, column: u32) -> Option<i8> {
        let slot = u64::from(column - 1);
        (slot < columns).then(|| digit_of_tag(self.upper.tag(first + slot)))
    }

    /// What a step changes of a number's counter.
    fn planned<B: Bits>(&self, bits: B, number: u64, sign: i8) -> Step {
        let low = digit_of(self.base.group(bits, number).len);
        let mut upper = None;
        step(sign, |column| {
            if column == 0 {
                return low;
            }
            let group = upper.get_or_insert_with(|| self.upper.group(bits, number));
            self.upper_digit(group.at, group.len, column)
        })
    }

    /// Makes a planned step, or changes nothing.
    fn apply<B: Bits>(&mut self, bits: B, number: u64, step: Step) -> Result<(), Side> {
        let group = self.base.group(bits, number);
        let low = if step.column == 0 {
            step.digit
        } else {
            Some(0)
        };
        let is_more = copies_of(low) > group.len;
        if is_more {
            let inserted = self.base.insert(bits, &group, group.at, 0);
            inserted.map_err(|_| Side::Base)?;
        } else {
            self.base.remove(bits, &group, group.at);
        }
        if step.column == 0 && step.next == Next::Same {
            return Ok(());
        }
        let group = self.upper.group(bits, number);
        let slot = |column: u32| group.at + u64::from(column) - 1;
        if step.column > 0 && slot(step.column) == group.at + group.len {
            let digit = tag_of(step.digit.unwrap_or(1));
            let inserted = self.upper.insert(bits, &group, slot(step.column), digit);
            if inserted.is_err() {
                // A carry from 1 to 0 has put a copy into the base.
                let group = self.base.group(bits, number);
                self.base.remove(bits, &group, group.at);
                return Err(Side::Upper);
            }
        } else if step.column > 0 {
            let digit = tag_of(step.digit.unwrap_or(0));
            self.upper.set_tag(&group, slot(step.column), digit);
        }
        for column in 1..step.column {
            self.upper.set_tag(&group, slot(column), 0);
        }
        match step.next {
            Next::Same => {}
            Next::Zero => self.upper.set_tag(&group, slot(step.column + 1), 0),
            Next::Gone => self.upper.remove(bits, &group, slot(step.column + 1)),
        }
        Ok(())
    }

    /// Makes a step of a number's counter, with more slots if need be, or changes nothing.
    fn change<B: Bits>(&mut self, bits: B, number: u64, sign: i8) -> Result<(), Full> {
        let step = self.planned(bits, number, sign);
        let (mut base, mut upper) = (None, None);
        while let Err(side) = self.apply(bits, number, step) {
            let (list, kept) = match side {
                Side::Base => (&mut self.base, &mut base),
                Side::Upper => (&mut self.upper, &mut upper),
            };
            match list.grown() {
                Ok(grown) => drop(kept.get_or_insert(std::mem::replace(list, grown))),
                Err(e) => {
                    for (list, kept) in [(&mut self.base, base), (&mut self.upper, upper)] {
                        if let Some(kept) = kept {
                            *list = kept;
                        }
                    }
                    return Err(e.into_full(self.len));
                }
            }
        }
        let is_lowest = step.column == 0;
        if is_lowest && step.digit.is_none() {
            self.distinct = self.distinct.saturating_sub(1);
        }
        Ok(())
    }
}

impl OnTable for Multiset {
    #[inline(always)]
    fn insert_one<B: Bits>(&mut self, bits: B, hash: u64) -> Result<(), Full> {
        let number = self.number(hash);
        let most = FullKind::Duplicates(u64::MAX);
        let len = self.len.checked_add(1).ok_or(self.full(most))?;
        let group = self.base.group(bits, number);
        // Most keys are new.
        let is_new = group.len == 0;
        let inserted = is_new && self.base.insert(bits, &group, group.at, 0).is_ok();
        if !inserted {
            self.change(bits, number, 1)?;
        }
        self.distinct += u64::from(is_new);
        self.len = len;
        Ok(())
    }

    fn remove_one<B: Bits>(&mut self, bits: B, hash: u64) -> bool {
        let number = self.number(hash);
        let view = self.base.view();
        let (quotient, value) = view.place(hash);
        let removed =
            view.table.contains(bits, quotient, value) && self.change(bits, number, -1).is_ok();
        if removed {
            self.len = self.len.saturating_sub(1);
            self.base.shrink();
            self.upper.shrink();
        }
        removed
    }
}

/// Numbers with their counts, in order, which is checked on the way.
#[derive(Clone)]
struct Counts<'a> {
    base: Peekable<Numbers<'a>>,
    upper: Peekable<Numbers<'a>>,
    distinct: u64,
    len: u64,
    /// The first number whose digits are no count.
    fault: Option<u64>,
}

impl<'a> Counts<'a> {
    fn new(filter: &'a Multiset) -> Counts<'a> {
        Counts {
            base: filter.base.numbers().peekable(),
            upper: filter.upper.numbers().peekable(),
            distinct: 0,
            len: 0,
            fault: None,
        }
    }
}

impl Iterator for Counts<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let Some((number, _)) = self.base.next() else {
            if let Some((number, _)) = self.upper.next() {
                self.fault.get_or_insert(number);
            }
            return None;
        };
        let mut copies = 1;
        while self.base.next_if(|&(next, _)| next == number).is_some() {
            copies += 1;
        }
        while let Some((alone, _)) = self.upper.next_if(|&(next, _)| next < number) {
            self.fault.get_or_insert(alone);
        }
        let mut top = digit_of(copies).unwrap_or(0);
        let (mut value, mut columns) = (i128::from(top), 1);
        let mut is_count = copies <= 3;
        while let Some((_, tag)) = self.upper.next_if(|&(next, _)| next == number) {
            let digit = digit_of_tag(tag);
            is_count &= tag <= 2 && digit * top != -1 && columns < MOST_COLUMNS;
            value += i128::from(digit) << columns.min(MOST_COLUMNS);
            (top, columns) = (digit, columns + 1);
        }
        let count = u64::try_from(value).ok().filter(|&count| count > 0);
        let sum = self.len.checked_add(count.unwrap_or(0));
        if !is_count || top != 1 || count.is_none() || sum.is_none() {
            self.fault.get_or_insert(number);
        }
        self.distinct += 1;
        self.len = sum.unwrap_or(u64::MAX);
        Some((number, count.unwrap_or(1)))
    }
}

/// The base, for looking up.
#[derive(Clone, Copy)]
struct Reader<'a>(Numbered<'a>);

impl Ring for Reader<'_> {
    const PREFETCH_FROM: usize = NEAR;
    /// Quotient and rest.
    type Place = (u64, u64);
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        self.0.table.size_in_bytes()
    }

    #[inline(always)]
    fn place(self, hash: u64) -> (u64, u64) {
        self.0.place(hash)
    }

    #[inline(always)]
    fn prefetch(self, (quotient, _): (u64, u64)) {
        self.0.table.prefetch_near(quotient);
    }

    #[inline(always)]
    fn probe<B: Bits>(self, bits: B, (quotient, value): (u64, u64)) -> bool {
        self.0.table.contains(bits, quotient, value)
    }
}

impl Leveled for Multiset {
    type Answer = bool;

    #[inline(always)]
    fn look_up<B: Bits>(&self, bits: B, hash: u64) -> bool {
        let reader = Reader(self.base.view());
        let place = reader.place(hash);
        reader.prefetch(place);
        reader.probe(bits, place)
    }
}

impl Filter for Multiset {
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
        self.base.table.size_in_bytes() + self.upper.table.size_in_bytes()
    }

    /// The share of numbers that are held.
    fn fpr(&self) -> f64 {
        self.distinct as f64 / self.range() as f64
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        let reader = Reader(self.base.view());
        reader.prefetch(reader.place(hash));
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::ring(Some(Reader(self.base.view())), hashes, out);
    }
}

impl Insert for Multiset {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        quotient::insert(self, hash)
    }

    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), Full> {
        quotient::insert_batch(self, hashes)
    }
}

impl Remove for Multiset {
    fn remove(&mut self, hash: u64) -> bool {
        quotient::remove(self, hash)
    }
}

impl Count for Multiset {
    fn count(&self, hash: u64) -> u64 {
        let number = self.number(hash);
        let copies = self.base.group(Portable, number).len;
        let Some(low) = digit_of(copies) else {
            return 0;
        };
        let upper = self.upper.group(Portable, number);
        let columns = (1..MOST_COLUMNS).map_while(|column| {
            let digit = self.upper_digit(upper.at, upper.len, column)?;
            Some(i128::from(digit) << column)
        });
        let value = i128::from(low) + columns.sum::<i128>();
        u64::try_from(value).unwrap_or(1).max(1)
    }
}

impl Merge for Multiset {
    /// Adds the counts, in one pass over both, whatever slots they have.
    fn merge(&mut self, other: &Multiset) -> Result<(), MergeError> {
        let ((slots, bits), (their_slots, their_bits)) = (self.split, other.split);
        MergeError::unless_equal("slots", slots, their_slots)?;
        MergeError::unless_equal("bits", u64::from(bits), u64::from(their_bits))?;
        let full = |kind| MergeErrorKind::Full(self.full(kind));
        let len = self.len.checked_add(other.len);
        len.ok_or_else(|| full(FullKind::Duplicates(u64::MAX)))?;
        let both = || counts::added(merged([Counts::new(self), Counts::new(other)]));
        let union = Multiset::of(self.split, both);
        *self = union.map_err(|e| MergeErrorKind::Full(e.into_full(self.len)))?;
        Ok(())
    }
}

impl Kind for Multiset {
    const ABOUT: &'static str = "the optimal replacement as it was proved: keys come and go and are counted in n·log 1/ε + O(n) bits";
    const PARAMS: &'static [Param] = &[Param {
        name: option::BITS.name,
        values: "1 to 57",
        default: "the fewest for the rate",
        about: "bits of a rest at capacity: more make the rate lower",
    }];

    /// The capacity counts distinct keys.
    fn build(config: &Config, hashes: &mut [u64]) -> Result<Multiset, BuildError> {
        hashes.sort_unstable();
        let runs = || hashes.chunk_by(|a, b| a == b);
        let (keys, fpr) = config.check_for(Self::INFO, runs().count() as u64)?;
        let needed = math::quotient_bits(LOAD, fpr);
        let least = math::quotient_fpr(1.0, MOST_BITS);
        let bits = config.bits::<Self>(BITS, needed, least)?;
        let (slots, most) = (Table::quotients_for(keys), Table::most_quotients(bits));
        if slots > most {
            let (unit, needed) = ("slots", slots as f64);
            return Err(BuildErrorKind::TooLarge { unit, needed, most }.into());
        }
        let bound = slots << bits;
        let number = |hash: u64| fastrange(hash, bound).0;
        let counts = || counts::added(runs().map(|run| (number(run[0]), run.len() as u64)));
        let len = hashes.len() as u64;
        Multiset::of((slots, bits), counts).map_err(|e| e.into_full(len).into())
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("slots", self.split.0);
        out.param("bits", u64::from(self.split.1));
        let (base, upper) = (&self.base, &self.upper);
        let state = [
            u64::from(base.step()),
            base.table.used(),
            u64::from(upper.step()),
            upper.table.used(),
            self.distinct,
        ];
        out.made(state.iter().flat_map(|word| word.to_le_bytes()).collect());
        base.table.encode(out);
        upper.table.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Multiset, DecodeError> {
        let split = super::rank_select::read_split(input)?;
        let state: Buf<u64> = input.section("state", 5)?;
        let (base, upper) = made(split);
        let filter = Multiset {
            base: base.decode(input, state[0], state[1])?,
            upper: upper.decode(input, state[2], state[3])?,
            split,
            distinct: state[4],
            len: input.len(),
        };
        if input.is_verified() {
            filter.check()?;
        }
        Ok(filter)
    }
}

impl Multiset {
    /// Refuses lists that are not in order, digits that are no count, and sums that are not theirs.
    fn check(&self) -> Result<(), DecodeError> {
        self.base.numbers().finish()?;
        self.upper.numbers().finish()?;
        let mut counts = Counts::new(self);
        while counts.next().is_some() {}
        if let Some(number) = counts.fault {
            let expected = "digits of a count, the highest 1, no two neighbours of opposite signs";
            return Err(DecodeError::invalid("digits", number, expected));
        }
        if counts.distinct != self.distinct {
            let expected = format!("{}, the numbers held", counts.distinct);
            return Err(DecodeError::invalid("distinct", self.distinct, expected));
        }
        if counts.len != self.len {
            let expected = format!("{}, the sum of all counts", counts.len);
            return Err(DecodeError::invalid("keys", self.len, expected));
        }
        Ok(())
    }
}

/// How many lines of 64 bytes a lookup of this hash reads: for tests and the bench.
pub fn lines_read(filter: &Multiset, hash: u64) -> usize {
    let (quotient, _) = filter.base.view().place(hash);
    let (view, bits) = (filter.base.table.view(), filter.base.table.bits() as usize);
    let block = |slot: u64| slot as usize / 64 * (17 + 8 * bits);
    let mut bytes = vec![block(quotient), block(quotient) + 16];
    if view.is_occupied(quotient) {
        let (start, end) = view.run(Portable, quotient);
        for slot in start..end {
            // A run that goes on in another block is found by the run ends there.
            let (head, value) = (block(slot), slot as usize % 64 * bits / 8 + 17);
            bytes.extend([head, head + 16, head + value, head + value + 7]);
        }
    }
    let mut lines: Vec<usize> = bytes.into_iter().map(|byte| byte / 64).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.len()
}

/// How many digits a step of this hash's counter reads, up (1) or down (−1): for tests and the
/// bench.
pub fn digits_read(filter: &Multiset, hash: u64, sign: i8) -> u32 {
    let number = filter.number(hash);
    let (base, upper) = (&filter.base, &filter.upper);
    let (low, columns) = (base.group(Portable, number), upper.group(Portable, number));
    let mut read = 0;
    step(sign, |column| {
        read += 1;
        match column {
            0 => digit_of(low.len),
            _ => filter.upper_digit(columns.at, columns.len, column),
        }
    });
    read
}

#[cfg(test)]
mod tests;
