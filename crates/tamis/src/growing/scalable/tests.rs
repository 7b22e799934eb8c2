use super::*;

fn built(config: &Config) -> Scalable {
    Scalable::build(config, &mut []).unwrap()
}

/// Absent hashes that are found.
fn hits(filter: &Scalable, queries: u64) -> u64 {
    (0..queries)
        .filter(|q| filter.contains(mix64(1 << 63 | q)))
        .count() as u64
}

#[test]
fn the_rate_holds_at_every_boundary_from_a_thousand_keys_to_a_million() {
    // Acceptance A13: 1 %, r = 0.85, at most 1 % at every full slice and at most 16.3 bits per
    // key at the tenth.
    let mut filter = built(&Config::new(1000).fpr(0.01));
    let queries = 1_000_000;
    let mut keys = 0;
    for slices in 1..=10 {
        let boundary = 1000 * ((1 << slices) - 1);
        for i in keys..boundary {
            filter.insert(mix64(i)).unwrap();
        }
        keys = boundary;
        assert_eq!(filter.slices(), slices);
        let hits = hits(&filter, queries);
        let (low, high) = math::binomial_interval(queries, filter.fpr(), 1e-9);
        assert!(
            (low..=high).contains(&hits),
            "{slices}: {hits}, {low} to {high}"
        );
        assert!(filter.fpr() < 0.01 && hits < 10_000, "{slices}: {hits}");
        let schedule = ScalableSchedule::Geometric { ratio: 0.85 };
        let formula = math::scalable_bits_per_key(schedule, 0.01, 2.0, slices as u32);
        let bits: u64 = filter.slices.iter().map(|s| s.array.bits()).sum();
        // A whole number of probes and of words costs 0.4 % at most.
        let ratio = bits as f64 / keys as f64 / formula;
        assert!((1.0..1.004).contains(&ratio), "{slices}: {ratio}");
        // Padding and the list count too; they are most of what is above the formula.
        let bits_per_key = filter.size_in_bytes() as f64 * 8.0 / keys as f64;
        assert!(bits_per_key < 16.3, "{slices}: {bits_per_key}");
    }
    assert!((0..keys).all(|i| filter.contains(mix64(i))));
}

#[test]
fn other_shares_and_growths_keep_the_rate_too() {
    for (growth, ratio, slices) in [(4, "0.85", 5), (2, "square", 8), (8, "0.5", 4)] {
        let config = Config::new(100).fpr(0.02);
        let mut filter = built(&config.set("growth", growth).set("ratio", ratio));
        for i in 0..25_000 {
            filter.insert(mix64(i)).unwrap();
        }
        assert_eq!(filter.slices(), slices, "{growth}, {ratio}");
        let hits = hits(&filter, 200_000);
        let (low, high) = math::binomial_interval(200_000, filter.fpr(), 1e-9);
        assert!((low..=high).contains(&hits), "{hits}: {low} to {high}");
        assert!(filter.fpr() <= filter.fpr_bound() && filter.fpr_bound() < 0.02);
    }
}

#[test]
fn slices_of_bloom_g_are_filled_to_the_load_that_their_share_allows() {
    let mut filter = built(&Config::new(1000).fpr(0.01).set("slice", "bloom_g"));
    let (queries, mut keys) = (1_000_000, 0);
    for slices in 1..=8 {
        let boundary = 1000 * ((1 << slices) - 1);
        let more: Vec<u64> = (keys..boundary).map(mix64).collect();
        filter.insert_batch(&more).unwrap();
        keys = boundary;
        assert_eq!(filter.slices(), slices);
    }
    assert!((0..keys).all(|i| filter.contains(mix64(i))));
    let hits = hits(&filter, queries);
    let (low, high) = math::binomial_interval(queries, filter.fpr(), 1e-9);
    assert!((low..=high).contains(&hits), "{hits}: {low} to {high}");
    assert!(filter.fpr() < 0.01, "{}", filter.fpr());
    for slice in &filter.slices {
        let (bits, k) = (slice.array.bits(), slice.array.parts().1);
        let (words, share) = (bits / 512, filter.plan.share(slice.number));
        let most = math::bloom_g_capacity(words, 512, k, 2, share);
        // One word fewer, and the share would be exceeded: what is left is less than its keys.
        let spare = (most - slice.keys()) as f64 * words as f64 / most as f64;
        assert!((0.0..1.5).contains(&spare), "{}: {spare}", slice.number);
    }
}

