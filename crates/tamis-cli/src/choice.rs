//! Making a filter from hashes, of the kind asked for or of one that suits.

use tamis::{AnyFilter, BuildError, BuildErrorKind, Config, Hashing, Keyed};

/// For a set that is complete, by falling rate: small, and fast to look up.
const COMPLETE: [&str; 3] = ["binary_fuse8", "binary_fuse16", "binary_fuse32"];
/// For a set that is to grow: the fastest that takes insertions.
const GROWING: &str = "split_block";

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

/// Builds a filter that holds the hashes, each once; they are sorted, and repeats dropped. So the same set makes the
/// same file whatever the order of its keys, and repeated keys take no room.
///
/// Room is made for the configuration's capacity if that is more. Where the configuration names no kind, that is taken
/// as a wish to insert more keys later, so the filter is one that can.
pub(crate) fn build(
    config: &Config,
    hashing: Hashing,
    hashes: &mut Vec<u64>,
) -> Result<Keyed<AnyFilter>, BuildError> {
    hashes.sort_unstable();
    hashes.dedup();
    let keys = hashes.len() as u64;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let config = config
        .clone()
        .capacity(config.get_capacity().max(keys))
        .threads(threads);
    let filter = match config.kind() {
        Some(name) => tamis::kind(name)?.build(&config, hashes),
        None if config.get_capacity() > keys => tamis::kind(GROWING)?.build(&config, hashes),
        None => first_that_reaches_the_rate(&config, hashes),
    };
    Keyed::from_filter(filter?, hashing, &config)
}

fn first_that_reaches_the_rate(
    config: &Config,
    hashes: &mut [u64],
) -> Result<AnyFilter, BuildError> {
    let [first, others @ ..] = COMPLETE;
    let mut result = tamis::kind(first)?.build(config, hashes);
    for name in others {
        match &result {
            Err(e) if matches!(e.kind(), BuildErrorKind::Unreachable { .. }) => {
                result = tamis::kind(name)?.build(config, hashes);
            }
            _ => break,
        }
    }
    result
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
