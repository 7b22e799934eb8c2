//! Rank-indexed hashing: chains without pointers, found by counting ones.
//!
//! The essay is at [`RankIndexed`].

use crate::bits::{fastrange, low_mask};
use crate::buf::Buf;
use crate::config::{Config, Param};
use crate::error::{
    BuildError, BuildErrorKind, DecodeError, Full, FullKind, MergeError, MergeErrorKind,
};
use crate::filter::{Count, Filter, Insert, Kind, Merge, Remove};
use crate::format::{Decoder, Encoder};
use crate::option;
use crate::{math, simd};

/// Rank-indexed hashing: insert, remove, count, merge.
///
/// ```
/// use tamis::{Config, Keyed, RankIndexed};
///
/// let mut online: Keyed<RankIndexed> = Keyed::new(&Config::new(1000).fpr(0.01))?;
/// online.insert("alice")?;
/// assert!(online.contains("alice"));
/// assert!(online.remove("alice"));
/// assert!(!online.contains("alice"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///   hash ──► bucket, chain (one of 64), fingerprint of r bits
///
///   index   0 1 1 0 0 1 0 …          one bit a chain: it has a first item
///             │ │     │
///   marks     0 1     1  │ 1 0 │ 0   one bit an item: its chain has another
///             │ │     │    │ │   │
///   items     a b     d  │ c e │ f   fingerprints, level by level
///            ╰─ level 1 ─╯╰─ 2 ─╯╰ 3
///
///   chain 1 is a; chain 2 is b, c, f; chain 5 is d, e
///   ranks in level 1: chain 1 → 0, 2 → 1, 5 → 2; in level 2: chain 2 → 0, 5 → 1
/// ```
///
/// A hash table with chains spends most of its memory on pointers. Here the items of a bucket lie
/// without gaps: first the first items of all chains that have one, then all second items, and so
/// on. Where an item of a chain lies follows from how many chains before it reach its level, the
/// rank of a bit among ones, which is one `popcnt`: no level is longer than a word. One bit a
/// chain and one bit an item is all that the structure costs.
///
/// A key is present when its fingerprint stands in its chain. A new item goes to the end of its
/// chain and the items after it move up; to remove one, the last of its chain takes its place.
///
/// # Banks
///
/// With 64 chains and as many keys in the mean, a bucket that must not overflow would have to
/// hold 105 items: the slack costs four bits a key. So up to 64 buckets make a bank and share its
/// slots, lying one after another without gaps; a bank of 4096 keys in the mean needs only 9 %
/// more.
///
/// ```text
///   one bank   │ index         │ ends           │ marks         │ items          │
///              │ 64 bits       │ 16 bits: where │ a bit a slot  │ r bits a slot  │
///              │ a bucket      │ a bucket ends  │               │                │
/// ```
///
/// Of at most 4096 keys there is one bank, with exactly as many slots. A larger filter gives each
/// bank so many that a refusal below capacity has a probability of one in a million.
///
/// # Cost
///
/// At capacity there is one key a chain: the rate is 1 − e^(−2^−r), 0.39 % at 8 bits, and the
/// bits per key are 1 + ¼ + 9 % more than r + 1: 11.1 at 0.39 %, 10.0 at 0.78 % (what a rate of 1
/// % gives, as r is whole). A lookup of an absent key ends in 37 % of cases with the index, one
/// line; otherwise it reads three more in the same bank. An insertion moves half a bank in the
/// mean, 2 KiB at 8 bits.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `bits` | 1 to 32 | the fewest for the rate | bits of a fingerprint: more make the rate lower |
///
/// # When to choose it
///
/// When keys come and go, space counts and lookups outnumber changes by far.
/// [`TinySetRemovable`](crate::TinySetRemovable) is smaller and faster to change, as it keeps a
/// chain in one cache line.
///
/// # Bibliography
///
/// - Hua, Zhao, Lin, Xu, *Rank-indexed hashing: a compact construction of Bloom filters and
///   variants*, 2008: levels, ranks and marks. How buckets share their slots is this library's
///   own.
/// - Jacobson, *Space-efficient static trees and graphs*, 1989: rank instead of pointers.
#[derive(Clone, Debug)]
pub struct RankIndexed {
    /// The banks, one after another.
    words: Buf<u64>,
    banks: u64,
    shape: Shape,
    len: u64,
}

