//! A field of CSV or TSV records.
//!
//! A field that starts with `"` goes to the next single `"`, over delimiters and line ends; `""`
//! in it is one `"`. What stands between that and the next delimiter is dropped. Where the
//! delimiter is a tab, quotes mean nothing, as in the registered form of TSV. A record with too
//! few fields has no key. One whose quote is never closed cannot be read.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use super::records::{Shape, content, ends, unmarked};
use super::{Keys, nearest};
use crate::failure::Failure;

/// A field's number from 1, or its name.
#[derive(Clone, Debug)]
pub(crate) enum Field {
    Number(usize),
    Name(String),
}

impl FromStr for Field {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Field, Infallible> {
        Ok(match text.parse() {
            Ok(number) if number > 0 => Field::Number(number),
            _ => Field::Name(text.to_string()),
        })
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Field::Number(number) => number.fmt(f),
            Field::Name(name) => name.fmt(f),
        }
    }
}

/// What stands in the fields of a record, without its end.
pub(super) fn fields(record: &[u8], delimiter: u8) -> Vec<String> {
    let mut csv = Csv::new(&Field::Number(1), delimiter, false, b'\n');
    csv.fields(record, 0, true).unwrap_or_default().0
}

/// A delimiter as it is written on the command line.
pub(super) fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [b'\n' | b'\r' | b'"'] => Err("a line end or a quote cannot be the delimiter".to_string()),
        &[byte] => Ok(byte),
        _ => Err("expected one byte, or `tab`".to_string()),
    }
}

/// The records of a CSV file, of which one field is the key.
pub(super) struct Csv {
    /// Not yet found in the header, or not read.
    name: Option<String>,
    header: bool,
    /// From 0.
    index: usize,
    delimiter: u8,
    quotes: bool,
    end: u8,
    at_start: bool,
    unquoted: Vec<u8>,
    /// The present record has a quote that is never closed.
    unclosed: bool,
}

/// Where the key of a record is.
enum Found {
    Nothing,
    /// In the text.
    At(usize, usize),
    /// In `unquoted`, for quotes in it had to be undone.
    Unquoted,
}

/// A field of a record.
struct FoundField {
    found: Found,
    /// Where the next one starts, of this record or, where it `ends_record`, of the next.
    next: usize,
    ends_record: bool,
}

impl Csv {
    pub(super) fn new(field: &Field, delimiter: u8, header: bool, end: u8) -> Csv {
        let (name, index) = match field {
            Field::Number(number) => (None, number - 1),
            Field::Name(name) => (Some(name.clone()), 0),
        };
        Csv {
            header: header || name.is_some(),
            name,
            index,
            delimiter,
            quotes: delimiter != b'\t',
            end,
            at_start: true,
            unquoted: Vec::new(),
            unclosed: false,
        }
    }

    /// Reads the header; the number of its bytes, or 0 where more text is needed.
    fn read_header(&mut self, text: &[u8], last: bool, source: &str) -> Result<usize, Failure> {
        let start = text.len() - unmarked(text).len();
        if self.name.is_none() {
            return Ok(self.record(text, start, last).map_or(0, |(end, _)| end));
        }
        let Some((names, end)) = self.fields(text, start, last) else {
            return Ok(0);
        };
        self.index = self.number_of(&names, source)?;
        Ok(end)
    }

    /// The fields of the record that starts at `at`, and where it ends. `None` where it does not.
    fn fields(&mut self, text: &[u8], mut at: usize, last: bool) -> Option<(Vec<String>, usize)> {
        let mut fields = Vec::new();
        loop {
            let field = self.field(text, at, last, true)?;
            let content = match field.found {
                Found::At(from, to) => &text[from..to],
                _ => &self.unquoted,
            };
            fields.push(String::from_utf8_lossy(content).into_owned());
            at = field.next.min(text.len());
            if field.ends_record {
                return Some((fields, at));
            }
        }
    }

    /// The number, from 0, of the one field that has the name that is sought.
    fn number_of(&mut self, names: &[String], source: &str) -> Result<usize, Failure> {
        let sought = self.name.take().unwrap_or_default();
        let named = names.iter().zip(0..).filter(|(name, _)| **name == sought);
        let why = match named.map(|(_, number)| number).collect::<Vec<_>>()[..] {
            [number] => return Ok(number),
            [] => format!("no field is named `{sought}`; {}", nearest(names, &sought)),
            [one, other, ..] => format!(
                "fields {} and {} are both named `{sought}`; give a number, and --header",
                one + 1,
                other + 1
            ),
        };
        Err(Failure::usage(source, why))
    }

    /// The record that starts at `at`: where it ends, and where its field is. `None` where it does
    /// not end.
    fn record(&mut self, text: &[u8], mut at: usize, last: bool) -> Option<(usize, Found)> {
        let mut found = Found::Nothing;
        for index in 0.. {
            let wanted = index == self.index;
            let field = self.field(text, at, last, wanted)?;
            if wanted {
                found = field.found;
            }
            at = field.next;
            if field.ends_record {
                break;
            }
        }
        Some((at.min(text.len()), found))
    }

