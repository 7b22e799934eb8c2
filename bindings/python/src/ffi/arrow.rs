//! Arrow's C data interface: columns of strings, bytes, integers and dictionaries come in, booleans
//! and counts go out, and nothing is copied.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tamis::Hashing;

use crate::keys::Column;

#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

#[repr(C)]
struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private_data: *mut c_void,
}

/// A struct of the interface, which has a name as a capsule and is released once.
trait Raw: Sized {
    const CAPSULE: &'static CStr;
    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)>;
}

macro_rules! raw {
    ($($type:ident $name:literal)*) => {$(
        impl Raw for $type {
            const CAPSULE: &'static CStr = $name;
            fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut $type)> {
                &mut self.release
            }
        }
    )*};
}
raw!(Schema c"arrow_schema" Array c"arrow_array" Stream c"arrow_array_stream");

/// A struct that was moved to us, and that we release.
struct Owned<T: Raw>(T);

// SAFETY: the interface lets a struct be used and released on any thread, one at a time.
unsafe impl<T: Raw> Send for Owned<T> {}
// SAFETY: shared, it is only read.
unsafe impl<T: Raw> Sync for Owned<T> {}

impl<T: Raw> Owned<T> {
    /// All fields zero: for a callee to fill.
    fn empty() -> Owned<T> {
        // SAFETY: the structs are numbers and pointers that may be null.
        unsafe { std::mem::zeroed() }
    }

    /// Moves the struct out of a capsule.
    fn taken(capsule: &Bound<'_, PyAny>) -> PyResult<Owned<T>> {
        // SAFETY: the object is alive. A capsule of this name holds this struct, and what is no
        // capsule of the name is refused.
        unsafe {
            let raw = ffi::PyCapsule_GetPointer(capsule.as_ptr(), T::CAPSULE.as_ptr()).cast::<T>();
            if raw.is_null() {
                return Err(PyErr::fetch(capsule.py()));
            }
            let mut taken = Owned(raw.read());
            if taken.0.release().is_none() {
                return Err(damaged("what it had given away before"));
            }
            *(*raw).release() = None;
            Ok(taken)
        }
    }
}

impl<T: Raw> Drop for Owned<T> {
    fn drop(&mut self) {
        if let Some(release) = self.0.release().take() {
            *self.0.release() = Some(release);
            // SAFETY: ours, and released this once.
            unsafe { release(&raw mut self.0) };
        }
    }
}

/// How the values of a column lie in memory.
#[derive(Clone, Copy)]
enum Layout {
    Null,
    Integer { width: usize, signed: bool },
    Offsets32,
    Offsets64,
    Views,
    Fixed(usize),
}

/// The type of a column of keys.
struct Kind {
    layout: Layout,
    /// Of the values, where the column holds numbers of these.
    dictionary: Option<Box<Kind>>,
}

impl Kind {
    /// The type that a schema tells, and whether it is of the one child of a struct.
    fn of(schema: &Schema) -> PyResult<(Kind, bool)> {
        let format = text(schema.format);
        if format != "+s" {
            return Ok((Kind::of_column(schema, &format)?, false));
        }
        if schema.n_children != 1 {
            let columns = schema.n_children;
            return Err(PyTypeError::new_err(format!(
                "keys are one column, and this has {columns}; choose one of them"
            )));
        }
        // SAFETY: there is one child.
        let child = unsafe { &**schema.children };
        Ok((Kind::of_column(child, &text(child.format))?, true))
    }

    fn of_column(schema: &Schema, format: &str) -> PyResult<Kind> {
        let integer = |width, signed| Layout::Integer { width, signed };
        let layout = match format {
            "n" => Layout::Null,
            "c" => integer(1, true),
            "C" => integer(1, false),
            "s" => integer(2, true),
            "S" => integer(2, false),
            "i" => integer(4, true),
            "I" => integer(4, false),
            "l" => integer(8, true),
            "L" => integer(8, false),
            "u" | "z" => Layout::Offsets32,
            "U" | "Z" => Layout::Offsets64,
            "vu" | "vz" => Layout::Views,
            _ => match format.strip_prefix("w:").and_then(|n| n.parse().ok()) {
                Some(width) => Layout::Fixed(width),
                None => {
                    return Err(PyTypeError::new_err(format!(
                        "keys are a column of text, bytes or integers, not of Arrow's type \
                         `{format}`; cast it first, to int64 or to a string"
                    )));
                }
            },
        };
        // SAFETY: a schema's dictionary is null or a schema that lives as long.
        let dictionary = match unsafe { schema.dictionary.as_ref() } {
            Some(values) => Some(Box::new(Kind::of_column(values, &text(values.format))?)),
            None => None,
        };
        Ok(Kind { layout, dictionary })
    }
}

