//! `RedisBloom`'s own filters, as its `SCANDUMP` writes them: to move in without the keys.
//!
//! A filter that comes this way stays what it is. It answers as it did, takes more items by the
//! rules that it was made by, and is dumped in the same form. What this module makes itself is
//! smaller, and keeps the rate that was asked for; so a filter that can be made anew should be.
//!
//! ```text
//!  Bloom    header  u64 items, u32 links, u32 options, u32 growth
//!           a link  u64 bytes, u64 bits, u64 items, f64 rate, f64 bits per item,
//!                   u32 hashes, u64 capacity, u8 log₂ bits or 0
//!           data    the links' arrays of bits, one after another
//!
//!  cuckoo   header  u64 items, u64 buckets, u64 deletions, u64 tables,
//!                   u16 bucket size, u16 iterations, u16 expansion
//!           data    the tables, a byte for each slot; table i has buckets · expansionⁱ buckets
//! ```
//!
//! All numbers are little-endian. Hashes are `MurmurHash64A`.

use crate::server::Refusal;

/// `MurmurHash64A`.
fn murmur(bytes: &[u8], seed: u64) -> u64 {
    const M: u64 = 0xC6A4_A793_5BD1_E995;
    const R: u32 = 47;
    let mut h = seed ^ (bytes.len() as u64).wrapping_mul(M);
    let (words, tail) = bytes.as_chunks::<8>();
    for &word in words {
        let mut k = u64::from_le_bytes(word).wrapping_mul(M);
        k ^= k >> R;
        h = (h ^ k.wrapping_mul(M)).wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        h = (h ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    h ^= h >> R;
    h = h.wrapping_mul(M);
    h ^ h >> R
}

/// Reads numbers from the front of some bytes.
struct Reader<'a>(&'a [u8]);

fn bad(what: &str) -> Refusal {
    format!("ERR received bad data: {what}").into()
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let (bytes, rest) = self
            .0
            .split_first_chunk()
            .ok_or_else(|| bad("a header that ends early"))?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn u64(&mut self) -> Result<u64, Refusal> {
        self.take().map(u64::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Refusal> {
        self.take().map(u32::from_le_bytes)
    }

    fn u16(&mut self) -> Result<u16, Refusal> {
        self.take().map(u16::from_le_bytes)
    }

    fn real(&mut self) -> Result<f64, Refusal> {
        self.take().map(f64::from_le_bytes)
    }

    fn end(&self) -> Result<(), Refusal> {
        match self.0 {
            [] => Ok(()),
            _ => Err(bad("a header that is too long")),
        }
    }
}

/// A header with its length before it, and then the data: the body of a value.
fn with_len(header: &[u8], data: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(8 + header.len() + data.len());
    body.extend_from_slice(&(header.len() as u64).to_le_bytes());
    body.extend_from_slice(header);
    body.extend_from_slice(data);
    body
}

fn without_len(body: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    let (len, rest) = body.split_first_chunk().ok_or_else(|| bad("no header"))?;
    let len = usize::try_from(u64::from_le_bytes(*len)).map_err(|_| bad("no header"))?;
    rest.split_at_checked(len).ok_or_else(|| bad("no header"))
}

/// A list of Bloom filters.
#[derive(Clone, Debug)]
pub(crate) struct BloomChain {
    items: u64,
    options: u32,
    growth: u32,
    links: Vec<Link>,
}

/// One of them.
#[derive(Clone, Debug)]
struct Link {
    bits: u64,
    items: u64,
    rate: f64,
    bits_per_item: f64,
    hashes: u32,
    capacity: u64,
    log_bits: u8,
    data: Vec<u8>,
}

/// Hashes of 64 bits: all that `RedisBloom` makes today.
const FORCE_64: u32 = 4;
const NON_SCALING: u32 = 8;
const MOST_LINKS: u32 = 1024;
/// More than any rate needs.
const MOST_HASHES: u32 = 2048;
const TIGHTENING: f64 = 0.5;

/// Bits for each item at a rate.
fn bits_per_item(rate: f64) -> f64 {
    const LN2_SQUARED: f64 = 0.480_453_013_918_201;
    -rate.ln() / LN2_SQUARED
}

/// Zeros, which take no memory until they are written. `None` where there is no room for them.
fn zeros(bytes: u64) -> Option<Vec<u8>> {
    let bytes = usize::try_from(bytes).ok()?;
    Vec::<u8>::new().try_reserve_exact(bytes).ok()?;
    Some(vec![0; bytes])
}

impl Link {
    /// Bytes of a link.
    fn size(capacity: u64, rate: f64) -> Option<u64> {
        let bits = capacity as f64 * bits_per_item(rate);
        (bits < 2f64.powi(60)).then(|| (bits as u64).max(1).div_ceil(64) * 8)
    }

    fn new(capacity: u64, rate: f64) -> Option<Link> {
        #[allow(clippy::approx_constant, reason = "its own, to the last digit")]
        const LN2: f64 = 0.693_147_180_559_945;
        let (bits_per_item, bytes) = (bits_per_item(rate), Link::size(capacity, rate)?);
        let data = zeros(bytes)?;
        Some(Link {
            bits: bytes * 8,
            items: 0,
            rate,
            bits_per_item,
            hashes: (LN2 * bits_per_item).ceil() as u32,
            capacity,
            log_bits: 0,
            data,
        })
    }

    /// Reads the row of a link; its bytes are yet to come.
    fn read(reader: &mut Reader<'_>) -> Result<(Link, u64), Refusal> {
        let bytes = reader.u64()?;
        let link = Link {
            bits: reader.u64()?,
            items: reader.u64()?,
            rate: reader.real()?,
            bits_per_item: reader.real()?,
            hashes: reader.u32()?,
            capacity: reader.u64()?,
            log_bits: reader.take::<1>()?[0],
            data: Vec::new(),
        };
        let room = bytes.checked_mul(8).ok_or_else(|| bad("a link's size"))?;
        let whole = match link.log_bits {
            0 => link.bits == room,
            log => log < 64 && link.bits == 1 << log && link.bits <= room,
        };
        if !whole || link.bits == 0 {
            return Err(bad("a link's size"));
        }
        if !(1..=MOST_HASHES).contains(&link.hashes) || link.capacity == 0 {
            return Err(bad("a link's number of hashes, or its capacity"));
        }
        let rates = link.rate > 0.0 && link.rate < 1.0 && link.bits_per_item.is_finite();
        match rates && link.bits_per_item > 0.0 {
            true => Ok((link, bytes)),
            false => Err(bad("a link's rate")),
        }
    }

    /// Byte and bit of each place.
    fn places(&self, (a, b): (u64, u64)) -> impl Iterator<Item = (usize, u8)> + use<> {
        let bits = self.bits;
        (0..u64::from(self.hashes)).map(move |i| {
            let bit = a.wrapping_add(i.wrapping_mul(b)) % bits;
            ((bit / 8) as usize, 1 << (bit % 8))
        })
    }

    fn contains(&self, hash: (u64, u64)) -> bool {
        self.places(hash)
            .all(|(at, mask)| self.data[at] & mask != 0)
    }

    fn add(&mut self, hash: (u64, u64)) {
        for (at, mask) in self.places(hash) {
            self.data[at] |= mask;
        }
        self.items += 1;
    }
}

impl BloomChain {
    /// The chain that a header announces, without its data, and the bytes of each link.
    fn read(header: &[u8]) -> Result<(BloomChain, Vec<u64>), Refusal> {
        let mut reader = Reader(header);
        let (items, links) = (reader.u64()?, reader.u32()?);
        let mut chain = BloomChain {
            items,
            options: reader.u32()?,
            growth: reader.u32()?,
            links: Vec::new(),
        };
        if !(1..=MOST_LINKS).contains(&links) || i64::try_from(items).is_err() {
            return Err(bad("the number of links, or of items"));
        }
        if chain.options & FORCE_64 == 0 || chain.options & !15 != 0 {
            return Err(bad("options that no filter with 64-bit hashes has"));
        }
        if chain.growth == 0 && chain.options & NON_SCALING == 0 {
            return Err(bad("the growth"));
        }
        let mut sizes = Vec::new();
        for _ in 0..links {
            let (link, bytes) = Link::read(&mut reader)?;
            chain.links.push(link);
            sizes.push(bytes);
        }
        reader.end()?;
        Ok((chain, sizes))
    }

    /// Bytes of data that follow a header.
    pub(crate) fn data_len(header: &[u8]) -> Result<u64, Refusal> {
        let (_, sizes) = BloomChain::read(header)?;
        let sum = sizes.into_iter().try_fold(0u64, u64::checked_add);
        sum.ok_or_else(|| bad("the size of all links"))
    }

    pub(crate) fn new(header: &[u8], data: &[u8]) -> Result<BloomChain, Refusal> {
        let (mut chain, sizes) = BloomChain::read(header)?;
        let mut rest = data;
        for (link, bytes) in chain.links.iter_mut().zip(sizes) {
            let cut = usize::try_from(bytes)
                .ok()
                .and_then(|at| rest.split_at_checked(at));
            let (own, after) = cut.ok_or_else(|| bad("fewer bytes than the links have"))?;
            link.data = own.to_vec();
            rest = after;
        }
        match rest {
            [] => Ok(chain),
            _ => Err(bad("more bytes than the links have")),
        }
    }

    pub(crate) fn header(&self) -> Vec<u8> {
        let mut header = Vec::new();
        header.extend_from_slice(&self.items.to_le_bytes());
        for number in [self.links.len() as u32, self.options, self.growth] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        for link in &self.links {
            for number in [link.data.len() as u64, link.bits, link.items] {
                header.extend_from_slice(&number.to_le_bytes());
            }
            for real in [link.rate, link.bits_per_item] {
                header.extend_from_slice(&real.to_le_bytes());
            }
            header.extend_from_slice(&link.hashes.to_le_bytes());
            header.extend_from_slice(&link.capacity.to_le_bytes());
            header.push(link.log_bits);
        }
        header
    }

    pub(crate) fn data(&self) -> Vec<u8> {
        self.links
            .iter()
            .flat_map(|link| link.data.iter())
            .copied()
            .collect()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        with_len(&self.header(), &self.data())
    }

    pub(crate) fn decode(body: &[u8]) -> Result<BloomChain, Refusal> {
        let (header, data) = without_len(body)?;
        BloomChain::new(header, data)
    }

    fn hash(item: &[u8]) -> (u64, u64) {
        let a = murmur(item, 0xC6A4_A793_5BD1_E995);
        (a, murmur(item, a))
    }

    pub(crate) fn contains(&self, item: &[u8]) -> bool {
        let hash = BloomChain::hash(item);
        self.links.iter().rev().any(|link| link.contains(hash))
    }

    /// Adds an item; `false` if it seems to be there.
    ///
    /// # Errors
    ///
    /// A filter that does not grow and is full, or no memory for the next link.
    pub(crate) fn add(&mut self, item: &[u8]) -> Result<bool, &'static str> {
        let hash = BloomChain::hash(item);
        if self.links.iter().rev().any(|link| link.contains(hash)) {
            return Ok(false);
        }
        if let Some(last) = self.links.last()
            && last.items >= last.capacity
        {
            if !self.scales() {
                return Err("ERR non scaling filter is full");
            }
            let next = self
                .next(last)
                .and_then(|(capacity, rate)| Link::new(capacity, rate));
            self.links
                .push(next.ok_or("ERR no memory for the next part of the filter")?);
        }
        if let Some(last) = self.links.last_mut() {
            last.add(hash);
            self.items += 1;
        }
        Ok(true)
    }

    /// Capacity and rate of the link after the last.
    fn next(&self, last: &Link) -> Option<(u64, f64)> {
        let capacity = last.capacity.checked_mul(u64::from(self.growth))?;
        Some((capacity, last.rate * TIGHTENING))
    }

    /// Bytes of the link that so many items may begin.
    pub(crate) fn next_bytes(&self, items: u64) -> Option<u64> {
        let last = self.links.last()?;
        if !self.scales() || last.items.saturating_add(items) <= last.capacity {
            return None;
        }
        let (capacity, rate) = self.next(last)?;
        Link::size(capacity, rate)
    }

    pub(crate) fn scales(&self) -> bool {
        self.options & NON_SCALING == 0
    }

    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    pub(crate) fn growth(&self) -> u32 {
        self.growth
    }

    pub(crate) fn links(&self) -> usize {
        self.links.len()
    }

    pub(crate) fn capacity(&self) -> u64 {
        let sum = |sum: u64, link: &Link| sum.saturating_add(link.capacity);
        self.links.iter().fold(0, sum)
    }

    /// Twice the rate of the first link, which is what was asked for.
    pub(crate) fn rate(&self) -> f64 {
        let first = self.links.first().map_or(0.0, |link| link.rate);
        if self.scales() {
            first / TIGHTENING
        } else {
            first
        }
    }

    pub(crate) fn size_in_bytes(&self) -> usize {
        self.links.iter().map(|link| link.data.len()).sum()
    }
}

/// Cuckoo tables, each larger than the one before.
#[derive(Clone, Debug)]
pub(crate) struct CuckooChain {
    items: u64,
    buckets: u64,
    deletions: u64,
    bucket_size: u16,
    max_iterations: u16,
    expansion: u16,
    tables: Vec<Vec<u8>>,
}

/// The most tables that are made.
const MOST_TABLES: u64 = 33;

/// What is kept of an item, and the hashes whose remainders are its buckets.
#[derive(Clone, Copy)]
struct Nest {
    fingerprint: u8,
    hashes: [u64; 2],
}

impl Nest {
    fn of(item: &[u8]) -> Nest {
        let hash = murmur(item, 0);
        let fingerprint = (hash % 255 + 1) as u8;
        Nest {
            fingerprint,
            hashes: [hash, Nest::other(fingerprint, hash)],
        }
    }

    fn other(fingerprint: u8, hash: u64) -> u64 {
        hash ^ u64::from(fingerprint).wrapping_mul(0x5BD1_E995)
    }
}

impl CuckooChain {
    /// The chain that a header announces, without its data, and the bytes of each table.
    fn read(header: &[u8]) -> Result<(CuckooChain, Vec<u64>), Refusal> {
        let mut reader = Reader(header);
        let (items, buckets) = (reader.u64()?, reader.u64()?);
        let (deletions, tables) = (reader.u64()?, reader.u64()?);
        let chain = CuckooChain {
            items,
            buckets,
            deletions,
            bucket_size: reader.u16()?,
            max_iterations: reader.u16()?,
            expansion: reader.u16()?,
            tables: Vec::new(),
        };
        reader.end()?;
        if !buckets.is_power_of_two()
            || !(chain.expansion == 0 || chain.expansion.is_power_of_two())
        {
            return Err(bad(
                "a number of buckets, or an expansion, that is no power of two",
            ));
        }
        if !(1..=255).contains(&chain.bucket_size) || !(1..=MOST_TABLES).contains(&tables) {
            return Err(bad("the size of a bucket, or the number of tables"));
        }
        let sizes: Option<Vec<u64>> = (0..tables as u32).map(|i| chain.size(i)).collect();
        Ok((chain, sizes.ok_or_else(|| bad("the size of a table"))?))
    }

    /// Bytes of a table.
    fn size(&self, table: u32) -> Option<u64> {
        let times = u64::from(self.expansion.max(1)).checked_pow(table)?;
        self.buckets
            .checked_mul(times)?
            .checked_mul(u64::from(self.bucket_size))
    }

    pub(crate) fn data_len(header: &[u8]) -> Result<u64, Refusal> {
        let (_, sizes) = CuckooChain::read(header)?;
        let sum = sizes.into_iter().try_fold(0u64, u64::checked_add);
        sum.ok_or_else(|| bad("the size of all tables"))
    }

    pub(crate) fn new(header: &[u8], data: &[u8]) -> Result<CuckooChain, Refusal> {
        let (mut chain, sizes) = CuckooChain::read(header)?;
        let mut rest = data;
        for bytes in sizes {
            let cut = usize::try_from(bytes)
                .ok()
                .and_then(|at| rest.split_at_checked(at));
            let (own, after) = cut.ok_or_else(|| bad("fewer bytes than the tables have"))?;
            chain.tables.push(own.to_vec());
            rest = after;
        }
        let held = data.iter().filter(|&&slot| slot != 0).count() as u64;
        if !rest.is_empty() || held != chain.items {
            return Err(bad("tables that do not hold what the header says"));
        }
        Ok(chain)
    }

    pub(crate) fn header(&self) -> Vec<u8> {
        let mut header = Vec::new();
        for number in [
            self.items,
            self.buckets,
            self.deletions,
            self.tables.len() as u64,
        ] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.bucket_size, self.max_iterations, self.expansion] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        header
    }

    pub(crate) fn data(&self) -> Vec<u8> {
        self.tables.concat()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        with_len(&self.header(), &self.data())
    }

    pub(crate) fn decode(body: &[u8]) -> Result<CuckooChain, Refusal> {
        let (header, data) = without_len(body)?;
        CuckooChain::new(header, data)
    }

    /// The slots of a bucket.
    fn bucket(&self, table: usize, hash: u64) -> std::ops::Range<usize> {
        let size = usize::from(self.bucket_size);
        let buckets = self.tables[table].len() / size;
        let start = (hash % buckets as u64) as usize * size;
        start..start + size
    }

    /// The first slot with this content in the item's two buckets of a table.
    fn find(&self, table: usize, nest: Nest, content: u8) -> Option<usize> {
        nest.hashes.into_iter().find_map(|hash| {
            let mut slots = self.bucket(table, hash);
            slots.find(|&slot| self.tables[table][slot] == content)
        })
    }

    pub(crate) fn contains(&self, item: &[u8]) -> bool {
        let nest = Nest::of(item);
        (0..self.tables.len()).any(|table| self.find(table, nest, nest.fingerprint).is_some())
    }

    pub(crate) fn count(&self, item: &[u8]) -> u64 {
        let nest = Nest::of(item);
        let in_table = |table: usize| {
            let [one, other] = nest.hashes.map(|hash| self.bucket(table, hash));
            let both = if one == other {
                one.chain(0..0)
            } else {
                one.chain(other)
            };
            both.filter(|&slot| self.tables[table][slot] == nest.fingerprint)
                .count() as u64
        };
        (0..self.tables.len()).map(in_table).sum()
    }

    /// Adds an item.
    ///
    /// # Errors
    ///
    /// A filter that does not grow and is full, or has grown as often as it may.
    pub(crate) fn add(&mut self, item: &[u8]) -> Result<(), &'static str> {
        let nest = Nest::of(item);
        let free = (0..self.tables.len()).rev().find_map(|table| {
            let slot = self.find(table, nest, 0)?;
            Some((table, slot))
        });
        if let Some((table, slot)) = free {
            self.tables[table][slot] = nest.fingerprint;
        } else if !self.evict(nest) {
            self.grow()?;
            let table = self.tables.len() - 1;
            if let Some(slot) = self.find(table, nest, 0) {
                self.tables[table][slot] = nest.fingerprint;
            }
        }
        self.items += 1;
        Ok(())
    }

    /// Moves fingerprints of the newest table on to make room for one; undoes all if there is
    /// none.
    fn evict(&mut self, nest: Nest) -> bool {
        let table = self.tables.len() - 1;
        let size = usize::from(self.bucket_size);
        let (mut fingerprint, mut bucket) = (nest.fingerprint, self.bucket(table, nest.hashes[0]));
        let mut moved = Vec::new();
        for turn in 0..usize::from(self.max_iterations) {
            let victim = bucket.start + turn % size;
            std::mem::swap(&mut fingerprint, &mut self.tables[table][victim]);
            moved.push(victim);
            let number = (bucket.start / size) as u64;
            bucket = self.bucket(table, Nest::other(fingerprint, number));
            let free = bucket.clone().find(|&slot| self.tables[table][slot] == 0);
            if let Some(slot) = free {
                self.tables[table][slot] = fingerprint;
                return true;
            }
        }
        for victim in moved.into_iter().rev() {
            std::mem::swap(&mut fingerprint, &mut self.tables[table][victim]);
        }
        false
    }

    fn grow(&mut self) -> Result<(), &'static str> {
        if self.expansion == 0 {
            return Err("Filter is full");
        }
        if self.tables.len() as u64 >= MOST_TABLES {
            return Err("Maximum expansions reached");
        }
        let bytes = self.size(self.tables.len() as u32);
        let table = bytes.and_then(zeros);
        self.tables
            .push(table.ok_or("ERR no memory for the next part of the filter")?);
        Ok(())
    }

    /// Takes out one copy of an item; `false` if none matches.
    pub(crate) fn remove(&mut self, item: &[u8]) -> bool {
        let nest = Nest::of(item);
        let found = (0..self.tables.len()).rev().find_map(|table| {
            let slot = self.find(table, nest, nest.fingerprint)?;
            Some((table, slot))
        });
        let Some((table, slot)) = found else {
            return false;
        };
        self.tables[table][slot] = 0;
        self.items = self.items.saturating_sub(1);
        self.deletions = self.deletions.saturating_add(1);
        true
    }

    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    pub(crate) fn deletions(&self) -> u64 {
        self.deletions
    }

    pub(crate) fn buckets(&self) -> u64 {
        self.buckets
    }

    pub(crate) fn tables(&self) -> usize {
        self.tables.len()
    }

    /// Bucket size, iterations and expansion.
    pub(crate) fn shape(&self) -> [u16; 3] {
        [self.bucket_size, self.max_iterations, self.expansion]
    }

    pub(crate) fn size_in_bytes(&self) -> usize {
        self.tables.iter().map(Vec::len).sum()
    }
}
