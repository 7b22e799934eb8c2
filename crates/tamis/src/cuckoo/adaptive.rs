//! The adaptive cuckoo filter: a false positive that is reported does not come again.
//!
//! The essay is at [`AdaptiveCuckoo`].

use super::standard::{bits_of, buckets_for};
use super::{Nest, WAYS, make_room};
use crate::bits::{fastrange, low_mask, mix64};
use crate::buf::Buf;
use crate::config::Config;
use crate::cuckoo::Cuckoo;
use crate::error::{BuildError, BuildErrorKind, Full};
use crate::filter::{Count, Filter, Insert, Remove};
use crate::kinds::Declared;
use crate::lookup::{self, Ring};
use crate::math;
use crate::option;
use crate::packed::{Packed, View};
use crate::simd::Bits;

/// A cuckoo filter that unlearns its false positives, with the exact table that it needs for it.
///
/// ```
/// use tamis::{AdaptiveCuckoo, Config, Filter, Insert};
///
/// let mut filter = AdaptiveCuckoo::new(&Config::new(1000).fpr(0.03))?;
/// for key in 0..1000u64 {
///     filter.insert(key.wrapping_mul(0x9E37_79B9_7F4A_7C15))?;
/// }
/// // Someone asks, the filter errs, the exact side knows better.
/// let mut absent = (1000..).map(|key: u64| key.wrapping_mul(0x9E37_79B9_7F4A_7C15));
/// let wrong = absent.find(|&hash| filter.contains(hash)).expect("a false positive");
/// assert!(!filter.is_held(wrong));
/// // From now on it is denied.
/// assert!(filter.adapt(wrong));
/// assert!(!filter.contains(wrong));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// A filter stands before something slower that knows the truth: a table, a disk, a server. When
/// it errs, that is found out, and the next time the same key is asked for it errs again. Where
/// some keys are asked for much more often than others, one unlucky popular key costs more than
/// all others together.
///
/// ```text
///   filter, read by lookups           exact side, read by changes and corrections
///   ┌───────────────┬───────────────┐ ┌──────────────────┬──────────────────┐
///   │ 1f3 │ which: 0│ 0a7 │ which: 2│ │ 9c41 … the hash  │ 03be … the hash  │  …
///   └───────────────┴───────────────┘ └──────────────────┴──────────────────┘
///      slot 0            slot 1              slot 0            slot 1
/// ```
///
/// So each slot keeps, beside the fingerprint, a *selector* of two bits: which of four fingerprint
/// functions this one is from. When a key is reported as a false positive, every slot that matches
/// it takes the next function that tells the two apart; the hash that stands in the slot is needed
/// to compute the new fingerprint, and is on the exact side, in the slot of the same number. A
/// member's slot always holds one of its own fingerprints, so nothing is ever denied that is in.
///
/// # Lookup, and the rest
///
/// A lookup computes four fingerprints of the key and compares each of the eight slots in its two
/// buckets with that of the slot's selector. It reads the filter alone. Insertions search for
/// room as those of [`Cuckoo`] do, but take the other bucket from the hash on the exact
/// side. [`remove`](Remove::remove) takes out members only: a false positive is told from a member,
/// and nothing is removed. [`count`](Count::count) is exact, up to eight copies.
///
/// # Cost
///
/// (f + 2)/0.95 bits a key in the filter, for a rate of about 8·0.95/2^f of hashes that were never
/// asked for: 12.63 bits at 0.74 %. The exact side takes 64/0.95 bits a key more, 67.4, which is
/// what a table of hashes takes anyway. [`filter_bytes`](AdaptiveCuckoo::filter_bytes) and
/// [`exact_bytes`](AdaptiveCuckoo::exact_bytes) tell them apart; `size_in_bytes` is both.
///
/// Of a million lookups of 100 000 absent keys, drawn by Zipf's law, in a filter of a rate of
/// 0.74 %, 7338 are false positives if none is reported, and 576 if each is: so many keys, each
/// wrong once (the test `popular_keys_are_wrong_once`).
///
/// # What it does not promise
///
/// Four functions are four: a slot that is corrected again and again comes back to its first,
/// where an earlier false positive may wait. As long as the absent keys that are asked for are few
/// for the slots that there are, each slot soon finds a function that none of them matches; an
/// adversary who asks for keys chosen after each answer can keep a slot turning. Filters that
/// withstand that spend more (Bender and others 2018; Lee and others 2021).
///
/// # When to choose it
///
/// Before a table that is in memory and whose queries repeat: routes, flows, caches. It is no
/// kind, as its exact side is no part of an approximate set, and has no file.
///
/// # Bibliography
///
/// - Mitzenmacher, Pontarelli, Reviriego, *Adaptive cuckoo filters*, 2018: selectors, in tables of
///   one slot a bucket; and buckets of four, where a fingerprint changes by changing places. Here
///   buckets of four have selectors.
/// - Bender, Farach-Colton, Goswami, Johnson, McCauley, Singh, *Bloom filters, adaptivity, and the
///   dictionary problem*, 2018: what adaptivity is, and that it needs an exact side.
/// - Lee, McCauley, Singh, Stein, *Telescoping filter: a practical adaptive filter*, 2021: one that
///   keeps its promise against adversaries, with less than a bit a key.
#[derive(Clone, Debug)]
pub struct AdaptiveCuckoo {
    /// Of each slot its selector, in the lowest bits, and above it a fingerprint; 0 is free.
    filter: Packed,
    /// The hash in each slot; 0 in a free one.
    exact: Buf<u64>,
    buckets: u64,
    len: u64,
}

