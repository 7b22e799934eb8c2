//! The bumped ribbon filter (BuRR): the smallest filter here, 0.4 % above the lower bound at 2⁻⁸.
//!
//! # The idea
//!
//! A [`Ribbon`](crate::Ribbon) pays for spare slots so that no stretch of it has more keys than slots. This one has
//! *fewer* slots than keys, so that hardly one stays empty, and passes the keys that find no place on: they are *bumped*
//! to a second ribbon, of a thirtieth the size; those that this one bumps to a third; and so on, until a handful is
//! left, whose hashes are kept in a list.
//!
//! ```text
//!   layer 0     ├──────┼──────┼──────┼──────┼──────┼── … ──┤     buckets of 128 starts
//!   bumped      ███       ─     █       ─     ██████              keys that start in the first 14, 40 or 128 of a bucket
//!   thresholds  40        0     14      0     128                 two bits a bucket: 0, 14, 40, 128
//!                 ╲           ╱             ╱
//!   layer 1     ├──────┼─ … ─┤     the same with the bumped keys
//!                 ╲
//!   layer 2     ├──┤               with room for all
//!   list         · ·               64-bit hashes, sorted
//! ```
//!
//! A lookup asks its bucket for the threshold. If its start lies below, it goes on to the next layer, with its hash
//! mixed anew; if not, this layer answers. 96 of 100 lookups stay in layer 0, and its thresholds fit in the caches near
//! the processor: 2 bits for 128 slots. All columns are compared without a branch, so that the lookups of many keys, even by
//! single calls, wait for their memory at the same time.
//!
//! # Build
//!
//! Buckets are filled from the left to the right, and each from its last start to its first. When an equation contradicts
//! those before, the bucket is closed there: the threshold becomes the least that bumps the key, and the equations of
//! others that it bumps are taken out again, which is easy, as they came last. So the building cannot fail; a layer that
//! turns out badly only bumps more.
//!
//! # Cost
//!
//! At r bits a slot: 0.965 slots a key in layer 0, 0.034 in the others, 2/128 bits for thresholds. At 2⁻⁸ and a million
//! keys, 8.03 bits a key, 0.4 % above the lower bound. At other rates a share of the blocks has one column less, which
//! costs up to 0.09 bits more. Few keys pay for whole blocks of 64 slots; up to 16 are a list.
//!
//! # When to choose it
//!
//! When a fixed set has to be small: on a wire, in memory that many filters share. [`BinaryFuse`](crate::BinaryFuse) is
//! faster to look up, and an eighth larger.
//!
//! # Bibliography
//!
//! - Dillinger, Hübschle-Schneider, Sanders, Walzer, *Fast succinct retrieval and approximate membership using ribbon*,
//!   2022: bumping, buckets and thresholds.
//! - Dillinger, Walzer, *Ribbon filter: practically smaller than Bloom and Xor*, 2021: the ribbon.

use crate::bits::fastrange;
use crate::buf::Buf;
use crate::config::{Config, Tally};
use crate::error::{BuildError, BuildErrorKind, DecodeError};
use crate::filter::{Filter, Kind};
use crate::format::{Decoder, Encoder};
use crate::peel::dedup;
use crate::peel::shards::{mixed, multiple};
use crate::ribbon::solve::{Part, solve_shards};
use crate::ribbon::{
    BLOCK, Band, Failure, MOST_COLUMNS, MOST_SHARDS, Number, Place, Placed, Rate, Row, Shape,
    in_order,
};
use crate::{math, simd};

/// A static filter of any rate: 0.4 % above the lower bound at 2⁻⁸, 1 to 2 % at rates that are no power of two.
///
/// ```
/// use tamis::{Config, Keyed, RibbonBumped};
///
/// let config = Config::new(0).fpr(0.001);
/// let words: Keyed<RibbonBumped> = Keyed::build(&config, ["tamis", "sieve", "strainer"])?;
/// assert!(words.contains("sieve"));
/// # Ok::<(), tamis::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RibbonBumped {
    layers: Box<[Layer]>,
    /// The multiples of what the last layer bumped, as the next would see them, in ascending order.
    list: Buf<u64>,
    columns: u32,
    len: u64,
}

