//! The Bloomier filter: a fixed map that stores no keys.
//!
//! The essay is at [`Bloomier`].

use crate::bits::{low_mask, mix64};
use crate::buf::Buf;
use crate::build::pairs;
use crate::config::{Config, Param, Tally};
use crate::error::{BuildError, BuildErrorKind, DecodeError, NoMemory};
use crate::filter::{Filter, Kind, Map};
use crate::format::{Decoder, Encoder};
use crate::option;
use crate::peel::binary_fuse::{Shape, fingerprint};
use crate::peel::peeler::{self, MOST_SLOTS, Order, STEPS};
use crate::{math, simd};

/// A fixed map from hashes to values of up to 64 bits, or a fixed set at any rate.
///
/// ```
/// use tamis::{Bloomier, Config, Keyed};
///
/// let ports = [("ssh", 22), ("http", 80), ("https", 443)];
/// let ports = Keyed::<Bloomier>::from_pairs(&Config::default().fpr(0.001), ports)?;
/// assert_eq!(ports.get("http"), Some(80));
///
/// let again: Keyed<Bloomier> = Keyed::open(ports.to_bytes())?;
/// assert_eq!(again.get("https"), Some(443));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///   segments      0        1        2        3        4      …
///            ┌────────┬────────┬────────┬────────┬────────┬─ … ─┐
///   slots    │  ▲     │      ▲ │ ▲      │   ▲    │        │     │   f + v bits a slot,
///            └──┼─────┴──────┼─┴─┼──────┴───┼────┴────────┴─ … ─┘   packed without gaps
///               p₀           p₁  p₂         p₃
///            places as those of a binary fuse filter, four a key
///
///   slots[p₀] ⊕ slots[p₁] ⊕ slots[p₂] ⊕ slots[p₃]  =  ┌── v bits ──┬──── f bits ────┐
///                                                     │ value      │ fingerprint    │
///                                                     └────────────┴────────────────┘
/// ```
///
/// The slots of a key combine to a fingerprint and a value, solved for all keys at once by
/// peeling (see the family's page). A key that was given is always answered with its own value.
/// One that was not combines to noise: with probability 2⁻ᶠ the noise agrees with its
/// fingerprint, and then the value is noise as well; otherwise it is told to be absent. With f =
/// 0 there is nothing to agree with: every key is answered, and only those that were given are
/// answered rightly. That is enough where every key asked for is known to be in the map, and the
/// smallest there is.
///
/// Without values (v = 0) it is a set, at the rate of any width and not only of 8, 16 or 32 bits;
/// so it is built by name, and by the program.
///
/// # Build
///
/// As [`BinaryFuse`](crate::BinaryFuse) with four slots a key, in one table whatever its size.
/// Pairs that are given twice are held once. Two values for one key are refused, with the
/// positions of both: [`BuildErrorKind::Conflict`]. So are two keys of one 64-bit hash, of which
/// there is a pair among n with probability n²/2⁶⁵ (one in a hundred at 600 million keys): they
/// would need two values in one place. Another seed of the key hash parts them.
///
/// A value cannot be changed in place: its four slots are parts of other keys' answers. Build the
/// map anew, or take a table that a perfect hash leads into, in which every key has a place of
/// its own.
///
/// # Cost
///
/// 1.077·(f + v) bits per key (a million keys): 17.2 bits for values of 8 bits at 0.39 %, 1.08
/// for one bit and f = 0. Small maps pay more: 1.23·(f + v) at 10⁴ keys. A lookup reads four
/// lines that do not depend on one another. Building takes 25 bytes a key beside the table, and
/// for a map 8 more, and the 16 of the pairs.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `bits` | 1 to 32, or 0 for a map | the fewest for the rate | bits of a fingerprint: more make the rate lower; a map with none answers every key |
///
/// # When to choose it
///
/// For a large fixed map from keys to small values (a shard, a category, a version, an offset)
/// where a wrong answer for an unknown key does little harm, or none can be asked for. For a set,
/// [`BinaryFuse8`](crate::BinaryFuse8) is faster where its rate is the one wanted; at 1 % this
/// one takes 7.5 bits per key where that takes 9.0.
///
/// # Claims that do not hold
///
/// The name promises more than there is: an absent key is *not* answered with nothing for
/// certain, and the fraction that is answered, 2⁻ᶠ, is paid for in every slot. The mutable form
/// of the paper, with a slot of its own for each key beside two bits that lead to it, takes 2.2
/// bits per key more than this one and still cannot take new keys.
///
/// A dynamic Bloomier filter, into which keys come later, is not here: this table is solved for all
/// keys at once, and what is known of others has been described, not built.
/// [`Perfect`](crate::Perfect) lets values change and keys go.
///
/// # Bibliography
///
/// - Chazelle, Kilian, Rubinfeld, Tal, *The Bloomier filter: an efficient data structure for
///   static support lookup tables*, 2004: values that are the xor of slots, found by peeling.
/// - Dietzfelbinger, Pagh, *Succinct data structures for retrieval and approximate membership*,
///   2008: retrieval without a fingerprint, and sets as retrieval.
/// - Graf, Lemire, *Binary fuse filters: fast and smaller than xor filters*, 2022: the places,
///   and how many slots they need.
#[derive(Clone, Debug)]
pub struct Bloomier {
    slots: Slots,
    shape: Shape,
    salt: u64,
    /// Bits of a fingerprint, and of a value.
    bits: u32,
    value_bits: u32,
    len: u64,
}

