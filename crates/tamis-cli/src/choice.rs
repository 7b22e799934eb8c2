//! Making a filter from hashes, of the kind asked for or of one that suits.

use tamis::{AnyFilter, BuildError, BuildErrorKind, Config, Hashing, Keyed, Spill, Spilled};

/// What `tamis::advise` ranks first, by the number of keys and the rate. Asking it takes a fifth of a second, longer than
/// building a filter of a million keys; so its answers are kept here, and a test asks again.
const ADVICE: &str = include_str!("choice/advice.txt");
/// The columns of the table: fewer keys than this. Advice is for half as many, and in the last for 2¹⁸.
const FEWER_THAN: [u64; 4] = [2048, 16384, 131_072, u64::MAX];

/// What can be built from hashes on disk, by falling rate.
const ON_DISK: [&str; 3] = ["binary_fuse8", "binary_fuse16", "binary_fuse32"];

/// For a set whose size nobody knows.
pub(crate) const ENDLESS: &str = "scalable";
/// For the last keys of a stream.
pub(crate) const WINDOWED: &str = "sliding";
/// For so many keys and some more: it never refuses one.
pub(crate) const CAPPED: &str = "bloom";

/// Refuses at once, before any key is read, what no set of keys could make possible.
pub(crate) fn check(config: &Config) -> Result<(), BuildError> {
    let Some(name) = config.kind() else {
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
pub(crate) struct Default {
    pub(crate) kind: &'static str,
    pub(crate) why: &'static str,
}

/// The kind that suits where none is named, for so many keys. Room for more is taken as a wish to insert them later, so
/// the kind is then one that can.
pub(crate) fn default_kind(config: &Config, keys: u64) -> Default {
    let room = config.get_capacity();
    let (need, why) = match room > keys {
        true => (
            "insert",
            "`tamis advise` ranks it first for about as many keys that come over time",
        ),
        false => (
            "static",
            "`tamis advise --static` ranks it first for about as many keys",
        ),
    };
    let kind = advised(need, room.max(keys), config.get_fpr());
    Default { kind, why }
}

/// The kind that suits where none is named, for keys that are too many to be held in memory.
pub(crate) fn default_kind_on_disk(config: &Config) -> Default {
    let rates = [1.0 / 256.0, 1.0 / 65536.0];
    let wide = rates.iter().filter(|rate| config.get_fpr() < **rate);
    Default {
        kind: ON_DISK[wide.count()],
        why: "the keys are more than --max-memory holds, and it is built from disk",
    }
}

/// The kind that suits where none is named, for keys that are inserted as they come, however often each does.
pub(crate) fn default_kind_for_a_stream(config: &Config) -> Default {
    let advised = default_kind(config, 0);
    let counts_copies = |can: tamis::Capabilities| can.remove || can.count;
    match tamis::kind(advised.kind) {
        Ok(kind) if !counts_copies(kind.capabilities()) => advised,
        _ => Default {
            kind: CAPPED,
            why: "a key that comes again takes no room in it",
        },
    }
}

/// Looks up the table of advice: in the row of the next lower power of a half.
fn advised(need: &str, keys: u64, fpr: f64) -> &'static str {
    let column = FEWER_THAN.iter().position(|&limit| keys < limit);
    let column = column.unwrap_or(FEWER_THAN.len() - 1);
    let rows = ADVICE.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == need).then_some(())?;
        Some((words.next()?.parse::<f64>().ok()?, words.nth(column)?))
    });
    let mut rows = rows.skip_while(|(bits, _)| (-bits).exp2() > fpr);
    // A Bloom filter reaches any rate that a hash of 64 bits can promise.
    rows.next().map_or(CAPPED, |(_, kind)| kind)
}

/// Whether a kind can be built from hashes on disk.
pub(crate) fn is_on_disk(name: &str) -> bool {
    ON_DISK.contains(&name)
}

/// Builds a filter of a kind that can be built from disk.
pub(crate) fn build_on_disk(kind: &str, spill: Spill) -> Result<(AnyFilter, Spilled), BuildError> {
    match ON_DISK.iter().position(|known| *known == kind) {
        Some(0) => (spill.finish_and_keep::<u8>()).map(|(f, kept)| (AnyFilter::new(f), kept)),
        Some(1) => (spill.finish_and_keep::<u16>()).map(|(f, kept)| (AnyFilter::new(f), kept)),
        _ => (spill.finish_and_keep::<u32>()).map(|(f, kept)| (AnyFilter::new(f), kept)),
    }
}

/// Whether a kind keeps its rate however many keys are inserted.
pub(crate) fn is_endless(name: &str) -> bool {
    [ENDLESS, "compacting"].contains(&name)
}

/// How many threads to use: so many, or as many as the machine has.
pub(crate) fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Below this, a thread costs more than it saves.
const WORTH_A_THREAD: usize = 1 << 16;

/// Sorts hashes that agree in all bits above this one: those where it is 0 on one thread, the others on another.
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
    std::thread::scope(|scope| {
        scope.spawn(|| sort(lows, bit - 1, threads / 2));
        sort(highs, bit - 1, threads - threads / 2);
    });
}

