//! A run as text: one aligned table for each size and rate.

use crate::figures::{Figure, Row, Run};

/// The columns of the tables: a head, what stands above a group of heads, and the text of a row.
struct Column {
    group: &'static str,
    head: &'static str,
    cell: fn(&Row) -> String,
}

const fn column(group: &'static str, head: &'static str, cell: fn(&Row) -> String) -> Column {
    Column { group, head, cell }
}

const COLUMNS: &[Column] = &[
    column("bits/key", "held", |row| number(row, Figure::Bits, 2)),
    column("", "peak", |row| number(row, Figure::Peak, 0)),
    column("", "fpr %", rate),
    column("ns/key", "build", |row| number(row, Figure::Build, 1)),
    column("", "insert", |row| number(row, Figure::Insert, 1)),
    column("", "in batch", |row| number(row, Figure::InsertBatch, 1)),
    column("", "remove", |row| number(row, Figure::Remove, 1)),
    column("", "count", |row| number(row, Figure::Count, 1)),
    column("single ns", "absent", |row| number(row, Figure::Absent, 1)),
    column("", "present", |row| number(row, Figure::Present, 1)),
    column("", "half", |row| number(row, Figure::Half, 1)),
    column("batch ns", "absent", |row| {
        number(row, Figure::AbsentBatch, 1)
    }),
    column("", "present", |row| number(row, Figure::PresentBatch, 1)),
    column("", "half", |row| number(row, Figure::HalfBatch, 1)),
    column("line", "read", |row| number(row, Figure::Limit, 1)),
    column("× single", "absent", |row| reads(row, Figure::Absent)),
    column("", "present", |row| reads(row, Figure::Present)),
    column("", "half", |row| reads(row, Figure::Half)),
    column("× batch", "absent", |row| reads(row, Figure::AbsentBatch)),
    column("", "present", |row| reads(row, Figure::PresentBatch)),
    column("", "half", |row| reads(row, Figure::HalfBatch)),
    column("threads, ns", "build", |row| {
        number(row, Figure::BuildThreads, 1)
    }),
    column("", "single", |row| number(row, Figure::HalfThreads, 1)),
    column("", "batch", |row| number(row, Figure::HalfBatchThreads, 1)),
    column("spread", "± %", spread),
];

fn number(row: &Row, figure: Figure, decimals: usize) -> String {
    let text = |value: f64| format!("{value:.decimals$}");
    row.median(figure).map_or("-".into(), text)
}

/// The measured rate; marked where it is clearly above the one that was asked for.
fn rate(row: &Row) -> String {
    let measured = row.median(Figure::Fpr).unwrap_or(f64::NAN);
    let mark = if measured > row.shape.fpr * 1.15 {
        "!"
    } else {
        ""
    };
    format!("{mark}{:.4}", measured * 100.0)
}

/// A lookup as a multiple of the line-read limit.
fn reads(row: &Row, lookup: Figure) -> String {
    let text = |reads: crate::stats::Samples| format!("{:.1}", reads.median());
    row.line_reads(lookup).map_or("-".into(), text)
}

/// The middle one of the spreads of all times.
fn spread(row: &Row) -> String {
    let times = row.figures.iter().filter(|(f, _)| f.unit() == "ns");
    let spreads: Vec<f64> = times.filter_map(|(_, samples)| samples.spread()).collect();
    if spreads.is_empty() {
        return "-".into();
    }
    format!("{:.0}", crate::stats::Samples(spreads).median() * 50.0)
}

/// All tables, with what a reader must know below them.
pub(crate) fn tables(run: &Run) -> String {
    let mut text = String::new();
    for (name, about) in &run.about {
        text += &format!("{name}: {about}\n");
    }
    for shape in run.shapes() {
        text += &format!("\n{shape}\n");
        let rows: Vec<&Row> = run.rows.iter().filter(|row| row.shape == shape).collect();
        text += &table(&rows);
    }
    text + NOTES
}

const NOTES: &str = "
held, peak: heap counted by the allocator, without the keys given. build: in bulk; insert: one by one.
single, batch: lookups of absent keys, of members, and of either by a coin; batch is the filter's own call.
line read: ns of a random read of 64 bytes in a buffer of the filter's size; ×: a lookup in such reads.
threads: time that passes per key on as many threads as said above, which share the filter (lookups of either key).
±: half the p10-p90 range relative to the median, typical of the row's times; - after one round. Times are medians over
rounds.
!: above the rate asked for.
";

