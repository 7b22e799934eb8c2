//! `tamis check`: the lines whose key may be in the filter.

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use tamis::{AnyFilter, Config, Filter, Hashing, Keyed};

use crate::failure::{self, Failure};
use crate::input::{self, Source};
use crate::{choice, output};

/// Print the lines whose key may be in the filter
///
/// A line's key is the line without its `\n`, and without a `\r` before that. A line that passes is printed as it is. An
/// empty line holds no key: it passes only with -v.
///
/// FILTER is a file made by `tamis build`, or a list of keys, of which a filter is built on the spot as `tamis build`
/// would without options. A damaged filter is an error, never taken for a list.
///
/// Exit code 0 if some line passed, 1 if none did.
#[derive(clap::Args)]
#[command(
    visible_alias = "filter",
    before_help = "Examples:
  tamis check blocklist.tamis visits.txt            the visits that are on the list
  cut -d, -f2 log.csv | tamis check -v seen.tamis   what was not seen before
  tamis check blocklist.txt visits.txt -c           how many, with no filter made before"
)]
pub(crate) struct Args {
    /// A filter file, or a list of keys; - for standard input
    filter: PathBuf,

    /// The file of lines to check; - or nothing for standard input
    input: Option<PathBuf>,

    /// Print the lines whose key is certainly not in the filter
    #[arg(short = 'v', long)]
    invert: bool,

    /// Print only how many lines pass
    #[arg(short, long)]
    count: bool,

    /// Print nothing and stop at the first line that passes: the exit code tells
    #[arg(short, long)]
    quiet: bool,

    /// Print only how many lines there are and pass, as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let source = Source::open(Some(&args.filter))?;
    let input = Source::open(args.input.as_deref())?;
    if source.is_stdin() && input.is_stdin() {
        let why = "cannot be both the filter and the lines; give a file's name for one";
        return Err(Failure::usage("standard input", why));
    }
    let filter = filter(source)?;
    let hashing = *filter.hashing();
    let print = !(args.count || args.quiet || args.json);

    let (mut lines, mut passed) = (0u64, 0u64);
    let (mut hashes, mut found, mut out) = (Vec::new(), Vec::new(), Vec::new());
    let mut batches = input.lines();
    while let Some(batch) = batches.next_batch()? {
        hashes.clear();
        hashes.extend(input::split(batch).map(|line| hashing.hash_bytes(input::key(line))));
        found.resize(hashes.len(), false);
        filter.filter().contains_batch(&hashes, &mut found);
        lines += hashes.len() as u64;
        out.clear();
        for (line, &found) in input::split(batch).zip(&found) {
            let found = found && !input::key(line).is_empty();
            if found != args.invert {
                passed += 1;
                if print {
                    out.extend_from_slice(line);
                }
            }
        }
        if args.quiet && passed > 0 {
            break;
        }
        if out.last().is_some_and(|&end| end != b'\n') {
            out.push(b'\n');
        }
        output::write(&out)?;
    }

    if args.quiet {
    } else if args.json {
        output::json(&json!({
            "lines": lines,
            "passed": passed,
            "kind": filter.filter().name(),
            "fpr": filter.filter().fpr(),
        }))?;
    } else if args.count {
        output::write(format!("{passed}\n").as_bytes())?;
    }
    Ok(ExitCode::from(u8::from(passed == 0)))
}

/// The filter in a file, or of a list of keys.
fn filter(mut source: Source) -> Result<Keyed<AnyFilter>, Failure> {
    if source.is_filter()? {
        return source.filter();
    }
    let name = source.name.clone();
    if source.is_empty()? {
        // An empty list is a list; but it may also be what is left of a filter.
        failure::say(&format!(
            "{name}: warning: the file is empty, so no line is in it"
        ));
    }
    let hashing = Hashing::default();
    let mut hashes = source.hashes(&hashing, |_| ())?;
    choice::build(&Config::new(0), hashing, &mut hashes).map_err(|e| Failure::build(name, &e))
}
