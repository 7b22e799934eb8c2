//! TinySet: small, and takes keys one by one, in one cache line per operation.
//!
//! The essay is at [`TinySetOf`].

use super::block::{CAP, MOST_CHAINS, Shape, Slot, interleave, prefix};
use super::eight;
use super::fast::Default as Usual;
use crate::bits::fastrange;
use crate::buf::Buf;
use crate::config::{Config, Param};
use crate::error::{
    BuildError, BuildErrorKind, DecodeError, Full, FullKind, MergeError, MergeErrorKind,
};
use crate::filter::{Count, Filter, Insert, Kind, Merge, Remove};
use crate::format::{Decoder, Encoder};
use crate::kinds::Declared;
use crate::lookup::{self, EIGHT, Fill, NEAR, Ring};
use crate::math;
use crate::option;
use crate::simd::{self, Bits, Op};

/// A TinySet; see [`TinySet`] and [`TinySetRemovable`]. Insert, count, merge; remove where
/// `REMOVABLE`.
///
/// ```
/// use tamis::{Config, Keyed, TinySet};
///
/// let mut seen: Keyed<TinySet> = Keyed::new(&Config::new(1_000_000).fpr(0.001))?;
/// seen.insert("alice")?;
/// assert!(seen.contains("alice"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///  hash ──► block b of B, chain c of L = 64, remainder r
///
///  bit 0               64                64 + X                                        512
///  ┌───────────────────┬─────────────────┬────────┬────────┬────────┬────────┬─ … ─┬───────┐
///  │ 0 1 1 0 0 1 0 0 … │ 1 0 1 1 0 0 1 … │10110101│00101110│11000101│01111010│     │1000110│
///  └───────────────────┴─────────────────┴────────┴────────┴────────┴────────┴─ … ─┴───────┘
///    index: chain c      end marks: slot   one fingerprint a slot, in the order of chains,
///    has a slot          i is its chain's  then of remainders; the first 448 mod X of them
///                        last              have one bit more than the others
///
///  chain 1: slot 0 ┃ chain 2: slots 1, 2 ┃ chain 5: slot 3 ┃ …
/// ```
///
/// A block is a hash table with chaining, without pointers: the index says which chains exist,
/// the end marks say where each ends, and counting ones in both finds a chain. There is no
/// counter either: with k chains, the block has as many slots as lie up to the k-th end mark. All
/// bits that remain belong to the fingerprints, shared out evenly: with X slots each gets ⌊448/X⌋
/// − 1 bits beside its end mark, and the first 448 mod X one more. Few keys have long
/// fingerprints; a key more makes each a little shorter. A block is full of information at every
/// load, and never full.
///
/// # Why an insertion loses nothing
///
/// A slot keeps the *first* bits of its key's remainder, and the width of slot i among X, ⌈(448 −
/// i)/X⌉ − 1, never grows with i or with X. An insertion moves slots to higher numbers only, and
/// X up. So every new field is a prefix of the old one, and of the key's own remainder: the key
/// goes on matching it. For the same reason two filters unite without their keys: slots of both,
/// in order, at a larger X.
///
/// Where two remainders differ only in bits that are lost, their slots hold the same bits, and
/// their order does not matter. So the bits of a filter depend on its keys alone, not on the
/// order in which they came: inserting, building at once and uniting give the same file. (After
/// removals the block's highest load shows.)
///
/// # Removing
///
/// [`TinySetRemovable`] has two flags after the index. Removing a key frees its slot but cannot
/// lengthen the others, whose bits are gone: X stays, and the free slots stand at the end as one
/// more chain without fingerprints; the first flag says that it exists. The second says that
/// fewer slots have the extra bit than X alone implies; their number then follows from the
/// highest set bit, a 1 after the last fingerprint. A block that gets empty starts anew.
///
/// Of several slots that match, the first goes: it is the longest. Were a shorter one removed,
/// the key that it stood for might be left with a longer one that it does not match. Taking the
/// longest is safe: another key that it stood for matches every shorter prefix of it too, and
/// finds the slot of the removed key.
///
/// # Cost
///
/// Bits a key, blocks of 64 bytes, by the exact formula, which sizing uses:
///
/// | rate | 5 % | 1 % | 2⁻⁸ | 0.1 % | 0.01 % | 2⁻¹⁶ |
/// |---|---|---|---|---|---|---|
/// | TinySet | 6.58 | 8.98 | 10.48 | 12.82 | 17.22 | 21.33 |
/// | TinySet, removable | 6.60 | 9.02 | 10.53 | 12.87 | 17.30 | 21.44 |
/// | Bloom | 6.24 | 9.59 | 11.54 | 14.38 | 19.17 | 23.08 |
/// | [`Cuckoo`](crate::Cuckoo), whole bits | 8.42 | 10.53 | 11.58 | 13.69 | 17.90 | 20.00 |
/// | least possible | 4.32 | 6.64 | 8.00 | 9.97 | 13.29 | 16.00 |
///
/// Blocks of 128 bytes save 0.2 bits at 1 % and 0.9 at 0.01 % for a second line; blocks of 32
/// bytes need more. A filter may be overfilled: the rate rises gently, and an insertion is
/// refused only when a block has as many slots as bits, some eight times its load.
///
/// A lookup reads one line, and ends there if the key's chain is empty, as half of those of absent
/// keys are; more at lower rates, whose blocks hold fewer keys. All other chains take the same
/// instructions whatever the rate (`cargo xtask instructions` counts them), and these decide the
/// time, not the memory. With AVX-512 a batch looks up eight keys at once.
///
/// Single lookups out of cache take longer than cuckoo's, because so many instructions leave
/// little room for a second miss in flight; so do insertions of one key at a time. In batches,
/// where lines are prefetched, both are faster than those of a cuckoo filter of 12 bits (lookups
/// with AVX-512, of absent keys): `cargo run --release -p tamis-bench -- check --kinds tinyset`
/// holds them to it. A removal takes a multiple of cuckoo's, and an insertion into a block that
/// has seen one goes slot by slot.
///
/// Short cuts exist for as many chains as a block has bytes, the default. With others a lookup
/// walks its chain and an insertion every slot of the block, one after the other, which takes
/// several times as long.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `block` | 32, 64 or 128 | 64 | bytes of a block; 64 are a cache line |
/// | `chains` | a quarter to twice its bytes, 128 at most | its bytes | chains of a block; only the default has the short cuts |
///
/// # When to choose it
///
/// When keys arrive over time and space counts, at rates from 2.9 % to 0.012 %: there it is
/// smaller than Bloom and cuckoo filters. Above, Bloom is smaller; below 2⁻¹³ the cuckoo filter
/// catches up, and from about 2⁻¹⁵ on it is smaller. [`RankIndexed`](crate::RankIndexed) is
/// larger down to 0.1 %, and much slower to change. [`SplitBlock512`](crate::SplitBlock512) is
/// faster and larger; for a fixed set [`BinaryFuse8`](crate::BinaryFuse8) is smaller.
/// [`Cuckoo`](crate::Cuckoo) does not lose accuracy when keys come and go for long, and removes
/// them faster: here each block keeps the widths of its highest load, and the rate about doubles
/// once as many keys have been replaced as it holds.
///
/// # Bibliography
///
/// - Einziger, Friedman, *TinySet: an access efficient self adjusting Bloom filter construction*,
///   2015: the block, the two sizes, the counter that is not there. Removal differs: the paper's
///   lets a bit of every longer slot match always.
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

