use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::*;
use crate::bits::mix64;
use crate::{Hashing, Keyed};

fn empty(capacity: u64, fpr: f64) -> Multiset {
    Multiset::build(&Config::new(capacity).fpr(fpr), &mut []).unwrap()
}

fn bytes(filter: &Multiset) -> Vec<u8> {
    let keyed = Keyed::from_filter(filter.clone(), Hashing::default(), &Config::new(1));
    keyed.unwrap().to_bytes()
}

fn agrees(filter: &Multiset, model: &BTreeMap<u64, u64>) {
    filter.check().unwrap();
    assert!(filter.counts().eq(model.iter().map(|(&n, &c)| (n, c))));
    let digits = model.values().map(|&count| u64::from(count.ilog2()) + 1);
    let [(_, base), (_, upper)] = filter.slots();
    assert!(base <= 3 * filter.distinct && upper <= digits.sum());
}

#[test]
fn random_steps_agree_with_a_multiset_after_every_step() {
    for (capacity, fpr) in [(1, 0.5), (20, 0.3), (60, 0.01), (200, 1e-6)] {
        let mut filter = empty(capacity, fpr);
        let fresh = bytes(&filter);
        let mut model = BTreeMap::new();
        let (mut held, mut most) = (Vec::new(), 0);
        for i in 0..20_000u64 {
            let draw = mix64(i);
            let grows = draw % 100 < [70, 50, 30, 50][(i / 2500 % 4) as usize];
            if grows || held.is_empty() {
                let hash = mix64((draw >> 20) % (capacity / 2 + 1));
                if filter.insert(hash).is_ok() {
                    *model.entry(filter.number(hash)).or_insert(0) += 1;
                    held.push(hash);
                    most = most.max(filter.count(hash));
                }
            } else {
                let hash = held.swap_remove((draw >> 20) as usize % held.len());
                assert!(filter.remove(hash));
                let number = filter.number(hash);
                *model.get_mut(&number).unwrap() -= 1;
                model.retain(|_, &mut count| count > 0);
            }
            if i % 50 == 0 {
                agrees(&filter, &model);
            }
            assert_eq!(filter.len(), held.len() as u64);
        }
        assert!(most > 8, "no count above {most}");
        held.iter().for_each(|&hash| assert!(filter.remove(hash)));
        assert!(bytes(&filter) == fresh, "removing all leaves traces");
    }
}

/// Ten million valid steps with many copies, and numbers that many keys share.
#[test]
fn no_member_is_denied_in_ten_million_steps() {
    let mut filter = empty(500, 0.4);
    let mut copies: HashMap<u64, u64> = HashMap::new();
    let mut held: Vec<u64> = Vec::new();
    for i in 0..10_000_000u64 {
        let draw = mix64(i ^ 0x5EED);
        let grows = draw % 100 < [60, 40][(i / 1000 % 2) as usize];
        if grows || held.is_empty() {
            let hash = mix64((draw >> 20) % 700);
            filter.insert(hash).unwrap();
            *copies.entry(hash).or_insert(0) += 1;
            held.push(hash);
        } else {
            let hash = held.swap_remove((draw >> 20) as usize % held.len());
            assert!(filter.remove(hash), "step {i}");
            *copies.get_mut(&hash).unwrap() -= 1;
        }
        if let Some(&member) = held.get((draw >> 33) as usize % held.len().max(1)) {
            assert!(filter.contains(member), "step {i}");
            assert!(filter.count(member) >= copies[&member], "step {i}");
        }
    }
    filter.check().unwrap();
}

/// So few numbers that all of them are there, each in two slots or three: every key can leave.
#[test]
fn a_list_has_more_slots_than_numbers_where_it_must() {
    let mut filter = empty(2, 0.5);
    let fresh = bytes(&filter);
    for copies in 1..=40 {
        for i in 0..30 {
            filter.insert(mix64(i)).unwrap();
        }
        assert_eq!((filter.len(), filter.fpr()), (30 * copies, 1.0));
        filter.check().unwrap();
    }
    assert!(filter.slots()[0].0 > filter.range());
    for copies in (0..40).rev() {
        (0..30).for_each(|i| assert!(filter.remove(mix64(i))));
        assert_eq!(filter.len(), 30 * copies);
        filter.check().unwrap();
    }
    assert!(bytes(&filter) == fresh);
}

