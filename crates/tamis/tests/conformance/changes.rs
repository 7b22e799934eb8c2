//! Laws 3, 9 and 10: a refused insertion changes nothing, what is removed is what was inserted,
//! and a merged filter holds both.

use std::collections::HashMap;

use tamis::{
    AnyFilter, Config, Filter, Hashing, KINDS, Keyed, KindInfo, MergeErrorKind, ParamValue,
};

use crate::rates::Tally;
use crate::rates_of;
use crate::support::{Rng, assert_holds, bytes, config, hash, hashes, hits, must, times, tried};

/// Whether an insertion is ever refused: of many copies of one key, or of many times the
/// capacity.
pub(crate) fn fills(info: &KindInfo) -> bool {
    let refused = |hash_of: fn(u64) -> u64| {
        let mut filter = must(info, &config(info, 10), &[]).filter().clone();
        let insert = filter.as_insert().expect("a kind that inserts");
        (0..MANY as u64).any(|i| insert.insert(hash_of(i)).is_err())
    };
    refused(|_| hash(10, 0)) || refused(|i| hash(10, i))
}

/// Insertions that fill a small filter, if anything does.
const MANY: usize = 3000;

pub(crate) fn full_changes_nothing(info: &'static KindInfo) {
    let mut refusals = 0;
    for (n, filters) in [(1, 100), (2, 100), (8, 100), (50, 50), (300, 10)] {
        for config in rates_of(info, n) {
            for f in 0..times(filters).max(1) {
                let stream = 100 + f;
                let distinct = (0..MANY as u64).map(|i| hash(stream, i));
                let few = (0..MANY as u64).map(|i| hash(stream, i % 3));
                let one = std::iter::repeat_n(hash(stream, 0), MANY);
                refusals += drive(info, &config, distinct)
                    + drive(info, &config, few)
                    + drive(info, &config, one);
            }
        }
    }
    assert!(refusals > 0, "this kind filled up when it was tried");
    batches_stop_at_the_refusal(info);
}

/// Inserts until 20 hashes in all were refused, and after each refusal compares every byte with a
/// filter that was never given a refused hash. Returns the refusals.
fn drive(info: &KindInfo, config: &Config, hashes: impl Iterator<Item = u64>) -> usize {
    let mut filter = must(info, config, &[]).filter().clone();
    let mut unrefused = filter.clone();
    let mut held = Vec::new();
    let mut refusals = 0;
    for hash in hashes {
        let insert = |filter: &mut AnyFilter| {
            let insert = filter.as_insert().expect("a kind that inserts");
            insert.insert(hash)
        };
        let Err(full) = insert(&mut filter) else {
            assert_eq!(insert(&mut unrefused), Ok(()), "{config}");
            held.push(hash);
            continue;
        };
        refusals += 1;
        assert!(
            bytes(&filter) == bytes(&unrefused),
            "{config}: changed by a refused insertion"
        );
        assert_eq!(full.keys(), filter.len(), "{config}: {full}");
        assert_eq!(full.accepted(), 0, "{config}: {full}");
        if refusals == 20 {
            break;
        }
    }
    assert_eq!(filter.len(), held.len() as u64, "{config}");
    assert_holds(&filter, &held, &format!("{config}, full"));
    refusals
}

/// A batch that meets a refusal has inserted exactly what came before it.
fn batches_stop_at_the_refusal(info: &KindInfo) {
    let config = config(info, 100);
    let distinct: Vec<u64> = hashes(11, MANY as u64);
    let copies = vec![hash(11, 0); MANY];
    for all in [distinct, copies] {
        let mut filter = must(info, &config, &[]).filter().clone();
        let insert = filter.as_insert().expect("a kind that inserts");
        let Err(full) = insert.insert_batch(&all) else {
            continue;
        };
        let accepted = full.accepted();
        assert_eq!(filter.len(), accepted as u64);
        let mut single = must(info, &config, &[]).filter().clone();
        let insert = single.as_insert().expect("a kind that inserts");
        for &hash in &all[..accepted] {
            insert.insert(hash).unwrap();
        }
        assert!(insert.insert(all[accepted]).is_err());
        assert!(
            bytes(&filter) == bytes(&single),
            "a batch stopped elsewhere"
        );
    }
}

