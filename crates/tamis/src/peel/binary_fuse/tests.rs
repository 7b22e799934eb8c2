//! Tests of the binary fuse filter.

use super::solve::SALTS;
use super::*;
use crate::error::BuildErrorKind;
use crate::simd::{AsVector, Portable};

fn keys(n: u64, set: u64) -> Vec<u64> {
    (0..n).map(|i| mix64(set << 40 | i)).collect()
}

fn made<F: Fingerprint>(config: &str, hashes: &[u64]) -> Result<BinaryFuse<F>, BuildError>
where
    BinaryFuse<F>: Kind,
{
    Kind::build(&config.parse()?, &mut hashes.to_vec())
}

/// How many attempts a filter of one shard took: the salt tells, and the shape, which grows after
/// every [`SALTS`] of them.
fn attempts<F: Fingerprint>(filter: &BinaryFuse<F>) -> u64 {
    let slots = |&extra: &u32| Shape::new(filter.len, filter.shape.arity, extra).slots();
    let is_this = |extra: &u32| slots(extra) == filter.shape.slots();
    let round = (0..32)
        .step_by(2)
        .position(|extra| is_this(&extra))
        .unwrap() as u64;
    let salt = (0..SALTS).find(|&i| mix64(i) == filter.salts[0]).unwrap();
    round * SALTS + salt + 1
}

#[test]
fn sizes_are_those_of_the_table() {
    // Bits/key of 8-bit fingerprints: 9.044 (arity 3) and 8.618 (arity 4) at a million keys.
    for (arity, bits) in [(3, 9.044), (4, 8.618)] {
        let hashes = keys(1_000_000, 1);
        let filter: BinaryFuse8 = made(&format!("arity={arity}"), &hashes).unwrap();
        let got = filter.slots.len() as f64 * 8.0 / 1e6;
        assert!((got - bits).abs() < 0.001, "arity {arity}: {got}");
        assert!(hashes.iter().all(|&h| filter.contains(h)));
    }
}

#[test]
fn construction_succeeds_at_once_at_every_size() {
    // The sizes where the published parameters need 9 to 50 attempts, and ordinary ones. Mean
    // attempts ≤ 1.3.
    for arity in [3, 4] {
        for n in [
            3, 4, 10, 14, 42, 100, 125, 350, 355, 356, 1000, 3548, 11_520, 12_340, 13_224, 37_440,
        ] {
            let sets = if n < 1000 { 400 } else { 50 };
            let config = format!("arity={arity}");
            let total: u64 = (0..sets)
                .map(|set| attempts(&made::<u8>(&config, &keys(n, set)).unwrap()))
                .sum();
            let mean = total as f64 / sets as f64;
            assert!(
                mean <= 1.3,
                "n = {n}, arity {arity}: {mean} attempts on average"
            );
        }
    }
}

#[test]
fn every_small_size_builds() {
    for arity in [3, 4] {
        for n in 0..=64 {
            for set in 0..100 {
                let hashes = keys(n, set);
                let filter: BinaryFuse8 = made(&format!("arity={arity}"), &hashes).unwrap();
                assert!(
                    hashes.iter().all(|&h| filter.contains(h)),
                    "n = {n}, set {set}, arity {arity}"
                );
            }
        }
    }
}

#[test]
fn repeated_keys_build_the_filter_of_the_distinct_ones() {
    let distinct = keys(1000, 3);
    for copies in [2, 3, 100] {
        let repeated: Vec<u64> = distinct.iter().flat_map(|&h| vec![h; copies]).collect();
        let filter: BinaryFuse16 = made("", &repeated).unwrap();
        assert_eq!(filter.len(), 1000);
        assert_eq!(filter.slots.len() as u64, Shape::new(1000, 3, 0).slots());
        assert!(distinct.iter().all(|&h| filter.contains(h)));
    }
    let filter: BinaryFuse8 = made("", &[7; 10_000]).unwrap();
    assert_eq!((filter.len(), filter.contains(7)), (1, true));
}

/// As `build` does, with a number of shards of the test's choosing.
fn sharded(hashes: &[u64], shards: u64, threads: usize) -> Option<BinaryFuse8> {
    let config = Config::default().threads(threads);
    let mut hashes = hashes.to_vec();
    match build::round(&config, &mut Slice::new(&mut hashes), shards, 3, 0).unwrap() {
        build::Round::Built(filter) => Some(filter),
        build::Round::Failed { .. } => None,
    }
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let hashes = keys(300_000, 6);
    let one = sharded(&hashes, 8, 1).unwrap();
    assert!(hashes.iter().all(|&h| one.contains(h)));
    for threads in [2, 5] {
        let other = sharded(&hashes, 8, threads).unwrap();
        assert!(
            one.slots[..] == other.slots[..] && *one.salts == *other.salts,
            "{threads} threads"
        );
    }
}

