//! Compact block filters: the Golomb-coded sets of Bitcoin, as BIP 158 lays them down, to the
//! byte.
//!
//! The essay is at [`Bip158`].

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

use crate::bits::{fastrange, low_mask};
use crate::error::{BuildError, BuildErrorKind, DecodeError};

/// The basic filter of a Bitcoin block.
///
/// ```
/// use tamis::Bip158;
///
/// let block_hash = [7; 32];
/// let filter = Bip158::build(&block_hash, ["script of Alice", "script of Bob"])?;
/// let received = Bip158::parse(&block_hash, filter.as_bytes())?;
/// assert!(received.contains("script of Bob"));
/// assert!(received.match_any(["script of Carol", "script of Alice"]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The format
///
/// ```text
///   ┌──────────────┬──────────────────────────────────────────────────────────┬─────────┐
///   │ N            │ N codes: quotient in ones, a zero, 19 bits of rest       │ zeros   │
///   │ CompactSize  │ the highest bit of a byte first                          │ to byte │
///   └──────────────┴──────────────────────────────────────────────────────────┴─────────┘
///
///   value of an item = ⌊SipHash-2-4(item) · N · 784931 / 2⁶⁴⌋
///                      keyed by the first 16 bytes of the block's hash
///   codes            = differences of the sorted values, the first from 0
/// ```
///
/// A wallet asks for the filter of a block, looks for its own scripts, and fetches the block only
/// where one is found: the server does not learn which scripts they are. A set of no items is the
/// single byte 0.
///
/// N counts distinct items. Two of them may have one value, so a difference may be 0, which
/// [`Golomb`](crate::Golomb) has no code for. There is no index either: [`Bip158::match_any`]
/// goes through the filter once for any number of items, and so does [`Bip158::contains`] for
/// one.
///
/// # Cost
///
/// 21.05 bits per item at a rate of 1/784931 = 1.27·10⁻⁶, where 19.58 are the least. M is 1.497
/// times 2¹⁹ because that is where a Rice code comes closest.
///
/// # Errors
///
/// A filter from the network is read once as a whole before it is believed: more items than its
/// bytes can hold, a `CompactSize` that is longer than needed, a code that does not end, a value
/// out of range, a bit set in the padding, and bytes after it are each refused, and nothing is
/// allocated on the word of N.
///
/// # Bibliography
///
/// - Osuntokun, Akselrod, *BIP 158: Compact block filters for light clients*, 2017: the format
///   and its vectors.
/// - Aumasson, Bernstein, *SipHash: a fast short-input PRF*, 2012: the hash, whose key nobody
///   could know beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bip158 {
    key: [u8; 16],
    /// As it is sent, sound throughout.
    bytes: Vec<u8>,
    /// Where the codes start.
    start: usize,
    items: u32,
}

/// P, the bits of a difference that are not in unary.
const RICE: u32 = 19;
/// M, the range for each item.
const INVERSE_RATE: u64 = 784_931;
/// The opcode with which an output begins that nobody can spend.
const OP_RETURN: u8 = 0x6A;

impl Bip158 {
    /// The filter of these items, of which repeats count once.
    ///
    /// The block's hash is in the order of the protocol, which is the reverse of how it is
    /// displayed. For the items that a block has, see [`basic_items`](Self::basic_items).
    ///
    /// # Errors
    ///
    /// [`BuildError`] where there are 2³² items or more.
    pub fn build<T: AsRef<[u8]>>(
        block_hash: &[u8; 32],
        items: impl IntoIterator<Item = T>,
    ) -> Result<Bip158, BuildError> {
        let mut items: Vec<T> = items.into_iter().collect();
        items.sort_unstable_by(|a, b| a.as_ref().cmp(b.as_ref()));
        items.dedup_by(|a, b| (*a).as_ref() == (*b).as_ref());
        let count = u32::try_from(items.len()).map_err(|_| BuildErrorKind::TooLarge {
            unit: "items",
            needed: items.len() as f64,
            most: u64::from(u32::MAX),
        })?;
        let key = key_of(block_hash);
        let mut values: Vec<u64> = items
            .iter()
            .map(|item| value(&key, count, item.as_ref()))
            .collect();
        values.sort_unstable();
        let mut out = Writer::default();
        out.compact_size(count);
        let start = out.bytes.len();
        let mut last = 0;
        for value in values {
            out.code(value - last);
            last = value;
        }
        Ok(Bip158 {
            key,
            bytes: out.bytes,
            start,
            items: count,
        })
    }

