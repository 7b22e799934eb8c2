//! The program `tamis`: build, check and inspect approximate-membership filters.
//!
//! Data goes to standard output, talk to standard error. Exit codes are grep's, with two more: 0
//! some record passed or all went well, 1 none did, 2 usage, 3 a damaged filter file, 4 input or
//! output failed.

mod ask;
mod change;
mod choice;
mod clock;
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
mod units;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::failure::Failure;

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
  tamis dedup visits.txt                          each line once",
    after_help = "Exit codes:
  0  done; check, dedup: some record passed
  1  check, dedup: no record passed; remove, count: no key was held; get: none has a value;
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

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Build(args) => cmd::build::run(&args),
        Verb::Check(args) => cmd::check::run(&args),
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
