//! Reading keys: where they lie in the input, and what the bytes of a key are.
//!
//! `docs/KEYS.md` says what the key is in each form, so that a filter can be asked in other ways
//! than by this program.
//!
//! | form | options | module |
//! |---|---|---|
//! | lines, NUL records | `-0` | [`records`] |
//! | a field of CSV or TSV | `-f`, `-d`, `--header` | [`csv`] |
//! | a path of JSON lines | `--json-key` | [`json`] |
//! | a column of Parquet | `--column` | `parquet` |
//! | k-mers of FASTA or FASTQ | `--kmer` | [`kmer`] |
//!
//! Every form gives [`Batch`]es: some records, and the hashes of their keys, which is all that a
//! filter needs. Text passes in pieces of a quarter of a mebibyte and no key is copied, unless
//! its quotes, escapes or digits must be undone. [`source`] opens and decompresses what [`formats`]
//! tells apart, and [`form`] is what a filter remembers of all this.

mod csv;
mod form;
mod formats;
mod json;
mod kmer;
#[cfg(feature = "parquet")]
mod parquet;
mod records;
mod source;

#[cfg(unix)]
use std::fs::{File, Metadata};
#[cfg(unix)]
use std::io;
use std::path::{Path, PathBuf};

use tamis::{Hashing, Key, KeyForm};

use crate::failure::{self, Failure};
use crate::{output, units};
pub(crate) use csv::Field;
use form::OwnField;
pub(crate) use form::{AskedArgs, in_json, in_words};
use records::{Lines, Streamed};
pub(crate) use records::{content, unmarked};
pub(crate) use source::{Source, is_same};

/// How the keys lie in the input: the same options in every verb that reads keys.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Where the keys are")]
#[group(id = "input", multiple = true)]
pub(crate) struct InputArgs {
    /// Records end with NUL, not with a line end, as from `find -print0`
    #[arg(short = '0', long = "null", conflicts_with_all = ["column", "kmer"])]
    null: bool,

    /// The key is this field of a CSV or TSV record: its number from 1, or its name in the header
    #[arg(short, long, value_name = "FIELD", conflicts_with_all = ["json_key", "column", "kmer"])]
    field: Option<csv::Field>,

    /// What stands between fields: one byte, or `tab` [default: ,]
    #[arg(short, long, value_name = "BYTE", requires = "field", value_parser = csv::delimiter)]
    delimiter: Option<u8>,

    /// The first record is a header, as it is where FIELD is a name
    #[arg(long, requires = "field")]
    header: bool,

    /// The key is the value at this path of a JSON object per line: user.id, or /user/id
    #[arg(long, value_name = "PATH", conflicts_with_all = ["column", "kmer"])]
    json_key: Option<json::Path>,

    /// The keys are the values of this column of a Parquet file
    #[arg(long, value_name = "NAME", conflicts_with = "kmer")]
    column: Option<String>,

    /// The keys are the canonical k-mers, of K bases each, of a FASTA or FASTQ file
    #[arg(long, value_name = "K", value_parser = units::within::<u16>(1..=u16::MAX.into()))]
    kmer: Option<u16>,

    /// Keys are written in hexadecimal: take the bytes that they stand for
    #[arg(long, conflicts_with = "kmer")]
    hex: bool,

    /// Keys are whole numbers: take them as the library takes integers
    #[arg(long, conflicts_with_all = ["hex", "kmer"])]
    int: bool,

    /// Capitals are small letters: every key is taken in small letters, as Unicode has them
    #[arg(short, long, conflicts_with_all = ["hex", "int", "kmer"])]
    ignore_case: bool,

    /// Take the input as text, though it begins like an archive, a database or a program
    #[arg(long, conflicts_with = "column")]
    text: bool,

    /// Whether each record has one k-mer, and is no sequence of many.
    #[arg(skip)]
    one_kmer: bool,

    /// The field that the filter remembers.
    #[arg(skip)]
    own: Option<OwnField>,
}

/// What is done with the keys that are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Purpose {
    /// How keys are hashed.
    pub(crate) hashing: Hashing,
    /// A second hash of each key, which with the first tells keys apart.
    pub(crate) second: Option<Hashing>,
    /// Whether the keys themselves are kept, too; not those of sequences.
    pub(crate) whole: bool,
    /// Whether records will be printed, and must be kept whole; else only their keys count.
    pub(crate) print: bool,
    /// Whether keys are kept as they are written, too; not those of sequences.
    pub(crate) written: bool,
    /// Whether a record that cannot be read is an error, or a record without a key.
    pub(crate) strict: bool,
    /// The most bytes that a record may have.
    pub(crate) longest: usize,
}

