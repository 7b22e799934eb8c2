//! Laws 5 and 6: absent keys are found as often as `fpr()` says, and no more often than was
//! asked, whatever the keys look like.

use tamis::testing::math;
use tamis::{AnyFilter, Config, Filter, Hashing, Keyed, KindInfo};

use crate::rates_of;
use crate::support::{assert_holds, config, hash, hashes, hits, must, times, tried};

/// One honest run in 10⁹ falls outside, on each side.
const ALPHA: f64 = 1e-9;

/// Hits of several filters, against the sum of what each said of itself.
#[derive(Default)]
pub(crate) struct Tally {
    queries: u64,
    hits: u64,
    expected: f64,
}

impl Tally {
    pub(crate) fn add(&mut self, fpr: f64, queries: u64, hits: u64) {
        assert!((0.0..=1.0).contains(&fpr), "fpr() is {fpr}");
        self.queries += queries;
        self.hits += hits;
        self.expected += fpr * queries as f64;
    }

    /// A sum over filters of different rates varies less than one at their mean, so the interval
    /// holds for it.
    #[track_caller]
    pub(crate) fn check(&self, what: &str) {
        let rate = self.expected / self.queries as f64;
        let (low, high) = math::binomial_interval(self.queries, rate, ALPHA);
        assert!(
            (low..=high).contains(&self.hits),
            "{what}: {} hits in {} at a stated rate of {rate:.3e}; {low} to {high} are in order",
            self.hits,
            self.queries
        );
    }

    #[track_caller]
    fn check_at_most(&self, asked: f64, what: &str) {
        let (_, high) = math::binomial_interval(self.queries, asked, ALPHA);
        assert!(
            self.hits <= high,
            "{what}: {} hits in {} where {asked} was asked for; {high} is the most",
            self.hits,
            self.queries
        );
    }
}

/// Small filters differ from one another, so there many are asked a little each; large ones are
/// alike.
const CELLS: [(u64, u64, u64); 6] = [
    // keys, filters, queries of each
    (1, 2000, 500),
    (10, 2000, 500),
    (100, 1000, 1000),
    (1000, 200, 10_000),
    (100_000, 10, 500_000),
    // Here 32 bits of a hash are few: a filter that uses some of them twice has a rate above its
    // own.
    (1_000_000, 2, 2_000_000),
];

pub(crate) fn measured_rate(info: &'static KindInfo) {
    for (n, filters, queries) in CELLS {
        if tried([n]).next().is_none() {
            continue;
        }
        for config in rates_of(info, n) {
            let mut tally = Tally::default();
            for f in 0..times(filters) {
                let stream = 1000 + 2 * f;
                let members: Vec<u64> = (0..n).map(|i| hash(stream, i)).collect();
                let keyed = must(info, &config, &members);
                let filter = keyed.filter();
                tally.add(filter.fpr(), queries, hits(filter, stream + 1, queries));
            }
            tally.check(&config.to_string());
            tally.check_at_most(config.fpr, &config.to_string());
        }
    }
    part_full_and_overfull(info);
}

/// Keys that were asked for, filters, and queries of each.
const LOADS: [(u64, u64, u64); 3] = [(30, 500, 2000), (300, 200, 5000), (20_000, 10, 100_000)];

/// `fpr()` speaks of the present load, not of the one asked for; also of a window that moved on.
fn part_full_and_overfull(info: &KindInfo) {
    for (n, filters, queries) in LOADS {
        if tried([n]).next().is_none() {
            continue;
        }
        let config = config(info, n);
        for percent in [5, 30, 60, 150, 300] {
            let mut tally = Tally::default();
            for f in 0..times(filters) {
                let stream = 20_000 + 2 * f;
                let mut filter = must(info, &config, &[]).filter().clone();
                let Some(insert) = filter.as_insert() else {
                    return;
                };
                for i in 0..n * percent / 100 {
                    // A kind that is full before that stays so, and its rate must still be right.
                    if insert.insert(hash(stream, i)).is_err() {
                        break;
                    }
                }
                tally.add(filter.fpr(), queries, hits(&filter, stream + 1, queries));
            }
            tally.check(&format!("{config}, {percent} % of its keys"));
        }
    }
}

/// A numbering of byte strings, without repeats.
type Family = fn(u64) -> Vec<u8>;

