//! The scalable Bloom filter: a list of Bloom filters, each larger and stricter than the one
//! before.
//!
//! The essay is at [`Scalable`].

use crate::bits::mix64;
use crate::bloom::{Bloom, BloomG, View};
use crate::buf::Buf;
use crate::config::{Config, Param};
use crate::error::{
    BuildError, BuildErrorKind, DecodeError, Full, FullKind, MergeError, MergeErrorKind, NoMemory,
};
use crate::filter::{Filter, Insert, Kind, Merge};
use crate::format::{Decoder, Encoder};
use crate::kinds::Declared;
use crate::lookup::{self, Passes};
use crate::math::{self, ScalableSchedule};
use crate::option;

/// A list of Bloom filters that grows with its keys and keeps its promised rate. Insert, merge.
///
/// ```
/// use tamis::{Config, Filter, Keyed, Scalable};
///
/// let mut seen: Keyed<Scalable> = Keyed::new(&Config::new(100).fpr(0.01))?;
/// for i in 0..10_000u64 {
///     seen.insert(&i)?; // a hundred times the capacity
/// }
/// assert!((0..10_000u64).all(|i| seen.contains(&i)));
/// assert!(seen.filter().fpr() <= 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///   slice 0   n₀ keys at ε₀      ██████                      full
///   slice 1   s·n₀ keys at ε₁    ████████████                full
///   slice 2   s²·n₀ keys at ε₂   █████████░░░░░░░░░░░░░░░    takes the insertions
///
///   ε₀ + ε₁ + ε₂ + … = ε, however many follow
/// ```
///
/// A Bloom filter must know its number of keys in advance. This one need not: when the newest
/// slice holds what it was made for, a larger one is begun. Nothing is moved and nothing is
/// forgotten. A key is present when some slice says so, so the errors of the slices add up; they
/// are shares of a series that converges to the rate asked for, and the promise holds at any
/// size.
///
/// # Lookup and insert
///
/// A lookup asks the slices from the newest, which has half of the keys, to the oldest; an absent
/// key is refused by each after two probes on average. An insertion writes to the newest alone.
/// Every slice has places of its own, from `mix64(hash + number·φ)`, so that a key that one slice
/// takes for a member is no likelier to fool the next. Repeats are inserted again and fill the
/// slices; where there are many, ask `contains` first.
///
/// # The shares
///
/// With `ratio` r slice i gets ε(1 − r)rⁱ; with `ratio=square` ε·6/(π(i + 1))². Bits per key at ε
/// = 1 % and s = 2, all slices full (`math::scalable_bits_per_key`):
///
/// | | 1 slice | 10 slices | 20 slices |
/// |---|---|---|---|
/// | r = 0.5 | 11.03 | 22.58 | 37.00 |
/// | r = 0.85, the default | 13.53 | 16.24 | 19.62 |
/// | r = 0.9 | 14.38 | 16.13 | 18.32 |
/// | square | 10.62 | 19.70 | 22.86 |
///
/// # Slices of Bloom-g
///
/// `slice=bloom_g` makes each slice a [`BloomG`]: the bits of a key lie in two lines of 512 bits,
/// so that a lookup reads at most two lines a slice where it reads up to 12 of the tenth
/// [`Bloom`] at 1 %. A slice has the fewest words whose exact rate (`math::bloom_g_fpr`) at its
/// number of keys is within its share, so that number is the load at which the share is used up,
/// but for the keys of the last word (`math::bloom_g_capacity`). At 1 % and r = 0.85 it takes
/// 13.75 bits per key in the first slice and 16.61 after ten, 2 % more than Bloom filters.
/// Insertions gain by it. Lookups need not: most slices do not hold the key, a [`Bloom`] says so
/// after two probes, and here a word's bits must all be drawn first.
///
/// # Cost
///
/// 16.24 bits per key after ten slices where one Bloom filter of the final size takes 9.59. Just
/// after a growth the newest slice is empty and the list has room for s times the keys that it
/// holds: with s = 2 that is 33 bits per key. A lookup costs as many probes as there are slices,
/// times two. `growth=4` halves the number of slices and doubles that slack.
///
/// # Merging
///
/// Filters of one configuration merge whatever their lengths: a slice is united with ours of the
/// same number where both together fit it, byte for byte as if its keys had been inserted here;
/// otherwise it is appended. The shares of appended slices come on top, and
/// [`Scalable::fpr_bound`] says what is promised then.
///
/// A file has room for 62 slices. Growth alone hardly comes there: they hold 2⁶² times the keys
/// of the first. Merging does, as full filters of g slices add g each time: so it appends up to
/// 48 and then refuses, with [`FullKind::Slices`]. With s = 2 what is left lets the newest slice
/// become 2¹⁴ times larger. To unite many full filters, make them for the capacity of all, so
/// that their first slices fit together.
///
/// # Parameters
///
/// | name | values | default | what it changes |
/// |---|---|---|---|
/// | `growth` | 2 to 8 | 2 | how many times the keys of a slice the next one has |
/// | `ratio` | 0.5 to 0.95, or `square` | 0.85 | error of a slice over that of the one before; `square` gives slice i a share of 1/i² |
/// | `slice` | `bloom` or `bloom_g` | `bloom` | what a slice is: a lookup reads up to k lines of a `bloom`, two of a `bloom_g` |
///
/// # When to choose it
///
/// When the number of keys is not known within a factor of two or so. If it is, make one filter
/// for the most: even at half its load [`Bloom`] is the smaller and answers from one array.
/// [`Aleph`](crate::Aleph) grows in one table, so that a lookup reads one place, takes less
/// space after many growths, and lets keys leave; this one takes insertions faster.
///
/// A survey proposes to grow by throwing the filter away and beginning a new one, which "may lose
/// some data". A filter that loses keys answers "no" falsely; there is no such operation here.
/// With the keys at hand, build a larger filter; without them, this is the way.
///
/// # Bibliography
///
/// - Almeida, Baquero, Preguiça, Hutchison, *Scalable Bloom filters*, 2007: the list, and the
///   geometric shares.
/// - Apple, *Stretching your data with taffy filters*, 2022: the shares 1/i², and what a list
///   costs beside one table.
/// - Pagh, Segev, Wieder, *How to approximate a set without knowing its size in advance*, 2013:
///   that growth must cost something, log log n bits per key.
#[derive(Clone, Debug)]
pub struct Scalable {
    plan: Plan,
    /// By number, at least one; the last takes the insertions.
    slices: Vec<Slice>,
}

