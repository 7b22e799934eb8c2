//! Lines and NUL records; and how any shape of text is read in pieces, of which each holds whole
//! records.

use std::io::{self, Read};

use super::{Batch, Keys, Records};
use crate::failure::Failure;
use crate::units;

/// How much is read at a time: enough to look up thousands of keys together, little enough to
/// stay in the caches.
pub(super) const READ: usize = 256 << 10;
/// A record beyond this is taken for a mistake, such as a file of another kind.
pub(super) const LONGEST: usize = 1 << 30;

/// How records and their keys lie in a text.
pub(super) trait Shape {
    /// The byte that every record ends with, which it may also contain.
    fn end(&self) -> u8;

    /// Takes whole records from the start of the text, and says how many bytes they are. With
    /// `last` no more text comes, and what is left is a record too.
    fn take(&mut self, text: &[u8], last: bool, keys: &mut Keys) -> Result<usize, Failure>;
}

/// What some programs write at the start of a text in UTF-8. It is no part of the text.
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A text without the mark before it.
pub(crate) fn unmarked(text: &[u8]) -> &[u8] {
    text.strip_prefix(BOM).unwrap_or(text)
}

/// Every record is a key.
pub(super) struct Lines {
    end: u8,
    at_start: bool,
}

impl Lines {
    pub(super) fn new(end: u8) -> Lines {
        Lines {
            end,
            at_start: true,
        }
    }
}

impl Shape for Lines {
    fn end(&self) -> u8 {
        self.end
    }

    fn take(&mut self, text: &[u8], last: bool, keys: &mut Keys) -> Result<usize, Failure> {
        let mut start = 0;
        for end in ends(text, self.end, last) {
            let mut key = content(&text[start..end], self.end);
            if self.at_start {
                self.at_start = false;
                // A NUL record is no text, but the name of a file, say.
                if self.end == b'\n' {
                    key = unmarked(key);
                }
            }
            keys.push(key)?;
            keys.end_record(end);
            start = end;
        }
        Ok(start)
    }
}

/// Where each record ends that holds its end byte nowhere else.
pub(super) fn ends(text: &[u8], end: u8, last: bool) -> impl Iterator<Item = usize> {
    let unended = last && text.last().is_some_and(|&byte| byte != end);
    memchr::memchr_iter(end, text)
        .map(|at| at + 1)
        .chain(unended.then_some(text.len()))
}

/// A record without its end: the end byte and, before a line's, a `\r`.
#[inline]
pub(crate) fn content(record: &[u8], end: u8) -> &[u8] {
    match record {
        [content @ .., b'\r', b'\n'] if end == b'\n' => content,
        [content @ .., byte] if *byte == end => content,
        content => content,
    }
}

/// A text that is read in pieces.
pub(super) struct Streamed<R, S> {
    input: R,
    shape: S,
    keys: Keys,
    buf: Vec<u8>,
    /// The bytes of `buf` that were read.
    filled: usize,
    /// The bytes of `buf` that were handed out.
    done: usize,
    ended: bool,
    longest: usize,
}

impl<R: Read, S: Shape> Streamed<R, S> {
    pub(super) fn new(input: R, shape: S, keys: Keys) -> Streamed<R, S> {
        Streamed {
            input,
            shape,
            longest: keys.purpose.longest,
            keys,
            buf: vec![0; READ],
            filled: 0,
            done: 0,
            ended: false,
        }
    }

