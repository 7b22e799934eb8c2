//! The bumped ribbon filter (BuRR): the smallest filter here, 0.4 % above the lower bound at 2⁻⁸.
//!
//! The essay is at [`RibbonBumped`].

mod lookup;

use crate::bits::fastrange;
use crate::buf::Buf;
use crate::build::shards::{Shards, mixed, multiple};
use crate::build::{dedup, in_parallel};
use crate::config::{Config, Tally};
use crate::error::{BuildError, BuildErrorKind, DecodeError, NoMemory};
use crate::filter::{Filter, Kind};
use crate::format::{Decoder, Encoder};
use crate::kinds::Declared;
use crate::lookup::{Ring, ring};
use crate::math;
use crate::ribbon::groups::Groups;
use crate::ribbon::{
    BLOCK, Band, Failure, MOST_COLUMNS, MOST_SHARDS, Number, Placed, Rate, Row, Shape, in_order,
};
use crate::simd::ribbon::COLUMNS;
use crate::simd::{self, Bits};
use lookup::{FULL, In, NARROW, WIDE};

/// A static filter of any rate; of a million keys 0.4 % above the lower bound at 2⁻⁸, 1.6 % at 1
/// %.
///
/// ```
/// use tamis::{Config, Keyed, RibbonBumped};
///
/// let config = Config::default().fpr(0.001);
/// let words: Keyed<RibbonBumped> = Keyed::build(&config, ["tamis", "sieve", "strainer"])?;
/// assert!(words.contains("sieve"));
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// # The idea
///
/// A [`Ribbon`](crate::Ribbon) pays for spare slots so that no stretch of it has more keys than
/// slots. This one has *fewer* slots than keys, so that hardly one stays empty, and passes the
/// keys that find no place on: they are *bumped* to a second ribbon, of a thirtieth the size;
/// those that this one bumps to a third; and so on, until a handful is left, whose hashes are
/// kept in a list.
///
/// ```text
///   layer 0     ├──────┼──────┼──────┼──────┼──────┼── … ──┤     buckets of 128 starts
///   bumped      ███       ─     █       ─     ██████             keys that start in the first
///                                                                14, 40 or 128 of a bucket
///   thresholds  40        0     14      0     128                two bits a bucket: 0, 14,
///                 ╲           ╱             ╱                    40, 128
///   layer 1     ├──────┼─ … ─┤     the same with the bumped keys
///                 ╲
///   layer 2     ├──┤               with room for all
///   list         · ·               64-bit hashes, sorted
/// ```
///
/// A lookup reads the threshold of its bucket. If its start lies below, it goes on to the next
/// layer, with its hash mixed anew; if not, this layer answers. 96 of 100 lookups stay in layer 0,
/// and its thresholds fit in the caches near the processor: 2 bits for 128 slots. All columns are
/// compared without a branch, eight at a time where the processor can, and in few instructions: so
/// several lookups, even by single calls, wait for their memory at the same time.
///
/// # Build
///
/// Buckets are filled from left to right, and each from its last start to its first. When an
/// equation contradicts earlier ones, the bucket is closed there: the threshold becomes the least
/// that bumps the key, and other equations that it bumps are removed again, which is easy, as they
/// came last. So building cannot fail; an unlucky layer only bumps more. A row passes many slots
/// before it finds a free one; it does so four at a time (`groups.rs`).
///
/// Large layers are built in shards of a million slots. At the end of each a whole bucket is
/// bumped, so that no row reaches into the next. A lookup does not see this: to it a layer is one
/// table.
///
/// # Cost
///
/// At r bits a slot: 0.965 slots a key in layer 0, 0.034 in the others, 2/128 bits for
/// thresholds. At 2⁻⁸ and a million keys, 8.03 bits a key, 0.4 % above the lower bound. At other
/// rates a share of the blocks has one column less, which costs up to 0.09 bits more. Few keys
/// pay for whole blocks of 64 slots; up to 16 are a list.
///
/// # When to choose it
///
/// When a fixed set has to be small: on a wire, in memory that many filters share.
/// [`BinaryFuse`](crate::BinaryFuse) is faster to look up, and an eighth larger.
///
/// # Bibliography
///
/// - Dillinger, Hübschle-Schneider, Sanders, Walzer, *Fast succinct retrieval and approximate
///   membership using ribbon*, 2022: bumping, buckets and thresholds.
/// - Dillinger, Walzer, *Ribbon filter: practically smaller than Bloom and Xor*, 2021: the
///   ribbon.
#[derive(Clone, Debug)]
pub struct RibbonBumped {
    /// The layer that answers nearly all lookups; without buckets if the filter has no layers.
    first: Layer,
    /// The layers for the keys that the first one bumps.
    rest: Box<[Layer]>,
    /// The multiples of what the last layer bumped, as the next would see them, in ascending
    /// order.
    list: Buf<u64>,
    columns: u32,
    /// [`FULL`], [`NARROW`] or [`WIDE`].
    layout: u8,
    len: u64,
}

