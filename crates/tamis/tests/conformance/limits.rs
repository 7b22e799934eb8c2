//! Laws 12, 13 and 14: bad parameters are refused at once, sizes are true, and names are unique.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use tamis::testing::math;
use tamis::testing::size_of_box;
use tamis::{AnyFilter, BuildErrorKind, Config, Filter, KINDS, Keyed, KindInfo};

use crate::support::counting::live;
use crate::support::{choose, chosen, config, hash, hashes, hits, made, must};

type Work = fn(&KindInfo);

/// Laws about what a process may take: each runs in one of its own, for one kind.
const ALONE: [(&str, Work); 2] = [
    ("bad_parameters", try_bad_parameters),
    ("size", measure_size),
];
const CHILD: &str = "TAMIS_ALONE";

/// Whether this process was started by [`alone`], and has done its work. `main` asks first.
pub(crate) fn is_child() -> bool {
    let Ok(work) = std::env::var(CHILD) else {
        return false;
    };
    let mut words = work.split(' ');
    let mut word = || words.next().expect("a law, a kind and a choice");
    let (law, kind, chosen) = (word(), word(), word());
    let (_, law) = ALONE.iter().find(|(name, _)| *name == law).expect("a law");
    let kind = tamis::kind(kind).expect("a kind");
    choose(kind.params.iter().find_map(|param| {
        let value = chosen.strip_prefix(param.name)?.strip_prefix('=')?;
        Some((param.name, value.parse().expect("a number")))
    }));
    law(kind);
    true
}

fn alone(law: &str, info: &KindInfo) {
    let chosen = chosen().map(|(param, value)| format!("{param}={value}"));
    let work = format!("{law} {} {}", info.name, chosen.unwrap_or_default());
    let child = limited().env(CHILD, work).output().unwrap();
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{}\n{errors}", child.status);
}

/// This program, which the system ends after ten seconds on a processor: a builder that computes
/// for long is found, however busy the machine is. The slowest kind needs one.
#[cfg(unix)]
fn limited() -> Command {
    let mut shell = Command::new("sh");
    let program = std::env::current_exe().unwrap();
    shell.args(["-c", "ulimit -t 10 && exec \"$0\""]);
    shell.arg(program);
    shell
}

#[cfg(not(unix))]
fn limited() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

pub(crate) fn bad_parameters(info: &'static KindInfo) {
    alone("bad_parameters", info);
}

/// A rate that is out of reach is refused with one that is not, as it is printed, whatever the
/// parameters.
pub(crate) fn advised_rate(info: &'static KindInfo) {
    for n in [0, 1, 10, 1000] {
        for fpr in [1e-20_f64, 1e-16, 1e-14, 1e-10, 1e-6] {
            // Two probes a key, as `compressed` has, fill gigabytes at such rates.
            if info.can.insert && n as f64 / fpr.sqrt() > 2e8 {
                continue;
            }
            let config = Config::new(n).fpr(fpr);
            follow_advice(info, &config, &hashes(1, n), false);
        }
    }
    // One key, so that what few probes need for such rates is either small or more than there is.
    for param in info.params {
        for value in ["1", "2", "3", "4", "8", "16", "24", "32", "64", "128"] {
            for fpr in [1e-16, 1e-14] {
                let config = Config::new(1).fpr(fpr).set(param.name, value);
                follow_advice(info, &config, &hashes(1, 1), true);
            }
        }
    }
}

