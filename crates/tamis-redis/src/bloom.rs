//! `BF.*`: Bloom filters that grow, with the words and replies that clients know.
//!
//! A filter that grows is a `scalable` one: a list of slices in which nothing is ever moved. One
//! that does not is a `bloom`.

use std::sync::Arc;

use tamis::{AnyFilter, Config, Filter, Keyed, Scalable};

use crate::job;
use crate::options::{Words, number, rate};
use crate::server::{Call, Ctx, Key, Mode, Refusal};
use crate::settings::{self, Secret};
use crate::value::{Answers, Body, Face, Family, Served, Value, Why};

/// What a new filter is to be.
#[derive(Debug)]
struct Plan {
    capacity: u64,
    rate: f64,
    /// 0 for a filter that does not grow.
    expansion: u64,
    /// 0 for shares that are inverse squares.
    tightening: f64,
    secret: Option<Secret>,
}

const MOST_CAPACITY: u64 = 1 << 62;
const MOST_EXPANSION: u64 = 32768;
/// Growths that the filter itself has; others are rounded to these.
const GROWTH: std::ops::RangeInclusive<u64> = 2..=8;

impl Plan {
    /// What the settings say.
    fn default() -> Plan {
        Plan {
            capacity: settings::CAPACITY.get().unsigned_abs(),
            rate: settings::rate(&settings::RATE),
            expansion: settings::EXPANSION.get().unsigned_abs(),
            tightening: tightening(&settings::TIGHTENING.get()),
            secret: None,
        }
    }

    fn secret(&self) -> Result<Secret, Refusal> {
        match self.secret {
            Some(secret) => Ok(secret),
            None => settings::secret(),
        }
    }

    fn build(&self, secret: Secret) -> Result<Body, Refusal> {
        let face = Face::Bloom {
            expansion: self.expansion,
            tightening: self.tightening,
        };
        let mut config = Config::new(self.capacity).fpr(self.rate);
        config = config.kind(face.kind().unwrap_or_default());
        if self.expansion > 0 {
            let growth = self.expansion.clamp(*GROWTH.start(), *GROWTH.end());
            config = config
                .set("growth", growth)
                .set("ratio", ratio(self.tightening));
        }
        let filter: Keyed<AnyFilter> = Keyed::new_with(&config, secret.hashing())
            .map_err(|e| Refusal::from(format!("ERR {e}")))?;
        let filter = Arc::new(filter);
        Ok(Body::Filter(Served { face, filter }))
    }

    /// Makes the filter of a key, and tells replicas how.
    fn create(&self, call: &Call<'_>, key: &mut Key<'_>) -> Result<(), Refusal> {
        let secret = self.secret()?;
        let value = Value::new(|| self.build(secret))?;
        check_limits(call.ctx, &value)?;
        key.set(value);
        let [word, secret] = secret.words();
        let (capacity, expansion) = (self.capacity.to_string(), self.expansion.to_string());
        let (rate, tightening) = (self.rate.to_string(), ratio(self.tightening));
        let mut words = vec![call.word(1), rate.as_bytes(), capacity.as_bytes()];
        match self.expansion {
            0 => words.push(b"NONSCALING"),
            _ => words.extend([b"EXPANSION", expansion.as_bytes()]),
        }
        words.extend([&b"TIGHTENING"[..], tightening.as_bytes()]);
        words.extend([word.as_bytes(), secret.as_bytes()]);
        call.ctx.replicate(c"BF.RESERVE", &words);
        call.notify(c"bf.reserve");
        Ok(())
    }
}

/// Refuses a new filter that is larger than a filter or the server may be.
pub(crate) fn check_limits(ctx: Ctx, value: &Value) -> Result<(), Refusal> {
    let (bytes, most) = (value.memory() as u64, settings::MEMORY.get().unsigned_abs());
    if most > 0 && bytes > most && !ctx.flags().is_replay() {
        return Err("ERR operation exceeds bloom object memory limit".into());
    }
    ctx.check_memory(bytes)
}

fn tightening(text: &str) -> f64 {
    text.parse().unwrap_or(0.0)
}

fn ratio(tightening: f64) -> String {
    if tightening == 0.0 {
        return "square".into();
    }
    tightening.to_string()
}

