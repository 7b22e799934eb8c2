//! A join between two machines: ship a filter of one side's keys, and only the other side's rows
//! that may match.
//!
//! Each worker of the left side builds a filter of its own keys; they are merged without the
//! keys, saved, sent as bytes, and opened at the right side.
//!
//! `cargo run -p tamis-examples --bin bloom_join`

use std::error::Error;

use tamis::{Bloom, Config, Keyed};

fn main() -> Result<(), Box<dyn Error>> {
    let customers: Vec<u64> = (0..10_000).map(|i| i * 37).collect();
    let orders: Vec<(u64, u32)> = (0..200_000u32).map(|i| (u64::from(i) * 13, i)).collect();

    // Two workers, one configuration: only filters of one shape merge.
    let config = Config::new(customers.len() as u64).fpr(0.01);
    let (half, other_half) = customers.split_at(customers.len() / 2);
    let mut filter: Keyed<Bloom> = Keyed::build(&config, half)?;
    filter.merge(&Keyed::build(&config, other_half)?)?;

    let sent = filter.to_bytes();
    let bytes = sent.len();
    let received: Keyed<Bloom> = Keyed::open(sent)?;
    let mut may_match = vec![false; orders.len()];
    let keys: Vec<u64> = orders.iter().map(|order| order.0).collect();
    received.contains_batch(&keys, &mut may_match);
    let shipped: Vec<_> = orders
        .iter()
        .zip(&may_match)
        .filter(|(_, may)| **may)
        .map(|(order, _)| order)
        .collect();

    let is_customer = |key: u64| key.is_multiple_of(37) && key / 37 < 10_000;
    let matches = orders.iter().filter(|order| is_customer(order.0)).count();
    let kept = shipped.iter().filter(|order| is_customer(order.0)).count();
    assert_eq!(kept, matches, "no row of the join is lost");
    println!(
        "a filter of {bytes} bytes let {} of {} orders through; {matches} of them match",
        shipped.len(),
        orders.len()
    );
    Ok(())
}
