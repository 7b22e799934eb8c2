//! `tamis dedup`: a stream without its repeated lines, in bounded memory.

use crate::ExitCode;
use std::path::PathBuf;

use serde_json::json;
use tamis::{AnyFilter, Config, Full, Hashed, Hashing, Keyed};

use crate::failure::{self, Failure};
use crate::input::{Files, InputArgs, Purpose};
use crate::secret::Secret;
use crate::{choice, output, units};

/// Drop the repeated lines of a stream, in bounded memory
///
/// Each line is looked up in a filter of the lines before it, and printed if it is new. A repeat
/// is never printed; but a new line is taken for one with the probability --fpr, and lost. How
/// many were lost is told at the end. A line takes a few bytes of memory, however long it is.
/// With -0, -f, --json-key or --column the record or its key counts, as for `tamis check`; of
/// many keys (--kmer) all must have come before. What holds no key, such as an empty line, is
/// printed.
///
/// Without an option the filter grows with the number of distinct lines. With --capacity it does
/// not: beyond that many more and more lines are lost. With --window a line is dropped if it is
/// among the last N lines, and the stream may be endless.
///
/// Exit code 0 if some line was printed or counted, 1 if none was.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis dedup visits.txt > once.txt
  tail -f access.log | tamis dedup --window 1M
  tamis dedup log.csv.gz -f user                the first record of each user
  tamis dedup -c visits.txt                     how many distinct lines
  tamis dedup -v visits.txt                     the repeats")]
pub(crate) struct Args {
    /// The files of lines; - or nothing for standard input
    #[arg(value_name = "INPUT")]
    files: Vec<PathBuf>,

    /// Drop a line only if it is among the last N lines
    #[arg(short, long, value_name = "N", value_parser = units::some_keys, conflicts_with = "capacity")]
    window: Option<u64>,

    /// Take memory for this many distinct lines, and no more
    #[arg(long, value_name = "N", value_parser = units::some_keys)]
    capacity: Option<u64>,

    /// The share of new lines that may be lost
    #[arg(short = 'e', long, value_name = "RATE", value_parser = units::fpr, allow_negative_numbers = true, default_value_t = 1e-4)]
    fpr: f64,

    /// The most memory that a growing filter may take; repeats of later lines are then not
    /// noticed
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, default_value = "1GiB")]
    max_memory: u64,

    /// The seed of the key hash
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = units::within::<u64>(0..=u64::MAX))]
    seed: u64,

    /// Hash lines under a secret, where strangers choose them: `random`, `file:PATH` or `env:NAME`
    #[arg(long, value_name = "SOURCE", conflicts_with = "seed")]
    secret: Option<Secret>,

    /// Print the repeats instead
    #[arg(short = 'v', long)]
    repeats: bool,

    /// Print only how many lines would be printed
    #[arg(short, long)]
    count: bool,

    /// Say nothing of what was lost
    #[arg(short, long)]
    quiet: bool,

    /// Print only the numbers, as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut seen = Seen::new(args)?;
    let files = Files::new(&args.files)?;
    let print = !(args.count || args.json);
    let mut out = output::Records::new(print, args.input.end());
    let hashing = match &args.secret {
        Some(secret) => secret.hashing()?,
        None => Hashing::fast(args.seed),
    };
    let purpose = Purpose::lookup(hashing).within(args.max_memory);
    let (mut lines, mut printed, mut repeats) = (0u64, 0u64, 0u64);
    for number in 0..files.number() {
        let mut reader = args.input.read(files.open(number)?, purpose)?;
        while let Some(batch) = reader.next_batch()? {
            out.header(batch.header());
            for (record, keys) in batch.records() {
                lines += 1;
                let mut repeat = !keys.is_empty();
                for at in keys {
                    if let Some(&soon) = batch.hashes.get(at + AHEAD) {
                        seen.filter.prefetch(&Hashed(soon));
                    }
                    repeat &= seen.before(batch.hashes[at])?;
                }
                repeats += u64::from(repeat);
                if repeat == args.repeats {
                    printed += 1;
                    out.record(record);
                }
            }
            out.write()?;
        }
        reader.warn();
    }

    seen.account();
    // What is expected in general; no more than was dropped can be lost here.
    seen.lost = seen.lost.min(repeats as f64);
    if args.json {
        output::json(&json!({
            "lines": lines,
            "distinct": lines - repeats,
            "repeats": repeats,
            "expected_loss": seen.lost,
            "fpr": seen.rate,
            "kind": seen.filter.kind().name,
            "bytes": seen.filter.size_in_bytes(),
            "memory_reached": seen.sated,
        }))?;
    } else if args.count {
        output::write(format!("{printed}\n").as_bytes())?;
    }
    if !args.quiet && !args.json {
        seen.report(lines, repeats);
    }
    Ok(ExitCode::from(u8::from(printed == 0)))
}

