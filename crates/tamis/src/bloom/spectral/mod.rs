//! Spectral Bloom filters: counters wide enough to tell how often each key came.
//!
//! # The idea
//!
//! ```text
//!                      x₀        x₁           x₂                   the places of a Bloom filter
//!                      ↓         ↓            ↓
//!   m counters  … 0 0 52  0 1  7 52  0 3 0 61 52  0 9 …            8 bits each; up to 32
//!                     └──────────┴────────────┴─────── least: 52 copies, or fewer
//! ```
//!
//! Each insertion adds to the key's `k` counters, and the least of them is the estimate. Others may have added to a
//! counter, but to all `k` only as often as an absent key is found in a Bloom filter. Three rules for adding differ in what
//! they promise:
//!
//! | filter | an insertion | estimates | wrong at Zipf 1.0 / 0.5 | removes | merges |
//! |---|---|---|---|---|---|
//! | [`Spectral`] | adds 1 to all (minimum selection) | never too low | 1.5 % / 3.2 % | yes | yes |
//! | [`SpectralMinimal`] | adds 1 to the least only (minimal increase) | never too low | 0.4 % / 1.4 % | no | yes, as a bound |
//! | [`SpectralRecurring`] | adds 1 to all; keys whose least counter is alone go to a second array | may be too low | 1.3 % / 2.4 % | yes | no |
//!
//! The share of keys whose estimate is wrong is measured by the test below: 10⁵ keys, a million insertions, `k` = 5 and
//! 7.14 counters per key. The first column is the Bloom filter's rate for the keys that came. Every one of the three
//! answers `contains` exactly as the Bloom filter of its keys does: no member is denied.
//!
//! # Saturation
//!
//! A counter that reaches its greatest value stays there. When the least of a key's counters is saturated there is no
//! upper bound, and the estimate is `u64::MAX`. The default of 8 bits counts to 254; data with heavy keys wants 16 or 32.
//!
//! # Cost
//!
//! As many counters as a Bloom filter has bits: 76.7 bits per key at 1 % with 8 bits each, half as much again with a second
//! array. A hash table of 64-bit hashes and counts is no larger and makes no errors. What these filters add is that the
//! memory is fixed beforehand and insertions cost `k` places, always; that filters can be added up; and that the error
//! falls gently when there are more keys than were planned for.
//!
//! # When to choose one
//!
//! [`SpectralMinimal`] to ask how often keys came, if none is taken out: it is wrong least often. [`Spectral`] if keys leave
//! or filters are added up without loss. [`SpectralRecurring`] is here for comparison: the best of the three that can
//! remove, but it gives up the one-sided error for little. If 14 copies are the most to be told apart,
//! [`Counting`](crate::Counting) is half the size.
//!
//! # Bibliography
//!
//! - Cohen, Matias, *Spectral Bloom filters*, 2003: the three rules; also counters of variable length, which are not made
//!   here.
//! - Estan, Varghese, *New directions in traffic measurement and accounting*, 2002: minimal increase, as "conservative
//!   update".

use std::ops::RangeInclusive;

use crate::config::Param;

mod minimal;
mod recurring;
mod selection;

pub use minimal::SpectralMinimal;
pub use recurring::SpectralRecurring;
pub use selection::Spectral;

/// Widths of a counter.
const WIDTHS: RangeInclusive<u64> = 8..=32;
const DEFAULT_WIDTH: u32 = 8;