#[test]
fn batches_that_end_anywhere_fill_the_slices_as_single_keys_do() {
    for layout in ["bloom", "bloom_g"] {
        let config = Config::new(100).fpr(0.01).set("slice", layout);
        let hashes: Vec<u64> = (0..3000).map(mix64).collect();
        let mut single = built(&config);
        hashes.iter().for_each(|&h| single.insert(h).unwrap());
        for size in [1, 99, 101, 511, 513, 3000] {
            let mut batch = built(&config);
            hashes
                .chunks(size)
                .for_each(|hashes| batch.insert_batch(hashes).unwrap());
            let arrays = |filter: &Scalable| -> Vec<Vec<u64>> {
                let words = |slice: &Slice| slice.array.parts().0.to_vec();
                filter.slices.iter().map(words).collect()
            };
            assert!(arrays(&batch) == arrays(&single), "{layout}, {size}");
            let asked: Vec<u64> = (2000..4000).map(mix64).collect();
            let mut out = vec![false; 2000];
            for (hashes, out) in asked.chunks(size).zip(out.chunks_mut(size)) {
                batch.contains_batch(hashes, out);
            }
            assert!(asked.iter().zip(out).all(|(&h, o)| single.contains(h) == o));
        }
    }
}

#[test]
fn the_essay_tells_the_sizes_of_the_formula() {
    let geometric = |ratio| ScalableSchedule::Geometric { ratio };
    for (schedule, sizes) in [
        (geometric(0.5), [11.03, 22.58, 37.00]),
        (geometric(0.85), [13.53, 16.24, 19.62]),
        (geometric(0.9), [14.38, 16.13, 18.32]),
        (ScalableSchedule::InverseSquare, [10.62, 19.70, 22.86]),
    ] {
        for (slices, told) in [1, 10, 20].into_iter().zip(sizes) {
            let got = math::scalable_bits_per_key(schedule, 0.01, 2.0, slices);
            assert!((got - told).abs() < 0.0051, "{schedule:?}, {slices}: {got}");
        }
    }
    // The filter's own sizes, which whole probes and words make a little larger.
    for (layout, k, told) in [
        ("bloom", 12, [13.54, 16.25]),
        ("bloom_g", 12, [13.75, 16.61]),
    ] {
        let plan = built(&Config::new(1 << 20).fpr(0.01).set("slice", layout)).plan;
        assert_eq!(plan.size(9).unwrap().1, k);
        for (slices, told) in [1, 10].into_iter().zip(told) {
            let bits: u64 = (0..slices).map(|i| plan.size(i).unwrap().0).sum();
            let keys: u64 = (0..slices).map(|i| plan.capacity(i).unwrap()).sum();
            let got = bits as f64 / keys as f64;
            assert!((got - told).abs() < 0.0051, "{layout}, {slices}: {got}");
        }
    }
}

#[test]
fn a_key_that_fools_one_slice_fools_the_next_no_more_often() {
    // The same keys in every slice: only places of their own keep the slices' errors apart.
    let mut filter = built(&Config::new(3000).fpr(0.9));
    for _ in 0..2 {
        for i in 0..3000 {
            filter.insert(mix64(i)).unwrap();
        }
    }
    let [small, large] = &filter.slices[..] else {
        panic!("{} slices", filter.slices());
    };
    let fools = |slice: &Slice, q: u64| slice.array.contains(slice.salted(mix64(1 << 63 | q)));
    let queries = 300_000;
    let both = (0..queries)
        .filter(|&q| fools(small, q) && fools(large, q))
        .count() as u64;
    let rate = small.array.filter().fpr() * large.array.filter().fpr();
    let (low, high) = math::binomial_interval(queries, rate, 1e-9);
    assert!((low..=high).contains(&both), "{both}: {low} to {high}");
}

