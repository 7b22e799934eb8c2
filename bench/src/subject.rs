//! What is measured: the one trait between the stopwatch and a filter, of this library or
//! another.
//!
//! A rival's user calls a method of a known type, which the compiler inlines. The same holds here
//! for everyone: the loops over keys are inside [`Subject`]'s methods and compiled for each type,
//! and the one dynamic call around a loop of a million lookups costs nothing.

use std::hint::black_box;

use tamis::Hashing;

use crate::figures::{Row, Shape};
use crate::keys::Ask;
use crate::{ours, rivals};

/// A filter, or why it cannot be built.
pub(crate) type Built = Result<Box<dyn Subject>, String>;

/// Builds from keys, which may be reordered, for a rate.
pub(crate) type Build = Box<dyn Fn(&mut [u64], f64) -> Built>;

/// Someone who builds filters.
pub(crate) struct Contestant {
    /// The kind's name, or `crate` or `crate/Type` of a rival.
    pub(crate) name: &'static str,
    /// The directory of the kind's source, or the same for a rival.
    pub(crate) family: &'static str,
    pub(crate) ours: bool,
    /// Builds by the best way of doing it in bulk.
    pub(crate) build: Build,
    /// Whether and how it is filled one by one.
    pub(crate) insert: Inserting,
    /// Builds on several threads; `None` for rivals that cannot. A kind of ours that does not use
    /// them ignores them.
    pub(crate) threaded: Option<ThreadedBuild>,
    /// The most memory that a build takes, in bytes per key and roughly; who does not fit does
    /// not start.
    pub(crate) peak: usize,
}

impl Contestant {
    /// Room for what is measured of its filters of a shape.
    pub(crate) fn row(&self, shape: Shape) -> Row {
        Row {
            subject: self.name.into(),
            family: self.family.into(),
            ours: self.ours,
            shape,
            ..Row::default()
        }
    }
}

/// Builds from keys for a rate on a number of threads.
pub(crate) type ThreadedBuild = Box<dyn Fn(&mut [u64], f64, usize) -> Built + Sync>;

/// Makes an empty filter for a number of keys and a rate.
pub(crate) type Empty = Box<dyn Fn(usize, f64) -> Built>;

/// How a filter takes keys one by one.
pub(crate) enum Inserting {
    /// It does not.
    Never,
    /// Into an empty filter, and `build` does just that.
    AsBuild(Empty),
    /// Into an empty filter; `build` has a way of its own.
    Into(Empty),
}

impl Inserting {
    pub(crate) fn empty(&self) -> Option<&Empty> {
        match self {
            Inserting::Never => None,
            Inserting::AsBuild(empty) | Inserting::Into(empty) => Some(empty),
        }
    }
}

