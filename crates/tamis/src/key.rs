//! What can be a key, and how a key becomes a hash, the same on every machine and in every
//! language.
//!
//! A key is a string of bytes. `std::hash::Hash` is not used: what it feeds a hasher differs
//! between platforms and releases. `docs/KEYS.md` says the same for other languages:
//!
//! | type | its bytes |
//! |---|---|
//! | `str`, `String`, `Cow<str>` | its UTF-8 |
//! | `[u8]`, `Vec<u8>`, `[u8; N]`, `Cow<[u8]>` | themselves |
//! | integers of up to 64 bits | the two's-complement value in 8 bytes, little-endian: `42u8`, `42i32` and Python's `42` are one key |
//! | `u128`, `i128` | 16 bytes, little-endian; keys of their own |
//! | `Ipv4Addr`, `Ipv6Addr`, `IpAddr` | the 4 or 16 octets, in network order |
//! | `OsStr`, `Path` and their owned forms | the system's bytes: on Unix as they are, elsewhere UTF-8 with lone surrogates kept (WTF-8) |
//! | tuples of 2 to 4 keys | the hashes of the parts, 8 bytes each, little-endian |
//! | `&K`, `Box<K>`, `Rc<K>`, `Arc<K>` | those of `K` |
//!
//! A tuple is hashed part by part, so that `("a", "bc")` and `("ab", "c")` are two keys. A list
//! of keys has no such form and is no key. Nor are `bool`, `char` and floating-point numbers:
//! there is more than one way to write each in bytes.
//!
//! | [`Hashing`] | function | choose it when |
//! |---|---|---|
//! | [`fast`](Hashing::fast) | XXH3-64 with a seed (0 by default) | the keys are your own: files are reproducible and filters built apart can be merged |
//! | [`universal`](Hashing::universal) | one of a [`Family`] with a proof | a theorem is to hold: see there what it does not promise |
//! | [`secret`](Hashing::secret) | SipHash-1-3 under a 128-bit secret | strangers choose the keys: without the secret nobody can aim at a false positive or fill a bucket on purpose |

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::hash::Hasher;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use siphasher::sip::SipHasher13;
use xxhash_rust::xxh3::xxh3_64_with_seed;

mod universal;

pub use universal::Family;

/// Something that can be looked up in a filter.
///
/// Implemented for text, bytes, integers, addresses, paths and tuples of these, owned or
/// borrowed:
///
/// ```
/// use std::net::Ipv4Addr;
/// use std::path::Path;
/// use tamis::{Config, Cuckoo, Keyed};
///
/// let mut seen: Keyed<Cuckoo> = Keyed::new(&Config::new(1000))?;
/// seen.insert("alice")?;
/// seen.insert(&42)?;
/// seen.insert(&Ipv4Addr::LOCALHOST)?;
/// seen.insert(Path::new("/etc/hosts"))?;
/// seen.insert(&("alice", 42))?;
/// assert!(seen.contains(&("alice", 42u8)));
/// assert!(!seen.contains(&("alice", 43)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// To use a type of your own, hash a canonical byte form of it, or a tuple of its fields:
///
/// ```
/// use tamis::{Hashing, Key};
///
/// struct Visit {
///     user: String,
///     day: u32,
/// }
///
/// impl Key for Visit {
///     fn hash_with(&self, hashing: &Hashing) -> u64 {
///         (&self.user, self.day).hash_with(hashing)
///     }
/// }
///
/// let visit = Visit { user: "alice".into(), day: 7 };
/// let hashing = Hashing::default();
/// assert_eq!(hashing.hash(&visit), hashing.hash(&("alice", 7)));
/// ```
pub trait Key {
    /// The key's 64-bit hash. Equal keys must give equal hashes on every machine.
    fn hash_with(&self, hashing: &Hashing) -> u64;
}

/// How keys are hashed: the function and its seed or secret. Part of a filter's identity, and of
/// its file.
///
/// `Debug` never shows a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Hashing(pub(crate) Scheme);

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Fast { seed: u64 },
    Universal { family: Family, seed: u64 },
    Secret { key: [u8; 16], withheld: bool },
}

impl Hashing {
    /// XXH3-64 with a seed. Fast, portable, reproducible; not for keys that an adversary chooses.
    pub const fn fast(seed: u64) -> Hashing {
        Hashing(Scheme::Fast { seed })
    }

    /// The function of a seed in a family of which something is proved, for the mean over all its
    /// functions. Draw the seed at random; [`Family`] has the bounds, and keys on which single
    /// functions fail.
    pub const fn universal(family: Family, seed: u64) -> Hashing {
        Hashing(Scheme::Universal { family, seed })
    }

