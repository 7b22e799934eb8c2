use serde_json::Value;

use crate::common::Room;

fn room() -> Room {
    let room = Room::new();
    let bloom = ["--kind", "bloom", "--capacity", "20000"];
    room.filter("a", 0..10_000, &bloom);
    room.filter("b", 8000..20_000, &bloom);
    room
}

fn near(found: &Value, truth: f64) {
    let (value, sd) = (
        found["value"].as_f64().unwrap(),
        found["sd"].as_f64().unwrap(),
    );
    assert!((value - truth).abs() < 5.0 * sd + 1e-9, "{found} {truth}");
    assert!(sd > 0.0);
}

#[test]
fn sizes_and_similarity_are_as_near_as_their_errors_say() {
    let room = room();
    for verb in ["diff", "overlap"] {
        let json = room
            .run([verb, "a", "b", "--json"])
            .exits(0)
            .says_nothing()
            .json();
        for (name, truth) in [
            ("first", 10_000.0),
            ("second", 12_000.0),
            ("union", 20_000.0),
            ("intersection", 2000.0),
            ("only_first", 8000.0),
            ("only_second", 10_000.0),
            ("jaccard", 0.1),
            ("cosine", 2000.0 / 1.2e8f64.sqrt()),
            ("first_in_second", 0.2),
            ("second_in_first", 2000.0 / 12_000.0),
        ] {
            near(&json[name], truth);
        }
    }
    let text = room.run(["diff", "a", "b"]).exits(0).stdout();
    assert!(text.contains("in both") && text.contains(" ± "), "{text}");
    assert_eq!(text.lines().count(), 10);
}

#[test]
fn a_larger_filter_is_folded_to_the_others_size() {
    let room = room();
    room.run(["halve", "a", "-o", "half"]).exits(0);
    for pair in [["a", "half"], ["half", "a"]] {
        let json = room
            .run(["diff", pair[0], pair[1], "--json"])
            .exits(0)
            .json();
        // The same filter: nothing is left to chance.
        assert_eq!(json["jaccard"]["value"], 1.0);
        assert_eq!(json["only_first"]["value"], 0.0);
    }
}

#[test]
fn empty_filters_have_no_ratio() {
    let room = Room::new();
    room.filter("empty", 0..0, &["--kind", "bloom", "--capacity", "100"]);
    let json = room
        .run(["diff", "empty", "empty", "--json"])
        .exits(0)
        .json();
    assert_eq!(json["jaccard"], Value::Null);
    assert_eq!(json["union"]["value"], 0.0);
    let text = room.run(["diff", "empty", "empty"]).exits(0).stdout();
    assert!(text.lines().last().unwrap().ends_with('-'), "{text}");
}

#[test]
fn exit_codes() {
    let room = room();
    room.filter("cuckoo", 0..10, &["--kind", "cuckoo"]);
    room.filter(
        "seeded",
        0..10_000,
        &["--kind", "bloom", "--capacity", "20000", "--seed", "7"],
    );
    room.filter(
        "other",
        0..10_000,
        &["--kind", "bloom:k=3", "--capacity", "20000"],
    );
    room.run(["diff", "a", "cuckoo"])
        .exits(2)
        .says(&["cuckoo: ", "--kind bloom"]);
    room.run(["diff", "a", "seeded"])
        .exits(2)
        .says(&["seeded: ", "seed"]);
    room.run(["diff", "a", "other"]).exits(2).says(&["other: "]);
    room.run(["diff", "a"]).exits(2);
    room.run(["diff", "a", room.damaged()])
        .exits(3)
        .says(&["damaged: "]);
    room.run(["diff", "a", "absent"])
        .exits(4)
        .says(&["absent: "]);
}