    /// The items of a basic filter: all output scripts of the block's transactions but those that
    /// start with `OP_RETURN`, all scripts that their inputs spend from, and of both only those
    /// that are not empty.
    pub fn basic_items<'a>(
        outputs: impl IntoIterator<Item = &'a [u8]>,
        spent: impl IntoIterator<Item = &'a [u8]>,
    ) -> impl Iterator<Item = &'a [u8]> {
        let outputs = outputs.into_iter();
        let outputs = outputs.filter(|script| script.first() != Some(&OP_RETURN));
        let items = outputs.chain(spent);
        items.filter(|script| !script.is_empty())
    }

    /// Reads a filter as it was sent, for the block of this hash, and checks all of it.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] that says which rule of the format is broken.
    pub fn parse(block_hash: &[u8; 32], bytes: impl Into<Vec<u8>>) -> Result<Bip158, DecodeError> {
        let bytes = bytes.into();
        let (items, start) = read_compact_size(&bytes)?;
        let codes = &bytes[start..];
        let least = (u64::from(items) * u64::from(RICE + 1)).div_ceil(8);
        if (codes.len() as u64) < least {
            let expected = format!("a number of items that {} bytes can hold", codes.len());
            return Err(DecodeError::invalid("N", u64::from(items), expected));
        }
        let mut reader = Reader {
            bytes: codes,
            at: 0,
        };
        let range = range(items);
        let mut value = 0u64;
        for item in 0..items {
            let Some(difference) = reader.code(range) else {
                let expected = format!("{items}: its code does not end within the filter");
                return Err(DecodeError::invalid("item", u64::from(item), expected));
            };
            value += difference;
            if value >= range {
                let expected = format!("below N·{INVERSE_RATE}, which is {range}");
                return Err(DecodeError::invalid("a value", value, expected));
            }
        }
        let used = reader.at.div_ceil(8) as usize;
        if codes.len() != used {
            let extra = (codes.len() - used) as u64;
            return Err(DecodeError::invalid("bytes after the filter", extra, "0"));
        }
        let padding = codes.last().map_or(0, |last| {
            last & low_mask((8 * used as u64 - reader.at) as u32) as u8
        });
        if padding != 0 {
            let padding = u64::from(padding);
            return Err(DecodeError::invalid("the padding", padding, "0"));
        }
        Ok(Bip158 {
            key: key_of(block_hash),
            bytes,
            start,
            items,
        })
    }

    /// The filter as it is sent.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// N, the number of distinct items.
    pub fn len(&self) -> u32 {
        self.items
    }

    /// Whether the filter is that of no items.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Whether the item may be in the block. `false` is certain; `true` is wrong once in 784931
    /// times.
    pub fn contains(&self, item: impl AsRef<[u8]>) -> bool {
        self.match_any([item])
    }

    /// Whether any of these items may be in the block; for each that is not, `true` is wrong once
    /// in 784931 times.
    pub fn match_any<T: AsRef<[u8]>>(&self, items: impl IntoIterator<Item = T>) -> bool {
        let values = items.into_iter();
        let mut wanted: Vec<u64> = values
            .map(|item| value(&self.key, self.items, item.as_ref()))
            .collect();
        wanted.sort_unstable();
        let mut wanted = wanted.into_iter().peekable();
        for held in self.values() {
            while wanted.next_if(|&value| value < held).is_some() {}
            match wanted.peek() {
                Some(&value) if value == held => return true,
                Some(_) => {}
                None => return false,
            }
        }
        false
    }

    /// The values of the items, ascending; two items may have one.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        let mut reader = Reader {
            bytes: &self.bytes[self.start..],
            at: 0,
        };
        let range = range(self.items);
        let codes = (0..self.items).map_while(move |_| reader.code(range));
        codes.scan(0, |value, difference| {
            *value += difference;
            Some(*value)
        })
    }
}

fn key_of(block_hash: &[u8; 32]) -> [u8; 16] {
    let mut key = [0; 16];
    key.copy_from_slice(&block_hash[..16]);
    key
}

/// F, what values are below: at most 2³² · 2²⁰.
fn range(items: u32) -> u64 {
    u64::from(items) * INVERSE_RATE
}

fn value(key: &[u8; 16], items: u32, item: &[u8]) -> u64 {
    let mut hasher = SipHasher24::new_with_key(key);
    hasher.write(item);
    fastrange(hasher.finish(), range(items)).0
}

