//! A filter before a disk: most lookups of keys that a file does not hold never touch the file.
//!
//! Each of a store's files keeps a filter beside it. A lookup asks the filters first and reads
//! only the files that may hold the key; of the reads that find nothing, the false-positive rate
//! says how many there are.
//!
//! `cargo run -p tamis-examples --bin storage_lookups`

use std::collections::HashMap;
use std::error::Error;

use tamis::{Bloom, Config, Keyed};

/// A sorted file of a log-structured store, with its filter.
struct Table {
    filter: Keyed<Bloom>,
    rows: HashMap<u64, String>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let (tables, rows) = (20, 5_000u64);
    let fpr = 0.01;
    let mut store = Vec::new();
    for table in 0..tables {
        let rows: HashMap<u64, String> = (0..rows)
            .map(|i| (i * tables + table, format!("row {i} of table {table}")))
            .collect();
        store.push(Table {
            filter: Keyed::build(&Config::default().fpr(fpr), rows.keys())?,
            rows,
        });
    }

    let (mut found, mut wasted, lookups) = (0u64, 0u64, 50_000);
    for key in (0..lookups).map(|i| i * 7 % (2 * tables * rows)) {
        for table in store.iter().filter(|table| table.filter.contains(&key)) {
            match table.rows.get(&key) {
                Some(_) => found += 1,
                None => wasted += 1,
            }
        }
    }
    let asked = lookups * tables;
    println!("{asked} table lookups: {found} found their row, {wasted} reads were wasted");
    println!(
        "wasted per lookup of an absent key: {:.4}, asked for {fpr}",
        wasted as f64 / (asked - found) as f64
    );
    assert_eq!(
        found,
        (0..lookups)
            .filter(|i| i * 7 % (2 * tables * rows) < tables * rows)
            .count() as u64
    );
    Ok(())
}
