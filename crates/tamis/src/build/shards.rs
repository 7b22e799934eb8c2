//! Cutting a set into shards: tables of one geometry that are built separately.
//!
//! ```text
//!   hashes   ├ chunk 0 ──────────────┼ chunk 1 ──────────────┼ … ┤
//!   by shard  0 0 0 0 1 1 1 2 2 2 2 2  0 0 0 1 1 1 1 1 2 2 2 2
//!            each chunk is sorted by shard, and stays where it is
//! ```
//!
//! One rule for all kinds: the shard of a hash h is `range(φ·h mod 2⁶⁴, shards)`, where φ is 2⁶⁴
//! over the golden ratio. Multiples of φ spread any regular sequence evenly, so that even inputs
//! that are not hashes, such as consecutive numbers, fill all shards alike. It is one
//! multiplication, because a single lookup waits for it: the shard's salt and all places depend on
//! it. A shard mixes its own hashes, so neither choice takes bits from the other.

use std::sync::{Mutex, PoisonError};

use crate::bits::{fastrange, mix64, unmix64};
use crate::buf::Buf;
use crate::build::in_parallel;
use crate::error::NoMemory;

/// 2⁶⁴ over the golden ratio.
const PHI: u64 = 0x9E37_79B9_7F4A_7C15;
/// Hashes are sorted by shard in chunks of this many per shard. The runs of a shard are then long
/// enough to be read in order, and with two to ten shards a chunk and its buffer fit in the
/// second-level cache.
const CHUNK: usize = 1 << 11;
/// Smaller chunks are not worth the threads' taking turns.
const LEAST_CHUNK: usize = 1 << 14;

/// A hash mixed for a kind that has no salts.
#[inline(always)]
pub(crate) fn mixed(hash: u64) -> u64 {
    mix64(hash.wrapping_add(PHI))
}

/// The hash whose [`mixed`] value this is.
pub(crate) fn unmixed(mixed: u64) -> u64 {
    unmix64(mixed).wrapping_sub(PHI)
}

/// The multiple of a hash whose top bits choose its shard.
#[inline(always)]
pub(crate) fn multiple(hash: u64) -> u64 {
    hash.wrapping_mul(PHI)
}

/// The shard of a hash.
#[inline(always)]
pub(crate) fn shard_of(hash: u64, shards: u64) -> u64 {
    fastrange(multiple(hash), shards).0
}

/// Whether a shard has far more hashes than others: some repeat, or they are not hashes. As all
/// shards are as large as the largest, they would take unbounded memory.
pub(crate) fn is_skewed(largest: u64, hashes: u64, shards: u64) -> bool {
    largest > 2 * hashes / shards + 1000
}

/// Where the hashes of each shard are.
pub(crate) struct Shards {
    count: u64,
    chunk: usize,
    /// Where the shards end in each chunk; nothing where there is one shard.
    ends: Vec<Vec<u32>>,
    sizes: Vec<u64>,
}

impl Shards {
    /// Groups the hashes of each shard, chunk by chunk.
    pub(crate) fn arrange(
        hashes: &mut [u64],
        count: u64,
        threads: usize,
    ) -> Result<Shards, NoMemory> {
        let mut shards = Shards {
            count,
            chunk: (CHUNK * count as usize).max(LEAST_CHUNK),
            ends: Vec::new(),
            sizes: vec![hashes.len() as u64],
        };
        if count > 1 {
            // One buffer per thread, reused for all its chunks.
            let buffers = Mutex::new(Vec::new());
            let buffers = || buffers.lock().unwrap_or_else(PoisonError::into_inner);
            let longest = shards.chunk.min(hashes.len()) as u64;
            let room = count * room_for(longest, count);
            let ends = in_parallel(threads, hashes.chunks_mut(shards.chunk), |chunk| {
                let idle = buffers().pop();
                let mut buffer = idle.map_or_else(|| Buf::zeroed(room), Ok)?;
                let ends = sort(chunk, count, buffer.make_mut());
                buffers().push(buffer);
                Ok(ends)
            });
            shards.ends = ends.into_iter().collect::<Result<_, NoMemory>>()?;
            let run = |ends: &[u32], shard: usize| run(ends, shard).len() as u64;
            let size = |shard| shards.ends.iter().map(|ends| run(ends, shard)).sum();
            shards.sizes = (0..count as usize).map(size).collect();
        }
        Ok(shards)
    }

    /// How many hashes each shard has.
    pub(crate) fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// How many the largest has.
    pub(crate) fn largest(&self) -> u64 {
        self.sizes.iter().copied().max().unwrap_or(0)
    }

