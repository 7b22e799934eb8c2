//! Solving one shard: its hashes in, its table out.
//!
//! ```text
//!   segments      0        1        2        3        4        5        6      …
//!            ├────────┼────────┼────────┼────────┼────────┼────────┼────────┼─
//!                         done              peeled as far as    being    not yet
//!                                           possible            added    touched
//! ```
//!
//! Keys are sorted by their first segment and *added* segment by segment. Once a segment has all
//! its keys, those that are alone in one of its slots are peeled, then any key that is alone after
//! that, as far as this goes; then the next segment's keys are added. So peeling follows the keys
//! through the table at a distance of a few segments, and memory is traversed once, in a window
//! that fits in the caches near the core. Peeling in rounds over the whole table, as a single
//! queue would, reads it some twenty times.
//!
//! The order in which keys come off depends on the *set* of keys alone: slots are visited by their
//! number, and what identifies a key is an exclusive or. So the bytes of a filter do not depend on
//! the order in which its keys were given, on threads, or on where the keys were kept.

use std::ops::Range;

use crate::bits::{fastrange, mix64, unmix64};
use crate::buf::{Buf, halves};
use crate::build::shards::room_for;
use crate::build::source::Keys;
use crate::error::NoMemory;
use crate::peel::binary_fuse::{Fingerprint, Shape, fingerprint};
use crate::simd;

/// The number of keys that the index in a slot's word can tell apart.
pub(crate) const MOST_KEYS: u64 = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 24;
/// One user of a slot, in the count, which lies above the position and the index.
const ONE: u32 = 1 << (INDEX_BITS + 2);
/// Set in the word of a slot that has more users than good hashes ever give it, long before its
/// count wraps.
const CROWDED: u32 = 1 << 31;
/// How many keys ahead memory is prefetched.
const AHEAD: usize = 16;
/// Salts that a shard tries.
pub(super) const SALTS: u64 = 4;

/// Why a shard has no table.
pub(super) enum Unsolved {
    /// Some hash occurs twice.
    Repeats,
    /// No salt succeeded.
    Unlucky,
    /// There is no memory to work in.
    NoMemory(NoMemory),
}

impl From<NoMemory> for Unsolved {
    fn from(error: NoMemory) -> Unsolved {
        Unsolved::NoMemory(error)
    }
}

/// Memory that is reused for one shard after another.
#[derive(Default)]
pub(super) struct Solver {
    /// Hashes while they are being sorted; then a word for each slot, and the order.
    room: Option<Buf<u64>>,
    /// Salted hashes, ordered by segment, of a shard whose keys come in parts.
    hashes: Option<Buf<u64>>,
}

/// The array that is kept, or a new one if that is too small.
fn at_least(kept: &mut Option<Buf<u64>>, len: u64) -> Result<&mut [u64], NoMemory> {
    if kept.as_ref().is_none_or(|buf| (buf.len() as u64) < len) {
        *kept = None;
        *kept = Some(Buf::zeroed(len)?);
    }
    Ok(kept.as_mut().map_or(&mut [], |buf| buf.make_mut()))
}

impl Solver {
    /// Fills the table of a shard, which is all zero, and returns the salt that succeeded.
    pub(super) fn solve<F: Fingerprint>(
        &mut self,
        keys: Keys<'_>,
        shape: Shape,
        table: &mut [F],
    ) -> Result<u64, Unsolved> {
        if shape.arity == 3 {
            self.solve_for::<F, 3>(keys, shape, table)
        } else {
            self.solve_for::<F, 4>(keys, shape, table)
        }
    }

    fn solve_for<F: Fingerprint, const ARITY: usize>(
        &mut self,
        mut keys: Keys<'_>,
        shape: Shape,
        table: &mut [F],
    ) -> Result<u64, Unsolved> {
        let count: usize = match &keys {
            Keys::Whole(hashes) => hashes.len(),
            Keys::Parts(parts) => parts.iter().map(|part| part.len()).sum(),
        };
        let room = at_least(&mut self.room, (shape.slots() + 1).max(count as u64))?;
        for attempt in 0..SALTS {
            let salt = mix64(attempt);
            let (hashes, ranges) = match &mut keys {
                Keys::Whole(hashes) => {
                    let sorted = &mut room[..count];
                    let ranges = salt_and_sort(&[hashes], salt, shape, sorted);
                    hashes.copy_from_slice(sorted);
                    (&mut **hashes, ranges)
                }
                Keys::Parts(parts) => {
                    let each = room_for(count as u64, shape.segment_count);
                    let roomy = (each * shape.segment_count).min(MOST_KEYS);
                    let hashes = at_least(&mut self.hashes, roomy.max(count as u64))?;
                    let spread = salt_and_spread(parts, salt, shape, &mut hashes[..roomy as usize]);
                    let counted = || salt_and_sort(parts, salt, shape, &mut hashes[..count]);
                    let ranges = spread.unwrap_or_else(counted);
                    (hashes, ranges)
                }
            };
            let (words, order) = halves(room).split_at_mut(shape.slots() as usize);
            let peeled = peel::<ARITY>(hashes, &ranges, shape, words, order);
            if peeled == count {
                assign::<F, ARITY>(hashes, &order[..count], shape, table);
            }
            let repeats = peeled != count
                && attempt == 0
                && ranges.into_iter().any(|range| {
                    let hashes = &mut hashes[range];
                    hashes.sort_unstable();
                    hashes.windows(2).any(|pair| pair[0] == pair[1])
                });
            if let Keys::Whole(hashes) = &mut keys {
                for hash in &mut **hashes {
                    *hash = unmix64(*hash).wrapping_sub(salt);
                }
            }
            if peeled == count {
                return Ok(salt);
            }
            if repeats {
                return Err(Unsolved::Repeats);
            }
        }
        Err(Unsolved::Unlucky)
    }
}

