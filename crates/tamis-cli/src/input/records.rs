//! Reading: files and standard input, filters and lines.
//!
//! A key is a line without its `\n`, and without a `\r` before that. Its bytes are taken as they are: they need not be
//! UTF-8, and may hold NUL. A last line without `\n` counts. An empty line holds no key.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tamis::{AnyFilter, Hashing, Keyed};

use crate::failure::Failure;

/// How much is read at a time: enough to look up thousands of keys together, little enough to stay in the caches.
const READ: usize = 256 << 10;
/// A line beyond this is taken for a mistake, such as a file of another kind.
const LONGEST_LINE: usize = 1 << 30;
/// As many bytes as tell a filter from a list of keys.
const SIGNATURE: u64 = 8;

/// An open file, or standard input.
pub(crate) struct Source {
    /// What to call it in messages.
    pub(crate) name: String,
    /// The length of a regular file; others do not have one.
    pub(crate) len: Option<u64>,
    path: Option<PathBuf>,
    /// What was looked at, and is read again before the rest.
    head: io::Cursor<Vec<u8>>,
    rest: Box<dyn Read>,
}

impl Source {
    /// Opens a file; no path or `-` is standard input.
    pub(crate) fn open(path: Option<&Path>) -> Result<Source, Failure> {
        let head = io::Cursor::default();
        let Some(path) = path.filter(|p| *p != Path::new("-")) else {
            return Ok(Source {
                name: "standard input".to_string(),
                len: None,
                path: None,
                head,
                rest: Box::new(io::stdin()),
            });
        };
        let name = path.display().to_string();
        let file = File::open(path).map_err(|e| Failure::io(&name, e))?;
        let meta = file.metadata().map_err(|e| Failure::io(&name, e))?;
        Ok(Source {
            name,
            len: meta.is_file().then_some(meta.len()),
            path: Some(path.to_path_buf()),
            head,
            rest: Box::new(file),
        })
    }

    /// Whether this is standard input, which can be read only once.
    pub(crate) fn is_stdin(&self) -> bool {
        self.path.is_none()
    }

    /// The first bytes, which stay to be read. Fewer than eight are all that there are.
    fn peek(&mut self) -> Result<&[u8], Failure> {
        let head = self.head.get_mut();
        (&mut self.rest)
            .take(SIGNATURE - head.len() as u64)
            .read_to_end(head)
            .map_err(|e| Failure::io(&self.name, e))?;
        Ok(self.head.get_ref())
    }

    /// Whether this is a filter, be it a damaged one.
    pub(crate) fn is_filter(&mut self) -> Result<bool, Failure> {
        Ok(tamis::looks_like_filter(self.peek()?))
    }

    /// Whether there is nothing to read.
    pub(crate) fn is_empty(&mut self) -> Result<bool, Failure> {
        Ok(self.peek()?.is_empty())
    }

    /// Opens the filter that this is, verifying everything.
    pub(crate) fn filter(self) -> Result<Keyed<AnyFilter>, Failure> {
        // By its path the library knows how much memory to take at once.
        let opened = match (&self.path, self.len) {
            (Some(path), Some(_)) => Keyed::load(path),
            _ => Keyed::read_from(self.head.chain(self.rest)),
        };
        opened.map_err(|e| Failure::decode(self.name, &e))
    }

    /// Reads line by line, many at a time.
    pub(crate) fn lines(self) -> Lines<impl Read> {
        Lines::new(self.name, self.head.chain(self.rest))
    }

    /// The hashes of all keys in the order of the lines. `progress` is told how many bytes were read.
    pub(crate) fn hashes(
        self,
        hashing: &Hashing,
        progress: impl Fn(u64),
    ) -> Result<Vec<u64>, Failure> {
        let name = self.name.clone();
        let mut lines = self.lines();
        let mut hashes = Vec::new();
        while let Some(batch) = lines.next_batch()? {
            for key in split(batch).map(key).filter(|key| !key.is_empty()) {
                if hashes.len() == hashes.capacity() {
                    hashes.try_reserve(1).map_err(|e| Failure::io(&name, e))?;
                }
                hashes.push(hashing.hash_bytes(key));
            }
            progress(batch.len() as u64);
        }
        Ok(hashes)
    }
}

/// Whole lines, as many as one read brings, so that a slow pipe is answered at once and a file in large steps.
pub(crate) struct Lines<R> {
    name: String,
    input: R,
    buf: Vec<u8>,
    /// The bytes of `buf` that were read.
    filled: usize,
    /// The bytes of `buf` that were handed out.
    done: usize,
    ended: bool,
    longest: usize,
}

