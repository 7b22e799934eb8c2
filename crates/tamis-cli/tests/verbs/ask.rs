//! `count` and `get`, and the maps that `build --value-field` makes.

use tamis::KINDS;

use crate::common::{Room, numbers};

#[test]
fn every_kind_that_counts_tells_copies_and_the_others_say_why_not() {
    for kind in KINDS {
        let room = Room::new();
        room.filter("f", 0..50, &["--kind", kind.name, "--capacity", "1000"]);
        let asked = room.feed("7\nabsent\n\n8\n", ["count", "f"]);
        if !kind.can.count {
            let parts = ["f: ", kind.name, "cannot count", "`quotient_counting`"];
            asked.exits(2).complains(&parts).prints("");
            continue;
        }
        asked.exits(0).prints("7\t1\nabsent\t0\n8\t1\n");
        room.feed("7\n7\n", ["add", "f"]).exits(0);
        let ran = room
            .feed("7\nabsent\n8\n", ["count", "f", "--json"])
            .exits(0);
        let json = ran.json();
        assert_eq!((&json["keys"], &json["held"]), (&3.into(), &2.into()));
        assert_eq!(json["records"][0]["record"], "7");
        assert_eq!(json["records"][0]["count"], 3, "{}", kind.name);
        room.feed("absent\n", ["count", "f"])
            .exits(1)
            .prints("absent\t0\n");
    }
}

/// Some keys come very often, most of them once or twice: all are counted, whether they are there
/// from the start, added later, or more than memory holds.
#[test]
fn a_quotient_counting_counts_every_copy_of_skewed_keys() {
    let room = Room::new();
    // Key i comes 20 000/(i + 1) times.
    let copies = |i: u64| 20_000 / (i + 1);
    let events: Vec<String> = (0..2000)
        .flat_map(|i| (0..copies(i)).map(move |_| format!("{i}\n")))
        .collect();
    room.put("all", events.concat());
    room.put("first", events[..50_000].concat());
    room.put("rest", events[50_000..].concat());
    let expected: String = (0..2000).map(|i| format!("{i}\t{}\n", copies(i))).collect();
    let kind = ["--kind", "quotient_counting:fpr=1e-9"];
    let build = |from: &str, to: &str, more: &[&str]| {
        let args = ["build", from, "-o", to].into_iter().chain(kind);
        room.run(args.chain(more.iter().copied()))
    };
    build("all", "at_once", &[]).exits(0);
    build("first", "added", &["--capacity", "2000"]).exits(0);
    room.run(["add", "added", "rest"]).exits(0);
    let little = ["--max-memory", "1M"];
    build(
        "all",
        "streamed",
        &[&little[..], &["--capacity", "2000"]].concat(),
    )
    .exits(0);
    for filter in ["at_once", "added", "streamed"] {
        let ran = room.feed(numbers(0..2000), ["count", filter]).exits(0);
        ran.prints(&expected);
        // The capacity is one of distinct keys.
        let info = room.run(["info", filter, "--json"]).exits(0).json();
        assert_eq!(
            (&info["capacity"], &info["fill"]),
            (&2000.into(), &1.0.into())
        );
        assert_eq!(info["warnings"].as_array().map(Vec::len), Some(0));
    }
    build("all", "unknown", &little)
        .exits(2)
        .complains(&["distinct", "--capacity"]);
}

#[test]
fn a_count_says_where_it_ends() {
    let room = Room::new();
    room.filter("f", 0..9, &["--kind", "counting:counter_bits=4"]);
    room.feed("1\n".repeat(40), ["add", "f"]).exits(0);
    let json = room.feed("1\n", ["count", "f", "--json"]).exits(0).json();
    assert_eq!(
        (&json["limit"], &json["records"][0]["count"]),
        (&15.into(), &15.into())
    );
}

#[test]
fn records_of_other_forms_get_the_number_after_them() {
    let room = Room::new();
    room.filter("f", 0..9, &["--kind", "counting", "--int"]);
    let table = "name,id\r\nann,3\r\nbob,77\r\n,\n";
    room.feed(table, ["count", "f", "-f", "id", "--int"])
        .exits(0)
        .prints("name,id\tcount\nann,3\t1\nbob,77\t0\n");
    room.feed("3\0", ["count", "f", "-0", "--int"])
        .exits(0)
        .prints("3\t1\0");
    room.feed(">a\nACGT\n", ["count", "f", "--kmer", "3"])
        .exits(2)
        .complains(&["--kmer"]);
}

