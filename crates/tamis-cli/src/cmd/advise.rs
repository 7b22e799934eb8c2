//! `tamis advise`: which filter for these keys.

use crate::ExitCode;
use std::fmt::Write;

use serde_json::{Value, json};
use tamis::advise::{self, Advice, Choice, Needs, Prefer};

use crate::failure::{self, Failure};
use crate::{output, units};

/// Tell which filter suits, how large it will be, and whether a filter is the right tool at all
///
/// Every kind that someone should choose today is asked, and with --all those of the literature.
/// Those that can do what is needed are ranked by space and speed together (twice the
/// instructions weigh like 15 % more bits, and a lower rate than was asked for counts for half of
/// what it takes), or as --prefer says. Where nothing special is needed, the kind that `tamis
/// build` takes by itself comes first; it is within 15 % of the best. Without --static keys are
/// taken to arrive over time, so the filter must take insertions. Sizes marked ~ are those of a
/// smaller filter, multiplied; lookups and insertions are in instructions of the processor
/// (docs/INSTRUCTIONS.md).
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
  tamis advise --keys 1e6 --fpr 1% --delete
  tamis advise --keys 1e6 --count 1000 --delete
  tamis advise --keys 1e9 --fpr 1e-4 --static --max-memory 2GiB
  tamis advise --keys 1e6 --fpr 0.01 --hit-rate 0.0001")]
pub(crate) struct Args {
    /// How many keys; with --grow a first guess, with --window the last keys that matter
    #[arg(short = 'n', long, value_name = "N", value_parser = units::keys)]
    keys: u64,

    /// The false-positive rate that is acceptable
    #[arg(short = 'e', long, value_name = "RATE", value_parser = units::fpr, allow_negative_numbers = true, default_value_t = tamis::Config::DEFAULT_FPR)]
    fpr: f64,

    /// Keys leave again
    #[arg(long)]
    delete: bool,

    /// Copies of a key are counted, up to this many
    #[arg(long, value_name = "COPIES", num_args = 0..=1, default_missing_value = "10", value_parser = units::keys)]
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
    #[arg(long, value_name = "RATIO", default_value_t = 1.0, value_parser = units::ratio)]
    miss_cost: f64,

    /// The mean length of a key in bytes
    #[arg(long, value_name = "BYTES", value_parser = units::ratio)]
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
        // Whether a filter is the right tool comes before which one.
        for warning in &advice.warnings {
            failure::say(&format!("warning: {warning}"));
        }
        let mut text = table(&advice, args.all);
        if let Some(runner_up) = advice.runner_up(&needs) {
            let _ = writeln!(text, "{runner_up}");
        }
        let (exact, bytes) = (units::show_bytes(exact_bytes(&needs)), key_bytes(&needs));
        let _ = writeln!(
            text,
            "an exact set of keys of {bytes:.0} bytes takes {exact} at least (`tamis check --kind dictionary`)"
        );
        output::write(text.as_bytes())?;
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
        "exact_bytes": exact_bytes(needs),
        "refused": refused.map(|r| json!({ "kind": r.kind.name, "why": r.why })).collect::<Vec<_>>(),
        "warnings": warnings.map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// The length of a key: of a hash, where nothing is said of it.
fn key_bytes(needs: &Needs) -> f64 {
    needs.key_bytes.unwrap_or(8.0)
}

/// What a [`Dictionary`](tamis::Dictionary) of the keys takes at least, to compare with: each key,
/// its length, and a slot of 8 bytes in a table that is full to seven eighths.
fn exact_bytes(needs: &Needs) -> f64 {
    needs.keys as f64 * (key_bytes(needs) + 1.0 + 8.0 / 0.875)
}

/// As many are shown, unless all are asked for.
const BEST: usize = 5;

fn table(advice: &Advice, all: bool) -> String {
    let refused = advice.refused.iter().filter(|_| all).map(|r| r.kind);
    let kinds = advice.choices.iter().map(|c| c.kind).chain(refused);
    let names = kinds.map(|kind| kind.name.len());
    let width = names.max().unwrap_or(0).max("kind".len());
    let mut text = format!(
        "   # {:width$} {:>9} {:>11} {:>10} {:>12} {:>12}  why\n",
        "kind", "bits/key", "size", "rate", "instr/lookup", "instr/insert"
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
        let rate = output::percent(choice.fpr);
        let [lookup, insert] = [choice.lookup, choice.insert]
            .map(|count| count.map_or("-".to_string(), |count| count.to_string()));
        let _ = writeln!(
            text,
            "{:>4} {:width$} {bits:>9} {size:>11} {rate:>10} {lookup:>12} {insert:>12}  {}",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exact_set_takes_what_is_said_of_it_or_twice_that() {
        let mut set = tamis::Dictionary::new();
        for i in 0..100_000 {
            set.insert(format!("{i:020}")).unwrap();
        }
        let mut needs = Needs::new(100_000, 0.01);
        needs.key_bytes = Some(20.0);
        let (least, takes) = (exact_bytes(&needs), set.size_in_bytes() as f64);
        assert!((least..2.0 * least).contains(&takes), "{takes}, {least}");
    }
}
