//! The xor+ filter: an xor filter that does not store the empty slots of its last block.
//!
//! The essay is at [`XorPlus`].

use std::hint::select_unpredictable;

use crate::buf::Buf;
use crate::config::Config;
use crate::error::{BuildError, DecodeError, NoMemory};
use crate::filter::{Filter, Kind};
use crate::format::{Decoder, Encoder};
use crate::kinds::Declared;
use crate::lookup::{self, Leveled, Ring};
use crate::peel::Fingerprint;
use crate::peel::binary_fuse::fingerprint;
use crate::peel::xor::{Blocks, Xor, check_rate};
use crate::simd::Bits;
use crate::{math, simd};

/// An xor filter whose last block is stored without its empty slots; see [`XorPlus8`],
/// [`XorPlus16`].
///
/// ```
/// use tamis::{Config, Keyed, XorPlus8};
///
/// let words: Keyed<XorPlus8> = Keyed::build(&Config::default(), ["tamis", "sieve", "strainer"])?;
/// assert!(words.contains("sieve"));
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// # The idea
///
/// ```text
///       block 0         block 1        block 2, as it was:   0  a3  0  0  7c  1f  0  90
///   ┌──────────────┬──────────────┐
///   │ plain        │ plain        │    groups   ┌── 32 ──┬──────── 224 bits ────────┐
///   └──────────────┴──────────────┘             │ before │ 0  1  0  0  1  1  0  1  …│ …
///                                               └────────┴──────────────────────────┘
///                                      kept     │ 0  a3  7c  1f  90 …
/// ```
///
/// A table of 1.23 slots a key has 0.23 that no key needed. [`Xor`] gives a key a slot of the
/// last block only where it has to, so that most of these are there: of the last block 64 % are
/// in use. A bit a slot says which. The list `kept` has a 0, for all others, and then what those
/// in use hold: the entry of a slot is 0, or the number of ones up to its own. A *group* of 256
/// bits begins with the number of those before the group, and ends with the bits of 224 slots. It
/// lies in one cache line, and a lookup has no branch.
///
/// # Lookup
///
/// As [`Xor`], with one more read, which has to wait for that of the group. A batch prefetches the
/// two plain slots and the group, but not the kept entry, whose place it does not know yet.
///
/// # Cost
///
/// 0.82·f + 0.41·(0.64·f + 8/7) bits per key: 9.13 at 0.39 % (f = 8), 17.79 at 0.0015 % (f = 16).
/// The paper's rank directory takes a quarter of the bits where this one takes a seventh: 9.17
/// and 17.83.
///
/// # When to choose it
///
/// Where an xor filter is wanted and space counts more than time.
/// [`BinaryFuse`](crate::BinaryFuse) is smaller at 8 bits (9.04), and faster; at 16 bits xor+ is
/// the smaller (18.09 with three slots a key, but 17.24 with four).
///
/// # Bibliography
///
/// - Graf, Lemire, *Xor filters: faster and smaller than Bloom and cuckoo filters*, 2020: xor+,
///   and its sizes.
/// - Jacobson, *Space-efficient static trees and graphs*, 1989: counting ones by a directory.
#[derive(Clone, Debug)]
pub struct XorPlus<F: Fingerprint> {
    /// Blocks 0 and 1.
    plain: Buf<F>,
    /// Which slots of block 2 are not 0: four words a group.
    groups: Buf<u64>,
    /// A 0, and the slots of block 2 that are not 0, in order.
    kept: Buf<F>,
    blocks: Blocks,
    len: u64,
}

/// 8-bit fingerprints: 0.39 % false positives.
pub type XorPlus8 = XorPlus<u8>;
/// 16-bit fingerprints: 0.0015 % false positives.
pub type XorPlus16 = XorPlus<u16>;

/// Words of a group.
const GROUP: usize = 4;
/// Bits of a group that count; those after them are of one slot each.
const COUNT: u64 = 32;
/// Slots of a group.
const SLOTS: u64 = 64 * GROUP as u64 - COUNT;

/// The first word of a slot's group, and the slot's bit there.
#[inline(always)]
fn bit_of(slot: u64) -> (usize, u64) {
    ((slot / SLOTS) as usize * GROUP, COUNT + slot % SLOTS)
}

