//! What a file is, by its first bytes: compressed, in which case it is read all the same, or of a
//! form whose bytes are no records.

use std::io::{self, BufRead, Read};

use lz4_flex::frame::FrameDecoder;

/// As many first bytes as tell all forms apart, if they arrive together.
pub(super) const HEAD: usize = 512;
/// No signature at the start of a file is longer.
const LONGEST: usize = 16;

/// A way of compressing that is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
    Xz,
    Bzip2,
    Lz4,
}

impl Compression {
    pub(super) fn of(head: &[u8]) -> Option<Compression> {
        use Compression::{Bzip2, Gzip, Lz4, Xz, Zstd};
        match head {
            [0x1F, 0x8B, ..] => Some(Gzip),
            [0x28, 0xB5, 0x2F, 0xFD, ..] => Some(Zstd),
            // A frame to skip, with which the files of pzstd begin. It may stand before lz4's
            // frames too, but nobody has seen that.
            [0x50..=0x5F, 0x2A, 0x4D, 0x18, ..] => Some(Zstd),
            [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => Some(Xz),
            // The digits of pi before a block, or those of its root before the end.
            [
                b'B',
                b'Z',
                b'h',
                b'1'..=b'9',
                0x31,
                0x41,
                0x59,
                0x26,
                0x53,
                0x59,
                ..,
            ]
            | [
                b'B',
                b'Z',
                b'h',
                b'1'..=b'9',
                0x17,
                0x72,
                0x45,
                0x38,
                0x50,
                0x90,
                ..,
            ] => Some(Bzip2),
            [0x04, 0x22, 0x4D, 0x18, ..] => Some(Lz4),
            _ => None,
        }
    }

    /// What was compressed. Several pieces one after the other are one, as for those programs.
    pub(super) fn undo(self, input: impl BufRead + 'static) -> io::Result<Box<dyn Read>> {
        Ok(match self {
            Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(input)),
            Compression::Zstd => Box::new(zstd::Decoder::with_buffer(input)?),
            Compression::Xz => Box::new(liblzma::bufread::XzDecoder::new_multi_decoder(input)),
            Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(input)),
            Compression::Lz4 => Box::new(Lz4Frames(Some(FrameDecoder::new(input.chain(END))))),
        })
    }
}

/// Frames of lz4, one after the other.
///
/// The decoder takes the end of its input for the end of a frame, also where that was cut short. So
/// something stands behind the input that is nothing in a frame: it is an error within one, and the
/// end after one.
struct Lz4Frames<R: Read>(Option<FrameDecoder<R>>);

const END: &[u8] = &[0xFF; 8];

impl<R: BufRead> Read for Lz4Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(mut frame) = self.0.take() {
            let got = frame.read(out)?;
            if got > 0 || out.is_empty() {
                self.0 = Some(frame);
                return Ok(got);
            }
            match frame.get_mut().fill_buf()? {
                END => {}
                // A block was longer than the input, and took some of the end for its own.
                rest if END.ends_with(rest) => {
                    let why = "the lz4 frame is cut short";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
                }
                _ => self.0 = Some(FrameDecoder::new(frame.into_inner())),
            }
        }
        Ok(0)
    }
}

/// A form whose bytes are no records: what it is, and what to do.
type Foreign = (&'static str, &'static str);

