//! TinySet: small, and takes keys one by one, in one cache line per operation.
//!
//! # The idea
//!
//! ```text
//!  hash ──► block b of B, chain c of L = 64, remainder r
//!
//!  bit 0                64              64 + X                                                            512
//!  ┌────────────────────┬────────────────┬───────────┬───────────┬───────────┬───────────┬─ … ─┬──────────┐
//!  │ 0 1 1 0 0 1 0 0 …  │ 1 0 1 1 0 0 1 … │ 10110101  │ 00101110  │ 11000101  │ 01111010  │     │ 1000110  │
//!  └────────────────────┴────────────────┴───────────┴───────────┴───────────┴───────────┴─ … ─┴──────────┘
//!    index: chain c has   end marks: slot   one fingerprint a slot, in the order of chains, then of remainders;
//!    a slot               i is its chain's  the first 448 mod X of them have one bit more than the others
//!                         last
//!
//!  chain 1: slot 0 ┃ chain 2: slots 1, 2 ┃ chain 5: slot 3 ┃ …
//! ```
//!
//! A block is a hash table with chaining, without pointers: the index says which chains exist, the end marks say where
//! each ends, and counting ones in both finds a chain. There is no counter either: with k chains, the block has as many
//! slots as lie up to the k-th end mark. All bits that remain belong to the fingerprints, shared out evenly: with X
//! slots each gets ⌊448/X⌋ − 1 bits beside its end mark, and the first 448 mod X one more. Few keys have long
//! fingerprints; a key more makes each a little shorter. A block is full of information at every load, and never full.
//!
//! # Why an insertion loses nothing
//!
//! A slot keeps the *first* bits of its key's remainder, and the width of slot i among X, ⌈(448 − i)/X⌉ − 1, never grows
//! with i or with X. An insertion moves slots to higher numbers only, and X up. So every new field is a prefix of the old
//! one, and of the key's own remainder: the key goes on matching it. For the same reason two filters unite without their
//! keys: slots of both, in order, at a larger X.
//!
//! Where two remainders differ only in bits that are lost, their slots hold the same bits, and their order does not
//! matter. So the bits of a filter depend on its keys alone, not on the order in which they came: inserting, building at
//! once and uniting give the same file. (After removals the block's highest load shows.)
//!
//! # Removing
//!
//! [`TinySetRemovable`] has two flags after the index. Removing a key frees its slot but cannot lengthen the others, whose
//! bits are gone: X stays, and the free slots stand at the end as one more chain without fingerprints; the first flag
//! says that it exists. The second says that fewer slots have the extra bit than X alone implies; their number then
//! follows from the highest set bit, a 1 after the last fingerprint. A block that gets empty starts anew.
//!
//! Of several slots that match, the first goes: it is the longest. Were a shorter one removed, the key that it stood for
//! might be left with a longer one that it does not match. Taking the longest is safe: another key that it stood for
//! matches every shorter prefix of it too, and finds the slot of the removed key.
//!
//! # Cost
//!
//! Bits a key, blocks of 64 bytes, by the exact formula, which sizing uses:
//!
//! | rate | 5 % | 1 % | 2⁻⁸ | 0.1 % | 0.01 % | 2⁻¹⁶ |
//! |---|---|---|---|---|---|---|
//! | TinySet | 6.58 | 8.98 | 10.48 | 12.82 | 17.22 | 21.33 |
//! | TinySet, removable | 6.60 | 9.02 | 10.53 | 12.87 | 17.30 | 21.44 |
//! | Bloom | 6.24 | 9.59 | 11.54 | 14.38 | 19.17 | 23.08 |
//! | [`Cuckoo`](crate::Cuckoo), whole bits | 8.42 | 10.53 | 11.58 | 13.69 | 17.90 | 20.00 |
//! | least possible | 4.32 | 6.64 | 8.00 | 9.97 | 13.29 | 16.00 |
//!
//! Blocks of 128 bytes save 0.2 bits at 1 % and 0.9 at 0.01 % for a second line; blocks of 32 bytes need more.
//! A filter may be overfilled: the rate rises gently, and an insertion is refused only when a block has as many slots as
//! bits, some eight times its load.
//!
//! A lookup reads one line. It has no branch that depends on the key but one, which is rarely taken: to chains that are
//! long, or among which the longer slots end. So it takes the same instructions whatever the rate (`cargo xtask
//! instructions` counts them): batches at 10⁷ keys took 14.4, 14.8, 14.8 and 15.1 ns at 1 %, 2⁻⁸, 0.1 % and 0.01 %. At 2⁻⁸
//! that was five times the limit, one random line of a table of the same size (3.0 ns): the instructions decide, not the
//! memory. Beside it [`Cuckoo`](crate::Cuckoo) took 15.7 ns in a table a tenth larger.
//!
//! What is slow: single lookups out of cache take some three to four times as long as cuckoo's (107 ns against 28), because
//! so many instructions leave no room for a second miss in flight. For the same reason a fill one by one takes 1.2 to 1.4
//! times as long as cuckoo's, while one in bulk takes half as long; into a block that has seen a removal an insertion goes
//! slot by slot and takes several times as long. A removal takes a multiple of cuckoo's too. (One Zen 3 core; `cargo run --release -p tamis-bench --
//! run --n 10000000 --fpr 0.01,0.00390625,0.001,0.0001 --kinds tinyset,tinyset_removable,cuckoo`.)
//!
//! Short cuts exist for as many chains as a block has bytes, the default. With others a lookup walks its chain and an
//! insertion every slot of the block, one after the other, which takes several times as long.
//!
//! # When to choose it
//!
//! When keys arrive over time and space counts, at rates from 2.9 % to 0.012 %: there it is smaller than Bloom and cuckoo
//! filters. Above, Bloom is smaller; below 2⁻¹³ the cuckoo filter catches up, and from about 2⁻¹⁵ on it is smaller.
//! [`RankIndexed`](crate::RankIndexed) is larger down to 0.1 %, and much slower to change.
//! [`SplitBlock512`](crate::SplitBlock512) is faster and larger; for a fixed set [`BinaryFuse8`](crate::BinaryFuse8) is
//! smaller. [`Cuckoo`](crate::Cuckoo) does not lose accuracy when keys come and go for long, and removes them faster: here
//! each block keeps the widths of its highest load, and the rate about doubles once as many keys have been replaced as it
//! holds.
//!
//! # Bibliography
//!
//! - Einziger, Friedman, *TinySet: an access efficient self adjusting Bloom filter construction*, 2015: the block, the
//!   two sizes, the counter that is not there. Removal differs: the paper's lets a bit of every longer slot match always.

