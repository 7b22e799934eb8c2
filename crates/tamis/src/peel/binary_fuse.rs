//! The binary fuse filter: the smallest simple static filter, three reads and two xors.
//!
//! The essay is at [`BinaryFuse`].

mod build;
mod solve;

use std::ops::BitXor;

use crate::bits::{fastrange, fastrange_by_halves, mix64};
use crate::buf::{Buf, Word};
use crate::build::shards::multiple;
use crate::build::source::Slice;
use crate::config::{Config, Param};
use crate::error::{BuildError, DecodeError};
use crate::filter::{Filter, Kind};
use crate::format::{Decoder, Encoder};
use crate::kinds::Declared;
use crate::lookup::{self, EIGHT, Ring};
use crate::math;
use crate::option;
use crate::simd::{self, Bits, Run, Segments, Table, places};
use solve::MOST_KEYS;

/// What a slot holds: `u8`, `u16` or `u32`. Sealed, as [`Word`] is.
pub trait Fingerprint: Word + BitXor<Output = Self> {
    /// The low bits of a hash.
    #[doc(hidden)]
    fn truncate(hash: u64) -> Self;
}

/// A static filter built once from all its keys; see [`BinaryFuse8`], [`BinaryFuse16`],
/// [`BinaryFuse32`].
///
/// ```
/// use tamis::{BinaryFuse8, Config, Keyed};
///
/// let words = ["tamis", "sieve", "strainer"];
/// let words: Keyed<BinaryFuse8> = Keyed::build(&Config::default(), words)?;
/// assert!(words.contains("sieve"));
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// # The idea
///
/// ```text
///   segments      0        1        2        3        4        5      …     SC+1
///            ┌────────┬────────┬────────┬────────┬────────┬────────┬─ … ─┬────────┐
///   slots    │        │  ▲     │      ▲ │ ▲      │        │        │     │        │
///            └────────┴──┼─────┴──────┼─┴─┼──────┴────────┴────────┴─ … ─┴────────┘
///                        p₀           p₁  p₂        p₀ anywhere in the first SC segments,
///                                                   p₁, p₂ in the two (or three) that follow
///   L slots each, L a power of two
///
///   present  ⇔  slots[p₀] ⊕ slots[p₁] ⊕ slots[p₂] = fingerprint(hash)
/// ```
///
/// Because the slots of a key lie in adjacent segments, peeling starts at the two ends, where few
/// keys compete, and burns inwards like a fuse. That succeeds with 12.5 % spare slots (arity 3)
/// or 7.5 % (arity 4) where slots spread over the whole table would need 23 %, and it walks
/// through memory in order.
///
/// # Build
///
/// A large set is cut into *shards* by a multiple of the hash: each is a table of its own, solved
/// by itself, under its own salt. All have the geometry of the largest, so that a shard starts
/// where its number says. Shards bound the memory and occupy several threads; the bytes do not
/// depend on how many.
///
/// In a shard, the hashes are salted and sorted by their first segment, then added to the table
/// segment by segment and peeled as far as possible in between, so that memory is traversed once
/// (`binary_fuse/solve.rs`). An attempt that fails, almost always because of repeated keys, which
/// no salt can separate, is followed by another salt. If there *are* repeats, all hashes are
/// sorted, the repeats dropped, and the build starts again. The bytes depend on the set of keys
/// alone, not on their order.
///
/// [`Spill`](crate::Spill) builds from hashes kept on disk.
///
/// The published parameters fail nearly always at certain sizes (n = 11 520, 12 340, 37 440 …):
/// just after the segment length doubles, whole segments round the spare slots away. There the
/// length is halved, at no cost in space. With four slots a key and fewer than 356 keys up to
/// half of the attempts fail, as segments are short; there they are twice as long. So an attempt
/// succeeds four times in five or more often at every size; see `math::binary_fuse_geometry`. The
/// geometry is stored, so readers need no rule.
///
/// # Cost
///
/// 9.04 bits per key at 0.39 % (u8, arity 3, a million keys), 8.62 with arity 4: 13 and 8 % above
/// the lower bound. Small sets pay more: 10.0 bits at 10⁴ keys. Beside the table and the hashes
/// given, which are reordered in place, building takes 9 bytes a key where there is one shard (81
/// bits per key with the table, at a million keys), and 18 bytes for each key of the shards at
/// work where there are several (27 bits per key at 10⁷, one thread).
///
/// The bench holds it, at 10⁷ keys, to be built twice as fast as xorf's filter and looked up in
/// batches 1.3 times as fast as by xorf's single calls (`cargo run --release -p tamis-bench --
/// check --kinds binary_fuse8`); `run --n 10000000 --fpr 0.00390625 --kinds binary_fuse8` in place
/// of `check` gives the memory.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `arity` | 3 or 4 | 3 | slots that a lookup reads: 3 are faster, 4 make the filter 4 % smaller |
/// | `shards` | 1 to 65536 | one up to 8 million keys | tables that are built apart: more take less memory while building, and more threads |
///
/// # When to choose it
///
/// When the set is known and fixed. The rate is that of the width: 0.39 % (u8), 0.0015 % (u16),
/// 2.3e-10 (u32).
///
/// # Bibliography
///
/// - Graf, Lemire, *Binary fuse filters: fast and smaller than xor filters*, 2022: this filter
///   and its parameters.
/// - Dietzfelbinger, Walzer, *Dense peelable random uniform hypergraphs*, 2019: why adjacent
///   segments peel so well.
/// - Botelho, Pagh, Ziviani, *Simple and space-efficient minimal perfect hash functions*, 2007:
///   peeling, and the xor that remembers the last key.
/// - Vigna, *ε-cost sharding*, 2025: shards of one geometry, and what they cost.
#[derive(Clone, Debug)]
pub struct BinaryFuse<F: Fingerprint> {
    /// The shards' tables, one after the other.
    pub(crate) slots: Segments<F>,
    /// One for each shard; none for the filter of no keys.
    pub(crate) salts: Buf<u64>,
    pub(crate) shape: Shape,
    len: u64,
}

