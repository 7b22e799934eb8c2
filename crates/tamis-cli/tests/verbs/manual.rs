//! `completions` and `man`.

use crate::common::{Ran, Room};

#[test]
fn every_shell_has_a_script_that_knows_every_verb() {
    let room = Room::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = room
            .run(["completions", shell])
            .exits(0)
            .says_nothing()
            .stdout();
        for verb in ["build", "dedup", "advise", "halve"] {
            assert!(script.contains(verb), "{shell}: {verb}");
        }
        let json = room.run(["completions", shell, "--json"]).exits(0).json();
        assert_eq!(
            (json["shell"].as_str(), json["script"].as_str()),
            (Some(shell), Some(&*script))
        );
    }
    let said = room.run(["completions", "bahs"]).exits(2).stderr();
    assert!(said.contains("bash"), "{said}");
    room.run(["completions"]).exits(2);
}

#[test]
fn bash_accepts_its_script() {
    let room = Room::new();
    let script = room.run(["completions", "bash"]).exits(0).stdout();
    room.put("script", script);
    let checked = std::process::Command::new("bash")
        .arg("-n")
        .arg(room.path("script"))
        .status();
    assert!(checked.unwrap().success());
}

#[test]
fn every_verb_has_a_page_with_its_examples() {
    let room = Room::new();
    let page = room.run(["man"]).exits(0).says_nothing().stdout();
    assert!(
        page.contains(".TH tamis") && page.contains("Exit codes"),
        "{page}"
    );
    let page = room.run(["man", "dedup"]).exits(0).stdout();
    assert!(
        page.contains(".TH tamis\\-dedup") || page.contains(".TH tamis-dedup"),
        "{page}"
    );
    assert!(page.contains("Examples"), "{page}");
    std::fs::create_dir(room.path("pages")).unwrap();
    room.run(["man", "--dir", "pages"]).exits(0).prints("");
    let pages = std::fs::read_dir(room.path("pages")).unwrap().count();
    let json = room.run(["man", "--json"]).exits(0).json();
    assert_eq!(json.as_object().unwrap().len(), pages);
    assert!(pages > 10 && json["tamis-merge"].as_str().unwrap().contains("merge"));
    assert_eq!(
        room.get("pages/tamis-merge.1"),
        json["tamis-merge"].as_str().unwrap().as_bytes()
    );
    let one = room.run(["man", "halve", "--json"]).exits(0).json();
    assert!(one["tamis-halve"].is_string());
    let files = room
        .run(["man", "--dir", "pages", "--json"])
        .exits(0)
        .json();
    assert_eq!(files["files"].as_array().unwrap().len(), pages);
}

#[cfg(unix)]
#[test]
fn a_page_that_cannot_be_written_whole_leaves_the_old_one() {
    let room = Room::new();
    room.put("tamis.1", "old");
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" man --dir .";
    let tamis = assert_cmd::cargo_bin!("tamis");
    let ran = std::process::Command::new("sh")
        .args(["-c".as_ref(), script.as_ref(), tamis.as_os_str()])
        .current_dir(room.path(""))
        .output();
    Ran(ran.unwrap()).exits(4).says(&["tamis.1: "]);
    assert_eq!(room.get("tamis.1"), b"old");
    assert_eq!(room.names(), ["tamis.1"]);
}

#[test]
fn exit_codes() {
    let room = Room::new();
    room.run(["man", "bild"]).exits(2).says(&["bild", "build"]);
    room.run(["man", "--dir", "absent"])
        .exits(4)
        .says(&["absent/tamis.1: "]);
}
