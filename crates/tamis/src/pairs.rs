//! Pairs of a hash and a value, from which maps are built.

use crate::error::{BuildError, BuildErrorKind};

/// The position of the first pair of each hash, in the order of the hashes. Pairs are given by position.
///
/// Refuses the first pair in the order given that has another value than an earlier one of its hash.
pub(crate) fn distinct(
    len: usize,
    hash: impl Fn(usize) -> u64,
    value: impl Fn(usize) -> u64,
) -> Result<Vec<usize>, BuildError> {
    let mut order: Vec<usize> = (0..len).collect();
    order.sort_unstable_by_key(|&position| (hash(position), position));
    let mut conflict: Option<(usize, usize)> = None;
    let mut kept = Vec::new();
    for same in order.chunk_by(|&a, &b| hash(a) == hash(b)) {
        let first = same[0];
        let other = |&&position: &&usize| value(position) != value(first);
        if let Some(&second) = same.iter().find(other)
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

    fn of(pairs: &[(u64, u64)]) -> Result<Vec<usize>, BuildError> {
        distinct(pairs.len(), |i| pairs[i].0, |i| pairs[i].1)
    }

    #[test]
    fn each_hash_is_kept_once_where_it_came_first() {
        assert_eq!(of(&[]).unwrap(), [0; 0]);
        assert_eq!(of(&[(9, 1), (2, 5), (9, 1), (2, 5)]).unwrap(), [1, 0]);
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
