//! `tamis check`: the records whose key may be in the filter.

use crate::ExitCode;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::path::{Path, PathBuf};

use serde_json::json;
use tamis::{AnyFilter, Config, Dictionary, Full, Hashed, Hashing, Keyed};

use crate::choice::KindArg;
use crate::failure::{self, Failure};
use crate::input::{AskedArgs, Batch, Files, InputArgs, Purpose, Reader, Source};
use crate::secret::{self, SecretArgs};
use crate::{choice, clock, output, units};

/// Print the records whose key may be in the filter
///
/// A record is a line, or as -0, -f, --json-key, --column or --kmer say; its key is what `tamis
/// build` makes of it. A record that passes is printed as it is. One without a key, such as an
/// empty line, passes only with -v. A CSV header is printed always. Of a Parquet file the values
/// of the column are printed, a line each.
///
/// A filter file remembers --hex, --int, --kmer and -i from when it was built; they need not be
/// repeated, and another is refused. It also remembers the field that its keys came from, and finds
/// it in records that have it. A line on standard error tells how keys are read.
///
/// With --kmer a sequence passes if enough of its k-mers may be in the filter: of a random
/// sequence of that length as many are with no more than the filter's rate, unless --share says
/// how many. The rate of random sequences is told at the end.
///
/// FILTER is a file made by `tamis build`, or a list of keys, of which a `binary_fuse8` is built
/// on the spot, the fastest of those that err less than once in 256; -0, --hex, --int and -i hold
/// for the list too. --kind takes another kind, or `dictionary`: that keeps the keys themselves, in
/// many times the memory, and is never wrong. A damaged filter is an error, never taken for
/// a list.
///
/// Exit code 0 if some record passed, 1 if none did.
#[derive(clap::Args)]
#[command(
    visible_alias = "filter",
    before_help = "Examples:
  tamis check blocklist.tamis visits.txt            the visits that are on the list
  tamis check seen.tamis log.csv.gz -f user -v      the records of users not seen before
  tamis check blocklist.txt visits.txt -c           how many, with no filter made before
  tamis check blocklist.tamis logs/*.gz -l          the logs in which a listed key is
  tamis check names.txt visitors.txt -i             whatever the case of the letters
  tamis check pwned.tamis hashes.txt                in hexadecimal, if it was built so
  tamis check genome.tamis reads.fq.gz              the reads that share k-mers with a genome
  tamis check b.txt visits.txt --kind dictionary    no false positives, in more memory
  tamis check b.tamis visits.txt --exact b.txt      no false positives, and how many there were"
)]
pub(crate) struct Args {
    /// A filter file, or a list of keys; - for standard input
    filter: PathBuf,

    /// The files of records to check; - or nothing for standard input
    #[arg(value_name = "INPUT")]
    files: Vec<PathBuf>,

    /// What is made of a list of keys: a kind with its parameters, or `dictionary`, which keeps
    /// the keys and is never wrong [default: `binary_fuse8`]
    #[arg(long, value_name = "KIND")]
    kind: Option<KindArg>,

    /// Print the records whose key is certainly not in the filter
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only how many records pass; of each file, where there are several
    #[arg(short, long)]
    count: bool,

    /// Print the number of each record before it, from 1 in each file
    #[arg(short = 'n', long, visible_alias = "line-number")]
    number: bool,

    /// Print the name of the file before each record, or before its count
    #[arg(short = 'H', long)]
    with_filename: bool,

    /// Print only the names of the files in which a record passes
    #[arg(short = 'l', long, conflicts_with_all = ["count", "quiet", "json", "files_without_match"])]
    files_with_matches: bool,

    /// Print only the names of the files in which no record passes
    #[arg(short = 'L', long, conflicts_with_all = ["count", "quiet", "json"])]
    files_without_match: bool,

    /// Print only the key of each record, as it is written there
    #[arg(short = 'o', long, conflicts_with = "column")]
    only_key: bool,

    /// Print nothing and stop at the first record that passes: the exit code tells
    #[arg(short, long, conflicts_with = "json")]
    quiet: bool,

    /// Look up what the filter lets pass in the true list of keys, and tell the measured rate of
    /// false positives
    ///
    /// The list is of lines; -0, --hex, --int and -i hold for it too. Keys are compared by 128 bits
    /// of their hashes, half of them under a secret of this run, and take about 32 bytes of
    /// memory each.
    #[arg(long, value_name = "KEYS")]
    exact: Option<PathBuf>,

    /// The share of a sequence's k-mers that must be in the filter, from 0 to 1; 0 is any one
    /// [default: as many as a random sequence has with no more than the filter's rate]
    #[arg(long, value_name = "SHARE", value_parser = units::share)]
    share: Option<f64>,

    #[command(flatten)]
    secret: SecretArgs,

    /// Print only how many records there are and pass, as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: AskedArgs,
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
    let (mut filter, input) = filter(source, args, secret.as_ref())?;
    args.suit(&input)?;
    let mut purpose = Purpose::lookup(filter.hashing());
    purpose.whole = matches!(filter, Set::Exact(_));
    let truth = args.exact.as_ref().map(|keys| {
        purpose.second = Some(Hashing::secret(secret::random()?));
        Truth::read(keys, &input.of_list(), purpose)
    });
    let truth = truth.transpose()?;

    purpose.written = args.only_key;
    let mut totals = Totals::default();
    let mut sequences = input
        .many_keys()
        .then(|| Sequences::new(filter.fpr(), args.share));
    let print = !(args.count || args.quiet || args.json || args.names_files());
    let mut out = output::Records::new(print, input.end());
    for number in 0..files.number() {
        let source = files.open(number)?;
        let name = source.name_as_data();
        let before = totals.passed;
        let mut check = Check {
            args,
            filter: &mut filter,
            truth: truth.as_ref(),
            sequences: sequences.as_mut(),
            name: &name,
            totals: &mut totals,
            out: &mut out,
        };
        check.file(input.read(source, purpose)?)?;
        let passed = totals.passed - before;
        if args.counts_by_file(files.number()) {
            output::write(&[&name[..], format!(":{passed}\n").as_bytes()].concat())?;
        }
        if args.names_files() && (passed > 0) == args.files_with_matches {
            totals.named += 1;
            output::write(&[&name[..], b"\n"].concat())?;
        }
        if args.quiet && totals.passed > 0 {
            break;
        }
    }
    let told = Told {
        filter: &filter,
        input: &input,
        totals: &totals,
        sequences: sequences.as_ref(),
    };
    told.report(args, files.number())?;
    let success = match args.names_files() {
        true => totals.named > 0,
        false => totals.passed > 0,
    };
    Ok(ExitCode::from(u8::from(!success)))
}

impl Args {
    /// Whether each count stands behind the name of its file.
    fn counts_by_file(&self, files: usize) -> bool {
        self.count && !self.json && !self.quiet && (files > 1 || self.with_filename)
    }

    /// Whether files are named, and no records printed.
    fn names_files(&self) -> bool {
        self.files_with_matches || self.files_without_match
    }

    /// Refuses what does not go with this input: the filter may have said that keys are k-mers.
    fn suit(&self, input: &InputArgs) -> Result<(), Failure> {
        let many = input.many_keys();
        let of_one = "a sequence has many keys, and this is for records of one";
        match (self.share.is_some(), self.exact.is_some(), self.only_key) {
            (true, ..) if !many => {
                let why = "this is for sequences of many keys, and a record has one here";
                Err(Failure::usage("--share", why))
            }
            (_, true, _) if many => Err(Failure::usage("--exact", of_one)),
            (_, _, true) if many => Err(Failure::usage("--only-key", of_one)),
            _ => Ok(()),
        }
    }
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
    /// Files whose name was printed.
    named: u64,
}

impl Totals {
    /// False positives among the keys that are not in the list.
    fn measured_fpr(&self) -> Option<f64> {
        let absent = self.absent + self.false_positives;
        (absent > 0).then(|| self.false_positives as f64 / absent as f64)
    }
}

/// What records are looked up in.
enum Set {
    Filter(Keyed<AnyFilter>),
    Exact(Dictionary),
}

/// The name of the exact set among kinds.
const EXACT: &str = "dictionary";

impl Set {
    fn hashing(&self) -> Hashing {
        match self {
            Set::Filter(filter) => *filter.hashing(),
            Set::Exact(_) => Hashing::default(),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Set::Filter(filter) => filter.kind().name,
            Set::Exact(_) => EXACT,
        }
    }

    fn fpr(&self) -> f64 {
        match self {
            Set::Filter(filter) => filter.fpr(),
            Set::Exact(_) => 0.0,
        }
    }

    fn look_up(&mut self, batch: &Batch<'_>, found: &mut [bool]) -> Result<(), Failure> {
        match self {
            Set::Filter(filter) => {
                // Input may come slowly.
                clock::advance(filter)?;
                filter.contains_batch(batch.hashes.iter().copied().map(Hashed), found);
            }
            Set::Exact(keys) => {
                for (found, key) in found.iter_mut().zip(batch.whole.iter()) {
                    *found = keys.contains(key);
                }
            }
        }
        Ok(())
    }
}

/// How a file is checked.
struct Check<'a> {
    args: &'a Args,
    filter: &'a mut Set,
    truth: Option<&'a Truth>,
    /// Where a record has many keys: how many of them must be found.
    sequences: Option<&'a mut Sequences>,
    /// The file's.
    name: &'a [u8],
    totals: &'a mut Totals,
    out: &'a mut output::Records,
}

impl Check<'_> {
    /// Checks one file; no further than its first record that passes, where that is enough.
    fn file(&mut self, mut reader: Reader) -> Result<(), Failure> {
        let args = self.args;
        let before = self.totals.passed;
        let first_is_enough = args.quiet || args.names_files();
        let (mut found, mut number) = (Vec::new(), 0);
        while let Some(batch) = reader.next_batch()? {
            found.resize(batch.hashes.len(), false);
            self.filter.look_up(&batch, &mut found)?;
            if !args.only_key {
                self.out.header(batch.header());
            }
            for (record, keys) in batch.records() {
                number += 1;
                let mut hit = match &mut self.sequences {
                    Some(sequences) => sequences.passes(&found[keys.clone()]),
                    None => keys.start < keys.end && found[keys.start],
                };
                self.totals.records += 1;
                if let Some(truth) = self.truth
                    && !keys.is_empty()
                {
                    let at = keys.start;
                    self.totals.absent += u64::from(!hit);
                    if hit && !truth.holds(batch.hashes[at], batch.seconds[at]) {
                        self.totals.false_positives += 1;
                        hit = false;
                    }
                }
                if hit != args.invert {
                    self.totals.passed += 1;
                    if args.with_filename {
                        self.out.text(self.name);
                        self.out.text(b":");
                    }
                    if args.number {
                        self.out.text(format!("{number}:").as_bytes());
                    }
                    match args.only_key {
                        true => self
                            .out
                            .whole(keys.clone().next().map_or(b"", |at| batch.written.get(at))),
                        false => self.out.record(record),
                    }
                }
            }
            if first_is_enough && self.totals.passed > before {
                return Ok(());
            }
            self.out.write()?;
        }
        reader.warn();
        Ok(())
    }
}

/// Which sequences pass, and how often a random one does.
struct Sequences {
    fpr: f64,
    share: Option<f64>,
    /// By the number of k-mers: how many must be found, and with what probability they are in a
    /// random sequence.
    needs: HashMap<usize, (usize, f64)>,
    /// Sequences that have a k-mer, their k-mers, and how many would pass if all were random.
    number: u64,
    kmers: u64,
    random: f64,
}

impl Sequences {
    fn new(fpr: f64, share: Option<f64>) -> Sequences {
        Sequences {
            fpr,
            share,
            needs: HashMap::new(),
            number: 0,
            kmers: 0,
            random: 0.0,
        }
    }

    fn passes(&mut self, found: &[bool]) -> bool {
        if found.is_empty() {
            return false;
        }
        let (fpr, share) = (self.fpr, self.share);
        let need = || need(found.len(), fpr, share);
        let &mut (least, random) = self.needs.entry(found.len()).or_insert_with(need);
        self.number += 1;
        self.kmers += found.len() as u64;
        self.random += random;
        found.iter().filter(|found| **found).count() >= least
    }

    /// The rate at which random sequences of these lengths pass.
    fn rate(&self) -> Option<f64> {
        (self.number > 0).then(|| self.random / self.number as f64)
    }
}

/// How many of so many k-mers must be found, and with what probability they are in a random
/// sequence: its k-mers are strangers, each a false positive or not by itself.
fn need(kmers: usize, fpr: f64, share: Option<f64>) -> (usize, f64) {
    let rate = |least: usize| tamis::math::binomial_tail(least as u64, kmers as u64, fpr);
    let least = match share {
        Some(share) => ((share * kmers as f64).ceil() as usize).max(1),
        None => {
            // The rate falls with the number; that all are found is rare enough.
            let (mut low, mut high) = (1, kmers);
            while low < high {
                let middle = low + (high - low) / 2;
                match rate(middle) <= fpr {
                    true => high = middle,
                    false => low = middle + 1,
                }
            }
            low
        }
    };
    (least, rate(least))
}

/// What is told at the end.
struct Told<'a> {
    filter: &'a Set,
    input: &'a InputArgs,
    totals: &'a Totals,
    sequences: Option<&'a Sequences>,
}

impl Told<'_> {
    fn report(&self, args: &Args, files: usize) -> Result<(), Failure> {
        let (totals, filter) = (self.totals, self.filter);
        let (passed, measured) = (totals.passed, totals.measured_fpr());
        if args.quiet {
            return Ok(());
        }
        if args.json {
            let mut report = json!({
                "lines": totals.records,
                "passed": passed,
                "kind": filter.kind(),
                "fpr": filter.fpr(),
                "key_form": self.input.in_json(),
                "sequence_fpr": self.sequences.and_then(Sequences::rate),
            });
            if args.exact.is_some() {
                report["false_positives"] = totals.false_positives.into();
                report["measured_fpr"] = measured.into();
            }
            return output::json(&report);
        }
        if args.count && !args.counts_by_file(files) {
            output::write(format!("{passed}\n").as_bytes())?;
        }
        if args.exact.is_some() {
            let wrong = totals.false_positives;
            let absent = totals.absent + wrong;
            let rate = measured.map_or("-".to_string(), output::rate);
            failure::say(&format!(
                "false positives: {wrong} of {} not in the list, {rate}; expected {}",
                output::counted(absent, "record"),
                output::rate(filter.fpr())
            ));
        }
        if let Some(sequences) = self.sequences
            && let Some(rate) = sequences.rate()
        {
            let mean = (sequences.kmers as f64 / sequences.number as f64).round();
            failure::say(&format!(
                "{} of {} on average; a random one passes with {}, a random k-mer with {}",
                output::counted(sequences.number, "sequence"),
                output::counted(mean as u64, "k-mer"),
                output::rate(rate),
                output::rate(filter.fpr())
            ));
        }
        Ok(())
    }
}

/// A filter that is used once, so it should be built as fast as it is looked up.
const ON_THE_SPOT: &str = "binary_fuse8";

/// The filter in a file, or of a list of keys, and how records are read for it.
fn filter(
    mut source: Source,
    args: &Args,
    secret: Option<&Hashing>,
) -> Result<(Set, InputArgs), Failure> {
    let name = source.name.clone();
    if source.is_filter()? {
        if args.kind.is_some() {
            let why = "this is a filter, and has a kind; --kind is for lists of keys";
            return Err(Failure::usage(name, why));
        }
        let filter = source.filter(secret)?;
        let quiet = args.quiet || args.json;
        let input = args.input.of(&name, &filter, quiet)?;
        return Ok((Set::Filter(filter), input));
    }
    let input = args.input.given.clone();
    let list = input.of_list();
    if input.many_keys() {
        let why = "this is no filter, and --kmer needs one; make it with `tamis build --kmer`";
        return Err(Failure::usage(name, why));
    }
    if source.is_empty()? {
        // An empty list is a list; but it may also be what is left of a filter.
        failure::say(&format!(
            "{name}: warning: the file is empty, so no line is in it"
        ));
    }
    let config = match &args.kind {
        Some(kind) => kind.with(None, None)?,
        None => Config::default().kind(ON_THE_SPOT),
    };
    if config.kind.as_deref() == Some(EXACT) {
        if config != Config::default().kind(EXACT) {
            let why = "an exact set has no rate and no parameters";
            return Err(Failure::usage("--kind dictionary", why));
        }
        let keys = dictionary(source, &list)?;
        return Ok((Set::Exact(keys), input));
    }
    choice::check(&config).map_err(|e| Failure::build("--kind", &e))?;
    let hashing = Hashing::default();
    let mut hashes = list.hashes(source, hashing)?;
    let built = choice::build(&config, hashing, &mut hashes);
    let built = built.map_err(|e| Failure::build(name, &e))?;
    Ok((Set::Filter(built), input))
}

/// The keys of a list, whole.
fn dictionary(source: Source, list: &InputArgs) -> Result<Dictionary, Failure> {
    let name = source.name.clone();
    let mut keys = Dictionary::new();
    let purpose = Purpose {
        whole: true,
        ..Purpose::keys(Hashing::default())
    };
    let mut reader = list.read(source, purpose)?;
    while let Some(batch) = reader.next_batch()? {
        let mut inserted = batch.whole.iter().map(|key| keys.insert(key));
        let full: Option<Full> = inserted.find_map(Result::err);
        if let Some(full) = full {
            return Err(Failure::io(name, full));
        }
    }
    reader.warn();
    Ok(keys)
}

/// A true list of keys, by two hashes of each.
struct Truth(HashSet<(u64, u64), BuildHasherDefault<Last>>);

impl Truth {
    fn read(path: &Path, list: &InputArgs, purpose: Purpose) -> Result<Truth, Failure> {
        let purpose = Purpose {
            strict: true,
            print: false,
            whole: false,
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
