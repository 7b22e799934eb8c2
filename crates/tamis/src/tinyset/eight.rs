//! Lookups of eight keys at once, in blocks of the default shape and size, where the processor
//! has vectors for it.

use super::fast::Default as Usual;
use crate::bits::fastrange_by_halves;
use crate::lookup::EIGHT;
use crate::simd::tinyset::{Cut, Eight};
use crate::simd::{self, Bits, Op};

/// Bytes of a block.
pub(super) const BLOCK: usize = 64;

/// How blocks are cut, for the vector code.
const fn cut<const REMOVABLE: bool>() -> Cut {
    let mut cut = Cut {
        short: [0; 128],
        longer: [0; 128],
        flags: Usual::<BLOCK, REMOVABLE>::SHAPE.header() - BLOCK as u32,
    };
    let mut slots = 0;
    while slots < 128 {
        [cut.short[slots], cut.longer[slots]] = Usual::<BLOCK, REMOVABLE>::WIDTHS[slots];
        slots += 1;
    }
    cut
}

static CUTS: [Cut; 2] = [cut::<false>(), cut::<true>()];

/// Looks up eight hashes among fewer than 2³² blocks.
#[inline(always)]
pub(super) fn look_up<B: Bits, const REMOVABLE: bool>(
    bits: B,
    blocks: &[[u8; BLOCK]],
    hashes: [u64; EIGHT],
) -> [bool; EIGHT] {
    let keys = place(blocks.len() as u32, hashes);
    let answers = keys.look_up(bits, blocks, &CUTS[usize::from(REMOVABLE)]);
    let mut out = [false; EIGHT];
    for (lane, out) in out.iter_mut().enumerate() {
        *out = answers.found >> lane & 1 == 1;
    }
    let mut unsure = answers.unsure;
    while unsure != 0 {
        let lane = unsure.trailing_zeros() as usize;
        out[lane] = simd::dispatch(One::<REMOVABLE>(blocks, hashes[lane]));
        unsure &= unsure - 1;
    }
    out
}

/// Computes where eight keys are, by products that vectors have.
#[inline(always)]
fn place(blocks: u32, hashes: [u64; EIGHT]) -> Eight {
    let mut keys = Eight::default();
    for (lane, &hash) in hashes.iter().enumerate() {
        (keys.block[lane], keys.rest[lane]) = fastrange_by_halves(hash, blocks);
    }
    keys
}

/// One lookup, for keys that the vectors leave over. A call, to keep the loop over vectors short.
struct One<'a, const REMOVABLE: bool>(&'a [[u8; BLOCK]], u64);

