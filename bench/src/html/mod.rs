//! A run as one HTML file that needs nothing else: charts with a table under each, for wide and
//! narrow screens, light and dark, without scripts.

mod charts;

use std::fmt::Write;

use tamis_charts::draw::{self, tick_text};
use tamis_charts::{COLOURS, Form, STYLE};

use crate::figures::{Figure, Row, Run, Shape};
use crate::keys::KeyType;
use crate::stats::Samples;

use charts::{Entry, mark};
pub(crate) use tamis_charts::draw::escape;

/// The rate that is shown at once, where it was measured.
const MAIN_RATE: f64 = 1.0 / 256.0;

/// The page of a run; of a second run, compiled for another processor or of another day, the
/// ratios.
pub(crate) fn page(run: &Run, other: Option<&Run>) -> String {
    let page = Page::new(run);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>tamis-bench</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n",
        page.family_style()
    );
    out += "<h1>Filters, measured</h1>\n";
    out += &about(run);
    out += &page.head(other.is_some());
    out += &page.space_and_time();
    out += &page.builds();
    out += &page.growth();
    out += &page.threads();
    if let Some(other) = other {
        out += &page.ratios(other);
    }
    out += NOTES;
    out + "</body>\n</html>\n"
}

/// One chart of space against time as a file of its own, on white wherever it is shown; `None` if
/// the run lacks the shape.
pub(crate) fn pareto_file(run: &Run, shape: Shape, title: &str) -> Option<String> {
    let page = Page::new(run);
    let entries = page.entries(shape);
    if entries.is_empty() {
        return None;
    }
    let chart = charts::pareto(&entries, Form::Wide);
    // From the light palette: a picture cannot know what it is shown on.
    let style = STYLE.split("@media").next().unwrap_or_default();
    let rules: String = STYLE
        .lines()
        .filter(|line| {
            let of_charts = [
                "text ",
                ".tick",
                ".small",
                ".middle",
                ".end",
                ".grid ",
                ".limit",
                ".frontier",
                ".label",
                ".leader",
                ".mark",
                ".rival .label",
            ];
            of_charts.iter().any(|start| line.starts_with(start))
        })
        .map(|line| format!("{line}\n"))
        .collect();
    let rules = format!(
        "{}{rules}{}",
        style.replace("color-scheme: light dark;", ""),
        page.family_style()
    );
    let body = chart.split_once('\n').map_or("", |(_, body)| body);
    let mut legend = draw::Svg::default();
    legend.text("heading", (8.0, 24.0), title);
    let mut x = 8.0;
    for (i, family) in page.families.iter().enumerate() {
        legend.group(&format!("f{i}"), family, |svg| {
            svg.mark(mark(true), (x + 5.0, 42.0));
            svg.text("label", (x + 14.0, 46.0), family);
        });
        x += 34.0 + draw::text_width(family, 12.0);
    }
    legend.text("note", (x, 46.0), "● tamis   ◆ other crates");
    Some(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 656\" width=\"900\" height=\"656\" role=\"img\">\n\
         <title>{}</title>\n<style>\n{rules}.heading {{ font-size: 16px; font-weight: 600; }}\n</style>\n\
         <rect width=\"900\" height=\"656\" fill=\"#ffffff\"/>\n{}<g transform=\"translate(0 56)\">\n{}</g>\n</svg>\n",
        escape(title),
        legend.0,
        body.trim_end().trim_end_matches("</svg>")
    ))
}

fn about(run: &Run) -> String {
    let facts: Vec<String> = run
        .about
        .iter()
        .map(|(name, text)| format!("{}: {}", escape(name), escape(text)))
        .collect();
    format!("<p class=\"about\">{}</p>\n", facts.join(" · "))
}

const NOTES: &str = "<h2 id=\"notes\">How it was measured</h2>\n\
<p>All subjects answer about the same keys in the same process. Rounds interleave them, each round with new keys and in \
another order; a figure is the median over rounds, and ± is half the range from p10 to p90 relative to it. A lookup is the \
mean over absent keys, members, and either by a coin; the charts show the faster of single calls and the filter's own batch \
call.</p>\n\
<p>Bits per key are counted by the allocator. The lower bound is log₂(1/ε) for the rate ε that the filter expects of itself, \
or that was measured where it does not tell. × gives a lookup in random reads of 64 bytes from a buffer of the filter's \
size, measured in the same round. Times on several threads are times that pass, per key, while threads share one filter.</p>\n\
<p>A rate in red is clearly above the one asked for. Strings have 20 to 40 bytes and are hashed by XXH3-64, for everyone.</p>\n";

