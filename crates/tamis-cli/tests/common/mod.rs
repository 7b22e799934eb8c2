//! A room for a test, and the program run in it.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test uses a part; a test that cannot go on has failed"
)]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Output, Stdio};

use assert_cmd::{Command, cargo_bin, cargo_bin_cmd};
use serde_json::Value;
use tempfile::TempDir;

/// Makes signals that this process was told to ignore work in the programs that it starts: in the
/// background of a script interrupts are ignored, and a program that is to be interrupted would
/// be waited for without end.
///
/// What is ignored is inherited; what is handled becomes the default again.
#[cfg(unix)]
fn heed_signals() {
    use signal_hook::{consts, flag};
    static HEEDED: std::sync::Once = std::sync::Once::new();
    HEEDED.call_once(|| {
        for signal in [consts::SIGINT, consts::SIGTERM, consts::SIGHUP] {
            let always = std::sync::Arc::new(true.into());
            flag::register_conditional_default(signal, always).unwrap();
        }
    });
}

/// A directory of its own for a test, and the program run in it.
pub(crate) struct Room(pub(crate) TempDir);

impl Room {
    pub(crate) fn new() -> Room {
        #[cfg(unix)]
        heed_signals();
        Room(tempfile::tempdir().unwrap())
    }

    /// With `keys.txt` and the filter of it, `keys.tamis`.
    pub(crate) fn with_filter(keys: &[u8]) -> Room {
        let room = Room::new();
        room.put("keys.txt", keys);
        room.run(["build", "keys.txt", "-o", "keys.tamis"]).exits(0);
        room
    }

    /// Makes the filter NAME of these numbers.
    pub(crate) fn filter(&self, name: &str, keys: std::ops::Range<u32>, args: &[&str]) {
        let build = ["build", "-o", name, "--force"];
        self.feed(numbers(keys), build.iter().chain(args)).exits(0);
    }

    /// A file that starts as a filter and is damaged, for exit code 3.
    pub(crate) fn damaged(&self) -> &'static str {
        self.filter("whole", 0..10, &["--kind", "bloom"]);
        let mut bytes = self.get("whole");
        let last = bytes.len() - 1;
        bytes[last / 2] ^= 1;
        self.put("damaged", bytes);
        "damaged"
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// The names of all files, hidden ones too.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = cargo_bin_cmd!("tamis");
        command.current_dir(self.0.path());
        command
    }

    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        self.feed("", args)
    }

    pub(crate) fn feed<A: AsRef<OsStr>>(
        &self,
        input: impl AsRef<[u8]>,
        args: impl IntoIterator<Item = A>,
    ) -> Ran {
        let mut command = self.command();
        let input = input.as_ref().to_vec();
        Ran(command.args(args).write_stdin(input).output().unwrap())
    }

    pub(crate) fn spawn<A: AsRef<OsStr>>(
        &self,
        args: impl IntoIterator<Item = A>,
    ) -> std::process::Child {
        Process::new(cargo_bin!("tamis"))
            .args(args)
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

#[derive(Debug)]
pub(crate) struct Ran(pub(crate) Output);

impl Ran {
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Ran {
        assert_eq!(self.0.status.code(), Some(code), "{:?}", self.0);
        self
    }

    #[track_caller]
    pub(crate) fn prints(self, out: impl AsRef<[u8]>) -> Ran {
        assert!(self.0.stdout == out.as_ref(), "{:?}", self.0);
        self
    }

    /// Standard error has only lines in the program's form, and contains every one of these.
    #[track_caller]
    pub(crate) fn says(self, parts: &[&str]) -> Ran {
        let said = self.stderr();
        assert!(said.lines().all(|l| l.starts_with("tamis: ")), "{said}");
        for part in parts {
            assert!(said.contains(part), "no {part:?} in {said}");
        }
        self
    }

    /// As [`says`](Ran::says), and in one line.
    #[track_caller]
    pub(crate) fn complains(self, parts: &[&str]) -> Ran {
        assert_eq!(self.stderr().lines().count(), 1, "{}", self.stderr());
        self.says(parts)
    }

    #[track_caller]
    pub(crate) fn says_nothing(self) -> Ran {
        assert_eq!(self.stderr(), "");
        self
    }

    pub(crate) fn stderr(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }

    pub(crate) fn stdout(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.0.stdout).unwrap()
    }
}

pub(crate) fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/data")
        .join(name)
}

pub(crate) fn numbers(range: std::ops::Range<u32>) -> Vec<u8> {
    range.flat_map(|i| format!("{i}\n").into_bytes()).collect()
}
