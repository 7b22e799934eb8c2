//! Building from more hashes than fit in memory.
//!
//! The essay is at [`Spill`].

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::buf::Buf;
use crate::build::dedup;
use crate::build::shards::shard_of;
use crate::build::source::{Keys, Source};
use crate::error::{BuildError, BuildErrorKind};
use crate::file::nameless;

/// Files that the hashes are spread over.
const FILES: u64 = 256;
/// Hashes buffered for each file.
const BUFFER: u64 = 8 << 10;

/// Builds a [`BinaryFuse`](crate::BinaryFuse) from hashes kept on disk, in bounded memory.
///
/// The filter is byte for byte the one that [`Kind::build`](crate::Kind::build) makes of the same
/// hashes, in whatever order they come. The files lie in the directory given and have no names
/// there, so that the system takes them away when this is dropped or the program ends, however it
/// does. Nobody else can open them.
///
/// ```
/// use tamis::{BinaryFuse8, Config, Filter, Hashing, Key, Spill};
///
/// let hashing = Hashing::default();
/// let mut spill = Spill::new(std::env::temp_dir())?;
/// for id in 0..100_000u64 {
///     spill.push(id.hash_with(&hashing))?;
/// }
/// let filter: BinaryFuse8 = spill.finish(&Config::default())?;
/// assert!(filter.contains(42u64.hash_with(&hashing)));
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// [`Keyed::from_filter`](crate::Keyed::from_filter) turns it into a filter of keys.
///
/// ```text
///   push ──► 256 buffers, by the top 8 bits of φ·hash ──► 256 files without a name
///
///   finish   shard 0         shard 1         shard 2              each read, solved, and forgotten
///            ├───────────────┼───────────────┼─────────── … ┤     φ·hash from 0 to 2⁶⁴
///            ├──┼──┼──┼──┼──┼──┼──┼──┼──┼──┼──┼──┼──┼── … ┤       files
/// ```
///
/// The number of shards depends on the number of keys, which is known only at the end. But a shard
/// is a range of multiples φ·hash, and so is a file: a shard's keys are in a few neighbouring
/// files, and a file that two shards share is read for both.
///
/// Memory: the filter, 16 MiB of buffers, and while shards are solved 17 bytes per thread for each
/// key of a shard (up to 12.5 million keys, so 213 MB). Disk: 8 bytes a key. Repeated keys are
/// dropped file by file, for which a whole file is read: 8 bytes for each of its hashes, a 256th
/// of all of them, or all of them if one hash repeats over and over.
///
/// | keys | to disk | to a filter of 8 bits, two threads | most memory | by the formula above |
/// |---|---|---|---|---|
/// | 4·10⁸ | 11 s | 27 s | 836 MB | 886 MB |
/// | 10⁹ | 39 s | 70 s | 1488 MB | 1553 MB |
///
/// The keys were distinct. Every one was found again, and 0.39 % of others (two cores; `cargo run
/// --release -p tamis-examples --bin out_of_core -- 1000000000 DIRECTORY 2`).
#[derive(Debug)]
pub struct Spill {
    buckets: Vec<Bucket>,
    keys: u64,
    /// How many shards the hashes are to be sorted into, and how many each has.
    shards: u64,
    counts: Vec<u64>,
    /// Why some hashes are lost. Then no filter is built from the others.
    broken: Option<BuildError>,
    /// Where the files are, for messages.
    directory: PathBuf,
}

/// The hashes that a filter was built from, still on disk; removed when this is dropped.
#[derive(Debug)]
pub struct Spilled(pub(crate) Spill);

impl Spilled {
    /// Passes all hashes to `work`, some at a time, in no order.
    ///
    /// ```
    /// use tamis::{BinaryFuse8, Config, Filter, Spill};
    ///
    /// let mut spill = Spill::new(std::env::temp_dir())?;
    /// spill.push(0x1234_5678_9ABC_DEF0)?;
    /// let (filter, mut hashes) = spill.finish_and_keep::<u8>(&Config::default())?;
    /// hashes.for_each(|some| assert!(some.iter().all(|&hash| filter.contains(hash))))?;
    /// # Ok::<(), tamis::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the disk fails.
    pub fn for_each(&mut self, mut work: impl FnMut(&[u64])) -> Result<(), BuildError> {
        (0..FILES).try_for_each(|file| self.0.read(file, &mut work))
    }
}

