use std::collections::HashMap;

use super::shape::{MOST_BUCKETS, WORDS};
use super::*;
use crate::bits::{fastrange, low_mask, mix64};
use crate::math;
use crate::simd::{Op, dispatch};

fn shapes() -> impl Iterator<Item = Shape> {
    Shape::all(1).chain(Shape::all(2))
}

/// The paper's block: 48 fingerprints of 8 bits, 80 buckets, 128 bits of metadata.
const PAPER: Shape = Shape {
    width: 1,
    slots: 48,
};

#[test]
fn shapes_fill_a_block_and_the_papers_are_among_them() {
    for shape in shapes() {
        let metadata = 8 * shape.metadata();
        assert_eq!(metadata, shape.slots + shape.buckets(), "{shape:?}");
        let bytes = shape.metadata() + shape.width * shape.slots;
        assert_eq!(bytes, BLOCK as u32, "{shape:?}");
        assert!(shape.buckets() <= MOST_BUCKETS && metadata <= 64 * WORDS as u32);
        assert_eq!(shape.first() * shape.width, shape.metadata(), "{shape:?}");
    }
    let found = |bits: u32| Shape::all(bits / 8).map(|shape| (shape.slots, shape.buckets()));
    assert!(found(8).any(|shape| shape == (48, 80)));
    assert!(found(16).any(|shape| shape == (28, 36)));
    assert_eq!((found(0).count(), found(24).count()), (0, 0));
}

#[test]
fn the_other_block_leads_back_and_differs_at_every_size() {
    for blocks in [2, 4, 6, 10, 1000, 3 << 29, (1 << 31) - 2, MOST_BLOCKS] {
        for i in 0..10_000 {
            let block = fastrange(mix64(i), blocks).0;
            let what = mix64(!i) % (128 << 16);
            let other = alternate(block, what, blocks);
            assert!(other < blocks && other != block, "{blocks} blocks");
            assert_eq!(alternate(other, what, blocks), block);
        }
    }
}

/// Adds a fingerprint at the level at hand, and says which slots hold it before and after.
struct Add<'a, const WIDE: bool>(Shape, &'a mut [u8; BLOCK], u32, u32);
impl<const WIDE: bool> Op for Add<'_, WIDE> {
    const WIDE: bool = WIDE;
    type Out = [u64; 2];
    #[inline(always)]
    fn run<B: Bits>(self, bits: B) -> [u64; 2] {
        let Add(shape, block, bucket, fingerprint) = self;
        let before = shape.lanes(bits, block, bucket, fingerprint);
        shape.add(bits, block, bucket, fingerprint);
        [before, shape.lanes(bits, block, bucket, fingerprint)]
    }
}

#[test]
fn a_block_is_a_list_of_lists_at_every_level() {
    for shape in shapes() {
        let mut block = [0; BLOCK];
        let mut model: Vec<Vec<u32>> = vec![Vec::new(); shape.buckets() as usize];
        let mut was_full = false;
        for step in 0..3000u64 {
            let draw = mix64(step << 16 | u64::from(shape.slots << 2 | shape.width));
            // Some buckets and fingerprints more often than others, the last bucket among them.
            let bucket = match draw >> 8 & 3 {
                0 => shape.buckets() - 1 - (draw >> 16) as u32 % 2,
                _ => (draw >> 16) as u32 % shape.buckets(),
            };
            let fingerprint = match draw >> 10 & 1 {
                0 => (draw >> 40) as u32 & 1,
                _ => (draw >> 40) as u32 & low_mask(8 * shape.width) as u32,
            };
            let held = &mut model[bucket as usize];
            let used = shape.used(&block);
            // Periods of more insertions, and of more removals.
            let inserts = (draw & 3 != 0) == (step / 300 % 2 == 0);
            if inserts && used < shape.slots {
                let [mut plain, mut v3] = [block; 2];
                let [before, after] = dispatch(Add::<true>(shape, &mut block, bucket, fingerprint));
                let lower = dispatch(Add::<false>(shape, &mut v3, bucket, fingerprint));
                let twin = Add::<true>(shape, &mut plain, bucket, fingerprint).run(Portable);
                assert_eq!([lower, twin], [[before, after]; 2], "{shape:?}");
                assert_eq!([v3, plain], [block; 2], "{shape:?}");
                held.push(fingerprint);
                assert_eq!(after.count_ones(), before.count_ones() + 1);
            } else if !inserts {
                let slots = shape.matches(&block, bucket, fingerprint);
                let first = held.iter().position(|&f| f == fingerprint);
                assert_eq!(slots != 0, first.is_some(), "{shape:?}");
                if let Some(first) = first {
                    held.remove(first);
                    shape.take(&mut block, bucket, slots.trailing_zeros());
                }
            }
            was_full |= shape.used(&block) == shape.slots;
            let expected = model.iter().zip(0..);
            let expected =
                expected.flat_map(|(held, bucket)| held.iter().map(move |&f| (bucket, f)));
            assert!(shape.fingerprints(&block).eq(expected), "{shape:?}");
            assert!(shape.is_sound(&block), "{shape:?}: {block:?}");
        }
        assert!(was_full, "{shape:?}");
        let last: Vec<(u32, u32)> = shape.fingerprints(&block).collect();
        for (bucket, fingerprint) in last {
            let slots = shape.matches(&block, bucket, fingerprint);
            shape.take(&mut block, bucket, slots.trailing_zeros());
        }
        assert_eq!(block, [0; BLOCK], "{shape:?}");
    }
}

