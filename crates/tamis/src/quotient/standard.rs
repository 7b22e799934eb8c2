//! The quotient filter with three bits a slot: a sorted list of fingerprints in an open hash
//! table.
//!
//! The essay is at [`QuotientStandard`].

use std::fmt;
use std::ops::Range;

use super::merged;
use crate::bits::fastrange;
use crate::config::{Config, Param};
use crate::error::{
    BuildError, BuildErrorKind, DecodeError, Full, FullKind, MergeError, MergeErrorKind, NoMemory,
};
use crate::filter::{Count, Filter, Halve, Insert, Kind, Merge, Remove};
use crate::format::{Decoder, Encoder};
use crate::math;
use crate::option;
use crate::packed::Packed;

/// A quotient filter with three bits a slot: insert, remove, count to 128, merge, halve, list.
///
/// ```
/// use tamis::{Config, Keyed, QuotientStandard};
///
/// let mut seen: Keyed<QuotientStandard> = Keyed::new(&Config::new(10_000).fpr(0.001))?;
/// seen.insert("4f9a")?;
/// assert!(seen.contains("4f9a"));
/// assert!(seen.remove("4f9a"));
/// assert!(!seen.contains("4f9a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// A fingerprint is cut in two. Its high part, the *quotient*, is the number of a slot, its
/// *home*; the low part, the *remainder*, is what a slot holds. So the place of a fingerprint
/// tells half of what it is.
///
/// Fingerprints of one quotient stand side by side, sorted: a *run*. Runs stand in the order of
/// their quotients, each as near to its home as those before it allow. The table is a sorted list
/// with gaps, and three bits a slot are enough to read it:
///
/// ```text
///   slot                0     1     2     3     4     5     6     7  ║  8  …
///                    ┌─────┬─────┬─────┬─────┬─────┬─────┬─────┬─────╫─────┬──
///   is_occupied      │  0  │  1  │  1  │  0  │  1  │  0  │  0  │  1  ║  0  │
///   is_continuation  │  0  │  0  │  1  │  0  │  0  │  0  │  0  │  0  ║  0  │
///   is_shifted       │  0  │  0  │  1  │  1  │  0  │  0  │  0  │  0  ║  0  │
///   remainder        │     │  A  │  M  │  K  │  B  │     │     │  L  ║     │
///                    └─────┴─────┴─────┴─────┴─────┴─────┴─────┴─────╫─────┴──
///   quotient                  1     1     2     4                 7     the tail:
///                          └── run ──┘                                  nobody's home
///                          └────── cluster ──────┘
///
///   is_occupied      some fingerprint has its home here, wherever it stands
///   is_continuation  the remainder here is of the same run as the one before
///   is_shifted       the remainder here does not stand at home
///   none of them     the slot is free
/// ```
///
/// # Lookup
///
/// If its home is not occupied, a fingerprint is absent. Otherwise walk left to the first slot
/// that is not shifted: there the cluster begins, and its first run stands at home. Then walk
/// right and skip one run for each occupied home on the way. In the drawing, quotient 2 is
/// looked up in slot 3: slot 2 is shifted and slot 1 is not; home 1 is occupied, so its run is
/// skipped.
///
/// # Insert and remove
///
/// An insertion moves what stands in the remainder's place, and all behind it up to the next free
/// slot, on by one. A removal moves what stands behind back by one, up to the first that is at
/// home. Either way the table stays what the sorted list of its fingerprints makes it: the same
/// keys give the same bytes, in whatever order they came, and those of an empty filter when the
/// last has left.
///
/// As the list can be read off in order ([`fingerprints`](Self::fingerprints)), a filter is built
/// from sorted hashes, and two are merged, in one sequential pass. A filter is halved by moving a
/// bit: the last of each quotient becomes the first of its remainder, whose last is dropped.
///
/// The number of slots is any, not only a power of two: the product of hash and slots has the
/// quotient in its high half and, at the top of its low half, the remainder.
///
/// # Limits
///
/// Nothing wraps around at the end of the table; up to 128 slots follow that are nobody's home.
/// At the load of 0.9 that a filter is sized for, the chance that they do not suffice is at most
/// 3.1·10⁻¹². From a load of 0.95 on insertions are refused: clusters grow with the square of
/// 1/(1 − load), and every operation walks through one. Copies of a key lengthen its run, and the
/// 129th is refused as [`FullKind::Duplicates`]. Removing a key that was never inserted may remove
/// another's fingerprint.
///
/// # Cost
///
/// (r + 3)/0.9 bits per key for a rate of 1 − e^(−0.9/2^r), with remainders of r bits: 11.11 at
/// 0.70 %, 12.22 at 0.35 %. All slots that a lookup reads are neighbours, in few lines, but it
/// walks from one to the next: for an absent key to where the cluster begins, and on to its run,
///
/// | load | 0.5 | 0.75 | 0.9 | 0.95 |
/// |---|---|---|---|---|
/// | slots walked, mean | 0.5 | 5.4 | 51 | 221 |
///
/// (test `walks_grow_with_the_load_as_the_essay_says`). Above 0.75 the walks make it slow.
///
/// # The lecture's example
///
/// Eight slots and the names of cities, hashed by "32-bit signed `MurmurHash3`". Two things are
/// not printed: the seed, 42, and that the quotient is the *low* three bits of the hash and the
/// remainder the rest, as a signed number; the lecture's own definition has it the other way
/// round. With both, all six printed pairs are right. Here a rotation brings the low bits to the
/// top, where this filter takes its quotient from, and remainders are not negative: Berlin's is
/// 2²⁹ − 89622902.
///
/// ```
/// use tamis::{Config, Filter, Insert, Kind, QuotientStandard, Remove, option};
///
/// fn murmur3(key: &[u8], seed: u32) -> u32 {
///     let scrambled = |bytes: &[u8]| {
///         let word = bytes.iter().rev().fold(0u32, |word, &byte| word << 8 | u32::from(byte));
///         word.wrapping_mul(0xCC9E_2D51).rotate_left(15).wrapping_mul(0x1B87_3593)
///     };
///     let (words, rest) = key.as_chunks::<4>();
///     let mut h = seed;
///     for word in words {
///         h = (h ^ scrambled(word)).rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64);
///     }
///     h ^= scrambled(rest) ^ key.len() as u32;
///     h = (h ^ h >> 16).wrapping_mul(0x85EB_CA6B);
///     h = (h ^ h >> 13).wrapping_mul(0xC2B2_AE35);
///     h ^ h >> 16
/// }
///
/// // The hash of a city, once its quotient and remainder are what the lecture prints.
/// let hash = |city: &str, quotient: u32, remainder: i32| {
///     let hash = murmur3(city.as_bytes(), 42);
///     assert_eq!((hash & 7, hash as i32 >> 3), (quotient, remainder), "{city}");
///     u64::from(hash.rotate_right(3)) << 32
/// };
/// let table = |filter: &QuotientStandard| -> Vec<String> {
///     filter.table().take(8).map(|slot| slot.to_string()).collect()
/// };
///
/// // Seven keys are 0.9 of eight slots, at most; 32 bits of hash leave 29 to the remainder.
/// let mut filter = QuotientStandard::build(&Config::new(7).with(option::BITS, 29), &mut [])?;
///
/// // Each of the first three finds its home free.
/// filter.insert(hash("amsterdam", 1, 164894540))?;
/// filter.insert(hash("berlin", 4, -89622902))?;
/// filter.insert(hash("london", 7, 232552816))?;
/// let three = table(&filter);
/// assert_eq!(three[..4], ["000", "100 164894540", "000", "000"]);
/// assert_eq!(three[4..], ["100 447248010", "000", "000", "100 232552816"]);
///
/// // Madrid continues the run of Amsterdam, in a slot that is not its home.
/// filter.insert(hash("madrid", 1, 249059682))?;
/// assert_eq!(table(&filter)[..4], ["000", "100 164894540", "011 249059682", "000"]);
///
/// // Ankara's home is taken: home 2 is marked as occupied, and the remainder is shifted to slot 3.
/// filter.insert(hash("ankara", 2, 62147742))?;
/// let five = table(&filter);
/// assert_eq!(five[..4], ["000", "100 164894540", "111 249059682", "001 62147742"]);
/// assert_eq!(five[4..], three[4..]);
///
/// // Home 1 is occupied, but Amsterdam's remainder is above the ferret's already. Berlin is there.
/// assert!(!filter.contains(hash("ferret", 1, 122150710)));
/// assert!(filter.contains(hash("berlin", 4, -89622902)));
///
/// // When Amsterdam leaves, both others move back: Madrid is at home then, and so is Ankara.
/// assert!(filter.remove(hash("amsterdam", 1, 164894540)));
/// assert_eq!(table(&filter)[..4], ["000", "100 249059682", "100 62147742", "000"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Of what the lecture says beside it, P ≤ 2⁻ʳ holds at any load up to 1. "About 20 % bigger" than
/// a Bloom filter of the same rate depends on load and rate: 21 % at a load of 0.75 with 8 bits,
/// 8 and 4 % at 0.9 with 7 and 8. "False negatives are not possible" does not hold with its own
/// insertion, which keeps a fingerprint once: of two keys that share one, either leaves with the
/// other. Here each key has a slot of its own.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `bits` | 1 to 32 | the fewest for the rate | bits of a remainder: more make the rate lower |
///
/// # When to choose it
///
/// To see how a quotient filter works. To remove keys, [`Cuckoo`](crate::Cuckoo) takes less space
/// and is faster.
///
/// # Bibliography
///
/// - Bender et al., *Don't thrash: how to cache your hash on flash*, 2011 and 2012: the filter, its
///   three bits, and why it suits a disk.
/// - Cleary, *Compact hash tables using bidirectional linear probing*, 1984: that a slot's number
///   is half of the key.
/// - Knuth, *The art of computer programming* 3, 6.4, exercise 13: a key as quotient and
///   remainder.
/// - Gakhov, *Probabilistic data structures and algorithms*, 2019: where the cities come from.
#[derive(Clone, Debug)]
pub struct QuotientStandard {
    /// Remainder and bits of every slot, the tail's included.
    table: Packed,
    /// Slots that are homes.
    slots: u64,
    len: u64,
}

