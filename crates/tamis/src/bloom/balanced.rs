//! The balanced Bloom filter: blocks of one cache line that take a certain number of keys, and an
//! exact list of the rest.
//!
//! The essay is at [`Balanced`].

use crate::bits::{fastrange, mix64};
use crate::bloom::blocked::{BLOCK_BITS, MOST_BLOCKS, MOST_K, WORDS, bits_of, block_of};
use crate::bloom::split_block::floor;
use crate::buf::Buf;
use crate::config::Config;
use crate::error::{BuildError, BuildErrorKind, DecodeError, Full, FullKind, NoMemory};
use crate::filter::{Filter, Insert, Kind};
use crate::format::{Decoder, Encoder};
use crate::packed::Packed;
use crate::{math, simd};

/// A blocked Bloom filter whose blocks take so many keys and no more; the others are in a list.
/// Insert.
///
/// ```
/// use tamis::{Balanced, Config, Keyed};
///
/// let ids: Keyed<Balanced> = Keyed::build(&Config::default().fpr(0.01), 0..10_000u64)?;
/// assert!((0..10_000u64).all(|id| ids.contains(&id)));
/// assert!(ids.filter().listed() < 100);
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// # The idea
///
/// ```text
///   hash ──► block ──► fewer than `cap` keys in it?  yes ──► k bits of the block, as in `blocked`
///                                                     no ──► the list
///
///   blocks   ┌── 512 bits ──┬── 512 bits ──┬── 512 bits ──┐
///            └──────────────┴──────────────┴──────────────┘
///   counts          51             63⁺            47         keys of each;
///                                                            ⁺ some more are in the list
///   list     ┌──────┬──────┬──────┬──────┐
///            │ hash │      │ hash │ hash │      whole 64-bit hashes, open addressing
///            └──────┴──────┴──────┴──────┘
/// ```
///
/// A blocked filter errs mostly in the blocks that happen to hold the most keys. Here a block
/// takes `cap` keys at most, and the few that come later are kept exactly, so that the full
/// blocks err no more. A lookup tests the bits of the block; only where one is missing and the
/// count says that keys of this block went to the list is the list asked.
///
/// # Insert
///
/// A key goes to its block while that has room, and then to the list, unless it is found already.
/// While there is room a key that is found is counted as any other: left out, it would leave its
/// place to a key that sets new bits, and full blocks would be fuller than the formula allows.
/// The list grows in steps of a quarter, to no more than twice what is expected and a reserve for
/// small filters; beyond that the insertion is refused, and nothing has changed. The counts must
/// be kept for as long as keys arrive, and are part of the file. They and the list are counted in
/// every size.
///
/// # Does it pay?
///
/// In software nearly never. Half a per cent of the keys in the list makes the blocks smaller by
/// 0.8 % at 1 % (9.84 bits/key against 9.92), 1.1 % at 2⁻⁸ (12.00) and 1.5 % at 0.1 % (15.32).
/// But a hash in a list that is filled to 80 % at most takes 80 bits and more, 0.4 for each key
/// of the filter, and the counts take 0.13. All told it is larger than
/// [`Blocked`](crate::Blocked) at each of these rates, and the test beside it says so. With the
/// best share for the list, and counts that are thrown away when the last key is in, it would
/// break even near 0.1 %. The figures in the paper are for hardware in which the list is a small
/// associative memory that is there anyway.
///
/// # When to choose it
///
/// To study it, or where the rate of every single block must have a bound: no block errs more
/// than `cap` keys make it. Otherwise take [`Blocked`](crate::Blocked).
///
/// Two filters cannot be merged: the union of two blocks may hold more keys than `cap`.
///
/// # Bibliography
///
/// - Kanizo, Hay, Keslassy, *Access-efficient balanced Bloom filters*, 2013: the cap, the list,
///   and how large it gets.
#[derive(Clone, Debug)]
pub struct Balanced {
    words: Buf<u64>,
    /// Keys of each block; `cap + 1` where more are in the list.
    counts: Packed,
    list: List,
    /// The most hashes that the list may hold.
    most: u64,
    k: u32,
    cap: u32,
    len: u64,
}

/// The share of keys that the list is sized for.
const OVERFLOW: f64 = 0.005;
/// Room in the list of a filter too small for shares: the overflow of a few blocks varies by a
/// few dozen keys.
const RESERVE: f64 = 48.0;
/// More than the list of the largest filter holds.
const MOST_LISTED: u64 = 1 << 36;
/// More keys than a block of 512 bits tells apart.
const MOST_CAP: u32 = 512;

impl Balanced {
    /// The blocks, eight words each.
    #[inline]
    pub fn blocks(&self) -> &[[u64; WORDS]] {
        self.words.as_chunks().0
    }

    /// How many bits a key sets.
    pub fn k(&self) -> u32 {
        self.k
    }

