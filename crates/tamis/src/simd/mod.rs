//! Everything that depends on the processor: run-time dispatch, prefetch, batches, hand-written kernels, and reads without a
//! check that would fill its window.
//!
//! A build without `target-cpu` runs on any processor of its architecture, and still uses AVX2, BMI2 and AVX-512 where they are:
//! [`dispatch`] runs an [`Op`] inside a function compiled for them, into which the whole operation is inlined. A batch
//! is one dispatch, so its price is paid once.
//!
//! One source serves all levels wherever the compiler finds the vectors by itself, as it does for split blocks; a
//! kernel is written by hand only where it does not, in a file of its own, beside plain code that gives the same bits.
//!
//! This is one of the crate's two rooms for `unsafe` (the other is `buf`).
#![allow(
    unsafe_code,
    reason = "room for unsafe 2 of 2: prefetch, target features, kernels, and reads at places that are inside"
)]

mod bits;
mod parity;
mod table;
mod tinyset;

#[cfg(test)]
pub(crate) use bits::AsVector;
pub(crate) use bits::{Bits, Portable};
pub(crate) use parity::COLUMNS;
pub(crate) use table::{Run, Segments, Table, TableMut, half_range, places};
pub(crate) use tinyset::{Cut, Eight, Fields, Gap};

use std::sync::atomic::{AtomicU8, Ordering};

/// What the processor can do, as far as the code distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// What every processor of the architecture has.
    Portable = 1,
    /// x86-64-v3: AVX2, BMI1, BMI2, LZCNT, POPCNT, FMA.
    V3 = 2,
    /// x86-64-v4 with permutations of bytes, shifts across words, and counts of ones: V3 and AVX-512 F, BW, CD, DQ, VL, VBMI, VBMI2
    /// and VPOPCNTDQ; Ice Lake, Zen 4 and later.
    V4 = 3,
}

static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level in force: found once, then one load.
#[inline(always)]
pub(crate) fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::Portable,
        2 => Level::V3,
        3 => Level::V4,
        _ => detect(),
    }
}

#[cold]
fn detect() -> Level {
    let level = best();
    LEVEL.store(level as u8, Ordering::Relaxed);
    level
}

fn best() -> Level {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("fma")
    {
        let v4 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("avx512vpopcntdq");
        return if v4 { Level::V4 } else { Level::V3 };
    }
    Level::Portable
}

