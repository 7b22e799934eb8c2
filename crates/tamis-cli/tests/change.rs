//! `tamis add`, `remove` and `verify`, and filters under a secret.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::fs;
use std::thread;

use tamis::KINDS;

use common::{Room, numbers};

/// With `f`, a filter of the first hundred numbers with room for a thousand.
fn with_kind(kind: &str) -> Room {
    let room = Room::new();
    room.put("keys.txt", numbers(0..100));
    let build = [
        "build",
        "keys.txt",
        "-o",
        "f",
        "--capacity",
        "1000",
        "--kind",
        kind,
    ];
    room.run(build).exits(0);
    room
}

#[test]
fn every_kind_that_inserts_takes_keys_later_and_the_others_say_why_not() {
    for kind in KINDS {
        let room = with_kind(kind.name);
        let old = room.get("f");
        let added = room.feed(numbers(50..300), ["add", "f", "--json"]);
        if !kind.can.insert {
            added.exits(2).complains(&["f: ", kind.name, "tamis kinds"]);
            assert!(room.get("f") == old);
            continue;
        }
        let report = added.exits(0).json();
        assert_eq!(report["given"], 250, "{}", kind.name);
        let (new, keys) = (
            report["added"].as_u64().unwrap(),
            report["keys"].as_u64().unwrap(),
        );
        assert_eq!(new + 100, keys, "{}", kind.name);
        let can = kind.can;
        if can.remove || can.count || kind.can.window {
            assert_eq!(new, 250, "{}", kind.name);
        } else {
            assert!(new <= 200, "{}", kind.name);
        }
        let all = numbers(0..300);
        room.feed(&all, ["check", "f"]).exits(0).prints(&all);
        assert_eq!(room.names(), ["f", "keys.txt"]);
    }
}

#[test]
fn every_kind_that_removes_forgets_and_the_others_say_why_not() {
    for kind in KINDS {
        let room = with_kind(kind.name);
        let old = room.get("f");
        let removed = room.feed(numbers(0..60), ["remove", "f", "--json"]);
        if !kind.can.remove {
            removed
                .exits(2)
                .complains(&["f: ", kind.name, "does not remove"]);
            assert!(room.get("f") == old);
            continue;
        }
        let report = removed.exits(0).json();
        assert_eq!(report["removed"], 60, "{}", kind.name);
        assert_eq!(report["keys"], 40, "{}", kind.name);
        let rest = numbers(60..100);
        room.feed(&rest, ["check", "f"]).exits(0).prints(&rest);
        let gone = room.feed(numbers(0..60), ["check", "f", "-c"]).stdout();
        assert!(gone.trim().parse::<u32>().unwrap() < 10, "{gone}");
    }
    let room = with_kind("cuckoo");
    let old = room.get("f");
    room.feed(b"", ["remove", "f"]).exits(1);
    room.feed(b"never there\n", ["remove", "f", "--verbose"])
        .exits(1)
        .complains(&["0 keys removed, 1 not held"]);
    assert!(room.get("f") == old);
}

#[test]
fn a_full_filter_stays_as_it_was() {
    let room = Room::new();
    let build = ["build", "-o", "f", "--capacity", "100", "--kind", "cuckoo"];
    room.feed(numbers(0..100), build).exits(0);
    let old = room.get("f");
    room.feed(numbers(100..5000), ["add", "f"])
        .exits(2)
        .complains(&["f: ", "full"]);
    assert!(room.get("f") == old);
    assert_eq!(room.names(), ["f"]);
    // A Bloom filter takes any number, and tells what that does to its rate.
    room.feed(
        numbers(0..100),
        ["build", "-o", "b", "--capacity", "101", "--kind", "bloom"],
    )
    .exits(0);
    // So it does before the rate has suffered much.
    room.feed(numbers(100..103), ["add", "b"])
        .exits(0)
        .complains(&["b: warning: over capacity: it was made for 101 keys and holds 103"]);
    room.feed(numbers(103..900), ["add", "b"])
        .exits(0)
        .says(&["b: warning: over capacity: it was made for 101 keys and holds "])
        .says(&["b: warning: false positives: "]);
}

