//! The perfect family; [`families`](crate::families) has its essay.

mod filter;
mod function;

pub use filter::Perfect;
