//! Fingerprints of one or two bytes in a block of 64 bytes: compared all at once, and moved up by
//! one to open a gap.
//!
//! ```text
//!  lanes    │ 0 │ 1 │ … │ at │ … │ last │      64 of one byte, or 32 of two
//!
//!  equal    a bit for each lane that holds the fingerprint     vpcmpeqb, or w
//!  open     │ 0 │ 1 │ … │ new │ at │ … │       vpexpandb, or w: all but lane `at` are filled in
//!                                              order, and the last is lost
//! ```

use crate::simd::Bits;
#[cfg(target_arch = "x86_64")]
use crate::simd::bits::{Avx512, Bmi2};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 64;

/// Eight bytes of a block as a number, the lowest first.
///
/// # Panics
///
/// If the block ends before them.
#[inline(always)]
pub(crate) fn word(block: &[u8; BLOCK], byte: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&block[byte..byte + 8]);
    u64::from_le_bytes(bytes)
}

/// Those of `lanes` that hold the fingerprint of `W` bytes, a bit for each. Every level gives the
/// same answer; without vectors it takes the time of as many lanes as are asked for.
#[inline(always)]
pub(crate) fn equal<const W: usize, B: Bits>(
    bits: B,
    block: &[u8; BLOCK],
    fingerprint: u32,
    lanes: u64,
) -> u64 {
    const { assert!(W == 1 || W == 2) };
    #[cfg(target_arch = "x86_64")]
    if let Some(proof) = bits.avx512() {
        return equal_avx512::<W>(proof, block, fingerprint) & lanes;
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(proof) = bits.avx2() {
        return equal_avx2::<W>(proof, block, fingerprint) & lanes;
    }
    let _ = bits;
    let (mut left, mut found) = (lanes, 0);
    while left != 0 {
        let lane = left.trailing_zeros() as usize;
        let held = at::<W>(block, lane);
        found |= u64::from(held == fingerprint) << lane;
        left &= left - 1;
    }
    found
}

/// What a lane holds.
///
/// # Panics
///
/// If there is no such lane.
#[inline(always)]
pub(crate) fn at<const W: usize>(block: &[u8; BLOCK], lane: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes[..W].copy_from_slice(&block[lane * W..][..W]);
    u32::from_le_bytes(bytes)
}

/// Moves the lanes from `lane` on up by one, and puts a fingerprint of `W` bytes there. The first
/// six bytes of a block stay as they are: a lane among them is none that can be opened.
///
/// # Panics
///
/// If there is no such lane.
#[inline(always)]
pub(crate) fn open<const W: usize, B: Bits>(
    bits: B,
    block: &mut [u8; BLOCK],
    lane: usize,
    fingerprint: u32,
) {
    const { assert!(W == 1 || W == 2) };
    assert!(
        lane * W >= FIXED && lane * W < BLOCK,
        "no lane to be opened"
    );
    #[cfg(target_arch = "x86_64")]
    if let Some(proof) = bits.avx512() {
        return open_avx512::<W>(proof, block, lane, fingerprint);
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(proof) = bits.avx2() {
        return open_avx2::<W>(proof, block, lane, fingerprint);
    }
    let _ = bits;
    block.copy_within(lane * W..BLOCK - W, lane * W + W);
    block[lane * W..][..W].copy_from_slice(&fingerprint.to_le_bytes()[..W]);
}

/// Bytes at the start of a block that no lane moves into or out of.
const FIXED: usize = 6;

/// Moves the lanes after `lane` down by one, over it; the last becomes 0.
///
/// # Panics
///
/// If there is no such lane.
#[inline(always)]
pub(crate) fn close<const W: usize>(block: &mut [u8; BLOCK], lane: usize) {
    block.copy_within(lane * W + W.., lane * W);
    block[BLOCK - W..].fill(0);
}

// The functions below have no `target_feature`: what has one is inlined as the compiler sees fit,
// and a call for each block costs more than what is called. They are always inlined, into a
// function that has it.

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn equal_avx512<const W: usize>(_: Avx512, block: &[u8; BLOCK], fingerprint: u32) -> u64 {
    use std::arch::x86_64::*;
    // SAFETY: the processor has AVX-512F and BW, as the proof says, and 64 bytes are read, as many
    // as the block has.
    unsafe {
        let block = _mm512_loadu_si512(block.as_ptr().cast());
        match W {
            1 => _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(fingerprint as i8)),
            _ => _mm512_cmpeq_epi16_mask(block, _mm512_set1_epi16(fingerprint as i16)).into(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn equal_avx2<const W: usize>(_: Bmi2, block: &[u8; BLOCK], fingerprint: u32) -> u64 {
    use std::arch::x86_64::*;
    let from = block.as_ptr();
    // SAFETY: the processor has AVX2, as the proof says, and 32 bytes are read twice, as many as
    // the block has.
    unsafe {
        let low = _mm256_loadu_si256(from.cast());
        let high = _mm256_loadu_si256(from.add(32).cast());
        if W == 1 {
            let all = _mm256_set1_epi8(fingerprint as i8);
            let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, all)) as u32;
            let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, all)) as u32;
            return u64::from(low) | u64::from(high) << 32;
        }
        let all = _mm256_set1_epi16(fingerprint as i16);
        let (low, high) = (_mm256_cmpeq_epi16(low, all), _mm256_cmpeq_epi16(high, all));
        // Lanes become bytes, in the order 0 … 7, 16 … 23, 8 … 15, 24 … 31.
        let packed = _mm256_packs_epi16(low, high);
        let ordered = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
        u64::from(_mm256_movemask_epi8(ordered) as u32)
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn open_avx512<const W: usize>(_: Avx512, block: &mut [u8; BLOCK], lane: usize, fingerprint: u32) {
    use std::arch::x86_64::*;
    let block = block.as_mut_ptr().cast();
    // SAFETY: the processor has AVX-512F, BW and VBMI2, as the proof says, and 64 bytes are read
    // and written, as many as the block has.
    unsafe {
        let old = _mm512_loadu_si512(block);
        let new = match W {
            1 => {
                let all = _mm512_set1_epi8(fingerprint as i8);
                _mm512_mask_expand_epi8(all, !(1 << lane), old)
            }
            _ => {
                let all = _mm512_set1_epi16(fingerprint as i16);
                _mm512_mask_expand_epi16(all, !(1 << lane), old)
            }
        };
        _mm512_storeu_si512(block, new);
    }
}

/// Two overlapping vectors, from the byte [`FIXED`] on and from the middle on, are each read in
/// place and `W` bytes before, and of each byte the right one is taken.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn open_avx2<const W: usize>(_: Bmi2, block: &mut [u8; BLOCK], lane: usize, fingerprint: u32) {
    use std::arch::x86_64::*;
    const MIDDLE: usize = BLOCK / 2;
    const INDEX: [i8; 32] = {
        let (mut index, mut i) = ([0; 32], 0);
        while i < 32 {
            index[i] = i as i8;
            i += 1;
        }
        index
    };
    let bytes = block.as_mut_ptr();
    // SAFETY: the processor has AVX2, as the proof says. 32 bytes are read from each place and
    // from `W` ≤ 2 bytes before it, and written to each: all inside the block, as 6 + 32 and 32 +
    // 32 are at most 64.
    unsafe {
        let all = match W {
            1 => _mm256_set1_epi8(fingerprint as i8),
            _ => _mm256_set1_epi16(fingerprint as i16),
        };
        let index = _mm256_loadu_si256(INDEX.as_ptr().cast());
        let places = [FIXED, MIDDLE];
        // All is read before any is written: the places overlap.
        let mut new = [all; 2];
        for i in 0..2 {
            let old = _mm256_loadu_si256(bytes.add(places[i]).cast());
            let moved = _mm256_loadu_si256(bytes.add(places[i] - W).cast());
            let first = lane as i8 * W as i8 - places[i] as i8;
            let from_it = _mm256_cmpgt_epi8(index, _mm256_set1_epi8(first - 1));
            let after_it = _mm256_cmpgt_epi8(index, _mm256_set1_epi8(first + W as i8 - 1));
            new[i] = _mm256_blendv_epi8(all, moved, after_it);
            new[i] = _mm256_blendv_epi8(old, new[i], from_it);
        }
        for i in 0..2 {
            _mm256_storeu_si256(bytes.add(places[i]).cast(), new[i]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::simd::{Op, Portable, dispatch};

    struct Equal<'a, const W: usize, const WIDE: bool>(&'a [u8; BLOCK], u32, u64);
    impl<const W: usize, const WIDE: bool> Op for Equal<'_, W, WIDE> {
        const WIDE: bool = WIDE;
        type Out = u64;
        #[inline(always)]
        fn run<B: Bits>(self, bits: B) -> u64 {
            equal::<W, B>(bits, self.0, self.1, self.2)
        }
    }

    struct Open<'a, const W: usize, const WIDE: bool>(&'a mut [u8; BLOCK], usize, u32);
    impl<const W: usize, const WIDE: bool> Op for Open<'_, W, WIDE> {
        const WIDE: bool = WIDE;
        type Out = ();
        #[inline(always)]
        fn run<B: Bits>(self, bits: B) {
            open::<W, B>(bits, self.0, self.1, self.2);
        }
    }

    fn levels_agree<const W: usize>() {
        let mut seen = 0;
        for i in 0..20_000u64 {
            let x = mix64(i);
            // Few different bytes, so that some lanes hold the fingerprint.
            let block: [u8; BLOCK] = std::array::from_fn(|j| match i % 3 {
                0 => mix64(x ^ j as u64) as u8,
                1 => [0, 1, 127, 128, 255][mix64(x ^ j as u64) as usize % 5],
                _ => 200,
            });
            let lane = x as usize % (BLOCK / W);
            let fingerprint = match x >> 32 & 1 {
                0 => at::<W>(&block, lane),
                _ => mix64(!x) as u32 & ((1 << (8 * W as u32)) - 1),
            };
            let lanes = [u64::MAX, x, 1 << lane][x as usize >> 8 & 3 & 1];
            let lanes = lanes & u64::MAX >> (64 - BLOCK / W);
            let expected = (0..BLOCK / W)
                .filter(|&lane| block[lane * W..][..W] == fingerprint.to_le_bytes()[..W])
                .fold(0, |found, lane| found | 1 << lane)
                & lanes;
            seen |= expected;
            assert_eq!(
                equal::<W, _>(Portable, &block, fingerprint, lanes),
                expected
            );
            let v3 = dispatch(Equal::<W, false>(&block, fingerprint, lanes));
            let v4 = dispatch(Equal::<W, true>(&block, fingerprint, lanes));
            assert_eq!((v3, v4), (expected, expected), "{block:?} {fingerprint}");

            let lane = lane.max(FIXED / W);
            let mut expected = block.to_vec();
            expected.splice(lane * W..lane * W, fingerprint.to_le_bytes()[..W].to_vec());
            expected.truncate(BLOCK);
            let [mut plain, mut v3, mut v4] = [block; 3];
            open::<W, _>(Portable, &mut plain, lane, fingerprint);
            dispatch(Open::<W, false>(&mut v3, lane, fingerprint));
            dispatch(Open::<W, true>(&mut v4, lane, fingerprint));
            for opened in [plain, v3, v4] {
                assert_eq!(opened[..], expected, "{block:?}, lane {lane}");
            }
            close::<W>(&mut plain, lane);
            assert_eq!(plain[..BLOCK - W], block[..BLOCK - W]);
            assert_eq!(plain[BLOCK - W..], [0; W]);
        }
        assert_eq!(
            seen,
            u64::MAX >> (64 - BLOCK / W),
            "every lane matches once"
        );
    }

    #[test]
    fn all_levels_compare_and_move_lanes_alike() {
        levels_agree::<1>();
        levels_agree::<2>();
    }
}
