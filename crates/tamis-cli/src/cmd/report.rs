//! `tamis report`: what filters take, how fast they are here, and how one of yours is, as a page
//! with charts.

mod draw;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use tamis::advise::Choice;
use tamis::{AnyFilter, Config, KINDS, Keyed, KindInfo, math};

use super::bench::{Keys, Measured, measure};
use crate::failure::Failure;
use crate::input::{Source, is_same};
use crate::secret::SecretArgs;
use crate::target::Target;
use crate::{health, output, units};
use draw::{Series, escape, short_rate};

/// Write a page with charts: what each kind takes at each rate, how fast it is here, and how your
/// filter is
///
/// The page is one HTML file that needs nothing else: no script, no network; light or dark as the
/// reader prefers, and narrow enough for a phone. Space is that of filters of --keys keys, each
/// kind asked itself. Speed is measured on this machine while the page is made, which takes some
/// seconds.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis report -o report.html
  tamis report blocklist.tamis -o report.html --force
  tamis report --keys 1M --fpr 0.001 > report.html")]
pub(crate) struct Args {
    /// A filter file, whose health is told too
    filter: Option<PathBuf>,

    /// The file to write; - for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,

    /// How many keys the filters of the charts hold
    #[arg(short = 'n', long, value_name = "N", value_parser = units::keys, default_value = "100k")]
    keys: u64,

    /// The rate at which speed is measured
    #[arg(short = 'e', long, value_name = "RATE", default_value_t = Config::DEFAULT_FPR)]
    fpr: f64,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    secret: SecretArgs,

    /// Print the figures as JSON in place of the page, or beside it if that goes to a file
    #[arg(long)]
    json: bool,
}

/// The rates of the charts are ½ to the power of these.
const RATES: [u32; 9] = [3, 5, 7, 8, 10, 12, 14, 16, 20];
/// The most keys that speed is measured with.
const MOST_KEYS: u64 = 1 << 20;

