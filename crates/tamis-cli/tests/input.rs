//! The shapes of input: what the key is in each, for every verb that reads keys.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::io::Write;

use tamis::{AnyFilter, Config, Key, KeyForm, Keyed};

use common::{Room, numbers};

/// That a filter built by these arguments holds exactly the keys that the library says.
#[track_caller]
fn holds<K: Key>(room: &Room, args: &[&str], keys: &[K]) {
    let kind = "binary_fuse32:fpr=1e-9";
    let build = [&["build", "-o", "f", "--force", "--kind", kind], args].concat();
    room.run(&build).exits(0).says_nothing();
    let config: Config = kind.parse().unwrap();
    let expected: Keyed<AnyFilter> = Keyed::build(&config, keys).unwrap();
    // How a key is written and what field it came from, the file remembers; nothing else.
    let options = [args, &[""]].concat();
    let field = options.windows(2).find_map(|pair| match pair[0] {
        "-f" | "--json-key" | "--column" => Some(pair[1]),
        option => option.strip_prefix("-f"),
    });
    let form = match args {
        [.., "--hex"] => KeyForm::Hex,
        [.., "--int"] => KeyForm::Int,
        [.., "--kmer", k] => KeyForm::Kmer(k.parse().unwrap()),
        _ => KeyForm::Plain,
    };
    let expected = expected.with_key_form(form).with_key_field(field);
    assert!(room.get("f") == expected.to_bytes(), "{args:?}");
}

#[test]
fn nul_records_may_hold_line_ends() {
    let room = Room::new();
    room.put("keys", b"a\nb\0c\r\0\0d");
    holds(&room, &["keys", "-0"], &["a\nb", "c\r", "d"]);
    room.feed(b"d\0x\0a\nb", ["check", "f", "-0"])
        .exits(0)
        .prints("d\0a\nb\0");
}

#[test]
fn a_field_is_found_by_number_or_by_name() {
    let room = Room::new();
    let text =
        "id,\"full name\"\r\n1,\"Doe, Jane\"\r\n2,\"say \"\"hi\"\"\"\r\n3,\"two\nlines\"\r\n4\r\n";
    room.put("t.csv", text.as_bytes());
    holds(&room, &["t.csv", "-f", "id"], &["1", "2", "3", "4"]);
    holds(
        &room,
        &["t.csv", "-f", "1", "--header"],
        &["1", "2", "3", "4"],
    );
    holds(&room, &["t.csv", "-f1"], &["id", "1", "2", "3", "4"]);
    room.put("t.tsv", b"a\t\"b\nc\t\"d\n");
    holds(&room, &["t.tsv", "-d", "tab", "-f", "2"], &["\"b", "\"d"]);
    holds(&room, &["t.tsv", "-d", "\\t", "-f", "1"], &["a", "c"]);
    room.put("passwd", b"root:x:0\nbin:x:1\n");
    holds(&room, &["passwd", "-d:", "-f1"], &["root", "bin"]);

    let build = ["build", "t.csv", "-o", "f", "--force", "-f", "full name"];
    room.run(build)
        .exits(0)
        .complains(&["warning", "no such field in 1 record"]);
    room.run(["check", "f", "t.csv", "--field", "full name"])
        .exits(0)
        .prints(text.strip_suffix("4\r\n").unwrap())
        .complains(&["1 record"]);
    room.feed(b"id,full name\n9,Jim\n", ["check", "f", "-f", "full name"])
        .exits(1)
        .prints("id,full name\n");
    room.feed(b"x,y\n", ["check", "f", "-f", "full name"])
        .exits(2)
        .complains(&["no field is named `full name`; there are: x, y"]);
    room.run(["build", "t.csv", "-o", "g", "-d", ";"]).exits(2);
    room.run(["build", "t.csv", "-o", "g", "-f1", "-d", "::"])
        .exits(2);
}

#[test]
fn a_name_that_two_fields_have_is_refused() {
    let room = Room::new();
    room.put("t.csv", b"id,x,id\n1,2,3\n");
    room.run(["build", "t.csv", "-o", "f", "-f", "id"])
        .exits(2)
        .complains(&["t.csv: ", "`id`", "1", "3"]);
    holds(&room, &["t.csv", "-f", "x"], &["2"]);
}

