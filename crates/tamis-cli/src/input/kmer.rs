//! The k-mers of FASTA and FASTQ files.
//!
//! A k-mer is K bases in a row; it and its reverse complement are one key, that which comes first
//! in the order of the letters. Small letters are as capitals, U is as T; a k-mer never spans two
//! sequences, nor any other letter, such as N.
//!
//! - K ≤ 32: the key is the library's integer whose base-4 digits are the bases, the first
//!   highest, A = 0, C = 1, G = 2, T = 3. In Python: `int(kmer.translate(str.maketrans("ACGT",
//!   "0123")), 4)`.
//! - K > 32: the key is the text of the k-mer, in capitals of A, C, G, T.
//!
//! A FASTQ record has four lines; a FASTA record starts with `>` at the start of a line.

use super::Keys;
use super::records::{Shape, content, ends, unmarked};
use crate::failure::Failure;

/// The most bases that an integer holds.
const PACKED: usize = 32;

/// The records of a FASTA or FASTQ file.
pub(super) struct Sequences {
    /// Whether records are kept whole; else a FASTA sequence of any length passes line by line.
    whole: bool,
    /// FASTQ; known from the first byte.
    quality: Option<bool>,
    rolling: Rolling,
}

/// The present k-mer, both strands of it.
struct Rolling {
    k: usize,
    /// How many bases in a row came before, the present one included.
    run: usize,
    forward: u64,
    backward: u64,
    /// Where K is above 32: the bases of this run, of which only the last k count.
    bases: Vec<u8>,
    reverse: Vec<u8>,
}

impl Sequences {
    pub(super) fn new(k: usize, whole: bool) -> Sequences {
        Sequences {
            whole,
            quality: None,
            rolling: Rolling {
                k,
                run: 0,
                forward: 0,
                backward: 0,
                bases: Vec::new(),
                reverse: Vec::new(),
            },
        }
    }

    fn fastq(&mut self, text: &[u8], last: bool, keys: &mut Keys) -> Result<usize, Failure> {
        let (mut done, mut lines) = (0, [0; 4]);
        let mut number = 0;
        for end in ends(text, b'\n', last) {
            if number == 0 && text[done..end].trim_ascii().is_empty() {
                // Empty lines between records.
                keys.end_record(end);
                done = end;
                continue;
            }
            lines[number] = end;
            number += 1;
            if number == 4 {
                number = 0;
                let [name, sequence, plus, quality] = lines;
                let sequence = content(&text[name..sequence], b'\n');
                let quality = content(&text[plus..quality], b'\n');
                if !unmarked(&text[done..]).starts_with(b"@") || quality.len() != sequence.len() {
                    keys.malformed(|| "this is no FASTQ record of four lines".to_string())?;
                } else {
                    self.rolling.start();
                    self.rolling.take(sequence, keys);
                }
                keys.end_record(end);
                done = end;
            }
        }
        if last && done < text.len() {
            keys.malformed(|| "this FASTQ record is cut short".to_string())?;
            keys.end_record(text.len());
            done = text.len();
        }
        Ok(done)
    }

    /// Line by line: a sequence may be longer than memory.
    fn fasta_lines(&mut self, text: &[u8], last: bool, keys: &mut Keys) -> usize {
        let mut start = 0;
        for end in ends(text, b'\n', last) {
            let line = content(&text[start..end], b'\n');
            if unmarked(line).starts_with(b">") {
                self.rolling.start();
            } else {
                self.rolling.take(line, keys);
            }
            start = end;
        }
        start
    }

    fn fasta_records(&mut self, text: &[u8], last: bool, keys: &mut Keys) -> usize {
        let mut done = 0;
        let starts = memchr::memmem::find_iter(text, b"\n>").map(|at| at + 1);
        for end in starts.chain(last.then_some(text.len())) {
            self.rolling.start();
            self.fasta_lines(&text[done..end], true, keys);
            if end > done {
                keys.end_record(end);
            }
            done = end;
        }
        done
    }
}

impl Shape for Sequences {
    fn end(&self) -> u8 {
        b'\n'
    }

    fn take(&mut self, text: &[u8], last: bool, keys: &mut Keys) -> Result<usize, Failure> {
        let Some(&first) = unmarked(text).first() else {
            return Ok(0);
        };
        let quality = match (self.quality, first) {
            (Some(quality), _) => quality,
            (None, b'>') => false,
            (None, b'@') => true,
            _ => {
                let why = "neither FASTA nor FASTQ: it starts with neither `>` nor `@`";
                return Err(Failure::io(&keys.name, why));
            }
        };
        self.quality = Some(quality);
        match (quality, self.whole) {
            (true, _) => self.fastq(text, last, keys),
            (false, true) => Ok(self.fasta_records(text, last, keys)),
            (false, false) => Ok(self.fasta_lines(text, last, keys)),
        }
    }
}

impl Rolling {
    /// Another sequence begins.
    fn start(&mut self) {
        self.run = 0;
        self.bases.clear();
    }

    /// The next bases of the sequence.
    fn take(&mut self, line: &[u8], keys: &mut Keys) {
        if self.k > PACKED {
            return self.take_long(line, keys);
        }
        let top = 2 * (self.k - 1);
        let mask = u64::MAX >> (64 - 2 * self.k);
        for &letter in line {
            let Some(base) = base(letter) else {
                self.run = 0;
                continue;
            };
            self.forward = (self.forward << 2 | base) & mask;
            self.backward = self.backward >> 2 | (3 - base) << top;
            self.run += 1;
            if self.run >= self.k {
                keys.push_key(&self.forward.min(self.backward));
            }
        }
    }

