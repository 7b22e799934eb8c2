//! The form of keys, which a filter file remembers.

use tamis::{AnyFilter, KeyForm, Keyed};

use crate::common::{Room, numbers};

const DIGESTS: &str = "00ff\nABCD\n1234\n";

fn form(room: &Room, name: &str) -> KeyForm {
    let filter: Keyed<AnyFilter> = Keyed::open(room.get(name)).unwrap();
    filter.key_form()
}

/// A filter of digests, and one of each other form.
fn forms() -> Room {
    let room = Room::new();
    let bloom = ["--kind", "bloom", "--capacity", "1000"];
    for (name, keys, options) in [
        ("plain", DIGESTS, &[][..]),
        ("hex", DIGESTS, &["--hex"]),
        ("int", "1\n2\n3\n", &["--int"]),
        ("small", "Alice\nBOB\nÉcole\n", &["-i"]),
        ("kmer", ">a\nACGTTGCATGCATCGA\n", &["--kmer", "5"]),
        ("kmer7", ">a\nACGTTGCATGCATCGA\n", &["--kmer", "7"]),
    ] {
        let build = [&["build", "-o", name], &bloom[..], options].concat();
        room.feed(keys, build).exits(0);
    }
    room
}

#[test]
fn a_filter_reads_keys_as_it_was_built_and_says_so() {
    let room = forms();
    room.feed("00FF\nabcd\nffff\n", ["check", "hex"])
        .exits(0)
        .prints("00FF\nabcd\n")
        .says(&["tamis: hex: keys are read with --hex, as it was built\n"]);
    room.feed("ALICE\nbob\nÉCOLE\neve\n", ["check", "small"])
        .exits(0)
        .prints("ALICE\nbob\nÉCOLE\n")
        .says(&["with -i"]);
    room.feed("1\n+3\n5\n", ["check", "int"])
        .exits(0)
        .prints("1\n+3\n")
        .says(&["with --int"]);
    room.feed(">r\nACGTTGCAT\n", ["check", "kmer", "-c"])
        .exits(0)
        .prints("1\n")
        .says(&["with --kmer 5"]);
    // Who repeats the option, or has a filter that remembers nothing, hears nothing.
    room.feed("00FF\n", ["check", "hex", "--hex"])
        .exits(0)
        .says_nothing();
    room.feed("00ff\n", ["check", "plain"])
        .exits(0)
        .says_nothing();
    room.feed("00FF\n", ["check", "hex", "--quiet"])
        .exits(0)
        .says_nothing();
    let json = room.feed("00FF\n", ["check", "hex", "--json"]);
    assert_eq!(
        json.exits(0).says_nothing().json()["key_form"]["name"],
        "hex"
    );
}

#[test]
fn every_verb_that_reads_keys_heeds_the_form() {
    let room = Room::new();
    let counting = ["--kind", "counting", "--capacity", "100"];
    let build = ["build", "-o", "f", "--hex"].iter().chain(&counting);
    room.feed(DIGESTS, build).exits(0);
    room.feed("beef\n", ["add", "f"]).exits(0).says(&["--hex"]);
    room.feed("BEEF\nBEEF\n", ["add", "f", "--quiet"])
        .exits(0)
        .says_nothing();
    room.feed("BEef\n00ff\n", ["count", "f", "-q"])
        .exits(0)
        .prints("BEef\t3\n00ff\t1\n")
        .says_nothing();
    room.feed("BEEF\n", ["remove", "f"])
        .exits(0)
        .says(&["--hex"]);
    room.put("keys", "beef\nABcd\n");
    room.run(["verify", "f", "--keys", "keys"])
        .exits(0)
        .says(&["--hex"]);
    assert_eq!(form(&room, "f"), KeyForm::Hex);
    room.run(["info", "f"]).exits(0);
    let told = room.run(["info", "f"]).stdout();
    assert!(told.contains("hexadecimal digits (--hex)"), "{told}");

    let map = [
        "build",
        "-o",
        "map",
        "-f",
        "1",
        "--value-field",
        "2",
        "--hex",
    ];
    room.feed("AA,7\nbb,8\n", map).exits(0);
    room.feed("aa\ncc\n", ["get", "map"])
        .exits(0)
        .prints("aa\t7\n")
        .says(&["--hex"]);
    // What is built from disk, or as keys come, remembers as well.
    room.put("many", numbers(0..2000));
    for kind in ["binary_fuse8", "bloom"] {
        let build = [
            "build",
            "many",
            "--int",
            "-o",
            "g",
            "--force",
            "--max-memory",
            "40K",
        ];
        room.run(build.iter().chain(&["--kind", kind])).exits(0);
        assert_eq!(form(&room, "g"), KeyForm::Int, "{kind}");
    }
}

