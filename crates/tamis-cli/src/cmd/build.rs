//! `tamis build`: a list of keys becomes a filter file.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use serde_json::json;
use tamis::{AnyFilter, BuildError, BuildErrorKind, Config, Filter, Hashing, Keyed};

use crate::failure::{self, Failure};
use crate::input::Source;
use crate::{choice, output};

/// Make a filter of a list of keys
///
/// Reads one key per line: a line without its `\n`, and without a `\r` before that. Keys are bytes, not necessarily
/// text. Empty lines are skipped, and a key that is repeated counts once. The same set of keys always makes the same
/// file.
///
/// Before the file takes its name it is opened again from its bytes, and every key is looked up in it. A file of that
/// name is replaced wholly or not at all.
///
/// Without --kind the filter is a `binary_fuse8`, 16 or 32, whichever reaches the rate. If there is to be room for
/// more keys than are given (--capacity), it is a `split_block`, which takes insertions.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis build blocklist.txt -o blocklist.tamis
  sort -u logs/*.txt | tamis build -o seen.tamis --fpr 0.0001
  tamis build users.txt -o users.tamis --kind cuckoo:bits=12 --capacity 1000000")]
pub(crate) struct Args {
    /// The file of keys, one per line; - or nothing for standard input
    keys: Option<PathBuf>,

    /// The file to write; - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// The kind of filter, with its parameters if any: kind:param=value,… (see `tamis kinds`)
    #[arg(short, long, default_value = "", hide_default_value = true)]
    kind: Config,

    /// The false-positive rate at capacity [default: 0.01]
    #[arg(long, value_name = "RATE", value_parser = fpr, allow_negative_numbers = true)]
    fpr: Option<f64>,

    /// Make room for this many keys, if they are more than are given
    #[arg(long, value_name = "N")]
    capacity: Option<u64>,

    /// The seed of the key hash
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Replace FILE if it exists
    #[arg(short, long)]
    force: bool,

    /// Tell what was built also where standard error is no terminal
    #[arg(long)]
    verbose: bool,

    /// Tell what was built as JSON on standard output
    #[arg(long)]
    json: bool,
}

fn fpr(text: &str) -> Result<f64, String> {
    let fpr: f64 = text
        .parse()
        .map_err(|_| "expected a number above 0 and below 1".to_string())?;
    if fpr > 0.0 && fpr < 1.0 {
        Ok(fpr)
    } else {
        Err(BuildError::from(BuildErrorKind::Fpr(fpr)).to_string())
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut config = args.kind.clone();
    if let Some(fpr) = args.fpr {
        config = config.fpr(fpr);
    }
    if let Some(capacity) = args.capacity {
        config = config.capacity(capacity);
    }
    choice::check(&config).map_err(|e| Failure::build("--kind", &e))?;
    let target = Target::of(args)?;

    let mut source = Source::open(args.keys.as_deref())?;
    if source.is_filter()? {
        let why = "this is a filter, not a list of keys";
        return Err(Failure::usage(source.name, why));
    }
    let hashing = Hashing::fast(args.seed);
    let bar = progress(source.len);
    let mut hashes = source.hashes(&hashing, |bytes| bar.inc(bytes))?;
    bar.set_style(ProgressStyle::default_spinner());
    bar.set_message("building");
    let built = choice::build(&config, hashing, &mut hashes)
        .map_err(|e| Failure::build(target.name(), &e))?;
    bar.set_message("verifying");
    let bytes = built.to_bytes();
    drop(built);
    let filter = verified(bytes, &hashes).ok_or_else(|| Failure::verification(target.name()))?;
    bar.set_message("writing");
    target.write(&filter)?;
    bar.finish_and_clear();

    if args.json {
        output::json(&json!({
            "file": target.name(),
            "kind": filter.filter().name(),
            "keys": filter.filter().len(),
            "capacity": filter.capacity(),
            "requested_fpr": filter.requested_fpr(),
            "fpr": filter.filter().fpr(),
            "bytes": filter.file_len(),
            "bits_per_key": output::bits_per_key(filter.file_len(), filter.filter().len()),
        }))?;
    }
    if args.verbose || io::stderr().is_terminal() {
        failure::say(&format!("{}: {}", target.name(), summary(&filter)));
    }
    Ok(ExitCode::SUCCESS)
}

/// The filter as a reader of the file will have it, if it holds every key.
fn verified(bytes: Vec<u8>, hashes: &[u64]) -> Option<Keyed<AnyFilter>> {
    let filter: Keyed<AnyFilter> = Keyed::open(bytes).ok()?;
    let mut found = [false; 1024];
    for hashes in hashes.chunks(found.len()) {
        let found = &mut found[..hashes.len()];
        filter.filter().contains_batch(hashes, found);
        if found.contains(&false) {
            return None;
        }
    }
    Some(filter)
}

fn summary(filter: &Keyed<AnyFilter>) -> String {
    let (keys, bytes) = (filter.filter().len(), filter.file_len());
    let per_key = output::bits_per_key(bytes, keys)
        .map(|bits| format!(" ({bits} bits per key)"))
        .unwrap_or_default();
    let kind = filter.filter().name();
    let rate = output::rate(filter.filter().fpr());
    format!("{kind}, {keys} keys, {bytes} bytes{per_key}, false positives {rate}")
}

/// A bar over the bytes of a file, or a spinner where there is no end in sight; nothing where there is no terminal.
fn progress(len: Option<u64>) -> ProgressBar {
    let bar = match len {
        Some(len) => ProgressBar::new(len),
        None => ProgressBar::new_spinner(),
    };
    // Cleared also where an error ends it, so that the error stands on a line of its own.
    let bar = bar.with_finish(ProgressFinish::AndClear);
    match ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} left") {
        Ok(style) if len.is_some() => bar.with_style(style),
        _ => bar,
    }
}

/// Where the filter goes.
enum Target<'a> {
    Stdout,
    File { path: &'a Path, force: bool },
}

impl Target<'_> {
    /// Checked before the keys are read, so that nobody waits for a refusal.
    fn of(args: &Args) -> Result<Target<'_>, Failure> {
        let (path, force) = (args.output.as_path(), args.force);
        if path == Path::new("-") {
            if args.json {
                let why = "--json needs standard output for itself; give a file's name";
                return Err(Failure::usage("--output -", why));
            }
            if io::stdout().is_terminal() {
                let why = "a filter is no text for a terminal; give a file's name, or a pipe";
                return Err(Failure::usage("--output -", why));
            }
            return Ok(Target::Stdout);
        }
        let target = Target::File { path, force };
        target.refuse_to_overwrite()?;
        Ok(target)
    }

    fn refuse_to_overwrite(&self) -> Result<(), Failure> {
        let Target::File { path, force } = self else {
            return Ok(());
        };
        match path.metadata() {
            Ok(meta) if !meta.is_file() => {
                let why = "not a regular file; choose another name";
                Err(Failure::io(self.name(), why))
            }
            Ok(_) if !force => {
                let why = "the file exists; --force replaces it";
                Err(Failure::usage(self.name(), why))
            }
            _ => Ok(()),
        }
    }

    fn name(&self) -> String {
        match self {
            Target::Stdout => "standard output".to_string(),
            Target::File { path, .. } => path.display().to_string(),
        }
    }

    fn write(&self, filter: &Keyed<AnyFilter>) -> Result<(), Failure> {
        match self {
            Target::Stdout => output::deliver(&filter.to_bytes()),
            Target::File { path, .. } => {
                // Again: reading the keys may have taken hours.
                self.refuse_to_overwrite()?;
                filter.save(path).map_err(|e| Failure::io(self.name(), e))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verification_misses_no_key_and_no_damage() {
        let mut hashes: Vec<u64> = (1..=3000u64).map(|i| Hashing::default().hash(&i)).collect();
        let config = Config::new(0).fpr(1e-9);
        let bytes = choice::build(&config, Hashing::default(), &mut hashes)
            .unwrap()
            .to_bytes();
        assert!(verified(bytes.clone(), &hashes).is_some());
        let missing = [&hashes[..], &[12345]].concat();
        assert!(verified(bytes.clone(), &missing).is_none());
        let mut damaged = bytes;
        damaged[200] ^= 1;
        assert!(verified(damaged, &hashes).is_none());
    }
}
