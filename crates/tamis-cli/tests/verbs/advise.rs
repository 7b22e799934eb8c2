use tamis::{KINDS, KindInfo};

use crate::common::Room;

const BASE: [&str; 5] = ["advise", "--keys", "20k", "--fpr", "0.01"];

fn advise(args: &[&str]) -> serde_json::Value {
    let room = Room::new();
    let args = [&BASE[..], args, &["--json"]].concat();
    room.run(args).exits(0).says_nothing().json()
}

fn kinds(advice: &serde_json::Value) -> Vec<&str> {
    let choices = advice["choices"].as_array().unwrap().iter();
    choices.map(|c| c["kind"].as_str().unwrap()).collect()
}

#[test]
fn the_ranked_choice_has_bits_per_key_and_a_reason() {
    let room = Room::new();
    let ran = room.run(BASE).exits(0).says_nothing();
    let text = ran.stdout();
    let first = text.lines().nth(1).unwrap();
    assert!(first.trim_start().starts_with("1 split_block "), "{text}");
    assert!(first.contains("times what its rate needs"), "{text}");
    assert_eq!(
        text.lines().count(),
        8,
        "a head, the best five, the runner-up, the exact set: {text}"
    );
    let last: Vec<&str> = text.lines().skip(6).collect();
    assert!(last[0].starts_with("the runner-up, `"), "{text}");
    assert!(last[1].starts_with("an exact set "), "{text}");
    let json = advise(&["--all"]);
    assert_eq!(kinds(&json)[0], "split_block_256");
    assert!(json["runner_up"].as_str().unwrap().contains("% space"));
    let chosen = json["choices"].as_array().unwrap();
    assert!(
        chosen
            .iter()
            .all(|c| c["bits_per_key"].as_f64().unwrap() > 6.6)
    );
    assert!(
        chosen
            .iter()
            .all(|c| !c["why"].as_str().unwrap().is_empty())
    );
    let refused = json["refused"].as_array().unwrap();
    assert_eq!(chosen.len() + refused.len(), KINDS.len());
}

