//! A window over a stream in one table of fingerprints, each with the round in which it came.
//!
//! The essay is at [`SlidingTable`].

use std::time::Duration;

use crate::bits::fastrange;
use crate::buf::Buf;
use crate::config::{Config, Param};
use crate::error::{BuildError, BuildErrorKind, DecodeError, Full, FullKind};
use crate::filter::{Filter, Insert, Kind, Remove, Window};
use crate::format::{Decoder, Encoder};
use crate::lookup::{self, Leveled, NEAR, Ring};
use crate::math;
use crate::quotient::table::{MOST_BITS, NoRoom, Table, View, Within, invalid};
use crate::quotient::{self, OnTable};
use crate::simd::{self, Bits, Op, Portable};
use crate::window::{MOST_GENERATIONS, MOST_SECONDS, PARAMS, nanos, span};

/// A sliding window in one table: the last n insertions are found, older ones leave, keys can be
/// removed.
///
/// ```
/// use tamis::{Config, Keyed, SlidingTable};
///
/// let mut seen: Keyed<SlidingTable> = Keyed::new(&Config::new(1000))?;
/// for i in 0..100_000u64 {
///     seen.insert(&i)?;
/// }
/// assert!((99_000..100_000u64).all(|i| seen.contains(&i)));
/// assert!(seen.remove(&99_999u64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// A [`Quotient`](crate::Quotient) table holds a fingerprint of each insertion and beside it a
/// *stamp*: in which round of a hand it came. The hand goes round the table once while a generation
/// of n/G insertions comes, a part of 128 slots at a time, and takes out what has the stamp that
/// it is about to give again:
///
/// ```text
///            parts that the hand has visited in this round    and those that it has not
///            ┌──────────────────────────────────────────────┬──────────────────────────┐
///  new keys  │ stamp 3                                      │ stamp 2                  │
///  old keys  │ stamps 4, 0, 1, 2: four generations          │ stamps 3, 4, 0, 1        │
///            └──────────────────────────────────────────────┴──────────────────────────┘
///                                                           ▲ stamps of 3 are taken out here,
///  a value is remainder · (G + 1) + stamp                     then the hand gives them anew
/// ```
///
/// So a key stays for G rounds at least and G + 1 at most, nothing has to be compared with a clock,
/// and every value in the table is one that counts: a lookup asks whether the run of the quotient
/// holds a value between two bounds. Parts are visited in an order in which neighbours are far
/// apart, so that no region of the table is fuller than others for long.
///
/// The drawing has the parts in the order of the hand. In the table that order is the parts'
/// numbers with their bits reversed: were they visited from left to right, the slots just before
/// the hand would have to hold n + n/G keys' worth, which is more than there are.
///
/// # Insert, remove
///
/// Every insertion takes a slot, and every few of them the hand visits a part, in one pass over it
/// and the slots that then move back. Of several copies of a fingerprint a removal takes the
/// oldest: whichever key it was meant for, those that are left stay as long as they must. Of one
/// fingerprint eight copies are kept; the next takes the place of the oldest, and then a removal
/// has no effect, as more may have come than are kept, until one of them has left by age.
///
/// Only keys in the window can be removed: one that has left is a stranger, and what is removed in
/// its name may be another's.
///
/// Where insertions are counted, none is refused that comes from hashes spread evenly, however
/// often keys are repeated: eight copies of each, the worst that there is, still fit behind the
/// last slot. Whoever knows the hash can choose keys that all want the same slot, and these are
/// refused ([`Full`]); a secret prevents that.
///
/// # Windows of time
///
/// With `seconds` the hand moves by the caller's clock ([`advance`](Window::advance)). Keys
/// may then come at any pace: the table has room for n + n/G of them, 15.0 bits for each of the
/// window's n at 1 %, and refuses what exceeds that ([`Full`]), never taken at the price of the
/// rate or of the window. [`make_room`](Window::make_room) sends the hand round early
/// instead, and [`covered`](Window::covered) says how far back the answers then reach.
///
/// # Cost
///
/// (1 + 1/2G)·(w + 2.125)/0.93 bits per key of the window, for values of w bits: with 9 of them
/// there are 102 remainders beside 5 stamps, a rate of 0.91 %. A key stays for 1 to 1 + 1/G
/// windows, evenly spread; hence the first factor. At 1 %, all bytes counted, a million keys in
/// the window (`cargo test -p tamis --lib sizes_are_those_of_the_formula`):
///
/// | filter | bits/key | a key leaves within | a lookup reads | removes keys |
/// |---|---|---|---|---|
/// | [`SlidingTable`] | 13.5 | n/4 | one place, of two lines | yes |
/// | [`Sliding`](crate::Sliding) | 16.2 | n/4 | up to k lines | no |
/// | [`AgePartitioned`](crate::AgePartitioned) | 19.7 | n/87 | some of k + l lines | no |
///
/// The theorem of Naor and Yogev has a leading term of 9.4 bits for a slack of n/4
/// (`math::sliding_lower_bound`), from which it differs by a factor that tends to 1. What comes on
/// top here: slots for n + n/2G keys and not for n, a load of 0.93, and two bits a slot to find
/// runs by. More generations take more: 13.9 bits for 8 of them, as stamps need another bit.
/// Windows of a few thousand keys take more, too, as up to 2048 slots are kept behind the last.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `generations` | 1 to 15 | 4 | parts of the window: with 4, keys leave within a quarter of a window |
/// | `seconds` | 1 to 2^32 | the last insertions | a window of time, which the caller's clock moves |
///
/// # When to choose it
///
/// To know whether a key came by lately: deduplication, rate limits, caches' doorkeepers, replay
/// protection. [`Sliding`](crate::Sliding) is larger and spends less on an insertion.
///
/// # Bibliography
///
/// - Naor, Yogev, *Sliding Bloom filters*, 2013, and *Tight bounds for sliding Bloom filters*,
///   2015: the contract, the lower bound, and a dictionary of fingerprints with coarse time stamps
///   that reaches it.
/// - Pandey, Bender, Johnson, Patro, *A general-purpose counting filter: making every bit count*,
///   2017: the table.
#[derive(Clone, Debug)]
pub struct SlidingTable {
    /// Of each quotient the values in order: remainder · stamps + stamp.
    table: Table,
    /// What changes from insertion to insertion; see [`RING`] and those after it.
    state: Buf<u64>,
    /// Quotients that hashes choose: the table has a few more, which only take what runs move on.
    slots: u64,
    /// Remainders that hashes choose.
    remainders: u64,
    /// Stamps that a copy may have, one more than the window has generations.
    stamps: u64,
    /// Insertions in a generation.
    share: u64,
    /// The window in seconds; 0 where it is counted in insertions.
    seconds: u64,
    /// A round of the hand has 2^this visits.
    round: u32,
    /// Visits of the hand at an insertion, in 2⁶⁴ths.
    stride: u128,
}

