//! What TinySet promises, on whole filters: sizes and rates as published, churn, overload, files.
#![allow(
    clippy::unwrap_used,
    reason = "helpers outside `#[test]` functions are tests too"
)]

use tamis::testing::math::binomial_interval;
use tamis::{
    Bloom, Config, Cuckoo, Filter, Hashing, Insert, Keyed, Kind, Open, RankIndexed, Remove,
    TinySet, TinySetRemovable,
};

fn mix(i: u64) -> u64 {
    let mut x = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

fn empty<F: Kind>(config: &Config) -> F {
    F::build(config, &mut []).unwrap()
}

/// The share of hashes never inserted that a filter says yes to; it must be one that `fpr()`
/// explains.
///
/// So many are looked up that about `hits` are found. Where `fpr()` is right, the share is within
/// t of it but for chance beyond t·√hits standard deviations; a law that is off by 2t would be
/// seen with the same certainty.
fn measured(filter: &impl Filter, hits: u64, what: &str) -> f64 {
    let lookups = (hits as f64 / filter.fpr()).ceil() as u64;
    let (mut hashes, mut out) = (vec![0; 1 << 14], vec![false; 1 << 14]);
    let (mut done, mut found) = (0, 0);
    while done < lookups {
        let now = (lookups - done).min(1 << 14);
        let (hashes, out) = (&mut hashes[..now as usize], &mut out[..now as usize]);
        for (i, hash) in (done..).zip(&mut *hashes) {
            *hash = mix(i | 1 << 50);
        }
        filter.contains_batch(hashes, out);
        found += out.iter().map(|&yes| u64::from(yes)).sum::<u64>();
        done += now;
    }
    let (low, high) = binomial_interval(lookups, filter.fpr(), 1e-9);
    let stated = filter.fpr();
    assert!(
        (low..=high).contains(&found),
        "{what}: {found} of {lookups}, {stated} stated"
    );
    found as f64 / lookups as f64
}

fn assert_near(got: f64, expected: f64, tolerance: f64, what: &str) {
    assert!(
        (got / expected - 1.0).abs() <= tolerance,
        "{what}: {got}, expected {expected}"
    );
}

#[test]
fn a_million_keys_take_the_stated_bits_at_the_stated_rate() {
    let n = 1_000_000;
    for (fpr, bits) in [
        (0.01, 9.0),
        (2f64.powi(-8), 10.5),
        (0.001, 12.9),
        (0.0001, 17.3),
    ] {
        let mut hashes: Vec<u64> = (0..n).map(mix).collect();
        let filter = TinySet::build(&Config::new(n).fpr(fpr), &mut hashes).unwrap();
        let got = 8.0 * filter.size_in_bytes() as f64 / n as f64;
        assert!(got <= bits, "{got} bits a key at {fpr}");
        assert_near(filter.fpr(), fpr, 0.05, "rate");
        // 5 % are 3.5 standard deviations of 5,000 hits.
        assert_near(measured(&filter, 5000, "bulk"), fpr, 0.05, "measured rate");
        assert!(hashes.iter().all(|&hash| filter.contains(hash)));
    }
}

#[test]
fn the_published_loads_give_the_corrected_rates() {
    for (block, chains, load, percent) in [
        (64, 80, 0.70, 0.865),
        (64, 64, 0.87, 0.871),
        (64, 64, 0.61, 0.0846),
        (64, 64, 0.45, 0.0077),
        (32, 32, 0.84, 0.877),
        (32, 32, 0.57, 0.0850),
        (32, 32, 0.41, 0.0086),
    ] {
        let config = Config::new(1_000_000)
            .set("block", block)
            .set("chains", chains);
        let mut filter: TinySet = empty(&config);
        let hashes: Vec<u64> = (0..2_000_000).map(mix).collect();
        let blocks = filter.size_in_bytes() as f64 / f64::from(block);
        let keys = (load * f64::from(chains) * blocks) as usize;
        filter.insert_batch(&hashes[..keys]).unwrap();
        assert_near(filter.load_factor(), load, 0.001, "load");
        let what = format!("{block} bytes, {chains} chains, load {load}");
        assert_near(100.0 * filter.fpr(), percent, 0.05, &what);
        // 5 % are 3 standard deviations of 3,600 hits.
        assert_near(100.0 * measured(&filter, 3600, &what), percent, 0.05, &what);
    }
}

/// Bytes of filters for two million keys at a rate: TinySet, Bloom, cuckoo.
fn sizes(fpr: f64) -> [usize; 3] {
    let config = Config::new(2_000_000).fpr(fpr);
    [
        empty::<TinySet>(&config).size_in_bytes(),
        empty::<Bloom>(&config).size_in_bytes(),
        empty::<Cuckoo>(&config).size_in_bytes(),
    ]
}

#[test]
fn it_is_smaller_than_bloom_below_3_percent_and_than_cuckoo_above_a_hundredth() {
    let [tinyset, bloom, _] = sizes(0.03);
    assert!(bloom < tinyset);
    let mut fpr = 0.028;
    while fpr >= 2f64.powi(-13) {
        let [tinyset, bloom, cuckoo] = sizes(fpr);
        assert!(tinyset < bloom && tinyset < cuckoo, "{fpr}");
        fpr *= 0.98;
    }
    for bits in [14, 15, 16, 18, 20] {
        let [tinyset, _, cuckoo] = sizes(2f64.powi(-bits));
        assert!(cuckoo < tinyset, "2^-{bits}");
    }
    for fpr in [0.01, 2f64.powi(-8), 0.001] {
        let ranks: RankIndexed = empty(&Config::new(2_000_000).fpr(fpr));
        assert!(sizes(fpr)[0] < ranks.size_in_bytes(), "{fpr}");
    }
    // The table of the essay.
    for (fpr, bits) in [
        (0.05, [6.58, 8.42]),
        (0.01, [8.98, 10.53]),
        (2f64.powi(-8), [10.48, 11.58]),
        (0.001, [12.82, 13.69]),
        (0.0001, [17.22, 17.90]),
        (2f64.powi(-16), [21.33, 20.00]),
    ] {
        let [tinyset, _, cuckoo] = sizes(fpr).map(|bytes| bytes as f64 / 250_000.0);
        assert!((tinyset - bits[0]).abs() < 0.01, "{tinyset} at {fpr}");
        assert!((cuckoo - bits[1]).abs() < 0.01, "{cuckoo} at {fpr}");
    }
}

/// A filter of 2,000 blocks with a mean load, and the keys in it.
struct Churn {
    filter: TinySetRemovable,
    members: Vec<u64>,
    drawn: u64,
}

impl Churn {
    fn at(mean: u64) -> Churn {
        let filter: TinySetRemovable = empty(&Config::new(113_500));
        let blocks = filter.size_in_bytes() as u64 / 64;
        assert!((1990..2010).contains(&blocks), "{blocks} blocks");
        let mut churn = Churn {
            filter,
            members: Vec::new(),
            drawn: 0,
        };
        for _ in 0..mean * blocks {
            churn.add();
        }
        churn
    }

    fn add(&mut self) {
        let hash = mix(self.drawn);
        self.drawn += 1;
        self.filter.insert(hash).unwrap();
        self.members.push(hash);
    }

    /// Replaces random members until as many were as a percentage of all.
    fn replace_to(&mut self, percent: u64) {
        let held = self.members.len() as u64;
        while self.drawn < held + held * percent / 100 {
            let victim = (mix(!self.drawn) % held) as usize;
            assert!(self.filter.remove(self.members.swap_remove(victim)));
            self.add();
        }
    }
}

#[test]
fn free_slots_grow_with_replacement_as_published() {
    let mut churn = Churn::at(40);
    for (replaced, percent) in [(50, 11.1), (100, 15.6), (1000, 35.7)] {
        churn.replace_to(replaced);
        let filter = &churn.filter;
        assert_eq!(filter.len(), churn.members.len() as u64);
        let free = 100.0 * (filter.logical_len() as f64 / filter.len() as f64 - 1.0);
        assert!(
            (free - percent).abs() < 1.0,
            "{free} % free at {replaced} %"
        );
        assert!(churn.members.iter().all(|&hash| filter.contains(hash)));
    }
}

#[test]
fn the_rate_grows_with_replacement_as_computed() {
    for (mean, rates) in [
        (40, [0.104, 0.183, 0.227, 0.306]),
        (56, [0.92, 1.37, 1.57, 1.98]),
    ] {
        let mut churn = Churn::at(mean);
        for (replaced, percent) in [0, 50, 100, 300].into_iter().zip(rates) {
            churn.replace_to(replaced);
            let what = format!("mean {mean}, {replaced} % replaced");
            assert_near(100.0 * churn.filter.fpr(), percent, 0.07, &what);
            // 3 % are 4.2 standard deviations of 20,000 hits.
            let got = measured(&churn.filter, 20_000, &what);
            assert_near(got, churn.filter.fpr(), 0.03, &what);
        }
    }
}

#[test]
fn millions_of_additions_and_removals_lose_no_member_even_in_overload() {
    let mut operations = 0;
    for block in [32, 64, 128] {
        let config = Config::new(1000).fpr(0.02).set("block", block);
        let mut filter: TinySetRemovable = empty(&config);
        let mut members: Vec<u64> = Vec::new();
        let (mut draw, mut refused) = (0, 0);
        // Loads from empty to where some blocks are full, and back, again and again.
        let room = filter.size_in_bytes() * 7;
        let waves = [room, room / 8, room / 40, room, room / 3];
        for wave in waves.into_iter().cycle().take(11 * waves.len()) {
            for growing in [true, false] {
                for _ in 0..wave * 2 {
                    draw += 1;
                    let x = mix(draw);
                    if (x % 8 < 6) == growing || members.is_empty() {
                        // One in eight is a copy.
                        let hash = match x >> 8 & 7 {
                            0 if !members.is_empty() => members[x as usize / 4096 % members.len()],
                            _ => mix(!draw),
                        };
                        match filter.insert(hash) {
                            Ok(()) => members.push(hash),
                            Err(full) => {
                                refused += 1;
                                assert_eq!(full.keys(), filter.len());
                            }
                        }
                    } else {
                        let hash = members.swap_remove(x as usize / 4096 % members.len());
                        assert!(filter.remove(hash), "a member is found");
                    }
                    // Each operation changes one block, of some thirty: eight members now, all of
                    // them now and then.
                    let some = members.len().min(8);
                    let from = mix(x) as usize % (members.len() - some + 1);
                    let mut checked = &members[from..from + some];
                    if draw % 1024 == 0 {
                        checked = &members;
                    }
                    assert!(checked.iter().all(|&hash| filter.contains(hash)));
                }
            }
        }
        operations += draw;
        assert_eq!(filter.len(), members.len() as u64);
        assert!(refused > 100, "{block}: overload was meant");
        for hash in members {
            assert!(filter.contains(hash) && filter.remove(hash));
        }
        assert_eq!(bytes(&filter), bytes(&empty::<TinySetRemovable>(&config)));
    }
    assert!(operations > 2_000_000, "{operations}");
}

fn bytes<F: Kind>(filter: &F) -> Vec<u8> {
    let keyed = Keyed::from_filter(filter.clone(), Hashing::default(), &Config::default()).unwrap();
    let mut out = Vec::new();
    keyed.write_to(&mut out).unwrap();
    out
}

#[test]
fn a_file_with_any_bit_changed_is_refused_or_is_another_filter() {
    for block in [32, 64, 128] {
        let config = Config::new(100).set("block", block);
        let mut filter: TinySetRemovable = empty(&config);
        for i in 0..150 {
            filter.insert(mix(i)).unwrap();
        }
        for i in 0..40 {
            assert!(filter.remove(mix(i)));
        }
        let file = bytes(&filter);
        let (mut refused, mut read) = (0, 0);
        // What comes before the parameters is the envelope, the same for all kinds.
        for bit in 96 * 8..file.len() * 8 {
            let mut changed = file.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            tamis::testing::repair_checksums(&mut changed);
            match Open::new().read::<TinySetRemovable>(&changed[..]) {
                Ok(keyed) => {
                    read += 1;
                    let mut again = Vec::new();
                    keyed.write_to(&mut again).unwrap();
                    assert_eq!(again, changed, "bit {bit}");
                    let mut filter = keyed.filter().clone();
                    for i in 0..100 {
                        let held = filter.contains(mix(i));
                        assert_eq!(filter.remove(mix(i)), held, "bit {bit}");
                        let _ = filter.insert(mix(i));
                    }
                    assert!((0.0..=1.0).contains(&filter.fpr()));
                }
                Err(_) => refused += 1,
            }
        }
        assert!(refused > 50 && read > 50, "{refused} refused, {read} read");
    }
}
