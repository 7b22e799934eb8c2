//! Looking up many hashes at once: the two drivers that every batch goes through.
//!
//! ```text
//!  ring     hashes   │ 0 … 7 │ 8 … 15 │ …          │ 64 … 71 │ …
//!                      └ probed                      └ placed, and prefetched
//!
//!  passes   hashes   h₀ h₁ h₂ h₃ h₄ h₅ h₆ h₇ …     all are placed, prefetched, then tested
//!           pass 1   h₀    h₂ h₃       h₆    …     those that pass are placed again
//!           pass 2         h₂          h₆    …     with as many probes as before, up to four
//!           pass 3         h₂                …     what is left in the end is present
//! ```
//!
//! A kind that finds its answer in one step gives a [`Ring`]: where a hash's memory lies, and
//! what is there. While one hash is probed, the lines of the one 64 after it are on their way.
//!
//! A kind that reads one place after the other, and stops at the first that says no, gives
//! [`Passes`]. To branch after each probe is to toss a coin, and the processor, which guesses
//! ahead, loses every other toss. So the hashes go through the probes together: each is written
//! to the list of those that go on whether it does or not, and the list grows only if it does.
//! When a place is tested, it was prefetched a whole pass ago.
//!
//! Both drivers are one [`simd::dispatch`] a batch. All that they call must be
//! `#[inline(always)]` to be compiled for the level they run at, which closures cannot be. Views
//! go by value: of what lies in memory, the compiler loads pointers and lengths again after each
//! answer that it writes.
//!
//! A kind without a view is looked up by its single calls in the same ring ([`calls`]).

use crate::error::Full;
use crate::filter::{Filter, Insert};
use crate::simd::{self, Bits, FAR, Op, Portable};

/// Below this many bytes a filter sits in the caches close to the core, and prefetching costs
/// more than it hides. From here on a kind prefetches that reads one line, or has to wait for one
/// before it knows the next; others do from [`FAR`] on, as to find several places for a prefetch
/// fills the processor with more than it waits for.
pub(crate) const NEAR: usize = 256 << 10;

/// How many hashes are placed, or probed, together.
pub(crate) const EIGHT: usize = 8;

/// How many hashes ahead of the probe their lines are prefetched.
const AHEAD: usize = 64;

/// How many hashes ahead of those that are placed the hashes themselves are prefetched. The
/// processor would do that by itself, but where it waits for as many lines as it can, the hashes'
/// come last, and everything else after them.
const HASHES_AHEAD: usize = 128;

/// A view of a filter that answers in one step.
pub(crate) trait Ring: Copy {
    /// From how many bytes on its lines are prefetched: [`NEAR`] or [`FAR`].
    const PREFETCH_FROM: usize = FAR;
    /// All that the probe needs, so that nothing is computed twice; the hash where that is cheap.
    type Place: Copy + Default;
    /// `bool`, or what a map holds.
    type Answer: Copy + Default;

    /// How much memory the probes read.
    fn bytes(self) -> usize;
    /// Where the memory of a hash lies.
    fn place(self, hash: u64) -> Self::Place;
    /// Prefetches it.
    fn prefetch(self, place: Self::Place);
    /// Answers.
    fn probe<B: Bits>(self, bits: B, place: Self::Place) -> Self::Answer;

    /// Whether eight hashes are faster placed or probed together where there are vectors of
    /// words.
    const EIGHTS: bool = false;
    /// Whether AVX-512 gains over AVX2.
    const WIDE: bool = Self::EIGHTS;

    /// The places of eight hashes.
    #[inline(always)]
    fn place_eight(self, hashes: [u64; EIGHT]) -> [Self::Place; EIGHT] {
        let mut places = [Self::Place::default(); EIGHT];
        for (place, hash) in places.iter_mut().zip(hashes) {
            *place = self.place(hash);
        }
        places
    }

    /// The answers of eight places.
    #[inline(always)]
    fn probe_eight<B: Bits>(self, bits: B, places: [Self::Place; EIGHT]) -> [Self::Answer; EIGHT] {
        let mut answers = [Self::Answer::default(); EIGHT];
        for (answer, place) in answers.iter_mut().zip(places) {
            *answer = self.probe(bits, place);
        }
        answers
    }
}

