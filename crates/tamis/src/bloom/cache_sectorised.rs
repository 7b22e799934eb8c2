//! The cache-sectorised Bloom filter: one word in each part of a cache line, and a few bits in each of those words.
//!
//! # The idea
//!
//! ```text
//!   hash ──► line ─────────────┐
//!     └─rest─► a word of each group, k/z bits in it             z = 2 groups (or 4) of 8/z words
//!                              ▼
//!                 ┌──────┬──────┬──────┬──────╥──────┬──────┬──────┬──────┐
//!   one line      │      │ ▲▲▲  │      │      ║      │      │ ▲▲▲  │      │   8 words of 64 bits
//!                 └──────┴──────┴──────┴──────╨──────┴──────┴──────┴──────┘
//!                        group 0                     group 1
//! ```
//!
//! A lookup loads z words of one line and compares each with its mask: fewer loads than bits, and one line. It stands
//! between the register-blocked filter (one word, small and fast, and wasteful) and the blocked one (bits anywhere in the
//! line, one load each).
//!
//! Its neighbours in the literature are here already, and are no kinds of their own. *Register-blocked* is
//! [`BloomG`](crate::BloomG) with one word of 64 bits; *sectorised*, with bits in every word of a block, is
//! [`SplitBlock512`](crate::SplitBlock512) at eight words, which is the best of them. So are one group (a register-blocked
//! filter) and eight (a split block).
//!
//! # Where the bits lie
//!
//! The line is chosen by the high part of the hash, the word of each group by what that leaves, two bits for each of two
//! groups or one for each of four, and the bits by what is left then, mixed: six bits each, 36 to 48 in all. Bits of one
//! word are distinct, each set of them as likely as any other.
//!
//! # Cost
//!
//! Bits/key by formula, which the tests hold the filter to: two groups 10.18 at 1 % (k = 6), 12.78 at 2⁻⁸ (k = 8), 16.77
//! at 0.1 %; four groups 10.10 (k = 8), 12.18, 15.73. The published formula (10.19, 12.74; 10.08, 12.18) puts the mean
//! fill of a word for the fill; [`math::cache_sectorised_fpr`] does not.
//!
//! # When to choose it
//!
//! Where vectors are not to be had: two loads and two comparisons are the cheapest test of one line without them. With
//! them [`SplitBlock512`](crate::SplitBlock512) asks one vector and is no larger.
//!
//! # Bibliography
//!
//! - Lang, Neumann, Kemper, Boncz, *Performance-optimal filtering: Bloom overtakes cuckoo at high throughput*, 2019: the
//!   layout, its neighbours, and when each is fastest.
//! - Schmidt, Bandle, Giceva, *A four-dimensional analysis of partitioned approximate filters*, 2021: filling large ones
//!   part by part.

use crate::bits::fastrange;
use crate::bloom::subsets::{Subsets, chances};
use crate::buf::Buf;
use crate::config::{Config, Param};
use crate::error::{BuildError, BuildErrorKind, DecodeError, Full, MergeError};
use crate::filter::{Filter, Insert, Kind, Merge};
use crate::format::{Decoder, Encoder};
use crate::{math, simd};

/// A Bloom filter that reads two words of one cache line, or four. Insert, merge.
///
/// ```
/// use tamis::{CacheSectorised, Config, Keyed};
///
/// let mut seen: Keyed<CacheSectorised> = Keyed::new(&Config::new(1000).fpr(0.01))?;
/// seen.insert("alice")?;
/// assert!(seen.contains("alice"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct CacheSectorised {
    words: Buf<u64>,
    groups: u32,
    /// Bits that a key sets in its word of each group.
    bits: u32,
    len: u64,
}

/// Words in a line.
const WORDS: usize = 8;
/// With more, a key would set half of its word.
const MOST_K: u32 = 24;
/// More lines than memory has; their number leaves 24 bits of a hash.
const MOST_LINES: u64 = 1 << 40;

impl CacheSectorised {
    /// The lines, eight words each.
    #[inline(always)]
    pub fn lines(&self) -> &[[u64; WORDS]] {
        self.words.as_chunks().0
    }

