//! `tamis verify`: whether filter files are whole, and hold what they should.

use crate::ExitCode;
use std::path::PathBuf;

use serde_json::{Value, json};
use tamis::{AnyFilter, Hashed, Keyed};

use crate::failure::{self, Failure};
use crate::gather::each_batch;
use crate::input::{AskedArgs, Files, InputArgs, Purpose, Source, read_stdin_once};
use crate::progress::Progress;
use crate::secret::SecretArgs;
use crate::{output, target};

/// Verify filter files: every checksum, every field, and that keys are held
///
/// Every file is looked at, also after a bad one. With --keys every key of a list is looked up in
/// each, as `tamis build` does before it is done; the list is read as by `tamis build`.
///
/// Exit code 0 if all is well, 1 if a key is not held, 3 if a file is damaged, 4 if one cannot be
/// read.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis verify *.tamis
  tamis verify users.tamis --keys users.csv -f user_id")]
pub(crate) struct Args {
    /// The filter files; - for standard input
    #[arg(required = true, value_name = "FILTER")]
    filters: Vec<PathBuf>,

    /// Also look up every key of this file; may be repeated
    #[arg(long, value_name = "KEYS")]
    keys: Vec<PathBuf>,

    #[command(flatten)]
    secret: SecretArgs,

    /// Print nothing: the exit code tells
    #[arg(short, long)]
    quiet: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: AskedArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    read_stdin_once(args.filters.iter().chain(&args.keys))?;
    let keys = (!args.keys.is_empty()).then(|| Files::new(&args.keys));
    let keys = keys.transpose()?;
    if args.filters.len() > 1 && keys.as_ref().is_some_and(|keys| !keys.are_regular()) {
        let why = "keys that can be read only once are for one filter; give a file";
        return Err(Failure::usage("--keys", why));
    }
    let secret = args.secret.known()?;
    let (mut worst, mut reports) = (0, Vec::new());
    for path in &args.filters {
        let opened = Source::open(Some(path)).and_then(|source| source.filter(secret.as_ref()));
        let (code, report, text) = match opened {
            Ok(filter) => {
                let (keys, bytes) = (keys.as_ref(), filter.file_len());
                let missing = keys.map(|keys| {
                    let name = path.display().to_string();
                    let input = args.input.of(&name, &filter, args.quiet || args.json)?;
                    not_held(&filter, keys, &input)
                });
                let missing = missing.transpose()?;
                let mut report = json!({
                    "file": path.display().to_string(),
                    "good": missing.unwrap_or(0) == 0,
                    "kind": filter.kind().name,
                    "keys": filter.len(),
                    "bytes": bytes,
                });
                if let Some(missing) = missing {
                    report["not_held"] = missing.into();
                }
                match missing {
                    Some(missing @ 1..) => {
                        let missing = output::counted(missing, "key");
                        (1, report, format!("bad: {missing} not held"))
                    }
                    _ => (
                        0,
                        report,
                        format!("good: {}", target::summary(&filter, bytes)),
                    ),
                }
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
            output::write(&[output::name(path), format!(": {text}\n").as_bytes()].concat())?;
        }
    }
    if args.json {
        output::json(&Value::Array(reports))?;
    }
    Ok(ExitCode::from(worst))
}

/// How many keys a filter does not hold.
fn not_held(
    filter: &Keyed<AnyFilter>,
    keys: &Files<'_>,
    input: &InputArgs,
) -> Result<u64, Failure> {
    let (mut missing, mut found) = (0, Vec::new());
    let progress = Progress::over(keys.len());
    let purpose = Purpose::keys(*filter.hashing());
    each_batch(keys, input, purpose, &progress, |batch| {
        found.resize(batch.len(), false);
        filter.contains_batch(batch.iter().copied().map(Hashed), &mut found);
        missing += found.iter().filter(|found| !**found).count() as u64;
        Ok(())
    })?;
    progress.clear();
    Ok(missing)
}
