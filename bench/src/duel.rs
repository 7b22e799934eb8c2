//! Ratios that hold on a machine that others use, too: two filters are alive at once and take
//! turns of some milliseconds.
//!
//! ```text
//!  a run    │ ours: build, lookups, … │ another │ another │ theirs: build, lookups, … │
//!           seconds between the two
//!
//!  a duel   │ ours │ theirs │ theirs │ ours │ ours │ theirs │ …
//!           some milliseconds each
//! ```
//!
//! What else the machine does changes its caches and its clock from one second to the next, by
//! far more than two good filters differ. A slice of lookups of the one and of the other, of the
//! same keys, meets the same machine. But a filter that is in use finds its own lines in the
//! caches, and here the other one's: so each slice is preceded by as many lookups of other keys
//! that are not timed. The sides go there and back again, and a sample is the mean of both ways.
//! The quotients of samples are what is judged. A fill is sliced likewise, but counts as a whole:
//! filters slow down as they fill. Builds cannot be sliced, and take turns.

use std::hint::black_box;
use std::thread;

use crate::clock::{Clock, timed};
use crate::figures::{Figure, Row, Run, Shape};
use crate::heap;
use crate::keys::{Ask, KeyType, Keys};
use crate::limit::Lines;
use crate::plan;
use crate::subject::{Contestant, Subject, ThreadedBuild};

/// Keys of a slice: some milliseconds.
const SLICE: usize = 1 << 18;
/// Keys of a turn: those that fill the caches, and a slice.
const TURN: usize = 2 * SLICE;
/// Keys of a sample: a turn there and one back.
const SAMPLE: usize = 2 * TURN;
/// Samples of a round, of each sort of lookup. Where in memory a filter lies, on huge pages or
/// not, counts as much as what else the machine does: rather more rounds, each with filters of
/// its own, than more samples.
pub(crate) const SAMPLES: usize = 4;
/// Turns of builds on one thread and on several, in a round.
const TURNS: usize = 8;
/// Rounds of so many keys that one takes half a minute, at most; and turns.
const FEW: usize = 2;
const MANY: usize = 50_000_000;

/// One side of a duel.
pub(crate) struct Side<'a> {
    pub(crate) contestant: &'a Contestant,
    /// The sides may differ in the rate.
    pub(crate) shape: Shape,
}

/// A duel: who meets, and what is asked for. Builds and their memory are always measured.
pub(crate) struct Duel<'a> {
    pub(crate) sides: Vec<Side<'a>>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) threads: usize,
    /// That of builds.
    pub(crate) clock: Clock,
    /// Samples of a round, of each sort of lookup.
    pub(crate) samples: usize,
}

/// A filter of a side, and the heap that its build used.
struct Built {
    subject: Box<dyn Subject>,
    used: heap::Used,
}