#[test]
fn those_who_change_a_file_at_a_time_wait_for_each_other() {
    let room = with_kind("split_block");
    thread::scope(|scope| {
        for i in 0..6 {
            let room = &room;
            scope.spawn(move || {
                let keys = numbers(1000 + 10 * i..1010 + 10 * i);
                room.feed(&keys, ["add", "f"]).exits(0);
            });
        }
    });
    let all = numbers(1000..1060);
    room.feed(&all, ["check", "f"]).exits(0).prints(&all);
}

#[test]
fn what_cannot_be_changed_is_told_so() {
    let room = with_kind("bloom");
    for verb in ["add", "remove"] {
        room.run([verb, "-"])
            .exits(2)
            .complains(&["give the file's name"]);
        room.run([verb, "absent"])
            .exits(4)
            .complains(&["absent: No such file"]);
        room.run([verb, "keys.txt"])
            .exits(3)
            .complains(&["keys.txt: "]);
        room.run([verb, "."])
            .exits(4)
            .complains(&["not a regular file"]);
        room.run([verb, "f", "absent"])
            .exits(4)
            .complains(&["absent: No such file"]);
        room.run([verb, "f", "f"]).exits(2);
    }
    room.put("f.zst", zstd::encode_all(&room.get("f")[..], 1).unwrap());
    room.run(["add", "f.zst"])
        .exits(2)
        .complains(&["compressed"]);
}

#[test]
fn verify_looks_at_every_file_and_every_key() {
    let room = with_kind("cuckoo");
    let text = room.run(["verify", "f"]).exits(0).says_nothing().stdout();
    assert!(text.starts_with("f: good: cuckoo, 100 keys, "), "{text}");
    let mut bytes = room.get("f");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 8;
    room.put("bad", &bytes);
    let ran = room
        .run(["verify", "bad", "f", "--json"])
        .exits(3)
        .complains(&["bad: "]);
    assert_eq!(ran.json()[0]["good"], false);
    assert_eq!(ran.json()[1]["good"], true);
    room.run(["verify", "bad", "f", "-q"])
        .exits(3)
        .prints("")
        .says_nothing();
    room.run(["verify", "absent", "bad"]).exits(4);
    room.run(["verify", "keys.txt"]).exits(3);
    room.feed(room.get("f"), ["verify", "-"]).exits(0);

    room.run(["verify", "f", "--keys", "keys.txt"]).exits(0);
    room.put("more.csv", b"k\n5\nzebra\n7\nlion\n");
    let ran = room
        .run(["verify", "f", "--keys", "more.csv", "-f", "k", "--json"])
        .exits(1);
    assert_eq!(ran.json()[0]["not_held"], 2);
    room.run(["verify", "-", "--keys", "-"]).exits(2);
}

