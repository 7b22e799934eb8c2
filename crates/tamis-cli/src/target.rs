//! Where a filter goes, and what is made sure before it is there.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use tamis::{AnyFilter, DecodeErrorKind, Encoded, Hashed, Keyed, KindInfo, Place};

use crate::failure::{self, Failure};
use crate::{interrupt, output};

/// A rate measured on the filter's own bits scatters around the one that it was sized for; this
/// much is no news.
pub(crate) const SCATTER: f64 = 1.1;

/// Where the filter goes.
pub(crate) enum Target {
    Stdout,
    File { name: String, place: Place },
}

impl Target {
    /// Checked before the keys are read, so that nobody waits for a refusal; and locked, if a file
    /// is there, so that whoever changes it waits until it is replaced.
    pub(crate) fn of(path: &Path, force: bool, json: bool) -> Result<Target, Failure> {
        if path == Path::new("-") {
            if json {
                let why = "--json needs standard output for itself; give a file's name";
                return Err(Failure::usage("--output -", why));
            }
            if io::stdout().is_terminal() {
                let why = "a filter is no text for a terminal; give a file's name, or a pipe";
                return Err(Failure::usage("--output -", why));
            }
            return Ok(Target::Stdout);
        }
        let name = path.display().to_string();
        let exists = || Failure::usage(&name, "the file exists; --force replaces it");
        match path.metadata() {
            Ok(meta) if !meta.is_file() => {
                let why = "not a regular file; choose another name";
                return Err(Failure::io(&name, why));
            }
            Ok(_) if !force => return Err(exists()),
            _ => {}
        }
        let place = lock(path)?.tightened();
        if place.is_taken() && !force {
            return Err(exists());
        }
        interrupt::saving(|| place.check_writable()).map_err(|e| Failure::io(&name, e))?;
        Ok(Target::File { name, place })
    }

    /// The directory that it goes to; the system's own for what is thrown away, where it goes to
    /// none.
    pub(crate) fn directory(&self) -> PathBuf {
        match self {
            Target::Stdout => std::env::temp_dir(),
            Target::File { place, .. } => place.directory().to_path_buf(),
        }
    }

    /// What to call it in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Target::Stdout => "standard output".to_string(),
            Target::File { name, .. } => name.clone(),
        }
    }

    /// Writes the filter: whole, or not at all.
    pub(crate) fn write(&self, filter: &Encoded<AnyFilter>) -> Result<(), Failure> {
        match self {
            Target::Stdout => output::deliver(filter.as_bytes()),
            Target::File { name, place } => {
                interrupt::save(filter, place).map_err(|e| Failure::io(name, e))
            }
        }
    }

    /// Has `write` make the file, which does that whole or not at all.
    pub(crate) fn written_by<T>(&self, write: impl FnOnce(&Place) -> T) -> Result<T, Failure> {
        match self {
            Target::Stdout => {
                let why = "what --max-memory does not hold is written to a file; give its name";
                Err(Failure::usage("--output -", why))
            }
            Target::File { place, .. } => Ok(interrupt::saving(|| write(place))),
        }
    }

    /// Writes what is no filter: whole, or not at all.
    pub(crate) fn write_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Target::Stdout => output::write(bytes),
            Target::File { name, place } => {
                interrupt::saving(|| place.replace_by(bytes)).map_err(|e| Failure::io(name, e))
            }
        }
    }
}

/// Waits for whoever is changing the file of this name, and keeps others from changing it as long
/// as the place is held. What killed programs left beside it is swept away.
pub(crate) fn lock(path: &Path) -> Result<Place, Failure> {
    let name = path.display();
    let waiting = || failure::say(&format!("{name}: waiting for another that is changing it"));
    let place = Place::locked(path, waiting).map_err(|e| Failure::io(&name, e))?;
    if let Some(why) = place.unlocked() {
        failure::say(&format!(
            "{name}: warning: it cannot be locked ({why}); see that no other changes it meanwhile"
        ));
    }
    tamis::sweep(place.directory());
    Ok(place)
}

/// Below this, a thread costs more than it saves.
const WORTH_A_THREAD: usize = 1 << 18;

/// The filter, opened anew from the bytes that will be its file.
pub(crate) fn encoded(filter: Keyed<AnyFilter>, what: &str) -> Result<Encoded<AnyFilter>, Failure> {
    filter.encoded().map_err(|e| match e.kind() {
        DecodeErrorKind::Memory { .. } => Failure::decode(what, &e),
        _ => Failure::verification(what),
    })
}

/// The filter, opened anew from the bytes that will be its file, with every hash found in it.
pub(crate) fn verified(
    filter: Keyed<AnyFilter>,
    hashes: &[u64],
    threads: usize,
    what: &str,
) -> Result<Encoded<AnyFilter>, Failure> {
    let filter = encoded(filter, what)?;
    let share = hashes.len().div_ceil(threads).max(WORTH_A_THREAD);
    let opened: &Keyed<AnyFilter> = &filter;
    let all = std::thread::scope(|scope| {
        // What the system gives no thread for is looked up by this one.
        let mut all = true;
        let mut started = Vec::new();
        for hashes in hashes.chunks(share) {
            let look = move || holds_all(opened, hashes);
            match std::thread::Builder::new().spawn_scoped(scope, look) {
                Ok(thread) => started.push(thread),
                Err(_) => all &= look(),
            }
        }
        all && started
            .into_iter()
            .all(|thread| thread.join().unwrap_or(false))
    });
    match all {
        true => Ok(filter),
        false => Err(Failure::verification(what)),
    }
}

/// Whether a filter contains every one of these.
pub(crate) fn holds_all(filter: &Keyed<AnyFilter>, hashes: &[u64]) -> bool {
    let mut found = [false; 1024];
    hashes.chunks(found.len()).all(|hashes| {
        let found = &mut found[..hashes.len()];
        filter.contains_batch(hashes.iter().copied().map(Hashed), found);
        !found.contains(&false)
    })
}

/// A filter in a line, with the bytes of its file.
pub(crate) fn summary(filter: &Keyed<AnyFilter>, bytes: u64) -> String {
    summary_of(filter.kind(), filter.len(), filter.fpr(), bytes)
}

/// The same of what is known of a filter.
pub(crate) fn summary_of(kind: &KindInfo, keys: u64, fpr: f64, bytes: u64) -> String {
    let per_key = output::bits_per_key(bytes, keys)
        .map(|bits| format!(" ({bits} bits per key)"))
        .unwrap_or_default();
    let (kind, rate) = (kind.name, output::rate(fpr));
    let keys = output::counted(keys, "key");
    format!("{kind}, {keys}, {bytes} bytes{per_key}, false positives {rate}")
}

#[cfg(test)]
mod tests {
    use tamis::{Config, Hashing};

    use super::*;
    use crate::choice;

    #[test]
    fn verification_misses_no_key() {
        let mut hashes: Vec<u64> = (1..=600_000u64)
            .map(|i| Hashing::default().hash(&i))
            .collect();
        let config = Config::default().fpr(1e-6);
        for hashing in [Hashing::default(), Hashing::secret([7; 16]).withheld()] {
            let built = || choice::build(&config, hashing, &mut hashes.clone()).unwrap();
            assert!(verified(built(), &hashes, 3, "f").is_ok());
            let missing = [&hashes[..], &[12345]].concat();
            assert!(verified(built(), &missing, 3, "f").is_err());
        }
        hashes.clear();
    }
}
