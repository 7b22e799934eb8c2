//! Compares adjacent fields of a few bits with the first bits of one number, eight fields at a
//! time.
//!
//! ```text
//!  block   │ … │ field 0 │ field 1 │ field 2 │ … │   the first `longer` of them are
//!               └ bit `at`                           `width` + 1 bits, the others `width`
//!
//!  lane i  = the eight bytes from that of field i's first bit on   vpermb, vpermi2b
//!            moved down by the bits before it                      vpsrlvq
//!  number  = its first bits, as many as field i has                vpsrlvq
//!  answers = a bit per lane: below, equal                          vpcmpuq
//! ```
//!
//! Lanes may differ in position and width, so any run of up to eight fields takes the same path.

use crate::bits::low_mask;
use crate::simd::Bits;

/// Up to eight fields in a block, all of them inside it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    /// The first bit of the first.
    pub(crate) at: u64,
    /// The width of the fields that are not longer, at most 56 bits.
    pub(crate) width: u64,
    /// How many fields have one bit more: the first ones.
    pub(crate) longer: u64,
    /// How many there are.
    pub(crate) len: u64,
}

/// How the fields compare with the number: a bit for each, the first one's in the lowest place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Compared {
    pub(crate) below: u8,
    pub(crate) equal: u8,
}

impl Fields {
    /// The most that are compared at once.
    pub(crate) const MOST: u64 = 8;

    /// Compares each field with as many of the number's first bits as the field has. Every level
    /// gives the same answer.
    #[inline(always)]
    pub(crate) fn compare<B: Bits, const N: usize>(
        self,
        bits: B,
        block: &[u8; N],
        number: u64,
    ) -> Compared {
        #[cfg(target_arch = "x86_64")]
        if bits.avx512().is_some() {
            // SAFETY: the processor has AVX-512F, BW and VBMI, as the proof says.
            return unsafe { self.compare_avx512(block, number) };
        }
        let _ = bits;
        self.compare_one_by_one(block, number)
    }

    #[inline(always)]
    fn compare_one_by_one<const N: usize>(self, block: &[u8; N], number: u64) -> Compared {
        let (mut below, mut equal) = (0, 0);
        let mut at = self.at;
        for i in 0..self.len {
            let bits = self.width + u64::from(i < self.longer);
            let byte = (at as usize / 8).min(N - 8);
            let mut word = [0; 8];
            word.copy_from_slice(&block[byte..byte + 8]);
            let word = u64::from_le_bytes(word).wrapping_shr((at - 8 * byte as u64) as u32);
            let field = word & low_mask(bits as u32);
            let prefix = number >> 1 >> (63 - bits);
            below |= u8::from(field < prefix) << i;
            equal |= u8::from(field == prefix) << i;
            at += bits;
        }
        Compared { below, equal }
    }

