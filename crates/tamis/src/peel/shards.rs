//! Cutting a set into shards: tables of one geometry that are built apart.
//!
//! ```text
//!   hashes   ├ chunk 0 ──────────────┼ chunk 1 ──────────────┼ … ┤
//!   by shard  0 0 0 0 1 1 1 2 2 2 2 2  0 0 0 1 1 1 1 1 2 2 2 2       each chunk is sorted by shard, and stays where it is
//! ```
//!
//! One rule for all kinds: the shard of a hash h is `range(φ·h mod 2⁶⁴, shards)`, φ being 2⁶⁴ over the golden ratio. Of any
//! numbers in regular steps the multiples of φ are evenly spread, so that also hashes which are none, as numbers that
//! count up, fill all shards alike. It is one multiplication, because single lookups wait for it: the shard's salt and
//! all places come after. A shard mixes its hashes by itself, so neither choice takes bits from the other.

use crate::bits::{fastrange, mix64, unmix64};
use crate::buf::Buf;
use crate::error::NoMemory;
use crate::peel::in_parallel;

/// 2⁶⁴ over the golden ratio.
const PHI: u64 = 0x9E37_79B9_7F4A_7C15;
/// Hashes are brought into shards in chunks of this many, or more if there are many shards.
const CHUNK: usize = 1 << 18;

/// A hash mixed for a kind that has no salts.
#[inline(always)]
pub(crate) fn mixed(hash: u64) -> u64 {
    mix64(hash.wrapping_add(PHI))
}

/// The hash that [`mixed`] makes this of.
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

/// Where the hashes of each shard are.
pub(crate) struct Shards {
    count: u64,
    chunk: usize,
    /// Where the shards end in each chunk; nothing where there is one shard.
    ends: Vec<Vec<u32>>,
    sizes: Vec<u64>,
}

impl Shards {
    /// Brings the hashes of a shard together, chunk by chunk.
    pub(crate) fn arrange(
        hashes: &mut [u64],
        count: u64,
        threads: usize,
    ) -> Result<Shards, NoMemory> {
        let mut shards = Shards {
            count,
            // Long runs for many shards, too; short enough for the caches.
            chunk: CHUNK.max(8 * count as usize),
            ends: Vec::new(),
            sizes: vec![hashes.len() as u64],
        };
        if count > 1 {
            let chunks = hashes.chunks_mut(shards.chunk);
            let ends = in_parallel(threads, chunks, |chunk| sort(chunk, count));
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

    /// The hashes of a shard, of those that were arranged.
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

/// Orders a chunk by shards and returns where each ends.
fn sort(chunk: &mut [u64], shards: u64) -> Result<Vec<u32>, NoMemory> {
    let shard_of = |hash: u64| shard_of(hash, shards) as usize;
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
        // Numbers that count up, too: several chunks of them, in which every shard is as large as the others.
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
}
