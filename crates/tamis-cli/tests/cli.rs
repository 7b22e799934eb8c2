//! The program from outside: every verb, every exit code, and the input that nobody wishes for.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use assert_cmd::{Command, cargo_bin, cargo_bin_cmd};
use serde_json::Value;
use tamis::{AnyFilter, Config, Hashing, KINDS, Keyed};
use tempfile::TempDir;

/// A directory of its own for a test, and the program run in it.
struct Room(TempDir);

impl Room {
    fn new() -> Room {
        Room(tempfile::tempdir().unwrap())
    }

    /// With `keys.txt` and the filter of it, `keys.tamis`.
    fn with_filter(keys: &[u8]) -> Room {
        let room = Room::new();
        room.put("keys.txt", keys);
        room.run(["build", "keys.txt", "-o", "keys.tamis"]).exits(0);
        room
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// The names of all files, hidden ones too.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn command(&self) -> Command {
        let mut command = cargo_bin_cmd!("tamis");
        command.current_dir(self.0.path());
        command
    }

    fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        self.feed(b"", args)
    }

    fn feed<A: AsRef<OsStr>>(&self, input: &[u8], args: impl IntoIterator<Item = A>) -> Ran {
        let mut command = self.command();
        Ran(command.args(args).write_stdin(input).output().unwrap())
    }

    fn spawn<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> std::process::Child {
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

struct Ran(Output);

impl Ran {
    #[track_caller]
    fn exits(self, code: i32) -> Ran {
        assert_eq!(self.0.status.code(), Some(code), "{:?}", self.0);
        self
    }

    #[track_caller]
    fn prints(self, out: impl AsRef<[u8]>) -> Ran {
        assert!(self.0.stdout == out.as_ref(), "{:?}", self.0);
        self
    }

    /// One line on standard error, in the program's form, that contains every one of these.
    #[track_caller]
    fn complains(self, parts: &[&str]) -> Ran {
        let said = self.stderr();
        assert!(said.starts_with("tamis: "), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        for part in parts {
            assert!(said.contains(part), "no {part:?} in {said}");
        }
        self
    }

    #[track_caller]
    fn says_nothing(self) -> Ran {
        assert_eq!(self.stderr(), "");
        self
    }

    fn stderr(&self) -> String {
        String::from_utf8(self.0.stderr.clone()).unwrap()
    }

    fn stdout(&self) -> String {
        String::from_utf8(self.0.stdout.clone()).unwrap()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.0.stdout).unwrap()
    }
}

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/data")
        .join(name)
}

fn numbers(range: std::ops::Range<u32>) -> Vec<u8> {
    range.flat_map(|i| format!("{i}\n").into_bytes()).collect()
}

// What each verb does.

#[test]
fn every_kind_passes_every_key_that_it_was_built_from() {
    let room = Room::new();
    let keys = numbers(0..1000);
    room.put("keys.txt", &keys);
    for kind in KINDS {
        let file = format!("{}.tamis", kind.name);
        room.run(["build", "keys.txt", "-o", &file, "--kind", kind.name])
            .exits(0)
            .prints("")
            .says_nothing();
        room.run(["check", &file, "keys.txt"])
            .exits(0)
            .prints(&keys);
        let info = room.run(["info", &file, "--json"]).exits(0).json();
        assert_eq!(info["kind"], kind.name);
        assert_eq!(info["keys"], 1000);
        assert_eq!(info["warnings"], Value::Array(vec![]));
    }
}

#[test]
fn the_sample_visits_pass_as_they_would_through_grep() {
    let room = Room::new();
    let (list, visits) = (sample("blocklist.txt"), sample("visits.txt"));
    let args = ["build".as_ref(), list.as_os_str(), "-o".as_ref()];
    room.run(
        [
            &args[..],
            &["b.tamis".as_ref(), "--fpr".as_ref(), "1e-9".as_ref()],
        ]
        .concat(),
    )
    .exits(0);
    let blocked = fs::read_to_string(&list).unwrap();
    let blocked: std::collections::HashSet<_> = blocked.lines().collect();
    let expected: String = fs::read_to_string(&visits)
        .unwrap()
        .lines()
        .filter(|visit| blocked.contains(visit))
        .map(|visit| format!("{visit}\n"))
        .collect();
    assert!(!expected.is_empty());
    room.run(["check".as_ref(), "b.tamis".as_ref(), visits.as_os_str()])
        .exits(0)
        .prints(expected);
}

