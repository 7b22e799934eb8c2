//! The table of kinds in docs/KINDS.md, between two marks, and the README's chart.

use std::fs;

use serde_json::Value;
use tamis::{KINDS, KindInfo, Tier};

use crate::{Failure, cargo, root, run};

const START: &str = "<!-- kinds:start -->";
const END: &str = "<!-- kinds:end -->";
/// The page of the table.
const PAGE: &str = "docs/KINDS.md";
const CHART: &str = "docs/figures/kinds.svg";

/// The table's text as it stands, and where.
fn read() -> Result<(String, std::ops::Range<usize>), Failure> {
    let page = fs::read_to_string(root().join(PAGE)).map_err(|e| format!("{PAGE}: {e}"))?;
    let start = page.find(START).map(|at| at + START.len());
    let end = page.find(END);
    match (start, end) {
        (Some(start), Some(end)) if start <= end => Ok((page, start..end)),
        _ => Err(format!("{PAGE} has no table between {START} and {END}")),
    }
}

/// What of a row does not depend on a measurement.
fn fixed_columns(info: &KindInfo) -> String {
    let named = info.can.named().into_iter();
    let can: Vec<_> = named
        .filter(|(_, can)| *can)
        .map(|(name, _)| name)
        .collect();
    let can = match can.is_empty() {
        true => "build once".to_string(),
        false => can.join(", "),
    };
    let tier = match info.tier {
        Tier::Core => "**core**",
        Tier::Study => "study",
    };
    let KindInfo {
        name,
        source,
        about,
        ..
    } = info;
    format!("| [`{name}`](../crates/tamis/src/{source}) | {tier} | {about} | {can} |")
}

/// Fails when a kind is missing from the table or the chart, or described otherwise than it is;
/// figures may be of another day.
pub(crate) fn check() -> Result<(), Failure> {
    let (page, range) = read()?;
    let table = &page[range];
    let readme =
        fs::read_to_string(root().join("README.md")).map_err(|e| format!("README.md: {e}"))?;
    if !readme.contains(CHART) {
        return Err(format!("README.md does not show {CHART}"));
    }
    let chart = fs::read_to_string(root().join(CHART)).map_err(|e| format!("{CHART}: {e}"))?;
    let drawn = |kind: &&KindInfo| chart.contains(&format!(">{}</text>", kind.name));
    if let Some(kind) = KINDS.iter().find(|kind| !drawn(kind)) {
        let name = kind.name;
        return Err(format!("{CHART} lacks `{name}`: run `cargo xtask tables`"));
    }
    match KINDS
        .iter()
        .map(fixed_columns)
        .find(|row| !table.contains(row))
    {
        Some(row) => Err(format!("{PAGE} lacks\n  {row}\nrun `cargo xtask tables`")),
        None => Ok(()),
    }
}

/// Measures every kind, with rivals beside them, and writes the table and the chart anew.
pub(crate) fn regenerate() -> Result<(), Failure> {
    let (page, range) = read()?;
    let json = root().join("target/table.json");
    let program = [
        "run",
        "--quiet",
        "--release",
        "--package",
        "tamis-bench",
        "--",
    ];
    let mut bench = cargo();
    bench
        .args(program)
        .args(["run", "--n", "1000000", "--fpr", "0.01"]);
    run(bench.args(["--rounds", "7", "--json"]).arg(&json))?;
    let mut report = cargo();
    report.args(program).arg("report").arg(&json);
    report.arg("--html").arg(root().join("target/table.html"));
    run(report.arg("--svg").arg(root().join(CHART)))?;
    let text = fs::read_to_string(&json).map_err(|e| format!("{}: {e}", json.display()))?;
    let measured: Value =
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", json.display()))?;

    let mut table = String::from(
        "\n| kind | tier | good for | can | bits/key | measured rate | ns, single | ns, batch |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for info in KINDS {
        let of_kind = |row: &&Value| row["subject"] == info.name;
        let row = measured["rows"]
            .as_array()
            .and_then(|rows| rows.iter().find(of_kind));
        let median = |figure: &str| row?["figures"][figure]["median"].as_f64();
        let figures = [
            median("bits"),
            median("fpr"),
            median("absent"),
            median("absent_batch"),
        ];
        let [Some(bits), Some(fpr), Some(single), Some(batch)] = figures else {
            return Err(format!("{} has no row for `{}`", json.display(), info.name));
        };
        let rate = match 100.0 * fpr {
            0.0 => "none in the sample".to_string(),
            percent if percent < 0.1 => format!("{percent:.4} %"),
            percent => format!("{percent:.2} %"),
        };
        table += &format!(
            "{} {bits:.2} | {rate} | {single:.1} | {batch:.1} |\n",
            fixed_columns(info)
        );
    }
    let written = format!("{}{table}{}", &page[..range.start], &page[range.end..]);
    fs::write(root().join(PAGE), written).map_err(|e| format!("{PAGE}: {e}"))?;
    check()
}
