//! Replacing a file so that a reader sees either the old one or the new one, whole, whatever
//! happens in between.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// How much is written at a time.
const PIECE: usize = 1 << 20;
/// What the name of a temporary file begins and ends with.
const PREFIX: &str = ".tamis-";
const SUFFIX: &str = ".tmp";

/// The name of a file that is to be made or replaced.
///
/// ```text
///   open ── lock ── what is there? ── … ── temporary file ── sync ── still the same? ── rename
///   └──────────────────────── held by nobody else who locks ─────────────────────────────────┘
/// ```
///
/// Whoever reads a file to write it anew holds it locked from before the reading, so that two that
/// change a file at a time wait for each other. A file that was changed all the same, by a program
/// that takes no lock or on a file system that knows none, is found changed before it is replaced.
#[doc(hidden)]
#[derive(Debug)]
pub struct Place {
    target: PathBuf,
    /// `None` where the last who writes is to be right.
    guard: Option<Guard>,
    tightened: bool,
}

/// What was there when the place was locked.
#[derive(Debug)]
struct Guard {
    /// `None` where no file was there.
    seen: Option<Identity>,
    /// Locked until it is closed, unless `unlocked` says why it could not be.
    _file: Option<File>,
    unlocked: Option<io::Error>,
}

/// What tells a file from another of its name. Its inode is not used again while it is open.
#[derive(Debug, PartialEq, Eq)]
struct Identity {
    #[cfg(unix)]
    inode: (u64, u64),
    len: u64,
    modified: Option<std::time::SystemTime>,
}

impl Identity {
    fn of(meta: &Metadata) -> Identity {
        Identity {
            #[cfg(unix)]
            inode: {
                use std::os::unix::fs::MetadataExt;
                (meta.dev(), meta.ino())
            },
            len: meta.len(),
            modified: meta.modified().ok(),
        }
    }
}

impl Place {
    /// A place whose file is replaced whatever it is by then. A link is followed: the file it names
    /// is meant.
    pub(crate) fn at(path: &Path) -> io::Result<Place> {
        Ok(Place {
            target: follow(path)?,
            guard: None,
            tightened: false,
        })
    }

    /// A place that nobody else who asks for the same changes meanwhile. `waiting` is called if
    /// another has it now.
    pub fn locked(path: impl AsRef<Path>, waiting: impl FnOnce()) -> io::Result<Place> {
        let mut place = Place::at(path.as_ref())?;
        place.guard = Some(guard(&place.target, waiting)?);
        Ok(place)
    }

    /// A file with a secret becomes readable by its owner alone, also where the old one was not.
    #[must_use]
    pub fn tightened(mut self) -> Place {
        self.tightened = true;
        self
    }

    /// Whether a file was there when the place was locked.
    pub fn is_taken(&self) -> bool {
        self.guard
            .as_ref()
            .is_some_and(|guard| guard.seen.is_some())
    }

    /// Why the file could not be locked, where it could not: it is found changed, but not kept from
    /// changing.
    pub fn unlocked(&self) -> Option<&io::Error> {
        self.guard.as_ref()?.unlocked.as_ref()
    }

    /// The directory that the file is in.
    pub fn directory(&self) -> &Path {
        directory(&self.target)
    }

    /// Whether a file could be written here now: the directory exists and is writable.
    pub fn check_writable(&self) -> io::Result<()> {
        Temp::create(self.directory(), true).map(drop)
    }

    /// Replaces the file by these bytes. For the program, which also writes other files.
    pub fn replace_by(&self, bytes: &[u8]) -> io::Result<()> {
        self.replace(false, |out| out.write_all(bytes))
    }

