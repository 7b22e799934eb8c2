//! Peeling for tables of any number of keys, in which some slots can be put off.
//!
//! ```text
//!   a slot's word     ┌────── 32 bits ──────┬──────── 32 bits ────────┐
//!                     │ keys using the slot │ xor of their indices    │
//!                     └─────────────────────┴─────────────────────────┘
//! ```
//!
//! Where one key uses a slot, the xor *is* that key. A binary fuse filter, whose shards are
//! small, packs both into half as many bits; these tables have one shard, and as many keys as 32
//! bits can number.

use crate::bits::mix64;
use crate::buf::Buf;
use crate::build::dedup;
use crate::config::{Config, Tally};
use crate::error::{BuildError, BuildErrorKind, NoMemory};
use crate::simd;

/// The number of slots, and so of keys, that can be told apart.
pub(super) const MOST_SLOTS: u64 = u32::MAX as u64;
/// Attempts before a table is given up.
pub(super) const ATTEMPTS: u32 = 32;
/// Attempts with different salts before more slots are added as well.
const SALTS: u32 = 4;
/// Steps of an attempt, as reported by progress: salting and sorting, peeling, filling.
pub(super) const STEPS: u64 = 3;
/// One user of a slot.
const ONE: u64 = 1 << 32;
/// How far ahead of a queue's head memory is prefetched.
const AHEAD: usize = 8;

