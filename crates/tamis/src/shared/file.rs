//! The file of a filter that threads share: the files of its shards, one after another.
//!
//! ```text
//!   signature │ shards │ capacity │ length │ file of shard 0 │ length │ file of shard 1 │ … │ sum
//! ```
//!
//! `docs/FORMAT.md` §4.4 is the normative description.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use super::{MOST_SHARDS, Shared, room};
use crate::buf::Bytes;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::file::{Open, Place};
use crate::filter::Kind;
use crate::form::KeyForm;
use crate::format::SHARED;
use crate::keyed::Keyed;

/// The signature, the number of shards and the capacity.
const HEAD: usize = 24;
/// The signature as a number.
const SEED: u64 = u64::from_le_bytes(SHARED);

impl<F: Kind> Shared<F> {
    /// Loads a file that [`save`](Shared::save) wrote, verifying everything.
    /// [`Open::load_shared`] takes the secret of one that has none.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the file cannot be read or is not exactly what a writer produces. It
    /// names the path.
    pub fn load(path: impl AsRef<Path>) -> Result<Shared<F>, DecodeError> {
        Open::new().load_shared(path)
    }

    /// Opens a filter from the bytes of its file, verifying everything.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] when the bytes are not exactly what a writer produces.
    pub fn open(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Shared<F>, DecodeError> {
        Open::new().shared_bytes(bytes)
    }

    /// Saves the filter as it is at one moment, while others go on; replaces a file of that name at
    /// once and wholly, or not at all, as [`Keyed::save`] does.
    ///
    /// # Errors
    ///
    /// As [`Keyed::save`].
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let private = self.hashing.is_in_files();
        Place::at(path.as_ref())?.replace(private, |out| self.write_to(out))
    }

    /// Writes the file of this moment to any sink: a socket, a pipe, a `Vec<u8>`.
    ///
    /// # Errors
    ///
    /// The sink's own.
    pub fn write_to(&self, out: impl Write) -> io::Result<()> {
        let mut out = Summed {
            out,
            sum: Xxh3::with_seed(SEED),
        };
        let filters = self.shards.frozen();
        out.write_all(&SHARED)?;
        out.write_all(&(filters.len() as u64).to_le_bytes())?;
        out.write_all(&self.capacity.to_le_bytes())?;
        for filter in filters {
            let shard = Keyed {
                filter,
                hashing: self.hashing,
                capacity: room(self.capacity, self.shards.len()),
                fpr: self.fpr,
                key_form: KeyForm::default(),
                key_field: None,
            };
            out.write_all(&shard.file_len().to_le_bytes())?;
            shard.write_to(&mut out)?;
        }
        let sum = out.sum.digest();
        out.out.write_all(&sum.to_le_bytes())
    }

    /// The file of this moment, as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self.write_to(&mut bytes) {
            Ok(()) => bytes,
            Err(_) => unreachable!("writing to memory does not fail"),
        }
    }
}

/// Filters that threads share.
impl Open {
    /// Loads the file of a filter that threads share; what was said of verifying and owning does
    /// not matter, as all is verified and copied.
    ///
    /// # Errors
    ///
    /// As [`Shared::load`].
    pub fn load_shared<F: Kind>(&self, path: impl AsRef<Path>) -> Result<Shared<F>, DecodeError> {
        let path = path.as_ref();
        let read = || {
            let mut bytes = Vec::new();
            std::fs::File::open(path)?.read_to_end(&mut bytes)?;
            self.shared_bytes(bytes)
        };
        read().map_err(|e: DecodeError| e.at(path))
    }