/// What was asked for; two filters merge when it is equal.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Keys of the first slice.
    first: u64,
    /// How many times the keys of a slice the next one has.
    growth: u64,
    /// The sum of all shares.
    fpr: f64,
    /// The share of a slice over that of the one before; 0 where the shares are inverse squares.
    ratio: f64,
    layout: Layout,
}

/// Where a key's bits lie in a slice: anywhere, or in two words.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Layout {
    Bloom = 0,
    BloomG = 1,
}

#[derive(Clone, Debug)]
struct Slice {
    /// Decides capacity, share and places. Numbers start at 0 and leave none out; merging may
    /// repeat one.
    number: u32,
    /// Keys that it is made for.
    capacity: u64,
    array: Array,
}

/// The filter of a slice, by its layout.
#[derive(Clone, Debug)]
enum Array {
    Bloom(Bloom),
    BloomG(BloomG),
}

/// The slices that a file has room for beside their table. They hold 2⁶² times the keys of the
/// first.
const MOST_SLICES: usize = 62;
/// The slices that merging makes; the others are left for growth.
const MOST_MERGED: usize = 48;
const MOST_GROWTH: u64 = 8;
const LEAST_RATIO: f64 = 0.5;
const MOST_RATIO: f64 = 0.95;
const MOST_BITS: u64 = 1 << 63;
/// Words of a slice in the table: number, keys, bits, k.
const ROW: usize = 4;
/// Bits of a word in the layout [`Layout::BloomG`], and how many of them a key has.
const WORD_BITS: u32 = 512;
const G: u32 = 2;

