//! Bloom-g: the Bloom filter with its `k` bits gathered in `g` words, so that a lookup reads `g`
//! words and no more.
//!
//! The essay is at [`BloomG`].

use crate::bits::fastrange;
use crate::bloom::subsets::{Subsets, chances};
use crate::buf::Buf;
use crate::config::{Config, Param};
use crate::error::{BuildError, BuildErrorKind, DecodeError, Full, MergeError};
use crate::filter::{Filter, Insert, Kind, Merge};
use crate::format::{Decoder, Encoder};
use crate::option;
use crate::{math, simd};

/// A Bloom filter whose `k` bits lie in `g` words: `g` reads a lookup. Insert, merge.
///
/// ```
/// use tamis::{BloomG, Config, Keyed};
///
/// let mut seen: Keyed<BloomG> = Keyed::new(&Config::new(1000).fpr(0.01).set("g", 1))?;
/// seen.insert("alice")?;
/// assert!(seen.contains("alice"));
/// assert_eq!(seen.filter().g(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///   hash ──► word w₀ ──────┐           ┌────── word w₁ ◄── hash, remixed          g = 2
///     └─rest─► k bits      ▼           ▼
///   l words  ┌─ … ─┬────────────┬─ … ─┬────────────┬─ … ─┐
///            │     │ 0100010010 │     │ 1000000101 │     │
///            └─ … ─┴────────────┴─ … ─┴────────────┴─ … ─┘
///              64, 256 or 512 bits each: never two cache lines
///              k/g distinct bits in each; the first k mod g words get one more
/// ```
///
/// A key sets its bits in each of its words by one OR, and is present when no bit of its masks is
/// missing: `g` words are read where the classic filter reads `k`. With g = 1 it is Bloom-1, and
/// with 64-bit words that is the *register-blocked* filter of Lang and others: one load, one AND,
/// one comparison. That one is therefore no kind of its own: `bloom_g:g=1`. With g = k it is the
/// classic filter but for the words.
///
/// # Where the bits lie
///
/// Words are drawn one by one: the first by the high part of the hash, the others after a
/// multiplication and a fold of the whole hash, as in [`Bloom`](crate::Bloom) but with another
/// multiplier. They are independent, so two may be the same word. Bits are drawn from what the
/// first word's choice has left of the hash, mixed anew every six draws, and those of one word
/// are distinct: of the last places each draw may take one more, and where it meets a bit that is
/// taken it takes that one more instead (Floyd's way of drawing a subset).
///
/// Distinct bits are worth their multiplications in words this small. Drawn with replacement,
/// 64-bit words at g = 1 need 12.14 bits/key for 1 %, distinct ones 11.84. The published formula
/// says 11.92 for the former: it puts the mean fill of a word for the fill, and states a rate
/// that is 10 % too low. `math::bloom_g_fpr` is exact.
///
/// # Cost
///
/// Bits/key by formula, which the tests hold the filter to:
///
/// | words | 1 % | 0.39 % | 0.1 % |
/// |---|---|---|---|
/// | 64 bits, g = 1 | 11.84 | 15.72 | 23.09 |
/// | 64 bits, g = 2 | 9.98 | 12.40 | 16.09 |
/// | 64 bits, g = 3 | 9.71 | 11.91 | 14.97 |
/// | 512 bits, g = 1 | 9.89 | 12.10 | 15.48 |
/// | 512 bits, g = 2 | 9.66 | 11.64 | 14.60 |
/// | anywhere ([`Bloom`](crate::Bloom)) | 9.59 | 11.54 | 14.38 |
///
/// It is sometimes said that gathering the bits costs no error and needs fewer of them. It does
/// cost: at 10 bits/key the best g = 1 errs 1.69 %, g = 2 0.99 %, g = 3 0.88 %, the classic
/// filter 0.82 %. What it saves is memory accesses. It is also said that a filter that has become
/// too small may be thrown away and begun anew; that loses keys, which is a false negative. Build
/// a larger one from the keys, or chain several, as [`Scalable`](crate::Scalable) does with
/// `slice=bloom_g`: `math::bloom_g_capacity` says when the next is due.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `g` | 1 to 32 | 2 | words that a key's bits lie in, which a lookup reads |
/// | `k` | g to 32 | the smallest filter for the rate | bits that a key sets |
/// | `word_bits` | 64, 256 or 512 | 64 | bits of a word: wider ones make the filter smaller |
///
/// # When to choose it
///
/// When a second read is cheaper than space: two lines (`word_bits=512`, g = 2) come within 1.6 %
/// of the classic filter's space down to 0.1 %, where the one line of
/// [`SplitBlock512`](crate::SplitBlock512) costs 9 % more (15.72 bits/key). Otherwise that one is
/// faster. Small words with g = 1 are for filters in the first caches at 2 % and more, or for
/// hardware that reads no more than a word.
///
/// # Bibliography
///
/// - Qiao, Li, Chen, *Fast Bloom filters and their generalization*, 2014: Bloom-1 and Bloom-g,
///   and the formula.
/// - Lang, Neumann, Kemper, Boncz, *Performance-optimal filtering: Bloom overtakes cuckoo at high
///   throughput*, 2019: the register-blocked filter, and when it wins.
/// - Bentley, Floyd, *Programming pearls: a sample of brilliance*, 1987: a subset in as many
///   draws as it has members.
#[derive(Clone, Debug)]
pub struct BloomG {
    bits: Buf<u64>,
    /// Words of `word_bits` bits.
    words: u64,
    word_bits: u32,
    g: u32,
    k: u32,
    len: u64,
}

