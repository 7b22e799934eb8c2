//! Where a filter goes, and what is made sure before it is there.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use tamis::{AnyFilter, DecodeErrorKind, Encoded, Hashed, Keyed};

use crate::failure::Failure;
use crate::{interrupt, output};

/// A rate measured on the filter's own bits scatters around the one that it was sized for; this
/// much is no news.
pub(crate) const SCATTER: f64 = 1.1;

/// Where the filter goes.
pub(crate) enum Target<'a> {
    Stdout,
    File { path: &'a Path, force: bool },
}

impl Target<'_> {
    /// Checked before the keys are read, so that nobody waits for a refusal.
    pub(crate) fn of(path: &Path, force: bool, json: bool) -> Result<Target<'_>, Failure> {
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
        let target = Target::File { path, force };
        target.refuse_to_overwrite()?;
        interrupt::saving(|| tamis::check_writable(path))
            .map_err(|e| Failure::io(target.name(), e))?;
        Ok(target)
    }

    fn refuse_to_overwrite(&self) -> Result<(), Failure> {
        let Target::File { path, force } = self else {
            return Ok(());
        };
        match path.metadata() {
            Ok(meta) if !meta.is_file() => {
                let why = "not a regular file; choose another name";
                Err(Failure::io(self.name(), why))
            }
            Ok(_) if !force => {
                let why = "the file exists; --force replaces it";
                Err(Failure::usage(self.name(), why))
            }
            _ => Ok(()),
        }
    }

    /// The directory that it goes to; the system's own for what is thrown away, where it goes to
    /// none.
    pub(crate) fn directory(&self) -> PathBuf {
        match self {
            Target::Stdout => std::env::temp_dir(),
            Target::File { path, .. } => match path.parent() {
                Some(parent) if parent != Path::new("") => parent.to_path_buf(),
                _ => PathBuf::from("."),
            },
        }
    }

    /// Whether the file, now that it is there, can be read by others than its owner.
    pub(crate) fn is_read_by_others(&self) -> bool {
        #[cfg(unix)]
        if let Target::File { path, .. } = self {
            use std::os::unix::fs::PermissionsExt;
            let mode = path.metadata().map(|meta| meta.permissions().mode());
            return mode.is_ok_and(|mode| mode & 0o044 != 0);
        }
        false
    }

    /// What to call it in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Target::Stdout => "standard output".to_string(),
            Target::File { path, .. } => path.display().to_string(),
        }
    }

    /// Writes the filter: whole, or not at all.
    pub(crate) fn write(&self, filter: &Encoded<AnyFilter>) -> Result<(), Failure> {
        match self {
            Target::Stdout => output::deliver(filter.as_bytes()),
            Target::File { path, .. } => {
                // Again: reading the keys may have taken hours.
                self.refuse_to_overwrite()?;
                interrupt::save(filter, path).map_err(|e| Failure::io(self.name(), e))
            }
        }
    }

    /// Writes what is no filter: whole, or not at all.
    pub(crate) fn write_bytes(&self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Target::Stdout => output::write(bytes),
            Target::File { path, .. } => {
                self.refuse_to_overwrite()?;
                interrupt::saving(|| tamis::replace_file(path, bytes))
                    .map_err(|e| Failure::io(self.name(), e))
            }
        }
    }
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
        let look = |hashes| scope.spawn(move || holds_all(opened, hashes));
        let threads: Vec<_> = hashes.chunks(share).map(look).collect();
        threads
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
    let keys = filter.len();
    let per_key = output::bits_per_key(bytes, keys)
        .map(|bits| format!(" ({bits} bits per key)"))
        .unwrap_or_default();
    let kind = filter.kind().name;
    let rate = output::rate(filter.fpr());
    format!("{kind}, {keys} keys, {bytes} bytes{per_key}, false positives {rate}")
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
