//! Retrieval: a map of a fixed set that knows its keys' values, and nothing of the keys.
//!
//! The essay is at [`Retrieval`].

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::bits::fastrange;
use crate::buf::Buf;
use crate::build::pairs;
use crate::build::shards::multiple;
use crate::error::{BuildError, DecodeError, DecodeErrorKind, NoMemory};
use crate::lookup::{self, Leveled, Ring};
use crate::ribbon::bumped::{
    BUCKET, Buckets, MOST_LAYERS, WIDTH, buckets, equation, most_keys, next, slots_for, threshold,
};
use crate::ribbon::{BLOCK, MOST_BLOCKS, Rate, Row, Shape};
use crate::simd::{self, Bits};

/// A fixed map from hashes to values of up to 64 bits, for members only.
///
/// ```
/// use tamis::{Hashing, Key, Retrieval};
///
/// let hashing = Hashing::default();
/// let stock = [("sieve", 3), ("strainer", 0), ("colander", 7)];
/// let pairs = stock.map(|(name, count)| (name.hash_with(&hashing), count));
/// let map = Retrieval::from_pairs(pairs)?;
/// assert_eq!(map.get("colander".hash_with(&hashing)), 7);
///
/// let again = Retrieval::from_bytes(&map.to_bytes())?;
/// assert_eq!(again.get("sieve".hash_with(&hashing)), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// A [`RibbonBumped`](crate::RibbonBumped) is solved so that a key's slots combine to bits of its
/// hash. Here they combine to a value of v bits. What was given is always answered rightly; what
/// was not is answered with noise, and nothing tells that it is. That is all that many uses ask
/// for (every key that is looked up is known to be in the map), and it is nearly free: the lower
/// bound is v bits per key, and this takes less than 2 % more at v = 1, and less than 0.7 % at v
/// = 8.
///
/// ```text
///   words        ├── layer 0 ─────────────────┼─ layer 1 ─┼ 2 ┤   blocks of 64 slots:
///                                                                 v words each
///   thresholds   ├── layer 0 ────┼─ 1 ─┼ 2 ┤                      two bits for 128 starts:
///                                                                 what is below is bumped
///   list         a few pairs of hash and value
/// ```
///
/// # Build
///
/// Pairs are sorted by their hashes' multiples, which is the order of starts in layer 0. Then
/// buckets are filled, and keys bumped, as in the filter; bumped hashes are mixed anew, and
/// sorted again. It cannot fail. A hash that is given twice with one value is held once. Two
/// values for it are refused, with the positions of both:
/// [`BuildErrorKind::Conflict`](crate::BuildErrorKind::Conflict).
///
/// # Cost
///
/// Less than 1.02 bits per key at v = 1 and 8.05 at v = 8 (a million keys, everything counted):
/// 1.003 slots a key, two bits for 128 slots, and a few hundred bytes. A lookup reads two blocks
/// next to each other, v words each; values of 8 bits lie in two lines. Building takes 32 bytes a
/// pair at most: the pairs in two orders, or in one with a row and a number for each slot.
///
/// # When to choose it
///
/// For a large map to small values that is asked for members only: a class, a bit, a length, a
/// shard. Where absent keys must be told, take [`Bloomier`](crate::Bloomier) with a fingerprint;
/// without one it takes 1.08 bits per bit of value.
///
/// # Bibliography
///
/// - Dillinger, Hübschle-Schneider, Sanders, Walzer, *Fast succinct retrieval and approximate
///   membership using ribbon*, 2022: bumped ribbon retrieval.
/// - Dietzfelbinger, Pagh, *Succinct data structures for retrieval and approximate membership*,
///   2008: the problem, and that a set is a map to hashes.
#[derive(Clone, Debug)]
pub struct Retrieval {
    layers: Box<[Layer]>,
    /// The layers' tables, one after the other.
    words: Buf<u64>,
    /// The layers' thresholds, four to a byte.
    thresholds: Buf<u8>,
    /// What the last layer bumped, as the next would see it, in ascending order.
    list: Box<[(u64, u64)]>,
    columns: u32,
    len: u64,
}

/// Where a ribbon's parts lie.
#[derive(Clone, Copy, Debug)]
struct Layer {
    blocks: u64,
    /// Its first word and its first bucket.
    word: u64,
    bucket: u64,
}

/// So few pairs are not worth a layer.
const LISTED: usize = 4;
/// The first bytes of a map, and what its checksum is seeded with.
const SIGNATURE: [u8; 8] = *b"tamisret";
const SUM_SEED: u64 = u64::from_le_bytes(SIGNATURE);

