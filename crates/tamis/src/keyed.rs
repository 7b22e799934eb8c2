//! `Keyed<F>`: a filter of keys. It hashes them and looks the hashes up in a filter; `file.rs`
//! opens and saves it.

mod any;
mod parallel;

use std::time::Duration;

use crate::any::Held;
use crate::config::Config;
use crate::error::{BuildError, BuildErrorKind, Full, MergeError, MergeErrorKind};
use crate::filter::{Count, Filter, Halve, Insert, Map, Merge, Remove, Window};
use crate::form::{self, KeyForm};
use crate::key::{Hashing, Key};

/// A filter of keys: a [`Filter`] of hashes, with the [`Hashing`] that makes them.
///
/// ```
/// use tamis::{Cuckoo, Config, Keyed};
///
/// let mut seen: Keyed<Cuckoo> = Keyed::new(&Config::new(1_000_000).fpr(0.01))?;
/// seen.insert("alice")?;
/// assert!(seen.contains("alice"));
/// assert!(seen.remove("alice"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With the type of a filter, what its kind cannot do does not compile. A `Keyed<AnyFilter>` has
/// the same calls for the kind that a configuration or a file names, and they return an error
/// that names the kind where it cannot:
///
/// ```
/// use tamis::{AnyFilter, Config, Keyed};
///
/// let config: Config = "cuckoo:capacity=1000,fpr=0.001".parse()?;
/// let mut seen: Keyed<AnyFilter> = Keyed::build(&config, ["alice", "bob"])?;
/// seen.extend(["carol", "dave"])?;
/// assert!(seen.contains("carol") && seen.remove("dave")?);
/// assert_eq!(seen.kind().name, "cuckoo");
///
/// let no_map = seen.get("carol").unwrap_err();
/// assert!(no_map.to_string().contains("`bloomier`"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Keyed<F> {
    pub(crate) filter: F,
    pub(crate) hashing: Hashing,
    pub(crate) key_form: KeyForm,
    pub(crate) key_field: Option<Box<str>>,
    pub(crate) capacity: u64,
    pub(crate) fpr: f64,
}

/// A key's hash in the key's place, for a caller who has hashed it before with the filter's own
/// [`Hashing`].
///
/// ```
/// use tamis::{Bloom, Config, Hashed, Keyed};
///
/// let words: Keyed<Bloom> = Keyed::build(&Config::default(), ["tamis", "sieve"])?;
/// let hashes = ["tamis", "strainer"].map(|word| words.hash(word));
/// let mut found = [false; 2];
/// words.contains_batch(hashes.map(Hashed), &mut found);
/// assert!(found[0]);
/// # Ok::<(), tamis::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashed(pub u64);

impl Key for Hashed {
    #[inline]
    fn hash_with(&self, _: &Hashing) -> u64 {
        self.0
    }
}

/// How many keys are hashed before their hashes are looked up or inserted together.
const CHUNK: usize = 256;

/// Hashes the next keys, as many as there is room for; returns how many.
#[inline]
pub(crate) fn hash_some<K: Key>(
    hashing: &Hashing,
    keys: &mut impl Iterator<Item = K>,
    hashes: &mut [u64],
) -> usize {
    let pairs = hashes.iter_mut().zip(keys);
    pairs
        .map(|(hash, key)| *hash = key.hash_with(hashing))
        .count()
}

/// Inserts keys in order, many at a time.
fn insert_all<K: Key>(
    filter: &mut (impl Insert + ?Sized),
    hashing: &Hashing,
    keys: impl IntoIterator<Item = K>,
) -> Result<(), Full> {
    let mut keys = keys.into_iter().fuse();
    let (mut hashes, mut done) = ([0; CHUNK], 0);
    loop {
        let n = hash_some(hashing, &mut keys, &mut hashes);
        if n == 0 {
            return Ok(());
        }
        filter
            .insert_batch(&hashes[..n])
            .map_err(|full| full.after(done + full.accepted()))?;
        done += n;
    }
}

/// Looks up the values of keys, many at a time.
fn get_all<K: Key>(
    map: &(impl Map + ?Sized),
    hashing: &Hashing,
    keys: impl IntoIterator<Item = K>,
    out: &mut [Option<u64>],
) {
    let (mut keys, mut hashes) = (keys.into_iter().fuse(), [0; CHUNK]);
    for out in out.chunks_mut(CHUNK) {
        let n = hash_some(hashing, &mut keys, &mut hashes[..out.len()]);
        map.get_batch(&hashes[..n], out);
    }
}

