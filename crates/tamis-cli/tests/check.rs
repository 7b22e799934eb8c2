//! `tamis check`: what passes, and what is told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Command as Process;

use tamis::{AnyFilter, Config, Keyed};

use common::{Room, numbers, sample};

#[test]
fn the_sample_visits_pass_as_they_would_through_grep() {
    let room = Room::new();
    let (list, visits) = (sample("blocklist.txt"), sample("visits.txt"));
    let args = ["build".as_ref(), list.as_os_str(), "-o".as_ref()];
    room.run(
        [
            &args[..],
            &["b.tamis".as_ref(), "--fpr".as_ref(), "1e-9".as_ref()],
        ]
        .concat(),
    )
    .exits(0);
    let blocked = fs::read_to_string(&list).unwrap();
    let blocked: std::collections::HashSet<_> = blocked.lines().collect();
    let expected: String = fs::read_to_string(&visits)
        .unwrap()
        .lines()
        .filter(|visit| blocked.contains(visit))
        .map(|visit| format!("{visit}\n"))
        .collect();
    assert!(!expected.is_empty());
    room.run(["check".as_ref(), "b.tamis".as_ref(), visits.as_os_str()])
        .exits(0)
        .prints(expected);
}

const SAMPLES: [&str; 9] = [
    "blocklist.txt",
    "visits.txt",
    "visits.csv",
    "users.txt",
    "joined.txt",
    "left.txt",
    "genome.fa",
    "prices.csv",
    "basket.txt",
];

/// The commands of the README and of the tour, as a reader would type them.
#[cfg(unix)]
#[test]
fn every_command_of_the_readme_and_the_tour_works_on_the_sample_data() {
    let path = std::env::var("PATH").unwrap();
    let tamis = assert_cmd::cargo_bin!("tamis");
    let path = format!("{}:{path}", tamis.parent().unwrap().display());
    let mut all = Vec::new();
    for page in ["../../README.md", "../../docs/PROGRAM.md"] {
        let room = Room::new();
        for name in SAMPLES {
            fs::copy(sample(name), room.path(name)).unwrap();
        }
        let text = fs::read_to_string(sample(page)).unwrap();
        let commands = text.lines().filter_map(|line| line.strip_prefix("$ "));
        for command in commands.filter(|line| line.starts_with("tamis ")) {
            let mut shell = Process::new("sh");
            let ran = shell.args(["-c", command]).env("PATH", &path);
            let ran = ran.current_dir(room.path("")).output().unwrap();
            assert_eq!(ran.status.code(), Some(0), "{page}: {command}: {ran:?}");
            all.push(format!("{command} "));
        }
    }
    for verb in [
        "build", "check", "compare", "add", "remove", "count", "get", "verify", "info", "merge",
        "halve", "diff", "dedup", "kinds", "advise", "bench", "report",
    ] {
        let verb = format!("tamis {verb} ");
        assert!(
            all.iter().any(|command| command.starts_with(&verb)),
            "{verb}"
        );
    }
}

#[test]
fn the_sample_data_is_what_its_script_makes() {
    let room = Room::new();
    fs::copy(sample("make.py"), room.path("make.py")).unwrap();
    let Ok(made) = Process::new("python3").arg(room.path("make.py")).status() else {
        eprintln!("no python3 here; not tested");
        return;
    };
    assert!(made.success());
    for name in SAMPLES {
        assert!(room.get(name) == fs::read(sample(name)).unwrap(), "{name}");
    }
}

#[test]
fn a_list_of_keys_serves_as_a_filter_on_the_spot() {
    let room = Room::new();
    room.put("keys.txt", numbers(0..5000));
    room.filter("keys.tamis", 0..5000, &["--kind", "binary_fuse8"]);
    let visits = numbers(2500..50_000);
    let built = room.feed(&visits, ["check", "keys.tamis"]).exits(0);
    room.feed(&visits, ["check", "keys.txt"])
        .exits(0)
        .prints(&built.0.stdout);
    room.feed(&visits, ["filter", "keys.txt"])
        .exits(0)
        .prints(&built.0.stdout);
    room.feed(numbers(0..5000), ["check", "-", "keys.txt", "-c"])
        .exits(0)
        .prints("5000\n");
}

