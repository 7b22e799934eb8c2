//! Filters that forget on purpose.
//!
//! [`Sliding`] keeps the last n insertions, or those of the last minutes; [`AgePartitioned`]
//! keeps the last n insertions and lets go of older ones sooner.

mod age_partitioned;
mod sliding;

pub use age_partitioned::AgePartitioned;
pub use sliding::Sliding;
