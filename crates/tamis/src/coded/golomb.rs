//! The Golomb-coded set: sorted hashes, of which only the gaps are stored.
//!
//! The essay is at [`Golomb`].

use crate::bits::{fastrange, low_mask};
use crate::buf::Buf;
use crate::build::dedup;
use crate::build::shards::{mixed, unmixed};
use crate::config::{Config, Param};
use crate::error::{BuildError, DecodeError, Full, FullKind, MergeError, MergeErrorKind, NoMemory};
use crate::filter::{Filter, Kind, Merge};
use crate::format::{Decoder, Encoder};
use crate::option;
use crate::packed::Packed;

/// A static filter of any rate, near the lower bound, whose parts can be merged and listed.
///
/// ```
/// use tamis::{Config, Golomb, Keyed};
///
/// // Parts that will be merged are built for the keys of all.
/// let all = Config::new(6).fpr(0.001);
/// let mut words: Keyed<Golomb> = Keyed::build(&all, ["tamis", "sieve", "strainer"])?;
/// words.merge(&Keyed::build(&all, ["colander", "riddle", "screen"])?)?;
/// assert!(words.contains("sieve") && words.contains("riddle"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///   hash ──► mixed, scaled to a value in 0 … U − 1,   U = n/ε
///
///   values     5      12 13        40      │  66 …           │   in chunks of 2^s values
///   gaps       5       6  0        26      │   2 …           │   how many values were left out
///   code       0  0  0  1110 … 010 000 110 101               │
///              ▲  quotients      rests  ◄──┤                 │
///   index      offset of chunk 0           of chunk 1        of chunk 2
///
///   gap = quotient · 2^P + rest, here P = 3: unary quotients, then rests from the end
/// ```
///
/// n values drawn from n/ε cover a share ε of them, so an absent key has the value of a member
/// with that probability. The sorted values are n numbers in a known range, and their gaps are
/// short: mean 1/ε. A Rice code, which is a Golomb code whose divisor is a power of two, writes a
/// gap in log₂(1/ε) + 1.5 bits.
///
/// # Lookup
///
/// The key's value is in one chunk. The index has the offset of each chunk's code, and a lookup
/// decodes from there until it meets the value or a greater one: half a chunk in the mean.
/// Quotients and rests of a chunk lie apart: the rests are of one width, so that where each is
/// does not depend on decoding those before.
///
/// Offsets grow evenly, but for chance: the index keeps how far each is off the straight line, in
/// as many bits as the farthest needs. 14 or 15 bits are enough for a million keys, where an
/// offset would take 24.
///
/// # Parameters of the code
///
/// 2^P is best when it is the least that is not below M·ln φ, M = U/n being the mean gap and φ
/// the golden ratio: there a bit more of rest and a bit more of quotient cost the same. So both P
/// and the width of a chunk follow from U and the number of values; only U and `chunk` are the
/// filter's shape.
///
/// # Merge
///
/// Filters of the same U, which is that of the same capacity and rate, hold numbers of one range:
/// their union is that of the numbers, coded anew. Build the parts for the capacity of the whole.
/// The numbers can be listed ([`Golomb::values`]), and two filters of one shape compared, without
/// any key.
///
/// # Cost
///
/// P + 1 + 1/(e^(2^P/M) − 1) bits per key, and the index. With the 128 keys a chunk that are the
/// default, a million keys take 8.15 bits each at 1 %, and 9.62 at 0.39 %, where P is 7 (P = 8
/// would take 9.58 without the index). A lookup decodes 64 gaps in the mean, with some 40
/// instructions each (`docs/INSTRUCTIONS.md`). With `chunk=512` the 9.62 bits are 9.55, and four
/// times as many gaps are decoded.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `chunk` | 8 to 4096 | 128 | keys between entries of the index: fewer make lookups faster, more the filter smaller |
///
/// # When to choose it
///
/// For sets that travel or are merged, at any rate. From 0.02 % down, its log₂(1/ε) + 1.6 bits are
/// fewer than the 1.13·log₂(1/ε) of a binary fuse filter of fitting width. In memory, any table
/// answers in a fraction of the instructions. A prefix set, with which browsers replaced their
/// Bloom filters, sorts prefixes of 32 bits and writes gaps of 16: a million keys at 2.3·10⁻⁴ take
/// 16 bits each and an index. The same numbers are 13.7 bits here, so it has no code of its own.
///
/// # Bibliography
///
/// - Golomb, *Run-length encodings*, 1966: the code, and that it is the best for geometric gaps.
/// - Rice, Plaunt, *Adaptive variable-length coding for efficient compression*, 1971: powers of
///   two.
/// - Putze, Sanders, Singler, *Cache-, hash- and space-efficient Bloom filters*, 2007: the
///   filter, and its size.
/// - Kiely, *Selecting the Golomb parameter in Rice coding*, 2004: the golden ratio.
#[derive(Clone, Debug)]
pub struct Golomb {
    /// The codes of all chunks, one after the other, and [`SPARE`] zeros.
    code: Packed,
    index: Index,
    shape: Shape,
    /// How many values are coded.
    values: u64,
    len: u64,
}

