//! How often a remainder came, written among the remainders of its run.
//!
//! A run of a counting quotient filter is a list of symbols of r bits. Remainders ascend; a
//! remainder that came more than twice stands on both sides of its count:
//!
//! ```text
//!  count        x > 0                x = 0
//!  1            x                    0
//!  2            x x                  0 0
//!  3            x d x                0 0 0
//!  4 …          x d … x              0 d … 0 0
//! ```
//!
//! The digits d … are those of the count less 3 (x = 0: less 4), the highest first, to a base that
//! leaves out the symbols that would end them: 0 and x. A remainder followed by a *smaller* symbol
//! is followed by a count, as the next remainder would be larger; where the first digit is larger
//! than x, a 0 goes before it. Only the code of 0 has two zeros side by side, so the first such
//! pair in a run ends its count.

use crate::bits::low_mask;

/// Symbols of the longest code: 64 digits to base 2, the remainder twice, and a 0.
const LONGEST: usize = 67;

/// The fewest bits of a symbol: with three symbols beside 0, one of them the remainder, two are
/// left for digits.
pub(super) const LEAST_BITS: u32 = 2;

/// The symbols of one remainder and its count.
#[derive(Clone, Copy)]
pub(super) struct Code {
    symbols: [u64; LONGEST],
    len: usize,
}

impl Code {
    /// Of a remainder that came `count` times, which is not 0.
    pub(super) fn new(remainder: u64, count: u64, bits: u32) -> Code {
        let mut code = Code {
            symbols: [0; LONGEST],
            len: 0,
        };
        code.push(remainder);
        match (remainder, count) {
            (_, ..=2) => (1..count).for_each(|_| code.push(remainder)),
            (0, 3) => (0..2).for_each(|_| code.push(0)),
            (0, _) => {
                code.push_digits(count - 4, low_mask(bits), |digit| digit + 1);
                code.push(0);
                code.push(0);
            }
            _ => {
                let symbol = |digit| digit + 1 + u64::from(digit + 1 >= remainder);
                code.push_digits(count - 3, low_mask(bits) - 1, symbol);
                if code.symbols[1] > remainder {
                    code.symbols.copy_within(1..code.len, 2);
                    code.symbols[1] = 0;
                    code.len += 1;
                }
                code.push(remainder);
            }
        }
        code
    }

    fn push(&mut self, symbol: u64) {
        self.symbols[self.len] = symbol;
        self.len += 1;
    }

    /// A number's digits, the highest first.
    fn push_digits(&mut self, mut number: u64, base: u64, symbol: impl Fn(u64) -> u64) {
        let first = self.len;
        loop {
            self.push(symbol(number % base));
            number /= base;
            if number == 0 {
                break;
            }
        }
        self.symbols[first..self.len].reverse();
    }

    pub(super) fn symbols(&self) -> &[u64] {
        &self.symbols[..self.len]
    }
}

/// A remainder with its count, found in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    pub(super) remainder: u64,
    pub(super) count: u64,
    /// Symbols of its code.
    pub(super) len: u64,
}

impl Counter {
    /// Reads the code that begins at number `at` of a run's `end` symbols. Whatever they are, its
    /// length is at least 1 and reaches no farther than the run.
    #[inline(always)]
    pub(super) fn read(symbol: impl Fn(u64) -> u64, at: u64, end: u64, bits: u32) -> Counter {
        let remainder = symbol(at);
        let next = |i: u64| (at + i < end).then(|| symbol(at + i));
        let counter = |count, len| Counter {
            remainder,
            count,
            len,
        };
        match next(1) {
            None => counter(1, 1),
            Some(second) if second > remainder && remainder > 0 => counter(1, 1),
            Some(second) if second == remainder => match next(2) {
                Some(0) if remainder == 0 => counter(3, 3),
                _ => counter(2, 2),
            },
            _ if remainder > 0 => read_count(symbol, remainder, at, end, bits),
            _ => read_count_of_zero(symbol, at, end, bits),
        }
    }
}

