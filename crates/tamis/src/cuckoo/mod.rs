//! The cuckoo family: tables of short fingerprints in which every key has two buckets, and a
//! fingerprint can be moved from one to the other without knowing its key.

mod standard;

pub use standard::Cuckoo;
