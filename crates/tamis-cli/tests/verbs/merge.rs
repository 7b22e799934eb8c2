use tamis::KINDS;

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
