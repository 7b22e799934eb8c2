//! The package's one room for `unsafe`: what Python, its buffers and Arrow hand over as pointers.
#![allow(
    unsafe_code,
    reason = "the interfaces of Python's strings and buffers and of Arrow are pointers"
)]

pub(crate) mod arrow;
pub(crate) mod buffer;
pub(crate) mod objects;

use std::path::Path;

use pyo3::PyResult;
use tamis::Mapped;

use crate::errors;

/// A file that is mapped.
pub(crate) fn mapped(path: &Path) -> PyResult<Mapped> {
    // SAFETY: the documentation of `mmap=True` passes the condition on to the caller.
    let mapped = unsafe { Mapped::open(path) };
    mapped.map_err(|e| errors::os(&e, format!("{}: {e}", path.display())))
}
