//! The Bloom family: arrays of bits in which a key sets a few, and is present when all of them
//! are set.
//!
//! A key that was inserted finds its bits set whatever else was inserted, so "no" is certain. A
//! key that was not finds them all set by others with a probability that the fill decides.
//! Members differ in *where* a key's bits may lie:
//!
//! | filter | a key's bits lie | lines read | bits/key at 1 % (formula) |
//! |---|---|---|---|
//! | [`Bloom`] | anywhere | up to k | 9.59 |
//! | [`Counting`] | anywhere, 4-bit counters in their place: keys can be removed | up to k | 38.37 |
//! | [`VariableIncrement`] | anywhere, 6-bit counters to which each key adds a step of its own | up to k | 24.73 |
//! | [`TwoChoice`] | in one of two groups anywhere | up to 2k | 9.64 |
//! | [`BloomG`] | in two words (or g) of 64 bits | 2 | 9.98 |
//! | [`CountingMinimal`] | anywhere, 8-bit counters that tell how often a key came | up to k | 76.74 |
//! | [`SpectralRecurring`] | the same, with a second array for doubtful keys | up to k | 115.1 |
//! | [`Blocked`] | anywhere in a 512-bit block | 1 | 9.92 |
//! | [`Balanced`] | anywhere in a 512-bit block that has room, else the whole hash in a list | 2 | 9.84, list 0.4, counts 0.1 |
//! | [`SplitBlock512`] | one in each of 8 lanes of a 512-bit block | 1 | 10.10 |
//! | [`SplitBlock256`] | one in each of 8 lanes of a 256-bit block, as in Parquet | 1 | 10.53 |
//! | [`Compressed`] | anywhere, in a file that is coded | up to 2 | 18.98, in its file 8.90 |
//!
//! Fewer lines cost space: the keys do not spread evenly over blocks, and the fuller blocks err
//! more often.
//!
//! Beside the kinds there are types without a file format of their own: [`CountingPair`] is a
//! [`Counting`] with the Bloom filter of its keys beside it; [`AtomicBloom`] and
//! [`AtomicSplitBlock`] are filled by many threads at once; [`Attenuated`] is a network of sets,
//! by distance; [`Overlap`] is what two Bloom filters tell of each other, with their union and
//! intersection.

use crate::filter::Insert;

mod algebra;
mod atomic;
mod attenuated;
mod balanced;
mod blocked;
mod bloom_g;
mod compressed;
mod counters;
mod counting;
mod counting_pair;
mod spectral_recurring;
mod split_block;
mod standard;
mod subsets;
mod two_choice;
mod variable_increment;

pub use algebra::{Estimate, Overlap};
pub use atomic::{Atomic, AtomicBloom, AtomicSplitBlock, BitWords};
pub use attenuated::Attenuated;
pub use balanced::Balanced;
pub use blocked::Blocked;
pub use bloom_g::BloomG;
pub use compressed::Compressed;
pub use counting::{Counting, CountingBy, CountingMinimal, Every, Least, Rule};
pub use counting_pair::CountingPair;
pub use spectral_recurring::SpectralRecurring;
pub use split_block::{Lane, SplitBlock, SplitBlock256, SplitBlock512};
pub use standard::Bloom;
pub(crate) use standard::View;
pub use two_choice::TwoChoice;
pub use variable_increment::VariableIncrement;

/// Inserts hashes as they come, a batch at a time, into a filter that never refuses one.
fn insert_all(filter: &mut impl Insert, hashes: impl IntoIterator<Item = u64>) {
    let mut hashes = hashes.into_iter().fuse();
    let mut batch = [0; 256];
    loop {
        let mut taken = 0;
        for (slot, hash) in batch.iter_mut().zip(&mut hashes) {
            *slot = hash;
            taken += 1;
        }
        if taken == 0 {
            return;
        }
        let inserted = filter.insert_batch(&batch[..taken]);
        debug_assert!(inserted.is_ok(), "a filter of this kind refuses no key");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::{Config, Hashing, Keyed, Kind};

    fn bytes<F: Kind>(filter: F, config: &Config) -> Vec<u8> {
        let keyed = Keyed::from_filter(filter, Hashing::default(), config);
        keyed.unwrap().to_bytes()
    }

    fn extends<F: Kind + Extend<u64>>() {
        let config = Config::new(1000);
        for n in [0, 1, 255, 256, 257, 1000] {
            let mut hashes: Vec<u64> = (0..n).map(mix64).collect();
            let mut filter = F::build(&config, &mut []).unwrap();
            filter.extend(hashes.iter().copied());
            assert_eq!(filter.len(), n);
            let built = F::build(&config, &mut hashes).unwrap();
            assert!(bytes(filter, &config) == bytes(built, &config), "{n}");
        }
    }

    #[test]
    fn to_extend_a_filter_is_to_insert() {
        extends::<Bloom>();
        extends::<Blocked>();
        extends::<SplitBlock256>();
        extends::<SplitBlock512>();
        extends::<Counting>();
        extends::<CountingMinimal>();
    }
}
