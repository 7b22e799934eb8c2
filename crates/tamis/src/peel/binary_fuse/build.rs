//! From hashes, in memory or on disk, to shards, and from solved shards to a filter.

use std::sync::{Mutex, PoisonError};

use crate::buf::Buf;
use crate::build::in_parallel;
use crate::build::shards::is_skewed;
use crate::build::source::{Keys, Source};
use crate::build::spill::{Spill, Spilled};
use crate::config::Config;
use crate::error::{BuildError, BuildErrorKind};
use crate::filter::Kind;
use crate::kinds::Declared;
use crate::math;
use crate::peel::binary_fuse::solve::{MOST_KEYS, Solver, Unsolved};
use crate::peel::binary_fuse::{BinaryFuse, Fingerprint, MOST_SHARDS, Shape};

/// A set from this size on is cut into [`LEAST_SHARDS`] shards, and into more so that none has
/// many more keys than [`SHARD`]. Larger shards need fewer spare slots.
const SHARD_FROM: u64 = 8_000_000;
const LEAST_SHARDS: u64 = 10;
const SHARD: u64 = 12_500_000;
/// How often all shards get more slots after one has used up its salts.
const ROUNDS: u32 = 16;

/// The arity, and the number of shards if the configuration gives it.
pub(super) fn parameters<F: Fingerprint>(
    config: &Config,
    keys: u64,
) -> Result<(u32, Option<u64>), BuildError>
where
    BinaryFuse<F>: Kind,
{
    let (_, fpr) = config.check_for(BinaryFuse::<F>::INFO, keys)?;
    let least = math::fingerprint_fpr(8 * size_of::<F>() as u32);
    if fpr < least {
        let kind = BinaryFuse::<F>::INFO.name;
        return Err(BuildErrorKind::Unreachable { kind, fpr, least }.into());
    }
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
pub(super) fn build<F: Fingerprint>(
    config: &Config,
    source: &mut impl Source,
) -> Result<BinaryFuse<F>, BuildError>
where
    BinaryFuse<F>: Kind,
{
    let keys = source.len();
    let (arity, shards) = parameters::<F>(config, keys)?;
    if keys == 0 {
        config.tally(0);
        let shape = Shape::new(0, arity, 0);
        return Ok(BinaryFuse {
            slots: shape.segments(Buf::zeroed(0)?),
            salts: Buf::zeroed(0)?,
            shape,
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
                // An eighth to spare, for shards that have more keys than others.
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

fn shards_for(keys: u64) -> u64 {
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
    let (len, threads) = (source.len(), config.threads);
    let counts = source.arrange(shards, threads)?;
    let largest = counts.iter().copied().max().unwrap_or(0);
    if largest > MOST_KEYS || is_skewed(largest, len, shards) {
        let (skewed, repeats) = (true, true);
        return Ok(Round::Failed { skewed, repeats });
    }
    let shape = Shape::new(largest, arity, extra);
    let mut slots = Buf::zeroed(shape.slots() * shards)?;
    let tally = config.tally(len);
    let salts = if shards == 1 {
        let table = slots.make_mut();
        let solve = |keys: Keys<'_>| Solver::default().solve(keys, shape, table);
        let solved = source.solve_all(solve)?;
        tally.add(len);
        vec![Ok(solved)]
    } else {
        // One solver per thread, whose memory serves for all its shards.
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
            tally.add(count);
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
        slots: shape.segments(slots),
        salts,
        shape,
        len,
    }))
}

impl Spill {
    /// Builds the filter, on as many threads as the configuration gives.
    ///
    /// # Errors
    ///
    /// [`BuildError`] as [`Kind::build`], and when the disk fails.
    pub fn finish<F: Fingerprint>(self, config: &Config) -> Result<BinaryFuse<F>, BuildError>
    where
        BinaryFuse<F>: Kind,
    {
        self.finish_and_keep(config).map(|(filter, _)| filter)
    }

    /// As [`finish`](Spill::finish), but keeps the hashes, so that the filter can be verified.
    ///
    /// # Errors
    ///
    /// [`BuildError`] as [`finish`](Spill::finish).
    pub fn finish_and_keep<F: Fingerprint>(
        mut self,
        config: &Config,
    ) -> Result<(BinaryFuse<F>, Spilled), BuildError>
    where
        BinaryFuse<F>: Kind,
    {
        self.close()?;
        let filter = build(config, &mut self)?;
        Ok((filter, Spilled(self)))
    }
}

impl<F: Fingerprint> BinaryFuse<F> {
    /// How many shards a filter of so many keys has, unless the configuration says otherwise.
    pub fn shards_for(keys: u64) -> u64 {
        shards_for(keys)
    }
}