    /// The runs of a shard's hashes, among those that were arranged.
    pub(crate) fn runs<'a>(&self, hashes: &'a [u64], shard: usize) -> Vec<&'a [u64]> {
        if self.count == 1 {
            return vec![hashes];
        }
        let chunks = hashes.chunks(self.chunk).zip(&self.ends);
        chunks
            .map(|(chunk, ends)| &chunk[run(ends, shard)])
            .collect()
    }
}

/// Where a chunk has the hashes of a shard.
fn run(ends: &[u32], shard: usize) -> std::ops::Range<usize> {
    let start = if shard == 0 { 0 } else { ends[shard - 1] };
    start as usize..ends[shard] as usize
}

/// Room for one of so many parts, if the hashes are good: their mean and seven deviations. Nothing
/// needs to be counted first.
pub(crate) fn room_for(hashes: u64, parts: u64) -> u64 {
    let mean = hashes / parts;
    mean + 7 * mean.isqrt() + 64
}

/// Sorts a chunk by shard and returns where each ends. `out` is scratch space.
fn sort(chunk: &mut [u64], shards: u64, out: &mut [u64]) -> Vec<u32> {
    let shard_of = |hash: u64| shard_of(hash, shards) as usize;
    let room = out.len() / shards as usize;
    let starts = (0..shards as usize).map(|shard| shard * room);
    // Where the next hash of a shard goes, and where its room ends.
    let mut heads: Vec<[usize; 2]> = starts.map(|start| [start, start + room]).collect();
    let fits = chunk.iter().all(|&hash| {
        let [head, end] = &mut heads[shard_of(hash)];
        let fits = head < end;
        if fits {
            out[*head] = hash;
            *head += 1;
        }
        fits
    });
    if !fits {
        // These are not good hashes. What was written is not read, and the chunk is unchanged.
        chunk.sort_unstable_by_key(|&hash| shard_of(hash));
        let end = |shard| chunk.partition_point(|&hash| shard_of(hash) <= shard) as u32;
        return (0..shards as usize).map(end).collect();
    }
    let mut end = 0;
    let parts = heads.iter().map(|&[head, end]| end - room..head);
    let copied = parts.map(|part| {
        let len = part.len();
        chunk[end..end + len].copy_from_slice(&out[part]);
        end += len;
        end as u32
    });
    copied.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixing_loses_nothing() {
        for hash in (0..1000).chain(u64::MAX - 1000..=u64::MAX) {
            assert_eq!(unmixed(mixed(hash)), hash);
        }
    }

    #[test]
    fn every_hash_is_in_its_shard_and_none_is_lost() {
        // Numbers that count up, too: several chunks of them, in which every shard is as large as
        // the others.
        for count in [1, 2, 7, 64] {
            let mut hashes: Vec<u64> = (0..600_000).collect();
            let shards = Shards::arrange(&mut hashes, count, 2).unwrap();
            let mut seen = Vec::new();
            for (shard, &size) in shards.sizes().iter().enumerate() {
                let own = shards.runs(&hashes, shard).concat();
                assert_eq!(own.len() as u64, size);
                assert!(
                    own.iter()
                        .all(|&hash| shard_of(hash, count) == shard as u64)
                );
                seen.extend(own);
            }
            let mean = 600_000 / count;
            let most = mean + 6 * mean.isqrt() * u64::from(count > 1);
            assert!(shards.largest() <= most, "{count}: {}", shards.largest());
            seen.sort_unstable();
            assert!(seen == (0..600_000).collect::<Vec<_>>());
        }
    }

    #[test]
    fn hashes_that_are_no_hashes_are_arranged_too() {
        // Nearly all in one shard: far more than there is room for in a buffer.
        for one in [0, 12_345, u64::MAX] {
            let given = |i: u64| if i.is_multiple_of(10) { mix64(i) } else { one };
            let mut hashes: Vec<u64> = (0..40_000).map(given).collect();
            let mut expected = hashes.clone();
            let shards = Shards::arrange(&mut hashes, 5, 2).unwrap();
            let mut seen = Vec::new();
            for shard in 0..5 {
                let own = shards.runs(&hashes, shard).concat();
                assert!(own.iter().all(|&hash| shard_of(hash, 5) == shard as u64));
                seen.extend(own);
            }
            seen.sort_unstable();
            expected.sort_unstable();
            assert!(seen == expected, "{one}");
        }
    }
}
