//! Large arrays: pages of their own, of which the server's accounts are told.
//!
//! The server's allocator rounds a large size up by as much as a quarter, and counts what it has
//! rounded; the array of a filter would be told, and limited, as what it is not. So it gets pages
//! from the system, to the page. The server limits and reports what it has given out itself, and
//! therefore gives out as many bytes again: *tickets*, which nobody ever touches, and which so take
//! no memory.
//!
//! ```text
//!   the system's   ┌──────────────── array ────────────────┬─ tickets ─┬───┐
//!                  └───────────────────────────────────────┴───────────┴───┘
//!   the server's   ┌─────────── untouched ──────────┬───────┬─┐   as many bytes, within 1/256
//!                  └────────────────────────────────┴───────┴─┘
//! ```
//!
//! Pages come into being when they are first touched, which takes microseconds each, and in an
//! array of a filter all are touched by the first few thousand items. The thread for long work
//! touches what it allocates at once; what a command allocates is kept in a list until
//! [`populate`] is called there.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Mutex;

use super::api::Api;

const PAGE: usize = 4096;
/// From this size on the kernel is asked for huge pages, as the library asks for its arrays.
const HUGE: usize = 4 << 20;
/// Tickets of an array: each covers at least three quarters of what the others leave, so that four
/// leave less than a 256th.
const TICKETS: usize = 4;

/// What is written behind an array.
#[derive(Clone, Copy, Debug)]
struct Trailer {
    tickets: [*mut c_void; TICKETS],
    /// Bytes that the server counts for them.
    counted: usize,
    /// Whether the pages are the system's; where it has no more mappings, they are the server's.
    is_mapped: bool,
}

thread_local! {
    /// Whether pages that this thread maps are touched at once.
    static EAGER: Cell<bool> = const { Cell::new(false) };
}

/// Arrays whose pages are yet to be touched: address and bytes.
static FRESH: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// Changes the list. Never waits for it: in a child of the server a lock may be held for ever by a
/// thread that is not there. What is missed costs time alone.
fn remember(change: impl FnOnce(&mut Vec<(usize, usize)>)) {
    if let Ok(mut fresh) = FRESH.try_lock() {
        change(&mut fresh);
    }
}

/// Where the trailer of an array begins, and how long its mapping is.
fn shape(bytes: usize) -> Option<(usize, usize)> {
    let place = bytes.checked_next_multiple_of(align_of::<Trailer>())?;
    let end = place.checked_add(size_of::<Trailer>())?;
    Some((place, end.checked_next_multiple_of(PAGE)?))
}

/// The largest size up to this one that the server's allocator does not round.
fn unrounded(bytes: usize) -> usize {
    let step = (1 << bytes.ilog2()) / 4;
    bytes / step * step
}

/// Zeroed memory for so many bytes, and what the server counts for it. `None` where there is none.
pub(super) fn map(api: &Api, bytes: usize) -> Option<(*mut u8, usize)> {
    let (place, len) = shape(bytes)?;
    let (protection, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: a new mapping, anywhere.
    let mapped = unsafe { libc::mmap(null_mut(), len, protection, flags, -1, 0) };
    let is_mapped = mapped != libc::MAP_FAILED;
    let mut trailer = Trailer {
        tickets: [null_mut(); TICKETS],
        counted: 0,
        is_mapped,
    };
    let memory = if is_mapped {
        trailer.hold_tickets(api, len);
        prepare(mapped, len);
        mapped.cast::<u8>()
    } else {
        let memory = api.memory(len, true);
        if memory.is_null() {
            return None;
        }
        memory
    };
    // SAFETY: `shape` has made room for the trailer, at a multiple of its alignment.
    unsafe { memory.add(place).cast::<Trailer>().write(trailer) };
    Some((memory, trailer.counted))
}

/// Pages, and when they are touched.
fn prepare(memory: *mut c_void, len: usize) {
    if len >= HUGE {
        // SAFETY: the range is a mapping of our own; the advice changes no contents.
        #[cfg(target_os = "linux")]
        unsafe {
            libc::madvise(memory, len, libc::MADV_HUGEPAGE)
        };
    }
    if EAGER.get() {
        touch(memory.addr(), len);
    } else {
        remember(|fresh| fresh.push((memory.addr(), len)));
    }
}

impl Trailer {
    fn hold_tickets(&mut self, api: &Api, len: usize) {
        for ticket in &mut self.tickets {
            let rest = len.saturating_sub(self.counted);
            if rest < PAGE {
                break;
            }
            *ticket = api.ticket(unrounded(rest));
            if ticket.is_null() {
                break;
            }
            // SAFETY: an allocation of the server.
            self.counted += unsafe { (api.malloc_size)(*ticket) };
        }
    }
}
/// Gives pages and tickets back; tells what the server had counted.
///
/// # Safety
///
/// `memory` is what [`map`] gave for so many bytes, and nobody uses it any more.
pub(super) unsafe fn unmap(api: &Api, memory: *mut u8, bytes: usize) -> usize {
    let Some((place, len)) = shape(bytes) else {
        return 0;
    };
    remember(|fresh| fresh.retain(|&(start, _)| start != memory.addr()));
    // SAFETY: the caller's promise; `map` wrote the trailer there, and the server gave its tickets.
    unsafe {
        let trailer = memory.add(place).cast::<Trailer>().read();
        let held = trailer
            .tickets
            .into_iter()
            .filter(|ticket| !ticket.is_null());
        held.for_each(|ticket| (api.free)(ticket));
        if trailer.is_mapped {
            libc::munmap(memory.cast(), len);
        } else {
            api.release(memory);
        }
        trailer.counted
    }
}

impl Api {
    /// An allocation of the server that takes no memory. Null where it refuses.
    fn ticket(&self, bytes: usize) -> *mut c_void {
        // SAFETY: sizes are any; the server's functions are called as it declares them.
        let ticket = unsafe {
            match self.try_alloc {
                Some(alloc) => alloc(bytes),
                None => (self.alloc)(bytes),
            }
        };
        if !ticket.is_null() {
            // It may have been used before: the whole pages inside are given back.
            let skip = ticket.addr().wrapping_neg() % PAGE;
            let len = bytes.saturating_sub(skip) / PAGE * PAGE;
            // SAFETY: the range lies inside our allocation, whose contents nobody reads.
            unsafe { libc::madvise(ticket.byte_add(skip), len, libc::MADV_DONTNEED) };
        }
        ticket
    }
}

/// Pages that this thread maps are touched at once, from now on.
pub(super) fn be_eager() {
    EAGER.set(true);
}

/// Touches the pages of all arrays that commands have allocated.
pub(crate) fn populate() {
    let mut all = Vec::new();
    remember(|fresh| std::mem::swap(fresh, &mut all));
    for (start, len) in all {
        touch(start, len);
    }
}

/// Lets the kernel touch every page of a range, which changes no contents. Kernels before 5.14
/// refuse; the pages then come when they are used.
fn touch(start: usize, len: usize) {
    // A little at a time: meanwhile the kernel lets nobody else map memory.
    const STEP: usize = 2 << 20;
    for at in (0..len).step_by(STEP) {
        // SAFETY: no contents are read or changed, whoever has the range by now.
        #[cfg(target_os = "linux")]
        unsafe {
            let start = std::ptr::without_provenance_mut(start + at);
            libc::madvise(start, STEP.min(len - at), libc::MADV_POPULATE_WRITE)
        };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = start;
}
