//! docs/INSTRUCTIONS.md: instructions per call, counted by valgrind, which do not depend on the
//! day.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use tamis::KINDS;

use crate::{Failure, cargo, root, run};

const OPERATIONS: [&str; 5] = ["absent", "present", "batch", "insert", "remove"];

/// The function of the bench whose instructions are counted, and after each call of which they
/// are written down.
const COUNTED: &str = "tamis_bench::instructions::counted_calls";

const HEAD: &str = "\
# Instructions per call

How many instructions the processor executes for one call of each kind: lookups of an absent key and of a member by single
calls, lookups of either in a batch (per key), an insertion, and a removal. The filters hold 20 000 keys at 1 %; insertions
are those of the second half of the keys. `cargo xtask instructions` counts them with valgrind's callgrind, which offers
AVX2 and no AVX-512. The loop around the calls is taken off.

Fewer instructions are not always faster: out of cache, lines that are read decide (`cargo run --release -p tamis-bench`).

| kind | absent | present | batch | insert | remove |
|---|---|---|---|---|---|
";

const RIVALS: &str = "
## Rivals

The same of the crates that the bench compares with, through its adapters (`bench/src/rivals.rs`), at 1 % or the next lower
rate that each offers; who offers none is left out. `cuckoo12` is our cuckoo filter with 12 bits, and
`cuckoo_semi_sorted` the one with semi-sorted buckets. A lookup in a binary fuse filter of ours is of one table here; from 8
million keys on it has a shard to find first.

| rival | absent | present | batch | insert | remove |
|---|---|---|---|---|---|
";

/// Fails when a kind is missing from the table; counts may be of an earlier version.
pub(crate) fn check() -> Result<(), Failure> {
    let path = root().join("docs/INSTRUCTIONS.md");
    let table = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    for kind in KINDS {
        let listed = |line: &str| line.starts_with(&format!("| `{}`", kind.name));
        if !table.lines().any(listed) {
            return Err(format!(
                "docs/INSTRUCTIONS.md lacks `{}`: run `cargo xtask instructions`",
                kind.name
            ));
        }
    }
    Ok(())
}

/// Counts, and writes the table anew.
pub(crate) fn regenerate() -> Result<(), Failure> {
    run(cargo().args(["build", "--release", "--package", "tamis-bench"]))?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let program = target.join("release/tamis-bench");
    let dumps = target.join("instructions");
    // Dumps of an earlier count would be mixed up with these.
    let _ = fs::remove_dir_all(&dumps);
    fs::create_dir_all(&dumps).map_err(|e| format!("{}: {e}", dumps.display()))?;
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--quiet"]);
    // By its whole name: dumps heed no wildcard.
    valgrind.args(["toggle-collect", "dump-after"].map(|option| format!("--{option}={COUNTED}")));
    valgrind.arg(format!(
        "--callgrind-out-file={}",
        dumps.join("out").display()
    ));
    valgrind.arg(&program).arg("instructions");
    let output = valgrind.output().map_err(|e| {
        format!("valgrind could not be started: {e}; install Debian's package of that name")
    })?;
    if !output.status.success() {
        return Err(format!(
            "valgrind failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let mut counts: BTreeMap<(String, String), f64> = BTreeMap::new();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    for (i, line) in printed.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let &[kind, operation, calls] = words.as_slice() else {
            return Err(format!("`{line}` is not a kind, an operation and a number"));
        };
        let calls: f64 = calls
            .parse()
            .map_err(|_| format!("`{calls}` is no number"))?;
        let instructions = total(&dumps.join(format!("out.{}", i + 1)))?;
        counts.insert((kind.into(), operation.into()), instructions / calls);
    }
    let count =
        |kind: &str, operation: &str| counts.get(&(kind.to_string(), operation.to_string()));
    let row = |name: &str| {
        let cell = |operation: &&str| {
            let around = count("loop", operation).copied().unwrap_or(0.0);
            let cell = count(name, operation).map(|count| format!("{:.0}", count - around));
            format!(" {} |", cell.unwrap_or_else(|| "–".into()))
        };
        let cells: String = OPERATIONS.iter().map(cell).collect();
        format!("| `{name}` |{cells}\n")
    };
    let table: String = KINDS.iter().map(|kind| row(kind.name)).collect();
    let is_ours = |name: &str| KINDS.iter().any(|kind| kind.name == name);
    let rivals: BTreeSet<&str> = counts.keys().map(|(name, _)| name.as_str()).collect();
    let rivals = rivals
        .into_iter()
        .filter(|name| *name != "loop" && !is_ours(name));
    let rivals: String = rivals.map(row).collect();
    let before = fs::read_to_string(root().join("docs/INSTRUCTIONS.md")).unwrap_or_default();
    for more in grown(&before, &table) {
        println!("{more}");
    }
    // The library advises by the same counts, and cannot read outside its crate.
    for (path, text) in [
        (
            "docs/INSTRUCTIONS.md",
            &format!("{HEAD}{table}{RIVALS}{rivals}"),
        ),
        ("crates/tamis/src/advise/instructions.md", &table),
    ] {
        let path = root().join(path);
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    check()
}

/// What takes a tenth more instructions than a table says, or more than that, as sentences.
fn grown(before: &str, now: &str) -> Vec<String> {
    let cells = |line: &str| -> Vec<String> {
        let cells = line.split('|').map(|cell| cell.trim().to_string());
        cells.filter(|cell| !cell.is_empty()).collect()
    };
    let mut grown = Vec::new();
    for row in now.lines().map(cells) {
        let old = before
            .lines()
            .map(cells)
            .find(|old| old.first() == row.first());
        let pairs = OPERATIONS
            .iter()
            .zip(old.iter().flatten().skip(1).zip(row.iter().skip(1)));
        for (operation, (old, new)) in pairs {
            if let (Ok(old), Ok(new)) = (old.parse::<f64>(), new.parse::<f64>())
                && new > 1.1 * old
            {
                grown.push(format!(
                    "{} {operation}: {old} → {new} instructions",
                    row[0]
                ));
            }
        }
    }
    grown
}

/// The instructions of a dump.
fn total(path: &Path) -> Result<f64, Failure> {
    let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let line = line.or_else(|| text.lines().find_map(|line| line.strip_prefix("summary: ")));
    let total = line.and_then(|line| line.trim().parse().ok());
    total.ok_or(format!("{} has no total", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grew_by_more_than_a_tenth_is_told() {
        let before = "text\n| `bloom` | 36 | 83 | 95 | 94 | – |\n| `gone` | 1 | 1 | 1 | 1 | 1 |\n";
        let now = "| `bloom` | 36 | 92 | 102 | 60 | 7 |\n| `new` | 9 | 9 | 9 | 9 | 9 |\n";
        assert_eq!(
            grown(before, now),
            ["`bloom` present: 83 → 92 instructions"]
        );
        assert!(grown("", now).is_empty() && grown(now, now).is_empty());
    }
}
