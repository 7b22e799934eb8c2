//! `tamis remove`: keys leave a filter that can forget.

use crate::ExitCode;

use serde_json::json;
use tamis::Hashed;

use crate::change::{Change, ChangeArgs};
use crate::failure::{self, Failure};
use crate::gather::each_batch;
use crate::input::{Files, Purpose, in_json};
use crate::progress::Progress;
use crate::{output, target};

/// Remove keys from a filter file
///
/// Keys are read as by `tamis build`; one copy of each is taken out. Only remove keys that were
/// put in: a filter cannot tell a key from a false positive, and removing one of those takes
/// another key away. The file is replaced when all is done. Two that change a file at a time wait
/// for each other.
///
/// Exit code 0 if some key was removed, 1 if none was held. `tamis kinds` tells which kinds
/// remove.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis remove users.tamis left.txt
  tamis remove users.tamis log.csv -f user_id")]
pub(crate) struct Args {
    #[command(flatten)]
    change: ChangeArgs,
}

pub(crate) fn run(Args { change: args }: &Args) -> Result<ExitCode, Failure> {
    let files = Files::new(&args.keys)?;
    let (place, mut filter) = Change::open(args)?;
    let kind = filter.kind();
    if !kind.can.remove {
        let why = format!(
            "a `{}` does not remove keys; build it anew without them, or take a kind that removes (see `tamis kinds`)",
            kind.name
        );
        return Err(Failure::usage(&place.name, why));
    }

    let input = place.input(args, &filter)?;
    let progress = Progress::over(files.len());
    let (mut given, mut removed) = (0u64, 0u64);
    let purpose = Purpose::keys(*filter.hashing());
    each_batch(&files, &input, purpose, &progress, |batch| {
        given += batch.len() as u64;
        for &hash in batch {
            let held = filter.remove(&Hashed(hash));
            removed += u64::from(held.map_err(|e| Failure::usage(&place.name, e))?);
        }
        Ok(())
    })?;
    progress.stage("writing");
    let filter = target::verified(filter, &[], 1, &place.name)?;
    if removed > 0 {
        place.replace(&filter)?;
    }
    progress.clear();

    if args.json {
        output::json(&json!({
            "file": place.name,
            "kind": filter.kind().name,
            "key_form": in_json(filter.key_form(), filter.key_field()),
            "given": given,
            "removed": removed,
            "keys": filter.len(),
            "bytes": filter.file_len(),
        }))?;
    }
    if args.talks() {
        let (absent, summary) = (given - removed, target::summary(&filter, filter.file_len()));
        failure::say(&format!(
            "{}: {} removed, {absent} not held; {summary}",
            place.name,
            output::counted(removed, "key")
        ));
    }
    Ok(ExitCode::from(u8::from(removed == 0)))
}