    /// The same with AVX-512. Reads nothing outside the block, whatever the fields.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    #[inline]
    fn compare_avx512<const N: usize>(self, block: &[u8; N], number: u64) -> Compared {
        use std::arch::x86_64::*;
        const { assert!(N == 32 || N == 64 || N == 128) };
        let all = |value: u64| _mm512_set1_epi64(value as i64);
        let lane = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
        let longer = all(self.longer);
        let extra = _mm512_cmplt_epu64_mask(lane, longer);
        let width = all(self.width);
        let width = _mm512_mask_add_epi64(width, extra, width, all(1));
        let before = _mm512_add_epi64(
            _mm512_mul_epu32(lane, all(self.width)),
            _mm512_min_epu64(lane, longer),
        );
        let at = _mm512_add_epi64(all(self.at), before);
        // Byte j of a lane comes from j bytes after its first; indices wrap at the block's length.
        let first = _mm512_shuffle_epi8(
            _mm512_srli_epi64::<3>(at),
            _mm512_broadcast_i32x4(_mm_setr_epi8(
                0, 0, 0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8,
            )),
        );
        let bytes = _mm512_add_epi8(first, all(0x0706_0504_0302_0100));
        let from = block.as_ptr();
        // SAFETY: as many bytes are read as the block has: 32, 64 or 128.
        let words = unsafe {
            match N {
                32 => {
                    let half = _mm512_zextsi256_si512(_mm256_loadu_si256(from.cast()));
                    _mm512_permutexvar_epi8(bytes, half)
                }
                64 => _mm512_permutexvar_epi8(bytes, _mm512_loadu_si512(from.cast())),
                _ => {
                    let low = _mm512_loadu_si512(from.cast());
                    let high = _mm512_loadu_si512(from.add(64).cast());
                    _mm512_permutex2var_epi8(low, bytes, high)
                }
            }
        };
        let words = _mm512_srlv_epi64(words, _mm512_and_si512(at, all(7)));
        // Field and number both at the top: the number's bits after the field's are cleared.
        let rest = _mm512_sub_epi64(all(64), width);
        let field = _mm512_sllv_epi64(words, rest);
        let prefix = _mm512_sllv_epi64(_mm512_srlv_epi64(all(number), rest), rest);
        let there = low_mask(self.len as u32) as u8;
        Compared {
            below: _mm512_mask_cmplt_epu64_mask(there, field, prefix),
            equal: _mm512_mask_cmpeq_epi64_mask(there, field, prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::simd::{Op, Portable, dispatch};

    struct Compare<'a, const N: usize>(&'a [u8; N], Fields, u64);
    impl<const N: usize> Op for Compare<'_, N> {
        const WIDE: bool = true;
        type Out = Compared;
        #[inline(always)]
        fn run<B: Bits>(self, bits: B) -> Compared {
            self.1.compare(bits, self.0, self.2)
        }
    }

    /// One bit of a field after the other, first the lowest.
    fn by_the_bit<const N: usize>(block: &[u8; N], fields: Fields, number: u64) -> Compared {
        let bit = |at: u64| u64::from(block[at as usize / 8] >> (at % 8) & 1);
        let (mut at, mut below, mut equal) = (fields.at, 0, 0);
        for i in 0..fields.len {
            let width = fields.width + u64::from(i < fields.longer);
            let field = (0..width).fold(0, |field, j| field | bit(at + j) << j);
            let prefix = (u128::from(number) >> (64 - width)) as u64;
            below |= u8::from(field < prefix) << i;
            equal |= u8::from(field == prefix) << i;
            at += width;
        }
        Compared { below, equal }
    }

    fn levels_agree<const N: usize>() {
        let mut seen = Compared { below: 0, equal: 0 };
        for i in 0..20_000u64 {
            let x = mix64(i ^ (N as u64) << 32);
            // Few different bytes, so that fields equal the number often enough.
            let block: [u8; N] = std::array::from_fn(|j| match i % 4 {
                0 => mix64(x ^ j as u64) as u8,
                1 => 0,
                2 => 255,
                _ => [0, 255][mix64(x ^ j as u64) as usize % 2],
            });
            let number = [mix64(!x), 0, u64::MAX, u64::MAX << (x % 64)][x as usize / 64 % 4];
            let (len, width) = ((x >> 8) % 9, (x >> 16) % 26);
            let longer = (x >> 24) % 12;
            let bits = len * width + len.min(longer);
            // Up to the last bit of the block.
            let Some(room) = (8 * N as u64).checked_sub(bits) else {
                continue;
            };
            let at = [(x >> 32) % (room + 1), room][i as usize / 4 % 2];
            let fields = Fields {
                at,
                width,
                longer,
                len,
            };
            let expected = by_the_bit(&block, fields, number);
            let context = format!("{block:?} {fields:?} {number:x}");
            assert_eq!(
                fields.compare(Portable, &block, number),
                expected,
                "{context}"
            );
            assert_eq!(
                dispatch(Compare(&block, fields, number)),
                expected,
                "{context}"
            );
            seen.below |= expected.below;
            seen.equal |= expected.equal;
        }
        assert_eq!((seen.below, seen.equal), (255, 255));
    }

    #[test]
    fn all_levels_compare_fields_alike() {
        levels_agree::<32>();
        levels_agree::<64>();
        levels_agree::<128>();
    }
}
