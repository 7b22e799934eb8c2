//! What a key holds: a filter, the manners in which it is served, and its form in files.
//!
//! A value is written as a *head* of 64 bytes and a *body*. The body of a filter is its file, which
//! the library reads and verifies. RDB files, `DUMP`, the append-only file and `SCANDUMP` all have
//! these two parts:
//!
//! ```text
//!   0     4   5   6     8                        40         48         56         64
//!   ┌─────┬───┬───┬─────┬──────────────────────┬──────────┬──────────┬──────────┐
//!   │TMSV │ 1 │tag│  0  │ four numbers, by tag │ body len │ XXH3 of  │ XXH3 of  │
//!   │     │   │   │     │                      │          │ the body │ the head │
//!   └─────┴───┴───┴─────┴──────────────────────┴──────────┴──────────┴──────────┘
//! ```

use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tamis::{AnyFilter, Full, Hashing, Keyed, Open, Unsupported};

use crate::job::QUICK_PAGES;
use crate::loading::Loading;
use crate::redisbloom::{BloomChain, CuckooChain};
use crate::server::{Refusal, WRONG_TYPE, measured, thread};

/// The most bytes of a body that are written or sent at once.
pub(crate) const CHUNK: usize = 16 << 20;

/// The most bytes of a filter that is moved to where memory is denser. The allocator gives arrays
/// of more than 14 KiB pages of their own, where nothing is gained; this is a few of those.
const MOST_SETTLED: usize = 64 << 10;

/// What a key holds.
#[derive(Debug)]
pub(crate) struct Value {
    /// Another for each value, so that a thread finds out that its own has gone.
    id: u64,
    body: Body,
    /// Bytes of the heap, as the server's allocator counts them.
    held: usize,
    /// Commands that wait for a thread to change this value.
    waiting: Arc<AtomicU32>,
    /// Whether the pages of a large array are yet to be touched.
    is_fresh: bool,
}

/// The filter of a key.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Filter(Served),
    /// `RedisBloom`'s own structures, taken over without their keys.
    BloomChain(Arc<BloomChain>),
    CuckooChain(Arc<CuckooChain>),
    /// Chunks that have come so far.
    Loading(Loading),
}

/// A filter of the library.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) face: Face,
    pub(crate) filter: Arc<Keyed<AnyFilter>>,
}

/// Which commands a filter answers, and what they have to remember beside it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Face {
    /// `TAMIS.*` alone.
    Plain,
    Bloom {
        /// What was asked for; 0 for a filter that does not grow.
        expansion: u64,
        /// The ratio of the shares of slices; 0 for inverse squares.
        tightening: f64,
    },
    Cuckoo {
        bucket_size: u64,
        max_iterations: u64,
        expansion: u64,
        deleted: u64,
    },
}

impl Served {
    /// The filter, for changing.
    pub(crate) fn filter_mut(&mut self) -> &mut Keyed<AnyFilter> {
        // Only where a thread is reading the filter for a command that waits is it copied.
        Arc::make_mut(&mut self.filter)
    }
}

