//! Windows of time: their clock is the primary's, and replicas are told each reading.

use std::time::Duration;

use tamis::{AnyFilter, Full, Keyed};

use crate::job::QUICK;
use crate::value::{Body, Served};

/// The last reading of a window of time, zero before the first; `None` of any other filter.
pub(crate) fn clock(filter: &Keyed<AnyFilter>) -> Option<Duration> {
    span(filter)?;
    Some(filter.now().unwrap_or_default())
}

/// How long a window of time is.
pub(crate) fn span(filter: &Keyed<AnyFilter>) -> Option<Duration> {
    filter.filter().as_window()?.window_time()
}

/// Whether a window of time has moved on far enough to be told: by a 256th of it.
pub(crate) fn is_due(filter: &Keyed<AnyFilter>, now: u64) -> bool {
    let (Some(clock), Some(span)) = (clock(filter), span(filter)) else {
        return false;
    };
    let step = (span / 256).max(Duration::from_millis(1));
    Duration::from_millis(now).saturating_sub(clock) >= step
}

/// Whether telling a window of time what time it is takes long: in each generation the whole of it
/// is read and written, slot by slot.
pub(crate) fn is_long(body: &Body, now: u64) -> bool {
    const MOST_GENERATIONS: f64 = 16.0;
    let Body::Filter(Served { filter, .. }) = body else {
        return false;
    };
    let (Some(clock), Some(span)) = (clock(filter), span(filter)) else {
        return false;
    };
    let elapsed = Duration::from_millis(now).saturating_sub(clock);
    let windows = elapsed.div_duration_f64(span).min(1.0);
    windows * MOST_GENERATIONS * filter.size_in_bytes() as f64 > (QUICK / 2) as f64
}

/// Tells a window of time what time it is, in milliseconds since 1970.
pub(crate) fn advance(filter: &mut Keyed<AnyFilter>, now: u64) {
    if let Some(window) = filter.filter_mut().as_window_mut() {
        window.advance(Duration::from_millis(now));
    }
}

/// Whether a hash is in the window; from now on it is, with a whole window before it.
pub(crate) fn touch(filter: &mut Keyed<AnyFilter>, hash: u64) -> Option<Result<bool, Full>> {
    Some(filter.filter_mut().as_window_mut()?.touch(hash))
}

/// Reads a length of time: seconds, or a number with `s`, `m`, `h` or `d`.
pub(crate) fn parse_span(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