/// Removes in several orders; when all is removed, nothing is left: to the bit, where keys can
/// come again.
pub(crate) fn remove_all(info: &'static KindInfo) {
    for n in tried((1..=40).chain([257, 5000])) {
        for config in rates_of(info, n) {
            let fresh = must(info, &config, &[]).filter().clone();
            let empty = bytes(&fresh);
            let members = hashes(12, n);
            let same_order = members.clone();
            let reversed: Vec<u64> = members.iter().rev().copied().collect();
            let mut shuffled = members.clone();
            shuffled.sort_unstable();
            for order in [same_order, reversed, shuffled] {
                let mut filter = must(info, &config, &members).filter().clone();
                for (i, &hash) in order.iter().enumerate() {
                    let remove = filter.as_remove().expect("a kind that removes");
                    assert!(remove.remove(hash), "{config}: removal {i} found nothing");
                    if n < 300 {
                        assert_holds(&filter, &order[i + 1..], &format!("{config}, {i} removed"));
                    }
                }
                assert!(filter.is_empty(), "{config}: {} left", filter.len());
                assert!(
                    bytes(&filter) == empty || !info.can.insert,
                    "{config}: removing everything leaves traces"
                );
                assert!(!order.iter().any(|&hash| filter.contains(hash)), "{config}");
                assert_eq!(filter.fpr(), 0.0, "{config}");
            }
        }
    }
}

/// A key that was inserted twice is still there after one removal.
pub(crate) fn copies_are_removed(info: &'static KindInfo) {
    let config = config(info, 1000);
    let mut filter = must(info, &config, &hashes(13, 500)).filter().clone();
    let key = hash(13, 1_000_000);
    let mut copies = 0;
    while copies < 3 {
        let insert = filter.as_insert().expect("a kind that inserts");
        if insert.insert(key).is_err() {
            break;
        }
        copies += 1;
    }
    assert!(copies > 0);
    for _ in 0..copies {
        assert!(filter.contains(key));
        assert!(filter.as_remove().expect("a kind that removes").remove(key));
    }
    assert_eq!(filter.len(), 500);
    assert_holds(&filter, &hashes(13, 500), "after copies came and went");
}

/// A million insertions, removals and lookups against an exact multiset.
pub(crate) fn random_steps(info: &'static KindInfo) {
    let capacity = 2000;
    for (seed, fpr_index) in [(1, 0), (2, usize::MAX)] {
        let configs = rates_of(info, capacity);
        let config = &configs[fpr_index.min(configs.len() - 1)];
        // A saturated counter stays on purpose, and in so many steps one may be. Where a kind
        // lets the width be chosen, counters that none of this saturates must leave nothing;
        // those of the usual width must still deny no member.
        if info.params.iter().any(|param| param.name == "counter_bits") {
            walk(info, config, seed, times(250_000));
            let wide = config.clone().set("counter_bits", 8);
            assert!(
                walk(info, &wide, seed, times(500_000)),
                "{wide}: traces are left"
            );
        } else {
            let clean = walk(info, config, seed, times(500_000));
            assert!(clean, "{config}: traces are left");
        }
    }
}

