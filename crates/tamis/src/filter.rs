//! The traits, and the laws that every filter obeys.
//!
//! A filter is an approximate set of 64-bit hashes; [`Keyed`](crate::Keyed) makes it a set of
//! keys. The traits say what a filter *can* do, so that asking a static filter to insert is a
//! compile error for typed users and `None` for those who hold an
//! [`AnyFilter`](crate::AnyFilter).
//!
//! The laws, which the conformance suite tests for every registered kind:
//!
//! - A hash that was inserted (and not removed since) is contained. Always. (A kind with a
//!   [`window`](crate::Capabilities::window) promises it for the last `capacity` insertions, and
//!   forgets older ones on purpose.)
//! - A hash that was not inserted is contained with probability [`fpr`](Filter::fpr).
//! - A count is never below the smaller of the copies that are in and
//!   [`count_limit`](Count::count_limit).
//! - An empty filter contains nothing.
//! - An operation that returns an error has changed nothing.
//! - A batch answers exactly as single calls do, at every instruction-set level.
//! - What is written to a file is read back byte for byte, and anything else is refused.

use std::any::Any;
use std::fmt::Debug;
use std::time::Duration;

use crate::config::{Config, Param};
use crate::error::{BuildError, DecodeError, Full, MergeError};
use crate::format::{Decoder, Encoder};
use crate::kinds::Declared;
use crate::lookup;

/// An approximate set of 64-bit hashes.
///
/// Hashes must be spread evenly over 64 bits: pass a hash, not an id. [`Keyed`](crate::Keyed)
/// takes keys and hashes them well.
pub trait Filter: Any + Debug + Send + Sync {
    /// Whether the hash may have been inserted. `false` is certain; `true` is wrong with
    /// probability [`fpr`](Self::fpr).
    fn contains(&self, hash: u64) -> bool;

    /// How many keys were put in and not removed. A kind that is built once counts distinct keys;
    /// one that takes insertions cannot tell a repeat from a false positive, and counts each.
    fn len(&self) -> u64;

    /// Whether no key was put in.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every byte held on the heap: data, metadata, padding.
    fn size_in_bytes(&self) -> usize;

    /// The false-positive rate to expect now, at the present load. May read the whole filter.
    fn fpr(&self) -> f64;

    /// How many keys count against the capacity: [`len`](Self::len), but of a kind that counts
    /// copies in place the distinct ones.
    fn charged(&self) -> u64 {
        self.len()
    }

    /// How many counters have reached their greatest value, which they keep whatever is removed: a
    /// key in them may stay when its copies are taken out, and counts end there. 0 in kinds
    /// without such counters. May read the whole filter.
    fn saturated(&self) -> u64 {
        0
    }

    /// Prefetches the memory that [`contains`](Self::contains) or an insertion of this hash will
    /// read.
    fn prefetch(&self, _hash: u64) {}

    /// Looks up many hashes: `out[i]` becomes `contains(hashes[i])`, for as many as both slices
    /// hold.
    ///
    /// Faster than single calls, by most kinds: the instruction set is chosen once, and where a
    /// filter is large, memory is prefetched ahead of its use.
    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        lookup::calls(self, |hash| self.contains(hash), hashes, out);
    }
}

/// A filter that takes new hashes after it was built.
pub trait Insert: Filter {
    /// Inserts a hash. On `Err` the filter is exactly as it was.
    ///
    /// # Errors
    ///
    /// [`Full`] when there is no place for the hash, or it is held as often as the filter can
    /// tell.
    fn insert(&mut self, hash: u64) -> Result<(), Full>;

    /// Inserts many hashes in order, faster than one by one.
    ///
    /// # Errors
    ///
    /// [`Full`] at the first hash that is refused; those before it ([`Full::accepted`] of them)
    /// are in, those from it on are not.
    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), Full> {
        let inserted = lookup::insertions(self, hashes);
        inserted.map_err(|(accepted, full)| full.after(accepted))
    }
}

/// A filter that can forget a hash that was inserted, or that it was built from.
pub trait Remove: Filter {
    /// Takes out one copy of a hash; `false` if none matches, and then nothing has changed.
    ///
    /// Only remove what was inserted: a filter cannot tell a member from a false positive, and
    /// removing a false positive takes away another key's fingerprint, which makes that key a
    /// false negative.
    fn remove(&mut self, hash: u64) -> bool;
}

/// A filter that can tell how often a hash was inserted.
pub trait Count: Filter {
    /// How many copies of the hash are held: never fewer than were inserted, up to
    /// [`count_limit`](Self::count_limit), and more with probability [`fpr`](Filter::fpr).
    fn count(&self, hash: u64) -> u64;

    /// The greatest count that the filter can tell: a count of this means so many or more.
    ///
    /// `u64::MAX` for a filter that refuses an insertion that it could not count, so that every
    /// count is exact but for false positives.
    ///
    /// ```
    /// use tamis::{Config, Count, Counting, Insert, Kind};
    ///
    /// // Counters of four bits.
    /// let mut filter = Counting::build(&Config::new(1000), &mut [])?;
    /// for _ in 0..20 {
    ///     filter.insert(0x9E37_79B9_7F4A_7C15)?;
    /// }
    /// assert_eq!(filter.count_limit(), 15);
    /// assert_eq!(filter.count(0x9E37_79B9_7F4A_7C15), 15);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn count_limit(&self) -> u64 {
        u64::MAX
    }
}

