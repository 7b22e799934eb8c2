//! `TAMIS.*`: filters of every kind, windows, merging, advice.

use std::sync::Arc;

use tamis::advise::{Needs, advise};
use tamis::{AnyFilter, Config, Filter, Hashed, Keyed};

use crate::bloom::{check_limits, contains};
use crate::job::{self, Items, QUICK, QUICK_SLOTS};
use crate::options::{Words, number, rate};
use crate::server::{Call, Ctx, Mode, Refusal, measured, thread};
use crate::settings::{self, Secret};
use crate::value::{Answers, Body, Face, Served, Value, Why};
use crate::windows;

fn refuse(why: impl std::fmt::Display) -> Refusal {
    format!("ERR {why}").into()
}

/// What a new filter is to be.
#[derive(Debug)]
struct Plan {
    config: Config,
    secret: Option<Secret>,
    /// Milliseconds since 1970, for a window of time.
    clock: u64,
}

impl Plan {
    /// Reads the words of `TAMIS.CREATE`.
    fn read(call: &Call<'_>) -> Result<Plan, Refusal> {
        let mut words = Words::new(call, 2);
        let (mut config, mut secret) = (Config::new(0), None);
        let (mut clock, mut window) = (call.ctx.now(), false);
        while let Some(option) = words.option() {
            match option.as_str() {
                "CONFIG" => config = words.text("CONFIG")?.parse().map_err(refuse)?,
                "KIND" => config = config.kind(words.text("KIND")?),
                "CAPACITY" => config = config.capacity(words.number("CAPACITY", u64::MAX)?),
                "ERROR" => config = config.fpr(words.rate("ERROR")?),
                "LAST" => {
                    config = config.capacity(words.number("LAST", u64::MAX)?);
                    window = true;
                }
                "WINDOW" => {
                    let seconds = windows::parse_span(words.text("WINDOW")?);
                    let seconds =
                        seconds.ok_or("ERR bad WINDOW: expected 90, 90s, 10m, 2h or 1d")?;
                    config = config.set("seconds", seconds);
                    window = true;
                }
                "PARAM" => {
                    let name = words.text("PARAM")?;
                    config = config.set(name, words.text("PARAM")?);
                }
                "SEED" | "SECRET" => secret = Some(words.secret(&option)?),
                "CLOCK" => clock = words.number("CLOCK", u64::MAX)?,
                _ => return Err(format!("ERR unknown option {option}").into()),
            }
        }
        if config.kind.is_none() {
            config = match window {
                true => config.kind("sliding_table"),
                false => return Err("ERR KIND is missing; TAMIS.ADVISE suggests one".into()),
            };
        }
        let kind = tamis::kind(config.kind.as_deref().unwrap_or_default()).map_err(refuse)?;
        if window && !kind.can.window {
            return Err(format!("ERR a {} forgets nothing; leave KIND out", kind.name).into());
        }
        if !kind.can.insert {
            return Err(format!(
                "ERR a {} takes no items; build it elsewhere and load it with TAMIS.LOAD",
                kind.name
            )
            .into());
        }
        Ok(Plan {
            config,
            secret,
            clock,
        })
    }

    fn build(&self, secret: Secret) -> Result<Body, Refusal> {
        let mut filter: Keyed<AnyFilter> =
            Keyed::new_with(&self.config, secret.hashing()).map_err(refuse)?;
        windows::advance(&mut filter, self.clock);
        Ok(Body::Filter(Served {
            face: Face::Plain,
            filter: Arc::new(filter),
        }))
    }
}

/// `TAMIS.CREATE key KIND kind …`
pub(crate) fn create(call: &Call<'_>) -> Result<(), Refusal> {
    let plan = Plan::read(call)?;
    let mut key = call.open(1, Mode::Write)?;
    if key.value().is_some() {
        return Err("ERR item exists".into());
    }
    let secret = match plan.secret {
        Some(secret) => secret,
        None => settings::secret()?,
    };
    let value = Value::new(|| plan.build(secret))?;
    check_limits(call.ctx, &value)?;
    key.set(value);
    let [option, secret] = secret.words();
    let (config, clock) = (plan.config.to_string(), plan.clock.to_string());
    let mut words: Vec<&[u8]> = vec![call.word(1), b"CONFIG", config.as_bytes()];
    words.extend([
        option.as_bytes(),
        secret.as_bytes(),
        b"CLOCK",
        clock.as_bytes(),
    ]);
    call.ctx.replicate(c"TAMIS.CREATE", &words);
    call.notify(c"tamis.create");
    call.ctx.ok();
    Ok(())
}

