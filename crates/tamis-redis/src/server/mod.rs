//! The server as the rest of the module sees it: the module's one room for `unsafe`.
//!
//! Outside there are commands ([`Call`]), keys ([`Key`]), replies ([`Ctx`]) and long work in a
//! thread ([`thread`]); in here are pointers, and why they are good.

#![allow(unsafe_code, reason = "the module's room for it")]

mod alloc;
mod api;
pub(crate) mod command;
pub(crate) mod config;
mod data_type;
mod pages;
pub(crate) mod thread;

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int, c_long, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

use crate::value::Value;
use api::{CommandFn, ERR, OK, RawCtx, RawKey, RawSections, RawString, api};

pub(crate) use alloc::measured;
pub(crate) use pages::populate;

/// Why a command was refused, as the client reads it: `ERR`, or another word, and a sentence.
pub(crate) type Refusal = Cow<'static, str>;

/// The name of the module, which clients look for.
const NAME: &CStr = c"bf";
/// Its version, of the numbers that clients compare: 2.8.0.
const VERSION: c_int = 20800;
/// The version of the interface between server and module.
const INTERFACE: c_int = 1;

/// Called by the server when it loads the module.
///
/// # Safety
///
/// Only the server calls this, with a context and the arguments of `loadmodule`.
#[unsafe(no_mangle)]
unsafe extern "C" fn RedisModule_OnLoad(
    ctx: *mut RawCtx,
    _argv: *mut *mut RawString,
    _argc: c_int,
) -> c_int {
    // SAFETY: the server passes its context.
    if unsafe { api::load(ctx) }.is_err() {
        // Without its functions there is no way to tell it which one is missing.
        return ERR;
    }
    let ctx = Ctx { raw: ctx };
    // SAFETY: the name ends with a zero.
    unsafe {
        if (api().is_module_name_busy)(NAME.as_ptr()) != 0 {
            ctx.log("warning", "another module is called `bf`");
            return ERR;
        }
        (api().set_module_attribs)(ctx.raw, NAME.as_ptr(), VERSION, INTERFACE);
    }
    let loaded = catch_unwind(|| {
        data_type::register(ctx)?;
        command::register(ctx)?;
        // SAFETY: the context of the load; the function lives for ever.
        unsafe { (api().register_info)(ctx.raw, tell) };
        config::register(ctx)
    });
    match loaded {
        Ok(Ok(())) => OK,
        Ok(Err(why)) => {
            ctx.log("warning", &why);
            ERR
        }
        Err(_) => ERR,
    }
}

/// What `INFO bf` tells.
unsafe extern "C" fn tell(sections: *mut RawSections, _is_crash: c_int) {
    let figures = [
        (c"commands_by_thread", thread::commands()),
        (c"longest_lock_us", thread::longest()),
        (c"filters_moved", data_type::settled()),
    ];
    // SAFETY: the server passes a reply in the making, and copies the names, which end with a zero.
    unsafe {
        // Where nobody asks for the section, its fields are refused.
        (api().info_add_section)(sections, c"".as_ptr());
        for (name, figure) in figures {
            (api().info_add_unsigned)(sections, name.as_ptr(), figure);
        }
    }
}

/// What the server says of the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flags(c_int);

impl Flags {
    /// Whether a client may wait for a thread: not in a transaction or a script, not the link to
    /// the primary, and not while a file is loaded.
    pub(crate) fn may_block(self) -> bool {
        const LUA: c_int = 1;
        const MULTI: c_int = 1 << 1;
        const REPLICATED: c_int = 1 << 12;
        const LOADING: c_int = 1 << 13;
        const DENY_BLOCKING: c_int = 1 << 21;
        self.0 & (LUA | MULTI | REPLICATED | LOADING | DENY_BLOCKING) == 0
    }

    /// Whether a client may wait for a thread to change something: a server that has become a
    /// replica meanwhile refuses that, and so what a replica lets clients write is done at once.
    pub(crate) fn may_change_later(self) -> bool {
        self.may_block() && !self.is_replica()
    }

