//! The time, for windows of time: read here and nowhere else.
//!
//! A window's file holds the last reading that it was told; of files that the program makes this
//! is the time since 1970.

use std::time::{Duration, SystemTime};

use tamis::{AnyFilter, Keyed, Sliding};

use crate::failure::Failure;

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

/// Starts the clock of a window of time that has not been told the time yet: its keys came now.
/// Other filters stay as they are.
pub(crate) fn start(filter: &mut Keyed<AnyFilter>) -> Result<(), Failure> {
    if let Some(window) = of_time(filter) {
        // Zero would say that it was never started.
        window.set_clock(now()?.max(Duration::from_nanos(1)));
    }
    Ok(())
}

/// Makes a window of time forget what is too old by now. Other filters stay as they are, and one
/// whose clock was never started: nobody knows how old its keys are.
pub(crate) fn advance(filter: &mut Keyed<AnyFilter>) -> Result<(), Failure> {
    if let Some(window) = of_time(filter)
        && window.clock() != Some(Duration::ZERO)
    {
        window.advance(now()?);
    }
    Ok(())
}

fn of_time(filter: &mut Keyed<AnyFilter>) -> Option<&mut Sliding> {
    let window = filter.downcast_mut::<Sliding>()?;
    window.window_time().is_some().then_some(window)
}

/// What is wrong with the clock of a window of time, if anything.
pub(crate) fn warning(filter: &Keyed<AnyFilter>) -> Option<String> {
    let told = filter.downcast_ref::<Sliding>()?.clock()?;
    let ahead = told.saturating_sub(now().ok()?).as_secs();
    if told == Duration::ZERO {
        let why = "its clock was never started, so it forgets nothing; `tamis add` starts it";
        return Some(why.to_string());
    }
    (ahead > 0).then(|| {
        format!("its clock is {ahead} seconds ahead of this machine's, and stands still until then")
    })
}
