use tamis::{AnyFilter, Config, Hashing, Keyed};

use crate::common::Room;

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
