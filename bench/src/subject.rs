//! What is measured: the one trait between the stopwatch and a filter, of this library or another.
//!
//! A rival's user calls a method of a known type, which the compiler inlines. The same holds here for everyone: the
//! loops over keys are inside [`Subject`]'s methods and compiled for each type, and the one dynamic call around a loop
//! of a million lookups costs nothing.

use std::hint::black_box;

use crate::{ours, rivals};

/// A filter, or why it cannot be built.
pub(crate) type Built = Result<Box<dyn Subject>, String>;

/// Builds from keys, which may be reordered, for a rate.
pub(crate) type Build = Box<dyn Fn(&mut [u64], f64) -> Built>;

/// Someone who builds filters.
pub(crate) struct Contestant {
    /// The kind's name, or `crate` or `crate/Type` of a rival.
    pub(crate) name: &'static str,
    pub(crate) ours: bool,
    /// Whether single lookups are compiled for the type. If not, each is a dynamic call and pays for it.
    pub(crate) typed: bool,
    /// Builds by the best way of doing it in bulk.
    pub(crate) build: Build,
    /// Builds by inserting one by one into an empty filter; `None` for static filters.
    pub(crate) insert: Inserting,
}

/// How a filter takes keys one by one.
pub(crate) enum Inserting {
    /// It does not.
    Never,
    /// `build` does just that.
    AsBuild,
    /// In this way.
    By(Build),
}

/// A filter that was built.
pub(crate) trait Subject {
    /// Looks up every key by a call of its own; how many were found.
    fn contains_each(&self, keys: &[u64]) -> u64;

    /// Looks up all keys by the filter's own batch call; `false` if it has none.
    fn contains_batch(&self, keys: &[u64], out: &mut [bool]) -> bool;

    /// Removes every key by a call of its own; how many were found, `None` if keys cannot be removed.
    fn remove_each(&mut self, keys: &[u64]) -> Option<u64>;
}

/// The calls of a filter of a known type; [`Subject`] follows.
pub(crate) trait Calls: 'static {
    fn contains(&self, key: u64) -> bool;

    fn contains_batch(&self, _keys: &[u64], _out: &mut [bool]) -> bool {
        false
    }

    fn remove(&mut self, _key: u64) -> Option<bool> {
        None
    }
}

impl<C: Calls> Subject for C {
    #[inline(never)]
    fn contains_each(&self, keys: &[u64]) -> u64 {
        let mut found = 0;
        for &key in keys {
            // Every answer is looked at by itself: calls are not merged into vectors, as they would not be in use.
            found += u64::from(black_box(self.contains(key)));
        }
        found
    }

    fn contains_batch(&self, keys: &[u64], out: &mut [bool]) -> bool {
        Calls::contains_batch(self, keys, out)
    }

    #[inline(never)]
    fn remove_each(&mut self, keys: &[u64]) -> Option<u64> {
        let mut found = 0;
        for &key in keys {
            found += u64::from(black_box(self.remove(key)?));
        }
        Some(found)
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
