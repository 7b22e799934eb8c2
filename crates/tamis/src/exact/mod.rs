//! The exact family; [`families`](crate::families) has its essay.

mod hash_compaction;

pub use hash_compaction::HashCompaction;
