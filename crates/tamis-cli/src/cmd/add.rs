//! `tamis add`: more keys for a filter that takes them.

use crate::ExitCode;

use serde_json::json;

use crate::change::{Change, ChangeArgs};
use crate::failure::{self, Failure};
use crate::gather::{Inserter, each_batch};
use crate::input::{Files, Purpose, in_json};
use crate::progress::Progress;
use crate::{clock, health, output, target};

/// Insert keys into a filter file
///
/// Keys are read as by `tamis build`. The file is replaced when all keys are in and have been
/// looked up in the new one; if the filter is full before, it stays as it was. Two that change a
/// file at a time wait for each other.
///
/// A key that the filter seems to hold already is left out, unless copies count: in kinds that
/// remove or count, and in windows, where it stays longer. Kinds that are built once take no keys
/// later; `tamis kinds` tells which do. A window of time (`sliding:seconds=…`) first forgets what
/// is too old by the clock; the keys of one call come at one time, its start.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis add seen.tamis today.txt
  tamis add users.tamis log.csv -f user_id")]
pub(crate) struct Args {
    #[command(flatten)]
    change: ChangeArgs,
}

pub(crate) fn run(Args { change: args }: &Args) -> Result<ExitCode, Failure> {
    let files = Files::new(&args.keys)?;
    let (place, mut filter) = Change::open(args)?;
    let kind = filter.kind();
    if !kind.can.insert {
        let why = format!(
            "a `{}` is built once and takes no keys later; build it anew, or take a kind that inserts (see `tamis kinds`)",
            kind.name
        );
        return Err(Failure::usage(&place.name, why));
    }

    clock::start(&mut filter)?;
    let input = place.input(args, &filter)?;
    let progress = Progress::over(files.len());
    let purpose = Purpose::keys(*filter.hashing());
    let mut inserter = Inserter::of(kind);
    let (mut hashes, mut added) = (Vec::new(), 0);
    each_batch(&files, &input, purpose, &progress, |batch| {
        added += inserter.insert(&mut filter, batch, &place.name)?;
        hashes.extend_from_slice(batch);
        Ok(())
    })?;
    let given = hashes.len() as u64;
    if kind.can.window {
        // Older ones have left again.
        let kept = usize::try_from(filter.capacity()).unwrap_or(usize::MAX);
        hashes.drain(..hashes.len().saturating_sub(kept));
    }
    progress.stage("verifying");
    let filter = target::verified(filter, &hashes, 1, &place.name)?;
    progress.stage("writing");
    place.replace(&filter)?;
    progress.clear();

    let warnings = health::warnings(&filter);
    if args.json {
        output::json(&json!({
            "file": place.name,
            "kind": filter.kind().name,
            "key_form": in_json(filter.key_form(), filter.key_field()),
            "given": given,
            "added": added,
            "keys": filter.len(),
            "capacity": filter.capacity(),
            "requested_fpr": filter.requested_fpr(),
            "fpr": filter.fpr(),
            "bytes": filter.file_len(),
            "warnings": warnings,
        }))?;
    }
    if args.talks() {
        let summary = target::summary(&filter, filter.file_len());
        let added = output::counted(added, "key");
        failure::say(&format!("{}: {added} added; {summary}", place.name));
    }
    for warning in &warnings {
        failure::say(&format!("{}: warning: {warning}", place.name));
    }
    Ok(ExitCode::SUCCESS)
}
