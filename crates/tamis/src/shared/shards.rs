//! Filters behind locks, and copies of all of them at one moment: the protocol of
//! [`Shared`](crate::Shared), which knows nothing of keys.
//!
//! `sync` is the standard library's; the models have the same source with locks whose every
//! interleaving is tried.

use super::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(super) struct Shards<F> {
    shards: Vec<Shard<F>>,
    /// Held by whoever changes all shards, or marks them for a copy: no copy has half of a change.
    moment: Mutex<()>,
}

/// Two cache lines, as processors fetch them: no lock shares one with another.
#[repr(align(128))]
struct Shard<F>(RwLock<State<F>>);

pub(super) struct State<F> {
    pub(super) filter: F,
    /// Where the filter as it is now goes before it is changed.
    owed: Option<Owed<F>>,
}

type Owed<F> = Arc<Mutex<Option<F>>>;

/// A filter's operations do not panic; whatever did, left a filter.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<F> Shards<F> {
    pub(super) fn of(filters: impl IntoIterator<Item = F>) -> Shards<F> {
        let shard = |filter| {
            let owed = None;
            Shard(RwLock::new(State { filter, owed }))
        };
        Shards {
            shards: filters.into_iter().map(shard).collect(),
            moment: Mutex::new(()),
        }
    }

    pub(super) fn reading(&self, shard: usize) -> RwLockReadGuard<'_, State<F>> {
        let state = self.shards[shard].0.read();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    fn locked(&self, shard: usize) -> RwLockWriteGuard<'_, State<F>> {
        let state = self.shards[shard].0.write();
        state.unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Clone> Shards<F> {
    /// A shard, for changing; what is owed is copied first.
    pub(super) fn writing(&self, shard: usize) -> RwLockWriteGuard<'_, State<F>> {
        let mut state = self.locked(shard);
        if let Some(owed) = state.owed.take() {
            *lock(&owed) = Some(state.filter.clone());
        }
        state
    }

    /// Changes the filters of all shards, one after another.
    pub(super) fn change_all(&self, change: impl Fn(&mut F)) {
        let _whole = lock(&self.moment);
        for shard in 0..self.shards.len() {
            change(&mut self.writing(shard).filter);
        }
    }

    /// The filters of all shards as they are at one moment, each copied when it is asked for.
    pub(super) fn frozen(&self) -> impl ExactSizeIterator<Item = F> {
        let moment = lock(&self.moment);
        let locked = (0..self.shards.len()).map(|shard| self.locked(shard));
        let mut locked: Vec<_> = locked.collect();
        // What another is owed and has not got yet is this very state.
        let owe = |state: &mut RwLockWriteGuard<'_, State<F>>| {
            let new = || Arc::new(Mutex::new(None));
            Arc::clone(state.owed.get_or_insert_with(new))
        };
        let owed: Vec<Owed<F>> = locked.iter_mut().map(owe).collect();
        drop((locked, moment));
        owed.into_iter().enumerate().map(|(shard, owed)| {
            let is_copied = lock(&owed).is_some();
            if !is_copied {
                drop(self.writing(shard));
            }
            let copied = match Arc::try_unwrap(owed) {
                Ok(own) => own.into_inner().unwrap_or_else(PoisonError::into_inner),
                Err(others) => lock(&others).clone(),
            };
            match copied {
                Some(filter) => filter,
                None => unreachable!("whoever holds the lock first copies what is owed"),
            }
        })
    }
}

/// What is not part of the protocol.
#[cfg_attr(test, allow(dead_code, reason = "models do not ask"))]
impl<F> Shards<F> {
    pub(super) fn len(&self) -> usize {
        self.shards.len()
    }

    /// Bytes of the shards themselves, without what their filters hold.
    pub(super) fn size_in_bytes(&self) -> usize {
        self.shards.capacity() * size_of::<Shard<F>>()
    }
}
