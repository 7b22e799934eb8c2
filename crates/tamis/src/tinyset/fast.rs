//! Short cuts for blocks of the default shape, as many chains as bytes.
//!
//! A lookup has two branches that depend on the key. An empty chain ends it, as half of those of
//! absent keys are. That branch is mispredicted for every second absent key, and pays all the
//! same: while a line is on its way, the processor continues speculatively, and where it predicts
//! that a lookup ends here it begins to fetch the lines of the next ones, right or wrong. The
//! other branch takes the few chains that do not fit below to a loop over their slots, and a block
//! with too many slots to the plain code of [`block`](super::block). A chain holds one to four
//! slots; a branch on each would cost more than comparing all.
//!
//! The slots of a chain are compared at once: by arithmetic in one word if they fit in it and are
//! of one width, as most are; with AVX-512 in a vector, [`Fields`], whatever their widths.

use super::block::{CAP, Layout, Shape, prefix, widths};
use crate::bits::{fastrange, low_mask};
use crate::simd::Bits;
use crate::simd::tinyset::{Fields, Gap};

/// The default shape for a block size, with its tables.
pub(super) struct Default<const N: usize, const REMOVABLE: bool>;

/// By the width w of a field: a word of such fields that are all 1.
const ONES: [u64; 64] = {
    let mut table = [0; 64];
    let mut width = 1;
    while width < 32 {
        let mut at = 0;
        while at + width <= 64 {
            table[width] |= 1 << at;
            at += width;
        }
        width += 1;
    }
    table
};

/// What a lookup or an insertion first learns about a block.
struct Found {
    /// Whether the chain has any slot: 1 or 0.
    present: u64,
    /// The chain's first slot, or where it would be.
    start: u64,
    /// Slots that decide the widths, and those of them in use.
    slots: u64,
    live: u64,
    /// Whether all end marks lie where this file looks; if not, only `present` is valid.
    sound: bool,
}

impl Found {
    /// The chain's fingerprints, in a block whose first `longer` slots have one bit more than
    /// `width`.
    #[inline(always)]
    fn chain<const N: usize, const REMOVABLE: bool>(
        &self,
        width: u64,
        longer: u64,
        len: u64,
    ) -> Fields {
        let before = self.start * width + self.start.min(longer);
        Fields {
            at: Default::<N, REMOVABLE>::HEADER + self.slots + before,
            width,
            longer: longer.saturating_sub(self.start),
            len,
        }
    }
}

