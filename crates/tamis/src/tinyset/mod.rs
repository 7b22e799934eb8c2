//! TinySet: a chained hash table in one cache line.
//!
//! A hash chooses a block, a chain in the block and a remainder; the block keeps the remainders
//! of its chains side by side, and as many of their bits as there is room for. [`TinySet`] only
//! takes keys in, [`TinySetRemovable`] pays two bits a block to let them go again.
//!
//! `filter` is the filter, `block` the block as the paper has it, `fast` the short cuts for the
//! usual block of 64 bytes, and `eight` eight lookups at once; the vector instructions are in
//! `simd/tinyset`.

mod block;
mod eight;
mod fast;
mod filter;

pub use filter::{TinySet, TinySetOf, TinySetRemovable};
