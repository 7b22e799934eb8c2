//! Models of threads that use the same shards, whose every interleaving is tried: the source of
//! the shards, with loom's locks. A filter is a number here.

#[allow(clippy::duplicate_mod, reason = "the same source, with other locks")]
#[path = "shards.rs"]
mod shards;

mod sync {
    pub(super) use loom::sync::{
        Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard,
    };
    pub(super) use std::sync::PoisonError;
}

use loom::sync::Arc;
use shards::Shards;

type Numbers = Shards<u8>;

/// Tries the interleavings of a thread that changes two shards with whatever the others do.
fn model(write: fn(&Numbers), beside: fn(&Arc<Numbers>)) {
    // Of more threads' switches there are too many to try all.
    let mut search = loom::model::Builder::new();
    search.preemption_bound = Some(3);
    search.check(move || {
        let shards = Arc::new(Shards::of([0, 0]));
        let writer = {
            let shards = shards.clone();
            loom::thread::spawn(move || write(&shards))
        };
        beside(&shards);
        writer.join().unwrap();
        let now: Vec<u8> = (0..2).map(|shard| shards.reading(shard).filter).collect();
        let after: Vec<u8> = shards.frozen().collect();
        assert_eq!(after, now, "a snapshot when nobody writes");
    });
}

/// Three changes, one after another, in two shards.
fn in_order(shards: &Numbers) {
    for (shard, change) in [(0, 1), (1, 1), (0, 2)] {
        shards.writing(shard).filter += change;
    }
}

/// What two shards hold after none of the three changes, one, two and all.
const MOMENTS: [[u8; 2]; 4] = [[0, 0], [1, 0], [1, 1], [3, 1]];

fn snapshot(shards: &Numbers) -> usize {
    let taken: Vec<u8> = shards.frozen().collect();
    let moment = MOMENTS.iter().position(|moment| taken == *moment);
    moment.expect("a snapshot is of one moment")
}

#[test]
fn a_snapshot_is_of_one_moment_and_none_is_older_than_one_before() {
    model(in_order, |shards| {
        let (first, second) = (snapshot(shards), snapshot(shards));
        assert!(first <= second);
    });
}

#[test]
fn two_snapshots_at_a_time_are_each_of_one_moment() {
    let write = |shards: &Numbers| shards.writing(1).filter += 1;
    model(write, |shards| {
        let other = {
            let shards = shards.clone();
            loom::thread::spawn(move || shards.frozen().collect::<Vec<u8>>())
        };
        let taken = [shards.frozen().collect(), other.join().unwrap()];
        let right = |taken: &Vec<u8>| taken[0] == 0 && taken[1] <= 1;
        assert!(taken.iter().all(right), "{taken:?}");
    });
}

#[test]
fn no_snapshot_has_half_of_a_change_of_all_shards() {
    let write = |shards: &Numbers| shards.change_all(|number| *number += 1);
    model(write, |shards| {
        let taken: Vec<u8> = shards.frozen().collect();
        assert_eq!(taken[0], taken[1]);
    });
}

#[test]
#[should_panic(expected = "a snapshot is of one moment")]
fn the_model_finds_the_past_that_copying_shard_after_shard_would_lose() {
    model(in_order, |shards| {
        let taken = [0, 1].map(|shard| shards.reading(shard).filter);
        let is_moment = MOMENTS.contains(&taken);
        assert!(is_moment, "a snapshot is of one moment, not {taken:?}");
    });
}

#[test]
#[should_panic(expected = "half of a change")]
fn the_model_finds_the_half_of_a_change_that_holds_no_moment() {
    let write = |shards: &Numbers| (0..2).for_each(|shard| shards.writing(shard).filter += 1);
    model(write, |shards| {
        let taken: Vec<u8> = shards.frozen().collect();
        assert!(taken[0] == taken[1], "half of a change: {taken:?}");
    });
}