    /// SipHash-1-3 under a secret of 128 random bits. A filter's file carries the secret, and
    /// must then be kept like one, unless [`withheld`](Hashing::withheld) is called.
    pub const fn secret(key: [u8; 16]) -> Hashing {
        Hashing(Scheme::Secret {
            key,
            withheld: false,
        })
    }

    /// SipHash-1-3 under a fresh secret from the operating system, for keys that strangers
    /// choose. Each call draws another, so filters that are to be merged must share one.
    ///
    /// ```
    /// use tamis::{Bloom, Config, Hashing, Keyed};
    ///
    /// let hashing = Hashing::random()?;
    /// let names: Keyed<Bloom> = Keyed::build_with(&Config::default(), hashing, ["alice", "bob"])?;
    /// assert!(names.contains("alice"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The system's own, where it has no random numbers to give.
    pub fn random() -> io::Result<Hashing> {
        let mut key = [0; 16];
        getrandom::fill(&mut key)?;
        Ok(Hashing::secret(key))
    }

    /// Keeps the secret out of files: they carry only a check value, and opening them needs the
    /// same `Hashing` ([`Open::hashing`](crate::Open::hashing)). No effect where there is none.
    #[must_use]
    pub const fn withheld(self) -> Hashing {
        match self.0 {
            Scheme::Fast { .. } | Scheme::Universal { .. } => self,
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
            Scheme::Universal { family, seed } => family.hash_bytes(*seed, bytes),
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
            Scheme::Universal { family, .. } => family.name(),
            Scheme::Secret { .. } => "SipHash-1-3",
        }
    }

    /// The seed; `None` where a secret takes its place.
    pub const fn seed(&self) -> Option<u64> {
        match self.0 {
            Scheme::Fast { seed } | Scheme::Universal { seed, .. } => Some(seed),
            Scheme::Secret { .. } => None,
        }
    }

