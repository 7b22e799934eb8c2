//! The d-left counting Bloom filter: remainders in cells, each key in the emptiest of four
//! buckets, and a way to remove.
//!
//! The essay is at [`DLeft`].

use crate::bits::{fastrange, low_mask, mix64, positions};
use crate::config::{Config, Param};
use crate::error::{
    BuildError, BuildErrorKind, DecodeError, Full, FullKind, MergeError, MergeErrorKind,
};
use crate::filter::{Count, Filter, Insert, Kind, Merge, Remove};
use crate::format::{Decoder, Encoder};
use crate::math;
use crate::option;
use crate::packed::Packed;

/// A d-left counting Bloom filter: insert, remove, count, merge, and no key is ever moved.
///
/// ```
/// use tamis::{Config, DLeft, Keyed};
///
/// let mut flows: Keyed<DLeft> = Keyed::new(&Config::new(10_000).fpr(0.001))?;
/// flows.insert("10.0.0.1:443")?;
/// flows.insert("10.0.0.1:443")?;
/// assert_eq!(flows.count("10.0.0.1:443"), 2);
/// assert!(flows.remove("10.0.0.1:443") && flows.remove("10.0.0.1:443"));
/// assert!(!flows.contains("10.0.0.1:443"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///   hash ──► fingerprint F = (bucket b, remainder v)       one of B·2^r, B any number
///
///   subtable 0        subtable 1        subtable 2        subtable 3        B buckets each
///   bucket b          b + o₁(v)         b + o₂(v)         b + o₃(v)         modulo B
///  ┌──┬──┬──┬─…─┐    ┌──┬──┬──┬─…─┐    ┌──┬──┬──┬─…─┐    ┌──┬──┬──┬─…─┐
///  │v'│  │v"│   │    │v │v'│  │   │    │  │v'│v │   │    │v"│  │v'│   │    8 cells a bucket
///  └──┴──┴──┴─…─┘    └──┴──┴──┴─…─┘    └──┴──┴──┴─…─┘    └──┴──┴──┴─…─┘
///                                          ╰─ a cell: counter of 2 bits (0: free),
///                                                     remainder of r bits
/// ```
///
/// A counting Bloom filter spends four bits on each of its cells and needs ten cells a key, to be
/// able to forget. This one does the same with a hash table: a key has one bucket in each of four
/// subtables and its remainder is put in the one with the fewest cells in use, the leftmost if
/// several have. With so many choices the buckets fill alike: at a mean of six of eight cells
/// none overflows. A key is present when its remainder stands in one of its four buckets; equal
/// fingerprints share a cell and are counted.
///
/// # Why removal is never in doubt
///
/// If each subtable hashed a key anew, two keys could share bucket and remainder in one subtable
/// and not in another. Removing one of them would then find two cells that might be its own, and
/// could take the wrong one. So a key has one fingerprint F = (b, v), and subtable j shows it
/// under a bijection of all fingerprints: the bucket is moved by an amount that the remainder
/// chooses. Two keys that meet in one subtable meet in all, for they have the same F, and taking
/// out either leaves the other. The paper multiplies F modulo a power of two; moving buckets
/// works for any B.
///
/// # Copies
///
/// A counter goes to three. The paper's saturates there and can never be lowered again. Here the
/// fourth copy takes a further cell of the same remainder, in the emptiest bucket as ever: counts
/// and removals stay exact until the four buckets are full, at 96 copies at most.
///
/// # Cost
///
/// (r + 2)·32/24 bits per key for a rate of 24/2^r: 18.67 bits at 0.58 % (what a rate of 1 %
/// gives, as r is whole), 20.0 at 0.29 %. The counting Bloom filter takes 38.4 and 46 bits or so.
/// A lookup reads four lines; an insertion reads the same four, writes one cell and never moves
/// another key.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `bits` | 4 to 32 | the fewest for the rate | bits of a remainder: more make the rate lower |
///
/// # When to choose it
///
/// When keys come and go and every insertion must be short: no chain of moves, however full the
/// table. Otherwise [`Cuckoo`](crate::Cuckoo) removes and counts in little more than half the
/// space.
///
/// Approximate state machines keep a state of a few bits beside each remainder of such a table. A
/// state is a value: [`Perfect`](crate::Perfect) keeps one for each key of a fixed set and lets it
/// change, so there is no second table for it here.
///
/// # Bibliography
///
/// - Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, *An improved construction for counting
///   Bloom filters*, 2006: the filter, and the bijections that make removal safe.
/// - Vöcking, *How asymmetry helps load balancing*, 1999: why subtables and ties to the left fill
///   more evenly.
/// - Broder, Mitzenmacher, *Using multiple hash functions to improve IP lookups*, 2001: d-left
///   hashing in buckets.
#[derive(Clone, Debug)]
pub struct DLeft {
    /// Remainder and, in the lowest two bits, counter; eight cells to a bucket, the subtables one
    /// after another.
    cells: Packed,
    /// Buckets of one subtable.
    buckets: u64,
    len: u64,
    /// A word with the lowest bit of each cell set that one read of `cells` gives whole; eight at
    /// most.
    ones: u64,
}