#[test]
fn invert_prints_exactly_the_other_lines() {
    let room = Room::with_filter(b"a\nb\n");
    let lines = b"a\n\nb\r\nc\n\r\nd";
    room.feed(lines, ["check", "keys.tamis"])
        .exits(0)
        .prints("a\nb\r\n");
    room.feed(lines, ["check", "keys.tamis", "-v"])
        .exits(0)
        .prints("\nc\n\r\nd\n");
}

#[test]
fn count_quiet_and_json_print_no_lines() {
    let room = Room::with_filter(b"a\nb\n");
    let lines = b"a\nc\nb\n";
    room.feed(lines, ["check", "keys.tamis", "-c"])
        .exits(0)
        .prints("2\n");
    room.feed(lines, ["check", "keys.tamis", "-vc"])
        .exits(0)
        .prints("1\n");
    room.feed(lines, ["check", "keys.tamis", "-q"])
        .exits(0)
        .prints("");
    let counts = room.feed(lines, ["check", "keys.tamis", "--json"]).exits(0);
    assert_eq!(counts.json()["lines"], 3);
    assert_eq!(counts.json()["passed"], 2);
    for option in ["-c", "-q", "--json", "-vq"] {
        let lines = if option == "-vq" { "a\n" } else { "c\n" };
        room.feed(lines.as_bytes(), ["check", "keys.tamis", option])
            .exits(1);
    }
}

