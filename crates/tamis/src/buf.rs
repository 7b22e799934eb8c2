//! `Buf<T>`: the one kind of array that filters are made of, owned or lent.
//!
//! ```text
//!  owned   base ┌─pad─┬───────────── len · size_of T ─────────────┐
//!               └─────┴───────────────────────────────────────────┘
//!                     ↑ ptr
//!          base from the allocator, zeroed lazily; ptr = base rounded up to 64 bytes
//!
//!  lent    ┌── an mmap, a Vec<u8>, a static slice … ──┐  kept alive by an Arc
//!          └──────┬───────────────┬───────────────────┘
//!                 ↑ ptr           copied into an owned array on the first write
//! ```
//!
//! Because the choice is made at run time, no filter carries a lifetime or a storage parameter. An
//! owned array starts on a cache line, so that a block of 64 bytes is one line. A large one is
//! advised to use huge pages, so that random reads miss the TLB far less often.
//!
//! This is one of the crate's two modules with `unsafe` code (the other is `simd`).
#![allow(
    unsafe_code,
    reason = "room for unsafe 1 of 2: raw allocation, and views of lent bytes"
)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::borrow::Cow;
use std::fmt;
use std::mem::{align_of, size_of};
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use crate::error::NoMemory;

/// Bytes that someone else owns and that a [`Buf`] may point into.
pub(crate) type Bytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// An unsigned integer that arrays are made of.
///
/// Sealed: every bit pattern is a value and there is no padding, which `Buf` relies on to view
/// bytes as words.
pub trait Word: Copy + Default + Eq + fmt::Debug + Send + Sync + sealed::Sealed + 'static {
    /// The value whose bytes in memory are this one's, least significant first. Its own inverse.
    #[doc(hidden)]
    fn little_endian(self) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! word {
    ($($t:ty)*) => {$(
        impl sealed::Sealed for $t {}
        impl Word for $t {
            #[inline]
            fn little_endian(self) -> Self { self.to_le() }
        }
    )*};
}
word!(u8 u16 u32 u64);

/// A cache line; owned arrays start on one.
const LINE: usize = 64;
/// The alignment requested from the allocator. With no more than this it can hand out fresh pages
/// that the kernel zeroes on first touch; for a larger alignment it would clear the memory itself.
const BASE_ALIGN: usize = 8;
const PAD: usize = LINE - BASE_ALIGN;
/// From this size on, the kernel is advised to use huge pages.
const HUGE: usize = 4 << 20;

/// An array of integers, owned or lent, that copies on the first write to lent memory.
///
/// Reads go through `Deref<Target = [T]>`; writes through [`Buf::make_mut`].
pub struct Buf<T: Word> {
    ptr: NonNull<T>,
    len: usize,
    owner: Owner,
}

enum Owner {
    /// `base` was allocated with `layout`; an empty array has a layout of size 0 and no
    /// allocation.
    Owned { base: NonNull<u8>, layout: Layout },
    /// The bytes stay where they are for as long as this is held.
    Lent(Bytes),
}

// SAFETY: `Buf` is a `Box<[T]>` or a shared slice of an owner that is itself `Send + Sync`; `T`
// is a plain integer, and mutation needs `&mut self`.
unsafe impl<T: Word> Send for Buf<T> {}
// SAFETY: as above; `&Buf` gives only `&[T]`.
unsafe impl<T: Word> Sync for Buf<T> {}

impl<T: Word> Buf<T> {
    /// Whether words lie in memory as they do in files.
    const AS_IN_FILES: bool = cfg!(target_endian = "little") || size_of::<T>() == 1;