/// Turns the processor's extensions off (or on again, as far as there are any) for the whole process, so that a test
/// can compare the answers. Both give the same bits, so a concurrent call is not disturbed. Without effect in a build for
/// processors that all have them.
#[doc(hidden)]
pub fn force_portable(portable: bool) {
    let level = if portable { Level::Portable } else { best() };
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// Work that is compiled once per [`Level`]. `run` must be `#[inline(always)]`, and so must what it calls, to be
/// compiled for the level it runs at.
pub(crate) trait Op {
    /// What the work returns.
    type Out;
    /// Does the work; `bits` has the instructions of the level that the compiler does not find by itself.
    fn run<B: Bits>(self, bits: B) -> Self::Out;
}

/// Runs `op` compiled for the best level that this processor has.
///
/// Each level is a function of its own, so that a caller's loop holds a call and no code for processors that it does not
/// run on. A build for processors that all have AVX2 and BMI2 (`target-cpu`) has no choice to make, and inlines.
#[inline(always)]
pub(crate) fn dispatch<O: Op>(op: O) -> O::Out {
    #[cfg(target_arch = "x86_64")]
    {
        let is_v3 = cfg!(all(target_feature = "avx2", target_feature = "bmi2"));
        if is_v3 && cfg!(not(target_feature = "avx512f")) {
            return op.run(bits::Bmi2(()));
        }
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma")]
        fn v3<O: Op>(op: O) -> O::Out {
            op.run(bits::Bmi2(()))
        }
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma")]
        #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
        #[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vpopcntdq")]
        fn v4<O: Op>(op: O) -> O::Out {
            op.run(bits::Avx512(()))
        }
        #[inline(never)]
        fn portable<O: Op>(op: O) -> O::Out {
            op.run(Portable)
        }
        /// On the first call, and where there is nothing to choose from.
        #[cold]
        #[inline(never)]
        fn other<O: Op>(op: O) -> O::Out {
            match level() {
                // SAFETY: `level` has found every feature that `v3` is compiled with, BMI2 among them.
                Level::V3 => unsafe { v3(op) },
                // SAFETY: likewise for `v4`.
                Level::V4 => unsafe { v4(op) },
                Level::Portable => portable(op),
            }
        }
        // A single call has no more to do here than one comparison, or two.
        const V3: u8 = Level::V3 as u8;
        const V4: u8 = Level::V4 as u8;
        match LEVEL.load(Ordering::Relaxed) {
            // SAFETY: as above; `LEVEL` is what `level` has found.
            V3 => unsafe { v3(op) },
            // SAFETY: likewise.
            V4 => unsafe { v4(op) },
            _ => other(op),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    op.run(Portable)
}

/// Asks for the cache line that holds `slice[index]`; nothing happens out of bounds.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    if size_of_val(slice) < FAR {
        prefetch_near(slice, index);
        return;
    }
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and may be given any address; `wrapping_add` makes no promise about it.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(slice.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = index;
}

/// From this many bytes on, lines are asked for into the second cache and not the first: a core can wait for more of them
/// there. Whoever is about to branch on a line waits a little longer for it then, and is better off with [`prefetch_near`].
pub(crate) const FAR: usize = 2 << 20;

/// Asks for the cache line into the first cache, whatever the size of the slice.
#[inline(always)]
pub(crate) fn prefetch_near<T>(slice: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, index);
}

/// How many keys ahead of the probe their lines are asked for.
pub(crate) const AHEAD: usize = 64;

/// How many keys are placed together, where that is faster: as many as are a cache line of hashes.
pub(crate) const GROUP: usize = 8;

/// How many keys ahead of those that are placed the hashes themselves are asked for. The processor would do that by itself,
/// but where it waits for as many lines as it can, the hashes' come last, and everything else after them.
pub(crate) const HASHES_AHEAD: usize = 128;

/// Asks for the hashes from a number on, as many as whoever takes them in chunks takes at once.
#[inline(always)]
pub(crate) fn prefetch_hashes<const CHUNK: usize>(hashes: &[u64], from: usize) {
    for line in (0..CHUNK).step_by(64 / size_of::<u64>()) {
        prefetch(hashes, from + line);
    }
}

/// Below this many bytes a filter sits in the caches close to the core, and prefetching costs more than it hides.
pub(crate) const PREFETCH_FROM: usize = 256 << 10;

/// A lookup in two steps: where a hash's memory lies, and what is there. Between the two, the memory is on its way. All
/// functions must be `#[inline(always)]`, which closures cannot be.
///
/// A probe should hold slices, not a filter: of a filter, whose fields lie in memory, the compiler loads pointers and
/// lengths again after each answer that it writes.
pub(crate) trait Probe {
    /// From how many bytes on memory is asked for ahead: while a filter is in the second cache, whoever does more than a few steps
    /// leaves the processor enough to do while it waits, and says [`FAR`].
    const PREFETCH_FROM: usize = PREFETCH_FROM;
    /// All that the second step needs, so that nothing is computed twice; the hash itself where that is cheap.
    type Place: Copy;
    /// Where the memory of a hash lies.
    fn place(&self, hash: u64) -> Self::Place;
    /// Asks for that memory.
    fn prefetch(&self, place: Self::Place);
    /// Answers.
    fn probe(&self, place: Self::Place) -> bool;

    /// Whether some hashes are placed faster together.
    #[inline(always)]
    fn places_groups<B: Bits>() -> bool {
        false
    }

    /// The places of a group; one by one unless there is a faster way.
    #[inline(always)]
    fn place_group<B: Bits>(&self, _: B, hashes: &[u64; GROUP]) -> [Self::Place; GROUP] {
        hashes.map(|hash| self.place(hash))
    }
}

/// A filter as its own probe, unless it has a better one, that asks for memory from so many bytes on.
struct Itself<'a, F: ?Sized, const FROM: usize>(&'a F);

impl<F: crate::Filter + ?Sized, const FROM: usize> Probe for Itself<'_, F, FROM> {
    const PREFETCH_FROM: usize = FROM;
    type Place = u64;

    #[inline(always)]
    fn place(&self, hash: u64) -> u64 {
        hash
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        self.0.prefetch(hash);
    }

    #[inline(always)]
    fn probe(&self, hash: u64) -> bool {
        self.0.contains(hash)
    }
}