#[test]
fn quiet_stops_at_the_first_line_that_passes() {
    let room = Room::with_filter(b"a\n");
    let mut child = room.spawn(["check", "keys.tamis", "-q"]);
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"a\n").unwrap();
    // The input stays open; only stopping early lets this return.
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_slow_pipe_is_answered_line_by_line() {
    let room = Room::with_filter(b"a\n");
    let mut child = room.spawn(["check", "keys.tamis"]);
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    input.write_all(b"x\na\nhalf").unwrap();
    // The input stays open; only an answer before its end lets this return.
    let mut answer = String::new();
    output.read_line(&mut answer).unwrap();
    assert_eq!(answer, "a\n");
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn no_line_that_passes_is_exit_code_1() {
    let room = Room::with_filter(b"a\n");
    for input in [&b""[..], b"\n", b"zebra\n", b"zebra"] {
        room.feed(input, ["check", "keys.tamis"])
            .exits(1)
            .prints("")
            .says_nothing();
    }
}

#[test]
fn an_empty_line_holds_no_key_even_for_a_filter_that_has_the_empty_one() {
    let room = Room::new();
    let config = Config::new(2).kind("bloom");
    let filter: Keyed<AnyFilter> = Keyed::build(&config, ["", "a"]).unwrap();
    filter.save(room.path("f")).unwrap();
    room.feed(b"\n\r\n", ["check", "f"]).exits(1).prints("");
    room.feed(b"\n", ["check", "f", "-v"]).exits(0).prints("\n");
}

#[test]
fn exact_keys_leave_no_false_positive_and_tell_their_rate() {
    let room = Room::new();
    let (keys, visits) = (numbers(0..20_000), numbers(19_000..119_000));
    room.put("keys.txt", &keys);
    room.filter("keys.tamis", 0..20_000, &["--kind", "binary_fuse8"]);
    let exact = ["check", "keys.tamis", "--exact", "keys.txt"];
    let ran = room
        .feed(&visits, exact)
        .exits(0)
        .prints(numbers(19_000..20_000));
    let said = ran.stderr();
    assert!(
        said.starts_with("tamis: false positives: ") && said.contains("of 99000 records"),
        "{said}"
    );
    let report = room
        .feed(&visits, [&exact[..], &["--json"]].concat())
        .exits(0)
        .json();
    let (wrong, rate) = (
        report["false_positives"].as_u64().unwrap(),
        report["measured_fpr"].as_f64().unwrap(),
    );
    // 1 in 256 of 99000 is 387, with a standard deviation of 20.
    assert!((287..487).contains(&wrong), "{wrong}");
    assert!((rate - wrong as f64 / 99_000.0).abs() < 1e-12);
    room.feed(&visits, [&exact[..], &["-v", "-c"]].concat())
        .exits(0)
        .prints("99000\n");
    room.feed(&keys, [&exact[..], &["-c"]].concat())
        .exits(0)
        .prints("20000\n");
    room.feed(b"", ["check", "keys.tamis", "--exact", "-"])
        .exits(2);
    room.feed(b"x\n", ["check", "keys.tamis", "--exact", "absent"])
        .exits(4);
}

#[test]
fn a_filter_in_the_place_of_records_or_keys_is_refused() {
    let room = Room::with_filter(b"a\n");
    for args in [
        &["check", "keys.txt", "keys.tamis"][..],
        &["check", "keys.tamis", "keys.txt", "--exact", "keys.tamis"],
        &["dedup", "keys.tamis"],
    ] {
        room.run(args)
            .exits(2)
            .prints("")
            .complains(&["keys.tamis: this is a filter"]);
    }
}

#[test]
fn kmers_are_looked_up_in_a_filter_only() {
    let room = Room::new();
    room.put("g.fa", b">g\nACGTACGT\n");
    // As a list its lines would be keys, and no k-mer among them.
    room.run(["check", "g.fa", "g.fa", "--kmer", "4"])
        .exits(2)
        .complains(&["g.fa: ", "--kmer", "tamis build"]);
}

#[test]
fn the_count_of_one_file_is_named_if_asked_for() {
    let room = Room::with_filter(b"a\n");
    room.put("one", b"a\nb\n");
    let check = |options| room.run(["check", "keys.tamis", "one", options]);
    check("-cH").exits(0).prints("one:1\n");
    check("-c").exits(0).prints("1\n");
}

#[test]
fn records_are_named_numbered_and_counted_as_grep_does() {
    let room = Room::with_filter(b"a\nb\n");
    room.put("one", b"x\na\n\nb\n");
    room.put("two", b"y\n");
    room.put("three.csv", b"id,key\n1,\"a\"\n2,y\n3,b\n");
    for (args, out) in [
        (&["one", "-n"][..], "2:a\n4:b\n"),
        (&["one", "two", "-H"], "one:a\none:b\n"),
        (&["one", "two", "-nHv"], "one:1:x\none:3:\ntwo:1:y\n"),
        (&["one", "two", "-c"], "one:2\ntwo:0\n"),
        (&["one", "-c"], "2\n"),
        (&["one", "two", "-l"], "one\n"),
        (&["one", "two", "-L"], "two\n"),
        (&["one", "two", "-lv"], "one\ntwo\n"),
        (&["three.csv", "-f", "key"], "id,key\n1,\"a\"\n3,b\n"),
        (&["three.csv", "-f", "key", "-o"], "a\nb\n"),
        (&["three.csv", "-f", "2", "--header", "-on"], "1:a\n3:b\n"),
        (&["three.csv", "-f", "key", "-ov"], "y\n"),
    ] {
        let args = [&["check", "keys.tamis"], args].concat();
        room.run(&args).exits(0).prints(out);
    }
    room.run(["check", "keys.tamis", "two", "-l"])
        .exits(1)
        .prints("");
    room.run(["check", "keys.tamis", "one", "-L"])
        .exits(1)
        .prints("");
    room.run(["check", "keys.tamis", "one", "-lL"]).exits(2);
    // Keys that cannot be read are none, and do not shift the others.
    room.put("hex", b"61\n62\n");
    room.run(["build", "hex", "--hex", "-o", "h"]).exits(0);
    room.feed(b"61\nzz\n6\n62\n", ["check", "h", "--hex", "-o"])
        .exits(0)
        .prints("61\n62\n");
}

#[test]
fn a_dictionary_lets_nothing_pass_that_is_not_in_the_list() {
    let room = Room::new();
    let list: String = (0..5000).map(|i| format!("key-{i}\n")).collect();
    let asked: String = (0..100_000).map(|i| format!("key-{i}\n")).collect();
    fs::write(room.path("list.txt"), &list).unwrap();
    fs::write(room.path("asked.txt"), &asked).unwrap();
    let check = |kind: &str| {
        let args = ["check", "list.txt", "asked.txt", "--kind", kind];
        room.run(args).exits(0)
    };
    check("dictionary").prints(list.clone());
    // Numbers are numbers, however they are written.
    fs::write(room.path("numbers.txt"), "1\n-2\n 3\n").unwrap();
    fs::write(room.path("others.txt"), "01\n2\n-2\n3\n4\n").unwrap();
    let args = [
        "check",
        "numbers.txt",
        "others.txt",
        "--int",
        "--kind",
        "dictionary",
    ];
    room.run(args).exits(0).prints("01\n-2\n3\n");
    // Another kind by its name and parameters, which may let some others pass.
    let args = [
        "check",
        "list.txt",
        "asked.txt",
        "-c",
        "--kind",
        "cuckoo:fpr=1e-8",
    ];
    room.run(args).exits(0).prints("5000\n");
    for (kind, filter) in [("dictionary:fpr=0.1", "list.txt"), ("nonsense", "list.txt")] {
        let args = ["check", filter, "asked.txt", "--kind", kind];
        room.run(args).exits(2);
    }
}

/// What is data is printed as it is; JSON and messages are text.
#[cfg(unix)]
#[test]
fn names_that_are_no_text_are_printed_as_they_are() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let room = Room::with_filter(b"a\n");
    let name = OsStr::from_bytes(b"n\xFF.txt");
    // Some file systems have no such names.
    if fs::write(room.0.path().join(name), "a\nb\n").is_err() {
        return;
    }
    room.put("two", "b\n");
    let run = |args: &[&str]| {
        let args = args.iter().map(|arg| match *arg {
            "NAME" => name,
            arg => OsStr::new(arg),
        });
        room.run(args)
    };
    for (args, out) in [
        (
            &["check", "keys.tamis", "NAME", "-H"][..],
            &b"n\xFF.txt:a\n"[..],
        ),
        (
            &["check", "keys.tamis", "NAME", "two", "-l"],
            b"n\xFF.txt\n",
        ),
        (&["check", "keys.tamis", "NAME", "-Lvn"], b""),
        (
            &["check", "keys.tamis", "NAME", "two", "-c"],
            b"n\xFF.txt:1\ntwo:0\n",
        ),
        (
            &["compare", "-c", "NAME", "two"],
            b"1\tonly in n\xFF.txt\n0\tonly in two\n1\tin both\n",
        ),
        (
            &["compare", "-c2", "NAME", "keys.tamis"],
            b"1\tonly in n\xFF.txt\n1\tin both\n",
        ),
    ] {
        let code = i32::from(out.is_empty());
        run(args).exits(code).prints(out);
    }
    fs::copy(room.path("keys.tamis"), room.0.path().join(name)).unwrap();
    for args in [["verify", "NAME"], ["info", "NAME"]] {
        let out = run(&args).exits(0).0.stdout;
        assert!(out.windows(6).any(|at| at == b"n\xFF.txt"), "{out:?}");
    }
    let json = run(&["info", "NAME", "--json"]).exits(0).json();
    assert_eq!(json["file"], "n\u{FFFD}.txt");
}

