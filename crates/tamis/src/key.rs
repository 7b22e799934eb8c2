//! What can be a key, and how a key becomes a hash, the same on every machine and in every language.
//!
//! A key is a string of bytes. Integers are their 64-bit two's-complement value, little-endian, so that `42u8`,
//! `42i32`, `42u64` and Python's `42` are one key; 128-bit integers are their 16 bytes and keys of their own.
//! `std::hash::Hash` is not used: what it feeds a hasher differs between platforms and releases.
//!
//! | [`Hashing`] | function | choose it when |
//! |---|---|---|
//! | [`fast`](Hashing::fast) | XXH3-64 with a seed (0 by default) | the keys are your own: files are reproducible and filters built apart can be merged |
//! | [`secret`](Hashing::secret) | SipHash-1-3 under a 128-bit secret | strangers choose the keys: without the secret nobody can aim at a false positive or fill a bucket on purpose |

use std::fmt;
use std::hash::Hasher;

use siphasher::sip::SipHasher13;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Something that can be looked up in a filter.
///
/// Implemented for strings, byte strings and integers, and for references to them. To use a type of your own, hash a
/// canonical byte form of it:
///
/// ```
/// use tamis::{Hashing, Key};
///
/// struct Ipv4([u8; 4]);
///
/// impl Key for Ipv4 {
///     fn hash_with(&self, hashing: &Hashing) -> u64 {
///         hashing.hash_bytes(&self.0)
///     }
/// }
/// ```
pub trait Key {
    /// The key's 64-bit hash. Equal keys must give equal hashes on every machine.
    fn hash_with(&self, hashing: &Hashing) -> u64;
}

/// How keys are hashed: the function and its seed or secret. Part of a filter's identity, and of its file.
///
/// `Debug` never shows a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hashing(pub(crate) Scheme);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Fast { seed: u64 },
    Secret { key: [u8; 16], withheld: bool },
}

impl Hashing {
    /// XXH3-64 with a seed. Fast, portable, reproducible; not for keys that an adversary chooses.
    pub const fn fast(seed: u64) -> Hashing {
        Hashing(Scheme::Fast { seed })
    }

    /// SipHash-1-3 under a secret of 128 random bits. A filter's file carries the secret, and must then be kept like
    /// one, unless [`withheld`](Hashing::withheld) is called.
    pub const fn secret(key: [u8; 16]) -> Hashing {
        Hashing(Scheme::Secret {
            key,
            withheld: false,
        })
    }

    /// Keeps the secret out of files: they carry only a check value, and opening them needs the same `Hashing`
    /// ([`Open::hashing`](crate::Open::hashing)). No effect on [`fast`](Hashing::fast).
    #[must_use]
    pub const fn withheld(self) -> Hashing {
        match self.0 {
            Scheme::Fast { .. } => self,
            Scheme::Secret { key, .. } => Hashing(Scheme::Secret {
                key,
                withheld: true,
            }),
        }
    }

    /// Hashes a string of bytes.
    #[inline]
    pub fn hash_bytes(&self, bytes: &[u8]) -> u64 {
        match &self.0 {
            Scheme::Fast { seed } => xxh3_64_with_seed(bytes, *seed),
            Scheme::Secret { key, .. } => sip(key, bytes),
        }
    }

    /// The hash of any [`Key`].
    #[inline]
    pub fn hash<K: Key + ?Sized>(&self, key: &K) -> u64 {
        key.hash_with(self)
    }

    /// The name of the hash function.
    pub const fn function(&self) -> &'static str {
        match self.0 {
            Scheme::Fast { .. } => "XXH3-64",
            Scheme::Secret { .. } => "SipHash-1-3",
        }
    }

    /// The seed; `None` where a secret takes its place.
    pub const fn seed(&self) -> Option<u64> {
        match self.0 {
            Scheme::Fast { seed } => Some(seed),
            Scheme::Secret { .. } => None,
        }
    }

    /// Whether two filters hash every key alike. Where the secret is kept plays no part.
    pub fn agrees_with(&self, other: &Hashing) -> bool {
        match (&self.0, &other.0) {
            (Scheme::Fast { seed: a }, Scheme::Fast { seed: b }) => a == b,
            (Scheme::Secret { key: a, .. }, Scheme::Secret { key: b, .. }) => a == b,
            _ => false,
        }
    }

    /// Whether files carry the secret of this hashing, and are to be kept like one.
    pub fn is_in_files(&self) -> bool {
        matches!(
            self.0,
            Scheme::Secret {
                withheld: false,
                ..
            }
        )
    }

    /// What a file states in place of a withheld secret: the hash of a fixed text under the secret's complement, which
    /// is the hash of no key.
    pub(crate) fn check_value(key: &[u8; 16]) -> u64 {
        sip(&key.map(|byte| !byte), b"tamis")
    }
}

fn sip(key: &[u8; 16], bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new_with_key(key);
    hasher.write(bytes);
    hasher.finish()
}

impl Default for Hashing {
    /// [`Hashing::fast`] with seed 0.
    fn default() -> Hashing {
        Hashing::fast(0)
    }
}