impl<const N: usize, const REMOVABLE: bool> Default<N, REMOVABLE> {
    pub(super) const SHAPE: Shape<N> = Shape {
        chains: N as u32,
        removable: REMOVABLE,
    };
    const HEADER: u64 = Self::SHAPE.header() as u64;
    /// By the number of slots: width, and how many are longer. Blocks with more slots than this
    /// are not handled here.
    pub(super) const WIDTHS: &'static [[u8; 2]; 256] = &{
        let mut table = [[0; 2]; 256];
        let mut slots = 0;
        while slots < 193 && slots <= Self::SHAPE.array() {
            let (width, longer) = widths(Self::SHAPE.array(), slots);
            table[slots as usize] = [width as u8, longer as u8];
            slots += 1;
        }
        table
    };

    /// Block, chain and remainder of a hash among blocks of this shape.
    #[inline(always)]
    pub(super) fn place(hash: u64, blocks: u64) -> (usize, u32, u64) {
        let (block, rest) = fastrange(hash, blocks);
        let chain_bits = N.ilog2();
        let chain = rest >> (64 - chain_bits);
        (block as usize, chain as u32, rest << chain_bits)
    }

    #[inline(always)]
    fn find<B: Bits>(bits: B, block: &[u8; N], chain: u32) -> Found {
        let (present, chains, rank) = match N {
            128 => {
                let index = u128::from(word(block, 0)) | u128::from(word(block, 8)) << 64;
                let below = index & ((1 << chain) - 1);
                (
                    (index >> chain) as u64,
                    index.count_ones(),
                    below.count_ones(),
                )
            }
            _ => {
                let index = word(block, 0) & low_mask(N as u32);
                let below = index & ((1 << chain) - 1);
                (index >> chain, index.count_ones(), below.count_ones())
            }
        };
        let marks = Marks::<N>::read::<REMOVABLE>(block);
        let free = if REMOVABLE {
            u32::from(block[N / 8] & 1)
        } else {
            0
        };
        let (slots, sound) = marks.start(bits, u64::from(chains + free));
        Found {
            present: present & 1,
            start: marks.start(bits, u64::from(rank)).0,
            slots,
            live: match free {
                0 => slots,
                _ => marks.start(bits, u64::from(chains)).0,
            },
            sound,
        }
    }

    /// The same answer as [`Shape::contains`].
    #[inline(always)]
    pub(super) fn contains<B: Bits>(bits: B, block: &[u8; N], chain: u32, remainder: u64) -> bool {
        if block[chain as usize / 8] >> (chain % 8) & 1 == 0 {
            return false;
        }
        let found = Self::find(bits, block, chain);
        let (start, slots) = (found.start, found.slots);
        let [short, longer] = Self::WIDTHS[slots as u8 as usize].map(u64::from);
        let short = short % 32;
        let longer = if REMOVABLE && block[N / 8] & 2 != 0 {
            // Their number follows from the position of the 1 behind the last fingerprint.
            let end = highest(block).wrapping_sub(Self::HEADER + slots);
            // In an invalid block it may be anything; as a byte it keeps every sum below in range.
            u64::from(end.wrapping_sub(found.live * short) as u8)
        } else {
            longer
        };
        // The chain's slots have one width, unless the longer ones end among them.
        let extra = is_below(start, longer);
        let width = short.wrapping_sub(extra);
        let same_until = choose(extra, longer, slots);
        let marks = field(block, Self::HEADER + start);
        let len = u64::from(marks.trailing_zeros()) + 1;
        // In a block that is not sound `longer` may be anything.
        let at = (Self::HEADER + slots + start * short).wrapping_add(choose(extra, start, longer));
        let last = 8 * N as u64 - 64;
        let byte = choose(is_below(at, last), at, last) / 8;
        let shift = at.wrapping_sub(8 * byte);
        let room = 64u64.wrapping_sub(shift).wrapping_sub(len * width) as i64;
        let inside = same_until.wrapping_sub(start + len) as i64;
        let fits = if B::VECTOR {
            Fields::MOST as i64 - len as i64
        } else {
            room | inside
        };
        if fits < 0 || !found.sound {
            let layout = Layout {
                slots: slots as u32,
                live: found.live as u32,
                width: short as u32,
                extended: longer as u32,
            };
            return if found.sound {
                Self::one_by_one(block, layout, start as u32, remainder)
            } else {
                far_contains::<N, REMOVABLE>(block, chain, remainder)
            };
        }
        if B::VECTOR {
            let fields = found.chain::<N, REMOVABLE>(short, longer, len);
            return fields.compare(bits, block, remainder).equal != 0;
        }
        // All slots of the chain at once: a field that is 0 after the xor borrows through its top
        // bit. The lowest marked field is always right, so there is a mark if and only if there is
        // a match.
        let ones = ONES[width as usize % 64];
        let fields = word(block, byte as usize).wrapping_shr(shift as u32);
        let x = fields ^ remainder.wrapping_shr(64 - width as u32).wrapping_mul(ones);
        let zeros = x.wrapping_sub(ones) & !x & ones.wrapping_shl(width as u32 + 63);
        // Shifts the chain's fields to the top, and what lies above them out.
        let of_chain = zeros.wrapping_shl((len * width).wrapping_neg() as u32);
        of_chain != 0
    }
}