#[test]
fn numbers_that_count_up_are_spread_over_all_shards() {
    let hashes: Vec<u64> = (0..100_000).collect();
    for shards in [1, 8, 100] {
        let filter = sharded(&hashes, shards, 1).unwrap();
        assert!(hashes.iter().all(|&h| filter.contains(h)), "{shards}");
        let queries = 1_000_000;
        let absent = 100_000..100_000 + queries;
        let hits = absent.filter(|&h| filter.contains(h)).count() as u64;
        let (low, high) = math::binomial_interval(queries, 1.0 / 256.0, 1e-9);
        assert!((low..=high).contains(&hits), "{shards} shards: {hits}");
    }
}

#[test]
fn any_number_of_shards_holds_all_keys_at_the_same_rate() {
    let hashes = keys(200_000, 7);
    for shards in [1, 2, 3, 5, 16, 100] {
        let filter = sharded(&hashes, shards, 1).unwrap();
        assert_eq!(filter.shards(), shards);
        assert!(
            hashes.iter().all(|&h| filter.contains(h)),
            "{shards} shards"
        );
        let hits = keys(1_000_000, 8)
            .into_iter()
            .filter(|&h| filter.contains(h))
            .count() as u64;
        let (low, high) = math::binomial_interval(1_000_000, filter.fpr(), 1e-9);
        assert!(
            (low..=high).contains(&hits),
            "{shards} shards: {hits} not in {low}..={high}"
        );
    }
}

#[test]
fn a_shard_far_larger_than_others_fails_rather_than_making_all_as_large() {
    // Repeats of one hash all lie in one shard; the table would be eight times as large as it
    // should be.
    let hashes = [vec![7; 90_000], keys(10_000, 4)].concat();
    assert!(sharded(&hashes, 8, 1).is_none());
    let filter: BinaryFuse8 = made("shards=8", &hashes).unwrap();
    assert_eq!(filter.len(), 10_001);
}

#[test]
fn a_rate_below_the_width_is_refused_with_the_width_s_own() {
    let error = made::<u8>("fpr=0.001", &keys(10, 1)).unwrap_err();
    let least = 1.0 / 256.0;
    let expected = BuildErrorKind::Unreachable {
        kind: "binary_fuse8",
        fpr: 0.001,
        least,
    };
    assert_eq!(error.kind(), &expected);
    assert!(made::<u16>("fpr=0.001", &keys(10, 1)).is_ok());
    assert!(made::<u8>("arity=5", &keys(10, 1)).is_err());
}

#[test]
fn slots_stay_inside_the_table_at_any_size() {
    for (segment_length, segment_count) in
        [(1, 1), (4, 3), (1 << 18, 1 << 13), (1 << 18, (1 << 14) - 3)]
    {
        for arity in [3, 4] {
            let shape = Shape {
                arity,
                segment_length,
                segment_count,
            };
            for i in 0..100_000 {
                let places: Vec<u64> = match arity {
                    3 => shape.places::<3>(mix64(i)).map(u64::from).to_vec(),
                    _ => shape.places::<4>(mix64(i)).map(u64::from).to_vec(),
                };
                for (i, &place) in places.iter().enumerate() {
                    assert!(place < shape.slots());
                    assert_eq!(
                        place / segment_length,
                        places[0] / segment_length + i as u64
                    );
                }
            }
        }
    }
}

#[test]
fn the_bytes_do_not_depend_on_the_order_of_the_keys_and_the_keys_survive() {
    let hashes = keys(50_000, 9);
    for config in ["", "arity=4", "shards=5"] {
        let first: BinaryFuse8 = made(config, &hashes).unwrap();
        let mut other = hashes.clone();
        other.reverse();
        other.rotate_left(777);
        let second = BinaryFuse8::build(&config.parse().unwrap(), &mut other).unwrap();
        assert!(first.slots[..] == second.slots[..] && *first.salts == *second.salts);
        // The slice is reordered, nothing more.
        let mut expected = hashes.clone();
        expected.sort_unstable();
        other.sort_unstable();
        assert!(other == expected, "{config}");
    }
}

#[test]
fn keys_survive_a_build_that_fails_and_one_that_drops_repeats() {
    let distinct = keys(5_000, 10);
    let mut repeated = [distinct.clone(), distinct.clone()].concat();
    let filter = BinaryFuse8::build(&Config::default(), &mut repeated).unwrap();
    assert_eq!(filter.len(), 5_000);
    let mut expected = [distinct.clone(), distinct].concat();
    expected.sort_unstable();
    repeated.sort_unstable();
    assert!(repeated == expected);
}

#[test]
fn progress_is_told_shard_by_shard_up_to_all_keys() {
    use std::sync::{Arc, Mutex};
    let hashes = keys(60_000, 11);
    for (shards, threads) in [(1, 1), (6, 1), (60, 2)] {
        let told = Arc::new(Mutex::new(Vec::new()));
        let notes = told.clone();
        let config = Config::default()
            .set("shards", shards)
            .threads(threads)
            .progress(move |progress| {
                // Whoever is slow to take note must not take note of it later.
                std::thread::sleep(std::time::Duration::from_millis(progress.done % 2));
                notes.lock().unwrap().push(progress);
            });
        BinaryFuse8::build(&config, &mut hashes.clone()).unwrap();
        let told = told.lock().unwrap().clone();
        assert_eq!(told.len(), shards + 1);
        assert!(told.iter().all(|progress| progress.total == 60_000));
        assert!(told.is_sorted_by_key(|progress| progress.done));
        assert_eq!((told[0].done, told[shards].done), (0, 60_000));
    }
}

