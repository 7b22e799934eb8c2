use std::collections::HashMap;

use super::*;
use crate::bits::mix64;
use crate::window::tests::{SECOND, window};

#[track_caller]
fn check(filter: &SlidingTable) {
    filter.check().unwrap();
}

/// What a filter must hold, exactly: the copies of each fingerprint, by how often the hand had
/// passed their slot when they came.
struct Model {
    copies: HashMap<(u64, u64), Vec<u64>>,
    /// How often the hand has passed each slot.
    passed: Vec<u64>,
    turn: u64,
}

impl Model {
    fn of(filter: &SlidingTable) -> Model {
        Model {
            copies: HashMap::new(),
            passed: vec![0; filter.slots as usize],
            turn: 0,
        }
    }

    fn insert(&mut self, place: (u64, u64)) {
        let copies = self.copies.entry(place).or_default();
        copies.push(self.passed[place.0 as usize]);
        if copies.len() > MOST_COPIES {
            copies.remove(0);
        }
    }

    /// Removes the oldest copy, if not as many are held as can be.
    fn remove(&mut self, place: (u64, u64)) -> bool {
        let Some(copies) = self.copies.get_mut(&place) else {
            return false;
        };
        if copies.len() < MOST_COPIES {
            copies.remove(0);
        }
        if copies.is_empty() {
            self.copies.remove(&place);
        }
        true
    }

    /// The hand makes so many turns.
    fn turn(&mut self, filter: &SlidingTable, turns: u64) {
        for _ in 0..turns {
            let visits = filter.visits(self.turn)..filter.visits(self.turn + 1);
            for visit in visits.clone() {
                let from = (SWEPT * filter.visit_of(visit)) as usize;
                for passed in self.passed.iter_mut().skip(from).take(SWEPT as usize) {
                    *passed += 1;
                }
            }
            self.turn = (self.turn + 1) % filter.turns();
        }
        let (passed, stamps) = (&self.passed, filter.stamps);
        self.copies.retain(|place, copies| {
            copies.retain(|&born| passed[place.0 as usize] < born + stamps);
            !copies.is_empty()
        });
    }

    fn len(&self) -> u64 {
        self.copies.values().map(|copies| copies.len() as u64).sum()
    }
}

/// Random insertions, removals and readings of the clock against the model; the structure after
/// each.
fn walk(config: &Config, universe: u64, steps: u64) {
    let mut filter: SlidingTable = window(config);
    let fresh = (filter.table.size_in_bytes(), filter.state.to_vec());
    let mut model = Model::of(&filter);
    let (mut clock, mut refused) = (0u64, 0u64);
    for step in 0..steps {
        let draw = mix64(config.capacity << 40 ^ universe << 20 ^ step);
        let hash = mix64((draw >> 8) % universe);
        let place = filter.reader().place(hash);
        match draw % 16 {
            0..10 => match filter.insert(hash) {
                Ok(()) => {
                    model.insert(place);
                    if filter.seconds == 0 {
                        model.turn(&filter, 1);
                    }
                }
                Err(_) => refused += 1,
            },
            10..14 => assert_eq!(filter.remove(hash), model.remove(place), "step {step}"),
            14 if filter.seconds > 0 => {
                let now = clock + (draw >> 20) % (filter.seconds * 100_000_000);
                let turns = filter.visits_until(now) - filter.visits_until(clock);
                model.turn(&filter, turns as u64);
                filter.advance(Duration::from_nanos(now));
                clock = now;
            }
            15 if filter.seconds > 0 && filter.is_full() => {
                let held = model.len();
                while model.len() == held {
                    model.turn(&filter, filter.turns());
                }
                filter.make_room();
            }
            _ => {}
        }
        if filter.is_empty() {
            model.turn = 0;
        }
        check(&filter);
        assert_eq!(filter.len(), model.len(), "step {step}");
        for near in 0..20 {
            let hash = mix64((draw >> 8).wrapping_add(near) % (2 * universe));
            let held = model.copies.contains_key(&filter.reader().place(hash));
            assert_eq!(filter.contains(hash), held, "step {step}");
        }
    }
    assert!(filter.seconds > 0 || refused == 0, "{refused} were refused");
    for i in 0..universe {
        let place = filter.reader().place(mix64(i));
        while filter.saturated() == 0 && filter.remove(mix64(i)) {
            assert!(model.remove(place));
        }
    }
    if filter.is_empty() {
        assert!(filter.table.entries().next().is_none());
        assert_eq!(filter.table.size_in_bytes(), fresh.0);
        assert_eq!(filter.state[..2], fresh.1[..2]);
    }
    check(&filter);
}

