//! Tests of TinySet's algorithm.

use super::*;
use crate::bits::mix64;

fn build<const REMOVABLE: bool>(config: &Config, keys: u64) -> TinySetOf<REMOVABLE>
where
    TinySetOf<REMOVABLE>: Kind,
{
    let mut hashes: Vec<u64> = (0..keys).map(mix64).collect();
    <TinySetOf<REMOVABLE> as Kind>::build(config, &mut hashes).unwrap()
}

#[test]
fn both_ways_to_place_a_hash_agree_up_to_the_most_blocks() {
    fn check<const N: usize>() {
        for blocks in [
            1,
            2,
            3,
            1000,
            3 << 29,
            (1 << 31) + 1,
            1 << 32,
            most_blocks(N as u32),
        ] {
            for i in 0..10_000 {
                let (hash, chains) = (mix64(i), N as u32);
                let (block, chain, remainder) = place(hash, blocks, chains);
                let usual = Usual::<N, false>::place(hash, blocks);
                assert_eq!((block, chain, remainder), usual);
                assert!((block as u64) < blocks && chain < chains);
            }
        }
    }
    check::<32>();
    check::<64>();
    check::<128>();
}

#[test]
fn chain_and_remainder_are_spread_evenly_at_any_number_of_blocks() {
    for (blocks, chains) in [
        (1, 64),
        (1000, 64),
        (3 << 29, 64),
        (1 << 33, 64),
        (1 << 30, 100),
    ] {
        let draws = 1u64 << 20;
        let mut cells = vec![0f64; chains as usize * 64];
        for i in 0..draws {
            let (_, chain, remainder) = place(mix64(i), blocks, chains);
            // The last bits that a fingerprint can have.
            let last = prefix(remainder, CAP) as usize % 64;
            cells[chain as usize * 64 + last] += 1.0;
        }
        let expected = draws as f64 / cells.len() as f64;
        let chi2: f64 = cells
            .iter()
            .map(|c| (c - expected).powi(2) / expected)
            .sum();
        let df = cells.len() as f64 - 1.0;
        // Laurent–Massart upper bound at 1e-9.
        let most = df + 2.0 * (20.7 * df).sqrt() + 41.4;
        assert!(chi2 <= most, "{blocks} blocks: {chi2} at df {df}");
    }
}

/// Every shape: usual and chosen chains, of each block size.
const SHAPES: [&str; 7] = [
    "block=32",
    "block=64",
    "block=128",
    "block=32,chains=10",
    "chains=33",
    "chains=80",
    "block=128,chains=50",
];

/// The code that reads and writes a block is given that block alone, here in memory of its own:
/// what it answers and writes depends on no other. A block of 32 or 64 bytes lies in one line,
/// one of 128 in two.
#[test]
fn an_operation_reads_and_writes_one_block_which_starts_on_a_line() {
    for text in SHAPES {
        let config: Config = format!("capacity=3000,{text}").parse().unwrap();
        let mut filter = build::<true>(&config, 3000);
        let size = filter.block as usize;
        assert_eq!(filter.table.as_ptr().addr() % size.min(64), 0);
        for i in 0..600 {
            let (hash, before) = (mix64(2900 + i), filter.table.to_vec());
            let (block, chain, remainder) = filter.place(hash);
            let here = block * size..(block + 1) * size;
            sized!(filter.block, N => {
                let shape = filter.shape::<N>();
                let alone: Box<[u8; N]> = Box::new(before[here.clone()].try_into().unwrap());
                let held = shape.count(&alone, chain, remainder) > 0;
                assert_eq!(filter.contains(hash), held);
                filter.insert(hash).unwrap();
                let added = shape.inserted(&alone, chain, remainder).unwrap();
                assert_eq!(filter.table[here.clone()], added);
                assert!(filter.remove(hash));
                let removed = shape.removed(&added, chain, remainder).unwrap();
                assert_eq!(filter.table[here.clone()], removed);
            });
            let outside = |table: &[u8]| [&table[..here.start], &table[here.end..]].concat();
            assert_eq!(outside(&before), outside(&filter.table));
        }
    }
}