/// One ribbon, with a threshold for each bucket.
#[derive(Clone, Debug)]
struct Layer {
    /// Of a single table: lookups see no shards.
    shape: Shape,
    /// `shape.starts()`, which every lookup needs.
    starts: u64,
    words: Buf<u64>,
    /// Four to a byte, the first in its lowest bits.
    thresholds: Buf<u8>,
}

pub(super) const WIDTH: u32 = u64::WIDTH;
/// Starts of a bucket: `math::bumped_ribbon_bucket(64)`.
pub(super) const BUCKET: u64 = 128;
/// What the two bits of a threshold stand for: starts of its bucket below this are bumped.
const THRESHOLDS: [u8; 4] = [0, 14, 40, BUCKET as u8];
const BUMPS_ALL: u8 = 3;
/// Keys for each slot of a layer that bumps. A layer of few keys has room for all instead: it
/// would save few blocks, and the next layer takes whole ones.
const LOAD: f64 = 1.036;
const FEW: u64 = 1500;
/// So few keys are not worth a layer.
const LISTED: u64 = 16;
/// Good hashes never need so many; what is left then is listed.
pub(super) const MOST_LAYERS: usize = 8;
/// One for repeated keys, and some for rates that come out too high, of which the first nearly
/// always suffices.
const ATTEMPTS: u32 = 8;
/// Numbers that a file holds for a layer: blocks, short blocks.
const ROW: usize = 2;
/// Slots of a shard, or up to twice as many.
const SHARD: u64 = 1 << 20;

/// The row and the result, from the multiple of a hash. Its low bits are too regular where those
/// of the hash are.
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

/// The most keys that a filter whose first layer has so many slots can have, whatever the
/// builder: more than [`LOAD`] would leave too many without a place.
pub(super) fn most_keys(slots: u64) -> u64 {
    slots + slots / 16
}

/// The shape of a layer for so many keys, and the shards that it is built in.
///
/// A shard is whole buckets of the layer. Its last bucket bumps all keys, so that no row reaches
/// into the next shard; the last shard has a block more instead.
fn shape_for(keys: u64, rate: Rate) -> (Shape, u64) {
    let slots = slots_for(keys);
    let shards = (slots / SHARD).clamp(1, MOST_SHARDS);
    if shards == 1 {
        return (Shape::new(WIDTH, rate, 1, slots), 1);
    }
    let slots = shards * (slots / shards).next_multiple_of(BUCKET) + BLOCK;
    (Shape::new(WIDTH, rate, 1, slots), shards)
}

/// Buckets of a layer.
#[inline(always)]
pub(super) fn buckets(shape: &Shape) -> u64 {
    shape.starts().div_ceil(BUCKET)
}

impl Layer {
    /// Its parts, which must fit together.
    fn new(shape: Shape, words: Buf<u64>, thresholds: Buf<u8>) -> Layer {
        Layer {
            shape,
            starts: shape.starts(),
            words,
            thresholds,
        }
    }

