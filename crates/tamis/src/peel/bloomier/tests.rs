use super::*;
use crate::format::repair_checksums;
use crate::key::Hashing;
use crate::keyed::Keyed;

fn hashes(n: u64, set: u64) -> Vec<u64> {
    (0..n).map(|i| mix64(set << 40 | i)).collect()
}

/// Pairs of which each value has up to `bits` bits, and one has as many.
fn pairs(n: u64, set: u64, bits: u32) -> Vec<(u64, u64)> {
    let value = |i: u64| match i {
        0 => low_mask(bits),
        _ => mix64(!i) & low_mask(bits),
    };
    (0..)
        .map(value)
        .enumerate()
        .map(|(i, v)| (mix64(set << 40 | i as u64), v))
        .take(n as usize)
        .collect()
}

fn map(config: &Config, pairs: &[(u64, u64)]) -> Bloomier {
    Bloomier::from_pairs(config, pairs.iter().copied()).unwrap()
}

#[track_caller]
fn assert_rate(map: &Bloomier, queries: u64) {
    let absent = hashes(queries, 99);
    let hits = absent.iter().filter(|&&h| map.get(h).is_some()).count() as u64;
    let (low, high) = math::binomial_interval(queries, map.fpr(), 1e-9);
    assert!((low..=high).contains(&hits), "{hits} not in {low}..={high}");
}

#[test]
fn members_have_their_values_at_every_width() {
    for bits in [0, 1, 7, 8, 31, 32] {
        for value_bits in [1, 2, 8, 25, 26, 32, 49, 50, 57, 58, 63, 64] {
            let pairs = pairs(300, u64::from(value_bits), value_bits);
            let config = match bits {
                0 => Config::default().set("bits", 0),
                _ => Config::default().fpr(math::fingerprint_fpr(bits)),
            };
            let map = map(&config, &pairs);
            assert_eq!(
                (map.fingerprint_bits(), map.value_bits()),
                (bits, value_bits)
            );
            for &(hash, value) in &pairs {
                assert_eq!(map.get(hash), Some(value), "{bits} and {value_bits} bits");
            }
        }
    }
}

#[test]
fn absent_hashes_are_answered_at_the_rate_of_the_width() {
    for (fpr, n, value_bits) in [(0.5, 1, 1), (0.01, 10_000, 8), (1.0 / 256.0, 3000, 64)] {
        assert_rate(
            &map(&Config::default().fpr(fpr), &pairs(n, 5, value_bits)),
            1_000_000,
        );
    }
    // Without a fingerprint everything is answered, and nothing by the map of nothing.
    let exact = Config::default().set("bits", 0);
    let one = map(&exact, &pairs(1, 5, 3));
    assert_eq!(
        (one.fpr(), one.contains(1), one.contains(2)),
        (1.0, true, true)
    );
    let none = map(&exact, &[]);
    assert_eq!((none.get(1), none.fpr(), none.len()), (None, 0.0, 0));
}

#[test]
fn values_of_no_bits_leave_a_set_of_the_same_rate() {
    let zeros: Vec<_> = hashes(2000, 5).into_iter().map(|hash| (hash, 0)).collect();
    let config = Config::default().fpr(1.0 / 16.0);
    let of_zeros = map(&config, &zeros);
    let set = Bloomier::build(&config, &mut hashes(2000, 5)).unwrap();
    assert_eq!((of_zeros.value_bits(), set.value_bits()), (0, 0));
    assert!(*of_zeros.slots.bytes == *set.slots.bytes);
    assert_eq!(set.fpr(), 1.0 / 16.0);
    assert!(zeros.iter().all(|&(hash, _)| set.get(hash) == Some(0)));
    assert_rate(&set, 300_000);
    // Without a fingerprint a slot would have no bit: it has one, and everything is answered.
    let bare = map(&Config::default().set("bits", 0), &zeros);
    assert_eq!((bare.value_bits(), bare.fpr()), (1, 1.0));
    assert!(zeros.iter().all(|&(hash, _)| bare.get(hash) == Some(0)));
}