/// Bits of a selector.
const SELECTOR_BITS: u32 = 2;
/// Fingerprint functions.
const FUNCTIONS: usize = 1 << SELECTOR_BITS;

/// What a slot holds of a hash under a selector: this filter's geometry, with [`buckets_of`].
#[inline(always)]
fn entry(hash: u64, selector: usize, bits: u32) -> u64 {
    let mixed = mix64(hash ^ (selector as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let fingerprint = 1 + fastrange(mixed, low_mask(bits)).0;
    fingerprint << SELECTOR_BITS | selector as u64
}

/// The two buckets of a hash, which differ.
#[inline(always)]
fn buckets_of(hash: u64, buckets: u64) -> [u64; 2] {
    let first = fastrange(hash, buckets).0;
    let other = first + 1 + fastrange(mix64(hash), buckets - 1).0;
    [
        first,
        if other < buckets {
            other
        } else {
            other - buckets
        },
    ]
}

impl AdaptiveCuckoo {
    /// An empty filter; capacity, rate and `bits` are those of a [`Cuckoo`].
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the configuration is not possible, or says nothing of the capacity.
    pub fn new(config: &Config) -> Result<AdaptiveCuckoo, BuildError> {
        if config.capacity == 0 {
            Cuckoo::INFO.check_room()?;
        }
        let (keys, fpr) = config.check::<Cuckoo>(&[])?;
        let semi_sort = option::SEMI_SORT.name;
        if let Some(value) = config.param::<u32>(semi_sort, "0")?
            && value != 0
        {
            return Err(BuildError::parameter(semi_sort, value, "0"));
        }
        let bits = bits_of(config, fpr)?;
        // The other bucket is as random as the first, so few bits do not fill a table less.
        let (needed, most) = (buckets_for(keys, u32::MAX), 1 << 48);
        if needed > most as f64 {
            let unit = "buckets";
            return Err(BuildErrorKind::TooLarge { unit, needed, most }.into());
        }
        AdaptiveCuckoo::with_shape(needed as u64, bits)
    }

    fn with_shape(buckets: u64, bits: u32) -> Result<AdaptiveCuckoo, BuildError> {
        Ok(AdaptiveCuckoo {
            filter: Packed::zeroed(buckets * WAYS, bits + SELECTOR_BITS)?,
            exact: Buf::zeroed(buckets * WAYS)?,
            buckets,
            len: 0,
        })
    }

    /// Bits of a fingerprint, without the selector's two.
    pub fn fingerprint_bits(&self) -> u32 {
        self.filter.width() - SELECTOR_BITS
    }

    /// Slots of the table.
    pub fn slots(&self) -> u64 {
        self.buckets * WAYS
    }

    /// The fraction of slots in use.
    pub fn load(&self) -> f64 {
        self.len as f64 / self.slots() as f64
    }

    /// Bytes that lookups read from.
    pub fn filter_bytes(&self) -> usize {
        self.filter.size_in_bytes()
    }

    /// Bytes of the exact side, the hash in each slot.
    pub fn exact_bytes(&self) -> usize {
        self.exact.size_in_bytes()
    }

    /// Whether the hash is in, as the exact side knows it. There are no errors.
    pub fn is_held(&self, hash: u64) -> bool {
        self.find(hash).is_some()
    }

    /// Corrects the filter after a false positive: the slots that match this hash change their
    /// fingerprints. Returns whether the hash is denied from now on.
    ///
    /// A hash that is in is not, and nothing changes. Otherwise it is `false` only if all four
    /// fingerprints of some member are those of the hash, once in 2^4f.
    ///
    /// Later corrections of the same slots may bring a false positive back.
    pub fn adapt(&mut self, hash: u64) -> bool {
        if self.is_held(hash) {
            return false;
        }
        let bits = self.fingerprint_bits();
        let place = self.reader().place(hash);
        for slot in slots_of(place.buckets) {
            let held = self.filter.get(slot);
            if !place.has(held) {
                continue;
            }
            let now = held as usize % FUNCTIONS;
            let others = (1..FUNCTIONS).map(|step| (now + step) % FUNCTIONS);
            let mut entries = others.map(|other| entry(self.exact[slot as usize], other, bits));
            if let Some(entry) = entries.find(|&entry| !place.has(entry)) {
                self.filter.set(slot, entry);
            }
        }
        !self.contains(hash)
    }

    #[inline(always)]
    fn reader(&self) -> Reader<'_> {
        Reader {
            filter: self.filter.view(),
            buckets: self.buckets,
        }
    }

    /// A slot that holds the hash.
    fn find(&self, hash: u64) -> Option<u64> {
        self.copies(hash).next()
    }

    /// The slots that hold the hash; in a free one stands none, not even the hash 0.
    fn copies(&self, hash: u64) -> impl Iterator<Item = u64> {
        let slots = slots_of(buckets_of(hash, self.buckets));
        slots.filter(move |&slot| self.exact[slot as usize] == hash && self.filter.get(slot) != 0)
    }

    fn set(&mut self, slot: u64, entry: u64, hash: u64) {
        self.filter.set(slot, entry);
        self.exact.make_mut()[slot as usize] = hash;
    }
}

/// The slots of two buckets.
fn slots_of(buckets: [u64; 2]) -> impl Iterator<Item = u64> {
    buckets
        .into_iter()
        .flat_map(|bucket| bucket * WAYS..(bucket + 1) * WAYS)
}

/// Where a hash may stand, and as what.
#[derive(Clone, Copy, Default)]
struct Place {
    buckets: [u64; 2],
    /// By selector.
    entries: [u64; FUNCTIONS],
}

impl Place {
    #[inline(always)]
    fn has(self, entry: u64) -> bool {
        self.entries[entry as usize % FUNCTIONS] == entry
    }
}

/// The filter, for looking up.
#[derive(Clone, Copy)]
struct Reader<'a> {
    filter: View<'a>,
    buckets: u64,
}

