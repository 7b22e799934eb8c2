//! An interrupt while a filter is made or changed: the old file stays, and no temporary file is left.
//!
//! At most times nothing is at stake, and the program ends at once. While a file is saved, saving stops at the next
//! piece and takes its temporary file away; then the program ends. Either way it ends by the signal, as a shell expects.

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};

use tamis::{AnyFilter, Keyed};

/// Held by whoever decides what happens next: the saving, or the end.
static SAVING: Mutex<bool> = Mutex::new(false);
/// The signal that came while a file was saved.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

fn saving() -> std::sync::MutexGuard<'static, bool> {
    SAVING
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// From now on, interrupts leave no temporary file.
#[cfg(unix)]
pub(crate) fn watch() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    // Where signals cannot be watched, all is as it would be without.
    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]) else {
        return;
    };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let saving = saving();
            if !*saving {
                end_by(signal);
            }
            SIGNAL.store(signal, SeqCst);
        }
    });
}

/// Other systems end the program themselves; a temporary file may then be left.
#[cfg(not(unix))]
pub(crate) fn watch() {}

/// Saves a filter whole or not at all, also where an interrupt comes.
pub(crate) fn save(filter: &Keyed<AnyFilter>, path: &Path) -> io::Result<()> {
    *saving() = true;
    let saved = filter.save_unless(path, || SIGNAL.load(SeqCst) != 0);
    let mut saving = saving();
    *saving = false;
    match SIGNAL.load(SeqCst) {
        0 => {}
        signal => end_by(signal),
    }
    saved
}

#[cfg(unix)]
fn end_by(signal: i32) {
    // This does not return unless the system refuses.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

#[cfg(not(unix))]
fn end_by(_: i32) {}
