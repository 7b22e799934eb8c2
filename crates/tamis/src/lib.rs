//! Approximate-membership filters: *is this key in that set?* "No" is certain; "yes" is wrong
//! with a small, known probability.
//!
//! ```
//! use tamis::{Config, Cuckoo, Keyed};
//!
//! let mut seen: Keyed<Cuckoo> = Keyed::new(&Config::new(1_000_000).fpr(0.01))?;
//! seen.insert("alice")?;
//! assert!(seen.contains("alice"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Every filter is an approximate set of 64-bit hashes ([`Filter`]). [`Keyed`] makes it a set of
//! keys. The list of kinds ([`KINDS`], [`AnyFilter`]) makes it a thing with a name and a file.
//!
//! # How to choose
//!
//! | you need | take |
//! |---|---|
//! | a fixed set, fast | [`BinaryFuse8`] (0.39 % false positives), [`BinaryFuse16`] |
//! | a fixed set, the smallest, at any rate | [`RibbonBumped`] |
//! | a fixed map from keys to small values | [`Bloomier`]; [`Perfect`] if values change or keys need numbers |
//! | a fixed set that travels or is merged, at any rate | [`Golomb`] |
//! | keys arriving over time, the fastest | [`SplitBlock512`] |
//! | keys arriving over time, in little space | [`TinySet`], or [`TinySetRemovable`] if some leave again |
//! | to remove keys, or to count copies | [`Cuckoo`] |
//! | to know how often each key came | [`CountingMinimal`], or [`Counting`] if keys leave again |
//! | keys whose number nobody knows | [`Scalable`] |
//! | to unite filters, or to estimate the size of a set | [`Bloom`] |
//! | the keys of the last minutes, or of the last million insertions | [`Sliding`] |
//!
//! These are the [`Core`](Tier::Core): what to choose today. The other kinds are of the
//! literature, to compare with and to read; `tamis kinds --all` and [`KINDS`] list them. Beside
//! the kinds there are types for one purpose: [`AtomicSplitBlock`] and [`AtomicBloom`] are filled
//! by many threads at once, an [`Iblt`] finds the differences of two sets, a [`Retrieval`] is
//! asked for members only, and [`Bip158`] has the filters of Bitcoin blocks.
//!
//! [`advise`] ranks the kinds for what you need, with sizes and reasons, and warns where a filter
//! is the wrong tool.
//!
//! # Keys or hashes
//!
//! [`Keyed`] hashes strings, bytes and integers, the same on every machine ([`Key`],
//! [`Hashing`]). If you have good 64-bit hashes already, use the filter directly:
//! `filter.contains(hash)`.
//!
//! # Files
//!
//! [`Keyed::save`] and [`Keyed::load`] write and read one format for all kinds, described in
//! `docs/FORMAT.md`. A damaged file is an error, never an answer. [`Open`] has what else there is
//! to say: a secret that is kept elsewhere, mapping ([`Mapped`]) in place of reading, and how
//! much is verified.

#![cfg_attr(docsrs, feature(doc_cfg))]
// Levels and kernels are of x86-64 alone.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]
// A build of a few families leaves parts of the shared rooms unused.
#![cfg_attr(
    not(feature = "registry"),
    allow(dead_code, unused_imports, unused_macros)
)]

#[cfg(feature = "advise")]
pub mod advise;
mod any;
mod bits;
#[cfg(feature = "bloom")]
mod bloom;
mod buf;
mod build;
#[cfg(feature = "chained")]
mod chained;
#[cfg(feature = "coded")]
mod coded;
mod config;
#[cfg(feature = "cuckoo")]
mod cuckoo;
mod error;
#[cfg(feature = "exact")]
mod exact;
mod file;
mod filter;
mod format;
#[cfg(feature = "growing")]
mod growing;
mod key;
mod keyed;
mod kinds;
mod lookup;
pub mod math;
pub mod option;
mod packed;
#[cfg(feature = "peel")]
mod peel;
#[cfg(feature = "perfect")]
mod perfect;
#[cfg(feature = "ribbon")]
mod ribbon;
#[cfg(feature = "serde")]
mod serde;
mod simd;
#[cfg(feature = "tinyset")]
mod tinyset;
#[cfg(feature = "window")]
mod window;

pub use any::{AnyFilter, Held};
#[cfg(feature = "bloom")]
pub use bloom::*;
#[cfg(feature = "mmap")]
pub use buf::Mapped;
pub use buf::{Buf, Word};
#[cfg(feature = "peel")]
pub use build::{Spill, Spilled};
#[cfg(feature = "chained")]
pub use chained::*;
#[cfg(feature = "coded")]
pub use coded::*;
pub use config::{Config, Param, Progress};
#[cfg(feature = "cuckoo")]
pub use cuckoo::*;
pub use error::{
    BuildError, BuildErrorKind, DecodeError, DecodeErrorKind, Full, FullKind, MergeError,
    MergeErrorKind, Unsupported,
};
#[cfg(feature = "exact")]
pub use exact::*;
pub use file::{Encoded, Open};
#[doc(hidden)]
pub use file::{check_writable, replace_file};
pub use filter::{Count, Filter, Halve, Insert, Kind, Map, Merge, Remove};
pub use format::{Decoder, Encoder, ParamValue, looks_like_filter};
#[cfg(feature = "growing")]
pub use growing::*;
pub use key::{Hashing, Key};
pub use keyed::{Hashed, Keyed};
pub use kinds::{Capabilities, Declared, KINDS, KindInfo, KindVisitor, Tier, for_each_kind, kind};
#[cfg(feature = "peel")]
pub use peel::*;
#[cfg(feature = "perfect")]
pub use perfect::*;
#[cfg(feature = "ribbon")]
pub use ribbon::*;
#[cfg(feature = "tinyset")]
pub use tinyset::*;
#[cfg(feature = "window")]
pub use window::*;

/// Switches for tests and fuzzers; not part of the interface.
#[doc(hidden)]
pub mod testing {
    pub use crate::any::size_of_box;
    pub use crate::format::repair_checksums;
    /// Every formula, for tests and benches.
    pub mod math {
        pub use crate::math::blocked::*;
        pub use crate::math::bloom::*;
        pub use crate::math::counting::*;
        pub use crate::math::fixed::*;
        pub use crate::math::growing::*;
        pub use crate::math::probability::{
            binomial_interval, binomial_pmf, poisson_pmf, poisson_tail,
        };
        pub use crate::math::tables::*;
        pub use crate::math::tinyset::*;
        pub use crate::math::*;
    }
    pub use crate::simd::force_portable;
}

/// The README's examples are tested with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
