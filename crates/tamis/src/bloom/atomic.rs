//! Bloom filters that many threads fill at once.
//!
//! The essay is at [`Atomic`].

#[cfg(test)]
#[cfg(all(target_pointer_width = "64", not(miri)))]
mod models;

use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::bloom::{Bloom, SALTS, SplitBlock512};
use crate::buf;
use crate::config::Config;
use crate::error::{BuildError, MergeError, NoMemory};
use crate::filter::{Filter, Kind};
use crate::lookup::{self, Fill, NEAR};
use crate::simd::split_block::{self, Line};
use crate::simd::{self, Bits, Op};

/// A filter that threads insert into through `&self`, as [`AtomicBloom`] and
/// [`AtomicSplitBlock`]; made from a plain filter and turned back into one.
///
/// ```
/// use tamis::{AtomicBloom, Bloom, Config, Filter, Hashing, Keyed};
///
/// let (config, hashing) = (Config::new(4000).fpr(0.01), Hashing::default());
/// let seen = AtomicBloom::new(&config)?;
/// std::thread::scope(|scope| {
///     for part in 0..4u64 {
///         let seen = &seen;
///         scope.spawn(move || {
///             let keys = 1000 * part..1000 * (part + 1);
///             keys.for_each(|key| seen.insert(hashing.hash(&key)));
///         });
///     }
/// });
/// assert_eq!(seen.len(), 4000);
/// let plain: Keyed<Bloom> = Keyed::from_filter(seen.into_plain()?, hashing, &config)?;
/// assert!((0..4000u64).all(|i| plain.contains(&i)));
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// # The idea
///
/// ```text
///   thread 1   insert(a) ──► word 3: or 0000_0100 ─┐
///   thread 2   insert(b) ──► word 3: or 0100_0000 ─┴─► word 3 = 0100_0100
///
///   one atomic OR each: neither bit is lost
/// ```
///
/// A Bloom filter is a set of bits that only ever go from 0 to 1, and the order in which they do
/// leaves no trace. So threads need not agree on anything: each sets its bits by `fetch_or`, and
/// whatever the interleaving, the outcome is bit for bit that of inserting the same keys one
/// after another. A bit that is set already is only read: a word that many keys share then stays
/// in every core's cache.
///
/// A plain load, OR and store would not do. Between the load and the store another thread may set
/// a bit in the same word, and the store takes it back: a key that was inserted is then denied.
/// The model test explores every interleaving and finds this.
///
/// # Why `Relaxed` is enough
///
/// The bits are the whole message: no other memory is reached through them, so nothing has to be
/// made visible along with one. That no update of one word is lost is true of every atomic
/// read-modify-write, whatever its ordering. And a thread that learns of an insertion (by joining
/// the thread, by a lock, a channel, an acquiring load) sees its bits, since what happened before
/// is visible whatever its ordering. A lookup that runs beside an insertion of the same key may
/// answer either way.
///
/// # One lock instead of eight ORs
///
/// A key of a [`SplitBlock512`] has bits in eight words, all of one line: eight atomic ORs, where
/// one lock does. So there the lines are dealt out to 32 locks; who holds a line's lock is the only
/// one to write it, by plain loads and stores. A batch collects the hashes of each lock, and takes
/// it once for 64 of them, whose bits are then set by vectors (`simd/split_block.rs`). Lookups take
/// no lock: a word only ever gains bits, whoever writes it.
///
/// # Cost
///
/// That of the plain filter, and a lock or as many ORs as the key has words. Filled by batches on
/// one thread, an [`AtomicSplitBlock`] takes 1.3 times as long as the plain filter for 10⁷ hashes,
/// and 2.4 times for 10⁵, where lines are near and dealing hashes out is most of the work. Two
/// threads are 1.6 times as fast as one for 10⁷; for 10⁶ and fewer they are slower, as the lines
/// go to and fro between the caches of two cores (`tamis-bench fill`, docs/PERFORMANCE.md).
/// Insertions are counted in sixteen counters, each in a cache line of its own, so that counting
/// does not make the threads wait for each other.
///
/// # When to choose it
///
/// When one filter is filled or asked by several threads at a time; for other kinds, and for keys
/// that leave or grow old, there is [`Shared`](crate::Shared). To fill one and then only
/// ask, a plain filter behind an `Arc` does. To write a file, take a
/// [`snapshot`](Atomic::snapshot), or turn the filter into its plain form.
///
/// # Bibliography
///
/// - Boehm, Adve, *Foundations of the C++ concurrency memory model*, 2008: what an atomic
///   operation promises.
/// - Norris, Demsky, *`CDSChecker`: checking concurrent data structures written with C/C++
///   atomics*, 2013: how a model test tries every interleaving, and every value that a relaxed
///   load may return.
pub struct Atomic<F> {
    words: Words<AtomicU64>,
    k: u32,
    /// Who holds one writes the lines, or asks [`seen`](Atomic::seen) for the hashes, that are its.
    locks: [Lock; LOCKS],
    /// Insertions, spread by hash.
    inserted: [Line<AtomicU64>; COUNTERS],
    /// Insertions into the plain filters that were taken in. Those may say any number, so this
    /// one stops at 2⁶⁴ − 1; the others count what was done here.
    taken: AtomicU64,
    plain: PhantomData<fn() -> F>,
}