    /// Writes a temporary file beside the target, syncs it, renames it over the target, and syncs
    /// the directory.
    ///
    /// An existing file's permissions are kept, and its owner where the system allows; a new file
    /// that is `private` is readable by its owner alone. On an error before the rename the
    /// temporary file is removed and the target is unchanged; if only the last sync fails, the new
    /// file is in place but may not survive a power cut. A failed sync is never retried.
    pub(crate) fn replace<E: From<io::Error>>(
        &self,
        private: bool,
        write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        let existing = regular(&self.target)?;
        let directory = open_directory(&self.target)?;
        let (temp, file) = Temp::create(self.directory(), private || existing.is_some())?;
        if let Some(meta) = &existing {
            // Before there is anything to read.
            take_after(&file, meta, private && self.tightened)?;
        }
        let mut out = BufWriter::with_capacity(PIECE, file);
        write(&mut out)?;
        // Open until it has its name: whoever sweeps the directory takes what nobody has open.
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        self.check_unchanged()?;
        match &self.guard {
            Some(Guard { seen: None, .. }) => temp.link(&self.target)?,
            _ => temp.rename(&self.target)?,
        }
        drop(file);
        Ok(directory.sync()?)
    }

    fn check_unchanged(&self) -> io::Result<()> {
        let Some(guard) = &self.guard else {
            return Ok(());
        };
        let now = regular(&self.target)?.as_ref().map(Identity::of);
        match (&guard.seen, &now) {
            (seen, now) if seen == now => Ok(()),
            (None, _) => Err(appeared()),
            (_, None) => Err(io::Error::other(
                "the file was removed meanwhile; try again",
            )),
            _ => Err(io::Error::other(
                "another program changed the file meanwhile; try again",
            )),
        }
    }
}

fn appeared() -> io::Error {
    let why = "another program made a file of this name meanwhile; nothing was written";
    io::Error::new(io::ErrorKind::AlreadyExists, why)
}

/// Locks the file that has this name, which another may have replaced while we waited.
fn guard(target: &Path, waiting: impl FnOnce()) -> io::Result<Guard> {
    let mut waiting = Some(waiting);
    loop {
        let Some(meta) = regular(target)? else {
            return Ok(Guard {
                seen: None,
                _file: None,
                unlocked: None,
            });
        };
        let file = match File::open(target) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(e) => {
                return Ok(Guard {
                    seen: Some(Identity::of(&meta)),
                    _file: None,
                    unlocked: Some(e),
                });
            }
            Ok(file) => file,
        };
        let locked = match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                if let Some(waiting) = waiting.take() {
                    waiting();
                }
                file.lock()
            }
            Err(TryLockError::Error(e)) => Err(e),
            Ok(()) => Ok(()),
        };
        let meta = file.metadata()?;
        if is_at(&meta, target) {
            return Ok(Guard {
                seen: Some(Identity::of(&meta)),
                _file: Some(file),
                unlocked: locked.err(),
            });
        }
    }
}

/// Whether an open file is the one that has this name.
fn is_at(meta: &Metadata, path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| Identity::of(&there) == Identity::of(meta))
}

/// The file of this name, if there is one; what is there and no regular file is refused.
fn regular(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_file() => Ok(Some(meta)),
        Ok(_) => {
            let message = format!(
                "{} is not a regular file; choose another name",
                path.display()
            );
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Gives a file the permissions of another, less those of others than its owner where it is
/// `tightened`; and its owner, where the system allows.
fn take_after(file: &File, meta: &Metadata, tightened: bool) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
        let ours = file.metadata()?;
        if (ours.uid(), ours.gid()) != (meta.uid(), meta.gid()) {
            // Only root may give a file away.
            let _ = fchown(file, Some(meta.uid()), Some(meta.gid()));
        }
        if tightened {
            let mode = meta.permissions().mode() & 0o700;
            return file.set_permissions(fs::Permissions::from_mode(mode));
        }
    }
    #[cfg(not(unix))]
    let _ = tightened;
    file.set_permissions(meta.permissions())
}

/// Replaces a file whatever it is by then; see [`Place::replace`].
pub(super) fn replace<E: From<io::Error>>(
    path: &Path,
    private: bool,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    Place::at(path)?.replace(private, write)
}