/// Bits of a slot beside its remainder.
const FLAGS: u32 = 3;
/// Slots behind the last home, at most; also the most copies of a key, which therefore fit behind
/// any home where nothing else stands.
const TAIL: u64 = 128;
/// The load that a filter is sized for.
const LOAD: f64 = 0.9;
/// Widths of a remainder. No rate that a 64-bit hash can promise needs more.
const BITS: std::ops::RangeInclusive<u64> = 1..=32;

/// A slot of a [`QuotientStandard`], as [`table`](QuotientStandard::table) shows it.
///
/// It prints as its three bits and, where it is taken, its remainder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct QuotientSlot {
    /// Some fingerprint has its home here, wherever it stands.
    pub is_occupied: bool,
    /// The remainder here is of the same run as the one before.
    pub is_continuation: bool,
    /// The remainder here does not stand at home.
    pub is_shifted: bool,
    /// What is held; 0 in a slot that is free.
    pub remainder: u64,
}

impl QuotientSlot {
    /// Whether no remainder stands here. A home that is occupied is never free: its run would
    /// stand there.
    pub fn is_free(&self) -> bool {
        !(self.is_occupied || self.is_continuation || self.is_shifted)
    }

    #[inline]
    fn unpack(field: u64) -> QuotientSlot {
        QuotientSlot {
            is_occupied: field & 1 != 0,
            is_continuation: field & 2 != 0,
            is_shifted: field & 4 != 0,
            remainder: field >> FLAGS,
        }
    }

