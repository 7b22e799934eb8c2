//! The quotient filter: fingerprints in order, of which only the low part is stored.
//!
//! The essay is at [`Quotient`].

use super::sequence::{Entries, Sink, Source, Writer};
use super::table::{LOAD, MOST_BITS, NoRoom, Table, View, check_used, invalid};
use super::{OnTable, Split, Unwritten, doubled, fitting, merged};
use crate::bits::low_mask;
use crate::config::{Config, Param};
use crate::error::{
    BuildError, BuildErrorKind, DecodeError, Full, FullKind, MergeError, MergeErrorKind,
};
use crate::filter::{Count, Filter, Halve, Insert, Kind, Merge, Remove};
use crate::format::{Decoder, Encoder};
use crate::lookup::{self, Leveled, NEAR, Ring};
use crate::math;
use crate::option;
use crate::quotient;
use crate::simd::{Bits, Portable};

/// A quotient filter: insert, remove, count, merge, list, and change the number of slots.
///
/// ```
/// use tamis::{Config, Keyed, Quotient};
///
/// let mut seen: Keyed<Quotient> = Keyed::new(&Config::new(10_000).fpr(0.001))?;
/// seen.insert("alice")?;
/// seen.insert("bob")?;
/// assert!(seen.remove("alice"));
/// assert!(seen.contains("bob") && !seen.contains("alice"));
///
/// // What it holds can be listed, and moved to a table of twice the slots, without any key.
/// assert_eq!(seen.filter().fingerprints().count(), 1);
/// let larger = seen.filter().double()?;
/// assert!(larger.fingerprints().eq(seen.filter().fingerprints()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// A fingerprint is the first bits of a hash. Its high part, the *quotient*, is the number of the
/// slot where it wants to stand; only the low part, the *remainder*, is stored. Where several
/// fingerprints want one slot, they are moved on, in order, as in linear probing. Two bits a slot
/// say which quotients have a run of remainders and where runs end, so that each remainder can be
/// given back its quotient:
///
/// ```text
///  slot          0  1  2  3  4  5  6  7  8  9
///  occupieds     0  1  0  1  1  0  0  0  1  0     quotients that have a run: 1, 3, 4, 8
///  runends       0  0  1  0  0  1  1  0  1  0     slots in which a run ends:  2, 5, 6, 8
///  remainders    ·  a  b  c  d  e  f  ·  g  ·     1: a b    3: c d e    4: f    8: g
///
///  a block    ┌────────┬─────────────┬─────────────┬───────────────────────────────┐
///             │ offset │  occupieds  │   runends   │  64 remainders of r bits each │
///             └────────┴─────────────┴─────────────┴───────────────────────────────┘
///              1 byte     8 bytes        8 bytes        8·r bytes
/// ```
///
/// # Lookup
///
/// If the quotient has no run, no. Otherwise the ones of `occupieds` up to it say how many runs of
/// the block end before or with its own, and the one of `runends` with that number, counted from
/// the block's offset, is where its run ends. Then the remainders of the run are compared. All of
/// it lies in one or two adjacent lines; in a mapped file that is one page.
///
/// # Insert and remove
///
/// The remainder is put in its place in the run, and everything from there to the next free slot
/// moves on by one, in whole words. To remove is the inverse. A free slot is all zeros, so that the
/// bytes depend on what the filter holds and not on how it came there; only the slots that a merge
/// or [`double`](Quotient::double) has added stay.
///
/// # What no other table can do
///
/// The fingerprints are whole, and in order ([`fingerprints`](Quotient::fingerprints)). So two
/// filters merge in one sequential pass over both, on disk if need be; and as the border between
/// quotient and remainder is only a way of writing the fingerprint, a filter takes twice the slots
/// ([`double`](Quotient::double)) or half of them ([`shrink`](Quotient::shrink)) by moving it by
/// one bit, and the rate stays as it is. Where a filter may err more, [`halve`](Halve::halve) gives
/// up a bit of each fingerprint and half the slots.
///
/// # On disk
///
/// Filters larger than memory are what quotient filters were made for, and two things suffice.
///
/// A lookup reads one place. In a file that is mapped ([`Mapped`](crate::Mapped), advised by
/// [`random`](crate::Mapped::random), and opened with [`verify(false)`](crate::Open::verify), which
/// reads header and footer only) that is 1.013 pages of 4 KiB on average: one, and two where a run
/// stands across their border (`cargo test -p tamis --lib a_lookup_reads_one_page -- --nocapture`).
///
/// Files are lists in order. [`Open::merge_files`](crate::Open::merge_files), and `tamis merge
/// --max-memory`, read them side by side and write the union as they go: the bytes are those of
/// merging in memory, and what is held is a block of 64 KiB of each file and the checksums. Two
/// files of 240 MB, of 100 million keys each, become one in a process that takes 5 MB, and lookups
/// in the result wait for 1.002 pages each (`cargo run --release -p tamis-examples --bin on_disk --
/// 100000000 /var/tmp`; some pages have been read before).
///
/// To insert keys one by one into a file on disk would read and write a page for each. Collect them
/// in a filter in memory, and merge that.
///
/// # Cost
///
/// (r + 2.125)/0.95 bits per key for a rate of 1 − e^(−0.95/2^r): 9.61 bits at 0.74 %, 10.66 at
/// 0.37 %. The remainder is a whole number of bits, so the rate you get is the next below the one
/// you ask for. Any number of slots serves, not only powers of two. Below a rate of 2 % it is
/// smaller than a Bloom filter.
///
/// Runs move on the farther the fuller the table is, so the last keys are the slowest to insert.
/// A filter built from all its keys at once is sorted and written in one pass.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `bits` | 1 to 57 | the fewest for the rate | bits of a remainder: more make the rate lower |
///
/// # When to choose it
///
/// When filters are to be merged, listed, enlarged or kept on disk, and keys may leave. To count
/// copies take [`QuotientCounting`](crate::QuotientCounting); [`Cuckoo`](crate::Cuckoo) is faster
/// and does less.
///
/// # Bibliography
///
/// - Bender, Farach-Colton, Johnson, Kraner, Kuszmaul, Medjedovic, Montes, Shetty, Spillane, Zadok,
///   *Don't thrash: how to cache your hash on flash*, 2012: the quotient filter, and merging and
///   resizing without keys.
/// - Pandey, Bender, Johnson, Patro, *A general-purpose counting filter: making every bit count*,
///   2017: two bits and an offset in place of three bits, rank and select.
/// - Cleary, *Compact hash tables using bidirectional linear probing*, 1984: storing the remainder
///   alone.
#[derive(Clone, Debug)]
pub struct Quotient {
    table: Table,
}

