use std::time::Duration;

use super::*;
use crate::error::DecodeErrorKind;
use crate::filter::Filter;
use crate::kinds::{KindVisitor, for_each_kind};
use crate::{AnyFilter, Bloom, Cuckoo, Keyed, Open, SlidingTable, math};

/// Of every kind, in each shard: all keys are found, and others at the shard's own rate.
struct Rates;

impl KindVisitor for Rates {
    fn visit<F: Kind>(&mut self) {
        const KEYS: u64 = 16_000;
        const SHARDS: usize = 8;
        let name = F::INFO.name;
        let config = Config::new(KEYS);
        let hashes = (0..KEYS).map(mix64).collect();
        let built = Shared::<F>::of_hashes(&config, Hashing::default(), hashes, Some(SHARDS));
        let shared = built.unwrap();
        let mut asked: Vec<Vec<u64>> = vec![Vec::new(); SHARDS];
        for hash in (0..400_000).map(|i| mix64(1 << 40 | i)) {
            asked[shard_of(hash, SHARDS)].push(hash);
        }
        for (shard, asked) in asked.iter().enumerate() {
            let filter = &shared.shards.reading(shard).filter;
            let mut answers = vec![false; asked.len()];
            filter.contains_batch(asked, &mut answers);
            let hits = answers.iter().filter(|&&found| found).count() as u64;
            let (low, high) = math::binomial_interval(asked.len() as u64, filter.fpr(), 1e-9);
            assert!(
                (low..=high).contains(&hits),
                "{name}, shard {shard}: {hits}, {low} to {high} are in order"
            );
        }
        for hash in (0..KEYS).map(mix64) {
            let filter = &shared.shards.reading(shard_of(hash, SHARDS)).filter;
            assert!(filter.contains(hash), "{name}");
        }
        let bytes = shared.to_bytes();
        let again: Shared<F> = Shared::open(bytes.clone()).unwrap();
        assert!(again.to_bytes() == bytes, "{name}");
    }
}

#[test]
fn every_shard_of_every_kind_keeps_its_rate_and_its_file() {
    for_each_kind(&mut Rates);
}

#[test]
fn shards_are_of_equal_size_also_for_numbers_in_a_row() {
    for shards in [1, 2, 3, 64, 1000] {
        let mut sizes = vec![0u64; shards];
        (0..100_000u64).for_each(|hash| sizes[shard_of(hash, shards)] += 1);
        let (low, high) = math::binomial_interval(100_000, 1.0 / shards as f64, 1e-12);
        assert!(sizes.iter().all(|size| (low..=high).contains(size)));
    }
}

#[test]
fn batches_answer_as_single_calls() {
    for n in [0u64, 1, 17, 5000, 10_000] {
        let filter: Shared<Cuckoo> = Shared::new(&Config::new(100_000)).unwrap();
        filter.extend(0..n).unwrap();
        assert_eq!((filter.len(), filter.is_empty()), (n, n == 0));
        let mut out = vec![false; 2 * n as usize + 3];
        filter.contains_batch(0..2 * n, &mut out);
        assert!((0..2 * n).all(|i| out[i as usize] == filter.contains(&i)));
        assert!(out[2 * n as usize..].iter().all(|&found| !found));
    }
}

#[test]
fn a_refusal_tells_how_many_keys_are_in() {
    let filter: Shared<Cuckoo> = Shared::new(&Config::new(20_000)).unwrap();
    assert_eq!(filter.shards(), 4);
    filter.extend(0..20_000u64).unwrap();
    let full = filter.extend(20_000..1_000_000u64).unwrap_err();
    assert_eq!(filter.len(), 20_000 + full.accepted() as u64);
    assert!(filter.seen(&7u64).unwrap());
}