#[test]
fn every_shape_answers_in_batches_and_at_every_level_as_its_blocks_do() {
    fn check<const REMOVABLE: bool>(text: &str)
    where
        TinySetOf<REMOVABLE>: Kind,
    {
        // Above 256 KiB, where batches prefetch.
        let config: Config = format!("capacity=140000,fpr=0.0001,{text}")
            .parse()
            .unwrap();
        let hashes: Vec<u64> = (0..140_000).map(mix64).collect();
        let mut filter = build::<REMOVABLE>(&config, 0);
        filter.insert_batch(&hashes).unwrap();
        assert!(filter.size_in_bytes() > NEAR);
        let bulk = build::<REMOVABLE>(&config, 140_000);
        assert!(filter.table[..] == bulk.table[..], "{text}");
        let asked: Vec<u64> = (120_000..160_000).map(mix64).collect();
        let mut out = vec![false; asked.len()];
        for portable in [true, false] {
            simd::force_portable(portable);
            filter.contains_batch(&asked, &mut out);
            for (&hash, &answer) in asked.iter().zip(&out) {
                assert_eq!(answer, filter.count(hash) > 0, "{text}");
                assert_eq!(answer, filter.contains(hash), "{text}");
            }
        }
    }
    for text in SHAPES {
        check::<false>(text);
        check::<true>(text);
    }
}

#[test]
fn the_bytes_do_not_tell_in_which_order_keys_came() {
    for text in [
        "",
        "block=32",
        "block=128",
        "chains=80",
        "block=32,chains=10",
    ] {
        for keys in [3000, 9000] {
            let config: Config = format!("capacity=3000,{text}").parse().unwrap();
            let mut bulk = build::<true>(&config, 0);
            let mut hashes: Vec<u64> = (0..keys).map(mix64).collect();
            sized!(bulk.block, N => bulk.fill::<N>(&mut hashes).unwrap());
            let mut grown = build::<true>(&config, 0);
            for i in 0..keys {
                grown.insert(mix64(i)).unwrap();
            }
            let (mut even, mut odd) = (build::<true>(&config, 0), build::<true>(&config, 0));
            for i in (0..keys).rev() {
                let half = if i % 2 == 0 { &mut even } else { &mut odd };
                half.insert(mix64(i)).unwrap();
            }
            even.merge(&odd).unwrap();
            for other in [&grown, &even] {
                assert!(bulk.table[..] == other.table[..], "{keys} keys, {text}");
                assert_eq!(bulk.len, other.len);
            }
            for i in 0..keys * 4 {
                assert_eq!(bulk.count(mix64(i)) > 0, bulk.contains(mix64(i)));
                assert!(i >= keys || bulk.contains(mix64(i)));
            }
        }
    }
}

#[test]
fn small_filters_keep_their_rate_and_need_no_more_than_large_ones() {
    for keys in [1, 2, 10, 57, 58, 100, 114, 500, 5000, 60_000] {
        let mut mean = 0.0;
        let filters = 4 + 2000 / keys;
        for seed in 0..filters {
            let mut hashes: Vec<u64> = (0..keys).map(|i| mix64(seed << 40 | i)).collect();
            let filter = <TinySet as Kind>::build(&Config::new(keys), &mut hashes).unwrap();
            assert!(filter.blocks as f64 <= (keys as f64 / 57.0).ceil());
            mean += filter.fpr() / filters as f64;
        }
        assert!(mean <= 0.01 * 1.05, "{keys} keys: {mean}");
    }
}

