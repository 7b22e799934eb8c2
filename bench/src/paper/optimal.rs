//! Pagh, Pagh, Rao, *An optimal Bloom filter replacement*, 2005: each claim of its theorems beside
//! the bound and what is measured.

use std::error::Error;
use std::fs;
use std::io::{Write, stdout};
use std::path::Path;

use tamis::testing::{digits_read, lines_read, math};
use tamis::{
    Bloom, Cleary, Config, Count, Family, Filter, Hashing, Insert, Kind, Lossy, Multiset, Remove,
};

use super::chart::{Axis, Chart, Mark, Series};
use crate::clock::{Clock, timed};
use crate::keys::splitmix;

type Outcome<T> = Result<T, Box<dyn Error>>;

type KeyOf = fn(u64) -> u64;

/// The rates are 2 to the power of minus these.
const EXPONENTS: [u32; 5] = [4, 8, 12, 16, 20];
/// A fixed number of bits above n·log₂(1/ε), and a share for what 5 % of free slots cost.
const ABOVE: f64 = 2.125;
const LOAD: f64 = 0.95;

/// Says whether a claim holds, and counts those that do not.
struct Verdicts(u32);

impl Verdicts {
    fn say(&mut self, claim: &str, bound: &str, measured: &str, holds: bool) -> Outcome<()> {
        let verdict = if holds { "holds" } else { "DOES NOT HOLD" };
        self.0 += u32::from(!holds);
        writeln!(
            stdout(),
            "  {claim:<44} {bound:<30} {measured:<34} {verdict}"
        )?;
        Ok(())
    }
}

fn key(i: u64) -> u64 {
    splitmix(i)
}

/// Prints the table, and draws the figure.
pub(crate) fn run(out: &Path, quick: bool) -> Outcome<()> {
    let n: u64 = if quick { 100_000 } else { 1_000_000 };
    let mut page = stdout();
    writeln!(
        page,
        "An optimal Bloom filter replacement (Pagh, Pagh, Rao 2005), by {n} keys\n\n  \
         {:<44} {:<30} {:<34} verdict",
        "claim", "bound", "measured"
    )?;
    let mut verdicts = Verdicts(0);
    let costs = space_and_lookups(n, &mut verdicts)?;
    updates(n, &mut verdicts)?;
    counts(n, &mut verdicts)?;
    families(if quick { 20_000 } else { 100_000 }, &mut verdicts)?;
    lossy(n, &mut verdicts)?;
    draw(out, &costs)?;
    match verdicts.0 {
        0 => Ok(()),
        some => Err(format!("{some} claims do not hold").into()),
    }
}

/// What a lookup costs at a rate: lines and nanoseconds, here and in a Bloom filter.
struct Cost {
    exponent: u32,
    lines: f64,
    ns: f64,
    bloom_lines: f64,
    bloom_ns: f64,
}

