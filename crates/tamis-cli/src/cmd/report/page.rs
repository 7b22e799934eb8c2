//! The page: where the kinds are, the reader's filter, the calculator, space and speed.

use std::fmt::Write;

use tamis::KindInfo;
use tamis_charts::draw::{Mark, escape};
use tamis_charts::{COLOURS, DASHES, Form, Line, Lines, Point, Ranked, Ranking, STYLE, Scatter};

use super::{MOST_KEYS, Report, Row, Space, Yours};
use crate::{health, output, units};

/// Nothing is loaded, and nothing that is not in the page runs.
const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
    script-src 'unsafe-inline'\">\n<title>tamis report</title>\n<style>\n";
/// The least overhead that is told apart from none.
const LEAST_OVERHEAD: f64 = 0.05;

pub(super) fn page(report: &Report) -> String {
    let mut out = format!("{HEAD}{STYLE}");
    // Writing to memory does not fail; here and below.
    for colour in 0..COLOURS {
        let _ = writeln!(out, ".c{colour} {{ --c: var(--c{colour}); }}");
    }
    out += include_str!("style.css");
    out += "</style>\n</head>\n<body>\n<h1>Which filter?</h1>\n";
    let _ = writeln!(
        out,
        "<p class=\"about\">For {} at {}, made by tamis {}; speed measured with {} on this machine.</p>",
        keys(report.keys),
        rate(report.fpr),
        env!("CARGO_PKG_VERSION"),
        keys(report.keys.min(MOST_KEYS))
    );
    out += "<nav><a href=\"#place\">Space against time</a> ";
    if report.filter.is_some() {
        out += "<a href=\"#health\">Your filter</a> ";
    }
    out += "<a href=\"#calculator\">Calculator</a> <a href=\"#space\">Space against rate</a> <a href=\"#speed\">Speed</a></nav>\n";
    out += &place(report);
    if let Some(yours) = &report.filter {
        out += &health_of(yours);
    }
    out += &calculator(report);
    out += &space(report);
    out += &speed(report);
    let _ = writeln!(out, "<script>\n{}</script>", include_str!("calculator.js"));
    out + "</body>\n</html>\n"
}

/// The families in the order of the kinds: the directories of their sources.
fn families(rows: &[Row]) -> Vec<(&'static str, Vec<&Row>)> {
    let mut families: Vec<(&str, Vec<&Row>)> = Vec::new();
    for row in rows {
        let family = family(row.kind);
        match families.iter_mut().find(|(name, _)| *name == family) {
            Some((_, rows)) => rows.push(row),
            None => families.push((family, vec![row])),
        }
    }
    families
}

fn family(kind: &KindInfo) -> &'static str {
    kind.source.split('/').next().unwrap_or_default()
}

/// The colour of a kind's family, and whether it is one to choose today.
fn class(row: &Row, rows: &[Row]) -> String {
    let family = family(row.kind);
    let number = families(rows).iter().position(|(name, _)| *name == family);
    let tier = if row.is_core() { "core" } else { "study" };
    format!("c{} {tier}", number.unwrap_or(0) % COLOURS)
}

/// A drawing for each screen.
fn both_forms(draw: impl Fn(Form) -> String) -> String {
    let figure = |form: Form| {
        format!(
            "<figure class=\"{}\">{}</figure>\n",
            form.class(),
            draw(form)
        )
    };
    figure(Form::Wide) + &figure(Form::Narrow)
}

