//! The prefix filter: sorted fingerprints in half a cache line, of which the greatest go to a
//! spare.
//!
//! The essay is at [`Prefix`].

use crate::bits::{fastrange, mix64};
use crate::buf::Buf;
use crate::chained::RankIndexed;
use crate::config::Config;
use crate::error::{BuildError, BuildErrorKind, DecodeError, Full, MergeError, MergeErrorKind};
use crate::filter::{Filter, Insert, Kind, Merge};
use crate::format::{Decoder, Encoder};
use crate::lookup::{self, Leveled, NEAR, Ring};
use crate::math;
use crate::simd::block::{self, BLOCK, word};
use crate::simd::{self, Bits, Portable};

/// A prefix filter: insert, merge; a lookup reads half a line, and one in eighteen asks a spare.
///
/// ```
/// use tamis::{Config, Keyed, Prefix};
///
/// let mut seen: Keyed<Prefix> = Keyed::new(&Config::new(10_000).fpr(0.01))?;
/// seen.insert("alice")?;
/// assert!(seen.contains("alice"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///   hash ──► pocket, fingerprint = (list, remainder)
///
///   a pocket: 32 bytes      header: 255 − 8·k bits, and a flag      k remainders of 8 bits
///                         ┌────────────────────────────────┬───┬────┬────┬────┬─ … ─┬────┐
///                         │ 0 10 0 110 0 10 0 …            │ 1 │ 5e │ 1f │ a3 │     │ 7c │
///                         └────────────────────────────────┴─┬─┴────┴────┴────┴─ … ─┴────┘
///                           │ │  │ │                         │
///                    list   0 1  2 3 …            more came than fit
///
///   not flagged, or fingerprint ≤ the greatest of the pocket ──► the pocket knows
///       flagged, and fingerprint > the greatest              ──► the spare knows
/// ```
///
/// Keys that are thrown into small bins fill them unevenly. A bin that is too small for its keys
/// has to send some of them elsewhere, and then a lookup that does not find its key in the bin must
/// go there as well. Unless it is known *which* ones were sent. Here a bin, or *pocket*, holds the
/// least fingerprints of all that came to it, a prefix of them in order. So a lookup compares with
/// the greatest, and needs to look at one of both, never at two: if its fingerprint is less it is
/// in the pocket or nowhere, and if it is greater it is in the spare or nowhere.
///
/// With a load of 95 %, 5.9 % of the keys are in the spare, and 5.6 % of lookups go there. The
/// spare is any filter: here one of [`RankIndexed`] hashing, of the same family
/// and small, which knows the fingerprints and pockets of what it was sent.
///
/// # Pockets
///
/// A pocket is a small quotient filter. Its header has for each list as many ones as the list has
/// remainders, and a zero. Where a list begins and ends follows from two zeros, which `pdep` finds,
/// as in [`QuotientVector`](crate::QuotientVector); but the header is one word, and fingerprints
/// are in order, those of a list as well: the greatest of a pocket that is full is in its last
/// list, which the highest one of the header tells, and in its last slot. A fingerprint is held
/// once, however often it came.
///
/// # Insert
///
/// If the pocket has a free slot, it takes the fingerprint. If not, it is flagged, and the greatest
/// of its own and the new one goes to the spare. The spare is asked first: if it has no more room
/// the insertion is refused, and nothing has changed.
///
/// # The shape of a pocket
///
/// The paper's pocket has 25 lists and 25 remainders, and keeps a copy of the last list's number.
/// That follows from the header, so that there is room for 30 lists, which makes the rate lower by
/// a sixth. A remainder more costs nine lists. The number of remainders is chosen by the rate: the
/// one with which a pocket takes the most keys, at a load of 95 % at most.
///
/// | rate asked for | remainders | lists | bits/key | rate | `cuckoo` |
/// |---|---|---|---|---|---|
/// | 1 % | 27 | 12 | 10.63 | 0.85 % | 10.53 |
/// | 2⁻⁸ | 25 | 30 | 11.53 | 0.32 % | 11.58 |
/// | 0.3 % | 24 | 39 | 12.07 | 0.23 % | 12.63 |
/// | 0.2 % | 24 | 39 | 13.51 | 0.20 % | 12.63 |
///
/// (`sizes_are_those_of_the_formula`.)
///
/// # Limits
///
/// No key can leave: what was sent to the spare does not come back when the pocket has room again.
/// A merge takes the least fingerprints of both pockets and sends the others to the spare, which
/// has to have room for them. Remainders have eight bits, so that no rate below 0.12 % can be had.
///
/// # Cost
///
/// 256/λ bits per key, and 0.75 for the spare, at a rate of λ/(b·2⁸) where b is the number of lists
/// and λ ≤ 0.95·k the mean number of keys that come to a pocket. The spare's own errors add 5.6 %
/// of its rate, which is half of the one asked for. A lookup reads one line, and seldom a few
/// more.
///
/// # When to choose it
///
/// For keys that only come, at rates near 2⁻⁸. [`TinySet`](crate::TinySet) is smaller and answers
/// from one line always; [`SplitBlock512`](crate::SplitBlock512) is faster.
///
/// # Bibliography
///
/// - Even, Even, Morrison, *Prefix filter: practically and theoretically better than Bloom*, 2022:
///   pockets, the prefix, and how much goes to the spare.
/// - Einziger, Friedman, *TinySet: an access efficient self adjusting Bloom filter construction*,
///   2017, and Pandey and others, *Vector quotient filters*, 2021: cousins of the pocket.
#[derive(Clone, Debug)]
pub struct Prefix {
    bytes: Buf<u8>,
    shape: Shape,
    spare: RankIndexed,
    len: u64,
}

