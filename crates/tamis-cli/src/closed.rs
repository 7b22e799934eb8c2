//! Which of the standard streams were closed when the program started.
//!
//! The standard library puts `/dev/null` in the place of each that is: keys from nowhere, and
//! answers to nobody. This looks before it does.

#![allow(
    unsafe_code,
    reason = "what runs before `main` is declared to the linker, and asks the system itself"
)]

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// A bit for each of standard input, output and error.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Whether standard input was closed.
pub(crate) fn stdin() -> bool {
    CLOSED.load(Relaxed) & 1 != 0
}

/// Whether standard output was closed.
pub(crate) fn stdout() -> bool {
    CLOSED.load(Relaxed) & 2 != 0
}

#[cfg(target_os = "linux")]
mod before_main {
    use super::{CLOSED, Relaxed};

    /// SAFETY: the system's loader calls what is listed in this section before `main`, with
    /// arguments that a function without any may ignore.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        for stream in 0..3 {
            // SAFETY: this reads a flag of a file descriptor, which need not be an open one.
            let flags = unsafe { libc::fcntl(stream, libc::F_GETFD) };
            CLOSED.fetch_or(u8::from(flags == -1) << stream, Relaxed);
        }
    }
}
