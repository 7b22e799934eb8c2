//! An allocator that counts: what the process holds, and what each thread does, so that tests
//! that run side by side do not disturb one another.
#![allow(
    unsafe_code,
    reason = "the global allocator's interface is unsafe; every call is passed on to the system's"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering};

pub struct Counting;

static PROCESS: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    // Constant and without a destructor: reading them never allocates.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn add(bytes: isize) {
    PROCESS.fetch_add(bytes, Ordering::Relaxed);
    let live = LIVE.get() + bytes;
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

/// Bytes that the process has taken and not given back.
pub fn live() -> isize {
    PROCESS.load(Ordering::Relaxed)
}

/// The most that this thread held beyond what it held at the start of `work`.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let start = LIVE.get();
    PEAK.set(start);
    let result = work();
    (result, (PEAK.get() - start) as usize)
}

// SAFETY: every request goes to the system's allocator unchanged; counting touches only
// thread-local integers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system's own.
        let ptr = unsafe { System.alloc(layout) };
        if !ptr.is_null() {
            add(layout.size() as isize);
        }
        ptr
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above. Passed on as it is, because fresh pages need no clearing.
        let ptr = unsafe { System.alloc_zeroed(layout) };
        if !ptr.is_null() {
            add(layout.size() as isize);
        }
        ptr
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) };
        add(-(layout.size() as isize));
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above.
        let new = unsafe { System.realloc(ptr, layout, new_size) };
        if !new.is_null() {
            add(new_size as isize - layout.size() as isize);
        }
        new
    }
}