/// Everything that several sections need.
struct Page<'a> {
    run: &'a Run,
    /// Names in the order of the run; the place is the number.
    subjects: Vec<&'a str>,
    families: Vec<&'a str>,
    /// A section for each: those of 64-bit keys first, and of each size the main rate first.
    shapes: Vec<Shape>,
}

/// A figure of a row, or one made of several.
type Value<'a> = &'a dyn Fn(&Row) -> Option<f64>;

/// A column of a table: its head and the text of a row.
type Column<'a> = (&'a str, &'a dyn Fn(&Row) -> String);

impl<'a> Page<'a> {
    fn new(run: &'a Run) -> Page<'a> {
        fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
            let mut seen: Vec<&str> = Vec::new();
            for name in names {
                if !seen.contains(&name) {
                    seen.push(name);
                }
            }
            seen
        }
        let mut shapes = run.shapes();
        let rest = |shape: &Shape| (shape.keys != KeyType::U64, shape.n, shape.fpr != MAIN_RATE);
        shapes.sort_by(|a, b| rest(a).cmp(&rest(b)).then(b.fpr.total_cmp(&a.fpr)));
        Page {
            run,
            subjects: distinct(run.rows.iter().map(|row| row.subject.as_str())),
            families: distinct(run.rows.iter().map(|row| row.family.as_str())),
            shapes,
        }
    }

    fn entry(&self, row: &'a Row) -> Entry<'a> {
        let place = |names: &[&str], name: &str| names.iter().position(|n| *n == name);
        Entry {
            row,
            number: place(&self.subjects, &row.subject).map_or(0, |i| i + 1),
            family: place(&self.families, &row.family).unwrap_or(0),
        }
    }

    fn entries(&self, shape: Shape) -> Vec<Entry<'a>> {
        let rows = self.run.rows.iter().filter(|row| row.shape == shape);
        rows.map(|row| self.entry(row)).collect()
    }

    /// Each family's colour, and what hides it.
    fn family_style(&self) -> String {
        let families = 0..self.families.len();
        let rule = |i| {
            let colour = i % COLOURS;
            format!(
                ".f{i} {{ --c: var(--c{colour}); }}\nbody:has(#hide{i}:not(:checked)) .f{i} {{ display: none; }}\n"
            )
        };
        let hide = "body:has(#hide-rivals:not(:checked)) .rival { display: none; }\n";
        families.map(rule).collect::<String>() + hide
    }

    /// Links, and a box to uncheck for each family, which is the legend as well.
    fn head(&self, two_runs: bool) -> String {
        let mut out = String::from("<nav>");
        let ratios = ("ratios", "The two runs");
        for (id, name) in [
            ("space", "Space against time"),
            ("builds", "Building"),
            ("growth", "Growth with n"),
            ("threads", "Threads"),
            ratios,
            ("notes", "How it was measured"),
        ] {
            if id != "ratios" || two_runs {
                let _ = write!(out, "<a href=\"#{id}\">{name}</a> ");
            }
        }
        out += "</nav>\n<fieldset><legend>Families; uncheck to hide</legend><div>\n";
        let marked = |ours: bool| {
            let mut svg = draw::Svg::default();
            svg.mark(mark(ours), (7.0, 7.0));
            format!(
                "<svg viewBox=\"0 0 14 14\" aria-hidden=\"true\">{}</svg>",
                svg.0.trim_end()
            )
        };
        for (i, family) in self.families.iter().enumerate() {
            let (mark, family) = (marked(true), escape(family));
            let _ = writeln!(
                out,
                "<label><input type=\"checkbox\" id=\"hide{i}\" checked> <span class=\"key{i}\">{mark}</span> {family}</label>"
            );
        }
        let _ = writeln!(
            out,
            "<label><input type=\"checkbox\" id=\"hide-rivals\" checked> <span class=\"key8\">{}</span> \
             other crates</label>",
            marked(false)
        );
        out += "</div></fieldset>\n<style>\n";
        for i in 0..self.families.len().max(9) {
            let _ = writeln!(out, ".key{i} {{ --c: var(--c{}); }}", i % COLOURS);
        }
        out + "</style>\n"
    }