#[test]
fn a_quote_that_is_never_closed_is_an_error_to_build_from() {
    let room = Room::new();
    room.put("t.csv", b"1,a\n2,\"b\n3,c\n4,d\n");
    for field in ["1", "2"] {
        room.run(["build", "t.csv", "-o", "f", "-f", field])
            .exits(4)
            .complains(&["t.csv: record 2: ", "quote"]);
    }
    room.filter("f", 0..10, &[]);
    room.run(["check", "f", "t.csv", "-f", "1"])
        .exits(0)
        .prints("1,a\n")
        .complains(&["1 record cannot be read", "record 2", "quote"]);
}

#[test]
fn a_json_path_gives_text_and_numbers() {
    let room = Room::new();
    let lines = concat!(
        "{\"user\": {\"id\": \"a\\u00e9\"}}\n",
        "{\"user\": {\"id\": 42}, \"x\": [1]}\r\n",
        "\n",
        "{\"user\": {\"id\": true}}",
    );
    room.put("t.jsonl", lines.as_bytes());
    holds(
        &room,
        &["t.jsonl", "--json-key", "user.id"],
        &["aé", "42", "true"],
    );
    holds(
        &room,
        &["t.jsonl", "--json-key", "/user/id"],
        &["aé", "42", "true"],
    );
    room.feed(
        b"{\"user\":{\"id\":42}}\n{}\n{\n",
        ["check", "f", "--json-key", "user.id"],
    )
    .exits(0)
    .prints("{\"user\":{\"id\":42}}\n");
    let said = room
        .feed(b"{\n{}\n", ["check", "f", "--json-key", "user.id"])
        .exits(1)
        .stderr();
    assert!(said.contains("1 record cannot be read, record 1: this is not JSON"));
    // To build from, what cannot be read is an error: a key would be missing.
    room.feed(b"{\"k\":1}\n{\n", ["build", "-o", "g", "--json-key", "k"])
        .exits(4)
        .complains(&["standard input: record 2: this is not JSON"]);
    room.run(["build", "t.jsonl", "-o", "g", "--json-key", "a", "-f1"])
        .exits(2);
}

#[test]
fn hexadecimal_and_whole_numbers_are_what_they_stand_for() {
    let room = Room::new();
    room.put("pwned", b"00FF:3\nabCD:1\n");
    let keys: [&[u8]; 2] = [&[0, 255], &[0xAB, 0xCD]];
    holds(&room, &["pwned", "-d:", "-f1", "--hex"], &keys);
    room.put("numbers", b"7\n-1\n18446744073709551615\n 8 \n");
    holds(&room, &["numbers", "--int"], &[7, u64::MAX, 8]);
    for (option, bad) in [
        ("--hex", &b"00\n0g\n"[..]),
        ("--hex", b"00\nabc\n"),
        ("--int", b"1\n1.5\n"),
    ] {
        room.feed(bad, ["build", "-o", "g", option])
            .exits(4)
            .complains(&["standard input: record 2: "]);
        room.feed(bad, ["check", "f", option, "--as-given", "-c"])
            .complains(&["record 2"]);
    }
    room.feed(b"8\nx\n9\n", ["check", "f", "--int"])
        .exits(0)
        .prints("8\n");
}

