//! Cleary's compact table: two bits a cell beside the remainder, and not a bit for the rest.
//!
//! The essay is at [`Cleary`].

use std::ops::Range;

use crate::bits::{fastrange, low_mask};
use crate::config::{Config, Param};
use crate::error::{BuildError, BuildErrorKind, DecodeError, Full, FullKind};
use crate::filter::{Filter, Insert, Kind};
use crate::format::{Decoder, Encoder};
use crate::math;
use crate::option;
use crate::packed::Packed;

/// A compact hash table with bidirectional linear probing, as an approximate set: insert.
///
/// ```
/// use tamis::{Cleary, Config, Keyed};
///
/// let mut seen: Keyed<Cleary> = Keyed::new(&Config::new(1000).fpr(0.001))?;
/// seen.insert("alice")?;
/// assert!(seen.contains("alice") && !seen.contains("bob"));
/// assert_eq!(seen.filter().cell_bits(), seen.filter().remainder_bits() + 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// As in a quotient filter, the high part of a fingerprint is its *home* and only the remainder is
/// stored. All of one home are a *group*; groups that push each other aside are a *cluster*, in the
/// order of their homes. A cell has two bits beside the remainder: `v`, some key has this cell as
/// its home, and `c`, a group begins here. In a cluster the n-th `v` owns the n-th `c`:
///
/// ```text
///  cell        0   1   2   3   4   5   6   7
///  v           0   0   1   0   1   1   0   0        homes 2, 4 and 5 have keys
///  c           0   1   0   1   1   0   0   0        groups begin in 1, 3 and 4
///  remainder   ·   3   8   0   0   7   9   ·        2: 3 8    4: 0    5: 0 7 9
///                  ◄───────────────────►
///                  one cluster, which has grown to both sides
/// ```
///
/// Which cells are free needs no third bit. Groups are kept ascending, without repeats, so a
/// remainder of 0 is the first of its group and has `c`; a cell with `v`, `c` and remainder all 0
/// can only be a free one.
///
/// # Lookup
///
/// If the home has no `v`, no. Otherwise walk from the home to the nearer end of the cluster,
/// counting every `v`, and back past as many `c`: there is the group.
///
/// # Insert
///
/// Into the home, if it is free. Otherwise the group is found as above, and what stands between its
/// place and the nearer free cell, on either side, moves on by one. A fingerprint that is there
/// already is not stored again: two keys that share one cannot be told apart, and so none can be
/// removed. [`Multiset`](crate::Multiset) keeps both.
///
/// # Cost
///
/// r + 2 bits a cell, not more: no offsets, no tail. The load is α = 1 − 1/(2r), so that the free
/// cells cost about half a bit for each bit of the two: (r + 2)/α is r + 2.86 bits per key at r =
/// 4, r + 2.67 at 8 and r + 2.56 at 20 (`cargo test -p tamis --lib
/// space_is_constant_above_the_least`). That is the paper's "O(n) bits from optimal", in practice.
/// The time is its price: a cluster has O(1/(1 − α)²) cells, so O(r²) of them are walked through,
/// in sequence.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `bits` | 1 to 32 | the fewest for the rate | bits of a remainder: more make the rate lower, and the table fuller |
///
/// # When to choose it
///
/// To compare: it is the practical variant of the optimal replacement.
/// [`Quotient`](crate::Quotient) pays 0.125 bits for offsets, finds runs by counting ones in words,
/// and lets keys leave.
///
/// # Bibliography
///
/// - Cleary, *Compact hash tables using bidirectional linear probing*, 1984: the table, with a
///   third bit.
/// - Pagh, Pagh, Rao, *An optimal Bloom filter replacement*, 2005, section 5: as a filter, and the
///   load.
#[derive(Clone, Debug)]
pub struct Cleary {
    /// Cells of remainder, `v` and `c`, from the lowest bit on.
    cells: Packed,
    homes: u64,
    used: u64,
    len: u64,
}

/// Widths of a remainder.
const BITS: std::ops::RangeInclusive<u64> = 1..=32;

/// The nearer end of a cluster.
#[derive(Clone, Copy)]
enum End {
    /// The first cell of the cluster, before which there is a free one if it is not the first of
    /// all.
    Left(u64),
    /// The last.
    Right(u64),
}

/// Where a fingerprint stands, or would.
struct Place {
    end: End,
    /// The cells of its group; none where it would begin, if it has none.
    group: Range<u64>,
    /// The first cell of the group that does not hold less.
    at: u64,
    is_there: bool,
}