/// Builds so many sets of each size, and many times as many of a small one, which is where chance
/// is at its worst; all succeed, one in a thousand in more than 8 attempts, and in 1.3 on average:
/// over all, and at each small size.
fn scan(sizes: impl Iterator<Item = u64>, sets: u64) {
    let (mut total, mut builds, mut long) = (0, 0, 0);
    for n in sizes {
        let sets = if n <= 513 { 200 + sets } else { sets };
        for arity in [3, 4] {
            let mut own = 0;
            for set in 0..sets {
                let hashes = keys(n, n << 12 | set << 1 | u64::from(arity == 4));
                let filter: BinaryFuse8 = made(&format!("arity={arity}"), &hashes).unwrap();
                assert!(hashes.iter().all(|&hash| filter.contains(hash)), "n = {n}");
                assert_eq!(filter.shards(), u64::from(n > 0));
                if n > 0 {
                    own += attempts(&filter);
                    long += u64::from(attempts(&filter) > 8);
                }
            }
            let mean = own as f64 / sets as f64;
            assert!(n > 513 || mean <= 1.3, "n = {n}, arity {arity}: {mean}");
            (total, builds) = (total + own, builds + sets);
        }
    }
    let mean = total as f64 / builds as f64;
    assert!(mean <= 1.3, "{mean} attempts on average");
    assert!(1000 * long <= builds, "{long} of {builds} builds took long");
}

/// The sizes at which the published parameters fail, those at which a formula might break, and
/// the most keys, of so many, that each length of the table is for.
fn awkward_sizes(most: u64) -> impl Iterator<Item = u64> {
    let slots = |n, arity| Shape::new(n, arity, 0).slots();
    let is_tight = move |n: &u64| {
        [3, 4]
            .iter()
            .any(|&arity| slots(*n, arity) != slots(n + 1, arity))
    };
    let powers = (0..=20).flat_map(|power| [(1u64 << power) - 1, 1 << power, (1 << power) + 1]);
    (0..=64)
        .chain(11_100..=11_600)
        .chain(12_300..=12_400)
        .chain(37_400..=37_460)
        .chain(powers)
        .chain((65..most).filter(is_tight))
}

/// One set of each size and arity, or as many as `TAMIS_SCAN_SETS` says, then of larger ones too:
/// `TAMIS_SCAN_SETS=40 cargo test --release -p tamis --lib -- every_awkward_size`.
#[test]
fn construction_succeeds_at_every_awkward_size() {
    let sets = std::env::var("TAMIS_SCAN_SETS").map_or(1, |sets| sets.parse().unwrap());
    let most = if sets > 1 { 2_000_000 } else { 12_000 };
    scan(awkward_sizes(most), sets);
}

#[test]
fn vectors_place_hashes_as_single_lookups_do() {
    for config in ["", "shards=7", "shards=1000"] {
        let filter: BinaryFuse8 = made(config, &keys(20_000, 1)).unwrap();
        let reader = filter.reader::<3>().unwrap();
        let ends = [0, 1, (1 << 32) - 1, 1 << 32, u64::MAX - 1, u64::MAX];
        for hash in ends.into_iter().chain((0..50_000).map(mix64)) {
            let (one, of_many) = (reader.place(hash), reader.place_by_halves(hash));
            assert_eq!((one.first, one.hash), (of_many.first, of_many.hash));
        }
    }
}

#[test]
fn batches_of_a_large_filter_answer_as_single_lookups_do() {
    for config in ["", "arity=4", "shards=7"] {
        let members = keys(2_200_000, 1);
        let filter: BinaryFuse8 = made(config, &members).unwrap();
        assert!(filter.size_in_bytes() > simd::FAR, "batches prefetch");
        let others = keys(20_000, 2);
        let asked = [&members[..20_000], &others].concat();
        for len in [0, 1, 63, 64, 65, 71, 72, 73, 127, 128, 129, asked.len()] {
            let asked = &asked[asked.len() / 2 - len / 2..][..len];
            let expected: Vec<bool> = asked.iter().map(|&hash| filter.contains(hash)).collect();
            let mut out = vec![false; len];
            filter.contains_batch(asked, &mut out);
            assert_eq!(out, expected, "{config}, {len}");
            if let Some(reader) = filter.reader::<3>() {
                lookup::drive_ring(reader, Portable, asked, &mut out);
                assert_eq!(out, expected, "{config}, {len}, one by one");
                lookup::drive_ring(reader, AsVector, asked, &mut out);
                assert_eq!(out, expected, "{config}, {len}, in eights");
            }
        }
    }
}