/// The lines of several places are asked for from here on: to find them twice pays where memory is far.
pub(crate) const SEVERAL_LINES: usize = 4 * FAR;
/// A line at a place that is found at once, from here on.
pub(crate) const ONE_LINE: usize = PREFETCH_FROM;

/// Looks up many hashes by single calls: `out[i]` is the answer to `hashes[i]`, for as many as both hold. `FROM` is one of the
/// above.
pub(crate) fn contains_batch<F: crate::Filter + ?Sized, const FROM: usize>(
    filter: &F,
    hashes: &[u64],
    out: &mut [bool],
) {
    let n = hashes.len().min(out.len());
    dispatch(Batch {
        probe: Itself::<F, FROM>(filter),
        bytes: filter.size_in_bytes(),
        hashes: &hashes[..n],
        out: &mut out[..n],
    });
}

/// Work with one hash, all of whose functions must be `#[inline(always)]`.
pub(crate) trait Single {
    /// What the work returns.
    type Out;
    /// Does the work.
    fn run(self, hash: u64) -> Self::Out;
}

/// Does something with one hash by what AVX2 and BMI2 can do: AVX-512 has nothing to add there. Unlike an [`Op`], which is
/// handed over in memory if it is more than two words, work of two words and a hash come in registers.
#[inline(always)]
pub(crate) fn single<S: Single>(work: S, hash: u64) -> S::Out {
    struct One<S>(S, u64);
    impl<S: Single> Op for One<S> {
        type Out = S::Out;

        #[inline(always)]
        fn run<B: Bits>(self, _: B) -> S::Out {
            self.0.run(self.1)
        }
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma")]
        fn v3<S: Single>(work: S, hash: u64) -> S::Out {
            work.run(hash)
        }
        /// As in [`dispatch`]: on the first call, and where there is nothing to choose from.
        #[cold]
        #[inline(never)]
        fn other<S: Single>(work: S, hash: u64) -> S::Out {
            dispatch(One(work, hash))
        }
        if cfg!(not(all(target_feature = "avx2", target_feature = "bmi2"))) {
            return if LEVEL.load(Ordering::Relaxed) >= Level::V3 as u8 {
                // SAFETY: `LEVEL` is what `level` has found: every feature that `v3` is compiled with.
                unsafe { v3(work, hash) }
            } else {
                other(work, hash)
            };
        }
    }
    dispatch(One(work, hash))
}

/// Looks up one hash likewise.
#[inline(always)]
pub(crate) fn contains<P: Probe>(probe: P, hash: u64) -> bool {
    struct Lookup<P>(P);
    impl<P: Probe> Single for Lookup<P> {
        type Out = bool;

        #[inline(always)]
        fn run(self, hash: u64) -> bool {
            self.0.probe(self.0.place(hash))
        }
    }
    single(Lookup(probe), hash)
}

/// Answers for each hash in order and asks for the memory of the one [`AHEAD`] of it, whose place waits in a ring.
///
/// `bytes` is the size of the filter: a small one sits in the caches already.
#[inline(always)]
pub(crate) fn probe_all<P: Probe, B: Bits>(
    probe: &P,
    bits: B,
    bytes: usize,
    hashes: &[u64],
    out: &mut [bool],
) {
    debug_assert_eq!(hashes.len(), out.len());
    if bytes < P::PREFETCH_FROM || hashes.len() <= AHEAD {
        let first = if bytes < P::PREFETCH_FROM {
            &[]
        } else {
            hashes
        };
        for &hash in first {
            probe.prefetch(probe.place(hash));
        }
        for (&hash, answer) in hashes.iter().zip(out) {
            *answer = probe.probe(probe.place(hash));
        }
        return;
    }
    if P::places_groups::<B>() {
        return probe_groups(probe, bits, hashes, out);
    }
    let (first, coming) = hashes.split_at(AHEAD);
    let mut ring = [probe.place(hashes[0]); AHEAD];
    for (slot, &hash) in ring.iter_mut().zip(first) {
        *slot = probe.place(hash);
        probe.prefetch(*slot);
    }
    let (early, late) = out.split_at_mut(coming.len());
    // Answers gather here: after each that it writes to others' memory, the compiler would load anew all that a probe reads.
    let mut answers = [false; AHEAD];
    let chunks = coming.chunks(AHEAD).zip(early.chunks_mut(AHEAD));
    for (start, (chunk, out)) in (0..).step_by(AHEAD).zip(chunks) {
        for (i, (&next, slot)) in chunk.iter().zip(&mut ring).enumerate() {
            prefetch(coming, start + i + HASHES_AHEAD);
            let next = probe.place(next);
            probe.prefetch(next);
            answers[i] = probe.probe(std::mem::replace(slot, next));
        }
        out.copy_from_slice(&answers[..out.len()]);
    }
    for (i, answer) in (coming.len()..).zip(late) {
        *answer = probe.probe(ring[i % AHEAD]);
    }
}

