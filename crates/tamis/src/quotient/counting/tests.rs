use std::collections::{BTreeMap, HashMap};

use super::*;
use crate::bits::mix64;

fn empty(capacity: u64, fpr: f64) -> QuotientCounting {
    QuotientCounting::build(&Config::new(capacity).fpr(fpr), &mut []).unwrap()
}

fn agrees(filter: &QuotientCounting, model: &BTreeMap<u64, u64>) {
    filter
        .table
        .check()
        .unwrap_or_else(|(slot, expected)| panic!("slot {slot}: expected {expected}"));
    filter.check().unwrap();
    assert!(filter.counts().eq(model.iter().map(|(&f, &c)| (f, c))));
}

fn bytes(filter: &QuotientCounting) -> Vec<u8> {
    let config = Config::new(1);
    let keyed = crate::Keyed::from_filter(filter.clone(), crate::Hashing::default(), &config);
    keyed.unwrap().to_bytes()
}

/// Zipf's law: event `i` of many, a key from `0..keys`, the hash of which is returned. The sums of
/// powers are integrals, nearly; what is left over makes no difference here.
fn zipf(keys: u64, exponent: f64, i: u64) -> u64 {
    let u = (mix64(i) >> 11) as f64 / (1u64 << 53) as f64;
    let x = if exponent == 1.0 {
        (keys as f64).powf(u)
    } else {
        let power = 1.0 - exponent;
        (1.0 + u * ((keys as f64).powf(power) - 1.0)).powf(1.0 / power)
    };
    mix64((x as u64 - 1).min(keys - 1))
}

/// How often each hash came.
fn counted(events: &[u64]) -> HashMap<u64, u64> {
    let mut truth = HashMap::new();
    for &hash in events {
        *truth.entry(hash).or_insert(0) += 1;
    }
    truth
}

/// No count is too low, and too high at most at the rate.
fn assert_counts(filter: &QuotientCounting, truth: &HashMap<u64, u64>) {
    let mut high = 0;
    for (&hash, &count) in truth {
        assert!(filter.count(hash) >= count);
        high += u64::from(filter.count(hash) > count);
    }
    let (_, most) = math::probability::binomial_interval(truth.len() as u64, filter.fpr(), 1e-9);
    assert!(high <= most, "{high} counts are too high, {most} at most");
}

#[test]
fn random_counts_agree_with_a_multiset_after_every_step() {
    for (capacity, fpr) in [(1, 0.5), (20, 0.3), (60, 0.01), (60, 0.25), (200, 1e-6)] {
        let mut filter = empty(capacity, fpr);
        let fresh = filter.clone();
        let mut model = BTreeMap::new();
        let (mut most_doublings, mut refused) = (0, 0);
        for step in 0..3000u64 {
            let draw = mix64(step ^ capacity << 32);
            let hash = mix64(draw % (capacity + capacity / 4 + 2));
            let copies = (mix64(draw) >> (mix64(draw) % 64)).max(1) >> (step % 3 * 20);
            let fingerprint = filter.fingerprint(hash);
            let held = model.get(&fingerprint).copied().unwrap_or(0);
            assert_eq!(filter.count(hash), held);
            assert_eq!(filter.contains(hash), held > 0);
            let grows = step / 500 % 2 == 0;
            if draw >> 32 & 3 != 0 && grows {
                let before = filter.clone();
                match filter.insert_many(hash, copies) {
                    Ok(()) if copies > 0 => _ = model.insert(fingerprint, held + copies),
                    Ok(()) => {}
                    Err(_) => {
                        refused += 1;
                        assert!(filter.counts().eq(before.counts()));
                        assert_eq!((filter.len, filter.distinct), (before.len, before.distinct));
                    }
                }
            } else {
                let copies = if draw >> 40 & 1 == 0 { held } else { copies };
                let removed = filter.remove_many(hash, copies);
                assert_eq!(removed, held >= copies);
                if removed && held == copies {
                    model.remove(&fingerprint);
                } else if removed {
                    model.insert(fingerprint, held - copies);
                }
            }
            agrees(&filter, &model);
            most_doublings = most_doublings.max(filter.doublings);
        }
        assert!(most_doublings > 0 || capacity == 1, "{capacity} keys");
        assert!(refused > 0, "{capacity} keys");
        for hash in (0..2 * capacity + 2).map(mix64) {
            let copies = filter.count(hash);
            assert!(filter.remove_many(hash, copies));
        }
        assert!(bytes(&filter) == bytes(&fresh), "traces are left");
    }
}

/// The capacity counts distinct keys also where the keys are given at once.
#[test]
fn keys_that_come_often_are_built_as_if_they_had_come_one_by_one() {
    let events = || (0..100_000).map(|i| crate::Hashed(zipf(1000, 1.0, i)));
    let config = Config::new(1000).kind("quotient_counting");
    let built = crate::Keyed::<QuotientCounting>::build(&config, events()).unwrap();
    let mut inserted = crate::Keyed::<QuotientCounting>::new(&config).unwrap();
    events().for_each(|key| inserted.insert(&key).unwrap());
    assert!(built.to_bytes() == inserted.to_bytes());
    assert_eq!((built.len(), built.capacity()), (100_000, 1000));
    assert!(built.fill() <= Some(1.0));
    // And without a capacity in as few bits as these counts need.
    let any = crate::Keyed::<QuotientCounting>::build(&Config::new(0), events()).unwrap();
    assert_eq!(any.capacity(), any.filter().distinct());
    assert!(any.size_in_bytes() <= built.size_in_bytes());
}