    /// Whether two filters hash every key alike. Where the secret is kept plays no part.
    pub fn agrees_with(&self, other: &Hashing) -> bool {
        match (&self.0, &other.0) {
            (Scheme::Fast { seed: a }, Scheme::Fast { seed: b }) => a == b,
            (Scheme::Secret { key: a, .. }, Scheme::Secret { key: b, .. }) => a == b,
            (a @ Scheme::Universal { .. }, b) => a == b,
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

    /// What a file states in place of a withheld secret: the hash of a fixed text under the
    /// secret's complement, which is the hash of no key.
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
            Scheme::Universal { family, seed } => {
                write!(f, "Hashing::universal(Family::{family:?}, {seed})")
            }
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

/// Keys that hold another and are that key.
macro_rules! pointer_key {
    ($($t:ty),*) => {$(
        impl<K: Key + ?Sized> Key for $t {
            #[inline]
            fn hash_with(&self, hashing: &Hashing) -> u64 {
                (**self).hash_with(hashing)
            }
        }
    )*};
}
pointer_key!(&K, &mut K, Box<K>, Rc<K>, Arc<K>);

impl<K: Key + ToOwned + ?Sized> Key for Cow<'_, K> {
    #[inline]
    fn hash_with(&self, hashing: &Hashing) -> u64 {
        (**self).hash_with(hashing)
    }
}

impl Key for OsStr {
    #[inline]
    fn hash_with(&self, hashing: &Hashing) -> u64 {
        hashing.hash_bytes(self.as_encoded_bytes())
    }
}

impl Key for OsString {
    #[inline]
    fn hash_with(&self, hashing: &Hashing) -> u64 {
        self.as_os_str().hash_with(hashing)
    }
}

/// The bytes of the path as it is written: `a//b` and `a/b` are two keys.
impl Key for Path {
    #[inline]
    fn hash_with(&self, hashing: &Hashing) -> u64 {
        self.as_os_str().hash_with(hashing)
    }
}

impl Key for PathBuf {
    #[inline]
    fn hash_with(&self, hashing: &Hashing) -> u64 {
        self.as_os_str().hash_with(hashing)
    }
}

impl Key for Ipv4Addr {
    #[inline]
    fn hash_with(&self, hashing: &Hashing) -> u64 {
        hashing.hash_bytes(&self.octets())
    }
}

impl Key for Ipv6Addr {
    #[inline]
    fn hash_with(&self, hashing: &Hashing) -> u64 {
        hashing.hash_bytes(&self.octets())
    }
}

impl Key for IpAddr {
    #[inline]
    fn hash_with(&self, hashing: &Hashing) -> u64 {
        match self {
            IpAddr::V4(address) => address.hash_with(hashing),
            IpAddr::V6(address) => address.hash_with(hashing),
        }
    }
}

macro_rules! tuple_key {
    ($($name:ident)+) => {
        /// Hashes the hashes of the parts, 8 bytes each, little-endian.
        impl<$($name: Key),+> Key for ($($name,)+) {
            #[inline]
            #[allow(non_snake_case, reason = "a part is called like its type")]
            fn hash_with(&self, hashing: &Hashing) -> u64 {
                let ($($name,)+) = self;
                let parts = [$($name.hash_with(hashing).to_le_bytes()),+];
                hashing.hash_bytes(parts.as_flattened())
            }
        }
    };
}
tuple_key!(A B);
tuple_key!(A B C);
tuple_key!(A B C D);

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
        // From Python's binding of the reference implementation, one for each of the function's
        // length classes.
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
    fn what_holds_a_key_is_that_key() {
        let h = Hashing::fast(7);
        let expected = h.hash("key");
        let texts = [
            h.hash(&Box::<str>::from("key")),
            h.hash(&Rc::<str>::from("key")),
            h.hash(&Arc::new("key".to_string())),
            h.hash(&Cow::Borrowed("key")),
            h.hash(&Cow::<str>::Owned("key".into())),
            h.hash(&Cow::Borrowed(&b"key"[..])),
            h.hash(OsStr::new("key")),
            h.hash(&OsString::from("key")),
            h.hash(Path::new("key")),
            h.hash(&PathBuf::from("key")),
        ];
        assert_eq!(texts, [expected; 10]);
        assert_eq!(h.hash(&Box::new(42u8)), h.hash(&42));
    }

    #[cfg(unix)]
    #[test]
    fn a_path_need_not_be_text() {
        use std::os::unix::ffi::OsStrExt;
        let (h, bytes) = (Hashing::default(), b"/tmp/\xFF\xFE");
        assert_eq!(h.hash(Path::new(OsStr::from_bytes(bytes))), h.hash(bytes));
    }

    #[test]
    fn an_address_is_its_octets() {
        let h = Hashing::default();
        let (v4, v6) = (Ipv4Addr::new(192, 0, 2, 1), Ipv6Addr::LOCALHOST);
        assert_eq!(h.hash(&v4), h.hash(&[192, 0, 2, 1u8]));
        assert_eq!(h.hash(&v6), h.hash(&1u128.to_be_bytes()));
        assert_eq!(h.hash(&IpAddr::V4(v4)), h.hash(&v4));
        assert_eq!(h.hash(&IpAddr::V6(v6)), h.hash(&v6));
        assert_ne!(h.hash(&v4), h.hash(&v4.to_ipv6_mapped()), "two keys");
    }

    #[test]
    fn the_parts_of_a_tuple_keep_their_bounds() {
        for h in [Hashing::default(), Hashing::secret([7; 16])] {
            assert_ne!(h.hash(&("a", "bc")), h.hash(&("ab", "c")));
            assert_ne!(h.hash(&("a", "b")), h.hash(&("b", "a")));
            assert_ne!(h.hash(&(1, 2, 3)), h.hash(&((1, 2), 3)));
            assert_eq!(h.hash(&("a", 1)), h.hash(&("a".to_string(), 1u8)));
            let parts = [h.hash("a"), h.hash(&1)].map(u64::to_le_bytes);
            assert_eq!(h.hash(&("a", 1)), h.hash_bytes(parts.as_flattened()));
        }
    }

    #[test]
    fn tuples_and_addresses_hash_as_in_other_languages() {
        // As `KEYS` in tests/reader.py.
        let octets = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
        let hashes = |h: Hashing| {
            [
                h.hash(&-1),
                h.hash(&Ipv4Addr::LOCALHOST),
                h.hash(&octets),
                h.hash(&("a", "bc")),
                h.hash(&("alice", 42, b"\0")),
                h.hash(&(1, 2, 3, 4)),
                h.hash(&("a", ("b", "c"))),
            ]
        };
        let xxh3 = [
            0x5111_C7E4_7D78_4413,
            0xAB57_9567_62B0_28C1,
            0x275C_8FA5_8C2D_19A0,
            0x14B6_B905_EE69_2897,
            0x16E6_CDFC_7FC0_85FF,
            0xE4D6_DCE6_74D8_EB5C,
            0x0CA9_D4E6_1478_ED97,
        ];
        assert_eq!(hashes(Hashing::fast(0)), xxh3);
        let siphash = [
            0x823F_3073_1145_3347,
            0xEB5B_87B8_FC21_4947,
            0x1B55_009D_1F66_1474,
            0x9818_1BB9_37AD_6D95,
            0xD09A_F539_35CE_5E60,
            0x5BF6_D535_7B5A_5ACF,
            0x5344_3DF5_FA1C_366D,
        ];
        let secret = std::array::from_fn(|i| i as u8);
        assert_eq!(hashes(Hashing::secret(secret)), siphash);
    }

    #[test]
    fn a_random_secret_is_drawn_anew() {
        let [a, b] = [Hashing::random().unwrap(), Hashing::random().unwrap()];
        assert!(!a.agrees_with(&b) && a.seed().is_none() && a.is_in_files());
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
