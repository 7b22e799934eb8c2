//! A window over a stream: the last n insertions, or those of the last T seconds, and nothing
//! older.
//!
//! The essay is at [`Sliding`].

use std::time::Duration;

use crate::bits::{low_mask, positions};
use crate::buf::Buf;
use crate::config::{Config, Param};
use crate::error::{BuildError, BuildErrorKind, DecodeError, Full, FullKind};
use crate::filter::{Filter, Insert, Kind, Window};
use crate::format::{Decoder, Encoder};
use crate::math;
use crate::packed::Packed;
use crate::window::{MOST_GENERATIONS, MOST_SECONDS, PARAMS, nanos, span};

/// The keys of the last n insertions, or of the last seconds. Insert, forget by age.
///
/// Has this address been here in the last ten minutes?
///
/// ```
/// use std::time::Duration;
/// use tamis::{Config, Keyed, Sliding};
///
/// // At most a million visits in ten minutes.
/// let config = Config::new(1_000_000).fpr(0.01).set("seconds", 600);
/// let mut visits: Keyed<Sliding> = Keyed::new(&config)?;
/// visits.insert("203.0.113.7")?;
///
/// // The time since any start, from a clock of your own. The first reading is the origin.
/// let start = Duration::from_secs(1_700_000_000);
/// visits.advance(start);
/// visits.advance(start + Duration::from_secs(9 * 60));
/// assert!(visits.contains("203.0.113.7"));
///
/// // To ask and to note in one step; the key now stays for ten minutes more.
/// assert!(visits.touch("203.0.113.7")?);
///
/// // A restart: the file holds the clock, too.
/// let file = visits.to_bytes();
/// let mut visits: Keyed<Sliding> = Keyed::open(file)?;
/// assert_eq!(visits.now(), Some(start + Duration::from_secs(9 * 60)));
/// visits.advance(start + Duration::from_secs(18 * 60));
/// assert!(visits.contains("203.0.113.7"));
/// visits.advance(start + Duration::from_secs(30 * 60));
/// assert!(!visits.contains("203.0.113.7"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The last insertions, however long they take:
///
/// ```
/// use tamis::{Config, Filter, Keyed, Sliding};
///
/// let mut recent: Keyed<Sliding> = Keyed::new(&Config::new(1000))?;
/// for id in 0..5000u64 {
///     recent.insert(&id)?;
/// }
/// assert!((4000..5000u64).all(|id| recent.contains(&id)));
/// assert!((0..3000u64).filter(|id| recent.contains(id)).count() < 100);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// The stream is cut into generations of n/G insertions. `G + 1` Bloom filters, the *slices*,
/// hold one generation each: G that cover the window and the newest, which is filling. When it
/// has its n/G keys, the slice of the oldest generation becomes the newest. So a key is found for
/// n insertions at least and n + n/G at most: n/G is the *slack*.
///
/// ```text
///                x₀                x₁                    x₂        the same k places
///                 ↓                 ↓                     ↓        in every slice
///   fields  … │10110│00101│11000│10111│01001│00010│10110│00110│ …  G + 1 bits each,
///                                                                  a bit for each slice
///                                        & all k  →  00110         a slice has all bits: found
///   swept   … ──────── 1 ─────────┼────── 0 ──────┼────── 1 ── …   a bit for 64 fields:
///                                                                  is the newest slice clear?
/// ```
///
/// All slices use the same places, and their bits at a place lie side by side. A lookup therefore
/// reads k places, not (G + 1)·k, and stops where no slice is left: after 3.9 on average for an
/// absent key at 1 % (Σ over j ≥ 0 of 1 − (1 − 2⁻ʲ)⁵).
///
/// # Forgetting without a pause
///
/// A slice that is taken anew still has the bits of its last generation. Clearing it at once
/// would make one insertion in n/G wait for the whole array. Instead every insertion clears the
/// next block of 64 fields, and any other block that it sets a bit in. A flag for each block
/// tells whether it is clear; what the newest slice says elsewhere does not count. The flags'
/// meaning alternates with each generation, so that none need resetting. No insertion clears more
/// than k + s blocks, s = ⌈(m/64) / (n/G)⌉ for m places: s is 1 while there are no more than 64
/// places for each key of a generation, which takes rates below 10⁻¹² to exceed where a
/// generation has hundreds. Only [`advance`](Window::advance) and
/// [`make_room`](Window::make_room), which end a generation before it has its share, clear all
/// that is left of it.
///
/// # Cost
///
/// (G + 1)/G · log₂(1/ε′)/ln 2 bits per key of the window, with ε′ = 1 − (1 − ε)^(1/(G+1)), and
/// 1/64 of a bit for each field: 16.2 at 1 % and G = 4 (`math::generations_bits_per_key`); G = 8
/// needs 15.9 and G = 1 22.1. The least that any window of this slack can need has the leading
/// term 9.4 (`math::sliding_lower_bound`).
///
/// # Windows of time
///
/// With `seconds` a generation ends by the clock, which the caller reads and hands to
/// [`advance`](Window::advance), so that tests and replays own the time; the program `tamis`
/// hands it the seconds since 1970. Capacity is then the
/// most that a window is to hold, and a generation takes its share of it: the insertion after
/// that is refused ([`Full`]), never taken at the price of the rate or of the window. Keys that
/// the filter is built from came at one time, so all of them are in one generation, and the share
/// is as many where it would be fewer. [`make_room`](Window::make_room) gives up the oldest
/// generation instead, and [`covered`](Window::covered) says how far back the answers then
/// reach.
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
/// protection. For a set that does not age take [`SplitBlock512`](crate::SplitBlock512); to
/// remove chosen keys, [`Cuckoo`](crate::Cuckoo).
///
/// # Bibliography
///
/// - Chang, Feng, Li, *Approximate caches for packet classification*, 2004: two filters taking
///   turns (G = 1 here).
/// - Metwally, Agrawal, El Abbadi, *Duplicate detection in click streams*, 2005: windows of
///   several sub-windows.
/// - Naor, Yogev, *Tight bounds for sliding Bloom filters*, 2015: window and slack, and the least
///   space for them.
#[derive(Clone, Debug)]
pub struct Sliding {
    /// For each place the bits of all slices.
    fields: Packed,
    /// For each block of 64 fields the parity of the generation that last cleared its slice
    /// there.
    swept: Buf<u64>,
    /// What changes from insertion to insertion; see [`RING`] and those after it.
    state: Buf<u64>,
    places: u64,
    k: u32,
    /// Insertions in a generation.
    share: u64,
    /// Blocks that an insertion clears beside its own.
    step: u64,
    /// The window in seconds; 0 where it is counted in insertions.
    seconds: u64,
    /// The newest slice's bit in a field.
    newest: u64,
}

