use tamis::{KINDS, Tier};

use crate::common::Room;

#[test]
fn the_table_says_what_the_library_says() {
    let room = Room::new();
    let json = room.run(["kinds", "--all", "--json"]).exits(0).json();
    let text = room.run(["kinds", "--all"]).exits(0).stdout();
    assert_eq!(json.as_array().unwrap().len(), KINDS.len());
    for (kind, listed) in KINDS.iter().zip(json.as_array().unwrap()) {
        assert_eq!(listed["kind"], kind.name);
        assert_eq!(listed["core"], kind.tier == Tier::Core);
        assert_eq!(listed["grow"], kind.can.grow);
        assert_eq!(listed["halve"], kind.can.halve);
        assert_eq!(listed["map"], kind.can.map);
        assert_eq!(listed["window"], kind.can.window);
        let counts_all = kind.copies == u64::MAX;
        assert_eq!(listed["copies"].is_null(), counts_all);
        assert!(counts_all || listed["copies"] == kind.copies);
        let params = listed["parameters"].as_array().unwrap();
        assert_eq!(params.len(), kind.params.len());
        for (param, listed) in kind.params.iter().zip(params) {
            assert_eq!(listed["name"], param.name);
            assert_eq!(listed["values"], param.values);
            assert_eq!(listed["default"], param.default);
            assert!(text.contains(&format!("{}=  {}", param.name, param.about)));
        }
        let row = text
            .lines()
            .find(|l| l.split_whitespace().next() == Some(kind.name));
        let cells: Vec<_> = row.unwrap().split_whitespace().skip(1).take(8).collect();
        assert_eq!(cells[2] == "all", counts_all, "{cells:?}");
        assert_eq!(cells[4] == "yes", kind.can.grow, "{cells:?}");
        assert_eq!(cells[7] == "yes", kind.can.window, "{cells:?}");
    }
}

#[test]
fn only_the_core_is_listed_unless_all_are_asked_for() {
    let room = Room::new();
    let json = room.run(["kinds", "--json"]).exits(0).json();
    let core = KINDS.iter().filter(|kind| kind.tier == Tier::Core);
    let listed = json.as_array().unwrap().iter();
    assert!(
        listed
            .map(|kind| kind["kind"].as_str().unwrap())
            .eq(core.map(|kind| kind.name))
    );
    let text = room.run(["kinds"]).exits(0).stdout();
    assert!(
        text.contains("split_block ") && !text.contains("spectral_recurring"),
        "{text}"
    );
}

#[test]
fn a_kind_is_told_of_by_its_name() {
    let room = Room::new();
    for kind in KINDS {
        let told = room.run(["kinds", kind.name]).exits(0).stdout();
        let type_name = kind.type_name;
        for called in [
            type_name,
            &type_name.to_uppercase(),
            &kind.name.replace('_', "-"),
        ] {
            assert_eq!(room.run(["kinds", called]).exits(0).stdout(), told);
        }
        assert!(told.starts_with(&format!("{}: {}", kind.name, kind.about)));
        for param in kind.params {
            let line = format!("{}=  {} ({}", param.name, param.about, param.values);
            assert!(told.contains(&line), "{told}");
        }
        // The drawing stands aside, and the essay is whole.
        assert!(
            told.contains("\n     ") && told.contains("\nWhen to choose it\n"),
            "{told}"
        );
    }
    let json = room.run(["kinds", "cuckoo", "--json"]).exits(0).json();
    assert_eq!(
        (&json["kind"], &json["remove"]),
        (&"cuckoo".into(), &true.into())
    );
    assert!(
        json["essay"]
            .as_str()
            .unwrap()
            .contains("# When to choose it")
    );
}

#[test]
fn a_name_that_is_none_has_the_nearest_beside_it() {
    let room = Room::new();
    let told = room.run(["kinds", "cukoo"]).exits(2).stderr();
    assert!(told.contains("`cuckoo`"), "{told}");
    // What is written into files has one name.
    let build = ["build", "-o", "f", "--kind", "SplitBlock512"];
    let told = room.feed("key\n", build).exits(2).stderr();
    assert!(told.contains("did you mean `split_block`?"), "{told}");
    room.run(["kinds", "cuckoo", "--all"]).exits(2);
    room.run(["kinds", "cuckoo", "bloom"]).exits(2);
}