impl<F: Filter> Keyed<F> {
    /// Puts the key layer around a filter whose hashes were made by `hashing`. Capacity and rate
    /// are those of the configuration, for information; a capacity below the number of keys
    /// counts as that number.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the configuration's rate is none.
    pub fn from_filter(
        filter: F,
        hashing: Hashing,
        config: &Config,
    ) -> Result<Keyed<F>, BuildError> {
        let fpr = config.fpr;
        if !(fpr > 0.0 && fpr < 1.0) {
            return Err(BuildErrorKind::Fpr(fpr).into());
        }
        let capacity = config.capacity.max(filter.charged());
        Ok(Keyed {
            filter,
            hashing,
            key_form: KeyForm::default(),
            key_field: None,
            capacity,
            fpr,
        })
    }

    /// Whether the key may have been inserted. `false` is certain; `true` is wrong with
    /// probability [`fpr`](Self::fpr).
    #[inline]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.filter.contains(self.hash(key))
    }

    /// Looks up many keys, of a slice or any iterator: `out[i]` becomes whether the key number i
    /// may have been inserted, for as many as there are keys and room. Most kinds are
    /// faster so than by single calls.
    ///
    /// ```
    /// use tamis::{BinaryFuse8, Config, Keyed};
    ///
    /// let ids: Keyed<BinaryFuse8> = Keyed::build(&Config::default(), 0..1000u64)?;
    /// let mut found = [false; 3];
    /// ids.contains_batch([1u64, 2, 3], &mut found);
    /// assert_eq!(found, [true; 3]);
    /// # Ok::<(), tamis::BuildError>(())
    /// ```
    pub fn contains_batch<K: Key>(&self, keys: impl IntoIterator<Item = K>, out: &mut [bool]) {
        let (mut keys, mut hashes) = (keys.into_iter().fuse(), [0; CHUNK]);
        for out in out.chunks_mut(CHUNK) {
            let n = hash_some(&self.hashing, &mut keys, &mut hashes[..out.len()]);
            self.filter.contains_batch(&hashes[..n], out);
        }
    }

    /// Prefetches the memory that a lookup or an insertion of this key will read.
    #[inline]
    pub fn prefetch<K: Key + ?Sized>(&self, key: &K) {
        self.filter.prefetch(self.hash(key));
    }

    /// How many keys were put in and not removed; see [`Filter::len`].
    pub fn len(&self) -> u64 {
        self.filter.len()
    }

    /// Whether no key was put in.
    pub fn is_empty(&self) -> bool {
        self.filter.is_empty()
    }

    /// The false-positive rate to expect now, at the present load. May read the whole filter.
    pub fn fpr(&self) -> f64 {
        self.filter.fpr()
    }

    /// Every byte that the filter holds on the heap.
    pub fn size_in_bytes(&self) -> usize {
        self.filter.size_in_bytes()
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

    /// How the keys are written in the data that they come from, as far as the file remembers.
    pub fn key_form(&self) -> KeyForm {
        self.key_form
    }

    /// The same filter, whose file remembers how its keys are written. They are hashed as before.
    #[must_use]
    pub fn with_key_form(mut self, form: KeyForm) -> Keyed<F> {
        self.key_form = form;
        self
    }

    /// The field of its records, column or path, that the keys came from, as far as the file
    /// remembers.
    pub fn key_field(&self) -> Option<&str> {
        self.key_field.as_deref()
    }

    /// The same filter, whose file remembers the field that its keys came from, so that a program
    /// finds them in other records of that form. A name that is empty, is longer than 1024 bytes or
    /// has control characters is not remembered.
    ///
    /// Filters of different fields are merged, and their union has none: a field tells where
    /// keys lie, not what they are.
    ///
    /// ```
    /// use tamis::{Bloom, Config, Keyed};
    ///
    /// let urls: Keyed<Bloom> = Keyed::build(&Config::default(), ["example.org", "example.net"])?;
    /// let urls = urls.with_key_field(Some("url"));
    /// let again: Keyed<Bloom> = Keyed::open(urls.to_bytes())?;
    /// assert_eq!(again.key_field(), Some("url"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_key_field(mut self, field: Option<&str>) -> Keyed<F> {
        let field = field.filter(|name| form::is_field(name));
        self.key_field = field.map(Box::from);
        self
    }

    /// What is remembered of a union with keys of another field: a field that all came from.
    fn join_field(&mut self, other: Option<&str>) {
        self.key_field.take_if(|ours| other != Some(ours));
    }

    /// The number of keys that the filter was built for.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The false-positive rate that was asked for, at capacity.
    pub fn requested_fpr(&self) -> f64 {
        self.fpr
    }

    /// The filter of hashes, for what only its type can do.
    pub fn filter(&self) -> &F {
        &self.filter
    }

    /// The filter of hashes, for changing.
    pub fn filter_mut(&mut self) -> &mut F {
        &mut self.filter
    }

    /// Refuses to merge filters whose keys are hashed or written differently.
    fn merges_with(&self, other: &Keyed<F>) -> Result<(), MergeError> {
        if !self.hashing.agrees_with(&other.hashing) {
            return Err(MergeErrorKind::Hashing.into());
        }
        self.key_form.merges_with(other.key_form)
    }

    /// The same keys in a half of this filter; the rate asked for rises to that of the half.
    fn in_half(&self, filter: F) -> Keyed<F> {
        let fpr = self.fpr.max(filter.fpr()).min(1.0 - f64::EPSILON);
        Keyed {
            filter,
            fpr,
            key_field: self.key_field.clone(),
            ..*self
        }
    }
}

