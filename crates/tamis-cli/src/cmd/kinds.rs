//! `tamis kinds`: which filters there are, and what each can do; or all that is known of one.

mod essay;

use crate::ExitCode;
use std::fmt::Write;

use serde_json::{Value, json};
use tamis::{KINDS, KindInfo, Param, Tier};

use crate::failure::Failure;
use crate::output;

/// List the kinds of filters, what each can do, and its parameters; or tell all of one
///
/// Those to choose from today are listed; --all adds those of the literature. With NAME one kind is
/// told of: what it is, what it can do, its parameters, the drawing of its memory, what it costs,
/// when to choose it, and who thought of it.
///
/// Every kind is built from keys and looked up. Some also insert keys later, remove them, count
/// how often a key was inserted (up to so many copies, or all), merge with another filter, grow
/// beyond their capacity at the same rate, halve their size, know a value for each key (map), or
/// hold a window: the last keys only.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis kinds
  tamis kinds cuckoo                                what it is, and when to choose it
  tamis kinds --all --json | jq -r '.[] | select(.remove) | .kind'")]
pub(crate) struct Args {
    /// A kind to tell of, by its name or its type in Rust, in small letters or capitals
    name: Option<String>,

    /// List also the kinds of the literature
    #[arg(long, conflicts_with = "name")]
    all: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Some(name) = &args.name {
        let called = KINDS.iter().find(|kind| kind.is_called(name));
        let kind = called.map_or_else(|| tamis::kind(name), Ok);
        let kind = kind.map_err(|e| Failure::usage("kinds", e))?;
        match args.json {
            true => {
                let mut json = as_json(kind);
                json["essay"] = kind.essay().into();
                output::json(&json)?;
            }
            false => output::write(whole(kind).as_bytes())?,
        }
        return Ok(ExitCode::SUCCESS);
    }
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
        "copies": (kind.copies < u64::MAX).then_some(kind.copies),
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

/// All that is known of a kind, for people.
fn whole(kind: &KindInfo) -> String {
    let named = kind.can.named();
    let mut can: Vec<String> = Vec::new();
    for (name, _) in named.into_iter().filter(|(_, can)| *can) {
        can.push(match (name, kind.copies) {
            ("count", u64::MAX) => "count without a limit".to_string(),
            ("count", copies) => format!("count to {copies}"),
            ("map", _) => "know a value for each key".to_string(),
            ("window", _) => "forget all but the last keys".to_string(),
            _ => name.to_string(),
        });
    }
    if can.is_empty() {
        can.push("nothing but look keys up: it is built once".to_string());
    }
    let tier = match kind.tier {
        Tier::Core => "core: one to choose today",
        Tier::Study => "study: of the literature, to compare with",
    };
    let mut text = format!("{}: {}\n\n", kind.name, kind.about);
    for (what, value) in [
        ("can", can.join(", ")),
        ("tier", tier.to_string()),
        ("type", format!("tamis::{}", kind.type_name)),
        ("source", format!("crates/tamis/src/{}", kind.source)),
    ] {
        // Writing to memory does not fail.
        let _ = writeln!(text, "  {what:<8}{value}");
    }
    let _ = writeln!(
        text,
        "\nParameters of --kind {}:…, beside capacity= and fpr=",
        kind.name
    );
    if kind.params.is_empty() {
        let _ = writeln!(text, "  none");
    }
    for Param {
        name,
        values,
        default,
        about,
        ..
    } in kind.params
    {
        let _ = writeln!(text, "  {name}=  {about} ({values}; default: {default})");
    }
    text + "\n" + &essay::plain(&kind.essay())
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
            u64::MAX => "all".to_string(),
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
