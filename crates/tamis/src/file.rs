//! Opening and saving: a filter's file as bytes, on disk, and mapped.
//!
//! [`Keyed::load`] and [`Keyed::save`] are what most callers need. [`Open`] has the options: the
//! secret that the keys were hashed under, and how much is verified. [`Encoded`] is a filter that
//! was encoded once and opened again from those very bytes; saving it writes them. A file is
//! replaced atomically (`replace.rs`).

mod merge;
mod replace;

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use crate::any::Held;
#[cfg(feature = "mmap")]
use crate::buf::Mapped;
use crate::buf::{Buf, Bytes};
use crate::error::{DecodeError, DecodeErrorKind};
use crate::filter::Filter;
use crate::format::{self, Encoder, FileHashing, Header};
use crate::key::Hashing;
use crate::keyed::Keyed;

pub use merge::MergedFile;
pub(crate) use merge::{Files, MergeFiles, Output};
#[doc(hidden)]
pub use replace::{Place, nameless, sweep};

/// How to open a filter's file.
///
/// The filter is of the type asked for, or an [`AnyFilter`](crate::AnyFilter) of whatever kind
/// the file holds.
///
/// ```
/// use tamis::{AnyFilter, Bloom, Config, Hashing, Keyed, Open};
///
/// let secret = Hashing::secret(*b"sixteen letters!").withheld();
/// let filter: Keyed<Bloom> = Keyed::build_with(&Config::default(), secret, ["alice"])?;
/// let file = filter.to_bytes();
/// assert!(Keyed::<Bloom>::open(file.clone()).is_err(), "the secret is not in the file");
///
/// let open = Open::new().hashing(secret);
/// let again: Keyed<AnyFilter> = open.bytes(file)?;
/// assert!(again.contains("alice"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Open {
    hashing: Option<Hashing>,
    verify: bool,
    owned: bool,
}

impl Default for Open {
    fn default() -> Open {
        Open::new()
    }
}

impl Open {
    /// Everything is verified, and the file tells how keys are hashed.
    pub const fn new() -> Open {
        Open {
            hashing: None,
            verify: true,
            owned: false,
        }
    }

    /// For a file whose secret is kept elsewhere. A file that tells its hashing must agree.
    #[must_use]
    pub const fn hashing(mut self, hashing: Hashing) -> Open {
        self.hashing = Some(hashing);
        self
    }

    /// Whether the checksums of the data are compared (the default), which reads the whole file.
    /// Without this, opening reads the header and what the kind itself checks, and a mapped file
    /// opens at once. Damaged data then goes unnoticed and may give wrong answers, even "no" for a
    /// key that is present. It is never undefined behaviour.
    #[must_use]
    pub const fn verify(mut self, verify: bool) -> Open {
        self.verify = verify;
        self
    }

