//! `tamis-bench`: every kind of filter on one stopwatch, with other crates' filters beside them.

mod check;
mod clock;
mod compare;
mod duel;
mod figures;
mod fill;
mod heap;
mod html;
mod instructions;
mod keys;
mod limit;
mod measure;
mod ours;
mod paper;
mod plan;
mod report;
mod rivals;
mod stats;
mod subject;
mod targets;

use std::error::Error;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::clock::{Clock, Unrest};
use crate::duel::{Duel, Side};
use crate::figures::{Figure, Run, Shape};
use crate::keys::KeyType;
use crate::plan::{Matrix, Named, Plan};
use crate::subject::Contestant;
use crate::targets::{TARGETS, Target};

/// Measures every kind of filter, with other crates' filters beside them.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure, and print one table for each size and rate.
    Run(RunArgs),
    /// Print the name of everyone who is measured: our kinds first, then the rivals.
    List,
    /// Compare two runs that `run --json` wrote; exit code 1 if one of our figures became worse.
    Compare {
        /// The earlier run.
        old: PathBuf,
        /// The later run.
        new: PathBuf,
        /// The least ratio that is a change.
        #[arg(long, default_value_t = compare::LEAST)]
        ratio: f64,
        /// Show every figure, not only those of ours that changed.
        #[arg(long)]
        all: bool,
    },
    /// Measure what the targets speak of; exit code 1 if one is missed.
    Check {
        /// Rounds to take; two at most from fifty million keys on.
        #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
        rounds: u16,
        /// Only the targets of these kinds.
        #[arg(long, value_delimiter = ',')]
        kinds: Vec<String>,
        /// Judge a run that `run --json` wrote, instead of measuring.
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Let filters meet in turns of some milliseconds: the times of each, and how many times the
    /// first one's they are.
    Duel {
        /// Who meets, by the names of `list`.
        #[arg(required = true, num_args = 2..)]
        names: Vec<String>,
        /// Number of keys.
        #[arg(long, default_value_t = 10_000_000)]
        n: usize,
        /// False-positive rate.
        #[arg(long, default_value_t = targets::EIGHT_BITS)]
        fpr: f64,
        /// Rounds to take; two at most from fifty million keys on.
        #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
        rounds: u16,
        /// Write the samples as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Make a page of a run that `run --json` wrote.
    Report {
        /// The run.
        run: PathBuf,
        /// Another run, to show the ratios of: compiled for another processor, say.
        other: Option<PathBuf>,
        /// Where the page goes.
        #[arg(long, value_name = "FILE", default_value = "report.html")]
        html: PathBuf,
        /// Write the chart of space against time of a million keys at 1 % as a picture of its
        /// own, too.
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
    /// Fill a split block filter and its atomic form, in turns: what threads cost, and gain.
    Fill {
        /// Numbers of hashes.
        #[arg(long, value_delimiter = ',', default_values_t = [100_000, 1_000_000, 10_000_000])]
        n: Vec<usize>,
        /// Turns to take.
        #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u16).range(1..))]
        turns: u16,
    },
    /// Make the calls that `cargo xtask instructions` counts; for valgrind.
    #[command(hide = true)]
    Instructions,
    /// Print a paper's tables and figures beside formulas and measurements, and draw the figures.
    Paper {
        /// Which paper.
        #[arg(value_enum)]
        paper: Paper,
        /// Where the figures go.
        #[arg(long, value_name = "DIR", default_value = "docs/figures")]
        out: PathBuf,
        /// Fewer filters and queries: some seconds.
        #[arg(long)]
        quick: bool,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Paper {
    /// Einziger, Friedman, *TinySet*, 2015.
    Tinyset,
    /// Pagh, Segev, Wieder, *How to approximate a set without knowing its size in advance*, 2013.
    UnknownSize,
    /// Pagh, Pagh, Rao, *An optimal Bloom filter replacement*, 2005.
    Optimal,
    /// Two comparisons: Szabo-Wexler's survey, and Madison and Zipper's Table 1.
    Survey,
}

#[derive(Args)]
struct RunArgs {
    /// Two sizes, one rate, up to three rounds: a minute.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Every size at every rate, and every round: an hour.
    #[arg(long)]
    full: bool,
    /// Numbers of keys [default: 100000,1000000,10000000; 100000000 takes 6 GiB].
    #[arg(long, value_delimiter = ',')]
    n: Vec<usize>,
    /// False-positive rates [default: 0.01,0.00390625,0.001 up to a million keys, 0.00390625
    /// beyond].
    #[arg(long, value_delimiter = ',')]
    fpr: Vec<f64>,
    /// Types of keys [default: u64, and strings at a million keys].
    #[arg(long, value_enum, value_delimiter = ',')]
    keys: Vec<KeyType>,
    /// Only these kinds of ours.
    #[arg(long, value_delimiter = ',')]
    kinds: Vec<String>,
    /// Only these rivals, by crate (`xorf`) or type (`xorf/Xor8`).
    #[arg(long, value_delimiter = ',', conflicts_with = "no_rivals")]
    rivals: Vec<String>,
    /// No rivals.
    #[arg(long)]
    no_rivals: bool,
    /// Rounds for each size and rate [default: up to 5, and up to 3 from a million keys on, while
    /// nine minutes last; quick: up to 3].
    #[arg(long)]
    rounds: Option<usize>,
    /// Build and look up on this many threads, too [default: 2 at 0.00390625 from a million keys
    /// on].
    #[arg(long)]
    threads: Option<usize>,
    /// Which time to measure.
    #[arg(long, value_enum, default_value_t = Clock::Cpu)]
    clock: Clock,
    /// Write the run as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the run as CSV.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the run as a page with charts.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn main() -> ExitCode {
    // A reader who has seen enough ends the program, as any other.
    #[cfg(unix)]
    if let Err(error) = signal_hook::flag::register_conditional_default(
        signal_hook::consts::SIGPIPE,
        Arc::new(AtomicBool::new(true)),
    ) {
        eprintln!("warning: a closed pipe will not end this program: {error}");
    }
    let result = match Cli::parse().command {
        Command::Run(args) => run(args),
        Command::List => {
            let names = subject::all().into_iter().map(|c| format!("{}\n", c.name));
            say(&names.collect::<String>()).map(|()| ExitCode::SUCCESS)
        }
        Command::Compare {
            old,
            new,
            ratio,
            all,
        } => compare_files(&old, &new, ratio, all),
        Command::Check {
            rounds,
            kinds,
            json,
        } => check_targets(rounds.into(), &kinds, json.as_deref()),
        Command::Duel {
            names,
            n,
            fpr,
            rounds,
            json,
        } => let_meet(&names, n, fpr, rounds.into(), json.as_deref()),
        Command::Report {
            run,
            other,
            html,
            svg,
        } => make_report(&run, other.as_deref(), &html, svg.as_deref()),
        Command::Fill { n, turns } => fill::run(&n, turns).map(|()| ExitCode::SUCCESS),
        Command::Instructions => instructions::run()
            .map(|()| ExitCode::SUCCESS)
            .map_err(Into::into),
        Command::Paper {
            paper: Paper::Tinyset,
            out,
            quick,
        } => paper::tinyset::run(&out, quick).map(|()| ExitCode::SUCCESS),
        Command::Paper {
            paper: Paper::UnknownSize,
            quick,
            ..
        } => paper::unknown_size::run(quick).map(|()| ExitCode::SUCCESS),
        Command::Paper {
            paper: Paper::Optimal,
            out,
            quick,
        } => paper::optimal::run(&out, quick).map(|()| ExitCode::SUCCESS),
        Command::Paper {
            paper: Paper::Survey,
            quick,
            ..
        } => paper::survey::run(quick).map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::from(2)
    })
}

fn run(args: RunArgs) -> Result<ExitCode, Box<dyn Error>> {
    let (matrix, queries) = match (args.quick, args.full) {
        (true, _) => (Matrix::Quick, 1 << 18),
        (_, true) => (Matrix::Full, 1 << 20),
        _ => (Matrix::Default, 1 << 20),
    };
    let named = Named {
        sizes: args.n,
        rates: args.fpr,
        keys: args.keys,
        rounds: args.rounds,
        threads: args.threads,
    };
    let plan = Plan {
        tasks: plan::tasks(matrix, &named),
        contestants: choose(&args.kinds, &args.rivals, args.no_rivals)?,
        queries,
        budget: plan::budget(matrix, &named),
        clock: args.clock,
    };
    plan::refuse(&plan.tasks)?;
    for path in [&args.json, &args.csv, &args.html].into_iter().flatten() {
        writable(path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    let run = measure(&plan)?;
    if run.rows.is_empty() {
        return Err("nobody could be measured".into());
    }
    // Before anything is printed: who reads it may be gone.
    if let Some(path) = &args.json {
        write(path, serde_json::to_string_pretty(&run.to_json())? + "\n")?;
    }
    if let Some(path) = &args.csv {
        write(path, run.to_csv())?;
    }
    if let Some(path) = &args.html {
        write(path, html::page(&run, None))?;
    }
    say(&report::tables(&run))?;
    let mut code = ExitCode::SUCCESS;
    for row in run.rows.iter().filter(|row| row.false_negatives > 0) {
        let (who, lost) = (&row.subject, row.false_negatives);
        eprintln!(
            "error: {who} lost keys: {lost} false negatives ({})",
            row.shape
        );
        code = ExitCode::FAILURE;
    }
    Ok(code)
}

/// Finds before the minutes of a run what cannot be written after them. A run that is stopped has
/// lost no file and left none.
fn writable(path: &Path) -> std::io::Result<()> {
    match File::create_new(path) {
        Ok(_) => std::fs::remove_file(path),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            File::options().append(true).open(path).map(drop)
        }
        Err(e) => Err(e),
    }
}

/// The contestants by name; an unknown name is an error.
fn choose(
    kinds: &[String],
    rivals: &[String],
    no_rivals: bool,
) -> Result<Vec<Contestant>, Box<dyn Error>> {
    let is = |contestant: &Contestant, name: &String| {
        let of_crate = contestant.name.split('/').next();
        contestant.name == name || of_crate == Some(name)
    };
    let all = subject::all();
    for name in kinds {
        if !all.iter().any(|c| c.ours && c.name == name) {
            tamis::kind(name)?;
        }
    }
    for name in rivals {
        if !all.iter().any(|c| !c.ours && is(c, name)) {
            let known: Vec<_> = all.iter().filter(|c| !c.ours).map(|c| c.name).collect();
            return Err(format!("no rival `{name}`; there are {}", known.join(", ")).into());
        }
    }
    let wanted = |c: &Contestant| {
        if c.ours {
            kinds.is_empty() || kinds.iter().any(|name| c.name == name)
        } else {
            !no_rivals && (rivals.is_empty() || rivals.iter().any(|name| is(c, name)))
        }
    };
    Ok(all.into_iter().filter(wanted).collect())
}

/// Runs a plan, with a line of progress on a terminal.
fn measure(plan: &Plan) -> Result<Run, Box<dyn Error>> {
    let (run, absent) = measure::run(plan, progress)?;
    progress("");
    for who in absent {
        eprintln!("took no part: {who}");
    }
    Ok(run)
}

/// Prints to the standard output.
fn say(text: &str) -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|e| format!("the standard output: {e}").into())
}

fn write(path: &Path, text: String) -> Result<(), Box<dyn Error>> {
    std::fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()).into())
}