impl Cleary {
    /// Bits of a remainder.
    pub fn remainder_bits(&self) -> u32 {
        self.cells.width() - 2
    }

    /// Bits of a cell.
    pub fn cell_bits(&self) -> u32 {
        self.cells.width()
    }

    /// The fraction of cells in use.
    pub fn load(&self) -> f64 {
        self.used as f64 / self.homes as f64
    }

    /// Home and remainder of a hash: this filter's geometry.
    #[inline]
    fn place(&self, hash: u64) -> (u64, u64) {
        let (home, rest) = fastrange(hash, self.homes);
        (home, rest >> (u64::BITS - self.remainder_bits()))
    }

    #[inline]
    fn v(&self) -> u64 {
        1 << self.remainder_bits()
    }

    #[inline]
    fn c(&self) -> u64 {
        2 << self.remainder_bits()
    }

    #[inline]
    fn is_free(&self, cell: u64) -> bool {
        self.cells.get(cell) == 0
    }

    #[inline]
    fn has(&self, cell: u64, bit: u64) -> bool {
        self.cells.get(cell) & bit != 0
    }

    #[inline]
    fn remainder(&self, cell: u64) -> u64 {
        self.cells.get(cell) & low_mask(self.remainder_bits())
    }

    /// The nearer end of a cell's cluster; where a cell is to be `free` beyond it, the nearer of
    /// those. `None` if there is no such end.
    fn end(&self, cell: u64, free: bool) -> Option<End> {
        for distance in 1..=self.homes {
            let left = cell.checked_sub(distance);
            let right = Some(cell + distance).filter(|&right| right < self.homes);
            if left.is_none() && right.is_none() && free {
                return None;
            }
            if right.map_or(!free, |right| self.is_free(right)) {
                return Some(End::Right(cell + distance - 1));
            }
            if left.map_or(!free, |left| self.is_free(left)) {
                return Some(End::Left(cell + 1 - distance));
            }
        }
        None
    }

    /// Finds a fingerprint from an end of the cluster in which its home is.
    fn find(&self, end: End, home: u64, remainder: u64) -> Place {
        let (v, c) = (self.v(), self.c());
        let has_group = self.has(home, v);
        let last = |cell: u64| cell + 1 == self.homes || self.is_free(cell + 1);
        // Where the group begins, or the one after it.
        let start = match end {
            End::Left(first) => {
                let mut before = (first..home).filter(|&cell| self.has(cell, v)).count();
                let mut cell = first;
                loop {
                    if self.has(cell, c) {
                        if before == 0 {
                            break cell;
                        }
                        before -= 1;
                    }
                    cell += 1;
                    if last(cell - 1) {
                        break cell;
                    }
                }
            }
            End::Right(last) => {
                let after = home + u64::from(!has_group)..=last;
                let mut after = after.filter(|&cell| self.has(cell, v)).count();
                let mut cell = last + 1;
                while after > 0 && cell > 0 && !self.is_free(cell - 1) {
                    cell -= 1;
                    after -= usize::from(self.has(cell, c));
                }
                cell
            }
        };
        let mut place = Place {
            end,
            group: start..start,
            at: start,
            is_there: false,
        };
        if !has_group {
            return place;
        }
        let (mut cell, mut is_first) = (start, true);
        while cell < self.homes && !self.is_free(cell) && (is_first || !self.has(cell, c)) {
            let held = self.remainder(cell);
            place.at += u64::from(held < remainder);
            place.is_there |= held == remainder;
            (cell, is_first) = (cell + 1, false);
        }
        place.group.end = cell;
        place
    }

    /// Moves what a cell holds, but for its `v`, which stays, and leaves the other bits as they
    /// are.
    fn set_content(&mut self, cell: u64, content: u64) {
        let v = self.cells.get(cell) & self.v();
        self.cells.set(cell, content | v);
    }

    fn content(&self, cell: u64) -> u64 {
        self.cells.get(cell) & !self.v()
    }

