//! The xor filter: three blocks of fingerprints, one slot of a key in each.
//!
//! The essay is at [`Xor`].

use crate::bits::{fastrange, mix64};
use crate::buf::Buf;
use crate::config::{Config, Tally};
use crate::error::{BuildError, BuildErrorKind, DecodeError};
use crate::filter::{Filter, Kind};
use crate::format::{Decoder, Encoder};
use crate::kinds::Declared;
use crate::lookup::{self, Ring};
use crate::peel::Fingerprint;
use crate::peel::binary_fuse::fingerprint;
use crate::peel::peeler::{self, MOST_SLOTS, Order, STEPS};
use crate::simd::Bits;
use crate::{math, simd};

/// A static filter of three blocks; see [`Xor8`], [`Xor16`].
///
/// ```
/// use tamis::{Config, Keyed, Xor8};
///
/// let words: Keyed<Xor8> = Keyed::build(&Config::default(), ["tamis", "sieve", "strainer"])?;
/// assert!(words.contains("sieve"));
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// # The idea
///
/// ```text
///              block 0               block 1               block 2
///        ┌───────────────────┬─────────────────────┬─────────────────────┐
///  slots │        ▲          │  ▲                  │               ▲     │
///        └────────┼──────────┴──┼──────────────────┴───────────────┼─────┘
///                 p₀            p₁                                 p₂
///
///  ⌊(32 + 1.23·n)/3⌋ slots in each block, of 8, 16 or 32 bits; pᵢ anywhere in block i
///
///   present  ⇔  slots[p₀] ⊕ slots[p₁] ⊕ slots[p₂] = fingerprint(hash)
/// ```
///
/// The places are cut from the salted hash g: pᵢ is that of g turned left by 21·i bits, so that
/// tables of up to 2²¹ slots a block take each from bits of its own. The fingerprint is the low
/// bits of g ⊕ (g ≫ 32).
///
/// # Build
///
/// By peeling (see the family's page). 1.23 slots a key are just above the 1.222 at which a
/// random table of three slots a key peels; the 32 more are for small sets. If an attempt fails,
/// equal hashes are dropped, which no salt can part; then other salts are tried, and from the
/// fifth attempt on more slots. Where a key could be given its slot in any of several blocks, the
/// last is avoided: that costs nothing, and [`XorPlus`](crate::XorPlus) does not store empty
/// slots there.
///
/// The bytes depend on the set of keys alone, not on their order or on repeats. There is one
/// table, whatever its size, and the slots of neighbours in it lie apart:
/// [`BinaryFuse`](crate::BinaryFuse) walks through memory in order, and is built faster (`cargo
/// run --release -p tamis-bench -- run --n 10000000 --fpr 0.00390625 --kinds xor8,binary_fuse8`).
///
/// # Cost
///
/// 1.23·f bits per key for a rate of 2⁻ᶠ: 9.84 bits at 0.39 %, 19.68 at 0.0015 %, 39.36 at
/// 2.3·10⁻¹⁰; 23 % above the lower bound. A lookup reads three lines that do not depend on one
/// another. Building takes 27 bytes a key beside the table.
///
/// # When to choose it
///
/// Hardly ever: from 27 000 keys on [`BinaryFuse`](crate::BinaryFuse) does the same in less space
/// (8 % less for a million), and is built faster. The xor filter is here because it is simple and
/// well known, and because [`XorPlus`](crate::XorPlus) is made of it. Against a Bloom filter it
/// saves space where the rate asked for is below 0.9 %, not at any rate as is sometimes read: a
/// width is a whole number of bytes.
///
/// # Bibliography
///
/// - Graf, Lemire, *Xor filters: faster and smaller than Bloom and cuckoo filters*, 2020: this
///   filter, and xor+.
/// - Botelho, Pagh, Ziviani, *Simple and space-efficient minimal perfect hash functions*, 2007:
///   three blocks, and 1.23.
/// - Molloy, *Cores in random hypergraphs and Boolean formulas*, 2005: where the 1.222 comes
///   from.
/// - Dietzfelbinger, Pagh, *Succinct data structures for retrieval and approximate membership*,
///   2008: a table whose slots combine to a value is a filter.
#[derive(Clone, Debug)]
pub struct Xor<F: Fingerprint> {
    slots: Buf<F>,
    blocks: Blocks,
    len: u64,
}

