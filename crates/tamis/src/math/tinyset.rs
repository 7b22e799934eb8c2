//! TinySet: blocks whose fingerprints shrink as they fill.

use super::is_rate;
use super::probability::Law;

/// Longest fingerprint that a TinySet block keeps, in bits.
pub const TINYSET_MAX_WIDTH: u32 = 25;

/// Smallest mean load that [`tinyset_mean_load`] answers with.
const LEAST_LOAD: f64 = 1e-6;

/// Bits of a block that hold end marks and fingerprints.
fn array_bits(block_bits: u32, chains: u32, flag_bits: u32) -> Option<u32> {
    let array = block_bits.checked_sub(chains)?.checked_sub(flag_bits)?;
    (array > 0 && chains > 0).then_some(array)
}

/// Fingerprint width of a block with `slots` slots, and how many have one more.
///
/// With A bits for end marks and fingerprints, `width = A / slots - 1` and
/// `longer = A mod slots` (whole-number division); from 25 bits on the width
/// stays 25 and nothing is longer. `None` unless `0 < slots <= array_bits`.
pub const fn tinyset_widths(array_bits: u32, slots: u32) -> Option<(u32, u32)> {
    if slots == 0 || slots > array_bits {
        return None;
    }
    let width = array_bits / slots - 1;
    if width >= TINYSET_MAX_WIDTH {
        Some((TINYSET_MAX_WIDTH, 0))
    } else {
        Some((width, array_bits % slots))
    }
}

/// False-positive rate of one TinySet block with `slots` slots in use.
///
/// `1 - (1 - 2^-(q+1) / L)^m (1 - 2^-q / L)^(slots - m)` with L chains and
/// `(q, m)` from [`tinyset_widths`] (after Einziger, Friedman 2015; exact for
/// random keys). An empty block gives 0. More slots than array bits cannot be
/// stored and give 1, so that no sizing counts on it. `NaN` without chains.
pub fn tinyset_block_fpr(array_bits: u32, chains: u32, slots: u32) -> f64 {
    if chains == 0 {
        return f64::NAN;
    }
    if slots == 0 {
        return 0.0;
    }
    let Some((width, longer)) = tinyset_widths(array_bits, slots) else {
        return 1.0;
    };
    let match_short = super::fingerprint_fpr(width) / f64::from(chains);
    // Written as 1 - (1 - a) (1 - b) = a + b (1 - a), which has no logarithm
    // of zero when a lone chain of width 0 matches everything.
    let short = super::any_match(match_short, f64::from(slots - longer));
    let long = super::any_match(match_short / 2.0, f64::from(longer));
    short + long * (1.0 - short)
}

fn mixture(law: Law, block_bits: u32, chains: u32, flag_bits: u32) -> f64 {
    match array_bits(block_bits, chains, flag_bits) {
        Some(array) => law.expect(|c| tinyset_block_fpr(array, chains, c as u32)),
        None => f64::NAN,
    }
}

/// False-positive rate of a TinySet of many blocks at a mean load per block.
///
/// `sum_r Poisson(r; mean_load) FPR_r` with [`tinyset_block_fpr`], the array
/// having `block_bits - chains - flag_bits` bits. Add-only filters have no
/// flags, filters with removal two. `NaN` for a negative or `NaN` load, or
/// when the header leaves no array.
pub fn tinyset_fpr(mean_load: f64, block_bits: u32, chains: u32, flag_bits: u32) -> f64 {
    mixture(
        Law::Poisson { mean: mean_load },
        block_bits,
        chains,
        flag_bits,
    )
}

/// False-positive rate of a TinySet of `blocks` blocks holding `keys` keys.
///
/// As [`tinyset_fpr`] with the binomial law of `keys` among `blocks`, which
/// matters when the blocks are few. 1 when there are no blocks.
pub fn tinyset_fpr_finite(
    keys: u64,
    blocks: u64,
    block_bits: u32,
    chains: u32,
    flag_bits: u32,
) -> f64 {
    if blocks == 0 {
        return 1.0;
    }
    let law = Law::per_cell(keys as f64, blocks);
    mixture(law, block_bits, chains, flag_bits)
}