use super::block::{CAP, MOST_CHAINS, Shape, Slot, interleave, prefix};
use super::fast::Default as Usual;
use crate::bits::fastrange;
use crate::buf::Buf;
use crate::config::{Config, Param};
use crate::error::{
    BuildError, BuildErrorKind, DecodeError, Full, FullKind, MergeError, MergeErrorKind,
};
use crate::filter::{Count, Filter, Insert, Kind, Merge, Remove};
use crate::format::{Decoder, Encoder};
use crate::math;
use crate::simd::{self, Bits, Op, Probe as _};

use std::any::Any;

/// A TinySet; see [`TinySet`] and [`TinySetRemovable`]. Insert, count, merge; remove where `REMOVABLE`.
///
/// ```
/// use tamis::{Config, Keyed, TinySet};
///
/// let mut seen: Keyed<TinySet> = Keyed::new(&Config::new(1_000_000).fpr(0.001))?;
/// seen.insert("alice")?;
/// assert!(seen.contains("alice"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TinySetOf<const REMOVABLE: bool> {
    table: Buf<u8>,
    blocks: u64,
    /// Bytes of a block: 32, 64 or 128.
    block: u32,
    chains: u32,
    len: u64,
}

/// Takes keys in.
pub type TinySet = TinySetOf<false>;

/// Takes keys in and lets them go again, for two bits a block.
///
/// ```
/// use tamis::{Config, Keyed, TinySetRemovable};
///
/// let mut online: Keyed<TinySetRemovable> = Keyed::new(&Config::new(10_000).fpr(0.001))?;
/// online.insert("alice")?;
/// assert!(online.remove("alice"));
/// assert!(!online.contains("alice"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type TinySetRemovable = TinySetOf<true>;

/// Block, chain and remainder use this many bits of a hash; the bits after the remainder's are left alone.
const HASH_BITS: u32 = 64;

/// Runs an expression for the block size, which is a constant in it.
macro_rules! sized {
    ($block:expr, $n:ident => $body:expr) => {
        match $block {
            32 => {
                const $n: usize = 32;
                $body
            }
            128 => {
                const $n: usize = 128;
                $body
            }
            _ => {
                const $n: usize = 64;
                $body
            }
        }
    };
}

impl<const REMOVABLE: bool> TinySetOf<REMOVABLE> {
    /// Bytes of a block.
    pub fn block_bytes(&self) -> u32 {
        self.block
    }

    /// Chains of a block.
    pub fn chains(&self) -> u32 {
        self.chains
    }

    /// Keys per chain, on average: 0.89 in a filter for 1 % that holds what it was built for, 0.76 at 2⁻⁸, 0.46 at
    /// 0.01 %. It may go on growing, and the rate with it.
    pub fn load_factor(&self) -> f64 {
        self.len as f64 / (self.blocks as f64 * f64::from(self.chains))
    }

    /// The slots that decide the widths of fingerprints: [`len`](Filter::len) where nothing was ever removed, else up to
    /// the sum of each block's highest load.
    pub fn logical_len(&self) -> u64 {
        sized!(self.block, N => {
            let shape = self.shape::<N>();
            let slots = |block| shape.layout(block).map_or(0, |l| u64::from(l.slots));
            self.cells::<N>().iter().map(slots).sum()
        })
    }

    fn with_shape(blocks: u64, block: u32, chains: u32) -> Result<Self, BuildError> {
        Ok(TinySetOf {
            table: Buf::zeroed(blocks.saturating_mul(u64::from(block)))?,
            blocks,
            block,
            chains,
            len: 0,
        })
    }

    fn shape<const N: usize>(&self) -> Shape<N> {
        Shape {
            chains: self.chains,
            removable: REMOVABLE,
        }
    }

    /// Whether blocks are of the shape that has short cuts.
    fn is_usual(&self) -> bool {
        self.chains == self.block
    }

    #[inline(always)]
    fn cells<const N: usize>(&self) -> &[[u8; N]] {
        self.table.as_chunks().0
    }