    /// Whether the command comes from the primary or from a file, and is to be obeyed.
    pub(crate) fn is_replay(self) -> bool {
        self.0 & (1 << 12 | 1 << 13) != 0
    }

    /// Whether this server follows another.
    pub(crate) fn is_replica(self) -> bool {
        self.0 & (1 << 3) != 0
    }

    /// Whether the server has a limit of memory and gives keys away to keep it.
    fn evicts(self) -> bool {
        self.0 & (1 << 9) != 0
    }

    fn has_limit(self) -> bool {
        self.0 & (1 << 8) != 0
    }
}

/// Where replies go, and what else a command may ask the server for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ctx {
    raw: *mut RawCtx,
}

/// Text for the server. A zero inside would end it early, so what follows is left out.
fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

// A `Ctx` is made from the server's own pointer and used only while the command or the lock that
// it came with lasts; every SAFETY comment below rests on that.
impl Ctx {
    pub(crate) fn int(self, value: i64) {
        // SAFETY: see above.
        unsafe { (api().reply_with_long_long)(self.raw, value) };
    }

    pub(crate) fn bool(self, value: bool) {
        // SAFETY: see above.
        unsafe { (api().reply_with_bool)(self.raw, c_int::from(value)) };
    }

    pub(crate) fn real(self, value: f64) {
        // SAFETY: see above.
        unsafe { (api().reply_with_double)(self.raw, value) };
    }

    pub(crate) fn null(self) {
        // SAFETY: see above.
        unsafe { (api().reply_with_null)(self.raw) };
    }

    pub(crate) fn bytes(self, bytes: &[u8]) {
        // SAFETY: see above; the server copies the bytes.
        unsafe {
            (api().reply_with_string_buffer)(self.raw, bytes.as_ptr().cast(), bytes.len());
        }
    }

    pub(crate) fn ok(self) {
        // SAFETY: see above.
        unsafe { (api().reply_with_simple_string)(self.raw, c"OK".as_ptr()) };
    }

    /// A short text that is no data: RESP's simple string.
    pub(crate) fn word(self, text: &str) {
        // SAFETY: see above; the text ends with a zero, and the server copies it.
        unsafe { (api().reply_with_simple_string)(self.raw, c_text(text).as_ptr()) };
    }

    pub(crate) fn error(self, text: &str) {
        let text = c_text(&text.replace(['\r', '\n'], " "));
        // SAFETY: see above; the server copies the text.
        unsafe { (api().reply_with_error)(self.raw, text.as_ptr()) };
    }

    /// Begins an array; so many replies follow.
    pub(crate) fn array(self, len: usize) {
        // SAFETY: see above.
        unsafe { (api().reply_with_array)(self.raw, len as c_long) };
    }

    /// Begins a map; so many pairs follow.
    pub(crate) fn map(self, len: usize) {
        // SAFETY: see above.
        unsafe { (api().reply_with_map)(self.raw, len as c_long) };
    }

    pub(crate) fn flags(self) -> Flags {
        // SAFETY: see above.
        Flags(unsafe { (api().get_context_flags)(self.raw) })
    }

    /// Whether the client speaks the newer protocol.
    pub(crate) fn is_resp3(self) -> bool {
        self.flags().0 & (1 << 22) != 0
    }

    /// Whether nothing may be sent to replicas now: writing clients are paused, as for a failover.
    pub(crate) fn is_paused(self) -> bool {
        // SAFETY: no argument; the caller has the server's lock.
        unsafe { (api().avoid_replica_traffic)() != 0 }
    }

    /// Calls a function after so many milliseconds.
    pub(crate) fn after(self, milliseconds: u64, work: fn(Ctx)) {
        unsafe extern "C" fn run(ctx: *mut RawCtx, work: *mut c_void) {
            // SAFETY: `after` passed such a function.
            let work = unsafe { std::mem::transmute::<*mut c_void, fn(Ctx)>(work) };
            let _ = catch_unwind(AssertUnwindSafe(|| work(Ctx { raw: ctx })));
        }
        let milliseconds = i64::try_from(milliseconds).unwrap_or(i64::MAX);
        // SAFETY: a live context; the function lives for ever.
        unsafe { (api().create_timer)(self.raw, milliseconds, run, work as *mut c_void) };
    }