    /// Inserts a fingerprint that is not there; `false` if no cell is free.
    fn put(&mut self, home: u64, remainder: u64) -> bool {
        let (v, c) = (self.v(), self.c());
        if self.is_free(home) {
            self.cells.set(home, v | c | remainder);
            return true;
        }
        let Some(end) = self.end(home, true) else {
            return false;
        };
        let place = self.find(end, home, remainder);
        let mut content = remainder;
        if place.at == place.group.start {
            content |= c;
            if !place.group.is_empty() {
                // The group's first, which is no longer that, has a remainder above 0.
                let first = self.content(place.at);
                self.set_content(place.at, first & !c);
            }
        }
        match place.end {
            End::Right(last) => {
                for cell in (place.at..=last).rev() {
                    self.set_content(cell + 1, self.content(cell));
                }
                self.set_content(place.at, content);
            }
            End::Left(first) => {
                for cell in first..place.at {
                    self.set_content(cell - 1, self.content(cell));
                }
                self.set_content(place.at - 1, content);
            }
        }
        let held = self.cells.get(home);
        self.cells.set(home, held | v);
        true
    }

    fn holds(&self, home: u64, remainder: u64) -> bool {
        self.has(home, self.v())
            && self
                .end(home, false)
                .is_some_and(|end| self.find(end, home, remainder).is_there)
    }
}

/// The most cells for remainders of a width: a hash of 64 bits must give both, with 8 bits to
/// spare.
fn most_homes(bits: u32) -> u64 {
    1 << (56 - bits)
}

/// The most cells in use: half of those that are free at capacity stay so, and at least one.
fn most_used(homes: u64, bits: u32) -> u64 {
    homes - 1 - homes / (4 * u64::from(bits))
}

impl Filter for Cleary {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let (home, remainder) = self.place(hash);
        self.holds(home, remainder)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.cells.size_in_bytes()
    }

    /// The share of fingerprints that are held.
    fn fpr(&self) -> f64 {
        math::cleary_fpr(self.used, self.homes, self.remainder_bits())
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        self.cells.prefetch(self.place(hash).0);
    }
}

impl Insert for Cleary {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let (home, remainder) = self.place(hash);
        if !self.holds(home, remainder) {
            if self.used >= most_used(self.homes, self.remainder_bits())
                || !self.put(home, remainder)
            {
                return Err(Full::new(FullKind::Capacity, self.len));
            }
            self.used += 1;
        }
        self.len = self.len.saturating_add(1);
        Ok(())
    }
}

impl Kind for Cleary {
    const ABOUT: &'static str =
        "keys that stay, in r + 2 bits a cell: the optimal replacement in practice";
    const PARAMS: &'static [Param] = &[Param {
        name: option::BITS.name,
        values: "1 to 32",
        default: "the fewest for the rate",
        about: "bits of a remainder: more make the rate lower, and the table fuller",
    }];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Cleary, BuildError> {
        let (keys, fpr) = config.check::<Cleary>(hashes)?;
        let needed = math::cleary_bits(fpr);
        let most = *BITS.end() as u32;
        let least = math::quotient_fpr(math::cleary_load(most), most);
        let bits = config.bits::<Cleary>(BITS, needed, least)?;
        let homes = (keys as f64 / math::cleary_load(bits)).ceil() + 2.0;
        if homes > most_homes(bits) as f64 {
            return Err(BuildErrorKind::TooLarge {
                unit: "cells",
                needed: homes,
                most: most_homes(bits),
            }
            .into());
        }
        // Small tables have a cell or two more, to be filled to their capacity.
        let enough = |&homes: &u64| most_used(homes, bits) >= keys;
        let homes = (homes as u64 - 2..).find(|homes| *homes > 0 && enough(homes));
        let homes = homes.unwrap_or(1);
        let mut filter = Cleary {
            cells: Packed::zeroed(homes, bits + 2)?,
            homes,
            used: 0,
            len: 0,
        };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("cells", self.homes);
        out.param("bits", u64::from(self.remainder_bits()));
        self.cells.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Cleary, DecodeError> {
        let homes = input.param("cells")?;
        let bits = input.param_in("bits", BITS)? as u32;
        if !(1..=most_homes(bits)).contains(&homes) {
            let expected = format!("1 to {}", most_homes(bits));
            return Err(DecodeError::invalid("cells", homes, expected));
        }
        let mut filter = Cleary {
            cells: Packed::decode(input, "cells", homes, bits + 2)?,
            homes,
            used: 0,
            len: input.len(),
        };
        filter.used = filter.checked()?;
        let (used, len) = (filter.used, filter.len);
        let most = most_used(homes, bits);
        if used > most || len < used || (len == 0) != (used == 0) {
            let expected = format!("{used} at least, the cells in use, of which {most} may be");
            return Err(DecodeError::invalid("keys", len, expected));
        }
        Ok(filter)
    }
}