/// Returns whether the filter is as new when every key has been removed again.
fn walk(info: &KindInfo, config: &Config, seed: u64, steps: u64) -> bool {
    let capacity = config.capacity;
    let universe = 2 * capacity;
    // A window that has not passed forgets nothing.
    let config = &if info.can.window {
        config.clone().capacity(steps)
    } else {
        config.clone()
    };
    let mut rng = Rng(seed << 32);
    let mut filter = must(info, config, &[]).filter().clone();
    // Copies by hash, and every copy in a list so that one can be drawn.
    let mut model: HashMap<u64, u64> = HashMap::new();
    let mut held: Vec<u64> = Vec::new();
    for step in 0..steps {
        // The population swings between nearly none and somewhat more than the capacity.
        let phase = step / 50_000 % 4;
        let bias = [60, 50, 40, 45][phase as usize];
        let draw = rng.below(100);
        if draw < bias {
            let hash = hash(200 + seed, rng.below(universe));
            let copies = model.get(&hash).copied().unwrap_or(0);
            if copies >= 3 || held.len() as u64 > capacity + capacity / 10 {
                continue;
            }
            let insert = filter.as_insert().expect("a kind that inserts");
            if insert.insert(hash).is_ok() {
                *model.entry(hash).or_default() += 1;
                held.push(hash);
            }
        } else if draw < 95 && !held.is_empty() {
            let hash = held.swap_remove(rng.below(held.len() as u64) as usize);
            let removed = filter
                .as_remove()
                .expect("a kind that removes")
                .remove(hash);
            assert!(removed, "step {step}: a member could not be removed");
            match model.get_mut(&hash) {
                Some(copies) if *copies > 1 => *copies -= 1,
                _ => drop(model.remove(&hash)),
            }
        } else {
            // What the filter denies cannot be removed, and trying changes nothing.
            let absent = hash(300 + seed, rng.next() >> 30);
            if !filter.contains(absent) {
                let remove = filter.as_remove().expect("a kind that removes");
                assert!(
                    !remove.remove(absent),
                    "step {step}: removed what was denied"
                );
            }
        }
        for _ in 0..2 {
            if !held.is_empty() {
                let member = held[rng.below(held.len() as u64) as usize];
                assert!(
                    filter.contains(member),
                    "step {step}: {member:#x} is denied"
                );
            }
        }
        if step % 20_000 == 0 {
            assert_eq!(filter.len(), held.len() as u64, "step {step}");
            assert_holds(&filter, &held, &format!("step {step}"));
            if let Some(count) = filter.as_count() {
                let limit = count.count_limit();
                for (&hash, &copies) in &model {
                    let told = count.count(hash);
                    assert!(told >= copies.min(limit), "step {step}: too low a count");
                }
            }
        }
    }
    for hash in held {
        assert!(
            filter
                .as_remove()
                .expect("a kind that removes")
                .remove(hash)
        );
    }
    assert!(filter.is_empty(), "{config}: {} left", filter.len());
    bytes(&filter) == bytes(must(info, config, &[]).filter())
}

/// A count is never below the copies inserted, as far as the filter can tell, and above it no
/// more often than the rate allows.
pub(crate) fn counts(info: &'static KindInfo) {
    let n = 10_000;
    let config = config(info, 2 * n);
    let mut filter = must(info, &config, &hashes(14, n)).filter().clone();
    let mut copies = vec![1u64; n as usize];
    if let Some(insert) = filter.as_insert() {
        for i in 0..n {
            for _ in 0..i % 4 {
                if i % 4 != 3 && insert.insert(hash(14, i)).is_ok() {
                    copies[i as usize] += 1;
                }
            }
        }
    }
    let count = filter.as_count().expect("a kind that counts");
    let limit = count.count_limit();
    let mut above = 0;
    for (i, &copies) in copies.iter().enumerate() {
        let told = count.count(hash(14, i as u64));
        let known = copies.min(limit);
        assert!(told >= known, "key {i}: {told} told, {copies} in");
        above += u64::from(told > known);
    }
    // Of the members too many count one too high only as an absent key would be found.
    let (_, high) = tamis::testing::math::binomial_interval(n, filter.fpr(), 1e-9);
    assert!(above <= high, "{above} counts too high, {high} at most");
    let mut tally = Tally::default();
    let found = (0..100_000).filter(|&i| {
        let absent = hash(15, i);
        let told = count.count(absent);
        assert_eq!(
            told > 0,
            filter.contains(absent),
            "count and contains disagree"
        );
        told > 0
    });
    let found = found.count() as u64;
    tally.add(filter.fpr(), 100_000, found);
    tally.check("counts of absent keys");
}