fn sound(filter: &QuotientVector) -> bool {
    let blocks = filter.blocks().iter();
    let used: u64 = blocks
        .map(|block| u64::from(filter.shape.used(block)))
        .sum();
    let mut blocks = filter.blocks().iter();
    used == filter.len && blocks.all(|block| filter.shape.is_sound(block))
}

#[test]
fn a_multiset_is_followed_through_full_tables_and_collisions() {
    // Few keys in few blocks: all tables fill, and most places are shared.
    for (shape, blocks, keys) in [
        (PAPER, 2, 90),
        (PAPER, 8, 400),
        (
            Shape {
                width: 1,
                slots: 56,
            },
            4,
            40,
        ),
        (
            Shape {
                width: 1,
                slots: 43,
            },
            6,
            1000,
        ),
        (
            Shape {
                width: 2,
                slots: 29,
            },
            4,
            100,
        ),
        (
            Shape {
                width: 2,
                slots: 23,
            },
            10,
            3000,
        ),
    ] {
        let mut filter = QuotientVector::with_shape(blocks, shape).unwrap();
        // How often each place is held: the lower of its blocks, bucket, fingerprint.
        let mut model: HashMap<(u32, u32, u32), u64> = HashMap::new();
        let (mut refusals, mut moved) = (0, 0);
        for step in 0..200_000u64 {
            let draw = mix64(step << 8 | u64::from(shape.slots));
            let hash = mix64(draw % keys);
            let place = filter.place(hash);
            let name = (
                place.block.min(place.other),
                place.bucket,
                place.fingerprint,
            );
            let held = model.entry(name).or_default();
            assert_eq!(filter.count(hash), *held);
            assert_eq!(filter.contains(hash), *held > 0);
            if (draw >> 32 & 7 > 1) == (step / 2000 % 2 == 0) {
                let both = place.blocks().map(|i| shape.used(&filter.blocks()[i]));
                let full = both == [shape.slots; 2];
                let before = full.then(|| filter.bytes.to_vec());
                match filter.insert(hash) {
                    Ok(()) => {
                        *held += 1;
                        moved += u64::from(full);
                    }
                    Err(_) => {
                        assert_eq!(before.as_deref(), Some(&*filter.bytes), "{shape:?}");
                        refusals += 1;
                    }
                }
            } else {
                assert_eq!(filter.remove(hash), *held > 0);
                *held = held.saturating_sub(1);
            }
            if step % 16 == 0 {
                assert!(sound(&filter), "{shape:?} after {step}");
            }
        }
        assert!(refusals > 0, "{shape:?}: never full");
        assert!(moved > 0 || blocks == 2, "{shape:?}: nothing moved");
        for i in 0..keys {
            while filter.remove(mix64(i)) {}
        }
        assert!(filter.is_empty() && filter.bytes.iter().all(|&byte| byte == 0));
    }
}