/// Block, chain and remainder use this many bits of a hash; the bits after the remainder's are
/// ignored.
const HASH_BITS: u32 = 64;

/// Evaluates an expression with the block size as a constant.
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

    /// Keys per chain, on average: 0.89 in a filter for 1 % that holds what it was built for,
    /// 0.76 at 2⁻⁸, 0.46 at 0.01 %. It may go on growing, and the rate with it.
    pub fn load_factor(&self) -> f64 {
        self.len as f64 / (self.blocks as f64 * f64::from(self.chains))
    }

    /// The slots that decide the widths of fingerprints: [`len`](Filter::len) where nothing was
    /// ever removed, else up to the sum of each block's highest load.
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

    /// Whether blocks have the shape with short cuts.
    #[inline(always)]
    fn is_usual(&self) -> bool {
        self.chains == self.block
    }

    /// Whether they also have the default size. Single calls have functions of their own for it:
    /// one for all sizes is so large that it saves and restores more registers than this needs.
    #[inline(always)]
    fn is_default(&self) -> bool {
        self.is_usual() && self.block == 64
    }

    #[inline(never)]
    fn contains_any(&self, hash: u64) -> bool {
        let filter = self;
        sized!(self.block, N => if self.is_usual() {
            simd::dispatch(Lookup::<_, N> { filter, hash })
        } else {
            let (block, chain, remainder) = self.place(hash);
            self.shape::<N>().contains(&self.cells()[block], chain, remainder)
        })
    }

    #[inline(never)]
    fn insert_any(&mut self, hash: u64) -> Result<(), Refused> {
        let filter = self;
        sized!(filter.block, N => if filter.is_usual() {
            lookup::insert(Writer::<_, N>(filter), hash)
        } else {
            let (block, chain, remainder) = filter.place(hash);
            let next = filter.shape::<N>().inserted(&filter.cells()[block], chain, remainder);
            filter.table.make_mut().as_chunks_mut().0[block] = next.ok_or(Refused)?;
            filter.len += 1;
            Ok(())
        })
    }

    #[inline(always)]
    fn cells<const N: usize>(&self) -> &[[u8; N]] {
        self.table.as_chunks().0
    }

    #[inline(always)]
    fn reader<const N: usize>(&self) -> Reader<'_, N, REMOVABLE> {
        Reader(self.cells())
    }

    fn place(&self, hash: u64) -> (usize, u32, u64) {
        place(hash, self.blocks, self.chains)
    }

    #[inline(always)]
    fn insert_one<B: Bits, const N: usize>(&mut self, bits: B, hash: u64) -> Result<(), Refused> {
        let blocks = self.table.make_mut().as_chunks_mut::<N>().0;
        let (block, chain, remainder) = Usual::<N, REMOVABLE>::place(hash, blocks.len() as u64);
        Usual::<N, REMOVABLE>::insert(bits, &mut blocks[block], chain, remainder).ok_or(Refused)?;
        self.len += 1;
        Ok(())
    }

    /// Why a key was refused.
    #[cold]
    fn refusal(&self, hash: u64) -> Full {
        let (block, chain, _) = self.place(hash);
        sized!(self.block, N => {
            let shape = self.shape::<N>();
            full(shape, shape.chain_len(&self.cells()[block], chain), self.len)
        })
    }

    /// Blocks for a number of keys, the fewest that keep the rate.
    fn blocks_for(keys: u64, fpr: f64, block: u32, chains: u32) -> Option<f64> {
        let (bits, flags) = (8 * block, 2 * u32::from(REMOVABLE));
        let array = bits - chains - flags;
        // No block reaches twice the mean by chance, so no key is refused.
        let load = math::tinyset_mean_load(fpr, bits, chains, flags)?.min(f64::from(array) / 2.0);
        if load < LEAST_LOAD {
            return None;
        }
        let blocks = (keys as f64 / load).ceil().max(1.0);
        if blocks > FEW {
            return Some(blocks);
        }
        // A few blocks are loaded more evenly than the law for many says.
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
        // Block, chain and remainder are the leading digits of a hash: sorting the hashes sorts
        // all three.
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

    /// Unites the blocks pairwise; anything that can be refused is refused before the first write.
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

/// The smallest mean load that a filter is sized for: below, the longest fingerprint is too short
/// for the rate.
const LEAST_LOAD: f64 = 1.0;
/// Up to this many blocks the binomial law decides, beyond it Poisson's, which is the same to all
/// digits that matter.
const FEW: f64 = 1024.0;

/// The most blocks: a hash of 64 bits must give block, chain and remainder.
fn most_blocks(chains: u32) -> u64 {
    (1 << (HASH_BITS - CAP)) / u64::from(chains)
}

/// The chains that a block may have.
fn chains_of(block: u32) -> std::ops::RangeInclusive<u32> {
    block / 4..=(2 * block).min(MOST_CHAINS)
}

/// Why a block takes no more: a chain that fills most of it holds one key over and over, or as
/// good as one.
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

/// The blocks of a filter of the usual shape, for lookups.
#[derive(Clone, Copy)]
struct Reader<'a, const N: usize, const REMOVABLE: bool>(&'a [[u8; N]]);