#[test]
fn a_contradiction_is_refused_and_both_are_named() {
    let room = forms();
    for (filter, options, parts) in [
        ("hex", &["--int"][..], ["--hex", "--int"]),
        ("hex", &["-i"], ["--hex", "-i"]),
        ("int", &["--hex"], ["--int", "--hex"]),
        ("small", &["--hex"], ["-i", "--hex"]),
        ("kmer", &["--kmer", "7"], ["--kmer 5", "--kmer 7"]),
        ("kmer", &["--int"], ["--kmer 5", "--int"]),
        // A filter cannot be asked for what it has never seen.
        ("plain", &["-i"], ["-i", "build it with -i"]),
    ] {
        for verb in ["check", "add"] {
            let before = room.get(filter);
            let args = [verb, filter].into_iter().chain(options.iter().copied());
            room.feed("1\n", args).exits(2).complains(&[
                &format!("{filter}: "),
                parts[0],
                parts[1],
            ]);
            assert!(room.get(filter) == before);
        }
    }
    // A filter that remembers nothing takes what it is given, and says so.
    room.feed("00ff\n", ["check", "plain", "--hex", "-c"])
        .exits(1)
        .says(&["plain: it was not built with --hex, or does not say so"]);
    room.feed("61\n", ["check", "hex", "--as-given", "-c"])
        .exits(1)
        .says_nothing();
    room.feed("alice\n", ["check", "plain", "-i", "--as-given", "-c"])
        .exits(1)
        .says_nothing();
    room.feed("00ff\n", ["build", "-o", "x", "-i", "--hex"])
        .exits(2);
}

const VISITS: &str = "user,url\nann,a.org\nbob,b.org\ncid,c.org\n";

/// A filter of the urls of some visits, and the url that it does not hold.
fn visits() -> Room {
    let room = Room::new();
    room.put("visits.csv", VISITS);
    let build = ["build", "visits.csv", "-f", "url", "-o", "f"];
    let kind = ["--kind", "counting", "--capacity", "100"];
    room.run(build.iter().chain(&kind)).exits(0);
    room
}

#[test]
fn the_field_is_found_in_records_of_every_form_and_no_list_has_one() {
    let room = visits();
    let told = "tamis: f: keys are read with -f url, as it was built\n";
    room.feed("url;n\nx.org;1\n\"b.org\";2\n", ["check", "f"])
        .exits(0)
        .prints("url;n\n\"b.org\";2\n")
        .says(&[told]);
    room.put("more.tsv", "n\turl\n1\tc.org\n");
    room.put("alone.csv", "url\na.org\nz.org\n");
    for (file, lines) in [("more.tsv", "1\tc.org\n"), ("alone.csv", "a.org\n")] {
        let header = room.get(file);
        let header = std::str::from_utf8(&header)
            .unwrap()
            .lines()
            .next()
            .unwrap();
        room.run(["check", "f", file])
            .exits(0)
            .prints(format!("{header}\n{lines}"))
            .says(&[told]);
    }
    let json = "{\"url\": \"a.org\"}\n{\"url\": \"z.org\"}\n";
    room.feed(json, ["check", "f"])
        .exits(0)
        .prints("{\"url\": \"a.org\"}\n")
        .says(&["f: keys are read with --json-key url, as it was built"]);
    // A list stays one, even if its first line is the field's name.
    for list in [
        "a.org\nz.org\nurl\n",
        "url\na.org\n",
        "\u{FEFF}a.org\r\nx,y\n",
    ] {
        let checked = room.feed(list, ["check", "f", "-c"]);
        checked.exits(0).prints("1\n").says_nothing();
    }
    room.feed("a.org\0z.org\0", ["check", "f", "-0", "-c"])
        .exits(0)
        .prints("1\n")
        .says_nothing();
    room.feed(VISITS, ["check", "f", "--quiet"])
        .exits(0)
        .says_nothing();
    let json = room.feed(VISITS, ["check", "f", "--json"]).exits(0).json();
    assert_eq!(
        (&json["passed"], &json["key_form"]["field"]),
        (&3.into(), &"url".into())
    );
    // Each file is read as it is.
    room.put("list", "b.org\n");
    room.run(["check", "f", "visits.csv", "list", "-c"])
        .exits(0)
        .prints("visits.csv:3\nlist:1\n");
}