/// Subtables, and buckets of a key.
const TABLES: u64 = 4;
/// Cells in a bucket.
const CELLS: u64 = 8;
/// Cells in use in the mean at capacity.
const LOAD: u64 = 6;
/// What the counter of a cell can say.
const COUNTER_BITS: u32 = 2;
const MOST_IN_CELL: u64 = low_mask(COUNTER_BITS);
/// Widths of a remainder. With fewer than 4 bits buckets fill unevenly; above 32 no rate that a
/// 64-bit hash can promise needs it.
const BITS: std::ops::RangeInclusive<u64> = 4..=32;

impl DLeft {
    /// Bits of a remainder.
    pub fn remainder_bits(&self) -> u32 {
        self.cells.width() - COUNTER_BITS
    }

    /// Cells of the table; the filter is sized to hold its capacity in three quarters of them.
    pub fn cells(&self) -> u64 {
        TABLES * self.buckets * CELLS
    }

    fn with_shape(buckets: u64, bits: u32) -> Result<DLeft, BuildError> {
        let cells = Packed::zeroed(TABLES * buckets * CELLS, bits + COUNTER_BITS)?;
        Ok(DLeft::of_cells(cells, buckets, 0))
    }

    fn of_cells(cells: Packed, buckets: u64, len: u64) -> DLeft {
        let width = cells.width();
        let lanes = (57 / width).min(CELLS as u32);
        DLeft {
            ones: (0..lanes).fold(0, |ones, i| ones | 1 << (i * width)),
            cells,
            buckets,
            len,
        }
    }

    /// Bucket in the first subtable, and remainder: the fingerprint of a hash.
    #[inline]
    fn fingerprint(&self, hash: u64) -> (u64, u64) {
        let bits = self.remainder_bits();
        let (f, _) = fastrange(hash, self.buckets << bits);
        (f >> bits, f & low_mask(bits))
    }

    /// How far each subtable moves the bucket of a remainder.
    #[inline]
    fn offsets(&self, remainder: u64) -> impl Iterator<Item = u64> {
        let others = positions(mix64(!remainder), self.buckets, TABLES as u32 - 1);
        std::iter::once(0).chain(others)
    }

    /// The buckets of a fingerprint, counted through all subtables: this filter's geometry, with
    /// [`home`](Self::home).
    #[inline]
    fn places(&self, bucket: u64, remainder: u64) -> [u64; TABLES as usize] {
        let mut places = [0; TABLES as usize];
        for ((table, offset), place) in (0..).zip(self.offsets(remainder)).zip(&mut places) {
            let moved = bucket + offset;
            let wrapped = if moved < self.buckets {
                moved
            } else {
                moved - self.buckets
            };
            *place = table * self.buckets + wrapped;
        }
        places
    }

