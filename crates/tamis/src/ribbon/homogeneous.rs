//! The homogeneous ribbon filter: a ribbon that cannot fail to be built.
//!
//! The essay is at [`RibbonHomogeneous`].

use std::marker::PhantomData;
use std::ops::Range;

use crate::bits::mix64;
use crate::buf::Buf;
use crate::build::shards::multiple;
use crate::config::{Config, Param};
use crate::error::{BuildError, BuildErrorKind, DecodeError};
use crate::filter::{Filter, Kind};
use crate::format::{Decoder, Encoder};
use crate::kinds::Declared;
use crate::lookup;
use crate::math;
use crate::option;
use crate::ribbon::sharded::{self, Sharded};
use crate::ribbon::solve::{Part, Set, solve_shards};
use crate::ribbon::{BLOCK, Band, Failure, Rate, Row, Shape, in_order, width};
use crate::simd::{self, Bits};

/// A static filter of any rate whose construction never fails, 5 % above the lower bound.
///
/// ```
/// use tamis::{Config, Keyed, RibbonHomogeneous};
///
/// let config = Config::default().fpr(0.001);
/// let words: Keyed<RibbonHomogeneous> = Keyed::build(&config, ["tamis", "sieve", "strainer"])?;
/// assert!(words.contains("sieve"));
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// # The idea
///
/// In a [`Ribbon`](crate::Ribbon) the slots of a key combine to its result, and equations may
/// contradict each other. Here they combine to 0. The table of zeros satisfies any such
/// equations, so there is always a solution; there are many, because there are more slots than
/// keys, and a random one is taken.
///
/// ```text
///   slot        0      1      2      3      4      5      6  …
///   row         ▪▪▪▪   ▪▪▪▪    –     ▪▪▪▪   ▪▪▪▪    –     ▪▪▪▪
///   number      101    010    110    001    111    011    100
///                              ↑                    ↑
///   a slot without a row is free: it gets random bits; the others follow from those after them
///
///   present  ⇔  for every column c:  parity(row AND the w bits of column c from the start)  =  0
/// ```
///
/// # The rate
///
/// An absent key is found when its slots happen to combine to 0: 2⁻ʳ, as ever, where the numbers
/// are random. Where many keys start close together no slot is free, and all numbers between are
/// 0, whatever the columns: there every key is found. Spare slots make such stretches rare, and
/// wide rows make them rarer. [`fpr`](Filter::fpr) looks at the numbers: a row over w slots
/// combines to 0 with probability 2 to the minus their rank. The filter has so many columns that
/// both together keep to the rate asked for, on average. One stretch more or less makes a
/// difference: a filter that errs more than it was asked to is built anew with a block more, in
/// which every key starts elsewhere, and after some attempts with more room. So some sets take as
/// long to build as several of the others.
///
/// # Cost
///
/// `1 + (4 + r/4)/w` slots a key: `math::homogeneous_ribbon_factor`. At r = 8 that is 8.376 bits
/// a key and a rate of 0.392 % with w = 128, and 8.751 bits and 0.421 % with w = 64, the mean
/// over sets: 4.8 and 10.9 % above the lower bound of that rate. A set that errs more than asked
/// is built again, so that most filters err less.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `width` | 64 or 128 | 128, or 64 for up to 100 keys | slots in a row that a key may name: 128 make the filter 5 % smaller, 64 lookups faster |
///
/// # When to choose it
///
/// When building must not fail, and be simple. It is as large as [`Ribbon`](crate::Ribbon),
/// without its luck and without growing with the number of keys;
/// [`RibbonBumped`](crate::RibbonBumped) is smaller and does not fail either.
///
/// # Bibliography
///
/// - Dillinger, Walzer, *Ribbon filter: practically smaller than Bloom and Xor*, 2021: the
///   filter, and its spare slots.
/// - Dillinger, Hübschle-Schneider, Sanders, Walzer, *Fast succinct retrieval and approximate
///   membership using ribbon*, 2022: why stretches without a free slot are short and few.
#[derive(Clone, Debug)]
pub struct RibbonHomogeneous {
    /// The shards' tables, one after the other.
    words: Buf<u64>,
    shape: Shape,
    len: u64,
}