    /// A layer of these hashes, and the multiples of those it bumps.
    fn build(
        config: &Config,
        tally: &Tally<'_>,
        hashes: &mut [u64],
        rate: Rate,
    ) -> Result<(Layer, Vec<u64>), Failure> {
        let (shape, shards) = shape_for(hashes.len() as u64, rate);
        let threads = config.threads;
        let arranged = Shards::arrange(hashes, shards, threads)?;
        let hashes = &*hashes;
        let mut words = Buf::zeroed(shape.words())?;
        let mut rest = words.make_mut();
        let each = shape.start_blocks() / shards;
        let parts = (0..shards as usize).map(|index| {
            let shard = index as u64;
            let is_last = shard + 1 == shards;
            let shape = Shape {
                blocks: each + u64::from(is_last),
                short: shape.short.saturating_sub(shard * each).min(each),
                ..shape
            };
            let words;
            (words, rest) = std::mem::take(&mut rest).split_at_mut(shape.words() as usize);
            let runs = arranged.runs(hashes, index);
            (runs, shape, words, is_last)
        });
        let filled = in_parallel(threads, parts, |(runs, shape, words, is_last)| {
            let filled = simd::dispatch(Fill {
                runs: &runs,
                shards,
                shape,
                starts: each * BLOCK,
                is_last,
                words,
            })?;
            let keys: usize = runs.iter().map(|run| run.len()).sum();
            tally.add((keys - filled.bumped.len()) as u64);
            Ok::<_, Failure>(filled)
        });
        let mut thresholds = Buf::<u8>::zeroed(buckets(&shape).div_ceil(4))?;
        let packed = thresholds.make_mut();
        let (mut bucket, mut bumped) = (0, Vec::new());
        for part in filled {
            let part = part?;
            for code in part.codes {
                packed[bucket / 4] |= code << (bucket % 4 * 2);
                bucket += 1;
            }
            bumped.extend(part.bumped);
        }
        Ok((Layer::new(shape, words, thresholds), bumped))
    }

    /// No layer.
    fn none() -> Result<Layer, NoMemory> {
        let shape = Shape {
            width: WIDTH,
            columns: 1,
            shards: 0,
            blocks: 1,
            short: 0,
        };
        Ok(Layer::new(shape, Buf::zeroed(0)?, Buf::zeroed(0)?))
    }

    /// Reads the sections of a row of the table.
    fn decode(
        input: &mut Decoder<'_>,
        columns: u32,
        [blocks, short]: [u64; ROW],
    ) -> Result<Layer, DecodeError> {
        let (width, shards) = (WIDTH, 1);
        let shape = Shape {
            width,
            columns,
            shards,
            blocks,
            short,
        };
        shape.check()?;
        let all = buckets(&shape);
        let thresholds = input.section::<u8>("a layer's thresholds", all.div_ceil(4))?;
        // The bits of the last byte that belong to a bucket.
        let used = 2 * (all - (all.div_ceil(4) - 1) * 4);
        let last = u64::from(thresholds.last().copied().unwrap_or(0));
        if last >> used != 0 {
            let expected = "no bits after the last bucket's";
            return Err(DecodeError::invalid("a layer's thresholds", last, expected));
        }
        let words = input.section("a layer's words", shape.words())?;
        Ok(Layer::new(shape, words, thresholds))
    }

    /// The share of hashes that this layer answers for, and the share of those that it finds by
    /// mistake, in all hashes.
    fn shares(&self) -> (f64, f64) {
        let (mut answered, mut found) = (0, 0.0);
        for bucket in 0..buckets(&self.shape) {
            let first = bucket * BUCKET;
            let last = (first + BUCKET).min(self.starts);
            let mut start = first + threshold(&self.thresholds, bucket);
            while start < last {
                let end = (start / BLOCK + 1) * BLOCK;
                let columns = self.shape.columns_at(start);
                answered += end - start;
                found += (end - start) as f64 * math::fingerprint_fpr(columns);
                start = end;
            }
        }
        let all = self.starts as f64;
        (answered as f64 / all, found / all)
    }
}

/// A band that is filled bucket by bucket.
pub(super) struct Buckets<N> {
    pub(super) band: Band<u64, N>,
    groups: Groups<N>,
    /// Where the equations of a bucket went, the last start's first; `None` where others imply
    /// one.
    slots: Vec<Option<usize>>,
}

impl<N: Number> Buckets<N> {
    pub(super) fn new(slots: u64) -> Result<Buckets<N>, NoMemory> {
        Ok(Buckets {
            band: Band::new(slots)?,
            groups: Groups::new(),
            slots: Vec::new(),
        })
    }

