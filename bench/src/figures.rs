//! The figures that are taken of a subject: names, units, and what a run found, in memory and as
//! JSON.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};

use crate::keys::KeyType;
use crate::stats::Samples;

/// One thing that is measured. All are better when smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Figure {
    Bits,
    Peak,
    /// The measured rate.
    Fpr,
    /// The rate that the filter itself expects; of rivals, those of one width alone.
    Expected,
    Build,
    Insert,
    /// In batches, as the library's users would who have many keys at hand.
    InsertBatch,
    Absent,
    Present,
    Half,
    AbsentBatch,
    PresentBatch,
    HalfBatch,
    Remove,
    Count,
    Limit,
    // Several threads: time that passes, whatever the clock.
    BuildThreads,
    /// As many builds at once as there are threads, of one thread each, per key of all: what the
    /// machine has to give. Duels alone measure it.
    BuildApart,
    HalfThreads,
    HalfBatchThreads,
}

impl Figure {
    pub(crate) const ALL: [Figure; 20] = [
        Figure::Bits,
        Figure::Peak,
        Figure::Fpr,
        Figure::Expected,
        Figure::Build,
        Figure::Insert,
        Figure::InsertBatch,
        Figure::Absent,
        Figure::Present,
        Figure::Half,
        Figure::AbsentBatch,
        Figure::PresentBatch,
        Figure::HalfBatch,
        Figure::Remove,
        Figure::Count,
        Figure::Limit,
        Figure::BuildThreads,
        Figure::BuildApart,
        Figure::HalfThreads,
        Figure::HalfBatchThreads,
    ];

    pub(crate) const SINGLE: [Figure; 3] = [Figure::Absent, Figure::Present, Figure::Half];
    pub(crate) const BATCH: [Figure; 3] =
        [Figure::AbsentBatch, Figure::PresentBatch, Figure::HalfBatch];

    /// The name in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Figure::Bits => "bits",
            Figure::Peak => "peak",
            Figure::Fpr => "fpr",
            Figure::Expected => "expected_fpr",
            Figure::Build => "build",
            Figure::Insert => "insert",
            Figure::InsertBatch => "insert_batch",
            Figure::Absent => "absent",
            Figure::Present => "present",
            Figure::Half => "half",
            Figure::AbsentBatch => "absent_batch",
            Figure::PresentBatch => "present_batch",
            Figure::HalfBatch => "half_batch",
            Figure::Remove => "remove",
            Figure::Count => "count",
            Figure::Limit => "limit",
            Figure::BuildThreads => "build_threads",
            Figure::BuildApart => "build_apart",
            Figure::HalfThreads => "half_threads",
            Figure::HalfBatchThreads => "half_batch_threads",
        }
    }

    pub(crate) fn unit(self) -> &'static str {
        match self {
            Figure::Bits | Figure::Peak => "bits/key",
            Figure::Fpr | Figure::Expected => "rate",
            _ => "ns",
        }
    }

    /// Whether it is the time of a subject, and not space, a rate or what the machine can do.
    pub(crate) fn is_a_subjects_time(self) -> bool {
        self.unit() == "ns" && self != Figure::Limit
    }

    fn of_name(name: &str) -> Option<Figure> {
        Figure::ALL.into_iter().find(|figure| figure.name() == name)
    }
}

/// What filters are asked to be: how many keys, of which type, at which rate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shape {
    pub(crate) n: usize,
    /// The rate that is asked for.
    pub(crate) fpr: f64,
    pub(crate) keys: KeyType,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, fpr) = (self.n, self.fpr * 100.0);
        let decimals = if fpr >= 1.0 { 0 } else { 2 };
        write!(f, "n = {n}, ε = {fpr:.decimals$} %")?;
        match self.keys {
            KeyType::U64 => Ok(()),
            KeyType::Strings => f.write_str(", strings"),
        }
    }
}

/// What was found of one subject at one shape.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) subject: String,
    /// What it is a variation of: the directory of the kind's source, or the same for a rival.
    pub(crate) family: String,
    pub(crate) ours: bool,
    pub(crate) shape: Shape,
    pub(crate) figures: BTreeMap<Figure, Samples>,
    /// Members that were not found: any is a bug of the subject.
    pub(crate) false_negatives: u64,
}

impl Row {
    pub(crate) fn record(&mut self, figure: Figure, sample: f64) {
        self.figures.entry(figure).or_default().0.push(sample);
    }

