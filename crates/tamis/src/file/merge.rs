//! Merging files that are larger than memory: what all kinds that can have in common.
//!
//! The files are opened and compared here, and the union is written here; between the two its kind
//! reads lists and writes one ([`MergeFiles`]).

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{Open, Place};
use crate::any::{AnyFilter, Held};
use crate::config::Progress;
use crate::error::{DecodeError, MergeError, MergeErrorKind, MergeFilesError, MergeFilesErrorKind};
use crate::filter::Kind;
use crate::form::KeyForm;
use crate::format::{Data, Decoder, Encoder, FileHashing, Header, Stored, Watch};
use crate::kinds::KindInfo;

/// Kinds whose file is a list in order, so that files merge in sequential passes.
pub(crate) trait MergeFiles: Kind {
    /// Writes the union of the files: the same bytes as merging in memory gives.
    fn merge_files(files: &mut Files<'_>, out: &Output<'_>) -> Result<MergedFile, MergeFilesError>;
}

/// What [`Open::merge_files`] wrote.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MergedFile {
    /// The filter's kind.
    pub kind: &'static KindInfo,
    /// How many keys it holds; see [`Keyed::len`](crate::Keyed::len).
    pub keys: u64,
    /// How many of them count against the capacity; see
    /// [`Filter::charged`](crate::Filter::charged).
    pub charged: u64,
    /// For how many keys it was made.
    pub capacity: u64,
    /// How its keys are written; see [`Keyed::key_form`](crate::Keyed::key_form).
    pub key_form: KeyForm,
    /// The field that all its keys came from; see [`Keyed::key_field`](crate::Keyed::key_field).
    pub key_field: Option<Box<str>>,
    /// The false-positive rate that was asked for.
    pub requested_fpr: f64,
    /// The false-positive rate now; see [`Keyed::fpr`](crate::Keyed::fpr).
    pub fpr: f64,
    /// The length of the file.
    pub bytes: u64,
}

impl MergedFile {
    /// Whether it holds more keys than it should; see
    /// [`Keyed::is_over_capacity`](crate::Keyed::is_over_capacity).
    pub fn is_over_capacity(&self) -> bool {
        self.kind.is_over_capacity(self.keys, self.capacity)
    }
}

impl Open {
    /// Merges files that memory need not hold into one file: the same bytes as
    /// [`Keyed::merge`](crate::Keyed::merge) and [`Keyed::save`](crate::Keyed::save) give. Each is
    /// read from beginning to end, in blocks of 64 KiB, and verified on the way; the result is
    /// written likewise, and takes its name when it is whole. The memory that this takes is a block
    /// and 1/8192 of each file, the result's included, and at most a megabyte for each where runs
    /// are long. Files whose runs need more are refused: hashes that are spread evenly make none.
    ///
    /// For the kinds whose files are lists in order: [`Quotient`](crate::Quotient) in one pass, and
    /// [`QuotientCounting`](crate::QuotientCounting) in two, as its counts are summed up first. A
    /// pass is repeated with twice the slots where the union had none left.
    ///
    /// ```
    /// use tamis::{Config, Keyed, Open, Quotient};
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = |name| directory.path().join(name);
    /// let config = Config::new(1000);
    /// Keyed::<Quotient>::build(&config, ["alice"])?.save(path("monday.tamis"))?;
    /// Keyed::<Quotient>::build(&config, ["bob"])?.save(path("tuesday.tamis"))?;
    ///
    /// let days = [path("monday.tamis"), path("tuesday.tamis")];
    /// let merged = Open::new().merge_files(&days, path("week.tamis"))?;
    /// assert_eq!(merged.keys, 2);
    /// let week: Keyed<Quotient> = Keyed::load(path("week.tamis"))?;
    /// assert!(week.contains("alice") && week.contains("bob"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`MergeFilesError`] when a file cannot be read or is damaged, the files do not go together
    /// or their kind cannot do this, the union does not fit, or the result cannot be written. A
    /// file of its name is then as it was.
    pub fn merge_files<P: AsRef<Path>>(
        &self,
        files: &[P],
        to: impl AsRef<Path>,
    ) -> Result<MergedFile, MergeFilesError> {
        self.merge_files_unless(files, to, |_| false)
    }

    /// As [`merge_files`](Open::merge_files), but gives up when `stop` returns true; it is called
    /// before each block is read.
    ///
    /// # Errors
    ///
    /// Those of [`merge_files`](Open::merge_files), and one of writing that says "stopped".
    pub fn merge_files_unless<P: AsRef<Path>>(
        &self,
        files: &[P],
        to: impl AsRef<Path>,
        stop: impl Fn(Progress) -> bool,
    ) -> Result<MergedFile, MergeFilesError> {
        self.merge_files_to(files, &Place::at(to.as_ref())?, stop)
    }

    /// As [`merge_files_unless`](Open::merge_files_unless), for the program.
    #[doc(hidden)]
    pub fn merge_files_to<P: AsRef<Path>>(
        &self,
        files: &[P],
        to: &Place,
        stop: impl Fn(Progress) -> bool,
    ) -> Result<MergedFile, MergeFilesError> {
        let paths: Vec<&Path> = files.iter().map(AsRef::as_ref).collect();
        let (mut files, kind, header) = Files::open(self, &paths, Watch::new(&stop))?;
        if !kind.can.merge {
            let error = MergeErrorKind::Unsupported(kind.name);
            return Err(files.refused(0, error.into()));
        }
        let unsupported = MergeFilesErrorKind::Unsupported(kind.name);
        let merge = kind.files_merger().ok_or(unsupported)?;
        let merged = merge(&mut files, &Output { to, kind, header });
        match files.watch.is_stopped() {
            true => Err(io::Error::other("stopped").into()),
            false => merged,
        }
    }
}

