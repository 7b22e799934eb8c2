//! Making a filter from hashes, of the kind asked for or of one that suits.

use tamis::{AnyFilter, BuildError, BuildErrorKind, Config, Hashing, Keyed};

/// For a set that is complete, by falling rate: small, and fast to look up.
const COMPLETE: [&str; 3] = ["binary_fuse8", "binary_fuse16", "binary_fuse32"];
/// For a set that is to grow: the fastest that takes insertions.
const GROWING: &str = "split_block";

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

/// The kind that suits where none is named. Room for more keys than there are is taken as a wish to insert them later, so
/// the kind is then one that can.
pub(crate) fn default_kind(config: &Config, keys: u64) -> &'static str {
    if config.get_capacity() > keys {
        return GROWING;
    }
    match config.get_fpr() {
        fpr if fpr >= 1.0 / 256.0 => COMPLETE[0],
        fpr if fpr >= 1.0 / 65536.0 => COMPLETE[1],
        _ => COMPLETE[2],
    }
}

/// The kind that suits where none is named, and the keys are too many to be held at a time.
pub(crate) fn default_kind_for_a_stream(config: &Config, number_is_known: bool) -> &'static str {
    match number_is_known || config.get_capacity() > 0 {
        true => GROWING,
        false => ENDLESS,
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
    let name = config.kind().unwrap_or(default_kind(config, keys));
    let config = config.clone().capacity(config.get_capacity().max(keys));
    let filter = tamis::kind(name)?.build(&config, hashes)?;
    Keyed::from_filter(filter, hashing, &config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(config: &Config) -> &'static str {
        let built = build(config, Hashing::default(), &mut vec![1, 2, 3]).unwrap();
        built.filter().name()
    }

    #[test]
    fn a_complete_set_takes_the_smallest_kind_that_reaches_the_rate() {
        let config = Config::new(0);
        assert_eq!(chosen(&config), "binary_fuse8");
        for (fpr, name) in [
            (2f64.powi(-8), "binary_fuse8"),
            (0.001, "binary_fuse16"),
            (1e-9, "binary_fuse32"),
        ] {
            assert_eq!(chosen(&config.clone().fpr(fpr)), name);
        }
    }

    #[test]
    fn room_for_more_keys_takes_a_kind_that_grows() {
        let name = chosen(&Config::new(4));
        assert!(tamis::kind(name).unwrap().capabilities().insert);
        assert_eq!(
            chosen(&Config::new(3)),
            COMPLETE[0],
            "room for these is not more"
        );
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
        let error = build(
            &Config::new(0).fpr(1e-12),
            Hashing::default(),
            &mut vec![1, 2],
        )
        .unwrap_err();
        assert!(matches!(
            error.kind(),
            BuildErrorKind::Unreachable {
                kind: "binary_fuse32",
                ..
            }
        ));
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