/// The refusal of a key whose chunks have not all come.
const INCOMPLETE: &str = "ERR the filter is not complete; load its other chunks first";

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Value {
    /// A value whose body is made here, so that its memory is counted.
    pub(crate) fn new<E>(make: impl FnOnce() -> Result<Body, E>) -> Result<Value, E> {
        let (body, held) = measured(make);
        Ok(Value::holding(body?, held))
    }

    /// A value around a body that took so many bytes to make.
    pub(crate) fn holding(body: Body, held: isize) -> Value {
        let held = usize::try_from(held).unwrap_or(0);
        let is_empty = matches!(&body, Body::Filter(served) if served.filter.is_empty());
        Value {
            id: next_id(),
            body,
            held,
            waiting: Arc::default(),
            is_fresh: is_empty && held >= QUICK_PAGES,
        }
    }

    pub(crate) fn body(&self) -> &Body {
        &self.body
    }

    pub(crate) fn into_body(self) -> Body {
        self.body
    }

    /// Changes the body, and counts the memory that it then has. There is room for so many answers,
    /// so that theirs is not counted.
    ///
    /// # Errors
    ///
    /// The change's own, which then has changed nothing.
    pub(crate) fn change(
        &mut self,
        room: usize,
        change: impl FnOnce(&mut Body, &mut Answers) -> Result<(), Refusal>,
    ) -> Result<Answers, Refusal> {
        let (body, mut answers) = (&mut self.body, Vec::with_capacity(room));
        let (before, lent) = body.place();
        let (result, more) = measured(|| change(body, &mut answers));
        result?;
        self.is_fresh = false;
        // An array that a thread was reading is not freed here: it is a new one alone that counts.
        let copied = lent && body.place().0 != before;
        let held = if copied { 0 } else { self.held };
        self.held = held.saturating_add_signed(more);
        Ok(answers)
    }

    /// Puts a body that a thread has made in the place of this one.
    /// Gives the old one back: freeing it is long work too.
    pub(crate) fn replace(&mut self, body: Body, held: isize) -> Body {
        self.held = usize::try_from(held).unwrap_or(0);
        self.is_fresh = false;
        std::mem::replace(&mut self.body, body)
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn waiting(&self) -> &Arc<AtomicU32> {
        &self.waiting
    }

    /// Whether the thread is to change this value.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Whether the thread is to change this value, or is reading it.
    pub(crate) fn is_busy(&self) -> bool {
        self.has_waiting() || self.body.place().1
    }

    pub(crate) fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// The filter of the library, whatever commands it answers.
    pub(crate) fn served(&self) -> Result<&Served, Refusal> {
        match &self.body {
            Body::Filter(served) => Ok(served),
            Body::Loading(_) => Err(INCOMPLETE.into()),
            Body::BloomChain(_) | Body::CuckooChain(_) => Err(WRONG_TYPE.into()),
        }
    }

    /// Refuses a value that does not answer commands of this family.
    pub(crate) fn check(&self, family: Family) -> Result<(), Refusal> {
        if let Body::Loading(_) = self.body {
            return Err(INCOMPLETE.into());
        }
        match self.body.family() == family {
            true => Ok(()),
            false => Err(WRONG_TYPE.into()),
        }
    }

    /// Every byte that the value takes, but for its key.
    pub(crate) fn memory(&self) -> usize {
        size_of::<Value>() + self.held
    }

    /// The same in another key.
    pub(crate) fn copied(&self) -> Value {
        let (body, held) = self.body.copied();
        Value::holding(body, held)
    }

    /// Puts the filter in the place of its chunks, once the thread has opened it.
    pub(crate) fn collect(&mut self) {
        if let Body::Loading(loading) = &mut self.body
            && let Some((body, held)) = loading.collect()
        {
            thread::free(self.replace(body, held));
        }
    }

    /// Puts a copy of a small filter in its place, for an allocator that gives denser places now.
    /// Tells whether it has.
    pub(crate) fn settle(&mut self) -> bool {
        if self.held > MOST_SETTLED || self.is_busy() || matches!(self.body, Body::Loading(_)) {
            return false;
        }
        let Value { body, held, .. } = self.copied();
        (self.body, self.held) = (body, held);
        true
    }

    /// Head and body.
    pub(crate) fn encoded(&self) -> (Vec<u8>, Vec<u8>) {
        self.body.encoded()
    }

    /// The value of a head and a body.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with them.
    pub(crate) fn decode(head: &[u8], body: Vec<u8>) -> Result<Value, Refusal> {
        // The bytes are freed after the filter's memory was counted, of which they are no part.
        let body = Arc::new(body);
        Value::new(|| Body::decode(head, &body))
    }

    /// Gives the commands that make this value, to be written to the append-only file.
    pub(crate) fn rewrite(&self, key: &[u8], mut emit: impl FnMut(&CStr, &[&[u8]])) {
        let (command, offset, header, bytes) = self.body.dump();
        if let Some(header) = &header {
            emit(command, &[key, b"1", header]);
        }
        let mut place = offset;
        for chunk in bytes.chunks(CHUNK) {
            if header.is_some() {
                place += chunk.len() as u64;
            }
            emit(command, &[key, place.to_string().as_bytes(), chunk]);
            if header.is_none() {
                place += chunk.len() as u64;
            }
        }
    }
}

/// Which commands a value answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Bloom,
    Cuckoo,
    Tamis,
}