impl<const N: usize, const REMOVABLE: bool> Default<N, REMOVABLE> {
    /// Compares the slots of a chain one by one: for long chains, and those among which the longer
    /// slots end.
    #[cold]
    #[inline(never)]
    fn one_by_one(block: &[u8; N], layout: Layout, start: u32, remainder: u64) -> bool {
        for slot in start..layout.live {
            let at = Self::HEADER + u64::from(layout.offset_of(slot));
            let width = layout.width_of(slot);
            if field(block, at) & low_mask(width) == prefix(remainder, width) {
                return true;
            }
            if field(block, Self::HEADER + u64::from(slot)) & 1 == 1 {
                return false;
            }
        }
        false
    }
}

/// How an insertion shortens the fingerprints of a block, by the number of slots: for each word a
/// mask of the bits that stay, and how many bits before it are dropped.
///
/// The dropped bits are the last ones of some fingerprints, as many as the new slot needs, 26 at
/// most. Which fingerprints these are depends on the new slot's place only by whether it is itself
/// among the longer ones: two rows for each number.
struct Shrinking<const WORDS: usize, const ROWS: usize> {
    masks: [[u64; WORDS]; ROWS],
    gone: [[u8; WORDS]; ROWS],
}

impl<const WORDS: usize, const ROWS: usize> Shrinking<WORDS, ROWS> {
    const fn new(header: u32) -> Self {
        let mut masks = [[u64::MAX; WORDS]; ROWS];
        let mut gone = [[0; WORDS]; ROWS];
        let mut row = 0;
        while row < ROWS {
            let (slots, among_longer) = (row as u32 / 2, row as u32 % 2);
            let array = 64 * WORDS as u32 - header;
            let (old_short, old_longer) = widths(array, slots);
            let (short, longer) = widths(array, slots + 1);
            let mut at = header + slots;
            let mut slot = 0;
            while slot < slots {
                let old = old_short + (slot < old_longer) as u32;
                let new = short + (slot + among_longer < longer) as u32;
                let mut bit = at;
                while bit < at + old - new {
                    masks[row][bit as usize / 64] &= !(1 << (bit % 64));
                    bit += 1;
                }
                at += old;
                slot += 1;
            }
            let mut word = 1;
            while word < WORDS {
                let here = masks[row][word - 1].count_zeros() as u8;
                gone[row][word] = gone[row][word - 1] + here;
                word += 1;
            }
            row += 1;
        }
        Shrinking { masks, gone }
    }

    /// For each word the bits that stay, and how many before it are dropped.
    #[inline(always)]
    fn row(&'static self, row: usize) -> Option<(&'static [u64], &'static [u8])> {
        let (masks, gone) = (self.masks.get(row)?, self.gone.get(row)?);
        Some((masks, gone))
    }
}

/// Blocks with 3/2 as many slots as bytes, or more, are rewritten by the plain code: less than
/// one in a million, unless the filter is overfull.
static SHRINKING_32: [Shrinking<4, 96>; 2] = [Shrinking::new(32), Shrinking::new(34)];
static SHRINKING_64: [Shrinking<8, 192>; 2] = [Shrinking::new(64), Shrinking::new(66)];
static SHRINKING_128: [Shrinking<16, 384>; 2] = [Shrinking::new(128), Shrinking::new(130)];

impl<const N: usize, const REMOVABLE: bool> Default<N, REMOVABLE> {
    /// The masks for an insertion, and how many bits are dropped before each: N / 8 of both.
    #[inline(always)]
    fn shrinking(slots: u64, among_longer: bool) -> Option<(&'static [u64], &'static [u8])> {
        let row = 2 * slots as usize + usize::from(among_longer);
        match N {
            32 => SHRINKING_32[usize::from(REMOVABLE)].row(row),
            64 => SHRINKING_64[usize::from(REMOVABLE)].row(row),
            _ => SHRINKING_128[usize::from(REMOVABLE)].row(row),
        }
    }

