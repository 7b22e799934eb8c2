//! Tools that look at every access to memory: Miri and the thread sanitizer. Both are of a nightly
//! compiler.

use std::process::Command;

use crate::{Failure, nightly, nightly_tools, run};

/// Tests of what `unsafe` code is made of and rests on. Miri is hundreds of times slower than a
/// processor, so tests that work through many keys are left out, and others do less under it.
const MIRI: [&str; 8] = [
    "buf::tests",
    "packed::tests",
    "bits::tests",
    "format::",
    "simd::table::tests",
    "lookup::tests",
    "bloom::atomic::tests",
    "kinds::tests::every_golden_file",
];
/// Statistics of millions of draws, of plain arithmetic.
const MANY: [&str; 3] = ["evenly", "independent", "by_chance"];
/// Miri's own target first; then one with big-endian words, whose tests it runs likewise.
const MIRI_TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "s390x-unknown-linux-gnu"];

pub(crate) fn miri_tools() -> Result<(), Failure> {
    component("miri")?;
    component("rust-src")
}

/// `cargo xtask miri`: undefined behaviour in the rooms for `unsafe`, on a little-endian and a
/// big-endian machine.
pub(crate) fn miri() -> Result<(), Failure> {
    for target in MIRI_TARGETS {
        let mut miri = nightly();
        miri.args([
            "miri",
            "test",
            "--package",
            "tamis",
            "--lib",
            "--target",
            target,
        ]);
        miri.arg("--").args(MIRI);
        for name in MANY {
            miri.args(["--skip", name]);
        }
        // Golden files are read, and rates computed twice are the same.
        let flags = "-Zmiri-disable-isolation -Zmiri-deterministic-floats";
        run(miri.env("MIRIFLAGS", flags))?;
    }
    Ok(())
}

pub(crate) fn sanitizer_tools() -> Result<(), Failure> {
    component("rust-src")
}

/// `cargo xtask sanitize`: data races of threads that share a filter.
pub(crate) fn sanitize() -> Result<(), Failure> {
    let mut test = nightly();
    test.args(["test", "--package", "tamis", "--test", "stress"]);
    // The standard library's locks are watched as well, or they would be taken for races.
    test.args(["-Zbuild-std", "--target", "x86_64-unknown-linux-gnu"]);
    test.args(["--target-dir", "target/sanitize"]);
    run(test.env("RUSTFLAGS", "-Zsanitizer=thread"))
}

fn component(name: &str) -> Result<(), Failure> {
    nightly_tools()?;
    let mut add = Command::new("rustup");
    run(add.args(["component", "add", "--toolchain", "nightly", name]))
}