fn text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: a C string of the interface.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// An array of keys, whoever owns its memory.
pub(crate) struct Keys {
    layout: Layout,
    len: usize,
    /// Where the first value stands, in values.
    offset: usize,
    validity: Option<NonNull<u8>>,
    /// The buffers behind the validity.
    first: *const u8,
    second: *const u8,
    /// The buffers that views point into.
    data: Vec<*const u8>,
    /// The values that the numbers are of.
    dictionary: Option<Box<Keys>>,
    /// Of the struct that the array is a child of.
    outer: Option<(NonNull<u8>, usize)>,
    _owner: Arc<Owned<Array>>,
}

// SAFETY: Arrow's memory does not change while its owner lives, and the owner is kept.
unsafe impl Send for Keys {}
// SAFETY: as above.
unsafe impl Sync for Keys {}

impl Keys {
    fn new(array: Owned<Array>, kind: &Kind, is_child: bool) -> PyResult<Keys> {
        let owner = Arc::new(array);
        if !is_child {
            return Keys::view(&owner.0, kind, &owner);
        }
        let outer = &owner.0;
        if outer.n_children != 1 {
            return Err(damaged("a struct without its child"));
        }
        // SAFETY: there is one child, which lives as long as its parent.
        let child = unsafe { &**outer.children };
        let mut keys = Keys::view(child, kind, &owner)?;
        let (skip, len) = (count(outer.offset)?, count(outer.length)?);
        if skip + len > keys.len {
            return Err(damaged("a struct that is longer than its child"));
        }
        (keys.offset, keys.len) = (keys.offset + skip, len);
        keys.outer = buffer(outer, 0)
            .and_then(NonNull::new)
            .map(|bits| (bits, skip));
        Ok(keys)
    }

    fn view(array: &Array, kind: &Kind, owner: &Arc<Owned<Array>>) -> PyResult<Keys> {
        let layout = kind.layout;
        let needed = match layout {
            Layout::Null => 0,
            Layout::Integer { .. } | Layout::Fixed(_) | Layout::Views => 2,
            Layout::Offsets32 | Layout::Offsets64 => 3,
        };
        if array.n_buffers < needed {
            return Err(damaged("an array that lacks a buffer"));
        }
        let part = |i| buffer(array, i).unwrap_or(ptr::null_mut()).cast_const();
        let data = match layout {
            // The last buffer holds their lengths.
            Layout::Views => (2..array.n_buffers.max(3) - 1).map(part).collect(),
            _ => Vec::new(),
        };
        let len = count(array.length)?;
        let bits = buffer(array, 0).filter(|_| !matches!(layout, Layout::Null));
        let dictionary = match &kind.dictionary {
            None => None,
            Some(kind) => {
                // SAFETY: null, or an array that lives as long.
                let values = unsafe { array.dictionary.as_ref() };
                let values = values.ok_or_else(|| damaged("an array without its dictionary"))?;
                Some(Box::new(Keys::view(values, kind, owner)?))
            }
        };
        let (first, second) = (part(1), part(2));
        if len > 0 && first.is_null() && needed > 0 {
            return Err(damaged("an array that lacks its values"));
        }
        Ok(Keys {
            layout,
            len,
            offset: count(array.offset)?,
            validity: bits
                .and_then(NonNull::new)
                .filter(|_| array.null_count != 0),
            first,
            second,
            data,
            dictionary,
            outer: None,
            _owner: Arc::clone(owner),
        })
    }

    /// The word number `i` of an array.
    #[inline]
    fn word<T: Copy>(&self, base: *const u8, i: usize) -> T {
        // SAFETY: `i` is below the length of the array, by the callers; Arrow aligns its buffers to
        // eight bytes at least, but need not.
        unsafe { base.cast::<T>().add(i).read_unaligned() }
    }