#[test]
fn each_need_leaves_exactly_the_kinds_that_can() {
    let inserts = |kind: &KindInfo| kind.can.insert && !kind.can.window;
    type Able<'a> = &'a dyn Fn(&KindInfo) -> bool;
    let cases: [(&str, Able<'_>); 6] = [
        ("--delete", &|k| inserts(k) && k.can.remove),
        ("--count", &|k| inserts(k) && k.copies >= 10),
        ("--merge", &|k| inserts(k) && k.can.merge),
        ("--grow", &|k| k.can.grow),
        ("--static", &|k| !k.can.window),
        ("--window", &|k| k.can.window),
    ];
    for (need, able) in cases {
        let advice = advise(&[need, "--all"]);
        let listed = kinds(&advice);
        for kind in KINDS {
            let is_listed = listed.contains(&kind.name);
            assert_eq!(is_listed, able(kind), "{need} {kind:?}");
        }
    }
}

#[test]
fn what_is_advised_can_be_built_and_is_as_large_as_said() {
    let room = Room::new();
    let json = advise(&["--static", "--all"]);
    for choice in json["choices"].as_array().unwrap().iter().take(5) {
        let config = choice["config"].as_str().unwrap();
        room.filter("f", 0..20_000, &["--kind", config]);
        let bits = room.run(["info", "f", "--json"]).exits(0).json()["bits_per_key"]
            .as_f64()
            .unwrap();
        let said = choice["bits_per_key"].as_f64().unwrap();
        // The file has a head; 1 KiB are 0.4 bits a key.
        assert!(
            bits >= said - 0.01 && bits < said + 0.5,
            "{config}: {bits} {said}"
        );
    }
}

#[test]
fn the_wrong_tool_is_called_so() {
    let room = Room::new();
    for (args, parts) in [
        (
            &["--hit-rate", "0.0001"][..],
            &["the Bloom paradox", "99.0 %"][..],
        ),
        (&["--hit-rate", "0.99"], &["99 % of the lookups"]),
        (&["--key-bytes", "1"], &["exact set"]),
    ] {
        room.run(BASE.iter().chain(args)).exits(0).says(parts);
    }
    room.run(["advise", "--keys", "50"])
        .exits(0)
        .says(&["exact set"]);
    room.run(["advise", "--keys", "1T", "--fpr", "1e-12"])
        .exits(0)
        .says(&["64-bit hash"]);
    let json = room.run(BASE.iter().chain(&["--hit-rate", "0", "--json"]));
    assert_eq!(json.json()["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn memory_is_honoured_by_size_or_by_the_lowest_rate() {
    let room = Room::new();
    let fits = advise(&["--max-memory", "24000"]);
    let bytes = |c: &serde_json::Value| c["bytes"].as_f64().unwrap();
    let choices = fits["choices"].as_array().unwrap();
    assert!(!choices.is_empty() && choices.iter().all(|c| bytes(c) <= 24_000.0));
    let args = ["--max-memory", "12000", "--static"];
    let ran = room.run(BASE.iter().chain(&args)).exits(0);
    assert!(
        ran.stderr().contains("lowest rates that fit"),
        "{}",
        ran.stderr()
    );
}

#[test]
fn nothing_that_suits_is_exit_code_1_and_usage_2() {
    let room = Room::new();
    let all = ["--delete", "--count", "1000", "--merge", "--grow"];
    room.run(BASE.iter().chain(&all))
        .exits(1)
        .says(&["no kind"]);
    for bad in [
        &["advise"][..],
        &["advise", "--keys", "many"],
        &["advise", "--keys", "9", "--fpr", "0"],
        &["advise", "--keys", "9", "--hit-rate", "2"],
        &["advise", "--keys", "9", "--miss-cost", "0"],
        &["advise", "--keys", "9", "--static", "--grow"],
        &["advise", "--keys", "9", "--max-memory", "small"],
    ] {
        room.run(bad).exits(2);
    }
    let said = room
        .run(["advise", "--keys", "9", "--prefer", "sped"])
        .exits(2);
    assert!(said.stderr().contains("speed"));
    let said = room.run(["advise", "--keys", "9", "--delte"]).exits(2);
    assert!(said.stderr().contains("--delete"));
}

#[test]
fn the_first_that_is_advised_is_what_build_makes() {
    let room = Room::new();
    room.put("keys", crate::common::numbers(0..9000));
    for fpr in ["10%", "1%", "1/256", "0.001", "1e-4"] {
        for (needs, room_for_more) in [(&["--static"][..], &[][..]), (&[], &["--capacity", "9001"])]
        {
            let advise = ["advise", "--keys", "9000", "--json", "--fpr", fpr];
            let advice = room.run(advise.iter().chain(needs)).exits(0).json();
            let build = [
                "build", "keys", "-o", "f", "--force", "--json", "--fpr", fpr,
            ];
            let built = room.run(build.iter().chain(room_for_more)).exits(0).json();
            assert_eq!(
                advice["choices"][0]["kind"], built["kind"],
                "{fpr} {needs:?}"
            );
        }
    }
}

#[test]
fn units_stand_in_the_heading_and_the_best_five_below() {
    let room = Room::new();
    let text = room.run(BASE).stdout();
    let heading = text.lines().next().unwrap();
    for unit in ["bits/key", "size", "rate", "instr/lookup", "instr/insert"] {
        assert!(heading.contains(unit), "{heading}");
    }
    let rates = text.lines().skip(1).take(5).map(|row| {
        let percent = row.split(" %").next().unwrap().rsplit(' ').next();
        percent.unwrap().parse::<f64>().unwrap()
    });
    assert!(rates.clone().all(|rate| rate <= 1.0), "{text}");
    assert_eq!(rates.count(), 5);
}

#[test]
fn rates_have_three_digits_and_names_of_refused_kinds_stand_in_their_column() {
    let room = Room::new();
    let advise = [
        "advise", "--keys", "20k", "--fpr", "2^-16", "--static", "--all",
    ];
    let text = room.run(advise).exits(0).stdout();
    let fuse = text.lines().find(|row| row.contains(" binary_fuse16 "));
    assert!(
        fuse.is_some_and(|row| row.contains(" 0.00153 % ")),
        "{text}"
    );
    let advise = ["advise", "--keys", "20k", "--window", "--all"];
    let text = room.run(advise).exits(0).stdout();
    let longest = KINDS.iter().map(|kind| kind.name.len()).max().unwrap();
    for row in text.lines().filter(|row| row.starts_with("   - ")) {
        assert_eq!(row.as_bytes()[5 + longest], b' ', "{text}");
        assert_ne!(row.as_bytes()[6 + longest], b' ', "{text}");
    }
}

#[test]
fn copies_are_asked_with_and_without_a_sign_between() {
    for count in [&["--count", "1000"][..], &["--count=1k"]] {
        let advice = advise(&[&["--delete"], count].concat());
        assert_eq!(kinds(&advice), ["quotient_counting"], "{count:?}");
    }
}

#[test]
fn of_few_keys_the_list_comes_first_and_no_figure_is_beyond_sense() {
    let room = Room::new();
    for keys in ["1", "10", "100"] {
        for needs in [&[][..], &["--static"]] {
            let advise = ["advise", "--keys", keys];
            let ran = room.run(advise.iter().chain(needs)).exits(0);
            let text = ran.stdout();
            ran.says(&["warning: ", "an exact set"]);
            for word in text.split_whitespace() {
                let digits = word.trim_end_matches(".0").len();
                assert!(
                    word.parse::<f64>().is_err() || digits <= 8,
                    "{word}: {text}"
                );
            }
            assert!(!text.contains(" 0.00 times"), "{text}");
        }
    }
    let text = room.run(["advise", "--keys", "1", "--static"]).stdout();
    assert!(text.contains("as the keys are so few"), "{text}");
    assert!(!room.run(BASE).stdout().contains("so few"));
}
