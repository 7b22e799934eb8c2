use std::collections::BTreeSet;

use super::*;
use crate::error::FullKind;
use crate::simd::{Op, dispatch};

fn shapes() -> impl Iterator<Item = Shape> {
    SLOTS.map(|slots| Shape {
        slots: slots as u32,
    })
}

#[test]
fn every_shape_fills_half_a_line() {
    for shape in shapes() {
        assert_eq!(9 * shape.slots + shape.lists() + 1, 256);
        // Header and flag are whole bytes, and a word at most.
        assert_eq!(shape.slots + shape.lists() + 1, 8 * shape.first());
        assert!(shape.first() <= 8);
        // The load at which the spare is asked most.
        let asked = math::prefix_asked(shape.slots, LOAD * f64::from(shape.slots));
        assert!(asked < ASKED, "{asked}");
    }
}

/// Asks a pocket at the level at hand.
struct Ask<'a>(Shape, Pocket<'a>, u32);
impl Op for Ask<'_> {
    const WIDE: bool = true;
    type Out = Told;
    #[inline(always)]
    fn run<B: Bits>(self, bits: B) -> Told {
        self.0.ask(bits, self.1, self.2)
    }
}

#[test]
fn pockets_hold_the_least_and_the_spare_the_rest() {
    for shape in shapes() {
        // Two pockets in one line, one of which hardly overflows.
        for (seed, keys) in [(1, 60), (2, 300), (3, 3000)] {
            let spare = RankIndexed::with_bits(keys, 20).unwrap();
            let mut filter = Prefix::with_shape(2, shape, spare).unwrap();
            let mut model = [BTreeSet::new(), BTreeSet::new()];
            for i in 0..keys {
                let hash = mix64(seed << 32 | i);
                let place = filter.reader().place(hash);
                model[place.pocket as usize].insert(place.fingerprint);
                filter.insert(hash).unwrap();
                let reader = filter.reader();
                for ((pocket, number), all) in reader.pockets().zip(0..).zip(&model) {
                    let least = all.iter().copied().take(shape.slots as usize);
                    assert!(shape.fingerprints(pocket).eq(least), "{shape:?}");
                    assert!(shape.is_sound(pocket), "{shape:?}");
                    let (_, is_flagged) = shape.header(pocket);
                    assert_eq!(is_flagged, all.len() > shape.slots as usize);
                    for asked in [place.fingerprint, hash as u32 % (shape.lists() << 8), 0] {
                        let told = dispatch(Ask(shape, pocket, asked));
                        assert_eq!(told, shape.ask(Portable, pocket, asked));
                        let rank = all.range(..asked).count() as u32;
                        let there = Place {
                            pocket: number,
                            fingerprint: asked,
                        };
                        match told {
                            Told::Elsewhere => {
                                assert!(is_flagged && rank >= shape.slots, "{shape:?}");
                                let spared = reader.spare.contains(there.hash());
                                assert!(spared || !all.contains(&asked), "{shape:?}");
                            }
                            told => {
                                let present = all.contains(&asked);
                                assert_eq!(told == Told::Present, present, "{shape:?}");
                            }
                        }
                    }
                }
            }
            let sent: usize = model
                .iter()
                .map(|all| all.len().saturating_sub(shape.slots as usize))
                .sum();
            assert_eq!(filter.spared(), sent as u64, "{shape:?}, {keys} keys");
        }
    }
}

#[test]
fn size_rate_and_spare_are_those_of_the_formula() {
    // spec: at a load of 0.95 11.55 bits, 0.375 % with 25 lists and so 0.32 % with 30, and at
    // most 6 % of lookups that ask the spare.
    let n = 1_000_000;
    let mut hashes: Vec<u64> = (0..n).map(mix64).collect();
    let filter = Prefix::build(&Config::new(n).fpr(1.0 / 256.0), &mut hashes).unwrap();
    assert_eq!((filter.shape.slots, filter.shape.lists()), (25, 30));
    let bits = 8.0 * filter.size_in_bytes() as f64 / n as f64;
    assert!((bits - 11.53).abs() < 0.02, "{bits}");
    let mean = n as f64 / filter.pockets() as f64;
    let formula = mean / (30.0 * 256.0);
    let fpr = filter.fpr();
    assert!((1.0..1.04).contains(&(fpr / formula)), "{fpr}");
    let sent = filter.spared() as f64 / n as f64;
    assert!((sent - 0.0586).abs() < 0.001, "{sent}");

    let queries = 4_000_000;
    let reader = filter.reader();
    let (mut hits, mut asked) = (0, 0);
    for i in 0..queries {
        let place = reader.place(mix64(1 << 40 | i));
        let told = filter
            .shape
            .ask(Portable, reader.pocket(place.pocket), place.fingerprint);
        asked += u64::from(told == Told::Elsewhere);
        hits += u64::from(filter.contains(mix64(1 << 40 | i)));
    }
    for (what, rate) in [(hits, fpr), (asked, math::prefix_asked(25, mean))] {
        let (low, high) = math::binomial_interval(queries, rate, 1e-9);
        assert!((low..=high).contains(&what), "{what}, not {low} to {high}");
    }
    assert!(asked < queries * 6 / 100);
}

#[test]
fn sizes_are_those_of_the_formula() {
    // The table of the essay.
    for (fpr, slots, lists, bits_per_key, filled) in [
        (0.01, 27, 12, 10.63, 0.0085),
        (1.0 / 256.0, 25, 30, 11.53, 0.0032),
        (0.003, 24, 39, 12.07, 0.0023),
        (0.002, 24, 39, 13.51, 0.00195),
    ] {
        let n = 1_000_000;
        let mut hashes: Vec<u64> = (0..n).map(mix64).collect();
        let filter = Prefix::build(&Config::new(n).fpr(fpr), &mut hashes).unwrap();
        assert_eq!((filter.shape.slots, filter.shape.lists()), (slots, lists));
        let got = 8.0 * filter.size_in_bytes() as f64 / n as f64;
        let now = filter.fpr();
        assert!((got - bits_per_key).abs() < 0.006, "{got} at {fpr}");
        assert!((now - filled).abs() < 0.00006, "{now} at {fpr}");
    }
}