#[test]
fn the_sample_data_is_what_its_script_makes() {
    let room = Room::new();
    fs::copy(sample("make.py"), room.path("make.py")).unwrap();
    let Ok(made) = Process::new("python3").arg(room.path("make.py")).status() else {
        eprintln!("no python3 here; not tested");
        return;
    };
    assert!(made.success());
    for name in ["blocklist.txt", "visits.txt"] {
        assert!(room.get(name) == fs::read(sample(name)).unwrap(), "{name}");
    }
}

#[test]
fn keys_come_from_a_file_or_a_pipe_and_filters_go_to_either() {
    let room = Room::with_filter(b"a\nb\n");
    let bytes = room.get("keys.tamis");
    for args in [
        &["build", "keys.txt", "-o", "-"][..],
        &["build", "-", "-o", "-"],
        &["build", "-o", "-"],
    ] {
        room.feed(b"a\nb\n", args).exits(0).prints(&bytes);
    }
    room.feed(&bytes, ["info", "-"]).exits(0);
    room.feed(&bytes, ["check", "-", "keys.txt"])
        .exits(0)
        .prints("a\nb\n");
}

#[test]
fn the_same_set_makes_the_same_file() {
    let room = Room::new();
    let build = |keys: &[u8]| room.feed(keys, ["build", "-o", "-"]).exits(0).0.stdout;
    let expected = build(b"a\nb\nc\n");
    for keys in [
        &b"c\nb\na\n"[..],
        b"a\nb\nc",
        b"a\r\nb\r\nc\r\n",
        b"\na\n\n\r\nb\nc\n\n",
        b"a\na\na\nb\nc\nc\n",
    ] {
        assert!(build(keys) == expected, "{keys:?}");
    }
    assert!(build(b"a\nb\n") != expected);
}

#[test]
fn a_key_repeated_a_thousand_times_counts_once_in_every_kind() {
    let room = Room::new();
    let keys = b"again\n".repeat(1000);
    for kind in KINDS {
        let args = ["build", "-o", "f", "--force", "--json", "--kind", kind.name];
        let report = room.feed(&keys, args).exits(0).json();
        assert_eq!(report["keys"], 1, "{}", kind.name);
    }
}

#[test]
fn the_rate_and_the_capacity_choose_the_kind() {
    let room = Room::new();
    for (args, kind) in [
        (&[][..], "binary_fuse8"),
        (&["--fpr", "0.001"], "binary_fuse16"),
        (&["--fpr", "1e-7"], "binary_fuse32"),
        (&["--capacity", "3"], "binary_fuse8"),
        (&["--capacity", "4"], "split_block"),
        (&["--kind", "cuckoo:bits=12,fpr=0.02"], "cuckoo"),
        (&["--kind", "capacity=9"], "split_block"),
    ] {
        let args = [&["build", "-o", "f", "--force", "--json"], args].concat();
        let report = room.feed(b"a\nb\nc\n", &args).exits(0).json();
        assert_eq!(report["kind"], kind, "{args:?}");
    }
}

#[test]
fn the_seed_is_part_of_the_file() {
    let room = Room::new();
    let report = room.feed(b"a\n", ["build", "-o", "f", "--seed", "7", "--verbose"]);
    assert!(report.exits(0).stderr().contains("1 keys"));
    let info = room.run(["info", "f", "--json"]).json();
    assert_eq!(info["hashing"]["seed"], 7);
    room.feed(b"a\nb\n", ["check", "f"]).exits(0).prints("a\n");
}

#[test]
fn a_list_of_keys_serves_as_a_filter_on_the_spot() {
    let room = Room::with_filter(&numbers(0..5000));
    let visits = numbers(2500..50_000);
    let built = room.feed(&visits, ["check", "keys.tamis"]).exits(0);
    room.feed(&visits, ["check", "keys.txt"])
        .exits(0)
        .prints(&built.0.stdout);
    room.feed(&visits, ["filter", "keys.txt"])
        .exits(0)
        .prints(&built.0.stdout);
    room.feed(&numbers(0..5000), ["check", "-", "keys.txt", "-c"])
        .exits(0)
        .prints("5000\n");
}

#[test]
fn invert_prints_exactly_the_other_lines() {
    let room = Room::with_filter(b"a\nb\n");
    let lines = b"a\n\nb\r\nc\n\r\nd";
    room.feed(lines, ["check", "keys.tamis"])
        .exits(0)
        .prints("a\nb\r\n");
    room.feed(lines, ["check", "keys.tamis", "-v"])
        .exits(0)
        .prints("\nc\n\r\nd\n");
}

