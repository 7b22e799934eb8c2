//! The functions that the server lends to a module, as its header declares them.
//!
//! The server gives them by name when the module is loaded. Declaring by hand the few dozen that
//! are used spares everybody who builds the workspace a C compiler's headers. Servers from Redis
//! 7.0 on and all of Valkey have those that are required.

use std::ffi::{CStr, c_char, c_double, c_int, c_long, c_longlong, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

/// What a call has to do with: opaque, and always behind a pointer.
macro_rules! opaque {
    ($($(#[$about:meta])* $name:ident;)*) => {$(
        $(#[$about])*
        #[repr(C)]
        #[derive(Debug)]
        pub(crate) struct $name {
            _opaque: [u8; 0],
        }
    )*};
}
opaque! {
    /// A command being run, or the module being loaded.
    RawCtx;
    /// A string of the server.
    RawString;
    /// A key that was opened.
    RawKey;
    /// A registered data type.
    RawType;
    /// A registered command.
    RawCommand;
    /// An RDB or AOF stream.
    RawIo;
    /// A digest in the making.
    RawDigest;
    /// A client that waits for a thread.
    RawBlocked;
    /// A run of active defragmentation.
    RawDefrag;
    /// The server's own figures.
    RawInfo;
    /// A reply to `INFO` in the making.
    RawSections;
}

pub(crate) const OK: c_int = 0;
pub(crate) const ERR: c_int = 1;

pub(crate) type CommandFn = unsafe extern "C" fn(*mut RawCtx, *mut *mut RawString, c_int) -> c_int;

/// The callbacks of a data type, version 3 of the struct: Redis 6.2 and later read it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct TypeMethods {
    pub(crate) version: u64,
    pub(crate) rdb_load: unsafe extern "C" fn(*mut RawIo, c_int) -> *mut c_void,
    pub(crate) rdb_save: unsafe extern "C" fn(*mut RawIo, *mut c_void),
    pub(crate) aof_rewrite: unsafe extern "C" fn(*mut RawIo, *mut RawString, *mut c_void),
    pub(crate) mem_usage: unsafe extern "C" fn(*const c_void) -> usize,
    pub(crate) digest: unsafe extern "C" fn(*mut RawDigest, *mut c_void),
    pub(crate) free: unsafe extern "C" fn(*mut c_void),
    pub(crate) aux_load: Option<unsafe extern "C" fn(*mut RawIo, c_int, c_int) -> c_int>,
    pub(crate) aux_save: Option<unsafe extern "C" fn(*mut RawIo, c_int)>,
    pub(crate) aux_save_triggers: c_int,
    pub(crate) free_effort: unsafe extern "C" fn(*mut RawString, *const c_void) -> usize,
    pub(crate) unlink: Option<unsafe extern "C" fn(*mut RawString, *const c_void)>,
    pub(crate) copy:
        unsafe extern "C" fn(*mut RawString, *mut RawString, *const c_void) -> *mut c_void,
    pub(crate) defrag:
        unsafe extern "C" fn(*mut RawDefrag, *mut RawString, *mut *mut c_void) -> c_int,
}
pub(crate) const TYPE_METHODS_VERSION: u64 = 3;

/// What `COMMAND DOCS` tells of an argument.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct CommandArg {
    pub(crate) name: *const c_char,
    pub(crate) kind: c_int,
    pub(crate) key_spec: c_int,
    pub(crate) token: *const c_char,
    pub(crate) summary: *const c_char,
    pub(crate) since: *const c_char,
    pub(crate) flags: c_int,
    pub(crate) deprecated_since: *const c_char,
    pub(crate) subargs: *mut CommandArg,
    pub(crate) display_text: *const c_char,
}

/// The position of the first key: in the header a union with a pointer and a number.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct KeyIndex {
    pub(crate) position: c_int,
    pub(crate) unused: u64,
}

/// Where the keys of a command are.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct KeySpec {
    pub(crate) notes: *const c_char,
    pub(crate) flags: u64,
    pub(crate) begin_search: c_int,
    pub(crate) begin: KeyIndex,
    pub(crate) find_keys: c_int,
    pub(crate) find: [c_int; 3],
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct CommandInfoVersion {
    pub(crate) version: c_int,
    pub(crate) sizeof_history: usize,
    pub(crate) sizeof_keyspec: usize,
    pub(crate) sizeof_arg: usize,
}

#[repr(C)]
#[derive(Debug)]
pub(crate) struct CommandInfo {
    pub(crate) version: *const CommandInfoVersion,
    pub(crate) summary: *const c_char,
    pub(crate) complexity: *const c_char,
    pub(crate) since: *const c_char,
    pub(crate) history: *const c_void,
    pub(crate) tips: *const c_char,
    pub(crate) arity: c_int,
    pub(crate) key_specs: *const KeySpec,
    pub(crate) args: *const CommandArg,
}