impl<R: Read> Lines<R> {
    fn new(name: String, input: R) -> Lines<R> {
        Lines {
            name,
            input,
            buf: vec![0; READ],
            filled: 0,
            done: 0,
            ended: false,
            longest: LONGEST_LINE,
        }
    }

    /// The next lines, each with its `\n`, which only the very last may lack. `None` at the end.
    pub(crate) fn next_batch(&mut self) -> Result<Option<&[u8]>, Failure> {
        self.buf.copy_within(self.done..self.filled, 0);
        self.filled -= self.done;
        self.done = 0;
        while !self.ended {
            if self.filled == self.buf.len() {
                self.grow()?;
            }
            // No more than usual, also where a long line has made the buffer large: the work per line takes memory too.
            let end = self.buf.len().min(self.filled + READ);
            let got = match self.input.read(&mut self.buf[self.filled..end]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                got => got.map_err(|e| Failure::io(&self.name, e))?,
            };
            let fresh = self.filled..self.filled + got;
            self.filled = fresh.end;
            if got == 0 {
                self.ended = true;
                self.done = self.filled;
            } else if let Some(at) = memchr::memrchr(b'\n', &self.buf[fresh.clone()]) {
                self.done = fresh.start + at + 1;
            }
            if self.done > 0 {
                return Ok(Some(&self.buf[..self.done]));
            }
        }
        Ok(None)
    }

    /// Makes room for a longer line.
    fn grow(&mut self) -> Result<(), Failure> {
        let len = self.buf.len();
        if len > self.longest {
            let why = format!("a line is longer than {} MiB", self.longest >> 20);
            return Err(Failure::io(&self.name, why));
        }
        // Room for the longest line and its end.
        let larger = (2 * len).min(self.longest + 2);
        self.buf
            .try_reserve_exact(larger - len)
            .map_err(|e| Failure::io(&self.name, e))?;
        self.buf.resize(larger, 0);
        Ok(())
    }
}

/// The lines of a batch, each with its end.
pub(crate) fn split(batch: &[u8]) -> impl Iterator<Item = &[u8]> {
    let unended = (!batch.is_empty() && !batch.ends_with(b"\n")).then_some(batch.len());
    let mut start = 0;
    memchr::memchr_iter(b'\n', batch)
        .map(|at| at + 1)
        .chain(unended)
        .map(move |end| {
            let line = &batch[start..end];
            start = end;
            line
        })
}

/// The key of a line: what stands before its end.
pub(crate) fn key(line: &[u8]) -> &[u8] {
    match line {
        [key @ .., b'\r', b'\n'] | [key @ .., b'\n'] => key,
        key => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives its bytes in pieces of a few, as a slow pipe does.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(out.len());
            (&mut self.0).take(n as u64).read(out)
        }
    }

    fn keys(text: &[u8], step: usize) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(String::new(), Slow(text, step));
        let mut keys = Vec::new();
        while let Some(batch) = lines.next_batch().unwrap() {
            keys.extend(split(batch).map(key).map(<[u8]>::to_vec));
        }
        keys
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
            let whole = keys(text, usize::MAX);
            for step in [1, 2, 3, 7, READ - 1, READ] {
                if step * 1000 > text.len() {
                    assert_eq!(keys(text, step), whole, "step {step}");
                }
            }
        }
        assert_eq!(keys(&long, READ).len(), 2);
    }

    #[test]
    fn only_the_line_end_is_stripped() {
        assert_eq!(
            keys(b"a\r\nb\nc \n\r\n\rd\r\r\n\ne\r", 4),
            [&b"a"[..], b"b", b"c ", b"", b"\rd\r", b"", b"e\r"]
        );
    }

    #[test]
    fn a_line_of_the_limit_is_read_and_a_longer_one_refused() {
        let limit = 1 << 20;
        for (line, end) in [(limit, "\n"), (limit, "\r\n"), (limit + 2, "\n")] {
            let text = [b"x".repeat(line), end.into()].concat();
            let mut lines = Lines::new("long".to_string(), &text[..]);
            lines.longest = limit;
            match lines.next_batch() {
                Ok(batch) => assert_eq!((batch, line), (Some(&text[..]), limit)),
                Err(Failure::Error { message, .. }) => {
                    assert_eq!(message, "long: a line is longer than 1 MiB");
                    assert!(line > limit);
                }
                Err(Failure::Closed) => unreachable!("nothing was written"),
            }
        }
    }
}