/// Where `state` holds the stamp that the hand takes out, and gives what comes behind it.
const RING: usize = 0;
/// Insertions since the hand began its round; in a window of time, its visits.
const TURN: usize = 1;
/// The last reading of the clock, in nanoseconds.
const CLOCK: usize = 2;
/// From here on a word for each generation: when keys were last forgotten before their time, the
/// latest first, each as the reading from which on that has no effect; 0 for none.
const FORGOTTEN: usize = 3;

/// The most copies of a fingerprint that are kept.
const MOST_COPIES: usize = 8;
/// The load that the table is sized for.
const LOAD: f64 = 0.93;
/// Quotients that the hand visits at once.
const SWEPT: u64 = 128;
/// The most slots, and the most fingerprints: fewer than there are hashes.
const MOST_SLOTS: u64 = 1 << 58;
const MOST_FINGERPRINTS: u64 = 1 << 62;

/// Quotients after those that hashes choose.
///
/// Where every key is held [`MOST_COPIES`] times, runs move on that many times as far, and the
/// table's own tail would be too short.
fn spare(slots: u64) -> u64 {
    (10 * slots.isqrt()).min(1536)
}

/// The most insertions that a window of these generations holds, n + n/G; where they are counted,
/// only half of the last n/G on average, and hardly ever four standard deviations more.
fn room(share: u64, generations: u32, seconds: u64) -> u64 {
    let most = if seconds > 0 {
        share
    } else {
        share.min((share / 2).saturating_add(4 * share.isqrt()))
    };
    share
        .saturating_mul(u64::from(generations))
        .saturating_add(most)
}