#[test]
fn a_map_gives_every_key_its_value_whatever_the_order() {
    let room = Room::new();
    let rows = |range: &mut dyn Iterator<Item = u64>| -> String {
        range.map(|i| format!("{i},x,{}\n", i * i)).collect()
    };
    room.put("up.csv", rows(&mut (0..500)));
    room.put("down.csv", rows(&mut (0..500).rev()) + "7,x,49\n");
    let expected: String = (0..500u64).map(|i| format!("{i}\t{}\n", i * i)).collect();
    for kind in KINDS.iter().filter(|kind| kind.can.map) {
        let build = |from: &str, to: &str| {
            let args = [
                "build",
                from,
                "-f",
                "1",
                "--value-field",
                "3",
                "-o",
                to,
                "--force",
            ];
            room.run(args.iter().chain(&["--kind", kind.name, "--fpr", "1e-6"]))
                .exits(0);
        };
        build("up.csv", "f");
        build("down.csv", "g");
        assert!(room.get("f") == room.get("g"), "{}", kind.name);
        room.feed(numbers(0..500), ["get", "f"])
            .exits(0)
            .prints(&expected);
        let ran = room.feed("9\nabsent\n", ["get", "f", "--json"]).exits(0);
        let json = ran.json();
        assert_eq!(
            (&json["held"], &json["records"][0]["value"]),
            (&1.into(), &81.into())
        );
        room.feed("absent\n", ["get", "f"]).exits(1).prints("");
    }
}

#[test]
fn fields_by_name_and_quoted_values_make_a_map_too() {
    let room = Room::new();
    room.put(
        "p.csv",
        "item,note,cents\npear,\"a \"\"b\"\", c\",\"120\"\nplum,,30\r\n",
    );
    let build = [
        "build",
        "p.csv",
        "-f",
        "item",
        "-o",
        "f",
        "--value-field",
        "cents",
    ];
    let json = room.run(build.iter().chain(&["--json"])).exits(0).json();
    assert_eq!(json["kind"], "bloomier");
    room.feed("item,n\nplum,2\n", ["get", "f", "-f", "item"])
        .exits(0)
        .prints("item,n\tvalue\nplum,2\t30\n");
    // A key by number, and a value by name.
    let build = [
        "build",
        "p.csv",
        "-f",
        "1",
        "-o",
        "g",
        "--value-field",
        "cents",
    ];
    room.run(build).exits(0);
    room.feed("pear\nplum\n", ["get", "g"])
        .exits(0)
        .prints("pear\t120\nplum\t30\n");
}

#[test]
fn what_is_no_map_or_no_value_is_refused() {
    let room = Room::new();
    room.put("p.csv", "a,1\nb,2\n");
    let build = ["build", "p.csv", "-f", "1", "-o", "f", "--value-field"];
    let with = |more: &[&str]| room.run(build.iter().chain(more));
    with(&["2", "--kind", "bloom"])
        .exits(2)
        .complains(&["`bloom`", "`bloomier`"]);
    with(&["3"])
        .exits(4)
        .complains(&["p.csv: record 1: its value ``"]);
    room.put("p.csv", "a,1\nb,two\n");
    with(&["2"])
        .exits(4)
        .complains(&["record 2: its value `two`"]);
    room.put("p.csv", "a,1\nb,2\na,3\n");
    with(&["2"]).exits(2).complains(&["f: "]);
    room.put("p.csv", "item,cents\na,1\n");
    with(&["price"])
        .exits(2)
        .complains(&["no field is named `price`"]);
    room.run(["build", "p.csv", "-o", "f", "--value-field", "2"])
        .exits(2);
    assert!(!room.names().contains(&"f".to_string()));

    room.filter("set", 0..9, &["--kind", "bloom"]);
    room.feed("1\n", ["get", "set"])
        .exits(2)
        .complains(&["set: ", "cannot map", "`bloomier`"]);
    room.run(["get", room.damaged()]).exits(3);
    room.run(["get", "nowhere"]).exits(4);
    room.run(["count", "-"])
        .exits(2)
        .complains(&["standard input"]);
}

#[test]
fn info_tells_the_omission_probability_where_it_is_one() {
    let room = Room::new();
    let build = ["--kind", "hash_compaction", "--capacity", "20k"];
    room.filter("f", 0..10_000, &build);
    let json = room.run(["info", "f", "--json"]).exits(0).json();
    let omission = json["omission_probability"].as_f64().unwrap();
    assert!(omission > 0.0 && omission <= 1.0, "{omission}");
    assert!(
        room.run(["info", "f"])
            .stdout()
            .contains("\nomission        ")
    );
    room.filter("g", 0..9, &["--kind", "bloom"]);
    let json = room.run(["info", "g", "--json"]).exits(0).json();
    assert!(json["omission_probability"].is_null());
    assert!(!room.run(["info", "g"]).stdout().contains("omission"));
}
