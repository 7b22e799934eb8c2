use super::*;
use crate::bits::mix64;

#[test]
fn bits_are_put_in_and_taken_out_at_any_place() {
    for bits in [1u32, 2, 7, 8, 13, 31, 32] {
        let width = u64::from(bits);
        let mut words = [0u64; 24];
        let mut model: Vec<u64> = Vec::new();
        for step in 0..3000u64 {
            let draw = mix64(step << 8 | width);
            let used = model.len() as u64;
            let room = 24 * 64 / width - 1;
            if used < room && (used == 0 || draw % 100 < 55) {
                let at = draw / 100 % (used + 1);
                let value = mix64(draw) & low_mask(bits);
                open(&mut words, at * width, bits, value, used * width);
                model.insert(at as usize, value);
            } else {
                let at = draw / 100 % used;
                close(&mut words, at * width, bits, used * width);
                model.remove(at as usize);
            }
            let end = model.len() as u64;
            assert!((0..end).all(|i| read(&words, i * width, bits) == model[i as usize]));
            assert!(zero_from(&words, end * width), "{bits} bits, step {step}");
        }
    }
}

#[test]
fn a_bank_is_the_table_of_chains_that_it_stands_for() {
    for (buckets, bits) in [(1, 1), (3, 3), (5, 8)] {
        let shape = Shape {
            buckets,
            slots: 70 * buckets,
            bits,
        };
        let mut bank = vec![0; shape.words()];
        let mut model = vec![Vec::new(); (buckets * CHAINS) as usize];
        let mut held = 0;
        for step in 0..20_000u64 {
            let draw = mix64(step << 8 | buckets);
            let (bucket, chain) = (draw % buckets, draw >> 8 & draw >> 16 & 63);
            let item = draw >> 40 & low_mask(bits);
            let list = &mut model[(bucket * CHAINS + chain) as usize];
            if draw >> 56 < 140 {
                let inserted = shape.insert(&mut bank, bucket, chain, item);
                assert_eq!(inserted.is_some(), held < shape.slots);
                if inserted.is_some() {
                    list.push(item);
                    held += 1;
                }
            } else {
                let at = list.iter().position(|&other| other == item);
                let removed = shape.remove(&mut bank, bucket, chain, item);
                assert_eq!(removed.is_some(), at.is_some());
                if let Some(at) = at {
                    list.swap_remove(at);
                    held -= 1;
                }
            }
            assert_eq!(shape.fault(&bank), None, "step {step}");
            if step % 100 == 0 {
                let all = (0..).zip(&model).flat_map(|(i, list)| {
                    list.iter().map(move |&item| (i / CHAINS, i % CHAINS, item))
                });
                assert!(shape.all(&bank).eq(all), "step {step}");
            }
        }
    }
}

#[test]
fn size_and_rate_are_those_of_the_formula() {
    // spec: 8 bits, at most 11.5 bits/key with all slack, 0.390 %.
    let n = 1_000_000;
    let mut hashes: Vec<u64> = (0..n).map(mix64).collect();
    let filter = RankIndexed::build(&Config::new(n).fpr(1.0 / 256.0), &mut hashes).unwrap();
    assert_eq!(filter.fingerprint_bits(), 8);
    let bits_per_key = filter.size_in_bytes() as f64 * 8.0 / n as f64;
    assert!((11.0..11.2).contains(&bits_per_key), "{bits_per_key}");
    let chain_load = n as f64 / filter.chains() as f64;
    assert!((0.99..=1.0).contains(&chain_load));
    let formula = math::chain_fpr(chain_load, 8);
    assert!((formula / 0.0039 - 1.0).abs() < 0.03);
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
fn whole_fingerprints_are_those_of_the_hashes() {
    for (keys, bits) in [(1, 1), (700, 9), (10_000, 12)] {
        let mut filter = RankIndexed::with_bits(keys, bits).unwrap();
        let hashes: Vec<u64> = (0..keys).map(mix64).collect();
        filter.insert_batch(&hashes).unwrap();
        let of = |&hash: &u64| whole_fingerprint(hash, filter.chains(), bits);
        let mut expected: Vec<u64> = hashes.iter().map(of).collect();
        let mut got: Vec<u64> = filter.whole_fingerprints().collect();
        expected.sort_unstable();
        got.sort_unstable();
        assert_eq!(got, expected);
        assert!(got.iter().all(|&whole| whole >> bits < filter.chains()));
        got.dedup();
        assert_eq!(filter.distinct(), got.len() as u64);
    }
}

#[test]
fn no_key_is_refused_before_the_capacity() {
    // Banks of many filters, filled one by one: a refusal is allowed once in a million filters.
    for (keys, filters) in [
        (1u64, 100u64),
        (4096, 30),
        (4097, 100),
        (10_000, 60),
        (50_000, 10),
    ] {
        for f in 0..filters {
            let mut filter = RankIndexed::build(&Config::new(keys), &mut []).unwrap();
            for i in 0..keys {
                assert!(
                    filter.insert(mix64(f << 40 | i)).is_ok(),
                    "{i} of {keys} keys"
                );
            }
        }
    }
}

#[test]
fn banks_that_no_insertion_makes_are_refused() {
    let mut hashes: Vec<u64> = (0..300).map(mix64).collect();
    let filter = RankIndexed::build(&Config::new(310).fpr(0.01), &mut hashes).unwrap();
    let (shape, bank) = (filter.shape, filter.bank(0));
    assert_eq!(shape.fault(bank), None);
    // A bit of the index, the ends or the marks does not go unnoticed, nor one of an item that is
    // not there.
    let items = shape.items_at() as u64 * 64;
    let used = items + 300 * u64::from(shape.bits);
    for bit in (0..items).chain(used..shape.words() as u64 * 64) {
        let mut flipped = bank.to_vec();
        flipped[(bit / 64) as usize] ^= 1 << (bit % 64);
        assert!(shape.fault(&flipped).is_some(), "bit {bit}");
    }
}
