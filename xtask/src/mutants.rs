//! `cargo xtask mutants`: small changes of the core's code, one at a time, must turn a test red.
//!
//! ```text
//!   cargo-mutants lists the changes ── all planted behind a switch ── compiled once
//!                                                                          │
//!      no switch: which functions does each test reach, and how long? ─────┤
//!      one switch: of the tests that reach its function one must fail ─────┘
//! ```
//!
//! cargo-mutants alone compiles once for each of thousands; here a mutant costs the tests that it
//! takes to catch it. The copy lies in `target/mutants/tree`. `.cargo/mutants.toml` says which
//! files are the core, and which mutants are left out because they are as good as the code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::Value;
use tamis::{KINDS, Tier};

use crate::museum::{tracked, write};
use crate::{Failure, cargo, root, run, succeeds};

/// A change of a function, as cargo-mutants would make it.
struct Mutant {
    name: String,
    file: String,
    /// The function, and the part of it that is replaced, in bytes of the file. A constant has
    /// none.
    function: Option<Range<usize>>,
    span: Range<usize>,
    replacement: String,
}

/// A function that has mutants.
struct Function {
    range: Range<usize>,
    /// With its braces.
    body: Range<usize>,
    number: usize,
    mutants: Vec<usize>,
}

/// For each function, the tests that reach it.
type Reached = BTreeMap<usize, BTreeSet<usize>>;

/// A test: its binary, its name, and how long it took.
struct Test {
    binary: PathBuf,
    name: String,
    took: Duration,
}