#[test]
fn count_quiet_and_json_print_no_lines() {
    let room = Room::with_filter(b"a\nb\n");
    let lines = b"a\nc\nb\n";
    room.feed(lines, ["check", "keys.tamis", "-c"])
        .exits(0)
        .prints("2\n");
    room.feed(lines, ["check", "keys.tamis", "-vc"])
        .exits(0)
        .prints("1\n");
    room.feed(lines, ["check", "keys.tamis", "-q"])
        .exits(0)
        .prints("");
    let counts = room.feed(lines, ["check", "keys.tamis", "--json"]).exits(0);
    assert_eq!(counts.json()["lines"], 3);
    assert_eq!(counts.json()["passed"], 2);
    for option in ["-c", "-q", "--json", "-vq"] {
        let lines = if option == "-vq" { "a\n" } else { "c\n" };
        room.feed(lines.as_bytes(), ["check", "keys.tamis", option])
            .exits(1);
    }
}

#[test]
fn quiet_stops_at_the_first_line_that_passes() {
    let room = Room::with_filter(b"a\n");
    let mut child = room.spawn(["check", "keys.tamis", "-q"]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"a\n").unwrap();
    // The input stays open; only stopping early lets this return.
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_slow_pipe_is_answered_line_by_line() {
    let room = Room::with_filter(b"a\n");
    let mut child = room.spawn(["check", "keys.tamis"]);
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (send, answer) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        send.send(line).unwrap();
    });
    input.write_all(b"x\na\nhalf").unwrap();
    let answer = answer.recv_timeout(Duration::from_secs(30)).unwrap();
    assert_eq!(answer, "a\n");
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn info_tells_everything_but_the_secret() {
    let room = Room::new();
    let secret = *b"0123456789abcdef";
    let config = Config::new(10).of_kind("bloom");
    let filter: Keyed<AnyFilter> =
        Keyed::build_with(&config, Hashing::secret(secret), ["a", "b"]).unwrap();
    filter.save(room.path("f")).unwrap();
    let text = room.run(["info", "f"]).exits(0).stdout();
    for part in [
        "bloom",
        "keys            2\n",
        "1 %",
        "SipHash",
        "health          good",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let json = room.run(["info", "f", "--json"]).exits(0);
    assert_eq!(json.json()["shape"]["k"], 7);
    for shown in [text, json.stdout()] {
        assert!(!shown.contains("0123456789abcdef") && !shown.contains("3031"));
    }
    room.feed(b"a\nc\n", ["check", "f"]).exits(0).prints("a\n");
}

#[test]
fn info_warns_of_a_filter_that_holds_too_much() {
    let room = Room::new();
    let config = Config::new(100).of_kind("split_block");
    let mut filter: Keyed<AnyFilter> = Keyed::new(&config).unwrap();
    for i in 0..500u64 {
        let hash = filter.hash(&i);
        filter
            .filter_mut()
            .as_insert()
            .unwrap()
            .insert(hash)
            .unwrap();
    }
    filter.save(room.path("f")).unwrap();
    let text = room.run(["info", "f"]).exits(0).stdout();
    assert!(
        text.contains("over capacity") && text.contains("false positives"),
        "{text}"
    );
    assert!(!text.contains("health"), "{text}");
    let json = room.run(["info", "f", "--json"]).json();
    assert_eq!(json["warnings"].as_array().unwrap().len(), 2);
}

#[test]
fn info_does_not_warn_of_keys_that_a_kind_makes_room_for() {
    let room = Room::new();
    for kind in ["scalable", "sliding"] {
        let config = Config::new(100).of_kind(kind);
        let mut filter: Keyed<AnyFilter> = Keyed::new(&config).unwrap();
        for i in 0..500u64 {
            let hash = filter.hash(&i);
            let insert = filter.filter_mut().as_insert().unwrap();
            insert.insert(hash).unwrap();
        }
        filter.save(room.path(kind)).unwrap();
        let text = room.run(["info", kind]).exits(0).stdout();
        assert!(text.contains("health          good"), "{text}");
    }
    let text = room.run(["info", "scalable"]).stdout();
    assert!(text.contains("fpr 0.01, ratio 0.85,"), "{text}");
    let json = room.run(["info", "scalable", "--json"]).json();
    assert_eq!(json["shape"]["ratio"], 0.85);
}

#[test]
fn kinds_lists_every_kind() {
    let room = Room::new();
    let text = room.run(["kinds"]).exits(0).stdout();
    let json = room.run(["kinds", "--json"]).exits(0).json();
    for (kind, listed) in KINDS.iter().zip(json.as_array().unwrap()) {
        assert!(text.lines().any(|line| line.starts_with(kind.name)));
        assert_eq!(listed["kind"], kind.name);
        assert_eq!(listed["remove"], kind.capabilities().remove);
        assert_eq!(
            listed["parameters"].as_array().unwrap().len(),
            kind.params.len()
        );
    }
}

#[test]
fn help_starts_with_examples() {
    let room = Room::new();
    for verb in ["build", "check", "info", "kinds"] {
        for help in ["-h", "--help"] {
            let text = room.run([verb, help]).exits(0).stdout();
            assert!(text.starts_with("Examples:\n  "), "{text}");
            assert!(text.contains("--json"), "{text}");
        }
    }
    assert!(
        room.run(["--help"])
            .exits(0)
            .stdout()
            .starts_with("Examples:")
    );
}

// Exit codes: 1 nothing passed, 2 usage, 3 damaged, 4 input and output.

#[test]
fn no_line_that_passes_is_exit_code_1() {
    let room = Room::with_filter(b"a\n");
    for input in [&b""[..], b"\n", b"zebra\n", b"zebra"] {
        room.feed(input, ["check", "keys.tamis"])
            .exits(1)
            .prints("")
            .says_nothing();
    }
}

#[test]
fn a_wrong_argument_is_exit_code_2_and_names_what_was_meant() {
    let room = Room::new();
    for (args, meant) in [
        (&["buld"][..], "build"),
        (&["check", "f", "--inverted"], "--invert"),
        (&["build", "-o", "f", "--capcity", "3"], "--capacity"),
    ] {
        let said = room.run(args).exits(2).stderr();
        assert!(said.contains(meant), "{said}");
    }
    room.feed(b"a\n", ["build", "-o", "f", "--kind", "cukoo"])
        .exits(2)
        .complains(&["cukoo", "did you mean `cuckoo`?"]);
    room.feed(b"a\n", ["build", "-o", "f", "--kind", "bloom:bits=3"])
        .exits(2)
        .complains(&["`bloom` has no parameter `bits`", "k"]);
    room.run(["build"]).exits(2);
    room.run(["check", "-"])
        .exits(2)
        .complains(&["standard input"]);
    room.feed(b"a\n", ["build", "-o", "-", "--json"])
        .exits(2)
        .complains(&["--json"]);
    assert!(room.names().is_empty());
}

#[test]
fn a_rate_that_is_none_is_refused_before_reading() {
    let room = Room::new();
    for fpr in ["0", "-0", "NaN", "2", "1", "-1", "inf", "5e-324x", ""] {
        // The input file does not exist, and is not what is complained of.
        let said = room
            .run(["build", "absent", "-o", "f", "--fpr", fpr])
            .exits(2)
            .stderr();
        assert!(said.contains("--fpr"), "{said}");
        room.run([
            "build",
            "absent",
            "-o",
            "f",
            "--kind",
            &format!("bloom:fpr={fpr}"),
        ])
        .exits(2);
    }
    room.feed(b"a\n", ["build", "-o", "f", "--fpr", "5e-324"])
        .exits(2)
        .complains(&["f: ", "64-bit hash"]);
}

#[test]
fn a_capacity_beyond_reach_is_refused_at_once_for_every_kind() {
    let room = Room::new();
    let capacity = u64::MAX.to_string();
    for kind in KINDS.iter().map(|kind| kind.name).chain([""]) {
        let args = ["build", "-o", "f", "--capacity", &capacity, "--kind", kind];
        room.feed(b"a\n", args).exits(2).complains(&["f: "]);
    }
    assert!(room.names().is_empty());
}

#[test]
fn an_existing_file_stays_without_force() {
    let room = Room::with_filter(b"a\n");
    room.put("precious", b"precious");
    room.run(["build", "keys.txt", "-o", "precious"])
        .exits(2)
        .complains(&["precious", "--force"]);
    assert_eq!(room.get("precious"), b"precious");
    room.run(["build", "keys.txt", "-o", "precious", "--force"])
        .exits(0);
    assert_eq!(room.get("precious"), room.get("keys.tamis"));
    assert_eq!(room.names(), ["keys.tamis", "keys.txt", "precious"]);
}

#[test]
fn every_flipped_bit_is_a_damaged_file_and_never_a_list_of_keys() {
    let room = Room::with_filter(b"a\nb\n");
    let whole = room.get("keys.tamis");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        room.put("flipped", &bytes);
        room.feed(b"a\n", ["check", "flipped"])
            .exits(3)
            .prints("")
            .complains(&["flipped: "]);
    }
    room.run(["info", "flipped"])
        .exits(3)
        .complains(&["flipped: "]);
}

