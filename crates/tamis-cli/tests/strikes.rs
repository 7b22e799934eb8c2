//! Every call to the system fails once, or is the last: whatever the verb, the file that it was to
//! make or replace is then the old one or the new one, whole, and nothing else is left.
//!
//! A run of all calls takes long, so that only some are struck here, spread over all of them;
//! `TAMIS_STRIKES=all cargo test -p tamis-cli --test strikes` strikes each.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command as Process, Output};
use std::thread;

use assert_cmd::cargo_bin;

use common::{Room, numbers};

/// EIO, EACCES, EXDEV, ENOSPC, ENOLCK: the disk fails, is forbidden, is another, is full, or knows
/// no locks. None: the program is killed.
const ERRORS: [Option<&str>; 6] = [
    None,
    Some("5"),
    Some("13"),
    Some("18"),
    Some("28"),
    Some("37"),
];
/// How many calls are struck for each error where not all are.
const STRUCK: usize = 25;

struct Strike {
    room: Room,
    shim: std::path::PathBuf,
}

impl Strike {
    fn new() -> Strike {
        let room = Room::new();
        let shim = room.path("strike.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/strike.c");
        let mut compile = Process::new("cc");
        compile
            .args(["-shared", "-fPIC", "-o"])
            .arg(&shim)
            .arg(source);
        assert!(
            compile.status().unwrap().success(),
            "a Rust toolchain links by cc"
        );
        Strike { room, shim }
    }

    /// Runs the program, in which call number `at` is struck.
    fn run(&self, args: &[&str], at: usize, error: Option<&str>) -> Output {
        let mut command = Process::new(cargo_bin!("tamis"));
        command.args(args).current_dir(self.room.0.path());
        command.env("LD_PRELOAD", &self.shim);
        command.env("STRIKE_AT", at.to_string());
        command.envs(error.map(|error| ("STRIKE_BY", error)));
        command.output().unwrap()
    }

    /// The number of calls that a run makes: the first that none is killed at, less one.
    fn calls(&self, args: &[&str], prepare: impl Fn()) -> usize {
        let survives = |at| {
            prepare();
            self.run(args, at, None).status.success()
        };
        let mut above = 1;
        while !survives(above) {
            above *= 2;
        }
        let mut below = above / 2;
        while below + 1 < above {
            let middle = below.midpoint(above);
            *(if survives(middle) {
                &mut above
            } else {
                &mut below
            }) = middle;
        }
        below
    }

    /// Strikes a verb that makes the file `f`, of which this was the old content, if any.
    fn verb(&self, args: &[&str], old: Option<&[u8]>) {
        let room = &self.room;
        let prepare = || match old {
            Some(old) => room.put("f", old),
            None => {
                let _ = fs::remove_file(room.path("f"));
            }
        };
        prepare();
        room.run(args).exits(0);
        let new = room.get("f");
        let others = room.names();
        let calls = self.calls(args, prepare);
        let all = std::env::var_os("TAMIS_STRIKES").is_some();
        let step = if all { 1 } else { calls.div_ceil(STRUCK) };
        for error in ERRORS {
            let (mut kept, mut replaced) = (0, 0);
            // From another call on for each, so that together they strike most.
            let first = 1 + error.map_or(0, str::len) % step;
            for at in (first..=calls).step_by(step) {
                prepare();
                let ran = self.run(args, at, error);
                let what = format!("{args:?}, call {at} of {calls}, {error:?}: {ran:?}");
                let left = fs::read(room.path("f")).ok();
                let is_new = left.as_deref() == Some(&new[..]);
                assert!(is_new || left.as_deref() == old, "half a file after {what}");
                match (ran.status.code(), ran.status.signal()) {
                    (Some(0), _) => assert!(is_new, "{what}"),
                    (Some(4), _) => {}
                    (None, Some(9)) if error.is_none() => {}
                    _ => panic!("{what}"),
                }
                *(if is_new { &mut replaced } else { &mut kept }) += 1;
                let temporary = |name: &String| name.starts_with(".tamis");
                if error.is_some() {
                    // One may stay where its removal is what failed.
                    let left = room.names().into_iter().filter(temporary).count();
                    assert!(left <= 1, "{what}");
                }
            }
            assert!(
                kept + replaced > 3,
                "{args:?} {error:?}: {kept}, {replaced}"
            );
            assert!(
                error.is_some() || kept > 0,
                "{args:?}: none was killed in time"
            );
            // What is left is swept away by the next.
            prepare();
            room.run(args).exits(0);
            assert!(room.get("f") == new, "{args:?}");
            assert_eq!(room.names(), others, "{args:?} after {error:?}");
        }
    }
}