impl Ring for Reader<'_> {
    type Place = Place;
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        self.filter.size_in_bytes()
    }

    #[inline(always)]
    fn place(self, hash: u64) -> Place {
        let bits = self.filter.width() - SELECTOR_BITS;
        Place {
            buckets: buckets_of(hash, self.buckets),
            entries: [0, 1, 2, 3].map(|selector| entry(hash, selector, bits)),
        }
    }

    #[inline(always)]
    fn prefetch(self, place: Place) {
        for bucket in place.buckets {
            self.filter.prefetch(bucket * WAYS);
        }
    }

    #[inline(always)]
    fn probe<B: Bits>(self, _: B, place: Place) -> bool {
        let mut found = false;
        for bucket in place.buckets {
            for slot in bucket * WAYS..(bucket + 1) * WAYS {
                found |= place.has(self.filter.get(slot));
            }
        }
        found
    }
}

impl Nest for AdaptiveCuckoo {
    fn free_slot(&self, bucket: u64) -> Option<u64> {
        (bucket * WAYS..(bucket + 1) * WAYS).find(|&slot| self.filter.get(slot) == 0)
    }

    fn other_bucket(&self, slot: u64) -> u64 {
        let [first, second] = buckets_of(self.exact[slot as usize], self.buckets);
        first + second - slot / WAYS
    }

