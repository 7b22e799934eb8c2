//! `cargo xtask test`: everything that can fail.

use std::time::{Duration, Instant};

use crate::{Failure, browser, cargo, fuzz, nightly_tools, platforms, python, redis, root, run};

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
    parts.run_with("other machines", platforms::tools, platforms::brief)?;
    parts.run_with("fuzzing", nightly_tools, fuzz::briefly)?;
    parts.tell();
    tell_levels();
    Ok(())
}

/// Which instructions the tests ran with: all that this processor has.
fn tell_levels() {
    for (level, is_there) in tamis::testing::levels() {
        let outcome = match is_there {
            true => "ran",
            false => "was compiled but did NOT run: this processor lacks it",
        };
        eprintln!("code for {level} {outcome}");
    }
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

/// How long each part took, and which were skipped for want of a tool.
#[derive(Default)]
struct Parts {
    done: Vec<(&'static str, Duration)>,
    skipped: Vec<(&'static str, Failure)>,
}

impl Parts {
    fn run(
        &mut self,
        name: &'static str,
        part: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let start = Instant::now();
        part()?;
        self.done.push((name, start.elapsed()));
        Ok(())
    }

    /// Runs a part that needs tools. Where they cannot be had it is skipped, loudly; but not where
    /// `CI` is set.
    fn run_with(
        &mut self,
        name: &'static str,
        tools: impl FnOnce() -> Result<(), Failure>,
        part: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match tools() {
            Ok(()) => self.run(name, part),
            Err(failure) if std::env::var_os("CI").is_some() => Err(failure),
            Err(failure) => {
                eprintln!("\n████ SKIPPED: {name}: {failure}");
                self.skipped.push((name, failure));
                Ok(())
            }
        }
    }

    fn tell(&self) {
        eprintln!();
        let all: Duration = self.done.iter().map(|(_, took)| *took).sum();
        for (name, took) in self.done.iter().chain([&("all of it", all)]) {
            eprintln!("{:>7.1} s  {name}", took.as_secs_f64());
        }
        for (name, why) in &self.skipped {
            eprintln!("  SKIPPED  {name}: {why}");
        }
        eprintln!("{:>7}    parts skipped", self.skipped.len());
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