/// Where `state` holds the number of generations begun, modulo twice the slices: modulo the
/// slices it is the number of the newest slice, and it is even or odd as the generation is.
const RING: usize = 0;
/// The insertions of the newest generation, up to its share.
const TURN: usize = 1;
/// The last reading of the clock, in nanoseconds.
const CLOCK: usize = 2;
/// The reading from which on no insertion has been forgotten.
const SINCE: usize = 3;
/// From here on two words for each slice: the insertions that it holds, and the reading when it
/// was begun.
const SLICES: usize = 4;

const MOST_K: u64 = 64;
const MOST_PLACES: u64 = 1 << 58;

impl Sliding {
    /// How many generations the window has.
    pub fn generations(&self) -> u32 {
        self.fields.width() - 1
    }

    /// The insertions that a window holds: the last so many are found, if the window is not one
    /// of time.
    pub fn window(&self) -> u64 {
        self.share.saturating_mul(u64::from(self.generations()))
    }

    /// Number of the generation that a reading falls in, by the clock.
    fn tick(&self, nanos: u64) -> u64 {
        let window = u128::from(self.seconds) * 1_000_000_000;
        (u128::from(nanos) * u128::from(self.generations()) / window) as u64
    }

    /// First reading of a generation.
    fn start_of(&self, tick: u64) -> u64 {
        let window = u128::from(self.seconds) * 1_000_000_000;
        (u128::from(tick) * window).div_ceil(u128::from(self.generations())) as u64
    }

