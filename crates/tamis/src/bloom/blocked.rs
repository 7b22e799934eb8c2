//! The blocked Bloom filter: `k` bits anywhere in one cache line.
//!
//! The essay is at [`Blocked`].

use std::ops::BitOr;

use crate::bits::fastrange;
use crate::bloom::insert_all;
use crate::bloom::split_block::floor;
use crate::buf::{Buf, Word};
use crate::config::{Config, Param};
use crate::error::{BuildError, BuildErrorKind, DecodeError, Full, MergeError};
use crate::filter::{Filter, Halve, Insert, Kind, Merge};
use crate::format::{Decoder, Encoder};
use crate::lookup::{self, NEAR, Ring};
use crate::option;
use crate::simd::Bits;
use crate::{math, simd};

/// A Bloom filter per cache line: `k` bits anywhere in one block of 512. Insert, merge.
///
/// ```
/// use tamis::{Blocked, Config, Keyed};
///
/// let ids: Keyed<Blocked> = Keyed::build(&Config::default().fpr(0.01), 0..1000u64)?;
/// assert!((0..1000u64).all(|id| ids.contains(&id)));
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// # The idea
///
/// ```text
///   hash ──high──► block ──────┐
///     └──low 32──► z           ▼
///                 ┌─────────────────── 512 bits: one line ───────────────────┐
///   one block     │ …0100000…                …1…                  …0100010…  │
///                 └───▲──────────────────────▲──────────────────────▲────────┘
///                     z ≫ 23                 z·c ≫ 23               z·c² ≫ 23 …
///
///   c = 0x9E3779B9, modulo 2³²
/// ```
///
/// A small Bloom filter per cache line: the high part of the hash chooses the line, a sequence
/// made from the low 32 bits the `k` bits in it. Inserting and asking touch one line, whatever
/// `k` is. The geometry inside a line is that of RocksDB's `FastLocalBloom`; the line is found by
/// 64-bit arithmetic.
///
/// A lookup looks at all `k` bits without a branch: a missed prediction costs more than the tests
/// that it would save, and the line is there after the first.
///
/// # Cost
///
/// Bits/key by formula, which the tests hold the filter to: 9.92 at 1 % (k = 6), 12.13 at 2⁻⁸ (k
/// = 8), 15.55 at 0.1 % (k = 9): 3.4 %, 5 % and 8 % more than bits anywhere, because keys do not
/// spread evenly over blocks. It is often said that blocks cost nothing; the price grows without
/// limit as the rate falls. The best `k` is smaller than the classic filter's.
///
/// The published formula gives 9.90, 12.10 and 15.49. It puts the mean fill of a block for the
/// fill; built to it the filter errs 0.9 % more often than asked for at 1 %.
/// `math::blocked_fpr_exact` leaves nothing out.
///
/// All bits of a key come from 32 bits of its hash, so that a rate near 10⁻⁸ cannot be had and is
/// refused.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `k` | 1 to 24 | the smallest filter for the rate | bits that a key sets |
///
/// # When to choose it
///
/// When a line is all that may be read and space counts: it is 2 % smaller than
/// [`SplitBlock512`](crate::SplitBlock512) at 1 % and 1 % at 0.1 %. That one tests its bits by
/// one vector instruction and is faster. Below 0.01 % take a fingerprint filter, such as
/// [`TinySet`](crate::TinySet).
///
/// # Bibliography
///
/// - Putze, Sanders, Singler, *Cache-, hash- and space-efficient Bloom filters*, 2007: blocks,
///   and their price.
/// - RocksDB, `util/bloom_impl.h`: the sequence of bits, and measurements of this layout (0.957 %
///   at 10 bits/key).
#[derive(Clone, Debug)]
pub struct Blocked {
    words: Buf<u64>,
    k: u32,
    len: u64,
}

/// 64-bit words of a block, and its bits.
pub(super) const WORDS: usize = 8;
pub(super) const BLOCK_BITS: u32 = 512;
/// More probes than any rate asks for that 32 bits can give.
pub(super) const MOST_K: u32 = 24;
/// Blocks whose number leaves the low half of the hash alone.
pub(super) const MOST_BLOCKS: u64 = 1 << 32;

impl Blocked {
    #[inline(always)]
    fn reader(&self) -> Reader<'_> {
        Reader {
            blocks: self.blocks(),
            k: self.k,
        }
    }

    /// The blocks, eight words each.
    #[inline(always)]
    pub fn blocks(&self) -> &[[u64; WORDS]] {
        self.words.as_chunks().0
    }

    /// How many bits a key sets.
    pub fn k(&self) -> u32 {
        self.k
    }
}