impl Purpose {
    /// To put keys in: nothing that cannot be read is passed over.
    pub(crate) fn keys(hashing: Hashing) -> Purpose {
        Purpose {
            hashing,
            second: None,
            whole: false,
            print: false,
            written: false,
            strict: true,
            longest: records::LONGEST,
        }
    }

    /// To look records up and print them.
    pub(crate) fn lookup(hashing: Hashing) -> Purpose {
        Purpose {
            hashing,
            second: None,
            whole: false,
            print: true,
            written: false,
            strict: false,
            longest: records::LONGEST,
        }
    }

    /// The same, in so many bytes of memory: a record takes half of them at most, as it is copied
    /// when it turns out longer.
    #[must_use]
    pub(crate) fn within(mut self, memory: u64) -> Purpose {
        let half = usize::try_from(memory / 2).unwrap_or(usize::MAX);
        self.longest = half.clamp(records::READ, records::LONGEST);
        self
    }
}

impl InputArgs {
    /// The options that a plain list of keys shares with this input: how records end, and how
    /// keys are written.
    pub(crate) fn of_list(&self) -> InputArgs {
        InputArgs {
            null: self.null,
            hex: self.hex,
            int: self.int,
            ignore_case: self.ignore_case,
            text: self.text,
            own: self.own.clone(),
            ..InputArgs::default()
        }
    }

    /// Where a second field of each record is.
    pub(crate) fn column_of(&self, field: &Field) -> csv::Column {
        csv::Column::new(field, self.delimiter.unwrap_or(b','), self.end())
    }

    /// The same, with a header where this field is a name in it.
    pub(crate) fn with_header_for(&self, field: &Field) -> InputArgs {
        InputArgs {
            header: self.header || matches!(field, Field::Name(_)),
            ..self.clone()
        }
    }

    /// Whether a record can hold more than one key: it is a sequence.
    pub(crate) fn many_keys(&self) -> bool {
        self.kmer.is_some() && !(self.place().is_some() || self.null || self.one_kmer)
    }

    /// The byte that ends a record.
    pub(crate) fn end(&self) -> u8 {
        if self.null { 0 } else { b'\n' }
    }

    /// Reads the records of a source, many at a time.
    pub(crate) fn read(&self, mut source: Source, purpose: Purpose) -> Result<Reader, Failure> {
        match self.remembered(&mut source)? {
            Some(input) => input.read_so(source, purpose),
            None => self.read_so(source, purpose),
        }
    }

    fn read_so(&self, mut source: Source, purpose: Purpose) -> Result<Reader, Failure> {
        if source.is_filter()? {
            let why = "this is a filter, not a list of keys or records";
            return Err(Failure::usage(source.name, why));
        }
        if self.column.is_none() && !self.text {
            source.refuse_foreign(self.null)?;
        }
        let keys = Keys::new(source.name.clone(), self.form(), purpose);
        let end = self.end();
        let records: Box<dyn Records> = if self.many_keys()
            && let Some(k) = self.kmer
        {
            let shape = kmer::Sequences::new(usize::from(k), purpose.print);
            Box::new(Streamed::new(source.into_read()?, shape, keys))
        } else if let Some(field) = &self.field {
            let delimiter = self.delimiter.unwrap_or(b',');
            let shape = csv::Csv::new(field, delimiter, self.header, end);
            Box::new(Streamed::new(source.into_read()?, shape, keys))
        } else if let Some(path) = &self.json_key {
            let shape = json::JsonLines::new(path.clone(), end);
            Box::new(Streamed::new(source.into_read()?, shape, keys))
        } else if let Some(column) = &self.column {
            parquet_column(source, column, keys)?
        } else {
            Box::new(Streamed::new(source.into_read()?, Lines::new(end), keys))
        };
        Ok(Reader(records))
    }

    /// The hashes of all keys of a source, in their order.
    pub(crate) fn hashes(&self, source: Source, hashing: Hashing) -> Result<Vec<u64>, Failure> {
        let mut hashes = Vec::new();
        let mut reader = self.read(source, Purpose::keys(hashing))?;
        while let Some(batch) = reader.next_batch()? {
            hashes.extend_from_slice(batch.hashes);
        }
        reader.warn();
        Ok(hashes)
    }
}