#[test]
fn every_step_agrees_with_an_exact_model() {
    for (capacity, generations, universe, steps) in [
        (1, 1, 3, 200),
        (3, 4, 20, 1000),
        (40, 4, 100, 3000),
        (40, 4, 6, 3000),
        (100, 1, 500, 3000),
        (100, 15, 500, 3000),
        (300, 4, 100_000, 6000),
        (300, 4, 150, 6000),
    ] {
        for fpr in [0.3, 0.01, 1e-6] {
            let config = Config::new(capacity)
                .fpr(fpr)
                .set("generations", generations);
            walk(&config, universe, steps);
            walk(&config.set("seconds", 10), universe, steps);
        }
    }
}

#[test]
fn sizes_are_those_of_the_formula() {
    let n = 1_000_000;
    for (generations, bits) in [(1, 16.33), (2, 14.89), (4, 13.46), (8, 13.85)] {
        let filter: SlidingTable = window(&Config::new(n).set("generations", generations));
        let formula = math::sliding_table_bits_per_key(0.01, generations, LOAD);
        assert!((formula - bits).abs() < 0.005, "{generations}: {formula}");
        // Four standard deviations, the slots after the last, and the state.
        let got = filter.size_in_bytes() as f64 * 8.0 / n as f64;
        assert!((bits..1.005 * bits).contains(&got), "{generations}: {got}");
    }
    let filter: SlidingTable = window(&Config::new(n));
    let bits = filter.size_in_bytes() as f64 * 8.0 / n as f64;
    assert!(bits <= 13.52, "{bits}");
    // A window of time has room for all that a generation may bring.
    let filter: SlidingTable = window(&Config::new(n).set("seconds", 60));
    assert_eq!(filter.most_used(), n + n / 4);
    let bits = filter.size_in_bytes() as f64 * 8.0 / n as f64;
    assert!((14.95..15.05).contains(&bits), "{bits}");
}

#[test]
fn keys_that_come_often_are_never_refused() {
    // Each as often as copies are kept, one after the other or mixed with many.
    for n in [8u64, 30, 100, 999, 20_000] {
        for mixed in [1, 16, n.isqrt()] {
            let mut filter: SlidingTable = window(&Config::new(n));
            let each = mixed * MOST_COPIES as u64;
            for i in 0..(4 * n).max(100_000) {
                let key = |i: u64| mix64(i / each * mixed + i % mixed);
                filter.insert(key(i)).unwrap();
                assert!(filter.contains(key((i + 1).saturating_sub(n))), "{n}: {i}");
            }
            check(&filter);
        }
    }
    let mut filter: SlidingTable = window(&Config::new(1000));
    (0..100_000).for_each(|i| filter.insert(mix64(i % 3)).unwrap());
    assert_eq!((filter.len(), filter.saturated()), (24, 3));
}

#[test]
fn a_removed_key_is_gone_and_keys_like_it_stay() {
    // Two keys of one fingerprint, in any order and however far apart: what is left is found for
    // a window since it came.
    let n = 400;
    let fresh: SlidingTable = window(&Config::new(n));
    let place = fresh.reader().place(mix64(1));
    let like = (2..).find(|&i| fresh.reader().place(mix64(i)) == place);
    let (a, b) = (mix64(1), mix64(like.unwrap()));
    let mut strangers = (1 << 40..).map(mix64);
    let mut others = |filter: &mut SlidingTable, n: u64| {
        let unlike = strangers
            .by_ref()
            .filter(|&hash| fresh.reader().place(hash) != place);
        unlike
            .take(n as usize)
            .for_each(|hash| filter.insert(hash).unwrap());
    };
    for apart in [0, 1, 50, 99, 100, 250, 350] {
        for since in [0, 1, 40] {
            for removed in [a, b] {
                let mut filter = fresh.clone();
                filter.insert(a).unwrap();
                others(&mut filter, apart);
                filter.insert(b).unwrap();
                others(&mut filter, since);
                assert!(filter.remove(removed));
                // The one that is left came so many insertions ago.
                let ago = if removed == a {
                    since + 1
                } else {
                    since + 1 + apart + 1
                };
                others(&mut filter, n - ago);
                assert!(filter.contains(a) && filter.contains(b), "{apart} {since}");
                others(&mut filter, ago + fresh.share);
                assert!(!filter.contains(a), "{apart} {since}");
            }
        }
    }
    let mut filter = fresh.clone();
    filter.insert(a).unwrap();
    filter.insert(a).unwrap();
    assert!(filter.remove(a) && filter.contains(a));
    assert!(filter.remove(a) && !filter.contains(a) && !filter.remove(a));
    assert!(*filter.state == *fresh.state);
}