#[test]
fn the_capacity_is_always_reached() {
    // No refusal in 100,000 filters bounds the probability by 2.1e-4 at α = 1e-9.
    let mut seed = 0u64;
    for (width, fpr) in [(1, 0.05), (1, 0.01), (1, 0.0027), (2, 4e-5), (2, 6e-6)] {
        let (shape, per_block) = Shape::best(width, fpr).unwrap();
        for (blocks, filters) in [
            (2, 2000),
            (4, 8000),
            (6, 4000),
            (8, 4000),
            (16, 1500),
            (100, 200),
        ] {
            let keys = (blocks as f64 * per_block) as u64;
            for _ in 0..filters {
                let mut filter = QuotientVector::with_shape(blocks, shape).unwrap();
                let hashes: Vec<u64> = (seed..seed + keys).map(mix64).collect();
                seed += keys;
                let inserted = filter.insert_batch(&hashes);
                assert_eq!(inserted, Ok(()), "{keys} keys, {blocks} blocks, {shape:?}");
            }
        }
    }
}

#[test]
fn tables_fill_far_beyond_their_capacity_before_the_first_refusal() {
    for (shape, blocks, least) in [
        (PAPER, 20_000, 0.98),
        (
            Shape {
                width: 1,
                slots: 56,
            },
            5000,
            0.98,
        ),
        (
            Shape {
                width: 1,
                slots: 43,
            },
            5000,
            0.98,
        ),
        (
            Shape {
                width: 2,
                slots: 28,
            },
            20_000,
            0.97,
        ),
        (
            Shape {
                width: 2,
                slots: 23,
            },
            5000,
            0.96,
        ),
    ] {
        let mut filter = QuotientVector::with_shape(blocks, shape).unwrap();
        let inserted = (0..)
            .take_while(|&i| filter.insert(mix64(i)).is_ok())
            .count() as u64;
        assert!(filter.load() > least, "{shape:?}: {}", filter.load());
        assert!((0..inserted).all(|i| filter.contains(mix64(i))));
        assert!(sound(&filter));
    }
}

#[test]
fn one_copy_more_than_two_blocks_hold_is_refused() {
    for shape in [
        PAPER,
        Shape {
            width: 2,
            slots: 25,
        },
    ] {
        let key = mix64(1000);
        let mut filter = QuotientVector::with_shape(20, shape).unwrap();
        for i in 0..100 {
            filter.insert(mix64(i)).unwrap();
        }
        // What else stands in the two blocks moves away.
        for copies in 1..=shape.most_copies() {
            filter.insert(key).unwrap();
            assert_eq!(filter.count(key), copies);
        }
        let before = filter.bytes.to_vec();
        let full = filter.insert(key).unwrap_err();
        assert_eq!(full.kind(), FullKind::Duplicates(shape.most_copies()));
        assert_eq!(full.keys(), 100 + shape.most_copies());
        assert_eq!(*filter.bytes, before);
        assert!((0..shape.most_copies()).all(|_| filter.remove(key)) && !filter.remove(key));
        assert!((0..100).all(|i| filter.contains(mix64(i))));
    }
}

#[test]
fn the_papers_shape_has_the_papers_rate() {
    // At a load of 0.93, 0.436 % in 11.47 bits.
    let blocks = 4000;
    let keys = (0.93 * 48.0 * blocks as f64) as u64;
    let mut filter = QuotientVector::with_shape(blocks, PAPER).unwrap();
    let hashes: Vec<u64> = (0..keys).map(mix64).collect();
    filter.insert_batch(&hashes).unwrap();
    let formula = math::vector_quotient_fpr(8, 80, keys as f64 / blocks as f64);
    assert!((formula / 0.00436 - 1.0).abs() < 0.001);
    assert!(
        filter.fpr() <= formula && filter.fpr() > 0.99 * formula,
        "{}",
        filter.fpr()
    );
    let queries = 2_000_000;
    let absent: Vec<u64> = (0..queries).map(|i| mix64(!i)).collect();
    let mut answers = vec![false; absent.len()];
    filter.contains_batch(&absent, &mut answers);
    let found = answers.iter().filter(|&&answer| answer).count() as u64;
    let (low, high) = math::binomial_interval(queries, filter.fpr(), 1e-9);
    assert!(
        (low..=high).contains(&found),
        "{found}, not {low} to {high}"
    );
    let bits = 8.0 * (blocks * BLOCK as u64) as f64 / keys as f64;
    assert!((bits / 11.47 - 1.0).abs() < 0.001, "{bits}");
}