    /// The groups of a line, and words that a lookup reads.
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// How many bits a key sets.
    pub fn k(&self) -> u32 {
        self.groups * self.bits
    }
}

/// The line of a hash, and its word in each of `Z` groups with its `bits` bits there: this filter's geometry.
#[inline(always)]
fn place<const Z: usize>(hash: u64, lines: usize, bits: u32) -> (usize, [(usize, u64); Z]) {
    let (line, mut rest) = fastrange(hash, lines as u64);
    let mut places = [(0, 0); Z];
    for (group, place) in places.iter_mut().enumerate() {
        let word;
        (word, rest) = fastrange(rest, (WORDS / Z) as u64);
        place.0 = group * (WORDS / Z) + word as usize;
    }
    let mut draws = Subsets::new(rest);
    for place in &mut places {
        place.1 = draws.subset::<1>(bits)[0];
    }
    (line as usize, places)
}

#[inline(always)]
fn holds<const Z: usize>(lines: &[[u64; WORDS]], hash: u64, bits: u32) -> bool {
    let (line, places) = place::<Z>(hash, lines.len(), bits);
    let line = &lines[line];
    let missing = |missing, &(word, mask): &(usize, u64)| missing | mask & !line[word];
    places.iter().fold(0, missing) == 0
}

#[inline(always)]
fn set<const Z: usize>(lines: &mut [[u64; WORDS]], hash: u64, bits: u32) {
    let (line, places) = place::<Z>(hash, lines.len(), bits);
    for (word, mask) in places {
        lines[line][word] |= mask;
    }
}

impl Filter for CacheSectorised {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        match self.groups {
            2 => holds::<2>(self.lines(), hash, self.bits),
            _ => holds::<4>(self.lines(), hash, self.bits),
        }
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.words.size_in_bytes()
    }

    /// The mean over lines of the product over groups of the mean chance of a word: exact, because words and bits are
    /// drawn independently in every group.
    fn fpr(&self) -> f64 {
        let chances = chances(64, self.bits);
        let per_group = WORDS / self.groups as usize;
        let word = |word: &u64| chances[word.count_ones() as usize];
        let group = |words: &[u64]| words.iter().map(word).sum::<f64>() / per_group as f64;
        let line = |line: &[u64; WORDS]| line.chunks(per_group).map(group).product::<f64>();
        let lines = self.lines();
        lines.iter().map(line).sum::<f64>() / lines.len() as f64
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        let lines = self.lines();
        simd::prefetch(lines, fastrange(hash, lines.len() as u64).0 as usize);
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        simd::contains_batch::<_, { simd::ONE_LINE }>(self, hashes, out);
    }
}

impl Insert for CacheSectorised {
    #[inline(always)]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let lines = self.words.make_mut().as_chunks_mut().0;
        match self.groups {
            2 => set::<2>(lines, hash, self.bits),
            _ => set::<4>(lines, hash, self.bits),
        }
        self.len = self.len.saturating_add(1);
        Ok(())
    }
}

impl Merge for CacheSectorised {
    /// Sets every bit that is set in either: byte for byte the filter of all keys of both.
    fn merge(&mut self, other: &CacheSectorised) -> Result<(), MergeError> {
        let lines = |filter: &CacheSectorised| filter.lines().len() as u64;
        MergeError::unless_equal("lines", lines(self), lines(other))?;
        MergeError::unless_equal("groups", u64::from(self.groups), u64::from(other.groups))?;
        MergeError::unless_equal("k", u64::from(self.k()), u64::from(other.k()))?;
        for (ours, theirs) in self.words.make_mut().iter_mut().zip(&*other.words) {
            *ours |= theirs;
        }
        self.len = self.len.saturating_add(other.len);
        Ok(())
    }
}

