use tamis::KINDS;

use crate::common::{Ran, Room};

/// Every element that is opened is closed, in order; what is in between counts for nothing.
fn is_well_formed(page: &str) {
    let body = page.split_once("</style>").unwrap().1;
    let mut open = Vec::new();
    for tag in body.split('<').skip(1) {
        let tag = tag.split('>').next().unwrap();
        let name = tag.split_whitespace().next().unwrap().trim_end_matches('/');
        if let Some(name) = name.strip_prefix('/') {
            // The head was opened before.
            if name != "head" && name != "html" {
                assert_eq!(open.pop(), Some(name), "</{name}>");
            }
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn the_page_has_every_kind_and_needs_nothing_else() {
    let room = Room::new();
    room.filter("<f>", 0..500, &["--kind", "bloom", "--capacity", "100"]);
    let args = [
        "report",
        "<f>",
        "-o",
        "page.html",
        "--keys",
        "2000",
        "--json",
    ];
    let json = room.run(args).exits(0).json();
    let page = String::from_utf8(room.get("page.html")).unwrap();
    is_well_formed(&page);
    for kind in KINDS {
        let found = page.matches(&format!(">{}</text>", kind.name)).count();
        assert!(found >= 1, "{}", kind.name);
        assert!(page.contains(&format!("<th>{}</th>", kind.name)));
    }
    for part in [
        "width=device-width",
        "prefers-color-scheme: dark",
        "&lt;f&gt;",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for part in ["<script", "http", "src=", "url(", "NaN", "inf\"", "<f>"] {
        assert!(!page.contains(part), "{part}");
    }
    let kinds = json["kinds"].as_array().unwrap();
    assert_eq!(kinds.len(), KINDS.len());
    assert!(
        kinds
            .iter()
            .all(|kind| kind["batch_ns"].as_f64().unwrap() > 0.0)
    );
    assert_eq!(json["filter"]["kind"], "bloom");
}

#[test]
fn an_overfull_filter_is_called_so_and_a_page_goes_to_standard_output() {
    let room = Room::new();
    room.filter("a", 0..1000, &["--kind", "bloom"]);
    room.filter("b", 1000..2000, &["--kind", "bloom"]);
    room.run(["merge", "a", "b", "-o", "f"]).exits(0);
    let page = room.run(["report", "f", "--keys", "500"]).exits(0).stdout();
    assert!(page.contains("class=\"warn\">over capacity"), "{page}");
    assert!(page.ends_with("</html>\n"));
}

#[cfg(unix)]
#[test]
fn a_page_that_cannot_be_written_whole_leaves_the_old_one() {
    let room = Room::new();
    room.put("page.html", "old");
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" report --keys 100 -o page.html --force";
    let tamis = assert_cmd::cargo_bin!("tamis");
    let ran = std::process::Command::new("sh")
        .args(["-c".as_ref(), script.as_ref(), tamis.as_os_str()])
        .current_dir(room.path(""))
        .output();
    Ran(ran.unwrap()).exits(4).says(&["page.html: "]);
    assert_eq!(room.get("page.html"), b"old");
    assert_eq!(room.names(), ["page.html"]);
    std::fs::create_dir(room.path("dir")).unwrap();
    room.run(["report", "--keys", "100", "-o", "dir", "--force"])
        .exits(4)
        .says(&["dir: not a regular file"]);
}

#[test]
fn exit_codes() {
    let room = Room::new();
    room.put("page.html", "old");
    room.run(["report", "-o", "page.html"])
        .exits(2)
        .says(&["--force"]);
    room.run(["report", "--fpr", "0"])
        .exits(2)
        .says(&["report: "]);
    room.run(["report", "--keys", "none"]).exits(2);
    room.run(["report", room.damaged()])
        .exits(3)
        .says(&["damaged: "]);
    room.run(["report", "absent"]).exits(4).says(&["absent: "]);
    let args = ["report", "--keys", "100", "-o", "absent/page.html"];
    room.run(args).exits(4).says(&["absent/page.html: "]);
    assert_eq!(room.get("page.html"), b"old");
}
