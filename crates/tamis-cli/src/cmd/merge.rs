//! `tamis merge`: several filters become one.

use crate::ExitCode;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tamis::{Hashing, KindInfo, MergeFilesError, MergeFilesErrorKind, MergedFile, Open};

use crate::failure::{self, Failure};
use crate::input::{Source, in_json, read_stdin_once};
use crate::progress::Progress;
use crate::secret::SecretArgs;
use crate::target::{self, Target};
use crate::{health, interrupt, output, units};

/// Unite filters: the result holds every key of each
///
/// The filters must be of one kind that merges (see `tamis kinds`), of one shape, one hashing and
/// one form of keys (--hex, --int, --kmer, -i). Make them with the same --capacity, that of all
/// keys together. A warning tells where the result holds more than it was made for.
///
/// Filters are merged in memory, unless --max-memory does not hold four times the largest of them.
/// Then `quotient` and `quotient_counting` filters, whose files are sorted, are read from disk side
/// by side and written as they are read, in blocks of 64 KiB. The result is the same. That takes
/// some 5 MB, a megabyte for each file at most, and 1/4096 of their length for checksums; where
/// --max-memory is less than those, the files are refused. `quotient_counting` files are read
/// twice. Other kinds are refused where not even two of them fit.
#[derive(clap::Args)]
#[command(
    visible_alias = "join",
    before_help = "Examples:
  tamis merge monday.tamis tuesday.tamis -o week.tamis
  tamis merge shards/*.tamis -o all.tamis --force
  tamis merge 2024.tamis 2025.tamis -o both.tamis --max-memory 64M"
)]
pub(crate) struct Args {
    /// The filter files; - for standard input
    #[arg(required = true, num_args = 2.., value_name = "FILTER")]
    filters: Vec<PathBuf>,

    /// The file to write; - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,

    /// Take no more memory than about this: bytes, or with K, M, G or T
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    max_memory: Option<u64>,

    #[command(flatten)]
    secret: SecretArgs,

    /// Tell what was made also where standard error is no terminal
    #[arg(long)]
    verbose: bool,

    /// Tell what was made as JSON on standard output
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    read_stdin_once(&args.filters)?;
    let target = Target::of(&args.output, args.force, args.json)?;
    let secret = args.secret.known()?;
    let largest = args.filters.iter().map(|path| file_len(path)).max();
    let is_short = |copies: u64| {
        let needed = largest.unwrap_or(0).saturating_mul(copies);
        args.max_memory.is_some_and(|memory| memory < needed)
    };
    let mut union = None;
    if is_short(COPIES) {
        union = on_disk(args, &target, secret.as_ref(), is_short(LEAST_COPIES))?;
    }
    let union = match union {
        Some(union) => union,
        None => in_memory(args, &target, secret.as_ref())?,
    };
    if args.verbose || io::stderr().is_terminal() {
        let summary = target::summary_of(union.kind, union.keys, union.fpr, union.bytes);
        let united = output::counted(args.filters.len() as u64, "filter");
        failure::say(&format!("{}: {united} united; {summary}", target.name()));
    }
    for warning in &union.warnings {
        failure::say(&format!("{}: warning: {warning}", target.name()));
    }
    if args.json {
        output::json(&json!({
            "file": target.name(),
            "kind": union.kind.name,
            "filters": args.filters.len(),
            "keys": union.keys,
            "capacity": union.capacity,
            "key_form": union.key_form,
            "fpr": union.fpr,
            "bytes": union.bytes,
            "warnings": union.warnings,
        }))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Two filters, and their union, which may be as large as both.
const COPIES: u64 = 4;
/// Two filters, one of which becomes their union.
const LEAST_COPIES: u64 = 2;

/// Of each block of 64 KiB a checksum of 8 bytes is held, of the files and of their union.
const CHECKSUMS: u64 = 4096;

/// What is told of the union.
struct Union {
    kind: &'static KindInfo,
    keys: u64,
    capacity: u64,
    /// In JSON.
    key_form: Value,
    fpr: f64,
    bytes: u64,
    warnings: Vec<String>,
}

impl From<MergedFile> for Union {
    fn from(file: MergedFile) -> Union {
        Union {
            kind: file.kind,
            keys: file.keys,
            capacity: file.capacity,
            key_form: in_json(file.key_form, file.key_field.as_deref()),
            fpr: file.fpr,
            bytes: file.bytes,
            warnings: health::warnings_of_file(&file),
        }
    }
}

/// The length of a regular file; 0 of anything else.
fn file_len(path: &Path) -> u64 {
    let meta = path.metadata().ok().filter(std::fs::Metadata::is_file);
    meta.map_or(0, |meta| meta.len())
}

fn in_memory(args: &Args, target: &Target, secret: Option<&Hashing>) -> Result<Union, Failure> {
    let [first, others @ ..] = args.filters.as_slice() else {
        return Err(Failure::usage("merge", "needs two filters at least"));
    };
    let mut union = Source::open(Some(first))?.filter(secret)?;
    for path in others {
        let source = Source::open(Some(path))?;
        let name = source.name.clone();
        let other = source.filter(secret)?;
        union.merge(&other).map_err(|e| Failure::merge(name, &e))?;
    }
    let union = target::encoded(union, &target.name())?;
    target.write(&union)?;
    Ok(Union {
        kind: union.kind(),
        keys: union.len(),
        capacity: union.capacity(),
        key_form: in_json(union.key_form(), union.key_field()),
        fpr: union.fpr(),
        bytes: union.file_len(),
        warnings: health::warnings(&union),
    })
}

/// Merges files that memory does not hold; `None` if their kind is merged in memory only, unless
/// that is `too_short` for it.
fn on_disk(
    args: &Args,
    target: &Target,
    secret: Option<&Hashing>,
    too_short: bool,
) -> Result<Option<Union>, Failure> {
    for path in &args.filters {
        let mut source = Source::open(Some(path))?;
        if source.len.is_none() || source.is_compressed()? {
            let why = "filters that --max-memory does not hold are read from files that are not \
                       compressed";
            return Err(Failure::usage(source.name, why));
        }
    }
    let all: u64 = args.filters.iter().map(|path| file_len(path)).sum();
    let checksums = all / CHECKSUMS;
    if args.max_memory.is_some_and(|memory| memory < checksums) {
        let needed = units::show_bytes(checksums as f64);
        let why = format!("the checksums of these files take {needed}, and must be held");
        return Err(Failure::usage("--max-memory", why));
    }
    let open = secret.map_or(Open::new(), |secret| Open::new().hashing(*secret));
    let progress = Progress::over(Some(0));
    let merged = target.written_by(|to| {
        open.merge_files_to(&args.filters, to, |done| {
            progress.at(done);
            interrupt::came()
        })
    })?;
    progress.clear();
    match merged {
        Ok(file) => Ok(Some(file.into())),
        Err(e) if matches!(e.kind(), MergeFilesErrorKind::Unsupported(_)) && !too_short => Ok(None),
        Err(e) => Err(refusal(&e, target)),
    }
}

fn refusal(error: &MergeFilesError, target: &Target) -> Failure {
    match error.kind() {
        MergeFilesErrorKind::Read(e) => match e.path() {
            Some(path) => Failure::decode(path.display(), e),
            None => Failure::decode(target.name(), e),
        },
        MergeFilesErrorKind::Merge { path, error } => Failure::usage(path.display(), error),
        MergeFilesErrorKind::Write(e) => Failure::io(target.name(), e),
        _ => Failure::usage("--max-memory", error),
    }
}