fn read(path: &Path) -> Result<Run, Box<dyn Error>> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let not_ours = || format!("{} is not a run of this program", path.display());
    let value = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", not_ours()))?;
    Ok(Run::from_json(&value).ok_or_else(not_ours)?)
}

fn compare_files(
    old: &Path,
    new: &Path,
    ratio: f64,
    all: bool,
) -> Result<ExitCode, Box<dyn Error>> {
    if !(ratio >= 1.0) {
        return Err(format!("a ratio of change is 1 or more, and {ratio} is not").into());
    }
    let compared = compare::compare(&read(old)?, &read(new)?, ratio, all);
    let (text, worse) = compared.ok_or("the two runs have no figure in common")?;
    say(&text)?;
    Ok(ExitCode::from(u8::from(worse > 0)))
}

/// The shape of the README's table and chart.
const README: Shape = Shape {
    n: 1_000_000,
    fpr: 0.01,
    keys: KeyType::U64,
};

fn make_report(
    run: &Path,
    other: Option<&Path>,
    html: &Path,
    svg: Option<&Path>,
) -> Result<ExitCode, Box<dyn Error>> {
    let run = read(run)?;
    let other = other.map(read).transpose()?;
    if let Some(path) = svg {
        let title = "Space against time: a million keys at 1 %";
        let chart = html::pareto_file(&run, README, title);
        let chart = chart.ok_or(format!("nobody was measured at {README}"))?;
        write(path, chart)?;
    }
    write(html, html::page(&run, other.as_ref()))?;
    Ok(ExitCode::SUCCESS)
}