#[test]
fn more_than_a_window_may_hold_is_refused_or_shortens_it_and_says_so() {
    let mut filter: SlidingTable = window(&Config::new(400).set("seconds", 40));
    filter.advance(Duration::ZERO);
    let mut number = 0;
    let mut fill = |filter: &mut SlidingTable| {
        while filter.insert(mix64(number)).is_ok() {
            number += 1;
        }
        number
    };
    // A window and a generation, all at once if need be.
    assert_eq!(fill(&mut filter), 500);
    assert_eq!(filter.covered(), Some(40 * SECOND));
    filter.advance(5 * SECOND);
    assert!(filter.insert(0).is_err());
    filter.make_room();
    filter.make_room();
    // Those that the hand had met in these five seconds.
    assert!((200..300).contains(&filter.len()), "{}", filter.len());
    assert_eq!(filter.covered(), Some(Duration::ZERO));
    check(&filter);
    filter.advance(60 * SECOND);
    assert!(filter.is_empty() && filter.covered() == Some(40 * SECOND));

    // Fifteen a second, until there are too many.
    let mut second = 60;
    while filter.insert(mix64(number)).is_ok() {
        number += 1;
        if number % 15 == 0 {
            second += 1;
            filter.advance(second * SECOND);
        }
    }
    assert!((90..100).contains(&second), "{second}");
    let held = filter.len();
    filter.make_room();
    assert!((350..held).contains(&filter.len()), "{}", filter.len());
    let covered = filter.covered().unwrap();
    assert_eq!(covered, 30 * SECOND, "a generation less");
    check(&filter);
    filter.advance((second + 35) * SECOND);
    assert_eq!(
        filter.covered(),
        Some(35 * SECOND - Duration::from_nanos(1))
    );
    filter.advance((second + 41) * SECOND);
    assert_eq!(filter.covered(), Some(40 * SECOND));
}

#[test]
fn what_is_covered_is_found() {
    let mut filter: SlidingTable = window(&Config::new(100).set("seconds", 40));
    let mut came: Vec<(u64, u64)> = Vec::new();
    let (mut now, mut shortest) = (0, u64::MAX);
    for i in 0..5000u64 {
        now += mix64(i) % 300_000_000;
        filter.advance(Duration::from_nanos(now));
        if filter.insert(mix64(i << 20)).is_err() {
            filter.make_room();
            filter.insert(mix64(i << 20)).unwrap();
        }
        came.push((now, mix64(i << 20)));
        let covered = filter.covered().unwrap().as_nanos() as u64;
        shortest = shortest.min(covered);
        let reach = came.iter().rev().take_while(|(at, _)| now - at < covered);
        assert!(reach.clone().all(|&(_, hash)| filter.contains(hash)), "{i}");
    }
    assert!(shortest < 20_000_000_000, "{shortest}");
}

/// What was forgotten early before the clock started had come just before.
#[test]
fn a_clock_that_starts_late_covers_nothing_that_was_forgotten() {
    let start = 1_700_000_003 * SECOND;
    let mut filter: SlidingTable = window(&Config::new(4).set("seconds", 40));
    (0..5).for_each(|i| filter.insert(mix64(i)).unwrap());
    filter.make_room();
    filter.advance(start);
    assert_eq!(filter.covered(), Some(Duration::ZERO));
}

#[test]
fn a_full_window_says_what_may_be_done() {
    let mut filter: SlidingTable = window(&Config::new(4).set("seconds", 40));
    (0..5).for_each(|i| filter.insert(mix64(i)).unwrap());
    let full = filter.insert(mix64(5)).unwrap_err();
    assert_eq!((full.kind(), full.keys()), (FullKind::Window(5), 5));
    let said = full.to_string();
    assert!(
        ["`advance`", "`make_room`", "5 keys;"]
            .iter()
            .all(|part| said.contains(part)),
        "{said}"
    );
}
