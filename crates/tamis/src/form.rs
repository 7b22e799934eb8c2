//! `KeyForm`: what a filter remembers of the way its keys are written.
//!
//! A filter of hashes cannot tell what its keys were. Whoever asks it with a digest's 64 letters,
//! where it was filled with the 32 bytes that they stand for, is told "no" for every key. So a file
//! has room for a note, which whoever reads keys from text heeds: the program does. The library
//! carries it through opening, saving, halving and merging, and hashes keys as it is given them.

use std::fmt;
use std::num::NonZeroU16;

use crate::error::{DecodeError, DecodeErrorKind, MergeError, MergeErrorKind};

/// How the keys of a filter are written in the data that they come from; `docs/KEYS.md` has the
/// key's bytes for each. Filters that differ in this do not merge.
///
/// ```
/// use tamis::{Bloom, Config, KeyForm, Keyed};
///
/// let digest = [0xCA, 0xFE];
/// let digests: Keyed<Bloom> = Keyed::build(&Config::default(), [digest])?;
/// let digests = digests.with_key_form(KeyForm::Hex);
///
/// // `tamis check` reads `cafe` as two bytes now, without being told.
/// let again: Keyed<Bloom> = Keyed::open(digests.to_bytes())?;
/// assert_eq!(again.key_form(), KeyForm::Hex);
/// assert!(again.contains(&digest));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyForm {
    /// The key itself, or nobody has said: as in every file that the library makes by itself.
    #[default]
    Plain,
    /// Text whose letters are made small.
    Lowercase,
    /// The bytes that hexadecimal digits stand for.
    Hex,
    /// A whole number in decimal digits.
    Int,
    /// So many bases of a sequence in a row, or their reverse complement.
    Kmer(NonZeroU16),
}

impl KeyForm {
    /// Its name for programs and, of k-mers, K. As text it is for people.
    pub fn name(self) -> (&'static str, Option<u16>) {
        match self {
            KeyForm::Plain => ("plain", None),
            KeyForm::Lowercase => ("lowercase", None),
            KeyForm::Hex => ("hex", None),
            KeyForm::Int => ("int", None),
            KeyForm::Kmer(k) => ("kmer", Some(k.get())),
        }
    }

    /// Refuses to merge filters whose keys are written differently.
    pub(crate) fn merges_with(self, theirs: KeyForm) -> Result<(), MergeError> {
        match self == theirs {
            true => Ok(()),
            false => Err(MergeErrorKind::KeyForm { ours: self, theirs }.into()),
        }
    }

    /// The header's fields: the form's number, and K.
    pub(crate) fn encode(self) -> (u16, u16) {
        match self {
            KeyForm::Plain => (0, 0),
            KeyForm::Lowercase => (1, 0),
            KeyForm::Hex => (2, 0),
            KeyForm::Int => (3, 0),
            KeyForm::Kmer(k) => (4, k.get()),
        }
    }

    /// Reads them. A form that is not known is refused: keys read in another would not be found.
    pub(crate) fn decode(number: u16, k: u16) -> Result<KeyForm, DecodeError> {
        let bases = |expected| {
            Err(DecodeError::invalid(
                "the bases of a k-mer",
                k.into(),
                expected,
            ))
        };
        match (number, NonZeroU16::new(k)) {
            (4, Some(k)) => Ok(KeyForm::Kmer(k)),
            (4, None) => bases("1 or more"),
            (5.., _) => Err(DecodeErrorKind::UnknownKeyForm(number).into()),
            (_, Some(_)) => bases("0, as the keys are no k-mers"),
            (0, None) => Ok(KeyForm::Plain),
            (1, None) => Ok(KeyForm::Lowercase),
            (2, None) => Ok(KeyForm::Hex),
            (3, None) => Ok(KeyForm::Int),
        }
    }
}

/// The most bytes that the name of a field has.
pub(crate) const LONGEST_FIELD: usize = 1024;

/// Whether a file has room for this as the field that its keys came from. Programs print it, so
/// that no character in it may command a terminal.
pub(crate) fn is_field(name: &str) -> bool {
    (1..=LONGEST_FIELD).contains(&name.len()) && !name.chars().any(char::is_control)
}

/// Reads the field's name, of which no bytes are none.
pub(crate) fn decode_field(bytes: &[u8]) -> Result<Option<Box<str>>, DecodeError> {
    match std::str::from_utf8(bytes) {
        Ok("") => Ok(None),
        Ok(name) if is_field(name) => Ok(Some(name.into())),
        _ => Err(DecodeError::invalid(
            "the name of the keys' field (bytes)",
            bytes.len() as u64,
            format!("text of at most {LONGEST_FIELD} bytes, without control characters"),
        )),
    }
}

impl fmt::Display for KeyForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyForm::Plain => f.write_str("keys as they are"),
            KeyForm::Lowercase => f.write_str("text in small letters"),
            KeyForm::Hex => f.write_str("hexadecimal digits"),
            KeyForm::Int => f.write_str("whole numbers"),
            KeyForm::Kmer(k) => write!(f, "k-mers of {k} bases"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_it_was_written_and_every_other_number_is_refused() {
        let k = NonZeroU16::new(31).unwrap();
        let forms = [
            KeyForm::Plain,
            KeyForm::Lowercase,
            KeyForm::Hex,
            KeyForm::Int,
            KeyForm::Kmer(k),
        ];
        for (number, form) in forms.into_iter().enumerate() {
            let (encoded, k) = form.encode();
            assert_eq!(usize::from(encoded), number);
            assert_eq!(KeyForm::decode(encoded, k).unwrap(), form);
            let told = KeyForm::decode(encoded, 31 - k).unwrap_err().to_string();
            assert!(told.contains("k-mer"), "{told}");
        }
        for unknown in [5, 256, u16::MAX] {
            for k in [0, 31] {
                let told = KeyForm::decode(unknown, k).unwrap_err().to_string();
                assert!(told.contains("newer tamis"), "{told}");
            }
        }
    }
}