    /// Reads once. Returns whether a record may have ended.
    fn read(&mut self) -> Result<bool, Failure> {
        if self.filled == self.buf.len() {
            self.grow()?;
        }
        // No more than usual, also where a long record has made the buffer large: the work per
        // record takes memory too.
        let end = self.buf.len().min(self.filled + READ);
        let got = match self.input.read(&mut self.buf[self.filled..end]) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(false),
            got => got.map_err(|e| Failure::io(&self.keys.name, e))?,
        };
        let fresh = self.filled..self.filled + got;
        self.filled = fresh.end;
        self.ended = got == 0;
        Ok(self.ended || memchr::memrchr(self.shape.end(), &self.buf[fresh]).is_some())
    }

    /// Makes room for a longer record.
    fn grow(&mut self) -> Result<(), Failure> {
        let len = self.buf.len();
        if len > self.longest {
            let hint = match self.longest {
                LONGEST => "is this a file of another form?",
                _ => "is this a file of another form? If not, allow more by --max-memory",
            };
            let longest = units::show_bytes(self.longest as f64);
            let why = format!("a record is longer than {longest}; {hint}");
            return Err(Failure::io(&self.keys.name, why));
        }
        // Room for the longest record and its end.
        let larger = (2 * len).min(self.longest + 2);
        self.buf
            .try_reserve_exact(larger - len)
            .map_err(|e| Failure::io(&self.keys.name, e))?;
        self.buf.resize(larger, 0);
        Ok(())
    }
}

impl<R: Read, S: Shape> Records for Streamed<R, S> {
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Failure> {
        self.buf.copy_within(self.done..self.filled, 0);
        self.filled -= self.done;
        self.done = 0;
        self.keys.clear();
        // A record that holds its end byte is looked through anew with each piece; with twice as
        // much each time, so that a long one costs no more than twice its length.
        let mut enough = 0;
        while !self.ended {
            let may_end = self.read()?;
            if !(may_end && self.filled >= enough || self.ended) {
                continue;
            }
            let text = &self.buf[..self.filled];
            self.done = self.shape.take(text, self.ended, &mut self.keys)?;
            if self.done > 0 {
                return Ok(Some(self.keys.batch(&self.buf[..self.done])));
            }
            if self.filled > READ {
                enough = 2 * self.filled;
            }
        }
        Ok(None)
    }

