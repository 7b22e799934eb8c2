//! `tamis bench`: every kind, measured on the user's own keys.

use crate::ExitCode;
use std::fmt::Write;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};
use tamis::{AnyFilter, Config, Filter, Hashing, KINDS, KindInfo, math};

use crate::choice::{self, KindArg};
use crate::failure::{self, Failure};
use crate::input::{InputArgs, Source, read_stdin_once};
use crate::{output, units};

/// Measure kinds of filters on your own keys
///
/// One key in five is held out; a filter of the others is built, and both are looked up. Tells
/// the bits per key, the rate that is expected and that of the keys held out, with the range that
/// it lies in 19 times out of 20: of few keys that is wide, and more of them, or --against, make
/// it narrow. Tells how long it takes to build (per key) and to look up, one by one and in a batch.
/// Keys are hashed before, and a repeated key counts once. Times are the best of --rounds, with
/// calls that find the kind at run time; a program that names its type is a little faster.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis bench users.txt
  tamis bench users.txt --against strangers.txt --fpr 0.001
  tamis bench users.txt --kind cuckoo --kind bloom:k=4 --json")]
pub(crate) struct Args {
    /// The file of keys, one per line; - or nothing for standard input
    keys: Option<PathBuf>,

    /// Look up the keys of this file as strangers, in place of keys held out
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,

    /// A kind to measure, with its parameters if any; may be repeated [default: all]
    #[arg(short, long)]
    kind: Vec<KindArg>,

    /// The false-positive rate [default: 0.01]
    #[arg(short = 'e', long, value_name = "RATE", value_parser = units::fpr, allow_negative_numbers = true)]
    fpr: Option<f64>,

    /// How often to measure
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = units::within::<u32>(1..=u32::MAX.into()))]
    rounds: u32,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let configs = configs(args)?;
    // Without a name the keys come from standard input.
    let keys = args.keys.clone().unwrap_or_else(|| PathBuf::from("-"));
    read_stdin_once(std::iter::once(&keys).chain(&args.against))?;
    let keys = Keys::read(args)?;
    let mut rows = Vec::new();
    for config in configs {
        let measured = measure(&config, &keys, args.rounds)?;
        if let (Err(why), false) = (&measured, args.json) {
            failure::say(&format!(
                "{}: {why}",
                config.kind.as_deref().unwrap_or_default()
            ));
        }
        rows.push((config, measured));
    }
    if args.json {
        output::json(&json!({
            "keys": keys.members.len(),
            "strangers": keys.strangers.len(),
            "kinds": rows.iter().map(as_json).collect::<Vec<_>>(),
        }))?;
    } else {
        output::write(table(&rows).as_bytes())?;
    }
    let none = rows.iter().all(|(_, measured)| measured.is_err());
    Ok(ExitCode::from(u8::from(none)))
}

/// What to measure: all kinds, or those that are named; each checked before any key is read.
fn configs(args: &Args) -> Result<Vec<Config>, Failure> {
    let of_kind = |kind: &KindInfo| {
        let config = Config::default().kind(kind.name);
        args.fpr.map_or(config.clone(), |fpr| config.fpr(fpr))
    };
    let configs: Vec<Config> = match args.kind.is_empty() {
        true => KINDS.iter().map(of_kind).collect(),
        false => {
            let named = args.kind.iter().map(|kind| kind.with(args.fpr, None));
            named.collect::<Result<_, _>>()?
        }
    };
    for config in &configs {
        if config.kind.as_deref().is_none() {
            return Err(Failure::usage(
                "--kind",
                format!("`{config}` names no kind"),
            ));
        }
        let checked = choice::check(config);
        // That some of all kinds cannot have the rate is told in the table.
        let is_rate = config.fpr > 0.0 && config.fpr < 1.0;
        if !is_rate || !args.kind.is_empty() {
            checked.map_err(|e| Failure::build("--kind", &e))?;
        }
    }
    Ok(configs)
}

pub(crate) struct Keys {
    members: Vec<u64>,
    strangers: Vec<u64>,
    /// Both in turn, in no order.
    queries: Vec<u64>,
}

/// One key of so many is held out.
const HELD_OUT: u64 = 5;
/// The most lookups that are timed at once.
const QUERIES: usize = 1 << 19;

impl Keys {
    fn read(args: &Args) -> Result<Keys, Failure> {
        let hashing = Hashing::default();
        let read = |path: Option<&Path>| -> Result<Vec<u64>, Failure> {
            let mut hashes = args.input.hashes(Source::open(path)?, hashing)?;
            hashes.sort_unstable();
            hashes.dedup();
            Ok(hashes)
        };
        let mut keys = read(args.keys.as_deref())?;
        let strangers = match &args.against {
            Some(path) => {
                let mut strangers = read(Some(path))?;
                strangers.retain(|hash| keys.binary_search(hash).is_err());
                strangers
            }
            None => {
                let held = |hash: &u64| shuffled(*hash).is_multiple_of(HELD_OUT);
                let strangers = keys.iter().copied().filter(held).collect();
                keys.retain(|hash| !held(hash));
                strangers
            }
        };
        if keys.is_empty() {
            return Err(Failure::usage("bench", "there are no keys to measure with"));
        }
        Ok(Keys::new(keys, strangers))
    }

    /// Keys that are the same on every day: the numbers from 0.
    pub(crate) fn numbers(members: u64, strangers: u64) -> Keys {
        let hash = |i: u64| Hashing::default().hash(&i);
        let members_first = (0..members + strangers).map(hash);
        let mut all: Vec<u64> = members_first.collect();
        let strangers = all.split_off(members as usize);
        Keys::new(all, strangers)
    }

