//! Python: the package in `bindings/python`, and the reader that proves docs/FORMAT.md.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Failure, cargo, root, run, succeeds};

/// `cargo xtask python`: builds the wheel, and runs all that can fail in it.
///
/// The wheel is of the profile that tests have: optimised, with assertions and overflow checks.
pub(crate) fn package() -> Result<(), Failure> {
    let python = environment("target/python-package", "python3")?;
    install(
        &python,
        &["--requirement", "bindings/python/tests/tools.txt"],
    )?;
    install(&python, &["--requirement", LIBRARIES])?;
    if !succeeds(Command::new("java").arg("-version")) {
        debian(&["default-jre-headless"])?;
    }
    install_wheel(&python, &wheel(&python)?)?;
    module(&python, "ruff", &["check"])?;
    module(&python, "ruff", &["format", "--check"])?;
    module(&python, "mypy", &["python/tamis"])?;
    // Of `tamis.spark` and the like there are no stubs, and mypy has read them.
    let stubs = ["tamis._tamis", "--allowlist", "tests/stubtest.txt"];
    module(&python, "mypy.stubtest", &stubs)?;
    module(&python, "pytest", &["--quiet", "--durations=10"])
}

/// `cargo xtask python 3.9 3.13`: the one wheel on other versions of Python, which must be
/// installed. Spark, which has its own wishes, is left out.
pub(crate) fn versions(versions: &[String]) -> Result<(), Failure> {
    let builder = environment("target/python-package", "python3")?;
    install(&builder, &["maturin>=1.9,<2"])?;
    let wheel = wheel(&builder)?;
    for version in versions {
        let place = format!("target/python-{version}");
        let python = environment(&place, &interpreter(version)?)?;
        install(&python, &["--requirement", LIBRARIES])?;
        install_wheel(&python, &wheel)?;
        module(
            &python,
            "pytest",
            &["--quiet", "--ignore=tests/test_spark.py"],
        )?;
    }
    Ok(())
}

/// What the tests beside Spark's import.
const LIBRARIES: &str = "bindings/python/tests/libraries.txt";

/// The command of a version of Python: of the path, or of pyenv.
fn interpreter(version: &str) -> Result<String, Failure> {
    let named = format!("python{version}");
    if succeeds(Command::new(&named).arg("--version")) {
        return Ok(named);
    }
    let home = std::env::var_os("HOME").unwrap_or_default();
    let installed = std::fs::read_dir(Path::new(&home).join(".pyenv/versions"));
    let found = installed
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin").join(&named))
        .find(|program| program.exists());
    let found = found.ok_or_else(|| format!("no {named} is installed, by pyenv or otherwise"))?;
    Ok(found.display().to_string())
}

/// Builds the wheel, and the program that tests compare it with.
fn wheel(python: &Path) -> Result<String, Failure> {
    run(cargo().args(["build", "--quiet", "--package", "tamis-cli"]))?;
    let wheels = root().join("target/wheels");
    // A wheel of another version may lie there.
    let _ = std::fs::remove_dir_all(&wheels);
    let out = wheels.display().to_string();
    let options = [
        "build",
        "--quiet",
        "--profile",
        "dev",
        "--auditwheel",
        "skip",
    ];
    module(
        python,
        "maturin",
        &[&options[..], &["--out", &out]].concat(),
    )?;
    let built = std::fs::read_dir(&wheels).map_err(|e| format!("{out}: {e}"))?;
    let wheel = built.flatten().next().ok_or("maturin made no wheel")?;
    Ok(wheel.path().display().to_string())
}

pub(crate) fn install(python: &Path, arguments: &[&str]) -> Result<(), Failure> {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet"]);
    pip.arg("--disable-pip-version-check").args(arguments);
    run(pip.current_dir(root()))
}

fn install_wheel(python: &Path, wheel: &str) -> Result<(), Failure> {
    install(python, &["--force-reinstall", "--no-deps", wheel])
}

/// Runs a module of Python in the package's directory.
fn module(python: &Path, module: &str, arguments: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new(python);
    command.args(["-m", module]).args(arguments);
    run(command.current_dir(root().join("bindings/python")))
}

/// A Python of its own below the workspace's root, made by this one if there is none.
pub(crate) fn environment(place: &str, python: &str) -> Result<PathBuf, Failure> {
    let environment = root().join(place);
    let own = environment.join("bin/python3");
    if !succeeds(Command::new(&own).args(["-m", "pip", "--version"])) {
        let make = || run(Command::new(python).args(["-m", "venv"]).arg(&environment));
        if make().is_err() {
            debian(&["python3-venv"])?;
            make()?;
        }
    }
    Ok(own)
}

/// Installs packages of Debian.
pub(crate) fn debian(packages: &[&str]) -> Result<(), Failure> {
    run(Command::new("apt-get").args(["update", "--quiet"]))?;
    // A server that is installed is not started.
    let mut install = Command::new("apt-get");
    install.args(["install", "--quiet", "--yes"]).args(packages);
    run(install.env("RUNLEVEL", "1"))
}

/// The reader that was written from docs/FORMAT.md alone opens the golden files and answers as
/// they say.
pub(crate) fn reader() -> Result<(), Failure> {
    let tests = root().join("crates/tamis/tests");
    let python = with_xxhash()?;
    run(Command::new(python)
        .arg(tests.join("reader.py"))
        .arg(tests.join("golden")))
}

/// Finds a Python with the `xxhash` package, or makes one: a virtual environment under `target/`,
/// or Debian's packages where that cannot be made.
fn with_xxhash() -> Result<PathBuf, Failure> {
    let has_xxhash = |python: &Path| succeeds(Command::new(python).args(["-c", "import xxhash"]));
    let system = PathBuf::from("python3");
    let own = root().join("target/python/bin/python3");
    if let Some(python) = [&own, &system]
        .into_iter()
        .find(|python| has_xxhash(python))
    {
        return Ok(python.clone());
    }
    let made = environment("target/python", "python3")
        .and_then(|own| run(Command::new(own).args(["-m", "pip", "install", "--quiet", "xxhash"])));
    if made.is_ok() && has_xxhash(&own) {
        return Ok(own);
    }
    eprintln!("   no virtual environment could be made; trying Debian's packages");
    debian(&["python3-xxhash"])?;
    let debian = PathBuf::from("/usr/bin/python3");
    if has_xxhash(&debian) {
        return Ok(debian);
    }
    Err("no Python with the xxhash package: install Debian's python3-xxhash, or python3-venv and run this again".into())
}