impl Family {
    pub(crate) fn load_command(self) -> &'static CStr {
        match self {
            Family::Bloom => c"BF.LOADCHUNK",
            Family::Cuckoo => c"CF.LOADCHUNK",
            Family::Tamis => c"TAMIS.LOAD",
        }
    }
}

const PLAIN: u8 = 1;
const BLOOM: u8 = 2;
const CUCKOO: u8 = 3;
const BLOOM_CHAIN: u8 = 4;
const CUCKOO_CHAIN: u8 = 5;
const LOADING: u8 = 6;

/// What became of each item of a command.
pub(crate) type Answers = Vec<Result<bool, Why>>;

/// Why an item was refused: of no memory but its own, see [`Value::change`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Why {
    Said(&'static str),
    Full(Full),
    Cannot(Unsupported),
    Capacity(u64),
}

impl Why {
    /// As the client reads it.
    pub(crate) fn told(self) -> Refusal {
        match self {
            Why::Said(text) => text.into(),
            Why::Full(full) => format!("ERR {full}").into(),
            Why::Cannot(cannot) => format!("ERR {cannot}").into(),
            Why::Capacity(keys) => {
                format!("ERR the filter is full: it was made for {keys} keys").into()
            }
        }
    }
}

impl Body {
    /// A copy of the arrays, not of the pointers to them, and its bytes of memory.
    pub(crate) fn copied(&self) -> (Body, isize) {
        measured(|| match self {
            Body::Filter(served) => Body::Filter(Served {
                face: served.face,
                filter: Arc::new((*served.filter).clone()),
            }),
            Body::BloomChain(chain) => Body::BloomChain(Arc::new((**chain).clone())),
            Body::CuckooChain(chain) => Body::CuckooChain(Arc::new((**chain).clone())),
            Body::Loading(loading) => Body::Loading(loading.clone()),
        })
    }

    /// Where the filter is, and whether the thread holds it too.
    fn place(&self) -> (*const (), bool) {
        fn of<T>(held: &Arc<T>) -> (*const (), bool) {
            (Arc::as_ptr(held).cast(), Arc::strong_count(held) > 1)
        }
        match self {
            Body::Filter(served) => of(&served.filter),
            Body::BloomChain(chain) => of(chain),
            Body::CuckooChain(chain) => of(chain),
            Body::Loading(_) => (std::ptr::null(), false),
        }
    }

    /// Whether this is still what a clone was taken of.
    pub(crate) fn is_same(&self, clone: &Body) -> bool {
        match (self, clone) {
            (Body::Filter(now), Body::Filter(then)) => {
                now.face == then.face && Arc::ptr_eq(&now.filter, &then.filter)
            }
            (Body::Loading(_), _) | (_, Body::Loading(_)) => false,
            _ => self.place().0 == clone.place().0,
        }
    }

    pub(crate) fn family(&self) -> Family {
        match self {
            Body::Filter(served) => match served.face {
                Face::Plain => Family::Tamis,
                Face::Bloom { .. } => Family::Bloom,
                Face::Cuckoo { .. } => Family::Cuckoo,
            },
            Body::BloomChain(_) => Family::Bloom,
            Body::CuckooChain(_) => Family::Cuckoo,
            Body::Loading(loading) => loading.family(),
        }
    }

