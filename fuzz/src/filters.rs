//! Filters: `ops`, any calls beside an exact model, and `open`, any bytes as a file.

use std::collections::HashMap;

use tamis::testing::repair_checksums;
use tamis::{AnyFilter, Config, Filter, Hashing, KINDS, Keyed, KindInfo};

type Any = Keyed<AnyFilter>;

/// A hash for a number, spread over 64 bits as filters ask for.
fn hash(number: u64) -> u64 {
    let x = (number ^ 0x5DEE_CE66_D1CE_4E5B).wrapping_mul(0x9FB2_1C65_1E98_DF25);
    let x = (x ^ x >> 35).wrapping_mul(0x9FB2_1C65_1E98_DF25);
    x ^ x >> 28
}

fn bytes(filter: &AnyFilter) -> Vec<u8> {
    Keyed::from_filter(filter.clone(), Hashing::default(), &Config::default())
        .expect("a rate")
        .to_bytes()
}

/// The kind of a byte, by id and so the same whatever kinds are added later: the low bytes are
/// the first seven kinds over and over, from 128 on come those with ids from 8 on.
fn pick(byte: u8) -> Option<&'static KindInfo> {
    let by_id = |id: u16| KINDS.iter().find(|info| info.id == id);
    let first = by_id(1 + u16::from(byte) % 7);
    if byte < 128 {
        first
    } else {
        by_id(u16::from(byte) - 120).or(first)
    }
}

/// Operations on a filter against an exact multiset. The first byte picks the kind, the second
/// the capacity, the third the rate; then each pair of bytes is an operation and a key.
pub fn ops(data: &[u8]) {
    let [kind, capacity, rate, steps @ ..] = data else {
        return;
    };
    let Some(info) = pick(*kind) else {
        return;
    };
    let fpr = [0.5, 0.1, 0.01, 0.004, 0.001, 1e-6][usize::from(*rate) % 6];
    let config = Config::new(u64::from(*capacity)).fpr(fpr);
    let build = |numbers: &[u8]| {
        let mut hashes: Vec<u64> = numbers.iter().map(|&n| hash(u64::from(n))).collect();
        info.build(&config, &mut hashes)
    };
    let Ok(mut filter) = build(&[]) else {
        return;
    };
    if filter.as_insert().is_none() {
        built_at_once(&config, steps, build);
        return;
    }
    let empty = filter.clone();
    // Every insertion in its order, `None` where it was removed: a window kind promises the last.
    let mut order: Vec<Option<u8>> = Vec::new();
    let window = if info.can.window {
        usize::from(*capacity)
    } else {
        usize::MAX
    };
    for step in steps.chunks_exact(2).take(500) {
        let (op, number) = (step[0], step[1]);
        let key = hash(u64::from(number));
        let before = (op % 8 < 3 || op % 8 == 7).then(|| bytes(&filter));
        let unchanged = |filter: &AnyFilter| {
            assert!(
                before.as_ref().is_none_or(|b| *b == bytes(filter)),
                "changed by a refusal"
            );
        };
        match op % 8 {
            0..3 => match filter.as_insert().expect("asked above").insert(key) {
                Ok(()) => order.push(Some(number)),
                Err(_) => unchanged(&filter),
            },
            3 | 4 => {
                // The newest copy: none that is older is promised for longer.
                let first = order.len().saturating_sub(window);
                let held = order[first..].iter_mut().rfind(|k| **k == Some(number));
                if let (Some(remove), Some(held)) = (filter.as_remove(), held) {
                    assert!(remove.remove(key), "a member could not be removed");
                    *held = None;
                }
            }
            5 => {
                let keys: Vec<u64> = (0..op / 8).map(|i| hash(u64::from(number ^ i))).collect();
                let insert = filter.as_insert().expect("asked above");
                let result = insert.insert_batch(&keys);
                let accepted = result.map_or_else(|full| full.accepted(), |()| keys.len());
                order.extend((0..accepted as u8).map(|i| Some(number ^ i)));
            }
            6 => {
                let opened = Any::open(bytes(&filter)).expect("what was written is read");
                filter = opened.filter().clone();
            }
            _ => {
                let numbers = [number, number ^ op];
                let mut other = empty.clone();
                let insert = other.as_insert().expect("asked above");
                if numbers
                    .iter()
                    .all(|&n| insert.insert(hash(u64::from(n))).is_ok())
                {
                    match filter.try_merge(&other) {
                        Ok(()) => order.extend(numbers.map(Some)),
                        Err(_) => unchanged(&filter),
                    }
                }
            }
        }
        let promised = &order[order.len().saturating_sub(window)..];
        assert!(
            !promised.contains(&Some(number)) || filter.contains(key),
            "a member is denied"
        );
    }
    let mut model: HashMap<u8, u64> = HashMap::new();
    let promised = &order[order.len().saturating_sub(window)..];
    for &number in promised.iter().flatten() {
        *model.entry(number).or_default() += 1;
    }
    let (least, held) = (model.values().sum(), order.iter().flatten().count() as u64);
    // Of a key that a window was given too often not every copy is kept, nor removed.
    assert!(
        (least..=held).contains(&filter.len()) || info.can.window && filter.saturated() > 0,
        "{} keys, of {least} to {held}",
        filter.len()
    );
    for (number, held) in model {
        let key = hash(u64::from(number));
        assert!(filter.contains(key), "a member is denied");
        if let Some(count) = filter.as_count() {
            let known = held.min(count.count_limit());
            assert!(count.count(key) >= known, "a member is counted too low");
        }
    }
    behaves(&filter);
}

