//! `tamis-bench fill`: what it costs that several threads may fill a filter at once.
//!
//! The plain filter and the atomic one are filled with the same hashes, in turns, so that both meet
//! the same machine; the median of the turns counts. Batches, as whoever fills a filter uses them.

use std::error::Error;
use std::hint::black_box;
use std::io::Write;

use tamis::{AtomicSplitBlock, Config, Insert, Kind, SplitBlock512};

use crate::clock::{Clock, timed};
use crate::keys::mix;

/// Hashes of a batch.
const BATCH: usize = 4096;

/// The times of one size, in nanoseconds a hash.
#[derive(Default)]
struct Times {
    plain: Vec<f64>,
    one: Vec<f64>,
    two: Vec<f64>,
    two_passed: Vec<f64>,
    one_passed: Vec<f64>,
}

/// The middle of some numbers.
fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn run(sizes: &[usize], turns: u16) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "split_block, filled by batches of {BATCH}; ns of processor time a hash, medians of {turns} turns\n\
         {:>10}  {:>7}  {:>7}  {:>12}  {:>7}  {:>13}  {:>13}",
        "hashes", "plain", "atomic", "atomic/plain", "two", "two/one, work", "one/two, time"
    )?;
    for &n in sizes {
        let mut times = measure(n, turns)?;
        let [plain, one, two] =
            [&mut times.plain, &mut times.one, &mut times.two].map(|times| median(times));
        let [passed, two_passed] =
            [&mut times.one_passed, &mut times.two_passed].map(|times| median(times));
        writeln!(
            out,
            "{n:>10}  {plain:>7.2}  {one:>7.2}  {:>12.2}  {two:>7.2}  {:>13.2}  {:>13.2}",
            one / plain,
            two / one,
            passed / two_passed
        )?;
    }
    Ok(())
}

fn measure(n: usize, turns: u16) -> Result<Times, Box<dyn Error>> {
    let hashes: Vec<u64> = (0..n as u64).map(mix).collect();
    let config = Config::new(n as u64).fpr(0.01);
    let mut times = Times::default();
    for _ in 0..turns {
        let mut plain = SplitBlock512::build(&config, &mut [])?;
        // Each is filled twice, and the second time counts: its pages are there.
        for _ in 0..2 {
            let fill = || {
                hashes
                    .chunks(BATCH)
                    .try_for_each(|part| plain.insert_batch(part))
            };
            let (filled, ns) = timed(Clock::Cpu, n, fill);
            filled?;
            times.plain.push(ns);
        }
        let atomic = AtomicSplitBlock::new(&config)?;
        let fill = |part: &[u64]| {
            for part in part.chunks(BATCH) {
                atomic.insert_batch(part);
            }
        };
        for _ in 0..2 {
            let (((), passed), ns) =
                timed(Clock::Cpu, n, || timed(Clock::Wall, n, || fill(&hashes)));
            times.one.push(ns);
            times.one_passed.push(passed);
        }
        let (half, other) = hashes.split_at(n / 2);
        let both = || {
            std::thread::scope(|scope| {
                scope.spawn(|| fill(half));
                fill(other);
            });
        };
        let (((), passed), ns) = timed(Clock::Cpu, n, || timed(Clock::Wall, n, both));
        times.two.push(ns);
        times.two_passed.push(passed);
        for times in [&mut times.plain, &mut times.one, &mut times.one_passed] {
            let second = times.pop();
            times.pop();
            times.extend(second);
        }
        black_box((&plain, &atomic));
    }
    Ok(times)
}