const PARAMS: &[Param] = &[
    super::counters::K,
    Param {
        name: "counter_bits",
        about: "bits of a counter, 8 to 32; default: 8",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::mix64;
    use crate::{Config, Count, Filter, Insert, Kind, math};

    const KEYS: u64 = 100_000;
    const EVENTS: u64 = 1_000_000;

    /// How often each of 10⁵ keys comes in a million draws, key i with weight (i + 1)^-s, and the draws in order.
    fn stream(s: f64, seed: u64) -> (Vec<u64>, Vec<u64>) {
        let mut until = Vec::with_capacity(KEYS as usize);
        let mut total = 0.0;
        for i in 0..KEYS {
            total += ((i + 1) as f64).powf(-s);
            until.push(total);
        }
        let mut times = vec![0; KEYS as usize];
        let draws = (0..EVENTS).map(|event| {
            let draw = mix64(seed << 40 | event) as f64 / 2f64.powi(64) * total;
            let key = until.partition_point(|&u| u <= draw).min(KEYS as usize - 1);
            times[key] += 1;
            hash(seed, key as u64)
        });
        let draws = draws.collect();
        (times, draws)
    }

    fn hash(seed: u64, key: u64) -> u64 {
        mix64(1 << 63 | seed << 40 | key)
    }

    /// Keys that came, estimates above the truth, estimates below it.
    fn wrong(times: &[u64], estimate: impl Fn(u64) -> u64) -> [u64; 3] {
        let came = times.iter().enumerate().filter(|&(_, &t)| t > 0);
        came.fold([0; 3], |[came, over, under], (key, &truth)| {
            let told = estimate(key as u64);
            [
                came + 1,
                over + u64::from(told > truth),
                under + u64::from(told < truth),
            ]
        })
    }

    #[test]
    fn errors_are_those_of_the_table() {
        // spec: 10⁵ keys, k = 5, kn/m = 0.7, 32 bits so that nothing saturates.
        let config = Config::new(KEYS).set("k", 5).set("counter_bits", 32);
        // The rate at which k = 5 and kn/m = 0.7 meet.
        let config = config.fpr(math::bloom_fpr_asymptotic(714_304, KEYS, 5));
        for s in [1.0, 0.5] {
            let (mut came, mut selection, mut minimal, mut over, mut under) = (0, 0, 0, 0, 0);
            let mut expected = 0.0;
            for seed in 0..2 {
                let (times, draws) = stream(s, seed);
                let mut ms = Spectral::build(&config, &mut []).unwrap();
                let mut mi = SpectralMinimal::build(&config, &mut []).unwrap();
                let mut rm = SpectralRecurring::build(&config, &mut []).unwrap();
                assert!((ms.counters() as f64 / KEYS as f64 / 7.143 - 1.0).abs() < 0.001);
                ms.insert_batch(&draws).unwrap();
                mi.insert_batch(&draws).unwrap();
                rm.insert_batch(&draws).unwrap();
                let [n, ms_over, ms_under] = wrong(&times, |i| ms.count(hash(seed, i)));
                let [_, mi_over, mi_under] = wrong(&times, |i| mi.count(hash(seed, i)));
                let [_, rm_over, rm_under] = wrong(&times, |i| rm.estimate(hash(seed, i)));
                assert_eq!((ms_under, mi_under), (0, 0), "never under");
                came += n;
                selection += ms_over;
                minimal += mi_over;
                over += rm_over;
                under += rm_under;
                // Each key against all others that came.
                expected += n as f64 * math::bloom_fpr(ms.counters(), n - 1, 5);
                assert!(times.iter().enumerate().all(|(i, &t)| {
                    let h = hash(seed, i as u64);
                    (t == 0 || ms.contains(h))
                        && ms.contains(h) == mi.contains(h)
                        && ms.contains(h) == rm.contains(h)
                }));
            }
            let share = |wrong: u64| 100.0 * wrong as f64 / came as f64;
            println!(
                "Zipf {s}: {came} keys; wrong: selection {:.3} % ({:.3} % by formula), minimal {:.3} %, recurring {:.3} % \
                 over and {:.3} % under",
                share(selection),
                100.0 * expected / came as f64,
                share(minimal),
                share(over),
                share(under)
            );
            let (low, high) = math::binomial_interval(came, expected / came as f64, 1e-9);
            assert!(
                (low..=high).contains(&selection),
                "{selection}, {low} to {high}"
            );
            assert!(
                (selection as f64 / expected - 1.0).abs() < 0.05,
                "{selection} of {expected}"
            );
            assert!(2 * minimal <= selection, "{minimal} of {selection}");
            assert!(
                over + under < selection,
                "{over} and {under} of {selection}"
            );
            // Under-estimates are few, but they are there: this is why it is no `Count`.
            assert!(under > 0 && share(under) < 1.0, "{under} of {came}");
        }
    }

    #[test]
    fn a_saturated_estimate_is_no_number() {
        let config = Config::new(100);
        let key = mix64(1);
        let mut ms = Spectral::build(&config, &mut []).unwrap();
        let mut mi = SpectralMinimal::build(&config, &mut []).unwrap();
        let mut rm = SpectralRecurring::build(&config, &mut []).unwrap();
        for copies in 1..=300 {
            ms.insert(key).unwrap();
            mi.insert(key).unwrap();
            rm.insert(key).unwrap();
            let told = if copies < 255 { copies } else { u64::MAX };
            assert_eq!([ms.count(key), mi.count(key), rm.estimate(key)], [told; 3]);
        }
        assert_eq!([ms.saturated(), mi.saturated(), rm.saturated()], [7; 3]);
    }

    #[test]
    fn sizes_are_those_of_the_formula() {
        // 8 bits for each of the Bloom filter's 9.593 counters, and half as many again.
        let config = Config::new(1_000_000);
        let bits = |bytes: usize| bytes as f64 * 8.0 / 1e6;
        let ms = bits(Spectral::build(&config, &mut []).unwrap().size_in_bytes());
        let mi = SpectralMinimal::build(&config, &mut []).unwrap();
        let rm = SpectralRecurring::build(&config, &mut []).unwrap();
        assert!((ms / 76.74 - 1.0).abs() < 0.001, "{ms}");
        assert_eq!(bits(mi.size_in_bytes()), ms);
        assert!((bits(rm.size_in_bytes()) / 115.1 - 1.0).abs() < 0.001);
    }
}