impl fmt::Debug for Hashing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Scheme::Fast { seed } => write!(f, "Hashing::fast({seed})"),
            Scheme::Secret {
                withheld: false, ..
            } => f.write_str("Hashing::secret(…)"),
            Scheme::Secret { withheld: true, .. } => f.write_str("Hashing::secret(…).withheld()"),
        }
    }
}

impl Key for [u8] {
    #[inline]
    fn hash_with(&self, hashing: &Hashing) -> u64 {
        hashing.hash_bytes(self)
    }
}

impl Key for str {
    #[inline]
    fn hash_with(&self, hashing: &Hashing) -> u64 {
        hashing.hash_bytes(self.as_bytes())
    }
}

impl Key for String {
    #[inline]
    fn hash_with(&self, hashing: &Hashing) -> u64 {
        hashing.hash_bytes(self.as_bytes())
    }
}

impl Key for Vec<u8> {
    #[inline]
    fn hash_with(&self, hashing: &Hashing) -> u64 {
        hashing.hash_bytes(self)
    }
}

impl<const N: usize> Key for [u8; N] {
    #[inline]
    fn hash_with(&self, hashing: &Hashing) -> u64 {
        hashing.hash_bytes(self)
    }
}

impl<K: Key + ?Sized> Key for &K {
    #[inline]
    fn hash_with(&self, hashing: &Hashing) -> u64 {
        (**self).hash_with(hashing)
    }
}

macro_rules! integer_key {
    ($($t:ty as $canonical:ty),*) => {$(
        impl Key for $t {
            #[inline]
            fn hash_with(&self, hashing: &Hashing) -> u64 {
                hashing.hash_bytes(&(*self as $canonical).to_le_bytes())
            }
        }
    )*};
}
integer_key!(
    u8 as u64,
    u16 as u64,
    u32 as u64,
    u64 as u64,
    usize as u64,
    u128 as u128
);
integer_key!(
    i8 as i64,
    i16 as i64,
    i32 as i64,
    i64 as i64,
    isize as i64,
    i128 as i128
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_is_one_key_whatever_its_type() {
        let h = Hashing::default();
        let expected = h.hash_bytes(&[42, 0, 0, 0, 0, 0, 0, 0]);
        assert!(
            [
                h.hash(&42u8),
                h.hash(&42i16),
                h.hash(&42u32),
                h.hash(&42i64),
                h.hash(&42usize)
            ]
            .iter()
            .all(|&x| x == expected)
        );
        assert_eq!(
            h.hash(&-1i8),
            h.hash(&u64::MAX),
            "two's complement, extended by sign"
        );
        assert_ne!(h.hash(&42u128), expected, "16 bytes are another key");
    }

    #[test]
    fn text_and_its_bytes_are_one_key() {
        let h = Hashing::fast(7);
        let hashes = [
            h.hash("key"),
            h.hash(&"key"),
            h.hash(&"key".to_string()),
            h.hash(b"key"),
            h.hash(&b"key"[..]),
            h.hash(&b"key".to_vec()),
        ];
        assert!(hashes.iter().all(|&x| x == hashes[0]));
    }

    #[test]
    fn xxh3_is_the_function_that_other_languages_have() {
        // From Python's binding of the reference implementation, one for each of the function's length classes.
        let text: Vec<u8> = (0..=255).chain(0..=255).collect();
        for (key, seed_0, seed_7) in [
            (&b""[..], 0x2D06_8005_38D3_94C2, None),
            (b"a", 0xE6C6_32B6_1E96_4E1F, Some(0x9ED5_888B_C5A2_A094)),
            (b"tamis", 0x059D_E48C_2AA7_E0BC, Some(0x0F50_D60C_7767_F2FD)),
            (
                b"0123456789abcdef",
                0x6443_9946_D8FA_212D,
                Some(0xB5C9_AA9D_3EBD_6770),
            ),
            (
                &text[..100],
                0x004E_4F92_1A64_BD1C,
                Some(0xF99B_7990_5A88_DC51),
            ),
            (
                &text[..],
                0x1059_105A_D19B_FA09,
                Some(0x8238_1142_F370_3860),
            ),
        ] {
            assert_eq!(Hashing::fast(0).hash(key), seed_0);
            assert!(seed_7.is_none_or(|expected| Hashing::fast(7).hash(key) == expected));
        }
    }

    #[test]
    fn the_seed_and_the_secret_change_the_hash() {
        let hashes = [
            Hashing::fast(0).hash("a"),
            Hashing::fast(1).hash("a"),
            Hashing::secret([0; 16]).hash("a"),
            Hashing::secret([1; 16]).hash("a"),
        ];
        for i in 0..4 {
            assert!(!hashes[..i].contains(&hashes[i]));
        }
    }

    #[test]
    fn a_seed_is_told_and_a_secret_is_not() {
        assert_eq!(Hashing::fast(7).seed(), Some(7));
        assert_eq!(Hashing::secret([7; 16]).seed(), None);
        assert_ne!(
            Hashing::fast(0).function(),
            Hashing::secret([0; 16]).function()
        );
    }

    #[test]
    fn debug_keeps_the_secret() {
        let shown = format!("{:?}", Hashing::secret(*b"0123456789abcdef"));
        assert!(!shown.contains("48") && !shown.contains("0123"), "{shown}");
    }
}