/// `BF.RESERVE key error_rate capacity …`
pub(crate) fn reserve(call: &Call<'_>) -> Result<(), Refusal> {
    let mut plan = Plan {
        rate: rate(call.word(2), "error rate")?,
        capacity: number(call.word(3), "capacity", MOST_CAPACITY)?,
        ..Plan::default()
    };
    if plan.capacity == 0 {
        return Err("ERR (capacity should be larger than 0)".into());
    }
    let mut words = Words::new(call, 4);
    let (mut expands, mut scales) = (false, true);
    while let Some(option) = words.option() {
        match option.as_str() {
            "EXPANSION" => {
                plan.expansion = words.number("expansion", MOST_EXPANSION)?;
                expands = plan.expansion > 0;
            }
            "NONSCALING" => scales = false,
            "TIGHTENING" => plan.tightening = tightening_option(&mut words)?,
            "SEED" | "SECRET" => plan.secret = Some(words.secret(&option)?),
            _ => return Err("ERR Unknown argument received".into()),
        }
    }
    if !scales && expands {
        return Err("ERR Nonscaling filters cannot expand".into());
    }
    if !scales {
        plan.expansion = 0;
    }
    let mut key = call.open(1, Mode::Write)?;
    if key.value().is_some() {
        return Err("ERR item exists".into());
    }
    plan.create(call, &mut key)?;
    call.ctx.ok();
    Ok(())
}

fn tightening_option(words: &mut Words<'_, '_>) -> Result<f64, Refusal> {
    let text = words.text("TIGHTENING")?;
    settings::is_tightening(text).map_err(|why| Refusal::from(format!("ERR {why}")))?;
    Ok(tightening(text))
}

/// `BF.ADD key item`
pub(crate) fn add(call: &Call<'_>) -> Result<(), Refusal> {
    let mut key = call.open(1, Mode::Write)?;
    if key.value().is_none() {
        Plan::default().create(call, &mut key)?;
    }
    insert(call, &mut key, 2, false)
}

/// `BF.MADD key item…`
pub(crate) fn add_many(call: &Call<'_>) -> Result<(), Refusal> {
    let mut key = call.open(1, Mode::Write)?;
    if key.value().is_none() {
        Plan::default().create(call, &mut key)?;
    }
    insert(call, &mut key, 2, true)
}

/// `BF.INSERT key … ITEMS item…`
pub(crate) fn insert_many(call: &Call<'_>) -> Result<(), Refusal> {
    let mut plan = Plan::default();
    let mut words = Words::new(call, 2);
    let (mut creates, mut items, mut scale_to) = (true, None, None);
    while let Some(option) = words.option() {
        match option.as_str() {
            "CAPACITY" => plan.capacity = words.number("capacity", MOST_CAPACITY)?,
            "ERROR" => plan.rate = words.rate("error rate")?,
            "EXPANSION" => plan.expansion = words.number("expansion", MOST_EXPANSION)?,
            "NONSCALING" => plan.expansion = 0,
            "NOCREATE" => creates = false,
            "TIGHTENING" => plan.tightening = tightening_option(&mut words)?,
            "VALIDATESCALETO" => scale_to = Some(words.number("VALIDATESCALETO", MOST_CAPACITY)?),
            "SEED" | "SECRET" => plan.secret = Some(words.secret(&option)?),
            "ITEMS" => {
                items = Some(words.position());
                break;
            }
            _ => return Err("ERR Unknown argument received".into()),
        }
    }
    if plan.capacity == 0 {
        return Err("ERR (capacity should be larger than 0)".into());
    }
    if items.is_some_and(|items| items >= call.len()) {
        return Err("ERR wrong number of arguments for 'BF.INSERT' command".into());
    }
    if let Some(most) = scale_to {
        check_scale(&plan, most)?;
    }
    let mut key = call.open(1, Mode::Write)?;
    if key.value().is_none() {
        if !creates {
            return Err("ERR not found".into());
        }
        plan.create(call, &mut key)?;
    }
    insert(call, &mut key, items.unwrap_or(call.len()), true)
}

/// Refuses a plan whose filter could never hold so many items.
fn check_scale(plan: &Plan, most: u64) -> Result<(), Refusal> {
    if plan.expansion == 0 && most > plan.capacity {
        return Err("ERR cannot use VALIDATESCALETO with NONSCALING option".into());
    }
    let limit = settings::MEMORY.get() as f64;
    // Slices that are full hold at most twice what the last takes at its rate; 23 bits an item.
    if limit > 0.0 && most as f64 * 23.0 / 8.0 > limit {
        return Err(
            "ERR provided VALIDATESCALETO causes bloom object to exceed memory limit".into(),
        );
    }
    Ok(())
}

/// Adds the items from a word on, up to the first that is refused; replicates those that were new,
/// and replies with one answer, or an array of them.
fn insert(call: &Call<'_>, key: &mut Key<'_>, from: usize, many: bool) -> Result<(), Refusal> {
    let Some(value) = key.value_mut() else {
        return Err("ERR not found".into());
    };
    value.check(Family::Bloom)?;
    job::alter(
        call,
        value,
        from,
        true,
        None,
        |body, items, answers| insert_all(body, items.iter(), answers),
        move |ctx, name, _, items, added| {
            let mut new = added
                .iter()
                .zip(0..)
                .filter(|(added, _)| is_new(added))
                .peekable();
            if new.peek().is_some() {
                items.replicate(ctx, c"BF.MADD", (name, &[]), new.map(|(_, at)| at));
                ctx.notify(c"bf.add", name);
            }
            reply(ctx, added, many);
        },
    )
}

