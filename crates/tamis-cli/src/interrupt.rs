//! An interrupt while a filter is made or changed: the old file stays, and no temporary file is
//! left.
//!
//! At most times nothing is at stake, and the program ends at once. While a file is saved, saving
//! stops at the next piece and takes its temporary file away; then the program ends. Either way it
//! ends by the signal, as a shell expects. A signal that is ignored, as under `nohup`, stays so. A
//! file that grows beyond what a shell's `ulimit -f` allows is an error like a full disk.

use std::io;
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use tamis::{AnyFilter, Encoded, Place};

/// Whether a file is being saved. Held by whoever decides what happens next: the saving, or the
/// end.
static SAVING: Mutex<bool> = Mutex::new(false);
/// The signal that came while a file was saved.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

fn is_saving() -> MutexGuard<'static, bool> {
    SAVING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on, interrupts leave no temporary file.
fn watch() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(watch_signals);
}

#[cfg(unix)]
fn watch_signals() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let ignored = ignored();
    let heeded = [SIGINT, SIGTERM, SIGHUP].into_iter();
    let heeded = heeded.filter(|signal| ignored >> (signal - 1) & 1 == 0);
    // Where signals cannot be watched, or no thread started for it, all is as it would be without.
    let Ok(mut signals) = signal_hook::iterator::Signals::new(heeded) else {
        return;
    };
    let _ = std::thread::Builder::new().spawn(move || {
        for signal in signals.forever() {
            let saving = is_saving();
            if !*saving {
                end_by(signal);
            }
            SIGNAL.store(signal, SeqCst);
        }
    });
}

/// Other systems end the program themselves; a temporary file may then be left.
#[cfg(not(unix))]
fn watch_signals() {}

/// The signals that are ignored, the first in the lowest bit; none where the system does not
/// tell.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// Saves a filter whole or not at all, also where an interrupt comes.
pub(crate) fn save(filter: &Encoded<AnyFilter>, place: &Place) -> io::Result<()> {
    saving(|| filter.save_to(place, came))
}

/// Whether an interrupt waits for the saving to end.
pub(crate) fn came() -> bool {
    SIGNAL.load(SeqCst) != 0
}

/// Does what an interrupt must wait for; it stops early where it asks for the signal, or ends
/// soon anyway.
pub(crate) fn saving<T>(save: impl FnOnce() -> T) -> T {
    watch();
    *is_saving() = true;
    let saved = save();
    let mut saving = is_saving();
    *saving = false;
    match SIGNAL.load(SeqCst) {
        0 => {}
        signal => end_by(signal),
    }
    saved
}

/// Limits of the system end the program as a failure of the system does, with its exit code: a
/// file that may not grow is told by an error of writing, and memory that is refused by the line
/// that Rust prints before it aborts.
#[cfg(unix)]
pub(crate) fn heed_limits() {
    use signal_hook::consts::{SIGABRT, SIGXFSZ};
    use signal_hook::flag;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    // Where this fails all is as it would be without.
    let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let always = Arc::new(AtomicBool::new(true));
    let _ = flag::register_conditional_shutdown(SIGABRT, i32::from(crate::failure::IO), always);
}

#[cfg(not(unix))]
pub(crate) fn heed_limits() {}

#[cfg(unix)]
fn end_by(signal: i32) {
    // This does not return unless the system refuses.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

#[cfg(not(unix))]
fn end_by(_: i32) {}