    /// The server's clock, in milliseconds since 1970.
    pub(crate) fn now(self) -> u64 {
        // SAFETY: no argument.
        u64::try_from(unsafe { (api().milliseconds)() }).unwrap_or(0)
    }

    fn log(self, level: &str, text: &str) {
        let (level, text) = (c_text(level), c_text(text));
        // SAFETY: the format takes one string, and both end with a zero.
        unsafe { (api().log)(self.raw, level.as_ptr(), c"%s".as_ptr(), text.as_ptr()) };
    }

    /// Sends a command to replicas and to the append-only file.
    pub(crate) fn replicate(self, command: &CStr, arguments: &[&[u8]]) {
        let strings: Vec<OwnedString> = arguments.iter().map(|bytes| string(bytes)).collect();
        let raw: Vec<*mut RawString> = strings.iter().map(|string| string.0).collect();
        self.replicate_strings(command, &raw);
    }

    /// Sends a command of strings that are alive.
    fn replicate_strings(self, command: &CStr, raw: &[*mut RawString]) {
        // SAFETY: the format takes a vector of strings and its length; both outlive the call.
        unsafe {
            (api().replicate)(
                self.raw,
                command.as_ptr(),
                c"v".as_ptr(),
                raw.as_ptr(),
                raw.len(),
            );
        }
    }

    /// Opens a key by name.
    ///
    /// # Errors
    ///
    /// `WRONGTYPE` when something else is there.
    pub(crate) fn open(self, name: &[u8], mode: Mode) -> Result<Key<'static>, Refusal> {
        let name = string(name);
        Key::open(self, name.0, mode)
    }

    /// Tells whoever listens what happened to a key.
    pub(crate) fn notify(self, event: &CStr, name: &[u8]) {
        const MODULE: c_int = 1 << 13;
        let name = string(name);
        // SAFETY: a live context and strings that outlive the call.
        unsafe {
            (api().notify_keyspace_event)(self.raw, MODULE, event.as_ptr(), name.0);
        }
    }

    /// Refuses what has just been allocated where it takes the server beyond its limit and the
    /// server does not make room by itself, or could not.
    ///
    /// # Errors
    ///
    /// `OOM`, as the server's own commands say it.
    pub(crate) fn check_memory(self, new_bytes: u64) -> Result<(), Refusal> {
        let flags = self.flags();
        if !flags.has_limit() || flags.is_replay() {
            return Ok(());
        }
        let (used, most) = self.memory();
        let hopeless = new_bytes > most / 2;
        if most > 0 && used > most && (hopeless || !flags.evicts()) {
            return Err("OOM command not allowed when used memory > 'maxmemory'.".into());
        }
        Ok(())
    }

    /// Refuses an allocation to come, as [`check_memory`](Ctx::check_memory) one that was made.
    pub(crate) fn check_room(self, bytes: u64) -> Result<(), Refusal> {
        let flags = self.flags();
        if !flags.has_limit() || flags.is_replay() {
            return Ok(());
        }
        let (used, most) = self.memory();
        let over = used.saturating_add(bytes) > most;
        if most > 0 && over && (bytes > most / 2 || !flags.evicts()) {
            return Err("OOM command not allowed when used memory > 'maxmemory'.".into());
        }
        Ok(())
    }

    /// Bytes that the server uses, and its limit.
    fn memory(self) -> (u64, u64) {
        // SAFETY: the section's figures are freed after two of them were read.
        unsafe {
            let info = (api().get_server_info)(self.raw, c"memory".as_ptr());
            let field = |name: &CStr| (api().server_info_get_unsigned)(info, name.as_ptr(), &mut 0);
            let figures = (field(c"used_memory"), field(c"maxmemory"));
            (api().free_server_info)(self.raw, info);
            figures
        }
    }

    pub(crate) fn database(self) -> i32 {
        // SAFETY: a live context.
        unsafe { (api().get_selected_db)(self.raw) }
    }

    fn select(self, database: i32) {
        // SAFETY: a live context; a number that the server gave.
        unsafe { (api().select_db)(self.raw, database) };
    }
}

