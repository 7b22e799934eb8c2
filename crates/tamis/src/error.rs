//! What can go wrong, as sentences a user can act on.
//!
//! One per moment: [`Full`] on an insertion, [`BuildError`] when a filter is made, [`DecodeError`]
//! when a file is opened, [`MergeError`] when two filters are joined, [`MergeFilesError`] when
//! files are. Each is opaque, prints as a sentence, and answers `kind()` with the case and the
//! value at fault for a program that wants to branch on it.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::form::KeyForm;
use crate::format::ParamValue;
use crate::kinds::{KINDS, KindInfo, Tier};

/// An insertion was refused; the filter is exactly as it was before the refused key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    kind: FullKind,
    keys: u64,
    accepted: usize,
}

/// Why a filter takes no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FullKind {
    /// No place is left for this key: the table, or the part of it that the key maps to, is full.
    Capacity,
    /// The same key, or keys that the filter cannot tell apart, are held this many times already.
    Duplicates(u64),
    /// The filter is a list of parts, and has as many as it may; merging stops at fewer than
    /// growth does.
    Slices(u64),
    /// The newest generation of a window of time has its share, this many insertions; only time
    /// begins the next.
    Generation(u64),
    /// A window of time holds as many insertions as it may, this many; time makes room.
    Window(u64),
    /// The filter grows, and the system gave no memory for it: these many bytes.
    Memory(u64),
    /// Filters of this kind take no insertions at all.
    Unsupported(Unsupported),
}

impl Full {
    pub(crate) fn new(kind: FullKind, keys: u64) -> Full {
        Full {
            kind,
            keys,
            accepted: 0,
        }
    }

    pub(crate) fn after(self, accepted: usize) -> Full {
        Full { accepted, ..self }
    }

    /// Which limit was met.
    pub fn kind(&self) -> FullKind {
        self.kind
    }

    /// How many keys the filter holds.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// How many hashes of the batch were inserted before the one that was refused; 0 for a single
    /// insertion.
    pub fn accepted(&self) -> usize {
        self.accepted
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FullKind::Capacity => {
                write!(
                    f,
                    "the places for this key are full, with {} in the filter; build a larger one (a higher capacity)",
                    Keys(self.keys)
                )
            }
            FullKind::Duplicates(u64::MAX) => f.write_str(
                "the filter would hold 2^64 copies or more, all keys together; take some out, or begin another filter",
            ),
            FullKind::Duplicates(limit) => write!(
                f,
                "this key, and those that the filter cannot tell from it, fill every place that it may take, with {limit} copies; insert each key once, or take a kind that counts more copies, such as `quotient_counting`"
            ),
            FullKind::Slices(limit) => write!(
                f,
                "the filter holds {} and would need more than {limit} slices; build one from the keys of all, for a higher capacity",
                Keys(self.keys)
            ),
            FullKind::Generation(share) => write!(
                f,
                "this part of the window has its share of {}; insert after the clock's next `advance`, `make_room` by forgetting the oldest part early, or build for a higher capacity",
                Keys(share)
            ),
            FullKind::Window(most) => write!(
                f,
                "the window is full with {}; insert after the clock's next `advance`, `make_room` by forgetting the oldest early, or build for a higher capacity",
                Keys(most)
            ),
            FullKind::Memory(bytes) => write!(
                f,
                "the filter cannot grow beyond {}: the system has no {bytes} bytes; free some memory and insert again",
                Keys(self.keys)
            ),
            FullKind::Unsupported(cannot) => cannot.fmt(f),
        }
    }
}

/// A number of keys in words.
pub(crate) struct Keys(pub(crate) u64);

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0 == 1 { "" } else { "s" };
        write!(f, "{} key{plural}", self.0)
    }
}

impl Error for Full {}

/// A filter's kind cannot do what was asked of an [`AnyFilter`](crate::AnyFilter).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    kind: &'static str,
    capability: &'static str,
}

impl Unsupported {
    pub(crate) fn new(kind: &KindInfo, capability: &'static str) -> Unsupported {
        let kind = kind.name;
        Unsupported { kind, capability }
    }

