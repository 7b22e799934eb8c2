//! Which time is measured.

use std::fmt;
use std::time::{Duration, Instant};

use crate::stats::Samples;

/// A clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Clock {
    /// Time that this process runs on any core: other processes that take turns with it do not
    /// show.
    Cpu,
    /// Time that passes; what threads gain shows in it. Also what `cpu` falls back to where the
    /// system does not tell.
    Wall,
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Clock::Cpu => "processor time",
            Clock::Wall => "time that passes",
        })
    }
}

/// What `work` returns, and its time per item in nanoseconds.
pub(crate) fn timed<T>(clock: Clock, items: usize, work: impl FnOnce() -> T) -> (T, f64) {
    let processor = || cpu_time().filter(|_| clock == Clock::Cpu);
    let (passed, ran) = (Instant::now(), processor());
    let result = work();
    let ran = processor().zip(ran).map(|(end, start)| end - start);
    let time = ran.unwrap_or_else(|| passed.elapsed());
    (result, per_item(time, items))
}

/// Nanoseconds for each of the items.
fn per_item(time: Duration, items: usize) -> f64 {
    time.as_nanos() as f64 / items.max(1) as f64
}

/// How far the machine was from quiet: the times of one loop of arithmetic, which has no other
/// reason to differ than what else the processor does, on the other half of the core above all,
/// and at which speed it runs.
#[derive(Default)]
pub(crate) struct Unrest(Samples);

impl Unrest {
    /// Rounds of the loop: some tens of microseconds.
    const ROUNDS: u64 = 1 << 14;

    /// Looks how long the loop takes now.
    pub(crate) fn look(&mut self) {
        let mixed = || (0..Unrest::ROUNDS).fold(0, |sum, i| crate::keys::mix(sum ^ i));
        let (result, ns) = timed(Clock::Cpu, 1, mixed);
        std::hint::black_box(result);
        self.0.0.push(ns);
    }

    /// What it was, as a phrase.
    pub(crate) fn phrase(&self) -> String {
        let ((low, high), least) = (self.0.range(), self.0.quantile(0.0));
        let (low, high) = (low / least, high / least);
        format!("a loop of arithmetic took {low:.2} to {high:.2} times its least time")
    }
}

#[cfg(unix)]
fn cpu_time() -> Option<Duration> {
    use rustix::time::{ClockId, clock_gettime};
    clock_gettime(ClockId::ProcessCPUTime).try_into().ok()
}

#[cfg(not(unix))]
fn cpu_time() -> Option<Duration> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_handed_through_and_time_is_per_item() {
        for clock in [Clock::Cpu, Clock::Wall] {
            let (result, ns) = timed(clock, 1000, || (0..1000u64).sum::<u64>());
            assert_eq!(result, 499_500);
            assert!(ns.is_finite(), "{clock}: {ns}");
        }
        assert_eq!(per_item(Duration::from_micros(3), 1000), 3.0);
        assert_eq!(per_item(Duration::from_nanos(3), 0), 3.0);
    }

    #[test]
    fn unrest_is_told_as_multiples_of_the_quietest_moment() {
        let times = (0..=10).map(|i| 200.0 + 20.0 * f64::from(i));
        let unrest = Unrest(Samples(times.collect()));
        assert!(unrest.phrase().contains("1.10 to 1.90"));
        let mut now = Unrest::default();
        (0..5).for_each(|_| now.look());
        assert_eq!(now.0.0.len(), 5);
    }
}