    /// The field that starts at `at`. `None` where it does not end.
    fn field(&mut self, text: &[u8], at: usize, last: bool, wanted: bool) -> Option<FoundField> {
        let mut after = at;
        let mut found = None;
        if self.quotes && text.get(at) == Some(&b'"') {
            let (close, doubled) = self.closing_quote(text, at + 1, last, wanted)?;
            found = Some(match doubled {
                true => Found::Unquoted,
                false => Found::At(at + 1, close),
            });
            after = close;
        }
        let next = memchr::memchr2(self.delimiter, self.end, &text[after..]);
        let stop = match next {
            Some(next) => after + next,
            None if last => text.len(),
            None => return None,
        };
        let ended = next.is_some() && text[stop] == self.end;
        let has_return = ended && self.end == b'\n' && text[at..stop].ends_with(b"\r");
        Some(FoundField {
            found: found.unwrap_or(Found::At(at, stop - usize::from(has_return))),
            next: stop + 1,
            ends_record: ended || next.is_none(),
        })
    }

    /// How many bytes are taken, of records from `first` to `end`: none but the header's, if any,
    /// where no record has ended. A mark is taken with the record behind it.
    fn taken(&mut self, first: usize, end: usize, keys: &Keys) -> usize {
        if end == first {
            return keys.start;
        }
        self.at_start = false;
        end
    }

    /// A quote that is never closed has taken the rest of the input for its own.
    fn refuse_unclosed(&self, keys: &mut Keys) -> Result<(), Failure> {
        match self.unclosed {
            true => keys.malformed(|| "its quote is never closed".to_string()),
            false => Ok(()),
        }
    }

    /// Where a quoted field that starts at `at` has its closing quote, and whether `unquoted`
    /// holds its content. Without a closing quote the field ends with the input.
    fn closing_quote(
        &mut self,
        text: &[u8],
        at: usize,
        last: bool,
        wanted: bool,
    ) -> Option<(usize, bool)> {
        let (mut from, mut doubled) = (at, false);
        self.unquoted
            .truncate(if wanted { 0 } else { self.unquoted.len() });
        loop {
            let close = match memchr::memchr(b'"', &text[from..]) {
                Some(close) => from + close,
                None if last => {
                    self.unclosed = true;
                    text.len()
                }
                None => return None,
            };
            let again = text.get(close + 1) == Some(&b'"');
            if close + 1 == text.len() && !last {
                // Another quote may follow.
                return None;
            }
            doubled |= again;
            if wanted && doubled {
                // The first of two quotes belongs to the content.
                let end = close + usize::from(again);
                self.unquoted.extend_from_slice(&text[from..end]);
            }
            if !again {
                return Some((close, doubled));
            }
            from = close + 2;
        }
    }
}

impl Shape for Csv {
    fn end(&self) -> u8 {
        self.end
    }

    fn take(&mut self, text: &[u8], last: bool, keys: &mut Keys) -> Result<usize, Failure> {
        let mut at = 0;
        if self.at_start && !text.is_empty() {
            if self.header {
                at = self.read_header(text, last, &keys.name)?;
                if at == 0 {
                    return Ok(0);
                }
                self.refuse_unclosed(keys)?;
                keys.start = at;
                self.at_start = false;
            } else {
                at = text.len() - unmarked(text).len();
            }
        }
        let first = at;
        let what = "such field";
        if !self.quotes || memchr::memchr(b'"', &text[at..]).is_none() {
            for end in ends(&text[first..], self.end, last).map(|end| first + end) {
                let record = content(&text[at..end], self.end);
                match nth(record, self.delimiter, self.index) {
                    Some(key) => keys.push(key)?,
                    None => keys.missing(what),
                }
                keys.end_record(end);
                at = end;
            }
            return Ok(self.taken(first, at, keys));
        }
        while at < text.len() {
            let Some((end, found)) = self.record(text, at, last) else {
                break;
            };
            match found {
                _ if self.unclosed => self.refuse_unclosed(keys)?,
                Found::Nothing => keys.missing(what),
                Found::At(from, to) => keys.push(&text[from..to])?,
                Found::Unquoted => keys.push(&self.unquoted)?,
            }
            keys.end_record(end);
            at = end;
        }
        Ok(self.taken(first, at, keys))
    }
}

/// A second field of records that were read for their keys.
pub(crate) struct Column(Csv);

impl Column {
    pub(super) fn new(field: &Field, delimiter: u8, end: u8) -> Column {
        Column(Csv::new(field, delimiter, false, end))
    }

    /// Finds a field that is known by its name.
    pub(crate) fn read_header(&mut self, header: &[u8], source: &str) -> Result<(), Failure> {
        if !header.is_empty() && self.0.name.is_some() {
            self.0.read_header(header, true, source)?;
        }
        self.0.at_start &= header.is_empty();
        Ok(())
    }

    /// The field of the next record; `None` where it has too few.
    pub(crate) fn of<'a>(&'a mut self, mut record: &'a [u8]) -> Option<&'a [u8]> {
        if std::mem::take(&mut self.0.at_start) {
            record = unmarked(record);
        }
        match self.0.record(record, 0, true)?.1 {
            Found::Nothing => None,
            Found::At(from, to) => Some(&record[from..to]),
            Found::Unquoted => Some(&self.0.unquoted),
        }
    }
}