#[test]
fn sizes_at_a_million_keys_are_those_of_the_essay() {
    // C10 with the slots of a fuse: 1.077 (v + f).
    let pairs = pairs(1_000_000, 1, 8);
    let bits_per_key = |map: &Bloomier| map.size_in_bytes() as f64 * 8.0 / 1e6;
    let eight = map(&Config::default().fpr(1.0 / 256.0), &pairs);
    assert!(
        (bits_per_key(&eight) - 17.24).abs() < 0.01,
        "{}",
        bits_per_key(&eight)
    );
    assert!(
        pairs
            .iter()
            .all(|&(hash, value)| eight.get(hash) == Some(value))
    );
    assert_rate(&eight, 1_000_000);
    let bit: Vec<_> = pairs
        .iter()
        .map(|&(hash, value)| (hash, value & 1))
        .collect();
    let bit_map = map(&Config::default().set("bits", 0), &bit);
    assert!(
        (bits_per_key(&bit_map) - 1.077).abs() < 0.001,
        "{}",
        bits_per_key(&bit_map)
    );
    assert!(
        bit.iter()
            .all(|&(hash, value)| bit_map.get(hash) == Some(value))
    );
}

#[test]
fn every_small_size_and_every_power_of_two_builds() {
    let around = (7..17).flat_map(|i| [(1 << i) - 1, 1 << i, (1 << i) + 1]);
    for n in (0..=64).chain(around) {
        for set in 0..if n <= 64 { 30 } else { 2 } {
            let pairs = pairs(n, set, 5);
            let map = map(&Config::default(), &pairs);
            assert_eq!(map.len(), n);
            assert!(
                pairs
                    .iter()
                    .all(|&(hash, value)| map.get(hash) == Some(value)),
                "{n} keys"
            );
        }
    }
}

#[test]
fn construction_needs_few_attempts() {
    let small = (1..=64).chain([100, 125, 200, 300, 350, 355, 356, 500]);
    for n in small.chain([1000, 3548, 12_340, 37_440]) {
        let sets = if n <= 500 { 300 } else { 50 };
        let of = |set| {
            let salt = Bloomier::build(&Config::default(), &mut hashes(n, set))
                .unwrap()
                .salt;
            (1..)
                .zip(0..)
                .find(|&(_, i)| peeler::attempt(i, 0).0 == salt)
                .unwrap()
                .0
        };
        let mean = (0..sets).map(of).sum::<u64>() as f64 / sets as f64;
        assert!(mean <= 1.3, "n = {n}: {mean} attempts on average");
    }
}

#[test]
fn pairs_given_twice_are_held_once_in_any_order() {
    let once = pairs(1000, 6, 9);
    let twice: Vec<_> = once.iter().rev().chain(&once).copied().collect();
    let (a, b) = (
        map(&Config::default(), &once),
        map(&Config::default(), &twice),
    );
    assert_eq!((a.len(), b.len()), (1000, 1000));
    assert!(*a.slots.bytes == *b.slots.bytes && a.salt == b.salt);
}

#[test]
fn two_values_for_one_key_are_refused_by_their_positions() {
    let mut given = pairs(100, 7, 9);
    given.extend_from_within(..);
    // Three conflicts; of that which comes first in the order given, the first value and the
    // first other one.
    for position in [170, 130, 190] {
        given[position].1 ^= 1;
    }
    given.push((given[130].0, given[130].1 ^ 2));
    let error = Bloomier::from_pairs(&Config::default(), given.iter().copied()).unwrap_err();
    let (first, second) = (30, 130);
    assert_eq!(error.kind(), &BuildErrorKind::Conflict { first, second });
    assert!(
        error.to_string().contains("positions 30 and 130"),
        "{error}"
    );
    let keyed = Keyed::<Bloomier>::from_pairs(&Config::default(), [("a", 1), ("b", 2), ("a", 3)]);
    let (first, second) = (0, 2);
    assert_eq!(
        keyed.unwrap_err().kind(),
        &BuildErrorKind::Conflict { first, second }
    );
}

#[test]
fn a_batch_answers_as_single_calls_do() {
    for n in [1, 500, 200_000] {
        let pairs = pairs(n, 8, 13);
        let map = map(&Config::default().fpr(0.1), &pairs);
        let asked: Vec<u64> = (0..2000).map(|i| mix64(8 << 40 | (i * n / 1000))).collect();
        let single: Vec<_> = asked.iter().map(|&hash| map.get(hash)).collect();
        for len in [0, 1, 31, 32, 33, 100, 2000] {
            let mut out = vec![Some(7); len + 1];
            map.get_batch(&asked[..len], &mut out);
            assert_eq!((&out[..len], out[len]), (&single[..len], Some(7)));
            map.get_batch(&asked, &mut out[..len / 2]);
        }
    }
}

