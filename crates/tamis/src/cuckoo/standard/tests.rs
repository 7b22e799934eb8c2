use super::*;
use crate::bits::mix64;
use crate::{Hashing, Keyed};

#[test]
fn the_alternate_bucket_leads_back_and_differs_at_every_size() {
    for buckets in [
        2u64,
        4,
        6,
        10,
        1000,
        3 << 29,
        (1 << 31) - 2,
        (1 << 31) + 2,
        1 << 32,
        (1 << 34) + 6,
        1 << 45,
    ] {
        for i in 0..10_000 {
            let bucket = fastrange(mix64(i), buckets).0;
            let fingerprint = 1 + mix64(!i) % 0xffff_ffff;
            let other = alternate(bucket, fingerprint, buckets);
            assert!(other < buckets && other != bucket, "{buckets} buckets");
            assert_eq!(
                alternate(other, fingerprint, buckets),
                bucket,
                "{buckets} buckets"
            );
        }
    }
}

#[test]
fn every_width_stores_and_finds_every_slot() {
    for bits in 4..=32 {
        let mut filter = Cuckoo::with_shape(6, bits, false).unwrap();
        let value = |slot: u64| 1 + mix64(slot) % low_mask(bits);
        for slot in 0..filter.slots() {
            filter.table.set(slot, value(slot));
        }
        for slot in 0..filter.slots() {
            assert_eq!(
                filter.table.get(slot),
                value(slot),
                "{bits} bits, slot {slot}"
            );
            let first = (slot / 4 * 4..slot + 1).find(|&s| value(s) == value(slot));
            assert_eq!(
                filter.find(slot / 4, value(slot)),
                first,
                "{bits} bits, slot {slot}"
            );
        }
        for bucket in 0..filter.buckets {
            for fingerprint in 1..=low_mask(bits.min(10)) {
                let held = (0..4).any(|s| filter.table.get(bucket * 4 + s) == fingerprint);
                assert_eq!(filter.matches(bucket, fingerprint) != 0, held);
            }
        }
    }
}

#[test]
fn every_width_puts_a_fingerprint_into_the_first_free_slot_and_touches_no_other() {
    for bits in 4..=32 {
        let mut filter = Cuckoo::with_shape(6, bits, false).unwrap();
        let mut model = vec![0; filter.slots() as usize];
        for step in 0..2000 {
            let draw = mix64(step << 8 | u64::from(bits));
            let (bucket, slot) = (draw % 6, draw >> 16 & 3);
            let first_free = (4 * bucket..4 * bucket + 4).find(|&s| model[s as usize] == 0);
            if draw >> 8 & 1 == 0 {
                let fingerprint = 1 + (draw >> 20) % low_mask(bits);
                assert_eq!(filter.put(bucket, fingerprint), first_free.is_some());
                first_free.inspect(|&slot| model[slot as usize] = fingerprint);
            } else {
                filter.table.set(4 * bucket + slot, 0);
                model[(4 * bucket + slot) as usize] = 0;
            }
            assert!(filter.table.iter().eq(model.iter().copied()), "{bits} bits");
        }
    }
}

#[test]
fn the_ninth_copy_is_refused_as_a_duplicate_and_changes_nothing() {
    let key = mix64(1000);
    let mut filter = Cuckoo::build(&Config::new(1000), &mut []).unwrap();
    for i in 0..100 {
        filter.insert(mix64(i)).unwrap();
    }
    for copies in 1..=8 {
        filter.insert(key).unwrap();
        assert_eq!(filter.count(key), copies);
    }
    let before: Vec<u64> = filter.table.iter().collect();
    let full = filter.insert(key).unwrap_err();
    assert_eq!(full.kind(), FullKind::Duplicates(8));
    assert_eq!(full.keys(), 108);
    assert!(filter.table.iter().eq(before));
    assert!((0..8).all(|_| filter.remove(key)));
    assert!(!filter.remove(key) && (0..100).all(|i| filter.contains(mix64(i))));
}

#[test]
fn tables_fill_past_95_per_cent_before_the_first_refusal() {
    for (buckets, bits) in [(1 << 12, 12), (5000, 8), (1 << 15, 16), (300_002, 8)] {
        let mut filter = Cuckoo::with_shape(buckets, bits, false).unwrap();
        let inserted = (0..)
            .take_while(|&i| filter.insert(mix64(i)).is_ok())
            .count() as u64;
        assert!(
            filter.load() > 0.95,
            "{buckets} buckets, {bits} bits: {}",
            filter.load()
        );
        assert!((0..inserted).all(|i| filter.contains(mix64(i))));
    }
}

