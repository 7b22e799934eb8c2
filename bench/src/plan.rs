//! What is measured: which shapes, in how many rounds, on how many threads. One place says it, so
//! that its time can be reckoned with.
//!
//! | matrix | words | strings | threads |
//! |---|---|---|---|
//! | quick | 10⁵ and 10⁶ keys at 2⁻⁸ | 10⁵ at 2⁻⁸ | 10⁶ at 2⁻⁸ |
//! | default | 10⁵ and 10⁶ at 1 %, 2⁻⁸ and 0.1 %; 10⁷ at 2⁻⁸ | 10⁶ at 2⁻⁸ | 10⁶ and 10⁷ at 2⁻⁸ |
//! | full | all three sizes at all three rates | all three sizes at 2⁻⁸ | everywhere |
//!
//! Sizes, rates and types of keys that are named are measured each with each, as long as it
//! takes. Where nothing is named, the quick and the default matrix have a budget of time:
//! everyone has a turn in every table, and further rounds as far as it goes.

use std::time::Duration;

use crate::clock::Clock;
use crate::figures::Shape;
use crate::keys::KeyType;
use crate::subject::Contestant;

/// What is to be measured.
pub(crate) struct Plan {
    pub(crate) tasks: Vec<Task>,
    pub(crate) contestants: Vec<Contestant>,
    /// The most lookups of a pass.
    pub(crate) queries: usize,
    /// When further rounds are left out, if ever.
    pub(crate) budget: Option<Duration>,
    pub(crate) clock: Clock,
}

impl Plan {
    /// A subject whose turn takes longer than this, ns, has no other; and who is filled as slowly
    /// is filled in no other way.
    pub(crate) fn patience(&self) -> f64 {
        if self.budget.is_some() { 3e9 } else { 20e9 }
    }
}

/// One table of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Task {
    pub(crate) shape: Shape,
    pub(crate) rounds: usize,
    /// Builds and lookups are also measured on so many threads, if more than one.
    pub(crate) threads: usize,
}

/// How much is measured where nothing is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Matrix {
    Quick,
    Default,
    Full,
}

/// What was named on the command line; empty and `None` where nothing was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named {
    pub(crate) sizes: Vec<usize>,
    pub(crate) rates: Vec<f64>,
    pub(crate) keys: Vec<KeyType>,
    pub(crate) rounds: Option<usize>,
    pub(crate) threads: Option<usize>,
}

const ONE_PERCENT: f64 = 0.01;
const EIGHT_BITS: f64 = 1.0 / 256.0;
const ONE_PER_MILLE: f64 = 0.001;
/// From this many keys on, three rounds do by default.
const MANY: usize = 1_000_000;
/// Threads where none are named: what the smallest machines have.
const THREADS: usize = 2;

/// How long a run of what nobody named may take, a little less than what it promises: the last
/// turn ends later.
pub(crate) fn budget(matrix: Matrix, named: &Named) -> Option<Duration> {
    let is_named = !named.sizes.is_empty() || !named.rates.is_empty() || !named.keys.is_empty();
    match matrix {
        _ if is_named || named.rounds.is_some() => None,
        Matrix::Quick => Some(Duration::from_secs(50)),
        Matrix::Default => Some(Duration::from_secs(540)),
        Matrix::Full => None,
    }
}

/// When each table's further rounds end, as a share of the budget: large sizes have more of it,
/// and what one table leaves over is the next one's.
pub(crate) fn shares(tasks: &[Task]) -> Vec<f64> {
    let weight = |task: &Task| (task.shape.n as f64).sqrt();
    let all: f64 = tasks.iter().map(weight).sum();
    let mut until = 0.0;
    let mut share = |task| {
        until += weight(task) / all;
        until
    };
    tasks.iter().map(&mut share).collect()
}

