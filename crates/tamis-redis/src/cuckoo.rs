//! `CF.*`: filters that let items leave and count them, with the words and replies that clients
//! know.
//!
//! The filter is an `aleph`: one table that doubles with its items, keeps the rate that was asked
//! for, and counts 64 copies of an item. Doubling a large table is long work ([`job`]).

use std::sync::Arc;

use tamis::{AnyFilter, Config, Filter, FullKind, Keyed};

use crate::bloom::check_limits;
use crate::job::{self, Items};
use crate::options::{Words, number};
use crate::server::{Call, Ctx, Key, Mode, Refusal};
use crate::settings::{self, Secret};
use crate::value::{Answers, Body, Face, Family, Served, Value, Why};

/// What a new filter is to be.
#[derive(Debug)]
struct Plan {
    capacity: u64,
    rate: f64,
    bucket_size: u64,
    max_iterations: u64,
    /// 0 for a filter that does not grow.
    expansion: u64,
    secret: Option<Secret>,
}

const MOST_CAPACITY: u64 = 1 << 62;

impl Plan {
    /// What the settings say.
    fn default() -> Plan {
        Plan {
            capacity: settings::CUCKOO_CAPACITY.get().unsigned_abs(),
            rate: settings::rate(&settings::CUCKOO_RATE),
            bucket_size: settings::BUCKET_SIZE.get().unsigned_abs(),
            max_iterations: settings::ITERATIONS.get().unsigned_abs(),
            expansion: settings::CUCKOO_EXPANSION.get().unsigned_abs(),
            secret: None,
        }
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.bucket_size == 0 || self.max_iterations == 0 {
            return Err("ERR bucket size and max iterations must be at least 1".into());
        }
        match self.capacity >= 2 * self.bucket_size {
            true => Ok(()),
            false => Err("ERR Capacity must be at least (BucketSize * 2)".into()),
        }
    }

    fn build(&self, secret: Secret) -> Result<Body, Refusal> {
        let face = Face::Cuckoo {
            bucket_size: self.bucket_size,
            max_iterations: self.max_iterations,
            expansion: self.expansion,
            deleted: 0,
        };
        let config = Config::new(self.capacity).fpr(self.rate);
        let config = config.kind(face.kind().unwrap_or_default());
        let filter: Keyed<AnyFilter> = Keyed::new_with(&config, secret.hashing())
            .map_err(|e| Refusal::from(format!("ERR {e}")))?;
        let filter = Arc::new(filter);
        Ok(Body::Filter(Served { face, filter }))
    }

    /// Makes the filter of a key, and tells replicas how.
    fn create(&self, call: &Call<'_>, key: &mut Key<'_>) -> Result<(), Refusal> {
        let secret = match self.secret {
            Some(secret) => secret,
            None => settings::secret()?,
        };
        let value = Value::new(|| self.build(secret))?;
        check_limits(call.ctx, &value)?;
        key.set(value);
        let [word, secret] = secret.words();
        let rate = self.rate.to_string();
        let numbers = [
            self.capacity,
            self.bucket_size,
            self.max_iterations,
            self.expansion,
        ];
        let [capacity, bucket_size, iterations, expansion] = numbers.map(|n| n.to_string());
        call.ctx.replicate(
            c"CF.RESERVE",
            &[
                call.word(1),
                capacity.as_bytes(),
                b"BUCKETSIZE",
                bucket_size.as_bytes(),
                b"MAXITERATIONS",
                iterations.as_bytes(),
                b"EXPANSION",
                expansion.as_bytes(),
                b"ERROR",
                rate.as_bytes(),
                word.as_bytes(),
                secret.as_bytes(),
            ],
        );
        call.notify(c"cf.reserve");
        Ok(())
    }
}

/// `CF.RESERVE key capacity …`
pub(crate) fn reserve(call: &Call<'_>) -> Result<(), Refusal> {
    let mut plan = Plan {
        capacity: number(call.word(2), "capacity", MOST_CAPACITY)?,
        ..Plan::default()
    };
    let mut words = Words::new(call, 3);
    while let Some(option) = words.option() {
        match option.as_str() {
            "BUCKETSIZE" => plan.bucket_size = words.number("bucket size", 255)?,
            "MAXITERATIONS" => plan.max_iterations = words.number("max iterations", 65535)?,
            "EXPANSION" => plan.expansion = words.number("expansion", 32768)?,
            "ERROR" => plan.rate = words.rate("error rate")?,
            "SEED" | "SECRET" => plan.secret = Some(words.secret(&option)?),
            _ => return Err("ERR Unknown argument received".into()),
        }
    }
    plan.check()?;
    let mut key = call.open(1, Mode::Write)?;
    if key.value().is_some() {
        return Err("ERR item exists".into());
    }
    plan.create(call, &mut key)?;
    call.ctx.ok();
    Ok(())
}

