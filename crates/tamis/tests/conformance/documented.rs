//! Law 14: the crate's page lists every kind, and the essay of a kind its parameters.

use std::path::{Path, PathBuf};

use tamis::{BuildErrorKind, KINDS, KindInfo, Tier};

use crate::support::{config, made};

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file)
}

fn source(file: &str) -> String {
    let path = path(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The rows of the table below a heading, without the table's own head.
fn rows<'a>(doc: impl IntoIterator<Item = &'a str>, heading: &str) -> Vec<&'a str> {
    let lines = doc.into_iter().skip_while(|line| *line != heading).skip(1);
    let section = lines.take_while(|line| !line.starts_with('#'));
    section
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .collect()
}

/// The index has a row for each kind, in the order of [`KINDS`], with a link to its type and to
/// its family, and nothing else. `TAMIS_BLESS=1` writes it.
pub(crate) fn index() {
    let mut page = source("lib.rs");
    for (tier, heading) in [(Tier::Core, "## Core"), (Tier::Study, "## Study")] {
        let expected: Vec<String> = KINDS
            .iter()
            .filter(|info| info.tier == tier)
            .map(|info| {
                let (name, family) = (info.name, info.family());
                format!(
                    "| [`{name}`]({}) | [{family}](families#{family}) | {} |",
                    info.type_name, info.about
                )
            })
            .collect();
        let doc = page.lines().filter_map(|line| line.strip_prefix("//!"));
        let found = rows(doc.map(str::trim_start), heading);
        let lines = |rows: Vec<&str>| rows.iter().map(|row| format!("//! {row}\n")).collect();
        let (found, expected): (String, String) = (
            lines(found),
            lines(expected.iter().map(String::as_str).collect()),
        );
        if std::env::var_os("TAMIS_BLESS").is_some() {
            page = page.replace(&found, &expected);
            std::fs::write(path("lib.rs"), &page).expect("lib.rs can be written");
            continue;
        }
        assert!(
            found == expected,
            "src/lib.rs: below `{heading}` there must be what TAMIS_BLESS=1 writes:\n{expected}"
        );
    }
    let families = source("families.rs");
    for info in KINDS {
        let heading = format!("//! # {}", info.family());
        let has = |line: &str| line.eq_ignore_ascii_case(&heading);
        assert!(
            families.lines().any(has),
            "families.rs has no `{heading}`, to which the index leads"
        );
    }
}

/// The documentation of a type in its file; an alias has that of the type it stands for, too.
fn essay<'a>(source: &'a str, type_name: &str) -> Vec<&'a str> {
    let lines: Vec<&str> = source.lines().collect();
    let named = |line: &&str| {
        let declared = line
            .strip_prefix("pub struct ")
            .or(line.strip_prefix("pub type "));
        declared.is_some_and(|rest| {
            let end = rest.find(|c: char| !c.is_alphanumeric());
            rest[..end.unwrap_or(rest.len())] == *type_name
        })
    };
    let Some(at) = lines.iter().position(named) else {
        panic!("{type_name} is not in its file");
    };
    let above = lines[..at].iter().rev();
    let mut doc: Vec<&str> = above
        .take_while(|line| line.starts_with("///") || line.starts_with("#["))
        .filter_map(|line| line.strip_prefix("///"))
        .map(str::trim_start)
        .collect();
    doc.reverse();
    if let Some((_, original)) = lines[at].split_once(" = ") {
        let end = original.find('<').unwrap_or(original.len());
        doc.extend(essay(source, &original[..end]));
    }
    doc
}

/// The essay has a row for each parameter, as the kind declares it, and nothing else.
pub(crate) fn parameters(info: &'static KindInfo) {
    let text = source(info.source);
    let found = rows(essay(&text, info.type_name), "# Parameters");
    let expected: Vec<String> = info
        .params
        .iter()
        .map(|param| {
            format!(
                "| `{}` | {} | {} | {} |",
                param.name, param.values, param.default, param.about
            )
        })
        .collect();
    assert!(
        found == expected,
        "src/{}: the essay of {} must have, below `# Parameters`,\n{}",
        info.source,
        info.type_name,
        expected.join("\n")
    );
}

/// Values that are documented as a range have its ends: beyond them a value is refused for
/// itself, and at them it is not.
pub(crate) fn values(info: &'static KindInfo) {
    for param in info.params {
        let Some((low, high)) = param.values.split_once(" to ") else {
            continue;
        };
        let high = high.split(',').next().unwrap_or(high);
        let (Ok(low), Ok(high)) = (low.parse::<u64>(), high.parse::<u64>()) else {
            continue;
        };
        // What is accepted, where the value is refused.
        let refusal = |value: String| {
            let config = config(info, 10).set(param.name, &value);
            match made(info, &config, &[]).map_err(|e| e.kind().clone()) {
                Err(BuildErrorKind::Parameter { name, expected, .. }) if name == param.name => {
                    Some(expected)
                }
                _ => None,
            }
        };
        let below = if low == 0 {
            "-1".to_string()
        } else {
            (low - 1).to_string()
        };
        for (inside, outside) in [(low, below), (high, (high + 1).to_string())] {
            let refused = refusal(outside.clone());
            assert!(refused.is_some(), "{}={outside} is not refused", param.name);
            assert_ne!(
                refusal(inside.to_string()),
                refused,
                "{}={inside} is refused",
                param.name
            );
        }
    }
}

/// Structures that the sources of this library describe.
const STRUCTURES: usize = 43;

/// docs/SOURCES.md has a row for each structure of the sources, in order, which says what of the
/// claim holds, and leads to files that are there and speak of it.
pub(crate) fn sources() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let page = std::fs::read_to_string(docs.join("SOURCES.md")).unwrap();
    let rows: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .collect();
    assert_eq!(rows.len(), STRUCTURES);
    for (i, row) in rows.iter().enumerate() {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [number, structure, text, here, holds] = cells[..] else {
            panic!("five cells: {row}");
        };
        assert_eq!(number, (i + 1).to_string(), "{row}");
        assert!(![structure, text, here, holds].contains(&""), "{row}");
        let mut links = here.split('[').skip(1).peekable();
        assert!(links.peek().is_some(), "no file: {row}");
        for link in links {
            let (name, rest) = link
                .split_once("](")
                .unwrap_or_else(|| panic!("a link: {row}"));
            let file = docs.join(rest.split(')').next().unwrap_or(rest));
            let found = std::fs::read_to_string(&file);
            let found = found.unwrap_or_else(|e| panic!("{}: {e}", file.display()));
            let name = name.trim_matches('`');
            assert!(
                found.contains(name),
                "{} does not speak of {name}",
                file.display()
            );
        }
    }
}
