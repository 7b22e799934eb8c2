//! Quotient filters larger than memory: two files become one in a single pass over both, and a
//! lookup in a mapped file reads one page.
//!
//! Builds two filters, merges their files, looks up keys in the result, and says what it took.
//!
//! `cargo run --release -p tamis-examples --bin on_disk -- 100000000 /var/tmp` (keys of each file,
//! directory)

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use tamis::{Config, Keyed, Mapped, Open, Quotient};

/// Lookups of keys that are there, and of as many that are not.
const LOOKUPS: u64 = 500;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let keys: u64 = arguments
        .next()
        .map_or(Ok(1_000_000), |keys| keys.parse())?;
    let parent: PathBuf = arguments.next().map_or(std::env::temp_dir(), Into::into);
    let directory = parent.join(format!("tamis-on-disk-{}", std::process::id()));
    fs::create_dir(&directory)?;
    let done = run(keys, &directory);
    fs::remove_dir_all(&directory)?;
    done
}

fn run(keys: u64, directory: &Path) -> Result<(), Box<dyn Error>> {
    let paths = [directory.join("a.tamis"), directory.join("b.tamis")];
    let union = directory.join("union.tamis");
    let config = Config::new(2 * keys);
    for (path, from) in paths.iter().zip([0, keys]) {
        Keyed::<Quotient>::build(&config, from..from + keys)?.save(path)?;
    }

    forget_peak_memory();
    let before = status("VmHWM:");
    let start = Instant::now();
    let merged = Open::new().merge_files(&paths, &union)?;
    let seconds = start.elapsed().as_secs_f64();
    let megabytes = merged.bytes as f64 / 1e6;
    println!("two files of {megabytes:.0} MB, {keys} keys each, into one: {seconds:.1} s");
    if let (Some(before), Some(after)) = (before, status("VmHWM:")) {
        println!("most memory: {after} kB, {before} kB before");
    }

    forget_cached(&union);
    #[allow(
        unsafe_code,
        reason = "nobody else knows this file, and nobody changes it"
    )]
    // SAFETY: as above.
    let file = unsafe { Mapped::open(&union)? };
    let union: Keyed<Quotient> = Open::new().verify(false).mapped(file.random())?;
    let faults = pages_read();
    let (mut found, mut others) = (0, 0);
    for i in 0..LOOKUPS {
        let key = i * (2 * keys / LOOKUPS).max(1) % (2 * keys);
        found += u64::from(union.contains(&key));
        others += u64::from(union.contains(&(u64::MAX - i)));
    }
    assert_eq!(found, LOOKUPS, "a key is missing");
    println!("{LOOKUPS} keys are found, and {others} of as many others");
    if let (Some(before), Some(after)) = (faults, pages_read()) {
        let each = (after - before) as f64 / (2 * LOOKUPS) as f64;
        println!("pages read by a lookup: {each:.3}");
    }
    Ok(())
}

/// A number of kilobytes that the system says of this process.
fn status(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// From now on the most memory is counted anew, where the system can do that.
fn forget_peak_memory() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Makes the system forget a file's pages, where it can: others wait on disk then.
fn forget_cached(path: &Path) {
    let file = format!("if={}", path.display());
    let _ = Command::new("dd")
        .args([&*file, "iflag=nocache", "count=0", "status=none"])
        .status();
}

/// How many pages this process has waited for, so far.
fn pages_read() -> Option<u64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The twelfth field; the second is a name in parentheses.
    let fields = stat.rsplit_once(')')?.1;
    fields.split_whitespace().nth(9)?.parse().ok()
}