    /// The same block as [`Shape::inserted`], written in place; `None` if it is full, and then it
    /// is unchanged.
    #[inline(always)]
    pub(super) fn insert<B: Bits>(
        bits: B,
        block: &mut [u8; N],
        chain: u32,
        remainder: u64,
    ) -> Option<()> {
        let found = Self::find(bits, block, chain);
        let slots = found.slots;
        let flags = if REMOVABLE { block[N / 8] & 3 } else { 0 };
        if !found.sound || flags != 0 {
            return plain_insert::<N, REMOVABLE>(block, chain, remainder);
        }
        let mut at = found.start;
        if found.present != 0 {
            let marks = field(block, Self::HEADER + at);
            if marks == 0 {
                return plain_insert::<N, REMOVABLE>(block, chain, remainder);
            }
            let len = u64::from(marks.trailing_zeros()) + 1;
            at = Self::place_in_chain(bits, block, &found, len, remainder);
        }
        let [short, longer] = Self::WIDTHS[(slots + 1) as u8 as usize].map(u64::from);
        let extra = at < longer;
        let Some((masks, gone)) = Self::shrinking(slots, extra) else {
            return plain_insert::<N, REMOVABLE>(block, chain, remainder);
        };
        let width = short + u64::from(extra);
        let gap = Gap {
            masks,
            gone,
            index: u64::from(chain),
            mark: Self::HEADER + found.start,
            end: 1 - found.present,
            place: Self::HEADER + slots + at * short + at.min(longer),
            width,
            value: prefix(remainder, width as u32),
        };
        gap.open(bits, block);
        Some(())
    }

    /// The slot for a remainder among the `len` of its chain, at least one.
    #[inline(always)]
    fn place_in_chain<B: Bits>(
        bits: B,
        block: &[u8; N],
        found: &Found,
        len: u64,
        remainder: u64,
    ) -> u64 {
        let [short, longer] = Self::WIDTHS[found.slots as u8 as usize].map(u64::from);
        if B::VECTOR && len <= Fields::MOST {
            let fields = found.chain::<N, REMOVABLE>(short, longer, len);
            let below = fields.compare(bits, block, remainder).below;
            return found.start + u64::from(below.trailing_ones());
        }
        let (mut at, end, wanted) = (found.start, found.start + len, !remainder);
        loop {
            let place = Self::HEADER + found.slots + at * short + at.min(longer);
            let above = 64 - short - u64::from(at < longer);
            // The complements of both, at the top of a word: a fingerprint is below if its
            // complement is above, with zeros for the bits that it lacks.
            if !field(block, place) << (above % 64) <= wanted {
                return at;
            }
            at += 1;
            if at == end {
                return at;
            }
        }
    }
}

#[cold]
#[inline(never)]
fn plain_insert<const N: usize, const REMOVABLE: bool>(
    block: &mut [u8; N],
    chain: u32,
    remainder: u64,
) -> Option<()> {
    *block = Default::<N, REMOVABLE>::SHAPE.inserted(block, chain, remainder)?;
    Some(())
}

/// The words that hold the first end marks: two, or three in a large block.
///
/// A chain with `rank` chains before it starts after end mark number `rank`, counted from 1. So
/// that rank 0 is no special case, a mark is set before slot 0 if there is a bit for it; if not,
/// the leading zeros of a word without ones serve.
struct Marks<const N: usize> {
    words: [u64; 3],
    /// Ones in the first word, and in the first two.
    ones: [u64; 2],
    /// Bits of the first word below the marks.
    shift: u64,
}

impl<const N: usize> Marks<N> {
    #[inline(always)]
    fn read<const REMOVABLE: bool>(block: &[u8; N]) -> Marks<N> {
        let header = Default::<N, REMOVABLE>::HEADER;
        let (first, shift) = (8 * (header as usize / 64), header % 64);
        let low = word(block, first) & u64::MAX << shift;
        let low = if shift > 0 {
            low | 1 << (shift - 1)
        } else {
            low
        };
        let middle = word(block, first + 8);
        let high = if N == 128 { word(block, first + 16) } else { 0 };
        let ones = u64::from(low.count_ones());
        Marks {
            words: [low, middle, high],
            ones: [ones, ones + u64::from(middle.count_ones())],
            shift,
        }
    }