/// The field of that number, from 0, of a record without quotes.
fn nth(record: &[u8], delimiter: u8, index: usize) -> Option<&[u8]> {
    let mut rest = record;
    for _ in 0..index {
        rest = &rest[memchr::memchr(delimiter, rest)? + 1..];
    }
    Some(&rest[..memchr::memchr(delimiter, rest).unwrap_or(rest.len())])
}

#[cfg(test)]
mod tests {
    use super::super::records::tests::{hash, records};
    use super::*;

    fn fields(text: &str, field: &str, delimiter: u8) -> Vec<Option<String>> {
        let field: Field = field.parse().unwrap();
        let shape = |_| Csv::new(&field, delimiter, false, b'\n');
        let whole = records(text.as_bytes(), shape(()), usize::MAX);
        for step in [1, 2, 3, 5] {
            assert_eq!(
                records(text.as_bytes(), shape(()), step),
                whole,
                "step {step}"
            );
        }
        // What a key was is told by its hash.
        let words: Vec<String> = [
            "a",
            "b",
            "c",
            "d",
            "x,y",
            "say \"hi\"",
            "\"",
            "two\nlines",
            "1",
            "2",
            "3",
            "a b",
            "\"a",
            "b\r",
        ]
        .map(str::to_string)
        .to_vec();
        let word = |sought: u64| words.iter().find(|word| hash(word.as_bytes()) == sought);
        whole
            .into_iter()
            .map(|(_, hashes)| {
                hashes
                    .first()
                    .map(|&hash| word(hash).cloned().unwrap_or("?".into()))
            })
            .collect()
    }

    fn some(words: &[&str]) -> Vec<Option<String>> {
        words
            .iter()
            .map(|word| (!word.is_empty()).then(|| word.to_string()))
            .collect()
    }

    #[test]
    fn a_field_is_found_by_its_number() {
        let text = "a,b,c\r\n1,2,3\r\nd\n,,3";
        assert_eq!(fields(text, "1", b','), some(&["a", "1", "d", ""]));
        assert_eq!(fields(text, "2", b','), some(&["b", "2", "", ""]));
        assert_eq!(fields(text, "3", b','), some(&["c", "3", "", "3"]));
        assert_eq!(fields("a\tb\n\"a\tb\n", "1", b'\t'), some(&["a", "\"a"]));
    }

    #[test]
    fn quotes_hide_delimiters_and_line_ends_and_are_doubled() {
        let text = "\"a\",\"x,y\"\n\"b\"  ,\"say \"\"hi\"\"\"\nc,\"\"\"\"\r\n\"d\",\"two\nlines\"\n1,\"2\"\n\"\",2";
        assert_eq!(
            fields(text, "1", b','),
            some(&["a", "b", "c", "d", "1", ""])
        );
        assert_eq!(
            fields(text, "2", b','),
            some(&["x,y", "say \"hi\"", "\"", "two\nlines", "2", "2"])
        );
        assert_eq!(fields("1,\"a b", "1", b','), some(&[""]), "never closed");
        // Only before a line end is it no part of the key, with and without quotes.
        for text in ["a,b\r", "\"a\",b\r"] {
            assert_eq!(fields(text, "2", b','), some(&["b\r"]));
        }
    }

    #[test]
    fn a_field_is_found_by_its_name_in_the_header() {
        let text = "\u{FEFF}id,\"a b\"\n1,2\n3,\"a\"\n";
        assert_eq!(fields(text, "id", b','), some(&["1", "3"]));
        assert_eq!(fields(text, "a b", b','), some(&["2", "a"]));
        assert_eq!(fields("id", "id", b','), some(&[]));
    }

    /// By the steps of a search that starts anew for each, this would take minutes.
    #[test]
    fn a_header_of_a_million_fields_is_read_once() {
        let header: String = (0..1_000_000).map(|i| format!("f{i},")).collect();
        let text = format!("{header}last\n{}x\n", "1,".repeat(1_000_000));
        let mut csv = Csv::new(&"last".parse().unwrap(), b',', false, b'\n');
        let read = csv.read_header(text.as_bytes(), false, "text").unwrap();
        assert_eq!((read, csv.index), (header.len() + 5, 1_000_000));
        let mut csv = Csv::new(&"f99999x".parse().unwrap(), b',', false, b'\n');
        let error = csv.read_header(text.as_bytes(), false, "text").unwrap_err();
        let error = format!("{error:?}");
        assert!(
            error.contains("1000001") && error.contains("f99999"),
            "{error}"
        );
        assert!(error.len() < 200, "{error}");
    }

    #[test]
    fn a_delimiter_is_one_byte_or_tab() {
        assert_eq!(delimiter("tab"), Ok(b'\t'));
        assert_eq!(delimiter("\\t"), Ok(b'\t'));
        assert_eq!(delimiter(";"), Ok(b';'));
        for bad in ["", ",,", "é", "\n", "\""] {
            assert!(delimiter(bad).is_err(), "{bad:?}");
        }
    }
}
