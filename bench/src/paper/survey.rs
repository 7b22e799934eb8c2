//! Two comparisons of filters, claim by claim: Table 1 of Madison and Zipper's report on
//! improvements of Bloom filters, and what Szabo-Wexler's survey says of each structure.

use std::error::Error;
use std::io::{Write, stdout};

use tamis::testing::math;
use tamis::{Config, Filter, HashCompaction, Kind};

use crate::keys::splitmix;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A row of Table 1: a kind, the space of a Bloom filter that it is said to take, from and to, and
/// the lines that it is said to read.
struct Claim {
    kind: &'static str,
    least: f64,
    most: f64,
    lines: &'static str,
    remark: &'static str,
}

const TABLE: [Claim; 7] = [
    Claim {
        kind: "bloom",
        least: 1.0,
        most: 1.0,
        lines: "h",
        remark: "",
    },
    Claim {
        kind: "counting",
        least: 3.0,
        most: 4.0,
        lines: "h",
        remark: "",
    },
    Claim {
        kind: "blocked",
        least: 1.0,
        most: 1.0,
        lines: "1",
        remark: "blocks fill unevenly, which costs the more the lower the rate",
    },
    Claim {
        kind: "d_left",
        least: 1.5,
        most: 2.0,
        lines: "d",
        remark: "",
    },
    Claim {
        kind: "quotient_standard",
        least: 1.0,
        most: 1.2,
        lines: "1 or more",
        remark: "three bits a slot, at a load of 0.9",
    },
    Claim {
        kind: "folded",
        least: 0.5,
        most: 0.5,
        lines: "h(f + 2)",
        remark: "half the cells, of two bits each; half the bits would be fewer than any filter can have",
    },
    Claim {
        kind: "cuckoo",
        least: 0.0,
        most: 1.0,
        lines: "2",
        remark: "only below 0.42 %, or 2.7 % with a bit saved by sorting buckets",
    },
];

/// What rounding leaves of a printed "1×".
const ROUNDED: f64 = 0.02;

fn hashes(n: u64) -> Vec<u64> {
    (0..n).map(splitmix).collect()
}

/// Prints both.
pub(crate) fn run(quick: bool) -> Outcome<()> {
    let n = if quick { 100_000 } else { 1_000_000 };
    let mut out = stdout();
    writeln!(
        out,
        "Improvements of Bloom filters (Madison, Zipper), Table 1: space as a multiple of a Bloom filter's at the rate that\n\
         each filter has, of {n} keys\n\n  kind               asked     space   claimed      lines      verdict"
    )?;
    for claim in &TABLE {
        for fpr in [0.01, 0.001] {
            let config = Config::new(n).fpr(fpr);
            let filter = tamis::kind(claim.kind)?.build(&config, &mut hashes(n))?;
            let bits = 8.0 * filter.size_in_bytes() as f64 / n as f64;
            let space = bits / math::bloom_bits_per_key(filter.fpr());
            let holds = (claim.least - ROUNDED..=claim.most + ROUNDED).contains(&space);
            let verdict = match (holds, claim.remark) {
                (true, _) => "holds".to_string(),
                (false, "") => "does not hold".to_string(),
                (false, why) => format!("does not hold: {why}"),
            };
            writeln!(
                out,
                "  {:<17} {:5.1} %     {space:5.2}   {:.1} to {:.1}   {:<9}  {verdict}",
                claim.kind,
                100.0 * fpr,
                claim.least,
                claim.most,
                claim.lines,
            )?;
        }
    }
    writeln!(out, "\nA survey (Szabo-Wexler), claim by claim\n")?;
    survey(n)
}

fn say(claim: &str, measured: &str, verdict: &str) -> Outcome<()> {
    writeln!(stdout(), "  {claim:<58} {measured:<44} {verdict}")?;
    Ok(())
}

fn survey(n: u64) -> Outcome<()> {
    // Hash compaction: a signature of b bits errs at 2^-b.
    let config = Config::new(n).fpr(0.01);
    let table = HashCompaction::build(&config, &mut hashes(n))?;
    let bits = table.signature_bits();
    let (rate, one) = (table.fpr(), math::fingerprint_fpr(bits));
    say(
        &format!("hash compaction errs at 2^-{bits} with {bits} bits"),
        &format!("{:.3} %, one comparison {:.3} %", 100.0 * rate, 100.0 * one),
        if rate <= one {
            "holds"
        } else {
            "of one comparison; several are made"
        },
    )?;
    // Bloom-g: fewer accesses at no cost in error.
    let bloom = tamis::kind("bloom")?.build(&config, &mut hashes(n))?;
    let gathered = tamis::kind("bloom_g")?.build(&config, &mut hashes(n))?;
    let [bloom, gathered] = [&bloom, &gathered].map(|f| 8.0 * f.size_in_bytes() as f64 / n as f64);
    say(
        "Bloom-g saves accesses at no cost",
        &format!("{gathered:.2} bits at 1 %, Bloom {bloom:.2}"),
        if gathered <= 1.005 * bloom {
            "holds"
        } else {
            "does not hold: the cost is space"
        },
    )?;
    // Space that does not depend on n.
    let twice = tamis::kind("bloom")?.build(&Config::new(2 * n).fpr(0.01), &mut [])?;
    let twice = 8.0 * twice.size_in_bytes() as f64 / n as f64;
    say(
        "a Bloom filter takes constant space",
        &format!("{:.2} times for twice the keys at one rate", twice / bloom),
        "only where the rate may grow",
    )?;
    // Counts are never below the truth in spectral filters.
    let minimal = tamis::kind("counting_minimal")?.build(&config, &mut hashes(n))?;
    let count = minimal.as_count().ok_or("it counts")?;
    let below = (0..n).filter(|&i| count.count(splitmix(i)) == 0).count();
    say(
        "spectral counts are never too low",
        &format!("{below} of {n} below"),
        if below == 0 { "holds" } else { "DOES NOT HOLD" },
    )
}
