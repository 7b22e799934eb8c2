use std::collections::HashMap;

use super::*;
use crate::bits::mix64;
use crate::{Hashed, Hashing, Keyed, Open};

fn built(config: &Config, hashes: impl Iterator<Item = u64>) -> Quotient {
    Quotient::build(config, &mut hashes.collect::<Vec<_>>()).unwrap()
}

fn bytes(filter: &Quotient) -> Vec<u8> {
    let keyed = Keyed::from_filter(filter.clone(), Hashing::default(), &Config::new(1)).unwrap();
    keyed.to_bytes()
}

/// The size and the rate that the formulas promise, of 10⁶ keys with remainders of 8 bits.
#[test]
fn a_million_keys_take_10_66_bits_at_0_37_per_cent() {
    let n = 1_000_000;
    let filter = built(&Config::new(n).fpr(1.0 / 256.0), (0..n).map(mix64));
    assert_eq!(filter.remainder_bits(), 8);
    let bits = filter.size_in_bytes() as f64 * 8.0 / n as f64;
    let formula = math::quotient_bits_per_key(LOAD, 8, 2.125);
    assert!((bits / formula - 1.0).abs() < 0.005, "{bits}, {formula}");
    assert!((formula - 10.66).abs() < 0.005);
    let rate = math::quotient_fpr(LOAD, 8);
    assert!(
        (filter.fpr() / rate - 1.0).abs() < 0.005,
        "{}",
        filter.fpr()
    );
    assert!((rate - 0.0037).abs() < 0.00001);
    let queries = 1_000_000;
    let hits = (n..n + queries)
        .filter(|&i| filter.contains(mix64(i)))
        .count() as u64;
    let (low, high) = math::binomial_interval(queries, filter.fpr(), 1e-9);
    assert!((low..=high).contains(&hits), "{hits}, not {low} to {high}");
}

/// A million insertions, removals and lookups of hashes that crowd into few quotients, in a table
/// that is often full, against an exact multiset; in the end all of it is taken out again.
#[test]
fn crowded_hashes_agree_with_a_multiset() {
    for (bits, crowd) in [(3, 0), (8, 6), (20, 40)] {
        let config = Config::new(500).fpr(0.2).with(option::BITS, bits);
        let mut filter = built(&config, std::iter::empty());
        let fresh = bytes(&filter);
        let mut held: Vec<u64> = Vec::new();
        let mut copies: HashMap<u64, u64> = HashMap::new();
        let view = |filter: &Quotient, hash| {
            let (quotient, value) = filter.table.view().place(hash);
            quotient << bits | value
        };
        let mut full = [0; 2];
        for step in 0..350_000u64 {
            let draw = mix64(step << 8 | u64::from(bits));
            let hash = mix64(draw % 700) >> (draw >> 20 & 1).saturating_mul(crowd);
            let fingerprint = view(&filter, hash);
            let known = copies.entry(fingerprint).or_default();
            assert_eq!(filter.contains(hash), *known > 0, "step {step}");
            if step % 64 == 0 {
                assert_eq!(filter.count(hash), *known, "step {step}");
            }
            if draw >> 40 & 3 < if step / 50_000 % 2 == 0 { 3 } else { 1 } {
                match filter.insert(hash) {
                    Ok(()) => {
                        *known += 1;
                        held.push(hash);
                    }
                    Err(e) => full[usize::from(e.kind() == FullKind::Capacity)] += 1,
                }
            } else if !held.is_empty() {
                let hash = held.swap_remove((draw >> 32) as usize % held.len());
                assert!(filter.remove(hash), "step {step}");
                *copies.get_mut(&view(&filter, hash)).unwrap() -= 1;
            }
            if step % 5000 == 0 {
                let checked = filter.table.check();
                checked.unwrap_or_else(|(slot, expected)| panic!("slot {slot}: {expected}"));
            }
        }
        assert!(full[1] > 0, "{bits} bits: never full");
        for hash in held {
            assert!(filter.remove(hash));
        }
        assert!(bytes(&filter) == fresh, "{bits} bits: traces are left");
    }
}

#[test]
fn doubling_and_shrinking_keep_fingerprints_and_rate() {
    let filter = built(&Config::new(3000).fpr(0.01), (0..3000).map(mix64));
    let twice = filter.double().unwrap();
    assert!(twice.fingerprints().eq(filter.fingerprints()));
    assert_eq!(twice.fpr(), filter.fpr());
    assert_eq!(twice.slots(), 2 * filter.slots());
    assert!((0..3000).all(|i| twice.contains(mix64(i))));
    assert!(bytes(&twice.shrink().unwrap()) == bytes(&filter));
    let odd = filter.slots() % 2 == 1;
    let refused = filter.shrink().unwrap_err();
    let full = matches!(refused.kind(), BuildErrorKind::Full(_));
    assert!(odd || full, "{refused}");
    let mut last = filter;
    while let Ok(next) = last.double() {
        last = next;
    }
    assert_eq!(last.remainder_bits(), 1);
    assert!((0..3000).all(|i| last.contains(mix64(i))));
}