/// Where each kind is, by space and time.
fn place(report: &Report) -> String {
    let rows = &report.rows;
    let mut points = Vec::new();
    for row in rows {
        let (Some(space), Some(ns)) = (report.space(row), row.lookup()) else {
            continue;
        };
        let (name, bits) = (row.kind.name, space.overhead());
        points.push(Point {
            x: bits.max(LEAST_OVERHEAD),
            y: ns,
            label: if row.is_core() {
                name.to_string()
            } else {
                String::new()
            },
            title: format!("{name}: {bits:.2} bits per key above the bound, {ns:.1} ns"),
            class: class(row, rows),
            mark: Mark::Dot,
        });
    }
    let mut out = String::from(
        "<h2 id=\"place\">Space against time</h2>\n<p>How many bits per key a filter takes above log₂(1/ε), the least for its \
         rate ε, and how long a lookup takes, alone or in a batch, whichever is faster. Down and left is better; nothing is \
         better in both than those on the broad line. Kinds to choose today have their names; point at a pale one for the \
         others.",
    );
    let yours = report.filter.as_ref();
    let here = yours.and_then(|yours| {
        let kind = yours.filter.kind().name;
        let row = rows.iter().find(|row| row.kind.name == kind)?;
        Some((yours, row, yours.space()?, row.lookup()?))
    });
    if let Some((yours, row, space, ns)) = here {
        let bits = space.overhead();
        let _ = write!(
            out,
            " <strong>You are here</strong> is <code>{}</code>, as full as it is, with the time of a <code>{}</code> measured now.",
            escape(&yours.name),
            row.kind.name
        );
        points.push(Point {
            x: bits.max(LEAST_OVERHEAD),
            y: ns,
            label: "you are here".to_string(),
            title: format!(
                "{}: {bits:.2} bits per key above the bound, {ns:.1} ns",
                yours.name
            ),
            class: "you".to_string(),
            mark: Mark::Ring,
        });
    }
    out += "</p>\n";
    let chart = |form| {
        let across = match form {
            Form::Wide => "bits per key above the lower bound log₂(1/ε)",
            Form::Narrow => "bits/key above the lower bound",
        };
        let scatter = Scatter {
            title: "Bits per key above the lower bound against nanoseconds per lookup",
            form,
            x: (across, LEAST_OVERHEAD),
            y: ("ns per lookup", 0.01),
            floor: None,
        };
        scatter.draw(&points)
    };
    out + &both_forms(chart)
}

fn health_of(yours: &Yours) -> String {
    let filter = &yours.filter;
    let warnings = health::warnings(filter);
    let mut out = format!(
        "<h2 id=\"health\">Your filter</h2>\n<p>{}</p>\n",
        escape(&yours.name)
    );
    if warnings.is_empty() {
        out += "<p class=\"good\">In good health.</p>\n";
    }
    for warning in &warnings {
        let _ = writeln!(out, "<p class=\"warn\">{}</p>", escape(warning));
    }
    if let Some(fill) = filter.fill() {
        out += &meter("Keys, of the capacity", fill);
    }
    let share = filter.fpr() / filter.requested_fpr();
    out += &meter("False positives expected now, of those asked for", share);
    let bits = output::bits_per_key(filter.file_len(), filter.len());
    out += "<div class=\"scroll\"><table class=\"facts\"><tbody>\n";
    for (name, value) in [
        ("kind", filter.kind().name.to_string()),
        ("keys", thousands(filter.len())),
        ("capacity", thousands(filter.capacity())),
        ("expected rate", output::rate(filter.fpr())),
        ("requested rate", output::rate(filter.requested_fpr())),
        ("file", units::show_bytes(filter.file_len() as f64)),
        (
            "bits per key",
            bits.map_or("–".to_string(), |bits| bits.to_string()),
        ),
        ("hash", filter.hashing().function().to_string()),
    ] {
        let _ = writeln!(out, "<tr><th>{name}</th><td>{}</td></tr>", escape(&value));
    }
    out + "</tbody></table></div>\n"
}

/// A share as a bar; what is above 1 is cut off.
fn meter(title: &str, share: f64) -> String {
    let width = 240.0 * share.clamp(0.0, 1.0);
    let class = if share > 1.0 { "bar over" } else { "bar" };
    let title = escape(title);
    format!(
        "<figure class=\"meter\"><figcaption>{title}</figcaption>\n<svg viewBox=\"0 0 320 20\" role=\"img\" aria-label=\"{title}\">\
         <rect class=\"room\" x=\"0\" y=\"2\" width=\"240\" height=\"12\"/>\
         <rect class=\"{class}\" x=\"0\" y=\"2\" width=\"{width:.1}\" height=\"12\"/>\
         <text x=\"250\" y=\"13\">{:.1} %</text></svg></figure>\n",
        100.0 * share
    )
}