impl SlidingTable {
    fn empty(shape: Shape, table: Table, state: Buf<u64>) -> SlidingTable {
        let Shape {
            slots,
            remainders,
            generations,
            share,
            seconds,
        } = shape;
        let round = slots.div_ceil(SWEPT).next_power_of_two().ilog2();
        SlidingTable {
            table,
            state,
            slots,
            remainders,
            stamps: u64::from(generations) + 1,
            share,
            seconds,
            round,
            stride: (1 << (64 + round)) / u128::from(share) + 1,
        }
    }

    /// How many generations the window has.
    pub fn generations(&self) -> u32 {
        self.stamps as u32 - 1
    }

    /// The insertions that a window holds: the last so many are found, if the window is not one
    /// of time.
    pub fn window(&self) -> u64 {
        self.share.saturating_mul(self.stamps - 1)
    }

    /// The fraction of slots in use.
    pub fn load(&self) -> f64 {
        self.table.used() as f64 / self.slots as f64
    }

    /// Takes the first reading of the clock: all that is held counts as inserted now, and what was
    /// forgotten to make room as forgotten now.
    fn start(&mut self, now: u64) {
        let state = self.state.make_mut();
        state[CLOCK] = now;
        for forgotten in state[FORGOTTEN..].iter_mut().filter(|at| **at > 0) {
            *forgotten = now.saturating_add(1);
        }
    }

    /// Visits of the hand until a reading, by the clock.
    fn visits_until(&self, nanos: u64) -> u128 {
        let window = u128::from(self.seconds) * 1_000_000_000;
        let visits = u128::from(self.stamps - 1) << self.round;
        u128::from(nanos) * visits / window
    }

    /// The turns in which the hand goes round once.
    fn turns(&self) -> u64 {
        match self.seconds {
            0 => self.share,
            _ => 1 << self.round,
        }
    }

    /// Visits that the hand has made in its round after so many turns.
    #[inline(always)]
    fn visits(&self, turn: u64) -> u64 {
        match self.seconds {
            0 => ((u128::from(turn) * self.stride) >> 64) as u64,
            _ => turn,
        }
    }

    /// When the hand visits a part of the table in its round, and the part that it visits then:
    /// the bits in reverse, so that parts that are near each other are visited at times that are
    /// not. The last visits of a round may be to parts beyond the end.
    #[inline(always)]
    fn visit_of(&self, part: u64) -> u64 {
        // Not by 64 where there is one part.
        (part.reverse_bits() >> 1) >> (63 - self.round)
    }

    /// The stamp of what comes to a quotient now: the hand's where it has been in this round, and
    /// elsewhere that of the round before.
    #[inline(always)]
    fn stamp_at(&self, quotient: u64) -> u64 {
        let ring = self.state[RING];
        if self.visit_of(quotient / SWEPT) < self.visits(self.state[TURN]) {
            ring
        } else if ring == 0 {
            self.stamps - 1
        } else {
            ring - 1
        }
    }

    /// The most slots that may be in use.
    fn most_used(&self) -> u64 {
        let most = Table::most_used(self.table.quotients());
        if self.seconds > 0 {
            most.min(room(self.share, self.generations(), self.seconds))
        } else {
            most
        }
    }

    fn is_full(&self) -> bool {
        self.table.used() >= self.most_used()
    }

    fn full(&self, kind: FullKind) -> Full {
        Full::new(kind, self.table.used())
    }

    /// Moves the hand on, and takes out what it meets for the last time.
    fn turn_by(&mut self, turns: u64) {
        struct Turn<'a>(&'a mut SlidingTable, u64);
        impl Op for Turn<'_> {
            type Out = ();