/// N and the number of its bytes.
fn read_compact_size(bytes: &[u8]) -> Result<(u32, usize), DecodeError> {
    let missing = || {
        let got = bytes.len() as u64;
        DecodeError::invalid("bytes", got, "the number of items, whole")
    };
    let (&first, rest) = bytes.split_first().ok_or_else(missing)?;
    let (width, least) = match first {
        0..0xFD => return Ok((u32::from(first), 1)),
        0xFD => (2, 0xFD),
        0xFE => (4, 1 << 16),
        0xFF => (8, 1 << 32),
    };
    let mut number = [0; 8];
    number[..width].copy_from_slice(rest.get(..width).ok_or_else(missing)?);
    let number = u64::from_le_bytes(number);
    if number < least {
        let expected = format!("at least {least}, as it has {width} bytes");
        return Err(DecodeError::invalid("N", number, expected));
    }
    let items = u32::try_from(number);
    let items = items.map_err(|_| DecodeError::invalid("N", number, "fewer than 2^32"))?;
    Ok((items, 1 + width))
}

/// Bits one after another, the highest of a byte first.
#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    /// Bits that the last byte has yet to take.
    free: u32,
}

impl Writer {
    fn compact_size(&mut self, number: u32) {
        let bytes = number.to_le_bytes();
        match number {
            0..0xFD => self.bytes.push(bytes[0]),
            0xFD..0x1_0000 => self.bytes.extend([0xFD, bytes[0], bytes[1]]),
            _ => {
                self.bytes.push(0xFE);
                self.bytes.extend(bytes);
            }
        }
    }

    fn bits(&mut self, value: u64, bits: u32) {
        let mut left = bits;
        while left > 0 {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            let taken = left.min(self.free);
            left -= taken;
            self.free -= taken;
            let part = value >> left & low_mask(taken);
            if let Some(last) = self.bytes.last_mut() {
                *last |= (part << self.free) as u8;
            }
        }
    }

    fn code(&mut self, difference: u64) {
        for _ in 0..difference >> RICE {
            self.bits(1, 1);
        }
        self.bits(difference & low_mask(RICE), RICE + 1);
    }
}

#[derive(Clone)]
struct Reader<'a> {
    bytes: &'a [u8],
    /// In bits.
    at: u64,
}