#[test]
fn copies_of_one_key_are_refused_as_such() {
    let mut filter = build::<false>(&Config::new(1000), 500);
    let held = filter.len();
    let full = (0..1000)
        .find_map(|_| filter.insert(mix64(3)).err())
        .unwrap();
    assert!(matches!(full.kind(), FullKind::Duplicates(copies) if copies > 224));
    assert!(filter.len() > held && full.keys() == filter.len());
    assert!((0..500).all(|i| filter.contains(mix64(i))));
    let many = vec![mix64(3); 1000];
    let mut filter = build::<false>(&Config::new(1000), 0);
    let full = filter.insert_batch(&many).unwrap_err();
    assert_eq!((full.accepted(), filter.len()), (448, 448));
    assert_eq!(full.kind(), FullKind::Duplicates(448));
    // Building says the same, also where other keys share the block, and never that a larger
    // filter would help.
    let others = |i: u64| mix64(3) & !0 << 40 | mix64(i) >> 30;
    for few in [0, 300] {
        let mut hashes = [many.clone(), (0..few).map(others).collect()].concat();
        let refused = <TinySet as Kind>::build(&Config::new(1000), &mut hashes).unwrap_err();
        let BuildErrorKind::Full(full) = refused.kind() else {
            panic!("{refused}")
        };
        assert_eq!(full.kind(), FullKind::Duplicates(448), "{refused}");
        assert!(!refused.to_string().contains("larger"), "{refused}");
    }
}

/// A refusal names what the filter holds, and copies only where one chain has more than half of
/// the block.
#[test]
fn a_refusal_tells_copies_from_many_keys_and_counts_what_is_held() {
    for text in ["block=64", "chains=80"] {
        let config: Config = format!("capacity=2000,{text}").parse().unwrap();
        let room = if text == "block=64" { 448 } else { 432 };
        for copies in [room / 2, room / 2 + 1] {
            let mut filter = build::<false>(&config, 700);
            let (b, chains) = (filter.blocks, u64::from(filter.chains));
            // A hash in the middle of block 5's chain.
            let in_chain = |chain: u64| {
                let cell = (u128::from(5 * chains + chain) << 64) / u128::from(b * chains);
                let hash = cell as u64 + (u64::MAX / (b * chains)) / 2;
                let (block, at, _) = filter.place(hash);
                assert_eq!((block, u64::from(at)), (5, chain));
                hash
            };
            let (one, other) = (in_chain(20), in_chain(40));
            let held = |filter: &TinySet, hash| {
                let (block, chain, _) = filter.place(hash);
                filter
                    .shape::<64>()
                    .chain_len(&filter.cells()[block], chain) as usize
            };
            filter
                .insert_batch(&vec![one; copies - held(&filter, one)])
                .unwrap();
            let before = filter.len();
            let full = filter.insert_batch(&vec![other; 1000]).unwrap_err();
            assert_eq!(filter.len(), before + full.accepted() as u64);
            assert_eq!(full.keys(), filter.len());
            let full = filter.insert(one).unwrap_err();
            let expected = if copies == room / 2 {
                FullKind::Capacity
            } else {
                FullKind::Duplicates(copies as u64)
            };
            assert_eq!((full.kind(), full.keys()), (expected, filter.len()));
            assert_eq!(full.accepted(), 0);
        }
    }
    // Many keys at once in one block are no copies.
    let mut hashes: Vec<u64> = (0..1000).map(|i| mix64(i) >> 15).collect();
    let refused = <TinySet as Kind>::build(&Config::new(1_000_000), &mut hashes).unwrap_err();
    let BuildErrorKind::Full(full) = refused.kind() else {
        panic!("{refused}")
    };
    assert_eq!((full.kind(), full.keys()), (FullKind::Capacity, 448));
}

/// Up to 1,024 blocks the fewest that keep the rate by the binomial law; and never loaded beyond
/// half of their bits.
#[test]
fn few_blocks_are_as_few_as_the_exact_law_allows() {
    let (mut fewer, mut sizes) = (0, 0);
    for keys in (1..60).map(|i| i * i) {
        for fpr in [0.1, 0.01, 0.0001] {
            let filter = build::<false>(&Config::new(keys).fpr(fpr), 0);
            let rate = |blocks| math::tinyset_fpr_finite(keys, blocks, 512, 64, 0);
            assert!(rate(filter.blocks) <= fpr, "{keys} keys at {fpr}");
            assert!(filter.blocks == 1 || rate(filter.blocks - 1) > fpr);
            let many = keys as f64 / math::tinyset_mean_load(fpr, 512, 64, 0).unwrap();
            fewer += u32::from(filter.blocks < many.ceil() as u64);
            sizes += 1;
        }
    }
    assert!(fewer >= 10, "{fewer} of {sizes} gain by it");
}

