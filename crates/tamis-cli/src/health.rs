//! What the owner of a filter should know.

use tamis::{AnyFilter, Keyed};

use crate::target::SCATTER;
use crate::{clock, output};

/// What is wrong with a filter; nothing where it is in good health.
pub(crate) fn warnings(keyed: &Keyed<AnyFilter>) -> Vec<String> {
    let (keys, capacity) = (keyed.len(), keyed.capacity());
    let (now, requested) = (keyed.fpr(), keyed.requested_fpr());
    let mut warnings = Vec::new();
    if keyed.is_over_capacity() {
        warnings.push(format!(
            "over capacity: it was made for {capacity} keys and holds {keys}; build a larger one"
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
            "a 64-bit hash promises no rate below {:.1e} for {keys} keys, and {requested:.1e} was asked for",
            16.0 * tamis::math::hash_floor(keys)
        ));
    }
    warnings.extend(stuck(keyed));
    warnings.extend(clock::warning(keyed));
    warnings
}

/// What follows from counters that are stuck, if any are.
fn stuck(keyed: &Keyed<AnyFilter>) -> Option<String> {
    let (stuck, can) = (keyed.saturated(), keyed.kind().can);
    let removal = match can.remove {
        true => "keys in them may stay when they are removed, and ",
        false => "",
    };
    let counts = match can.count {
        true => "counts end there",
        false => "lookups answer yes more often",
    };
    (stuck > 0).then(|| {
        let plural = if stuck == 1 { "" } else { "s" };
        format!(
            "{stuck} counter{plural} stuck at the greatest value: {removal}{counts}; build \
             with wider counters (counter_bits), or insert keys less often"
        )
    })
}