const WIDTHS: [u32; 3] = [64, 256, 512];
const MOST_K: u32 = math::MAX_K;
const MOST_BITS: u64 = 1 << 63;

impl BloomG {
    /// The filter that has these bits, whole words of them, which `len` keys have set.
    pub(crate) fn from_parts(bits: Buf<u64>, word_bits: u32, g: u32, k: u32, len: u64) -> BloomG {
        let words = bits.len() as u64 / u64::from(word_bits / 64);
        BloomG {
            bits,
            words,
            word_bits,
            g,
            k,
            len,
        }
    }

    pub(crate) fn bits(&self) -> &Buf<u64> {
        &self.bits
    }

    /// How many words a key's bits lie in.
    pub fn g(&self) -> u32 {
        self.g
    }

    /// How many bits a key sets.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// Bits of a word.
    pub fn word_bits(&self) -> u32 {
        self.word_bits
    }

    /// How many words there are.
    pub fn words(&self) -> u64 {
        self.words
    }

    /// The share of bits set in the fullest word: near 1, the keys that share it are no longer
    /// told apart.
    pub fn fullest_word(&self) -> f64 {
        f64::from(self.ones().max().unwrap_or(0)) / f64::from(self.word_bits)
    }

    /// The bits set in each word.
    fn ones(&self) -> impl Iterator<Item = u32> {
        let of_word = |word: &[u64]| word.iter().map(|w| w.count_ones()).sum();
        self.bits.chunks(self.word_bits as usize / 64).map(of_word)
    }

    /// The words of a hash.
    #[inline]
    fn words_of(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let (mut x, words) = (hash, self.words);
        (0..self.g).map(move |_| {
            let (word, _) = fastrange(x, words);
            let y = x.wrapping_mul(0xD1B5_4A32_D192_ED03);
            x = y ^ (y >> 32);
            word as usize
        })
    }

    /// The words of a hash, and the bits that are its in each, for words of `U` times 64 bits:
    /// this filter's geometry.
    #[inline]
    fn places<const U: usize>(
        &self,
        hash: u64,
    ) -> impl Iterator<Item = (usize, [u64; U])> + use<U> {
        let mut draws = Subsets::new(fastrange(hash, self.words).1);
        let (least, longer) = (self.k / self.g, self.k % self.g);
        self.words_of(hash).zip(0..).map(move |(word, i)| {
            let mask = draws.subset(least + u32::from(i < longer));
            (word, mask)
        })
    }

    #[inline]
    fn holds<const U: usize>(&self, hash: u64) -> bool {
        let words = self.bits.as_chunks::<U>().0;
        self.places(hash).all(|(word, mask): (usize, [u64; U])| {
            (0..U).fold(0, |missing, i| missing | mask[i] & !words[word][i]) == 0
        })
    }

    #[inline]
    fn set<const U: usize>(&mut self, hash: u64) {
        let places = self.places::<U>(hash);
        let words = self.bits.make_mut().as_chunks_mut::<U>().0;
        for (word, mask) in places {
            for (unit, bits) in words[word].iter_mut().zip(mask) {
                *unit |= bits;
            }
        }
    }
}

/// The most words of a width.
fn most_words(word_bits: u32) -> u64 {
    MOST_BITS / u64::from(word_bits)
}

impl Filter for BloomG {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        match self.word_bits {
            64 => self.holds::<1>(hash),
            256 => self.holds::<4>(hash),
            _ => self.holds::<8>(hash),
        }
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.bits.size_in_bytes()
    }

    /// The product over a key's words of the mean over all words of the chance that its bits are
    /// set there: exact, because the words are drawn independently, and of a word with x ones
    /// C(x, b) of C(w, b) sets of bits are set.
    fn fpr(&self) -> f64 {
        let (least, longer) = (self.k / self.g, self.k % self.g);
        let mean = |bits: u32| {
            let chances = chances(self.word_bits, bits);
            self.ones().map(|ones| chances[ones as usize]).sum::<f64>() / self.words as f64
        };
        let rate = mean(least).powi((self.g - longer) as i32);
        if longer == 0 {
            return rate;
        }
        rate * mean(least + 1).powi(longer as i32)
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        for word in self.words_of(hash) {
            simd::prefetch(&self.bits, word * (self.word_bits as usize / 64));
        }
    }
}

