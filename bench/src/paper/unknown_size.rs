//! Pagh, Segev, Wieder, *How to approximate a set without knowing its size in advance*, 2013: what
//! filters that grow take for each key, beside the theorem's terms, and whether they keep their
//! rate.

use std::error::Error;
use std::io::{Write, stdout};

use tamis::testing::math;
use tamis::{Aleph, Config, Filter, Insert, Kind, Remove};

use crate::clock::{Clock, timed};
use crate::heap;
use crate::keys::{Ask, splitmix};
use crate::subject::{self, Contestant, Subject};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Keys that everyone is made for, and the rate that everyone is asked for.
const FIRST: u32 = 10;
const RATE: f64 = 0.01;
/// Steps of an octave at which the memory is looked at.
const STEPS: u64 = 16;
/// Who grows: kinds of ours, and rivals.
const NAMES: [&str; 7] = [
    "aleph",
    "scalable",
    "compacting",
    "growable-bloom-filter",
    "scalable_cuckoo_filter",
    "autoscale_cuckoo_filter",
    "aleph-filter",
];
/// Who takes this long for an octave is not asked for the next.
const PATIENCE: f64 = 120.0;

/// What was seen of a filter while its keys doubled in number.
struct Octave {
    /// Bits per key: the least and the most on the way, and the mean over it.
    least: f64,
    most: f64,
    mean: f64,
    /// False positives at its end.
    hits: u64,
    /// Keys that were denied there, of those that were asked.
    denied: u64,
    insert_ns: f64,
    absent_ns: f64,
}

/// The key of a number; those from 2³⁹ on are absent.
fn key(i: u64) -> u64 {
    splitmix(i)
}

fn keys(from: u64, to: u64) -> Vec<u64> {
    (from..to).map(key).collect()
}

/// Prints all that is to be seen, up to 2¹⁸ keys if it is to be quick, else 2²⁴.
pub(crate) fn run(quick: bool) -> Outcome<()> {
    let last = if quick { 18 } else { 24 };
    let queries = if quick { 200_000 } else { 1_000_000 };
    let mut out = stdout();
    let known = math::lower_bound_bits_per_key(RATE);
    writeln!(
        out,
        "How to approximate a set without knowing its size in advance (Pagh, Segev, Wieder 2013)\n\n\
         Filters made for 2^{FIRST} keys at {} %, filled to 2^{last}. The theorem: a filter whose size is known\n\
         in advance needs log2(1/rate) = {known:.2} bits a key, one whose size is not needs more by the order\n\
         of log2 log2 n, and that suffices. Bits a key are counted by the allocator at {STEPS} sizes between\n\
         n/2 and n: the least, the mean and the most. The rate is measured at n by {queries} absent keys.\n",
        100.0 * RATE
    )?;
    let all = subject::all();
    let mut verdicts = Vec::new();
    for name in NAMES {
        let contestant = all.iter().find(|c| c.name == name);
        let contestant = contestant.ok_or_else(|| format!("no {name} here"))?;
        let octaves = grow(contestant, last, queries)?;
        print(contestant, &octaves, queries)?;
        verdicts.push(judge(name, &octaves, queries, last));
    }
    for verdict in verdicts {
        writeln!(out, "verdict, {verdict}")?;
    }
    writeln!(out)?;
    acceptance(last, queries)
}

/// Fills a filter from half of the first capacity on, octave by octave.
fn grow(contestant: &Contestant, last: u32, queries: u64) -> Outcome<Vec<Octave>> {
    let empty = contestant.insert.empty().ok_or("it takes no insertions")?;
    let absent: Vec<u64> = keys(1 << 39, (1 << 39) + queries);
    let (filter, used) = heap::count(|| empty(1 << FIRST, RATE));
    let (mut filter, mut held) = (filter?, used.held as i64);
    let mut octaves = Vec::new();
    insert(&mut *filter, &mut held, 0, 1 << (FIRST - 1))?;
    for exponent in FIRST..=last {
        let (from, to) = (1u64 << (exponent - 1), 1u64 << exponent);
        let step = (to - from) / STEPS;
        let mut sizes = Vec::new();
        let mut seconds = 0.0;
        for i in 0..STEPS {
            let n = from + i * step;
            seconds += insert(&mut *filter, &mut held, n, n + step)?;
            sizes.push(held as f64 * 8.0 / (n + step) as f64);
        }
        let ask = || filter.contains_each(Ask::Words(&absent));
        let (hits, absent_ns) = timed(Clock::Cpu, absent.len(), ask);
        let members = keys(0, to.min(1 << 20));
        let denied = members.len() as u64 - filter.contains_each(Ask::Words(&members));
        octaves.push(Octave {
            least: sizes.iter().copied().fold(f64::MAX, f64::min),
            most: sizes.iter().copied().fold(0.0, f64::max),
            mean: sizes.iter().sum::<f64>() / sizes.len() as f64,
            hits,
            denied,
            insert_ns: seconds * 1e9 / (to - from) as f64,
            absent_ns,
        });
        if seconds > PATIENCE {
            break;
        }
    }
    Ok(octaves)
}

/// Inserts keys, and keeps account of the bytes that are held; returns the seconds that it took.
fn insert(filter: &mut dyn Subject, held: &mut i64, from: u64, to: u64) -> Outcome<f64> {
    let keys = keys(from, to);
    let before = heap::live();
    let put = || filter.insert_each(Ask::Words(&keys));
    let (inserted, nanoseconds) = timed(Clock::Cpu, 1, put);
    *held += heap::live() as i64 - before as i64;
    match inserted {
        Some(true) => Ok(nanoseconds / 1e9),
        _ => Err("a key was refused".into()),
    }
}

