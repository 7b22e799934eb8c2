//! `cargo xtask lint`: what a reviewer should not have to say.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Failure, cargo, instructions, root, run, tables};

pub(crate) fn all() -> Result<(), Failure> {
    cargo_lints()?;
    features()?;
    unsafe_stays_in_its_rooms()?;
    comments_are_narrow()?;
    figures_have_commands()?;
    tables::check()?;
    instructions::check()
}

fn cargo_lints() -> Result<(), Failure> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]))?;
    let doc = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ];
    run(cargo().args(doc).env("RUSTDOCFLAGS", "-D warnings"))
}

/// The library's families, each a feature that stands alone.
pub(crate) const FAMILIES: [&str; 12] = [
    "bloom", "tinyset", "chained", "cuckoo", "quotient", "exact", "growing", "window", "coded",
    "peel", "perfect", "ribbon",
];

fn features() -> Result<(), Failure> {
    for features in FAMILIES.into_iter().chain(["registry,serde"]) {
        let check = ["check", "--package", "tamis", "--no-default-features"];
        // A directory of its own, so that other flags do not cost the rest a compilation.
        let target = ["--target-dir", "target/features"];
        let mut command = cargo();
        command
            .args(check)
            .args(target)
            .args(["--features", features]);
        run(command.env("RUSTFLAGS", "-D warnings"))?;
    }
    Ok(())
}

/// The rooms for `unsafe`: two of the library, one of the module for servers.
const ROOMS: [(&str, &[&str]); 2] = [
    ("crates/tamis/src", &["buf.rs", "simd"]),
    ("crates/tamis-redis/src", &["server"]),
];

/// `#![deny(unsafe_code)]` can be lifted anywhere by an attribute; this says where it may be.
fn unsafe_stays_in_its_rooms() -> Result<(), Failure> {
    for (source, rooms) in ROOMS {
        let source = root().join(source);
        for file in rust_files(&source)? {
            let inside = file.strip_prefix(&source).unwrap_or(&file);
            if rooms.iter().any(|room| inside.starts_with(room)) {
                continue;
            }
            if read(&file)?.contains("(unsafe_code") {
                return Err(format!(
                    "{}: unsafe is allowed outside {}",
                    file.display(),
                    rooms.join(" and ")
                ));
            }
        }
    }
    Ok(())
}

/// Columns of a comment line.
const WIDEST: usize = 100;

fn comments_are_narrow() -> Result<(), Failure> {
    let mut wide = Vec::new();
    for directory in ["crates", "bindings", "bench", "xtask", "examples", "fuzz"] {
        for file in rust_files(&root().join(directory))? {
            let text = read(&file)?;
            let comments = text.lines().enumerate().filter(|(_, line)| {
                let line = line.trim_start();
                // A row of a table cannot be wrapped.
                let text = line.trim_start_matches(['/', '!', ' ']);
                line.starts_with("//") && !text.starts_with('|')
            });
            let comments = comments.filter(|(_, line)| line.chars().count() > WIDEST);
            let file = file.strip_prefix(root()).unwrap_or(&file);
            wide.extend(comments.map(|(i, _)| format!("{}:{}", file.display(), i + 1)));
        }
    }
    match wide.len() {
        0 => Ok(()),
        count => Err(format!(
            "{count} comment lines have more than {WIDEST} columns:\n  {}",
            wide.join("\n  ")
        )),
    }
}

/// Units of what is measured. A rate in percent is a parameter as often as a measurement.
const UNITS: [&str; 6] = [" ns", " s ", " ms", " MB", " GB", " times"];

/// A figure in the README has its command beside it: in its own block of lines or the one before.
fn figures_have_commands() -> Result<(), Failure> {
    let readme = read(&root().join("README.md"))?;
    let mut before = "";
    for block in readme.split("\n\n") {
        let has_figure = UNITS.iter().any(|unit| {
            let mut found = block.match_indices(unit);
            found.any(|(at, _)| block[..at].ends_with(|c: char| c.is_ascii_digit()))
        });
        let has_command = |text: &str| text.contains("`cargo ") || text.contains("scripts/");
        if has_figure && !has_command(block) && !has_command(before) {
            return Err(format!(
                "README.md: figures without their command:\n{block}"
            ));
        }
        before = block;
    }
    Ok(())
}

fn read(file: &Path) -> Result<String, Failure> {
    fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))
}

fn rust_files(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    let entries = fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.ends_with("target") {
            continue;
        }
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}
