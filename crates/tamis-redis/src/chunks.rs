//! Filters in chunks, out of a server and into another: `SCANDUMP` and `LOADCHUNK`, `TAMIS.DUMP`
//! and `TAMIS.LOAD`.
//!
//! A dump is one moment's: the first call encodes the filter, and the calls that follow read those
//! bytes, whatever is added meanwhile.

use std::sync::{Arc, Mutex, PoisonError};

use crate::job::{self, QUICK, QUICK_SLOTS};
use crate::loading::{Loading, file_len};
use crate::options::{Words, number};
use crate::server::{Call, Ctx, Mode, Refusal, measured, thread};
use crate::value::{Body, Face, Family, Served, Value};

/// The most bytes of a reply, unless the client wants more: a millisecond's worth.
const CHUNK: usize = 1 << 20;

/// Dumps that clients are reading.
static DUMPS: Mutex<Vec<Dump>> = Mutex::new(Vec::new());
/// More than are read at a time; the oldest goes first.
const MOST_DUMPS: usize = 4;
/// Milliseconds after which a dump that nobody reads on is forgotten.
const PATIENCE: u64 = 60_000;

/// A filter's bytes at the moment of the first call.
#[derive(Clone, Debug)]
struct Dump {
    /// Which value, and as what.
    of: (u64, Form),
    header: Arc<[u8]>,
    bytes: Arc<[u8]>,
    /// When it was last read, in milliseconds since 1970.
    read: u64,
}

/// A filter's file alone, or with what `BF` or `CF` has to remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    File,
    Chunks,
}

impl Dump {
    fn new(id: u64, form: Form, body: &Body) -> Dump {
        let (header, bytes) = match (form, body) {
            (Form::File, Body::Filter(served)) => (None, served.filter.to_bytes().into()),
            _ => {
                let (_, _, header, bytes) = body.dump();
                (header, bytes)
            }
        };
        Dump {
            of: (id, form),
            header: header.unwrap_or_default().into(),
            bytes: bytes.as_ref().into(),
            read: 0,
        }
    }

    /// Keeps a dump for the calls that follow.
    fn keep(&self, ctx: Ctx) {
        forget(|dump| dump.of == self.of);
        let mut dumps = DUMPS.lock().unwrap_or_else(PoisonError::into_inner);
        if dumps.is_empty() {
            ctx.after(PATIENCE, tidy);
        }
        if dumps.len() >= MOST_DUMPS {
            thread::free(dumps.remove(0));
        }
        let read = ctx.now();
        dumps.push(Dump {
            read,
            ..self.clone()
        });
    }

    fn kept(ctx: Ctx, of: (u64, Form)) -> Option<Dump> {
        let mut dumps = DUMPS.lock().unwrap_or_else(PoisonError::into_inner);
        let dump = dumps.iter_mut().find(|dump| dump.of == of)?;
        dump.read = ctx.now();
        Some(dump.clone())
    }
}

/// Frees dumps that are needed no more.
fn forget(is_old: impl Fn(&Dump) -> bool) {
    let mut dumps = DUMPS.lock().unwrap_or_else(PoisonError::into_inner);
    let old: Vec<Dump> = dumps.extract_if(.., |dump| is_old(dump)).collect();
    if !old.is_empty() {
        thread::free(old);
    }
}

/// Frees the dumps that nobody reads on, and comes again while there are others.
fn tidy(ctx: Ctx) {
    let now = ctx.now();
    forget(|dump| dump.read + PATIENCE <= now);
    let dumps = DUMPS.lock().unwrap_or_else(PoisonError::into_inner);
    if !dumps.is_empty() {
        ctx.after(PATIENCE, tidy);
    }
}

/// Frees the dumps of a value that is freed.
pub(crate) fn forget_value(id: u64) {
    forget(|dump| dump.of.0 == id);
}

fn bytes_of(body: &Body) -> usize {
    match body {
        Body::Filter(served) => served.filter.size_in_bytes(),
        Body::BloomChain(chain) => chain.size_in_bytes(),
        Body::CuckooChain(chain) => chain.size_in_bytes(),
        Body::Loading(loading) => loading.len() as usize,
    }
}

/// Finds or makes a dump, and replies from it; in the thread, if encoding is long work.
fn with_dump(
    call: &Call<'_>,
    value: &Value,
    form: Form,
    anew: bool,
    reply: impl FnOnce(Ctx, &Dump) + Send + 'static,
) -> Result<(), Refusal> {
    let id = value.id();
    if let Some(dump) = Dump::kept(call.ctx, (id, form)).filter(|_| !anew) {
        reply(call.ctx, &dump);
        return Ok(());
    }
    if bytes_of(value.body()) > QUICK && call.ctx.flags().may_block() {
        let body = value.body().clone();
        let job = move |waiting: &thread::Waiting| {
            let (dump, body) = waiting.unlocked(move || (Dump::new(id, form, &body), body));
            waiting.locked(|ctx| {
                // From here on the filter may be changed where it is.
                drop(body);
                dump.keep(ctx);
                reply(ctx, &dump);
            });
        };
        return thread::later(call, job).map_err(|_| "ERR no thread could be started".into());
    }
    let dump = Dump::new(id, form, value.body());
    dump.keep(call.ctx);
    reply(call.ctx, &dump);
    Ok(())
}

