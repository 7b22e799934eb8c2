//! The kinds' own parameters, with the types of their values.
//!
//! [`Config::with`](crate::Config::with) takes them, so that a name cannot be misspelt and a value
//! is of the right type; which kinds take which is in their [`Kind::PARAMS`](crate::Kind::PARAMS),
//! and a kind refuses what it does not know.
//!
//! ```
//! use tamis::{Config, Cuckoo, Keyed, option};
//!
//! let config = Config::new(1000).fpr(0.001).with(option::BITS, 14);
//! let seen: Keyed<Cuckoo> = Keyed::new(&config)?;
//! assert_eq!(config, "capacity=1000,fpr=0.001,bits=14".parse()?);
//! # Ok::<(), tamis::BuildError>(())
//! ```

use std::marker::PhantomData;

/// A parameter whose values are of type `T`.
#[derive(Debug)]
pub struct Opt<T> {
    /// Its name in configurations as text.
    pub name: &'static str,
    value: PhantomData<fn(T)>,
}

impl<T> Clone for Opt<T> {
    fn clone(&self) -> Opt<T> {
        *self
    }
}

impl<T> Copy for Opt<T> {}

impl<T> Opt<T> {
    const fn new(name: &'static str) -> Opt<T> {
        Opt {
            name,
            value: PhantomData,
        }
    }
}

/// Slots that a lookup reads in a binary fuse filter: 3 or 4.
pub const ARITY: Opt<u32> = Opt::new("arity");
/// Bits of a fingerprint: cuckoo, d-left, rank-indexed, vector quotient, Bloomier, perfect, hash
/// compaction; of its remainder: the other quotient filters.
pub const BITS: Opt<u32> = Opt::new("bits");
/// Bytes of a TinySet's block: 32, 64 or 128.
pub const BLOCK: Opt<u32> = Opt::new("block");
/// Keys of a bucket of a perfect hash function.
pub const BUCKET: Opt<f64> = Opt::new("bucket");
/// Chains of a TinySet's block.
pub const CHAINS: Opt<u32> = Opt::new("chains");
/// Values of a Golomb-coded set between two entries of its index.
pub const CHUNK: Opt<u64> = Opt::new("chunk");
/// Bits of a counter: counting, variable-increment and spectral filters.
pub const COUNTER_BITS: Opt<u32> = Opt::new("counter_bits");
/// Folds of a folded filter.
pub const FOLDS: Opt<u32> = Opt::new("folds");
/// Words that a key's bits lie in: Bloom-g.
pub const G: Opt<u32> = Opt::new("g");
/// Generations of a sliding window.
pub const GENERATIONS: Opt<u32> = Opt::new("generations");
/// How many times larger each slice of a scalable filter is than the one before.
pub const GROWTH: Opt<u64> = Opt::new("growth");
/// Bits that a key sets, or counters that it increases: the Bloom family.
pub const K: Opt<u32> = Opt::new("k");
/// Slices beside the k of an age-partitioned filter.
pub const L: Opt<u32> = Opt::new("l");
/// How much stricter each slice of a scalable filter is than the one before.
pub const RATIO: Opt<f64> = Opt::new("ratio");
/// The length of a sliding window in time.
pub const SECONDS: Opt<u64> = Opt::new("seconds");
/// Whether buckets of a cuckoo filter are semi-sorted, for a bit a slot less: 0 or 1.
pub const SEMI_SORT: Opt<u32> = Opt::new("semi_sort");
/// Tables of a binary fuse filter that are built apart.
pub const SHARDS: Opt<u64> = Opt::new("shards");
/// The filter of a scalable filter's slices: `bloom` or `bloom_g`.
pub const SLICE: Opt<&'static str> = Opt::new("slice");
/// Steps that keys add to counters: variable-increment filters.
pub const STEPS: Opt<u64> = Opt::new("steps");
/// Bits of a value in a perfect map.
pub const VALUE_BITS: Opt<u32> = Opt::new("value_bits");
/// Slots in a row that a key of a ribbon may name: 64 or 128.
pub const WIDTH: Opt<u32> = Opt::new("width");
/// Bits of a word: Bloom-g.
pub const WORD_BITS: Opt<u32> = Opt::new("word_bits");
