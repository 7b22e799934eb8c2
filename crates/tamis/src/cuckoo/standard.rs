//! The cuckoo filter: fingerprints in a table, two buckets of four slots for each key, and a way
//! to remove.
//!
//! The essay is at [`Cuckoo`].

use crate::bits::{fastrange, low_mask};
use crate::config::{Config, Param};
use crate::error::{
    BuildError, BuildErrorKind, DecodeError, Full, FullKind, MergeError, MergeErrorKind,
};
use crate::filter::{Count, Filter, Insert, Kind, Merge, Remove};
use crate::format::{Decoder, Encoder};
use crate::lookup::{self, Ring};
use crate::math;
use crate::option;
use crate::packed::{Packed, View};
use crate::simd::Bits;

/// A cuckoo filter: insert, remove, count up to eight, merge.
///
/// ```
/// use tamis::{Config, Cuckoo, Keyed};
///
/// let mut sessions: Keyed<Cuckoo> = Keyed::new(&Config::new(10_000).fpr(0.001))?;
/// sessions.insert("4f9a")?;
/// assert!(sessions.contains("4f9a"));
/// assert!(sessions.remove("4f9a"));
/// assert!(!sessions.contains("4f9a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///              ┌──────┬──────┬──────┬──────┐
///  bucket i₁   │  7c  │  00  │  1f  │  a3  │  ◄── hash: i₁ from its high part,
///              └──────┴──────┴──────┴──────┘      fingerprint 1 … 2^f − 1 from the rest
///                                                 (0 marks a free slot)
///       …
///              ┌──────┬──────┬──────┬──────┐
///  bucket i₂   │  5e  │  1f  │  90  │  22  │  ◄── i₂ = alternate(i₁, fingerprint), and back again
///              └──────┴──────┴──────┴──────┘      4·f bits a bucket, packed without gaps
/// ```
///
/// A key is present when its fingerprint stands in one of its two buckets. Because the second
/// bucket is computed from the first and the fingerprint alone, a stored fingerprint can be moved
/// to its other bucket to make room: the cuckoo's way of nesting. With four slots a bucket the
/// table fills to 95 % and more.
///
/// # The other bucket
///
/// Most cuckoo filters take i₂ = i₁ ⊕ H(fingerprint) and so need a power of two of buckets, up to
/// twice the memory asked for. Here the number of buckets B is any even one: each fingerprint has
/// an odd number t < B, and i₁ + i₂ ≡ t modulo B. That is its own inverse, and as t is odd and B
/// even, the two buckets always differ.
///
/// # Insert
///
/// If neither bucket has a free slot, a breadth-first search looks for the shortest chain of
/// moves that ends in one. The search only reads; the moves are made once the chain is known,
/// from its end. So an insertion that fails has changed nothing, no key is ever in flight, there
/// is no random walk to undo and no stash to consult, and the outcome is the same on every run.
///
/// # Limits
///
/// Two buckets have eight slots: the ninth copy of a key, or of keys with the same fingerprint
/// and buckets, is refused as [`FullKind::Duplicates`]. Removing a key that was never inserted
/// may remove another's fingerprint.
///
/// # Cost
///
/// f/0.95 bits per key for a rate of about 8·0.95/2^f: 10.53 bits at 0.74 %, 12.63 at 0.19 %. The
/// fingerprint is a whole number of bits, so the rate you get is the next below the one you ask
/// for. A lookup reads two lines. Against the Bloom filter it saves space only below 0.42 %,
/// whatever is often said; what it adds is removal.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `bits` | 4 to 32 | the fewest for the rate | bits of a fingerprint: more make the rate lower |
///
/// # When to choose it
///
/// When keys must be removed, or counted up to eight. For a set that only grows take
/// [`SplitBlock512`](crate::SplitBlock512); for a fixed one [`BinaryFuse8`](crate::BinaryFuse8).
///
/// # Bibliography
///
/// - Fan, Andersen, Kaminsky, Mitzenmacher, *Cuckoo filter: practically better than Bloom*, 2014:
///   partial-key cuckoo hashing, and how full it gets.
/// - Breslow, Jayasena, *Morton filters*, 2018: an alternate bucket for tables that are not a
///   power of two.
/// - Dietzfelbinger, Weidling, *Balanced allocation and dictionaries with tightly packed constant
///   size bins*, 2007: buckets of several slots, and breadth-first insertion.
#[derive(Clone, Debug)]
pub struct Cuckoo {
    /// The fingerprints, four to a bucket.
    table: Packed,
    buckets: u64,
    len: u64,
}