#[test]
fn keys_come_leave_and_are_counted() {
    let filter: Shared<Cuckoo> = Shared::new(&Config::new(10_000).fpr(1e-6)).unwrap();
    assert!(!filter.seen("a").unwrap() && filter.seen("a").unwrap());
    filter.insert("a").unwrap();
    assert_eq!(filter.count("a"), 2);
    assert!(filter.remove("a") && filter.remove("a") && !filter.remove("a"));
    assert!(filter.is_empty() && filter.fpr() == 0.0);
}

#[test]
fn a_window_forgets_in_all_shards_and_knows_its_time_after_a_restart() {
    let second = Duration::from_secs(1);
    let start = 1_700_000_003 * second;
    let config = Config::new(100_000).set("seconds", 40);
    let window: Shared<SlidingTable> = Shared::new(&config).unwrap();
    window.extend(0..10_000u64).unwrap();
    assert_eq!(window.now(), None);
    window.advance(start);
    window.advance(start + 39 * second);
    assert!((0..10_000u64).all(|key| window.contains(&key)));
    assert!(window.touch(&7u64).unwrap());
    let again: Shared<SlidingTable> = Shared::open(window.to_bytes()).unwrap();
    assert_eq!(again.now(), Some(start + 39 * second));
    assert_eq!(again.covered(), Some(40 * second));
    again.advance(start + 60 * second);
    assert_eq!(again.len(), 1);
    assert!(again.contains(&7u64));
    // Until a shard is full, and then some.
    let fills = |part: u64| again.extend(1000 * part..1000 * (part + 1)).is_err();
    assert!((1..1000).any(fills));
    again.make_room();
    assert!(again.covered() < Some(40 * second));
}

#[test]
fn shards_of_few_keys_hold_all_that_they_were_made_for() {
    for (keys, shards) in [(3000u64, 1000), (20_000, 4096), (100_000, 64)] {
        let config = Config::new(keys);
        let filter = Shared::<crate::RankIndexed>::with_shards(&config, Hashing::default(), shards);
        filter.unwrap().extend(0..keys).unwrap();
    }
}

#[test]
fn a_snapshot_is_left_alone_by_what_comes_after() {
    let filter: Shared<Bloom> = Shared::new(&Config::new(50_000)).unwrap();
    filter.extend(0..10_000u64).unwrap();
    let bytes = filter.to_bytes();
    // Marked by both, copied once; then by neither.
    let (mut first, mut second) = (filter.shards.frozen(), filter.shards.frozen());
    let (one, other) = (first.next().unwrap(), second.next().unwrap());
    assert!(one.len() == other.len() && one.len() > 0);
    filter.extend(10_000..20_000u64).unwrap();
    let held: u64 = first.map(|filter| filter.len()).sum::<u64>() + one.len();
    let both: u64 = second.map(|filter| filter.len()).sum::<u64>() + other.len();
    assert_eq!((held, both, filter.len()), (10_000, 10_000, 20_000));
    let later = filter.snapshot();
    filter.insert("more").unwrap();
    assert_eq!((later.len(), filter.len()), (20_000, 20_001));
    assert_eq!(Shared::<Bloom>::open(bytes).unwrap().len(), 10_000);
}

#[test]
fn a_secret_is_kept_out_of_the_file_where_it_is_withheld() {
    let secret = Hashing::secret(*b"sixteen letters!").withheld();
    let config = Config::new(1000);
    let filter: Shared<Bloom> = Shared::new_with(&config, secret).unwrap();
    filter.insert("a").unwrap();
    let bytes = filter.to_bytes();
    assert!(Shared::<Bloom>::open(bytes.clone()).is_err());
    let again: Shared<Bloom> = Open::new().hashing(secret).shared_bytes(bytes).unwrap();
    assert!(again.contains("a"));
}

