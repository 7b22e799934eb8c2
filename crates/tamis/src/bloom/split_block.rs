//! The split-block Bloom filter: one bit in each of eight lanes of one block, so that a lookup is
//! one cache line and one vector test.
//!
//! The essay is at [`SplitBlock`].

use std::convert::Infallible;
use std::ops::{BitAnd, BitOr, Not};

use crate::bits::fastrange;
use crate::bloom::blocked::halve_blocks;
use crate::bloom::{BitWords, insert_all};
use crate::buf::{Buf, Word};
use crate::config::Config;
use crate::error::{BuildError, BuildErrorKind, DecodeError, Full, MergeError};
use crate::filter::{Filter, Halve, Insert, Kind, Merge};
use crate::format::{Decoder, Encoder};
use crate::kinds::Declared;
use crate::lookup::{self, Fill, Leveled, NEAR, Ring};
use crate::math;
use crate::simd::{self, Bits, Table, TableMut, half_range};

/// Lanes in a block, and bits that a key sets.
pub(crate) const LANES: usize = 8;

/// The multipliers of the Parquet specification, one for each lane.
pub(crate) const SALTS: [u32; LANES] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// A lane of a split block: `u32` for 256-bit blocks, `u64` for 512-bit ones.
///
/// Sealed, as [`Word`] is. What differs between the two shapes is here; the algorithm is written
/// once.
pub trait Lane: Word + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {
    #[doc(hidden)]
    const BITS: u32;
    /// The most blocks that a filter may have.
    #[doc(hidden)]
    const MOST_BLOCKS: u64;
    /// Whether a block is found from the hash's upper half in 32-bit arithmetic, as Parquet has
    /// it.
    #[doc(hidden)]
    const BY_HALF: bool;
    /// A lane with the one bit set that the top bits of a product choose.
    #[doc(hidden)]
    fn bit(product: u32) -> Self;
    #[doc(hidden)]
    fn ones(self) -> u32;
}

/// A split-block Bloom filter; see [`SplitBlock256`] and [`SplitBlock512`]. Insert, merge.
///
/// ```
/// use tamis::{Config, Keyed, SplitBlock512};
///
/// let ids: Keyed<SplitBlock512> = Keyed::build(&Config::default().fpr(0.01), 0..1000u64)?;
/// assert!((0..1000u64).all(|id| ids.contains(&id)));
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// # The idea
///
/// ```text
///   hash ──high──► block ──────┐
///     └──low 32──► × 8 salts   ▼
///                 ┌────────┬────────┬────────┬─ … ─┬────────┐
///   one block     │ lane 0 │ lane 1 │ lane 2 │     │ lane 7 │
///                 └───▲────┴──▲─────┴─────▲──┴─ … ─┴──▲─────┘
///                     one bit in every lane: the top 5 (or 6) bits of the product low·saltᵢ
///
///   8 lanes of 32 bits (half a line) or 64 (one line)
/// ```
///
/// All eight products are one vector multiplication, all eight bits one vector shift; inserting
/// is one OR, and a key is present when no bit of its mask is missing, which is one test. There
/// is no loop, no branch and no second line.
///
/// The code below is plain arithmetic on arrays of eight; compiled for AVX2, as batches are (see
/// `simd`), it becomes exactly those instructions: `vpmulld`, `vpsrld`, `vpsllvd`, `vptest`.
///
/// # Two shapes
///
/// [`SplitBlock256`] has the geometry of Parquet, Impala, Kudu and Arrow: given the same hash it
/// sets the same bits (the block is found from the hash's upper half in 32-bit arithmetic, which
/// limits it to 2³¹ − 1 blocks). [`SplitBlock512`] is this library's own: blocks of a whole cache
/// line, found by 64-bit arithmetic. Larger blocks even out the number of keys per block, so it
/// needs less space for the same rate, and costs the same: either way a lookup waits for one
/// line.
///
/// # Cost
///
/// Bits/key by formula, which the conformance suite holds the filter to: 256-bit blocks 10.53 at
/// 1 %, 12.85 at 2⁻⁸, 16.89 at 0.1 %; 512-bit blocks 10.10, 12.18, 15.73. The price of blocks
/// grows as the rate falls: below 0.01 % it passes 1.9 times the lower bound, and another filter
/// should be taken; near 10⁻⁸ the 32 bits that place a key in its block are too few, and the
/// filter is refused.
///
/// # When to choose it
///
/// When speed counts most and keys arrive over time. For a fixed set
/// [`BinaryFuse8`](crate::BinaryFuse8) is smaller; to remove keys take [`Cuckoo`](crate::Cuckoo).
///
/// # Bibliography
///
/// - Putze, Sanders, Singler, *Cache-, hash- and space-efficient Bloom filters*, 2007: blocks,
///   and their price.
/// - Apache Parquet, *BloomFilter.md*: the salts and the 256-bit layout, to the bit.
/// - Apple, *Split block Bloom filters*, 2021: the analysis of one bit per lane.
#[derive(Clone, Debug)]
pub struct SplitBlock<L: Lane> {
    lanes: Buf<L>,
    len: u64,
}

