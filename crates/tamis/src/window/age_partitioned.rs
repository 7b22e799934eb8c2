//! The age-partitioned Bloom filter: one ring of slices that remembers the last n insertions.
//!
//! The essay is at [`AgePartitioned`].

use crate::bits::positions;
use crate::buf::Buf;
use crate::config::{Config, Param};
use crate::error::{BuildError, BuildErrorKind, DecodeError, Full};
use crate::filter::{Filter, Insert, Kind, Window};
use crate::format::{Decoder, Encoder};
use crate::kinds::Declared;
use crate::option;
use crate::{math, simd};

/// The keys of the last n insertions, forgotten within a small slack. Insert, forget by age.
///
/// ```
/// use tamis::{AgePartitioned, Config, Keyed};
///
/// // Has this request been answered lately? The last 10 000 are remembered.
/// let mut answered: Keyed<AgePartitioned> = Keyed::new(&Config::new(10_000).fpr(0.01))?;
/// for request in 0..50_000u64 {
///     answered.touch(&request)?;
/// }
/// assert!((40_000..50_000u64).all(|request| answered.contains(&request)));
/// assert!((0..39_000u64).filter(|request| answered.contains(request)).count() < 600);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///             young ─────────────────────────→ old
///   slice       0    1    2   …   k−1   k    …    k+l−1
///   inserting   ●    ●    ●        ●                         one bit in each of the first k
///   l shifts
///   later                                ●    ●    ●   ●
///
///   k + l slices of one array each, in a ring; a key is found while k slices in a row have
///   its bits
/// ```
///
/// A key sets one bit in each of the k youngest slices. After every n/l insertions, a
/// *generation*, the ring shifts: the oldest slice is cleared and becomes the youngest. A key's
/// bits thus stay k in a row and grow older together; a key is in when k slices in a row have its
/// bits. From the shift l + 1 after it on they are cleared one by one, so it is sure to be found
/// for n insertions and not after n + n/l.
///
/// It then fades rather than leaves: j generations later it still has k − j bits in a row, and is
/// found with probability 2⁻ʲ when other keys have set the j bits beside them. Only after k
/// generations is it as any absent key. (The rate that the paper derives is that of keys that
/// never were in.)
///
/// A slice is k generations young, is then left alone, and is half full from there on. The place
/// of a key in a slice is one of its k places, by the number of the shift that made the slice;
/// slices in a row have different ones.
///
/// # Lookup
///
/// Test slice l and those older than it. Where one fails, no run of k can contain it: go on k
/// slices younger, and of the run that ends before the failure only what was not tested is
/// missing. An absent key fails half of its tests, so a lookup reads about 2·l/k + 2 lines, a
/// member k more.
///
/// # Cost
///
/// (k + l)·k/(l·ln 2) bits per key of the window (`math::apbf_bits_per_key`); the rate is that of
/// a run of k among k + l slices (`math::apbf_fpr`). More generations take less space, have a
/// higher rate and need more tests:
///
/// | k, l | rate | bits per key | slack |
/// |---|---|---|---|
/// | 12, 87 (the smallest for 1 %) | 1.00 % | 19.7 | n/87 |
/// | 9, 14 | 1.07 % | 21.3 | n/14 |
/// | 7, 5 | 1.28 % | 24.2 | n/5 |
///
/// A shift clears a slice of k·n/(l·ln 2) bits at once: 25 KB for a window of a million keys at 1
/// %.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `k` | 1 to 64 | the smallest filter for the rate | bits that a key sets |
/// | `l` | 1 to 1024 | the most that the rate allows | generations of the window: more forget sooner |
///
/// # When to choose it
///
/// When most keys must leave soon after the window: within n/87 at 1 % they begin to fade, by half
/// with every n/87 more. Otherwise [`Sliding`](crate::Sliding): keys leave it at once within n/4,
/// it is smaller (16.2 bits), faster, knows windows of time, and forgets without a pause.
///
/// # Bibliography
///
/// - Shtul, Baquero, Almeida, *Age-partitioned Bloom filters*, 2020: the ring, the lookup that
///   skips, and the rate.
/// - Naor, Yogev, *Tight bounds for sliding Bloom filters*, 2015: the least space for a window
///   and its slack.
#[derive(Clone, Debug)]
pub struct AgePartitioned {
    /// The slices, one after another.
    words: Buf<u64>,
    /// Words of a slice.
    slice: usize,
    k: usize,
    l: usize,
    /// Insertions between two shifts.
    generation: u64,
    /// Insertions since the last shift.
    turn: u64,
    /// Shifts so far, modulo k·(k + l).
    shifts: usize,
    len: u64,
}