/// Slots in a bucket.
const WAYS: u64 = 4;
/// Copies of one fingerprint that its two buckets hold.
const MOST_COPIES: u64 = 2 * WAYS;
/// Widths of a fingerprint. Below 4 a table cannot be filled; above 32 no rate that a 64-bit hash
/// can promise needs it.
const BITS: std::ops::RangeInclusive<u64> = 4..=32;
/// Buckets that the rate is counted from.
const COUNTED: u64 = 1 << 18;
/// Buckets of fingerprints of up to this width are searched and written as one word.
const WORD_BITS: u32 = 16;

impl Cuckoo {
    /// Bits of a fingerprint.
    pub fn fingerprint_bits(&self) -> u32 {
        self.bits()
    }

    #[inline(always)]
    fn bits(&self) -> u32 {
        self.table.width()
    }

    /// Slots of the table; the filter is sized to hold its capacity in 95 % of them, in fewer
    /// where the table is small or the fingerprint shorter than 8 bits.
    pub fn slots(&self) -> u64 {
        self.buckets * WAYS
    }

    /// The fraction of slots in use.
    pub fn load(&self) -> f64 {
        self.len as f64 / self.slots() as f64
    }

    fn with_shape(buckets: u64, bits: u32) -> Result<Cuckoo, BuildError> {
        Ok(Cuckoo {
            table: Packed::zeroed(buckets * WAYS, bits)?,
            buckets,
            len: 0,
        })
    }