/// Chains of a bucket, and bits of its index.
const CHAINS: u64 = 64;
/// The most buckets of a bank.
const MOST_BUCKETS: u64 = 64;
/// The most slots of a bank: ends are numbers of 16 bits.
const MOST_SLOTS: u64 = (1 << 16) - 1;
/// Widths of a fingerprint.
const BITS: std::ops::RangeInclusive<u64> = 1..=32;
/// The chance that a filter refuses a key before it holds as many as it was made for.
const REFUSAL: f64 = 1e-6;

/// What is the same for all banks of a filter.
#[derive(Clone, Copy, Debug)]
struct Shape {
    buckets: u64,
    slots: u64,
    /// Bits of a fingerprint.
    bits: u32,
}

impl Shape {
    /// Words of a bank before its marks: the index and the ends.
    #[inline]
    fn marks_at(self) -> usize {
        (self.buckets + self.buckets.div_ceil(4)) as usize
    }

    /// Words of a bank before its items.
    #[inline]
    fn items_at(self) -> usize {
        self.marks_at() + self.slots.div_ceil(64) as usize
    }

    /// Words of a bank.
    #[inline]
    fn words(self) -> usize {
        self.items_at() + (self.slots * u64::from(self.bits)).div_ceil(64) as usize
    }

    /// The slot after the last of a bucket.
    #[inline]
    fn end(self, bank: &[u64], bucket: u64) -> u64 {
        bank[(self.buckets + bucket / 4) as usize] >> (bucket % 4 * 16) & 0xffff
    }

    /// The slots of a bucket.
    #[inline]
    fn slots_of(self, bank: &[u64], bucket: u64) -> std::ops::Range<u64> {
        let start = match bucket {
            0 => 0,
            _ => self.end(bank, bucket - 1),
        };
        start..self.end(bank, bucket)
    }

    /// The first level of a bucket, as a chain sees it.
    #[inline]
    fn first(self, bank: &[u64], bucket: u64, chain: u64) -> Level {
        let start = self.slots_of(bank, bucket).start;
        Level::of(bank[bucket as usize], start, chain as u32)
    }

    /// The level after one, as the same chain sees it.
    #[inline]
    fn next(self, bank: &[u64], level: Level) -> Level {
        let marks = read(&bank[self.marks_at()..], level.start, level.len);
        Level::of(marks, level.start + u64::from(level.len), level.rank)
    }

    #[inline]
    fn item(self, bank: &[u64], slot: u64) -> u64 {
        read(
            &bank[self.items_at()..],
            slot * u64::from(self.bits),
            self.bits,
        )
    }

    /// The levels in which a chain has items.
    #[inline]
    fn levels(self, bank: &[u64], bucket: u64, chain: u64) -> impl Iterator<Item = Level> {
        let first = self.first(bank, bucket, chain);
        std::iter::successors(Some(first), move |&level| Some(self.next(bank, level)))
            .take_while(|level| level.reached)
    }

    /// The items of a chain.
    #[inline]
    fn items(self, bank: &[u64], bucket: u64, chain: u64) -> impl Iterator<Item = u64> {
        let levels = self.levels(bank, bucket, chain);
        levels.map(move |level| self.item(bank, level.slot()))
    }

    /// Adds to the ends of a bucket and those after it.
    fn move_ends(self, bank: &mut [u64], bucket: u64, by: i64) {
        for bucket in bucket..self.buckets {
            let word = &mut bank[(self.buckets + bucket / 4) as usize];
            let shift = bucket % 4 * 16;
            let end = (*word >> shift & 0xffff).wrapping_add_signed(by);
            *word = *word & !(0xffff << shift) | end << shift;
        }
    }

    /// Flips the bit that says whether a chain goes on: after an item's slot, or from the index.
    fn mark(self, bank: &mut [u64], bucket: u64, chain: u64, after: Option<u64>) {
        match after {
            None => bank[bucket as usize] ^= 1 << chain,
            Some(slot) => bank[self.marks_at() + (slot / 64) as usize] ^= 1 << (slot % 64),
        }
    }

    /// Marks and items of a bank.
    fn parts(self, bank: &mut [u64]) -> (&mut [u64], &mut [u64]) {
        let marks = self.items_at() - self.marks_at();
        bank[self.marks_at()..].split_at_mut(marks)
    }

