//! The growing family; [`families`](crate::families) has its essay.

mod compacting;
mod folded;
mod narrow;
mod scalable;

pub use compacting::Compacting;
pub use folded::Folded;
pub use scalable::Scalable;