/// 8-bit fingerprints: 0.39 % false positives.
pub type Xor8 = Xor<u8>;
/// 16-bit fingerprints: 0.0015 % false positives.
pub type Xor16 = Xor<u16>;

/// Where the slots of a key lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    /// Slots of a block; 0 for no keys.
    pub(super) length: u64,
    pub(super) salt: u64,
}

impl Blocks {
    /// The slots of a hash and the hash salted: this filter's geometry.
    #[inline(always)]
    pub(super) fn places(&self, hash: u64) -> ([u32; 3], u64) {
        let salted = mix64(hash.wrapping_add(self.salt));
        (self.places_of_salted(salted), salted)
    }

    #[inline(always)]
    fn places_of_salted(&self, salted: u64) -> [u32; 3] {
        let place = |i: u32| {
            let (place, _) = fastrange(salted.rotate_left(21 * i), self.length);
            (u64::from(i) * self.length + place) as u32
        };
        [place(0), place(1), place(2)]
    }

    pub(super) fn encode(&self, out: &mut Encoder<'_>) {
        out.param("block", self.length);
        out.param("salt", self.salt);
    }

    pub(super) fn decode(input: &mut Decoder<'_>) -> Result<Blocks, DecodeError> {
        let length = input.param_in("block", 0..=MOST_SLOTS / 3)?;
        let salt = input.param("salt")?;
        // As many slots as keys, or more: no others peel.
        if (length == 0) != input.is_empty() || 3 * length < input.len() {
            let expected = format!("3 or more slots for {} keys, 0 for none", input.len());
            return Err(DecodeError::invalid("block", length, expected));
        }
        if length == 0 && salt != 0 {
            return Err(DecodeError::invalid(
                "salt",
                salt,
                "0 where there are no keys",
            ));
        }
        Ok(Blocks { length, salt })
    }
}

/// Refuses a rate below that of a fingerprint of type `F`.
pub(super) fn check_rate<F: Fingerprint, K: Kind>(fpr: f64) -> Result<(), BuildError> {
    let least = math::fingerprint_fpr(8 * size_of::<F>() as u32);
    if fpr >= least {
        return Ok(());
    }
    let kind = K::INFO.name;
    Err(BuildErrorKind::Unreachable { kind, fpr, least }.into())
}

impl<F: Fingerprint> Xor<F> {
    /// The three blocks, one after the other, and where a key's slots lie in them.
    #[inline(always)]
    pub(super) fn parts(&self) -> (&[F], Blocks) {
        (&self.slots, self.blocks)
    }

    /// `None` where there are no keys.
    #[inline(always)]
    fn reader(&self) -> Option<Reader<'_, F>> {
        let (slots, blocks) = self.parts();
        (!slots.is_empty()).then_some(Reader { slots, blocks })
    }

    /// The filter of these hashes. Reorders them where some are equal, or an attempt failed.
    pub(super) fn of(config: &Config, hashes: &mut [u64]) -> Result<Xor<F>, BuildError> {
        peeler::build(config, hashes, peeler::distinct, |hashes, number, tally| {
            Xor::attempt(hashes, number, tally)
        })
    }

    fn attempt(
        hashes: &[u64],
        number: u32,
        tally: &Tally<'_>,
    ) -> Result<Option<Xor<F>>, BuildError> {
        let (salt, room) = peeler::attempt(number, hashes.len() as u64);
        let slots = math::xor_slots(room);
        if slots > MOST_SLOTS {
            return Err(BuildErrorKind::TooLarge {
                unit: "slots",
                needed: slots as f64,
                most: MOST_SLOTS,
            }
            .into());
        }
        let (slots, blocks) = match hashes.len() {
            0 => (0, Blocks { length: 0, salt: 0 }),
            _ => (
                slots,
                Blocks {
                    length: slots / 3,
                    salt,
                },
            ),
        };
        let salted = peeler::salted(hashes, salt, |_, _| ())?;
        tally.step(1, STEPS);
        let places = |salted| blocks.places_of_salted(salted);
        let Some(order) = Order::find(&salted, slots, 2 * blocks.length, places)? else {
            return Ok(None);
        };
        tally.step(2, STEPS);
        let mut table = Buf::<F>::zeroed(slots)?;
        let cells = table.make_mut();
        for (index, own) in order.filling() {
            let hash = salted[index];
            // The slot to fill still holds 0, so it may take part in the xor.
            cells[own] = combined(cells, places(hash), fingerprint(hash));
        }
        tally.step(STEPS, STEPS);
        Ok(Some(Xor {
            slots: table,
            blocks,
            len: hashes.len() as u64,
        }))
    }
}

