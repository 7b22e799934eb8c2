//! Python's buffer protocol: arrays of numpy and of the module `array` are lent to us, and the
//! bytes of a filter to Python.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::{ptr, slice};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMemoryView, PyType};
use tamis::Hashing;

use crate::filter::Bytes;
use crate::keys::Column;

/// `Py_buffer`, which is of the stable interface since Python 3.11 and was laid out like this
/// before.
#[repr(C)]
struct RawBuffer {
    buf: *mut c_void,
    obj: *mut ffi::PyObject,
    len: ffi::Py_ssize_t,
    itemsize: ffi::Py_ssize_t,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut ffi::Py_ssize_t,
    strides: *mut ffi::Py_ssize_t,
    suboffsets: *mut ffi::Py_ssize_t,
    internal: *mut c_void,
}

unsafe extern "C" {
    /// Of the stable interface since Python 3.11, and exported before.
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut RawBuffer, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut RawBuffer);
    fn PyBuffer_FillInfo(
        view: *mut RawBuffer,
        lender: *mut ffi::PyObject,
        buf: *mut c_void,
        len: ffi::Py_ssize_t,
        readonly: c_int,
        flags: c_int,
    ) -> c_int;
}

const STRIDES: c_int = 0x0010 | 0x0008;
const FORMAT: c_int = 0x0004;

/// What the elements are.
#[derive(Clone, Copy)]
enum Element {
    Signed(usize),
    Unsigned(usize),
    /// Bytes of a fixed number, without the zeros at their end.
    Bytes,
    /// Text of a fixed number of code points, without the zeros at its end.
    Text,
}

/// A one-dimensional array that is lent for as long as this lives.
pub(crate) struct Array {
    // Boxed, as its owner may point into it.
    raw: Box<RawBuffer>,
    len: usize,
    stride: isize,
    element: Element,
    /// Whether the bytes of an element stand the other way round.
    swapped: bool,
}

// SAFETY: the memory is only read, and its owner keeps it until `Drop`, which attaches to Python.
unsafe impl Send for Array {}
// SAFETY: as above.
unsafe impl Sync for Array {}

impl Drop for Array {
    fn drop(&mut self) {
        let raw = &raw mut *self.raw;
        // SAFETY: filled by `PyObject_GetBuffer` and released once, attached to Python.
        Python::attach(|_| unsafe { PyBuffer_Release(raw) });
    }
}

impl Array {
    /// The array of an object that has one.
    pub(crate) fn lent(object: &Bound<'_, PyAny>) -> PyResult<Array> {
        let mut raw = Box::new(MaybeUninit::<RawBuffer>::zeroed());
        // SAFETY: the object is alive, and the struct is as the interface has it.
        let failed =
            unsafe { PyObject_GetBuffer(object.as_ptr(), raw.as_mut_ptr(), STRIDES | FORMAT) };
        if failed != 0 {
            // Such as numpy's of dates, which has no format.
            let why = PyErr::fetch(object.py());
            return Err(unsuited(&why.value(object.py()).to_string()));
        }
        // SAFETY: all zeros is a value of every field, and the call has filled it.
        let raw = unsafe { Box::from_raw(Box::into_raw(raw).cast::<RawBuffer>()) };
        let mut array = Array {
            raw,
            len: 0,
            stride: 0,
            element: Element::Bytes,
            swapped: false,
        };
        if array.raw.ndim != 1 {
            let ndim = array.raw.ndim;
            return Err(PyValueError::new_err(format!(
                "keys are an array of one dimension, and this has {ndim}; `ravel()` it first"
            )));
        }
        // SAFETY: with one dimension and `STRIDES` asked for, both arrays have one element.
        (array.len, array.stride) = unsafe { (*array.raw.shape as usize, *array.raw.strides) };
        let format = match array.raw.format.is_null() {
            true => "B".into(),
            // SAFETY: not null, so a C string that lives as long as the buffer.
            false => unsafe { CStr::from_ptr(array.raw.format) }.to_string_lossy(),
        };
        (array.element, array.swapped) = element(&format, array.raw.itemsize as usize)?;
        if matches!(array.element, Element::Text) && !object.py().detach(|| array.has_utf8()) {
            return Err(PyValueError::new_err(
                "a key has a lone surrogate, so it has no UTF-8; encode such text to bytes",
            ));
        }
        Ok(array)
    }