            #[inline(always)]
            fn run<B: Bits>(self, bits: B) {
                self.0.turn(bits, self.1);
            }
        }
        simd::dispatch(Turn(self, turns));
    }

    #[inline(always)]
    fn turn<B: Bits>(&mut self, bits: B, mut turns: u64) {
        let round = self.turns();
        if turns / round >= self.stamps {
            self.table.clear();
            turns = 0;
        }
        while turns > 0 {
            let turn = self.state[TURN];
            let next = turn + turns.min(round - turn);
            for visit in self.visits(turn)..self.visits(next).min(1 << self.round) {
                self.sweep(bits, SWEPT * self.visit_of(visit));
            }
            turns -= next - turn;
            let state = self.state.make_mut();
            state[TURN] = next;
            if next == round {
                state[TURN] = 0;
                state[RING] = (state[RING] + 1) % self.stamps;
            }
        }
        self.settle();
    }

    /// An empty filter is as a new one, wherever its hand was.
    fn settle(&mut self) {
        if self.table.used() == 0 {
            let state = self.state.make_mut();
            (state[RING], state[TURN]) = (0, 0);
        }
    }

    /// Takes out the copies with the hand's stamp from a part of the table.
    #[inline(always)]
    fn sweep<B: Bits>(&mut self, bits: B, from: u64) {
        let to = (from + SWEPT).min(self.slots);
        if from >= to {
            return;
        }
        let (stamp, stamps) = (self.state[RING], self.stamps);
        // By the inverse: a value is below 2⁵⁷, and there are 16 stamps at most.
        let inverse = u128::from(u64::MAX / stamps + 1);
        let stamp_of = |value: u64| {
            let remainder = (u128::from(value) * inverse) >> 64;
            value.wrapping_sub((remainder as u64).wrapping_mul(stamps))
        };
        let keep = |value: u64| stamp_of(value) != stamp;
        self.table.retain(bits, from, to, keep);
    }

    #[inline(always)]
    fn reader(&self) -> Reader<'_> {
        Reader {
            view: self.table.view(),
            slots: self.slots,
            remainders: self.remainders,
            stamps: self.stamps,
        }
    }

    /// Where a fingerprint's copies are.
    #[inline(always)]
    fn copies<B: Bits>(&self, bits: B, (quotient, least): (u64, u64)) -> Copies {
        let view = self.table.view();
        let run = view.run(bits, quotient);
        let mut first = run.0;
        while first < run.1 && view.get(first) < least {
            first += 1;
        }
        let mut end = first;
        while end < run.1 && view.get(end).wrapping_sub(least) < self.stamps {
            end += 1;
        }
        Copies { run, first, end }
    }

    /// The slot of the oldest of some copies, of which there is one at least.
    #[inline(always)]
    fn oldest(&self, copies: Copies, (quotient, least): (u64, u64)) -> u64 {
        let (view, newest) = (self.table.view(), self.stamp_at(quotient));
        let age = |slot: u64| {
            let age = newest.wrapping_sub(view.get(slot).wrapping_sub(least));
            age.min(age.wrapping_add(self.stamps))
        };
        let older = |a: u64, b: u64| if age(b) > age(a) { b } else { a };
        (copies.first + 1..copies.end).fold(copies.first, older)
    }

    /// Puts a value in the place of a copy of its fingerprint, and keeps the order.
    #[inline(never)]
    fn renew(&mut self, copies: Copies, oldest: u64, value: u64) {
        let view = self.table.view();
        let mut values = [u64::MAX; MOST_COPIES];
        for (slot, held) in (copies.first..copies.end).zip(&mut values) {
            *held = if slot == oldest {
                value
            } else {
                view.get(slot)
            };
        }
        values.sort_unstable();
        for (slot, value) in (copies.first..copies.end).zip(values) {
            self.table.set(slot, value);
        }
    }

    /// How many fingerprints are held, and how many of them as often as can be.
    fn count(&self) -> (u64, u64) {
        let (mut held, mut most, mut last, mut copies) = (0, 0, None, 0);
        for entry in self.table.entries() {
            let fingerprint = (entry.quotient, entry.value / self.stamps);
            copies = if last == Some(fingerprint) {
                copies + 1
            } else {
                1
            };
            last = Some(fingerprint);
            held += u64::from(copies == 1);
            most += u64::from(copies == MOST_COPIES);
        }
        (held, most)
    }
}