impl<const N: usize, const REMOVABLE: bool> Ring for Reader<'_, N, REMOVABLE> {
    const PREFETCH_FROM: usize = NEAR;
    /// Blocks of the default size are compared in a vector.
    const EIGHTS: bool = N == eight::BLOCK;
    type Place = u64;
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        size_of_val(self.0)
    }

    #[inline(always)]
    fn place(self, hash: u64) -> u64 {
        hash
    }

    #[inline(always)]
    fn prefetch(self, hash: u64) {
        prefetch(self.0, hash);
    }

    #[inline(always)]
    fn probe<B: Bits>(self, bits: B, hash: u64) -> bool {
        let (block, chain, remainder) = Usual::<N, REMOVABLE>::place(hash, self.0.len() as u64);
        Usual::<N, REMOVABLE>::contains(bits, &self.0[block], chain, remainder)
    }

    #[inline(always)]
    fn probe_eight<B: Bits>(self, bits: B, hashes: [u64; EIGHT]) -> [bool; EIGHT] {
        if u32::try_from(self.0.len()).is_err() {
            return hashes.map(|hash| self.probe(bits, hash));
        }
        let blocks = self.0.as_flattened().as_chunks().0;
        eight::look_up::<B, REMOVABLE>(bits, blocks, hashes)
    }
}

