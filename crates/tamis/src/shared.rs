//! `Shared<F>`: a filter of keys that many threads use at once.
//!
//! The essay is at [`Shared`].

mod file;
#[cfg(test)]
#[cfg(all(target_pointer_width = "64", not(miri)))]
mod models;
mod shards;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync;
use std::time::Duration;

use crate::bits::{fastrange, mix64};
use crate::build::in_parallel;
use crate::config::Config;
use crate::error::{BuildError, BuildErrorKind, Full};
use crate::filter::{Count, Insert, Kind, Remove, Window};
use crate::key::{Hashing, Key};
use crate::keyed::hash_some;
use shards::Shards;

/// A filter of keys that many threads insert into, ask and remove from at once, through `&self`.
///
/// ```
/// use tamis::{Aleph, Config, Shared};
///
/// // Nobody knows how many pages there are: an `Aleph` grows.
/// let seen: Shared<Aleph> = Shared::new(&Config::default().fpr(0.001))?;
/// std::thread::scope(|scope| {
///     for worker in 0..4u64 {
///         let seen = &seen;
///         scope.spawn(move || {
///             for page in 1000 * worker..1000 * worker + 2000 {
///                 if !seen.seen(&page).expect("an aleph grows") {
///                     // This thread is the only one that is told of the page.
///                 }
///             }
///         });
///     }
/// });
/// assert!((0..5000u64).all(|page| seen.contains(&page)));
///
/// // One file of one moment, while others go on inserting; and back.
/// let file = seen.to_bytes();
/// let again: Shared<Aleph> = Shared::open(file)?;
/// assert_eq!(again.len(), seen.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// What it can do is what its kind can do: [`insert`](Shared::insert) and [`seen`](Shared::seen)
/// where `F` is [`Insert`], [`remove`](Shared::remove) where it is [`Remove`],
/// [`count`](Shared::count) where it is [`Count`], [`advance`](Shared::advance) and
/// [`touch`](Shared::touch) where it is a [`Window`]. It grows where its kind does.
///
/// # The idea
///
/// ```text
///   key ─► hash ─┬─► mix ─► which shard
///                │        ┌─────────┬─────────┬─────────┬─ … ─┐
///                └──────► │ filter  │ filter  │ filter  │     │  each behind a lock of its own
///                         └─────────┴─────────┴─────────┴─ … ─┘
/// ```
///
/// The keys are spread over shards, each a filter of the kind `F` behind a lock, so that threads
/// meet at a lock seldom: two of them with probability 1 in 64. The shard is chosen by the hash
/// *mixed*, and the shard's filter is given the hash itself: all kinds take their places from the
/// hash's top bits downwards, so had the shard been chosen by any of its bits, the keys of a shard
/// would crowd in a part of its filter. Mixed, the choice says nothing of the hash, and every shard
/// keeps the rate that was asked for; a test measures that of each kind.
///
/// # What is atomic
///
/// Each call on one key: of threads that ask [`seen`](Shared::seen) for the same new key, exactly
/// one is told that it is new. A batch is as many single calls.
///
/// # Snapshots
///
/// [`save`](Shared::save), [`to_bytes`](Shared::to_bytes) and [`snapshot`](Shared::snapshot) see
/// the filter as it was at one moment: what had been inserted before is in, and whatever is in,
/// all that was inserted before it is in as well. All shards are locked for that moment only, to
/// mark them; a shard is copied when its turn comes, or by the first that is about to change it.
/// Whoever comes to a shard while it is marked or copied waits, and nobody waits for the disk.
///
/// # Cost
///
/// An uncontended lock for each call, and one for each shard that a batch has keys of. As shards do
/// not fill alike, each has room for √-many keys more than its part: m + 7·√m + 19 where m = n/S is
/// the part of S shards, 6 % for a million keys. A window of time has room for each of its parts,
/// and these vary more: give it some more capacity than the pace needs, or it is full at times.
///
/// A window of the last n *insertions* is one of the last insertions into each shard: nearly the
/// same, but no promise of the very last n. A window of time is exact.
///
/// # When to choose it
///
/// When threads write. To fill a filter once and then only ask, a [`Keyed`](crate::Keyed) behind an
/// `Arc` does, and needs no locks. For a Bloom filter that is only filled,
/// [`AtomicSplitBlock`](crate::AtomicSplitBlock) is one filter with an ordinary file.
pub struct Shared<F> {
    shards: Shards<F>,
    hashing: Hashing,
    capacity: u64,
    fpr: f64,
}

/// The most shards, and those of a filter whose size is not known.
const MOST_SHARDS: usize = 1 << 16;
const SHARDS: u64 = 64;
/// Fewer keys than these in a shard, and the room for chance is a tenth of it.
const LEAST_KEYS: u64 = 4096;
/// Keys that are hashed and sorted by shard together.
const CHUNK: usize = 4096;
/// The first bits of π, which no kind adds to a hash before it mixes it.
const SALT: u64 = 0x243F_6A88_85A3_08D3;