impl Layout {
    /// Bits that a slice has a multiple of, and the limits of its k.
    fn limits(self) -> (u64, std::ops::RangeInclusive<u64>) {
        match self {
            Layout::Bloom => (64, 1..=64),
            Layout::BloomG => (u64::from(WORD_BITS), u64::from(G)..=u64::from(math::MAX_K)),
        }
    }
}

impl Array {
    fn new(layout: Layout, bits: u64, k: u32) -> Result<Array, NoMemory> {
        Ok(Array::from_parts(layout, Buf::zeroed(bits / 64)?, k, 0))
    }

    fn from_parts(layout: Layout, words: Buf<u64>, k: u32, keys: u64) -> Array {
        match layout {
            Layout::Bloom => Array::Bloom(Bloom::from_parts(words, k, keys)),
            Layout::BloomG => Array::BloomG(BloomG::from_parts(words, WORD_BITS, G, k, keys)),
        }
    }

    fn layout(&self) -> Layout {
        match self {
            Array::Bloom(_) => Layout::Bloom,
            Array::BloomG(_) => Layout::BloomG,
        }
    }

    fn parts(&self) -> (&Buf<u64>, u32) {
        match self {
            Array::Bloom(filter) => (filter.words(), filter.k()),
            Array::BloomG(filter) => (filter.bits(), filter.k()),
        }
    }

    fn bits(&self) -> u64 {
        self.parts().0.len() as u64 * 64
    }

    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        match self {
            Array::Bloom(filter) => filter.contains(hash),
            Array::BloomG(filter) => filter.contains(hash),
        }
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        match self {
            Array::Bloom(filter) => filter.prefetch(hash),
            Array::BloomG(filter) => filter.prefetch(hash),
        }
    }

    fn filter(&self) -> &dyn Filter {
        match self {
            Array::Bloom(filter) => filter,
            Array::BloomG(filter) => filter,
        }
    }

    #[inline(always)]
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        match self {
            Array::Bloom(filter) => filter.insert(hash),
            Array::BloomG(filter) => filter.insert(hash),
        }
    }

    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), Full> {
        match self {
            Array::Bloom(filter) => filter.insert_batch(hashes),
            Array::BloomG(filter) => filter.insert_batch(hashes),
        }
    }

    fn merge(&mut self, other: &Array) -> Result<(), MergeError> {
        match (self, other) {
            (Array::Bloom(ours), Array::Bloom(theirs)) => ours.merge(theirs),
            (Array::BloomG(ours), Array::BloomG(theirs)) => ours.merge(theirs),
            // Filters of one plan have one layout.
            _ => Err(MergeErrorKind::Unsupported(Scalable::INFO.name).into()),
        }
    }
}

impl Plan {
    /// Keys that a slice is made for. `None` above 2⁶⁴.
    fn capacity(&self, number: u32) -> Option<u64> {
        self.first.checked_mul(self.growth.checked_pow(number)?)
    }

    /// The share of the error that a slice is made for.
    fn share(&self, number: u32) -> f64 {
        let schedule = if self.ratio == 0.0 {
            ScalableSchedule::InverseSquare
        } else {
            ScalableSchedule::Geometric { ratio: self.ratio }
        };
        math::scalable_slice_fpr(schedule, self.fpr, number)
    }

    /// Bits and k of a slice. `None` where no index could reach them.
    fn size(&self, number: u32) -> Option<(u64, u32)> {
        let (keys, share) = (self.capacity(number)?, self.share(number));
        match self.layout {
            Layout::Bloom => math::bloom_size(keys, share),
            Layout::BloomG => {
                let (words, k) = math::bloom_g_size(keys, share, WORD_BITS, G)?;
                let bits = words.checked_mul(u64::from(WORD_BITS))?;
                (bits <= MOST_BITS).then_some((bits, k))
            }
        }
    }
}

