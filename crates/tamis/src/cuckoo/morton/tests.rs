use std::collections::HashMap;

use super::*;
use crate::bits::mix64;
use crate::simd::{Op, dispatch};

/// The block of the paper.
const PAPER: Shape = Shape { slots: 46 };

#[test]
fn every_shape_fills_a_line() {
    assert_eq!(PAPER.buckets(), 64);
    for shape in Shape::all() {
        let bits = 8 * shape.slots + 2 * shape.buckets() + OVERFLOW_BITS;
        assert_eq!(bits, 512, "{shape:?}");
        // Three words of counters, four buckets a byte.
        assert!(shape.buckets() <= 96 && shape.buckets().is_multiple_of(4));
        assert!(WAYS * shape.buckets() > shape.slots);
    }
}

#[test]
fn the_other_place_leads_back_from_another_block_near_by() {
    for blocks in [2, 4, 6, 126, 128, 130, 1000, 3 << 29, MOST_BLOCKS as usize] {
        for shape in Shape::all() {
            for i in 0..2000 {
                let place = Place::of(mix64(i), blocks, shape);
                let other = place.other(blocks, shape);
                assert!((other.block as usize) < blocks && other.bucket < shape.buckets());
                assert_ne!(other.block, place.block, "{blocks} blocks");
                assert_eq!(other.other(blocks, shape), place, "{blocks} blocks");
                let apart = other.block.abs_diff(place.block) as usize;
                assert!(apart.min(blocks - apart) < REACH as usize);
            }
        }
    }
}

/// Adds a fingerprint at the level at hand.
struct Add<'a>(Shape, &'a mut [u8; BLOCK], u32, u32);
impl Op for Add<'_> {
    const WIDE: bool = true;
    type Out = ();
    #[inline(always)]
    fn run<B: Bits>(self, bits: B) {
        self.0.add(bits, self.1, self.2, self.3);
    }
}

#[test]
fn a_block_is_a_list_of_lists_at_every_level() {
    for shape in Shape::all() {
        let mut block = [0; BLOCK];
        let mut model: Vec<Vec<u32>> = vec![Vec::new(); shape.buckets() as usize];
        let mut was_full = false;
        for step in 0..4000u64 {
            let draw = mix64(step << 8 | u64::from(shape.slots));
            let bucket = match draw >> 8 & 3 {
                0 => shape.buckets() - 1 - (draw >> 16) as u32 % 2,
                _ => (draw >> 16) as u32 % shape.buckets(),
            };
            let fingerprint = [0, 1, 128, (draw >> 40) as u32 & 255][(draw >> 10) as usize & 3];
            let held = &mut model[bucket as usize];
            let has_room = held.len() < 3 && shape.used(&block) < shape.slots;
            assert_eq!(shape.has_room(&block, bucket), has_room);
            let inserts = (draw & 3 != 0) == (step / 300 % 2 == 0);
            if inserts && has_room {
                let mut plain = block;
                dispatch(Add(shape, &mut block, bucket, fingerprint));
                shape.add(Portable, &mut plain, bucket, fingerprint);
                assert_eq!(block, plain, "{shape:?}");
                held.push(fingerprint);
            } else if !inserts && let Some(first) = held.iter().position(|&f| f == fingerprint) {
                held.remove(first);
                shape.take(&mut block, bucket, fingerprint);
            }
            let equal = held.iter().filter(|&&f| f == fingerprint).count() as u32;
            let found = shape.matches(&block, bucket, fingerprint);
            assert_eq!(found.count_ones(), equal, "{shape:?}");
            was_full |= shape.used(&block) == shape.slots;
            let expected = model.iter().zip(0..);
            let expected =
                expected.flat_map(|(held, bucket)| held.iter().map(move |&f| (bucket, f)));
            assert!(shape.fingerprints(&block).eq(expected), "{shape:?}");
        }
        assert!(was_full, "{shape:?}");
        let last: Vec<(u32, u32)> = shape.fingerprints(&block).collect();
        for (bucket, fingerprint) in last {
            shape.take(&mut block, bucket, fingerprint);
        }
        assert_eq!(block, [0; BLOCK], "{shape:?}");
    }
}