    #[inline(always)]
    fn reader(&self) -> Reader<'_> {
        Reader {
            table: self.table.view(),
            buckets: self.buckets,
        }
    }

    /// See [`Reader::first`].
    #[inline(always)]
    fn place(&self, hash: u64) -> (u64, u64) {
        self.reader().first(hash)
    }

    /// The other bucket that a fingerprint may stand in.
    #[inline(always)]
    fn alternate(&self, bucket: u64, fingerprint: u64) -> u64 {
        alternate(bucket, fingerprint, self.buckets)
    }

    /// See [`Reader::matches`].
    #[inline(always)]
    fn matches(&self, bucket: u64, fingerprint: u64) -> u64 {
        self.reader().matches(bucket, fingerprint)
    }

    /// The first slot of a bucket that holds the fingerprint; 0 asks for a free slot.
    #[inline(always)]
    fn find(&self, bucket: u64, fingerprint: u64) -> Option<u64> {
        let found = self.matches(bucket, fingerprint);
        let slot = bucket * WAYS + u64::from(found.trailing_zeros() / self.bits().min(WORD_BITS));
        (found != 0).then_some(slot)
    }

    fn count_in(&self, bucket: u64, fingerprint: u64) -> u64 {
        (0..WAYS)
            .filter(|i| self.table.get(bucket * WAYS + i) == fingerprint)
            .count() as u64
    }

    /// Puts a fingerprint into one of its buckets, moving others out of the way.
    fn insert_at(&mut self, bucket: u64, fingerprint: u64) -> Result<(), Full> {
        let other = self.alternate(bucket, fingerprint);
        if !self.put(bucket, fingerprint) && !self.put(other, fingerprint) {
            let slot = self.make_room(bucket, other, fingerprint)?;
            self.table.set(slot, fingerprint);
        }
        self.len += 1;
        Ok(())
    }

    /// Puts a fingerprint into a bucket, if that has a free slot.
    ///
    /// Where a bucket is a word, the whole word is written. Its address is known before the bucket
    /// has been read, so the processor need not wait to see whether the next insertions read what
    /// this one writes.
    #[inline(always)]
    fn put(&mut self, bucket: u64, fingerprint: u64) -> bool {
        let bits = self.bits();
        if bits > WORD_BITS {
            let slot = self.find(bucket, 0);
            slot.inspect(|&slot| self.table.set(slot, fingerprint));
            return slot.is_some();
        }
        let free = self.matches(bucket, 0);
        if free != 0 {
            let slot = free.trailing_zeros() + 1 - bits;
            self.table.put(bucket * WAYS, fingerprint << slot);
        }
        free != 0
    }

    /// Frees a slot in one of two full buckets, or says why not, having changed nothing.
    #[cold]
    fn make_room(&mut self, bucket: u64, other: u64, fingerprint: u64) -> Result<u64, Full> {
        // Up to two moves find room nearly always; the wide search is for the last keys of a full
        // table.
        if let Some(slot) = self.search::<NEAR>([bucket, other]) {
            return Ok(slot);
        }
        if self.count_in(bucket, fingerprint) + self.count_in(other, fingerprint) == MOST_COPIES {
            return Err(Full::new(FullKind::Duplicates(MOST_COPIES), self.len));
        }
        let slot = self.search::<FAR>([bucket, other]);
        slot.ok_or(Full::new(FullKind::Capacity, self.len))
    }

    /// Searches breadth-first for the shortest chain of moves that frees a slot in one of the
    /// roots, looking at up to N buckets, and makes those moves.
    ///
    /// The tree is laid out as a heap: from node k, the fingerprint in slot s moves to the bucket
    /// of node 4k + 2 + s. The shortest chain never passes through a bucket twice (the part
    /// between the two visits could be left out), so its moves do not disturb one another.
    fn search<const N: usize>(&mut self, roots: [u64; 2]) -> Option<u64> {
        let mut nodes = [0; N];
        nodes[..2].copy_from_slice(&roots);
        for node in 2..N {
            let parent = (node - 2) / 4;
            let fingerprint = self.table.get(nodes[parent] * WAYS + (node as u64 - 2) % 4);
            nodes[node] = self.alternate(nodes[parent], fingerprint);
            let Some(mut free) = self.find(nodes[node], 0) else {
                continue;
            };
            let mut node = node;
            while node >= 2 {
                let parent = (node - 2) / 4;
                let from = nodes[parent] * WAYS + (node as u64 - 2) % 4;
                let moved = self.table.get(from);
                self.table.set(free, moved);
                (free, node) = (from, parent);
            }
            return Some(free);
        }
        None
    }
}

/// Nodes of a search tree of two levels below the roots, and of five.
const NEAR: usize = 2 + 8 + 32;
const FAR: usize = NEAR + 128 + 512 + 2048;

/// The other bucket that a fingerprint may stand in: `bucket` plus it is `t` modulo the number of
/// buckets.
#[inline(always)]
fn alternate(bucket: u64, fingerprint: u64, buckets: u64) -> u64 {
    let spread = fingerprint.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let t = 2 * fastrange(spread, buckets / 2).0 + 1;
    if t >= bucket {
        t - bucket
    } else {
        t + buckets - bucket
    }
}

/// The most buckets for fingerprints of a width: a hash of 64 bits must give both, with 8 bits to
/// spare.
fn most_buckets(bits: u32) -> u64 {
    1 << (56 - bits)
}

/// The load to which a table is filled without fear of a refusal: 95 %, and less where
/// fingerprints are few.
///
/// A fingerprint leads to one of 2^bits − 1 other buckets. When these are few for the size of the
/// table, moves run in circles. Loads at the first refusal, the worst of several tables of 2²⁰
/// buckets: 0.79 with 4 bits, 0.90 with 5, 0.93 with 6, 0.948 with 7, 0.959 with 8, 0.964 with 9,
/// 0.971 with 12; about 0.005 less for every four times the buckets.
fn safe_load(keys: u64, bits: u32) -> f64 {
    let at_a_million_buckets = match bits {
        ..=4 => 0.74,
        5 => 0.86,
        6 => 0.91,
        7 => 0.935,
        8 => 0.95,
        _ => 0.96,
    };
    let doublings = (keys as f64 / WAYS as f64).log2() - 20.0;
    (at_a_million_buckets - 0.0025 * doublings.max(0.0)).min(0.95)
}

