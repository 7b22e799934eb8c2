use std::cell::RefCell;
use std::convert::Infallible;

use super::*;
use crate::bits::mix64;
use crate::simd::AsVector;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Note {
    Prefetch(u64),
    Probe(u64),
}

/// A filter of so many bytes that says yes to every other hash at random, and notes what it
/// is asked in which order.
#[derive(Clone, Copy)]
struct Notes<'a> {
    bytes: usize,
    notes: &'a RefCell<Vec<Note>>,
}

fn says_yes(hash: u64) -> bool {
    mix64(hash) % 2 == 1
}

impl Ring for Notes<'_> {
    const EIGHTS: bool = true;
    type Place = u64;
    type Answer = bool;

    fn bytes(self) -> usize {
        self.bytes
    }

    fn place(self, hash: u64) -> u64 {
        hash
    }

    fn prefetch(self, place: u64) {
        self.notes.borrow_mut().push(Note::Prefetch(place));
    }

    fn probe<B: Bits>(self, _: B, place: u64) -> bool {
        self.notes.borrow_mut().push(Note::Probe(place));
        says_yes(place)
    }
}

impl Fill for Notes<'_> {
    type Refusal = Infallible;

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn fetch(&self, hash: u64) {
        self.prefetch(hash);
    }

    fn fill<B: Bits>(&mut self, bits: B, hash: u64) -> Result<(), Infallible> {
        self.probe(bits, hash);
        Ok(())
    }
}

/// Each hash once in order, each prefetched once and before its turn: not just before, but
/// when that 64 before it is not yet probed. The last of eights are an exception.
fn assert_prefetched(notes: &[Note], bytes: usize, hashes: &[u64]) {
    let probes = notes.iter().filter_map(|&note| match note {
        Note::Probe(hash) => Some(hash),
        Note::Prefetch(_) => None,
    });
    assert!(probes.eq(hashes.iter().copied()), "each once, in order");
    let is_far = bytes >= FAR;
    let prefetched = if is_far { hashes.len() } else { 0 };
    assert_eq!(notes.len(), hashes.len() + prefetched, "each once");
    let when = |note| notes.iter().position(|&other| other == note);
    for &hash in hashes.iter().filter(|_| is_far) {
        let prefetched = when(Note::Prefetch(hash));
        assert!(prefetched.is_some() && prefetched < when(Note::Probe(hash)));
        let is_in_group = hash as usize + EIGHT <= hashes.len();
        if hash >= AHEAD as u64 && hash % EIGHT as u64 == 0 && is_in_group {
            assert!(prefetched < when(Note::Probe(hash - AHEAD as u64)));
        }
    }
}

fn lengths() -> impl Iterator<Item = usize> {
    let step = if cfg!(miri) { 13 } else { 1 };
    let few = (0..3 * AHEAD).step_by(step);
    few.chain([10 * AHEAD - 1, 10 * AHEAD + EIGHT])
}

fn the_ring_prefetches_before_it_probes<B: Bits>(bits: B) {
    for (bytes, len) in [FAR - 1, FAR]
        .into_iter()
        .flat_map(|bytes| lengths().map(move |len| (bytes, len)))
    {
        let hashes: Vec<u64> = (0..len as u64).collect();
        let notes = RefCell::default();
        let view = Notes {
            bytes,
            notes: &notes,
        };
        let mut out = vec![false; len];
        drive_ring(view, bits, &hashes, &mut out);
        let expected: Vec<bool> = hashes.iter().map(|&hash| says_yes(hash)).collect();
        assert_eq!(out, expected, "{len}");
        assert_prefetched(&notes.take(), bytes, &hashes);
    }
}

#[test]
fn hashes_are_prefetched_before_they_are_probed_one_by_one() {
    the_ring_prefetches_before_it_probes(Portable);
}

#[test]
fn hashes_are_prefetched_before_they_are_probed_by_eight() {
    the_ring_prefetches_before_it_probes(AsVector);
}