    /// The bucket in the first subtable of a fingerprint that stands in the bucket `place` of
    /// all: the way back from [`places`](Self::places).
    fn home(&self, place: u64, remainder: u64) -> u64 {
        let (table, moved) = (place / self.buckets, place % self.buckets);
        let offset = self.offsets(remainder).nth(table as usize).unwrap_or(0);
        (moved + self.buckets - offset) % self.buckets
    }

    /// Whether a bucket has a cell in use with the remainder.
    ///
    /// Several cells are compared in one word. With x = cells ⊕ remainder, a cell matches where
    /// all bits of x above the counter are 0 and the counter is not. Adding all ones below the
    /// top bit of a cell carries into the top bit unless the bits below it were 0, and never into
    /// the next cell.
    #[inline]
    fn matches(&self, place: u64, remainder: u64) -> bool {
        let (ones, width) = (self.ones, self.cells.width());
        let lanes = u64::from(ones.count_ones());
        let tops = ones << (width - 1);
        let below = tops - ones;
        let counters = ones * MOST_IN_CELL;
        let pattern = (remainder << COUNTER_BITS) * ones;
        let mut found = 0;
        let mut cell = 0;
        while cell < CELLS {
            // The last read overlaps the one before it rather than the next bucket.
            let start = cell.min(CELLS - lanes);
            let x = self.cells.word(place * CELLS + start) ^ pattern;
            let high = x & !counters;
            let same = !(((high & below) + below) | high);
            let used = (x | x >> 1) & ones;
            found |= same & used << (width - 1);
            cell += lanes;
        }
        found & tops != 0
    }

    /// The cells of a bucket in use, as places in the table with what they hold.
    fn used(&self, place: u64) -> impl Iterator<Item = (u64, u64)> {
        (place * CELLS..(place + 1) * CELLS)
            .map(|cell| (cell, self.cells.get(cell)))
            .filter(|&(_, held)| held != 0)
    }

    /// The cells that hold a fingerprint, as places in the table with their counters.
    fn holding(&self, bucket: u64, remainder: u64) -> impl Iterator<Item = (u64, u64)> {
        self.places(bucket, remainder)
            .into_iter()
            .flat_map(|place| self.used(place))
            .filter(move |(_, held)| held >> COUNTER_BITS == remainder)
            .map(|(cell, held)| (cell, held & MOST_IN_CELL))
    }

    /// The cell in which a fingerprint is counted once more: its own, or a free one of the
    /// emptiest bucket.
    fn cell_for(&self, bucket: u64, remainder: u64) -> Result<u64, Full> {
        let (mut emptiest, mut least, mut copies) = (None, CELLS, 0);
        for place in self.places(bucket, remainder) {
            let mut load = 0;
            for (cell, held) in self.used(place) {
                load += 1;
                if held >> COUNTER_BITS == remainder {
                    if held & MOST_IN_CELL < MOST_IN_CELL {
                        return Ok(cell);
                    }
                    copies += MOST_IN_CELL;
                }
            }
            if load < least {
                (emptiest, least) = (Some(place), load);
            }
        }
        let free = emptiest.and_then(|place| {
            (place * CELLS..(place + 1) * CELLS).find(|&cell| self.cells.get(cell) == 0)
        });
        let kind = match copies {
            0 => FullKind::Capacity,
            _ => FullKind::Duplicates(copies),
        };
        free.ok_or(Full::new(kind, self.len))
    }