/// Lays every block over its neighbour. A block is ⌊x·b / 2⁶⁴⌋, so b/2 halves its number.
pub(super) fn halve_blocks<W: Word + BitOr<Output = W>>(lanes: &[W]) -> Result<Buf<W>, BuildError> {
    let (pairs, odd) = lanes.as_chunks::<{ 2 * WORDS }>();
    if pairs.is_empty() || !odd.is_empty() {
        let blocks = lanes.len() / WORDS;
        return Err(BuildError::parameter(
            "blocks",
            blocks,
            "an even number, to be halved",
        ));
    }
    let mut half = Buf::zeroed(lanes.len() as u64 / 2)?;
    for (block, pair) in half.make_mut().chunks_exact_mut(WORDS).zip(pairs) {
        for (lane, i) in block.iter_mut().zip(0..) {
            *lane = pair[i] | pair[i + WORDS];
        }
    }
    Ok(half)
}

#[inline(always)]
pub(super) fn block_of(hash: u64, blocks: usize) -> usize {
    fastrange(hash, blocks as u64).0 as usize
}

/// The word and the place in it of each bit of a hash in its block: this filter's geometry, with
/// [`block_of`].
#[inline(always)]
pub(super) fn bits_of(hash: u64, k: u32) -> impl Iterator<Item = (usize, u32)> {
    let mut z = hash as u32;
    (0..k).map(move |_| {
        let bit = z >> 23;
        z = z.wrapping_mul(0x9E37_79B9);
        ((bit / 64) as usize, bit % 64)
    })
}

/// The blocks, for looking up.
#[derive(Clone, Copy)]
struct Reader<'a> {
    blocks: &'a [[u64; WORDS]],
    k: u32,
}

impl Ring for Reader<'_> {
    const PREFETCH_FROM: usize = NEAR;
    type Place = u64;
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        size_of_val(self.blocks)
    }

    #[inline(always)]
    fn place(self, hash: u64) -> u64 {
        hash
    }

    #[inline(always)]
    fn prefetch(self, hash: u64) {
        simd::prefetch(self.blocks, block_of(hash, self.blocks.len()));
    }

    #[inline(always)]
    fn probe<B: Bits>(self, _: B, hash: u64) -> bool {
        let block = &self.blocks[block_of(hash, self.blocks.len())];
        let both = |all, (word, bit): (usize, u32)| all & block[word] >> bit;
        bits_of(hash, self.k).fold(1, both) == 1
    }
}

impl Filter for Blocked {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        lookup::probe(self.reader(), hash)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.words.size_in_bytes()
    }

    /// The mean over blocks of fill^k, and the chance of a hash whose block and low half are a
    /// member's.
    fn fpr(&self) -> f64 {
        let blocks = self.blocks();
        let block_fpr = |block: &[u64; WORDS]| {
            let ones: u32 = block.iter().map(|word| word.count_ones()).sum();
            (f64::from(ones) / f64::from(BLOCK_BITS)).powi(self.k as i32)
        };
        let fill = blocks.iter().map(block_fpr).sum::<f64>() / blocks.len() as f64;
        fill + (1.0 - fill) * floor(self.len as f64 / blocks.len() as f64).min(1.0)
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        self.reader().prefetch(hash);
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::ring(Some(self.reader()), hashes, out);
    }
}

impl Insert for Blocked {
    #[inline(always)]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let blocks = self.words.make_mut().as_chunks_mut::<WORDS>().0;
        let block = &mut blocks[block_of(hash, blocks.len())];
        for (word, bit) in bits_of(hash, self.k) {
            block[word] |= 1 << bit;
        }
        self.len = self.len.saturating_add(1);
        Ok(())
    }
}

impl Merge for Blocked {
    /// Sets every bit that is set in either: byte for byte the filter of all keys of both.
    fn merge(&mut self, other: &Blocked) -> Result<(), MergeError> {
        let blocks = |filter: &Blocked| filter.blocks().len() as u64;
        MergeError::unless_equal("blocks", blocks(self), blocks(other))?;
        MergeError::unless_equal("k", u64::from(self.k), u64::from(other.k))?;
        for (ours, theirs) in self.words.make_mut().iter_mut().zip(&*other.words) {
            *ours |= theirs;
        }
        self.len = self.len.saturating_add(other.len);
        Ok(())
    }
}

impl Extend<u64> for Blocked {
    /// Inserts every hash; none is refused.
    fn extend<I: IntoIterator<Item = u64>>(&mut self, hashes: I) {
        insert_all(self, hashes);
    }
}

impl Halve for Blocked {
    /// The same keys in half the blocks, as if they had been inserted there: neighbours are laid
    /// over one another. The rate rises to that of the new fill, with the same `k`.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the number of blocks is odd, or memory is short.
    fn halve(&self) -> Result<Blocked, BuildError> {
        let words = halve_blocks(&self.words)?;
        let &Blocked { k, len, .. } = self;
        Ok(Blocked { words, k, len })
    }
}