#[test]
fn an_overflow_bit_is_shared_by_every_sixteenth_bucket() {
    for shape in Shape::all() {
        for bucket in 0..shape.buckets() {
            let mut block = [0; BLOCK];
            shape.set_overflow(&mut block, bucket);
            let set = |other| shape.overflows(&block, other) == (other % 16 == bucket % 16);
            assert!((0..shape.buckets()).all(set), "{shape:?} {bucket}");
            assert_eq!(shape.used(&block), 0);
        }
    }
}

#[test]
fn a_multiset_is_followed_through_full_tables_and_collisions() {
    // Few keys in few blocks: tables fill, chains of moves are long, and most places are shared.
    for (slots, blocks, keys) in [(46, 2, 60), (46, 8, 500), (54, 4, 70), (38, 6, 1000)] {
        let shape = Shape { slots };
        let mut filter = Morton::with_shape(blocks, shape).unwrap();
        // How often each pair of places is held, by the lower of its blocks.
        let mut model: HashMap<(u32, u32, u32), u64> = HashMap::new();
        let name = |filter: &Morton, hash| {
            let place = filter.reader().place(hash);
            let other = filter.reader().other(place);
            let first = if place.block < other.block {
                place
            } else {
                other
            };
            (first.block, first.bucket, first.fingerprint)
        };
        let (mut refusals, mut overflows) = (0, 0);
        for step in 0..40_000u64 {
            let draw = mix64(step << 8 | u64::from(slots));
            let hash = mix64(draw % keys);
            // Only what was inserted is removed, so each key has a count of its own, too.
            let held = model.entry(name(&filter, hash)).or_default();
            assert!(filter.count(hash) <= *held);
            if (draw >> 32 & 7 > 1) == (step / 2000 % 2 == 0) {
                let before = filter.bytes.to_vec();
                match filter.insert(hash) {
                    Ok(()) => *held += 1,
                    Err(full) => {
                        assert_eq!(before, *filter.bytes, "{shape:?}: {full}");
                        refusals += 1;
                    }
                }
            } else if filter.remove(hash) {
                *held -= 1;
            }
            overflows += u64::from(filter.overflowed);
            if step % 16 == 0 {
                let used = filter.blocks().iter().map(|b| u64::from(shape.used(b)));
                assert_eq!(used.sum::<u64>(), filter.len, "{shape:?} after {step}");
            }
        }
        assert!(refusals > 0 && overflows > 0, "{shape:?}");
    }
}

#[test]
fn keys_that_were_inserted_stay_while_others_come_and_go() {
    // Near the most that fits, so that keys are moved from and back to their first places.
    for slots in [38, 46, 54] {
        let shape = Shape { slots };
        let mut filter = Morton::with_shape(20, shape).unwrap();
        let mut held: Vec<u64> = Vec::new();
        for step in 0..40_000u64 {
            let hash = mix64(step << 8 | u64::from(slots));
            match filter.insert(hash) {
                Ok(()) => held.push(hash),
                Err(_) => {
                    for _ in 0..3 {
                        let gone = held.swap_remove(hash as usize % held.len());
                        assert!(filter.remove(gone), "{shape:?}, step {step}");
                    }
                }
            }
            if step % 50 == 0 {
                assert!(held.iter().all(|&hash| filter.contains(hash)), "{shape:?}");
            }
        }
        assert!(filter.overflow() > 0.9, "{}", filter.overflow());
        assert!(held.iter().all(|&hash| filter.remove(hash)));
        assert!(filter.is_empty() && filter.bytes.iter().all(|&byte| byte == 0));
    }
}