    /// A part-full cell whose fingerprint has a second such cell: no operation leaves one.
    fn scattered(&self) -> Option<u64> {
        let part_full = |held: u64| held & MOST_IN_CELL < MOST_IN_CELL;
        let has_a_second = |place: u64, cell: u64, held: u64| {
            let remainder = held >> COUNTER_BITS;
            let beside = self.used(place).filter(|&(other, _)| other > cell);
            let places = self.places(self.home(place, remainder), remainder);
            let later = places
                .into_iter()
                .filter(|&other| other > place && self.matches(other, remainder))
                .flat_map(|other| self.used(other));
            beside
                .chain(later)
                .any(|(_, other)| other >> COUNTER_BITS == remainder && part_full(other))
        };
        (0..TABLES * self.buckets).find_map(|place| {
            self.used(place)
                .find(|&(cell, held)| part_full(held) && has_a_second(place, cell, held))
                .map(|(_, held)| held)
        })
    }

    fn insert_at(&mut self, bucket: u64, remainder: u64) -> Result<(), Full> {
        let cell = self.cell_for(bucket, remainder)?;
        let count = self.cells.get(cell) & MOST_IN_CELL;
        self.cells
            .set(cell, remainder << COUNTER_BITS | (count + 1));
        self.len += 1;
        Ok(())
    }

    /// Fingerprints that the table holds, each once however many cells it has.
    fn distinct(&self) -> u64 {
        let stands_for_its_fingerprint = |place: u64, cell: u64, held: u64| {
            // All cells of a fingerprint are full but one, which is the one to count; without it,
            // the first is.
            if held & MOST_IN_CELL < MOST_IN_CELL {
                return true;
            }
            let remainder = held >> COUNTER_BITS;
            let mut alike = self.holding(self.home(place, remainder), remainder);
            alike.next().is_some_and(|(first, _)| first == cell)
                && alike.all(|(_, n)| n == MOST_IN_CELL)
        };
        (0..TABLES * self.buckets)
            .map(|place| {
                let mut held = 0;
                for (cell, value) in self.used(place) {
                    held += u64::from(stands_for_its_fingerprint(place, cell, value));
                }
                held
            })
            .sum()
    }
}

/// The most buckets for remainders of a width: a hash of 64 bits must give both, with 8 bits to
/// spare.
fn most_buckets(bits: u32) -> u64 {
    1 << (56 - bits)
}

impl Filter for DLeft {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let (bucket, remainder) = self.fingerprint(hash);
        let places = self.places(bucket, remainder);
        places
            .into_iter()
            .fold(false, |found, place| found | self.matches(place, remainder))
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.cells.size_in_bytes()
    }

    /// The share of all fingerprints that the table holds. As a hash has one fingerprint, this is
    /// exact.
    fn fpr(&self) -> f64 {
        self.distinct() as f64 / (self.buckets as f64 * 2f64.powi(self.remainder_bits() as i32))
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        let (bucket, remainder) = self.fingerprint(hash);
        for place in self.places(bucket, remainder) {
            self.cells.prefetch(place * CELLS);
        }
    }
}

impl Insert for DLeft {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let (bucket, remainder) = self.fingerprint(hash);
        self.insert_at(bucket, remainder)
    }
}

impl Remove for DLeft {
    fn remove(&mut self, hash: u64) -> bool {
        let (bucket, remainder) = self.fingerprint(hash);
        // The cell with the lowest count, so that never two of a fingerprint are part full.
        let lowest = self.holding(bucket, remainder).min_by_key(|&(_, n)| n);
        let Some((cell, count)) = lowest else {
            return false;
        };
        let held = remainder << COUNTER_BITS | (count - 1);
        self.cells.set(cell, if count == 1 { 0 } else { held });
        self.len -= 1;
        true
    }
}

impl Count for DLeft {
    fn count(&self, hash: u64) -> u64 {
        let (bucket, remainder) = self.fingerprint(hash);
        self.holding(bucket, remainder).map(|(_, n)| n).sum()
    }
}