/// A quotient's run, and the slots of it that hold the copies of one fingerprint.
#[derive(Clone, Copy)]
struct Copies {
    run: (u64, u64),
    first: u64,
    end: u64,
}

/// What never changes.
#[derive(Clone, Copy)]
struct Shape {
    slots: u64,
    remainders: u64,
    generations: u32,
    share: u64,
    seconds: u64,
}

/// The table, for looking up.
#[derive(Clone, Copy)]
struct Reader<'a> {
    view: View<'a>,
    slots: u64,
    remainders: u64,
    stamps: u64,
}

impl Ring for Reader<'_> {
    const PREFETCH_FROM: usize = NEAR;
    /// The quotient, and the least value of the fingerprint.
    type Place = (u64, u64);
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        self.view.size_in_bytes()
    }

    #[inline(always)]
    fn place(self, hash: u64) -> (u64, u64) {
        let (quotient, rest) = fastrange(hash, self.slots);
        let (remainder, _) = fastrange(rest, self.remainders);
        (quotient, remainder * self.stamps)
    }

    #[inline(always)]
    fn prefetch(self, (quotient, _): (u64, u64)) {
        self.view.prefetch_near(quotient);
    }

    #[inline(always)]
    fn probe<B: Bits>(self, bits: B, (quotient, least): (u64, u64)) -> bool {
        let many = self.stamps;
        self.view.contains(bits, quotient, Within { least, many })
    }
}

impl Leveled for SlidingTable {
    type Answer = bool;

    #[inline(always)]
    fn look_up<B: Bits>(&self, bits: B, hash: u64) -> bool {
        let reader = self.reader();
        reader.probe(bits, reader.place(hash))
    }
}

impl Filter for SlidingTable {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        lookup::single(self, hash)
    }

    /// How many insertions are held: at least the window's, as far as there were so many and none
    /// was removed, and at most the slack more.
    fn len(&self) -> u64 {
        self.table.used()
    }

    fn size_in_bytes(&self) -> usize {
        self.table.size_in_bytes() + self.state.size_in_bytes()
    }

    /// The share of fingerprints that are held.
    fn fpr(&self) -> f64 {
        let (held, _) = self.count();
        held as f64 / (self.slots as f64 * self.remainders as f64)
    }

    /// Fingerprints of which as many copies are held as can be: removing one of their keys has no
    /// effect. They leave by age.
    fn saturated(&self) -> u64 {
        self.count().1
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

impl OnTable for SlidingTable {
    #[inline(always)]
    fn insert_one<B: Bits>(&mut self, bits: B, hash: u64) -> Result<(), Full> {
        let place = self.reader().place(hash);
        let (quotient, least) = place;
        let copies = self.copies(bits, place);
        let value = least + self.stamp_at(quotient);
        if copies.end - copies.first >= MOST_COPIES as u64 {
            self.renew(copies, self.oldest(copies, place), value);
        } else {
            if self.is_full() {
                let kind = match self.seconds {
                    0 => FullKind::Capacity,
                    _ => FullKind::Window(self.most_used()),
                };
                return Err(self.full(kind));
            }
            let view = self.table.view();
            let mut at = copies.first;
            while at < copies.end && view.get(at) < value {
                at += 1;
            }
            let inserted = self.table.insert_at(bits, quotient, copies.run, at, value);
            inserted.map_err(|NoRoom| self.full(FullKind::Capacity))?;
        }
        if self.seconds == 0 {
            self.turn(bits, 1);
        }
        Ok(())
    }

    #[inline(always)]
    fn remove_one<B: Bits>(&mut self, bits: B, hash: u64) -> bool {
        let place = self.reader().place(hash);
        let copies = self.copies(bits, place);
        match copies.end - copies.first {
            0 => return false,
            // More may have come than are kept.
            held if held >= MOST_COPIES as u64 => return true,
            _ => {}
        }
        let oldest = self.oldest(copies, place);
        self.table.remove_at(bits, place.0, copies.run, oldest);
        self.settle();
        true
    }
}

impl Insert for SlidingTable {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        quotient::insert(self, hash)
    }

    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), Full> {
        quotient::insert_batch(self, hashes)
    }
}

