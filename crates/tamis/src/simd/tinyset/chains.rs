//! Eight lookups in blocks of chains at once, one key in each lane of a vector.
//! [`tinyset`](crate::TinySet) describes the blocks.
//!
//! ```text
//!  index     ──► rank: chains before the key's, popcount below its bit; chains: all of them
//!  end marks ──► start: behind the end mark with number `rank`,
//!                slots: behind the one with number `chains`
//!
//!  │ 0 1 0 0 1 1 0 1 …      a number of ones is skipped by halves: are there fewer than that in
//!           └ start         the first 64 bits, then in the next 32, 16, 8, 4, 2, 1? Both numbers
//!                           of a key go this way together, as two halves of a lane.
//!
//!  slots     ──► width of a fingerprint and how many are longer, from a table
//!            ──► where those of the chain lie
//!  chain     ──► its first four fingerprints, one after the other, compared with the key's
//! ```
//!
//! Some keys are left to the caller, and in the end to plain code: those whose chain is longer,
//! has slots of two widths, or does not lie entirely in the 64 bits that are read. They are less
//! than three members in a hundred at 1 %, by a test, and fewer absent keys.

use crate::bits::low_mask;
use crate::simd::Bits;

/// Bytes of a block.
const BLOCK: usize = 64;
/// Fingerprints of a chain that are compared.
const SLOTS: u64 = 4;

/// The position behind the n-th one of four bits, counted from 1, at 16·n + bits; 0 for n = 0, and
/// too far if there are fewer than n.
const BEHIND: [u8; 128] = {
    let mut table = [0; 128];
    let mut i = 16;
    while i < 128 {
        let (mut bit, mut left) = (0, i / 16);
        while left > 0 && bit < 4 {
            left -= i >> bit & 1;
            bit += 1;
        }
        table[i] = if left == 0 { bit } else { 128 };
        i += 1;
    }
    table
};

/// How blocks are cut into slots.
pub(crate) struct Cut {
    /// By the number of slots: the bits of a fingerprint, and how many of the first ones have one
    /// more.
    pub(crate) short: [u8; 128],
    pub(crate) longer: [u8; 128],
    /// Bits between the index and the end marks. A block in which one is set is left to the
    /// caller.
    pub(crate) flags: u32,
}

/// Where eight keys are looked up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Eight {
    /// The numbers of their blocks.
    pub(crate) block: [u64; 8],
    /// What is left of their hashes: six bits choose the chain, the others are the remainder.
    pub(crate) rest: [u64; 8],
}

/// A bit for each key, the first one's in the lowest place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answers {
    pub(crate) found: u8,
    /// Keys that the caller must look up; none of them is found here.
    pub(crate) unsure: u8,
}

