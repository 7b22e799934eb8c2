//! `tamis build`: a list of keys becomes a filter file.

use crate::ExitCode;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use serde_json::json;
use tamis::Hashing;

use crate::choice::{self, KindArg};
use crate::failure::{self, Failure};
use crate::gather::Gather;
use crate::input::{Field, Files, InputArgs, in_json};
use crate::progress::Progress;
use crate::secret::Secret;
use crate::target::{self, Target};
use crate::{output, pairs, units};

/// Make a filter of a list of keys
///
/// Reads one key per line: a line without its `\n`, and without a `\r` before that. Keys are
/// bytes, not necessarily text. Other forms of input are read by -0, -f, --json-key, --column and
/// --kmer. Files compressed by gzip, zstd, xz, bzip2 or lz4 are read as they are. Empty keys are
/// skipped, and a key that is repeated counts once; a `quotient_counting` counts every copy, and
/// --capacity is then the number of distinct keys. The same set of keys always makes the same file.
///
/// The file remembers how its keys were written (--hex, --int, --kmer, -i), and the field that
/// they came from (-f, --json-key, --column): `check`, `add` and the others read theirs likewise.
///
/// Before the file takes its name it is opened again from its bytes, and every key is looked up
/// in it. A file of that name is replaced wholly or not at all, and who would change it meanwhile
/// waits.
///
/// Without --kind the filter is a `binary_fuse8`, 16 or 32 where that takes at most 1.4 times the
/// space that any filter needs, such as at 1 %, and else a `ribbon_bumped`, which is smaller and
/// half as fast. If there is to be room for more keys than are given (--capacity), it is a
/// `split_block`, a `cuckoo` below 1 in 4096, and a `bloom` above 1 in 8. --verbose tells which,
/// and why; `tamis advise` puts the same first, and ranks the others.
///
/// Eight bytes per key are held until all are known, and about as much again while the filter is
/// built. Where that is more than --max-memory, the hashes wait on disk, beside the output or in
/// --temp-dir, eight bytes per key; the filter is then a `binary_fuse8`, 16 or 32, whichever
/// reaches the rate, unless --kind names one that inserts, or --capacity wants one. Building from
/// disk takes 16 MiB and the filter twice, and more shards where the memory is short.
///
/// Kinds that insert take keys as they come where these are more than --max-memory holds; their
/// number is counted in a first pass over the files, or is --capacity, or the filter is one that
/// grows. Then of a great many keys only a sample of a million is looked up at the end, and keys of
/// kinds that remove or count are inserted as often as they come: to leave out one that the filter
/// only seems to hold would lose it when the other is removed. Where copies matter, give each key
/// once (`sort -u`), or take a `quotient_counting`, which is the same either way.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis build blocklist.txt -o blocklist.tamis
  tamis build logs/*.csv.gz -f user_id -o users.tamis --fpr 0.0001
  zcat events.jsonl.gz | tamis build --json-key user.id -o seen.tamis
  tamis build pwned.txt -d : -f 1 --hex -o pwned.tamis
  tamis build genome.fa.gz --kmer 31 -o genome.tamis
  tamis build prices.csv -f item --value-field cents -o prices.tamis
  tamis build users.txt -o users.tamis --kind cuckoo:bits=12 --capacity 1000000")]
pub(crate) struct Args {
    /// The files of keys; - or nothing for standard input
    #[arg(value_name = "KEYS")]
    keys: Vec<PathBuf>,

    /// The file to write; - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// The kind of filter, with its parameters if any: kind:param=value,… (see `tamis kinds`)
    /// [default: by the rate]
    #[arg(short, long, default_value = "", hide_default_value = true)]
    kind: KindArg,

    /// The false-positive rate at capacity [default: 0.01]
    #[arg(short = 'e', long, value_name = "RATE", value_parser = units::fpr, allow_negative_numbers = true)]
    fpr: Option<f64>,

    /// Make room for this many keys, if they are more than are given
    #[arg(long, value_name = "N", value_parser = units::keys)]
    capacity: Option<u64>,

    /// Make a map: each key's value is this field of its CSV or TSV record, a whole number from 0
    /// to 2^64 - 1
    ///
    /// The kind is then a `bloomier` unless --kind names another map. All pairs are held in
    /// memory, 16 bytes each. A key that comes again must have the same value. `tamis get` reads
    /// the values.
    #[arg(
        long,
        value_name = "FIELD",
        requires = "field",
        conflicts_with = "max_memory"
    )]
    value_field: Option<Field>,

    /// How many threads read files, sort, build and verify [default: as many as there are]
    #[arg(long, value_name = "N", value_parser = units::within::<u16>(1..=u16::MAX.into()))]
    threads: Option<u16>,

    /// Take no more memory than about this: bytes, or with K, M, G or T
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    max_memory: Option<u64>,

    /// Where hashes wait that --max-memory has no room for [default: beside the output]
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,

    /// The seed of the key hash
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = units::within::<u64>(0..=u64::MAX))]
    seed: u64,

    /// Hash keys under a secret, for keys that strangers choose: `file:PATH`, `env:NAME` or
    /// `random`
    ///
    /// A secret is 32 hexadecimal digits, or a file of 16 bytes. From a file or the environment
    /// it stays out of the filter, and every use of the filter needs --secret again. A random one
    /// is drawn from the system and kept in the filter's file, which must then be kept like a
    /// secret itself.
    #[arg(long, value_name = "SOURCE", conflicts_with = "seed")]
    secret: Option<Secret>,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,

    /// Tell what was built also where standard error is no terminal
    #[arg(long)]
    verbose: bool,

    /// Tell what was built as JSON on standard output
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let config = args.kind.with(args.fpr, args.capacity)?;
    choice::check(&config).map_err(|e| Failure::build("--kind", &e))?;
    let target = Target::of(&args.output, args.force, args.json)?;
    let files = Files::new(&args.keys)?;
    if files.contain(&args.output) {
        let why = "the keys are read from this file; choose another name";
        return Err(Failure::usage(target.name(), why));
    }
    if let Some(directory) = &args.temp_dir
        && let Err(e) = std::fs::read_dir(directory)
    {
        let name = format!("--temp-dir {}", directory.display());
        return Err(Failure::io(name, e));
    }
    let hashing = match &args.secret {
        Some(secret) => secret.hashing()?,
        None => Hashing::fast(args.seed),
    };

    let threads = choice::threads(args.threads.map(usize::from));
    let mut progress = Progress::over(files.len());
    let mut config = config.threads(threads);
    let (filter, why) = if let Some(value) = &args.value_field {
        let (kind, why) = pairs::DEFAULT;
        let why = config.kind.is_none().then_some(why);
        if why.is_some() {
            config = config.kind(kind);
        }
        let (input, name) = (&args.input, target.name());
        let map = pairs::map(&files, input, value, &config, hashing, &progress, &name)?;
        (map, why)
    } else {
        let gather = Gather {
            files,
            input: &args.input,
            config,
            hashing,
            max_memory: args.max_memory,
            directory: args.temp_dir.clone().unwrap_or_else(|| target.directory()),
            target: target.name(),
        };
        let gathered = gather.run(&mut progress)?;
        let why = gathered.why;
        progress.stage("verifying");
        (gathered.verified(threads, &target.name())?, why)
    };
    progress.stage("writing");
    target.write(&filter)?;
    progress.clear();

    if args.json {
        output::json(&json!({
            "file": target.name(),
            "kind": filter.kind().name,
            "why": why,
            "keys": filter.len(),
            "capacity": filter.capacity(),
            "requested_fpr": filter.requested_fpr(),
            "fpr": filter.fpr(),
            "bytes": filter.file_len(),
            "bits_per_key": output::bits_per_key(filter.file_len(), filter.len()),
            "hashing": { "function": hashing.function(), "seed": hashing.seed() },
            "key_form": in_json(filter.key_form(), filter.key_field()),
        }))?;
    }
    let warn = |why: &str| failure::say(&format!("{}: warning: {why}", target.name()));
    if filter.is_empty() {
        warn("there are no keys, so it holds none");
    }
    if args.verbose || io::stderr().is_terminal() {
        let summary = target::summary(&filter, filter.file_len());
        failure::say(&format!("{}: {summary}", target.name()));
        if let Some(why) = why {
            let kind = filter.kind().name;
            failure::say(&format!(
                "{}: `{kind}` was chosen: {why} (`tamis advise` tells others)",
                target.name()
            ));
        }
    }
    Ok(ExitCode::SUCCESS)
}
