//! Whether a run meets the targets, and by how much.

use crate::clock::Clock;
use crate::figures::{Figure, Row, Run, Shape};
use crate::keys::KeyType;
use crate::stats::Samples;
use crate::targets::{Goal, Target};

/// Targets are measured on one thread and on this many.
pub(crate) const THREADS: usize = 2;

impl Target {
    fn rival(&self) -> Option<&'static str> {
        match self.goal {
            Goal::Batch { rival, .. }
            | Goal::AbsentBatch { rival, .. }
            | Goal::Insert { rival, .. }
            | Goal::InsertBatch { rival, .. }
            | Goal::Single { rival, .. }
            | Goal::Build { rival, .. } => Some(rival),
            Goal::AnyRate { .. }
            | Goal::Threads { .. }
            | Goal::LineReads { .. }
            | Goal::Peak { .. }
            | Goal::Bits { .. } => None,
        }
    }

    /// Everyone whom the target speaks of: us, and the rival or ourselves at another rate.
    pub(crate) fn sides(&self) -> Vec<(&'static str, Shape)> {
        let at = |fpr| Shape {
            fpr,
            ..self.shape()
        };
        let rival = self.rival().map(|rival| (rival, self.shape()));
        let other = match self.goal {
            Goal::AnyRate { other, .. } => Some((self.ours, at(other))),
            _ => None,
        };
        let ours = std::iter::once((self.ours, self.shape()));
        ours.chain(rival).chain(other).collect()
    }

    /// Targets are of words: their hashes cost the same for everyone.
    pub(crate) fn shape(&self) -> Shape {
        Shape {
            n: self.n,
            fpr: self.fpr,
            keys: KeyType::U64,
        }
    }

    /// What must be measured of everyone in it.
    pub(crate) fn figures(&self) -> Vec<Figure> {
        match self.goal {
            Goal::Batch { .. } => [Figure::SINGLE, Figure::BATCH].concat(),
            Goal::AbsentBatch { .. } => vec![Figure::Absent, Figure::AbsentBatch],
            Goal::AnyRate { .. } => vec![Figure::AbsentBatch],
            Goal::Insert { .. } => vec![Figure::Insert],
            Goal::InsertBatch { .. } => vec![Figure::Insert, Figure::InsertBatch],
            Goal::Single { .. } => Figure::SINGLE.to_vec(),
            Goal::Build { .. } => vec![Figure::Build],
            Goal::Threads { .. } => vec![Figure::Build, Figure::BuildThreads],
            Goal::LineReads { .. } => vec![Figure::HalfBatch, Figure::Limit],
            Goal::Peak { .. } => vec![Figure::Peak],
            Goal::Bits { .. } => vec![Figure::Bits],
        }
    }

    /// What threads gain shows in time that passes alone; of all else, processor time says more
    /// on a busy machine.
    pub(crate) fn clock(&self) -> Clock {
        match self.goal {
            Goal::Threads { .. } => Clock::Wall,
            _ => Clock::Cpu,
        }
    }

    /// How far we are, sample by sample, and how far we should be; more is better. `None` if it
    /// was not measured.
    fn reached(&self, run: &Run) -> Option<(Samples, f64)> {
        let ours = run.find(self.ours, self.shape())?;
        let rival = |name| run.find(name, self.shape());
        Some(match self.goal {
            Goal::Batch { rival: name, times } => (
                rival(name)?
                    .best_lookup()?
                    .over(&ours.lookup(Figure::BATCH)?),
                times,
            ),
            Goal::AbsentBatch { rival: name, times } => {
                let theirs = fastest(rival(name)?, Figure::Absent, Figure::AbsentBatch)?;
                let ours = ours.figures.get(&Figure::AbsentBatch)?;
                (theirs.over(ours), times)
            }
            Goal::AnyRate { other, most } => {
                let shape = Shape {
                    fpr: other,
                    ..self.shape()
                };
                let at_other = run
                    .find(self.ours, shape)?
                    .figures
                    .get(&Figure::AbsentBatch)?;
                let ratio = at_other.over(ours.figures.get(&Figure::AbsentBatch)?);
                (Samples(ratio.0.iter().map(|r| r * most).collect()), 1.0)
            }
            Goal::InsertBatch { rival: name, times } => {
                let theirs = fastest(rival(name)?, Figure::Insert, Figure::InsertBatch)?;
                (theirs.over(ours.figures.get(&Figure::InsertBatch)?), times)
            }
            Goal::Insert { rival: name, times } => {
                let theirs = rival(name)?.figures.get(&Figure::Insert)?;
                (theirs.over(ours.figures.get(&Figure::Insert)?), times)
            }
            Goal::Single { rival: name, times } => {
                let theirs = rival(name)?.lookup(Figure::SINGLE)?;
                (theirs.over(&ours.lookup(Figure::SINGLE)?), times)
            }
            Goal::Build { rival: name, times } => {
                let theirs = rival(name)?.figures.get(&Figure::Build)?;
                (theirs.over(ours.figures.get(&Figure::Build)?), times)
            }
            Goal::Threads { times } => {
                let one = ours.figures.get(&Figure::Build)?;
                (one.over(ours.figures.get(&Figure::BuildThreads)?), times)
            }
            Goal::LineReads { most } => {
                let reads = ours.line_reads(Figure::HalfBatch)?;
                (Samples(reads.0.iter().map(|r| most / r).collect()), 1.0)
            }
            Goal::Peak { most } => {
                let peak = ours.figures.get(&Figure::Peak)?;
                (Samples(peak.0.iter().map(|p| most / p).collect()), 1.0)
            }
            Goal::Bits { most } => {
                let bits = ours.figures.get(&Figure::Bits)?;
                (Samples(bits.0.iter().map(|b| most / b).collect()), 1.0)
            }
        })
    }

    /// What else a reader should know of a run: of threads, what the machine has to give to as
    /// many builds that have nothing to do with each other.
    fn beside(&self, run: &Run) -> Option<String> {
        let Goal::Threads { .. } = self.goal else {
            return None;
        };
        let ours = run.find(self.ours, self.shape())?;
        let apart = ours.figures.get(&Figure::BuildApart)?;
        let gain = ours.figures.get(&Figure::Build)?.over(apart).median();
        Some(format!("; {THREADS} builds apart gain {gain:.2}"))
    }

    /// Whether a run has what tells.
    pub(crate) fn is_told(&self, run: &Run) -> bool {
        self.reached(run).is_some()
    }

    fn sentence(&self) -> String {
        let (ours, n, percent) = (self.ours, self.n, self.fpr * 100.0);
        let what = match self.goal {
            Goal::Batch { rival, times } => format!("batch lookups {times}× as fast as {rival}"),
            Goal::AbsentBatch { rival, times } => {
                format!("batch lookups of absent keys {times}× as fast as {rival}")
            }
            Goal::AnyRate { other, most } => {
                let other = other * 100.0;
                format!("batch lookups of absent keys within {most}× the time at {other:.2} %")
            }
            Goal::Insert { rival, times } => {
                format!("insertions one by one {times}× as fast as {rival}, over a fill")
            }
            Goal::InsertBatch { rival, times } => {
                format!("insertions in batches {times}× as fast as {rival}, over a fill")
            }
            Goal::Threads { times } => {
                format!("build on {THREADS} threads {times}× as fast as on one")
            }
            Goal::Single { rival, times } => format!("single lookups {times}× as fast as {rival}"),
            Goal::Build { rival, times } => format!("build {times:.2}× as fast as {rival}"),
            Goal::LineReads { most } => format!("batch lookups within {most} line reads"),
            Goal::Peak { most } => format!("build within {most} bits/key of heap"),
            Goal::Bits { most } => format!("held in {most} bits/key"),
        };
        format!("{ours}: {what} (n = {n}, ε = {percent:.2} %)")
    }
}

