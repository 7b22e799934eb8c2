//! The peeling family: tables built once from all keys, in which the slots of a key combine to its fingerprint.
//!
//! A key has three (or four) slots, and the table is solved so that the xor of what they hold is the key's fingerprint.
//! An absent key's slots combine to a fingerprint of no meaning, which agrees with its own with probability 2⁻ᶠ. Nothing
//! but fingerprints is stored, and a lookup has no branch.
//!
//! The table is solved by *peeling*: a slot that only one key uses can be set last, whatever the others hold, so that key
//! is put aside; this may leave other slots with one key; and so on until no key is left. The order backwards is the
//! order in which to fill the slots.
//!
//! [`BinaryFuse`] is such a table, [`Xor`] its simpler ancestor, and [`XorPlus`] that one without its empty slots.
//! [`Bloomier`] keeps a value beside the fingerprint. [`Compacting`] grows by making a table whenever it is full.
//! [`Spill`] builds a table of more keys than fit in memory.

mod binary_fuse;
mod bloomier;
mod compacting;
mod narrow;
mod peeler;
pub(crate) mod shards;
mod spill;
mod xor;
mod xor_plus;

pub use binary_fuse::{BinaryFuse, BinaryFuse8, BinaryFuse16, BinaryFuse32, Fingerprint};
pub use bloomier::Bloomier;
pub use compacting::Compacting;
pub use spill::{Spill, Spilled};
pub use xor::{Xor, Xor8, Xor16, Xor32};
pub use xor_plus::{XorPlus, XorPlus8, XorPlus16};

pub(crate) use binary_fuse::dedup;

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Does `work` on every item, on this thread and up to `threads − 1` more, and returns the results in the items' order.
pub(crate) fn in_parallel<T: Send, R: Send>(
    threads: usize,
    items: impl ExactSizeIterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    // More threads than processors would only wait for one another.
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let helpers = threads.min(processors).min(items.len()).saturating_sub(1);
    let items = Mutex::new(items.enumerate());
    // A thread that panicked while it held the lock left the iterator usable; its panic is passed on below.
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let take_items = || {
        let mut done = Vec::new();
        while let Some((number, item)) = next() {
            done.push((number, work(item)));
        }
        done
    };
    let mut results = thread::scope(|scope| {
        // Where the system gives no more threads, those that there are do the work.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, take_items).ok();
        let helpers: Vec<_> = (0..helpers).map_while(spawn).collect();
        let mut results = take_items();
        for helper in helpers {
            results.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items_on_any_number_of_threads() {
        for threads in [0, 1, 2, 7, usize::MAX] {
            assert_eq!(
                in_parallel(threads, 0..100, |i| i * i),
                (0..100).map(|i| i * i).collect::<Vec<_>>()
            );
        }
    }
}