pub(crate) type GetNumeric = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_longlong;
pub(crate) type SetNumeric =
    unsafe extern "C" fn(*const c_char, c_longlong, *mut c_void, *mut *mut RawString) -> c_int;
pub(crate) type GetSwitch = unsafe extern "C" fn(*const c_char, *mut c_void) -> c_int;
pub(crate) type SetSwitch =
    unsafe extern "C" fn(*const c_char, c_int, *mut c_void, *mut *mut RawString) -> c_int;
pub(crate) type GetText = unsafe extern "C" fn(*const c_char, *mut c_void) -> *mut RawString;
pub(crate) type SetText =
    unsafe extern "C" fn(*const c_char, *mut RawString, *mut c_void, *mut *mut RawString) -> c_int;
pub(crate) type Apply =
    unsafe extern "C" fn(*mut RawCtx, *mut c_void, *mut *mut RawString) -> c_int;

macro_rules! api {
    (
        required { $($name:ident: $type:ty = $symbol:literal;)* }
        optional { $($opt_name:ident: $opt_type:ty = $opt_symbol:literal;)* }
    ) => {
        /// The server's functions.
        #[derive(Debug)]
        pub(crate) struct Api {
            $(pub(crate) $name: $type,)*
            $(pub(crate) $opt_name: Option<$opt_type>,)*
        }

        impl Api {
            /// # Safety
            ///
            /// `get` must be the function that the server gives to a module that it loads.
            unsafe fn load(get: GetApi) -> Result<Api, &'static CStr> {
                Ok(Api {
                    $($name: {
                        // SAFETY: the caller's promise.
                        let found = unsafe { look_up(get, $symbol) }.ok_or($symbol)?;
                        // SAFETY: the server's function of this name has this type.
                        unsafe { std::mem::transmute::<*mut c_void, $type>(found) }
                    },)*
                    $($opt_name: {
                        // SAFETY: the caller's promise.
                        let found = unsafe { look_up(get, $opt_symbol) };
                        // SAFETY: the server's function of this name has this type.
                        found.map(|f| unsafe { std::mem::transmute::<*mut c_void, $opt_type>(f) })
                    },)*
                })
            }
        }
    };
}

type GetApi = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;

/// # Safety
///
/// `get` must be the server's function.
unsafe fn look_up(get: GetApi, symbol: &CStr) -> Option<*mut c_void> {
    let mut found = std::ptr::null_mut();
    // SAFETY: the name ends with a zero, and the target is writable.
    let status = unsafe { get(symbol.as_ptr(), &raw mut found) };
    (status == OK && !found.is_null()).then_some(found)
}

type Ctx = *mut RawCtx;
type Str = *mut RawString;
type Text = *const c_char;

