use std::collections::BTreeMap;

use super::super::sequence::{Entry, Writer};
use super::*;
use crate::bits::mix64;
use crate::simd::{Op, Portable, dispatch};

/// What a table holds: the values of each quotient, in order.
type Model = BTreeMap<u64, Vec<u64>>;

fn insert_sorted(table: &mut Table, quotient: u64, value: u64) -> Result<(), NoRoom> {
    let view = table.view();
    let run = view.run(Portable, quotient);
    let at = (run.0..run.1)
        .find(|&slot| view.get(slot) > value)
        .unwrap_or(run.1);
    table.insert_at(Portable, quotient, run, at, value)
}

fn agrees(table: &Table, model: &Model) {
    table
        .check()
        .unwrap_or_else(|(slot, expected)| panic!("slot {slot}: expected {expected}"));
    let entries: Vec<_> = table.entries().collect();
    let expected = model.iter().flat_map(|(&quotient, values)| {
        let last = values.len() - 1;
        let entry = move |(i, &value)| Entry {
            quotient,
            value,
            is_last: i == last,
        };
        values.iter().enumerate().map(entry)
    });
    assert!(entries.into_iter().eq(expected), "other entries");
    let (quotients, view) = (table.quotients(), table.view());
    for quotient in 0..quotients {
        let (start, end) = view.run(Portable, quotient);
        let held: Vec<u64> = (start..end).map(|slot| view.get(slot)).collect();
        let expected = model.get(&quotient).map_or(&[][..], Vec::as_slice);
        assert_eq!(held, expected, "the run of {quotient}");
    }
}

/// Random insertions and removals, all invariants after each; returns how often there was no
/// room, and the greatest offset.
fn walk(quotients: u64, bits: u32, steps: u64, skew: u64) -> (u64, u64) {
    let mut table = Table::new(quotients, bits).unwrap();
    let fresh = table.bytes.to_vec();
    let mut model = Model::new();
    let (mut refused, mut greatest) = (0, 0);
    let seed = mix64(quotients << 32 | u64::from(bits) << 16 | skew);
    for step in 0..steps {
        let draw = mix64(seed ^ step);
        // Some quotients come far more often than others, and few values.
        let quotient = (draw >> 8) % (1 + (draw >> 40) % quotients.min(skew)) % quotients;
        let value = (mix64(draw) % 5) & low_mask(bits);
        let inserts = draw % 100
            < if (step / (steps / 4 + 1)).is_multiple_of(2) {
                75
            } else {
                30
            };
        if inserts {
            let before = table.bytes.to_vec();
            match insert_sorted(&mut table, quotient, value) {
                Ok(()) => {
                    let run = model.entry(quotient).or_default();
                    let at = run.partition_point(|&held| held <= value);
                    run.insert(at, value);
                }
                Err(NoRoom) => {
                    refused += 1;
                    assert!(before == *table.bytes, "changed by a refusal");
                }
            }
        } else if let Some(run) = model.get_mut(&quotient) {
            let i = (draw >> 20) as usize % run.len();
            run.remove(i);
            if run.is_empty() {
                model.remove(&quotient);
            }
            let run = table.view().run(Portable, quotient);
            table.remove_at(Portable, quotient, run, run.0 + i as u64);
        }
        agrees(&table, &model);
        let view = table.view();
        let offsets = (0..view.shape.blocks).map(|block| view.offset(Portable, block));
        greatest = greatest.max(offsets.max().unwrap_or(0));
    }
    let mut writer = Writer::new(Table::new(quotients, bits).unwrap());
    for entry in table.entries() {
        writer.push(entry.quotient, entry.value).unwrap();
    }
    assert!(
        *writer.finish().bytes == *table.bytes,
        "written in order, other bytes"
    );
    for (quotient, values) in model {
        for _ in values {
            let run = table.view().run(Portable, quotient);
            table.remove_at(Portable, quotient, run, run.1 - 1);
        }
    }
    assert!(fresh == *table.bytes && table.used == 0, "traces are left");
    (refused, greatest)
}