    fn encoded(&self) -> (Vec<u8>, Vec<u8>) {
        let (tag, numbers, body) = match self {
            Body::Filter(served) => {
                let (tag, numbers) = served.face.encode();
                (tag, numbers, served.filter.to_bytes())
            }
            Body::BloomChain(chain) => (BLOOM_CHAIN, [0; 4], chain.encode()),
            Body::CuckooChain(chain) => (CUCKOO_CHAIN, [0; 4], chain.encode()),
            Body::Loading(loading) => (LOADING, [0; 4], loading.encode()),
        };
        (head(tag, numbers, &body), body)
    }

    pub(crate) fn decode(bytes: &[u8], body: &Arc<Vec<u8>>) -> Result<Body, Refusal> {
        let head = Head::read(bytes)?;
        if head.len != body.len() as u64 || head.check != check(body) {
            return Err("ERR a filter's bytes are damaged".into());
        }
        let plain = |numbers: [u64; 4]| match numbers {
            [0, 0, 0, 0] => Ok(()),
            _ => Err(Refusal::from(
                "ERR a filter's head has numbers without a meaning",
            )),
        };
        match head.tag {
            PLAIN | BLOOM | CUCKOO => {
                let face = Face::decode(head.tag, head.numbers)?;
                let filter = open(Arc::clone(body))?;
                face.suits(&filter)?;
                let filter = Arc::new(filter);
                Ok(Body::Filter(Served { face, filter }))
            }
            BLOOM_CHAIN => {
                plain(head.numbers)?;
                BloomChain::decode(body).map(Arc::new).map(Body::BloomChain)
            }
            CUCKOO_CHAIN => {
                plain(head.numbers)?;
                CuckooChain::decode(body)
                    .map(Arc::new)
                    .map(Body::CuckooChain)
            }
            LOADING => {
                plain(head.numbers)?;
                let loading = Loading::decode(body)?;
                // It was saved while it was opened.
                let finished = loading.is_complete()?.then(|| loading.finish());
                match finished {
                    Some(Ok(finished)) => Ok(finished),
                    _ => Ok(Body::Loading(loading)),
                }
            }
            tag => Err(format!("ERR a filter of the unknown sort {tag}").into()),
        }
    }

    /// What loads this value again: the command, the position of its first chunk, the header to
    /// send before, and the bytes.
    pub(crate) fn dump(&self) -> (&'static CStr, u64, Option<Vec<u8>>, Cow<'_, [u8]>) {
        let command = self.family().load_command();
        match self {
            Body::Filter(Served {
                face: Face::Plain,
                filter,
            }) => (command, 0, None, filter.to_bytes().into()),
            Body::BloomChain(chain) => (command, 1, Some(chain.header()), chain.data().into()),
            Body::CuckooChain(chain) => (command, 1, Some(chain.header()), chain.data().into()),
            Body::Loading(loading) => {
                let start = u64::from(loading.header().is_some());
                let header = loading.header().map(<[u8]>::to_vec);
                (command, start, header, loading.received().into())
            }
            Body::Filter(_) => {
                let (head, body) = self.encoded();
                (command, 1, Some(head), body.into())
            }
        }
    }
}

/// Opens a filter's file, which must tell how it hashes keys.
pub(crate) fn open(file: Arc<Vec<u8>>) -> Result<Keyed<AnyFilter>, Refusal> {
    struct File(Arc<Vec<u8>>);
    impl AsRef<[u8]> for File {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    let opened = Open::new().owned(true).bytes(File(file));
    opened.map_err(|e| format!("ERR {e}").into())
}

const MAGIC: &[u8; 4] = b"TMSV";
pub(crate) const HEAD: usize = 64;
const VERSION: u8 = 1;

fn check(bytes: &[u8]) -> u64 {
    Hashing::fast(u64::from_le_bytes(*b"tamis-fl")).hash_bytes(bytes)
}

fn head(tag: u8, numbers: [u64; 4], body: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD);
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(&[VERSION, tag, 0, 0]);
    for number in numbers.into_iter().chain([body.len() as u64, check(body)]) {
        head.extend_from_slice(&number.to_le_bytes());
    }
    head.extend_from_slice(&check(&head).to_le_bytes());
    head
}

