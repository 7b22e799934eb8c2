//! An array of numbers of a few bits each, packed without gaps.
//!
//! ```text
//!   width 5:   field 0  field 1  field 2 …                     … last field   7 zero bytes
//!   bytes      ├─────┼─────┼─────┼─────┼─────┼─────┼─────┼─ … ─┼─────┤┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄
//! ```
//!
//! Field `i` starts at bit `i · width`, least significant bit first. The bytes after the last
//! field let any field be read by one 64-bit load from the byte that it starts in, so a width is
//! 57 bits at most. In a file the array is one section, spare bytes and all.

use crate::bits::low_mask;
use crate::buf::Buf;
use crate::error::{DecodeError, NoMemory};
use crate::format::{Decoder, Encoder};
use crate::simd;

/// Numbers of `width` bits each.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    bytes: Buf<u8>,
    width: u32,
    len: u64,
}

/// The same numbers for reading, passed by value; [`Packed`] owns its memory.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    bytes: &'a [u8],
    width: u32,
}

impl View<'_> {
    #[inline(always)]
    pub(crate) fn size_in_bytes(self) -> usize {
        self.bytes.len()
    }

    /// Bits of a field.
    #[inline(always)]
    pub(crate) fn width(self) -> u32 {
        self.width
    }

    /// At least 57 bits from where a field starts: that field and those after it.
    #[inline(always)]
    pub(crate) fn word(self, field: u64) -> u64 {
        let bit = field * u64::from(self.width);
        let byte = (bit / 8) as usize;
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[byte..byte + 8]);
        u64::from_le_bytes(word) >> (bit % 8)
    }

    #[inline(always)]
    pub(crate) fn get(self, field: u64) -> u64 {
        self.word(field) & low_mask(self.width)
    }

    /// Prefetches the cache line in which a field starts.
    #[inline(always)]
    pub(crate) fn prefetch(self, field: u64) {
        let bit = field * u64::from(self.width);
        simd::prefetch(self.bytes, (bit / 8) as usize);
    }

    /// Prefetches it into the first-level cache, for a caller that branches on what it holds.
    #[inline(always)]
    pub(crate) fn prefetch_near(self, field: u64) {
        let bit = field * u64::from(self.width);
        simd::prefetch_near(self.bytes, (bit / 8) as usize);
    }
}

/// Bytes after the last field.
const SPARE: u64 = 7;

/// The bytes of an array, or `None` if they exceed the address space.
fn bytes_of(len: u64, width: u32) -> Option<u64> {
    debug_assert!((1..=57).contains(&width));
    Some(len.checked_mul(u64::from(width))?.div_ceil(8) + SPARE)
}

impl Packed {
    /// An array of zeros.
    pub(crate) fn zeroed(len: u64, width: u32) -> Result<Packed, NoMemory> {
        let bytes = bytes_of(len, width).ok_or(NoMemory { bytes: u64::MAX })?;
        Ok(Packed {
            bytes: Buf::zeroed(bytes)?,
            width,
            len,
        })
    }

    /// Bits of a field.
    #[inline(always)]
    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    pub(crate) fn size_in_bytes(&self) -> usize {
        self.bytes.size_in_bytes()
    }

