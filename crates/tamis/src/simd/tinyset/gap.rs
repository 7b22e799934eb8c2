//! Room for one more field in a block of packed bits: some bits are dropped, those behind them
//! close up, and a gap opens.
//!
//! ```text
//!  before   │ index │ marks │ fields  x  x   x  x │   x: bits that go
//!  dense    │ index │ marks │ fields      │ 0 … 0 │   pext in each word, then words moved together
//!                       └ mark       └ place
//!  after    │ index │ mar.ks │ fie ▒▒▒▒▒ lds      │   a bit opens at `mark`,
//!                                                     the field's bits at `place`
//! ```
//!
//! In vectors a word's neighbours are one shuffle away, and a shift by more than 63 gives 0, so no
//! word is a special case: masks of the bits from a position on take one shift for four words.

use crate::simd::Bits;

/// How to rewrite a block of N bytes whose first N bits are an index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap<'a> {
    /// For each word the bits that stay; the index stays whole.
    pub(crate) masks: &'a [u64],
    /// For each word, how many bits before it are dropped, at most 63.
    pub(crate) gone: &'a [u8],
    /// A bit of the index, to be set.
    pub(crate) index: u64,
    /// Where a bit opens, counted after the others are dropped: behind the index, and in the first
    /// half of the block.
    pub(crate) mark: u64,
    /// That bit: 0 or 1.
    pub(crate) end: u64,
    /// Where the field opens, in the same count; not before `mark`.
    pub(crate) place: u64,
    /// Its width: below 63, and together with the bit at `mark` no more than are dropped.
    pub(crate) width: u64,
    /// Its value, of so many bits.
    pub(crate) value: u64,
}