    fn keys(&self) -> &Keys {
        &self.keys
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tamis::{Hashing, KeyForm};

    use super::super::Purpose;
    use super::*;

    /// Gives its bytes in pieces of a few, as a slow pipe does.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(out.len());
            (&mut self.0).take(n as u64).read(out)
        }
    }

    pub(in super::super) fn keys() -> Keys {
        let purpose = Purpose::lookup(Hashing::default());
        Keys::new("text".to_string(), KeyForm::Plain, purpose)
    }

    /// The text of each record with the hashes of its keys, of a text that arrives in steps of so
    /// many bytes.
    pub(in super::super) fn records(
        text: &[u8],
        shape: impl Shape,
        step: usize,
    ) -> Vec<(Vec<u8>, Vec<u64>)> {
        let mut input = Streamed::new(Slow(text, step), shape, keys());
        let mut records = Vec::new();
        while let Some(batch) = input.next_batch().unwrap() {
            records.extend(
                batch
                    .records()
                    .map(|(text, hashes)| (text.to_vec(), batch.hashes[hashes].to_vec())),
            );
        }
        records
    }

    pub(in super::super) fn hash(key: &[u8]) -> u64 {
        Hashing::default().hash_bytes(key)
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_arrive() {
        let long = [b"x".repeat(3 * READ), b"\nafter\n".to_vec()].concat();
        for text in [
            &b""[..],
            b"\n",
            b"a",
            b"a\nb",
            b"a\r\nb\r\n",
            b"\r",
            b"\n\n\r\n\0\xFF\n",
            &long,
        ] {
            for end in [b'\n', 0] {
                let whole = records(text, Lines::new(end), usize::MAX);
                for step in [1, 2, 3, 7, READ - 1, READ] {
                    if step * 1000 > text.len() {
                        assert_eq!(records(text, Lines::new(end), step), whole, "step {step}");
                    }
                }
                let joined: Vec<u8> = whole.iter().flat_map(|(text, _)| text.clone()).collect();
                assert_eq!(joined, text);
            }
        }
        assert_eq!(records(&long, Lines::new(b'\n'), READ).len(), 2);
    }

    /// Texts of the letters that mean something to some shape.
    fn texts(letters: &'static [u8]) -> impl Iterator<Item = Vec<u8>> {
        let mut state = 7u64;
        let mut next = move |below: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        (0..3000).map(move |_| {
            (0..next(40))
                .map(|_| letters[next(letters.len())])
                .collect()
        })
    }

    #[track_caller]
    fn agree<S: Shape>(text: &[u8], shape: impl Fn() -> S) {
        let whole = records(text, shape(), usize::MAX);
        let joined: Vec<u8> = whole.iter().flat_map(|(text, _)| text.clone()).collect();
        assert_eq!(joined, text, "no byte is lost");
        for step in [1, 2, 7] {
            let shown = String::from_utf8_lossy(text);
            assert_eq!(
                records(text, shape(), step),
                whole,
                "step {step} of {shown:?}"
            );
        }
    }

    #[test]
    fn any_text_of_any_shape_is_the_same_however_it_arrives() {
        use super::super::{csv, json, kmer};
        for text in texts(b"ab,\"\"\n\r\0") {
            for field in [1, 2] {
                agree(&text, || {
                    csv::Csv::new(&csv::Field::Number(field), b',', false, b'\n')
                });
            }
            agree(&text, || {
                csv::Csv::new(&csv::Field::Number(2), b',', false, 0)
            });
        }
        for text in texts(b"{}[]\"\":,a1\\\n") {
            agree(&text, || {
                json::JsonLines::new("a.1".parse().unwrap(), b'\n')
            });
        }
        for text in texts(b"ACGTN>@+\n\n\r") {
            for first in [b">", b"@"] {
                let text = [&first[..], &text].concat();
                agree(&text, || kmer::Sequences::new(2, true));
            }
        }
    }

    #[test]
    fn only_the_end_is_stripped_and_an_empty_record_has_no_key() {
        let keys: Vec<_> = records(b"a\r\nb\nc \n\r\n\rd\r\r\n\ne\r", Lines::new(b'\n'), 4)
            .into_iter()
            .map(|(_, hashes)| hashes)
            .collect();
        let expected = [&b"a"[..], b"b", b"c ", b"", b"\rd\r", b"", b"e\r"];
        let expected: Vec<Vec<u64>> = expected
            .iter()
            .map(|key| (!key.is_empty()).then(|| hash(key)).into_iter().collect())
            .collect();
        assert_eq!(keys, expected);
        assert_eq!(content(b"a\r\0", 0), b"a\r");
    }

    #[test]
    fn the_mark_before_a_text_is_no_part_of_its_first_key() {
        let text = b"\xEF\xBB\xBFa\n\xEF\xBB\xBFb\n";
        for step in [1, 100] {
            let lines = records(text, Lines::new(b'\n'), step);
            assert_eq!(lines[0], (text[..5].to_vec(), vec![hash(b"a")]));
            assert_eq!(lines[1].1, [hash(&text[5..9])]);
        }
        let names = records(b"\xEF\xBB\xBFa\0", Lines::new(0), 1);
        assert_eq!(names[0].1, [hash(&text[..4])]);
    }

    #[test]
    fn a_record_of_the_limit_is_read_and_a_longer_one_refused() {
        let limit = 1 << 20;
        for (line, end) in [(limit, "\n"), (limit, "\r\n"), (limit + 2, "\n")] {
            let text = [b"x".repeat(line), end.into()].concat();
            let mut lines = Streamed::new(&text[..], Lines::new(b'\n'), keys());
            lines.longest = limit;
            match lines.next_batch() {
                Ok(batch) => {
                    let (record, _) = batch.unwrap().records().next().unwrap();
                    assert_eq!((record, line), (&text[..], limit));
                }
                Err(Failure::Error { message, .. }) => {
                    assert!(message.starts_with("text: a record is longer than 1.0 MiB"));
                    assert!(line > limit);
                }
                Err(Failure::Closed) => unreachable!("nothing was written"),
            }
        }
    }
}