/// 8-bit fingerprints: 0.39 % false positives.
pub type BinaryFuse8 = BinaryFuse<u8>;
/// 16-bit fingerprints: 0.0015 % false positives.
pub type BinaryFuse16 = BinaryFuse<u16>;
/// 32-bit fingerprints: 2.3·10⁻¹⁰ false positives.
pub type BinaryFuse32 = BinaryFuse<u32>;

/// Where a key's slots lie in a shard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) arity: u32,
    /// A power of two, at most 2¹⁸.
    pub(crate) segment_length: u64,
    /// How many segments a first slot may lie in.
    pub(crate) segment_count: u64,
}

/// The hash's fields that place the later slots are this wide.
const FIELD: u32 = 18;
pub(crate) const MOST_SHARDS: u64 = 1 << 16;

impl Shape {
    /// The geometry for so many keys a shard, or `extra` hundredths and `extra` keys more.
    fn new(keys: u64, arity: u32, extra: u32) -> Shape {
        let grown = keys + u64::from(extra) * (keys / 100 + u64::from(extra > 0));
        let (segment_length, segment_count) =
            math::binary_fuse_geometry(grown, arity).unwrap_or((1, 1));
        Shape {
            arity,
            segment_length,
            segment_count,
        }
    }

    /// Whether all slots of any hash lie in the table, as those of a shape that was read must.
    pub(crate) fn is_sound(&self) -> bool {
        (1..=1 << FIELD).contains(&self.segment_length)
            && self.segment_length.is_power_of_two()
            && (1..=MOST_KEYS).contains(&self.segment_count)
            && self.slots() <= u64::from(u32::MAX)
    }

    /// The slots of whole shards, for looking up.
    fn segments<F: Fingerprint>(&self, slots: Buf<F>) -> Segments<F> {
        Segments::new(slots, self.segment_length.trailing_zeros(), self.arity)
    }

    /// Slots of a shard.
    #[inline(always)]
    pub(crate) fn slots(&self) -> u64 {
        (self.segment_count + u64::from(self.arity) - 1) * self.segment_length
    }

