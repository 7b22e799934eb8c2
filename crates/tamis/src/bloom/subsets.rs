//! Distinct bits of a word, drawn for a key: what filters use that keep the bits of a key
//! together.

use crate::bits::{fastrange, mix64};

/// Numbers drawn from what is left of a hash: six from one state, then the state is mixed anew.
///
/// Six draws of 9 bits leave ten for the last to be even.
#[derive(Clone, Copy)]
pub(crate) struct Subsets {
    next: u64,
    state: u64,
    drawn: u32,
}

impl Subsets {
    #[inline(always)]
    pub(crate) fn new(rest: u64) -> Subsets {
        Subsets {
            next: rest,
            state: 0,
            drawn: 0,
        }
    }

    /// A number below `n`.
    #[inline(always)]
    fn below(&mut self, n: u64) -> u64 {
        if self.drawn.is_multiple_of(6) {
            self.state = mix64(self.next);
            self.next = self.next.wrapping_add(0x9E37_79B9_7F4A_7C15);
        }
        self.drawn += 1;
        let number;
        (number, self.state) = fastrange(self.state, n);
        number
    }

    /// So many distinct bits of `U` words, each set of them as likely as any other, in as many
    /// draws (Floyd's way).
    #[inline(always)]
    pub(crate) fn subset<const U: usize>(&mut self, bits: u32) -> [u64; U] {
        let width = 64 * U as u64;
        let mut mask = [0; U];
        for last in width - u64::from(bits)..width {
            let at = self.below(last + 1);
            let taken = mask[at as usize / 64] >> (at % 64) & 1 == 1;
            let at = if taken { last } else { at };
            mask[at as usize / 64] |= 1 << (at % 64);
        }
        mask
    }
}

/// The chance that `bits` distinct bits of a word are all set, by the number of ones in it.
pub(crate) fn chances(word_bits: u32, bits: u32) -> Vec<f64> {
    let one = |ones: u32, i: u32| f64::from(ones.saturating_sub(i)) / f64::from(word_bits - i);
    let chance = |ones| (0..bits).map(|i| one(ones, i)).product();
    (0..=word_bits).map(chance).collect()
}
