//! Two runs side by side: what became better or worse by more than the rounds differ among
//! themselves.

use crate::figures::{Figure, Row, Run};
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
/// Rounds that are enough: of five and five of the same thing, all of one run lie above all of
/// the other, or below, by chance in one case of 126, of three and three in one of ten. The
/// ranges compared are a little narrower than that.
const ENOUGH: usize = 5;
/// Rounds that are enough for what hardly differs from one to the next.
const ENOUGH_OF_STEADY: usize = 3;

/// Whether a figure changed: the medians differ, and the ranges from p10 to p90 do not overlap.
///
/// A ratio of the medians below `least` is no change, nor one below [`LEAST_OF_FEW`] of few
/// rounds.
fn verdict(figure: Figure, old: &Samples, new: &Samples, least: f64) -> Verdict {
    let enough = if figure.unit() == "ns" {
        ENOUGH
    } else {
        ENOUGH_OF_STEADY
    };
    let few = old.0.len().min(new.0.len()) < enough;
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

/// The comparison as text, and how many figures of the library's own kinds became worse; `None`
/// if the runs have none in common.
pub(crate) fn compare(old: &Run, new: &Run, least: f64, all: bool) -> Option<(String, usize)> {
    let mut text = String::new();
    for (name, before) in &old.about {
        let now = new.about.get(name).map_or("unknown", String::as_str);
        if now != before && name != "load" && name != "took" {
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
            if !row.ours && figure.is_a_subjects_time() && ratio.is_finite() {
                rivals.0.push(ratio);
            }
            compared += 1;
            let verdict = verdict(*figure, old_samples, samples, least);
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
    text += &quotients_apart(old, new).map_or(String::new(), |apart| {
        let within = apart.0.iter().filter(|apart| **apart <= REPEATED).count();
        format!(
            "ours over rivals' times, each with each: {within} of {} quotients within {:.0} % of the earlier ones, {:.1} % apart in the median\n",
            apart.0.len(),
            (REPEATED - 1.0) * 100.0,
            (apart.median() - 1.0) * 100.0,
        )
    });
    (compared > 0).then_some((text, worse))
}

/// Quotients that differ by less repeat.
const REPEATED: f64 = 1.1;

/// By how much the quotients of our times and rivals', of the same figure and shape, differ in
/// two runs: 1 or more each. What slows the whole machine for an hour does not show in them.
/// `None` if there are none.
fn quotients_apart(old: &Run, new: &Run) -> Option<Samples> {
    let mut apart = Samples::default();
    let rows = || new.rows.iter();
    for ours in rows().filter(|row| row.ours) {
        for theirs in rows().filter(|row| !row.ours && row.shape == ours.shape) {
            let times = ours.figures.keys().filter(|f| f.is_a_subjects_time());
            apart.0.extend(times.filter_map(|figure| {
                let quotient = |run: &Run| {
                    let samples =
                        |row: &Row| run.find(&row.subject, row.shape)?.figures.get(figure);
                    Some(samples(ours)?.over(samples(theirs)?).median())
                };
                let ratio = quotient(new)? / quotient(old)?;
                Some(ratio.max(ratio.recip())).filter(|apart| apart.is_finite())
            }));
        }
    }
    (!apart.0.is_empty()).then_some(apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(samples: &[f64]) -> Samples {
        Samples(samples.to_vec())
    }

    fn of_times(old: &[f64], new: &[f64]) -> Verdict {
        verdict(Figure::Absent, &of(old), &of(new), LEAST)
    }

    #[test]
    fn a_change_within_the_spread_is_none() {
        let noisy = [8.0, 9.0, 10.0, 11.0, 12.0];
        let later = [9.0, 10.0, 11.5, 12.0, 13.0];
        assert_eq!(of_times(&noisy, &later), Verdict::Same);
        assert_eq!(of_times(&noisy, &noisy), Verdict::Same);
    }

    #[test]
    fn a_change_beyond_the_spread_is_told_either_way() {
        let slow = [8.7, 8.8, 8.8, 8.9, 8.9];
        let fast = [8.0, 8.1, 8.1, 8.2, 8.2];
        assert_eq!(of_times(&fast, &slow), Verdict::Worse);
        assert_eq!(of_times(&slow, &fast), Verdict::Better);
    }

    #[test]
    fn a_tiny_change_is_none_however_quiet() {
        assert_eq!(of_times(&[10.0; 5], &[10.2; 5]), Verdict::Same);
        assert_eq!(of_times(&[10.0; 5], &[10.4; 5]), Verdict::Worse);
    }

    #[test]
    fn few_rounds_must_differ_more() {
        for rounds in [1, 2, 3, 4] {
            let verdict = |to| of_times(&vec![10.0; rounds], &vec![to; rounds]);
            assert_eq!(verdict(11.0), Verdict::Same);
            assert_eq!(verdict(12.0), Verdict::Worse);
        }
        assert_eq!(of_times(&[], &[1.0]), Verdict::Same);
    }

    #[test]
    fn space_is_known_after_few_rounds() {
        let verdict = |rounds| {
            let (old, new) = (of(&vec![10.0; rounds]), of(&vec![11.0; rounds]));
            verdict(Figure::Bits, &old, &new, LEAST)
        };
        assert_eq!((verdict(2), verdict(3)), (Verdict::Same, Verdict::Worse));
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
    fn quotients_repeat_however_slow_the_machine_has_become() {
        let run = |ours: f64, theirs: f64| {
            let row = |subject: &str, is_ours, ns| {
                let mut row = Row {
                    subject: subject.into(),
                    ours: is_ours,
                    ..Row::default()
                };
                for figure in [Figure::Absent, Figure::Half, Figure::Limit, Figure::Bits] {
                    row.record(figure, ns);
                }
                row
            };
            let rows = vec![row("bloom", true, ours), row("rival", false, theirs)];
            Run {
                rows,
                ..Run::default()
            }
        };
        let line = |new: &Run| {
            let (text, _) = compare(&run(2.0, 6.0), new, LEAST, false).unwrap();
            text.lines().last().unwrap().to_string()
        };
        let same = line(&run(4.0, 12.0));
        assert!(same.contains("2 of 2") && same.contains(" 0.0 %"), "{same}");
        for apart in [line(&run(2.0, 7.5)), line(&run(2.5, 6.0))] {
            let is_told = apart.contains("0 of 2") && apart.contains(" 25.0 %");
            assert!(is_told, "{apart}");
        }
        let alone = |ours| Run {
            rows: run(ours, 1.0).rows[..1].to_vec(),
            ..Run::default()
        };
        assert_eq!(quotients_apart(&alone(1.0), &alone(2.0)), None);
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
