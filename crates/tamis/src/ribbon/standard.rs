//! The standard ribbon filter: 5 % above the lower bound at any rate, and a lookup in a few
//! adjacent lines.
//!
//! The essay is at [`Ribbon`].

use std::marker::PhantomData;

use crate::bits::mix64;
use crate::buf::Buf;
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
use crate::ribbon::{Band, Failure, Placed, Rate, Row, Shape, in_order, width};
use crate::simd::{self, Bits};

/// A static filter of any rate, 5 % above the lower bound.
///
/// ```
/// use tamis::{Config, Keyed, Ribbon};
///
/// let config = Config::default().fpr(0.001);
/// let words: Keyed<Ribbon> = Keyed::build(&config, ["tamis", "sieve", "strainer"])?;
/// assert!(words.contains("sieve"));
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// # The idea
///
/// The family's page says what a ribbon is: this is the plain one. Every key is an equation over
/// w slots in a row, and a table that satisfies all of them is the filter.
///
/// ```text
///   salt of the shard ── mix64(hash + salt) ──┬── start, 0 … slots − w
///                                             ├── row, w bits, the first of them 1
///                                             └── result, r bits
///
///   present  ⇔  for every column c:
///               parity(row AND the w bits of column c from the start)  =  bit c of the result
/// ```
///
/// # Build
///
/// Equations over random rows may contradict each other: by chance, where more keys start than
/// there are slots. The fewer spare slots, the more often; with 4.7 % of them a million keys (w =
/// 128) fail one time in twenty, and then another salt is tried. Four failures, or repeated keys,
/// lead to more slots or to the distinct keys, as in [`BinaryFuse`](crate::BinaryFuse).
///
/// # Cost
///
/// `factor · r` bits a key, where the factor is 1.0358 at 2¹⁷ keys and grows by 0.0038 a doubling
/// (w = 128), or 1.094 and 0.0083 (w = 64): `math::ribbon_factor`. At 2⁻⁸ and a million keys that
/// is 8.38 bits. At rates between powers of two a share of the blocks has one column less: never
/// more than 0.09 bits above log₂(1/ε), where rounding up to a whole bit may cost a whole bit.
/// Tables are whole blocks of 64 slots, and three at least (w = 64: two).
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `width` | 64 or 128 | 128, or 64 for up to 100 keys | slots in a row that a key may name: 128 make the filter 4 % smaller, 64 lookups faster |
///
/// # When to choose it
///
/// For a fixed set at a rate that is not 2⁻⁸ or 2⁻¹⁶, and for small sets, where a fuse filter
/// wastes slots. [`RibbonBumped`](crate::RibbonBumped) is smaller from 20 000 keys on, at 8 bits;
/// [`BinaryFuse`](crate::BinaryFuse) is faster to look up.
///
/// # Bibliography
///
/// - Dillinger, Walzer, *Ribbon filter: practically smaller than Bloom and Xor*, 2021: this
///   filter.
/// - Dillinger and others, the Ribbon filter of RocksDB, 2020: the table of spare slots that the
///   factor is fitted to.
#[derive(Clone, Debug)]
pub struct Ribbon {
    /// The shards' tables, one after the other.
    words: Buf<u64>,
    /// One for each shard; none for the filter of no keys.
    salts: Buf<u64>,
    shape: Shape,
    len: u64,
}

/// Salts that a shard tries before all get more slots, and how often they do.
const SALTS: u64 = 4;
const ROUNDS: u32 = 16;

impl Ribbon {
    /// Bits of a row: how many slots in a row a key may name.
    pub fn width(&self) -> u32 {
        self.shape.width
    }

    /// One attempt at the whole set, with every shard's attempts in it.
    fn round<R: Row>(
        config: &Config,
        hashes: &mut [u64],
        shards: u64,
        rate: Rate,
        failures: u32,
    ) -> Result<Ribbon, Failure> {
        let len = hashes.len() as u64;
        let tally = config.tally(len);
        let shape = |largest| {
            let slots = math::ribbon_slots(largest, R::WIDTH, failures);
            Shape::new(R::WIDTH, rate, shards, slots)
        };
        let solved = solve_shards(config, hashes, shards, shape, |part| {
            let (keys, row) = (part.keys(), PhantomData::<R>);
            let salt = simd::dispatch(Solve { part, row })?;
            tally.add(keys);
            Ok(salt)
        })?;
        Ok(Ribbon {
            words: solved.words,
            salts: Buf::copied(&solved.each)?,
            shape: solved.shape,
            len,
        })
    }

