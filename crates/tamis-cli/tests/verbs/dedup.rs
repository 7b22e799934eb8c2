use std::collections::HashSet;

use crate::common::{Room, numbers};

fn repeated() -> Vec<u8> {
    [numbers(0..3000), numbers(1000..4000), numbers(0..10)].concat()
}

#[test]
fn each_line_is_printed_once_in_order() {
    let room = Room::new();
    room.put("lines.txt", repeated());
    for args in [
        &["dedup", "lines.txt", "-e", "1e-9"][..],
        &["dedup", "lines.txt", "-e", "1e-9", "--capacity", "5000"],
        &["dedup", "lines.txt", "-e", "1e-9", "--window", "10k"],
    ] {
        room.run(args)
            .exits(0)
            .prints(numbers(0..4000))
            .says(&["6010 lines, 2010 dropped", "0.0 new lines"]);
        let quiet = args.iter().chain(&["-q"]);
        room.run(quiet)
            .exits(0)
            .prints(numbers(0..4000))
            .says_nothing();
    }
    room.feed(repeated(), ["dedup", "-c", "-e", "1e-9", "-q"])
        .exits(0)
        .prints("4000\n");
}

#[test]
fn the_repeats_are_the_other_lines() {
    let room = Room::new();
    let repeats = [numbers(1000..3000), numbers(0..10)].concat();
    room.feed(repeated(), ["dedup", "-v", "-e", "1e-9", "-q"])
        .exits(0)
        .prints(repeats);
    room.feed(numbers(0..100), ["dedup", "-v", "-e", "1e-9", "-q"])
        .exits(1)
        .prints("");
}

#[test]
fn a_window_forgets_what_is_older_than_it() {
    let room = Room::new();
    let stream = [numbers(0..10), numbers(10..20_000), numbers(0..10)].concat();
    let ran = room.feed(stream, ["dedup", "--window", "1000", "-e", "1e-7", "-q"]);
    assert_eq!(ran.exits(0).stdout().lines().count(), 20_010);
    // A line that comes again and again stays within the window.
    let often: Vec<u8> = (0..5000)
        .flat_map(|i| format!("x\n{i}\n").into_bytes())
        .collect();
    let ran = room.feed(often, ["dedup", "--window", "100", "-e", "1e-7", "-q"]);
    let out = ran.exits(0).stdout();
    assert_eq!(out.lines().filter(|line| *line == "x").count(), 1);
    assert_eq!(out.lines().count(), 5001);
}

#[test]
fn the_expected_loss_is_what_is_lost() {
    let room = Room::new();
    let lines = numbers(0..100_000);
    for args in [
        &["--capacity", "100000", "-e", "0.05"][..],
        &["--capacity", "20000", "-e", "0.01"],
        &["-e", "0.05"],
        &["--window", "20000", "-e", "0.05"],
        &["--window", "200", "-e", "0.05"],
        &["--capacity", "10000", "-e", "0.01"],
    ] {
        let args = [&["dedup", "--json"], args].concat();
        let json = room.feed(lines.clone(), &args).exits(0).json();
        let lost = json["repeats"].as_f64().unwrap();
        let expected = json["expected_loss"].as_f64().unwrap();
        // Steps of a sixteenth in which the rate stands still, and chance.
        assert!(
            (lost / expected - 1.0).abs() < 0.15,
            "{args:?}: {lost} {expected}"
        );
        assert_eq!(json["distinct"].as_f64().unwrap() + lost, 100_000.0);
    }
    room.feed(lines, ["dedup", "--capacity", "20000", "-c"])
        .exits(0)
        .says(&["warning: 100000 lines", "more than the capacity"]);
}

#[test]
fn no_more_lines_are_expected_to_be_lost_than_were_dropped() {
    let room = Room::new();
    for lines in [5000, 50_000] {
        let json = room
            .feed(numbers(0..lines), ["dedup", "--capacity", "500", "--json"])
            .exits(0)
            .json();
        let lost = json["expected_loss"].as_f64().unwrap();
        assert!(lost <= json["repeats"].as_f64().unwrap(), "{json}");
    }
}

#[test]
fn memory_is_bounded_and_nothing_is_lost_by_it() {
    let room = Room::new();
    let lines = [numbers(0..500_000), numbers(0..1000)].concat();
    let args = ["dedup", "--max-memory", "256K", "-e", "1e-6"];
    let ran = room.feed(lines, args).exits(0).says(&["--max-memory"]);
    let out = ran.stdout();
    let printed: HashSet<&str> = out.lines().collect();
    assert!(printed.len() > 499_990);
    assert!(out.lines().count() < 500_010, "early lines are remembered");
}

#[test]
fn empty_lines_and_the_last_without_end_are_lines() {
    let room = Room::new();
    room.feed("a\n\nb\r\n\na\nb\nc", ["dedup", "-q"])
        .exits(0)
        .prints("a\n\nb\r\n\nc\n");
}

#[test]
fn records_are_told_apart_by_their_keys() {
    let room = Room::new();
    room.feed("a\0b\nc\0a\0", ["dedup", "-0", "-q"])
        .exits(0)
        .prints("a\0b\nc\0");
    let csv = "user,page\nann,1\nbob,2\nann,3\n";
    room.feed(csv, ["dedup", "-f", "user", "-q"])
        .exits(0)
        .prints("user,page\nann,1\nbob,2\n");
    room.put("a", "x\ny\n");
    room.put("b", "y\nz\n");
    room.run(["dedup", "a", "b", "-q"])
        .exits(0)
        .prints("x\ny\nz\n");
}

#[test]
fn exit_codes() {
    let room = Room::new();
    room.feed("", ["dedup", "-q"]).exits(1).prints("");
    for bad in [
        &["dedup", "-e", "0"][..],
        &["dedup", "--window", "few"],
        &["dedup", "--window", "0"],
        &["dedup", "--capacity", "0"],
        &["dedup", "--window", "9", "--capacity", "9"],
    ] {
        room.feed("a\n", bad).exits(2);
    }
    room.run(["dedup", "absent"]).exits(4).says(&["absent: "]);
}
