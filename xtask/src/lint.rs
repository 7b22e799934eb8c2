//! `cargo xtask lint`: what a reviewer should not have to say.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Failure, cargo, instructions, root, run, tables};

pub(crate) fn all() -> Result<(), Failure> {
    cargo_lints()?;
    unsafe_stays_in_its_rooms()?;
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

/// The library's two rooms for `unsafe`.
const ROOMS: [&str; 2] = ["buf.rs", "simd"];

/// `#![deny(unsafe_code)]` can be lifted anywhere by an attribute; this says where it may be.
fn unsafe_stays_in_its_rooms() -> Result<(), Failure> {
    let source = root().join("crates/tamis/src");
    for file in rust_files(&source)? {
        let inside = file.strip_prefix(&source).unwrap_or(&file);
        if ROOMS.iter().any(|room| inside.starts_with(room)) {
            continue;
        }
        let text = fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        if text.contains("(unsafe_code") {
            return Err(format!(
                "{}: unsafe is allowed outside {}",
                file.display(),
                ROOMS.join(" and ")
            ));
        }
    }
    Ok(())
}

fn rust_files(directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    let entries = fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}
