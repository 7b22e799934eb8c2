//! `cargo xtask test`: everything that can fail.

use std::process::Command;

use crate::{Failure, browser, cargo, python, root, run, succeeds};

pub(crate) fn all() -> Result<(), Failure> {
    rust_tests()?;
    examples()?;
    python_reader()?;
    browser::check()?;
    fuzz_briefly()
}

fn rust_tests() -> Result<(), Failure> {
    run(cargo().args(["test", "--workspace", "--all-targets"]))?;
    run(cargo().args(["test", "--workspace", "--doc"]))
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

/// The reader that was written from docs/FORMAT.md alone opens the golden files and answers as they say.
fn python_reader() -> Result<(), Failure> {
    let tests = root().join("crates/tamis/tests");
    let python = python::with_xxhash()?;
    run(Command::new(python)
        .arg(tests.join("reader.py"))
        .arg(tests.join("golden")))
}

/// Targets and how many inputs each is given: about 20 seconds. The seed is fixed, so that a change is judged by the same
/// inputs each time; to search for new ones, run `cargo +nightly fuzz run` without these limits.
const FUZZ_RUNS: [(&str, u32); 2] = [("ops", 3_000), ("open", 60_000)];

/// Fuzzing needs a nightly compiler. Where there is none the committed corpus has still been replayed, by a test.
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
