//! The peel family; [`families`](crate::families) has its essay.

pub(crate) mod binary_fuse;
mod bloomier;
mod iblt;
mod peeler;
mod xor;
mod xor_plus;

pub use binary_fuse::{BinaryFuse, BinaryFuse8, BinaryFuse16, BinaryFuse32, Fingerprint};
pub use bloomier::Bloomier;
pub use iblt::{Difference, Iblt, Incomplete, Lookup, NoValues};
pub use xor::{Xor, Xor8, Xor16};
pub use xor_plus::{XorPlus, XorPlus8, XorPlus16};