fn is_new(added: &Result<bool, Why>) -> bool {
    *added == Ok(true)
}

fn reply(ctx: Ctx, added: Answers, many: bool) {
    if many {
        ctx.array(added.len());
    }
    for added in added {
        match added {
            Ok(new) => ctx.bool(new),
            Err(why) => ctx.error(&why.told()),
        }
    }
}

fn insert_all<'a>(
    body: &mut Body,
    items: impl ExactSizeIterator<Item = &'a [u8]>,
    answers: &mut Answers,
) {
    match body {
        Body::Filter(served) => insert_served(served, items, answers),
        Body::BloomChain(chain) => {
            let chain = Arc::make_mut(chain);
            until_refused(items, answers, |item| chain.add(item).map_err(Why::Said));
        }
        _ => {}
    }
}

/// Answers for items, up to and with the first refusal.
fn until_refused<'a>(
    items: impl Iterator<Item = &'a [u8]>,
    answers: &mut Answers,
    mut add: impl FnMut(&[u8]) -> Result<bool, Why>,
) {
    for item in items {
        let answer = add(item);
        answers.push(answer);
        if answer.is_err() {
            break;
        }
    }
}

/// Items that are hashed, and whose memory is fetched, before they are added.
const AHEAD: usize = 64;

fn insert_served<'a>(
    served: &mut Served,
    mut items: impl ExactSizeIterator<Item = &'a [u8]>,
    answers: &mut Answers,
) {
    let grows = served.face.kind() != Some("bloom");
    let filter = served.filter_mut();
    let mut hashes = [0; AHEAD];
    while items.len() > 0 {
        let mut ahead = 0;
        for (hash, item) in hashes.iter_mut().zip(items.by_ref()) {
            *hash = filter.hash(item);
            filter.filter().prefetch(*hash);
            ahead += 1;
        }
        for &hash in &hashes[..ahead] {
            let answer = add_one(filter, hash, grows);
            answers.push(answer);
            if answer.is_err() {
                return;
            }
        }
    }
}

fn add_one(filter: &mut Keyed<AnyFilter>, hash: u64, grows: bool) -> Result<bool, Why> {
    if filter.filter().contains(hash) {
        return Ok(false);
    }
    if !grows && filter.len() >= filter.capacity() {
        return Err(Why::Said("ERR non scaling filter is full"));
    }
    let added = filter.insert(&tamis::Hashed(hash));
    added.map(|()| true).map_err(Why::Full)
}

/// Whether items are there, by whatever a key holds: `false` where it holds no filter.
pub(crate) fn contains<'a>(
    value: Option<&Value>,
    items: impl ExactSizeIterator<Item = &'a [u8]> + Clone,
) -> Result<Vec<bool>, Refusal> {
    let mut found = vec![false; items.len()];
    match value.map(Value::body) {
        None => {}
        Some(Body::Filter(served)) => served.filter.contains_batch(items, &mut found),
        Some(Body::BloomChain(chain)) => {
            found
                .iter_mut()
                .zip(items)
                .for_each(|(found, item)| *found = chain.contains(item));
        }
        Some(Body::CuckooChain(chain)) => {
            found
                .iter_mut()
                .zip(items)
                .for_each(|(found, item)| *found = chain.contains(item));
        }
        Some(Body::Loading(_)) => return Err("ERR the filter is not complete".into()),
    }
    Ok(found)
}

/// `BF.EXISTS key item` and `CF.EXISTS key item`: any filter answers, and a key that holds
/// something else has no items.
pub(crate) fn exists(call: &Call<'_>) -> Result<(), Refusal> {
    let key = call.open(1, Mode::Read).ok();
    let value = key.as_ref().and_then(Key::value);
    let found = match value.map(Value::body) {
        Some(Body::Filter(served)) => served.filter.contains(call.word(2)),
        _ => contains(value, call.words(2))?.contains(&true),
    };
    call.ctx.bool(found);
    Ok(())
}

/// `BF.MEXISTS key item…` and `CF.MEXISTS key item…`
pub(crate) fn exist_many(call: &Call<'_>) -> Result<(), Refusal> {
    let key = call.open(1, Mode::Read).ok();
    let found = contains(key.as_ref().and_then(Key::value), call.words(2))?;
    call.ctx.array(found.len());
    found.into_iter().for_each(|found| call.ctx.bool(found));
    Ok(())
}

