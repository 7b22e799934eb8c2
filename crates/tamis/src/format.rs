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

mod stream;

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::buf::{Buf, Bytes, Word};
use crate::error::{DecodeError, DecodeErrorKind};
use crate::form::{self, KeyForm};
use crate::key::{Family, Hashing, Scheme};

pub(crate) use stream::{Data, Stored, Watch};

const MAGIC: [u8; 8] = [0x89, b'T', b'M', b'S', 0x0D, 0x0A, 0x1A, 0x0A];
/// What the file of a filter that threads share begins with.
pub(crate) const SHARED: [u8; 8] = *b"tamissha";
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
/// The universal families, in the order of [`Family::ALL`].
const HASHING_UNIVERSAL: u16 = 4;

/// What a file says about itself before the data.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) kind: u16,
    pub(crate) kind_version: u16,
    pub(crate) hashing: FileHashing,
    pub(crate) key_form: KeyForm,
    pub(crate) key_field: Option<Box<str>>,
    pub(crate) len: u64,
    pub(crate) capacity: u64,
    pub(crate) fpr: f64,
}

impl Header {
    /// Reads the fields of a header whose checksum agrees.
    fn read(bytes: &[u8], key_field: &[u8]) -> Result<Header, DecodeError> {
        let mut field = [0; 16];
        field.copy_from_slice(&bytes[48..64]);
        let header = Header {
            kind: u16_at(bytes, 32),
            kind_version: u16_at(bytes, 34),
            hashing: FileHashing::decode(u16_at(bytes, 36), field)?,
            key_form: KeyForm::decode(u16_at(bytes, 42), u16_at(bytes, 44))?,
            key_field: form::decode_field(key_field)?,
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
        Ok(header)
    }

    /// The name of the field, which is empty where there is none.
    fn field(&self) -> &str {
        self.key_field.as_deref().unwrap_or_default()
    }
}

/// The length of a header with so many parameters and sections, and a field's name of so many
/// bytes.
const fn header_len(params: usize, sections: usize, field: usize) -> usize {
    (FIXED + 8 * params + 16 * sections + field + 8).next_multiple_of(ALIGN)
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
            FileHashing::Known(Hashing(Scheme::Universal { family, seed })) => {
                field[..8].copy_from_slice(&seed.to_le_bytes());
                HASHING_UNIVERSAL + *family as u16
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
            _ => {
                let number = id.wrapping_sub(HASHING_UNIVERSAL);
                match Family::ALL.get(usize::from(number)) {
                    Some(&family) => Ok(FileHashing::Known(Hashing::universal(family, low))),
                    None => Err(DecodeErrorKind::UnknownHashing(id).into()),
                }
            }
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
    sections: Vec<Section<'a>>,
}

/// The bytes of an array.
#[derive(Debug)]
enum Section<'a> {
    Here(Cow<'a, [u8]>),
    /// So many, which are made while the file is written.
    ToCome(u64),
}

impl Section<'_> {
    fn len(&self) -> u64 {
        match self {
            Section::Here(bytes) => bytes.len() as u64,
            Section::ToCome(len) => *len,
        }
    }

    /// With the zeros after it.
    fn aligned(&self) -> u64 {
        self.len().next_multiple_of(ALIGN as u64)
    }
}

impl<'a> Encoder<'a> {
    /// Adds a parameter. The name is for people; files hold the value.
    pub fn param(&mut self, name: &'static str, value: impl Into<ParamValue>) {
        self.params.push((name, value.into()));
    }

    /// Adds an array; it is not copied.
    pub fn section<T: Word>(&mut self, words: &'a Buf<T>) {
        self.sections.push(Section::Here(words.to_bytes()));
    }

    /// Adds bytes made for the file: a table of parts, or a coded form.
    pub(crate) fn made(&mut self, bytes: Vec<u8>) {
        self.sections.push(Section::Here(Cow::Owned(bytes)));
    }

    /// Announces an array of so many bytes, for [`write_with`](Encoder::write_with).
    pub(crate) fn announce(&mut self, bytes: u64) {
        self.sections.push(Section::ToCome(bytes));
    }

    /// The parameters with their names.
    pub(crate) fn into_params(self) -> Vec<(&'static str, ParamValue)> {
        self.params
    }