/// Bytes of a pocket: half a line.
const POCKET: usize = BLOCK / 2;
/// A hash has half its bits left for list and remainder.
const MOST_POCKETS: u64 = 1 << 32;
/// Remainders of a pocket.
const SLOTS: std::ops::RangeInclusive<u64> = 24..=27;
/// The load that a filter is made for.
const LOAD: f64 = 0.95;
/// More lookups than this do not ask the spare at that load.
const ASKED: f64 = 0.06;
/// The spare's rate is this part of the one asked for.
const SPARE: f64 = 0.5;

/// How the 32 bytes of a pocket are divided.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Shape {
    slots: u32,
}

/// The fingerprints of a pocket end with their greatest, and in a list they ascend.
impl Shape {
    #[inline(always)]
    fn lists(self) -> u32 {
        8 * POCKET as u32 - 1 - 9 * self.slots
    }

    /// The first byte that is a remainder.
    #[inline(always)]
    fn first(self) -> u32 {
        POCKET as u32 - self.slots
    }

    /// The flag: the last bit before the remainders.
    #[inline(always)]
    fn flag(self) -> u64 {
        1 << (8 * self.first() - 1)
    }

    /// The shape that takes the most keys in a pocket, and how many in the mean, with which the
    /// rate is kept; `None` where more than half the slots would be empty.
    fn best(fpr: f64) -> Option<(Shape, f64)> {
        let shapes = SLOTS.map(|slots| Shape {
            slots: slots as u32,
        });
        let sized = shapes.filter_map(|shape| {
            let own = fpr * (1.0 - ASKED * SPARE);
            let most = own * f64::from(shape.lists()) * 256.0;
            let slots = f64::from(shape.slots);
            (most >= slots / 2.0).then_some((shape, most.min(LOAD * slots)))
        });
        sized.max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    /// The header of a pocket, and whether its flag is set.
    #[inline(always)]
    fn header(self, pocket: Pocket<'_>) -> (u64, bool) {
        let word = word(pocket.line, pocket.start());
        (word & (self.flag() - 1), word & self.flag() != 0)
    }

    /// Where the slots of a list begin, and where they end: a bit that is alone, at the number of
    /// the first slot and of the first after them.
    #[inline(always)]
    fn list<B: Bits>(self, bits: B, header: u64, list: u32) -> (u64, u64) {
        // The zero that ends the list, and the bit behind the one that ends the list before it:
        // before either there are as many zeros as lists before this one.
        let (zeros, number) = (!header, 1 << list);
        let (start, end) = (bits.one(zeros << 1 | 1, number), bits.one(zeros, number));
        (start >> list, end >> list)
    }

    /// The greatest fingerprint of a pocket with no free slot.
    #[inline(always)]
    fn greatest(self, pocket: Pocket<'_>, header: u64) -> u32 {
        let list = u64::BITS - header.leading_zeros() - self.slots;
        list << 8 | u32::from(pocket.line[pocket.start() + POCKET - 1])
    }

    /// What a pocket says of a fingerprint.
    #[inline(always)]
    fn ask<B: Bits>(self, bits: B, pocket: Pocket<'_>, fingerprint: u32) -> Told {
        let (header, is_flagged) = self.header(pocket);
        if is_flagged && fingerprint > self.greatest(pocket, header) {
            return Told::Elsewhere;
        }
        let (start, end) = self.list(bits, header, fingerprint >> 8);
        let lanes = (end - start) << (pocket.start() as u32 + self.first());
        match block::equal::<1, B>(bits, pocket.line, fingerprint & 0xFF, lanes) {
            0 => Told::Absent,
            _ => Told::Present,
        }
    }

    /// The fingerprints of a pocket, in order.
    fn fingerprints(self, pocket: Pocket<'_>) -> impl Iterator<Item = u32> {
        let header = self.header(pocket).0;
        let ones = (0..self.slots + self.lists()).filter(move |&bit| header >> bit & 1 == 1);
        let remainders = pocket.line[pocket.start() + self.first() as usize..].iter();
        ones.zip(remainders)
            .zip(0..)
            .map(|((bit, &remainder), slot)| (bit - slot) << 8 | u32::from(remainder))
    }

    /// Puts a fingerprint that a pocket does not hold into one of its free slots.
    fn add(self, pocket: &mut [u8; POCKET], fingerprint: u32) {
        let (list, remainder) = (fingerprint >> 8, fingerprint as u8);
        let header = self.read(pocket);
        let (start, end) = self.list(Portable, header, list);
        let (start, end) = (start.trailing_zeros(), end.trailing_zeros());
        let remainders = &mut pocket[self.first() as usize..];
        let listed = &remainders[start as usize..end as usize];
        let slot = start + listed.partition_point(|&other| other < remainder) as u32;
        remainders[slot as usize..].rotate_right(1);
        remainders[slot as usize] = remainder;
        let below = (1 << (list + slot)) - 1;
        let (low, high) = (header & below, header & !below);
        self.write(pocket, low | (below + 1) | high << 1);
    }

    /// Takes the greatest fingerprint out of a pocket with no free slot.
    fn drop_greatest(self, pocket: &mut [u8; POCKET]) {
        let header = self.read(pocket);
        self.write(pocket, header ^ 1 << header.ilog2());
        pocket[POCKET - 1] = 0;
    }

    /// Says that more fingerprints came to a pocket than it holds.
    fn set_flag(self, pocket: &mut [u8; POCKET]) {
        pocket[self.first() as usize - 1] |= 0x80;
    }

    /// The header of a pocket without its flag.
    fn read(self, pocket: &[u8; POCKET]) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&pocket[..8]);
        u64::from_le_bytes(bytes) & (self.flag() - 1)
    }

    /// Replaces the header of a pocket but for its flag.
    fn write(self, pocket: &mut [u8; POCKET], header: u64) {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&pocket[..8]);
        let others = u64::from_le_bytes(bytes) & !(self.flag() - 1);
        pocket[..8].copy_from_slice(&(others | header).to_le_bytes());
    }

    /// Whether a pocket is one that insertions make.
    fn is_sound(self, pocket: Pocket<'_>) -> bool {
        let (header, is_flagged) = self.header(pocket);
        let used = header.count_ones();
        let bits = u64::BITS - header.leading_zeros();
        let free = pocket.line[pocket.start()..][..POCKET].iter();
        let mut free = free.skip((self.first() + used) as usize);
        // The last one has those of the other slots before it, and the ends of other lists.
        used <= self.slots
            && bits < self.lists() + used.max(1)
            && (!is_flagged || used == self.slots)
            && free.all(|&byte| byte == 0)
            && self.fingerprints(pocket).is_sorted_by(|a, b| a < b)
    }
}