#[test]
fn the_declared_capacity_is_reached_by_small_filters() {
    // No failure in a million filters bounds the probability by 2.1e-5 at α = 1e-9.
    let mut seed = 0u64;
    for (keys, filters) in [
        (1u64, 1000u64),
        (8, 300_000),
        (9, 200_000),
        (14, 200_000),
        (20, 100_000),
        (40, 100_000),
        (100, 50_000),
        (200, 40_000),
        (500, 5_000),
        (1000, 4_000),
        (4000, 1000),
    ] {
        let buckets = buckets_for(keys, 10) as u64;
        for _ in 0..filters {
            let mut filter = Cuckoo::with_shape(buckets, 10, false).unwrap();
            for _ in 0..keys {
                seed += 1;
                assert!(
                    filter.insert(mix64(seed)).is_ok(),
                    "{} of {keys} keys in {buckets} buckets",
                    filter.len
                );
            }
        }
    }
}

#[test]
fn high_rates_used_to_make_tables_that_could_not_be_filled() {
    // A rate of 50 % takes 4 bits; filled to 95 % such tables refused keys from 83 % of their
    // capacity on.
    for bits in 4..=9 {
        for (keys, sets) in [(1000, 200), (20_000, 20), (1_000_000, 2)] {
            for set in 0..sets {
                let mut hashes: Vec<u64> = (0..keys).map(|i| mix64(set << 40 | i)).collect();
                let config = Config::new(keys).fpr(0.9).set("bits", bits);
                let filter = Cuckoo::build(&config, &mut hashes);
                assert!(filter.is_ok(), "{keys} keys, {bits} bits: {filter:?}");
            }
        }
    }
}

#[test]
fn the_rate_used_to_count_copies_of_a_key_as_keys() {
    // Five keys twice: one fingerprint each, however often it is held.
    let config = Config::new(1000).fpr(0.03);
    let once = Cuckoo::build(&config, &mut [1, 2, 3, 4, 5].map(mix64)).unwrap();
    let twice = [1, 2, 3, 4, 5, 1, 2, 3, 4, 5];
    let twice = Cuckoo::build(&config, &mut twice.map(mix64)).unwrap();
    assert_eq!(once.fpr(), 10.0 / (once.buckets as f64 * 255.0));
    assert_eq!(twice.fpr(), once.fpr());
}

#[test]
fn the_rate_of_a_part_is_that_of_the_table() {
    let keys = 1_500_000;
    let mut hashes: Vec<u64> = (0..keys).map(mix64).collect();
    let filter = Cuckoo::build(&Config::new(keys), &mut hashes).unwrap();
    assert!(filter.buckets > COUNTED);
    let formula = math::cuckoo_fpr(filter.bits(), filter.load());
    assert!((filter.fpr() / formula - 1.0).abs() < 0.01);
}

#[test]
fn sizes_are_those_of_the_formula() {
    // spec: 10.53 bits/key at 1 %, 11.58 at 0.39 %, 12.63 at 0.19 %.
    for (fpr, bits_per_key) in [(0.01, 10.53), (1.0 / 256.0, 11.58), (0.0019, 12.63)] {
        let filter = Cuckoo::build(&Config::new(1_000_000).fpr(fpr), &mut []).unwrap();
        let got = filter.slots() as f64 * f64::from(filter.bits()) / 1e6;
        assert!((got / bits_per_key - 1.0).abs() < 0.001, "{got} at {fpr}");
    }
}

#[test]
fn a_large_table_with_few_keys_used_to_state_a_rate_of_nothing() {
    let mut filter = Cuckoo::build(&Config::new(3_000_000), &mut [u64::MAX - 5]).unwrap();
    let one = filter.fpr();
    assert!(one > 0.0);
    filter.insert(12_345).unwrap();
    assert!(
        (filter.fpr() / one - 2.0).abs() < 1e-9,
        "{one} of one, {} of two",
        filter.fpr()
    );
}

/// A filter of each form, with the same fingerprints.
fn both_forms(config: &Config, hashes: &[u64]) -> [Cuckoo; 2] {
    [0, 1].map(|semi_sort| {
        let config = config.clone().with(option::SEMI_SORT, semi_sort);
        Cuckoo::build(&config, &mut hashes.to_vec()).unwrap()
    })
}

