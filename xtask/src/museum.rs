//! `cargo xtask museum`: bugs that filters have had, planted one at a time, must turn a test red.
//!
//! ```text
//!   tracked files ── copied ── every bug planted behind a switch ── compiled once
//!                                                                       │
//!              no switch: each test must pass ──────────────────────────┤
//!              one switch: the test that is to catch the bug must fail ─┘
//! ```
//!
//! The copy lies in `target/museum/tree`; the working tree is not touched. The switch is the
//! number of an exhibit in an environment variable, so that all of them cost one compilation.

mod exhibits;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use exhibits::EXHIBITS;

use crate::{Failure, cargo, root};

/// A bug, and the test that catches it.
struct Exhibit {
    name: &'static str,
    /// What went wrong, and where that was.
    history: &'static str,
    plant: &'static [Change],
    caught_by: (Suite, &'static str),
}

/// A change of a source file that is a part of a bug.
struct Change {
    file: &'static str,
    /// An expression that the file has once.
    right: &'static str,
    /// What takes its place. If it says `BUG`, it is any text, of which that word is the switch.
    wrong: &'static str,
}

/// The binaries of tests, each compiled once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Suite {
    Library,
    Format,
    Conformance,
    Program,
    Strikes,
}

impl Suite {
    const ALL: [Suite; 5] = [
        Suite::Library,
        Suite::Format,
        Suite::Conformance,
        Suite::Program,
        Suite::Strikes,
    ];

    /// The package, and what cargo calls the target.
    fn target(self) -> (&'static str, &'static str) {
        match self {
            Suite::Library => ("tamis", "tamis"),
            Suite::Format => ("tamis", "format"),
            Suite::Conformance => ("tamis", "conformance"),
            Suite::Program => ("tamis-cli", "tamis_cli"),
            Suite::Strikes => ("tamis-cli", "strikes"),
        }
    }

    fn directory(self) -> PathBuf {
        Path::new("crates").join(self.target().0)
    }
}

/// The variable that holds the number of the bug that is planted.
const SWITCH: &str = "TAMIS_MUSEUM";
/// What reads it, added to the library.
const MODULE: &str = "\
use std::sync::LazyLock;
static CHOSEN: LazyLock<Option<usize>> =
    LazyLock::new(|| std::env::var(\"TAMIS_MUSEUM\").ok()?.parse().ok());
pub fn planted(number: usize) -> bool {
    *CHOSEN == Some(number)
}
";
/// A test that takes longer is one that a bug keeps from ending: an exhibit must fail instead.
const LONGEST: Duration = Duration::from_secs(600);

/// Shows the exhibits of these names, or all.
pub(crate) fn show(names: &[String]) -> Result<(), Failure> {
    let known: Vec<_> = EXHIBITS.iter().map(|exhibit| exhibit.name).collect();
    if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("no `{name}`; the museum has: {}", known.join(", ")));
    }
    let tree = root().join("target/museum/tree");
    plant_all(&tree)?;
    let binaries = compile(&tree)?;
    let run = |(suite, test): (Suite, &str), bug: Option<usize>| {
        run_test(&binaries[&suite], &tree.join(suite.directory()), test, bug)
    };
    let (mut green, mut failures) = (BTreeSet::new(), Vec::new());
    for (number, exhibit) in EXHIBITS.iter().enumerate() {
        if !names.is_empty() && !names.iter().any(|name| name == exhibit.name) {
            continue;
        }
        let (suite, test) = exhibit.caught_by;
        if green.insert(exhibit.caught_by) {
            let unplanted = run(exhibit.caught_by, None)?;
            if !matches!(unplanted, Outcome::Passed) {
                return Err(format!("`{test}` without a bug is {unplanted}"));
            }
        }
        let outcome = run(exhibit.caught_by, Some(number))?;
        println!("{}\n    {}", exhibit.name, exhibit.history);
        println!("    {} {test}\n    {outcome}", suite.target().1);
        if !matches!(outcome, Outcome::Failed(_)) {
            failures.push(exhibit.name);
        }
    }
    if failures.is_empty() {
        println!("each bug is caught");
        return Ok(());
    }
    let (count, names) = (failures.len(), failures.join(", "));
    Err(format!("{count} bugs are not caught: {names}"))
}