impl Eight {
    /// Looks up all keys that vectors can, and leaves the others to the caller: all of them where
    /// the processor lacks such vectors.
    ///
    /// # Panics
    ///
    /// If a block number is out of bounds.
    #[inline(always)]
    pub(crate) fn look_up<B: Bits>(&self, bits: B, blocks: &[[u8; BLOCK]], cut: &Cut) -> Answers {
        #[cfg(target_arch = "x86_64")]
        if bits.avx512().is_some() {
            // SAFETY: the processor has all that `Level::V4` names, as the proof says.
            return unsafe { self.look_up_avx512(blocks, cut) };
        }
        let _ = (bits, blocks, cut);
        Answers {
            found: 0,
            unsure: u8::MAX,
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq")]
    #[inline]
    fn look_up_avx512(&self, blocks: &[[u8; BLOCK]], cut: &Cut) -> Answers {
        use std::arch::x86_64::*;
        let all = |value: u64| _mm512_set1_epi64(value as i64);
        // SAFETY: as many bytes are read as the array has, 64.
        let load = |from: &[u64; 8]| unsafe { _mm512_loadu_si512(from.as_ptr().cast()) };
        let table = |of: &[u8; 128], number| {
            // SAFETY: as many bytes are read as the array has, twice 64.
            let [low, high] =
                [0, 64].map(|half| unsafe { _mm512_loadu_si512(of.as_ptr().add(half).cast()) });
            _mm512_permutex2var_epi8(low, number, high)
        };
        let block = load(&self.block);
        let inside = _mm512_cmplt_epu64_mask(block, all(blocks.len() as u64));
        assert!(inside == u8::MAX, "no such block");
        let first = _mm512_slli_epi64::<6>(block);
        let word = |byte| {
            let at = _mm512_add_epi64(first, byte);
            // SAFETY: reads eight bytes from `byte` on, at most 56, of a block that was asserted
            // to be in bounds.
            unsafe { _mm512_i64gather_epi64::<1>(at, blocks.as_ptr().cast()) }
        };
        let rest = load(&self.rest);
        let chain = _mm512_srli_epi64::<58>(rest);
        let remainder = _mm512_slli_epi64::<6>(rest);

        let index = word(all(0));
        let bit = _mm512_sllv_epi64(all(1), chain);
        let present = _mm512_test_epi64_mask(index, bit);
        if present == 0 {
            // Mostly blocks with few keys.
            return Answers {
                found: 0,
                unsure: 0,
            };
        }
        let [mut low, mut high] = [word(all(8)), word(all(16))];
        let mut unsure = 0;
        if cut.flags > 0 {
            unsure |= _mm512_test_epi64_mask(low, all(low_mask(cut.flags)));
            let flags = all(u64::from(cut.flags));
            low = _mm512_shrdv_epi64(low, high, flags);
            high = _mm512_srlv_epi64(high, flags);
        }
        let before = _mm512_and_si512(index, _mm512_sub_epi64(bit, all(1)));
        let rank = _mm512_popcnt_epi64(before);
        let chains = _mm512_popcnt_epi64(index);

        // For both numbers: how many ones remain to be skipped, the bits that hold them, and how
        // many bits lie before.
        let mut left = _mm512_or_si512(rank, _mm512_slli_epi64::<32>(chains));
        let [a, b] = [
            _mm512_shuffle_epi32::<0b10_10_00_00>(low),
            _mm512_shuffle_epi32::<0b11_11_01_01>(low),
        ];
        let [c, d] = [
            _mm512_shuffle_epi32::<0b10_10_00_00>(high),
            _mm512_shuffle_epi32::<0b11_11_01_01>(high),
        ];
        let ones = _mm512_add_epi32(_mm512_popcnt_epi32(a), _mm512_popcnt_epi32(b));
        let further = _mm512_cmplt_epi32_mask(ones, left);
        left = _mm512_mask_sub_epi32(left, further, left, ones);
        let [a, b] = [
            _mm512_mask_mov_epi32(a, further, c),
            _mm512_mask_mov_epi32(b, further, d),
        ];
        let mut skipped = _mm512_maskz_set1_epi32(further, 64);
        let ones = _mm512_popcnt_epi32(a);
        let further = _mm512_cmplt_epi32_mask(ones, left);
        left = _mm512_mask_sub_epi32(left, further, left, ones);
        let mut marks = _mm512_mask_mov_epi32(a, further, b);
        skipped = _mm512_mask_add_epi32(skipped, further, skipped, _mm512_set1_epi32(32));
        for half in [16, 8, 4] {
            let ones = _mm512_and_si512(marks, _mm512_set1_epi32((1 << half) - 1));
            let ones = _mm512_popcnt_epi32(ones);
            let further = _mm512_cmplt_epi32_mask(ones, left);
            let by = _mm512_set1_epi32(half);
            left = _mm512_mask_sub_epi32(left, further, left, ones);
            marks = _mm512_mask_srlv_epi32(marks, further, marks, by);
            skipped = _mm512_mask_add_epi32(skipped, further, skipped, by);
        }
        // With more than four ones left to skip there are too few, and the table says so.
        let left = _mm512_min_epu32(left, _mm512_set1_epi32(7));
        let marks = _mm512_and_si512(marks, _mm512_set1_epi32(15));
        let of_four = _mm512_or_si512(marks, _mm512_slli_epi32::<4>(left));
        let behind = _mm512_and_si512(table(&BEHIND, of_four), _mm512_set1_epi32(255));
        let places = _mm512_add_epi32(skipped, behind);
        unsure |= _mm512_test_epi64_mask(places, all(!0x7F_0000_007F));
        let start = _mm512_and_si512(places, all(low_mask(32)));
        let slots = _mm512_srli_epi64::<32>(places);

        // The chain's end marks, the first in the lowest place, and the number of its last slot
        // from 0.
        let above = _mm512_cmpge_epu64_mask(start, all(64));
        let marks = _mm512_shrdv_epi64(_mm512_mask_mov_epi64(low, above, high), high, start);
        let zeros = _mm512_andnot_si512(marks, _mm512_sub_epi64(marks, all(1)));
        let last = _mm512_popcnt_epi64(zeros);
        unsure |= _mm512_cmpge_epu64_mask(last, all(SLOTS));

        // Of each lane's eight lookups only the first is for its number.
        let short = _mm512_and_si512(table(&cut.short, slots), all(31));
        let longer = _mm512_and_si512(table(&cut.longer, slots), all(127));
        let extra = _mm512_cmplt_epu64_mask(start, longer);
        let end = _mm512_add_epi64(start, last);
        unsure |= extra ^ _mm512_cmplt_epu64_mask(end, longer);
        let width = _mm512_mask_add_epi64(short, extra, short, all(1));
        let before = _mm512_add_epi64(
            _mm512_mul_epu32(start, short),
            _mm512_min_epu64(start, longer),
        );
        let header = all(64 + u64::from(cut.flags));
        let at = _mm512_add_epi64(_mm512_add_epi64(header, slots), before);
        let byte = _mm512_min_epu64(_mm512_srli_epi64::<3>(at), all(BLOCK as u64 - 8));
        let shift = _mm512_sub_epi64(at, _mm512_slli_epi64::<3>(byte));
        let len = _mm512_add_epi64(last, all(1));
        let bits = _mm512_add_epi64(shift, _mm512_mul_epu32(len, width));
        unsure |= _mm512_cmpgt_epu64_mask(bits, all(64));

        let mut fields = _mm512_srlv_epi64(word(byte), shift);
        let others = _mm512_and_si512(_mm512_sub_epi64(all(64), width), all(63));
        let wanted = _mm512_srlv_epi64(remainder, others);
        let mut found = 0;
        for slot in 0..SLOTS {
            let is_there = _mm512_cmpge_epu64_mask(last, all(slot));
            let differing = _mm512_sllv_epi64(_mm512_xor_si512(fields, wanted), others);
            found |= _mm512_mask_testn_epi64_mask(is_there, differing, differing);
            fields = _mm512_srlv_epi64(fields, width);
        }
        let unsure = unsure & present;
        Answers {
            found: found & present & !unsure,
            unsure,
        }
    }
}