    /// The slot where the chain of this rank starts, and whether it lies within these words.
    #[inline(always)]
    fn start<B: Bits>(&self, bits: B, rank: u64) -> (u64, bool) {
        let n = rank + u64::from(self.shift > 0);
        let mut sound = true;
        let (one, words) = if N == 128 {
            let (mut word, mut rest, mut words) = (self.words[0], n, 1);
            if n > self.ones[0] {
                (word, rest, words) = (self.words[1], n - self.ones[0], 2);
            }
            if n > self.ones[1] {
                (word, rest, words) = (self.words[2], n - self.ones[1], 3);
            }
            let number = match rest {
                1..=64 => 1 << (rest - 1),
                _ => 0,
            };
            (bits.one(word, number), words)
        } else {
            // What the first word leaves of the number is 0 if that word holds the mark. A first
            // word of 64 ones is the exception, as 64 is no valid shift.
            sound = self.ones[0] < 64;
            let number = number(if self.shift > 0 { n.min(64) } else { n });
            let low = bits.one(self.words[0], number);
            let high = bits.one(self.words[1], number.wrapping_shr(self.ones[0] as u32));
            (low | high, 1 + u64::from(n > self.ones[0]))
        };
        let zeros = u64::from(one.leading_zeros());
        let end = 64 * words - zeros;
        (end.wrapping_sub(self.shift), sound && one != 0)
    }
}

/// 2^(n − 1), or 0 where n is 0 or 64, its greatest value: then all chains of a block are in use,
/// which is too rare to need speed.
#[inline(always)]
fn number(n: u64) -> u64 {
    1u64.wrapping_shl(n as u32) >> 1
}

/// All ones if `a < b`, else 0, for numbers below 2⁶³. Written so that the compiler makes no
/// branch of it: the outcome is as good as random, and a misprediction costs as much as a lookup.
#[inline(always)]
fn is_below(a: u64, b: u64) -> u64 {
    (a.wrapping_sub(b) as i64 >> 63) as u64
}

/// `a` if the mask is all ones, `b` if it is 0.
#[inline(always)]
fn choose(mask: u64, a: u64, b: u64) -> u64 {
    b ^ ((a ^ b) & mask)
}

/// Eight bytes of a block.
#[inline(always)]
fn word<const N: usize>(block: &[u8; N], byte: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&block[byte..byte + 8]);
    u64::from_le_bytes(word)
}

/// The bits from a position on, at least 57 of them; zeros after the block's end.
#[inline(always)]
fn field<const N: usize>(block: &[u8; N], bit: u64) -> u64 {
    let byte = (bit as usize / 8).min(N - 8);
    word(block, byte).wrapping_shr((bit - 8 * byte as u64) as u32)
}

/// The position of the highest set bit; 0 if there is none.
#[inline(always)]
fn highest<const N: usize>(block: &[u8; N]) -> u64 {
    let mut top = 0;
    for byte in (0..N).step_by(8) {
        let word = word(block, byte);
        if word != 0 {
            top = 8 * byte as u64 + u64::from(word.ilog2());
        }
    }
    top
}

/// For blocks with more slots than are seen here.
#[cold]
#[inline(never)]
fn far_contains<const N: usize, const REMOVABLE: bool>(
    block: &[u8; N],
    chain: u32,
    remainder: u64,
) -> bool {
    Default::<N, REMOVABLE>::SHAPE.contains(block, chain, remainder)
}