/// What items are to a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Add,
    Remove,
}

/// Adds an item, or takes one out; whether anything has changed.
fn change_one(served: &mut Served, item: &[u8], change: Change) -> Result<bool, Why> {
    let filter = Arc::make_mut(&mut served.filter);
    let hash = filter.hash(item);
    if change == Change::Remove {
        let removed = filter.remove(&Hashed(hash)).map_err(Why::Cannot)?;
        if let Face::Cuckoo { deleted, .. } = &mut served.face {
            *deleted += u64::from(removed);
        }
        return Ok(removed);
    }
    if let Some(touched) = windows::touch(filter, hash) {
        return touched.map(|was_there| !was_there).map_err(Why::Full);
    }
    let can = filter.kind().can;
    // Where copies count, each is added.
    let is_set = can.insert && !can.count && !can.remove;
    if is_set && filter.filter().contains(hash) {
        return Ok(false);
    }
    let is_fixed = matches!(served.face, Face::Cuckoo { expansion: 0, .. });
    let is_bounded = can.insert && !can.grow && !can.count;
    if (is_bounded || is_fixed) && filter.len() >= filter.capacity() {
        return Err(Why::Capacity(filter.capacity()));
    }
    filter
        .insert(&Hashed(hash))
        .map(|()| true)
        .map_err(Why::Full)
}

/// Changes items up to the first that is refused.
fn change_all<'a>(
    served: &mut Served,
    items: impl Iterator<Item = &'a [u8]>,
    change: Change,
    clock: u64,
    answers: &mut Answers,
) {
    if windows::clock(&served.filter).is_some() {
        windows::advance(served.filter_mut(), clock);
    }
    for item in items {
        let answer = change_one(served, item, change);
        answers.push(answer);
        if answer.is_err() {
            break;
        }
    }
}

/// `TAMIS.ADD key item…`
pub(crate) fn add(call: &Call<'_>) -> Result<(), Refusal> {
    alter(call, Change::Add, call.ctx.now(), 2)
}

/// `TAMIS.REM key item…`
pub(crate) fn remove(call: &Call<'_>) -> Result<(), Refusal> {
    alter(call, Change::Remove, call.ctx.now(), 2)
}

/// `TAMIS.APPLY key clock ADD|REM|TICK item…`: what replicas and files are told of a window.
pub(crate) fn apply(call: &Call<'_>) -> Result<(), Refusal> {
    let clock = number(call.word(2), "clock", u64::MAX)?;
    match call.word(3) {
        b"ADD" => alter(call, Change::Add, clock, 4),
        b"REM" => alter(call, Change::Remove, clock, 4),
        b"TICK" => {
            let mut key = call.open(1, Mode::Write)?;
            let value = key.value_mut().ok_or("ERR not found")?;
            tick(call.ctx, call.word(1), value, clock)?;
            call.ctx.ok();
            Ok(())
        }
        _ => Err("ERR expected ADD, REM or TICK".into()),
    }
}

/// Tells a window of time what time it is, and replicas too.
fn tick(ctx: Ctx, name: &[u8], value: &mut Value, clock: u64) -> Result<(), Refusal> {
    value.served()?;
    value.change(0, |body, _| {
        age(body, clock);
        Ok(())
    })?;
    replicate_tick(ctx, name, clock);
    Ok(())
}

fn age(body: &mut Body, clock: u64) {
    if let Body::Filter(served) = body {
        windows::advance(served.filter_mut(), clock);
    }
}

fn replicate_tick(ctx: Ctx, name: &[u8], clock: u64) {
    ctx.replicate(
        c"TAMIS.APPLY",
        &[name, clock.to_string().as_bytes(), b"TICK"],
    );
}