    /// Whether all text can be written as UTF-8.
    fn has_utf8(&self) -> bool {
        let mut points = (0..self.len).flat_map(|i| self.points(i));
        points.all(|point| char::from_u32(point).is_some())
    }

    /// The code points of an element of text, zeros at its end among them.
    #[inline]
    fn points(&self, i: usize) -> impl Iterator<Item = u32> {
        self.bytes(i).chunks_exact(4).map(|point| {
            let point = [point[0], point[1], point[2], point[3]];
            match self.swapped {
                true => u32::from_be_bytes(point),
                false => u32::from_le_bytes(point),
            }
        })
    }

    /// The bytes of an element.
    #[inline]
    fn bytes(&self, i: usize) -> &[u8] {
        debug_assert!(i < self.len);
        // SAFETY: `i` is below the length, so the element lies in the buffer, which is lent.
        // Whoever changes it meanwhile makes some other key of it.
        unsafe {
            let at = self.raw.buf.cast::<u8>().offset(i as isize * self.stride);
            slice::from_raw_parts(at, self.raw.itemsize as usize)
        }
    }

    /// The elements as a slice, if they lie so.
    pub(crate) fn whole<T: tamis::Key>(&self) -> Option<&[T]> {
        let data = self.raw.buf.cast::<T>();
        let plain = self.stride == size_of::<T>() as isize
            && self.raw.itemsize as usize == size_of::<T>()
            && data.is_aligned()
            && !data.is_null()
            && !self.swapped;
        // SAFETY: aligned, without gaps, and lent; every bit pattern is an integer.
        plain.then(|| unsafe { slice::from_raw_parts(data, self.len) })
    }

    /// Hashes integers where they lie side by side.
    fn hash_words<T: tamis::Key>(&self, hashing: &Hashing, start: usize, out: &mut [u64]) -> bool {
        let Some(words) = self.whole::<T>() else {
            return false;
        };
        for (hash, word) in out.iter_mut().zip(&words[start..]) {
            *hash = hashing.hash(word);
        }
        true
    }

    /// A number, if it is whole and not negative.
    pub(crate) fn word(&self, i: usize) -> Option<u64> {
        match self.element {
            Element::Unsigned(_) => Some(u64::from_le_bytes(self.integer(i))),
            Element::Signed(width) => u64::try_from(self.signed(i, width)).ok(),
            Element::Bytes | Element::Text => None,
        }
    }

    #[inline]
    fn signed(&self, i: usize, width: usize) -> i64 {
        let spare = 64 - 8 * width as u32;
        i64::from_le_bytes(self.integer(i)) << spare >> spare
    }

    #[inline]
    fn integer(&self, i: usize) -> [u8; 8] {
        let mut word = [0; 8];
        let bytes = self.bytes(i);
        word[..bytes.len()].copy_from_slice(bytes);
        if self.swapped {
            word[..bytes.len()].reverse();
        }
        word
    }
}

impl Column for Array {
    fn len(&self) -> usize {
        self.len
    }

    fn hash(&self, hashing: &Hashing, start: usize, out: &mut [u64]) {
        let done = match self.element {
            Element::Signed(8) => self.hash_words::<i64>(hashing, start, out),
            Element::Signed(4) => self.hash_words::<i32>(hashing, start, out),
            Element::Unsigned(8) => self.hash_words::<u64>(hashing, start, out),
            Element::Unsigned(4) => self.hash_words::<u32>(hashing, start, out),
            _ => false,
        };
        if done {
            return;
        }
        let mut text = String::new();
        for (i, hash) in (start..).zip(out) {
            *hash = match self.element {
                Element::Signed(width) => hashing.hash(&self.signed(i, width)),
                Element::Unsigned(_) => hashing.hash(&u64::from_le_bytes(self.integer(i))),
                Element::Bytes => hashing.hash_bytes(without_zeros(self.bytes(i))),
                Element::Text => {
                    text.clear();
                    let points = self
                        .points(i)
                        .map(|point| char::from_u32(point).unwrap_or_default());
                    text.extend(points);
                    hashing.hash(text.trim_end_matches('\0'))
                }
            };
        }
    }

    fn is_null(&self, _: usize) -> bool {
        false
    }

    fn may_have_nulls(&self) -> bool {
        false
    }
}

fn without_zeros(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte != 0);
    &bytes[..end.map_or(0, |end| end + 1)]
}