impl Reader<'_> {
    /// The next 57 bits or more, the next one on top; zeros after the end.
    fn window(&self) -> u64 {
        let byte = (self.at / 8) as usize;
        let rest = self.bytes.get(byte..).unwrap_or_default();
        let mut word = [0; 8];
        let len = rest.len().min(8);
        word[..len].copy_from_slice(&rest[..len]);
        u64::from_be_bytes(word) << (self.at % 8)
    }

    /// The next difference; `None` where its code does not end, or it is not below the range.
    fn code(&mut self, range: u64) -> Option<u64> {
        let end = 8 * self.bytes.len() as u64;
        let mut quotient = 0;
        loop {
            let ones = u64::from(self.window().leading_ones()).min(57);
            quotient += ones;
            self.at += ones;
            if quotient > range >> RICE {
                return None;
            }
            if ones < 57 {
                break;
            }
        }
        self.at += 1;
        let rest = self.window() >> (64 - RICE);
        self.at += u64::from(RICE);
        (self.at <= end).then_some(quotient << RICE | rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::math;

    const HASH: [u8; 32] = [3; 32];

    fn items(count: u64) -> Vec<[u8; 8]> {
        (0..count).map(|i| mix64(i).to_le_bytes()).collect()
    }

    #[test]
    fn siphash_is_that_of_its_paper() {
        // Aumasson, Bernstein 2012, appendix A: the key 00 … 0f and the message 00 … 0e.
        let key: Vec<u8> = (0..16).collect();
        let message: Vec<u8> = (0..15).collect();
        let mut hasher = SipHasher24::new_with_key(key.as_slice().try_into().unwrap());
        hasher.write(&message);
        assert_eq!(hasher.finish(), 0xA129_CA61_49BE_45E5);
    }

    #[test]
    fn filters_of_every_size_are_read_back_and_hold_their_items() {
        for count in [0, 1, 2, 252, 253, 254, 1000, 65_535, 65_536, 65_537] {
            let items = items(count);
            let filter = Bip158::build(&HASH, &items).unwrap();
            let read = Bip158::parse(&HASH, filter.as_bytes()).unwrap();
            assert_eq!(read, filter);
            assert_eq!(u64::from(read.len()), count);
            assert!(items.iter().step_by(1009).all(|item| read.contains(item)));
            assert_eq!(read.match_any(&items), count > 0);
            assert!(!read.match_any(Vec::<Vec<u8>>::new()));
            assert_eq!(read.values().count() as u64, count);
        }
        let twice = Bip158::build(&HASH, ["a", "b", "a"]).unwrap();
        assert_eq!(twice, Bip158::build(&HASH, ["b", "a"]).unwrap());
    }

    #[test]
    fn size_and_rate_are_those_of_the_formula() {
        // spec: 21.05 bits per item at 1.27·10⁻⁶.
        let filter = Bip158::build(&HASH, items(1_000_000)).unwrap();
        let bits = filter.as_bytes().len() as f64 * 8.0 / 1e6;
        let formula = math::golomb_bits_per_key(RICE, INVERSE_RATE as f64);
        assert!((bits / formula - 1.0).abs() < 0.0005, "{bits} {formula}");
        assert!((bits - 21.05).abs() < 0.01, "{bits}");
        let queries = 4_000_000;
        let mut absent: Vec<u64> = (0..queries)
            .map(|i| value(&filter.key, filter.items, &mix64(1 << 40 | i).to_le_bytes()))
            .collect();
        absent.sort_unstable();
        let mut held = filter.values().peekable();
        let hits = absent.iter().filter(|&&wanted| {
            while held.next_if(|&value| value < wanted).is_some() {}
            held.peek() == Some(&wanted)
        });
        let (low, high) = math::binomial_interval(queries, 1.0 / INVERSE_RATE as f64, 1e-9);
        let hits = hits.count() as u64;
        assert!((low..=high).contains(&hits), "{hits}: {low} to {high}");
    }

    #[test]
    fn malformed_filters_are_refused_for_what_is_wrong_with_them() {
        let good = Bip158::build(&HASH, items(3)).unwrap();
        let good = good.as_bytes();
        let with = |change: fn(&mut Vec<u8>)| {
            let mut bytes = good.to_vec();
            change(&mut bytes);
            bytes
        };
        let cases: [(Vec<u8>, &str); 14] = [
            (vec![], "the number of items, whole"),
            (vec![0xFD], "the number of items, whole"),
            (vec![0xFE, 1, 0, 0], "the number of items, whole"),
            // N in more bytes than it needs.
            (vec![0xFD, 0, 0], "at least 253"),
            (vec![0xFD, 0xFC, 0], "at least 253"),
            (vec![0xFE, 0xFF, 0xFF, 0, 0], "at least 65536"),
            (vec![0xFF, 1, 0, 0, 0, 0, 0, 0, 0], "at least 4294967296"),
            (vec![0xFF, 0, 0, 0, 0, 1, 0, 0, 0], "fewer than 2^32"),
            // More items than bytes, by far.
            (
                vec![0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3],
                "3 bytes can hold",
            ),
            (vec![1], "0 bytes can hold"),
            // A quotient that never ends, and one beyond the range.
            (vec![1, 0xFF, 0xFF, 0xFF], "does not end"),
            (vec![0, 0], "bytes after the filter is 1"),
            (with(|bytes| bytes.push(0)), "bytes after the filter is 1"),
            (
                with(|bytes| *bytes.last_mut().unwrap() |= 1),
                "the padding is 1",
            ),
        ];
        for (bytes, why) in cases {
            let error = Bip158::parse(&HASH, bytes.clone()).unwrap_err();
            assert!(error.to_string().contains(why), "{bytes:x?}: {error}");
        }
        // A quotient of one and the highest rest: 2²⁰ − 1, and the range of one item is 784931.
        let out_of_range = [1, 0b1011_1111, 0xFF, 0b1111_1000];
        let error = Bip158::parse(&HASH, out_of_range).unwrap_err();
        assert!(error.to_string().contains("which is 784931"), "{error}");
        for len in 0..good.len() {
            assert!(Bip158::parse(&HASH, &good[..len]).is_err());
        }
    }

    #[test]
    fn no_bytes_make_a_parser_stumble() {
        let mut accepted = 0;
        for i in 0..300_000u64 {
            let len = mix64(i) % 24;
            let mut bytes: Vec<u8> = (0..len).map(|j| mix64(i << 8 | j) as u8).collect();
            if let Some(first) = bytes.first_mut() {
                *first %= 6;
            }
            if let Ok(filter) = Bip158::parse(&HASH, bytes.clone()) {
                accepted += 1;
                assert_eq!(filter.values().count() as u32, filter.len());
                let mut out = Writer::default();
                out.compact_size(filter.len());
                filter.values().fold(0, |last, value| {
                    out.code(value - last);
                    value
                });
                assert_eq!(out.bytes, bytes, "what is read is what would be written");
            }
        }
        assert!(accepted > 1000, "{accepted}");
    }
}