/// Space: the base by its formula, and the upper list as many slots as keys share a number.
#[test]
fn space_is_that_of_the_formula() {
    let n = 1_000_000u64;
    for r in [4u32, 8, 10, 16, 20] {
        let mut hashes: Vec<u64> = (0..n).map(|i| mix64(u64::from(r) << 40 | i)).collect();
        let config = Config::new(n).fpr(math::quotient_fpr(0.95, r));
        let filter = Multiset::build(&config, &mut hashes).unwrap();
        let [(slots, base), (_, upper)] = filter.slots();
        assert_eq!(filter.split, (slots, r));
        let upper_bits = 8.0 * filter.upper.table.size_in_bytes() as f64 / n as f64;
        let bits = 8.0 * filter.size_in_bytes() as f64 / n as f64;
        // A tail of 512 slots, and what the last block has too much.
        let tail = 640.0 * (f64::from(r) + 2.125) / n as f64;
        let formula = math::quotient_bits_per_key(0.95, r, 2.125);
        assert!(bits <= formula + upper_bits + tail, "{bits} {formula}");
        println!("2^-{r}: {bits:.3} bits a key, {upper_bits:.3} of them above; {base} {upper}");
        // Keys that share a number, in pairs nearly all.
        let shared = n as f64 * n as f64 / (2.0 * filter.range() as f64);
        let off = (upper as f64 / shared - 1.0).abs();
        assert!(
            off < 0.1_f64.max(5.0 / shared.sqrt()),
            "{upper}, {shared:.0} expected"
        );
    }
}

/// Lines of 64 bytes that a lookup reads: the head of a block, and a word of its values.
#[test]
fn a_lookup_touches_as_many_lines_whatever_the_rate() {
    let n = 200_000u64;
    let mut means = Vec::new();
    for r in [4u32, 8, 12, 16, 20] {
        let mut hashes: Vec<u64> = (0..n).map(mix64).collect();
        let config = Config::new((n as f64 * 0.95 / 0.9) as u64).fpr(math::quotient_fpr(0.95, r));
        let filter = Multiset::build(&config, &mut hashes).unwrap();
        let queries = 20_000;
        let lines = (0..queries).map(|i| lines_read(&filter, mix64(1 << 40 | i)));
        let lines: usize = lines.sum();
        means.push(lines as f64 / queries as f64);
    }
    println!("lines a lookup, at 2^-4 to 2^-20: {means:.2?}");
    let (least, most) = (
        means.iter().copied().fold(9.0, f64::min),
        means.iter().copied().fold(0.0, f64::max),
    );
    assert!(most - least <= 1.0, "{means:?}");
}

/// Slots that an insertion moves, from what stands where.
#[test]
fn few_slots_move() {
    let n = 1u64 << 18;
    let filled = |n: u64| {
        let mut filter = empty(1 << 18, 0.01);
        (0..n).for_each(|i| filter.insert(mix64(i)).unwrap());
        filter
    };
    let filter = filled(n);
    assert_eq!(filter.base.step(), 0);
    // Each slot that an insertion passed moved a value by one, so the way that all values have
    // moved is no less than the number of moves.
    let (mut next, mut moved) = (0, 0);
    for entry in filter.base.table.entries() {
        let slot = entry.quotient.max(next);
        moved += slot - entry.quotient;
        next = slot + 1;
    }
    let mean = moved as f64 / n as f64;
    assert!(
        mean <= 10.0,
        "{mean} slots an insertion, from empty to 0.95"
    );
    // At a load of 0.9: how far it is from where a value would go to a free slot.
    let filter = filled((n as f64 * 0.9 / 0.95) as u64);
    let mut taken = BTreeSet::new();
    let mut next = 0;
    for entry in filter.base.table.entries() {
        let slot = entry.quotient.max(next);
        taken.insert(slot);
        next = slot + 1;
    }
    let mut moves = 0;
    for i in 0..20_000 {
        let group = filter
            .base
            .group(Portable, filter.number(mix64(1 << 40 | i)));
        let free = (group.at..).find(|slot| !taken.contains(slot)).unwrap();
        moves += free - group.at;
    }
    let mean = moves as f64 / 20_000.0;
    println!("{mean:.1} slots an insertion at 0.9");
    assert!(mean <= 60.0, "{mean} slots an insertion at 0.9");
}

