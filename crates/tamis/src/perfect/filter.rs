//! The perfect-hash filter: a fingerprint under the number of each key, and a value beside it
//! that can be changed.
//!
//! The essay is at [`Perfect`].

use crate::bits::{fastrange, low_mask};
use crate::build::pairs;
use crate::config::{Config, Param};
use crate::error::{BuildError, DecodeError};
use crate::filter::{Filter, Kind, Map, Remove};
use crate::format::{Decoder, Encoder};
use crate::key::Key;
use crate::keyed::Keyed;
use crate::lookup::{self, NEAR, Round};
use crate::option;
use crate::packed::{Packed, View};
use crate::perfect::function::{self, Function};

/// A filter of a fixed set whose keys have numbers, and values that can be changed; keys can be
/// removed.
///
/// ```
/// use tamis::{Config, Keyed, Perfect};
///
/// let config = Config::default().fpr(0.001).set("value_bits", 7);
/// let ages = [("alice", 31), ("bob", 27), ("carol", 45)];
/// let mut ages = Keyed::<Perfect>::from_pairs(&config, ages)?;
/// assert_eq!(ages.get("bob"), Some(27));
///
/// assert!(ages.set("bob", 28));
/// assert_eq!(ages.get("bob"), Some(28));
/// assert!(ages.remove("carol"));
/// assert_eq!(ages.get("carol"), None);
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// # The idea
///
/// ```text
///   hash ──► perfect hash function ──► number of the key
///
///               0             1             2           …       n − 1
///        ┌─────────────┬─────────────┬─────────────┬─ … ─┬─────────────┐
///        │ fp │ value  │ fp │ value  │ 0  │ 0      │     │ fp │ value  │
///        └─────────────┴─────────────┴─────────────┴─ … ─┴─────────────┘
///                                      removed
/// ```
///
/// The function (`Function`) gives each key of the set a number of its own, from 0 to n − 1,
/// and any other key some such number. Under it lies the key's fingerprint, 1 to 2ᶠ − 1, with
/// which another key agrees in one of 2ᶠ − 1 cases. 0 stands for a key that was removed: nothing
/// agrees with it.
///
/// # Values
///
/// Beside the fingerprint there is room for a value of some bits: then the filter is a map, the
/// *Bloomier filter* of Pagh, Pagh and Rao. Members always have their own value. Any other key
/// has none, or with the probability of a false positive that of some member. The keys are fixed,
/// but the values are not: setting one writes one entry, and removing a key clears it. For values
/// of other types, [`Perfect::index`] is the key's number, which stays as it is: keep the values
/// in an array of your own.
///
/// # Cost
///
/// f + v + 2.87 bits per key: 10.9 at 8 bits, where a lookup errs in 1/255 = 0.392 % of cases;
/// with `bucket=3.5`, 10.5, and with 4, 10.2. A lookup reads a byte and an entry. Published
/// descriptions give a rate of 2⁻ᶠ, which leaves no value for keys that were removed.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `bits` | 2 to 32 | the fewest for the rate | bits of a fingerprint: more make the rate lower |
/// | `value_bits` | 0 to 57 − bits | none, or what the values need | bits of a value: the greatest that can be set later |
/// | `bucket` | 2 to 4 | 3 | keys for each pilot: fewer build faster; more make the filter smaller, above 3 lookups slower |
///
/// # When to choose it
///
/// When something is to be kept for each key of a fixed set, or keys are to leave it. As a filter
/// alone, a [`BinaryFuse8`](crate::BinaryFuse8) is smaller and faster.
///
/// # Bibliography
///
/// - Pagh, Pagh, Rao, *An optimal Bloom filter replacement*, 2005: fingerprints under perfect
///   hashing, and values.
/// - Chazelle, Kilian, Rubinfeld, Tal, *The Bloomier filter*, 2004: the map with one-sided
///   errors.
#[derive(Clone, Debug)]
pub struct Perfect {
    function: Function,
    /// Fingerprints, and above them the values.
    entries: Packed,
    /// The bits of a fingerprint.
    mask: u64,
    /// The keys that were not removed.
    len: u64,
}