#[inline(always)]
fn prefetch<const N: usize>(blocks: &[[u8; N]], hash: u64) {
    let block = fastrange(hash, blocks.len() as u64).0 as usize;
    simd::prefetch_near(blocks, block);
    if N > 64 {
        simd::prefetch_near(blocks.as_flattened(), block * N + 64);
    }
}

struct Lookup<'a, const REMOVABLE: bool, const N: usize> {
    filter: &'a TinySetOf<REMOVABLE>,
    hash: u64,
}

impl<const REMOVABLE: bool, const N: usize> Op for Lookup<'_, REMOVABLE, N> {
    const WIDE: bool = N == eight::BLOCK;
    type Out = bool;

    #[inline(always)]
    fn run<B: Bits>(self, bits: B) -> bool {
        self.filter.reader::<N>().probe(bits, self.hash)
    }
}

impl<const REMOVABLE: bool> Filter for TinySetOf<REMOVABLE> {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        if self.is_default() {
            let filter = self;
            simd::dispatch(Lookup::<_, 64> { filter, hash })
        } else {
            self.contains_any(hash)
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
        sized!(self.block, N => if self.is_usual() {
            lookup::ring(Some(self.reader::<N>()), hashes, out);
        } else {
            lookup::calls(self, |hash| self.contains_any(hash), hashes, out);
        });
    }
}

impl<const REMOVABLE: bool> Insert for TinySetOf<REMOVABLE> {
    #[inline]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let inserted = if self.is_default() {
            lookup::insert(Writer::<_, 64>(self), hash)
        } else {
            self.insert_any(hash)
        };
        inserted.map_err(|Refused| self.refusal(hash))
    }

    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), Full> {
        if !self.is_usual() {
            let inserted = lookup::insertions(self, hashes);
            return inserted.map_err(|(accepted, full)| full.after(accepted));
        }
        let inserted = sized!(self.block, N => lookup::insert_batch(Writer::<_, N>(self), hashes));
        inserted.map_err(|(accepted, Refused)| self.refusal(hashes[accepted]).after(accepted))
    }
}

/// A block took no more; [`TinySetOf::refusal`] says why.
struct Refused;

/// A filter of the usual shape, for insertions.
struct Writer<'a, F, const N: usize>(&'a mut F);

impl<const REMOVABLE: bool, const N: usize> Fill for Writer<'_, TinySetOf<REMOVABLE>, N> {
    const WIDE: bool = N == eight::BLOCK;
    const PREFETCH_FROM: usize = NEAR;
    type Refusal = Refused;

    #[inline(always)]
    fn bytes(&self) -> usize {
        self.0.size_in_bytes()
    }

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        prefetch(self.0.cells::<N>(), hash);
    }

    #[inline(always)]
    fn fill<B: Bits>(&mut self, bits: B, hash: u64) -> Result<(), Refused> {
        self.0.insert_one::<B, N>(bits, hash)
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

impl<const REMOVABLE: bool> Kind for TinySetOf<REMOVABLE>
where
    Self: Declared,
{
    const ABOUT: &'static str = if REMOVABLE {
        "keys come and go, in one cache line; smaller than Bloom and cuckoo from 2.9 % to 0.012 %"
    } else {
        "keys arriving over time, in one cache line; smaller than Bloom and cuckoo from 2.9 % to 0.012 %"
    };
    const PARAMS: &'static [Param] = &[
        Param {
            name: option::BLOCK.name,
            values: "32, 64 or 128",
            default: "64",
            about: "bytes of a block; 64 are a cache line",
        },
        Param {
            name: option::CHAINS.name,
            values: "a quarter to twice its bytes, 128 at most",
            default: "its bytes",
            about: "chains of a block; only the default has the short cuts",
        },
    ];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Self, BuildError> {
        let (keys, _) = config.check::<Self>(hashes)?;
        let expected = "32, 64 or 128";
        let block = config
            .param::<u32>(option::BLOCK.name, expected)?
            .unwrap_or(64);
        if ![32, 64, 128].contains(&block) {
            return Err(BuildError::parameter("block", block, expected));
        }
        let range = chains_of(block);
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let chains = config
            .param::<u32>(option::CHAINS.name, &expected)?
            .unwrap_or(block);
        if !range.contains(&chains) {
            return Err(BuildError::parameter("chains", chains, expected));
        }
        let needed = config.sized::<Self, _>(|fpr| Self::blocks_for(keys, fpr, block, chains))?;
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
}

#[cfg(test)]
mod tests;
