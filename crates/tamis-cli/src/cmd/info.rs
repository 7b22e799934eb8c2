//! `tamis info`: what a filter file says of itself.

use crate::ExitCode;
use std::io::Write;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use tamis::{AnyFilter, HashCompaction, Keyed, ParamValue};

use crate::failure::Failure;
use crate::input::{Source, in_json, in_words};
use crate::secret::SecretArgs;
use crate::{health, output};

/// Tell what is in a filter file, and whether it is in good health
///
/// The whole file is verified. Bits per key are those of the file; the fill is the share of its
/// capacity that a filter holds. The omission of a `hash_compaction` is the probability that it
/// took a key for one that it held, and so left it out.
#[derive(clap::Args)]
#[command(before_help = "Examples:
  tamis info blocklist.tamis
  tamis info blocklist.tamis --json | jq .bits_per_key")]
pub(crate) struct Args {
    /// The filter file; - for standard input
    file: PathBuf,

    #[command(flatten)]
    secret: SecretArgs,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let source = Source::open(Some(&args.file))?;
    let (name, file) = (source.name.clone(), source.name_as_data());
    let keyed = source.filter(args.secret.known()?.as_ref())?;
    let warnings = health::warnings(&keyed);
    let hashing = keyed.hashing();
    let (keys, bytes) = (keyed.len(), keyed.file_len());
    let bits_per_key = output::bits_per_key(bytes, keys);
    let fill = keyed.fill();

    if args.json {
        let shape: Map<String, Value> = keyed
            .params()
            .into_iter()
            .map(|(name, value)| {
                let value = match value {
                    ParamValue::Whole(value) => value.into(),
                    ParamValue::Real(value) => value.into(),
                    // A form that this program does not know yet.
                    other => other.to_string().into(),
                };
                (name.to_string(), value)
            })
            .collect();
        output::json(&json!({
            "file": name,
            "kind": keyed.kind().name,
            "keys": keys,
            "capacity": keyed.capacity(),
            "fill": fill,
            "requested_fpr": keyed.requested_fpr(),
            "fpr": keyed.fpr(),
            "omission_probability": omission(&keyed),
            "bytes": bytes,
            "bits_per_key": bits_per_key,
            "shape": shape,
            "hashing": {
                "function": hashing.function(),
                "seed": hashing.seed(),
                "policy": seed_policy(&keyed),
            },
            "key_form": in_json(keyed.key_form(), keyed.key_field()),
            "warnings": warnings,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }

    let shape: Vec<String> = keyed
        .params()
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let seed = match hashing.seed() {
        Some(seed) => format!("seed {seed}"),
        None => "under a secret".to_string(),
    };
    let none = || "-".to_string();
    let mut rows = vec![
        ("kind", keyed.kind().name.to_string()),
        ("keys", keys.to_string()),
        ("capacity", keyed.capacity().to_string()),
        (
            "fill",
            fill.map_or_else(none, |f| format!("{:.1} %", 100.0 * f)),
        ),
        ("requested rate", output::rate(keyed.requested_fpr())),
        ("expected rate", output::rate(keyed.fpr())),
        ("bytes", bytes.to_string()),
        (
            "bits per key",
            bits_per_key.map_or_else(none, |b| b.to_string()),
        ),
        ("shape", shape.join(", ")),
        ("key form", in_words(keyed.key_form(), keyed.key_field())),
        ("hashing", format!("{}, {seed}", hashing.function())),
        ("seed policy", seed_policy(&keyed)),
    ];
    if let Some(omission) = omission(&keyed) {
        rows.push(("omission", output::rate(omission)));
    }
    if warnings.is_empty() {
        rows.push(("health", "good".to_string()));
    }
    rows.extend(warnings.into_iter().map(|warning| ("warning", warning)));
    let mut text = format!("{:<16}", "file").into_bytes();
    text.extend(file);
    text.push(b'\n');
    for (name, value) in rows {
        // Writing to memory does not fail.
        let _ = writeln!(text, "{name:<16}{value}");
    }
    output::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The probability that a key was left out because it seemed to be there, of the kind whose users
/// ask for it.
fn omission(keyed: &Keyed<AnyFilter>) -> Option<f64> {
    let filter = keyed.downcast_ref::<HashCompaction>()?;
    Some(filter.omission_probability())
}

/// Who knows how keys are hashed, and what follows.
fn seed_policy(keyed: &Keyed<AnyFilter>) -> String {
    let hashing = keyed.hashing();
    let (whose, merged) = match hashing.seed() {
        Some(0) => ("the default seed", "filters of all builders"),
        Some(_) => ("a seed of the builder's", "only filters of the same"),
        None if hashing.is_in_files() => {
            return "a secret that this file holds: keep the file private".to_string();
        }
        None => return "a secret that is kept elsewhere".to_string(),
    };
    let merging = match keyed.kind().can.merge {
        true => format!(": {merged} can be merged"),
        false => String::new(),
    };
    format!("{whose}{merging}; not for keys that strangers choose")
}
