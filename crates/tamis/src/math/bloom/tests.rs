use super::super::prints;
use super::*;

const EIGHT: f64 = 1.0 / 256.0;
const MILLION: u64 = 1_000_000;

#[test]
fn the_error_of_an_intersection_is_that_of_its_parts() {
    // A simulation gave 60, 50 and 32.
    for (common, sd) in [(0.0, "58"), (5000.0, "52"), (25_000.0, "34")] {
        let union = 100_000.0 - common;
        prints(bloom_intersection_sd(1 << 20, 5e4, 5e4, union, 7), sd);
    }
    // Of a set with itself nothing is left but its own error.
    let same = bloom_intersection_sd(1 << 20, 5e4, 5e4, 5e4, 7);
    assert!((same / bloom_estimate_sd(1 << 20, 5e4, 7) - 1.0).abs() < 1e-12);
    assert_eq!(bloom_intersection_sd(1 << 20, 0.0, 0.0, 0.0, 7), 0.0);
}

#[test]
fn bloom_sizes_match_the_table() {
    for (fpr, k, bits) in [
        (0.01, 7, "9.593"),
        (EIGHT, 8, "11.542"),
        (1e-3, 10, "14.378"),
        // Printed 19.170, which is the size at a real-valued k.
        (1e-4, 13, "19.173"),
    ] {
        let (size, best) = bloom_size(MILLION, fpr).unwrap();
        assert_eq!(best, k);
        prints(size as f64 / 1e6, bits);
    }
    for (fpr, bits) in [
        (0.05, "6.24"),
        (2f64.powi(-5), "7.21"),
        (0.02, "8.14"),
        (0.01, "9.585"),
        (0.005, "11.03"),
        (EIGHT, "11.54"),
        (2f64.powi(-10), "14.43"),
        (2f64.powi(-12), "17.31"),
        (1e-4, "19.17"),
        (2f64.powi(-14), "20.20"),
        (2f64.powi(-16), "23.08"),
        (1e-6, "28.8"),
    ] {
        prints(bloom_bits_per_key(fpr), bits);
    }
}

#[test]
fn bloom_rates_match_the_tables() {
    for (bits_per_key, k, percent) in [
        (8, 1, "11.75"),
        (8, 2, "4.89"),
        (8, 5, "2.17"),
        (8, 6, "2.158"),
        (10, 6, "0.844"),
        (10, 7, "0.819"),
        (14, 2, "1.772"),
        (92, 1, "1.081"),
        (18, 12, "0.018"),
        (16, 11, "0.046"),
    ] {
        prints(
            100.0 * bloom_fpr(bits_per_key * MILLION, MILLION, k),
            percent,
        );
    }
    // The load series of the TinySet experiment: 384 bits for x items, k = 7.
    for (items, fixed, best) in [
        (20, "0.025", "0.0099"),
        (30, "0.235", "0.21"),
        (38, "0.78", "0.78"),
        (42, "1.25", "1.24"),
        (46, "1.90", "1.815"),
        (50, "2.74", "2.51"),
        (53, "3.50", "3.08"),
        (56, "4.38", "3.72"),
        (60, "5.8", "4.7"),
        (70, "10.1", "7.2"),
        (80, "15.7", "10.0"),
    ] {
        let rate = |k| 100.0 * bloom_fpr(384_000, 1000 * items, k);
        prints(rate(7), fixed);
        prints((1..=32).map(rate).fold(f64::INFINITY, f64::min), best);
    }
}

#[test]
fn overloading_costs_what_the_formula_says() {
    // 1.9 times the keys. The printed 11.3 % belongs to seven half-full
    // hashes (7 / ln 2 = 10.10 bits per key); at the one percent design of
    // 9.593 bits it is 13.4 %.
    let keys = 1_900_000;
    prints(100.0 * bloom_fpr(10_098_865, keys, 7), "11.3");
    prints(100.0 * bloom_fpr(9_592_955, keys, 7), "13.4");
    // With k chosen anew, real-valued.
    prints(
        100.0 * 2f64.powf(-LN_2 * bloom_bits_per_key(0.01) / 1.9),
        "8.9",
    );
}