    fn copy(&mut self, from: u64, to: u64) {
        self.set(to, self.filter.get(from), self.exact[from as usize]);
    }
}

impl Filter for AdaptiveCuckoo {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        lookup::probe(self.reader(), hash)
    }

    fn len(&self) -> u64 {
        self.len
    }

    /// Both sides.
    fn size_in_bytes(&self) -> usize {
        self.filter_bytes() + self.exact_bytes()
    }

    /// The rate of hashes that were never asked for; those that were reported are denied.
    fn fpr(&self) -> f64 {
        math::cuckoo_fpr(self.fingerprint_bits(), self.load())
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        for bucket in buckets_of(hash, self.buckets) {
            self.filter.view().prefetch_near(bucket * WAYS);
        }
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::ring(Some(self.reader()), hashes, out);
    }
}

impl Insert for AdaptiveCuckoo {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let roots = buckets_of(hash, self.buckets);
        let slot = match roots.into_iter().find_map(|root| self.free_slot(root)) {
            Some(slot) => slot,
            None => make_room(self, roots, |filter| filter.count(hash))
                .map_err(|kind| Full::new(kind, self.len))?,
        };
        self.set(slot, entry(hash, 0, self.fingerprint_bits()), hash);
        self.len += 1;
        Ok(())
    }
}

impl Remove for AdaptiveCuckoo {
    /// Takes out one copy of a hash that is in. Any other is told from it, and changes nothing.
    fn remove(&mut self, hash: u64) -> bool {
        let Some(slot) = self.find(hash) else {
            return false;
        };
        self.set(slot, 0, 0);
        self.len -= 1;
        true
    }
}

impl Count for AdaptiveCuckoo {
    /// How many copies are in, without errors.
    fn count(&self, hash: u64) -> u64 {
        self.copies(hash).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashMap};

    use super::*;
    use crate::cuckoo::MOST_COPIES;
    use crate::error::FullKind;

    fn filled(keys: u64, fpr: f64) -> AdaptiveCuckoo {
        let mut filter = AdaptiveCuckoo::new(&Config::new(keys).fpr(fpr)).unwrap();
        (0..keys).for_each(|i| filter.insert(mix64(i)).unwrap());
        filter
    }

    /// Hashes that are not among the first 2³² of [`filled`].
    fn absent(i: u64) -> u64 {
        mix64(1 << 40 | i)
    }