/// Looks up one hash.
#[inline(always)]
pub(crate) fn probe<R: Ring>(view: R, hash: u64) -> R::Answer {
    view.probe(Portable, view.place(hash))
}

/// Looks up many: `out[i]` is the answer to `hashes[i]`, for as many as both hold. A filter of
/// nothing has no view, and answers no.
pub(crate) fn ring<R: Ring>(view: Option<R>, hashes: &[u64], out: &mut [R::Answer]) {
    struct Driver<'a, R: Ring>(R, &'a [u64], &'a mut [R::Answer]);
    impl<R: Ring> Op for Driver<'_, R> {
        type Out = ();
        const WIDE: bool = R::WIDE;

        #[inline(always)]
        fn run<B: Bits>(self, bits: B) {
            drive_ring(self.0, bits, self.1, self.2);
        }
    }
    let n = hashes.len().min(out.len());
    match view {
        Some(view) => simd::dispatch(Driver(view, &hashes[..n], &mut out[..n])),
        None => out[..n].fill(R::Answer::default()),
    }
}

#[inline(always)]
pub(crate) fn drive_ring<R: Ring, B: Bits>(
    view: R,
    bits: B,
    hashes: &[u64],
    out: &mut [R::Answer],
) {
    let is_near = view.bytes() < R::PREFETCH_FROM;
    if R::EIGHTS && B::VECTOR {
        let (groups, rest) = hashes.as_chunks();
        let (answers, last) = out.as_chunks_mut();
        drive_eights(view, bits, is_near, groups, answers);
        drive_ones(view, bits, is_near, rest, last);
    } else {
        drive_ones(view, bits, is_near, hashes, out);
    }
}

/// One hash after the other, of which 64 wait in the ring.
///
/// A chunk of 64 is placed while the chunk before it is probed, slot by slot; the first has none
/// before it, and after the last none is placed. So each of the kind's functions stands here
/// once.
#[inline(always)]
fn drive_ones<R: Ring, B: Bits>(
    view: R,
    bits: B,
    is_near: bool,
    hashes: &[u64],
    out: &mut [R::Answer],
) {
    if is_near {
        for (&hash, answer) in hashes.iter().zip(out) {
            *answer = view.probe(bits, view.place(hash));
        }
        return;
    }
    let mut ring = [R::Place::default(); AHEAD];
    // Answers gather here: after each that it writes to the caller's memory, the compiler would
    // load anew all that a probe reads.
    let mut answers = [R::Answer::default(); AHEAD];
    let (mut coming, mut out, mut waiting) = (hashes, out, 0);
    loop {
        let (chunk, rest) = coming.split_at(coming.len().min(AHEAD));
        let slots = ring.iter_mut().zip(&mut answers).enumerate();
        for (i, (slot, answer)) in slots.take(chunk.len().max(waiting)) {
            let place = *slot;
            if let Some(&hash) = chunk.get(i) {
                simd::prefetch(rest, i + HASHES_AHEAD - AHEAD);
                *slot = view.place(hash);
                view.prefetch(*slot);
            }
            if i < waiting {
                *answer = view.probe(bits, place);
            }
        }
        let (done, later) = out.split_at_mut(waiting);
        done.copy_from_slice(&answers[..waiting]);
        (coming, out, waiting) = (rest, later, chunk.len());
        if waiting == 0 {
            return;
        }
    }
}

