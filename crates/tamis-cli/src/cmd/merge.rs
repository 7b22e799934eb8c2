//! `tamis merge`: several filters become one.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use crate::failure::{self, Failure};
use crate::input::{Source, read_stdin_once};
use crate::secret::SecretArgs;
use crate::target::{self, Target};
use crate::{health, output};

/// Unite filters: the result holds every key of each
///
/// The filters must be of one kind that merges (see `tamis kinds`), of one shape and one hashing.
/// Make them with the same --capacity, that of all keys together. A warning tells where the
/// result holds more than it was made for.
#[derive(clap::Args)]
#[command(
    visible_alias = "join",
    before_help = "Examples:
  tamis merge monday.tamis tuesday.tamis -o week.tamis
  tamis merge shards/*.tamis -o all.tamis --force"
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
    let [first, others @ ..] = args.filters.as_slice() else {
        return Err(Failure::usage("merge", "needs two filters at least"));
    };
    let secret = args.secret.known()?;
    let mut union = Source::open(Some(first))?.filter(secret.as_ref())?;
    for path in others {
        let source = Source::open(Some(path))?;
        let name = source.name.clone();
        let other = source.filter(secret.as_ref())?;
        union.merge(&other).map_err(|e| Failure::usage(name, e))?;
    }
    let union = target::encoded(union, &target.name())?;
    target.write(&union)?;
    if args.verbose || io::stderr().is_terminal() {
        let summary = target::summary(&union, union.file_len());
        let united = args.filters.len();
        failure::say(&format!(
            "{}: {united} filters united; {summary}",
            target.name()
        ));
    }
    let warnings = health::warnings(&union);
    for warning in &warnings {
        failure::say(&format!("{}: warning: {warning}", target.name()));
    }
    if args.json {
        output::json(&json!({
            "file": target.name(),
            "kind": union.kind().name,
            "filters": args.filters.len(),
            "keys": union.len(),
            "capacity": union.capacity(),
            "fpr": union.fpr(),
            "bytes": union.file_len(),
            "warnings": warnings,
        }))?;
    }
    Ok(ExitCode::SUCCESS)
}
