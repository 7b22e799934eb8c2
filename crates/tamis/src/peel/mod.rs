//! The peeling family: tables built once from all keys, in which the slots of a key combine to its fingerprint.
//!
//! A key has three (or four) slots, and the table is solved so that the xor of what they hold is the key's fingerprint.
//! An absent key's slots combine to a fingerprint of no meaning, which agrees with its own with probability 2⁻ᶠ. Nothing
//! but fingerprints is stored, and a lookup has no branch.
//!
//! The table is solved by *peeling*: a slot that only one key uses can be set last, whatever the others hold, so that key
//! is put aside; this may leave other slots with one key; and so on until no key is left. The order backwards is the
//! order in which to fill the slots.
//!
//! [`BinaryFuse`] is such a table. [`Compacting`] grows by making one whenever it is full.

mod binary_fuse;
mod compacting;
mod narrow;

pub use binary_fuse::{BinaryFuse, BinaryFuse8, BinaryFuse16, BinaryFuse32, Fingerprint};
pub(crate) use binary_fuse::{dedup, into_shards};
pub use compacting::Compacting;

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::buf::Buf;
use crate::error::NoMemory;
use crate::simd;

/// Keys that one [`Peeler`] can tell apart.
pub(crate) const MOST_KEYS: u64 = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 24;
/// One user of a slot, in the count above the position and the index.
const ONE: u32 = 1 << (INDEX_BITS + 2);
const MOST_USERS: u32 = u32::MAX / ONE;
/// How far ahead of the queue's head memory is asked for.
const AHEAD: usize = 8;

/// Finds the order in which keys can be put aside.
///
/// ```text
///   a slot's word     ┌── 6 bits ──┬───── 2 bits ─────┬──────── 24 bits ────────┐
///                     │ keys using │ xor of: which of │ xor of: the key's index │
///                     │ this slot  │ the key's slots  │ in the list of hashes   │
///                     └────────────┴──────────────────┴─────────────────────────┘
/// ```
///
/// Where the count is 1, the two xors *are* the key. Four bytes a slot, instead of the nine that xors of whole hashes
/// take, keep more of the table near the processor.
pub(crate) struct Peeler {
    words: Buf<u32>,
    /// A queue of slots to look at, whose spent front takes the peeled keys (which, index). A slot is queued at most
    /// once, when its count becomes 1.
    order: Buf<u32>,
}

impl Peeler {
    /// A peeler for tables of this many slots.
    pub(crate) fn new(slots: u64) -> Result<Peeler, NoMemory> {
        Ok(Peeler {
            words: Buf::zeroed(slots)?,
            order: Buf::zeroed(slots + 1)?,
        })
    }

    /// Peels the keys with these hashes, whose slots `places` tells, and returns them in the order in which they came
    /// off: the index of the hash, and which of its slots it was alone in. `None` if some keys remain.
    #[inline(always)]
    pub(crate) fn peel<const ARITY: usize>(
        &mut self,
        hashes: &[u64],
        places: impl Fn(u64) -> [u32; ARITY],
    ) -> Option<impl DoubleEndedIterator<Item = (usize, usize)>> {
        debug_assert!(hashes.len() as u64 <= MOST_KEYS);
        let (words, order) = (self.words.make_mut(), self.order.make_mut());
        words.fill(0);
        for (index, &hash) in hashes.iter().enumerate() {
            for (which, place) in places(hash).into_iter().enumerate() {
                let word = &mut words[place as usize];
                // A count that wrapped would look like another. Good hashes never come near it.
                if *word / ONE == MOST_USERS {
                    return None;
                }
                *word = (*word + ONE) ^ entry(which, index);
            }
        }
        // What is pushed is written whether or not it counts: a branch here would be taken at random.
        let mut tail = 0;
        for (place, word) in words.iter().enumerate() {
            order[tail] = place as u32;
            tail += usize::from(word / ONE == 1);
        }
        let (mut peeled, mut head) = (0, 0);
        while head < tail {
            simd::prefetch(words, order[(head + 2 * AHEAD).min(tail)] as usize);
            let (_, soon) = split(words[order[(head + AHEAD).min(tail - 1)] as usize]);
            simd::prefetch(hashes, soon);
            let word = words[order[head] as usize];
            head += 1;
            if word / ONE != 1 {
                continue;
            }
            let key = word % ONE;
            order[peeled] = key;
            peeled += 1;
            let (alone, index) = split(key);
            for (which, place) in places(hashes[index]).into_iter().enumerate() {
                let word = &mut words[place as usize];
                *word = (*word - ONE) ^ entry(which, index);
                order[tail] = place;
                tail += usize::from(which != alone && *word / ONE == 1);
            }
        }
        (peeled == hashes.len()).then(|| {
            order[..peeled]
                .iter()
                .map(|&key| split(key))
                .map(|(which, index)| (index, which))
        })
    }
}