/// Copies of one fingerprint that are kept. More would fill the slots of others: there is
/// [`QuotientCounting`](crate::QuotientCounting) for that.
const MOST_COPIES: u64 = 64;
/// Widths of a remainder.
const BITS: std::ops::RangeInclusive<u64> = 1..=MOST_BITS as u64;
/// Fingerprints that the rate is counted from.
const COUNTED: u64 = 1 << 18;

impl Quotient {
    /// Bits of a remainder.
    pub fn remainder_bits(&self) -> u32 {
        self.table.bits()
    }

    /// Slots that fingerprints want to stand in, one for each quotient.
    pub fn slots(&self) -> u64 {
        self.table.quotients()
    }

    /// The fraction of slots in use.
    pub fn load(&self) -> f64 {
        self.table.used() as f64 / self.slots() as f64
    }

    /// Every fingerprint in ascending order, copies too: quotient · 2^r + remainder, a number below
    /// `slots() << remainder_bits()`. Of a hash h it is ⌊h·slots·2^r / 2⁶⁴⌋.
    pub fn fingerprints(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        Fingerprints::new(self.table.entries())
    }

    /// The same fingerprints in twice the slots, with remainders that are one bit shorter: room for
    /// as many again. The rate stays what it is, and grows with the keys that come.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when remainders have a single bit, or memory is short.
    pub fn double(&self) -> Result<Quotient, BuildError> {
        let bits = self.table.bits();
        if bits == 1 {
            let expected = "2 bits or more, of which one becomes part of the quotient";
            return Err(BuildError::parameter("bits", bits, expected));
        }
        Quotient::of(2 * self.slots(), bits - 1, self.fingerprints())
    }

    /// The same fingerprints in half the slots, with remainders that are one bit longer: the
    /// inverse of [`double`](Self::double), for when keys have left. The rate stays what it is.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the number of slots is odd, half of them do not hold the fingerprints,
    /// or memory is short.
    pub fn shrink(&self) -> Result<Quotient, BuildError> {
        let bits = self.table.bits();
        if bits == MOST_BITS {
            let expected = format!("fewer than {MOST_BITS} bits, as one more is to be stored");
            return Err(BuildError::parameter("bits", bits, expected));
        }
        Quotient::of(self.half()?, bits + 1, self.fingerprints())
    }