fn alter(call: &Call<'_>, change: Change, clock: u64, from: usize) -> Result<(), Refusal> {
    if from >= call.len() {
        return Err("ERR no items were given".into());
    }
    let mut key = call.open(1, Mode::Write)?;
    let value = key
        .value_mut()
        .ok_or("ERR not found; TAMIS.CREATE makes a filter")?;
    value.served()?;
    job::alter(
        call,
        value,
        from,
        change == Change::Add,
        Some(clock),
        move |body, items, answers| {
            if let Body::Filter(served) = body {
                change_all(served, items.iter(), change, clock, answers);
            }
        },
        move |ctx, name, value, items, changed| {
            end(ctx, name, value, items, &changed, (change, clock));
        },
    )
}

/// Replicates what has changed, and replies.
fn end(
    ctx: Ctx,
    name: &[u8],
    value: &Value,
    items: Items<'_>,
    changed: &[Result<bool, Why>],
    (change, clock): (Change, u64),
) {
    let filter = value.served().ok().map(|served| &served.filter);
    let window = filter.is_some_and(|filter| filter.kind().can.window);
    let timed = filter.is_some_and(|filter| windows::clock(filter).is_some());
    // In a window a key that is there is made younger, which is a change as well.
    let has_changed = |changed: &Result<bool, Why>| match changed {
        Ok(changed) => *changed || (window && change == Change::Add),
        Err(_) => false,
    };
    let places = changed.iter().zip(0..).filter(|(c, _)| has_changed(c));
    let mut effects = places.map(|(_, at)| at).peekable();
    let is_effective = effects.peek().is_some();
    let (word, command, event): (&[u8], _, _) = match change {
        Change::Add => (b"ADD", c"TAMIS.ADD", c"tamis.add"),
        Change::Remove => (b"REM", c"TAMIS.REM", c"tamis.rem"),
    };
    if timed {
        let (clock, word) = (clock.to_string(), if is_effective { word } else { b"TICK" });
        let own = [clock.as_bytes(), word];
        items.replicate(ctx, c"TAMIS.APPLY", (name, &own), effects);
    } else if is_effective {
        items.replicate(ctx, command, (name, &[]), effects);
    }
    if is_effective {
        ctx.notify(event, name);
    }
    ctx.array(changed.len());
    for changed in changed {
        match changed {
            Ok(changed) => ctx.bool(*changed),
            Err(why) => ctx.error(&why.told()),
        }
    }
}