/// Blocks of 8 × 32 bits: the geometry of Parquet.
pub type SplitBlock256 = SplitBlock<u32>;

/// Blocks of 8 × 64 bits, a cache line each: smaller than [`SplitBlock256`] at the same rate.
pub type SplitBlock512 = SplitBlock<u64>;

impl<L: Lane> SplitBlock<L> {
    /// The blocks, eight lanes each.
    #[inline(always)]
    pub fn blocks(&self) -> &[[L; LANES]] {
        self.lanes.as_chunks().0
    }

    /// Every filter has a block.
    #[inline(always)]
    fn reader(&self) -> Option<Reader<'_, L>> {
        Table::new(self.blocks()).map(Reader)
    }

    #[inline(always)]
    fn writer(&mut self) -> Writer<'_, L> {
        Writer(self.lanes.make_mut().as_chunks_mut().0)
    }

    /// The bits that a key sets in its block: this filter's geometry, with [`block_of`].
    #[inline(always)]
    fn mask(hash: u64) -> [L; LANES] {
        SALTS.map(|salt| L::bit((hash as u32).wrapping_mul(salt)))
    }
}

/// All bits of a key come from 32 bits of its hash, so a hash that shares them and the block with
/// one of so many keys is a false positive, however large the filter.
pub(super) fn floor(keys_per_block: f64) -> f64 {
    keys_per_block / 2f64.powi(32)
}

/// The block of a hash.
#[inline(always)]
fn block_of<L: Lane>(hash: u64, blocks: u64) -> u64 {
    if L::BY_HALF {
        half_range((hash >> 32) as u32, blocks)
    } else {
        fastrange(hash, blocks).0
    }
}

/// The blocks, for looking up.
#[derive(Clone, Copy)]
struct Reader<'a, L>(Table<'a, [L; LANES]>);

impl<L: Lane> Ring for Reader<'_, L> {
    /// A block is one vector.
    const WIDE: bool = true;
    const PREFETCH_FROM: usize = NEAR;
    type Place = u64;
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        size_of_val(self.0.items())
    }

    #[inline(always)]
    fn place(self, hash: u64) -> u64 {
        hash
    }

    #[inline(always)]
    fn prefetch(self, hash: u64) {
        prefetch(self.0.items(), hash);
    }

    #[inline(always)]
    fn probe<B: Bits>(self, _: B, hash: u64) -> bool {
        let block = if L::BY_HALF {
            self.0.at_half((hash >> 32) as u32)
        } else {
            self.0.at(hash).0
        };
        let mask = SplitBlock::<L>::mask(hash);
        let missing = (0..LANES).fold(L::default(), |missing, i| missing | mask[i] & !block[i]);
        missing == L::default()
    }
}

impl<L: Lane> Leveled for SplitBlock<L> {
    type Answer = bool;

    #[inline(always)]
    fn look_up<B: Bits>(&self, bits: B, hash: u64) -> bool {
        match self.reader() {
            Some(reader) => reader.probe(bits, hash),
            None => false,
        }
    }
}

/// Prefetches the block of a hash.
#[inline(always)]
fn prefetch<L: Lane>(blocks: &[[L; LANES]], hash: u64) {
    simd::prefetch(blocks, block_of::<L>(hash, blocks.len() as u64) as usize);
}

/// The blocks, for inserting.
struct Writer<'a, L>(&'a mut [[L; LANES]]);

impl<L: Lane> Fill for Writer<'_, L> {
    const PREFETCH_FROM: usize = NEAR;
    type Refusal = Infallible;

    #[inline(always)]
    fn bytes(&self) -> usize {
        size_of_val(self.0)
    }

    #[inline(always)]
    fn fetch(&self, hash: u64) {
        prefetch(self.0, hash);
    }

    #[inline(always)]
    fn fill<B: Bits>(&mut self, _: B, hash: u64) -> Result<(), Infallible> {
        if let Some(mut blocks) = TableMut::new(self.0) {
            let block = if L::BY_HALF {
                blocks.at_half((hash >> 32) as u32)
            } else {
                blocks.at(hash).0
            };
            for (lane, bit) in block.iter_mut().zip(SplitBlock::<L>::mask(hash)) {
                *lane = *lane | bit;
            }
        }
        Ok(())
    }
}