#[test]
fn every_verb_heeds_the_field() {
    let room = visits();
    let field = |name: &str| {
        let filter: Keyed<AnyFilter> = Keyed::open(room.get(name)).unwrap();
        filter.key_field().map(str::to_string)
    };
    let told = "-f url, as it was built";
    let records = "n,url\n1,d.org\n2,a.org\n";
    room.feed(records, ["add", "f"]).exits(0).says(&[told]);
    room.feed(records, ["count", "f"])
        .exits(0)
        .prints("n,url\tcount\n1,d.org\t1\n2,a.org\t2\n")
        .says(&[told]);
    room.feed(records, ["remove", "f"]).exits(0).says(&[told]);
    assert_eq!(field("f").as_deref(), Some("url"));
    room.run(["verify", "f", "--keys", "visits.csv"])
        .exits(0)
        .says(&[told]);
    room.put("records", records);
    room.run(["compare", "-2", "-3", "records", "f"])
        .exits(0)
        .prints("n,url\n1,d.org\n")
        .says(&[told]);
    // The exact list is what the filter was built from.
    room.feed("b.org\nn\n", ["check", "f", "--exact", "visits.csv", "-c"])
        .exits(0)
        .prints("1\n");
    let info = room.run(["info", "f"]).stdout();
    assert!(info.contains("keys as they are, from `url`"), "{info}");
    assert_eq!(
        room.run(["info", "f", "--json"]).json()["key_form"]["field"],
        "url"
    );
    // A map, and what is built from disk.
    let map = [
        "build",
        "visits.csv",
        "-f",
        "2",
        "--header",
        "--value-field",
        "1",
        "-o",
        "map",
    ];
    room.put("values.csv", "v,url\n7,a.org\n");
    let map = map.map(|word| {
        if word == "visits.csv" {
            "values.csv"
        } else {
            word
        }
    });
    room.run(map).exits(0);
    assert_eq!(field("map").as_deref(), Some("2"));
    let spilled = [
        "build",
        "visits.csv",
        "-f",
        "url",
        "-o",
        "g",
        "--max-memory",
        "40K",
    ];
    room.run(spilled).exits(0);
    assert_eq!(field("g").as_deref(), Some("url"));
}

#[test]
fn another_field_is_read_and_told_and_a_number_needs_records_by_name() {
    let room = visits();
    room.feed("link,n\na.org,1\n", ["check", "f", "-f", "link", "-c"])
        .exits(0)
        .prints("1\n")
        .says(&["f: it was built from `url`; keys are read from `link`"]);
    room.feed(VISITS, ["check", "f", "-f", "url", "-c"])
        .exits(0)
        .says_nothing();
    room.feed(VISITS, ["check", "f", "--as-given", "-c"])
        .exits(1)
        .says_nothing();
    // What looks like a table and has no such field is read as lines, which is told.
    room.put("links.csv", "link,n\na.org,1\n");
    room.run(["check", "f", "links.csv", "-c"])
        .exits(1)
        .says(&["links.csv: no field is `url`, from which f was built", "-f"]);

    room.run(["build", "visits.csv", "-f", "2", "-o", "g"])
        .exits(0);
    room.run(["check", "g", "visits.csv", "-c"])
        .exits(0)
        .prints("4\n")
        .says(&["g: keys are read with -f 2, as it was built"]);
    // A comma makes no record of a line.
    room.feed("a.org,b.org\nc.org\n", ["check", "g", "-c"])
        .exits(0)
        .prints("1\n")
        .says_nothing();
}

