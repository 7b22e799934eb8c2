//! Files and standard input: opened, told apart, and decompressed.
//!
//! What is compressed by gzip, zstd, xz, bzip2 or lz4 is known by its first bytes, whatever its
//! name. One that is cut short or damaged is an error, never an end.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tamis::{AnyFilter, DecodeErrorKind, Hashing, Keyed, Open};

use super::formats::{self, Compression, HEAD};
use super::unmarked;
use crate::failure::Failure;
use crate::{clock, closed, output};

/// An open file, or standard input.
pub(crate) struct Source {
    /// What to call it in messages.
    pub(crate) name: String,
    /// The length of a regular file; others do not have one.
    pub(crate) len: Option<u64>,
    path: Option<PathBuf>,
    /// Bytes that were taken from the file, compressed as they may be.
    taken: Arc<AtomicU64>,
    /// What was looked at, and is read again before the rest.
    head: io::Cursor<Vec<u8>>,
    rest: Box<dyn Read>,
    compressed: bool,
    looked: bool,
}

/// No more of a first line is looked at.
const FIRST_LINE: usize = 64 << 10;

/// Whether a path stands for standard input.
pub(super) fn is_dash(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether two paths lead to one file that is there.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(one).is_some_and(|one| real(other) == Some(one))
}

impl Source {
    /// Opens a file; no path or `-` is standard input.
    pub(crate) fn open(path: Option<&Path>) -> Result<Source, Failure> {
        let Some(path) = path.filter(|path| !is_dash(path)) else {
            let name = "standard input".to_string();
            if closed::stdin() {
                return Err(Failure::io(name, "it is closed"));
            }
            return Ok(Source::new(name, io::stdin()));
        };
        let name = path.display().to_string();
        let file = File::open(path).map_err(|e| Failure::io(&name, e))?;
        let meta = file.metadata().map_err(|e| Failure::io(&name, e))?;
        Ok(Source {
            len: meta.is_file().then_some(meta.len()),
            path: Some(path.to_path_buf()),
            ..Source::new(name, file)
        })
    }

    #[cfg(test)]
    pub(crate) fn of_bytes(bytes: &[u8]) -> Source {
        Source::new("bytes".to_string(), io::Cursor::new(bytes.to_vec()))
    }

    /// What is no file: standard input, or bytes of a test.
    pub(crate) fn new(name: String, input: impl Read + 'static) -> Source {
        let taken = Arc::new(AtomicU64::new(0));
        Source {
            name,
            len: None,
            path: None,
            taken: taken.clone(),
            head: io::Cursor::default(),
            rest: Box::new(Counted { input, taken }),
            compressed: false,
            looked: false,
        }
    }

    /// The file's name as data, where [`name`](Source::name) is for messages.
    pub(crate) fn name_as_data(&self) -> Vec<u8> {
        let path = self.path.as_deref();
        path.map_or(self.name.as_bytes(), output::name).to_vec()
    }

    /// Whether this is standard input, which can be read only once.
    pub(crate) fn is_stdin(&self) -> bool {
        self.path.is_none()
    }

    /// How many bytes have been taken from the file: for a progress bar, also where it is
    /// compressed.
    pub(crate) fn taken(&self) -> Arc<AtomicU64> {
        self.taken.clone()
    }

    /// Whether this is a filter, be it a damaged one, or one that threads share.
    pub(crate) fn is_filter(&mut self) -> Result<bool, Failure> {
        let head = self.peek()?;
        Ok(tamis::looks_like_filter(head) || is_shared(head))
    }

    /// Whether there is nothing to read.
    pub(crate) fn is_empty(&mut self) -> Result<bool, Failure> {
        Ok(self.peek()?.is_empty())
    }

    /// Whether this is compressed.
    pub(crate) fn is_compressed(&mut self) -> Result<bool, Failure> {
        self.peek()?;
        Ok(self.compressed)
    }

    /// Opens the filter that this is, verifying everything; under the secret, where that is kept
    /// elsewhere. A window of time has forgotten what is too old by now.
    pub(crate) fn filter(mut self, secret: Option<&Hashing>) -> Result<Keyed<AnyFilter>, Failure> {
        self.peek()?;
        // By its path the library knows how much memory to take at once.
        let open = secret.map_or(Open::new(), |secret| Open::new().hashing(*secret));
        let opened = match self.regular_path() {
            Some(path) => open.load(path),
            None => open.read(&mut self),
        };
        let mut filter = opened.map_err(|e| Failure::decode(self.name, &e))?;
        clock::advance(&mut filter)?;
        Ok(filter)
    }

    /// The file itself, for what must be read at any place; `None` where it is none, or
    /// compressed.
    pub(super) fn regular_path(&self) -> Option<&Path> {
        self.path
            .as_deref()
            .filter(|_| self.len.is_some() && !self.compressed)
    }

    /// Refuses what is known to be no text, and tells what to do. Records that end with NUL may
    /// be of one letter, and then look like UTF-16 without a mark.
    pub(super) fn refuse_foreign(&mut self, null: bool) -> Result<(), Failure> {
        let head = self.peek()?;
        let unmarked = || formats::unmarked_utf16(head).filter(|_| !null);
        match formats::foreign(head).or_else(unmarked) {
            None => Ok(()),
            Some((what, hint)) => {
                let why = format!("this is {what}, not records; {hint} (--text reads it as it is)");
                Err(Failure::usage(&self.name, why))
            }
        }
    }

    /// The bytes, decompressed.
    pub(super) fn into_read(mut self) -> Result<impl Read, Failure> {
        self.peek()?;
        Ok(self)
    }