/// The shard of a hash.
#[inline]
fn shard_of(hash: u64, shards: usize) -> usize {
    fastrange(mix64(hash ^ SALT), shards as u64).0 as usize
}

/// Room in each of so many shards: for the mean, seven deviations, and what few keys need more.
fn room(capacity: u64, shards: usize) -> u64 {
    let mean = capacity.div_ceil(shards as u64);
    let spread = 7 * mean.isqrt() + 19;
    mean.saturating_add(if shards == 1 { 0 } else { spread })
}

/// Hashes sorted by shard, and where each came from.
struct Sorted {
    hashes: Vec<u64>,
    from: Vec<u32>,
    /// Where the hashes of each shard end.
    ends: Vec<u32>,
}

impl Sorted {
    fn of(hashes: &[u64], shards: usize) -> Sorted {
        let places: Vec<u32> = hashes.iter().map(|&h| shard_of(h, shards) as u32).collect();
        let mut ends = vec![0; shards];
        for &place in &places {
            ends[place as usize] += 1;
        }
        let mut next = 0;
        for end in &mut ends {
            next += std::mem::replace(end, next);
        }
        // Each end is a start now, and moves to the end as hashes are put down.
        let mut sorted = Sorted {
            hashes: vec![0; hashes.len()],
            from: vec![0; hashes.len()],
            ends,
        };
        for (i, (&hash, &place)) in hashes.iter().zip(&places).enumerate() {
            let at = &mut sorted.ends[place as usize];
            sorted.hashes[*at as usize] = hash;
            sorted.from[*at as usize] = i as u32;
            *at += 1;
        }
        sorted
    }

    /// The shards that have hashes, each with where they are.
    fn runs(&self) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
        let starts = std::iter::once(&0).chain(&self.ends);
        let runs = starts.zip(&self.ends).enumerate();
        runs.filter(|(_, (start, end))| start < end)
            .map(|(shard, (&start, &end))| (shard, start as usize..end as usize))
    }
}

impl<F> Shared<F> {
    /// The shard of a key, and its hash.
    #[inline]
    fn place<K: Key + ?Sized>(&self, key: &K) -> (usize, u64) {
        let hash = key.hash_with(&self.hashing);
        (shard_of(hash, self.shards.len()), hash)
    }
}

/// Making one, and asking.
impl<F: Kind> Shared<F> {
    /// An empty filter of this configuration, with the default hashing.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the configuration is not possible, or says nothing of the capacity and
    /// the kind does not grow.
    pub fn new(config: &Config) -> Result<Shared<F>, BuildError> {
        Shared::new_with(config, Hashing::default())
    }

    /// As [`new`](Shared::new), with a hashing of your choice.
    ///
    /// # Errors
    ///
    /// As [`new`](Shared::new).
    pub fn new_with(config: &Config, hashing: Hashing) -> Result<Shared<F>, BuildError> {
        if config.capacity == 0 {
            F::INFO.check_room()?;
        }
        Shared::build_with(config, hashing, [] as [&str; 0])
    }