    /// The name of the kind.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// What it cannot, by the name of the field of [`Capabilities`](crate::Capabilities).
    pub fn capability(&self) -> &'static str {
        self.capability
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let can = |info: &&KindInfo| info.can.named().contains(&(self.capability, true));
        let core = KINDS.iter().filter(|info| info.tier == Tier::Core);
        let names: Vec<_> = core
            .filter(can)
            .map(|info| format!("`{}`", info.name))
            .collect();
        let (kind, names) = (self.kind, names.join(", "));
        let capability = match self.capability {
            "window" => "forget by age",
            verb => verb,
        };
        write!(
            f,
            "a `{kind}` cannot {capability}; build it anew as a kind that can: {names}"
        )
    }
}

impl Error for Unsupported {}

/// Memory that the system would not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory {
    /// What was asked for; `u64::MAX` stands for "more than an address can reach".
    pub(crate) bytes: u64,
}

/// A filter could not be made from this configuration and these keys.
#[derive(Clone, Debug, PartialEq)]
pub struct BuildError(Box<BuildErrorKind>);

/// The case behind a [`BuildError`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildErrorKind {
    /// The false-positive rate is not a number strictly between 0 and 1.
    Fpr(f64),
    /// A 64-bit hash cannot promise this rate for so many keys; `least` is the lowest that it
    /// can.
    HashFloor {
        /// The rate that was asked for.
        fpr: f64,
        /// The lowest rate that can be promised: 16·n/2⁶⁴.
        least: f64,
    },
    /// This kind cannot reach this rate; `least`, asked for as it is printed, it can.
    Unreachable {
        /// The kind's name.
        kind: &'static str,
        /// The rate that was asked for.
        fpr: f64,
        /// The lowest rate that the kind offers here, or the lowest of three digits.
        least: f64,
    },
    /// A parameter has a value that the kind does not take.
    Parameter {
        /// The parameter's name.
        name: String,
        /// The value as given.
        value: String,
        /// What is accepted.
        expected: String,
    },
    /// The kind has no parameter of this name.
    UnknownParameter {
        /// The kind's name.
        kind: &'static str,
        /// The parameter as given.
        name: String,
        /// The names that the kind knows, in one line.
        known: String,
    },
    /// No kind of this name is registered; `similar` is the nearest name, if one is near.
    UnknownKind {
        /// The name as given; empty where the configuration names no kind.
        name: String,
        /// The registered name that a few letters make of it.
        similar: Option<&'static str>,
    },
    /// The kind's family is not part of this build.
    NotCompiled {
        /// The kind.
        kind: &'static str,
    },
    /// The configuration names one kind and is used to build another.
    OtherKind {
        /// The kind that the configuration names.
        named: String,
        /// The kind that was to be built.
        built: &'static str,
    },
    /// An empty filter of a kind that does not grow was to be made for no keys.
    NoCapacity {
        /// The kind's name.
        kind: &'static str,
    },
    /// The configuration's text cannot be read.
    Syntax(String),
    /// The filter would be larger than this kind's index can address.
    TooLarge {
        /// What is counted: bits, blocks, slots.
        unit: &'static str,
        /// How many would be needed.
        needed: f64,
        /// The most there can be.
        most: u64,
    },
    /// The system gave no memory for the filter.
    Memory {
        /// Bytes asked for; `u64::MAX` stands for "more than an address can reach".
        bytes: u64,
    },
    /// The keys do not fit in the filter that was sized for them.
    Full(Full),
    /// No attempt at the construction succeeded.
    Attempts {
        /// How many keys were given.
        keys: u64,
        /// How many attempts were made.
        attempts: u32,
    },
    /// Filters of this kind cannot do this.
    Unsupported(Unsupported),
    /// A map was given two values for one key.
    Conflict {
        /// The position of the pair with the first value, counted from 0 in the order given.
        first: usize,
        /// The position of the pair with another.
        second: usize,
    },
    /// Hashes that wait on disk could not be written there, or read back.
    Disk {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        kind: io::ErrorKind,
        /// The same in words.
        message: String,
    },
}

impl BuildError {
    /// The case, with the value at fault.
    pub fn kind(&self) -> &BuildErrorKind {
        &self.0
    }