/// What is known of a kind.
struct Row {
    kind: &'static KindInfo,
    /// Bits per key at each rate that it reaches, by the negative logarithm of the rate.
    space: Vec<(f64, f64)>,
    speed: Option<Measured>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let target = match args.output == Path::new("-") {
        true => Target::Stdout,
        false => Target::of(&args.output, args.force, args.json)?,
    };
    let to_file = matches!(target, Target::File { .. });
    if !(args.fpr > 0.0 && args.fpr < 1.0) || args.keys == 0 {
        let why = "a rate above 0 and below 1, and one key at least, are needed";
        return Err(Failure::usage("report", why));
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
            Some((
                source.name.clone(),
                source.filter(args.secret.known()?.as_ref())?,
            ))
        }
        None => None,
    };
    let rows = rows(args)?;
    if to_file || !args.json {
        target.write_bytes(page(args, &rows, filter.as_ref()).as_bytes())?;
    }
    if args.json {
        output::json(&as_json(args, &rows, filter.as_ref()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn rows(args: &Args) -> Result<Vec<Row>, Failure> {
    let keys = args.keys.min(MOST_KEYS);
    let measured = Keys::numbers(keys, keys);
    let mut rows = Vec::new();
    for kind in KINDS {
        let space = RATES.into_iter().filter_map(|bits| {
            let choice = Choice::of(kind, args.keys, (-f64::from(bits)).exp2()).ok()?;
            Some((f64::from(bits), choice.bits_per_key))
        });
        let config = Config::new(keys).kind(kind.name).fpr(args.fpr);
        rows.push(Row {
            kind,
            space: space.collect(),
            speed: measure(&config, &measured, 2)?.ok(),
        });
    }
    Ok(rows)
}

/// The families in the order of the kinds: the directories of their sources.
fn families(rows: &[Row]) -> Vec<(&'static str, Vec<&Row>)> {
    let mut families: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in rows {
        let family = row.kind.source.split('/').next().unwrap_or_default();
        match families.iter_mut().find(|(name, _)| *name == family) {
            Some((_, rows)) => rows.push(row),
            None => families.push((family, vec![row])),
        }
    }
    families
}

const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>tamis report</title>\n<style>\n";

fn page(args: &Args, rows: &[Row], filter: Option<&(String, Keyed<AnyFilter>)>) -> String {
    let mut out = format!(
        "{HEAD}{}</style>\n</head>\n<body>\n",
        include_str!("report/style.css")
    );
    out += "<h1>Filters</h1>\n";
    let _ = writeln!(
        out,
        "<p class=\"about\">Made by tamis {} for {} keys; speed measured with {} at {}.</p>",
        env!("CARGO_PKG_VERSION"),
        args.keys,
        args.keys.min(MOST_KEYS),
        short_rate(args.fpr)
    );
    if let Some((name, keyed)) = filter {
        out += &health_of(name, keyed);
    }
    out += &space(rows);
    out += &speed(rows);
    out + "</body>\n</html>\n"
}

fn health_of(name: &str, keyed: &Keyed<AnyFilter>) -> String {
    let warnings = health::warnings(keyed);
    let mut out = format!(
        "<h2 id=\"health\">Your filter</h2>\n<p>{}</p>\n",
        escape(name)
    );
    if warnings.is_empty() {
        out += "<p class=\"good\">In good health.</p>\n";
    }
    for warning in &warnings {
        let _ = writeln!(out, "<p class=\"warn\">{}</p>", escape(warning));
    }
    if let Some(fill) = keyed.fill() {
        out += &draw::meter("Keys, of the capacity", fill);
    }
    let rate = keyed.fpr() / keyed.requested_fpr();
    out += &draw::meter("False positives expected now, of those asked for", rate);
    let bits = output::bits_per_key(keyed.file_len(), keyed.len());
    out += "<div class=\"scroll\"><table class=\"facts\"><tbody>\n";
    for (name, value) in [
        ("kind", keyed.kind().name.to_string()),
        ("keys", keyed.len().to_string()),
        ("capacity", keyed.capacity().to_string()),
        ("expected rate", output::rate(keyed.fpr())),
        ("requested rate", output::rate(keyed.requested_fpr())),
        ("file", units::show_bytes(keyed.file_len() as f64)),
        (
            "bits per key",
            bits.map_or("-".to_string(), |bits| bits.to_string()),
        ),
        ("hash", keyed.hashing().function().to_string()),
    ] {
        let _ = writeln!(out, "<tr><th>{name}</th><td>{}</td></tr>", escape(&value));
    }
    out + "</tbody></table></div>\n"
}

fn space(rows: &[Row]) -> String {
    let mut out = String::from(
        "<h2 id=\"space\">Space against rate</h2>\n<p>Bits per key that a filter takes for each rate. The broken line is \
         log₂(1/ε), below which no filter can be. A line that ends has no lower rate.</p>\n<div class=\"charts\">\n",
    );
    for (family, rows) in families(rows) {
        let series: Vec<Series<'_>> = rows
            .iter()
            .enumerate()
            .map(|(colour, row)| Series {
                name: row.kind.name,
                colour,
                points: row.space.clone(),
            })
            .collect();
        let least = |x: f64| math::lower_bound_bits_per_key((-x).exp2());
        out += &draw::lines(family, &series, least);
    }
    out += "</div>\n<details><summary>The same in numbers</summary><div class=\"scroll\"><table><thead><tr><th>kind</th>";
    for bits in RATES {
        let _ = write!(out, "<th>{}</th>", short_rate((-f64::from(bits)).exp2()));
    }
    out += "</tr></thead><tbody>\n";
    for row in rows {
        let _ = write!(out, "<tr><th>{}</th>", escape(row.kind.name));
        for bits in RATES {
            let found = row.space.iter().find(|(x, _)| *x == f64::from(bits));
            let cell = found.map_or("–".to_string(), |(_, y)| format!("{y:.2}"));
            let _ = write!(out, "<td>{cell}</td>");
        }
        out += "</tr>\n";
    }
    out + "</tbody></table></div></details>\n"
}

fn speed(rows: &[Row]) -> String {
    let mut out = String::from(
        "<h2 id=\"speed\">Speed</h2>\n<p>Nanoseconds a lookup, half of them of members: one by one (pale) and in a batch \
         (dark), measured once on this machine. Other programs that ran meanwhile are in the figures.</p>\n<div class=\"charts\">\n",
    );
    for (family, rows) in families(rows) {
        let measured: Vec<_> = rows
            .iter()
            .enumerate()
            .filter_map(|(colour, row)| {
                let speed = row.speed.as_ref()?;
                Some((row.kind.name, colour, speed.single, speed.batch))
            })
            .collect();
        if !measured.is_empty() {
            out += &draw::bars(family, &measured);
        }
    }
    out += "</div>\n<details><summary>The same in numbers</summary><div class=\"scroll\"><table><thead><tr><th>kind</th>\
            <th>bits/key</th><th>expected</th><th>measured</th><th>build</th><th>lookup</th><th>batch</th></tr></thead><tbody>\n";
    for row in rows {
        let Some(m) = &row.speed else { continue };
        let _ = writeln!(
            out,
            "<tr><th>{}</th><td>{:.2}</td><td>{}</td><td>{}</td><td>{:.1} ns</td><td>{:.1} ns</td><td>{:.1} ns</td></tr>",
            escape(row.kind.name),
            m.bits_per_key,
            short_rate(m.expected),
            m.found.map_or("–".to_string(), short_rate),
            m.build,
            m.single,
            m.batch
        );
    }
    out + "</tbody></table></div></details>\n"
}

fn as_json(args: &Args, rows: &[Row], filter: Option<&(String, Keyed<AnyFilter>)>) -> Value {
    let kind = |row: &Row| {
        let space = row.space.iter();
        let speed = row.speed.as_ref();
        json!({
            "kind": row.kind.name,
            "space": space.map(|(x, y)| json!({ "fpr": (-x).exp2(), "bits_per_key": y })).collect::<Vec<_>>(),
            "lookup_ns": speed.map(|m| m.single),
            "batch_ns": speed.map(|m| m.batch),
            "build_ns": speed.map(|m| m.build),
        })
    };
    json!({
        "keys": args.keys,
        "fpr": args.fpr,
        "kinds": rows.iter().map(kind).collect::<Vec<_>>(),
        "filter": filter.map(|(name, keyed)| json!({
            "file": name,
            "kind": keyed.kind().name,
            "warnings": health::warnings(keyed),
        })),
    })
}
