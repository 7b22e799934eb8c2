//! `tamis check`: the records whose key may be in the filter.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use tamis::{AnyFilter, Config, Hashed, Hashing, Keyed};

use crate::failure::{self, Failure};
use crate::input::{Files, InputArgs, Purpose, Reader, Source};
use crate::secret::{self, SecretArgs};
use crate::{choice, clock, output, units};

/// Print the records whose key may be in the filter
///
/// A record is a line, or as -0, -f, --json-key, --column or --kmer say; its key is what `tamis
/// build` makes of it. A record that passes is printed as it is. One without a key, such as an
/// empty line, passes only with -v. A CSV header is printed always. Of a Parquet file the values
/// of the column are printed, a line each. With --kmer a sequence passes if one of its k-mers may
/// be in the filter, or as many as --share says.
///
/// FILTER is a file made by `tamis build`, or a list of keys, of which a `binary_fuse8` is built
/// on the spot, the fastest of those that err less than once in 256; -0, --hex and --int hold for
/// the list too. A damaged filter is an error, never taken for a list.
///
/// Exit code 0 if some record passed, 1 if none did.
#[derive(clap::Args)]
#[command(
    visible_alias = "filter",
    before_help = "Examples:
  tamis check blocklist.tamis visits.txt            the visits that are on the list
  tamis check seen.tamis log.csv.gz -f user -v      the records of users not seen before
  tamis check blocklist.txt visits.txt -c           how many, with no filter made before
  tamis check b.tamis visits.txt --exact b.txt      no false positives, and how many there were"
)]
pub(crate) struct Args {
    /// A filter file, or a list of keys; - for standard input
    filter: PathBuf,

    /// The files of records to check; - or nothing for standard input
    #[arg(value_name = "INPUT")]
    files: Vec<PathBuf>,

    /// Print the records whose key is certainly not in the filter
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only how many records pass
    #[arg(short, long)]
    count: bool,

    /// Print nothing and stop at the first record that passes: the exit code tells
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,

    /// Look up what the filter lets pass in the true list of keys, and tell the measured rate of
    /// false positives
    ///
    /// The list is of lines; -0, --hex and --int hold for it too. Keys are compared by 128 bits
    /// of their hashes, half of them under a secret of this run, and take about 32 bytes of
    /// memory each.
    #[arg(long, value_name = "KEYS", conflicts_with = "kmer")]
    exact: Option<PathBuf>,

    /// The share of a sequence's k-mers that must be in the filter, from 0 to 1 [default: any
    /// one]
    #[arg(long, value_name = "SHARE", requires = "kmer", value_parser = units::share)]
    share: Option<f64>,

    #[command(flatten)]
    secret: SecretArgs,

    /// Print only how many records there are and pass, as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let files = Files::new(&args.files)?;
    let source = Source::open(Some(&args.filter))?;
    let stdins = [
        source.is_stdin(),
        files.have_stdin(),
        args.exact.as_deref() == Some(Path::new("-")),
    ];
    if stdins.iter().filter(|is| **is).count() > 1 {
        let why = "can be one of the filter, the input and the exact keys; give files' names for the others";
        return Err(Failure::usage("standard input", why));
    }
    let secret = args.secret.known()?;
    let mut filter = filter(source, args, secret.as_ref())?;
    let mut purpose = Purpose::lookup(*filter.hashing());
    let truth = args.exact.as_ref().map(|keys| {
        purpose.second = Some(Hashing::secret(secret::random()?));
        Truth::read(keys, &args.input.of_list(), purpose)
    });
    let truth = truth.transpose()?;

    let mut totals = Totals::default();
    let print = !(args.count || args.quiet || args.json);
    let mut out = output::Records::new(print, args.input.end());
    for number in 0..files.number() {
        let source = files.open(number)?;
        let reader = args.input.read(source, purpose)?;
        check(
            args,
            &mut filter,
            truth.as_ref(),
            reader,
            &mut totals,
            &mut out,
        )?;
        if args.quiet && totals.passed > 0 {
            break;
        }
    }
    report(args, &filter, &totals)?;
    Ok(ExitCode::from(u8::from(totals.passed == 0)))
}

/// What was seen.
#[derive(Default)]
struct Totals {
    records: u64,
    passed: u64,
    /// Records whose key the filter does not hold.
    absent: u64,
    /// Records whose key the filter has let pass, and the exact list has not.
    false_positives: u64,
}

impl Totals {
    /// False positives among the keys that are not in the list.
    fn measured_fpr(&self) -> Option<f64> {
        let absent = self.absent + self.false_positives;
        (absent > 0).then(|| self.false_positives as f64 / absent as f64)
    }
}

