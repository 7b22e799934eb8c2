//! The targets, in one table, and whether a run meets them.

use crate::clock::Clock;
use crate::figures::{Figure, Row, Run, Shape};
use crate::keys::KeyType;
use crate::stats::Samples;

/// Something that the library sets out to reach.
pub(crate) struct Target {
    /// Whether it is held: one that is not reached yet is reported, and fails no check.
    pub(crate) held: bool,
    pub(crate) ours: &'static str,
    pub(crate) n: usize,
    pub(crate) fpr: f64,
    pub(crate) goal: Goal,
}

pub(crate) enum Goal {
    /// Our batch lookups are this many times as fast as the rival's best lookups, single or batch.
    Batch { rival: &'static str, times: f64 },
    /// Our batch lookups of absent keys, against the rival's faster way of looking them up.
    AbsentBatch { rival: &'static str, times: f64 },
    /// Our batch lookups of absent keys take at most this many times as long as at another rate.
    AnyRate { other: f64, most: f64 },
    /// Our insertions one by one, on average over a whole fill, against the rival's.
    Insert { rival: &'static str, times: f64 },
    /// The same in batches, against the rival's faster way.
    InsertBatch { rival: &'static str, times: f64 },
    /// Our single lookups against the rival's single ones.
    Single { rival: &'static str, times: f64 },
    /// Our build on several threads against our build on one.
    Threads { times: f64 },
    /// Our build against the rival's.
    Build { rival: &'static str, times: f64 },
    /// A batch lookup takes at most this many line reads.
    LineReads { most: f64 },
    /// The heap at the peak of a build, in bits per key, is at most this.
    Peak { most: f64 },
    /// The heap that the filter holds, in bits per key, is at most this.
    Bits { most: f64 },
}

const ONE_PERCENT: f64 = 0.01;
const EIGHT_BITS: f64 = 1.0 / 256.0;
const HUNDREDTH_PERCENT: f64 = 0.0001;
/// Targets are measured on one thread and on this many.
pub(crate) const THREADS: usize = 2;
const TEN_MILLION: usize = 10_000_000;

const fn target(ours: &'static str, fpr: f64, goal: Goal) -> Target {
    Target {
        held: true,
        ours,
        n: TEN_MILLION,
        fpr,
        goal,
    }
}

const fn later(ours: &'static str, fpr: f64, goal: Goal) -> Target {
    Target {
        held: false,
        ..target(ours, fpr, goal)
    }
}

/// Every target: a ratio on the same keys and machine, at the same time. Those for later become `target`s once they are
/// met on a quiet machine.
pub(crate) const TARGETS: &[Target] = &[
    target(
        "split_block",
        ONE_PERCENT,
        Goal::Batch {
            rival: "sbbf-rs",
            times: 1.4,
        },
    ),
    target(
        "binary_fuse8",
        EIGHT_BITS,
        Goal::Batch {
            rival: "xorf/BinaryFuse8",
            times: 1.3,
        },
    ),
    target(
        "binary_fuse8",
        EIGHT_BITS,
        Goal::Batch {
            rival: "sux/VFilter8",
            times: 1.3,
        },
    ),
    // At this rate our cuckoo filter has 11 bits by itself; with 12 it has half the rate in a larger table.
    target(
        "tinyset",
        EIGHT_BITS,
        Goal::AbsentBatch {
            rival: "cuckoo12",
            times: 1.0,
        },
    ),
    target(
        "tinyset",
        EIGHT_BITS,
        Goal::InsertBatch {
            rival: "cuckoo12",
            times: 1.0,
        },
    ),
    // One by one an insertion of ours is too many instructions for the processor to begin the next one's line read.
    later(
        "tinyset",
        EIGHT_BITS,
        Goal::Insert {
            rival: "cuckoo12",
            times: 1.0,
        },
    ),
    target(
        "tinyset",
        EIGHT_BITS,
        Goal::AbsentBatch {
            rival: "cuckoo",
            times: 0.8,
        },
    ),
    later(
        "tinyset",
        EIGHT_BITS,
        Goal::Insert {
            rival: "cuckoo",
            times: 1.0,
        },
    ),
    target(
        "tinyset",
        ONE_PERCENT,
        Goal::AbsentBatch {
            rival: "cuckoo",
            times: 0.8,
        },
    ),
    target(
        "tinyset",
        HUNDREDTH_PERCENT,
        Goal::AnyRate {
            other: ONE_PERCENT,
            most: 1.2,
        },
    ),
    target(
        "tinyset",
        EIGHT_BITS,
        Goal::AbsentBatch {
            rival: "qfilter",
            times: 2.0,
        },
    ),
    target(
        "tinyset",
        EIGHT_BITS,
        Goal::Build {
            rival: "cuckoo",
            times: 1.0,
        },
    ),
    Target {
        n: 10 * TEN_MILLION,
        ..target(
            "split_block",
            ONE_PERCENT,
            Goal::Batch {
                rival: "sbbf-rs",
                times: 2.2,
            },
        )
    },
    target("binary_fuse8", EIGHT_BITS, Goal::LineReads { most: 3.9 }),
    target(
        "ribbon_bumped",
        EIGHT_BITS,
        Goal::Build {
            rival: "xorf/BinaryFuse8",
            times: 1.0 / 1.5,
        },
    ),
    target(
        "ribbon_bumped",
        EIGHT_BITS,
        Goal::Batch {
            rival: "pleat",
            times: 1.0,
        },
    ),
    target(
        "ribbon_bumped",
        EIGHT_BITS,
        Goal::Single {
            rival: "pleat",
            times: 1.0,
        },
    ),
    target(
        "binary_fuse8",
        EIGHT_BITS,
        Goal::Build {
            rival: "xorf/BinaryFuse8",
            times: 2.0,
        },
    ),
    target("binary_fuse8", EIGHT_BITS, Goal::Peak { most: 100.0 }),
    target("tinyset", EIGHT_BITS, Goal::Bits { most: 10.5 }),
    target("ribbon_bumped", EIGHT_BITS, Goal::Bits { most: 8.04 }),
    target("binary_fuse8", EIGHT_BITS, Goal::Threads { times: 1.7 }),
    Target {
        n: 10 * TEN_MILLION,
        ..target(
            "binary_fuse8",
            EIGHT_BITS,
            Goal::Build {
                rival: "xorf/BinaryFuse8",
                times: 2.0,
            },
        )
    },
    Target {
        n: 10 * TEN_MILLION,
        ..target("binary_fuse8", EIGHT_BITS, Goal::Threads { times: 1.7 })
    },
    Target {
        n: 10 * TEN_MILLION,
        ..target("binary_fuse8", EIGHT_BITS, Goal::Bits { most: 8.9 })
    },
    Target {
        n: 10 * TEN_MILLION,
        ..target(
            "binary_fuse8",
            EIGHT_BITS,
            Goal::Batch {
                rival: "xorf/BinaryFuse8",
                times: 1.7,
            },
        )
    },
    later(
        "binary_fuse8",
        EIGHT_BITS,
        Goal::Single {
            rival: "xorf/BinaryFuse8",
            times: 1.0,
        },
    ),
    // Single calls are compared with those of the same filter, here of blocks of 256 bits.
    later(
        "split_block_256",
        ONE_PERCENT,
        Goal::Single {
            rival: "sbbf-rs",
            times: 1.0,
        },
    ),
    target(
        "cuckoo",
        EIGHT_BITS,
        Goal::Batch {
            rival: "autoscale_cuckoo_filter",
            times: 1.3,
        },
    ),
    target(
        "cuckoo",
        EIGHT_BITS,
        Goal::Build {
            rival: "autoscale_cuckoo_filter",
            times: 1.0,
        },
    ),
    target(
        "cuckoo",
        EIGHT_BITS,
        Goal::Single {
            rival: "autoscale_cuckoo_filter",
            times: 1.0,
        },
    ),
    target(
        "bloom",
        ONE_PERCENT,
        Goal::Batch {
            rival: "fastbloom",
            times: 1.5,
        },
    ),
    later(
        "bloom",
        ONE_PERCENT,
        Goal::Single {
            rival: "fastbloom",
            times: 1.0,
        },
    ),
];

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

    /// What threads gain shows in time that passes alone; of all else, processor time says more on a busy machine.
    pub(crate) fn clock(&self) -> Clock {
        match self.goal {
            Goal::Threads { .. } => Clock::Wall,
            _ => Clock::Cpu,
        }
    }

    /// How far we are, sample by sample, and how far we should be; more is better. `None` if it was not measured.
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

    /// What else a reader should know of a run: of threads, what the machine has to give to as many builds that have
    /// nothing to do with each other.
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

/// The faster of a rival's single and batch calls, in each round; it may have no batch.
fn fastest(rival: &Row, single: Figure, batch: Figure) -> Option<Samples> {
    let single = rival.figures.get(&single)?;
    let Some(batch) = rival.figures.get(&batch) else {
        return Some(single.clone());
    };
    let rounds = single.0.iter().zip(&batch.0);
    Some(Samples(rounds.map(|(a, b)| a.min(*b)).collect()))
}

/// The verdict on every target as text, and how many that are held were missed. Each is judged by a run of its own.
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

    /// A run in which our lookups take `ours` ns, single and batch, and the rival's single ones `theirs`.
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
        let (rival, times) = ("fastbloom", 1.5);
        let goal = Goal::Batch { rival, times };
        if held {
            target("bloom", ONE_PERCENT, goal)
        } else {
            later("bloom", ONE_PERCENT, goal)
        }
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
