//! Semi-sorted buckets: four fingerprints in one bit less each.
//!
//! ```text
//!   four fingerprints, sorted    2│1   0│4   3│4   1│9      high part │ low four bits
//!                                       ↓
//!   1, 4, 4, 9 is number 526 of 3876:  001 000 001 110       twelve bits for sixteen
//!                                       ↓
//!   four slots                2│110  0│001  3│000  1│001    high part │ three bits of the code
//! ```
//!
//! The order of the fingerprints in a bucket tells nothing, so four low parts of four bits, sorted,
//! are one of C(19, 4) = 3876 multisets, and the number of a multiset has twelve bits. Each slot
//! keeps three of them below its high part. Of equal low parts the one with the lesser high part
//! comes first, so that a bucket has one form; a free slot, 0, comes before all.

/// How many multisets of four numbers below 16 there are: C(19, 4).
pub(super) const CODES: u64 = 3876;

/// Bits of a fingerprint that are sorted by.
const LOW: u32 = 4;
/// Bits of the code in a slot.
const SHARE: u32 = 3;

/// The numbers of each code, ascending, four bits each from the lowest. What is no code has
/// zeros: of a mapped file that changes under its reader, any bytes are some bucket.
static MULTISETS: [u16; 1 << (4 * SHARE)] = multisets();

/// Counts up in the order of the greatest number, then of the next.
const fn multisets() -> [u16; 1 << (4 * SHARE)] {
    let mut table = [0; 1 << (4 * SHARE)];
    let (mut code, mut numbers) = (0, [0u16; 4]);
    while code < CODES as usize {
        let [a, b, c, d] = numbers;
        table[code] = a | b << LOW | c << (2 * LOW) | d << (3 * LOW);
        code += 1;
        numbers = match numbers {
            [a, b, ..] if a < b => [a + 1, b, c, d],
            [_, b, c, _] if b < c => [0, b + 1, c, d],
            [_, _, c, d] if c < d => [0, 0, c + 1, d],
            _ => [0, 0, 0, d + 1],
        };
    }
    table
}

/// The number of a multiset: `a + C(b+1, 2) + C(c+2, 3) + C(d+3, 4)`, all with fewer than 16.
fn code_of([a, b, c, d]: [u64; 4]) -> u64 {
    a + b * (b + 1) / 2 + c * (c + 1) * (c + 2) / 6 + d * (d + 1) * (d + 2) * (d + 3) / 24
}

/// The code that the slots of a bucket have together.
#[inline(always)]
pub(super) fn code_in([a, b, c, d]: [u64; 4]) -> u64 {
    let share = |slot: u64| slot & ((1 << SHARE) - 1);
    share(a) | share(b) << SHARE | share(c) << (2 * SHARE) | share(d) << (3 * SHARE)
}

/// The fingerprints of a bucket, in order.
#[inline(always)]
pub(super) fn fingerprints(slots: [u64; 4]) -> [u64; 4] {
    let lows = u64::from(MULTISETS[code_in(slots) as usize]);
    let [a, b, c, d] = slots.map(high_in_slot);
    let low = |i: u32| lows >> (LOW * i) & ((1 << LOW) - 1);
    [a | low(0), b | low(1), c | low(2), d | low(3)]
}

/// The high part of a slot, where a fingerprint has it.
#[inline(always)]
fn high_in_slot(slot: u64) -> u64 {
    slot >> SHARE << LOW
}

/// The slots of a bucket that holds these fingerprints.
pub(super) fn slots(mut fingerprints: [u64; 4]) -> [u64; 4] {
    let low = |fingerprint: u64| fingerprint & ((1 << LOW) - 1);
    fingerprints.sort_unstable_by_key(|&fingerprint| (low(fingerprint), fingerprint));
    let code = code_of(fingerprints.map(low));
    let share = |i: u32| code >> (SHARE * i) & ((1 << SHARE) - 1);
    let [a, b, c, d] = fingerprints.map(high_of);
    [a | share(0), b | share(1), c | share(2), d | share(3)]
}

/// A slot without its share of the code: the high part of a fingerprint.
#[inline(always)]
fn high_of(fingerprint: u64) -> u64 {
    fingerprint >> LOW << SHARE
}

/// Of four slots of a width in one word, whether one may hold the fingerprint: its high part is
/// there. A lookup of an absent key seldom has to read more.
///
/// See `zero_lanes` for the trick.
#[inline(always)]
pub(super) fn has_high_part(word: u64, ones: u64, width: u32, fingerprint: u64) -> bool {
    let shares = ones * ((1 << SHARE) - 1);
    let x = (word ^ high_of(fingerprint).wrapping_mul(ones)) & !shares;
    super::standard::zero_lanes(x, ones, width) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    #[test]
    fn every_multiset_has_a_code_and_every_code_a_multiset() {
        let mut code = 0;
        for d in 0..16 {
            for c in 0..=d {
                for b in 0..=c {
                    for a in 0..=b {
                        assert_eq!(code_of([a, b, c, d]), code);
                        let lows = a | b << 4 | c << 8 | d << 12;
                        assert_eq!(u64::from(MULTISETS[code as usize]), lows);
                        code += 1;
                    }
                }
            }
        }
        assert_eq!(code, CODES);
        assert!(MULTISETS[CODES as usize..].iter().all(|&lows| lows == 0));
    }

    #[test]
    fn a_bucket_has_one_form_whatever_the_order_of_its_fingerprints() {
        for bits in 4..=32u32 {
            for i in 0..2000u64 {
                let draw = |j: u64| mix64(i << 16 | j << 8 | u64::from(bits)) >> (64 - bits);
                // Few values, so that some are equal and some share low parts.
                let few = |j: u64| draw(j) % 40 % (1 << bits);
                let held = if i % 2 == 0 {
                    [draw(0), draw(1), draw(2), draw(3)]
                } else {
                    [few(0), few(1), few(2), 0]
                };
                let [a, b, c, d] = held;
                let coded = slots(held);
                assert!(coded.iter().all(|&slot| slot < 1 << (bits - 1)));
                for other in [[d, c, b, a], [b, a, d, c], [c, d, a, b], [b, c, d, a]] {
                    assert_eq!(slots(other), coded);
                }
                let mut sorted = held;
                sorted.sort_unstable_by_key(|&f| (f & 15, f));
                assert_eq!(fingerprints(coded), sorted);
            }
        }
    }

    #[test]
    fn the_drawing_is_right() {
        let bucket = slots([2 << 4 | 1, 4, 3 << 4 | 4, 1 << 4 | 9]);
        assert_eq!(code_in(bucket), 526);
        assert_eq!(bucket, [2 << 3 | 0b110, 0b001, 3 << 3, 1 << 3 | 0b001]);
    }
}