/// What two filters that can be merged have in common, and what follows for so many values.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Values are below it.
    range: u64,
    /// Keys that a chunk should have.
    chunk: u64,
    /// P, the bits of a gap that are not in unary.
    rice: u32,
    /// A chunk is 2^shift values.
    shift: u32,
    chunks: u64,
}

/// Where the code of each chunk starts, and where the last ends: a number for each, beside a
/// straight line.
#[derive(Clone, Debug)]
struct Index {
    offsets: Packed,
    /// The line's rise from one chunk to the next, in 2⁻³² bits.
    slope: u64,
    /// What the line is to be lowered or lifted by, modulo 2⁶⁴.
    least: u64,
}

/// Keys of a chunk, and how many there are where nothing is said.
const CHUNK: std::ops::RangeInclusive<u64> = 8..=4096;
const DEFAULT_CHUNK: u64 = 128;
/// The greatest range: a hash has three bits to spare.
const MOST_RANGE: u64 = 1 << 61;
/// The rest of a gap is read in one piece.
const MOST_RICE: u32 = 56;
/// What one read of the code is sure to give.
const WINDOW: u32 = 57;
/// ln φ in units of 2⁻³².
const LN_PHI: u128 = 2_066_789_051;
/// More bits of code than any memory has.
const MOST_BITS: u128 = 1 << 60;
/// Zeros after the last code: no reader runs past the array, whatever it was given.
const SPARE: u64 = 64;

impl Shape {
    /// The code for this many values in a range.
    fn new(range: u64, chunk: u64, values: u64) -> Shape {
        let mean = (u128::from(range) * LN_PHI).div_ceil(1 << 32);
        let best = |&p: &u32| u128::from(values) << p >= mean;
        let keys_apart = u128::from(chunk) * u128::from(range) / u128::from(values.max(1));
        // The power of two that is nearest, between two of which 1.5 is the middle.
        let below = keys_apart.ilog2();
        let nearest = below + u32::from(keys_apart >> below.saturating_sub(1) == 3);
        let shift = nearest.min(range.ilog2() + 1);
        Shape {
            range,
            chunk,
            rice: (0..MOST_RICE).find(best).unwrap_or(MOST_RICE),
            shift,
            chunks: if values == 0 {
                0
            } else {
                ((range - 1) >> shift) + 1
            },
        }
    }

    /// The value of a hash: this filter's geometry.
    #[inline]
    fn value(&self, hash: u64) -> u64 {
        fastrange(mixed(hash), self.range).0
    }

    /// How many bits the code of a gap has.
    fn bits(&self, gap: u64) -> u64 {
        (gap >> self.rice) + 1 + u64::from(self.rice)
    }