    fn new(mut keys: Vec<u64>, mut strangers: Vec<u64>) -> Keys {
        keys.sort_by_cached_key(|&hash| shuffled(hash));
        strangers.sort_by_cached_key(|&hash| shuffled(hash));
        let turns = keys.iter().zip(strangers.iter().cycle());
        let mut queries: Vec<u64> = turns.flat_map(|(&a, &b)| [a, b]).take(QUERIES).collect();
        if queries.is_empty() {
            queries.clone_from(&keys);
        }
        Keys {
            members: keys,
            strangers,
            queries,
        }
    }
}

/// An order that no filter's places follow.
fn shuffled(hash: u64) -> u64 {
    Hashing::fast(1).hash(&hash)
}

/// Nanoseconds are per key.
pub(crate) struct Measured {
    pub(crate) bits_per_key: f64,
    pub(crate) expected: f64,
    strangers: u64,
    /// Strangers that were let pass.
    passed: u64,
    pub(crate) build: f64,
    pub(crate) single: f64,
    pub(crate) batch: f64,
}

impl Measured {
    /// The rate of the strangers; `None` where there are none.
    pub(crate) fn found(&self) -> Option<f64> {
        (self.strangers > 0).then(|| self.passed as f64 / self.strangers as f64)
    }

    /// Where the true rate is, 19 times out of 20.
    fn interval(&self) -> Option<(f64, f64)> {
        (self.strangers > 0).then(|| math::rate_interval(self.passed, self.strangers))
    }
}

/// Measures one kind; the inner error says why it cannot be built.
pub(crate) fn measure(
    config: &Config,
    keys: &Keys,
    rounds: u32,
) -> Result<Result<Measured, String>, Failure> {
    let name = config.kind.as_deref().unwrap_or_default();
    let info = tamis::kind(name).map_err(|e| Failure::build("--kind", &e))?;
    let config = config
        .clone()
        .capacity(config.capacity.max(keys.members.len() as u64));
    let mut build = f64::INFINITY;
    let mut last = None;
    for _ in 0..rounds {
        drop(last.take());
        let mut hashes = keys.members.clone();
        let start = Instant::now();
        let built = info.build(&config, &mut hashes);
        build = build.min(per_key(start, hashes.len()));
        match built {
            Ok(filter) => last = Some(filter),
            Err(e) => return Ok(Err(e.to_string())),
        }
    }
    let Some(filter) = last else {
        return Ok(Err("nothing was measured".to_string()));
    };
    let window = if info.can.window {
        config.capacity as usize
    } else {
        usize::MAX
    };
    if count(&filter, &keys.members) < keys.members.len().min(window) {
        return Err(Failure::verification(name));
    }
    let (mut single, mut batch) = (f64::INFINITY, f64::INFINITY);
    let mut found = vec![false; keys.queries.len()];
    for _ in 0..rounds {
        let start = Instant::now();
        for &hash in &keys.queries {
            black_box(filter.contains(black_box(hash)));
        }
        single = single.min(per_key(start, keys.queries.len()));
        let start = Instant::now();
        filter.contains_batch(&keys.queries, &mut found);
        black_box(&found);
        batch = batch.min(per_key(start, keys.queries.len()));
    }
    Ok(Ok(Measured {
        bits_per_key: 8.0 * filter.size_in_bytes() as f64 / keys.members.len() as f64,
        expected: filter.fpr(),
        strangers: keys.strangers.len() as u64,
        passed: count(&filter, &keys.strangers) as u64,
        build,
        single,
        batch,
    }))
}

fn per_key(start: Instant, keys: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / keys.max(1) as f64
}

/// How many of these a filter contains.
fn count(filter: &AnyFilter, hashes: &[u64]) -> usize {
    let mut found = [false; 1024];
    let chunks = hashes.chunks(found.len()).map(|hashes| {
        let found = &mut found[..hashes.len()];
        filter.contains_batch(hashes, found);
        found.iter().filter(|&&found| found).count()
    });
    chunks.sum()
}

fn as_json((config, measured): &(Config, Result<Measured, String>)) -> Value {
    let kind = config.kind.as_deref();
    match measured {
        Ok(m) => json!({
            "kind": kind,
            "bits_per_key": m.bits_per_key,
            "expected_fpr": m.expected,
            "measured_fpr": m.found(),
            "least_fpr": m.interval().map(|(least, _)| least),
            "most_fpr": m.interval().map(|(_, most)| most),
            "build_ns": m.build,
            "lookup_ns": m.single,
            "batch_ns": m.batch,
        }),
        Err(why) => json!({ "kind": kind, "error": why }),
    }
}

fn table(rows: &[(Config, Result<Measured, String>)]) -> String {
    let names = rows
        .iter()
        .map(|(config, _)| config.kind.as_deref().unwrap_or_default().len());
    let width = names.max().unwrap_or(0).max("kind".len());
    let mut text = format!(
        "{:width$} {:>9} {:>10} {:>10} {:>17} {:>9} {:>9} {:>9}\n",
        "kind", "bits/key", "expected", "measured", "95% sure", "build ns", "lookup ns", "batch ns"
    );
    let rate = |rate: f64| format!("{:.4}%", 100.0 * rate);
    let range = |(least, most): (f64, f64)| format!("{:.4}–{}", 100.0 * least, rate(most));
    for (config, measured) in rows {
        let Ok(m) = measured else { continue };
        // Writing to memory does not fail.
        let _ = writeln!(
            text,
            "{:width$} {:>9.2} {:>10} {:>10} {:>17} {:>9.1} {:>9.1} {:>9.1}",
            config.kind.as_deref().unwrap_or_default(),
            m.bits_per_key,
            rate(m.expected),
            m.found().map_or("-".to_string(), rate),
            m.interval().map_or("-".to_string(), range),
            m.build,
            m.single,
            m.batch
        );
    }
    text
}
