//! Memory from the server, so that it is counted, limited and reported as the server's own.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::OnceLock;

use super::api::{Api, RawDefrag, loaded};
use super::pages;

/// The allocator of the module: the server's.
#[derive(Debug)]
pub(crate) struct ServerAllocator;

#[global_allocator]
static ALLOCATOR: ServerAllocator = ServerAllocator;

/// What the server's allocator aligns to.
const ALIGN: usize = 16;
/// From this size on memory is mapped ([`pages`]), and a refusal is worth a question first: some
/// servers end themselves where memory is short, and the library would rather be told.
const LARGE: usize = 1 << 20;

thread_local! {
    /// Bytes that this thread has allocated, less those that it has freed, as the server counts.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// The run of defragmentation that this thread is in, or null.
    static RUN: Cell<*mut RawDefrag> = const { Cell::new(null_mut()) };
}

/// Runs something whose allocations the server puts where memory is densest.
///
/// # Safety
///
/// `run` must be alive until this returns.
pub(super) unsafe fn densely(run: *mut RawDefrag, work: impl FnOnce()) {
    RUN.set(run);
    let _ = catch_unwind(AssertUnwindSafe(work));
    RUN.set(null_mut());
}

/// Runs something, and tells by how many bytes it changed what is held.
pub(crate) fn measured<T>(work: impl FnOnce() -> T) -> (T, isize) {
    let before = HELD.get();
    let result = work();
    (result, HELD.get().wrapping_sub(before))
}

fn count(bytes: usize, sign: isize) {
    // A thread that is ending has no counter left, and nothing to measure.
    let _ = HELD.try_with(|held| held.set(held.get().wrapping_add(bytes as isize * sign)));
}

/// The machine's memory in bytes.
fn physical() -> usize {
    static PHYSICAL: OnceLock<usize> = OnceLock::new();
    *PHYSICAL.get_or_init(|| {
        // SAFETY: two questions to the system, without pointers.
        let (pages, size) = unsafe {
            (
                libc::sysconf(libc::_SC_PHYS_PAGES),
                libc::sysconf(libc::_SC_PAGESIZE),
            )
        };
        let bytes = usize::try_from(pages).unwrap_or(0);
        bytes.saturating_mul(usize::try_from(size).unwrap_or(0))
    })
}

/// Whether there is no such memory, so that the server would end itself.
fn is_hopeless(bytes: usize) -> bool {
    bytes >= LARGE && bytes > physical()
}

/// Whether memory is mapped.
fn is_mapped(layout: Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= 4096
}

impl Api {
    /// Memory of the server, zeroed if asked for; null where there is none.
    pub(super) fn memory(&self, bytes: usize, zeroed: bool) -> *mut u8 {
        let try_alloc = self.try_alloc.filter(|_| !zeroed);
        let try_calloc = self.try_calloc.filter(|_| zeroed);
        // SAFETY: sizes are any; the server's functions are called as it declares them.
        let mut memory = unsafe {
            match (try_alloc, try_calloc) {
                (Some(alloc), _) => alloc(bytes),
                (_, Some(calloc)) => calloc(1, bytes),
                _ if is_hopeless(bytes) => null_mut(),
                _ if zeroed => (self.calloc)(1, bytes),
                _ => (self.alloc)(bytes),
            }
        };
        if !memory.is_null() {
            let run = RUN.try_with(Cell::get).unwrap_or(null_mut());
            if !run.is_null() {
                // SAFETY: `run` is alive (see `densely`); nobody has seen `memory` yet.
                let moved = unsafe { (self.defrag_alloc)(run, memory) };
                memory = if moved.is_null() { memory } else { moved };
            }
            // SAFETY: `memory` is an allocation of the server.
            count(unsafe { (self.malloc_size)(memory) }, 1);
        }
        memory.cast()
    }

    /// # Safety
    ///
    /// `memory` is an allocation of [`memory`](Api::memory) that is still held.
    pub(super) unsafe fn release(&self, memory: *mut u8) {
        let memory = memory.cast::<c_void>();
        // SAFETY: the caller's promise.
        unsafe {
            count((self.malloc_size)(memory), -1);
            (self.free)(memory);
        }
    }
}

/// Bytes before memory of a stricter alignment than the server's, in which its start is kept.
fn before(layout: Layout) -> usize {
    layout.align()
}

/// Memory of any layout.
fn allocate(layout: Layout, zeroed: bool) -> *mut u8 {
    let Some(api) = loaded() else {
        return null_mut();
    };
    if is_mapped(layout) {
        if is_hopeless(layout.size()) {
            return null_mut();
        }
        let Some((memory, counted)) = pages::map(api, layout.size()) else {
            return null_mut();
        };
        count(counted, 1);
        return memory;
    }
    if layout.align() <= ALIGN {
        return api.memory(layout.size(), zeroed);
    }
    let Some(bytes) = layout.size().checked_add(2 * before(layout)) else {
        return null_mut();
    };
    let start = api.memory(bytes, zeroed);
    if start.is_null() {
        return start;
    }
    let room = before(layout) + start.addr().wrapping_neg() % layout.align();
    // SAFETY: `room` is from `align` to 2·align − 1, so that the memory and the word before it lie
    // in the allocation; an alignment above 16 leaves room for a pointer.
    unsafe {
        let memory = start.add(room);
        memory.cast::<*mut u8>().sub(1).write(start);
        memory
    }
}

// SAFETY: every layout gets memory of its size and alignment from the server, or null.
unsafe impl GlobalAlloc for ServerAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocate(layout, false)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocate(layout, true)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let Some(api) = loaded() else {
            return;
        };
        if is_mapped(layout) {
            // SAFETY: `allocate` mapped it, for so many bytes.
            count(unsafe { pages::unmap(api, memory, layout.size()) }, -1);
        } else if layout.align() <= ALIGN {
            // SAFETY: `allocate` made it so.
            unsafe { api.release(memory) };
        } else {
            // SAFETY: `allocate` wrote the start of the allocation just before the memory.
            unsafe { api.release(memory.cast::<*mut u8>().sub(1).read()) };
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let is_small = layout.align() <= ALIGN && layout.size().max(size) < LARGE;
        let (Some(api), true) = (loaded(), is_small) else {
            // SAFETY: a layout of the same alignment, and memory that `alloc` gave.
            unsafe {
                let larger = Layout::from_size_align_unchecked(size, layout.align());
                let new = self.alloc(larger);
                if !new.is_null() {
                    new.copy_from_nonoverlapping(memory, layout.size().min(size));
                    self.dealloc(memory, layout);
                }
                return new;
            }
        };
        // SAFETY: `memory` is an allocation of the server's, which gives another in its place.
        unsafe {
            count((api.malloc_size)(memory.cast()), -1);
            let new = (api.realloc)(memory.cast(), size);
            count((api.malloc_size)(new), 1);
            new.cast()
        }
    }
}
