//! The program as it is used, on filters so small that all of them take seconds.

mod markup;

use std::process::{Command, Output};

use serde_json::Value;

fn bench(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tamis-bench"))
        .args(args)
        .output()
        .expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_subject_keeps_its_keys_and_its_rate() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
    let (json, csv) = (path("run.json"), path("run.csv"));
    // The higher rate is for a rival whose fingerprints are one byte.
    let rates = "0.03125,0.00390625";
    let args = [
        "run",
        "--quick",
        "--n",
        "1000",
        "--fpr",
        rates,
        "--keys",
        "u64,strings",
        "--threads",
        "2",
        "--json",
        &json,
        "--csv",
        &csv,
    ];
    let output = bench(&args);
    // False negatives make the exit code 1.
    assert!(output.status.success(), "{}", text(&output.stderr));

    let run: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let rows = run["rows"].as_array().unwrap();
    for name in text(&bench(&["list"]).stdout).lines() {
        let measured = rows.iter().any(|row| row["subject"] == name);
        assert!(measured, "{name}: {}", text(&output.stderr));
    }
    for row in rows {
        assert_eq!(row["false_negatives"], 0, "{row}");
        let median = |figure: &str| row["figures"][figure]["median"].as_f64().unwrap();
        let (asked, measured) = (row["fpr"].as_f64().unwrap(), median("fpr"));
        // Five standard deviations of 2¹⁶ queries, and a seventh for those who size by a simple
        // formula.
        let most = asked * 1.15 + 5.0 * (asked / 65536.0).sqrt();
        assert!(measured <= most, "{}: {measured}", row["subject"]);
        if median("bits") < 16.0 {
            assert!(measured > 0.0, "{}: too few bits for that", row["subject"]);
        }
        assert!(median("bits") > 5.0, "{row}");
        if row["keys"] == "u64" {
            assert!(median("peak") >= median("bits"), "{}", row["subject"]);
        }
        for figure in [
            "build",
            "absent",
            "present",
            "half",
            "half_threads",
            "limit",
        ] {
            assert!(median(figure) > 0.0, "{}: {figure}", row["subject"]);
        }
    }
    for kind in tamis::KINDS {
        let row = rows.iter().find(|row| row["subject"] == kind.name).unwrap();
        let has = |figure: &str| row["figures"].get(figure).is_some();
        let can = kind.can;
        assert_eq!(has("insert"), can.insert, "{}", kind.name);
        assert_eq!(has("remove"), can.remove, "{}", kind.name);
        assert_eq!(has("count"), can.count, "{}", kind.name);
        for figure in [
            "half_line_reads",
            "half_batch_line_reads",
            "build_threads",
            "half_batch_threads",
        ] {
            assert!(has(figure), "{}: {figure}", kind.name);
        }
    }

    assert!(std::fs::read_to_string(&csv).unwrap().lines().count() > rows.len());
    let same = bench(&["compare", &json, &json]);
    assert!(same.status.success(), "{}", text(&same.stdout));
    // Nothing of ten million keys was measured, so no target can be judged.
    let check = bench(&["check", "--json", &json]);
    assert_eq!(check.status.code(), Some(2), "{}", text(&check.stdout));
}