impl<L: Lane> Filter for SplitBlock<L> {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        lookup::single(self, hash)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.lanes.size_in_bytes()
    }

    /// The mean over blocks of the product of its lanes' fills, and the chance of a hash whose
    /// block and low half are a member's.
    fn fpr(&self) -> f64 {
        let bits = f64::from(L::BITS);
        let block_fpr = |block: &[L; LANES]| {
            block
                .iter()
                .map(|lane| f64::from(lane.ones()) / bits)
                .product::<f64>()
        };
        let blocks = self.blocks().len() as f64;
        let fill = self.blocks().iter().map(block_fpr).sum::<f64>() / blocks;
        fill + (1.0 - fill) * floor(self.len as f64 / blocks).min(1.0)
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        prefetch(self.blocks(), hash);
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::ring(self.reader(), hashes, out);
    }
}

impl<L: Lane> Insert for SplitBlock<L> {
    #[inline]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let Ok(()) = lookup::insert(self.writer(), hash);
        self.len = self.len.saturating_add(1);
        Ok(())
    }

    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), Full> {
        let Ok(()) = lookup::insert_batch(self.writer(), hashes);
        self.len = self.len.saturating_add(hashes.len() as u64);
        Ok(())
    }
}

impl<L: Lane> Merge for SplitBlock<L> {
    /// Sets every bit that is set in either: byte for byte the filter of all keys of both.
    fn merge(&mut self, other: &SplitBlock<L>) -> Result<(), MergeError> {
        MergeError::unless_equal(
            "blocks",
            self.blocks().len() as u64,
            other.blocks().len() as u64,
        )?;
        for (ours, theirs) in self.lanes.make_mut().iter_mut().zip(&*other.lanes) {
            *ours = *ours | *theirs;
        }
        self.len = self.len.saturating_add(other.len);
        Ok(())
    }
}

impl<L: Lane> Extend<u64> for SplitBlock<L> {
    /// Inserts every hash; none is refused.
    fn extend<I: IntoIterator<Item = u64>>(&mut self, hashes: I) {
        insert_all(self, hashes);
    }
}

impl BitWords for SplitBlock512 {
    fn parts(&self) -> (&[u64], u32) {
        (&self.lanes, LANES as u32)
    }

    fn from_words(
        words: impl ExactSizeIterator<Item = u64>,
        _: u32,
        len: u64,
    ) -> Result<SplitBlock512, BuildError> {
        let lanes = Buf::filled(words)?;
        Ok(SplitBlock { lanes, len })
    }

    #[inline(always)]
    fn bits_of(hash: u64, words: u64, _: u32) -> impl Iterator<Item = (usize, u64)> {
        let block = block_of::<u64>(hash, words / LANES as u64) as usize;
        (block * LANES..).zip(SplitBlock512::mask(hash))
    }

    #[inline(always)]
    fn line(hash: u64, words: u64) -> Option<(usize, [u64; LANES])> {
        let block = block_of::<u64>(hash, words / LANES as u64) as usize;
        Some((block, SplitBlock512::mask(hash)))
    }

    fn has_shape(&self, words: u64, _: u32) -> Result<(), MergeError> {
        let blocks = words / LANES as u64;
        MergeError::unless_equal("blocks", blocks, self.blocks().len() as u64)
    }
}

impl<L: Lane> Halve for SplitBlock<L> {
    /// The same keys in half the blocks, as if they had been inserted there: neighbours are laid
    /// over one another. The rate rises to that of the new fill.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the number of blocks is odd, or memory is short.
    fn halve(&self) -> Result<SplitBlock<L>, BuildError> {
        let lanes = halve_blocks(&self.lanes)?;
        let len = self.len;
        Ok(SplitBlock { lanes, len })
    }
}