/// A slice as a lookup walks the ring: its number among the slices, and among a key's places.
#[derive(Clone, Copy)]
struct Cursor {
    slice: usize,
    place: usize,
}

const MOST_K: usize = 64;
const MOST_L: usize = 1024;
const MOST_BITS: u64 = 1 << 60;

impl AgePartitioned {
    /// How many bits a key sets, one in each of as many slices.
    pub fn k(&self) -> u32 {
        self.k as u32
    }

    /// How many generations the window has.
    pub fn generations(&self) -> u32 {
        self.l as u32
    }

    /// The last so many insertions are found.
    pub fn window(&self) -> u64 {
        self.generation.saturating_mul(self.l as u64)
    }

    fn slices(&self) -> usize {
        self.k + self.l
    }

    /// The k places of a hash, in slices of any number: with [`is_set`](Self::is_set) this
    /// filter's geometry.
    #[inline]
    fn places(&self, hash: u64) -> [u64; MOST_K] {
        let mut places = [0; MOST_K];
        let bits = self.slice as u64 * 64;
        for (slot, place) in places.iter_mut().zip(positions(hash, bits, self.k as u32)) {
            *slot = place;
        }
        places
    }

    #[inline]
    fn word(&self, cursor: Cursor, places: &[u64; MOST_K]) -> usize {
        cursor.slice * self.slice + (places[cursor.place] / 64) as usize
    }

    #[inline]
    fn is_set(&self, cursor: Cursor, places: &[u64; MOST_K]) -> bool {
        self.words[self.word(cursor, places)] >> (places[cursor.place] % 64) & 1 == 1
    }

    /// The slice that is so many shifts old, of at most `k + l`.
    #[inline]
    fn cursor(&self, age: usize) -> Cursor {
        let born = self.shifts + self.k * self.slices() - age;
        Cursor {
            slice: born % self.slices(),
            place: born % self.k,
        }
    }

    /// The next older slice.
    #[inline]
    fn older(&self, at: Cursor) -> Cursor {
        let before = |i: usize, n: usize| if i == 0 { n - 1 } else { i - 1 };
        Cursor {
            slice: before(at.slice, self.slices()),
            place: before(at.place, self.k),
        }
    }

    /// The slice that is k younger, which uses the same place.
    #[inline]
    fn younger_by_k(&self, at: Cursor) -> Cursor {
        let slice = at.slice + self.k;
        let wrapped = if slice >= self.slices() {
            slice - self.slices()
        } else {
            slice
        };
        Cursor {
            slice: wrapped,
            ..at
        }
    }

    /// The share of set bits in the slice of this age.
    fn fill(&self, age: usize) -> f64 {
        let start = self.cursor(age).slice * self.slice;
        let words = &self.words[start..start + self.slice];
        let ones: u64 = words.iter().map(|word| u64::from(word.count_ones())).sum();
        ones as f64 / (64 * self.slice) as f64
    }

    fn put(&mut self, hash: u64) {
        if self.turn == self.generation {
            self.shifts = (self.shifts + 1) % (self.k * self.slices());
            let start = self.cursor(0).slice * self.slice;
            self.words.make_mut()[start..start + self.slice].fill(0);
            self.turn = 0;
            // Of what was held, a generation at most is now out of reach.
            self.len = self.len.min(self.window());
        }
        let places = self.places(hash);
        let mut cursor = self.cursor(0);
        for _ in 0..self.k {
            let word = self.word(cursor, &places);
            self.words.make_mut()[word] |= 1 << (places[cursor.place] % 64);
            cursor = self.older(cursor);
        }
        self.turn += 1;
        self.len = self.len.saturating_add(1);
    }
}