/// The same with eight in every slot of the ring.
#[inline(always)]
fn drive_eights<R: Ring, B: Bits>(
    view: R,
    bits: B,
    is_near: bool,
    groups: &[[u64; EIGHT]],
    out: &mut [[R::Answer; EIGHT]],
) {
    const SLOTS: usize = AHEAD / EIGHT;
    if is_near {
        for (&group, answers) in groups.iter().zip(out) {
            *answers = view.probe_eight(bits, view.place_eight(group));
        }
        return;
    }
    let mut ring = [[R::Place::default(); EIGHT]; SLOTS];
    let (mut coming, mut out, mut waiting) = (groups, out, 0);
    loop {
        let (chunk, rest) = coming.split_at(coming.len().min(SLOTS));
        let (done, later) = out.split_at_mut(waiting);
        let slots = ring.iter_mut().enumerate();
        for (i, slot) in slots.take(chunk.len().max(waiting)) {
            let places = *slot;
            if let Some(&group) = chunk.get(i) {
                simd::prefetch(rest, i + HASHES_AHEAD / EIGHT - SLOTS);
                *slot = view.place_eight(group);
                for &place in &*slot {
                    view.prefetch(place);
                }
            }
            if let Some(answers) = done.get_mut(i) {
                *answers = view.probe_eight(bits, places);
            }
        }
        (coming, out, waiting) = (rest, later, chunk.len());
        if waiting == 0 {
            return;
        }
    }
}

/// A view of a filter that takes several steps, in one round or more: a hash is present when a
/// round lets it through all its probes.
pub(crate) trait Passes: Copy {
    /// A view of what one round probes.
    type Round: Round;

    /// How many rounds there are: at least one.
    fn rounds(self) -> usize;
    /// The round of this number, below [`rounds`](Passes::rounds).
    fn round(self, number: usize) -> Self::Round;
}

/// A view of one array, or of as many as a hash is probed in before it passes.
pub(crate) trait Round: Copy {
    /// From how many bytes on its lines are prefetched: [`NEAR`] or [`FAR`].
    const PREFETCH_FROM: usize = FAR;

    /// How much memory the probes read.
    fn bytes(self) -> usize;
    /// How many probes a hash has to pass.
    fn probes(self) -> usize;
    /// What the first place is made of.
    fn start(self, hash: u64) -> u64;
    /// Prefetches what the first place is found by, where that is not the state alone.
    #[inline(always)]
    fn prefetch_start(self, _state: u64) {}
    /// The state after the next probe, and its place: that of `MANY` hashes in a loop, where the
    /// compiler can make vectors, or of one.
    fn place<const MANY: bool>(self, state: u64) -> (u64, u64);
    /// Prefetches a place.
    fn prefetch(self, place: u64);
    /// 1 if a place lets the hash through, 0 if not: of a `bool` the compiler makes the branches
    /// that are to be avoided.
    fn test(self, place: u64) -> u64;

    /// Places and tests in one, for a single lookup: the state after the probe, and 1 if it passes.
    #[inline(always)]
    fn step(self, state: u64) -> (u64, u64) {
        let (next, place) = self.place::<false>(state);
        (next, self.test(place))
    }
}

/// What has one round.
impl<R: Round> Passes for R {
    type Round = R;

    #[inline(always)]
    fn rounds(self) -> usize {
        1
    }

    #[inline(always)]
    fn round(self, _: usize) -> R {
        self
    }
}

/// Looks up one hash.
#[inline(always)]
pub(crate) fn sift<P: Passes>(view: P, hash: u64) -> bool {
    for number in 0..view.rounds() {
        let round = view.round(number);
        if goes_through(round, round.start(hash), round.probes()) {
            return true;
        }
    }
    false
}

/// Whether so many more probes let a hash through, one after the other. Two places are tested
/// before each branch: it is mispredicted one time of four then, and not of two.
#[inline(always)]
fn goes_through<R: Round>(round: R, mut state: u64, mut probes: usize) -> bool {
    while probes >= 2 {
        let (after_one, one) = round.step(state);
        let (after_two, two) = round.step(after_one);
        if one & two == 0 {
            return false;
        }
        (state, probes) = (after_two, probes - 2);
    }
    probes == 0 || round.step(state).1 != 0
}

/// Hashes that go through the passes together: enough that the last passes still have several,
/// few enough that their lines stay in the nearest cache.
const TOGETHER: usize = 256;

/// Where the answers of all hashes go, before any is left out.
const ALL: [u16; TOGETHER] = {
    let (mut all, mut i) = ([0; TOGETHER], 0);
    while i < TOGETHER {
        all[i] = i as u16;
        i += 1;
    }
    all
};

/// The most probes of a pass: there is a loop for every number.
const PROBES: usize = 4;

