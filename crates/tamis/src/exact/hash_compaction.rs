//! Hash compaction: a hash table that keeps a few bits of each key instead of the key.
//!
//! The essay is at [`HashCompaction`].

use crate::bits::{fastrange, low_mask, mix64};
use crate::config::{Config, Param};
use crate::error::{BuildError, BuildErrorKind, DecodeError, Full, FullKind};
use crate::filter::{Filter, Insert, Kind};
use crate::format::{Decoder, Encoder};
use crate::math;
use crate::option;
use crate::packed::Packed;

/// A table of signatures by open addressing: insert, and the probability that a key was omitted.
///
/// ```
/// use tamis::{Config, HashCompaction, Keyed};
///
/// let mut seen: Keyed<HashCompaction> = Keyed::new(&Config::new(1000).fpr(1e-6))?;
/// let mut to_visit = vec![1u64];
/// while let Some(state) = to_visit.pop() {
///     if !seen.contains(&state) {
///         seen.insert(&state)?;
///         to_visit.extend([state * 3 % 997, (state + 5) % 997]);
///     }
/// }
/// assert!(seen.filter().omission_probability() < 0.001);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///   hash ──► first slot a, step d, signature 1 … 2^b − 1        (0 marks a free slot)
///
///    slot   a            a + d          a + 2d         a + 3d          modulo the number of slots
///        …┌────┐… … … …┌────┐… … … …┌────┐… … … … …┌────┐…
///         │ 1c │  no   │ 07 │  no   │ 2f │ yes: in  │ 00 │ free: not in, or put it here
///        …└────┘… … … …└────┘… … … …└────┘… … … … …└────┘…
/// ```
///
/// A program that explores the states of a machine must know which it has seen, and there are too
/// many to keep. So it keeps a table of signatures, and takes a state to be seen when its
/// signature stands on its way through the table. A state that is wrongly taken to be seen is
/// *omitted*: what lies behind it may go unexplored.
/// [`omission_probability`](HashCompaction::omission_probability) says how likely it is that this
/// has happened at all.
///
/// # The way through the table
///
/// First slot and signature come from different parts of the hash, the step from the whole hash,
/// mixed anew. (If the slot followed from the signature, as in a form that is often described, a
/// key would be known by b bits in all and the rate be n/2^b: with 20 bits and a million keys, 61
/// %.) The number of slots has no divisor below 1000 but itself, so that a step leads through all
/// slots, or in large tables through so many that it makes no difference. No way is followed for
/// more than 512 slots: one so long has a probability of 0.9⁵¹² = 4·10⁻²⁴ in the fullest table,
/// and no file can make a lookup run on.
///
/// Ordered probing, which would end a lookup early, needs to move signatures along their way.
/// Their step is not stored, so it cannot be done.
///
/// # Cost
///
/// b/0.8 bits per key. At a load of 0.8 an absent key meets four signatures in the mean: 0.78 %
/// with 9 bits, which are 11.25 bits per key. Each is in a cache line of its own. Keys beyond the
/// capacity are taken up to a load of 0.9.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `bits` | 2 to 32 | the fewest for the rate | bits of a signature: more make the rate lower |
///
/// # When to choose it
///
/// To report the omission probability of a search as the literature on verification does. As a
/// filter, a [`Cuckoo`](crate::Cuckoo) has the same rate in less space and two lines, and removes
/// keys as well. The Comback method, which recovers states by searching backwards so that none is
/// omitted, is not here: it needs the machine's own transitions, and is no set of hashes.
///
/// # Bibliography
///
/// - Wolper, Leroy, *Reliable hashing without collision detection*, 1993: signatures instead of
///   states.
/// - Stern, Dill, *A new scheme for memory-efficient probabilistic verification*, 1996: slots
///   independent of the signature, and the omission probability.
/// - Dillinger, Manolios, *Bloom filters in probabilistic verification*, 2004: the comparison
///   with Bloom filters.
/// - Lueker, Molodowitch, *More analysis of double hashing*, 1988: steps are as good as random
///   slots.
#[derive(Clone, Debug)]
pub struct HashCompaction {
    /// Signatures; 0 is a free slot.
    table: Packed,
    slots: u64,
    /// Slots in use.
    used: u64,
    len: u64,
}