/// Slots of a key: a table in which a key has four is 4 % smaller than one with three.
const ARITY: usize = 4;
/// The places of a table of no slots.
const NOWHERE: Shape = Shape {
    arity: ARITY as u32,
    segment_length: 0,
    segment_count: 0,
};
/// Widths of a fingerprint in a set. A map may also have none.
const BITS: std::ops::RangeInclusive<u64> = 1..=32;

/// Slots of up to 96 bits, packed without gaps: more than [`Packed`](crate::packed::Packed) reads
/// at once.
#[derive(Clone, Debug)]
struct Slots {
    bytes: Buf<u8>,
    width: u32,
}

impl Slots {
    /// Bytes after the last slot, so that any slot can be read by one load from the byte that it
    /// starts in.
    const SPARE: u64 = 15;
    /// The widest slot that 8 bytes hold wherever it starts. 16 would more often reach into
    /// another line.
    const NARROW: u32 = 57;

    fn bytes_of(len: u64, width: u32) -> u64 {
        if len == 0 {
            return 0;
        }
        // At most 2³² slots of 96 bits.
        (len * u64::from(width)).div_ceil(8) + Slots::SPARE
    }

    fn zeroed(len: u64, width: u32) -> Result<Slots, NoMemory> {
        let bytes = Buf::zeroed(Slots::bytes_of(len, width))?;
        Ok(Slots { bytes, width })
    }

    /// The first byte of a slot, and the slot's first bit in it.
    #[inline(always)]
    fn start(&self, slot: u32) -> (usize, u32) {
        let bit = u64::from(slot) * u64::from(self.width);
        ((bit / 8) as usize, (bit % 8) as u32)
    }

    #[inline(always)]
    fn get(&self, slot: u32) -> u128 {
        let (byte, shift) = self.start(slot);
        if self.width <= Slots::NARROW {
            let mut word = [0; 8];
            word.copy_from_slice(&self.bytes[byte..byte + 8]);
            u128::from(u64::from_le_bytes(word) >> shift & low_mask(self.width))
        } else {
            let mut word = [0; 16];
            word.copy_from_slice(&self.bytes[byte..byte + 16]);
            u128::from_le_bytes(word) >> shift & self.mask()
        }
    }

    /// Writes a slot that holds 0; `value` must fit in it.
    fn fill(&mut self, slot: u32, value: u128) {
        debug_assert!(self.get(slot) == 0 && value <= self.mask());
        let (byte, shift) = self.start(slot);
        let bytes = &mut self.bytes.make_mut()[byte..byte + 16];
        for (byte, more) in bytes.iter_mut().zip((value << shift).to_le_bytes()) {
            *byte |= more;
        }
    }

    #[inline(always)]
    fn mask(&self) -> u128 {
        (1 << self.width) - 1
    }

    /// Reads as many slots of this width; bits after them must be 0.
    fn decode(input: &mut Decoder<'_>, len: u64, width: u32) -> Result<Slots, DecodeError> {
        let bytes = input.section::<u8>("slots", Slots::bytes_of(len, width))?;
        let end = len * u64::from(width);
        let after = (0..).zip(bytes.get((end / 8) as usize..).unwrap_or_default());
        for (i, &byte) in after {
            let byte = if i == 0 { byte >> (end % 8) } else { byte };
            if byte != 0 {
                let expected = "zero bits after the last slot";
                return Err(DecodeError::invalid("slots", u64::from(byte), expected));
            }
        }
        Ok(Slots { bytes, width })
    }
}

