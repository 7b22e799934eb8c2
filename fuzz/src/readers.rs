//! `readers`: any bytes as input of the program, in each form that it reads.

use std::io::{self, Cursor, Read};

use serde_json::Value;
use tamis::Hashing;
use tamis_cli::testing::{Options, Records};

/// The options of an input's first byte, a letter from `A` on, and where its keys are then. New
/// ones go to the end.
const FORMS: [(&str, Keys); 29] = [
    ("--text", Keys::Lines(b'\n')),
    ("--text -0", Keys::Lines(0)),
    ("--text -i", Keys::Untold),
    ("--text --hex", Keys::Hex),
    ("--text --int", Keys::Int),
    ("--text --kmer 2", Keys::Untold),
    ("--text --kmer 33", Keys::Untold),
    ("--text --kmer 3 -0", Keys::Untold),
    ("--text -f 1", Keys::Field(0, b',', b'\n', false)),
    ("--text -f 2", Keys::Field(1, b',', b'\n', false)),
    ("--text -f 2 -d tab", Keys::Field(1, b'\t', b'\n', false)),
    ("--text -f 2 -d ; -0", Keys::Field(1, b';', 0, false)),
    ("--text -f 2 --header", Keys::Field(1, b',', b'\n', true)),
    ("--text -f id", Keys::Untold),
    ("--text -f id -d tab --int", Keys::Untold),
    ("--text -f 1 --kmer 3", Keys::Untold),
    ("--text --json-key a", Keys::Json(&["a"])),
    ("--text --json-key a.b", Keys::Json(&["a", "b"])),
    ("--text --json-key a.1", Keys::Json(&["a", "1"])),
    ("--text --json-key /a~1b -0", Keys::Untold),
    ("--text --json-key a --hex", Keys::Untold),
    ("--column a", Keys::Untold),
    ("--column a.list.element", Keys::Untold),
    ("--column b", Keys::Untold),
    ("", Keys::Lines(b'\n')),
    ("-0", Keys::Lines(0)),
    ("-f 1", Keys::Field(0, b',', b'\n', false)),
    ("--json-key a", Keys::Json(&["a"])),
    ("--kmer 5", Keys::Untold),
];

/// Where keys are, for a reader that goes through a text byte by byte.
#[derive(Clone, Copy)]
enum Keys {
    /// This reader does not know.
    Untold,
    /// Records that end so.
    Lines(u8),
    Hex,
    Int,
    /// The field of a number from 0, of records with this delimiter and this end, below a header.
    Field(usize, u8, u8, bool),
    Json(&'static [&'static str]),
}

/// The first byte chooses the form, the second says in what steps the rest arrives. With `?` the
/// options are those of the first line.
pub fn readers(data: &[u8]) {
    let [form, step, bytes @ ..] = data else {
        return;
    };
    let (words, keys, bytes) = if *form == b'?' {
        let mut parts = bytes.splitn(2, |&byte| byte == b'\n');
        let words = parts.next().map(std::str::from_utf8);
        let (Some(Ok(words)), Some(bytes)) = (words, parts.next()) else {
            return;
        };
        (words, Keys::Untold, bytes)
    } else {
        let known = FORMS.get(usize::from(form.wrapping_sub(b'A')));
        let Some(&(words, keys)) = known else {
            return;
        };
        (words, keys, bytes)
    };
    if let Ok(options) = Options::new(&words.split_whitespace().collect::<Vec<_>>()) {
        let column = words.contains("--column");
        check(&options, keys, bytes, usize::from(*step % 32) + 1, column);
    }
}

