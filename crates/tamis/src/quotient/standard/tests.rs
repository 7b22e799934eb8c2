use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::bits::mix64;
use crate::{Hashing, Keyed};

/// The exact multiset of fingerprints beside a filter.
struct Model {
    filter: QuotientStandard,
    held: BTreeMap<(u64, u64), u64>,
}

impl Model {
    fn new(slots: u64, bits: u32) -> Model {
        Model {
            filter: QuotientStandard::with_shape(slots, bits).unwrap(),
            held: BTreeMap::new(),
        }
    }

    fn copies(&self, fingerprint: (u64, u64)) -> u64 {
        self.held.get(&fingerprint).copied().unwrap_or(0)
    }

    fn list(&self) -> Vec<(u64, u64)> {
        let copies = self.held.iter();
        copies
            .flat_map(|(&fingerprint, &n)| std::iter::repeat_n(fingerprint, n as usize))
            .collect()
    }

    /// The table that this list makes, from the definitions of the three bits.
    fn table(&self) -> Vec<QuotientSlot> {
        let mut table = vec![QuotientSlot::default(); self.filter.end() as usize];
        let (mut next, mut run) = (0, None);
        for (quotient, remainder) in self.list() {
            let at = next.max(quotient as usize);
            table[at].remainder = remainder;
            table[at].is_shifted = at != quotient as usize;
            table[at].is_continuation = run == Some(quotient);
            table[quotient as usize].is_occupied = true;
            (next, run) = (at + 1, Some(quotient));
        }
        table
    }

    /// What an insertion of this fingerprint should answer: from the list alone, whether it
    /// would run past the end.
    fn fits(&self, fingerprint: (u64, u64)) -> Result<(), FullKind> {
        let mut list = self.list();
        list.push(fingerprint);
        list.sort_unstable();
        if self.copies(fingerprint) == TAIL {
            Err(FullKind::Duplicates(TAIL))
        } else if end(&list) > self.filter.end() || list.len() as u64 > most_keys(self.filter.slots)
        {
            Err(FullKind::Capacity)
        } else {
            Ok(())
        }
    }

    fn insert(&mut self, fingerprint: (u64, u64)) {
        let expected = self.fits(fingerprint);
        let inserted = self.filter.insert_at(fingerprint.0, fingerprint.1);
        assert_eq!(inserted.map_err(|full| full.kind()), expected);
        if expected.is_ok() {
            *self.held.entry(fingerprint).or_default() += 1;
        }
        self.agrees();
    }

    fn remove(&mut self, fingerprint: (u64, u64)) {
        let copies = self.copies(fingerprint);
        assert_eq!(
            self.filter.remove(hash(&self.filter, fingerprint)),
            copies > 0
        );
        match copies {
            0 => {}
            1 => drop(self.held.remove(&fingerprint)),
            _ => drop(self.held.insert(fingerprint, copies - 1)),
        }
        self.agrees();
    }

    /// Every invariant, every slot, every fingerprint.
    fn agrees(&self) {
        let filter = &self.filter;
        filter.check().unwrap();
        assert!(filter.table().eq(self.table()), "{:?}", self.list());
        assert!(filter.fingerprints().eq(self.list()));
        assert_eq!(filter.len, self.held.values().sum::<u64>());
        let all = filter.slots << filter.remainder_bits();
        assert_eq!(filter.fpr(), self.held.len() as f64 / all as f64);
    }

    fn counts(&self) {
        for quotient in 0..self.filter.slots {
            for remainder in 0..1 << self.filter.remainder_bits() {
                let fingerprint = (quotient, remainder);
                let hash = hash(&self.filter, fingerprint);
                let copies = self.copies(fingerprint);
                assert_eq!(self.filter.count(hash), copies);
                assert_eq!(self.filter.contains(hash), copies > 0);
            }
        }
    }
}

/// The slots that a sorted list takes, gaps included.
fn end(sorted: &[(u64, u64)]) -> u64 {
    sorted.iter().fold(0, |next, &(q, _)| next.max(q) + 1)
}