#[test]
fn maps_of_keys_are_saved_and_opened() {
    for config in ["fpr=0.01", "bits=0", "fpr=1e-6"] {
        let config: Config = config.parse().unwrap();
        let secret = Hashing::secret([3; 16]);
        let squares = (0..500u64).map(|i| (i, i * i));
        let map = Keyed::<Bloomier>::from_pairs_with(&config, secret, squares).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("squares.tamis");
        map.save(&path).unwrap();
        let opened: Keyed<Bloomier> = Keyed::load(&path).unwrap();
        assert!((0..500u64).all(|i| opened.get(&i) == Some(i * i)));
        assert_eq!(opened.to_bytes(), map.to_bytes());
        let keys: Vec<u64> = (0..700).collect();
        let mut out = vec![None; 600];
        opened.get_batch(&keys, &mut out);
        let single = keys.iter().map(|key| opened.get(key));
        assert!(out.iter().copied().eq(single.take(600)));
        // As a filter of any kind it is a set of its keys.
        let any: Keyed<crate::AnyFilter> = Keyed::load(&path).unwrap();
        assert!((0..500u64).all(|i| any.contains(&i)));
        assert_eq!(
            any.filter()
                .downcast_ref::<Bloomier>()
                .unwrap()
                .value_bits(),
            18
        );
    }
}

#[test]
fn a_set_is_refused_without_a_fingerprint_and_a_map_is_not() {
    let config = Config::default().set("bits", 0);
    let error = Bloomier::build(&config, &mut [1]).unwrap_err();
    assert!(error.to_string().contains("from 1 to 32"), "{error}");
    assert!(Bloomier::from_pairs(&config, [(1, 1)]).is_ok());
    for config in [
        "bits=33",
        "bits=6",
        "bits=x",
        "fpr=1e-10",
        "fpr=0",
        "value_bits=3",
    ] {
        assert!(
            Bloomier::from_pairs(&config.parse().unwrap(), [(1, 1)]).is_err(),
            "{config}"
        );
    }
}

#[test]
fn forged_files_are_refused_or_answer() {
    let map = Keyed::<Bloomier>::from_pairs(&Config::default(), (0..60u64).map(|i| (i, i << 50)))
        .unwrap();
    let file = map.to_bytes();
    let header = u32::from_le_bytes([file[12], file[13], file[14], file[15]]) as usize;
    let bytes = (64..72).chain(96..136).chain(header..file.len() - 40);
    let (mut refused, mut opened) = (0, 0);
    for bit in bytes.flat_map(|byte| 8 * byte..8 * byte + 8) {
        let mut forged = file.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        repair_checksums(&mut forged);
        match Keyed::<Bloomier>::open(forged) {
            Err(_) => refused += 1,
            Ok(forged) => {
                opened += 1;
                (0..300u64).for_each(|i| _ = forged.get(&i));
            }
        }
    }
    assert!(refused > 300 && opened > 1000, "{refused}, {opened}");
    // Neither a width of nothing, nor more keys than slots.
    let open = |change: &dyn Fn(&mut Bloomier)| {
        let mut filter = map.filter().clone();
        change(&mut filter);
        let keyed = Keyed::from_filter(filter, Hashing::default(), &Config::default()).unwrap();
        Keyed::<Bloomier>::open(keyed.to_bytes()).map(|_| ())
    };
    assert!(open(&|_| ()).is_ok());
    assert!(open(&|m| m.len = m.shape.slots() + 1).is_err());
    let empty = map_of_nothing();
    assert!(open(&|m| *m = empty.clone()).is_ok());
    assert!(
        open(&|m| *m = Bloomier {
            salt: 1,
            ..empty.clone()
        })
        .is_err()
    );
    assert!(
        open(&|m| *m = Bloomier {
            bits: 0,
            value_bits: 0,
            ..empty.clone()
        })
        .is_err()
    );
}

fn map_of_nothing() -> Bloomier {
    map(&Config::default(), &[])
}