    pub(crate) fn median(&self, figure: Figure) -> Option<f64> {
        Some(self.figures.get(&figure)?.median())
    }

    /// How many line reads a lookup takes, round by round.
    pub(crate) fn line_reads(&self, lookup: Figure) -> Option<Samples> {
        let limit = self.figures.get(&Figure::Limit)?;
        Some(self.figures.get(&lookup)?.over(limit))
    }

    /// Every sort of lookup in line reads, with its name in files.
    fn lookups_in_line_reads(&self) -> impl Iterator<Item = (String, Samples)> {
        let lookups = Figure::SINGLE.into_iter().chain(Figure::BATCH);
        lookups.filter_map(|lookup| {
            let name = format!("{}_line_reads", lookup.name());
            Some((name, self.line_reads(lookup)?))
        })
    }

    /// The mean time of a lookup over absent, present and mixed keys, round by round; `None`
    /// without such calls.
    pub(crate) fn lookup(&self, figures: [Figure; 3]) -> Option<Samples> {
        let [a, b, c] = figures.map(|figure| self.figures.get(&figure));
        let rounds = a?.0.iter().zip(&b?.0).zip(&c?.0);
        Some(Samples(
            rounds.map(|((a, b), c)| (a + b + c) / 3.0).collect(),
        ))
    }

    /// Single or batch lookups, whichever are faster.
    pub(crate) fn best_lookup(&self) -> Option<Samples> {
        let single = self.lookup(Figure::SINGLE)?;
        Some(single.or_less(self.lookup(Figure::BATCH)))
    }

    /// Bits per key above the least that any filter of its rate needs, log₂(1/ε). The rate is the
    /// one that the filter expects, or else the one that was measured; `None` where no false
    /// positive was seen.
    pub(crate) fn overhead(&self) -> Option<f64> {
        let measured = self.figures.get(&Figure::Fpr)?;
        let mean = measured.0.iter().sum::<f64>() / measured.0.len() as f64;
        let rate = self.median(Figure::Expected).unwrap_or(mean);
        let overhead = self.median(Figure::Bits)? + rate.log2();
        (rate > 0.0).then_some(overhead)
    }
}

/// A whole run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Run {
    /// Where and how: pairs of a name and a text.
    pub(crate) about: BTreeMap<String, String>,
    pub(crate) rows: Vec<Row>,
}