fn print(contestant: &Contestant, octaves: &[Octave], queries: u64) -> Outcome<()> {
    let mut out = stdout();
    let owner = if contestant.ours { "tamis" } else { "a rival" };
    writeln!(
        out,
        "{} ({owner})\n     n  log2 log2 n   bits/key: least    mean    most    rate %   insert ns  absent ns  denied",
        contestant.name
    )?;
    for (exponent, octave) in (FIRST..).zip(octaves) {
        writeln!(
            out,
            "  2^{exponent}         {:4.2}            {:6.2}  {:6.2}  {:6.2}    {:6.4}      {:6.1}     {:6.1}  {:6}",
            f64::from(exponent).log2(),
            octave.least,
            octave.mean,
            octave.most,
            100.0 * octave.hits as f64 / queries as f64,
            octave.insert_ns,
            octave.absent_ns,
            octave.denied,
        )?;
    }
    writeln!(out)?;
    Ok(())
}

/// Whether the rate was kept, no key denied, and how the bits grew beside the theorem's term.
fn judge(name: &str, octaves: &[Octave], queries: u64, last: u32) -> String {
    let (_, high) = math::binomial_interval(queries, RATE, 1e-6);
    let above = (FIRST..)
        .zip(octaves)
        .find(|(_, octave)| octave.hits > high);
    let rate = match above {
        None => "the rate is kept at every size".to_string(),
        Some((exponent, _)) => {
            format!("the rate is above what was asked from 2^{exponent} keys on")
        }
    };
    let denied: u64 = octaves.iter().map(|octave| octave.denied).sum();
    let keys = match denied {
        0 => "no key is denied",
        _ => "KEYS ARE DENIED",
    };
    let (Some(first), Some(end)) = (octaves.first(), octaves.last()) else {
        return format!("{name}: nothing was measured");
    };
    let exponent = FIRST + octaves.len() as u32 - 1;
    let term = (f64::from(exponent) / f64::from(FIRST)).log2();
    let ended = match exponent == last {
        true => String::new(),
        false => format!(" (given up after 2^{exponent})"),
    };
    format!(
        "{name}{ended}: {rate}; {keys}; from 2^{FIRST} to 2^{exponent} the mean grows by {:.2} bits, log2 log2 n by {term:.2}",
        end.mean - first.mean
    )
}

/// The acceptance of the families' specification: at a load of 0.8, from 2¹⁰ slots on, the rate is
/// below 0.42 % at each doubling, in no more bits a slot than F + 2·log2(X + 1) + 4 with F = 8.
fn acceptance(last: u32, queries: u64) -> Outcome<()> {
    const MOST: f64 = 0.0042;
    let mut out = stdout();
    writeln!(
        out,
        "aleph, asked for 0.5 %, at a load of 0.8: the rate is to be at most 0.42 %, and InfiniFilter with F = 8\n\
         takes (8 + 2 log2(X + 1) + 4)/0.8 bits a key\n  \
         slots   X    keys      void   marks   bits/key  InfiniFilter   rate %: stated  measured"
    )?;
    let absent: Vec<u64> = keys(1 << 39, (1 << 39) + queries);
    let mut answers = vec![false; absent.len()];
    // 972 keys want 1024 slots.
    let mut filter = Aleph::build(&Config::new(972).fpr(0.005), &mut [])?;
    let (mut inserted, mut holds) = (0u64, true);
    for exponent in FIRST..=last {
        let slots = 1u64 << exponent;
        while filter.load() < 0.8 || filter.slots() < slots {
            filter.insert(key(inserted))?;
            inserted += 1;
        }
        filter.contains_batch(&absent, &mut answers);
        let hits = answers.iter().filter(|&&found| found).count() as u64;
        let (stated, x) = (filter.fpr(), filter.expansions());
        let (low, high) = math::binomial_interval(queries, stated, 1e-6);
        let present = (0..inserted).all(|i| filter.contains(key(i)));
        holds &= present && (low..=high).contains(&hits) && stated <= MOST;
        writeln!(
            out,
            "  2^{exponent}   {x:2}  {inserted:8}  {:7} {:7}     {:6.2}        {:6.2}           {:6.4}    {:6.4}",
            filter.voids(),
            filter.marks(),
            filter.size_in_bytes() as f64 * 8.0 / inserted as f64,
            (12.0 + 2.0 * f64::from(x + 1).log2()) / 0.8,
            100.0 * stated,
            100.0 * hits as f64 / queries as f64,
        )?;
    }
    // Half of them leave, of each generation; then all.
    let left = (0..inserted)
        .filter(|i| i % 2 == 0)
        .all(|i| filter.remove(key(i)));
    let stay = (0..inserted)
        .filter(|i| i % 2 == 1)
        .all(|i| filter.contains(key(i)));
    let gone = (0..inserted)
        .filter(|i| i % 2 == 1)
        .all(|i| filter.remove(key(i)));
    holds &= left && stay && gone && filter.is_empty() && filter.expansions() == 0;
    let verdict = if holds { "holds" } else { "DOES NOT HOLD" };
    writeln!(
        out,
        "verdict, aleph: at most 0.42 % as stated, measured as stated, no key denied, removals included: {verdict}"
    )?;
    Ok(())
}