/// Variables that choose a mutant, and that name a file to which reached functions are written.
const CHOSEN: &str = "TAMIS_MUTANT";
const REACHED: &str = "TAMIS_MUTANTS_REACHED";
/// What reads them, added to the library. `FUNCTIONS` is their number.
const MODULE: &str = "\
use std::io::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
static CHOSEN: LazyLock<usize> = LazyLock::new(|| {
    let number = std::env::var(\"TAMIS_MUTANT\").ok();
    number.and_then(|number| number.parse().ok()).unwrap_or(usize::MAX)
});
static LOG: LazyLock<Option<std::fs::File>> = LazyLock::new(|| {
    let path = std::env::var_os(\"TAMIS_MUTANTS_REACHED\")?;
    std::fs::File::options().append(true).create(true).open(path).ok()
});
static SEEN: [AtomicBool; FUNCTIONS] = [const { AtomicBool::new(false) }; FUNCTIONS];
#[inline(never)]
pub fn chosen(function: usize) -> usize {
    if !SEEN[function].load(Relaxed) {
        SEEN[function].store(true, Relaxed);
        if let Some(mut log) = LOG.as_ref() {
            let _ = log.write_all(&(function as u32).to_le_bytes());
        }
    }
    *CHOSEN
}
";
/// Processor time after which a test is left out, and all tests of a mutant together.
const LONGEST: Duration = Duration::from_secs(8);
const MOST: Duration = Duration::from_secs(40);
/// A test that waits for ever uses no processor time.
const PATIENCE: Duration = Duration::from_secs(900);

/// Tries the mutants of these files, or of all that `.cargo/mutants.toml` names.
pub(crate) fn search(files: &[String]) -> Result<(), Failure> {
    let mutants = list(files)?;
    let tree = root().join("target/mutants/tree");
    let mut unfit = BTreeMap::new();
    let functions = loop {
        let functions = plant(&tree, &mutants, &mut unfit)?;
        let wrong = errors(&tree)?;
        if wrong.is_empty() {
            break functions;
        }
        eprintln!("   {} mutants do not compile", wrong.len());
        unfit.extend(wrong.into_iter().map(|number| (number, Unfit::Invalid)));
    };
    let binaries = compile(&tree)?;
    let (tests, reached) = trace(&tree, &binaries)?;
    let mut planted: Vec<(usize, usize)> = functions
        .iter()
        .flat_map(|function| function.mutants.iter().map(|&m| (m, function.number)))
        .collect();
    // What all kinds rest on first.
    planted.sort_by_key(|&(number, _)| mutants[number].file.matches('/').count());
    eprintln!("── {} mutants, {} tests", planted.len(), tests.len());
    let outcomes = Mutex::new(BTreeMap::new());
    in_parallel(planted.len(), |i| {
        let (number, function) = planted[i];
        let none = BTreeSet::new();
        let reaching = reached.get(&function).unwrap_or(&none);
        let reaching: Vec<&Test> = reaching.iter().map(|&test| &tests[test]).collect();
        let caught = is_caught(&tree, number, reaching)?;
        let mut outcomes = outcomes.lock().map_err(|e| e.to_string())?;
        if !caught {
            eprintln!("survived: {}", mutants[number].name);
        }
        outcomes.insert(number, caught);
        if outcomes.len() % 100 == 0 {
            eprintln!("── {} of {} mutants tried", outcomes.len(), planted.len());
        }
        Ok(())
    })?;
    let outcomes = outcomes.into_inner().map_err(|e| e.to_string())?;
    tell(&mutants, &unfit, &outcomes)
}

/// Why a mutant was not tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unfit {
    /// It does not compile.
    Invalid,
    /// It lies in a constant, or its function returns a type without a name, so that it cannot
    /// be chosen at run time.
    Fixed,
}

fn tell(
    mutants: &[Mutant],
    unfit: &BTreeMap<usize, Unfit>,
    outcomes: &BTreeMap<usize, bool>,
) -> Result<(), Failure> {
    let files: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
    println!("caught  survived  cannot be compiled  cannot be planted");
    for file in files.iter().copied().chain(["all of them"]) {
        let is_here = |number: &usize| file == "all of them" || mutants[*number].file == file;
        let tried = |caught| {
            let outcomes = outcomes.iter();
            let outcomes = outcomes.filter(|&(number, &c)| is_here(number) && c == caught);
            outcomes.count()
        };
        let left = |why| {
            let left = unfit.iter();
            left.filter(|&(number, &w)| is_here(number) && w == why)
                .count()
        };
        let (caught, survived) = (tried(true), tried(false));
        let (invalid, fixed) = (left(Unfit::Invalid), left(Unfit::Fixed));
        println!("{caught:6}  {survived:8}  {invalid:18}  {fixed:17}  {file}");
    }
    for (&number, _) in unfit.iter().filter(|&(_, &why)| why == Unfit::Fixed) {
        println!("not planted: {}", mutants[number].name);
    }
    let survivors: Vec<&str> = outcomes
        .iter()
        .filter(|&(_, &caught)| !caught)
        .map(|(&number, _)| mutants[number].name.as_str())
        .collect();
    match survivors.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "{} mutants survived:\n{}",
            survivors.len(),
            survivors.join("\n")
        )),
    }
}

/// Where cargo-mutants is, which is installed if it is not there.
fn tools() -> Result<PathBuf, Failure> {
    let tools = root().join("target/tools");
    let program = tools.join("bin/cargo-mutants");
    if !succeeds(Command::new(&program).args(["mutants", "--version"])) {
        run(cargo()
            .args(["install", "--locked", "cargo-mutants", "--root"])
            .arg(&tools))?;
    }
    Ok(program)
}