const _: () = assert!(CAP < 32);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::simd::{AsVector, Op, Portable, dispatch};

    /// What an operation comes to on each way through this file; all must agree.
    fn every_way<O: Op>(op: impl Fn() -> O) -> [O::Out; 3] {
        [op().run(Portable), op().run(AsVector), dispatch(op())]
    }

    struct Contains<'a, const N: usize, const REMOVABLE: bool>(&'a [u8; N], u32, u64);
    impl<const N: usize, const REMOVABLE: bool> Op for Contains<'_, N, REMOVABLE> {
        const WIDE: bool = true;
        type Out = bool;
        #[inline(always)]
        fn run<B: Bits>(self, bits: B) -> bool {
            Default::<N, REMOVABLE>::contains(bits, self.0, self.1, self.2)
        }
    }

    /// Blocks as they come about, at every load up to the last bit, in even and in lopsided
    /// chains.
    fn blocks<const N: usize, const REMOVABLE: bool>(mut each: impl FnMut(&[u8; N], u64)) {
        let shape = Default::<N, REMOVABLE>::SHAPE;
        for seed in 0..40u64 {
            let mut block = [0; N];
            let mut members = Vec::new();
            let chain_bits = [5, 6, 7, 1, 0][seed as usize % 5];
            for step in 0.. {
                let x = mix64(seed << 32 | step);
                let spread = (x >> 8 & ((1 << chain_bits) - 1)) as u32;
                // Every chain in turn now and then: words of end marks that are all ones.
                let chain = match seed % 8 {
                    0 => step as u32 % N as u32,
                    _ => (spread + 11 * (seed % 7) as u32) % N as u32,
                };
                // Fingerprints that meet, and such as are taken for end marks where one looks too
                // far.
                let remainder = match seed / 8 % 5 {
                    0 => mix64(x),
                    // A first word of ones, of which only some are end marks.
                    4 if chain < 3 => u64::MAX,
                    4 => mix64(x),
                    1 => mix64(x) & 7 << 61,
                    2 => u64::MAX << (x % 64),
                    _ => u64::MAX,
                };
                match shape.inserted(&block, chain, remainder) {
                    Some(next) => block = next,
                    None => break,
                }
                members.push((chain, remainder));
                if REMOVABLE && x % 5 < 2 {
                    let (chain, remainder) = members.swap_remove(x as usize / 16 % members.len());
                    block = shape.removed(&block, chain, remainder).expect("a member");
                }
                each(&block, x);
            }
        }
    }

    fn lookups_agree<const N: usize, const REMOVABLE: bool>() {
        let shape = Default::<N, REMOVABLE>::SHAPE;
        let mut yes = 0;
        blocks::<N, REMOVABLE>(|block, x| {
            for i in 0..20 {
                let y = mix64(x ^ i);
                let (chain, remainder) =
                    (y as u32 % N as u32, y >> 39 & [u64::MAX, 7][i as usize % 2]);
                let plain = shape.count(block, chain, remainder) > 0;
                assert_eq!(shape.contains(block, chain, remainder), plain);
                let found = every_way(|| Contains::<N, REMOVABLE>(block, chain, remainder));
                assert_eq!(found, [plain; 3], "{block:?} {chain} {remainder}");
                yes += u32::from(plain);
            }
        });
        assert!(yes > 1000);
    }

    struct Insert<const N: usize, const REMOVABLE: bool> {
        block: [u8; N],
        chain: u32,
        remainder: u64,
    }
    impl<const N: usize, const REMOVABLE: bool> Op for Insert<N, REMOVABLE> {
        const WIDE: bool = true;
        type Out = (Option<()>, [u8; N]);
        #[inline(always)]
        fn run<B: Bits>(mut self, bits: B) -> Self::Out {
            let block = &mut self.block;
            let went_in = Default::<N, REMOVABLE>::insert(bits, block, self.chain, self.remainder);
            (went_in, self.block)
        }
    }

    /// What the plain code makes of it: a block that is full stays as it is.
    fn plainly<const N: usize, const REMOVABLE: bool>(
        insert: &Insert<N, REMOVABLE>,
    ) -> (Option<()>, [u8; N]) {
        let shape = Default::<N, REMOVABLE>::SHAPE;
        match shape.inserted(&insert.block, insert.chain, insert.remainder) {
            Some(block) => (Some(()), block),
            None => (None, insert.block),
        }
    }

    fn insertions_agree<const N: usize, const REMOVABLE: bool>() {
        let mut refused = 0;
        blocks::<N, REMOVABLE>(|&block, x| {
            let (chain, remainder) = (x as u32 % N as u32, mix64(!x));
            let insert = || Insert::<N, REMOVABLE> {
                block,
                chain,
                remainder,
            };
            let plain = plainly(&insert());
            assert_eq!(every_way(insert), [plain; 3], "{block:?} {chain}");
            refused += u32::from(plain.0.is_none());
        });
        assert!(refused > 10, "{refused} blocks were full");
    }

    /// Bits at random, denser and sparser: where they are a block, all ways agree on them; where
    /// they are none, which no file gets past, no way panics.
    fn random_images_agree<const N: usize, const REMOVABLE: bool>() {
        let shape = Default::<N, REMOVABLE>::SHAPE;
        let (mut blocks, mut others, mut yes) = (0, 0, 0);
        for i in 0..8000u64 {
            let mut block = [0; N];
            for (j, word) in block.as_chunks_mut::<8>().0.iter_mut().enumerate() {
                let draw = |k: u64| mix64(i << 16 | (j as u64) << 8 | k);
                // The index and the marks are thinned out or filled up, each by itself.
                let bits = match mix64(i << 3 | (8 * j as u64 / N as u64).min(7)) % 5 {
                    0 => draw(0) & draw(1) & draw(2),
                    1 => draw(0) & draw(1),
                    2 => draw(0) | draw(1),
                    _ => draw(0),
                };
                *word = bits.to_le_bytes();
            }
            if i % 8 == 7 {
                // Zeros from somewhere on: marks that end, and highest ones of their own.
                let end = mix64(!i) as usize % N;
                block[end..].fill(0);
            }
            if REMOVABLE && i % 4 == 1 {
                block[N / 8] &= !3 | i as u8 & 1;
            }
            let sound = shape.layout(&block).is_some();
            (blocks, others) = (blocks + u32::from(sound), others + u32::from(!sound));
            for chain in (0..N as u32).step_by(N / 8) {
                let remainder = mix64(i ^ u64::from(chain)) << (i % 2 * 60);
                let lookup = || Contains::<N, REMOVABLE>(&block, chain, remainder);
                let insert = || Insert::<N, REMOVABLE> {
                    block,
                    chain,
                    remainder,
                };
                let found = every_way(lookup);
                let put = every_way(insert);
                if sound {
                    let plain = shape.count(&block, chain, remainder) > 0;
                    assert_eq!(found, [plain; 3], "{block:?} {chain} {remainder}");
                    yes += u32::from(plain);
                    let plain = plainly(&insert());
                    assert_eq!(put, [plain; 3], "{block:?} {chain} {remainder}");
                }
            }
        }
        assert!(blocks > 500 && others > 50, "{blocks} and {others}");
        assert!(yes > 500, "{yes}");
    }

    #[test]
    fn bits_at_random_are_read_and_rewritten_alike() {
        random_images_agree::<32, false>();
        random_images_agree::<32, true>();
        random_images_agree::<64, false>();
        random_images_agree::<64, true>();
        random_images_agree::<128, false>();
        random_images_agree::<128, true>();
    }

    #[test]
    fn insertions_write_what_the_plain_code_does() {
        insertions_agree::<32, false>();
        insertions_agree::<32, true>();
        insertions_agree::<64, false>();
        insertions_agree::<64, true>();
        insertions_agree::<128, false>();
        insertions_agree::<128, true>();
    }

    #[test]
    fn lookups_answer_as_the_plain_code_does() {
        lookups_agree::<32, false>();
        lookups_agree::<32, true>();
        lookups_agree::<64, false>();
        lookups_agree::<64, true>();
        lookups_agree::<128, false>();
        lookups_agree::<128, true>();
    }
}
