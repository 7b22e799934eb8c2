//! Solving the shards of a ribbon, on as many threads as the configuration gives.

use crate::buf::Buf;
use crate::build::shards::{Shards, is_skewed};
use crate::build::{dedup, in_parallel};
use crate::config::Config;
use crate::ribbon::{Failure, MOST_SHARDS, Shape};

/// How many of the hashes given are to be solved, and in how many shards.
pub(super) struct Set {
    pub(super) len: usize,
    pub(super) shards: u64,
    may_repeat: bool,
}

impl Set {
    /// Each shard must have room for all its keys; there are few shards, so the largest is hardly
    /// larger than the others.
    pub(super) fn new(len: usize) -> Set {
        Set {
            len,
            shards: (len as u64 >> 21).clamp(1, MOST_SHARDS),
            may_repeat: true,
        }
    }

    /// Drops repeats. If there are none, the hashes themselves are uneven: then they become one
    /// shard.
    pub(super) fn mend(&mut self, hashes: &mut [u64]) {
        if self.may_repeat {
            *self = Set::new(dedup(hashes));
            self.may_repeat = false;
        } else {
            self.shards = 1;
        }
    }
}

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

/// The tables of all shards, one after the other, with what `solve` returned for each.
pub(super) struct Solved<T> {
    pub(super) shape: Shape,
    pub(super) words: Buf<u64>,
    pub(super) each: Vec<T>,
}

/// Cuts a set into shards, gives all of them the shape for the largest, and solves each. If there
/// are several and they are skewed, refuses them.
pub(super) fn solve_shards<T: Send>(
    config: &Config,
    hashes: &mut [u64],
    count: u64,
    shape: impl FnOnce(u64) -> Shape,
    solve: impl Fn(Part<'_>) -> Result<T, Failure> + Sync,
) -> Result<Solved<T>, Failure> {
    let threads = config.threads;
    let shards = Shards::arrange(hashes, count, threads)?;
    if is_skewed(shards.largest(), hashes.len() as u64, count) {
        return Err(Failure::Repeats);
    }
    let shape = shape(shards.largest());
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
