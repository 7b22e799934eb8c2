//! Tables 1 to 6, Figures 10 to 15 and the headline of Einziger, Friedman, *TinySet*, 2015: how
//! they are measured and judged.

mod curves;
mod figures;
mod speed;
mod tables;

use std::error::Error;
use std::fmt::Write as _;
use std::io::{Write, stdout};
use std::path::Path;

use tamis::testing::math;
use tamis::{Bloom, Config, Filter, Insert, Kind, Remove, TinySet, TinySetOf, TinySetRemovable};

use super::chart::{Axis, Chart, Mark, Note, Series};
use super::formula::{Policy, highest_load};
use super::model::{Geometry, Model};
use crate::keys::{fastrange, splitmix};

use Policy::{P0, P1, P2, P3};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The rates of all tables.
const RATES: [f64; 3] = [0.01, 0.001, 0.0001];
/// A size is reproduced if it differs by one unit of the last digit that the paper prints, which
/// it sometimes cuts off.
const BITS: f64 = 0.1;
/// A measured rate may differ from the formula's by this share: the spread between filters.
const SHARE: f64 = 0.05;
/// Three standard deviations of the counted false positives come on top.
const DEVIATIONS: f64 = 3.0;
/// Points of a percentage.
const POINTS: f64 = 1.0;
/// The verdict where the paper prints nothing.
const AS_BY_FORMULA: &str = "measured as by formula";
/// Keys in the block that stands for a block without variance.
const ONE: u32 = 100_000;

/// How much is measured.
struct Effort {
    filters: u64,
    keys: u64,
    /// False positives to expect; their number decides the number of queries.
    hits: f64,
    most_queries: f64,
    /// Filters of Figure 14, which are small, and blocks of the filter of Figure 15.
    small: u64,
    churned: u64,
}

impl Effort {
    fn queries(&self, rate: f64, filters: u64) -> u64 {
        ((self.hits / rate).clamp(1e5, self.most_queries) / filters as f64).ceil() as u64
    }
}

/// False positives among queries.
#[derive(Clone, Copy, Default)]
struct Measured {
    hits: u64,
    queries: u64,
}

impl Measured {
    fn rate(self) -> f64 {
        self.hits as f64 / self.queries as f64
    }

    fn agrees(self, formula: f64) -> bool {
        let deviation = (formula / self.queries as f64).sqrt();
        (self.rate() - formula).abs() <= SHARE * formula + DEVIATIONS * deviation
    }

    fn add(&mut self, contains: impl Fn(u64) -> bool, stream: u64, queries: u64) {
        self.hits += (0..queries)
            .filter(|&i| contains(key(stream, true, i)))
            .count() as u64;
        self.queries += queries;
    }
}

/// Distinct keys, which are their own hashes: two streams share none, nor do members and others.
fn key(stream: u64, absent: bool, i: u64) -> u64 {
    splitmix(stream << 40 | u64::from(absent) << 39 | i)
}

fn members(stream: u64, keys: u64) -> Vec<u64> {
    (0..keys).map(|i| key(stream, false, i)).collect()
}

/// What a verdict rests on.
#[derive(Clone, Copy)]
enum Evidence {
    /// Filters, or the model of a block, that were built and looked up in.
    Measured,
    /// A formula.
    Computed,
    /// Nothing but the paper's own figures, compared with one another.
    Restated,
}

impl Evidence {
    const ALL: [(Evidence, &str); 3] = [
        (Evidence::Measured, "measured"),
        (Evidence::Computed, "computed"),
        (Evidence::Restated, "restated"),
    ];
}

/// How many verdicts there are of each kind, by what they rest on.
#[derive(Clone, Copy, Default)]
struct Tally {
    /// Reproduced, met with room, and not reproduced.
    verdicts: [[usize; 3]; 3],
    /// Points that the paper does not print, measured as by formula.
    unprinted: usize,
}

impl Tally {
    fn count(&mut self, evidence: Evidence, verdict: &str) {
        let column = match verdict {
            "" => return,
            AS_BY_FORMULA => {
                self.unprinted += 1;
                return;
            }
            v if v.starts_with("reproduced") || v.starts_with("follows") => 0,
            v if v.starts_with("met") => 1,
            _ => 2,
        };
        self.verdicts[evidence as usize][column] += 1;
    }