#[test]
fn every_step_keeps_every_invariant() {
    let mut refused = 0;
    for bits in [1, 2, 3, 7, 8, 9, 13, 16, 31, 33, 56, 57] {
        for quotients in [1, 2, 63, 64, 65, 200] {
            refused += walk(
                quotients,
                bits,
                6 * Shape::new(quotients, bits).slots(),
                u64::MAX,
            )
            .0;
        }
        refused += walk(300, bits, 3000, 40).0;
    }
    assert!(refused > 100, "{refused} refusals are too few to tell");
}

#[test]
fn values_within_bounds_are_found() {
    for bits in [2, 3, 5, 9, 10, 28, 29, 57] {
        let mut table = Table::new(300, bits).unwrap();
        let mut held = Model::new();
        for i in 0..280 {
            let (quotient, value) = table.view().place(mix64(i));
            insert_sorted(&mut table, quotient, value).unwrap();
            held.entry(quotient).or_default().push(value);
        }
        let most = low_mask(bits);
        for i in 0..20_000 {
            let draw = mix64(i << 8 | u64::from(bits));
            let (quotient, near) = table.view().place(mix64(draw % 290));
            let many = 1 + (draw >> 32) % (most / 2 + 1).min(17);
            // About the bounds of a value that is held, and anywhere.
            let least = match i % 3 {
                0 => near.saturating_sub((draw >> 40) % 20),
                1 => (near + 1).min(most),
                _ => draw & most,
            };
            let least = least.min(most - (many - 1));
            let run = held.get(&quotient).map_or(&[][..], Vec::as_slice);
            let expected = run.iter().any(|&v| (least..least + many).contains(&v));
            let got = table
                .view()
                .contains(Portable, quotient, Within { least, many });
            assert_eq!(got, expected, "{bits} bits, {least} and {many}");
        }
    }
}

#[test]
fn values_are_taken_out_of_a_range_of_quotients() {
    for bits in [1, 2, 7, 9, 33, 57] {
        for (quotients, skew) in [
            (1, 1),
            (65, 65),
            (200, 200),
            (500, 500),
            (700, 40),
            (700, 3),
        ] {
            for round in 0..30 {
                let mut table = Table::new(quotients, bits).unwrap();
                let mut model = Model::new();
                let seed = mix64(quotients << 32 ^ skew << 16 ^ round << 8 ^ u64::from(bits));
                for i in 0..quotients * (4 + round % 6) / 10 {
                    let draw = mix64(seed ^ i);
                    let quotient = (draw >> 8) % skew + (quotients - skew) * (round % 2);
                    let value = mix64(draw) & low_mask(bits);
                    if insert_sorted(&mut table, quotient, value).is_ok() {
                        let run = model.entry(quotient).or_default();
                        run.push(value);
                        run.sort_unstable();
                    }
                }
                let from = (seed >> 8) % quotients;
                let to = (from + (seed >> 30) % (2 * quotients)).min(quotients);
                let keep = |value: u64| (value ^ seed) % 4 < round % 4;
                table.retain(Portable, from, to, keep);
                for (_, values) in model.range_mut(from..to.max(from)) {
                    values.retain(|&value| keep(value));
                }
                model.retain(|_, values| !values.is_empty());
                agrees(&table, &model);
            }
        }
    }
}

#[test]
fn runs_of_more_than_an_offset_can_tell() {
    let (_, greatest) = walk(700, 8, 4000, 3);
    assert!(greatest > 2 * u64::from(SATURATED), "{greatest}");
}

struct Contains<'a>(View<'a>, u64, u64);

impl Op for Contains<'_> {
    type Out = bool;
    #[inline(always)]
    fn run<B: Bits>(self, bits: B) -> bool {
        self.0.contains(bits, self.1, self.2)
    }
}