/// Whatever was read, it is the same whatever it is read for and in whatever steps it arrives; no
/// byte is lost; and the keys are those of the definition. Of what fails it matters that it does:
/// where two things are wrong, what has arrived decides which of them is met first.
fn check(options: &Options, keys: Keys, bytes: &[u8], step: usize, column: bool) {
    let read = |lookup, step| options.read(Slow(Cursor::new(bytes.to_vec()), step), lookup);
    let (put, asked) = (read(false, usize::MAX), read(true, usize::MAX));
    if let Ok(put) = &put {
        let asked = asked.as_ref().expect("what can be put in can be asked");
        assert_eq!(put.all, asked.all, "asked for other keys than were put in");
    }
    if column {
        // A Parquet file is read from its end, and its records are no part of it.
        return;
    }
    for (lookup, whole) in [(false, &put), (true, &asked)] {
        let slow = read(lookup, step);
        if !refused(whole) && !refused(&slow) {
            assert_eq!(
                slow.as_ref().ok(),
                whole.as_ref().ok(),
                "in steps of {step}"
            );
        }
    }
    if let Ok(asked) = &asked
        && !looks_compressed(bytes)
    {
        assert!(asked.text == bytes, "bytes are lost");
        if let Some(model) = model(keys, bytes) {
            agree(&put, asked, &model);
        }
    }
}

/// Whether something was refused for its first bytes. What these are is known only if they arrive
/// together: a slow pipe's first record is not kept waiting.
fn refused(read: &Result<Records, String>) -> bool {
    let said = |why: &String| why.contains(", not records") || why.contains(", not a list");
    read.as_ref().is_err_and(said)
}

/// Bytes that arrive some at a time.
struct Slow(Cursor<Vec<u8>>, usize);

impl Read for Slow {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = self.1.min(out.len());
        self.0.read(&mut out[..most])
    }
}

fn looks_compressed(bytes: &[u8]) -> bool {
    let skippable = bytes.len() > 3 && bytes[0] & 0xF0 == 0x50 && bytes[1..4] == *b"\x2A\x4D\x18";
    let magics: [&[u8]; 5] = [
        b"\x1F\x8B",
        b"\x28\xB5\x2F\xFD",
        b"\xFD7zXZ\0",
        b"BZh",
        b"\x04\x22\x4D\x18",
    ];
    skippable || magics.iter().any(|magic| bytes.starts_with(magic))
}

/// A record has a key, or none, or cannot be read.
type Modelled = Result<Option<Key>, ()>;

enum Key {
    Bytes(Vec<u8>),
    Int(u64),
    /// A number of JSON: the key is its text, which a number does not tell.
    Number,
}

fn agree(put: &Result<Records, String>, asked: &Records, model: &[Modelled]) {
    assert_eq!(put.is_err(), model.iter().any(Result::is_err), "{put:?}");
    assert_eq!(asked.records.len(), model.len(), "other records");
    for (number, (hashes, key)) in asked.records.iter().zip(model).enumerate() {
        let hash = match key {
            Err(()) | Ok(None) => None,
            Ok(Some(Key::Bytes(key))) => Some(Hashing::default().hash_bytes(key)),
            Ok(Some(Key::Int(key))) => Some(Hashing::default().hash(key)),
            Ok(Some(Key::Number)) => hashes.first().copied().or(Some(0)),
        };
        let expected: Vec<u64> = hash.into_iter().collect();
        assert_eq!(*hashes, expected, "record {number}");
    }
}

/// The key of each record, by the definition in `docs/KEYS.md`; `None` where this does not tell.
fn model(keys: Keys, text: &[u8]) -> Option<Vec<Modelled>> {
    let lines = || lines(without_mark(text), b'\n').into_iter();
    Some(match keys {
        Keys::Untold => return None,
        Keys::Lines(b'\n') => lines().map(|line| Ok(plain(line))).collect(),
        Keys::Lines(end) => {
            let records = self::lines(text, end).into_iter();
            records.map(|record| Ok(plain(record))).collect()
        }
        Keys::Hex => lines().map(hex).collect(),
        Keys::Int => lines().map(int).collect(),
        Keys::Field(number, delimiter, end, header) => {
            let text = if header { without_mark(text) } else { text };
            let mut records = fields(text, number, delimiter, end);
            if header && !records.is_empty() {
                records.remove(0).ok()?;
            }
            records
        }
        // Readers may read such a name as an order to themselves.
        Keys::Json(_) if String::from_utf8_lossy(text).contains("serde_json") => return None,
        Keys::Json(path) => {
            let lines = self::lines(text, b'\n').into_iter();
            lines.map(|line| json(line, path)).collect::<Option<_>>()?
        }
    })
}