/// Fewer hashes than these have no use for passes, nor have those that are tested in one step.
const FEW: usize = 32;

#[inline(always)]
fn is_near<R: Round>(round: R) -> bool {
    round.bytes() < R::PREFETCH_FROM
}

/// Looks up many: `out[i]` is the answer to `hashes[i]`, for as many as both hold. A filter of
/// nothing has no view, and answers no.
pub(crate) fn passes<P: Passes>(view: Option<P>, hashes: &[u64], out: &mut [bool]) {
    struct Driver<'a, P>(P, &'a [u64], &'a mut [bool]);
    impl<P: Passes> Op for Driver<'_, P> {
        type Out = ();
        /// Places are found in loops that the compiler turns into vectors.
        const WIDE: bool = true;

        #[inline(always)]
        fn run<B: Bits>(self, _: B) {
            drive_passes(self.0, self.1, self.2);
        }
    }
    let n = hashes.len().min(out.len());
    match view {
        Some(view) => simd::dispatch(Driver(view, &hashes[..n], &mut out[..n])),
        None => out[..n].fill(false),
    }
}

#[inline(always)]
fn drive_passes<P: Passes>(view: P, hashes: &[u64], out: &mut [bool]) {
    let first = view.round(0);
    let in_one_step = view.rounds() == 1 && first.probes() <= 2 && is_near(first);
    if hashes.len() < FEW || in_one_step {
        for (&hash, answer) in hashes.iter().zip(out) {
            *answer = sift(view, hash);
        }
        return;
    }
    let mut places = [[0; TOGETHER]; PROBES];
    // Those that no round has let through yet, and those that are left of them in this round.
    let (mut open, mut left) = (List::new(), List::new());
    let chunks = hashes.chunks(TOGETHER).zip(out.chunks_mut(TOGETHER));
    for (i, (chunk, out)) in chunks.enumerate() {
        for line in (0..TOGETHER).step_by(EIGHT) {
            simd::prefetch(hashes, (i + 1) * TOGETHER + line);
        }
        if view.rounds() > 1 {
            open.fill(chunk);
        }
        out.fill(false);
        for number in 0..view.rounds() {
            let round = view.round(number);
            let (states, indices) = match number {
                0 => (chunk, &ALL),
                _ => (&open.states[..open.len], &open.indices),
            };
            left.start(round, states, indices);
            sift_all(round, &mut left, &mut places);
            for &index in &left.indices[..left.len] {
                out[usize::from(index)] = true;
            }
            if number + 1 < view.rounds() {
                open.remove(out);
            }
        }
    }
}

/// Takes a list through all passes of a round.
#[inline(always)]
fn sift_all<R: Round>(round: R, list: &mut List, places: &mut [[u64; TOGETHER]; PROBES]) {
    let is_near = is_near(round);
    if !is_near {
        for &state in &list.states[..list.len] {
            round.prefetch_start(state);
        }
    }
    // Where the caches answer soon, a second probe costs less than a second pass.
    let (all, mut done) = (round.probes(), 0);
    let mut probes = if is_near { all.min(2) } else { all.min(1) };
    while probes > 0 {
        let before = list.len;
        let places = &mut places[..probes];
        for places in &mut *places {
            list.place(round, places);
        }
        if !is_near {
            for places in &*places {
                for &place in &places[..list.len] {
                    round.prefetch(place);
                }
            }
        }
        match &*places {
            [a] => list.sift(round, [a]),
            [a, b] => list.sift(round, [a, b]),
            [a, b, c] => list.sift(round, [a, b, c]),
            [a, b, c, d] => list.sift(round, [a, b, c, d]),
            _ => unreachable!("a pass has one to {PROBES} probes"),
        }
        done += probes;
        // Nearly all go on, so they are members, and a branch is foreseen.
        if is_near && 16 * list.len > 15 * before {
            return list.finish(round, all - done);
        }
        probes = done.min(all - done).min(PROBES);
    }
}

/// Hashes, or the states that became of them, and where their answers go.
struct List {
    states: [u64; TOGETHER],
    indices: [u16; TOGETHER],
    len: usize,
}