/// One ribbon, with a threshold for each bucket.
#[derive(Clone, Debug)]
struct Layer {
    shape: Shape,
    /// The shards' tables, one after the other.
    words: Buf<u64>,
    /// Four to a byte, the first in its lowest bits; a shard's follow those of the shard before.
    thresholds: Buf<u8>,
    /// Starts, buckets and words of a shard, which every lookup needs.
    each: [u64; 3],
}

pub(super) const WIDTH: u32 = u64::WIDTH;
/// Starts of a bucket: `math::bumped_ribbon_bucket(64)`.
pub(super) const BUCKET: u64 = 128;
/// What the two bits of a threshold stand for: starts of its bucket below this are bumped.
const THRESHOLDS: [u8; 4] = [0, 14, 40, BUCKET as u8];
/// Keys for each slot of a layer that bumps. A layer of few keys has room for all instead: there the blocks are few that
/// are saved, and the next layer has whole ones.
const LOAD: f64 = 1.036;
const FEW: u64 = 1500;
/// This many keys are not worth a layer.
const LISTED: u64 = 16;
/// A good hash never comes near it; whatever is left then is listed.
pub(super) const MOST_LAYERS: usize = 8;
/// Numbers that a file tells of a layer: shards, blocks, short blocks.
const ROW: usize = 3;
/// Slots of a shard, or up to twice as many.
const SHARD: u64 = 1 << 20;

/// The row and the result of a hash's multiple, whose low bits are too simple where those of the hash are.
#[inline(always)]
pub(super) fn equation(multiple: u64) -> (u64, u32) {
    u64::of(multiple ^ multiple >> 32)
}

/// The multiple that the next layer sees.
#[inline(always)]
pub(super) fn next(bumped: u64) -> u64 {
    multiple(mixed(bumped))
}

/// Slots of a layer for so many keys.
pub(super) fn slots_for(keys: u64) -> u64 {
    if keys > FEW {
        (keys as f64 / LOAD) as u64
    } else {
        math::ribbon_slots(keys, WIDTH, 0)
    }
}

/// The most keys that a filter whose first layer has so many slots can have, whatever the builder: more than [`LOAD`] would
/// leave too many without a place.
pub(super) fn most_keys(slots: u64) -> u64 {
    slots + slots / 16
}

/// The shape of a layer for so many keys.
fn shape_for(keys: u64, rate: Rate) -> Shape {
    let slots = slots_for(keys);
    let shards = (slots / SHARD).clamp(1, MOST_SHARDS);
    Shape::new(WIDTH, rate, shards, slots / shards)
}

/// Buckets of a shard.
#[inline(always)]
pub(super) fn buckets(shape: &Shape) -> u64 {
    shape.starts().div_ceil(BUCKET)
}

impl Layer {
    /// The shard and start of a hash's multiple: this filter's geometry.
    #[inline(always)]
    fn start(&self, multiple: u64) -> (u64, u64) {
        let (shard, rest) = fastrange(multiple, self.shape.shards);
        (shard, fastrange(rest, self.each[0]).0)
    }

    /// Its parts, which must fit together.
    fn new(shape: Shape, words: Buf<u64>, thresholds: Buf<u8>) -> Layer {
        Layer {
            shape,
            words,
            thresholds,
            each: [shape.starts(), buckets(&shape), shape.words()],
        }
    }

    /// Where a hash is looked up, given its multiple, or `None` where it is bumped.
    #[inline(always)]
    fn place(&self, multiple: u64) -> Option<Place<u64>> {
        let (shard, start) = self.start(multiple);
        let bucket = shard * self.each[1] + start / BUCKET;
        if start % BUCKET < self.threshold(bucket) {
            return None;
        }
        let (row, result) = equation(multiple);
        let first = (shard * self.each[2] + self.shape.offset(start / BLOCK)) as usize;
        Some(Place {
            first,
            start,
            row,
            result,
        })
    }

    #[inline(always)]
    fn threshold(&self, bucket: u64) -> u64 {
        threshold(&self.thresholds, bucket)
    }

