//! From hashes, in memory or on disk, to shards, and from solved shards to a filter.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::bits::fastrange;
use crate::buf::Buf;
use crate::config::{Config, Progress};
use crate::error::{BuildError, BuildErrorKind, NoMemory};
use crate::math;
use crate::peel::binary_fuse::solve::{Keys, MOST_KEYS, Solver, Unsolved};
use crate::peel::binary_fuse::{BinaryFuse, Fingerprint, MOST_SHARDS, Shape, dedup};
use crate::peel::in_parallel;

/// A set from this size on is cut into [`LEAST_SHARDS`] shards, and into more so that none has many more keys than
/// [`SHARD`]. Larger shards need fewer spare slots.
const SHARD_FROM: u64 = 8_000_000;
const LEAST_SHARDS: u64 = 8;
const SHARD: u64 = 12_500_000;
/// Hashes in memory are brought into shards in chunks of this many, or more if there are many shards.
const CHUNK: usize = 1 << 18;
/// How often all get more slots when the salts of one are spent.
const ROUNDS: u32 = 16;

/// Hashes to build from, wherever they are.
pub(in crate::peel) trait Source: Sync {
    /// How many there are. Repeats count until they are dropped.
    fn len(&self) -> u64;
    /// Makes ready for so many shards, and returns how many hashes each has.
    fn arrange(&mut self, shards: u64, threads: usize) -> Result<Vec<u64>, BuildError>;
    /// Solves all of them as one shard.
    fn solve_all<T>(&mut self, solve: impl FnOnce(Keys<'_>) -> T) -> Result<T, BuildError>;
    /// Solves one of the shards that they were arranged for.
    fn solve<T>(&self, shard: u64, solve: impl FnOnce(Keys<'_>) -> T) -> Result<T, BuildError>;
    /// Drops repeats.
    fn dedup(&mut self) -> Result<(), BuildError>;
}

/// The arity, and the shards where the configuration says how many.
pub(in crate::peel) fn parameters(config: &Config) -> Result<(u32, Option<u64>), BuildError> {
    let arity = config.param::<u32>("arity", "3 or 4")?.unwrap_or(3);
    if !(3..=4).contains(&arity) {
        return Err(BuildError::parameter("arity", arity, "3 or 4"));
    }
    let expected = "a whole number from 1 to 65536";
    let shards = config.param::<u64>("shards", expected)?;
    match shards.filter(|shards| !(1..=MOST_SHARDS).contains(shards)) {
        Some(shards) => Err(BuildError::parameter("shards", shards, expected)),
        None => Ok((arity, shards)),
    }
}

/// The filter of these hashes.
pub(in crate::peel) fn build<F: Fingerprint>(
    config: &Config,
    source: &mut impl Source,
) -> Result<BinaryFuse<F>, BuildError> {
    let keys = source.len();
    let (_, fpr) = config.check_for::<BinaryFuse<F>>(keys)?;
    let least = math::fingerprint_fpr(8 * size_of::<F>() as u32);
    if fpr < least {
        let kind = F::NAME;
        return Err(BuildErrorKind::Unreachable { kind, fpr, least }.into());
    }
    let (arity, shards) = parameters(config)?;
    if keys == 0 {
        return Ok(BinaryFuse {
            slots: Buf::zeroed(0)?,
            salts: Buf::zeroed(0)?,
            shape: Shape::new(0, arity, 0),
            len: 0,
        });
    }
    let (mut extra, mut attempts) = (0, 0);
    let mut may_repeat = true;
    while attempts < ROUNDS {
        attempts += 1;
        let shards = shards.unwrap_or(shards_for(source.len()));
        match round(config, source, shards, arity, extra)? {
            Round::Built(filter) => return Ok(filter),
            Round::Failed { repeats: true, .. } if may_repeat => {
                source.dedup()?;
                may_repeat = false;
            }
            Round::Failed { skewed: true, .. } => {
                // An eighth of room for shards that have more keys than others.
                let (keys, fewest) = (source.len(), source.len().div_ceil(MOST_KEYS / 8 * 7));
                if shards < fewest {
                    let expected = format!("at least {fewest} for {keys} keys");
                    return Err(BuildError::parameter("shards", shards, expected));
                }
                break;
            }
            Round::Failed { .. } => extra += 2,
        }
    }
    Err(BuildErrorKind::Attempts { keys, attempts }.into())
}

pub(super) enum Round<F: Fingerprint> {
    Built(BinaryFuse<F>),
    Failed { skewed: bool, repeats: bool },
}

pub(in crate::peel) fn shards_for(keys: u64) -> u64 {
    if keys < SHARD_FROM {
        1
    } else {
        keys.div_ceil(SHARD).clamp(LEAST_SHARDS, MOST_SHARDS)
    }
}

/// One attempt at the whole set, with every shard's attempts in it.
pub(super) fn round<F: Fingerprint>(
    config: &Config,
    source: &mut impl Source,
    shards: u64,
    arity: u32,
    extra: u32,
) -> Result<Round<F>, BuildError> {
    let (len, threads) = (source.len(), config.get_threads());
    let counts = source.arrange(shards, threads)?;
    let largest = counts.iter().copied().max().unwrap_or(0);
    // Far more keys in one shard than in others: repeats, or hashes that are none.
    if largest > MOST_KEYS.min(2 * len / shards + 1000) {
        let (skewed, repeats) = (true, true);
        return Ok(Round::Failed { skewed, repeats });
    }
    let shape = Shape::new(largest, arity, extra);
    let mut slots = Buf::zeroed(shape.slots() * shards)?;
    let done = AtomicU64::new(0);
    let tell = |keys: u64| {
        let done = done.fetch_add(keys, Ordering::Relaxed) + keys;
        config.tell(Progress { done, total: len });
    };
    tell(0);
    let salts = if shards == 1 {
        let table = slots.make_mut();
        let solve = |keys: Keys<'_>| Solver::default().solve(keys, shape, table);
        let solved = source.solve_all(solve)?;
        tell(len);
        vec![Ok(solved)]
    } else {
        // As many solvers as there are threads, each with memory that serves for all its shards.
        let solvers = Mutex::new(Vec::new());
        let solvers = || solvers.lock().unwrap_or_else(PoisonError::into_inner);
        let source = &*source;
        let tables = slots.make_mut().chunks_mut(shape.slots() as usize);
        in_parallel(threads, counts.iter().zip(tables).enumerate(), |item| {
            let (shard, (&count, table)) = item;
            let idle = solvers().pop();
            let mut solver: Solver = idle.unwrap_or_default();
            let solved = source.solve(shard as u64, |keys| solver.solve(keys, shape, table));
            solvers().push(solver);
            tell(count);
            solved
        })
    };
    let mut all = Vec::with_capacity(salts.len());
    for salt in salts {
        match salt? {
            Ok(salt) => all.push(salt),
            Err(Unsolved::NoMemory(error)) => return Err(error.into()),
            Err(unsolved) => {
                let repeats = matches!(unsolved, Unsolved::Repeats);
                let skewed = false;
                return Ok(Round::Failed { skewed, repeats });
            }
        }
    }
    let salts = Buf::copied(&all)?;
    Ok(Round::Built(BinaryFuse {
        slots,
        salts,
        shape,
        len,
    }))
}

/// Hashes in memory. Those of a shard are brought together chunk by chunk.
pub(super) struct Slice<'a> {
    hashes: &'a mut [u64],
    /// How many of them are not dropped.
    len: usize,
    chunk: usize,
    /// Where the shards end in each chunk.
    ends: Vec<Vec<u32>>,
}

impl<'a> Slice<'a> {
    pub(super) fn new(hashes: &'a mut [u64]) -> Slice<'a> {
        Slice {
            len: hashes.len(),
            hashes,
            chunk: 0,
            ends: Vec::new(),
        }
    }

    /// The runs of a shard.
    fn parts(&self, shard: usize) -> impl Iterator<Item = &[u64]> {
        let chunks = self.hashes[..self.len].chunks(self.chunk).zip(&self.ends);
        chunks.map(move |(chunk, ends)| {
            let start = if shard == 0 { 0 } else { ends[shard - 1] };
            &chunk[start as usize..ends[shard] as usize]
        })
    }
}

impl Source for Slice<'_> {
    fn len(&self) -> u64 {
        self.len as u64
    }

    fn arrange(&mut self, shards: u64, threads: usize) -> Result<Vec<u64>, BuildError> {
        if shards == 1 {
            return Ok(vec![self.len as u64]);
        }
        self.chunk = chunk_for(shards);
        let chunks = self.hashes[..self.len].chunks_mut(self.chunk);
        let shard_of = |hash| fastrange(hash, shards).0;
        let ends = in_parallel(threads, chunks, |chunk| sort(chunk, shards, shard_of));
        self.ends = ends.into_iter().collect::<Result<_, NoMemory>>()?;
        let keys = |shard| self.parts(shard).map(|part| part.len() as u64).sum();
        Ok((0..shards as usize).map(keys).collect())
    }

    fn solve_all<T>(&mut self, solve: impl FnOnce(Keys<'_>) -> T) -> Result<T, BuildError> {
        Ok(solve(Keys::Whole(&mut self.hashes[..self.len])))
    }

    fn solve<T>(&self, shard: u64, solve: impl FnOnce(Keys<'_>) -> T) -> Result<T, BuildError> {
        Ok(solve(Keys::Parts(self.parts(shard as usize).collect())))
    }

    fn dedup(&mut self) -> Result<(), BuildError> {
        self.len = dedup(&mut self.hashes[..self.len]);
        Ok(())
    }
}

/// Hashes of a chunk: long runs for many shards, too; short enough for the caches.
fn chunk_for(shards: u64) -> usize {
    CHUNK.max(8 * shards as usize)
}

/// Brings the hashes of a shard together, chunk by chunk, and returns where each chunk has each shard's.
pub(crate) fn into_shards(
    hashes: &mut [u64],
    shards: u64,
    threads: usize,
    shard_of: impl Fn(u64) -> u64 + Sync,
) -> Result<Vec<Vec<Range<usize>>>, NoMemory> {
    if shards == 1 {
        return Ok(vec![vec![0..hashes.len()]]);
    }
    let size = chunk_for(shards);
    let chunks = hashes.chunks_mut(size).enumerate();
    let runs = in_parallel(threads, chunks, |(number, chunk)| {
        let mut start = number * size;
        let ends = sort(chunk, shards, &shard_of)?;
        let run = |end| {
            let end = number * size + end as usize;
            std::mem::replace(&mut start, end)..end
        };
        Ok(ends.into_iter().map(run).collect())
    });
    runs.into_iter().collect()
}

/// Orders a chunk by shards and returns where each ends.
fn sort(
    chunk: &mut [u64],
    shards: u64,
    shard_of: impl Fn(u64) -> u64,
) -> Result<Vec<u32>, NoMemory> {
    let shard_of = |hash: u64| shard_of(hash) as usize;
    let mut heads = vec![0u32; shards as usize];
    for &hash in &*chunk {
        heads[shard_of(hash)] += 1;
    }
    let mut start = 0;
    for head in &mut heads {
        start += std::mem::replace(head, start);
    }
    let mut sorted = Buf::zeroed(chunk.len() as u64)?;
    let out = sorted.make_mut();
    for &hash in &*chunk {
        let head = &mut heads[shard_of(hash)];
        out[*head as usize] = hash;
        *head += 1;
    }
    chunk.copy_from_slice(out);
    Ok(heads)
}