impl<const REMOVABLE: bool> Op for One<'_, REMOVABLE> {
    const WIDE: bool = true;
    type Out = bool;

    #[inline(always)]
    fn run<B: Bits>(self, bits: B) -> bool {
        let One(blocks, hash) = self;
        let (block, chain, remainder) = Usual::<BLOCK, REMOVABLE>::place(hash, blocks.len() as u64);
        Usual::<BLOCK, REMOVABLE>::contains(bits, &blocks[block], chain, remainder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::{fastrange, mix64};
    use crate::simd::{Portable, dispatch};

    struct LookUp<'a, const REMOVABLE: bool>(&'a [[u8; BLOCK]], &'a [u64]);
    impl<const REMOVABLE: bool> Op for LookUp<'_, REMOVABLE> {
        const WIDE: bool = true;
        type Out = Vec<bool>;
        #[inline(always)]
        fn run<B: Bits>(self, bits: B) -> Vec<bool> {
            let (groups, rest) = self.1.as_chunks::<EIGHT>();
            let mut last = [0; EIGHT];
            last[..rest.len()].copy_from_slice(rest);
            let groups = groups.iter().chain([&last]);
            let mut out: Vec<bool> = groups
                .flat_map(|&group| look_up::<B, REMOVABLE>(bits, self.0, group))
                .collect();
            out.truncate(self.1.len());
            out
        }
    }

    /// What the plain code, slot by slot, says of every hash.
    fn plainly<const REMOVABLE: bool>(blocks: &[[u8; BLOCK]], hashes: &[u64]) -> Vec<bool> {
        let shape = Usual::<BLOCK, REMOVABLE>::SHAPE;
        let plain = |&hash: &u64| {
            let (block, chain, rest) = Usual::<BLOCK, REMOVABLE>::place(hash, blocks.len() as u64);
            shape.count(&blocks[block], chain, rest) > 0
        };
        hashes.iter().map(plain).collect()
    }

    fn agree<const REMOVABLE: bool>(blocks: &[[u8; BLOCK]], hashes: &[u64], what: &str) -> usize {
        let plain = plainly::<REMOVABLE>(blocks, hashes);
        let by_vector = dispatch(LookUp::<REMOVABLE>(blocks, hashes));
        assert_eq!(by_vector, plain, "{what}");
        // Where there are no vectors, every key is left over.
        let left_over = LookUp::<REMOVABLE>(blocks, hashes).run(Portable);
        assert_eq!(left_over, plain, "{what}");
        plain.iter().filter(|&&found| found).count()
    }

    /// Blocks of every load up to the fullest, and after removals.
    fn filled_blocks_agree<const REMOVABLE: bool>() {
        let shape = Usual::<BLOCK, REMOVABLE>::SHAPE;
        let mut found = 0;
        for (round, &number) in [1, 2, 7, 100].iter().enumerate() {
            let mut blocks = vec![[0; BLOCK]; number];
            let mut members = Vec::new();
            let draw = |i: u64| mix64(i ^ (round as u64) << 40);
            for i in 0..160 * number as u64 {
                let hash = draw(i);
                let (block, chain, rest) = Usual::<BLOCK, REMOVABLE>::place(hash, number as u64);
                let Some(next) = shape.inserted(&blocks[block], chain, rest) else {
                    continue;
                };
                blocks[block] = next;
                members.push(hash);
                if REMOVABLE && i % 7 == 3 {
                    let gone = members.swap_remove(draw(!i) as usize % members.len());
                    let (block, chain, rest) =
                        Usual::<BLOCK, REMOVABLE>::place(gone, number as u64);
                    blocks[block] = shape
                        .removed(&blocks[block], chain, rest)
                        .expect("a member");
                }
                if i % (3 * number as u64) == 0 {
                    let absent = (0..200).map(|j| draw(i << 20 | j | 1 << 60));
                    let hashes: Vec<u64> = members.iter().copied().chain(absent).collect();
                    found += agree::<REMOVABLE>(&blocks, &hashes, &format!("{number} blocks, {i}"));
                }
            }
        }
        assert!(found > 10_000, "{found}");
    }

    #[test]
    fn vectors_find_what_the_plain_code_finds() {
        filled_blocks_agree::<false>();
        filled_blocks_agree::<true>();
    }

    /// Bits at random, denser and sparser. Where they are a block, all agree; where they are
    /// none, which no file gets past, nothing panics.
    fn random_images_agree<const REMOVABLE: bool>() {
        let shape = Usual::<BLOCK, REMOVABLE>::SHAPE;
        let (mut sound, mut others) = (0, 0);
        for i in 0..6000u64 {
            let mut block = [0; BLOCK];
            for (j, word) in block.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let draw = |k: u64| mix64(i << 16 | (j as u64) << 8 | k);
                let bits = match mix64(i << 3 | j as u64) % 5 {
                    0 => draw(0) & draw(1) & draw(2),
                    1 => draw(0) & draw(1),
                    2 => draw(0) | draw(1),
                    _ => draw(0),
                };
                *word = bits.to_le_bytes();
            }
            if i % 4 == 3 {
                let end = 8 + mix64(!i) as usize % (BLOCK - 8);
                block[end..].fill(0);
            }
            if REMOVABLE && i % 4 == 1 {
                block[BLOCK / 8] &= !3 | i as u8 & 1;
            }
            // Every chain, with fingerprints that meet what is there as often as not.
            let hashes: Vec<u64> = (0..64)
                .map(|chain| chain << 58 | (mix64(i ^ chain) >> 6 & [u64::MAX, 0][i as usize % 2]))
                .collect();
            let is_block = shape.layout(&block).is_some();
            if is_block {
                agree::<REMOVABLE>(&[block], &hashes, &format!("{block:?}"));
            } else {
                let any = dispatch(LookUp::<REMOVABLE>(&[block], &hashes));
                assert_eq!(any.len(), 64);
            }
            (sound, others) = (sound + u32::from(is_block), others + u32::from(!is_block));
        }
        assert!(sound > 300 && others > 300, "{sound} and {others}");
    }

    #[test]
    fn bits_at_random_are_read_alike() {
        random_images_agree::<false>();
        random_images_agree::<true>();
    }

    /// What vectors leave to others, of a filter at its load.
    struct Unsure<'a>(&'a [[u8; BLOCK]], &'a [u64]);
    impl Op for Unsure<'_> {
        const WIDE: bool = true;
        type Out = Option<u32>;
        #[inline(always)]
        fn run<B: Bits>(self, bits: B) -> Option<u32> {
            let groups = self.1.as_chunks().0.iter();
            let unsure = groups.map(|hashes| {
                let keys = place(self.0.len() as u32, *hashes);
                let answers = keys.look_up(bits, self.0, &CUTS[0]);
                assert_eq!(answers.found & answers.unsure, 0);
                answers.unsure.count_ones()
            });
            B::VECTOR.then(|| unsure.sum())
        }
    }

    #[test]
    fn few_keys_are_left_to_others() {
        let shape = Usual::<BLOCK, false>::SHAPE;
        // Keys a block at 1 %, 2⁻⁸ and 0.01 %.
        for load in [57, 49, 29] {
            let mut blocks = vec![[0; BLOCK]; 100];
            let hashes: Vec<u64> = (0..100 * load).map(mix64).collect();
            for &hash in &hashes {
                let (block, chain, rest) = Usual::<BLOCK, false>::place(hash, 100);
                blocks[block] = shape.inserted(&blocks[block], chain, rest).expect("room");
            }
            match dispatch(Unsure(&blocks, &hashes)) {
                Some(unsure) => assert!(u64::from(unsure) < 3 * load, "{unsure} at {load}"),
                None => {
                    let answers = Eight::default().look_up(Portable, &blocks, &CUTS[0]);
                    assert_eq!((answers.found, answers.unsure), (0, u8::MAX));
                }
            }
        }
    }

    #[test]
    fn places_are_those_of_single_lookups() {
        for number in [1usize, 2, 3, 1000, 65_537] {
            let ends = [
                0,
                1,
                u64::MAX,
                u64::from(u32::MAX),
                1 << 32,
                1 << 63,
                !0 << 32,
                7,
            ];
            for hashes in [ends, std::array::from_fn(|i| mix64(i as u64))] {
                let keys = place(number as u32, hashes);
                for (lane, &hash) in hashes.iter().enumerate() {
                    let expected = fastrange(hash, number as u64);
                    assert_eq!((keys.block[lane], keys.rest[lane]), expected);
                }
            }
        }
    }
}