#[test]
fn hashes_are_prefetched_before_they_are_inserted() {
    for bytes in [FAR - 1, FAR] {
        for len in lengths() {
            let hashes: Vec<u64> = (0..len as u64).collect();
            let notes = RefCell::default();
            let filter = Notes {
                bytes,
                notes: &notes,
            };
            let Ok(()) = insert_batch(filter, &hashes);
            assert_prefetched(&notes.take(), bytes, &hashes);
        }
    }
}

#[test]
fn as_many_are_answered_as_there_are_hashes_and_answers() {
    for (hashes, answers) in [(100, 0), (100, 70), (70, 100)] {
        let hashes: Vec<u64> = (0..hashes).collect();
        let n = hashes.len().min(answers);
        let expected: Vec<bool> = hashes[..n].iter().map(|&hash| says_yes(hash)).collect();
        let mut out = vec![true; answers];
        let notes = RefCell::default();
        let view = Notes {
            bytes: FAR,
            notes: &notes,
        };
        ring(Some(view), &hashes, &mut out);
        assert_eq!(out[..n], expected);
        assert!(out[n..].iter().all(|&answer| answer));
    }
}

/// Rounds of probes that let all but every n-th place through, in so many bytes.
#[derive(Clone, Copy)]
struct Most {
    bytes: usize,
    rounds: usize,
    round: usize,
    probes: usize,
    n: u64,
}

/// What two rounds of it are made of.
#[derive(Clone, Copy)]
struct Rounds(Most);

impl Passes for Rounds {
    type Round = Most;

    fn rounds(self) -> usize {
        self.0.rounds
    }

    fn round(self, round: usize) -> Most {
        Most { round, ..self.0 }
    }
}

impl Round for Most {
    fn bytes(self) -> usize {
        self.bytes
    }

    fn probes(self) -> usize {
        self.probes
    }

    fn start(self, hash: u64) -> u64 {
        hash ^ (self.round as u64) << 60
    }

    fn prefetch_start(self, _: u64) {
        assert!(self.bytes >= FAR);
    }

    fn place<const MANY: bool>(self, state: u64) -> (u64, u64) {
        (state + 1, mix64(state))
    }

    fn prefetch(self, _: u64) {
        assert!(self.bytes >= FAR);
    }

    fn test(self, place: u64) -> u64 {
        u64::from(!place.is_multiple_of(self.n))
    }
}

#[test]
fn a_hash_is_present_if_a_round_lets_it_through_all_its_probes() {
    let (keys, most_probes) = if cfg!(miri) { (300, 2) } else { (1000, 20) };
    let hashes: Vec<u64> = (0..keys).map(|i| mix64(i) >> 8).collect();
    // Half of the hashes go through each probe, or most, or nearly all.
    let shares = [2, 16, 64].into_iter();
    for (n, bytes) in shares.flat_map(|n| [(n, FAR - 1), (n, FAR)]) {
        for (rounds, probes) in [1, 2, 3]
            .into_iter()
            .flat_map(|r| (1..=most_probes).map(move |p| (r, p)))
        {
            let view = Rounds(Most {
                bytes,
                rounds,
                round: 0,
                probes,
                n,
            });
            let is_in = |&hash: &u64| {
                (0..rounds).any(|number| {
                    let round = view.round(number);
                    let first = round.start(hash);
                    (first..first + probes as u64)
                        .all(|state| round.test(round.place::<false>(state).1) == 1)
                })
            };
            let expected: Vec<bool> = hashes.iter().map(is_in).collect();
            let single = hashes.iter().map(|&hash| sift(view, hash));
            assert!(single.eq(expected.iter().copied()), "{rounds}, {probes}");
            for len in [hashes.len(), 257, 256, 255, FEW, FEW - 1, 0] {
                let mut out = vec![true; len];
                passes(Some(view), &hashes, &mut out);
                assert_eq!(out, expected[..len], "{rounds}, {probes}");
            }
        }
    }
}
