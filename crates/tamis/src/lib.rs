//! Approximate-membership filters: *is this key in that set?* "No" is certain; "yes" is wrong with a small, known
//! probability.
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
//! Every filter is an approximate set of 64-bit hashes ([`Filter`]). [`Keyed`] makes it a set of keys. The registry
//! ([`KINDS`], [`AnyFilter`]) makes it a thing with a name and a file.
//!
//! # How to choose
//!
//! | you need | take |
//! |---|---|
//! | a fixed set, fast | [`BinaryFuse8`] (0.39 % false positives), [`BinaryFuse16`], [`BinaryFuse32`] |
//! | a fixed set, the smallest, at any rate | [`RibbonBumped`] |
//! | a fixed map from keys to small values | [`Bloomier`]; [`Perfect`] if values change or keys need numbers; [`Retrieval`] if only members are asked for |
//! | keys arriving over time, the fastest | [`SplitBlock512`] |
//! | keys arriving over time, in little space | [`TinySet`], or [`TinySetRemovable`] if some leave again |
//! | to remove keys, or to count copies | [`Cuckoo`] |
//! | to know how often each key came | [`SpectralMinimal`], or [`Spectral`] if keys leave again |
//! | to unite filters, or to estimate the size of a set | [`Bloom`] |
//! | the keys of the last minutes, or of the last million insertions | [`Sliding`] |
//! | to fill one filter from many threads at once | [`AtomicSplitBlock`], [`AtomicBloom`] |
//! | to find the differences of two sets without sending either | [`Iblt`] |
//! | a fixed set that travels or is merged, at any rate | [`Golomb`] |
//! | the filters of Bitcoin blocks | [`Bip158`] |
//! | the bits of a Parquet file | [`SplitBlock256`] |
//!
//! [`advise`] ranks all kinds for what you need, with sizes and reasons, and warns where a filter is the wrong tool.
//!
//! # Keys or hashes
//!
//! [`Keyed`] hashes strings, bytes and integers, the same on every machine ([`Key`], [`Hashing`]). If you have good
//! 64-bit hashes already, use the filter directly: `filter.contains(hash)`.
//!
//! # Files
//!
//! [`Keyed::save`] and [`Keyed::load`] write and read one format for all kinds, described in `docs/FORMAT.md`. A damaged
//! file is an error, never an answer.

pub mod advise;
mod bits;
pub mod bloom;
mod buf;
mod build;
pub mod chained;
pub mod coded;
mod config;
pub mod cuckoo;
mod error;
pub mod exact;
mod file;
mod filter;
mod format;
pub mod growing;
mod key;
mod keyed;
mod lookup;
pub mod math;
mod packed;
pub mod peel;
pub mod perfect;
mod registry;
pub mod ribbon;
mod simd;
pub mod tinyset;
pub mod window;

pub use bloom::*;
pub use buf::{Buf, Word};
pub use build::{Spill, Spilled};
pub use chained::*;
pub use coded::*;
pub use config::{Config, Param, Progress};
pub use cuckoo::*;
pub use error::{
    BuildError, BuildErrorKind, DecodeError, DecodeErrorKind, Full, FullKind, MergeError,
    MergeErrorKind,
};
pub use exact::*;
#[doc(hidden)]
pub use file::{check_writable, replace_file};
pub use filter::{Count, Filter, Insert, Kind, Map, Merge, Remove};
pub use format::{Decoder, Encoder, ParamValue, looks_like_filter};
pub use growing::*;
pub use key::{Hashing, Key};
pub use keyed::{Keyed, Stored};
pub use peel::*;
pub use perfect::*;
pub use registry::{AnyFilter, Capabilities, KINDS, KindInfo, kind};
pub use ribbon::*;
pub use tinyset::*;
pub use window::*;

/// Switches for tests and fuzzers; not part of the interface.
#[doc(hidden)]
pub mod testing {
    pub use crate::format::repair_checksums;
    pub use crate::registry::size_of_box;
    pub use crate::simd::force_portable;
}

/// The README's examples are tested with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
