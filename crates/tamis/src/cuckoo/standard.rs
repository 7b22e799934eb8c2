//! The cuckoo filter: fingerprints in a table, two buckets of four slots for each key, and a way
//! to remove.
//!
//! The essay is at [`Cuckoo`].

use super::{Nest, WAYS, make_room, semi_sorted};
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
/// whatever is often said (below, with a bit less); what it adds is removal.
///
/// # Semi-sorted buckets
///
/// The order of the fingerprints in a bucket tells nothing, so that it need not be stored. With
/// `semi_sort=1` they are sorted by their low four bits, and in place of these sixteen bits the
/// bucket has the number of the sorted four among all there are, C(19, 4) = 3876, in twelve:
///
/// ```text
///   four fingerprints, sorted     2│1    0│4    3│4    1│9      high part │ low four bits
///                                          ↓
///   1, 4, 4, 9 is number 526          001 000 001 110          twelve bits for sixteen
///                                          ↓
///   four slots of f − 1 bits     2│110  0│001  3│000  1│001    high part │ a quarter of the number
/// ```
///
/// Rate and answers are those of the plain filter, in (f − 1)/0.95 bits per key: 9.47 at 1 %, where
/// it has 10.53 and Bloom's 9.59. With fingerprints of any fraction of a bit this would be smaller
/// than Bloom's below 2.7 %, as is claimed. They have whole bits, so it is at the rates that it
/// gives from 1.48 % down, 8.42 bits for 8.77; of the rates that one may ask for, at 1 % but not at
/// 0.7 %, and at all below 0.63 %.
///
/// A lookup compares the high parts first, and takes the number apart only where one agrees. A
/// change sorts the bucket again. A bucket has one form, so that a file has, too.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `bits` | 4 to 32 | the fewest for the rate | bits of a fingerprint: more make the rate lower |
/// | `semi_sort` | 0 or 1 | 0 | 1: sorted buckets, a bit a slot less, for slower changes and lookups |
///
/// # When to choose it
///
/// When keys must be removed, or counted up to eight. For a set that only grows take
/// [`SplitBlock512`](crate::SplitBlock512); for a fixed one [`BinaryFuse8`](crate::BinaryFuse8).
///
/// # Bibliography
///
/// - Fan, Andersen, Kaminsky, Mitzenmacher, *Cuckoo filter: practically better than Bloom*, 2014:
///   partial-key cuckoo hashing, how full it gets, and semi-sorting.
/// - Breslow, Jayasena, *Morton filters*, 2018: an alternate bucket for tables that are not a
///   power of two.
/// - Dietzfelbinger, Weidling, *Balanced allocation and dictionaries with tightly packed constant
///   size bins*, 2007: buckets of several slots, and breadth-first insertion.
#[derive(Clone, Debug)]
pub struct Cuckoo {
    /// The fingerprints, four to a bucket; where buckets are semi-sorted, coded in a bit less each.
    table: Packed,
    buckets: u64,
    len: u64,
    semi_sorted: bool,
}

/// Widths of a fingerprint. Below 4 a table cannot be filled; above 32 no rate that a 64-bit hash
/// can promise needs it.
const BITS: std::ops::RangeInclusive<u64> = 4..=32;
/// Buckets that the rate is counted from.
const COUNTED: u64 = 1 << 18;
/// Buckets of slots of up to this width are read and written as one word.
const WORD_BITS: u32 = 16;

impl Cuckoo {
    /// Bits of a fingerprint.
    pub fn fingerprint_bits(&self) -> u32 {
        self.bits()
    }

    #[inline(always)]
    fn bits(&self) -> u32 {
        self.table.width() + u32::from(self.semi_sorted)
    }

    /// Whether buckets are semi-sorted: a slot has one bit less than a fingerprint.
    pub fn is_semi_sorted(&self) -> bool {
        self.semi_sorted
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

    fn with_shape(buckets: u64, bits: u32, semi_sorted: bool) -> Result<Cuckoo, BuildError> {
        Ok(Cuckoo {
            table: Packed::zeroed(buckets * WAYS, bits - u32::from(semi_sorted))?,
            buckets,
            len: 0,
            semi_sorted,
        })
    }

    /// For looking up; `SORTED` is whether buckets are semi-sorted, so that each loop of lookups
    /// is compiled for one of the two forms.
    #[inline(always)]
    fn reader<const SORTED: bool>(&self) -> Reader<'_, SORTED> {
        debug_assert_eq!(SORTED, self.semi_sorted);
        Reader {
            table: self.table.view(),
            buckets: self.buckets,
        }
    }