#[test]
fn every_truncation_is_a_damaged_file_and_never_a_list_of_keys() {
    let room = Room::with_filter(b"a\nb\n");
    let whole = room.get("keys.tamis");
    for len in 1..whole.len() {
        room.put("cut", &whole[..len]);
        room.feed(b"a\n", ["check", "cut"])
            .exits(3)
            .prints("")
            .complains(&["cut: "]);
    }
    room.run(["info", "cut"]).exits(3).complains(&["cut short"]);
    room.feed(&whole[..100], ["check", "-", "keys.txt"])
        .exits(3)
        .complains(&["standard input: "]);
}

#[test]
fn what_is_no_filter_is_told_so() {
    let room = Room::with_filter(b"a\n");
    room.put("empty", b"");
    for file in ["keys.txt", "empty"] {
        room.run(["info", file]).exits(3).complains(&[file]);
    }
    room.run(["build", "keys.tamis", "-o", "f"])
        .exits(2)
        .complains(&["keys.tamis", "not a list of keys"]);
}

#[test]
fn a_missing_file_is_exit_code_4_and_named() {
    let room = Room::with_filter(b"a\n");
    for args in [
        &["build", "absent", "-o", "f"][..],
        &["check", "absent"],
        &["check", "keys.tamis", "absent"],
        &["info", "absent"],
    ] {
        room.run(args).exits(4).complains(&["absent: No such file"]);
    }
    room.run(["build", "keys.txt", "-o", "absent/f"])
        .exits(4)
        .complains(&["absent/f: No such file"]);
    room.run(["info", "two\nlines"])
        .exits(4)
        .complains(&[r"two\nlines"]);
}

