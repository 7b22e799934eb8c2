//! The charts: space against time, builds, and growth with n. Each is drawn for a size, so that a
//! page can hold one for a wide screen and one for a narrow screen, where points have numbers in
//! place of names.

use crate::figures::{Figure, Row};

use super::draw::{Rect, Scale, Svg, place_labels, spread, text_width, tick_text};

/// A row with what the page knows of it.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) row: &'a Row,
    /// Its number on the page.
    pub(crate) number: usize,
    /// The number of its family.
    pub(crate) family: usize,
}

impl Entry<'_> {
    pub(crate) fn class(&self) -> String {
        let whose = if self.row.ours { "ours" } else { "rival" };
        format!("f{} {whose}", self.family)
    }

    /// Names where there is room for them.
    fn label(&self, form: Form) -> String {
        match form {
            Form::Wide => self.row.subject.clone(),
            Form::Narrow => self.number.to_string(),
        }
    }
}

/// The screen that a chart is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Wide,
    Narrow,
}

impl Form {
    fn width(self) -> f64 {
        match self {
            Form::Wide => 900.0,
            Form::Narrow => 360.0,
        }
    }
}

const FONT: f64 = 12.0;

fn axes(svg: &mut Svg, area: &Rect, x: (&Scale, &str), y: (&Scale, &str)) {
    grid(svg, area, x.0, x.1);
    for tick in y.0.ticks() {
        let at = y.0.at(tick);
        svg.line("grid", (area.left, at), (area.right, at));
        svg.text("tick end", (area.left - 6.0, at + 4.0), &tick_text(tick));
    }
    svg.text("axis", (area.left - 40.0, area.top - 12.0), y.1);
}

/// The lines of a horizontal scale.
fn grid(svg: &mut Svg, area: &Rect, scale: &Scale, label: &str) {
    for tick in scale.ticks() {
        let at = scale.at(tick);
        svg.line("grid", (at, area.top), (at, area.bottom));
    }
    for tick in scale.legible_ticks(FONT) {
        let at = (scale.at(tick), area.bottom + 16.0);
        svg.text("tick middle", at, &tick_text(tick));
    }
    if !label.is_empty() {
        let middle = f64::midpoint(area.left, area.right);
        svg.text("axis middle", (middle, area.bottom + 36.0), label);
    }
}

/// The least overhead that is told apart from none.
const LEAST_OVERHEAD: f64 = 0.1;