    /// An owned array of `len` zeros. Large arrays take no real memory until they are written.
    pub(crate) fn zeroed(len: u64) -> Result<Buf<T>, NoMemory> {
        let too_large = NoMemory { bytes: u64::MAX };
        let len = usize::try_from(len).map_err(|_| too_large)?;
        if len == 0 {
            let layout = Layout::new::<()>();
            return Ok(Buf {
                ptr: NonNull::dangling(),
                len,
                owner: Owner::Owned {
                    base: NonNull::dangling(),
                    layout,
                },
            });
        }
        let size = len
            .checked_mul(size_of::<T>())
            .and_then(|s| s.checked_add(PAD))
            .ok_or(too_large)?;
        let layout = Layout::from_size_align(size, BASE_ALIGN).map_err(|_| too_large)?;
        // SAFETY: the layout's size is not 0.
        let base =
            NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(NoMemory { bytes: size as u64 })?;
        let shift = base.as_ptr().addr().wrapping_neg() % LINE;
        // SAFETY: `base` is a multiple of 8, so `shift` is at most 56 = PAD, and the allocation
        // has PAD bytes to spare.
        let ptr = unsafe { base.add(shift) }.cast::<T>();
        if size >= HUGE {
            advise_huge_pages(base, size);
        }
        Ok(Buf {
            ptr,
            len,
            owner: Owner::Owned { base, layout },
        })
    }

    /// An owned copy of a slice.
    pub(crate) fn copied(words: &[T]) -> Result<Buf<T>, NoMemory> {
        let mut buf = Buf::zeroed(words.len() as u64)?;
        buf.make_mut().copy_from_slice(words);
        Ok(buf)
    }

    /// A clone that reports a lack of memory, where [`Clone`] would abort.
    pub(crate) fn try_clone(&self) -> Result<Buf<T>, NoMemory> {
        match &self.owner {
            Owner::Lent(owner) => Ok(Buf {
                ptr: self.ptr,
                len: self.len,
                owner: Owner::Lent(Arc::clone(owner)),
            }),
            Owner::Owned { .. } => Buf::copied(self),
        }
    }

    /// An owned array of the words of an iterator.
    pub(crate) fn filled(words: impl ExactSizeIterator<Item = T>) -> Result<Buf<T>, NoMemory> {
        let mut buf = Buf::zeroed(words.len() as u64)?;
        for (word, value) in buf.make_mut().iter_mut().zip(words) {
            *word = value;
        }
        Ok(buf)
    }

    /// The little-endian words in `owner[range]`: lent where they can be read in place, copied
    /// where their address or this machine's byte order forbids it. `None` if the range is not
    /// whole words inside the bytes.
    pub(crate) fn view(owner: &Bytes, range: Range<usize>) -> Option<Result<Buf<T>, NoMemory>> {
        let bytes = AsRef::<[u8]>::as_ref(&**owner).get(range)?;
        if !bytes.len().is_multiple_of(size_of::<T>()) {
            return None;
        }
        let len = bytes.len() / size_of::<T>();
        if len == 0 {
            return Some(Buf::zeroed(0));
        }
        let aligned = bytes.as_ptr().addr().is_multiple_of(align_of::<T>());
        if aligned && Self::AS_IN_FILES {
            let ptr = NonNull::from(bytes).cast::<T>();
            return Some(Ok(Buf {
                ptr,
                len,
                owner: Owner::Lent(Arc::clone(owner)),
            }));
        }
        Some(Buf::zeroed(len as u64).map(|mut buf| {
            let words: &mut [T] = buf.make_mut();
            // SAFETY: `words` is `len` plain integers, exactly `bytes.len()` bytes, freshly
            // allocated and so disjoint from `bytes`.
            unsafe {
                bytes
                    .as_ptr()
                    .copy_to_nonoverlapping(words.as_mut_ptr().cast(), bytes.len());
            };
            for word in words {
                *word = word.little_endian();
            }
            buf
        }))
    }

    /// The array for writing; lent memory is copied first, which aborts as `Vec` does when memory
    /// runs out.
    #[inline]
    pub fn make_mut(&mut self) -> &mut [T] {
        if let Owner::Lent(_) = self.owner {
            self.take_over();
        }
        // SAFETY: the array is owned here: `ptr` is valid for `len` initialised words (zeroed,
        // then only written as words) and `&mut self` makes this the only view of them.
        unsafe { slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }

    #[cold]
    fn take_over(&mut self) {
        *self = match Buf::copied(self) {
            Ok(buf) => buf,
            Err(_) => handle_alloc_error(Layout::for_value::<[T]>(self)),
        };
    }

    /// Forgets all words from `len` on; their memory stays held.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Whether the words lie in memory that someone else owns.
    pub fn is_lent(&self) -> bool {
        matches!(self.owner, Owner::Lent(_))
    }

    /// Every byte held for this array, its padding included; lent bytes count as held.
    pub fn size_in_bytes(&self) -> usize {
        match &self.owner {
            Owner::Owned { layout, .. } => layout.size(),
            Owner::Lent(_) => size_of_val::<[T]>(self),
        }
    }

    /// The words as little-endian bytes: in place on little-endian machines.
    pub(crate) fn to_bytes(&self) -> Cow<'_, [u8]> {
        if Self::AS_IN_FILES {
            return Cow::Borrowed(bytes_of(self));
        }
        let swapped: Vec<T> = self.iter().map(|word| word.little_endian()).collect();
        Cow::Owned(bytes_of(&swapped).to_vec())
    }
}