/// A filter that can take in another of the same shape without knowing its keys.
pub trait Merge: Filter + Sized {
    /// Makes this filter contain what either contained. On `Err` it is exactly as it was.
    ///
    /// # Errors
    ///
    /// [`MergeError`] when the parameters differ, by name, or the union does not fit.
    fn merge(&mut self, other: &Self) -> Result<(), MergeError>;
}

/// A filter that forgets by age: it holds the last insertions, or those of the last seconds.
///
/// A window of time has no clock of its own. The caller reads one and tells the window
/// ([`advance`](Window::advance)), so that tests and replays own the time; the window's file holds
/// the last reading. A window of insertions has no time at all, and the provided methods are its.
pub trait Window: Insert {
    /// Whether the hash is in the window; from now on it is, with a whole window before it.
    ///
    /// Counts as an insertion only where a hash that came now would not stay longer, so that one
    /// that comes often does not use up the window.
    ///
    /// # Errors
    ///
    /// [`Full`] as for an insertion; the hash was not noted then.
    fn touch(&mut self, hash: u64) -> Result<bool, Full>;

    /// Tells the filter the time, as the time since any start: 1970, or, of a window that is never
    /// saved, that of the process. After a load the readings go on from [`now`](Window::now).
    ///
    /// The first reading is the window's origin: what it holds by then counts as inserted at that
    /// moment. Each further one forgets what is too old by it; one that is earlier than the last
    /// is ignored. A window of insertions has no clock and stays as it is.
    fn advance(&mut self, _now: Duration) {}

    /// The last reading of the clock, also of a file that was loaded. `None` before the first, and
    /// in a window of insertions. A reading of zero counts as one nanosecond.
    fn now(&self) -> Option<Duration> {
        None
    }

    /// The length of a window of time; `None` where insertions are counted.
    fn window_time(&self) -> Option<Duration> {
        None
    }

    /// Makes room where a window was [`Full`], by forgetting its oldest keys before their time;
    /// [`covered`](Window::covered) is shorter until the window has passed. Without need nothing
    /// happens.
    fn make_room(&mut self) {}

    /// How far back from the clock's last reading answers reach: what was inserted less long ago
    /// is found. Shorter than the window only after [`make_room`](Window::make_room). `None` where
    /// insertions are counted.
    fn covered(&self) -> Option<Duration> {
        None
    }
}

/// A filter of a fixed set that knows a value for each of its keys: a map that stores no keys.
///
/// [`Bloomier`](crate::Bloomier) is the smallest; the values of [`Perfect`](crate::Perfect) can
/// be changed. [`Retrieval`](crate::Retrieval) has the same words but is no filter: it is asked
/// for members only.
pub trait Map: Filter {
    /// The map of these pairs of hash and value. A pair may be given more than once.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the configuration is not possible, or a hash has two values:
    /// [`BuildErrorKind::Conflict`](crate::BuildErrorKind::Conflict), which names the positions
    /// of both.
    fn from_pairs(
        config: &Config,
        pairs: impl IntoIterator<Item = (u64, u64)>,
    ) -> Result<Self, BuildError>
    where
        Self: Sized;

    /// The value of a hash that was given: always its own. One that was not is answered with some
    /// value at the rate [`fpr`](Filter::fpr), and otherwise with `None`.
    fn get(&self, hash: u64) -> Option<u64>;

    /// Looks up many hashes: `out[i]` becomes `get(hashes[i])`, for as many as both slices hold.
    /// Most kinds are faster so than by single calls.
    fn get_batch(&self, hashes: &[u64], out: &mut [Option<u64>]) {
        lookup::calls(self, |hash| self.get(hash), hashes, out);
    }

    /// Bits of a value; 0 in a set without values.
    fn value_bits(&self) -> u32;
}

/// A filter that can give up half its space without knowing its keys.
pub trait Halve: Filter + Sized {
    /// The same keys in half the space, as if they had been inserted there, at a higher rate.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when this filter's size is odd, a table's keys do not fit in half of it, or
    /// memory is short.
    fn halve(&self) -> Result<Self, BuildError>;
}

/// What a filter supplies to be built, stored and found by name.
///
/// For filters of this library: what `build` and `decode` need is not public. The kind's id,
/// name, tier and capabilities are on its line in `kinds.rs`, and are found at
/// [`Declared::INFO`].
pub trait Kind: Filter + Clone + Declared {
    /// The version of this kind's own layout in files.
    const VERSION: u16 = 1;
    /// What it is good for, in one line.
    const ABOUT: &'static str;
    /// The parameters that a configuration may give beside capacity and rate.
    const PARAMS: &'static [Param] = &[];

    /// Builds a filter for `max(config.capacity, hashes.len())` keys that contains the given
    /// hashes.
    ///
    /// May reorder the slice. Repeated hashes are allowed: a kind that counts keeps each, as far
    /// as it can count, and says [`Full`] beyond that; others hold the key once.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the configuration is not possible, at once and before memory is taken.
    fn build(config: &Config, hashes: &mut [u64]) -> Result<Self, BuildError>;

    /// Writes the parameters and arrays, in the order that `decode` reads them.
    fn encode<'a>(&'a self, out: &mut Encoder<'a>);

    /// Reads what `encode` wrote, and refuses whatever `contains` could not survive.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] that names the field at fault.
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError>;
}