#[test]
fn canonical_kmers_are_the_keys_of_sequences() {
    let room = Room::new();
    room.put("g.fa", b">one\nAACCG\nTN\n>two\naac\n");
    // AACC ACCG CCGT(=ACGG) CGT? k=4: AACC, ACCG, CCGT; AACC = 0,0,1,1.
    let code = |kmer: &str| {
        kmer.bytes().fold(0u64, |n, b| {
            n << 2 | "ACGT".bytes().position(|x| x == b).unwrap() as u64
        })
    };
    holds(
        &room,
        &["g.fa", "--kmer", "4"],
        &[code("AACC"), code("ACCG"), code("ACGG")],
    );
    let reads = "@hit\nGGTTA\n+\nIIIII\n@miss\nTTTTT\n+\nIIIII\n";
    room.feed(
        reads.as_bytes(),
        ["check", "f", "--kmer", "4", "--share", "0"],
    )
    .exits(0)
    .prints("@hit\nGGTTA\n+\nIIIII\n");
    // One of two is found by chance at nearly twice the rate of the filter.
    room.feed(reads.as_bytes(), ["check", "f", "-c"])
        .exits(1)
        .prints("0\n");
    room.feed(
        reads.as_bytes(),
        ["check", "f", "--kmer", "4", "--share", "0.9", "-c"],
    )
    .exits(1)
    .prints("0\n");
    let long = "ACGTTGCA".repeat(5);
    room.put("long.fq", format!("@r\n{long}\n+\n{long}\n").as_bytes());
    holds(
        &room,
        &["long.fq", "--kmer", "40"],
        &[long.as_str().min("TGCAACGT".repeat(5).as_str())],
    );
    room.feed(b"ACGT\n", ["build", "-o", "g", "--kmer", "4"])
        .exits(4)
        .complains(&["neither FASTA nor FASTQ"]);
    room.feed(b"@r\nACGT\n+\n", ["build", "-o", "g", "--kmer", "4"])
        .exits(4)
        .complains(&["cut short"]);
    room.run(["build", "g.fa", "-o", "g", "--kmer", "0"])
        .exits(2);
}

#[test]
fn compressed_files_are_read_as_they_are() {
    let room = Room::with_filter(&numbers(0..3000));
    let (keys, expected) = (room.get("keys.txt"), room.get("keys.tamis"));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&keys).unwrap();
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
    xz.write_all(&keys).unwrap();
    let packed = [
        gzip.finish().unwrap(),
        xz.finish().unwrap(),
        zstd::encode_all(&keys[..], 1).unwrap(),
    ];
    for bytes in packed {
        room.put("packed", &bytes);
        room.run(["build", "packed", "-o", "-"])
            .exits(0)
            .prints(&expected);
        room.feed(&bytes, ["build", "-o", "-"])
            .exits(0)
            .prints(&expected);
        room.run(["check", "keys.tamis", "packed"])
            .exits(0)
            .prints(&keys);
        room.run(["check", "packed", "keys.txt", "-c"])
            .exits(0)
            .prints("3000\n");
        room.put("cut", &bytes[..bytes.len() - 5]);
        room.run(["build", "cut", "-o", "g"])
            .exits(4)
            .complains(&["cut: "]);
        room.run(["check", "keys.tamis", "cut", "-c"])
            .exits(4)
            .complains(&["cut: "]);
    }
    assert!(!room.path("g").exists());
    room.put("f.zst", zstd::encode_all(&expected[..], 1).unwrap());
    room.run(["check", "f.zst", "keys.txt"])
        .exits(0)
        .prints(&keys);
    room.run(["info", "f.zst"]).exits(0);
}

#[test]
fn several_files_are_one_set() {
    let room = Room::with_filter(&numbers(0..300));
    room.put("a", numbers(0..100));
    room.put("b", numbers(50..200));
    let args = ["build", "a", "b", "-", "-o", "-"];
    room.feed(numbers(200..300), args)
        .exits(0)
        .prints(room.get("keys.tamis"));
    room.put("no_end", b"7");
    room.run(["check", "keys.tamis", "no_end", "no_end", "b", "-c"])
        .exits(0)
        .prints("no_end:1\nno_end:1\nb:150\n");
    room.run(["check", "keys.tamis", "no_end", "no_end"])
        .exits(0)
        .prints("7\n7\n");
    room.run(["build", "-", "-", "-o", "g"]).exits(2);
    room.run(["build", "a", "absent", "-o", "g"])
        .exits(4)
        .complains(&["absent"]);
}

