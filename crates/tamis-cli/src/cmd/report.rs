//! `tamis report`: what filters take, how fast they are here, and how one of yours is, as a page
//! with charts and a calculator.

mod page;

use crate::ExitCode;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tamis::advise::Choice;
use tamis::{AnyFilter, Config, KINDS, Keyed, KindInfo, Tier, math};

use super::bench::{Keys, Measured, measure};
use crate::failure::Failure;
use crate::input::{Source, is_same};
use crate::secret::SecretArgs;
use crate::target::Target;
use crate::{health, output, units};

/// Write a page with charts and a calculator: what each kind takes, how fast it is here, and
/// where your filter is among them
///
/// The page is one HTML file that needs nothing else and loads nothing; light or dark as the
/// reader prefers, and narrow enough for a phone. Its calculator (keys, rate and needs make a list
/// of kinds with their sizes) is a table where scripts are off. Sizes are those of filters of
/// --keys keys, each kind asked itself. Speed is measured on this machine while the page is made,
/// with 2²⁰ keys at most, which takes some seconds.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis report -o report.html
  tamis report blocklist.tamis -o report.html --force
  tamis report --keys 1M --fpr 0.001 > report.html")]
pub(crate) struct Args {
    /// A filter file, whose place and health are told too
    filter: Option<PathBuf>,

    /// The file to write; - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,

    /// How many keys the filters of the charts hold [default: as many as FILTER, or 100k]
    #[arg(short = 'n', long, value_name = "N", value_parser = units::keys)]
    keys: Option<u64>,

    /// The rate of the charts [default: that of FILTER, or 0.01]
    #[arg(short = 'e', long, value_name = "RATE", value_parser = units::fpr, allow_negative_numbers = true)]
    fpr: Option<f64>,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    secret: SecretArgs,

    /// Print the figures as JSON in place of the page, or beside it if that goes to a file
    #[arg(long)]
    json: bool,
}

/// The rates of the charts and of the calculator, beside the one that is asked for.
const RATES: [f64; 10] = [0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 1e-4, 1e-5, 1e-6];
/// The most keys that speed is measured with.
const MOST_KEYS: u64 = 1 << 20;
/// Keys of the charts where nobody says how many.
const DEFAULT_KEYS: u64 = 100_000;

/// Everything that the page tells.
struct Report {
    keys: u64,
    fpr: f64,
    /// From high to low.
    rates: Vec<f64>,
    rows: Vec<Row>,
    filter: Option<Yours>,
}

/// What is known of a kind.
struct Row {
    kind: &'static KindInfo,
    /// What it takes at each of the rates; `None` where it does not reach that.
    space: Vec<Option<Space>>,
    speed: Option<Measured>,
}

#[derive(Clone, Copy)]
struct Space {
    bits_per_key: f64,
    /// The rate to expect, which may be lower than the one asked for.
    fpr: f64,
}

impl Space {
    /// Bits per key above the least that any filter of its rate takes.
    fn overhead(self) -> f64 {
        self.bits_per_key - math::lower_bound_bits_per_key(self.fpr)
    }
}

impl Row {
    /// Nanoseconds of a lookup, alone or in a batch, whichever is faster.
    fn lookup(&self) -> Option<f64> {
        self.speed
            .as_ref()
            .map(|speed| speed.single.min(speed.batch))
    }

    fn is_core(&self) -> bool {
        self.kind.tier == Tier::Core
    }
}

impl Report {
    /// What a kind takes at the rate that is asked for.
    fn space(&self, row: &Row) -> Option<Space> {
        let at = self.rates.iter().position(|rate| *rate == self.fpr)?;
        row.space[at]
    }
}

/// The filter that was given.
struct Yours {
    name: String,
    filter: Keyed<AnyFilter>,
}