/// The files that are merged: of one kind, hashed alike.
pub(crate) struct Files<'a> {
    paths: Vec<PathBuf>,
    files: Vec<Stored>,
    watch: Watch<'a>,
}

impl<'a> Files<'a> {
    /// With their kind, and what the union's header says but for its keys.
    fn open(
        open: &Open,
        paths: &[&Path],
        watch: Watch<'a>,
    ) -> Result<(Files<'a>, &'static KindInfo, Header), MergeFilesError> {
        let mut files = Files {
            paths: paths.iter().map(|path| path.to_path_buf()).collect(),
            files: Vec::new(),
            watch,
        };
        let mut first = None;
        for (i, path) in paths.iter().enumerate() {
            let opened = || {
                let stored = Stored::open(File::open(path)?)?;
                let hashing = stored.header.hashing.resolve(open.hashing.as_ref())?;
                let kind = AnyFilter::found(stored.header.kind)?;
                kind.check_version(stored.header.kind_version)?;
                Ok((stored, hashing, kind))
            };
            let (stored, hashing, kind) = opened().map_err(|e: DecodeError| e.at(path))?;
            let (ours, union, header) =
                first.get_or_insert_with(|| (hashing, kind, stored.header.clone()));
            if !ours.agrees_with(&hashing) {
                return Err(files.refused(i, MergeErrorKind::Hashing.into()));
            }
            if let Err(error) = header.key_form.merges_with(stored.header.key_form) {
                return Err(files.refused(i, error));
            }
            if union.id != kind.id {
                let (ours, theirs) = (union.name, kind.name);
                return Err(files.refused(i, MergeErrorKind::Kind { ours, theirs }.into()));
            }
            let theirs = stored.header.key_field.as_deref();
            header.key_field.take_if(|ours| theirs != Some(ours));
            files.files.push(stored);
        }
        let none = || io::Error::new(io::ErrorKind::InvalidInput, "there are no files to merge");
        let (hashing, kind, header) = first.ok_or_else(none)?;
        let hashing = FileHashing::Known(hashing);
        Ok((files, kind, Header { hashing, ..header }))
    }

    /// The number of keys that each file says it holds.
    pub(crate) fn lens(&self) -> impl Iterator<Item = u64> + '_ {
        self.files.iter().map(|file| file.header.len)
    }

    /// What each file says of itself, as `read` understands it.
    pub(crate) fn shapes<T>(
        &self,
        read: impl Fn(&mut Decoder<'_>) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, MergeFilesError> {
        let files = self.files.iter().zip(&self.paths);
        let shapes = files.map(|(file, path)| {
            let mut decoder = file.decoder();
            let shape = read(&mut decoder);
            let shape = shape.and_then(|shape| decoder.finish().map(|()| shape));
            Ok(shape.map_err(|e| e.at(path))?)
        });
        shapes.collect()
    }

    /// A file does not go with those before it.
    pub(crate) fn refused(&self, file: usize, error: MergeError) -> MergeFilesError {
        let path = self.paths[file].clone();
        MergeFilesErrorKind::Merge { path, error }.into()
    }

    /// All files are read so many times, as far as is known.
    pub(crate) fn expect_passes(&self, passes: u64) {
        let bytes: u64 = self.files.iter().map(Stored::data_len).sum();
        self.watch.expect(passes * bytes);
    }

    /// The data of every file, to be read side by side.
    pub(crate) fn data(&mut self) -> Result<Vec<Data<'_>>, MergeFilesError> {
        self.expect_passes(1);
        let files = self.files.iter_mut().zip(&self.paths);
        let data = files.map(|(file, path)| Ok(file.data(&self.watch).map_err(|e| e.at(path))?));
        data.collect()
    }

    /// The first error of reading the files, for each of which there is a result.
    pub(crate) fn check(
        &self,
        read: impl IntoIterator<Item = Result<(), DecodeError>>,
    ) -> Result<(), MergeFilesError> {
        for (read, path) in read.into_iter().zip(&self.paths) {
            read.map_err(|e| e.at(path))?;
        }
        Ok(())
    }
}

/// Where the union goes.
pub(crate) struct Output<'a> {
    to: &'a Place,
    kind: &'static KindInfo,
    /// All but the number of keys.
    header: Header,
}

impl Output<'_> {
    /// Writes a file of these parts, whose array to come is what `fill` writes. On an error a file
    /// of this name is as it was.
    pub(crate) fn write<E: From<io::Error>>(
        &self,
        keys: u64,
        parts: &Encoder<'_>,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        let header = Header {
            len: keys,
            ..self.header.clone()
        };
        let private = match header.hashing {
            FileHashing::Known(hashing) => hashing.is_in_files(),
            FileHashing::Withheld(_) => false,
        };
        self.to
            .replace(private, |out| parts.write_with(&header, out, fill))
    }

    /// What is told of the file once it is written.
    pub(crate) fn written(
        &self,
        (keys, charged): (u64, u64),
        parts: &Encoder<'_>,
        fpr: f64,
    ) -> MergedFile {
        MergedFile {
            kind: self.kind,
            keys,
            charged,
            capacity: self.header.capacity,
            key_form: self.header.key_form,
            key_field: self.header.key_field.clone(),
            requested_fpr: self.header.fpr,
            fpr,
            bytes: parts.file_len(&self.header),
        }
    }
}
