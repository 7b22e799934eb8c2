//! `tamis count`: how often keys were put in.

use crate::ExitCode;

use tamis::Hashed;

use crate::ask::{AskArgs, Question};
use crate::failure::Failure;

/// Tell how often each key was put in
///
/// Prints each record that has a key, a tab, and how many copies of the key the filter holds: 0
/// is certain, and a count is never too low, but where counting ends; `--json` tells where that is
/// (`limit`). A count is too high at the rate of false positives. Records are read as by `tamis
/// check`; a CSV header gets the name of the column.
///
/// A `quotient_counting` counts every copy, and has no limit. Other kinds count copies as they are
/// added (`tamis add`); `tamis build` puts each of their keys in once, unless --max-memory makes it
/// insert keys as they come. Kinds that do not count are refused; `tamis kinds` tells which do.
///
/// Exit code 0 if some key is held, 1 if none is.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis count visits.tamis users.txt                how often each user came
  tamis count visits.tamis log.csv -f user
  tamis count visits.tamis users.txt | sort -t \"$(printf '\\t')\" -k2,2nr | head")]
pub(crate) struct Args {
    #[command(flatten)]
    ask: AskArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let question = Question {
        name: "count",
        ask: |filter, hashes| {
            let count = |&hash: &u64| filter.count(&Hashed(hash)).map(Some);
            filter.count_limit()?;
            hashes.iter().map(count).collect()
        },
        held: |count| count > 0,
        beside: |filter| {
            let limit = filter.count_limit().ok().filter(|&limit| limit < u64::MAX);
            Some(("limit", limit.into()))
        },
    };
    question.run(&args.ask)
}