/// Checks one file.
fn check(
    args: &Args,
    filter: &mut Keyed<AnyFilter>,
    truth: Option<&Truth>,
    mut reader: Reader,
    totals: &mut Totals,
    out: &mut output::Records,
) -> Result<(), Failure> {
    let many = args.input.many_keys();
    let mut found = Vec::new();
    while let Some(batch) = reader.next_batch()? {
        // Input may come slowly.
        clock::advance(filter)?;
        found.resize(batch.hashes.len(), false);
        filter.contains_batch(batch.hashes.iter().copied().map(Hashed), &mut found);
        out.header(batch.header());
        for (record, keys) in batch.records() {
            let mut hit = if many {
                enough(&found[keys.clone()], args.share)
            } else {
                keys.start < keys.end && found[keys.start]
            };
            totals.records += 1;
            if let Some(truth) = truth
                && !keys.is_empty()
            {
                let at = keys.start;
                totals.absent += u64::from(!hit);
                if hit && !truth.holds(batch.hashes[at], batch.seconds[at]) {
                    totals.false_positives += 1;
                    hit = false;
                }
            }
            if hit != args.invert {
                totals.passed += 1;
                out.record(record);
            }
        }
        if args.quiet && totals.passed > 0 {
            return Ok(());
        }
        out.write()?;
    }
    reader.warn();
    Ok(())
}

/// Whether a record of many keys passes.
fn enough(found: &[bool], share: Option<f64>) -> bool {
    let hits = found.iter().filter(|found| **found).count();
    hits > 0 && hits as f64 >= share.unwrap_or(0.0) * found.len() as f64
}

fn report(args: &Args, filter: &Keyed<AnyFilter>, totals: &Totals) -> Result<(), Failure> {
    let (passed, measured) = (totals.passed, totals.measured_fpr());
    if args.quiet {
        return Ok(());
    }
    if args.json {
        let mut report = json!({
            "lines": totals.records,
            "passed": passed,
            "kind": filter.kind().name,
            "fpr": filter.fpr(),
        });
        if args.exact.is_some() {
            report["false_positives"] = totals.false_positives.into();
            report["measured_fpr"] = measured.into();
        }
        return output::json(&report);
    }
    if args.count {
        output::write(format!("{passed}\n").as_bytes())?;
    }
    if args.exact.is_some() {
        let wrong = totals.false_positives;
        let absent = totals.absent + wrong;
        let rate = measured.map_or("-".to_string(), output::rate);
        failure::say(&format!(
            "false positives: {wrong} of {absent} records that are not in the list, {rate}; expected {}",
            output::rate(filter.fpr())
        ));
    }
    Ok(())
}

/// A filter that is used once, so it should be built as fast as it is looked up.
const ON_THE_SPOT: &str = "binary_fuse8";

/// The filter in a file, or of a list of keys.
fn filter(
    mut source: Source,
    args: &Args,
    secret: Option<&Hashing>,
) -> Result<Keyed<AnyFilter>, Failure> {
    if source.is_filter()? {
        return source.filter(secret);
    }
    let name = source.name.clone();
    if args.input.many_keys() {
        let why = "this is no filter, and --kmer needs one; make it with `tamis build --kmer`";
        return Err(Failure::usage(name, why));
    }
    if source.is_empty()? {
        // An empty list is a list; but it may also be what is left of a filter.
        failure::say(&format!(
            "{name}: warning: the file is empty, so no line is in it"
        ));
    }
    let hashing = Hashing::default();
    let mut hashes = args.input.of_list().hashes(source, hashing)?;
    let config = Config::default().kind(ON_THE_SPOT);
    choice::build(&config, hashing, &mut hashes).map_err(|e| Failure::build(name, &e))
}

/// A true list of keys, by two hashes of each.
struct Truth(HashSet<(u64, u64), BuildHasherDefault<Last>>);

impl Truth {
    fn read(path: &Path, list: &InputArgs, purpose: Purpose) -> Result<Truth, Failure> {
        let purpose = Purpose {
            strict: true,
            print: false,
            ..purpose
        };
        let mut reader = list.read(Source::open(Some(path))?, purpose)?;
        let mut keys = HashSet::default();
        while let Some(batch) = reader.next_batch()? {
            keys.extend(
                batch
                    .hashes
                    .iter()
                    .copied()
                    .zip(batch.seconds.iter().copied()),
            );
        }
        Ok(Truth(keys))
    }

    fn holds(&self, first: u64, second: u64) -> bool {
        self.0.contains(&(first, second))
    }
}

/// The second of two hashes is under a secret, and good as it is.
#[derive(Default)]
struct Last(u64);

impl Hasher for Last {
    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
