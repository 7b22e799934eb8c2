use std::collections::HashSet;

use crate::common::{Ran, Room, numbers};

/// `a` and `b`, neither in order, each with lines of its own and one without its end.
fn room() -> Room {
    let room = Room::new();
    room.put("a", "pear\nfig\napple\nplum\nfig\n");
    room.put("b", "plum\nkiwi\nfig\nlime");
    room
}

const WAYS: [&[&str]; 2] = [&[], &["--exact"]];

fn compare(room: &Room, args: &[&str]) -> Ran {
    room.run([&["compare"], args].concat())
}

#[test]
fn the_three_columns_are_those_of_comm() {
    let room = room();
    for way in WAYS {
        for (columns, expected) in [
            (
                &[][..],
                "pear\n\t\tfig\napple\n\t\tplum\n\t\tfig\n\tkiwi\n\tlime\n",
            ),
            (&["-1"], "\tfig\n\tplum\n\tfig\nkiwi\nlime\n"),
            (&["-2"], "pear\n\tfig\napple\n\tplum\n\tfig\n"),
            (&["-3"], "pear\napple\n\tkiwi\n\tlime\n"),
            (&["-12"], "fig\nplum\nfig\n"),
            (&["-13"], "kiwi\nlime\n"),
            (&["-2", "-3"], "pear\napple\n"),
            (
                &["-3", "--output-delimiter", "> "],
                "pear\napple\n> kiwi\n> lime\n",
            ),
        ] {
            let args = [&["a", "b"], columns, way].concat();
            compare(&room, &args)
                .exits(0)
                .prints(expected)
                .says_nothing();
        }
        compare(&room, &[&["-123", "a", "b"], way].concat())
            .exits(1)
            .prints("");
    }
}

/// Of sorted files without repeats the columns are `comm`'s own, in another order.
#[test]
fn sorted_files_are_compared_as_comm_compares_them() {
    let theirs = std::process::Command::new("comm").arg("--version").output();
    assert!(theirs.unwrap().status.success());
    let room = Room::new();
    let lines = |step: usize| {
        let lines: HashSet<String> = (0..3000)
            .step_by(step)
            .map(|i| format!("{:x}\n", i * i))
            .collect();
        let mut lines: Vec<String> = lines.into_iter().collect();
        lines.sort();
        lines.concat()
    };
    room.put("a", lines(2));
    room.put("b", lines(3));
    for way in WAYS {
        let mut ours: Vec<String> = compare(&room, &[&["a", "b"], way].concat())
            .exits(0)
            .stdout()
            .lines()
            .map(str::to_string)
            .collect();
        let comm = std::process::Command::new("comm")
            .args(["a", "b"])
            .env("LC_ALL", "C")
            .current_dir(room.path(""))
            .output()
            .unwrap();
        let mut theirs: Vec<String> = Ran(comm).stdout().lines().map(str::to_string).collect();
        ours.sort();
        theirs.sort();
        assert_eq!(ours, theirs);
        assert_eq!(ours.len(), 2000);
    }
}

#[test]
fn many_lines_in_any_order_fall_into_their_columns() {
    let room = Room::new();
    // More than one piece of text, and more than one part of the index.
    let backwards = |range: std::ops::Range<u32>| -> Vec<u8> {
        range
            .rev()
            .flat_map(|i| format!("{i}\n").into_bytes())
            .collect()
    };
    room.put("a", numbers(0..200_000));
    room.put("b", backwards(150_000..300_000));
    for way in WAYS {
        compare(&room, &[&["-12", "a", "b"], way].concat())
            .exits(0)
            .prints(numbers(150_000..200_000));
        compare(&room, &[&["-23", "a", "b"], way].concat())
            .exits(0)
            .prints(numbers(0..150_000));
        compare(&room, &[&["-13", "a", "b"], way].concat())
            .exits(0)
            .prints(backwards(200_000..300_000));
    }
}