    /// The first `ARITY` slots of a salted hash in its shard: this filter's geometry.
    #[inline(always)]
    pub(crate) fn places<const ARITY: usize>(&self, hash: u64) -> [u32; ARITY] {
        places(self.segment_length, self.first(hash), low(hash)).map(|place| place as u32)
    }

    /// The first slot of a salted hash in its shard.
    #[inline(always)]
    fn first(&self, hash: u64) -> u64 {
        fastrange(hash, self.firsts()).0
    }

    /// How many slots may be a key's first.
    #[inline(always)]
    fn firsts(&self) -> u64 {
        self.segment_count * self.segment_length
    }
}

/// What moves each slot of a salted hash in its segment; the first is where it is.
#[inline(always)]
fn low<const ARITY: usize>(hash: u64) -> [u64; ARITY] {
    // Arity 3 takes its two fields the other way round, as published.
    let shift = |i: u32| {
        if ARITY == 3 {
            (2 - i) * FIELD
        } else {
            (i - 1) * FIELD
        }
    };
    std::array::from_fn(|i| match i as u32 {
        0 => 0,
        i => hash >> shift(i),
    })
}

#[inline(always)]
pub(crate) fn fingerprint<F: Fingerprint>(hash: u64) -> F {
    F::truncate(hash ^ hash >> 32)
}

impl<F: Fingerprint> BinaryFuse<F> {
    /// How many slots a key has: 3 or 4.
    pub fn arity(&self) -> u32 {
        self.shape.arity
    }

    /// How many tables the keys are spread over.
    pub fn shards(&self) -> u64 {
        self.salts.len() as u64
    }

    /// The view of a filter of this arity; none of one without keys.
    #[inline(always)]
    fn reader<const ARITY: usize>(&self) -> Option<Reader<'_, F, ARITY>> {
        Some(Reader {
            slots: self.slots.run()?,
            salts: Table::new(&self.salts)?,
            shape: self.shape,
        })
    }
}

/// The tables, for looking up.
#[derive(Clone, Copy)]
struct Reader<'a, F, const ARITY: usize> {
    slots: Run<'a, F, ARITY>,
    salts: Table<'a, u64>,
    shape: Shape,
}

/// A key's first slot, and its salted hash, which has the others and what all must combine to.
#[derive(Clone, Copy, Default)]
struct Place {
    first: u64,
    hash: u64,
}

impl<F: Fingerprint, const ARITY: usize> Ring for Reader<'_, F, ARITY> {
    /// AVX2 has no product of whole words and would have to assemble it, which is slower than one
    /// hash at a time.
    const EIGHTS: bool = ARITY == 3;
    type Place = Place;
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        size_of_val(self.slots.words())
    }

    #[inline(always)]
    fn place(self, hash: u64) -> Place {
        let (&salt, shard, _) = self.salts.at(multiple(hash));
        let hash = mix64(hash.wrapping_add(salt));
        Place {
            first: shard * self.shape.slots() + self.shape.first(hash),
            hash,
        }
    }

    /// A loop in which the compiler finds the vectors.
    #[inline(always)]
    fn place_eight(self, hashes: [u64; EIGHT]) -> [Place; EIGHT] {
        let mut places = [Place::default(); EIGHT];
        for (place, hash) in places.iter_mut().zip(hashes) {
            *place = self.place_by_halves(hash);
        }
        places
    }

    #[inline(always)]
    fn prefetch(self, place: Place) {
        for slot in self.slots.places(place.first, low(place.hash)) {
            simd::prefetch(self.slots.words(), slot as usize);
        }
    }

    #[inline(always)]
    fn probe<B: Bits>(self, _: B, place: Place) -> bool {
        let found = self.slots.at(place.first, low(place.hash));
        let wanted = fingerprint::<F>(place.hash);
        found.into_iter().fold(wanted, |x, slot| x ^ slot) == F::default()
    }
}