    /// A layer of these hashes, and the multiples of those it bumps.
    fn build(
        config: &Config,
        tally: &Tally<'_>,
        hashes: &mut [u64],
        rate: Rate,
    ) -> Result<(Layer, Vec<u64>), Failure> {
        let shape = shape_for(hashes.len() as u64, rate);
        let fill = |part: Part<'_>| {
            let keys = part.keys();
            let filled = simd::dispatch(Fill(part))?;
            tally.add(keys - filled.bumped.len() as u64);
            Ok(filled)
        };
        let solved = solve_shards(config, hashes, shape.shards, |_| Ok(shape), fill)?;
        let all = buckets(&shape) * shape.shards;
        let mut thresholds = Buf::<u8>::zeroed(all.div_ceil(4))?;
        let packed = thresholds.make_mut();
        let (mut bucket, mut bumped) = (0, Vec::new());
        for part in solved.each {
            for code in part.codes {
                packed[bucket / 4] |= code << (bucket % 4 * 2);
                bucket += 1;
            }
            bumped.extend(part.bumped);
        }
        Ok((Layer::new(shape, solved.words, thresholds), bumped))
    }

    /// Reads the sections of a row of the table.
    fn decode(
        input: &mut Decoder<'_>,
        columns: u32,
        [shards, blocks, short]: [u64; ROW],
    ) -> Result<Layer, DecodeError> {
        let width = WIDTH;
        let shape = Shape {
            width,
            columns,
            shards,
            blocks,
            short,
        };
        if shards == 0 {
            return Err(DecodeError::invalid(
                "a layer's shards",
                shards,
                "at least 1",
            ));
        }
        shape.check()?;
        let all = buckets(&shape) * shards;
        let thresholds = input.section::<u8>("a layer's thresholds", all.div_ceil(4))?;
        // The bits of the last byte that belong to a bucket.
        let used = 2 * (all - (all.div_ceil(4) - 1) * 4);
        let last = u64::from(thresholds.last().copied().unwrap_or(0));
        if last >> used != 0 {
            let expected = "no bits after the last bucket's";
            return Err(DecodeError::invalid("a layer's thresholds", last, expected));
        }
        let words = input.section("a layer's words", shape.words() * shards)?;
        Ok(Layer::new(shape, words, thresholds))
    }

    /// The share of hashes that this layer answers for, and the share of those that it finds by mistake, in all hashes.
    fn shares(&self) -> (f64, f64) {
        let buckets = buckets(&self.shape);
        let (mut answered, mut found) = (0, 0.0);
        for bucket in 0..buckets * self.shape.shards {
            let first = bucket % buckets * BUCKET;
            let last = (first + BUCKET).min(self.shape.starts());
            let mut start = first + self.threshold(bucket);
            while start < last {
                let end = (start / BLOCK + 1) * BLOCK;
                let columns = self.shape.columns_at(start);
                answered += end - start;
                found += (end - start) as f64 * math::fingerprint_fpr(columns);
                start = end;
            }
        }
        let all = (self.shape.starts() * self.shape.shards) as f64;
        (answered as f64 / all, found / all)
    }
}

/// Places the equations of a bucket's keys, which are in the order of their starts, and returns the code of the bucket's
/// threshold and how many keys from the first on it bumps. `slots` is for its own use.
#[inline(always)]
pub(super) fn fill_bucket<K: Copy, N: Number>(
    band: &mut Band<u64, N>,
    slots: &mut Vec<Option<usize>>,
    keys: &[K],
    start: impl Fn(K) -> u64,
    equation: impl Fn(K) -> (u64, N),
) -> (u8, usize) {
    // Where the equations went, the last start's first; nowhere where one is implied by others.
    slots.clear();
    let mut closed = None;
    for &key in keys.iter().rev() {
        let (row, result) = equation(key);
        match band.insert(start(key), row, result) {
            Placed::Slot(slot) => slots.push(Some(slot)),
            Placed::Implied => slots.push(None),
            Placed::Conflict => {
                closed = Some(start(key) % BUCKET);
                break;
            }
        }
    }
    let Some(closed) = closed else { return (0, 0) };
    let bumps = |code: &usize| u64::from(THRESHOLDS[*code]) > closed;
    let code = (1..4).find(bumps).unwrap_or(3);
    let below = u64::from(THRESHOLDS[code]);
    let bumps = keys.partition_point(|&key| start(key) % BUCKET < below);
    for slot in slots.drain(..).skip(keys.len() - bumps).flatten() {
        band.rows[slot] = 0;
        band.results[slot] = N::ZERO;
    }
    (code as u8, bumps)
}