#[test]
fn small_filters_have_the_exact_rate() {
    prints(bloom_fpr_exact(64, 6, 7), "6.859e-3");
    prints(bloom_fpr_asymptotic(64, 6, 7), "6.212e-3");
    for (bits, keys, percent) in [(64, 6, "10.4"), (256, 26, "2.5"), (1024, 107, "0.6")] {
        let above = bloom_fpr_exact(bits, keys, 7) / bloom_fpr_asymptotic(bits, keys, 7);
        prints(100.0 * (above - 1.0), percent);
    }
    // Two bits, one key, two probes: half the time one bit is set (rate
    // 1/4), half the time both.
    assert!((bloom_fpr_exact(2, 1, 2) - 0.625).abs() < 1e-15);
    assert!((bloom_fpr_exact(1, 1, 5) - 1.0).abs() < 1e-15);
    assert!((bloom_fpr_exact(3, u64::MAX, 64) - 1.0).abs() < 1e-9);
    let continuous = bloom_fpr(4095, 400, 7) / bloom_fpr(4096, 400, 7);
    assert!((continuous - 1.0).abs() < 0.01, "{continuous}");
}

#[test]
fn the_independent_probe_rates_of_the_hashing_study_follow() {
    // Simulated figures: good to their own noise only.
    assert!((bloom_fpr(16_384, 1024, 11) / 4.58e-4 - 1.0).abs() < 0.01);
    assert!((bloom_fpr(10_007, 500, 14) / 6.86e-5 - 1.0).abs() < 0.05);
}

#[test]
fn every_bloom_size_keeps_its_promise_and_is_least() {
    for keys in [0, 1, 2, 3, 7, 33, 100, 1000, 12_345, 1 << 40, 1 << 55] {
        for fpr in [0.9, 0.3, 0.05, 0.01, EIGHT, 1e-3, 1e-6, 1e-12] {
            let (bits, k) = bloom_size(keys, fpr).unwrap();
            assert_eq!(bits % 64, 0);
            assert!(bloom_fpr(bits, keys, k) <= fpr, "{keys} {fpr}");
            if bits > 64 && bits < 1 << 40 {
                assert!(bloom_fpr(bits - 64, keys, k) > fpr, "{keys} {fpr}");
            }
        }
    }
}

#[test]
fn impossible_bloom_sizes_are_none() {
    for fpr in [0.0, -0.0, 1.0, 2.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(bloom_size(10, fpr), None);
        assert_eq!(bloom_g_size(10, fpr, 64, 1), None);
        assert_eq!(two_choice_size(fpr), None);
    }
    assert_eq!(bloom_size(u64::MAX, 0.01), None);
    assert!(bloom_size(1, 5e-324).is_some());
    assert!(bloom_size(1000, 1.0 - f64::EPSILON / 2.0).is_some());
    assert_eq!(bloom_g_size(10, 0.01, 64, 0), None);
    assert_eq!(bloom_g_size(10, 0.01, 1, 1), None);
    assert_eq!(bloom_g_size(10, 1e-300, 64, 1), None);
    assert!(bloom_g_size(u64::MAX, 0.01, 64, 1).is_none_or(|(words, _)| words > 1 << 60));
}

#[test]
fn estimates_match_the_table() {
    let (bits, k) = (1 << 20, 7);
    let keys = bloom_estimate(bits, bits / 2, k);
    assert!((keys - 103_800.0).abs() < 50.0, "{keys}");
    prints(bloom_estimate_sd(bits, keys, k), "81");
    prints(100.0 * bloom_estimate_sd(bits, keys, k) / keys, "0.078");
    assert_eq!(bloom_estimate(bits, bits, k), f64::INFINITY);
    assert_eq!(bloom_estimate(bits, 0, k), 0.0);
    assert!(bloom_estimate(bits, bits + 1, k).is_nan());
    assert!(bloom_estimate_sd(bits, f64::NAN, k).is_nan());
    let (small, smaller) = (
        bloom_estimate_sd(bits, 149.0, 7),
        bloom_estimate_sd(bits, 150.0, 7),
    );
    assert!((smaller / small - 150.0 / 149.0).abs() < 1e-4);
}

