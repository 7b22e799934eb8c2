//! The peeling family: tables built once from all keys, in which the slots of a key combine to
//! its fingerprint.
//!
//! A key has three (or four) slots, and the table is solved so that the xor of what they hold is
//! the key's fingerprint. An absent key's slots combine to a fingerprint of no meaning, which
//! agrees with its own with probability 2⁻ᶠ. Nothing but fingerprints is stored, and a lookup has
//! no branch.
//!
//! The table is solved by *peeling*: a slot that only one key uses can be set last, whatever the
//! others hold, so that key is put aside; this may leave other slots with one key; and so on
//! until no key is left. The order backwards is the order in which to fill the slots.
//!
//! [`BinaryFuse`] is such a table, [`Xor`] its simpler ancestor, and [`XorPlus`] that one without
//! its empty slots. [`Bloomier`] keeps a value beside the fingerprint. [`Iblt`] peels to list:
//! its cells hold keys, and the table of the difference of two sets gives both sides of it.

pub(crate) mod binary_fuse;
mod bloomier;
mod iblt;
mod peeler;
mod xor;
mod xor_plus;

pub use binary_fuse::{BinaryFuse, BinaryFuse8, BinaryFuse16, BinaryFuse32, Fingerprint};
pub use bloomier::Bloomier;
pub use iblt::{Difference, Iblt, Incomplete, Lookup};
pub use xor::{Xor, Xor8, Xor16};
pub use xor_plus::{XorPlus, XorPlus8, XorPlus16};