/// The memory of some words.
fn bytes_of<T: Word>(words: &[T]) -> &[u8] {
    // SAFETY: integers have no padding, any address suits a byte, and the bytes are borrowed as
    // the words are.
    unsafe { slice::from_raw_parts(words.as_ptr().cast::<u8>(), size_of_val(words)) }
}

/// Each word as two of half the width, in the order in which they lie in memory.
pub(crate) fn halves(words: &mut [u64]) -> &mut [u32] {
    let len = 2 * words.len();
    // SAFETY: a `u64` is aligned for a `u32` and is as large as two of them, without padding; any
    // bits are a value of either type; and the words are borrowed for as long as their halves
    // are.
    unsafe { slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u32>(), len) }
}

impl<T: Word> Deref for Buf<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `ptr` is aligned (owned: to a line; lent: checked in `view`; empty: dangling)
        // and valid for `len` initialised words for as long as `self` is: owned memory is freed
        // in `drop`, lent memory is kept by its Arc.
        unsafe { slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for Buf<u8> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl<T: Word> Clone for Buf<T> {
    fn clone(&self) -> Buf<T> {
        match self.try_clone() {
            Ok(buf) => buf,
            Err(_) => handle_alloc_error(Layout::for_value::<[T]>(self)),
        }
    }
}

impl<T: Word> Drop for Buf<T> {
    fn drop(&mut self) {
        if let Owner::Owned { base, layout } = self.owner
            && layout.size() > 0
        {
            // SAFETY: `base` came from `alloc_zeroed` with this very layout and is freed once.
            unsafe { dealloc(base.as_ptr(), layout) };
        }
    }
}

impl<T: Word> fmt::Debug for Buf<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "[{}; {}]{}",
            std::any::type_name::<T>(),
            self.len,
            if self.is_lent() { " (lent)" } else { "" }
        )
    }
}

/// Advises the kernel likewise for the room of a vector that is not a [`Buf`]: it is to be called
/// before the room is filled.
pub(crate) fn spread_on_huge_pages<T>(room: &mut Vec<T>) {
    let size = room.capacity().saturating_mul(size_of::<T>());
    if let Some(base) = NonNull::new(room.as_mut_ptr().cast()).filter(|_| size >= HUGE) {
        advise_huge_pages(base, size);
    }
}