    /// Takes the first reading of the clock: all that is held counts as inserted now, and what was
    /// begun or forgotten to make room as begun or forgotten now.
    fn start(&mut self, now: u64) {
        let newest = SLICES + 2 * self.newest.trailing_zeros() as usize + 1;
        let state = self.state.make_mut();
        (state[CLOCK], state[newest]) = (now, now);
        let begun = SLICES + 1..state.len();
        for at in begun.step_by(2).chain([SINCE]) {
            if state[at] > 0 {
                state[at] = now;
            }
        }
    }

    /// Whether only the clock may begin the next generation, and this one has its share.
    fn is_full(&self) -> bool {
        self.seconds > 0 && self.state[TURN] == self.share
    }

    /// The slices that have all bits of a hash.
    #[inline]
    fn slices(&self, hash: u64) -> u64 {
        let mut found = low_mask(self.fields.width());
        for place in positions(hash, self.places, self.k) {
            found &= self.fields.word(place);
            if found == 0 {
                return 0;
            }
        }
        let stale = || positions(hash, self.places, self.k).any(|place| !self.is_swept(place / 64));
        if found & self.newest != 0 && stale() {
            found &= !self.newest;
        }
        found
    }

    /// Whether the newest slice's bits in a block are of its own generation.
    #[inline]
    fn is_swept(&self, block: u64) -> bool {
        (self.swept[(block / 64) as usize] >> (block % 64) ^ self.state[RING]) & 1 == 0
    }

    /// Clears the newest slice in a block, unless that was done.
    #[inline]
    fn sweep(&mut self, block: u64) {
        if !self.is_swept(block) {
            self.fields.keep_in_block(block, !self.newest);
            self.swept.make_mut()[(block / 64) as usize] ^= 1 << (block % 64);
        }
    }

    fn blocks(&self) -> u64 {
        self.places / 64
    }

    /// The blocks that are swept at least when a generation has so many insertions: all when it
    /// has its share.
    fn swept_at(&self, turn: u64) -> u64 {
        turn.saturating_mul(self.step).min(self.blocks())
    }

    /// Forgets the oldest generation and begins a new one in its slice.
    fn begin(&mut self, born: u64) {
        for block in self.swept_at(self.state[TURN])..self.blocks() {
            self.sweep(block);
        }
        let width = self.fields.width() as usize;
        let ring = (self.state[RING] as usize + 1) % (2 * width);
        self.newest = 1 << (ring % width);
        let state = self.state.make_mut();
        let slice = SLICES + 2 * (ring % width);
        let next = SLICES + 2 * ((ring + 1) % width);
        if state[slice] > 0 {
            state[SINCE] = state[SINCE].max(state[next + 1]);
        }
        (state[RING], state[TURN]) = (ring as u64, 0);
        (state[slice], state[slice + 1]) = (0, born);
    }

    /// Inserts, beginning a generation where the newest has its share.
    fn put(&mut self, hash: u64) {
        if self.state[TURN] == self.share {
            self.begin(0);
        }
        let turn = self.state[TURN];
        for block in self.swept_at(turn)..self.swept_at(turn + 1) {
            self.sweep(block);
        }
        for place in positions(hash, self.places, self.k) {
            self.sweep(place / 64);
            self.fields.set(place, self.fields.get(place) | self.newest);
        }
        let slice = SLICES + 2 * self.newest.trailing_zeros() as usize;
        let state = self.state.make_mut();
        state[TURN] += 1;
        state[slice] = state[slice].saturating_add(1);
    }

    /// The field of a place, without what the newest slice has not swept yet.
    fn field(&self, place: u64) -> u64 {
        let field = self.fields.get(place);
        if self.is_swept(place / 64) {
            field
        } else {
            field & !self.newest
        }
    }

    /// The insertions that each slice holds.
    fn counts(&self) -> impl Iterator<Item = u64> {
        self.state[SLICES..].iter().step_by(2).copied()
    }
}

