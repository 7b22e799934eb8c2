//! The stopwatch: rounds that interleave all subjects, so that what disturbs the machine disturbs
//! everyone.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use crate::clock::{Clock, Unrest, timed};
use crate::figures::{Figure, Row, Run};
use crate::heap;
use crate::keys::{Ask, KeyType, Keys};
use crate::limit::Lines;
use crate::plan::{self, Plan, Task};
use crate::subject::{Contestant, Inserting, Subject, hash};

/// Lookups of a pass at least, however few the keys: a rate of 2⁻⁸ is then known to a tenth.
const LEAST_QUERIES: usize = 1 << 16;
/// Lookups are timed in this many parts, and the fastest counts: what slows down one part is not
/// the filter. The parts' queries differ, since asking twice would find its lines in a cache.
const PARTS: usize = 4;

/// Runs the plan. `progress` is told what is under way; the second list says who took no part,
/// and why.
pub(crate) fn run(
    plan: &Plan,
    mut progress: impl FnMut(&str),
) -> std::io::Result<(Run, Vec<String>)> {
    let mut run = Run {
        about: about(plan),
        rows: Vec::new(),
    };
    let mut absent = Vec::new();
    let mut lines = Lines::new()?;
    let mut unrest = Unrest::default();
    let start = Instant::now();
    for (task, share) in plan.tasks.iter().zip(plan::shares(&plan.tasks)) {
        let &Task {
            shape,
            rounds,
            threads,
        } = task;
        let until = plan.budget.map(|budget| start + budget.mul_f64(share));
        let queries = shape.n.clamp(LEAST_QUERIES.min(plan.queries), plan.queries);
        let mut rows: Vec<Row> = plan.contestants.iter().map(|c| c.row(shape)).collect();
        let mut playing = vec![true; rows.len()];
        for round in 0..rounds {
            let is_late = || round > 0 && until.is_some_and(|until| Instant::now() > until);
            if is_late() {
                break;
            }
            let keys = Keys::new(shape.keys, round as u64, shape.n, queries);
            // Everyone's turn comes at another place in each round, after another neighbour.
            for i in (0..rows.len()).map(|i| (i + round * 5) % plan.contestants.len()) {
                if !playing[i] || is_late() {
                    continue;
                }
                let contestant = &plan.contestants[i];
                let who = contestant.name;
                if let Err(reason) = plan::fits(shape, contestant.peak) {
                    playing[i] = false;
                    absent.push(format!("{who} at {shape}: {reason}"));
                    continue;
                }
                progress(&format!("{shape}, round {} of {rounds}: {who}", round + 1));
                unrest.look();
                let mut turn = Turn {
                    contestant,
                    keys: &keys,
                    clock: plan.clock,
                    threads,
                    patience: plan.patience(),
                    row: &mut rows[i],
                };
                let (result, ns) = timed(plan.clock, 1, || turn.play(&mut lines));
                if let Err(reason) = result {
                    playing[i] = false;
                    absent.push(format!("{who} at {shape}: {reason}"));
                } else if ns > plan.patience() {
                    playing[i] = false;
                }
            }
        }
        rows.retain(|row| !row.figures.is_empty());
        run.rows.extend(rows);
    }
    let took = format!("{:.0} s", start.elapsed().as_secs_f64());
    run.about.insert("took".into(), took);
    run.about.insert("unrest".into(), unrest.phrase());
    Ok((run, absent))
}

/// One subject's turn in a round: everything is measured once, on a filter built for this turn.
struct Turn<'a> {
    contestant: &'a Contestant,
    keys: &'a Keys,
    clock: Clock,
    threads: usize,
    patience: f64,
    row: &'a mut Row,
}