impl<L: Lane> Kind for SplitBlock<L>
where
    Self: Declared,
{
    const ABOUT: &'static str = match L::BITS {
        32 => "the block geometry of Parquet and Impala: half a cache line per lookup",
        _ => "the fastest to fill and to ask: one cache line, one vector test",
    };

    fn build(config: &Config, hashes: &mut [u64]) -> Result<SplitBlock<L>, BuildError> {
        let (keys, _) = config.check::<SplitBlock<L>>(hashes)?;
        let block_bits = f64::from(L::BITS) * LANES as f64;
        let needed = config.sized::<Self, f64>(|fpr| {
            let bits_per_key = math::split_block_bits_per_key(fpr, L::BITS)?;
            let needed = (keys.max(1) as f64 * bits_per_key / block_bits).ceil();
            // Beyond this the low half of the hash decides more of the rate than sizing allows
            // for.
            let least = 16.0 * floor(keys as f64 / needed);
            (fpr >= least || needed > L::MOST_BLOCKS as f64).then_some(needed)
        })?;
        if needed > L::MOST_BLOCKS as f64 {
            return Err(BuildErrorKind::TooLarge {
                unit: "blocks",
                needed,
                most: L::MOST_BLOCKS,
            }
            .into());
        }
        let mut filter = SplitBlock {
            lanes: Buf::zeroed(needed as u64 * LANES as u64)?,
            len: 0,
        };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("blocks", self.blocks().len() as u64);
        out.section(&self.lanes);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<SplitBlock<L>, DecodeError> {
        let blocks = input.param_in("blocks", 1..=L::MOST_BLOCKS)?;
        Ok(SplitBlock {
            lanes: input.section("lanes", blocks * LANES as u64)?,
            len: input.len(),
        })
    }
}

impl Lane for u32 {
    const BITS: u32 = 32;
    const MOST_BLOCKS: u64 = (1 << 31) - 1;
    const BY_HALF: bool = true;

    #[inline(always)]
    fn bit(product: u32) -> u32 {
        1 << (product >> 27)
    }

    fn ones(self) -> u32 {
        self.count_ones()
    }
}

impl Lane for u64 {
    const BITS: u32 = 64;
    const MOST_BLOCKS: u64 = 1 << 32;
    const BY_HALF: bool = false;

    #[inline(always)]
    fn bit(product: u32) -> u64 {
        1 << (product >> 26)
    }

