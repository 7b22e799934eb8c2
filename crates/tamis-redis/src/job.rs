//! Changes: made at once, or, where that takes longer than a server may stand still, by the thread.
//!
//! The thread makes a long change to a copy, while the value itself answers, and then puts the copy
//! in its place. What comes for that value meanwhile waits in the thread's queue, and is done in
//! place when its turn comes.

use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::growth;
use crate::server::{Call, Ctx, Mode, Refusal, measured, populate, thread};
use crate::value::{Answers, Body, Value};
use crate::windows;

/// Bytes that are copied, merged or verified within a few milliseconds.
pub(crate) const QUICK: usize = 4 << 20;
/// Bytes of new memory whose pages come within a few milliseconds, if all are touched at once. From
/// here on an array has pages of its own, which the thread makes ready.
pub(crate) const QUICK_PAGES: usize = QUICK / 4;
/// Bytes of a table whose slots are read and written one by one in that time: some hundred
/// thousand.
pub(crate) const QUICK_SLOTS: usize = QUICK / 32;

/// Counts a command that waits for a value, for as long as it does.
#[derive(Debug)]
pub(crate) struct Turn(Arc<AtomicU32>);

impl Turn {
    pub(crate) fn new(value: &Value) -> Turn {
        value.waiting().fetch_add(1, Ordering::Relaxed);
        Turn(Arc::clone(value.waiting()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The items of a command: its words from a position on, or copies of them where it waits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Items<'a> {
    Words(&'a Call<'a>, usize),
    Copies(&'a [Vec<u8>]),
}

impl<'a> Items<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Items::Words(call, from) => call.len() - from,
            Items::Copies(copies) => copies.len(),
        }
    }

    fn get(self, at: usize) -> &'a [u8] {
        match self {
            Items::Words(call, from) => call.word(from + at),
            Items::Copies(copies) => copies.get(at).map_or(&[], Vec::as_slice),
        }
    }

    pub(crate) fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        (0..self.len()).map(move |at| self.get(at))
    }

    /// Sends a command with some of the items, by their positions, to replicas and to the
    /// append-only file.
    pub(crate) fn replicate(
        self,
        ctx: Ctx,
        command: &CStr,
        (name, own): (&[u8], &[&[u8]]),
        chosen: impl Iterator<Item = usize>,
    ) {
        match self {
            Items::Words(call, from) => {
                call.replicate_some(command, own, chosen.map(|at| from + at));
            }
            Items::Copies(_) => {
                let mut words = vec![name];
                words.extend_from_slice(own);
                words.extend(chosen.map(|at| self.get(at)));
                ctx.replicate(command, &words);
            }
        }
    }
}

/// Whether a change must wait for its turn in the thread: it is long, the first to a large array,
/// or others wait already.
pub(crate) fn must_wait(ctx: Ctx, value: &Value, is_long: bool) -> bool {
    (is_long || value.is_fresh() || value.is_busy()) && ctx.flags().may_change_later()
}