#[test]
fn the_capacity_is_always_reached() {
    // No refusal in so many filters bounds the probability by 3.5e-4 at α = 1e-9.
    let mut seed = 0u64;
    for fpr in [0.1, 0.01, 1.0 / 256.0, 0.0015] {
        for (keys, filters) in [
            (1, 100),
            (26, 2000),
            (60, 6000),
            (100, 5000),
            (1000, 2000),
            (30_000, 40),
        ] {
            for _ in 0..filters {
                let mut hashes: Vec<u64> = (seed..seed + keys).map(mix64).collect();
                seed += keys;
                let filter = Prefix::build(&Config::new(keys).fpr(fpr), &mut hashes);
                assert!(filter.is_ok(), "{keys} keys at {fpr}: {filter:?}");
            }
        }
    }
}

#[test]
fn copies_take_no_room_and_a_full_spare_refuses() {
    let mut filter = Prefix::build(&Config::new(100), &mut []).unwrap();
    for _ in 0..1000 {
        (0..50).for_each(|i| filter.insert(mix64(i)).unwrap());
    }
    assert_eq!((filter.len(), filter.spared()), (50_000, 0));
    let full = (50..).find_map(|i| filter.insert(mix64(i)).err()).unwrap();
    assert_eq!(
        (full.kind(), full.keys()),
        (FullKind::Capacity, filter.len())
    );
    // Of a pocket that is full, the spare is asked before anything is changed.
    let before = filter.bytes.to_vec();
    for i in 1000..3000 {
        if filter.insert(mix64(i)).is_err() {
            assert_eq!(*filter.bytes, before);
        } else {
            break;
        }
    }
    assert!((0..50).all(|i| filter.contains(mix64(i))));
}

#[test]
fn a_union_keeps_the_least_of_both() {
    let config = Config::new(4000);
    let mut all: Vec<u64> = (0..4000).map(mix64).collect();
    let whole = Prefix::build(&config, &mut all.clone()).unwrap();
    let (ours, theirs) = all.split_at_mut(1000);
    let mut union = Prefix::build(&config, ours).unwrap();
    union
        .merge(&Prefix::build(&config, theirs).unwrap())
        .unwrap();
    assert_eq!(*union.bytes, *whole.bytes);
    assert_eq!((union.spared(), union.len()), (whole.spared(), 4000));
    assert!(all.iter().all(|&hash| union.contains(hash)));
}

#[test]
fn a_full_filter_and_its_copy_have_the_room_of_one() {
    let mut hashes: Vec<u64> = (0..10_000).map(mix64).collect();
    let one = Prefix::build(&Config::new(10_000).fpr(0.01), &mut hashes).unwrap();
    let mut union = one.clone();
    union.merge(&one).unwrap();
    assert_eq!(*union.bytes, *one.bytes);
    assert!(one.spare.len() > 0 && union.spare.len() == one.spare.len());
}

#[test]
fn a_spare_that_no_pocket_sent_to_is_refused() {
    let config = Config::new(1000).fpr(0.01);
    let mut filter = Prefix::build(&config, &mut [mix64(1)]).unwrap();
    filter.spare.insert(mix64(2)).unwrap();
    filter.len = 2;
    let keyed = crate::Keyed::from_filter(filter, crate::Hashing::default(), &config);
    let refused = crate::Keyed::<Prefix>::open(keyed.unwrap().to_bytes()).unwrap_err();
    assert!(refused.to_string().contains("spare"), "{refused}");
}

#[test]
fn pockets_that_no_insertion_makes_are_not_sound() {
    for shape in shapes() {
        let mut full = [0; POCKET];
        for slot in 0..shape.slots {
            shape.add(&mut full, (shape.lists() - 1) << 8 | (10 * slot));
        }
        let is_sound = |pocket: [u8; POCKET]| {
            let mut line = [0; BLOCK];
            line[POCKET..].copy_from_slice(&pocket);
            shape.is_sound(Pocket {
                line: &line,
                is_second: true,
            })
        };
        let mut flagged = full;
        shape.set_flag(&mut flagged);
        assert!(
            is_sound(full) && is_sound(flagged) && is_sound([0; POCKET]),
            "{shape:?}"
        );
        // A flag where there is room; a slot that is not in use; no order; a list too many.
        let mut room = flagged;
        shape.drop_greatest(&mut room);
        let mut traced = full;
        shape.drop_greatest(&mut traced);
        traced[POCKET - 1] = 1;
        let mut twice = full;
        twice[POCKET - 1] = twice[POCKET - 2];
        let mut beyond = [0; POCKET];
        shape.write(&mut beyond, 1 << shape.lists());
        for unsound in [room, traced, twice, beyond] {
            assert!(!is_sound(unsound), "{shape:?}: {unsound:?}");
        }
    }
}

#[test]
fn a_rate_that_a_byte_cannot_reach_is_refused_by_name() {
    let build = |fpr| Prefix::build(&Config::new(1000).fpr(fpr), &mut []);
    let refused = build(1e-4).unwrap_err().kind().clone();
    let BuildErrorKind::Unreachable { least, .. } = refused else {
        panic!("{refused:?}");
    };
    assert!((0.0012..0.0013).contains(&least), "{least}");
    assert!(build(least).is_ok());
}