    /// How many keys a block takes.
    pub fn cap(&self) -> u32 {
        self.cap
    }

    /// How many hashes are in the list.
    pub fn listed(&self) -> u64 {
        self.list.len
    }

    /// Whether the bits of a hash are set in its block.
    #[inline]
    fn is_set(&self, hash: u64, block: usize) -> bool {
        let block = &self.blocks()[block];
        let both = |all, (word, bit): (usize, u32)| all & block[word] >> bit;
        bits_of(hash, self.k).fold(1, both) == 1
    }

    /// Whether keys of a block are in the list.
    #[inline]
    fn overflows(&self, block: usize) -> bool {
        self.counts.get(block as u64) > u64::from(self.cap)
    }

    fn place(&self, hash: u64) -> usize {
        block_of(hash, self.blocks().len())
    }
}

/// Bits of a count.
fn count_bits(cap: u32) -> u32 {
    u32::BITS - (cap + 1).leading_zeros()
}

/// A set of hashes: open addressing, linear probing, at least a fifth of the slots free.
#[derive(Clone, Debug)]
struct List {
    /// 0 is free; hash 0 is kept as 1, which differs from it once in 2⁶⁴.
    slots: Buf<u64>,
    len: u64,
}

impl List {
    fn empty() -> Result<List, NoMemory> {
        Ok(List {
            slots: Buf::zeroed(0)?,
            len: 0,
        })
    }

    /// The slots of a list of so many hashes.
    fn slots_for(len: u64) -> u64 {
        let mut slots = 0;
        while len > slots / 5 * 4 {
            slots += (slots / 20 + 2) * 5;
        }
        slots
    }

    /// Where a hash is looked for first.
    fn home(&self, hash: u64) -> usize {
        fastrange(mix64(hash), self.slots.len() as u64).0 as usize
    }

    /// The slot of a hash, or the free one where its search ends; there is one, unless there are
    /// no slots.
    fn find(&self, hash: u64) -> usize {
        let mut at = self.home(hash);
        while self.slots[at] != 0 && self.slots[at] != hash {
            at = if at + 1 == self.slots.len() {
                0
            } else {
                at + 1
            };
        }
        at
    }

    #[cold]
    fn contains(&self, hash: u64) -> bool {
        let hash = hash.max(1);
        self.len > 0 && self.slots[self.find(hash)] == hash
    }

    /// Adds a hash that is not in.
    fn add(&mut self, hash: u64) -> Result<(), NoMemory> {
        let slots = List::slots_for(self.len + 1);
        if slots > self.slots.len() as u64 {
            let mut larger = List {
                slots: Buf::zeroed(slots)?,
                len: 0,
            };
            for &old in self.slots.iter().filter(|&&hash| hash != 0) {
                larger.put(old);
            }
            *self = larger;
        }
        self.put(hash.max(1));
        Ok(())
    }

    fn put(&mut self, hash: u64) {
        let at = self.find(hash);
        self.slots.make_mut()[at] = hash;
        self.len += 1;
    }

    /// Whether every hash stands where a search for it ends, in one pass whatever the slots hold.
    fn is_in_order(&self) -> bool {
        let n = self.slots.len();
        let Some(free) = self.slots.iter().position(|&hash| hash == 0) else {
            return n == 0;
        };
        // From a free slot once around: a hash may stand from its home on, and no free slot may
        // lie between.
        let mut since_free = 0;
        (1..=n).map(|i| (free + i) % n).all(|at| {
            let hash = self.slots[at];
            if hash == 0 {
                since_free = 0;
                return true;
            }
            let from_home = (at + n - self.home(hash)) % n;
            since_free += 1;
            from_home < since_free
        })
    }
}

impl Filter for Balanced {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let block = self.place(hash);
        self.is_set(hash, block) || self.overflows(block) && self.list.contains(hash)
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.words.size_in_bytes() + self.counts.size_in_bytes() + self.list.slots.size_in_bytes()
    }

    /// The mean over blocks of fill^k, and the chance of a hash whose block and low half are a
    /// member's. The list adds what equal hashes are: less than anything here.
    fn fpr(&self) -> f64 {
        let blocks = self.blocks();
        let block_fpr = |block: &[u64; WORDS]| {
            let ones: u32 = block.iter().map(|word| word.count_ones()).sum();
            (f64::from(ones) / f64::from(BLOCK_BITS)).powi(self.k as i32)
        };
        let fill = blocks.iter().map(block_fpr).sum::<f64>() / blocks.len() as f64;
        fill + (1.0 - fill) * floor(self.len as f64 / blocks.len() as f64).min(1.0)
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        let block = self.place(hash);
        simd::prefetch(self.blocks(), block);
        self.counts.prefetch(block as u64);
    }
}