/// Only the library opens them; nothing takes them for a list of keys.
#[test]
fn a_filter_that_threads_share_is_called_so() {
    use tamis::{Bloom, Config, Shared};
    let room = Room::new();
    room.put("lines", "a\n");
    for keys in [0, 100_000u64] {
        let shared: Shared<Bloom> = Shared::build(&Config::default(), 0..keys).unwrap();
        shared.save(room.path("shared")).unwrap();
        for (verb, more) in [
            ("info", &[][..]),
            ("verify", &[]),
            ("check", &["lines"]),
            ("compare", &["-1", "lines"]),
            ("add", &["lines"]),
            ("count", &["lines"]),
            ("report", &[]),
        ] {
            let args = [&[verb, "shared"], more].concat();
            let said = room
                .run(args)
                .exits(3)
                .says(&["threads share", "Shared::load"]);
            assert!(said.stderr().contains("shared: "), "{verb}");
        }
        room.run(["check", "lines", "shared"])
            .exits(2)
            .says(&["this is a filter"]);
        room.run(["build", "shared", "-o", "f"])
            .exits(2)
            .says(&["this is a filter"]);
    }
    // A list whose first word begins so is a list.
    room.put("words", "tamisshame\n");
    room.feed("tamisshame\n", ["check", "words"])
        .exits(0)
        .prints("tamisshame\n");
}