    #[inline]
    fn integer(&self, i: usize, width: usize, signed: bool) -> i64 {
        let base = self.first;
        match (width, signed) {
            (1, true) => i64::from(self.word::<i8>(base, i)),
            (1, false) => i64::from(self.word::<u8>(base, i)),
            (2, true) => i64::from(self.word::<i16>(base, i)),
            (2, false) => i64::from(self.word::<u16>(base, i)),
            (4, true) => i64::from(self.word::<i32>(base, i)),
            (4, false) => i64::from(self.word::<u32>(base, i)),
            _ => self.word::<i64>(base, i),
        }
    }

    /// The bytes from one offset to another; none where they make no sense.
    #[inline]
    fn between(&self, start: i64, end: i64) -> &[u8] {
        if start < 0 || end <= start || self.second.is_null() {
            return &[];
        }
        // SAFETY: offsets lie in the buffer of the data.
        unsafe { slice::from_raw_parts(self.second.add(start as usize), (end - start) as usize) }
    }

    /// The string or bytes number `i`, counted from the start of the buffers.
    #[inline]
    fn bytes(&self, i: usize) -> &[u8] {
        match self.layout {
            Layout::Offsets32 => {
                let [start, end] = [i, i + 1].map(|i| self.word::<i32>(self.first, i));
                self.between(start.into(), end.into())
            }
            Layout::Offsets64 => {
                self.between(self.word(self.first, i), self.word(self.first, i + 1))
            }
            Layout::Fixed(width) => {
                // SAFETY: the buffer has as many bytes for each value.
                unsafe { slice::from_raw_parts(self.first.add(i * width), width) }
            }
            Layout::Views => self.viewed(i),
            Layout::Null | Layout::Integer { .. } => &[],
        }
    }

    /// Up to 12 bytes stand in the view; of more, the number of a buffer and the place there.
    #[inline]
    fn viewed(&self, i: usize) -> &[u8] {
        // SAFETY: the buffer has 16 bytes for each view.
        let view = unsafe { slice::from_raw_parts(self.first.add(16 * i), 16) };
        let part =
            |at: usize| u32::from_le_bytes([view[at], view[at + 1], view[at + 2], view[at + 3]]);
        let len = part(0) as usize;
        if len <= 12 {
            return &view[4..4 + len];
        }
        match self.data.get(part(8) as usize) {
            // SAFETY: a view lies in its buffer.
            Some(&data) if !data.is_null() => unsafe {
                slice::from_raw_parts(data.add(part(12) as usize), len)
            },
            _ => &[],
        }
    }

    /// The column to be hashed. The values of a dictionary are hashed here, each once, where they
    /// are fewer than the rows.
    pub(crate) fn prepared(self, hashing: &Hashing) -> Box<dyn Column> {
        match &self.dictionary {
            Some(values) if values.len <= self.len => {
                let mut hashes = vec![0; values.len];
                values.hash(hashing, 0, &mut hashes);
                Box::new(Numbers { keys: self, hashes })
            }
            _ => Box::new(self),
        }
    }

    /// The numbers, if all are whole and none is negative or null.
    pub(crate) fn words(&self) -> Option<Vec<u64>> {
        let Layout::Integer { width, signed } = self.layout else {
            return None;
        };
        let word = |i| {
            let word = self.integer(self.offset + i, width, signed);
            let fits = (word >= 0 || !signed) && !self.is_null(i) && self.dictionary.is_none();
            fits.then_some(word as u64)
        };
        (0..self.len).map(word).collect()
    }

    /// The number of the value that row `i` has in the dictionary.
    fn number(&self, i: usize) -> Option<usize> {
        let Layout::Integer { width, signed } = self.layout else {
            return None;
        };
        usize::try_from(self.integer(self.offset + i, width, signed)).ok()
    }
}

impl Column for Keys {
    fn len(&self) -> usize {
        self.len
    }

    fn hash(&self, hashing: &Hashing, start: usize, out: &mut [u64]) {
        if let Some(values) = &self.dictionary {
            let mut hashes = [0];
            for (i, hash) in (start..).zip(out) {
                if let Some(number) = self.number(i).filter(|&number| number < values.len) {
                    values.hash(hashing, number, &mut hashes);
                    *hash = hashes[0];
                }
            }
            return;
        }
        match self.layout {
            Layout::Null => {}
            Layout::Integer { width, signed } => {
                for (i, hash) in (self.offset + start..).zip(out) {
                    *hash = hashing.hash(&self.integer(i, width, signed));
                }
            }
            _ => {
                let nulls = self.may_have_nulls();
                for (i, hash) in (start..).zip(out) {
                    // Where a null stands there may be anything, such as a view of no memory.
                    if !(nulls && self.is_null(i)) {
                        *hash = hashing.hash_bytes(self.bytes(self.offset + i));
                    }
                }
            }
        }
    }