    #[test]
    fn a_reported_false_positive_is_gone_and_members_stay() {
        let mut filter = filled(20_000, 0.01);
        let wrong: Vec<u64> = (0..200_000)
            .map(absent)
            .filter(|&hash| filter.contains(hash))
            .collect();
        assert!(wrong.len() > 500);
        for &hash in &wrong {
            assert!(!filter.is_held(hash));
            assert!(filter.adapt(hash) && !filter.contains(hash));
        }
        assert!((0..20_000).all(|i| filter.contains(mix64(i)) && filter.is_held(mix64(i))));
        // Some come back when their slots are corrected again; few, and fewer each time.
        let back = wrong.iter().filter(|&&hash| filter.contains(hash)).count();
        assert!(back < wrong.len() / 20, "{back} of {}", wrong.len());
    }

    #[test]
    fn a_member_is_not_adapted_away() {
        let mut filter = filled(1000, 0.01);
        let before: Vec<u64> = filter.filter.iter().collect();
        assert!((0..1000).all(|i| !filter.adapt(mix64(i))));
        assert!(filter.filter.iter().eq(before));
    }

    #[test]
    fn popular_keys_are_wrong_once() {
        // 100 000 absent keys of which number i is asked for in proportion to 1/i, a million times.
        let (flows, queries) = (100_000u64, 1_000_000);
        let mut sums: Vec<f64> = Vec::new();
        let mut sum = 0.0;
        for i in 1..=flows {
            sum += 1.0 / i as f64;
            sums.push(sum);
        }
        let stream = || {
            (0..queries).map(|i| {
                let draw = (mix64(1 << 50 | i) >> 11) as f64 / (1u64 << 53) as f64 * sum;
                absent(sums.partition_point(|&upto| upto < draw) as u64)
            })
        };
        let plain = filled(100_000, 0.0075);
        let without = stream().filter(|&hash| plain.contains(hash)).count() as f64;
        let mut filter = plain.clone();
        let mut distinct = BTreeSet::new();
        let mut with = 0.0;
        for hash in stream() {
            if filter.contains(hash) {
                with += 1.0;
                distinct.insert(hash);
                assert!(filter.adapt(hash));
            }
        }
        let repeats = with - distinct.len() as f64;
        assert!(repeats <= plain.fpr() * queries as f64 / 10.0, "{repeats}");
        // The essay's.
        assert_eq!((without, with, repeats), (7338.0, 576.0, 0.0));
    }

    #[test]
    fn any_steps_leave_what_an_exact_multiset_holds() {
        let mut filter = AdaptiveCuckoo::with_shape(40, 4).unwrap();
        let mut model: HashMap<u64, u64> = HashMap::new();
        let (mut refused, mut adapted) = (0, 0);
        for step in 0..60_000u64 {
            let draw = mix64(step);
            let hash = mix64(draw >> 8 & 0x1ff);
            let held = model.get(&hash).copied().unwrap_or(0);
            match draw % 8 {
                0..=2 => {
                    let before = (
                        filter.filter.iter().collect::<Vec<_>>(),
                        filter.exact.to_vec(),
                    );
                    match filter.insert(hash) {
                        Ok(()) => *model.entry(hash).or_default() += 1,
                        Err(full) => {
                            refused += 1;
                            let all_its_own = full.kind() == FullKind::Duplicates(8);
                            assert_eq!(all_its_own, held == MOST_COPIES);
                            assert!(filter.filter.iter().eq(before.0));
                            assert!(*filter.exact == *before.1);
                        }
                    }
                }
                3..=4 => {
                    assert_eq!(filter.remove(hash), held > 0);
                    model
                        .entry(hash)
                        .and_modify(|held| *held = held.saturating_sub(1));
                }
                _ if held == 0 => adapted += u64::from(filter.contains(hash) && filter.adapt(hash)),
                _ => assert!(!filter.adapt(hash)),
            }
            let held = model.get(&hash).copied().unwrap_or(0);
            assert_eq!((filter.count(hash), filter.is_held(hash)), (held, held > 0));
            if step % 64 == 0 {
                model.retain(|_, held| *held > 0);
                assert!(model.keys().all(|&hash| filter.contains(hash)));
                assert_eq!(filter.len, model.values().sum::<u64>());
            }
        }
        assert!(
            refused > 100 && adapted > 1000,
            "{refused} refused, {adapted} adapted"
        );
        for (hash, held) in model {
            (0..held).for_each(|_| assert!(filter.remove(hash)));
        }
        assert!(filter.filter.iter().all(|entry| entry == 0));
        assert!(filter.exact.iter().all(|&hash| hash == 0));
    }