    /// First bucket and fingerprint of a hash.
    #[inline(always)]
    fn place(&self, hash: u64) -> (u64, u64) {
        first(hash, self.buckets, self.bits())
    }

    /// The other bucket that a fingerprint may stand in.
    #[inline(always)]
    fn alternate(&self, bucket: u64, fingerprint: u64) -> u64 {
        alternate(bucket, fingerprint, self.buckets)
    }

    /// See [`Reader::matches`].
    #[inline(always)]
    fn matches(&self, bucket: u64, fingerprint: u64) -> u64 {
        if self.semi_sorted {
            return self.matches_semi_sorted(bucket, fingerprint);
        }
        self.reader::<false>().matches(bucket, fingerprint)
    }

    /// Out of line, as [`set_semi_sorted`](Self::set_semi_sorted) is, so that changes of plain
    /// filters are compiled as if there were no others.
    #[inline(never)]
    fn matches_semi_sorted(&self, bucket: u64, fingerprint: u64) -> u64 {
        self.reader::<true>().matches(bucket, fingerprint)
    }

    /// What stands in the four slots of a bucket.
    fn fingerprints(&self, bucket: u64) -> [u64; 4] {
        if self.semi_sorted {
            self.reader::<true>().fingerprints(bucket)
        } else {
            self.reader::<false>().fingerprints(bucket)
        }
    }

    /// The first slot of a bucket that holds the fingerprint; 0 asks for a free slot.
    #[inline(always)]
    fn find(&self, bucket: u64, fingerprint: u64) -> Option<u64> {
        let found = self.matches(bucket, fingerprint);
        let slot = bucket * WAYS + u64::from(found.trailing_zeros() / self.bits().min(WORD_BITS));
        (found != 0).then_some(slot)
    }

    fn count_in(&self, bucket: u64, fingerprint: u64) -> u64 {
        let held = self.fingerprints(bucket);
        held.iter().filter(|&&held| held == fingerprint).count() as u64
    }

    #[inline(always)]
    fn get(&self, slot: u64) -> u64 {
        if !self.semi_sorted {
            return self.table.get(slot);
        }
        self.fingerprints(slot / WAYS)[(slot % WAYS) as usize]
    }

    /// Puts a fingerprint into a slot, in place of what stood there. In a semi-sorted bucket the
    /// others may change slots with it.
    #[inline(always)]
    fn set(&mut self, slot: u64, fingerprint: u64) {
        if self.semi_sorted {
            return self.set_semi_sorted(slot, fingerprint);
        }
        self.table.set(slot, fingerprint);
    }

    #[inline(never)]
    fn set_semi_sorted(&mut self, slot: u64, fingerprint: u64) {
        let bucket = slot / WAYS;
        let mut held = self.fingerprints(bucket);
        held[(slot % WAYS) as usize] = fingerprint;
        for (slot, coded) in (bucket * WAYS..).zip(semi_sorted::slots(held)) {
            self.table.set(slot, coded);
        }
    }

    /// Puts a fingerprint into one of its buckets, moving others out of the way.
    fn insert_at(&mut self, bucket: u64, fingerprint: u64) -> Result<(), Full> {
        let other = self.alternate(bucket, fingerprint);
        if !self.put(bucket, fingerprint) && !self.put(other, fingerprint) {
            let roots = [bucket, other];
            let copies = |filter: &Cuckoo| {
                roots
                    .map(|root| filter.count_in(root, fingerprint))
                    .iter()
                    .sum()
            };
            let slot = make_room(self, roots, copies);
            let slot = slot.map_err(|kind| Full::new(kind, self.len))?;
            self.set(slot, fingerprint);
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
        if self.semi_sorted || bits > WORD_BITS {
            let slot = self.find(bucket, 0);
            slot.inspect(|&slot| self.set(slot, fingerprint));
            return slot.is_some();
        }
        let free = self.matches(bucket, 0);
        if free != 0 {
            let slot = free.trailing_zeros() + 1 - bits;
            self.table.put(bucket * WAYS, fingerprint << slot);
        }
        free != 0
    }
}

impl Cuckoo {
    /// Refuses semi-sorted buckets that are not written as these fingerprints would be.
    fn check_buckets(&self) -> Result<(), DecodeError> {
        for bucket in 0..self.buckets {
            let slots = [0, 1, 2, 3].map(|i| self.table.get(bucket * WAYS + i));
            let code = semi_sorted::code_in(slots);
            if code >= semi_sorted::CODES {
                let expected = format!("below {}", semi_sorted::CODES);
                return Err(DecodeError::invalid("a bucket's code", code, expected));
            }
            if semi_sorted::slots(self.fingerprints(bucket)) != slots {
                let expected = "one whose fingerprints of equal low bits ascend";
                return Err(DecodeError::invalid("bucket", bucket, expected));
            }
        }
        Ok(())
    }
}

impl Nest for Cuckoo {
    #[inline(always)]
    fn free_slot(&self, bucket: u64) -> Option<u64> {
        self.find(bucket, 0)
    }