/// What was not synced before it had its name may be empty after a power cut, and a name in a
/// directory that was not synced may be the old file's.
#[test]
fn a_file_is_synced_before_it_has_its_name_and_its_directory_after() {
    let strike = Strike::new();
    let room = &strike.room;
    room.put("keys", numbers(0..1000));
    for (file, naming) in [("new", "linkat"), ("old", "rename")] {
        let mut command = Process::new(cargo_bin!("tamis"));
        command.args(["build", "keys", "-o", "f", "--force"]);
        command.current_dir(room.0.path());
        command.env("LD_PRELOAD", &strike.shim);
        command.env("STRIKE_LOG", room.path("calls"));
        assert!(command.output().unwrap().status.success());
        let calls = String::from_utf8(room.get("calls")).unwrap();
        let of_the_file = ["write", "fsync", naming];
        let calls: Vec<&str> = calls
            .lines()
            .filter(|call| of_the_file.contains(call))
            .collect();
        let named = calls.iter().position(|call| *call == naming);
        let named = named.unwrap_or_else(|| panic!("{file}: no {naming} in {calls:?}"));
        let is_synced = calls[..named].ends_with(&["write", "fsync"]);
        assert!(is_synced, "{file}: not before {naming} in {calls:?}");
        let is_durable = calls.get(named + 1) == Some(&"fsync");
        assert!(is_durable, "{file}: not after {naming} in {calls:?}");
        fs::remove_file(room.path("calls")).unwrap();
    }
}

const MADE: [&str; 4] = ["--kind", "cuckoo", "--capacity", "22000"];

#[test]
fn a_filter_that_is_built_is_the_old_one_or_the_new_one() {
    let strike = Strike::new();
    let room = &strike.room;
    room.put("keys", numbers(0..20_000));
    room.put("more", numbers(20_000..30_000));
    room.filter("old", 0..10, &MADE);
    let old = room.get("old");
    let build = ["build", "keys", "-o", "f"];
    strike.verb(&[&build[..], &MADE].concat(), None);
    strike.verb(&[&build[..], &["--force"], &MADE].concat(), Some(&old));
    let files = ["build", "keys", "more", "-o", "f", "--threads", "2"];
    strike.verb(&files, None);
}

#[test]
fn a_filter_that_is_built_from_disk_is_the_old_one_or_the_new_one() {
    let strike = Strike::new();
    strike.room.put("keys", numbers(0..60_000));
    strike.verb(&["build", "keys", "-o", "f", "--max-memory", "1M"], None);
}

#[test]
fn a_filter_that_is_changed_is_the_old_one_or_the_new_one() {
    let strike = Strike::new();
    let room = &strike.room;
    room.put("more", numbers(20_000..20_100));
    room.put("some", numbers(0..100));
    room.filter("old", 0..20_000, &MADE);
    let old = room.get("old");
    strike.verb(&["add", "f", "more"], Some(&old));
    strike.verb(&["remove", "f", "some"], Some(&old));
}

#[test]
fn a_filter_that_is_merged_or_halved_is_the_old_one_or_the_new_one() {
    let strike = Strike::new();
    let room = &strike.room;
    let made = ["--kind", "quotient", "--capacity", "65536"];
    room.filter("a", 0..20_000, &made);
    room.filter("b", 20_000..40_000, &made);
    let old = room.get("a");
    let merge = ["merge", "a", "b", "-o", "f"];
    strike.verb(&merge, None);
    strike.verb(
        &["merge", "a", "f", "-o", "f", "--force"],
        Some(&room.get("b")),
    );
    strike.verb(
        &[&merge[..], &["--force", "--max-memory", "100K"]].concat(),
        Some(&old),
    );
    strike.verb(&["halve", "a", "-o", "f", "--force"], Some(&old));
}