/// A ribbon of so many blocks and columns.
fn shape(blocks: u64, columns: u32) -> Shape {
    Shape {
        width: WIDTH,
        columns,
        shards: 1,
        blocks,
        short: 0,
    }
}

impl Retrieval {
    /// The map of these pairs of hash and value. Values take as many bits as the greatest has.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when a hash has two values,
    /// [`BuildErrorKind::Conflict`](crate::BuildErrorKind::Conflict), or memory is short.
    pub fn from_pairs(
        pairs: impl IntoIterator<Item = (u64, u64)>,
    ) -> Result<Retrieval, BuildError> {
        let given: Vec<(u64, u64)> = pairs.into_iter().collect();
        let greatest = given.iter().map(|&(_, value)| value).max();
        let columns = greatest.unwrap_or(0).max(1).ilog2() + 1;
        let mut pairs = given.clone();
        sort_by(&mut pairs, multiple);
        pairs.dedup();
        if pairs.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            pairs::distinct(&mut given.iter().map(|pair| pair.0), &|i| given[i].1)?;
        }
        drop(given);
        let len = pairs.len() as u64;
        let (mut layers, mut words, mut codes) = (Vec::new(), Vec::new(), Vec::new());
        while pairs.len() > LISTED && layers.len() < MOST_LAYERS {
            let rate = Rate {
                columns,
                short: 0.0,
            };
            let shape = Shape::new(WIDTH, rate, 1, slots_for(pairs.len() as u64));
            layers.push(Layer {
                blocks: shape.blocks,
                word: words.len() as u64,
                bucket: codes.len() as u64,
            });
            let table = Fill {
                pairs: &pairs,
                shape,
                words: &mut words,
                codes: &mut codes,
            };
            pairs = simd::dispatch(table)?;
            sort_by(&mut pairs, next);
        }
        let mut thresholds = Buf::<u8>::zeroed((codes.len() as u64).div_ceil(4))?;
        let packed = thresholds.make_mut();
        for (bucket, code) in codes.into_iter().enumerate() {
            packed[bucket / 4] |= code << (bucket % 4 * 2);
        }
        Ok(Retrieval {
            layers: layers.into_boxed_slice(),
            words: Buf::copied(&words)?,
            thresholds,
            list: pairs.into_boxed_slice(),
            columns,
            len,
        })
    }

    /// The value of a hash that was given. Any other is answered with a value that means nothing.
    #[inline]
    pub fn get(&self, hash: u64) -> u64 {
        lookup::single(self, hash)
    }

    /// Looks up many hashes: `out[i]` becomes `get(hashes[i])`, for as many as both slices hold.
    /// Faster than single calls.
    pub fn get_batch(&self, hashes: &[u64], out: &mut [u64]) {
        lookup::ring(Some(Reader(self)), hashes, out);
    }

    /// The number of distinct keys.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether no pair was given.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bits of a value: at least 1.
    pub fn value_bits(&self) -> u32 {
        self.columns
    }

    /// Every byte held on the heap.
    pub fn size_in_bytes(&self) -> usize {
        let tables = self.words.size_in_bytes() + self.thresholds.size_in_bytes();
        tables + size_of_val(&*self.layers) + size_of_val(&*self.list)
    }

    /// The start of a hash's multiple in a layer.
    #[inline(always)]
    fn start(layer: &Layer, multiple: u64) -> u64 {
        fastrange(multiple, (layer.blocks - 1) * BLOCK).0
    }

    /// Where the first words of a start lie.
    #[inline(always)]
    fn first(&self, layer: &Layer, start: u64) -> usize {
        (layer.word + start / BLOCK * u64::from(self.columns)) as usize
    }

    #[inline(always)]
    fn value(&self, hash: u64) -> u64 {
        let mut multiple = multiple(hash);
        for layer in &self.layers {
            let start = Self::start(layer, multiple);
            if start % BUCKET >= threshold(&self.thresholds, layer.bucket + start / BUCKET) {
                let masks = equation(multiple).0.masks(start);
                let (first, columns) = (self.first(layer, start), self.columns as usize);
                let (near, next) = self.words[first..first + 2 * columns].split_at(columns);
                let mut value = 0;
                // From the last column to the first: each shifts the later ones up.
                for (&near, &next) in near.iter().zip(next).rev() {
                    let under = near & masks[0] ^ next & masks[1];
                    value = value << 1 | u64::from(under.count_ones() & 1);
                }
                return value;
            }
            multiple = next(multiple);
        }
        let found = self
            .list
            .binary_search_by_key(&multiple, |&(listed, _)| listed);
        found.map_or(0, |at| self.list[at].1)
    }

    /// The map as bytes.
    ///
    /// The signature `tamisret`, then as 64-bit numbers, the lowest byte first: the bits of a
    /// value, the number of keys, of layers and of listed pairs; the blocks of each layer; the
    /// words; the listed hashes, each with its value; the thresholds, whose last byte has zeros
    /// after the last of them; last the XXH3-64 of all that under the seed `tamisret`. A layer is
    /// laid out and looked up as one of the filter `ribbon_bumped`, whose result is the value;
    /// thresholds of a layer follow those of the layer before without a gap.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::from(SIGNATURE);
        let head = [
            u64::from(self.columns),
            self.len,
            self.layers.len() as u64,
            self.list.len() as u64,
        ];
        let blocks = self.layers.iter().map(|layer| layer.blocks);
        let list = self.list.iter().flat_map(|&(hash, value)| [hash, value]);
        let words = head.into_iter().chain(blocks);
        for word in words.chain(self.words.iter().copied()).chain(list) {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(&*self.thresholds);
        bytes.extend(xxh3_64_with_seed(&bytes, SUM_SEED).to_le_bytes());
        bytes
    }

    /// The map of these bytes, from any source.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when they are not what [`to_bytes`](Self::to_bytes) makes, or memory is
    /// short. The checksum finds damage, not malice.
    pub fn from_bytes(bytes: &[u8]) -> Result<Retrieval, DecodeError> {
        let got = bytes.len() as u64;
        if !bytes.starts_with(&SIGNATURE) {
            return Err(DecodeErrorKind::NotAFilter.into());
        }
        let wrong = |expected| DecodeError::from(DecodeErrorKind::Length { expected, got });
        let (body, sum) = bytes.split_last_chunk::<8>().ok_or_else(|| wrong(48))?;
        let (numbers, _) = body.as_chunks::<8>();
        let number = |i: usize| numbers.get(i).map(|&bytes| u64::from_le_bytes(bytes));
        let short = || wrong(got + 8);
        let head = |i| number(i).ok_or_else(short);
        let (columns, len, count, listed) = (head(1)?, head(2)?, head(3)?, head(4)?);
        if !(1..=64).contains(&columns) {
            return Err(DecodeError::invalid("value bits", columns, "1 to 64"));
        }
        if count > MOST_LAYERS as u64 {
            return Err(DecodeError::invalid("layers", count, "at most 8"));
        }
        if listed > len || (count == 0 && listed != len) {
            let expected = "at most the keys, and all where there are no layers";
            return Err(DecodeError::invalid("listed pairs", listed, expected));
        }
        let mut layers = Vec::new();
        let (mut word, mut bucket) = (0u64, 0);
        for i in 0..count as usize {
            let blocks = head(5 + i)?;
            if !(2..=MOST_BLOCKS).contains(&blocks) {
                return Err(DecodeError::invalid("blocks", blocks, "2 to 2^36"));
            }
            layers.push(Layer {
                blocks,
                word,
                bucket,
            });
            word += blocks * columns;
            bucket += buckets(&shape(blocks, columns as u32));
        }
        let slots = layers.first().map_or(0, |layer| layer.blocks * BLOCK);
        if len - listed > most_keys(slots) {
            let expected = "few enough for the first layer's slots";
            return Err(DecodeError::invalid("keys", len, expected));
        }
        // No sum overflows: there are 8 layers at most, of 2³⁶ blocks and 64 columns.
        let packed = bucket.div_ceil(4);
        let expected = listed
            .checked_mul(16)
            .and_then(|listed| listed.checked_add(8 * (6 + count + word) + packed));
        if expected != Some(got) {
            return Err(wrong(expected.unwrap_or(u64::MAX)));
        }
        if xxh3_64_with_seed(body, SUM_SEED) != u64::from_le_bytes(*sum) {
            let (part, offset) = ("map", 0);
            return Err(DecodeErrorKind::Checksum { part, offset }.into());
        }
        let numbers = &numbers[5 + count as usize..][..(word + 2 * listed) as usize];
        let (table, list) = numbers.split_at(word as usize);
        let list = list.as_chunks::<2>().0.iter();
        let list: Vec<_> = list
            .map(|pair| pair.map(u64::from_le_bytes).into())
            .collect();
        let ascending = |pair: &[(u64, u64)]| pair[0].0 < pair[1].0;
        if !list.windows(2).all(ascending) {
            let expected = "hashes in ascending order";
            return Err(DecodeError::invalid("listed pairs", listed, expected));
        }
        let codes = &body[body.len() - packed as usize..];
        let spare = codes.last().map_or(0, |&last| match bucket % 4 {
            0 => 0,
            used => last >> (2 * used),
        });
        if spare != 0 {
            let expected = "no bits after the last bucket's";
            return Err(DecodeError::invalid(
                "thresholds",
                u64::from(spare),
                expected,
            ));
        }
        let memory = |error: NoMemory| DecodeErrorKind::Memory { bytes: error.bytes };
        let words = table.iter().map(|&bytes| u64::from_le_bytes(bytes));
        Ok(Retrieval {
            layers: layers.into_boxed_slice(),
            words: Buf::filled(words).map_err(memory)?,
            thresholds: Buf::copied(codes).map_err(memory)?,
            list: list.into_boxed_slice(),
            columns: columns as u32,
            len,
        })
    }
}

