//! What `--json` prints, against what `docs/JSON.md` says.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::{Room, numbers, sample};

/// The fields of a document, those of its parts too; but not of objects whose fields are data.
fn fields(json: &Value, found: &mut BTreeSet<String>) {
    match json {
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        Value::Object(map) => {
            for (name, value) in map {
                found.insert(name.clone());
                if name != "shape" {
                    fields(value, found);
                }
            }
        }
        _ => {}
    }
}

/// The words in code type of a verb's section, its heading left out.
fn documented(docs: &str, verb: &str) -> BTreeSet<String> {
    let section = docs
        .split("\n## ")
        .find(|s| s.starts_with(&format!("`{verb}`")));
    let section = section.unwrap_or_else(|| panic!("no section on {verb}"));
    let words = section.split('`').skip(3).step_by(2);
    let verbs = ["build", "check", "info"];
    let words = words.filter(|word| !word.starts_with("--") && !verbs.contains(word));
    words.map(str::to_string).collect()
}

#[test]
fn the_documentation_has_every_field_and_no_other() {
    let room = Room::new();
    room.put("keys.txt", numbers(0..500));
    room.put("more.txt", numbers(500..600));
    let bloom = ["--kind", "bloom", "--capacity", "65536"];
    room.filter("a", 0..500, &bloom);
    room.filter("b", 0..500, &["--kind", "cuckoo"]);
    room.filter("map", 0..500, &["-f", "1", "--value-field", "1"]);
    room.damaged();
    let docs = std::fs::read_to_string(sample("../../docs/JSON.md")).unwrap();
    let large = "bloom:capacity=18446744073709551615";
    for args in [
        &["build", "keys.txt", "-o", "f"][..],
        &["check", "a", "keys.txt", "--exact", "keys.txt"],
        &["compare", "keys.txt", "more.txt"],
        &["add", "a", "more.txt"],
        &["remove", "b", "keys.txt"],
        &["count", "b", "keys.txt"],
        &["get", "map", "keys.txt"],
        &["verify", "a", "damaged", "--keys", "keys.txt"],
        &["merge", "a", "a", "-o", "f", "--force"],
        &["halve", "a", "-o", "f", "--force"],
        &["info", "a"],
        &["diff", "a", "a"],
        &["dedup", "keys.txt"],
        &["kinds"],
        &["kinds", "bloom"],
        &["advise", "--keys", "1000"],
        &["bench", "keys.txt", "--kind", "bloom", "--kind", large],
        &["report", "a", "--keys", "100"],
        &["completions", "bash"],
        &["man", "--dir", "."],
    ] {
        let json = room.run(args.iter().chain(&["--json"])).json();
        let mut found = BTreeSet::new();
        fields(&json, &mut found);
        let section = match args {
            ["kinds", _] => "kinds NAME",
            _ => args[0],
        };
        let mut said = documented(&docs, section);
        // The verb's own name may be a field too.
        said.extend(found.iter().filter(|name| *name == args[0]).cloned());
        assert_eq!(found, said, "{}", args[0]);
    }
}
