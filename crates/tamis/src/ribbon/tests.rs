//! Tests of what all ribbons share.

use super::*;
use crate::bits::mix64;
use crate::build::shards::shard_of;
use crate::ribbon::solve::{Set, solve_shards};
use crate::simd::Portable;

pub(super) fn keys(n: u64, set: u64) -> Vec<u64> {
    (0..n).map(|i| mix64(set << 40 | i)).collect()
}

/// Asserts that absent keys are found as often as the filter says.
pub(super) fn assert_rate(filter: &dyn crate::Filter, queries: u64) {
    let absent = keys(queries, 999);
    let mut found = vec![false; absent.len()];
    filter.contains_batch(&absent, &mut found);
    let hits = found.into_iter().filter(|&found| found).count() as u64;
    let (low, high) = math::binomial_interval(queries, filter.fpr(), 1e-9);
    assert!(
        (low..=high).contains(&hits),
        "{hits} hits, not {low} to {high}"
    );
}

#[test]
fn stretches_come_in_order_and_repeats_are_told() {
    for (n, starts) in [
        (0, 64),
        (1, 64),
        (100, 64),
        (5000, 4992),
        (20_000, 3 * STRETCH as u64),
    ] {
        let hashes = keys(n, 1);
        let (first, second) = hashes.split_at(hashes.len() / 3);
        let mut got = Vec::new();
        let start = |hash| fastrange(hash, starts).0;
        let collect = |stretch: &[u64]| {
            got.extend_from_slice(stretch);
            Ok(())
        };
        in_order(&[first, second], starts, |hash| hash, start, collect).unwrap();
        let mut sorted = hashes.clone();
        sorted.sort_unstable();
        assert_eq!(got, sorted, "{n} keys, {starts} starts");
        let again = in_order(
            &[&hashes, &hashes[..hashes.len().min(1)]],
            starts,
            |h| h,
            start,
            |_| Ok(()),
        );
        assert_eq!(n > 0, matches!(again, Err(Failure::Repeats)));
    }
}

struct Agrees<'a, R>(&'a Shape, &'a [u64], Place<R>);
impl<R: Row> simd::Op for Agrees<'_, R> {
    type Out = bool;
    #[inline(always)]
    fn run<B: Bits>(self, bits: B) -> bool {
        self.0.agrees::<R, B, true>(bits, self.1, self.2)
    }
}

/// What all levels answer.
fn agrees<R: Row>(shape: &Shape, words: &[u64], place: Place<R>) -> bool {
    let portable = simd::Op::run(Agrees(shape, words, place), Portable);
    assert_eq!(portable, simd::dispatch(Agrees(shape, words, place)));
    portable
}

/// Every equation holds in what is solved, column by column, by its definition.
fn solves<R: Row>() {
    for (columns, short) in [(1, 0.0), (1, 0.7), (3, 0.5), (8, 0.0), (13, 0.3), (32, 0.9)] {
        let shape = Shape::new(R::WIDTH, Rate { columns, short }, 1, 1000);
        let mut band = Band::<R, u32>::new(shape.slots()).unwrap();
        let mut equations = Vec::new();
        for hash in keys(800, 2) {
            let (row, result) = R::of(hash);
            let (start, result) = (shape.start(hash), result & shape.kept());
            match band.insert(start, row, result) {
                Placed::Conflict => {}
                _ => equations.push((start, row, result)),
            }
        }
        assert!(equations.len() > 700);
        let mut words = vec![0; shape.words() as usize];
        band.solve(&shape, &mut words);
        for (start, row, result) in equations {
            let kept = shape.columns_at(start);
            let mut sum = 0;
            for column in 0..kept {
                let bits = shape.column(&words, 0, start, R::WIDTH, column);
                for i in (0..R::WIDTH).filter(|&i| row >> i & R::bit(1) == R::bit(1)) {
                    sum ^= ((bits >> i & 1) as u32) << column;
                }
            }
            assert_eq!(sum, result & low_mask(kept) as u32, "{columns} columns");
            let place = |result| Place {
                first: shape.first(0, start),
                start,
                row,
                result,
            };
            assert!(agrees(&shape, &words, place(result)));
            for column in 0..kept {
                assert!(!agrees(&shape, &words, place(result ^ 1 << column)));
            }
        }
    }
}

#[test]
fn what_is_solved_satisfies_every_equation() {
    solves::<u64>();
    solves::<u128>();
}

/// Looks up a row that has all slots, in the last of three shards.
fn stays_inside<R: Row>(shape: &Shape, words: &[u64], start: u64, row: R) -> bool {
    let (first, result) = (shape.first(2, start), 0);
    agrees(
        shape,
        words,
        Place {
            first,
            start,
            row,
            result,
        },
    )
}

#[test]
fn rows_of_any_start_stay_inside_the_words() {
    for width in [64, 128] {
        for (columns, short) in [(1, 0.99), (7, 0.28), (8, 0.0), (32, 1.0)] {
            for slots in [1, 64, 200, 1000] {
                let shape = Shape::new(width, Rate { columns, short }, 3, slots);
                assert!(shape.check().is_ok());
                let words = vec![0; (shape.words() * 3) as usize];
                for start in 0..shape.starts() {
                    if width == 64 {
                        assert!(stays_inside(&shape, &words, start, u64::MAX));
                    } else {
                        assert!(stays_inside(&shape, &words, start, u128::MAX));
                    }
                }
            }
        }
    }
}

#[test]
fn shapes_that_reach_beyond_their_words_are_refused() {
    let good = Shape {
        width: 64,
        columns: 8,
        shards: 1,
        blocks: 2,
        short: 1,
    };
    assert!(good.check().is_ok());
    for bad in [
        Shape { width: 96, ..good },
        Shape { width: 128, ..good },
        Shape { blocks: 1, ..good },
        Shape {
            blocks: u64::MAX,
            ..good
        },
        Shape {
            shards: MOST_SHARDS + 1,
            ..good
        },
        Shape { short: 2, ..good },
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
    }
}

#[test]
fn shards_that_are_skewed_are_refused_and_what_is_not_repeated_becomes_one() {
    // All in the first of five shards.
    let mut hashes = keys(50_000, 4);
    hashes.retain(|&hash| shard_of(hash, 5) == 0);
    let config = Config::default();
    let solve = |hashes: &mut [u64], shards| {
        let shape = |largest| {
            assert_eq!(shards, 1, "all shards would be as large as all keys");
            let columns = Rate::new("", 0.01, 1.0).unwrap();
            Shape::new(64, columns, shards, 2 * largest)
        };
        let solved = solve_shards(&config, hashes, shards, shape, |part| Ok(part.keys()));
        solved.map(|solved| solved.each)
    };
    assert!(matches!(solve(&mut hashes, 5), Err(Failure::Repeats)));
    let len = hashes.len();
    assert_eq!(solve(&mut hashes, 1).unwrap(), [len as u64]);
    let mut repeated = [&hashes[..], &hashes[..]].concat();
    let mut set = Set::new(repeated.len());
    set.mend(&mut repeated);
    assert_eq!((set.len, set.shards), (len, 1));
    let mut set = Set::new(10 << 21);
    assert_eq!(set.shards, 10);
    set.mend(&mut (0..10 << 21).collect::<Vec<_>>());
    assert_eq!((set.len, set.shards), (10 << 21, 10));
    set.mend(&mut []);
    assert_eq!((set.len, set.shards), (10 << 21, 1));
}