    /// A filter of the given keys, with the default hashing; of any kind, also one that takes no
    /// insertions. With [`Config::threads`] as many threads build shards.
    ///
    /// ```
    /// use tamis::{Config, Cuckoo, Shared};
    ///
    /// let config = Config::default().fpr(0.001).threads(2);
    /// let ids: Shared<Cuckoo> = Shared::build(&config, 0..100_000u64)?;
    /// assert!(ids.contains(&7u64) && ids.remove(&7u64));
    /// # Ok::<(), tamis::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the configuration is not possible.
    pub fn build<K: Key>(
        config: &Config,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Shared<F>, BuildError> {
        Shared::build_with(config, Hashing::default(), keys)
    }

    /// As [`build`](Shared::build), with a hashing of your choice.
    ///
    /// # Errors
    ///
    /// As [`build`](Shared::build).
    pub fn build_with<K: Key>(
        config: &Config,
        hashing: Hashing,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Shared<F>, BuildError> {
        let hashes = keys.into_iter().map(|key| key.hash_with(&hashing));
        Shared::of_hashes(config, hashing, hashes.collect(), None)
    }

    /// An empty filter of so many shards, 1 to 65 536: more for more threads, or fewer for
    /// less room. Otherwise there are 64, or one for each 4096 keys where that is fewer.
    ///
    /// # Errors
    ///
    /// [`BuildError`] as for [`new`](Shared::new), or when there cannot be so many.
    pub fn with_shards(
        config: &Config,
        hashing: Hashing,
        shards: usize,
    ) -> Result<Shared<F>, BuildError> {
        if config.capacity == 0 {
            F::INFO.check_room()?;
        }
        Shared::of_hashes(config, hashing, Vec::new(), Some(shards))
    }

    fn of_hashes(
        config: &Config,
        hashing: Hashing,
        hashes: Vec<u64>,
        shards: Option<usize>,
    ) -> Result<Shared<F>, BuildError> {
        let fpr = config.fpr;
        if !(fpr > 0.0 && fpr < 1.0) {
            return Err(BuildErrorKind::Fpr(fpr).into());
        }
        // A kind that counts in place finds out by itself how many keys are distinct.
        let given = match F::INFO.copies {
            u64::MAX => 0,
            _ => hashes.len() as u64,
        };
        let capacity = config.capacity.max(given);
        let usual = match capacity {
            0 => SHARDS,
            _ => (capacity / LEAST_KEYS).clamp(1, SHARDS),
        };
        let shards = shards.unwrap_or(usual as usize);
        if !(1..=MOST_SHARDS).contains(&shards) {
            let expected = "a whole number from 1 to 65536";
            return Err(BuildError::parameter("shards", shards, expected));
        }
        let mut parts: Vec<Vec<u64>> = vec![Vec::new(); shards];
        for chunk in hashes.chunks(CHUNK) {
            let sorted = Sorted::of(chunk, shards);
            for (shard, run) in sorted.runs() {
                parts[shard].extend_from_slice(&sorted.hashes[run]);
            }
        }
        drop(hashes);
        let threads = config.threads;
        let part = config.clone().capacity(room(capacity, shards)).threads(1);
        let built = in_parallel(threads, parts.iter_mut(), |hashes| F::build(&part, hashes));
        let filters: Vec<F> = built.into_iter().collect::<Result<_, _>>()?;
        Ok(Shared::of_filters(filters, hashing, capacity, fpr))
    }

    fn of_filters(filters: Vec<F>, hashing: Hashing, capacity: u64, fpr: f64) -> Shared<F> {
        Shared {
            shards: Shards::of(filters),
            hashing,
            capacity,
            fpr,
        }
    }

    /// A copy of the filter as it is at one moment.
    pub fn snapshot(&self) -> Shared<F> {
        let filters = self.shards.frozen().collect();
        Shared::of_filters(filters, self.hashing, self.capacity, self.fpr)
    }

    /// Whether the key may have been inserted. `false` is certain; `true` is wrong with
    /// probability [`fpr`](Self::fpr).
    #[inline]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        let (shard, hash) = self.place(key);
        self.shards.reading(shard).filter.contains(hash)
    }

    /// Looks up many keys, of a slice or any iterator: `out[i]` becomes whether the key number i
    /// may have been inserted, for as many as there are keys and room. Each lock is taken once for
    /// some thousand keys.
    pub fn contains_batch<K: Key>(&self, keys: impl IntoIterator<Item = K>, out: &mut [bool]) {
        let mut keys = keys.into_iter().fuse();
        let mut hashes = vec![0; CHUNK.min(out.len())];
        let mut answers = vec![false; hashes.len()];
        for out in out.chunks_mut(CHUNK) {
            let n = hash_some(&self.hashing, &mut keys, &mut hashes[..out.len()]);
            let sorted = Sorted::of(&hashes[..n], self.shards.len());
            for (shard, run) in sorted.runs() {
                let filter = &self.shards.reading(shard).filter;
                filter.contains_batch(&sorted.hashes[run.clone()], &mut answers[run]);
            }
            for (&from, &answer) in sorted.from.iter().zip(&answers) {
                out[from as usize] = answer;
            }
        }
    }

    /// How many keys were put in and not removed; see [`Filter::len`](crate::Filter::len). Others
    /// may change it meanwhile.
    pub fn len(&self) -> u64 {
        self.each(F::len).fold(0, u64::saturating_add)
    }

    /// Whether no key was put in.
    pub fn is_empty(&self) -> bool {
        self.each(F::is_empty).all(|empty| empty)
    }

    /// The false-positive rate to expect now, at the present load. May read the whole filter.
    pub fn fpr(&self) -> f64 {
        // An absent key asks any shard alike.
        self.each(F::fpr).sum::<f64>() / self.shards.len() as f64
    }

    /// Every byte that the filters hold on the heap.
    pub fn size_in_bytes(&self) -> usize {
        self.shards.size_in_bytes() + self.each(F::size_in_bytes).sum::<usize>()
    }

    /// What each shard's filter says, one after another.
    fn each<T>(&self, ask: impl Fn(&F) -> T) -> impl Iterator<Item = T> {
        (0..self.shards.len()).map(move |shard| ask(&self.shards.reading(shard).filter))
    }

    /// How many shards there are.
    pub fn shards(&self) -> usize {
        self.shards.len()
    }

    /// The hash that the filter sees for a key.
    #[inline]
    pub fn hash<K: Key + ?Sized>(&self, key: &K) -> u64 {
        key.hash_with(&self.hashing)
    }

    /// How keys are hashed.
    pub fn hashing(&self) -> &Hashing {
        &self.hashing
    }

    /// The number of keys that the filter was built for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The false-positive rate that was asked for, at capacity.
    pub fn requested_fpr(&self) -> f64 {
        self.fpr
    }
}

impl<F: Kind + Insert> Shared<F> {
    /// Inserts a key. On `Err` the filter is exactly as it was.
    ///
    /// # Errors
    ///
    /// [`Full`] when there is no place for the key; its numbers are those of the key's shard.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&self, key: &K) -> Result<(), Full> {
        let (shard, hash) = self.place(key);
        self.shards.writing(shard).filter.insert(hash)
    }