/// A pocket in its line.
#[derive(Clone, Copy)]
struct Pocket<'a> {
    line: &'a [u8; BLOCK],
    is_second: bool,
}

impl Pocket<'_> {
    /// Its first byte.
    #[inline(always)]
    fn start(self) -> usize {
        POCKET * usize::from(self.is_second)
    }
}

/// What a pocket says.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Absent,
    Present,
    /// The spare knows.
    Elsewhere,
}

/// Where a key stands.
#[derive(Clone, Copy, Default)]
struct Place {
    pocket: u64,
    /// The list, and in the lowest eight bits the remainder.
    fingerprint: u32,
}

impl Place {
    /// The place of a hash: this filter's geometry.
    #[inline(always)]
    fn of(hash: u64, pockets: u64, shape: Shape) -> Place {
        let (pocket, rest) = fastrange(hash, pockets);
        let (list, rest) = fastrange(rest, u64::from(shape.lists()));
        Place {
            pocket,
            fingerprint: (list << 8 | rest >> 56) as u32,
        }
    }

    /// What the spare knows it by.
    #[inline(always)]
    fn hash(self) -> u64 {
        mix64(self.pocket << 16 | u64::from(self.fingerprint))
    }
}

/// The filter, for looking up.
#[derive(Clone, Copy)]
struct Reader<'a> {
    lines: &'a [[u8; BLOCK]],
    shape: Shape,
    spare: &'a RankIndexed,
}

