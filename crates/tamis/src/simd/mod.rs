//! Everything that depends on the processor: run-time dispatch, prefetch, hand-written kernels,
//! and reads without bounds checks.
//!
//! A build without `target-cpu` runs on any processor of its architecture, and still uses AVX2,
//! BMI2 and AVX-512 where they are present: [`dispatch`] runs an [`Op`] inside a function compiled
//! for them, into which the whole operation is inlined. A batch is one dispatch, so its cost is
//! paid once.
//!
//! One source serves all levels wherever the compiler vectorises it by itself, as it does for
//! split blocks. A kernel is written by hand only where it does not, in a file named after the
//! filter that it serves, beside plain code that gives the same bits. Everything else here knows
//! no filter.
//!
//! This is one of the crate's two modules with `unsafe` code (the other is `buf`).
#![allow(
    unsafe_code,
    reason = "room for unsafe 2 of 2: prefetch, target features, kernels, and reads at places that are inside"
)]

mod bits;
pub(crate) mod block;
pub(crate) mod ribbon;
pub(crate) mod split_block;
mod table;
pub(crate) mod tinyset;

#[cfg(test)]
pub(crate) use bits::AsVector;
pub(crate) use bits::{Bits, Portable};
pub(crate) use table::{Run, Segments, Table, TableMut, half_range, places};

use std::sync::atomic::{AtomicU8, Ordering};

/// What the processor can do, as far as the code distinguishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// What every processor of the architecture has.
    Portable = 1,
    /// x86-64-v3: AVX2, BMI1, BMI2, LZCNT, POPCNT, FMA.
    V3 = 2,
    /// x86-64-v4 with byte permutations, shifts across words, and population counts: V3 and
    /// AVX-512 F, BW, CD, DQ, VL, VBMI, VBMI2 and VPOPCNTDQ; Ice Lake, Zen 4 and later.
    V4 = 3,
}

static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The level in force: detected once, then one load.
#[inline(always)]
pub(crate) fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::Portable,
        2 => Level::V3,
        3 => Level::V4,
        _ => detect(),
    }
}

#[cold]
fn detect() -> Level {
    let level = best();
    LEVEL.store(level as u8, Ordering::Relaxed);
    level
}

fn best() -> Level {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("fma")
    {
        let v4 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("avx512vpopcntdq");
        return if v4 { Level::V4 } else { Level::V3 };
    }
    Level::Portable
}