#[cfg(feature = "parquet")]
fn parquet_column(source: Source, column: &str, keys: Keys) -> Result<Box<dyn Records>, Failure> {
    Ok(Box::new(parquet::Column::open(source, column, keys)?))
}

#[cfg(not(feature = "parquet"))]
fn parquet_column(_: Source, _: &str, _: Keys) -> Result<Box<dyn Records>, Failure> {
    let why = "this tamis was built without Parquet (cargo feature `parquet`)";
    Err(Failure::usage("--column", why))
}

/// Refuses to read standard input twice: the second time nothing is there.
pub(crate) fn read_stdin_once<'a>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
) -> Result<(), Failure> {
    let dashes = paths.into_iter().filter(|path| source::is_dash(path));
    match dashes.count() {
        0 | 1 => Ok(()),
        _ => Err(Failure::usage("standard input", "can be read only once")),
    }
}

/// The files of keys, one by one; standard input where there is none, or `-`.
pub(crate) struct Files<'a>(&'a [PathBuf]);

impl Files<'_> {
    /// Refuses at once what does not exist, or reads standard input twice.
    pub(crate) fn new(paths: &[PathBuf]) -> Result<Files<'_>, Failure> {
        let files = Files(paths);
        read_stdin_once(paths)?;
        for path in paths.iter().filter(|path| !source::is_dash(path)) {
            path.metadata()
                .map_err(|e| Failure::io(path.display(), e))?;
        }
        if let Some(number) = (0..files.number()).find(|&number| files.is_output(number)) {
            let name = files.open(number)?.name;
            let why = "this is also the output; write to another file";
            return Err(Failure::usage(name, why));
        }
        Ok(files)
    }

    /// Whether standard output goes to the end of one of them.
    #[cfg(unix)]
    fn is_output(&self, number: usize) -> bool {
        use std::os::fd::{AsFd, OwnedFd};
        use std::os::unix::fs::MetadataExt;
        let file = |fd: io::Result<OwnedFd>| File::from(fd?).metadata();
        let input = match self.0.get(number).filter(|path| !source::is_dash(path)) {
            Some(path) => path.metadata(),
            None => file(io::stdin().as_fd().try_clone_to_owned()),
        };
        let output = file(io::stdout().as_fd().try_clone_to_owned());
        let same = |input: Metadata, output: Metadata| {
            output.is_file() && (input.dev(), input.ino()) == (output.dev(), output.ino())
        };
        input.is_ok_and(|input| output.is_ok_and(|output| same(input, output)))
    }

    #[cfg(not(unix))]
    fn is_output(&self, _: usize) -> bool {
        false
    }

    /// Whether one of them is this file, however it is called.
    pub(crate) fn contain(&self, file: &Path) -> bool {
        self.0.iter().any(|path| is_same(path, file))
    }

    /// Whether one of them is standard input.
    pub(crate) fn have_stdin(&self) -> bool {
        self.0.is_empty() || self.0.iter().any(|path| source::is_dash(path))
    }

    /// Whether they can be read a second time.
    pub(crate) fn are_regular(&self) -> bool {
        !self.have_stdin() && self.0.iter().all(|path| path.is_file())
    }

    /// How many bytes they have together, if that is known.
    pub(crate) fn len(&self) -> Option<u64> {
        let len = |path: &PathBuf| Some(path.metadata().ok()?.len());
        self.are_regular()
            .then(|| self.0.iter().map(len).sum::<Option<u64>>())?
    }

    /// How many there are, standard input included.
    pub(crate) fn number(&self) -> usize {
        self.0.len().max(1)
    }

    /// Opens one of them, by its number from 0.
    pub(crate) fn open(&self, number: usize) -> Result<Source, Failure> {
        Source::open(self.0.get(number).map(PathBuf::as_path))
    }
}

/// Records, many at a time.
pub(crate) trait Records {
    /// The next records; `None` at the end.
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Failure>;
    /// What has been noticed so far.
    fn keys(&self) -> &Keys;
}

/// Reads the records of one source.
pub(crate) struct Reader(Box<dyn Records>);

impl Reader {
    /// The next records: as many as one read brings, so that a slow pipe is answered at once and
    /// a file in large steps.
    pub(crate) fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Failure> {
        self.0.next_batch()
    }

    /// Tells what the user should know of the input, once it has been read.
    pub(crate) fn warn(&self) {
        for remark in self.0.keys().remarks() {
            failure::say(&format!("warning: {remark}"));
        }
    }
}