/// A [`Bloom`] filter that many threads fill at once.
pub type AtomicBloom = Atomic<Bloom>;

/// A [`SplitBlock512`] filter that many threads fill at once.
pub type AtomicSplitBlock = Atomic<SplitBlock512>;

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Bloom {}
    impl Sealed for super::SplitBlock512 {}
}

/// Lines that count insertions.
const COUNTERS: usize = 16;
const LOCKS: usize = 32;
/// Hashes that are inserted under one lock in a batch.
const TOGETHER: usize = 64;

#[repr(align(64))]
struct Lock(Mutex<()>);

/// A plain filter that has an atomic form: 64-bit words in which a key sets bits that nothing
/// clears. Sealed.
pub trait BitWords: Kind + sealed::Sealed {
    /// The words, and the number of bits that a key sets.
    #[doc(hidden)]
    fn parts(&self) -> (&[u64], u32);
    /// The filter of these words, of which there are as many as in a filter that was built or
    /// read.
    #[doc(hidden)]
    fn from_words(
        words: impl ExactSizeIterator<Item = u64>,
        k: u32,
        len: u64,
    ) -> Result<Self, BuildError>;
    /// The word of each bit of a hash, and the bit in it.
    #[doc(hidden)]
    fn bits_of(hash: u64, words: u64, k: u32) -> impl Iterator<Item = (usize, u64)>;
    /// The line that all bits of a hash are in, with the bits of each of its words, which are a
    /// split block's; `None` where they lie anywhere.
    #[doc(hidden)]
    #[inline(always)]
    fn line(_hash: u64, _words: u64) -> Option<(usize, [u64; 8])> {
        None
    }
    /// Refuses unless the filter has this shape.
    #[doc(hidden)]
    fn has_shape(&self, words: u64, k: u32) -> Result<(), MergeError>;
}

/// What the insertion and the lookup need of an atomic word; the model test has its own.
trait AtomicWord: From<u64> + Send + Sync {
    fn get(&self) -> u64;
    fn put(&self, word: u64);
    fn or(&self, bits: u64);
}