/// Widths of a fingerprint; one bit would leave only one fingerprint.
const BITS: std::ops::RangeInclusive<u64> = 2..=32;
/// The most bits of a fingerprint and a value together.
const MOST_ENTRY: u32 = 57;
/// Keys for each pilot, and the default.
const BUCKET: std::ops::RangeInclusive<f64> = 2.0..=4.0;
const DEFAULT_BUCKET: f64 = 3.0;

/// The checked configuration.
struct Plan {
    bits: u32,
    value_bits: Option<u32>,
    bucket: f64,
}

impl Plan {
    fn new(config: &Config, hashes: &[u64]) -> Result<Plan, BuildError> {
        let (_, fpr) = config.check::<Perfect>(hashes)?;
        let needed = (1.0 / fpr + 1.0).log2().ceil();
        let needed = (needed <= 64.0).then_some(needed as u32);
        let least = rate(*BITS.end() as u32);
        let bits = config.bits::<Perfect>(BITS, needed, least)?;
        let most = MOST_ENTRY - bits;
        let expected = format!("a whole number up to {most}");
        let value_bits = config.param::<u32>(option::VALUE_BITS.name, &expected)?;
        if let Some(bits) = value_bits.filter(|&bits| bits > most) {
            return Err(BuildError::parameter("value_bits", bits, expected));
        }
        let expected = format!("a number from {} to {}", BUCKET.start(), BUCKET.end());
        let bucket = config.param::<f64>(option::BUCKET.name, &expected)?;
        let bucket = bucket.unwrap_or(DEFAULT_BUCKET);
        if !BUCKET.contains(&bucket) {
            return Err(BuildError::parameter("bucket", bucket, expected));
        }
        Ok(Plan {
            bits,
            value_bits,
            bucket,
        })
    }

    /// The filter of these hashes, with values of 0.
    fn build(
        &self,
        config: &Config,
        hashes: &[u64],
        value_bits: u32,
    ) -> Result<Perfect, BuildError> {
        let (function, salted) = Function::build(config, hashes, self.bucket)?;
        let len = function.keys();
        let mut entries = Packed::zeroed(len, self.bits + value_bits)?;
        let mask = low_mask(self.bits);
        if let Some(reader) = function.reader() {
            for &salted in salted.iter() {
                entries.set(reader.number(salted), fingerprint(salted, mask));
            }
        }
        Ok(Perfect {
            function,
            entries,
            mask,
            len,
        })
    }
}

/// The fingerprint of a salted hash, 1 to 2ᶠ − 1. The bucket comes from the upper half, so this
/// comes from the lower.
#[inline(always)]
fn fingerprint(salted: u64, mask: u64) -> u64 {
    1 + fastrange(salted.rotate_left(32), mask).0
}

/// The rate of fingerprints of a width, one value of which is reserved for removed keys.
fn rate(bits: u32) -> f64 {
    1.0 / low_mask(bits) as f64
}

impl Remove for Perfect {
    /// Takes out a key and its value. Its place stays, so the filter becomes no smaller, and no
    /// other key can have it.
    fn remove(&mut self, hash: u64) -> bool {
        let Some(number) = self.index(hash) else {
            return false;
        };
        self.entries.set(number, 0);
        self.len -= 1;
        true
    }
}

impl Map for Perfect {
    /// Values have `value_bits` bits where the configuration says so, and otherwise as many as
    /// the greatest needs.
    ///
    /// # Errors
    ///
    /// Also where a value does not fit.
    fn from_pairs(
        config: &Config,
        pairs: impl IntoIterator<Item = (u64, u64)>,
    ) -> Result<Perfect, BuildError> {
        let pairs: Vec<(u64, u64)> = pairs.into_iter().collect();
        let keys = config.capacity.max(pairs.len() as u64);
        let plan = Plan::new(&config.clone().capacity(keys), &[])?;
        let greatest = pairs.iter().map(|&(_, value)| value).max().unwrap_or(0);
        let needed = 64 - greatest.leading_zeros();
        let value_bits = plan.value_bits.unwrap_or(needed);
        let most = MOST_ENTRY - plan.bits;
        if needed > value_bits || value_bits > most {
            let expected = if needed > most {
                format!(
                    "values below 2^{most} beside fingerprints of {} bits, but there is {greatest}",
                    plan.bits
                )
            } else {
                format!("{needed} or more, for a value of {greatest}")
            };
            return Err(BuildError::parameter("value_bits", value_bits, expected));
        }
        let kept = pairs::distinct(&mut pairs.iter().map(|pair| pair.0), &|i| pairs[i].1)?;
        let hashes: Vec<u64> = kept.iter().map(|&i| pairs[i].0).collect();
        let mut filter = plan.build(config, &hashes, value_bits)?;
        for (hash, value) in pairs {
            let set = filter.set(hash, value);
            debug_assert!(set);
        }
        Ok(filter)
    }

