//! Long work: done by a thread, while its client waits and all others are served.
//!
//! There is one thread and one queue, so that what waits for a filter comes in the order in which
//! it was asked for. The thread keeps the server's lock from one short job to the next, for a
//! millisecond at most: so commands that have queued up behind a long one are worked off at once.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::api::{RawBlocked, RawCtx, api};
use super::{Call, Ctx, pages};

/// How long the thread keeps the lock for short jobs.
const HOLD: Duration = Duration::from_millis(1);
/// How long it waits before it asks again whether changes may be sent to replicas.
const PAUSE: Duration = Duration::from_millis(5);

thread_local! {
    /// Since when this thread has the server's lock, and how long it had run by then.
    static HELD_SINCE: Cell<Option<(Instant, Duration)>> = const { Cell::new(None) };
    /// The context to lock with.
    // SAFETY: without a client the context is one of no command, and lives as long as the thread.
    static CONTEXT: *mut RawCtx = unsafe { (api().get_thread_safe_context)(null_mut()) };
}

/// The most processor time, in microseconds, that the thread has taken while it had the lock.
static LONGEST: AtomicU64 = AtomicU64::new(0);

pub(crate) fn longest() -> u64 {
    LONGEST.load(Ordering::Relaxed)
}

/// Processor time of this thread.
fn ran() -> Duration {
    // SAFETY: all zeros are a time.
    let mut time: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the target is writable; on a refusal it stays zero.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(
        time.tv_sec.try_into().unwrap_or(0),
        time.tv_nsec.try_into().unwrap_or(0),
    )
}

/// Takes the server's lock, unless this thread has it.
fn lock() {
    if HELD_SINCE.get().is_none() {
        // SAFETY: a live context; the lock is given back by `unlock`.
        CONTEXT.with(|&context| unsafe { (api().thread_safe_context_lock)(context) });
        HELD_SINCE.set(Some((Instant::now(), ran())));
    }
}

/// Gives the server's lock back, if this thread has it.
fn unlock() {
    if let Some((_, before)) = HELD_SINCE.take() {
        let held = ran().saturating_sub(before).as_micros();
        LONGEST.fetch_max(held.try_into().unwrap_or(u64::MAX), Ordering::Relaxed);
        // SAFETY: a live context; `lock` has locked, in this thread.
        CONTEXT.with(|&context| unsafe { (api().thread_safe_context_unlock)(context) });
    }
}

/// A client that waits, and where its reply goes.
#[derive(Debug)]
pub(crate) struct Waiting {
    client: *mut RawBlocked,
    raw: *mut RawCtx,
    database: i32,
}

// SAFETY: the server lets another thread reply to a client that waits.
unsafe impl Send for Waiting {}

impl Waiting {
    /// Runs something while no command runs: keys may be read, and replied.
    pub(crate) fn locked<T>(&self, work: impl FnOnce(Ctx) -> T) -> T {
        lock();
        let ctx = Ctx { raw: self.raw };
        ctx.select(self.database);
        work(ctx)
    }

    /// As [`locked`](Waiting::locked), at a moment when keys may be changed as well: not while a
    /// failover, or whoever paused the writing clients, relies on that nothing changes.
    pub(crate) fn writing<T>(&self, work: impl FnOnce(Ctx) -> T) -> T {
        while self.locked(Ctx::is_paused) {
            unlock();
            std::thread::sleep(PAUSE);
        }
        self.locked(work)
    }

    /// Runs something long, while commands run.
    pub(crate) fn unlocked<T>(&self, work: impl FnOnce() -> T) -> T {
        unlock();
        work()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // SAFETY: our own context, freed once; then the client goes on with the reply.
        unsafe {
            (api().free_thread_safe_context)(self.raw);
            (api().unblock_client)(self.client, null_mut());
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

static QUEUE: Mutex<Option<Sender<Job>>> = Mutex::new(None);

/// The queue; its thread is started with the first job.
fn queue() -> Option<Sender<Job>> {
    let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
    if queue.is_none() {
        let (sender, jobs) = channel::<Job>();
        let work = move || {
            pages::be_eager();
            let mut next = jobs.recv().ok();
            while let Some(job) = next {
                // A job replies in any case: its client is let go when it is dropped.
                let _ = catch_unwind(AssertUnwindSafe(job));
                let is_short = HELD_SINCE
                    .get()
                    .is_some_and(|(since, _)| since.elapsed() < HOLD);
                next = is_short.then(|| jobs.try_recv().ok()).flatten();
                if next.is_none() {
                    unlock();
                    next = jobs.recv().ok();
                }
            }
        };
        let started = std::thread::Builder::new().name("tamis".into()).spawn(work);
        *queue = started.ok().map(|_| sender);
    }
    queue.clone()
}

/// Commands that have waited for the thread, or do.
static COMMANDS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn commands() -> u64 {
    COMMANDS.load(Ordering::Relaxed)
}

/// Lets the client of a command wait, and does its work in the thread. `Err` gives the work back
/// where there is no thread.
pub(crate) fn later<W>(call: &Call<'_>, work: W) -> Result<(), W>
where
    W: FnOnce(&Waiting) + Send + 'static,
{
    let Some(queue) = queue() else {
        return Err(work);
    };
    // SAFETY: the command may block (its caller has asked the flags); no callback is given, so the
    // reply is what the thread writes to its context.
    let waiting = unsafe {
        let client = (api().block_client)(call.ctx.raw, None, None, None, 0);
        if client.is_null() {
            return Err(work);
        }
        Waiting {
            client,
            raw: (api().get_thread_safe_context)(client),
            database: call.ctx.database(),
        }
    };
    let job: Job = Box::new(move || {
        let done = catch_unwind(AssertUnwindSafe(|| work(&waiting)));
        if done.is_err() {
            waiting.locked(|ctx| ctx.error("ERR a defect of the module; please report it"));
        }
    });
    COMMANDS.fetch_add(1, Ordering::Relaxed);
    // The thread lives as long as the server.
    let _ = queue.send(job);
    Ok(())
}

/// Frees something large in the thread, or here where there is none.
pub(crate) fn free<T: Send + 'static>(garbage: T) {
    if let Some(queue) = queue() {
        let _ = queue.send(Box::new(move || {
            unlock();
            drop(garbage);
        }));
    }
}
