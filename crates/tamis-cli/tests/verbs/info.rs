use tamis::{AnyFilter, Config, Hashing, KINDS, Keyed};

use crate::common::{Room, numbers};

#[test]
fn the_fill_and_who_knows_the_seed_are_told() {
    let room = Room::new();
    room.filter("half", 0..500, &["--kind", "bloom", "--capacity", "1000"]);
    let text = room.run(["info", "half"]).exits(0).stdout();
    assert!(text.contains("fill            50.0 %"), "{text}");
    assert!(text.contains("seed policy     the default seed"), "{text}");
    let json = room.run(["info", "half", "--json"]).exits(0).json();
    assert_eq!(json["fill"], 0.5);

    room.filter("seeded", 0..5, &["--seed", "9"]);
    let json = room.run(["info", "seeded", "--json"]).exits(0).json();
    let policy = json["hashing"]["policy"].as_str().unwrap();
    assert!(policy.contains("a seed of the builder's"), "{policy}");

    let config = Config::new(10).kind("bloom");
    let secret: Keyed<AnyFilter> =
        Keyed::build_with(&config, Hashing::secret([7; 16]), ["a"]).unwrap();
    secret.save(room.path("secret")).unwrap();
    let text = room.run(["info", "secret"]).exits(0).stdout();
    assert!(text.contains("keep the file private"), "{text}");
}

#[test]
fn merging_is_promised_only_where_the_kind_merges() {
    let room = Room::new();
    for kind in KINDS {
        for seed in ["0", "9"] {
            room.filter("f", 0..50, &["--kind", kind.name, "--seed", seed]);
            let json = room.run(["info", "f", "--json"]).exits(0).json();
            let policy = json["hashing"]["policy"].as_str().unwrap();
            assert_eq!(policy.contains("merged"), kind.can.merge, "{policy}");
        }
    }
}

#[test]
fn counters_that_are_stuck_are_told() {
    let room = Room::new();
    for (kind, removal) in [("counting", true), ("counting_minimal", false)] {
        let kind = format!("{kind}:capacity=1000,counter_bits=4");
        room.filter("f", 0..100, &["--kind", &kind]);
        let info = room.run(["info", "f"]).exits(0).stdout();
        assert!(info.contains("health          good"), "{info}");
        let often = "often\n".repeat(20);
        room.feed(often, ["add", "f"])
            .exits(0)
            .says(&["counters stuck"]);
        let info = room.run(["info", "f"]).exits(0).stdout();
        assert!(
            !info.contains("good") && info.contains("7 counters stuck"),
            "{info}"
        );
        assert_eq!(info.contains("when they are removed"), removal, "{info}");
    }
}

#[test]
fn a_window_whose_keys_cannot_be_removed_says_so() {
    let room = Room::new();
    for (kind, is_told) in [("sliding_table", true), ("sliding", false)] {
        room.filter("f", 0..100, &["--kind", kind, "--capacity", "1000"]);
        room.feed("often\n".repeat(20), ["add", "f"]).exits(0);
        let json = room.run(["info", "f", "--json"]).exits(0).json();
        let warnings = json["warnings"].to_string();
        let said = "1 fingerprint has as many copies as are kept";
        assert_eq!(warnings.contains(said), is_told, "{warnings}");
    }
}

/// Copies do not use up the hash: only distinct keys do.
#[test]
fn a_great_many_copies_are_no_reason_to_warn() {
    let room = Room::new();
    room.filter(
        "f",
        0..1,
        &["--kind", "quotient_counting", "--capacity", "1"],
    );
    for _ in 0..63 {
        room.run(["merge", "f", "f", "-o", "g", "--force"])
            .exits(0)
            .says_nothing();
        std::fs::rename(room.path("g"), room.path("f")).unwrap();
    }
    let json = room.run(["info", "f", "--json"]).exits(0).json();
    assert_eq!(json["keys"], 1u64 << 63);
    room.run(["merge", "f", "f", "-o", "g"])
        .exits(2)
        .says(&["2^64 copies"]);
    room.run(["merge", "f", "f", "-o", "g", "--max-memory", "9"])
        .exits(2)
        .says(&["2^64 copies"]);
}

#[test]
fn what_grows_has_no_fill_and_a_window_is_full_at_most() {
    let room = Room::new();
    for (kind, fill) in [
        ("aleph", serde_json::Value::Null),
        ("scalable", serde_json::Value::Null),
        ("compacting", serde_json::Value::Null),
        ("sliding", 1.0.into()),
        ("sliding_table", 1.0.into()),
        ("age_partitioned", 1.0.into()),
    ] {
        room.filter("f", 0..100, &["--kind", kind, "--capacity", "200"]);
        room.feed(numbers(100..5000), ["add", "f"])
            .exits(0)
            .says_nothing();
        let json = room.run(["info", "f", "--json"]).exits(0).json();
        assert_eq!(json["fill"], fill, "{kind}");
        assert!(json["warnings"].as_array().unwrap().is_empty(), "{json}");
    }
}

#[test]
fn a_filter_of_nothing_has_no_fill() {
    let room = Room::new();
    room.filter("empty", 0..0, &[]);
    let json = room.run(["info", "empty", "--json"]).exits(0).json();
    assert!(json["fill"].is_null() && json["bits_per_key"].is_null());
    room.run(["info", "empty"]).exits(0);
}

#[test]
fn exit_codes() {
    let room = Room::new();
    room.run(["info"]).exits(2);
    room.run(["info", room.damaged()])
        .exits(3)
        .says(&["damaged: "]);
    room.run(["info", "absent"]).exits(4).says(&["absent: "]);
}