fn check_targets(
    rounds: usize,
    kinds: &[String],
    json: Option<&Path>,
) -> Result<ExitCode, Box<dyn Error>> {
    for name in kinds {
        if !TARGETS.iter().any(|target| target.ours == name) {
            return Err(format!("no target speaks of `{name}`").into());
        }
    }
    let is_wanted = |target: &&Target| kinds.is_empty() || kinds.iter().any(|k| k == target.ours);
    let targets: Vec<&Target> = TARGETS.iter().filter(is_wanted).collect();
    let (text, missed) = match json {
        Some(path) => {
            let run = read(path)?;
            // A run tells of the targets that it happened to measure.
            let told: Vec<&Target> = targets
                .iter()
                .copied()
                .filter(|t| t.is_told(&run))
                .collect();
            if told.is_empty() {
                return Err("the run has nothing that a target speaks of".into());
            }
            let (text, missed) = check::check(told.iter().map(|target| (*target, &run)));
            let others = targets.len() - told.len();
            (
                format!("{text}{others} targets speak of what is not in the run\n"),
                missed,
            )
        }
        None => {
            let (runs, unrest) = measure_targets(&targets, rounds);
            let judged = targets.into_iter().zip(runs.iter().map(Rc::as_ref));
            let (text, missed) = check::check(judged);
            (format!("{text}{}\n", unrest.phrase()), missed)
        }
    };
    say(&text)?;
    Ok(ExitCode::from(u8::from(missed > 0)))
}