    /// A phrase for each kind of evidence that there is.
    fn phrases(&self) -> Vec<String> {
        let mut phrases = Vec::new();
        for (evidence, name) in Evidence::ALL {
            let [reproduced, room, not] = self.verdicts[evidence as usize];
            if reproduced + room + not > 0 {
                phrases.push(format!(
                    "{name}: {reproduced} reproduced, {room} met with room, {not} not"
                ));
            }
        }
        if self.unprinted > 0 {
            let points = self.unprinted;
            phrases.push(format!("{points} not in the paper, {AS_BY_FORMULA}"));
        }
        phrases
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        let ours = self.verdicts.iter_mut().flatten();
        for (ours, theirs) in ours.zip(other.verdicts.iter().flatten()) {
            *ours += theirs;
        }
        self.unprinted += other.unprinted;
    }
}

/// Prints and counts the verdict on a sentence of the paper.
fn claim(
    tally: &mut Tally,
    part: &str,
    words: &str,
    evidence: Evidence,
    verdict: &str,
) -> std::io::Result<()> {
    tally.count(evidence, verdict);
    let (_, name) = Evidence::ALL[evidence as usize];
    writeln!(stdout(), "verdict, {part}, {words}, {name}: {verdict}")
}

/// The verdict on what either holds or not.
fn judge(holds: bool, otherwise: &str) -> String {
    match holds {
        true => "reproduced".into(),
        false => format!("does not reproduce: {otherwise}"),
    }
}

/// A table, its numbers right-aligned and the verdict at the end.
struct Table {
    title: &'static str,
    rows: Vec<Vec<String>>,
    tally: Tally,
}

impl Table {
    fn new(title: &'static str, header: &[&str]) -> Table {
        Table {
            title,
            rows: vec![header.iter().map(ToString::to_string).collect()],
            tally: Tally::default(),
        }
    }

    fn row(&mut self, mut cells: Vec<String>, evidence: Evidence, verdict: String) {
        self.tally.count(evidence, &verdict);
        cells.push(verdict);
        self.rows.push(cells);
    }

    fn print(&self) -> std::io::Result<Tally> {
        writeln!(
            stdout(),
            "{}\n{}",
            self.title,
            "-".repeat(self.title.chars().count())
        )?;
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |i: usize| self.rows.iter().filter_map(move |row| row.get(i));
        let widths: Vec<usize> = (0..columns)
            .map(|i| width(i).map(|cell| cell.chars().count()).max().unwrap_or(0))
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            for (i, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                // The first column and the verdict are words.
                let _ = match i {
                    0 => write!(line, "{cell:<width$}"),
                    _ if i + 1 == columns => write!(line, "  {cell}"),
                    _ => write!(line, "  {cell:>width$}"),
                };
            }
            writeln!(stdout(), "{}", line.trim_end())?;
        }
        let name = self.title.split(':').next().unwrap_or_default();
        let phrases = self.tally.phrases();
        if phrases.is_empty() {
            writeln!(stdout())?;
        } else {
            writeln!(stdout(), "verdict, {name}: {}\n", phrases.join("; "))?;
        }
        Ok(self.tally)
    }
}

fn bits(value: f64) -> String {
    format!("{value:.2}")
}

/// A rate in per cent, with three digits that count.
fn percent(rate: f64) -> String {
    let percent = 100.0 * rate;
    let digits = (2.0 - percent.log10().floor()).clamp(0.0, 6.0) as usize;
    format!("{percent:.digits$}")
}

/// A rate that was asked for.
fn asked(rate: f64) -> String {
    format!("{} %", (1e6 * rate).round() / 1e4)
}

/// The verdict on a printed size, where the filter at hand needs another.
fn verdict(printed: f64, needed: f64, formula: f64, measured: Option<Measured>) -> String {
    if let Some(measured) = measured.filter(|measured| !measured.agrees(formula)) {
        let (measured, formula) = (percent(measured.rate()), percent(formula));
        return format!("does not reproduce: measured {measured} %, formula {formula} %");
    }
    let room = printed - needed;
    if room.abs() <= BITS + 1e-9 {
        "reproduced".into()
    } else if room > 0.0 {
        format!("met with room ({room:.2} bits less)")
    } else {
        format!("does not reproduce: {:.2} bits more are needed", -room)
    }
}

/// The policy whose size is nearest to the printed one, if it is near.
fn nearest(printed: f64, sizes: &[(Policy, f64)]) -> String {
    let distance = |size: &f64| (size - printed).abs();
    let nearest = sizes
        .iter()
        .min_by(|a, b| distance(&a.1).total_cmp(&distance(&b.1)));
    match nearest {
        Some((policy, size)) if distance(size) <= BITS + 1e-9 => format!("{policy:?}"),
        _ => "none".into(),
    }
}