/// Keys as people have them.
const FAMILIES: [(&str, Family); 18] = [
    ("little-endian u64", |i| i.to_le_bytes().into()),
    ("big-endian u64", |i| i.to_be_bytes().into()),
    ("little-endian u32", |i| (i as u32).to_le_bytes().into()),
    ("big-endian u32", |i| (i as u32).to_be_bytes().into()),
    ("even numbers", |i| (2 * i).to_le_bytes().into()),
    ("stride 2^8", |i| (i << 8).to_le_bytes().into()),
    ("stride 2^16", |i| (i << 16).to_le_bytes().into()),
    ("stride 2^32", |i| (i << 32).to_le_bytes().into()),
    ("stride 2^44", |i| (i << 44).to_le_bytes().into()),
    ("one bit", one_bit),
    ("decimals", |i| i.to_string().into()),
    ("padded decimals", |i| format!("user:{i:012}").into()),
    ("1 KiB prefix", |i| {
        [&[b'p'; 1024][..], i.to_string().as_bytes()].concat()
    }),
    ("1 KiB suffix", |i| {
        [i.to_string().as_bytes(), &[b's'; 1024][..]].concat()
    }),
    ("random UUIDs", |i| {
        let (a, b) = (hash(60, i), hash(61, i));
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            a >> 32,
            a >> 16 & 0xFFFF,
            a & 0xFFF,
            b >> 48 & 0x3FFF | 0x8000,
            b & 0xFFFF_FFFF_FFFF
        )
        .into()
    }),
    ("timed UUIDs", |i| {
        ((0x0190_u128 << 112) + (u128::from(i) << 80) + (7 << 76))
            .to_be_bytes()
            .into()
    }),
    ("IPv4", |i| (0x0A00_0000 + i as u32).to_be_bytes().into()),
    ("f64 bits", |i| {
        (i as f64 / 8.0).to_bits().to_le_bytes().into()
    }),
];

/// Strings of 1 to 1000 bytes in which one bit is set: by length, then by bit, a few of each.
fn one_bit(i: u64) -> Vec<u8> {
    // Of a string of `len` bytes 8·len bits can be set; taking len in order numbers them all.
    let mut rest = i;
    let mut len = 1;
    while rest >= 8 * len {
        rest -= 8 * len;
        len += 1;
    }
    let mut key = vec![0; len as usize];
    key[(rest / 8) as usize] = 1 << (rest % 8);
    key
}

pub(crate) fn structured_keys(info: &'static KindInfo) {
    let hashings = [
        Hashing::fast(0),
        Hashing::fast(7),
        Hashing::secret(*b"sixteen bytes of"),
    ];
    for (family, key) in FAMILIES {
        // Long keys cost their length; fewer of them.
        let (n, queries) = if key(40_000).len() > 100 {
            (3000, 20_000)
        } else {
            (10_000, 100_000)
        };
        let (n, queries) = (times(n), times(queries));
        let config = config(info, n + 1).kind(info.name);
        for hashing in hashings {
            let what = format!("{family}, {hashing:?}");
            let members = (0..n).map(key).chain([Vec::new()]);
            let keyed: Keyed<AnyFilter> =
                Keyed::build_with(&config, hashing, members.clone()).unwrap();
            for (i, member) in members.enumerate() {
                assert!(keyed.contains(&member), "{what}: key {i} is denied");
            }
            assert!(keyed.contains(""), "{what}: the empty key is denied");
            let mut tally = Tally::default();
            let found = (n..n + queries).filter(|&i| keyed.contains(&key(i)));
            tally.add(keyed.filter().fpr(), queries, found.count() as u64);
            tally.check(&what);
            tally.check_at_most(config.fpr, &what);
        }
    }
    integers_as_keys(info);
}

/// Integers through their own types: one key whatever the width, and obeying the rate.
fn integers_as_keys(info: &KindInfo) {
    let config: Config = config(info, 10_000).kind(info.name);
    let keyed: Keyed<AnyFilter> = Keyed::build(&config, -5_000..5_000i32).unwrap();
    assert!((-5_000..5_000i64).all(|i| keyed.contains(&i)));
    assert!((0..5_000u16).all(|i| keyed.contains(&i)));
    let mut tally = Tally::default();
    let found = (5_000..205_000u64).filter(|i| keyed.contains(i)).count();
    tally.add(keyed.filter().fpr(), 200_000, found as u64);
    tally.check("integers");
    assert_holds(
        keyed.filter(),
        &(0..100u8).map(|i| keyed.hash(&i)).collect::<Vec<_>>(),
        "hashes of the key layer",
    );
}

/// Numbers that are no hashes at all: a kind that is built once mixes what it is given.
pub(crate) fn numbers_as_hashes(info: &'static KindInfo) {
    let n = 20_000;
    let config = config(info, n);
    let hashed = must(info, &config, &hashes(1, n));
    for shift in [0, 16, 40, 47] {
        let what = format!("numbers times 2^{shift}");
        let members: Vec<u64> = (0..n).map(|i| i << shift).collect();
        let filter = must(info, &config, &members);
        let filter = filter.filter();
        assert_holds(filter, &members, &what);
        let (size, usual) = (filter.size_in_bytes(), hashed.filter().size_in_bytes());
        assert!(size <= usual + usual / 20, "{what}: {size}, not {usual}");
        // Those between and after the members.
        let absent = (0..100_000).map(|i| match shift {
            0 => n + i,
            _ => i << (shift - 1) | 1,
        });
        let mut tally = Tally::default();
        let found = absent.filter(|&hash| filter.contains(hash)).count() as u64;
        tally.add(filter.fpr(), 100_000, found);
        tally.check(&what);
    }
}