/// What the four commands that add differ in.
#[derive(Clone, Copy, Debug)]
struct Manner {
    /// Whether an item that is there is left alone.
    only_new: bool,
    /// Whether the reply is an array, in which a refusal is −1.
    many: bool,
}

/// `CF.ADD key item`
pub(crate) fn add(call: &Call<'_>) -> Result<(), Refusal> {
    one(call, false)
}

/// `CF.ADDNX key item`
pub(crate) fn add_new(call: &Call<'_>) -> Result<(), Refusal> {
    one(call, true)
}

fn one(call: &Call<'_>, only_new: bool) -> Result<(), Refusal> {
    let many = false;
    insert(call, Some(Plan::default()), 2, Manner { only_new, many })
}

/// `CF.INSERT key … ITEMS item…`
pub(crate) fn insert_many(call: &Call<'_>) -> Result<(), Refusal> {
    many(call, false)
}

/// `CF.INSERTNX key … ITEMS item…`
pub(crate) fn insert_new(call: &Call<'_>) -> Result<(), Refusal> {
    many(call, true)
}

fn many(call: &Call<'_>, only_new: bool) -> Result<(), Refusal> {
    let mut plan = Plan::default();
    let mut words = Words::new(call, 2);
    let (mut creates, mut items) = (true, None);
    while let Some(option) = words.option() {
        match option.as_str() {
            "CAPACITY" => plan.capacity = words.number("capacity", MOST_CAPACITY)?,
            "ERROR" => plan.rate = words.rate("error rate")?,
            "NOCREATE" => creates = false,
            "ITEMS" => {
                items = Some(words.position());
                break;
            }
            _ => return Err("ERR Unknown argument received".into()),
        }
    }
    let Some(items) = items.filter(|&items| items < call.len()) else {
        return Err("ERR wrong number of arguments: ITEMS and items are missing".into());
    };
    plan.check()?;
    let many = true;
    insert(
        call,
        creates.then_some(plan),
        items,
        Manner { only_new, many },
    )
}

/// Adds the items from a word on to a filter that is there, or made by a plan.
fn insert(call: &Call<'_>, plan: Option<Plan>, from: usize, manner: Manner) -> Result<(), Refusal> {
    let mut key = call.open(1, Mode::Write)?;
    if key.value().is_none() {
        plan.ok_or("ERR not found")?.create(call, &mut key)?;
    }
    let Some(value) = key.value_mut() else {
        return Err("ERR not found".into());
    };
    value.check(Family::Cuckoo)?;
    job::alter(
        call,
        value,
        from,
        true,
        None,
        move |body, items, answers| insert_all(body, items.iter(), manner, answers),
        move |ctx, name, _, items, added| end(ctx, name, items, added, manner),
    )
}

/// Adds items; what became of each.
fn insert_all<'a>(
    body: &mut Body,
    items: impl Iterator<Item = &'a [u8]>,
    manner: Manner,
    answers: &mut Answers,
) {
    match body {
        Body::Filter(served) => {
            let grows = !matches!(served.face, Face::Cuckoo { expansion: 0, .. });
            let filter = served.filter_mut();
            answers.extend(items.map(|item| insert_one(filter, item, grows, manner)));
        }
        Body::CuckooChain(chain) => {
            let chain = Arc::make_mut(chain);
            let add = |item: &[u8]| {
                if manner.only_new && chain.contains(item) {
                    return Ok(false);
                }
                chain.add(item).map(|()| true).map_err(Why::Said)
            };
            answers.extend(items.map(add));
        }
        _ => {}
    }
}

fn insert_one(
    filter: &mut Keyed<AnyFilter>,
    item: &[u8],
    grows: bool,
    manner: Manner,
) -> Result<bool, Why> {
    let hash = filter.hash(item);
    if manner.only_new && filter.filter().contains(hash) {
        return Ok(false);
    }
    if !grows && filter.len() >= filter.capacity() {
        return Err(Why::Said("Filter is full"));
    }
    match filter.insert(&tamis::Hashed(hash)) {
        Ok(()) => Ok(true),
        Err(full) if full.kind() == FullKind::Capacity => Err(Why::Said("Filter is full")),
        Err(full) => Err(Why::Full(full)),
    }
}

