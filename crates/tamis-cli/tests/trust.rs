//! What nobody should have to fear: changes lost to another program, input misread, limits of the
//! system, leftovers, and secrets told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command as Process, Stdio};
use std::thread;

use assert_cmd::cargo_bin;

use common::{Ran, Room, numbers};

/// Runs a line of shell in the room, in which `$0` is the program.
#[cfg(unix)]
fn shell(room: &Room, script: &str) -> Ran {
    let ran = Process::new("sh")
        .args([
            "-c".as_ref(),
            script.as_ref(),
            cargo_bin!("tamis").as_os_str(),
        ])
        .current_dir(room.0.path())
        .stdin(Stdio::null())
        .output();
    Ran(ran.unwrap())
}

/// `add` beside `merge -o` of the same file used to lose the keys of either, and both succeeded.
#[test]
fn verbs_that_replace_a_file_at_a_time_lose_nothing() {
    let room = Room::new();
    let made = ["--kind", "quotient", "--capacity", "20000", "--fpr", "1e-9"];
    room.filter("f", 0..10, &made);
    thread::scope(|scope| {
        for i in 0..4u32 {
            let (room, made) = (&room, &made);
            scope.spawn(move || {
                for round in 0..5 {
                    let from = 1000 * (i + 1) + 100 * round;
                    let other = format!("other{i}");
                    room.filter(&other, from..from + 50, made);
                    room.run(["merge", "f", &other, "-o", "f", "--force"])
                        .exits(0);
                    room.feed(numbers(from + 50..from + 100), ["add", "f"])
                        .exits(0);
                    fs::remove_file(room.path(&other)).unwrap();
                }
            });
        }
    });
    let all = [
        numbers(0..10),
        numbers(1000..1500),
        numbers(2000..2500),
        numbers(3000..3500),
        numbers(4000..4500),
    ]
    .concat();
    room.feed(&all, ["check", "f"]).exits(0).prints(&all);
    assert_eq!(room.names(), ["f"]);
}

/// Starts a build that has its place and waits for keys.
fn waiting_build(room: &Room, args: &[&str]) -> std::process::Child {
    let mut child = room.spawn([&["build", "-o", "f", "--kind", "bloom"], args].concat());
    // It is told to read once it is sure of its place: a pipe's worth of keys is then taken.
    let input = child.stdin.as_mut().unwrap();
    input.write_all(&numbers(0..60_000)).unwrap();
    child
}

#[test]
fn a_build_that_replaces_a_file_keeps_others_from_changing_it() {
    let room = Room::new();
    room.filter("f", 0..10, &["--kind", "bloom", "--capacity", "1000"]);
    let build = waiting_build(&room, &["--force"]);
    let mut add = room.spawn(["add", "f"]);
    drop(add.stdin.take());
    let mut said = BufReader::new(add.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("f: waiting for another"), "{line}");
    assert!(build.wait_with_output().unwrap().status.success());
    assert!(add.wait().unwrap().success());
}

#[test]
fn a_file_that_is_changed_or_made_while_another_is_built_is_kept() {
    for (before, why) in [(true, "changed"), (false, "made")] {
        let room = Room::new();
        if before {
            room.put("f", b"old");
        }
        let build = waiting_build(&room, if before { &["--force"] } else { &[] });
        // By a program that knows nothing of locks.
        room.put("f", b"another's");
        Ran(build.wait_with_output().unwrap())
            .exits(4)
            .complains(&["f: ", why, "meanwhile"]);
        assert_eq!(room.get("f"), b"another's");
        assert_eq!(room.names(), ["f"]);
    }
}