impl Kind for CacheSectorised {
    const ID: u16 = 12;
    const NAME: &'static str = "cache_sectorised";
    const ABOUT: &'static str = "two words of one cache line: fast without vectors";
    const SOURCE: &'static str = "bloom/cache_sectorised.rs";
    const PARAMS: &'static [Param] = &[Param {
        name: "groups",
        about: "groups of a line, and words that a lookup reads: 2 or 4; default 2",
    }];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<CacheSectorised, BuildError> {
        let (keys, _) = config.check::<CacheSectorised>(hashes)?;
        let expected = "2 or 4";
        let groups = config.param::<u32>("groups", expected)?.unwrap_or(2);
        if groups != 2 && groups != 4 {
            return Err(BuildError::parameter("groups", groups, expected));
        }
        let (bits_per_key, bits) =
            config.sized::<CacheSectorised, _>(|fpr| math::cache_sectorised_size(fpr, groups))?;
        let needed = (keys.max(1) as f64 * bits_per_key / 512.0).ceil();
        if needed > MOST_LINES as f64 {
            let (unit, most) = ("lines", MOST_LINES);
            return Err(BuildErrorKind::TooLarge { unit, needed, most }.into());
        }
        let mut filter = CacheSectorised {
            words: Buf::zeroed(needed as u64 * WORDS as u64)?,
            groups,
            bits,
            len: 0,
        };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("lines", self.lines().len() as u64);
        out.param("groups", u64::from(self.groups));
        out.param("k", u64::from(self.k()));
        out.section(&self.words);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<CacheSectorised, DecodeError> {
        let lines = input.param_in("lines", 1..=MOST_LINES)?;
        let groups = input.param("groups")?;
        if groups != 2 && groups != 4 {
            return Err(DecodeError::invalid("groups", groups, "2 or 4"));
        }
        let k = input.param_in("k", groups..=u64::from(MOST_K))?;
        if !k.is_multiple_of(groups) {
            let expected = format!("a multiple of {groups}");
            return Err(DecodeError::invalid("k", k, expected));
        }
        Ok(CacheSectorised {
            words: input.section("words", lines * WORDS as u64)?,
            groups: groups as u32,
            bits: (k / groups) as u32,
            len: input.len(),
        })
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Some(self)
    }

    fn try_merge(&mut self, other: &CacheSectorised) -> Option<Result<(), MergeError>> {
        Some(self.merge(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    #[test]
    fn sizes_and_rates_are_those_of_the_formula() {
        // Targets: 10.194 bits/key at 1 % for two groups, 10.079 for four; 12.740 and 12.178 at 2⁻⁸.
        let (keys, queries) = (1_000_000, 4_000_000);
        let eighth = 1.0 / 256.0;
        for (groups, fpr, k, target) in [
            (2, 0.01, 6, 10.194),
            (4, 0.01, 8, 10.079),
            (2, eighth, 8, 12.740),
            (4, eighth, 8, 12.178),
        ] {
            let mut hashes: Vec<u64> = (0..keys).map(mix64).collect();
            let config = Config::new(keys).fpr(fpr).set("groups", groups);
            let filter = CacheSectorised::build(&config, &mut hashes).unwrap();
            assert_eq!((filter.groups(), filter.k()), (groups, k));
            let bits = (filter.lines().len() * 512) as f64 / keys as f64;
            assert!((bits / target - 1.0).abs() < 0.005, "{bits}");
            let exact = math::cache_sectorised_fpr(bits, groups, k / groups);
            assert!(exact <= fpr && exact > 0.998 * fpr, "{exact}");
            let absent = (0..queries).map(|i| mix64(1 << 40 | i));
            let hits = absent.filter(|&hash| filter.contains(hash)).count() as u64;
            let (low, high) = math::binomial_interval(queries, exact, 1e-9);
            assert!((low..=high).contains(&hits), "{groups}, {fpr}: {hits}");
        }
    }

    #[test]
    fn a_key_has_one_word_in_each_group_and_any_of_them() {
        fn check<const Z: usize>() {
            let mut seen = [0u32; WORDS];
            for i in 0..80_000 {
                let (line, places) = place::<Z>(mix64(i), 1000, 3);
                assert!(line < 1000);
                for (group, (word, mask)) in places.into_iter().enumerate() {
                    assert_eq!(word / (WORDS / Z), group);
                    assert_eq!(mask.count_ones(), 3);
                    seen[word] += 1;
                }
            }
            // 10 000·Z each; six standard deviations are 849 at most.
            assert!(seen.iter().all(|n| n.abs_diff(10_000 * Z as u32) < 849));
        }
        check::<2>();
        check::<4>();
    }
}
