//! Replacing a file so that a reader sees either the old one or the new one, whole, whatever
//! happens in between.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// How much is written at a time.
const PIECE: usize = 1 << 20;

/// Writes a temporary file beside `path`, syncs it, renames it over `path`, and syncs the
/// directory.
///
/// A link is followed: the file it names is replaced and the link stays. An existing file's
/// permissions are kept; a new file that is `private` is readable by its owner alone. On an error
/// before the rename the temporary file is removed and `path` is unchanged; if only the last sync
/// fails, the new file is in place but may not survive a power cut. A failed sync is never
/// retried.
pub(super) fn replace(
    path: &Path,
    private: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let target = follow(path);
    let existing = match fs::metadata(&target) {
        Ok(meta) if meta.is_file() => Some(meta),
        Ok(_) => {
            let message = format!(
                "{} is not a regular file; choose another name",
                target.display()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        Err(_) => None,
    };
    let directory = open_directory(&target)?;
    let (temp, file) = Temp::create(&target, private || existing.is_some())?;
    if let Some(meta) = existing {
        // Before there is anything to read.
        file.set_permissions(meta.permissions())?;
    }
    let mut out = BufWriter::with_capacity(PIECE, file);
    write(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    drop(file);
    temp.rename(&target)?;
    directory.sync()
}

/// Replaces a file by these bytes, as a filter's is replaced. For the program, which also writes
/// other files.
#[doc(hidden)]
pub fn replace_file(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    replace(path.as_ref(), false, |out| out.write_all(bytes))
}

/// Whether a file of this name could be written now: its directory exists and is writable.
#[doc(hidden)]
pub fn check_writable(path: impl AsRef<Path>) -> io::Result<()> {
    Temp::create(&follow(path.as_ref()), true).map(drop)
}

/// Writes in pieces, and stops before the next one when told to.
pub(super) struct Stoppable<W, S> {
    pub(super) out: W,
    pub(super) stop: S,
}

impl<W: Write, S: Fn() -> bool> Write for Stoppable<W, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.stop)() {
            // Not of the kind `Interrupted`, after which writers retry.
            return Err(io::Error::other("stopped"));
        }
        self.out.write(&bytes[..bytes.len().min(PIECE)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The target of a path, through links, even if it does not exist yet.
fn follow(path: &Path) -> PathBuf {
    let mut target = path.to_path_buf();
    // As many links as Linux follows.
    for _ in 0..40 {
        let Ok(next) = fs::read_link(&target) else {
            break;
        };
        target = directory(&target).join(next);
    }
    target
}

fn directory(path: &Path) -> &Path {
    path.parent()
        .filter(|d| !d.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// A directory whose entries can be synced, where the system can do that.
struct Directory(#[cfg(unix)] File);

#[cfg(unix)]
fn open_directory(path: &Path) -> io::Result<Directory> {
    File::open(directory(path)).map(Directory)
}

#[cfg(not(unix))]
fn open_directory(_path: &Path) -> io::Result<Directory> {
    Ok(Directory())
}

impl Directory {
    #[cfg(unix)]
    fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    /// The rename is as durable as the system makes it.
    #[cfg(not(unix))]
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A temporary file that is removed unless it is renamed.
struct Temp(Option<PathBuf>);

impl Temp {
    /// Its name is random: a file left behind by a killed process never gets in the way.
    fn create(target: &Path, private: bool) -> io::Result<(Temp, File)> {
        if target.file_name().is_none() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the path names no file",
            ));
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if private {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = private;
        loop {
            let temp = directory(target).join(format!(".tamis-{:016x}.tmp", random()));
            match options.open(&temp) {
                Ok(file) => return Ok((Temp(Some(temp)), file)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    fn rename(mut self, target: &Path) -> io::Result<()> {
        if let Some(temp) = &self.0 {
            fs::rename(temp, target)?;
        }
        self.0 = None;
        Ok(())
    }
}

/// A number that no other process has: the standard library seeds its hash maps with one.
fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

impl Drop for Temp {
    fn drop(&mut self) {
        if let Some(temp) = &self.0 {
            // If even this fails, nothing more can be done; the error that led here is the one to
            // report.
            let _ = fs::remove_file(temp);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        replace(&path, false, |out| out.write_all(b"old")).unwrap();
        let error = replace(&path, false, |out| {
            out.write_all(b"half of the new")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(dir.path()), ["f"]);
        replace(&path, false, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["f"]);
    }

    #[test]
    fn a_stopped_write_leaves_the_old_file_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, b"old").unwrap();
        let pieces = std::cell::Cell::new(0);
        let stop = || pieces.replace(pieces.get() + 1) == 2;
        let large = vec![0; 4 * PIECE];
        let stopped = replace(&path, false, |out| {
            Stoppable { out, stop }.write_all(&large)
        });
        assert_eq!(stopped.unwrap_err().to_string(), "stopped");
        assert_eq!(pieces.get(), 3);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(dir.path()), ["f"]);
        let whole = |out: &mut dyn Write| Stoppable { out, stop }.write_all(&large);
        replace(&path, false, whole).unwrap();
        assert!(fs::read(&path).unwrap() == large);
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let error = replace(dir.path(), false, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
        let error = replace(&dir.path().join("absent").join("f"), false, |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("f"), dir.path().join("link"));
        fs::write(&path, b"old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&path, &link).unwrap();
        replace(&link, false, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_nothing_used_to_be_replaced_by_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("f"), dir.path().join("link"));
        std::os::unix::fs::symlink("f", &link).unwrap();
        replace(&link, false, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[cfg(unix)]
    #[test]
    fn a_private_file_is_never_open_to_others() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let mode_of = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let mut during = None;
        replace(&path, true, |_| {
            let temp = dir.path().join(&names(dir.path())[0]);
            during = Some(mode_of(&temp));
            Ok(())
        })
        .unwrap();
        assert_eq!((during, mode_of(&path)), (Some(0o600), 0o600));
    }

    #[test]
    fn a_long_name_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("n".repeat(250));
        replace(&path, false, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}