/// Advises the kernel to back the whole pages inside an allocation with huge ones. A refusal
/// changes nothing.
fn advise_huge_pages(base: NonNull<u8>, size: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        const PAGE: usize = 4096;
        let skip = base.as_ptr().addr().wrapping_neg() % PAGE;
        let len = (size - skip) / PAGE * PAGE;
        // SAFETY: the range lies inside our own allocation; MADV_HUGEPAGE never changes its
        // contents.
        unsafe { libc::madvise(base.as_ptr().add(skip).cast(), len, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = (base, size);
}

/// A file that the system maps into memory: its pages are read when they are used, and processes
/// share them.
///
/// ```
/// use tamis::{Bloom, Config, Keyed, Mapped, Open};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("f.tamis");
/// Keyed::<Bloom>::build(&Config::default(), ["alice"])?.save(&path)?;
/// // SAFETY: nobody changes the file; it is replaced by renaming another over it.
/// let file = unsafe { Mapped::open(&path)? };
/// let filter: Keyed<Bloom> = Open::new().mapped(file)?;
/// assert!(filter.contains("alice"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "mmap")]
#[derive(Debug)]
pub struct Mapped {
    map: memmap2::Mmap,
    path: std::path::PathBuf,
}

#[cfg(feature = "mmap")]
impl Mapped {
    /// Maps a file for reading.
    ///
    /// # Errors
    ///
    /// The system's, when the file cannot be opened or mapped.
    ///
    /// # Safety
    ///
    /// Nobody may change or truncate the file while it is mapped. Replace it by renaming a new
    /// file over it, as [`save`](crate::Keyed::save) does; never edit it in place.
    pub unsafe fn open(path: impl AsRef<std::path::Path>) -> std::io::Result<Mapped> {
        let path = path.as_ref();
        let file = std::fs::File::open(path)?;
        // SAFETY: the caller promises that the file stays as it is.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        let path = path.to_path_buf();
        Ok(Mapped { map, path })
    }

    /// Advises the system that pages are read here and there, so that it reads none around them:
    /// for a file larger than memory. A refusal changes nothing.
    #[must_use]
    pub fn random(self) -> Mapped {
        #[cfg(unix)]
        let _ = self.map.advise(memmap2::Advice::Random);
        self
    }

    /// The file's path.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }
}

#[cfg(feature = "mmap")]
impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owned_arrays_start_on_a_line_and_are_zero() {
        for len in [1, 2, 7, 8, 9, 63, 64, 65, 1000] {
            let buf = Buf::<u64>::zeroed(len).unwrap();
            assert_eq!(buf.as_ptr().addr() % LINE, 0);
            assert_eq!(buf.len() as u64, len);
            assert!(buf.iter().all(|&w| w == 0));
            assert_eq!(buf.size_in_bytes() as u64, len * 8 + PAD as u64);
        }
    }

    #[test]
    fn an_empty_array_takes_no_memory() {
        let mut buf = Buf::<u32>::zeroed(0).unwrap();
        assert!(buf.is_empty() && buf.make_mut().is_empty());
        assert_eq!(buf.clone().size_in_bytes(), 0);
    }

    #[test]
    fn impossible_sizes_are_refused_not_tried() {
        for len in [u64::MAX, 1 << 61, (1 << 60) - 1] {
            assert!(Buf::<u64>::zeroed(len).is_err());
        }
    }

    #[test]
    fn a_view_reads_little_endian_words_at_any_address() {
        let bytes: Bytes = Arc::new((0..64u8).collect::<Vec<_>>());
        for start in 0..16 {
            let buf = Buf::<u32>::view(&bytes, start..start + 16)
                .unwrap()
                .unwrap();
            let s = start as u8;
            assert_eq!(
                buf[0],
                u32::from_le_bytes([s, s + 1, s + 2, s + 3]),
                "at {start}"
            );
            assert_eq!(buf.len(), 4);
            assert_eq!(&*buf.to_bytes(), &(s..s + 16).collect::<Vec<_>>()[..]);
        }
        assert!(Buf::<u32>::view(&bytes, 0..63).is_none(), "not whole words");
        assert!(Buf::<u32>::view(&bytes, 60..68).is_none(), "past the end");
    }

    #[test]
    fn the_first_write_copies_lent_memory_and_leaves_the_lender_alone() {
        let owner = Buf::<u64>::copied(&[1, 2, 3]).unwrap();
        let bytes: Bytes = Arc::new(owner.to_bytes().into_owned());
        let mut buf = Buf::<u8>::view(&bytes, 0..24).unwrap().unwrap();
        let sibling = buf.clone();
        assert!(buf.is_lent() && sibling.is_lent());
        buf.make_mut()[0] = 9;
        assert!(!buf.is_lent());
        assert_eq!((buf[0], sibling[0], (*bytes).as_ref()[0]), (9, 1, 1));
        drop(bytes);
        assert_eq!(sibling[8], 2, "the last view keeps the lender alive");
    }

    #[test]
    fn halves_cover_their_words() {
        let mut words = [1, 2, 3];
        let halves = halves(&mut words);
        assert_eq!(halves.len(), 6);
        halves.fill(7);
        assert_eq!(words, [7 << 32 | 7; 3]);
        assert!(super::halves(&mut []).is_empty());
    }

    #[test]
    fn large_arrays_are_zero_and_writable() {
        let mut buf = Buf::<u8>::zeroed(HUGE as u64 + 1).unwrap();
        let n = buf.len();
        buf.make_mut()[n - 1] = 7;
        assert_eq!((buf[0], buf[n / 2], buf[n - 1]), (0, 0, 7));
    }
}