/// A string of the server that is ours.
#[derive(Debug)]
struct OwnedString(*mut RawString);

fn string(bytes: &[u8]) -> OwnedString {
    // SAFETY: without a context the string belongs to the caller; the bytes are copied.
    OwnedString(unsafe {
        (api().create_string)(std::ptr::null_mut(), bytes.as_ptr().cast(), bytes.len())
    })
}

impl Drop for OwnedString {
    fn drop(&mut self) {
        // SAFETY: made by `string`, freed once.
        unsafe { (api().free_string)(std::ptr::null_mut(), self.0) };
    }
}

/// A string of the server that is read by the thread, and let go under the server's lock.
#[derive(Debug)]
pub(crate) struct Held(OwnedString);

// SAFETY: the bytes are only read; the count of holders changes under the server's lock alone.
unsafe impl Send for Held {}
// SAFETY: as above.
unsafe impl Sync for Held {}

impl Held {
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the string lives as long as `self`.
        unsafe { bytes_of(self.0.0) }
    }
}

/// # Safety
///
/// `string` must be a live string of the server, which stays as it is for `'a`.
unsafe fn bytes_of<'a>(string: *const RawString) -> &'a [u8] {
    let mut len = 0;
    // SAFETY: the caller's promise.
    unsafe {
        let start = (api().string_ptr_len)(string, &raw mut len);
        if start.is_null() {
            return &[];
        }
        slice::from_raw_parts(start.cast(), len)
    }
}

/// A command that a client, the primary or a file has sent.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) ctx: Ctx,
    argv: &'a [*mut RawString],
}

impl<'a> Call<'a> {
    /// How many words it has, its name among them.
    pub(crate) fn len(&self) -> usize {
        self.argv.len()
    }

    /// A word; empty where there is none.
    pub(crate) fn word(&self, at: usize) -> &'a [u8] {
        match self.argv.get(at) {
            // SAFETY: arguments live as long as the command.
            Some(&string) => unsafe { bytes_of(string) },
            None => &[],
        }
    }

    /// A word that outlives the command.
    pub(crate) fn hold(&self, at: usize) -> Held {
        match self.argv.get(at) {
            Some(&word) => {
                // SAFETY: a live string, which is counted once more.
                unsafe { (api().retain_string)(std::ptr::null_mut(), word) };
                Held(OwnedString(word))
            }
            None => Held(string(&[])),
        }
    }

    /// The words from a position on.
    pub(crate) fn words(&self, from: usize) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        let rest = self.argv.get(from..).unwrap_or_default();
        // SAFETY: arguments live as long as the command.
        rest.iter().map(|&string| unsafe { bytes_of(string) })
    }

    /// Opens the key that a word names.
    ///
    /// # Errors
    ///
    /// `WRONGTYPE` when something else is there.
    pub(crate) fn open(&self, at: usize, mode: Mode) -> Result<Key<'a>, Refusal> {
        match self.argv.get(at) {
            Some(&name) => Key::open(self.ctx, name, mode),
            None => Err("ERR wrong number of arguments".into()),
        }
    }

    /// Sends the command as it came to replicas and to the append-only file.
    pub(crate) fn replicate(&self) {
        // SAFETY: a live context.
        unsafe { (api().replicate_verbatim)(self.ctx.raw) };
    }

    /// Sends a command for the same key to replicas and to the append-only file: some words of its
    /// own, and some of these, by their positions.
    pub(crate) fn replicate_some(
        &self,
        command: &CStr,
        own: &[&[u8]],
        at: impl Iterator<Item = usize>,
    ) {
        let own: Vec<OwnedString> = own.iter().map(|bytes| string(bytes)).collect();
        let mut raw: Vec<*mut RawString> = self.argv.get(1).copied().into_iter().collect();
        raw.extend(own.iter().map(|string| string.0));
        raw.extend(at.filter_map(|at| self.argv.get(at).copied()));
        self.ctx.replicate_strings(command, &raw);
    }

    /// Tells whoever listens what happened to the key in the first word.
    pub(crate) fn notify(&self, event: &CStr) {
        const MODULE: c_int = 1 << 13;
        if let Some(&name) = self.argv.get(1) {
            // SAFETY: a live context and a live string.
            unsafe {
                (api().notify_keyspace_event)(self.ctx.raw, MODULE, event.as_ptr(), name);
            }
        }
    }
}