impl Duel<'_> {
    fn asks(&self, figures: &[Figure]) -> bool {
        figures.iter().any(|figure| self.figures.contains(figure))
    }

    /// Plays the rounds. A row for each side, whose samples with the same index were taken one
    /// after the other.
    pub(crate) fn play(&self, rounds: usize) -> Result<Run, String> {
        let n = self.sides.first().map_or(0, |side| side.shape.n);
        let rounds = if n < MANY { rounds } else { rounds.min(FEW) };
        let row = |side: &Side<'_>| side.contestant.row(side.shape);
        let mut rows: Vec<Row> = self.sides.iter().map(row).collect();
        for side in &self.sides {
            // Builds side by side need as much each, and keys of their own.
            let at_once = if self.asks(&[Figure::BuildThreads]) {
                self.threads
            } else {
                1
            };
            let peak = side.contestant.peak;
            plan::fits(side.shape, at_once * self.sides.len() * peak)?;
        }
        for round in 0..rounds {
            // Single calls, batches and line reads have a third each.
            let queries = 3 * self.samples * SAMPLE;
            let keys = Keys::new(KeyType::U64, round as u64, n, queries);
            let subjects = self.builds(&keys, round, &mut rows)?;
            self.lookups(&keys, &subjects, &mut rows)?;
            for (row, built) in rows.iter_mut().zip(subjects) {
                let held = heap::held_by(built.subject);
                row.record(Figure::Bits, heap::bits_per_key(held, n));
                row.record(
                    Figure::Peak,
                    heap::bits_per_key(built.used.peak.max(held), n),
                );
            }
            self.fills(&keys, &mut rows)?;
        }
        Ok(Run {
            rows,
            ..Run::default()
        })
    }

    /// The sides in the order in which they play in turn `turn`: there and back again.
    fn order(&self, turn: usize) -> impl Iterator<Item = usize> + use<> {
        let sides = self.sides.len();
        (0..sides).map(move |i| {
            if turn.is_multiple_of(2) {
                i
            } else {
                sides - 1 - i
            }
        })
    }

    /// A filter of each side; where builds are judged, some more.
    fn builds(&self, keys: &Keys, round: usize, rows: &mut [Row]) -> Result<Vec<Built>, String> {
        let n = keys.members.len();
        let threads = self.asks(&[Figure::BuildThreads]);
        let back = self.asks(&[Figure::Build]) && !threads && n < MANY;
        let mut subjects: Vec<Option<Built>> = rows.iter().map(|_| None).collect();
        let mut times = vec![Vec::new(); rows.len()];
        for turn in 0..=usize::from(back) {
            for i in self.order(round + turn) {
                let Side { contestant, shape } = &self.sides[i];
                let mut copy = keys.members.clone();
                let build = || (contestant.build)(&mut copy, shape.fpr);
                let ((built, ns), used) = heap::count(|| timed(self.clock, n, build));
                let subject = named(contestant, built)?;
                times[i].push(ns);
                if turn == 0 {
                    subjects[i] = Some(Built { subject, used });
                }
            }
        }
        for ((side, row), times) in self.sides.iter().zip(rows).zip(times) {
            match &side.contestant.threaded {
                Some(threaded) if threads => self.on_threads(side, threaded, keys, row)?,
                _ => row.record(
                    Figure::Build,
                    times.iter().sum::<f64>() / times.len() as f64,
                ),
            }
        }
        Ok(subjects.into_iter().flatten().collect())
    }

    /// Builds on one thread and on several, and several builds at once. What others do on the
    /// machine only adds to time that passes: of some turns the least counts.
    fn on_threads(
        &self,
        side: &Side<'_>,
        threaded: &ThreadedBuild,
        keys: &Keys,
        row: &mut Row,
    ) -> Result<(), String> {
        let Side { contestant, shape } = side;
        let n = keys.members.len();
        let mut least = [f64::INFINITY; 3];
        for _ in 0..if n < MANY { TURNS } else { FEW } {
            let mut times = [0.0; 3];
            for (ns, threads) in times.iter_mut().zip([1, self.threads]) {
                let mut copy = keys.members.clone();
                let build = || threaded(&mut copy, shape.fpr, threads);
                let (built, passed) = timed(self.clock, n, build);
                black_box(named(contestant, built)?);
                *ns = passed;
            }
            times[2] = named(contestant, self.apart(threaded, keys, shape.fpr))?;
            least = std::array::from_fn(|i| least[i].min(times[i]));
        }
        let [one, several, apart] = least;
        row.record(Figure::Build, one);
        row.record(Figure::BuildThreads, several);
        row.record(Figure::BuildApart, apart);
        Ok(())
    }

    /// Builds on one thread each, as many at once as there are threads: time per key of all of
    /// them.
    fn apart(&self, build: &ThreadedBuild, keys: &Keys, fpr: f64) -> Result<f64, String> {
        let mut copies = vec![keys.members.clone(); self.threads];
        let all = self.threads * keys.members.len();
        let (built, ns) = timed(Clock::Wall, all, || {
            thread::scope(|scope| {
                let builds: Vec<_> = copies
                    .iter_mut()
                    .map(|copy| scope.spawn(move || build(copy, fpr, 1)))
                    .collect();
                let built = builds.into_iter().map(thread::ScopedJoinHandle::join);
                built.collect::<Vec<_>>()
            })
        });
        for built in built {
            black_box(built.unwrap_or_else(|_| Err("a build panicked".into()))?);
        }
        Ok(ns)
    }

    fn lookups(&self, keys: &Keys, subjects: &[Built], rows: &mut [Row]) -> Result<(), String> {
        let mut lines = Lines::new().map_err(|e| e.to_string())?;
        let work = [
            (Figure::Absent, Figure::AbsentBatch, &keys.absent),
            (Figure::Present, Figure::PresentBatch, &keys.present),
            (Figure::Half, Figure::HalfBatch, &keys.half),
        ];
        let mut out = vec![false; SLICE];
        for (single, batch, queries) in work {
            for keys in queries.chunks(3 * SAMPLE) {
                // Each call has keys of its own: the same ones again would be found in a cache.
                let mut samples = keys.chunks(SAMPLE);
                let mut next = || samples.next().unwrap_or_default();
                if self.asks(&[single]) {
                    self.there_and_back(single, next(), rows, |i, asked| {
                        black_box(subjects[i].subject.contains_each(black_box(asked)));
                    });
                }
                if self.asks(&[batch]) {
                    // Who has no batch does what it can, so that both have the same keys at the
                    // same time.
                    self.there_and_back(batch, next(), rows, |i, asked| {
                        let out = &mut out[..asked.len()];
                        let subject = &subjects[i].subject;
                        if !subject.contains_batch(black_box(asked), black_box(out)) {
                            black_box(subject.contains_each(black_box(asked)));
                        }
                    });
                }
                if batch == Figure::HalfBatch && self.asks(&[Figure::Limit]) {
                    let keys = next();
                    for (row, built) in rows.iter_mut().zip(subjects) {
                        let held = built.used.held;
                        let (first, then) = keys.split_at(keys.len() / 2);
                        let reads = lines.ns_per_read(held, first, Clock::Cpu);
                        let ns = reads.and_then(|_| lines.ns_per_read(held, then, Clock::Cpu));
                        row.record(Figure::Limit, ns.map_err(|e| e.to_string())?);
                    }
                }
            }
        }
        Ok(())
    }

    /// A sample of each side's calls with these keys, turn by turn.
    fn there_and_back(
        &self,
        figure: Figure,
        keys: &[u64],
        rows: &mut [Row],
        mut call: impl FnMut(usize, Ask<'_>),
    ) {
        let mut sums = vec![0.0; rows.len()];
        let turns = keys.chunks(TURN);
        let of_turns = turns.len() as f64;
        for (turn, keys) in turns.enumerate() {
            let (first, then) = keys.split_at(keys.len() / 2);
            for i in self.order(turn) {
                call(i, Ask::Words(first));
                sums[i] += timed(Clock::Cpu, then.len(), || call(i, Ask::Words(then))).1;
            }
        }
        for (row, sum) in rows.iter_mut().zip(sums) {
            row.record(figure, sum / of_turns);
        }
    }

    /// Fills empty filters slice by slice, one by one and in batches.
    fn fills(&self, keys: &Keys, rows: &mut [Row]) -> Result<(), String> {
        let n = keys.members.len();
        for figure in [Figure::Insert, Figure::InsertBatch] {
            if !self.asks(&[figure]) {
                continue;
            }
            let mut fills = Vec::new();
            for Side { contestant, shape } in &self.sides {
                let empty = contestant.insert.empty();
                let none = || format!("{} is not filled key by key", contestant.name);
                let empty = empty.ok_or_else(none)?;
                let (built, ns) = timed(Clock::Cpu, 1, || empty(n, shape.fpr));
                fills.push((named(contestant, built)?, ns, Some(true)));
            }
            for (turn, slice) in keys.members.chunks(SLICE).enumerate() {
                for i in self.order(turn) {
                    let (subject, ns, taken) = &mut fills[i];
                    let (took, passed) = timed(Clock::Cpu, 1, || match figure {
                        Figure::Insert => subject.insert_each(Ask::Words(slice)),
                        // Who has no batch does what it can, as for lookups.
                        _ => subject
                            .insert_batch(slice)
                            .or_else(|| subject.insert_each(Ask::Words(slice))),
                    });
                    *ns += passed;
                    *taken = taken.zip(took).map(|(all, these)| all && these);
                }
            }
            let fills: Vec<_> = fills
                .into_iter()
                .map(|(_, ns, taken)| (ns, taken))
                .collect();
            record_fills(figure, n, &fills, rows);
        }
        Ok(())
    }
}

