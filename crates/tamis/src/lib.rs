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
//! | to know how often each key came | [`QuotientCounting`] |
//! | to merge, list or enlarge filters without their keys, also on disk | [`Quotient`] |
//! | keys whose number nobody knows | [`Aleph`] |
//! | to unite filters, or to estimate the size of a set | [`Bloom`] |
//! | the keys of the last minutes, or of the last million insertions | [`SlidingTable`] |
//!
//! Beside the [kinds](#kinds) there are types for one purpose: a [`Shared`] filter of any kind is
//! used by many threads at once, [`AtomicSplitBlock`] and [`AtomicBloom`] are filled by them, an
//! [`Iblt`] finds the differences of two
//! sets, a [`Retrieval`] maps keys that are known to be members, and [`Bip158`] has the filters of
//! Bitcoin blocks. [`Dictionary`] is the exact set to compare with, and [`Lossy`] a filter that
//! forgets a share of its keys to be smaller.
//!
//! `docs/GUIDE.md` builds four applications with them: the tables of an LSM tree, a crawler's
//! memory, counts by worker, and the filter before a join.
//!
//! [`advise`] ranks the kinds for what you need, with sizes and reasons, and warns where a filter
//! is the wrong tool.
//!
//! # Kinds
//!
//! Every kind, its [family](families), and what it is good for. Its name leads to its type and
//! the essay there: the idea, the layout, the cost, the parameters, and when to choose it.
//!
//! ## Core
//!
//! What to choose today.
//!
//! | kind | family | good for |
//! |---|---|---|
//! | [`bloom`](Bloom) | [bloom](families#bloom) | the classic: merge and estimate sizes without the keys |
//! | [`split_block`](SplitBlock512) | [bloom](families#bloom) | the fastest to fill and to ask: one cache line, one vector test |
//! | [`tinyset`](TinySet) | [tinyset](families#tinyset) | keys arriving over time, in one cache line; smaller than Bloom and cuckoo from 2.9 % to 0.012 % |
//! | [`tinyset_removable`](TinySetRemovable) | [tinyset](families#tinyset) | keys come and go, in one cache line; smaller than Bloom and cuckoo from 2.9 % to 0.012 % |
//! | [`cuckoo`](Cuckoo) | [cuckoo](families#cuckoo) | remove keys and count copies; below 0.4 % smaller than Bloom |
//! | [`quotient`](Quotient) | [quotient](families#quotient) | keys come and go, filters merge, grow and are listed without keys; good on disk |
//! | [`quotient_counting`](QuotientCounting) | [quotient](families#quotient) | how often each key came, in place; keys leave, filters merge and list the most frequent |
//! | [`aleph`](Aleph) | [growing](families#growing) | grows with its keys at the rate asked for, in one table; keys can leave |
//! | [`sliding_table`](SlidingTable) | [window](families#window) | seen lately: the last n insertions, or those of the last seconds; keys may be removed |
//! | [`golomb`](Golomb) | [coded](families#coded) | sets that travel: any rate, small, merged and listed without keys |
//! | [`binary_fuse8`](BinaryFuse8) | [peel](families#peel) | a fixed set at 0.39 %, in 9 bits per key |
//! | [`binary_fuse16`](BinaryFuse16) | [peel](families#peel) | a fixed set at 0.0015 %, in 18 bits per key |
//! | [`bloomier`](Bloomier) | [peel](families#peel) | a fixed set at any rate, or a fixed map from keys to values of up to 64 bits |
//! | [`perfect`](Perfect) | [perfect](families#perfect) | a fixed set whose keys have numbers, and values that can be changed |
//! | [`ribbon_bumped`](RibbonBumped) | [ribbon](families#ribbon) | the smallest from 20 000 keys on: a fixed set at any rate, 0.4 % above the lower bound at 2⁻⁸ |
//!
//! ## Study
//!
//! Of the literature: to compare with, and to read.
//!
//! | kind | family | good for |
//! |---|---|---|
//! | [`bloom_g`](BloomG) | [bloom](families#bloom) | a Bloom filter that reads g words, not k: one or two |
//! | [`blocked`](Blocked) | [bloom](families#bloom) | the smallest Bloom filter that reads one cache line |
//! | [`split_block_256`](SplitBlock256) | [bloom](families#bloom) | the block geometry of Parquet and Impala: half a cache line per lookup |
//! | [`balanced`](Balanced) | [bloom](families#bloom) | a bound on the error of every block, at the price of a list of keys |
//! | [`two_choice`](TwoChoice) | [bloom](families#bloom) | 2 % smaller than a Bloom filter at 0.1 % and below, for twice the probes |
//! | [`counting`](Counting) | [bloom](families#bloom) | a Bloom filter that forgets keys and counts copies, and gives the plain one of those left |
//! | [`variable_increment`](VariableIncrement) | [bloom](families#bloom) | keys come and go, and filters are added up, in two thirds of `counting` |
//! | [`counting_minimal`](CountingMinimal) | [bloom](families#bloom) | how often each key came, never too low and seldom too high; keys stay |
//! | [`spectral_recurring`](SpectralRecurring) | [bloom](families#bloom) | an estimate of how often each key came, sometimes too low; keys can leave |
//! | [`compressed`](Compressed) | [bloom](families#bloom) | a small file and much memory: for filters that travel |
//! | [`d_left`](DLeft) | [chained](families#chained) | remove keys and count copies; an insertion never moves another key |
//! | [`rank_indexed`](RankIndexed) | [chained](families#chained) | keys come and go, seldom; little space, and chains found by counting ones |
//! | [`prefix`](Prefix) | [chained](families#chained) | keys that stay, looked up in half a line; what does not fit is in a spare that few lookups ask |
//! | [`morton`](Morton) | [cuckoo](families#cuckoo) | remove keys and count copies; most lookups of absent keys read one line, by overflow bits |
//! | [`quotient_standard`](QuotientStandard) | [quotient](families#quotient) | the quotient filter as it was published: remove, count, merge and list fingerprints |
//! | [`quotient_vector`](QuotientVector) | [quotient](families#quotient) | keys come and go in short, bounded time; smaller than cuckoo from 1 % to 0.25 % |
//! | [`multiset`](Multiset) | [quotient](families#quotient) | the optimal replacement as it was proved: keys come and go and are counted in n·log 1/ε + O(n) bits |
//! | [`cleary`](Cleary) | [quotient](families#quotient) | keys that stay, in r + 2 bits a cell: the optimal replacement in practice |
//! | [`hash_compaction`](HashCompaction) | [exact](families#exact) | states seen by a search, with the probability that one was omitted |
//! | [`scalable`](Scalable) | [growing](families#growing) | grows with its keys: for when their number is not known |
//! | [`folded`](Folded) | [growing](families#growing) | the fuzzy fold with its bits counted: growth in halving steps, up to a limit |
//! | [`compacting`](Compacting) | [growing](families#growing) | grows with its keys and compacts them: smaller than a list of Bloom filters |
//! | [`sliding`](Sliding) | [window](families#window) | seen lately: the last n insertions, or those of the last seconds |
//! | [`age_partitioned`](AgePartitioned) | [window](families#window) | the last n insertions, forgotten soon after |
//! | [`binary_fuse32`](BinaryFuse32) | [peel](families#peel) | a fixed set at 2.3e-10, in 36 bits per key |
//! | [`xor8`](Xor8) | [peel](families#peel) | a fixed set at 0.39 %, in 9.8 bits per key: the simplest |
//! | [`xor16`](Xor16) | [peel](families#peel) | a fixed set at 0.0015 %, in 20 bits per key: the simplest |
//! | [`xor_plus8`](XorPlus8) | [peel](families#peel) | a fixed set at 0.39 %: an xor filter without its empty slots |
//! | [`xor_plus16`](XorPlus16) | [peel](families#peel) | a fixed set at 0.0015 %: an xor filter without its empty slots |
//! | [`ribbon`](Ribbon) | [ribbon](families#ribbon) | a fixed set at any rate, 5 % above the lower bound |
//! | [`ribbon_homogeneous`](RibbonHomogeneous) | [ribbon](families#ribbon) | a fixed set at any rate, 5 % above the lower bound; building never fails |
//!
//! # Keys or hashes
//!
//! [`Keyed`] hashes strings, bytes and integers, the same on every machine ([`Key`],
//! [`Hashing`]). If you have good 64-bit hashes already, use the filter directly:
//! `filter.contains(hash)`.
//!
//! # Features
//!
//! By default every family is compiled (`registry`), with the adviser (`advise`), mapped files
//! (`mmap`) and builders on several threads (`threads`); `serde` and `rayon`, whose iterators
//! [`Keyed`] is then built from, are off. Whoever needs one type
//! takes its family alone: `default-features = false, features = ["cuckoo"]`. The families are
//! those of [`families`].
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
#[cfg(feature = "essays")]
mod essay;
#[cfg(feature = "exact")]
mod exact;
pub mod families;
mod file;
mod filter;
mod form;
mod format;
#[cfg(feature = "growing")]
mod growing;
mod key;
mod keyed;
mod kinds;
mod lookup;
mod lossy;
pub mod math;
pub mod number;
pub mod option;
mod packed;
#[cfg(feature = "peel")]
mod peel;
#[cfg(feature = "perfect")]
mod perfect;
#[cfg(feature = "quotient")]
mod quotient;
#[cfg(feature = "ribbon")]
mod ribbon;
#[cfg(feature = "serde")]
mod serde;
mod shared;
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
    MergeErrorKind, MergeFilesError, MergeFilesErrorKind, Unsupported,
};
#[cfg(feature = "exact")]
pub use exact::*;
pub use file::{Encoded, MergedFile, Open};
#[doc(hidden)]
pub use file::{Place, nameless, sweep};
pub use filter::{Count, Filter, Halve, Insert, Kind, Map, Merge, Remove, Window};
pub use form::KeyForm;
pub use format::{Decoder, Encoder, ParamValue, looks_like_filter};
#[cfg(feature = "growing")]
pub use growing::*;
pub use key::{Family, Hashing, Key};
pub use keyed::{Hashed, Keyed};
pub use kinds::{Capabilities, Declared, KINDS, KindInfo, KindVisitor, Tier, for_each_kind, kind};
pub use lossy::Lossy;
#[cfg(feature = "peel")]
pub use peel::*;
#[cfg(feature = "perfect")]
pub use perfect::*;
#[cfg(feature = "quotient")]
pub use quotient::*;
#[cfg(feature = "ribbon")]
pub use ribbon::*;
pub use shared::Shared;
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
    #[cfg(feature = "quotient")]
    pub use crate::quotient::multiset::{digits_read, lines_read};
    pub use crate::simd::{force_portable, levels};
}

/// The README's examples are tested with the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

/// So are those of the guide.
#[cfg(all(doctest, feature = "registry"))]
#[doc = include_str!("../../../docs/GUIDE.md")]
struct Guide;
