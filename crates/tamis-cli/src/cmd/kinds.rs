//! `tamis kinds`: which filters there are, and what each can do.

use std::fmt::Write;
use std::process::ExitCode;

use serde_json::{Value, json};
use tamis::{KINDS, KindInfo, Param, Tier};

use crate::failure::Failure;
use crate::output;

/// List the kinds of filters, what each can do, and its parameters
///
/// Those to choose from today are listed; --all adds those of the literature.
///
/// Every kind is built from keys and looked up. Some also insert keys later, remove them, count
/// how often a key was inserted (up to so many copies), merge with another filter, grow beyond
/// their capacity at the same rate, halve their size, know a value for each key (map), or
/// hold a window: the last keys only.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis kinds
  tamis kinds --all --json | jq -r '.[] | select(.remove) | .kind'")]
pub(crate) struct Args {
    /// List also the kinds of the literature
    #[arg(long)]
    all: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let listed = |kind: &&KindInfo| args.all || kind.tier == Tier::Core;
    let kinds: Vec<&KindInfo> = KINDS.iter().filter(listed).collect();
    if args.json {
        output::json(&kinds.into_iter().map(as_json).collect())?;
    } else {
        output::write(table(&kinds).as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(kind: &KindInfo) -> Value {
    let can = kind.can;
    let params: Value = kind.params.iter().map(param_as_json).collect();
    json!({
        "kind": kind.name,
        "about": kind.about,
        "source": kind.source,
        "core": kind.tier == Tier::Core,
        "insert": can.insert,
        "remove": can.remove,
        "count": can.count,
        "copies": kind.copies,
        "merge": can.merge,
        "grow": can.grow,
        "halve": can.halve,
        "map": can.map,
        "window": can.window,
        "parameters": params,
    })
}

fn param_as_json(param: &Param) -> Value {
    json!({
        "name": param.name,
        "values": param.values,
        "default": param.default,
        "about": param.about,
    })
}

fn table(kinds: &[&KindInfo]) -> String {
    let width = kinds.iter().map(|k| k.name.len()).max().unwrap_or(0);
    let mut text = format!(
        "{:width$}  insert remove count merge grow halve map window  about\n",
        "kind"
    );
    for kind in kinds {
        let can = kind.can;
        let [insert, remove, merge, grow, halve, map, window] = [
            can.insert, can.remove, can.merge, can.grow, can.halve, can.map, can.window,
        ]
        .map(|can| if can { "yes" } else { "-" });
        let count = match kind.copies {
            0 => "-".to_string(),
            copies => copies.to_string(),
        };
        // Writing to memory does not fail.
        let _ = writeln!(
            text,
            "{:width$}  {insert:6} {remove:6} {count:5} {merge:5} {grow:4} {halve:5} {map:3} {window:6}  {}",
            kind.name, kind.about
        );
        for param in kind.params {
            let Param {
                name,
                values,
                default,
                about,
                ..
            } = param;
            let _ = writeln!(
                text,
                "{:width$}    {name}=  {about} ({values}; default: {default})",
                ""
            );
        }
    }
    text
}
