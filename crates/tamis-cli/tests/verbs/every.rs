//! What holds for every verb, whichever there are.

use std::process::{Command as Process, Stdio};

use assert_cmd::cargo_bin;

use crate::common::{Room, numbers};

/// The verbs, from the program itself.
fn verbs() -> Vec<String> {
    let json = Room::new().run(["man", "--json"]).exits(0).json();
    let pages = json.as_object().unwrap().keys();
    let verbs: Vec<String> = pages
        .filter_map(|page| Some(page.strip_prefix("tamis-")?.to_string()))
        .collect();
    assert!(verbs.len() >= 12, "{verbs:?}");
    verbs
}

#[test]
fn help_starts_with_examples_and_offers_json() {
    let room = Room::new();
    for verb in verbs() {
        for help in ["-h", "--help"] {
            let text = room.run([&verb, help]).exits(0).stdout();
            assert!(text.starts_with("Examples:\n  tamis "), "{verb}: {text}");
            assert!(text.contains("--json"), "{verb}");
        }
    }
}

#[test]
fn a_typo_is_answered_with_what_was_meant() {
    let room = Room::new();
    for verb in verbs() {
        // The last letter twice.
        let typo = format!("{verb}{}", verb.chars().last().unwrap());
        let said = room.run([&typo]).exits(2).stderr();
        assert!(said.contains(&format!("'{verb}'")), "{said}");
        let said = room.run([&verb, "--jsn"]).exits(2).stderr();
        assert!(said.contains("--json"), "{verb}: {said}");
    }
}

#[test]
fn colours_are_left_out_where_they_are_not_wanted() {
    let room = Room::new();
    for verb in verbs() {
        let mut command = room.command();
        command.env("NO_COLOR", "1").args([&verb, "--help"]);
        let help = command.output().unwrap();
        assert!(!help.stdout.contains(&0x1b), "{verb}");
        let mut command = room.command();
        command
            .env("NO_COLOR", "1")
            .args([&verb, "--no-such-option"]);
        assert!(!command.output().unwrap().stderr.contains(&0x1b), "{verb}");
    }
}

/// Arguments with which a verb prints something.
const PRINTING: [&[&str]; 13] = [
    &["info", "a"],
    &["count", "counted", "keys.txt"],
    &["get", "map", "keys.txt"],
    &["kinds"],
    &["advise", "--keys", "1000"],
    &["diff", "a", "a"],
    &["dedup", "keys.txt", "-q"],
    &["compare", "keys.txt", "keys.txt"],
    &["bench", "keys.txt", "--kind", "bloom", "--rounds", "1"],
    &["merge", "a", "a", "-o", "f", "--force", "--json"],
    &["report", "a", "--keys", "100"],
    &["completions", "bash"],
    &["man"],
];

fn room() -> Room {
    let room = Room::new();
    room.put("keys.txt", numbers(0..1000));
    room.filter("a", 0..1000, &["--kind", "bloom", "--capacity", "2000"]);
    room.filter("counted", 0..1000, &["--kind", "counting"]);
    room.filter("map", 0..1000, &["-f", "1", "--value-field", "1"]);
    room
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let room = room();
    for args in PRINTING {
        let mut child = Process::new(cargo_bin!("tamis"))
            .args(args)
            .current_dir(room.path(""))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Nobody reads, from the start.
        drop(child.stdout.take());
        let ran = child.wait_with_output().unwrap();
        assert_eq!(ran.status.code(), Some(0), "{args:?}: {ran:?}");
        assert!(ran.stderr.is_empty(), "{args:?}: {ran:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output_is_exit_code_4() {
    let room = room();
    for args in PRINTING {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let ran = Process::new(cargo_bin!("tamis"))
            .args(args)
            .current_dir(room.path(""))
            .stdin(Stdio::null())
            .stdout(full.unwrap())
            .output()
            .unwrap();
        assert_eq!(ran.status.code(), Some(4), "{args:?}: {ran:?}");
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(said.contains("standard output: "), "{args:?}: {said}");
    }
}

#[test]
fn json_is_the_only_thing_on_standard_output() {
    let room = room();
    for args in PRINTING {
        let mut args = args.to_vec();
        if !args.contains(&"--json") {
            args.push("--json");
        }
        let ran = room.run(&args).exits(0);
        let json = ran.json();
        assert!(json.is_object() || json.is_array(), "{args:?}");
    }
}