    #[inline]
    fn pack(self) -> u64 {
        u64::from(self.is_occupied)
            | u64::from(self.is_continuation) << 1
            | u64::from(self.is_shifted) << 2
            | self.remainder << FLAGS
    }
}

impl fmt::Display for QuotientSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for bit in [self.is_occupied, self.is_continuation, self.is_shifted] {
            f.write_str(if bit { "1" } else { "0" })?;
        }
        if self.is_free() {
            return Ok(());
        }
        write!(f, " {}", self.remainder)
    }
}

/// Slots behind the last home: never more than the homes, which are more than the keys.
fn tail(slots: u64) -> u64 {
    slots.min(TAIL)
}

/// The most keys that so many slots take.
fn most_keys(slots: u64) -> u64 {
    slots / 20 * 19 + slots % 20 * 19 / 20
}

/// The most slots for remainders of a width: a hash of 64 bits must give both, with 8 bits to
/// spare.
fn most_slots(bits: u32) -> u64 {
    1 << (56 - bits)
}

/// Quotient and remainder of a hash: this filter's geometry. Sorted hashes have sorted
/// fingerprints.
#[inline]
fn split(hash: u64, slots: u64, bits: u32) -> (u64, u64) {
    let (quotient, rest) = fastrange(hash, slots);
    (quotient, rest >> (u64::BITS - bits))
}

