//! Splitting a hash into choices, and reading packed integers.

/// Maps a hash to `0..n` and returns what is left of it: `(index, rest)`.
///
/// The high half of the 128-bit product is the index (it depends on the hash's *top* bits); the
/// low half is again a uniform fraction, with 64 − log₂ n bits of entropy. The next choice takes
/// `rest`, so no bits are used twice.
#[inline(always)]
pub(crate) fn fastrange(hash: u64, n: u64) -> (u64, u64) {
    let product = u128::from(hash) * u128::from(n);
    ((product >> 64) as u64, product as u64)
}

/// [`fastrange`] by 32-bit products, the only ones that vectors have in full.
#[inline(always)]
pub(crate) fn fastrange_by_halves(hash: u64, n: u32) -> (u64, u64) {
    let (n, half) = (u64::from(n), u64::from(u32::MAX));
    let low = (hash & half) * n;
    let high = (hash >> 32) * n + (low >> 32);
    (high >> 32, high << 32 | low & half)
}

/// The places in `0..range` that a key is given, one after another: the probes of every filter
/// that lets a key's bits lie anywhere.
///
/// Each place is the high half of a 128-bit product; between two the whole state is remixed. The
/// filters' essays say why nothing shorter will do. A place may come twice.
#[inline(always)]
pub(crate) fn positions(hash: u64, range: u64, k: u32) -> impl Iterator<Item = u64> {
    draws(hash, range, k).map(|(place, _)| place)
}

/// The same places, each with what is left of the state that chose it: the low half of the
/// product, 64 bits that are spread evenly wherever the place lies.
#[inline(always)]
pub(crate) fn draws(hash: u64, range: u64, k: u32) -> impl Iterator<Item = (u64, u64)> {
    /// Not a closure, which cannot be inlined always: a batch would call one that is compiled for
    /// any processor.
    struct Draws {
        state: u64,
        range: u64,
        left: u32,
    }
    impl Iterator for Draws {
        type Item = (u64, u64);

        #[inline(always)]
        fn next(&mut self) -> Option<(u64, u64)> {
            self.left = self.left.checked_sub(1)?;
            let draw = fastrange(self.state, self.range);
            self.state = remix(self.state);
            Some(draw)
        }
    }
    let (state, left) = (hash, k);
    Draws { state, range, left }
}

/// [`fastrange`], in a loop over `MANY` states by the products that vectors have, where `n`
/// allows it.
#[inline(always)]
pub(crate) fn spread<const MANY: bool>(state: u64, n: u64) -> (u64, u64) {
    match u32::try_from(n) {
        Ok(n) if MANY => fastrange_by_halves(state, n),
        _ => fastrange(state, n),
    }
}

/// The state of a key after its next probe: multiplied and folded.
#[inline(always)]
pub(crate) fn remix(state: u64) -> u64 {
    let y = state.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    y ^ (y >> 32)
}

/// Mixes all bits of a word; a bijection (the finaliser of SplitMix64). Builders that retry salt
/// their hashes with `mix64(hash + salt)`, most of them.
#[inline(always)]
pub(crate) fn mix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The inverse of [`mix64`].
#[inline(always)]
pub(crate) fn unmix64(mut x: u64) -> u64 {
    x = (x ^ (x >> 31) ^ (x >> 62)).wrapping_mul(0x3196_42B2_D24D_8EC3);
    x = (x ^ (x >> 27) ^ (x >> 54)).wrapping_mul(0x96DE_1B17_3F11_9089);
    x ^ (x >> 30) ^ (x >> 60)
}