    /// Adds an item to the end of its chain; `None`, with nothing changed, where the bank is
    /// full.
    fn insert(self, bank: &mut [u64], bucket: u64, chain: u64, item: u64) -> Option<()> {
        let used = self.end(bank, self.buckets - 1);
        if used == self.slots {
            return None;
        }
        let mut last = None;
        let mut level = self.first(bank, bucket, chain);
        while level.reached {
            last = Some(level.slot());
            level = self.next(bank, level);
        }
        self.mark(bank, bucket, chain, last);
        let (marks, items) = self.parts(bank);
        let (slot, bits) = (level.slot(), u64::from(self.bits));
        open(marks, slot, 1, 0, used);
        open(items, slot * bits, self.bits, item, used * bits);
        self.move_ends(bank, bucket, 1);
        Some(())
    }

    /// Removes an item from its chain; `None` where it is not there.
    fn remove(self, bank: &mut [u64], bucket: u64, chain: u64, item: u64) -> Option<()> {
        let (mut hole, mut before_last, mut last) = (None, None, None);
        for level in self.levels(bank, bucket, chain) {
            let slot = level.slot();
            (before_last, last) = (last, Some(slot));
            if hole.is_none() && self.item(bank, slot) == item {
                hole = last;
            }
        }
        let (hole, last) = (hole?, last?);
        let moved = self.item(bank, last);
        let used = self.end(bank, self.buckets - 1);
        self.mark(bank, bucket, chain, before_last);
        let (marks, items) = self.parts(bank);
        let bits = u64::from(self.bits);
        write(items, hole * bits, self.bits, moved);
        close(marks, last, 1, used);
        close(items, last * bits, self.bits, used * bits);
        self.move_ends(bank, bucket, -1);
        Some(())
    }

    /// All items of a bank: bucket, chain, fingerprint.
    fn all(self, bank: &[u64]) -> impl Iterator<Item = (u64, u64, u64)> {
        (0..self.buckets * CHAINS).flat_map(move |i| {
            let (bucket, chain) = (i / CHAINS, i % CHAINS);
            let items = self.items(bank, bucket, chain);
            items.map(move |item| (bucket, chain, item))
        })
    }

    /// What is wrong with a bank that was read.
    fn fault(self, bank: &[u64]) -> Option<&'static str> {
        let mut end = 0;
        for bucket in 0..self.buckets {
            let slots = self.slots_of(bank, bucket);
            if slots.start != end || slots.end < end || slots.end > self.slots {
                return Some("buckets that follow one another in the slots of their bank");
            }
            end = slots.end;
            // As a chain sees them or not, the levels are the same.
            let mut level = self.first(bank, bucket, 0);
            while level.len > 0 && level.start + u64::from(level.len) <= slots.end {
                level = self.next(bank, level);
            }
            if level.len > 0 || level.start != slots.end {
                return Some("marks that make as many items as their bucket has");
            }
        }
        let ends = self.buckets.div_ceil(4) * 4;
        let mut beyond = (self.buckets..ends).map(|bucket| self.end(bank, bucket));
        let (marks, items) = bank[self.marks_at()..].split_at(self.items_at() - self.marks_at());
        let clear = zero_from(marks, end) && zero_from(items, end * u64::from(self.bits));
        let clear = clear && beyond.all(|end| end == 0);
        (!clear).then_some("zeros where no slot is in use")
    }
}

/// A level of a bucket, and what a chain has in it.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// Its first slot.
    start: u64,
    /// Its slots, which are no more than chains.
    len: u32,
    /// The items of chains before this one.
    rank: u32,
    /// Whether the chain has an item here.
    reached: bool,
}

impl Level {
    /// The level that bits of the level before say of, as the chain with the given bit sees it.
    #[inline]
    fn of(bits: u64, start: u64, bit: u32) -> Level {
        Level {
            start,
            len: bits.count_ones(),
            rank: (bits & low_mask(bit)).count_ones(),
            reached: bits.unbounded_shr(bit) & 1 != 0,
        }
    }

    /// The slot of the chain's item, or where it would go.
    #[inline]
    fn slot(self) -> u64 {
        self.start + u64::from(self.rank)
    }
}

/// Up to 64 bits of an array.
#[inline]
fn read(words: &[u64], at: u64, bits: u32) -> u64 {
    let (word, shift) = ((at / 64) as usize, (at % 64) as u32);
    let low = words.get(word).copied().unwrap_or(0) >> shift;
    let high = match shift {
        0 => 0,
        _ => words.get(word + 1).copied().unwrap_or(0) << (64 - shift),
    };
    (low | high) & low_mask(bits)
}

