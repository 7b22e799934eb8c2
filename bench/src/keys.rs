//! Keys: one `SplitMix64` stream per round, the same for every subject.
//!
//! The stream is a bijection of a counter, so that keys are distinct, and absent keys (counters of another range) are
//! absent for certain. Its values are uniform: they serve as keys and as hashes alike.

/// One round's keys and the queries about them.
pub(crate) struct Keys {
    /// What the filter is built from; distinct, in random order.
    pub(crate) members: Vec<u64>,
    /// Queries about members, drawn at random.
    pub(crate) present: Vec<u64>,
    /// Queries about others.
    pub(crate) absent: Vec<u64>,
    /// Either, by a fair coin.
    pub(crate) half: Vec<u64>,
    /// How many queries of `half` are about members.
    pub(crate) half_present: u64,
}

impl Keys {
    /// The keys of a round: equal for equal arguments, on every machine.
    pub(crate) fn new(round: u64, members: usize, queries: usize) -> Keys {
        // No round comes near 2³⁸ keys, so these ranges of the counter are disjoint.
        let key = |range: u64, i: usize| splitmix(round << 40 | range << 38 | i as u64);
        let members: Vec<u64> = (0..members).map(|i| key(0, i)).collect();
        let draw = |i| members[fastrange(key(1, i), members.len())];
        let present: Vec<u64> = (0..queries).map(draw).collect();
        let absent: Vec<u64> = (0..queries).map(|i| key(2, i)).collect();
        let coin = |i| key(3, i) >> 63 == 1;
        let either = |i| if coin(i) { present[i] } else { absent[i] };
        let half = (0..queries).map(either).collect();
        let half_present = (0..queries).filter(|&i| coin(i)).count() as u64;
        Keys {
            members,
            present,
            absent,
            half,
            half_present,
        }
    }
}

/// The value of the `SplitMix64` stream at a position.
pub(crate) fn splitmix(position: u64) -> u64 {
    mix(position.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Mixes all bits of a word; a bijection. Also the hash of rivals that hash on their own.
#[inline(always)]
pub(crate) fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Maps a uniform word to `0..n`.
#[inline(always)]
pub(crate) fn fastrange(word: u64, n: usize) -> usize {
    ((u128::from(word) * n as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn absent_keys_are_absent_and_present_ones_present() {
        for round in 0..3 {
            let keys = Keys::new(round, 10_000, 20_000);
            let members: HashSet<u64> = keys.members.iter().copied().collect();
            assert_eq!(members.len(), 10_000, "distinct");
            assert!(keys.present.iter().all(|key| members.contains(key)));
            assert!(!keys.absent.iter().any(|key| members.contains(key)));
            let of_half = keys.half.iter().filter(|key| members.contains(key));
            assert_eq!(of_half.count() as u64, keys.half_present);
        }
    }

    #[test]
    fn rounds_share_no_key() {
        let (a, b) = (Keys::new(0, 1000, 1), Keys::new(1, 1000, 1));
        let a: HashSet<u64> = a.members.into_iter().collect();
        assert!(!b.members.iter().any(|key| a.contains(key)));
    }
}