/// How often a filter whose rate is too high is built anew.
const ATTEMPTS: u64 = 24;
/// After so many attempts there is more room each time.
const PATIENCE: u64 = 10;
/// The rate is at least this many times that of the columns: room for a stretch or two, which
/// would cost all keys another attempt. It takes a fiftieth of a bit a key.
const LEAST_EXCESS: f64 = 1.02;
/// How many half rows are examined to determine the rate: enough for a hundredth of it.
const LOOKED_AT: u64 = 1 << 17;

impl RibbonHomogeneous {
    /// Bits of a row: how many slots in a row a key may name.
    pub fn width(&self) -> u32 {
        self.shape.width
    }

    /// The table of these hashes, or the error that some are given more than once.
    fn solved<R: Row>(
        config: &Config,
        hashes: &mut [u64],
        shards: u64,
        rate: Rate,
        attempt: u64,
    ) -> Result<RibbonHomogeneous, Failure> {
        let len = hashes.len() as u64;
        let tally = config.tally(len);
        let shape = |largest| {
            let slots = math::homogeneous_ribbon_slots(largest, rate.columns, R::WIDTH);
            // A block more lets every key start anywhere else; after a few attempts there is more
            // room as well.
            let slots = slots + attempt * BLOCK + attempt.saturating_sub(PATIENCE) * (slots / 200);
            Shape::new(R::WIDTH, rate, shards, slots)
        };
        let solved = solve_shards(config, hashes, shards, shape, |part| {
            let (keys, row) = (part.keys(), PhantomData::<R>);
            simd::dispatch(Solve { part, row })?;
            tally.add(keys);
            Ok(())
        })?;
        Ok(RibbonHomogeneous {
            words: solved.words,
            shape: solved.shape,
            len,
        })
    }

    /// The sum of the rates at these starts, which lie within half a row and have equally many
    /// columns.
    fn rates(&self, shard: u64, starts: Range<u64>) -> f64 {
        let (half, columns) = (self.shape.width / 2, self.shape.columns_at(starts.start));
        // All of their rows have the slots of the next half, whose numbers mostly tell all
        // columns apart.
        let next = starts.start + u64::from(half);
        let of_half = |column| self.shape.column(&self.words, shard, next, half, column);
        if rank((0..columns).map(of_half), 0) == Some(columns) {
            return starts.count() as f64 * math::fingerprint_fpr(columns);
        }
        starts.map(|start| self.rate_at(shard, start)).sum()
    }

    /// The rate at this start: the share of rows there that combine to 0. A row always includes
    /// its first slot, which the others must cancel.
    fn rate_at(&self, shard: u64, start: u64) -> f64 {
        let of_row = |column| {
            self.shape
                .column(&self.words, shard, start, self.shape.width, column)
        };
        rank((0..self.shape.columns_at(start)).map(of_row), 1).map_or(0.0, math::fingerprint_fpr)
    }
}

/// The rank of some columns, all of their bits but those of `apart`; `None` if some of them
/// combine to one of those. It is that of the numbers, too.
fn rank(columns: impl Iterator<Item = u128>, apart: u128) -> Option<u32> {
    // Echelon form: each has a lowest bit that none after it has.
    let mut basis = [(0, 0); 32];
    let mut rank = 0;
    for mut bits in columns {
        for &(lowest, reduced) in &basis[..rank] {
            bits ^= if bits & lowest == 0 { 0 } else { reduced };
        }
        let others = bits & !apart;
        if others != 0 {
            basis[rank] = (others & others.wrapping_neg(), bits);
            rank += 1;
        } else if bits != 0 {
            return None;
        }
    }
    Some(rank as u32)
}

/// A hash, mixed. The number of blocks is the salt: a filter with a block more is another attempt,
/// and the file needs no field for it.
#[inline(always)]
fn salted(hash: u64, shape: &Shape) -> u64 {
    mix64(hash.wrapping_add(multiple(shape.blocks)))
}

struct Solve<'a, R> {
    part: Part<'a>,
    row: PhantomData<R>,
}