/// What a filter may be needed for: what its kind must be able to do, how `tamis advise` is told
/// so, and the same in words.
const NEEDS: [(&str, &str, &str); 7] = [
    ("remove", "--delete", "keys leave again"),
    ("count", "--count", "copies are counted"),
    ("grow", "--grow", "nobody knows how many come"),
    ("merge", "--merge", "filters are merged"),
    ("halve", "--halve", "filters are halved"),
    ("map", "--map", "each key has a value"),
    ("window", "--window", "only the last keys matter"),
];

/// A table of all kinds for this number of keys and this rate, which a script makes one for any
/// number, rate and need.
fn calculator(report: &Report) -> String {
    let mut out = String::from(
        "<h2 id=\"calculator\">Calculator</h2>\n<form id=\"ask\" hidden=\"\" autocomplete=\"off\">\n<div class=\"row\">",
    );
    let _ = write!(
        out,
        "<label>keys <input id=\"keys\" inputmode=\"text\" size=\"12\" value=\"{}\" data-page=\"{}\"/></label>\
         <label>false positives <select id=\"rate\">",
        report.keys, report.keys
    );
    for (at, &option) in report.rates.iter().enumerate() {
        let chosen = if option == report.fpr {
            " selected=\"\""
        } else {
            ""
        };
        let _ = write!(
            out,
            "<option value=\"{at}\" data-fpr=\"{option}\"{chosen}>{}</option>",
            rate(option)
        );
    }
    out += "</select></label><label>first <select id=\"order\"><option value=\"size\">the smallest</option>\
            <option value=\"time\">the fastest</option></select></label></div>\n\
            <fieldset><legend>Needs</legend><div>\
            <label><input type=\"checkbox\" id=\"fixed\" data-flag=\"--static\"/> all keys are there from the start</label>";
    for (need, flag, words) in NEEDS {
        let _ = write!(
            out,
            "<label><input type=\"checkbox\" class=\"need\" value=\"{need}\" data-flag=\"{flag}\"/> {words}</label>"
        );
    }
    out += "<label><input type=\"checkbox\" id=\"all\" data-flag=\"--all\"/> also kinds of the literature</label>\
            </div></fieldset>\n<p id=\"told\" aria-live=\"polite\"></p>\n</form>\n";
    let _ = writeln!(
        out,
        "<noscript><p>Each kind for {} at {}. With scripts, for any number of keys, rate and need.</p></noscript>",
        keys(report.keys),
        rate(report.fpr)
    );
    out += "<div class=\"scroll tall\"><table id=\"answer\"><thead><tr><th>kind</th><th>size</th><th>bits/key</th>\
            <th>false positives</th><th>ns/lookup</th><th class=\"words\">can</th></tr></thead><tbody>\n";
    let mut rows: Vec<(&Row, Option<Space>)> = report
        .rows
        .iter()
        .map(|row| (row, report.space(row)))
        .collect();
    let bits = |space: &Option<Space>| space.map_or(f64::INFINITY, |space| space.bits_per_key);
    rows.sort_by(|a, b| bits(&a.1).total_cmp(&bits(&b.1)));
    for (row, space) in rows {
        let list = |figure: fn(Space) -> f64| {
            let figures = row.space.iter();
            let figures = figures.map(|space| space.map_or(String::new(), |s| number(figure(s))));
            figures.collect::<Vec<_>>().join(",")
        };
        let named = row.kind.can.named().into_iter();
        let can: Vec<&str> = named
            .filter(|(_, can)| *can)
            .map(|(name, _)| name)
            .collect();
        let ns = row.lookup();
        let dash = || "–".to_string();
        let _ = writeln!(
            out,
            "<tr class=\"{}\" data-can=\"{}\" data-bits=\"{}\" data-fpr=\"{}\" data-ns=\"{}\"><th title=\"{}\">{}</th>\
             <td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"words\">{}</td></tr>",
            if row.is_core() { "core" } else { "study" },
            can.join(" "),
            list(|space| space.bits_per_key),
            list(|space| space.fpr),
            ns.map_or(String::new(), number),
            escape(row.kind.about),
            row.kind.name,
            space.map_or_else(dash, |s| units::show_bytes(
                s.bits_per_key * report.keys as f64 / 8.0
            )),
            space.map_or_else(dash, |s| format!("{:.2}", s.bits_per_key)),
            space.map_or_else(dash, |s| rate(s.fpr)),
            ns.map_or_else(dash, |ns| format!("{ns:.1}")),
            if can.is_empty() {
                "build once".to_string()
            } else {
                can.join(", ")
            },
        );
    }
    out + "</tbody></table></div>\n<p class=\"about\">Sizes for another number of keys are multiplied: right to a few percent where \
           that and the page's own are above some ten thousand. <code>tamis advise</code> asks every kind itself.</p>\n"
}