#[inline(always)]
fn entry(which: usize, index: usize) -> u32 {
    (which as u32) << INDEX_BITS | index as u32
}

#[inline(always)]
fn split(key: u32) -> (usize, usize) {
    (
        (key >> INDEX_BITS) as usize % 4,
        (key % (1 << INDEX_BITS)) as usize,
    )
}

/// Does `work` on every item, on this thread and up to `threads − 1` more, and returns the results in the items' order.
pub(crate) fn in_parallel<T: Send, R: Send>(
    threads: usize,
    items: impl ExactSizeIterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    // More threads than processors would only wait for one another.
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let helpers = threads.min(processors).min(items.len()).saturating_sub(1);
    let items = Mutex::new(items.enumerate());
    // A thread that panicked while it held the lock left the iterator usable; its panic is passed on below.
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let take_items = || {
        let mut done = Vec::new();
        while let Some((number, item)) = next() {
            done.push((number, work(item)));
        }
        done
    };
    let mut results = thread::scope(|scope| {
        // Where the system gives no more threads, those that there are do the work.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, take_items).ok();
        let helpers: Vec<_> = (0..helpers).map_while(spawn).collect();
        let mut results = take_items();
        for helper in helpers {
            results.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items_on_any_number_of_threads() {
        for threads in [0, 1, 2, 7, usize::MAX] {
            assert_eq!(
                in_parallel(threads, 0..100, |i| i * i),
                (0..100).map(|i| i * i).collect::<Vec<_>>()
            );
        }
    }

    #[test]
    fn a_chain_peels_from_its_ends_and_a_cycle_does_not() {
        // Keys 0, 1, 2 use slots (0, 1), (1, 2), (2, 3): a chain, alone at both ends.
        let mut peeler = Peeler::new(5).unwrap();
        let chain = |hash: u64| [hash as u32, hash as u32 + 1];
        let order: Vec<_> = peeler.peel(&[0, 1, 2], chain).unwrap().collect();
        assert_eq!(order, [(0, 0), (2, 1), (1, 0)]);
        // A fourth key from 3 back to 0 closes it.
        let cycle = |hash: u64| [hash as u32, (hash as u32 + 1) % 4];
        assert!(peeler.peel(&[0, 1, 2, 3], cycle).is_none());
        assert!(
            peeler.peel(&[0, 1, 2], chain).is_some(),
            "an attempt leaves nothing behind"
        );
    }

    #[test]
    fn a_slot_with_more_users_than_its_count_can_tell_fails_the_attempt() {
        let mut peeler = Peeler::new(100).unwrap();
        let hashes: Vec<u64> = (0..65).collect();
        assert!(peeler.peel(&hashes, |hash| [0, 1 + hash as u32]).is_none());
        assert!(
            peeler
                .peel(&hashes[..63], |hash| [0, 1 + hash as u32])
                .is_some()
        );
    }
}