#[test]
fn semi_sorted_buckets_answer_as_plain_ones_in_a_bit_less() {
    for bits in 4..=32 {
        let keys = 3000;
        let members: Vec<u64> = (0..keys).chain(0..300).map(mix64).collect();
        let config = Config::new(keys + 400).fpr(0.9).set("bits", bits);
        let [mut plain, mut sorted] = both_forms(&config, &members);
        assert!(sorted.is_semi_sorted() && !plain.is_semi_sorted());
        assert_eq!(sorted.fingerprint_bits(), bits);
        assert_eq!(sorted.table.width() + 1, plain.table.width());
        assert_eq!((sorted.slots(), sorted.fpr()), (plain.slots(), plain.fpr()));
        let agree = |plain: &Cuckoo, sorted: &Cuckoo| {
            let asked = (0..keys).chain(1 << 30..(1 << 30) + 5000).map(mix64);
            for hash in asked {
                assert_eq!(sorted.contains(hash), plain.contains(hash), "{bits} bits");
                assert_eq!(sorted.count(hash), plain.count(hash), "{bits} bits");
            }
        };
        agree(&plain, &sorted);
        for i in 0..keys / 2 {
            assert!(plain.remove(mix64(i)) && sorted.remove(mix64(i)));
        }
        agree(&plain, &sorted);
    }
}

#[test]
fn semi_sorted_tables_fill_past_95_per_cent_and_empty_to_nothing() {
    for (buckets, bits) in [(1 << 12, 12), (5000, 8), (1 << 12, 17), (1 << 12, 18)] {
        let mut filter = Cuckoo::with_shape(buckets, bits, true).unwrap();
        let inserted = (0..)
            .take_while(|&i| filter.insert(mix64(i)).is_ok())
            .count() as u64;
        assert!(filter.load() > 0.95, "{bits} bits: {}", filter.load());
        assert!((0..inserted).all(|i| filter.contains(mix64(i))));
        assert!((0..inserted).all(|i| filter.remove(mix64(i))));
        assert!(filter.is_empty() && filter.table.iter().all(|slot| slot == 0));
    }
}

#[test]
fn semi_sorted_buckets_do_not_depend_on_the_order_of_insertion() {
    // Far from full every key has its first bucket, so that each has the same fingerprints.
    let mut hashes: Vec<u64> = (0..300).map(mix64).collect();
    let config = Config::new(5000).with(option::SEMI_SORT, 1);
    let first = Cuckoo::build(&config, &mut hashes).unwrap();
    hashes.reverse();
    let second = Cuckoo::build(&config, &mut hashes).unwrap();
    assert!(first.table.iter().eq(second.table.iter()));
}

#[test]
fn a_file_with_a_bucket_of_no_form_is_refused() {
    let config = Config::new(100).fpr(0.03).with(option::SEMI_SORT, 1);
    let filter = Cuckoo::build(&config, &mut [1, 2, 3].map(mix64)).unwrap();
    let told = |bucket: [u64; 4], keys: u64| {
        let mut forged = filter.clone();
        (0..forged.slots()).for_each(|slot| forged.table.set(slot, 0));
        for (slot, coded) in (8..).zip(bucket) {
            forged.table.set(slot, coded);
        }
        forged.len = keys;
        let file = Keyed::from_filter(forged, Hashing::default(), &config).unwrap();
        Keyed::<Cuckoo>::open(file.to_bytes()).map_err(|e| e.to_string())
    };
    // Codes from 3876 on: twelve bits, three in each slot.
    for code in [3876u64, 4095] {
        let slots = [0, 3, 6, 9].map(|shift| 1 << 3 | code >> shift & 7);
        let error = told(slots, 4).unwrap_err();
        assert!(error.contains("code") && error.contains("3876"), "{error}");
    }
    let good = semi_sorted::slots([0x21, 0x31, 0x41, 0x51]);
    assert!(told(good, 4).is_ok());
    assert!(told(good, 3).unwrap_err().contains("slots in use"));
    // Equal low parts, so that the code says nothing of the order of the others.
    let swap = |slot: u64, with: u64| slot & 7 | with >> 3 << 3;
    let [a, b, c, d] = good;
    let error = told([swap(a, b), swap(b, a), c, d], 4).unwrap_err();
    assert!(error.contains("ascend"), "{error}");
}

#[test]
fn sizes_of_semi_sorted_filters_are_those_of_the_formula() {
    for (fpr, bits) in [(0.01, 10), (0.015, 9), (0.001, 13), (1e-6, 23)] {
        let config = Config::new(2_000_000).fpr(fpr).with(option::SEMI_SORT, 1);
        let filter = Cuckoo::build(&config, &mut []).unwrap();
        assert_eq!(filter.bits(), bits);
        let got = filter.slots() as f64 * f64::from(bits - 1) / 2e6;
        let formula = math::cuckoo_bits_per_key(bits - 1, 0.95);
        assert!((got / formula - 1.0).abs() < 0.001, "{got} at {fpr}");
        let bytes = (filter.slots() * u64::from(bits - 1)).div_ceil(8);
        assert!((bytes..bytes + 128).contains(&(filter.size_in_bytes() as u64)));
    }
    let refused = Cuckoo::build(&Config::new(9).with(option::SEMI_SORT, 2), &mut []).unwrap_err();
    assert!(refused.to_string().contains("semi_sort=2"), "{refused}");
}
