//! Tables of fingerprints in buckets or chains.
//!
//! [`RankIndexed`] keeps its chains in banks of several kilobytes, with fingerprints of one
//! width. [`DLeft`] keeps a remainder in the emptiest of four buckets, so that keys can leave.

mod d_left;
mod rank_indexed;

pub use d_left::DLeft;
pub use rank_indexed::RankIndexed;
pub(crate) use rank_indexed::{chains_for, most_chains, whole_fingerprint};