#[test]
fn at_high_rates_no_block_is_meant_to_be_more_than_half_full() {
    for (keys, fpr) in [(1000, 0.9), (1_000_000, 0.9), (1_000_000, 0.999)] {
        let filter = build::<false>(&Config::new(keys).fpr(fpr), keys);
        assert_eq!(filter.blocks, keys.div_ceil(224), "{keys} keys at {fpr}");
        let filter = build::<true>(&Config::new(keys).fpr(fpr), keys);
        assert_eq!(filter.blocks, keys.div_ceil(223), "{keys} keys at {fpr}");
    }
}

#[test]
fn what_cannot_be_built_is_refused_before_memory_is_taken() {
    let kind = |config: &str| {
        let config: Config = config.parse().unwrap();
        <TinySet as Kind>::build(&config, &mut []).unwrap_err()
    };
    let parameter = |text| matches!(kind(text).kind(), BuildErrorKind::Parameter { .. });
    assert!(parameter("block=48") && parameter("chains=8") && parameter("chains=129"));
    assert!(parameter("block=32,chains=65") && parameter("chains=many"));
    let huge = kind("capacity=4000000000000,fpr=0.01");
    assert!(
        matches!(huge.kind(), BuildErrorKind::TooLarge { .. }),
        "{huge}"
    );
    let exact = kind("capacity=10,fpr=1e-12");
    assert!(
        matches!(exact.kind(), BuildErrorKind::Unreachable { .. }),
        "{exact}"
    );
}

/// Copies of a key lie on both sides of where the longer slots end; a union must not change
/// places with them.
#[test]
fn unions_of_copies_keep_every_copy() {
    fn check<const REMOVABLE: bool>()
    where
        TinySetOf<REMOVABLE>: Kind,
    {
        for keys in 1..40 {
            let few = build::<REMOVABLE>(&Config::new(60), keys);
            let mut many = few.clone();
            for copies in 2..=180 / keys {
                many.merge(&few).unwrap();
                for i in 0..keys {
                    assert!(many.contains(mix64(i)), "{copies} copies of {keys} keys");
                    assert!(many.count(mix64(i)) >= copies);
                }
                let mut hashes: Vec<u64> = (0..keys * copies).map(|i| mix64(i % keys)).collect();
                let mut built = build::<REMOVABLE>(&Config::new(60), 0);
                built.fill::<64>(&mut hashes).unwrap();
                assert!(
                    built.table[..] == many.table[..],
                    "{copies} copies of {keys} keys"
                );
            }
        }
    }
    check::<false>();
    check::<true>();
}

#[test]
fn a_file_with_slots_in_another_order_is_refused() {
    let slot = |fingerprint| Slot {
        chain: 3,
        fingerprint,
        width: CAP,
    };
    for (slots, is_fine) in [([slot(1), slot(2)], true), ([slot(2), slot(1)], false)] {
        let mut filter = TinySet::with_shape(1, 64, 64).unwrap();
        let block = filter.shape::<64>().write(&slots, 0).unwrap();
        filter.table.make_mut().copy_from_slice(&block);
        // And so is one whose slots are not as many as it says.
        for len in [1, 2, 3] {
            filter.len = len;
            let (copy, config) = (filter.clone(), Config::new(2));
            let keyed = crate::Keyed::from_filter(copy, crate::Hashing::default(), &config);
            let read = crate::Keyed::<TinySet>::open(keyed.unwrap().to_bytes());
            assert_eq!(read.is_ok(), is_fine && len == 2, "{len}");
        }
    }
}