    #[inline(always)]
    fn reader<B: Bits, const N: usize, const USUAL: bool>(
        &self,
        bits: B,
    ) -> Reader<'_, B, N, REMOVABLE, USUAL> {
        Reader {
            bits,
            blocks: self.cells(),
            shape: self.shape(),
        }
    }

    fn place(&self, hash: u64) -> (usize, u32, u64) {
        place(hash, self.blocks, self.chains)
    }

    #[inline(always)]
    fn insert_all<B: Bits, const N: usize, const USUAL: bool>(
        &mut self,
        bits: B,
        hashes: &[u64],
    ) -> Result<(), Full> {
        let ahead = match self.size_in_bytes() {
            bytes if bytes < simd::PREFETCH_FROM => hashes.len(),
            _ => simd::AHEAD.min(hashes.len()),
        };
        let (shape, chains) = (self.shape::<N>(), self.chains);
        let blocks = self.table.make_mut().as_chunks_mut::<N>().0;
        for (i, &hash) in hashes.iter().enumerate() {
            if let Some(&next) = hashes.get(i + ahead) {
                prefetch(blocks, next);
            }
            let number = blocks.len() as u64;
            let (block, chain, remainder) = if USUAL {
                Usual::<N, REMOVABLE>::place(hash, number)
            } else {
                place(hash, number, chains)
            };
            let block = &mut blocks[block];
            let went_in = if USUAL {
                Usual::<N, REMOVABLE>::insert(bits, block, chain, remainder)
            } else {
                let next = shape.inserted(block, chain, remainder);
                next.map(|next| *block = next)
            };
            if went_in.is_none() {
                self.len += i as u64;
                let copies = shape.chain_len(block, chain);
                return Err(full(shape, copies, self.len).after(i));
            }
        }
        self.len += hashes.len() as u64;
        Ok(())
    }

    /// Blocks for a number of keys, the fewest that keep the rate.
    fn blocks_for(keys: u64, fpr: f64, block: u32, chains: u32) -> Option<f64> {
        let (bits, flags) = (8 * block, 2 * u32::from(REMOVABLE));
        let array = bits - chains - flags;
        // Twice the mean never happens to a block by chance, so no key is refused.
        let load = math::tinyset_mean_load(fpr, bits, chains, flags)?.min(f64::from(array) / 2.0);
        if load < LEAST_LOAD {
            return None;
        }
        let blocks = (keys as f64 / load).ceil().max(1.0);
        if blocks > FEW {
            return Some(blocks);
        }
        // Few blocks are loaded more evenly than the law of many says.
        let (mut low, mut high) = (0, blocks as u64);
        while high - low > 1 {
            let middle = (low + high) / 2;
            let fits = keys <= middle * u64::from(array) / 2
                && math::tinyset_fpr_finite(keys, middle, bits, chains, flags) <= fpr;
            if fits { high = middle } else { low = middle }
        }
        Some(high as f64)
    }

    /// Fills the empty filter, each block written once. Reorders the hashes.
    fn fill<const N: usize>(&mut self, hashes: &mut [u64]) -> Result<(), Full> {
        // Block, chain and remainder are the leading digits of a hash: in its order, all are in order.
        hashes.sort_unstable();
        let shape = self.shape::<N>();
        let mut slots = Vec::new();
        let mut left = &*hashes;
        while let Some(&first) = left.first() {
            let block = self.place(first).0;
            let here = left
                .iter()
                .take_while(|&&hash| self.place(hash).0 == block)
                .count();
            let (group, rest) = left.split_at(here);
            left = rest;
            slots.clear();
            slots.extend(group.iter().map(|&hash| {
                let (_, chain, remainder) = self.place(hash);
                Slot {
                    chain,
                    fingerprint: prefix(remainder, CAP),
                    width: CAP,
                }
            }));
            let len = self.len;
            self.table.make_mut().as_chunks_mut().0[block] =
                shape.write(&slots, 0).ok_or_else(|| {
                    let chains = slots.chunk_by(|a, b| a.chain == b.chain);
                    let longest = chains.map(<[Slot]>::len).max().unwrap_or(0) as u32;
                    let room = shape.array();
                    full(shape, longest.min(room), len + u64::from(room))
                })?;
            self.len += here as u64;
        }
        Ok(())
    }

    /// Unites block with block; all that can be refused is refused before the first is written.
    fn unite<const N: usize>(&mut self, other: &Self) -> Result<(), MergeError> {
        let shape = self.shape::<N>();
        let cut = |ours: &[u8; N], theirs: &[u8; N]| {
            let (ours, theirs) = (shape.layout(ours)?, shape.layout(theirs)?);
            let slots = (ours.live + theirs.live).max(ours.slots).max(theirs.slots);
            (slots <= shape.array()).then_some(slots)
        };
        let mut pairs = self.cells::<N>().iter().zip(other.cells());
        let refused = Full::new(FullKind::Capacity, self.len);
        if !pairs.all(|(ours, theirs)| cut(ours, theirs).is_some()) {
            return Err(MergeErrorKind::Full(refused).into());
        }
        let [mut a, mut b, mut both] = [const { Vec::new() }; 3];
        let ours = self.table.make_mut().as_chunks_mut().0.iter_mut();
        for (ours, theirs) in ours.zip(other.cells()) {
            shape.read(ours, &mut a);
            shape.read(theirs, &mut b);
            interleave(&a, &b, &mut both);
            // Never refused here: every pair was cut before the first was written.
            *ours = cut(ours, theirs)
                .and_then(|cut| shape.write(&both, cut))
                .ok_or(MergeErrorKind::Full(refused))?;
        }
        self.len += other.len;
        Ok(())
    }
}

/// The smallest mean load that a filter is sized for: below, the longest fingerprint is too short for the rate.
const LEAST_LOAD: f64 = 1.0;
/// Up to this many blocks the binomial law decides, beyond it Poisson's, which is the same to all digits that matter.
const FEW: f64 = 1024.0;

/// The most blocks: a hash of 64 bits must give block, chain and remainder.
fn most_blocks(chains: u32) -> u64 {
    (1 << (HASH_BITS - CAP)) / u64::from(chains)
}

/// The chains that a block may have.
fn chains_of(block: u32) -> std::ops::RangeInclusive<u32> {
    block / 4..=(2 * block).min(MOST_CHAINS)
}

/// Why a block takes no more: a chain that fills most of it is one key over and over, or as good as one.
#[cold]
fn full<const N: usize>(shape: Shape<N>, copies: u32, keys: u64) -> Full {
    let kind = if 2 * copies > shape.array() {
        FullKind::Duplicates(u64::from(copies))
    } else {
        FullKind::Capacity
    };
    Full::new(kind, keys)
}

/// Block, chain and remainder of a hash: this filter's geometry.
#[inline(always)]
fn place(hash: u64, blocks: u64, chains: u32) -> (usize, u32, u64) {
    let (block, rest) = fastrange(hash, blocks);
    let (chain, rest) = fastrange(rest, u64::from(chains));
    (block as usize, chain as u32, rest)
}

/// The blocks of a filter for looking up, of the usual shape or any.
#[derive(Clone, Copy)]
struct Reader<'a, B: Bits, const N: usize, const REMOVABLE: bool, const USUAL: bool> {
    bits: B,
    blocks: &'a [[u8; N]],
    shape: Shape<N>,
}