    /// Half the slots.
    fn half(&self) -> Result<u64, BuildError> {
        let slots = self.slots();
        if slots.is_multiple_of(2) {
            Ok(slots / 2)
        } else {
            let expected = "an even number, to be halved";
            Err(BuildError::parameter("slots", slots, expected))
        }
    }

    /// The filter of these fingerprints, which come in order.
    fn of(
        slots: u64,
        bits: u32,
        fingerprints: impl Iterator<Item = u64>,
    ) -> Result<Quotient, BuildError> {
        let mut writer = Writer::new(Table::new(slots, bits)?);
        match write(&mut writer, fingerprints) {
            Ok(()) => Ok(Quotient {
                table: writer.finish(),
            }),
            Err(e) => Err(e.into_full(writer.written()).into()),
        }
    }

    pub(super) fn split(&self) -> Split {
        (self.slots(), self.table.bits())
    }

    fn full(&self, kind: FullKind) -> Full {
        Full::new(kind, self.table.used())
    }
}

/// Writes fingerprints, which come in order.
pub(super) fn write<S: Sink>(
    writer: &mut Writer<S>,
    fingerprints: impl Iterator<Item = u64>,
) -> Result<(), Unwritten> {
    let (_, bits) = writer.split();
    let mut copies = Copies::default();
    for fingerprint in fingerprints {
        if copies.count(fingerprint) > MOST_COPIES {
            return Err(Unwritten::Full(FullKind::Duplicates(MOST_COPIES)));
        }
        writer.add(fingerprint >> bits, fingerprint & low_mask(bits))?;
    }
    Ok(())
}

/// The shape of a union, before it takes more slots: that of the filter which has taken more.
pub(super) fn common(ours: Split, theirs: Split) -> Result<Split, MergeError> {
    if ours.0 << ours.1 != theirs.0 << theirs.1 {
        MergeError::unless_equal("slots", ours.0, theirs.0)?;
        MergeError::unless_equal("bits", u64::from(ours.1), u64::from(theirs.1))?;
    }
    Ok(ours.max(theirs))
}

/// Reads the shape of a file's filter.
pub(super) fn read_split(input: &mut Decoder<'_>) -> Result<Split, DecodeError> {
    let slots = input.param("slots")?;
    let bits = input.param_in("bits", BITS)? as u32;
    let most = Table::most_quotients(bits);
    if !(1..=most).contains(&slots) {
        let expected = format!("1 to {most}");
        return Err(DecodeError::invalid("slots", slots, expected));
    }
    Ok((slots, bits))
}

pub(super) fn encode_split((slots, bits): Split, out: &mut Encoder<'_>) {
    out.param("slots", slots);
    out.param("bits", u64::from(bits));
}

/// The fingerprints of a table in order, which is checked on the way.
#[derive(Clone)]
pub(super) struct Fingerprints<S> {
    entries: Entries<S>,
    copies: Copies,
    /// The first that is not in order, or comes too often.
    fault: Option<u64>,
}

impl<S: Source> Fingerprints<S> {
    pub(super) fn new(entries: Entries<S>) -> Fingerprints<S> {
        Fingerprints {
            entries,
            copies: Copies::default(),
            fault: None,
        }
    }

    /// Reads what is left, and tells whether the table is in order and holds so many fingerprints.
    pub(super) fn finish(mut self, len: u64) -> (S, Result<(), DecodeError>) {
        while self.next().is_some() {}
        let (source, used) = self.entries.finish();
        let checked = used.and_then(|used| check_used(used, len));
        let checked = match (checked, self.fault) {
            (Ok(()), Some(fingerprint)) => {
                let expected =
                    format!("runs in order, each fingerprint {MOST_COPIES} times at most");
                Err(DecodeError::invalid("remainder", fingerprint, expected))
            }
            (checked, _) => checked.map_err(invalid),
        };
        (source, checked)
    }
}