    fn build_wide<R: Row>(
        config: &Config,
        rate: Rate,
        hashes: &mut [u64],
    ) -> Result<Ribbon, BuildError> {
        let keys = hashes.len();
        let (mut set, mut failures) = (Set::new(keys), 0);
        for _ in 0..ROUNDS {
            let hashes = &mut hashes[..set.len];
            match Self::round::<R>(config, hashes, set.shards, rate, failures) {
                Ok(filter) => return Ok(filter),
                Err(Failure::Memory(error)) => return Err(error.into()),
                Err(Failure::Repeats) => set.mend(hashes),
                Err(Failure::Conflict) => failures += 1,
            }
        }
        let (keys, attempts) = (keys as u64, ROUNDS);
        Err(BuildErrorKind::Attempts { keys, attempts }.into())
    }
}

/// Solves one shard, and returns the salt that succeeded.
struct Solve<'a, R> {
    part: Part<'a>,
    row: PhantomData<R>,
}

impl<R: Row> simd::Op for Solve<'_, R> {
    type Out = Result<u64, Failure>;

    #[inline(always)]
    fn run<B: Bits>(self, _: B) -> Result<u64, Failure> {
        let (shape, runs) = (self.part.shape, self.part.runs);
        for attempt in 0..SALTS {
            let salt = mix64(attempt);
            let mut band = Band::<R, u32>::new(shape.slots())?;
            let salted = |hash: u64| mix64(hash.wrapping_add(salt));
            let start = |hash| shape.start(hash);
            let outcome = in_order(runs, shape.starts(), salted, start, |hashes| {
                for &hash in hashes {
                    let (row, result) = R::of(hash);
                    // Bits that the filter does not keep must not make a conflict.
                    let result = result & shape.kept();
                    if let Placed::Conflict = band.insert(start(hash), row, result) {
                        return Err(Failure::Conflict);
                    }
                }
                Ok(())
            });
            match outcome {
                Ok(()) => {
                    band.solve(&shape, self.part.words);
                    return Ok(salt);
                }
                Err(Failure::Conflict) => {}
                Err(failure) => return Err(failure),
            }
        }
        Err(Failure::Conflict)
    }
}

impl Sharded for Ribbon {
    #[inline(always)]
    fn tables(&self) -> (&[u64], &[u64], Shape) {
        (&self.words, &self.salts, self.shape)
    }

    /// As the shard's salt makes it.
    #[inline(always)]
    fn salted(hash: u64, shard: u64, salts: &[u64], _: &Shape) -> u64 {
        mix64(hash.wrapping_add(salts[shard as usize]))
    }

    #[inline(always)]
    fn expected(result: u32) -> u32 {
        result
    }
}

impl Filter for Ribbon {
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
        self.words.size_in_bytes() + self.salts.size_in_bytes()
    }

    fn fpr(&self) -> f64 {
        self.shape.fpr()
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        sharded::prefetch(self, hash);
    }
}