/// Copies the tracked files, with all bugs.
fn plant_all(tree: &Path) -> Result<(), Failure> {
    for name in tracked()? {
        let from = root().join(&name);
        if !from.is_file() {
            continue;
        }
        let mut bytes = fs::read(&from).map_err(|e| format!("{name}: {e}"))?;
        if let Some(planted) = planted(&name, &bytes)? {
            bytes = planted.into_bytes();
        }
        write(&tree.join(name), &bytes)?;
    }
    write(&tree.join("crates/tamis/src/museum.rs"), MODULE.as_bytes())
}

/// The names of the files that the project consists of.
pub(crate) fn tracked() -> Result<Vec<String>, Failure> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output()
        .map_err(|e| format!("git could not be started: {e}"))?;
    let names = String::from_utf8(listed.stdout).map_err(|e| e.to_string())?;
    Ok(names.split_terminator('\0').map(String::from).collect())
}

/// Writes a file, unless it is there and the same: nothing is compiled anew without need.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let told = |e: std::io::Error| format!("{}: {e}", path.display());
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().unwrap_or(path)).map_err(told)?;
    fs::write(path, bytes).map_err(told)
}

/// The text of a file with all bugs that are planted in it; `None` where there is none.
fn planted(name: &str, bytes: &[u8]) -> Result<Option<String>, Failure> {
    let own = EXHIBITS.iter().enumerate().flat_map(|(number, exhibit)| {
        let changes = exhibit.plant.iter();
        changes.map(move |change| (number, exhibit.name, change))
    });
    let mut own: Vec<_> = own.filter(|(_, _, change)| change.file == name).collect();
    let module = match name {
        "crates/tamis/src/lib.rs" => "#[doc(hidden)]\npub mod museum;\n",
        "crates/tamis-cli/src/lib.rs" => "",
        _ if own.is_empty() => return Ok(None),
        _ => "",
    };
    let whole = std::str::from_utf8(bytes).map_err(|e| format!("{name}: {e}"))?;
    let mut text = whole.to_string();
    if name.ends_with("src/lib.rs") {
        // A planted switch is not written as one would write it.
        text = format!("#![allow(warnings)]\n{text}{module}");
    }
    // The longer first: another may lie in it.
    own.sort_by_key(|(_, _, change)| std::cmp::Reverse(change.right.len()));
    let library = match name.starts_with("crates/tamis/src") {
        true => "crate",
        false => "tamis",
    };
    for (number, exhibit, Change { right, wrong, .. }) in own {
        let count = whole.matches(right).count();
        if count != 1 {
            return Err(format!(
                "{exhibit}: {name} has `{right}` {count} times, not once"
            ));
        }
        let switch = format!("{library}::museum::planted({number})");
        let switched = if wrong.contains("BUG") {
            wrong.replace("BUG", &switch)
        } else {
            format!("(if !{switch} {{ {right} }} else {{ {wrong} }})")
        };
        text = text.replacen(right, &switched, 1);
    }
    Ok(Some(text))
}

/// Compiles the suites of the planted tree, and tells where they are.
fn compile(tree: &Path) -> Result<BTreeMap<Suite, PathBuf>, Failure> {
    let mut command = cargo();
    command.current_dir(tree);
    command.args([
        "test",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ]);
    command.args(["--package", "tamis", "--package", "tamis-cli", "--lib"]);
    command.args(["--test", "format", "--test", "conformance"]);
    command.args(["--test", "strikes", "--target-dir"]);
    command.arg(root().join("target/museum/target"));
    // The tests are few: what is compiled sooner is done sooner.
    command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    eprintln!(
        "── compiling the library and the program with {} bugs",
        EXHIBITS.len()
    );
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("cargo could not be started: {e}"))?;
    if !output.status.success() {
        return Err("the planted tree does not compile".to_string());
    }
    let mut found = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let message: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        let Some(executable) = message["executable"].as_str() else {
            continue;
        };
        let is_test = message["profile"]["test"] == true;
        let suite = Suite::ALL
            .into_iter()
            .find(|suite| is_test && message["target"]["name"] == suite.target().1);
        found.extend(suite.map(|suite| (suite, PathBuf::from(executable))));
    }
    match found.len() == Suite::ALL.len() {
        true => Ok(found),
        false => Err("cargo did not say where it put the tests".to_string()),
    }
}

enum Outcome {
    Passed,
    /// And what it said first.
    Failed(String),
    /// No test of this name, or an end that is no test's.
    Neither(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Passed => f.write_str("green"),
            Outcome::Failed(how) => write!(f, "red: {how}"),
            Outcome::Neither(how) => write!(f, "neither green nor red: {how}"),
        }
    }
}