/// The columns in which someone has a figure. A group's name moves on when its first column is
/// left out.
fn measured(rows: &[&Row]) -> Vec<Column> {
    let (mut columns, mut group) = (Vec::new(), "");
    for column in COLUMNS {
        if !column.group.is_empty() {
            group = column.group;
        }
        if rows.iter().any(|row| (column.cell)(row) != "-") {
            columns.push(Column { group, ..*column });
            group = "";
        }
    }
    columns
}

fn table(rows: &[&Row]) -> String {
    let columns = measured(rows);
    let heads = columns.iter().map(|column| column.head.to_string());
    let mut lines = vec![vec!["subject".to_string()]];
    lines[0].extend(heads);
    for row in rows {
        let cells = columns.iter().map(|column| (column.cell)(row));
        lines.push(std::iter::once(row.subject.clone()).chain(cells).collect());
    }
    let width = |i: usize| lines.iter().map(move |line| line[i].chars().count()).max();
    let widths: Vec<usize> = (0..=columns.len()).filter_map(width).collect();

    // A group's name stands above its first column, and may reach over the others.
    let (mut text, mut at, mut written) = (String::new(), widths[0], 0);
    for (column, width) in columns.iter().zip(&widths[1..]) {
        at += gap(column).len();
        if !column.group.is_empty() {
            text += &format!("{:1$}{2}", "", at.saturating_sub(written), column.group);
            written = at + column.group.chars().count();
        }
        at += width;
    }
    text += "\n";
    for (i, line) in lines.iter().enumerate() {
        let first_rival = i > 1 && !rows[i - 1].ours && rows[i - 2].ours;
        text += if first_rival { "\n" } else { "" };
        text += &format!("{:1$}", line[0], widths[0]);
        for ((column, cell), width) in columns.iter().zip(&line[1..]).zip(&widths[1..]) {
            text += &format!("{}{cell:>width$}", gap(column));
        }
        text += "\n";
    }
    text
}

/// A duel: a line for each figure, with what every side took and how many times the first one's
/// that is.
pub(crate) fn quotients(run: &Run) -> String {
    let Some((first, others)) = run.rows.split_first() else {
        return String::new();
    };
    let width = |row: &Row| row.subject.chars().count().max(9);
    let mut text = format!("{}\n{:18}", first.shape, "");
    for row in &run.rows {
        text += &format!("  {:>1$}", row.subject, width(row));
    }
    for row in others {
        text += &format!("  {:<18}", format!("{} ×", row.subject));
    }
    text = format!("{}\n", text.trim_end());
    for figure in Figure::ALL {
        let Some(ours) = first.figures.get(&figure) else {
            continue;
        };
        let name = format!("{}, {}", figure.name().replace('_', " "), figure.unit());
        let mut line = format!("{name:18}");
        for row in &run.rows {
            line += &format!("  {:>1$}", number(row, figure, 2), width(row));
        }
        for row in others {
            let times = row.figures.get(&figure).map(|theirs| theirs.over(ours));
            let times = times.map_or("-".into(), |times| {
                let (low, high) = times.range();
                format!("{:.2} ({low:.2}-{high:.2})", times.median())
            });
            line += &format!("  {times:<18}");
        }
        text += &format!("{}\n", line.trim_end());
    }
    text + "×: times the first one's, in the median over turns or rounds, with p10 and p90; more than 1 is more than the first.\n"
}

/// What parts a column from the one before it: more between groups.
fn gap(column: &Column) -> &'static str {
    if column.group.is_empty() {
        "  "
    } else {
        "    "
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_a_dash_and_columns_are_aligned() {
        let row = |subject: &str, ours| {
            let mut row = Row {
                subject: subject.into(),
                ours,
                ..Row::default()
            };
            row.record(Figure::Fpr, 0.02);
            (0..2).for_each(|_| row.record(Figure::Build, 12.34));
            if ours {
                row.record(Figure::Remove, 3.0);
            }
            row
        };
        let run = Run {
            rows: vec![row("one", true), row("another/Type", false)],
            ..Run::default()
        };
        let text = tables(&run);
        let lines: Vec<&str> = text.lines().filter(|l| l.contains("12.3")).collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(lines[0].find("12.3"), lines[1].find("12.3"), "{text}");
        assert!(lines[0].contains("!2.0000") && lines[1].contains(" - "));
        assert!(!text.contains("  insert"), "nobody inserts: {text}");
        assert!(lines[1].starts_with("another/Type "), "{text}");
    }
}