fn list(files: &[String]) -> Result<Vec<Mutant>, Failure> {
    let mut command = Command::new(tools()?);
    command.current_dir(root());
    command.args(["mutants", "--list", "--json", "--package", "tamis"]);
    for file in files {
        command.args(["--file", file]);
    }
    let output = command
        .output()
        .map_err(|e| format!("cargo-mutants: {e}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    let list: Vec<Value> = serde_json::from_slice(&output.stdout)
        .map_err(|e| format!("cargo-mutants: {e}\n{told}"))?;
    let mut texts = BTreeMap::new();
    let mut mutants = Vec::new();
    for mutant in list {
        let string = |field: &str| mutant[field].as_str().unwrap_or_default().to_string();
        let file = string("file");
        if !texts.contains_key(&file) {
            let text =
                fs::read_to_string(root().join(&file)).map_err(|e| format!("{file}: {e}"))?;
            texts.insert(file.clone(), text);
        }
        let function = &mutant["function"]["span"];
        mutants.push(Mutant {
            name: string("name"),
            function: function.is_object().then(|| range(&texts[&file], function)),
            span: range(&texts[&file], &mutant["span"]),
            replacement: string("replacement"),
            file,
        });
    }
    match mutants.is_empty() {
        true => Err("no file of these names has mutants".to_string()),
        false => Ok(mutants),
    }
}

/// The bytes of a span, whose lines and columns count from 1, columns in characters.
fn range(text: &str, span: &Value) -> Range<usize> {
    let offset = |place: &Value| {
        let number = |field: &str| place[field].as_u64().unwrap_or(1) as usize;
        let mut lines = text.split_inclusive('\n');
        let before: usize = lines.by_ref().take(number("line") - 1).map(str::len).sum();
        let line = lines.next().unwrap_or_default();
        let columns = line.chars().take(number("column") - 1);
        before + columns.map(char::len_utf8).sum::<usize>()
    };
    offset(&span["start"])..offset(&span["end"])
}

/// Writes the tree, with all mutants but the unfit ones.
fn plant(
    tree: &Path,
    mutants: &[Mutant],
    unfit: &mut BTreeMap<usize, Unfit>,
) -> Result<Vec<Function>, Failure> {
    let mut all = Vec::new();
    for name in tracked()? {
        let from = root().join(&name);
        if !from.is_file() {
            continue;
        }
        let mut bytes = fs::read(&from).map_err(|e| format!("{name}: {e}"))?;
        let own = (0..mutants.len()).filter(|&number| mutants[number].file == name);
        let own: Vec<usize> = own.collect();
        if !own.is_empty() {
            let text = String::from_utf8(bytes).map_err(|e| format!("{name}: {e}"))?;
            let mut functions = functions(&text, mutants, &own, unfit, all.len());
            let mut out = String::new();
            render(&text, 0..text.len(), &functions, mutants, &mut out);
            bytes = out.replace("#[inline(always)]", "#[inline]").into_bytes();
            all.append(&mut functions);
        }
        if name == "crates/tamis/src/lib.rs" {
            bytes.extend_from_slice(b"#[doc(hidden)]\npub mod mutants;\n");
        }
        write(&tree.join(name), &bytes)?;
    }
    let module = MODULE.replace("FUNCTIONS", &all.len().to_string());
    write(&tree.join("crates/tamis/src/mutants.rs"), module.as_bytes())?;
    Ok(all)
}

/// The functions of some mutants of a file.
fn functions(
    text: &str,
    mutants: &[Mutant],
    own: &[usize],
    unfit: &mut BTreeMap<usize, Unfit>,
    first: usize,
) -> Vec<Function> {
    let mut functions: BTreeMap<usize, Function> = BTreeMap::new();
    for &number in own {
        if unfit.contains_key(&number) {
            continue;
        }
        let range = mutants[number].function.clone();
        let plantable = range.and_then(|range| Some((body(text, &range)?, range)));
        let Some((body, range)) = plantable else {
            unfit.insert(number, Unfit::Fixed);
            continue;
        };
        let next = first + functions.len();
        let function = functions.entry(range.start).or_insert(Function {
            range,
            body,
            number: next,
            mutants: Vec::new(),
        });
        function.mutants.push(number);
    }
    functions.into_values().collect()
}

/// The body of a function, with its braces. `None` if the function is called by the compiler, or
/// returns a type without a name.
fn body(text: &str, function: &Range<usize>) -> Option<Range<usize>> {
    let (mut depth, mut at) = (0, function.start);
    let mut signature = String::new();
    while at < function.end {
        let rest = &text[at..function.end];
        if rest.starts_with("//") {
            at += rest.find('\n')?;
            continue;
        }
        if let Some(quoted) = rest.strip_prefix('"') {
            at += 2 + quoted.find('"')?;
            continue;
        }
        let letter = rest.chars().next()?;
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' if depth == 0 => {
                let returned = signature.split("->").last().unwrap_or_default();
                let fixed = signature.contains("const fn")
                    || signature.contains("const unsafe fn")
                    || (signature.contains("->") && returned.contains("impl "));
                return (!fixed).then_some(at..function.end);
            }
            _ => {}
        }
        signature.push(letter);
        at += letter.len_utf8();
    }
    None
}