fn space_and_lookups(n: u64, verdicts: &mut Verdicts) -> Outcome<Vec<Cost>> {
    let absent: Vec<u64> = (0..n).map(|i| key(1 << 40 | i)).collect();
    let mut costs = Vec::new();
    for exponent in EXPONENTS {
        let rate = math::quotient_fpr(LOAD, exponent);
        let config = Config::new(n).fpr(rate);
        let mut hashes: Vec<u64> = (0..n).map(key).collect();
        let filter = Multiset::build(&config, &mut hashes)?;
        let bits = 8.0 * filter.size_in_bytes() as f64 / n as f64;
        let [_, (slots, _)] = filter.slots();
        let formula = math::quotient_bits_per_key(LOAD, exponent, ABOVE);
        let bloom = math::bloom_bits_per_key(rate);
        verdicts.say(
            &format!("space at 2^-{exponent}: n log 1/e + O(n)"),
            &format!("{formula:.2} + upper list"),
            &format!("{bits:.2} (Bloom {bloom:.2}, {slots} above)"),
            bits < 1.01 * formula + 0.6,
        )?;
        let found = absent.iter().filter(|&&hash| filter.contains(hash)).count() as u64;
        let (_, most) = math::binomial_interval(n, rate, 1e-6);
        verdicts.say(
            &format!("rate at 2^-{exponent}"),
            &format!("{:.5} %", 100.0 * rate),
            &format!("{:.5} %", 100.0 * found as f64 / n as f64),
            found <= most,
        )?;
        let asked = &absent[..absent.len().min(50_000)];
        let lines: usize = asked.iter().map(|&hash| lines_read(&filter, hash)).sum();
        let look = |filter: &dyn Filter| {
            let ask = || absent.iter().filter(|&&hash| filter.contains(hash)).count();
            let times = (0..5).map(|_| timed(Clock::Cpu, absent.len(), ask).1);
            times.fold(f64::MAX, f64::min)
        };
        let plain = Bloom::build(&config, &mut hashes)?;
        // An absent key is denied by the first bit that is not set: half of them, in the mean.
        let (_, k) = math::bloom_size(n, rate).ok_or("no such Bloom filter")?;
        let k = f64::from(u32::try_from(u64::from(k))?);
        costs.push(Cost {
            exponent,
            lines: lines as f64 / asked.len() as f64,
            ns: look(&filter),
            bloom_lines: k,
            bloom_ns: look(&plain),
        });
        let cleary = Cleary::build(
            &Config::new(n)
                .fpr(math::quotient_fpr(math::cleary_load(exponent), exponent) * 1.000_001),
            &mut [],
        )?;
        let bits = 8.0 * cleary.size_in_bytes() as f64 / n as f64;
        let above = bits - f64::from(exponent);
        verdicts.say(
            &format!("Cleary's table at 2^-{exponent}: O(n) above"),
            "2.5 to 2.9 bits above log 1/e",
            &format!("{bits:.2}, {above:.2} above"),
            (2.5..2.95).contains(&above) && cleary.cell_bits() == exponent + 2,
        )?;
    }
    let [first, .., last] = &costs[..] else {
        return Err("no rates".into());
    };
    verdicts.say(
        "lines of a lookup, 2^-4 to 2^-20: O(1)",
        "the same, within one",
        &format!(
            "{:.2} to {:.2} (Bloom's k: {} to {})",
            first.lines, last.lines, first.bloom_lines, last.bloom_lines
        ),
        (last.lines - first.lines).abs() <= 1.0,
    )?;
    for cost in &costs {
        writeln!(
            stdout(),
            "      2^-{:<2}  {:5.1} ns and {:.2} lines a lookup; Bloom {:5.1} ns, members {} lines",
            cost.exponent,
            cost.ns,
            cost.lines,
            cost.bloom_ns,
            cost.bloom_lines
        )?;
    }
    Ok(costs)
}

/// Insertions and removals in constant time, in the mean.
fn updates(n: u64, verdicts: &mut Verdicts) -> Outcome<()> {
    let mut filter = Multiset::build(&Config::new(n).fpr(1.0 / 256.0), &mut [])?;
    let mut digits = 0u64;
    for i in 0..n {
        digits += u64::from(digits_read(&filter, key(i), 1));
        filter.insert(key(i))?;
    }
    let distinct = digits as f64 / n as f64;
    let often = key(1 << 41);
    for _ in 1..1 << 20 {
        filter.insert(often)?;
    }
    let mut digits = 0u64;
    for i in 0..1_000_000 {
        let sign = if i % 2 == 0 { 1 } else { -1 };
        digits += u64::from(digits_read(&filter, often, sign));
        match sign {
            1 => filter.insert(often)?,
            _ => {
                filter.remove(often);
            }
        }
    }
    let to_and_fro = digits as f64 / 1e6;
    let removed = (0..n).all(|i| filter.remove(key(i)));
    verdicts.say(
        "digits of an insertion, distinct keys",
        "3.1 in the mean",
        &format!("{distinct:.2}"),
        distinct <= 3.1,
    )?;
    verdicts.say(
        "digits, to and fro between 2^20 - 1 and 2^20",
        "3.1 in the mean",
        &format!("{to_and_fro:.2} (plain binary 21)"),
        to_and_fro <= 3.1,
    )?;
    verdicts.say(
        "deletions",
        "every member can leave",
        &format!("{} left of {n}", filter.len() - filter.count(often)),
        removed && filter.len() == filter.count(often),
    )
}

/// Spectral counts: never below, above with probability ε at most.
fn counts(n: u64, verdicts: &mut Verdicts) -> Outcome<()> {
    let fpr = 1.0 / 256.0;
    let mut filter = Multiset::build(&Config::new(n).fpr(fpr), &mut [])?;
    let copies = |i: u64| 1 + u64::from(i.is_multiple_of(10)) * (i % 100);
    for i in 0..n / 2 {
        for _ in 0..copies(i) {
            filter.insert(key(i))?;
        }
    }
    let told = |i: u64| filter.count(key(i));
    let below = (0..n / 2).filter(|&i| told(i) < copies(i)).count();
    let above = (0..n / 2).filter(|&i| told(i) > copies(i)).count() as u64;
    let (_, most) = math::binomial_interval(n / 2, fpr, 1e-6);
    verdicts.say(
        "counts never below the truth",
        "0",
        &format!("{below}"),
        below == 0,
    )?;
    verdicts.say(
        "counts above it with probability e",
        &format!("{:.4} %", 100.0 * fpr),
        &format!("{:.4} %", 200.0 * above as f64 / n as f64),
        above <= most,
    )
}