    /// Places the equations of a bucket's keys, which are in the order of their starts, and
    /// returns the code of the bucket's threshold and how many of the first keys it bumps.
    #[inline(always)]
    pub(super) fn fill<K: Copy>(
        &mut self,
        bucket: u64,
        keys: &[K],
        start: impl Fn(K) -> u64,
        equation: impl Fn(K) -> (u64, N),
    ) -> (u8, usize) {
        let (band, slots) = (&mut self.band, &mut self.slots);
        slots.clear();
        self.groups.begin(band, (bucket * BUCKET) as usize);
        let mut closed = None;
        for &key in keys.iter().rev() {
            let (row, result) = equation(key);
            match self.groups.insert(band, start(key), row, result) {
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
        let code = (1..4).find(bumps).unwrap_or(usize::from(BUMPS_ALL));
        let below = u64::from(THRESHOLDS[code]);
        let bumps = keys.partition_point(|&key| start(key) % BUCKET < below);
        for slot in slots.drain(..).skip(keys.len() - bumps).flatten() {
            band.rows[slot] = 0;
            band.results[slot] = N::ZERO;
        }
        (code as u8, bumps)
    }
}

/// What the two bits of a bucket stand for. A bucket out of bounds bumps all.
#[inline(always)]
pub(super) fn threshold(codes: &[u8], bucket: u64) -> u64 {
    codes.get((bucket / 4) as usize).map_or(BUCKET, |codes| {
        let code = codes >> (bucket % 4 * 2) & 3;
        u64::from(THRESHOLDS[usize::from(code)])
    })
}

/// The other results of building a shard's table.
struct Filled {
    /// The thresholds, by their codes.
    codes: Vec<u8>,
    bumped: Vec<u64>,
}

/// A shard to be filled.
struct Fill<'a> {
    /// Its hashes.
    runs: &'a [&'a [u64]],
    /// How many shards the layer has.
    shards: u64,
    shape: Shape,
    starts: u64,
    is_last: bool,
    /// Its part of the layer's table, all zero.
    words: &'a mut [u64],
}

impl simd::Op for Fill<'_> {
    const WIDE: bool = true;
    type Out = Result<Filled, Failure>;

    #[inline(always)]
    fn run<B: Bits>(self, _: B) -> Result<Filled, Failure> {
        let (shape, starts) = (self.shape, self.starts);
        // Shard and start in it are those of the layer's start: `range(g, a·b)` is `range(g, a)·b
        // + range(rest(g, a), b)`.
        let start = |multiple| fastrange(fastrange(multiple, self.shards).1, starts).0;
        let mut filled = Buckets::new(shape.slots())?;
        let mut codes = vec![0; starts.div_ceil(BUCKET) as usize];
        let mut bumped = Vec::new();
        let closed = codes.len() - usize::from(!self.is_last);
        codes[closed..].fill(BUMPS_ALL);
        in_order(self.runs, starts, multiple, start, |mut stretch| {
            while let Some(&first) = stretch.first() {
                let bucket = start(first) / BUCKET;
                let end = stretch
                    .iter()
                    .take_while(|&&hash| start(hash) / BUCKET == bucket);
                let (hashes, rest) = stretch.split_at(end.count());
                stretch = rest;
                if bucket as usize >= closed {
                    bumped.extend_from_slice(hashes);
                    continue;
                }
                let equation = |multiple| {
                    let (row, result) = equation(multiple);
                    (row, result & shape.kept())
                };
                let (code, bumps) = filled.fill(bucket, hashes, start, equation);
                bumped.extend_from_slice(&hashes[..bumps]);
                codes[bucket as usize] = code;
            }
            Ok(())
        })?;
        filled.band.solve(&shape, self.words);
        Ok(Filled { codes, bumped })
    }
}

impl RibbonBumped {
    /// Its parts, which must fit together.
    fn new(
        layers: Vec<Layer>,
        list: Buf<u64>,
        columns: u32,
        len: u64,
    ) -> Result<RibbonBumped, NoMemory> {
        let mut layers = layers.into_iter();
        let first = layers.next().map_or_else(Layer::none, Ok)?;
        let layout = match columns as usize {
            COLUMNS if first.shape.short == 0 => FULL,
            ..=COLUMNS => NARROW,
            _ => WIDE,
        };
        Ok(RibbonBumped {
            first,
            rest: layers.collect(),
            list,
            columns,
            layout,
            len,
        })
    }

