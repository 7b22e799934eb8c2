//! Filters against what theory and the documentation say of them, at sizes where a wrong step
//! shows. With `TAMIS_LONG` set, at the sizes that take minutes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::io::Write as _;
use std::path::Path;

use support::counting::{Counting, peak_of};
use support::{assert_holds, bytes, config, hash, hashes, hits, must, reaches};
use tamis::testing::{force_portable, math, repair_checksums};
use tamis::{AnyFilter, Bloom, Config, Filter, KINDS, Keyed, KindInfo, Mapped, Open};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Any = Keyed<AnyFilter>;

/// The size of a test: what takes seconds, or what takes minutes where those are asked for.
fn long_or<T>(long: T, short: T) -> T {
    if std::env::var_os("TAMIS_LONG").is_some() {
        long
    } else {
        short
    }
}

/// A Bloom filter of integers, by the public way from key to bit.
fn bloom(config: &Config, keys: u64) -> Keyed<Bloom> {
    let mut filter = Keyed::<Bloom>::new(config).unwrap();
    (0..keys).for_each(|key| filter.insert(&key).unwrap());
    filter
}

#[test]
fn as_many_bits_are_set_as_balls_fill_bins() {
    for (capacity, fpr) in [
        (1000, 0.5),
        (1000, 1e-6),
        (100_000, 0.01),
        (long_or(10_000_000, 1_000_000), 0.01),
    ] {
        for part in [0.1, 0.5, 1.0, 2.0] {
            let keys = (capacity as f64 * part) as u64;
            let filter = bloom(&Config::new(capacity).fpr(fpr), keys);
            let (bits, k) = (
                filter.filter().bits() as f64,
                f64::from(filter.filter().k()),
            );
            let full = 1.0 - (-k * keys as f64 / bits).exp();
            let (ones, expected) = (filter.filter().ones() as f64, bits * full);
            let allowed = 6.0 * (bits * full * (1.0 - full)).sqrt();
            assert!(
                (ones - expected).abs() <= allowed,
                "{keys} keys in {capacity} at {fpr}: {ones} bits are set, {expected} ± {allowed} expected"
            );
        }
    }
}

/// Bits that depend on each other can be described by fewer.
#[test]
fn the_body_of_a_bloom_filter_does_not_compress() {
    let config = Config::new(1_000_000).fpr(0.01);
    // Half of the bits are set when so many of the keys are in.
    let filter = bloom(&config, 950_000);
    let fill = filter.filter().ones() as f64 / filter.filter().bits() as f64;
    assert!((fill - 0.5).abs() <= 0.01, "{fill}");
    let file = filter.to_bytes();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&file).unwrap();
    let (whole, packed) = (file.len(), packed.finish().unwrap().len());
    assert!(
        packed as f64 >= 0.995 * whole as f64,
        "{whole} bytes are {packed} by gzip"
    );
}

/// Where 32 bits of the hash decide, one absent key in 4300 is found at a million keys, whatever
/// was asked for: 23 times what is allowed here.
#[test]
fn a_low_rate_is_kept_though_the_keys_are_many() {
    let (keys, queries) = long_or((30_000_000, 40_000_000), (1_000_000, 4_000_000));
    let short = ["bloom", "cuckoo", "quotient", "binary_fuse32", "ribbon"];
    let chosen = |kind: &&KindInfo| long_or(true, short.contains(&kind.name));
    let mut tried = 0;
    for kind in KINDS
        .iter()
        .filter(chosen)
        .filter(|kind| reaches(kind, keys, 1e-5))
    {
        let filter = must(kind, &Config::new(keys).fpr(1e-5), &hashes(1, keys));
        let found = hits(filter.filter(), 2, queries);
        let (_, most) = math::binomial_interval(queries, 1e-5, 1e-9);
        assert!(
            found <= most,
            "{}: {found} hits in {queries}, at most {most}",
            kind.name
        );
        tried += 1;
    }
    assert!(tried >= short.len(), "{tried} kinds have such a rate");
}

/// SplitMix64 from this state: a set that the published construction of binary fuse filters does
/// not finish, and the sizes around it.
#[test]
fn sets_that_others_could_not_build_are_built() {
    let set = |state: u64, keys: u64| -> Vec<u64> {
        let mut state = state;
        let next = |_| {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let x = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
            x ^ x >> 31
        };
        (0..keys).map(next).collect()
    };
    assert_eq!(
        set(0, 1),
        [0xE220_A839_7B1D_CDAF],
        "SplitMix64's first from 0"
    );
    for kind in KINDS.iter().filter(|kind| !kind.can.insert) {
        let others = (0..long_or(300, 5)).map(|state| (state, 11_504));
        for (state, keys) in [(28_909, 11_515)].into_iter().chain(others) {
            let keys = set(state, keys);
            let filter = must(kind, &config(kind, 0), &keys);
            assert_holds(filter.filter(), &keys, kind.name);
        }
    }
}

