//! Short cuts for blocks of the default shape, as many chains as bytes.
//!
//! A lookup has no branch that depends on the key but one: a rare case goes to the plain code of
//! [`block`](super::block). Half of all chains are empty, and a chain holds one to four slots, so a branch on either
//! would be mispredicted for every second key and cost more than all the arithmetic.

use super::block::{CAP, Shape, read, widths};
use crate::bits::low_mask;
use crate::simd::Bits;

/// The default shape for a block size, with its tables.
pub(super) struct Default<const N: usize, const REMOVABLE: bool>;

/// By the width w of a field: a word of such fields that are all 1.
const ONES: [u64; 32] = {
    let mut table = [0; 32];
    let mut width = 1;
    while width < 32 {
        let mut at = 0;
        while at + width <= 64 {
            table[width] |= 1 << at;
            at += width;
        }
        width += 1;
    }
    table
};

/// What a lookup and an insertion learn first of a block.
struct Found {
    /// Whether the chain has any slot.
    present: bool,
    /// The chain's first slot, or where it would be.
    start: u32,
    /// Slots that decide the widths, and those of them in use.
    slots: u32,
    live: u32,
    /// Whether the end marks lie where this file looks; else nothing above is true but `present`.
    sound: bool,
}

impl<const N: usize, const REMOVABLE: bool> Default<N, REMOVABLE> {
    pub(super) const SHAPE: Shape<N> = Shape {
        chains: N as u32,
        removable: REMOVABLE,
    };
    const HEADER: u32 = Self::SHAPE.header();
    /// By the number of slots: width, and how many are longer (times 32).
    const WIDTHS: &'static [u16; 256] = &{
        let mut table = [0; 256];
        let mut slots = 0;
        while slots < 256 && slots <= Self::SHAPE.array() {
            let (width, longer) = widths(Self::SHAPE.array(), slots);
            table[slots as usize] = (width | longer << 5) as u16;
            slots += 1;
        }
        table
    };

    #[inline(always)]
    fn widths(slots: u32) -> (u32, u32) {
        let packed = u32::from(Self::WIDTHS[slots as usize % 256]);
        (packed % 32, packed / 32)
    }

    #[inline(always)]
    fn find<B: Bits>(bits: B, block: &[u8; N], chain: u32) -> Found {
        let word = |i: u32| read(block, 64 * i, 64);
        let (present, chains, rank) = match N {
            128 => {
                let index = u128::from(word(0)) | u128::from(word(1)) << 64;
                let below = index & ((1 << chain) - 1);
                (
                    index >> chain & 1 == 1,
                    index.count_ones(),
                    below.count_ones(),
                )
            }
            _ => {
                let index = word(0) & low_mask(N as u32);
                let below = index & ((1 << chain) - 1);
                (
                    index >> chain & 1 == 1,
                    index.count_ones(),
                    below.count_ones(),
                )
            }
        };
        // The end marks moved up by one, with a one below: now the one of number `rank` is where a chain starts that has
        // so many before it.
        let first = Self::HEADER / 64;
        let shift = Self::HEADER % 64;
        let low = word(first) & (u64::MAX << shift);
        let words = [
            low << 1 | 1 << shift,
            word(first + 1) << 1 | low >> 63,
            if N == 128 {
                word(first + 2) << 1 | word(first + 1) >> 63
            } else {
                0
            },
        ];
        let below_1 = words[0].count_ones();
        let below_2 = below_1 + words[1].count_ones();
        let start_of = |rank: u32| {
            let mut at = (words[0], rank, 0u32.wrapping_sub(shift));
            if rank >= below_1 {
                at = (words[1], rank.wrapping_sub(below_1), 64 - shift);
            }
            if N == 128 && rank >= below_2 {
                at = (words[2], rank.wrapping_sub(below_2), 128 - shift);
            }
            bits.select(at.0, at.1).wrapping_add(at.2)
        };
        let free = u32::from(REMOVABLE && read(block, N as u32, 1) == 1);
        let slots = start_of(chains + free);
        Found {
            present,
            start: start_of(rank),
            slots,
            live: if free == 1 { start_of(chains) } else { slots },
            sound: chains + free < below_2 + words[2].count_ones(),
        }
    }

    /// The same answer as [`Shape::contains`].
    #[inline(always)]
    pub(super) fn contains<B: Bits>(bits: B, block: &[u8; N], chain: u32, remainder: u64) -> bool {
        let found = Self::find(bits, block, chain);
        let (short, mut longer) = Self::widths(found.slots);
        if REMOVABLE && read(block, N as u32 + 1, 1) == 1 {
            let mut top = 0;
            for i in 0..N as u32 / 8 {
                let word = read(block, 64 * i, 64);
                if word != 0 {
                    top = 64 * i + word.ilog2();
                }
            }
            let fields = Self::HEADER + found.slots + found.live * short;
            longer = top.wrapping_sub(fields);
        }
        let start = found.start;
        // One slot after another up to the first mark.
        let marks = read(block, Self::HEADER + start, 57);
        let len = marks.trailing_zeros() + 1;
        let width = short + u32::from(start < longer);
        let at = Self::HEADER + found.slots + start * short + start.min(longer);
        let byte = (at as usize / 8).min(N - 8);
        let shift = at - 8 * byte as u32;
        let crossed = (start < longer) & (start + len > longer);
        let easy = found.sound & (shift + len * width <= 64) & !crossed;
        if found.present & !easy {
            return slow_contains::<N, REMOVABLE>(block, chain, remainder);
        }
        // All slots of the chain at once: a field that is 0 after the xor borrows through its top bit. The lowest such
        // field is never marked wrongly, so there is a mark if and only if there is a match.
        let ones = ONES[width as usize % 32];
        let fields = read(block, 8 * byte as u32, 64) >> (shift % 64);
        let x = fields ^ (remainder & ((1 << width) - 1)).wrapping_mul(ones);
        let zeros = x.wrapping_sub(ones) & !x & ones << (width.wrapping_sub(1) % 64);
        // Moves the chain's fields to the top, and what lies above them out.
        let of_chain = zeros.wrapping_shl((len * width).wrapping_neg());
        found.present & (of_chain != 0)
    }
}