/// Explicit hash functions: the mean over functions is within each family's bound.
fn families(functions: u64, verdicts: &mut Verdicts) -> Outcome<()> {
    const N: u64 = 64;
    const NUMBERS: u64 = 4096;
    let keys: [(&str, KeyOf); 3] = [
        ("random", key),
        ("consecutive", |i| i),
        ("strided", |i| i << 32),
    ];
    for family in Family::ALL {
        for (name, key) in keys {
            let (mut sum, mut squares, mut worst) = (0.0, 0.0, 0.0f64);
            for seed in 0..functions {
                let hashing = Hashing::universal(family, splitmix(seed));
                let number =
                    |i: u64| (u128::from(hashing.hash(&key(i))) * u128::from(NUMBERS)) >> 64;
                let held: Vec<u128> = (0..N).map(number).collect();
                let hits = (N..N + 16).filter(|&i| held.contains(&number(i))).count();
                let rate = hits as f64 / 16.0;
                (sum, squares, worst) = (sum + rate, squares + rate * rate, worst.max(rate));
            }
            let mean = sum / functions as f64;
            let error = ((squares / functions as f64 - mean * mean) / functions as f64).sqrt();
            let bound = N as f64 * family.collision_bound(NUMBERS);
            verdicts.say(
                &format!("{family}, {name} keys"),
                &format!("{bound:.4} in the mean"),
                &format!("{mean:.4} (one function: {worst:.2})"),
                mean <= bound + 5.0 * error,
            )?;
        }
    }
    Ok(())
}

/// A share of the keys for a share of the space.
fn lossy(n: u64, verdicts: &mut Verdicts) -> Outcome<()> {
    let share = 0.1;
    let config = Config::new(n).fpr(1.0 / 256.0);
    let mut hashes: Vec<u64> = (0..n).map(key).collect();
    let lossy: Lossy<Multiset> = Lossy::build(&config, share, 1, &mut hashes)?;
    let whole = Multiset::build(&config.fpr(1.0 / 256.0 / (1.0 - share)), &mut [])?;
    let denied = (0..n).filter(|&i| !lossy.contains(key(i))).count() as f64;
    let space = lossy.size_in_bytes() as f64 / whole.size_in_bytes() as f64;
    let deviation = (n as f64 * share * (1.0 - share)).sqrt();
    verdicts.say(
        "lossy: 10 % of the keys for 10 % of the space",
        "0.9 of the space",
        &format!(
            "{:.2} % denied, {space:.3} of the space",
            100.0 * denied / n as f64
        ),
        (denied - share * n as f64).abs() < 5.0 * deviation && (space - 0.9).abs() < 0.01,
    )
}

/// The cost of a lookup against the rate.
fn draw(out: &Path, costs: &[Cost]) -> Outcome<()> {
    let points = |of: fn(&Cost) -> f64| {
        costs
            .iter()
            .map(|cost| (f64::from(cost.exponent), of(cost)))
            .collect()
    };
    let chart = Chart {
        title: "Lines that a lookup of a member reads, by rate",
        subtitle: "multiset (Pagh, Pagh, Rao) and Bloom filter; 64 bytes a line".into(),
        x: Axis {
            label: "log2 of 1/rate",
            low: 2.0,
            high: 22.0,
            log: false,
            ticks: &[4.0, 8.0, 12.0, 16.0, 20.0],
        },
        y: Axis {
            label: "lines",
            low: 0.0,
            high: 22.0,
            log: false,
            ticks: &[0.0, 5.0, 10.0, 15.0, 20.0],
        },
        series: vec![
            Series {
                name: "Bloom filter: k",
                colour: "#d97706",
                mark: Mark::Diamonds,
                points: points(|cost| cost.bloom_lines),
            },
            Series {
                name: "multiset: counted",
                colour: "#2563eb",
                mark: Mark::Dots,
                points: points(|cost| cost.lines),
            },
        ],
        guides: vec![],
        notes: vec![],
        legend: (84.0, 90.0),
    };
    let path = out.join("optimal-lookup.svg");
    fs::write(&path, chart.svg())?;
    writeln!(stdout(), "\n  drawn: {}", path.display())?;
    Ok(())
}