#[cfg(feature = "parquet")]
mod parquet_files {
    use std::fs::File;
    use std::sync::Arc;

    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    fn write(room: &Room) {
        let schema = "message m {
            required int64 id;
            optional binary name (UTF8);
            required int32 small (UINT_32);
            required double share;
            repeated binary tag;
        }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let file = File::create(room.path("t.parquet")).unwrap();
        let properties = Arc::new(WriterProperties::builder().build());
        let mut out = SerializedFileWriter::new(file, schema, properties).unwrap();
        for group in 0..2i64 {
            let mut rows = out.next_row_group().unwrap();
            let mut column = rows.next_column().unwrap().unwrap();
            column
                .typed::<Int64Type>()
                .write_batch(&[group, -5, 1 << 40], None, None)
                .unwrap();
            column.close().unwrap();
            let mut column = rows.next_column().unwrap().unwrap();
            let names = [
                ByteArray::from("ann"),
                ByteArray::from(if group == 0 { "bob" } else { "eve" }),
            ];
            column
                .typed::<ByteArrayType>()
                .write_batch(&names, Some(&[1, 0, 1]), None)
                .unwrap();
            column.close().unwrap();
            let mut column = rows.next_column().unwrap().unwrap();
            column
                .typed::<Int32Type>()
                .write_batch(&[-1, 2, 3], None, None)
                .unwrap();
            column.close().unwrap();
            let mut column = rows.next_column().unwrap().unwrap();
            column
                .typed::<DoubleType>()
                .write_batch(&[0.5; 3], None, None)
                .unwrap();
            column.close().unwrap();
            let mut column = rows.next_column().unwrap().unwrap();
            let tags = [ByteArray::from("x"), ByteArray::from("y")];
            column
                .typed::<ByteArrayType>()
                .write_batch(&tags, Some(&[1, 1, 0, 0]), Some(&[0, 1, 0, 0]))
                .unwrap();
            column.close().unwrap();
            rows.close().unwrap();
        }
        out.close().unwrap();
    }

    #[test]
    fn the_values_of_a_column_are_keys() {
        let room = Room::new();
        write(&room);
        holds(
            &room,
            &["t.parquet", "--column", "name"],
            &["ann", "bob", "eve"],
        );
        room.run(["check", "f", "t.parquet", "--column", "name"])
            .exits(0)
            .prints("ann\nbob\nann\neve\n")
            .says_nothing();
        room.run(["check", "f", "t.parquet"])
            .exits(0)
            .prints("ann\nbob\nann\neve\n")
            .says(&["f: keys are read with --column name, as it was built"]);
        holds(
            &room,
            &["t.parquet", "--column", "id"],
            &["0", "-5", "1099511627776", "1"],
        );
        holds(
            &room,
            &["t.parquet", "--column", "id", "--int"],
            &[0i64, -5, 1 << 40, 1],
        );
        holds(
            &room,
            &["t.parquet", "--column", "small"],
            &["4294967295", "2", "3"],
        );
        holds(&room, &["t.parquet", "--column", "tag"], &["x", "y"]);
        let build = |column| room.run(["build", "t.parquet", "-o", "g", "--column", column]);
        build("nam")
            .exits(2)
            .complains(&["no column is named `nam`; the nearest of 5 are: name, tag, id"]);
        build("share").exits(2).complains(&["fractions"]);
        room.put("cut", &room.get("t.parquet")[..200]);
        room.run(["build", "cut", "-o", "g", "--column", "id"])
            .exits(4)
            .complains(&["cut: "]);
        room.put("text", b"a\n");
        room.run(["build", "text", "-o", "g", "--column", "id"])
            .exits(4)
            .complains(&["no Parquet file"]);
    }

    /// It is read from its end, which a pipe does not have yet.
    #[test]
    fn a_file_on_a_pipe_or_compressed_is_read_all_the_same() {
        let room = Room::new();
        write(&room);
        let build = |input: &[u8], file| {
            let args = ["build", file, "-o", "-", "--column", "name"];
            room.feed(input, args).exits(0).0.stdout
        };
        let whole = room.get("t.parquet");
        let by_name = build(b"", "t.parquet");
        assert!(by_name == build(&whole, "-"));
        room.put("packed", zstd::encode_all(&whole[..], 1).unwrap());
        assert!(by_name == build(b"", "packed"));
        room.feed(&whole[..100], ["build", "-o", "g", "--column", "id"])
            .exits(4)
            .complains(&["standard input: "]);
    }

    /// A value that was overwritten used to be another key. The file's pages have checksums, which
    /// pyarrow writes (`write_page_checksum=True`).
    #[test]
    fn a_page_that_is_not_what_its_checksum_says_is_refused() {
        let room = Room::new();
        let mut bytes = include_bytes!("data/checksums.parquet").to_vec();
        room.put("p", &bytes);
        let build = ["build", "p", "-o", "f", "--force", "--column", "name"];
        room.run(build).exits(0);
        room.feed(b"alice\nbobby\nhobby\n", ["check", "f"])
            .exits(0)
            .prints("alice\nbobby\n");
        let at = bytes.windows(5).position(|at| at == b"bobby").unwrap();
        bytes[at] = b'h';
        room.put("p", &bytes);
        room.run(build).exits(4).complains(&["p: "]);
    }

    #[test]
    fn what_is_no_key_in_any_one_form_is_refused() {
        let room = Room::new();
        let schema = "message m {
            required fixed_len_byte_array(2) half (FLOAT16);
            required int96 time;
            required float share;
            required int32 price (DECIMAL(9, 2));
        }";
        let schema = Arc::new(parse_message_type(schema).unwrap());
        let file = File::create(room.path("t.parquet")).unwrap();
        let properties = Arc::new(WriterProperties::builder().build());
        let out = SerializedFileWriter::new(file, schema, properties);
        out.unwrap().close().unwrap();
        for (column, why) in [
            ("half", "fractions"),
            ("time", "times of 96 bits"),
            ("share", "fractions"),
            ("price", "fractions"),
        ] {
            room.run(["build", "t.parquet", "-o", "f", "--column", column])
                .exits(2)
                .complains(&["t.parquet: ", column, why]);
        }
    }

    /// At these bytes, the levels of a list, the library that reads the file panics.
    #[test]
    fn a_damaged_file_is_read_or_refused_and_never_more() {
        let room = Room::new();
        write(&room);
        let whole = room.get("t.parquet");
        let mut refused = 0;
        for at in 200..230 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            room.put("bad", &bytes);
            let args = ["build", "bad", "-o", "f", "--force", "--column", "tag"];
            let ran = room.run(args).says(&[]);
            refused += u32::from(ran.stderr().contains("bad: this Parquet file is damaged"));
            assert!(matches!(ran.0.status.code(), Some(0 | 4)), "{at}: {ran:?}");
        }
        assert!(refused > 0);
    }
}