/// What three slots and one thing more combine to.
#[inline(always)]
fn combined<F: Fingerprint>(slots: &[F], places: [u32; 3], mut sum: F) -> F {
    for place in places {
        sum = sum ^ slots[place as usize];
    }
    sum
}

/// The slots, at least one, for looking up.
#[derive(Clone, Copy)]
struct Reader<'a, F> {
    slots: &'a [F],
    blocks: Blocks,
}

impl<F: Fingerprint> Ring for Reader<'_, F> {
    /// The slots, and the salted hash.
    type Place = ([u32; 3], u64);
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        size_of_val(self.slots)
    }

    #[inline(always)]
    fn place(self, hash: u64) -> ([u32; 3], u64) {
        self.blocks.places(hash)
    }

    #[inline(always)]
    fn prefetch(self, (places, _): ([u32; 3], u64)) {
        for place in places {
            simd::prefetch(self.slots, place as usize);
        }
    }

    #[inline(always)]
    fn probe<B: Bits>(self, _: B, (places, hash): ([u32; 3], u64)) -> bool {
        combined(self.slots, places, fingerprint::<F>(hash)) == F::default()
    }
}

impl<F: Fingerprint> Filter for Xor<F> {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        match self.reader() {
            Some(reader) => lookup::probe(reader, hash),
            None => false,
        }
    }

    /// The number of distinct keys.
    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.slots.size_in_bytes()
    }

    fn fpr(&self) -> f64 {
        if self.slots.is_empty() {
            0.0
        } else {
            math::fingerprint_fpr(8 * size_of::<F>() as u32)
        }
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        if let Some(reader) = self.reader() {
            reader.prefetch(reader.place(hash));
        }
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::ring(self.reader(), hashes, out);
    }
}