impl AtomicWord for AtomicU64 {
    #[inline(always)]
    fn get(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn put(&self, word: u64) {
        self.store(word, Ordering::Relaxed);
    }

    #[inline(always)]
    fn or(&self, bits: u64) {
        self.fetch_or(bits, Ordering::Relaxed);
    }
}

impl<A: From<u64>> Line<A> {
    fn of(words: &[u64]) -> Line<A> {
        Line(std::array::from_fn(|i| {
            A::from(words.get(i).copied().unwrap_or(0))
        }))
    }
}

/// An array of atomic words that starts on a cache line: the protocol of insertion and lookup.
struct Words<A> {
    lines: Vec<Line<A>>,
    len: usize,
}

impl<A: AtomicWord> Words<A> {
    fn of(words: &[u64]) -> Result<Words<A>, NoMemory> {
        let mut lines = Vec::new();
        let count = words.len().div_ceil(8);
        lines.try_reserve_exact(count).map_err(|_| NoMemory {
            bytes: count as u64 * 64,
        })?;
        buf::spread_on_huge_pages(&mut lines);
        lines.extend(words.chunks(8).map(Line::of));
        let len = words.len();
        Ok(Words { lines, len })
    }

    #[inline(always)]
    fn at(&self, word: usize) -> &A {
        &self.lines[word / 8].0[word % 8]
    }

    /// Sets bits, each in its word.
    #[inline(always)]
    fn set(&self, bits: impl Iterator<Item = (usize, u64)>) {
        for (word, bit) in bits {
            let word = self.at(word);
            // Nothing clears a bit, so one that is seen set stays so.
            if word.get() & bit != bit {
                word.or(bit);
            }
        }
    }

    /// Sets bits of a line that nobody else writes meanwhile.
    #[inline(always)]
    fn set_alone(&self, line: usize, bits: [u64; 8]) {
        for (word, bits) in self.lines[line].0.iter().zip(bits) {
            word.put(word.get() | bits);
        }
    }

    /// Whether all bits are set.
    #[inline(always)]
    fn are_set(&self, mut bits: impl Iterator<Item = (usize, u64)>) -> bool {
        bits.all(|(word, bit)| self.at(word).get() & bit != 0)
    }

    fn iter(&self) -> impl ExactSizeIterator<Item = u64> {
        (0..self.len).map(|word| self.at(word).get())
    }
}

impl<F: BitWords> Atomic<F> {
    /// An empty filter, of the same shape as a plain one of this configuration.
    ///
    /// # Errors
    ///
    /// As [`Kind::build`] of the plain filter, and when the configuration says nothing of the
    /// capacity.
    pub fn new(config: &Config) -> Result<Atomic<F>, BuildError> {
        if config.capacity == 0 {
            F::INFO.check_room()?;
        }
        Atomic::from_plain(&F::build(config, &mut [])?)
    }

    /// An atomic copy of a filter.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when there is no memory for it.
    pub fn from_plain(plain: &F) -> Result<Atomic<F>, BuildError> {
        let (words, k) = plain.parts();
        let inserted = std::array::from_fn(|_| Line::of(&[]));
        Ok(Atomic {
            words: Words::of(words)?,
            k,
            locks: std::array::from_fn(|_| Lock(Mutex::new(()))),
            inserted,
            taken: AtomicU64::new(plain.len()),
            plain: PhantomData,
        })
    }

    /// Inserts a hash; any number of threads may do so at a time.
    #[inline]
    pub fn insert(&self, hash: u64) {
        match self.line(hash) {
            Some((line, bits)) => {
                let _alone = self.alone(line);
                self.words.set_alone(line, bits);
            }
            None => self.words.set(self.bits_of(hash)),
        }
        self.count(hash, 1);
    }

    /// Whether a hash seemed to be there before; inserts it if not. Of several threads that ask for
    /// the same new hash, one is told `false`.
    ///
    /// ```
    /// use tamis::{AtomicSplitBlock, Config};
    ///
    /// let seen = AtomicSplitBlock::new(&Config::new(1000))?;
    /// assert!(!seen.seen(0x9E37_79B9_7F4A_7C15));
    /// assert!(seen.seen(0x9E37_79B9_7F4A_7C15));
    /// # Ok::<(), tamis::BuildError>(())
    /// ```
    pub fn seen(&self, hash: u64) -> bool {
        let line = self.line(hash);
        // The low bits choose least of where the bits of a hash lie that lie anywhere.
        let _alone = self.alone(line.map_or(hash as usize, |(line, _)| line));
        let found = self.contains(hash);
        if !found {
            match line {
                Some((line, bits)) => self.words.set_alone(line, bits),
                None => self.words.set(self.bits_of(hash)),
            }
            self.count(hash, 1);
        }
        found
    }

