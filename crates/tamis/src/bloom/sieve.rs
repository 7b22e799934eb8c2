//! Lookups in a filter whose keys have places anywhere, without the branch that nobody can guess.
//!
//! An absent key passes a probe of a half-full filter with probability ½. To stop at the first that fails is to toss a
//! coin after each, and the processor, which guesses ahead, loses every other toss. A single lookup therefore tests two
//! places before it branches, and is wrong in its guess one time of four.
//!
//! Many lookups need not branch at all. The keys pass through the probes together, as through a stack of sieves:
//!
//! ```text
//!   hashes   h₀ h₁ h₂ h₃ h₄ h₅ h₆ h₇ …     the first place of each is asked for
//!   pass 1   h₀    h₂ h₃       h₆    …     those whose place is set go on; the next place is asked for
//!   pass 2         h₂          h₆    …     each pass has as many probes as all before it, up to four
//!   pass 3         h₂                …     what is left in the end is present
//! ```
//!
//! A key is written to the list of those that go on whether it does or not, and the list grows only if it does. When a
//! place is tested it was asked for a whole pass ago, and an absent key reads about 2.2 lines, where 2 are the least. The
//! places of a pass are found for all its keys first, several at once in vectors.

use crate::bloom::remix;
use crate::simd::{self, Bits, Op, prefetch_hashes};

/// What a probe tests: the place that a key's state chooses. Every function must be `#[inline(always)]`.
pub(crate) trait Cells {
    /// How much memory they take.
    fn size_in_bytes(&self) -> usize;
    /// 1 if the place that a state chooses lets a key through, 0 if not.
    fn is_set(&self, state: u64) -> u64;
    /// The number of that place, for later.
    fn place(&self, state: u64) -> u64;
    /// Whether they are so few that [`place_by_halves`](Cells::place_by_halves) finds their places.
    fn are_few(&self) -> bool;
    /// The same place of few by products that vectors have.
    fn place_by_halves(&self, state: u64) -> u64;
    /// Asks for the memory of a place.
    fn prefetch(&self, place: u64);
    /// 1 if a place lets a key through, 0 if not.
    fn is_set_at(&self, place: u64) -> u64;
}

/// Probes of a single lookup between two branches.
pub(crate) const AT_ONCE: u32 = 2;

/// Looks up one hash.
#[inline(always)]
pub(crate) fn contains<C: Cells>(cells: &C, k: u32, hash: u64) -> bool {
    let mut state = hash;
    let mut pass = |probes| {
        let mut all = 1;
        for _ in 0..probes {
            all &= cells.is_set(state);
            state = remix(state);
        }
        all != 0
    };
    (0..k / AT_ONCE).all(|_| pass(AT_ONCE)) && pass(k % AT_ONCE)
}

/// Keys that go through the passes together: enough that the last passes still have several, few enough that their
/// lines stay in the nearest cache.
const TOGETHER: usize = 256;

/// Up to this size the caches answer so soon that a second probe costs less than a second pass.
const NEAR: usize = 4 << 20;

/// The most probes of a pass: their places, 2 KiB of each, stay in the nearest cache, and there is a loop for every number.
const PROBES: usize = 4;

/// Fewer keys than these have no use for passes, nor have those that a single lookup tests in one step and in the caches.
const FEW: usize = 32;

/// Looks up many hashes: `out[i]` is the answer to `hashes[i]`, for as many as both hold.
pub(crate) fn contains_batch<C: Cells>(cells: &C, k: u32, hashes: &[u64], out: &mut [bool]) {
    let n = hashes.len().min(out.len());
    let (hashes, out) = (&hashes[..n], &mut out[..n]);
    let in_one_step = k <= AT_ONCE && cells.size_in_bytes() <= NEAR;
    if n < FEW || in_one_step {
        for (&hash, answer) in hashes.iter().zip(out) {
            *answer = contains(cells, k, hash);
        }
        return;
    }
    simd::dispatch(Sieve {
        cells,
        k,
        hashes,
        out,
    });
}

/// Many hashes, and their answers.
struct Sieve<'a, C> {
    cells: &'a C,
    k: u32,
    hashes: &'a [u64],
    out: &'a mut [bool],
}

impl<C: Cells> Op for Sieve<'_, C> {
    type Out = ();

    #[inline(always)]
    fn run<B: Bits>(self, _: B) {
        let near = self.cells.size_in_bytes() <= NEAR;
        let k = self.k as usize;
        let mut places = [[0; TOGETHER]; PROBES];
        let out = self.out.chunks_mut(TOGETHER);
        for (i, (hashes, out)) in self.hashes.chunks(TOGETHER).zip(out).enumerate() {
            prefetch_hashes::<TOGETHER>(self.hashes, (i + 1) * TOGETHER);
            let mut keys = Keys::new(hashes);
            let (mut done, mut probes) = (0, if near { 2.min(k) } else { 1 });
            while probes > 0 {
                let places = &mut places[..probes];
                keys.place(self.cells, places);
                if !near {
                    keys.prefetch(self.cells, places);
                }
                match &*places {
                    [a] => keys.pass(self.cells, [a]),
                    [a, b] => keys.pass(self.cells, [a, b]),
                    [a, b, c] => keys.pass(self.cells, [a, b, c]),
                    [a, b, c, d] => keys.pass(self.cells, [a, b, c, d]),
                    _ => unreachable!("a pass has one to {PROBES} probes"),
                }
                done += probes;
                probes = done.min(k - done).min(PROBES);
            }
            out.fill(false);
            for &answer in &keys.answers[..keys.left] {
                out[usize::from(answer)] = true;
            }
        }
    }
}

