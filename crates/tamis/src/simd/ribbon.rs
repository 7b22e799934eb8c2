//! The parity of words under masks, eight columns at a time: what a ribbon's lookup is made of.
//!
//! ```text
//!  column      0           1           2           3
//!  word      │ blocks' words AND their masks, together  │   vpand, vpxor
//!  nibbles   │ the two halves of each byte, together    │   vpsrlw, vpxor
//!  parities  │ of each byte: 1 or 0, columns 4… 16 or 0 │   vpshufb; vpor joins the two vectors
//!  sums      │ of the bytes: bit 0, columns 4… bit 4    │   vpsadbw
//!  expected  │ the result's bits moved there            │   vpsrlvq; vptest
//!
//!  a column is a lane of 64 bits; columns 4 to 7 are a second vector
//! ```
//!
//! A byte's parity needs no carry, and the sum of eight parities is less than 16, so two columns
//! share a lane. With four columns or fewer there is no second vector.

use crate::bits::low_mask;
use crate::simd::Bits;

/// Columns that are compared at once, or half as many.
pub(crate) const COLUMNS: usize = 8;

/// Whether the words of N blocks, masked and combined, have the parities given by the bits of
/// `expected` in the first `count` of `C` columns (`count` is less than 64). Every level gives the
/// same answer.
#[inline(always)]
pub(crate) fn agree<B: Bits, const N: usize, const C: usize>(
    bits: B,
    blocks: [&[u64; C]; N],
    masks: [u64; N],
    expected: u32,
    count: usize,
) -> bool {
    #[cfg(target_arch = "x86_64")]
    if bits.avx2().is_some() {
        // SAFETY: the processor has AVX2, as the proof says.
        return unsafe { agree_avx2(blocks, masks, expected, count) };
    }
    let _ = bits;
    agree_one_by_one(blocks, masks, expected, count)
}

#[inline(always)]
fn agree_one_by_one<const N: usize, const C: usize>(
    blocks: [&[u64; C]; N],
    masks: [u64; N],
    expected: u32,
    count: usize,
) -> bool {
    let mut parities = 0;
    for column in 0..C {
        let mut under = 0;
        for (block, mask) in blocks.iter().zip(masks) {
            under ^= block[column] & mask;
        }
        parities |= (under.count_ones() & 1) << column;
    }
    (parities ^ expected) & low_mask(count.min(C) as u32) as u32 == 0
}

/// Masks of the sums that count, by the number of columns: all from eight on. There is a mask for
/// every value of the low six bits, which is cheaper than a comparison.
#[cfg(target_arch = "x86_64")]
static COUNTED: [[u64; 4]; 64] = {
    let mut all = [[0; 4]; 64];
    let mut count = 0;
    while count < 64 {
        let mut column = 0;
        while column < count && column < COLUMNS {
            all[count][column % 4] |= 1 << (column / 4 * 4);
            column += 1;
        }
        count += 1;
    }
    all
};