    /// A parameter's value is not one that the kind takes.
    pub(crate) fn parameter(
        name: &str,
        value: impl fmt::Display,
        expected: impl Into<String>,
    ) -> BuildError {
        BuildErrorKind::Parameter {
            name: name.into(),
            value: value.to_string(),
            expected: expected.into(),
        }
        .into()
    }
}

impl From<BuildErrorKind> for BuildError {
    fn from(kind: BuildErrorKind) -> BuildError {
        BuildError(Box::new(kind))
    }
}

impl From<NoMemory> for BuildError {
    fn from(e: NoMemory) -> BuildError {
        BuildErrorKind::Memory { bytes: e.bytes }.into()
    }
}

impl From<Full> for BuildError {
    fn from(e: Full) -> BuildError {
        match e.kind() {
            // Whoever builds has one answer to a lack of memory, whichever step met it.
            FullKind::Memory(bytes) => BuildErrorKind::Memory { bytes }.into(),
            _ => BuildErrorKind::Full(e).into(),
        }
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            BuildErrorKind::Fpr(fpr) => {
                write!(f, "a false-positive rate of {fpr} makes no filter; give one above 0 and below 1, such as 0.01")
            }
            BuildErrorKind::HashFloor { least, .. } if *least >= 1.0 => f.write_str(
                "so many keys cannot be told apart by a 64-bit hash at any rate; lower the capacity",
            ),
            BuildErrorKind::HashFloor { fpr, least } => write!(
                f,
                "a false-positive rate of {fpr:e} is below what a 64-bit hash can promise for so many keys; the lowest is {least:e}"
            ),
            BuildErrorKind::Unreachable { kind, fpr, least } => write!(
                f,
                "`{kind}` cannot reach a false-positive rate of {fpr}; its lowest is {least:e}: ask for that or choose another kind"
            ),
            BuildErrorKind::Parameter { name, value, expected } => {
                write!(f, "parameter {name}={value} is not possible; expected {expected}")
            }
            BuildErrorKind::UnknownParameter { kind, name, known } => {
                write!(f, "`{kind}` has no parameter `{name}`; it takes: {known}")
            }
            BuildErrorKind::UnknownKind { name, .. } if name.is_empty() => {
                write!(f, "the configuration names no kind of filter; write one before a colon, such as `bloom:fpr=0.01`")
            }
            BuildErrorKind::UnknownKind { name, similar: Some(similar) } => {
                write!(f, "no kind of filter is called `{name}`; did you mean `{similar}`?")
            }
            BuildErrorKind::UnknownKind { name, similar: None } => {
                write!(f, "no kind of filter is called `{name}`; `KINDS` and `tamis kinds --all` list those that are")
            }
            BuildErrorKind::NotCompiled { kind } => {
                write!(f, "this build has no `{kind}`; enable the feature of its family, or `registry` for all")
            }
            BuildErrorKind::OtherKind { named, built } => {
                write!(f, "the configuration is for `{named}`, but a `{built}` is being built")
            }
            BuildErrorKind::NoCapacity { kind } => write!(
                f,
                "an empty `{kind}` does not grow with its keys; say for how many keys: `Config::new(1_000_000)`, or `capacity=1000000`"
            ),
            BuildErrorKind::Syntax(why) => {
                write!(f, "{why}; the form is `kind:param=value,param=value`, such as `cuckoo:fpr=0.001,bits=12`")
            }
            BuildErrorKind::TooLarge { unit, needed, most } => {
                write!(f, "the filter needs {needed:.0} {unit}, and {most} is the most it can address; split the keys over several filters")
            }
            BuildErrorKind::Memory { bytes: u64::MAX } => {
                f.write_str("the filter needs more memory than an address can reach; lower the capacity or raise the rate")
            }
            BuildErrorKind::Memory { bytes } => {
                write!(f, "the system has no {bytes} bytes for the filter; lower the capacity or raise the rate")
            }
            BuildErrorKind::Full(full) => write!(f, "not all keys fit: {full}"),
            BuildErrorKind::Attempts { keys, attempts } => write!(
                f,
                "{attempts} attempts at building from {} failed; if the hashes are your own, check that they are spread over 64 bits",
                Keys(*keys)
            ),
            BuildErrorKind::Unsupported(cannot) => cannot.fmt(f),
            BuildErrorKind::Conflict { first, second } => write!(
                f,
                "the pairs at positions {first} and {second} give one key two values; keep one of them (if the keys differ, their hashes do not: hash with another seed)"
            ),
            BuildErrorKind::Disk {
                path,
                kind: io::ErrorKind::UnexpectedEof,
                ..
            } => write!(
                f,
                "the hashes that were kept in {} are no longer all there; leave the files alone until the filter is built",
                path.display()
            ),
            BuildErrorKind::Disk {
                path,
                kind: _,
                message,
            } => write!(
                f,
                "the hashes cannot be kept in {}: {message}; give a directory on a disk that has 8 bytes a key free, to a process that may open 256 files more",
                path.display()
            ),
        }
    }
}