    /// Whether a key seemed to be there before; inserts it if not, in one step: of several threads
    /// that bring the same new key, one is told `false`.
    ///
    /// In a window a key that is there is not made younger: [`touch`](Self::touch) does that.
    ///
    /// # Errors
    ///
    /// [`Full`] when the key is new and there is no place for it, as [`insert`](Self::insert).
    #[inline]
    pub fn seen<K: Key + ?Sized>(&self, key: &K) -> Result<bool, Full> {
        let (shard, hash) = self.place(key);
        let filter = &mut self.shards.writing(shard).filter;
        if filter.contains(hash) {
            return Ok(true);
        }
        filter.insert(hash).map(|()| false)
    }

    /// Inserts many keys, of a slice or any iterator; faster than one by one, as each lock is taken
    /// once for some thousand keys.
    ///
    /// # Errors
    ///
    /// [`Full`] when a key is refused. [`Full::accepted`] keys are in then, not all of them before
    /// that one: keys go in by shard.
    pub fn extend<K: Key>(&self, keys: impl IntoIterator<Item = K>) -> Result<(), Full> {
        let (mut keys, mut done) = (keys.into_iter().fuse(), 0);
        let mut hashes = vec![0; CHUNK];
        loop {
            let n = hash_some(&self.hashing, &mut keys, &mut hashes);
            if n == 0 {
                return Ok(());
            }
            let sorted = Sorted::of(&hashes[..n], self.shards.len());
            for (shard, run) in sorted.runs() {
                let keys = &sorted.hashes[run];
                let inserted = self.shards.writing(shard).filter.insert_batch(keys);
                inserted.map_err(|full| full.after(done + full.accepted()))?;
                done += keys.len();
            }
        }
    }
}

impl<F: Kind + Remove> Shared<F> {
    /// Takes out one copy of a key; `false` if none matches. Only remove what was inserted: see
    /// [`Remove::remove`].
    #[inline]
    pub fn remove<K: Key + ?Sized>(&self, key: &K) -> bool {
        let (shard, hash) = self.place(key);
        self.shards.writing(shard).filter.remove(hash)
    }
}

impl<F: Kind + Count> Shared<F> {
    /// How many copies of a key are held: never fewer than were inserted. See [`Count::count`].
    #[inline]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        let (shard, hash) = self.place(key);
        self.shards.reading(shard).filter.count(hash)
    }
}

impl<F: Kind + Window> Shared<F> {
    /// Whether a key seemed to be in the window; from now on it is, with a whole window before it.
    /// [`seen`](Self::seen) leaves a key that is there as old as it is.
    ///
    /// # Errors
    ///
    /// [`Full`] as of [`insert`](Self::insert); the key was not noted then.
    #[inline]
    pub fn touch<K: Key + ?Sized>(&self, key: &K) -> Result<bool, Full> {
        let (shard, hash) = self.place(key);
        self.shards.writing(shard).filter.touch(hash)
    }

    /// Tells all shards what time it is, one after another; see [`Window::advance`].
    pub fn advance(&self, now: Duration) {
        self.shards.change_all(|filter| filter.advance(now));
    }

    /// The last reading of the clock, also after a load; see [`Window::now`].
    pub fn now(&self) -> Option<Duration> {
        self.each(F::now).min().flatten()
    }

    /// Makes room where a shard was [`Full`]; see [`Window::make_room`].
    pub fn make_room(&self) {
        self.shards.change_all(F::make_room);
    }

    /// How far back from the clock's last reading answers reach, in every shard; see
    /// [`Window::covered`].
    pub fn covered(&self) -> Option<Duration> {
        self.each(F::covered).min().flatten()
    }
}

impl<F: Kind> fmt::Debug for Shared<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("kind", &F::INFO.name)
            .field("shards", &self.shards.len())
            .field("hashing", &self.hashing)
            .field("capacity", &self.capacity)
            .field("fpr", &self.fpr)
            .finish_non_exhaustive()
    }
}
