//! Solving the shards of a ribbon, on as many threads as the configuration says.

use crate::buf::Buf;
use crate::config::Config;
use crate::peel::in_parallel;
use crate::peel::shards::Shards;
use crate::ribbon::{Failure, Shape};

/// A shard to be solved.
pub(super) struct Part<'a> {
    /// Its hashes.
    pub(super) runs: &'a [&'a [u64]],
    pub(super) shard: u64,
    pub(super) shape: Shape,
    /// Its table, all zero.
    pub(super) words: &'a mut [u64],
}

impl Part<'_> {
    /// How many hashes it has.
    pub(super) fn keys(&self) -> u64 {
        self.runs.iter().map(|run| run.len() as u64).sum()
    }
}

/// The tables of all shards, one after the other, with what `solve` says of each.
pub(super) struct Solved<T> {
    pub(super) shape: Shape,
    pub(super) words: Buf<u64>,
    pub(super) each: Vec<T>,
}

/// Cuts a set into shards, gives them the shape for the keys of the largest, and solves each.
pub(super) fn solve_shards<T: Send>(
    config: &Config,
    hashes: &mut [u64],
    count: u64,
    shape: impl FnOnce(u64) -> Result<Shape, Failure>,
    solve: impl Fn(Part<'_>) -> Result<T, Failure> + Sync,
) -> Result<Solved<T>, Failure> {
    let threads = config.get_threads();
    let shards = Shards::arrange(hashes, count, threads)?;
    let shape = shape(shards.largest())?;
    let mut words = Buf::zeroed(shape.words() * count)?;
    let hashes = &*hashes;
    let tables = words.make_mut().chunks_mut(shape.words() as usize);
    let each = in_parallel(threads, tables.enumerate(), |(shard, words)| {
        solve(Part {
            runs: &shards.runs(hashes, shard),
            shard: shard as u64,
            shape,
            words,
        })
    });
    let each = each.into_iter().collect::<Result<_, Failure>>()?;
    Ok(Solved { shape, words, each })
}
