//! Figures 10, 12 and 13, and what the abstract claims.

use tamis::RankIndexed;

use super::*;

const BLUE: &str = "#1d4ed8";
const ORANGE: &str = "#c2410c";
const GREEN: &str = "#15803d";
const VIOLET: &str = "#7e22ce";
const GREY: &str = "#6b7280";

/// Rates from 10⁻⁶ to 20 %, in per cent.
const RATE_AXIS: Axis = Axis {
    label: "false-positive rate, % (log scale)",
    low: 0.0001,
    high: 20.0,
    log: true,
    ticks: &[0.0001, 0.001, 0.01, 0.1, 1.0, 10.0],
};

fn series(name: &'static str, colour: &'static str, mark: Mark, points: Vec<(f64, f64)>) -> Series {
    Series {
        name,
        colour,
        mark,
        points,
    }
}

/// A curve over sizes from `low` to `high` bits, in tenths: the rate in per cent.
fn curve(low: u32, high: u32, rate: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    (10 * low..=10 * high)
        .map(|tenth| f64::from(tenth) / 10.0)
        .map(|size| (size, 100.0 * rate(size)))
        .filter(|(_, rate)| (RATE_AXIS.low..=RATE_AXIS.high).contains(rate))
        .collect()
}

/// The verdict on a point that the paper only draws.
fn as_drawn(agrees: bool) -> String {
    match agrees {
        true => AS_BY_FORMULA.into(),
        false => "does not reproduce: measured otherwise than by formula".into(),
    }
}

/// The rate of the best Bloom filter of so many bits a key.
fn bloom_rate(size: f64) -> f64 {
    const KEYS: u64 = 1_000_000;
    let bits = (size * KEYS as f64) as u64;
    (1..=32)
        .map(|k| math::bloom_fpr(bits, KEYS, k))
        .fold(1.0, f64::min)
}

pub(super) fn figure_10(effort: &Effort) -> Outcome<(Tally, Chart)> {
    const ITEMS: [(u32, &str, &str); 4] = [
        (16, "16 keys a block", ORANGE),
        (32, "32", VIOLET),
        (64, "64", BLUE),
        (128, "128", GREEN),
    ];
    let mut table = Table::new(
        "Figure 10: rate by size at one key per chain (model)",
        &["keys a block", "bits a key", "P0", "measured", "verdict"],
    );
    let mut lines = Vec::new();
    for (stream, (items, name, colour)) in (500..).zip(ITEMS) {
        let mut dots = Vec::new();
        for size in [8, 10, 12, 14, 16] {
            let geometry = Geometry {
                bits: size * items,
                chains: items,
                flags: 0,
            };
            let formula = P0.rate(f64::from(items), size * items, items);
            let stream = stream << 5 | u64::from(size);
            let measured = measure_model(effort, stream, geometry, items, formula)?;
            dots.push((f64::from(size), 100.0 * measured.rate()));
            let cells = vec![
                format!("{items}"),
                format!("{size}"),
                percent(formula),
                percent(measured.rate()),
            ];
            table.row(
                cells,
                Evidence::Measured,
                as_drawn(measured.agrees(formula)),
            );
        }
        let rate = |size: f64| {
            let block = (size * f64::from(items)).round() as u32;
            P0.rate(f64::from(items), block, items)
        };
        lines.push(series(name, colour, Mark::Line, curve(7, 17, rate)));
        lines.push(series("measured", colour, Mark::Dots, dots));
    }
    let one = |size: f64| P0.block_rate((size * f64::from(ONE)) as u32 - ONE, ONE, ONE);
    lines.push(series("one block", GREY, Mark::Dashes, curve(7, 17, one)));
    let mut tally = table.print()?;
    let more: Vec<f64> = RATES
        .iter()
        .map(|&rate| P0.size_by_items(64, rate) - P0.size_of_one(ONE, rate))
        .collect();
    let most = more.iter().copied().fold(0.0, f64::max);
    let claimed = "64 keys a block take \"0.5-1.3 more bits\" than one block";
    claim(
        &mut tally,
        "Figure 10",
        claimed,
        Evidence::Computed,
        &verdict(1.3, most, 1.0, None),
    )?;
    writeln!(stdout())?;
    Ok((
        tally,
        Chart {
            title: "TinySet with a fixed number of keys per block",
            subtitle: "as many chains as keys; lines by formula".into(),
            x: Axis {
                label: "bits per key",
                low: 7.0,
                high: 17.0,
                log: false,
                ticks: &[8.0, 10.0, 12.0, 14.0, 16.0],
            },
            y: RATE_AXIS,
            series: lines,
            guides: vec![],
            notes: vec![],
            legend: (84.0, 205.0),
        },
    ))
}

