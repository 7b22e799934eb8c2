//! The variable-increment counting Bloom filter: counters that remember a little of who added to
//! them.
//!
//! The essay is at [`VariableIncrement`].

use std::ops::RangeInclusive;

use crate::bits::{draws, low_mask, remix, spread};
use crate::bloom::standard::MOST_K;
use crate::config::{Config, Param};
use crate::error::{BuildError, BuildErrorKind, DecodeError, Full, MergeError};
use crate::filter::{Filter, Insert, Kind, Merge, Remove};
use crate::format::{Decoder, Encoder};
use crate::lookup::{self, Round};
use crate::math;
use crate::option;
use crate::packed::{Packed, View};

/// A variable-increment counting Bloom filter: insert, remove, merge, in two thirds of
/// [`Counting`](crate::Counting)'s space.
///
/// ```
/// use tamis::{Config, Keyed, VariableIncrement};
///
/// let mut routes: Keyed<VariableIncrement> = Keyed::new(&Config::new(1000).fpr(0.01))?;
/// routes.insert("10.1.0.0/16")?;
/// assert!(routes.contains("10.1.0.0/16"));
/// assert!(routes.remove("10.1.0.0/16"));
/// assert!(!routes.contains("10.1.0.0/16"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///   a key's probe:  place ⌊x·m / 2⁶⁴⌋ and step v, one of L … 2L − 1 (4, 5, 6, 7),
///                   both from the state x
///
///   counter   0       nothing was added         no key
///             5       5                         only keys of step 5
///             9       4+5                       keys of step 4 and 5: what is left is 0,
///                                               or again a sum of steps
///            13       4+4+5, 6+7                any key: a step taken off leaves 6 … 9,
///                                               which may be
///            63       saturated                 any key, for ever
/// ```
///
/// A counting filter adds 1 and can only say whether anybody was here. Here each key adds a step
/// of its own to each of its counters. A key whose step is `v` can have been in a counter of
/// value `c` only if `c − v` is 0 or at least L, the least that others can have added. One other
/// key is found out with probability 1 − 1/L, two still sometimes, three never. So fewer counters
/// do, and they need not be much wider.
///
/// # Places that coincide
///
/// If two probes of a key choose the same counter, each adds its step there, and each is taken
/// away again on removal. What a member finds is then its own step plus a sum of others, its own
/// among them: 0 or at least L, and so it is never denied. A removal looks closer than a lookup
/// does: it tests each probe against what the earlier ones would leave.
///
/// # A counter that is full
///
/// As in [`Counting`](crate::Counting), the greatest value accepts every key and is never changed
/// again. At capacity 2.2·10⁻⁸ of the counters are so at 1 % (`math::vi_counting_overflow`), more
/// if keys are inserted often. Where counters of the usual width would saturate more often than
/// 10⁻⁷, at rates near one half, they are a bit wider.
///
/// # Cost
///
/// At 1 %: 4.121 counters of 6 bits for each key and k = 5, 24.73 bits per key where
/// [`Counting`](crate::Counting) takes 38.37; at 0.39 %, 29.77. L = 8 takes fewer counters of 7
/// bits, 25.28 bits, and L = 2 more of 5, 26.88. Inserting never fails; merging adds the
/// counters. There is no count of copies: a sum does not tell its summands.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `k` | 1 to 64 | the smallest filter for the rate | counters that a key adds to |
/// | `steps` | 2, 4, 8 or 16 | 4 | different amounts that a key may add |
/// | `counter_bits` | log2(steps) + 2 to 12 | log2(steps) + 4, or enough not to saturate | bits of a counter |
///
/// # When to choose it
///
/// When keys come and go, filters must be merged by addition, and a third of
/// [`Counting`](crate::Counting)'s space matters. Where merging does not,
/// [`Cuckoo`](crate::Cuckoo) and [`TinySetRemovable`](crate::TinySetRemovable) take less than
/// half of this.
///
/// # Bibliography
///
/// - Rottenstreich, Kanizo, Keslassy, *The variable-increment counting Bloom filter*, 2012 and
///   2014: the steps L … 2L − 1, the rate, and sequences that can be told apart for longer.
#[derive(Clone, Debug)]
pub struct VariableIncrement {
    table: Packed,
    counters: u64,
    k: u32,
    /// L: the least step, and how many there are.
    steps: u64,
    len: u64,
}

