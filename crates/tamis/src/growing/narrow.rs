//! A binary fuse filter with fingerprints of any width from 1 to 32 bits.
//!
//! The table is solved with slots of 32 bits, and of each the low bits are kept. The exclusive or
//! works bit by bit: the low bits of what a key's slots combine to are the low bits of its
//! fingerprint.

use crate::bits::{low_mask, mix64};
use crate::buf::Buf;
use crate::build::shards::shard_of;
use crate::config::Config;
use crate::error::{BuildError, DecodeError};
use crate::filter::{Filter, Kind};
use crate::format::{Decoder, Encoder};
use crate::packed::Packed;
use crate::peel::BinaryFuse32;
use crate::peel::binary_fuse::{MOST_SHARDS, Shape, fingerprint};

/// Slots of a key: a table in which a key has four is 4 % smaller than one with three, and space
/// is what this is for.
const ARITY: usize = 4;
pub(super) const WIDTHS: std::ops::RangeInclusive<u64> = 1..=32;

#[derive(Clone, Debug)]
pub(super) struct Narrow {
    /// The shards' tables, one after the other.
    slots: Packed,
    /// One for each shard, at least one.
    salts: Buf<u64>,
    shape: Shape,
    len: u64,
}

impl Narrow {
    /// The filter of these hashes, of which there is at least one. Reorders them.
    pub(super) fn build(hashes: &mut [u64], width: u32) -> Result<Narrow, BuildError> {
        let wide = BinaryFuse32::build(&Config::default().set("arity", ARITY), hashes)?;
        let mut slots = Packed::zeroed(wide.slots.len() as u64, width)?;
        for (place, &slot) in (0..).zip(wide.slots.iter()) {
            slots.set(place, u64::from(slot) & low_mask(width));
        }
        Ok(Narrow {
            slots,
            len: wide.len(),
            salts: wide.salts,
            shape: wide.shape,
        })
    }

    /// Where a hash's slots lie, and its fingerprint.
    #[inline(always)]
    fn places(&self, hash: u64) -> ([u64; ARITY], u64) {
        let shard = shard_of(hash, self.salts.len() as u64);
        let hash = mix64(hash.wrapping_add(self.salts[shard as usize]));
        let start = shard * self.shape.slots();
        let places = self.shape.places::<ARITY>(hash);
        let wanted = u64::from(fingerprint::<u32>(hash)) & low_mask(self.slots.width());
        (places.map(|place| start + u64::from(place)), wanted)
    }

    #[inline(always)]
    pub(super) fn contains(&self, hash: u64) -> bool {
        let (places, wanted) = self.places(hash);
        let found = places.iter().fold(0, |x, &place| x ^ self.slots.get(place));
        found == wanted
    }

    #[inline(always)]
    pub(super) fn prefetch(&self, hash: u64) {
        for place in self.places(hash).0 {
            self.slots.prefetch(place);
        }
    }

    /// The number of distinct hashes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn width(&self) -> u32 {
        self.slots.width()
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        self.slots.size_in_bytes() + self.salts.size_in_bytes()
    }

    /// What a file tells of it beside its sections: keys, width, segment length, segments of
    /// first slots, shards.
    pub(super) fn row(&self) -> [u64; 5] {
        let (width, shards) = (u64::from(self.width()), self.salts.len() as u64);
        let shape = self.shape;
        [
            self.len,
            width,
            shape.segment_length,
            shape.segment_count,
            shards,
        ]
    }

    pub(super) fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.section(&self.salts);
        self.slots.encode(out);
    }

    /// Reads the sections of a row.
    pub(super) fn decode(input: &mut Decoder<'_>, row: [u64; 5]) -> Result<Narrow, DecodeError> {
        let [len, width, segment_length, segment_count, shards] = row;
        if len == 0 {
            return Err(DecodeError::invalid("a run's keys", len, "at least 1"));
        }
        if !WIDTHS.contains(&width) {
            return Err(DecodeError::invalid("a run's width", width, "1 to 32"));
        }
        let shape = Shape {
            arity: ARITY as u32,
            segment_length,
            segment_count,
        };
        if !shape.is_sound() {
            let expected =
                "a power of two up to 2^18, for at most 2^32 slots in 1 to 2^24 segments";
            return Err(DecodeError::invalid(
                "a run's segment length",
                segment_length,
                expected,
            ));
        }
        if !(1..=MOST_SHARDS).contains(&shards) {
            let expected = format!("1 to {MOST_SHARDS}");
            return Err(DecodeError::invalid("a run's shards", shards, expected));
        }
        // As many slots as keys, or more: no others peel.
        let most = shape.slots() * shards;
        if len > most {
            let expected = format!("at most {most}, one for each slot");
            return Err(DecodeError::invalid("a run's keys", len, expected));
        }
        Ok(Narrow {
            salts: input.section("a run's salts", shards)?,
            slots: Packed::decode(input, "a run", most, width as u32)?,
            shape,
            len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math;

    #[test]
    fn every_width_holds_its_keys_at_its_own_rate() {
        for (width, keys) in [
            (1, 1),
            (2, 7),
            (5, 1000),
            (8, 20_000),
            (13, 20_000),
            (32, 300),
        ] {
            let hashes: Vec<u64> = (0..keys).map(mix64).collect();
            let narrow = Narrow::build(&mut hashes.clone(), width).unwrap();
            assert!(hashes.iter().all(|&hash| narrow.contains(hash)));
            assert_eq!((narrow.len(), narrow.width()), (keys, width));
            let queries = 300_000;
            let absent = (0..queries).map(|i| mix64(1 << 40 | i));
            let hits = absent.filter(|&hash| narrow.contains(hash)).count() as u64;
            let rate = math::fingerprint_fpr(width);
            let (low, high) = math::binomial_interval(queries, rate, 1e-9);
            assert!((low..=high).contains(&hits), "{width} bits: {hits}");
        }
    }

    #[test]
    fn four_slots_a_key_take_a_thirteenth_more_than_the_width() {
        let mut hashes: Vec<u64> = (0..1_000_000).map(mix64).collect();
        let narrow = Narrow::build(&mut hashes, 10).unwrap();
        let bits = narrow.size_in_bytes() as f64 * 8.0 / 1e6;
        assert!((10.7..10.8).contains(&bits), "{bits}");
    }
}
