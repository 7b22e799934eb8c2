//! An interrupt while a filter is made or changed: the old file stays, and no temporary file is
//! left.
//!
//! At most times nothing is at stake, and the program ends at once. While a file is saved, saving
//! stops at the next piece and takes its temporary file away; then the program ends. Hashes that
//! wait on disk are removed before. Either way the program ends by the signal, as a shell
//! expects. A signal that is ignored, as under `nohup`, stays so.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, Ordering::SeqCst};
use std::sync::{Mutex, Once};

use tamis::{AnyFilter, BuildError, Encoded, Spill};

struct Stake {
    saving: bool,
    /// A directory that the program must not leave behind.
    directory: Option<PathBuf>,
}

/// Held by whoever decides what happens next: the saving, or the end.
static STAKE: Mutex<Stake> = Mutex::new(Stake {
    saving: false,
    directory: None,
});
/// The signal that came while a file was saved.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

fn stake() -> std::sync::MutexGuard<'static, Stake> {
    STAKE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
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
    // Where signals cannot be watched, all is as it would be without.
    let Ok(mut signals) = signal_hook::iterator::Signals::new(heeded) else {
        return;
    };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let stake = stake();
            if !stake.saving {
                end_by(signal, &stake);
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

/// Makes ready to keep hashes on disk, so that an interrupt leaves none there.
pub(crate) fn spill(directory: &Path) -> Result<Spill, BuildError> {
    watch();
    // An interrupt waits until all files are there: files that are open can be removed, and none
    // come after.
    let mut stake = stake();
    let spill = Spill::new(directory)?;
    stake.directory = Some(spill.directory().to_path_buf());
    Ok(spill)
}

/// Saves a filter whole or not at all, also where an interrupt comes.
pub(crate) fn save(filter: &Encoded<AnyFilter>, path: &Path) -> io::Result<()> {
    saving(|| filter.save_unless(path, || SIGNAL.load(SeqCst) != 0))
}

/// Does what an interrupt must wait for; it stops early where it asks for the signal, or ends
/// soon anyway.
pub(crate) fn saving<T>(save: impl FnOnce() -> T) -> T {
    watch();
    stake().saving = true;
    let saved = save();
    let mut stake = stake();
    stake.saving = false;
    match SIGNAL.load(SeqCst) {
        0 => {}
        signal => end_by(signal, &stake),
    }
    saved
}

#[cfg(unix)]
fn end_by(signal: i32, stake: &Stake) {
    if let Some(directory) = &stake.directory {
        // It may be gone already, and nobody is left to tell of an error.
        let _ = std::fs::remove_dir_all(directory);
    }
    // This does not return unless the system refuses.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

#[cfg(not(unix))]
fn end_by(_: i32, _: &Stake) {}