    /// The most bits that so many values can take: their gaps together are shorter than the
    /// range.
    fn most_bits(&self, values: u64) -> u128 {
        u128::from(self.range >> self.rice) + u128::from(values) * u128::from(self.rice + 1)
    }
}

impl Index {
    fn slope(bits: u64, chunks: u64) -> u64 {
        ((u128::from(bits) << 32) / u128::from(chunks.max(1))) as u64
    }

    #[inline]
    fn line(slope: u64, chunk: u64) -> u64 {
        ((u128::from(slope) * u128::from(chunk)) >> 32) as u64
    }

    /// The index of these offsets, of which the last is the number of bits.
    fn new(offsets: &[u64]) -> Result<Index, NoMemory> {
        let chunks = offsets.len() as u64 - 1;
        let slope = Index::slope(offsets[chunks as usize], chunks);
        let beside = || {
            let offsets = (0..).zip(offsets);
            offsets.map(|(chunk, offset)| offset.wrapping_sub(Index::line(slope, chunk)) as i64)
        };
        let least = beside().min().unwrap_or(0) as u64;
        let most = beside().max().unwrap_or(0) as u64;
        let mut packed = Packed::zeroed(chunks + 1, width(most.wrapping_sub(least)))?;
        for (chunk, beside) in (0..).zip(beside()) {
            packed.set(chunk, (beside as u64).wrapping_sub(least));
        }
        Ok(Index {
            offsets: packed,
            slope,
            least,
        })
    }

    /// Where the code of a chunk starts.
    #[inline]
    fn offset(&self, chunk: u64) -> u64 {
        let line = Index::line(self.slope, chunk).wrapping_add(self.least);
        line.wrapping_add(self.offsets.get(chunk))
    }
}

/// The bits of a number, at least one.
fn width(number: u64) -> u32 {
    (64 - number.leading_zeros()).max(1)
}

impl Golomb {
    /// How many values a key can have, U: the rate is the number of values over it.
    pub fn range(&self) -> u64 {
        self.shape.range
    }

    /// P, the bits of a gap that are written as they are; the rest of it is in unary.
    pub fn rice_bits(&self) -> u32 {
        self.shape.rice
    }

