//! What the owner of a filter should know.

use tamis::{AnyFilter, Filter, Keyed, MergedFile};

use crate::target::SCATTER;
use crate::{clock, output};

/// What is wrong with a filter; nothing where it is in good health.
pub(crate) fn warnings(keyed: &Keyed<AnyFilter>) -> Vec<String> {
    let mut warnings = of_numbers(&Numbers {
        keys: keyed.filter().charged(),
        capacity: keyed.capacity(),
        is_over: keyed.is_over_capacity(),
        now: keyed.fpr(),
        requested: keyed.requested_fpr(),
    });
    warnings.extend(stuck(keyed));
    warnings.extend(clock::warning(keyed));
    warnings
}

/// The same of a file that was never held in memory.
pub(crate) fn warnings_of_file(file: &MergedFile) -> Vec<String> {
    of_numbers(&Numbers {
        keys: file.charged,
        capacity: file.capacity,
        is_over: file.is_over_capacity(),
        now: file.fpr,
        requested: file.requested_fpr,
    })
}

struct Numbers {
    /// Those that count against the capacity.
    keys: u64,
    capacity: u64,
    /// Whether these are too many keys.
    is_over: bool,
    /// The rate now, and the one that was asked for.
    now: f64,
    requested: f64,
}

fn of_numbers(numbers: &Numbers) -> Vec<String> {
    let &Numbers {
        keys,
        capacity,
        is_over,
        now,
        requested,
    } = numbers;
    let mut warnings = Vec::new();
    if is_over {
        warnings.push(format!(
            "over capacity: it was made for {} and holds {keys}; build a larger one",
            output::counted(capacity, "key")
        ));
    }
    if now > SCATTER * requested {
        warnings.push(format!(
            "false positives: {} are expected now, {} were asked for; build a larger one",
            output::rate(now),
            output::rate(requested)
        ));
    }
    if tamis::math::hash_is_too_short(keys.max(1), requested) {
        warnings.push(format!(
            "a 64-bit hash promises no rate below {:.1e} for {}, and {requested:.1e} was asked for",
            16.0 * tamis::math::hash_floor(keys),
            output::counted(keys, "key")
        ));
    }
    warnings
}

/// What follows from counters that are stuck, if any are.
fn stuck(keyed: &Keyed<AnyFilter>) -> Option<String> {
    let (stuck, can) = (keyed.saturated(), keyed.kind().can);
    if can.window {
        let (have, they, keys) = match stuck {
            1 => ("fingerprint has", "it leaves", "a key"),
            _ => ("fingerprints have", "they leave", "keys"),
        };
        // A window from which nothing is removed loses nothing by it.
        return (stuck > 0 && can.remove).then(|| {
            format!(
                "{stuck} {have} as many copies as are kept: to remove {keys} of theirs has no \
                 effect until {they} by age"
            )
        });
    }
    let removal = match can.remove {
        true => "keys in them may stay when they are removed, and ",
        false => "",
    };
    let counts = match can.count {
        true => "counts end there",
        false => "lookups answer yes more often",
    };
    (stuck > 0).then(|| {
        let stuck = output::counted(stuck, "counter");
        format!(
            "{stuck} stuck at the greatest value: {removal}{counts}; build \
             with wider counters (counter_bits), or insert keys less often"
        )
    })
}