impl Cleary {
    /// Refuses cells that are no clusters; how many are in use.
    fn checked(&self) -> Result<u64, DecodeError> {
        let (v, c, mask) = (self.v(), self.c(), low_mask(self.remainder_bits()));
        // Of the cluster: homes less groups, and the last remainder; and of all, the cells in use.
        let (mut open, mut last, mut used) = (0i64, None, 0);
        for (at, cell) in (0..).zip(self.cells.iter()) {
            let is_good = if cell == 0 {
                let is_closed = open == 0;
                (open, last) = (0, None);
                is_closed
            } else {
                used += 1;
                open += i64::from(cell & v != 0) - i64::from(cell & c != 0);
                let ascends = cell & c != 0 || last.is_some_and(|last| last < cell & mask);
                last = Some(cell & mask);
                ascends
            };
            if !is_good {
                let expected = "clusters of ascending groups, a home for each";
                return Err(DecodeError::invalid("cell", at, expected));
            }
        }
        match open {
            0 => Ok(used),
            _ => Err(DecodeError::invalid(
                "cell",
                self.homes,
                "a home for each group of the last cluster",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::bits::mix64;

    fn with_shape(homes: u64, bits: u32) -> Cleary {
        Cleary {
            cells: Packed::zeroed(homes, bits + 2).unwrap(),
            homes,
            used: 0,
            len: 0,
        }
    }

    #[test]
    fn every_home_and_remainder_is_answered_as_by_a_set() {
        for (homes, bits) in [(1, 1), (2, 1), (3, 2), (40, 1), (40, 2), (64, 8), (300, 3)] {
            for round in 0..20 {
                let mut table = with_shape(homes, bits);
                let mut model = BTreeSet::new();
                for i in 0..4 * homes {
                    let draw = mix64(round << 32 | i);
                    // Half of all in a tenth of the homes.
                    let home = match draw % 2 {
                        0 => (draw >> 8) % homes,
                        _ => (draw >> 8) % (homes / 10 + 1),
                    };
                    let remainder = (draw >> 40) & low_mask(bits);
                    assert_eq!(
                        table.holds(home, remainder),
                        model.contains(&(home, remainder))
                    );
                    if model.contains(&(home, remainder)) || model.len() as u64 == homes {
                        continue;
                    }
                    assert!(table.put(home, remainder), "{} of {homes}", model.len());
                    model.insert((home, remainder));
                    assert_eq!(table.checked().unwrap(), model.len() as u64);
                    if homes <= 64 || i % 16 == 0 {
                        for home in 0..homes {
                            for remainder in 0..=low_mask(bits.min(4)) {
                                let held = model.contains(&(home, remainder));
                                assert_eq!(table.holds(home, remainder), held);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Bits per key less the logarithm of the rate that a full filter has.
    #[test]
    fn space_is_constant_above_the_least() {
        let n = 1_000_000;
        for bits in [4u32, 6, 8, 12, 16, 20] {
            let load = math::cleary_load(bits);
            let config = Config::new(n).fpr(math::quotient_fpr(load, bits) * 1.000_001);
            let filter = Cleary::build(&config, &mut []).unwrap();
            assert_eq!(
                (filter.remainder_bits(), filter.cell_bits()),
                (bits, bits + 2)
            );
            let formula = math::cleary_bits_per_key(bits);
            let spare = formula - f64::from(bits);
            println!("2^-{bits}: {formula:.3} bits a key, {spare:.2} above {bits}");
            assert!((2.5..2.9).contains(&spare), "{spare}");
            let size = 8.0 * filter.size_in_bytes() as f64 / n as f64;
            assert!((size / formula - 1.0).abs() < 0.001, "{size}, {formula}");
        }
    }

    #[test]
    fn the_rate_is_the_share_of_fingerprints_held() {
        let n = 100_000;
        let mut hashes: Vec<u64> = (0..n).map(mix64).collect();
        let filter = Cleary::build(&Config::new(n).fpr(0.01), &mut hashes).unwrap();
        let queries = 1_000_000;
        let hits = (0..queries).filter(|q| filter.contains(mix64(1 << 40 | q)));
        let hits = hits.count() as u64;
        let (low, high) = math::binomial_interval(queries, filter.fpr(), 1e-9);
        assert!((low..=high).contains(&hits), "{hits}, {low} to {high}");
    }
}