impl Filter for Sliding {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.slices(hash) != 0
    }

    /// How many insertions are held: at least the window's, as far as there were so many, and at
    /// most the slack more.
    fn len(&self) -> u64 {
        self.counts().fold(0, u64::saturating_add)
    }

    fn size_in_bytes(&self) -> usize {
        self.fields.size_in_bytes() + self.swept.size_in_bytes() + self.state.size_in_bytes()
    }

    fn fpr(&self) -> f64 {
        let mut fields = vec![0; 1 << self.fields.width()];
        for place in 0..self.places {
            fields[self.field(place) as usize] += 1;
        }
        math::shared_places_fpr(&mut fields, self.k)
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        for place in positions(hash, self.places, self.k) {
            self.fields.prefetch(place);
        }
    }
}

impl Insert for Sliding {
    /// Never refused where insertions are counted; in a window of time when the generation has
    /// its share.
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        if self.is_full() {
            return Err(Full::new(FullKind::Generation(self.share), self.len()));
        }
        self.put(hash);
        Ok(())
    }
}

impl Window for Sliding {
    fn touch(&mut self, hash: u64) -> Result<bool, Full> {
        let found = self.slices(hash);
        if found & self.newest != 0 {
            return Ok(true);
        }
        self.insert(hash)?;
        Ok(found != 0)
    }

    /// Every `window / generations` the oldest generation is forgotten, which clears what
    /// insertions have not cleared already.
    fn advance(&mut self, now: Duration) {
        let (now, clock) = (nanos(now), self.state[CLOCK]);
        if self.seconds == 0 || now <= clock {
            return;
        }
        if clock == 0 {
            return self.start(now);
        }
        let (last, first) = (self.tick(now), self.tick(clock) + 1);
        for tick in first.max((last + 1).saturating_sub(u64::from(self.fields.width())))..=last {
            self.begin(self.start_of(tick));
        }
        self.state.make_mut()[CLOCK] = now;
    }

    fn now(&self) -> Option<Duration> {
        let clock = self.state[CLOCK];
        (clock > 0).then(|| Duration::from_nanos(clock))
    }

    fn window_time(&self) -> Option<Duration> {
        (self.seconds > 0).then(|| Duration::from_secs(self.seconds))
    }

    /// Begins a generation before its time.
    fn make_room(&mut self) {
        if self.is_full() {
            self.begin(self.state[CLOCK].saturating_add(1));
        }
    }

    fn covered(&self) -> Option<Duration> {
        let window = self.window_time()?;
        match self.state[SINCE] {
            0 => Some(window),
            since => {
                let held = self.state[CLOCK].saturating_sub(since);
                Some(window.min(Duration::from_nanos(held)))
            }
        }
    }
}