impl Gap<'_> {
    /// Rewrites the block. Every level writes the same bits.
    #[inline(always)]
    pub(crate) fn open<B: Bits, const N: usize>(self, bits: B, block: &mut [u8; N]) {
        #[cfg(target_arch = "x86_64")]
        if bits.avx2().is_some() {
            // SAFETY: the processor has AVX2 and BMI2, as the proof says.
            return unsafe { self.open_avx2(bits, block) };
        }
        self.open_word_by_word(bits, block);
    }

    #[inline(always)]
    fn open_word_by_word<B: Bits, const N: usize>(self, bits: B, block: &mut [u8; N]) {
        let gone = &self.gone[..N / 8];
        let mut dense = [0; 16];
        for j in 0..N / 8 {
            let kept = self.kept(bits, block, j);
            dense[j] = kept >> (gone[j] % 64);
            if j > 0 {
                dense[j - 1] |= kept << 1 << (63 - gone[j] % 64);
            }
        }
        let (mut near, mut far) = (0, 0);
        for (j, word) in block.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let (after_mark, after_place) = (from(self.mark, j), from(self.place, j));
            let here = dense[j] & !after_mark;
            let by_one = dense[j] & after_mark & !after_place;
            let by_more = dense[j] & after_place;
            let moved = here
                | by_one << 1
                | near >> 63
                | by_more << ((self.width + 1) % 64)
                | far >> ((63 - self.width) % 64);
            (near, far) = (by_one, by_more);
            *word = moved.to_le_bytes();
        }
        self.fill(block);
    }

    /// The bits of word `j` that stay, closed up, and the new bit of the index.
    #[inline(always)]
    fn kept<B: Bits, const N: usize>(&self, bits: B, block: &[u8; N], j: usize) -> u64 {
        let word = u64::from_le_bytes(block.as_chunks::<8>().0[j]);
        let is_here = N <= 64 || self.index / 64 == j as u64;
        let bit = u64::from(is_here) << (self.index % 64);
        match 64 * j {
            within if within + 64 <= N => word | bit,
            within if within < N => bits.gather(word, self.masks[j]) | bit,
            _ => bits.gather(word, self.masks[j]),
        }
    }

    /// The same in vectors, whose lanes are words.
    ///
    /// # Safety
    ///
    /// The processor must have AVX2 and BMI2. (They are not enabled here: only a function without
    /// `target_feature` can be `#[inline(always)]`, into one that has it.)
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn open_avx2<B: Bits, const N: usize>(self, bits: B, block: &mut [u8; N]) {
        use std::arch::x86_64::*;
        const { assert!(N == 32 || N == 64 || N == 128) };
        let gone = &self.gone[..N / 8];
        // SAFETY: the processor has the instructions; 32 bytes are written through the pointer,
        // to a slice of as many.
        unsafe {
            let all = |value: u64| _mm256_set1_epi64x(value as i64);
            let (mark, place) = (all(self.mark), all(self.place));
            let (up, down) = (
                _mm_cvtsi64_si128(self.width as i64 + 1),
                _mm_cvtsi64_si128(63 - self.width as i64),
            );
            // For each vector, its words closed up, without the bits that come from the next word;
            // and those bits, from each word for the one before it.
            let none = _mm256_setzero_si256();
            let (mut low, mut high) = ([none; 5], [none; 5]);
            for v in 0..N / 32 {
                let j = 4 * v;
                let kept = |i| self.kept(bits, block, j + i) as i64;
                let words = _mm256_setr_epi64x(kept(0), kept(1), kept(2), kept(3));
                let shifts = [gone[j], gone[j + 1], gone[j + 2], gone[j + 3]];
                let shift = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(i32::from_le_bytes(shifts)));
                // Without the mask, the compiler adds code for shifts that are too large.
                low[v] = _mm256_srlv_epi64(words, _mm256_and_si256(shift, all(63)));
                high[v] = _mm256_sllv_epi64(words, _mm256_sub_epi64(all(64), shift));
            }
            let mut carried = none;
            for v in 0..N / 32 {
                let next = _mm256_blend_epi32::<0b0000_0011>(high[v], high[v + 1]);
                let next = _mm256_permute4x64_epi64::<0b00_11_10_01>(next);
                let dense = _mm256_or_si256(low[v], next);
                let lanes =
                    _mm256_add_epi64(_mm256_setr_epi64x(0, 64, 128, 192), all(256 * v as u64));
                // Shifts of 64 and more give 0; those below 0 are taken as 0.
                let from = |bit| _mm256_sllv_epi64(all(u64::MAX), _mm256_subs_epu16(bit, lanes));
                let after_place = from(place);
                let by_more = _mm256_and_si256(dense, after_place);
                let rest = _mm256_andnot_si256(after_place, dense);
                let by_one = match v {
                    second_half if 64 * second_half >= N.max(64) => rest,
                    _ => _mm256_and_si256(rest, from(mark)),
                };
                // What moves by one, added to itself.
                let moved = _mm256_or_si256(
                    _mm256_add_epi64(rest, by_one),
                    _mm256_sll_epi64(by_more, up),
                );
                // Bits that leave a word at its upper end enter the one after it.
                let carry = _mm256_or_si256(
                    _mm256_srli_epi64::<63>(by_one),
                    _mm256_srl_epi64(by_more, down),
                );
                let before = _mm256_blend_epi32::<0b1100_0000>(carry, carried);
                let before = _mm256_permute4x64_epi64::<0b10_01_00_11>(before);
                carried = carry;
                let vector = &mut block.as_chunks_mut::<32>().0[v];
                let moved = _mm256_or_si256(moved, before);
                _mm256_storeu_si256(vector.as_mut_ptr().cast(), moved);
            }
        }
        self.fill(block);
    }

    /// Sets the new mark and the new field.
    #[inline(always)]
    fn fill<const N: usize>(self, block: &mut [u8; N]) {
        let marks = &mut block.as_chunks_mut::<8>().0[(self.mark / 64) as usize % (N / 8)];
        let with_mark = u64::from_le_bytes(*marks) | self.end << (self.mark % 64);
        *marks = with_mark.to_le_bytes();
        // Eight bytes that end with the field's last, or the first eight. They seldom span two
        // vectors, where a load would wait until both stores are in the cache.
        let at = self.place + 1;
        let end = (at + self.width + 7) & !7;
        let end = if N == 32 { end.max(64) } else { end };
        let bytes = (end / 8).wrapping_sub(8) as usize;
        let eight = block.get_mut(bytes..).and_then(<[u8]>::first_chunk_mut);
        if let Some(eight) = eight {
            let value = self.value.wrapping_shl(at.wrapping_sub(end) as u32);
            *eight = (u64::from_le_bytes(*eight) | value).to_le_bytes();
        }
    }
}

