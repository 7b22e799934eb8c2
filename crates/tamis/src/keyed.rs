//! `Keyed<F>`: the layer that turns keys into hashes, and a filter into a file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use crate::any::{AnyFilter, Held};
use crate::buf::{Buf, Bytes};
use crate::config::Config;
use crate::error::{
    BuildError, BuildErrorKind, DecodeError, DecodeErrorKind, Full, MergeError, MergeErrorKind,
};
use crate::file;
use crate::filter::{Count, Filter, Insert, Map, Merge, Remove};
use crate::format::{self, Encoder, FileHashing, Header};
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
#[derive(Clone, Debug)]
pub struct Keyed<F> {
    filter: F,
    hashing: Hashing,
    capacity: u64,
    fpr: f64,
}

/// How many keys are hashed before their hashes are looked up together.
const CHUNK: usize = 256;

impl<F: Filter> Keyed<F> {
    /// Puts the key layer around a filter whose hashes were made by `hashing`. Capacity and rate are those of the
    /// configuration, for information; a capacity below the number of keys counts as that number.
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
        let capacity = config.capacity.max(filter.len());
        Ok(Keyed {
            filter,
            hashing,
            capacity,
            fpr,
        })
    }

    /// Whether the key may have been inserted. `false` is certain; `true` is wrong with probability
    /// [`Filter::fpr`].
    #[inline]
    pub fn contains<K: Key + ?Sized>(&self, key: &K) -> bool {
        self.filter.contains(self.hash(key))
    }

    /// Looks up many keys: `out[i]` becomes `contains(&keys[i])`, for as many as both slices hold.
    pub fn contains_batch<K: Key>(&self, keys: &[K], out: &mut [bool]) {
        let mut hashes = [0; CHUNK];
        for (keys, out) in keys.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = self.hash(key);
            }
            self.filter.contains_batch(&hashes[..keys.len()], out);
        }
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

    /// Whether it holds more keys than it was built for.
    ///
    /// Many kinds take such keys in silence, and their rate rises above the one that was asked for. A kind that grows
    /// ([`KindInfo::grows`](crate::KindInfo::grows)) keeps its rate, and a window forgets the oldest keys.
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
        self.filter.len() > self.capacity
    }

    /// The false-positive rate that was asked for, at capacity.
    pub fn requested_fpr(&self) -> f64 {
        self.fpr
    }

    /// The filter of hashes.
    pub fn filter(&self) -> &F {
        &self.filter
    }

    /// The filter of hashes, for changing.
    pub fn filter_mut(&mut self) -> &mut F {
        &mut self.filter
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

    /// Inserts many keys in order, faster than one by one.
    ///
    /// # Errors
    ///
    /// [`Full`] at the first key that is refused; those before it ([`Full::accepted`] of them) are in.
    pub fn insert_batch<K: Key>(&mut self, keys: &[K]) -> Result<(), Full> {
        let mut hashes = [0; CHUNK];
        for (number, keys) in keys.chunks(CHUNK).enumerate() {
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = self.hash(key);
            }
            let done = |full: Full| full.after(number * CHUNK + full.accepted());
            self.filter
                .insert_batch(&hashes[..keys.len()])
                .map_err(done)?;
        }
        Ok(())
    }
}

impl<F: Remove> Keyed<F> {
    /// Takes out one copy of a key; `false` if none matches. Only remove what was inserted: see [`Remove::remove`].
    #[inline]
    pub fn remove<K: Key + ?Sized>(&mut self, key: &K) -> bool {
        self.filter.remove(self.hash(key))
    }
}

impl<F: Count> Keyed<F> {
    /// How many copies of a key are held: never fewer than were inserted, up to what the filter can tell
    /// ([`Count::count_limit`]). See [`Count::count`].
    #[inline]
    pub fn count<K: Key + ?Sized>(&self, key: &K) -> u64 {
        self.filter.count(self.hash(key))
    }
}

impl<M: Map> Keyed<M> {
    /// The map of these pairs of key and value, with the default hashing. A pair may be given more than once.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the configuration is not possible, or a key has two values: [`BuildErrorKind::Conflict`],
    /// which names the positions of both.
    pub fn from_pairs<K: Key>(
        config: &Config,
        pairs: impl IntoIterator<Item = (K, u64)>,
    ) -> Result<Keyed<M>, BuildError> {
        Keyed::from_pairs_with(config, Hashing::default(), pairs)
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

    /// Looks up many keys: `out[i]` becomes `get(&keys[i])`, for as many as both slices hold. Faster than single calls.
    pub fn get_batch<K: Key>(&self, keys: &[K], out: &mut [Option<u64>]) {
        let mut hashes = [0; CHUNK];
        for (keys, out) in keys.chunks(CHUNK).zip(out.chunks_mut(CHUNK)) {
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = self.hash(key);
            }
            self.filter.get_batch(&hashes[..keys.len()], out);
        }
    }
}