impl Remove for SlidingTable {
    fn remove(&mut self, hash: u64) -> bool {
        quotient::remove(self, hash)
    }
}

impl Window for SlidingTable {
    fn touch(&mut self, hash: u64) -> Result<bool, Full> {
        let place = self.reader().place(hash);
        let copies = self.copies(Portable, place);
        let newest = self.stamp_at(place.0);
        let view = self.table.view();
        let is_new = |slot| view.get(slot).wrapping_sub(place.1) == newest;
        if (copies.first..copies.end).any(is_new) {
            return Ok(true);
        }
        self.insert(hash)?;
        Ok(copies.first < copies.end)
    }

    /// Moves the hand by as many slots as belong to the time that has passed.
    fn advance(&mut self, now: Duration) {
        let (now, clock) = (nanos(now), self.state[CLOCK]);
        if self.seconds == 0 || now <= clock {
            return;
        }
        if clock == 0 {
            return self.start(now);
        }
        let turns = self.visits_until(now) - self.visits_until(clock);
        self.state.make_mut()[CLOCK] = now;
        self.turn_by(u64::try_from(turns).unwrap_or(u64::MAX));
    }

    fn now(&self) -> Option<Duration> {
        let clock = self.state[CLOCK];
        (clock > 0).then(|| Duration::from_nanos(clock))
    }

    fn window_time(&self) -> Option<Duration> {
        (self.seconds > 0).then(|| Duration::from_secs(self.seconds))
    }

    /// Sends the hand round before its time; also where insertions are counted.
    fn make_room(&mut self) {
        let held = self.table.used();
        while self.is_full() && self.table.used() == held {
            self.turn_by(self.turns());
            if self.seconds > 0 {
                let state = self.state.make_mut();
                let now = state[CLOCK].saturating_add(1);
                state[FORGOTTEN..].rotate_right(1);
                state[FORGOTTEN] = now;
            }
        }
    }

    fn covered(&self) -> Option<Duration> {
        let window = self.window_time()?;
        let generations = self.generations();
        // Keys that came before the last k rounds too many have as many generations fewer.
        let since = |(k, &forgotten): (u32, &u64)| {
            let fewer = window * (generations - k) / generations;
            let held = Duration::from_nanos(self.state[CLOCK].saturating_sub(forgotten));
            if forgotten == 0 {
                fewer
            } else {
                fewer.min(held)
            }
        };
        (0..).zip(&self.state[FORGOTTEN..]).map(since).max()
    }
}

impl Kind for SlidingTable {
    const ABOUT: &'static str =
        "seen lately: the last n insertions, or those of the last seconds; keys may be removed";
    const PARAMS: &'static [Param] = PARAMS;

