//! The growing family; [`families`](crate::families) has its essay.

mod aleph;
mod compacting;
mod folded;
mod narrow;
mod scalable;

pub use aleph::Aleph;
pub use compacting::Compacting;
pub use folded::Folded;
pub use scalable::Scalable;
