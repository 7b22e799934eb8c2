//! The usual kinds: what suits where nothing is needed but lookups, and keys that are there or to
//! come. The program builds them where no kind is named, and [`advise`](super::advise()) puts them
//! first.
//!
//! The rule is that of the balance ([`Choice::balance`](super::Choice::balance)), without building
//! filters to weigh: it looks at the rate alone, so that a few keys more do not change the kind. Of
//! 10⁵ keys it is within 10 % of the best balance
//! (`the_usual_kind_comes_first_and_is_near_the_best`).

use crate::math;

/// The binary fuse filters by their width in bits: the rate is ½ to the power of it.
const FUSE: [(&str, i32); 3] = [
    ("binary_fuse8", 8),
    ("binary_fuse16", 16),
    ("binary_fuse32", 32),
];
/// Bits per key of a binary fuse filter, by bits of its width.
const FUSE_BITS: f64 = 1.125;
/// How many times the space that any filter needs is well spent on speed. A binary fuse filter is
/// built and looked up about twice as fast as a `ribbon_bumped`, which takes 1.02 times that
/// space.
const MOST_SPACE: f64 = 1.4;
/// The rates at which a `split_block` is well spent on speed: 2⁻¹² to ⅛. At lower ones a `cuckoo`
/// is smaller by a fifth and more, and at higher ones a `bloom`.
const SPLIT_BLOCK: std::ops::RangeInclusive<f64> = 1.0 / 4096.0..=0.125;

/// A kind, and why it is the usual one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usual {
    /// Its name.
    pub kind: &'static str,
    /// The reason, in words.
    pub why: &'static str,
}

/// The usual kind at a rate: for a set that is complete, or for keys that come over time.
///
/// ```
/// use tamis::advise::usual;
///
/// assert_eq!(usual(0.01, true).kind, "binary_fuse8");
/// assert_eq!(usual(0.01, false).kind, "split_block");
/// ```
pub fn usual(fpr: f64, complete: bool) -> Usual {
    let (kind, why) = if complete {
        let least = math::lower_bound_bits_per_key(fpr);
        let fuse = FUSE.into_iter().find(|(_, width)| 2f64.powi(-width) <= fpr);
        match fuse {
            Some((kind, width)) if FUSE_BITS * f64::from(width) <= MOST_SPACE * least => (
                kind,
                "all keys are there, and it is fast in at most 1.4 times the least space",
            ),
            _ => (
                "ribbon_bumped",
                "all keys are there, and it takes little more than the least space",
            ),
        }
    } else if SPLIT_BLOCK.contains(&fpr) {
        ("split_block", "there is room for more keys, and it is fast")
    } else if fpr < *SPLIT_BLOCK.start() {
        (
            "cuckoo",
            "there is room for more keys, and it is small at so low a rate",
        )
    } else {
        (
            "bloom",
            "there is room for more keys, and it is small at so high a rate",
        )
    };
    Usual { kind, why }
}
