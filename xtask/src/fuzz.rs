//! `cargo xtask fuzz`: inputs that nobody would think of.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Failure, cargo, root, run, succeeds};

/// Targets, and how many inputs each is given where it must be brief: about 25 seconds together.
const TARGETS: [(&str, u64); 4] = [
    ("ops", 3_000),
    ("open", 60_000),
    ("readers", 5_000),
    ("texts", 50_000),
];

/// The seed is fixed, so that a change is judged by the same inputs each time. Fuzzing needs a
/// nightly compiler; where there is none the committed corpus has still been replayed, by tests.
pub(crate) fn briefly() -> Result<(), Failure> {
    if !has_nightly() {
        eprintln!(
            "\n── no nightly compiler: the corpus was replayed by tests, nothing new is fuzzed"
        );
        return Ok(());
    }
    let tools = tools()?;
    for (target, runs) in TARGETS {
        let found = scratch("brief", target);
        // What an earlier run found would change what this one does.
        let _ = std::fs::remove_dir_all(&found);
        fuzz(
            &tools,
            target,
            &found,
            &[format!("-runs={runs}"), "-seed=1".to_string()],
        )?;
    }
    Ok(())
}

/// Searches for so long with each target, on from where the last search ended, and tells how many
/// inputs were tried.
pub(crate) fn search(seconds: u64) -> Result<(), Failure> {
    if !has_nightly() {
        return Err("fuzzing needs a nightly compiler: `rustup toolchain install nightly`".into());
    }
    let tools = tools()?;
    let limit = [format!("-max_total_time={seconds}")];
    let mut tried = Vec::new();
    for (target, _) in TARGETS {
        tried.push((
            target,
            fuzz(&tools, target, &scratch("search", target), &limit)?,
        ));
    }
    eprintln!();
    let all: u64 = tried.iter().map(|(_, inputs)| inputs).sum();
    for (target, inputs) in tried.iter().chain([&("all of them", all)]) {
        eprintln!("{inputs:>12} inputs  {target}");
    }
    Ok(())
}

fn has_nightly() -> bool {
    succeeds(Command::new("cargo").args(["+nightly", "--version"]))
}

/// Where cargo-fuzz is, which is installed if it is not there.
fn tools() -> Result<PathBuf, Failure> {
    let tools = root().join("target/tools");
    if !succeeds(Command::new(tools.join("bin/cargo-fuzz")).args(["fuzz", "--version"])) {
        run(cargo()
            .args(["install", "--locked", "cargo-fuzz", "--root"])
            .arg(&tools))?;
    }
    Ok(tools)
}

/// Where new inputs go; the committed corpus is only read.
fn scratch(what: &str, target: &str) -> PathBuf {
    root().join("target/fuzz-corpus").join(what).join(target)
}

/// Runs a target, and returns how many inputs it was given.
fn fuzz(tools: &Path, target: &str, found: &Path, limits: &[String]) -> Result<u64, Failure> {
    std::fs::create_dir_all(found).map_err(|e| format!("{}: {e}", found.display()))?;
    // `+nightly` is rustup's; the cargo that runs this would not understand it.
    let mut command = Command::new("cargo");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(tools.join("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(paths).map_err(|e| e.to_string())?;
    command.env("PATH", path).current_dir(root());
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
        command.env_remove(variable);
    }
    command.args(["+nightly", "fuzz", "run", "--fuzz-dir", "fuzz", target]);
    command
        .arg(found)
        .arg(root().join("fuzz/corpus").join(target));
    // An input that takes so long has met a loop.
    command
        .args(["--", "-print_final_stats=1", "-timeout=60"])
        .args(limits);
    eprintln!("\n── {command:?}");
    let told = |e| format!("fuzzing {target}: {e}");
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(told)?;
    let mut inputs = None;
    for line in child
        .stderr
        .take()
        .into_iter()
        .flat_map(|talk| BufReader::new(talk).lines())
    {
        let line = line.map_err(told)?;
        eprintln!("{line}");
        let number = line.strip_prefix("stat::number_of_executed_units:");
        inputs = number
            .and_then(|number| number.trim().parse().ok())
            .or(inputs);
    }
    match child.wait().map_err(told)?.success() {
        true => inputs.ok_or_else(|| format!("fuzzing {target}: no number of inputs was told")),
        false => Err(format!(
            "fuzzing {target} failed; the input is in fuzz/artifacts/{target}"
        )),
    }
}