/// The bits of a group's word that are of slots.
#[inline(always)]
fn map(group: &[u64; GROUP], word: usize) -> u64 {
    if word == 0 {
        group[0] >> COUNT << COUNT
    } else {
        group[word]
    }
}

fn ones(group: &[u64; GROUP]) -> u32 {
    (0..GROUP).map(|word| map(group, word).count_ones()).sum()
}

/// Marks the slots that are not 0, and counts those before each group.
fn groups_of<F: Fingerprint>(slots: &[F]) -> Result<Buf<u64>, NoMemory> {
    let count = (slots.len() as u64).div_ceil(SLOTS);
    let mut groups = Buf::<u64>::zeroed(count * GROUP as u64)?;
    let words = groups.make_mut();
    for (slot, &value) in (0..).zip(slots) {
        let (start, bit) = bit_of(slot);
        words[start + (bit / 64) as usize] |= u64::from(value != F::default()) << (bit % 64);
    }
    let mut before = 0;
    for group in words.as_chunks_mut().0 {
        let in_group = ones(group);
        group[0] |= u64::from(before);
        before += in_group;
    }
    Ok(groups)
}

impl<F: Fingerprint> XorPlus<F> {
    fn from_xor(filter: &Xor<F>) -> Result<XorPlus<F>, NoMemory> {
        let (slots, blocks) = filter.parts();
        let (plain, last) = slots.split_at(2 * blocks.length as usize);
        let in_use = || last.iter().copied().filter(|&slot| slot != F::default());
        let mut kept = Buf::<F>::zeroed(1 + in_use().count() as u64)?;
        for (entry, slot) in kept.make_mut()[1..].iter_mut().zip(in_use()) {
            *entry = slot;
        }
        Ok(XorPlus {
            plain: Buf::copied(plain)?,
            groups: groups_of(last)?,
            kept,
            blocks,
            len: filter.len(),
        })
    }

    #[inline(always)]
    fn reader(&self) -> Reader<'_, F> {
        Reader {
            plain: &self.plain,
            groups: &self.groups,
            kept: &self.kept,
            blocks: self.blocks,
        }
    }
}

/// The filter, for looking up.
#[derive(Clone, Copy)]
struct Reader<'a, F: Fingerprint> {
    plain: &'a [F],
    groups: &'a [u64],
    kept: &'a [F],
    blocks: Blocks,
}

impl<F: Fingerprint> Reader<'_, F> {
    /// A slot of block 2.
    #[inline(always)]
    fn last(self, slot: u64) -> F {
        let (start, bit) = bit_of(slot);
        let mut group = [0; GROUP];
        group.copy_from_slice(&self.groups[start..start + GROUP]);
        let (word, bit) = ((bit / 64) as usize, bit % 64);
        let in_use = group[word] >> bit & 1 == 1;
        // All bits of the words before the slot's, and those before its own: masks, as a branch
        // would be taken at random.
        let mut rank = u64::from(group[0] as u32);
        for i in 0..GROUP {
            let whole = u64::from(i < word).wrapping_neg();
            let part = u64::from(i == word).wrapping_neg() & ((1 << bit) - 1);
            rank += u64::from((map(&group, i) & (whole | part)).count_ones());
        }
        self.kept[select_unpredictable(in_use, rank as usize + 1, 0)]
    }
}

impl<F: Fingerprint> Ring for Reader<'_, F> {
    type Place = ([u32; 3], u64);
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        size_of_val(self.plain) + size_of_val(self.groups) + size_of_val(self.kept)
    }

    #[inline(always)]
    fn place(self, hash: u64) -> ([u32; 3], u64) {
        self.blocks.places(hash)
    }

    #[inline(always)]
    fn prefetch(self, ([a, b, c], _): ([u32; 3], u64)) {
        simd::prefetch(self.plain, a as usize);
        simd::prefetch(self.plain, b as usize);
        let (start, _) = bit_of(u64::from(c) - 2 * self.blocks.length);
        simd::prefetch(self.groups, start);
    }

    #[inline(always)]
    fn probe<B: Bits>(self, _: B, ([a, b, c], hash): ([u32; 3], u64)) -> bool {
        if self.plain.is_empty() {
            return false;
        }
        let plain = self.plain[a as usize] ^ self.plain[b as usize];
        let last = self.last(u64::from(c) - 2 * self.blocks.length);
        plain ^ last == fingerprint(hash)
    }
}