/// The same for groups of hashes that are placed together, and what is left of them. Who has that holds slices, and nothing that
/// would be loaded after each answer.
#[inline(always)]
fn probe_groups<P: Probe, B: Bits>(probe: &P, bits: B, hashes: &[u64], out: &mut [bool]) {
    const WAITING: usize = AHEAD / GROUP;
    let (groups, rest) = hashes.as_chunks::<GROUP>();
    let (answers, last) = out.as_chunks_mut::<GROUP>();
    let (first, coming) = groups.split_at(WAITING);
    let mut ring = [[probe.place(hashes[0]); GROUP]; WAITING];
    for (places, group) in ring.iter_mut().zip(first) {
        *places = probe.place_group(bits, group);
        for &place in &*places {
            probe.prefetch(place);
        }
    }
    let (early, late) = answers.split_at_mut(coming.len());
    for (i, (group, answers)) in coming.iter().zip(early).enumerate() {
        prefetch(coming, i + HASHES_AHEAD / GROUP);
        let next = probe.place_group(bits, group);
        // All at once: from a loop that changes them one by one the compiler makes no vectors.
        let places = std::mem::replace(&mut ring[i % WAITING], next);
        for ((next, place), answer) in next.into_iter().zip(places).zip(answers) {
            probe.prefetch(next);
            *answer = probe.probe(place);
        }
    }
    for &hash in rest {
        probe.prefetch(probe.place(hash));
    }
    for (i, answers) in (coming.len()..).zip(late) {
        for (&place, answer) in ring[i % WAITING].iter().zip(answers) {
            *answer = probe.probe(place);
        }
    }
    for (&hash, answer) in rest.iter().zip(last) {
        *answer = probe.probe(probe.place(hash));
    }
}

/// Which hashes' memory to ask for when: of a small filter none.
pub(crate) struct Ahead<'a> {
    /// Before anything is done.
    pub(crate) first: &'a [u64],
    /// While hash i is worked on, that with number i of these.
    pub(crate) coming: &'a [u64],
}

impl<'a> Ahead<'a> {
    #[inline(always)]
    pub(crate) fn new(bytes: usize, hashes: &'a [u64]) -> Ahead<'a> {
        let hashes = if bytes < PREFETCH_FROM { &[] } else { hashes };
        let (first, coming) = hashes.split_at(AHEAD.min(hashes.len()));
        Ahead { first, coming }
    }
}

/// Many lookups: while key i is probed, the lines of key i + [`AHEAD`] are on their way.
pub(crate) struct Batch<'a, P> {
    pub(crate) probe: P,
    pub(crate) bytes: usize,
    pub(crate) hashes: &'a [u64],
    pub(crate) out: &'a mut [bool],
}

impl<P: Probe> Op for Batch<'_, P> {
    type Out = ();

    #[inline(always)]
    fn run<B: Bits>(self, bits: B) {
        probe_all(&self.probe, bits, self.bytes, self.hashes, self.out);
    }
}

/// Inserts many hashes likewise. The error counts those that went in.
pub(crate) struct InsertBatch<'a, F: ?Sized> {
    pub(crate) filter: &'a mut F,
    pub(crate) hashes: &'a [u64],
}

