//! What the members of each family share: the idea, and where they differ.
//!
//! Each type has an essay of its own, with its layout, cost and parameters. The
//! [index](crate#kinds) lists all kinds.
//!
//! # Bloom
//!
//! The Bloom family: arrays of bits in which a key sets a few, and is present when all of them
//! are set.
//!
//! A key that was inserted finds its bits set whatever else was inserted, so "no" is certain. A
//! key that was not finds them all set by others with a probability that the fill decides.
//! Members differ in *where* a key's bits may lie:
//!
//! | filter | a key's bits lie | lines read | bits/key at 1 % (formula) |
//! |---|---|---|---|
//! | [`Bloom`] | anywhere | up to k | 9.59 |
//! | [`Counting`] | anywhere, 4-bit counters in their place: keys can be removed | up to k | 38.37 |
//! | [`VariableIncrement`] | anywhere, 6-bit counters to which each key adds a step of its own | up to k | 24.73 |
//! | [`TwoChoice`] | in one of two groups anywhere | up to 2k | 9.64 |
//! | [`BloomG`] | in two words (or g) of 64 bits | 2 | 9.98 |
//! | [`CountingMinimal`] | anywhere, 8-bit counters that tell how often a key came | up to k | 76.74 |
//! | [`SpectralRecurring`] | the same, with a second array for doubtful keys | up to k | 115.1 |
//! | [`Blocked`] | anywhere in a 512-bit block | 1 | 9.92 |
//! | [`Balanced`] | anywhere in a 512-bit block that has room, else the whole hash in a list | 2 | 9.84, list 0.4, counts 0.1 |
//! | [`SplitBlock512`] | one in each of 8 lanes of a 512-bit block | 1 | 10.10 |
//! | [`SplitBlock256`] | one in each of 8 lanes of a 256-bit block, as in Parquet | 1 | 10.53 |
//! | [`Compressed`] | anywhere, in a file that is coded | up to 2 | 18.98, in its file 8.90 |
//!
//! Fewer lines cost space: the keys do not spread evenly over blocks, and the fuller blocks err
//! more often.
//!
//! Beside the kinds there are types without a file format of their own: [`CountingPair`] is a
//! [`Counting`] with the Bloom filter of its keys beside it; [`AtomicBloom`] and
//! [`AtomicSplitBlock`] are filled by many threads at once; [`Attenuated`] is a network of sets,
//! by distance; [`Overlap`] is what two Bloom filters tell of each other, with their union and
//! intersection.
//!
//! # TinySet
//!
//! TinySet: a chained hash table in one cache line.
//!
//! A hash chooses a block, a chain in the block and a remainder; the block keeps the remainders
//! of its chains side by side, and as many of their bits as there is room for. [`TinySet`] only
//! takes keys in, [`TinySetRemovable`] pays two bits a block to let them go again.
//!
//! # Chained
//!
//! Tables of fingerprints in buckets or chains.
//!
//! [`RankIndexed`] keeps its chains in banks of several kilobytes, with fingerprints of one
//! width. [`DLeft`] keeps a remainder in the emptiest of four buckets, so that keys can leave.
//! [`Prefix`] keeps the least fingerprints of each half line, and the others in a spare of chains.
//!
//! # Cuckoo
//!
//! The cuckoo family: tables of short fingerprints in which every key has two buckets, and a
//! fingerprint can be moved from one to the other without knowing its key.
//!
//! [`Cuckoo`] has buckets of four slots and fingerprints of any width; its parameter `semi_sort`
//! saves a bit a slot. [`Morton`] packs small buckets, most of them empty, into cache lines, and
//! marks where a key is not in its first one. [`AdaptiveCuckoo`] has the exact hashes beside it,
//! and unlearns the false positives that are reported to it; it is no kind.
//!
//! # Quotient
//!
//! Sorted fingerprints, of which the table keeps only the low part: the high part, the *quotient*,
//! is the slot where the fingerprint wants to stand.
//!
//! Collisions are solved by moving neighbours on by one slot, as in linear probing; a few bits a
//! slot tell where each run of equal quotients begins and ends. So the fingerprints can be listed
//! in order, whole: tables are merged in one sequential pass, doubled and halved without keys.
//!
//! [`Quotient`] finds runs by counting ones, with two bits a slot, and [`QuotientCounting`] writes
//! counts among the remainders of a run. [`Aleph`] and [`SlidingTable`] stand on the same table.
//! [`QuotientStandard`] is the filter as it was published, with three bits a slot.
//! [`QuotientVector`] cuts the table into cache lines, two for each key, so that nothing moves
//! beyond a line and vector instructions do the moving. [`Multiset`] is the optimal replacement of
//! Pagh, Pagh and Rao: numbers in order, with counts in digits of their own, in a table of any
//! number of slots; [`FrozenMultiset`] is the same for reading alone. [`Cleary`] is their practical
//! variant: two bits a cell beside the remainder, for keys that stay.
//!
//! # Exact
//!
//! Tables that keep a key, or a long signature of it, whole: where the survey of filters starts.
//!
//! [`Dictionary`] keeps the keys and is never wrong: what any filter is to be compared with. It is
//! no kind, as a kind knows hashes only. [`HashCompaction`] keeps a signature of each key.
//!
//! # Growing
//!
//! Filters that grow with their keys.
//!
//! [`Aleph`] is one table that doubles, with fingerprints that get longer. [`Scalable`] adds a
//! larger and stricter Bloom filter whenever the last is full, [`Compacting`] makes a static table
//! of what has gathered, and [`Folded`] fills pairs of halving arrays.
//!
//! # Window
//!
//! Filters that forget on purpose.
//!
//! [`SlidingTable`] keeps the last n insertions, or those of the last minutes, as stamped
//! fingerprints in one table; [`Sliding`] keeps them as generations of a Bloom filter;
//! [`AgePartitioned`] keeps the last n insertions and lets go of older ones sooner.
//!
//! # Coded
//!
//! Sets of numbers, sorted and coded: each key becomes a number, and the gaps between neighbours
//! are written in few bits.
//!
//! A table spends bits on where a key is; a sorted list does not, so its code comes closer to the
//! lower bound than most tables do. The price is that a lookup decodes its way to the key.
//!
//! | type | for |
//! |---|---|
//! | [`Golomb`] | small filters of any rate, which merge and can be listed |
//! | [`Bip158`] | the filters of Bitcoin blocks, to the byte |
//!
//! # Peel
//!
//! The peeling family: tables built once from all keys, in which the slots of a key combine to
//! its fingerprint.
//!
//! A key has three (or four) slots, and the table is solved so that the xor of what they hold is
//! the key's fingerprint. An absent key's slots combine to a fingerprint of no meaning, which
//! agrees with its own with probability 2⁻ᶠ. Nothing but fingerprints is stored, and a lookup has
//! no branch.
//!
//! The table is solved by *peeling*: a slot that only one key uses can be set last, whatever the
//! others hold, so that key is put aside; this may leave other slots with one key; and so on
//! until no key is left. The order backwards is the order in which to fill the slots.
//!
//! [`BinaryFuse`] is such a table, [`Xor`] its simpler ancestor, and [`XorPlus`] that one without
//! its empty slots. [`Bloomier`] keeps a value beside the fingerprint. [`Iblt`] peels to list:
//! its cells hold keys, and the table of the difference of two sets gives both sides of it.
//!
//! # Perfect
//!
//! Perfect hashing: every key of a fixed set has a number of its own, and something of the key is
//! kept under it.
//!
//! A minimal perfect hash function numbers n keys from 0 to n − 1 in two to three bits a key,
//! without storing them. For any other key it returns some number all the same, so a fingerprint
//! is kept under each. What no other static filter has is the number itself: it stays, and
//! whatever is kept under it can be changed in place.
//!
//! [`Perfect`] is the filter and, with values, the map.
//!
//! # Ribbon
//!
//! The ribbon family: a set as the solution of a band of linear equations.
//!
//! ## The idea
//!
//! A table has as many slots as there are keys, or a few more, and each slot a number of r bits.
//! A key names a *start* and, from there on, some of the next w slots, chosen by the w bits of
//! its *row*. The table is solved so that the exclusive or of those slots is the key's *result*:
//! r bits, also given by its hash. An absent key names slots whose exclusive or has no meaning,
//! and agrees with its result with probability 2⁻ʳ.
//!
//! ```text
//!                     start
//!   slots    . . . . . 1 0 1 1 0 1 0 … 1 . . . . . . .
//!            . . . . . . . 1 1 0 1 0 1 … 0 . . . . . .
//!            . . . . . . . . . . 1 1 0 0 1 … 1 . . . .
//!
//!   one equation: the slots under the ones of a row (w = 64 or 128, the first bit always 1)
//!   combine to the result. Sorted by their starts, the rows are a ribbon
//! ```
//!
//! Any r serves, and even part of one: blocks of slots at the front of the table have one bit
//! less, as many as the rate allows. A peeled table ([`BinaryFuse`]) needs no
//! more than a xor of three slots to answer, but 8 to 13 % spare slots; a ribbon needs 5 % (w =
//! 128) or, bumped, less than 1 %.
//!
//! ## Build
//!
//! *Banding.* Keys are taken in the order of their starts, so that the work walks through memory
//! once. A slot holds at most one row, whose first bit is that slot's. A new row that finds its
//! first slot taken is added to the row there, which clears its first bit; it moves on to its
//! next one; and so on until its slot is free. If no bit is left, the row says what others said
//! already: either its result is 0 by then, and it agrees, or the attempt has failed.
//!
//! *Back substitution.* From the last slot to the first, each slot's number follows from its row
//! and the w − 1 slots after it.
//!
//! Where the rows lead determines which slots have one, whatever the order of the keys: the same
//! set gives the same bytes. Large sets are cut into *shards*, tables of one geometry that are
//! solved apart, by several threads if there are. Beside the table and the hashes given, which
//! are reordered in place, that takes 20 bytes (w = 128: 28) for each key of the shards at work:
//! its hash, a row and a result.
//!
//! ## Layout
//!
//! ```text
//!   a block: 64 slots    column 0     column 1           column r − 1
//!                      ┌────────────┬────────────┬─ … ─┬────────────┐
//!                      │ 64 bits    │ 64 bits    │     │ 64 bits    │
//!                      └────────────┴────────────┴─ … ─┴────────────┘
//!                      bit i of word c is bit c of the block's slot i
//! ```
//!
//! A row touches w/64 + 1 blocks. Shifted into place, its words are masks for every column, and a
//! bit of the result is the parity of a column's bits under them, found for eight columns at once
//! (`simd/ribbon.rs`), in one to three adjacent lines.
//!
//! | kind | what it does when equations disagree | slots per key |
//! |---|---|---|
//! | [`Ribbon`] | tries another salt | 1.047 at 10⁶ keys (w = 128) |
//! | [`RibbonHomogeneous`] | all results are 0, so they never do | 1.047 (w = 128), 1.094 (w = 64) at 8 bits |
//! | [`RibbonBumped`] | passes the key to a smaller ribbon | 1.003 |
//!
//! [`Retrieval`] solves the bumped ribbon for values in place of results: a map without a set.
//!
//! ## Bibliography
//!
//! - Dillinger, Walzer, *Ribbon filter: practically smaller than Bloom and Xor*, 2021: ribbons,
//!   banding as one goes, and columns that are interleaved.
//! - Dietzfelbinger, Walzer, *Efficient Gauss elimination for near-quadratic matrices with one
//!   short random block per row*, 2019: why rows sorted by start are solved in almost linear
//!   time.
//! - Dillinger, Hübschle-Schneider, Sanders, Walzer, *Fast succinct retrieval and approximate
//!   membership using ribbon*, 2022: bumping, and homogeneous ribbons in theory.

#[cfg(doc)]
use crate::*;
