//! `tamis build`: every kind, every option.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use serde_json::Value;
use tamis::KINDS;

use common::{Room, numbers};

#[test]
fn every_number_is_written_as_any_other() {
    let room = Room::new();
    room.put("keys", b"a\nb\n");
    let build = ["build", "keys", "--seed", "1e3", "--threads", "1e0", "-o"];
    room.run([&build[..], &["f"]].concat()).exits(0);
    let build = ["build", "keys", "--seed", "1000", "--threads", "1", "-o"];
    room.run([&build[..], &["g"]].concat()).exits(0);
    assert_eq!(room.get("f"), room.get("g"));
    let refused = room.run(["build", "keys", "--threads", "0", "-o", "h"]);
    assert!(refused.exits(2).stderr().contains("from 1 to 65535"));
}

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
fn a_key_repeated_a_thousand_times_counts_once_unless_the_kind_counts_all() {
    let room = Room::new();
    let keys = b"again\n".repeat(1000);
    for kind in KINDS {
        let args = ["build", "-o", "f", "--force", "--json", "--kind", kind.name];
        let report = room.feed(&keys, args).exits(0).json();
        let counts_all = kind.copies == u64::MAX;
        let keys = if counts_all { 1000 } else { 1 };
        assert_eq!(report["keys"], keys, "{}", kind.name);
    }
}

#[test]
fn the_kind_follows_from_the_rate_and_the_room() {
    let room = Room::new();
    let keys = numbers(0..1024);
    for (args, kind) in [
        (&[][..], "binary_fuse8"),
        (&["--fpr", "0.1"], "ribbon_bumped"),
        (&["--fpr", "0.001"], "ribbon_bumped"),
        (&["--fpr", "1e-4"], "binary_fuse16"),
        (&["--capacity", "1025"], "split_block"),
        (&["--capacity", "1025", "--fpr", "1e-4"], "cuckoo"),
        (&["--capacity", "1025", "--fpr", "0.3"], "bloom"),
    ] {
        let build = ["build", "-o", "f", "--force", "--json", "--verbose"];
        let built = room.feed(&keys, [&build[..], args].concat()).exits(0);
        let report = built.json();
        assert_eq!(report["kind"], kind, "{args:?}");
        let why = report["why"].as_str().unwrap();
        let told = built.stderr();
        assert!(
            told.contains(why) && told.contains("`tamis advise"),
            "{told}"
        );
    }
    let named = ["build", "-o", "f", "--force", "--json", "--verbose"];
    let named = [&named[..], &["--kind", "cuckoo:bits=12,fpr=0.02"]].concat();
    let built = room.feed(&keys, named).exits(0);
    assert_eq!(built.json()["kind"], "cuckoo");
    assert_eq!(built.json()["why"], Value::Null);
    assert!(!built.stderr().contains("chosen"));
    // Room for these is not room for more.
    let kind = |capacity: &str| {
        let args = [
            "build",
            "-o",
            "f",
            "--force",
            "--json",
            "--capacity",
            capacity,
        ];
        let kind = room.feed(&keys, args).exits(0).json()["kind"].clone();
        tamis::kind(kind.as_str().unwrap()).unwrap()
    };
    assert!(!kind("1024").can.insert);
    assert!(kind("2k").can.insert);
}

