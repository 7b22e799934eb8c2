//! Instructions per call of each kind and each rival, which no noise can touch.
//!
//! Under valgrind's callgrind, which is told to collect inside of [`counted_calls`] alone and to
//! write a dump after each call of it, each line that is printed belongs to the dump of the same
//! number; without valgrind this does the same work and counts nothing. `cargo xtask
//! instructions` puts both together.

use std::hint::black_box;

use crate::keys::{Ask, KeyType, Keys};
use crate::subject::{self, Calls, Subject};

/// Keys of a filter: it fits the caches, where instructions decide.
const KEYS: usize = 20_000;
/// Calls between two dumps.
const CALLS: usize = 10_000;
/// The rate that is asked for.
const FPR: f64 = 0.01;

/// Runs `work`; a name that valgrind can find.
#[inline(never)]
fn counted_calls(work: &mut dyn FnMut()) {
    work();
    // Keeps the call above from becoming a jump, and this function from being merged with
    // another.
    black_box(());
}

/// Answers nothing, so that what is counted is the loop around the calls.
struct Nothing;

impl Calls for Nothing {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        black_box(key);
        false
    }

    fn contains_batch(&self, _keys: &[u64], _out: &mut [bool]) -> bool {
        true
    }

    #[inline(always)]
    fn insert(&mut self, key: u64) -> Option<bool> {
        black_box(key);
        Some(true)
    }

    #[inline(always)]
    fn remove(&mut self, key: u64) -> Option<bool> {
        black_box(key);
        Some(true)
    }
}

/// Makes the calls of every kind and rival, and prints a line `name operation calls` for each
/// dump.
pub(crate) fn run() -> Result<(), String> {
    let keys = Keys::new(KeyType::U64, 0, KEYS, CALLS);
    let mut nothing: Box<dyn Subject> = Box::new(Nothing);
    lookups("loop", &*nothing, &keys);
    inserts("loop", &mut *nothing, &keys)?;
    removes("loop", &mut *nothing, &keys)?;
    for contestant in subject::all() {
        let name = contestant.name;
        let mut copy = keys.members.clone();
        let mut subject = match (contestant.build)(&mut copy, FPR) {
            Ok(subject) => subject,
            // A rival that cannot have this rate.
            Err(_) if !contestant.ours => continue,
            Err(reason) => return Err(format!("{name}: {reason}")),
        };
        lookups(name, &*subject, &keys);
        removes(name, &mut *subject, &keys)?;
        if let Some(empty) = contestant.insert.empty() {
            let mut subject = empty(KEYS, FPR)?;
            // The second half of the keys is counted: a filter is seldom empty.
            let first = &keys.members[..KEYS - CALLS];
            subject.insert_each(Ask::Words(first));
            inserts(name, &mut *subject, &keys)?;
        }
    }
    Ok(())
}

fn dump(name: &str, operation: &str, work: &mut dyn FnMut()) {
    counted_calls(work);
    println!("{name} {operation} {CALLS}");
}

fn lookups(name: &str, subject: &dyn Subject, keys: &Keys) {
    for (operation, keys) in [("absent", &keys.absent), ("present", &keys.present)] {
        let keys = Ask::Words(keys);
        dump(name, operation, &mut || {
            black_box(subject.contains_each(black_box(keys)));
        });
    }
    let (keys, mut out) = (Ask::Words(&keys.half), vec![false; CALLS]);
    if subject.contains_batch(Ask::Words(&[]), &mut []) {
        dump(name, "batch", &mut || {
            subject.contains_batch(black_box(keys), black_box(&mut out));
        });
    }
}

fn inserts(name: &str, subject: &mut dyn Subject, keys: &Keys) -> Result<(), String> {
    let second = Ask::Words(&keys.members[KEYS - CALLS..]);
    let mut taken = None;
    dump(name, "insert", &mut || {
        taken = subject.insert_each(black_box(second));
    });
    match taken {
        Some(true) => Ok(()),
        _ => Err(format!("{name} did not take {KEYS} keys")),
    }
}

/// Of who removes; the others' count is left out.
fn removes(name: &str, subject: &mut dyn Subject, keys: &Keys) -> Result<(), String> {
    let mut found = None;
    let second = &keys.members[KEYS - CALLS..];
    // Asked about no keys, a filter that cannot remove says nothing: one of the others tells.
    if subject.remove_each(&keys.members[..1]).is_some() {
        dump(name, "remove", &mut || {
            found = subject.remove_each(black_box(second));
        });
        if found != Some(second.len() as u64) {
            return Err(format!("{name} did not find the keys to remove"));
        }
    }
    Ok(())
}
