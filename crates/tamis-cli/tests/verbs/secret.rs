use crate::common::{Room, numbers};

const SECRET: &str = "000102030405060708090a0b0c0d0e0f";

/// Every verb that opens a filter, on one whose secret is kept elsewhere.
const OPENING: [&[&str]; 10] = [
    &["info", "a"],
    &["check", "a", "keys.txt"],
    &["verify", "a", "--keys", "keys.txt"],
    &["add", "a", "more.txt"],
    &["remove", "c", "keys.txt"],
    &["merge", "a", "b", "-o", "out", "--force"],
    &["diff", "a", "b"],
    &["halve", "a", "-o", "out", "--force"],
    &["report", "a", "--keys", "100"],
    &["check", "a", "keys.txt", "--exact", "keys.txt"],
];

fn room() -> Room {
    let room = Room::new();
    room.put("secret", SECRET);
    room.put("other", SECRET.replace('a', "b"));
    room.put("keys.txt", numbers(0..500));
    room.put("more.txt", numbers(500..900));
    let bloom = ["--kind", "bloom", "--capacity", "1000"];
    let secret = ["--secret", "file:secret"];
    room.filter("a", 0..500, &[&bloom[..], &secret].concat());
    room.filter("b", 300..800, &[&bloom[..], &secret].concat());
    room.filter("c", 0..500, &[&["--kind", "cuckoo"][..], &secret].concat());
    room
}

#[test]
fn a_secret_that_is_kept_elsewhere_serves_every_verb() {
    let room = room();
    for args in OPENING {
        room.run(args.iter().chain(&["--secret", "file:secret"]))
            .exits(0);
        let mut command = room.command();
        command.env("TAMIS_TEST_SECRET", SECRET).args(args);
        let ran = command.args(["--secret", "env:TAMIS_TEST_SECRET"]).output();
        // What was removed is not there to be removed again.
        let code = i32::from(args[0] == "remove");
        assert_eq!(ran.unwrap().status.code(), Some(code), "{args:?}");
    }
    // The results are under the same secret, which is not in them.
    let out = ["verify", "out", "--keys", "keys.txt"];
    room.run(out.iter().chain(&["--secret", "file:secret"]))
        .exits(0);
    room.run(out).exits(2).says(&["--secret"]);
}

#[test]
fn without_the_right_secret_no_verb_answers() {
    let room = room();
    for args in OPENING {
        room.run(args).exits(2).says(&["--secret"]);
        room.run(args.iter().chain(&["--secret", "file:other"]))
            .exits(2)
            .says(&["secret"]);
        room.run(args.iter().chain(&["--secret", "random"]))
            .exits(2)
            .says(&["file:PATH or env:NAME"]);
    }
    assert!(!room.path("out").exists());
}

#[test]
fn a_filter_under_a_secret_may_come_through_a_pipe() {
    let room = room();
    let filter = room.get("a");
    room.feed(&filter, ["info", "-", "--secret", "file:secret"])
        .exits(0);
    room.feed(&filter[..99], ["info", "-", "--secret", "file:secret"])
        .exits(3)
        .says(&["standard input: "]);
}