/// What the filter was built for, and how far it is from that.
impl<F: Held> Keyed<F> {
    /// Whether it holds more keys than it should: than it was built for, and it neither grows
    /// ([`Capabilities::grow`](crate::Capabilities::grow)) nor forgets
    /// ([`window`](crate::Capabilities::window)). Of a kind that counts copies
    /// ([`count`](crate::Capabilities::count)) nobody knows how many keys they are of: there
    /// [`fpr`](Self::fpr) tells.
    ///
    /// Many kinds take such keys in silence, and their rate rises above the one that was asked
    /// for.
    ///
    /// ```
    /// use tamis::{Bloom, Config, Filter, Keyed};
    ///
    /// let mut seen: Keyed<Bloom> = Keyed::build(&Config::new(1000).fpr(0.01), 0..1000u64)?;
    /// assert!(!seen.is_over_capacity());
    /// for id in 1000..2000u64 {
    ///     seen.insert(&id)?;
    /// }
    /// assert!(seen.is_over_capacity());
    /// assert!(seen.filter().fpr() > 0.1, "1 % was asked for");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn is_over_capacity(&self) -> bool {
        let (kind, _) = self.filter.parts();
        kind.is_over_capacity(self.len(), self.capacity)
    }

    /// How much of its capacity is taken: 1 where all of it is. A window that is full stays at 1,
    /// though it holds the keys of its slack too. `None` where the capacity bounds nothing: of a
    /// filter that grows, of one that was built for no keys, and of one that counts and holds more
    /// copies than that.
    pub fn fill(&self) -> Option<f64> {
        let can = self.filter.parts().0.can;
        let fill = self.filter.charged() as f64 / self.capacity as f64;
        let bounded = !can.grow && self.capacity > 0 && !(can.count && fill > 1.0);
        bounded.then(|| if can.window { fill.min(1.0) } else { fill })
    }
}

/// Counters that are stuck.
impl<F: Filter> Keyed<F> {
    /// How many counters have reached their greatest value; see [`Filter::saturated`].
    pub fn saturated(&self) -> u64 {
        self.filter.saturated()
    }
}

/// Building from keys.
impl<F: Held> Keyed<F> {
    /// An empty filter of this configuration, with the default hashing.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the configuration is not possible, or says nothing of the capacity and
    /// the kind does not grow.
    pub fn new(config: &Config) -> Result<Keyed<F>, BuildError> {
        Keyed::new_with(config, Hashing::default())
    }

    /// As [`new`](Keyed::new), with a hashing of your choice.
    ///
    /// # Errors
    ///
    /// As [`new`](Keyed::new).
    pub fn new_with(config: &Config, hashing: Hashing) -> Result<Keyed<F>, BuildError> {
        if config.capacity == 0 {
            F::asked(config)?.check_room()?;
        }
        Keyed::build_with(config, hashing, [] as [&str; 0])
    }