api! {
    required {
        calloc: unsafe extern "C" fn(usize, usize) -> *mut c_void = c"RedisModule_Calloc";
        realloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void = c"RedisModule_Realloc";
        free: unsafe extern "C" fn(*mut c_void) = c"RedisModule_Free";
        alloc: unsafe extern "C" fn(usize) -> *mut c_void = c"RedisModule_Alloc";
        malloc_size: unsafe extern "C" fn(*mut c_void) -> usize = c"RedisModule_MallocSize";
        set_module_attribs: unsafe extern "C" fn(Ctx, Text, c_int, c_int) = c"RedisModule_SetModuleAttribs";
        is_module_name_busy: unsafe extern "C" fn(Text) -> c_int = c"RedisModule_IsModuleNameBusy";
        create_command: unsafe extern "C" fn(Ctx, Text, CommandFn, Text, c_int, c_int, c_int) -> c_int = c"RedisModule_CreateCommand";
        create_data_type: unsafe extern "C" fn(Ctx, Text, c_int, *const TypeMethods) -> *mut RawType = c"RedisModule_CreateDataType";
        set_module_options: unsafe extern "C" fn(Ctx, c_int) = c"RedisModule_SetModuleOptions";
        log: unsafe extern "C" fn(Ctx, Text, Text, ...) = c"RedisModule_Log";
        log_io_error: unsafe extern "C" fn(*mut RawIo, Text, Text, ...) = c"RedisModule_LogIOError";
        reply_with_long_long: unsafe extern "C" fn(Ctx, c_longlong) -> c_int = c"RedisModule_ReplyWithLongLong";
        reply_with_error: unsafe extern "C" fn(Ctx, Text) -> c_int = c"RedisModule_ReplyWithError";
        reply_with_simple_string: unsafe extern "C" fn(Ctx, Text) -> c_int = c"RedisModule_ReplyWithSimpleString";
        reply_with_array: unsafe extern "C" fn(Ctx, c_long) -> c_int = c"RedisModule_ReplyWithArray";
        reply_with_map: unsafe extern "C" fn(Ctx, c_long) -> c_int = c"RedisModule_ReplyWithMap";
        reply_with_bool: unsafe extern "C" fn(Ctx, c_int) -> c_int = c"RedisModule_ReplyWithBool";
        reply_with_null: unsafe extern "C" fn(Ctx) -> c_int = c"RedisModule_ReplyWithNull";
        reply_with_double: unsafe extern "C" fn(Ctx, c_double) -> c_int = c"RedisModule_ReplyWithDouble";
        reply_with_string_buffer: unsafe extern "C" fn(Ctx, Text, usize) -> c_int = c"RedisModule_ReplyWithStringBuffer";
        open_key: unsafe extern "C" fn(Ctx, Str, c_int) -> *mut RawKey = c"RedisModule_OpenKey";
        close_key: unsafe extern "C" fn(*mut RawKey) = c"RedisModule_CloseKey";
        key_type: unsafe extern "C" fn(*mut RawKey) -> c_int = c"RedisModule_KeyType";
        module_type_get_type: unsafe extern "C" fn(*mut RawKey) -> *mut RawType = c"RedisModule_ModuleTypeGetType";
        module_type_get_value: unsafe extern "C" fn(*mut RawKey) -> *mut c_void = c"RedisModule_ModuleTypeGetValue";
        module_type_set_value: unsafe extern "C" fn(*mut RawKey, *mut RawType, *mut c_void) -> c_int = c"RedisModule_ModuleTypeSetValue";
        delete_key: unsafe extern "C" fn(*mut RawKey) -> c_int = c"RedisModule_DeleteKey";
        string_ptr_len: unsafe extern "C" fn(*const RawString, *mut usize) -> Text = c"RedisModule_StringPtrLen";
        create_string: unsafe extern "C" fn(Ctx, Text, usize) -> Str = c"RedisModule_CreateString";
        retain_string: unsafe extern "C" fn(Ctx, Str) = c"RedisModule_RetainString";
        free_string: unsafe extern "C" fn(Ctx, Str) = c"RedisModule_FreeString";
        replicate: unsafe extern "C" fn(Ctx, Text, Text, ...) -> c_int = c"RedisModule_Replicate";
        replicate_verbatim: unsafe extern "C" fn(Ctx) -> c_int = c"RedisModule_ReplicateVerbatim";
        get_context_flags: unsafe extern "C" fn(Ctx) -> c_int = c"RedisModule_GetContextFlags";
        get_selected_db: unsafe extern "C" fn(Ctx) -> c_int = c"RedisModule_GetSelectedDb";
        select_db: unsafe extern "C" fn(Ctx, c_int) -> c_int = c"RedisModule_SelectDb";
        notify_keyspace_event: unsafe extern "C" fn(Ctx, c_int, Text, Str) -> c_int = c"RedisModule_NotifyKeyspaceEvent";
        emit_aof: unsafe extern "C" fn(*mut RawIo, Text, Text, ...) = c"RedisModule_EmitAOF";
        save_unsigned: unsafe extern "C" fn(*mut RawIo, u64) = c"RedisModule_SaveUnsigned";
        load_unsigned: unsafe extern "C" fn(*mut RawIo) -> u64 = c"RedisModule_LoadUnsigned";
        save_string_buffer: unsafe extern "C" fn(*mut RawIo, Text, usize) = c"RedisModule_SaveStringBuffer";
        load_string_buffer: unsafe extern "C" fn(*mut RawIo, *mut usize) -> *mut c_char = c"RedisModule_LoadStringBuffer";
        is_io_error: unsafe extern "C" fn(*mut RawIo) -> c_int = c"RedisModule_IsIOError";
        digest_add_string_buffer: unsafe extern "C" fn(*mut RawDigest, Text, usize) = c"RedisModule_DigestAddStringBuffer";
        digest_end_sequence: unsafe extern "C" fn(*mut RawDigest) = c"RedisModule_DigestEndSequence";
        block_client: unsafe extern "C" fn(Ctx, Option<CommandFn>, Option<CommandFn>, Option<unsafe extern "C" fn(Ctx, *mut c_void)>, c_longlong) -> *mut RawBlocked = c"RedisModule_BlockClient";
        unblock_client: unsafe extern "C" fn(*mut RawBlocked, *mut c_void) -> c_int = c"RedisModule_UnblockClient";
        get_thread_safe_context: unsafe extern "C" fn(*mut RawBlocked) -> Ctx = c"RedisModule_GetThreadSafeContext";
        free_thread_safe_context: unsafe extern "C" fn(Ctx) = c"RedisModule_FreeThreadSafeContext";
        thread_safe_context_lock: unsafe extern "C" fn(Ctx) = c"RedisModule_ThreadSafeContextLock";
        thread_safe_context_unlock: unsafe extern "C" fn(Ctx) = c"RedisModule_ThreadSafeContextUnlock";
        defrag_alloc: unsafe extern "C" fn(*mut RawDefrag, *mut c_void) -> *mut c_void = c"RedisModule_DefragAlloc";
        avoid_replica_traffic: unsafe extern "C" fn() -> c_int = c"RedisModule_AvoidReplicaTraffic";
        create_timer: unsafe extern "C" fn(Ctx, c_longlong, unsafe extern "C" fn(Ctx, *mut c_void), *mut c_void) -> u64 = c"RedisModule_CreateTimer";
        milliseconds: unsafe extern "C" fn() -> c_longlong = c"RedisModule_Milliseconds";
        get_server_info: unsafe extern "C" fn(Ctx, Text) -> *mut RawInfo = c"RedisModule_GetServerInfo";
        free_server_info: unsafe extern "C" fn(Ctx, *mut RawInfo) = c"RedisModule_FreeServerInfo";
        server_info_get_unsigned: unsafe extern "C" fn(*mut RawInfo, Text, *mut c_int) -> u64 = c"RedisModule_ServerInfoGetFieldUnsigned";
        register_numeric_config: unsafe extern "C" fn(Ctx, Text, c_longlong, c_uint, c_longlong, c_longlong, GetNumeric, SetNumeric, Option<Apply>, *mut c_void) -> c_int = c"RedisModule_RegisterNumericConfig";
        register_bool_config: unsafe extern "C" fn(Ctx, Text, c_int, c_uint, GetSwitch, SetSwitch, Option<Apply>, *mut c_void) -> c_int = c"RedisModule_RegisterBoolConfig";
        register_string_config: unsafe extern "C" fn(Ctx, Text, Text, c_uint, GetText, SetText, Option<Apply>, *mut c_void) -> c_int = c"RedisModule_RegisterStringConfig";
        register_info: unsafe extern "C" fn(Ctx, unsafe extern "C" fn(*mut RawSections, c_int)) -> c_int = c"RedisModule_RegisterInfoFunc";
        info_add_section: unsafe extern "C" fn(*mut RawSections, Text) -> c_int = c"RedisModule_InfoAddSection";
        info_add_unsigned: unsafe extern "C" fn(*mut RawSections, Text, c_ulonglong) -> c_int = c"RedisModule_InfoAddFieldULongLong";
        load_configs: unsafe extern "C" fn(Ctx) -> c_int = c"RedisModule_LoadConfigs";
        get_command: unsafe extern "C" fn(Ctx, Text) -> *mut RawCommand = c"RedisModule_GetCommand";
        set_command_info: unsafe extern "C" fn(*mut RawCommand, *const CommandInfo) -> c_int = c"RedisModule_SetCommandInfo";
    }
    optional {
        try_calloc: unsafe extern "C" fn(usize, usize) -> *mut c_void = c"RedisModule_TryCalloc";
        try_alloc: unsafe extern "C" fn(usize) -> *mut c_void = c"RedisModule_TryAlloc";
        add_acl_category: unsafe extern "C" fn(Ctx, Text) -> c_int = c"RedisModule_AddACLCategory";
        set_command_acl_categories: unsafe extern "C" fn(*mut RawCommand, Text) -> c_int = c"RedisModule_SetCommandACLCategories";
    }
}

static API: OnceLock<Api> = OnceLock::new();

/// The server's functions, once the module is being loaded.
pub(crate) fn loaded() -> Option<&'static Api> {
    API.get()
}

/// The server's functions.
pub(crate) fn api() -> &'static Api {
    match API.get() {
        Some(api) => api,
        None => unreachable!("the server calls no function before it has loaded the module"),
    }
}

/// Asks the server for its functions. `Err` names one that it does not have.
///
/// # Safety
///
/// `ctx` must be what the server passed to `RedisModule_OnLoad`.
pub(crate) unsafe fn load(ctx: *mut RawCtx) -> Result<(), &'static CStr> {
    // SAFETY: a context begins with the pointer to the function that finds all others.
    let get = unsafe { *ctx.cast::<Option<GetApi>>() }.ok_or(c"RedisModule_GetApi")?;
    // SAFETY: `get` is the server's.
    let api = unsafe { Api::load(get) }?;
    let _ = API.set(api);
    Ok(())
}