/// Writes the salted hashes, ordered by their first segment, and returns where each segment's are.
/// Each segment gets an equal part of `out`; if one overflows, returns nothing.
fn salt_and_spread(
    parts: &[&[u64]],
    salt: u64,
    shape: Shape,
    out: &mut [u64],
) -> Option<Vec<Range<usize>>> {
    let segment = |hash: u64| fastrange(hash, shape.segment_count).0 as usize;
    let room = out.len() / shape.segment_count as usize;
    let starts = (0..shape.segment_count as usize).map(|segment| segment * room);
    // Where the next hash of a segment goes, and where its room ends.
    let mut heads: Vec<[usize; 2]> = starts.map(|start| [start, start + room]).collect();
    for part in parts {
        for &hash in *part {
            let hash = mix64(hash.wrapping_add(salt));
            let [head, end] = &mut heads[segment(hash)];
            if head == end {
                return None;
            }
            out[*head] = hash;
            *head += 1;
        }
    }
    Some(heads.iter().map(|&[head, end]| end - room..head).collect())
}

/// The same without gaps, for any hashes: they are counted first.
fn salt_and_sort(parts: &[&[u64]], salt: u64, shape: Shape, out: &mut [u64]) -> Vec<Range<usize>> {
    let segment = |hash: u64| fastrange(hash, shape.segment_count).0 as usize;
    let salted = |hash: u64| mix64(hash.wrapping_add(salt));
    let mut heads = vec![0usize; shape.segment_count as usize];
    for part in parts {
        for &hash in *part {
            heads[segment(salted(hash))] += 1;
        }
    }
    let mut start = 0;
    for head in &mut heads {
        start += std::mem::replace(head, start);
    }
    for part in parts {
        for &hash in *part {
            let hash = salted(hash);
            let head = &mut heads[segment(hash)];
            out[*head] = hash;
            *head += 1;
        }
    }
    let mut start = 0;
    let ranges = heads
        .iter()
        .map(|&end| std::mem::replace(&mut start, end)..end);
    ranges.collect()
}

/// Peels as many keys as possible and returns how many: the front of `order` lists them in the
/// order in which they came off, by index and by which of its slots each was alone in.
///
/// ```text
///   a slot's word     ┌── 6 bits ──┬───── 2 bits ─────┬──────── 24 bits ────────┐
///                     │ keys using │ xor of: which of │ xor of: the key's index │
///                     │ this slot  │ the key's slots  │ in the list of hashes   │
///                     └────────────┴──────────────────┴─────────────────────────┘
/// ```
///
/// Where the count is 1, the two xors *are* the key. Four bytes a slot, instead of the nine that
/// xors of whole hashes take, keep more of the table in the caches.
///
/// `order` is a queue of slots to visit, whose spent front takes the peeled keys. A slot is queued
/// at most once, when its count becomes 1. A push is written whether or not it counts, because a
/// branch there would be unpredictable; so `order` has one place more than there are slots.
fn peel<const ARITY: usize>(
    hashes: &[u64],
    ranges: &[Range<usize>],
    shape: Shape,
    words: &mut [u32],
    order: &mut [u32],
) -> usize {
    debug_assert!(hashes.len() as u64 <= MOST_KEYS);
    let length = shape.segment_length as usize;
    let (mut head, mut tail, mut peeled) = (0, 0, 0);
    let mut cleared = 0;
    for segment in 0..words.len() / length {
        let first = segment * length;
        let complete = (first + length) as u32;
        if let Some(range) = ranges.get(segment) {
            // Memory is cleared just before its first use, not all at once, so that it is in the
            // caches.
            let reach = first + ARITY * length;
            words[cleared..reach].fill(0);
            cleared = reach;
            let mut seen = 0;
            for (index, &hash) in (range.start..).zip(&hashes[range.clone()]) {
                for (which, place) in (0..).zip(shape.places::<ARITY>(hash)) {
                    let word = &mut words[place as usize];
                    *word = word.wrapping_add(ONE) ^ entry(which, index);
                    seen |= *word;
                }
            }
            if seen & CROWDED != 0 {
                return 0;
            }
        }
        for (place, word) in (first as u32..).zip(&words[first..first + length]) {
            order[tail] = place;
            tail += usize::from(word / ONE == 1);
        }
        while head < tail {
            simd::prefetch_near(words, order[(head + 2 * AHEAD).min(tail)] as usize);
            let soon = words[order[(head + AHEAD).min(tail - 1)] as usize];
            simd::prefetch_near(hashes, index_of(soon));
            let word = words[order[head] as usize];
            head += 1;
            if word / ONE != 1 {
                continue;
            }
            let key = word % ONE;
            order[peeled] = key;
            peeled += 1;
            let index = index_of(key);
            for (which, place) in (0..).zip(shape.places::<ARITY>(hashes[index])) {
                let word = &mut words[place as usize];
                *word = (*word - ONE) ^ entry(which, index);
                order[tail] = place;
                tail += usize::from((*word / ONE == 1) & (place < complete));
            }
        }
    }
    peeled
}

