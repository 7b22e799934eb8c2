use tamis::KINDS;

use crate::common::{Room, numbers};

#[test]
fn every_kind_is_measured_on_the_users_keys() {
    let room = Room::new();
    room.put("keys.txt", numbers(0..20_000));
    let json = room
        .run(["bench", "keys.txt", "--rounds", "1", "--json"])
        .exits(0)
        .says_nothing()
        .json();
    let (keys, strangers) = (
        json["keys"].as_u64().unwrap(),
        json["strangers"].as_u64().unwrap(),
    );
    assert_eq!(keys + strangers, 20_000);
    assert!((3500..4500).contains(&strangers), "{strangers}");
    let kinds = json["kinds"].as_array().unwrap();
    assert_eq!(kinds.len(), KINDS.len());
    for kind in kinds {
        let value = |name: &str| {
            kind[name]
                .as_f64()
                .unwrap_or_else(|| panic!("{name} in {kind}"))
        };
        assert!(value("bits_per_key") > 6.0 && value("build_ns") > 0.0);
        assert!(value("lookup_ns") > 0.0 && value("batch_ns") > 0.0);
        let (low, high) =
            tamis::testing::math::binomial_interval(strangers, value("expected_fpr"), 1e-9);
        let found = (value("measured_fpr") * strangers as f64).round() as u64;
        assert!((low..=high).contains(&found), "{kind}");
        let sure = tamis::math::rate_interval(found, strangers);
        assert!((value("least_fpr") - sure.0).abs() < 1e-12, "{kind}");
        assert!((value("most_fpr") - sure.1).abs() < 1e-12, "{kind}");
    }
}

#[test]
fn kinds_and_strangers_can_be_chosen() {
    let room = Room::new();
    room.put("keys.txt", numbers(0..1000));
    room.put("others.txt", numbers(500..3000));
    let args = [
        "bench",
        "keys.txt",
        "--against",
        "others.txt",
        "--rounds",
        "1",
    ];
    let kinds = ["--kind", "cuckoo", "--kind", "bloom:k=3"];
    let json = room
        .run(args.iter().chain(&kinds).chain(&["--json"]))
        .exits(0)
        .json();
    assert_eq!(
        (&json["keys"], &json["strangers"]),
        (&1000.into(), &2000.into())
    );
    assert_eq!(json["kinds"].as_array().unwrap().len(), 2);
    let text = room.run(args.iter().chain(&kinds)).exits(0).stdout();
    assert_eq!(text.lines().count(), 3);
    assert!(text.lines().next().unwrap().contains("95% sure"), "{text}");
    let range = text.lines().nth(1).unwrap().split_whitespace().nth(4);
    assert!(range.unwrap().contains('–'), "{text}");
    assert!(
        text.lines().nth(1).unwrap().starts_with("cuckoo "),
        "{text}"
    );
}

#[test]
fn few_keys_tell_little_of_a_rate_and_it_is_said() {
    let room = Room::new();
    let width = |keys: u32| {
        room.put("keys.txt", numbers(0..keys));
        let args = [
            "bench", "keys.txt", "--rounds", "1", "--kind", "bloom", "--json",
        ];
        let kind = room.run(args).exits(0).json()["kinds"][0].take();
        kind["most_fpr"].as_f64().unwrap() - kind["least_fpr"].as_f64().unwrap()
    };
    // About 20 strangers, and about 20 000.
    let (few, many) = (width(100), width(100_000));
    assert!(few > 0.1 && many < 0.01, "{few} {many}");
}

#[test]
fn what_cannot_be_measured_is_told_apart() {
    let room = Room::new();
    room.put("keys.txt", numbers(0..1000));
    room.damaged();
    let fuse = ["bench", "keys.txt", "--rounds", "1", "--fpr", "1e-7"];
    room.run(fuse).exits(0).says(&["binary_fuse8: "]);
    // A table as large as that cannot be had; nothing else was to be measured.
    let large = "bloom:capacity=18446744073709551615";
    let none = ["bench", "keys.txt", "--rounds", "1", "--kind", large];
    room.run(none).exits(1).says(&["bloom: "]);
    let json = room.run(none.iter().chain(&["--json"])).exits(1).json();
    assert!(json["kinds"][0]["error"].is_string(), "{json}");
    room.run(["bench", "keys.txt", "--fpr", "0"]).exits(2);
    for (args, code) in [
        (&["bench", "keys.txt", "--kind", "cukoo"][..], 2),
        (&["bench", "keys.txt", "--kind", "binary_fuse8:fpr=1e-7"], 2),
        (
            &[
                "bench",
                "keys.txt",
                "--fpr",
                "0.1",
                "--kind",
                "bloom:fpr=0.1",
            ],
            2,
        ),
        (&["bench", "keys.txt", "--kind", "fpr=0.1"], 2),
        (&["bench", "whole"], 2),
        (&["bench", "-"], 2),
        (&["bench", "absent"], 4),
    ] {
        room.run(args).exits(code).says(&[]);
    }
}
