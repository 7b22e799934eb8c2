//! The coded family; [`families`](crate::families) has its essay.

mod bip158;
mod golomb;

pub use bip158::Bip158;
pub use golomb::Golomb;
