//! Chained hash tables in cache lines.
//!
//! A hash chooses a block, a chain in the block and a remainder; the block keeps the remainders of its chains side by
//! side, and as many of their bits as there is room for. [`TinySet`] is the filter that only takes keys in,
//! [`TinySetRemovable`] pays two bits a block to let them go again.

mod block;
mod fast;
pub mod tinyset;

pub use tinyset::{TinySet, TinySetOf, TinySetRemovable};