impl Slice {
    fn new(plan: &Plan, number: u32, array: Array) -> Slice {
        let capacity = plan.capacity(number).unwrap_or(u64::MAX);
        Slice {
            number,
            capacity,
            array,
        }
    }

    #[inline(always)]
    fn salt(&self) -> u64 {
        u64::from(self.number).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// The hash as this slice sees it.
    #[inline(always)]
    fn salted(&self, hash: u64) -> u64 {
        mix64(hash.wrapping_add(self.salt()))
    }

    #[inline(always)]
    fn keys(&self) -> u64 {
        match &self.array {
            Array::Bloom(filter) => filter.len(),
            Array::BloomG(filter) => filter.len(),
        }
    }

    /// A clone, where [`Clone`] would end the program for want of memory.
    fn try_clone(&self) -> Result<Slice, NoMemory> {
        let (layout, (words, k)) = (self.array.layout(), self.array.parts());
        Ok(Slice {
            number: self.number,
            capacity: self.capacity,
            array: Array::from_parts(layout, words.try_clone()?, k, self.keys()),
        })
    }
}

impl Scalable {
    /// How many slices there are.
    pub fn slices(&self) -> usize {
        self.slices.len()
    }

    /// The keys that the slices are made for, all together: one more begins the next slice, if no
    /// slice was appended by merging.
    ///
    /// ```
    /// use tamis::{Config, Keyed, Scalable};
    ///
    /// let mut seen: Keyed<Scalable> = Keyed::new(&Config::new(100))?;
    /// assert_eq!(seen.filter().room(), 100);
    /// seen.extend(0..101u64)?;
    /// assert_eq!((seen.filter().slices(), seen.filter().room()), (2, 300));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn room(&self) -> u64 {
        let sum = |sum: u64, slice: &Slice| sum.saturating_add(slice.capacity);
        self.slices.iter().fold(0, sum)
    }

    /// Bytes of the array that the next slice takes; 0 where there is no next one.
    ///
    /// ```
    /// use tamis::{Config, Filter, Keyed, Scalable};
    ///
    /// let mut seen: Keyed<Scalable> = Keyed::new(&Config::new(1000))?;
    /// let (before, next) = (seen.size_in_bytes(), seen.filter().next_slice_in_bytes());
    /// seen.extend(0..1001u64)?;
    /// assert!(seen.size_in_bytes() as u64 - before as u64 >= next);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn next_slice_in_bytes(&self) -> u64 {
        let size = self.plan.size(self.newest().number + 1);
        size.map_or(0, |(bits, _)| bits / 8)
    }

    /// The rate that is promised for the slices that there are, were they all full: below the
    /// rate asked for, unless slices were appended by merging.
    pub fn fpr_bound(&self) -> f64 {
        math::any(
            self.slices
                .iter()
                .map(|slice| self.plan.share(slice.number)),
        )
    }

    fn newest(&self) -> &Slice {
        &self.slices[self.slices.len() - 1]
    }

    /// Begins the next slice.
    #[cold]
    fn grow(&mut self) -> Result<(), Full> {
        let refused = |kind| Full::new(kind, self.len());
        let number = self.newest().number + 1;
        if self.slices.len() >= MOST_SLICES {
            return Err(refused(FullKind::Slices(MOST_SLICES as u64)));
        }
        let size = self.plan.size(number);
        let (bits, k) = size.ok_or(refused(FullKind::Capacity))?;
        let array = Array::new(self.plan.layout, bits, k)
            .map_err(|e| refused(FullKind::Memory(e.bytes)))?;
        let row = size_of::<Slice>() as u64;
        if self.slices.try_reserve_exact(1).is_err() {
            return Err(Full::new(FullKind::Memory(row), self.len()));
        }
        self.slices.push(Slice::new(&self.plan, number, array));
        Ok(())
    }

    /// The slice that takes the next key.
    #[inline(always)]
    fn open_slice(&mut self) -> Result<&mut Slice, Full> {
        let newest = self.newest();
        if newest.keys() >= newest.capacity {
            self.grow()?;
        }
        let last = self.slices.len() - 1;
        Ok(&mut self.slices[last])
    }

    /// For each of the other's slices, which of ours can take it in: as many as fit are united.
    fn matches(&self, other: &Scalable) -> Vec<Option<usize>> {
        let mut keys: Vec<u64> = self.slices.iter().map(Slice::keys).collect();
        let find = |theirs: &Slice| {
            let room = self.plan.capacity(theirs.number).unwrap_or(u64::MAX);
            let at = self.slices.iter().zip(&keys).position(|(ours, &keys)| {
                let shape =
                    |slice: &Slice| (slice.number, slice.array.bits(), slice.array.parts().1);
                shape(ours) == shape(theirs)
                    && keys
                        .checked_add(theirs.keys())
                        .is_some_and(|sum| sum <= room)
            })?;
            keys[at] += theirs.keys();
            Some(at)
        };
        other.slices.iter().map(find).collect()
    }
}