/// Turns the processor's extensions off for the whole process (or on again, as far as it has any),
/// so that a test can compare the answers. Both give the same bits, so a concurrent call is not
/// affected. Has no effect in a build for processors that all have them.
#[doc(hidden)]
pub fn force_portable(portable: bool) {
    let level = if portable { Level::Portable } else { best() };
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// The levels by name, and whether this processor has each; tests run at all that it has.
#[doc(hidden)]
pub fn levels() -> [(&'static str, bool); 3] {
    let best = best() as u8;
    [
        ("any processor", Level::Portable),
        ("x86-64-v3 (AVX2, BMI2)", Level::V3),
        ("AVX-512", Level::V4),
    ]
    .map(|(name, level)| (name, level as u8 <= best))
}

/// Work that is compiled once per [`Level`]. `run` and everything it calls must be
/// `#[inline(always)]`, to be compiled for the level they run at.
pub(crate) trait Op {
    /// What the work returns.
    type Out;
    /// Whether AVX-512 is faster than AVX2: a copy is compiled for it only then.
    const WIDE: bool = false;
    /// Does the work; `bits` has the instructions of the level that the compiler does not generate
    /// by itself.
    fn run<B: Bits>(self, bits: B) -> Self::Out;
}

/// Runs `op` compiled for the best level that this processor has.
///
/// Each level is a separate function, so that a caller's loop holds one call and no code for other
/// processors. A build for processors that all have AVX2 and BMI2 (`target-cpu`) has no choice to
/// make, and inlines.
#[inline(always)]
pub(crate) fn dispatch<O: Op>(op: O) -> O::Out {
    #[cfg(target_arch = "x86_64")]
    {
        let is_v3 = cfg!(all(target_feature = "avx2", target_feature = "bmi2"));
        if is_v3 && cfg!(not(target_feature = "avx512f")) {
            return op.run(bits::Bmi2(()));
        }
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma")]
        fn v3<O: Op>(op: O) -> O::Out {
            op.run(bits::Bmi2(()))
        }
        #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,fma")]
        #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl")]
        #[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vpopcntdq")]
        fn v4<O: Op>(op: O) -> O::Out {
            op.run(bits::Avx512(()))
        }
        #[inline(never)]
        fn portable<O: Op>(op: O) -> O::Out {
            op.run(Portable)
        }
        /// On the first call, and where there is only one level.
        #[cold]
        #[inline(never)]
        fn other<O: Op>(op: O) -> O::Out {
            match level() {
                // SAFETY: `level` has detected every feature that `v3` is compiled with, BMI2
                // among them.
                Level::V3 => unsafe { v3(op) },
                // SAFETY: likewise for `v4`.
                Level::V4 if O::WIDE => unsafe { v4(op) },
                // SAFETY: `Level::V4` has all that `Level::V3` has.
                Level::V4 => unsafe { v3(op) },
                Level::Portable => portable(op),
            }
        }
        // A single call costs one comparison here, or two.
        const V3: u8 = Level::V3 as u8;
        const V4: u8 = Level::V4 as u8;
        match LEVEL.load(Ordering::Relaxed) {
            // SAFETY: as above; `LEVEL` is what `level` has detected.
            V3 => unsafe { v3(op) },
            // SAFETY: likewise.
            V4 if O::WIDE => unsafe { v4(op) },
            // SAFETY: `Level::V4` has all that `Level::V3` has.
            V4 => unsafe { v3(op) },
            _ => other(op),
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    op.run(Portable)
}

/// From this many bytes on, lines are prefetched into the second-level cache instead of the first:
/// a core can have more such requests in flight. A caller that branches on a line then waits a
/// little longer for it, and uses [`prefetch_near`] instead.
pub(crate) const FAR: usize = 2 << 20;

/// Prefetches the cache line that holds `slice[index]`; does nothing out of bounds.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], index: usize) {
    if size_of_val(slice) < FAR {
        prefetch_line::<false>(slice.as_ptr().wrapping_add(index).cast());
    } else {
        prefetch_line::<true>(slice.as_ptr().wrapping_add(index).cast());
    }
}

/// Prefetches the line into the first-level cache, whatever the size of the slice.
#[inline(always)]
pub(crate) fn prefetch_near<T>(slice: &[T], index: usize) {
    prefetch_line::<false>(slice.as_ptr().wrapping_add(index).cast());
}

/// Prefetches the line at any address, into the second-level cache or the first.
#[inline(always)]
fn prefetch_line<const SECOND: bool>(at: *const i8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and may be given any address.
        unsafe {
            if SECOND {
                _mm_prefetch::<_MM_HINT_T1>(at);
            } else {
                _mm_prefetch::<_MM_HINT_T0>(at);
            }
        }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        use std::arch::asm;
        // SAFETY: a prefetch reads nothing, may be given any address, and changes neither flags
        // nor the stack.
        unsafe {
            if SECOND {
                asm!("prfm pldl2keep, [{0}]", in(reg) at, options(nostack, preserves_flags, readonly));
            } else {
                asm!("prfm pldl1keep, [{0}]", in(reg) at, options(nostack, preserves_flags, readonly));
            }
        }
    }
    #[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", not(miri)))))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatch_runs_the_operation_once_at_any_level() {
        struct Add<'a>(&'a mut u32);
        impl Op for Add<'_> {
            type Out = u32;
            #[inline(always)]
            fn run<B: Bits>(self, _: B) -> u32 {
                *self.0 += 1;
                *self.0
            }
        }
        let mut calls = 0;
        assert_eq!(dispatch(Add(&mut calls)), 1);
        force_portable(true);
        assert_eq!(dispatch(Add(&mut calls)), 2);
        force_portable(false);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn extensions_are_used_where_the_processor_has_them() {
        let has_them = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2");
        let has_512 = is_x86_feature_detected!("avx512vpopcntdq")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("avx512vl");
        let expected = match (has_them, has_512) {
            (false, _) => Level::Portable,
            (true, false) => Level::V3,
            (true, true) => Level::V4,
        };
        assert_eq!(best(), expected);
    }

    #[test]
    fn a_prefetch_may_point_anywhere() {
        prefetch(&[1u8, 2], 0);
        prefetch::<u64>(&[], usize::MAX);
        prefetch(&vec![0u8; FAR], usize::MAX);
    }
}
