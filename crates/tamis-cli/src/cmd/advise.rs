//! `tamis advise`: which filter for these keys.

use std::fmt::Write;
use std::process::ExitCode;

use serde_json::{Value, json};
use tamis::advise::{self, Advice, Choice, Needs, Prefer};

use crate::failure::{self, Failure};
use crate::{output, units};

/// Tell which filter suits, how large it will be, and whether a filter is the right tool at all
///
/// Every kind that someone should choose today is asked, and with --all those of the literature.
/// Those that can do what is needed are ranked by space and speed together (twice the
/// instructions weigh like 15 % more bits, and a lower rate than was asked for counts for half of
/// what it takes), or as --prefer says. Without --static keys are taken to arrive over time, so
/// the filter must take insertions. Sizes marked ~ are those of a smaller filter, multiplied.
///
/// With --max-memory the kinds that fit are ranked; where none has the rate, the lowest rates
/// that fit are told.
///
/// The Bloom paradox: where fewer lookups ask for members than are answered with a false "yes",
/// most answers "yes" are false. --hit-rate tells how many do.
///
/// Exit code 0 if a kind suits, 1 if none does.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis advise --keys 10M --fpr 0.001
  tamis advise --keys 1e6 --fpr 0.01 --delete
  tamis advise --keys 1e9 --fpr 1e-4 --static --max-memory 2GiB
  tamis advise --keys 1e6 --fpr 0.01 --hit-rate 0.0001")]
pub(crate) struct Args {
    /// How many keys; with --grow a first guess, with --window the last keys that matter
    #[arg(short = 'n', long, value_name = "N", value_parser = units::keys)]
    keys: u64,

    /// The false-positive rate that is acceptable
    #[arg(short = 'e', long, value_name = "RATE", default_value_t = tamis::Config::DEFAULT_FPR)]
    fpr: f64,

    /// Keys leave again
    #[arg(long)]
    delete: bool,

    /// Copies of a key are counted, up to this many
    #[arg(long, value_name = "COPIES", num_args = 0..=1, require_equals = true, default_missing_value = "10")]
    count: Option<u64>,

    /// The number of keys is not known in advance
    #[arg(long, conflicts_with = "window")]
    grow: bool,

    /// The set is complete when the filter is built
    #[arg(long = "static", conflicts_with_all = ["grow", "window"])]
    fixed: bool,

    /// Filters are united
    #[arg(long)]
    merge: bool,

    /// Filters are halved (`tamis halve`)
    #[arg(long)]
    halve: bool,

    /// Each key has a value (`tamis get`); maps are built once
    #[arg(long, conflicts_with_all = ["grow", "window"])]
    map: bool,

    /// Only the last keys matter
    #[arg(long)]
    window: bool,

    /// The most memory that it may take, such as 64MiB
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    max_memory: Option<u64>,

    /// The share of lookups that ask for members, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = units::share)]
    hit_rate: Option<f64>,

    /// How many times worse it is to miss a member than to let a stranger through
    #[arg(long, value_name = "RATIO", default_value_t = 1.0)]
    miss_cost: f64,

    /// The mean length of a key in bytes
    #[arg(long, value_name = "BYTES")]
    key_bytes: Option<f64>,

    /// What to rank by
    #[arg(long, value_name = "WHAT", default_value = "balance")]
    prefer: Preference,

    /// Consider also the kinds of the literature, tell all that suit, and why others do not
    #[arg(long)]
    all: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Preference {
    /// Space and speed together
    Balance,
    /// The fewest bits
    Space,
    /// The fewest instructions
    Speed,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let needs = needs(args);
    let advice = advise::advise(&needs).map_err(|e| Failure::usage("advise", e))?;
    if args.json {
        output::json(&as_json(&advice, &needs))?;
    } else {
        let mut text = table(&advice, args.all);
        if let Some(runner_up) = advice.runner_up(&needs) {
            let _ = writeln!(text, "{runner_up}");
        }
        output::write(text.as_bytes())?;
        for warning in &advice.warnings {
            failure::say(&format!("warning: {warning}"));
        }
    }
    Ok(ExitCode::from(u8::from(advice.choices.is_empty())))
}

fn needs(args: &Args) -> Needs {
    let mut needs = Needs::new(args.keys, args.fpr);
    needs.fixed = args.fixed;
    needs.remove = args.delete;
    needs.copies = args.count.unwrap_or(0);
    needs.merge = args.merge;
    needs.halve = args.halve;
    needs.map = args.map;
    needs.grow = args.grow;
    needs.window = args.window;
    needs.most_bytes = args.max_memory;
    needs.hit_rate = args.hit_rate;
    needs.miss_cost = args.miss_cost;
    needs.key_bytes = args.key_bytes;
    needs.all = args.all;
    needs.prefer = match args.prefer {
        Preference::Balance => Prefer::Balance,
        Preference::Space => Prefer::Space,
        Preference::Speed => Prefer::Speed,
    };
    needs
}

fn as_json(advice: &Advice, needs: &Needs) -> Value {
    let choice = |choice: &Choice| {
        json!({
            "kind": choice.kind.name,
            "config": choice.config.to_string(),
            "bits_per_key": choice.bits_per_key,
            "bytes": choice.bytes,
            "exact": choice.exact,
            "fpr": choice.fpr,
            "lookup_instructions": choice.lookup,
            "insert_instructions": choice.insert,
            "why": choice.why,
        })
    };
    let refused = advice.refused.iter();
    let warnings = advice.warnings.iter();
    json!({
        "choices": advice.choices.iter().map(choice).collect::<Vec<_>>(),
        "runner_up": advice.runner_up(needs),
        "refused": refused.map(|r| json!({ "kind": r.kind.name, "why": r.why })).collect::<Vec<_>>(),
        "warnings": warnings.map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// As many are shown, unless all are asked for.
const BEST: usize = 5;

fn table(advice: &Advice, all: bool) -> String {
    let chosen = advice.choices.iter().map(|c| c.kind.name.len());
    let width = chosen.max().unwrap_or(0).max("kind".len());
    let mut text = format!(
        "   # {:width$} {:>9} {:>11} {:>9} {:>7} {:>7}  why\n",
        "kind", "bits/key", "size", "rate", "lookup", "insert"
    );
    // Writing to memory does not fail.
    let shown = if all { usize::MAX } else { BEST };
    for (i, choice) in advice.choices.iter().take(shown).enumerate() {
        let bits = format!(
            "{}{:.2}",
            if choice.exact { "" } else { "~" },
            choice.bits_per_key
        );
        let size = units::show_bytes(choice.bytes);
        let rate = format!("{:.3}%", 100.0 * choice.fpr);
        let rate = if choice.fpr < 1e-5 {
            format!("{:.1e}", choice.fpr)
        } else {
            rate
        };
        let [lookup, insert] = [choice.lookup, choice.insert]
            .map(|count| count.map_or("-".to_string(), |count| count.to_string()));
        let _ = writeln!(
            text,
            "{:>4} {:width$} {bits:>9} {size:>11} {rate:>9} {lookup:>7} {insert:>7}  {}",
            i + 1,
            choice.kind.name,
            choice.why
        );
    }
    if all {
        for refused in &advice.refused {
            let _ = writeln!(text, "   - {:width$} {}", refused.kind.name, refused.why);
        }
    }
    text
}
