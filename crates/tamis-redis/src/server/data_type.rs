//! The data type, and what the server does with its values: files, copies, digests, memory.

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::alloc::densely;
use super::api::{
    OK, RawDefrag, RawDigest, RawIo, RawString, RawType, TYPE_METHODS_VERSION, TypeMethods, api,
};
use super::{Ctx, OwnedString, Refusal, bytes_of, c_text, string};
use crate::value::{CHUNK, Value};

/// The name of the type in RDB files; nine characters.
const NAME: &std::ffi::CStr = c"tamis-flt";
/// The version of what is written there.
const ENCODING: c_int = 1;

static TYPE: AtomicPtr<RawType> = AtomicPtr::new(null_mut());

/// Filters that defragmentation has moved, each as often as it was.
static SETTLED: AtomicU64 = AtomicU64::new(0);

pub(super) fn settled() -> u64 {
    SETTLED.load(Ordering::Relaxed)
}

pub(super) fn ours() -> *mut RawType {
    TYPE.load(Ordering::Relaxed)
}

pub(super) fn is_ours(data_type: *mut RawType) -> bool {
    data_type == ours()
}

static METHODS: TypeMethods = TypeMethods {
    version: TYPE_METHODS_VERSION,
    rdb_load,
    rdb_save,
    aof_rewrite,
    mem_usage,
    digest,
    free,
    aux_load: None,
    aux_save: None,
    aux_save_triggers: 0,
    free_effort,
    unlink: None,
    copy,
    defrag,
};

pub(super) fn register(ctx: Ctx) -> Result<(), String> {
    const HANDLE_IO_ERRORS: c_int = 1;
    // SAFETY: the context of the load; the methods live for ever.
    let data_type = unsafe {
        (api().set_module_options)(ctx.raw, HANDLE_IO_ERRORS);
        (api().create_data_type)(ctx.raw, NAME.as_ptr(), ENCODING, &raw const METHODS)
    };
    if data_type.is_null() {
        return Err("the server refuses the data type".into());
    }
    TYPE.store(data_type, Ordering::Relaxed);
    Ok(())
}

/// # Safety
///
/// `value` must be one that [`super::Key::set`], `rdb_load` or `copy` gave to the server.
unsafe fn value_of<'a>(value: *const c_void) -> &'a Value {
    // SAFETY: the caller's promise; the server shares its values under its lock, or in a child.
    unsafe { &*value.cast::<Value>() }
}

/// A value in parts: how many there are, then each.
unsafe extern "C" fn rdb_save(io: *mut RawIo, value: *mut c_void) {
    let save = |bytes: &[u8]| {
        // SAFETY: a live stream; the bytes are copied.
        unsafe { (api().save_string_buffer)(io, bytes.as_ptr().cast(), bytes.len()) };
    };
    // SAFETY: the server passes a value of ours.
    let value = unsafe { value_of(value) };
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let (head, body) = value.encoded();
        let parts = body.chunks(CHUNK);
        save(&head);
        // SAFETY: a live stream.
        unsafe { (api().save_unsigned)(io, parts.len() as u64) };
        parts.for_each(save);
    }));
}

/// Bytes that the server has read.
struct Loaded(*mut c_char, usize);

impl Loaded {
    /// # Safety
    ///
    /// `io` must be a live stream.
    unsafe fn next(io: *mut RawIo) -> Result<Loaded, Refusal> {
        let mut len = 0;
        // SAFETY: the caller's promise.
        let (start, failed) = unsafe {
            let start = (api().load_string_buffer)(io, &raw mut len);
            (start, (api().is_io_error)(io) != 0)
        };
        if start.is_null() || failed {
            return Err("the stream ends inside a filter".into());
        }
        Ok(Loaded(start, len))
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: so many bytes were read to there.
        unsafe { std::slice::from_raw_parts(self.0.cast(), self.1) }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // SAFETY: the server's memory, which is ours to free, once.
        unsafe { (api().free)(self.0.cast()) };
    }
}

