//! The machine's limit: independent random reads of 64-byte lines.
//!
//! No filter that waits for one line per lookup can beat it, so a batch lookup is also given as a
//! multiple of it. The queries are the filter's own, and the buffer has the filter's size and is
//! backed by huge pages where the system grants them.
#![allow(
    unsafe_code,
    reason = "a prefetch has no safe form; it reads nothing and may point anywhere"
)]

use std::hint::black_box;

use memmap2::MmapMut;

use crate::clock::{Clock, timed};
use crate::keys::fastrange;

const LINE: usize = 64;

/// Memory to read lines from. Mapped, not allocated, so that it does not count as heap.
pub(crate) struct Lines {
    buffer: MmapMut,
}

impl Lines {
    pub(crate) fn new() -> std::io::Result<Lines> {
        Ok(Lines {
            buffer: MmapMut::map_anon(LINE)?,
        })
    }

    /// The shortest time of a line read, ns, over a working set of `bytes`: the best of a plain
    /// loop, which lets the processor overlap reads by itself, and of rolling prefetches at two
    /// distances, the longer one into the second-level cache.
    pub(crate) fn ns_per_read(
        &mut self,
        bytes: usize,
        keys: &[u64],
        clock: Clock,
    ) -> std::io::Result<f64> {
        let lines = bytes.div_ceil(LINE).max(1);
        if self.buffer.len() < lines * LINE {
            self.buffer = map(lines * LINE)?;
        }
        let buffer = &self.buffer[..lines * LINE];
        // Each distance reads lines of its own: the same ones again would be found in a cache.
        let part = keys.len().div_ceil(AHEAD.len()).max(1);
        let times = AHEAD.iter().zip(keys.chunks(part)).map(|(&ahead, keys)| {
            let read = || black_box(read(buffer, keys, ahead));
            timed(clock, keys.len(), read).1
        });
        Ok(times.fold(f64::INFINITY, f64::min))
    }
}

/// How far ahead lines are prefetched; 0 is a plain loop.
const AHEAD: [usize; 3] = [0, 32, FAR];

/// From this distance on, lines are prefetched into the second-level cache: a core can have more
/// such requests in flight.
const FAR: usize = 64;

/// Fresh memory, every page of it touched.
fn map(bytes: usize) -> std::io::Result<MmapMut> {
    let mut buffer = MmapMut::map_anon(bytes)?;
    // Advice: where it is refused, the limit is that of small pages.
    #[cfg(target_os = "linux")]
    let _ = buffer.advise(memmap2::Advice::HugePage);
    buffer.fill(1);
    Ok(buffer)
}

#[inline(never)]
fn read(buffer: &[u8], keys: &[u64], ahead: usize) -> u64 {
    let lines = buffer.len() / LINE;
    let at = |key: u64| fastrange(key, lines) * LINE;
    let ahead = ahead.min(keys.len());
    let mut sum = 0;
    if ahead > 0 {
        for (&key, &next) in keys.iter().zip(&keys[ahead..]) {
            prefetch(buffer, at(next), ahead >= FAR);
            sum += u64::from(buffer[at(key)]);
        }
    }
    let rest = if ahead > 0 { keys.len() - ahead } else { 0 };
    for &key in &keys[rest..] {
        sum += u64::from(buffer[at(key)]);
    }
    sum
}

#[inline(always)]
fn prefetch(buffer: &[u8], index: usize, is_far: bool) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        let line = buffer.as_ptr().wrapping_add(index).cast();
        // SAFETY: a prefetch reads nothing and may be given any address; `wrapping_add` makes no
        // promise about it.
        unsafe {
            if is_far {
                _mm_prefetch::<_MM_HINT_T1>(line);
            } else {
                _mm_prefetch::<_MM_HINT_T0>(line);
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (buffer, index, is_far);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{KeyType, Keys};

    #[test]
    fn every_key_is_read_once_at_every_distance() {
        let keys = Keys::new(KeyType::U64, 0, 1, 1000);
        for ahead in [0, 1, 32, 999, 1000, 5000] {
            assert_eq!(read(&[1; 64 * 64], &keys.absent, ahead), 1000);
            assert_eq!(read(&[1; 64], &keys.absent, ahead), 1000, "one line");
        }
        assert_eq!(read(&[1; 64], &[], 32), 0);
    }

    #[test]
    fn the_limit_is_a_time() {
        let keys = Keys::new(KeyType::U64, 0, 1, 10_000);
        let mut lines = Lines::new().unwrap();
        for bytes in [0, 1, 1 << 20, 1 << 12] {
            let ns = lines.ns_per_read(bytes, &keys.absent, Clock::Wall).unwrap();
            assert!(ns > 0.0, "{bytes} bytes: {ns} ns");
        }
    }
}
