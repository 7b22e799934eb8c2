//! What the owner of a filter should know.

use tamis::{AnyFilter, Keyed};

use crate::target::SCATTER;
use crate::{clock, output};

/// What is wrong with a filter; nothing where it is in good health.
pub(crate) fn warnings(keyed: &Keyed<AnyFilter>) -> Vec<String> {
    let (keys, capacity) = (keyed.len(), keyed.capacity());
    let (now, requested) = (keyed.fpr(), keyed.requested_fpr());
    let mut warnings = Vec::new();
    if keyed.is_over_capacity() && minds(keyed, now > SCATTER * requested) {
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
    warnings.extend(clock::warning(keyed));
    warnings
}

/// Whether a filter should not hold more keys than it was made for: its rate has suffered, or it
/// takes keys and neither grows nor forgets.
fn minds(keyed: &Keyed<AnyFilter>, suffers: bool) -> bool {
    let can = keyed.kind().can;
    suffers || can.insert && !can.window && !can.grow
}

/// How full a filter is, of what it was made for; `None` where it was made for nothing.
pub(crate) fn fill(keyed: &Keyed<AnyFilter>) -> Option<f64> {
    let (keys, capacity) = (keyed.len(), keyed.capacity());
    (capacity > 0).then(|| keys as f64 / capacity as f64)
}