    /// A filter of the given keys, with the default hashing. A key may be repeated, as often as
    /// the kind holds copies ([`KindInfo::copies`](crate::KindInfo)) where it counts them.
    ///
    /// Room is made for the configuration's capacity or the number of keys, whichever is more: of
    /// the distinct keys, where a kind counts copies in place.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the configuration is not possible.
    pub fn build<K: Key>(
        config: &Config,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Keyed<F>, BuildError> {
        Keyed::build_with(config, Hashing::default(), keys)
    }

    /// As [`build`](Keyed::build), with a hashing of your choice.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the configuration is not possible.
    pub fn build_with<K: Key>(
        config: &Config,
        hashing: Hashing,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Keyed<F>, BuildError> {
        let hashes = keys.into_iter().map(|key| key.hash_with(&hashing));
        Keyed::of_hashes(config, hashing, hashes.collect())
    }

    fn of_hashes(
        config: &Config,
        hashing: Hashing,
        mut hashes: Vec<u64>,
    ) -> Result<Keyed<F>, BuildError> {
        let kind = F::asked(config)?;
        // A kind that counts in place finds out by itself how many are distinct.
        let counts_in_place = kind.copies == u64::MAX;
        let room = if counts_in_place {
            0
        } else {
            hashes.len() as u64
        };
        let config = config.clone().capacity(config.capacity.max(room));
        let filter = F::from_any(kind.build(&config, &mut hashes)?);
        let filter = filter.ok_or_else(|| BuildErrorKind::OtherKind {
            named: config.kind.clone().unwrap_or_default(),
            built: kind.name,
        })?;
        Keyed::from_filter(filter, hashing, &config)
    }
}

impl<F: Insert> Keyed<F> {
    /// Inserts a key. On `Err` the filter is exactly as it was.
    ///
    /// # Errors
    ///
    /// [`Full`] when there is no place for the key.
    #[inline]
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), Full> {
        self.filter.insert(self.hash(key))
    }

    /// Whether a key seemed to be there before; inserts it if not. Of keys that never came
    /// before, all but [`fpr`](Self::fpr) are told as new.
    ///
    /// In a window a key that is there is not made younger: [`touch`](Self::touch) does that.
    ///
    /// ```
    /// use tamis::{Config, Keyed, SplitBlock512};
    ///
    /// let mut seen: Keyed<SplitBlock512> = Keyed::new(&Config::new(1000))?;
    /// assert!(!seen.seen("alice")?);
    /// assert!(seen.seen("alice")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Full`] when the key is new and there is no place for it.
    #[inline]
    pub fn seen<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, Full> {
        let hash = self.hash(key);
        if self.filter.contains(hash) {
            return Ok(true);
        }
        self.filter.insert(hash).map(|()| false)
    }

    /// Inserts many keys in order, of a slice or any iterator; faster than one by one.
    ///
    /// # Errors
    ///
    /// [`Full`] at the first key that is refused; those before it ([`Full::accepted`] of them)
    /// are in.
    pub fn extend<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) -> Result<(), Full> {
        insert_all(&mut self.filter, &self.hashing, keys)
    }
}

impl<F: Remove> Keyed<F> {
    /// Takes out one copy of a key; `false` if none matches. Only remove what was inserted: see
    /// [`Remove::remove`].
    #[inline]
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.filter.remove(self.hash(key))
    }
}

impl<F: Count> Keyed<F> {
    /// How many copies of a key are held: never fewer than were inserted, up to
    /// [`count_limit`](Self::count_limit). See [`Count::count`].
    #[inline]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.filter.count(self.hash(key))
    }

    /// Where counting ends: a count of this means so many or more.
    pub fn count_limit(&self) -> u64 {
        self.filter.count_limit()
    }
}

impl<F: Window> Keyed<F> {
    /// Whether a key seemed to be in the window; from now on it is, with a whole window before it.
    /// [`seen`](Self::seen) leaves a key that is there as old as it is.
    ///
    /// # Errors
    ///
    /// [`Full`] as for an insertion; the key was not noted then.
    #[inline]
    pub fn touch<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, Full> {
        self.filter.touch(self.hash(key))
    }

    /// Tells a window of time what time it is; see [`Window::advance`].
    pub fn advance(&mut self, now: Duration) {
        self.filter.advance(now);
    }

    /// The last reading of the clock, also after a load; see [`Window::now`].
    pub fn now(&self) -> Option<Duration> {
        self.filter.now()
    }
}

impl<F: Merge> Keyed<F> {
    /// Takes in another filter of the same shape and hashing. On `Err` this one is exactly as it
    /// was.
    ///
    /// # Errors
    ///
    /// [`MergeError`] when the hashing, the form of the keys or a parameter differs, or the union
    /// does not fit.
    pub fn merge(&mut self, other: &Keyed<F>) -> Result<(), MergeError> {
        self.merges_with(other)?;
        self.filter.merge(&other.filter)?;
        self.join_field(other.key_field());
        Ok(())
    }
}