impl QuotientStandard {
    /// Bits of a remainder.
    pub fn remainder_bits(&self) -> u32 {
        self.table.width() - FLAGS
    }

    /// Slots that are homes, one for each quotient; the filter is sized to hold its capacity in
    /// 90 % of them.
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// Keys for each of the [`slots`](Self::slots).
    pub fn load(&self) -> f64 {
        self.len as f64 / self.slots as f64
    }

    /// Every slot in order, those of the tail included.
    pub fn table(&self) -> impl Iterator<Item = QuotientSlot> {
        self.table.iter().map(QuotientSlot::unpack)
    }

    /// Every fingerprint as quotient and remainder, in order, as often as it is held.
    ///
    /// ```
    /// use tamis::{Config, Insert, Kind, QuotientStandard, option};
    ///
    /// let config = Config::new(7).with(option::BITS, 8);
    /// let filter = QuotientStandard::build(&config, &mut [7 << 61, 1 << 61, 1 << 61 | 5 << 53])?;
    /// let listed: Vec<_> = filter.fingerprints().collect();
    /// assert_eq!(listed, [(1, 0), (1, 5), (7, 0)]);
    /// # Ok::<(), tamis::BuildError>(())
    /// ```
    pub fn fingerprints(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut quotient = 0;
        (0..).zip(self.table()).filter_map(move |(at, slot)| {
            if slot.is_free() {
                return None;
            }
            if !slot.is_shifted {
                quotient = at;
            } else if !slot.is_continuation {
                quotient = self.next_occupied(quotient + 1);
            }
            Some((quotient, slot.remainder))
        })
    }

    fn with_shape(slots: u64, bits: u32) -> Result<QuotientStandard, NoMemory> {
        Ok(QuotientStandard {
            table: Packed::zeroed(slots + tail(slots), bits + FLAGS)?,
            slots,
            len: 0,
        })
    }

    /// See [`split`].
    #[inline]
    fn fingerprint(&self, hash: u64) -> (u64, u64) {
        split(hash, self.slots, self.remainder_bits())
    }

    /// The number after that of the last slot.
    fn end(&self) -> u64 {
        self.slots + tail(self.slots)
    }

    #[inline]
    fn slot(&self, at: u64) -> QuotientSlot {
        QuotientSlot::unpack(self.table.get(at))
    }

    /// Replaces what stands in a slot; that it is somebody's home stays.
    fn place(&mut self, at: u64, standing: QuotientSlot) {
        let is_occupied = self.slot(at).is_occupied;
        let slot = QuotientSlot {
            is_occupied,
            ..standing
        };
        self.table.set(at, slot.pack());
    }

    fn set_occupied(&mut self, home: u64, is_occupied: bool) {
        let slot = QuotientSlot {
            is_occupied,
            ..self.slot(home)
        };
        self.table.set(home, slot.pack());
    }