#[test]
fn a_secret_from_outside_is_needed_again_and_never_in_the_file() {
    let room = Room::new();
    room.put("keys.txt", numbers(0..100));
    let secret = *b"0123456789abcdef";
    room.put("secret", secret);
    room.put("digits", b"30313233343536373839616263646566\n");
    room.put("other", b"an other secret!");
    let build = [
        "build",
        "keys.txt",
        "-o",
        "f",
        "--capacity",
        "200",
        "--secret",
        "file:secret",
    ];
    room.run(build).exits(0);
    assert!(!room.get("f").windows(16).any(|w| w == secret));
    for verb in ["check", "add"] {
        room.run([verb, "f", "keys.txt"])
            .exits(2)
            .complains(&["f: ", "secret", "--secret"]);
        let wrong = [verb, "f", "keys.txt", "--secret", "file:other"];
        room.run(wrong).exits(2).complains(&["not the one"]);
        room.run([verb, "f", "keys.txt", "--secret", "random"])
            .exits(2);
        room.run([verb, "f", "keys.txt", "--secret", "file:digits"])
            .exits(0);
    }
    let mut command = room.command();
    command.env("TAMIS_TEST", "30313233343536373839616263646566");
    let args = [
        "verify",
        "f",
        "--keys",
        "keys.txt",
        "--secret",
        "env:TAMIS_TEST",
    ];
    command.args(args).assert().code(0);
    room.run([
        "check",
        "f",
        "keys.txt",
        "--secret",
        "env:TAMIS_TEST_NOT_SET",
    ])
    .exits(2)
    .complains(&["not set"]);
    room.put("short", b"abc");
    room.run(["check", "f", "keys.txt", "--secret", "file:short"])
        .exits(2)
        .complains(&["32 hexadecimal"]);
    room.run(["build", "keys.txt", "-o", "g", "--secret", "0123"])
        .exits(2);
    room.run([
        "build", "keys.txt", "-o", "g", "--secret", "random", "--seed", "1",
    ])
    .exits(2);
}

#[test]
fn a_random_secret_is_in_the_file_and_differs_each_time() {
    let room = Room::new();
    room.put("keys.txt", numbers(0..100));
    for file in ["f", "g"] {
        let report = room.run([
            "build", "keys.txt", "-o", file, "--secret", "random", "--json",
        ]);
        assert_eq!(report.exits(0).json()["hashing"]["function"], "SipHash-1-3");
        room.run(["check", file, "keys.txt", "-c"])
            .exits(0)
            .prints("100\n");
    }
    assert!(room.get("f") != room.get("g"));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(room.path("f")).unwrap().permissions().mode();
        assert_eq!(
            mode & 0o777,
            0o600,
            "a file with its secret is for its owner"
        );
        // One that is replaced is tightened; one that is changed keeps its mode.
        let mode_is = |args: &[&str], mode| {
            fs::set_permissions(room.path("f"), fs::Permissions::from_mode(0o644)).unwrap();
            room.run(args).exits(0).says_nothing();
            let meta = fs::metadata(room.path("f")).unwrap();
            assert_eq!(meta.permissions().mode() & 0o777, mode, "{args:?}");
        };
        let again = [
            "build", "keys.txt", "-o", "f", "--force", "--kind", "bloom", "--secret",
        ];
        mode_is(&[&again[..], &["random"]].concat(), 0o600);
        mode_is(&["add", "f", "keys.txt"], 0o644);
        room.put("secret", b"0123456789abcdef");
        mode_is(&[&again[..], &["file:secret"]].concat(), 0o644);
    }
    #[cfg(not(unix))]
    let _ = fs::metadata(room.path("f"));
}

#[test]
fn verify_blames_no_filter_for_what_is_wrong_with_the_keys_or_the_secret() {
    let room = with_kind("cuckoo");
    for (args, code, part) in [
        (&["--keys", "absent"][..], 4, "absent: No such file"),
        (&["--keys", "f"], 2, "f: this is a filter"),
        (&["--secret", "file:absent"], 4, "absent: No such file"),
        (&["--secret", "env:TAMIS_TEST_NOT_SET"], 2, "not set"),
    ] {
        let args = [&["verify", "f", "f"], args].concat();
        room.run(&args).exits(code).prints("").complains(&[part]);
    }
}

#[test]
fn keys_that_come_once_verify_one_filter() {
    let room = with_kind("cuckoo");
    room.filter("empty", 0..0, &["--kind", "cuckoo"]);
    let keys = room.get("keys.txt");
    let verify = ["verify", "f", "--keys", "-"];
    room.feed(&keys, verify).exits(0);
    // The second would find nothing left to read, and all of that in it.
    room.feed(&keys, ["verify", "f", "empty", "--keys", "-"])
        .exits(2)
        .complains(&["--keys", "one filter"]);
}