impl<F: Halve> Keyed<F> {
    /// The same keys in half the space, at a higher rate; see [`Halve::halve`].
    ///
    /// # Errors
    ///
    /// [`BuildError`] when this filter's size is odd, a table's keys do not fit in half of it, or
    /// memory is short.
    pub fn halve(&self) -> Result<Keyed<F>, BuildError> {
        Ok(self.in_half(self.filter.halve()?))
    }
}

impl<M: Map> Keyed<M> {
    /// The map of these pairs of key and value, with the default hashing. A pair may be given
    /// more than once.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the configuration is not possible, or a key has two values:
    /// [`BuildErrorKind::Conflict`], which names the positions of both.
    pub fn from_pairs<K: Key>(
        config: &Config,
        pairs: impl IntoIterator<Item = (K, u64)>,
    ) -> Result<Keyed<M>, BuildError> {
        Keyed::<M>::from_pairs_with(config, Hashing::default(), pairs)
    }

    /// As [`from_pairs`](Keyed::from_pairs), with a hashing of your choice.
    ///
    /// # Errors
    ///
    /// As [`from_pairs`](Keyed::from_pairs).
    pub fn from_pairs_with<K: Key>(
        config: &Config,
        hashing: Hashing,
        pairs: impl IntoIterator<Item = (K, u64)>,
    ) -> Result<Keyed<M>, BuildError> {
        let hashed = pairs
            .into_iter()
            .map(|(key, value)| (key.hash_with(&hashing), value));
        Keyed::from_filter(M::from_pairs(config, hashed)?, hashing, config)
    }

    /// The value of a key that was given; see [`Map::get`] for one that was not.
    #[inline]
    pub fn get<K: Key + ?Sized>(&self, key: &K) -> Option<u64> {
        self.filter.get(self.hash(key))
    }

