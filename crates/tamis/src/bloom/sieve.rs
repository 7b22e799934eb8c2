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
//!   pass 2         h₂          h₆    …     each pass has as many probes as all before it, or all that are left
//!   pass 3         h₂                …     what is left in the end is present
//! ```
//!
//! A key is written to the list of those that go on whether it does or not, and the list grows only if it does. When a
//! place is tested it was asked for a whole pass ago, and an absent key reads about 2.2 lines, where 2 are the least.

use crate::bloom::remix;
use crate::simd::{Bits, Op, prefetch_hashes};

/// What a probe tests: the place that a key's state chooses. Every function must be `#[inline(always)]`.
pub(crate) trait Cells {
    /// How much memory they take.
    fn size_in_bytes(&self) -> usize;
    /// Asks for the memory of a place.
    fn prefetch(&self, state: u64);
    /// 1 if a place lets a key through, 0 if not.
    fn is_set(&self, state: u64) -> u64;
}

/// Probes of a single lookup between two branches.
pub(crate) const AT_ONCE: u32 = 2;

/// Looks up one hash.
#[inline(always)]
pub(crate) fn contains<C: Cells>(cells: &C, k: u32, hash: u64) -> bool {
    let mut state = hash;
    let mut pass = |probes| {
        let (all, next) = probe(cells, probes, state);
        state = next;
        all != 0
    };
    (0..k / AT_ONCE).all(|_| pass(AT_ONCE)) && pass(k % AT_ONCE)
}

/// Tests so many places of a key in the given state: 1 if all are set, and the state after them. An integer, because of a
/// `bool` the compiler makes the branches that are to be avoided.
#[inline(always)]
fn probe<C: Cells>(cells: &C, probes: u32, mut state: u64) -> (u64, u64) {
    let mut all = 1;
    for _ in 0..probes {
        all &= cells.is_set(state);
        state = remix(state);
    }
    (all, state)
}

/// Keys that go through the passes together: enough that the last passes still have several, few enough that their
/// lines stay in the nearest cache.
const TOGETHER: usize = 256;

/// Up to this size the caches answer so soon that a second probe costs less than a second pass.
const NEAR: usize = 4 << 20;

/// Up to this size, once more than three quarters of the keys went through a pass, most are members: the others' probes
/// that are done for nothing cost less than further passes, and the processor has enough to do to wait for nothing. If they were
/// members to the end, the next keys are looked up one by one.
const MIDDLE: usize = 32 << 20;

/// More than three quarters.
#[inline(always)]
fn is_most(these: usize, of: usize) -> bool {
    4 * these > 3 * of
}

/// Looks up many hashes; `out` is as long as `hashes`.
pub(crate) struct Sieve<'a, C> {
    pub(crate) cells: C,
    pub(crate) k: u32,
    pub(crate) hashes: &'a [u64],
    pub(crate) out: &'a mut [bool],
}

impl<C: Cells> Op for Sieve<'_, C> {
    type Out = ();

    #[inline(always)]
    fn run<B: Bits>(self, _: B) {
        let bytes = self.cells.size_in_bytes();
        let out = self.out.chunks_mut(TOGETHER);
        // Whether most keys were members so far: then most of the next ones are, and a branch that stops seldom is guessed right.
        let mut members = false;
        for (i, (hashes, out)) in self.hashes.chunks(TOGETHER).zip(out).enumerate() {
            prefetch_hashes::<TOGETHER>(self.hashes, (i + 1) * TOGETHER);
            if members && bytes <= MIDDLE {
                let mut found = 0;
                for (&hash, answer) in hashes.iter().zip(out) {
                    *answer = contains(&self.cells, self.k, hash);
                    found += usize::from(*answer);
                }
                members = is_most(found, hashes.len());
                continue;
            }
            let mut keys = Keys::new(hashes);
            let mut ask = bytes > NEAR;
            let (mut done, mut probes) = (0, if ask { 1 } else { 2.min(self.k) });
            while probes > 0 {
                if ask {
                    keys.prefetch(&self.cells, probes);
                }
                let before = keys.left;
                keys.pass(&self.cells, probes);
                done += probes;
                probes = done.min(self.k - done);
                if bytes <= MIDDLE && is_most(keys.left, before) {
                    (probes, ask) = (self.k - done, false);
                }
            }
            members = is_most(keys.left, hashes.len());
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

    /// Asks for the next places of every key.
    #[inline(always)]
    fn prefetch<C: Cells>(&self, cells: &C, probes: u32) {
        for &state in &self.states[..self.left] {
            let mut state = state;
            for _ in 0..probes {
                cells.prefetch(state);
                state = remix(state);
            }
        }
    }

    /// Keeps the keys whose next places are all set.
    #[inline(always)]
    fn pass<C: Cells>(&mut self, cells: &C, probes: u32) {
        let mut on = 0;
        for i in 0..self.left {
            let (all, state) = probe(cells, probes, self.states[i]);
            self.states[on] = state;
            self.answers[on] = self.answers[i];
            on += all as usize;
        }
        self.left = on;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::{fastrange, mix64};
    use crate::bloom::positions;

    const PLACES: u64 = 1 << 20;

    /// Cells of which all but every n-th are set, that say how large they are.
    struct Most {
        bytes: usize,
        n: u64,
    }

    impl Cells for Most {
        fn size_in_bytes(&self) -> usize {
            self.bytes
        }

        fn prefetch(&self, _: u64) {}

        fn is_set(&self, state: u64) -> u64 {
            u64::from(!fastrange(state, PLACES).0.is_multiple_of(self.n))
        }
    }

    #[test]
    fn single_and_batch_test_exactly_the_places_of_a_key() {
        let hashes: Vec<u64> = (0..1000).map(mix64).collect();
        let sizes = [NEAR, NEAR + 1, MIDDLE + 1];
        // Half of the keys go through each probe, or most.
        for (bytes, n) in sizes
            .into_iter()
            .flat_map(|bytes| [(bytes, 2), (bytes, 16)])
        {
            for k in 1..=16 {
                let cells = Most { bytes, n };
                let all = |&hash: &u64| positions(hash, PLACES, k).all(|p| !p.is_multiple_of(n));
                let expected: Vec<bool> = hashes.iter().map(all).collect();
                let single: Vec<bool> = hashes.iter().map(|&h| contains(&cells, k, h)).collect();
                assert_eq!(single, expected, "k = {k}");
                let mut out = vec![true; hashes.len()];
                crate::simd::dispatch(Sieve {
                    cells,
                    k,
                    hashes: &hashes,
                    out: &mut out,
                });
                assert_eq!(out, expected, "k = {k}");
            }
        }
    }
}