/// The tables to make.
pub(crate) fn tasks(matrix: Matrix, named: &Named) -> Vec<Task> {
    let rounds = |n| match matrix {
        Matrix::Quick => 3,
        _ if n < MANY => 5,
        _ => 3,
    };
    let task = |n, fpr, keys, threads| Task {
        shape: Shape { n, fpr, keys },
        rounds: named.rounds.unwrap_or_else(|| rounds(n)),
        threads: named.threads.unwrap_or(threads),
    };
    let (small, medium, large) = (100_000, 1_000_000, 10_000_000);
    if named.sizes.is_empty() && named.rates.is_empty() && named.keys.is_empty() {
        let words = |n, fpr, threads| task(n, fpr, KeyType::U64, threads);
        let strings = |n| task(n, EIGHT_BITS, KeyType::Strings, 1);
        return match matrix {
            Matrix::Quick => vec![
                words(small, EIGHT_BITS, 1),
                words(medium, EIGHT_BITS, THREADS),
                strings(small),
            ],
            Matrix::Default => vec![
                words(small, ONE_PERCENT, 1),
                words(small, EIGHT_BITS, 1),
                words(small, ONE_PER_MILLE, 1),
                words(medium, ONE_PERCENT, 1),
                words(medium, EIGHT_BITS, THREADS),
                words(medium, ONE_PER_MILLE, 1),
                words(large, EIGHT_BITS, THREADS),
                strings(medium),
            ],
            Matrix::Full => {
                let of_size = |n| {
                    let rates = [ONE_PERCENT, EIGHT_BITS, ONE_PER_MILLE];
                    rates.map(|fpr| words(n, fpr, THREADS))
                };
                let sizes = [small, medium, large];
                let words = sizes.into_iter().flat_map(of_size);
                words.chain(sizes.map(strings)).collect()
            }
        };
    }
    let or = |given: &[usize], default: &[usize]| {
        if given.is_empty() {
            default.to_vec()
        } else {
            given.to_vec()
        }
    };
    let sizes = match matrix {
        Matrix::Quick => or(&named.sizes, &[small, medium]),
        _ => or(&named.sizes, &[small, medium, large]),
    };
    let rates = if named.rates.is_empty() {
        &[EIGHT_BITS][..]
    } else {
        &named.rates
    };
    let keys = if named.keys.is_empty() {
        &[KeyType::U64][..]
    } else {
        &named.keys
    };
    let mut tasks = Vec::new();
    for &keys in keys {
        for &n in &sizes {
            for &fpr in rates {
                tasks.push(task(n, fpr, keys, 1));
            }
        }
    }
    tasks
}

/// More threads than any machine has cores for.
const MOST_THREADS: usize = 1024;

/// Why a plan cannot be carried out, as a sentence.
pub(crate) fn refuse(tasks: &[Task]) -> Result<(), String> {
    for task in tasks {
        let Shape { n, fpr, .. } = task.shape;
        if n == 0 || task.rounds == 0 || task.threads == 0 {
            return Err("there is nothing to measure in 0 keys, 0 rounds or on 0 threads".into());
        }
        if task.threads > MOST_THREADS {
            let threads = task.threads;
            return Err(format!("{threads} threads are more than {MOST_THREADS}"));
        }
        if !(fpr > 0.0 && fpr < 1.0) {
            return Err(format!("a rate lies between 0 and 1, and {fpr} does not"));
        }
        fits(task.shape, 0)?;
    }
    Ok(())
}

/// Refuses what does not fit into memory: two copies of the keys, the strings if there are any,
/// and a build that takes `peak` bytes a key.
pub(crate) fn fits(shape: Shape, peak: usize) -> Result<(), String> {
    let of_keys = match shape.keys {
        KeyType::U64 => 16,
        // 30 bytes on average, where they start, and their hashes.
        KeyType::Strings => 16 + 30 + 8 + 8,
    };
    let needed = (shape.n as u64).saturating_mul(of_keys + peak as u64);
    match free_bytes() {
        Some(free) if needed > free => {
            let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
            Err(format!(
                "{} needs about {:.1} GiB of memory, and {:.1} are free",
                shape,
                gib(needed),
                gib(free)
            ))
        }
        _ => Ok(()),
    }
}