impl<R: Row> simd::Op for Solve<'_, R> {
    type Out = Result<(), Failure>;

    #[inline(always)]
    fn run<B: Bits>(self, _: B) -> Result<(), Failure> {
        let part = self.part;
        let shape = part.shape;
        let mut band = Band::<R, u32>::new(shape.slots())?;
        let start = |hash| shape.start(hash);
        let salted = |hash| salted(hash, &shape);
        in_order(part.runs, shape.starts(), salted, start, |hashes| {
            for &hash in hashes {
                band.insert(start(hash), R::of(hash).0, 0);
            }
            Ok(())
        })?;
        let first = part.shard * shape.slots();
        for (slot, (row, result)) in band.rows.iter().zip(&mut band.results).enumerate() {
            if *row == R::ZERO {
                *result = mix64(first + slot as u64 + 1) as u32;
            }
        }
        band.solve(&shape, part.words);
        Ok(())
    }
}

impl Sharded for RibbonHomogeneous {
    #[inline(always)]
    fn tables(&self) -> (&[u64], &[u64], Shape) {
        (&self.words, &[], self.shape)
    }

    #[inline(always)]
    fn salted(hash: u64, _: u64, _: &[u64], shape: &Shape) -> u64 {
        salted(hash, shape)
    }

    #[inline(always)]
    fn expected(_: u32) -> u32 {
        0
    }
}

impl Filter for RibbonHomogeneous {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        lookup::single(self, hash)
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        sharded::contains_batch(self, hashes, out);
    }

    /// The number of distinct keys.
    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.words.size_in_bytes()
    }

    /// The mean over all starts, or over those of some halves of rows, evenly spread.
    fn fpr(&self) -> f64 {
        let (starts, half) = (self.shape.starts(), u64::from(self.shape.width / 2));
        let halves = starts.div_ceil(half);
        let all = self.shape.shards * halves;
        // Half a row hardly tells more columns apart, and then each start has to be looked at.
        let each = u64::from(self.shape.columns) + 12 > half;
        let looked_at = all.min(if each { LOOKED_AT / 16 } else { LOOKED_AT });
        if all == 0 {
            return 0.0;
        }
        let (mut sum, mut count) = (0.0, 0);
        for i in 0..looked_at {
            let at = (u128::from(i) * u128::from(all) / u128::from(looked_at)) as u64;
            let first = at % halves * half;
            let these = first..starts.min(first + half);
            count += these.end - these.start;
            sum += self.rates(at / halves, these);
        }
        sum / count as f64
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        sharded::prefetch(self, hash);
    }
}