    /// The first occupied home from this one on.
    fn next_occupied(&self, from: u64) -> u64 {
        let mut homes = from..self.slots;
        let next = homes.find(|&home| self.slot(home).is_occupied);
        next.unwrap_or(self.slots)
    }

    /// Where the run of a quotient stands or, if it has none, would begin.
    fn run(&self, quotient: u64) -> Range<u64> {
        let mut cluster = quotient;
        while cluster > 0 && self.slot(cluster).is_shifted {
            cluster -= 1;
        }
        let mut start = cluster;
        for home in cluster..quotient {
            if self.slot(home).is_occupied {
                start = self.run_end(start);
            }
        }
        if self.slot(quotient).is_occupied {
            start..self.run_end(start)
        } else {
            start..start
        }
    }

    /// The slot after the run that begins in a slot.
    fn run_end(&self, start: u64) -> u64 {
        let mut rest = start + 1..self.end();
        let end = rest.find(|&at| !self.slot(at).is_continuation);
        end.unwrap_or(self.end())
    }

    /// Slots of a run that hold a remainder.
    fn copies(&self, run: Range<u64>, remainder: u64) -> impl Iterator<Item = u64> {
        run.filter(move |&at| self.slot(at).remainder == remainder)
    }

    fn insert_at(&mut self, quotient: u64, remainder: u64) -> Result<(), Full> {
        let run = self.run(quotient);
        if self.copies(run.clone(), remainder).count() as u64 == TAIL {
            return Err(Full::new(FullKind::Duplicates(TAIL), self.len));
        }
        let above = |&at: &u64| self.slot(at).remainder > remainder;
        let place = run.clone().find(above).unwrap_or(run.end);
        let free = (place..self.end()).find(|&at| self.slot(at).is_free());
        let Some(free) = free.filter(|_| self.len < most_keys(self.slots)) else {
            return Err(Full::new(FullKind::Capacity, self.len));
        };
        for at in (place..free).rev() {
            let moved = self.slot(at);
            // The run's first so far continues the new one.
            let is_continuation = moved.is_continuation || run.contains(&at);
            let is_shifted = true;
            self.place(
                at + 1,
                QuotientSlot {
                    is_continuation,
                    is_shifted,
                    ..moved
                },
            );
        }
        let standing = QuotientSlot {
            is_occupied: false,
            is_continuation: place > run.start,
            is_shifted: place != quotient,
            remainder,
        };
        self.place(place, standing);
        self.set_occupied(quotient, true);
        self.len += 1;
        Ok(())
    }

    /// Takes the remainder out of a slot of a run, and closes the gap.
    fn take(&mut self, quotient: u64, run: &Range<u64>, gone: u64) {
        let was_alone = run.end - run.start == 1;
        self.set_occupied(quotient, !was_alone);
        let (mut at, mut home) = (gone, quotient);
        while at + 1 < self.end() && self.slot(at + 1).is_shifted {
            let moved = self.slot(at + 1);
            if !moved.is_continuation {
                home = self.next_occupied(home + 1);
            }
            // The run's second becomes its first.
            let is_continuation = moved.is_continuation && at != run.start;
            let is_shifted = is_continuation || at != home;
            self.place(
                at,
                QuotientSlot {
                    is_continuation,
                    is_shifted,
                    ..moved
                },
            );
            at += 1;
        }
        self.place(at, QuotientSlot::default());
        self.len -= 1;
    }

    /// Fills an empty table with a sorted list of fingerprints, from its first slot to its last.
    fn fill(&mut self, sorted: impl Iterator<Item = (u64, u64)>) -> Result<(), Full> {
        let (mut next, mut before, mut copies) = (0, None, 0);
        for (quotient, remainder) in sorted {
            copies = if before == Some((quotient, remainder)) {
                copies + 1
            } else {
                1
            };
            if copies > TAIL {
                return Err(Full::new(FullKind::Duplicates(TAIL), self.len));
            }
            let at = quotient.max(next);
            if at == self.end() || self.len == most_keys(self.slots) {
                return Err(Full::new(FullKind::Capacity, self.len));
            }
            let standing = QuotientSlot {
                is_occupied: false,
                is_continuation: before.is_some_and(|(last, _)| last == quotient),
                is_shifted: at != quotient,
                remainder,
            };
            self.place(at, standing);
            self.set_occupied(quotient, true);
            (next, before) = (at + 1, Some((quotient, remainder)));
            self.len += 1;
        }
        Ok(())
    }