#[test]
fn a_duel_tells_times_and_quotients_of_everyone_who_meets() {
    let of = |names: &[&str]| {
        let args = [&["duel", "--n", "1000", "--rounds", "1"], names].concat();
        let output = bench(&args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let printed = of(&["cuckoo", "qfilter", "cuckoo12"]);
    for figure in [
        "bits, bits/key",
        "build, ns",
        "insert, ns",
        "half batch, ns",
    ] {
        let line = printed.lines().find(|line| line.starts_with(figure));
        let quotients = line.map_or(0, |line| line.matches('(').count());
        assert_eq!(quotients, 2, "{figure}\n{printed}");
    }
    // Who is built once is compared by all but insertions.
    let printed = of(&["cuckoo", "xorf/BinaryFuse8"]);
    assert!(printed.contains("build, ns") && !printed.contains("insert, ns"));
}

#[test]
fn filters_that_grow_are_held_to_the_theorem() {
    let output = bench(&["paper", "unknown-size", "--quick"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    for ours in ["aleph", "scalable"] {
        let line = format!("verdict, {ours}: the rate is kept at every size; no key is denied;");
        assert_eq!(printed.matches(&line).count(), 1, "{printed}");
    }
    assert!(printed.contains("removals included: holds"), "{printed}");
}

#[test]
fn a_papers_tables_have_verdicts_and_its_figures_are_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("figures");
    let output = bench(&[
        "paper",
        "tinyset",
        "--quick",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    assert!(printed.contains("model and filter gave the same answer"));
    for part in [
        "Table 1",
        "Table 2",
        "Table 3",
        "Table 4",
        "Table 5",
        "Table 6",
        "Figure 10",
        "Figure 12",
        "Figure 13",
        "Figure 14",
        "Figure 15",
        "Headline",
    ] {
        let line = format!("verdict, {part}: ");
        assert_eq!(printed.matches(&line).count(), 1, "{part}\n{printed}");
    }
    // The paper's known errors are found, and nothing measured is off its formula.
    assert!(printed.contains("0.31 bits more are needed"), "{printed}");
    assert!(printed.contains("9.5 against 10.9 is -13 %"), "{printed}");
    assert!(!printed.contains("reproduce: measured"), "{printed}");
    assert!(!printed.contains("otherwise than by formula"), "{printed}");
    assert!(!printed.contains("not checked"), "{printed}");
    assert!(printed.contains("verdict, Figure 11, "), "{printed}");
    // What is measured, computed and only restated is counted apart.
    let (_, summary) = printed.split_once("Summary of all verdicts\n").unwrap();
    for (line, evidence) in summary.lines().zip(["measured", "computed", "restated"]) {
        assert!(line.starts_with(&format!("{evidence}: ")), "{summary}");
    }
    for figure in [10, 12, 13, 14, 15] {
        let figure = format!("tinyset-figure-{figure}.svg");
        let svg = std::fs::read_to_string(out.join(figure)).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert!(svg.contains("fill=\"#ffffff\"") && svg.contains("<polyline"));
        markup::assert_well_formed(&svg);
    }
}

#[test]
fn what_cannot_be_done_is_an_error_with_a_reason() {
    for (args, reason) in [
        (&["run", "--kinds", "cukoo"][..], "cuckoo"),
        (&["run", "--rivals", "nobody"], "xorf/Xor8"),
        (&["run", "--n", "0"], "0 keys"),
        (&["run", "--n", "100000000000000"], "GiB"),
        (&["compare", "missing.json", "missing.json"], "missing.json"),
        (&["duel", "bloom"], "2 values"),
        (&["duel", "bloom", "nobody"], "nobody"),
        (&["duel", "bloom", "bloom"], "itself"),
        (&["duel", "bloom", "cuckoo", "--n", "0"], "0 keys"),
    ] {
        let output = bench(args);
        assert_eq!(output.status.code(), Some(2));
        let message = text(&output.stderr);
        assert!(message.contains(reason), "{args:?}: {message}");
    }
}

#[test]
fn what_cannot_be_done_is_said_before_anything_is_measured() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
    let (run, other) = (path("run.json"), path("other.json"));
    let measure = |kind: &str, json: &str| {
        let args = [
            "--n",
            "100",
            "--rounds",
            "1",
            "--no-rivals",
            "--kinds",
            kind,
        ];
        bench(&[&["run"], &args[..], &["--json", json]].concat())
    };
    assert!(measure("bloom", &run).status.success());
    assert!(measure("cuckoo", &other).status.success());
    let missing = path("no/such/run.json");
    for (output, reason) in [
        (measure("bloom", &missing), "no/such/run.json"),
        (bench(&["compare", &run, &other]), "in common"),
        (bench(&["check", "--json", &run]), "nothing"),
        (bench(&["check", "--kinds", "nobody"]), "nobody"),
        (bench(&["compare", &run, &run, "--ratio", "NaN"]), "NaN"),
        (bench(&["run", "--n", "10", "--threads", "9999"]), "9999"),
        (
            bench(&[
                "report",
                &run,
                "--svg",
                &path("a.svg"),
                "--html",
                &path("a.html"),
            ]),
            "measured",
        ),
    ] {
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(reason), "{error}");
    }
    assert!(
        !std::fs::exists(path("a.html")).unwrap(),
        "no half of a report"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error_with_a_reason() {
    let dir = std::env::temp_dir().join(format!("tamis-bench-full-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let json = dir.join("kept.json");
    let json = json.to_str().unwrap();
    let run = "run --n 1000 --rounds 1 --kinds bloom --no-rivals --json";
    let run: Vec<&str> = run.split(' ').chain([json]).collect();
    for args in [&["list"][..], &["paper", "tinyset", "--quick"], &run] {
        let full = std::fs::File::create("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_tamis-bench"))
            .args(args)
            .stdout(full)
            .output()
            .unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains("No space left"), "{args:?}: {error}");
    }
    let kept = std::fs::read_to_string(json);
    assert!(
        kept.is_ok_and(|text| text.contains("bloom")),
        "what was measured is kept"
    );
    std::fs::remove_dir_all(&dir).unwrap();
}

#[cfg(unix)]
#[test]
fn a_reader_who_goes_ends_the_program_quietly() {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Stdio;
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_tamis-bench"))
        .arg("list")
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), Some(13), "{output:?}");
    assert_eq!(text(&output.stderr), "");
}
