//! Kernels of TinySet's blocks: comparing fields, making room for one, and eight chains at once.

mod chains;
mod fields;
mod gap;

pub(crate) use chains::{Answers, Cut, Eight};
pub(crate) use fields::{Compared, Fields};
pub(crate) use gap::Gap;
