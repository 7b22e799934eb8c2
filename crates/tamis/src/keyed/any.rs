//! `Keyed` of a filter whose kind is known at run time.

use std::time::Duration;

use super::{Keyed, get_all, insert_all};
use crate::any::{AnyFilter, Held};
use crate::config::Config;
use crate::error::{BuildError, BuildErrorKind, Full, FullKind, MergeError, Unsupported};
use crate::filter::{Count, Filter, Insert, Kind, Map};
use crate::format::ParamValue;
use crate::key::{Hashing, Key};
use crate::kinds::KindInfo;

/// The same calls for a kind that is known at run time; each says so where the kind cannot.
impl Keyed<AnyFilter> {
    /// What is known of the filter's kind: name, capabilities, parameters.
    pub fn kind(&self) -> &'static KindInfo {
        self.filter.kind()
    }

    /// The filter's shape: every parameter that its file holds, by name.
    pub fn params(&self) -> Vec<(&'static str, ParamValue)> {
        self.filter.params()
    }

    /// The filter of hashes as its own type, if it is of that kind.
    pub fn downcast_ref<F: Kind>(&self) -> Option<&F> {
        self.filter.downcast_ref()
    }

    /// The filter of hashes as its own type, for changing, if it is of that kind.
    pub fn downcast_mut<F: Kind>(&mut self) -> Option<&mut F> {
        self.filter.downcast_mut()
    }

    /// Inserts a key. On `Err` the filter is exactly as it was.
    ///
    /// # Errors
    ///
    /// [`Full`] when there is no place for the key, or [its kind](FullKind::Unsupported) takes no
    /// insertions.
    pub fn insert<K: Key + ?Sized>(&mut self, key: &K) -> Result<(), Full> {
        let hash = self.hash(key);
        self.inserting()?.insert(hash)
    }

    /// Whether a key seemed to be there before; inserts it if not. In a window a key that is
    /// there is not made younger: [`touch`](Self::touch) does that.
    ///
    /// # Errors
    ///
    /// [`Full`] when the key is new and there is no place for it, or [its
    /// kind](FullKind::Unsupported) takes no insertions.
    pub fn seen<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, Full> {
        let hash = self.hash(key);
        let filter = self.inserting()?;
        if filter.contains(hash) {
            return Ok(true);
        }
        filter.insert(hash).map(|()| false)
    }

    /// Whether a key seemed to be in the window; from now on it is, with a whole window before it.
    ///
    /// # Errors
    ///
    /// [`Full`] as for an insertion, or when [its kind](FullKind::Unsupported) has no window.
    pub fn touch<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, Full> {
        let (kind, keys, hash) = (self.filter.kind(), self.filter.len(), self.hash(key));
        let cannot = FullKind::Unsupported(Unsupported::new(kind, "window"));
        let window = self.filter.as_window_mut();
        window.ok_or(Full::new(cannot, keys))?.touch(hash)
    }

    /// Tells a window of time what time it is; see [`Window::advance`](crate::Window::advance).
    ///
    /// # Errors
    ///
    /// [`Unsupported`] when the kind has no window.
    pub fn advance(&mut self, now: Duration) -> Result<(), Unsupported> {
        let cannot = Unsupported::new(self.filter.kind(), "window");
        self.filter.as_window_mut().ok_or(cannot)?.advance(now);
        Ok(())
    }

    /// The last reading of the clock, also after a load; see
    /// [`Window::now`](crate::Window::now). `None` where the kind has no window.
    pub fn now(&self) -> Option<Duration> {
        self.filter.as_window()?.now()
    }

    /// Inserts many keys in order, of a slice or any iterator; faster than one by one.
    ///
    /// # Errors
    ///
    /// [`Full`] at the first key that is refused, with those before it ([`Full::accepted`] of
    /// them) in; or when [its kind](FullKind::Unsupported) takes no insertions.
    pub fn extend<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) -> Result<(), Full> {
        let hashing = self.hashing;
        insert_all(self.inserting()?, &hashing, keys)
    }

    fn inserting(&mut self) -> Result<&mut dyn Insert, Full> {
        let (kind, keys) = (self.filter.kind(), self.filter.len());
        let cannot = FullKind::Unsupported(Unsupported::new(kind, "insert"));
        self.filter.as_insert().ok_or(Full::new(cannot, keys))
    }

    /// Takes out one copy of a key; `false` if none matches. Only remove what was inserted: see
    /// [`Remove::remove`](crate::Remove::remove).
    ///
    /// # Errors
    ///
    /// [`Unsupported`] when the kind does not remove.
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> Result<bool, Unsupported> {
        let (kind, hash) = (self.filter.kind(), self.hash(key));
        let filter = self.filter.as_remove();
        Ok(filter.ok_or(Unsupported::new(kind, "remove"))?.remove(hash))
    }

    /// How many copies of a key are held: never fewer than were inserted, up to
    /// [`count_limit`](Self::count_limit). See [`Count::count`].
    ///
    /// # Errors
    ///
    /// [`Unsupported`] when the kind does not count.
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> Result<u64, Unsupported> {
        Ok(self.counting()?.count(self.hash(key)))
    }

    /// Where counting ends: a count of this means so many or more.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] when the kind does not count.
    pub fn count_limit(&self) -> Result<u64, Unsupported> {
        Ok(self.counting()?.count_limit())
    }

    fn counting(&self) -> Result<&dyn Count, Unsupported> {
        let filter = self.filter.as_count();
        filter.ok_or(Unsupported::new(self.filter.kind(), "count"))
    }

    /// The value of a key that was given; see [`Map::get`] for one that was not.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] when the kind is no map.
    pub fn get<K: Key + ?Sized>(&self, key: &K) -> Result<Option<u64>, Unsupported> {
        Ok(self.mapping()?.get(self.hash(key)))
    }

    /// Looks up many keys, of a slice or any iterator: `out[i]` becomes the value of the key
    /// number i, for as many as there are keys and room. Most kinds are
    /// faster so than by single calls.
    ///
    /// # Errors
    ///
    /// [`Unsupported`] when the kind is no map.
    pub fn get_batch<K: Key>(
        &self,
        keys: impl IntoIterator<Item = K>,
        out: &mut [Option<u64>],
    ) -> Result<(), Unsupported> {
        get_all(self.mapping()?, &self.hashing, keys, out);
        Ok(())
    }

    fn mapping(&self) -> Result<&dyn Map, Unsupported> {
        let map = self.filter.as_map();
        map.ok_or(Unsupported::new(self.filter.kind(), "map"))
    }

    /// The map of these pairs of key and value, of the kind that the configuration names. A pair
    /// may be given more than once.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the kind is no map, the configuration is not possible, or a key has
    /// two values.
    pub fn from_pairs<K: Key>(
        config: &Config,
        pairs: impl IntoIterator<Item = (K, u64)>,
    ) -> Result<Keyed<AnyFilter>, BuildError> {
        Keyed::<AnyFilter>::from_pairs_with(config, Hashing::default(), pairs)
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
    ) -> Result<Keyed<AnyFilter>, BuildError> {
        let hashed = pairs
            .into_iter()
            .map(|(key, value)| (key.hash_with(&hashing), value));
        let filter = AnyFilter::asked(config)?.from_pairs(config, hashed)?;
        Keyed::from_filter(filter, hashing, config)
    }

    /// Takes in another filter of the same kind, shape and hashing. On `Err` this one is exactly
    /// as it was.
    ///
    /// # Errors
    ///
    /// [`MergeError`] when the hashing, the form of the keys, the kind or a parameter differs, the
    /// kind cannot merge, or the union does not fit.
    pub fn merge(&mut self, other: &Keyed<AnyFilter>) -> Result<(), MergeError> {
        self.merges_with(other)?;
        self.filter.try_merge(&other.filter)?;
        self.join_field(other.key_field());
        Ok(())
    }

    /// The same keys in half the space, at a higher rate.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the kind cannot be halved ([`BuildErrorKind::Unsupported`]), this
    /// filter's size is odd, a table's keys do not fit in half of it, or memory is short.
    pub fn halve(&self) -> Result<Keyed<AnyFilter>, BuildError> {
        let cannot = Unsupported::new(self.filter.kind(), "halve");
        let half = self.filter.try_halve();
        Ok(self.in_half(half.ok_or(BuildErrorKind::Unsupported(cannot))??))
    }
}
