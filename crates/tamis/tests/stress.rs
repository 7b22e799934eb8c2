//! Threads that use one filter at once, with a checker: no key is lost, counts are right, and a
//! snapshot is of one moment. Bounded by operations.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tamis::{Aleph, AtomicSplitBlock, Config, Filter, Hashing, QuotientCounting, Shared};

const THREADS: u64 = 4;

/// Numbers in no order, the same in every run.
fn draw(seed: u64, i: u64) -> u64 {
    let mut x = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ i.wrapping_mul(0xD1B5_4A32_D192_ED03);
    x = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}

#[test]
fn no_key_is_lost_and_counts_are_right() {
    const OPERATIONS: u64 = 200_000;
    // All threads use the same thousand keys, and each removes what it put in.
    let counts: Shared<QuotientCounting> = Shared::new(&Config::new(20_000).fpr(1e-9)).unwrap();
    let work = |worker: u64| {
        let mut held: HashMap<u64, u64> = HashMap::new();
        for i in 0..OPERATIONS {
            let random = draw(worker, i);
            let key = random % 1000;
            let own = held.entry(key).or_default();
            if random >> 32 & 3 == 0 && *own > 0 {
                assert!(counts.remove(&key), "a copy of {key} was lost");
                *own -= 1;
            } else {
                counts.insert(&key).unwrap();
                *own += 1;
            }
            assert!(counts.count(&key) >= *own, "{key} is counted too low");
            assert!(*own == 0 || counts.contains(&key), "{key} is denied");
        }
        held
    };
    let stop = AtomicBool::new(false);
    let all = thread::scope(|scope| {
        let snapshots = scope.spawn(|| {
            let mut taken = 0;
            while !stop.load(Ordering::Relaxed) || taken == 0 {
                let file = counts.to_bytes();
                Shared::<QuotientCounting>::open(file).unwrap();
                taken += 1;
            }
        });
        let work = &work;
        let workers: Vec<_> = (0..THREADS).map(|w| scope.spawn(move || work(w))).collect();
        let mut all: HashMap<u64, u64> = HashMap::new();
        for worker in workers {
            for (key, held) in worker.join().unwrap() {
                *all.entry(key).or_default() += held;
            }
        }
        stop.store(true, Ordering::Relaxed);
        snapshots.join().unwrap();
        all
    });
    assert!(all.iter().all(|(key, &held)| counts.count(key) == held));
    assert_eq!(counts.len(), all.values().sum::<u64>());
}

#[test]
fn a_snapshot_has_the_past_of_all_that_it_has() {
    const KEYS: u64 = 60_000;
    const SNAPSHOTS: usize = 12;
    let seen: Shared<Aleph> = Shared::new(&Config::default().fpr(1e-9)).unwrap();
    let key = |worker: u64, i: u64| worker << 32 | i;
    thread::scope(|scope| {
        for worker in 0..THREADS - 1 {
            let seen = &seen;
            scope.spawn(move || {
                for i in 0..KEYS {
                    assert!(!seen.seen(&key(worker, i)).unwrap());
                }
            });
        }
        for _ in 0..SNAPSHOTS {
            let before = seen.len();
            let taken: Shared<Aleph> = Shared::open(seen.to_bytes()).unwrap();
            let mut held = 0;
            for worker in 0..THREADS - 1 {
                let mut answers = vec![false; KEYS as usize];
                taken.contains_batch((0..KEYS).map(|i| key(worker, i)), &mut answers);
                let first = answers.iter().position(|found| !found);
                let first = first.unwrap_or(answers.len());
                assert!(
                    answers[first..].iter().all(|found| !found),
                    "a key is in, and one that came before it is not"
                );
                held += first as u64;
            }
            assert!(before <= held && held <= seen.len(), "{before} to {held}");
            assert_eq!(taken.len(), held);
        }
    });
    assert_eq!(seen.len(), (THREADS - 1) * KEYS);
}

#[test]
fn a_key_is_new_to_one_thread() {
    const KEYS: u64 = 50_000;
    let seen: Shared<Aleph> = Shared::new(&Config::default().fpr(1e-9)).unwrap();
    let new = |worker: u64| {
        let keys = (0..KEYS).map(|i| (i * 7919 + worker * 2503) % KEYS);
        keys.filter(|key| !seen.seen(key).unwrap()).count() as u64
    };
    let told: u64 = thread::scope(|scope| {
        let new = &new;
        let workers: Vec<_> = (0..THREADS).map(|w| scope.spawn(move || new(w))).collect();
        workers.into_iter().map(|w| w.join().unwrap()).sum()
    });
    assert_eq!((told, seen.len()), (KEYS, KEYS));
}

#[test]
fn batches_of_all_threads_are_in_the_atomic_filter() {
    const KEYS: u64 = 400_000;
    let filter = AtomicSplitBlock::new(&Config::new(THREADS * KEYS)).unwrap();
    let hashing = Hashing::default();
    let hashes = |worker: u64| (0..KEYS).map(move |i| hashing.hash(&(worker << 32 | i)));
    thread::scope(|scope| {
        for worker in 0..THREADS {
            let filter = &filter;
            scope.spawn(move || {
                let hashes: Vec<u64> = hashes(worker).collect();
                for (i, part) in hashes.chunks(5000).enumerate() {
                    match i % 4 {
                        0 => part.iter().for_each(|&hash| filter.insert(hash)),
                        _ => filter.insert_batch(part),
                    }
                    assert!(part.iter().all(|&hash| filter.contains(hash)));
                }
            });
        }
    });
    assert!((0..THREADS).all(|w| hashes(w).all(|hash| filter.contains(hash))));
    assert_eq!(filter.len(), THREADS * KEYS);
}
