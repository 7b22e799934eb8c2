//! The Bloom family; [`families`](crate::families) has its essay.

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
pub(crate) use split_block::SALTS;
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
