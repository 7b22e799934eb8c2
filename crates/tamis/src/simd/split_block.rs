//! A key's eight bits, set in a line that one thread writes and others read meanwhile.
//!
//! ```text
//!  low   × eight salts ≫ 26     vpmulld, vpsrld        the place of each bit in its word
//!  1     ≪ places               vpmovzxdq, vpsllvq     a bit in each of eight words
//!  line  |= those               vpor, vmovdqa          in four parts of two words
//! ```
//!
//! The compiler joins no atomic operations into vectors, and would load, change and store the words
//! one by one. Two words at a time are as good: a processor with AVX stores 16 aligned bytes at
//! once, so that whoever reads a word meanwhile finds it as it was or as it is.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::simd::Bits;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::simd::bits::Bmi2;

/// A cache line of words.
#[repr(align(64))]
pub(crate) struct Line<A>(pub(crate) [A; 8]);

/// Sets the bit that `low` and a salt choose in each word of a line, which no other thread writes
/// meanwhile. Every level sets the same bits.
#[inline(always)]
pub(crate) fn set<B: Bits>(bits: B, line: &Line<AtomicU64>, low: u32, salts: &[u32; 8]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(proof) = bits.avx2() {
        return set_avx2(proof, line, low, salts);
    }
    let _ = bits;
    for (word, salt) in line.0.iter().zip(salts) {
        let bit = 1 << (low.wrapping_mul(*salt) >> 26);
        word.store(word.load(Ordering::Relaxed) | bit, Ordering::Relaxed);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn set_avx2(_: Bmi2, line: &Line<AtomicU64>, low: u32, salts: &[u32; 8]) {
    use std::arch::asm;
    use std::arch::x86_64::*;
    // SAFETY: the processor has AVX2, as the proof says, and 32 bytes of salts are read, as many as
    // there are. The assembly reads and writes the 64 bytes of the line, which may change behind a
    // shared reference as they are atomic, and nothing else. It does what a relaxed load and a
    // relaxed store of each word do: the line's address is a multiple of 64, and a processor with
    // AVX stores 16 aligned bytes by `vmovdqa` at once, so no word is ever seen in part.
    unsafe {
        let salts = _mm256_loadu_si256(salts.as_ptr().cast());
        let products = _mm256_mullo_epi32(_mm256_set1_epi32(low as i32), salts);
        let places = _mm256_srli_epi32::<26>(products);
        let one = _mm256_set1_epi64x(1);
        let [first, last] = [
            _mm256_castsi256_si128(places),
            _mm256_extracti128_si256::<1>(places),
        ]
        .map(|places| _mm256_sllv_epi64(one, _mm256_cvtepu32_epi64(places)));
        asm!(
            "vpor {a}, {a}, xmmword ptr [{line}]",
            "vpor {b}, {b}, xmmword ptr [{line} + 16]",
            "vpor {c}, {c}, xmmword ptr [{line} + 32]",
            "vpor {d}, {d}, xmmword ptr [{line} + 48]",
            "vmovdqa xmmword ptr [{line}], {a}",
            "vmovdqa xmmword ptr [{line} + 16], {b}",
            "vmovdqa xmmword ptr [{line} + 32], {c}",
            "vmovdqa xmmword ptr [{line} + 48], {d}",
            line = in(reg) line.0.as_ptr(),
            a = inout(xmm_reg) _mm256_castsi256_si128(first) => _,
            b = inout(xmm_reg) _mm256_extracti128_si256::<1>(first) => _,
            c = inout(xmm_reg) _mm256_castsi256_si128(last) => _,
            d = inout(xmm_reg) _mm256_extracti128_si256::<1>(last) => _,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::bloom::SALTS;
    use crate::simd::{Op, Portable, dispatch};

    struct Set<'a>(&'a Line<AtomicU64>, u32);
    impl Op for Set<'_> {
        type Out = ();
        #[inline(always)]
        fn run<B: Bits>(self, bits: B) {
            set(bits, self.0, self.1, &SALTS);
        }
    }

    fn words(line: &Line<AtomicU64>) -> [u64; 8] {
        std::array::from_fn(|i| line.0[i].load(Ordering::Relaxed))
    }

    #[test]
    fn every_level_sets_the_same_bits_and_leaves_the_others() {
        for i in 0..20_000 {
            let before: [u64; 8] = std::array::from_fn(|j| mix64(i << 3 | j as u64) & mix64(i));
            let [one, other] = [before; 2].map(|words| Line(words.map(AtomicU64::new)));
            let low = mix64(!i) as u32;
            dispatch(Set(&one, low));
            set(Portable, &other, low, &SALTS);
            let mut expected = before;
            for (word, salt) in expected.iter_mut().zip(SALTS) {
                *word |= 1 << (low.wrapping_mul(salt) >> 26);
            }
            assert_eq!((words(&one), words(&other)), (expected, expected), "{low}");
        }
    }

    /// A thread sets bits in the first line of three while others read it: what was set stays set.
    #[test]
    fn whoever_reads_meanwhile_finds_words_that_only_gain_bits() {
        let lines: [Line<AtomicU64>; 3] =
            std::array::from_fn(|_| Line(std::array::from_fn(|_| AtomicU64::new(0))));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut before = [0; 8];
                    while before.iter().any(|&word| word != u64::MAX) {
                        let now = words(&lines[1]);
                        let gained = before
                            .iter()
                            .zip(now)
                            .all(|(&before, now)| before & !now == 0);
                        assert!(gained, "{before:x?} {now:x?}");
                        before = now;
                    }
                });
            }
            for i in 0.. {
                dispatch(Set(&lines[1], mix64(i) as u32));
                if words(&lines[1]) == [u64::MAX; 8] {
                    break;
                }
            }
        });
        assert_eq!([words(&lines[0]), words(&lines[2])], [[0; 8]; 2]);
    }
}