#[test]
fn an_intersection_is_what_inclusion_and_exclusion_leave() {
    // Expected counts of 50 000 keys each with 5 000 in common.
    let m = (1u64 << 20) as f64;
    let ones = |keys: f64| fill(m, 7.0 * keys);
    let (each, either) = (m * ones(5e4), m * ones(9.5e4));
    let both = 2.0 * each - either;
    let common = bloom_intersection_estimate(1 << 20, each as u64, each as u64, both as u64, 7);
    assert!((common - 5000.0).abs() < 2.0, "{common}");
    // Papapetrou's form of the same number.
    let (t, t_and) = (each.floor(), both.floor());
    let zeros = m - (t_and * m - t * t) / (m - 2.0 * t + t_and);
    let theirs = (zeros.ln() - m.ln()) / (7.0 * (-1.0 / m).ln_1p());
    assert!((common - theirs).abs() < 1e-3, "{common} {theirs}");
    assert!(bloom_intersection_estimate(64, 3, 4, 5, 2).is_nan());
    assert!(bloom_intersection_estimate(64, 65, 4, 1, 2).is_nan());
}

#[test]
fn bloom_g_sizes_match_the_table() {
    for (fpr, word_bits, g, k, bits) in [
        // By inclusion and exclusion over Poisson loads; the paper's formula,
        // which forgets how the fill varies, prints beside it.
        (0.01, 64, 1, 5, "11.840"), // 11.916
        (0.01, 64, 2, 6, "9.979"),  // 9.997
        (0.01, 64, 3, 6, "9.706"),  // 9.718
        (0.01, 256, 1, 6, "10.169"),
        (0.01, 512, 1, 6, "9.890"),   // 9.896
        (0.01, 512, 2, 6, "9.660"),   // 9.663
        (EIGHT, 64, 1, 6, "15.719"),  // 15.840
        (EIGHT, 64, 2, 8, "12.396"),  // 12.371
        (EIGHT, 64, 3, 9, "11.911"),  // 11.878
        (EIGHT, 64, 4, 8, "11.635"),  // 11.635
        (1e-3, 64, 1, 7, "23.091"),   // 23.333
        (1e-3, 64, 2, 8, "16.092"),   // 16.187
        (1e-3, 512, 2, 10, "14.603"), // 14.602
    ] {
        let keys = 100 * MILLION;
        let (words, best) = bloom_g_size(keys, fpr, word_bits, g).unwrap();
        prints((words * u64::from(word_bits)) as f64 / keys as f64, bits);
        assert!(k == 0 || best == k, "{fpr} {word_bits} {g}: {best}");
        assert!(bloom_g_fpr(words, word_bits, keys, best, g) <= fpr);
        assert!(bloom_g_fpr(words - 1, word_bits, keys, best, g) > fpr);
    }
}

#[test]
fn bloom_g_rates_match_the_tables() {
    for (g, word_bits, k, percent) in [
        // The paper's formula: 1.77, 0.999, 0.886, 0.958.
        (1, 64, 6, "1.83"),
        (2, 64, 6, "0.991"),
        (3, 64, 6, "0.880"),
        (1, 512, 6, "0.955"),
    ] {
        let keys = 64 * MILLION;
        let words = 10 * keys / u64::from(word_bits);
        prints(100.0 * bloom_g_fpr(words, word_bits, keys, k, g), percent);
    }
    let bloom_1 = (1..=32).map(|k| bloom_g_fpr(10 * MILLION, 64, 64 * MILLION, k, 1));
    prints(100.0 * bloom_1.fold(f64::INFINITY, f64::min), "1.694");
    // One word and one key: a query of the same bits, of all that could be.
    prints(bloom_g_fpr(1, 64, 1, 3, 1) * 41_664.0, "1.000000");
    // Two keys in one word, a bit each: 1 - (1 - 1/64)^2.
    prints(bloom_g_fpr(1, 64, 2, 1, 1) * 4096.0, "127.000000");
}

#[test]
fn blocked_rates_are_exact() {
    // One block is a small Bloom filter.
    for (bits, keys, k) in [(64, 6, 7), (512, 50, 6)] {
        let ratio = blocked_fpr_exact(1, bits, keys, k) / bloom_fpr_exact(u64::from(bits), keys, k);
        assert!((ratio - 1.0).abs() < 1e-9, "{bits} {ratio}");
    }
    // By inclusion and exclusion over Poisson loads; blocked_size beside it.
    for (fpr, k, bits) in [
        (0.01, 6, "9.918"),   // 9.896
        (EIGHT, 8, "12.133"), // 12.095
        (1e-3, 9, "15.546"),  // 15.488
    ] {
        let keys = 100 * MILLION;
        let blocks = blocked_blocks(keys, fpr, 512, k).unwrap();
        prints((blocks * 512) as f64 / keys as f64, bits);
        assert!(blocked_fpr_exact(blocks, 512, keys, k) <= fpr);
    }
    assert_eq!(blocked_blocks(10, 1.0, 512, 6), None);
    assert_eq!(blocked_blocks(10, 0.01, 512, 65), None);
}