#[test]
fn the_capacity_is_always_reached() {
    // No refusal in so many filters bounds the probability by 6e-4 at α = 1e-9.
    let mut seed = 0u64;
    for fpr in [0.05, 0.01, 0.0054, 1.0 / 256.0, 0.003] {
        let (shape, per_block) = Shape::best(fpr).unwrap();
        for (blocks, filters) in [(2, 1000), (4, 3000), (6, 2000), (16, 1000), (100, 200)] {
            let keys = (blocks as f64 * per_block) as u64;
            for _ in 0..filters {
                let mut filter = Morton::with_shape(blocks, shape).unwrap();
                let hashes: Vec<u64> = (seed..seed + keys).map(mix64).collect();
                seed += keys;
                let inserted = filter.insert_batch(&hashes);
                assert_eq!(inserted, Ok(()), "{keys} keys, {blocks} blocks, {shape:?}");
            }
        }
    }
}

#[test]
fn tables_fill_beyond_their_capacity_before_the_first_refusal() {
    for (slots, blocks) in [(46, 20_000), (54, 5000), (38, 5000), (46, 200)] {
        let mut filter = Morton::with_shape(blocks, Shape { slots }).unwrap();
        let inserted = (0..)
            .take_while(|&i| filter.insert(mix64(i)).is_ok())
            .count() as u64;
        let load = filter.load();
        assert!(load > 0.97, "{slots} slots, {blocks} blocks: {load}");
        assert!((0..inserted).all(|i| filter.contains(mix64(i))));
    }
}

#[test]
fn the_seventh_copy_is_refused_as_a_duplicate_and_changes_nothing() {
    let key = mix64(1000);
    let mut filter = Morton::with_shape(20, PAPER).unwrap();
    (0..300).for_each(|i| filter.insert(mix64(i)).unwrap());
    for copies in 1..=MOST_COPIES {
        filter.insert(key).unwrap();
        assert_eq!(filter.count(key), copies);
    }
    let before = filter.bytes.to_vec();
    let full = filter.insert(key).unwrap_err();
    assert_eq!((full.kind(), full.keys()), (FullKind::Duplicates(6), 306));
    assert_eq!(*filter.bytes, before);
    assert!((0..MOST_COPIES).all(|_| filter.remove(key)) && !filter.remove(key));
    assert!((0..300).all(|i| filter.contains(mix64(i))));
}

/// The rate if every key stood in its first place: an absent key is compared with those of one
/// bucket, and where its overflow bit is set with those of another. A key that stands in its other
/// place answers there for both, which is a little more.
fn by_bits(filter: &Morton) -> f64 {
    let keys_per_block = filter.len as f64 / filter.blocks().len() as f64;
    let all = math::vector_quotient_fpr(8, filter.shape.buckets(), keys_per_block);
    all / 2.0 * (1.0 + filter.overflow())
}

/// How many of so many absent keys are found.
fn found(filter: &Morton, queries: u64) -> u64 {
    let absent: Vec<u64> = (0..queries).map(|i| mix64(!i)).collect();
    let mut answers = vec![false; absent.len()];
    filter.contains_batch(&absent, &mut answers);
    answers.iter().filter(|&&answer| answer).count() as u64
}