    fn is_null(&self, i: usize) -> bool {
        let is_unset = |bits: NonNull<u8>, i: usize| {
            // SAFETY: the bits are as many as the values.
            let byte = unsafe { bits.as_ptr().add(i / 8).read() };
            byte >> (i % 8) & 1 == 0
        };
        let of_value = || {
            let values = self.dictionary.as_ref()?;
            let number = self.number(i).filter(|&number| number < values.len);
            Some(number.is_none_or(|number| values.is_null(number)))
        };
        matches!(self.layout, Layout::Null)
            || self
                .validity
                .is_some_and(|bits| is_unset(bits, self.offset + i))
            || self
                .outer
                .is_some_and(|(bits, skip)| is_unset(bits, skip + i))
            || of_value().unwrap_or(false)
    }

    fn may_have_nulls(&self) -> bool {
        matches!(self.layout, Layout::Null)
            || self.validity.is_some()
            || self.outer.is_some()
            || self.dictionary.is_some()
    }
}

/// A column of numbers of values whose hashes are known.
struct Numbers {
    keys: Keys,
    hashes: Vec<u64>,
}

impl Column for Numbers {
    fn len(&self) -> usize {
        self.keys.len
    }

    fn hash(&self, _: &Hashing, start: usize, out: &mut [u64]) {
        for (i, hash) in (start..).zip(out) {
            let known = self
                .keys
                .number(i)
                .and_then(|number| self.hashes.get(number));
            *hash = known.copied().unwrap_or(0);
        }
    }

    fn is_null(&self, i: usize) -> bool {
        self.keys.is_null(i)
    }

    fn may_have_nulls(&self) -> bool {
        self.keys.may_have_nulls()
    }
}

fn buffer(array: &Array, i: i64) -> Option<*mut u8> {
    if i >= array.n_buffers || array.buffers.is_null() {
        return None;
    }
    // SAFETY: the list has `n_buffers` pointers.
    Some(unsafe { *array.buffers.add(i as usize) } as *mut u8)
}

fn count(n: i64) -> PyResult<usize> {
    usize::try_from(n).map_err(|_| damaged("a negative length"))
}

fn damaged(what: &str) -> PyErr {
    PyRuntimeError::new_err(format!("the producer of Arrow data gave {what}"))
}

/// Arrays of keys, as they come.
pub(crate) struct Chunks {
    kind: Kind,
    is_child: bool,
    from: From,
}

enum From {
    Array(Option<Owned<Array>>),
    Stream(Owned<Stream>),
}

impl Chunks {
    /// Of an object that gives one array.
    pub(crate) fn of_array(object: &Bound<'_, PyAny>) -> PyResult<Chunks> {
        let pair = object.call_method0("__arrow_c_array__")?;
        let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
        let schema = Owned::<Schema>::taken(&schema)?;
        let array = Owned::<Array>::taken(&array)?;
        let (kind, is_child) = Kind::of(&schema.0)?;
        let from = From::Array(Some(array));
        Ok(Chunks {
            kind,
            is_child,
            from,
        })
    }

    /// Of an object that gives a stream of them.
    pub(crate) fn of_stream(object: &Bound<'_, PyAny>) -> PyResult<Chunks> {
        let capsule = object.call_method0("__arrow_c_stream__")?;
        let mut stream = Owned::<Stream>::taken(&capsule)?;
        let mut schema = Owned::<Schema>::empty();
        let get_schema = stream
            .0
            .get_schema
            .ok_or_else(|| damaged("a stream without a schema"))?;
        let (raw, out) = (Pointer(&raw mut stream.0), Pointer(&raw mut schema.0));
        // SAFETY: the stream is ours, and the schema empty. Whoever serves it may need Python on
        // another thread.
        let status = object
            .py()
            .detach(move || unsafe { get_schema(raw.get(), out.get()) });
        failed(&mut stream, status)?;
        let (kind, is_child) = Kind::of(&schema.0)?;
        let from = From::Stream(stream);
        Ok(Chunks {
            kind,
            is_child,
            from,
        })
    }

