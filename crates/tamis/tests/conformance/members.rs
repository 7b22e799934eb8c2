//! Laws 1, 2 and 4: what is in is found, an empty filter finds nothing, and a batch answers as
//! single calls do.

use std::sync::{Arc, Mutex, PoisonError};

use tamis::testing::force_portable;
use tamis::{AnyFilter, Config, Filter, Keyed, KindInfo, Mapped, Open};

use crate::support::{assert_holds, assert_len, bytes, config, hash, hashes, must, promised};
use crate::support::{is_brief, times, tried};
use crate::{rates_of, sizes};

pub(crate) fn no_false_negatives(info: &'static KindInfo) {
    for n in sizes() {
        let members = hashes(1, n);
        // One rate for the large ones, every rate for the small.
        let configs = if n <= 1000 {
            rates_of(info, n)
        } else {
            vec![config(info, n)]
        };
        for config in configs {
            let filter = must(info, &config, &members);
            assert_holds(filter.filter(), &members, &config.to_string());
            // Room is made for the keys where there are more than the capacity.
            if n <= 1000 {
                let config = config.capacity(0);
                let filter = must(info, &config, &members);
                assert_holds(filter.filter(), &members, &format!("{n} keys in {config}"));
            }
        }
    }
    repeated_hashes(info);
}

/// A build tells how far it has come: from nothing, never back, to all keys. Who watches does not
/// change what is built.
pub(crate) fn progress(info: &'static KindInfo) {
    for n in tried([0, 1, 1000, 30_000]) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let notes = told.clone();
        let plain = config(info, n);
        let watched = plain
            .clone()
            .progress(move |progress| notes.lock().unwrap().push(progress));
        let filter = must(info, &watched, &hashes(1, n));
        let told = told.lock().unwrap();
        // Attempts that failed began at 0, too; the last one is told.
        let start = told.iter().rposition(|progress| progress.done == 0);
        let last = &told[start.expect("the start is told")..];
        assert!(last.iter().all(|progress| progress.total == n), "{n} keys");
        assert!(last.is_sorted_by_key(|progress| progress.done), "{last:?}");
        assert_eq!(last.last().map(|progress| progress.done), Some(n));
        let unwatched = must(info, &plain, &hashes(1, n));
        assert!(bytes(filter.filter()) == bytes(unwatched.filter()));
    }
}

/// Repeats are allowed: many of a few keys, as many as a filter that counts copies may be given,
/// and extreme hashes.
fn repeated_hashes(info: &KindInfo) {
    let mut members = hashes(2, 1000);
    members.extend_from_within(..500);
    members.extend([0, 1, u64::MAX, u64::MAX - 1, 1 << 63, 1 << 32]);
    let filter = must(info, &config(info, 0), &members);
    assert_holds(filter.filter(), &members, "with repeats");
}

pub(crate) fn after_load_map_clone(info: &'static KindInfo) {
    let dir = tempfile::tempdir().unwrap();
    for n in tried((0..=20).chain([100, 1023, 4096, 100_000])) {
        let members = hashes(3, n);
        let filter = must(info, &config(info, n), &members);
        let path = dir.path().join(format!("{n}.tamis"));
        filter.save(&path).unwrap();
        let opened: Keyed<AnyFilter> = Keyed::open(filter.to_bytes()).unwrap();
        let loaded: Keyed<AnyFilter> = Keyed::load(&path).unwrap();
        let mapped = map(&path);
        assert_holds(opened.filter(), &members, "opened");
        assert_holds(loaded.filter(), &members, "loaded");
        assert_holds(mapped.filter(), &members, "mapped");
        assert_holds(mapped.clone().filter(), &members, "mapped and cloned");
        let clone = filter.clone();
        drop(filter);
        assert_holds(clone.filter(), &members, "cloned");
    }
}

#[allow(unsafe_code, reason = "the law is about mapped files")]
pub(crate) fn map(path: &std::path::Path) -> Keyed<AnyFilter> {
    // SAFETY: the file lies in a directory of this test's own, and no test edits one in place.
    let file = unsafe { Mapped::open(path) }.unwrap();
    Open::new().mapped(file).unwrap()
}