impl Turn<'_> {
    fn play(&mut self, lines: &mut Lines) -> Result<(), String> {
        let (contestant, clock, fpr) = (self.contestant, self.clock, self.row.shape.fpr);
        let [members, ..] = self.keys.as_given();
        let n = members.len();
        // A build may reorder its keys: each has a copy, which is not counted. Strings are hashed
        // as part of the build.
        let mut copy = match members {
            Ask::Words(words) => words.to_vec(),
            Ask::Strings(_) => Vec::new(),
        };
        let build = || match members {
            Ask::Words(_) => (contestant.build)(&mut copy, fpr),
            Ask::Strings(texts) => {
                let mut hashes: Vec<u64> = texts.iter().map(hash).collect();
                (contestant.build)(&mut hashes, fpr)
            }
        };
        let ((built, ns), used) = heap::count(|| timed(clock, n, build));
        let mut subject = built?;
        let bits = |bytes| heap::bits_per_key(bytes, n);
        self.row.record(Figure::Build, ns);
        if let Some(expected) = subject.expected_fpr() {
            self.row.record(Figure::Expected, expected);
        }
        self.lookups(&*subject)?;
        if self.row.shape.keys == KeyType::U64 {
            self.changes(&mut *subject);
        }
        // Whoever removes keys holds as much as before.
        let held = heap::held_by(subject);
        self.row.record(Figure::Bits, bits(held));
        if self.row.shape.keys == KeyType::U64 {
            self.row.record(Figure::Peak, bits(used.peak.max(held)));
        }
        self.limit(lines, held)?;

        let is_slow = |ns: f64| ns * n as f64 > self.patience;
        match &contestant.insert {
            Inserting::Never => {}
            Inserting::AsBuild(_) => self.row.record(Figure::Insert, ns),
            Inserting::Into(_) if is_slow(ns) => {}
            Inserting::Into(empty) => {
                let fill = || {
                    let mut subject = empty(n, fpr)?;
                    let taken = subject.insert_each(members);
                    Ok::<_, String>((subject, taken))
                };
                let (filled, ns) = timed(clock, n, fill);
                // A kind may be full a little before its capacity when keys come one by one; then
                // this says nothing.
                if black_box(filled?).1 == Some(true) {
                    self.row.record(Figure::Insert, ns);
                }
                if let Ask::Words(words) = members
                    && !is_slow(ns)
                {
                    let fill = || {
                        let mut subject = empty(n, fpr)?;
                        let taken = subject.insert_batch(words);
                        Ok::<_, String>((subject, taken))
                    };
                    let (filled, ns) = timed(clock, n, fill);
                    if black_box(filled?).1 == Some(true) {
                        self.row.record(Figure::InsertBatch, ns);
                    }
                }
            }
        }
        if self.threads > 1 && self.row.shape.keys == KeyType::U64 && !is_slow(ns) {
            self.build_on_threads(copy)?;
        }
        Ok(())
    }

    fn lookups(&mut self, subject: &dyn Subject) -> Result<(), String> {
        let (clock, queries) = (self.clock, self.keys.absent.len());
        let part = queries.div_ceil(PARTS);
        let [_, present, absent, half] = self.keys.as_given();
        let (all, some) = (queries as u64, self.keys.half_present);
        let work = [
            (Figure::Absent, Figure::AbsentBatch, absent, 0),
            (Figure::Present, Figure::PresentBatch, present, all),
            (Figure::Half, Figure::HalfBatch, half, some),
        ];
        let mut out = vec![false; queries];
        for (single, batch, keys, members) in work {
            let (mut found, mut fastest) = (0, f64::INFINITY);
            for keys in keys.chunks(part) {
                let call = || subject.contains_each(black_box(keys));
                let (count, ns) = timed(clock, keys.len(), call);
                (found, fastest) = (found + count, fastest.min(ns));
            }
            self.row.record(single, fastest);
            self.row.false_negatives += members.saturating_sub(found);
            if single == Figure::Absent {
                self.row.record(Figure::Fpr, found as f64 / queries as f64);
            }

            out.fill(false);
            let (mut has_batch, mut fastest) = (false, f64::INFINITY);
            for (keys, out) in keys.chunks(part).zip(out.chunks_mut(part)) {
                let call = || subject.contains_batch(black_box(keys), black_box(out));
                let (has, ns) = timed(clock, keys.len(), call);
                (has_batch, fastest) = (has, fastest.min(ns));
            }
            if !has_batch {
                continue;
            }
            self.row.record(batch, fastest);
            let in_batch = out.iter().filter(|&&found| found).count() as u64;
            if in_batch != found {
                return Err(format!(
                    "its batch finds {in_batch} of {queries} keys, its single calls {found}"
                ));
            }
        }
        if self.threads > 1 {
            let fastest = |work: &(dyn Fn(Ask<'_>) + Sync)| {
                let times = half
                    .chunks(part)
                    .map(|keys| on_threads(self.threads, keys, work));
                times.fold(f64::INFINITY, f64::min)
            };
            let single = fastest(&|keys| {
                black_box(subject.contains_each(keys));
            });
            let batch = fastest(&|keys| {
                subject.contains_batch(keys, &mut vec![false; keys.len()]);
            });
            self.row.record(Figure::HalfThreads, single);
            if self.row.figures.contains_key(&Figure::HalfBatch) {
                self.row.record(Figure::HalfBatchThreads, batch);
            }
        }
        Ok(())
    }

    /// The line-read limit of a working set of the filter's size.
    fn limit(&mut self, lines: &mut Lines, held: usize) -> Result<(), String> {
        let words = &self.keys.absent;
        let mut limit = f64::INFINITY;
        for keys in words.chunks(words.len().div_ceil(PARTS)) {
            let ns = lines.ns_per_read(held, keys, self.clock);
            limit = limit.min(ns.map_err(|e| e.to_string())?);
        }
        self.row.record(Figure::Limit, limit);
        Ok(())
    }

    /// Counts and removes, where the filter can.
    fn changes(&mut self, subject: &mut dyn Subject) {
        let (clock, keys) = (self.clock, self.keys);
        let present = &keys.present;
        if let (Some(found), ns) = timed(clock, present.len(), || subject.count_each(present)) {
            self.row.record(Figure::Count, ns);
            self.row.false_negatives += present.len() as u64 - found;
        }
        let some = &keys.members[..keys.members.len().min(keys.absent.len())];
        if let (Some(found), ns) = timed(clock, some.len(), || subject.remove_each(some)) {
            self.row.record(Figure::Remove, ns);
            self.row.false_negatives += some.len() as u64 - found;
        }
    }

    fn build_on_threads(&mut self, mut copy: Vec<u64>) -> Result<(), String> {
        let (fpr, threads) = (self.row.shape.fpr, self.threads);
        if let Some(build) = &self.contestant.threaded {
            copy.copy_from_slice(&self.keys.members);
            let build = || build(&mut copy, fpr, threads);
            let (built, ns) = timed(Clock::Wall, self.keys.members.len(), build);
            black_box(built?);
            self.row.record(Figure::BuildThreads, ns);
        }
        Ok(())
    }
}

