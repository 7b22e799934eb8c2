//! The chained family; [`families`](crate::families) has its essay.

mod d_left;
mod prefix;
mod rank_indexed;

pub use d_left::DLeft;
pub use prefix::Prefix;
pub use rank_indexed::RankIndexed;
pub(crate) use rank_indexed::{chains_for, most_chains, whole_fingerprint};