/// A filter takes its capacity one by one, then whatever more it accepts, and denies none of what
/// it promises to keep.
pub(crate) fn after_insert(info: &'static KindInfo) {
    for n in tried((0..=100).chain([255, 256, 257, 4095, 100_000])) {
        for config in rates_of(info, n) {
            if n > 4095 && config.fpr < 0.01 {
                continue;
            }
            let members = hashes(4, 2 * n + 10);
            let capacity = n as usize;
            for built_with in [0, capacity / 2] {
                let (first, more) = members.split_at(built_with);
                let mut filter = must(info, &config, first).filter().clone();
                let insert = filter.as_insert().expect("a kind that inserts");
                let mut held = first.to_vec();
                let mut refusals = 0;
                for &hash in more {
                    match insert.insert(hash) {
                        Ok(()) => held.push(hash),
                        Err(full) => {
                            let keys = held.len();
                            assert!(keys >= capacity, "{config}: {full} after {keys} keys");
                            refusals += 1;
                        }
                    }
                    // Whoever searches long before refusing would search as long for every other
                    // key.
                    if n > 4095 && refusals == 1000 {
                        break;
                    }
                }
                assert_len(info, n, &filter, held.len() as u64, &config.to_string());
                let held = promised(info, n, &held);
                assert_holds(&filter, held, &format!("{config}, inserted past it"));
                let reopened: Keyed<AnyFilter> = Keyed::open(bytes(&filter)).unwrap();
                assert_holds(reopened.filter(), held, &format!("{config}, reopened"));
            }
        }
    }
}

pub(crate) fn after_merge(info: &'static KindInfo) {
    for n in tried((0..=40).chain([100, 1000, 30_000])) {
        let config = config(info, 2 * n);
        let (ours, theirs) = (hashes(5, n), hashes(6, n));
        let mut union = must(info, &config, &ours);
        union.merge(&must(info, &config, &theirs)).unwrap();
        assert_holds(union.filter(), &ours, &format!("{n} of ours"));
        assert_holds(union.filter(), &theirs, &format!("{n} of theirs"));
        // A filter that was lent its bytes merges too.
        let mut lent: Keyed<AnyFilter> =
            Keyed::open(must(info, &config, &ours).to_bytes()).unwrap();
        let other: Keyed<AnyFilter> = Keyed::open(must(info, &config, &theirs).to_bytes()).unwrap();
        lent.merge(&other).unwrap();
        assert_eq!(
            bytes(lent.filter()),
            bytes(union.filter()),
            "{n} of each, lent"
        );
    }
}

pub(crate) fn empty_contains_nothing(info: &'static KindInfo) {
    for n in tried([0, 1, 2, 10, 1000, 100_000]) {
        for config in rates_of(info, n) {
            let fresh = must(info, &config, &[]);
            let reopened: Keyed<AnyFilter> = Keyed::open(fresh.to_bytes()).unwrap();
            for keyed in [fresh, reopened] {
                let mut filter = keyed.filter().clone();
                let before = bytes(&filter);
                assert!(filter.is_empty() && filter.len() == 0, "{config}");
                assert_eq!(filter.fpr(), 0.0, "{config}: the rate of an empty filter");
                let edges = [0, 1, u64::MAX, 1 << 63, 1 << 32, (1 << 32) - 1];
                for hash in (0..times(10_000)).map(|i| hash(7, i)).chain(edges) {
                    assert!(!filter.contains(hash), "{config} contains {hash:#x}");
                    if let Some(count) = filter.as_count() {
                        assert_eq!(count.count(hash), 0, "{config}");
                    }
                    if let Some(remove) = filter.as_remove() {
                        assert!(!remove.remove(hash), "{config} removed {hash:#x}");
                    }
                }
                assert_eq!(bytes(&filter), before, "{config}");
            }
        }
    }
}

/// The processor's extensions are turned off for the whole process: one trial at a time, or both
/// sides of a comparison might run at the same level.
static LEVEL: Mutex<()> = Mutex::new(());

fn portably<T>(work: impl FnOnce() -> T) -> T {
    force_portable(true);
    let result = work();
    force_portable(false);
    result
}

const LENGTHS: [usize; 13] = [0, 1, 7, 8, 9, 31, 33, 63, 64, 65, 255, 256, 257];

/// A filter in the caches and one that batches of many kinds prefetch for; the first alone where
/// the laws are brief.
fn small_and_large(info: &KindInfo) -> Vec<(Config, Vec<u64>)> {
    let small = (config(info, 500), hashes(8, 500));
    if is_brief() {
        return vec![small];
    }
    let mut n = 200_000;
    loop {
        let large = (config(info, n), hashes(8, n));
        // From 256 KiB on batches prefetch; some kinds do so from 2 MiB on, by a loop that the
        // library tests.
        if must(info, &large.0, &large.1).filter().size_in_bytes() > 512 << 10 {
            return vec![small, large];
        }
        n *= 2;
    }
}