impl Kind for Sliding {
    const ABOUT: &'static str = "seen lately: the last n insertions, or those of the last seconds";
    const PARAMS: &'static [Param] = PARAMS;

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Sliding, BuildError> {
        let (keys, fpr) = config.check::<Sliding>(hashes)?;
        let (generations, seconds) = span(config)?;
        let mut share = keys.max(1).div_ceil(u64::from(generations));
        if seconds > 0 {
            // All come at the clock's first reading, and only the newest generation stays for a
            // whole window.
            share = share.max(hashes.len() as u64);
        }
        let part = math::share_of_fpr(fpr, generations + 1);
        let size = math::bloom_size(share, part).filter(|&(places, _)| places <= MOST_PLACES);
        let (places, k) = size.ok_or(BuildErrorKind::TooLarge {
            unit: "places",
            needed: share as f64 * math::bloom_bits_per_key(part),
            most: MOST_PLACES,
        })?;
        let mut filter = Sliding {
            fields: Packed::zeroed(places, generations + 1)?,
            swept: Buf::zeroed((places / 64).div_ceil(64))?,
            state: Buf::zeroed(SLICES as u64 + 2 * u64::from(generations + 1))?,
            places,
            k,
            share,
            step: (places / 64).div_ceil(share),
            seconds,
            newest: 1,
        };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("places", self.places);
        out.param("k", u64::from(self.k));
        out.param("generations", u64::from(self.generations()));
        out.param("share", self.share);
        out.param("seconds", self.seconds);
        self.fields.encode(out);
        out.section(&self.swept);
        out.section(&self.state);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Sliding, DecodeError> {
        let places = input.param_in("places", 64..=MOST_PLACES)?;
        if !places.is_multiple_of(64) {
            return Err(DecodeError::invalid("places", places, "a multiple of 64"));
        }
        let k = input.param_in("k", 1..=MOST_K)? as u32;
        let generations = input.param_in("generations", 1..=u64::from(MOST_GENERATIONS))? as u32;
        let share = input.param_in("share", 1..=u64::MAX)?;
        let seconds = input.param_in("seconds", 0..=MOST_SECONDS)?;
        let width = u64::from(generations) + 1;
        let mut filter = Sliding {
            fields: Packed::decode(input, "fields", places, generations + 1)?,
            swept: input.section("swept", (places / 64).div_ceil(64))?,
            state: input.section("state", SLICES as u64 + 2 * width)?,
            places,
            k,
            share,
            step: (places / 64).div_ceil(share),
            seconds,
            newest: 0,
        };
        filter.check(input.len())?;
        filter.newest = 1 << (filter.state[RING] % width);
        Ok(filter)
    }
}

impl Sliding {
    /// Refuses a state that no sequence of operations leads to, as far as later operations rely
    /// on it.
    pub(super) fn check(&self, len: u64) -> Result<(), DecodeError> {
        let (ring, turn, blocks) = (self.state[RING], self.state[TURN], self.blocks());
        let width = u64::from(self.fields.width());
        let wrong =
            |field, value, expected: &str| Err(DecodeError::invalid(field, value, expected));
        if ring >= 2 * width {
            return wrong("generations begun", ring, "less than twice the slices");
        }
        let newest = self.state[SLICES + 2 * (ring % width) as usize];
        if turn != newest.min(self.share) {
            return wrong(
                "turn",
                turn,
                "the newest slice's insertions, or the share if that is less",
            );
        }
        let held = self.counts().try_fold(0u64, u64::checked_add);
        if held != Some(len) {
            return wrong("number of keys", len, "the sum of the slices' insertions");
        }
        let clock = self.state[CLOCK];
        let born = self.state[SLICES + 1..].iter().step_by(2);
        let latest = born.chain([&self.state[SINCE]]).max().copied().unwrap_or(0);
        let most = if self.seconds == 0 {
            0
        } else {
            clock.saturating_add(1)
        };
        if latest > most || clock > most {
            return wrong(
                "latest reading",
                latest.max(clock),
                "none beyond the clock's",
            );
        }
        if let Some(block) = (0..self.swept_at(turn)).find(|&block| !self.is_swept(block)) {
            return wrong("swept", block, "every block that the turn implies");
        }
        let last = self.swept[self.swept.len() - 1];
        if blocks % 64 != 0 && last >> (blocks % 64) != 0 {
            return wrong("swept", last, "zero bits after the last block");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::window::tests::{SECOND, assert_rate, window};

    #[test]
    fn sizes_are_those_of_the_formula() {
        // Bits per key of the window, with 1/64 of a bit for each field.
        for (generations, bits) in [(1, 22.05), (2, 17.80), (4, 16.16), (8, 15.92)] {
            let config = Config::new(1_000_000).set("generations", generations);
            let filter: Sliding = window(&config);
            let got = filter.size_in_bytes() as f64 * 8.0 / 1e6;
            let flags = filter.blocks() as f64 / 1e6;
            assert!(
                (got - flags - bits).abs() < 0.005 * bits,
                "{generations}: {got}"
            );
            assert_eq!(filter.generations(), generations);
        }
        let filter: Sliding = window(&Config::new(1_000_000));
        let bits = filter.size_in_bytes() as f64 * 8.0 / 1e6;
        assert!((bits - 16.2).abs() < 0.05, "{bits}");
    }

    #[test]
    fn a_generation_is_gone_at_once_though_its_bits_are_cleared_later() {
        // One insertion after five generations: the first is replaced, and nearly all its bits
        // are still there.
        let mut filter: Sliding = window(&Config::new(40_000));
        (0..50_001).for_each(|i| filter.insert(mix64(i)).unwrap());
        assert_eq!((filter.state[TURN], filter.len()), (1, 40_001));
        let stale = (0..filter.blocks()).filter(|&block| !filter.is_swept(block));
        assert!(stale.count() as u64 >= filter.blocks() - u64::from(filter.k) - 1);
        let hits = (0..10_000).filter(|&i| filter.contains(mix64(i))).count() as u64;
        assert_rate(
            hits,
            10_000,
            filter.fpr(),
            "the generation that was replaced",
        );
    }

    #[test]
    fn no_insertion_sweeps_more_than_its_blocks() {
        for (n, fpr, step) in [
            (100_000, 0.01, 1),
            (1000, 1e-12, 1),
            (1000, 1.5e-13, 2),
            (100, 1e-15, 2),
        ] {
            let mut filter: Sliding = window(&Config::new(n).fpr(fpr));
            assert_eq!(filter.step, step, "{fpr}");
            let mut before = filter.swept.to_vec();
            let mut most = 0;
            for i in 0..3 * n {
                filter.insert(mix64(i)).unwrap();
                let flips = before.iter().zip(&*filter.swept);
                let swept: u32 = flips.map(|(a, b)| (a ^ b).count_ones()).sum();
                assert!(
                    u64::from(swept) <= u64::from(filter.k) + step,
                    "insertion {i} swept {swept}"
                );
                most = most.max(swept);
                before.copy_from_slice(&filter.swept);
            }
            assert!(n < 1000 || most >= filter.k - filter.k / 8, "{most}");
            let newest = filter.counts().max().unwrap();
            assert_eq!((newest, filter.len()), (n / 4, n + n / 4));
        }
    }

    #[test]
    fn the_rate_is_right_where_slices_hold_the_same_keys() {
        let mut filter: Sliding = window(&Config::new(4000).fpr(0.1));
        for i in 0..20_000u64 {
            filter.insert(mix64(i % 700)).unwrap();
        }
        let asked = 300_000;
        let hits = (0..asked)
            .filter(|i| filter.contains(mix64(1 << 40 | i)))
            .count() as u64;
        assert_rate(hits, asked, filter.fpr(), "the same keys in all slices");
    }

    #[test]
    fn more_than_a_generations_share_is_refused_or_shortens_the_window_and_says_so() {
        let mut filter: Sliding = window(&Config::new(400).set("seconds", 40));
        filter.advance(Duration::ZERO);
        let mut number = 0;
        let mut fill = |filter: &mut Sliding| {
            while filter.insert(mix64(number)).is_ok() {
                number += 1;
            }
            number
        };
        assert_eq!(fill(&mut filter), 100);
        for round in 1..=4 {
            filter.make_room();
            filter.make_room();
            assert_eq!(fill(&mut filter), 100 * (round + 1));
            assert_eq!(filter.covered(), Some(40 * SECOND), "nothing is lost yet");
        }
        filter.advance(5 * SECOND);
        assert!(filter.insert(0).is_err(), "a generation is ten seconds");
        filter.make_room();
        assert_eq!(filter.covered(), Some(5 * SECOND - Duration::from_nanos(2)));
        assert!((100..500).all(|i| filter.contains(mix64(i))));
        for second in [10, 20, 30, 40] {
            filter.advance(second * SECOND);
            assert!(filter.covered() < Some(40 * SECOND), "{second}");
            fill(&mut filter);
        }
        filter.advance(60 * SECOND);
        assert_eq!(filter.covered(), Some(40 * SECOND));
    }

    #[test]
    fn a_full_generation_says_what_may_be_done() {
        let mut filter: Sliding = window(&Config::new(4).set("seconds", 40));
        filter.insert(1).unwrap();
        let full = filter.insert(2).unwrap_err();
        assert_eq!((full.kind(), full.keys()), (FullKind::Generation(1), 1));
        let said = full.to_string();
        assert!(
            ["`advance`", "`make_room`", "1 key;"]
                .iter()
                .all(|part| said.contains(part)),
            "{said}"
        );
    }
}