#[test]
fn a_directory_is_neither_keys_nor_filter_nor_target() {
    let room = Room::with_filter(b"a\n");
    fs::create_dir(room.path("dir")).unwrap();
    for args in [
        &["build", "dir", "-o", "f"][..],
        &["build", "keys.txt", "-o", "dir"],
        &["build", "keys.txt", "-o", "dir", "--force"],
        &["check", "dir"],
        &["check", "keys.tamis", "dir"],
        &["info", "dir"],
    ] {
        room.run(args).exits(4).complains(&["dir: "]);
    }
    assert_eq!(room.names(), ["dir", "keys.tamis", "keys.txt"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output_is_exit_code_4() {
    let room = Room::with_filter(b"a\n");
    for args in [
        &["build", "keys.txt", "-o", "-"][..],
        &["build", "keys.txt", "-o", "f", "--json"],
        &["check", "keys.tamis", "keys.txt"],
        &["check", "keys.tamis", "keys.txt", "-c"],
        &["check", "keys.tamis", "keys.txt", "--json"],
        &["info", "keys.tamis"],
        &["kinds"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = Process::new(cargo_bin!("tamis"))
            .args(args)
            .current_dir(room.0.path())
            .stdout(full)
            .output();
        Ran(ran.unwrap()).exits(4).complains(&["standard output: "]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_standard_error_that_takes_nothing_changes_nothing() {
    let room = Room::with_filter(b"a\n");
    for (args, code) in [
        (&["build", "keys.txt", "-o", "f", "--verbose"][..], 0),
        (&["info", "absent"], 4),
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = Process::new(cargo_bin!("tamis"))
            .args(args)
            .current_dir(room.0.path())
            .stderr(full)
            .output();
        Ran(ran.unwrap()).exits(code);
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_written_whole_leaves_the_old_one() {
    let room = Room::with_filter(&numbers(0..10_000));
    room.put("old", b"old");
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" build keys.txt -o old --force";
    let ran = Process::new("sh")
        .args([
            "-c".as_ref(),
            script.as_ref(),
            cargo_bin!("tamis").as_os_str(),
        ])
        .current_dir(room.0.path())
        .output();
    Ran(ran.unwrap())
        .exits(4)
        .complains(&["old: ", "too large"]);
    assert_eq!(room.get("old"), b"old");
    assert_eq!(room.names(), ["keys.tamis", "keys.txt", "old"]);
}

#[test]
fn a_reader_that_leaves_is_no_error_unless_it_was_to_have_a_filter() {
    let room = Room::with_filter(&numbers(0..1_000_000));
    let left_alone = |args: &[&str]| {
        let mut child = room.spawn(args);
        let mut line = Vec::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_until(b'\n', &mut line).unwrap();
        drop(output);
        Ran(child.wait_with_output().unwrap())
    };
    left_alone(&["check", "keys.tamis", "keys.txt"])
        .exits(0)
        .says_nothing();
    // Lines that nobody wants any more are not missed; a filter of which half arrived is of no use.
    left_alone(&["build", "keys.txt", "-o", "-"])
        .exits(4)
        .complains(&["standard output"]);
}

// Keys are bytes.

#[test]
fn keys_may_hold_any_byte_but_a_line_end() {
    let room = Room::new();
    let keys: Vec<u8> = (0..=255u8)
        .filter(|&byte| byte != b'\n')
        .flat_map(|byte| [byte, b'x', byte, b'y', b'\n'])
        .collect();
    room.put("keys.txt", &keys);
    let build = ["build", "keys.txt", "-o", "f", "--json", "--fpr", "1e-9"];
    assert_eq!(room.run(build).exits(0).json()["keys"], 255);
    room.run(["check", "f", "keys.txt"]).exits(0).prints(&keys);
    room.feed(b"\0\n\xFF\n", ["check", "f"]).exits(1);
}

#[test]
fn a_carriage_return_belongs_to_the_line_end_only_before_it() {
    let room = Room::with_filter(b"a\r\nb\rc\r\n");
    room.feed(b"a\nb\rc\na\r", ["check", "keys.tamis"])
        .exits(0)
        .prints("a\nb\rc\n");
}

#[test]
fn no_keys_make_a_filter_of_nothing() {
    let room = Room::new();
    for kind in KINDS {
        for keys in [&b""[..], b"\n\r\n\n"] {
            let args = ["build", "-o", "f", "--force", "--json", "--kind", kind.name];
            assert_eq!(room.feed(keys, args).exits(0).json()["keys"], 0);
            room.feed(b"a\n\n", ["check", "f"]).exits(1).prints("");
            room.run(["info", "f"]).exits(0);
        }
    }
    room.put("empty", b"");
    room.feed(b"a\n", ["check", "empty"])
        .exits(1)
        .complains(&["empty: warning"]);
}

#[test]
fn an_empty_line_holds_no_key_even_for_a_filter_that_has_the_empty_one() {
    let room = Room::new();
    let config = Config::new(2).of_kind("bloom");
    let filter: Keyed<AnyFilter> = Keyed::build(&config, ["", "a"]).unwrap();
    filter.save(room.path("f")).unwrap();
    room.feed(b"\n\r\n", ["check", "f"]).exits(1).prints("");
    room.feed(b"\n", ["check", "f", "-v"]).exits(0).prints("\n");
}

#[test]
fn a_line_of_64_mib_is_a_key_like_any_other() {
    let room = Room::new();
    let mut keys = b"x".repeat(64 << 20);
    keys.extend(b"\nshort\n");
    room.put("keys.txt", &keys);
    let build = ["build", "keys.txt", "-o", "f", "--json", "--fpr", "1e-9"];
    assert_eq!(room.run(build).exits(0).json()["keys"], 2);
    room.run(["check", "f", "keys.txt"]).exits(0).prints(&keys);
    keys[0] = b'y';
    room.feed(&keys, ["check", "f"]).exits(0).prints("short\n");
}

#[cfg(unix)]
#[test]
fn a_named_pipe_serves_as_keys_as_lines_and_as_a_filter() {
    let room = Room::with_filter(b"a\nb\n");
    let made = Process::new("mkfifo")
        .arg(room.path("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    let filter = room.get("keys.tamis");
    for (args, bytes, out) in [
        (
            &["build", "pipe", "-o", "-"][..],
            &b"a\nb\n"[..],
            &filter[..],
        ),
        (&["check", "keys.tamis", "pipe"], b"a\nc\n", b"a\n"),
        (&["check", "pipe", "keys.txt"], &filter, b"a\nb\n"),
        (&["check", "pipe", "keys.txt"], b"b\n", b"b\n"),
    ] {
        let (path, bytes) = (room.path("pipe"), bytes.to_vec());
        let writer = thread::spawn(move || fs::write(path, bytes).unwrap());
        room.run(args).exits(0).prints(out);
        writer.join().unwrap();
    }
    room.run(["build", "keys.txt", "-o", "pipe", "--force"])
        .exits(4)
        .complains(&["pipe: not a regular file"]);
}
