//! A counter with digits −1, 0 and 1, which counts up and down in a constant number of digits.
//!
//! In plain binary, a counter that goes to and fro between 2^t − 1 and 2^t changes all its digits
//! each time. With a digit −1 there is a second way to write most numbers, and the one that is
//! nearest is taken:
//!
//! ```text
//!  columns      3  2  1  0
//!  seven           1  1  1        a step up carries through equal digits, as always:
//!  eight        1  0  0  0        and a step down does not carry back:
//!  seven        1  0  0 −1        8 − 1
//!  six          1  0 −1  0        a second step down carries through the −1, and stops
//! ```
//!
//! Two rules keep it short. (i) 1 and −1 in one column cancel. (ii) A digit a above −a is 2a − a =
//! a: the column gets a, and the one above it 0. So no two neighbours have opposite signs, the top
//! digit is 1, and a number C has at most ⌈log₂ C⌉ + 1 columns, and no more than C. A step that
//! carries far leaves zeros behind, which the next carries need: a step changes a constant number
//! of digits in the mean over any sequence of steps from 0.
//!
//! Pagh, Pagh and Rao ask for more, that of four bits of two neighbours at most one is 1; but three
//! steps up give the digits 1 1, which neither rule changes. What they derive follows from the
//! rules as they are here.

/// What a step changes. Columns below `column` become 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) column: u32,
    /// What the column gets; `None` if it was the last one, and the counter is 0 now.
    pub(super) digit: Option<i8>,
    pub(super) next: Next,
}

/// What becomes of the column above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Same,
    Zero,
    /// It was the top one, and would be 0.
    Gone,
}

/// One step up (`sign` 1) or, of a counter that is not 0, down (−1). Reads digits as it needs them;
/// columns above the top one have none.
#[inline(always)]
pub(super) fn step(sign: i8, mut digit: impl FnMut(u32) -> Option<i8>) -> Step {
    let mut column = 0;
    let mut held = digit(0);
    while held == Some(sign) {
        column += 1;
        held = digit(column);
    }
    let (mut new, mut next) = (Some(sign), Next::Same);
    if let Some(held) = held {
        let sum = held + sign;
        new = Some(sum);
        if sum == 0 {
            // Only a 1 can be the top.
            if held == 1 && digit(column + 1).is_none() {
                new = None;
            }
        } else if digit(column + 1) == Some(-sum) {
            new = Some(-sum);
            let is_top = sum == -1 && digit(column + 2).is_none();
            next = if is_top { Next::Gone } else { Next::Zero };
        }
    }
    Step {
        column,
        digit: new,
        next,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::bits::mix64;

    /// A counter, and how many digits were read.
    #[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
    struct Counter {
        digits: Vec<i8>,
    }

    impl Counter {
        fn step(&mut self, sign: i8) -> u64 {
            let mut probes = 0;
            let step = step(sign, |column| {
                probes += 1;
                self.digits.get(column as usize).copied()
            });
            let column = step.column as usize;
            self.digits[..column].fill(0);
            match step.digit {
                Some(digit) if column == self.digits.len() => self.digits.push(digit),
                Some(digit) => self.digits[column] = digit,
                None => self.digits.truncate(column),
            }
            match step.next {
                Next::Same => {}
                Next::Zero => self.digits[column + 1] = 0,
                Next::Gone => self.digits.truncate(column + 1),
            }
            probes
        }

        fn value(&self) -> i64 {
            let columns = self.digits.iter().zip(0..);
            columns
                .map(|(&digit, column)| i64::from(digit) << column)
                .sum()
        }

        fn check(&self, value: i64) {
            assert_eq!(self.value(), value, "{self:?}");
            let apart = self.digits.windows(2).all(|two| two[0] * two[1] != -1);
            assert!(apart, "neighbours of opposite signs: {self:?}");
            assert!(self.digits.last().is_none_or(|&top| top == 1), "{self:?}");
            let columns = self.digits.len() as i64;
            let log = (value.max(1) as u64).next_power_of_two().ilog2();
            assert!(columns <= value.min(i64::from(log) + 1), "{self:?}");
        }
    }

    #[test]
    fn every_state_up_to_4096_is_exact_and_short() {
        // All states that any sequence of steps up and down can reach.
        let mut waiting = vec![Counter::default()];
        let mut seen: HashSet<Counter> = waiting.iter().cloned().collect();
        while let Some(state) = waiting.pop() {
            let value = state.value();
            let signs = [(1, value < 4096), (-1, value > 0)].into_iter();
            for (sign, _) in signs.filter(|&(_, is_in_range)| is_in_range) {
                let mut next = state.clone();
                next.step(sign);
                next.check(value + i64::from(sign));
                if seen.insert(next.clone()) {
                    waiting.push(next);
                }
            }
        }
        assert_eq!(seen.len(), 33_462, "most numbers have several forms");
    }

    #[test]
    fn a_step_reads_three_digits_in_the_mean() {
        let mean = |start: u64, signs: &mut dyn Iterator<Item = i8>| {
            let mut counter = Counter::default();
            for _ in 0..start {
                counter.step(1);
            }
            let (mut value, mut steps, mut probes) = (start as i64, 0, 0);
            for sign in signs {
                probes += counter.step(sign);
                value += i64::from(sign);
                steps += 1;
            }
            counter.check(value);
            probes as f64 / f64::from(steps)
        };
        let up = mean(0, &mut std::iter::repeat_n(1, 1 << 16));
        let there_and_back =
            std::iter::repeat_n(1, 1 << 16).chain(std::iter::repeat_n(-1, 1 << 16));
        let there_and_back = mean(0, &mut { there_and_back });
        let to_and_fro = (0..1_000_000).map(|i| if i % 2 == 0 { 1 } else { -1 });
        let to_and_fro = mean((1 << 20) - 1, &mut { to_and_fro });
        let walk = (0..1_000_000u64).map(|i| if mix64(i) >> 63 == 0 { 1 } else { -1 });
        let walk = mean(10_000, &mut { walk });
        println!("{up:.2} up, {there_and_back:.2} and back, {to_and_fro:.2} to and fro, {walk:.2}");
        for mean in [up, there_and_back, to_and_fro, walk] {
            assert!(mean <= 3.1, "{mean} digits a step");
        }
    }
}