#[test]
fn the_rate_of_a_part_is_that_of_the_table() {
    let blocks = COUNTED as u64 + 2;
    let mut filter = QuotientVector::with_shape(blocks, PAPER).unwrap();
    filter.insert(12_345).unwrap();
    let one = filter.fpr();
    assert!((one * blocks as f64 * 80.0 * 256.0 - 2.0).abs() < 1e-9);
    // Copies are held once each time, and answer once.
    filter.insert(12_345).unwrap();
    assert!(filter.fpr() >= one && filter.fpr() <= 2.0 * one);
    let hashes: Vec<u64> = (0..40 * blocks).map(mix64).collect();
    filter.insert_batch(&hashes).unwrap();
    let formula = math::vector_quotient_fpr(8, 80, filter.len as f64 / blocks as f64);
    assert!((filter.fpr() / formula - 1.0).abs() < 0.01);
}

#[test]
fn sizes_are_those_of_the_formula() {
    // The table of the essay.
    for (fpr, bits, slots, buckets, bits_per_key) in [
        (0.01, 8, 52, 44, 10.36),
        (0.005, 8, 48, 80, 11.23),
        (1.0 / 256.0, 8, 47, 89, 11.51),
        (0.003, 8, 44, 116, 12.25),
        (0.001, 16, 29, 19, 19.62),
        (1e-5, 16, 26, 70, 22.32),
    ] {
        let filter = QuotientVector::build(&Config::new(1_000_000).fpr(fpr), &mut []).unwrap();
        let shape = (
            filter.fingerprint_bits(),
            filter.shape.slots,
            filter.shape.buckets(),
        );
        assert_eq!(shape, (bits, slots, buckets), "{fpr}");
        let got = 8.0 * filter.bytes.len() as f64 / 1e6;
        assert!((got - bits_per_key).abs() < 0.006, "{got} at {fpr}");
    }
}

#[test]
fn a_rate_that_bytes_cannot_reach_is_refused_by_name() {
    let build =
        |config: Config| QuotientVector::build(&config, &mut []).map_err(|e| e.kind().clone());
    let refused = build(Config::new(1000).fpr(1e-6)).unwrap_err();
    let BuildErrorKind::Unreachable { least, .. } = refused else {
        panic!("{refused:?}");
    };
    assert!(build(Config::new(1000).fpr(least)).is_ok());
    for (bits, fpr, expected) in [
        (8, 0.0005, "16 for a rate of 0.0005"),
        (12, 0.01, "8 or 16"),
    ] {
        let refused = build(Config::new(1000).fpr(fpr).with(option::BITS, bits)).unwrap_err();
        let BuildErrorKind::Parameter { expected: told, .. } = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(told, expected);
    }
}

#[test]
fn blocks_that_no_operation_makes_are_not_sound() {
    for shape in shapes() {
        let (slots, buckets) = (shape.slots, shape.buckets());
        let mut full = [0; BLOCK];
        for i in 0..slots {
            shape.add(Portable, &mut full, i * (buckets - 1) / (slots - 1), i);
        }
        assert!(shape.is_sound(&full), "{shape:?}");
        let set = |block: &mut [u8; BLOCK], bit: u32| block[bit as usize / 8] |= 1 << (bit % 8);
        // A one more than slots, in place of the zero that ends the last bucket.
        let mut crowded = full;
        set(&mut crowded, slots + buckets - 1);
        assert!(!shape.is_sound(&crowded), "{shape:?}");
        // A fingerprint in the last bucket, and in one after it.
        let [mut last, mut beyond] = [[0; BLOCK]; 2];
        set(&mut last, buckets - 1);
        set(&mut beyond, buckets);
        assert!(
            shape.is_sound(&last) && !shape.is_sound(&beyond),
            "{shape:?}"
        );
        // A slot that is not in use.
        let mut traced = last;
        let second = (shape.metadata() + shape.width) as usize;
        traced[second] = 1;
        assert!(!shape.is_sound(&traced), "{shape:?}");
    }
}
