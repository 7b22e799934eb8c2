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
/// inserted (up to so many copies), merge with another filter, grow beyond their capacity at the same rate, fold to half
/// their size, or hold a window: the last keys only. What a kind can do is found out by trying.
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
        "source": kind.source,
        "insert": can.insert,
        "remove": can.remove,
        "count": can.count,
        "copies": kind.copies(),
        "merge": can.merge,
        "grow": kind.grows(),
        "fold": kind.halves(),
        "window": kind.window,
        "parameters": params,
    })
}

fn table() -> String {
    let width = KINDS.iter().map(|k| k.name.len()).max().unwrap_or(0);
    let mut text = format!(
        "{:width$}  insert remove count merge grow fold window  about\n",
        "kind"
    );
    for kind in KINDS {
        let can = kind.capabilities();
        let [insert, remove, merge, grow, fold, window] = [
            can.insert,
            can.remove,
            can.merge,
            kind.grows(),
            kind.halves(),
            kind.window,
        ]
        .map(|can| if can { "yes" } else { "-" });
        // As many copies were tried; more may go.
        let count = match kind.copies() {
            0 => "-".to_string(),
            300.. => "300+".to_string(),
            copies => copies.to_string(),
        };
        // Writing to memory does not fail.
        let _ = writeln!(
            text,
            "{:width$}  {insert:6} {remove:6} {count:5} {merge:5} {grow:4} {fold:4} {window:6}  {}",
            kind.name, kind.about
        );
        for param in kind.params {
            let _ = writeln!(text, "{:width$}    {}=  {}", "", param.name, param.about);
        }
    }
    text
}