    /// The values of the keys in ascending order, without repeats: the hash of a key, mixed and
    /// scaled to the range.
    pub fn values(&self) -> impl Iterator<Item = u64> + Clone + '_ {
        (0..self.shape.chunks).flat_map(move |chunk| self.in_chunk(chunk))
    }

    /// The values in one chunk.
    #[inline]
    fn in_chunk(&self, chunk: u64) -> Codes<'_> {
        let range = self.index.offset(chunk)..self.index.offset(chunk + 1);
        let start = chunk << self.shape.shift;
        Codes::new(&self.code, self.shape.rice, range, start)
    }

    /// The filter of hashes that are mixed. Sorts them.
    fn of_mixed(config: &Config, chunk: u64, hashes: &mut [u64]) -> Result<Golomb, BuildError> {
        let tally = config.tally(hashes.len() as u64);
        // Repeats count for nothing, so that parts of one capacity merge whatever they were
        // given.
        let len = dedup(hashes);
        let hashes = &hashes[..len];
        tally.step(1, 2);
        let (keys, fpr) = config.check::<Golomb>(hashes)?;
        // A rate that a hash of 64 bits can promise gives 2⁶⁰ at most.
        let range = (keys.max(1) as f64 / fpr).ceil() as u64;
        let range = range.clamp(1, MOST_RANGE);
        // A value that repeats is left out.
        let value = |i: usize| fastrange(hashes[i], range).0;
        let values = (0..len).map(value).enumerate();
        let values = values.filter(|&(i, own)| i == 0 || value(i - 1) != own);
        let values = values.map(|(_, value)| value);
        let filter = Golomb::of_values(range, chunk, len as u64, values)?;
        tally.step(2, 2);
        Ok(filter)
    }

    /// The least value that is held from one on, if it lies in the same chunk.
    #[inline]
    pub(crate) fn first_from(&self, value: u64) -> Option<u64> {
        if self.values == 0 {
            return None;
        }
        let mut held = self.in_chunk(value >> self.shape.shift);
        held.find(|&held| held >= value)
    }

    /// The filter of these values, which ascend.
    pub(crate) fn of_values(
        range: u64,
        chunk: u64,
        len: u64,
        values: impl Iterator<Item = u64> + Clone,
    ) -> Result<Golomb, NoMemory> {
        let count = values.clone().count() as u64;
        let shape = Shape::new(range, chunk, count);
        // A gap counts from the last value, or from where the chunk starts.
        let gaps = values.scan(0, |next, value| {
            let chunk = value >> shape.shift;
            let gap = value - (chunk << shape.shift).max(*next);
            *next = value + 1;
            Some((chunk, gap))
        });
        let mut offsets = Buf::<u64>::zeroed(shape.chunks + 1)?;
        let offsets = offsets.make_mut();
        for (chunk, gap) in gaps.clone() {
            offsets[chunk as usize + 1] += shape.bits(gap);
        }
        let mut bits = 0;
        for offset in &mut *offsets {
            bits += *offset;
            *offset = bits;
        }
        let mut code = Packed::zeroed(bits + SPARE, 1)?;
        let (mut at, mut end, mut current) = (0, 0, None);
        for (chunk, gap) in gaps {
            if current != Some(chunk) {
                current = Some(chunk);
                (at, end) = (offsets[chunk as usize], offsets[chunk as usize + 1]);
            }
            let mut ones = gap >> shape.rice;
            while ones > 0 {
                let some = ones.min(u64::from(WINDOW));
                code.put(at, low_mask(some as u32));
                (at, ones) = (at + some, ones - some);
            }
            at += 1;
            end -= u64::from(shape.rice);
            code.put(end, gap & low_mask(shape.rice));
        }
        Ok(Golomb {
            code,
            index: Index::new(offsets)?,
            shape,
            values: count,
            len,
        })
    }
}

/// Hashes mixed where they lie, as values ascend with the mixed hashes, and given back as they
/// were: also where whoever watches the build panics.
struct Mixed<'a>(&'a mut [u64]);

impl<'a> Mixed<'a> {
    fn new(hashes: &'a mut [u64]) -> Mixed<'a> {
        hashes.iter_mut().for_each(|hash| *hash = mixed(*hash));
        Mixed(hashes)
    }
}

impl Drop for Mixed<'_> {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|hash| *hash = unmixed(*hash));
    }
}

/// Decodes the values of a chunk.
#[derive(Clone)]
struct Codes<'a> {
    code: &'a Packed,
    rice: u32,
    /// Where the next quotient starts, and where the next rest ends.
    at: u64,
    end: u64,
    /// Of the bits from `base` on, the zeros that were not met yet, as ones.
    zeros: u64,
    base: u64,
    /// The least value that can follow.
    next: u64,
}

impl<'a> Codes<'a> {
    #[inline]
    fn new(code: &'a Packed, rice: u32, range: std::ops::Range<u64>, next: u64) -> Codes<'a> {
        Codes {
            code,
            rice,
            at: range.start,
            end: range.end,
            zeros: !code.word(range.start) & low_mask(WINDOW),
            base: range.start,
            next,
        }
    }

    /// The next gap. There must be bits left for one: then a zero is ahead, be it one of the
    /// spare ones, and no read goes past the array.
    #[inline]
    fn gap(&mut self) -> u64 {
        while self.zeros == 0 {
            self.base += u64::from(WINDOW);
            self.zeros = !self.code.word(self.base) & low_mask(WINDOW);
        }
        let zero = self.base + u64::from(self.zeros.trailing_zeros());
        self.zeros &= self.zeros - 1;
        let quotient = zero - self.at;
        self.at = zero + 1;
        self.end -= u64::from(self.rice);
        quotient << self.rice | self.code.word(self.end) & low_mask(self.rice)
    }
}

impl Iterator for Codes<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.at >= self.end {
            return None;
        }
        // Sums of a filter that was found sound stay below the range; those of a forged file may
        // be anything.
        let value = self.next.wrapping_add(self.gap());
        self.next = value.wrapping_add(1);
        Some(value)
    }
}