/// Records a round of fills: how long each took, and whether all keys were taken. A filter that
/// refused one was not filled, and of its round the others have nothing to be compared with.
fn record_fills(figure: Figure, n: usize, fills: &[(f64, Option<bool>)], rows: &mut [Row]) {
    if fills.iter().all(|(_, taken)| *taken == Some(true)) {
        for (row, (ns, _)) in rows.iter_mut().zip(fills) {
            row.record(figure, ns / n as f64);
        }
    }
}

fn named<T>(contestant: &Contestant, built: Result<T, String>) -> Result<T, String> {
    built.map_err(|reason| format!("{}: {reason}", contestant.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Samples;

    fn duel(names: &[(&str, f64)], figures: &[Figure], rounds: usize) -> Result<Run, String> {
        let all = crate::subject::all();
        let side = |&(name, fpr): &(&str, f64)| Side {
            contestant: all.iter().find(|c| c.name == name).expect("a name"),
            shape: Shape {
                n: 50_000,
                fpr,
                keys: KeyType::U64,
            },
        };
        let duel = Duel {
            sides: names.iter().map(side).collect(),
            figures: figures.to_vec(),
            threads: 2,
            clock: Clock::Cpu,
            samples: 3,
        };
        duel.play(rounds)
    }

    #[test]
    fn both_sides_have_a_sample_of_every_slice_fill_and_build() {
        let run = duel(&[("tinyset", 0.01), ("cuckoo", 0.01)], &Figure::ALL, 2).unwrap();
        let samples_each = 2 * 3;
        for row in &run.rows {
            let samples = |figure| {
                row.figures
                    .get(&figure)
                    .map_or(0, |samples| samples.0.len())
            };
            for figure in Figure::SINGLE.into_iter().chain(Figure::BATCH) {
                assert_eq!(samples(figure), samples_each, "{}", figure.name());
            }
            assert_eq!(samples(Figure::Limit), samples_each);
            for figure in [
                Figure::Build,
                Figure::Peak,
                Figure::BuildThreads,
                Figure::BuildApart,
                Figure::Insert,
                Figure::InsertBatch,
            ] {
                assert_eq!(samples(figure), 2, "{}", figure.name());
            }
            let Samples(bits) = &row.figures[&Figure::Bits];
            assert!(
                bits.iter().all(|bits| (5.0..20.0).contains(bits)),
                "{bits:?}"
            );
            let times = row.figures.iter().filter(|(f, _)| f.unit() == "ns");
            for (figure, Samples(samples)) in times {
                assert!(samples.iter().all(|ns| *ns > 0.0), "{}", figure.name());
            }
        }
    }

    #[test]
    fn only_what_is_asked_for_is_measured() {
        let sides = [("bloom", 0.01), ("bloom", 0.001)];
        let run = duel(&sides, &[Figure::AbsentBatch], 2).unwrap();
        let rates = run.rows.iter().map(|row| row.shape.fpr);
        assert!(rates.eq([0.01, 0.001]));
        for row in &run.rows {
            let expected = [
                Figure::Bits,
                Figure::Peak,
                Figure::Build,
                Figure::AbsentBatch,
            ];
            assert!(row.figures.keys().copied().eq(expected));
            assert_eq!(row.figures[&Figure::Build].0.len(), 2);
        }
    }

    #[test]
    fn of_a_round_in_which_one_side_is_not_filled_nobody_has_a_sample() {
        let mut rows = vec![Row::default(), Row::default()];
        let mut round = |first, second| {
            let fills = [(10.0, first), (40.0, second)];
            record_fills(Figure::Insert, 10, &fills, &mut rows);
        };
        round(Some(true), Some(true));
        round(Some(true), Some(false));
        round(None, Some(true));
        let samples = |row: &Row| row.figures[&Figure::Insert].clone();
        assert_eq!(samples(&rows[0]), Samples(vec![1.0]));
        assert_eq!(samples(&rows[1]), Samples(vec![4.0]));
    }

    #[test]
    fn who_cannot_do_what_is_asked_is_named() {
        let refused = duel(&[("binary_fuse8", 0.01)], &[Figure::Insert], 1);
        assert!(refused.unwrap_err().contains("binary_fuse8"));
    }
}
