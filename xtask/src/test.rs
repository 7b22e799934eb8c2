//! `cargo xtask test`: everything that can fail.

use std::time::{Duration, Instant};

use crate::{Failure, browser, cargo, fuzz, python, redis, root, run};

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
    parts.run("fuzzing", fuzz::briefly)?;
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