fn measure_model(
    effort: &Effort,
    stream: u64,
    geometry: Geometry,
    load: u32,
    rate: f64,
) -> Outcome<Measured> {
    let mut measured = Measured::default();
    let blocks = (effort.keys / u64::from(load)).max(1);
    for filter in 0..effort.filters {
        let stream = stream << 8 | filter;
        let mut keys = members(stream, blocks * u64::from(load));
        let model = Model::build(geometry, blocks, &mut keys).ok_or("a block overflowed")?;
        measured.add(
            |key| model.contains(key),
            stream,
            effort.queries(rate, effort.filters),
        );
    }
    Ok(measured)
}

/// A filter of about this load per block, through the library's own sizing.
fn build<F: Kind>(
    policy: Policy,
    block: u32,
    chains: u32,
    load: f64,
    keys: &mut [u64],
) -> Outcome<F> {
    let config = Config::new(keys.len() as u64)
        .fpr(policy.rate(load, 8 * block, chains))
        .set("block", block)
        .set("chains", chains);
    Ok(F::build(&config, keys)?)
}

fn count<F: Filter>(filter: &F, stream: u64, queries: u64, into: &mut Measured) {
    // Batches are the fast path where there is one.
    const BATCH: usize = 4096;
    let (mut hashes, mut out) = (vec![0; BATCH], vec![false; BATCH]);
    let mut done = 0;
    while done < queries {
        let now = (queries - done).min(BATCH as u64) as usize;
        for (i, hash) in hashes[..now].iter_mut().enumerate() {
            *hash = key(stream, true, done + i as u64);
        }
        filter.contains_batch(&hashes[..now], &mut out[..now]);
        into.hits += out[..now].iter().filter(|&&found| found).count() as u64;
        done += now as u64;
    }
    into.queries += queries;
}

/// Rate of filters that are built for a load per block, and the bits a key that they really take.
fn measure_real<F: Kind>(
    effort: &Effort,
    stream: u64,
    policy: Policy,
    (block, chains): (u32, u32),
    load: f64,
) -> Outcome<(Measured, f64)> {
    let mut measured = Measured::default();
    let rate = policy.rate(load, 8 * block, chains);
    let mut size = 0.0;
    for filter in 0..effort.filters {
        let stream = stream << 8 | filter;
        let mut keys = members(stream, effort.keys);
        let filter: F = build(policy, block, chains, load, &mut keys)?;
        size = 8.0 * filter.size_in_bytes() as f64 / filter.len() as f64;
        count(
            &filter,
            stream,
            effort.queries(rate, effort.filters),
            &mut measured,
        );
    }
    Ok((measured, size))
}

/// What was measured of a kind's filters.
struct OfKind {
    measured: Measured,
    /// Bits a key.
    size: f64,
    /// The rate that the last filter expects of itself.
    expected: f64,
}

/// Builds filters of a kind and counts their false positives.
fn measure_kind<F: Kind>(effort: &Effort, stream: u64, config: &Config) -> Outcome<OfKind> {
    let mut measured = Measured::default();
    let (mut size, mut expected) = (0.0, 0.0);
    for filter in 0..effort.filters {
        let stream = stream << 8 | filter;
        let filter = F::build(config, &mut members(stream, effort.keys))?;
        size = 8.0 * filter.size_in_bytes() as f64 / filter.len() as f64;
        expected = filter.fpr();
        let queries = effort.queries(expected, effort.filters);
        count(&filter, stream, queries, &mut measured);
    }
    Ok(OfKind {
        measured,
        size,
        expected,
    })
}