impl Insert for Balanced {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let block = self.place(hash);
        let count = self.counts.get(block as u64);
        if count < u64::from(self.cap) {
            let words = &mut self.words.make_mut().as_chunks_mut::<WORDS>().0[block];
            for (word, bit) in bits_of(hash, self.k) {
                words[word] |= 1 << bit;
            }
            self.counts.set(block as u64, count + 1);
        } else if !self.is_set(hash, block) && !self.list.contains(hash) {
            let full = Full::new(FullKind::Capacity, self.len);
            if self.list.len >= self.most {
                return Err(full);
            }
            self.list.add(hash).map_err(|_| full)?;
            self.counts.set(block as u64, u64::from(self.cap) + 1);
        }
        self.len = self.len.saturating_add(1);
        Ok(())
    }
}

impl Kind for Balanced {
    const ABOUT: &'static str =
        "a bound on the error of every block, at the price of a list of keys";

    fn build(config: &Config, hashes: &mut [u64]) -> Result<Balanced, BuildError> {
        let (keys, _) = config.check::<Balanced>(hashes)?;
        let keys = keys.max(1) as f64;
        let (blocks, k, cap) = config.sized::<Balanced, _>(|fpr| {
            let (bits_per_key, k, cap) = math::balanced_size(fpr, BLOCK_BITS, OVERFLOW)?;
            let blocks = (keys * bits_per_key / f64::from(BLOCK_BITS)).ceil();
            // Beyond this the low half of the hash decides more of the rate than sizing allows
            // for.
            let least = 16.0 * floor(keys / blocks);
            let reached = fpr >= least || blocks > MOST_BLOCKS as f64;
            (reached && cap <= MOST_CAP).then_some((blocks, k, cap))
        })?;
        if blocks > MOST_BLOCKS as f64 {
            let (unit, needed, most) = ("blocks", blocks, MOST_BLOCKS);
            return Err(BuildErrorKind::TooLarge { unit, needed, most }.into());
        }
        let mut filter = Balanced {
            words: Buf::zeroed(blocks as u64 * WORDS as u64)?,
            counts: Packed::zeroed(blocks as u64, count_bits(cap))?,
            list: List::empty()?,
            most: (2.0 * OVERFLOW * keys + RESERVE) as u64,
            k,
            cap,
            len: 0,
        };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("blocks", self.blocks().len() as u64);
        out.param("k", u64::from(self.k));
        out.param("cap", u64::from(self.cap));
        out.param("most", self.most);
        out.param("listed", self.list.len);
        out.section(&self.words);
        self.counts.encode(out);
        out.section(&self.list.slots);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Balanced, DecodeError> {
        let blocks = input.param_in("blocks", 1..=MOST_BLOCKS)?;
        let k = input.param_in("k", 1..=u64::from(MOST_K))? as u32;
        let cap = input.param_in("cap", 1..=u64::from(MOST_CAP))? as u32;
        let most = input.param_in("most", 0..=MOST_LISTED)?;
        let listed = input.param_in("listed", 0..=most)?;
        let filter = Balanced {
            words: input.section("words", blocks * WORDS as u64)?,
            counts: Packed::decode(input, "counts", blocks, count_bits(cap))?,
            list: List {
                slots: input.section("list", List::slots_for(listed))?,
                len: listed,
            },
            most,
            k,
            cap,
            len: input.len(),
        };
        filter.check_blocks()?;
        filter.check_list()?;
        Ok(filter)
    }
}

/// What a file must hold to be one that was written.
impl Balanced {
    fn check_blocks(&self) -> Result<(), DecodeError> {
        let mut counted = 0;
        for (block, count) in self.blocks().iter().zip(self.counts.iter()) {
            if count > u64::from(self.cap) + 1 {
                let expected = format!("at most cap + 1, {}", self.cap + 1);
                return Err(DecodeError::invalid("count", count, expected));
            }
            let keys = count.min(u64::from(self.cap));
            let ones = block.iter().map(|w| u64::from(w.count_ones())).sum::<u64>();
            if ones > keys * u64::from(self.k) || (ones == 0) != (keys == 0) {
                let expected = format!("as many as {keys} keys set");
                return Err(DecodeError::invalid("ones of a block", ones, expected));
            }
            counted += keys;
        }
        if counted + self.list.len > self.len {
            let expected = format!("at least {}, counted and listed", counted + self.list.len);
            return Err(DecodeError::invalid("keys", self.len, expected));
        }
        Ok(())
    }

