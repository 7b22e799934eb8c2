//! Making a filter from hashes, of the kind asked for or of one that suits.

use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::thread;

use tamis::advise;
use tamis::{AnyFilter, BuildError, BuildErrorKind, Config, Hashing, Keyed, Spill, Spilled};

use crate::failure::Failure;

/// The binary fuse filters by their width in bits: the rate is ½ to the power of it. They can be
/// built from hashes on disk.
const FUSE: [(&str, i32); 3] = [
    ("binary_fuse8", 8),
    ("binary_fuse16", 16),
    ("binary_fuse32", 32),
];

/// For a set whose size nobody knows.
pub(crate) const ENDLESS: &str = "aleph";
/// For the last keys of a stream.
pub(crate) const WINDOWED: &str = "sliding";
/// For so many keys and some more: it never refuses one.
pub(crate) const CAPPED: &str = "bloom";

/// What --kind takes: a kind and its parameters, among which --fpr and --capacity may be.
#[derive(Clone)]
pub(crate) struct KindArg {
    config: Config,
    names_fpr: bool,
    names_capacity: bool,
}

impl FromStr for KindArg {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<KindArg, BuildError> {
        let params = text.split_once(':').map_or(text, |(_, params)| params);
        let pairs = params.split(',').filter_map(|pair| pair.split_once('='));
        let names = |asked| pairs.clone().any(|(name, _)| name.trim() == asked);
        Ok(KindArg {
            config: text.parse()?,
            names_fpr: names("fpr"),
            names_capacity: names("capacity"),
        })
    }
}

impl KindArg {
    /// The configuration, with the options beside --kind. What is given in both ways is refused:
    /// neither is the word that counts.
    pub(crate) fn with(&self, fpr: Option<f64>, capacity: Option<u64>) -> Result<Config, Failure> {
        let twice = |option: String, param: String| {
            let why = format!("--kind has {param}, too; leave one of the two out");
            Failure::usage(option, why)
        };
        let mut config = self.config.clone();
        if let Some(fpr) = fpr {
            if self.names_fpr {
                let named = format!("fpr={}", config.fpr);
                return Err(twice(format!("--fpr {fpr}"), named));
            }
            config = config.fpr(fpr);
        }
        if let Some(capacity) = capacity {
            if self.names_capacity {
                let named = format!("capacity={}", config.capacity);
                return Err(twice(format!("--capacity {capacity}"), named));
            }
            config = config.capacity(capacity);
        }
        Ok(config)
    }
}

/// Refuses at once, before any key is read, what no set of keys could make possible.
pub(crate) fn check(config: &Config) -> Result<(), BuildError> {
    let Some(name) = config.kind.as_deref() else {
        return Ok(());
    };
    match tamis::kind(name)?.build(&config.clone().capacity(0), &mut []) {
        Err(e) if does_not_depend_on_keys(e.kind()) => Err(e),
        _ => Ok(()),
    }
}

fn does_not_depend_on_keys(kind: &BuildErrorKind) -> bool {
    use BuildErrorKind::{Fpr, Parameter, UnknownParameter, Unreachable};
    matches!(
        kind,
        Fpr(_) | Parameter { .. } | UnknownParameter { .. } | Unreachable { .. }
    )
}

/// A kind, and why it was chosen.
#[derive(Clone, Copy, Debug)]
pub struct Chosen {
    /// Its name.
    pub kind: &'static str,
    /// The reason, in words.
    pub why: &'static str,
}

/// The kind that suits where none is named, for so many keys: the [usual](advise::usual()) one,
/// which `tamis advise` puts first, or one that has the rate where that has not. Room for more is
/// taken as a wish to insert them later, so the kind is then one that can.
pub fn default_kind(config: &Config, keys: u64) -> Chosen {
    let usual = advise::usual(config.fpr, config.capacity <= keys);
    let chosen = Chosen {
        kind: usual.kind,
        why: usual.why,
    };
    match check(&config.clone().kind(chosen.kind)) {
        Err(e) if matches!(e.kind(), BuildErrorKind::Unreachable { .. }) => Chosen {
            kind: CAPPED,
            why: "it reaches any rate that a 64-bit hash can promise",
        },
        _ => chosen,
    }
}

/// The narrowest binary fuse filter that has the rate, and its width.
fn fuse(fpr: f64) -> Option<(&'static str, i32)> {
    FUSE.into_iter().find(|(_, width)| 2f64.powi(-width) <= fpr)
}

/// The kind that suits where none is named, for keys that are too many to be held in memory.
pub(crate) fn default_kind_on_disk(config: &Config) -> Chosen {
    // Where none has the rate, the last says which it has.
    let (kind, _) = fuse(config.fpr).unwrap_or(FUSE[2]);
    Chosen {
        kind,
        why: "the keys are more than --max-memory holds, and it is built from disk",
    }
}