impl<F: Merge> Keyed<F> {
    /// Takes in another filter of the same shape and hashing. On `Err` this one is exactly as it was.
    ///
    /// # Errors
    ///
    /// [`MergeError`] when the hashing or a parameter differs, or the union does not fit.
    pub fn merge(&mut self, other: &Keyed<F>) -> Result<(), MergeError> {
        self.hashes_as(other)?;
        self.filter.merge(&other.filter)
    }
}

impl Keyed<AnyFilter> {
    /// Takes in another filter of the same kind, shape and hashing. On `Err` this one is exactly as it was.
    ///
    /// # Errors
    ///
    /// [`MergeError`] when the hashing, the kind or a parameter differs, or the union does not fit.
    pub fn merge(&mut self, other: &Keyed<AnyFilter>) -> Result<(), MergeError> {
        self.hashes_as(other)?;
        self.filter.try_merge(&other.filter)
    }
}

impl<F> Keyed<F> {
    fn hashes_as(&self, other: &Keyed<F>) -> Result<(), MergeError> {
        match self.hashing.agrees_with(&other.hashing) {
            true => Ok(()),
            false => Err(MergeErrorKind::Hashing.into()),
        }
    }
}

impl<F: Held> Keyed<F> {
    /// An empty filter of this configuration, with the default hashing.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the configuration is not possible, or says nothing of the capacity and the kind does not grow.
    pub fn new(config: &Config) -> Result<Keyed<F>, BuildError> {
        if config.capacity == 0 {
            F::asked(config)?.check_room()?;
        }
        Keyed::build(config, [] as [&str; 0])
    }