/// Changes a value by the items of a command, which are so many insertions or none, and then ends
/// the command. A window of time is told the time.
///
/// # Errors
///
/// Insertions for which there is no memory.
pub(crate) fn alter(
    call: &Call<'_>,
    value: &mut Value,
    from: usize,
    inserts: bool,
    clock: Option<u64>,
    work: impl Fn(&mut Body, Items<'_>, &mut Answers) + Send + 'static,
    done: impl FnOnce(Ctx, &[u8], &Value, Items<'_>, Answers) + Send + 'static,
) -> Result<(), Refusal> {
    let items = Items::Words(call, from);
    let insertions = if inserts { items.len() } else { 0 };
    let ages = move |body: &Body| clock.is_some_and(|clock| windows::is_long(body, clock));
    let is_long = growth::check(call.ctx, value, insertions)? || ages(value.body());
    if must_wait(call.ctx, value, is_long) {
        let copies: Arc<[Vec<u8>]> = items.iter().map(<[u8]>::to_vec).collect();
        let (same, name) = (Arc::clone(&copies), call.word(1).to_vec());
        let change = Change {
            room: items.len(),
            is_long: move |body: &Body| {
                growth::of(body, insertions).is_some_and(|g| g.is_long) || ages(body)
            },
            work: move |body: &mut Body, answers: &mut Answers| {
                work(body, Items::Copies(&copies), answers);
                Ok(())
            },
            done: move |ctx: Ctx, value: &Value, answers| {
                done(ctx, &name, value, Items::Copies(&same), answers);
            },
        };
        change.later(call, value);
        return Ok(());
    }
    let answers = value.change(items.len(), |body, answers| {
        work(body, items, answers);
        Ok(())
    })?;
    done(call.ctx, call.word(1), value, items, answers);
    Ok(())
}

/// The refusal of a command whose server became a replica while it waited.
pub(crate) const READONLY: &str = "READONLY You can't write against a read only replica.";

/// The refusal of a command whose key went away while it waited.
const GONE: &str = "ERR the key was deleted or replaced while the command waited; try again";

/// A change that the thread makes.
pub(crate) struct Change<L, W, D> {
    /// Answers that there will be.
    pub(crate) room: usize,
    /// Whether the change is to be made to a copy.
    pub(crate) is_long: L,
    pub(crate) work: W,
    /// Replicates and replies.
    pub(crate) done: D,
}

impl<L, W, D> Change<L, W, D>
where
    L: Fn(&Body) -> bool + Send + 'static,
    W: Fn(&mut Body, &mut Answers) -> Result<(), Refusal> + Send + 'static,
    D: FnOnce(Ctx, &Value, Answers) + Send + 'static,
{
    /// Makes the change when its turn comes, and lets the client wait for it.
    pub(crate) fn later(self, call: &Call<'_>, value: &Value) {
        let (name, id, turn) = (call.word(1).to_vec(), value.id(), Turn::new(value));
        let is_fresh = value.is_fresh();
        let job = move |waiting: &thread::Waiting| {
            if is_fresh {
                waiting.unlocked(populate);
            }
            self.run(waiting, &name, id);
            drop(turn);
        };
        if thread::later(call, job).is_err() {
            call.ctx.error("ERR no thread could be started");
        }
    }

    fn run(self, waiting: &thread::Waiting, name: &[u8], id: u64) {
        let Change {
            room,
            is_long,
            work,
            done,
        } = self;
        let mut done = Some(done);
        let mut end = |ctx: Ctx, value: &Value, changed: Result<Answers, Refusal>| match changed {
            Ok(answers) => {
                if let Some(done) = done.take() {
                    done(ctx, value, answers);
                }
            }
            Err(refusal) => ctx.error(&refusal),
        };
        let before = waiting.writing(|ctx| {
            with_value(ctx, name, id, |value| {
                if is_long(value.body()) {
                    return Some(value.body().clone());
                }
                let changed = value.change(room, &work);
                end(ctx, value, changed);
                None
            })
        });
        let Some(before) = before else {
            return;
        };
        let (mut body, mut answers) = (before.clone(), Vec::with_capacity(room));
        let (result, held, body, answers, work) = waiting.unlocked(move || {
            let (result, held) = measured(|| work(&mut body, &mut answers));
            (result, held, body, answers, work)
        });
        let old = waiting.writing(|ctx| {
            with_value(ctx, name, id, |value| {
                if !value.body().is_same(&before) {
                    // A script, or a transaction, was faster.
                    let changed = value.change(room, &work);
                    end(ctx, value, changed);
                    return None;
                }
                // The copy may be none, where nothing had to be changed.
                let is_new = result.is_ok() && !body.is_same(&before);
                let old = is_new.then(|| value.replace(body, held));
                end(ctx, value, result.map(|()| answers));
                old
            })
        });
        // Freed where nobody waits for it.
        waiting.unlocked(move || drop((old, before)));
    }
}

/// Does something to the value that a command waits for, or replies that it has gone.
fn with_value<T>(
    ctx: Ctx,
    name: &[u8],
    id: u64,
    work: impl FnOnce(&mut Value) -> Option<T>,
) -> Option<T> {
    if ctx.flags().is_replica() {
        ctx.error(READONLY);
        return None;
    }
    let mut key = match ctx.open(name, Mode::Write) {
        Ok(key) => key,
        Err(refusal) => {
            ctx.error(&refusal);
            return None;
        }
    };
    match key.value_mut().filter(|value| value.id() == id) {
        Some(value) => work(value),
        None => {
            ctx.error(GONE);
            None
        }
    }
}

/// Makes a value in the thread, for a key that has none, and then ends the command.
pub(crate) fn create(
    call: &Call<'_>,
    make: impl FnOnce() -> Result<Body, Refusal> + Send + 'static,
    done: impl FnOnce(Ctx) + Send + 'static,
) {
    let name = call.word(1).to_vec();
    let job = move |waiting: &thread::Waiting| {
        let made = waiting.unlocked(|| Value::new(make));
        waiting.writing(move |ctx| {
            let set = || -> Result<(), Refusal> {
                let value = made?;
                let mut key = ctx.open(&name, Mode::Write)?;
                if key.value().is_some() || ctx.flags().is_replica() {
                    return Err(GONE.into());
                }
                key.set(value);
                Ok(())
            };
            match set() {
                Ok(()) => done(ctx),
                Err(refusal) => ctx.error(&refusal),
            }
        });
    };
    if thread::later(call, job).is_err() {
        call.ctx.error("ERR no thread could be started");
    }
}