impl<'a> Reader<'a> {
    #[inline(always)]
    fn pocket(self, pocket: u64) -> Pocket<'a> {
        Pocket {
            line: &self.lines[(pocket / 2) as usize],
            is_second: pocket % 2 == 1,
        }
    }

    fn pockets(self) -> impl Iterator<Item = Pocket<'a>> {
        (0..2 * self.lines.len() as u64).map(move |pocket| self.pocket(pocket))
    }
}

impl Ring for Reader<'_> {
    const WIDE: bool = true;
    const PREFETCH_FROM: usize = NEAR;
    type Place = Place;
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        size_of_val(self.lines)
    }

    #[inline(always)]
    fn place(self, hash: u64) -> Place {
        Place::of(hash, 2 * self.lines.len() as u64, self.shape)
    }

    #[inline(always)]
    fn prefetch(self, place: Place) {
        simd::prefetch(self.lines, (place.pocket / 2) as usize);
    }

    #[inline(always)]
    fn probe<B: Bits>(self, bits: B, place: Place) -> bool {
        let pocket = self.pocket(place.pocket);
        match self.shape.ask(bits, pocket, place.fingerprint) {
            Told::Elsewhere => self.spare.contains(place.hash()),
            told => told == Told::Present,
        }
    }
}

impl Prefix {
    /// Remainders that the pockets hold; the filter is sized so that its capacity is 95 % of them,
    /// and less where the rate asks for it.
    pub fn slots(&self) -> u64 {
        self.pockets() * u64::from(self.shape.slots)
    }

    /// How many fingerprints are in the spare.
    pub fn spared(&self) -> u64 {
        self.spare.len()
    }

    fn with_shape(pockets: u64, shape: Shape, spare: RankIndexed) -> Result<Prefix, BuildError> {
        Ok(Prefix {
            bytes: Buf::zeroed(pockets * POCKET as u64)?,
            shape,
            spare,
            len: 0,
        })
    }