/// Builds from keys with these hashes, in one or more attempts. If the first fails, `distinct`
/// drops repeated hashes, which no salt can separate, and may refuse them.
pub(super) fn build<K: AsRef<[u64]>, T>(
    config: &Config,
    keys: K,
    distinct: impl FnOnce(K) -> Result<K, BuildError>,
    attempt: impl Fn(&K, u32, &Tally<'_>) -> Result<Option<T>, BuildError>,
) -> Result<T, BuildError> {
    let given = keys.as_ref().len();
    let attempt = |keys: &K, number| {
        let tally = config.tally(keys.as_ref().len() as u64);
        attempt(keys, number, &tally)
    };
    if let Some(built) = attempt(&keys, 0)? {
        return Ok(built);
    }
    let keys = distinct(keys)?;
    // Repeats do not count as a failure of the salt, so they do not change the outcome.
    let repeats = keys.as_ref().len() < given;
    for number in u32::from(!repeats)..ATTEMPTS {
        if let Some(built) = attempt(&keys, number)? {
            return Ok(built);
        }
    }
    let (keys, attempts) = (given as u64, ATTEMPTS);
    Err(BuildErrorKind::Attempts { keys, attempts }.into())
}

/// Each hash once, in order.
pub(super) fn distinct(hashes: &mut [u64]) -> Result<&mut [u64], BuildError> {
    let distinct = dedup(hashes);
    Ok(&mut hashes[..distinct])
}

/// The salt of an attempt, and how many keys to make room for in it: after the first few attempts
/// 2 % more each time.
pub(super) fn attempt(number: u32, keys: u64) -> (u64, u64) {
    let steps = u64::from((number + 1).saturating_sub(SALTS));
    let more = steps * (keys / 50 + u64::from(steps > 0));
    (mix64(u64::from(number)), keys + more)
}

/// The hashes salted, and sorted by their top bits as finely as a small table of counts allows: a
/// table that takes first places from these bits is then traversed in order. `moved` is told where
/// each hash came from and went to.
///
/// No salt can separate equal hashes, and none makes unequal ones equal.
pub(super) fn salted(
    hashes: &[u64],
    salt: u64,
    mut moved: impl FnMut(usize, usize),
) -> Result<Buf<u64>, NoMemory> {
    let bits = (hashes.len() as u64 / 64).max(2).ilog2().min(12);
    let salted = |hash: u64| {
        let salted = mix64(hash.wrapping_add(salt));
        (salted, (salted >> (64 - bits)) as usize)
    };
    let mut heads = vec![0; 1 << bits];
    for &hash in hashes {
        heads[salted(hash).1] += 1;
    }
    let mut start = 0;
    for head in &mut heads {
        start += std::mem::replace(head, start);
    }
    let mut sorted = Buf::zeroed(hashes.len() as u64)?;
    let out = sorted.make_mut();
    for (from, &hash) in hashes.iter().enumerate() {
        let (salted, bucket) = salted(hash);
        let to = heads[bucket];
        heads[bucket] += 1;
        out[to] = salted;
        moved(from, to);
    }
    Ok(sorted)
}

/// An order in which the keys of a table can be given their slots.
pub(super) struct Order {
    words: Buf<u64>,
    /// The slot that each peeled key was alone in, the first that came off first.
    slots: Buf<u32>,
}

impl Order {
    /// Peels the keys with these hashes, whose places `places` gives, from a table of so many
    /// slots. `None` if some keys remain.
    ///
    /// A slot from `late` on is given to a key only where no earlier slot can be, so that many of
    /// them stay empty. The order depends on the set of keys alone, not on the order of the
    /// hashes.
    #[inline(always)]
    pub(super) fn find<const ARITY: usize>(
        hashes: &[u64],
        slots: u64,
        late: u64,
        places: impl Fn(u64) -> [u32; ARITY],
    ) -> Result<Option<Order>, NoMemory> {
        debug_assert!(slots <= MOST_SLOTS && late <= slots);
        let mut words = Buf::<u64>::zeroed(slots)?;
        let mut order = Buf::<u32>::zeroed(hashes.len() as u64)?;
        // Two queues: of the slots before `late`, and of the others. A slot is queued at most
        // once, when its count becomes 1. A push is written whether or not it counts, so each
        // queue has one place to spare.
        let mut queue = Buf::<u32>::zeroed(slots + 2)?;
        if hashes.len() as u64 > slots {
            return Ok(None);
        }
        let (table, peeled, queue) = (words.make_mut(), order.make_mut(), queue.make_mut());
        for (index, &hash) in hashes.iter().enumerate() {
            for place in places(hash) {
                let word = &mut table[place as usize];
                *word = (*word + ONE) ^ index as u64;
            }
        }
        let starts = [0, late as usize + 1];
        let (mut heads, mut tails) = (starts, starts);
        let which = |place: u32| usize::from(u64::from(place) >= late);
        for (place, word) in (0..).zip(&*table) {
            let tail = &mut tails[which(place)];
            queue[*tail] = place;
            *tail += usize::from(word / ONE == 1);
        }
        let mut done = 0;
        loop {
            let first = usize::from(heads[0] == tails[0]);
            let (head, tail) = (heads[first], tails[first]);
            if head == tail {
                break;
            }
            heads[first] += 1;
            simd::prefetch(table, queue[(head + 2 * AHEAD).min(tail)] as usize);
            let soon = table[queue[(head + AHEAD).min(tail - 1)] as usize];
            simd::prefetch(hashes, index_of(soon));
            let alone = queue[head];
            let word = table[alone as usize];
            if word / ONE != 1 {
                continue;
            }
            peeled[done] = alone;
            done += 1;
            for place in places(hashes[index_of(word)]) {
                // The slot itself keeps its word, which identifies the key.
                if place == alone {
                    continue;
                }
                let left = (table[place as usize] - ONE) ^ index_of(word) as u64;
                table[place as usize] = left;
                let tail = &mut tails[which(place)];
                queue[*tail] = place;
                *tail += usize::from(left / ONE == 1);
            }
        }
        let all = done == hashes.len();
        Ok(all.then_some(Order {
            words,
            slots: order,
        }))
    }

    /// The keys in the order in which to fill their slots: the index of the hash, and its own
    /// slot. No slot of a key is filled after it except its own, which is empty until then.
    pub(super) fn filling(&self) -> impl Iterator<Item = (usize, usize)> {
        let own = |&slot: &u32| (index_of(self.words[slot as usize]), slot as usize);
        self.slots.iter().rev().map(own)
    }
}

#[inline(always)]
fn index_of(word: u64) -> usize {
    (word % ONE) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(
        hashes: &[u64],
        late: u64,
        places: impl Fn(u64) -> [u32; 2],
    ) -> Option<Vec<(usize, usize)>> {
        let order = Order::find(hashes, 6, late, places).unwrap();
        order.map(|order| order.filling().collect())
    }

    /// Keys 0, 1, 2 use slots (0, 1), (1, 2), (2, 3): a chain, alone at both ends.
    fn chain(hash: u64) -> [u32; 2] {
        [hash as u32, hash as u32 + 1]
    }

    #[test]
    fn a_chain_is_filled_from_its_middle_and_a_cycle_is_not() {
        let order = find(&[0, 1, 2], 6, chain).unwrap();
        assert_eq!(order, [(1, 1), (2, 3), (0, 0)]);
        let cycle = |hash: u64| [hash as u32, (hash as u32 + 1) % 4];
        assert!(find(&[0, 1, 2, 3], 6, cycle).is_none());
        assert!(find(&[0, 0], 6, chain).is_none(), "equal keys never peel");
        assert_eq!(find(&[], 6, chain).unwrap(), []);
    }

    #[test]
    fn late_slots_stay_empty_where_others_will_do() {
        // Both ends are alone at first; with slots 3 and up late, the chain comes off from the
        // other end.
        let order = find(&[0, 1, 2], 3, chain).unwrap();
        assert_eq!(order, [(2, 2), (1, 1), (0, 0)]);
    }

    #[test]
    fn the_order_does_not_depend_on_that_of_the_hashes() {
        let order = find(&[2, 0, 1], 6, chain).unwrap();
        assert_eq!(order, [(2, 1), (0, 3), (1, 0)]);
    }

    #[test]
    fn salted_hashes_are_sorted_by_their_top_bits_and_none_is_lost() {
        for n in [0, 1, 2, 100, 10_000] {
            let hashes: Vec<u64> = (0..n).collect();
            let mut sources = vec![u64::MAX; n as usize];
            let sorted = salted(&hashes, 7, |from, to| sources[to] = hashes[from]).unwrap();
            let again = sources.iter().map(|source| mix64(source + 7));
            assert!(again.eq(sorted.iter().copied()), "{n} hashes");
            let bits = (n / 64).max(2).ilog2();
            assert!(sorted.is_sorted_by_key(|hash| hash >> (64 - bits)));
            sources.sort_unstable();
            assert_eq!(sources, hashes);
        }
    }

    #[test]
    fn room_is_added_after_the_first_salts() {
        let rooms = |keys| {
            (0..8)
                .map(|number| attempt(number, keys).1)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            rooms(1000),
            [1000, 1000, 1000, 1000, 1021, 1042, 1063, 1084]
        );
        assert_eq!(rooms(1)[4..], [2, 3, 4, 5]);
    }
}
