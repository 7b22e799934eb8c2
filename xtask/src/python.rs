//! A Python with the `xxhash` package, for the reader that proves docs/FORMAT.md.

use std::path::PathBuf;
use std::process::Command;

use crate::{Failure, root, run, succeeds};

/// Finds one, or makes one: a virtual environment under `target/`, or Debian's packages where
/// that cannot be made.
pub(crate) fn with_xxhash() -> Result<PathBuf, Failure> {
    let has_xxhash =
        |python: &PathBuf| succeeds(Command::new(python).args(["-c", "import xxhash"]));
    let system = PathBuf::from("python3");
    let environment = root().join("target/python");
    let own = environment.join("bin/python3");
    if let Some(python) = [&own, &system]
        .into_iter()
        .find(|python| has_xxhash(python))
    {
        return Ok(python.clone());
    }
    let made = run(Command::new(&system).args(["-m", "venv"]).arg(&environment))
        .and_then(|()| run(Command::new(&own).args(["-m", "pip", "install", "--quiet", "xxhash"])));
    if made.is_ok() && has_xxhash(&own) {
        return Ok(own);
    }
    eprintln!("   no virtual environment could be made; trying Debian's packages");
    run(Command::new("apt-get").args(["update", "--quiet"]))?;
    run(Command::new("apt-get").args(["install", "--quiet", "--yes", "python3-xxhash"]))?;
    let debian = PathBuf::from("/usr/bin/python3");
    if has_xxhash(&debian) {
        return Ok(debian);
    }
    Err("no Python with the xxhash package: install Debian's python3-xxhash, or python3-venv and run this again".into())
}