/// What a code of two bits stands for.
#[inline(always)]
pub(super) fn threshold(codes: &[u8], bucket: u64) -> u64 {
    let code = codes[(bucket / 4) as usize] >> (bucket % 4 * 2) & 3;
    u64::from(THRESHOLDS[usize::from(code)])
}

/// What building a shard's table gives besides.
struct Filled {
    /// The thresholds, by their codes.
    codes: Vec<u8>,
    bumped: Vec<u64>,
}

struct Fill<'a>(Part<'a>);

impl simd::Op for Fill<'_> {
    type Out = Result<Filled, Failure>;

    #[inline(always)]
    fn run<B: simd::Bits>(self, _: B) -> Result<Filled, Failure> {
        let Fill(part) = self;
        let shape = part.shape;
        let start = |multiple| shape.start(fastrange(multiple, shape.shards).1);
        let mut band = Band::<u64, u32>::new(shape.slots())?;
        let mut codes = vec![0; buckets(&shape) as usize];
        let mut bumped = Vec::new();
        let mut slots = Vec::new();
        in_order(part.runs, shape.starts(), multiple, start, |mut stretch| {
            while let Some(&first) = stretch.first() {
                let bucket = start(first) / BUCKET;
                let end = stretch
                    .iter()
                    .take_while(|&&hash| start(hash) / BUCKET == bucket);
                let (hashes, rest) = stretch.split_at(end.count());
                stretch = rest;
                let equation = |multiple| {
                    let (row, result) = equation(multiple);
                    (row, result & shape.kept())
                };
                let (code, bumps) = fill_bucket(&mut band, &mut slots, hashes, start, equation);
                bumped.extend_from_slice(&hashes[..bumps]);
                codes[bucket as usize] = code;
            }
            Ok(())
        })?;
        band.solve(&shape, part.words);
        Ok(Filled { codes, bumped })
    }
}

impl RibbonBumped {
    /// How many ribbons there are.
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// Whether a hash that the first layer bumps is contained, given its multiple.
    #[cold]
    #[inline(never)]
    fn bumped(&self, mut multiple: u64) -> bool {
        for layer in self.layers.get(1..).unwrap_or_default() {
            multiple = next(multiple);
            if let Some(place) = layer.place(multiple) {
                return layer.shape.agrees(&layer.words, place);
            }
        }
        if !self.layers.is_empty() {
            multiple = next(multiple);
        }
        self.list.binary_search(&multiple).is_ok()
    }

    /// The filter of these hashes, or why not: some are given more than once.
    fn of(config: &Config, hashes: &mut [u64], rate: Rate) -> Result<RibbonBumped, Failure> {
        let tally = config.tally(hashes.len() as u64);
        let mut layers = Vec::new();
        let mut left = Vec::new();
        let mut keys = hashes.len() as u64;
        if keys <= LISTED {
            left = hashes.to_vec();
        }
        while keys > LISTED && layers.len() < MOST_LAYERS {
            let hashes = if layers.is_empty() {
                &mut *hashes
            } else {
                &mut *left
            };
            let (layer, bumped) = Layer::build(config, &tally, hashes, rate)?;
            layers.push(layer);
            left = bumped;
            for hash in &mut left {
                *hash = mixed(*hash);
            }
            keys = left.len() as u64;
        }
        for hash in &mut left {
            *hash = multiple(*hash);
        }
        left.sort_unstable();
        if left.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Failure::Repeats);
        }
        tally.add(keys);
        Ok(RibbonBumped {
            layers: layers.into_boxed_slice(),
            list: Buf::copied(&left)?,
            columns: rate.columns,
            len: hashes.len() as u64,
        })
    }
}

/// One hash to look up. Two words, so that both are handed over in registers.
struct Lookup<'a>(&'a RibbonBumped, u64);

impl simd::Op for Lookup<'_> {
    type Out = bool;

    #[inline(always)]
    fn run<B: simd::Bits>(self, _: B) -> bool {
        let Lookup(ribbon, hash) = self;
        let multiple = multiple(hash);
        let Some(layer) = ribbon.layers.first() else {
            return ribbon.bumped(multiple);
        };
        match layer.place(multiple) {
            Some(place) => layer.shape.agrees(&layer.words, place),
            None => ribbon.bumped(multiple),
        }
    }
}