pub(super) fn figure_12(effort: &Effort) -> Outcome<(Tally, Chart)> {
    const ITEMS: u32 = 40;
    const CHAINS: u32 = 64;
    let rate = |policy: Policy, size: f64| {
        let block = (size * f64::from(ITEMS)).round() as u32;
        policy.rate(f64::from(ITEMS), block, CHAINS)
    };
    let mut table = Table::new(
        "Figure 12: rate by size at 40 keys a block, L = 64 (model)",
        &[
            "bits a key",
            "P0",
            "measured",
            "P1",
            "Bloom best k",
            "verdict",
        ],
    );
    let mut dots = Vec::new();
    for size in [7, 9, 11, 13, 15, 17, 19] {
        let geometry = Geometry {
            bits: size * ITEMS,
            chains: CHAINS,
            flags: 0,
        };
        let at = f64::from(size);
        let formula = rate(P0, at);
        let stream = 540 + u64::from(size);
        let measured = measure_model(effort, stream, geometry, ITEMS, formula)?;
        dots.push((at, 100.0 * measured.rate()));
        let cells = vec![
            format!("{size}"),
            percent(formula),
            percent(measured.rate()),
            percent(rate(P1, at)),
            percent(bloom_rate(at)),
        ];
        table.row(
            cells,
            Evidence::Measured,
            as_drawn(measured.agrees(formula)),
        );
    }
    let mut tally = table.print()?;
    let mut ranked = Vec::new();
    let mut beats_rank = true;
    for bits in [5, 7, 9, 11, 13] {
        // What one key a chain gives for these bits.
        let config = Config::new(effort.keys).fpr(math::chain_fpr(1.0, bits) * (1.0 + 1e-9));
        let config = config.set("bits", bits);
        let kind = measure_kind::<RankIndexed>(effort, 560 + u64::from(bits), &config)?;
        beats_rank &= rate(P0, kind.size) < kind.measured.rate();
        ranked.push((kind.size, 100.0 * kind.measured.rate()));
    }
    claim(
        &mut tally,
        "Figure 12",
        "\"superior to\" rank indexed hashing (filter: rank_indexed)",
        Evidence::Measured,
        &judge(beats_rank, "it is not at some size"),
    )?;
    let even = |policy: Policy| {
        let tenths = (50..200).map(|tenth| f64::from(tenth) / 10.0);
        tenths
            .filter(|&size| rate(policy, size) >= bloom_rate(size))
            .fold(0.0, f64::max)
            + 0.1
    };
    claim(
        &mut tally,
        "Figure 12",
        "\"the break even point is ~7.9 bits\"",
        Evidence::Computed,
        &format!(
            "{}; {:.1} bits with P0, {:.1} with P1",
            verdict(7.9, even(P0), 1.0, None),
            even(P0),
            even(P1)
        ),
    )?;
    let times = bloom_rate(19.0) / rate(P0, 19.0);
    claim(
        &mut tally,
        "Figure 12",
        "\"over 4 times more accurate\" at 19 bits",
        Evidence::Computed,
        &judge(times > 4.0, &format!("{times:.1} times")),
    )?;
    writeln!(stdout())?;
    let chart = Chart {
        title: "TinySet, Bloom and rank indexed hashing at the same size",
        subtitle: "TinySet: 40 keys a block, 64 chains; lines by formula".into(),
        x: Axis {
            label: "bits per key",
            low: 6.0,
            high: 20.0,
            log: false,
            ticks: &[6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0],
        },
        y: RATE_AXIS,
        series: vec![
            series(
                "Bloom, best k",
                ORANGE,
                Mark::Line,
                curve(6, 20, bloom_rate),
            ),
            series("rank indexed: measured", GREEN, Mark::Dots, ranked),
            series(
                "TinySet",
                BLUE,
                Mark::Line,
                curve(6, 20, |size| rate(P0, size)),
            ),
            series("measured (block model)", BLUE, Mark::Dots, dots),
        ],
        guides: vec![],
        notes: vec![],
        legend: (84.0, 310.0),
    };
    Ok((tally, chart))
}

