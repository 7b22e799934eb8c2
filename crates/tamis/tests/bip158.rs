//! The published test vectors of BIP 158: filters built from the blocks themselves, compared to
//! the byte.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use tamis::Bip158;

const VECTORS: &str = include_str!("data/bip158.txt");

struct Vector {
    note: &'static str,
    /// In the order of the protocol.
    hash: [u8; 32],
    block: Vec<u8>,
    spent: Vec<Vec<u8>>,
    filter: Vec<u8>,
}

fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2), "{text}");
    (0..text.len() / 2)
        .map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
        .collect()
}

fn vectors() -> Vec<Vector> {
    let lines: Vec<&str> = VECTORS.lines().filter(|l| !l.starts_with('#')).collect();
    let vectors = lines.chunks_exact(5).map(|lines| {
        let mut hash = unhex(lines[1]);
        hash.reverse();
        let spent = lines[3].strip_prefix("scripts ").unwrap();
        // Scripts may be empty, so there is one wherever there is a comma; a line without any is
        // of no scripts.
        let spent = if spent.is_empty() {
            Vec::new()
        } else {
            spent.split(',').map(unhex).collect()
        };
        Vector {
            note: lines[0].strip_prefix("= ").unwrap(),
            hash: hash.try_into().unwrap(),
            block: unhex(lines[2]),
            spent,
            filter: unhex(lines[4]),
        }
    });
    vectors.collect()
}

/// Goes through a serialised block.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(len);
        self.0 = tail;
        head
    }

    fn compact_size(&mut self) -> usize {
        let width = match self.take(1)[0] {
            small @ 0..0xFD => return small.into(),
            0xFD => 2,
            0xFE => 4,
            0xFF => 8,
        };
        let mut number = [0; 8];
        number[..width].copy_from_slice(self.take(width));
        u64::from_le_bytes(number) as usize
    }

    fn string(&mut self) -> &'a [u8] {
        let len = self.compact_size();
        self.take(len)
    }
}

/// The output scripts of a block's transactions, and how many inputs there are that spend one.
fn scripts(block: &[u8]) -> (Vec<&[u8]>, usize) {
    let mut bytes = Bytes(block);
    bytes.take(80);
    let (mut outputs, mut spending) = (Vec::new(), 0);
    for transaction in 0..bytes.compact_size() {
        bytes.take(4);
        let mut inputs = bytes.compact_size();
        // No inputs means that a flag and the true number follow, and a witness for each after
        // the outputs.
        let witness = inputs == 0;
        if witness {
            assert_eq!(bytes.take(1), [1]);
            inputs = bytes.compact_size();
        }
        for _ in 0..inputs {
            bytes.take(36);
            bytes.string();
            bytes.take(4);
        }
        spending += if transaction == 0 { 0 } else { inputs };
        for _ in 0..bytes.compact_size() {
            bytes.take(8);
            outputs.push(bytes.string());
        }
        for _ in 0..if witness { inputs } else { 0 } {
            for _ in 0..bytes.compact_size() {
                bytes.string();
            }
        }
        bytes.take(4);
    }
    assert!(bytes.0.is_empty(), "bytes after the last transaction");
    (outputs, spending)
}

#[test]
fn the_filters_of_the_published_blocks_are_met_to_the_byte() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 10);
    for vector in &vectors {
        let (outputs, spending) = scripts(&vector.block);
        assert_eq!(vector.spent.len(), spending, "{}", vector.note);
        let spent = || vector.spent.iter().map(Vec::as_slice);
        let items: Vec<&[u8]> = Bip158::basic_items(outputs.iter().copied(), spent()).collect();
        let built = Bip158::build(&vector.hash, &items).unwrap();
        assert_eq!(built.as_bytes(), vector.filter, "{}", vector.note);

        let parsed = Bip158::parse(&vector.hash, vector.filter.clone()).unwrap();
        assert_eq!(parsed, built);
        for item in &items {
            assert!(parsed.contains(item), "{}", vector.note);
            assert!(parsed.match_any([&b"another script"[..], item]));
        }
        let absent = outputs.iter().filter(|script| !items.contains(script));
        for script in absent {
            let why = script.is_empty() || script[0] == 0x6A;
            assert!(why && !parsed.contains(script), "{}", vector.note);
        }
    }
}

#[test]
fn the_vectors_show_every_special_case() {
    let vectors = vectors();
    let noted = |word: &str| vectors.iter().find(|v| v.note.contains(word)).unwrap();
    assert_eq!(noted("Empty data").filter, [0]);
    assert!(noted("spends from empty").spent.iter().any(Vec::is_empty));
    let (outputs, _) = scripts(&noted("pays to empty").block);
    assert!(outputs.iter().any(|script| script.is_empty()));
    let mut spent = noted("Duplicate pushdata").spent.clone();
    spent.sort();
    assert!(spent.windows(2).any(|pair| pair[0] == pair[1]));
    let (outputs, _) = scripts(&noted("Duplicate pushdata").block);
    assert!(outputs.iter().any(|script| script.first() == Some(&0x6A)));
}

#[test]
fn another_block_s_hash_finds_nothing() {
    let vectors = vectors();
    let vector = vectors.iter().find(|v| v.spent.len() == 8).unwrap();
    let other = Bip158::parse(&[0; 32], vector.filter.clone()).unwrap();
    assert!(!other.match_any(&vector.spent));
}