impl Filter for RibbonBumped {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        simd::dispatch(Lookup(self, hash))
    }

    /// The number of distinct keys.
    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        let of_layer =
            |layer: &Layer| layer.words.size_in_bytes() + layer.thresholds.size_in_bytes();
        let layers: usize = self.layers.iter().map(of_layer).sum();
        size_of_val(&*self.layers) + layers + self.list.size_in_bytes()
    }

    fn fpr(&self) -> f64 {
        let (mut reached, mut found) = (1.0, 0.0);
        for layer in &self.layers {
            let (answered, by_mistake) = layer.shares();
            found += reached * by_mistake;
            reached *= 1.0 - answered;
        }
        found + reached * math::hash_floor(self.list.len() as u64)
    }

    /// Of the first layer only: the others are small.
    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        if let Some(layer) = self.layers.first() {
            let (shard, start) = layer.start(multiple(hash));
            layer
                .shape
                .prefetch(&layer.words, layer.shape.first(shard, start));
        }
    }
}

impl Kind for RibbonBumped {
    const ID: u16 = 36;
    const NAME: &'static str = "ribbon_bumped";
    const ABOUT: &'static str =
        "the smallest: a fixed set at any rate, 1 to 2 % above the lower bound";
    const SOURCE: &'static str = "ribbon/bumped.rs";