/// The least hash of a fingerprint.
fn hash(filter: &QuotientStandard, (quotient, remainder): (u64, u64)) -> u64 {
    let bits = filter.remainder_bits();
    let product = u128::from(quotient) << 64 | u128::from(remainder) << (64 - bits);
    let hash = product.div_ceil(u128::from(filter.slots)) as u64;
    assert_eq!(filter.fingerprint(hash), (quotient, remainder));
    hash
}

#[test]
fn every_step_leaves_the_table_that_the_list_makes() {
    // Few remainders, so that fingerprints collide; quotients from all homes, from a few in
    // the middle, and from the last, so that clusters run into the tail.
    for (slots, bits) in [
        (1, 1),
        (2, 1),
        (3, 2),
        (8, 3),
        (20, 1),
        (37, 2),
        (143, 1),
        (200, 3),
    ] {
        for stream in 0..6u64 {
            let mut model = Model::new(slots, bits);
            for step in 0..1500 {
                let draw = mix64(stream << 32 | slots << 20 | step);
                let homes = [slots, slots.min(3), slots.min(1 + slots / 8)][stream as usize % 3];
                let quotient = match stream {
                    0 => fastrange(draw, homes).0,
                    1 | 2 => slots / 2 - slots / 2 % homes + fastrange(draw, homes).0,
                    _ => slots - 1 - fastrange(draw, homes).0,
                };
                let quotient = quotient.min(slots - 1);
                let fingerprint = (quotient, mix64(!draw) & ((1 << bits) - 1));
                // Filled, emptied, filled to the brim.
                let inserts = [7, 3, 8, 5][step as usize / 300 % 4];
                if mix64(draw ^ 1) % 10 < inserts {
                    model.insert(fingerprint);
                } else {
                    model.remove(fingerprint);
                }
                if step % 100 == 0 {
                    model.counts();
                }
            }
            for fingerprint in model.list() {
                model.remove(fingerprint);
            }
            assert!(model.filter.table.iter().all(|field| field == 0));
        }
    }
}

#[test]
fn exactly_the_tables_that_lists_make_are_accepted() {
    // Three homes, a tail of three, one bit: six fields of four bits. All 2²⁴ tables, those
    // with more keys than are let in included.
    let mut filter = QuotientStandard::with_shape(3, 1).unwrap();
    let mut made = BTreeSet::new();
    let mut lists: Vec<Vec<(u64, u64)>> = vec![vec![]];
    while let Some(list) = lists.pop() {
        let mut model = Model::new(3, 1);
        for &fingerprint in &list {
            *model.held.entry(fingerprint).or_default() += 1;
        }
        let fields = model.table().into_iter().rev();
        made.insert(fields.fold(0, |table, slot| table << 4 | slot.pack()));
        // Longer lists in order, as long as they fit.
        for fingerprint in (0..6).map(|f| (f / 2, f % 2)) {
            let longer = [&list[..], &[fingerprint]].concat();
            if longer.is_sorted() && end(&longer) <= filter.end() {
                lists.push(longer);
            }
        }
    }
    let mut accepted = 0;
    for table in 0..1u64 << 24 {
        filter.len = 0;
        for at in 0..6 {
            let field = table >> (4 * at) & 15;
            filter.table.set(at, field);
            filter.len += u64::from(!QuotientSlot::unpack(field).is_free());
        }
        if filter.check().is_ok() {
            assert!(made.contains(&table), "{table:#x}");
            accepted += 1;
        }
    }
    assert_eq!(accepted, made.len());
}
#[test]
fn a_file_of_another_table_is_refused() {
    let config = Config::new(180).fpr(0.5);
    let opened = |filter: &QuotientStandard| {
        let file = Keyed::from_filter(filter.clone(), Hashing::default(), &config).unwrap();
        Keyed::<QuotientStandard>::open(file.to_bytes()).map_err(|e| e.to_string())
    };
    let listed = |list: &[(u64, u64)]| {
        let mut model = Model::new(200, 1);
        for &fingerprint in list {
            *model.held.entry(fingerprint).or_default() += 1;
        }
        for (at, slot) in (0..).zip(model.table()) {
            model.filter.table.set(at, slot.pack());
        }
        model.filter.len = list.len() as u64;
        model.filter
    };
    let most: Vec<_> = (0..most_keys(200)).map(|i| (i, i % 2)).collect();
    let mut filter = listed(&most);
    assert_eq!(filter.len, 190);
    assert!(opened(&filter).is_ok());
    filter.len -= 1;
    let told = opened(&filter).unwrap_err();
    assert!(told.contains("keys is 189, expected 190"), "{told}");
    let told = opened(&listed(&[&most[..], &[(199, 0)]].concat())).unwrap_err();
    assert!(told.contains("at most 190"), "{told}");
    assert!(opened(&listed(&[(199, 1); 128])).is_ok());
    let told = opened(&listed(&[(17, 1); 129])).unwrap_err();
    assert!(told.contains("129th"), "{told}");
    // Each bit of a table in turn.
    let members: Vec<_> = (0..150).map(|i| (mix64(i) % 190, i % 2)).collect();
    let filter = listed(&members);
    assert!(opened(&filter).is_ok());
    for bit in 0..filter.end() * 4 {
        let mut other = filter.clone();
        let field = other.table.get(bit / 4) ^ 1 << (bit % 4);
        other.table.set(bit / 4, field);
        // Another remainder may still be in order: the list is another one then.
        let is_list = other.fingerprints().is_sorted() && bit % 4 == 3;
        let is_free = other.slot(bit / 4).is_free();
        assert_eq!(opened(&other).is_ok(), is_list && !is_free, "bit {bit}");
    }
}