    #[inline(always)]
    fn other_bucket(&self, slot: u64) -> u64 {
        self.alternate(slot / WAYS, self.get(slot))
    }

    #[inline(always)]
    fn copy(&mut self, from: u64, to: u64) {
        self.set(to, self.get(from));
    }
}

/// First bucket and fingerprint of a hash: this filter's geometry, with [`alternate`].
#[inline(always)]
fn first(hash: u64, buckets: u64, bits: u32) -> (u64, u64) {
    let (bucket, rest) = fastrange(hash, buckets);
    (bucket, 1 + fastrange(rest, low_mask(bits)).0)
}

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
pub(super) fn buckets_for(keys: u64, bits: u32) -> f64 {
    let load = safe_load(keys, bits);
    let keys = keys as f64;
    2.0 * ((keys / load + 3.0 * keys.sqrt().min(40.0)) / (2 * WAYS) as f64)
        .ceil()
        .max(1.0)
}

/// The fingerprint bits that a configuration asks for, of this filter or the adaptive one.
pub(super) fn bits_of(config: &Config, fpr: f64) -> Result<u32, BuildError> {
    let least = math::cuckoo_fpr(*BITS.end() as u32, 1.0);
    config.bits::<Cuckoo>(BITS, math::cuckoo_fingerprint_bits(fpr), least)
}

/// The table, for looking up.
#[derive(Clone, Copy)]
struct Reader<'a, const SORTED: bool> {
    table: View<'a>,
    buckets: u64,
}

/// One in each of four lanes of a width.
#[inline(always)]
fn four_ones(width: u32) -> u64 {
    1 | 1 << width | 1 << (2 * width) | 1 << (3 * width)
}

/// A word that is not 0 when one of four lanes of a width is, and whose lowest set bit is the top
/// bit of the first that is.
///
/// Subtracting 1 from every lane borrows through the top bit of a lane that was 0; a lane above a
/// 0 may be marked wrongly, the lowest never.
#[inline(always)]
pub(super) fn zero_lanes(x: u64, ones: u64, width: u32) -> u64 {
    x.wrapping_sub(ones) & !x & ones << (width - 1)
}

impl<const SORTED: bool> Reader<'_, SORTED> {
    #[inline(always)]
    fn bits(self) -> u32 {
        self.table.width() + u32::from(SORTED)
    }

    /// What stands in the four slots of a bucket.
    #[inline(always)]
    fn fingerprints(self, bucket: u64) -> [u64; 4] {
        let (first, width) = (bucket * WAYS, self.table.width());
        let slots = if width <= WORD_BITS {
            let (word, mask) = (self.table.word(first), low_mask(width));
            [0, width, 2 * width, 3 * width].map(|shift| word >> shift & mask)
        } else {
            [first, first + 1, first + 2, first + 3].map(|slot| self.table.get(slot))
        };
        if SORTED {
            semi_sorted::fingerprints(slots)
        } else {
            slots
        }
    }

    /// A word that is not 0 when the bucket holds the fingerprint, and whose lowest set bit lies
    /// in the first slot that does.
    #[inline(always)]
    fn matches(self, bucket: u64, fingerprint: u64) -> u64 {
        let f = self.bits();
        if !SORTED && f <= WORD_BITS {
            let ones = four_ones(f);
            let x = self.table.word(bucket * WAYS) ^ fingerprint.wrapping_mul(ones);
            return zero_lanes(x, ones, f);
        }
        let held = self.fingerprints(bucket);
        let lane = f.min(WORD_BITS);
        (0..4).fold(0, |found, i| {
            found | u64::from(held[i as usize] == fingerprint) << (lane * i)
        })
    }

    /// Whether a bucket whose slots are one word may hold the fingerprint.
    #[inline(always)]
    fn may_hold(self, bucket: u64, fingerprint: u64) -> bool {
        let width = self.table.width();
        let word = self.table.word(bucket * WAYS);
        semi_sorted::has_high_part(word, four_ones(width), width, fingerprint)
    }
}