/// `BF.CARD key`
pub(crate) fn card(call: &Call<'_>) -> Result<(), Refusal> {
    let key = call.open(1, Mode::Read)?;
    let items = match key.value() {
        None => 0,
        Some(value) => {
            value.check(Family::Bloom)?;
            match value.body() {
                Body::BloomChain(chain) => chain.items(),
                _ => value.served()?.filter.len(),
            }
        }
    };
    call.ctx.int(items as i64);
    Ok(())
}

/// What `BF.INFO` tells.
struct Info {
    capacity: u64,
    size: u64,
    filters: u64,
    items: u64,
    expansion: Option<u64>,
    rate: f64,
    tightening: f64,
}

impl Info {
    fn of(value: &Value) -> Result<Info, Refusal> {
        value.check(Family::Bloom)?;
        if let Body::BloomChain(chain) = value.body() {
            return Ok(Info {
                capacity: chain.capacity(),
                size: chain.size_in_bytes() as u64,
                filters: chain.links() as u64,
                items: chain.items(),
                expansion: chain.scales().then(|| u64::from(chain.growth())),
                rate: chain.rate(),
                tightening: 0.5,
            });
        }
        let served = value.served()?;
        let filter = &served.filter;
        let slices = filter.downcast_ref::<Scalable>();
        let (expansion, tightening) = match served.face {
            Face::Bloom {
                expansion,
                tightening,
            } => (expansion, tightening),
            _ => (0, 0.0),
        };
        Ok(Info {
            capacity: slices.map_or(filter.capacity(), Scalable::room),
            size: filter.size_in_bytes() as u64,
            filters: slices.map_or(1, |slices| slices.slices() as u64),
            items: filter.len(),
            expansion: Some(expansion).filter(|&expansion| expansion > 0),
            rate: filter.requested_fpr(),
            tightening,
        })
    }
}

/// `BF.INFO key [field]`
pub(crate) fn info(call: &Call<'_>) -> Result<(), Refusal> {
    let key = call.open(1, Mode::Read)?;
    let info = Info::of(key.value().ok_or("ERR not found")?)?;
    let ctx = call.ctx;
    let int = |number: u64| ctx.int(number as i64);
    let expansion = || match info.expansion {
        Some(expansion) => int(expansion),
        None => ctx.null(),
    };
    let wanted =
        (call.len() > 2).then(|| String::from_utf8_lossy(call.word(2)).to_ascii_uppercase());
    let pair = |name: &str, reply: &dyn Fn()| {
        ctx.map(1);
        ctx.word(name);
        reply();
    };
    let alone = |name: &str, reply: &dyn Fn()| match ctx.is_resp3() {
        true => pair(name, reply),
        false => {
            ctx.array(1);
            reply();
        }
    };
    match wanted.as_deref() {
        None => {
            ctx.map(6);
            ctx.word("Capacity");
            int(info.capacity);
            ctx.word("Size");
            int(info.size);
            ctx.word("Number of filters");
            int(info.filters);
            ctx.word("Number of items inserted");
            int(info.items);
            ctx.word("Expansion rate");
            expansion();
            ctx.word("Error rate");
            ctx.real(info.rate);
        }
        Some("CAPACITY") => alone("Capacity", &|| int(info.capacity)),
        Some("SIZE") => alone("Size", &|| int(info.size)),
        Some("FILTERS") => alone("Number of filters", &|| int(info.filters)),
        Some("ITEMS") => alone("Number of items inserted", &|| int(info.items)),
        Some("EXPANSION") => alone("Expansion rate", &expansion),
        Some("ERROR") => ctx.bytes(info.rate.to_string().as_bytes()),
        Some("TIGHTENING") => ctx.bytes(ratio(info.tightening).as_bytes()),
        Some("MAXSCALEDCAPACITY") => match info.expansion {
            // A list has room for 62 slices.
            Some(_) => ctx.int(i64::MAX),
            None => int(info.capacity),
        },
        Some(_) => return Err("ERR Invalid information value".into()),
    }
    Ok(())
}

/// `BF.DEBUG key`: the items, and what holds them.
pub(crate) fn debug(call: &Call<'_>) -> Result<(), Refusal> {
    let key = call.open(1, Mode::Read)?;
    let info = Info::of(key.value().ok_or("ERR not found")?)?;
    let Info {
        capacity,
        size,
        filters,
        items,
        rate,
        ..
    } = info;
    call.ctx.array(2);
    call.ctx.bytes(format!("size:{items}").as_bytes());
    let parts = format!("filters:{filters} bytes:{size} capacity:{capacity} ratio:{rate}");
    call.ctx.bytes(parts.as_bytes());
    Ok(())
}