#[test]
fn a_line_that_its_file_repeats_is_printed_as_often() {
    let room = Room::new();
    room.put("a", "x\nx\ny\ny\nz\n");
    room.put("b", "z\nw\nw\nz\nx\n");
    for way in WAYS {
        compare(&room, &[&["a", "b"], way].concat())
            .exits(0)
            .prints("\t\tx\n\t\tx\ny\ny\n\t\tz\n\tw\n\tw\n");
        let counts = "2\tonly in a\n2\tonly in b\n3\tin both\n";
        compare(&room, &[&["-c", "a", "b"], way].concat())
            .exits(0)
            .prints(counts);
    }
}

#[test]
fn empty_lines_are_lines_and_line_ends_are_no_part_of_them() {
    let room = Room::new();
    room.put("a", "\nx\r\ny");
    room.put("b", "x\n\n\n");
    room.put("full", "x\n");
    for way in WAYS {
        compare(&room, &[&["a", "b"], way].concat())
            .exits(0)
            .prints("\t\t\n\t\tx\r\ny\n");
        compare(&room, &[&["a", "full"], way].concat())
            .exits(0)
            .prints("\n\t\tx\r\ny\n");
        compare(&room, &[&["-1", "full", "b"], way].concat())
            .exits(0)
            .prints("\tx\n\n\n");
    }
}

#[test]
fn numbers_are_counted_and_told_as_json() {
    let room = room();
    for way in WAYS {
        let with = |args: &[&str]| compare(&room, &[args, way].concat());
        with(&["a", "b", "-c"])
            .exits(0)
            .prints("2\tonly in a\n2\tonly in b\n3\tin both\n");
        with(&["a", "b", "-c", "-12"]).exits(0).prints("3\n");
        with(&["a", "b", "-c", "-1"])
            .exits(0)
            .prints("2\tonly in b\n3\tin both\n");
        let json = with(&["a", "b", "--json"]).exits(0).json();
        assert_eq!(json["only_first"], 2);
        assert_eq!(json["only_second"], 2);
        assert_eq!(json["both"], 3);
        assert_eq!(json["exact"], !way.is_empty());
        let bits = if way.is_empty() { 64 } else { 128 };
        let lines = json["fpr"].as_f64().unwrap() * 2f64.powi(bits);
        assert!((lines - 4.0).abs() < 1e-9, "{json}");
    }
}

#[test]
fn either_side_may_come_from_standard_input() {
    let room = room();
    let stream = room.get("a");
    for way in WAYS {
        let args = [&["compare", "-3", "-", "b"], way].concat();
        room.feed(stream.clone(), args)
            .exits(0)
            .prints("pear\napple\n\tkiwi\n\tlime\n");
        let args = [&["compare", "-3", "b", "-"], way].concat();
        room.feed(stream.clone(), args)
            .exits(0)
            .prints("kiwi\nlime\n\tpear\n\tapple\n");
    }
    compare(&room, &["-", "-"])
        .exits(2)
        .says(&["standard input"]);
}

#[test]
fn records_are_compared_by_their_keys() {
    let room = Room::new();
    room.put("all.csv", "id,what\n1,one\n2,two\n3,three\n");
    room.put("done.csv", "id,when\n3,noon\n9,never\n");
    for way in WAYS {
        compare(&room, &[&["all.csv", "done.csv", "-f", "id"], way].concat())
            .exits(0)
            .prints("id,what\n1,one\n2,two\n\t\t3,three\n\tid,when\n\t9,never\n");
    }
    room.put("x", "a\0b\nc\0");
    room.put("y", "b\nc\0d\0");
    compare(&room, &["-0", "x", "y"])
        .exits(0)
        .prints("a\0\t\tb\nc\0\td\0");
    room.put("x", "0A\nff\n");
    room.put("y", "0a\n");
    compare(&room, &["--hex", "-12", "x", "y"])
        .exits(0)
        .prints("0A\n");
    compare(&room, &["--kmer", "5", "x", "y"])
        .exits(2)
        .says(&["--kmer"]);
}