const DEFAULT_STEPS: u64 = 4;
/// Steps from L on; beyond 16 the counters grow wider faster than they grow fewer.
const STEPS: RangeInclusive<u64> = 2..=16;
const MOST_WIDTH: u64 = 12;
const COUNTERS: RangeInclusive<u64> = 64..=1 << 57;
/// Without a width asked for, this share of the counters may saturate at capacity.
const MOST_SATURATED: f64 = 1e-7;

/// The widths of a counter that can hold a step and more.
fn widths(steps: u64) -> RangeInclusive<u64> {
    u64::from(steps.ilog2()) + 2..=MOST_WIDTH
}

impl VariableIncrement {
    fn with_shape(
        counters: u64,
        k: u32,
        steps: u64,
        width: u32,
    ) -> Result<VariableIncrement, BuildError> {
        Ok(VariableIncrement {
            table: Packed::zeroed(counters, width)?,
            counters,
            k,
            steps,
            len: 0,
        })
    }

    /// How many counters there are.
    pub fn counters(&self) -> u64 {
        self.counters
    }

    /// How many counters a key adds to.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// L, the number of steps: a key adds L … 2L − 1 to a counter.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Bits of a counter.
    pub fn counter_bits(&self) -> u32 {
        self.table.width()
    }

    #[inline(always)]
    fn greatest(&self) -> u64 {
        low_mask(self.table.width())
    }

    /// The counter and the step of each probe of a hash: this filter's geometry.
    #[inline(always)]
    fn probes(&self, hash: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (steps, shift) = (self.steps, 64 - self.steps.ilog2());
        draws(hash, self.counters, self.k)
            .map(move |(place, rest)| (place, steps + (rest >> shift)))
    }

    /// Whether `step` may be one of the summands of a counter.
    fn may_hold(&self, counter: u64, step: u64) -> bool {
        self.accepting().may_hold(counter, step) != 0
    }

    #[inline(always)]
    fn accepting(&self) -> Accepting<'_> {
        Accepting {
            table: self.table.view(),
            counters: self.counters,
            k: self.k,
            steps: self.steps,
            step_shift: 64 - self.steps.ilog2(),
            greatest: self.greatest(),
        }
    }

    /// How many of the L steps a counter accepts.
    fn accepted(&self, counter: u64) -> u64 {
        let l = self.steps;
        if counter == self.greatest() {
            l
        } else if counter < 2 * l {
            u64::from(counter >= l)
        } else {
            (counter - 2 * l + 1).min(l)
        }
    }

    /// Whether all steps of a hash can be taken away, one after another.
    fn can_take(&self, hash: u64) -> bool {
        self.probes(hash).enumerate().all(|(i, (place, step))| {
            let counter = self.table.get(place);
            let earlier = self.probes(hash).take(i).filter(|&(at, _)| at == place);
            let taken: u64 = earlier.map(|(_, step)| step).sum();
            counter == self.greatest() || counter > taken && self.may_hold(counter - taken, step)
        })
    }
}

/// The counters, for looking up: one that may hold a key's step lets it through.
#[derive(Clone, Copy)]
struct Accepting<'a> {
    table: View<'a>,
    counters: u64,
    k: u32,
    steps: u64,
    /// What takes the rest of a hash to a number below that of the steps.
    step_shift: u32,
    greatest: u64,
}

/// A place is a counter and, in so many bits below it, a step.
const STEP_BITS: u32 = 4;

impl Accepting<'_> {
    /// Not 0 if `step` may be one of the summands of a counter: the only one, with others, or
    /// nobody knows. Each is a coin, and they are added up, because of any other way to join them
    /// the compiler makes branches.
    #[inline(always)]
    fn may_hold(&self, counter: u64, step: u64) -> u64 {
        let alone = u64::from(counter == step);
        let with_others = u64::from(counter >= step + self.steps);
        let unknown = u64::from(counter == self.greatest);
        alone + with_others + unknown
    }
}

