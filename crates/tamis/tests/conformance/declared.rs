//! Law 14, second part: what the list of kinds declares is what filters do, found out by trying.

use tamis::{Config, Filter, KindInfo, MergeErrorKind, ParamValue};

use crate::rates::Tally;
use crate::rates_of;
use crate::support::{assert_holds, config, hash, hashes, hits, must};

/// A filter answers to the traits that are declared, and to no others.
pub(crate) fn traits(info: &'static KindInfo) {
    let can = info.can;
    let mut filter = must(info, &config(info, 2), &[hash(1, 1)]).filter().clone();
    let other = filter.clone();
    assert_eq!(filter.as_insert().is_some(), can.insert, "insert");
    assert_eq!(filter.as_remove().is_some(), can.remove, "remove");
    assert_eq!(filter.as_count().is_some(), can.count, "count");
    assert_eq!(filter.as_map().is_some(), can.map, "map");
    assert_eq!(filter.as_window().is_some(), can.window, "window");
    assert_eq!(filter.as_window_mut().is_some(), can.window, "window");
    assert_eq!(filter.try_halve().is_some(), can.halve, "halve");
    let merged = filter.try_merge(&other);
    let unsupported =
        matches!(&merged, Err(e) if matches!(e.kind(), MergeErrorKind::Unsupported(_)));
    assert_eq!(!unsupported, can.merge, "merge: {merged:?}");
    assert!(can.insert || !(can.grow || can.window), "{can:?}");
    assert_eq!(can.count, info.copies > 0, "{} copies", info.copies);
}

/// Filled to eight times its capacity a kind that grows keeps the rate and every key, and no
/// other does.
pub(crate) fn growth(info: &'static KindInfo) {
    const CAPACITY: u64 = 1000;
    let config = config(info, CAPACITY);
    let mut filter = must(info, &config, &[]).filter().clone();
    let members = hashes(50, 8 * CAPACITY);
    let fits = filter
        .as_insert()
        .is_some_and(|f| f.insert_batch(&members).is_ok());
    let keeps = members.iter().all(|&hash| filter.contains(hash));
    // A rate that is measured on the filter's own bits scatters; one of a filter that is too full
    // is far above.
    let grows = fits && keeps && filter.fpr() <= 1.2 * config.fpr;
    assert_eq!(grows, info.can.grow, "{} after growth", filter.fpr());
    if grows {
        let mut tally = Tally::default();
        tally.add(filter.fpr(), 200_000, hits(&filter, 51, 200_000));
        tally.check("grown");
    }
}

/// So many copies are told apart, in a filter with room for them, and not one more. Where there is
/// no limit, as many as are tried, in a filter with room for one key.
pub(crate) fn copies(info: &'static KindInfo) {
    let is_limited = info.copies < u64::MAX;
    let (most, capacity) = if is_limited {
        (info.copies, info.copies)
    } else {
        (100_000, 1)
    };
    let config = Config::new(capacity);
    let mut filter = must(info, &config, &[]).filter().clone();
    let key = hash(52, 1);
    let mut tell = |copies: u64| {
        let inserted = filter.as_insert().is_some_and(|f| f.insert(key).is_ok());
        // A count at the limit stands for more as well.
        let told = filter.as_count().filter(|f| copies < f.count_limit());
        inserted && told.map(|f| f.count(key)) == Some(copies)
    };
    for copies in 1..=most {
        assert!(tell(copies), "only {} are told apart", copies - 1);
    }
    assert_eq!(tell(most + 1), !is_limited, "a limit that is not there");
}

/// A half holds all keys in half the bytes, at the rate that it says.
pub(crate) fn halves(info: &'static KindInfo) {
    let members = hashes(53, 10_000);
    // For twice the keys and some, until the size is even.
    let half = (20_000..20_100).find_map(|capacity| {
        let keyed = must(info, &Config::new(capacity), &members);
        let filter = keyed.filter().clone();
        let half = filter.try_halve()?.ok()?;
        // Each array starts on a cache line. Behind the last of its slots a table has up to 512
        // more, however many there are: of those the half has as many.
        let slots = keyed
            .params()
            .into_iter()
            .find(|(name, _)| *name == "slots");
        let tail = slots.map_or(0, |(_, slots)| {
            let ParamValue::Whole(slots) = slots else {
                panic!("{slots} slots");
            };
            512 * filter.size_in_bytes() as u64 / slots
        });
        let more = 2 * half.size_in_bytes() as i64 - filter.size_in_bytes() as i64;
        assert!((-127..128 + tail as i64).contains(&more), "{more} bytes");
        assert_eq!(half.len(), 10_000);
        Some(half)
    });
    let half = half.expect("a size that is even");
    assert_holds(&half, &members, "halved");
    let mut tally = Tally::default();
    tally.add(half.fpr(), 200_000, hits(&half, 54, 200_000));
    tally.check("halved");
    let odd = must(info, &Config::new(1), &[]).filter().clone();
    let halved = std::iter::successors(Some(odd), |f| f.try_halve()?.ok());
    let last = halved.last().expect("the first at least");
    assert!(
        matches!(last.try_halve(), Some(Err(_))),
        "there is an end to it"
    );
}

/// A map knows the value of each of its keys.
pub(crate) fn maps(info: &'static KindInfo) {
    for n in [0, 1, 1000] {
        for config in rates_of(info, n) {
            let pairs = (0..n).map(|i| (hash(55, i), i % 100));
            let filter = info.from_pairs(&config, pairs).unwrap();
            let map = filter.as_map().expect("a kind that maps");
            let right = (0..n).all(|i| map.get(hash(55, i)) == Some(i % 100));
            assert!(right, "{config}: a value is another");
            let asked = hashes(55, n + 100);
            let mut batch = vec![None; asked.len()];
            map.get_batch(&asked, &mut batch);
            assert!(
                asked
                    .iter()
                    .zip(batch)
                    .all(|(&hash, got)| got == map.get(hash))
            );
        }
    }
}

/// What is older than the window leaves; what is in it stays.
pub(crate) fn forgets(info: &'static KindInfo) {
    const CAPACITY: u64 = 1000;
    let config = config(info, CAPACITY);
    let mut filter = must(info, &config, &[]).filter().clone();
    let inserted = hashes(56, 20 * CAPACITY);
    filter
        .as_insert()
        .expect("a window")
        .insert_batch(&inserted)
        .unwrap();
    let last = inserted.len() - CAPACITY as usize;
    assert_holds(&filter, &inserted[last..], "the last insertions");
    let old = &inserted[..10 * CAPACITY as usize];
    let found = old.iter().filter(|&&hash| filter.contains(hash)).count() as u64;
    let mut tally = Tally::default();
    tally.add(filter.fpr(), old.len() as u64, found);
    tally.check("insertions of long ago");
}