impl<B: Bits, const N: usize, const REMOVABLE: bool, const USUAL: bool> simd::Probe
    for Reader<'_, B, N, REMOVABLE, USUAL>
{
    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        prefetch(self.blocks, hash);
    }

    #[inline(always)]
    fn probe(&self, hash: u64) -> bool {
        let number = self.blocks.len() as u64;
        if USUAL {
            let (block, chain, remainder) = Usual::<N, REMOVABLE>::place(hash, number);
            Usual::<N, REMOVABLE>::contains(self.bits, &self.blocks[block], chain, remainder)
        } else {
            let (block, chain, remainder) = place(hash, number, self.shape.chains);
            let block = &self.blocks[block];
            self.shape.contains(self.bits, block, chain, remainder)
        }
    }
}

#[inline(always)]
fn prefetch<const N: usize>(blocks: &[[u8; N]], hash: u64) {
    let block = fastrange(hash, blocks.len() as u64).0 as usize;
    simd::prefetch(blocks, block);
    if N > 64 {
        simd::prefetch(blocks.as_flattened(), block * N + 64);
    }
}

struct Lookup<'a, const REMOVABLE: bool, const USUAL: bool> {
    filter: &'a TinySetOf<REMOVABLE>,
    hash: u64,
}

impl<const REMOVABLE: bool, const USUAL: bool> Op for Lookup<'_, REMOVABLE, USUAL> {
    type Out = bool;

    #[inline(always)]
    fn run<B: Bits>(self, bits: B) -> bool {
        let Lookup { filter, hash } = self;
        sized!(filter.block, N => filter.reader::<B, N, USUAL>(bits).probe(hash))
    }
}

struct Lookups<'a, const REMOVABLE: bool, const USUAL: bool> {
    filter: &'a TinySetOf<REMOVABLE>,
    hashes: &'a [u64],
    out: &'a mut [bool],
}

impl<const REMOVABLE: bool, const USUAL: bool> Op for Lookups<'_, REMOVABLE, USUAL> {
    type Out = ();

    #[inline(always)]
    fn run<B: Bits>(self, bits: B) {
        let Lookups {
            filter,
            hashes,
            out,
        } = self;
        let bytes = filter.size_in_bytes();
        sized!(filter.block, N => {
            let reader = filter.reader::<B, N, USUAL>(bits);
            simd::probe_all(&reader, bytes, hashes, out);
        });
    }
}

impl<const REMOVABLE: bool> Filter for TinySetOf<REMOVABLE> {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let filter = self;
        if self.is_usual() {
            simd::dispatch(Lookup::<_, true> { filter, hash })
        } else {
            simd::dispatch(Lookup::<_, false> { filter, hash })
        }
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.table.size_in_bytes()
    }

    /// Exact for the bits that are set.
    fn fpr(&self) -> f64 {
        sized!(self.block, N => {
            let mut slots = Vec::new();
            let cover = |block| self.shape::<N>().coverage(block, &mut slots);
            let covered: f64 = self.cells().iter().map(cover).sum();
            covered / (self.blocks as f64 * f64::from(self.chains))
        })
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        sized!(self.block, N => prefetch(self.cells::<N>(), hash));
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        let n = hashes.len().min(out.len());
        let (hashes, out) = (&hashes[..n], &mut out[..n]);
        let filter = self;
        if self.is_usual() {
            simd::dispatch(Lookups::<_, true> {
                filter,
                hashes,
                out,
            });
        } else {
            simd::dispatch(Lookups::<_, false> {
                filter,
                hashes,
                out,
            });
        }
    }
}

impl<const REMOVABLE: bool> Insert for TinySetOf<REMOVABLE> {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        self.insert_batch(&[hash])
    }

    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), Full> {
        let filter = self;
        if filter.is_usual() {
            simd::dispatch(Insertions::<_, true> { filter, hashes })
        } else {
            simd::dispatch(Insertions::<_, false> { filter, hashes })
        }
    }
}

struct Insertions<'a, const REMOVABLE: bool, const USUAL: bool> {
    filter: &'a mut TinySetOf<REMOVABLE>,
    hashes: &'a [u64],
}

impl<const REMOVABLE: bool, const USUAL: bool> Op for Insertions<'_, REMOVABLE, USUAL> {
    type Out = Result<(), Full>;

    #[inline(always)]
    fn run<B: Bits>(self, bits: B) -> Result<(), Full> {
        let Insertions { filter, hashes } = self;
        sized!(filter.block, N => filter.insert_all::<B, N, USUAL>(bits, hashes))
    }
}

impl Remove for TinySetRemovable {
    /// Takes out the most specific fingerprint that matches.
    fn remove(&mut self, hash: u64) -> bool {
        let (block, chain, remainder) = self.place(hash);
        sized!(self.block, N => {
            let shape = self.shape::<N>();
            let Some(removed) = shape.removed(&self.cells()[block], chain, remainder) else {
                return false;
            };
            self.table.make_mut().as_chunks_mut().0[block] = removed;
        });
        self.len -= 1;
        true
    }
}

impl<const REMOVABLE: bool> Count for TinySetOf<REMOVABLE> {
    fn count(&self, hash: u64) -> u64 {
        let (block, chain, remainder) = self.place(hash);
        sized!(self.block, N => self.shape::<N>().count(&self.cells()[block], chain, remainder))
    }
}

impl<const REMOVABLE: bool> Merge for TinySetOf<REMOVABLE> {
    /// Puts the slots of both together, block by block. Copies of a key add up.
    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        MergeError::unless_equal("blocks", self.blocks, other.blocks)?;
        MergeError::unless_equal("block", u64::from(self.block), u64::from(other.block))?;
        MergeError::unless_equal("chains", u64::from(self.chains), u64::from(other.chains))?;
        sized!(self.block, N => self.unite::<N>(other))
    }
}