impl Filter for AgePartitioned {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let places = self.places(hash);
        let mut cursor = self.cursor(self.l);
        // Slices from `age` on match so far, `run` of them; `known` more before the last failure
        // do.
        let (mut age, mut run, mut known) = (self.l, 0, 0);
        loop {
            if self.is_set(cursor, &places) {
                run += 1;
                if run + known == self.k {
                    return true;
                }
                age += 1;
                cursor = self.older(cursor);
            } else {
                if age < self.k {
                    return false;
                }
                age -= self.k;
                cursor = self.younger_by_k(cursor);
                (known, run) = (run, 0);
            }
        }
    }

    /// How many insertions are held: at least the window's, as far as there were so many, and at
    /// most a generation more.
    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.words.size_in_bytes()
    }

    fn fpr(&self) -> f64 {
        math::run_fpr((0..self.slices()).map(|age| self.fill(age)), self.k())
    }

    /// Prefetches the slices with which a lookup begins its runs.
    #[inline]
    fn prefetch(&self, hash: u64) {
        let places = self.places(hash);
        let mut cursor = self.cursor(self.l);
        for _ in (0..=self.l).step_by(self.k) {
            simd::prefetch(&self.words, self.word(cursor, &places));
            simd::prefetch(&self.words, self.word(self.older(cursor), &places));
            cursor = self.younger_by_k(cursor);
        }
    }
}

impl Insert for AgePartitioned {
    /// Never refused.
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        self.put(hash);
        Ok(())
    }

    /// Nothing waits for what an insertion writes, so nothing is prefetched.
    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), Full> {
        for &hash in hashes {
            self.put(hash);
        }
        Ok(())
    }
}

impl Window for AgePartitioned {
    /// Never refused.
    fn touch(&mut self, hash: u64) -> Result<bool, Full> {
        let places = self.places(hash);
        let mut cursor = self.cursor(0);
        let newest = (0..self.k).all(|_| {
            let set = self.is_set(cursor, &places);
            cursor = self.older(cursor);
            set
        });
        if newest {
            return Ok(true);
        }
        let found = self.contains(hash);
        self.put(hash);
        Ok(found)
    }
}

impl Kind for AgePartitioned {
    const ABOUT: &'static str = "the last n insertions, forgotten soon after";
    const PARAMS: &'static [Param] = &[
        Param {
            name: option::K.name,
            values: "1 to 64",
            default: "the smallest filter for the rate",
            about: "bits that a key sets",
        },
        Param {
            name: option::L.name,
            values: "1 to 1024",
            default: "the most that the rate allows",
            about: "generations of the window: more forget sooner",
        },
    ];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<AgePartitioned, BuildError> {
        let (keys, fpr) = config.check::<AgePartitioned>(hashes)?;
        let (k, l) = shape(config, fpr)?;
        let generation = keys.max(1).div_ceil(u64::from(l));
        let words = (math::half_full_bits(f64::from(k) * generation as f64) / 64.0).ceil();
        let needed = words * 64.0 * f64::from(k + l);
        if needed > MOST_BITS as f64 {
            let (unit, most) = ("bits", MOST_BITS);
            return Err(BuildErrorKind::TooLarge { unit, needed, most }.into());
        }
        let mut filter = AgePartitioned {
            words: Buf::zeroed(words as u64 * u64::from(k + l))?,
            slice: words as usize,
            k: k as usize,
            l: l as usize,
            generation,
            turn: 0,
            shifts: 0,
            len: 0,
        };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("bits", self.slice as u64 * 64);
        out.param("k", self.k as u64);
        out.param("l", self.l as u64);
        out.param("generation", self.generation);
        out.param("turn", self.turn);
        out.param("shifts", self.shifts as u64);
        out.section(&self.words);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<AgePartitioned, DecodeError> {
        let bits = input.param_in("bits", 64..=MOST_BITS)?;
        if !bits.is_multiple_of(64) {
            return Err(DecodeError::invalid("bits", bits, "a multiple of 64"));
        }
        let k = input.param_in("k", 1..=MOST_K as u64)?;
        let l = input.param_in("l", 1..=MOST_L as u64)?;
        let generation = input.param_in("generation", 1..=u64::MAX)?;
        let len = input.len();
        // Keys are held from the first insertion on, and a shift comes only with the next.
        let turn = input.param_in("turn", u64::from(len > 0)..=generation.min(len))?;
        let shifts = input.param_in("shifts", 0..=k * (k + l) - 1)?;
        let most = generation.saturating_mul(l);
        if !(len - turn).is_multiple_of(generation) || len - turn > most {
            let expected = "whole generations up to the window, and the turn";
            return Err(DecodeError::invalid("number of keys", len, expected));
        }
        Ok(AgePartitioned {
            words: input.section("words", bits / 64 * (k + l))?,
            slice: (bits / 64) as usize,
            k: k as usize,
            l: l as usize,
            generation,
            turn,
            shifts: shifts as usize,
            len,
        })
    }
}