    fn pockets(&self) -> u64 {
        (self.bytes.len() / POCKET) as u64
    }

    #[inline(always)]
    fn reader(&self) -> Reader<'_> {
        Reader {
            lines: self.bytes.as_chunks().0,
            shape: self.shape,
            spare: &self.spare,
        }
    }

    /// Inserts a fingerprint, or says why not, having changed nothing.
    fn put(&mut self, place: Place) -> Result<(), Full> {
        let Place {
            pocket,
            fingerprint,
        } = place;
        let shape = self.shape;
        let held = self.reader().pocket(pocket);
        match shape.ask(Portable, held, fingerprint) {
            Told::Present => return Ok(()),
            Told::Elsewhere => return self.send(place),
            Told::Absent => {}
        }
        let header = shape.header(held).0;
        if header.count_ones() < shape.slots {
            shape.add(self.pocket_mut(pocket), fingerprint);
            return Ok(());
        }
        let greatest = shape.greatest(held, header);
        self.send(Place {
            pocket,
            fingerprint: greatest.max(fingerprint),
        })?;
        let held = self.pocket_mut(pocket);
        shape.set_flag(held);
        if fingerprint < greatest {
            shape.drop_greatest(held);
            shape.add(held, fingerprint);
        }
        Ok(())
    }

    fn pocket_mut(&mut self, pocket: u64) -> &mut [u8; POCKET] {
        &mut self.bytes.make_mut().as_chunks_mut().0[pocket as usize]
    }

    /// Sends a fingerprint to the spare, which holds it once.
    fn send(&mut self, place: Place) -> Result<(), Full> {
        let hash = place.hash();
        if self.spare.contains(hash) {
            return Ok(());
        }
        let sent = self.spare.insert(hash);
        sent.map_err(|full| Full::new(full.kind(), self.len))
    }
}

impl Leveled for Prefix {
    type Answer = bool;
    const WIDE: bool = true;

    #[inline(always)]
    fn look_up<B: Bits>(&self, bits: B, hash: u64) -> bool {
        let reader = self.reader();
        reader.probe(bits, reader.place(hash))
    }
}

impl Filter for Prefix {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        lookup::single(self, hash)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.bytes.size_in_bytes() + self.spare.size_in_bytes()
    }

    /// The share of pairs of pocket and fingerprint that are answered yes: those that the pockets
    /// hold and those that the spare was sent, counted, and of the others that the spare is asked
    /// for as many as it errs.
    fn fpr(&self) -> f64 {
        let (shape, reader) = (self.shape, self.reader());
        let all = f64::from(shape.lists() << 8);
        let (mut held, mut asked) = (0, 0.0);
        for pocket in reader.pockets() {
            let (header, is_flagged) = shape.header(pocket);
            held += u64::from(header.count_ones());
            if is_flagged {
                asked += all - 1.0 - f64::from(shape.greatest(pocket, header));
            }
        }
        let sent = self.spare.distinct() as f64;
        let yes = held as f64 + sent + (asked - sent).max(0.0) * self.spare.fpr();
        yes / (self.pockets() as f64 * all)
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        let reader = self.reader();
        simd::prefetch_near(reader.lines, (reader.place(hash).pocket / 2) as usize);
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::ring(Some(self.reader()), hashes, out);
    }
}

impl Insert for Prefix {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        self.put(self.reader().place(hash))?;
        self.len = self.len.saturating_add(1);
        Ok(())
    }
}