/// The word with the low `bits` bits set, for `bits` in 0..=64.
#[inline(always)]
pub(crate) const fn low_mask(bits: u32) -> u64 {
    if bits == 0 {
        0
    } else {
        u64::MAX >> (64 - bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranges where 32-bit arithmetic somewhere would show, up to 2⁴⁵: nothing is allocated.
    const RANGES: [u64; 14] = [
        1,
        2,
        3,
        63,
        64,
        65,
        3 << 29,
        (1 << 31) - 1,
        (1 << 31) + 1,
        (1 << 32) - 1,
        1 << 32,
        (1 << 32) + 1,
        1 << 34,
        (1 << 45) + 7,
    ];

    #[test]
    fn unmixing_undoes_mixing() {
        for x in (0..64)
            .map(|bit| 1 << bit)
            .chain(0..if cfg!(miri) { 100 } else { 100_000 })
        {
            assert_eq!(unmix64(mix64(x)), x);
            assert_eq!(mix64(unmix64(x)), x);
        }
    }

    /// Draws at each range: enough for a bias of a thousandth.
    const DRAWS: u64 = 10_000_000;

    #[test]
    fn fastrange_fills_every_range_evenly() {
        for n in RANGES {
            let buckets = n.min(4096);
            let mut seen = vec![0u64; buckets as usize];
            let draws = DRAWS;
            for i in 0..draws {
                let (index, _) = fastrange(mix64(i), n);
                assert!(index < n);
                seen[(u128::from(index) * u128::from(buckets) / u128::from(n)) as usize] += 1;
            }
            assert!(
                seen[0] > 0 && seen[seen.len() - 1] > 0,
                "n = {n}: an end is never drawn"
            );
            // Expected share of a bucket when the range does not divide evenly into buckets.
            let share = |b: u64| {
                let edge = |b: u64| (u128::from(b) * u128::from(n)).div_ceil(u128::from(buckets));
                (edge(b + 1) - edge(b)) as f64 / n as f64
            };
            let chi2: f64 = (0..buckets)
                .map(|b| {
                    let expected = share(b) * draws as f64;
                    (seen[b as usize] as f64 - expected).powi(2) / expected
                })
                .sum();
            let df = (buckets - 1) as f64;
            // Laurent–Massart upper bound at 1e-9.
            assert!(
                chi2 <= df + 2.0 * (20.7 * df).sqrt() + 41.4,
                "n = {n}: chi2 {chi2} at df {df}"
            );
        }
    }

    /// Two probes of a key that fall together as often as any two do waste no more than chance.
    #[test]
    fn two_probes_of_a_key_coincide_by_chance_alone() {
        for n in RANGES {
            let both = |i: &u64| {
                let mut places = positions(mix64(*i), n, 2);
                places.next() == places.next()
            };
            let coincide = (0..DRAWS).filter(both).count() as f64;
            let expected = DRAWS as f64 / n as f64;
            let most = expected + 6.0 * expected.max(1.0).sqrt();
            assert!(
                coincide <= most,
                "n = {n}: {coincide}, {expected} by chance"
            );
        }
    }

    #[test]
    fn halves_make_the_whole() {
        let ends = [0, 1, (1 << 32) - 1, 1 << 32, u64::MAX - 1, u64::MAX];
        for n in RANGES
            .into_iter()
            .filter_map(|n| u32::try_from(n).ok())
            .chain([0])
        {
            let many = if cfg!(miri) { 100 } else { 10_000 };
            for hash in ends.into_iter().chain((0..many).map(mix64)) {
                let whole = fastrange(hash, u64::from(n));
                assert_eq!(fastrange_by_halves(hash, n), whole, "{hash}, {n}");
            }
        }
    }

    #[test]
    fn what_fastrange_leaves_is_independent_of_the_index() {
        // 64 × 64 contingency of (index mod 64, top six bits of the rest).
        for n in [64u64, 1000, 1 << 20, 3 << 29, (1 << 34) + 5] {
            let mut cells = vec![0u32; 4096];
            let draws = 1u64 << 20;
            for i in 0..draws {
                let (index, rest) = fastrange(mix64(i), n);
                cells[((index % 64) << 6 | rest >> 58) as usize] += 1;
            }
            let mut rows = [0f64; 64];
            let mut columns = [0f64; 64];
            for (i, &c) in cells.iter().enumerate() {
                rows[i >> 6] += f64::from(c);
                columns[i & 63] += f64::from(c);
            }
            let chi2: f64 = cells
                .iter()
                .enumerate()
                .map(|(i, &c)| {
                    let expected = rows[i >> 6] * columns[i & 63] / draws as f64;
                    (f64::from(c) - expected).powi(2) / expected
                })
                .sum();
            let df = 63.0 * 63.0;
            assert!(
                chi2 <= df + 2.0 * f64::sqrt(20.7 * df) + 41.4,
                "n = {n}: chi2 {chi2}"
            );
        }
    }

    #[test]
    fn mix64_is_splitmix64() {
        // The published stream of SplitMix64 from state 0: each output mixes the next multiple of
        // the golden gamma.
        let gamma = 0x9E37_79B9_7F4A_7C15u64;
        let stream: Vec<u64> = (1..=3).map(|i| mix64(gamma.wrapping_mul(i))).collect();
        assert_eq!(
            stream,
            [
                0xE220_A839_7B1D_CDAF,
                0x6E78_9E6A_A1B9_65F4,
                0x06C4_5D18_8009_454F
            ]
        );
    }

    #[test]
    fn low_mask_covers_its_whole_range() {
        assert_eq!(
            (low_mask(0), low_mask(1), low_mask(63), low_mask(64)),
            (0, 1, u64::MAX >> 1, u64::MAX)
        );
    }
}