    /// Opens a filter that threads share from the bytes of its file; as
    /// [`load_shared`](Open::load_shared).
    ///
    /// # Errors
    ///
    /// As [`Shared::open`].
    pub fn shared_bytes<F: Kind>(
        &self,
        bytes: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> Result<Shared<F>, DecodeError> {
        decode(&(Arc::new(bytes) as Bytes), &self.verify(true).owned(true))
    }
}

fn decode<F: Kind>(owner: &Bytes, open: &Open) -> Result<Shared<F>, DecodeError> {
    let bytes: &[u8] = (**owner).as_ref();
    if !bytes.starts_with(&SHARED) {
        return Err(DecodeErrorKind::NotAFilter.into());
    }
    let got = bytes.len() as u64;
    let short = |expected: u64| DecodeError::from(DecodeErrorKind::Length { expected, got });
    let whole = bytes.split_last_chunk::<8>();
    let (body, sum) = whole
        .filter(|(body, _)| body.len() >= HEAD)
        .ok_or_else(|| short(HEAD as u64 + 8))?;
    if xxh3_64_with_seed(body, SEED) != u64::from_le_bytes(*sum) {
        let (part, offset) = ("shards", 0);
        return Err(DecodeErrorKind::Checksum { part, offset }.into());
    }
    let word = |at: usize| {
        let word = body.get(at..).and_then(|rest| rest.first_chunk::<8>());
        word.map(|word| u64::from_le_bytes(*word))
            .ok_or_else(|| short(at as u64 + 16))
    };
    let (count, capacity) = (word(8)?, word(16)?);
    if !(1..=MOST_SHARDS as u64).contains(&count) {
        return Err(DecodeError::invalid("shards", count, "1 to 65536"));
    }
    let mut shards: Vec<Keyed<F>> = Vec::new();
    let mut at = HEAD;
    for _ in 0..count {
        let len = word(at)?;
        let start = at + 8;
        let end = usize::try_from(len)
            .ok()
            .and_then(|len| start.checked_add(len));
        let end = end.filter(|&end| end <= body.len()).ok_or_else(|| {
            DecodeError::invalid(
                "length of a shard",
                len,
                "no more than the bytes that follow",
            )
        })?;
        let part = Part(Arc::clone(owner), start..end);
        shards.push(open.bytes(part)?);
        at = end;
    }
    if at != body.len() {
        let left = (body.len() - at) as u64;
        return Err(DecodeError::invalid(
            "bytes after the last shard",
            left,
            "0",
        ));
    }
    let (hashing, fpr) = (shards[0].hashing, shards[0].fpr);
    let asked = room(capacity, shards.len());
    for (shard, number) in shards.iter().zip(0u64..) {
        if !shard.hashing.agrees_with(&hashing) {
            let expected = "one that is hashed as the first is";
            return Err(DecodeError::invalid("shard", number, expected));
        }
        if shard.fpr.to_bits() != fpr.to_bits() {
            let expected = "those of the first shard's rate";
            return Err(DecodeError::invalid(
                "bits of the rate",
                shard.fpr.to_bits(),
                expected,
            ));
        }
        if shard.key_form != KeyForm::default() {
            let (number, _) = shard.key_form.encode();
            let expected = "0, as threads share keys and not text";
            return Err(DecodeError::invalid(
                "form of keys",
                u64::from(number),
                expected,
            ));
        }
        if let Some(field) = shard.key_field() {
            let expected = "0, as threads share keys and not records";
            let bytes = field.len() as u64;
            return Err(DecodeError::invalid("bytes of a field", bytes, expected));
        }
        if shard.capacity != asked {
            let expected = format!("{asked}, its part of {capacity} keys");
            return Err(DecodeError::invalid(
                "capacity of a shard",
                shard.capacity,
                expected,
            ));
        }
    }
    let filters = shards.into_iter().map(|shard| shard.filter).collect();
    Ok(Shared::of_filters(filters, hashing, capacity, fpr))
}

/// Some of the bytes of a file.
struct Part(Bytes, Range<usize>);

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        let bytes: &[u8] = (*self.0).as_ref();
        &bytes[self.1.clone()]
    }
}

/// Passes bytes on and keeps their checksum.
struct Summed<W> {
    out: W,
    sum: Xxh3,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.sum.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
