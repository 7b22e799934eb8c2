//! `cargo xtask test`: everything that can fail.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::{Failure, browser, cargo, python, redis, root, run, succeeds};

pub(crate) fn all() -> Result<(), Failure> {
    let mut parts = Parts::default();
    parts.run("library and program", || {
        run(cargo().args(["test", "--tests"]))
    })?;
    parts.run("documentation", || {
        run(cargo().args(["test", "--workspace", "--doc"]))
    })?;
    parts.run("bench, beside its rivals", || {
        let rest = ["--package", "tamis-bench", "--package", "xtask"];
        run(cargo().args(["test", "--tests"]).args(rest))
    })?;
    parts.run("examples", examples)?;
    parts.run("a reader in Python", python::reader)?;
    parts.run("the package for Python", python::package)?;
    parts.run("the module in Redis and Valkey", redis::test)?;
    parts.run("the report in a browser", browser::check)?;
    parts.run("fuzzing", fuzz_briefly)?;
    parts.tell();
    Ok(())
}

/// What finds most mistakes soonest, for the inner loop.
///
/// Every part selects the same packages, so that features are the same and the library is compiled
/// once for its own tests and once for all others.
pub(crate) fn quick() -> Result<(), Failure> {
    let test = || {
        let mut command = cargo();
        command.args(["test", "--package", "tamis", "--package", "tamis-cli"]);
        command
    };
    let mut parts = Parts::default();
    parts.run("formatting", || {
        run(cargo().args(["fmt", "--all", "--check"]))
    })?;
    parts.run("compiling", || {
        let targets = ["--lib", "--test", "format", "--test", "verbs"];
        run(test().arg("--no-run").args(targets))
    })?;
    parts.run("algorithms", || run(test().arg("--lib")))?;
    parts.run("files", || run(test().args(["--test", "format"])))?;
    parts.run("program", || run(test().args(["--test", "verbs"])))?;
    parts.tell();
    Ok(())
}

/// How long each part took.
#[derive(Default)]
struct Parts(Vec<(&'static str, Duration)>);

impl Parts {
    fn run(
        &mut self,
        name: &'static str,
        part: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let start = Instant::now();
        part()?;
        self.0.push((name, start.elapsed()));
        Ok(())
    }

    fn tell(&self) {
        eprintln!();
        let all: Duration = self.0.iter().map(|(_, took)| *took).sum();
        for (name, took) in self.0.iter().chain([&("all of it", all)]) {
            eprintln!("{:>7.1} s  {name}", took.as_secs_f64());
        }
    }
}

/// The examples check their own claims, so running them is a test.
fn examples() -> Result<(), Failure> {
    let directory = root().join("examples/src/bin");
    let entries =
        std::fs::read_dir(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut names: Vec<_> = entries
        .flatten()
        .filter_map(|e| Some(e.path().file_stem()?.to_os_string()))
        .collect();
    names.sort();
    for name in names {
        run(cargo()
            .args(["run", "--quiet", "--package", "tamis-examples", "--bin"])
            .arg(name))?;
    }
    Ok(())
}

/// Targets and how many inputs each is given: about 20 seconds. The seed is fixed, so that a
/// change is judged by the same inputs each time; to search for new ones, run `cargo +nightly
/// fuzz run` without these limits.
const FUZZ_RUNS: [(&str, u32); 2] = [("ops", 3_000), ("open", 60_000)];

/// Fuzzing needs a nightly compiler. Where there is none the committed corpus has still been
/// replayed, by a test.
fn fuzz_briefly() -> Result<(), Failure> {
    if !succeeds(Command::new("cargo").args(["+nightly", "--version"])) {
        eprintln!(
            "\n── no nightly compiler: the corpus was replayed by a test, nothing new is fuzzed"
        );
        return Ok(());
    }
    let tools = root().join("target/tools");
    if !succeeds(Command::new(tools.join("bin/cargo-fuzz")).args(["fuzz", "--version"])) {
        run(cargo()
            .args(["install", "--locked", "cargo-fuzz", "--root"])
            .arg(&tools))?;
    }
    for (target, runs) in FUZZ_RUNS {
        // `+nightly` is rustup's; the cargo that runs this would not understand it.
        let mut fuzz = Command::new("cargo");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let paths = std::iter::once(tools.join("bin")).chain(std::env::split_paths(&path));
        fuzz.env(
            "PATH",
            std::env::join_paths(paths).map_err(|e| e.to_string())?,
        );
        for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
            fuzz.env_remove(variable);
        }
        let corpus = root().join("fuzz/corpus").join(target);
        // New inputs go to a fresh scratch directory; the committed corpus is only read.
        let scratch = root().join("target/fuzz-corpus").join(target);
        let _ = std::fs::remove_dir_all(&scratch);
        std::fs::create_dir_all(&scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
        fuzz.args(["+nightly", "fuzz", "run", "--fuzz-dir", "fuzz", target])
            .arg(scratch)
            .arg(corpus);
        fuzz.args([
            "--",
            &format!("-runs={runs}"),
            "-seed=1",
            "-print_final_stats=1",
        ]);
        run(fuzz.current_dir(root()))?;
    }
    Ok(())
}