impl<F: Fingerprint, const ARITY: usize> Reader<'_, F, ARITY> {
    /// The same place as [`place`](Ring::place) by the products that vectors have.
    #[inline(always)]
    fn place_by_halves(self, hash: u64) -> Place {
        let slots = self.shape.slots() as u32;
        let (&salt, shard) = self.salts.at_by_halves(multiple(hash));
        let hash = mix64(hash.wrapping_add(salt));
        let (first, _) = fastrange_by_halves(hash, self.shape.firsts() as u32);
        Place {
            first: shard * u64::from(slots) + first,
            hash,
        }
    }
}

impl<F: Fingerprint> Filter for BinaryFuse<F> {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        match self.shape.arity {
            3 => self
                .reader::<3>()
                .is_some_and(|reader| lookup::probe(reader, hash)),
            _ => self
                .reader::<4>()
                .is_some_and(|reader| lookup::probe(reader, hash)),
        }
    }

    /// The number of distinct keys.
    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.slots.size_in_bytes() + self.salts.size_in_bytes()
    }

    fn fpr(&self) -> f64 {
        if self.salts.is_empty() {
            0.0
        } else {
            math::fingerprint_fpr(8 * size_of::<F>() as u32)
        }
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        match self.shape.arity {
            3 => self
                .reader::<3>()
                .map(|reader| reader.prefetch(reader.place(hash))),
            _ => self
                .reader::<4>()
                .map(|reader| reader.prefetch(reader.place(hash))),
        };
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        match self.shape.arity {
            3 => lookup::ring(self.reader::<3>(), hashes, out),
            _ => lookup::ring(self.reader::<4>(), hashes, out),
        }
    }
}

impl<F: Fingerprint> Kind for BinaryFuse<F>
where
    Self: Declared,
{
    const ABOUT: &'static str = match size_of::<F>() {
        1 => "a fixed set at 0.39 %, in 9 bits per key",
        2 => "a fixed set at 0.0015 %, in 18 bits per key",
        _ => "a fixed set at 2.3e-10, in 36 bits per key",
    };
    const PARAMS: &'static [Param] = &[
        Param {
            name: option::ARITY.name,
            values: "3 or 4",
            default: "3",
            about: "slots that a lookup reads: 3 are faster, 4 make the filter 4 % smaller",
        },
        Param {
            name: option::SHARDS.name,
            values: "1 to 65536",
            default: "one up to 8 million keys",
            about: "tables that are built apart: more take less memory while building, and more threads",
        },
    ];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<BinaryFuse<F>, BuildError> {
        build::build(config, &mut Slice::new(hashes))
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("arity", u64::from(self.shape.arity));
        out.param("segment_length", self.shape.segment_length);
        out.param("segment_count", self.shape.segment_count);
        out.param("shards", self.shards());
        out.section(&self.salts);
        out.section(&self.slots);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<BinaryFuse<F>, DecodeError> {
        let arity = input.param_in("arity", 3..=4)? as u32;
        let segment_length = input.param_in("segment_length", 1..=1 << FIELD)?;
        let segment_count = input.param_in("segment_count", 1..=MOST_KEYS)?;
        let shards = input.param_in("shards", 0..=MOST_SHARDS)?;
        let shape = Shape {
            arity,
            segment_length,
            segment_count,
        };
        if !shape.is_sound() {
            return Err(DecodeError::invalid(
                "segment_length",
                segment_length,
                "a power of two, for at most 2^32 slots",
            ));
        }
        if (shards == 0) != input.is_empty() {
            return Err(DecodeError::invalid(
                "shards",
                shards,
                "0 exactly when there are no keys",
            ));
        }
        // As many slots as keys, or more: no others peel.
        let most = shape.slots() * shards;
        if input.len() > most {
            let expected = format!("at most {most}, one for each slot");
            return Err(DecodeError::invalid("keys", input.len(), expected));
        }
        let salts = input.section("salts", shards)?;
        let slots = shape.segments(input.section("slots", most)?);
        Ok(BinaryFuse {
            slots,
            salts,
            shape,
            len: input.len(),
        })
    }
}

macro_rules! fingerprint {
    ($($t:ty)*) => {$(
        impl Fingerprint for $t {
            #[inline(always)]
            fn truncate(hash: u64) -> $t {
                hash as $t
            }
        }
    )*};
}
fingerprint!(u8 u16 u32);

#[cfg(test)]
mod tests;