impl Error for BuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &*self.0 {
            BuildErrorKind::Full(full) => Some(full),
            _ => None,
        }
    }
}

/// Bytes that are no filter, or a damaged or foreign one. Never an answer: nothing was opened.
#[derive(Debug)]
pub struct DecodeError {
    kind: Box<DecodeErrorKind>,
    path: Option<PathBuf>,
}

/// The case behind a [`DecodeError`].
#[derive(Debug)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The file could not be read.
    Io(io::Error),
    /// The bytes do not start as a tamis file does.
    NotAFilter,
    /// The file is that of a filter that threads share, a [`Shared`](crate::Shared).
    Shared,
    /// There are fewer or more bytes than the file says of itself.
    Length {
        /// The length that the header states, or the least that a file has.
        expected: u64,
        /// The bytes that are there.
        got: u64,
    },
    /// A checksum does not agree with the bytes that it covers.
    Checksum {
        /// The part that is damaged: "header", "data", "checksum table".
        part: &'static str,
        /// Where that part starts in the file.
        offset: u64,
    },
    /// The file was written by a newer major version of the format.
    Newer {
        /// The file's major version.
        major: u16,
    },
    /// The file uses features that this version does not know.
    Features(u32),
    /// No kind with this id is registered.
    UnknownKind(u16),
    /// The kind's family is not part of this build.
    NotCompiled {
        /// The kind.
        kind: &'static str,
    },
    /// The file holds another kind than the one asked for.
    OtherKind {
        /// The kind asked for.
        expected: &'static str,
        /// The kind in the file.
        got: &'static str,
    },
    /// The kind's own layout is of a version that this library does not read.
    KindVersion {
        /// The kind's name.
        kind: &'static str,
        /// The version in the file.
        version: u16,
    },
    /// The hashing's id is not known.
    UnknownHashing(u16),
    /// The number of the form that the keys are written in is not known.
    UnknownKeyForm(u16),
    /// The secret that the keys were hashed under is not in the file: open it with the secret.
    SecretNeeded,
    /// The secret given is not the one that the keys were hashed under.
    WrongSecret,
    /// A field has a value that no writer produces.
    Invalid {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// What it must be.
        expected: String,
    },
    /// The system gave no memory for the filter.
    Memory {
        /// Bytes asked for.
        bytes: u64,
    },
}

impl DecodeErrorKind {
    /// What bytes are that do not start a filter.
    pub(crate) fn no_filter(start: &[u8]) -> DecodeErrorKind {
        match start.starts_with(&crate::format::SHARED) {
            true => DecodeErrorKind::Shared,
            false => DecodeErrorKind::NotAFilter,
        }
    }
}

impl DecodeError {
    /// The case, with the value at fault. It prints as the error does, without the path.
    pub fn kind(&self) -> &DecodeErrorKind {
        &self.kind
    }

    /// The file, where the error is of one that has a name.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The same error, of this file.
    pub(crate) fn at(mut self, path: &Path) -> DecodeError {
        self.path = Some(path.to_path_buf());
        self
    }

    /// A field has a value that no writer produces.
    pub(crate) fn invalid(
        field: &'static str,
        value: u64,
        expected: impl Into<String>,
    ) -> DecodeError {
        DecodeErrorKind::Invalid {
            field,
            value,
            expected: expected.into(),
        }
        .into()
    }
}

impl From<DecodeErrorKind> for DecodeError {
    fn from(kind: DecodeErrorKind) -> DecodeError {
        DecodeError {
            kind: Box::new(kind),
            path: None,
        }
    }
}

