//! The counting allocator: how many bytes are held, the most that were held since the last
//! question, and how many a thread gives back.
#![allow(
    unsafe_code,
    reason = "a global allocator is an unsafe trait; this one only counts"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Bytes that this thread asked for, less those that it gave back; it may give back what
    /// another asked for.
    static OWN: Cell<usize> = const { Cell::new(0) };
}

fn grow(bytes: usize) {
    let live = LIVE.fetch_add(bytes, Relaxed) + bytes;
    PEAK.fetch_max(live, Relaxed);
    OWN.set(OWN.get().wrapping_add(bytes));
}

fn shrink(bytes: usize) {
    LIVE.fetch_sub(bytes, Relaxed);
    OWN.set(OWN.get().wrapping_sub(bytes));
}

// SAFETY: every call is passed on to the system's allocator unchanged; the counters touch no
// memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    // Passed on as it is, not made of `alloc`: the system hands out zero pages without touching
    // them.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(ptr, layout) }
    }

    // Only the difference is counted: a large block, and only those weigh, is moved by remapping
    // its pages, so that old and new are never held together.
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if new_size >= layout.size() {
            grow(new_size - layout.size());
        } else {
            shrink(layout.size() - new_size);
        }
        // SAFETY: the caller's promise, passed on.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

/// What a piece of work left on the heap, and the most it needed on the way, in bytes above what
/// was held before, by all threads: those of an earlier piece of work that end meanwhile count,
/// too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) held: usize,
    pub(crate) peak: usize,
}

/// Bits for each of so many keys.
pub(crate) fn bits_per_key(bytes: usize, n: usize) -> f64 {
    bytes as f64 * 8.0 / n as f64
}

/// Bytes that are held now, by all threads.
pub(crate) fn live() -> usize {
    LIVE.load(Relaxed)
}

/// Runs `work` and counts the heap it uses.
pub(crate) fn count<T>(work: impl FnOnce() -> T) -> (T, Used) {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    let result = work();
    let used = Used {
        held: LIVE.load(Relaxed).saturating_sub(before),
        peak: PEAK.load(Relaxed).saturating_sub(before),
    };
    (result, used)
}

/// Bytes that `value` held: those that it gives back on this thread, whoever asked for them and
/// whatever other threads do.
pub(crate) fn held_by<T>(value: T) -> usize {
    let before = OWN.get();
    drop(value);
    before.wrapping_sub(OWN.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_value_held_is_counted_whoever_made_it_and_whatever_others_do() {
        use std::sync::atomic::AtomicBool;
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Another thread asks for and gives back as fast as it can.
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    std::hint::black_box(vec![0u8; 12345]);
                }
            });
            for bytes in [0, 1, 1000, 1 << 20] {
                let made = scope.spawn(move || Box::new(vec![1u8; bytes]));
                let made = made.join().expect("no panic");
                assert_eq!(held_by(made), bytes + size_of::<Vec<u8>>());
            }
            done.store(true, Relaxed);
        });
    }
}