/// Hashes and their values, in the order given.
struct Pairs {
    hashes: Vec<u64>,
    values: Vec<u64>,
}

impl AsRef<[u64]> for Pairs {
    fn as_ref(&self) -> &[u64] {
        &self.hashes
    }
}

impl Pairs {
    /// Each hash once, or why that cannot be.
    fn distinct(self) -> Result<Pairs, BuildError> {
        let kept = pairs::distinct(&mut self.hashes.iter().copied(), &|i| self.values[i])?;
        let all = |of: &[u64]| kept.iter().map(|&position| of[position]).collect();
        Ok(Pairs {
            hashes: all(&self.hashes),
            values: all(&self.values),
        })
    }
}

impl Map for Bloomier {
    /// Values take as many bits as the greatest has: none where all are 0 and there is a
    /// fingerprint.
    ///
    /// The rate is that at which a hash that was not given is answered with some value. The
    /// parameter `bits=0` is for maps that are asked for members only: then every hash is
    /// answered, at no cost.
    fn from_pairs(
        config: &Config,
        pairs: impl IntoIterator<Item = (u64, u64)>,
    ) -> Result<Bloomier, BuildError> {
        let (hashes, values): (Vec<u64>, Vec<u64>) = pairs.into_iter().unzip();
        let (_, fpr) = config.check::<Bloomier>(&hashes)?;
        let bits = match config.param("bits", "a whole number from 0 to 32")? {
            Some(0) => 0,
            _ => bits_for(config, fpr)?,
        };
        let greatest = values.iter().copied().max().unwrap_or(0);
        // A slot has a bit at least.
        let value_bits = (64 - greatest.leading_zeros()).max(u32::from(bits == 0));
        let attempt = |pairs: &Pairs, number, tally: &Tally<'_>| {
            let bits = (bits, value_bits);
            Bloomier::attempt(&pairs.hashes, &pairs.values, bits, number, tally)
        };
        peeler::build(config, Pairs { hashes, values }, Pairs::distinct, attempt)
    }

    #[inline(always)]
    fn get(&self, hash: u64) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let (places, mut found) = self.places(hash);
        for place in places {
            found ^= self.slots.get(place);
        }
        let agrees = found as u64 & low_mask(self.bits) == 0;
        agrees.then_some((found >> self.bits) as u64)
    }

    fn value_bits(&self) -> u32 {
        self.value_bits
    }
}

impl Bloomier {
    /// Bits of a fingerprint; 0 where every hash is answered.
    pub fn fingerprint_bits(&self) -> u32 {
        self.bits
    }

    /// The slots of a hash, and its fingerprint.
    #[inline(always)]
    fn places(&self, hash: u64) -> ([u32; ARITY], u128) {
        self.places_of_salted(mix64(hash.wrapping_add(self.salt)))
    }

    #[inline(always)]
    fn places_of_salted(&self, salted: u64) -> ([u32; ARITY], u128) {
        let wanted = u64::from(fingerprint::<u32>(salted)) & low_mask(self.bits);
        (self.shape.places(salted), u128::from(wanted))
    }