/// The bits of word `j` from position `bit` of the block on.
#[inline(always)]
fn from(bit: u64, j: usize) -> u64 {
    let shift = bit.saturating_sub(64 * j as u64);
    if shift < 64 { u64::MAX << shift } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::{low_mask, mix64};
    use crate::simd::{Op, Portable, dispatch};

    struct Open<'a, const N: usize>([u8; N], Gap<'a>);
    impl<const N: usize> Op for Open<'_, N> {
        const WIDE: bool = true;
        type Out = [u8; N];
        #[inline(always)]
        fn run<B: Bits>(mut self, bits: B) -> [u8; N] {
            self.1.open(bits, &mut self.0);
            self.0
        }
    }

    /// One bit after the other.
    fn by_the_bit<const N: usize>(block: &[u8; N], gap: &Gap<'_>) -> [u8; N] {
        let stays = |&i: &usize| gap.masks[i / 64] >> (i % 64) & 1 == 1;
        let kept = (0..8 * N).filter(stays);
        let mut bits: Vec<u8> = kept.map(|i| block[i / 8] >> (i % 8) & 1).collect();
        let field = (0..gap.width).map(|i| (gap.value >> i & 1) as u8);
        let place = gap.place as usize;
        bits.splice(place..place, field);
        bits.insert(gap.mark as usize, gap.end as u8);
        bits[gap.index as usize] = 1;
        bits.resize(8 * N, 0);
        let byte = |bits: &[u8; 8]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit);
        std::array::from_fn(|j| byte(&bits.as_chunks().0[j]))
    }

    fn levels_agree<const N: usize>() {
        for i in 0..20_000u64 {
            let x = |k: u64| mix64(i << 8 | k ^ (N as u64) << 40);
            let block: [u8; N] = std::array::from_fn(|j| match i % 3 {
                0 => x(j as u64) as u8,
                1 => [0, 255][x(j as u64) as usize % 2],
                _ => 255,
            });
            let bits = 8 * N as u64;
            let index = x(200) % N as u64;
            // Up to the last bit, and one place at the other, now and then.
            let width = 1 + x(201) % 26;
            let last = bits - width - 1;
            let mark = N as u64 + x(202) % (bits / 2 - N as u64);
            let place = [mark, last, mark + x(203) % (last - mark + 1)][x(204) as usize % 3];
            // As many bits go as come.
            let mut masks = vec![u64::MAX; N / 8];
            for k in 0..=width {
                let free = |bit: &u64| masks[*bit as usize / 64] >> (bit % 64) & 1 == 1;
                let bits = (0..bits).map(|j| (mark + x(205 + k) + j) % bits);
                let bit = bits
                    .filter(|&bit| bit >= N as u64)
                    .find(free)
                    .expect("one is left");
                masks[bit as usize / 64] &= !(1 << (bit % 64));
            }
            let gone = masks.iter().scan(0, |gone, mask| {
                let before = *gone;
                *gone += mask.count_zeros() as u8;
                Some(before)
            });
            let gap = Gap {
                masks: &masks,
                gone: &gone.collect::<Vec<u8>>(),
                index,
                mark,
                end: x(206) % 2,
                place,
                width,
                value: x(207) & low_mask(width as u32),
            };
            let expected = by_the_bit(&block, &gap);
            let both = (Open(block, gap).run(Portable), dispatch(Open(block, gap)));
            assert_eq!(both, (expected, expected), "{block:?} {gap:?}");
        }
    }

    #[test]
    fn all_levels_open_the_same_gap() {
        levels_agree::<32>();
        levels_agree::<64>();
        levels_agree::<128>();
    }
}
