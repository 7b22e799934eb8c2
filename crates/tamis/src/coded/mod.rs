//! Sets of numbers, sorted and coded: each key becomes a number, and the gaps between neighbours
//! are written in few bits.
//!
//! A table spends bits on where a key is; a sorted list does not, so its code comes closer to the
//! lower bound than most tables do. The price is that a lookup decodes its way to the key.
//!
//! | type | for |
//! |---|---|
//! | [`Golomb`] | small filters of any rate, which merge and can be listed |
//! | [`Bip158`] | the filters of Bitcoin blocks, to the byte |

mod bip158;
mod golomb;

pub use bip158::Bip158;
pub use golomb::Golomb;
