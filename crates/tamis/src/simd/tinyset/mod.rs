//! Kernels for TinySet's blocks: comparing fields, making room for one, and eight chains at once.

mod chains;
mod fields;
mod gap;

pub(crate) use chains::{Cut, Eight};
pub(crate) use fields::Fields;
pub(crate) use gap::Gap;