    /// Inserts many hashes, faster than one by one.
    pub fn insert_batch(&self, hashes: &[u64]) {
        let Some(&first) = hashes.first() else {
            return;
        };
        if self.line(first).is_some() {
            simd::dispatch(Dealing(self, hashes));
        } else {
            let Ok(()) = lookup::insert_batch(Setting(self), hashes);
        }
        self.count(first, hashes.len() as u64);
    }

    /// Adds a plain filter's keys; threads may insert at the same time.
    ///
    /// # Errors
    ///
    /// [`MergeError`] when the parameters differ, by name. Then nothing was added.
    pub fn merge(&self, other: &F) -> Result<(), MergeError> {
        other.has_shape(self.words.len as u64, self.k)?;
        let words = other.parts().0;
        // Whether kinds have lines does not depend on the hash.
        if self.line(0).is_some() {
            let (lines, _) = words.as_chunks::<8>();
            for lock in 0..LOCKS {
                let _alone = self.alone(lock);
                let own = lines.iter().enumerate().skip(lock).step_by(LOCKS);
                own.for_each(|(line, bits)| self.words.set_alone(line, *bits));
            }
        } else {
            self.words.set(words.iter().copied().enumerate());
        }
        let more = |taken: u64| Some(taken.saturating_add(other.len()));
        let relaxed = Ordering::Relaxed;
        let _always = self.taken.fetch_update(relaxed, relaxed, more);
        Ok(())
    }

    /// A plain copy: all keys whose insertion has ended are in it, others may be in part.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when there is no memory for it.
    pub fn snapshot(&self) -> Result<F, BuildError> {
        F::from_words(self.words.iter(), self.k, self.len())
    }

    /// The plain filter: byte for byte the one that the same keys make when inserted one after
    /// another.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when there is no memory for it; both exist for a moment.
    pub fn into_plain(self) -> Result<F, BuildError> {
        self.snapshot()
    }

    #[inline(always)]
    fn bits_of(&self, hash: u64) -> impl Iterator<Item = (usize, u64)> {
        F::bits_of(hash, self.words.len as u64, self.k)
    }

    #[inline(always)]
    fn line(&self, hash: u64) -> Option<(usize, [u64; 8])> {
        F::line(hash, self.words.len as u64)
    }

    /// Waits until nobody else writes this line.
    #[inline(always)]
    fn alone(&self, line: usize) -> MutexGuard<'_, ()> {
        let lock = self.locks[line % LOCKS].0.lock();
        lock.unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts insertions. By the low bits: they choose least of where a key's own bits lie.
    #[inline(always)]
    fn count(&self, hash: u64, insertions: u64) {
        let counter = &self.inserted[hash as usize % COUNTERS].0[0];
        counter.fetch_add(insertions, Ordering::Relaxed);
    }
}

/// Hashes to insert, dealt out by the lock of their line.
struct Dealing<'a, F>(&'a Atomic<F>, &'a [u64]);

impl<F: BitWords> Op for Dealing<'_, F> {
    type Out = ();

    #[inline(always)]
    fn run<B: Bits>(self, level: B) {
        let Dealing(filter, hashes) = self;
        let is_far = filter.size_in_bytes() >= NEAR;
        let (mut dealt, mut counts) = ([[0; TOGETHER]; LOCKS], [0usize; LOCKS]);
        for &hash in hashes {
            let Some((line, _)) = filter.line(hash) else {
                continue;
            };
            if is_far {
                simd::prefetch(&filter.words.lines, line);
            }
            let lock = line % LOCKS;
            dealt[lock][counts[lock] % TOGETHER] = hash;
            counts[lock] += 1;
            if counts[lock] == TOGETHER {
                filter.insert_dealt(level, lock, &dealt[lock]);
                counts[lock] = 0;
            }
        }
        for (lock, (dealt, count)) in dealt.iter().zip(counts).enumerate() {
            if count > 0 {
                filter.insert_dealt(level, lock, &dealt[..count]);
            }
        }
    }
}