/// The kind that suits where none is named, for keys that are inserted as they come, however
/// often each does.
pub(crate) fn default_kind_for_a_stream(config: &Config) -> Chosen {
    let chosen = default_kind(config, 0);
    let counts_copies = |can: tamis::Capabilities| can.remove || can.count;
    match tamis::kind(chosen.kind) {
        Ok(kind) if !counts_copies(kind.can) => chosen,
        _ => Chosen {
            kind: CAPPED,
            why: "a key that comes again takes no room in it",
        },
    }
}

/// Whether a kind can be built from hashes on disk.
pub(crate) fn is_on_disk(name: &str) -> bool {
    FUSE.iter().any(|(kind, _)| *kind == name)
}

/// Builds a filter of a kind that can be built from disk.
pub(crate) fn build_on_disk(
    config: &Config,
    kind: &str,
    spill: Spill,
) -> Result<(AnyFilter, Spilled), BuildError> {
    match FUSE.iter().position(|(known, _)| *known == kind) {
        Some(0) => (spill.finish_and_keep::<u8>(config)).map(|(f, kept)| (AnyFilter::new(f), kept)),
        Some(1) => {
            (spill.finish_and_keep::<u16>(config)).map(|(f, kept)| (AnyFilter::new(f), kept))
        }
        _ => (spill.finish_and_keep::<u32>(config)).map(|(f, kept)| (AnyFilter::new(f), kept)),
    }
}

/// Whether a kind keeps its rate however many keys are inserted.
pub(crate) fn is_endless(name: &str) -> bool {
    tamis::kind(name).is_ok_and(|kind| kind.can.grow)
}

/// Whether a kind counts every copy of a key, however many there are.
pub(crate) fn counts_all(name: &str) -> bool {
    tamis::kind(name).is_ok_and(|kind| kind.copies == u64::MAX)
}

/// How many threads to use: so many, or as many as the machine has.
pub(crate) fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Below this, a thread costs more than it saves.
const WORTH_A_THREAD: usize = 1 << 16;

/// Sorts hashes that agree in all bits above this one: those where it is 0 on one thread, the
/// others on another.
fn sort(hashes: &mut [u64], bit: u32, threads: usize) {
    if threads < 2 || hashes.len() < WORTH_A_THREAD || bit == 0 {
        return hashes.sort_unstable();
    }
    let is_high = |hash: u64| hash >> bit & 1 == 1;
    let (mut low, mut high) = (0, hashes.len());
    loop {
        while low < high && !is_high(hashes[low]) {
            low += 1;
        }
        while low < high && is_high(hashes[high - 1]) {
            high -= 1;
        }
        if low == high {
            break;
        }
        hashes.swap(low, high - 1);
    }
    let (lows, highs) = hashes.split_at_mut(low);
    let lows = Mutex::new(Some(lows));
    let sort_lows = || {
        let lows = lows.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(lows) = lows {
            sort(lows, bit - 1, threads / 2);
        }
    };
    thread::scope(|scope| {
        let _ = thread::Builder::new().spawn_scoped(scope, sort_lows);
        sort(highs, bit - 1, threads - threads / 2);
        // Where the system gives no more threads, this one sorts both.
        sort_lows();
    });
}

/// Builds a filter that holds the hashes, each once; they are sorted, and repeats dropped. So the
/// same set makes the same file whatever the order of its keys, and repeated keys take no room. A
/// kind that counts without a limit is given them all.
///
/// Room is made for the configuration's capacity if that is more.
///
/// # Errors
///
/// [`BuildError`] when the configuration is not possible.
pub fn build(
    config: &Config,
    hashing: Hashing,
    hashes: &mut Vec<u64>,
) -> Result<Keyed<AnyFilter>, BuildError> {
    sort(hashes, 63, config.threads);
    if let Some(name) = &config.kind
        && counts_all(name)
    {
        let filter = tamis::kind(name)?.build(config, hashes)?;
        return Keyed::from_filter(filter, hashing, config);
    }
    hashes.dedup();
    let keys = hashes.len() as u64;
    let name = config.kind.as_deref();
    let name = name.unwrap_or_else(|| default_kind(config, keys).kind);
    let config = config.clone().capacity(config.capacity.max(keys));
    let filter = tamis::kind(name)?.build(&config, hashes)?;
    Keyed::from_filter(filter, hashing, &config)
}

#[cfg(test)]
mod tests {
    use tamis::Filter;

    use super::*;