impl List {
    #[inline(always)]
    fn new() -> List {
        List {
            states: [0; TOGETHER],
            indices: [0; TOGETHER],
            len: 0,
        }
    }

    #[inline(always)]
    fn fill(&mut self, hashes: &[u64]) {
        self.states[..hashes.len()].copy_from_slice(hashes);
        self.indices = ALL;
        self.len = hashes.len();
    }

    #[inline(always)]
    fn start<R: Round>(&mut self, round: R, hashes: &[u64], indices: &[u16; TOGETHER]) {
        self.len = hashes.len().min(TOGETHER);
        for (state, &hash) in self.states.iter_mut().zip(&hashes[..self.len]) {
            *state = round.start(hash);
        }
        self.indices = *indices;
    }

    /// Finds a place of every hash, in a loop in which the compiler finds the vectors.
    #[inline(always)]
    fn place<R: Round>(&mut self, round: R, places: &mut [u64; TOGETHER]) {
        for (state, place) in self.states[..self.len].iter_mut().zip(places) {
            (*state, *place) = round.place::<true>(*state);
        }
    }

    /// Keeps the hashes that pass at all these places.
    #[inline(always)]
    fn sift<R: Round, const N: usize>(&mut self, round: R, places: [&[u64; TOGETHER]; N]) {
        let mut kept = 0;
        for i in 0..self.len.min(TOGETHER) {
            let mut passes = 1;
            for places in places {
                passes &= round.test(places[i]);
            }
            self.states[kept] = self.states[i];
            self.indices[kept] = self.indices[i];
            kept += passes as usize;
        }
        self.len = kept;
    }

    /// Keeps the hashes that so many more probes let through, one after the other.
    #[inline(always)]
    fn finish<R: Round>(&mut self, round: R, probes: usize) {
        let mut kept = 0;
        for i in 0..self.len.min(TOGETHER) {
            self.indices[kept] = self.indices[i];
            kept += usize::from(goes_through(round, self.states[i], probes));
        }
        self.len = kept;
    }

    /// Removes the hashes that were answered yes.
    #[inline(always)]
    fn remove(&mut self, out: &[bool]) {
        let mut kept = 0;
        for i in 0..self.len.min(TOGETHER) {
            let index = self.indices[i];
            self.states[kept] = self.states[i];
            self.indices[kept] = index;
            kept += usize::from(!out[usize::from(index)]);
        }
        self.len = kept;
    }
}

/// A filter by its own single calls, compiled as those are: for any processor.
#[derive(Clone, Copy)]
struct Calls<P, A> {
    bytes: usize,
    prefetch: P,
    answer: A,
}

impl<P, A, T> Ring for Calls<P, A>
where
    P: Fn(u64) + Copy,
    A: Fn(u64) -> T + Copy,
    T: Copy + Default,
{
    type Place = u64;
    type Answer = T;

    #[inline(always)]
    fn bytes(self) -> usize {
        self.bytes
    }

    #[inline(always)]
    fn place(self, hash: u64) -> u64 {
        hash
    }

    #[inline(always)]
    fn prefetch(self, hash: u64) {
        (self.prefetch)(hash);
    }

    #[inline(always)]
    fn probe<B: Bits>(self, _: B, hash: u64) -> T {
        (self.answer)(hash)
    }
}

/// Looks up many by single calls, of a filter that has no view.
pub(crate) fn calls<T: Copy + Default>(
    filter: &(impl Filter + ?Sized),
    answer: impl Fn(u64) -> T + Copy,
    hashes: &[u64],
    out: &mut [T],
) {
    let view = Calls {
        bytes: filter.size_in_bytes(),
        prefetch: |hash| filter.prefetch(hash),
        answer,
    };
    let n = hashes.len().min(out.len());
    drive_ring(view, Portable, &hashes[..n], &mut out[..n]);
}

/// What gains by the processor's best level in single calls, too.
pub(crate) trait Leveled {
    /// `bool`, or what a map holds.
    type Answer;
    /// Whether AVX-512 gains over AVX2.
    const WIDE: bool = false;
    /// Answers.
    fn look_up<B: Bits>(&self, bits: B, hash: u64) -> Self::Answer;
}

