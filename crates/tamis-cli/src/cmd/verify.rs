//! `tamis verify`: whether filter files are whole, and hold what they should.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};
use tamis::{AnyFilter, Filter, Keyed};

use crate::failure::{self, Failure};
use crate::gather::each_batch;
use crate::input::{Files, InputArgs, Purpose, Source};
use crate::progress::Progress;
use crate::secret::SecretArgs;
use crate::{output, target};

/// Verify filter files: every checksum, every field, and that keys are held
///
/// Every file is looked at, also after a bad one. With --keys every key of a list is looked up in each, as `tamis build`
/// does before it is done; the list is read as by `tamis build`.
///
/// Exit code 0 if all is well, 1 if a key is not held, 3 if a file is damaged, 4 if one cannot be read.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis verify *.tamis
  tamis verify users.tamis --keys users.csv -f user_id")]
pub(crate) struct Args {
    /// The filter files; - for standard input
    #[arg(required = true, value_name = "FILTER")]
    filters: Vec<PathBuf>,

    /// Also look up every key of this file
    #[arg(long, value_name = "KEYS")]
    keys: Option<PathBuf>,

    #[command(flatten)]
    secret: SecretArgs,

    /// Print nothing: the exit code tells
    #[arg(short, long)]
    quiet: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let keys: Vec<PathBuf> = args.keys.iter().cloned().collect();
    let dashes = args
        .filters
        .iter()
        .chain(&keys)
        .filter(|path| *path == Path::new("-"));
    if dashes.count() > 1 {
        return Err(Failure::usage("standard input", "can be read only once"));
    }
    let (mut worst, mut reports) = (0, Vec::new());
    for path in &args.filters {
        let (code, report, text) = match verify(args, path, &keys) {
            Ok((filter, missing)) => {
                let mut report = json!({
                    "file": path.display().to_string(),
                    "good": missing == 0,
                    "kind": filter.filter().name(),
                    "keys": filter.filter().len(),
                    "bytes": filter.file_len(),
                });
                let mut text = format!("good: {}", target::summary(&filter));
                if args.keys.is_some() {
                    report["not_held"] = missing.into();
                }
                if missing > 0 {
                    text = format!("bad: {missing} keys are not held");
                }
                (u8::from(missing > 0), report, text)
            }
            Err(Failure::Error { code, message }) => {
                let report = json!({
                    "file": path.display().to_string(),
                    "good": false,
                    "error": message,
                });
                if !args.quiet {
                    failure::say(&message);
                }
                (code, report, "bad".to_string())
            }
            Err(closed) => return Err(closed),
        };
        worst = worst.max(code);
        if args.json {
            reports.push(report);
        } else if !args.quiet {
            output::write(format!("{}: {text}\n", path.display()).as_bytes())?;
        }
    }
    if args.json {
        output::json(&Value::Array(reports))?;
    }
    Ok(ExitCode::from(worst))
}

/// A filter, and how many keys it should hold and does not.
fn verify(args: &Args, path: &Path, keys: &[PathBuf]) -> Result<(Keyed<AnyFilter>, u64), Failure> {
    let secret = args.secret.known()?;
    let filter = Source::open(Some(path))?.filter(secret.as_ref())?;
    let (mut missing, mut found) = (0, Vec::new());
    if !keys.is_empty() {
        let files = Files::new(keys)?;
        let progress = Progress::over(files.len());
        let purpose = Purpose::keys(*filter.hashing());
        each_batch(&files, &args.input, purpose, &progress, |batch| {
            found.resize(batch.len(), false);
            filter.filter().contains_batch(batch, &mut found);
            missing += found.iter().filter(|found| !**found).count() as u64;
            Ok(())
        })?;
        progress.clear();
    }
    Ok((filter, missing))
}