#[inline(always)]
fn entry(which: u32, index: usize) -> u32 {
    which << INDEX_BITS | index as u32
}

#[inline(always)]
fn index_of(word: u32) -> usize {
    (word % (1 << INDEX_BITS)) as usize
}

/// Sets the slots, last key first.
fn assign<F: Fingerprint, const ARITY: usize>(
    hashes: &[u64],
    order: &[u32],
    shape: Shape,
    table: &mut [F],
) {
    for (i, &key) in order.iter().enumerate().rev() {
        simd::prefetch_near(hashes, index_of(order[i.saturating_sub(3 * AHEAD)]));
        let hash = hashes[index_of(key)];
        let places = shape.places::<ARITY>(hash);
        // The slot to set still holds 0, so it may take part in the xor.
        let rest = places.iter().fold(fingerprint::<F>(hash), |x, &place| {
            x ^ table[place as usize]
        });
        table[places[(key >> INDEX_BITS) as usize % 4 % ARITY] as usize] = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peels keys with these hashes in a table of so many segments of four slots.
    fn peeled(hashes: &[u64], segment_count: u64) -> usize {
        let shape = Shape {
            arity: 3,
            segment_length: 4,
            segment_count,
        };
        let mut sorted = vec![0; hashes.len()];
        let unsalted: Vec<u64> = hashes.iter().map(|&hash| unmix64(hash)).collect();
        let ranges = salt_and_sort(&[&unsalted], 0, shape, &mut sorted);
        let mut words = vec![u32::MAX; shape.slots() as usize];
        let mut order = vec![u32::MAX; shape.slots() as usize + 1];
        peel::<3>(&sorted, &ranges, shape, &mut words, &mut order)
    }

    #[test]
    fn hashes_are_spread_as_they_are_sorted_where_there_is_room() {
        let shape = Shape::new(10_000, 3, 0);
        let hashes: Vec<u64> = (0..10_000).collect();
        let (first, second) = hashes.split_at(3000);
        let mut sorted = vec![0; hashes.len()];
        let ranges = salt_and_sort(&[first, second], 5, shape, &mut sorted);
        let room = room_for(10_000, shape.segment_count) * shape.segment_count;
        let mut spread = vec![u64::MAX; room as usize];
        let apart = salt_and_spread(&[first, second], 5, shape, &mut spread).unwrap();
        assert_eq!(ranges.len(), apart.len());
        assert!(
            ranges
                .iter()
                .zip(&apart)
                .all(|(a, b)| sorted[a.clone()] == spread[b.clone()])
        );
        // One hash over and over is more than a segment has room for.
        assert!(salt_and_spread(&[&[7; 10_000]], 5, shape, &mut spread).is_none());
    }

    #[test]
    fn keys_that_share_all_slots_do_not_peel_and_others_do() {
        // The low two bits, those from bit 18 on and the top bits choose the slots; bits between
        // choose none.
        let same = |i: u64| i << 30;
        assert_eq!(peeled(&[same(0)], 3), 1);
        assert_eq!(peeled(&[same(0), same(1)], 3), 0);
        assert_eq!(peeled(&[same(0), same(1), 1 << 62], 3), 1);
        assert_eq!(peeled(&[same(0), same(1) | 1], 3), 2, "one slot differs");
    }

    #[test]
    fn a_slot_with_more_users_than_its_count_can_tell_fails_the_attempt() {
        // Sixty-five times one key would look like one key.
        for copies in [32, 63, 64, 65, 129] {
            let hashes: Vec<u64> = (0..copies).map(|i| i << 30).collect();
            assert_eq!(peeled(&hashes, 3), 0, "{copies} copies");
        }
    }
}