#[test]
fn merging_unites_what_fits_and_appends_the_rest() {
    for layout in ["bloom", "bloom_g"] {
        merge_two(&Config::new(100).fpr(0.01).set("slice", layout));
    }
    let config = Config::new(100).fpr(0.01);
    let other = built(&config.clone().set("slice", "bloom_g"));
    let error = built(&config).merge(&other).unwrap_err();
    assert!(error.to_string().contains("slice (0 here, 1 there)"));
    let error = built(&config)
        .merge(&built(&config.clone().fpr(0.02)))
        .unwrap_err();
    assert!(error.to_string().contains("fpr (0.01 here, 0.02 there)"));
}

fn merge_two(config: &Config) {
    let holding = |range: std::ops::Range<u64>| {
        let mut filter = built(config);
        range.for_each(|i| filter.insert(mix64(i)).unwrap());
        filter
    };
    // 100 + 20 and 100 + 30: the first slices are full, the second fit together.
    let mut union = holding(0..120);
    union.merge(&holding(200..330)).unwrap();
    let numbers: Vec<u32> = union.slices.iter().map(|slice| slice.number).collect();
    assert_eq!((numbers, union.len()), (vec![0, 0, 1], 250));
    assert!((0..120).chain(200..330).all(|i| union.contains(mix64(i))));
    assert!(union.fpr_bound() > holding(0..120).fpr_bound());
    // It goes on growing from there.
    (1000..1200).for_each(|i| union.insert(mix64(i)).unwrap());
    assert_eq!(union.newest().number, 2);
    // As many slices as merging makes, and then no more by merging.
    let full = holding(0..100);
    let mut union = holding(0..100);
    for _ in 1..MOST_MERGED {
        union.merge(&full).unwrap();
    }
    let error = union.merge(&full).unwrap_err();
    assert!(error.to_string().contains("more than 48 slices"), "{error}");
    assert_eq!((union.slices(), union.len()), (48, 4800));
    // A filter without keys adds no slice. Growth goes on.
    union.merge(&built(config)).unwrap();
    let room: u64 = (1..=4).map(|number| 100 << number).sum();
    (0..room).for_each(|i| union.insert(mix64(i)).unwrap());
    assert_eq!((union.slices(), union.newest().number), (52, 4));
    let error = union.merge(&full).unwrap_err();
    assert!(matches!(error.kind(), MergeErrorKind::Full(_)), "{error}");
    assert!((0..room).all(|i| union.contains(mix64(i))));
    while union.slices() < MOST_SLICES {
        union.slices.insert(0, full.slices[0].clone());
    }
    let before = union.len();
    let error = union.insert(1).unwrap_err();
    assert_eq!(error.kind(), FullKind::Slices(62));
    assert!(error.to_string().contains("62 slices"), "{error}");
    assert_eq!(union.len(), before);
}

#[test]
fn a_slice_that_no_memory_can_hold_is_refused_and_nothing_is_lost() {
    let mut filter = built(&Config::new(64).fpr(0.01));
    (0..64).for_each(|i| filter.insert(mix64(i)).unwrap());
    // As if the first slice had been made for so many that the second would need 2⁶¹ bits.
    filter.plan.first = 1 << 56;
    let words = filter.slices[0].array.parts().0.clone();
    let holding = |keys| Array::from_parts(Layout::Bloom, words.clone(), 7, keys);
    filter.slices[0].array = holding(1 << 56);
    let full = filter.insert(mix64(64)).unwrap_err();
    assert!(
        matches!(full.kind(), FullKind::Memory(bytes) if bytes > 1 << 57),
        "{full}"
    );
    filter.plan.first = u64::MAX;
    filter.slices[0].array = holding(u64::MAX);
    let full = filter.insert(mix64(64)).unwrap_err();
    assert_eq!(full.kind(), FullKind::Capacity);
    assert_eq!((filter.slices(), filter.len()), (1, u64::MAX));
}
