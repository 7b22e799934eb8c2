//! Two runs side by side: what became better or worse by more than the rounds differ among themselves.

use crate::figures::{Figure, Run};
use crate::stats::Samples;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Better,
    Same,
    Worse,
}

/// A smaller ratio is no change, however quiet the rounds were.
pub(crate) const LEAST: f64 = 1.03;
/// Nor is one below this, if there were too few rounds to know how much they differ.
const LEAST_OF_FEW: f64 = 1.15;

/// Whether a figure changed: the medians differ, and the ranges from p10 to p90 do not overlap.
///
/// A ratio of the medians below `least` is no change, nor one below [`LEAST_OF_FEW`] of few rounds.
pub(crate) fn verdict(old: &Samples, new: &Samples, least: f64) -> Verdict {
    let few = old.0.len().min(new.0.len()) < 3;
    let least = if few { least.max(LEAST_OF_FEW) } else { least };
    let ((old_low, old_high), (new_low, new_high)) = (old.range(), new.range());
    if new_low > old_high && new.median() > old.median() * least {
        Verdict::Worse
    } else if new_high < old_low && new.median() * least < old.median() {
        Verdict::Better
    } else {
        Verdict::Same
    }
}

/// The comparison as text, and how many figures of the library's own kinds became worse; `None` if the runs have none in
/// common.
pub(crate) fn compare(old: &Run, new: &Run, least: f64, all: bool) -> Option<(String, usize)> {
    let mut text = String::new();
    for (name, before) in &old.about {
        let now = new.about.get(name).map_or("unknown", String::as_str);
        if now != before && name != "load" {
            text += &format!("{name}: {before} → {now}\n");
        }
    }
    let (mut worse, mut better, mut compared) = (0, 0, 0);
    // Who is no longer there, or no longer measured, has not stayed as it was.
    for row in old.rows.iter().filter(|row| row.ours) {
        let now = new.find(&row.subject, row.shape);
        let is_gone = |figure: &&Figure| now.is_some_and(|now| !now.figures.contains_key(figure));
        let gone: Vec<&str> = row
            .figures
            .keys()
            .filter(is_gone)
            .map(|f| f.name())
            .collect();
        let what = match now {
            None => "is gone".into(),
            Some(_) if !gone.is_empty() => format!("is no longer measured: {}", gone.join(", ")),
            Some(now) if now.false_negatives > row.false_negatives => {
                format!("lost keys: {} false negatives", now.false_negatives)
            }
            Some(_) => continue,
        };
        worse += 1;
        text += &format!(
            "{:<24} {:<32} WORSE: {what}\n",
            row.subject,
            row.shape.to_string()
        );
    }
    let mut rivals = Samples::default();
    for row in &new.rows {
        let Some(before) = old.find(&row.subject, row.shape) else {
            continue;
        };
        for (figure, samples) in &row.figures {
            let Some(old_samples) = before.figures.get(figure) else {
                continue;
            };
            // The limit belongs to the machine, not to a subject.
            if *figure == Figure::Limit {
                continue;
            }
            let ratio = samples.median() / old_samples.median();
            if !row.ours && figure.unit() == "ns" && ratio.is_finite() {
                rivals.0.push(ratio);
            }
            compared += 1;
            let verdict = verdict(old_samples, samples, least);
            match verdict {
                Verdict::Worse if row.ours => worse += 1,
                Verdict::Better if row.ours => better += 1,
                _ => {}
            }
            if all || (verdict != Verdict::Same && row.ours) {
                let word = match verdict {
                    Verdict::Worse => "WORSE",
                    Verdict::Better => "better",
                    Verdict::Same => "",
                };
                text += &format!(
                    "{:<24} {:<32} {:<18} {:>9.4} → {:>9.4} {:<8} ×{ratio:<6.3} {word}\n",
                    row.subject,
                    row.shape.to_string(),
                    figure.name(),
                    old_samples.median(),
                    samples.median(),
                    figure.unit(),
                );
            }
        }
    }
    text += &format!("{compared} figures compared; of our kinds {better} better, {worse} worse\n");
    if !rivals.0.is_empty() {
        text += &format!(
            "the rivals' times, which did not change in themselves: ×{:.3} in the median\n",
            rivals.median()
        );
    }
    (compared > 0).then_some((text, worse))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Row;

    fn of(samples: &[f64]) -> Samples {
        Samples(samples.to_vec())
    }

    #[test]
    fn a_change_within_the_spread_is_none() {
        let noisy = of(&[8.0, 10.0, 12.0]);
        assert_eq!(
            verdict(&noisy, &of(&[9.0, 11.5, 13.0]), LEAST),
            Verdict::Same
        );
        assert_eq!(verdict(&noisy, &noisy, LEAST), Verdict::Same);
    }

    #[test]
    fn a_change_beyond_the_spread_is_told_either_way() {
        let (slow, fast) = (of(&[10.0, 10.1, 10.2]), of(&[8.0, 8.1, 8.2]));
        assert_eq!(verdict(&fast, &slow, LEAST), Verdict::Worse);
        assert_eq!(verdict(&slow, &fast, LEAST), Verdict::Better);
    }

    #[test]
    fn a_tiny_change_is_none_however_quiet() {
        let (old, new) = (of(&[10.0; 5]), of(&[10.2; 5]));
        assert_eq!(verdict(&old, &new, LEAST), Verdict::Same);
        assert_eq!(verdict(&old, &of(&[10.4; 5]), LEAST), Verdict::Worse);
    }

    #[test]
    fn few_rounds_must_differ_more() {
        assert_eq!(verdict(&of(&[10.0]), &of(&[11.0]), LEAST), Verdict::Same);
        assert_eq!(verdict(&of(&[10.0]), &of(&[12.0]), LEAST), Verdict::Worse);
        assert_eq!(verdict(&of(&[]), &of(&[1.0]), LEAST), Verdict::Same);
    }

    #[test]
    fn what_vanished_or_loses_keys_became_worse() {
        let row = |subject: &str| {
            let mut row = Row {
                subject: subject.into(),
                ours: true,
                ..Row::default()
            };
            row.record(Figure::Absent, 1.0);
            row
        };
        let of = |rows| Run {
            rows,
            ..Run::default()
        };
        let old = of(vec![row("cuckoo"), row("bloom")]);
        let worse = |new: &Run| compare(&old, new, LEAST, false).unwrap();
        assert_eq!(worse(&old).1, 0);
        let (text, count) = worse(&of(vec![row("bloom")]));
        assert!(count == 1 && text.contains("is gone"), "{text}");
        let mut lost = old.clone();
        lost.rows[1].false_negatives = 1;
        assert_eq!(worse(&lost).1, 1);
        let mut less = old.clone();
        less.rows[1].record(Figure::Present, 1.0);
        let (text, count) = compare(&less, &old, LEAST, false).unwrap();
        assert!(count == 1 && text.contains("present"), "{text}");
    }

    #[test]
    fn only_our_own_regressions_count() {
        let run = |ns: f64| {
            let row = |subject: &str, ours| {
                let mut row = Row {
                    subject: subject.into(),
                    ours,
                    ..Row::default()
                };
                for _ in 0..3 {
                    row.record(Figure::Absent, ns);
                    row.record(Figure::Limit, ns);
                }
                row
            };
            Run {
                rows: vec![row("cuckoo", true), row("rival", false)],
                ..Run::default()
            }
        };
        let (text, worse) = compare(&run(1.0), &run(2.0), LEAST, false).unwrap();
        assert_eq!(worse, 1, "{text}");
        assert!(text.contains("WORSE") && text.contains("×2.000 in the median"));
        assert_eq!(compare(&run(2.0), &run(1.0), LEAST, true).unwrap().1, 0);
        assert_eq!(compare(&run(2.0), &Run::default(), LEAST, true), None);
    }
}