impl From<NoMemory> for DecodeError {
    fn from(e: NoMemory) -> DecodeError {
        DecodeErrorKind::Memory { bytes: e.bytes }.into()
    }
}

impl From<io::Error> for DecodeError {
    fn from(e: io::Error) -> DecodeError {
        DecodeErrorKind::Io(e).into()
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        self.kind.fmt(f)
    }
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeErrorKind::Io(e) => write!(f, "cannot read the filter: {e}"),
            DecodeErrorKind::NotAFilter => f.write_str("not a tamis filter (the first eight bytes are not its signature)"),
            DecodeErrorKind::Shared => f.write_str("the shards of a filter that threads share, no filter of its own; the library opens it, by `Shared::load`"),
            DecodeErrorKind::Length { expected, got } if got < expected => {
                write!(f, "the file is cut short: {expected} bytes expected, {got} are there; fetch it again")
            }
            DecodeErrorKind::Length { expected, got } => {
                write!(f, "bytes follow the end of the filter: {expected} expected, {got} are there")
            }
            DecodeErrorKind::Checksum { part, offset } => {
                write!(f, "the file is damaged: the checksum of the {part} at byte {offset} does not agree; fetch or build it again")
            }
            DecodeErrorKind::Newer { major } => {
                write!(f, "the file is of format {major}, newer than this version reads (1); use a newer tamis")
            }
            DecodeErrorKind::Features(flags) => {
                write!(f, "the file uses features that this version does not know (flags {flags:#x}); use a newer tamis")
            }
            DecodeErrorKind::UnknownKind(id) => {
                write!(f, "the file holds a filter of kind number {id}, which this version does not know; use a newer tamis")
            }
            DecodeErrorKind::NotCompiled { kind } => {
                write!(f, "the file holds a `{kind}`, which this build does not have; enable the feature of its family, or `registry` for all")
            }
            DecodeErrorKind::OtherKind { expected, got } => {
                write!(f, "the file holds a `{got}`, where a `{expected}` was expected; open it as its own type, or as `AnyFilter`")
            }
            DecodeErrorKind::KindVersion { kind, version } => {
                write!(f, "the file's `{kind}` has layout version {version}, which this version does not read; use a newer tamis")
            }
            DecodeErrorKind::UnknownHashing(id) => {
                write!(f, "the keys were hashed by function number {id}, which this version does not know; use a newer tamis")
            }
            DecodeErrorKind::UnknownKeyForm(form) => {
                write!(f, "the keys are written in form number {form}, which this version does not know; use a newer tamis")
            }
            DecodeErrorKind::SecretNeeded => {
                f.write_str("the keys were hashed under a secret that is not in the file; open it with the secret")
            }
            DecodeErrorKind::WrongSecret => f.write_str("the secret given is not the one that the keys were hashed under"),
            DecodeErrorKind::Invalid { field, value, expected } => {
                write!(f, "the file is damaged or forged: {field} is {value}, expected {expected}")
            }
            DecodeErrorKind::Memory { bytes } => write!(f, "the system has no {bytes} bytes for the filter"),
        }
    }
}

impl Error for DecodeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &*self.kind {
            DecodeErrorKind::Io(e) => Some(e),
            _ => None,
        }
    }
}

/// Two filters could not be joined; both are as they were.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeError(Box<MergeErrorKind>);

/// The case behind a [`MergeError`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MergeErrorKind {
    /// The filters are of different kinds.
    Kind {
        /// The kind that was to take the other in.
        ours: &'static str,
        /// The other's kind.
        theirs: &'static str,
    },
    /// Filters of this kind cannot be merged without their keys.
    Unsupported(&'static str),
    /// A parameter differs.
    Parameter {
        /// Its name.
        name: &'static str,
        /// Its value here.
        ours: ParamValue,
        /// Its value in the other.
        theirs: ParamValue,
    },
    /// The keys were hashed differently: another function, seed or secret.
    Hashing,
    /// The keys are written differently: see [`KeyForm`].
    KeyForm {
        /// How those here are written.
        ours: KeyForm,
        /// How the other's are.
        theirs: KeyForm,
    },
    /// The union does not fit.
    Full(Full),
}

impl MergeError {
    /// The case, with the value at fault.
    pub fn kind(&self) -> &MergeErrorKind {
        &self.0
    }

