//! The window family; [`families`](crate::families) has its essay.

mod age_partitioned;
mod sliding;

pub use age_partitioned::AgePartitioned;
pub use sliding::Sliding;