/// Overwrites bits of an array, fewer than 64.
fn write(words: &mut [u64], at: u64, bits: u32, value: u64) {
    let (word, shift) = ((at / 64) as usize, (at % 64) as u32);
    words[word] = words[word] & !(low_mask(bits) << shift) | value << shift;
    if shift + bits > 64 {
        let (mask, high) = (low_mask(bits) >> (64 - shift), value >> (64 - shift));
        words[word + 1] = words[word + 1] & !mask | high;
    }
}

/// Moves the bits from `at` to `end` up by fewer than 64 and writes a value into the gap. Bits
/// from `end` on are 0.
fn open(words: &mut [u64], at: u64, bits: u32, value: u64, end: u64) {
    let first = (at / 64) as usize;
    let last = ((end + u64::from(bits) - 1) / 64) as usize;
    let kept = words[first] & low_mask((at % 64) as u32);
    words[first] ^= kept;
    for i in (first + 1..=last).rev() {
        words[i] = words[i] << bits | words[i - 1] >> (64 - bits);
    }
    words[first] = words[first] << bits | kept;
    write(words, at, bits, value);
}

/// Takes out fewer than 64 bits and moves those up to `end` down.
fn close(words: &mut [u64], at: u64, bits: u32, end: u64) {
    let (first, last) = ((at / 64) as usize, ((end - 1) / 64) as usize);
    let low = low_mask((at % 64) as u32);
    let kept = words[first] & low;
    for i in first..last {
        words[i] = words[i] >> bits | words[i + 1] << (64 - bits);
    }
    words[last] >>= bits;
    words[first] = words[first] & !low | kept;
}

/// Whether no bit is set from one on.
fn zero_from(words: &[u64], at: u64) -> bool {
    let (whole, shift) = ((at / 64) as usize, at % 64);
    let rest = words.get(whole..).unwrap_or(&[]);
    rest.first().is_none_or(|word| word >> shift == 0) && rest.iter().skip(1).all(|&word| word == 0)
}

impl RankIndexed {
    /// Bits of a fingerprint.
    pub fn fingerprint_bits(&self) -> u32 {
        self.shape.bits
    }

    /// Chains of the filter; at capacity there is a key for each.
    pub fn chains(&self) -> u64 {
        self.banks * self.shape.buckets * CHAINS
    }

    /// Bank, bucket, chain and fingerprint of a hash: this filter's geometry.
    #[inline]
    fn place(&self, hash: u64) -> (u64, u64, u64, u64) {
        let (chain, rest) = fastrange(hash, self.chains());
        let bucket = chain / CHAINS;
        let (bank, bucket) = (bucket / self.shape.buckets, bucket % self.shape.buckets);
        (bank, bucket, chain % CHAINS, rest >> (64 - self.shape.bits))
    }

    #[inline]
    fn bank(&self, bank: u64) -> &[u64] {
        let words = self.shape.words();
        &self.words[bank as usize * words..][..words]
    }

    fn banks(&self) -> impl Iterator<Item = &[u64]> {
        self.words.chunks_exact(self.shape.words())
    }

    fn bank_mut(&mut self, bank: u64) -> &mut [u64] {
        let words = self.shape.words();
        &mut self.words.make_mut()[bank as usize * words..][..words]
    }

    /// The whole fingerprints of all items, copies and all, in the order of their chains; see
    /// [`whole_fingerprint`].
    pub(crate) fn whole_fingerprints(&self) -> impl Iterator<Item = u64> {
        let shape = self.shape;
        (0..).zip(self.banks()).flat_map(move |(number, bank)| {
            let items = shape.all(bank);
            items.map(move |(bucket, chain, item)| {
                let chain = (number * shape.buckets + bucket) * CHAINS + chain;
                chain << shape.bits | item
            })
        })
    }

    /// How many items differ in chain or fingerprint.
    pub(crate) fn distinct(&self) -> u64 {
        let shape = self.shape;
        let mut distinct = 0;
        let mut chain = Vec::new();
        for bank in self.banks() {
            for i in 0..shape.buckets * CHAINS {
                chain.clear();
                chain.extend(shape.items(bank, i / CHAINS, i % CHAINS));
                chain.sort_unstable();
                chain.dedup();
                distinct += chain.len() as u64;
            }
        }
        distinct
    }

