//! The table of kinds in the README, between two marks.

use std::fs;

use tamis::{KINDS, KindInfo};

use crate::{Failure, cargo, root};

const START: &str = "<!-- kinds:start -->";
const END: &str = "<!-- kinds:end -->";

/// The table's text as it stands, and where.
fn read() -> Result<(String, std::ops::Range<usize>), Failure> {
    let readme =
        fs::read_to_string(root().join("README.md")).map_err(|e| format!("README.md: {e}"))?;
    let start = readme.find(START).map(|at| at + START.len());
    let end = readme.find(END);
    match (start, end) {
        (Some(start), Some(end)) if start <= end => Ok((readme, start..end)),
        _ => Err(format!("README.md has no table between {START} and {END}")),
    }
}

/// What of a row does not depend on a measurement.
fn fixed_columns(info: &KindInfo) -> String {
    let can = info.capabilities();
    let names = [
        (can.insert, "insert"),
        (can.remove, "remove"),
        (can.count, "count"),
        (can.merge, "merge"),
    ];
    let names: Vec<_> = names
        .iter()
        .filter(|(can, _)| *can)
        .map(|(_, name)| *name)
        .collect();
    let operations = if names.is_empty() {
        "build once".to_string()
    } else {
        names.join(", ")
    };
    format!(
        "| [`{}`](crates/tamis/src/{}) | {} | {operations} |",
        info.name, info.source, info.about
    )
}

/// Fails when a kind is missing from the table or described otherwise than it is; figures may be of another day.
pub(crate) fn check() -> Result<(), Failure> {
    let (readme, range) = read()?;
    let table = &readme[range];
    match KINDS
        .iter()
        .map(fixed_columns)
        .find(|row| !table.contains(row))
    {
        Some(row) => Err(format!(
            "README.md's table of kinds lacks\n  {row}\nrun `cargo xtask tables`"
        )),
        None => Ok(()),
    }
}

/// Measures every kind and writes the table anew.
pub(crate) fn regenerate() -> Result<(), Failure> {
    let (readme, range) = read()?;
    let output = cargo()
        .args([
            "run",
            "--quiet",
            "--release",
            "--package",
            "tamis-bench",
            "--",
            "table",
        ])
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|e| format!("tamis-bench could not be started: {e}"))?;
    if !output.status.success() {
        return Err(format!("`tamis-bench table` failed ({})", output.status));
    }
    // One line per kind: its name, then the measured columns.
    let measured = String::from_utf8_lossy(&output.stdout);
    let mut lines = measured.lines();
    let heads = lines.next().unwrap_or_default();
    let rule = "---|".repeat(3 + heads.matches('|').count());
    let mut table = format!("\n| kind | good for | can |{heads}\n|{rule}\n");
    for (info, columns) in KINDS.iter().zip(lines) {
        table += &format!("{}{columns}\n", fixed_columns(info));
    }
    let written = format!("{}{table}{}", &readme[..range.start], &readme[range.end..]);
    fs::write(root().join("README.md"), written).map_err(|e| format!("README.md: {e}"))?;
    check()
}