impl<S: Source> Iterator for Fingerprints<S> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let entry = self.entries.next()?;
        let fingerprint = entry.quotient << self.entries.bits() | entry.value;
        let in_order = self.copies.last <= Some(fingerprint);
        if !in_order | (self.copies.count(fingerprint) > MOST_COPIES) {
            self.fault.get_or_insert(fingerprint);
        }
        Some(fingerprint)
    }
}

/// How often each of a sorted list of fingerprints has come.
#[derive(Clone, Copy, Default)]
struct Copies {
    last: Option<u64>,
    copies: u64,
}

impl Copies {
    #[inline(always)]
    fn count(&mut self, fingerprint: u64) -> u64 {
        if self.last != Some(fingerprint) {
            *self = Copies {
                last: Some(fingerprint),
                copies: 0,
            };
        }
        self.copies += 1;
        self.copies
    }
}

/// The first fingerprints of a filter, to find how many of all are copies.
#[derive(Default)]
pub(super) struct Sample {
    held: u64,
    distinct: u64,
    last: Option<u64>,
}

impl Sample {
    pub(super) fn add(&mut self, fingerprint: u64) {
        if self.held < COUNTED {
            self.held += 1;
            self.distinct += u64::from(self.last != Some(fingerprint));
            self.last = Some(fingerprint);
        }
    }

    /// The rate of a filter of so many fingerprints.
    pub(super) fn fpr(&self, len: u64, (slots, bits): Split) -> f64 {
        if self.held == 0 {
            return 0.0;
        }
        let all = len as f64 * self.distinct as f64 / self.held as f64;
        all / (slots as f64 * f64::from(bits).exp2())
    }
}

/// The table, for looking up.
#[derive(Clone, Copy)]
struct Reader<'a>(View<'a>);

impl Ring for Reader<'_> {
    const PREFETCH_FROM: usize = NEAR;
    /// Quotient and remainder.
    type Place = (u64, u64);
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        self.0.size_in_bytes()
    }

    #[inline(always)]
    fn place(self, hash: u64) -> (u64, u64) {
        self.0.place(hash)
    }

    #[inline(always)]
    fn prefetch(self, (quotient, _): (u64, u64)) {
        self.0.prefetch_near(quotient);
    }

    #[inline(always)]
    fn probe<B: Bits>(self, bits: B, (quotient, value): (u64, u64)) -> bool {
        self.0.contains(bits, quotient, value)
    }
}

impl Leveled for Quotient {
    type Answer = bool;

    #[inline(always)]
    fn look_up<B: Bits>(&self, bits: B, hash: u64) -> bool {
        let view = self.table.view();
        let (quotient, value) = view.place(hash);
        view.prefetch_near(quotient);
        view.contains(bits, quotient, value)
    }
}

impl Filter for Quotient {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        lookup::single(self, hash)
    }

    fn len(&self) -> u64 {
        self.table.used()
    }

    fn size_in_bytes(&self) -> usize {
        self.table.size_in_bytes()
    }

    /// The share of fingerprints that are held, each once however many copies there are. Of a large
    /// table a part is counted, to find how many are copies.
    fn fpr(&self) -> f64 {
        let mut sample = Sample::default();
        let some = self.len().min(COUNTED) as usize;
        self.fingerprints()
            .take(some)
            .for_each(|fingerprint| sample.add(fingerprint));
        sample.fpr(self.len(), self.split())
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        let view = self.table.view();
        view.prefetch_near(view.place(hash).0);
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::ring(Some(Reader(self.table.view())), hashes, out);
    }
}

impl OnTable for Quotient {
    #[inline(always)]
    fn insert_one<B: Bits>(&mut self, bits: B, hash: u64) -> Result<(), Full> {
        if self.table.room() == 0 {
            return Err(self.full(FullKind::Capacity));
        }
        let view = self.table.view();
        let (quotient, value) = view.place(hash);
        let (start, end) = view.run(bits, quotient);
        let mut at = start;
        while at < end && view.get(at) < value {
            at += 1;
        }
        if end - at >= MOST_COPIES && view.get(at + MOST_COPIES - 1) == value {
            return Err(self.full(FullKind::Duplicates(MOST_COPIES)));
        }
        let inserted = self
            .table
            .insert_at(bits, quotient, (start, end), at, value);
        inserted.map_err(|NoRoom| self.full(FullKind::Capacity))
    }

