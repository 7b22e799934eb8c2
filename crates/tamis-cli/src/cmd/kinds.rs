//! `tamis kinds`: which filters there are, and what each can do.

use std::fmt::Write;
use std::process::ExitCode;

use serde_json::{Value, json};
use tamis::{KINDS, KindInfo};

use crate::failure::Failure;
use crate::output;

/// List the kinds of filters, what each can do, and its parameters
///
/// Every kind is built from keys and looked up. Some also insert keys later, remove them, count how often a key was
/// inserted, or merge with another filter.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis kinds
  tamis kinds --json | jq -r '.[] | select(.remove) | .kind'")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.json {
        output::json(&KINDS.iter().map(as_json).collect())?;
    } else {
        output::write(table().as_bytes())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(kind: &KindInfo) -> Value {
    let can = kind.capabilities();
    let params: Value = kind
        .params
        .iter()
        .map(|param| json!({ "name": param.name, "about": param.about }))
        .collect();
    json!({
        "kind": kind.name,
        "about": kind.about,
        "insert": can.insert,
        "remove": can.remove,
        "count": can.count,
        "merge": can.merge,
        "parameters": params,
    })
}

fn table() -> String {
    let width = KINDS.iter().map(|k| k.name.len()).max().unwrap_or(0);
    let mut text = format!("{:width$}  insert remove count merge  about\n", "kind");
    for kind in KINDS {
        let can = kind.capabilities();
        let [insert, remove, count, merge] =
            [can.insert, can.remove, can.count, can.merge].map(|can| if can { "yes" } else { "-" });
        // Writing to memory does not fail.
        let _ = writeln!(
            text,
            "{:width$}  {insert:6} {remove:6} {count:5} {merge:5}  {}",
            kind.name, kind.about
        );
        for param in kind.params {
            let _ = writeln!(text, "{:width$}    {}=  {}", "", param.name, param.about);
        }
    }
    text
}
