//! The file format: one envelope around every kind. `docs/FORMAT.md` is the normative
//! description.
//!
//! ```text
//!  0        96           H (multiple of 64)                                     file length
//!  ┌────────┬────────────┬───────────┬───────────┬─ … ─┬───────────┬───────────┬────────┐
//!  │ fixed  │ parameters │ section 0 │ section 1 │     │ checksum  │ checksum  │ footer │
//!  │ header │ + table    │           │           │     │ table     │ of table  │        │
//!  └────────┴──────────^─┴───────────┴───────────┴─ … ─┴───────────┴───────────┴────────┘
//!                      checksum of the header
//!
//!  sections are 64-aligned; the table has a checksum for each 64 KiB of data
//! ```
//!
//! Everything is little-endian and canonical: the same filter gives the same bytes, and every
//! byte is either covered by a checksum or compared with the one value it may have. Reading
//! trusts nothing: sizes are checked against the bytes that are there before anything is
//! allocated.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::buf::{Buf, Bytes, Word};
use crate::error::{DecodeError, DecodeErrorKind};
use crate::key::{Hashing, Scheme};

const MAGIC: [u8; 8] = [0x89, b'T', b'M', b'S', 0x0D, 0x0A, 0x1A, 0x0A];
const FOOTER_MAGIC: [u8; 8] = [0x0A, 0x1A, 0x0A, 0x0D, b'S', b'M', b'T', 0x89];
const MAJOR: u16 = 1;
const MINOR: u16 = 0;
/// The part of the header before the parameters.
const FIXED: usize = 96;
const ALIGN: usize = 64;
/// One checksum covers this many bytes of data.
const BLOCK: usize = 64 << 10;
const FOOTER: usize = 16;
/// Seeds of the checksums, except those of data blocks, which are seeded with the block's number.
const HEADER_SEED: u64 = 0x5441_4D49_5348_4452;
const TABLE_SEED: u64 = 0x5441_4D49_5354_424C;
/// More than any kind has; a limit for hostile headers.
const MOST_PARAMS: usize = 64;
const MOST_SECTIONS: usize = 64;

const HASHING_FAST: u16 = 1;
const HASHING_SECRET: u16 = 2;
const HASHING_WITHHELD: u16 = 3;

/// What a file says about itself before the data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) kind: u16,
    pub(crate) kind_version: u16,
    pub(crate) hashing: FileHashing,
    pub(crate) len: u64,
    pub(crate) capacity: u64,
    pub(crate) fpr: f64,
}

/// The hashing as a file carries it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FileHashing {
    Known(Hashing),
    /// The secret is kept elsewhere; this is its check value.
    Withheld(u64),
}

impl FileHashing {
    fn encode(&self) -> (u16, [u8; 16]) {
        let mut field = [0; 16];
        let id = match self {
            FileHashing::Known(Hashing(Scheme::Fast { seed })) => {
                field[..8].copy_from_slice(&seed.to_le_bytes());
                HASHING_FAST
            }
            FileHashing::Known(Hashing(Scheme::Secret {
                key,
                withheld: false,
            })) => {
                field = *key;
                HASHING_SECRET
            }
            FileHashing::Known(Hashing(Scheme::Secret {
                key,
                withheld: true,
            })) => {
                return FileHashing::Withheld(Hashing::check_value(key)).encode();
            }
            FileHashing::Withheld(check) => {
                field[..8].copy_from_slice(&check.to_le_bytes());
                HASHING_WITHHELD
            }
        };
        (id, field)
    }

    fn decode(id: u16, field: [u8; 16]) -> Result<FileHashing, DecodeError> {
        let [low, high] = [u64_at(&field, 0), u64_at(&field, 8)];
        if id != HASHING_SECRET && high != 0 {
            return Err(DecodeError::invalid("hashing (second half)", high, "0"));
        }
        match id {
            HASHING_FAST => Ok(FileHashing::Known(Hashing::fast(low))),
            HASHING_SECRET => Ok(FileHashing::Known(Hashing::secret(field))),
            HASHING_WITHHELD => Ok(FileHashing::Withheld(low)),
            _ => Err(DecodeErrorKind::UnknownHashing(id).into()),
        }
    }