/// Before a mutant's code, and after it.
fn mark(number: usize) -> String {
    format!("\n/*MUTANT {number}*/\n")
}
const END: &str = "\n/*MUTANT -*/\n";

/// Appends a part of a file, its functions with their mutants.
fn render(
    text: &str,
    part: Range<usize>,
    functions: &[Function],
    mutants: &[Mutant],
    out: &mut String,
) {
    let mut at = part.start;
    for function in functions {
        // A function that lies in another comes after it, and is written with it.
        if function.range.start < at || function.range.end > part.end {
            continue;
        }
        let Range { start, end } = function.body;
        out.push_str(&text[at..start]);
        let _ = write!(
            out,
            "{{ match crate::mutants::chosen({}) {{",
            function.number
        );
        for &number in &function.mutants {
            let Mutant {
                span, replacement, ..
            } = &mutants[number];
            let mutated = [&text[start..span.start], replacement, &text[span.end..end]];
            let _ = write!(out, "{}{number} => {}{END}", mark(number), mutated.concat());
        }
        out.push_str("_ => ");
        render(text, start..end, functions, mutants, out);
        out.push_str("} }");
        at = end;
    }
    out.push_str(&text[at..part.end]);
}

/// A cargo for the planted tree.
fn planted_cargo(tree: &Path, command: &str) -> Command {
    let mut cargo = cargo();
    cargo.current_dir(tree);
    cargo.args([command, "--package", "tamis", "--message-format=json"]);
    cargo
        .arg("--target-dir")
        .arg(root().join("target/mutants/target"));
    // A planted switch is not written as one would write it, and some mutants cannot but fail.
    cargo.env("RUSTFLAGS", "--cap-lints=allow");
    cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
    // The planted functions are many times as long as they were.
    cargo.env("CARGO_PROFILE_DEV_LTO", "off");
    cargo.env("CARGO_INCREMENTAL", "0");
    cargo.stderr(Stdio::inherit());
    cargo
}

