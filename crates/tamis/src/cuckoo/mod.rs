//! The cuckoo family; [`families`](crate::families) has its essay.

mod standard;

pub use standard::Cuckoo;
