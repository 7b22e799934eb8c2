//! The exact set: keys kept whole, where the survey of filters starts.
//!
//! The essay is at [`Dictionary`].

use std::fmt;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::bits::fastrange;
use crate::error::{DecodeError, DecodeErrorKind, Full, FullKind};
use crate::key::Hashing;

/// An exact set of keys: never wrong, and as large as the keys.
///
/// ```
/// use tamis::Dictionary;
///
/// let mut words = Dictionary::new();
/// assert!(words.insert("tamis")?);
/// assert!(!words.insert("tamis")?, "it was there");
/// words.insert("sieve")?;
/// assert!(words.contains("sieve") && !words.contains("strainer"));
/// assert!(words.remove("sieve"));
///
/// let read = Dictionary::from_bytes(&words.to_bytes())?;
/// assert!(read.iter().eq([b"tamis"]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// A filter trades memory for errors, so whoever takes one should know both prices. This is the
/// other one: a hash table that keeps each key, whole.
///
/// ```text
///   hash of a key ──► slot     ┌─────────────┬──────────────────────┐
///                              │ tag, 24 bits│ where the key stands │   8 bytes; 0 is free
///                              └─────────────┴──────────┬───────────┘
///   keys    ┌───┬───────┬───┬─────────┬───┬─────────────▼───────────┐
///           │ 5 │ tamis │ 5 │ sieve   │ 8 │ strainer    …           │   length, then bytes
///           └───┴───────┴───┴─────────┴───┴─────────────────────────┘
/// ```
///
/// The slots are an open-addressing table with linear probing. A lookup follows them from the
/// key's own to a free one, and compares keys where the tags agree. To remove a key, those after it
/// that would be cut off from their own slots move back, so that nothing marks where a key was; its
/// bytes are given back when half of all are of keys that have left.
///
/// # Cost
///
/// The bytes of the keys, one or two for the length of each, and 8/0.875 to 16/0.875 for its slot:
/// [`size_in_bytes`](Dictionary::size_in_bytes) tells it, with what the array of keys keeps to grow
/// into. For keys of 20 bytes that is 32 to 53 bytes each, where a filter at 1 % takes 1.2. A
/// lookup reads two lines, one of the slots and one of the keys; that of an absent key one.
///
/// # Why it is no kind
///
/// A kind is a set of hashes of 64 bits, and a hash is not the key: two keys in 2⁶⁴ share one. So
/// this takes bytes and not hashes, and stands beside the kinds, as [`Iblt`](crate::Iblt) does.
/// [`Hashing`] is only used to find slots; the file does not depend on it.
///
/// # When to choose it
///
/// When the keys fit into memory. [`advise`](crate::advise) says when a filter would save nothing.
///
/// # Bibliography
///
/// - Knuth, *The art of computer programming*, volume 3, 6.4: linear probing, and deletion without
///   marks.
/// - Szabo-Wexler, *Approximate membership of sets: a survey*, 2014: starts from here.
#[derive(Clone)]
pub struct Dictionary {
    /// Tags and places, a power of two of them, or none.
    slots: Vec<u64>,
    keys: Vec<u8>,
    len: usize,
    /// Bytes of keys that have left.
    dead: usize,
    hashing: Hashing,
}

/// Bits of a slot that say where a key stands, plus one.
const PLACE: u32 = 40;
const SIGNATURE: [u8; 8] = *b"tamisdic";
const SUM_SEED: u64 = u64::from_le_bytes(SIGNATURE);
/// Signature and number of keys.
const HEAD: usize = 16;

impl Dictionary {
    /// An empty set.
    pub fn new() -> Dictionary {
        Dictionary::with_hashing(Hashing::default())
    }

    /// An empty set whose slots are found by a hashing of your choice: under a secret, where
    /// strangers choose the keys and might make long ways.
    pub fn with_hashing(hashing: Hashing) -> Dictionary {
        Dictionary {
            slots: Vec::new(),
            keys: Vec::new(),
            len: 0,
            dead: 0,
            hashing,
        }
    }