impl Insert for BloomG {
    #[inline]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        match self.word_bits {
            64 => self.set::<1>(hash),
            256 => self.set::<4>(hash),
            _ => self.set::<8>(hash),
        }
        self.len = self.len.saturating_add(1);
        Ok(())
    }
}

impl Merge for BloomG {
    /// Sets every bit that is set in either: byte for byte the filter of all keys of both.
    fn merge(&mut self, other: &BloomG) -> Result<(), MergeError> {
        MergeError::unless_equal("words", self.words, other.words)?;
        let same =
            |name, ours, theirs| MergeError::unless_equal(name, u64::from(ours), u64::from(theirs));
        same("word_bits", self.word_bits, other.word_bits)?;
        same("g", self.g, other.g)?;
        same("k", self.k, other.k)?;
        for (ours, theirs) in self.bits.make_mut().iter_mut().zip(&*other.bits) {
            *ours |= theirs;
        }
        self.len = self.len.saturating_add(other.len);
        Ok(())
    }
}

impl Kind for BloomG {
    const ABOUT: &'static str = "a Bloom filter that reads g words, not k: one or two";
    const PARAMS: &'static [Param] = &[
        Param {
            name: option::G.name,
            values: "1 to 32",
            default: "2",
            about: "words that a key's bits lie in, which a lookup reads",
        },
        Param {
            name: option::K.name,
            values: "g to 32",
            default: "the smallest filter for the rate",
            about: "bits that a key sets",
        },
        Param {
            name: option::WORD_BITS.name,
            values: "64, 256 or 512",
            default: "64",
            about: "bits of a word: wider ones make the filter smaller",
        },
    ];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<BloomG, BuildError> {
        let (keys, _) = config.check::<BloomG>(hashes)?;
        let given = |name: &str, expected: &str, good: &dyn Fn(u32) -> bool| match config
            .param::<u32>(name, expected)?
        {
            Some(value) if !good(value) => Err(BuildError::parameter(name, value, expected)),
            value => Ok(value),
        };
        let width = given("word_bits", "64, 256 or 512", &|w| WIDTHS.contains(&w))?;
        let word_bits = width.unwrap_or(WIDTHS[0]);
        let g = given("g", "a whole number from 1 to 32", &|g| {
            (1..=MOST_K).contains(&g)
        })?
        .unwrap_or(2);
        let expected = format!("a whole number from {g}, which is g, to 32");
        let k = given("k", &expected, &|k| (g..=MOST_K).contains(&k))?;
        let (words, k) = config.sized::<BloomG, _>(|fpr| match k {
            Some(k) => math::bloom_g_words(keys, fpr, word_bits, k, g).map(|words| (words, k)),
            None => math::bloom_g_size(keys, fpr, word_bits, g),
        })?;
        let most = most_words(word_bits);
        if words > most {
            let (unit, needed) = ("words", words as f64);
            return Err(BuildErrorKind::TooLarge { unit, needed, most }.into());
        }
        let bits = Buf::zeroed(words * u64::from(word_bits / 64))?;
        let mut filter = BloomG::from_parts(bits, word_bits, g, k, 0);
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("words", self.words);
        out.param("word_bits", u64::from(self.word_bits));
        out.param("g", u64::from(self.g));
        out.param("k", u64::from(self.k));
        out.section(&self.bits);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<BloomG, DecodeError> {
        let words = input.param("words")?;
        let word_bits = input.param_in("word_bits", 64..=512)? as u32;
        if !WIDTHS.contains(&word_bits) {
            let (value, expected) = (u64::from(word_bits), "64, 256 or 512");
            return Err(DecodeError::invalid("word_bits", value, expected));
        }
        if !(1..=most_words(word_bits)).contains(&words) {
            let expected = format!("1 to {}", most_words(word_bits));
            return Err(DecodeError::invalid("words", words, expected));
        }
        let g = input.param_in("g", 1..=u64::from(MOST_K))? as u32;
        let k = input.param_in("k", u64::from(g)..=u64::from(MOST_K))? as u32;
        let bits = input.section("words", words * u64::from(word_bits / 64))?;
        Ok(BloomG::from_parts(bits, word_bits, g, k, input.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    fn of(keys: u64, fpr: f64, params: &[(&str, u32)]) -> BloomG {
        let config = params
            .iter()
            .fold(Config::new(keys).fpr(fpr), |c, (name, value)| {
                c.set(name, value)
            });
        BloomG::build(&config, &mut (0..keys).map(mix64).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn sizes_and_rates_are_those_of_the_formula() {
        // Targets: 11.916 bits/key at 1 % for g = 1 and 9.997 for g = 2. The exact sizes are just
        // below.
        for (params, fpr, target) in [
            (&[("g", 1)][..], 0.01, 11.916),
            (&[], 0.01, 9.997),
            (&[("g", 3)], 0.01, 9.718),
            (&[("word_bits", 256), ("g", 1)], 0.01, 10.177),
            (&[("word_bits", 512), ("g", 1)], 0.01, 9.896),
            (&[("g", 2)], 1.0 / 256.0, 12.371),
            (&[("g", 4), ("k", 10)], 0.01, 10.153),
        ] {
            let (keys, queries) = (1_000_000, 2_000_000);
            let filter = of(keys, fpr, params);
            let bits = filter.bits.len() as f64 * 64.0 / keys as f64;
            assert!((bits / target - 1.0).abs() < 0.01, "{params:?}: {bits}");
            let exact = math::bloom_g_fpr(filter.words, filter.word_bits, keys, filter.k, filter.g);
            assert!(exact <= fpr && exact > 0.999 * fpr, "{params:?}: {exact}");
            assert!((filter.fpr() / exact - 1.0).abs() < 0.01, "{params:?}");
            let absent = (0..queries).map(|i| mix64(1 << 40 | i));
            let hits = absent.filter(|&hash| filter.contains(hash)).count() as u64;
            let (low, high) = math::binomial_interval(queries, exact, 1e-9);
            assert!((low..=high).contains(&hits), "{params:?}: {hits}");
        }
    }

    #[test]
    fn a_key_has_g_words_and_its_bits_in_them_are_distinct() {
        for (g, k) in [(1, 1), (1, 32), (2, 6), (3, 7), (4, 30), (32, 32)] {
            let filter = of(1000, 0.1, &[("g", g), ("k", k)]);
            for i in 0..1000 {
                let places: Vec<_> = filter.places::<1>(mix64(i)).collect();
                assert_eq!(places.len() as u32, g);
                for (j, (word, mask)) in (0..).zip(&places) {
                    assert!((*word as u64) < filter.words);
                    assert_eq!(mask[0].count_ones(), k / g + u32::from(j < k % g));
                }
                let words = places.iter().map(|(word, _)| *word);
                assert!(words.eq(filter.words_of(mix64(i))));
            }
        }
    }

    #[test]
    fn every_bit_of_a_word_is_as_likely() {
        // 200 000 keys, two words each, three bits in each: 18 750 a bit, and six standard
        // deviations are 808.
        let filter = of(1000, 0.01, &[("k", 6)]);
        let mut drawn = [0u32; 64];
        for i in 0..200_000 {
            for (_, [mask]) in filter.places::<1>(mix64(i)) {
                (0..64).for_each(|bit| drawn[bit] += u32::from(mask >> bit & 1 == 1));
            }
        }
        for (bit, &n) in drawn.iter().enumerate() {
            assert!(n.abs_diff(18_750) < 808, "bit {bit}: {n}");
        }
    }

    #[test]
    fn the_fullest_word_is_found() {
        let mut filter = of(1000, 0.01, &[]);
        assert!((0.5..=1.0).contains(&filter.fullest_word()));
        filter.bits.make_mut().fill(0);
        assert_eq!(filter.fullest_word(), 0.0);
        filter.bits.make_mut()[7] = 0xFF;
        assert_eq!(filter.fullest_word(), 0.125);
    }

    #[test]
    fn shapes_that_cannot_be_are_refused_by_name() {
        for (name, value, other) in [("g", 0, 2), ("g", 33, 2), ("k", 1, 2), ("k", 33, 2)] {
            let config = Config::new(10).set("word_bits", 64 * other / 2);
            let error = BloomG::build(&config.set(name, value), &mut []).unwrap_err();
            assert!(error.to_string().contains(&format!("{name}={value}")));
        }
        let error = BloomG::build(&Config::new(10).set("word_bits", 128), &mut []).unwrap_err();
        assert!(error.to_string().contains("64, 256 or 512"), "{error}");
        // With one bit a key, one in 2²⁰·10 bits would have to be set.
        let config = Config::new(10).fpr(1e-9).set("g", 1).set("k", 1);
        let error = BloomG::build(&config, &mut []).unwrap_err();
        assert!(matches!(
            error.kind(),
            BuildErrorKind::Unreachable { least, .. } if *least > 1e-9
        ));
    }
}