#[test]
fn the_129th_copy_is_refused_wherever_its_home_is() {
    for quotient in [0, 71, 141, 142] {
        let mut filter = QuotientStandard::with_shape(143, 7).unwrap();
        let key = hash(&filter, (quotient, 5));
        for copies in 1..=128 {
            filter.insert(key).unwrap();
            assert_eq!(filter.count(key), copies);
        }
        let before: Vec<u64> = filter.table.iter().collect();
        let full = filter.insert(key).unwrap_err();
        assert_eq!((full.kind(), full.keys()), (FullKind::Duplicates(128), 128));
        assert!(filter.table.iter().eq(before));
        assert_eq!(filter.fpr(), 1.0 / (143.0 * 128.0));
        assert!((0..128).all(|_| filter.remove(key)) && !filter.remove(key));
        assert!(filter.table.iter().all(|field| field == 0));
    }
}

#[test]
fn what_runs_past_the_tail_is_refused_built_or_inserted() {
    let config = Config::new(900).set("bits", 8);
    let empty = QuotientStandard::build(&config, &mut []).unwrap();
    // The last home and the tail are 129 slots.
    let last: Vec<u64> = (0..130).map(|i| hash(&empty, (999, i))).collect();
    let copies = vec![hash(&empty, (3, 7)); 129];
    for (hashes, why) in [
        (last, FullKind::Capacity),
        (copies, FullKind::Duplicates(128)),
    ] {
        let most = hashes.len() - 1;
        let mut inserted = empty.clone();
        inserted.insert_batch(&hashes[..most]).unwrap();
        let refused = inserted.insert(hashes[most]).unwrap_err();
        assert_eq!((refused.kind(), refused.keys()), (why, most as u64));
        let mut built = QuotientStandard::build(&config, &mut hashes[..most].to_vec()).unwrap();
        assert!(built.table.iter().eq(inserted.table.iter()));
        let error = QuotientStandard::build(&config, &mut hashes.clone()).unwrap_err();
        assert_eq!(error.kind(), &BuildErrorKind::Full(refused));
        let one = QuotientStandard::build(&config, &mut hashes[most..].to_vec()).unwrap();
        let error = built.merge(&one).unwrap_err();
        assert_eq!(error.kind(), &MergeErrorKind::Full(refused));
        assert!(built.table.iter().eq(inserted.table.iter()) && built.len == most as u64);
    }
}