impl<F: BitWords> Atomic<F> {
    /// Inserts hashes whose lines have this lock.
    #[inline(always)]
    fn insert_dealt<B: Bits>(&self, level: B, lock: usize, hashes: &[u64]) {
        let _alone = self.alone(lock);
        for &hash in hashes {
            if let Some((line, _)) = self.line(hash) {
                split_block::set(level, &self.words.lines[line], hash as u32, &SALTS);
            }
        }
    }
}

/// The words, for inserting many hashes.
struct Setting<'a, F>(&'a Atomic<F>);

impl<F: BitWords> Fill for Setting<'_, F> {
    type Refusal = Infallible;

    #[inline(always)]
    fn bytes(&self) -> usize {
        self.0.size_in_bytes()
    }

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        self.0.prefetch(hash);
    }

    #[inline(always)]
    fn fill<B: Bits>(&mut self, _: B, hash: u64) -> Result<(), Infallible> {
        self.0.words.set(self.0.bits_of(hash));
        Ok(())
    }
}

impl<F: BitWords> Filter for Atomic<F> {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.words.are_set(self.bits_of(hash))
    }

    fn len(&self) -> u64 {
        let counters = self.inserted.iter().map(|line| line.0[0].get());
        counters.fold(self.taken.get(), u64::saturating_add)
    }

    fn size_in_bytes(&self) -> usize {
        self.words.lines.capacity() * size_of::<Line<AtomicU64>>()
    }

    /// As of a [`snapshot`](Atomic::snapshot), whose memory it takes for the while.
    fn fpr(&self) -> f64 {
        self.snapshot().map_or(1.0, |plain| plain.fpr())
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        for (word, _) in self.bits_of(hash) {
            simd::prefetch(&self.words.lines, word / 8);
        }
    }
}