/// The keys that are left: the state of each, and where its answer goes.
struct Keys {
    states: [u64; TOGETHER],
    answers: [u16; TOGETHER],
    left: usize,
}

impl Keys {
    #[inline(always)]
    fn new(hashes: &[u64]) -> Keys {
        let mut states = [0; TOGETHER];
        states[..hashes.len()].copy_from_slice(hashes);
        Keys {
            states,
            answers: std::array::from_fn(|i| i as u16),
            left: hashes.len(),
        }
    }

    /// Finds the next places of every key, probe by probe, in a loop in which the compiler finds the vectors.
    #[inline(always)]
    fn place<C: Cells>(&mut self, cells: &C, places: &mut [[u64; TOGETHER]]) {
        for places in places {
            let states = self.states[..self.left].iter_mut();
            if cells.are_few() {
                for (state, place) in states.zip(places) {
                    *place = cells.place_by_halves(*state);
                    *state = remix(*state);
                }
            } else {
                for (state, place) in states.zip(places) {
                    *place = cells.place(*state);
                    *state = remix(*state);
                }
            }
        }
    }

    /// Asks for them.
    #[inline(always)]
    fn prefetch<C: Cells>(&self, cells: &C, places: &[[u64; TOGETHER]]) {
        for places in places {
            for &place in &places[..self.left] {
                cells.prefetch(place);
            }
        }
    }

    /// Keeps the keys whose places are all set. The answers are joined as integers, because of a `bool` the compiler makes the
    /// branches that are to be avoided.
    #[inline(always)]
    fn pass<C: Cells, const N: usize>(&mut self, cells: &C, places: [&[u64; TOGETHER]; N]) {
        let mut on = 0;
        for i in 0..self.left.min(TOGETHER) {
            let mut all = 1;
            for places in places {
                all &= cells.is_set_at(places[i]);
            }
            self.states[on] = self.states[i];
            self.answers[on] = self.answers[i];
            on += all as usize;
        }
        self.left = on;
    }
}

/// For tests of those who have cells: a state has one place, by halves or not, and that is the one tested. What lies below
/// `of_place` bits of it does not tell where it is.
#[cfg(test)]
pub(super) fn assert_places<C: Cells>(cells: &C, position: impl Fn(u64) -> u64, of_place: u32) {
    for state in (0..10_000).map(crate::bits::mix64).chain([0, u64::MAX]) {
        let place = cells.place(state);
        assert_eq!(place >> of_place, position(state));
        assert_eq!(place, cells.place_by_halves(state));
        assert_eq!(cells.is_set(state), cells.is_set_at(place));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::{fastrange, fastrange_by_halves, mix64};
    use crate::bloom::positions;

    const PLACES: u64 = 1 << 20;

    /// Cells of which all but every n-th are set, that say how large they are and whether they are few.
    struct Most {
        bytes: usize,
        few: bool,
        n: u64,
    }

    impl Cells for Most {
        fn size_in_bytes(&self) -> usize {
            self.bytes
        }

        fn is_set(&self, state: u64) -> u64 {
            self.is_set_at(self.place(state))
        }

        fn place(&self, state: u64) -> u64 {
            fastrange(state, PLACES).0
        }

        fn are_few(&self) -> bool {
            self.few
        }

        fn place_by_halves(&self, state: u64) -> u64 {
            assert!(self.few);
            fastrange_by_halves(state, PLACES as u32).0
        }

        fn prefetch(&self, place: u64) {
            assert!(place < PLACES && self.bytes > NEAR);
        }

        fn is_set_at(&self, place: u64) -> u64 {
            u64::from(!place.is_multiple_of(self.n))
        }
    }

    #[test]
    fn single_and_batch_test_exactly_the_places_of_a_key() {
        let hashes: Vec<u64> = (0..1000).map(mix64).collect();
        // Half of the keys go through each probe, or most.
        for n in [2, 16] {
            for (bytes, few) in [
                (NEAR, true),
                (NEAR + 1, true),
                (NEAR, false),
                (NEAR + 1, false),
            ] {
                for k in 1..=20 {
                    let cells = Most { bytes, few, n };
                    let is_set = |place: u64| !place.is_multiple_of(n);
                    let all = |&hash: &u64| positions(hash, PLACES, k).all(is_set);
                    let expected: Vec<bool> = hashes.iter().map(all).collect();
                    let single = hashes.iter().map(|&hash| contains(&cells, k, hash));
                    assert!(single.eq(expected.iter().copied()), "k = {k}");
                    for len in [hashes.len(), FEW, FEW - 1, 0] {
                        let mut out = vec![true; len];
                        contains_batch(&cells, k, &hashes, &mut out);
                        assert_eq!(out, expected[..len], "k = {k}");
                    }
                }
            }
        }
    }
}