#[test]
fn a_half_is_the_filter_of_half_the_slots() {
    for (slots, bits) in [(2, 1), (20, 1), (1000, 7), (4444, 32)] {
        let mut whole = QuotientStandard::with_shape(slots, bits).unwrap();
        let mut half = QuotientStandard::with_shape(slots / 2, bits).unwrap();
        for i in 0..most_keys(slots / 2) {
            whole.insert(mix64(slots << 32 | i)).unwrap();
            half.insert(mix64(slots << 32 | i)).unwrap();
        }
        let halved = whole.halve().unwrap();
        halved.check().unwrap();
        assert!(halved.table.iter().eq(half.table.iter()) && halved.len == half.len);
        // One key more does not fit.
        whole.insert(mix64(slots)).unwrap();
        let refused = whole.halve().unwrap_err();
        assert!(
            matches!(refused.kind(), BuildErrorKind::Full(_)),
            "{refused}"
        );
    }
    let odd = QuotientStandard::with_shape(3, 1).unwrap().halve();
    assert!(odd.unwrap_err().to_string().contains("even number"));
}

#[test]
fn size_and_rate_are_those_of_the_formula() {
    // spec: 8 bits at a load of 0.9 take 12.22 bits a key and err in 0.351 % of cases.
    let n = 1_000_000;
    let mut hashes: Vec<u64> = (0..n).map(mix64).collect();
    let filter = QuotientStandard::build(&Config::new(n).fpr(0.0036), &mut hashes).unwrap();
    assert_eq!(filter.remainder_bits(), 8);
    let bits_per_key = filter.size_in_bytes() as f64 * 8.0 / n as f64;
    let formula = math::quotient_bits_per_key(0.9, 8, 3.0);
    assert!(
        (bits_per_key / formula - 1.0).abs() < 0.0002,
        "{bits_per_key}"
    );
    let formula = math::quotient_fpr(0.9, 8);
    assert!(
        (filter.fpr() / formula - 1.0).abs() < 0.001,
        "{}",
        filter.fpr()
    );

    let queries = 5_000_000;
    let hits = (0..queries).filter(|q| filter.contains(mix64(1 << 40 | q)));
    let hits = hits.count() as u64;
    let (low, high) = math::binomial_interval(queries, formula, 1e-9);
    assert!(
        (low..=high).contains(&hits),
        "{hits}, {low} to {high} expected"
    );
}

#[test]
fn the_tail_is_used_no_more_often_than_the_bound_says() {
    // How far fingerprints run past the last home, at capacity.
    let (filters, keys) = (20_000, 900);
    let mut used = [0u64; TAIL as usize];
    for f in 0..filters {
        let mut hashes: Vec<u64> = (0..keys).map(|i| mix64(f << 32 | i)).collect();
        let filter = QuotientStandard::build(&Config::new(keys), &mut hashes).unwrap();
        assert_eq!(filter.slots, 1000);
        let tail = filter.table().skip(1000).take_while(|slot| !slot.is_free());
        for beyond in &mut used[..tail.count()] {
            *beyond += 1;
        }
    }
    for beyond in [1, 2, 4, 8, 16, 32, 64] {
        let bound = math::quotient_overflow(LOAD, beyond);
        let (_, most) = math::binomial_interval(filters, bound, 1e-9);
        let measured = used[beyond as usize - 1];
        assert!(
            measured <= most,
            "{measured} beyond {beyond}, at most {most}"
        );
    }
    assert!(used[15] > 0, "the tail is used");
}

#[test]
fn walks_grow_with_the_load_as_the_essay_says() {
    let slots = 1_000_000;
    for (load, walked) in [(0.5, 0.5), (0.75, 5.4), (0.9, 51.0), (0.95, 221.0)] {
        let mut hashes: Vec<u64> = (0..(slots as f64 * load) as u64).map(mix64).collect();
        hashes.sort_unstable();
        let mut filter = QuotientStandard::with_shape(slots, 7).unwrap();
        filter
            .fill(hashes.iter().map(|&hash| split(hash, slots, 7)))
            .unwrap();
        // Of an absent key, from its home back to where the cluster begins, and on to its run.
        let queries = 100_000;
        let steps = (0..queries).map(|i| {
            let (quotient, _) = filter.fingerprint(mix64(1 << 40 | i));
            if !filter.slot(quotient).is_occupied {
                return 0;
            }
            let mut shifted = (0..=quotient).rev();
            let cluster = shifted.find(|&at| !filter.slot(at).is_shifted).unwrap();
            (quotient - cluster) + (filter.run(quotient).start - cluster)
        });
        let mean = steps.sum::<u64>() as f64 / queries as f64;
        assert!((mean / walked - 1.0).abs() < 0.02, "{mean} at {load}");
    }
}
