//! Lookups in a bumped ribbon: of one hash or many, in the first layer or below.

use super::{BUCKET, Layer, RibbonBumped, equation, next, threshold};
use crate::bits::fastrange;
use crate::build::shards::multiple;
use crate::lookup::Ring;
use crate::ribbon::{BLOCK, Place, Shape};
use crate::simd::ribbon::COLUMNS;
use crate::simd::{self, Bits, Portable};

/// Eight columns in every block of the first layer: a block is a line, and all columns are
/// compared at once.
pub(super) const FULL: u8 = 0;
/// At most eight columns.
pub(super) const NARROW: u8 = 1;
/// Any number of columns.
pub(super) const WIDE: u8 = 2;

impl Layer {
    /// Its reader; the layout must be the layer's.
    #[inline(always)]
    pub(super) fn reader<const LAYOUT: u8>(&self) -> Reader<'_, LAYOUT> {
        Reader {
            shape: self.shape,
            starts: self.starts,
            words: &self.words,
            thresholds: &self.thresholds,
        }
    }

    /// Whether a hash is contained that is not bumped and whose row is so near the end that eight
    /// words would reach beyond the last. Takes what its caller still has in registers.
    #[cold]
    #[inline(never)]
    fn agrees_at_the_end(&self, multiple: u64) -> bool {
        let at = self.reader::<WIDE>().at(multiple);
        self.shape
            .agrees::<_, _, true>(Portable, &self.words, at.place())
    }
}

impl RibbonBumped {
    #[inline(always)]
    pub(super) fn view<const LAYOUT: u8>(&self) -> Layered<'_, LAYOUT> {
        Layered {
            reader: self.first.reader(),
            ribbon: self,
        }
    }

    /// Whether a hash that the first layer bumps is contained, given its multiple.
    #[cold]
    #[inline(never)]
    fn bumped(&self, mut multiple: u64) -> bool {
        for layer in &self.rest {
            multiple = next(multiple);
            if let Some(answer) = simd::dispatch(Below(layer, multiple)) {
                return answer;
            }
        }
        if self.first.starts > 0 {
            multiple = next(multiple);
        }
        self.list.binary_search(&multiple).is_ok()
    }
}

/// The table and the thresholds of a layer, for lookups.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a, const LAYOUT: u8> {
    shape: Shape,
    starts: u64,
    words: &'a [u64],
    thresholds: &'a [u8],
}

/// Where a hash is looked up, given its multiple.
#[derive(Clone, Copy, Default)]
pub(super) struct At {
    multiple: u64,
    start: u64,
    first: usize,
}

impl At {
    /// The row and the result, derived from the multiple.
    #[inline(always)]
    fn place(self) -> Place<u64> {
        let (row, result) = equation(self.multiple);
        Place {
            first: self.first,
            start: self.start,
            row,
            result,
        }
    }
}

impl<const LAYOUT: u8> Reader<'_, LAYOUT> {
    /// The shape, with what the compiler can know of it wherever it is used.
    #[inline(always)]
    fn shape(&self) -> Shape {
        let mut shape = self.shape;
        if LAYOUT == FULL {
            (shape.columns, shape.short) = (COLUMNS as u32, 0);
        }
        shape
    }

    /// The start of a hash's multiple, and where its words lie: this filter's geometry.
    #[inline(always)]
    pub(super) fn at(&self, multiple: u64) -> At {
        let start = fastrange(multiple, self.starts).0;
        At {
            multiple,
            start,
            first: self.shape().offset(start / BLOCK) as usize,
        }
    }

    /// Whether the hash is contained; `None` if this layer bumps it. `layer` is the one that this
    /// reads, passed by callers that hold it anyway.
    #[inline(always)]
    pub(super) fn answer<B: Bits>(&self, bits: B, at: At, layer: &Layer) -> Option<bool> {
        if at.start % BUCKET < threshold(self.thresholds, at.start / BUCKET) {
            return None;
        }
        let (shape, words, place) = (self.shape(), self.words, at.place());
        let agrees = if LAYOUT == WIDE {
            shape.agrees_before_the_end::<_, B, true>(bits, words, place)
        } else {
            shape.agrees_before_the_end::<_, B, false>(bits, words, place)
        };
        Some(match agrees {
            Some(agrees) => agrees,
            None => layer.agrees_at_the_end(at.multiple),
        })
    }
}

/// A multiple to look up in a layer after the first.
struct Below<'a>(&'a Layer, u64);

impl simd::Op for Below<'_> {
    type Out = Option<bool>;

    #[inline(always)]
    fn run<B: Bits>(self, bits: B) -> Option<bool> {
        let reader = self.0.reader::<WIDE>();
        reader.answer(bits, reader.at(self.1), self.0)
    }
}

/// The first layer by value, the others by reference.
#[derive(Clone, Copy)]
pub(super) struct Layered<'a, const LAYOUT: u8> {
    reader: Reader<'a, LAYOUT>,
    ribbon: &'a RibbonBumped,
}

impl<const LAYOUT: u8> Ring for Layered<'_, LAYOUT> {
    type Place = At;
    type Answer = bool;

    #[inline(always)]
    fn bytes(self) -> usize {
        size_of_val(self.reader.words)
    }

    #[inline(always)]
    fn place(self, hash: u64) -> At {
        self.reader.at(multiple(hash))
    }

    #[inline(always)]
    fn prefetch(self, at: At) {
        self.reader.shape().prefetch(self.reader.words, at.first);
    }

    #[inline(always)]
    fn probe<B: Bits>(self, bits: B, at: At) -> bool {
        match self.reader.answer(bits, at, &self.ribbon.first) {
            Some(answer) => answer,
            None => self.ribbon.bumped(at.multiple),
        }
    }
}

/// One hash to look up in a layout.
pub(super) struct In<'a, const LAYOUT: u8>(pub(super) &'a RibbonBumped, pub(super) u64);

impl<const LAYOUT: u8> simd::Op for In<'_, LAYOUT> {
    type Out = bool;

    #[inline(always)]
    fn run<B: Bits>(self, bits: B) -> bool {
        let view = self.0.view::<LAYOUT>();
        view.probe(bits, view.place(self.1))
    }
}
