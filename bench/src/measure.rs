//! The stopwatch: rounds that interleave all subjects, so that what disturbs the machine disturbs everyone.

use std::collections::BTreeMap;
use std::hint::black_box;

use crate::clock::{Clock, timed};
use crate::figures::{Figure, Row, Run};
use crate::heap;
use crate::keys::Keys;
use crate::limit::Lines;
use crate::subject::{Contestant, Inserting, Subject};

/// What is to be measured.
pub(crate) struct Plan {
    pub(crate) sizes: Vec<usize>,
    pub(crate) rates: Vec<f64>,
    pub(crate) contestants: Vec<Contestant>,
    /// `None`: five, or three from [`MANY`] keys on.
    pub(crate) rounds: Option<usize>,
    /// The most lookups of a pass.
    pub(crate) queries: usize,
    pub(crate) clock: Clock,
}

/// From this many keys on, three rounds do by default.
const MANY: usize = 5_000_000;
/// Lookups of a pass at least, however few the keys: a rate of 2⁻⁸ is then known to a tenth.
const LEAST_QUERIES: usize = 1 << 16;
/// Lookups are timed in this many parts, and the fastest counts: what slows down one part is not the filter. The parts'
/// queries differ, since asking twice would find its lines in a cache.
const PARTS: usize = 4;
/// A subject whose turn takes longer than this, ns, has no other.
const PATIENCE: f64 = 5e9;

/// Runs the plan. `progress` is told what is under way; the second list says who took no part, and why.
pub(crate) fn run(
    plan: &Plan,
    mut progress: impl FnMut(&str),
) -> std::io::Result<(Run, Vec<String>)> {
    let mut run = Run {
        about: about(plan.clock),
        rows: Vec::new(),
    };
    let mut absent = Vec::new();
    let mut lines = Lines::new()?;
    for &n in &plan.sizes {
        for &fpr in &plan.rates {
            let rounds = plan.rounds.unwrap_or(if n < MANY { 5 } else { 3 });
            let queries = n.clamp(LEAST_QUERIES.min(plan.queries), plan.queries);
            let mut rows: Vec<Row> = plan
                .contestants
                .iter()
                .map(|contestant| Row {
                    subject: contestant.name.into(),
                    ours: contestant.ours,
                    typed: contestant.typed,
                    n,
                    fpr,
                    ..Row::default()
                })
                .collect();
            let mut playing = vec![true; rows.len()];
            for round in 0..rounds {
                let keys = Keys::new(round as u64, n, queries);
                // Everyone's turn comes at another place in each round, after another neighbour.
                for i in (0..rows.len()).map(|i| (i + round * 5) % plan.contestants.len()) {
                    if !playing[i] {
                        continue;
                    }
                    let (contestant, row) = (&plan.contestants[i], &mut rows[i]);
                    progress(&format!(
                        "n = {n}, ε = {fpr}, round {} of {rounds}: {}",
                        round + 1,
                        contestant.name
                    ));
                    let (result, ns) = timed(plan.clock, 1, || {
                        turn(contestant, &keys, fpr, &mut lines, plan.clock, row)
                    });
                    if let Err(reason) = result {
                        playing[i] = false;
                        let who = contestant.name;
                        absent.push(format!("{who} at n = {n}, ε = {fpr}: {reason}"));
                    } else if ns > PATIENCE {
                        playing[i] = false;
                    }
                }
            }
            rows.retain(|row| !row.figures.is_empty());
            run.rows.extend(rows);
        }
    }
    Ok((run, absent))
}

/// One subject's turn in a round: everything is measured once, on a filter built for this turn.
fn turn(
    contestant: &Contestant,
    keys: &Keys,
    fpr: f64,
    lines: &mut Lines,
    clock: Clock,
    row: &mut Row,
) -> Result<(), String> {
    let n = keys.members.len();
    // A build may reorder its keys: each has a copy, which is not counted.
    let mut copy = keys.members.clone();
    let ((built, ns), used) =
        heap::count(|| timed(clock, n, || (contestant.build)(&mut copy, fpr)));
    let mut subject = built?;
    row.record(Figure::Build, ns);
    row.record(Figure::Bits, used.held as f64 * 8.0 / n as f64);
    row.record(Figure::Peak, used.peak as f64 * 8.0 / n as f64);

    lookups(&*subject, keys, lines, used.held, clock, row)?;

    let some = &keys.members[..n.min(keys.absent.len())];
    if let (Some(found), ns) = timed(clock, some.len(), || subject.remove_each(some)) {
        row.record(Figure::Remove, ns);
        row.false_negatives += some.len() as u64 - found;
    }
    drop(subject);

    match &contestant.insert {
        Inserting::Never => {}
        Inserting::AsBuild => row.record(Figure::Insert, ns_of_last_build(row)),
        Inserting::By(insert) => {
            copy.copy_from_slice(&keys.members);
            let (built, ns) = timed(clock, n, || insert(&mut copy, fpr));
            black_box(built?);
            row.record(Figure::Insert, ns);
        }
    }
    Ok(())
}

fn ns_of_last_build(row: &Row) -> f64 {
    let builds = &row.figures[&Figure::Build].0;
    builds[builds.len() - 1]
}

fn lookups(
    subject: &dyn Subject,
    keys: &Keys,
    lines: &mut Lines,
    held: usize,
    clock: Clock,
    row: &mut Row,
) -> Result<(), String> {
    let queries = keys.absent.len();
    let part = queries.div_ceil(PARTS);
    let work = [
        (Figure::Absent, Figure::AbsentBatch, &keys.absent, 0),
        (
            Figure::Present,
            Figure::PresentBatch,
            &keys.present,
            queries as u64,
        ),
        (
            Figure::Half,
            Figure::HalfBatch,
            &keys.half,
            keys.half_present,
        ),
    ];
    let mut out = vec![false; queries];
    for (single, batch, keys, members) in work {
        let (mut found, mut fastest) = (0, f64::INFINITY);
        for keys in keys.chunks(part) {
            let (count, ns) = timed(clock, keys.len(), || subject.contains_each(black_box(keys)));
            (found, fastest) = (found + count, fastest.min(ns));
        }
        row.record(single, fastest);
        row.false_negatives += members.saturating_sub(found);
        if single == Figure::Absent {
            row.record(Figure::Fpr, found as f64 / queries as f64);
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
        row.record(batch, fastest);
        let in_batch = out.iter().filter(|&&found| found).count() as u64;
        if in_batch != found {
            return Err(format!(
                "its batch finds {in_batch} of {queries} keys, its single calls {found}"
            ));
        }
    }
    let mut limit = f64::INFINITY;
    for keys in keys.absent.chunks(part) {
        let ns = lines.ns_per_read(held, keys, clock);
        limit = limit.min(ns.map_err(|e| e.to_string())?);
    }
    row.record(Figure::Limit, limit);
    Ok(())
}

/// The machine, the load on it, and how this program was compiled: what a reader of the figures must know.
fn about(clock: Clock) -> BTreeMap<String, String> {
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
        ("clock", clock.to_string()),
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
    use crate::subject::{self, Calls};

    fn plan(contestants: Vec<Contestant>) -> Plan {
        Plan {
            sizes: vec![100],
            rates: vec![0.01],
            contestants,
            rounds: Some(3),
            queries: 1000,
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
            ours: false,
            typed: true,
            build: Box::new(move |_, _| Ok(Box::new(Forgetful { batch }))),
            insert: Inserting::Never,
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
            assert_eq!(row.figures[&figure].0.len(), 3, "{}", figure.name());
        }
        assert_eq!(row.false_negatives, 0);
    }
}