    /// Whether arrays are copied out of the bytes, which are freed then. Without this they are used
    /// where they lie: a filter that is changed copies each array at its first write, and holds all
    /// of the bytes for as long as one array lies there still.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tamis::{Bloom, Config, Keyed, Open};
    ///
    /// let filter: Keyed<Bloom> = Keyed::build(&Config::default(), 0..1000u64)?;
    /// let file: Arc<[u8]> = filter.to_bytes().into();
    /// let lent: Keyed<Bloom> = Open::new().bytes(Arc::clone(&file))?;
    /// assert_eq!(Arc::strong_count(&file), 2);
    /// drop(lent);
    /// let owned: Keyed<Bloom> = Open::new().owned(true).bytes(Arc::clone(&file))?;
    /// assert_eq!(Arc::strong_count(&file), 1);
    /// assert_eq!(owned.to_bytes(), file[..]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn owned(mut self, owned: bool) -> Open {
        self.owned = owned;
        self
    }

    /// Loads a file into memory.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the file cannot be read or is not exactly what a writer produces. It
    /// names the path.
    pub fn load<F: Held>(&self, path: impl AsRef<Path>) -> Result<Keyed<F>, DecodeError> {
        let path = path.as_ref();
        let read = || {
            let file = File::open(path)?;
            let size = file.metadata()?.len();
            self.shared(&read_aligned(file, size)?)
        };
        read().map_err(|e| e.at(path))
    }

    /// Reads a filter from an open file, a pipe or a socket, to its end.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when it cannot be read or is not exactly what a writer produces.
    pub fn read<F: Held>(&self, input: impl Read) -> Result<Keyed<F>, DecodeError> {
        self.shared(&read_aligned(input, 0)?)
    }

    /// Opens a filter from bytes. Arrays are used where they lie, if their address allows.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the bytes are not exactly what a writer produces.
    pub fn bytes<F: Held>(
        &self,
        bytes: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> Result<Keyed<F>, DecodeError> {
        self.shared(&(Arc::new(bytes) as Bytes))
    }

    /// Opens a filter in a file that is mapped: its pages are read when they are used, and
    /// processes share them.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the file is not exactly what a writer produces. It names the path.
    #[cfg(feature = "mmap")]
    pub fn mapped<F: Held>(&self, file: Mapped) -> Result<Keyed<F>, DecodeError> {
        let path = file.path().to_path_buf();
        self.bytes(file).map_err(|e| e.at(&path))
    }

    /// Every other way of opening a filter ends here.
    fn shared<F: Held>(&self, bytes: &Bytes) -> Result<Keyed<F>, DecodeError> {
        let (header, mut decoder) = format::open(bytes, self.verify)?;
        decoder.owned = self.owned;
        let hashing = header.hashing.resolve(self.hashing.as_ref())?;
        let kind = F::found(header.kind)?;
        kind.check_version(header.kind_version)?;
        let filter = kind.decode(&mut decoder)?;
        decoder.finish()?;
        let (expected, got) = (kind.name, filter.kind().name);
        let filter = F::from_any(filter).ok_or(DecodeErrorKind::OtherKind { expected, got })?;
        Ok(Keyed {
            filter,
            hashing,
            key_form: header.key_form,
            key_field: header.key_field,
            capacity: header.capacity,
            fpr: header.fpr,
        })
    }
}

/// Files.
impl<F: Held> Keyed<F> {
    /// Loads a file into memory, verifying everything. [`Open`] has more options.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the file cannot be read or is not exactly what a writer produces. It
    /// names the path.
    pub fn load(path: impl AsRef<Path>) -> Result<Keyed<F>, DecodeError> {
        Open::new().load(path)
    }

    /// Opens a filter from bytes, verifying everything. Arrays are used where they lie, if their
    /// address allows.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the bytes are not exactly what a writer produces.
    pub fn open(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Keyed<F>, DecodeError> {
        Open::new().bytes(bytes)
    }

    /// Saves the filter, replacing a file of that name at once and wholly, or not at all.
    ///
    /// The bytes go to a temporary file beside it, are synced, and take its name; then the
    /// directory is synced. A new file that carries a secret is readable by its owner alone.
    ///
    /// # Errors
    ///
    /// Any of those steps' own. The file is then as it was and no temporary file is left, unless
    /// only the last step, the directory's sync, failed.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        replace::replace(path.as_ref(), self.hashing.is_in_files(), |out| {
            self.write_to(out)
        })
    }

    /// Writes the file to any sink: a socket, a pipe, a `Vec<u8>`.
    ///
    /// # Errors
    ///
    /// The sink's own.
    pub fn write_to(&self, mut out: impl Write) -> io::Result<()> {
        self.encoder().write(&self.header(), &mut out)
    }

    /// The file as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (encoder, header) = (self.encoder(), self.header());
        let len = encoder.file_len(&header);
        let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or(0));
        match encoder.write(&header, &mut bytes) {
            Ok(()) => bytes,
            Err(_) => unreachable!("writing to memory does not fail"),
        }
    }

    /// How many bytes the file has.
    pub fn file_len(&self) -> u64 {
        self.encoder().file_len(&self.header())
    }

    /// Encodes the filter and opens it again from the bytes, verifying everything: lookups then
    /// read exactly what [`Encoded::save`] writes. The memory of this filter is freed first.
    ///
    /// ```
    /// use tamis::{BinaryFuse8, Config, Keyed};
    ///
    /// let words: Keyed<BinaryFuse8> = Keyed::build(&Config::default(), ["tamis", "sieve"])?;
    /// let words = words.encoded()?;
    /// assert!(words.contains("tamis") && words.contains("sieve"));
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("words.tamis");
    /// words.save(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when there is no memory for the bytes, or they cannot be opened, which is
    /// a defect of this library.
    pub fn encoded(self) -> Result<Encoded<F>, DecodeError> {
        let (encoder, header) = (self.encoder(), self.header());
        let mut buf = Buf::<u8>::zeroed(encoder.file_len(&header))?;
        encoder.write(&header, &mut buf.make_mut())?;
        drop(encoder);
        let open = Open::new().hashing(self.hashing);
        drop(self);
        let bytes: Bytes = Arc::new(buf);
        let filter = open.shared(&bytes)?;
        Ok(Encoded { filter, bytes })
    }

    /// The parts of the file, arrays lent by the filter.
    fn encoder(&self) -> Encoder<'_> {
        let (kind, filter) = self.filter.parts();
        let mut encoder = Encoder::default();
        kind.encode(filter, &mut encoder);
        encoder
    }

    fn header(&self) -> Header {
        let (kind, _) = self.filter.parts();
        Header {
            kind: kind.id,
            kind_version: kind.version,
            hashing: FileHashing::Known(self.hashing),
            key_form: self.key_form,
            key_field: self.key_field.clone(),
            len: self.filter.len(),
            capacity: self.capacity,
            fpr: self.fpr,
        }
    }
}

