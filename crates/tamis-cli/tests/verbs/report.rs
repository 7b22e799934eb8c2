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
        "default-src 'none'",
        "&lt;f&gt;",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let drawn = page.split_once("<script>").unwrap().0;
    assert!(!drawn.contains("NaN") && !drawn.contains("inf\""));
    for part in ["http:", "https:", "//", "src=", "url(", "@import", "<f>"] {
        let script = page.replace("// ", "");
        assert!(!script.contains(part), "{part}");
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

/// The text between two marks.
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let rest = text
        .split_once(start)
        .unwrap_or_else(|| panic!("no {start}"))
        .1;
    rest.split_once(end).unwrap_or_else(|| panic!("no {end}")).0
}

#[test]
fn the_scatter_comes_first_and_marks_the_readers_own_filter() {
    let room = Room::new();
    room.filter("f", 0..3000, &["--kind", "cuckoo", "--fpr", "0.002"]);
    let page = room.run(["report", "f"]).exits(0).stdout();
    let first = page.find("<svg").unwrap();
    assert!(first < page.find("id=\"health\"").unwrap());
    let scatter = between(&page, "id=\"place\"", "<h2");
    for kind in KINDS {
        // Every kind can be pointed at; those to choose today have their names, on both screens.
        let titles = scatter.matches(&format!("<title>{}: ", kind.name)).count();
        assert!(titles == 0 || titles == 2, "{}", kind.name);
        let named = scatter.matches(&format!(">{}</text>", kind.name)).count();
        let core = kind.tier == tamis::Tier::Core;
        assert_eq!(named, if core { titles } else { 0 }, "{}", kind.name);
    }
    assert_eq!(scatter.matches(">you are here</text>").count(), 2);
    assert_eq!(scatter.matches("<circle class=\"ring\"").count(), 2);
    // The charts are at the filter's own number of keys and rate.
    assert!(page.contains("For 3\u{202f}000 keys at 0.2 %"), "{page}");
    let json = room.run(["report", "f", "--json"]).exits(0).json();
    assert_eq!((&json["keys"], &json["fpr"]), (&3000.into(), &0.002.into()));
    assert!(json["filter"]["overhead_bits"].as_f64().unwrap() > 0.0);
    let page = room.run(["report", "--keys", "500"]).exits(0).stdout();
    assert!(!page.contains(">you are here</text>"));
    assert!(page.contains("For 500 keys at 1 %"));
}

#[test]
fn without_scripts_the_calculator_is_a_table_of_every_kind() {
    let room = Room::new();
    let args = ["report", "--keys", "5000", "--fpr", "0.003"];
    let page = room.run(args).exits(0).stdout();
    let json = room.run(args.iter().chain(&["--json"])).exits(0).json();
    let form = between(&page, "<form ", "</form>");
    assert!(form.starts_with("id=\"ask\" hidden=\"\""), "{form}");
    assert!(form.contains("selected=\"\">0.3 %</option>"), "{form}");
    let table = between(&page, "<table id=\"answer\">", "</table>");
    assert_eq!(table.matches("<tr class=").count(), KINDS.len());
    for kind in json["kinds"].as_array().unwrap() {
        let name = kind["kind"].as_str().unwrap();
        let row = between(table, &format!(">{name}</th>"), "</tr>");
        let at = |space: &&serde_json::Value| space["fpr"] == 0.003;
        let space = kind["space"].as_array().unwrap().iter().find(at);
        let shown = space.map_or("<td>–</td>".to_string(), |space| {
            format!("<td>{:.2}</td>", space["bits_per_key"].as_f64().unwrap())
        });
        assert!(row.contains(&shown), "{name}: no {shown} in {row}");
    }
    // The smallest stands first.
    let sizes = |row: &str| -> Option<f64> {
        let cell = row.split("<td>").nth(2)?;
        cell.split('<').next()?.parse().ok()
    };
    let sizes: Vec<f64> = table.split("<tr class=").filter_map(sizes).collect();
    assert!(sizes.len() > 10 && sizes.is_sorted(), "{sizes:?}");
}

#[test]
fn lines_that_lie_close_differ_in_colour_and_pattern() {
    let room = Room::new();
    let page = room.run(["report", "--keys", "500"]).exits(0).stdout();
    let space = between(&page, "id=\"space\"", "</div>");
    let core = KINDS
        .iter()
        .filter(|kind| kind.tier == tamis::Tier::Core)
        .count();
    let chart = between(space, "<figcaption>to choose today", "</figure>");
    let looks: std::collections::HashSet<&str> = chart
        .split("<g class=\"")
        .skip(1)
        .map(|group| group.split('"').next().unwrap())
        .collect();
    assert_eq!(looks.len(), core, "{looks:?}");
    assert!(chart.contains("class=\"here\""));
    // All speeds are in one chart, on one scale.
    let speed = between(&page, "id=\"speed\"", "<details>");
    assert_eq!(speed.matches("<svg").count(), 2, "one for each screen");
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
    room.run(["report", "--fpr", "0"]).exits(2);
    room.run(["report", "--keys", "0"])
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