/// A kind that takes all its keys at once.
fn built_at_once<E>(
    config: &Config,
    numbers: &[u8],
    build: impl Fn(&[u8]) -> Result<AnyFilter, E>,
) {
    let Ok(filter) = build(numbers) else {
        panic!("{config} of {} keys was not built", numbers.len());
    };
    assert!(
        numbers.iter().all(|&n| filter.contains(hash(u64::from(n)))),
        "a member is denied"
    );
    behaves(&filter);
}

/// The decoder on any bytes, as they are and with their checksums made right.
pub fn open(data: &[u8]) {
    try_open(data);
    let mut repaired = data.to_vec();
    repair_checksums(&mut repaired);
    try_open(&repaired);
}

/// Bytes are refused, or make a filter that behaves and that is written as it was read: unless
/// the file has features that this version is allowed to drop (a newer minor version, or
/// compatible flags).
pub fn try_open(file: &[u8]) {
    let Ok(opened) = Any::open(file.to_vec()) else {
        return;
    };
    if file[10..12] == [0; 2] && file[28..32] == [0; 4] {
        assert!(opened.to_bytes() == file, "accepted, but written otherwise");
    }
    behaves(opened.filter());
}

/// However a filter came about: batches answer as single lookups do, a key that is inserted is
/// found, changes do not panic, and the result can be stored.
fn behaves(filter: &AnyFilter) {
    let asked: Vec<u64> = (1000..1300).map(hash).collect();
    let mut out = vec![false; asked.len()];
    filter.contains_batch(&asked, &mut out);
    for (&hash, &answer) in asked.iter().zip(&out) {
        assert_eq!(filter.contains(hash), answer, "a batch answers otherwise");
        if let Some(count) = filter.as_count() {
            assert_eq!(count.count(hash) > 0, answer, "a count answers otherwise");
        }
    }
    assert!(
        (0.0..=1.0).contains(&filter.fpr()),
        "fpr() is {}",
        filter.fpr()
    );
    let mut changed = filter.clone();
    let (single, batch) = asked.split_at(50);
    for &hash in single {
        let inserted = changed.as_insert().map(|insert| insert.insert(hash));
        let found = changed.contains(hash);
        assert!(
            found || !matches!(inserted, Some(Ok(()))),
            "an inserted key is denied"
        );
    }
    if let Some(insert) = changed.as_insert() {
        let result = insert.insert_batch(batch);
        let accepted = result.map_or_else(|full| full.accepted(), |()| batch.len());
        // A window may have forgotten the others.
        let last = accepted.checked_sub(1).map(|last| batch[last]);
        assert!(
            last.is_none_or(|hash| changed.contains(hash)),
            "an inserted key is denied"
        );
    }
    let _ = changed.try_merge(filter);
    if let Some(remove) = changed.as_remove() {
        for &hash in &asked {
            remove.remove(hash);
        }
    }
    assert!(
        Any::open(bytes(&changed)).is_ok(),
        "what was changed cannot be opened"
    );
}