    /// The hashing to use, given the secret that the caller holds, if any.
    pub(crate) fn resolve(self, given: Option<&Hashing>) -> Result<Hashing, DecodeError> {
        match (self, given) {
            (FileHashing::Known(known), None) => Ok(known),
            (FileHashing::Known(known), Some(given)) if known.agrees_with(given) => Ok(known),
            (FileHashing::Withheld(check), Some(given)) => match given.0 {
                Scheme::Secret { key, .. } if Hashing::check_value(&key) == check => {
                    Ok(given.withheld())
                }
                _ => Err(DecodeErrorKind::WrongSecret.into()),
            },
            (FileHashing::Withheld(_), None) => Err(DecodeErrorKind::SecretNeeded.into()),
            (FileHashing::Known(_), Some(_)) => Err(DecodeErrorKind::WrongSecret.into()),
        }
    }
}

/// The value of a parameter in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParamValue {
    /// A count, a size, or a number that encodes a choice.
    Whole(u64),
    /// A rate or a ratio.
    Real(f64),
}

impl ParamValue {
    /// The eight bytes that the file holds, as a number.
    fn to_bits(self) -> u64 {
        match self {
            ParamValue::Whole(value) => value,
            ParamValue::Real(value) => value.to_bits(),
        }
    }
}

impl From<u64> for ParamValue {
    fn from(value: u64) -> ParamValue {
        ParamValue::Whole(value)
    }
}

impl From<f64> for ParamValue {
    fn from(value: f64) -> ParamValue {
        ParamValue::Real(value)
    }
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamValue::Whole(value) => value.fmt(f),
            ParamValue::Real(value) => value.fmt(f),
        }
    }
}

/// Collects what a filter stores: parameters, then arrays.
#[derive(Debug, Default)]
pub struct Encoder<'a> {
    params: Vec<(&'static str, ParamValue)>,
    sections: Vec<Cow<'a, [u8]>>,
}

impl<'a> Encoder<'a> {
    /// Adds a parameter. The name is for people; files hold the value.
    pub fn param(&mut self, name: &'static str, value: impl Into<ParamValue>) {
        self.params.push((name, value.into()));
    }

    /// Adds an array; it is not copied.
    pub fn section<T: Word>(&mut self, words: &'a Buf<T>) {
        self.sections.push(words.to_bytes());
    }

    /// Adds bytes made for the file: a table of parts, or a coded form.
    pub(crate) fn made(&mut self, bytes: Vec<u8>) {
        self.sections.push(Cow::Owned(bytes));
    }

    /// The parameters with their names.
    pub(crate) fn into_params(self) -> Vec<(&'static str, ParamValue)> {
        self.params
    }

    /// The length of a file of these parts, in bytes.
    pub(crate) fn file_len(&self) -> u64 {
        let data: usize = self
            .sections
            .iter()
            .map(|s| s.len().next_multiple_of(ALIGN))
            .sum();
        (self.header_len() + data + 8 * data.div_ceil(BLOCK) + 8 + FOOTER) as u64
    }

    fn header_len(&self) -> usize {
        (FIXED + 8 * self.params.len() + 16 * self.sections.len() + 8).next_multiple_of(ALIGN)
    }