/// A rival's single or batch calls, whichever are faster; it may have no batch.
fn fastest(rival: &Row, single: Figure, batch: Figure) -> Option<Samples> {
    let single = rival.figures.get(&single)?.clone();
    Some(single.or_less(rival.figures.get(&batch).cloned()))
}

/// The verdict on every target as text, and how many that are held were missed. Each is judged by
/// a run of its own.
pub(crate) fn check<'a>(
    judged: impl IntoIterator<Item = (&'a Target, &'a Run)>,
) -> (String, usize) {
    let (mut text, mut missed) = (String::new(), 0);
    for (target, run) in judged {
        let verdict = match target.reached(run) {
            None if target.held => {
                missed += 1;
                "MISSED   was not measured".to_string()
            }
            None => "later    was not measured".to_string(),
            Some((ratio, needed)) => {
                let (median, met) = (ratio.median(), ratio.median() >= needed);
                missed += usize::from(target.held && !met);
                let word = match (target.held, met) {
                    (true, true) => "met     ",
                    (true, false) => "MISSED  ",
                    (false, true) => "met soon",
                    (false, false) => "later   ",
                };
                let ((low, high), share) = (ratio.range(), median / needed * 100.0);
                format!("{word} {median:>5.2} of {needed:.2} ({low:.2}-{high:.2}; {share:.0} %)")
            }
        };
        let beside = target.beside(run).unwrap_or_default();
        text += &format!("{verdict:<48} {}{beside}\n", target.sentence());
    }
    text += &format!("{missed} targets missed\n");
    (text, missed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::{EIGHT_BITS, ONE_PERCENT, TARGETS, batch as batch_of, target};

    /// A run in which our lookups take `ours` ns, single and batch, and the rival's single ones
    /// `theirs`.
    fn run(ours: f64, theirs: f64) -> Run {
        let row = |subject: &str, ns: f64, figures: &[Figure]| {
            let mut row = Row {
                subject: subject.into(),
                shape: batch(true).shape(),
                ..Row::default()
            };
            for &figure in figures {
                let ns = if figure == Figure::Limit { 1.0 } else { ns };
                (0..3).for_each(|_| row.record(figure, ns));
            }
            row
        };
        let ours = row("bloom", ours, &Figure::ALL);
        Run {
            rows: vec![ours, row("fastbloom", theirs, &Figure::SINGLE)],
            ..Run::default()
        }
    }

    fn batch(held: bool) -> Target {
        let target = target("bloom", ONE_PERCENT, batch_of("fastbloom", 1.5));
        Target { held, ..target }
    }

    fn judge(target: &Target, run: &Run) -> (String, usize) {
        check([(target, run)])
    }

    #[test]
    fn a_target_is_met_at_its_ratio_and_missed_below() {
        for (theirs, missed) in [(14.9, 1), (15.0, 0), (20.0, 0)] {
            let (text, count) = judge(&batch(true), &run(10.0, theirs));
            assert_eq!(count, missed, "{text}");
        }
    }

    #[test]
    fn a_target_for_later_fails_no_check() {
        let (text, missed) = judge(&batch(false), &run(10.0, 5.0));
        assert!(missed == 0 && text.starts_with("later"), "{text}");
        let (text, _) = judge(&batch(false), &run(10.0, 50.0));
        assert!(text.starts_with("met soon"), "{text}");
    }

    #[test]
    fn what_was_not_measured_is_missed() {
        assert_eq!(judge(&batch(true), &Run::default()).1, 1);
        assert_eq!(judge(&batch(false), &Run::default()).1, 0);
    }

    #[test]
    fn limits_are_met_from_below() {
        let goal = |goal| target("bloom", ONE_PERCENT, goal);
        let run = run(10.0, 1.0);
        assert_eq!(judge(&goal(Goal::Peak { most: 10.0 }), &run).1, 0);
        assert_eq!(judge(&goal(Goal::Peak { most: 9.0 }), &run).1, 1);
        assert_eq!(judge(&goal(Goal::LineReads { most: 9.0 }), &run).1, 1);
        assert_eq!(judge(&goal(Goal::Bits { most: 10.0 }), &run).1, 0);
        assert_eq!(judge(&goal(Goal::Bits { most: 9.0 }), &run).1, 1);
    }

    #[test]
    fn insertions_and_absent_keys_are_compared_by_themselves() {
        let row = |subject: &str, fpr, figures: &[(Figure, f64)]| {
            let mut row = Row {
                subject: subject.into(),
                shape: Shape {
                    fpr,
                    ..batch(true).shape()
                },
                ..Row::default()
            };
            for &(figure, ns) in figures {
                row.record(figure, ns);
            }
            row
        };
        let ours = [
            (Figure::AbsentBatch, 10.0),
            (Figure::Insert, 10.0),
            (Figure::InsertBatch, 6.0),
            (Figure::Build, 9.0),
            (Figure::BuildThreads, 5.0),
            (Figure::BuildApart, 4.5),
        ];
        let theirs = [
            (Figure::Absent, 15.0),
            (Figure::AbsentBatch, 8.0),
            (Figure::Insert, 11.0),
            (Figure::InsertBatch, 9.0),
        ];
        let run = Run {
            rows: vec![
                row("tinyset", EIGHT_BITS, &ours),
                row("tinyset", ONE_PERCENT, &[(Figure::AbsentBatch, 8.4)]),
                row("cuckoo", EIGHT_BITS, &theirs),
            ],
            ..Run::default()
        };
        let (rival, other) = ("cuckoo", ONE_PERCENT);
        for (goal, missed) in [
            (Goal::AbsentBatch { rival, times: 0.8 }, 0),
            (Goal::AbsentBatch { rival, times: 0.9 }, 1),
            (Goal::Insert { rival, times: 1.0 }, 0),
            (Goal::Insert { rival, times: 1.2 }, 1),
            (Goal::InsertBatch { rival, times: 1.5 }, 0),
            (Goal::InsertBatch { rival, times: 1.6 }, 1),
            (Goal::Threads { times: 1.7 }, 0),
            (Goal::Threads { times: 1.9 }, 1),
            (Goal::AnyRate { other, most: 1.2 }, 0),
            (Goal::AnyRate { other, most: 1.1 }, 1),
        ] {
            let of_threads = matches!(goal, Goal::Threads { .. });
            let (text, count) = judge(&target("tinyset", EIGHT_BITS, goal), &run);
            assert_eq!(count, missed, "{text}");
            assert_eq!(
                text.contains("2 builds apart gain 2.00"),
                of_threads,
                "{text}"
            );
        }
    }

    #[test]
    fn a_target_of_two_rates_is_measured_at_both() {
        let other = EIGHT_BITS;
        let goal = Goal::AnyRate { other, most: 1.2 };
        let target = target("tinyset", ONE_PERCENT, goal);
        let sides = target.sides();
        let sides = sides.iter().map(|(who, shape)| (*who, shape.fpr));
        assert!(sides.eq([("tinyset", ONE_PERCENT), ("tinyset", EIGHT_BITS)]));
    }

    #[test]
    fn every_target_speaks_of_someone_who_is_measured() {
        let all = crate::subject::all();
        for target in TARGETS {
            for (name, _) in target.sides() {
                assert!(all.iter().any(|c| c.name == name), "{name}");
            }
        }
    }
}