/// Slices of Bloom filters, for looking up: a hash that the newest does not have goes on to the
/// one before it.
#[derive(Clone, Copy)]
struct Slices<'a>(&'a [Slice]);

impl<'a> Passes for Slices<'a> {
    type Round = View<'a>;

    #[inline(always)]
    fn rounds(self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn round(self, number: usize) -> View<'a> {
        let slice = &self.0[self.0.len() - 1 - number];
        let (words, k) = slice.array.parts();
        View::new(words, k).salted(slice.salt())
    }
}

impl Filter for Scalable {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.slices
            .iter()
            .rev()
            .any(|slice| slice.array.contains(slice.salted(hash)))
    }

    fn len(&self) -> u64 {
        self.slices
            .iter()
            .fold(0, |sum: u64, slice| sum.saturating_add(slice.keys()))
    }

    fn size_in_bytes(&self) -> usize {
        let size = |slice: &Slice| slice.array.filter().size_in_bytes();
        let arrays = self.slices.iter().map(size);
        self.slices.capacity() * size_of::<Slice>() + arrays.sum::<usize>()
    }

    fn fpr(&self) -> f64 {
        math::any(self.slices.iter().map(|slice| slice.array.filter().fpr()))
    }

    /// Of the newest slice, which has half of the keys and takes the insertions.
    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        let newest = self.newest();
        newest.array.prefetch(newest.salted(hash));
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        match self.plan.layout {
            Layout::Bloom => lookup::passes(Some(Slices(&self.slices)), hashes, out),
            Layout::BloomG => lookup::calls(self, |hash| self.contains(hash), hashes, out),
        }
    }
}

impl Insert for Scalable {
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        let newest = self.open_slice()?;
        let salted = newest.salted(hash);
        newest.array.insert(salted)
    }

    /// Hands the newest slice as many as it has room for, salted, a few hundred at a time.
    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), Full> {
        let (mut salted, mut done) = ([0; 256], 0);
        while done < hashes.len() {
            let newest = self.open_slice().map_err(|full| full.after(done))?;
            let room = newest.capacity.saturating_sub(newest.keys()).max(1);
            let coming = &hashes[done..];
            let now = coming.len().min(salted.len()).min(room as usize);
            for (salted, &hash) in salted.iter_mut().zip(&coming[..now]) {
                *salted = newest.salted(hash);
            }
            let inserted = newest.array.insert_batch(&salted[..now]);
            inserted.map_err(|full| full.after(done + full.accepted()))?;
            done += now;
        }
        Ok(())
    }
}