    /// Writes the whole file, each array once and without copying it.
    pub(crate) fn write(&self, header: &Header, out: &mut dyn Write) -> io::Result<()> {
        let header_len = self.header_len();
        let mut head = Vec::with_capacity(header_len);
        let (hashing, hashing_field) = header.hashing.encode();
        head.extend(MAGIC);
        head.extend(MAJOR.to_le_bytes());
        head.extend(MINOR.to_le_bytes());
        head.extend((header_len as u32).to_le_bytes());
        head.extend(self.file_len().to_le_bytes());
        head.extend([0; 8]); // incompatible and compatible flags: none yet
        head.extend(header.kind.to_le_bytes());
        head.extend(header.kind_version.to_le_bytes());
        head.extend(hashing.to_le_bytes());
        head.extend((self.params.len() as u16).to_le_bytes());
        head.extend((self.sections.len() as u16).to_le_bytes());
        head.extend([0; 6]);
        head.extend(hashing_field);
        head.extend(header.len.to_le_bytes());
        head.extend(header.capacity.to_le_bytes());
        head.extend(header.fpr.to_bits().to_le_bytes());
        head.extend([0; 8]);
        debug_assert_eq!(head.len(), FIXED);
        for (_, value) in &self.params {
            head.extend(value.to_bits().to_le_bytes());
        }
        let mut offset = header_len;
        for section in &self.sections {
            head.extend((offset as u64).to_le_bytes());
            head.extend((section.len() as u64).to_le_bytes());
            offset += section.len().next_multiple_of(ALIGN);
        }
        head.resize(header_len - 8, 0);
        let sum = xxh3_64_with_seed(&head, HEADER_SEED);
        head.extend(sum.to_le_bytes());
        out.write_all(&head)?;

        let mut sums = Checksums::default();
        for section in &self.sections {
            sums.write(section, out)?;
            sums.write(
                &[0; ALIGN][..section.len().next_multiple_of(ALIGN) - section.len()],
                out,
            )?;
        }
        let table = sums.finish();
        out.write_all(&table)?;
        out.write_all(&xxh3_64_with_seed(&table, TABLE_SEED).to_le_bytes())?;
        out.write_all(&self.file_len().to_le_bytes())?;
        out.write_all(&FOOTER_MAGIC)
    }
}

/// Passes data on and keeps a checksum for every block of it.
#[derive(Default)]
struct Checksums {
    table: Vec<u8>,
    /// The beginning of a block that is not complete yet.
    part: Vec<u8>,
}

impl Checksums {
    fn write(&mut self, mut data: &[u8], out: &mut dyn Write) -> io::Result<()> {
        out.write_all(data)?;
        if !self.part.is_empty() {
            let (head, tail) = data.split_at(data.len().min(BLOCK - self.part.len()));
            self.part.extend_from_slice(head);
            data = tail;
            if self.part.len() == BLOCK {
                let block = std::mem::take(&mut self.part);
                self.push(&block);
            }
        }
        let (whole, rest) = data.as_chunks::<BLOCK>();
        for block in whole {
            self.push(block);
        }
        self.part.extend_from_slice(rest);
        Ok(())
    }

    fn push(&mut self, block: &[u8]) {
        let number = (self.table.len() / 8) as u64;
        self.table
            .extend(xxh3_64_with_seed(block, number).to_le_bytes());
    }

    fn finish(mut self) -> Vec<u8> {
        if !self.part.is_empty() {
            let block = std::mem::take(&mut self.part);
            self.push(&block);
        }
        self.table
    }
}

/// Hands a filter its parameters and arrays back, each checked before it is trusted.
pub struct Decoder<'a> {
    owner: &'a Bytes,
    params: &'a [u8],
    sections: Vec<Range<usize>>,
    next_section: usize,
    len: u64,
}

impl fmt::Debug for Decoder<'_> {
    /// What is left to read, and nothing of the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("params", &(self.params.len() / 8))
            .field("sections", &(self.sections.len() - self.next_section))
            .field("len", &self.len)
            .finish()
    }
}