    #[inline(always)]
    fn get(&self, hash: u64) -> Option<u64> {
        let number = self.index(hash)?;
        Some(self.entries.get(number) >> self.fingerprint_bits())
    }

    fn value_bits(&self) -> u32 {
        self.entries.width() - self.fingerprint_bits()
    }
}

impl Perfect {
    /// Bits of a fingerprint.
    pub fn fingerprint_bits(&self) -> u32 {
        self.mask.count_ones()
    }

    /// How many keys the filter was built from: those removed since are among them.
    pub fn keys(&self) -> u64 {
        self.function.keys()
    }

    /// The number of a key, below [`keys`](Self::keys), which is its own and stays: `None` where
    /// the key is not contained.
    #[inline(always)]
    pub fn index(&self, hash: u64) -> Option<u64> {
        let reader = self.reader()?;
        reader.index(reader.function.salted(hash))
    }

    /// Changes the value of a key; `false` where the key is not contained or the value has more
    /// than [`value_bits`](Map::value_bits) bits, and then nothing has changed.
    ///
    /// Only set what is a member: with probability [`fpr`](Filter::fpr) another key changes the
    /// value of a member.
    pub fn set(&mut self, hash: u64, value: u64) -> bool {
        let fits = value <= low_mask(self.value_bits());
        let Some(number) = self.index(hash).filter(|_| fits) else {
            return false;
        };
        let fingerprint = self.entries.get(number) & self.mask;
        let entry = value << self.fingerprint_bits() | fingerprint;
        self.entries.set(number, entry);
        true
    }

    /// `None` where there are no keys.
    #[inline(always)]
    fn reader(&self) -> Option<Reader<'_>> {
        Some(Reader {
            function: self.function.reader()?,
            entries: self.entries.view(),
            mask: self.mask,
        })
    }

    fn is_removed(&self, number: u64) -> bool {
        self.entries.get(number) & self.mask == 0
    }
}

/// The filter of some keys, for lookups.
#[derive(Clone, Copy)]
struct Reader<'a> {
    function: function::Reader<'a>,
    entries: View<'a>,
    mask: u64,
}

impl Reader<'_> {
    /// The number of a salted hash, if the entry there is its own.
    #[inline(always)]
    fn index(&self, salted: u64) -> Option<u64> {
        let number = self.function.number(salted);
        self.agrees(number, salted).then_some(number)
    }

    /// Whether the entry of this number belongs to a salted hash.
    #[inline(always)]
    fn agrees(&self, number: u64, salted: u64) -> bool {
        self.entries.word(number) & self.mask == fingerprint(salted, self.mask)
    }
}

/// The position of an entry is known only once the pilot is read.
impl Round for Reader<'_> {
    const PREFETCH_FROM: usize = NEAR;

    #[inline(always)]
    fn bytes(self) -> usize {
        self.function.bytes() + self.entries.size_in_bytes()
    }

    #[inline(always)]
    fn probes(self) -> usize {
        1
    }

    #[inline(always)]
    fn start(self, hash: u64) -> u64 {
        self.function.salted(hash)
    }

    #[inline(always)]
    fn prefetch_start(self, salted: u64) {
        self.function.prefetch(salted);
    }

    /// The number of the entry, and above it the fingerprint that must stand there: 32 bits each.
    #[inline(always)]
    fn place<const MANY: bool>(self, salted: u64) -> (u64, u64) {
        let number = self.function.number(salted);
        (salted, number | fingerprint(salted, self.mask) << 32)
    }

    #[inline(always)]
    fn prefetch(self, place: u64) {
        self.entries.prefetch(place & low_mask(32));
    }

    #[inline(always)]
    fn test(self, place: u64) -> u64 {
        let entry = self.entries.word(place & low_mask(32)) & self.mask;
        u64::from(entry == place >> 32)
    }

    #[inline(always)]
    fn step(self, salted: u64) -> (u64, u64) {
        let number = self.function.number(salted);
        (salted, u64::from(self.agrees(number, salted)))
    }
}