/// The load at capacity, and the load at which keys are refused.
const LOAD: f64 = 0.8;
const MOST_LOAD: f64 = 0.9;
/// Slots that are looked at for a key.
const MOST_PROBES: u32 = 512;
/// Widths of a signature.
const BITS: std::ops::RangeInclusive<u64> = 2..=32;
/// The number of slots has no divisor up to this one, but itself.
const DIVISORS: u64 = 1000;
/// Tables up to this size are asked for their rate way by way.
const COUNTED: u64 = 256;

/// Where the way of a key through the table ends.
enum Way {
    /// At its signature, in a slot that is free, or nowhere within [`MOST_PROBES`].
    Found,
    Free(u64),
    Lost,
}

impl HashCompaction {
    /// Bits of a signature.
    pub fn signature_bits(&self) -> u32 {
        self.table.width()
    }

    /// Signatures that are held: the keys that were new when they were inserted.
    pub fn signatures(&self) -> u64 {
        self.used
    }

    /// The fraction of slots in use.
    pub fn load(&self) -> f64 {
        self.used as f64 / self.slots as f64
    }

    /// The probability that at least one of the keys inserted so far was taken to be there
    /// already when it was not.
    pub fn omission_probability(&self) -> f64 {
        math::omission_probability(self.used, self.slots, self.signature_bits())
    }

    /// First slot, step and signature of a hash: this filter's geometry.
    #[inline]
    fn place(&self, hash: u64) -> (u64, u64, u64) {
        let (slot, rest) = fastrange(hash, self.slots);
        let (signature, _) = fastrange(rest, low_mask(self.signature_bits()));
        let (step, _) = fastrange(mix64(hash), self.slots - 1);
        (slot, 1 + step, 1 + signature)
    }

    /// The slot after another on a way.
    #[inline]
    fn after(&self, slot: u64, step: u64) -> u64 {
        let next = slot + step;
        if next < self.slots {
            next
        } else {
            next - self.slots
        }
    }

    #[inline]
    fn follow(&self, hash: u64) -> Way {
        let (mut slot, step, signature) = self.place(hash);
        for _ in 0..MOST_PROBES {
            match self.table.get(slot) {
                0 => return Way::Free(slot),
                held if held == signature => return Way::Found,
                _ => slot = self.after(slot, step),
            }
        }
        Way::Lost
    }

    /// The share of all ways and signatures that are answered yes.
    fn counted_fpr(&self) -> f64 {
        let mut yes = 0;
        let mut met = Vec::new();
        for first in 0..self.slots {
            for step in 1..self.slots {
                met.clear();
                let mut slot = first;
                for _ in 0..MOST_PROBES {
                    let held = self.table.get(slot);
                    if held == 0 {
                        break;
                    }
                    if !met.contains(&held) {
                        met.push(held);
                    }
                    slot = self.after(slot, step);
                }
                yes += met.len();
            }
        }
        let ways = (self.slots * (self.slots - 1)) as f64;
        yes as f64 / (ways * low_mask(self.signature_bits()) as f64)
    }
}

/// Whether a table may have this many slots.
fn leads_everywhere(slots: u64) -> bool {
    slots >= 2
        && (2..=DIVISORS)
            .take_while(|d| d * d <= slots)
            .all(|d| !slots.is_multiple_of(d))
}

/// The most slots for signatures of a width: a hash of 64 bits must give both, with 8 bits to
/// spare.
fn most_slots(bits: u32) -> u64 {
    1 << (56 - bits)
}