impl Filter for Golomb {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let value = self.shape.value(hash);
        self.first_from(value) == Some(value)
    }

    /// The number of distinct keys; merging adds the numbers up.
    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.code.size_in_bytes() + self.index.offsets.size_in_bytes()
    }

    fn fpr(&self) -> f64 {
        self.values as f64 / self.shape.range as f64
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        if self.values == 0 {
            return;
        }
        // The index is small and near; the code is not.
        let at = self
            .index
            .offset(self.shape.value(hash) >> self.shape.shift);
        self.code.prefetch(at);
        self.code.prefetch(at + 512);
    }
}

impl Merge for Golomb {
    fn merge(&mut self, other: &Golomb) -> Result<(), MergeError> {
        MergeError::unless_equal("range", self.shape.range, other.shape.range)?;
        MergeError::unless_equal("chunk", self.shape.chunk, other.shape.chunk)?;
        let len = self.len.saturating_add(other.len);
        let both = Union {
            ours: self.values().peekable(),
            theirs: other.values().peekable(),
        };
        let union = Golomb::of_values(self.shape.range, self.shape.chunk, len, both);
        *self = union
            .map_err(|e| MergeErrorKind::Full(Full::new(FullKind::Memory(e.bytes), self.len)))?;
        Ok(())
    }
}

/// Two ascending sequences as one, in which a number occurs once.
#[derive(Clone)]
struct Union<A: Iterator<Item = u64>, B: Iterator<Item = u64>> {
    ours: std::iter::Peekable<A>,
    theirs: std::iter::Peekable<B>,
}

impl<A: Iterator<Item = u64>, B: Iterator<Item = u64>> Iterator for Union<A, B> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match (self.ours.peek().copied(), self.theirs.peek().copied()) {
            (Some(ours), Some(theirs)) => {
                if ours <= theirs {
                    self.ours.next();
                }
                if theirs <= ours {
                    self.theirs.next();
                }
                Some(ours.min(theirs))
            }
            (Some(_), None) => self.ours.next(),
            (None, _) => self.theirs.next(),
        }
    }
}

