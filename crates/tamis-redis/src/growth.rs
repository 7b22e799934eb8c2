//! What insertions may make of a filter: how much memory they take, and whether that takes long.

use tamis::{Aleph, Filter, QuotientCounting, Scalable};

use crate::job::{QUICK_PAGES, QUICK_SLOTS};
use crate::server::{Ctx, Refusal};
use crate::settings;
use crate::value::{Body, Value};

/// What a filter becomes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    /// More memory than before, at most.
    bytes: u64,
    /// Whether the server would stand still for it.
    pub(crate) is_long: bool,
}

/// What so many insertions may make of a filter; `None` where it stays as large as it is.
pub(crate) fn of(body: &Body, insertions: usize) -> Option<Growth> {
    if insertions == 0 {
        return None;
    }
    let filter = match body {
        Body::Filter(served) => &served.filter,
        Body::BloomChain(chain) => return chain.next_bytes(insertions as u64).map(begun),
        // Nobody knows when no place is found; a new table is not touched but where items go.
        Body::CuckooChain(_) | Body::Loading(_) => return None,
    };
    if let Some(slices) = filter.downcast_ref::<Scalable>() {
        let is_full = slices.len().saturating_add(insertions as u64) > slices.room();
        return is_full.then(|| begun(slices.next_slice_in_bytes()));
    }
    // In use, slots, and how many slots an insertion may take.
    let (load, slots, each) = if let Some(table) = filter.downcast_ref::<Aleph>() {
        (table.load(), table.slots(), 1)
    } else {
        let table = filter.downcast_ref::<QuotientCounting>()?;
        (table.load(), table.slots(), 3)
    };
    let (slots, bytes) = (slots as f64, filter.size_in_bytes());
    let doubles = load * slots + (each * (insertions + 1)) as f64 >= slots - slots / 20.0;
    doubles.then_some(Growth {
        bytes: 2 * bytes as u64,
        is_long: bytes >= QUICK_SLOTS,
    })
}

/// A part that is begun beside those that there are: only its pages take long.
fn begun(bytes: u64) -> Growth {
    Growth {
        bytes,
        is_long: bytes >= QUICK_PAGES as u64,
    }
}

/// Whether insertions take long. Refuses those for which there is no memory.
pub(crate) fn check(ctx: Ctx, value: &Value, insertions: usize) -> Result<bool, Refusal> {
    let Some(growth) = of(value.body(), insertions) else {
        return Ok(false);
    };
    if !ctx.flags().is_replay() {
        let most = settings::MEMORY.get().unsigned_abs();
        if most > 0 && growth.bytes.saturating_add(value.memory() as u64) > most {
            return Err("ERR operation exceeds bloom object memory limit".into());
        }
        // A long growth is that of a copy.
        let copy = if growth.is_long { value.memory() } else { 0 };
        ctx.check_room(growth.bytes.saturating_add(copy as u64))?;
    }
    Ok(growth.is_long)
}