#[test]
fn bloom_g_capacities_are_the_last_keys_within_the_rate() {
    for (words, word_bits, k, g) in [
        (1, 64, 5, 1),
        (1000, 64, 6, 2),
        (1000, 64, 7, 3),
        (1000, 512, 6, 1),
        (1 << 30, 64, 6, 2),
    ] {
        let keys = bloom_g_capacity(words, word_bits, k, g, 0.01);
        let rate = |keys| bloom_g_fpr(words, word_bits, keys, k, g);
        assert!(
            rate(keys) <= 0.01 && rate(keys + 1) > 0.01,
            "{words} {k} {g}"
        );
    }
    // The shape that was sized for a million keys holds them.
    let (words, k) = bloom_g_size(MILLION, 0.01, 64, 2).unwrap();
    let keys = bloom_g_capacity(words, 64, k, 2, 0.01);
    assert!((MILLION..MILLION + 10).contains(&keys), "{keys}");
    assert_eq!(bloom_g_capacity(0, 64, 6, 2, 0.01), 0);
    assert_eq!(bloom_g_capacity(1, 64, 6, 2, 1e-30), 0);
    assert_eq!(bloom_g_capacity(1, 64, 6, 2, f64::NAN), 0);
    assert_eq!(bloom_g_capacity(1, 64, 6, 2, 1.0), u64::MAX);
}

#[test]
fn two_choice_sizes_match_the_table() {
    for (fpr, k, bits) in [
        (0.01, 8, "9.639"),
        (EIGHT, 9, "11.481"),
        (1e-3, 11, "14.158"),
        (1e-4, 15, "18.711"),
    ] {
        let (size, best) = two_choice_size(fpr).unwrap();
        assert_eq!(best, k);
        prints(size, bits);
    }
    for keys in [1, 10, 100, MILLION] {
        let (bits, k) = two_choice_bits(keys, 1e-3).unwrap();
        let ratio = bits as f64 / keys as f64 / 14.158;
        assert!(two_choice_fpr(bits as f64 / keys as f64, k) <= 1e-3);
        assert!(
            ratio > 0.9999 && (ratio < 1.001 || keys < MILLION),
            "{ratio}"
        );
    }
    assert_eq!(two_choice_bits(1 << 62, 0.01), None);
    assert_eq!(two_choice_bits(10, 1.0), None);
    assert!(two_choice_fpr(0.0, 3).is_nan() && two_choice_fpr(9.0, 65).is_nan());
    assert!((two_choice_fpr(1e-300, 3) - 1.0).abs() < 1e-9);
}

#[test]
fn levels_and_prefixes_add_up() {
    prints(attenuated_fpr(&[0.5, 0.5], 1), "0.75");
    assert_eq!(attenuated_fpr(&[], 3), 0.0);
    assert_eq!(attenuated_fpr(&[1.0, 0.2], 3), 1.0);
}

#[test]
fn odd_arguments_give_the_documented_answers() {
    for bits in [0, 1, 2, 63, 4095, 4096, u64::MAX] {
        for keys in [0, 1, 1 << 31, u64::MAX] {
            for k in [0, 1, 7, 64, 65, u32::MAX] {
                let p = bloom_fpr(bits, keys, k);
                assert!((0.0..=1.0).contains(&p), "{bits} {keys} {k}: {p}");
                let words = bits;
                for g in [0, 1, 3] {
                    let p = bloom_g_fpr(words, 64, keys, k, g);
                    assert!(
                        (0.0..=1.0 + 1e-9).contains(&p),
                        "{words} {keys} {k} {g}: {p}"
                    );
                }
            }
        }
    }
    assert_eq!(bloom_fpr(0, 0, 1), 1.0);
    assert_eq!(bloom_fpr(64, 0, 1), 0.0);
    assert_eq!(bloom_fpr(64, 0, 0), 1.0);
}