/// Programs that change a file and are killed at any call, beside others that do so and others
/// that read it: whoever reads finds a whole filter, and what was acknowledged stays in it.
#[test]
fn writers_that_are_killed_beside_writers_and_readers_lose_nothing() {
    const ROUNDS: usize = 10;
    let strike = Strike::new();
    let room = &strike.room;
    let made = ["--kind", "quotient", "--capacity", "20000", "--fpr", "1e-9"];
    let first = numbers(0..100);
    room.put("first", &first);
    room.filter("f", 0..100, &made);
    room.filter("other", 0..100, &made);
    let verbs: [&[&str]; 2] = [&["add", "f"], &["merge", "-o", "f", "--force", "f"]];
    let old = room.get("f");
    let calls = [(verbs[0], "first"), (verbs[1], "other")]
        .map(|(verb, from)| strike.calls(&[verb, &[from]].concat(), || room.put("f", &old)));
    room.put("f", &old);
    let write = |writer: usize| {
        let mut acknowledged = Vec::new();
        let mut killed = 0;
        for round in 0..ROUNDS {
            let from = (1000 * (writer + 1) + 50 * round) as u32;
            let keys = numbers(from..from + 50);
            let (own, which) = (format!("own{writer}"), round % 2);
            match which {
                0 => room.put(&own, &keys),
                _ => room.filter(&own, from..from + 50, &made),
            }
            // Beyond the last call nobody is killed.
            let at = 1 + (7 * writer + 11 * round) % (calls[which] + calls[which] / 3);
            let ran = strike.run(&[verbs[which], &[&own]].concat(), at, None);
            match (ran.status.code(), ran.status.signal()) {
                (Some(0), _) => acknowledged.extend(keys),
                (None, Some(9)) => killed += 1,
                _ => panic!("{ran:?}"),
            }
            fs::remove_file(room.path(&own)).unwrap();
        }
        (acknowledged, killed)
    };
    let all = thread::scope(|scope| {
        let writers = [0, 1, 2].map(|writer| scope.spawn(move || write(writer)));
        while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
            room.run(["verify", "f"]).exits(0);
            room.run(["check", "f", "first"]).exits(0).prints(&first);
        }
        let ends = writers.into_iter().map(|writer| writer.join().unwrap());
        let (keys, killed): (Vec<_>, Vec<_>) = ends.unzip();
        assert!(killed.iter().sum::<usize>() > ROUNDS, "{killed:?}");
        keys.concat()
    });
    assert!(!all.is_empty());
    room.feed(&all, ["check", "f"]).exits(0).prints(&all);
    // What the dead left is swept away.
    room.run(["add", "f", "first"]).exits(0);
    assert_eq!(room.names(), ["f", "first", "other", "strike.so"]);
}

/// It writes no file: what comes out is the beginning of what it would be.
#[test]
fn lines_without_repeats_are_all_of_them_or_an_error() {
    let strike = Strike::new();
    let lines = [numbers(0..30_000), numbers(0..30_000)].concat();
    strike.room.put("lines", &lines);
    let args = ["dedup", "lines", "-q"];
    let whole = strike.room.run(args).exits(0).0.stdout;
    let calls = strike.calls(&args, || ());
    for error in ERRORS {
        for at in 1..=calls {
            let ran = strike.run(&args, at, error);
            let what = format!("call {at} of {calls}, {error:?}, {:?}", ran.status);
            assert!(whole.starts_with(&ran.stdout), "{what}");
            match (ran.status.code(), ran.status.signal()) {
                (Some(0), _) => assert!(whole == ran.stdout, "{what}"),
                (Some(4), _) => {}
                (None, Some(9)) if error.is_none() => {}
                _ => panic!("{what}"),
            }
        }
    }
}
