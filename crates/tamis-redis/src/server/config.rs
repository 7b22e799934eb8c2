//! Settings: `CONFIG GET bf.*`, `CONFIG SET bf.*`, and the same words in the server's file.

use std::ffi::{c_char, c_int, c_longlong, c_void};
use std::sync::{Mutex, PoisonError};

use super::api::{ERR, OK, RawString, api};
use super::{Ctx, bytes_of, c_text, string};
use crate::settings::{Form, NUMBERS, Number, TEXTS, Text};

/// As a number of bytes: `128mb`.
const MEMORY: u32 = 1 << 7;
/// Not written to logs.
const SENSITIVE: u32 = 1 << 1;

pub(super) fn register(ctx: Ctx) -> Result<(), String> {
    let refused = |name: &str| format!("the server refuses the setting `{name}`");
    for number in NUMBERS {
        let flags = if number.form == Form::Bytes {
            MEMORY
        } else {
            0
        };
        let name = c_text(number.name);
        let (least, most) = number.range;
        let place: *mut c_void = std::ptr::from_ref::<Number>(number).cast_mut().cast();
        // SAFETY: the context of the load; the number lives for ever.
        let status = unsafe {
            if number.form == Form::Switch {
                let default = c_int::from(number.default != 0);
                (api().register_bool_config)(
                    ctx.raw,
                    name.as_ptr(),
                    default,
                    flags,
                    get_switch,
                    set_switch,
                    None,
                    place,
                )
            } else {
                (api().register_numeric_config)(
                    ctx.raw,
                    name.as_ptr(),
                    number.default,
                    flags,
                    least,
                    most,
                    get_number,
                    set_number,
                    None,
                    place,
                )
            }
        };
        if status != OK {
            return Err(refused(number.name));
        }
    }
    for text in TEXTS {
        let flags = if text.is_secret { SENSITIVE } else { 0 };
        let (name, default) = (c_text(text.name), c_text(text.default));
        // SAFETY: the context of the load; the text lives for ever.
        let status = unsafe {
            (api().register_string_config)(
                ctx.raw,
                name.as_ptr(),
                default.as_ptr(),
                flags,
                get_text,
                set_text,
                None,
                std::ptr::from_ref::<Text>(text).cast_mut().cast(),
            )
        };
        if status != OK {
            return Err(refused(text.name));
        }
    }
    // SAFETY: the context of the load.
    match unsafe { (api().load_configs)(ctx.raw) } {
        OK => Ok(()),
        _ => Err("a setting in the server's file is refused".into()),
    }
}

unsafe extern "C" fn get_number(_name: *const c_char, number: *mut c_void) -> c_longlong {
    // SAFETY: registered with a number that lives for ever.
    unsafe { &*number.cast::<Number>() }.get()
}

unsafe extern "C" fn set_number(
    _name: *const c_char,
    value: c_longlong,
    number: *mut c_void,
    _error: *mut *mut RawString,
) -> c_int {
    // SAFETY: registered with a number that lives for ever; the server has checked the range.
    unsafe { &*number.cast::<Number>() }.set(value);
    OK
}

unsafe extern "C" fn get_switch(_name: *const c_char, number: *mut c_void) -> c_int {
    // SAFETY: registered with a number that lives for ever.
    c_int::from(unsafe { &*number.cast::<Number>() }.is_set())
}

unsafe extern "C" fn set_switch(
    _name: *const c_char,
    value: c_int,
    number: *mut c_void,
    _error: *mut *mut RawString,
) -> c_int {
    // SAFETY: registered with a number that lives for ever.
    unsafe { &*number.cast::<Number>() }.set(value.into());
    OK
}

/// What the server was last shown of each text: it does not free what it is given.
static SHOWN: Mutex<Vec<(&'static str, Shown)>> = Mutex::new(Vec::new());

struct Shown(super::OwnedString);

// SAFETY: the string is touched under the server's lock alone.
unsafe impl Send for Shown {}

unsafe extern "C" fn get_text(_name: *const c_char, text: *mut c_void) -> *mut RawString {
    // SAFETY: registered with a text that lives for ever.
    let text: &'static Text = unsafe { &*text.cast::<Text>() };
    let shown = Shown(string(text.get().as_bytes()));
    let raw = shown.0.0;
    let mut all = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|(name, _)| *name != text.name);
    all.push((text.name, shown));
    raw
}

unsafe extern "C" fn set_text(
    _name: *const c_char,
    value: *mut RawString,
    text: *mut c_void,
    error: *mut *mut RawString,
) -> c_int {
    // SAFETY: registered with a text that lives for ever; the server passes a live string.
    let (text, value) = unsafe { (&*text.cast::<Text>(), bytes_of(value)) };
    match text.set(value) {
        Ok(()) => OK,
        Err(why) => {
            let why = string(why.as_bytes());
            // SAFETY: the server frees the string that it is handed here.
            unsafe { *error = why.0 };
            std::mem::forget(why);
            ERR
        }
    }
}