#[test]
fn the_seed_is_part_of_the_file() {
    let room = Room::new();
    let report = room.feed(b"a\n", ["build", "-o", "f", "--seed", "7", "--verbose"]);
    assert!(report.exits(0).stderr().contains(" 1 key, "));
    let info = room.run(["info", "f", "--json"]).json();
    assert_eq!(info["hashing"]["seed"], 7);
    room.feed(b"a\nb\n", ["check", "f"]).exits(0).prints("a\n");
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
fn what_is_given_twice_is_refused() {
    let room = Room::new();
    for (kind, option, value) in [
        ("bloom:fpr=0.1", "--fpr", "0.01"),
        ("bloom:k=3, fpr = 0.01", "--fpr", "0.01"),
        ("fpr=0.1", "--fpr", "0.01"),
        ("bloom:capacity=7", "--capacity", "9"),
    ] {
        let args = ["build", "-o", "f", "--kind", kind, option, value];
        room.feed(b"a\n", args)
            .exits(2)
            .complains(&[option, "--kind"]);
    }
    assert!(room.names().is_empty());
    let each_once = ["--kind", "bloom:k=3,fpr=0.1", "--capacity", "9", "-o", "f"];
    let args = ["build"].iter().chain(&each_once);
    room.feed(b"a\n", args).exits(0);
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
fn no_keys_make_a_filter_of_nothing() {
    let room = Room::new();
    for kind in KINDS {
        for keys in [&b""[..], b"\n\r\n\n"] {
            let args = ["build", "-o", "f", "--force", "--json", "--kind", kind.name];
            let built = room.feed(keys, args).exits(0);
            assert_eq!(built.json()["keys"], 0);
            built.complains(&["f: warning: there are no keys"]);
            room.feed(b"a\n\n", ["check", "f"]).exits(1).prints("");
            room.run(["info", "f"]).exits(0);
        }
    }
    room.put("empty", b"");
    room.feed(b"a\n", ["check", "empty"])
        .exits(1)
        .complains(&["empty: warning"]);
}

/// The program may hold about this many keys' hashes, and no more.
const LITTLE: &str = "256K";

#[test]
fn keys_beyond_the_memory_go_into_the_filter_as_they_come() {
    let room = Room::new();
    let keys = numbers(0..50_000);
    room.put("keys.txt", &keys);
    let build = |args: &[&str]| {
        let args = [
            &[
                "build",
                "-o",
                "f",
                "--force",
                "--json",
                "--max-memory",
                LITTLE,
            ],
            args,
        ]
        .concat();
        room.feed(&keys, args)
    };
    // From a file the number is counted first; a stream needs a capacity, or a kind that grows or
    // is built from disk.
    for (args, kind, capacity) in [
        (
            &["keys.txt", "--kind", "split_block", "--fpr", "0.1"][..],
            "split_block",
            50_000,
        ),
        (
            &["--capacity", "60000", "--fpr", "0.01"],
            "split_block",
            60_000,
        ),
        // A `cuckoo` counts copies; keys that come again would fill it.
        (
            &["--capacity", "55000", "--fpr", "0.00024"],
            "bloom",
            55_000,
        ),
        (&["--fpr", "0.2", "--kind", "scalable"], "scalable", 1),
        (&["keys.txt"], "binary_fuse8", 50_000),
        (&[], "binary_fuse8", 50_000),
    ] {
        let report = build(args).exits(0).json();
        assert_eq!(report["kind"], kind, "{args:?}");
        assert!(report["capacity"].as_u64().unwrap() >= capacity, "{report}");
        assert!(report["keys"].as_u64().unwrap() <= 50_000, "{report}");
        room.feed(&keys, ["check", "f", "-c"])
            .exits(0)
            .prints("50000\n");
    }
    build(&["keys.txt", "--kind", "xor8"])
        .exits(2)
        .complains(&["needs all its keys at once", "--max-memory"]);
    build(&["--kind", "bloom"])
        .exits(2)
        .complains(&["give --capacity"]);
    build(&["keys.txt", "--kind", "bloom", "--fpr", "1e-6"])
        .exits(2)
        .complains(&["half of --max-memory"]);
    build(&["--kind", "cuckoo", "--capacity", "3000"])
        .exits(2)
        .complains(&["are full"]);
}

#[test]
fn keys_beyond_the_memory_wait_on_disk_and_leave_nothing_there() {
    let room = Room::new();
    std::fs::create_dir(room.path("temp")).unwrap();
    let keys = numbers(0..300_000);
    room.put("keys.txt", &keys);
    for kind in ["binary_fuse8", "binary_fuse16"] {
        let args = ["build", "-o", "-", "keys.txt", "--kind", kind];
        let expected = room.run(args).exits(0).0.stdout;
        let memory = ["--max-memory", "2M", "--temp-dir", "temp"];
        for stream in [&["keys.txt"][..], &[]] {
            let args = [
                &["build", "-o", "f", "--force", "--kind", kind],
                &memory[..],
                stream,
            ];
            // Twice, so that half of the keys are repeats.
            let input = if stream.is_empty() {
                keys.repeat(2)
            } else {
                vec![]
            };
            room.feed(input, args.concat()).exits(0).says_nothing();
            assert!(room.get("f") == expected, "{kind} {stream:?}");
        }
    }
    let args = [
        "build",
        "-o",
        "f",
        "--force",
        "--max-memory",
        "2M",
        "--verbose",
    ];
    let ran = room.feed(&keys, args).exits(0);
    ran.says(&[
        "binary_fuse8, 300000 keys",
        "was chosen: the keys are more than",
    ]);
    room.run(["verify", "f", "--keys", "keys.txt"]).exits(0);
    // The filter itself is too large.
    let args = ["build", "keys.txt", "-o", "g", "--max-memory", "600K"];
    room.run(args).exits(2).complains(&["half of --max-memory"]);
    // There is no such directory, or no room in it.
    let args = ["build", "keys.txt", "-o", "g", "--max-memory", "2M"];
    room.run(args.iter().chain(&["--temp-dir", "absent"]))
        .exits(4)
        .complains(&["--temp-dir absent: No such file"]);
    assert_eq!(room.names(), ["f", "keys.txt", "temp"]);
    assert_eq!(std::fs::read_dir(room.path("temp")).unwrap().count(), 0);
}

#[test]
fn memory_is_no_matter_where_keys_are_few_or_repeat() {
    let room = Room::new();
    let keys = numbers(0..500);
    let expected = room.feed(&keys, ["build", "-o", "-"]).exits(0).0.stdout;
    let args = ["build", "-o", "-", "--max-memory", LITTLE];
    room.feed(&keys, args).exits(0).prints(&expected);
    room.feed(keys.repeat(200), args).exits(0).prints(&expected);
}

#[test]
fn threads_change_nothing() {
    let room = Room::new();
    let keys = numbers(0..100_000);
    let expected = room
        .feed(&keys, ["build", "-o", "-", "--threads", "1"])
        .exits(0)
        .0
        .stdout;
    room.feed(&keys, ["build", "-o", "-", "--threads", "3"])
        .exits(0)
        .prints(&expected);
    room.run(["build", "-o", "f", "--threads", "0"]).exits(2);
    let files: Vec<String> = (0..20).map(|i| format!("part{i}")).collect();
    for (i, file) in (0..).zip(&files) {
        room.put(file, numbers(5000 * i..5000 * (i + 1)));
    }
    for threads in ["1", "3", "64"] {
        let args = ["build", "-o", "-", "--threads", threads].map(str::to_string);
        room.run([&args[..], &files].concat())
            .exits(0)
            .prints(&expected);
    }
    room.put("part7", b"\x1F\x8B and nothing more");
    let args = ["build", "-o", "f", "--threads", "3"].map(str::to_string);
    room.run([&args[..], &files].concat())
        .exits(4)
        .complains(&["part7: "]);
}