/// Only at the best level is counting ones an instruction.
impl<F: Fingerprint> Leveled for XorPlus<F> {
    type Answer = bool;

    #[inline(always)]
    fn look_up<B: Bits>(&self, bits: B, hash: u64) -> bool {
        let reader = self.reader();
        reader.probe(bits, reader.place(hash))
    }
}

impl<F: Fingerprint> Filter for XorPlus<F> {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        lookup::single(self, hash)
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::ring(Some(self.reader()), hashes, out);
    }

    /// The number of distinct keys.
    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.plain.size_in_bytes() + self.groups.size_in_bytes() + self.kept.size_in_bytes()
    }

    fn fpr(&self) -> f64 {
        if self.plain.is_empty() {
            0.0
        } else {
            math::fingerprint_fpr(8 * size_of::<F>() as u32)
        }
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        self.reader().prefetch(self.blocks.places(hash));
    }
}

impl<F: Fingerprint> Kind for XorPlus<F>
where
    Self: Declared,
{
    const ABOUT: &'static str = match size_of::<F>() {
        1 => "a fixed set at 0.39 %: an xor filter without its empty slots",
        _ => "a fixed set at 0.0015 %: an xor filter without its empty slots",
    };

    fn build(config: &Config, hashes: &mut [u64]) -> Result<XorPlus<F>, BuildError> {
        let (_, fpr) = config.check::<XorPlus<F>>(hashes)?;
        check_rate::<F, XorPlus<F>>(fpr)?;
        Ok(XorPlus::from_xor(&Xor::of(config, hashes)?)?)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        self.blocks.encode(out);
        out.section(&self.plain);
        out.section(&self.groups);
        out.section(&self.kept);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<XorPlus<F>, DecodeError> {
        let blocks = Blocks::decode(input)?;
        let plain = input.section("blocks 0 and 1", 2 * blocks.length)?;
        let words = blocks.length.div_ceil(SLOTS) * GROUP as u64;
        let groups = input.section::<u64>("groups", words)?;
        let mut before = 0;
        for group in groups.as_chunks().0 {
            let told = u64::from(group[0] as u32);
            if told != before {
                let expected = format!("{before}, the ones before the group");
                return Err(DecodeError::invalid("a group's count", told, expected));
            }
            before += u64::from(ones(group));
        }
        let past = (blocks.length..blocks.length.next_multiple_of(SLOTS)).map(bit_of);
        for (start, bit) in past {
            if groups[start + (bit / 64) as usize] >> (bit % 64) & 1 == 1 {
                return Err(DecodeError::invalid(
                    "a group's bit",
                    bit,
                    "0 after the last slot",
                ));
            }
        }
        let kept = input.section::<F>("kept", before + 1)?;
        let wrong = |(i, &slot): (usize, &F)| (i == 0) != (slot == F::default());
        if let Some(entry) = kept.iter().enumerate().position(wrong) {
            let expected = "0 in the first entry, and no other";
            return Err(DecodeError::invalid("kept", entry as u64, expected));
        }
        Ok(XorPlus {
            plain,
            groups,
            kept,
            blocks,
            len: input.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::format::repair_checksums;
    use crate::key::Hashing;
    use crate::keyed::Keyed;

    fn keys(n: u64, set: u64) -> Vec<u64> {
        (0..n).map(|i| mix64(set << 40 | i)).collect()
    }

    fn plus<F: Fingerprint>(hashes: &[u64]) -> XorPlus<F>
    where
        XorPlus<F>: Kind,
    {
        XorPlus::build(&Config::default(), &mut hashes.to_vec()).unwrap()
    }

    #[test]
    fn size_and_rate_at_a_million_keys_are_those_of_the_essay() {
        // C1: 9.17 bits per key at 0.3906 % with a directory of a quarter of the bits; 17.83 with
        // 16 bits.
        let hashes = keys(1_000_000, 1);
        let bits_per_key = |bytes: usize| bytes as f64 * 8.0 / 1e6;
        let filter = plus::<u8>(&hashes);
        let bits = bits_per_key(filter.size_in_bytes());
        assert!(bits < math::xor_plus_bits_per_key(8), "{bits}");
        assert!((bits - 9.13).abs() < 0.02, "{bits}");
        assert!(hashes.iter().all(|&h| filter.contains(h)));
        let share = filter.kept.len() as f64 / filter.blocks.length as f64;
        assert!((share - 0.64).abs() < 0.01, "{share} of the last block");
        let queries = 2_000_000;
        let absent = keys(queries, 2);
        let hits = absent.iter().filter(|&&h| filter.contains(h)).count() as u64;
        let (low, high) = math::binomial_interval(queries, 1.0 / 256.0, 1e-9);
        assert!((low..=high).contains(&hits), "{hits} not in {low}..={high}");
        let bits = bits_per_key(plus::<u16>(&hashes).size_in_bytes());
        assert!((bits - 17.79).abs() < 0.04, "{bits}");
    }

    #[test]
    fn every_slot_is_that_of_the_xor_filter() {
        for n in (0..=64).chain([223, 224, 225, 500, 544, 546, 548, 20_000]) {
            let xor = Xor::<u16>::of(&Config::default(), &mut keys(n, 3)).unwrap();
            let filter = plus::<u16>(&keys(n, 3));
            let (slots, blocks) = xor.parts();
            let length = blocks.length;
            for slot in 0..length {
                let expected = slots[(2 * length + slot) as usize];
                assert_eq!(
                    filter.reader().last(slot),
                    expected,
                    "{n} keys, slot {slot}"
                );
            }
            assert_eq!(*filter.plain, slots[..2 * length as usize]);
        }
    }

    #[test]
    fn forged_files_are_refused_or_answer() {
        let filter: Keyed<XorPlus8> = Keyed::build(&Config::default(), 0..300u64).unwrap();
        let file = filter.to_bytes();
        let header = u32::from_le_bytes([file[12], file[13], file[14], file[15]]) as usize;
        let bytes = (64..72).chain(96..112).chain(header..file.len() - 40);
        let (mut refused, mut opened) = (0, 0);
        for bit in bytes.flat_map(|byte| 8 * byte..8 * byte + 8) {
            let mut forged = file.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            repair_checksums(&mut forged);
            match Keyed::<XorPlus8>::open(forged) {
                Err(_) => refused += 1,
                Ok(forged) => {
                    opened += 1;
                    (0..600u64).for_each(|i| _ = forged.contains(&i));
                }
            }
        }
        assert!(refused > 200 && opened > 2000, "{refused}, {opened}");
    }

    #[test]
    fn what_no_writer_writes_is_refused() {
        let built = plus::<u8>(&keys(600, 4));
        let open = |change: &dyn Fn(&mut XorPlus8)| {
            let mut filter = built.clone();
            change(&mut filter);
            let keyed = Keyed::from_filter(filter, Hashing::default(), &Config::default()).unwrap();
            Keyed::<XorPlus8>::open(keyed.to_bytes()).map(|_| ())
        };
        assert!(open(&|_| ()).is_ok());
        assert!(open(&|f| f.kept.make_mut()[0] = 1).is_err());
        assert!(open(&|f| f.kept.make_mut()[1] = 0).is_err());
        assert!(open(&|f| f.groups.make_mut()[GROUP] += 1).is_err());
        // A one after the last slot, with the count and an entry to match.
        let one_more = |f: &mut XorPlus8| {
            *f.groups.make_mut().last_mut().unwrap() |= 1 << 63;
            let kept: Vec<u8> = f.kept.iter().copied().chain([1]).collect();
            f.kept = Buf::copied(&kept).unwrap();
        };
        assert!(!built.blocks.length.is_multiple_of(SLOTS) && open(&one_more).is_err());
        assert!(open(&|f| f.len = 0).is_err());
        assert!(open(&|f| f.len = 3 * f.blocks.length + 1).is_err());
        assert!(open(&|f| f.len = 3 * f.blocks.length).is_ok());
    }
}