impl Merge for Prefix {
    /// Inserts the fingerprints of the other's pockets, and joins the spares. A pocket that has
    /// sent some away has no free slot, so that of a union neither.
    fn merge(&mut self, other: &Prefix) -> Result<(), MergeError> {
        MergeError::unless_equal("pockets", self.pockets(), other.pockets())?;
        let (ours, theirs) = (self.shape.slots, other.shape.slots);
        MergeError::unless_equal("remainders", u64::from(ours), u64::from(theirs))?;
        let mut union = self.clone();
        union.spare.unite(&other.spare)?;
        let full = |full: Full| MergeErrorKind::Full(Full::new(full.kind(), self.len));
        for (held, pocket) in other.reader().pockets().zip(0..) {
            for fingerprint in self.shape.fingerprints(held) {
                union
                    .put(Place {
                        pocket,
                        fingerprint,
                    })
                    .map_err(full)?;
            }
            if self.shape.header(held).1 {
                self.shape.set_flag(union.pocket_mut(pocket));
            }
        }
        union.len = self.len.saturating_add(other.len);
        *self = union;
        Ok(())
    }
}

impl Kind for Prefix {
    const ABOUT: &'static str = "keys that stay, looked up in half a line; what does not fit is in a spare that few lookups ask";

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Prefix, BuildError> {
        let (keys, fpr) = config.check::<Prefix>(hashes)?;
        let (shape, keys_per_pocket) = config.sized::<Prefix, _>(Shape::best)?;
        let needed = 2.0 * (keys as f64 / keys_per_pocket / 2.0).ceil().max(1.0);
        if needed > MOST_POCKETS as f64 {
            return Err(BuildErrorKind::TooLarge {
                unit: "pockets",
                needed,
                most: MOST_POCKETS,
            }
            .into());
        }
        let bits = math::chain_remainder_bits(SPARE * fpr, 1.0).unwrap_or(1);
        let spare = RankIndexed::with_bits(spared(keys, needed, shape), bits.max(1))?;
        let mut filter = Prefix::with_shape(needed as u64, shape, spare)?;
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("pockets", self.pockets());
        out.param("remainders", u64::from(self.shape.slots));
        out.section(&self.bytes);
        self.spare.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Prefix, DecodeError> {
        let pockets = input.param_in("pockets", 2..=MOST_POCKETS)?;
        if !pockets.is_multiple_of(2) {
            return Err(DecodeError::invalid("pockets", pockets, "an even number"));
        }
        let shape = Shape {
            slots: input.param_in("remainders", SLOTS)? as u32,
        };
        let filter = Prefix {
            bytes: input.section("pockets", pockets * POCKET as u64)?,
            shape,
            spare: RankIndexed::read(input)?,
            len: input.len(),
        };
        let (mut held, mut has_sent) = (filter.spare.len(), false);
        for (pocket, index) in filter.reader().pockets().zip(0u64..) {
            if !shape.is_sound(pocket) {
                let expected = "fingerprints in order, zeros behind them, a flag if it is full";
                return Err(DecodeError::invalid("pocket", index, expected));
            }
            let (header, flag) = shape.header(pocket);
            held += u64::from(header.count_ones());
            has_sent |= flag;
        }
        if has_sent == (filter.spare.len() == 0) {
            let expected = "some if a pocket has sent fingerprints away, and none if not";
            let spare = filter.spare.len();
            return Err(DecodeError::invalid(
                "fingerprints in the spare",
                spare,
                expected,
            ));
        }
        if held > filter.len || (held == 0) != (filter.len == 0) {
            let expected = format!("at least {held}, which pockets and spare hold");
            return Err(DecodeError::invalid("keys", filter.len, expected));
        }
        Ok(filter)
    }
}

/// Room in the spare: for what the pockets send in the mean, and six standard deviations more. The
/// number sent by a pocket has a variance of 0.27 for each key, or less.
fn spared(keys: u64, pockets: f64, shape: Shape) -> u64 {
    let keys = keys as f64;
    let pocket_bits = 8 * POCKET as u32;
    let share = math::balanced_overflow(
        pockets * f64::from(pocket_bits) / keys,
        pocket_bits,
        shape.slots,
    );
    let room = if keys > 0.0 {
        share * keys + 6.0 * (0.27 * keys).sqrt()
    } else {
        0.0
    };
    room.ceil().min(keys) as u64
}

#[cfg(test)]
mod tests;