/// Replaces hashes by others, and sorts by them: in that order a layer sees its starts in order.
fn sort_by(pairs: &mut [(u64, u64)], other: impl Fn(u64) -> u64) {
    for (hash, _) in &mut *pairs {
        *hash = other(*hash);
    }
    pairs.sort_unstable();
}

/// Solves a layer, appends its words and codes, and returns the pairs that it bumps.
struct Fill<'a> {
    pairs: &'a [(u64, u64)],
    shape: Shape,
    words: &'a mut Vec<u64>,
    codes: &'a mut Vec<u8>,
}

impl simd::Op for Fill<'_> {
    const WIDE: bool = true;
    type Out = Result<Vec<(u64, u64)>, NoMemory>;

    #[inline(always)]
    fn run<B: Bits>(self, _: B) -> Result<Vec<(u64, u64)>, NoMemory> {
        let shape = self.shape;
        let start = |(multiple, _): (u64, u64)| shape.start(multiple);
        let equation = |(multiple, value)| (equation(multiple).0, value);
        let mut filled = Buckets::new(shape.slots())?;
        let (before, from) = (self.codes.len(), self.words.len());
        self.codes.resize(before + buckets(&shape) as usize, 0);
        let mut bumped = Vec::new();
        let mut left = self.pairs;
        while let Some(&first) = left.first() {
            let bucket = start(first) / BUCKET;
            let end = left
                .iter()
                .take_while(|&&pair| start(pair) / BUCKET == bucket);
            let (pairs, rest) = left.split_at(end.count());
            left = rest;
            let (code, bumps) = filled.fill(bucket, pairs, start, equation);
            bumped.extend_from_slice(&pairs[..bumps]);
            self.codes[before + bucket as usize] = code;
        }
        self.words.resize(from + shape.words() as usize, 0);
        filled.band.solve(&shape, &mut self.words[from..]);
        Ok(bumped)
    }
}

