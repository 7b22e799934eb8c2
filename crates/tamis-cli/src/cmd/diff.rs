//! `tamis diff`: how much two sets have in common, by their filters.

use crate::ExitCode;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tamis::{AnyFilter, Bloom, Declared, Estimate, Halve, Hashing, Keyed};

use crate::failure::Failure;
use crate::input::{Source, read_stdin_once};
use crate::output;
use crate::secret::SecretArgs;

/// Estimate how many keys two sets have, in common and apart, from their filters
///
/// Both must be `bloom` filters of one hashing, of keys written alike (--hex, --int, --kmer, -i),
/// and of as many bits per key (k). Where one is 2, 4, 8… times larger it is folded to the other's
/// size first. Behind ± stands the standard error of each estimate: two times out of three the
/// truth is within it, 19 times out of 20 within twice of it. A `-` stands where a filter is empty
/// or all its bits are set.
#[derive(clap::Args)]
#[command(
    visible_alias = "overlap",
    before_help = "Examples:
  tamis diff monday.tamis tuesday.tamis
  tamis overlap a.tamis b.tamis --json | jq .jaccard.value"
)]
pub(crate) struct Args {
    /// A filter file; - for standard input
    ours: PathBuf,

    /// Another
    theirs: PathBuf,

    #[command(flatten)]
    secret: SecretArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    read_stdin_once([&args.ours, &args.theirs])?;
    let secret = args.secret.known()?;
    let open = |path| open(path, secret.as_ref());
    let (ours, theirs) = (open(&args.ours)?, open(&args.theirs)?);
    let name = args.theirs.display();
    if !ours.1.hashing().agrees_with(theirs.1.hashing()) {
        let why = "the filters hash keys differently; build both with one seed";
        return Err(Failure::usage(name, why));
    }
    let [one, other] = [&ours.1, &theirs.1].map(Keyed::key_form);
    if one != other {
        let why = format!(
            "the filters' keys are written differently: {one} in the first, {other} in the second"
        );
        return Err(Failure::usage(name, why));
    }
    let (mut a, mut b) = (bloom(&ours)?.clone(), bloom(&theirs)?.clone());
    let shrunk = |filter: &Bloom| filter.halve().map_err(|e| Failure::usage(&name, e));
    while a.bits() >= 2 * b.bits() {
        a = shrunk(&a)?;
    }
    while b.bits() >= 2 * a.bits() {
        b = shrunk(&b)?;
    }
    let overlap = a.overlap(&b).map_err(|e| Failure::usage(&name, e))?;
    let other_way = b.overlap(&a).map_err(|e| Failure::usage(&name, e))?;

    let keys = |estimate: Option<Estimate>| estimate.map(|e| (e.keys, e.sd));
    let ratio = |value: Option<f64>, sd: Option<f64>| value.zip(sd);
    let only = |whole: Option<Estimate>, union: Option<Estimate>| {
        // What is in the union and not in the other: the estimates share the other's error.
        let (union, other) = (union?, whole?);
        let variance = union.sd.powi(2) - other.sd.powi(2);
        Some(((union.raw - other.raw).max(0.0), variance.max(0.0).sqrt()))
    };
    let [first, second, union, both] = [
        overlap.ours(),
        overlap.theirs(),
        overlap.union(),
        overlap.intersection(),
    ];
    let sizes = [
        ("first", "keys of the first", keys(first)),
        ("second", "keys of the second", keys(second)),
        ("union", "in either", keys(union)),
        ("intersection", "in both", keys(both)),
        ("only_first", "only in the first", only(second, union)),
        ("only_second", "only in the second", only(first, union)),
    ];
    let ratios = [
        (
            "jaccard",
            "similarity (Jaccard)",
            ratio(overlap.jaccard(), overlap.jaccard_sd()),
        ),
        (
            "cosine",
            "similarity (cosine)",
            ratio(overlap.dot_corrected(), overlap.dot_corrected_sd()),
        ),
        (
            "first_in_second",
            "share of the first in the second",
            ratio(overlap.containment(), overlap.containment_sd()),
        ),
        (
            "second_in_first",
            "share of the second in the first",
            ratio(other_way.containment(), other_way.containment_sd()),
        ),
    ];

    if args.json {
        let value = |found: Option<(f64, f64)>| match found {
            Some((value, sd)) => json!({ "value": value, "sd": sd }),
            None => Value::Null,
        };
        let rows = sizes.into_iter().chain(ratios);
        let map: serde_json::Map<_, _> = rows
            .map(|(name, _, found)| (name.to_string(), value(found)))
            .collect();
        output::json(&Value::Object(map))?;
    } else {
        let mut text = String::new();
        let mut row = |what: &str, found: Option<(f64, f64)>, decimals: usize| {
            let shown = match found {
                Some((value, sd)) => format!("{value:>12.decimals$} ± {sd:.decimals$}"),
                None => format!("{:>12}", "-"),
            };
            // Writing to memory does not fail.
            let _ = writeln!(text, "{what:<34}{shown}");
        };
        for (_, what, found) in sizes {
            row(what, found, 0);
        }
        for (_, what, found) in ratios {
            row(what, found, 4);
        }
        output::write(text.as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn open(path: &Path, secret: Option<&Hashing>) -> Result<(String, Keyed<AnyFilter>), Failure> {
    let source = Source::open(Some(path))?;
    Ok((source.name.clone(), source.filter(secret)?))
}

fn bloom((name, keyed): &(String, Keyed<AnyFilter>)) -> Result<&Bloom, Failure> {
    keyed.downcast_ref::<Bloom>().ok_or_else(|| {
        let why = format!(
            "a `{}` tells nothing of the size of its set ({} put in); build it with --kind {}",
            keyed.kind().name,
            output::counted(keyed.len(), "key"),
            Bloom::INFO.name
        );
        Failure::usage(name, why)
    })
}