/// The same with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn agree_avx2<const N: usize, const C: usize>(
    blocks: [&[u64; C]; N],
    masks: [u64; N],
    expected: u32,
    count: usize,
) -> bool {
    use std::arch::x86_64::*;
    const { assert!(C == COLUMNS || C == COLUMNS / 2) };
    let (mut low, mut high) = (_mm256_setzero_si256(), _mm256_setzero_si256());
    for (block, mask) in blocks.into_iter().zip(masks) {
        let mask = _mm256_set1_epi64x(mask as i64);
        let from = block.as_ptr().cast::<__m256i>();
        // SAFETY: the block has at least 32 bytes.
        let near = unsafe { _mm256_loadu_si256(from) };
        low = _mm256_xor_si256(low, _mm256_and_si256(near, mask));
        if C == COLUMNS {
            // SAFETY: the block has 64 bytes, and 32 are read from its middle on.
            let far = unsafe { _mm256_loadu_si256(from.add(1)) };
            high = _mm256_xor_si256(high, _mm256_and_si256(far, mask));
        }
    }
    let half = _mm256_set1_epi8(15);
    let halves = |x| _mm256_and_si256(_mm256_xor_si256(x, _mm256_srli_epi16::<4>(x)), half);
    // The parities of 0 to 15, twice.
    let odd = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0,
    ));
    let odd_high = _mm256_broadcastsi128_si256(_mm_setr_epi8(
        0, 16, 16, 0, 16, 0, 0, 16, 16, 0, 0, 16, 0, 16, 16, 0,
    ));
    let mut parities = _mm256_shuffle_epi8(odd, halves(low));
    if C == COLUMNS {
        parities = _mm256_or_si256(parities, _mm256_shuffle_epi8(odd_high, halves(high)));
    }
    let sums = _mm256_sad_epu8(parities, _mm256_setzero_si256());
    let lanes = _mm256_setr_epi64x(0, 1, 2, 3);
    let expected = _mm256_srlv_epi64(_mm256_set1_epi64x(i64::from(expected)), lanes);
    let count = if C == COLUMNS { count } else { count.min(C) };
    let counted = COUNTED[count % COUNTED.len()].as_ptr().cast();
    // SAFETY: each has 32 bytes.
    let counted = unsafe { _mm256_loadu_si256(counted) };
    let wrong = _mm256_and_si256(_mm256_xor_si256(sums, expected), counted);
    let right = _mm256_cmpeq_epi64(wrong, _mm256_setzero_si256());
    _mm256_movemask_pd(_mm256_castsi256_pd(right)) == 15
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::simd::{Op, Portable, dispatch};

    struct Agree<'a, const N: usize, const C: usize>([&'a [u64; C]; N], [u64; N], u32, usize);
    impl<const N: usize, const C: usize> Op for Agree<'_, N, C> {
        type Out = bool;
        #[inline(always)]
        fn run<B: Bits>(self, bits: B) -> bool {
            agree(bits, self.0, self.1, self.2, self.3)
        }
    }

    /// One bit of a word after the other.
    fn by_the_bit<const N: usize, const C: usize>(
        blocks: [&[u64; C]; N],
        masks: [u64; N],
        column: usize,
    ) -> u32 {
        let bits = (0..64).flat_map(|bit| (0..N).map(move |block| (block, bit)));
        let one =
            |&(block, bit): &(usize, u32)| blocks[block][column] & masks[block] & 1 << bit != 0;
        bits.filter(one).count() as u32 % 2
    }

    fn levels_agree<const N: usize, const C: usize>() {
        for i in 0..3000u64 {
            let word = |j: u64| match (i + j) % 5 {
                0 => 0,
                1 => u64::MAX,
                2 => 1 << (mix64(i ^ j << 32) % 64),
                _ => mix64(i ^ j << 32),
            };
            let held: [[u64; C]; N] =
                std::array::from_fn(|n| std::array::from_fn(|c| word((n * C + c) as u64)));
            let (blocks, masks) = (
                held.each_ref(),
                std::array::from_fn(|n| word(1000 + n as u64)),
            );
            let parities = (0..C)
                .map(|c| by_the_bit(blocks, masks, c) << c)
                .sum::<u32>();
            for count in (0..=33).chain([63]) {
                // Wrong in one bit, or in none; bits beyond the columns do not matter.
                for wrong in 0..=C {
                    let beyond = u32::MAX << count.min(C);
                    let expected = parities ^ (1 << wrong) ^ mix64(i) as u32 & beyond;
                    let right = wrong >= count || wrong == C;
                    assert_eq!(
                        agree(Portable, blocks, masks, expected, count),
                        right,
                        "{count} {wrong}"
                    );
                    assert_eq!(dispatch(Agree(blocks, masks, expected, count)), right);
                }
            }
        }
    }

    #[test]
    fn all_levels_see_the_same_parities() {
        levels_agree::<1, COLUMNS>();
        levels_agree::<2, COLUMNS>();
        levels_agree::<3, COLUMNS>();
        levels_agree::<2, { COLUMNS / 2 }>();
        levels_agree::<3, { COLUMNS / 2 }>();
    }
}