impl Kind for Golomb {
    const ABOUT: &'static str = "sets that travel: any rate, small, merged and listed without keys";
    const PARAMS: &'static [Param] = &[Param {
        name: option::CHUNK.name,
        values: "8 to 4096",
        default: "128",
        about: "keys between entries of the index: fewer make lookups faster, more the filter smaller",
    }];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Golomb, BuildError> {
        config.check::<Golomb>(hashes)?;
        let expected = format!("a whole number from {} to {}", CHUNK.start(), CHUNK.end());
        let chunk = config.param::<u64>(option::CHUNK.name, &expected)?;
        let chunk = chunk.unwrap_or(DEFAULT_CHUNK);
        if !CHUNK.contains(&chunk) {
            return Err(BuildError::parameter("chunk", chunk, expected));
        }
        Golomb::of_mixed(config, chunk, Mixed::new(hashes).0)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("range", self.shape.range);
        out.param("chunk", self.shape.chunk);
        let bits = self.index.offset(self.shape.chunks);
        let width = u64::from(self.index.offsets.width());
        let counts = [self.values, bits, width, self.index.least];
        out.made(counts.map(u64::to_le_bytes).concat());
        self.index.offsets.encode(out);
        self.code.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Golomb, DecodeError> {
        let range = input.param_in("range", 1..=MOST_RANGE)?;
        let chunk = input.param_in("chunk", CHUNK)?;
        let counts = input.section::<u64>("counts", 4)?;
        let [values, bits, width_stated, least] = [counts[0], counts[1], counts[2], counts[3]];
        let len = input.len();
        if values > len.min(range) || (values == 0) != (len == 0) {
            let expected = format!("a number of values for {len} keys in a range of {range}");
            return Err(DecodeError::invalid("values", values, expected));
        }
        let shape = Shape::new(range, chunk, values);
        let most = shape.most_bits(values).min(MOST_BITS);
        if u128::from(bits) > most {
            let expected = format!("at most {most} bits for {values} values");
            return Err(DecodeError::invalid("code", bits, expected));
        }
        if !(1..=u64::from(WINDOW)).contains(&width_stated) {
            let expected = format!("1 to {WINDOW}");
            return Err(DecodeError::invalid("index width", width_stated, expected));
        }
        let index = Index {
            offsets: Packed::decode(input, "index", shape.chunks + 1, width_stated as u32)?,
            slope: Index::slope(bits, shape.chunks),
            least,
        };
        let (lowest, highest) = index
            .offsets
            .iter()
            .fold((u64::MAX, 0), |(low, high), x| (low.min(x), high.max(x)));
        if lowest != 0 || u64::from(width(highest)) != width_stated {
            let expected = format!("numbers from 0 up to one of {width_stated} bits");
            return Err(DecodeError::invalid("index", lowest, expected));
        }
        let code = Packed::decode(input, "code", bits + SPARE, 1)?;
        if (bits..bits + SPARE).any(|bit| code.get(bit) != 0) {
            let expected = "zeros after the last code";
            return Err(DecodeError::invalid("code", bits, expected));
        }
        let filter = Golomb {
            code,
            index,
            shape,
            values,
            len,
        };
        filter.is_sound(bits)?;
        Ok(filter)
    }
}

