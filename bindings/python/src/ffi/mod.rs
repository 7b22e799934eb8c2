//! The package's one room for `unsafe`: what Python, its buffers and Arrow hand over as pointers.
#![allow(
    unsafe_code,
    reason = "the interfaces of Python's strings and buffers and of Arrow are pointers"
)]

pub(crate) mod arrow;
pub(crate) mod buffer;
pub(crate) mod objects;

use std::io;
use std::path::Path;

use tamis::Mapped;

/// A file that is mapped.
pub(crate) fn mapped(path: &Path) -> io::Result<Mapped> {
    let named = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    // SAFETY: the documentation of `mmap=True` passes the condition on to the caller.
    unsafe { Mapped::open(path) }.map_err(named)
}
