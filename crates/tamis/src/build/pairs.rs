//! Pairs of a hash and a value, from which maps are built.

use crate::error::{BuildError, BuildErrorKind};

/// The position of the first pair of each hash, in the order of the hashes; values are given by
/// position.
///
/// Refuses the first pair, in the order given, whose value differs from that of an earlier pair
/// with the same hash.
pub(crate) fn distinct(
    hashes: &mut dyn Iterator<Item = u64>,
    value: &dyn Fn(usize) -> u64,
) -> Result<Vec<usize>, BuildError> {
    let mut order: Vec<(u64, usize)> = hashes.zip(0..).collect();
    order.sort_unstable();
    let mut conflict: Option<(usize, usize)> = None;
    let mut kept = Vec::new();
    for same in order.chunk_by(|a, b| a.0 == b.0) {
        let (_, first) = same[0];
        let mut later = same[1..].iter().map(|&(_, position)| position);
        if let Some(second) = later.find(|&position| value(position) != value(first))
            && conflict.is_none_or(|(_, least)| second < least)
        {
            conflict = Some((first, second));
        }
        kept.push(first);
    }
    match conflict {
        Some((first, second)) => Err(BuildErrorKind::Conflict { first, second }.into()),
        None => Ok(kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bloomier, Config, Hashing, Held, Keyed, Map, Perfect, Retrieval, math};

    fn of(pairs: &[(u64, u64)]) -> Result<Vec<usize>, BuildError> {
        distinct(&mut pairs.iter().map(|pair| pair.0), &|i| pairs[i].1)
    }

    #[test]
    fn each_hash_is_kept_once_where_it_came_first() {
        assert_eq!(of(&[]).unwrap(), [0; 0]);
        assert_eq!(of(&[(9, 1), (2, 5), (9, 1), (2, 5)]).unwrap(), [1, 0]);
    }

    #[test]
    fn every_map_refuses_a_conflict_by_its_positions() {
        let (config, pairs) = (
            Config::default(),
            [(5, 1), (9, 2), (5, 1), (7, 0), (9, 3), (5, 2)],
        );
        for error in [
            Bloomier::from_pairs(&config, pairs).unwrap_err(),
            Perfect::from_pairs(&config, pairs).unwrap_err(),
            Retrieval::from_pairs(pairs).unwrap_err(),
        ] {
            let (first, second) = (1, 4);
            assert_eq!(error.kind(), &BuildErrorKind::Conflict { first, second });
            assert!(error.to_string().contains("positions 1 and 4"), "{error}");
        }
        let keys = [("a", 1), ("b", 2), ("a", 3)];
        let (first, second) = (0, 2);
        let expected = BuildErrorKind::Conflict { first, second };
        let error = Keyed::<Perfect>::from_pairs(&config, keys).unwrap_err();
        assert_eq!(error.kind(), &expected);
        let error = Keyed::<Bloomier>::from_pairs(&config, keys).unwrap_err();
        assert_eq!(error.kind(), &expected);
    }

    /// Every map of keys answers for them, one by one and in batches, also when it was saved.
    fn answers<M: Map + Held>() {
        for n in [0, 1, 300, 20_000] {
            let config = Config::default().fpr(0.01);
            let secret = Hashing::secret([3; 16]);
            let pairs = (0..n).map(|i| (i, i * i % 1000));
            let map = Keyed::<M>::from_pairs_with(&config, secret, pairs.clone()).unwrap();
            let again = Keyed::<M>::open(map.to_bytes()).unwrap();
            assert!(
                pairs
                    .clone()
                    .all(|(key, value)| map.get(&key) == Some(value))
            );
            let keys: Vec<u64> = (0..n + 2000).collect();
            let mut out = vec![None; keys.len()];
            again.get_batch(&keys, &mut out);
            assert!(
                keys.iter()
                    .zip(&out)
                    .all(|(key, value)| map.get(key) == *value)
            );
            let strange = out[n as usize..].iter().flatten().count() as u64;
            let (low, high) = math::binomial_interval(2000, map.filter().fpr(), 1e-9);
            assert!((low..=high).contains(&strange), "{n} keys: {strange}");
        }
    }

    #[test]
    fn maps_of_keys_have_one_vocabulary() {
        answers::<Bloomier>();
        answers::<Perfect>();
        let mut ages =
            Keyed::<Perfect>::from_pairs(&Config::default(), [("a", 1), ("b", 7)]).unwrap();
        assert!(ages.set("a", 6) && !ages.set("a", 8) && !ages.set("none", 1));
        assert_eq!((ages.get("a"), ages.get("b")), (Some(6), Some(7)));
        assert!(ages.index("a") != ages.index("b") && ages.index("none").is_none());
        assert!(ages.remove("a") && !ages.remove("a") && ages.get("a").is_none());
    }

    #[test]
    fn the_first_conflict_in_the_order_given_is_named() {
        for (pairs, expected) in [
            (&[(5, 1), (5, 1), (5, 2)][..], (0, 2)),
            (&[(9, 1), (9, 2), (1, 1), (1, 2)], (0, 1)),
            (&[(1, 1), (9, 1), (9, 2), (1, 2)], (1, 2)),
        ] {
            let error = of(pairs).unwrap_err();
            let &BuildErrorKind::Conflict { first, second } = error.kind() else {
                panic!("{error}");
            };
            assert_eq!((first, second), expected);
        }
    }
}