/// A line of a chart: a colour and a pattern by its number, so that neighbours differ in both.
fn line(report: &Report, row: &Row, number: usize) -> Line {
    let points = report
        .rates
        .iter()
        .zip(&row.space)
        .filter_map(|(&rate, space)| {
            let least = tamis::math::lower_bound_bits_per_key(rate);
            let over = (*space)?.bits_per_key - least;
            Some((1.0 / rate, over.max(LEAST_OVERHEAD)))
        });
    let name = row.kind.name;
    Line {
        name: name.to_string(),
        title: name.to_string(),
        class: format!(
            "c{} d{}",
            number % COLOURS,
            (number + number / COLOURS) % DASHES
        ),
        mark: None,
        points: points.collect(),
    }
}

fn space(report: &Report) -> String {
    let mut out = format!(
        "<h2 id=\"space\">Space against rate</h2>\n<p>What a filter of {} takes above log₂(1/ε) bits per key, for each rate ε \
         that it is asked for. A line that ends has no lower rate; one that falls has a rate that is lower than asked for \
         anyway.</p>\n<div class=\"grid-of-charts\">\n",
        keys(report.keys)
    );
    let ticks: Vec<(f64, String)> = [0.1, 0.01, 0.001, 1e-4, 1e-5, 1e-6]
        .map(|tick| (1.0 / tick, rate(tick)))
        .to_vec();
    let core = report.rows.iter().filter(|row| row.is_core()).collect();
    let charts = std::iter::once(("to choose today", core)).chain(families(&report.rows));
    for (title, rows) in charts {
        let lines = rows.iter().enumerate();
        let lines: Vec<Line> = lines.map(|(i, row)| line(report, row, i)).collect();
        let chart = Lines {
            title: &format!("Bits per key above the lower bound, by rate: {title}"),
            unit: "bits/key above the bound",
            ticks: &ticks,
            least: LEAST_OVERHEAD,
            here: Some((1.0 / report.fpr, "yours")),
        };
        let _ = writeln!(
            out,
            "<figure><figcaption>{}</figcaption>\n{}</figure>",
            escape(title),
            chart.draw(&lines)
        );
    }
    out += "</div>\n<details><summary>Bits per key in numbers</summary><div class=\"scroll\"><table><thead><tr><th>kind</th>";
    for &option in &report.rates {
        let _ = write!(out, "<th>{}</th>", rate(option));
    }
    out += "</tr></thead><tbody>\n";
    for row in &report.rows {
        let _ = write!(out, "<tr><th>{}</th>", row.kind.name);
        for space in &row.space {
            let cell = space.map_or("–".to_string(), |space| {
                format!("{:.2}", space.bits_per_key)
            });
            let _ = write!(out, "<td>{cell}</td>");
        }
        out += "</tr>\n";
    }
    out + "</tbody></table></div></details>\n"
}