#[test]
fn most_lookups_read_one_line() {
    // The paper's block at a load of 0.95: 11.72 bits a key.
    let blocks = 23_000;
    let keys = (0.95 * 46.0 * blocks as f64) as u64;
    let mut filter = Morton::with_shape(blocks, PAPER).unwrap();
    let hashes: Vec<u64> = (0..keys).map(mix64).collect();
    filter.insert_batch(&hashes).unwrap();
    let bits = 8.0 * filter.bytes.len() as f64 / keys as f64;
    assert!((bits / 11.72 - 1.0).abs() < 0.0005, "{bits}");
    let overflow = filter.overflow();
    assert!((0.115..0.125).contains(&overflow), "{overflow}");
    // Between the rates of no bit set and of all.
    let most = math::vector_quotient_fpr(8, 64, keys as f64 / blocks as f64);
    assert!((most - 0.00533).abs() < 0.00001, "{most}");
    let fpr = filter.fpr();
    assert!((most / 2.0..most).contains(&fpr), "{fpr}");
    assert!((1.0..1.05).contains(&(fpr / by_bits(&filter))), "{fpr}");
    let (low, high) = math::binomial_interval(2_000_000, fpr, 1e-9);
    let hits = found(&filter, 2_000_000);
    assert!((low..=high).contains(&hits), "{hits}, not {low} to {high}");
}

#[test]
fn the_rate_is_kept_when_every_overflow_bit_is_set() {
    for fpr in [0.01, 0.0054, 1.0 / 256.0] {
        let (shape, per_block) = Shape::best(fpr).unwrap();
        let blocks = 1000;
        let keys = (blocks as f64 * per_block) as u64;
        let mut filter = Morton::with_shape(blocks, shape).unwrap();
        let hashes: Vec<u64> = (0..keys).map(mix64).collect();
        filter.insert_batch(&hashes).unwrap();
        for block in filter.writer().blocks {
            block[..COUNTERS].fill(0xFF);
        }
        assert_eq!(filter.overflow(), 1.0);
        let now = filter.fpr();
        assert!(now <= fpr && now > 0.95 * fpr, "{now} of {fpr}");
        let (low, high) = math::binomial_interval(1_000_000, now, 1e-9);
        let hits = found(&filter, 1_000_000);
        assert!((low..=high).contains(&hits), "{hits}, not {low} to {high}");
    }
}

#[test]
fn the_rate_of_a_part_is_that_of_the_table() {
    let blocks = COUNTED as u64 + 2;
    let mut filter = Morton::with_shape(blocks, PAPER).unwrap();
    filter.insert(12_345).unwrap();
    let one = filter.fpr();
    assert!((one * blocks as f64 * 64.0 * 256.0 - 1.0).abs() < 1e-9);
    let hashes: Vec<u64> = (0..40 * blocks).map(mix64).collect();
    filter.insert_batch(&hashes).unwrap();
    let fpr = filter.fpr();
    assert!((1.0..1.05).contains(&(fpr / by_bits(&filter))), "{fpr}");
}

#[test]
fn sizes_are_those_of_the_formula() {
    // The table of the essay.
    for (fpr, slots, buckets, bits_per_key, filled) in [
        (0.01, 52, 40, 10.36, 0.0060),
        (0.0054, 46, 64, 11.72, 0.0031),
        (1.0 / 256.0, 42, 80, 12.83, 0.0023),
        (0.003, 38, 96, 14.18, 0.0017),
    ] {
        let n = 1_000_000;
        let mut hashes: Vec<u64> = (0..n).map(mix64).collect();
        let filter = Morton::build(&Config::new(n).fpr(fpr), &mut hashes).unwrap();
        assert_eq!(
            (filter.shape.slots, filter.shape.buckets()),
            (slots, buckets)
        );
        let got = 8.0 * filter.bytes.len() as f64 / n as f64;
        assert!((got - bits_per_key).abs() < 0.006, "{got} at {fpr}");
        let now = filter.fpr();
        assert!((now - filled).abs() < 0.00005, "{now} at {fpr}");
    }
}

#[test]
fn a_rate_that_a_byte_cannot_reach_is_refused_by_name() {
    let build = |fpr| Morton::build(&Config::new(1000).fpr(fpr), &mut []);
    let refused = build(1e-4).unwrap_err().kind().clone();
    let BuildErrorKind::Unreachable { least, .. } = refused else {
        panic!("{refused:?}");
    };
    assert!((0.0015..0.0016).contains(&least), "{least}");
    assert!(build(least).is_ok());
}