/// What cargo says, message by message.
fn messages(command: &mut Command) -> Result<(bool, Vec<Value>), Failure> {
    let output = command.output().map_err(|e| format!("cargo: {e}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    Ok((output.status.success(), messages.collect()))
}

/// The mutants that do not compile.
fn errors(tree: &Path) -> Result<BTreeSet<usize>, Failure> {
    eprintln!("── checking the planted library");
    let (good, messages) = messages(planted_cargo(tree, "check").arg("--lib"))?;
    let mut wrong = BTreeSet::new();
    for message in messages.iter().map(|message| &message["message"]) {
        if message["level"] != "error" {
            continue;
        }
        let spans = message["spans"].as_array().into_iter().flatten();
        for span in spans.filter(|span| span["is_primary"] == true) {
            let name = span["file_name"].as_str().unwrap_or_default();
            let text = fs::read_to_string(tree.join(name)).map_err(|e| format!("{name}: {e}"))?;
            let line = span["line_start"].as_u64().unwrap_or(0) as usize;
            let marks = text
                .lines()
                .take(line)
                .filter_map(|line| line.strip_prefix("/*MUTANT ")?.strip_suffix("*/"));
            match marks.last().and_then(|mark| mark.parse().ok()) {
                Some(number) => _ = wrong.insert(number),
                None => return Err(message["rendered"].to_string()),
            }
        }
    }
    match good || !wrong.is_empty() {
        true => Ok(wrong),
        false => Err("the planted library does not compile".to_string()),
    }
}

/// The library's tests, those of files, and the laws.
const SUITES: [&str; 3] = ["tamis", "format", "conformance"];

fn compile(tree: &Path) -> Result<Vec<PathBuf>, Failure> {
    eprintln!("── compiling the tests");
    let mut command = planted_cargo(tree, "test");
    command.args([
        "--no-run", "--lib", "--test", SUITES[1], "--test", SUITES[2],
    ]);
    let (good, messages) = messages(&mut command)?;
    let of = |suite| {
        let is_it = |message: &&Value| {
            message["target"]["name"] == suite && message["profile"]["test"] == true
        };
        let found = messages.iter().find(is_it);
        found.and_then(|message| message["executable"].as_str())
    };
    let found: Vec<PathBuf> = SUITES
        .into_iter()
        .filter_map(of)
        .map(PathBuf::from)
        .collect();
    match good && found.len() == SUITES.len() {
        true => Ok(found),
        false => Err("the planted tests do not compile".to_string()),
    }
}

/// Runs tests of one binary, and tells whether all passed. A test that takes too long, waits for
/// ever or asks for too much memory has failed.
fn passes(tree: &Path, binary: &Path, names: &[&str], limit: Duration, set: (&str, &str)) -> bool {
    let mut command = Command::new("sh");
    let limits = format!("ulimit -t {}; ulimit -v 8000000", limit.as_secs().max(1));
    command.args(["-c", &format!("{limits}; exec \"$@\""), "sh"]);
    command.arg(binary).args(names).arg("--exact");
    command
        .current_dir(tree.join("crates/tamis"))
        .env(set.0, set.1);
    command.env("TAMIS_BRIEF", "1");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let start = Instant::now();
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if start.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}

/// The tests that pass without a mutant, and for each function those that reach it.
fn trace(tree: &Path, binaries: &[PathBuf]) -> Result<(Vec<Test>, Reached), Failure> {
    let mut names = Vec::new();
    for binary in binaries {
        let mut list = Command::new(binary);
        list.args(["--list", "--format", "terse"]);
        list.current_dir(tree.join("crates/tamis"));
        let output = list
            .output()
            .map_err(|e| format!("{}: {e}", binary.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let tests = text.lines().filter_map(|line| line.strip_suffix(": test"));
        let core = tests.filter(|test| !is_left_out(test));
        names.extend(core.map(|test| (binary.clone(), test.to_string())));
    }
    eprintln!("── {} tests without a mutant", names.len());
    let found = Mutex::new((Vec::new(), Reached::new()));
    let left = AtomicUsize::new(0);
    in_parallel(names.len(), |i| {
        let (binary, name) = &names[i];
        let log = tree.join(format!("../reached-{i}"));
        let _ = fs::remove_file(&log);
        let start = Instant::now();
        let path = log.to_string_lossy();
        if !passes(tree, binary, &[name], LONGEST, (REACHED, &path)) {
            eprintln!("left out: {name}");
            left.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        let reached = fs::read(&log).unwrap_or_default();
        let _ = fs::remove_file(&log);
        let mut found = found.lock().map_err(|e| e.to_string())?;
        let number = found.0.len();
        let (words, _) = reached.as_chunks::<4>();
        for &word in words {
            let function = u32::from_le_bytes(word) as usize;
            found.1.entry(function).or_default().insert(number);
        }
        found.0.push(Test {
            binary: binary.clone(),
            name: name.clone(),
            took: start.elapsed(),
        });
        Ok(())
    })?;
    eprintln!(
        "   {} tests take too long, and are left out",
        left.into_inner()
    );
    found.into_inner().map_err(|e| e.to_string())
}

/// Laws that say the same of each kind's geometry: of a kind for study, no others are asked.
const OF_STUDY: [&str; 4] = ["law_01", "law_04", "law_08", "law_11"];

/// Whether a test is a law of a kind for study, and one that tells little of mutants.
fn is_left_out(test: &str) -> bool {
    let Some((kind, law)) = test.split_once("::law_") else {
        return false;
    };
    let is_study = KINDS.iter().any(|k| k.name == kind && k.tier != Tier::Core);
    is_study && !OF_STUDY.iter().any(|kept| kept.ends_with(&law[..2]))
}

/// Whether one of these tests fails with a mutant: the quickest first, and more at a time.
fn is_caught(tree: &Path, mutant: usize, mut tests: Vec<&Test>) -> Result<bool, Failure> {
    tests.sort_by_key(|test| test.took);
    let (mut all, mut many) = (Duration::ZERO, 4);
    let mut tests = tests.as_slice();
    while !tests.is_empty() && all < MOST {
        let (now, later) = tests.split_at(many.min(tests.len()));
        let took: Duration = now.iter().map(|test| test.took).sum();
        let chosen = mutant.to_string();
        let mut by_binary: BTreeMap<&Path, Vec<&str>> = BTreeMap::new();
        for test in now {
            by_binary.entry(&test.binary).or_default().push(&test.name);
        }
        for (binary, names) in by_binary {
            let is_laws = binary.to_string_lossy().contains("/conformance-");
            // The laws' harness takes one name.
            let size = if is_laws { 1 } else { names.len() };
            for names in names.chunks(size) {
                let limit = Duration::from_secs(10) + 4 * took;
                if !passes(tree, binary, names, limit, (CHOSEN, &chosen)) {
                    return Ok(true);
                }
            }
        }
        (all, many, tests) = (all + took, 4 * many, later);
    }
    Ok(false)
}

/// Does work on all processors.
fn in_parallel(
    count: usize,
    work: impl Fn(usize) -> Result<(), Failure> + Sync,
) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let one = || loop {
        let i = next.fetch_add(1, Ordering::Relaxed);
        if i >= count {
            return Ok(());
        }
        work(i)?;
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(one)).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(outcome) => outcome,
            Err(_) => Err("a thread panicked".to_string()),
        };
        threads.into_iter().try_for_each(join)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a file with a mutant, which replaces the first `from`, in the function that
    /// begins with the word before it.
    fn planted(text: &str, function: &str, from: &str, to: &str) -> Result<String, Unfit> {
        let start = text.find(function).unwrap();
        let at = start + text[start..].find(from).unwrap();
        let end = start + text[start..].find("// end").unwrap();
        let mutants = [Mutant {
            name: String::new(),
            file: String::new(),
            function: Some(start..end),
            span: at..at + from.len(),
            replacement: to.to_string(),
        }];
        let mut unfit = BTreeMap::new();
        let functions = functions(text, &mutants, &[0], &mut unfit, 7);
        let mut out = String::new();
        render(text, 0..text.len(), &functions, &mutants, &mut out);
        unfit.get(&0).map_or(Ok(out), |why| Err(*why))
    }

    #[test]
    fn a_mutant_is_an_arm_before_the_code_as_it_is() {
        let text = "fn f(a: [u8; { 2 }]) -> u8 // {\n{ a[0] + 1 }// end\nfn g() {}";
        let (mark, end) = (mark(0), END);
        let expected = format!(
            "fn f(a: [u8; {{ 2 }}]) -> u8 // {{\n{{ match crate::mutants::chosen(7) {{{mark}0 => \
             {{ a[0] - 1 }}{end}_ => {{ a[0] + 1 }}}} }}// end\nfn g() {{}}"
        );
        assert!(planted(text, "fn f", "+", "-") == Ok(expected));
    }

    #[test]
    fn what_cannot_be_chosen_at_run_time_is_not_planted() {
        for signature in ["const fn f() -> u8", "fn f() -> impl Iterator<Item = u8>"] {
            let text = format!("{signature} {{ 1 + 1 }}// end");
            assert!(planted(&text, signature, "+", "-") == Err(Unfit::Fixed));
        }
    }

    #[test]
    fn columns_are_characters_and_count_from_one() {
        let place = |line: u64, column: u64| serde_json::json!({"line": line, "column": column});
        let span = serde_json::json!({"start": place(2, 3), "end": place(3, 1)});
        let text = "a\n²³b\nc";
        assert_eq!(&text[range(text, &span)], "b\n");
    }
}
