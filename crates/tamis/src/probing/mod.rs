//! Open addressing: one table of signatures, in which a key is looked for slot after slot until a free one.

mod hash_compaction;

pub use hash_compaction::HashCompaction;