impl Merge for Scalable {
    /// Unites slices of one number that fit together, and appends the others.
    fn merge(&mut self, other: &Scalable) -> Result<(), MergeError> {
        let (ours, theirs) = (&self.plan, &other.plan);
        MergeError::unless_equal("first", ours.first, theirs.first)?;
        MergeError::unless_equal("growth", ours.growth, theirs.growth)?;
        MergeError::unless_equal("fpr", ours.fpr, theirs.fpr)?;
        MergeError::unless_equal("ratio", ours.ratio, theirs.ratio)?;
        MergeError::unless_equal("slice", ours.layout as u64, theirs.layout as u64)?;
        let matches = self.matches(other);
        let more = matches.iter().filter(|at| at.is_none()).count();
        let keys = self.len();
        let refused = |kind| MergeErrorKind::Full(Full::new(kind, keys));
        if more > 0 && self.slices.len() + more > MOST_MERGED {
            return Err(refused(FullKind::Slices(MOST_MERGED as u64)).into());
        }
        // All that can fail comes first: the room for new slices, then the slices, then the
        // unions, whose shapes agree.
        if self.slices.try_reserve_exact(more).is_err() {
            let bytes = (more * size_of::<Slice>()) as u64;
            return Err(refused(FullKind::Memory(bytes)).into());
        }
        let mut appended = Vec::with_capacity(more);
        for (theirs, at) in other.slices.iter().zip(&matches) {
            if at.is_none() {
                let slice = theirs.try_clone();
                appended.push(slice.map_err(|e| refused(FullKind::Memory(e.bytes)))?);
            }
        }
        for (theirs, at) in other.slices.iter().zip(matches) {
            if let Some(at) = at {
                self.slices[at].array.merge(&theirs.array)?;
            }
        }
        self.slices.append(&mut appended);
        self.slices.sort_by_key(|slice| slice.number);
        Ok(())
    }
}

