//! The program `tamis`: build, check and inspect approximate-membership filters.
//!
//! [`main`] is all of it, so that a package of another language can carry the same program; it
//! shares [`build`](build()) and [`default_kind`], by which the same keys make the same file.
//!
//! Data goes to standard output, talk to standard error. Exit codes are grep's, with two more: 0
//! some record passed or all went well, 1 none did, 2 usage, 3 a damaged filter file, 4 input or
//! output failed, or the system refused memory.

mod ask;
mod change;
mod choice;
mod clock;
mod closed;
mod cmd;
mod failure;
mod gather;
mod health;
mod input;
mod interrupt;
mod output;
mod pairs;
mod progress;
mod secret;
mod target;
#[doc(hidden)]
pub mod testing;
mod units;

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};

pub use crate::choice::{Chosen, build, default_kind};
use crate::failure::Failure;

/// How the program ends: the standard library's own code cannot be read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitCode(pub u8);

impl ExitCode {
    const SUCCESS: ExitCode = ExitCode(0);
}

impl From<u8> for ExitCode {
    fn from(code: u8) -> ExitCode {
        ExitCode(code)
    }
}

/// Approximate-membership filters: is this key in that set? "No" is certain, "yes" is wrong at a
/// small, known rate.
#[derive(Parser)]
#[command(
    name = "tamis",
    version,
    before_help = "Examples:
  tamis build blocklist.txt -o blocklist.tamis    make a filter of a list of keys
  tamis check blocklist.tamis visits.txt          print the visits that are on the list
  tamis info blocklist.tamis                      what is in the file
  tamis advise --keys 1M --fpr 0.001              which filter suits
  tamis compare -12 --exact a.txt b.txt           the lines that both files have
  tamis dedup visits.txt                          each line once",
    after_help = "Exit codes:
  0  done; check, compare, dedup: some record passed
  1  check, compare, dedup: no record passed; remove, count: no key was held; get: none has a value;
     verify: a key is not held; advise: no kind suits; bench: no kind could be measured
  2  usage: an argument is wrong
  3  a file is no filter, or a damaged one
  4  reading or writing failed"
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Build(cmd::build::Args),
    Check(cmd::check::Args),
    Compare(cmd::compare::Args),
    Add(cmd::add::Args),
    Remove(cmd::remove::Args),
    Count(cmd::count::Args),
    Get(cmd::get::Args),
    Verify(cmd::verify::Args),
    Merge(cmd::merge::Args),
    Halve(cmd::halve::Args),
    Info(cmd::info::Args),
    Diff(cmd::diff::Args),
    Dedup(cmd::dedup::Args),
    Kinds(cmd::kinds::Args),
    Advise(cmd::advise::Args),
    Bench(cmd::bench::Args),
    Report(cmd::report::Args),
    Completions(cmd::completions::Args),
    Man(cmd::man::Args),
}

/// Runs the program with these arguments, the first of which is its own name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(told) => {
            // Where nobody reads it any more, there is nobody left to tell.
            let _ = told.print();
            return ExitCode(told.exit_code() as u8);
        }
    };
    interrupt::heed_limits();
    let result = match cli.verb {
        Verb::Build(args) => cmd::build::run(&args),
        Verb::Check(args) => cmd::check::run(&args),
        Verb::Compare(args) => cmd::compare::run(&args),
        Verb::Add(args) => cmd::add::run(&args),
        Verb::Remove(args) => cmd::remove::run(&args),
        Verb::Count(args) => cmd::count::run(&args),
        Verb::Get(args) => cmd::get::run(&args),
        Verb::Verify(args) => cmd::verify::run(&args),
        Verb::Merge(args) => cmd::merge::run(&args),
        Verb::Halve(args) => cmd::halve::run(&args),
        Verb::Info(args) => cmd::info::run(&args),
        Verb::Diff(args) => cmd::diff::run(&args),
        Verb::Dedup(args) => cmd::dedup::run(&args),
        Verb::Kinds(args) => cmd::kinds::run(&args),
        Verb::Advise(args) => cmd::advise::run(&args),
        Verb::Bench(args) => cmd::bench::run(&args),
        Verb::Report(args) => cmd::report::run(&args),
        Verb::Completions(args) => cmd::completions::run(&args, Cli::command()),
        Verb::Man(args) => cmd::man::run(&args, Cli::command()),
    };
    result.unwrap_or_else(Failure::report)
}