impl Decoder<'_> {
    /// The next parameter.
    ///
    /// # Errors
    ///
    /// When the file has fewer.
    pub fn param(&mut self, name: &'static str) -> Result<u64, DecodeError> {
        match self.params.split_first_chunk::<8>() {
            Some((value, rest)) => {
                self.params = rest;
                Ok(u64::from_le_bytes(*value))
            }
            None => Err(DecodeError::invalid(
                name,
                0,
                "a value, but the file has fewer parameters",
            )),
        }
    }

    /// The next parameter, which must lie in a range.
    ///
    /// # Errors
    ///
    /// When it is missing or out of the range.
    pub fn param_in(
        &mut self,
        name: &'static str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, DecodeError> {
        let value = self.param(name)?;
        if range.contains(&value) {
            return Ok(value);
        }
        Err(DecodeError::invalid(
            name,
            value,
            format!("{} to {}", range.start(), range.end()),
        ))
    }

    /// The next parameter, a real number that must satisfy a condition.
    pub(crate) fn real(
        &mut self,
        name: &'static str,
        good: impl Fn(f64) -> bool,
    ) -> Result<f64, DecodeError> {
        let bits = self.param(name)?;
        Some(f64::from_bits(bits))
            .filter(|&value| good(value))
            .ok_or_else(|| {
                DecodeError::invalid(name, bits, "the bits of a fraction that can be asked for")
            })
    }

    /// The next array, which must have exactly `len` words: lent where it can be read in place.
    ///
    /// # Errors
    ///
    /// When it is missing or of another length.
    pub fn section<T: Word>(
        &mut self,
        name: &'static str,
        len: u64,
    ) -> Result<Buf<T>, DecodeError> {
        let Some(range) = self.sections.get(self.next_section).cloned() else {
            return Err(DecodeError::invalid(
                name,
                0,
                "an array, but the file has fewer",
            ));
        };
        self.next_section += 1;
        let bytes = range.len() as u64;
        if len.checked_mul(size_of::<T>() as u64) != Some(bytes) {
            return Err(DecodeError::invalid(
                name,
                bytes,
                format!("{len} words of {} bytes", size_of::<T>()),
            ));
        }
        match Buf::view(self.owner, range) {
            Some(buf) => Ok(buf?),
            None => Err(DecodeError::invalid(
                name,
                bytes,
                "an array inside the file",
            )),
        }
    }

    /// How many bytes the next array has; 0 if there is none. For arrays whose length is not given
    /// by a parameter.
    pub(crate) fn next_bytes(&self) -> u64 {
        let next = self.sections.get(self.next_section);
        next.map_or(0, |range| range.len() as u64)
    }

    /// How many keys the file says the filter holds.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file says that the filter holds no key.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Refuses parameters or arrays that were not read.
    pub(crate) fn finish(&self) -> Result<(), DecodeError> {
        if !self.params.is_empty() {
            return Err(DecodeError::invalid(
                "parameters left over",
                self.params.len() as u64 / 8,
                "0",
            ));
        }
        let left = (self.sections.len() - self.next_section) as u64;
        if left > 0 {
            return Err(DecodeError::invalid("sections left over", left, "0"));
        }
        Ok(())
    }
}