    fn take_long(&mut self, line: &[u8], keys: &mut Keys) {
        for &letter in line {
            let Some(base) = base(letter) else {
                self.start();
                continue;
            };
            if self.bases.len() > 64 * self.k {
                // Only the last k - 1 are still needed.
                self.bases.drain(..self.bases.len() + 1 - self.k);
            }
            self.bases.push(b"ACGT"[base as usize]);
            if self.bases.len() >= self.k {
                let forward = &self.bases[self.bases.len() - self.k..];
                let complement = |base: &u8| match base {
                    b'A' => b'T',
                    b'C' => b'G',
                    b'G' => b'C',
                    _ => b'A',
                };
                let backward = forward.iter().rev().map(complement);
                if forward.iter().copied().le(backward.clone()) {
                    keys.push_key(forward);
                } else {
                    self.reverse.clear();
                    self.reverse.extend(backward);
                    keys.push_key(&self.reverse);
                }
            }
        }
    }
}

/// The key of a k-mer that stands alone; `false` where the text is none of K bases.
pub(super) fn push_one(text: &[u8], k: usize, keys: &mut Keys) -> bool {
    let is_kmer = text.len() == k && text.iter().all(|&letter| base(letter).is_some());
    if is_kmer {
        Sequences::new(k, false).rolling.take(text, keys);
    }
    is_kmer
}

#[inline]
fn base(letter: u8) -> Option<u64> {
    match letter {
        b'A' | b'a' => Some(0),
        b'C' | b'c' => Some(1),
        b'G' | b'g' => Some(2),
        b'T' | b't' | b'U' | b'u' => Some(3),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use tamis::Hashing;

    use super::super::records::tests::{hash, records};
    use super::*;

    /// By the definition, one k-mer at a time.
    fn naive(sequence: &str, k: usize) -> Vec<u64> {
        let capitals = sequence.to_uppercase().replace('U', "T");
        capitals
            .as_bytes()
            .windows(k)
            .filter(|kmer| kmer.iter().all(|base| b"ACGT".contains(base)))
            .map(|kmer| {
                let other: Vec<u8> = kmer
                    .iter()
                    .rev()
                    .map(|base| b"TGCA"[b"ACGT".iter().position(|b| b == base).unwrap()])
                    .collect();
                let key = other.as_slice().min(kmer);
                if k > PACKED {
                    return hash(key);
                }
                let digit = |base: &u8| b"ACGT".iter().position(|b| b == base).unwrap() as u64;
                Hashing::default().hash(&key.iter().fold(0u64, |n, base| n << 2 | digit(base)))
            })
            .collect()
    }

    fn sequence(len: usize) -> String {
        let mut state = 1u64;
        (0..len)
            .map(|_| {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                b"ACGTacgtuUACGTACGTACGTACGTACGTNA"[(state >> 59) as usize] as char
            })
            .collect()
    }

    fn kmers(text: &str, k: usize, whole: bool) -> Vec<u64> {
        let mut keys = super::super::records::tests::keys();
        let mut shape = Sequences::new(k, whole);
        shape.take(text.as_bytes(), true, &mut keys).unwrap();
        keys.hashes
    }

    #[test]
    fn kmers_are_those_of_the_definition() {
        let (one, two) = (sequence(5000), sequence(333));
        for k in [1, 2, 15, 31, 32, 33, 51, 100] {
            let expected = [naive(&one, k), naive(&two, k)].concat();
            let wrapped: Vec<&str> = one
                .as_bytes()
                .chunks(61)
                .map(|l| std::str::from_utf8(l).unwrap())
                .collect();
            let fasta = format!(">one\n{}\r\n>two ACGT\n{two}", wrapped.join("\r\n"));
            for whole in [true, false] {
                assert_eq!(kmers(&fasta, k, whole), expected, "k {k}");
            }
            let quality = |s: &str| "@".repeat(s.len());
            let fastq = format!(
                "@one\n{one}\n+\n{}\n@two\r\n{two}\r\n+two\r\n{}\r\n",
                quality(&one),
                quality(&two)
            );
            assert_eq!(kmers(&fastq, k, true), expected, "k {k}");
        }
    }

    #[test]
    fn records_stay_whole_however_the_bytes_arrive() {
        let fasta = ">a\nACGT\nAC\n\n>b\n>c x>y\nGGG\n";
        let fastq = "@a\nACGT\n+\n@@@@\n\n@b\n\n+\n\n@c\nGGG\n+\n>>>";
        for (text, count) in [(fasta, 3), (fastq, 4)] {
            let whole = records(text.as_bytes(), Sequences::new(3, true), usize::MAX);
            assert_eq!(whole.len(), count);
            for step in [1, 2, 5] {
                let slow = records(text.as_bytes(), Sequences::new(3, true), step);
                assert_eq!(slow, whole, "step {step}");
            }
            let joined: Vec<u8> = whole.into_iter().flat_map(|(text, _)| text).collect();
            assert_eq!(joined, text.as_bytes());
        }
    }

    #[test]
    fn palindromes_and_strands_are_one_key() {
        assert_eq!(kmers(">x\nACGT", 4, true).len(), 1);
        assert_eq!(kmers(">x\nAAC", 3, true), kmers(">x\nGTT", 3, true));
        assert_eq!(kmers(">x\nAAC", 3, true), [Hashing::default().hash(&1u64)]);
    }
}
