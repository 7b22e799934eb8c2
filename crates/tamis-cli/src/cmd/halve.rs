//! `tamis halve`: a filter that turned out too large is shrunk, without its keys.

use crate::ExitCode;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use serde_json::json;
use tamis::{AnyFilter, BuildErrorKind, KINDS, Keyed};

use crate::failure::{self, Failure};
use crate::input::Source;
use crate::secret::SecretArgs;
use crate::target::{self, Target};
use crate::{output, units};

/// Shrink a filter to half its size, again and again, where its kind allows
///
/// The bits of a Bloom filter, and the blocks of a blocked one, can be laid over their
/// neighbours, and a quotient filter's fingerprints moved to half the slots: what is left is the
/// filter that the same keys would have made at half the size. Its rate is higher, and told. No
/// key is lost.
///
/// A filter of an odd number of blocks or slots cannot be halved, nor one whose keys do not fit;
/// nor can other kinds, whose keys must be built anew.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis halve large.tamis -o small.tamis             half the size
  tamis halve large.tamis -o small.tamis --times 3   an eighth
  tamis halve large.tamis -o small.tamis --fpr 0.02  as small as the rate allows")]
pub(crate) struct Args {
    /// The filter file; - for standard input
    filter: PathBuf,

    /// The file to write; - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// How many times to halve it [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "fpr", value_parser = units::within::<u32>(1..=63))]
    times: Option<u32>,

    /// Halve it as long as no more than this share of false positives is expected
    #[arg(short = 'e', long, value_name = "RATE", value_parser = units::share)]
    fpr: Option<f64>,

    /// Replace FILE if it exists
    #[arg(long)]
    force: bool,

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
    let target = Target::of(&args.output, args.force, args.json)?;
    let source = Source::open(Some(&args.filter))?;
    let name = source.name.clone();
    let keyed = source.filter(args.secret.known()?.as_ref())?;
    let mut halves = 0;
    let mut small = keyed.clone();
    while args.fpr.is_some() || halves < args.times.unwrap_or(1) {
        match (small.halve(), args.fpr) {
            (Err(e), _) if matches!(e.kind(), BuildErrorKind::Unsupported(_)) => {
                return Err(cannot(&small, &name));
            }
            (Ok(half), Some(most)) if half.fpr() > most => break,
            (Ok(half), _) => small = half,
            // As small as it gets is what was asked for.
            (Err(_), Some(_)) => break,
            (Err(e), None) => return Err(Failure::usage(name, e)),
        }
        halves += 1;
    }
    let fpr = small.fpr();
    let halved = target::encoded(small, &name)?;
    target.write(&halved)?;
    if args.json {
        output::json(&json!({
            "file": target.name(),
            "kind": halved.kind().name,
            "halved": halves,
            "keys": halved.len(),
            "bytes": halved.file_len(),
            "bytes_before": keyed.file_len(),
            "fpr": fpr,
            "fpr_before": keyed.fpr(),
        }))?;
    }
    if args.verbose || io::stderr().is_terminal() {
        failure::say(&format!(
            "{}: halved {}, from {} to {} bytes; false positives {}, before {}",
            target.name(),
            output::counted(halves.into(), "time"),
            keyed.file_len(),
            halved.file_len(),
            output::rate(fpr),
            output::rate(keyed.fpr())
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Why a filter is not halved.
fn cannot(filter: &Keyed<AnyFilter>, file: &str) -> Failure {
    let can = KINDS.iter().filter(|kind| kind.can.halve);
    let can: Vec<_> = can.map(|kind| format!("`{}`", kind.name)).collect();
    let why = format!(
        "a `{}` cannot be halved, only {}; build it anew from its keys",
        filter.kind().name,
        can.join(", ")
    );
    Failure::usage(file, why)
}