fn pair(ctx: Ctx, next: u64, bytes: &[u8]) {
    ctx.array(2);
    ctx.int(next as i64);
    ctx.bytes(bytes);
}

/// `BF.SCANDUMP key iterator`
pub(crate) fn scan_bloom(call: &Call<'_>) -> Result<(), Refusal> {
    scan(call, Family::Bloom)
}

/// `CF.SCANDUMP key iterator`
pub(crate) fn scan_cuckoo(call: &Call<'_>) -> Result<(), Refusal> {
    scan(call, Family::Cuckoo)
}

/// The header with 1, then chunks, each with one more than the bytes so far, then 0.
fn scan(call: &Call<'_>, family: Family) -> Result<(), Refusal> {
    let key = call.open(1, Mode::Read)?;
    let value = key.value().ok_or("ERR not found")?;
    value.check(family)?;
    let at = number(call.word(2), "iterator", i64::MAX.unsigned_abs())
        .map_err(|_| "ERR Second argument must be numeric")?;
    let empty_cuckoo = match value.body() {
        Body::CuckooChain(chain) => chain.items() == 0,
        Body::Filter(Served {
            face: Face::Cuckoo { .. },
            filter,
        }) => filter.is_empty(),
        _ => false,
    };
    if empty_cuckoo {
        call.ctx.array(2);
        call.ctx.int(0);
        call.ctx.null();
        return Ok(());
    }
    let id = value.id();
    with_dump(call, value, Form::Chunks, at == 0, move |ctx, dump| {
        if at == 0 {
            return pair(ctx, 1, &dump.header);
        }
        let from = usize::try_from(at - 1)
            .unwrap_or(usize::MAX)
            .min(dump.bytes.len());
        let chunk = &dump.bytes[from..dump.bytes.len().min(from.saturating_add(CHUNK))];
        if chunk.is_empty() {
            forget(|dump| dump.of == (id, Form::Chunks));
            return pair(ctx, 0, b"");
        }
        pair(ctx, at + chunk.len() as u64, chunk);
    })
}

/// `TAMIS.DUMP key position [COUNT bytes]`
pub(crate) fn dump(call: &Call<'_>) -> Result<(), Refusal> {
    let key = call.open(1, Mode::Read)?;
    let value = key.value().ok_or("ERR not found")?;
    value.served()?;
    let at = number(call.word(2), "position", i64::MAX.unsigned_abs())?;
    let mut words = Words::new(call, 3);
    let mut most = CHUNK as u64;
    while let Some(option) = words.option() {
        match option.as_str() {
            "COUNT" => most = words.number("COUNT", 1 << 29)?.max(1),
            _ => return Err(format!("ERR unknown option {option}").into()),
        }
    }
    let id = value.id();
    with_dump(call, value, Form::File, at == 0, move |ctx, dump| {
        let len = dump.bytes.len();
        let from = usize::try_from(at).unwrap_or(usize::MAX).min(len);
        let chunk = &dump.bytes[from..len.min(from.saturating_add(most as usize))];
        if chunk.is_empty() {
            forget(|dump| dump.of == (id, Form::File));
            return pair(ctx, 0, b"");
        }
        pair(ctx, at + chunk.len() as u64, chunk);
    })
}

/// `BF.LOADCHUNK key iterator data`
pub(crate) fn load_bloom(call: &Call<'_>) -> Result<(), Refusal> {
    load_chunk(call, Family::Bloom)
}

/// `CF.LOADCHUNK key iterator data`
pub(crate) fn load_cuckoo(call: &Call<'_>) -> Result<(), Refusal> {
    load_chunk(call, Family::Cuckoo)
}

fn load_chunk(call: &Call<'_>, family: Family) -> Result<(), Refusal> {
    let (at, data) = (call.word(2), call.word(3));
    let at = number(at, "iterator", i64::MAX.unsigned_abs())
        .map_err(|_| "ERR Second argument must be numeric")?;
    let mut key = call.open(1, Mode::Write)?;
    let Some(value) = key.value() else {
        if at != 1 {
            return Err("ERR not found".into());
        }
        let loading = Loading::with_header(family, data)?;
        call.ctx.check_room(loading.total()?.unwrap_or(0))?;
        key.set(Value::new(|| {
            Ok::<_, Refusal>(Body::Loading(loading.clone()))
        })?);
        call.replicate();
        call.ctx.ok();
        return Ok(());
    };
    if value.body().family() != family {
        return Err(crate::server::WRONG_TYPE.into());
    }
    drop(key);
    let place = at
        .checked_sub(1)
        .and_then(|end| end.checked_sub(data.len() as u64));
    let place = place.ok_or("ERR received bad data: no chunk ends there")?;
    take(call, place, data, |ctx, _| ctx.ok())
}

