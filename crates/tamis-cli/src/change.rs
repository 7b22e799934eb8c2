//! Changing a filter file: read, changed in memory, verified, and replaced.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tamis::{AnyFilter, Encoded, Keyed};

use crate::failure::Failure;
use crate::input::{InputArgs, Source};
use crate::interrupt;
use crate::secret::SecretArgs;

/// What `add` and `remove` are given.
#[derive(clap::Args)]
pub(crate) struct ChangeArgs {
    /// The filter file
    pub(crate) filter: PathBuf,

    /// The files of keys; - or nothing for standard input
    #[arg(value_name = "KEYS")]
    pub(crate) keys: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) secret: SecretArgs,

    /// Tell what was done also where standard error is no terminal
    #[arg(long)]
    pub(crate) verbose: bool,

    /// Tell what was done as JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) input: InputArgs,
}

/// A filter file that no other `tamis` changes meanwhile.
pub(crate) struct Place {
    path: PathBuf,
    /// What to call it in messages.
    pub(crate) name: String,
    /// Locked until it is closed.
    _file: File,
}

impl Place {
    /// Waits for whoever is changing the file, and opens the filter in it.
    pub(crate) fn open(args: &ChangeArgs) -> Result<(Place, Keyed<AnyFilter>), Failure> {
        let path = args.filter.as_path();
        if path == Path::new("-") {
            let why = "a filter is changed in its file; give the file's name";
            return Err(Failure::usage("standard input", why));
        }
        let name = path.display().to_string();
        let secret = args.secret.known()?;
        let meta = fs::metadata(path).map_err(|e| Failure::io(&name, e))?;
        if !meta.is_file() {
            return Err(Failure::io(&name, "not a regular file"));
        }
        let file = lock(path).map_err(|e| Failure::io(&name, e))?;
        let mut source = Source::open(Some(path))?;
        if source.is_compressed()? {
            let why = "the filter is compressed; decompress it before you change it";
            return Err(Failure::usage(&name, why));
        }
        let filter = source.filter(secret.as_ref())?;
        let place = Place {
            path: path.to_path_buf(),
            name,
            _file: file,
        };
        Ok((place, filter))
    }

    /// Puts a filter in the place of the old one.
    pub(crate) fn replace(&self, filter: &Encoded<AnyFilter>) -> Result<(), Failure> {
        interrupt::save(filter, &self.path).map_err(|e| Failure::io(&self.name, e))
    }
}

/// Locks the file that has this name, which another may have replaced while we waited.
fn lock(path: &Path) -> io::Result<File> {
    loop {
        let file = File::open(path)?;
        // Where a file system knows no locks, nobody waits.
        let _ = file.lock();
        if is_at(&file, path)? {
            return Ok(file);
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (ours, there) = (file.metadata()?, fs::metadata(path)?);
    Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino()))
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> io::Result<bool> {
    fs::metadata(path).map(|_| true)
}
