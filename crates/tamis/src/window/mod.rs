//! The window family; [`families`](crate::families) has its essay.

mod age_partitioned;
mod sliding;
mod table;
#[cfg(test)]
mod tests;

pub use age_partitioned::AgePartitioned;
pub use sliding::Sliding;
pub use table::SlidingTable;

use std::time::Duration;

use crate::config::{Config, Param};
use crate::error::BuildError;
use crate::option;

/// The most parts that a window is forgotten in.
const MOST_GENERATIONS: u32 = 15;
/// The longest window of time.
const MOST_SECONDS: u64 = 1 << 32;

/// The parameters of a window that may be one of time.
const PARAMS: &[Param] = &[
    Param {
        name: option::GENERATIONS.name,
        values: "1 to 15",
        default: "4",
        about: "parts of the window: with 4, keys leave within a quarter of a window",
    },
    Param {
        name: option::SECONDS.name,
        values: "1 to 2^32",
        default: "the last insertions",
        about: "a window of time, which the caller's clock moves",
    },
];

/// The generations of a window, and its seconds: 0 where it is counted in insertions.
fn span(config: &Config) -> Result<(u32, u64), BuildError> {
    let expected = "a whole number from 1 to 15";
    let generations = config.param("generations", expected)?.unwrap_or(4);
    if !(1..=MOST_GENERATIONS).contains(&generations) {
        return Err(BuildError::parameter("generations", generations, expected));
    }
    let expected = "a whole number from 1 to 4294967296";
    match config.param("seconds", expected)? {
        Some(seconds) if !(1..=MOST_SECONDS).contains(&seconds) => {
            Err(BuildError::parameter("seconds", seconds, expected))
        }
        seconds => Ok((generations, seconds.unwrap_or(0))),
    }
}

/// A reading of the clock in nanoseconds, as windows keep it: never 0, which says that there was
/// none yet.
fn nanos(now: Duration) -> u64 {
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).max(1)
}