    /// The length of a file of these parts, in bytes.
    pub(crate) fn file_len(&self, header: &Header) -> u64 {
        let data: u64 = self.sections.iter().map(Section::aligned).sum();
        self.header_len(header) as u64 + data + 8 * data.div_ceil(BLOCK as u64) + 8 + FOOTER as u64
    }

    fn header_len(&self, header: &Header) -> usize {
        header_len(self.params.len(), self.sections.len(), header.field().len())
    }

    /// Writes the whole file, each array once and without copying it.
    pub(crate) fn write(&self, header: &Header, out: &mut dyn Write) -> io::Result<()> {
        self.write_with(header, out, |_| Ok(()))
    }

    /// The same, where `fill` writes the array that was announced.
    pub(crate) fn write_with<E: From<io::Error>>(
        &self,
        header: &Header,
        out: &mut dyn Write,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        out.write_all(&self.head(header))?;
        let mut data = Checksums::new(out);
        let mut fill = Some(fill);
        for section in &self.sections {
            let end = data.written + section.aligned();
            match section {
                Section::Here(bytes) => data.write_all(bytes)?,
                Section::ToCome(len) => {
                    let start = data.written;
                    if let Some(fill) = fill.take() {
                        fill(&mut data)?;
                    }
                    debug_assert_eq!(data.written - start, *len);
                }
            }
            data.write_all(&[0; ALIGN][..(end - data.written) as usize])?;
        }
        let table = data.finish();
        out.write_all(&table)?;
        out.write_all(&xxh3_64_with_seed(&table, TABLE_SEED).to_le_bytes())?;
        out.write_all(&self.file_len(header).to_le_bytes())?;
        Ok(out.write_all(&FOOTER_MAGIC)?)
    }

    /// Everything before the data.
    fn head(&self, header: &Header) -> Vec<u8> {
        let (header_len, field) = (self.header_len(header), header.field());
        let mut head = Vec::with_capacity(header_len);
        let (hashing, hashing_field) = header.hashing.encode();
        head.extend(MAGIC);
        head.extend(MAJOR.to_le_bytes());
        head.extend(MINOR.to_le_bytes());
        head.extend((header_len as u32).to_le_bytes());
        head.extend(self.file_len(header).to_le_bytes());
        head.extend([0; 8]); // incompatible and compatible flags: none yet
        head.extend(header.kind.to_le_bytes());
        head.extend(header.kind_version.to_le_bytes());
        head.extend(hashing.to_le_bytes());
        head.extend((self.params.len() as u16).to_le_bytes());
        head.extend((self.sections.len() as u16).to_le_bytes());
        let (form, k) = header.key_form.encode();
        head.extend([form, k, field.len() as u16].map(u16::to_le_bytes).concat());
        head.extend(hashing_field);
        head.extend(header.len.to_le_bytes());
        head.extend(header.capacity.to_le_bytes());
        head.extend(header.fpr.to_bits().to_le_bytes());
        head.extend([0; 8]);
        debug_assert_eq!(head.len(), FIXED);
        for (_, value) in &self.params {
            head.extend(value.to_bits().to_le_bytes());
        }
        let mut offset = header_len as u64;
        for section in &self.sections {
            head.extend(offset.to_le_bytes());
            head.extend(section.len().to_le_bytes());
            offset += section.aligned();
        }
        head.extend(field.as_bytes());
        head.resize(header_len - 8, 0);
        let sum = xxh3_64_with_seed(&head, HEADER_SEED);
        head.extend(sum.to_le_bytes());
        head
    }
}

/// Passes data on and keeps a checksum for every block of it.
struct Checksums<'a> {
    out: &'a mut dyn Write,
    written: u64,
    table: Vec<u8>,
    /// The beginning of a block that is not complete yet.
    part: Vec<u8>,
}

