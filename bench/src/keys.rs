//! Keys: one `SplitMix64` stream per round, the same for every subject.
//!
//! The stream is a bijection of a counter, so that keys are distinct, and absent keys (counters
//! of another range) are absent for certain. Its values are uniform: they serve as keys and as
//! hashes alike. A string is made of a value of the stream, which it spells out, so strings are
//! as distinct as the values.

/// What type the keys have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum KeyType {
    /// Uniform words, which serve as hashes as they are.
    #[default]
    U64,
    /// Strings of 20 to 40 bytes.
    Strings,
}

impl KeyType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            KeyType::U64 => "u64",
            KeyType::Strings => "strings",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<KeyType> {
        let all = [KeyType::U64, KeyType::Strings].into_iter();
        all.into_iter().find(|keys| keys.name() == name)
    }
}

/// Strings, one behind the other.
#[derive(Default)]
pub(crate) struct Strings {
    bytes: Vec<u8>,
    /// Where each starts, and where the last one ends.
    starts: Vec<usize>,
}

impl Strings {
    /// A string for each value: its 16 hexadecimal digits, and 4 to 24 letters that depend on it.
    fn of(values: &[u64]) -> Strings {
        let mut bytes = Vec::with_capacity(values.len() * 31);
        let mut starts = Vec::with_capacity(values.len() + 1);
        starts.push(0);
        for &value in values {
            for digit in 0..16 {
                bytes.push(b"0123456789abcdef"[(value >> (4 * digit)) as usize & 15]);
            }
            let mut letters = mix(value);
            for _ in 0..4 + fastrange(letters, 21) {
                bytes.push(b'a' + (letters % 26) as u8);
                letters = letters.rotate_left(7).wrapping_add(value);
            }
            starts.push(bytes.len());
        }
        Strings { bytes, starts }
    }
}

/// Keys to look up: a view of words or of strings.
#[derive(Clone, Copy)]
pub(crate) enum Ask<'a> {
    Words(&'a [u64]),
    Strings(Texts<'a>),
}

/// A view of some [`Strings`].
#[derive(Clone, Copy)]
pub(crate) struct Texts<'a> {
    bytes: &'a [u8],
    starts: &'a [usize],
}

impl<'a> Texts<'a> {
    #[inline(always)]
    pub(crate) fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        self.starts
            .windows(2)
            .map(move |at| &self.bytes[at[0]..at[1]])
    }
}

impl<'a> Ask<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Ask::Words(words) => words.len(),
            Ask::Strings(texts) => texts.starts.len().saturating_sub(1),
        }
    }

    /// Parts of this many keys, the last one perhaps fewer.
    pub(crate) fn chunks(self, size: usize) -> impl Iterator<Item = Ask<'a>> {
        (0..self.len()).step_by(size.max(1)).map(move |from| {
            let to = (from + size.max(1)).min(self.len());
            match self {
                Ask::Words(words) => Ask::Words(&words[from..to]),
                Ask::Strings(Texts { bytes, starts }) => Ask::Strings(Texts {
                    bytes,
                    starts: &starts[from..=to],
                }),
            }
        })
    }
}

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
    /// The same four as strings, where strings are the keys.
    strings: Option<[Strings; 4]>,
}

impl Keys {
    /// The keys of a round: equal for equal arguments, on every machine.
    pub(crate) fn new(keys: KeyType, round: u64, members: usize, queries: usize) -> Keys {
        // No round comes near 2³⁸ keys, so these ranges of the counter are disjoint.
        let key = |range: u64, i: usize| splitmix(round << 40 | range << 38 | i as u64);
        let members: Vec<u64> = (0..members).map(|i| key(0, i)).collect();
        let draw = |i| members[fastrange(key(1, i), members.len())];
        let present: Vec<u64> = (0..queries).map(draw).collect();
        let absent: Vec<u64> = (0..queries).map(|i| key(2, i)).collect();
        let coin = |i| key(3, i) >> 63 == 1;
        let either = |i| if coin(i) { present[i] } else { absent[i] };
        let half: Vec<u64> = (0..queries).map(either).collect();
        let half_present = (0..queries).filter(|&i| coin(i)).count() as u64;
        let strings = match keys {
            KeyType::U64 => None,
            KeyType::Strings => Some([&members, &present, &absent, &half].map(|v| Strings::of(v))),
        };
        Keys {
            members,
            present,
            absent,
            half,
            half_present,
            strings,
        }
    }

    /// Members, present, absent and half, as the filter's user has them.
    pub(crate) fn as_given(&self) -> [Ask<'_>; 4] {
        match &self.strings {
            None => [&self.members, &self.present, &self.absent, &self.half].map(|w| Ask::Words(w)),
            Some(strings) => strings.each_ref().map(|strings| {
                Ask::Strings(Texts {
                    bytes: &strings.bytes,
                    starts: &strings.starts,
                })
            }),
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
            let keys = Keys::new(KeyType::U64, round, 10_000, 20_000);
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
        let [a, b] = [0, 1].map(|round| Keys::new(KeyType::U64, round, 1000, 1));
        let a: HashSet<u64> = a.members.into_iter().collect();
        assert!(!b.members.iter().any(|key| a.contains(key)));
    }

    #[test]
    fn strings_are_20_to_40_bytes_and_as_distinct_as_the_words() {
        let keys = Keys::new(KeyType::Strings, 0, 10_000, 100);
        let [Ask::Strings(members), Ask::Strings(present), _, half] = keys.as_given() else {
            unreachable!("strings were asked for");
        };
        let distinct: HashSet<&[u8]> = members.iter().collect();
        let lengths: HashSet<usize> = members.iter().map(<[u8]>::len).collect();
        assert_eq!(distinct.len(), 10_000);
        assert!(present.iter().all(|key| distinct.contains(key)));
        assert_eq!(lengths, (20..=40).collect(), "every length occurs");
        let parts: Vec<usize> = half.chunks(33).map(Ask::len).collect();
        assert_eq!(parts, [33, 33, 33, 1]);
        let of_parts = half.chunks(33).flat_map(|part| match part {
            Ask::Strings(texts) => texts.iter(),
            Ask::Words(_) => unreachable!("parts of strings are strings"),
        });
        let Ask::Strings(whole) = half else {
            unreachable!()
        };
        assert!(of_parts.eq(whole.iter()));
    }
}