#[test]
fn another_number_of_slots_holds_the_same_numbers() {
    let mut filter = empty(1000, 0.01);
    let of = |filter: &Multiset| filter.counts().collect::<Vec<_>>();
    (0..1000).for_each(|i| filter.insert(mix64(i)).unwrap());
    let (numbers, rate) = (of(&filter), filter.fpr());
    let first = bytes(&filter);
    // Four times as many keys: more slots, the same numbers, and the rate of so many keys.
    (1000..4000).for_each(|i| filter.insert(mix64(i)).unwrap());
    let [(slots, used), _] = filter.slots();
    assert!(
        filter.base.step() > 0 && slots as f64 <= 1.25 * used as f64,
        "{slots} {used}"
    );
    assert!((filter.fpr() / rate / 4.0 - 1.0).abs() < 0.05);
    assert!((0..4000).all(|i| filter.contains(mix64(i))));
    (1000..4000).for_each(|i| assert!(filter.remove(mix64(i))));
    let [(slots, used), _] = filter.slots();
    assert!(
        10 * used >= 7 * slots && of(&filter) == numbers,
        "{slots} {used}"
    );
    assert_eq!(filter.fpr(), rate);
    // Counters that were two need not be written as before; numbers and counts are.
    let mut again = empty(1000, 0.01);
    again.merge(&filter).unwrap();
    assert!(
        bytes(&again) == first,
        "merged, counters are in plain binary"
    );
}

#[test]
fn counts_are_never_too_low_and_seldom_too_high() {
    let (n, fpr) = (50_000u64, 1.0 / 256.0);
    let mut filter = empty(n, fpr);
    let mut truth: HashMap<u64, u64> = HashMap::new();
    for i in 0..400_000u64 {
        // Zipf's law, nearly.
        let u = (mix64(i) >> 11) as f64 / (1u64 << 53) as f64;
        let key = mix64((n as f64).powf(u) as u64);
        filter.insert(key).unwrap();
        *truth.entry(key).or_insert(0) += 1;
    }
    let mut high = 0;
    for (&hash, &count) in &truth {
        let told = filter.count(hash);
        assert!(told >= count);
        high += u64::from(told > count);
    }
    let (_, most) = math::binomial_interval(truth.len() as u64, filter.fpr(), 1e-9);
    assert!(
        high <= most && filter.fpr() <= fpr,
        "{high}, {most} at most"
    );
    // As many columns as the logarithm, and one.
    for (number, count) in filter.counts() {
        let columns = 1 + filter.upper.group(Portable, number).len;
        assert!(columns <= u64::from(count.next_power_of_two().ilog2()) + 1);
    }
}

#[test]
fn a_frozen_multiset_answers_alike_and_is_smaller_at_low_rates() {
    for (n, some) in [
        (0u64, 1),
        (1, 1),
        (100, 10),
        (20_000, 100),
        (100_000, 1 << 30),
    ] {
        let mut filter = empty(n.max(1), (-16f64).exp2());
        for i in 0..n {
            let copies = if i % some == 0 { i % 1000 + 1 } else { 1 };
            (0..copies).for_each(|_| filter.insert(mix64(i)).unwrap());
        }
        let frozen = filter.freeze().unwrap();
        assert_eq!((frozen.len(), frozen.is_empty()), (filter.len(), n == 0));
        for i in (0..2 * n).chain(1 << 40..(1 << 40) + 2000) {
            let hash = mix64(i);
            assert_eq!(frozen.contains(hash), filter.contains(hash));
            assert_eq!(frozen.count(hash), filter.count(hash));
        }
        let (now, before) = (frozen.size_in_bytes(), filter.size_in_bytes());
        println!("{n} numbers, frozen: {now} bytes, {before} before");
        assert!(
            n < 100_000 || (now as f64) < 0.985 * before as f64,
            "{now} bytes, {before} before"
        );
    }
}

#[test]
fn a_frozen_multiset_is_the_smaller_from_the_rate_that_its_essay_names() {
    for exponent in 6..=14 {
        let mut filter = empty(200_000, (-f64::from(exponent)).exp2());
        (0..200_000).for_each(|i| filter.insert(mix64(i)).unwrap());
        let [now, before] = [
            filter.freeze().unwrap().size_in_bytes(),
            filter.size_in_bytes(),
        ];
        println!("2^-{exponent}: {now} bytes, {before} before");
        assert_eq!(now < before, exponent >= 9, "2^-{exponent}");
    }
}