/// Replicates what was added, and replies.
fn end(ctx: Ctx, name: &[u8], items: Items<'_>, added: Answers, manner: Manner) {
    let is_new = |added: &Result<bool, Why>| *added == Ok(true);
    let mut new = added
        .iter()
        .zip(0..)
        .filter(|(added, _)| is_new(added))
        .peekable();
    if new.peek().is_some() {
        let own: [&[u8]; 2] = [b"NOCREATE", b"ITEMS"];
        items.replicate(ctx, c"CF.INSERT", (name, &own), new.map(|(_, at)| at));
        ctx.notify(c"cf.add", name);
    }
    if !manner.many {
        return match added.into_iter().next() {
            Some(Ok(new)) => ctx.bool(new),
            Some(Err(why)) => ctx.error(&why.told()),
            None => ctx.error("ERR no item was given"),
        };
    }
    ctx.array(added.len());
    for added in added {
        match added {
            Ok(new) if manner.only_new => ctx.int(new.into()),
            Ok(new) => ctx.bool(new),
            Err(_) => ctx.int(-1),
        }
    }
}

/// `CF.DEL key item`
pub(crate) fn remove(call: &Call<'_>) -> Result<(), Refusal> {
    let mut key = call.open(1, Mode::Write)?;
    let Some(value) = key.value_mut() else {
        return Err("Not found".into());
    };
    value.check(Family::Cuckoo)?;
    job::alter(
        call,
        value,
        2,
        false,
        None,
        |body, items, answers| answers.extend(items.iter().map(|item| Ok(remove_one(body, item)))),
        |ctx, name, _, items, removed| {
            let removed = removed.contains(&Ok(true));
            if removed {
                items.replicate(ctx, c"CF.DEL", (name, &[]), 0..1);
                ctx.notify(c"cf.del", name);
            }
            ctx.bool(removed);
        },
    )
}

fn remove_one(body: &mut Body, item: &[u8]) -> bool {
    match body {
        Body::Filter(served) => {
            let removed = served.filter_mut().remove(item).unwrap_or(false);
            if let Face::Cuckoo { deleted, .. } = &mut served.face {
                *deleted += u64::from(removed);
            }
            removed
        }
        Body::CuckooChain(chain) => Arc::make_mut(chain).remove(item),
        _ => false,
    }
}

/// `CF.COUNT key item`
pub(crate) fn count(call: &Call<'_>) -> Result<(), Refusal> {
    let key = call.open(1, Mode::Read)?;
    let count = match key.value() {
        None => 0,
        Some(value) => {
            value.check(Family::Cuckoo)?;
            match value.body() {
                Body::CuckooChain(chain) => chain.count(call.word(2)),
                _ => {
                    let counted = value.served()?.filter.count(call.word(2));
                    counted.map_err(|e| Refusal::from(format!("ERR {e}")))?
                }
            }
        }
    };
    call.ctx.int(count as i64);
    Ok(())
}

/// `CF.INFO key`
pub(crate) fn info(call: &Call<'_>) -> Result<(), Refusal> {
    let key = call.open(1, Mode::Read)?;
    let value = key.value().ok_or("ERR not found")?;
    value.check(Family::Cuckoo)?;
    let ctx = call.ctx;
    let tell = |name: &str, number: u64| {
        ctx.word(name);
        ctx.int(number as i64);
    };
    if let Body::CuckooChain(chain) = value.body() {
        let [bucket_size, iterations, expansion] = chain.shape().map(u64::from);
        ctx.map(8);
        tell("Size", chain.size_in_bytes() as u64);
        tell("Number of buckets", chain.buckets());
        tell("Number of filters", chain.tables() as u64);
        tell("Number of items inserted", chain.items());
        tell("Number of items deleted", chain.deletions());
        tell("Bucket size", bucket_size);
        tell("Expansion rate", expansion);
        tell("Max iterations", iterations);
        return Ok(());
    }
    let served = value.served()?;
    let Face::Cuckoo {
        bucket_size,
        max_iterations,
        expansion,
        deleted,
    } = served.face
    else {
        return Err("ERR not found".into());
    };
    let filter = &served.filter;
    // As many as its capacity would have in buckets; a table that has grown is one still.
    let buckets = (filter.capacity() / bucket_size.max(1)).max(1);
    ctx.map(8);
    tell("Size", filter.size_in_bytes() as u64);
    tell("Number of buckets", buckets.next_power_of_two());
    tell("Number of filters", 1);
    tell("Number of items inserted", filter.len());
    tell("Number of items deleted", deleted);
    tell("Bucket size", bucket_size);
    tell("Expansion rate", expansion);
    tell("Max iterations", max_iterations);
    Ok(())
}