/// Looks up one hash at that level. Two words, which are handed over in registers.
#[inline(always)]
pub(crate) fn single<F: Leveled>(filter: &F, hash: u64) -> F::Answer {
    struct One<'a, F>(&'a F, u64);
    impl<F: Leveled> Op for One<'_, F> {
        type Out = F::Answer;
        const WIDE: bool = F::WIDE;

        #[inline(always)]
        fn run<B: Bits>(self, bits: B) -> F::Answer {
            self.0.look_up(bits, self.1)
        }
    }
    simd::dispatch(One(filter, hash))
}

/// What takes insertions.
pub(crate) trait Fill {
    /// From how many bytes on its lines are prefetched: [`NEAR`] or [`FAR`].
    const PREFETCH_FROM: usize = FAR;
    /// Whether AVX-512 gains over AVX2.
    const WIDE: bool = false;
    /// Why a hash is refused.
    type Refusal;

    /// How much memory there is to write to.
    fn bytes(&self) -> usize;
    /// Prefetches what the insertion of a hash reads.
    fn fetch(&self, hash: u64);
    /// Inserts a hash, or has changed nothing.
    fn fill<B: Bits>(&mut self, bits: B, hash: u64) -> Result<(), Self::Refusal>;
}

/// Inserts one hash at the processor's best level.
#[inline(always)]
pub(crate) fn insert<F: Fill>(filter: F, hash: u64) -> Result<(), F::Refusal> {
    struct One<F>(F, u64);
    impl<F: Fill> Op for One<F> {
        type Out = Result<(), F::Refusal>;
        const WIDE: bool = F::WIDE;

        #[inline(always)]
        fn run<B: Bits>(mut self, bits: B) -> Result<(), F::Refusal> {
            self.0.fill(bits, self.1)
        }
    }
    simd::dispatch(One(filter, hash))
}

/// Inserts many in order, prefetching ahead of them, at the processor's best level. The error says
/// how many went in.
pub(crate) fn insert_batch<F: Fill>(filter: F, hashes: &[u64]) -> Result<(), (usize, F::Refusal)> {
    struct Driver<'a, F>(F, &'a [u64]);
    impl<F: Fill> Op for Driver<'_, F> {
        type Out = Result<(), (usize, F::Refusal)>;
        const WIDE: bool = F::WIDE;

        #[inline(always)]
        fn run<B: Bits>(self, bits: B) -> Self::Out {
            fill_all(self.0, bits, self.1)
        }
    }
    simd::dispatch(Driver(filter, hashes))
}

/// The same by single insertions, compiled as those are: for any processor.
pub(crate) fn insertions<F: Insert + ?Sized>(
    filter: &mut F,
    hashes: &[u64],
) -> Result<(), (usize, Full)> {
    fill_all(Insertions(filter), Portable, hashes)
}

#[inline(always)]
fn fill_all<F: Fill, B: Bits>(
    mut filter: F,
    bits: B,
    hashes: &[u64],
) -> Result<(), (usize, F::Refusal)> {
    let is_near = filter.bytes() < F::PREFETCH_FROM;
    let ahead = if is_near { &[] } else { hashes };
    let (first, coming) = ahead.split_at(ahead.len().min(AHEAD));
    for &hash in first {
        filter.fetch(hash);
    }
    for (i, &hash) in hashes.iter().enumerate() {
        if let Some(&next) = coming.get(i) {
            filter.fetch(next);
        }
        if let Err(refusal) = filter.fill(bits, hash) {
            return Err((i, refusal));
        }
    }
    Ok(())
}

/// A filter by its own single insertions.
struct Insertions<'a, F: ?Sized>(&'a mut F);

impl<F: Insert + ?Sized> Fill for Insertions<'_, F> {
    type Refusal = Full;

    #[inline(always)]
    fn bytes(&self) -> usize {
        self.0.size_in_bytes()
    }

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        self.0.prefetch(hash);
    }

    #[inline(always)]
    fn fill<B: Bits>(&mut self, _: B, hash: u64) -> Result<(), Full> {
        self.0.insert(hash)
    }
}

#[cfg(test)]
mod tests;