impl Write for Checksums<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.out.write_all(data)?;
        self.written += data.len() as u64;
        let (mut rest, len) = (data, data.len());
        if !self.part.is_empty() {
            let (head, tail) = rest.split_at(len.min(BLOCK - self.part.len()));
            self.part.extend_from_slice(head);
            rest = tail;
            if self.part.len() == BLOCK {
                push_sum(&mut self.table, &self.part);
                self.part.clear();
            }
        }
        let (whole, rest) = rest.as_chunks::<BLOCK>();
        for block in whole {
            push_sum(&mut self.table, block);
        }
        self.part.extend_from_slice(rest);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<'a> Checksums<'a> {
    fn new(out: &'a mut dyn Write) -> Checksums<'a> {
        Checksums {
            out,
            written: 0,
            table: Vec::new(),
            part: Vec::new(),
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if !self.part.is_empty() {
            push_sum(&mut self.table, &self.part);
        }
        self.table
    }
}

/// Adds the checksum of the next block to the table.
fn push_sum(table: &mut Vec<u8>, block: &[u8]) {
    let number = (table.len() / 8) as u64;
    table.extend(xxh3_64_with_seed(block, number).to_le_bytes());
}

/// Hands a filter its parameters and arrays back, each checked before it is trusted.
pub struct Decoder<'a> {
    owner: &'a Bytes,
    params: &'a [u8],
    sections: Vec<Range<u64>>,
    next_section: usize,
    len: u64,
    verified: bool,
    /// Whether arrays are copied out of the bytes.
    pub(crate) owned: bool,
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

    /// Whether there is another parameter, for those that a file may leave out.
    pub(crate) fn has_param(&self) -> bool {
        !self.params.is_empty()
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
        let range = self.place::<T>(name, len)?;
        match Buf::view(self.owner, range.start as usize..range.end as usize) {
            Some(Ok(buf)) if self.owned && buf.is_lent() => Ok(Buf::copied(&buf)?),
            Some(buf) => Ok(buf?),
            None => Err(DecodeError::invalid(
                name,
                range.end - range.start,
                "an array inside the file",
            )),
        }
    }

    /// Where in the file the next array lies, which must have exactly `len` words.
    pub(crate) fn place<T: Word>(
        &mut self,
        name: &'static str,
        len: u64,
    ) -> Result<Range<u64>, DecodeError> {
        let Some(range) = self.sections.get(self.next_section).cloned() else {
            return Err(DecodeError::invalid(
                name,
                0,
                "an array, but the file has fewer",
            ));
        };
        self.next_section += 1;
        let bytes = range.end - range.start;
        if len.checked_mul(size_of::<T>() as u64) != Some(bytes) {
            return Err(DecodeError::invalid(
                name,
                bytes,
                format!("{len} words of {} bytes", size_of::<T>()),
            ));
        }
        Ok(range)
    }

    /// How many bytes the next array has; 0 if there is none. For arrays whose length is not given
    /// by a parameter.
    pub(crate) fn next_bytes(&self) -> u64 {
        let next = self.sections.get(self.next_section);
        next.map_or(0, |range| range.end - range.start)
    }

    /// Whether the checksums of the arrays were compared. If not, the caller wants to open the file
    /// without reading it whole.
    pub(crate) fn is_verified(&self) -> bool {
        self.verified
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
    let (header, layout) = Layout::read(bytes, bytes.len() as u64)?;
    let [data, end, footer] = [layout.data, layout.data_end, layout.footer()].map(|at| at as usize);
    if verify {
        let table = &bytes[end..footer - 8];
        layout.check_table(table, u64_at(bytes, footer - 8))?;
        for (number, block) in bytes[data..end].chunks(BLOCK).enumerate() {
            layout.check_block(number, block, table)?;
        }
        for gap in layout.gaps() {
            zeros(
                "a padding byte",
                &bytes[gap.start as usize..gap.end as usize],
            )?;
        }
    }
    layout.check_footer(&bytes[footer..])?;
    let decoder = layout.decoder(owner, &header, verify);
    Ok((header, decoder))
}

/// Refuses bytes that are not zero.
fn zeros(field: &'static str, bytes: &[u8]) -> Result<(), DecodeError> {
    match bytes.iter().find(|&&b| b != 0) {
        Some(&b) => Err(DecodeError::invalid(field, u64::from(b), "0")),
        None => Ok(()),
    }
}

/// Where the parts of a file lie.
#[derive(Debug)]
struct Layout {
    params: Range<usize>,
    sections: Vec<Range<u64>>,
    /// Where the data begins and ends.
    data: u64,
    data_end: u64,
    file_len: u64,
}

impl Layout {
    /// The most bytes that a header has.
    const MOST_HEAD: usize = header_len(MOST_PARAMS, MOST_SECTIONS, form::LONGEST_FIELD);

    /// Reads the header of a file of `got` bytes, of which the first are given: at least those of
    /// the header, if they are there.
    fn read(bytes: &[u8], got: u64) -> Result<(Header, Layout), DecodeError> {
        let known = bytes.len().min(MAGIC.len());
        if bytes[..known] != MAGIC[..known] {
            return Err(DecodeErrorKind::no_filter(bytes).into());
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
        let field_len = u16_at(bytes, 46) as usize;
        let expected_len = self::header_len(params, sections, field_len);
        let mut counts = [
            (params, MOST_PARAMS),
            (sections, MOST_SECTIONS),
            (field_len, form::LONGEST_FIELD),
        ]
        .into_iter();
        if header_len != expected_len || counts.any(|(count, most)| count > most) {
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
            return Err(damaged("header", 0));
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
        zeros("a reserved byte", &bytes[88..FIXED])?;
        let field_at = table_at + 16 * sections;
        let (field, padding) = bytes[field_at..header_len - 8].split_at(field_len);
        zeros("a padding byte", padding)?;

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
            ranges.push(at..end);
        }
        let layout = Layout {
            params: FIXED..table_at,
            sections: ranges,
            data: header_len as u64,
            data_end: offset,
            file_len,
        };
        let expected = layout.footer() + FOOTER as u64;
        if expected != file_len {
            return Err(DecodeErrorKind::Length { expected, got }.into());
        }
        Ok((Header::read(bytes, field)?, layout))
    }

    /// Where the footer begins: after the checksum table and its own checksum.
    fn footer(&self) -> u64 {
        self.data_end + 8 * (self.data_end - self.data).div_ceil(BLOCK as u64) + 8
    }

    /// The bytes after each section that are there for alignment.
    fn gaps(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let next = self.sections.iter().skip(1).map(|section| section.start);
        let starts = next.chain([self.data_end]);
        self.sections
            .iter()
            .zip(starts)
            .map(|(section, start)| section.end..start)
    }

    fn check_table(&self, table: &[u8], sum: u64) -> Result<(), DecodeError> {
        match xxh3_64_with_seed(table, TABLE_SEED) == sum {
            true => Ok(()),
            false => Err(damaged("checksum table", self.data_end)),
        }
    }

    /// Compares a block of data with its checksum in the table.
    fn check_block(&self, number: usize, block: &[u8], table: &[u8]) -> Result<(), DecodeError> {
        match xxh3_64_with_seed(block, number as u64) == u64_at(table, 8 * number) {
            true => Ok(()),
            false => Err(damaged("data", self.data + number as u64 * BLOCK as u64)),
        }
    }

    fn check_footer(&self, footer: &[u8]) -> Result<(), DecodeError> {
        let file_len = self.file_len;
        if u64_at(footer, 0) != file_len {
            return Err(DecodeError::invalid(
                "the footer's length",
                u64_at(footer, 0),
                format!("{file_len}"),
            ));
        }
        if footer[8..] != FOOTER_MAGIC {
            return Err(DecodeError::invalid(
                "the footer's signature",
                u64_at(footer, 8),
                "the reversed signature",
            ));
        }
        Ok(())
    }

    /// For reading the parameters, which `owner` holds, and what it holds of the arrays.
    fn decoder<'a>(&self, owner: &'a Bytes, header: &Header, verified: bool) -> Decoder<'a> {
        let bytes: &[u8] = (**owner).as_ref();
        Decoder {
            owner,
            params: &bytes[self.params.clone()],
            sections: self.sections.clone(),
            next_section: 0,
            len: header.len,
            verified,
            owned: false,
        }
    }
}

fn damaged(part: &'static str, offset: u64) -> DecodeError {
    DecodeErrorKind::Checksum { part, offset }.into()
}

/// Whether bytes start as a tamis file does, be it whole, cut short or damaged: for telling a
/// filter from other files.
///
/// Give the first eight bytes, or all that there are. Either half of the signature is enough, and
/// neither occurs in text, so that one wrong byte does not make a filter pass for something else.
/// A PNG image, whose signature has the same second half, is none.
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
    let second_half = start.get(4..) == Some(&MAGIC[4..]) && !start.starts_with(b"\x89PNG");
    cut_short || start.starts_with(&MAGIC[..4]) || second_half
}

/// The file length that the first bytes announce; an error if they do not start a filter.
pub(crate) fn announced_len(start: &[u8]) -> Result<u64, DecodeError> {
    if start.len() < 24 || start[..8] != MAGIC {
        return Err(DecodeErrorKind::no_filter(start).into());
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
    let Some(body) = (file_len - 8 - FOOTER).checked_sub(header_len) else {
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
        assert!(!looks_like_filter(b"\x89PNG\r\n\x1A\n"));
    }
}