/// Lets filters meet and prints what each took.
fn let_meet(
    names: &[String],
    n: usize,
    fpr: f64,
    rounds: usize,
    json: Option<&Path>,
) -> Result<ExitCode, Box<dyn Error>> {
    let named = Named {
        sizes: vec![n],
        rates: vec![fpr],
        ..Named::default()
    };
    plan::refuse(&plan::tasks(Matrix::Default, &named))?;
    let all = subject::all();
    let keys = KeyType::U64;
    let mut sides = Vec::new();
    for name in names {
        let unknown = || format!("nobody is called `{name}`; `tamis-bench list` has the names");
        let contestant = all.iter().find(|c| c.name == name).ok_or_else(unknown)?;
        if sides.iter().any(|s: &Side<'_>| s.contestant.name == name) {
            return Err(format!("`{name}` cannot meet itself").into());
        }
        let shape = Shape { n, fpr, keys };
        sides.push(Side { contestant, shape });
    }
    let mut figures = [Figure::SINGLE, Figure::BATCH].concat();
    figures.extend([Figure::Build, Figure::Limit]);
    if sides.iter().all(|s| s.contestant.insert.empty().is_some()) {
        figures.extend([Figure::Insert, Figure::InsertBatch]);
    }
    let duel = Duel {
        sides,
        figures,
        threads: 1,
        clock: Clock::Cpu,
        samples: duel::SAMPLES,
    };
    if let Some(path) = json {
        writable(path).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    progress(&names.join(" and "));
    let run = duel.play(rounds);
    progress("");
    let run = run?;
    if let Some(path) = json {
        write(path, serde_json::to_string_pretty(&run.to_json())? + "\n")?;
    }
    say(&report::quotients(&run))?;
    Ok(ExitCode::SUCCESS)
}

/// Lets those meet whom each target speaks of; targets of the same ones and the same clock share
/// a duel, and one that speaks of us alone has part in the first of ours.
fn measure_targets(targets: &[&Target], rounds: usize) -> (Vec<Rc<Run>>, Unrest) {
    let all = subject::all();
    let mut duels: Vec<(Vec<_>, Clock, Rc<Run>)> = Vec::new();
    let (mut runs, mut unrest) = (Vec::new(), Unrest::default());
    for target in targets {
        unrest.look();
        let (names, clock) = (target.sides(), target.clock());
        let held = |(sides, of, _): &&(Vec<_>, _, _)| sides.starts_with(&names) && *of == clock;
        if let Some((.., run)) = duels.iter().find(held) {
            runs.push(Rc::clone(run));
            continue;
        }
        let side = |&(name, shape): &(&str, Shape)| {
            let contestant = all.iter().find(|c| c.name == name)?;
            Some(Side { contestant, shape })
        };
        let same = |t: &&&Target| names.starts_with(&t.sides()) && t.clock() == clock;
        let same = targets.iter().filter(same);
        let duel = Duel {
            sides: names.iter().filter_map(side).collect(),
            figures: same.flat_map(|t| t.figures()).collect(),
            threads: check::THREADS,
            clock,
            samples: duel::SAMPLES,
        };
        let who: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
        progress(&format!("{}: {}", target.shape(), who.join(" and ")));
        // Without memory for one duel, say, the others are held; the verdict says that this one
        // was not.
        let run = duel.play(rounds).unwrap_or_else(|reason| {
            eprintln!(
                "took no part: {} at {}: {reason}",
                who.join(" and "),
                target.shape()
            );
            Run::default()
        });
        let run = Rc::new(run);
        runs.push(Rc::clone(&run));
        duels.push((names, clock, run));
    }
    progress("");
    (runs, unrest)
}

/// A line of progress on a terminal, in the place of the last one.
fn progress(what: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{what}");
        // Progress is a courtesy: if it cannot be shown, the run goes on.
        let _ = std::io::stderr().flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(kinds: &[&str], rivals: &[&str], no_rivals: bool) -> Vec<&'static str> {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let chosen = choose(&owned(kinds), &owned(rivals), no_rivals);
        chosen.unwrap().iter().map(|c| c.name).collect()
    }

    #[test]
    fn contestants_are_chosen_by_kind_crate_and_type() {
        assert_eq!(names(&["bloom"], &[], true), ["bloom"]);
        let xorf = names(&["cuckoo"], &["xorf"], false);
        assert_eq!(xorf.len(), 4, "{xorf:?}");
        let one = names(&["cuckoo"], &["xorf/Xor8"], false);
        assert_eq!(one, ["cuckoo", "xorf/Xor8"]);
        let ours = names(&[], &[], true);
        assert!(tamis::KINDS.iter().all(|info| ours.contains(&info.name)));
        assert_eq!(names(&["cuckoo12"], &[], true), ["cuckoo12"]);
    }

    #[test]
    fn unknown_names_are_refused() {
        assert!(choose(&["blom".into()], &[], false).is_err());
        assert!(choose(&[], &["nobody".into()], false).is_err());
    }

    #[test]
    fn looking_whether_a_file_can_be_written_leaves_and_loses_none() {
        let dir = std::env::temp_dir().join(format!("tamis-bench-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (new, old) = (dir.join("new.json"), dir.join("old.json"));
        std::fs::write(&old, "kept").unwrap();
        writable(&new).unwrap();
        writable(&old).unwrap();
        assert!(!new.exists());
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "kept");
        assert!(writable(&dir).is_err());
        assert!(writable(&dir.join("missing/new.json")).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn the_command_line_is_sound() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}