impl<F: Fingerprint> Kind for Xor<F>
where
    Self: Declared,
{
    const ABOUT: &'static str = match size_of::<F>() {
        1 => "a fixed set at 0.39 %, in 9.8 bits per key: the simplest",
        _ => "a fixed set at 0.0015 %, in 20 bits per key: the simplest",
    };

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Xor<F>, BuildError> {
        let (_, fpr) = config.check::<Xor<F>>(hashes)?;
        check_rate::<F, Xor<F>>(fpr)?;
        Xor::of(config, hashes)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        self.blocks.encode(out);
        out.section(&self.slots);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Xor<F>, DecodeError> {
        let blocks = Blocks::decode(input)?;
        Ok(Xor {
            slots: input.section("slots", 3 * blocks.length)?,
            blocks,
            len: input.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::repair_checksums;
    use crate::keyed::Keyed;
    use crate::peel::peeler::ATTEMPTS;

    fn keys(n: u64, set: u64) -> Vec<u64> {
        (0..n).map(|i| mix64(set << 40 | i)).collect()
    }

    /// How many attempts it took: the salt tells.
    fn attempts<F: Fingerprint>(filter: &Xor<F>) -> u32 {
        let number = |&i: &u32| peeler::attempt(i, 0).0 == filter.blocks.salt;
        (0..ATTEMPTS).find(number).unwrap() + 1
    }

    #[test]
    fn size_and_rate_at_a_million_keys_are_those_of_the_essay() {
        // C1: 9.84 bits per key at 0.3906 %.
        let hashes = keys(1_000_000, 1);
        let filter = Xor8::of(&Config::default(), &mut hashes.clone()).unwrap();
        let bits = filter.slots.len() as f64 * 8.0 / 1e6;
        assert!((bits - 9.84).abs() < 0.001, "{bits}");
        assert!(hashes.iter().all(|&h| filter.contains(h)));
        let queries = 2_000_000;
        let absent = keys(queries, 2);
        let hits = absent.iter().filter(|&&h| filter.contains(h)).count() as u64;
        let (low, high) = math::binomial_interval(queries, 1.0 / 256.0, 1e-9);
        assert!((low..=high).contains(&hits), "{hits} not in {low}..={high}");
        let filter = Xor16::of(&Config::default(), &mut hashes.clone()).unwrap();
        let bits = filter.slots.len() as f64 * 16.0 / 1e6;
        assert!((bits - 19.68).abs() < 0.001, "{bits}");
        assert!(hashes.iter().all(|&h| filter.contains(h)));
    }

    #[test]
    fn construction_needs_one_attempt_at_nearly_every_size() {
        for n in [10, 100, 1000, 3000, 11_520, 37_440] {
            let sets = 100;
            let of = |set| attempts(&Xor8::of(&Config::default(), &mut keys(n, set)).unwrap());
            let mean = f64::from((0..sets).map(of).sum::<u32>()) / sets as f64;
            assert!(mean <= 1.3, "n = {n}: {mean} attempts on average");
        }
    }

    #[test]
    fn every_small_size_and_every_power_of_two_builds() {
        let around = (7..17).flat_map(|i| [(1 << i) - 1, 1 << i, (1 << i) + 1]);
        for n in (0..=64).chain(around) {
            for set in 0..if n <= 64 { 50 } else { 2 } {
                let hashes = keys(n, set);
                let filter = Xor16::of(&Config::default(), &mut hashes.clone()).unwrap();
                let found = hashes.iter().filter(|&&h| filter.contains(h)).count();
                assert_eq!(
                    (found, filter.len()),
                    (hashes.len(), n),
                    "n = {n}, set {set}"
                );
            }
        }
    }

    #[test]
    fn neither_repeats_nor_order_change_the_bytes() {
        let distinct = keys(1000, 3);
        let once = Xor16::of(&Config::default(), &mut distinct.clone()).unwrap();
        for copies in [1, 2, 3, 100] {
            let mut repeated: Vec<u64> = distinct.iter().flat_map(|&h| vec![h; copies]).collect();
            repeated.reverse();
            let filter = Xor16::of(&Config::default(), &mut repeated).unwrap();
            assert_eq!(filter.len(), 1000);
            assert!(*filter.slots == *once.slots && filter.blocks.salt == once.blocks.salt);
        }
        let filter = Xor8::of(&Config::default(), &mut [7; 10_000]).unwrap();
        assert_eq!((filter.len(), filter.contains(7)), (1, true));
    }

    #[test]
    fn each_slot_lies_in_its_own_block_of_any_length() {
        for length in [1, 2, 11, 1 << 21, (1 << 21) + 1, MOST_SLOTS / 3] {
            let blocks = Blocks { length, salt: 5 };
            for hash in (0..10_000).chain(u64::MAX - 10..=u64::MAX) {
                let (places, _) = blocks.places(hash);
                for (i, place) in (0..).zip(places) {
                    assert_eq!(u64::from(place) / length, i, "{length}, {hash}");
                }
            }
        }
    }

    #[test]
    fn a_rate_below_the_width_is_refused_with_the_width_s_own() {
        let error = Xor8::build(&Config::default().fpr(0.001), &mut [1]).unwrap_err();
        let least = 1.0 / 256.0;
        let (kind, fpr) = ("xor8", 0.001);
        let expected = BuildErrorKind::Unreachable { kind, fpr, least };
        assert_eq!(error.kind(), &expected);
        assert!(Xor16::build(&Config::default().fpr(0.001), &mut [1]).is_ok());
    }

    #[test]
    fn forged_parameters_are_refused_or_answer() {
        let filter: Keyed<Xor16> = Keyed::build(&Config::default(), 0..50u64).unwrap();
        let file = filter.to_bytes();
        // The number of keys, the length of a block, the salt.
        for bit in (64 * 8..72 * 8).chain(96 * 8..112 * 8) {
            let mut forged = file.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            repair_checksums(&mut forged);
            if let Ok(forged) = Keyed::<Xor16>::open(forged) {
                assert!(forged.filter().len() <= forged.filter().slots.len() as u64);
                (0..300u64).for_each(|i| _ = forged.contains(&i));
            }
        }
    }
}
