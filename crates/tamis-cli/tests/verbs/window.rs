//! Windows of time: the program moves them by its clock, which these tests set.

use tamis::{AnyFilter, Config, Keyed};

use crate::common::{Ran, Room, numbers};

/// Runs the program at a time, in seconds since 1970.
fn at(room: &Room, now: u64, input: &[u8], args: &[&str]) -> Ran {
    let mut command = room.command();
    command.env("TAMIS_NOW", now.to_string());
    let input = input.to_vec();
    Ran(command.args(args).write_stdin(input).output().unwrap())
}

const START: u64 = 1_700_000_003;
/// Builds a window of ten minutes, of each kind that has windows of time.
const BUILDS: [&[&str]; 2] = [
    &["build", "-o", "f", "--kind", "sliding:seconds=600"],
    &["build", "-o", "f", "--kind", "sliding_table:seconds=600"],
];

#[test]
fn a_window_that_starts_at_time_0_forgets_too() {
    BUILDS.into_iter().for_each(starts_at_time_0);
}

fn starts_at_time_0(build: &[&str]) {
    let room = Room::new();
    let keys = numbers(0..100);
    let build = [build, &["--capacity", "1000"]].concat();
    at(&room, 0, &keys, &build).exits(0);
    at(&room, 600, &keys, &["check", "f"])
        .exits(0)
        .prints(&keys);
    at(&room, 750, &keys, &["check", "f"]).exits(1).prints("");
}

#[test]
fn keys_leave_a_window_of_time_as_the_clock_goes() {
    BUILDS.into_iter().for_each(leave_as_the_clock_goes);
}

fn leave_as_the_clock_goes(build: &[&str]) {
    let room = Room::new();
    let (old, new) = (numbers(0..100), numbers(1000..1100));
    let build = [build, &["--capacity", "1000"]].concat();
    at(&room, START, &old, &build).exits(0);
    let kept = room.get("f");
    at(&room, START + 600, &old, &["check", "f"])
        .exits(0)
        .prints(&old);
    at(&room, START + 400, &new, &["add", "f"]).exits(0);
    let both = [&old[..], &new].concat();
    at(&room, START + 600, &both, &["check", "f"])
        .exits(0)
        .prints(&both);
    // A window and a quarter after the first.
    let later = START + 750;
    at(&room, later, &old, &["check", "f"]).exits(1).prints("");
    at(&room, later, &new, &["check", "f"])
        .exits(0)
        .prints(&new);
    let info = at(&room, later, b"", &["info", "f", "--json"])
        .exits(0)
        .json();
    assert_eq!(info["keys"], 100);
    // Looking changes no file, and a clock that went back no answer.
    let changed = room.get("f");
    assert!(changed != kept);
    at(&room, START + 5000, &both, &["check", "f"])
        .exits(1)
        .prints("");
    assert!(room.get("f") == changed);
    at(&room, START, &both, &["check", "f"])
        .exits(0)
        .prints(&both);
    // What comes again stays.
    at(&room, later, &old, &["add", "f"]).exits(0);
    at(&room, later + 600, &old, &["check", "f"])
        .exits(0)
        .prints(&old);
    at(&room, later + 600, &new, &["check", "f"]).exits(1);
}

#[test]
fn keys_that_are_too_many_for_the_memory_age_from_now_too() {
    BUILDS.into_iter().for_each(too_many_for_the_memory);
}

fn too_many_for_the_memory(build: &[&str]) {
    let room = Room::new();
    let keys = numbers(0..3000);
    let build = [build, &["--capacity", "20k", "--max-memory", "90K"]].concat();
    at(&room, START, &keys, &build).exits(0);
    at(&room, START + 600, &keys, &["check", "f"])
        .exits(0)
        .prints(&keys);
    at(&room, START + 750, &keys, &["check", "f"]).exits(1);
}

#[test]
fn a_clock_that_is_wrong_is_told() {
    BUILDS.into_iter().for_each(wrong_clock);
}

fn wrong_clock(build: &[&str]) {
    let room = Room::new();
    at(&room, START, &numbers(0..9), build).exits(0);
    let info = at(&room, START, b"", &["info", "f"]).exits(0).stdout();
    assert!(info.contains("health          good"), "{info}");
    let info = at(&room, START - 60, b"", &["info", "f"]).exits(0).stdout();
    assert!(info.contains("60 seconds ahead"), "{info}");

    // By a caller of the library who has not told the time.
    let config: Config = build[4].parse().unwrap();
    let config = config.capacity(1000);
    let filter: Keyed<AnyFilter> = Keyed::build(&config, ["a", "b"]).unwrap();
    filter.save(room.path("still")).unwrap();
    at(&room, START, b"a\n", &["check", "still"])
        .exits(0)
        .prints("a\n");
    let info = at(&room, START, b"", &["info", "still"]).exits(0).stdout();
    assert!(info.contains("its clock was never started"), "{info}");
    at(&room, START, b"c\n", &["add", "still"]).exits(0);
    let both = b"a\nc\n";
    at(&room, START + 600, both, &["check", "still"])
        .exits(0)
        .prints(both);
    at(&room, START + 750, both, &["check", "still"]).exits(1);

    let mut command = room.command();
    let bad = command
        .env("TAMIS_NOW", "noon")
        .args(["info", "f"])
        .output();
    Ran(bad.unwrap())
        .exits(2)
        .complains(&["TAMIS_NOW", "seconds since 1970"]);
}

#[test]
fn a_key_is_taken_out_of_a_window() {
    let room = Room::new();
    let build = [BUILDS[1], &["--capacity", "1000"]].concat();
    at(&room, START, &numbers(0..100), &build).exits(0);
    at(&room, START + 300, &numbers(0..50), &["remove", "f"]).exits(0);
    at(&room, START + 600, &numbers(0..100), &["check", "f"])
        .exits(0)
        .prints(numbers(50..100));
    // What has left by itself is not there to be removed.
    let late = at(&room, START + 750, &numbers(50..60), &["remove", "f"]);
    assert_ne!(late.0.status.code(), Some(0));
}

#[test]
fn more_keys_than_a_window_may_hold_are_refused_until_time_has_passed() {
    let room = Room::new();
    let build = [BUILDS[1], &["--capacity", "1000"]].concat();
    at(&room, START, &numbers(0..1000), &build).exits(0);
    at(&room, START, &numbers(1000..1250), &["add", "f"]).exits(0);
    let kept = room.get("f");
    let refused = at(&room, START + 100, &numbers(2000..2100), &["add", "f"]);
    refused
        .exits(2)
        .complains(&["the window is full with 1250 keys"]);
    assert!(room.get("f") == kept);
    at(&room, START + 750, &numbers(2000..2100), &["add", "f"]).exits(0);
}
