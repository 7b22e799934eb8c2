//! Instructions on the bits of a word that the compiler does not generate by itself: selecting the
//! n-th set bit, and gathering bits.
//!
//! The compiler turns `count_ones` and shifts into BMI instructions where it may use them, but has
//! no idiom for `pdep` and `pext`. So an operation that needs them takes a [`Bits`]: [`Bmi2`]
//! exists only where the processor has them, and AVX2 as well, and [`Portable`] gives the same
//! answers by arithmetic. Kernels take a [`Bits`] too: it supplies the proof that the processor
//! has what they need, and they fall back to plain code where it does not.

/// The instructions of one level.
pub(crate) trait Bits: Copy {
    /// Whether vectors of eight words can multiply, shift and gather lane by lane. Then kinds that
    /// have code for it place or look up eight keys together; otherwise one key at a time is
    /// faster.
    const VECTOR: bool = false;

    /// The set bit with number i of a word, alone, counted from 0 at the low end, where `number`
    /// is 2^i; 0 if the word has too few, or if `number` is 0.
    fn one(self, word: u64, number: u64) -> u64;

    /// The bits of `word` under the ones of `mask`, packed to the low end.
    fn gather(self, word: u64, mask: u64) -> u64;

    /// The proof that the processor has AVX2 and BMI2, where this level has them.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn avx2(self) -> Option<Bmi2> {
        None
    }

    /// The proof that the processor has all that [`Level::V4`](super::Level::V4) names, where
    /// this level has it.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn avx512(self) -> Option<Avx512> {
        None
    }
}

/// Works everywhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

impl Bits for Portable {
    #[inline(always)]
    fn one(self, word: u64, number: u64) -> u64 {
        const ONES: u64 = 0x0101_0101_0101_0101;
        const TOPS: u64 = 0x8080_8080_8080_8080;
        if number == 0 {
            return 0;
        }
        let before = u64::from(number.trailing_zeros());
        // Ones in each byte, then in each byte and all below it.
        let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
        let nibbles = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
        let bytes = (nibbles + (nibbles >> 4)) & 0x0F0F_0F0F_0F0F_0F0F;
        let sums = bytes.wrapping_mul(ONES);
        // The bytes that end before the wanted one keep their top bit.
        let skip = 8 * ((((before * ONES) | TOPS) - sums) & TOPS).count_ones();
        if skip == 64 {
            return 0;
        }
        let skipped = sums << 8 >> skip & 0xFF;
        let rest = (skipped..before).fold(word >> skip, |word, _| word & (word - 1));
        (rest & rest.wrapping_neg()) << skip
    }

    #[inline(always)]
    fn gather(self, mut word: u64, mask: u64) -> u64 {
        // Removes the dropped bits one by one from the top, which is quick where there are few.
        let mut gone = !mask;
        while gone != 0 {
            let below = (1 << gone.ilog2()) - 1;
            word = word & below | word >> 1 & !below;
            gone &= below;
        }
        word
    }
}

/// The code paths of AVX-512, on any processor, for tests.
#[cfg(test)]
#[derive(Clone, Copy)]
pub(crate) struct AsVector;

#[cfg(test)]
impl Bits for AsVector {
    const VECTOR: bool = true;

    fn one(self, word: u64, number: u64) -> u64 {
        Portable.one(word, number)
    }

    fn gather(self, word: u64, mask: u64) -> u64 {
        Portable.gather(word, mask)
    }
}

/// The instructions of [`Level::V3`](super::Level::V3), BMI2 and AVX2 among them; a value is the
/// proof that the processor has them.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bmi2(pub(super) ());

#[cfg(target_arch = "x86_64")]
impl Bits for Bmi2 {
    #[inline(always)]
    fn one(self, word: u64, number: u64) -> u64 {
        // SAFETY: a `Bmi2` is only made where the processor has BMI2.
        unsafe { std::arch::x86_64::_pdep_u64(number, word) }
    }

    #[inline(always)]
    fn gather(self, word: u64, mask: u64) -> u64 {
        // SAFETY: as above.
        unsafe { std::arch::x86_64::_pext_u64(word, mask) }
    }

    #[inline(always)]
    fn avx2(self) -> Option<Bmi2> {
        Some(self)
    }
}

/// The instructions of [`Level::V4`](super::Level::V4); a value is the proof that the processor
/// has them.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(pub(super) ());

#[cfg(target_arch = "x86_64")]
impl Bits for Avx512 {
    const VECTOR: bool = true;

    #[inline(always)]
    fn one(self, word: u64, number: u64) -> u64 {
        Bmi2(()).one(word, number)
    }

    #[inline(always)]
    fn gather(self, word: u64, mask: u64) -> u64 {
        Bmi2(()).gather(word, mask)
    }

    #[inline(always)]
    fn avx2(self) -> Option<Bmi2> {
        Some(Bmi2(()))
    }

    #[inline(always)]
    fn avx512(self) -> Option<Avx512> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::simd::{Op, dispatch};

    struct Both(u64, u64, u64);
    impl Op for Both {
        type Out = (u64, u64);
        #[inline(always)]
        fn run<B: Bits>(self, bits: B) -> (u64, u64) {
            (bits.one(self.0, self.1), bits.gather(self.0, self.2))
        }
    }

    #[test]
    fn both_levels_find_the_same_bits() {
        for i in 0..100_000u64 {
            let word = match i % 4 {
                0 => mix64(i),
                1 => mix64(i) & mix64(!i),
                2 => mix64(i) | mix64(!i),
                _ => 1 << (i / 4 % 64) | u64::from(i % 8 == 3) << 63,
            };
            let n = mix64(i ^ 0x5555) % 64;
            let ones: Vec<u32> = (0..64).filter(|b| word >> b & 1 == 1).collect();
            let expected = ones.get(n as usize).map_or(0, |b| 1 << b);
            let mask = mix64(i ^ 0xAAAA);
            let portable = Both(word, 1 << n, mask).run(Portable);
            assert_eq!(portable.0, expected, "{word:x} {n}");
            assert_eq!(dispatch(Both(word, 1 << n, mask)), portable);
        }
        assert_eq!((Portable.one(0, 0), Portable.one(5, 0)), (0, 0));
        assert_eq!(dispatch(Both(u64::MAX, 0, 0)).0, 0);
        assert_eq!(Portable.one(u64::MAX, 1 << 63), 1 << 63);
        assert_eq!(Portable.gather(0b1011_0110, 0b1111_0000), 0b1011);
    }
}