pub(crate) fn batch_is_single(info: &'static KindInfo) {
    for (config, members) in small_and_large(info) {
        let keyed = must(info, &config, &members);
        let filter = keyed.filter();
        // Members, absent ones and therefore false positives, mixed.
        let mixed: Vec<u64> = (0..times(200_000))
            .map(|i| hash(8 + i % 2, i % members.len() as u64 + i % 2 * 1_000_000))
            .collect();
        let single: Vec<bool> = mixed.iter().map(|&h| filter.contains(h)).collect();
        // Of some kinds only the batches of larger filters do this.
        for &hash in mixed.iter().take(10_000).chain(&[0, u64::MAX]) {
            filter.prefetch(hash);
        }
        let check = |level: &str| {
            let mut out = vec![false; mixed.len()];
            filter.contains_batch(&mixed, &mut out);
            assert_eq!(out, single, "{config}, {level}: one batch of all");
            for start in (0..times(3000) as usize).step_by(7) {
                for len in LENGTHS {
                    let range = start..start + len;
                    // Slots that hold the wrong answer at first, and a fence behind them.
                    let mut out: Vec<bool> = single[range.clone()].iter().map(|a| !a).collect();
                    out.push(true);
                    filter.contains_batch(&mixed[range.clone()], &mut out);
                    assert_eq!(
                        out[..len],
                        single[range.clone()],
                        "{config}, {level}: {range:?}"
                    );
                    assert!(out[len], "{config}, {level}: wrote past the hashes");
                }
            }
            for (hashes, slots) in [(100, 60), (60, 100), (0, 5), (5, 0), (257, 256)] {
                let mut out = vec![true; slots];
                filter.contains_batch(&mixed[..hashes], &mut out);
                let n = hashes.min(slots);
                assert_eq!(out[..n], single[..n], "{config}, {level}");
                assert!(
                    out[n..].iter().all(|&slot| slot),
                    "{config}, {level}: wrote too far"
                );
            }
        };
        let guard = LEVEL.lock().unwrap_or_else(PoisonError::into_inner);
        check("best level");
        portably(|| check("portable"));
        let alike = portably(|| must(info, &config, &members));
        assert_eq!(
            alike.to_bytes(),
            keyed.to_bytes(),
            "{config}: built portably"
        );
        drop(guard);
    }
    keys_in_batches(info);
}

/// The key layer's own batches, whose pieces are hashed first.
fn keys_in_batches(info: &KindInfo) {
    let keyed: Keyed<AnyFilter> =
        Keyed::build(&config(info, 300).kind(info.name), 0..300u64).unwrap();
    for len in LENGTHS.into_iter().chain([512, 513, 1000]) {
        let keys: Vec<u64> = (0..len as u64).map(|i| i * 3).collect();
        for slots in [len, len + 1, len / 2, len.saturating_sub(1)] {
            let mut out = vec![true; slots];
            keyed.contains_batch(&keys, &mut out);
            for (i, &answer) in out.iter().enumerate() {
                let expected = keys.get(i).is_none_or(|key| keyed.contains(key));
                assert_eq!(answer, expected, "key {i} of {len}, {slots} slots");
            }
        }
    }
}

pub(crate) fn insert_batch_is_single(info: &'static KindInfo) {
    for (config, members) in small_and_large(info) {
        let (first, more) = members.split_at(members.len() / 2);
        let start = must(info, &config, first).filter().clone();
        let guard = LEVEL.lock().unwrap_or_else(PoisonError::into_inner);
        for len in LENGTHS.into_iter().chain([more.len()]) {
            let len = len.min(more.len());
            let batched = || {
                let mut filter = start.clone();
                let insert = filter.as_insert().expect("a kind that inserts");
                insert.insert_batch(&more[..len]).unwrap();
                bytes(&filter)
            };
            let one_by_one = || {
                let mut filter = start.clone();
                let insert = filter.as_insert().expect("a kind that inserts");
                more[..len].iter().for_each(|&h| insert.insert(h).unwrap());
                bytes(&filter)
            };
            let single = one_by_one();
            assert!(batched() == single, "{config}: batch of {len}");
            assert!(
                portably(batched) == single,
                "{config}: portable batch of {len}"
            );
            assert!(
                portably(one_by_one) == single,
                "{config}: {len} one by one, portably"
            );
        }
        drop(guard);
    }
}