/// One key until it is refused, or 70 000 times: counted exactly up to the limit, and as the
/// limit from there on.
pub(crate) fn counts_reach_the_limit(info: &'static KindInfo) {
    let mut filter = must(info, &config(info, 1000), &[]).filter().clone();
    let key = hash(16, 0);
    for copies in 1..=70_000u64 {
        let insert = filter.as_insert().expect("a kind that counts what comes");
        if insert.insert(key).is_err() {
            break;
        }
        let count = filter.as_count().expect("a kind that counts");
        assert_eq!(count.count(key), copies.min(count.count_limit()));
    }
}

/// The union holds both, leaves the other alone, and has the rate that it says.
pub(crate) fn merge_holds_both(info: &'static KindInfo) {
    let queries = times(50_000);
    for n in tried([0, 1, 10, 1000, 20_000]) {
        for config in rates_of(info, 2 * n) {
            let mut tally = Tally::default();
            for f in 0..5 {
                let (a, b) = (hashes(400 + f, n), hashes(500 + f, n));
                let mut union = must(info, &config, &a);
                let other = must(info, &config, &b);
                let theirs = other.to_bytes();
                union.merge(&other).unwrap();
                assert!(
                    other.to_bytes() == theirs,
                    "{config}: the other was changed"
                );
                assert_holds(union.filter(), &a, &format!("{config}, ours"));
                assert_holds(union.filter(), &b, &format!("{config}, theirs"));
                assert_eq!(union.filter().len(), 2 * n, "{config}");
                let hits = hits(union.filter(), 600 + f, queries);
                if n >= 1000 {
                    tally.add(union.filter().fpr(), queries, hits);
                }
            }
            if n >= 1000 {
                tally.check(&format!("{config}, merged"));
            }
        }
    }
    merging_to_the_brim(info);
}

/// Filters at capacity merge, or are refused and left as they were.
fn merging_to_the_brim(info: &KindInfo) {
    let config = config(info, 100);
    let mut union = must(info, &config, &hashes(16, 100));
    for f in 0..20 {
        let other = must(info, &config, &hashes(20 + f, 100));
        let before = union.to_bytes();
        if let Err(e) = union.merge(&other) {
            assert!(matches!(e.kind(), MergeErrorKind::Full(_)), "{e}");
            assert!(union.to_bytes() == before, "changed by a refused merge");
            return;
        }
        assert_holds(
            union.filter(),
            &hashes(20 + f, 100),
            "merged beyond capacity",
        );
    }
}

/// Where a filter's bytes do not depend on the order of its keys, merging must give the bytes of
/// the union. Whether they do is found by building, not by merging, so a merge that is wrong
/// cannot excuse itself.
pub(crate) fn merge_is_the_union(info: &'static KindInfo) {
    let config = config(info, 2000);
    let (a, b) = (hashes(17, 1000), hashes(18, 1000));
    let all: Vec<u64> = a.iter().chain(&b).copied().collect();
    let mut sorted = all.clone();
    sorted.sort_unstable();
    let union = must(info, &config, &all);
    let mut reversed = all;
    reversed.reverse();
    let canonical = [sorted, reversed]
        .iter()
        .all(|order| must(info, &config, order).to_bytes() == union.to_bytes());

    let merged = |first: &[u64], second: &[u64]| {
        let mut filter = must(info, &config, first);
        filter.merge(&must(info, &config, second)).unwrap();
        filter
    };
    let (ab, ba) = (merged(&a, &b), merged(&b, &a));
    let with_none = [merged(&a, &[]), merged(&[], &a)];
    if canonical {
        assert!(ab.to_bytes() == union.to_bytes(), "merging is not building");
        assert!(
            ba.to_bytes() == union.to_bytes(),
            "merging in the other order is not"
        );
        let alone = must(info, &config, &a).to_bytes();
        assert!(
            with_none.iter().all(|f| f.to_bytes() == alone),
            "nothing added something"
        );
    }
    for (filter, held) in [
        (&ab, 2000),
        (&ba, 2000),
        (&with_none[0], 1000),
        (&with_none[1], 1000),
    ] {
        assert_eq!(filter.filter().len(), held);
        assert_holds(filter.filter(), &a, "merged");
        assert_eq!(
            filter.filter().params(),
            union.filter().params(),
            "the shape has changed"
        );
    }
}