/// Builds a filter that holds the hashes, each once; they are sorted, and repeats dropped. So the same set makes the
/// same file whatever the order of its keys, and repeated keys take no room.
///
/// Room is made for the configuration's capacity if that is more.
pub(crate) fn build(
    config: &Config,
    hashing: Hashing,
    hashes: &mut Vec<u64>,
) -> Result<Keyed<AnyFilter>, BuildError> {
    sort(hashes, 63, config.get_threads());
    hashes.dedup();
    let keys = hashes.len() as u64;
    let name = config.kind();
    let name = name.unwrap_or_else(|| default_kind(config, keys).kind);
    let config = config.clone().capacity(config.get_capacity().max(keys));
    let filter = tamis::kind(name)?.build(&config, hashes)?;
    Keyed::from_filter(filter, hashing, &config)
}

#[cfg(test)]
mod tests {
    use tamis::Filter;
    use tamis::advise::{Needs, advise};

    use super::*;

    fn chosen(config: &Config) -> &'static str {
        let built = build(config, Hashing::default(), &mut vec![1, 2, 3]).unwrap();
        built.filter().name()
    }

    /// The rows of the table: rates are ½ to the power of these.
    const BITS: [u32; 20] = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 20, 24, 28, 32,
    ];

    /// What is advised for a cell of the table; `-` where nothing is.
    fn asked(need: &str, bits: u32, column: usize) -> &'static str {
        let keys = FEWER_THAN[column].min(1 << 19) / 2;
        let mut needs = Needs::new(keys, (-f64::from(bits)).exp2());
        needs.fixed = need == "static";
        let advice = advise(&needs).unwrap();
        advice
            .choices
            .first()
            .map_or("-", |choice| choice.kind.name)
    }

    #[test]
    fn the_table_has_what_is_advised() {
        let needs = ["static", "insert"];
        if std::env::var_os("TAMIS_BLESS").is_some() {
            let mut table = String::from(
                "# Written by `TAMIS_BLESS=1 cargo test -p tamis-cli --bins table`.\n",
            );
            for (need, bits) in needs.iter().flat_map(|need| BITS.map(|bits| (need, bits))) {
                let row = (0..FEWER_THAN.len()).map(|column| asked(need, bits, column));
                let row: Vec<_> = row.collect();
                table += &format!("{need} {bits} {}\n", row.join(" "));
            }
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/choice/advice.txt");
            return std::fs::write(path, table).unwrap();
        }
        assert_eq!(ADVICE.lines().count(), 1 + needs.len() * BITS.len());
        // All cells take minutes; these a second or two.
        for (need, bits, column) in [
            ("static", 7, 0),
            ("static", 8, 0),
            ("static", 28, 1),
            ("static", 16, 2),
            ("static", 7, 3),
            ("insert", 4, 0),
            ("insert", 7, 0),
            ("insert", 10, 1),
        ] {
            let fpr = (-f64::from(bits)).exp2();
            let keys = FEWER_THAN[column] - 1;
            let asked = asked(need, bits, column);
            let why = "the advice has changed; write the table anew";
            assert_eq!(
                advised(need, keys, fpr),
                asked,
                "{need} {bits} {keys}: {why}"
            );
        }
    }

    #[test]
    fn every_cell_of_the_table_can_be_built_and_reaches_its_rate() {
        for need in ["static", "insert"] {
            for (bits, keys) in BITS
                .iter()
                .flat_map(|bits| [0, 1, 20, 200, 2000].map(|k| (bits, k)))
            {
                // The highest rate of the row above, and the lowest of this.
                for fpr in [0.51, 1.0].map(|part| (1.0 - f64::from(*bits)).exp2() * part * 0.999) {
                    let config = Config::new(if need == "static" { 0 } else { keys + 9 }).fpr(fpr);
                    let mut hashes = (0..keys).map(|i| Hashing::default().hash(&i)).collect();
                    let name = default_kind(&config, keys).kind;
                    let kind = tamis::kind(name).unwrap();
                    assert!(need == "static" || kind.capabilities().insert, "{name}");
                    let built = build(&config, Hashing::default(), &mut hashes);
                    let built = built.unwrap_or_else(|e| panic!("{name} {fpr} {keys}: {e}"));
                    let now = built.filter().fpr();
                    assert!(now <= 1.3 * fpr, "{name} {fpr} {keys}: {now}");
                }
            }
        }
    }

    #[test]
    fn room_for_more_keys_takes_a_kind_that_grows() {
        let name = chosen(&Config::new(4));
        assert!(tamis::kind(name).unwrap().capabilities().insert);
        let complete = advised("static", 3, 0.01);
        assert_eq!(
            chosen(&Config::new(3)),
            complete,
            "room for these is not more"
        );
    }

    #[test]
    fn what_is_built_from_disk_is_what_is_built_in_memory() {
        let directory = tempfile::tempdir().unwrap();
        for (fpr, kind) in [
            (2f64.powi(-8), "binary_fuse8"),
            (0.001, "binary_fuse16"),
            (1e-9, "binary_fuse32"),
        ] {
            let config = Config::new(0).fpr(fpr);
            assert_eq!(default_kind_on_disk(&config).kind, kind);
            let mut spill = Spill::new(&config, &directory).unwrap();
            (1..=1000).for_each(|hash: u64| spill.push(hash << 48).unwrap());
            let (filter, _) = build_on_disk(kind, spill).unwrap();
            assert_eq!(filter.name(), kind);
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
