//! `tamis get`: the values of keys, from a map.

use crate::ExitCode;

use tamis::Hashed;

use crate::ask::{AskArgs, Question};
use crate::failure::Failure;

/// Print the value of each key that a map may hold
///
/// A map is made by `tamis build --value-field`. Each record whose key may be in it is printed
/// with a tab and the key's value: its own where the key was put in, and some value at the rate of
/// false positives where it was not. Records are read as by `tamis check`; a CSV header gets the
/// name of the column. Kinds that are no maps are refused; `tamis kinds` tells which are.
///
/// Exit code 0 if some key has a value, 1 if none has.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis build prices.csv -f item --value-field cents -o prices.tamis
  tamis get prices.tamis basket.txt                 item, tab, cents
  tamis get prices.tamis orders.csv -f item --json")]
pub(crate) struct Args {
    #[command(flatten)]
    ask: AskArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let question = Question {
        name: "value",
        ask: |filter, hashes| {
            let mut values = vec![None; hashes.len()];
            filter.get_batch(hashes.iter().copied().map(Hashed), &mut values)?;
            Ok(values)
        },
        held: |_| true,
        beside: |_| None,
    };
    question.run(&args.ask)
}