impl Kind for Blocked {
    const ABOUT: &'static str = "the smallest Bloom filter that reads one cache line";
    const PARAMS: &'static [Param] = &[Param {
        name: option::K.name,
        values: "1 to 24",
        default: "the smallest filter for the rate",
        about: "bits that a key sets",
    }];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Blocked, BuildError> {
        let (keys, _) = config.check::<Blocked>(hashes)?;
        let expected = "a whole number from 1 to 24";
        let given = match config.param::<u32>(option::K.name, expected)? {
            Some(k) if !(1..=MOST_K).contains(&k) => {
                return Err(BuildError::parameter("k", k, expected));
            }
            given => given,
        };
        let (blocks, k) = config.sized::<Blocked, _>(|fpr| {
            let k = given.or_else(|| Some(math::blocked_size(fpr, BLOCK_BITS)?.1))?;
            let blocks = math::blocked_blocks(keys, fpr, BLOCK_BITS, k)?;
            // Beyond this the low half of the hash decides more of the rate than sizing allows
            // for.
            let least = 16.0 * floor(keys as f64 / blocks as f64);
            (fpr >= least || blocks > MOST_BLOCKS).then_some((blocks, k))
        })?;
        if blocks > MOST_BLOCKS {
            let (unit, needed, most) = ("blocks", blocks as f64, MOST_BLOCKS);
            return Err(BuildErrorKind::TooLarge { unit, needed, most }.into());
        }
        let mut filter = Blocked {
            words: Buf::zeroed(blocks * WORDS as u64)?,
            k,
            len: 0,
        };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("blocks", self.blocks().len() as u64);
        out.param("k", u64::from(self.k));
        out.section(&self.words);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Blocked, DecodeError> {
        let blocks = input.param_in("blocks", 1..=MOST_BLOCKS)?;
        Ok(Blocked {
            k: input.param_in("k", 1..=u64::from(MOST_K))? as u32,
            words: input.section("words", blocks * WORDS as u64)?,
            len: input.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    #[test]
    fn sizes_and_rates_are_those_of_the_formula() {
        // Targets: 9.896 bits/key at 1 % and 12.095 at 2⁻⁸. The exact sizes are 0.2 and 0.3 %
        // above.
        let (keys, queries) = (1_000_000, 4_000_000);
        for (fpr, k, target) in [
            (0.01, 6, 9.896),
            (1.0 / 256.0, 8, 12.095),
            (0.001, 9, 15.488),
        ] {
            let mut hashes: Vec<u64> = (0..keys).map(mix64).collect();
            let filter = Blocked::build(&Config::new(keys).fpr(fpr), &mut hashes).unwrap();
            assert_eq!(filter.k(), k);
            let blocks = filter.blocks().len() as u64;
            let bits = (blocks * 512) as f64 / keys as f64;
            assert!((bits / target - 1.0).abs() < 0.005, "{bits}");
            let exact = math::blocked_fpr_exact(blocks, BLOCK_BITS, keys, k);
            assert!(exact <= fpr && exact > 0.998 * fpr, "{exact}");
            let absent = (0..queries).map(|i| mix64(1 << 40 | i));
            let hits = absent.filter(|&hash| filter.contains(hash)).count() as u64;
            let (low, high) = math::binomial_interval(queries, exact, 1e-9);
            assert!((low..=high).contains(&hits), "{fpr}: {hits}");
        }
    }

    #[test]
    fn bits_are_those_of_the_published_layout() {
        // Sixteen words of 32 bits there: the word is the product's top 4 bits, the bit in it the
        // next 5.
        for i in 0..1000 {
            let hash = mix64(i);
            let mut z = hash as u32;
            for (word, bit) in bits_of(hash, 24) {
                let (half, place) = (z >> 28, z >> 23 & 31);
                assert_eq!(word as u32 * 64 + bit, half * 32 + place);
                z = z.wrapping_mul(0x9E37_79B9);
            }
        }
    }

    #[test]
    fn rates_that_32_bits_cannot_give_are_refused() {
        for fpr in [1e-9, 1e-10, 1e-12] {
            let error = Blocked::build(&Config::new(1000).fpr(fpr), &mut []).unwrap_err();
            assert!(matches!(
                error.kind(),
                BuildErrorKind::Unreachable { least, .. } if *least > fpr
            ));
        }
        assert!(Blocked::build(&Config::new(1000).fpr(1e-6), &mut []).is_ok());
        assert!(Blocked::build(&Config::new(1 << 40), &mut []).is_err());
    }

    #[test]
    fn a_filter_of_ones_errs_always_and_no_more() {
        let mut filter = Blocked::build(&Config::new(1), &mut []).unwrap();
        filter.words.make_mut().fill(u64::MAX);
        filter.len = u64::MAX;
        assert_eq!(filter.fpr(), 1.0);
    }
}