    fn ones(self) -> u32 {
        self.count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    #[test]
    fn sizes_are_those_of_the_formula() {
        // Bits/key: 256-bit blocks 10.53 at 1 % and 12.85 at 2⁻⁸, 512-bit blocks 10.10 and 12.18.
        fn bits_per_key<L: Lane>(fpr: f64) -> f64
        where
            SplitBlock<L>: Kind,
        {
            let filter = SplitBlock::<L>::build(&Config::new(1_000_000).fpr(fpr), &mut []).unwrap();
            filter.lanes.len() as f64 * f64::from(L::BITS) / 1e6
        }
        let eighth = 1.0 / 256.0;
        let got = [bits_per_key::<u32>(0.01), bits_per_key::<u32>(eighth)];
        assert!(
            (got[0] - 10.53).abs() < 0.006 && (got[1] - 12.85).abs() < 0.006,
            "{got:?}"
        );
        let got = [bits_per_key::<u64>(0.01), bits_per_key::<u64>(eighth)];
        assert!(
            (got[0] - 10.10).abs() < 0.006 && (got[1] - 12.18).abs() < 0.006,
            "{got:?}"
        );
    }

    #[test]
    fn blocks_of_256_bits_have_the_bits_that_parquet_describes() {
        // The specification's own arithmetic, one lane at a time.
        let mut filter = SplitBlock256::build(&Config::new(1000), &mut []).unwrap();
        let z = filter.blocks().len() as u64;
        let mut expected = vec![[0u32; 8]; z as usize];
        for i in 0..1000 {
            let hash = mix64(i);
            filter.insert(hash).unwrap();
            let block = (((hash >> 32) * z) >> 32) as usize;
            for lane in 0..8 {
                let product = ((hash & 0xffff_ffff) * u64::from(SALTS[lane])) & 0xffff_ffff;
                expected[block][lane] |= 1 << (product >> 27);
            }
        }
        assert_eq!(filter.blocks(), &expected[..]);
    }

    #[test]
    fn a_key_sets_one_bit_in_every_lane() {
        for i in 0..10_000 {
            assert!(
                SplitBlock::<u32>::mask(mix64(i))
                    .iter()
                    .all(|lane| lane.count_ones() == 1)
            );
            assert!(
                SplitBlock::<u64>::mask(mix64(i))
                    .iter()
                    .all(|lane| lane.count_ones() == 1)
            );
        }
    }

    /// What chooses the block says nothing about the bits in it, nor one lane about another:
    /// tables of 64 by the lane's bits, with the bound of Laurent and Massart at 10⁻⁹.
    #[test]
    fn the_block_and_the_bits_in_it_are_chosen_apart() {
        check::<u32>(u32::trailing_zeros);
        check::<u64>(u64::trailing_zeros);
        fn check<L: Lane>(place_of: fn(L) -> u32) {
            const DRAWS: u64 = 1 << 20;
            for blocks in [64, 192, 3 << 20, (1 << 31) - 1] {
                // The block's number and each lane's, of every draw.
                let choices: Vec<[u8; 1 + LANES]> = (0..DRAWS)
                    .map(|i| {
                        let mut choice = [0; 1 + LANES];
                        choice[0] = (block_of::<L>(mix64(i), blocks) % 64) as u8;
                        let mask = SplitBlock::<L>::mask(mix64(i));
                        for (place, lane) in choice[1..].iter_mut().zip(mask) {
                            *place = place_of(lane) as u8;
                        }
                        choice
                    })
                    .collect();
                for (a, b) in (0..=LANES).flat_map(|b| (0..b).map(move |a| (a, b))) {
                    let mut cells = vec![0u32; 64 * 64];
                    for choice in &choices {
                        cells[usize::from(choice[a]) << 6 | usize::from(choice[b])] += 1;
                    }
                    let width = |of: usize| if of == 0 { 64.0 } else { f64::from(L::BITS) };
                    let expected = DRAWS as f64 / (width(a) * width(b));
                    let chi2: f64 = cells
                        .iter()
                        .enumerate()
                        .filter(|(at, _)| {
                            ((at >> 6) as f64) < width(a) && ((at & 63) as f64) < width(b)
                        })
                        .map(|(_, &seen)| (f64::from(seen) - expected).powi(2) / expected)
                        .sum();
                    let df = width(a) * width(b) - 1.0;
                    let most = df + 2.0 * (20.7 * df).sqrt() + 41.4;
                    assert!(
                        chi2 <= most,
                        "{blocks} blocks, {a} and {b}: {chi2}, at most {most}"
                    );
                }
            }
        }
    }

    #[test]
    fn blocks_are_found_in_ranges_of_any_size() {
        for blocks in [1, 2, 3, 1000, 3 << 29, (1 << 31) - 1] {
            check::<u32>(blocks);
        }
        for blocks in [
            1,
            2,
            3,
            1000,
            3 << 29,
            (1 << 31) + 1,
            (1 << 32) - 1,
            1 << 32,
        ] {
            check::<u64>(blocks);
        }
        fn check<L: Lane>(blocks: u64) {
            let upper = (0..10_000).filter(|&i| {
                let block = block_of::<L>(mix64(i), blocks);
                assert!(block < blocks);
                block >= blocks / 2
            });
            let upper = upper.count() as f64;
            let expected = 10_000.0 * (blocks - blocks / 2) as f64 / blocks as f64;
            assert!(
                (upper - expected).abs() <= 300.0,
                "{blocks} blocks: {upper} in the upper half"
            );
        }
    }

    #[test]
    fn rates_that_the_low_half_of_a_hash_cannot_give_used_to_be_promised() {
        // Every hash with a member's block and low half is answered yes; at 1e-12 that was 121
        // times the rate asked for.
        for fpr in [1e-9, 1e-10, 1e-12] {
            let config = Config::new(1000).fpr(fpr);
            assert!(SplitBlock512::build(&config, &mut []).is_err(), "{fpr}");
            assert!(SplitBlock256::build(&config, &mut []).is_err(), "{fpr}");
        }
        let config = Config::new(1000).fpr(1e-6);
        let mut hashes: Vec<u64> = (0..1000).map(mix64).collect();
        let filter = SplitBlock512::build(&config, &mut hashes).unwrap();
        let at_least = 1000.0 / filter.blocks().len() as f64 / 2f64.powi(32);
        assert!(filter.fpr() > at_least && at_least < 1e-6 / 16.0);
    }

    #[test]
    fn the_rate_of_a_filter_of_ones_used_to_be_more_than_one() {
        let mut filter = SplitBlock256::build(&Config::new(1), &mut []).unwrap();
        filter.lanes.make_mut().fill(u32::MAX);
        for len in [1, 1000, u64::MAX] {
            filter.len = len;
            assert_eq!(filter.fpr(), 1.0);
        }
    }

    #[test]
    fn more_blocks_than_parquet_allows_are_refused_before_any_memory_is_taken() {
        let error = SplitBlock256::build(&Config::new(1 << 40), &mut []).unwrap_err();
        assert!(error.to_string().contains("2147483647"), "{error}");
    }
}
