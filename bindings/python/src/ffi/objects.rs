//! Plain Python objects as keys: what is asked a million times a second.

use std::ffi::{c_char, c_int};
use std::slice;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3::{Borrowed, ffi};
use tamis::Hashing;

unsafe extern "C" {
    /// Of the stable interface since Python 3.10, and exported by 3.9 just the same.
    fn PyUnicode_AsUTF8AndSize(
        unicode: *mut ffi::PyObject,
        size: *mut ffi::Py_ssize_t,
    ) -> *const c_char;
}

/// The hash of an object that is text, bytes or a whole number; `None` for any other.
///
/// Runs no Python code, so that a borrowed reference stays good.
#[inline]
pub(crate) fn hash_plain(
    object: Borrowed<'_, '_, PyAny>,
    hashing: &Hashing,
) -> PyResult<Option<u64>> {
    let ptr = object.as_ptr();
    // SAFETY: the object is alive, and its type is not written to.
    let (kind, text) = unsafe { (ffi::Py_TYPE(ptr), &raw mut ffi::PyUnicode_Type) };
    if kind == text {
        return hash_text(object, hashing).map(Some);
    }
    // SAFETY: the type of an object that is alive.
    let flags = unsafe { ffi::PyType_GetFlags(kind) };
    if flags & ffi::Py_TPFLAGS_UNICODE_SUBCLASS != 0 {
        return hash_text(object, hashing).map(Some);
    }
    if flags & ffi::Py_TPFLAGS_LONG_SUBCLASS != 0 {
        if ptr == true_ptr() || ptr == false_ptr() {
            return Ok(None);
        }
        return hash_integer(object, hashing).map(Some);
    }
    if flags & ffi::Py_TPFLAGS_BYTES_SUBCLASS != 0 {
        // SAFETY: the object is a `bytes`, whose memory never changes.
        let bytes = unsafe {
            let data = ffi::PyBytes_AsString(ptr).cast::<u8>();
            slice::from_raw_parts(data, ffi::PyBytes_Size(ptr) as usize)
        };
        return Ok(Some(hashing.hash_bytes(bytes)));
    }
    Ok(None)
}

/// The hash of a `str`.
#[inline]
fn hash_text(object: Borrowed<'_, '_, PyAny>, hashing: &Hashing) -> PyResult<u64> {
    let mut len = 0;
    // SAFETY: the object is a `str`, which keeps the text alive; the borrow of it lasts as long as
    // this call.
    let text = unsafe {
        let data = PyUnicode_AsUTF8AndSize(object.as_ptr(), &raw mut len);
        if data.is_null() {
            return Err(PyErr::fetch(object.py()));
        }
        slice::from_raw_parts(data.cast::<u8>(), len as usize)
    };
    Ok(hashing.hash_bytes(text))
}

fn true_ptr() -> *mut ffi::PyObject {
    // SAFETY: lives as long as Python does.
    unsafe { ffi::Py_True() }
}

fn false_ptr() -> *mut ffi::PyObject {
    // SAFETY: lives as long as Python does.
    unsafe { ffi::Py_False() }
}

/// The hash of an `int`, if 64 bits hold it.
fn hash_integer(object: Borrowed<'_, '_, PyAny>, hashing: &Hashing) -> PyResult<u64> {
    let (py, ptr) = (object.py(), object.as_ptr());
    let mut overflow: c_int = 0;
    // SAFETY: the object is an `int`.
    let value = unsafe { ffi::PyLong_AsLongLongAndOverflow(ptr, &raw mut overflow) };
    if overflow == 0 {
        return Ok(hashing.hash(&value));
    }
    if overflow > 0 {
        // SAFETY: as above.
        let value = unsafe { ffi::PyLong_AsUnsignedLongLong(ptr) };
        if PyErr::take(py).is_none() {
            return Ok(hashing.hash(&value));
        }
    }
    Err(PyOverflowError::new_err(
        "a whole number is a key from -2**63 to 2**64 - 1; make bytes or text of a larger one",
    ))
}

/// How many items of a list are looked at together.
pub(crate) const BLOCK: usize = 32;

/// Hashes the items of a list or tuple from number `start` on, up to `most` of them, as far as they
/// are text, bytes or whole numbers. The first that is not, or is not there, ends it.
pub(crate) fn hash_items(
    items: &Bound<'_, PyAny>,
    is_list: bool,
    start: usize,
    most: usize,
    hashing: &Hashing,
    hashes: &mut Vec<u64>,
) -> PyResult<()> {
    let (py, ptr) = (items.py(), items.as_ptr());
    let mut block = [std::ptr::null_mut(); BLOCK];
    let mut next = start;
    while next < start + most {
        let size = BLOCK.min(start + most - next);
        let mut found = 0;
        for (i, item) in (next..).zip(&mut block[..size]) {
            let i = i as ffi::Py_ssize_t;
            // SAFETY: `items` is a list or a tuple, as the caller found; both calls compare the
            // index with the length. No Python code runs before the block is hashed, so that the
            // borrowed items stay alive.
            *item = unsafe {
                match is_list {
                    true => ffi::PyList_GetItem(ptr, i),
                    false => ffi::PyTuple_GetItem(ptr, i),
                }
            };
            if item.is_null() {
                // Behind the end of a list that became shorter.
                // SAFETY: attached to Python.
                unsafe { ffi::PyErr_Clear() };
                break;
            }
            prefetch(*item);
            found += 1;
        }
        for &item in &block[..found] {
            // SAFETY: see above.
            let object = unsafe { Borrowed::from_ptr(py, item) };
            match hash_plain(object, hashing)? {
                Some(hash) => hashes.push(hash),
                None => return Ok(()),
            }
        }
        if found < size {
            break;
        }
        next += size;
    }
    Ok(())
}

/// A list of truths. It begins as one of the more frequent, which is repeated at once.
pub(crate) fn list_of_truths<'py>(py: Python<'py>, truths: &[bool]) -> PyResult<Bound<'py, PyAny>> {
    let most = 2 * truths.iter().filter(|&&truth| truth).count() > truths.len();
    let other = if most { false_ptr() } else { true_ptr() };
    let list = PyList::new(py, [most])?;
    // SAFETY: a new list is ours until it is returned; each place takes a reference of its own.
    unsafe {
        let list = ffi::PySequence_Repeat(list.as_ptr(), truths.len() as ffi::Py_ssize_t);
        let list = Bound::from_owned_ptr_or_err(py, list)?;
        for (i, _) in truths
            .iter()
            .enumerate()
            .filter(|&(_, &truth)| truth != most)
        {
            ffi::Py_INCREF(other);
            ffi::PyList_SetItem(list.as_ptr(), i as ffi::Py_ssize_t, other);
        }
        Ok(list)
    }
}

/// Asks for the memory of an item that will be read soon.
#[inline]
fn prefetch(object: *mut ffi::PyObject) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(object.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = object;
}