/// Compiles what is loaded before the C library, to be named by `LD_PRELOAD`.
#[cfg(target_os = "linux")]
fn preloaded(room: &Room, name: &str) {
    let source = format!("{}/tests/common/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let mut compile = Process::new("cc");
    compile.args(["-shared", "-fPIC", "-o"]);
    compile.arg(room.path(&format!("{name}.so"))).arg(source);
    let compiled = compile.status().unwrap();
    assert!(compiled.success(), "a Rust toolchain links by cc");
}

#[cfg(target_os = "linux")]
#[test]
fn a_lock_that_cannot_be_had_is_told() {
    let room = Room::with_filter(b"a\n");
    preloaded(&room, "no_lock");
    room.filter("old", 0..10, &["--kind", "bloom"]);
    for verb in [
        "build keys.txt -o old --force --kind bloom",
        "add old keys.txt",
    ] {
        shell(&room, &format!("LD_PRELOAD=./no_lock.so \"$0\" {verb}"))
            .exits(0)
            .says(&["old: warning: it cannot be locked"]);
    }
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_to_itself_is_no_target() {
    let room = Room::with_filter(b"a\n");
    std::os::unix::fs::symlink("loop", room.path("loop")).unwrap();
    for force in [&[][..], &["--force"]] {
        let args = [&["build", "keys.txt", "-o", "loop"], force].concat();
        room.run(args).exits(4).complains(&["loop: "]);
    }
    assert_eq!(room.names(), ["keys.tamis", "keys.txt", "loop"]);
}

#[test]
fn what_is_no_text_is_never_read_as_lines() {
    let room = Room::with_filter(b"a\n");
    let mut tar = vec![0; 10_240];
    tar[..5].copy_from_slice(b"a.txt");
    tar[257..262].copy_from_slice(b"ustar");
    for (bytes, what) in [
        (&b"PK\x03\x04rest"[..], "zip archive"),
        (b"7z\xBC\xAF\x27\x1Crest", "7z archive"),
        (b"SQLite format 3\0rest", "SQLite database"),
        (b"\x7FELFrest", "a program"),
        (b"\xFF\xFEa\0\n\0", "UTF-16"),
        (b"\xFE\xFF\0a\0\n", "UTF-16"),
        (b"a\0b\0\n\0", "iconv -f UTF-16LE"),
        (b"\0a\0b\0\n", "iconv -f UTF-16BE"),
        (b"\xFF\xFE\0\0a\0\0\0\n\0\0\0", "UTF-32"),
        (b"\0\0\xFE\xFF\0\0\0a\0\0\0\n", "UTF-32"),
        (b"\x89PNG\r\n\x1A\n\0\0\0\x0DIHDR", "PNG image"),
        (b"PAR1rest", "--column"),
        (&tar, "tar archive"),
    ] {
        room.put("input", bytes);
        for args in [
            &["build", "input", "-o", "f"][..],
            &["check", "keys.tamis", "input"],
            &["dedup", "input"],
            &["build", "input", "-o", "f", "-f", "1"],
        ] {
            room.run(args)
                .exits(2)
                .prints("")
                .complains(&["input: this is", what]);
        }
        room.feed(bytes, ["check", "keys.tamis"])
            .exits(2)
            .complains(&["standard input: this is", what]);
        assert_eq!(room.names(), ["input", "keys.tamis", "keys.txt"]);
    }
    // Whoever says so is believed.
    room.put("input", b"\xFF\xFEa\nb\n");
    let build = ["build", "input", "-o", "f", "--text", "--json"];
    assert_eq!(room.run(build).exits(0).json()["keys"], 2);
}

/// Standard input and output that were closed used to be an empty list, and answers to nobody.
#[cfg(target_os = "linux")]
#[test]
fn closed_streams_are_errors() {
    let room = Room::with_filter(b"a\n");
    for (script, what) in [
        ("\"$0\" build -o f <&-", "standard input: it is closed"),
        (
            "\"$0\" check keys.tamis <&-",
            "standard input: it is closed",
        ),
        (
            "\"$0\" check keys.tamis keys.txt >&-",
            "standard output: it is closed",
        ),
        (
            "\"$0\" check -c keys.tamis keys.txt >&-",
            "standard output: it is closed",
        ),
        (
            "\"$0\" info keys.tamis >&-",
            "standard output: it is closed",
        ),
    ] {
        shell(&room, script).exits(4).complains(&[what]);
    }
    assert_eq!(room.names(), ["keys.tamis", "keys.txt"]);
    // What neither reads nor writes there misses nothing.
    shell(&room, "\"$0\" build keys.txt -o f <&- >&-").exits(0);
    shell(&room, "\"$0\" check -q f keys.txt <&- >&-").exits(0);
}

#[cfg(target_os = "linux")]
#[test]
fn no_limit_of_the_system_makes_it_panic() {
    let room = Room::new();
    room.put("one", numbers(0..300_000));
    room.put("two", numbers(300_000..600_000));
    let verbs = [
        "build one two -o f --force --threads 4",
        "build one two -o f --force --threads 4 --max-memory 4M",
        "build one two -o f --force --kind bloom --threads 4",
        "dedup -q -c one two",
    ];
    preloaded(&room, "no_thread");
    // With less address space than this the system cannot even load the program.
    let starts = |kib: &u32| {
        let ran = shell(&room, &format!("ulimit -v {kib}; \"$0\" kinds"));
        ran.0.status.success()
    };
    let least = (8_000..100_000).step_by(500).find(starts);
    let least = least.expect("100 MB are enough to start");
    for verb in verbs {
        // Without a thread everything goes on; whatever else is short is a failure that is told.
        let ran = shell(&room, &format!("LD_PRELOAD=./no_thread.so \"$0\" {verb}"));
        ran.exits(0);
        let memory = [1_000, 6_000, 11_000, 41_000, 81_000, 181_000].map(|more| least + more);
        let others = ["-n 8", "-n 40", "-f 1", "-s 1024"].map(String::from);
        for limit in memory.map(|kib| format!("-v {kib}")).iter().chain(&others) {
            let ran = shell(&room, &format!("ulimit {limit}; \"$0\" {verb}"));
            let said = ran.stderr();
            assert!(!said.contains("panicked"), "{limit} {verb}: {said}");
            let code = ran.0.status.code();
            assert!(
                matches!(code, Some(0 | 4)),
                "{limit} {verb}: {:?} {said}",
                ran.0.status
            );
        }
        for name in room.names() {
            assert!(!name.starts_with(".tamis"), "{verb} left {name}");
        }
    }
}

/// What a killed program leaves is swept away by the next that writes there.
#[cfg(unix)]
#[test]
fn leftovers_of_killed_programs_are_swept_away() {
    let room = Room::with_filter(b"a\n");
    let large = ["--kind", "bloom", "--capacity", "100000000"];
    let mut child = room.spawn([&["build", "keys.txt", "-o", "f"][..], &large].concat());
    // One that is empty tries whether a file can be written at all.
    let is_written = |name: &String| {
        let len = fs::metadata(room.path(name)).map_or(0, |meta| meta.len());
        name.ends_with(".tmp") && len > 0
    };
    while !room.names().iter().any(is_written) {
        assert!(child.try_wait().unwrap().is_none(), "it has ended too soon");
    }
    // A file that is being written stays, whoever comes by.
    room.run(["build", "keys.txt", "-o", "g"]).exits(0);
    if child.try_wait().unwrap().is_none() {
        let names = room.names();
        let kept = names.iter().any(|name| name.ends_with(".tmp")) || room.path("f").exists();
        assert!(kept, "{names:?}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    room.run(["build", "keys.txt", "-o", "g", "--force"])
        .exits(0);
    assert!(!room.names().iter().any(|name| name.ends_with(".tmp")));
}

/// The hashes that wait on disk have no names there, so nothing can be left.
#[cfg(target_os = "linux")]
#[test]
fn a_build_from_disk_that_is_killed_leaves_nothing() {
    let room = Room::new();
    let mut child = room.spawn(["build", "-o", "f", "--max-memory", "1M"]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(&numbers(0..600_000)).unwrap();
    let open = || {
        let entries = fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap();
        entries
            .flatten()
            .filter_map(|entry| fs::read_link(entry.path()).ok())
    };
    let spilled = || {
        open()
            .filter(|path| path.to_string_lossy().ends_with("(deleted)"))
            .count()
    };
    while spilled() < 256 {
        thread::yield_now();
    }
    assert!(room.names().is_empty(), "{:?}", room.names());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(room.names().is_empty());
}

#[cfg(unix)]
#[test]
fn a_file_too_large_for_the_shells_limit_is_an_error_and_not_the_end() {
    let room = Room::with_filter(&numbers(0..10_000));
    room.put("old", b"old");
    shell(
        &room,
        "ulimit -f 1; exec \"$0\" build keys.txt -o old --force",
    )
    .exits(4)
    .complains(&["old: ", "too large"]);
    assert_eq!(room.get("old"), b"old");
    assert_eq!(room.names(), ["keys.tamis", "keys.txt", "old"]);
}

#[test]
fn a_secret_on_the_command_line_is_not_shown_again() {
    let room = Room::with_filter(b"a\n");
    let secret = "00112233445566778899aabbccddeeff";
    for args in [
        &["build", "keys.txt", "-o", "f", "--secret"][..],
        &["check", "keys.tamis", "keys.txt", "--secret"],
        &["dedup", "keys.txt", "--secret"],
    ] {
        let ran = room.run(args.iter().chain(&[secret])).exits(2);
        assert!(!ran.stderr().contains(secret), "{}", ran.stderr());
        ran.complains(&["--secret: expected file:PATH"]);
    }
}

/// The lines that are lost depend on the hash, which a secret or a seed changes.
#[test]
fn dedup_hashes_under_a_secret_or_a_seed() {
    let room = Room::new();
    room.put("lines", numbers(0..50_000));
    room.put("secret", b"0123456789abcdef");
    let lost = |args: &[&str]| {
        let dedup = ["dedup", "lines", "-q", "--fpr", "0.1"];
        room.run(dedup.iter().chain(args)).exits(0).stdout()
    };
    let plain = lost(&[]);
    assert_eq!(plain, lost(&["--seed", "0"]));
    for args in [
        ["--seed", "7"],
        ["--secret", "file:secret"],
        ["--secret", "random"],
    ] {
        assert_ne!(plain, lost(&args), "{args:?}");
    }
}

#[test]
fn max_memory_bounds_a_record_too() {
    let room = Room::new();
    let long = [&b"x".repeat(4 << 20)[..], b"\nshort\n"].concat();
    room.put("long", &long);
    for args in [
        &["build", "long", "-o", "f", "--max-memory", "4M"][..],
        &["dedup", "long", "--max-memory", "4M"],
    ] {
        room.run(args)
            .exits(4)
            .complains(&["long: a record is longer than 2", "--max-memory"]);
    }
    room.run(["build", "long", "-o", "f", "--max-memory", "16M"])
        .exits(0);
}
