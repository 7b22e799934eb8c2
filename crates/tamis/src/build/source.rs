//! Hashes to build from, in memory or on disk, a shard at a time.

use crate::build::dedup;
use crate::build::shards::Shards;
use crate::error::BuildError;

/// Hashes to build from, wherever they are kept.
pub(crate) trait Source: Sync {
    /// How many there are. Repeats count until they are dropped.
    fn len(&self) -> u64;
    /// Prepares for so many shards, and returns how many hashes each has.
    fn arrange(&mut self, shards: u64, threads: usize) -> Result<Vec<u64>, BuildError>;
    /// Solves all hashes as one shard.
    fn solve_all<T>(&mut self, solve: impl FnOnce(Keys<'_>) -> T) -> Result<T, BuildError>;
    /// Solves one of the arranged shards.
    fn solve<T>(&self, shard: u64, solve: impl FnOnce(Keys<'_>) -> T) -> Result<T, BuildError>;
    /// Drops repeats.
    fn dedup(&mut self) -> Result<(), BuildError>;
}

/// The keys of a shard.
pub(crate) enum Keys<'a> {
    /// All hashes; sorted in place, and returned unsalted.
    Whole(&'a mut [u64]),
    /// Runs among the hashes of other shards.
    Parts(Vec<&'a [u64]>),
}

/// Hashes in memory.
pub(crate) struct Slice<'a> {
    hashes: &'a mut [u64],
    /// How many of them were not dropped.
    len: usize,
    shards: Option<Shards>,
}

impl<'a> Slice<'a> {
    pub(crate) fn new(hashes: &'a mut [u64]) -> Slice<'a> {
        Slice {
            len: hashes.len(),
            hashes,
            shards: None,
        }
    }
}

impl Source for Slice<'_> {
    fn len(&self) -> u64 {
        self.len as u64
    }

    fn arrange(&mut self, shards: u64, threads: usize) -> Result<Vec<u64>, BuildError> {
        let shards = Shards::arrange(&mut self.hashes[..self.len], shards, threads)?;
        let sizes = shards.sizes().to_vec();
        self.shards = Some(shards);
        Ok(sizes)
    }

    fn solve_all<T>(&mut self, solve: impl FnOnce(Keys<'_>) -> T) -> Result<T, BuildError> {
        Ok(solve(Keys::Whole(&mut self.hashes[..self.len])))
    }

    fn solve<T>(&self, shard: u64, solve: impl FnOnce(Keys<'_>) -> T) -> Result<T, BuildError> {
        let hashes = &self.hashes[..self.len];
        let runs = |shards: &Shards| shards.runs(hashes, shard as usize);
        Ok(solve(Keys::Parts(
            self.shards.as_ref().map_or_else(Vec::new, runs),
        )))
    }

    fn dedup(&mut self) -> Result<(), BuildError> {
        self.len = dedup(&mut self.hashes[..self.len]);
        Ok(())
    }
}
