//! The cuckoo family; [`families`](crate::families) has its essay.

use crate::error::FullKind;

mod adaptive;
mod morton;
mod semi_sorted;
mod standard;

pub use adaptive::AdaptiveCuckoo;
pub use morton::Morton;
pub use standard::Cuckoo;

/// Slots in a bucket.
const WAYS: u64 = 4;
/// Copies of one key that its two buckets hold.
const MOST_COPIES: u64 = 2 * WAYS;

/// A table of buckets in which whatever stands in a slot may stand in one other bucket.
trait Nest {
    /// A free slot of a bucket.
    fn free_slot(&self, bucket: u64) -> Option<u64>;
    /// The other bucket of what stands in a slot.
    fn other_bucket(&self, slot: u64) -> u64;
    /// Writes what stands in a slot to another, in place of what stood there.
    fn copy(&mut self, from: u64, to: u64);
}

/// Frees a slot in one of two full buckets, or says why not, having changed nothing. `copies` of
/// what is to be inserted stand in them.
#[cold]
fn make_room<N: Nest>(
    nest: &mut N,
    roots: [u64; 2],
    copies: impl FnOnce(&N) -> u64,
) -> Result<u64, FullKind> {
    // Up to two moves find room nearly always; the wide search is for the last keys of a full
    // table.
    if let Some(slot) = search::<NEAR, N>(nest, roots) {
        return Ok(slot);
    }
    if copies(nest) == MOST_COPIES {
        return Err(FullKind::Duplicates(MOST_COPIES));
    }
    search::<FAR, N>(nest, roots).ok_or(FullKind::Capacity)
}

/// Nodes of a search tree of two levels below the roots, and of five.
const NEAR: usize = 2 + 8 + 32;
const FAR: usize = NEAR + 128 + 512 + 2048;

/// Searches breadth-first for the shortest chain of moves that frees a slot in one of the roots,
/// looking at up to `NODES` buckets, and makes those moves.
///
/// The tree is laid out as a heap: from node k, what stands in slot s moves to the bucket of node
/// 4k + 2 + s. The shortest chain never passes through a bucket twice (the part between the two
/// visits could be left out), so its moves do not disturb one another.
fn search<const NODES: usize, N: Nest>(nest: &mut N, roots: [u64; 2]) -> Option<u64> {
    let mut nodes = [0; NODES];
    nodes[..2].copy_from_slice(&roots);
    for node in 2..NODES {
        let parent = (node - 2) / 4;
        nodes[node] = nest.other_bucket(nodes[parent] * WAYS + (node as u64 - 2) % 4);
        let Some(mut free) = nest.free_slot(nodes[node]) else {
            continue;
        };
        let mut node = node;
        while node >= 2 {
            let parent = (node - 2) / 4;
            let from = nodes[parent] * WAYS + (node as u64 - 2) % 4;
            nest.copy(from, free);
            (free, node) = (from, parent);
        }
        return Some(free);
    }
    None
}
