//! Filters that grow with their keys.
//!
//! [`Scalable`] adds a larger and stricter Bloom filter whenever the last is full, [`Compacting`]
//! makes a static table of what has gathered, and [`Folded`] fills pairs of halving arrays.

mod compacting;
mod folded;
mod narrow;
mod scalable;

pub use compacting::Compacting;
pub use folded::Folded;
pub use scalable::Scalable;