/// Reads and verifies a file: header and footer and, if `verify`, every checksum and the padding
/// of the data.
pub(crate) fn open(owner: &Bytes, verify: bool) -> Result<(Header, Decoder<'_>), DecodeError> {
    let bytes: &[u8] = (**owner).as_ref();
    let got = bytes.len() as u64;
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        return Err(DecodeErrorKind::NotAFilter.into());
    }
    let short = |expected: usize| {
        DecodeError::from(DecodeErrorKind::Length {
            expected: expected as u64,
            got,
        })
    };
    if bytes.len() < FIXED {
        return Err(short(FIXED + 8 + 8 + FOOTER));
    }
    let header_len = u32_at(bytes, 12) as usize;
    let (params, sections) = (u16_at(bytes, 38) as usize, u16_at(bytes, 40) as usize);
    let expected_len = (FIXED + 8 * params + 16 * sections + 8).next_multiple_of(ALIGN);
    if header_len != expected_len || params > MOST_PARAMS || sections > MOST_SECTIONS {
        return Err(DecodeError::invalid(
            "header length",
            header_len as u64,
            format!("{expected_len} for its counts"),
        ));
    }
    let Some(head) = bytes.get(..header_len) else {
        return Err(short(header_len + 8 + FOOTER));
    };
    let (covered, sum) = head.split_at(header_len - 8);
    if xxh3_64_with_seed(covered, HEADER_SEED) != u64_at(sum, 0) {
        return Err(DecodeErrorKind::Checksum {
            part: "header",
            offset: 0,
        }
        .into());
    }
    // The header's own layout is the same in every version, so damage can be told from a newer
    // version.
    if u16_at(bytes, 8) != MAJOR {
        return Err(DecodeErrorKind::Newer {
            major: u16_at(bytes, 8),
        }
        .into());
    }
    let file_len = u64_at(bytes, 16);
    if file_len != got {
        return Err(DecodeErrorKind::Length {
            expected: file_len,
            got,
        }
        .into());
    }
    if u32_at(bytes, 24) != 0 {
        return Err(DecodeErrorKind::Features(u32_at(bytes, 24)).into());
    }
    let table_at = FIXED + 8 * params;
    let zeros = |field, range: Range<usize>| match bytes[range].iter().find(|&&b| b != 0) {
        Some(&b) => Err(DecodeError::invalid(field, u64::from(b), "0")),
        None => Ok(()),
    };
    zeros("a reserved byte", 42..48)?;
    zeros("a reserved byte", 88..FIXED)?;
    zeros("a padding byte", table_at + 16 * sections..header_len - 8)?;

    let mut ranges = Vec::with_capacity(sections);
    let mut offset = header_len as u64;
    for entry in bytes[table_at..].chunks_exact(16).take(sections) {
        let (at, len) = (u64_at(entry, 0), u64_at(entry, 8));
        if at != offset {
            return Err(DecodeError::invalid(
                "a section's offset",
                at,
                format!("{offset}"),
            ));
        }
        let end = at.checked_add(len).filter(|&end| end <= file_len);
        let Some(end) = end else {
            return Err(DecodeError::invalid(
                "a section's length",
                len,
                "to end inside the file",
            ));
        };
        offset = end.next_multiple_of(ALIGN as u64);
        ranges.push(at as usize..end as usize);
    }
    let data_end = offset as usize;
    let blocks = (data_end - header_len).div_ceil(BLOCK);
    let expected = data_end as u64 + 8 * blocks as u64 + 8 + FOOTER as u64;
    if expected != file_len {
        return Err(DecodeErrorKind::Length { expected, got }.into());
    }
    let table_end = data_end + 8 * blocks;
    if verify {
        let table = &bytes[data_end..table_end];
        if xxh3_64_with_seed(table, TABLE_SEED) != u64_at(bytes, table_end) {
            return Err(DecodeErrorKind::Checksum {
                part: "checksum table",
                offset: data_end as u64,
            }
            .into());
        }
        for (number, (block, sum)) in bytes[header_len..data_end]
            .chunks(BLOCK)
            .zip(table.chunks_exact(8))
            .enumerate()
        {
            if xxh3_64_with_seed(block, number as u64) != u64_at(sum, 0) {
                let offset = (header_len + number * BLOCK) as u64;
                return Err(DecodeErrorKind::Checksum {
                    part: "data",
                    offset,
                }
                .into());
            }
        }
        for (range, end) in ranges
            .iter()
            .zip(ranges.iter().skip(1).map(|r| r.start).chain([data_end]))
        {
            zeros("a padding byte", range.end..end)?;
        }
    }
    let footer = table_end + 8;
    if u64_at(bytes, footer) != file_len {
        return Err(DecodeError::invalid(
            "the footer's length",
            u64_at(bytes, footer),
            format!("{file_len}"),
        ));
    }
    if bytes[footer + 8..] != FOOTER_MAGIC {
        return Err(DecodeError::invalid(
            "the footer's signature",
            u64_at(bytes, footer + 8),
            "the reversed signature",
        ));
    }

    let mut field = [0; 16];
    field.copy_from_slice(&bytes[48..64]);
    let header = Header {
        kind: u16_at(bytes, 32),
        kind_version: u16_at(bytes, 34),
        hashing: FileHashing::decode(u16_at(bytes, 36), field)?,
        len: u64_at(bytes, 64),
        capacity: u64_at(bytes, 72),
        fpr: f64::from_bits(u64_at(bytes, 80)),
    };
    if !(header.fpr > 0.0 && header.fpr < 1.0) {
        return Err(DecodeError::invalid(
            "the rate asked for (bits)",
            header.fpr.to_bits(),
            "a number between 0 and 1",
        ));
    }
    let params = &bytes[FIXED..table_at];
    Ok((
        header,
        Decoder {
            owner,
            params,
            sections: ranges,
            next_section: 0,
            len: header.len,
        },
    ))
}

