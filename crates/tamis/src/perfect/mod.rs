//! Perfect hashing: every key of a fixed set has a number of its own, and something of the key is
//! kept under it.
//!
//! A minimal perfect hash function numbers n keys from 0 to n − 1 in two to three bits a key,
//! without storing them. For any other key it returns some number all the same, so a fingerprint
//! is kept under each. What no other static filter has is the number itself: it stays, and
//! whatever is kept under it can be changed in place.
//!
//! [`Perfect`] is the filter and, with values, the map.

mod filter;
mod function;

pub use filter::Perfect;