    fn build(config: &Config, hashes: &mut [u64]) -> Result<SlidingTable, BuildError> {
        let (keys, _) = config.check::<SlidingTable>(hashes)?;
        let (generations, seconds) = span(config)?;
        let size = |fpr| math::sliding_table_size(fpr, generations + 1, LOAD);
        let (bits, remainders, load) = config.sized::<SlidingTable, _>(size)?;
        let share = keys.max(1).div_ceil(u64::from(generations));
        let slots = (room(share, generations, seconds) as f64 / load).ceil();
        if slots > MOST_SLOTS as f64 {
            return Err(BuildErrorKind::TooLarge {
                unit: "slots",
                needed: slots,
                most: MOST_SLOTS,
            }
            .into());
        }
        let slots = slots as u64;
        let shape = Shape {
            slots,
            remainders: remainders.min(MOST_FINGERPRINTS / slots),
            generations,
            share,
            seconds,
        };
        let table = Table::new(slots + spare(slots), bits)?;
        let state = Buf::zeroed(FORGOTTEN as u64 + u64::from(generations))?;
        let mut filter = SlidingTable::empty(shape, table, state);
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("slots", self.slots);
        out.param("bits", u64::from(self.table.bits()));
        out.param("remainders", self.remainders);
        out.param("generations", self.stamps - 1);
        out.param("share", self.share);
        out.param("seconds", self.seconds);
        self.table.encode(out);
        out.section(&self.state);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<SlidingTable, DecodeError> {
        let slots = input.param_in("slots", 1..=MOST_SLOTS)?;
        let bits = input.param_in("bits", 1..=u64::from(MOST_BITS))? as u32;
        let remainders = input.param("remainders")?;
        let generations = input.param_in("generations", 1..=u64::from(MOST_GENERATIONS))?;
        let most = ((1 << bits) / (generations + 1)).min(MOST_FINGERPRINTS / slots);
        if !(2..=most).contains(&remainders) {
            let expected = format!("2 to {most}");
            return Err(DecodeError::invalid("remainders", remainders, expected));
        }
        let shape = Shape {
            slots,
            remainders,
            generations: generations as u32,
            share: input.param_in("share", 1..=MOST_SLOTS)?,
            seconds: input.param_in("seconds", 0..=MOST_SECONDS)?,
        };
        let len = input.len();
        let table = Table::decode_unchecked(input, slots + spare(slots), bits, len)?;
        let state = input.section("state", FORGOTTEN as u64 + generations)?;
        let filter = SlidingTable::empty(shape, table, state);
        filter.check_state()?;
        if input.is_verified() {
            filter.check()?;
        }
        Ok(filter)
    }
}

impl SlidingTable {
    /// Refuses a hand and a clock that no sequence of operations leads to.
    fn check_state(&self) -> Result<(), DecodeError> {
        let (ring, turn, clock) = (self.state[RING], self.state[TURN], self.state[CLOCK]);
        let wrong =
            |field, value, expected: &str| Err(DecodeError::invalid(field, value, expected));
        if ring >= self.stamps {
            return wrong("ring", ring, "one of the stamps");
        }
        if turn >= self.turns() {
            return wrong("turn", turn, "fewer turns than a round has");
        }
        if self.table.used() == 0 && (ring, turn) != (0, 0) {
            return wrong("turn", turn, "an empty window's hand at the first slot");
        }
        let (used, most) = (self.table.used(), self.most_used());
        if used > most {
            return wrong("number of keys", used, "no more than the window may hold");
        }
        if self.seconds == 0 && clock > 0 {
            return wrong("clock", clock, "none, as insertions are counted");
        }
        let latest = [if self.seconds == 0 {
            0
        } else {
            clock.saturating_add(1)
        }];
        let forgotten = latest.iter().chain(&self.state[FORGOTTEN..]);
        if !forgotten.clone().is_sorted_by(|a, b| a >= b) {
            let first = self.state[FORGOTTEN];
            return wrong(
                "forgotten",
                first,
                "readings in order, none beyond the clock's",
            );
        }
        Ok(())
    }

    /// Refuses what no sequence of operations leads to.
    pub(super) fn check(&self) -> Result<(), DecodeError> {
        self.table.check().map_err(invalid)?;
        self.check_values()?;
        self.check_state()
    }

    /// Refuses runs that are not in order, values that no hash has, and too many copies.
    fn check_values(&self) -> Result<(), DecodeError> {
        let (mut last, mut copies) = ((0, 0), 0);
        for entry in self.table.entries() {
            let fingerprint = |(quotient, value): (u64, u64)| (quotient, value / self.stamps);
            let here = (entry.quotient, entry.value);
            let again = copies > 0 && fingerprint(here) == fingerprint(last);
            copies = if again { copies + 1 } else { 1 };
            let possible = entry.value / self.stamps < self.remainders
                && entry.quotient < self.slots
                && copies <= MOST_COPIES;
            if here < last || !possible {
                let expected = format!(
                    "runs in order, of {} remainders, each {MOST_COPIES} times at most",
                    self.remainders
                );
                return Err(DecodeError::invalid("value", entry.value, expected));
            }
            last = here;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