impl Kind for Ribbon {
    const ABOUT: &'static str = "a fixed set at any rate, 5 % above the lower bound";
    const PARAMS: &'static [Param] = &[Param {
        name: option::WIDTH.name,
        values: "64 or 128",
        default: "128, or 64 for up to 100 keys",
        about: "slots in a row that a key may name: 128 make the filter 4 % smaller, 64 lookups faster",
    }];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Ribbon, BuildError> {
        let (_, fpr) = config.check::<Ribbon>(hashes)?;
        let width = width(config, hashes)?;
        let rate = Rate::new(Self::INFO.name, fpr, 1.0)?;
        if hashes.is_empty() {
            config.tally(0);
            return Ok(Ribbon {
                words: Buf::zeroed(0)?,
                salts: Buf::zeroed(0)?,
                shape: Shape::new(width, rate, 0, 0),
                len: 0,
            });
        }
        if width == 64 {
            Self::build_wide::<u64>(config, rate, hashes)
        } else {
            Self::build_wide::<u128>(config, rate, hashes)
        }
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        self.shape.encode(out);
        out.section(&self.salts);
        out.section(&self.words);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Ribbon, DecodeError> {
        let shape = Shape::decode(input)?;
        Ok(Ribbon {
            salts: input.section("salts", shape.shards)?,
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

    fn build(config: &str, hashes: &[u64]) -> Ribbon {
        Kind::build(&config.parse().unwrap(), &mut hashes.to_vec()).unwrap()
    }

    #[test]
    fn a_million_keys_take_8_40_bits_each() {
        let hashes = keys(1_000_000, 1);
        let filter = build("fpr=0.00390625", &hashes);
        let bits = filter.size_in_bytes() as f64 * 8.0 / 1e6;
        assert!((8.37..8.40).contains(&bits), "{bits}");
        assert_eq!(filter.fpr(), 1.0 / 256.0);
        assert!(hashes.iter().all(|&hash| filter.contains(hash)));
        assert_rate(&filter, 1_000_000);
    }

    #[test]
    fn most_sets_succeed_at_once() {
        for config in ["width=128", "width=64"] {
            for n in [200, 1000, 10_000, 30_000] {
                let at_once = |set: &u64| build(config, &keys(n, *set)).salts[0] == mix64(0);
                let count = (0..50).filter(at_once).count();
                assert!(count >= 40, "{config}, {n} keys: {count} of 50");
            }
        }
    }

    #[test]
    fn rates_between_powers_of_two_cost_what_they_must() {
        // 6.72 columns at 1 %: 7 would be 4 % more.
        for (fpr, columns) in [(0.01, 6.72), (0.3, 1.8), (0.75, 0.5), (0.001, 9.976)] {
            let filter = build(&format!("fpr={fpr}"), &keys(100_000, 2));
            let words = filter.words.len() as f64 / filter.shape.blocks as f64;
            assert!((words - columns).abs() < 0.01, "{fpr}: {words}");
            assert!(filter.fpr() <= fpr && filter.fpr() > 0.99 * fpr);
            assert_rate(&filter, 300_000);
        }
    }

    #[test]
    fn small_sets_are_small_and_build_always() {
        for n in (1..300).step_by(7) {
            for set in 0..20 {
                let hashes = keys(n, set);
                let filter = build("fpr=0.00390625", &hashes);
                assert!(hashes.iter().all(|&hash| filter.contains(hash)));
                // Whole blocks, of which two or three are the fewest.
                let most = (n + n / 16 + 12)
                    .div_ceil(64)
                    .max(if n <= 100 { 2 } else { 3 });
                assert!(filter.shape.blocks <= most, "{n}: {}", filter.shape.blocks);
            }
        }
    }

    #[test]
    fn repeated_keys_build_the_filter_of_the_distinct_ones() {
        let distinct = keys(1000, 3);
        let plain = build("", &distinct);
        let repeated: Vec<u64> = distinct.iter().flat_map(|&hash| [hash; 3]).collect();
        let filter = build("", &repeated);
        assert_eq!(filter.len(), 1000);
        assert!(*filter.words == *plain.words && *filter.salts == *plain.salts);
    }

    #[test]
    fn the_bytes_do_not_depend_on_threads_or_order() {
        let rate = Rate::new("", 0.01, 1.0).unwrap();
        let mut hashes = keys(50_000, 6);
        let built = |hashes: &mut [u64], threads| {
            let config = Config::default().threads(threads);
            Ribbon::round::<u64>(&config, hashes, 5, rate, 0).unwrap()
        };
        let one = built(&mut hashes, 1);
        assert!(hashes.iter().all(|&hash| one.contains(hash)));
        assert_rate(&one, 300_000);
        hashes.reverse();
        let other = built(&mut hashes, 3);
        assert!(*one.words == *other.words && *one.salts == *other.salts);
    }

    #[test]
    fn numbers_that_count_up_are_spread_over_all_shards() {
        let rate = Rate::new("", 0.01, 1.0).unwrap();
        let mut hashes: Vec<u64> = (0..50_000).collect();
        let filter = Ribbon::round::<u128>(&Config::default(), &mut hashes, 7, rate, 0).unwrap();
        assert!((0..50_000).all(|hash| filter.contains(hash)));
        assert_rate(&filter, 300_000);
    }

    #[test]
    fn bad_widths_and_rates_are_refused() {
        for config in ["width=32", "width=0", "width=x", "fpr=1e-12"] {
            let built = Ribbon::build(&config.parse().unwrap(), &mut keys(10, 1));
            assert!(built.is_err(), "{config}");
        }
    }
}