#[test]
fn the_mark_before_a_text_is_no_part_of_its_first_key_in_any_form() {
    let room = Room::new();
    let marked = |name: &str, text: &str| {
        let marked = format!("\u{FEFF}{text}");
        room.put(name, &marked);
        marked
    };
    room.put("list", "1\n");
    for (text, args) in [
        ("1,x\n2,y\n", &["-f1"][..]),
        ("\"1\",x\n2,y\n", &["-f1"]),
        ("x,1\ny,2\n", &["-f2"]),
        ("1\tx\n2\ty\n", &["-f1", "-dtab"]),
        ("{\"k\":1}\n{\"k\":2}\n", &["--json-key", "k"]),
    ] {
        let whole = marked("marked", text);
        let (first, _) = whole.split_at(whole.find('\n').unwrap() + 1);
        let check = ["check", "list", "marked"];
        room.run(check.iter().chain(args)).exits(0).prints(first);
    }
    // The value of the first record, too; one without a key is the first all the same.
    for (text, value) in [("10,x\n20,y\n", "x\t10\n"), ("10,\n20,x\n", "x\t20\n")] {
        marked("map.csv", text);
        let build = ["build", "map.csv", "-f2", "--value-field", "1", "-o", "map"];
        room.run(build.iter().chain(&["--force"])).exits(0);
        room.feed("x\n", ["get", "map"]).exits(0).prints(value);
    }
    for text in [">s\nACGTACGT\n", "@s\nACGTACGT\n+\nIIIIIIII\n"] {
        let whole = marked("marked", text);
        room.put("plain", text);
        for name in ["marked", "plain"] {
            let build = ["build", name, "--kmer", "5", "--force", "-o"];
            room.run(build.iter().chain(&[format!("{name}.tamis").as_str()]))
                .exits(0);
        }
        assert!(room.get("marked.tamis") == room.get("plain.tamis"));
        room.run(["check", "plain.tamis", "marked"])
            .exits(0)
            .prints(whole);
    }
}