    /// One attempt at a map, or at a set, which has no values.
    fn attempt(
        hashes: &[u64],
        values: &[u64],
        (bits, value_bits): (u32, u32),
        number: u32,
        tally: &Tally<'_>,
    ) -> Result<Option<Bloomier>, BuildError> {
        let len = hashes.len() as u64;
        let (salt, room) = peeler::attempt(number, len);
        let (shape, salt) = match math::binary_fuse_geometry(room, ARITY as u32) {
            Some((segment_length, segment_count)) => {
                let shape = Shape {
                    segment_length,
                    segment_count,
                    ..NOWHERE
                };
                (shape, salt)
            }
            None => (NOWHERE, 0),
        };
        if len > 0 && !shape.is_sound() {
            return Err(BuildErrorKind::TooLarge {
                unit: "slots",
                needed: room as f64 * math::binary_fuse_factor(room, ARITY as u32),
                most: MOST_SLOTS,
            }
            .into());
        }
        let mut sorted = Buf::<u64>::zeroed(values.len() as u64)?;
        let of_sorted = sorted.make_mut();
        let salted = peeler::salted(hashes, salt, |from, to| {
            if let Some(&value) = values.get(from) {
                of_sorted[to] = value;
            }
        })?;
        tally.step(1, STEPS);
        let places = |salted| shape.places::<ARITY>(salted);
        let count = shape.slots();
        let Some(order) = Order::find(&salted, count, count, places)? else {
            return Ok(None);
        };
        tally.step(2, STEPS);
        let mut map = Bloomier {
            slots: Slots::zeroed(count, bits + value_bits)?,
            shape,
            salt,
            bits,
            value_bits,
            len,
        };
        for (index, own) in order.filling() {
            let (places, wanted) = map.places_of_salted(salted[index]);
            let value = sorted.get(index).copied().unwrap_or(0);
            let whole = u128::from(value) << bits | wanted;
            // The slot to fill still holds 0, so it may take part in the xor.
            let rest = places
                .iter()
                .fold(whole, |x, &place| x ^ map.slots.get(place));
            map.slots.fill(own as u32, rest);
        }
        tally.step(STEPS, STEPS);
        Ok(Some(map))
    }
}

/// The width of a fingerprint that a configuration asks for.
fn bits_for(config: &Config, fpr: f64) -> Result<u32, BuildError> {
    let most = *BITS.end() as u32;
    let needed = (1..=most).find(|&bits| math::fingerprint_fpr(bits) <= fpr);
    config.bits::<Bloomier>(BITS, needed, math::fingerprint_fpr(most))
}

impl Filter for Bloomier {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.get(hash).is_some()
    }

    /// The number of distinct keys.
    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.slots.bytes.size_in_bytes()
    }

    fn fpr(&self) -> f64 {
        if self.len == 0 {
            0.0
        } else {
            math::fingerprint_fpr(self.bits)
        }
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        if self.len == 0 {
            return;
        }
        for place in self.places(hash).0 {
            simd::prefetch(&self.slots.bytes, self.slots.start(place).0);
        }
    }
}

impl Kind for Bloomier {
    const ABOUT: &'static str =
        "a fixed set at any rate, or a fixed map from keys to values of up to 64 bits";
    const PARAMS: &'static [Param] = &[Param {
        name: option::BITS.name,
        values: "1 to 32, or 0 for a map",
        default: "the fewest for the rate",
        about: "bits of a fingerprint: more make the rate lower; a map with none answers every key",
    }];

    /// The set of these hashes; [`Map::from_pairs`] makes a map.
    fn build(config: &Config, hashes: &mut [u64]) -> Result<Bloomier, BuildError> {
        let (_, fpr) = config.check::<Bloomier>(hashes)?;
        let bits = bits_for(config, fpr)?;
        peeler::build(config, hashes, peeler::distinct, |hashes, number, tally| {
            Bloomier::attempt(hashes, &[], (bits, 0), number, tally)
        })
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("bits", u64::from(self.bits));
        out.param("value_bits", u64::from(self.value_bits));
        out.param("segment_length", self.shape.segment_length);
        out.param("segment_count", self.shape.segment_count);
        out.param("salt", self.salt);
        out.section(&self.slots.bytes);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Bloomier, DecodeError> {
        let bits = input.param_in("bits", 0..=*BITS.end())? as u32;
        let value_bits = input.param_in("value_bits", 0..=64)? as u32;
        let segment_length = input.param("segment_length")?;
        let segment_count = input.param("segment_count")?;
        let salt = input.param("salt")?;
        if bits + value_bits == 0 {
            return Err(DecodeError::invalid(
                "value_bits",
                0,
                "1 or more where bits is 0",
            ));
        }
        let shape = Shape {
            segment_length,
            segment_count,
            ..NOWHERE
        };
        let len = input.len();
        let sound = match len {
            0 => segment_length == 0 && segment_count == 0 && salt == 0,
            _ => shape.is_sound() && shape.slots() >= len,
        };
        if !sound {
            let expected = "0 for no keys, with all that follows, or a power of two up to 2^18, for at most 2^32 slots, as many as keys or more";
            return Err(DecodeError::invalid(
                "segment_length",
                segment_length,
                expected,
            ));
        }
        Ok(Bloomier {
            slots: Slots::decode(input, shape.slots(), bits + value_bits)?,
            shape,
            salt,
            bits,
            value_bits,
            len,
        })
    }
}

#[cfg(test)]
mod tests;