    /// Looks up many keys, of a slice or any iterator: `out[i]` becomes the value of the key
    /// number i, for as many as there are keys and room. Most kinds are
    /// faster so than by single calls.
    pub fn get_batch<K: Key>(&self, keys: impl IntoIterator<Item = K>, out: &mut [Option<u64>]) {
        get_all(&self.filter, &self.hashing, keys, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyFilter, Bloom, Counting, Cuckoo, FullKind, Kind};

    fn any(config: &str) -> Keyed<AnyFilter> {
        Keyed::build(&config.parse().unwrap(), 0..100u64).unwrap()
    }

    #[test]
    fn an_iterator_that_has_ended_is_not_asked_again() {
        // Ten keys, an end, and ten more for whoever asks on.
        let calls = std::cell::Cell::new(0u64);
        let next = || {
            calls.set(calls.get() + 1);
            (!calls.get().is_multiple_of(11)).then(|| calls.get())
        };
        let mut seen: Keyed<Bloom> = Keyed::new(&Config::new(1000)).unwrap();
        seen.extend(std::iter::from_fn(next)).unwrap();
        assert_eq!((seen.len(), calls.get()), (10, 11));
        calls.set(0);
        let mut out = [false; 1000];
        seen.contains_batch(std::iter::from_fn(next), &mut out);
        assert_eq!(out.iter().filter(|&&found| found).count(), 10);
        assert!(out[..10].iter().all(|&found| found));
        calls.set(0);
        let mut plain: Bloom = Bloom::build(&Config::new(1000), &mut []).unwrap();
        Extend::extend(&mut plain, std::iter::from_fn(next));
        assert_eq!(plain.len(), 10);
    }

    #[test]
    fn a_count_says_where_it_ends() {
        let mut seen: Keyed<Counting> = Keyed::new(&Config::new(1000)).unwrap();
        for _ in 0..1000 {
            seen.insert("often").unwrap();
        }
        assert_eq!((seen.count("often"), seen.count_limit()), (15, 15));
        let config: Config = "counting:capacity=100".parse().unwrap();
        let any: Keyed<AnyFilter> = Keyed::build(&config, ["a", "a"]).unwrap();
        assert_eq!((any.count("a"), any.count_limit()), (Ok(2), Ok(15)));
        let config: Config = "bloom:capacity=100".parse().unwrap();
        let bloom: Keyed<AnyFilter> = Keyed::new(&config).unwrap();
        assert!(bloom.count_limit().is_err());
    }

    #[test]
    fn a_batch_is_of_a_slice_or_any_iterator_and_ends_with_the_shorter() {
        let filter: Keyed<Cuckoo> = Keyed::build(&Config::default(), 0..1000u64).unwrap();
        let keys: Vec<u64> = (0..600).collect();
        let mut out = vec![false; 700];
        filter.contains_batch(&keys, &mut out);
        filter.contains_batch((600..700u64).filter(|i| i % 2 == 0), &mut out[600..]);
        assert!(out[..650].iter().all(|found| *found) && out[650..].iter().all(|found| !found));
        let mut few = [false; 3];
        filter.contains_batch(0u64.., &mut few);
        assert_eq!(few, [true; 3]);
    }

    #[test]
    fn keys_by_name_of_kind_are_inserted_counted_and_removed_as_by_type() {
        let mut named = any("cuckoo:capacity=10000");
        let mut typed: Keyed<Cuckoo> = Keyed::build(&Config::new(10_000), 0..100u64).unwrap();
        named.extend(100..1000u64).unwrap();
        typed.extend(100..1000u64).unwrap();
        assert_eq!((named.seen(&5u64), typed.seen(&5u64)), (Ok(true), Ok(true)));
        assert_eq!(named.seen("x"), Ok(false));
        assert_eq!(typed.seen("x"), Ok(false));
        named.insert("x").unwrap();
        typed.insert("x").unwrap();
        assert_eq!((named.count("x"), typed.count("x")), (Ok(2), 2));
        assert_eq!((named.remove("x"), typed.remove("x")), (Ok(true), true));
        assert_eq!(named.to_bytes(), typed.to_bytes());
        assert_eq!(named.len(), 1001);
        assert_eq!(named.downcast_mut::<Cuckoo>().unwrap().len(), 1001);
    }

    #[test]
    fn what_a_kind_cannot_do_is_an_error_that_names_it_and_those_that_can() {
        let mut fuse = any("binary_fuse8");
        let full = fuse.insert("x").unwrap_err();
        assert!(matches!(full.kind(), FullKind::Unsupported(_)));
        let told = full.to_string();
        assert!(
            told.contains("`binary_fuse8`") && told.contains("`split_block`"),
            "{told}"
        );
        assert!(fuse.seen(&1u64).is_err() && fuse.extend(["x"]).is_err());
        let told = fuse.remove(&1u64).unwrap_err().to_string();
        assert!(
            told.contains("`binary_fuse8`") && told.contains("`cuckoo`"),
            "{told}"
        );
        assert!(fuse.count(&1u64).is_err() && fuse.get(&1u64).is_err() && fuse.halve().is_err());
        assert_eq!(fuse.len(), 100);
    }

    #[test]
    fn a_map_by_name_of_kind_maps() {
        let config: Config = "bloomier:capacity=100".parse().unwrap();
        let pairs = (0..100u64).map(|i| (i, i * i));
        let map = Keyed::<AnyFilter>::from_pairs_with(&config, Hashing::fast(7), pairs).unwrap();
        assert_eq!(map.get(&9u64), Ok(Some(81)));
        let mut out = [None; 3];
        map.get_batch([1u64, 2, 3], &mut out).unwrap();
        assert_eq!(out, [Some(1), Some(4), Some(9)]);
        let set = Keyed::<AnyFilter>::from_pairs(&"bloom".parse().unwrap(), [("a", 1)]);
        assert!(set.unwrap_err().to_string().contains("`bloom`"));
    }

    #[test]
    fn a_refusal_in_a_batch_tells_how_many_keys_are_in() {
        let mut full = any("cuckoo:capacity=100");
        let refused = full.extend(1000..100_000u64).unwrap_err();
        let accepted = refused.accepted() as u64;
        assert!(accepted > 0 && full.len() == 100 + accepted, "{refused:?}");
        assert!((1000..1000 + accepted).all(|key| full.contains(&key)));
    }

    #[test]
    fn a_half_has_the_rate_that_it_asks_for() {
        // The first capacity whose number of blocks is even.
        let halved = (100_000..100_100).find_map(|capacity| {
            let filter = any(&format!("split_block:capacity={capacity}"));
            let half = filter.halve().ok()?;
            Some((filter, half))
        });
        let (filter, half) = halved.unwrap();
        assert!(half.fpr() <= half.requested_fpr() && (0..100u64).all(|key| half.contains(&key)));
        assert_eq!(
            (half.capacity(), half.hashing()),
            (filter.capacity(), filter.hashing())
        );
    }
}
