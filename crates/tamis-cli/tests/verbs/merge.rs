#[cfg(target_os = "linux")]
use std::process::Command as Process;

#[cfg(target_os = "linux")]
use assert_cmd::cargo_bin;
use tamis::KINDS;

#[cfg(target_os = "linux")]
use crate::common::Ran;
use crate::common::{Room, numbers};

#[test]
fn every_kind_that_merges_holds_the_keys_of_both() {
    let room = Room::new();
    room.put("all.txt", numbers(0..3000));
    for kind in KINDS.iter().filter(|kind| kind.can.merge) {
        let args = ["--kind", kind.name, "--capacity", "4000"];
        room.filter("a", 0..1000, &args);
        room.filter("b", 500..2000, &args);
        room.filter("c", 2000..3000, &args);
        let merge = ["merge", "a", "b", "c", "-o", "all", "--force", "--json"];
        let json = room.run(merge).exits(0).json();
        assert_eq!(
            (&json["filters"], &json["kind"]),
            (&3.into(), &kind.name.into())
        );
        room.run(["check", "all", "all.txt", "-c"])
            .exits(0)
            .prints("3000\n");
    }
}

#[test]
fn a_union_goes_to_a_pipe_too_and_warns_where_it_is_too_full() {
    let room = Room::new();
    room.filter("a", 0..1000, &["--kind", "bloom"]);
    room.filter("b", 1000..2000, &["--kind", "bloom"]);
    room.run(["join", "a", "b", "-o", "f"])
        .exits(0)
        .says(&["f: warning: over capacity"]);
    let union = room.get("f");
    room.run(["merge", "a", "b", "-o", "-"])
        .exits(0)
        .prints(union);
    let first = room.get("a");
    room.feed(first, ["merge", "-", "b", "-o", "g"]).exits(0);
    assert_eq!(room.get("f"), room.get("g"));
}

#[test]
fn what_was_made_is_told_when_asked() {
    let room = Room::new();
    room.filter("a", 0..1000, &["--kind", "bloom", "--capacity", "2000"]);
    room.filter("b", 1000..2000, &["--kind", "bloom", "--capacity", "2000"]);
    let merge = ["merge", "a", "b", "-o", "f", "--force"];
    room.run(merge).exits(0).prints("").says_nothing();
    let said = room.run(merge.iter().chain(&["--verbose"])).exits(0);
    said.prints("")
        .says(&["f: 2 filters united; bloom, 2000 keys"]);
}

#[test]
fn exit_codes() {
    let room = Room::new();
    room.filter("a", 0..1000, &["--kind", "bloom"]);
    room.filter("small", 0..10, &["--kind", "bloom"]);
    room.filter("cuckoo", 0..10, &["--kind", "cuckoo"]);
    room.filter("fuse", 0..10, &["--kind", "binary_fuse8"]);
    room.filter("seeded", 0..1000, &["--kind", "bloom", "--seed", "7"]);
    for (pair, parts) in [
        (["a", "small"], &["small: ", "bits"][..]),
        (["a", "cuckoo"], &["cuckoo: "]),
        (["fuse", "fuse"], &["fuse: ", "binary_fuse8"]),
        (["a", "seeded"], &["seeded: "]),
    ] {
        room.run(["merge", pair[0], pair[1], "-o", "f"])
            .exits(2)
            .says(parts);
    }
    room.run(["merge", "a", "-o", "f"]).exits(2);
    room.run(["merge", "a", "a", "-o", "small"])
        .exits(2)
        .says(&["--force"]);
    room.run(["merge", "a", "a", "-o", "-", "--json"])
        .exits(2)
        .says(&["--json"]);
    room.run(["merge", "a", room.damaged(), "-o", "f"])
        .exits(3)
        .says(&["damaged: "]);
    room.run(["merge", "a", "absent", "-o", "f"])
        .exits(4)
        .says(&["absent: "]);
    assert!(!room.path("f").exists());
}