/// Some records, and the hashes of their keys.
pub(crate) struct Batch<'a> {
    text: &'a [u8],
    /// Where the first record starts; a header stands before it.
    start: usize,
    records: &'a [Record],
    /// The hashes of all keys, in order.
    pub(crate) hashes: &'a [u64],
    /// The second hashes, where they were asked for.
    pub(crate) seconds: &'a [u64],
    /// The keys as they are written, where those were asked for.
    pub(crate) written: &'a Kept,
    /// The keys themselves, likewise.
    pub(crate) whole: &'a Kept,
}

/// Keys one behind the other, and where each ends.
#[derive(Default)]
pub(crate) struct Kept {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Kept {
    fn push(&mut self, key: &[u8]) {
        self.text.extend_from_slice(key);
        self.ends.push(self.text.len());
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// A key by the number of its hash.
    pub(crate) fn get(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[number]]
    }

    /// All keys, in the order of their hashes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|number| self.get(number))
    }
}

/// Where a record ends: in the text, and in the list of hashes.
#[derive(Clone, Copy)]
struct Record {
    text: u32,
    hashes: u32,
}

impl<'a> Batch<'a> {
    /// The header's text, in the first batch of an input that has one.
    pub(crate) fn header(&self) -> &'a [u8] {
        &self.text[..self.start]
    }

    /// Each record: its text with its end, and where its hashes are.
    pub(crate) fn records(&self) -> impl Iterator<Item = (&'a [u8], std::ops::Range<usize>)> {
        let (text, mut at, mut hash) = (self.text, self.start, 0);
        self.records.iter().map(move |record| {
            let (end, last) = (record.text as usize, record.hashes as usize);
            let item = (&text[at..end], hash..last);
            (at, hash) = (end, last);
            item
        })
    }
}

/// Where the shapes of input put the keys that they find.
pub(crate) struct Keys {
    name: String,
    form: KeyForm,
    purpose: Purpose,
    /// Where the first record of the batch starts.
    start: usize,
    records: Vec<Record>,
    hashes: Vec<u64>,
    seconds: Vec<u64>,
    written: Kept,
    whole: Kept,
    decoded: Vec<u8>,
    /// Records before this batch, with a header.
    before: u64,
    /// Records that lack what should be the key, and what that is.
    missing: (u64, &'static str),
    /// Records that cannot be read, and why the first cannot.
    malformed: (u64, String),
}

impl Keys {
    fn new(name: String, form: KeyForm, purpose: Purpose) -> Keys {
        Keys {
            name,
            form,
            purpose,
            start: 0,
            records: Vec::new(),
            hashes: Vec::new(),
            seconds: Vec::new(),
            written: Kept::default(),
            whole: Kept::default(),
            decoded: Vec::new(),
            before: 0,
            missing: (0, ""),
            malformed: (0, String::new()),
        }
    }

    fn clear(&mut self) {
        self.before += self.records.len() as u64 + u64::from(self.start > 0);
        self.start = 0;
        self.records.clear();
        self.hashes.clear();
        self.seconds.clear();
        self.written.clear();
        self.whole.clear();
    }

    fn batch<'a>(&'a self, text: &'a [u8]) -> Batch<'a> {
        Batch {
            text,
            start: self.start,
            records: &self.records,
            hashes: &self.hashes,
            seconds: &self.seconds,
            written: &self.written,
            whole: &self.whole,
        }
    }

    /// A key of the present record, as it is written. An empty one is none.
    #[inline]
    fn push(&mut self, key: &[u8]) -> Result<(), Failure> {
        match self.form {
            _ if key.is_empty() => return Ok(()),
            KeyForm::Lowercase => self.push_lowercase(key),
            KeyForm::Hex => self.push_hex(key)?,
            KeyForm::Int => self.push_int(key)?,
            KeyForm::Kmer(k) => self.push_kmer(key, k.get())?,
            _ => {
                self.push_key(key);
                self.keep(key);
            }
        }
        // A key that could not be read has no hash.
        if self.purpose.written && self.written.ends.len() < self.hashes.len() {
            self.written.push(key);
        }
        Ok(())
    }

    /// A key of the present record, whatever the way keys are written.
    #[inline]
    fn push_key(&mut self, key: &(impl Key + ?Sized)) {
        self.hashes.push(key.hash_with(&self.purpose.hashing));
        if let Some(second) = &self.purpose.second {
            self.seconds.push(key.hash_with(second));
        }
    }

    /// Keeps a key whole, if that is asked for.
    #[inline]
    fn keep(&mut self, key: &[u8]) {
        if self.purpose.whole {
            self.whole.push(key);
        }
    }

