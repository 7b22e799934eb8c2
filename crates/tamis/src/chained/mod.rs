//! Chained hash tables in cache lines.
//!
//! A hash chooses a block, a chain in the block and a remainder; the block keeps the remainders of its chains side by
//! side, and as many of their bits as there is room for. [`TinySet`] is the filter that only takes keys in,
//! [`TinySetRemovable`] pays two bits a block to let them go again. [`RankIndexed`] keeps its chains in banks of several
//! kilobytes instead, with fingerprints of one width.

mod block;
mod eight;
mod fast;
mod rank_indexed;
pub mod tinyset;

pub use rank_indexed::RankIndexed;
pub(crate) use rank_indexed::{chains_for, most_chains, whole_fingerprint};
pub use tinyset::{TinySet, TinySetOf, TinySetRemovable};