#[test]
fn the_header_is_of_the_file_whose_lines_are_below_it() {
    let room = Room::new();
    room.put("all.csv", "id,what\n1,one\n3,three\n");
    room.put("done.csv", "id,when\n3,noon\n9,never\n");
    // The same fields, written by another program.
    room.put("more.csv", "\u{FEFF}id,what\r\n3,three\r\n9,nine\r\n");
    room.put("fewer.csv", "id,when\n3,noon\n");
    room.put("none.csv", "");
    for way in WAYS {
        for (args, expected) in [
            (["-12", "all.csv", "done.csv"], "id,what\n3,three\n"),
            (["-12", "done.csv", "all.csv"], "id,when\n3,noon\n"),
            (["-23", "all.csv", "done.csv"], "id,what\n1,one\n"),
            (["-13", "all.csv", "done.csv"], "id,when\n9,never\n"),
            (
                ["-3", "all.csv", "done.csv"],
                "id,what\n1,one\n\tid,when\n\t9,never\n",
            ),
            (
                ["-1", "all.csv", "done.csv"],
                "id,what\n\t3,three\nid,when\n9,never\n",
            ),
            (
                ["-3", "all.csv", "more.csv"],
                "id,what\n1,one\n\t9,nine\r\n",
            ),
            (["-3", "all.csv", "fewer.csv"], "id,what\n1,one\n"),
            (
                ["-3", "none.csv", "done.csv"],
                "id,when\n\t3,noon\n\t9,never\n",
            ),
        ] {
            let args = [&args[..], &["-f", "id"], way].concat();
            compare(&room, &args).exits(0).prints(expected);
        }
    }
    room.run(["build", "done.csv", "-f", "id", "-o", "done.tamis"])
        .exits(0);
    for args in [
        ["-2", "all.csv", "done.tamis"],
        ["-1", "done.tamis", "all.csv"],
    ] {
        let args = [&args[..], &["-f", "id"]].concat();
        compare(&room, &args)
            .exits(0)
            .prints("id,what\n1,one\n\t3,three\n");
    }
}

#[test]
fn a_filter_that_remembers_how_its_keys_are_written_is_asked_so() {
    let room = Room::new();
    room.put("digests", "cafe\n00ff\n");
    room.put("seen", "CAFE\n1234\n");
    room.run([
        "build", "digests", "--hex", "-o", "f.tamis", "--fpr", "1e-6",
    ])
    .exits(0);
    compare(&room, &["-2", "seen", "f.tamis"])
        .exits(0)
        .prints("\tCAFE\n1234\n")
        .complains(&["f.tamis: ", "--hex"]);
    compare(&room, &["-2", "seen", "f.tamis", "--int"])
        .exits(2)
        .prints("")
        .complains(&["--hex", "--int"]);
    let json = compare(&room, &["-2", "seen", "f.tamis", "--json"])
        .exits(0)
        .says_nothing()
        .json();
    assert_eq!(json["key_form"]["name"], "hex");
}

#[test]
fn lines_of_one_kmer_each_are_asked_of_a_filter_of_kmers() {
    let room = Room::new();
    room.put("genome", ">a\nACGTTGCATGCATCGA\n");
    room.put("kmers", "ACGTT\nGGGGG\nAACGT\n");
    room.run([
        "build", "genome", "--kmer", "5", "-o", "f.tamis", "--fpr", "1e-6",
    ])
    .exits(0);
    for kmer in [&[][..], &["--kmer", "5"]] {
        compare(&room, &[&["-2", "kmers", "f.tamis"], kmer].concat())
            .exits(0)
            .prints("\tACGTT\nGGGGG\n\tAACGT\n");
    }
}

#[test]
fn lines_that_cannot_be_read_are_never_in_both() {
    let room = Room::new();
    room.put("good", "00ff\n\n");
    room.put("bad", "00ff\n\nzz\n");
    room.put("worse", "xyz\n");
    for way in WAYS {
        for form in ["--hex", "--int"] {
            compare(&room, &[&["worse", "worse", form], way].concat())
                .exits(4)
                .prints("")
                .complains(&["worse: ", "record 1", "xyz"]);
        }
        compare(&room, &[&["bad", "worse", "--hex"], way].concat())
            .exits(4)
            .complains(&["worse: ", "record 1"]);
        compare(&room, &[&["bad", "good", "--hex"], way].concat())
            .exits(4)
            .complains(&["bad: ", "record 3", "zz"]);
        compare(&room, &[&["good", "good", "--hex", "-3"], way].concat())
            .exits(1)
            .prints("");
    }
    room.run(["build", "good", "--hex", "-o", "f.tamis", "--fpr", "1e-6"])
        .exits(0);
    compare(&room, &["-2", "bad", "f.tamis", "--hex"])
        .exits(0)
        .prints("\t00ff\n\nzz\n");
}

