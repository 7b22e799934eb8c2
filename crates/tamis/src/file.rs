//! Replacing a file so that a reader sees the old one or the new one, whole, whatever happens in between.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a temporary file beside `path`, syncs it, renames it over `path`, and syncs the directory.
///
/// A link is followed, so that the file it names is replaced and the link stays. An existing file's permissions are
/// kept. On any error the temporary file is removed and `path` is as it was; a failed sync is never tried again.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
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
    let (temp, file) = Temp::create(&target)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    write(&mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    if let Some(meta) = existing {
        file.set_permissions(meta.permissions())?;
    }
    file.sync_all()?;
    drop(file);
    temp.rename(&target)?;
    sync_directory(&target)
}

fn directory(path: &Path) -> &Path {
    path.parent()
        .filter(|d| !d.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(directory(path))?.sync_all()
}

/// Directories cannot be synced here; the rename is as durable as the system makes it.
#[cfg(not(unix))]
fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// A temporary file that goes away unless it is renamed.
struct Temp(Option<PathBuf>);

impl Temp {
    fn create(target: &Path) -> io::Result<(Temp, File)> {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        let Some(name) = target.file_name() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the path names no file",
            ));
        };
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let mut temp = std::ffi::OsString::from(".");
        temp.push(name);
        temp.push(format!(".{}-{number}.tmp", std::process::id()));
        let temp = directory(target).join(temp);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&temp)?;
        Ok((Temp(Some(temp)), file))
    }

    fn rename(mut self, target: &Path) -> io::Result<()> {
        if let Some(temp) = &self.0 {
            fs::rename(temp, target)?;
        }
        self.0 = None;
        Ok(())
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if let Some(temp) = &self.0 {
            // Nothing more can be done where even this fails; the error that led here is the one to report.
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
        replace(&path, |out| out.write_all(b"old")).unwrap();
        let error = replace(&path, |out| {
            out.write_all(b"half of the new")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(dir.path()), ["f"]);
        replace(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(dir.path()), ["f"]);
    }

    #[test]
    fn what_is_no_regular_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let error = replace(dir.path(), |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
        let error = replace(&dir.path().join("absent").join("f"), |_| Ok(())).unwrap_err();
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
        replace(&link, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o640
        );
    }
}