/// The slices of a key and of the window: those given, or the smallest for the rate.
fn shape(config: &Config, fpr: f64) -> Result<(u32, u32), BuildError> {
    let number = |name, most: usize| {
        let expected = format!("a whole number from 1 to {most}");
        match config.param::<u32>(name, &expected)? {
            Some(value) if !(1..=most as u32).contains(&value) => {
                Err(BuildError::parameter(name, value, &expected))
            }
            given => Ok(given),
        }
    };
    let (k, l) = (number("k", MOST_K)?, number("l", MOST_L)?);
    let reached = |k, l| math::apbf_fpr(k, l) <= fpr;
    let (shape, tried) = match (k, l) {
        (None, None) => (math::apbf_size(fpr), (MOST_K as u32, 1)),
        (Some(k), None) => (math::apbf_generations(fpr, k).map(|l| (k, l)), (k, 1)),
        (None, Some(l)) => {
            let k = (1..=MOST_K as u32).find(|&k| reached(k, l));
            (k.map(|k| (k, l)), (MOST_K as u32, l))
        }
        (Some(k), Some(l)) => (Some((k, l)).filter(|_| reached(k, l)), (k, l)),
    };
    shape.ok_or_else(|| {
        let (kind, least) = (AgePartitioned::INFO.name, math::apbf_fpr(tried.0, tried.1));
        BuildErrorKind::Unreachable { kind, fpr, least }.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    fn window(config: &Config) -> AgePartitioned {
        AgePartitioned::build(config, &mut []).unwrap()
    }

    #[test]
    fn sizes_and_rates_are_those_of_the_formula() {
        for (k, l, percent, bits) in [(7, 5, 1.28, 24.2), (9, 14, 1.07, 21.3), (12, 87, 1.0, 19.7)]
        {
            let config = Config::new(1_000_000).fpr(percent / 100.0 + 1e-4);
            let filter = window(&config.set("k", k).set("l", l));
            let got = filter.size_in_bytes() as f64 * 8.0 / 1e6;
            assert!((got - bits).abs() < 0.005 * bits, "{k}, {l}: {got}");
        }
        let filter = window(&Config::new(1_000_000));
        assert_eq!((filter.k(), filter.generations()), (12, 87));
        let filter = window(&Config::new(1000).set("l", 7));
        assert_eq!((filter.k(), filter.generations()), (8, 7));
        let unreachable = Config::new(1000).fpr(0.001).set("k", 9).set("l", 14);
        let error = AgePartitioned::build(&unreachable, &mut []).unwrap_err();
        assert!(error.to_string().contains("1.06570"), "{error}");
    }

    #[test]
    fn a_stream_of_ten_windows_is_remembered_for_one_and_forgotten_after_the_slack() {
        let small = Config::new(1001).fpr(0.1);
        let shaped = Config::new(14_000).fpr(0.011).set("k", 9).set("l", 14);
        for config in [
            Config::new(20_000),
            small,
            shaped,
            Config::new(600).set("l", 3),
        ] {
            let n = config.capacity;
            let mut filter = window(&config);
            let slack = filter.generation;
            assert!(filter.window() >= n && filter.window() < n + u64::from(filter.generations()));
            let (mut queries, mut expected, mut hits) = ([0u64; 2], [0.0; 2], [0u64; 2]);
            for i in 0..10 * n {
                filter.insert(mix64(i)).unwrap();
                let last = (i + 1).saturating_sub(n);
                assert!(filter.contains(mix64(last)) && filter.contains(mix64(i)));
                if i % (n / 3 + 7) == 0 {
                    assert!(
                        (last..=i).all(|j| filter.contains(mix64(j))),
                        "{config}: at {i}"
                    );
                    let rate = filter.fpr();
                    // Every bit of these has been cleared.
                    let cleared = slack * filter.slices() as u64;
                    let expired = 0..(i + 1).saturating_sub(cleared);
                    let absent = (1 << 40)..(1 << 40) + 20_000;
                    for (kind, range) in [expired, absent].into_iter().enumerate() {
                        let asked = range.end - range.start;
                        hits[kind] += range.filter(|&j| filter.contains(mix64(j))).count() as u64;
                        queries[kind] += asked;
                        expected[kind] += rate * asked as f64;
                    }
                }
            }
            for kind in 0..2 {
                let rate = expected[kind] / queries[kind] as f64;
                assert!(rate <= config.fpr, "{config}: {rate}");
                let (low, high) = math::binomial_interval(queries[kind], rate, 1e-9);
                let what = ["expired", "absent"][kind];
                let hits = hits[kind];
                assert!(
                    (low..=high).contains(&hits),
                    "{config}, {what}: {hits}, {low} to {high}"
                );
            }
        }
    }

    #[test]
    fn keys_past_the_window_fade_by_half_with_every_generation() {
        let mut filter = window(&Config::new(14_000).fpr(0.011).set("k", 9).set("l", 14));
        let (k, l, generation) = (filter.k as u64, filter.l as u64, filter.generation);
        for shift in 0..40 {
            (0..generation).for_each(|i| filter.put(mix64(shift * generation + i)));
        }
        for j in 1..k {
            let start = (39 - l - j) * generation;
            let found = (start..start + generation).filter(|&i| filter.contains(mix64(i)));
            // Its own bits are set in the oldest slices; the rest of a run is chance.
            let fill = |age| {
                if age as u64 >= l + j {
                    1.0
                } else {
                    filter.fill(age)
                }
            };
            let rate = math::run_fpr((0..filter.slices()).map(fill), filter.k());
            assert!((rate - 0.5f64.powi(j as i32)).abs() < 0.02, "{j}: {rate}");
            let (low, high) = math::binomial_interval(generation, rate, 1e-9);
            let hits = found.count() as u64;
            assert!((low..=high).contains(&hits), "{j}: {hits}, {low} to {high}");
        }
    }

    #[test]
    fn the_lookup_that_skips_answers_as_one_that_tests_every_run() {
        for (k, l) in [(1, 1), (1, 9), (2, 1), (3, 7), (5, 5), (4, 13), (9, 2)] {
            let config = Config::new(300).fpr(0.9999).set("k", k).set("l", l);
            let mut filter = window(&config);
            for i in 0..2000 {
                filter.insert(mix64(i)).unwrap();
                let hash = mix64(1 << 32 | i);
                let places = filter.places(hash);
                let set = |age| filter.is_set(filter.cursor(age), &places);
                let found = (0..=filter.l).any(|start| (start..start + filter.k).all(set));
                assert_eq!(filter.contains(hash), found, "{k}, {l}");
            }
        }
    }

    #[test]
    fn a_key_that_is_seen_again_stays_and_costs_a_generation_nothing() {
        let mut filter = window(&Config::new(4000).fpr(0.011).set("k", 9));
        assert!(!filter.touch(7).unwrap());
        for i in 0..40_000u64 {
            filter.insert(mix64(i)).unwrap();
            if i % 500 == 0 {
                assert!(filter.touch(7).unwrap(), "{i}");
            }
        }
        let noted = filter.len();
        (0..100).for_each(|_| assert!(filter.touch(7).unwrap()));
        assert!(filter.len() <= noted + 1);
    }
}