fn run_test(
    binary: &Path,
    directory: &Path,
    test: &str,
    bug: Option<usize>,
) -> Result<Outcome, Failure> {
    let said = binary.with_extension("said");
    let file = fs::File::create(&said).map_err(|e| format!("{}: {e}", said.display()))?;
    let errors = file.try_clone().map_err(|e| e.to_string())?;
    let mut command = Command::new(binary);
    command.args([test, "--exact"]).current_dir(directory);
    command.stdin(Stdio::null()).stdout(file).stderr(errors);
    command.env_remove(SWITCH);
    command.envs(bug.map(|number| (SWITCH, number.to_string())));
    let start = Instant::now();
    let mut child = command
        .spawn()
        .map_err(|e| format!("{}: {e}", binary.display()))?;
    while child.try_wait().map_err(|e| e.to_string())?.is_none() {
        if start.elapsed() > LONGEST {
            child.kill().map_err(|e| e.to_string())?;
            child.wait().map_err(|e| e.to_string())?;
            return Ok(Outcome::Neither("it does not end".to_string()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = fs::read(&said).map_err(|e| format!("{}: {e}", said.display()))?;
    let said = String::from_utf8_lossy(&said);
    if said.contains("1 passed; 0 failed") {
        return Ok(Outcome::Passed);
    }
    if said.contains("0 passed; 1 failed") {
        return Ok(Outcome::Failed(reason(&said)));
    }
    let last = said.lines().rfind(|line| !line.is_empty());
    Ok(Outcome::Neither(last.unwrap_or("nothing").to_string()))
}

/// What a test that failed said first.
fn reason(said: &str) -> String {
    let mut lines = said
        .lines()
        .skip_while(|line| !line.contains("panicked at"));
    let place = lines.next().unwrap_or("it failed");
    let message: Vec<&str> = lines.take(1).collect();
    let line = format!(
        "{} {}",
        place.split("panicked at ").last().unwrap_or(place),
        message.join("")
    );
    line.chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bug_can_be_planted() {
        let files: BTreeSet<_> = EXHIBITS
            .iter()
            .flat_map(|exhibit| exhibit.plant.iter().map(|change| change.file))
            .collect();
        for file in files {
            let bytes = fs::read(root().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
            planted(file, &bytes).unwrap_or_else(|why| panic!("{why}"));
        }
        for exhibit in EXHIBITS {
            assert!(!exhibit.plant.is_empty(), "{}", exhibit.name);
            let same = |change: &Change| change.right == change.wrong;
            assert!(!exhibit.plant.iter().any(same), "{}", exhibit.name);
        }
    }

    #[test]
    fn names_are_unique_and_there_are_25_or_more() {
        let names: BTreeSet<_> = EXHIBITS.iter().map(|exhibit| exhibit.name).collect();
        assert_eq!(names.len(), EXHIBITS.len());
        assert!(names.len() >= 25);
    }

    /// All Rust files below a directory, as one text.
    fn text_below(directory: &Path) -> String {
        let entries = fs::read_dir(directory).unwrap();
        let each = entries.map(|entry| {
            let path = entry.unwrap().path();
            match path.extension().is_some_and(|extension| extension == "rs") {
                true => fs::read_to_string(path).unwrap(),
                false if path.is_dir() => text_below(&path),
                false => String::new(),
            }
        });
        each.collect()
    }

    #[test]
    fn every_test_that_is_to_catch_a_bug_exists() {
        let mut texts = BTreeMap::new();
        for exhibit in EXHIBITS {
            let (suite, test) = exhibit.caught_by;
            let text = texts.entry(suite).or_insert_with(|| {
                let below = match suite {
                    Suite::Library | Suite::Program => "src",
                    Suite::Format | Suite::Conformance | Suite::Strikes => "tests",
                };
                text_below(&root().join(suite.directory()).join(below))
            });
            let name = test.rsplit("::").next().unwrap_or(test);
            let declared = match suite {
                Suite::Conformance => format!("\"{name}\""),
                _ => format!("#[test]\nfn {name}("),
            };
            let indented = declared.replace('\n', "\n    ");
            assert!(
                text.contains(&declared) || text.contains(&format!("    {indented}")),
                "{}: there is no test `{test}`",
                exhibit.name
            );
        }
    }
}