    /// Whether the key is in. There are no errors.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        let key = key.as_ref();
        self.find(key, self.hashing.hash_bytes(key)).is_ok()
    }

    /// Inserts a key; whether it was new.
    ///
    /// # Errors
    ///
    /// [`Full`] when there is no memory, or all keys together exceed 2⁴⁰ bytes. The set is then as
    /// it was.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<bool, Full> {
        let key = key.as_ref();
        let hash = self.hashing.hash_bytes(key);
        if self.find(key, hash).is_ok() {
            return Ok(false);
        }
        let len = self.len as u64;
        let full = |bytes: usize| Full::new(FullKind::Memory(bytes as u64), len);
        let (place, more) = (self.keys.len(), key.len().saturating_add(10));
        if place.saturating_add(more) as u64 >= (1 << PLACE) - 1 {
            return Err(Full::new(FullKind::Capacity, len));
        }
        self.keys.try_reserve(more).map_err(|_| full(more))?;
        if 8 * (self.len + 1) > 7 * self.slots.len() {
            let slots = (2 * self.slots.len()).max(8);
            self.rehash(slots).map_err(|()| full(8 * slots))?;
        }
        write_length(&mut self.keys, key.len());
        self.keys.extend_from_slice(key);
        if let Err(slot) = self.find(key, hash) {
            self.slots[slot] = slot_of(hash, place);
        }
        self.len += 1;
        Ok(true)
    }

    /// Takes a key out; whether it was in.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> bool {
        let key = key.as_ref();
        let Ok(mut hole) = self.find(key, self.hashing.hash_bytes(key)) else {
            return false;
        };
        let place = place_of(self.slots[hole]);
        let (_, end) = self.key_at(place).unwrap_or((&[], place));
        self.dead += end - place;
        self.len -= 1;
        // Whoever stands after the hole and may stand in it, as its own slot is not between.
        let mask = self.slots.len() - 1;
        let mut slot = hole;
        self.slots[hole] = 0;
        loop {
            slot = (slot + 1) & mask;
            let held = self.slots[slot];
            if held == 0 {
                break;
            }
            let home = self.home(self.hash_at(held));
            if slot.wrapping_sub(home) & mask >= slot.wrapping_sub(hole) & mask {
                self.slots[hole] = held;
                self.slots[slot] = 0;
                hole = slot;
            }
        }
        if 2 * self.dead > self.keys.len() {
            self.compact();
        }
        true
    }

    /// How many keys are in.
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Whether no key is in.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Every key, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> + '_ {
        let held = self.slots.iter().filter(|&&slot| slot != 0);
        held.filter_map(|&slot| Some(self.key_at(place_of(slot))?.0))
    }

    /// Every byte held on the heap.
    pub fn size_in_bytes(&self) -> usize {
        8 * self.slots.capacity() + self.keys.capacity()
    }

    /// The set as bytes, the same whatever the order in which keys came.
    ///
    /// The signature `tamisdic`, the number of keys (8 bytes, the lowest first), and the keys in
    /// ascending order, each with its length before it: seven bits a byte, the lowest first, all
    /// but the last byte with the top bit set. Last the XXH3-64 of all that, under the signature as
    /// a seed.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut sorted: Vec<&[u8]> = self.iter().collect();
        sorted.sort_unstable();
        let mut bytes = Vec::with_capacity(HEAD + self.keys.len() + 8);
        bytes.extend(SIGNATURE);
        bytes.extend(self.len().to_le_bytes());
        for key in sorted {
            write_length(&mut bytes, key.len());
            bytes.extend_from_slice(key);
        }
        bytes.extend(xxh3_64_with_seed(&bytes, SUM_SEED).to_le_bytes());
        bytes
    }

    /// The set of these bytes.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when they are not what [`to_bytes`](Self::to_bytes) makes, or there is no
    /// memory.
    pub fn from_bytes(bytes: &[u8]) -> Result<Dictionary, DecodeError> {
        if !bytes.starts_with(&SIGNATURE) {
            return Err(DecodeErrorKind::NotAFilter.into());
        }
        let whole = bytes.split_last_chunk::<8>();
        let Some((body, sum)) = whole.filter(|(body, _)| body.len() >= HEAD) else {
            let (expected, got) = ((HEAD + 8) as u64, bytes.len() as u64);
            return Err(DecodeErrorKind::Length { expected, got }.into());
        };
        if xxh3_64_with_seed(body, SUM_SEED) != u64::from_le_bytes(*sum) {
            let (part, offset) = ("keys", 0);
            return Err(DecodeErrorKind::Checksum { part, offset }.into());
        }
        let mut len = [0; 8];
        len.copy_from_slice(&body[8..HEAD]);
        let len = u64::from_le_bytes(len);
        let mut set = Dictionary::new();
        let (mut rest, mut last) = (&body[HEAD..], None);
        while !rest.is_empty() {
            let key = read_key(rest).filter(|&(key, _)| last < Some(key));
            let Some((key, after)) = key else {
                let expected = "ascending keys, each with its length";
                return Err(DecodeError::invalid("key", set.len(), expected));
            };
            let inserted = set.insert(key);
            let bytes = body.len() as u64;
            inserted.map_err(|_| DecodeErrorKind::Memory { bytes })?;
            (rest, last) = (after, Some(key));
        }
        if set.len() != len {
            let expected = format!("{}, the keys that follow", set.len());
            return Err(DecodeError::invalid("keys", len, expected));
        }
        Ok(set)
    }

    /// The slot of a key, or the free one where its way ends.
    fn find(&self, key: &[u8], hash: u64) -> Result<usize, usize> {
        if self.slots.is_empty() {
            return Err(0);
        }
        let mask = self.slots.len() - 1;
        let mut slot = self.home(hash);
        loop {
            let held = self.slots[slot];
            if held == 0 {
                return Err(slot);
            }
            let agrees = held >> PLACE == hash & ((1 << (64 - PLACE)) - 1);
            if agrees
                && self
                    .key_at(place_of(held))
                    .is_some_and(|(held, _)| held == key)
            {
                return Ok(slot);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// The slot where a hash wants to stand.
    fn home(&self, hash: u64) -> usize {
        fastrange(hash, self.slots.len() as u64).0 as usize
    }

    /// The key that stands somewhere, and where it ends.
    fn key_at(&self, place: usize) -> Option<(&[u8], usize)> {
        let (key, rest) = read_key(self.keys.get(place..)?)?;
        Some((key, self.keys.len() - rest.len()))
    }

    fn hash_at(&self, slot: u64) -> u64 {
        let key = self.key_at(place_of(slot)).map_or(&[][..], |(key, _)| key);
        self.hashing.hash_bytes(key)
    }

    /// Takes another number of slots.
    fn rehash(&mut self, number: usize) -> Result<(), ()> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(number).map_err(|_| ())?;
        slots.resize(number, 0);
        let old = std::mem::replace(&mut self.slots, slots);
        for held in old.into_iter().filter(|&slot| slot != 0) {
            let mut slot = self.home(self.hash_at(held));
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (number - 1);
            }
            self.slots[slot] = held;
        }
        Ok(())
    }

    /// Leaves out the bytes of keys that have left. Without memory for a copy they stay.
    fn compact(&mut self) {
        let mut keys = Vec::new();
        if keys.try_reserve_exact(self.keys.len() - self.dead).is_err() {
            return;
        }
        for i in 0..self.slots.len() {
            let held = self.slots[i];
            if held != 0 {
                let (place, new) = (place_of(held), keys.len());
                let end = self.key_at(place).map_or(place, |(_, end)| end);
                keys.extend_from_slice(&self.keys[place..end]);
                self.slots[i] = held >> PLACE << PLACE | (new as u64 + 1);
            }
        }
        (self.keys, self.dead) = (keys, 0);
        if self.len == 0 {
            self.slots = Vec::new();
        }
    }
}