    /// How many ribbons there are.
    pub fn layers(&self) -> usize {
        self.all_layers().count()
    }

    fn all_layers(&self) -> impl Iterator<Item = &Layer> {
        let first = Some(&self.first).filter(|layer| layer.starts > 0);
        first.into_iter().chain(&self.rest)
    }

    /// The filter of these hashes, or the error that some are given more than once.
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
        let list = Buf::copied(&left)?;
        Ok(Self::new(layers, list, rate.columns, hashes.len() as u64)?)
    }
}

impl Filter for RibbonBumped {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        match self.layout {
            FULL => simd::dispatch(In::<FULL>(self, hash)),
            NARROW => simd::dispatch(In::<NARROW>(self, hash)),
            _ => simd::dispatch(In::<WIDE>(self, hash)),
        }
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        match self.layout {
            FULL => ring(Some(self.view::<FULL>()), hashes, out),
            NARROW => ring(Some(self.view::<NARROW>()), hashes, out),
            _ => ring(Some(self.view::<WIDE>()), hashes, out),
        }
    }

    /// The number of distinct keys.
    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        let of_layer =
            |layer: &Layer| layer.words.size_in_bytes() + layer.thresholds.size_in_bytes();
        let layers: usize = self.all_layers().map(of_layer).sum();
        size_of_val(&*self.rest) + layers + self.list.size_in_bytes()
    }

    fn fpr(&self) -> f64 {
        let (mut reached, mut found) = (1.0, 0.0);
        for layer in self.all_layers() {
            let (answered, by_mistake) = layer.shares();
            found += reached * by_mistake;
            reached *= 1.0 - answered;
        }
        found + reached * math::hash_floor(self.list.len() as u64)
    }

    /// Of the first layer only: the others are small.
    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        let view = self.view::<NARROW>();
        view.prefetch(view.place(hash));
    }
}

impl Kind for RibbonBumped {
    const ABOUT: &'static str = "the smallest from 20 000 keys on: a fixed set at any rate, 0.4 % above the lower bound at 2⁻⁸";

    fn build(config: &Config, hashes: &mut [u64]) -> Result<RibbonBumped, BuildError> {
        let (_, fpr) = config.check::<RibbonBumped>(hashes)?;
        let asked = Rate::new(Self::INFO.name, fpr, 1.0)?;
        let blocks = |keys: usize| keys as f64 / BLOCK as f64 + 1.0;
        // Which starts are bumped is chance, and so is how many of the others lack a column: the
        // rate scatters by 0.03 over the root of the blocks. Three times that is seldom exceeded.
        let cautious = |keys| asked.lowered(1.0 + 0.1 / f64::sqrt(blocks(keys)));
        let mut distinct = hashes.len();
        let mut rate = cautious(distinct);
        for _ in 0..ATTEMPTS {
            let hashes = &mut hashes[..distinct];
            match Self::of(config, hashes, rate) {
                Ok(filter) => match filter.fpr() / fpr {
                    // At least one block more has all columns.
                    over if over > 1.0 + 1e-9 => {
                        rate = rate.lowered(over * (1.0 + 1.0 / blocks(distinct)));
                    }
                    _ => return Ok(filter),
                },
                Err(Failure::Memory(error)) => return Err(error.into()),
                Err(_) => {
                    distinct = dedup(hashes);
                    rate = cautious(distinct);
                }
            }
        }
        let (keys, attempts) = (hashes.len() as u64, ATTEMPTS);
        Err(BuildErrorKind::Attempts { keys, attempts }.into())
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("columns", u64::from(self.columns));
        out.param("layers", self.layers() as u64);
        out.param("listed", self.list.len() as u64);
        let row = |layer: &Layer| [layer.shape.blocks, layer.shape.short];
        let table = self.all_layers().flat_map(row).flat_map(u64::to_le_bytes);
        out.made(table.collect());
        for layer in self.all_layers() {
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
        let slots = |layer: &Layer| layer.shape.slots();
        let most = listed.saturating_add(most_keys(layers.first().map_or(0, slots)));
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
        Ok(Self::new(layers, list, columns, input.len())?)
    }
}

#[cfg(test)]
mod tests;
