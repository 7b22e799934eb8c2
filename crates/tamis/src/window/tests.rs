//! What both kinds that have windows of insertions and windows of time must do alike.

use std::time::Duration;

use super::{Sliding, SlidingTable};
use crate::bits::mix64;
use crate::config::Config;
use crate::error::DecodeError;
use crate::filter::{Filter, Kind, Window};
use crate::math;
use crate::{Hashing, Keyed};

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) fn window<W: Kind>(config: &Config) -> W {
    W::build(config, &mut []).unwrap()
}

#[track_caller]
pub(super) fn assert_rate(hits: u64, queries: u64, rate: f64, what: &str) {
    let (low, high) = math::binomial_interval(queries, rate, 1e-9);
    assert!(
        (low..=high).contains(&hits),
        "{what}: {hits}, {low} to {high} are in order"
    );
}

/// A window that can be looked over.
trait Checked: Window + Kind {
    /// Every invariant that is not checked on the way.
    fn check(&self) -> Result<(), DecodeError>;
}

impl Checked for Sliding {
    fn check(&self) -> Result<(), DecodeError> {
        self.check(self.len())
    }
}

impl Checked for SlidingTable {
    fn check(&self) -> Result<(), DecodeError> {
        self.check()
    }
}

fn a_stream_of_ten_windows<W: Checked>() {
    for (n, generations) in [(20_000u64, 4u32), (5000, 1), (6000, 8), (1001, 15)] {
        let mut filter: W = window(&Config::new(n).set("generations", generations));
        let slack = n.div_ceil(u64::from(generations));
        let (mut queries, mut expected) = ([0u64; 2], [0.0; 2]);
        let mut hits = [0u64; 2];
        for i in 0..10 * n {
            filter.insert(mix64(i)).unwrap();
            // The whole window at uneven moments, its last key each time.
            let last = (i + 1).saturating_sub(n);
            assert!(filter.contains(mix64(last)) && filter.contains(mix64(i)));
            if i % (n / 3 + 7) == 0 {
                assert!((last..=i).all(|j| filter.contains(mix64(j))), "{n}: at {i}");
                filter.check().unwrap();
                let rate = filter.fpr();
                let held = slack * u64::from(generations);
                let expired = 0..(i + 1).saturating_sub(held + slack);
                let absent = (1 << 40)..(1 << 40) + 20_000;
                for (kind, range) in [expired, absent].into_iter().enumerate() {
                    let asked = range.end - range.start;
                    hits[kind] += range.filter(|&j| filter.contains(mix64(j))).count() as u64;
                    queries[kind] += asked;
                    expected[kind] += rate * asked as f64;
                }
            }
        }
        for kind in 0..2 {
            let rate = expected[kind] / queries[kind] as f64;
            assert!(rate <= 0.01, "{n}: {rate}");
            assert_rate(hits[kind], queries[kind], rate, ["expired", "absent"][kind]);
        }
    }
}

#[test]
fn a_stream_of_ten_windows_is_remembered_for_one_and_forgotten_after_the_slack() {
    a_stream_of_ten_windows::<Sliding>();
    a_stream_of_ten_windows::<SlidingTable>();
}

fn seen_again<W: Checked>() {
    let mut filter: W = window(&Config::new(4000));
    assert!(!filter.touch(7).unwrap());
    for i in 0..40_000u64 {
        filter.insert(mix64(i)).unwrap();
        if i % 500 == 0 {
            assert!(filter.touch(7).unwrap(), "{i}");
        }
    }
    // Once in each generation, beside its thousand.
    let noted = filter.len();
    (0..100).for_each(|_| assert!(filter.touch(7).unwrap()));
    assert!(filter.len() <= noted + 1);
}

#[test]
fn a_key_that_is_seen_again_stays_and_costs_a_generation_nothing() {
    seen_again::<Sliding>();
    seen_again::<SlidingTable>();
}

fn keeps_its_keys_for_its_time<W: Checked>() {
    let mut filter: W = window(&Config::new(6000).set("seconds", 60));
    for second in 0..600u32 {
        filter.advance(second * SECOND);
        for i in 0..100 {
            filter.insert(mix64(u64::from(second) << 32 | i)).unwrap();
        }
        let all = |s: u32| {
            (0..100)
                .filter(|i| filter.contains(mix64(u64::from(s) << 32 | i)))
                .count()
        };
        assert!(
            (second.saturating_sub(60)..=second).all(|s| all(s) == 100),
            "{second}"
        );
        // Gone after a generation more, 15 seconds.
        let stray: usize = (0..second.saturating_sub(75)).map(all).sum();
        let asked = u64::from(second.saturating_sub(75)) * 100;
        let (_, high) = math::binomial_interval(asked, 0.01, 1e-9);
        assert!(stray as u64 <= high, "{second}: {stray} of {asked}");
        assert_eq!(filter.covered(), Some(60 * SECOND));
    }
    filter.check().unwrap();
    filter.advance(Duration::ZERO);
    assert!(!filter.is_empty(), "a clock that runs backwards is ignored");
    filter.advance(10_000 * SECOND);
    assert!(filter.is_empty() && filter.fpr() == 0.0);
    filter.advance(Duration::MAX);
    assert_eq!(filter.covered(), Some(60 * SECOND));
    filter.check().unwrap();
}

