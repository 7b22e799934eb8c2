//! The TinySet family; [`families`](crate::families) has its essay.
//!
//! `filter` is the filter, `block` the block as the paper has it, `fast` the short cuts for the
//! usual block of 64 bytes, and `eight` eight lookups at once; the vector instructions are in
//! `simd/tinyset`.

mod block;
mod eight;
mod fast;
mod filter;

pub use filter::{TinySet, TinySetOf, TinySetRemovable};