/// Share of the keys in the list of the paper's balanced Bloom filters.
pub(super) const LISTED: f64 = 0.0049;

/// The rate of the best blocked Bloom filter of 32-byte blocks and so many bits a key, balanced
/// or not. The list of the balanced one is not counted.
fn blocked_rate(size: f64) -> (f64, f64) {
    let cap = (1..256)
        .find(|&cap| math::balanced_overflow(size, 256, cap) <= LISTED)
        .unwrap_or(256);
    let least = |rate: &dyn Fn(u32) -> f64| (1..=20).map(rate).fold(1.0, f64::min);
    (
        least(&|k| math::blocked_fpr(size, 256, k)),
        least(&|k| math::balanced_fpr(size, 256, k, cap)),
    )
}

pub(super) fn figure_13(effort: &Effort) -> Outcome<(Tally, Chart)> {
    /// The largest size in the paper's tables; it does not say where the figure's range ends.
    const END: f64 = 27.5;
    let mut table = Table::new(
        "Figure 13: rate by size with blocks of 32 and 64 bytes (filter)",
        &[
            "bits a key",
            "32 bytes: P0",
            "measured",
            "64 bytes: P0",
            "measured",
            "blocked Bloom",
            "balanced Bloom",
            "verdict",
        ],
    );
    let tiny = |block: u32, size: f64| P0.rate(f64::from(8 * block) / size, 8 * block, block);
    let mut dots = [Vec::new(), Vec::new()];
    for size in [8.0, 11.0, 14.0, 17.0, 20.0, 23.0] {
        let (blocked, balanced) = blocked_rate(size);
        let mut cells = vec![format!("{size}")];
        let mut agree = true;
        for ((block, dots), stream) in [32, 64].into_iter().zip(&mut dots).zip(0..) {
            let stream = 600 + 2 * size as u64 + stream;
            let load = f64::from(8 * block) / size;
            let formula = tiny(block, size);
            let (measured, _) = measure_real::<TinySet>(effort, stream, P0, (block, block), load)?;
            agree &= measured.agrees(formula);
            dots.push((size, 100.0 * measured.rate()));
            cells.extend([percent(formula), percent(measured.rate())]);
        }
        cells.extend([percent(blocked), percent(balanced)]);
        table.row(cells, Evidence::Measured, as_drawn(agree));
    }
    let mut tally = table.print()?;
    let times = |block: u32, size: f64| {
        let (blocked, balanced) = blocked_rate(size);
        blocked.min(balanced) / tiny(block, size)
    };
    let words = "at the end \"≈ 9 times more accurate\" (32 bytes), \"over 30 times\" (64 bytes)";
    let [small, large] = [32, 64].map(|block| times(block, END));
    let from = (16..=120)
        .map(|half| f64::from(half) / 2.0)
        .find(|&size| times(32, size) >= 9.0);
    let from = from.map_or("never".into(), |size| format!("from {size} bits on"));
    let verdict = judge(
        (small - 9.0).abs() <= 0.5 && large > 30.0,
        &format!("{small:.1} and {large:.0} times at {END} bits; 9 times {from}"),
    );
    claim(&mut tally, "Figure 13", words, Evidence::Computed, &verdict)?;
    writeln!(stdout())?;
    let [dots_32, dots_64] = dots;
    let chart = Chart {
        title: "TinySet and Bloom filters that read one block",
        subtitle: "as many chains as bytes; Bloom filters in blocks of 32 bytes; lines by formula"
            .into(),
        x: Axis {
            label: "bits per key",
            low: 7.0,
            high: 25.0,
            log: false,
            ticks: &[8.0, 12.0, 16.0, 20.0, 24.0],
        },
        y: RATE_AXIS,
        series: vec![
            series(
                "blocked Bloom",
                ORANGE,
                Mark::Line,
                curve(7, 25, |size| blocked_rate(size).0),
            ),
            series(
                "balanced Bloom, without its list",
                GREEN,
                Mark::Dashes,
                curve(7, 25, |size| blocked_rate(size).1),
            ),
            series(
                "TinySet, 32 bytes",
                VIOLET,
                Mark::Line,
                curve(7, 25, |size| tiny(32, size)),
            ),
            series("measured", VIOLET, Mark::Dots, dots_32),
            series(
                "TinySet, 64 bytes",
                BLUE,
                Mark::Line,
                curve(7, 25, |size| tiny(64, size)),
            ),
            series("measured", BLUE, Mark::Dots, dots_64),
        ],
        guides: vec![],
        notes: vec![],
        legend: (84.0, 270.0),
    };
    Ok((tally, chart))
}

