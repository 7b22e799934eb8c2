//! The time, for windows of time: read here and nowhere else.
//!
//! A window's file holds the last reading that it was told; of files that the program makes this
//! is the time since 1970.

use std::time::{Duration, SystemTime};

use tamis::{AnyFilter, Keyed};

use crate::failure::Failure;
use crate::output;

/// Takes the place of the clock: seconds since 1970.
const VARIABLE: &str = "TAMIS_NOW";

/// The time since 1970.
fn now() -> Result<Duration, Failure> {
    let Some(text) = std::env::var_os(VARIABLE) else {
        return SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_err(|_| Failure::io("the clock", "it is before 1970; set it, or TAMIS_NOW"));
    };
    let seconds = text.to_str().and_then(|text| text.parse().ok());
    seconds.map(Duration::from_secs).ok_or_else(|| {
        let why = "expected the seconds since 1970, a whole number";
        Failure::usage(VARIABLE, why)
    })
}

/// Whether it is a window of time; a window of insertions has no clock.
fn has_clock(filter: &Keyed<AnyFilter>) -> bool {
    let window = filter.filter().as_window();
    window.is_some_and(|window| window.window_time().is_some())
}

/// Starts the clock of a window of time that has not been told the time yet: its keys came now.
/// Other filters stay as they are.
pub(crate) fn start(filter: &mut Keyed<AnyFilter>) -> Result<(), Failure> {
    if has_clock(filter) && filter.now().is_none() {
        tell(filter, now()?);
    }
    Ok(())
}

/// Makes a window of time forget what is too old by now. Other filters stay as they are, and one
/// whose clock was never started: nobody knows how old its keys are.
pub(crate) fn advance(filter: &mut Keyed<AnyFilter>) -> Result<(), Failure> {
    if filter.now().is_some() {
        tell(filter, now()?);
    }
    Ok(())
}

fn tell(filter: &mut Keyed<AnyFilter>, now: Duration) {
    if let Some(window) = filter.filter_mut().as_window_mut() {
        window.advance(now);
    }
}

/// What is wrong with the clock of a window of time, if anything.
pub(crate) fn warning(filter: &Keyed<AnyFilter>) -> Option<String> {
    let Some(told) = filter.now() else {
        let why = "its clock was never started, so it forgets nothing; `tamis add` starts it";
        return has_clock(filter).then(|| why.to_string());
    };
    let ahead = told.saturating_sub(now().ok()?).as_secs();
    (ahead > 0).then(|| {
        let ahead = output::counted(ahead, "second");
        format!("its clock is {ahead} ahead of this machine's, and stands still until then")
    })
}