impl Run {
    pub(crate) fn find(&self, subject: &str, shape: Shape) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.subject == subject && row.shape == shape)
    }

    /// The shapes of all rows, each once, in their order.
    pub(crate) fn shapes(&self) -> Vec<Shape> {
        let mut shapes: Vec<Shape> = Vec::new();
        for row in &self.rows {
            if !shapes.contains(&row.shape) {
                shapes.push(row.shape);
            }
        }
        shapes
    }

    pub(crate) fn to_json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let mut figures = serde_json::Map::new();
            for (figure, samples) in &row.figures {
                let (low, high) = samples.range();
                figures.insert(
                    figure.name().into(),
                    json!({
                        "unit": figure.unit(),
                        "median": samples.median(),
                        "p10": low,
                        "p90": high,
                        "samples": samples.0,
                    }),
                );
            }
            for (name, reads) in row.lookups_in_line_reads() {
                figures.insert(name, json!({ "unit": "×", "median": reads.median() }));
            }
            json!({
                "subject": row.subject,
                "family": row.family,
                "ours": row.ours,
                "n": row.shape.n,
                "fpr": row.shape.fpr,
                "keys": row.shape.keys.name(),
                "false_negatives": row.false_negatives,
                "figures": figures,
            })
        });
        json!({ "about": self.about, "rows": rows.collect::<Vec<_>>() })
    }

    /// Reads what [`to_json`](Self::to_json) wrote; figures of another version are passed over,
    /// and what an earlier one did not write was then the only choice.
    pub(crate) fn from_json(value: &Value) -> Option<Run> {
        let rows = value["rows"].as_array()?.iter().map(|row| {
            let figures = row["figures"].as_object()?.iter();
            let figures = figures.filter_map(|(name, figure)| {
                let samples = figure["samples"].as_array()?.iter();
                let samples: Option<Vec<f64>> = samples.map(Value::as_f64).collect();
                Some((Figure::of_name(name)?, Samples(samples?)))
            });
            Some(Row {
                subject: row["subject"].as_str()?.into(),
                family: row["family"].as_str().unwrap_or("other").into(),
                ours: row["ours"].as_bool()?,
                shape: Shape {
                    n: row["n"].as_u64()? as usize,
                    fpr: row["fpr"].as_f64()?,
                    keys: match row["keys"].as_str() {
                        Some(name) => KeyType::of_name(name)?,
                        None => KeyType::U64,
                    },
                },
                figures: figures.collect(),
                false_negatives: row["false_negatives"].as_u64()?,
            })
        });
        let about = value["about"].as_object()?.iter();
        Some(Run {
            about: about
                .map(|(name, text)| Some((name.clone(), text.as_str()?.into())))
                .collect::<Option<_>>()?,
            rows: rows.collect::<Option<_>>()?,
        })
    }

    /// One line per figure, for spreadsheets.
    pub(crate) fn to_csv(&self) -> String {
        let mut text = String::from("subject,n,fpr,keys,figure,unit,median,p10,p90,rounds\n");
        for row in &self.rows {
            let figures = row.figures.iter();
            let figures = figures.map(|(f, samples)| (f.name().into(), f.unit(), samples.clone()));
            let reads = row.lookups_in_line_reads();
            let reads = reads.map(|(name, reads)| (name, "×", reads));
            for (name, unit, samples) in figures.chain(reads) {
                let (low, high) = samples.range();
                text += &format!(
                    "{},{},{},{},{name},{unit},{},{low},{high},{}\n",
                    row.subject,
                    row.shape.n,
                    row.shape.fpr,
                    row.shape.keys.name(),
                    samples.median(),
                    samples.0.len(),
                );
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        let mut row = Row {
            subject: "cuckoo".into(),
            family: "cuckoo".into(),
            ours: true,
            shape: Shape {
                n: 1000,
                fpr: 0.01,
                keys: KeyType::Strings,
            },
            ..Row::default()
        };
        for (i, figure) in Figure::ALL.into_iter().enumerate() {
            row.record(figure, 1.0 + i as f64);
            row.record(figure, 2.5 + i as f64);
        }
        Run {
            about: BTreeMap::from([("cpu".into(), "some".into())]),
            rows: vec![row],
        }
    }

    #[test]
    fn json_is_read_back_as_it_was() {
        let run = run();
        let text = run.to_json().to_string();
        let value = serde_json::from_str(&text).unwrap();
        assert_eq!(Run::from_json(&value), Some(run));
        assert_eq!(Run::from_json(&json!({ "rows": [{}] })), None);
    }

    #[test]
    fn csv_has_a_line_per_figure() {
        let csv = run().to_csv();
        assert_eq!(csv.lines().count(), 1 + Figure::ALL.len() + 6);
        let columns = |line: &str| line.split(',').count();
        assert!(csv.lines().all(|line| columns(line) == 10), "{csv}");
    }

    #[test]
    fn a_lookup_is_the_mean_of_three_workloads_in_each_round() {
        let row = &run().rows[0];
        // absent, present and half are 8, 9, 10 in the first round.
        assert_eq!(row.lookup(Figure::SINGLE), Some(Samples(vec![9.0, 10.5])));
        assert_eq!(row.best_lookup(), row.lookup(Figure::SINGLE));
        assert_eq!(Row::default().lookup(Figure::BATCH), None);
        let reads = row.line_reads(Figure::AbsentBatch).unwrap();
        assert_eq!(reads.0[0], 11.0 / 16.0);
    }

    #[test]
    fn the_overhead_is_above_the_lower_bound_of_the_rate_at_hand() {
        let mut row = Row::default();
        row.record(Figure::Bits, 10.0);
        row.record(Figure::Fpr, 0.0);
        assert_eq!(row.overhead(), None, "no false positive was seen");
        row.record(Figure::Fpr, 1.0 / 128.0);
        assert_eq!(row.overhead(), Some(2.0), "the mean of both rounds is 2⁻⁸");
        row.record(Figure::Expected, 1.0 / 512.0);
        assert_eq!(row.overhead(), Some(1.0));
    }

    #[test]
    fn a_run_of_an_earlier_version_is_read() {
        let row = json!({ "subject": "bloom", "ours": true, "typed": true, "n": 10, "fpr": 0.5,
            "false_negatives": 0, "figures": {} });
        let run = Run::from_json(&json!({ "about": {}, "rows": [row] })).unwrap();
        assert_eq!(run.rows[0].shape.keys, KeyType::U64);
    }
}