    /// A part for each shape; the first rate of a size is open, the others are folded away.
    fn for_shapes(shapes: &[Shape], part: impl Fn(Shape) -> String) -> String {
        let (mut out, mut before) = (String::new(), None);
        for &shape in shapes {
            let title = heading(shape);
            if before.replace((shape.n, shape.keys)) != Some((shape.n, shape.keys)) {
                let _ = writeln!(out, "<h3>{title}</h3>\n{}", part(shape));
            } else {
                let _ = writeln!(
                    out,
                    "<details><summary>{title}</summary>\n{}</details>",
                    part(shape)
                );
            }
        }
        out
    }

    fn space_and_time(&self) -> String {
        let mut out = String::from(
            "<h2 id=\"space\">Space against time</h2>\n<p>Down and left is better. The broad line joins those than whom \
             nobody is both smaller and faster.</p>\n",
        );
        let columns: [Column<'_>; 15] = [
            ("bits/key", &|row| number(row.median(Figure::Bits), 2)),
            ("over bound", &|row| number(row.overhead(), 2)),
            ("rate %", &rate),
            ("absent ns", &|row| number(row.median(Figure::Absent), 1)),
            ("present", &|row| number(row.median(Figure::Present), 1)),
            ("half", &|row| number(row.median(Figure::Half), 1)),
            ("absent ×", &|row| reads(row, Figure::Absent)),
            ("present ×", &|row| reads(row, Figure::Present)),
            ("half ×", &|row| reads(row, Figure::Half)),
            ("batch absent ns", &|row| {
                number(row.median(Figure::AbsentBatch), 1)
            }),
            ("present", &|row| {
                number(row.median(Figure::PresentBatch), 1)
            }),
            ("half", &|row| number(row.median(Figure::HalfBatch), 1)),
            ("absent ×", &|row| reads(row, Figure::AbsentBatch)),
            ("present ×", &|row| reads(row, Figure::PresentBatch)),
            ("half ×", &|row| reads(row, Figure::HalfBatch)),
        ];
        let part = |shape| {
            let entries = self.entries(shape);
            let (wide, narrow) = (
                charts::pareto(&entries, Form::Wide),
                charts::pareto(&entries, Form::Narrow),
            );
            both(&wide, &narrow) + &self.table(&entries, &columns)
        };
        out += &Self::for_shapes(&self.shapes, part);
        out
    }

    fn builds(&self) -> String {
        let mut out = String::from("<h2 id=\"builds\">Building</h2>\n");
        let columns: [Column<'_>; 7] = [
            ("build ns", &|row| number(row.median(Figure::Build), 1)),
            ("±", &|row| spread(row, Figure::Build)),
            ("insert ns", &|row| number(row.median(Figure::Insert), 1)),
            ("in batch", &|row| {
                number(row.median(Figure::InsertBatch), 1)
            }),
            ("remove ns", &|row| number(row.median(Figure::Remove), 1)),
            ("count ns", &|row| number(row.median(Figure::Count), 1)),
            ("peak bits/key", &|row| number(row.median(Figure::Peak), 0)),
        ];
        let part = |shape| {
            let entries = self.entries(shape);
            let (wide, narrow) = (
                charts::builds(&entries, Form::Wide),
                charts::builds(&entries, Form::Narrow),
            );
            both(&wide, &narrow) + &self.table(&entries, &columns)
        };
        out += &Self::for_shapes(&self.shapes, part);
        out
    }