    /// An empty filter for so many keys, with fingerprints of so many bits, 1 to 32.
    pub(crate) fn with_bits(keys: u64, bits: u32) -> Result<RankIndexed, BuildError> {
        let keys = keys.max(1);
        // Whole buckets round up, by less than a bucket for each bank.
        let needed = keys as f64 * (1.0 + 1.0 / MOST_BUCKETS as f64);
        if needed > most_chains(bits) as f64 {
            return Err(BuildErrorKind::TooLarge {
                unit: "chains",
                needed,
                most: most_chains(bits),
            }
            .into());
        }
        let (banks, buckets) = banks_for(keys);
        let mean = keys as f64 / banks as f64;
        let slots = match banks {
            1 => Some(keys),
            _ => math::bucket_capacity(mean, REFUSAL / banks as f64),
        };
        let shape = Shape {
            buckets,
            slots: slots.unwrap_or(MOST_SLOTS).min(MOST_SLOTS),
            bits,
        };
        Ok(RankIndexed {
            words: Buf::zeroed(banks * shape.words() as u64)?,
            banks,
            shape,
            len: 0,
        })
    }

    /// Reads what `encode` wrote, with as many keys as there are items.
    pub(crate) fn read(input: &mut Decoder<'_>) -> Result<RankIndexed, DecodeError> {
        let banks = input.param("banks")?;
        let buckets = input.param_in("buckets", 1..=MOST_BUCKETS)?;
        let slots = input.param_in("slots", 1..=MOST_SLOTS)?;
        let bits = input.param_in("bits", BITS)? as u32;
        let most = most_chains(bits) / (buckets * CHAINS);
        if !(1..=most).contains(&banks) {
            let expected = format!("1 to {most}");
            return Err(DecodeError::invalid("banks", banks, expected));
        }
        let shape = Shape {
            buckets,
            slots,
            bits,
        };
        // Below 2⁵⁶ banks of chains, and a bank has at most 2¹⁶ words: read as a length that no
        // file has.
        let words = banks.checked_mul(shape.words() as u64);
        let too_many = || DecodeError::invalid("banks", banks, "fewer, for so many slots");
        let mut filter = RankIndexed {
            words: input.section("banks", words.ok_or_else(too_many)?)?,
            banks,
            shape,
            len: 0,
        };
        let mut held = 0;
        for (number, bank) in (0..).zip(filter.banks()) {
            if let Some(expected) = shape.fault(bank) {
                return Err(DecodeError::invalid("bank", number, expected));
            }
            held += shape.end(bank, buckets - 1);
        }
        filter.len = held;
        Ok(filter)
    }

    /// Whether a chain of a bank's bucket has the item.
    #[inline]
    fn holds(&self, (bank, bucket, chain, item): (u64, u64, u64, u64)) -> bool {
        let (bank, shape) = (self.bank(bank), self.shape);
        // Where the index says no, the ends need not be read.
        if bank[bucket as usize] >> chain & 1 == 0 {
            return false;
        }
        for other in shape.items(bank, bucket, chain) {
            if other == item {
                return true;
            }
        }
        false
    }

    fn insert_at(&mut self, bank: u64, bucket: u64, chain: u64, item: u64) -> Result<(), Full> {
        let (shape, len) = (self.shape, self.len);
        let inserted = shape.insert(self.bank_mut(bank), bucket, chain, item);
        inserted.ok_or(Full::new(FullKind::Capacity, len))?;
        self.len += 1;
        Ok(())
    }
}

/// Banks of a filter for so many keys, at least 1, and buckets of a bank.
fn banks_for(keys: u64) -> (u64, u64) {
    let banks = keys.div_ceil(MOST_BUCKETS * CHAINS);
    (banks, keys.div_ceil(banks * CHAINS))
}

/// Chains of a filter for so many keys, at least 1: as many, in whole buckets.
pub(crate) fn chains_for(keys: u64) -> u64 {
    let (banks, buckets) = banks_for(keys);
    (banks * buckets).saturating_mul(CHAINS)
}

/// Chain and fingerprint of a hash as one number, the chain above the fingerprint's bits: all
/// that a filter of so many chains keeps of a key. It is below `chains · 2^bits`, and the hash's
/// leading part: larger hashes have no smaller one.
#[inline]
pub(crate) fn whole_fingerprint(hash: u64, chains: u64, bits: u32) -> u64 {
    let (chain, rest) = fastrange(hash, chains);
    chain << bits | rest >> (64 - bits)
}

/// The most chains for fingerprints of a width: a hash of 64 bits must give both, with 8 bits to
/// spare.
pub(crate) fn most_chains(bits: u32) -> u64 {
    1 << (56 - bits)
}