impl<F: crate::Insert + ?Sized> Op for InsertBatch<'_, F> {
    type Out = Result<(), crate::Full>;

    #[inline(always)]
    fn run<B: Bits>(self, _: B) -> Result<(), crate::Full> {
        let InsertBatch { filter, hashes } = self;
        let ahead = Ahead::new(filter.size_in_bytes(), hashes);
        for &hash in ahead.first {
            filter.prefetch(hash);
        }
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&next) = ahead.coming.get(i) {
                filter.prefetch(next);
            }
            filter.insert(hash).map_err(|full| full.after(i))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::bits::mix64;

    #[test]
    fn dispatch_runs_the_operation_once_at_any_level() {
        struct Add<'a>(&'a mut u32);
        impl Op for Add<'_> {
            type Out = u32;
            #[inline(always)]
            fn run<B: Bits>(self, _: B) -> u32 {
                *self.0 += 1;
                *self.0
            }
        }
        let mut calls = 0;
        assert_eq!(dispatch(Add(&mut calls)), 1);
        force_portable(true);
        assert_eq!(dispatch(Add(&mut calls)), 2);
        force_portable(false);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn extensions_are_used_where_the_processor_has_them() {
        let has_them = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2");
        let has_512 = is_x86_feature_detected!("avx512vpopcntdq")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("avx512vl");
        let expected = match (has_them, has_512) {
            (false, _) => Level::Portable,
            (true, false) => Level::V3,
            (true, true) => Level::V4,
        };
        assert_eq!(best(), expected);
    }

    #[test]
    fn every_hash_of_a_large_filter_is_asked_for_once_and_before_its_turn() {
        for len in [0, 1, AHEAD - 1, AHEAD, AHEAD + 1, 5 * AHEAD] {
            let hashes: Vec<u64> = (0..len as u64).collect();
            let ahead = Ahead::new(PREFETCH_FROM, &hashes);
            assert_eq!([ahead.first, ahead.coming].concat(), hashes);
            assert_eq!(ahead.first.len(), len.min(AHEAD));
            let small = Ahead::new(PREFETCH_FROM - 1, &hashes);
            assert!(small.first.is_empty() && small.coming.is_empty());
        }
    }

    /// Says yes to every other hash at random, and notes what it was asked in which order.
    struct Notes<const GROUPS: bool>(RefCell<Vec<Note>>);

    fn says_yes(hash: u64) -> bool {
        mix64(hash) % 2 == 1
    }

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Note {
        Prefetch(u64),
        Probe(u64),
    }

    impl<const GROUPS: bool> Probe for Notes<GROUPS> {
        const PREFETCH_FROM: usize = FAR;
        type Place = u64;
        fn place(&self, hash: u64) -> u64 {
            hash
        }
        fn prefetch(&self, place: u64) {
            self.0.borrow_mut().push(Note::Prefetch(place));
        }
        fn probe(&self, place: u64) -> bool {
            self.0.borrow_mut().push(Note::Probe(place));
            says_yes(place)
        }
        fn places_groups<B: Bits>() -> bool {
            GROUPS
        }
    }

    fn batches_ask_for_memory_before_they_read_it<const GROUPS: bool>() {
        for bytes in [FAR - 1, FAR] {
            for len in (0..3 * AHEAD).chain([10 * AHEAD - 1, 10 * AHEAD + GROUP]) {
                let hashes: Vec<u64> = (0..len as u64).collect();
                let notes = Notes::<GROUPS>(RefCell::default());
                let mut out = vec![false; len];
                probe_all(&notes, Portable, bytes, &hashes, &mut out);
                let expected: Vec<bool> = hashes.iter().map(|&hash| says_yes(hash)).collect();
                assert_eq!(out, expected, "{len}");
                let notes = notes.0.into_inner();
                let when = |note| notes.iter().position(|&other| other == note);
                for &hash in &hashes {
                    let (asked, read) = (when(Note::Prefetch(hash)), when(Note::Probe(hash)));
                    if bytes < FAR {
                        assert_eq!(asked, None);
                    } else {
                        assert!(asked.is_some() && asked < read, "{hash} of {len}");
                    }
                }
                // Not just before: by then, all of the next ones as far as they are asked for ahead.
                for hash in AHEAD..if bytes < FAR { 0 } else { len } {
                    let asked = when(Note::Prefetch(hash as u64));
                    assert!(asked < when(Note::Probe((hash - AHEAD) as u64)));
                }
                let asked = if bytes < FAR { 0 } else { len };
                assert_eq!(notes.len(), asked + len, "each once");
            }
        }
    }

    #[test]
    fn hashes_that_are_placed_one_by_one_are_asked_for_first() {
        batches_ask_for_memory_before_they_read_it::<false>();
    }

    #[test]
    fn hashes_that_are_placed_in_groups_are_asked_for_first() {
        batches_ask_for_memory_before_they_read_it::<true>();
    }

    #[test]
    fn a_prefetch_may_point_anywhere() {
        prefetch(&[1u8, 2], 0);
        prefetch::<u64>(&[], usize::MAX);
        prefetch(&vec![0u8; FAR], usize::MAX);
    }
}