/// An empty filter for no keys is refused, unless it grows with them; one of given keys needs no
/// capacity. Whoever takes more keys than it was made for says so, unless it counts copies.
pub(crate) fn capacity(info: &'static KindInfo) {
    let unsaid = Config::default().kind(info.name).fpr(config(info, 1).fpr);
    match Keyed::<AnyFilter>::new(&unsaid) {
        Ok(_) => assert!(info.can.grow, "empty, for no keys, and it does not grow"),
        Err(error) => {
            assert!(!info.can.grow, "{error}");
            assert!(
                matches!(error.kind(), BuildErrorKind::NoCapacity { kind } if *kind == info.name),
                "{error}"
            );
            assert!(error.to_string().contains("Config::new(1_000_000)"));
        }
    }
    let mut filter: Keyed<AnyFilter> = Keyed::build(&unsaid, 0..500u64).unwrap();
    assert!(!filter.is_over_capacity(), "made for as many as were given");
    for i in 500..2000u64 {
        let hash = filter.hash(&i);
        let insert = filter.filter_mut().as_insert().unwrap();
        if insert.insert(hash).is_err() {
            return;
        }
        let (can, more) = (info.can, filter.len() > 500);
        let says = !can.grow && !can.window && !can.count;
        assert_eq!(filter.is_over_capacity(), more && says);
        assert!(more || can.window, "a key was not counted");
        let fill = filter.fill();
        assert_eq!(fill.is_none(), can.grow || can.count && more);
        assert!(fill.is_none_or(|fill| (fill > 1.0) == filter.is_over_capacity()));
    }
}

fn follow_advice(info: &KindInfo, config: &Config, hashes: &[u64], varied: bool) {
    let Err(error) = made(info, config, hashes) else {
        return;
    };
    let least = match *error.kind() {
        BuildErrorKind::Unreachable { least, .. } | BuildErrorKind::HashFloor { least, .. } => {
            least
        }
        // A value that is none of the parameter's, or with which the rate takes a huge filter.
        BuildErrorKind::Parameter { .. }
        | BuildErrorKind::TooLarge { .. }
        | BuildErrorKind::Memory { .. }
            if varied =>
        {
            return;
        }
        _ => panic!("{config}: {error}"),
    };
    let printed = format!("{least:e}");
    assert!(error.to_string().contains(&printed), "{config}: {error}");
    let config = config.clone().fpr(printed.parse().unwrap());
    match made(info, &config, hashes) {
        // What a hash can promise, a kind need not reach; that it says with advice of its own.
        Err(second) if matches!(error.kind(), BuildErrorKind::HashFloor { .. }) => {
            assert!(
                !matches!(second.kind(), BuildErrorKind::HashFloor { .. }),
                "{config}: {second}"
            );
            follow_advice(info, &config, hashes, varied);
        }
        // The parameter is refused for itself.
        Err(second) if varied && matches!(second.kind(), BuildErrorKind::Parameter { .. }) => {}
        Err(second) => panic!("{config}, as advised: {second}"),
        Ok(_) => {}
    }
}

pub(crate) fn size_is_the_truth(info: &'static KindInfo) {
    alone("size", info);
}

fn try_bad_parameters(info: &KindInfo) {
    let rates = [
        0.0,
        -0.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        5e-324,
        1.0 - 2f64.powi(-53),
        1.0,
        2.0,
        -1.0,
        // And good ones, for the sizes beside them.
        0.5,
        0.01,
        1e-9,
    ];
    let sizes = [0, 1, 1 << 31, 1 << 32, 1 << 53, 1 << 63, u64::MAX];
    let silly = [
        "0",
        "-1",
        "-0",
        "1",
        "3",
        "64",
        "65",
        "255",
        "256",
        "4294967295",
        "4294967296",
        "99999999999",
        "18446744073709551615",
        "18446744073709551616",
        "x",
        "",
        " ",
        "NaN",
        "inf",
        "1e9",
        "0.5",
        "０",
    ];
    for n in sizes {
        for fpr in rates {
            let config = Config::new(n).fpr(fpr);
            let possible = fpr > 0.0 && fpr < 1.0;
            let built = at_once(info, &config);
            assert!(possible || !built, "{config} was built");
            for param in info.params {
                for value in silly {
                    at_once(info, &config.clone().set(param.name, value));
                }
            }
            let unknown = config.set("no_such_parameter", 1);
            assert!(!at_once(info, &unknown), "{unknown} was built");
        }
    }
    for fpr in [f64::NAN, 0.0, 1.0, -1.0, 2.0] {
        let error = made(info, &Config::new(10).fpr(fpr), &[]).expect_err("a rate that is none");
        let is_told = matches!(error.kind(), BuildErrorKind::Fpr(_));
        assert!(is_told, "{fpr}: {error}");
    }
    // 64 bits of 5 · 10⁸ keys are shared more often than that.
    let many = Config::new(500_000_000).fpr(1e-12);
    let error = made(info, &many, &[]).expect_err("a rate below that of the hashes");
    let is_told = matches!(error.kind(), BuildErrorKind::HashFloor { .. });
    assert!(is_told, "{error}");
    for param in info.params {
        for value in ["x", "", "-1", "18446744073709551616"] {
            let config = config(info, 10).set(param.name, value);
            let error = made(info, &config, &[]).expect_err("built from nonsense");
            assert!(error.to_string().contains(param.name), "{config}: {error}");
        }
    }
}