    /// Refuses unless a parameter is the same in both filters.
    pub(crate) fn unless_equal(
        name: &'static str,
        ours: impl Into<ParamValue>,
        theirs: impl Into<ParamValue>,
    ) -> Result<(), MergeError> {
        let (ours, theirs) = (ours.into(), theirs.into());
        if ours == theirs {
            Ok(())
        } else {
            Err(MergeErrorKind::Parameter { name, ours, theirs }.into())
        }
    }
}

impl From<MergeErrorKind> for MergeError {
    fn from(kind: MergeErrorKind) -> MergeError {
        MergeError(Box::new(kind))
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            MergeErrorKind::Kind { ours, theirs } => write!(f, "a `{theirs}` cannot be merged into a `{ours}`"),
            MergeErrorKind::Unsupported(kind) => {
                write!(f, "`{kind}` filters cannot be merged; build one from the keys of both")
            }
            MergeErrorKind::Parameter { name, ours, theirs } => write!(
                f,
                "the filters differ in {name} ({ours} here, {theirs} there); only filters built with the same capacity, rate and parameters merge"
            ),
            MergeErrorKind::Hashing => {
                f.write_str("the filters hash their keys differently (function, seed or secret); only filters that hash alike merge")
            }
            MergeErrorKind::KeyForm { ours, theirs } => {
                write!(f, "the filters' keys are written differently: {ours} here, {theirs} there; only filters of one form merge")
            }
            MergeErrorKind::Full(full) => write!(f, "the union does not fit: {full}"),
        }
    }
}

impl Error for MergeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &*self.0 {
            MergeErrorKind::Full(full) => Some(full),
            _ => None,
        }
    }
}

/// Files could not be merged; what was to be written is as it was.
#[derive(Debug)]
pub struct MergeFilesError(Box<MergeFilesErrorKind>);

/// The case behind a [`MergeFilesError`].
#[derive(Debug)]
#[non_exhaustive]
pub enum MergeFilesErrorKind {
    /// A file could not be read; the error names it.
    Read(DecodeError),
    /// A file cannot be merged with those before it.
    Merge {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: MergeError,
    },
    /// Filters of this kind merge in memory only.
    Unsupported(&'static str),
    /// The result could not be written.
    Write(io::Error),
}

impl MergeFilesError {
    /// The case, with the error at its ground.
    pub fn kind(&self) -> &MergeFilesErrorKind {
        &self.0
    }
}

impl From<MergeFilesErrorKind> for MergeFilesError {
    fn from(kind: MergeFilesErrorKind) -> MergeFilesError {
        MergeFilesError(Box::new(kind))
    }
}

impl From<DecodeError> for MergeFilesError {
    fn from(e: DecodeError) -> MergeFilesError {
        MergeFilesErrorKind::Read(e).into()
    }
}

impl From<io::Error> for MergeFilesError {
    fn from(e: io::Error) -> MergeFilesError {
        MergeFilesErrorKind::Write(e).into()
    }
}

impl fmt::Display for MergeFilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            MergeFilesErrorKind::Read(e) => e.fmt(f),
            MergeFilesErrorKind::Merge { path, error } => write!(f, "{}: {error}", path.display()),
            MergeFilesErrorKind::Unsupported(kind) => {
                write!(
                    f,
                    "`{kind}` filters can be merged in memory only; only those whose files are sorted, such as `quotient`, merge on disk"
                )
            }
            MergeFilesErrorKind::Write(e) => write!(f, "the merged file could not be written: {e}"),
        }
    }
}

impl Error for MergeFilesError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &*self.0 {
            MergeFilesErrorKind::Read(e) => Some(e),
            MergeFilesErrorKind::Merge { error, .. } => Some(error),
            MergeFilesErrorKind::Unsupported(_) => None,
            MergeFilesErrorKind::Write(e) => Some(e),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_that_lacks_memory_says_so_whichever_step_met_it() {
        let of = |kind| BuildError::from(Full::new(kind, 0));
        let short = of(FullKind::Memory(9));
        assert!(matches!(short.kind(), BuildErrorKind::Memory { bytes: 9 }));
        let full = of(FullKind::Capacity);
        assert!(matches!(full.kind(), BuildErrorKind::Full(_)));
    }
}