/// Filters of another shape are refused by the name and the values of a parameter that differs.
pub(crate) fn mismatched_parameters(info: &'static KindInfo) {
    let rate = config(info, 1000).fpr;
    let mut configs = vec![
        Config::new(1000).fpr(rate),
        Config::new(1001).fpr(rate),
        Config::new(4000).fpr(rate),
        Config::new(64_000).fpr(rate),
    ];
    configs.extend(rates_of(info, 1000));
    for param in info.params {
        for value in 0..=64 {
            configs.push(Config::new(1000).fpr(rate).set(param.name, value));
        }
    }
    let built: Vec<(Config, Keyed<AnyFilter>)> = configs
        .into_iter()
        .filter_map(|c| {
            Some((
                c.clone(),
                crate::support::made(info, &c, &hashes(19, 10)).ok()?,
            ))
        })
        .collect();
    let mut refused = 0;
    for (a, ours) in &built {
        for (b, theirs) in &built {
            let (shape_a, shape_b) = (ours.filter().params(), theirs.filter().params());
            let mut union = ours.clone();
            let result = union.merge(theirs);
            if shape_a == shape_b {
                result.unwrap_or_else(|e| panic!("{a} and {b} have one shape: {e}"));
                continue;
            }
            refused += 1;
            let error = result.expect_err("filters of two shapes were merged");
            let &MergeErrorKind::Parameter {
                name,
                ours: x,
                theirs: y,
            } = error.kind()
            else {
                panic!("{a} and {b}: {error}");
            };
            assert!(x != y && error.to_string().contains(name), "{error}");
            // A parameter that a shape leaves out is 0.
            let find = |shape: &[(&str, ParamValue)]| {
                let found = shape.iter().find(|p| p.0 == name);
                found.map_or(ParamValue::from(0u64), |p| p.1)
            };
            assert!(shape_a.iter().chain(&shape_b).any(|p| p.0 == name));
            assert_eq!(
                (find(&shape_a), find(&shape_b)),
                (x, y),
                "{a}, {b}: {error}"
            );
            assert!(union.to_bytes() == ours.to_bytes(), "{a} and {b}: changed");
        }
    }
    assert!(refused > 0, "no two shapes were found");
}

/// Another kind, another hashing, or a kind that cannot merge: refused as such, and both are left
/// as they were.
pub(crate) fn merge_refusals(info: &'static KindInfo) {
    let config = config(info, 100);
    let ours = must(info, &config, &hashes(20, 50));
    let before = ours.to_bytes();
    for other in KINDS {
        let theirs = must(other, &crate::support::config(other, 100), &hashes(21, 50));
        let mut union = ours.clone();
        let result = union.merge(&theirs);
        if other.name != info.name {
            let error = result.expect_err("two kinds were merged");
            assert!(
                matches!(error.kind(), MergeErrorKind::Kind { ours, theirs } if *ours == info.name && *theirs == other.name),
                "{error}"
            );
            assert!(union.to_bytes() == before);
        } else if !info.can.merge {
            let error = result.expect_err("a kind that cannot was merged");
            assert!(
                matches!(error.kind(), MergeErrorKind::Unsupported(name) if *name == info.name),
                "{error}"
            );
            assert!(union.to_bytes() == before);
        }
    }
    let hashings = [
        Hashing::fast(0),
        Hashing::fast(7),
        Hashing::secret([1; 16]),
        Hashing::secret([2; 16]),
    ];
    for a in hashings {
        for b in hashings {
            let with =
                |hashing| Keyed::from_filter(ours.filter().clone(), hashing, &config).unwrap();
            let mut union = with(a);
            let before = union.to_bytes();
            if a == b {
                continue;
            }
            let error = union.merge(&with(b)).expect_err("two hashings were merged");
            assert!(
                matches!(error.kind(), MergeErrorKind::Hashing),
                "{a:?}, {b:?}: {error}"
            );
            assert!(union.to_bytes() == before);
        }
    }
}