impl<const REMOVABLE: bool> Kind for TinySetOf<REMOVABLE> {
    const ID: u16 = if REMOVABLE { 9 } else { 8 };
    const NAME: &'static str = if REMOVABLE {
        "tinyset_removable"
    } else {
        "tinyset"
    };
    const ABOUT: &'static str = if REMOVABLE {
        "keys come and go, in one cache line; smaller than Bloom and cuckoo from 2.9 % to 0.012 %"
    } else {
        "keys arriving over time, in one cache line; smaller than Bloom and cuckoo from 2.9 % to 0.012 %"
    };
    const SOURCE: &'static str = "chained/tinyset.rs";
    const PARAMS: &'static [Param] = &[
        Param {
            name: "block",
            about: "bytes of a block: 32, 64 or 128; default 64, a cache line",
        },
        Param {
            name: "chains",
            about: "chains of a block, from a quarter to twice its bytes, 128 at most; default: its bytes, which alone has the short cuts",
        },
    ];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Self, BuildError> {
        let (keys, fpr) = config.check::<Self>(hashes)?;
        let expected = "32, 64 or 128";
        let block = config.param::<u32>("block", expected)?.unwrap_or(64);
        if ![32, 64, 128].contains(&block) {
            return Err(BuildError::parameter("block", block, expected));
        }
        let range = chains_of(block);
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let chains = config.param::<u32>("chains", &expected)?.unwrap_or(block);
        if !range.contains(&chains) {
            return Err(BuildError::parameter("chains", chains, expected));
        }
        let Some(needed) = Self::blocks_for(keys, fpr, block, chains) else {
            let flags = 2 * u32::from(REMOVABLE);
            return Err(BuildErrorKind::Unreachable {
                kind: Self::NAME,
                fpr,
                least: math::tinyset_fpr(LEAST_LOAD, 8 * block, chains, flags),
            }
            .into());
        };
        let most = most_blocks(chains);
        if needed > most as f64 {
            return Err(BuildErrorKind::TooLarge {
                unit: "blocks",
                needed,
                most,
            }
            .into());
        }
        let mut filter = Self::with_shape(needed as u64, block, chains)?;
        sized!(block, N => filter.fill::<N>(hashes)?);
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("blocks", self.blocks);
        out.param("block", u64::from(self.block));
        out.param("chains", u64::from(self.chains));
        out.section(&self.table);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let blocks = input.param("blocks")?;
        let block = input.param("block")?;
        if ![32, 64, 128].contains(&block) {
            return Err(DecodeError::invalid("block", block, "32, 64 or 128"));
        }
        let block = block as u32;
        let range = chains_of(block);
        let range = u64::from(*range.start())..=u64::from(*range.end());
        let chains = input.param_in("chains", range)? as u32;
        let most = most_blocks(chains);
        if !(1..=most).contains(&blocks) {
            let expected = format!("1 to {most}");
            return Err(DecodeError::invalid("blocks", blocks, expected));
        }
        let filter = Self {
            table: input.section("table", blocks * u64::from(block))?,
            blocks,
            block,
            chains,
            len: input.len(),
        };
        let (mut live, mut slots) = (0, Vec::new());
        sized!(block, N => {
            for (number, block) in filter.cells::<N>().iter().enumerate() {
                let refused = |why| Err(DecodeError::invalid("the block of number", number as u64, why));
                let shape = filter.shape::<N>();
                let Some(layout) = shape.layout(block) else {
                    return refused("an index, end marks and flags that agree");
                };
                shape.read(block, &mut slots);
                if slots.windows(2).any(|pair| pair[1].is_before(&pair[0])) {
                    return refused("slots in the order of their remainders");
                }
                live += u64::from(layout.live);
            }
        });
        if live != filter.len {
            let expected = format!("{live}, the slots in use");
            return Err(DecodeError::invalid("keys", filter.len, expected));
        }
        Ok(filter)
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }

    fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        let filter = (self as &mut dyn Any).downcast_mut::<TinySetRemovable>()?;
        Some(filter)
    }

    fn as_count(&self) -> Option<&dyn Count> {
        Some(self)
    }

    fn try_merge(&mut self, other: &Self) -> Option<Result<(), MergeError>> {
        Some(self.merge(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    fn build<const REMOVABLE: bool>(config: &Config, keys: u64) -> TinySetOf<REMOVABLE> {
        let mut hashes: Vec<u64> = (0..keys).map(mix64).collect();
        <TinySetOf<REMOVABLE> as Kind>::build(config, &mut hashes).unwrap()
    }

    #[test]
    fn both_ways_to_place_a_hash_agree_up_to_the_most_blocks() {
        fn check<const N: usize>() {
            for blocks in [
                1,
                2,
                3,
                1000,
                3 << 29,
                (1 << 31) + 1,
                1 << 32,
                most_blocks(N as u32),
            ] {
                for i in 0..10_000 {
                    let (hash, chains) = (mix64(i), N as u32);
                    let (block, chain, remainder) = place(hash, blocks, chains);
                    let usual = Usual::<N, false>::place(hash, blocks);
                    assert_eq!((block, chain, remainder), usual);
                    assert!((block as u64) < blocks && chain < chains);
                }
            }
        }
        check::<32>();
        check::<64>();
        check::<128>();
    }

    #[test]
    fn chain_and_remainder_are_spread_evenly_at_any_number_of_blocks() {
        for (blocks, chains) in [
            (1, 64),
            (1000, 64),
            (3 << 29, 64),
            (1 << 33, 64),
            (1 << 30, 100),
        ] {
            let draws = 1u64 << 20;
            let mut cells = vec![0f64; chains as usize * 64];
            for i in 0..draws {
                let (_, chain, remainder) = place(mix64(i), blocks, chains);
                // The last bits that a fingerprint can have.
                let last = prefix(remainder, CAP) as usize % 64;
                cells[chain as usize * 64 + last] += 1.0;
            }
            let expected = draws as f64 / cells.len() as f64;
            let chi2: f64 = cells
                .iter()
                .map(|c| (c - expected).powi(2) / expected)
                .sum();
            let df = cells.len() as f64 - 1.0;
            // Laurent–Massart upper bound at 1e-9.
            let most = df + 2.0 * (20.7 * df).sqrt() + 41.4;
            assert!(chi2 <= most, "{blocks} blocks: {chi2} at df {df}");
        }
    }

    /// Every shape: usual and chosen chains, of each block size.
    const SHAPES: [&str; 7] = [
        "block=32",
        "block=64",
        "block=128",
        "block=32,chains=10",
        "chains=33",
        "chains=80",
        "block=128,chains=50",
    ];

    /// The code that reads and writes a block is given that block alone, here in memory of its own: what it answers and
    /// writes depends on no other. A block of 32 or 64 bytes lies in one line, one of 128 in two.
    #[test]
    fn an_operation_reads_and_writes_one_block_which_starts_on_a_line() {
        for text in SHAPES {
            let config: Config = format!("capacity=3000,{text}").parse().unwrap();
            let mut filter = build::<true>(&config, 3000);
            let size = filter.block as usize;
            assert_eq!(filter.table.as_ptr().addr() % size.min(64), 0);
            for i in 0..600 {
                let (hash, before) = (mix64(2900 + i), filter.table.to_vec());
                let (block, chain, remainder) = filter.place(hash);
                let here = block * size..(block + 1) * size;
                sized!(filter.block, N => {
                    let shape = filter.shape::<N>();
                    let alone: Box<[u8; N]> = Box::new(before[here.clone()].try_into().unwrap());
                    let held = shape.count(&alone, chain, remainder) > 0;
                    assert_eq!(filter.contains(hash), held);
                    filter.insert(hash).unwrap();
                    let added = shape.inserted(&alone, chain, remainder).unwrap();
                    assert_eq!(filter.table[here.clone()], added);
                    assert!(filter.remove(hash));
                    let removed = shape.removed(&added, chain, remainder).unwrap();
                    assert_eq!(filter.table[here.clone()], removed);
                });
                let outside = |table: &[u8]| [&table[..here.start], &table[here.end..]].concat();
                assert_eq!(outside(&before), outside(&filter.table));
            }
        }
    }

    #[test]
    fn every_shape_answers_in_batches_and_at_every_level_as_its_blocks_do() {
        fn check<const REMOVABLE: bool>(text: &str) {
            // Above 256 KiB, where batches prefetch.
            let config: Config = format!("capacity=140000,fpr=0.0001,{text}")
                .parse()
                .unwrap();
            let hashes: Vec<u64> = (0..140_000).map(mix64).collect();
            let mut filter = build::<REMOVABLE>(&config, 0);
            filter.insert_batch(&hashes).unwrap();
            assert!(filter.size_in_bytes() > simd::PREFETCH_FROM);
            let bulk = build::<REMOVABLE>(&config, 140_000);
            assert!(filter.table[..] == bulk.table[..], "{text}");
            let asked: Vec<u64> = (120_000..160_000).map(mix64).collect();
            let mut out = vec![false; asked.len()];
            for portable in [true, false] {
                simd::force_portable(portable);
                filter.contains_batch(&asked, &mut out);
                for (&hash, &answer) in asked.iter().zip(&out) {
                    assert_eq!(answer, filter.count(hash) > 0, "{text}");
                    assert_eq!(answer, filter.contains(hash), "{text}");
                }
            }
        }
        for text in SHAPES {
            check::<false>(text);
            check::<true>(text);
        }
    }

    #[test]
    fn the_bytes_do_not_tell_in_which_order_keys_came() {
        for text in [
            "",
            "block=32",
            "block=128",
            "chains=80",
            "block=32,chains=10",
        ] {
            for keys in [3000, 9000] {
                let config: Config = format!("capacity=3000,{text}").parse().unwrap();
                let mut bulk = build::<true>(&config, 0);
                let mut hashes: Vec<u64> = (0..keys).map(mix64).collect();
                sized!(bulk.block, N => bulk.fill::<N>(&mut hashes).unwrap());
                let mut grown = build::<true>(&config, 0);
                for i in 0..keys {
                    grown.insert(mix64(i)).unwrap();
                }
                let (mut even, mut odd) = (build::<true>(&config, 0), build::<true>(&config, 0));
                for i in (0..keys).rev() {
                    let half = if i % 2 == 0 { &mut even } else { &mut odd };
                    half.insert(mix64(i)).unwrap();
                }
                even.merge(&odd).unwrap();
                for other in [&grown, &even] {
                    assert!(bulk.table[..] == other.table[..], "{keys} keys, {text}");
                    assert_eq!(bulk.len, other.len);
                }
                for i in 0..keys * 4 {
                    assert_eq!(bulk.count(mix64(i)) > 0, bulk.contains(mix64(i)));
                    assert!(i >= keys || bulk.contains(mix64(i)));
                }
            }
        }
    }

    #[test]
    fn small_filters_keep_their_rate_and_need_no_more_than_large_ones() {
        for keys in [1, 2, 10, 57, 58, 100, 114, 500, 5000, 60_000] {
            let mut mean = 0.0;
            let filters = 4 + 2000 / keys;
            for seed in 0..filters {
                let mut hashes: Vec<u64> = (0..keys).map(|i| mix64(seed << 40 | i)).collect();
                let filter = <TinySet as Kind>::build(&Config::new(keys), &mut hashes).unwrap();
                assert!(filter.blocks as f64 <= (keys as f64 / 57.0).ceil());
                mean += filter.fpr() / filters as f64;
            }
            assert!(mean <= 0.01 * 1.05, "{keys} keys: {mean}");
        }
    }

    #[test]
    fn copies_of_one_key_are_refused_as_such() {
        let mut filter = build::<false>(&Config::new(1000), 500);
        let held = filter.len();
        let full = (0..1000)
            .find_map(|_| filter.insert(mix64(3)).err())
            .unwrap();
        assert!(matches!(full.kind(), FullKind::Duplicates(copies) if copies > 224));
        assert!(filter.len() > held && full.keys() == filter.len());
        assert!((0..500).all(|i| filter.contains(mix64(i))));
        let many = vec![mix64(3); 1000];
        let mut filter = build::<false>(&Config::new(1000), 0);
        let full = filter.insert_batch(&many).unwrap_err();
        assert_eq!((full.accepted(), filter.len()), (448, 448));
        assert_eq!(full.kind(), FullKind::Duplicates(448));
        // Building says the same, also where other keys share the block, and never that a larger filter would help.
        let others = |i: u64| mix64(3) & !0 << 40 | mix64(i) >> 30;
        for few in [0, 300] {
            let mut hashes = [many.clone(), (0..few).map(others).collect()].concat();
            let refused = <TinySet as Kind>::build(&Config::new(1000), &mut hashes).unwrap_err();
            let BuildErrorKind::Full(full) = refused.kind() else {
                panic!("{refused}")
            };
            assert_eq!(full.kind(), FullKind::Duplicates(448), "{refused}");
            assert!(!refused.to_string().contains("larger"), "{refused}");
        }
    }

    /// A refusal names what the filter holds, and copies only where one chain has more than half of the block.
    #[test]
    fn a_refusal_tells_copies_from_many_keys_and_counts_what_is_held() {
        for text in ["block=64", "chains=80"] {
            let config: Config = format!("capacity=2000,{text}").parse().unwrap();
            let room = if text == "block=64" { 448 } else { 432 };
            for copies in [room / 2, room / 2 + 1] {
                let mut filter = build::<false>(&config, 700);
                let (b, chains) = (filter.blocks, u64::from(filter.chains));
                // A hash in the middle of block 5's chain.
                let in_chain = |chain: u64| {
                    let cell = (u128::from(5 * chains + chain) << 64) / u128::from(b * chains);
                    let hash = cell as u64 + (u64::MAX / (b * chains)) / 2;
                    let (block, at, _) = filter.place(hash);
                    assert_eq!((block, u64::from(at)), (5, chain));
                    hash
                };
                let (one, other) = (in_chain(20), in_chain(40));
                let held = |filter: &TinySet, hash| {
                    let (block, chain, _) = filter.place(hash);
                    filter
                        .shape::<64>()
                        .chain_len(&filter.cells()[block], chain) as usize
                };
                filter
                    .insert_batch(&vec![one; copies - held(&filter, one)])
                    .unwrap();
                let before = filter.len();
                let full = filter.insert_batch(&vec![other; 1000]).unwrap_err();
                assert_eq!(filter.len(), before + full.accepted() as u64);
                assert_eq!(full.keys(), filter.len());
                let full = filter.insert(one).unwrap_err();
                let expected = if copies == room / 2 {
                    FullKind::Capacity
                } else {
                    FullKind::Duplicates(copies as u64)
                };
                assert_eq!((full.kind(), full.keys()), (expected, filter.len()));
                assert_eq!(full.accepted(), 0);
            }
        }
        // Many keys at once in one block are no copies.
        let mut hashes: Vec<u64> = (0..1000).map(|i| mix64(i) >> 15).collect();
        let refused = <TinySet as Kind>::build(&Config::new(1_000_000), &mut hashes).unwrap_err();
        let BuildErrorKind::Full(full) = refused.kind() else {
            panic!("{refused}")
        };
        assert_eq!((full.kind(), full.keys()), (FullKind::Capacity, 448));
    }

    /// Up to 1,024 blocks the fewest that keep the rate by the binomial law; and never loaded beyond half of their bits.
    #[test]
    fn few_blocks_are_as_few_as_the_exact_law_allows() {
        let (mut fewer, mut sizes) = (0, 0);
        for keys in (1..60).map(|i| i * i) {
            for fpr in [0.1, 0.01, 0.0001] {
                let filter = build::<false>(&Config::new(keys).fpr(fpr), 0);
                let rate = |blocks| math::tinyset_fpr_finite(keys, blocks, 512, 64, 0);
                assert!(rate(filter.blocks) <= fpr, "{keys} keys at {fpr}");
                assert!(filter.blocks == 1 || rate(filter.blocks - 1) > fpr);
                let many = keys as f64 / math::tinyset_mean_load(fpr, 512, 64, 0).unwrap();
                fewer += u32::from(filter.blocks < many.ceil() as u64);
                sizes += 1;
            }
        }
        assert!(fewer >= 10, "{fewer} of {sizes} gain by it");
    }

    #[test]
    fn at_high_rates_no_block_is_meant_to_be_more_than_half_full() {
        for (keys, fpr) in [(1000, 0.9), (1_000_000, 0.9), (1_000_000, 0.999)] {
            let filter = build::<false>(&Config::new(keys).fpr(fpr), keys);
            assert_eq!(filter.blocks, keys.div_ceil(224), "{keys} keys at {fpr}");
            let filter = build::<true>(&Config::new(keys).fpr(fpr), keys);
            assert_eq!(filter.blocks, keys.div_ceil(223), "{keys} keys at {fpr}");
        }
    }

    #[test]
    fn what_cannot_be_built_is_refused_before_memory_is_taken() {
        let kind = |config: &str| {
            let config: Config = config.parse().unwrap();
            <TinySet as Kind>::build(&config, &mut []).unwrap_err()
        };
        let parameter = |text| matches!(kind(text).kind(), BuildErrorKind::Parameter { .. });
        assert!(parameter("block=48") && parameter("chains=8") && parameter("chains=129"));
        assert!(parameter("block=32,chains=65") && parameter("chains=many"));
        let huge = kind("capacity=4000000000000,fpr=0.01");
        assert!(
            matches!(huge.kind(), BuildErrorKind::TooLarge { .. }),
            "{huge}"
        );
        let exact = kind("capacity=10,fpr=1e-12");
        assert!(
            matches!(exact.kind(), BuildErrorKind::Unreachable { .. }),
            "{exact}"
        );
    }

    /// Copies of a key lie on both sides of where the longer slots end; a union must not change places with them.
    #[test]
    fn unions_of_copies_keep_every_copy() {
        fn check<const REMOVABLE: bool>() {
            for keys in 1..40 {
                let few = build::<REMOVABLE>(&Config::new(60), keys);
                let mut many = few.clone();
                for copies in 2..=180 / keys {
                    many.merge(&few).unwrap();
                    for i in 0..keys {
                        assert!(many.contains(mix64(i)), "{copies} copies of {keys} keys");
                        assert!(many.count(mix64(i)) >= copies);
                    }
                    let mut hashes: Vec<u64> =
                        (0..keys * copies).map(|i| mix64(i % keys)).collect();
                    let mut built = build::<REMOVABLE>(&Config::new(60), 0);
                    built.fill::<64>(&mut hashes).unwrap();
                    assert!(
                        built.table[..] == many.table[..],
                        "{copies} copies of {keys} keys"
                    );
                }
            }
        }
        check::<false>();
        check::<true>();
    }

    #[test]
    fn a_file_with_slots_in_another_order_is_refused() {
        let slot = |fingerprint| Slot {
            chain: 3,
            fingerprint,
            width: CAP,
        };
        for (slots, is_fine) in [([slot(1), slot(2)], true), ([slot(2), slot(1)], false)] {
            let mut filter = TinySet::with_shape(1, 64, 64).unwrap();
            let block = filter.shape::<64>().write(&slots, 0).unwrap();
            filter.table.make_mut().copy_from_slice(&block);
            // And so is one whose slots are not as many as it says.
            for len in [1, 2, 3] {
                filter.len = len;
                let (copy, config) = (filter.clone(), Config::new(2));
                let keyed = crate::Keyed::from_filter(copy, crate::Hashing::default(), &config);
                let read = crate::Keyed::<TinySet>::open(keyed.unwrap().to_bytes());
                assert_eq!(read.is_ok(), is_fine && len == 2, "{len}");
            }
        }
    }

    /// A block that was fuller once keeps its short fingerprints in a union: longer ones are not known.
    #[test]
    fn a_union_keeps_the_widths_of_the_fuller_past() {
        let config = Config::new(1000);
        let mut past = build::<true>(&config, 0);
        (0..3000).for_each(|i| past.insert(mix64(i)).unwrap());
        for i in 100..3000 {
            assert!(past.remove(mix64(i)));
        }
        for (mut a, b) in [
            (build::<true>(&config, 0), past.clone()),
            (past.clone(), build::<true>(&config, 0)),
        ] {
            a.merge(&b).unwrap();
            assert!(a.table[..] == past.table[..]);
            assert_eq!(a.logical_len(), past.logical_len());
        }
        let mut few = build::<true>(&config, 0);
        (3000..3100).for_each(|i| few.insert(mix64(i)).unwrap());
        few.merge(&past).unwrap();
        assert!((0..100).chain(3000..3100).all(|i| few.contains(mix64(i))));
        assert!(few.logical_len() >= past.logical_len());
    }

    #[test]
    fn every_state_that_operations_lead_to_can_be_read_back() {
        // Few blocks, overfull, keys coming, going, repeated and united: the order of slots must survive it all.
        for (seed, block) in [(1, 32), (2, 64), (3, 128), (4, 64)] {
            let config = Config::new(100).set("block", block);
            let mut filter = TinySetRemovable::build(&config, &mut []).unwrap();
            let mut members = Vec::new();
            for step in 0..20_000u64 {
                let draw = mix64(seed << 32 | step);
                match draw % 100 {
                    0..=54 => {
                        let key = mix64(draw >> 32 & 0x1ff);
                        if members.len() < 400 && filter.insert(key).is_ok() {
                            members.push(key);
                        }
                    }
                    55..=98 if !members.is_empty() => {
                        let key = members.swap_remove((draw >> 16) as usize % members.len());
                        assert!(filter.remove(key));
                    }
                    99 if members.len() < 200 => {
                        let others: Vec<u64> = (0..50).map(|i| mix64(draw ^ i)).collect();
                        let other = TinySetRemovable::build(&config, &mut others.clone()).unwrap();
                        if filter.merge(&other).is_ok() {
                            members.extend(others);
                        }
                    }
                    _ => {}
                }
                if step % 50 == 0 {
                    let hashing = crate::Hashing::default();
                    let keyed =
                        crate::Keyed::from_filter(filter.clone(), hashing, &config).unwrap();
                    let read = crate::Keyed::<TinySetRemovable>::open(keyed.to_bytes()).unwrap();
                    assert!(members.iter().all(|&key| read.filter().contains(key)));
                }
            }
        }
    }

    #[test]
    fn a_union_holds_both_and_is_refused_whole() {
        for config in ["", "block=32", "block=128", "chains=33"] {
            let config: Config = format!("capacity=4000,fpr=0.01,{config}").parse().unwrap();
            let (mut a, mut b) = (build::<true>(&config, 2000), build::<true>(&config, 0));
            for i in 1500..4000 {
                b.insert(mix64(i)).unwrap();
            }
            // Free slots on one side, and repeats of 500 keys.
            for i in 0..1000 {
                assert!(a.remove(mix64(i)));
            }
            a.merge(&b).unwrap();
            assert_eq!(a.len(), 3500);
            assert!((1000..4000).all(|i| a.contains(mix64(i))), "{config}");
            assert!((1500..2000).all(|i| a.count(mix64(i)) >= 2));
            for i in (1000..4000).chain(1500..2000) {
                assert!(a.remove(mix64(i)));
            }
            assert!(a.is_empty() && a.table.iter().all(|&byte| byte == 0));
        }
        let mut a = build::<false>(&Config::new(100), 100);
        let mut b = a.clone();
        let copies = |n| vec![mix64(7); n];
        a.insert_batch(&copies(300)).unwrap();
        b.insert_batch(&copies(300)).unwrap();
        let before = a.table.to_vec();
        assert!(matches!(
            a.merge(&b).unwrap_err().kind(),
            MergeErrorKind::Full(_)
        ));
        assert_eq!((&*a.table, a.len()), (&before[..], 400));
        let other = build::<false>(&Config::new(10_000), 0);
        assert!(matches!(
            a.merge(&other).unwrap_err().kind(),
            MergeErrorKind::Parameter { .. }
        ));
    }
}
