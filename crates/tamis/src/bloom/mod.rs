//! The Bloom family: arrays of bits in which a key sets a few, and is present when all of them are set.
//!
//! A key that was inserted finds its bits set whatever else was inserted, so "no" is certain. A key that was not finds
//! them all set by others with a probability that the fill decides. Members differ in *where* a key's bits may lie:
//!
//! | filter | a key's bits lie | lines read | bits/key at 1 % (formula) |
//! |---|---|---|---|
//! | [`Bloom`] | anywhere | up to k | 9.59 |
//! | [`SplitBlock512`] | one in each of 8 lanes of a 512-bit block | 1 | 10.10 |
//! | [`SplitBlock256`] | one in each of 8 lanes of a 256-bit block, as in Parquet | 1 | 10.53 |
//!
//! Fewer lines cost space: the keys do not spread evenly over blocks, and the fuller blocks err more often.
//!
//! Two kinds forget on purpose: [`Sliding`] keeps the last n insertions, or those of the last minutes;
//! [`AgePartitioned`] keeps the last n insertions and lets go of older ones sooner.

use crate::bits::fastrange;

mod age_partitioned;
mod sliding;
mod split_block;
mod standard;

pub use age_partitioned::AgePartitioned;
pub use sliding::Sliding;
pub use split_block::{Lane, SplitBlock, SplitBlock256, SplitBlock512};
pub use standard::Bloom;

/// The places in `0..range` that a key is given, one after another: the probes of every filter of the family that lets
/// a key's bits lie anywhere.
///
/// Each place is the high half of a 128-bit product; between two the whole state is multiplied and folded. The filters'
/// essays say why nothing shorter will do. A place may come twice.
#[inline(always)]
pub(crate) fn positions(hash: u64, range: u64, k: u32) -> impl Iterator<Item = u64> {
    let mut x = hash;
    (0..k).map(move |_| {
        let (place, _) = fastrange(x, range);
        let y = x.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        x = y ^ (y >> 32);
        place
    })
}
