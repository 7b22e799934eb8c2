//! The figures that are taken of a subject: names, units, and what a run found, in memory and as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::stats::Samples;

/// One thing that is measured. All are better when smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Figure {
    Bits,
    Peak,
    Fpr,
    Build,
    Insert,
    Absent,
    Present,
    Half,
    AbsentBatch,
    PresentBatch,
    HalfBatch,
    Remove,
    Limit,
}

impl Figure {
    pub(crate) const ALL: [Figure; 13] = [
        Figure::Bits,
        Figure::Peak,
        Figure::Fpr,
        Figure::Build,
        Figure::Insert,
        Figure::Absent,
        Figure::Present,
        Figure::Half,
        Figure::AbsentBatch,
        Figure::PresentBatch,
        Figure::HalfBatch,
        Figure::Remove,
        Figure::Limit,
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
            Figure::Build => "build",
            Figure::Insert => "insert",
            Figure::Absent => "absent",
            Figure::Present => "present",
            Figure::Half => "half",
            Figure::AbsentBatch => "absent_batch",
            Figure::PresentBatch => "present_batch",
            Figure::HalfBatch => "half_batch",
            Figure::Remove => "remove",
            Figure::Limit => "limit",
        }
    }

    pub(crate) fn unit(self) -> &'static str {
        match self {
            Figure::Bits | Figure::Peak => "bits/key",
            Figure::Fpr => "rate",
            _ => "ns",
        }
    }

    fn of_name(name: &str) -> Option<Figure> {
        Figure::ALL.into_iter().find(|figure| figure.name() == name)
    }
}

/// What was found of one subject at one size and rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) subject: String,
    pub(crate) ours: bool,
    /// Single calls are of the type's own; otherwise dynamic.
    pub(crate) typed: bool,
    pub(crate) n: usize,
    /// The rate that was asked for.
    pub(crate) fpr: f64,
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

    /// How many line reads a lookup of the batch takes, round by round.
    pub(crate) fn line_reads(&self, batch: Figure) -> Option<Samples> {
        let limit = self.figures.get(&Figure::Limit)?;
        Some(self.figures.get(&batch)?.over(limit))
    }

    /// The mean time of a lookup over absent, present and mixed keys, round by round; `None` without such calls.
    pub(crate) fn lookup(&self, figures: [Figure; 3]) -> Option<Samples> {
        let [a, b, c] = figures.map(|figure| self.figures.get(&figure));
        let rounds = a?.0.iter().zip(&b?.0).zip(&c?.0);
        Some(Samples(
            rounds.map(|((a, b), c)| (a + b + c) / 3.0).collect(),
        ))
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
    pub(crate) fn find(&self, subject: &str, n: usize, fpr: f64) -> Option<&Row> {
        self.rows
            .iter()
            .find(|row| row.subject == subject && row.n == n && row.fpr == fpr)
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
            for batch in Figure::BATCH {
                if let Some(reads) = row.line_reads(batch) {
                    let name = format!("{}_line_reads", batch.name());
                    figures.insert(name, json!({ "unit": "×", "median": reads.median() }));
                }
            }
            json!({
                "subject": row.subject,
                "ours": row.ours,
                "typed": row.typed,
                "n": row.n,
                "fpr": row.fpr,
                "false_negatives": row.false_negatives,
                "figures": figures,
            })
        });
        json!({ "about": self.about, "rows": rows.collect::<Vec<_>>() })
    }

    /// Reads what [`to_json`](Self::to_json) wrote; figures of another version are passed over.
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
                ours: row["ours"].as_bool()?,
                typed: row["typed"].as_bool()?,
                n: row["n"].as_u64()? as usize,
                fpr: row["fpr"].as_f64()?,
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
        let mut text = String::from("subject,n,fpr,figure,unit,median,p10,p90,rounds\n");
        for row in &self.rows {
            for (figure, samples) in &row.figures {
                let (low, high) = samples.range();
                text += &format!(
                    "{},{},{},{},{},{},{low},{high},{}\n",
                    row.subject,
                    row.n,
                    row.fpr,
                    figure.name(),
                    figure.unit(),
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
            ours: true,
            typed: true,
            n: 1000,
            fpr: 0.01,
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
        assert_eq!(csv.lines().count(), 1 + Figure::ALL.len());
        let columns = |line: &str| line.split(',').count();
        assert!(csv.lines().all(|line| columns(line) == 9), "{csv}");
    }

    #[test]
    fn a_lookup_is_the_mean_of_three_workloads_in_each_round() {
        let row = &run().rows[0];
        // absent, present and half are 6, 7, 8 in the first round.
        assert_eq!(row.lookup(Figure::SINGLE), Some(Samples(vec![7.0, 8.5])));
        assert_eq!(Row::default().lookup(Figure::BATCH), None);
        let reads = row.line_reads(Figure::AbsentBatch).unwrap();
        assert_eq!(reads.0[0], 9.0 / 13.0);
    }
}