    fn chosen(config: &Config) -> &'static str {
        let built = build(config, Hashing::default(), &mut vec![1, 2, 3]).unwrap();
        built.kind().name
    }

    const RATES: [f64; 16] = [
        0.9, 0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.004, 0.001, 5e-4, 1e-4, 1e-5, 1e-8, 2e-10,
        1e-12,
    ];

    #[test]
    fn what_is_complete_is_fast_where_that_is_cheap_and_else_small() {
        for (fpr, kind) in [
            (0.1, "ribbon_bumped"),
            (0.01, "binary_fuse8"),
            (2f64.powi(-8), "binary_fuse8"),
            (0.001, "ribbon_bumped"),
            (1e-4, "binary_fuse16"),
            (1e-5, "ribbon_bumped"),
            (1e-9, "binary_fuse32"),
            (1e-11, "bloom"),
        ] {
            assert_eq!(chosen(&Config::default().fpr(fpr)), kind, "{fpr}");
        }
    }

    #[test]
    fn what_grows_is_fast_where_that_is_cheap_and_else_small() {
        for (fpr, kind) in [
            (0.3, "bloom"),
            (0.1, "split_block"),
            (0.001, "split_block"),
            (1e-4, "cuckoo"),
            (1e-8, "cuckoo"),
            (1e-11, "bloom"),
        ] {
            assert_eq!(chosen(&Config::new(4).fpr(fpr)), kind, "{fpr}");
            // Of a stream a key may come again and again.
            let streamed = if kind == "cuckoo" { "bloom" } else { kind };
            let config = Config::new(4).fpr(fpr);
            assert_eq!(default_kind_for_a_stream(&config).kind, streamed, "{fpr}");
        }
    }

    #[test]
    fn the_chosen_kind_can_be_built_and_reaches_its_rate() {
        for (room, fpr) in [0, 9].into_iter().flat_map(|r| RATES.map(|fpr| (r, fpr))) {
            for keys in [0, 1, 20, 200, 2000] {
                let config = Config::new(if room > 0 { keys + room } else { 0 }).fpr(fpr);
                let mut hashes = (0..keys).map(|i| Hashing::default().hash(&i)).collect();
                let name = default_kind(&config, keys).kind;
                let kind = tamis::kind(name).unwrap();
                assert!(room == 0 || kind.can.insert, "{name}");
                let built = build(&config, Hashing::default(), &mut hashes);
                let built = built.unwrap_or_else(|e| panic!("{name} {fpr} {keys}: {e}"));
                let now = built.fpr();
                assert!(now <= 1.3 * fpr, "{name} {fpr} {keys}: {now}");
            }
        }
    }

    #[test]
    fn room_for_these_is_not_room_for_more() {
        let insert = |room| tamis::kind(chosen(&Config::new(room))).unwrap().can.insert;
        assert!(!insert(3) && insert(4));
    }

    #[test]
    fn what_is_built_from_disk_is_what_is_built_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        for (fpr, kind) in [
            (2f64.powi(-8), "binary_fuse8"),
            (0.001, "binary_fuse16"),
            (1e-9, "binary_fuse32"),
        ] {
            let config = Config::default().fpr(fpr);
            assert_eq!(default_kind_on_disk(&config).kind, kind);
            let mut spill = Spill::new(&directory).unwrap();
            (1..=1000).for_each(|hash: u64| spill.push(hash << 48).unwrap());
            let (filter, _) = build_on_disk(&config, kind, spill).unwrap();
            assert_eq!(filter.kind().name, kind);
            assert!((1..=1000).all(|hash: u64| filter.contains(hash << 48)));
        }
    }

    #[test]
    fn sorting_on_many_threads_sorts() {
        let hashes: Vec<u64> = (0..300_000u64)
            .map(|i| Hashing::default().hash(&i))
            .collect();
        let low: Vec<u64> = (0..200_000).rev().collect();
        for mut hashes in [hashes, low, vec![7; 100_000], vec![]] {
            let mut expected = hashes.clone();
            expected.sort_unstable();
            sort(&mut hashes, 63, 5);
            assert!(hashes == expected);
        }
    }

    #[test]
    fn a_rate_that_no_kind_reaches_is_an_error() {
        for config in ["fpr=1e-30", "binary_fuse32:fpr=1e-12"] {
            let config: Config = config.parse().unwrap();
            let built = build(&config, Hashing::default(), &mut vec![1, 2]);
            assert!(built.is_err(), "{config}");
        }
    }

    #[test]
    fn only_what_depends_on_no_key_is_refused_before_reading() {
        for bad in [
            "cukoo",
            "bloom:bits=3",
            "bloom:fpr=0",
            "bloom:k=0",
            "binary_fuse8:fpr=1e-9",
        ] {
            assert!(check(&bad.parse().unwrap()).is_err(), "{bad}");
        }
        for fine in ["", "bloom:k=3", "cuckoo:capacity=18446744073709551615"] {
            assert!(check(&fine.parse().unwrap()).is_ok(), "{fine}");
        }
    }
}