    /// The first bytes, which stay to be read. None are there only where there is nothing.
    pub(super) fn peek(&mut self) -> Result<&[u8], Failure> {
        if !self.looked {
            self.looked = true;
            self.look().map_err(|e| Failure::io(&self.name, e))?;
        }
        Ok(self.head.get_ref())
    }

    /// The first line without its end, or as much of it as is looked at.
    pub(super) fn first_line(&mut self) -> Result<&[u8], Failure> {
        self.peek()?;
        let head = self.head.get_mut();
        while !head.contains(&b'\n') && head.len() < FIRST_LINE {
            let room = (FIRST_LINE - head.len()) as u64;
            let before = head.len();
            let read = (&mut self.rest)
                .take(room.min(HEAD as u64))
                .read_to_end(head);
            read.map_err(|e| Failure::io(&self.name, e))?;
            if head.len() == before {
                break;
            }
        }
        let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
        Ok(unmarked(line.strip_suffix(b"\r").unwrap_or(line)))
    }

    /// What stands between fields, by the end of the file's name.
    pub(super) fn delimiter(&self) -> Option<u8> {
        let name = self
            .path
            .as_deref()?
            .file_name()?
            .to_str()?
            .to_ascii_lowercase();
        let packed = [".gz", ".zst", ".xz", ".bz2", ".lz4"];
        let plain = packed.iter().find_map(|end| name.strip_suffix(end));
        match plain.unwrap_or(&name).rsplit_once('.')?.1 {
            "csv" => Some(b','),
            "tsv" | "tab" => Some(b'\t'),
            _ => None,
        }
    }

    fn look(&mut self) -> io::Result<()> {
        let mut head = first_bytes(&mut self.rest)?;
        if let Some(compression) = Compression::of(&head) {
            let rest = std::mem::replace(&mut self.rest, Box::new(io::empty()));
            let input = io::Cursor::new(head).chain(rest);
            self.rest = compression.undo(io::BufReader::with_capacity(128 << 10, input))?;
            self.compressed = true;
            head = first_bytes(&mut self.rest)?;
        }
        self.head = io::Cursor::new(head);
        Ok(())
    }
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.head.read(out)? {
            0 => self.rest.read(out),
            got => Ok(got),
        }
    }
}

/// Whether the file of a filter that threads share begins so. Its signature is letters, behind
/// which a number of a few bytes stands in eight.
fn is_shared(head: &[u8]) -> bool {
    let opened = Keyed::<AnyFilter>::open(head.to_vec());
    let is_signed = opened.is_err_and(|e| matches!(e.kind(), DecodeErrorKind::Shared));
    is_signed && head.get(11..16) == Some(&[0; 5])
}

/// The first bytes: as many as it takes to know what this is, without waiting for more than a slow
/// pipe's first record.
fn first_bytes(input: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while formats::is_undecided(&head) {
        let mut piece = [0; HEAD];
        match input.read(&mut piece[head.len()..]) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
            Ok(0) => break,
            Ok(got) => {
                let from = head.len();
                head.extend_from_slice(&piece[from..from + got]);
            }
        }
    }
    Ok(head)
}

/// Counts the bytes that pass.
struct Counted<R> {
    input: R,
    taken: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let got = self.input.read(out)?;
        self.taken.fetch_add(got as u64, Relaxed);
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn xz(bytes: &[u8]) -> Vec<u8> {
        let mut out = liblzma::write::XzEncoder::new(Vec::new(), 1);
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn bz2(bytes: &[u8]) -> Vec<u8> {
        let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    fn lz4(bytes: &[u8]) -> Vec<u8> {
        let mut out = lz4_flex::frame::FrameEncoder::new(Vec::new());
        out.write_all(bytes).unwrap();
        out.finish().unwrap()
    }

    /// As pzstd writes: a frame to skip, which tells how long the next is.
    fn pzstd(bytes: &[u8]) -> Vec<u8> {
        let frame = zstd::encode_all(bytes, 1).unwrap();
        let skipped = [0x50, 0x2A, 0x4D, 0x18, 4, 0, 0, 0];
        [&skipped[..], &(frame.len() as u32).to_le_bytes(), &frame].concat()
    }

    fn read(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::new();
        let mut input = Source::of_bytes(bytes).into_read()?;
        input
            .read_to_end(&mut out)
            .map_err(|e| Failure::io("bytes", e))?;
        Ok(out)
    }

    #[test]
    fn what_is_compressed_is_known_by_its_first_bytes() {
        let text: Vec<u8> = (0..50_000u32)
            .flat_map(|i| format!("{i}\n").into_bytes())
            .collect();
        let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
        for pack in [gzip, xz, bz2, lz4, pzstd, zstd] {
            for text in [&text[..], b"", b"a\n"] {
                let packed = pack(text);
                assert_eq!(read(&packed).unwrap(), text);
                let twice = [&packed[..], &packed].concat();
                assert_eq!(read(&twice).unwrap(), [text, text].concat());
            }
            let packed = pack(&text);
            for cut in [20, packed.len() / 2, packed.len() - 1] {
                assert!(read(&packed[..cut]).is_err(), "cut at {cut}");
            }
            // A block that ends just before the input does, or just behind it.
            let packed = pack(&text[..100]);
            for cut in 20..packed.len() {
                assert!(read(&packed[..cut]).is_err(), "cut at {cut}");
            }
        }
        for text in [&b""[..], b"\x1F", b"\x28\xB5\x2F", b"plain text"] {
            assert_eq!(read(text).unwrap(), text);
        }
    }
}