fn speed(report: &Report) -> String {
    let yours = report.filter.as_ref().map(|yours| yours.filter.kind().name);
    let ranked = report.rows.iter().filter_map(|row| {
        let (name, speed) = (row.kind.name, row.speed.as_ref()?);
        let whose = if yours == Some(name) { " you" } else { "" };
        Some(Ranked {
            name: name.to_string(),
            title: format!(
                "{name}: {:.1} ns in a batch, {:.1} ns alone",
                speed.batch, speed.single
            ),
            class: format!("{}{whose}", class(row, &report.rows)),
            mark: Mark::Dot,
            value: speed.batch,
            second: Some(speed.single),
            range: None,
        })
    });
    let ranked: Vec<Ranked> = ranked.collect();
    let mut out = format!(
        "<h2 id=\"speed\">Speed</h2>\n<p>Nanoseconds a lookup, half of them of members, of {} at {}: in a batch and one by one, \
         measured twice on this machine and the better taken. Other programs that ran meanwhile are in the figures. Names in bold \
         are those of kinds to choose today.</p>\n",
        keys(report.keys.min(MOST_KEYS)),
        rate(report.fpr)
    );
    out += &both_forms(|form| {
        let ranking = Ranking {
            title: "Nanoseconds per lookup",
            form,
            legend: "ns per lookup: ● in a batch, ○ one by one",
            marks: ["in a batch", "one by one"],
        };
        ranking.draw(&ranked)
    });
    out += "<details><summary>The same in numbers</summary><div class=\"scroll\"><table><thead><tr><th>kind</th>\
            <th>bits/key</th><th>expected</th><th>measured</th><th>build</th><th>lookup</th><th>batch</th></tr></thead><tbody>\n";
    for row in &report.rows {
        let Some(m) = &row.speed else { continue };
        let _ = writeln!(
            out,
            "<tr><th>{}</th><td>{:.2}</td><td>{}</td><td>{}</td><td>{:.1} ns</td><td>{:.1} ns</td><td>{:.1} ns</td></tr>",
            row.kind.name,
            m.bits_per_key,
            rate(m.expected),
            m.found().map_or("–".to_string(), rate),
            m.build,
            m.single,
            m.batch
        );
    }
    out + "</tbody></table></div></details>\n"
}

/// A rate in few characters.
fn rate(rate: f64) -> String {
    let percent = 100.0 * rate;
    match percent {
        0.0 => "0".to_string(),
        9.5.. => format!("{percent:.0} %"),
        0.000_95.. => {
            let decimals = (1.0 - percent.log10().floor()).clamp(1.0, 5.0) as usize;
            let shown = format!("{percent:.decimals$}");
            let shown = shown.trim_end_matches('0').trim_end_matches('.');
            format!("{shown} %")
        }
        _ => format!("{rate:.0e}"),
    }
}

/// A figure for the script, in few characters.
fn number(value: f64) -> String {
    match value {
        0.01.. => format!("{value:.3}"),
        _ => format!("{value:.3e}"),
    }
}

fn keys(number: u64) -> String {
    format!("{} {}", thousands(number), output::plural(number, "key"))
}

/// A number in groups of three digits.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<String> = groups
        .map(|group| String::from_utf8_lossy(group).into_owned())
        .collect();
    groups.join("\u{202f}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_short_and_true() {
        let shown = [
            1.0,
            0.1,
            0.05,
            0.01,
            1.0 / 256.0,
            0.001,
            1e-4,
            1e-5,
            1e-6,
            0.0,
        ]
        .map(rate);
        assert_eq!(
            shown,
            [
                "100 %", "10 %", "5 %", "1 %", "0.39 %", "0.1 %", "0.01 %", "0.001 %", "1e-6", "0"
            ]
        );
    }

    #[test]
    fn long_numbers_are_in_groups() {
        let shown = [0, 999, 1000, 1_234_567].map(thousands);
        assert_eq!(
            shown,
            ["0", "999", "1\u{202f}000", "1\u{202f}234\u{202f}567"]
        );
    }

    #[test]
    fn a_share_that_is_no_number_is_no_bar() {
        let drawn = meter("none", f64::NAN);
        assert!(drawn.contains("<rect class=\"bar\"") && !drawn.contains("width=\"inf"));
    }
}