#[test]
fn a_window_of_time_keeps_its_keys_for_its_time() {
    keeps_its_keys_for_its_time::<Sliding>();
    keeps_its_keys_for_its_time::<SlidingTable>();
}

fn built_from_keys<W: Checked>(capacity: u64, keys: u64) -> W {
    let mut hashes: Vec<u64> = (0..keys).map(mix64).collect();
    let config = Config::new(capacity).set("seconds", 40);
    let built = W::build(&config, &mut hashes).unwrap();
    let mut filter = built.clone();
    assert_eq!(filter.len(), keys);
    for second in 0..=40 {
        filter.advance(second * SECOND);
        assert!(hashes.iter().all(|&hash| filter.contains(hash)), "{second}");
        assert_eq!(filter.covered(), Some(40 * SECOND));
        assert!(filter.fpr() <= 0.01);
    }
    filter.advance(50 * SECOND);
    assert!(filter.is_empty() && filter.covered() == Some(40 * SECOND));
    built
}

#[test]
fn keys_that_a_window_of_time_is_built_from_stay_for_all_of_it() {
    for (capacity, keys, share) in [(400, 400, 400), (400, 90, 100), (0, 7, 7), (2000, 400, 500)] {
        let sliding: Sliding = built_from_keys(capacity, keys);
        assert_eq!(sliding.window(), 4 * share);
        built_from_keys::<SlidingTable>(capacity, keys);
    }
}

fn starts_late<W: Checked>() {
    let start = 1_700_000_003 * SECOND;
    let config = Config::new(400).set("seconds", 40);
    let mut filter = W::build(&config, &mut [1, 2]).unwrap();
    filter.insert(3).unwrap();
    assert_eq!(filter.now(), None);
    filter.advance(start);
    assert_eq!((filter.now(), filter.len()), (Some(start), 3));
    filter.check().unwrap();
    filter.advance(start + 40 * SECOND);
    assert!([1, 2, 3].iter().all(|&hash| filter.contains(hash)));
    assert_eq!(filter.covered(), Some(40 * SECOND));
    filter.advance(start + 50 * SECOND);
    assert!(filter.is_empty());

    let mut counted: W = window(&Config::new(400));
    counted.advance(start);
    assert_eq!((counted.now(), counted.window_time()), (None, None));
    counted.check().unwrap();
}

#[test]
fn the_first_reading_is_the_origin_and_makes_no_key_older() {
    starts_late::<Sliding>();
    starts_late::<SlidingTable>();
}

fn starts_at_zero<W: Checked>() {
    let mut filter: W = window(&Config::new(400).set("seconds", 40));
    filter.advance(Duration::ZERO);
    assert_eq!(filter.now(), Some(Duration::from_nanos(1)));
    filter.insert(1).unwrap();
    filter.advance(60 * SECOND);
    assert!(filter.is_empty(), "zero was the first reading");
}

#[test]
fn a_clock_may_start_at_zero() {
    starts_at_zero::<Sliding>();
    starts_at_zero::<SlidingTable>();
}

fn restarts<W: Checked>() {
    let start = 1_700_000_003 * SECOND;
    let mut filter: W = window(&Config::new(400).set("seconds", 40));
    filter.insert(1).unwrap();
    filter.advance(start);
    let config = Config::new(400);
    let keyed = Keyed::from_filter(filter, Hashing::default(), &config).unwrap();
    let mut again: Keyed<W> = Keyed::open(keyed.to_bytes()).unwrap();
    assert_eq!(again.now(), Some(start));
    again.advance(start + 39 * SECOND);
    assert!(again.filter().contains(1));
    again.advance(start + 60 * SECOND);
    assert!(again.is_empty() && again.now() == Some(start + 60 * SECOND));
}

#[test]
fn a_window_that_is_loaded_knows_its_time_and_goes_on() {
    restarts::<Sliding>();
    restarts::<SlidingTable>();
}

fn makes_room_before_its_clock_starts<W: Checked>() {
    let mut filter: W = window(&Config::new(40).set("seconds", 40));
    let mut last = 0;
    while filter.covered() == Some(40 * SECOND) {
        last += 1;
        if filter.insert(mix64(last)).is_err() {
            filter.make_room();
        }
    }
    let start = 1_700_000_003 * SECOND;
    filter.advance(start);
    assert!(
        filter.covered() <= Some(30 * SECOND),
        "what was forgotten counts as forgotten now, not long ago"
    );
    filter.check().unwrap();
    for second in 1..=60 {
        filter.advance(start + second * SECOND);
        assert!(
            filter.covered() <= Some(second.max(30) * SECOND),
            "{second}"
        );
        filter.check().unwrap();
    }
    assert_eq!(filter.covered(), Some(40 * SECOND));
}

#[test]
fn what_was_forgotten_before_the_clock_started_is_told() {
    makes_room_before_its_clock_starts::<Sliding>();
    makes_room_before_its_clock_starts::<SlidingTable>();
}