impl Keyed<Perfect> {
    /// The number of a key: see [`Perfect::index`].
    #[inline]
    pub fn index<K: Key + ?Sized>(&self, key: &K) -> Option<u64> {
        self.filter().index(self.hash(key))
    }

    /// Changes the value of a key; `false` where it is not contained or the value does not fit:
    /// see [`Perfect::set`].
    pub fn set<K: Key + ?Sized>(&mut self, key: &K, value: u64) -> bool {
        let hash = self.hash(key);
        self.filter_mut().set(hash, value)
    }
}

impl Filter for Perfect {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        // Not a closure: that may become a call, to which the reader would be passed in memory.
        match self.reader() {
            Some(reader) => reader.index(reader.function.salted(hash)).is_some(),
            None => false,
        }
    }

    /// The number of distinct keys, less those removed.
    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        self.function.size_in_bytes() + self.entries.size_in_bytes()
    }

    /// The share of slots that lead to a key that is there, over the number of fingerprints.
    fn fpr(&self) -> f64 {
        let keys = self.function.keys();
        let rate = rate(self.fingerprint_bits());
        if self.len == keys {
            return if keys == 0 { 0.0 } else { rate };
        }
        let numbers = (0..keys).chain(self.function.moved());
        let removed = numbers.filter(|&number| self.is_removed(number)).count();
        (1.0 - removed as f64 / self.function.slots() as f64) * rate
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        if let Some(reader) = self.reader() {
            let salted = reader.function.salted(hash);
            reader.entries.prefetch(reader.function.number(salted));
        }
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::passes(self.reader(), hashes, out);
    }
}