    #[inline(always)]
    pub(crate) fn view(&self) -> View<'_> {
        View {
            bytes: &self.bytes,
            width: self.width,
        }
    }

    /// See [`View::word`].
    #[inline(always)]
    pub(crate) fn word(&self, field: u64) -> u64 {
        self.view().word(field)
    }

    #[inline(always)]
    pub(crate) fn get(&self, field: u64) -> u64 {
        self.view().get(field)
    }

    /// Writes a field; `value` must fit in it.
    #[inline(always)]
    pub(crate) fn set(&mut self, field: u64, value: u64) {
        debug_assert!(value <= low_mask(self.width));
        let bit = field * u64::from(self.width);
        let (byte, shift) = ((bit / 8) as usize, bit % 8);
        let mask = low_mask(self.width) << shift;
        let bytes = &mut self.bytes.make_mut()[byte..byte + 8];
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        let word = u64::from_le_bytes(word) & !mask | value << shift;
        bytes.copy_from_slice(&word.to_le_bytes());
    }

    /// Sets the bits of `value` from where a field starts on; other bits stay as they are. Up to
    /// 57 bits always fit, and 64 where the field starts at a byte.
    #[inline(always)]
    pub(crate) fn put(&mut self, field: u64, value: u64) {
        let bit = field * u64::from(self.width);
        let (byte, shift) = ((bit / 8) as usize, bit % 8);
        debug_assert!(value << shift >> shift == value);
        let bytes = &mut self.bytes.make_mut()[byte..byte + 8];
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        let word = u64::from_le_bytes(word) | value << shift;
        bytes.copy_from_slice(&word.to_le_bytes());
    }

    /// In each of the 64 fields from number `64 · block` on, clears the bits that are not in
    /// `keep`.
    #[inline(always)]
    pub(crate) fn keep_in_block(&mut self, block: u64, keep: u64) {
        // 64 fields are exactly `width` words; the mask repeats along them with the period of a
        // field.
        let mut pattern = u128::from(keep & low_mask(self.width));
        let mut filled = self.width;
        while filled < 128 {
            pattern |= pattern << filled;
            filled *= 2;
        }
        let bytes = 8 * self.width as usize;
        let start = block as usize * bytes;
        let words = self.bytes.make_mut()[start..start + bytes]
            .as_chunks_mut()
            .0;
        for (bit, bytes) in (0..).step_by(64).zip(words) {
            let kept = u64::from_le_bytes(*bytes) & (pattern >> (bit % self.width)) as u64;
            *bytes = kept.to_le_bytes();
        }
    }

    /// All fields in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len).map(|field| self.get(field))
    }

    /// See [`View::prefetch`].
    #[inline(always)]
    pub(crate) fn prefetch(&self, field: u64) {
        self.view().prefetch(field);
    }

    pub(crate) fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.section(&self.bytes);
    }

    /// Reads an array of exactly this shape; bits after the last field must be zero.
    pub(crate) fn decode(
        input: &mut Decoder<'_>,
        name: &'static str,
        len: u64,
        width: u32,
    ) -> Result<Packed, DecodeError> {
        let too_long = || DecodeError::invalid(name, len, "an array that an address can reach");
        let bytes = bytes_of(len, width).ok_or_else(too_long)?;
        let packed = Packed {
            bytes: input.section(name, bytes)?,
            width,
            len,
        };
        let end = len * u64::from(width);
        let after = packed.bytes[(end / 8) as usize..].iter().copied();
        let mut after = after.enumerate().map(|(i, byte)| match i {
            0 => byte >> (end % 8),
            _ => byte,
        });
        match after.find(|&byte| byte != 0) {
            None => Ok(packed),
            Some(byte) => Err(DecodeError::invalid(
                name,
                u64::from(byte),
                "zero bits after the last field",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;

    #[test]
    fn fields_of_every_width_keep_their_values() {
        for width in 1..=57 {
            for len in [0u64, 1, 2, 7, 8, 9, 100] {
                let value = |i: u64| mix64(i << 8 | u64::from(width)) & low_mask(width);
                let mut packed = Packed::zeroed(len, width).unwrap();
                // Written in an order that is not that of memory, and twice, so that neighbours
                // would show.
                for i in (0..len).rev() {
                    packed.set(i, low_mask(width));
                }
                for i in (0..len).step_by(2).chain((1..len).step_by(2)) {
                    packed.set(i, value(i));
                }
                assert!(packed.iter().eq((0..len).map(value)), "{width} bits");
            }
        }
    }

    #[test]
    fn a_block_keeps_the_same_bits_of_each_of_its_fields() {
        for width in 1..=57 {
            let value = |i: u64| mix64(i << 8 | u64::from(width)) & low_mask(width);
            let keep = mix64(u64::from(width));
            let mut packed = Packed::zeroed(192, width).unwrap();
            (0..192).for_each(|i| packed.set(i, value(i)));
            packed.keep_in_block(1, keep);
            let kept = |i| {
                if i / 64 == 1 {
                    value(i) & keep
                } else {
                    value(i)
                }
            };
            assert!(packed.iter().eq((0..192).map(kept)), "{width} bits");
        }
    }

    #[test]
    fn putting_sets_bits_from_a_field_on_and_leaves_all_others() {
        for width in 1..=57u32 {
            let mut packed = Packed::zeroed(40, width).unwrap();
            let mut expected = vec![0u8; packed.bytes.len()];
            for i in 0..60 {
                let field = mix64(i) % 40;
                // Few enough bits that those of the values before it stay to be seen.
                let value = mix64(i << 8) & mix64(i << 16) & mix64(i << 24) & low_mask(57);
                packed.put(field, value);
                for bit in (0..57).filter(|bit| value >> bit & 1 == 1) {
                    let at = field * u64::from(width) + bit;
                    expected[(at / 8) as usize] |= 1 << (at % 8);
                }
            }
            assert_eq!(packed.bytes[..], expected, "{width} bits");
            assert_eq!((packed.width(), packed.view().width()), (width, width));
            assert_eq!(packed.view().size_in_bytes(), expected.len());
            assert!(packed.size_in_bytes() >= expected.len());
        }
    }

    #[test]
    fn what_no_address_reaches_is_refused() {
        assert!(Packed::zeroed(u64::MAX, 2).is_err());
        assert!(Packed::zeroed(1 << 62, 4).is_err());
    }
}