#[test]
fn a_file_is_saved_and_loaded_and_is_no_filter_by_itself() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shared");
    let filter: Shared<Bloom> = Shared::build(&Config::default(), 0..10_000u64).unwrap();
    filter.save(&path).unwrap();
    let again: Shared<Bloom> = Shared::load(&path).unwrap();
    assert_eq!((again.len(), again.shards()), (10_000, filter.shards()));
    let error = Keyed::<AnyFilter>::load(&path).unwrap_err();
    assert!(matches!(error.kind(), DecodeErrorKind::Shared));
    assert!(error.to_string().contains("`Shared::load`"), "{error}");
    let other = Shared::<Cuckoo>::load(&path).unwrap_err();
    assert!(
        matches!(other.kind(), DecodeErrorKind::OtherKind { .. }),
        "{other}"
    );
    let missing = Shared::<Bloom>::load(directory.path().join("none")).unwrap_err();
    assert!(missing.to_string().contains("none"));
}

/// The file with its last checksum made to agree.
fn repaired(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.len() - 8;
    let sum =
        xxhash_rust::xxh3::xxh3_64_with_seed(&bytes[..body], u64::from_le_bytes(*b"tamissha"));
    bytes[body..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn every_truncation_and_every_flipped_bit_is_refused() {
    let hashing = Hashing::default();
    let filter: Shared<Bloom> = Shared::with_shards(&Config::new(10), hashing, 2).unwrap();
    filter.extend(["a", "b", "c"]).unwrap();
    let bytes = filter.to_bytes();
    let open = |bytes: Vec<u8>| Shared::<Bloom>::open(bytes);
    assert!(open(bytes.clone()).unwrap().contains("a"));
    for len in 0..bytes.len() {
        assert!(open(bytes[..len].to_vec()).is_err(), "{len} bytes");
        if len >= 32 {
            assert!(
                open(repaired(bytes[..len].to_vec())).is_err(),
                "{len} bytes"
            );
        }
    }
    for bit in 0..8 * bytes.len() {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(open(flipped.clone()).is_err(), "bit {bit}");
        // Behind the last checksum, the shards' own find all but the capacity's and their order.
        if bit / 8 < bytes.len() - 8 {
            assert!(open(repaired(flipped)).is_err(), "bit {bit}");
        }
    }
    let mut longer = bytes.clone();
    longer.splice(bytes.len() - 8..bytes.len() - 8, [0; 8]);
    assert!(
        open(repaired(longer)).is_err(),
        "bytes after the last shard"
    );
}

#[test]
fn shards_that_do_not_belong_together_are_refused() {
    let with = |config: &Config, hashing| {
        let filter: Shared<Bloom> = Shared::with_shards(config, hashing, 2).unwrap();
        filter.to_bytes()
    };
    let usual = with(&Config::new(10), Hashing::default());
    let half = (usual.len() - 32) / 2;
    let mix = |other: &[u8]| {
        let bytes = [&usual[..24 + half], &other[24 + half..]].concat();
        Shared::<Bloom>::open(repaired(bytes))
    };
    assert!(mix(&usual).is_ok());
    assert!(mix(&with(&Config::new(10), Hashing::fast(7))).is_err());
    assert!(mix(&with(&Config::new(10).fpr(0.011), Hashing::default())).is_err());
    assert!(mix(&with(&Config::new(11), Hashing::default())).is_err());
}

#[test]
fn what_cannot_be_is_refused() {
    let none = Shared::<Bloom>::new(&Config::default());
    assert!(matches!(
        none.unwrap_err().kind(),
        BuildErrorKind::NoCapacity { .. }
    ));
    for shards in [0, MOST_SHARDS + 1, usize::MAX] {
        let error = Shared::<Bloom>::with_shards(&Config::new(1), Hashing::default(), shards);
        assert!(error.unwrap_err().to_string().contains("65536"));
    }
    assert!(Shared::<Bloom>::new(&Config::new(1).fpr(f64::NAN)).is_err());
    assert!(Shared::<Bloom>::new(&Config::new(u64::MAX)).is_err());
}

#[test]
fn a_filter_built_on_threads_is_the_one_of_one_thread() {
    let build = |threads| {
        let config = Config::default().threads(threads);
        Shared::<Cuckoo>::build(&config, 0..50_000u64).unwrap()
    };
    assert!(build(1).to_bytes() == build(3).to_bytes());
}