impl Merge for DLeft {
    /// Inserts every fingerprint of the other as often as it is held there. Copies of a key add
    /// up, to 96 at most.
    fn merge(&mut self, other: &DLeft) -> Result<(), MergeError> {
        MergeError::unless_equal("buckets", self.buckets, other.buckets)?;
        let (ours, theirs) = (self.remainder_bits(), other.remainder_bits());
        MergeError::unless_equal("bits", u64::from(ours), u64::from(theirs))?;
        let mut union = self.clone();
        for place in 0..TABLES * other.buckets {
            for (_, held) in other.used(place) {
                let remainder = held >> COUNTER_BITS;
                let bucket = other.home(place, remainder);
                for _ in 0..held & MOST_IN_CELL {
                    let inserted = union.insert_at(bucket, remainder);
                    inserted.map_err(MergeErrorKind::Full)?;
                }
            }
        }
        *self = union;
        Ok(())
    }
}

impl Kind for DLeft {
    const ABOUT: &'static str =
        "remove keys and count copies; an insertion never moves another key";
    const PARAMS: &'static [Param] = &[Param {
        name: option::BITS.name,
        values: "4 to 32",
        default: "the fewest for the rate",
        about: "bits of a remainder: more make the rate lower",
    }];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<DLeft, BuildError> {
        let (keys, fpr) = config.check::<DLeft>(hashes)?;
        let rate = |bits: u32| math::dleft_fpr(bits, TABLES as u32, LOAD as f64);
        let (fewest, most) = (*BITS.start() as u32, *BITS.end() as u32);
        let needed = (fewest..=most).find(|&bits| rate(bits) <= fpr);
        let bits = config.bits::<DLeft>(BITS, needed, rate(most))?;
        let (needed, most) = (keys.div_ceil(TABLES * LOAD).max(1), most_buckets(bits));
        if needed > most {
            return Err(BuildErrorKind::TooLarge {
                unit: "buckets",
                needed: needed as f64,
                most,
            }
            .into());
        }
        let mut filter = DLeft::with_shape(needed, bits)?;
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("buckets", self.buckets);
        out.param("bits", u64::from(self.remainder_bits()));
        self.cells.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<DLeft, DecodeError> {
        let buckets = input.param("buckets")?;
        let bits = input.param_in("bits", BITS)? as u32;
        if !(1..=most_buckets(bits)).contains(&buckets) {
            let expected = format!("1 to {}", most_buckets(bits));
            return Err(DecodeError::invalid("buckets", buckets, expected));
        }
        let cells = TABLES * buckets * CELLS;
        let cells = Packed::decode(input, "cells", cells, bits + COUNTER_BITS)?;
        let mut copies = 0;
        for cell in cells.iter() {
            if cell & MOST_IN_CELL == 0 && cell != 0 {
                let expected = "no remainder where the counter is 0";
                return Err(DecodeError::invalid("cells", cell, expected));
            }
            copies += cell & MOST_IN_CELL;
        }
        if copies != input.len() {
            let expected = format!("{copies}, the sum of the counters");
            return Err(DecodeError::invalid("keys", input.len(), expected));
        }
        let filter = DLeft::of_cells(cells, buckets, copies);
        if let Some(cell) = filter.scattered() {
            let expected = "all other cells of its fingerprint to count 3";
            return Err(DecodeError::invalid("cells", cell, expected));
        }
        Ok(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hashing, Keyed};

    #[test]
    fn a_file_with_two_part_full_cells_of_a_fingerprint_is_refused() {
        // 4 bits of remainder, one bucket a subtable: 16 fingerprints, each of which all four
        // buckets are for.
        let opened = |cells: &[(u64, u64, u64)]| {
            let mut filter = DLeft::with_shape(1, 4).unwrap();
            for &(cell, remainder, count) in cells {
                filter.cells.set(cell, remainder << COUNTER_BITS | count);
                filter.len += count;
            }
            let config = Config::new(24).fpr(0.9);
            let file = Keyed::from_filter(filter, Hashing::default(), &config).unwrap();
            Keyed::<DLeft>::open(file.to_bytes())
        };
        for other in [1, 7, 8, 16, 31] {
            assert!(opened(&[(0, 5, 1), (other, 5, 2)]).is_err(), "{other}");
            assert!(opened(&[(0, 5, 1), (other, 5, 3)]).is_ok(), "{other}");
            assert!(opened(&[(0, 5, 3), (other, 5, 3)]).is_ok(), "{other}");
            assert!(opened(&[(0, 5, 1), (other, 6, 2)]).is_ok(), "{other}");
        }
        // Its rate would be stated as 2.
        let two_remainders: Vec<_> = (0..32).map(|cell| (cell, cell % 2, 1)).collect();
        assert!(opened(&two_remainders).is_err());
        // Full in every cell, which is right, and at most every fingerprint is held.
        let all: Vec<_> = (0..32).map(|cell| (cell, cell % 16, 3)).collect();
        assert_eq!(opened(&all).unwrap().filter().fpr(), 1.0);
    }

    #[test]
    fn a_fingerprint_is_found_again_from_each_of_its_buckets() {
        for buckets in [1, 2, 3, 1000, 41_667] {
            let filter = DLeft::with_shape(buckets, 4).unwrap();
            // Every fingerprint has its own place in every subtable: the maps are bijections.
            let mut seen = vec![0u32; (TABLES * buckets * 16) as usize];
            for bucket in 0..buckets {
                for remainder in 0..16 {
                    for (table, place) in (0..).zip(filter.places(bucket, remainder)) {
                        assert_eq!(place / buckets, table);
                        assert_eq!(filter.home(place, remainder), bucket);
                        seen[(place * 16 + remainder) as usize] += 1;
                    }
                }
            }
            assert!(seen.iter().all(|&times| times == 1), "{buckets} buckets");
        }
    }

    #[test]
    fn every_width_finds_every_cell_and_no_other() {
        for bits in 4..=32 {
            let mut filter = DLeft::with_shape(3, bits).unwrap();
            for cell in 0..filter.cells() {
                // Few remainders, so that neighbours agree; some cells free, some counters high.
                let remainder = [0, 1, low_mask(bits), mix64(cell) & low_mask(bits)]
                    [(mix64(cell) >> 60) as usize % 4];
                let count = mix64(!cell) % 4;
                let held = remainder << COUNTER_BITS | count;
                filter.cells.set(cell, if count == 0 { 0 } else { held });
            }
            for place in 0..12 {
                let asked = (0..=low_mask(bits.min(6))).chain([low_mask(bits), low_mask(bits) - 1]);
                let held = filter.used(place).map(|(_, held)| held >> COUNTER_BITS);
                for remainder in asked.chain(held) {
                    let mut used = filter.used(place);
                    let truth = used.any(|(_, held)| held >> COUNTER_BITS == remainder);
                    assert_eq!(filter.matches(place, remainder), truth, "{bits} bits");
                }
            }
        }
    }

    #[test]
    fn size_and_rate_are_those_of_the_formula() {
        // spec: 13 bits take 20.0 bits/key and err in 0.2926 % of cases, which two keys of one
        // fingerprint lower by 0.15 % of that.
        let n = 1_000_000;
        let mut hashes: Vec<u64> = (0..n).map(mix64).collect();
        let config = Config::new(n).fpr(0.003);
        let filter = DLeft::build(&config, &mut hashes).unwrap();
        assert_eq!(filter.remainder_bits(), 13);
        let bits_per_key = filter.size_in_bytes() as f64 * 8.0 / n as f64;
        let formula = math::dleft_bits_per_key(13.0, 2, 8, 6.0);
        assert!(
            (bits_per_key / formula - 1.0).abs() < 0.0002,
            "{bits_per_key}"
        );
        let formula = math::dleft_fpr(13, 4, 6.0);
        assert!((formula - 0.002926).abs() < 1e-6);
        assert!(
            (filter.fpr() / formula - 1.0).abs() < 0.002,
            "{}",
            filter.fpr()
        );

        let queries = 5_000_000;
        let hits = (0..queries).filter(|q| filter.contains(mix64(1 << 40 | q)));
        let hits = hits.count() as u64;
        let (low, high) = math::binomial_interval(queries, formula, 1e-9);
        assert!(
            (low..=high).contains(&hits),
            "{hits}, {low} to {high} expected"
        );
    }

    #[test]
    fn twenty_times_the_keys_come_and_go_without_overflow() {
        for (n, bits) in [(24u64, 13), (240, 13), (5000, 6), (100_000, 13)] {
            let mut filter = DLeft::with_shape(n.div_ceil(24), bits).unwrap();
            let mut held: Vec<u64> = (0..n).map(mix64).collect();
            filter.insert_batch(&held).unwrap();
            for step in 0..20 * n {
                let at = fastrange(mix64(step << 20), n).0 as usize;
                assert!(filter.remove(held[at]));
                held[at] = mix64(n + step);
                assert!(filter.insert(held[at]).is_ok(), "{n} keys, step {step}");
            }
            assert!(held.iter().all(|&hash| filter.contains(hash)));
            assert!(held.iter().all(|&hash| filter.remove(hash)));
            assert!(filter.cells.iter().all(|cell| cell == 0) && filter.len == 0);
        }
    }

    #[test]
    fn small_filters_reach_their_capacity() {
        let mut seed = 0u64;
        for (keys, filters) in [
            (24u64, 5000),
            (25, 5000),
            (48, 5000),
            (72, 5000),
            (240, 2000),
            (2400, 200),
        ] {
            for bits in [4, 6, 12] {
                for _ in 0..filters {
                    let mut filter = DLeft::with_shape(keys.div_ceil(24), bits).unwrap();
                    for _ in 0..keys {
                        seed += 1;
                        let full = filter.insert(mix64(seed));
                        assert!(full.is_ok(), "{} of {keys} keys, {bits} bits", filter.len);
                    }
                }
            }
        }
    }

    #[test]
    fn a_key_whose_buckets_have_no_more_room_is_told_from_a_full_table() {
        let key = mix64(1000);
        let mut filter = DLeft::build(&Config::new(1000).fpr(0.01), &mut []).unwrap();
        (0..150).for_each(|i| filter.insert(mix64(i)).unwrap());
        let full = loop {
            if let Err(full) = filter.insert(key) {
                break full;
            }
        };
        // Some cells of its buckets are others', and most of the table is free.
        let copies = filter.count(key);
        assert!(copies < TABLES * CELLS * MOST_IN_CELL && filter.len() < filter.cells() / 5);
        assert_eq!(full.kind(), FullKind::Duplicates(copies));
        let told = full.to_string();
        assert!(
            told.contains("insert each key once") && !told.contains("larger"),
            "{told}"
        );
    }

    #[test]
    fn copies_beyond_a_cell_take_another_and_the_97th_is_refused() {
        let key = mix64(1000);
        let config = Config::new(1000).fpr(0.01);
        let mut filter = DLeft::build(&config, &mut []).unwrap();
        for copies in 1..=96 {
            filter.insert(key).unwrap();
            assert_eq!(filter.count(key), copies);
            assert_eq!(filter.distinct(), 1, "{copies} copies");
        }
        let before: Vec<u64> = filter.cells.iter().collect();
        let full = filter.insert(key).unwrap_err();
        assert_eq!((full.kind(), full.keys()), (FullKind::Duplicates(96), 96));
        assert!(filter.cells.iter().eq(before));
        for copies in (0..96).rev() {
            assert!(filter.remove(key));
            assert_eq!(filter.count(key), copies);
            let part_full = filter
                .cells
                .iter()
                .filter(|cell| (1..3).contains(&(cell & 3)));
            assert!(part_full.count() <= 1);
        }
        assert!(!filter.remove(key) && filter.cells.iter().all(|cell| cell == 0));
    }
}
