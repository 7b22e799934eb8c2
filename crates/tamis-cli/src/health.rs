//! What the owner of a filter should know.

use tamis::{AnyFilter, Keyed};

use crate::output;
use crate::target::SCATTER;

/// What is wrong with a filter; nothing where it is in good health. A kind that grows, or that forgets, holds more keys
/// than it was made for and keeps its rate: only where the rate has suffered is the number of keys at fault.
pub(crate) fn warnings(keyed: &Keyed<AnyFilter>) -> Vec<String> {
    let (keys, capacity) = (keyed.len(), keyed.capacity());
    let (now, requested) = (keyed.fpr(), keyed.requested_fpr());
    let mut warnings = Vec::new();
    if now > SCATTER * requested {
        if keys > capacity {
            warnings.push(format!(
                "over capacity: it was made for {capacity} keys and holds {keys}; build a larger one"
            ));
        }
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
    warnings
}

/// How full a filter is, of what it was made for; `None` where it was made for nothing.
pub(crate) fn fill(keyed: &Keyed<AnyFilter>) -> Option<f64> {
    let (keys, capacity) = (keyed.len(), keyed.capacity());
    (capacity > 0).then(|| keys as f64 / capacity as f64)
}