/// What a format of the module `struct` says, with the codes that numpy has for text.
fn element(format: &str, size: usize) -> PyResult<(Element, bool)> {
    let (order, code) = match format.as_bytes().first() {
        Some(b'<' | b'>' | b'=' | b'@' | b'!' | b'|') => format.split_at(1),
        _ => ("@", format),
    };
    let big = matches!(order, ">" | "!");
    let native = matches!(order, "@" | "=") && cfg!(target_endian = "big");
    let swapped = (big || native) && size > 1;
    let element = match code {
        "b" | "h" | "i" | "l" | "q" | "n" if size <= 8 => Element::Signed(size),
        "B" | "H" | "I" | "L" | "Q" | "N" if size <= 8 => Element::Unsigned(size),
        code if code.ends_with('s') => Element::Bytes,
        code if code.ends_with('w') => Element::Text,
        _ => return Err(unsuited(&format!("format `{format}`"))),
    };
    Ok((element, swapped))
}

fn unsuited(what: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "keys are an array of integers, bytes or text, not of this ({what}); give its integers by \
         `view` or `astype`, or its text by `astype(str)`"
    ))
}

/// The object behind a `memoryview` of ours: it keeps the bytes.
#[repr(C)]
struct Lender {
    base: ffi::PyObject,
    /// From a box; null in an object that Python made by itself.
    bytes: *mut Bytes,
}

/// The slot of the buffer protocol, which is of the stable interface since Python 3.11 and was
/// taken before.
const GET_BUFFER: c_int = 1;

/// Bytes as a `memoryview` that nobody can write to, and that keeps them.
pub(crate) fn lend(py: Python<'_>, bytes: Bytes) -> PyResult<Bound<'_, PyMemoryView>> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let kind = TYPE.get_or_try_init(py, || lender_type(py))?.bind(py);
    // SAFETY: the type is alive, and its objects are as large as `Lender`; the new one is ours
    // until it is lent.
    let lender = unsafe {
        let made = ffi::PyType_GenericAlloc(kind.as_type_ptr(), 0);
        let lender = Bound::from_owned_ptr_or_err(py, made)?;
        (*made.cast::<Lender>()).bytes = Box::into_raw(Box::new(bytes));
        lender
    };
    PyMemoryView::from(&lender)
}

fn lender_type(py: Python<'_>) -> PyResult<Py<PyType>> {
    let slot = |slot, pfunc| ffi::PyType_Slot { slot, pfunc };
    let mut slots = [
        slot(GET_BUFFER, get_buffer as *mut c_void),
        slot(ffi::Py_tp_dealloc, free as *mut c_void),
        slot(0, ptr::null_mut()),
    ];
    let mut spec = ffi::PyType_Spec {
        name: c"tamis._Lender".as_ptr(),
        basicsize: size_of::<Lender>() as c_int,
        itemsize: 0,
        flags: ffi::Py_TPFLAGS_DEFAULT as std::ffi::c_uint,
        slots: slots.as_mut_ptr(),
    };
    // SAFETY: the slots end with a zero, and their functions have the signatures of their slots.
    let made = unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyType_FromSpec(&raw mut spec)) }?;
    Ok(made.cast_into::<PyType>()?.unbind())
}

unsafe extern "C" fn get_buffer(
    lender: *mut ffi::PyObject,
    view: *mut RawBuffer,
    flags: c_int,
) -> c_int {
    // SAFETY: Python calls this, attached, for objects of our type alone. A view keeps its lender,
    // and the lender its bytes.
    unsafe {
        let bytes = (*lender.cast::<Lender>()).bytes;
        let bytes = bytes
            .as_ref()
            .map_or(&[] as &[u8], |bytes| (**bytes).as_ref());
        let start = bytes.as_ptr().cast_mut().cast();
        let len = bytes.len() as ffi::Py_ssize_t;
        PyBuffer_FillInfo(view, lender, start, len, 1, flags)
    }
}

unsafe extern "C" fn free(lender: *mut ffi::PyObject) {
    // SAFETY: the last reference to an object of our type is gone; the object holds one to its
    // type.
    unsafe {
        let kind = ffi::Py_TYPE(lender);
        let bytes = (*lender.cast::<Lender>()).bytes;
        if !bytes.is_null() {
            drop(Box::from_raw(bytes));
        }
        ffi::PyObject_Free(lender.cast());
        ffi::Py_DECREF(kind.cast());
    }
}