/// Buckets for a number of keys: enough that all of them fit, almost surely (see the test of
/// small filters).
fn buckets_for(keys: u64, bits: u32) -> f64 {
    let load = safe_load(keys, bits);
    let keys = keys as f64;
    2.0 * ((keys / load + 3.0 * keys.sqrt().min(40.0)) / (2 * WAYS) as f64)
        .ceil()
        .max(1.0)
}

/// The table, for looking up.
#[derive(Clone, Copy)]
struct Reader<'a> {
    table: View<'a>,
    buckets: u64,
}

impl Reader<'_> {
    /// First bucket and fingerprint of a hash: this filter's geometry, with [`alternate`].
    #[inline(always)]
    fn first(self, hash: u64) -> (u64, u64) {
        let (bucket, rest) = fastrange(hash, self.buckets);
        (bucket, 1 + fastrange(rest, low_mask(self.table.width())).0)
    }

    /// A word that is not 0 when the bucket holds the fingerprint, and whose lowest set bit lies
    /// in the first slot that does.
    ///
    /// Subtracting 1 from every slot of (bucket ⊕ fingerprint) borrows through the top bit of a
    /// slot that was 0; a slot above a 0 may be marked wrongly, the lowest never.
    #[inline(always)]
    fn matches(self, bucket: u64, fingerprint: u64) -> u64 {
        let f = self.table.width();
        if f <= WORD_BITS {
            let ones = 1 | 1 << f | 1 << (2 * f) | 1 << (3 * f);
            let x = self.table.word(bucket * WAYS) ^ fingerprint.wrapping_mul(ones);
            return x.wrapping_sub(ones) & !x & ones << (f - 1);
        }
        (0..WAYS).fold(0, |found, i| {
            found
                | u64::from(self.table.get(bucket * WAYS + i) == fingerprint)
                    << (u64::from(WORD_BITS) * i)
        })
    }
}

impl Ring for Reader<'_> {
    /// Both buckets, and the fingerprint.
    type Place = ([u64; 2], u64);
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        self.table.size_in_bytes()
    }

    #[inline(always)]
    fn place(self, hash: u64) -> ([u64; 2], u64) {
        let (bucket, fingerprint) = self.first(hash);
        let other = alternate(bucket, fingerprint, self.buckets);
        ([bucket, other], fingerprint)
    }

    #[inline(always)]
    fn prefetch(self, (buckets, _): ([u64; 2], u64)) {
        for bucket in buckets {
            self.table.prefetch(bucket * WAYS);
        }
    }

    #[inline(always)]
    fn probe<B: Bits>(self, _: B, ([bucket, other], fingerprint): ([u64; 2], u64)) -> bool {
        self.matches(bucket, fingerprint) | self.matches(other, fingerprint) != 0
    }
}

impl Filter for Cuckoo {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        lookup::probe(self.reader(), hash)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.table.size_in_bytes()
    }

    /// The share of pairs of bucket and fingerprint that are answered yes, counted: exact for
    /// what the table holds, copies and all. Of a large table a part is counted, to find how many
    /// fingerprints stand more than once in their buckets.
    fn fpr(&self) -> f64 {
        let step = self.buckets.div_ceil(COUNTED) as usize;
        let (mut yes, mut held) = (0u64, 0u64);
        for bucket in (0..self.buckets).step_by(step) {
            for slot in bucket * WAYS..(bucket + 1) * WAYS {
                let fingerprint = self.table.get(slot);
                if fingerprint == 0 {
                    continue;
                }
                held += 1;
                if self.find(bucket, fingerprint) != Some(slot) {
                    continue;
                }
                // A fingerprint answers for both its buckets; one that stands in both is counted
                // from either.
                let other = self.alternate(bucket, fingerprint);
                yes += 2 - u64::from(self.matches(other, fingerprint) != 0);
            }
        }
        let pairs_per_key = if held == 0 {
            2.0
        } else {
            yes as f64 / held as f64
        };
        (pairs_per_key * self.len as f64 / (self.buckets as f64 * low_mask(self.bits()) as f64))
            .min(1.0)
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        // For insertions, which branch on what is there.
        let reader = self.reader();
        for bucket in reader.place(hash).0 {
            reader.table.prefetch_near(bucket * WAYS);
        }
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::ring(Some(self.reader()), hashes, out);
    }
}