    fn push_lowercase(&mut self, text: &[u8]) {
        let mut decoded = std::mem::take(&mut self.decoded);
        form::lowercase(text, &mut decoded);
        self.push_key(&decoded[..]);
        self.keep(&decoded);
        self.decoded = decoded;
    }

    fn push_kmer(&mut self, text: &[u8], k: u16) -> Result<(), Failure> {
        if kmer::push_one(text, usize::from(k), self) {
            return Ok(());
        }
        self.malformed(|| {
            let shown = String::from_utf8_lossy(&text[..text.len().min(80)]);
            format!("`{shown}` is no k-mer of {k} bases")
        })
    }

    fn push_hex(&mut self, text: &[u8]) -> Result<(), Failure> {
        let mut decoded = std::mem::take(&mut self.decoded);
        decoded.clear();
        let done = from_hex(text, &mut decoded);
        if done {
            self.push_key(&decoded[..]);
            self.keep(&decoded);
        }
        self.decoded = decoded;
        if done {
            return Ok(());
        }
        self.malformed(|| {
            let shown = String::from_utf8_lossy(&text[..text.len().min(80)]);
            format!("`{shown}` is no hexadecimal of whole bytes")
        })
    }

    fn push_int(&mut self, text: &[u8]) -> Result<(), Failure> {
        let number = std::str::from_utf8(text).ok().map(str::trim);
        let unsigned = number.and_then(|n| n.parse::<u64>().ok());
        let signed = || Some(number?.parse::<i64>().ok()?.cast_unsigned());
        if let Some(key) = unsigned.or_else(signed) {
            self.push_key(&key);
            self.keep(&key.to_le_bytes());
        } else {
            return self.malformed(|| {
                let shown = String::from_utf8_lossy(&text[..text.len().min(80)]);
                format!("`{shown}` is no whole number of 64 bits")
            });
        }
        Ok(())
    }

    /// The present record has nothing where the key should be.
    fn missing(&mut self, what: &'static str) {
        self.missing.0 += 1;
        self.missing.1 = what;
    }

    /// The present record cannot be read.
    fn malformed(&mut self, why: impl FnOnce() -> String) -> Result<(), Failure> {
        if self.purpose.strict || self.malformed.0 == 0 {
            let number = self.before + self.records.len() as u64 + 1 + u64::from(self.start > 0);
            let why = format!("record {number}: {}", why());
            if self.purpose.strict {
                return Err(Failure::io(&self.name, why));
            }
            self.malformed.1 = why;
        }
        self.malformed.0 += 1;
        Ok(())
    }

    /// The present record ends at this place of the text.
    #[inline]
    fn end_record(&mut self, end: usize) {
        self.records.push(Record {
            text: end as u32,
            hashes: self.hashes.len() as u32,
        });
    }

    fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let name = &self.name;
        let (missing, what) = self.missing;
        if missing > 0 {
            let records = output::counted(missing, "record");
            remarks.push(format!("{name}: no {what} in {records}"));
        }
        let (malformed, why) = &self.malformed;
        if *malformed > 0 {
            remarks.push(match malformed {
                1 => format!("{name}: 1 record cannot be read, {why}"),
                _ => format!("{name}: {malformed} records cannot be read, the first of them {why}"),
            });
        }
        remarks
    }
}

/// The names that come nearest to one that is not among them, in words.
fn nearest(names: &[String], sought: &str) -> String {
    const SHOWN: usize = 3;
    // A name that is much longer is not near, and takes long to compare.
    let near = names
        .iter()
        .filter(|name| name.len() <= 4 * sought.len() + 16);
    let mut near: Vec<_> = near
        .map(|name| (strsim::levenshtein(name, sought), name.as_str()))
        .collect();
    near.sort_unstable();
    let shown: Vec<_> = near.iter().take(SHOWN).map(|(_, name)| *name).collect();
    match names.len() {
        ..=SHOWN => format!("there are: {}", names.join(", ")),
        all => format!("the nearest of {all} are: {}", shown.join(", ")),
    }
}

/// Appends the bytes that hexadecimal digits stand for; `false` where they stand for none.
pub(crate) fn from_hex(text: &[u8], out: &mut Vec<u8>) -> bool {
    let digit = |c: u8| (c as char).to_digit(16);
    if !text.len().is_multiple_of(2) {
        return false;
    }
    for pair in text.chunks_exact(2) {
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
            return false;
        };
        out.push((high << 4 | low) as u8);
    }
    true
}