/// Of a remainder that is followed by a smaller symbol.
#[inline(never)]
fn read_count(
    symbol: impl Fn(u64) -> u64,
    remainder: u64,
    at: u64,
    end: u64,
    bits: u32,
) -> Counter {
    let base = low_mask(bits) - 1;
    let first = at + 1 + u64::from(symbol(at + 1) == 0);
    let (mut count, mut i) = (0u64, first);
    while i < end && symbol(i) != remainder {
        let digit = symbol(i)
            .saturating_sub(1)
            .saturating_sub(u64::from(symbol(i) > remainder));
        count = count.saturating_mul(base).saturating_add(digit);
        i += 1;
    }
    Counter {
        remainder,
        count: count.saturating_add(3),
        len: (i + 1).min(end) - at,
    }
}

/// Of a 0 that is not followed by another.
#[inline(never)]
fn read_count_of_zero(symbol: impl Fn(u64) -> u64, at: u64, end: u64, bits: u32) -> Counter {
    let base = low_mask(bits);
    let mut count = 0u64;
    for i in at + 1..end.saturating_sub(1) {
        if symbol(i) == 0 && symbol(i + 1) == 0 {
            return Counter {
                remainder: 0,
                count: count.saturating_add(4),
                len: i + 2 - at,
            };
        }
        let digit = symbol(i).saturating_sub(1);
        count = count.saturating_mul(base).saturating_add(digit);
    }
    Counter {
        remainder: 0,
        count: 1,
        len: 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    fn read(run: &[u64], bits: u32) -> Vec<(u64, u64)> {
        let (mut at, mut held) = (0, Vec::new());
        while at < run.len() {
            let counter = Counter::read(|i| run[i as usize], at as u64, run.len() as u64, bits);
            held.push((counter.remainder, counter.count));
            at += counter.len as usize;
        }
        assert_eq!(at, run.len());
        held
    }

    fn write(held: &[(u64, u64)], bits: u32) -> Vec<u64> {
        let code = |&(remainder, count)| Code::new(remainder, count, bits);
        let codes = held.iter().map(code);
        codes.flat_map(|code| code.symbols().to_vec()).collect()
    }

    #[test]
    fn every_count_is_read_as_it_was_written_between_any_neighbours() {
        for bits in [2, 7, 8] {
            let top = low_mask(bits);
            for remainder in [0, 1, top] {
                let far = (0..64).flat_map(|i| [1 << i, (1 << i) | 1, u64::MAX >> i]);
                let counts = (1..=1_000_000).chain(far);
                for count in counts {
                    let run = write(&[(remainder, count)], bits);
                    assert!(run.iter().all(|&symbol| symbol <= top));
                    let counter = Counter::read(|i| run[i as usize], 0, run.len() as u64, bits);
                    let len = run.len() as u64;
                    let expected = Counter {
                        remainder,
                        count,
                        len,
                    };
                    assert_eq!(counter, expected, "{bits} bits");
                }
            }
        }
    }

    #[test]
    fn runs_of_many_counters_are_read_as_they_were_written() {
        for seed in 0..20_000u64 {
            let bits = [2, 3, 4, 8, 20, 57][seed as usize % 6];
            let mut remainders: Vec<u64> = (0..1 + mix64(seed) % 6)
                .map(|i| mix64(seed << 8 | i) & low_mask(bits) & mix64(!i))
                .collect();
            remainders.sort_unstable();
            remainders.dedup();
            let count = |&remainder: &u64| {
                let draw = mix64(remainder ^ seed);
                (remainder, (mix64(draw) >> (draw % 64)).max(1))
            };
            let held: Vec<(u64, u64)> = remainders.iter().map(count).collect();
            assert_eq!(read(&write(&held, bits), bits), held, "{bits} bits");
        }
    }

    #[test]
    fn any_symbols_are_read_to_their_end() {
        for seed in 0..100_000u64 {
            let bits = 2 + seed as u32 % 3;
            let run: Vec<u64> = (0..1 + mix64(seed) % 9)
                .map(|i| mix64(seed << 8 | i) & low_mask(bits))
                .collect();
            read(&run, bits);
        }
    }

    #[test]
    fn the_longest_code_fits() {
        for remainder in 0..4 {
            assert!(Code::new(remainder, u64::MAX, 2).symbols().len() <= LONGEST);
        }
    }
}