/// The hashes whose multiples have the same top bits, see [`shard_of`]: those in the file, and
/// those buffered for it.
#[derive(Debug)]
struct Bucket {
    file: Mutex<File>,
    written: u64,
    buffer: Buf<u64>,
    waiting: usize,
}

impl Spill {
    /// Prepares to take hashes, which are kept in `directory`: in 256 files, which stay open, with
    /// 8 bytes for each hash.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the files cannot be created there.
    pub fn new(directory: impl AsRef<Path>) -> Result<Spill, BuildError> {
        let directory = directory.as_ref().to_path_buf();
        let bucket = |_| {
            let file = nameless(&directory).map_err(|error| failed(&directory, &error))?;
            Ok(Bucket {
                file: Mutex::new(file),
                written: 0,
                buffer: Buf::zeroed(BUFFER)?,
                waiting: 0,
            })
        };
        Ok(Spill {
            buckets: (0..FILES).map(bucket).collect::<Result<_, BuildError>>()?,
            keys: 0,
            shards: 1,
            counts: Vec::new(),
            broken: None,
            directory,
        })
    }

    /// Takes a hash. Repeats are allowed.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the disk is full or fails. Hashes are lost then: every later call
    /// returns the same error, and the only remedy is to start again elsewhere.
    #[inline]
    pub fn push(&mut self, hash: u64) -> Result<(), BuildError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let bucket = &mut self.buckets[shard_of(hash, FILES) as usize];
        bucket.buffer.make_mut()[bucket.waiting] = hash;
        bucket.waiting += 1;
        if bucket.waiting as u64 == BUFFER
            && let Err(error) = bucket.flush()
        {
            let error = failed(&self.directory, &error);
            self.broken = Some(error.clone());
            return Err(error);
        }
        self.keys += 1;
        Ok(())
    }

    /// How many hashes were taken.
    pub fn len(&self) -> u64 {
        self.keys
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// Writes the buffered hashes; after this no more are taken.
    pub(crate) fn close(&mut self) -> Result<(), BuildError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        for bucket in &mut self.buckets {
            let written = bucket.flush();
            written.map_err(|error| failed(&self.directory, &error))?;
            bucket.buffer = Buf::zeroed(0)?;
        }
        Ok(())
    }

    /// Passes the hashes of a file to `work`.
    fn read(&self, bucket: u64, work: impl FnMut(&[u64])) -> Result<(), BuildError> {
        let read = self.buckets[bucket as usize].read(work);
        read.map_err(|error| failed(&self.directory, &error))
    }

    /// The files that hold the hashes of a shard.
    fn files(&self, shard: u64) -> RangeInclusive<u64> {
        // Shard s has the hashes whose multiples φ·hash are s·2⁶⁴/shards, rounded up, and above;
        // file f likewise.
        let file_of = |hash: u128| ((hash * u128::from(FILES)) >> 64) as u64;
        let start = |shard: u64| (u128::from(shard) << 64).div_ceil(u128::from(self.shards));
        file_of(start(shard))..=file_of(start(shard + 1) - 1)
    }

    /// The hashes of a shard.
    fn load(&self, shard: u64) -> Result<Buf<u64>, BuildError> {
        let mut hashes = Buf::zeroed(self.counts[shard as usize])?;
        let (out, mut len) = (hashes.make_mut(), 0);
        for file in self.files(shard) {
            self.read(file, |part| {
                for &hash in part {
                    if shard_of(hash, self.shards) == shard && len < out.len() {
                        out[len] = hash;
                        len += 1;
                    }
                }
            })?;
        }
        if len < out.len() {
            let error = io::Error::from(io::ErrorKind::UnexpectedEof);
            return Err(failed(&self.directory, &error));
        }
        Ok(hashes)
    }
}

impl Source for Spill {
    fn len(&self) -> u64 {
        self.keys
    }