impl Kind for Perfect {
    const ABOUT: &'static str =
        "a fixed set whose keys have numbers, and values that can be changed";
    const PARAMS: &'static [Param] = &[
        Param {
            name: option::BITS.name,
            values: "2 to 32",
            default: "the fewest for the rate",
            about: "bits of a fingerprint: more make the rate lower",
        },
        Param {
            name: option::VALUE_BITS.name,
            values: "0 to 57 − bits",
            default: "none, or what the values need",
            about: "bits of a value: the greatest that can be set later",
        },
        Param {
            name: option::BUCKET.name,
            values: "2 to 4",
            default: "3",
            about: "keys for each pilot: fewer build faster; more make the filter smaller, above 3 lookups slower",
        },
    ];

    /// The filter of these hashes, with values of 0.
    fn build(config: &Config, hashes: &mut [u64]) -> Result<Perfect, BuildError> {
        let plan = Plan::new(config, hashes)?;
        plan.build(config, hashes, plan.value_bits.unwrap_or(0))
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("bits", u64::from(self.fingerprint_bits()));
        out.param("value_bits", u64::from(self.value_bits()));
        self.function.encode(out);
        self.entries.encode(out);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Perfect, DecodeError> {
        let bits = input.param_in("bits", BITS)? as u32;
        let value_bits = input.param_in("value_bits", 0..=u64::from(MOST_ENTRY - bits))? as u32;
        let function = Function::decode(input)?;
        let keys = function.keys();
        let filter = Perfect {
            entries: Packed::decode(input, "entries", keys, bits + value_bits)?,
            function,
            mask: low_mask(bits),
            len: input.len(),
        };
        let removed = (0..keys).filter(|&number| filter.is_removed(number));
        let held = keys - removed.clone().count() as u64;
        if held != filter.len {
            let expected = format!("{}, the number of keys", filter.len);
            return Err(DecodeError::invalid("entries", held, expected));
        }
        let mut traces = removed.filter(|&number| filter.entries.get(number) != 0);
        if let Some(number) = traces.next() {
            let expected = "an entry without a value, as its key was removed";
            return Err(DecodeError::invalid("entry", number, expected));
        }
        drop(traces);
        Ok(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::error::BuildErrorKind;
    use crate::format::repair_checksums;
    use crate::math;

    fn hits(filter: &Perfect, queries: u64) -> u64 {
        let absent = (0..queries).map(|i| mix64(1 << 40 | i));
        absent.filter(|&hash| filter.contains(hash)).count() as u64
    }

    #[test]
    fn size_and_rate_are_those_of_the_formula() {
        // spec: 8 bits take 10.1 to 11.0 bits per key, and 10.2 where the function is compact.
        for (keys, bucket, most) in [
            (300_000, 3.0, 10.9),
            (300_000, 3.5, 10.5),
            (100_000, 4.0, 10.2),
        ] {
            let config = Config::default().fpr(0.004).set("bucket", bucket);
            let mut hashes: Vec<u64> = (0..keys).map(mix64).collect();
            let filter = Perfect::build(&config, &mut hashes).unwrap();
            assert_eq!(filter.fingerprint_bits(), 8);
            let bits = filter.size_in_bytes() as f64 * 8.0 / keys as f64;
            assert!((10.1..most).contains(&bits), "{bits}");
            let queries = 3_000_000;
            let (low, high) = math::binomial_interval(queries, 1.0 / 255.0, 1e-9);
            let hits = hits(&filter, queries);
            assert!((low..=high).contains(&hits), "{hits}: {low} to {high}");
            assert_eq!(filter.fpr(), 1.0 / 255.0);
        }
    }

    #[test]
    fn members_have_their_values_and_others_seldom_any() {
        let pairs: Vec<(u64, u64)> = (0..20_000).map(|i| (mix64(i), i)).collect();
        let mut map =
            Perfect::from_pairs(&Config::default().fpr(0.01), pairs.iter().copied()).unwrap();
        assert_eq!(map.value_bits(), 15);
        let all = |map: &Perfect, value: fn(u64) -> u64| {
            pairs
                .iter()
                .all(|&(hash, i)| map.get(hash) == Some(value(i)))
        };
        assert!(all(&map, |i| i));
        let size = map.size_in_bytes();
        for &(hash, i) in &pairs {
            assert!(map.set(hash, 32_767 - i));
        }
        assert!(all(&map, |i| 32_767 - i));
        assert_eq!(map.size_in_bytes(), size);
        let before = map.clone();
        assert!(!map.set(pairs[0].0, 32_768), "a value that does not fit");
        assert!(map.entries.iter().eq(before.entries.iter()));
        let some = (0..100_000).filter(|&i| map.get(mix64(1 << 40 | i)).is_some());
        let (low, high) = math::binomial_interval(100_000, map.fpr(), 1e-9);
        assert!((low..=high).contains(&(some.count() as u64)));
    }

    #[test]
    fn numbers_are_the_keys_own_and_stay() {
        let hashes: Vec<u64> = (0..5000).map(mix64).collect();
        let mut filter = Perfect::build(&Config::default(), &mut hashes.clone()).unwrap();
        let numbers: Vec<u64> = hashes.iter().map(|&h| filter.index(h).unwrap()).collect();
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..5000));
        for &hash in &hashes[..2000] {
            assert!(filter.remove(hash));
        }
        let left: Vec<u64> = hashes[2000..]
            .iter()
            .map(|&h| filter.index(h).unwrap())
            .collect();
        assert_eq!(left, numbers[2000..]);
    }

    #[test]
    fn what_was_removed_is_gone_and_nothing_else() {
        let pairs: Vec<(u64, u64)> = (0..30_000).map(|i| (mix64(i), i % 8)).collect();
        let mut map =
            Perfect::from_pairs(&Config::default().fpr(0.004), pairs.iter().copied()).unwrap();
        for &(hash, _) in &pairs[..20_000] {
            assert!(map.remove(hash));
            assert!(!map.remove(hash) && map.get(hash).is_none());
        }
        assert_eq!((map.len(), map.keys()), (10_000, 30_000));
        for &(hash, value) in &pairs[20_000..] {
            assert_eq!(map.get(hash), Some(value));
        }
        let queries = 3_000_000;
        assert!(
            (map.fpr() * 3.0 * 255.0 - 1.0).abs() < 0.02,
            "{}",
            map.fpr()
        );
        let (low, high) = math::binomial_interval(queries, map.fpr(), 1e-9);
        let hits = hits(&map, queries);
        assert!((low..=high).contains(&hits), "{hits}: {low} to {high}");
    }

    #[test]
    fn batches_of_any_length_answer_as_single_lookups_do() {
        // With values that make it large enough for passes, and without.
        for value_bits in [0, 49] {
            let config = Config::default().fpr(0.004).set("value_bits", value_bits);
            let mut hashes: Vec<u64> = (0..40_000).map(mix64).collect();
            let mut filter = Perfect::build(&config, &mut hashes).unwrap();
            assert_eq!(filter.size_in_bytes() >= NEAR, value_bits > 0);
            for hash in (0..10_000).map(mix64) {
                assert!(filter.remove(hash));
            }
            // A member that is there, one that was removed, and one that never was, in turn.
            let asked: Vec<u64> = (0..10_000)
                .flat_map(|i| [mix64(20_000 + i), mix64(i), mix64(1 << 40 | i)])
                .collect();
            let expected: Vec<bool> = asked.iter().map(|&hash| filter.contains(hash)).collect();
            let members = expected.iter().step_by(3).filter(|&&is| is).count();
            assert_eq!(members, 10_000);
            for length in [0, 1, 31, 32, 255, 256, 257, 1287, asked.len()] {
                // Answers beyond the hashes stay as they are.
                let mut out = vec![true; length + 1];
                filter.contains_batch(&asked[..length], &mut out);
                assert!(out[..length] == expected[..length], "{length} hashes");
                assert!(out[length]);
                let mut out = vec![true; length];
                filter.contains_batch(&asked, &mut out);
                assert!(out == expected[..length], "{length} answers");
            }
        }
    }

    #[test]
    fn two_values_for_one_key_are_refused_by_their_positions() {
        let config = Config::default();
        let pairs = [(5, 1), (9, 2), (5, 1), (7, 0), (9, 3)];
        let error = Perfect::from_pairs(&config, pairs.iter().copied()).unwrap_err();
        let (first, second) = (1, 4);
        assert_eq!(error.kind(), &BuildErrorKind::Conflict { first, second });
        assert!(error.to_string().contains("1 and 4"), "{error}");
        let map = Perfect::from_pairs(&config, pairs[..4].iter().copied()).unwrap();
        assert_eq!((map.len(), map.get(5), map.get(9)), (3, Some(1), Some(2)));
    }

    #[test]
    fn values_need_room() {
        let narrow = Config::default().set("value_bits", 3);
        assert!(Perfect::from_pairs(&narrow, [(1, 7)]).is_ok());
        assert!(Perfect::from_pairs(&narrow, [(1, 8)]).is_err());
        assert!(Perfect::from_pairs(&Config::default(), [(1, u64::MAX)]).is_err());
        let map = Perfect::from_pairs(&Config::default(), []).unwrap();
        assert_eq!((map.get(1), map.fpr()), (None, 0.0));
    }

    #[test]
    fn forged_files_are_refused_or_answer() {
        let config = Config::default().fpr(0.1).set("value_bits", 3);
        let mut keyed = Keyed::<Perfect>::build(&config, 0..100u64).unwrap();
        let removed = keyed.hash(&7u64);
        assert!(keyed.filter_mut().remove(removed));
        let file = keyed.to_bytes();
        // The number of keys, the seven parameters, and all sections: pilots, moved, entries.
        let header = u32::from_le_bytes([file[12], file[13], file[14], file[15]]) as usize;
        let bytes = (64..72).chain(96..152).chain(header..file.len() - 24);
        let (mut refused, mut opened) = (0, 0);
        for bit in bytes.flat_map(|byte| 8 * byte..8 * byte + 8) {
            let mut forged = file.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            repair_checksums(&mut forged);
            let Ok(mut read) = Keyed::<Perfect>::open(forged.clone()) else {
                refused += 1;
                continue;
            };
            opened += 1;
            assert!(read.to_bytes() == forged, "bit {bit}");
            assert!((0.0..=1.0).contains(&read.filter().fpr()));
            for i in 0..150u64 {
                let hash = read.hash(&i);
                let filter = read.filter_mut();
                let (len, held) = (filter.len(), filter.contains(hash));
                assert_eq!(filter.get(hash).is_some(), held);
                assert_eq!(filter.set(hash, 5), held);
                assert_eq!(filter.remove(hash), held);
                assert_eq!(filter.len(), len - u64::from(held));
            }
        }
        assert!(refused > 500 && opened > 500, "{refused}, {opened}");
    }
}