const UNPACK: &str = "unpack it first";
const FOREIGN: [(&[u8], Foreign); 17] = [
    (
        b"PK\x03\x04",
        ("a zip archive", "`unzip -p` prints what is in it"),
    ),
    (b"PK\x05\x06", ("an empty zip archive", UNPACK)),
    (
        b"7z\xBC\xAF\x27\x1C",
        ("a 7z archive", "`7z x -so` prints what is in it"),
    ),
    (b"Rar!\x1A\x07", ("a rar archive", UNPACK)),
    (
        b"\x02\x21\x4C\x18",
        ("compressed by an old lz4", "`lz4 -dc` prints what is in it"),
    ),
    (
        b"\x1F\x9D",
        (
            "compressed by `compress`",
            "`gzip -dc` prints what is in it",
        ),
    ),
    (
        b"LZIP\x01",
        ("compressed by lzip", "`lzip -dc` prints what is in it"),
    ),
    (
        b"SQLite format 3\0",
        (
            "an SQLite database",
            "`sqlite3 FILE \"select …\"` prints a column",
        ),
    ),
    (b"\x7FELF", ("a program", "`strings` prints the text in it")),
    (
        b"PAR1",
        (
            "a Parquet file",
            "name the column with the keys by --column",
        ),
    ),
    (
        b"ARROW1",
        (
            "an Arrow file",
            "write the column with the keys as Parquet or text",
        ),
    ),
    (
        b"Obj\x01",
        (
            "an Avro file",
            "write the field with the keys as JSON lines or text",
        ),
    ),
    (
        b"\x89PNG\r\n\x1A\n",
        ("a PNG image", "give a list of keys or records"),
    ),
    // Before UTF-16, whose mark begins that of UTF-32 with the low byte first.
    (b"\xFF\xFE\0\0", UTF32),
    (b"\0\0\xFE\xFF", UTF32),
    (b"\xFF\xFE", UTF16),
    (b"\xFE\xFF", UTF16),
];
const UTF32: Foreign = ("UTF-32 text", "`iconv -f UTF-32 -t UTF-8` makes it UTF-8");
const UTF16: Foreign = ("UTF-16 text", "`iconv -f UTF-16 -t UTF-8` makes it UTF-8");
const UTF16LE: Foreign = ("UTF-16 text", "`iconv -f UTF-16LE -t UTF-8` makes it UTF-8");
const UTF16BE: Foreign = ("UTF-16 text", "`iconv -f UTF-16BE -t UTF-8` makes it UTF-8");
const TAR: Foreign = ("a tar archive", "`tar -xOf` prints what is in it");

/// The form whose first bytes these are, if it is no text.
pub(super) fn foreign(head: &[u8]) -> Option<Foreign> {
    let known = FOREIGN.iter().find(|(magic, _)| head.starts_with(magic));
    let known = known.map(|(_, foreign)| *foreign);
    known.or_else(|| head.get(257..262).filter(|at| *at == b"ustar").map(|_| TAR))
}

/// UTF-16 without a mark, if these look like it: of two bytes one is mostly NUL, and always the
/// same one, as in Latin text.
pub(super) fn unmarked_utf16(head: &[u8]) -> Option<Foreign> {
    let units = head.len() / 2;
    let nuls = |of: usize| head.chunks_exact(2).filter(|unit| unit[of] == 0).count();
    match (nuls(0), nuls(1)) {
        _ if units < 2 => None,
        (0, high) if 2 * high > units => Some(UTF16LE),
        (high, 0) if 2 * high > units => Some(UTF16BE),
        _ => None,
    }
}

/// Whether more bytes should be waited for before a form is told. Where a record has ended it may
/// be one that a slow pipe wants answered.
pub(super) fn is_undecided(head: &[u8]) -> bool {
    head.len() < LONGEST && !head.contains(&b'\n') && !head.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf16_is_known_without_a_mark_and_nul_bytes_in_lines_are_none() {
        let text = "one line\nürün ştö\n";
        let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(unmarked_utf16(&little), Some(UTF16LE));
        assert_eq!(unmarked_utf16(&big), Some(UTF16BE));
        for text in [
            &b""[..],
            b"a\0",
            b"a\n",
            b"a\0\nb\0\n",
            b"\0\0\0\0",
            b"lines\0of\0\n",
        ] {
            assert_eq!(unmarked_utf16(text), None, "{text:?}");
        }
    }

    #[test]
    fn every_form_is_known_by_its_first_bytes_and_text_is_none() {
        for (magic, foreign) in FOREIGN {
            assert!(magic.len() <= LONGEST);
            let head = [magic, b"and more\n"].concat();
            assert_eq!(super::foreign(&head), Some(foreign));
            assert_eq!(Compression::of(&head), None);
        }
        let mut tar = vec![0; HEAD];
        tar[..5].copy_from_slice(b"a.txt");
        tar[257..262].copy_from_slice(b"ustar");
        assert_eq!(foreign(&tar), Some(TAR));
        for text in [
            &b""[..],
            b"a",
            b"PK\n",
            b"BZh9\n",
            b"BZh91AY&S",
            b"Rar!\n",
            b"7z\n",
            b"ELF",
        ] {
            assert_eq!((foreign(text), Compression::of(text)), (None, None));
        }
    }
}