/// What answers a command.
pub(crate) trait Handler {
    fn run(call: &Call<'_>) -> Result<(), Refusal>;
}

/// The function that the server calls for a command.
pub(crate) fn entry<H: Handler>() -> CommandFn {
    unsafe extern "C" fn call<H: Handler>(
        ctx: *mut RawCtx,
        argv: *mut *mut RawString,
        argc: c_int,
    ) -> c_int {
        let ctx = Ctx { raw: ctx };
        // SAFETY: the server passes so many strings, which live as long as the call.
        let argv = unsafe { slice::from_raw_parts(argv, usize::try_from(argc).unwrap_or(0)) };
        let call = Call { ctx, argv };
        match catch_unwind(AssertUnwindSafe(|| H::run(&call))) {
            Ok(Ok(())) => {}
            Ok(Err(refusal)) => ctx.error(&refusal),
            Err(_) => ctx.error("ERR a defect of the module; please report it"),
        }
        OK
    }
    call::<H>
}

/// What a key is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Read = 1,
    Write = 3,
}

/// The refusal of a key that holds something else.
pub(crate) const WRONG_TYPE: &str =
    "WRONGTYPE Operation against a key holding the wrong kind of value";

/// A key that was opened.
#[derive(Debug)]
pub(crate) struct Key<'a> {
    raw: *mut RawKey,
    name: PhantomData<&'a ()>,
}

impl<'a> Key<'a> {
    fn open(ctx: Ctx, name: *mut RawString, mode: Mode) -> Result<Key<'a>, Refusal> {
        const MODULE: c_int = 6;
        // SAFETY: a live context and a live string.
        let raw = unsafe { (api().open_key)(ctx.raw, name, mode as c_int) };
        let name = PhantomData;
        let mut key = Key { raw, name };
        if raw.is_null() {
            return Ok(key);
        }
        // SAFETY: the key is open.
        let (kind, data_type) =
            unsafe { ((api().key_type)(raw), (api().module_type_get_type)(raw)) };
        if kind != 0 && !(kind == MODULE && data_type::is_ours(data_type)) {
            return Err(WRONG_TYPE.into());
        }
        if let Some(value) = key.value_mut() {
            value.collect();
        }
        Ok(key)
    }

    fn value_ptr(&self) -> *mut Value {
        if self.raw.is_null() {
            return std::ptr::null_mut();
        }
        // SAFETY: the key is open; what it holds is of our type, or nothing.
        unsafe { (api().module_type_get_value)(self.raw).cast() }
    }

    /// What the key holds, if anything.
    pub(crate) fn value(&self) -> Option<&Value> {
        // SAFETY: of our type (`open` has checked), alive while the key is open; values are
        // touched under the server's lock alone.
        unsafe { self.value_ptr().as_ref() }
    }

    /// What the key holds, for changing.
    pub(crate) fn value_mut(&mut self) -> Option<&mut Value> {
        // SAFETY: as above, and `self` is borrowed for as long.
        unsafe { self.value_ptr().as_mut() }
    }

    /// Gives the key a value, in place of what it held.
    pub(crate) fn set(&mut self, value: Value) {
        let value = Box::into_raw(Box::new(value));
        // SAFETY: the key is open for writing; the server owns the value from here on and gives it
        // back to `free`.
        unsafe { (api().module_type_set_value)(self.raw, data_type::ours(), value.cast()) };
    }

    /// Deletes the key.
    pub(crate) fn delete(&mut self) {
        // SAFETY: the key is open for writing.
        unsafe { (api().delete_key)(self.raw) };
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: opened by us, closed once.
            unsafe { (api().close_key)(self.raw) };
        }
    }
}