/// Runs everything; the figures go to `out`.
pub(crate) fn run(out: &Path, quick: bool) -> Outcome<()> {
    let effort = if quick {
        Effort {
            filters: 2,
            keys: 320_000,
            hits: 1000.0,
            most_queries: 5e6,
            small: 4,
            churned: 2000,
        }
    } else {
        Effort {
            filters: 5,
            keys: 1_280_000,
            hits: 4000.0,
            most_queries: 4e7,
            small: 20,
            churned: 8000,
        }
    };
    writeln!(
        stdout(),
        "TinySet (Einziger, Friedman 2015): paper, formula and measurement\n\n\
         P0  add-only, extra bit compared           shipped: tinyset\n\
         P1  the paper's removal, 0 as a wildcard   formula only, without its flag bit\n\
         P2  one size, no extra bit                 formula only, without its flag bit\n\
         P3  removal with a marked boundary         shipped: tinyset_removable\n\n\
         \"model\": a model of the block, for geometries that the filter does not offer; \"filter\": the shipped filter.\n\
         Rates are in per cent, sizes in bits a key. A printed size is reproduced within {BITS} bits; a measured rate\n\
         agrees with a formula within {:.0} % and {DEVIATIONS} standard deviations of the count; growth within {POINTS} point.\n\
         A verdict is measured (filters or models were looked up in), computed (by formula) or restated (the paper's own\n\
         figures agree with one another, or not).\n",
        100.0 * SHARE
    )?;
    check_model(&effort)?;
    let mut tally = tables::table_1(&effort)?;
    tally += speed::table_2(&effort)?;
    tally += tables::table_3(&effort)?;
    tally += tables::table_4(&effort)?;
    tally += tables::table_5_and_6(&effort)?;
    std::fs::create_dir_all(out)?;
    let mut charts = Vec::new();
    let mut figure = |name, (counted, chart): (Tally, Chart)| {
        tally += counted;
        charts.push((name, chart));
    };
    figure("tinyset-figure-10.svg", curves::figure_10(&effort)?);
    figure("tinyset-figure-12.svg", curves::figure_12(&effort)?);
    figure("tinyset-figure-13.svg", curves::figure_13(&effort)?);
    figure("tinyset-figure-14.svg", figures::figure_14(&effort)?);
    figure("tinyset-figure-15.svg", figures::figure_15(&effort)?);
    tally += speed::figure_11(&effort)?;
    tally += curves::headline(&effort)?;
    errata()?;
    writeln!(
        stdout(),
        "Summary of all verdicts\n{}\n",
        tally.phrases().join("\n")
    )?;
    for (name, chart) in charts {
        let path = out.join(name);
        std::fs::write(&path, chart.svg()).map_err(|e| format!("{}: {e}", path.display()))?;
        writeln!(stdout(), "wrote {}", path.display())?;
    }
    Ok(())
}

/// The model must answer each query as the filter does.
fn check_model(effort: &Effort) -> Outcome<()> {
    fn compare<const REMOVABLE: bool>(
        policy: Policy,
        block: u32,
        chains: u32,
        load: f64,
        queries: u64,
    ) -> Outcome<()>
    where
        TinySetOf<REMOVABLE>: Kind,
    {
        let mut keys = members(1, 100_000);
        let filter: TinySetOf<REMOVABLE> = build(policy, block, chains, load, &mut keys)?;
        let geometry = Geometry {
            bits: 8 * block,
            chains,
            flags: policy.flags(),
        };
        let per_block = filter.load_factor() * f64::from(chains);
        let blocks = (filter.len() as f64 / per_block).round() as u64;
        let model = Model::build(geometry, blocks, &mut keys).ok_or("a block overflowed")?;
        let mut same = keys
            .iter()
            .all(|&key| filter.contains(key) && model.contains(key));
        same &= (0..queries)
            .map(|i| key(1, true, i))
            .all(|key| filter.contains(key) == model.contains(key));
        if same {
            return Ok(());
        }
        Err(format!(
            "model and filter differ: {policy:?}, blocks of {block} bytes, {chains} chains"
        )
        .into())
    }
    let queries = (100.0 * effort.hits) as u64;
    for (block, chains, load) in [
        (32, 32, 27.0),
        (64, 64, 56.0),
        (64, 80, 30.0),
        (128, 128, 115.0),
    ] {
        compare::<false>(P0, block, chains, load, queries)?;
        compare::<true>(P3, block, chains, load, queries)?;
    }
    writeln!(
        stdout(),
        "model and filter gave the same answer to each of {queries} queries, at 8 geometries that both offer\n"
    )?;
    Ok(())
}

/// Errors of the paper that no row of a table shows.
fn errata() -> std::io::Result<()> {
    let (width, longer) = math::tinyset_widths(24, 5).unwrap_or_default();
    writeln!(
        stdout(),
        "Errors in the paper's text\n\
         - \"mod = X mod BlockBitSize\" has its operands swapped: its example, 24 bits and 5 items with size {} and mod {longer},\n  \
           is 24 mod 5; 5 mod 24 is 5.\n\
         - Fig. 5: the text says a size of 4 where the caption's 5 is right.\n\
         - 4.1: a fingerprint has log(1/ε) bits, not log(ε).\n\
         - 4.2: p_r mixes up items, bins and r; it is C(n, r) (1/B)^r (1 − 1/B)^(n − r) for n items in B blocks.\n\
         - 4.3: the second sum runs over blocks whose short size is S_i − 1.\n\
         - 4.4: the tail takes the total of items and Z_max, not the mean and W_3.\n\
         - A removal shifts items to the left, not to the right.\n\
         - A counter of 7 bits at mean 64 overflows with probability {:.1e}, not below 1e-13.\n",
        width,
        math::poisson_tail(128, 64.0)
    )
}