/// Greatest mean load per block at which a TinySet keeps rate `fpr`.
///
/// Solves [`tinyset_fpr`] by bisection; bits per key are
/// `block_bits / mean_load`. `None` unless `0 < fpr < 1` and the header leaves
/// an array, or when even a millionth of a key per block is too much.
pub fn tinyset_mean_load(fpr: f64, block_bits: u32, chains: u32, flag_bits: u32) -> Option<f64> {
    let array = array_bits(block_bits, chains, flag_bits)?;
    let meets = |load: f64| tinyset_fpr(load, block_bits, chains, flag_bits) <= fpr;
    if !is_rate(fpr) || !meets(LEAST_LOAD) {
        return None;
    }
    let (mut low, mut high) = (LEAST_LOAD, f64::from(array));
    if meets(high) {
        return Some(high);
    }
    while high > low * (1.0 + 1e-9) {
        let middle = (low * high).sqrt();
        if meets(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::super::prints;
    use super::*;

    fn bits(fpr: f64, block_bits: u32, chains: u32, flag_bits: u32) -> f64 {
        let load = tinyset_mean_load(fpr, block_bits, chains, flag_bits).unwrap();
        f64::from(block_bits) / load
    }

    #[test]
    fn widths_follow_the_worked_example() {
        // 24 bits and five items: four of width 5 with their end mark, one of 4.
        assert_eq!(tinyset_widths(24, 5), Some((3, 4)));
        assert_eq!(tinyset_widths(448, 64), Some((6, 0)));
        assert_eq!(tinyset_widths(448, 17), Some((25, 0)));
        assert_eq!(tinyset_widths(448, 448), Some((0, 0)));
        assert_eq!(tinyset_widths(448, 449), None);
        assert_eq!(tinyset_widths(448, 0), None);
        for array in [1, 2, 63, 320, 448] {
            for slots in 1..=array {
                let (width, longer) = tinyset_widths(array, slots).unwrap();
                assert!(slots * (width + 1) + longer <= array);
            }
        }
    }

    #[test]
    fn sizing_table_of_64_byte_blocks_holds() {
        for (fpr, load, plain, load_flags, flags, chains, best, half) in [
            (0.05, "77.86", "6.58", "77.58", "6.60", 120, "6.35", "6.69"),
            (
                2f64.powi(-5),
                "70.54",
                "7.26",
                "70.28",
                "7.29",
                108,
                "7.08",
                "7.42",
            ),
            (0.02, "64.64", "7.92", "64.40", "7.95", 100, "7.79", "8.14"),
            (0.01, "57.02", "8.98", "56.79", "9.02", 92, "8.90", "9.30"),
            (
                0.005, "50.79", "10.08", "50.58", "10.12", 80, "10.04", "10.53",
            ),
            (
                2f64.powi(-8),
                "48.84",
                "10.48",
                "48.64",
                "10.53",
                80,
                "10.45",
                "10.98",
            ),
            (
                0.001, "39.95", "12.82", "39.78", "12.87", 68, "12.82", "13.69",
            ),
            (
                2f64.powi(-10),
                "39.82",
                "12.86",
                "39.65",
                "12.91",
                68,
                "12.86",
                "13.74",
            ),
            (
                2f64.powi(-12),
                "33.16",
                "15.44",
                "33.02",
                "15.51",
                60,
                "15.43",
                "16.87",
            ),
            (
                1e-4, "29.73", "17.22", "29.59", "17.30", 56, "17.19", "19.12",
            ),
            (
                2f64.powi(-14),
                "28.05",
                "18.25",
                "27.92",
                "18.34",
                52,
                "18.21",
                "20.45",
            ),
            (
                2f64.powi(-16),
                "24.00",
                "21.33",
                "23.89",
                "21.44",
                48,
                "21.21",
                "24.55",
            ),
        ] {
            prints(tinyset_mean_load(fpr, 512, 64, 0).unwrap(), load);
            prints(bits(fpr, 512, 64, 0), plain);
            prints(tinyset_mean_load(fpr, 512, 64, 2).unwrap(), load_flags);
            prints(bits(fpr, 512, 64, 2), flags);
            prints(bits(fpr, 512, chains, 0), best);
            prints(bits(fpr, 256, 32, 0), half);
        }
        prints(bits(1e-6, 512, 64, 0), "28.3");
    }

    #[test]
    fn sizes_of_128_byte_blocks_hold() {
        for (fpr, size) in [
            (0.01, "8.82"),
            (2f64.powi(-8), "10.23"),
            (0.001, "12.38"),
            (1e-4, "16.28"),
        ] {
            prints(bits(fpr, 1024, 128, 0), size);
        }
    }

    #[test]
    fn rates_at_the_published_loads_hold() {
        for (block, chains, chain_load, percent) in [
            (512, 80, 0.70, "0.865"),
            (512, 64, 0.87, "0.871"),
            (512, 64, 0.61, "0.0846"),
            (512, 64, 0.45, "0.0077"),
            (256, 32, 0.84, "0.877"),
            (256, 32, 0.57, "0.0850"),
            (256, 32, 0.41, "0.0086"),
        ] {
            let load = chain_load * f64::from(chains);
            prints(100.0 * tinyset_fpr(load, block, chains, 0), percent);
        }
    }

    /// One item per chain: as many chains as mean items, block of whole bits.
    #[test]
    fn sizes_at_one_item_per_chain_hold() {
        for (items, fpr, size) in [
            (16u32, 0.01, "9.88"),
            (16, 0.001, "14.31"),
            (16, 1e-4, "19.06"),
            (32, 0.01, "9.31"),
            (32, 0.001, "13.25"),
            (32, 1e-4, "17.34"),
            (64, 0.01, "9.02"),
            (64, 0.001, "12.66"),
            (64, 1e-4, "16.41"),
            (128, 0.01, "8.85"),
            (128, 0.001, "12.34"),
            (128, 1e-4, "15.89"),
        ] {
            let mean = f64::from(items);
            let block = (items + 1..)
                .find(|&block| tinyset_fpr(mean, block, items, 0) <= fpr)
                .unwrap();
            prints(f64::from(block) / mean, size);
        }
    }

    #[test]
    fn the_load_series_holds() {
        for (items, percent) in [
            // Printed 0.0063.
            (20.0, "0.00625"),
            (30.0, "0.120"),
            (38.0, "0.52"),
            (42.0, "0.92"),
            (46.0, "1.49"),
            (50.0, "2.26"),
            (53.0, "2.99"),
            (56.0, "3.84"),
            (60.0, "5.2"),
            (70.0, "9.6"),
            (80.0, "15.5"),
        ] {
            prints(100.0 * tinyset_fpr(items, 384, 64, 0), percent);
        }
    }

    #[test]
    fn few_blocks_spread_less_than_many() {
        let many = tinyset_fpr(50.0, 512, 64, 0);
        let few = tinyset_fpr_finite(100, 2, 512, 64, 0);
        let one = tinyset_fpr_finite(50, 1, 512, 64, 0);
        assert!(one < few && few < many, "{one} {few} {many}");
        assert!((one / tinyset_block_fpr(448, 64, 50) - 1.0).abs() < 1e-12);
        let large = tinyset_fpr_finite(50 << 40, 1 << 40, 512, 64, 0);
        assert!((large / many - 1.0).abs() < 1e-6);
    }

    #[test]
    fn odd_arguments_give_the_documented_answers() {
        for load in [f64::NAN, -1.0] {
            assert!(tinyset_fpr(load, 512, 64, 0).is_nan());
        }
        assert_eq!(tinyset_fpr(0.0, 512, 64, 0), 0.0);
        assert_eq!(tinyset_fpr(1e300, 512, 64, 0), 1.0);
        assert!(tinyset_fpr(1.0, 64, 64, 0).is_nan());
        assert!(tinyset_fpr(1.0, 64, 0, 0).is_nan());
        assert_eq!(tinyset_fpr_finite(u64::MAX, 0, 512, 64, 0), 1.0);
        assert!(tinyset_fpr_finite(u64::MAX, 1, 512, 64, 0) > 0.99);
        assert!(tinyset_fpr_finite(3, u64::MAX, 512, 64, 0) < 1e-20);
        assert!((0.0..=1.0).contains(&tinyset_fpr(3.0, u32::MAX, 1, 0)));
        assert_eq!(tinyset_block_fpr(4, 1, 4), 1.0);
        for fpr in [0.0, 1.0, f64::NAN, 1e-300] {
            assert_eq!(tinyset_mean_load(fpr, 512, 64, 0), None);
        }
        assert_eq!(tinyset_mean_load(0.01, 512, 512, 0), None);
        assert!(tinyset_mean_load(0.01, u32::MAX, 64, 0).is_some());
    }
}