    /// The next array, or `None` at the end.
    pub(crate) fn next(&mut self, py: Python<'_>) -> PyResult<Option<Keys>> {
        let array = match &mut self.from {
            From::Array(array) => array.take(),
            From::Stream(stream) => {
                let mut array = Owned::<Array>::empty();
                let get_next = stream
                    .0
                    .get_next
                    .ok_or_else(|| damaged("a stream without arrays"))?;
                let (raw, out) = (Pointer(&raw mut stream.0), Pointer(&raw mut array.0));
                // SAFETY: as for the schema.
                let status = py.detach(move || unsafe { get_next(raw.get(), out.get()) });
                failed(stream, status)?;
                array.0.release.is_some().then_some(array)
            }
        };
        array
            .map(|array| Keys::new(array, &self.kind, self.is_child))
            .transpose()
    }
}

/// A pointer that one thread at a time uses.
struct Pointer<T>(*mut T);

// SAFETY: it is used by the thread that made it, detached from Python.
unsafe impl<T> Send for Pointer<T> {}

impl<T> Pointer<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

fn failed(stream: &mut Owned<Stream>, status: c_int) -> PyResult<()> {
    if status == 0 {
        return Ok(());
    }
    let told = match stream.0.get_last_error {
        // SAFETY: the stream is ours and its last call has failed.
        Some(told) => text(unsafe { told(&raw mut stream.0) }),
        None => String::new(),
    };
    Err(PyRuntimeError::new_err(format!(
        "the stream of Arrow data failed ({status}): {told}"
    )))
}

/// What an answer's array owns.
struct Answers {
    _values: Vec<u64>,
    _validity: Option<Vec<u8>>,
    buffers: [*const c_void; 2],
}

/// The capsules of an array of bits or of 64-bit numbers: a pair of schema and array.
pub(crate) fn export<'py>(
    py: Python<'py>,
    format: &'static CStr,
    len: usize,
    values: Vec<u64>,
    validity: Option<Vec<u8>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let nulls = validity.as_ref().map_or(0, |bits| {
        let set: u32 = bits.iter().map(|byte| byte.count_ones()).sum();
        len as i64 - i64::from(set)
    });
    let mut owned = Box::new(Answers {
        buffers: [
            validity
                .as_ref()
                .map_or(ptr::null(), |bits| bits.as_ptr().cast()),
            values.as_ptr().cast(),
        ],
        _values: values,
        _validity: validity,
    });
    let array = Array {
        length: len as i64,
        null_count: nulls,
        offset: 0,
        n_buffers: 2,
        n_children: 0,
        buffers: owned.buffers.as_mut_ptr().cast_const(),
        children: ptr::null_mut(),
        dictionary: ptr::null_mut(),
        release: Some(release_array),
        private_data: Box::into_raw(owned).cast(),
    };
    let schema = Schema {
        format: format.as_ptr(),
        name: c"".as_ptr(),
        metadata: ptr::null(),
        // Nullable.
        flags: 2,
        n_children: 0,
        children: ptr::null_mut(),
        dictionary: ptr::null_mut(),
        release: Some(release_schema),
        private_data: ptr::null_mut(),
    };
    PyTuple::new(py, [capsule(py, schema)?, capsule(py, array)?])
}

fn capsule<T: Raw>(py: Python<'_>, raw: T) -> PyResult<Bound<'_, PyAny>> {
    let raw = Box::into_raw(Box::new(raw));
    // SAFETY: the capsule owns the struct, and its destructor knows its type.
    unsafe {
        let made = ffi::PyCapsule_New(raw.cast(), T::CAPSULE.as_ptr(), Some(destroy::<T>));
        if made.is_null() {
            drop(Owned(*Box::from_raw(raw)));
            return Err(PyErr::fetch(py));
        }
        Ok(Bound::from_owned_ptr(py, made))
    }
}

unsafe extern "C" fn destroy<T: Raw>(capsule: *mut ffi::PyObject) {
    // SAFETY: made by `capsule` with this type. A consumer that moved the struct out has cleared
    // its release, and then nothing but the box is dropped.
    unsafe {
        let raw = ffi::PyCapsule_GetPointer(capsule, T::CAPSULE.as_ptr()).cast::<T>();
        if !raw.is_null() {
            drop(Owned(*Box::from_raw(raw)));
        }
    }
}

unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: the caller gives a schema of ours; it owns nothing.
    unsafe { (*schema).release = None };
}

unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: the caller gives an array of ours, whose data is this box.
    unsafe {
        drop(Box::from_raw((*array).private_data.cast::<Answers>()));
        (*array).release = None;
    }
}