impl Round for Accepting<'_> {
    #[inline(always)]
    fn bytes(self) -> usize {
        self.table.size_in_bytes()
    }

    #[inline(always)]
    fn probes(self) -> usize {
        self.k as usize
    }

    #[inline(always)]
    fn start(self, hash: u64) -> u64 {
        hash
    }

    #[inline(always)]
    fn place<const MANY: bool>(self, state: u64) -> (u64, u64) {
        let (counter, rest) = spread::<MANY>(state, self.counters);
        (remix(state), counter << STEP_BITS | rest >> self.step_shift)
    }

    #[inline(always)]
    fn prefetch(self, place: u64) {
        self.table.prefetch(place >> STEP_BITS);
    }

    #[inline(always)]
    fn test(self, place: u64) -> u64 {
        let counter = self.table.get(place >> STEP_BITS);
        let step = self.steps + (place & low_mask(STEP_BITS));
        u64::from(self.may_hold(counter, step) != 0)
    }
}

impl Filter for VariableIncrement {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        // Fewer than half of the absent keys go through a probe: to test two before each branch,
        // as `lookup::sift` does, would be slower.
        let view = self.accepting();
        for (place, step) in self.probes(hash) {
            if view.may_hold(self.table.get(place), step) == 0 {
                return false;
            }
        }
        true
    }

    fn saturated(&self) -> u64 {
        self.table.iter().filter(|&c| c == self.greatest()).count() as u64
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.table.size_in_bytes()
    }

    /// The share of pairs of counter and step that are accepted, counted, to the power of the
    /// probes.
    fn fpr(&self) -> f64 {
        let accepted: u64 = self.table.iter().map(|c| self.accepted(c)).sum();
        let pairs = self.counters as f64 * self.steps as f64;
        (accepted as f64 / pairs).powi(self.k as i32)
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        for (place, _) in self.probes(hash) {
            self.table.prefetch(place);
        }
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::passes(Some(self.accepting()), hashes, out);
    }
}

impl Insert for VariableIncrement {
    /// Never refuses: a counter that is full stays as it is.
    #[inline(always)]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let greatest = self.greatest();
        for (place, step) in self.probes(hash) {
            let sum = self.table.get(place) + step;
            self.table.set(place, sum.min(greatest));
        }
        self.len = self.len.saturating_add(1);
        Ok(())
    }
}

impl Remove for VariableIncrement {
    fn remove(&mut self, hash: u64) -> bool {
        // With nothing in, only saturated counters can be left of what was.
        if self.len == 0 || !self.can_take(hash) {
            return false;
        }
        let greatest = self.greatest();
        for (place, step) in self.probes(hash) {
            let counter = self.table.get(place);
            if counter != greatest {
                self.table.set(place, counter.saturating_sub(step));
            }
        }
        self.len -= 1;
        true
    }
}

impl Merge for VariableIncrement {
    /// Adds the counters: byte for byte the filter of all keys of both.
    fn merge(&mut self, other: &VariableIncrement) -> Result<(), MergeError> {
        let shape = |f: &VariableIncrement| {
            let width = u64::from(f.counter_bits());
            [f.counters, u64::from(f.k), f.steps, width]
        };
        for ((name, ours), theirs) in SHAPE.into_iter().zip(shape(self)).zip(shape(other)) {
            MergeError::unless_equal(name, ours, theirs)?;
        }
        let greatest = self.greatest();
        for (place, theirs) in (0..self.counters).zip(other.table.iter()) {
            if theirs != 0 {
                let sum = self.table.get(place) + theirs;
                self.table.set(place, sum.min(greatest));
            }
        }
        self.len = self.len.saturating_add(other.len);
        Ok(())
    }
}

/// The parameters in a file.
const SHAPE: [&str; 4] = ["counters", "k", "steps", "counter_bits"];