/// However loose the rate is: of a few bits a remainder could give too few to the quotient.
#[test]
fn every_key_may_come_often_at_any_rate() {
    for fpr in [0.5, 0.1, 0.03, 0.01, 1e-4] {
        let mut filter = empty(1000, fpr);
        for hash in (0..1000).map(mix64) {
            filter.insert_many(hash, 1 << 32).unwrap();
        }
        assert_eq!(filter.len(), 1000 << 32);
        filter.check().unwrap();
        assert!((0..1000).all(|i| filter.count(mix64(i)) >= 1 << 32));
        assert!(filter.fpr() <= fpr);
        // Also where the slots were counted by few copies.
        let mut thrice: Vec<u64> = (0..3000).map(|i| mix64(i % 1000)).collect();
        let mut built = QuotientCounting::build(&Config::new(0).fpr(fpr), &mut thrice).unwrap();
        for hash in (0..1000).map(mix64) {
            built.insert_many(hash, 1 << 28).unwrap();
        }
        assert!((0..1000).all(|i| built.count(mix64(i)) >= 3 + (1 << 28)));
    }
}

/// Of a million events by Zipf's law no count is too low, and too high at most at the rate;
/// inserted one by one, in batches, built at once and merged from parts, they are the same.
#[test]
fn a_million_events_by_zipfs_law() {
    let events: Vec<u64> = (0..1_000_000).map(|i| zipf(100_000, 1.0, i)).collect();
    let truth = counted(&events);
    let config = Config::new(100_000);
    let mut filter = empty(100_000, 0.01);
    filter.insert_batch(&events).unwrap();
    assert_counts(&filter, &truth);

    let at_once = QuotientCounting::build(&config, &mut events.clone()).unwrap();
    assert!(at_once.counts().eq(filter.counts()));
    let (a, b) = events.split_at(400_000);
    let mut union = QuotientCounting::build(&config, &mut a.to_vec()).unwrap();
    let other = QuotientCounting::build(&config, &mut b.to_vec()).unwrap();
    union.merge(&other).unwrap();
    assert!(bytes(&union) == bytes(&at_once), "merging is not building");

    let own = QuotientCounting::build(&Config::default(), &mut events.clone()).unwrap();
    for built in [own, at_once] {
        let bits = built.size_in_bytes() as f64 * 8.0 / truth.len() as f64;
        assert!(bits <= 24.0, "{bits} bits per distinct key");
        assert!(built.fpr() <= 0.01);
        assert_eq!(built.len(), 1_000_000);
    }
}

#[test]
fn ten_million_events_of_a_steeper_law() {
    let events: Vec<u64> = (0..10_000_000).map(|i| zipf(1_000_000, 1.1, i)).collect();
    let truth = counted(&events);
    let mut filter = empty(truth.len() as u64, 0.01);
    filter.insert_batch(&events).unwrap();
    assert_counts(&filter, &truth);
}

#[test]
fn the_top_is_in_order_and_products_are_those_of_a_join() {
    let (mut a, mut b) = (empty(100, 1e-9), empty(100, 1e-9));
    for i in 0..50 {
        a.insert_many(mix64(i), i + 1).unwrap();
        b.insert_many(mix64(2 * i), 3).unwrap();
    }
    let top = a.top(3);
    let expected = [49, 48, 47].map(|i| (a.fingerprint(mix64(i)), i + 1));
    assert_eq!(top, expected);
    assert_eq!((a.top(0).len(), a.top(1000).len()), (0, 50));
    // The even numbers below 50 are in both.
    let join: u64 = (0..50).step_by(2).map(|i| (i + 1) * 3).sum();
    assert_eq!(a.inner_product(&b).unwrap(), u128::from(join));
    assert!(a.inner_product(&empty(101_000, 1e-9)).is_err());
}

#[test]
fn counts_of_64_bits_end_there() {
    let mut filter = empty(10, 0.01);
    filter.insert_many(1 << 60, u64::MAX - 1).unwrap();
    filter.insert(1 << 60).unwrap();
    assert_eq!(filter.count(1 << 60), u64::MAX);
    let full = filter.insert(1 << 60).unwrap_err();
    assert_eq!(full.kind(), FullKind::Duplicates(u64::MAX));
    assert!(filter.insert(1 << 61).is_err(), "the sum is one of 64 bits");
    assert!(filter.remove_many(1 << 60, u64::MAX));
    assert!(filter.is_empty());
}

/// Hashes that all want to stand in the last slots are not spread: a few hundred of them must not
/// make the table as large as it takes to tell them apart.
#[test]
fn a_crowd_at_the_end_is_refused_and_takes_little_memory() {
    let crowd = |i: u64| u64::MAX - (mix64(i) >> 24);
    let mut filter = empty(20_000, 1e-12);
    let refused = (0..2000).find_map(|i| filter.insert(crowd(i)).err());
    let full = refused.expect("a crowd is refused");
    assert!(full.kind() == FullKind::Capacity && full.keys() >= 500);
    assert!(filter.size_in_bytes() < 32 << 20);
    filter.check().unwrap();
    // So it is when two halves meet, and when it is built at once.
    let mut half = empty(20_000, 1e-12);
    let mut other = half.clone();
    (0..400).for_each(|i| half.insert(crowd(i)).unwrap());
    (400..800).for_each(|i| other.insert(crowd(i)).unwrap());
    let before = bytes(&half);
    assert!(half.merge(&other).is_err() && bytes(&half) == before);
    for capacity in [2000, 20_000] {
        let mut hashes: Vec<u64> = (0..2000).map(crowd).collect();
        let config = Config::new(capacity).fpr(1e-12);
        let refused = QuotientCounting::build(&config, &mut hashes).unwrap_err();
        assert!(
            matches!(refused.kind(), BuildErrorKind::Full(_)),
            "{refused}"
        );
    }
}