    /// A filter of the given keys, with the default hashing. Repeated keys are allowed.
    ///
    /// Room is made for the configuration's capacity or the number of keys, whichever is more.
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
        let mut hashes: Vec<u64> = keys
            .into_iter()
            .map(|key| key.hash_with(&hashing))
            .collect();
        let config = config
            .clone()
            .capacity(config.capacity.max(hashes.len() as u64));
        let kind = F::asked(&config)?;
        let filter = F::from_any(kind.build(&config, &mut hashes)?);
        let filter = filter.ok_or_else(|| BuildErrorKind::OtherKind {
            named: config.kind.clone().unwrap_or_default(),
            built: kind.name,
        })?;
        Keyed::from_filter(filter, hashing, &config)
    }

    /// Writes the file to any sink: a socket, a pipe, a `Vec<u8>`.
    ///
    /// # Errors
    ///
    /// The sink's own.
    pub fn write_to(&self, mut out: impl Write) -> io::Result<()> {
        self.encoder().write(&self.header(), &mut out)
    }

    /// The parts of the file, arrays lent by the filter.
    fn encoder(&self) -> Encoder<'_> {
        let (kind, filter) = self.filter.parts();
        let mut encoder = Encoder::default();
        kind.encode(filter, &mut encoder);
        encoder
    }

    fn header(&self) -> Header {
        let (kind, _) = self.filter.parts();
        Header {
            kind: kind.id,
            kind_version: kind.version,
            hashing: FileHashing::Known(self.hashing),
            len: self.filter.len(),
            capacity: self.capacity,
            fpr: self.fpr,
        }
    }

    /// The file as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let encoder = self.encoder();
        let mut bytes = Vec::with_capacity(usize::try_from(encoder.file_len()).unwrap_or(0));
        match encoder.write(&self.header(), &mut bytes) {
            Ok(()) => bytes,
            Err(_) => unreachable!("writing to memory does not fail"),
        }
    }

    /// How many bytes the file has.
    pub fn file_len(&self) -> u64 {
        self.encoder().file_len()
    }

    /// Saves the filter, replacing a file of that name at once and wholly, or not at all.
    ///
    /// The bytes go to a temporary file beside it, are synced, and take its name; then the directory is synced. A new
    /// file that carries a secret is readable by its owner alone.
    ///
    /// # Errors
    ///
    /// Any of those steps' own. The file is then as it was and no temporary file is left, unless only the last step, the
    /// directory's sync, failed.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        file::replace(path.as_ref(), self.hashing.is_in_files(), |out| {
            self.write_to(out)
        })
    }

    /// As [`save`](Keyed::save), giving up when `stop` says so, which is asked before every piece of a mebibyte.
    ///
    /// # Errors
    ///
    /// Those of [`save`](Keyed::save), and one that says "stopped".
    pub fn save_unless(&self, path: impl AsRef<Path>, stop: impl Fn() -> bool) -> io::Result<()> {
        file::replace(path.as_ref(), self.hashing.is_in_files(), |out| {
            self.write_to(file::Stoppable { out, stop })
        })
    }

    /// Opens a filter from bytes, verifying everything. Arrays are used where they lie, if their address allows.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the bytes are not exactly what a writer produces.
    pub fn open(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Keyed<F>, DecodeError> {
        Keyed::open_shared(&(Arc::new(bytes) as Bytes), None)
    }

    /// As [`open`](Keyed::open), for a file whose secret is kept elsewhere; a file with a known hashing must agree.
    ///
    /// # Errors
    ///
    /// [`DecodeError`], also when the secret is not the right one.
    pub fn open_with(
        bytes: impl AsRef<[u8]> + Send + Sync + 'static,
        hashing: &Hashing,
    ) -> Result<Keyed<F>, DecodeError> {
        Keyed::open_shared(&(Arc::new(bytes) as Bytes), Some(hashing))
    }

    /// Loads a file into memory, verifying everything.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the file cannot be read or is not exactly what a writer produces.
    pub fn load(path: impl AsRef<Path>) -> Result<Keyed<F>, DecodeError> {
        Keyed::open_shared(&load_bytes(path.as_ref())?, None)
    }

    /// As [`load`](Keyed::load), for a file whose secret is kept elsewhere; a file with a known hashing must agree.
    ///
    /// # Errors
    ///
    /// [`DecodeError`], also when the secret is not the right one.
    pub fn load_with(path: impl AsRef<Path>, hashing: &Hashing) -> Result<Keyed<F>, DecodeError> {
        Keyed::open_shared(&load_bytes(path.as_ref())?, Some(hashing))
    }

    /// Loads a filter from an open file, a pipe or a socket, verifying everything.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when it cannot be read or is not exactly what a writer produces.
    pub fn read_from(input: impl Read) -> Result<Keyed<F>, DecodeError> {
        Keyed::open_shared(&read_aligned(input, 0)?, None)
    }

    /// As [`read_from`](Keyed::read_from), for a file whose secret is kept elsewhere; a file with a known hashing must
    /// agree.
    ///
    /// # Errors
    ///
    /// [`DecodeError`], also when the secret is not the right one.
    pub fn read_from_with(input: impl Read, hashing: &Hashing) -> Result<Keyed<F>, DecodeError> {
        Keyed::open_shared(&read_aligned(input, 0)?, Some(hashing))
    }

    pub(crate) fn open_shared(
        bytes: &Bytes,
        given: Option<&Hashing>,
    ) -> Result<Keyed<F>, DecodeError> {
        let (header, mut decoder) = format::open(bytes)?;
        let hashing = header.hashing.resolve(given)?;
        let kind = F::found(header.kind)?;
        if header.kind_version != kind.version {
            let (kind, version) = (kind.name, header.kind_version);
            return Err(DecodeErrorKind::KindVersion { kind, version }.into());
        }
        let filter = kind.decode(&mut decoder)?;
        decoder.finish()?;
        let got = filter.kind().name;
        let expected = kind.name;
        let filter = F::from_any(filter).ok_or(DecodeErrorKind::OtherKind { expected, got })?;
        Ok(Keyed {
            filter,
            hashing,
            capacity: header.capacity,
            fpr: header.fpr,
        })
    }
}

fn load_bytes(path: &Path) -> Result<Bytes, DecodeError> {
    let file = File::open(path)?;
    let size = file.metadata()?.len();
    read_aligned(file, size)
}

/// Reads to the end into memory that starts on a cache line, so that arrays can be used in place.
///
/// `size` is what the system says of the input, 0 where it says nothing. Memory is taken at once only where the header
/// announces the same length; otherwise it grows with the bytes that really arrive. What does not start as a filter is
/// refused after its first bytes.
fn read_aligned(mut input: impl Read, size: u64) -> Result<Bytes, DecodeError> {
    let mut buf = Buf::<u8>::zeroed(64 << 10)?;
    let mut filled = 0;
    loop {
        if filled == buf.len() {
            let announced = format::announced_len(&buf)?;
            let len = if announced == size {
                size.max(2 * filled as u64) + 1
            } else {
                2 * filled as u64
            };
            let mut larger = Buf::zeroed(len)?;
            larger.make_mut()[..filled].copy_from_slice(&buf);
            buf = larger;
        }
        match input.read(&mut buf.make_mut()[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    // The filter keeps these bytes for as long as it lives; a little room behind them is not worth a copy.
    if buf.len() - filled > filled / 8 {
        buf = Buf::copied(&buf[..filled])?;
    }
    buf.truncate(filled);
    Ok(Arc::new(buf))
}