    /// For each family the cost of a lookup and of a build against n, at the rate with the most
    /// sizes.
    fn growth(&self) -> String {
        let words = || {
            self.shapes
                .iter()
                .filter(|shape| shape.keys == KeyType::U64)
        };
        let sizes_of = |fpr: f64| {
            let mut sizes: Vec<usize> = words().filter(|s| s.fpr == fpr).map(|s| s.n).collect();
            sizes.dedup();
            sizes
        };
        let rates = words().map(|shape| shape.fpr);
        // Of rates with as many sizes, 2⁻⁸.
        let Some(fpr) = rates.max_by_key(|&fpr| (sizes_of(fpr).len(), fpr == MAIN_RATE)) else {
            return String::new();
        };
        let sizes = sizes_of(fpr);
        let mut out = format!(
            "<h2 id=\"growth\">Growth with n</h2>\n<p>At ε = {} %. Dashed lines are other crates'.</p>\n",
            percent(fpr)
        );
        let lookup = |row: &Row| row.best_lookup().map(|samples| samples.median());
        let build = |row: &Row| row.median(Figure::Build);
        let values: [(&str, &str, Value<'_>); 2] = [
            ("Lookups", "ns per lookup", &lookup),
            ("Builds", "ns per key", &build),
        ];
        for (title, unit, value) in values {
            let _ = writeln!(out, "<h3>{title}</h3>\n<div class=\"grid-of-charts\">");
            let line = |subject: &&str| {
                let at = |&n: &usize| {
                    let shape = Shape {
                        n,
                        fpr,
                        keys: KeyType::U64,
                    };
                    let row = self.run.find(subject, shape)?;
                    Some((row, (n, value(row)?)))
                };
                let found: Vec<_> = sizes.iter().filter_map(at).collect();
                let entry = self.entry(found.first()?.0);
                Some((
                    entry,
                    found
                        .into_iter()
                        .map(|(_, point)| point)
                        .collect::<Vec<_>>(),
                ))
            };
            let lines: Vec<_> = self.subjects.iter().filter_map(line).collect();
            for (i, family) in self.families.iter().enumerate() {
                let of_family: Vec<_> = lines.iter().filter(|l| l.0.family == i).cloned().collect();
                if of_family.is_empty() {
                    continue;
                }
                let chart = charts::growth(&of_family, &sizes, unit);
                let family = escape(family);
                let _ = writeln!(
                    out,
                    "<figure class=\"f{i}\"><figcaption>{family}</figcaption>{chart}</figure>"
                );
            }
            out += "</div>\n<div class=\"scroll\"><table><thead><tr><th>subject</th>";
            for &n in &sizes {
                let _ = write!(out, "<th>n = {}</th>", tick_text(n as f64));
            }
            out += "</tr></thead><tbody>\n";
            for (entry, points) in &lines {
                out += &row_head(entry);
                for &n in &sizes {
                    let point = points.iter().find(|point| point.0 == n);
                    let _ = write!(out, "<td>{}</td>", number(point.map(|p| p.1), 1));
                }
                out += "</tr>\n";
            }
            out += "</tbody></table></div>\n";
        }
        out
    }

    fn threads(&self) -> String {
        let threads = self
            .run
            .about
            .get("threads")
            .map_or("several", String::as_str);
        let mut out = format!(
            "<h2 id=\"threads\">Threads</h2>\n<p>On {} threads, time that passes per key. Lookups are of either key by a \
             coin; builds are those that use threads or ignore them. What one thread takes is of the run's clock, by default processor \
             time, so that what other programs take counts against several. On a busy machine these say little.</p>\n",
            escape(threads)
        );
        let times = |one: Figure, more: Figure| {
            move |row: &Row| {
                let gain = row
                    .median(one)
                    .zip(row.median(more))
                    .map(|(one, more)| one / more);
                gain.map_or("–".into(), |gain| format!("{gain:.2}×"))
            }
        };
        let build = times(Figure::Build, Figure::BuildThreads);
        let single = times(Figure::Half, Figure::HalfThreads);
        let batch = times(Figure::HalfBatch, Figure::HalfBatchThreads);
        let columns: [Column<'_>; 9] = [
            ("build, one", &|row| number(row.median(Figure::Build), 1)),
            (threads, &|row| number(row.median(Figure::BuildThreads), 1)),
            ("gain", &build),
            ("single, one", &|row| number(row.median(Figure::Half), 1)),
            (threads, &|row| number(row.median(Figure::HalfThreads), 1)),
            ("gain", &single),
            ("batch, one", &|row| {
                number(row.median(Figure::HalfBatch), 1)
            }),
            (threads, &|row| {
                number(row.median(Figure::HalfBatchThreads), 1)
            }),
            ("gain", &batch),
        ];
        let mut any = false;
        for &shape in &self.shapes {
            let mut entries = self.entries(shape);
            entries.retain(|entry| entry.row.figures.contains_key(&Figure::HalfThreads));
            if !entries.is_empty() {
                any = true;
                let _ = writeln!(
                    out,
                    "<h3>{}</h3>\n{}",
                    heading(shape),
                    self.table(&entries, &columns)
                );
            }
        }
        if any {
            out
        } else {
            out + "<p>None were measured in this run.</p>\n"
        }
    }

    /// What both runs measured, as this run's time over the other's.
    fn ratios(&self, other: &Run) -> String {
        let mut out = String::from(
            "<h2 id=\"ratios\">The two runs</h2>\n<p>Each time of the run above divided by that of the run below, of our \
             kinds: under 1 the one above is faster.</p>\n",
        );
        out += &about(other);
        let part = |shape| {
            let mut entries = self.entries(shape);
            entries.retain(|e| e.row.ours && other.find(&e.row.subject, shape).is_some());
            let ratio = |figure: Figure| {
                move |row: &Row| {
                    let before = other
                        .find(&row.subject, row.shape)
                        .and_then(|r| r.median(figure));
                    number(
                        row.median(figure)
                            .zip(before)
                            .map(|(now, before)| now / before),
                        2,
                    )
                }
            };
            let [build, insert, single, batch, remove] = [
                Figure::Build,
                Figure::Insert,
                Figure::Half,
                Figure::HalfBatch,
                Figure::Remove,
            ]
            .map(ratio);
            let columns: [Column<'_>; 5] = [
                ("build", &build),
                ("insert", &insert),
                ("single half", &single),
                ("batch half", &batch),
                ("remove", &remove),
            ];
            self.table(&entries, &columns)
        };
        let shared = other.shapes();
        let shapes: Vec<Shape> = self
            .shapes
            .iter()
            .copied()
            .filter(|s| shared.contains(s))
            .collect();
        out += &Self::for_shapes(&shapes, part);
        out
    }

    /// A table without the columns that nobody has a figure in.
    fn table(&self, entries: &[Entry<'_>], columns: &[Column<'_>]) -> String {
        let columns: Vec<_> = columns
            .iter()
            .filter(|(_, cell)| entries.iter().any(|entry| cell(entry.row) != "–"))
            .collect();
        let mut out = String::from("<div class=\"scroll\"><table><thead><tr><th>subject</th>");
        for (head, _) in &columns {
            let _ = write!(out, "<th>{}</th>", escape(head));
        }
        out += "</tr></thead><tbody>\n";
        for entry in entries {
            out += &row_head(entry);
            for (_, cell) in &columns {
                let _ = write!(out, "<td>{}</td>", cell(entry.row));
            }
            out += "</tr>\n";
        }
        out + "</tbody></table></div>\n"
    }
}

fn row_head(entry: &Entry<'_>) -> String {
    format!(
        "<tr class=\"{}\"><th scope=\"row\"><span class=\"number\">{}</span>{}</th>",
        entry.class(),
        entry.number,
        escape(&entry.row.subject)
    )
}

fn both(wide: &str, narrow: &str) -> String {
    format!("<figure class=\"wide\">{wide}</figure>\n<figure class=\"narrow\">{narrow}</figure>\n")
}

fn heading(shape: Shape) -> String {
    let strings = match shape.keys {
        KeyType::U64 => "",
        KeyType::Strings => ", strings",
    };
    format!(
        "n = {}, ε = {} %{strings}",
        tick_text(shape.n as f64),
        percent(shape.fpr)
    )
}

fn percent(fpr: f64) -> String {
    let percent = fpr * 100.0;
    if percent >= 1.0 {
        format!("{percent:.0}")
    } else {
        format!("{percent:.2}")
    }
}

fn number(value: Option<f64>, decimals: usize) -> String {
    let finite = value.filter(|value| value.is_finite());
    finite.map_or("–".into(), |value| format!("{value:.decimals$}"))
}

/// The measured rate, marked where it is clearly above the one that was asked for.
fn rate(row: &Row) -> String {
    let Some(measured) = row.median(Figure::Fpr) else {
        return "–".into();
    };
    let percent = measured * 100.0;
    let text = if percent > 0.0 && percent < 0.1 {
        format!("{percent:.4}")
    } else {
        format!("{percent:.2}")
    };
    if measured > row.shape.fpr * 1.15 {
        format!("<span class=\"over\">{text}</span>")
    } else {
        text
    }
}

fn reads(row: &Row, lookup: Figure) -> String {
    let reads = row.line_reads(lookup).map(|reads| reads.median());
    number(reads, 1)
}

fn spread(row: &Row, figure: Figure) -> String {
    let spread = row.figures.get(&figure).and_then(Samples::spread);
    spread.map_or("–".into(), |spread| format!("{:.0} %", spread * 50.0))
}