unsafe extern "C" fn rdb_load(io: *mut RawIo, encoding: c_int) -> *mut c_void {
    let load = || -> Result<Value, Refusal> {
        if encoding != ENCODING {
            return Err(format!("a filter of version {encoding}; this module reads 1").into());
        }
        // SAFETY: a live stream.
        let head = unsafe { Loaded::next(io) }?;
        // SAFETY: a live stream.
        let parts = unsafe { (api().load_unsigned)(io) };
        let mut body = Vec::new();
        for _ in 0..parts {
            // SAFETY: a live stream.
            let part = unsafe { Loaded::next(io) }?;
            if part.bytes().is_empty() || part.bytes().len() > CHUNK {
                return Err("a part of a filter is empty or too long".into());
            }
            if body.try_reserve(part.bytes().len()).is_err() {
                return Err("no memory for a filter".into());
            }
            body.extend_from_slice(part.bytes());
        }
        Value::decode(head.bytes(), body)
    };
    match catch_unwind(AssertUnwindSafe(load)) {
        Ok(Ok(value)) => Box::into_raw(Box::new(value)).cast(),
        Ok(Err(why)) => {
            let why = c_text(&why);
            // SAFETY: the format takes one string.
            unsafe {
                (api().log_io_error)(io, c"warning".as_ptr(), c"%s".as_ptr(), why.as_ptr());
            }
            null_mut()
        }
        Err(_) => null_mut(),
    }
}

/// Writes the commands that make the value anew: its dump, chunk by chunk.
unsafe extern "C" fn aof_rewrite(io: *mut RawIo, key: *mut RawString, value: *mut c_void) {
    // SAFETY: the server passes a value of ours.
    let value = unsafe { value_of(value) };
    // SAFETY: a live string for as long as the call.
    let key = unsafe { bytes_of(key) };
    let _ = catch_unwind(AssertUnwindSafe(|| {
        value.rewrite(key, |command, words| {
            let strings: Vec<OwnedString> = words.iter().map(|bytes| string(bytes)).collect();
            let raw: Vec<*mut RawString> = strings.iter().map(|string| string.0).collect();
            // SAFETY: the format takes a vector of strings and its length.
            unsafe {
                (api().emit_aof)(io, command.as_ptr(), c"v".as_ptr(), raw.as_ptr(), raw.len());
            }
        });
    }));
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    // SAFETY: the server passes a value of ours.
    unsafe { value_of(value) }.memory()
}

unsafe extern "C" fn digest(digest: *mut RawDigest, value: *mut c_void) {
    // SAFETY: the server passes a value of ours, while no command has it.
    let value = unsafe { &mut *value.cast::<Value>() };
    let _ = catch_unwind(AssertUnwindSafe(|| {
        value.collect();
        let (head, body) = value.encoded();
        for bytes in [head, body] {
            // SAFETY: a live digest, which copies what it needs.
            unsafe {
                (api().digest_add_string_buffer)(digest, bytes.as_ptr().cast(), bytes.len());
            }
        }
        // SAFETY: a live digest.
        unsafe { (api().digest_end_sequence)(digest) };
    }));
}

unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: the server owned this value and gives it back once.
    let value = unsafe { Box::from_raw(value.cast::<Value>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| {
        crate::chunks::forget_value(value.id());
        drop(value);
    }));
}

/// How long freeing takes, in pages: a large filter is freed by a thread of the server's.
unsafe extern "C" fn free_effort(_key: *mut RawString, value: *const c_void) -> usize {
    const PAGE: usize = 4096;
    // SAFETY: the server passes a value of ours.
    unsafe { value_of(value) }.memory() / PAGE + 1
}

unsafe extern "C" fn copy(
    _from: *mut RawString,
    _to: *mut RawString,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: the server passes a value of ours.
    let value = unsafe { value_of(value) };
    match catch_unwind(AssertUnwindSafe(|| value.copied())) {
        Ok(value) => Box::into_raw(Box::new(value)).cast(),
        Err(_) => null_mut(),
    }
}

/// Moves the value, and what it holds in small pieces, to where memory is denser.
///
/// The server moves an allocation that it is shown the pointer to. Those inside a filter nobody
/// outside it can point to, and so a copy takes its place, of allocations that the server has moved
/// before anything was written there. Arrays of more than 14 KiB have pages of their own, which the
/// allocator never moves.
unsafe extern "C" fn defrag(
    run: *mut RawDefrag,
    _key: *mut RawString,
    value: *mut *mut c_void,
) -> c_int {
    if !crate::settings::DEFRAG.is_set() {
        return OK;
    }
    // SAFETY: the server passes a run, which lasts as long as this call, and the place of a value's
    // pointer; a moved allocation holds the same bytes, and nothing but that place points to it.
    unsafe {
        let moved = (api().defrag_alloc)(run, *value);
        if !moved.is_null() {
            *value = moved;
        }
        let value = &mut *(*value).cast::<Value>();
        densely(run, || {
            let settled = value.settle();
            SETTLED.fetch_add(u64::from(settled), Ordering::Relaxed);
        });
    }
    OK
}