impl Filter for RankIndexed {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.holds(self.place(hash))
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.words.size_in_bytes()
    }

    /// The share of pairs of chain and fingerprint that are held: exact for what the filter
    /// holds, copies and all.
    fn fpr(&self) -> f64 {
        self.distinct() as f64 / (self.chains() as f64 * 2f64.powi(self.shape.bits as i32))
    }

    /// Where the bucket begins is known only from its bank; this prefetches where it would begin
    /// if the bank were filled evenly.
    #[inline]
    fn prefetch(&self, hash: u64) {
        let (bank, bucket, ..) = self.place(hash);
        let (words, shape) = (self.bank(bank), self.shape);
        let slot = (bucket * CHAINS + CHAINS / 2).min(shape.slots);
        simd::prefetch(words, bucket as usize);
        simd::prefetch(words, (shape.buckets + bucket / 4) as usize);
        simd::prefetch(words, shape.marks_at() + (slot / 64) as usize);
        let item = slot * u64::from(shape.bits) / 64;
        simd::prefetch(words, shape.items_at() + item as usize);
    }
}

impl Insert for RankIndexed {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let (bank, bucket, chain, item) = self.place(hash);
        self.insert_at(bank, bucket, chain, item)
    }
}

impl Remove for RankIndexed {
    fn remove(&mut self, hash: u64) -> bool {
        let (bank, bucket, chain, item) = self.place(hash);
        let shape = self.shape;
        let removed = shape.remove(self.bank_mut(bank), bucket, chain, item);
        self.len -= u64::from(removed.is_some());
        removed.is_some()
    }
}

impl Count for RankIndexed {
    fn count(&self, hash: u64) -> u64 {
        let (bank, bucket, chain, item) = self.place(hash);
        let items = self.shape.items(self.bank(bank), bucket, chain);
        items.filter(|&other| other == item).count() as u64
    }
}

impl RankIndexed {
    /// Inserts what another holds, also of what is held already where `COPIES`.
    fn take_in<const COPIES: bool>(&mut self, other: &RankIndexed) -> Result<(), MergeError> {
        let (ours, theirs) = (self.shape, other.shape);
        MergeError::unless_equal("banks", self.banks, other.banks)?;
        MergeError::unless_equal("buckets", ours.buckets, theirs.buckets)?;
        MergeError::unless_equal("slots", ours.slots, theirs.slots)?;
        MergeError::unless_equal("bits", u64::from(ours.bits), u64::from(theirs.bits))?;
        let mut union = self.clone();
        for (number, bank) in (0..).zip(other.banks()) {
            for (bucket, chain, item) in theirs.all(bank) {
                if COPIES || !union.holds((number, bucket, chain, item)) {
                    let inserted = union.insert_at(number, bucket, chain, item);
                    inserted.map_err(MergeErrorKind::Full)?;
                }
            }
        }
        *self = union;
        Ok(())
    }

    /// A merge of sets: what both hold is held once.
    pub(super) fn unite(&mut self, other: &RankIndexed) -> Result<(), MergeError> {
        self.take_in::<false>(other)
    }
}

impl Merge for RankIndexed {
    /// Inserts every fingerprint of the other. Copies of a key add up.
    fn merge(&mut self, other: &RankIndexed) -> Result<(), MergeError> {
        self.take_in::<true>(other)
    }
}

impl Kind for RankIndexed {
    const ABOUT: &'static str =
        "keys come and go, seldom; little space, and chains found by counting ones";
    const PARAMS: &'static [Param] = &[Param {
        name: option::BITS.name,
        values: "1 to 32",
        default: "the fewest for the rate",
        about: "bits of a fingerprint: more make the rate lower",
    }];

    fn build(config: &Config, hashes: &mut [u64]) -> Result<RankIndexed, BuildError> {
        let (keys, fpr) = config.check::<RankIndexed>(hashes)?;
        let needed = math::chain_remainder_bits(fpr, 1.0);
        let least = math::chain_fpr(1.0, *BITS.end() as u32);
        let bits = config.bits::<RankIndexed>(BITS, needed, least)?;
        let mut filter = RankIndexed::with_bits(keys, bits)?;
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("banks", self.banks);
        out.param("buckets", self.shape.buckets);
        out.param("slots", self.shape.slots);
        out.param("bits", u64::from(self.shape.bits));
        out.section(&self.words);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<RankIndexed, DecodeError> {
        let filter = RankIndexed::read(input)?;
        if filter.len != input.len() {
            let expected = format!("{}, the slots in use", filter.len);
            return Err(DecodeError::invalid("keys", input.len(), expected));
        }
        Ok(filter)
    }
}

#[cfg(test)]
mod tests;