#[test]
fn half_the_slots_are_as_if_the_keys_had_been_inserted_there() {
    let slots = (2000..)
        .find(|&n| Table::quotients_for(n).is_multiple_of(2))
        .unwrap();
    let filter = built(&Config::new(slots).fpr(0.01), (0..900).map(mix64));
    let half = filter.halve().unwrap();
    let mut table = Quotient::of(filter.slots() / 2, filter.remainder_bits(), [].into_iter());
    let inserted = table.as_mut().unwrap();
    (0..900).for_each(|i| inserted.insert(mix64(i)).unwrap());
    assert!(bytes(&half) == bytes(inserted));
}

/// What does not fit into the slots of one is merged into twice as many, and merges on.
#[test]
fn full_filters_merge_into_a_larger_one() {
    let config = Config::new(1000).fpr(0.001);
    let part = |i: u64| built(&config, (1000 * i..1000 * (i + 1)).map(mix64));
    let mut union = part(0);
    for i in 1..7 {
        union.merge(&part(i)).unwrap();
        assert_eq!(union.len(), 1000 * (i + 1));
        assert!((0..1000 * (i + 1)).all(|i| union.contains(mix64(i))));
    }
    assert_eq!(union.slots(), 8 * part(0).slots());
    let mut other = part(7);
    other.merge(&union).unwrap();
    assert_eq!(other.len(), 8000);
    let strange = built(&Config::new(2000).fpr(0.001), std::iter::empty());
    assert!(union.merge(&strange).is_err());
}

/// A mapped file reads what it is asked for: a lookup must find its key with nothing there but a
/// page or two.
#[test]
fn a_lookup_reads_one_page_of_a_file() {
    const PAGE: usize = 4096;
    const KEYS: u64 = 1 << 18;
    let config = Config::new(KEYS);
    let keys = || (0..KEYS).map(|i| Hashed(mix64(i)));
    let filter = Keyed::<Quotient>::build(&config, keys()).unwrap();
    let file = filter.to_bytes();
    // The header tells its length, and the table follows.
    let start = u32::from_le_bytes(file[12..16].try_into().unwrap()) as usize;
    let (table, stride) = (filter.filter().table.view(), 17 + 8 * 7);
    assert_eq!(filter.filter().remainder_bits(), 7);
    let page = |key: &Hashed| (start + (table.place(key.0).0 / 64) as usize * stride) / PAGE;
    let mut waiting: Vec<Vec<Hashed>> = vec![Vec::new(); file.len() / PAGE + 1];
    keys().for_each(|key| waiting[page(&key)].push(key));
    // How many keys are found with the page of their block, and with the next one, too.
    let mut needed = [0, 0];
    for (page, keys) in waiting.iter_mut().enumerate() {
        for (pages, needed) in [page..page + 1, page..page + 2]
            .into_iter()
            .zip(&mut needed)
        {
            let mut masked = vec![0; file.len()];
            // Header and footer are read when it is opened.
            let last = file.len() - 16;
            for range in [
                0..start,
                pages.start * PAGE..pages.end * PAGE,
                last..file.len(),
            ] {
                let range = range.start..range.end.min(file.len());
                masked[range.clone()].copy_from_slice(&file[range]);
            }
            let open = Open::new().verify(false);
            let masked: Keyed<Quotient> = open.bytes(masked).unwrap();
            let before = keys.len();
            keys.retain(|key| !masked.contains(key));
            *needed += before - keys.len();
        }
        assert!(keys.is_empty(), "more than two pages");
    }
    let mean = (needed[0] + 2 * needed[1]) as f64 / KEYS as f64;
    println!("{mean:.3} pages a lookup, {needed:?}");
    assert!((1.0..1.04).contains(&mean), "{mean}");
}

/// Where fingerprints crowd at the end of tables that are nearly empty, their union is refused:
/// more slots would hold it, but as many as there are fingerprints.
#[test]
fn crowds_do_not_merge_into_a_huge_table() {
    let crowd = |i: u64| u64::MAX - (mix64(i) >> 24);
    let config = Config::new(20_000).fpr(1e-12);
    let mut half = built(&config, (0..400).map(crowd));
    let other = built(&config, (400..800).map(crowd));
    let before = bytes(&half);
    let refused = half.merge(&other).unwrap_err();
    assert!(
        matches!(refused.kind(), MergeErrorKind::Full(full) if full.kind() == FullKind::Capacity)
    );
    assert!(bytes(&half) == before);
}