#[test]
fn a_union_remembers_the_field_that_all_filters_have() {
    let room = Room::new();
    let quotient = ["--kind", "quotient", "--capacity", "1000"];
    for (name, records, field) in [
        ("a", "url\na.org\n", "url"),
        ("b", "url\nb.org\n", "url"),
        ("c", "link\nc.org\n", "link"),
    ] {
        let build = ["build", "-f", field, "-o", name];
        room.feed(records, build.iter().chain(&quotient)).exits(0);
    }
    for (other, field) in [("b", Some("url")), ("c", None)] {
        let in_memory = ["merge", "a", other, "-o", "x", "--force", "--json"];
        let json = room.run(in_memory).exits(0).json();
        assert_eq!(json["key_form"]["field"].as_str(), field);
        let on_disk = [
            "merge",
            "a",
            other,
            "-o",
            "y",
            "--force",
            "--max-memory",
            "1K",
        ];
        room.run(on_disk).exits(0);
        assert!(room.get("x") == room.get("y"));
        let filter: Keyed<AnyFilter> = Keyed::open(room.get("x")).unwrap();
        assert_eq!(filter.key_field(), field);
    }
}

#[test]
fn filters_of_two_forms_are_neither_merged_nor_compared() {
    let room = forms();
    for (other, parts) in [
        (
            "plain",
            ["hexadecimal digits here", "keys as they are there"],
        ),
        ("int", ["hexadecimal digits here", "whole numbers there"]),
        (
            "kmer",
            ["hexadecimal digits here", "k-mers of 5 bases there"],
        ),
    ] {
        room.run(["merge", "hex", other, "-o", "x"])
            .exits(2)
            .complains(&[&format!("{other}: "), parts[0], parts[1]]);
        room.run(["diff", "hex", other])
            .exits(2)
            .complains(&["hexadecimal digits"]);
    }
    room.run(["merge", "kmer", "kmer7", "-o", "x"])
        .exits(2)
        .complains(&["5 bases", "7 bases"]);
    let merged = room.run(["merge", "hex", "hex", "-o", "x", "--json"]);
    assert_eq!(merged.exits(0).json()["key_form"]["name"], "hex");
    assert_eq!(form(&room, "x"), KeyForm::Hex);
    room.run(["halve", "x", "-o", "half"]).exits(0);
    assert_eq!(form(&room, "half"), KeyForm::Hex);
    // From disk to disk as in memory.
    let quotient = ["--kind", "quotient", "--capacity", "1000"];
    for (name, option) in [("q", &["--int"][..]), ("r", &["--int"]), ("s", &[])] {
        let build = [&["build", "-o", name], &quotient[..], option].concat();
        room.feed("1\n2\n", build).exits(0);
    }
    let memory = ["--max-memory", "1K"];
    let merge = ["merge", "q", "s", "-o", "y"];
    room.run(merge.iter().chain(&memory))
        .exits(2)
        .complains(&["s: ", "whole numbers here"]);
    let merge = ["merge", "q", "r", "-o", "y"];
    room.run(merge.iter().chain(&memory)).exits(0);
    assert_eq!(form(&room, "y"), KeyForm::Int);
}

#[test]
fn case_is_ignored_in_lists_and_records_of_every_place() {
    let room = Room::new();
    room.put("list", "Alice\nBOB\nÉcole\n");
    let records = "alice\nbob\nÉCOLE\neve\n";
    for kind in [&[][..], &["--kind", "dictionary"]] {
        let check = ["check", "list", "-i"].iter().chain(kind);
        room.feed(records, check)
            .exits(0)
            .prints("alice\nbob\nÉCOLE\n")
            .says_nothing();
    }
    // The key is printed as it is written in the record.
    room.feed(
        "user,n\nALICE,1\nEve,2\n",
        ["check", "list", "-i", "-f", "user", "-o"],
    )
    .exits(0)
    .prints("ALICE\n");
    let json = "{\"user\":\"bOb\"}\n{\"user\":\"eve\"}\n";
    room.feed(json, ["check", "list", "-i", "--json-key", "user"])
        .exits(0)
        .prints("{\"user\":\"bOb\"}\n");
    room.run(["build", "list", "-i", "-o", "f"]).exits(0);
    room.feed(records, ["check", "f", "--exact", "list", "-c"])
        .exits(0)
        .prints("3\n");
    room.feed("Ann\nANN\nann\nBea\n", ["dedup", "-i", "-q"])
        .exits(0)
        .prints("Ann\nBea\n");
    // Without -i nothing changes.
    room.feed(records, ["check", "list", "-c"])
        .exits(1)
        .prints("0\n");
}