/// Whether bytes start as a tamis file does, be it whole, cut short or damaged: for telling a
/// filter from other files.
///
/// Give the first eight bytes, or all that there are. Either half of the signature is enough, and
/// neither occurs in text, so that one wrong byte does not make a filter pass for something else.
///
/// ```
/// let filter: tamis::Keyed<tamis::Bloom> = tamis::Keyed::new(&tamis::Config::new(10))?;
/// assert!(tamis::looks_like_filter(&filter.to_bytes()));
/// assert!(!tamis::looks_like_filter(b"example.com\r\n"));
/// # Ok::<(), tamis::BuildError>(())
/// ```
pub fn looks_like_filter(start: &[u8]) -> bool {
    let start = &start[..start.len().min(MAGIC.len())];
    let cut_short = !start.is_empty() && MAGIC.starts_with(start);
    cut_short || start.starts_with(&MAGIC[..4]) || start.get(4..) == Some(&MAGIC[4..])
}

/// The file length that the first bytes announce; an error if they do not start a filter.
pub(crate) fn announced_len(start: &[u8]) -> Result<u64, DecodeError> {
    if start.len() < 24 || start[..8] != MAGIC {
        return Err(DecodeErrorKind::NotAFilter.into());
    }
    Ok(u64_at(start, 16))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) | u32::from(u16_at(bytes, at + 2)) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Makes a damaged file's checksums agree again, so that tests and fuzzers reach the checks
/// behind them. Leaves bytes that are too short to be a file alone.
#[doc(hidden)]
pub fn repair_checksums(bytes: &mut [u8]) {
    if bytes.len() < FIXED + 8 + 8 + FOOTER {
        return;
    }
    let file_len = bytes.len();
    let header_len = u32_at(bytes, 12) as usize;
    let Some(body) = file_len.checked_sub(header_len + 8 + FOOTER) else {
        return;
    };
    if header_len < FIXED + 8 {
        return;
    }
    // body = data + 8 per block of data
    let blocks = body.div_ceil(BLOCK + 8);
    let Some(data) = body.checked_sub(8 * blocks) else {
        return;
    };
    bytes[16..24].copy_from_slice(&(file_len as u64).to_le_bytes());
    let sum = xxh3_64_with_seed(&bytes[..header_len - 8], HEADER_SEED);
    bytes[header_len - 8..header_len].copy_from_slice(&sum.to_le_bytes());
    let table: Vec<u8> = bytes[header_len..header_len + data]
        .chunks(BLOCK)
        .enumerate()
        .flat_map(|(number, block)| xxh3_64_with_seed(block, number as u64).to_le_bytes())
        .collect();
    let table_at = header_len + data;
    bytes[table_at..table_at + table.len()].copy_from_slice(&table);
    let footer = file_len - FOOTER;
    bytes[footer - 8..footer].copy_from_slice(&xxh3_64_with_seed(&table, TABLE_SEED).to_le_bytes());
    bytes[footer..footer + 8].copy_from_slice(&(file_len as u64).to_le_bytes());
    bytes[footer + 8..].copy_from_slice(&FOOTER_MAGIC);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_signature_still_looks_like_a_filter() {
        for at in 0..8 {
            for value in 0..=255 {
                let mut start = MAGIC;
                start[at] = value;
                assert!(looks_like_filter(&start), "byte {at} is {value}");
            }
            assert!(looks_like_filter(&MAGIC[..=at]), "{at} bytes follow");
        }
        assert!(
            looks_like_filter(b"\x89TMS\n\x1A\nx"),
            "line ends converted"
        );
    }

    #[test]
    fn text_does_not_look_like_a_filter() {
        for text in [
            "",
            "T",
            "TMS\r\n",
            "ATMS\r\nx\n",
            "four\r\n\r\n",
            "\u{89}TMS\r\n",
        ] {
            assert!(!looks_like_filter(text.as_bytes()), "{text:?}");
        }
    }
}