impl Insert for Cuckoo {
    #[inline(always)]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let (bucket, fingerprint) = self.place(hash);
        self.insert_at(bucket, fingerprint)
    }
}

impl Remove for Cuckoo {
    fn remove(&mut self, hash: u64) -> bool {
        let (bucket, fingerprint) = self.place(hash);
        let other = self.alternate(bucket, fingerprint);
        let Some(slot) = self
            .find(bucket, fingerprint)
            .or_else(|| self.find(other, fingerprint))
        else {
            return false;
        };
        self.table.set(slot, 0);
        self.len -= 1;
        true
    }
}

impl Count for Cuckoo {
    fn count(&self, hash: u64) -> u64 {
        let (bucket, fingerprint) = self.place(hash);
        self.count_in(bucket, fingerprint)
            + self.count_in(self.alternate(bucket, fingerprint), fingerprint)
    }
}

impl Merge for Cuckoo {
    /// Inserts every fingerprint of the other. Copies of a key add up, to eight at most.
    fn merge(&mut self, other: &Cuckoo) -> Result<(), MergeError> {
        MergeError::unless_equal("buckets", self.buckets, other.buckets)?;
        MergeError::unless_equal("bits", u64::from(self.bits()), u64::from(other.bits()))?;
        let mut union = self.clone();
        for slot in 0..other.slots() {
            let fingerprint = other.table.get(slot);
            if fingerprint != 0 {
                union
                    .insert_at(slot / WAYS, fingerprint)
                    .map_err(MergeErrorKind::Full)?;
            }
        }
        *self = union;
        Ok(())
    }
}