/// `BF.LOAD key data`: a whole filter at once, as the module writes it to files.
pub(crate) fn load_whole(call: &Call<'_>) -> Result<(), Refusal> {
    let data = call.word(2);
    let mut key = call.open(1, Mode::Write)?;
    if key.value().is_some() {
        return Err("BUSYKEY Target key name already exists.".into());
    }
    if data.len() > QUICK && call.ctx.flags().may_change_later() {
        drop(key);
        call.ctx.check_room(data.len() as u64)?;
        // The words of a client that leaves go with it.
        let (name, data) = (call.word(1).to_vec(), Arc::new(call.hold(2)));
        let held = Arc::clone(&data);
        job::create(
            call,
            move || whole(held.bytes()).map(Value::into_body),
            move |ctx| {
                ctx.replicate(c"BF.LOAD", &[&name, data.bytes()]);
                ctx.notify(c"bf.load", &name);
                ctx.ok();
            },
        );
        return Ok(());
    }
    key.set(whole(data)?);
    call.replicate();
    call.notify(c"bf.load");
    call.ctx.ok();
    Ok(())
}

/// The filter of a head and a body in one.
fn whole(data: &[u8]) -> Result<Value, Refusal> {
    let (head, body) = data
        .split_at_checked(crate::value::HEAD)
        .ok_or("ERR received bad data: too short")?;
    let value = Value::decode(head, body.to_vec())?;
    value.check(Family::Bloom)?;
    Ok(value)
}

/// `TAMIS.LOAD key position data`: replies with the bytes that are to come, or −1 while that is
/// not known.
pub(crate) fn load(call: &Call<'_>) -> Result<(), Refusal> {
    let place = number(call.word(2), "position", i64::MAX.unsigned_abs())?;
    let mut key = call.open(1, Mode::Write)?;
    let begins = key.value().is_none();
    if begins {
        if place != 0 {
            return Err("ERR not found; the first chunk is the one at 0".into());
        }
        call.ctx.check_room(file_len(call.word(3))?.unwrap_or(0))?;
        key.set(Value::new(|| {
            Ok::<_, Refusal>(Body::Loading(Loading::of_file()))
        })?);
    } else if key
        .value()
        .is_some_and(|value| !matches!(value.body(), Body::Loading(_)))
    {
        return Err("ERR item exists".into());
    }
    drop(key);
    let result = take(call, place, call.word(3), |ctx, missing| {
        ctx.int(missing.map_or(-1, |missing| missing as i64));
    });
    if begins && result.is_err() {
        let mut key = call.open(1, Mode::Write)?;
        if key.value().is_some() {
            key.delete();
        }
    }
    result
}

/// Takes a chunk; after the last, the filter takes the place of its chunks.
fn take(
    call: &Call<'_>,
    place: u64,
    data: &[u8],
    reply: impl FnOnce(Ctx, Option<u64>) + Send + 'static,
) -> Result<(), Refusal> {
    let mut key = call.open(1, Mode::Write)?;
    let Some(value) = key.value_mut() else {
        return Err("ERR not found".into());
    };
    if value.is_busy() {
        return Err("ERR the filter is being opened".into());
    }
    value.change(0, |body, _| match body {
        Body::Loading(loading) => loading.add(place, data),
        _ => Err("ERR received bad data: the filter is complete".into()),
    })?;
    call.replicate();
    let Body::Loading(loading) = value.body() else {
        return Ok(());
    };
    if !loading.is_complete()? {
        let total = loading.total()?;
        reply(
            call.ctx,
            total.map(|total| total.saturating_sub(loading.len())),
        );
        return Ok(());
    }
    let (loading, id) = (loading.clone(), value.id());
    let is_long = loading.len() as usize > QUICK_SLOTS && call.ctx.flags().may_change_later();
    drop(key);
    let name = call.word(1).to_vec();
    if !is_long {
        let opened = measured(|| loading.finish());
        install(call.ctx, (&name, id), loading, opened, reply);
        return Ok(());
    }
    let job = move |waiting: &thread::Waiting| {
        let opened = waiting.unlocked(|| measured(|| loading.finish()));
        waiting.writing(move |ctx| install(ctx, (&name, id), loading, opened, reply));
    };
    thread::later(call, job).map_err(|_| "ERR no thread could be started".into())
}

/// Puts a filter in the place of its chunks, or takes them away if they are none.
fn install(
    ctx: Ctx,
    (name, id): (&[u8], u64),
    loading: Loading,
    (body, held): (Result<Body, Refusal>, isize),
    reply: impl FnOnce(Ctx, Option<u64>),
) {
    let damaged = body.map(|body| loading.leave(body, held)).err();
    let mut key = match ctx.open(name, Mode::Write) {
        Ok(key) => key,
        Err(refusal) => return ctx.error(&refusal),
    };
    if key.value().is_none_or(|value| value.id() != id) {
        return ctx.error("ERR the key was deleted or replaced while its filter was opened");
    }
    match damaged {
        None => {
            ctx.notify(c"tamis.load", name);
            reply(ctx, Some(0));
        }
        Some(refusal) => {
            key.delete();
            ctx.replicate(c"DEL", &[name]);
            ctx.error(&refusal);
        }
    }
}