/// Bits above the lower bound against the time of a lookup. Who has no rate, because it never
/// erred, is not there.
pub(crate) fn pareto(entries: &[Entry<'_>], form: Form) -> String {
    let (width, height) = match form {
        Form::Wide => (form.width(), 600.0),
        Form::Narrow => (form.width(), 460.0),
    };
    let area = Rect {
        left: 46.0,
        top: 34.0,
        right: width - 10.0,
        bottom: height - 46.0,
    };
    let places: Vec<(Entry<'_>, f64, f64)> = entries
        .iter()
        .filter_map(|entry| {
            let overhead = entry.row.overhead()?.max(LEAST_OVERHEAD);
            Some((*entry, overhead, entry.row.best_lookup()?.median()))
        })
        .collect();
    let limits = || entries.iter().filter_map(|e| e.row.median(Figure::Limit));
    let x = Scale::over(
        places.iter().map(|p| p.1),
        LEAST_OVERHEAD,
        area.left,
        area.right,
    );
    let times = places.iter().map(|p| p.2).chain(limits());
    let y = Scale::over(times, 0.01, area.bottom, area.top);

    let mut svg = Svg::default();
    let label = match form {
        Form::Wide => "bits per key above the lower bound log₂(1/ε)",
        Form::Narrow => "bits/key above the lower bound",
    };
    axes(&mut svg, &area, (&x, label), (&y, "ns per lookup"));
    let best = limits().fold(f64::INFINITY, f64::min);
    if best.is_finite() {
        let at = y.at(best);
        svg.line("limit", (area.left, at), (area.right, at));
        let text = "one random line read: no lookup out of cache is faster";
        let text = if form == Form::Wide {
            text
        } else {
            "one line read"
        };
        svg.text("note end", (area.right - 4.0, at + 14.0), text);
    }
    svg.polyline("frontier", &frontier(&places, &x, &y));

    let points: Vec<(f64, f64)> = places.iter().map(|p| (x.at(p.1), y.at(p.2))).collect();
    let labels: Vec<String> = places.iter().map(|p| p.0.label(form)).collect();
    let room = Rect {
        left: area.left + 2.0,
        top: 16.0,
        ..area
    };
    let boxes = place_labels(&points, &labels, FONT, &room);
    for (((entry, overhead, ns), point), (label, place)) in
        places.iter().zip(&points).zip(labels.iter().zip(&boxes))
    {
        let name = &entry.row.subject;
        let title = format!("{name}: {overhead:.2} bits above the bound, {ns:.1} ns");
        svg.group(&entry.class(), &title, |svg| {
            let near = (
                point.0.clamp(place.left, place.right),
                point.1.clamp(place.top, place.bottom),
            );
            if (near.0 - point.0).hypot(near.1 - point.1) > 12.0 {
                svg.line("leader", *point, near);
            }
            svg.mark(entry.row.ours, *point);
            svg.text("label", (place.left, place.bottom - 0.25 * FONT), label);
        });
    }
    svg.finish(
        width,
        height,
        "Bits per key above the lower bound against ns per lookup",
    )
}

/// Those than whom nobody is both smaller and faster, as steps.
fn frontier(places: &[(Entry<'_>, f64, f64)], x: &Scale, y: &Scale) -> Vec<(f64, f64)> {
    let mut sorted: Vec<(f64, f64)> = places.iter().map(|p| (p.1, p.2)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let (mut steps, mut fastest) = (Vec::new(), f64::INFINITY);
    for (bits, ns) in sorted {
        if ns < fastest {
            if fastest.is_finite() {
                steps.push((x.at(bits), y.at(fastest)));
            }
            steps.push((x.at(bits), y.at(ns)));
            fastest = ns;
        }
    }
    steps
}

/// Times to build in bulk and to insert one by one, a line for each subject, the fastest first.
pub(crate) fn builds(entries: &[Entry<'_>], form: Form) -> String {
    const STEP: f64 = 19.0;
    let mut sorted: Vec<(Entry<'_>, f64)> = entries
        .iter()
        .filter_map(|entry| Some((*entry, entry.row.median(Figure::Build)?)))
        .collect();
    sorted.sort_by(|a, b| a.1.total_cmp(&b.1));
    let name = |entry: &Entry<'_>| match form {
        Form::Wide => entry.row.subject.clone(),
        Form::Narrow => shortened(&entry.row.subject, 21),
    };
    let widest = sorted
        .iter()
        .map(|(e, _)| text_width(&name(e), FONT))
        .fold(0.0, f64::max);
    let (width, rows) = (form.width(), sorted.len() as f64);
    let area = Rect {
        left: widest + 12.0,
        top: 8.0,
        right: width - 44.0,
        bottom: 16.0 + STEP * rows,
    };
    let times = [Figure::Build, Figure::Insert];
    let times = entries
        .iter()
        .flat_map(|e| times.iter().filter_map(|&f| e.row.median(f)));
    let x = Scale::over(times, 0.01, area.left, area.right);
    let mut svg = Svg::default();
    grid(&mut svg, &area, &x, "");
    let legend = "ns per key: ● ◆ built in bulk, ○ ◇ one by one";
    svg.text("axis middle", (width / 2.0, area.bottom + 36.0), legend);
    for (i, (entry, build)) in sorted.iter().enumerate() {
        let at = area.top + STEP * (i as f64 + 0.75);
        let title = format!("{}: built in {build:.1} ns per key", entry.row.subject);
        svg.group(&entry.class(), &title, |svg| {
            svg.text("label end", (area.left - 8.0, at + 4.0), &name(entry));
            svg.line("rail", (area.left, at), (x.at(*build), at));
            if let Some(samples) = entry.row.figures.get(&Figure::Build) {
                let (low, high) = samples.range();
                svg.line("range", (x.at(low), at), (x.at(high), at));
            }
            let insert = entry.row.median(Figure::Insert).filter(|ns| ns != build);
            if let Some(insert) = insert {
                svg.group("hollow", "one by one", |svg| {
                    svg.mark(entry.row.ours, (x.at(insert), at));
                });
            }
            svg.group("solid", "in bulk", |svg| {
                svg.mark(entry.row.ours, (x.at(*build), at));
            });
            let text = if *build < 99.5 {
                format!("{build:.1}")
            } else {
                format!("{build:.0}")
            };
            svg.text("value", (area.right + 6.0, at + 4.0), &text);
        });
    }
    svg.finish(width, area.bottom + 48.0, "Time to build, ns per key")
}

/// A name cut to so many letters.
fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.into();
    }
    name.chars().take(most - 1).chain(['…']).collect()
}

/// One family's cost against n, at one rate: small, with names at the end of each line.
pub(crate) fn growth(
    lines: &[(Entry<'_>, Vec<(usize, f64)>)],
    sizes: &[usize],
    unit: &str,
) -> String {
    const GAP: f64 = 13.0;
    let names = lines
        .iter()
        .map(|(e, _)| text_width(&shortened(&e.row.subject, 22), 11.0));
    let margin = names.fold(0.0, f64::max) + 18.0;
    let (width, height) = (360.0, (GAP * lines.len() as f64 + 60.0).max(190.0));
    let area = Rect {
        left: 42.0,
        top: 26.0,
        right: width - margin,
        bottom: height - 26.0,
    };
    let x = Scale::over(sizes.iter().map(|&n| n as f64), 1.0, area.left, area.right);
    let values = lines
        .iter()
        .flat_map(|(_, points)| points.iter().map(|p| p.1));
    let y = Scale::over(values, 0.01, area.bottom, area.top);
    let mut svg = Svg::default();
    for tick in y.ticks() {
        let at = y.at(tick);
        svg.line("grid", (area.left, at), (area.right, at));
        svg.text("tick end", (area.left - 6.0, at + 4.0), &tick_text(tick));
    }
    for &n in sizes {
        let at = x.at(n as f64);
        svg.line("grid", (at, area.top), (at, area.bottom));
        svg.text(
            "tick middle",
            (at, area.bottom + 16.0),
            &tick_text(n as f64),
        );
    }
    svg.text("axis", (4.0, 14.0), unit);
    let place = |&(n, value): &(usize, f64)| (x.at(n as f64), y.at(value));
    let ends: Vec<(f64, f64)> = lines
        .iter()
        .filter_map(|(_, points)| points.last().map(place))
        .collect();
    let wanted: Vec<f64> = ends.iter().map(|end| end.1 + 4.0).collect();
    let heights = spread(&wanted, GAP, area.top + 4.0, area.bottom + 6.0);
    for (((entry, points), end), height) in lines.iter().zip(&ends).zip(&heights) {
        let places: Vec<_> = points.iter().map(place).collect();
        let values: Vec<String> = points.iter().map(|p| format!("{:.1}", p.1)).collect();
        let title = format!("{}: {} ns", entry.row.subject, values.join(", "));
        svg.group(&entry.class(), &title, |svg| {
            svg.polyline("run", &places);
            places
                .iter()
                .for_each(|&place| svg.mark(entry.row.ours, place));
            let text = (area.right + 16.0, *height);
            svg.line("leader", (end.0 + 5.0, end.1), (text.0 - 2.0, text.1 - 4.0));
            svg.text("label small", text, &shortened(&entry.row.subject, 22));
        });
    }
    svg.finish(width, height, "Growth of cost with the number of keys")
}
