//! `tamis info`: what a filter file says of itself.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use tamis::{AnyFilter, Filter, Keyed, ParamValue};

use crate::failure::Failure;
use crate::input::Source;
use crate::output;
use crate::target::SCATTER;

/// Tell what is in a filter file, and whether it is in good health
///
/// The whole file is verified. Bits per key are those of the file.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis info blocklist.tamis
  tamis info blocklist.tamis --json | jq .bits_per_key")]
pub(crate) struct Args {
    /// The filter file; - for standard input
    file: PathBuf,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let source = Source::open(Some(&args.file))?;
    let name = source.name.clone();
    let keyed = source.filter()?;
    let warnings = warnings(&keyed);
    let (filter, hashing) = (keyed.filter(), keyed.hashing());
    let (keys, bytes) = (filter.len(), keyed.file_len());
    let bits_per_key = output::bits_per_key(bytes, keys);

    if args.json {
        let shape: Map<String, Value> = filter
            .params()
            .into_iter()
            .map(|(name, value)| {
                let value = match value {
                    ParamValue::Whole(value) => value.into(),
                    ParamValue::Real(value) => value.into(),
                };
                (name.to_string(), value)
            })
            .collect();
        output::json(&json!({
            "file": name,
            "kind": filter.name(),
            "keys": keys,
            "capacity": keyed.capacity(),
            "requested_fpr": keyed.requested_fpr(),
            "fpr": filter.fpr(),
            "bytes": bytes,
            "bits_per_key": bits_per_key,
            "shape": shape,
            "hashing": { "function": hashing.function(), "seed": hashing.seed() },
            "warnings": warnings,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }

    let shape: Vec<String> = filter
        .params()
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let seed = match hashing.seed() {
        Some(seed) => format!("seed {seed}"),
        None => "under a secret".to_string(),
    };
    let mut rows = vec![
        ("file", name),
        ("kind", filter.name().to_string()),
        ("keys", keys.to_string()),
        ("capacity", keyed.capacity().to_string()),
        ("requested rate", output::rate(keyed.requested_fpr())),
        ("expected rate", output::rate(filter.fpr())),
        ("bytes", bytes.to_string()),
        (
            "bits per key",
            bits_per_key.map_or("-".to_string(), |b| b.to_string()),
        ),
        ("shape", shape.join(", ")),
        ("hashing", format!("{}, {seed}", hashing.function())),
    ];
    if warnings.is_empty() {
        rows.push(("health", "good".to_string()));
    }
    rows.extend(warnings.into_iter().map(|warning| ("warning", warning)));
    let mut text = String::new();
    for (name, value) in rows {
        // Writing to memory does not fail.
        let _ = writeln!(text, "{name:<16}{value}");
    }
    output::write(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// What the owner of the filter should know. A kind that grows, or that forgets, holds more keys than it was made for and
/// keeps its rate: only where the rate has suffered is the number of keys at fault.
fn warnings(keyed: &Keyed<AnyFilter>) -> Vec<String> {
    let (keys, capacity) = (keyed.filter().len(), keyed.capacity());
    let (now, requested) = (keyed.filter().fpr(), keyed.requested_fpr());
    if now <= SCATTER * requested {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    if keys > capacity {
        warnings.push(format!(
            "over capacity: it was made for {capacity} keys and holds {keys}; build a larger one"
        ));
    }
    warnings.push(format!(
        "false positives: {} are expected now, {} were asked for; build a larger one",
        output::rate(now),
        output::rate(requested)
    ));
    warnings
}