    #[test]
    fn the_ninth_copy_is_refused() {
        let mut filter = filled(1000, 0.01);
        let key = absent(0);
        (0..8).for_each(|_| filter.insert(key).unwrap());
        let full = filter.insert(key).unwrap_err();
        assert_eq!((full.kind(), full.keys()), (FullKind::Duplicates(8), 1008));
        assert_eq!(filter.count(key), 8);
    }

    #[test]
    fn a_false_positive_is_not_removed() {
        let mut filter = filled(10_000, 0.03);
        let wrong = (0..)
            .map(absent)
            .find(|&hash| filter.contains(hash))
            .unwrap();
        assert!(!filter.remove(wrong) && filter.count(wrong) == 0);
        assert!((0..10_000).all(|i| filter.contains(mix64(i))));
    }

    #[test]
    fn the_rate_and_the_sizes_are_those_of_the_formulas() {
        let filter = filled(200_000, 0.01);
        assert_eq!(filter.fingerprint_bits(), 10);
        let queries = 300_000;
        let hits = (0..queries).filter(|&i| filter.contains(absent(i))).count() as u64;
        let (low, high) = math::binomial_interval(queries, filter.fpr(), 1e-9);
        assert!((low..=high).contains(&hits), "{low} {hits} {high}");
        let slots = filter.slots();
        // An allocation is rounded up to lines.
        let near = |bytes: usize, least: u64| (least..least + 64).contains(&(bytes as u64));
        assert!(near(filter.filter_bytes(), (slots * 12).div_ceil(8) + 7));
        assert!(near(filter.exact_bytes(), slots * 8));
        assert_eq!(
            filter.size_in_bytes(),
            filter.filter_bytes() + filter.exact_bytes()
        );
        // The essay's, of a table large enough that what small ones have on top is little.
        let large = AdaptiveCuckoo::new(&Config::new(10_000_000).fpr(0.0075)).unwrap();
        let bits = |bytes: usize| bytes as f64 * 8.0 / 1e7;
        assert!((bits(large.filter_bytes()) - 12.63).abs() < 0.01);
        assert!((bits(large.exact_bytes()) - 67.4).abs() < 0.05);
    }

    #[test]
    fn batches_answer_as_single_calls() {
        let filter = filled(50_000, 0.03);
        let hashes: Vec<u64> = (0..4000)
            .map(|i| mix64(i * 25))
            .chain((0..4000).map(absent))
            .collect();
        let mut out = vec![false; hashes.len()];
        filter.contains_batch(&hashes, &mut out);
        assert!(
            hashes
                .iter()
                .zip(&out)
                .all(|(&hash, &told)| filter.contains(hash) == told)
        );
        assert!(out[..2000].iter().all(|&told| told));
    }

    #[test]
    fn what_cannot_be_built_is_refused_by_name() {
        for (config, at_fault) in [
            (Config::default(), "capacity"),
            (Config::new(10).fpr(0.0), "0"),
            (Config::new(10).set("semi_sort", 1), "semi_sort"),
            (Config::new(10).set("bits", 3), "bits"),
            (Config::new(10).set("colour", 3), "colour"),
            (Config::new(1 << 51), "buckets"),
            (Config::new(u64::MAX), "capacity"),
        ] {
            let error = AdaptiveCuckoo::new(&config).unwrap_err().to_string();
            assert!(error.contains(at_fault), "{config}: {error}");
        }
    }
}
