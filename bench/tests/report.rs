//! The page that is made of a run: whole, by itself, and complete. How it looks is checked by eye
//! (`bench/tests/screenshots.sh`), since a browser is not everywhere.

mod markup;

use std::process::Command;

fn bench(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tamis-bench"))
        .args(args)
        .output();
    let output = output.expect("the program starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_report_is_whole_by_itself_and_has_every_subject_and_size() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
    let (json, html, again) = (path("run.json"), path("run.html"), path("again.html"));
    bench(&[
        "run",
        "--quick",
        "--n",
        "1000,2000",
        "--fpr",
        "0.03125,0.00390625",
        "--keys",
        "u64,strings",
        "--threads",
        "2",
        "--rounds",
        "1",
        "--json",
        &json,
        "--html",
        &html,
    ]);
    let page = std::fs::read_to_string(&html).unwrap();
    markup::assert_well_formed(&page);

    // Nothing is loaded from elsewhere, and nothing runs.
    for foreign in [
        "http:", "https:", "//", "url(", "@import", "<script", "<link", "<img", "<iframe", " src=",
    ] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("width=device-width"));

    for name in bench(&["list"]).lines() {
        // In charts, as a name and as what a pointer is told; in tables.
        for markup in [format!("<title>{name}: "), format!("</span>{name}")] {
            assert!(page.contains(&markup), "{name}: no {markup}");
        }
    }
    for part in [
        "n = 1000, ε = 3 %",
        "n = 2000, ε = 0.39 %",
        "n = 1000, ε = 0.39 %, strings",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for section in ["space", "builds", "growth", "threads", "notes"] {
        assert!(
            page.contains(&format!("id=\"{section}\""))
                && page.contains(&format!("href=\"#{section}\""))
        );
    }
    assert!(!page.contains("id=\"ratios\""), "there is one run");
    let charts = page.matches("<svg viewBox").count();
    let tables = page.matches("<table>").count();
    assert!(
        charts > tables && tables >= 16,
        "{charts} charts, {tables} tables"
    );

    // The same page from the file, and the ratios of two runs.
    bench(&["report", &json, "--html", &again]);
    assert_eq!(std::fs::read_to_string(&again).unwrap(), page);
    bench(&["report", &json, &json, "--html", &again]);
    let two = std::fs::read_to_string(&again).unwrap();
    markup::assert_well_formed(&two);
    assert!(two.contains("id=\"ratios\"") && two.contains("<td>1.00</td>"));
}

#[test]
fn the_readme_chart_is_a_picture_with_every_kind() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
    let (json, html, svg) = (path("run.json"), path("run.html"), path("kinds.svg"));
    bench(&[
        "run",
        "--quick",
        "--n",
        "1000000",
        "--fpr",
        "0.01",
        "--no-rivals",
        "--rounds",
        "1",
        "--json",
        &json,
    ]);
    bench(&["report", &json, "--html", &html, "--svg", &svg]);
    let chart = std::fs::read_to_string(&svg).unwrap();
    markup::assert_well_formed(&chart);
    assert!(
        chart.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"")
            && chart.ends_with("</svg>\n")
    );
    assert_eq!(chart.matches("http").count(), 1, "the namespace alone");
    for kind in tamis::KINDS {
        assert!(
            chart.contains(&format!(">{}</text>", kind.name)),
            "{}",
            kind.name
        );
    }
}