impl Golomb {
    /// Whether each chunk's codes end where the next begins, and stand for values of that chunk.
    /// As there are as many as is said, and no more bits than they can take, no quotient was too
    /// large to be true.
    fn is_sound(&self, bits: u64) -> Result<(), DecodeError> {
        let mut count = 0;
        let mut end = 0;
        let least = u64::from(self.shape.rice) + 1;
        for chunk in 0..self.shape.chunks {
            let start = self.index.offset(chunk);
            if start != end {
                let expected = format!("{end}, where the chunk before ends");
                return Err(DecodeError::invalid("index", start, expected));
            }
            end = self.index.offset(chunk + 1);
            if !(start..=bits).contains(&end) {
                let expected = format!("{start} to {bits}");
                return Err(DecodeError::invalid("index", end, expected));
            }
            let above = (chunk + 1) << self.shape.shift;
            let above = above.min(self.shape.range);
            let mut codes = self.in_chunk(chunk);
            while codes.at < codes.end {
                let room = codes.end - codes.at >= least;
                let value = if room { codes.next() } else { None };
                if value.is_none_or(|value| value >= above) || codes.at > codes.end {
                    let expected = format!("values below {above}, and their codes in their chunk");
                    return Err(DecodeError::invalid("code", chunk, expected));
                }
                count += 1;
            }
        }
        if self.index.offset(self.shape.chunks) != bits || end != bits || count != self.values {
            let expected = format!("{} values in {bits} bits", self.values);
            return Err(DecodeError::invalid("code", count, expected));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::format::repair_checksums;
    use crate::{Keyed, math};

    fn holding(keys: u64, fpr: f64, chunk: u64) -> Golomb {
        let config = Config::new(keys).fpr(fpr).set("chunk", chunk);
        let mut hashes: Vec<u64> = (0..keys).map(mix64).collect();
        Golomb::build(&config, &mut hashes).unwrap()
    }

    #[test]
    fn the_essay_tells_what_a_prefix_set_would_take_here() {
        let rate = 1e6 / 32f64.exp2();
        let bits = 8.0 * holding(1_000_000, rate, 128).size_in_bytes() as f64 / 1e6;
        assert_eq!(format!("{rate:.1e} {bits:.1}"), "2.3e-4 13.7");
    }

    fn bits_per_key(filter: &Golomb) -> (f64, f64) {
        let per_key = |bytes: usize| bytes as f64 * 8.0 / filter.len() as f64;
        let code = per_key(filter.code.size_in_bytes());
        (code, per_key(filter.size_in_bytes()) - code)
    }

    #[test]
    fn size_and_rate_are_those_of_the_formula() {
        // spec: P = 8 takes 9.58 bits/key at 2⁻⁸, and 8.116 bits at 1 % with P = 6; the better P
        // = 7 takes 9.54 at 2⁻⁸.
        for (fpr, rice, published) in [(1.0 / 256.0, 7, 9.54), (0.01, 6, 8.116), (1e-6, 19, 21.41)]
        {
            let filter = holding(1_000_000, fpr, DEFAULT_CHUNK);
            let (code, index) = bits_per_key(&filter);
            // Values that two keys share are coded once.
            let share = filter.values as f64 / filter.len() as f64;
            let mean = filter.range() as f64 / filter.values as f64;
            let formula = math::golomb_bits_per_key(rice, mean) * share;
            assert_eq!(filter.rice_bits(), rice);
            // A little less than the formula: a gap counts what it leaves out, and none leads out
            // of its chunk.
            assert!((0.997..1.0).contains(&(code / formula)), "{code} {formula}");
            assert!((code / published - 1.0).abs() < 0.007, "{code} {published}");
            assert!(index < 0.14, "{index}");
            let queries = 1_000_000;
            let absent = (0..queries).filter(|q| filter.contains(mix64(1 << 40 | q)));
            let hits = absent.count() as u64;
            let (low, high) = math::binomial_interval(queries, filter.fpr(), 1e-9);
            assert!((low..=high).contains(&hits), "{hits} at {fpr}");
            assert!(filter.fpr() <= fpr);
        }
        // With few entries the index costs next to nothing: 9.58 bits in all.
        let (code, index) = bits_per_key(&holding(1_000_000, 1.0 / 256.0, 512));
        assert!(code + index < 9.58, "{code} + {index}");
    }

    #[test]
    fn the_rest_is_as_wide_as_the_formula_says_is_best() {
        for values in [1u64, 7, 1000, 1 << 30] {
            for mean in [1.0, 1.4, 2.0, 2.1, 4.2, 100.0, 256.0, 784_931.0, 1e9] {
                let shape = Shape::new((mean * values as f64) as u64, 64, values);
                let exact = shape.range as f64 / values as f64;
                assert_eq!(Some(shape.rice), math::golomb_rice_bits(exact), "{exact}");
            }
        }
    }

    #[test]
    fn chunks_have_about_as_many_keys_as_asked_for() {
        for mean in [1u64, 2, 3, 100, 256, 1000, 1_000_000] {
            for chunk in [8, 100, 128, 4096] {
                let shape = Shape::new(1_000_000 * mean, chunk, 1_000_000);
                let keys = 1e6 / shape.chunks as f64 / chunk as f64;
                assert!((0.65..1.35).contains(&keys), "{mean} {chunk}: {keys}");
            }
        }
    }

    #[test]
    fn values_are_listed_in_order_and_are_those_of_the_keys() {
        for keys in [0, 1, 2, 100, 5000] {
            for fpr in [0.9, 0.1, 1e-3, 1e-12] {
                let filter = holding(keys, fpr, 16);
                let mut expected: Vec<u64> = (0..keys)
                    .map(|i| fastrange(mixed(mix64(i)), filter.range()).0)
                    .collect();
                expected.sort_unstable();
                expected.dedup();
                assert!(filter.values().eq(expected), "{keys} keys at {fpr}");
            }
        }
    }

    #[test]
    fn hashes_are_given_back_even_if_the_build_is_broken_off() {
        let given: Vec<u64> = (0..500).map(mix64).collect();
        for call in 0..3 {
            let calls = std::sync::atomic::AtomicU32::new(0);
            let config = Config::default().progress(move |_| {
                let calls = calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                assert!(calls != call, "no longer wanted");
            });
            let mut hashes = given.clone();
            let build = std::panic::AssertUnwindSafe(|| Golomb::build(&config, &mut hashes));
            assert!(std::panic::catch_unwind(build).is_err());
            hashes.sort_unstable();
            assert!(given.iter().all(|hash| hashes.binary_search(hash).is_ok()));
        }
    }

    #[test]
    fn a_long_gap_is_read_in_several_pieces() {
        // All values at the two ends of one chunk of a range that has room for many.
        let values = [0u64, 1, 2, 60_000, 60_001, 99_999];
        let filter = Golomb::of_values(100_000, 4096, 6, values.into_iter()).unwrap();
        assert!(filter.shape.chunks == 1 && 57_000 >> filter.rice_bits() > 3);
        assert!(filter.values().eq(values));
        let crowded = (0..3000).chain([1 << 40, (1 << 40) + 1]);
        let filter = Golomb::of_values(1 << 41, 64, 3002, crowded.clone()).unwrap();
        assert!(filter.values().eq(crowded));
    }

    #[test]
    fn filters_of_one_range_merge_to_that_of_all_keys() {
        let config = Config::new(9000).fpr(0.2);
        let hashes = |range: std::ops::Range<u64>| range.map(mix64).collect::<Vec<_>>();
        let of = |range| Golomb::build(&config, &mut hashes(range)).unwrap();
        let mut union = of(0..3000);
        union.merge(&of(3000..9000)).unwrap();
        let all = of(0..9000);
        assert!(union.values().eq(all.values()) && union.len() == all.len());
        assert_eq!(union.shape.rice, all.shape.rice);
        assert!(union.code.iter().eq(all.code.iter()));
        let other = Golomb::build(&Config::new(9001).fpr(0.2), &mut []).unwrap();
        assert!(union.merge(&other).is_err());
    }

    #[test]
    fn forged_files_are_refused_or_are_what_would_be_written() {
        let config = Config::new(300).fpr(0.1).set("chunk", 8);
        let file = Keyed::<Golomb>::build(&config, 0..200u64).unwrap();
        let file = file.to_bytes();
        // The number of keys, both parameters, and all sections: counts, index, code.
        let header = u32::from_le_bytes([file[12], file[13], file[14], file[15]]) as usize;
        let bytes = (64..72).chain(96..112).chain(header..file.len() - 24);
        let (mut refused, mut opened) = (0, 0);
        for bit in bytes.flat_map(|byte| 8 * byte..8 * byte + 8) {
            // One bit, and the one after it as well: two errors that may make up for each other.
            for flipped in [1u8 << (bit % 8), 3u8.rotate_left(bit as u32 % 8)] {
                let mut forged = file.clone();
                forged[bit / 8] ^= flipped;
                repair_checksums(&mut forged);
                let Ok(keyed) = Keyed::<Golomb>::open(forged.clone()) else {
                    refused += 1;
                    continue;
                };
                opened += 1;
                let read = keyed.filter();
                let shape = read.shape;
                let values = read.values();
                let again = Golomb::of_values(shape.range, shape.chunk, read.len, values).unwrap();
                let file_of = |filter| {
                    let keyed = Keyed::from_filter(filter, *keyed.hashing(), &config);
                    keyed.unwrap().to_bytes()
                };
                assert!(file_of(again) == file_of(read.clone()), "bit {bit}");
                assert!(keyed.to_bytes() == forged, "bit {bit}");
            }
        }
        assert!(refused > 500 && opened > 300, "{refused}, {opened}");
    }
}