impl Kind for Scalable {
    const ABOUT: &'static str = "grows with its keys: for when their number is not known";
    const PARAMS: &'static [Param] = &[
        Param {
            name: option::GROWTH.name,
            values: "2 to 8",
            default: "2",
            about: "how many times the keys of a slice the next one has",
        },
        Param {
            name: option::RATIO.name,
            values: "0.5 to 0.95, or `square`",
            default: "0.85",
            about: "error of a slice over that of the one before; `square` gives slice i a share of 1/i²",
        },
        Param {
            name: option::SLICE.name,
            values: "`bloom` or `bloom_g`",
            default: "`bloom`",
            about: "what a slice is: a lookup reads up to k lines of a `bloom`, two of a `bloom_g`",
        },
    ];

    /// The capacity is that of the first slice: what comes after it makes the filter grow.
    fn build(config: &Config, hashes: &mut [u64]) -> Result<Scalable, BuildError> {
        let (keys, fpr) = config.check::<Scalable>(hashes)?;
        let expected = "a whole number from 2 to 8";
        let growth = config
            .param::<u64>(option::GROWTH.name, expected)?
            .unwrap_or(2);
        if !(2..=MOST_GROWTH).contains(&growth) {
            return Err(BuildError::parameter("growth", growth, expected));
        }
        let expected = "a number from 0.5 to 0.95, or `square`";
        let ratio = match config
            .param::<String>(option::RATIO.name, expected)?
            .as_deref()
        {
            None => 0.85,
            Some("square") => 0.0,
            Some(text) => text
                .parse()
                .ok()
                .filter(|ratio| (LEAST_RATIO..=MOST_RATIO).contains(ratio))
                .ok_or_else(|| BuildError::parameter("ratio", text, expected))?,
        };
        let expected = "`bloom` or `bloom_g`";
        let layout = match config
            .param::<String>(option::SLICE.name, expected)?
            .as_deref()
        {
            None | Some("bloom") => Layout::Bloom,
            Some("bloom_g") => Layout::BloomG,
            Some(text) => return Err(BuildError::parameter("slice", text, expected)),
        };
        let plan = Plan {
            first: keys.max(1),
            growth,
            fpr,
            ratio,
            layout,
        };
        let (bits, k) = plan.size(0).ok_or(BuildErrorKind::TooLarge {
            unit: "bits",
            needed: plan.first as f64 * math::bloom_bits_per_key(plan.share(0)),
            most: MOST_BITS,
        })?;
        let slices = vec![Slice::new(&plan, 0, Array::new(layout, bits, k)?)];
        let mut filter = Scalable { plan, slices };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("first", self.plan.first);
        out.param("growth", self.plan.growth);
        out.param("fpr", self.plan.fpr);
        out.param("ratio", self.plan.ratio);
        out.param("slice", self.plan.layout as u64);
        let row = |slice: &Slice| -> [u64; ROW] {
            let (number, (_, k)) = (u64::from(slice.number), slice.array.parts());
            [number, slice.keys(), slice.array.bits(), u64::from(k)]
        };
        let table = self.slices.iter().flat_map(row).flat_map(u64::to_le_bytes);
        out.made(table.collect());
        for slice in &self.slices {
            out.section(slice.array.parts().0);
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Scalable, DecodeError> {
        let plan = Plan {
            first: input.param_in("first", 1..=u64::MAX)?,
            growth: input.param_in("growth", 2..=MOST_GROWTH)?,
            fpr: input.real("fpr", |fpr| fpr < 1.0 && !math::hash_is_too_short(1, fpr))?,
            ratio: input.real("ratio", |ratio| {
                ratio.to_bits() == 0 || (LEAST_RATIO..=MOST_RATIO).contains(&ratio)
            })?,
            layout: match input.param_in("slice", 0..=1)? {
                0 => Layout::Bloom,
                _ => Layout::BloomG,
            },
        };
        let (multiple, ks) = plan.layout.limits();
        let bytes = input.next_bytes();
        let rows = bytes / (8 * ROW as u64);
        if !(1..=MOST_SLICES as u64).contains(&rows) {
            let expected = format!("rows of {} bytes, 1 to {MOST_SLICES}", 8 * ROW);
            return Err(DecodeError::invalid("the table of slices", bytes, expected));
        }
        let table = input.section::<u64>("the table of slices", rows * ROW as u64)?;
        let mut slices: Vec<Slice> = Vec::with_capacity(rows as usize);
        for row in table.as_chunks::<ROW>().0 {
            let &[number, keys, bits, k] = row;
            let last = slices.last().map(|slice| u64::from(slice.number));
            if number != last.unwrap_or(0) && last.is_none_or(|last| number != last + 1) {
                let expected = "0 at first, then that before or one more";
                return Err(DecodeError::invalid("a slice's number", number, expected));
            }
            let number = number as u32;
            // No share is above 0.61, so that a slice has more bits than keys; the next one can
            // be no surprise.
            let capacity = plan.capacity(number).unwrap_or(u64::MAX);
            if !bits.is_multiple_of(multiple) || !(capacity..=MOST_BITS).contains(&bits) {
                let expected = format!("a multiple of {multiple} from {capacity} to {MOST_BITS}");
                return Err(DecodeError::invalid("a slice's bits", bits, expected));
            }
            if !ks.contains(&k) {
                let expected = format!("{} to {}", ks.start(), ks.end());
                return Err(DecodeError::invalid("a slice's k", k, expected));
            }
            let words = input.section("a slice", bits / 64)?;
            let array = Array::from_parts(plan.layout, words, k as u32, keys);
            slices.push(Slice::new(&plan, number, array));
        }
        let filter = Scalable { plan, slices };
        if filter.len() != input.len() {
            let expected = format!("{}, the sum of the slices'", filter.len());
            return Err(DecodeError::invalid("keys", input.len(), expected));
        }
        Ok(filter)
    }
}

#[cfg(test)]
mod tests;