#[cold]
#[inline(never)]
fn slow_contains<const N: usize, const REMOVABLE: bool>(
    block: &[u8; N],
    chain: u32,
    remainder: u64,
) -> bool {
    Default::<N, REMOVABLE>::SHAPE.contains(block, chain, remainder)
}

const _: () = assert!(CAP < 32);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::simd::{BitsOp, Portable, dispatch_bits};

    struct Contains<'a, const N: usize, const REMOVABLE: bool>(&'a [u8; N], u32, u64);
    impl<const N: usize, const REMOVABLE: bool> BitsOp for Contains<'_, N, REMOVABLE> {
        type Out = bool;
        #[inline(always)]
        fn run<B: Bits>(self, bits: B) -> bool {
            Default::<N, REMOVABLE>::contains(bits, self.0, self.1, self.2)
        }
    }

    /// Blocks as they come about, at every load up to the last bit, in even and in lopsided chains.
    fn blocks<const N: usize, const REMOVABLE: bool>(mut each: impl FnMut(&[u8; N], u64)) {
        let shape = Default::<N, REMOVABLE>::SHAPE;
        for seed in 0..60u64 {
            let mut block = [0; N];
            let mut members = Vec::new();
            let chain_bits = [5, 6, 7, 1, 0][seed as usize % 5];
            for step in 0.. {
                let x = mix64(seed << 32 | step);
                let spread = (x >> 8 & ((1 << chain_bits) - 1)) as u32;
                let chain = (spread + 11 * (seed % 7) as u32) % N as u32;
                // A remainder of few bits now and then, so that fingerprints meet.
                let remainder = x >> if seed % 2 == 0 { 39 } else { 61 };
                match shape.inserted(&block, chain, remainder) {
                    Some(next) => block = next,
                    None => break,
                }
                members.push((chain, remainder));
                if REMOVABLE && x % 5 < 2 {
                    let (chain, remainder) = members.swap_remove(x as usize / 16 % members.len());
                    block = shape.removed(&block, chain, remainder).expect("a member");
                }
                each(&block, x);
            }
        }
    }

    fn lookups_agree<const N: usize, const REMOVABLE: bool>() {
        let shape = Default::<N, REMOVABLE>::SHAPE;
        let mut yes = 0;
        blocks::<N, REMOVABLE>(|block, x| {
            for i in 0..20 {
                let y = mix64(x ^ i);
                let (chain, remainder) =
                    (y as u32 % N as u32, y >> 39 & [u64::MAX, 7][i as usize % 2]);
                let plain = shape.contains(block, chain, remainder);
                let portable = Default::<N, REMOVABLE>::contains(Portable, block, chain, remainder);
                let best = dispatch_bits(Contains::<N, REMOVABLE>(block, chain, remainder));
                assert_eq!(
                    (portable, best),
                    (plain, plain),
                    "{block:?} {chain} {remainder}"
                );
                yes += u32::from(plain);
            }
        });
        assert!(yes > 1000);
    }

    #[test]
    fn lookups_answer_as_the_plain_code_does() {
        lookups_agree::<32, false>();
        lookups_agree::<32, true>();
        lookups_agree::<64, false>();
        lookups_agree::<64, true>();
        lookups_agree::<128, false>();
        lookups_agree::<128, true>();
    }
}
