//! Tests of the bumped ribbon filter.

use super::*;
use crate::Keyed;
use crate::format::repair_checksums;
use crate::ribbon::tests::{assert_rate, keys};
use crate::simd::Portable;

fn build(config: &str, hashes: &[u64]) -> RibbonBumped {
    Kind::build(&config.parse().unwrap(), &mut hashes.to_vec()).unwrap()
}

#[test]
fn a_million_keys_take_8_04_bits_each() {
    assert_eq!(math::bumped_ribbon_bucket(WIDTH), Some(BUCKET as u32));
    let hashes = keys(1_000_000, 1);
    let filter = build("fpr=0.00390625", &hashes);
    let bits = filter.size_in_bytes() as f64 * 8.0 / 1e6;
    assert!((8.0..=8.04).contains(&bits), "{bits}");
    assert!(
        (filter.fpr() * 256.0 - 1.0).abs() < 1e-9,
        "{}",
        filter.fpr()
    );
    assert!(hashes.iter().all(|&hash| filter.contains(hash)));
    assert_rate(&filter, 1_000_000);
}

#[test]
fn one_bit_a_key_takes_1_023() {
    let hashes = keys(1_000_000, 2);
    let bits = build("fpr=0.5", &hashes).size_in_bytes() as f64 * 8.0 / 1e6;
    assert!((1.0..=1.023).contains(&bits), "{bits}");
}

#[test]
fn rates_between_powers_of_two_are_met_exactly() {
    for fpr in [0.9, 0.3, 0.01, 0.0001] {
        let filter = build(&format!("fpr={fpr}"), &keys(100_000, 3));
        // Which buckets bump is chance: the rate is a little off, on either side.
        assert!(
            (filter.fpr() / fpr - 1.0).abs() < 0.005,
            "{fpr}: {}",
            filter.fpr()
        );
        assert_rate(&filter, 500_000);
    }
}

#[test]
fn every_size_builds() {
    for n in (0..60).chain((60..5000).step_by(97)) {
        for set in 0..5 {
            let hashes = keys(n, set);
            let filter = build("", &hashes);
            assert!(hashes.iter().all(|&hash| filter.contains(hash)), "{n} keys");
            assert!(n > LISTED || filter.list.len() as u64 == n);
            assert!(filter.list.len() as u64 <= LISTED);
        }
    }
}

#[test]
fn a_layer_bumps_one_key_in_thirty() {
    let rate = Rate::new("", 1.0 / 256.0, 1.0).unwrap();
    let mut hashes = keys(300_000, 4);
    let config = Config::new(0);
    let tally = config.tally(300_000);
    let (layer, bumped) = Layer::build(&config, &tally, &mut hashes, rate).unwrap();
    let share = bumped.len() as f64 / 300_000.0;
    // 0.965 slots a key, hardly one of them empty.
    assert!((0.0347..0.039).contains(&share), "{share}");
    let reader = layer.reader::<WIDE>();
    let at = |hash: u64| reader.at(multiple(hash));
    let stays = |hash: u64| reader.answer(Portable, at(hash), &layer).is_some();
    let stayed = hashes.iter().filter(|&&hash| stays(hash)).count();
    assert_eq!(stayed + bumped.len(), hashes.len());
    let (answered, _) = layer.shares();
    assert!(
        (answered - stayed as f64 / 300_000.0).abs() < 0.01,
        "{answered}"
    );
}

#[test]
fn every_layout_gives_the_answers_of_the_widest() {
    for (fpr, layout) in [
        (0.00390625, FULL),
        (0.005, NARROW),
        (0.02, NARROW),
        (0.003, WIDE),
    ] {
        for n in [0, 5, 17, 200, 5000] {
            let (members, others) = (keys(n, 6), keys(5000, 7));
            let filter = build(&format!("fpr={fpr}"), &members);
            assert!(filter.layout == layout || n < 5000);
            for hash in members.into_iter().chain(others) {
                let widest = simd::Op::run(In::<WIDE>(&filter, hash), Portable);
                assert_eq!(filter.contains(hash), widest, "{fpr} {n}");
                if layout != WIDE {
                    assert_eq!(simd::dispatch(In::<NARROW>(&filter, hash)), widest);
                }
            }
        }
    }
}

#[test]
fn the_bytes_do_not_depend_on_threads_order_or_repeats() {
    let hashes = keys(2_500_000, 5);
    let two = build("", &hashes[..2000]);
    let reversed: Vec<u64> = hashes[..2000].iter().rev().copied().collect();
    let repeated = [&reversed[..], &reversed[..7]].concat();
    // With the margin of twenty times the keys another block would be short.
    let often = [&reversed[..]; 20].concat();
    for other in [&reversed, &repeated, &often].map(|hashes| build("", hashes)) {
        assert_eq!(other.len(), 2000);
        assert_eq!(*two.first.words, *other.first.words);
        assert_eq!(*two.first.thresholds, *other.first.thresholds);
    }
    let threads = |threads| {
        let config = Config::new(0).fpr(0.2).threads(threads);
        RibbonBumped::build(&config, &mut hashes.clone()).unwrap()
    };
    let (one, many) = (threads(1), threads(3));
    assert_eq!(shape_for(2_500_000, Rate::new("", 0.2, 1.0).unwrap()).1, 2);
    for (a, b) in one.all_layers().zip(many.all_layers()) {
        assert!(*a.words == *b.words && *a.thresholds == *b.thresholds);
    }
    assert!(hashes.iter().all(|&hash| one.contains(hash)));
    assert_rate(&one, 300_000);
    // The bucket before the second shard bumps all its keys.
    let layer = &one.first;
    let border = layer.starts / 2 / BUCKET - 1;
    assert_eq!(threshold(&layer.thresholds, border), BUCKET);
}

#[test]
fn no_rate_is_above_the_one_asked_for() {
    for n in [5000, 5557, 20_000, 60_000] {
        for fpr in [0.1, 0.3, 0.06, 0.01, 0.0003] {
            for stream in 0..5 {
                let filter = build(&format!("fpr={fpr}"), &keys(n, stream));
                assert!(filter.fpr() <= fpr, "{n} keys: {} of {fpr}", filter.fpr());
            }
        }
    }
}

#[test]
fn numbers_of_a_file_that_exceed_all_others_are_refused() {
    let filter: Keyed<RibbonBumped> = Keyed::build(&Config::new(0), 0..100u64).unwrap();
    let mut forged = filter.to_bytes();
    // The number of keys, and of those that are listed.
    forged[64..72].fill(0xFF);
    forged[112..120].fill(0xFF);
    repair_checksums(&mut forged);
    assert!(Keyed::<RibbonBumped>::open(forged).is_err());
}