    /// Whether the table is what some sorted list of fingerprints makes it: one walk, which says
    /// what is wrong with the first slot that is.
    fn check(&self) -> Result<(), DecodeError> {
        // Homes up to here whose runs have not begun; the run that stands here, by its quotient;
        // what stood in the slot before, and how often.
        let (mut waiting, mut quotient, mut held) = (0u64, None, 0);
        let (mut before, mut copies) = (QuotientSlot::default(), 0);
        for (at, slot) in (0..).zip(self.table()) {
            let wrong = |what: &str| {
                let expected = format!("a slot {at} {what}");
                Err(DecodeError::invalid("table", slot.pack(), expected))
            };
            if slot.is_occupied && at >= self.slots {
                return wrong("of the tail that is nobody's home");
            }
            waiting += u64::from(slot.is_occupied);
            if slot.is_free() {
                if waiting > 0 {
                    return wrong("that holds a remainder of a home before it");
                }
                if slot.remainder != 0 {
                    return wrong("without a remainder, as it is free");
                }
                before = slot;
                continue;
            }
            held += 1;
            if slot.is_continuation {
                if before.is_free() || !slot.is_shifted {
                    return wrong("that continues a run, away from its home");
                }
                if slot.remainder < before.remainder {
                    return wrong("with no remainder below the one before it");
                }
            } else {
                if waiting == 0 {
                    return wrong("that begins no run, as no home is without one");
                }
                waiting -= 1;
                let home = self.next_occupied(quotient.map_or(0, |last| last + 1));
                if slot.is_shifted != (home != at) {
                    return wrong("that is shifted unless it is its run's home");
                }
                quotient = Some(home);
            }
            let is_copy = slot.is_continuation && slot.remainder == before.remainder;
            copies = if is_copy { copies + 1 } else { 1 };
            if copies > TAIL {
                return wrong("that is no 129th copy");
            }
            before = slot;
        }
        if waiting > 0 {
            let expected = "homes whose runs stand before its end";
            return Err(DecodeError::invalid("table", waiting, expected));
        }
        if held != self.len {
            let expected = format!("{held}, the slots in use");
            return Err(DecodeError::invalid("keys", self.len, expected));
        }
        Ok(())
    }
}

impl Filter for QuotientStandard {
    fn contains(&self, hash: u64) -> bool {
        let (quotient, remainder) = self.fingerprint(hash);
        self.slot(quotient).is_occupied && {
            let run = self.run(quotient);
            self.copies(run, remainder).next().is_some()
        }
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.table.size_in_bytes()
    }

    /// The share of all fingerprints that the table holds. As a hash has one fingerprint, this is
    /// exact.
    fn fpr(&self) -> f64 {
        let mut before = None;
        let distinct = self
            .fingerprints()
            .filter(|&fingerprint| before.replace(fingerprint) != Some(fingerprint));
        distinct.count() as f64 / (self.slots as f64 * 2f64.powi(self.remainder_bits() as i32))
    }

    fn prefetch(&self, hash: u64) {
        self.table.prefetch(self.fingerprint(hash).0);
    }
}

impl Insert for QuotientStandard {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let (quotient, remainder) = self.fingerprint(hash);
        self.insert_at(quotient, remainder)
    }
}

impl Remove for QuotientStandard {
    fn remove(&mut self, hash: u64) -> bool {
        let (quotient, remainder) = self.fingerprint(hash);
        let run = self.run(quotient);
        let gone = self.copies(run.clone(), remainder).next();
        if let Some(gone) = gone {
            self.take(quotient, &run, gone);
        }
        gone.is_some()
    }
}