    fn check_list(&self) -> Result<(), DecodeError> {
        let held = self.list.slots.iter().copied().filter(|&hash| hash != 0);
        let mut hashes: Vec<u64> = held.collect();
        let count = hashes.len() as u64;
        if count != self.list.len {
            let expected = format!("{count}, the slots in use");
            return Err(DecodeError::invalid("listed", self.list.len, expected));
        }
        if !self.list.is_in_order() {
            let expected = "hashes where a search finds them";
            return Err(DecodeError::invalid("list", count, expected));
        }
        hashes.sort_unstable();
        let distinct = hashes.windows(2).all(|pair| pair[0] != pair[1]);
        // Blocks follow one another as hashes do.
        let mut blocks: Vec<usize> = hashes.iter().map(|&hash| self.place(hash)).collect();
        blocks.dedup();
        let marked = (0..self.blocks().len()).filter(|&block| self.overflows(block));
        if !distinct || !marked.eq(blocks) {
            let expected = "each hash once, of blocks whose counts say so";
            return Err(DecodeError::invalid("list", count, expected));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(keys: u64, fpr: f64) -> Balanced {
        let mut hashes: Vec<u64> = (0..keys).map(mix64).collect();
        Balanced::build(&Config::new(keys).fpr(fpr), &mut hashes).unwrap()
    }

    #[test]
    fn sizes_and_rates_are_those_of_the_formula() {
        // Targets at 1 %: 9.811 bits/key of blocks, cap 63, k = 6, 0.47 % ± 0.1 % of the keys in
        // the list.
        let (keys, queries) = (1_000_000, 4_000_000);
        for (fpr, target) in [(0.01, 9.811), (1.0 / 256.0, 11.959), (0.001, 15.254)] {
            let filter = of(keys, fpr);
            let bits = (filter.blocks().len() * 512) as f64 / keys as f64;
            assert!((bits / target - 1.0).abs() < 0.005, "{bits}");
            if fpr == 0.01 {
                assert_eq!((filter.k(), filter.cap()), (6, 63));
            }
            let overflow = filter.listed() as f64 / keys as f64;
            assert!((0.0037..0.0057).contains(&overflow), "{overflow}");
            let exact = math::balanced_fpr(bits, BLOCK_BITS, filter.k, filter.cap);
            assert!(exact <= fpr && exact > 0.98 * fpr, "{exact}");
            let absent = (0..queries).map(|i| mix64(1 << 40 | i));
            let hits = absent.filter(|&hash| filter.contains(hash)).count() as u64;
            let (low, high) = math::binomial_interval(queries, exact, 1e-9);
            assert!((low..=high).contains(&hits), "{fpr}: {hits}");
        }
    }

    #[test]
    fn all_told_it_is_larger_than_plain_blocks() {
        for fpr in [0.01, 1.0 / 256.0, 0.001] {
            let keys = 300_000;
            let mut hashes: Vec<u64> = (0..keys).map(mix64).collect();
            let plain = crate::Blocked::build(&Config::new(keys).fpr(fpr), &mut hashes).unwrap();
            let ratio = of(keys, fpr).size_in_bytes() as f64 / plain.size_in_bytes() as f64;
            assert!((1.0..1.08).contains(&ratio), "{fpr}: {ratio}");
        }
    }

    #[test]
    fn a_list_finds_what_it_holds_at_every_size() {
        let mut list = List::empty().unwrap();
        for i in 0..3000u64 {
            let hash = mix64(i); // 0 at first
            assert!(!list.contains(hash));
            list.add(hash).unwrap();
            assert!(list.contains(hash) && list.is_in_order());
            assert_eq!(list.slots.len() as u64, List::slots_for(i + 1));
            assert!((i + 1) * 5 <= list.slots.len() as u64 * 4);
        }
        assert!((0..3000).all(|i| list.contains(mix64(i))));
        assert!((3000..10_000).all(|i| !list.contains(mix64(i))));
    }

    #[test]
    fn a_list_out_of_order_is_seen() {
        let mut list = List::empty().unwrap();
        (0..40).for_each(|i| list.add(mix64(i)).unwrap());
        let n = list.slots.len();
        let mut seen = 0;
        for at in 0..n {
            for to in 0..n {
                let mut moved = list.clone();
                moved.slots.make_mut().swap(at, to);
                let held = list.slots.iter().filter(|&&hash| hash != 0);
                let found = held.clone().all(|&hash| moved.contains(hash));
                assert_eq!(moved.is_in_order(), found, "{at} and {to} exchanged");
                seen += usize::from(!found);
            }
        }
        assert!(seen > 100);
        list.slots.make_mut().fill(1);
        assert!(!list.is_in_order(), "no slot is free");
    }

    #[test]
    fn copies_of_a_key_set_no_bit_and_are_not_listed() {
        let mut filter = of(1000, 0.01);
        let (words, listed) = (filter.words.to_vec(), filter.listed());
        for i in 0..1000 {
            filter.insert(mix64(i)).unwrap();
        }
        assert_eq!(filter.words.to_vec(), words);
        assert_eq!((filter.listed(), filter.len()), (listed, 2000));
    }
}