/// A file that is larger than what the program may take: the system enforces it.
#[cfg(target_os = "linux")]
#[test]
fn filters_that_memory_does_not_hold_merge_on_disk() {
    let room = Room::new();
    // 25 MB each: 100 MB in all, with --max-memory 6M.
    let large = ["--kind", "quotient:bits=30", "--capacity", "6M"];
    let names = ["a", "b", "c", "d"];
    for (i, name) in (0..).zip(names) {
        room.filter(name, i * 60_000..(i + 1) * 60_000 + 20_000, &large);
        assert!(room.get(name).len() > 24 << 20);
    }
    let merge = ["merge", "a", "b", "c", "d", "-o"];
    let held = room.run(merge.iter().chain(&["held", "--json"])).exits(0);
    let limited = |args: &[&str]| {
        // 40 MiB of addresses, the program's own included.
        let mut shell = Process::new("sh");
        shell.args(["-c", "ulimit -v 40960 && exec \"$0\" \"$@\""]);
        shell.arg(cargo_bin!("tamis")).args(merge).args(args);
        Ran(shell.current_dir(room.0.path()).output().unwrap())
    };
    room.put("old", b"old");
    limited(&["old", "--force"])
        .exits(4)
        .says(&["the system has no"]);
    assert_eq!(room.get("old"), b"old");
    let disk = limited(&["old", "--force", "--max-memory", "6M", "--json"]).exits(0);
    assert!(room.get("old") == room.get("held"), "other bytes");
    let (mut held, mut disk) = (held.json(), disk.json());
    assert_eq!(held["file"].take(), "held");
    assert_eq!(disk["file"].take(), "old");
    assert_eq!(held, disk);
}

#[test]
fn little_memory_gives_the_same_bytes_or_a_reason() {
    let room = Room::new();
    let little = ["--max-memory", "10K", "--force", "--verbose"];
    let merge = |files: &[&str], to: &str| {
        let args = [&["merge"], files, &["-o", to], &little].concat();
        room.run(args)
    };
    for kind in ["quotient", "quotient_counting"] {
        let args = ["--kind", kind, "--capacity", "20k"];
        for (name, keys) in [("a", 0..6000), ("b", 5000..9000), ("c", 8000..15_000)] {
            room.filter(name, keys, &args);
        }
        room.run(["merge", "a", "b", "c", "-o", "held", "--force"])
            .exits(0);
        merge(&["a", "b", "c"], "f")
            .exits(0)
            .says(&["f: 3 filters united", kind, "17000 keys"]);
        assert!(room.get("f") == room.get("held"));
    }
    // Kinds that are merged in memory: two of them must fit.
    let bloom = ["--kind", "bloom", "--capacity", "20k"];
    room.filter("bloom", 0..9, &bloom);
    merge(&["bloom", "bloom"], "f")
        .exits(2)
        .says(&["--max-memory: `bloom` filters can be merged in memory only"]);
    room.run(["merge", "bloom", "bloom", "-o", "g", "--max-memory", "60K"])
        .exits(0);
    merge(&["a", "bloom"], "f")
        .exits(2)
        .says(&["bloom: a `bloom` cannot"]);
    room.filter("fuse", 0..20_000, &["--kind", "binary_fuse8"]);
    merge(&["fuse", "fuse"], "f")
        .exits(2)
        .says(&["fuse: `binary_fuse8` filters cannot be merged"]);
    room.filter(
        "other",
        0..9,
        &["--kind", "quotient_counting", "--capacity", "30k"],
    );
    merge(&["a", "other"], "f")
        .exits(2)
        .says(&["other: the filters differ in slots"]);
    let a = room.get("a");
    room.feed(
        &a,
        [
            "merge",
            "a",
            "-",
            "-o",
            "f",
            "--max-memory",
            "10K",
            "--force",
        ],
    )
    .exits(2)
    .says(&["standard input: ", "--max-memory"]);
    room.run(["merge", "a", "b", "-o", "-", "--max-memory", "10K"])
        .exits(2)
        .says(&["--output -: ", "--max-memory"]);
    merge(&["a", "absent"], "f").exits(4).says(&["absent: "]);
    let mut damaged = room.get("a");
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    room.put("damaged", damaged);
    merge(&["a", "damaged"], "f").exits(3).says(&["damaged: "]);
    assert!(
        room.get("f") == room.get("held"),
        "the old file is as it was"
    );
    assert!(!room.names().iter().any(|name| name.ends_with(".tmp")));
}
