//! `cargo xtask …`: what a shell script would otherwise do.

mod browser;
mod compile_time;
mod fuzz;
mod instructions;
mod lint;
mod memory;
mod museum;
mod mutants;
mod platforms;
mod python;
mod redis;
mod tables;
mod test;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const HELP: &str = "\
cargo xtask test           set up what the tests need, then run all of them
cargo xtask quick          the tests that find most mistakes soonest: two minutes when all is compiled
cargo xtask python         build the Python package's wheel and test it (part of `test`)
cargo xtask python 3.9 …   test the same wheel on other versions of Python
cargo xtask redis          test the module inside Redis and Valkey (part of `test`)
cargo xtask redis debian R the same in the servers of another release of Debian, such as forky
cargo xtask redis serve    start a Redis with the module on this machine, to try it
cargo xtask redis bench    measure the figures of docs/REDIS.md (takes minutes)
cargo xtask redis pauses   how long a single call holds the server, with 10^7 keys
cargo xtask redis latency  how long others wait while a filter of 10^7 keys is worked on
cargo xtask browser        look at the page of `tamis report` in a browser (part of `test`)
cargo xtask fuzz SECONDS   search for inputs that break something, for so long with each target
cargo xtask platforms      all tests of the library on aarch64, i686 and s390x, by qemu (takes long)
cargo xtask platforms T …  the same on some of these
cargo xtask platforms brief what tells most about them (part of `test`)
cargo xtask miri           undefined behaviour, found by Miri (takes minutes; not part of `test`)
cargo xtask sanitize       data races, found by the thread sanitizer (takes minutes; not part of `test`)
cargo xtask lint           formatting, clippy, documentation, house rules
cargo xtask museum         plant bugs that filters have had: each must turn a test red (takes minutes)
cargo xtask museum NAME …  some of them
cargo xtask mutants        change the core's code in small ways: each must turn a test red (takes long)
cargo xtask mutants FILE … some files of the library
cargo xtask tables         regenerate docs/KINDS.md and the README's chart (measures; takes minutes)
cargo xtask compile-time   tell what a user of one family, or of all, waits for
cargo xtask instructions   regenerate docs/INSTRUCTIONS.md (counts with valgrind; takes minutes)
";

/// A step that failed, as a sentence.
type Failure = String;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match arguments.first().map(String::as_str) {
        Some("test") => test::all(),
        Some("quick") => test::quick(),
        Some("python") if arguments.len() > 1 => python::versions(&arguments[1..]),
        Some("python") => python::package(),
        Some("redis") => match arguments.get(1).map(String::as_str) {
            None => redis::test(),
            Some("debian") => match arguments.get(2) {
                Some(release) => redis::test_of(release),
                None => Err(format!("of which release of Debian?\n\n{HELP}")),
            },
            Some("serve") => redis::serve(),
            Some("bench") => redis::measure("bench", "release"),
            // The module that the tests have: its assertions cost less than the machine's noise.
            Some("pauses") => redis::measure("pauses", "dev"),
            Some("latency") => redis::measure("latency", "dev"),
            Some(other) => Err(format!("`cargo xtask redis {other}` is nothing\n\n{HELP}")),
        },
        Some("browser") => browser::check(),
        Some("fuzz") => match arguments.get(1).map(|seconds| seconds.parse()) {
            Some(Ok(seconds)) => fuzz::search(seconds),
            _ => Err(format!("for how many seconds each?\n\n{HELP}")),
        },
        Some("platforms") if arguments.get(1).is_some_and(|word| word == "brief") => {
            platforms::tools().and_then(|()| platforms::brief())
        }
        Some("platforms") => platforms::all(&arguments[1..]),
        Some("miri") => memory::miri_tools().and_then(|()| memory::miri()),
        Some("sanitize") => memory::sanitizer_tools().and_then(|()| memory::sanitize()),
        Some("lint") => lint::all(),
        Some("museum") => museum::show(&arguments[1..]),
        Some("mutants") => mutants::search(&arguments[1..]),
        Some("tables") => tables::regenerate(),
        Some("compile-time") => compile_time::measure(),
        Some("instructions") => instructions::regenerate(),
        Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!(
            "no task is called `{}`\n\n{HELP}",
            other.unwrap_or_default()
        )),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            ExitCode::FAILURE
        }
    }
}

/// The workspace's root.
fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_path_buf()
}

/// The cargo that runs this.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// The nightly compiler's cargo, at the workspace's root. `+nightly` is rustup's; the cargo that
/// runs this would not understand it.
fn nightly() -> Command {
    let mut command = Command::new("cargo");
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
        command.env_remove(variable);
    }
    command.arg("+nightly").current_dir(root());
    command
}

/// Sets up a nightly compiler.
fn nightly_tools() -> Result<(), Failure> {
    if succeeds(nightly().arg("--version")) {
        return Ok(());
    }
    let install = ["toolchain", "install", "nightly", "--profile", "minimal"];
    run(Command::new("rustup").args(install))
}

/// Shows a command, runs it, and fails if it does.
fn run(command: &mut Command) -> Result<(), Failure> {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let line = words.join(" ");
    eprintln!("\n── {line}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{line}` failed ({status})")),
        Err(e) => Err(format!("`{line}` could not be started: {e}")),
    }
}

/// Whether a command runs and succeeds; its output is not shown.
fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