#[test]
fn values_are_found_where_they_are_at_every_level() {
    for bits in [1, 2, 5, 8, 12, 28, 29, 57] {
        let mut table = Table::new(500, bits).unwrap();
        let mut held = std::collections::HashSet::new();
        for i in 0..475 {
            let (quotient, value) = table.view().place(mix64(i));
            insert_sorted(&mut table, quotient, value).unwrap();
            held.insert((quotient, value));
        }
        for i in 0..5000 {
            // Near misses: quotients and values of others.
            let (quotient, _) = table.view().place(mix64(i % 475));
            let (_, value) = table.view().place(mix64(i * 7 % 1000));
            let expected = held.contains(&(quotient, value));
            assert_eq!(
                table.view().contains(Portable, quotient, value),
                expected,
                "{bits} bits, {i}"
            );
            assert_eq!(dispatch(Contains(table.view(), quotient, value)), expected);
        }
    }
}

#[test]
fn whatever_the_bytes_are_a_lookup_ends() {
    for seed in 0..200 {
        let mut table = Table::new(300, 1 + seed as u32 % 57).unwrap();
        for (i, byte) in table.bytes.make_mut().iter_mut().enumerate() {
            let draw = mix64(seed << 32 | i as u64);
            *byte = match seed % 4 {
                0 => draw as u8,
                1 => 0xFF,
                2 => (draw & draw >> 8 & draw >> 16) as u8,
                _ => (draw | draw >> 8 | draw >> 16) as u8,
            };
        }
        for i in 0..300 {
            let (quotient, value) = table.view().place(mix64(i));
            table.view().contains(Portable, quotient, value);
        }
        assert!(table.entries().count() as u64 <= table.shape.slots());
        assert!(table.check().is_err());
    }
}

/// A file that was opened unverified may hold anything, and is changed like any other.
#[test]
fn whatever_the_bytes_are_a_change_ends() {
    for seed in 0..2000u64 {
        let (bits, quotients) = (1 + seed as u32 % 57, 1 + seed % 300);
        let mut table = Table::new(quotients, bits).unwrap();
        for (i, byte) in table.bytes.make_mut().iter_mut().enumerate() {
            let draw = mix64(seed << 32 | i as u64);
            *byte = match seed % 5 {
                0 => draw as u8,
                1 => 0xFF,
                2 => (draw & draw >> 8 & draw >> 16) as u8,
                3 => (draw | draw >> 8 | draw >> 16) as u8,
                _ => [0, 1, 64, 255][draw as usize % 4],
            };
        }
        table.used = [0, 1, quotients, u64::MAX][seed as usize / 5 % 4];
        for i in 0..100 {
            let draw = mix64(seed << 8 ^ i);
            let (quotient, value) = table.view().place(draw);
            let run = table.view().run(Portable, quotient);
            match draw % 4 {
                0 => {
                    // As filters do, which ask for room first.
                    if table.room() > 0 {
                        let _ = table.insert_at(Portable, quotient, run, run.1, value);
                    }
                }
                1 if run.0 < run.1 => table.remove_at(Portable, quotient, run, run.0),
                2 => {
                    let to = (quotient + 1 + draw % 200).min(quotients);
                    table.retain(Portable, quotient, to, |value| value & 1 == 0);
                }
                _ => _ = table.view().contains(Portable, quotient, value),
            }
        }
    }
}

#[test]
fn the_first_bits_of_a_hash_are_its_fingerprint() {
    for (quotients, bits) in [(1, 1), (3, 8), (1 << 20, 9), (12_345_678, 20), (7, 57)] {
        let table = View {
            bytes: &[],
            shape: Shape::new(quotients, bits),
        };
        for hash in (0..1000).map(mix64).chain([0, 1, u64::MAX]) {
            let (quotient, value) = table.place(hash);
            let product = u128::from(hash) * u128::from(quotients);
            let fingerprint = product >> (64 - bits);
            assert_eq!(
                u128::from(quotient) << bits | u128::from(value),
                fingerprint
            );
        }
    }
}