/// How many lines ahead memory is prefetched.
const AHEAD: usize = 12;
/// Distinct lines that a growing filter starts with, and the bytes for each that must be allowed.
const FIRST: u64 = 1 << 16;
const FIRST_BYTES: u64 = 16;

/// The filter of the lines before, and what it is likely to have cost.
struct Seen {
    filter: Keyed<AnyFilter>,
    /// Whether every line counts, also a repeat: the window is one of lines.
    window: bool,
    capacity: Option<u64>,
    most_bytes: u64,
    /// The memory that was allowed is used up.
    sated: bool,
    /// Lines that were taken for new since the last account.
    fresh: u64,
    /// New lines that were taken for repeats, expected.
    lost: f64,
    /// The filter's at the last account: to ask it may read the whole of it.
    rate: f64,
    /// The rate is asked again at this number of insertions, or where the filter has grown.
    ask_at: u64,
    /// What the filter took after the last insertion.
    bytes: usize,
    /// It stands still for this many at least.
    step: u64,
    inserted: u64,
}

impl Seen {
    fn new(args: &Args) -> Result<Seen, Failure> {
        let name = match (args.window, args.capacity) {
            (Some(_), _) => choice::WINDOWED,
            (None, Some(_)) => choice::CAPPED,
            (None, None) => choice::ENDLESS,
        };
        let first = (args.max_memory / FIRST_BYTES).clamp(64, FIRST);
        let room = args.window.or(args.capacity).unwrap_or(first);
        let filter = Keyed::new(&Config::new(room).kind(name).fpr(args.fpr))
            .map_err(|e| Failure::build("dedup", &e))?;
        let bounded = args.window.is_some() || args.capacity.is_some();
        Ok(Seen {
            bytes: filter.size_in_bytes(),
            filter,
            window: args.window.is_some(),
            capacity: args.capacity,
            most_bytes: if bounded { u64::MAX } else { args.max_memory },
            sated: false,
            fresh: 0,
            lost: 0.0,
            rate: 0.0,
            ask_at: 0,
            step: (room / 16).clamp(1, 1024),
            inserted: 0,
        })
    }

    /// Whether a line came before; from now on it has.
    fn before(&mut self, hash: u64) -> Result<bool, Failure> {
        let before = self.filter.contains(&Hashed(hash));
        self.fresh += u64::from(!before);
        if self.window || !(before || self.sated) {
            self.insert(hash)
                .map_err(|e| Failure::io("the filter of lines", e))?;
        }
        if self.inserted >= self.ask_at {
            self.account();
        }
        Ok(before)
    }

    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        self.filter.insert(&Hashed(hash))?;
        self.inserted += 1;
        let bytes = self.filter.size_in_bytes();
        if bytes == self.bytes {
            return Ok(());
        }
        self.bytes = bytes;
        self.account();
        if bytes as u64 > self.most_bytes {
            self.sated = true;
            failure::say(&format!(
                "warning: {} distinct lines take the {} that are allowed; repeats of later lines are not noticed \
                 (--max-memory allows more, --window forgets old ones)",
                self.inserted,
                units::show_bytes(self.most_bytes as f64)
            ));
        }
        Ok(())
    }

    /// Adds up what the lines since the last time are likely to have lost.
    fn account(&mut self) {
        let before = std::mem::replace(&mut self.rate, self.filter.fpr());
        // So many new lines were lost for each that was not.
        let odds = |rate: f64| rate / (1.0 - rate).max(1e-3);
        self.lost += self.fresh as f64 * (odds(before) + odds(self.rate)) / 2.0;
        self.fresh = 0;
        if self.filter.kind().can.grow {
            // Between two growths the rate rises evenly with the keys.
            self.ask_at = u64::MAX;
            return;
        }
        // In a full filter the odds rise fast.
        let still = (self.inserted / 16 + self.step) as f64 * (1.0 - self.rate);
        self.ask_at = self.inserted + (still as u64).max(1);
    }

    fn report(&self, lines: u64, repeats: u64) {
        let rate = output::rate(self.rate);
        let warning = if self.lost >= 1.0 { "warning: " } else { "" };
        failure::say(&format!(
            "{warning}{}, {repeats} dropped as repeats; {:.1} new lines are expected to be among those \
             (a new line is now lost with {rate})",
            output::counted(lines, "line"),
            self.lost
        ));
        if let Some(capacity) = self.capacity.filter(|&capacity| self.inserted > capacity) {
            failure::say(&format!(
                "warning: {} distinct lines are more than the capacity of {capacity}; give a higher one",
                self.inserted
            ));
        }
    }
}