/// Builds in under 64 MiB, or says why not. Returns whether it was built. A filter of any size
/// holds a key that is inserted.
fn at_once(info: &KindInfo, config: &Config) -> bool {
    let resident = resident_bytes();
    let result = made(info, config, &[]);
    let built = result.is_ok();
    match result {
        Ok(mut keyed) => {
            let filter = keyed.filter_mut();
            if let Some(insert) = filter.as_insert() {
                let hash = hash(50, config.capacity);
                let inserted = insert.insert(hash).is_ok();
                assert!(inserted || config.capacity == 0, "{config}: full at once");
                assert!(
                    !inserted || filter.contains(hash),
                    "{config}: denied at once"
                );
            }
        }
        Err(e) => assert!(!e.to_string().is_empty()),
    }
    let grown = resident_bytes().saturating_sub(resident);
    assert!(
        grown < 64 << 20,
        "{config}: {grown} bytes more are resident"
    );
    built
}

fn resident_bytes() -> u64 {
    // Where the system does not tell, only panics are tested.
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|field| field.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

/// `size_in_bytes` is what the allocator has given out, to the byte; only the box that makes a
/// filter of a known kind an `AnyFilter` comes on top.
fn measure_size(info: &KindInfo) {
    for n in [0, 1, 2, 10, 1000, 30_000, 300_000] {
        let config = config(info, n);
        let mut members = hashes(51, n);
        let start = live();
        let mut filter = info.build(&config, &mut members).unwrap();
        let stated = |filter: &AnyFilter| (filter.size_in_bytes() + size_of_box(filter)) as isize;
        assert_eq!(live() - start, stated(&filter), "{config}, built");
        let start = live();
        let clone = filter.clone();
        assert_eq!(live() - start, stated(&clone), "{config}, cloned");
        drop(clone);
        // What an insertion takes in addition is counted too.
        let size = filter.size_in_bytes() as isize;
        let start = live();
        if let Some(insert) = filter.as_insert() {
            for i in 0..n {
                if insert.insert(hash(52, i)).is_err() {
                    break;
                }
            }
        }
        assert_eq!(
            live() - start,
            filter.size_in_bytes() as isize - size,
            "{config}, inserted into"
        );
    }
}

/// Kinds that buy something else with their space, and the multiple of the least that each may
/// take.
const LARGER: &[(&str, f64)] = &[
    // Four bits for each of a Bloom filter's.
    ("counting", 5.8),
    // Six bits for each of fewer counters.
    ("variable_increment", 3.75),
    // Memory for a smaller file: 18.98 bits where 6.64 are the least.
    ("compressed", 2.87),
    // Eight bits for each of a Bloom filter's, and half as many again.
    ("counting_minimal", 11.6),
    ("spectral_recurring", 17.4),
    // It forgets: 16.2 bits per key of the window at 0.8 %, four of its five slices being full.
    ("sliding", 2.35),
    // It forgets, within 1/87 of a window: 19.7 bits per key at 1 %.
    ("age_partitioned", 3.0),
    // (12 + 2)·32/24 bits a key at 0.58 %: 2.52 times.
    ("d_left", 2.6),
];

/// Between the least that any filter can have and a small multiple of it. Each kind's own formula
/// is tested beside it.
pub(crate) fn size_by_formula(info: &'static KindInfo) {
    let n = 1_000_000;
    let config = config(info, n);
    let keyed = must(info, &config, &hashes(53, n));
    let filter = keyed.filter();
    let bits = filter.size_in_bytes() as f64 * 8.0;
    let least = n as f64 * math::lower_bound_bits_per_key(filter.fpr());
    let larger = LARGER.iter().find(|(name, _)| *name == info.name);
    let most = larger.map_or(2.2, |&(_, most)| most);
    let ratio = bits / least;
    assert!(
        ratio >= 1.0,
        "{config}: {bits} bits are fewer than any filter can have, {least}"
    );
    // What is measured cannot be better than n·log2(1/rate) = bits either: then a filter does not
    // count all its bits.
    let queries = 300_000;
    let forced = (-bits / n as f64).exp2();
    let (low, _) = math::binomial_interval(queries, forced, 1e-9);
    let found = hits(filter, 54, queries);
    assert!(
        found >= low,
        "{config}: {found} hits in {queries}, and {low} are the fewest that {bits} bits can have"
    );
    assert!(
        ratio <= most,
        "{config}: {bits} bits are {ratio:.2} times the least"
    );
    // The file adds a header, a footer, and 8 bytes for every 64 KiB.
    let overhead = keyed.file_len() as f64 - bits / 8.0;
    assert!(
        overhead < 1024.0 + bits / 8.0 / 4096.0,
        "{config}: {overhead} bytes of envelope"
    );
}

pub(crate) fn names(info: &'static KindInfo) {
    let words = |name: &str| {
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(good)
            && !name.ends_with('_')
            && !name.contains("__")
    };
    assert!(words(info.name), "`{}` is not snake_case", info.name);
    assert!(info.id > 0 && info.version > 0);
    assert!(
        !info.about.is_empty() && !info.about.ends_with('.'),
        "{}",
        info.about
    );
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src")
        .join(info.source);
    assert!(source.is_file(), "{} is not there", source.display());
    for param in info.params {
        assert!(
            words(param.name)
                && [param.values, param.default, param.about]
                    .iter()
                    .all(|text| !text.is_empty()),
            "{}",
            param.name
        );
        assert!(
            !["capacity", "fpr"].contains(&param.name),
            "{} is everybody's",
            param.name
        );
    }
    assert_eq!(tamis::kind(info.name).unwrap().id, info.id);
    let filter = must(info, &config(info, 10), &[]);
    assert_eq!(filter.filter().kind().name, info.name);
    let header = filter.to_bytes();
    let field = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    assert_eq!((field(32), field(34)), (info.id, info.version));
}

pub(crate) fn unique() {
    let ids: HashSet<u16> = KINDS.iter().map(|info| info.id).collect();
    let names: HashSet<&str> = KINDS.iter().map(|info| info.name).collect();
    assert_eq!(ids.len(), KINDS.len(), "an id is used twice");
    assert_eq!(names.len(), KINDS.len(), "a name is used twice");
}

/// The table of kinds in the documentation names every kind.
pub(crate) fn readme() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/KINDS.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let table = text
        .split_once("<!-- kinds:start -->")
        .and_then(|(_, rest)| rest.split_once("<!-- kinds:end -->"))
        .map(|(table, _)| table)
        .expect(
            "docs/KINDS.md has a table between `<!-- kinds:start -->` and `<!-- kinds:end -->`",
        );
    for info in KINDS {
        let cell = format!("`{}`", info.name);
        assert!(
            table.contains(&cell),
            "the table of kinds does not list {cell}"
        );
    }
}