/// A filter that was built.
pub(crate) trait Subject: Send + Sync {
    /// Looks up every key by a call of its own; how many were found.
    fn contains_each(&self, keys: Ask<'_>) -> u64;

    /// Looks up all keys by the filter's own batch call; `false` if it has none.
    fn contains_batch(&self, keys: Ask<'_>, out: &mut [bool]) -> bool;

    /// Counts every key by a call of its own; how many have a count, `None` if the filter does
    /// not count.
    fn count_each(&self, keys: &[u64]) -> Option<u64>;

    /// Inserts every key by a call of its own; `None` if keys cannot be inserted, `Some(false)`
    /// if one was refused.
    fn insert_each(&mut self, keys: Ask<'_>) -> Option<bool>;

    /// Inserts all keys by the filter's own batch call; `None` if it has none, `Some(false)` if a
    /// key was refused.
    fn insert_batch(&mut self, keys: &[u64]) -> Option<bool>;

    /// Removes every key by a call of its own; how many were found, `None` if keys cannot be
    /// removed.
    fn remove_each(&mut self, keys: &[u64]) -> Option<u64>;

    /// The rate that the filter expects of itself, if it tells.
    fn expected_fpr(&self) -> Option<f64>;
}

/// The calls of a filter of a known type; [`Subject`] follows.
pub(crate) trait Calls: Send + Sync + 'static {
    fn contains(&self, key: u64) -> bool;

    fn contains_batch(&self, _keys: &[u64], _out: &mut [bool]) -> bool {
        false
    }

    fn count(&self, _key: u64) -> Option<u64> {
        None
    }

    fn insert(&mut self, _key: u64) -> Option<bool> {
        None
    }

    fn insert_batch(&mut self, _keys: &[u64]) -> Option<bool> {
        None
    }

    fn remove(&mut self, _key: u64) -> Option<bool> {
        None
    }

    fn expected_fpr(&self) -> Option<f64> {
        None
    }
}

/// The hash of a string, for everyone.
#[inline(always)]
pub(crate) fn hash(string: &[u8]) -> u64 {
    Hashing::default().hash_bytes(string)
}

/// Strings are hashed in runs of this many before they are looked up together, as `tamis::Keyed`
/// does.
const CHUNK: usize = 256;

impl<C: Calls> Subject for C {
    #[inline(never)]
    fn contains_each(&self, keys: Ask<'_>) -> u64 {
        // Every answer is looked at by itself: calls are not merged into vectors, as they would
        // not be in use.
        let ask = |key| u64::from(black_box(self.contains(key)));
        match keys {
            Ask::Words(words) => {
                let mut found = 0;
                for &key in words {
                    found += ask(key);
                }
                found
            }
            Ask::Strings(texts) => texts.iter().map(|text| ask(hash(text))).sum(),
        }
    }

    fn contains_batch(&self, keys: Ask<'_>, out: &mut [bool]) -> bool {
        let texts = match keys {
            Ask::Words(words) => return Calls::contains_batch(self, words, out),
            Ask::Strings(texts) => texts,
        };
        let (mut texts, mut hashes) = (texts.iter(), [0; CHUNK]);
        for out in out.chunks_mut(CHUNK) {
            for (slot, text) in hashes.iter_mut().zip(texts.by_ref().take(out.len())) {
                *slot = hash(text);
            }
            if !Calls::contains_batch(self, &hashes[..out.len()], out) {
                return false;
            }
        }
        true
    }

    #[inline(never)]
    fn count_each(&self, keys: &[u64]) -> Option<u64> {
        let mut found = 0;
        for &key in keys {
            found += u64::from(black_box(self.count(key)?) > 0);
        }
        Some(found)
    }

    #[inline(never)]
    fn insert_each(&mut self, keys: Ask<'_>) -> Option<bool> {
        match keys {
            Ask::Words(words) => {
                for &key in words {
                    if !self.insert(key)? {
                        return Some(false);
                    }
                }
            }
            Ask::Strings(texts) => {
                for text in texts.iter() {
                    if !self.insert(hash(text))? {
                        return Some(false);
                    }
                }
            }
        }
        Some(true)
    }

    fn insert_batch(&mut self, keys: &[u64]) -> Option<bool> {
        // As many at a time as a program would gather that reads its keys from somewhere.
        for keys in keys.chunks(CHUNK) {
            if !Calls::insert_batch(self, keys)? {
                return Some(false);
            }
        }
        Some(true)
    }

    #[inline(never)]
    fn remove_each(&mut self, keys: &[u64]) -> Option<u64> {
        let mut found = 0;
        for &key in keys {
            found += u64::from(black_box(self.remove(key)?));
        }
        Some(found)
    }

    fn expected_fpr(&self) -> Option<f64> {
        Calls::expected_fpr(self)
    }
}

/// All kinds of the library, then all rivals.
pub(crate) fn all() -> Vec<Contestant> {
    ours::contestants()
        .into_iter()
        .chain(rivals::contestants())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_kind_is_there() {
        let all = all();
        let mut names: Vec<_> = all.iter().map(|c| c.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all.len());
        for info in tamis::KINDS {
            assert!(names.contains(&info.name), "{}", info.name);
        }
    }
}