#[test]
fn a_single_kmer_in_each_record_is_counted() {
    let room = Room::new();
    room.put("g.fa", ">a\nACGTTGCATGCATCGA\n>b\nACGTT\n");
    let kind = ["--kind", "quotient_counting"];
    let build = ["build", "g.fa", "-o", "g", "--kmer", "5"]
        .iter()
        .chain(&kind);
    room.run(build).exits(0);
    // AACGT is the other strand of ACGTT.
    room.feed("ACGTT\naacgt\nGGGGG\nACG\n", ["count", "g"])
        .exits(0)
        .prints("ACGTT\t2\naacgt\t2\nGGGGG\t0\n")
        .says(&["--kmer 5", "`ACG` is no k-mer of 5 bases"]);
    room.feed(
        "kmer,n\nACGTT,1\nGGGGG,2\n",
        ["check", "g", "-f", "kmer", "-q"],
    )
    .exits(0);
}

#[test]
fn a_random_sequence_passes_at_no_more_than_the_rate_of_the_filter() {
    let room = Room::new();
    let mut state = 1u64;
    let mut bases = |len: usize| -> String {
        let base = |_| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            b"ACGT"[(state >> 62) as usize] as char
        };
        (0..len).map(base).collect()
    };
    let genome = bases(20_000);
    room.put("g.fa", format!(">g\n{genome}\n"));
    let build = ["build", "g.fa", "--kmer", "21", "-o", "g", "--fpr", "0.01"];
    room.run(build.iter().chain(&["--kind", "bloom"])).exits(0);
    let (mut random, mut members) = (String::new(), String::new());
    for i in 0..4000 {
        random += &format!(">r{i}\n{}\n", bases(60 + i % 100));
        members += &format!(">m{i}\n{}\n", &genome[i..i + 60 + i % 100]);
    }
    room.put("random.fa", random);
    room.put("members.fa", members);
    room.run(["check", "g", "members.fa", "-c"])
        .exits(0)
        .prints("4000\n");
    let json = room.run(["check", "g", "random.fa", "--json"]).json();
    let [passed, rate, fpr] =
        ["passed", "sequence_fpr", "fpr"].map(|name| json[name].as_f64().unwrap());
    assert!(rate > 0.0 && rate <= fpr && fpr < 0.011, "{json}");
    let (low, high) = tamis::testing::math::binomial_interval(4000, rate, 1e-9);
    assert!((low..=high).contains(&(passed as u64)), "{json}");
    // Any one k-mer is there by chance in most of them.
    let any = room
        .run(["check", "g", "random.fa", "--share", "0", "--json"])
        .json();
    assert!(any["sequence_fpr"].as_f64().unwrap() > 0.4, "{any}");
    assert!(any["passed"].as_u64().unwrap() > 1000, "{any}");
    room.run(["check", "g", "random.fa", "-c"])
        .says(&["4000 sequences of 90 k-mers on average; a random one passes with 0."]);
    // What is for records of one key is not for these, and the other way round.
    for option in [&["--exact", "g.fa"][..], &["-o"]] {
        let check = ["check", "g", "random.fa"].iter().chain(option);
        room.run(check).exits(2);
    }
    room.put("words", "a\n");
    room.run(["check", "words", "words", "--share", "0.5"])
        .exits(2);
}

#[test]
fn what_is_given_twice_is_refused_with_both() {
    let room = Room::new();
    room.put("keys", "a\n");
    let build = ["build", "keys", "-o", "f"];
    room.run(
        build
            .iter()
            .chain(&["--fpr", "1%", "--kind", "bloom:fpr=1/256"]),
    )
    .exits(2)
    .complains(&["--fpr 0.01", "fpr=0.00390625"]);
    room.run(
        build
            .iter()
            .chain(&["--capacity", "10k", "--kind", "bloom:capacity=2e3"]),
    )
    .exits(2)
    .complains(&["--capacity 10000", "capacity=2000"]);
}