    fn arrange(&mut self, shards: u64, _: usize) -> Result<Vec<u64>, BuildError> {
        let mut counts = vec![0; shards as usize];
        for file in 0..FILES {
            self.read(file, |part| {
                for &hash in part {
                    counts[shard_of(hash, shards) as usize] += 1;
                }
            })?;
        }
        (self.shards, self.counts) = (shards, counts.clone());
        Ok(counts)
    }

    fn solve_all<T>(&mut self, solve: impl FnOnce(Keys<'_>) -> T) -> Result<T, BuildError> {
        self.solve(0, solve)
    }

    fn solve<T>(&self, shard: u64, solve: impl FnOnce(Keys<'_>) -> T) -> Result<T, BuildError> {
        let mut hashes = self.load(shard)?;
        Ok(solve(Keys::Whole(hashes.make_mut())))
    }

    fn dedup(&mut self) -> Result<(), BuildError> {
        (self.keys, self.shards) = (0, FILES);
        self.counts = self.buckets.iter().map(|bucket| bucket.written).collect();
        for file in 0..FILES {
            let mut hashes = self.load(file)?;
            let distinct = dedup(hashes.make_mut());
            let replaced = self.buckets[file as usize].replace(&hashes, distinct);
            replaced.map_err(|error| failed(&self.directory, &error))?;
            self.keys += distinct as u64;
        }
        Ok(())
    }
}

impl Bucket {
    /// Writes the buffered hashes.
    fn flush(&mut self) -> io::Result<()> {
        let file = self.file.get_mut().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&self.buffer.to_bytes()[..8 * self.waiting])?;
        self.written += self.waiting as u64;
        self.waiting = 0;
        Ok(())
    }

    /// Replaces the file's hashes by the first `len` of these.
    fn replace(&mut self, hashes: &Buf<u64>, len: usize) -> io::Result<()> {
        let file = self.file.get_mut().unwrap_or_else(PoisonError::into_inner);
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(&hashes.to_bytes()[..8 * len])?;
        self.written = len as u64;
        Ok(())
    }

    fn read(&self, mut work: impl FnMut(&[u64])) -> io::Result<()> {
        // Threads take turns: each moves the file's read position.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.rewind()?;
        let mut bytes = vec![0; 8 * BUFFER as usize];
        let mut hashes = Vec::with_capacity(BUFFER as usize);
        let mut left = self.written;
        while left > 0 {
            let len = left.min(BUFFER);
            let bytes = &mut bytes[..8 * len as usize];
            file.read_exact(bytes)?;
            hashes.clear();
            hashes.extend(
                bytes
                    .as_chunks()
                    .0
                    .iter()
                    .map(|&word| u64::from_le_bytes(word)),
            );
            work(&hashes);
            left -= len;
        }
        Ok(())
    }
}

fn failed(path: &Path, error: &io::Error) -> BuildError {
    BuildErrorKind::Disk {
        path: path.to_path_buf(),
        kind: error.kind(),
        message: error.to_string(),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::{BinaryFuse, BinaryFuse8, BinaryFuse16, Config, Filter, Fingerprint, Keyed, Kind};

    fn spilled<F: Fingerprint>(config: &Config, hashes: &[u64]) -> BinaryFuse<F>
    where
        BinaryFuse<F>: Kind,
    {
        let directory = tempfile::tempdir().unwrap();
        let mut spill = Spill::new(&directory).unwrap();
        for &hash in hashes {
            spill.push(hash).unwrap();
        }
        assert_eq!(spill.len(), hashes.len() as u64);
        spill.finish(config).unwrap()
    }

    fn bytes(filter: impl Kind) -> Vec<u8> {
        let keyed = Keyed::from_filter(filter, Default::default(), &Config::default());
        keyed.unwrap().to_bytes()
    }

    #[test]
    fn the_filter_is_the_one_built_in_memory() {
        let hashes: Vec<u64> = (0..3_000_000).map(mix64).collect();
        for (keys, config) in [
            (0, ""),
            (1, ""),
            (1000, ""),
            (200_000, "shards=3"),
            (200_000, "arity=4,shards=300"),
            (3_000_000, "shards=16"),
        ] {
            let config = config.parse::<Config>().unwrap().threads(2);
            let hashes = &hashes[..keys];
            let filter: BinaryFuse8 = spilled(&config, hashes);
            let expected = BinaryFuse8::build(&config, &mut hashes.to_vec()).unwrap();
            assert!(bytes(filter) == bytes(expected), "{keys} keys, {config}");
        }
    }

    #[test]
    fn what_was_spilled_can_be_seen_again() {
        let hashes: Vec<u64> = (0..40_000).map(mix64).collect();
        let directory = tempfile::tempdir().unwrap();
        let mut spill = Spill::new(&directory).unwrap();
        hashes.iter().for_each(|&hash| spill.push(hash).unwrap());
        let config = Config::default().set("shards", 3);
        let (filter, mut kept) = spill.finish_and_keep::<u8>(&config).unwrap();
        let expected = BinaryFuse8::build(&config, &mut hashes.clone()).unwrap();
        assert!(bytes(filter) == bytes(expected));
        let (mut seen, mut sorted) = (Vec::new(), hashes);
        kept.for_each(|some| seen.extend_from_slice(some)).unwrap();
        seen.sort_unstable();
        sorted.sort_unstable();
        assert!(seen == sorted);
    }

    #[test]
    fn repeats_are_dropped_on_disk_as_in_memory() {
        let hashes: Vec<u64> = (0..60_000).map(|i| mix64(i % 20_000)).collect();
        let config = Config::default().set("shards", 3);
        let filter: BinaryFuse16 = spilled(&config, &hashes);
        assert_eq!(filter.len(), 20_000);
        let expected = BinaryFuse16::build(&config, &mut hashes.clone()).unwrap();
        assert!(bytes(filter) == bytes(expected));
    }

    #[test]
    fn a_disk_that_fails_is_told_from_there_on() {
        let directory = tempfile::tempdir().unwrap();
        let mut spill = Spill::new(&directory).unwrap();
        // A file that cannot be written.
        let path = directory.path().join("unwritable");
        std::fs::write(&path, b"").unwrap();
        spill.buckets[0].file = Mutex::new(File::open(path).unwrap());
        let in_first = (0..).filter(|&hash| shard_of(hash, FILES) == 0);
        let pushed = in_first.take(BUFFER as usize + 9);
        let pushed: Vec<_> = pushed.map(|hash| spill.push(hash)).collect();
        let failed = pushed.iter().position(Result::is_err);
        assert_eq!(failed, Some(BUFFER as usize - 1));
        assert!(pushed[BUFFER as usize..].iter().all(Result::is_err));
        assert!(spill.push(u64::MAX).is_err(), "into another file");
        let error = spill.finish::<u8>(&Config::default()).unwrap_err();
        assert!(
            matches!(error.kind(), BuildErrorKind::Disk { .. }),
            "{error}"
        );
    }

    #[test]
    fn a_directory_that_is_none_and_a_disk_without_space_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let absent = directory.path().join("absent");
        let error = Spill::new(&absent).unwrap_err();
        assert!(error.to_string().contains("absent"), "{error}");
        let full = failed(&absent, &io::Error::from(io::ErrorKind::StorageFull));
        assert!(full.to_string().contains("8 bytes a key"), "{full}");
    }

    /// So a program that is killed leaves nothing.
    #[test]
    fn the_files_have_no_names_while_they_are_used() {
        let directory = tempfile::tempdir().unwrap();
        let mut spill = Spill::new(&directory).unwrap();
        let names = || std::fs::read_dir(&directory).unwrap().count();
        (0..3_000_000).for_each(|i| spill.push(mix64(i)).unwrap());
        assert!(spill.buckets.iter().any(|bucket| bucket.written > 0));
        assert_eq!(names(), 0);
        let (_, mut kept) = spill.finish_and_keep::<u8>(&Config::default()).unwrap();
        assert_eq!(names(), 0);
        let mut seen = 0;
        kept.for_each(|some| seen += some.len()).unwrap();
        assert_eq!(seen, 3_000_000);
    }
}
