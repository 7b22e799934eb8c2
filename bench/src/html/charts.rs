//! The charts: space against time, builds, and growth with n. Each is drawn for a size, so that a
//! page can hold one for a wide screen and one for a narrow screen, where points have numbers in
//! place of names.

use tamis_charts::draw::{Mark, tick_text};
use tamis_charts::{Form, Line, Lines, Point, Ranked, Ranking, Scatter};

use crate::figures::{Figure, Row};

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

    fn mark(&self) -> Mark {
        mark(self.row.ours)
    }
}

/// A dot of ours, or a diamond of a rival.
pub(crate) fn mark(ours: bool) -> Mark {
    if ours { Mark::Dot } else { Mark::Diamond }
}

/// The least overhead that is told apart from none.
const LEAST_OVERHEAD: f64 = 0.1;

/// Bits above the lower bound against the time of a lookup. Who has no rate, because it never
/// erred, is not there.
pub(crate) fn pareto(entries: &[Entry<'_>], form: Form) -> String {
    let points: Vec<Point> = entries
        .iter()
        .filter_map(|entry| {
            let overhead = entry.row.overhead()?.max(LEAST_OVERHEAD);
            let ns = entry.row.best_lookup()?.median();
            let name = &entry.row.subject;
            Some(Point {
                x: overhead,
                y: ns,
                label: entry.label(form),
                title: format!("{name}: {overhead:.2} bits above the bound, {ns:.1} ns"),
                class: entry.class(),
                mark: entry.mark(),
            })
        })
        .collect();
    let limits = entries.iter().filter_map(|e| e.row.median(Figure::Limit));
    let best = limits.fold(f64::INFINITY, f64::min);
    let (across, why) = match form {
        Form::Wide => (
            "bits per key above the lower bound log₂(1/ε)",
            "one random line read: no lookup out of cache is faster",
        ),
        Form::Narrow => ("bits/key above the lower bound", "one line read"),
    };
    let scatter = Scatter {
        title: "Bits per key above the lower bound against ns per lookup",
        form,
        x: (across, LEAST_OVERHEAD),
        y: ("ns per lookup", 0.01),
        floor: best.is_finite().then_some((best, why)),
    };
    scatter.draw(&points)
}

/// Times to build in bulk and to insert one by one, a line for each subject, the fastest first.
pub(crate) fn builds(entries: &[Entry<'_>], form: Form) -> String {
    let ranked: Vec<Ranked> = entries
        .iter()
        .filter_map(|entry| {
            let build = entry.row.median(Figure::Build)?;
            let samples = entry.row.figures.get(&Figure::Build);
            let name = &entry.row.subject;
            Some(Ranked {
                name: name.clone(),
                title: format!("{name}: built in {build:.1} ns per key"),
                class: entry.class(),
                mark: entry.mark(),
                value: build,
                second: entry.row.median(Figure::Insert).filter(|ns| *ns != build),
                range: samples.map(crate::stats::Samples::range),
            })
        })
        .collect();
    let ranking = Ranking {
        title: "Time to build, ns per key",
        form,
        legend: "ns per key: ● ◆ built in bulk, ○ ◇ one by one",
        marks: ["in bulk", "one by one"],
    };
    ranking.draw(&ranked)
}

/// One family's cost against n, at one rate: small, with names at the end of each line.
pub(crate) fn growth(
    lines: &[(Entry<'_>, Vec<(usize, f64)>)],
    sizes: &[usize],
    unit: &str,
) -> String {
    let ticks = sizes.iter().map(|&n| (n as f64, tick_text(n as f64)));
    let ticks: Vec<(f64, String)> = ticks.collect();
    let line = |(entry, points): &(Entry<'_>, Vec<(usize, f64)>)| {
        let values: Vec<String> = points.iter().map(|p| format!("{:.1}", p.1)).collect();
        Line {
            name: entry.row.subject.clone(),
            title: format!("{}: {} ns", entry.row.subject, values.join(", ")),
            class: entry.class(),
            mark: Some(entry.mark()),
            points: points.iter().map(|&(n, value)| (n as f64, value)).collect(),
        }
    };
    let chart = Lines {
        title: "Growth of cost with the number of keys",
        unit,
        ticks: &ticks,
        least: 0.01,
        here: None,
    };
    chart.draw(&lines.iter().map(line).collect::<Vec<_>>())
}