/// A file of no name in a directory: it is gone when it is closed, however that comes about.
#[doc(hidden)]
pub fn nameless(directory: &Path) -> io::Result<File> {
    let (mut temp, file) = Temp::create(directory, true)?;
    if let Some(path) = &temp.0 {
        fs::remove_file(path)?;
    }
    temp.0 = None;
    Ok(file)
}

/// Removes the temporary files that killed programs have left in a directory. A file that
/// somebody writes is locked, and stays.
#[doc(hidden)]
pub fn sweep(directory: impl AsRef<Path>) {
    // What cannot be seen or removed is somebody else's, or stays for another time.
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.as_encoded_bytes();
        let is_temp = name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes());
        if is_temp
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
            && file.metadata().is_ok_and(|meta| is_at(&meta, &path))
        {
            let _ = fs::remove_file(&path);
        }
    }
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
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_path_buf();
    // As many links as Linux follows.
    for _ in 0..40 {
        let Ok(next) = fs::read_link(&target) else {
            return match target.file_name() {
                Some(_) => Ok(target),
                None => Err(invalid("the path names no file")),
            };
        };
        target = directory(&target).join(next);
    }
    Err(invalid(
        "the link leads to itself, or through too many others",
    ))
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
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
    /// Its name is random: a file left behind by a killed process never gets in the way. It is
    /// locked, so that [`sweep`] knows it from such a one.
    fn create(directory: &Path, private: bool) -> io::Result<(Temp, File)> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        if private {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = private;
        loop {
            let path = directory.join(format!("{PREFIX}{:016x}{SUFFIX}", random()));
            let file = match options.open(&path) {
                Ok(file) => file,
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(e) => return Err(e),
            };
            let temp = Temp(Some(path.clone()));
            // Somebody may sweep the directory before it is locked.
            let is_swept = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
            if !is_swept && is_at(&file.metadata()?, &path) {
                return Ok((temp, file));
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

    /// As [`rename`](Temp::rename), but replaces no file.
    fn link(self, target: &Path) -> io::Result<()> {
        let linked = match &self.0 {
            Some(temp) => fs::hard_link(temp, target),
            None => Ok(()),
        };
        match linked {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(appeared()),
            // A file system without links; that nothing is there was seen just now.
            Err(_) => self.rename(target),
            Ok(()) => Ok(()),
        }
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
        let error: io::Error = replace(dir.path(), false, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("not a regular file"), "{error}");
        let absent = dir.path().join("absent").join("f");
        let error: io::Error = replace(&absent, false, |_| Ok(())).unwrap_err();
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
            io::Result::Ok(())
        })
        .unwrap();
        assert_eq!((during, mode_of(&path)), (Some(0o600), 0o600));
    }

    #[test]
    fn a_file_that_another_changed_or_made_meanwhile_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let rewritten = |path: &Path| fs::write(path, b"longer").unwrap();
        let replaced = |path: &Path| replace(path, false, |out| out.write_all(b"odd")).unwrap();
        let removed = |path: &Path| fs::remove_file(path).unwrap();
        type Change = dyn Fn(&Path);
        let changes: [(Option<&[u8]>, &Change, &str); 5] = [
            (Some(b"old"), &rewritten, "changed"),
            (Some(b"old"), &replaced, "changed"),
            (Some(b"old"), &removed, "removed"),
            (None, &rewritten, "made"),
            (None, &replaced, "made"),
        ];
        for (old, change, word) in changes {
            let _ = fs::remove_file(&path);
            if let Some(old) = old {
                fs::write(&path, old).unwrap();
            }
            let place = Place::locked(&path, || ()).unwrap();
            assert_eq!(place.is_taken(), old.is_some());
            change(&path);
            let now = fs::read(&path).ok();
            let error = place.replace_by(b"new").unwrap_err().to_string();
            assert!(
                error.contains(word) && error.contains("meanwhile"),
                "{error}"
            );
            assert_eq!(fs::read(&path).ok(), now);
            // And without: the place can be had again.
            drop(place);
            let place = Place::locked(&path, || ()).unwrap();
            place.replace_by(b"new").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            assert_eq!(names(dir.path()), ["f"]);
        }
    }

    #[test]
    fn a_file_made_after_the_last_look_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, b"another's").unwrap();
        let (temp, _file) = Temp::create(dir.path(), false).unwrap();
        let error = temp.link(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"another's");
        assert_eq!(names(dir.path()), ["f"]);
    }

    #[test]
    fn who_changes_a_file_waits_for_who_is_changing_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, b"0").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let place = Place::locked(&path, || ()).unwrap();
                        assert!(place.unlocked().is_none());
                        let text = fs::read_to_string(&path).unwrap();
                        let next = text.parse::<u32>().unwrap() + 1;
                        place.replace_by(next.to_string().as_bytes()).unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read(&path).unwrap(), b"200");
    }

    #[test]
    fn what_a_killed_program_left_is_swept_away_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["f", ".tamis-0123.tmp", ".tamis-notes", "0.tmp"] {
            fs::write(path(name), b"").unwrap();
        }
        fs::create_dir(path(".tamis-directory.tmp")).unwrap();
        let (temp, file) = Temp::create(dir.path(), true).unwrap();
        let writing = temp.0.clone().unwrap();
        sweep(dir.path());
        let kept = [".tamis-directory.tmp", ".tamis-notes", "0.tmp", "f"];
        assert_eq!(names(dir.path()).len(), 5, "{:?}", names(dir.path()));
        assert!(kept.iter().all(|name| path(name).exists()) && writing.exists());
        // A program that is killed closes its files, and removes none.
        std::mem::forget(temp);
        drop(file);
        sweep(dir.path());
        assert_eq!(names(dir.path()), kept);
        sweep(path("absent"));
    }

    #[test]
    fn sweeping_takes_no_file_from_who_writes_it() {
        let dir = tempfile::tempdir().unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    sweep(dir.path());
                }
            });
            let path = dir.path().join("f");
            let saved = (0..500u32).try_for_each(|i| {
                replace(&path, false, |out| out.write_all(i.to_string().as_bytes()))
            });
            done.store(true, std::sync::atomic::Ordering::Relaxed);
            let saved: io::Result<()> = saved;
            saved.unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"499");
        });
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_leads_to_itself_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
        std::os::unix::fs::symlink("b", &a).unwrap();
        std::os::unix::fs::symlink("a", &b).unwrap();
        let error = Place::locked(&a, || ()).unwrap_err();
        assert!(error.to_string().contains("leads to itself"), "{error}");
        assert_eq!(names(dir.path()), ["a", "b"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_secret_tightens_the_mode_where_that_is_asked_for() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        for (private, tightened, mode) in [
            (true, true, 0o600),
            (true, false, 0o644),
            (false, true, 0o644),
        ] {
            fs::write(&path, b"old").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            let mut place = Place::locked(&path, || ()).unwrap();
            if tightened {
                place = place.tightened();
            }
            let write = |out: &mut dyn Write| out.write_all(b"new");
            place.replace(private, write).unwrap();
            let left = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(left, mode, "{private} {tightened}");
        }
    }

    /// Root may give a file away; for others this is the owner that it has anyway.
    #[cfg(unix)]
    #[test]
    fn the_owner_stays() {
        use std::os::unix::fs::{MetadataExt, chown};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, b"old").unwrap();
        let _ = chown(&path, Some(12345), Some(54321));
        let ids = || {
            let meta = fs::metadata(&path).unwrap();
            (meta.uid(), meta.gid())
        };
        let before = ids();
        replace(&path, false, |out| out.write_all(b"new")).unwrap();
        assert_eq!(ids(), before);
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    #[test]
    fn a_long_name_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("n".repeat(250));
        replace(&path, false, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}