/// What a head says.
#[derive(Debug)]
pub(crate) struct Head {
    tag: u8,
    numbers: [u64; 4],
    /// Bytes of the body.
    pub(crate) len: u64,
    check: u64,
}

impl Head {
    /// Whether bytes begin like a head.
    pub(crate) fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Head, Refusal> {
        let damaged = || Refusal::from("ERR a filter's head is damaged");
        let word = |at: usize| -> Option<u64> {
            let bytes = bytes.get(8 * at..8 * at + 8)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        if bytes.len() != HEAD || word(7) != Some(check(&bytes[..HEAD - 8])) {
            return Err(damaged());
        }
        if bytes[..5] != [b'T', b'M', b'S', b'V', VERSION] || bytes[6..8] != [0, 0] {
            return Err(
                "ERR a filter of an unknown form; is the module older than its file?".into(),
            );
        }
        let mut words = [0; 6];
        for (at, number) in (1..).zip(&mut words) {
            *number = word(at).ok_or_else(damaged)?;
        }
        let [a, b, c, d, len, check] = words;
        Ok(Head {
            tag: bytes[5],
            numbers: [a, b, c, d],
            len,
            check,
        })
    }

    /// The commands that a value with this head answers.
    pub(crate) fn family(&self) -> Option<Family> {
        match self.tag {
            BLOOM => Some(Family::Bloom),
            CUCKOO => Some(Family::Cuckoo),
            _ => None,
        }
    }
}

impl Face {
    fn encode(self) -> (u8, [u64; 4]) {
        match self {
            Face::Plain => (PLAIN, [0; 4]),
            Face::Bloom {
                expansion,
                tightening,
            } => (BLOOM, [expansion, tightening.to_bits(), 0, 0]),
            Face::Cuckoo {
                bucket_size,
                max_iterations,
                expansion,
                deleted,
            } => (CUCKOO, [bucket_size, max_iterations, expansion, deleted]),
        }
    }

    fn decode(tag: u8, numbers: [u64; 4]) -> Result<Face, Refusal> {
        const MOST: u64 = 1 << 16;
        let face = match (tag, numbers) {
            (PLAIN, [0, 0, 0, 0]) => Some(Face::Plain),
            (BLOOM, [expansion, tightening, 0, 0]) => {
                let tightening = f64::from_bits(tightening);
                let possible = tightening == 0.0 || (0.5..=0.95).contains(&tightening);
                (expansion <= MOST && possible).then_some(Face::Bloom {
                    expansion,
                    tightening,
                })
            }
            (CUCKOO, [bucket_size, max_iterations, expansion, deleted]) => {
                let possible = bucket_size.max(max_iterations).max(expansion) <= MOST;
                possible.then_some(Face::Cuckoo {
                    bucket_size,
                    max_iterations,
                    expansion,
                    deleted,
                })
            }
            _ => None,
        };
        face.ok_or_else(|| "ERR a filter's head has impossible numbers".into())
    }

    /// The kind of the filters that have this face.
    pub(crate) fn kind(self) -> Option<&'static str> {
        match self {
            Face::Plain => None,
            Face::Bloom { expansion: 0, .. } => Some("bloom"),
            Face::Bloom { .. } => Some("scalable"),
            Face::Cuckoo { .. } => Some("aleph"),
        }
    }

    /// Refuses a filter that is not of the kind that this face has.
    fn suits(self, filter: &Keyed<AnyFilter>) -> Result<(), Refusal> {
        let got = filter.kind().name;
        match self.kind() {
            Some(kind) if kind != got => {
                Err(format!("ERR expected a filter of the kind {kind}, got {got}").into())
            }
            _ => Ok(()),
        }
    }
}
