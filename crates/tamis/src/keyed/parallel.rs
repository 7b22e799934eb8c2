//! Building filters of keys on several threads.

use crate::any::Held;
use crate::build::in_parallel;
use crate::config::Config;
use crate::error::BuildError;
use crate::key::{Hashing, Key};
use crate::keyed::Keyed;

/// Keys that a thread hashes before it takes the next ones.
const TAKEN: usize = 1 << 14;

/// Building on several threads.
///
/// Keys are hashed on all of them, whatever the kind. Then `binary_fuse8`, `binary_fuse16`,
/// `binary_fuse32`, `ribbon`, `ribbon_homogeneous` and `ribbon_bumped` are built on as many as
/// [`Config::threads`] says, and other kinds on one. A [`Shared`](crate::Shared) filter of any
/// kind has its shards built on all of them, and an
/// [`AtomicSplitBlock`](crate::AtomicSplitBlock) is filled by as many as there are.
impl<F: Held> Keyed<F> {
    /// As [`build`](Keyed::build), from a slice, on [`Config::threads`] threads. The filter is the
    /// same.
    ///
    /// ```
    /// use tamis::{BinaryFuse8, Config, Keyed};
    ///
    /// let words = ["tamis", "sieve", "strainer"];
    /// let filter: Keyed<BinaryFuse8> =
    ///     Keyed::build_slice(&Config::default().threads(2), &words)?;
    /// assert!(filter.contains("sieve"));
    /// # Ok::<(), tamis::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`build`](Keyed::build).
    pub fn build_slice<K: Key + Sync>(config: &Config, keys: &[K]) -> Result<Keyed<F>, BuildError> {
        Keyed::build_slice_with(config, Hashing::default(), keys)
    }

    /// As [`build_slice`](Keyed::build_slice), with a hashing of your choice.
    ///
    /// # Errors
    ///
    /// As [`build`](Keyed::build).
    pub fn build_slice_with<K: Key + Sync>(
        config: &Config,
        hashing: Hashing,
        keys: &[K],
    ) -> Result<Keyed<F>, BuildError> {
        let mut hashes = vec![0; keys.len()];
        let parts = hashes.chunks_mut(TAKEN).zip(keys.chunks(TAKEN));
        in_parallel(config.threads, parts, |(hashes, keys)| {
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = key.hash_with(&hashing);
            }
        });
        Keyed::of_hashes(config, hashing, hashes)
    }

    /// As [`build`](Keyed::build), from an iterator of rayon's, which hashes on the threads of its
    /// pool. Kinds that build on threads do so on [`Config::threads`] of their own.
    ///
    /// ```
    /// use rayon::prelude::*;
    /// use tamis::{Config, Keyed, RibbonBumped};
    ///
    /// let ids = (0..100_000u64).into_par_iter().filter(|id| id % 3 == 0);
    /// let filter: Keyed<RibbonBumped> = Keyed::build_par(&Config::default().threads(2), ids)?;
    /// assert!(filter.contains(&99_999u64));
    /// # Ok::<(), tamis::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`build`](Keyed::build).
    #[cfg(feature = "rayon")]
    pub fn build_par<K: Key>(
        config: &Config,
        keys: impl rayon::iter::IntoParallelIterator<Item = K>,
    ) -> Result<Keyed<F>, BuildError> {
        Keyed::build_par_with(config, Hashing::default(), keys)
    }

    /// As [`build_par`](Keyed::build_par), with a hashing of your choice.
    ///
    /// # Errors
    ///
    /// As [`build`](Keyed::build).
    #[cfg(feature = "rayon")]
    pub fn build_par_with<K: Key>(
        config: &Config,
        hashing: Hashing,
        keys: impl rayon::iter::IntoParallelIterator<Item = K>,
    ) -> Result<Keyed<F>, BuildError> {
        use rayon::iter::ParallelIterator;

        let hashes = keys.into_par_iter().map(|key| key.hash_with(&hashing));
        Keyed::of_hashes(config, hashing, hashes.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyFilter, KINDS};

    #[test]
    fn every_kind_is_the_same_from_a_slice_on_threads() {
        let keys: Vec<u64> = (0..40_000).collect();
        for kind in KINDS {
            let config: Config = kind.name.parse().unwrap();
            let one: Keyed<AnyFilter> = Keyed::build(&config, &keys).unwrap();
            let many = Keyed::<AnyFilter>::build_slice(&config.clone().threads(3), &keys);
            assert!(one.to_bytes() == many.unwrap().to_bytes(), "{}", kind.name);
            #[cfg(feature = "rayon")]
            {
                use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
                let keys = keys.par_iter().map(|&key| key);
                let many = Keyed::<AnyFilter>::build_par(&config, keys);
                assert!(one.to_bytes() == many.unwrap().to_bytes(), "{}", kind.name);
            }
        }
    }
}