impl<const SORTED: bool> Ring for Reader<'_, SORTED> {
    /// Both buckets, and the fingerprint.
    type Place = ([u64; 2], u64);
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        self.table.size_in_bytes()
    }

    #[inline(always)]
    fn place(self, hash: u64) -> ([u64; 2], u64) {
        let (bucket, fingerprint) = first(hash, self.buckets, self.bits());
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
        if SORTED
            && self.table.width() <= WORD_BITS
            && !(self.may_hold(bucket, fingerprint) | self.may_hold(other, fingerprint))
        {
            return false;
        }
        self.matches(bucket, fingerprint) | self.matches(other, fingerprint) != 0
    }
}

impl Filter for Cuckoo {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        if self.semi_sorted {
            lookup::probe(self.reader::<true>(), hash)
        } else {
            lookup::probe(self.reader::<false>(), hash)
        }
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
            let fingerprints = self.fingerprints(bucket);
            for (i, &fingerprint) in fingerprints.iter().enumerate() {
                if fingerprint == 0 {
                    continue;
                }
                held += 1;
                if fingerprints[..i].contains(&fingerprint) {
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
        let (bucket, fingerprint) = self.place(hash);
        let table = self.table.view();
        table.prefetch_near(bucket * WAYS);
        table.prefetch_near(self.alternate(bucket, fingerprint) * WAYS);
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        if self.semi_sorted {
            lookup::ring(Some(self.reader::<true>()), hashes, out);
        } else {
            lookup::ring(Some(self.reader::<false>()), hashes, out);
        }
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
        self.set(slot, 0);
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
        let semi_sort = |filter: &Cuckoo| u64::from(filter.semi_sorted);
        MergeError::unless_equal(option::SEMI_SORT.name, semi_sort(self), semi_sort(other))?;
        let mut union = self.clone();
        for bucket in 0..other.buckets {
            for fingerprint in other.fingerprints(bucket) {
                if fingerprint != 0 {
                    union
                        .insert_at(bucket, fingerprint)
                        .map_err(MergeErrorKind::Full)?;
                }
            }
        }
        *self = union;
        Ok(())
    }
}

impl Kind for Cuckoo {
    const ABOUT: &'static str = "remove keys and count copies; below 0.4 % smaller than Bloom";
    const PARAMS: &'static [Param] = &[
        Param {
            name: option::BITS.name,
            values: "4 to 32",
            default: "the fewest for the rate",
            about: "bits of a fingerprint: more make the rate lower",
        },
        Param {
            name: option::SEMI_SORT.name,
            values: "0 or 1",
            default: "0",
            about: "1: sorted buckets, a bit a slot less, for slower changes and lookups",
        },
    ];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Cuckoo, BuildError> {
        let (keys, fpr) = config.check::<Cuckoo>(hashes)?;
        let bits = bits_of(config, fpr)?;
        let semi_sorted = match config.param::<u32>(option::SEMI_SORT.name, "0 or 1")? {
            None | Some(0) => false,
            Some(1) => true,
            Some(other) => {
                let name = option::SEMI_SORT.name;
                return Err(BuildError::parameter(name, other, "0 or 1"));
            }
        };
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
            let mut filter = Cuckoo::with_shape(needed as u64, bits, semi_sorted)?;
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
        // A plain filter has two parameters: a reader that knows no others refuses this one.
        if self.semi_sorted {
            out.param(option::SEMI_SORT.name, 1u64);
        }
        self.table.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Cuckoo, DecodeError> {
        let buckets = input.param("buckets")?;
        let bits = input.param_in("bits", BITS)? as u32;
        let semi_sorted = input.has_param();
        if semi_sorted {
            input.param_in(option::SEMI_SORT.name, 1..=1)?;
        }
        if !buckets.is_multiple_of(2) || !(2..=most_buckets(bits)).contains(&buckets) {
            let expected = format!("an even number from 2 to {}", most_buckets(bits));
            return Err(DecodeError::invalid("buckets", buckets, expected));
        }
        let width = bits - u32::from(semi_sorted);
        let filter = Cuckoo {
            table: Packed::decode(input, "table", buckets * WAYS, width)?,
            buckets,
            len: input.len(),
            semi_sorted,
        };
        if semi_sorted {
            filter.check_buckets()?;
        }
        let held = (0..buckets).flat_map(|bucket| filter.fingerprints(bucket));
        let used = held.filter(|&fingerprint| fingerprint != 0).count() as u64;
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
mod tests;