#[test]
fn digits_that_are_no_count_are_refused() {
    let mut filter = empty(100, 0.01);
    (0..6).for_each(|_| filter.insert(mix64(7)).unwrap());
    assert_eq!(filter.count(mix64(7)), 6);
    let file = bytes(&filter);
    assert!(Keyed::<Multiset>::open(file.clone()).is_ok());
    // Each single bit of the lists, with checksums that agree again.
    let mut refused = 0;
    for bit in 0..8 * file.len() {
        let mut forged = file.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        crate::format::repair_checksums(&mut forged);
        match Keyed::<Multiset>::open(forged) {
            Err(_) => refused += 1,
            Ok(read) => {
                // Another number, capacity, rate or seed is as good a file.
                read.filter().check().unwrap();
                assert_eq!(read.filter().len(), 6);
            }
        }
    }
    assert!(refused > 4 * file.len(), "{refused} of {}", 8 * file.len());
}

/// Digits read by a step, as the theorem has it: in the mean, whatever the sequence.
#[test]
fn a_step_reads_few_digits_in_the_mean() {
    let mut filter = empty(10_000, 0.01);
    let step = |filter: &mut Multiset, hash: u64, sign: i8| {
        let read = digits_read(filter, hash, sign);
        match sign {
            1 => filter.insert(hash).unwrap(),
            _ => assert!(filter.remove(hash)),
        }
        u64::from(read)
    };
    let distinct: u64 = (0..10_000).map(|i| step(&mut filter, mix64(i), 1)).sum();
    let often = mix64(1 << 50);
    (0..(1 << 16) - 1).for_each(|_| filter.insert(often).unwrap());
    let signs = (0..200_000).map(|i| if i % 2 == 0 { 1 } else { -1 });
    let to_and_fro: u64 = signs.map(|sign| step(&mut filter, often, sign)).sum();
    let churn = (0..200_000u64).map(|i| {
        let hash = mix64(mix64(i) % 10_000);
        let up = mix64(i ^ 0xC0FFEE) >> 63 == 0 || filter.count(hash) == 0;
        step(&mut filter, hash, if up { 1 } else { -1 })
    });
    let churn: u64 = churn.sum();
    let means = [(distinct, 1e4), (to_and_fro, 2e5), (churn, 2e5)];
    for mean in means.map(|(read, steps)| read as f64 / steps) {
        assert!(mean <= 3.1, "{mean} digits a step");
    }
}

#[test]
fn a_file_that_nobody_looked_through_does_no_harm() {
    let mut filter = empty(300, 0.01);
    for i in 0..600 {
        filter.insert(mix64(i % 200)).unwrap();
    }
    let file = bytes(&filter);
    for at in 96..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= (mix64(at as u64) as u8).max(1);
        let Ok(opened) = crate::Open::new().verify(false).bytes::<Multiset>(damaged) else {
            continue;
        };
        let filter = opened.filter();
        for hash in (190..210).map(mix64) {
            let _ = (filter.contains(hash), filter.count(hash));
        }
    }
}

#[test]
fn copies_are_not_charged() {
    let mut filter = empty(100, 0.01);
    (0..50).for_each(|_| filter.insert(mix64(1)).unwrap());
    assert_eq!((filter.len(), filter.charged()), (50, 1));
}

/// As in the counting filter: a list does not grow for hashes that are not spread.
#[test]
fn a_crowd_at_the_end_is_refused_and_takes_little_memory() {
    let crowd = |i: u64| u64::MAX - (mix64(i) >> 24);
    let mut filter = empty(20_000, 1e-12);
    let refused = (0..2000).find_map(|i| filter.insert(crowd(i)).err());
    let full = refused.expect("a crowd is refused");
    assert!(full.kind() == FullKind::Capacity && full.keys() >= 500);
    assert!(filter.size_in_bytes() < 32 << 20);
    filter.check().unwrap();
    // So it is when two of them meet, and when it is built at once.
    let mut other = empty(20_000, 1e-12);
    (2000..2400).for_each(|i| other.insert(crowd(i)).unwrap());
    let before = bytes(&other);
    assert!(other.merge(&filter).is_err() && bytes(&other) == before);
    let mut hashes: Vec<u64> = (0..2000).map(crowd).collect();
    assert!(Multiset::build(&Config::new(2000).fpr(1e-12), &mut hashes).is_err());
}