/// Nanoseconds that pass per key while each thread does its share of the keys, from the first
/// start to the last end. Threads wait for each other before they start, so that making them does
/// not count.
fn on_threads(threads: usize, keys: Ask<'_>, work: &(dyn Fn(Ask<'_>) + Sync)) -> f64 {
    let shares: Vec<Ask<'_>> = keys.chunks(keys.len().div_ceil(threads)).collect();
    let barrier = Barrier::new(shares.len());
    let times: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let spawn = |&share| {
            let barrier = &barrier;
            scope.spawn(move || {
                barrier.wait();
                let start = Instant::now();
                work(black_box(share));
                (start, Instant::now())
            })
        };
        let running: Vec<_> = shares.iter().map(spawn).collect();
        running
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect()
    });
    let start = times.iter().map(|(start, _)| *start).min();
    let end = times.iter().map(|(_, end)| *end).max();
    let passed = start
        .zip(end)
        .map_or(f64::NAN, |(start, end)| (end - start).as_nanos() as f64);
    passed / keys.len().max(1) as f64
}

/// The machine, the load on it, and how this program was compiled: what a reader of the figures
/// must know.
fn about(plan: &Plan) -> BTreeMap<String, String> {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpu_info = read("/proc/cpuinfo");
    let cpu = cpu_info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown", |(_, name)| name.trim());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = read("/proc/loadavg");
    let load = load.split_whitespace().next().unwrap_or("unknown");
    let huge_pages = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let threads = plan
        .tasks
        .iter()
        .map(|task| task.threads)
        .max()
        .unwrap_or(1);
    let compiled_for = if cfg!(target_feature = "avx512f") {
        "with AVX-512"
    } else if cfg!(target_feature = "avx2") {
        "with AVX2"
    } else {
        "for any processor"
    };
    [
        ("cpu", format!("{cpu}, {cores} cores")),
        (
            "target",
            format!("{}, {compiled_for}", std::env::consts::ARCH),
        ),
        ("build", env!("TARGET_CPU").to_string()),
        ("clock", plan.clock.to_string()),
        ("threads", threads.to_string()),
        ("load", format!("{load} at the start")),
        ("huge pages", huge_pages.trim().to_string()),
        ("tamis", env!("CARGO_PKG_VERSION").to_string()),
    ]
    .map(|(name, text)| (name.to_string(), text))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Shape;
    use crate::subject::{self, Calls};

    fn plan(contestants: Vec<Contestant>) -> Plan {
        plan_of(KeyType::U64, contestants)
    }

    fn plan_of(keys: KeyType, contestants: Vec<Contestant>) -> Plan {
        let (n, fpr) = (100, 0.01);
        Plan {
            tasks: vec![Task {
                shape: Shape { n, fpr, keys },
                rounds: 3,
                threads: 2,
            }],
            contestants,
            queries: 1000,
            budget: None,
            clock: Clock::Wall,
        }
    }

    /// Forgets every key but those it is asked about in a batch.
    struct Forgetful {
        batch: bool,
    }

    impl Calls for Forgetful {
        fn contains(&self, _key: u64) -> bool {
            false
        }

        fn contains_batch(&self, _keys: &[u64], out: &mut [bool]) -> bool {
            out.fill(true);
            self.batch
        }
    }

    fn forgetful(batch: bool) -> Contestant {
        Contestant {
            name: "forgetful",
            family: "none",
            ours: false,
            build: Box::new(move |_, _| Ok(Box::new(Forgetful { batch }))),
            insert: Inserting::Never,
            threaded: None,
            peak: 0,
        }
    }

    #[test]
    fn lost_keys_are_counted() {
        let (run, absent) = super::run(&plan(vec![forgetful(false)]), |_| {}).unwrap();
        assert!(absent.is_empty());
        let row = &run.rows[0];
        assert!(row.false_negatives > 3 * 1000, "present, and half of half");
        assert_eq!(row.median(Figure::Fpr), Some(0.0));
        assert_eq!(row.median(Figure::HalfBatch), None);
        assert_eq!(row.median(Figure::Remove), None);
    }

    #[test]
    fn a_batch_that_answers_otherwise_than_single_calls_is_refused() {
        let (_, absent) = super::run(&plan(vec![forgetful(true)]), |_| {}).unwrap();
        assert!(absent[0].contains("single calls"), "{absent:?}");
    }

    #[test]
    fn every_round_gives_a_sample_of_every_figure() {
        let cuckoo = subject::all().into_iter().filter(|c| c.name == "cuckoo");
        let (run, _) = super::run(&plan(cuckoo.collect()), |_| {}).unwrap();
        let row = &run.rows[0];
        for figure in Figure::ALL {
            // Builds side by side are for duels alone.
            let expected = (figure != Figure::BuildApart).then_some(3);
            let samples = row.figures.get(&figure).map(|samples| samples.0.len());
            assert_eq!(samples, expected, "{}", figure.name());
        }
        assert_eq!(row.false_negatives, 0);
    }

    #[test]
    fn everyone_has_a_turn_however_small_the_budget() {
        let mut plan = plan(vec![forgetful(false), forgetful(false)]);
        plan.budget = Some(std::time::Duration::ZERO);
        let (run, _) = super::run(&plan, |_| {}).unwrap();
        let turns = run
            .rows
            .iter()
            .map(|row| row.figures[&Figure::Build].0.len());
        assert_eq!(turns.collect::<Vec<_>>(), [1, 1]);
    }

    #[test]
    fn strings_are_looked_up_by_their_hashes() {
        let bloom = subject::all().into_iter().filter(|c| c.name == "bloom");
        let (run, absent) =
            super::run(&plan_of(KeyType::Strings, bloom.collect()), |_| {}).unwrap();
        assert!(absent.is_empty(), "{absent:?}");
        let row = &run.rows[0];
        assert_eq!(row.false_negatives, 0);
        assert!(row.median(Figure::Fpr).unwrap() < 0.05);
        for figure in [
            Figure::Build,
            Figure::Insert,
            Figure::Half,
            Figure::HalfBatch,
            Figure::HalfThreads,
        ] {
            assert!(row.median(figure).unwrap() > 0.0, "{}", figure.name());
        }
        assert_eq!(
            row.median(Figure::Peak),
            None,
            "the hashes are not the filter's"
        );
    }

    #[test]
    fn threads_do_all_keys_once() {
        use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
        let words: Vec<u64> = (0..1001).collect();
        for threads in [1, 2, 3, 2000] {
            let done = AtomicUsize::new(0);
            let work = |keys: Ask<'_>| {
                done.fetch_add(keys.len(), Relaxed);
            };
            assert!(on_threads(threads, Ask::Words(&words), &work) > 0.0);
            assert_eq!(done.into_inner(), 1001);
        }
    }
}