    fn build(config: &Config, hashes: &mut [u64]) -> Result<RibbonBumped, BuildError> {
        let (_, fpr) = config.check::<RibbonBumped>(hashes)?;
        let rate = Rate::new(Self::NAME, fpr, 1.0)?;
        let mut distinct = hashes.len();
        for _ in 0..2 {
            let hashes = &mut hashes[..distinct];
            match Self::of(config, hashes, rate) {
                Ok(filter) => return Ok(filter),
                Err(Failure::Memory(error)) => return Err(error.into()),
                Err(_) => distinct = dedup(hashes),
            }
        }
        let (keys, attempts) = (hashes.len() as u64, 2);
        Err(BuildErrorKind::Attempts { keys, attempts }.into())
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("columns", u64::from(self.columns));
        out.param("layers", self.layers.len() as u64);
        out.param("listed", self.list.len() as u64);
        let row = |layer: &Layer| [layer.shape.shards, layer.shape.blocks, layer.shape.short];
        let table = self.layers.iter().flat_map(row).flat_map(u64::to_le_bytes);
        out.made(table.collect());
        for layer in &self.layers {
            out.section(&layer.thresholds);
            out.section(&layer.words);
        }
        out.section(&self.list);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<RibbonBumped, DecodeError> {
        let columns = input.param_in("columns", 1..=u64::from(MOST_COLUMNS))? as u32;
        let count = input.param_in("layers", 0..=MOST_LAYERS as u64)?;
        let listed = input.param_in("listed", 0..=input.len())?;
        let table = input.section::<u64>("the table of layers", count * ROW as u64)?;
        let mut layers = Vec::with_capacity(count as usize);
        for row in table.as_chunks::<ROW>().0 {
            layers.push(Layer::decode(input, columns, *row)?);
        }
        if input.is_empty() && count > 0 {
            return Err(DecodeError::invalid(
                "layers",
                count,
                "0 where there are no keys",
            ));
        }
        if layers.is_empty() && listed != input.len() {
            let expected = "all keys where there are no layers";
            return Err(DecodeError::invalid("listed", listed, expected));
        }
        let slots = |layer: &Layer| layer.shape.slots() * layer.shape.shards;
        let most = listed + most_keys(layers.first().map_or(0, slots));
        if input.len() > most {
            let expected = format!("at most {most}, for the first layer's slots and the list");
            return Err(DecodeError::invalid("keys", input.len(), expected));
        }
        let list: Buf<u64> = input.section("list", listed)?;
        if !list.is_sorted_by(|a, b| a < b) {
            return Err(DecodeError::invalid(
                "list",
                listed,
                "hashes in ascending order",
            ));
        }
        Ok(RibbonBumped {
            layers: layers.into_boxed_slice(),
            list,
            columns,
            len: input.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ribbon::tests::{assert_rate, keys};

    fn build(config: &str, hashes: &[u64]) -> RibbonBumped {
        Kind::build(&config.parse().unwrap(), &mut hashes.to_vec()).unwrap()
    }

    #[test]
    fn a_million_keys_take_8_04_bits_each() {
        assert_eq!(math::bumped_ribbon_bucket(WIDTH), Some(BUCKET as u32));
        let hashes = keys(1_000_000, 1);
        let filter = build("fpr=0.00390625", &hashes);
        let bits = filter.size_in_bytes() as f64 * 8.0 / 1e6;
        assert!((8.0..=8.04).contains(&bits), "{bits}");
        assert!(
            (filter.fpr() * 256.0 - 1.0).abs() < 1e-9,
            "{}",
            filter.fpr()
        );
        assert!(hashes.iter().all(|&hash| filter.contains(hash)));
        assert_rate(&filter, 1_000_000);
    }

    #[test]
    fn one_bit_a_key_takes_1_023() {
        let hashes = keys(1_000_000, 2);
        let bits = build("fpr=0.5", &hashes).size_in_bytes() as f64 * 8.0 / 1e6;
        assert!((1.0..=1.023).contains(&bits), "{bits}");
    }

    #[test]
    fn rates_between_powers_of_two_are_met_exactly() {
        for fpr in [0.9, 0.3, 0.01, 0.0001] {
            let filter = build(&format!("fpr={fpr}"), &keys(100_000, 3));
            // Which buckets bump is chance: the rate is a little off, on either side.
            assert!(
                (filter.fpr() / fpr - 1.0).abs() < 0.005,
                "{fpr}: {}",
                filter.fpr()
            );
            assert_rate(&filter, 500_000);
        }
    }

    #[test]
    fn every_size_builds() {
        for n in (0..60).chain((60..5000).step_by(97)) {
            for set in 0..5 {
                let hashes = keys(n, set);
                let filter = build("", &hashes);
                assert!(hashes.iter().all(|&hash| filter.contains(hash)), "{n} keys");
                assert!(n > LISTED || filter.list.len() as u64 == n);
                assert!(filter.list.len() as u64 <= LISTED);
            }
        }
    }

    #[test]
    fn a_layer_bumps_one_key_in_thirty() {
        let rate = Rate::new("", 1.0 / 256.0, 1.0).unwrap();
        let mut hashes = keys(300_000, 4);
        let config = Config::new(0);
        let tally = config.tally(300_000);
        let (layer, bumped) = Layer::build(&config, &tally, &mut hashes, rate).unwrap();
        let share = bumped.len() as f64 / 300_000.0;
        // 0.965 slots a key, hardly one of them empty.
        assert!((0.0347..0.039).contains(&share), "{share}");
        let stays = |hash: u64| layer.place(multiple(hash)).is_some();
        let stayed = hashes.iter().filter(|&&hash| stays(hash)).count();
        assert_eq!(stayed + bumped.len(), hashes.len());
        let (answered, _) = layer.shares();
        assert!(
            (answered - stayed as f64 / 300_000.0).abs() < 0.01,
            "{answered}"
        );
    }

    #[test]
    fn the_bytes_do_not_depend_on_threads_order_or_repeats() {
        let hashes = keys(2_500_000, 5);
        let two = build("", &hashes[..2000]);
        let reversed: Vec<u64> = hashes[..2000].iter().rev().copied().collect();
        let repeated = [&reversed[..], &reversed[..7]].concat();
        for other in [build("", &reversed), build("", &repeated)] {
            assert_eq!(other.len(), 2000);
            assert_eq!(*two.layers[0].words, *other.layers[0].words);
            assert_eq!(*two.layers[0].thresholds, *other.layers[0].thresholds);
        }
        let threads = |threads| {
            let config = Config::new(0).fpr(0.2).threads(threads);
            RibbonBumped::build(&config, &mut hashes.clone()).unwrap()
        };
        let (one, many) = (threads(1), threads(3));
        assert_eq!(one.layers[0].shape.shards, 2);
        for (a, b) in one.layers.iter().zip(&*many.layers) {
            assert!(*a.words == *b.words && *a.thresholds == *b.thresholds);
        }
        assert!(hashes.iter().all(|&hash| one.contains(hash)));
    }
}