impl Kind for VariableIncrement {
    const ABOUT: &'static str =
        "keys come and go, and filters are added up, in two thirds of `counting`";
    const PARAMS: &'static [Param] = &[
        Param {
            name: option::K.name,
            values: "1 to 64",
            default: "the smallest filter for the rate",
            about: "counters that a key adds to",
        },
        Param {
            name: option::STEPS.name,
            values: "2, 4, 8 or 16",
            default: "4",
            about: "different amounts that a key may add",
        },
        Param {
            name: option::COUNTER_BITS.name,
            values: "log2(steps) + 2 to 12",
            default: "log2(steps) + 4, or enough not to saturate",
            about: "bits of a counter",
        },
    ];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<VariableIncrement, BuildError> {
        let (keys, fpr) = config.check::<VariableIncrement>(hashes)?;
        let keys = keys.max(1);
        let expected = "2, 4, 8 or 16";
        let steps = config.param::<u64>(option::STEPS.name, expected)?;
        let steps = steps.unwrap_or(DEFAULT_STEPS);
        if !STEPS.contains(&steps) || !steps.is_power_of_two() {
            return Err(BuildError::parameter("steps", steps, expected));
        }
        let expected = "a whole number from 1 to 64";
        let best = || math::vi_counting_size(fpr, steps as u32).map(|(_, k)| k);
        let k = match config.param::<u32>(option::K.name, expected)? {
            Some(k) if !(1..=MOST_K).contains(&k) => {
                return Err(BuildError::parameter("k", k, expected));
            }
            k => k.or_else(best),
        };
        let too_large = |needed| BuildErrorKind::TooLarge {
            unit: "counters",
            needed,
            most: *COUNTERS.end(),
        };
        let size = k.and_then(|k| Some((math::vi_counting_cells(keys, fpr, k, steps as u32)?, k)));
        let (counters, k) = size.ok_or_else(|| too_large(f64::INFINITY))?;
        let counters = counters.max(*COUNTERS.start());
        if !COUNTERS.contains(&counters) {
            return Err(too_large(counters as f64).into());
        }
        let widths = widths(steps);
        let expected = format!("a whole number from {} to {}", widths.start(), widths.end());
        let width = match config.param::<u32>(option::COUNTER_BITS.name, &expected)? {
            Some(width) if !widths.contains(&u64::from(width)) => {
                return Err(BuildError::parameter("counter_bits", width, expected));
            }
            Some(width) => width,
            None => {
                let mean = f64::from(k) * keys as f64 / counters as f64;
                let enough =
                    |w: &u32| math::vi_counting_overflow(mean, *w, steps as u32) <= MOST_SATURATED;
                let mut usual = steps.ilog2() + 4..=MOST_WIDTH as u32;
                usual.find(enough).unwrap_or(MOST_WIDTH as u32)
            }
        };
        let mut filter = VariableIncrement::with_shape(counters, k, steps, width)?;
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        let width = u64::from(self.counter_bits());
        let values = [self.counters, u64::from(self.k), self.steps, width];
        for (name, value) in SHAPE.into_iter().zip(values) {
            out.param(name, value);
        }
        self.table.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<VariableIncrement, DecodeError> {
        let counters = input.param_in("counters", COUNTERS)?;
        let k = input.param_in("k", 1..=u64::from(MOST_K))? as u32;
        let steps = input.param_in("steps", STEPS)?;
        if !steps.is_power_of_two() {
            return Err(DecodeError::invalid("steps", steps, "a power of two"));
        }
        let width = input.param_in("counter_bits", widths(steps))? as u32;
        let table = Packed::decode(input, "counters", counters, width)?;
        // No sum of steps is below L; a key that adds to such a counter would be denied.
        if let Some(sum) = table.iter().find(|counter| (1..steps).contains(counter)) {
            let expected = format!("0, or at least {steps}, the least step");
            return Err(DecodeError::invalid("counters", sum, expected));
        }
        Ok(VariableIncrement {
            table,
            counters,
            k,
            steps,
            len: input.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::{Hashing, Keyed};

    fn of_shape(counters: u64, k: u32, steps: u64, width: u32) -> VariableIncrement {
        VariableIncrement::with_shape(counters, k, steps, width).unwrap()
    }

    fn values(filter: &VariableIncrement) -> Vec<u64> {
        filter.table.iter().collect()
    }

    #[test]
    fn a_lookup_tests_the_counter_and_the_step_of_an_insertion() {
        for steps in [2, 4, 8, 16] {
            let mut filter = VariableIncrement::with_shape(64 * 15, 7, steps, 8).unwrap();
            (0..50).for_each(|key| filter.insert(mix64(key)).unwrap());
            let view = filter.accepting();
            for state in (0..10_000).map(mix64).chain([0, u64::MAX]) {
                let (counter, step) = filter.probes(state).next().unwrap();
                let place = counter << STEP_BITS | (step - steps);
                let expected = (remix(state), place);
                assert_eq!(view.place::<false>(state), expected);
                assert_eq!(view.place::<true>(state), expected);
                let may_hold = filter.may_hold(filter.table.get(counter), step);
                assert_eq!(view.test(place), u64::from(may_hold));
            }
        }
    }

    #[test]
    fn sizes_and_rates_are_those_of_the_formula() {
        // spec: 24.73 bits/key at 1 % with k = 5, 29.77 at 0.39 %; 25.28 with L = 8, 26.88 with L
        // = 2.
        let n = 1_000_000;
        for (fpr, steps, k, bits_per_key) in [
            (0.01, 4, 5, 24.73),
            (1.0 / 256.0, 4, 6, 29.77),
            (0.01, 8, 4, 25.28),
            (0.01, 2, 6, 26.88),
        ] {
            let config = Config::new(n).fpr(fpr).set("steps", steps);
            let mut filter = VariableIncrement::build(&config, &mut []).unwrap();
            assert_eq!(filter.k(), k);
            let got = filter.size_in_bytes() as f64 * 8.0 / n as f64;
            assert!((got / bits_per_key - 1.0).abs() < 0.001, "{got}");
            let members: Vec<u64> = (0..n).map(mix64).collect();
            filter.insert_batch(&members).unwrap();
            let queries = 3_000_000;
            let hits = (0..queries).filter(|i| filter.contains(mix64(1 << 40 | i)));
            let cells = filter.counters() as f64 / n as f64;
            let formula = math::vi_counting_fpr(cells, k, steps as u32);
            let (low, high) = math::binomial_interval(queries, formula, 1e-9);
            let hits = hits.count() as u64;
            assert!((low..=high).contains(&hits), "{hits}, {low} to {high}");
            // The rate that it states is that of its own counters, a sample of the formula.
            assert!(
                (filter.fpr() / formula - 1.0).abs() < 0.01,
                "{}",
                filter.fpr()
            );
            // Four million counters at 2.5e-8 each: more than 5 come once in 10⁹ runs.
            assert!(filter.saturated() <= 5);
        }
    }

    #[test]
    fn small_filters_keep_the_rate_that_is_asked_for() {
        for (n, filters) in [(5u64, 20_000u64), (20, 20_000), (100, 4000), (1000, 400)] {
            for fpr in [0.5, 0.1, 0.01, 0.001] {
                let empty = VariableIncrement::build(&Config::new(n).fpr(fpr), &mut []).unwrap();
                let rates = (0..filters).map(|f| {
                    let mut filter = empty.clone();
                    (0..n).for_each(|i| filter.insert(mix64(f << 32 | i)).unwrap());
                    filter.fpr()
                });
                let mean = rates.sum::<f64>() / filters as f64;
                let told = math::vi_counting_fpr_of(empty.counters, n, empty.k, 4);
                assert!(told <= fpr, "{n} keys: {told} of {fpr}");
                assert!(
                    (mean / told - 1.0).abs() < 0.05,
                    "{n} keys: {mean} of {told}"
                );
                assert!(mean <= 1.01 * fpr, "{n} keys: {mean} of {fpr}");
            }
        }
    }

    #[test]
    fn the_steps_that_a_counter_accepts_are_counted_right() {
        for steps in [2, 4, 8, 16] {
            let filter = of_shape(64, 3, steps, 7);
            for counter in 0..=filter.greatest() {
                let accepted = (steps..2 * steps).filter(|&v| filter.may_hold(counter, v));
                assert_eq!(filter.accepted(counter), accepted.count() as u64);
            }
        }
    }

    #[test]
    fn a_file_with_a_counter_below_the_least_step_is_refused() {
        let config = Config::new(100).fpr(0.01);
        for (value, accepted) in [(0, true), (1, false), (3, false), (4, true), (63, true)] {
            let mut filter = VariableIncrement::build(&config, &mut []).unwrap();
            assert_eq!((filter.steps, filter.counter_bits()), (4, 6));
            (0..filter.counters).for_each(|place| filter.table.set(place, value));
            let file = Keyed::from_filter(filter, Hashing::default(), &config).unwrap();
            let opened = Keyed::<VariableIncrement>::open(file.to_bytes());
            assert_eq!(opened.is_ok(), accepted, "{value}");
            if let Ok(mut opened) = opened {
                opened.insert("a").unwrap();
                assert!(opened.contains("a"), "{value}");
            }
        }
    }

    #[test]
    fn no_member_is_denied_where_the_places_of_a_key_coincide() {
        // A few counters for many probes, narrow ones among them: sums saturate and keys meet
        // themselves.
        for (counters, k, steps, width) in [
            (1, 3, 2, 3),
            (2, 5, 4, 6),
            (3, 8, 4, 12),
            (8, 5, 4, 12),
            (8, 5, 2, 4),
            (16, 4, 8, 7),
            (64, 6, 16, 12),
        ] {
            for seed in 0..40u64 {
                let mut filter = of_shape(counters, k, steps, width);
                let mut held: Vec<u64> = Vec::new();
                for step in 0..500u64 {
                    let draw = mix64(seed << 32 | step << 8 | counters);
                    if draw % 100 < 55 && held.len() < 20 {
                        let key = mix64(draw >> 32 & 31);
                        filter.insert(key).unwrap();
                        held.push(key);
                    } else if !held.is_empty() {
                        let key = held.swap_remove((draw >> 32) as usize % held.len());
                        assert!(filter.remove(key), "a member could not be removed");
                    }
                    assert!(held.iter().all(|&key| filter.contains(key)));
                    assert_eq!(filter.len(), held.len() as u64);
                }
                held.iter().for_each(|&key| assert!(filter.remove(key)));
                let stuck = filter.greatest();
                assert!(values(&filter).iter().all(|&c| c == 0 || c == stuck));
                assert!(width < 12 || filter.saturated() == 0 && filter.fpr() == 0.0);
            }
        }
    }

    #[test]
    fn a_removal_that_proves_absence_changes_nothing() {
        // Even a false positive whose probes coincide: what it would take twice was added once.
        let mut refused = 0;
        for seed in 0..20_000u64 {
            let mut filter = of_shape(4, 3, 4, 6);
            filter.insert(mix64(seed)).unwrap();
            let (before, other) = (values(&filter), mix64(!seed));
            let (contained, removed) = (filter.contains(other), filter.remove(other));
            assert!(contained || !removed);
            refused += u64::from(contained && !removed);
            assert!(removed || values(&filter) == before && filter.len() == 1);
        }
        assert!(refused > 0, "such keys were among them");
    }

    #[test]
    fn a_key_that_saturates_its_counters_stays() {
        let config = Config::new(1000);
        let mut filter = VariableIncrement::build(&config, &mut []).unwrap();
        let key = mix64(1);
        (0..20).for_each(|_| filter.insert(key).unwrap());
        assert_eq!(filter.saturated(), 5);
        assert!((0..20).all(|_| filter.remove(key)));
        assert!(filter.contains(key) && filter.is_empty() && !filter.remove(key));
    }
}