    #[inline(always)]
    fn remove_one<B: Bits>(&mut self, bits: B, hash: u64) -> bool {
        let view = self.table.view();
        let (quotient, value) = view.place(hash);
        let run = view.run(bits, quotient);
        let found = view.find(run, value);
        if let Some(at) = found {
            self.table.remove_at(bits, quotient, run, at);
        }
        found.is_some()
    }
}

impl Insert for Quotient {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        quotient::insert(self, hash)
    }

    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), Full> {
        quotient::insert_batch(self, hashes)
    }
}

impl Remove for Quotient {
    fn remove(&mut self, hash: u64) -> bool {
        quotient::remove(self, hash)
    }
}

impl Count for Quotient {
    fn count(&self, hash: u64) -> u64 {
        let view = self.table.view();
        let (quotient, value) = view.place(hash);
        let run = view.run(Portable, quotient);
        let Some(first) = view.find(run, value) else {
            return 0;
        };
        let copies = (first..run.1).take_while(|&slot| view.get(slot) == value);
        copies.count() as u64
    }
}

impl Merge for Quotient {
    /// Both lists of fingerprints in one: a sequential pass. Where they do not fit, the union has
    /// twice the slots, and remainders of one bit less, at the rate that their keys have together.
    /// Filters of which one was doubled already merge likewise.
    fn merge(&mut self, other: &Quotient) -> Result<(), MergeError> {
        let split = common(self.split(), other.split())?;
        let len = self.len().saturating_add(other.len());
        let union = fitting(0..=split.1 - 1, |doublings| {
            let (slots, bits) = doubled(split, doublings);
            if len > Table::most_used(slots) {
                return Err(Unwritten::Full(FullKind::Capacity));
            }
            let mut writer = Writer::new(Table::new(slots, bits)?);
            let both = merged([self.fingerprints(), other.fingerprints()]);
            write(&mut writer, both)?;
            Ok(writer.finish())
        });
        self.table = union.map_err(|e| MergeErrorKind::Full(e.into_full(self.len())))?;
        Ok(())
    }
}

impl Halve for Quotient {
    /// Half the slots for fingerprints that are one bit shorter, as if the keys had been inserted
    /// there. [`shrink`](Quotient::shrink) keeps the bit.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the number of slots is odd, half of them do not hold the fingerprints,
    /// or memory is short.
    fn halve(&self) -> Result<Quotient, BuildError> {
        let fingerprints = self.fingerprints().map(|fingerprint| fingerprint >> 1);
        Quotient::of(self.half()?, self.table.bits(), fingerprints)
    }
}

impl Kind for Quotient {
    const ABOUT: &'static str =
        "keys come and go, filters merge, grow and are listed without keys; good on disk";
    const PARAMS: &'static [Param] = &[Param {
        name: option::BITS.name,
        values: "1 to 57",
        default: "the fewest for the rate",
        about: "bits of a remainder: more make the rate lower",
    }];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Quotient, BuildError> {
        let (keys, fpr) = config.check::<Quotient>(hashes)?;
        let needed = math::quotient_bits(LOAD, fpr);
        let least = math::quotient_fpr(1.0, MOST_BITS);
        let bits = config.bits::<Quotient>(BITS, needed, least)?;
        hashes.sort_unstable();
        // Hashes that are spread evenly fit at once; others may want more than the tail.
        let mut room = keys;
        loop {
            let (slots, most) = (Table::quotients_for(room), Table::most_quotients(bits));
            if slots > most {
                return Err(BuildErrorKind::TooLarge {
                    unit: "slots",
                    needed: slots as f64,
                    most,
                }
                .into());
            }
            let fingerprint =
                |&hash: &u64| ((u128::from(hash) * u128::from(slots)) >> (u64::BITS - bits)) as u64;
            match Quotient::of(slots, bits, hashes.iter().map(fingerprint)) {
                Err(e)
                    if matches!(e.kind(), BuildErrorKind::Full(full)
                        if full.kind() == FullKind::Capacity)
                        && room < 2 * keys =>
                {
                    room += keys / 20 + 4;
                }
                built => return built,
            }
        }
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        encode_split(self.split(), out);
        self.table.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Quotient, DecodeError> {
        let (slots, bits) = read_split(input)?;
        let len = input.len();
        let table = Table::decode_unchecked(input, slots, bits, len)?;
        if input.is_verified() {
            Fingerprints::new(table.entries()).finish(len).1?;
        }
        Ok(Quotient { table })
    }
}

#[cfg(test)]
mod tests;