impl Yours {
    /// What it takes with the keys that it holds; `None` where it is empty.
    fn space(&self) -> Option<Space> {
        Some(Space {
            bits_per_key: output::bits_per_key(
                self.filter.size_in_bytes() as u64,
                self.filter.len(),
            )?,
            fpr: self.filter.fpr(),
        })
        .filter(|space| space.fpr > 0.0)
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let target = match args.output == Path::new("-") {
        true => Target::Stdout,
        false => Target::of(&args.output, args.force, args.json)?,
    };
    let to_file = matches!(target, Target::File { .. });
    if args.keys == Some(0) {
        return Err(Failure::usage("report", "one key at least is needed"));
    }
    if args
        .filter
        .as_ref()
        .is_some_and(|path| is_same(path, &args.output))
    {
        let why = "the filter is read from this file; choose another name";
        return Err(Failure::usage(target.name(), why));
    }
    let filter = match &args.filter {
        Some(path) => {
            let source = Source::open(Some(path))?;
            Some(Yours {
                name: source.name.clone(),
                filter: source.filter(args.secret.known()?.as_ref())?,
            })
        }
        None => None,
    };
    let report = report(args, filter)?;
    if to_file || !args.json {
        target.write_bytes(page::page(&report).as_bytes())?;
    }
    if args.json {
        output::json(&as_json(&report))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn report(args: &Args, filter: Option<Yours>) -> Result<Report, Failure> {
    let yours = filter.as_ref().map(|yours| &yours.filter);
    let held = yours.map(|filter| match filter.len() {
        0 => filter.capacity(),
        keys => keys,
    });
    let keys = args.keys.or(held.filter(|&keys| keys > 0));
    let keys = keys.unwrap_or(DEFAULT_KEYS);
    let asked = yours.map(Keyed::requested_fpr);
    let fpr = args.fpr.or(asked).unwrap_or(Config::DEFAULT_FPR);
    let mut rates = RATES.to_vec();
    rates.push(fpr);
    rates.sort_by(|a, b| b.total_cmp(a));
    rates.dedup();

    let measured_keys = keys.min(MOST_KEYS);
    let measured = Keys::numbers(measured_keys, measured_keys);
    let mut rows = Vec::new();
    for kind in KINDS {
        let space = rates.iter().map(|&rate| {
            let choice = Choice::of(kind, keys, rate).ok()?;
            Some(Space {
                bits_per_key: choice.bits_per_key,
                fpr: choice.fpr,
            })
        });
        let config = Config::new(measured_keys).kind(kind.name).fpr(fpr);
        rows.push(Row {
            kind,
            space: space.collect(),
            speed: measure(&config, &measured, 2)?.ok(),
        });
    }
    Ok(Report {
        keys,
        fpr,
        rates,
        rows,
        filter,
    })
}

fn as_json(report: &Report) -> Value {
    let kind = |row: &Row| {
        let spaces = report.rates.iter().zip(&row.space);
        let spaces = spaces.filter_map(|(rate, space)| Some((rate, (*space)?)));
        let speed = row.speed.as_ref();
        json!({
            "kind": row.kind.name,
            "core": row.is_core(),
            "overhead_bits": report.space(row).map(Space::overhead),
            "space": spaces.map(|(rate, space)| json!({
                "fpr": rate,
                "bits_per_key": space.bits_per_key,
                "expected_fpr": space.fpr,
            })).collect::<Vec<_>>(),
            "lookup_ns": speed.map(|m| m.single),
            "batch_ns": speed.map(|m| m.batch),
            "build_ns": speed.map(|m| m.build),
        })
    };
    json!({
        "keys": report.keys,
        "fpr": report.fpr,
        "kinds": report.rows.iter().map(kind).collect::<Vec<_>>(),
        "filter": report.filter.as_ref().map(|yours| json!({
            "file": yours.name,
            "kind": yours.filter.kind().name,
            "overhead_bits": yours.space().map(Space::overhead),
            "warnings": health::warnings(&yours.filter),
        })),
    })
}