/// What a command reads of a key, and replies.
type Answer = fn(Ctx, Option<&Value>, Items<'_>) -> Result<(), Refusal>;

/// Answers from a key; from a window of time, whose clock has moved on, after it was told.
fn read(call: &Call<'_>, answer: Answer) -> Result<(), Refusal> {
    let (ctx, items) = (call.ctx, Items::Words(call, 2));
    let (key, now) = (call.open(1, Mode::Read)?, ctx.now());
    let is_due = key.value().is_some_and(|value| match value.body() {
        Body::Filter(served) => windows::is_due(&served.filter, now) && !value.is_busy(),
        _ => false,
    });
    let flags = ctx.flags();
    if !is_due || flags.is_replica() || flags.is_replay() || ctx.is_paused() {
        return answer(ctx, key.value(), items);
    }
    drop(key);
    let mut key = call.open(1, Mode::Write)?;
    if let Some(value) = key.value_mut() {
        let is_long = move |body: &Body| windows::is_long(body, now);
        if job::must_wait(ctx, value, is_long(value.body())) {
            let copies: Vec<Vec<u8>> = items.iter().map(<[u8]>::to_vec).collect();
            let name = call.word(1).to_vec();
            let change = job::Change {
                room: 0,
                is_long,
                work: move |body: &mut Body, _: &mut Answers| {
                    age(body, now);
                    Ok(())
                },
                done: move |ctx: Ctx, value: &Value, _| {
                    replicate_tick(ctx, &name, now);
                    if let Err(refusal) = answer(ctx, Some(value), Items::Copies(&copies)) {
                        ctx.error(&refusal);
                    }
                },
            };
            change.later(call, value);
            return Ok(());
        }
        tick(ctx, call.word(1), value, now)?;
    }
    answer(ctx, key.value(), items)
}

/// `TAMIS.HAS key item…`
pub(crate) fn has(call: &Call<'_>) -> Result<(), Refusal> {
    read(call, |ctx, value, items| {
        let found = contains(value, items.iter())?;
        ctx.array(found.len());
        found.into_iter().for_each(|found| ctx.bool(found));
        Ok(())
    })
}

/// `TAMIS.COUNT key item…`
pub(crate) fn count(call: &Call<'_>) -> Result<(), Refusal> {
    read(call, |ctx, value, items| {
        let mut counts = Vec::with_capacity(items.len());
        for item in items.iter() {
            counts.push(match value {
                None => 0,
                Some(value) => value.served()?.filter.count(item).map_err(refuse)?,
            });
        }
        ctx.array(counts.len());
        counts.into_iter().for_each(|count| ctx.int(count as i64));
        Ok(())
    })
}

/// `TAMIS.GET key item…`
pub(crate) fn get(call: &Call<'_>) -> Result<(), Refusal> {
    let key = call.open(1, Mode::Read)?;
    let mut values = vec![None; call.len() - 2];
    if let Some(value) = key.value() {
        let map = &value.served()?.filter;
        map.get_batch(call.words(2), &mut values).map_err(refuse)?;
    }
    call.ctx.array(values.len());
    for value in values {
        match value {
            Some(value) => call.ctx.int(value as i64),
            None => call.ctx.null(),
        }
    }
    Ok(())
}

/// `TAMIS.CARD key`
pub(crate) fn card(call: &Call<'_>) -> Result<(), Refusal> {
    read(call, |ctx, value, _| {
        let len = match value {
            None => 0,
            Some(value) => value.served()?.filter.len(),
        };
        ctx.int(len as i64);
        Ok(())
    })
}

/// `TAMIS.INFO key`
pub(crate) fn info(call: &Call<'_>) -> Result<(), Refusal> {
    read(call, tell)
}

fn tell(ctx: Ctx, value: Option<&Value>, _: Items<'_>) -> Result<(), Refusal> {
    let filter = &value.ok_or("ERR not found")?.served()?.filter;
    let kind = filter.kind();
    ctx.map(10);
    ctx.word("kind");
    ctx.bytes(kind.name.as_bytes());
    ctx.word("capacity");
    ctx.int(filter.capacity() as i64);
    ctx.word("items");
    ctx.int(filter.len() as i64);
    ctx.word("error");
    ctx.real(filter.requested_fpr());
    ctx.word("error now");
    // It may take a pass over the whole filter.
    match filter.size_in_bytes() <= QUICK / 4 {
        true => ctx.real(filter.fpr()),
        false => ctx.null(),
    }
    ctx.word("size");
    ctx.int(filter.size_in_bytes() as i64);
    ctx.word("hashing");
    ctx.bytes(filter.hashing().function().as_bytes());
    ctx.word("can");
    let can: Vec<&str> = kind
        .can
        .named()
        .iter()
        .filter(|(_, can)| *can)
        .map(|(name, _)| *name)
        .collect();
    ctx.array(can.len());
    can.iter().for_each(|name| ctx.bytes(name.as_bytes()));
    ctx.word("window seconds");
    match windows::span(filter) {
        Some(span) => ctx.int(span.as_secs() as i64),
        None => ctx.null(),
    }
    ctx.word("params");
    // Encoding a filter only borrows its arrays, but for coded kinds.
    let params = if filter.size_in_bytes() <= QUICK {
        filter.params()
    } else {
        Vec::new()
    };
    ctx.map(params.len());
    for (name, value) in params {
        ctx.bytes(name.as_bytes());
        ctx.bytes(value.to_string().as_bytes());
    }
    Ok(())
}

/// What a merge begins with: the filters of some keys, as they are at one moment.
struct Gathered {
    /// The one that takes in the others: the key's own, or the first source.
    into: Served,
    /// Which value that is; `None` where the key has none.
    of: Option<u64>,
    sources: Vec<Arc<Keyed<AnyFilter>>>,
}

impl Gathered {
    /// The filters of a key and of the sources that are named after it.
    fn new(ctx: Ctx, names: &[Vec<u8>]) -> Result<Gathered, Refusal> {
        let (name, others) = names.split_first().ok_or("ERR no key was given")?;
        let mut sources = Vec::with_capacity(others.len());
        for name in others {
            let key = ctx.open(name, Mode::Read)?;
            let value = key.value().ok_or("ERR a source is not found")?;
            sources.push(value.served()?.clone());
        }
        let key = ctx.open(name, Mode::Write)?;
        let (into, of) = match key.value() {
            Some(value) => (value.served()?.clone(), Some(value.id())),
            None if sources.is_empty() => return Err("ERR no source was given".into()),
            None => (sources.remove(0), None),
        };
        let sources = sources.into_iter().map(|served| served.filter).collect();
        Ok(Gathered { into, of, sources })
    }

    fn size_in_bytes(&self) -> usize {
        let filters = std::iter::once(&self.into.filter).chain(&self.sources);
        filters.map(|filter| filter.size_in_bytes()).sum()
    }

    /// Whether nothing has changed since.
    fn is_same(&self, then: &Gathered) -> bool {
        let same = |(now, then)| Arc::ptr_eq(now, then);
        self.of == then.of
            && self.into.face == then.into.face
            && same((&self.into.filter, &then.into.filter))
            && self.sources.len() == then.sources.len()
            && self.sources.iter().zip(&then.sources).all(same)
    }

    /// The filter that has taken in the others.
    fn merged(&self) -> Result<Body, Refusal> {
        let mut filter = (*self.into.filter).clone();
        for source in &self.sources {
            filter.merge(source).map_err(refuse)?;
        }
        if filter.is_over_capacity() {
            return Err(format!(
                "ERR the union has {} keys, more than the {} that the filter was made for",
                filter.len(),
                filter.capacity()
            )
            .into());
        }
        Ok(Body::Filter(Served {
            face: self.into.face,
            filter: Arc::new(filter),
        }))
    }
}

/// Puts the union of some filters in the first one's key, and ends the command. Gives back what was
/// there, to be freed.
fn put(
    ctx: Ctx,
    names: &[Vec<u8>],
    (body, held): (Result<Body, Refusal>, isize),
) -> Result<Option<Body>, Refusal> {
    let body = body?;
    let mut key = ctx.open(&names[0], Mode::Write)?;
    let old = match key.value_mut() {
        Some(value) => Some(value.replace(body, held)),
        None => {
            key.set(Value::holding(body, held));
            None
        }
    };
    let words: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    ctx.replicate(c"TAMIS.MERGE", &words);
    ctx.notify(c"tamis.merge", &names[0]);
    ctx.ok();
    Ok(old)
}

/// `TAMIS.MERGE key source…`
pub(crate) fn merge(call: &Call<'_>) -> Result<(), Refusal> {
    let names: Vec<Vec<u8>> = call.words(1).map(<[u8]>::to_vec).collect();
    let gathered = Gathered::new(call.ctx, &names)?;
    let size = gathered.size_in_bytes();
    call.ctx.check_room(size as u64)?;
    // What else waits for one of these filters comes first.
    let (mut waits, mut turn) = (size > QUICK_SLOTS, None);
    for at in 1..call.len() {
        let key = call.open(at, Mode::Read)?;
        waits |= key.value().is_some_and(Value::has_waiting);
        if at == 1 {
            turn = key.value().map(job::Turn::new);
        }
    }
    if waits && call.ctx.flags().may_change_later() {
        drop(gathered);
        let job = move |waiting: &thread::Waiting| {
            merge_later(waiting, &names);
            drop(turn);
        };
        return thread::later(call, job).map_err(|_| "ERR no thread could be started".into());
    }
    drop(turn);
    let made = measured(|| gathered.merged());
    put(call.ctx, &names, made)?;
    Ok(())
}

/// Merges while others are served. What is replicated is the command, so that the filters must be
/// at its end what they were when it began; if they are not, they are merged at once.
fn merge_later(waiting: &thread::Waiting, names: &[Vec<u8>]) {
    let gather = |ctx: Ctx| match ctx.flags().is_replica() {
        true => Err(job::READONLY.into()),
        false => Gathered::new(ctx, names),
    };
    let Some(before) = waiting.writing(|ctx| gather(ctx).map_err(|e| ctx.error(&e)).ok()) else {
        return;
    };
    let made = waiting.unlocked(|| measured(|| before.merged()));
    let old = waiting.writing(|ctx| {
        let ended = gather(ctx).and_then(|now| {
            let made = match now.is_same(&before) {
                true => made,
                false => measured(|| now.merged()),
            };
            put(ctx, names, made)
        });
        ended.map_err(|refusal| ctx.error(&refusal)).ok()
    });
    // Freed where nobody waits for it.
    waiting.unlocked(move || drop((old, before)));
}

/// Makes one change to a whole filter, at once or in the thread, and then ends the command.
fn reshape(
    call: &Call<'_>,
    value: &mut Value,
    is_long: bool,
    work: impl Fn(&mut Body, &mut Answers) -> Result<(), Refusal> + Send + 'static,
    done: impl FnOnce(Ctx) + Send + 'static,
) -> Result<(), Refusal> {
    if job::must_wait(call.ctx, value, is_long) {
        let change = job::Change {
            room: 0,
            is_long: move |_: &Body| is_long,
            work,
            done: move |ctx: Ctx, _: &Value, _| done(ctx),
        };
        change.later(call, value);
        return Ok(());
    }
    value.change(0, work)?;
    done(call.ctx);
    Ok(())
}

/// `TAMIS.RESIZE key HALF`
pub(crate) fn resize(call: &Call<'_>) -> Result<(), Refusal> {
    if !call.word(2).eq_ignore_ascii_case(b"HALF") {
        return Err("ERR expected HALF".into());
    }
    let mut key = call.open(1, Mode::Write)?;
    let value = key.value_mut().ok_or("ERR not found")?;
    let served = value.served()?;
    if served.face != Face::Plain {
        return Err("ERR only a filter that TAMIS.CREATE or TAMIS.LOAD made is halved".into());
    }
    let size = served.filter.size_in_bytes();
    let work = |body: &mut Body, _: &mut Answers| match body {
        Body::Filter(served) => {
            served.filter = Arc::new(served.filter.halve().map_err(refuse)?);
            Ok(())
        }
        _ => Err(Refusal::from("ERR not found")),
    };
    let name = call.word(1).to_vec();
    reshape(call, value, size > QUICK_SLOTS, work, move |ctx| {
        ctx.replicate(c"TAMIS.RESIZE", &[&name, b"HALF"]);
        ctx.notify(c"tamis.resize", &name);
        ctx.ok();
    })
}

/// `TAMIS.ADVISE keys error …`: the kinds that can do all that is needed, the best first.
pub(crate) fn advice(call: &Call<'_>) -> Result<(), Refusal> {
    let keys = number(call.word(1), "keys", 1 << 48)?;
    let mut needs = Needs::new(keys, rate(call.word(2), "error rate")?);
    let mut words = Words::new(call, 3);
    while let Some(option) = words.option() {
        match option.as_str() {
            "FIXED" => needs.fixed = true,
            "REMOVE" => needs.remove = true,
            "COUNT" => needs.copies = words.number("COUNT", u64::MAX)?,
            "MERGE" => needs.merge = true,
            "HALVE" => needs.halve = true,
            "MAP" => needs.map = true,
            "GROW" => needs.grow = true,
            "WINDOW" => needs.window = true,
            _ => return Err(format!("ERR unknown option {option}").into()),
        }
    }
    let advice = advise(&needs).map_err(refuse)?;
    let ctx = call.ctx;
    ctx.array(advice.choices.len());
    for choice in &advice.choices {
        ctx.map(4);
        ctx.word("kind");
        ctx.bytes(choice.kind.name.as_bytes());
        ctx.word("bytes");
        ctx.int(choice.bytes.ceil() as i64);
        ctx.word("bits per key");
        ctx.real(choice.bits_per_key);
        ctx.word("why");
        ctx.bytes(choice.why.as_bytes());
    }
    Ok(())
}