/// What the system can give: of the machine's memory what is free, and of a container's what it
/// may still take.
fn free_bytes() -> Option<u64> {
    let read = |path| std::fs::read_to_string(path).ok();
    let info = read("/proc/meminfo")?;
    let line = info
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let machine = line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024;
    let number = |path| read(path)?.trim().parse::<u64>().ok();
    let limit = number("/sys/fs/cgroup/memory.max").map(|limit| {
        let used = number("/sys/fs/cgroup/memory.current").unwrap_or(0);
        limit.saturating_sub(used)
    });
    Some(machine.min(limit.unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_grow_and_the_default_one_has_every_size_rate_and_type_of_keys() {
        let of = |matrix| tasks(matrix, &Named::default());
        let (quick, default, full) = (of(Matrix::Quick), of(Matrix::Default), of(Matrix::Full));
        assert!(quick.len() < default.len() && default.len() < full.len());
        let shapes: Vec<Shape> = full.iter().map(|task| task.shape).collect();
        for task in &default {
            assert!(shapes.contains(&task.shape), "{}", task.shape);
        }
        for tasks in [&default, &full] {
            assert!(
                [100_000, 1_000_000, 10_000_000]
                    .iter()
                    .all(|&n| tasks.iter().any(|t| t.shape.n == n))
            );
            assert!(
                [0.01, 1.0 / 256.0, 0.001]
                    .iter()
                    .all(|&e| tasks.iter().any(|t| t.shape.fpr == e))
            );
            assert!(tasks.iter().any(|t| t.shape.keys == KeyType::Strings));
            assert!(tasks.iter().any(|t| t.threads == 2));
        }
    }

    #[test]
    fn a_budget_is_shared_out_and_is_of_what_nobody_named() {
        let nothing = Named::default();
        let minutes = |matrix| budget(matrix, &nothing).map(|time| time.as_secs() / 60);
        assert_eq!(
            [Matrix::Quick, Matrix::Default, Matrix::Full].map(minutes),
            [Some(0), Some(9), None]
        );
        let named = Named {
            sizes: vec![10],
            ..Named::default()
        };
        assert_eq!(budget(Matrix::Quick, &named), None);
        let shares = shares(&tasks(Matrix::Default, &nothing));
        assert!(shares.is_sorted() && (shares[shares.len() - 1] - 1.0).abs() < 1e-9);
        assert!(shares[0] > 0.01, "{shares:?}");
    }

    #[test]
    fn what_is_named_is_measured_each_with_each() {
        let named = Named {
            sizes: vec![10, 20],
            rates: vec![0.1, 0.2, 0.3],
            keys: vec![KeyType::U64, KeyType::Strings],
            rounds: Some(7),
            threads: Some(4),
        };
        let tasks = tasks(Matrix::Default, &named);
        assert_eq!(tasks.len(), 12);
        assert!(
            tasks
                .iter()
                .all(|task| task.rounds == 7 && task.threads == 4)
        );
    }

    #[test]
    fn what_does_not_fit_or_make_sense_is_refused() {
        let of = |n, fpr| {
            let named = Named {
                sizes: vec![n],
                rates: vec![fpr],
                ..Named::default()
            };
            refuse(&tasks(Matrix::Default, &named))
        };
        assert_eq!(of(1000, 0.01), Ok(()));
        assert!(of(0, 0.01).unwrap_err().contains("0 keys"));
        assert!(of(10, 1.5).unwrap_err().contains("1.5"));
        if free_bytes().is_some() {
            assert!(of(1 << 50, 0.01).unwrap_err().contains("GiB"));
        }
    }
}
