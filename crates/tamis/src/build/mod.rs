//! What builders share: cutting a set into shards, threads, deduplication, pairs for maps, and
//! hashes kept on disk.

#[cfg(any(feature = "peel", feature = "perfect", feature = "ribbon"))]
pub(crate) mod pairs;
#[cfg(any(feature = "coded", feature = "peel", feature = "ribbon"))]
pub(crate) mod shards;
#[cfg(feature = "peel")]
pub(crate) mod source;
#[cfg(feature = "peel")]
pub(crate) mod spill;

#[cfg(feature = "peel")]
pub use spill::{Spill, Spilled};

/// Does `work` on every item, on this thread and up to `threads − 1` more, and returns the
/// results in the items' order.
#[cfg(feature = "threads")]
pub(crate) fn in_parallel<T: Send, R: Send>(
    threads: usize,
    items: impl ExactSizeIterator<Item = T> + Send,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    use std::panic::resume_unwind;
    use std::sync::{Mutex, PoisonError};
    use std::thread;

    // More threads than processors would only wait for one another.
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let helpers = threads.min(processors).min(items.len()).saturating_sub(1);
    let items = Mutex::new(items.enumerate());
    // A thread that panicked while it held the lock left the iterator usable; its panic is passed
    // on below.
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let take_items = || {
        let mut done = Vec::new();
        while let Some((number, item)) = next() {
            done.push((number, work(item)));
        }
        done
    };
    let results = thread::scope(|scope| {
        // If the system gives no more threads, those that exist do the work.
        let spawn = |_| thread::Builder::new().spawn_scoped(scope, take_items).ok();
        let helpers: Vec<_> = (0..helpers).map_while(spawn).collect();
        let mut results = take_items();
        for helper in helpers {
            results.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    let mut in_order: Vec<Option<R>> = results.iter().map(|_| None).collect();
    for (number, result) in results {
        in_order[number] = Some(result);
    }
    in_order.into_iter().flatten().collect()
}

/// Does `work` on every item, in order: this build has no threads.
#[cfg(not(feature = "threads"))]
pub(crate) fn in_parallel<T, R>(
    _threads: usize,
    items: impl ExactSizeIterator<Item = T>,
    work: impl Fn(T) -> R,
) -> Vec<R> {
    items.map(work).collect()
}

/// Moves the distinct hashes to the front, in order, and returns how many there are.
pub(crate) fn dedup(hashes: &mut [u64]) -> usize {
    hashes.sort_unstable();
    let mut distinct = 0;
    for i in 0..hashes.len() {
        if distinct == 0 || hashes[i] != hashes[distinct - 1] {
            hashes.swap(distinct, i);
            distinct += 1;
        }
    }
    distinct
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