impl Count for QuotientStandard {
    fn count(&self, hash: u64) -> u64 {
        let (quotient, remainder) = self.fingerprint(hash);
        self.copies(self.run(quotient), remainder).count() as u64
    }
}

impl Merge for QuotientStandard {
    /// Merges the two sorted lists of fingerprints. Copies of a key add up, to 128 at most.
    fn merge(&mut self, other: &QuotientStandard) -> Result<(), MergeError> {
        MergeError::unless_equal("slots", self.slots, other.slots)?;
        let (ours, theirs) = (self.remainder_bits(), other.remainder_bits());
        MergeError::unless_equal("bits", u64::from(ours), u64::from(theirs))?;
        let mut union = QuotientStandard::with_shape(self.slots, ours).map_err(|e| {
            let full = Full::new(FullKind::Memory(e.bytes), self.len);
            MergeErrorKind::Full(full)
        })?;
        let both = merged([self.fingerprints(), other.fingerprints()]);
        union.fill(both).map_err(MergeErrorKind::Full)?;
        *self = union;
        Ok(())
    }
}

impl Halve for QuotientStandard {
    /// # Errors
    ///
    /// [`BuildError`] when the number of slots is odd, the keys do not fit in half of them, or
    /// memory is short.
    fn halve(&self) -> Result<QuotientStandard, BuildError> {
        if !self.slots.is_multiple_of(2) {
            let expected = "an even number, to be halved";
            return Err(BuildError::parameter("slots", self.slots, expected));
        }
        let bits = self.remainder_bits();
        let mut half = QuotientStandard::with_shape(self.slots / 2, bits)?;
        let narrowed = self.fingerprints().map(|(quotient, remainder)| {
            let remainder = (quotient % 2) << (bits - 1) | remainder >> 1;
            (quotient / 2, remainder)
        });
        half.fill(narrowed)?;
        Ok(half)
    }
}

impl Kind for QuotientStandard {
    const ABOUT: &'static str =
        "the quotient filter as it was published: remove, count, merge and list fingerprints";
    const PARAMS: &'static [Param] = &[Param {
        name: option::BITS.name,
        values: "1 to 32",
        default: "the fewest for the rate",
        about: "bits of a remainder: more make the rate lower",
    }];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<QuotientStandard, BuildError> {
        let (keys, fpr) = config.check::<QuotientStandard>(hashes)?;
        let least = math::quotient_fpr(LOAD, *BITS.end() as u32);
        let bits = config.bits::<QuotientStandard>(BITS, math::quotient_bits(LOAD, fpr), least)?;
        let (needed, most) = ((keys.max(1) as f64 / LOAD).ceil(), most_slots(bits));
        if needed > most as f64 {
            return Err(BuildErrorKind::TooLarge {
                unit: "slots",
                needed,
                most,
            }
            .into());
        }
        let mut filter = QuotientStandard::with_shape(needed as u64, bits)?;
        hashes.sort_unstable();
        let slots = filter.slots;
        filter.fill(hashes.iter().map(|&hash| split(hash, slots, bits)))?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("slots", self.slots);
        out.param("bits", u64::from(self.remainder_bits()));
        self.table.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<QuotientStandard, DecodeError> {
        let slots = input.param("slots")?;
        let bits = input.param_in("bits", BITS)? as u32;
        if !(1..=most_slots(bits)).contains(&slots) {
            let expected = format!("1 to {}", most_slots(bits));
            return Err(DecodeError::invalid("slots", slots, expected));
        }
        let filter = QuotientStandard {
            table: Packed::decode(input, "table", slots + tail(slots), bits + FLAGS)?,
            slots,
            len: input.len(),
        };
        filter.check()?;
        if filter.len > most_keys(slots) {
            let expected = format!("at most {}", most_keys(slots));
            return Err(DecodeError::invalid("keys", filter.len, expected));
        }
        Ok(filter)
    }
}

#[cfg(test)]
mod tests;