#[test]
fn a_filter_takes_the_place_of_a_list_where_its_lines_are_not_asked_for() {
    let room = room();
    room.run(["build", "b", "-o", "b.tamis", "--fpr", "1e-6"])
        .exits(0);
    room.run(["build", "a", "-o", "a.tamis", "--fpr", "1e-6"])
        .exits(0);
    compare(&room, &["-2", "a", "b.tamis"])
        .exits(0)
        .prints("pear\n\tfig\napple\n\tplum\n\tfig\n");
    compare(&room, &["-1", "a.tamis", "b"])
        .exits(0)
        .prints("\tplum\nkiwi\n\tfig\nlime\n");
    // Each number is told with the name of the file that has the lines.
    compare(&room, &["-c", "-2", "a", "b.tamis"])
        .exits(0)
        .prints("2\tonly in a\n3\tin both\n");
    compare(&room, &["-c", "-1", "a.tamis", "b"])
        .exits(0)
        .prints("2\tonly in b\n2\tin both\n");
    let json = compare(&room, &["-2", "a", "b.tamis", "--json"])
        .exits(0)
        .json();
    assert_eq!(json["only_second"], serde_json::Value::Null);
    assert_eq!((&json["only_first"], &json["both"]), (&2.into(), &3.into()));
    assert!(json["fpr"].as_f64().unwrap() > 0.0);
    // What a filter cannot tell is refused, with what to do.
    compare(&room, &["a", "b.tamis"])
        .exits(2)
        .prints("")
        .complains(&["b.tamis: ", "-2"]);
    compare(&room, &["-c", "a.tamis", "b"])
        .exits(2)
        .complains(&["a.tamis: ", "-1"]);
    compare(&room, &["-2", "--exact", "a", "b.tamis"])
        .exits(2)
        .complains(&["b.tamis: ", "--exact"]);
    compare(&room, &["a.tamis", "b.tamis"])
        .exits(2)
        .complains(&["tamis diff"]);
}

#[test]
fn memory_is_bounded_where_that_is_asked_for() {
    let room = Room::new();
    room.put("a", "x\n");
    room.put("b", numbers(0..10_000));
    // 9 bytes a line; with its text and what goes with it about 26.
    compare(&room, &["-2", "a", "b", "--max-memory", "100K"])
        .exits(0)
        .prints("x\n");
    compare(&room, &["a", "b", "--max-memory", "100K"])
        .exits(2)
        .prints("")
        .complains(&["b: ", "second", "-2", "tamis build"]);
    compare(&room, &["-2", "--exact", "a", "b", "--max-memory", "100K"]).exits(2);
    compare(&room, &["b", "a", "--max-memory", "100K"]).exits(0);
}

#[test]
fn exit_codes() {
    let room = room();
    room.put("empty", "");
    room.put("other", "cherry\n");
    compare(&room, &["-12", "a", "other"]).exits(1).prints("");
    compare(&room, &["-12", "-c", "a", "other"])
        .exits(1)
        .prints("0\n");
    // The same lines, whatever their order and their repeats.
    room.put("same", "plum\napple\npear\nfig\n");
    compare(&room, &["-3", "a", "same"]).exits(1).prints("");
    compare(&room, &["-3", "a", "b"]).exits(0);
    compare(&room, &["empty", "empty"]).exits(1).prints("");
    compare(&room, &["empty", "other"])
        .exits(0)
        .prints("\tcherry\n");
    compare(&room, &["a"]).exits(2);
    compare(&room, &["-2", "a", room.damaged()])
        .exits(3)
        .says(&["damaged: "]);
    compare(&room, &["a", "absent"])
        .exits(4)
        .says(&["absent: "]);
}
