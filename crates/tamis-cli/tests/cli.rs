//! The program from outside: `info`, `kinds`, help, and wrong arguments.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use tamis::{AnyFilter, Config, Hashing, KINDS, Keyed};

use common::Room;

#[test]
fn info_tells_everything_but_the_secret() {
    let room = Room::new();
    let secret = *b"0123456789abcdef";
    let config = Config::new(10).kind("bloom");
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
    let config = Config::new(100).kind("split_block");
    let mut filter: Keyed<AnyFilter> = Keyed::new(&config).unwrap();
    filter.extend(0..500u64).unwrap();
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
    for kind in ["aleph", "scalable", "sliding", "sliding_table"] {
        let config = Config::new(100).kind(kind);
        let mut filter: Keyed<AnyFilter> = Keyed::new(&config).unwrap();
        filter.extend(0..500u64).unwrap();
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
    let text = room.run(["kinds", "--all"]).exits(0).stdout();
    let json = room.run(["kinds", "--all", "--json"]).exits(0).json();
    for (kind, listed) in KINDS.iter().zip(json.as_array().unwrap()) {
        assert!(text.lines().any(|line| line.starts_with(kind.name)));
        assert_eq!(listed["kind"], kind.name);
        assert_eq!(listed["remove"], kind.can.remove);
        assert_eq!(
            listed["parameters"].as_array().unwrap().len(),
            kind.params.len()
        );
    }
}

#[test]
fn help_starts_with_examples() {
    let room = Room::new();
    for verb in ["build", "check", "add", "remove", "verify", "info", "kinds"] {
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