/// A block that was fuller once keeps its short fingerprints in a union: longer ones are not
/// known.
#[test]
fn a_union_keeps_the_widths_of_the_fuller_past() {
    let config = Config::new(1000);
    let mut past = build::<true>(&config, 0);
    (0..3000).for_each(|i| past.insert(mix64(i)).unwrap());
    for i in 100..3000 {
        assert!(past.remove(mix64(i)));
    }
    for (mut a, b) in [
        (build::<true>(&config, 0), past.clone()),
        (past.clone(), build::<true>(&config, 0)),
    ] {
        a.merge(&b).unwrap();
        assert!(a.table[..] == past.table[..]);
        assert_eq!(a.logical_len(), past.logical_len());
    }
    let mut few = build::<true>(&config, 0);
    (3000..3100).for_each(|i| few.insert(mix64(i)).unwrap());
    few.merge(&past).unwrap();
    assert!((0..100).chain(3000..3100).all(|i| few.contains(mix64(i))));
    assert!(few.logical_len() >= past.logical_len());
}

#[test]
fn every_state_that_operations_lead_to_can_be_read_back() {
    // Few blocks, overfull, keys coming, going, repeated and united: the order of slots must
    // survive it all.
    for (seed, block) in [(1, 32), (2, 64), (3, 128), (4, 64)] {
        let config = Config::new(100).set("block", block);
        let mut filter = TinySetRemovable::build(&config, &mut []).unwrap();
        let mut members = Vec::new();
        for step in 0..20_000u64 {
            let draw = mix64(seed << 32 | step);
            match draw % 100 {
                0..=54 => {
                    let key = mix64(draw >> 32 & 0x1ff);
                    if members.len() < 400 && filter.insert(key).is_ok() {
                        members.push(key);
                    }
                }
                55..=98 if !members.is_empty() => {
                    let key = members.swap_remove((draw >> 16) as usize % members.len());
                    assert!(filter.remove(key));
                }
                99 if members.len() < 200 => {
                    let others: Vec<u64> = (0..50).map(|i| mix64(draw ^ i)).collect();
                    let other = TinySetRemovable::build(&config, &mut others.clone()).unwrap();
                    if filter.merge(&other).is_ok() {
                        members.extend(others);
                    }
                }
                _ => {}
            }
            if step % 50 == 0 {
                let hashing = crate::Hashing::default();
                let keyed = crate::Keyed::from_filter(filter.clone(), hashing, &config).unwrap();
                let read = crate::Keyed::<TinySetRemovable>::open(keyed.to_bytes()).unwrap();
                assert!(members.iter().all(|&key| read.filter().contains(key)));
            }
        }
    }
}

#[test]
fn a_union_holds_both_and_is_refused_whole() {
    for config in ["", "block=32", "block=128", "chains=33"] {
        let config: Config = format!("capacity=4000,fpr=0.01,{config}").parse().unwrap();
        let (mut a, mut b) = (build::<true>(&config, 2000), build::<true>(&config, 0));
        for i in 1500..4000 {
            b.insert(mix64(i)).unwrap();
        }
        // Free slots on one side, and repeats of 500 keys.
        for i in 0..1000 {
            assert!(a.remove(mix64(i)));
        }
        a.merge(&b).unwrap();
        assert_eq!(a.len(), 3500);
        assert!((1000..4000).all(|i| a.contains(mix64(i))), "{config}");
        assert!((1500..2000).all(|i| a.count(mix64(i)) >= 2));
        for i in (1000..4000).chain(1500..2000) {
            assert!(a.remove(mix64(i)));
        }
        assert!(a.is_empty() && a.table.iter().all(|&byte| byte == 0));
    }
    let mut a = build::<false>(&Config::new(100), 100);
    let mut b = a.clone();
    let copies = |n| vec![mix64(7); n];
    a.insert_batch(&copies(300)).unwrap();
    b.insert_batch(&copies(300)).unwrap();
    let before = a.table.to_vec();
    assert!(matches!(
        a.merge(&b).unwrap_err().kind(),
        MergeErrorKind::Full(_)
    ));
    assert_eq!((&*a.table, a.len()), (&before[..], 400));
    let other = build::<false>(&Config::new(10_000), 0);
    assert!(matches!(
        a.merge(&other).unwrap_err().kind(),
        MergeErrorKind::Parameter { .. }
    ));
}