impl Kind for RibbonHomogeneous {
    const ABOUT: &'static str =
        "a fixed set at any rate, 5 % above the lower bound; building never fails";
    const PARAMS: &'static [Param] = &[Param {
        name: option::WIDTH.name,
        values: "64 or 128",
        default: "128, or 64 for up to 100 keys",
        about: "slots in a row that a key may name: 128 make the filter 5 % smaller, 64 lookups faster",
    }];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<RibbonHomogeneous, BuildError> {
        let (_, fpr) = config.check::<RibbonHomogeneous>(hashes)?;
        let width = width(config, hashes)?;
        let excess = math::homogeneous_ribbon_excess(width).max(LEAST_EXCESS);
        let rate = Rate::new(Self::INFO.name, fpr, excess)?;
        if hashes.is_empty() {
            config.tally(0);
            let shape = Shape::new(width, rate, 0, 0);
            let words = Buf::zeroed(0)?;
            return Ok(RibbonHomogeneous {
                words,
                shape,
                len: 0,
            });
        }
        let (mut set, mut attempt) = (Set::new(hashes.len()), 0);
        // Two passes more than attempts: one to find repeats, and one to find hashes that fill one
        // shard.
        for _ in 0..ATTEMPTS + 2 {
            let hashes = &mut hashes[..set.len];
            let solved = if width == 64 {
                Self::solved::<u64>(config, hashes, set.shards, rate, attempt)
            } else {
                Self::solved::<u128>(config, hashes, set.shards, rate, attempt)
            };
            match solved {
                Ok(filter) if filter.fpr() <= fpr || attempt + 1 == ATTEMPTS => {
                    return Ok(filter);
                }
                Ok(_) => attempt += 1,
                Err(Failure::Memory(error)) => return Err(error.into()),
                Err(_) => set.mend(hashes),
            }
        }
        let (keys, attempts) = (hashes.len() as u64, ATTEMPTS as u32);
        Err(BuildErrorKind::Attempts { keys, attempts }.into())
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        self.shape.encode(out);
        out.section(&self.words);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<RibbonHomogeneous, DecodeError> {
        let shape = Shape::decode(input)?;
        Ok(RibbonHomogeneous {
            words: input.section("words", shape.words() * shape.shards)?,
            shape,
            len: input.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ribbon::tests::{assert_rate, keys};

    fn build(config: &str, hashes: &[u64]) -> RibbonHomogeneous {
        Kind::build(&config.parse().unwrap(), &mut hashes.to_vec()).unwrap()
    }

    /// The rate of rows at a start, by counting: the sums of slots' numbers that the first is
    /// made up for by.
    fn rate_by_definition(filter: &RibbonHomogeneous, start: u64) -> f64 {
        let shape = filter.shape;
        let bits: Vec<u128> = (0..shape.columns_at(start))
            .map(|column| shape.column(&filter.words, 0, start, shape.width, column))
            .collect();
        let number = |i| -> u32 {
            let columns = (0..).zip(&bits);
            columns.map(|(c, bits)| ((bits >> i & 1) as u32) << c).sum()
        };
        let mut sums = std::collections::BTreeSet::from([0]);
        for i in 1..shape.width {
            if !sums.contains(&number(i)) {
                let more: Vec<u32> = sums.iter().map(|sum| sum ^ number(i)).collect();
                sums.extend(more);
            }
        }
        if sums.contains(&number(0)) {
            1.0 / sums.len() as f64
        } else {
            0.0
        }
    }

    #[test]
    fn the_rate_of_a_half_is_the_sum_of_its_starts_and_theirs_is_that_of_the_numbers() {
        for width in [64, 128] {
            let mut filter = build(&format!("fpr=0.03,width={width}"), &keys(20_000, 7));
            // Of some stretches all bits are 0, of others two thirds.
            let words = filter.words.make_mut();
            for (i, word) in words.iter_mut().enumerate() {
                match i / 40 % 7 {
                    0 => *word = 0,
                    1 if i % 3 > 0 => *word = 0,
                    _ => {}
                }
            }
            let half: u64 = width / 2;
            let (mut full, mut deficient) = (0, 0);
            for first in (0..filter.shape.starts() - half).step_by(half as usize) {
                let together = filter.rates(0, first..first + half);
                let columns = filter.shape.columns_at(first);
                let mut sum = 0.0;
                for start in first..first + half {
                    let rate = filter.rate_at(0, start);
                    assert_eq!(rate, rate_by_definition(&filter, start), "start {start}");
                    let is_full = rate == math::fingerprint_fpr(columns);
                    (full, deficient) =
                        (full + i32::from(is_full), deficient + i32::from(!is_full));
                    sum += rate;
                }
                assert!(
                    (together / sum - 1.0).abs() < 1e-12 || together == sum,
                    "half at {first}"
                );
            }
            assert!(full > 1000 && deficient > 1000, "{full}, {deficient}");
        }
    }

    #[test]
    fn every_filter_keeps_to_the_rate_asked_for() {
        // Without further attempts one in ten of these has more, by up to a third.
        for (width, n, fpr) in [
            (64, 30_000, 0.01),
            (64, 30_000, 0.0001),
            (128, 60_000, 0.01),
        ] {
            for set in 0..12 {
                let filter = build(&format!("fpr={fpr},width={width}"), &keys(n, 50 + set));
                let now = filter.fpr();
                assert!(now <= fpr, "width {width}, set {set}: {now}");
            }
        }
    }

    #[test]
    fn a_block_more_is_another_try() {
        let rate = Rate::new("", 0.01, 1.0).unwrap();
        let [few, more] = [0, 1].map(|blocks| Shape::new(64, rate, 1, 100_000 + blocks * BLOCK));
        let start = |hash, shape: &Shape| shape.start(salted(hash, shape)) as f64;
        // Were starts only stretched, they would stay within a block of where they were.
        let moved = |&&hash: &&u64| (start(hash, &few) - start(hash, &more)).abs() > 1000.0;
        let hashes = keys(10_000, 9);
        assert!(hashes.iter().filter(moved).count() > 9000);
    }

    #[test]
    fn repeats_leave_the_width_as_it_is() {
        let hashes = keys(60, 3);
        let once = build("", &hashes);
        let often = build("", &[&hashes[..]; 5].concat());
        assert_eq!((once.width(), often.width()), (64, 64));
        assert!(once.words[..] == often.words[..]);
    }

    #[test]
    fn sizes_and_rates_are_those_of_the_table() {
        // Eight whole columns: 8.376 bits at 0.392 % (w = 128), 8.751 at 0.421 % on average (w =
        // 64), and a few words.
        for (width, asked, bits, rate) in [
            (128, 0.003_93, 8.376, 0.003_96),
            (64, 0.004_239, 8.751, 0.004_25),
        ] {
            let mut sum = 0.0;
            for set in 0..3 {
                let hashes = keys(1_000_000, set);
                // As published: one attempt, whatever its rate.
                let excess = math::homogeneous_ribbon_excess(width);
                let rate = Rate::new("", asked, excess).unwrap();
                let given = &mut *hashes.clone();
                let filter = match width {
                    64 => RibbonHomogeneous::solved::<u64>(&Config::default(), given, 1, rate, 0),
                    _ => RibbonHomogeneous::solved::<u128>(&Config::default(), given, 1, rate, 0),
                };
                let filter = filter.unwrap();
                let got = filter.size_in_bytes() as f64 * 8.0 / 1e6;
                assert!((got - bits).abs() < 0.003, "w = {width}: {got}");
                assert!(hashes.iter().all(|&hash| filter.contains(hash)));
                assert_rate(&filter, 1_000_000);
                sum += filter.fpr();
            }
            let mean = sum / 3.0;
            assert!((1.0 / 256.0..rate).contains(&mean), "w = {width}: {mean}");
        }
    }

    #[test]
    fn the_rate_is_told_also_where_there_are_too_many_keys() {
        // As many keys as slots: stretches without a free slot, where every key is found.
        let rate = Rate::new("", 0.01, 1.0).unwrap();
        let hashes = keys(20_000, 2);
        let shape = Shape::new(64, rate, 1, 20_300);
        let mut words = Buf::zeroed(shape.words()).unwrap();
        let (runs, row) = (&[&*hashes][..], PhantomData::<u64>);
        let part = Part {
            runs,
            shard: 0,
            shape,
            words: words.make_mut(),
        };
        simd::dispatch(Solve { part, row }).unwrap();
        let filter = RibbonHomogeneous {
            words,
            shape,
            len: 20_000,
        };
        assert!(hashes.iter().all(|&hash| filter.contains(hash)));
        assert!(filter.fpr() > 0.02, "{}", filter.fpr());
        assert_rate(&filter, 300_000);
    }

    #[test]
    fn small_sets_keep_to_the_rate() {
        for n in [1, 2, 30, 90, 100, 101, 110, 150, 170, 180, 190, 250, 1000] {
            for config in ["width=64", "width=128"] {
                for set in 0..5 {
                    let hashes = keys(n, set);
                    let filter = build(config, &hashes);
                    assert!(hashes.iter().all(|&hash| filter.contains(hash)));
                    assert!(
                        filter.fpr() <= 0.0105,
                        "{n} keys, {config}: {}",
                        filter.fpr()
                    );
                }
            }
        }
    }

    #[test]
    fn the_bytes_do_not_depend_on_threads_order_or_repeats() {
        let rate = Rate::new("", 0.01, 1.0).unwrap();
        let mut hashes = keys(50_000, 6);
        let solved = |hashes: &mut [u64], threads| {
            let config = Config::default().threads(threads);
            RibbonHomogeneous::solved::<u128>(&config, hashes, 5, rate, 0)
        };
        let one = solved(&mut hashes, 1).unwrap();
        assert!(hashes.iter().all(|&hash| one.contains(hash)));
        assert_rate(&one, 300_000);
        hashes.reverse();
        assert_eq!(*one.words, *solved(&mut hashes, 3).unwrap().words);
        let mut repeated = [&*hashes, &hashes[..10]].concat();
        assert!(matches!(solved(&mut repeated, 1), Err(Failure::Repeats)));
        let (plain, filter) = (build("", &hashes), build("", &repeated));
        assert!(filter.len() == 50_000 && *filter.words == *plain.words);
    }
}