/// The text without what some programs write before it.
fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text)
}

/// The records without their ends.
fn lines(text: &[u8], end: u8) -> Vec<&[u8]> {
    let mut lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == end).collect();
    for line in &mut lines {
        if let Some(content) = line.strip_suffix(&[end]) {
            let shorter = content.strip_suffix(b"\r").filter(|_| end == b'\n');
            *line = shorter.unwrap_or(content);
        }
    }
    lines
}

/// An empty key is none.
fn plain(key: &[u8]) -> Option<Key> {
    (!key.is_empty()).then(|| Key::Bytes(key.to_vec()))
}

fn hex(text: &[u8]) -> Modelled {
    let digit = |digit: &u8| Some(char::from(*digit).to_digit(16)? as u8);
    let digits: Option<Vec<u8>> = text.iter().map(digit).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0).ok_or(())?;
    let key: Vec<u8> = digits
        .chunks(2)
        .map(|pair| 16 * pair[0] + pair[1])
        .collect();
    Ok(plain(&key))
}

fn int(text: &[u8]) -> Modelled {
    if text.is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(text).map_err(drop)?;
    let number: i128 = text.trim().parse().map_err(drop)?;
    let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
    let number = Some(number).filter(|number| range.contains(number));
    Ok(Some(Key::Int(number.ok_or(())? as u64)))
}

/// The field of each record, byte by byte.
fn fields(text: &[u8], wanted: usize, delimiter: u8, end: u8) -> Vec<Modelled> {
    let quotes = delimiter != b'\t';
    let (mut records, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let (mut found, mut closed, mut number) = (None, true, 0);
        loop {
            let (mut key, quoted) = (Vec::new(), quotes && text.get(at) == Some(&b'"'));
            if quoted {
                closed = false;
                at += 1;
                while !closed && at < text.len() {
                    match &text[at..] {
                        [b'"', b'"', ..] => {
                            key.push(b'"');
                            at += 1;
                        }
                        [b'"', ..] => closed = true,
                        _ => key.push(text[at]),
                    }
                    at += 1;
                }
            }
            while at < text.len() && text[at] != delimiter && text[at] != end {
                if !quoted {
                    key.push(text[at]);
                }
                at += 1;
            }
            let stop = text.get(at).copied();
            at += 1;
            if !quoted && stop == Some(b'\n') && end == b'\n' && key.last() == Some(&b'\r') {
                key.pop();
            }
            if number == wanted {
                found = plain(&key);
            }
            number += 1;
            if stop != Some(delimiter) {
                break;
            }
        }
        records.push(if closed { Ok(found) } else { Err(()) });
    }
    records
}

/// The value at the end of these names; `None` where the usual reader knows less than ours, which
/// skips what is nested deeply, too large for a number, or no UTF-8.
fn json(line: &[u8], path: &[&str]) -> Option<Modelled> {
    let line = without_mark(line);
    if line.trim_ascii().is_empty() {
        return Some(Ok(None));
    }
    let line = std::str::from_utf8(line).ok()?;
    let Ok(value) = serde_json::from_str::<Value>(line) else {
        let skipped = serde_json::from_str::<&serde_json::value::RawValue>(line);
        return skipped.is_err().then_some(Err(()));
    };
    let step = |value: &Value, name: &&str| match value {
        Value::Array(list) => list.get(name.parse::<usize>().ok()?).cloned(),
        _ => value.get(name).cloned(),
    };
    Some(Ok(
        match path
            .iter()
            .try_fold(value, |value, name| step(&value, name))
        {
            Some(Value::String(text)) => plain(text.as_bytes()),
            Some(Value::Bool(value)) => plain(value.to_string().as_bytes()),
            Some(Value::Number(_)) => Some(Key::Number),
            _ => None,
        },
    ))
}