pub(super) fn headline(effort: &Effort) -> Outcome<Tally> {
    let mut table = Table::new(
        "Headline: smaller than a Bloom filter at rates below 2.8 %, in one memory word (filters, blocks of 64 bytes)",
        &[
            "rate",
            "tinyset: bits",
            "measured rate",
            "bloom: bits",
            "measured rate",
            "verdict",
        ],
    );
    let rates = [0.028, 0.02, 0.01, 0.001, 0.0001];
    for (i, rate) in (0..).zip(rates) {
        let config = Config::new(effort.keys).fpr(rate);
        let tiny = measure_kind::<TinySet>(effort, 640 + 2 * i, &config)?;
        let bloom = measure_kind::<Bloom>(effort, 641 + 2 * i, &config)?;
        let agree = tiny.measured.agrees(rate) && bloom.measured.agrees(rate);
        let verdict = match agree {
            true => judge(tiny.size < bloom.size, "the Bloom filter is smaller"),
            false => "does not reproduce: a rate is not as by formula".into(),
        };
        let cells = vec![
            asked(rate),
            bits(tiny.size),
            percent(tiny.measured.rate()),
            bits(bloom.size),
            percent(bloom.measured.rate()),
        ];
        table.row(cells, Evidence::Measured, verdict);
    }
    let mut tally = table.print()?;
    let smaller = |rate: f64| P0.size_by_block(512, 64, rate) < tables::bloom_bits(rate);
    let even = (1..100)
        .map(|tenth| f64::from(tenth) / 1000.0)
        .take_while(|&rate| smaller(rate))
        .last()
        .unwrap_or(0.0);
    claim(
        &mut tally,
        "Headline",
        "smaller for \"rates smaller than 2.8%\"",
        Evidence::Computed,
        &format!(
            "{}; up to {:.1} %",
            judge(even >= 0.028, "not so far"),
            100.0 * even
        ),
    )?;
    let more = 100.0 * (1.0 / std::f64::consts::LN_2 - 1.0);
    claim(
        &mut tally,
        "Headline",
        "Bloom filters \"require 44% more space than the lower bound\"",
        Evidence::Computed,
        &judge((more - 44.0).abs() <= POINTS, &format!("{more:.0} %")),
    )?;
    writeln!(stdout())?;
    Ok(tally)
}
