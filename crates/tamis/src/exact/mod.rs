//! Tables that keep a key, or a long signature of it, whole: where the survey of filters starts.

mod hash_compaction;

pub use hash_compaction::HashCompaction;