impl<F: BitWords> fmt::Debug for Atomic<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Atomic")
            .field("kind", &F::INFO.name)
            .field("words", &self.words.len)
            .field("k", &self.k)
            .field("len", &self.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::filter::{Insert, Merge};
    use crate::{Hashing, Keyed};

    /// Eight threads ask for the same hashes, each in an order of its own; each hash is new to one.
    fn new_to_one<F: BitWords>() {
        const KEYS: u64 = if cfg!(miri) { 60 } else { 20_000 };
        let filter = Atomic::<F>::new(&Config::new(KEYS).fpr(1e-4)).unwrap();
        let new = &|t: u64| {
            let order = (0..KEYS).map(|i| (i * 7919 + t * 2503) % KEYS);
            order.filter(|&i| !filter.seen(mix64(i))).count() as u64
        };
        let told: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|t| scope.spawn(move || new(t))).collect();
            threads.into_iter().map(|t| t.join().unwrap()).sum()
        });
        assert_eq!(told, filter.len());
        // All but the false positives, of which there are fewer than in a full filter.
        let (_, wrong) = crate::math::binomial_interval(KEYS, 1e-4, 1e-9);
        assert!((KEYS - wrong..=KEYS).contains(&told), "{told}");
        assert!((0..KEYS).all(|i| filter.contains(mix64(i))));
    }

    #[test]
    fn a_new_hash_is_new_to_one_thread() {
        new_to_one::<Bloom>();
        new_to_one::<SplitBlock512>();
    }

    /// Threads insert overlapping parts of the keys, one by one and in batches, while others look
    /// up and merge.
    fn threads_are_as_one<F: BitWords + Insert + Merge>() {
        const KEYS: u64 = if cfg!(miri) { 400 } else { 40_000 };
        const FEW: u64 = KEYS / 40;
        let config = Config::new(2 * KEYS).fpr(0.01);
        let bytes = |filter: F| {
            let keyed = Keyed::from_filter(filter, Hashing::default(), &config).unwrap();
            keyed.to_bytes()
        };
        let before: Vec<u64> = (0..FEW).map(|i| mix64(1 << 40 | i)).collect();
        let merged: Vec<u64> = (0..FEW).map(|i| mix64(1 << 41 | i)).collect();
        let start = F::build(&config, &mut before.clone()).unwrap();
        let other = F::build(&config, &mut merged.clone()).unwrap();
        let atomic = Atomic::from_plain(&start).unwrap();
        let part = |t: u64| (0..KEYS / 4).map(move |i| mix64(t * KEYS / 8 + i));
        std::thread::scope(|scope| {
            for t in 0..8 {
                let (atomic, before) = (&atomic, &before);
                scope.spawn(move || {
                    let keys: Vec<u64> = part(t).collect();
                    let (single, batch) = keys.split_at(keys.len() / 2);
                    for &hash in single {
                        atomic.insert(hash);
                        assert!(atomic.contains(hash));
                    }
                    atomic.insert_batch(batch);
                    assert!(keys.iter().chain(before).all(|&hash| atomic.contains(hash)));
                });
            }
            scope.spawn(|| atomic.merge(&other).unwrap());
        });
        let mut plain = start;
        (0..8).for_each(|t| part(t).for_each(|hash| plain.insert(hash).unwrap()));
        plain.merge(&other).unwrap();
        assert_eq!((atomic.len(), atomic.fpr()), (plain.len(), plain.fpr()));
        let queries: Vec<u64> = (0..KEYS / 4).map(|i| mix64(1 << 42 | i)).collect();
        let mut answers = vec![false; queries.len()];
        atomic.contains_batch(&queries, &mut answers);
        assert!(
            answers
                .iter()
                .zip(&queries)
                .all(|(&a, &hash)| a == plain.contains(hash))
        );
        assert!(bytes(atomic.snapshot().unwrap()) == bytes(plain.clone()));
        assert!(bytes(atomic.into_plain().unwrap()) == bytes(plain));

        let smaller = F::build(&Config::new(KEYS).fpr(0.01), &mut []).unwrap();
        let atomic = Atomic::from_plain(&other).unwrap();
        assert!(atomic.merge(&smaller).is_err() && atomic.len() == FEW);
        assert!(bytes(atomic.into_plain().unwrap()) == bytes(other));
    }

    #[test]
    fn many_threads_make_the_bloom_filter_of_one() {
        threads_are_as_one::<Bloom>();
    }

    #[test]
    fn many_threads_make_the_split_block_filter_of_one() {
        threads_are_as_one::<SplitBlock512>();
    }

    #[test]
    fn the_number_of_insertions_stops_at_the_most() {
        let mut plain = Bloom::build(&Config::new(100), &mut []).unwrap();
        plain.len = u64::MAX - 1;
        let (most, one) = (Atomic::from_plain(&plain).unwrap(), [mix64(1)]);
        most.insert_batch(&one);
        assert_eq!(most.len(), u64::MAX);
        most.insert(one[0]);
        most.merge(&plain).unwrap();
        assert_eq!(
            (most.len(), most.snapshot().unwrap().len()),
            (u64::MAX, u64::MAX)
        );
        // All counters, whatever the hash is counted by.
        let most = Atomic::from_plain(&plain).unwrap();
        (0..64).for_each(|hash| most.insert(hash));
        assert_eq!(most.len(), u64::MAX);
    }

    #[test]
    fn a_block_is_one_line() {
        assert_eq!(
            (size_of::<Line<AtomicU64>>(), align_of::<Line<AtomicU64>>()),
            (64, 64)
        );
    }
}