/// The tag of a hash, of its low bits, and where the key stands.
fn slot_of(hash: u64, place: usize) -> u64 {
    hash << PLACE | (place as u64 + 1)
}

fn place_of(slot: u64) -> usize {
    ((slot & ((1 << PLACE) - 1)) as usize).wrapping_sub(1)
}

fn write_length(out: &mut Vec<u8>, mut len: usize) {
    while len >= 128 {
        out.push(len as u8 | 128);
        len >>= 7;
    }
    out.push(len as u8);
}

/// A key with its length before it, in the fewest bytes, and what comes after.
fn read_key(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut len = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(9) {
        len |= u64::from(byte & 127) << (7 * i);
        if byte < 128 {
            let is_short = byte != 0 || i == 0;
            let rest = is_short.then_some(&bytes[i + 1..])?;
            return rest.split_at_checked(usize::try_from(len).ok()?);
        }
    }
    None
}

impl Default for Dictionary {
    fn default() -> Dictionary {
        Dictionary::new()
    }
}

impl PartialEq for Dictionary {
    /// The same keys, wherever they stand.
    fn eq(&self, other: &Dictionary) -> bool {
        self.len == other.len && self.iter().all(|key| other.contains(key))
    }
}

impl Eq for Dictionary {}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dictionary of {} keys", self.len)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::bits::mix64;

    #[test]
    fn a_million_keys_without_an_error() {
        let key = |i: u64| format!("https://example.com/{i}");
        let mut set = Dictionary::new();
        for i in 0..1_000_000 {
            assert_eq!(set.insert(key(i)), Ok(true));
        }
        assert!((0..1_000_000).all(|i| set.contains(key(i))));
        assert!(!(1_000_000..2_000_000).any(|i| set.contains(key(i))));
        let bytes = set.size_in_bytes() as f64 / 1e6;
        // 27 bytes a key with its length, twice that while the vector grows, and 16 of slots.
        assert!((27.0..80.0).contains(&bytes), "{bytes} bytes a key");
    }

    #[test]
    fn the_essay_tells_the_bytes_of_a_key() {
        let mut set = Dictionary::new();
        let (mut least, mut most) = (f64::MAX, 0.0f64);
        for i in 1..=1_000_000u64 {
            set.insert(format!("{i:020}")).unwrap();
            if i >= 100_000 && i % 1000 == 0 {
                let bytes = set.size_in_bytes() as f64 / i as f64;
                (least, most) = (least.min(bytes), most.max(bytes));
            }
        }
        assert_eq!(format!("{least:.0} to {most:.0}"), "32 to 53");
    }

    #[test]
    fn random_steps_agree_with_a_set() {
        let mut set = Dictionary::new();
        let mut model: HashSet<Vec<u8>> = HashSet::new();
        for i in 0..200_000u64 {
            let draw = mix64(i);
            let number = (draw >> 8) % 300;
            // Of all lengths, among them none and one whose length takes two bytes.
            let key = vec![number as u8; number as usize];
            let grows = draw % 100 < [70, 30][(i / 10_000 % 2) as usize];
            if grows {
                assert_eq!(set.insert(&key), Ok(model.insert(key)));
            } else {
                assert_eq!(set.remove(&key), model.remove(&key));
            }
            assert_eq!(set.len(), model.len() as u64);
            if i % 1000 == 0 {
                assert!(set.iter().all(|key| model.contains(key)));
                assert!(model.iter().all(|key| set.contains(key)));
                assert!(Dictionary::from_bytes(&set.to_bytes()).unwrap() == set);
            }
        }
        model.iter().for_each(|key| assert!(set.remove(key)));
        assert!(set.is_empty() && set.to_bytes() == Dictionary::new().to_bytes());
        assert_eq!(
            set.size_in_bytes(),
            0,
            "the last key takes its memory along"
        );
    }

    #[test]
    fn bytes_do_not_depend_on_order_and_damage_is_refused() {
        let keys = ["", "a", "ab", "b", "tamis"];
        let (mut ahead, mut back) = (
            Dictionary::new(),
            Dictionary::with_hashing(Hashing::fast(7)),
        );
        assert!(keys.iter().all(|key| ahead.insert(key) == Ok(true)));
        assert!(keys.iter().rev().all(|key| back.insert(key) == Ok(true)));
        let bytes = ahead.to_bytes();
        assert!(bytes == back.to_bytes() && ahead == back);
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Dictionary::from_bytes(&damaged).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(
                Dictionary::from_bytes(&bytes[..len]).is_err(),
                "{len} bytes"
            );
        }
        // Forged: keys that do not ascend, lengths with bytes to spare or beyond the end.
        for forged in [
            &b"\x01b\x01a"[..],
            b"\x01a\x01a",
            b"\x81\x00a",
            b"\x05a",
            b"\xFF",
        ] {
            let mut file = [&SIGNATURE[..], &2u64.to_le_bytes(), forged].concat();
            file.extend(xxh3_64_with_seed(&file, SUM_SEED).to_le_bytes());
            assert!(Dictionary::from_bytes(&file).is_err(), "{forged:?}");
        }
    }
}
