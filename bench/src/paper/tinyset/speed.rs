//! Table 2 and Figure 11: times, of which only the shape can be compared.

use crate::clock::{Clock, timed};

use super::*;

/// Nanoseconds for a key that is added, and for one that is looked up.
#[derive(Clone, Copy)]
struct Times {
    add: f64,
    query: f64,
}

impl Times {
    fn cell(self) -> String {
        format!("{:.1}/{:.1}", self.add, self.query)
    }
}

/// Fills a filter in so many steps, a call a key, and looks up after each the keys that it added.
fn fill<F: Kind + Insert>(config: &Config, keys: &[u64], steps: usize) -> Outcome<Vec<Times>> {
    let mut filter = F::build(config, &mut [])?;
    let mut times = Vec::new();
    for keys in keys.chunks(keys.len().div_ceil(steps)) {
        let insert = || keys.iter().try_for_each(|&key| filter.insert(key));
        let (inserted, add) = timed(Clock::Cpu, keys.len(), insert);
        inserted?;
        let find = || keys.iter().all(|&key| filter.contains(key));
        let (found, query) = timed(Clock::Cpu, keys.len(), find);
        if !found {
            return Err("a member was not found".into());
        }
        times.push(Times { add, query });
    }
    Ok(times)
}

/// The three filters of the paper, each filled so often; the least time of each step counts.
fn fills(effort: &Effort, rate: f64, steps: usize) -> Outcome<[Vec<Times>; 3]> {
    let keys = members(700, effort.keys);
    let config = Config::new(effort.keys).fpr(rate);
    let mut best: [Vec<Times>; 3] = Default::default();
    for _ in 0..effort.filters {
        let now = [
            fill::<Bloom>(&config, &keys, steps)?,
            fill::<TinySet>(&config.clone().set("block", 32), &keys, steps)?,
            fill::<TinySet>(&config, &keys, steps)?,
        ];
        for (best, now) in best.iter_mut().zip(now) {
            if best.is_empty() {
                *best = now;
                continue;
            }
            for (best, now) in best.iter_mut().zip(now) {
                best.add = best.add.min(now.add);
                best.query = best.query.min(now.query);
            }
        }
    }
    Ok(best)
}

/// How much the greatest of some times exceeds the least.
fn spread(times: &[f64]) -> f64 {
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    times.iter().copied().fold(0.0, f64::max) / least
}

pub(super) fn table_2(effort: &Effort) -> Outcome<Tally> {
    let mut table = Table::new(
        "Table 2: time to add/query, a call a key (paper: seconds a million, an i7 and Java; measured: ns a key, this machine)",
        &[
            "rate",
            "paper: Bloom",
            "32I",
            "64I",
            "bloom",
            "tinyset, 32 bytes",
            "64 bytes",
            "verdict on \"both faster than a Bloom filter\"",
        ],
    );
    let printed = [
        ["0.65/0.69", "0.28/0.05", "0.34/0.08"],
        ["0.96/0.98", "0.28/0.05", "0.34/0.08"],
        ["1.33/1.29", "0.28/0.05", "0.35/0.08"],
    ];
    if cfg!(debug_assertions) {
        let note =
            "This build is not fully optimised: times, here and in Figure 11, need `--release`.\n";
        writeln!(stdout(), "{note}")?;
    }
    let mut queries: [Vec<f64>; 3] = Default::default();
    let mut small_is_faster = true;
    for (rate, printed) in RATES.into_iter().zip(printed) {
        let [bloom, small, large] = fills(effort, rate, 1)?.map(|times| times[0]);
        for (queries, times) in queries.iter_mut().zip([bloom, small, large]) {
            queries.push(times.query);
        }
        small_is_faster &= small.add < large.add && small.query < large.query;
        let adds = small.add.max(large.add) < bloom.add;
        let finds = small.query.max(large.query) < bloom.query;
        let verdict = match (adds, finds) {
            (true, true) => "reproduced",
            (true, false) => "does not reproduce: the Bloom filter answers faster than one",
            (false, true) => "does not reproduce: the Bloom filter adds faster than one",
            (false, false) => "does not reproduce: the Bloom filter is faster than one at both",
        };
        let mut cells = vec![asked(rate)];
        cells.extend(printed.map(String::from));
        cells.extend([bloom, small, large].map(Times::cell));
        table.row(cells, Evidence::Measured, verdict.into());
    }
    let mut tally = table.print()?;
    // As far as times of a busy machine can be the same.
    let level = spread(&queries[1]).max(spread(&queries[2]));
    let words = "a query takes the same time at each rate, a Bloom filter's more at lower rates";
    claim(
        &mut tally,
        "Table 2",
        words,
        Evidence::Measured,
        &judge(
            level < 1.25 && queries[0].last() > queries[0].first(),
            &format!(
                "times differ by up to {level:.2} (tinyset) and {:.2} (bloom)",
                spread(&queries[0])
            ),
        ),
    )?;
    claim(
        &mut tally,
        "Table 2",
        "32I \"significantly faster\" than 64I (32 and 64 bytes)",
        Evidence::Measured,
        &judge(small_is_faster, "the larger block is as fast at one"),
    )?;
    writeln!(stdout())?;
    Ok(tally)
}

pub(super) fn figure_11(effort: &Effort) -> Outcome<Tally> {
    const STEPS: usize = 16;
    let mut table = Table::new(
        "Figure 11: time to add/query by load at 0.1 %, ns a key, a call a key (filters)",
        &["load", "bloom", "tinyset, 32 bytes", "64 bytes", ""],
    );
    let [bloom, small, large] = fills(effort, 0.001, STEPS)?;
    for step in [0, 3, 7, 11, 15] {
        let mut cells = vec![format!("{:.0} %", 100.0 * (step + 1) as f64 / STEPS as f64)];
        cells.extend([&bloom, &small, &large].map(|times| times[step].cell()));
        table.row(cells, Evidence::Measured, String::new());
    }
    let mut tally = table.print()?;
    let both = [&small, &large];
    let first = both.map(|tiny| bloom[0].add / tiny[0].add);
    let first = first[0].min(first[1]);
    let last = STEPS - 1;
    let crowded = both.iter().all(|tiny| tiny[last].add > tiny[0].add);
    let slower = both.iter().all(|tiny| tiny[last].add > bloom[last].add);
    let finds = (0..STEPS).all(|i| both.iter().all(|tiny| tiny[i].query < bloom[i].query));
    for (words, verdict) in [
        (
            "adding to an empty TinySet \"orders of magnitude faster\"",
            judge(first >= 10.0, &format!("{first:.1} times")),
        ),
        (
            "adding is slower \"as TinySet becomes more crowded\"",
            judge(crowded, "it is not"),
        ),
        (
            "nearly full, adding is \"slightly slower than the Bloom filter\"",
            judge(slower, "not with both sizes of blocks"),
        ),
        (
            "queries are \"significantly faster\" at every load",
            judge(finds, "the Bloom filter answers faster at some load"),
        ),
    ] {
        claim(&mut tally, "Figure 11", words, Evidence::Measured, &verdict)?;
    }
    writeln!(stdout())?;
    Ok(tally)
}