/// A filter together with its file's bytes, from which it was opened: see [`Keyed::encoded`].
///
/// Lookups go to the [`Keyed`] that it derefs to, which cannot be changed. Its bytes are not
/// encoded again.
#[derive(Clone)]
pub struct Encoded<F> {
    filter: Keyed<F>,
    bytes: Bytes,
}

impl<F> Encoded<F> {
    /// The file's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        (*self.bytes).as_ref()
    }

    /// How many bytes the file has.
    pub fn file_len(&self) -> u64 {
        self.as_bytes().len() as u64
    }

    /// The file's bytes, copied.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.as_bytes().to_vec()
    }

    /// Writes the bytes to any sink.
    ///
    /// # Errors
    ///
    /// The sink's own.
    pub fn write_to(&self, mut out: impl Write) -> io::Result<()> {
        out.write_all(self.as_bytes())
    }

    /// Saves the bytes as they are; see [`Keyed::save`].
    ///
    /// # Errors
    ///
    /// As [`Keyed::save`].
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.save_unless(path, || false)
    }

    /// As [`save`](Encoded::save), but gives up when `stop` returns true; it is called before each
    /// mebibyte.
    ///
    /// # Errors
    ///
    /// Those of [`save`](Encoded::save), and one that says "stopped".
    pub fn save_unless(&self, path: impl AsRef<Path>, stop: impl Fn() -> bool) -> io::Result<()> {
        self.save_to(&Place::at(path.as_ref())?, stop)
    }

    /// As [`save_unless`](Encoded::save_unless), for the program.
    #[doc(hidden)]
    pub fn save_to(&self, place: &Place, stop: impl Fn() -> bool) -> io::Result<()> {
        let private = self.filter.hashing.is_in_files();
        place.replace(private, |out| {
            replace::Stoppable { out, stop }.write_all(self.as_bytes())
        })
    }

    /// The filter, for changing. Arrays that lie in the bytes are copied on the first write.
    pub fn into_filter(self) -> Keyed<F> {
        self.filter
    }
}

impl<F> Deref for Encoded<F> {
    type Target = Keyed<F>;

    fn deref(&self) -> &Keyed<F> {
        &self.filter
    }
}

impl<F: Filter> std::fmt::Debug for Encoded<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Encoded")
            .field("filter", &self.filter)
            .field("bytes", &self.file_len())
            .finish()
    }
}

/// Reads to the end into memory that starts on a cache line, so that arrays can be used in place.
///
/// `size` is the input's size according to the system, 0 if it is unknown. Memory is allocated at
/// once only if the header announces the same length; otherwise it grows with the bytes that
/// arrive. Input that does not start like a filter is refused after its first bytes.
fn read_aligned(mut input: impl Read, size: u64) -> Result<Bytes, DecodeError> {
    let mut buf = Buf::<u8>::zeroed(64 << 10)?;
    let mut filled = 0;
    loop {
        if filled == buf.len() {
            let announced = format::announced_len(&buf)?;
            let len = if announced == size {
                size.max(2 * filled as u64) + 1
            } else {
                2 * filled as u64
            };
            let mut larger = Buf::zeroed(len)?;
            larger.make_mut()[..filled].copy_from_slice(&buf);
            buf = larger;
        }
        match input.read(&mut buf.make_mut()[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    // The filter keeps these bytes for as long as it lives; a little spare room behind them is not
    // worth a copy.
    if buf.len() - filled > filled / 8 {
        buf = Buf::copied(&buf[..filled])?;
    }
    buf.truncate(filled);
    Ok(Arc::new(buf))
}