/// The most signatures in a table: at least one slot is free.
fn most_used(slots: u64) -> u64 {
    ((slots as f64 * MOST_LOAD) as u64).min(slots - 1)
}

impl Filter for HashCompaction {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        matches!(self.follow(hash), Way::Found)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.table.size_in_bytes()
    }

    /// Of a small table counted, of a large one by the formula for its load.
    fn fpr(&self) -> f64 {
        if self.slots <= COUNTED {
            return self.counted_fpr();
        }
        math::double_hashing_fpr(self.used, self.slots, self.signature_bits())
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        let (slot, step, _) = self.place(hash);
        // Four of five ways go on to a second slot.
        self.table.prefetch(slot);
        self.table.prefetch(self.after(slot, step));
    }
}

impl Insert for HashCompaction {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        match self.follow(hash) {
            Way::Found => {}
            Way::Free(slot) if self.used < most_used(self.slots) => {
                let (_, _, signature) = self.place(hash);
                self.table.set(slot, signature);
                self.used += 1;
            }
            _ => return Err(Full::new(FullKind::Capacity, self.len)),
        }
        self.len = self.len.saturating_add(1);
        Ok(())
    }
}

impl Kind for HashCompaction {
    const ABOUT: &'static str =
        "states seen by a search, with the probability that one was omitted";
    const PARAMS: &'static [Param] = &[Param {
        name: option::BITS.name,
        values: "2 to 32",
        default: "the fewest for the rate",
        about: "bits of a signature: more make the rate lower",
    }];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<HashCompaction, BuildError> {
        let (keys, fpr) = config.check::<HashCompaction>(hashes)?;
        let comparisons = math::open_addressing_comparisons(LOAD, false);
        let needed = math::hash_compaction_bits(fpr, comparisons);
        let least = comparisons / 2f64.powi(*BITS.end() as i32);
        let bits = config.bits::<HashCompaction>(BITS, needed, least)?;
        let (needed, most) = ((keys as f64 / LOAD).ceil().max(2.0), most_slots(bits));
        // Among any 2¹² numbers of this size many have no small divisor.
        if needed > most as f64 - 4096.0 {
            return Err(BuildErrorKind::TooLarge {
                unit: "slots",
                needed,
                most,
            }
            .into());
        }
        let slots = (needed as u64..most).find(|&slots| leads_everywhere(slots));
        let slots = slots.unwrap_or(most);
        let mut filter = HashCompaction {
            table: Packed::zeroed(slots, bits)?,
            slots,
            used: 0,
            len: 0,
        };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("slots", self.slots);
        out.param("bits", u64::from(self.signature_bits()));
        self.table.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<HashCompaction, DecodeError> {
        let slots = input.param("slots")?;
        let bits = input.param_in("bits", BITS)? as u32;
        if slots > most_slots(bits) || !leads_everywhere(slots) {
            let most = most_slots(bits);
            let expected = format!("2 to {most}, without divisors up to {DIVISORS} but itself");
            return Err(DecodeError::invalid("slots", slots, expected));
        }
        let table = Packed::decode(input, "table", slots, bits)?;
        let used = table.iter().filter(|&signature| signature != 0).count() as u64;
        if used > most_used(slots) {
            let expected = format!("at most {} signatures", most_used(slots));
            return Err(DecodeError::invalid("table", used, expected));
        }
        let len = input.len();
        if len < used || (len == 0) != (used == 0) {
            let expected = format!("at least {used}, the slots in use");
            return Err(DecodeError::invalid("keys", len, expected));
        }
        Ok(HashCompaction {
            table,
            slots,
            used,
            len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_and_rate_are_those_of_the_formula() {
        // spec: a load of 0.8 and 9 bits take 11.25 bits/key and err in 0.78 % of cases.
        let n = 1_000_000;
        let mut hashes: Vec<u64> = (0..n).map(mix64).collect();
        let filter = HashCompaction::build(&Config::new(n).fpr(0.01), &mut hashes).unwrap();
        assert_eq!(filter.signature_bits(), 9);
        let bits_per_key = filter.size_in_bytes() as f64 * 8.0 / n as f64;
        assert!((bits_per_key / 11.25 - 1.0).abs() < 0.001, "{bits_per_key}");
        // Keys that were omitted take no slot.
        let load = filter.load();
        assert!((0.796..0.8).contains(&load), "{load}");
        let published =
            math::hash_compaction_fpr(9, math::open_addressing_comparisons(load, false));
        assert!(
            (filter.fpr() / published - 1.0).abs() < 0.05,
            "{}",
            filter.fpr()
        );
        let queries = 5_000_000;
        let hits = (0..queries).filter(|q| filter.contains(mix64(1 << 40 | q)));
        let hits = hits.count() as u64;
        let (low, high) = math::binomial_interval(queries, filter.fpr(), 1e-9);
        assert!(
            (low..=high).contains(&hits),
            "{hits}, {low} to {high} expected"
        );
    }

    #[test]
    fn a_step_leads_through_the_whole_table() {
        for slots in (2..2000).filter(|&n| leads_everywhere(n)) {
            let filter = HashCompaction {
                table: Packed::zeroed(slots, 8).unwrap(),
                slots,
                used: 0,
                len: 0,
            };
            for i in 0..20 {
                let (first, step, signature) = filter.place(mix64(i));
                assert!(
                    first < slots && (1..slots).contains(&step) && (1..256).contains(&signature)
                );
                let mut slot = filter.after(first, step);
                let mut length = 1;
                while slot != first {
                    slot = filter.after(slot, step);
                    length += 1;
                }
                assert_eq!(length, slots);
            }
        }
    }

    #[test]
    fn the_counted_rate_is_the_formula_s() {
        // At the edge between the two: the mean of many tables.
        let (mut counted, mut formula) = (0.0, 0.0);
        for t in 0..100 {
            let mut hashes: Vec<u64> = (0..200).map(|i| mix64(t << 32 | i)).collect();
            let filter = HashCompaction::build(&Config::new(200).fpr(0.01), &mut hashes).unwrap();
            assert!(filter.slots <= COUNTED);
            counted += filter.fpr();
            formula += math::double_hashing_fpr(filter.used, filter.slots, filter.signature_bits());
        }
        assert!(
            (counted / formula - 1.0).abs() < 0.01,
            "{counted} {formula}"
        );
    }

    #[test]
    fn a_table_that_is_full_refuses_new_keys_and_finds_old_ones() {
        let mut filter = HashCompaction::build(&Config::new(1000).fpr(1e-6), &mut []).unwrap();
        let inserted = (0..)
            .take_while(|&i| filter.insert(mix64(i)).is_ok())
            .count() as u64;
        assert_eq!(inserted, most_used(filter.slots));
        assert!((0..inserted).all(|i| filter.contains(mix64(i))));
        assert!(
            filter.insert(mix64(0)).is_ok(),
            "a key that is in takes no slot"
        );
        assert!(filter.insert(mix64(inserted)).is_err());
    }

    #[test]
    fn keys_are_omitted_as_often_as_is_told() {
        let (tables, keys) = (20_000u64, 100);
        let (mut omitted, mut told) = (0u64, 0.0);
        for t in 0..tables {
            let mut hashes: Vec<u64> = (0..keys).map(|i| mix64(t << 32 | i)).collect();
            let filter = HashCompaction::build(&Config::new(keys).fpr(0.01), &mut hashes).unwrap();
            omitted += u64::from(filter.signatures() < keys);
            told += math::omission_probability(keys, filter.slots, filter.signature_bits());
        }
        let (low, high) = math::binomial_interval(tables, told / tables as f64, 1e-9);
        assert!(
            (low..=high).contains(&omitted),
            "{omitted}, {low} to {high} expected"
        );
    }
}