impl Kind for Cuckoo {
    const ABOUT: &'static str = "remove keys and count copies; below 0.4 % smaller than Bloom";
    const PARAMS: &'static [Param] = &[Param {
        name: option::BITS.name,
        values: "4 to 32",
        default: "the fewest for the rate",
        about: "bits of a fingerprint: more make the rate lower",
    }];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Cuckoo, BuildError> {
        let (keys, fpr) = config.check::<Cuckoo>(hashes)?;
        let needed = math::cuckoo_fingerprint_bits(fpr);
        let least = math::cuckoo_fpr(*BITS.end() as u32, 1.0);
        let bits = config.bits::<Cuckoo>(BITS, needed, least)?;
        // One small table in a million refuses a key; the next size takes it.
        let mut room = keys;
        loop {
            let (needed, most) = (buckets_for(room, bits), most_buckets(bits));
            if needed > most as f64 {
                return Err(BuildErrorKind::TooLarge {
                    unit: "buckets",
                    needed,
                    most,
                }
                .into());
            }
            let mut filter = Cuckoo::with_shape(needed as u64, bits)?;
            match filter.insert_batch(hashes) {
                Err(full) if full.kind() == FullKind::Capacity && room < 2 * keys => {
                    room += keys / 20 + 4;
                }
                result => return result.map(|()| filter).map_err(BuildError::from),
            }
        }
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("buckets", self.buckets);
        out.param("bits", u64::from(self.bits()));
        self.table.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Cuckoo, DecodeError> {
        let buckets = input.param("buckets")?;
        let bits = input.param_in("bits", BITS)? as u32;
        if !buckets.is_multiple_of(2) || !(2..=most_buckets(bits)).contains(&buckets) {
            let expected = format!("an even number from 2 to {}", most_buckets(bits));
            return Err(DecodeError::invalid("buckets", buckets, expected));
        }
        let filter = Cuckoo {
            table: Packed::decode(input, "table", buckets * WAYS, bits)?,
            buckets,
            len: input.len(),
        };
        let used = filter.table.iter().filter(|&f| f != 0).count() as u64;
        if used != filter.len {
            return Err(DecodeError::invalid(
                "keys",
                filter.len,
                format!("{used}, the slots in use"),
            ));
        }
        Ok(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    #[test]
    fn the_alternate_bucket_leads_back_and_differs_at_every_size() {
        for buckets in [
            2u64,
            4,
            6,
            10,
            1000,
            3 << 29,
            (1 << 31) - 2,
            (1 << 31) + 2,
            1 << 32,
            (1 << 34) + 6,
            1 << 45,
        ] {
            for i in 0..10_000 {
                let bucket = fastrange(mix64(i), buckets).0;
                let fingerprint = 1 + mix64(!i) % 0xffff_ffff;
                let other = alternate(bucket, fingerprint, buckets);
                assert!(other < buckets && other != bucket, "{buckets} buckets");
                assert_eq!(
                    alternate(other, fingerprint, buckets),
                    bucket,
                    "{buckets} buckets"
                );
            }
        }
    }

    #[test]
    fn every_width_stores_and_finds_every_slot() {
        for bits in 4..=32 {
            let mut filter = Cuckoo::with_shape(6, bits).unwrap();
            let value = |slot: u64| 1 + mix64(slot) % low_mask(bits);
            for slot in 0..filter.slots() {
                filter.table.set(slot, value(slot));
            }
            for slot in 0..filter.slots() {
                assert_eq!(
                    filter.table.get(slot),
                    value(slot),
                    "{bits} bits, slot {slot}"
                );
                let first = (slot / 4 * 4..slot + 1).find(|&s| value(s) == value(slot));
                assert_eq!(
                    filter.find(slot / 4, value(slot)),
                    first,
                    "{bits} bits, slot {slot}"
                );
            }
            for bucket in 0..filter.buckets {
                for fingerprint in 1..=low_mask(bits.min(10)) {
                    let held = (0..4).any(|s| filter.table.get(bucket * 4 + s) == fingerprint);
                    assert_eq!(filter.matches(bucket, fingerprint) != 0, held);
                }
            }
        }
    }

    #[test]
    fn every_width_puts_a_fingerprint_into_the_first_free_slot_and_touches_no_other() {
        for bits in 4..=32 {
            let mut filter = Cuckoo::with_shape(6, bits).unwrap();
            let mut model = vec![0; filter.slots() as usize];
            for step in 0..2000 {
                let draw = mix64(step << 8 | u64::from(bits));
                let (bucket, slot) = (draw % 6, draw >> 16 & 3);
                let first_free = (4 * bucket..4 * bucket + 4).find(|&s| model[s as usize] == 0);
                if draw >> 8 & 1 == 0 {
                    let fingerprint = 1 + (draw >> 20) % low_mask(bits);
                    assert_eq!(filter.put(bucket, fingerprint), first_free.is_some());
                    first_free.inspect(|&slot| model[slot as usize] = fingerprint);
                } else {
                    filter.table.set(4 * bucket + slot, 0);
                    model[(4 * bucket + slot) as usize] = 0;
                }
                assert!(filter.table.iter().eq(model.iter().copied()), "{bits} bits");
            }
        }
    }

    #[test]
    fn the_ninth_copy_is_refused_as_a_duplicate_and_changes_nothing() {
        let key = mix64(1000);
        let mut filter = Cuckoo::build(&Config::new(1000), &mut []).unwrap();
        for i in 0..100 {
            filter.insert(mix64(i)).unwrap();
        }
        for copies in 1..=8 {
            filter.insert(key).unwrap();
            assert_eq!(filter.count(key), copies);
        }
        let before: Vec<u64> = filter.table.iter().collect();
        let full = filter.insert(key).unwrap_err();
        assert_eq!(full.kind(), FullKind::Duplicates(8));
        assert_eq!(full.keys(), 108);
        assert!(filter.table.iter().eq(before));
        assert!((0..8).all(|_| filter.remove(key)));
        assert!(!filter.remove(key) && (0..100).all(|i| filter.contains(mix64(i))));
    }

    #[test]
    fn tables_fill_past_95_per_cent_before_the_first_refusal() {
        for (buckets, bits) in [(1 << 12, 12), (5000, 8), (1 << 15, 16), (300_002, 8)] {
            let mut filter = Cuckoo::with_shape(buckets, bits).unwrap();
            let inserted = (0..)
                .take_while(|&i| filter.insert(mix64(i)).is_ok())
                .count() as u64;
            assert!(
                filter.load() > 0.95,
                "{buckets} buckets, {bits} bits: {}",
                filter.load()
            );
            assert!((0..inserted).all(|i| filter.contains(mix64(i))));
        }
    }

    #[test]
    fn the_declared_capacity_is_reached_by_small_filters() {
        // No failure in a million filters bounds the probability by 2.1e-5 at α = 1e-9.
        let mut seed = 0u64;
        for (keys, filters) in [
            (1u64, 1000u64),
            (8, 300_000),
            (9, 200_000),
            (14, 200_000),
            (20, 100_000),
            (40, 100_000),
            (100, 50_000),
            (200, 40_000),
            (500, 5_000),
            (1000, 4_000),
            (4000, 1000),
        ] {
            let buckets = buckets_for(keys, 10) as u64;
            for _ in 0..filters {
                let mut filter = Cuckoo::with_shape(buckets, 10).unwrap();
                for _ in 0..keys {
                    seed += 1;
                    assert!(
                        filter.insert(mix64(seed)).is_ok(),
                        "{} of {keys} keys in {buckets} buckets",
                        filter.len
                    );
                }
            }
        }
    }

    #[test]
    fn high_rates_used_to_make_tables_that_could_not_be_filled() {
        // A rate of 50 % takes 4 bits; filled to 95 % such tables refused keys from 83 % of their
        // capacity on.
        for bits in 4..=9 {
            for (keys, sets) in [(1000, 200), (20_000, 20), (1_000_000, 2)] {
                for set in 0..sets {
                    let mut hashes: Vec<u64> = (0..keys).map(|i| mix64(set << 40 | i)).collect();
                    let config = Config::new(keys).fpr(0.9).set("bits", bits);
                    let filter = Cuckoo::build(&config, &mut hashes);
                    assert!(filter.is_ok(), "{keys} keys, {bits} bits: {filter:?}");
                }
            }
        }
    }

    #[test]
    fn the_rate_used_to_count_copies_of_a_key_as_keys() {
        // Five keys twice: one fingerprint each, however often it is held.
        let config = Config::new(1000).fpr(0.03);
        let once = Cuckoo::build(&config, &mut [1, 2, 3, 4, 5].map(mix64)).unwrap();
        let twice = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5];
        let twice = Cuckoo::build(&config, &mut twice.map(mix64)).unwrap();
        assert_eq!(once.fpr(), 10.0 / (once.buckets as f64 * 255.0));
        assert_eq!(twice.fpr(), once.fpr());
    }

    #[test]
    fn the_rate_of_a_part_is_that_of_the_table() {
        let keys = 1_500_000;
        let mut hashes: Vec<u64> = (0..keys).map(mix64).collect();
        let filter = Cuckoo::build(&Config::new(keys), &mut hashes).unwrap();
        assert!(filter.buckets > COUNTED);
        let formula = math::cuckoo_fpr(filter.bits(), filter.load());
        assert!((filter.fpr() / formula - 1.0).abs() < 0.01);
    }

    #[test]
    fn sizes_are_those_of_the_formula() {
        // spec: 10.53 bits/key at 1 %, 11.58 at 0.39 %, 12.63 at 0.19 %.
        for (fpr, bits_per_key) in [(0.01, 10.53), (1.0 / 256.0, 11.58), (0.0019, 12.63)] {
            let filter = Cuckoo::build(&Config::new(1_000_000).fpr(fpr), &mut []).unwrap();
            let got = filter.slots() as f64 * f64::from(filter.bits()) / 1e6;
            assert!((got / bits_per_key - 1.0).abs() < 0.001, "{got} at {fpr}");
        }
    }

    #[test]
    fn a_large_table_with_few_keys_used_to_state_a_rate_of_nothing() {
        let mut filter = Cuckoo::build(&Config::new(3_000_000), &mut [u64::MAX - 5]).unwrap();
        let one = filter.fpr();
        assert!(one > 0.0);
        filter.insert(12_345).unwrap();
        assert!(
            (filter.fpr() / one - 2.0).abs() < 1e-9,
            "{one} of one, {} of two",
            filter.fpr()
        );
    }
}