/// Every way to one filter gives the same answers: built, loaded, mapped, at an odd address; one
/// by one, in batches, with and without the processor's extensions.
#[test]
#[allow(unsafe_code, reason = "one of the ways is a mapped file")]
fn all_ways_to_a_filter_agree() {
    struct Odd(Vec<u8>);
    impl AsRef<[u8]> for Odd {
        fn as_ref(&self) -> &[u8] {
            &self.0[1..]
        }
    }
    let asked = long_or(1_000_000, 100_000);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    for kind in KINDS {
        let members = asked / 2;
        let built = must(kind, &config(kind, members), &hashes(3, members));
        built.save(&path).unwrap();
        let file = built.to_bytes();
        // SAFETY: the file lies in a directory of this test's own, which edits none in place.
        let mapped = unsafe { Mapped::open(&path) }.unwrap();
        let ways: [(&str, Any); 4] = [
            ("loaded", Keyed::load(&path).unwrap()),
            ("mapped", Open::new().mapped(mapped).unwrap()),
            (
                "at an odd address",
                Keyed::open(Odd([&[0][..], &file].concat())).unwrap(),
            ),
            ("built", built),
        ];
        let mixed: Vec<u64> = (0..asked).map(|i| hash(3 + i % 2, i)).collect();
        let single: Vec<bool> = mixed
            .iter()
            .map(|&h| ways[3].1.filter().contains(h))
            .collect();
        for (way, filter) in &ways {
            let filter = filter.filter();
            let one_by_one = mixed.iter().map(|&hash| filter.contains(hash));
            assert!(
                one_by_one.eq(single.iter().copied()),
                "{}, {way}",
                kind.name
            );
            for portable in [false, true] {
                force_portable(portable);
                let mut out = vec![false; mixed.len()];
                // From the second hash on, and so at no multiple of a vector.
                filter.contains_batch(&mixed[1..], &mut out[1..]);
                force_portable(false);
                assert!(out[1..] == single[1..], "{}, {way}, in batches", kind.name);
            }
        }
    }
}

/// The file of each kind, said to be one of each other: refused, or a filter that can be asked,
/// and that is written as it was read.
#[test]
fn a_file_said_to_be_of_another_kind_does_no_harm() {
    for kind in KINDS {
        let file = must(kind, &config(kind, 100), &hashes(5, 100)).to_bytes();
        for other in KINDS.iter().filter(|other| other.id != kind.id) {
            let mut forged = file.clone();
            forged[32..34].copy_from_slice(&other.id.to_le_bytes());
            forged[34..36].copy_from_slice(&other.version.to_le_bytes());
            assert!(Any::open(forged.clone()).is_err(), "checksums do not fit");
            repair_checksums(&mut forged);
            if let Ok(opened) = Any::open(forged.clone()) {
                let what = format!("{} as {}", kind.name, other.name);
                assert_eq!(opened.filter().kind().name, other.name, "{what}");
                assert!(opened.to_bytes() == forged, "{what}");
                hits(opened.filter(), 6, 10_000);
                assert!(bytes(opened.filter()).len() > 64, "{what}");
            }
        }
    }
}

/// What a build takes at its most, the filter itself included and the hashes that it is given not:
/// bytes for each key of half a million, rounded up to tenths, as docs/TRUST.md has them.
/// `TAMIS_BLESS=1` writes them.
#[test]
fn a_build_takes_the_memory_that_is_documented() {
    let keys = 500_000;
    let tenths = |bytes: usize| (10 * bytes).div_ceil(keys as usize);
    let rows = KINDS.iter().map(|kind| {
        let config = config(kind, keys);
        let mut members = hashes(7, keys);
        let (filter, peak) = peak_of(|| kind.build(&config, &mut members).unwrap());
        (kind.name, [filter.size_in_bytes(), peak].map(tenths))
    });
    let rows: Vec<_> = rows.collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/TRUST.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (start, end) = ("|---|---:|---:|\n", "\n<!-- memory:end -->");
    let from = page.find(start).expect("docs/TRUST.md has such a table") + start.len();
    let to = from + page[from..].find(end).expect("the table has an end");
    if std::env::var_os("TAMIS_BLESS").is_some() {
        let number = |tenths: usize| format!("{}.{}", tenths / 10, tenths % 10);
        let row = |(name, [filter, peak]): &(&str, [usize; 2])| {
            format!("| `{name}` | {} | {} |\n", number(*filter), number(*peak))
        };
        let table: String = rows.iter().map(row).collect();
        std::fs::write(&path, [&page[..from], &table, &page[to..]].concat()).unwrap();
        return;
    }
    let told: Vec<Vec<&str>> = page[from..to]
        .lines()
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(told.len(), rows.len(), "a row for each kind");
    for (row, (name, measured)) in told.iter().zip(rows) {
        assert_eq!(row[0], format!("`{name}`"));
        for (told, measured) in row[1..].iter().zip(measured) {
            let told = (told.parse::<f64>().unwrap() * 10.0).round() as usize;
            assert!(
                measured <= told,
                "{name}: {measured} tenths, {told} are documented"
            );
            // Where words are shorter, so may be what builders hold.
            let close = cfg!(not(target_pointer_width = "64")) || 10 * told <= 11 * measured;
            assert!(
                close,
                "{name}: only {measured} tenths, {told} are documented"
            );
        }
    }
}
