//! The exact family; [`families`](crate::families) has its essay.

mod dictionary;
mod hash_compaction;

pub use dictionary::Dictionary;
pub use hash_compaction::HashCompaction;