/// Counting ones is an instruction only at the levels above the portable one.
impl Leveled for Retrieval {
    type Answer = u64;

    #[inline(always)]
    fn look_up<B: Bits>(&self, _: B, hash: u64) -> u64 {
        self.value(hash)
    }
}

/// The map, for lookups.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a Retrieval);

impl Ring for Reader<'_> {
    type Place = u64;
    type Answer = u64;

    #[inline(always)]
    fn bytes(self) -> usize {
        self.0.size_in_bytes()
    }

    #[inline(always)]
    fn place(self, hash: u64) -> u64 {
        hash
    }

    /// The lines of a hash in the first layer, where nearly all keys are.
    #[inline(always)]
    fn prefetch(self, hash: u64) {
        let Retrieval { layers, words, .. } = self.0;
        let Some(layer) = layers.first() else {
            return;
        };
        let start = Retrieval::start(layer, multiple(hash));
        let first = self.0.first(layer, start);
        simd::prefetch(words, first);
        simd::prefetch(words, first + 2 * self.0.columns as usize - 1);
    }

    #[inline(always)]
    fn probe<B: Bits>(self, _: B, hash: u64) -> u64 {
        self.0.value(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BuildErrorKind;
    use crate::bits::{low_mask, mix64};

    /// Pairs of which each value has up to `bits` bits, and one has as many.
    fn pairs(n: u64, set: u64, bits: u32) -> Vec<(u64, u64)> {
        let value = |i: u64| if i == 0 { u64::MAX } else { mix64(!i) } & low_mask(bits);
        (0..n).map(|i| (mix64(set << 40 | i), value(i))).collect()
    }

    #[track_caller]
    fn assert_holds(map: &Retrieval, pairs: &[(u64, u64)]) {
        let hashes: Vec<u64> = pairs.iter().map(|&(hash, _)| hash).collect();
        let mut values = vec![0; pairs.len()];
        map.get_batch(&hashes, &mut values);
        for (&(hash, value), batch) in pairs.iter().zip(values) {
            assert_eq!((map.get(hash), batch), (value, value));
        }
    }

    #[test]
    fn one_bit_of_a_million_keys_takes_less_than_1_02() {
        for set in 0..3 {
            let pairs = pairs(1_000_000, set, 1);
            let map = Retrieval::from_pairs(pairs.iter().copied()).unwrap();
            let bits = map.size_in_bytes() as f64 * 8.0 / 1e6;
            assert!((1.0..=1.02).contains(&bits), "{bits}");
            assert_eq!((map.value_bits(), map.len()), (1, 1_000_000));
            assert_holds(&map, &pairs);
        }
    }

    #[test]
    fn eight_bits_take_8_05() {
        let pairs = pairs(1_000_000, 1, 8);
        let map = Retrieval::from_pairs(pairs.iter().copied()).unwrap();
        let bits = map.size_in_bytes() as f64 * 8.0 / 1e6;
        assert!((8.0..=8.05).contains(&bits), "{bits}");
        assert_holds(&map, &pairs);
    }

    #[test]
    fn every_width_and_size_is_answered_rightly() {
        for bits in [1, 2, 3, 7, 8, 9, 31, 32, 33, 63, 64] {
            for n in [1, 2, 4, 5, 17, 100, 1500, 1501, 10_000] {
                let pairs = pairs(n, u64::from(bits), bits);
                let map = Retrieval::from_pairs(pairs.iter().copied()).unwrap();
                assert_eq!(map.value_bits(), bits);
                assert_holds(&map, &pairs);
            }
        }
    }

    #[test]
    fn two_values_of_a_hash_are_refused_and_one_given_twice_is_not() {
        let distinct = pairs(3000, 7, 8);
        let map = Retrieval::from_pairs(distinct.iter().copied()).unwrap();
        let mut twice = [&distinct[..], &distinct[10..20]].concat();
        let again = Retrieval::from_pairs(twice.iter().copied()).unwrap();
        assert_eq!(again.to_bytes(), map.to_bytes());
        twice[3005].1 ^= 1;
        twice[3007].1 ^= 1;
        let error = Retrieval::from_pairs(twice).unwrap_err();
        let (first, second) = (15, 3005);
        assert_eq!(*error.kind(), BuildErrorKind::Conflict { first, second });
    }

    #[test]
    fn a_map_of_nothing_is_asked_in_vain() {
        let map = Retrieval::from_pairs([]).unwrap();
        assert!(map.is_empty() && map.get(5) == 0 && map.size_in_bytes() == 0);
        assert_eq!(Retrieval::from_bytes(&map.to_bytes()).unwrap().get(5), 0);
        let zero = Retrieval::from_pairs([(5, 0)]).unwrap();
        assert_eq!((zero.get(5), zero.value_bits(), zero.len()), (0, 1, 1));
    }

    #[test]
    fn more_keys_than_the_slots_can_have_are_refused() {
        let map = Retrieval::from_pairs(pairs(300, 9, 3)).unwrap();
        let slots = map.layers[0].blocks * BLOCK;
        let most = most_keys(slots) + map.list.len() as u64;
        let forged = |len| Retrieval { len, ..map.clone() }.to_bytes();
        assert!(Retrieval::from_bytes(&forged(most)).is_ok());
        for len in [most + 1, 1 << 40, u64::MAX] {
            assert!(Retrieval::from_bytes(&forged(len)).is_err(), "{len} keys");
        }
    }

    #[test]
    fn bytes_are_read_back_and_damage_is_found() {
        for n in [0, 3, 40, 300] {
            let pairs = pairs(n, 9, 3);
            let bytes = Retrieval::from_pairs(pairs.iter().copied())
                .unwrap()
                .to_bytes();
            let again = Retrieval::from_bytes(&bytes).unwrap();
            assert_holds(&again, &pairs);
            assert_eq!(again.to_bytes(), bytes);
            for end in 0..bytes.len() {
                assert!(
                    Retrieval::from_bytes(&bytes[..end]).is_err(),
                    "cut at {end}"
                );
            }
            let sum = bytes.len() - 8;
            for bit in 0..8 * bytes.len() {
                let mut forged = bytes.clone();
                forged[bit / 8] ^= 1 << (bit % 8);
                assert!(Retrieval::from_bytes(&forged).is_err(), "bit {bit}");
                // With the sum made good, it is refused or answers.
                let good = xxh3_64_with_seed(&forged[..sum], SUM_SEED);
                forged[sum..].copy_from_slice(&good.to_le_bytes());
                if let Ok(map) = Retrieval::from_bytes(&forged) {
                    pairs.iter().for_each(|&(hash, _)| _ = map.get(hash));
                }
            }
        }
    }
}
