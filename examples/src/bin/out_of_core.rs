//! A filter of more keys than memory holds: their hashes wait on disk, shard by shard.
//!
//! Builds the filter, looks up every key again, measures the rate, and says what it took.
//!
//! `cargo run --release -p tamis-examples --bin out_of_core -- 400000000 /var/tmp 2` (keys,
//! directory, threads)

use std::error::Error;
use std::time::Instant;

use tamis::{BinaryFuse8, Config, Filter, Hashing, Key, Spill};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let keys: u64 = arguments
        .next()
        .map_or(Ok(1_000_000), |keys| keys.parse())?;
    let directory = arguments.next().map_or(std::env::temp_dir(), Into::into);
    let threads = arguments.next().map_or(Ok(1), |threads| threads.parse())?;
    let hashing = Hashing::default();
    let hash = |key: u64| key.hash_with(&hashing);

    let start = Instant::now();
    let config = Config::default().threads(threads).progress(|progress| {
        eprint!("\r{} of {} keys ", progress.done, progress.total);
    });
    let mut spill = Spill::new(directory)?;
    for key in 0..keys {
        spill.push(hash(key))?;
    }
    let spilled = start.elapsed();
    let filter: BinaryFuse8 = spill.finish(&config)?;
    let built = start.elapsed();
    eprintln!();
    println!("{keys} keys, {} shards", filter.shards());
    println!("to disk: {:.1} s", spilled.as_secs_f64());
    println!("to a filter: {:.1} s", (built - spilled).as_secs_f64());
    let bits = filter.size_in_bytes() as f64 * 8.0 / keys as f64;
    println!("the filter: {bits:.3} bits per key");
    if let Some(peak) = peak_memory() {
        println!("most memory: {peak}");
    }

    let found = |from: u64, to: u64| {
        let (mut found, mut answers) = (0, [false; 4096]);
        for start in (from..to).step_by(answers.len()) {
            let end = to.min(start + answers.len() as u64);
            let hashes: Vec<u64> = (start..end).map(hash).collect();
            filter.contains_batch(&hashes, &mut answers);
            let yes = answers[..hashes.len()].iter().filter(|&&answer| answer);
            found += yes.count() as u64;
        }
        found
    };
    assert_eq!(found(0, keys), keys, "a key is missing");
    let absent = keys.max(1_000_000) / 4;
    let rate = found(1 << 40, (1 << 40) + absent) as f64 / absent as f64;
    // Six standard deviations.
    let bound = 6.0 * (filter.fpr() / absent as f64).sqrt();
    assert!((rate - filter.fpr()).abs() < bound, "the rate is {rate}");
    println!(
        "every key is found, and {:.4} % of {absent} others",
        100.0 * rate
    );
    Ok(())
}

/// What the system says of the most memory that this process held.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line["VmHWM:".len()..].trim().to_string())
}
