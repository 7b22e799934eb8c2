//! Bloom filters whose probes may fall anywhere, and what their bits tell.

use super::probability::Law;
use super::{is_rate, least_size_near, ln_1m_exp, lower_bound_bits_per_key};
use std::f64::consts::LN_2;

/// Most probes per key that the sizing functions consider.
pub const MAX_K: u32 = 32;

/// Filters with fewer bits than this are described by the exact sum.
const EXACT_BELOW_BITS: u64 = 4096;

/// Most probes for which the exact sum is formed.
const EXACT_MAX_K: u32 = 64;

/// Bits per key of a Bloom filter with a real-valued number of probes.
///
/// `log2(1 / fpr) / ln 2`, that is 1.4427 times the lower bound, at
/// `k = log2(1 / fpr)` (Bloom 1970). Schedules of many filters are compared
/// by it because it has no steps; a filter that is built uses [`bloom_size`].
///
/// ```
/// use tamis::math::bloom_bits_per_key;
///
/// assert!((bloom_bits_per_key(0.01) - 9.585).abs() < 0.001);
/// ```
pub fn bloom_bits_per_key(fpr: f64) -> f64 {
    lower_bound_bits_per_key(fpr) / LN_2
}

/// Share of `bins` hit by at least one of `throws`.
pub(super) fn fill(bins: f64, throws: f64) -> f64 {
    if throws <= 0.0 {
        0.0
    } else if bins <= 1.0 {
        1.0
    } else {
        -(throws * (-1.0 / bins).ln_1p()).exp_m1()
    }
}

/// False-positive rate of a Bloom filter.
///
/// The exact sum below 4096 bits, where the usual formula is up to ten percent
/// too low, and that formula, `(1 - (1 - 1/bits)^(k keys))^k`, from there on. An empty
/// filter gives 0; no bits or no probes give 1.
///
/// ```
/// use tamis::math::bloom_fpr;
///
/// // Ten bits a key, and what twice the keys do to it.
/// assert!((bloom_fpr(10_000_000, 1_000_000, 7) - 0.0082).abs() < 0.0001);
/// assert!((bloom_fpr(10_000_000, 2_000_000, 7) - 0.138).abs() < 0.001);
/// ```
pub fn bloom_fpr(bits: u64, keys: u64, k: u32) -> f64 {
    if bits < EXACT_BELOW_BITS {
        bloom_fpr_exact(bits, keys, k)
    } else {
        bloom_fpr_asymptotic(bits, keys, k)
    }
}

/// False-positive rate of a large Bloom filter.
///
/// `(1 - (1 - 1/bits)^(k * keys))^k` (Bloom 1970). A lower bound: it takes the
/// fill for its mean (Bose et al. 2008), which matters only in small filters.
pub fn bloom_fpr_asymptotic(bits: u64, keys: u64, k: u32) -> f64 {
    if bits == 0 || k == 0 {
        return 1.0;
    }
    let k = f64::from(k);
    fill(bits as f64, k * keys as f64).powf(k)
}

/// False-positive rate of a Bloom filter, exact for independent probes.
///
/// `sum_i P[i bits set] (i / bits)^k`, the occupancy after `k * keys` throws
/// (Bose et al. 2008; Christensen et al. 2010). Computed the other way round:
/// the query's k probes name some distinct bits, and each throw of the build
/// covers one of those still uncovered. That chain has only k + 1 states,
/// so its matrix raised to the number of throws is cheap for any size, and
/// nothing is ever subtracted, so that small rates keep all their digits.
///
/// Above 64 probes the answer is [`bloom_fpr_asymptotic`].
pub fn bloom_fpr_exact(bits: u64, keys: u64, k: u32) -> f64 {
    if bits == 0 || k == 0 {
        return 1.0;
    }
    if keys == 0 {
        return 0.0;
    }
    if k > EXACT_MAX_K {
        return bloom_fpr_asymptotic(bits, keys, k);
    }
    let bins = bits as f64;
    let distinct = distinct(bins, k);
    let step = throw(distinct.len(), bins);

    // Past 64 throws per bit a miss has probability below k e^-64: stop there.
    let throws = u128::from(k) * u128::from(keys);
    let throws = throws.min(64 * u128::from(bits));
    covered(distinct, step, throws)
}

/// Chances that k throws into `bins` bins fall into 0, 1, … k different ones.
pub(super) fn distinct(bins: f64, k: u32) -> Vec<f64> {
    let states = k as usize + 1;
    let mut distinct = vec![0.0; states];
    distinct[0] = 1.0;
    for _ in 0..k {
        for j in (0..states).rev() {
            let repeat = distinct[j] * (j as f64 / bins).min(1.0);
            let fresh = if j == 0 {
                0.0
            } else {
                distinct[j - 1] * (1.0 - (j - 1) as f64 / bins).max(0.0)
            };
            distinct[j] = repeat + fresh;
        }
    }
    distinct
}

/// Lower triangular matrix of a chain: from so many uncovered bits to so many.
type Chain = Vec<Vec<f64>>;

/// A throw into `bins` bins covers one of the bits still uncovered, or none.
fn throw(states: usize, bins: f64) -> Chain {
    let mut chain = vec![vec![0.0; states]; states];
    for (u, row) in chain.iter_mut().enumerate() {
        let hit = (u as f64 / bins).min(1.0);
        row[u] = 1.0 - hit;
        if u > 0 {
            row[u - 1] = hit;
        }
    }
    chain
}

/// One step and then another.
fn product(first: &Chain, then: &Chain) -> Chain {
    let states = first.len();
    let entry = |u: usize, v: usize| (v..=u).map(|i| first[u][i] * then[i][v]).sum();
    (0..states)
        .map(|u| {
            (0..states)
                .map(|v| if v <= u { entry(u, v) } else { 0.0 })
                .collect()
        })
        .collect()
}

/// Chance that nothing is uncovered after `steps` steps, from the chances of
/// so many uncovered bits before the first.
fn covered(mut uncovered: Vec<f64>, mut step: Chain, mut steps: u128) -> f64 {
    let states = uncovered.len();
    while steps > 0 {
        if steps & 1 == 1 {
            uncovered = (0..states)
                .map(|v| (v..states).map(|u| uncovered[u] * step[u][v]).sum())
                .collect();
        }
        steps >>= 1;
        if steps > 0 {
            step = product(&step, &step);
        }
    }
    uncovered[0].min(1.0)
}

/// Real bits per key of a Bloom filter with exactly `k` probes.
///
/// `-k / ln(1 - fpr^(1/k))`. `NaN` unless `0 < fpr < 1` and `k > 0`.
pub fn bloom_bits_per_key_at(fpr: f64, k: u32) -> f64 {
    if !is_rate(fpr) || k == 0 {
        return f64::NAN;
    }
    let k = f64::from(k);
    -k / ln_1m_exp(fpr.ln() / k)
}

/// Bits and probes of the smallest Bloom filter for `keys` at rate `fpr`.
///
/// Of k = 1..=32, the one that needs the least `keys * -k / ln(1 - fpr^(1/k))`,
/// ties to the smaller k. `None` unless
/// `0 < fpr < 1` and there are at most 2^63 bits.
///
/// ```
/// use tamis::math::bloom_size;
///
/// let (bits, k) = bloom_size(1_000_000, 0.001).expect("a rate between 0 and 1");
/// assert_eq!((bits / 8 / 1000, k), (1797, 10), "1.8 megabytes");
/// ```
pub fn bloom_size(keys: u64, fpr: f64) -> Option<(u64, u32)> {
    let needed = |k: u32| (keys as f64 * bloom_bits_per_key_at(fpr, k)).ceil();
    let k = (1..=MAX_K).min_by(|&a, &b| needed(a).total_cmp(&needed(b)))?;
    Some((bloom_bits(keys, fpr, k)?, k))
}

/// Bits of the smallest Bloom filter for `keys` at rate `fpr` with `k` probes.
///
/// `keys * -k / ln(1 - fpr^(1/k))` rounded up to whole 64-bit words, and as
/// many words more as [`bloom_fpr`] at these very parameters needs to be at
/// most `fpr`: small filters need some. At least one word. `None` unless
/// `0 < fpr < 1`, `k > 0` and there are at most 2^63 bits.
pub fn bloom_bits(keys: u64, fpr: f64, k: u32) -> Option<u64> {
    let bits = (keys as f64 * bloom_bits_per_key_at(fpr, k)).ceil();
    if !(bits <= 2f64.powi(63) - 1024.0) {
        return None;
    }
    let words = (bits as u64).div_ceil(64).max(1);
    let words = least_count(words, |words| {
        words > 1 << 57 || bloom_fpr(64 * words, keys, k) <= fpr
    })?;
    words.checked_mul(64).filter(|&bits| bits <= 1 << 63)
}

/// Least count from `start` on that is enough, if any.
pub(super) fn least_count(start: u64, enough: impl Fn(u64) -> bool) -> Option<u64> {
    let mut high = start;
    let mut low = None;
    let mut step = 1u64;
    while !enough(high) {
        low = Some(high);
        high = high.checked_add(step)?;
        step = step.saturating_mul(2);
    }
    while let Some(below) = low
        && high - below > 1
    {
        let middle = below + (high - below) / 2;
        if enough(middle) {
            high = middle;
        } else {
            low = Some(middle);
        }
    }
    Some(high)
}

/// Number of keys in a Bloom filter, from its count of set bits.
///
/// `ln(1 - ones / bits) / (k ln(1 - 1/bits))` (Swamidass, Baldi 2007; also the
/// maximum-likelihood estimate of Papapetrou, Siberski, Nejdl 2010).
/// Infinite when every bit is set, which a report should call "unbounded".
/// `NaN` when there are no bits or no probes, or more ones than bits.
///
/// ```
/// use tamis::math::bloom_estimate;
///
/// // Half of the bits are set.
/// assert!((bloom_estimate(1 << 20, 1 << 19, 7) / 103_832.0 - 1.0).abs() < 0.001);
/// ```
pub fn bloom_estimate(bits: u64, ones: u64, k: u32) -> f64 {
    if bits == 0 || k == 0 || ones > bits {
        return f64::NAN;
    }
    if ones == bits {
        return f64::INFINITY;
    }
    if ones == 0 {
        return 0.0;
    }
    let m = bits as f64;
    (-(ones as f64) / m).ln_1p() / (f64::from(k) * (-1.0 / m).ln_1p())
}

/// Standard error, in keys, of [`bloom_estimate`] when the truth is `keys`.
///
/// `sqrt(bits (e^a - 1 - a)) / k` with `a = k keys / bits`: the deviation of
/// the number of set bits, carried through the logarithm.
pub fn bloom_estimate_sd(bits: u64, keys: f64, k: u32) -> f64 {
    if bits == 0 || k == 0 || keys.is_nan() || keys < 0.0 {
        return f64::NAN;
    }
    let m = bits as f64;
    let a = f64::from(k) * keys / m;
    // e^a - 1 - a loses everything to cancellation when a is small.
    let excess = if a < 1e-3 {
        a * a * (0.5 + a / 6.0)
    } else {
        a.exp_m1() - a
    };
    (m * excess).sqrt() / f64::from(k)
}

/// Number of keys common to two Bloom filters of equal geometry and seed.
///
/// `n(a) + n(b) - n(a or b)` with [`bloom_estimate`] for each; `ones_and` is
/// the popcount of the bitwise and, from which that of the or follows.
/// Algebraically the form of Papapetrou et al. 2010. Not clamped: disjoint
/// sets give values around zero, on both sides.
pub fn bloom_intersection_estimate(
    bits: u64,
    ones_a: u64,
    ones_b: u64,
    ones_and: u64,
    k: u32,
) -> f64 {
    if ones_and > ones_a.min(ones_b) || ones_a > bits || ones_b > bits {
        return f64::NAN;
    }
    let ones_or = (ones_a - ones_and).saturating_add(ones_b);
    bloom_estimate(bits, ones_a, k) + bloom_estimate(bits, ones_b, k)
        - bloom_estimate(bits, ones_or, k)
}

/// Standard error, in keys, of [`bloom_intersection_estimate`] when `a` and
/// `b` keys have a union of `union`.
///
/// With `V(x)` the square of [`bloom_estimate_sd`] of x keys, two estimates
/// from one family of places have the covariance `V` of the number of keys
/// that their sets share, hence the variance `V(union) + 2 V(common) - V(a) -
/// V(b)`.
pub fn bloom_intersection_sd(bits: u64, a: f64, b: f64, union: f64, k: u32) -> f64 {
    let variance = |keys: f64| bloom_estimate_sd(bits, keys.max(0.0), k).powi(2);
    let shared = variance(a + b - union);
    (variance(union) + 2.0 * shared - variance(a) - variance(b))
        .max(0.0)
        .sqrt()
}

/// False-positive rate of Bloom-1 and Bloom-g.
///
/// `keys` keys own `g` of `words` words of `word_bits` bits each (Qiao, Li,
/// Chen 2014) and set `k` bits there, those of a word being distinct; the first
/// `k mod g` words take one bit more. Exact for one word, and a product over
/// the g words of a query.
///
/// The paper's formula, `sum_c P(c) (1 - (1 - 1/w)^(c k/g))^(k/g)` per word,
/// takes the fill of a word for its mean, which is 10 % too low a rate at
/// w = 64. Here a query's bits are covered one after another as in
/// [`bloom_fpr_exact`], with each choice of a word as the step.
///
/// 1 when there are no words, no bits in a word, no probes or no `g`. Above 64
/// bits in one word the answer is the paper's.
pub fn bloom_g_fpr(words: u64, word_bits: u32, keys: u64, k: u32, g: u32) -> f64 {
    if words == 0 || word_bits == 0 || k == 0 || g == 0 {
        return 1.0;
    }
    if keys == 0 {
        return 0.0;
    }
    // Words beyond the k-th would get no bit, and none is read for them.
    let g = g.min(k);
    let (tested, longer) = (k / g, k % g);
    let shorter = g - longer;
    let both = |word: &dyn Fn(u32) -> f64| {
        let rate = word(tested).powf(f64::from(shorter));
        if longer == 0 {
            return rate;
        }
        rate * word(tested + 1).powf(f64::from(longer))
    };
    if tested >= EXACT_MAX_K.min(word_bits) {
        let law = Law::per_cell(f64::from(g) * keys as f64, words);
        let (w, set) = (f64::from(word_bits), f64::from(k) / f64::from(g));
        return both(&|tested| law.expect(|c| fill(w, c * set).powf(f64::from(tested))));
    }
    let (steps, chance) = steps(keys, words);
    let states = (tested + u32::from(longer > 0)) as usize + 1;
    let bins = |taken| f64::from(word_bits - taken);
    let short = choice(states, tested, chance, bins);
    let mut key = short.clone();
    for _ in 1..shorter {
        key = product(&key, &short);
    }
    for _ in 0..longer {
        key = product(&key, &choice(states, tested + 1, chance, bins));
    }
    both(&|tested| {
        let mut uncovered = vec![0.0; states];
        uncovered[tested as usize] = 1.0;
        covered(uncovered, key.clone(), steps)
    })
}

/// How many keys to count with, and the chance that one falls into a word.
///
/// From 2^30 keys on their number no longer matters, only how many there are
/// to a word.
fn steps(keys: u64, words: u64) -> (u128, f64) {
    let scale = (keys as f64 / 2f64.powi(30)).max(1.0);
    (
        (keys as f64 / scale) as u128,
        (scale / words as f64).min(1.0),
    )
}

/// With probability `chance` a word is chosen, and `set` bits of it are set,
/// each drawn from as many as `bins` says for those drawn before it.
pub(super) fn choice(
    states: usize,
    set: u32,
    chance: f64,
    bins: impl Fn(u32) -> f64,
) -> Vec<Vec<f64>> {
    let mut chain = vec![vec![0.0; states]; states];
    for (u, row) in chain.iter_mut().enumerate() {
        row[u] = 1.0;
        for taken in 0..set {
            // Of the bits that may be drawn, v are uncovered: from v to v - 1.
            for v in 0..=u {
                let hit = row[v] * (v as f64 / bins(taken)).min(1.0);
                row[v] -= hit;
                if v > 0 {
                    row[v - 1] += hit;
                }
            }
        }
        row.iter_mut().for_each(|p| *p *= chance);
        row[u] += 1.0 - chance;
    }
    chain
}

/// False-positive rate of a filter of `blocks` blocks of which a key sets `k`
/// bits in one, exact for independent bits.
///
/// As [`blocked_fpr`](super::blocked_fpr), but that takes the fill of a block
/// for its mean: at 1 % and 512 bits the rate is 0.9 % above what it says. 1
/// when there are no blocks, no bits in a block or no probes, and above 64 of
/// these.
pub fn blocked_fpr_exact(blocks: u64, block_bits: u32, keys: u64, k: u32) -> f64 {
    if blocks == 0 || block_bits == 0 || k == 0 || k > EXACT_MAX_K {
        return 1.0;
    }
    let (steps, chance) = steps(keys, blocks);
    let bins = f64::from(block_bits);
    let key = choice(k as usize + 1, k, chance, |_| bins);
    covered(distinct(bins, k), key, steps)
}

/// Blocks of the smallest blocked Bloom filter for `keys` at rate `fpr` with
/// `k` probes.
///
/// The least number whose [`blocked_fpr_exact`] is at most `fpr`. `None` unless
/// `0 < fpr < 1`, or when 2^20 bits per key are not enough.
pub fn blocked_blocks(keys: u64, fpr: f64, block_bits: u32, k: u32) -> Option<u64> {
    if !is_rate(fpr) || block_bits == 0 {
        return None;
    }
    let keys = keys.max(1);
    let per_block = f64::from(block_bits) / keys as f64;
    let start = (lower_bound_bits_per_key(fpr) / per_block).floor().max(1.0);
    let most = (super::MAX_BITS_PER_KEY / per_block).max(1.0);
    let blocks = least_count(start as u64, |blocks| {
        blocks as f64 > most || blocked_fpr_exact(blocks, block_bits, keys, k) <= fpr
    })?;
    (blocks as f64 <= most).then_some(blocks)
}

/// Words and probes of the smallest Bloom-g filter for `keys` at rate `fpr`.
///
/// For each k up to 32 that is a multiple of `g` the least number of words
/// whose [`bloom_g_fpr`] is at most `fpr`; the least over k wins. There is no
/// closed form. `None` unless `0 < fpr < 1`, `g` is 1..=32 and
/// `word_bits > 1`, or when more than 2^20 bits per key would be needed.
pub fn bloom_g_size(keys: u64, fpr: f64, word_bits: u32, g: u32) -> Option<(u64, u32)> {
    if !(1..=MAX_K).contains(&g) {
        return None;
    }
    let mut best: Option<(u64, u32)> = None;
    let mut worse = 0;
    for k in (g..=MAX_K.min(word_bits.saturating_mul(g))).step_by(g as usize) {
        let rate = |words: u64| bloom_g_fpr(words, word_bits, keys.max(1), k, g);
        if best.is_some_and(|(words, _)| words <= 1 || rate(words - 1) > fpr) {
            // Past the best k the size only rises.
            worse += 1;
            if worse == super::WORSE {
                break;
            }
            continue;
        }
        worse = 0;
        if let Some(words) = bloom_g_words(keys, fpr, word_bits, k, g)
            && best.is_none_or(|(least, _)| words < least)
        {
            best = Some((words, k));
        }
    }
    best
}

/// Words of the smallest Bloom-g filter for `keys` at rate `fpr` with `k`
/// probes.
///
/// The least number whose [`bloom_g_fpr`] is at most `fpr`. `None` unless
/// `0 < fpr < 1`, `1 <= g <= k` and `word_bits > 1`, or when more than 2^20
/// bits per key would be needed.
pub fn bloom_g_words(keys: u64, fpr: f64, word_bits: u32, k: u32, g: u32) -> Option<u64> {
    if !is_rate(fpr) || word_bits < 2 || g == 0 || k < g {
        return None;
    }
    let keys = keys.max(1);
    let per_word = f64::from(word_bits) / keys as f64;
    let start = (lower_bound_bits_per_key(fpr) / per_word).floor().max(1.0);
    let most = (super::MAX_BITS_PER_KEY / per_word).max(1.0);
    let words = least_count(start as u64, |words| {
        words as f64 > most || bloom_g_fpr(words, word_bits, keys, k, g) <= fpr
    })?;
    (words as f64 <= most).then_some(words)
}

/// Most keys that a Bloom-g filter of this shape holds at rate `fpr`.
///
/// The greatest number whose [`bloom_g_fpr`] is at most `fpr`: where a filter
/// that grows by slices begins the next. 0 when one key is too many;
/// `u64::MAX` when there is no limit, as at a rate of 1.
pub fn bloom_g_capacity(words: u64, word_bits: u32, k: u32, g: u32, fpr: f64) -> u64 {
    let too_many = |keys: u64| !(bloom_g_fpr(words, word_bits, keys, k, g) <= fpr);
    least_count(1, too_many).map_or(u64::MAX, |keys| keys - 1)
}

/// False-positive rate of a Bloom filter whose keys choose between two groups.
///
/// `1 - (1 - rho^k)^2`, where the fill rho grows as
/// `d rho / d(keys / bits) = E[min(X1, X2)]`, `X ~ Binomial(k, 1 - rho)` being
/// the number of new bits a group would set (Lumetta, Mitzenmacher 2007).
/// Integrated in 600 midpoint steps; 1 below `k / 300` bits per key, where the
/// steps would be too coarse. `NaN` unless `bits_per_key > 0` and
/// `1 <= k <= 64`.
pub fn two_choice_fpr(bits_per_key: f64, k: u32) -> f64 {
    const STEPS: u32 = 600;
    if bits_per_key.is_nan() || bits_per_key <= 0.0 || !(1..=64).contains(&k) {
        return f64::NAN;
    }
    if bits_per_key * 300.0 < f64::from(k) {
        return 1.0;
    }
    let step = 1.0 / bits_per_key / f64::from(STEPS);
    let growth = fewer_new_bits(k);
    let mut rho = 0.0f64;
    for _ in 0..STEPS {
        let half = (rho + step / 2.0 * growth(rho)).min(1.0);
        rho = (rho + step * growth(half)).min(1.0);
    }
    let group = rho.powf(f64::from(k));
    group * (2.0 - group)
}

/// `E[min(X1, X2)] = sum over j >= 1 of P[X >= j]^2`, by the fill; `k` is at
/// most 64.
fn fewer_new_bits(k: u32) -> impl Fn(f64) -> f64 {
    // From one binomial coefficient to the next: divided once, not per call.
    let ratio = |old: u32| f64::from(k - old) / f64::from(old + 1);
    let ratios: Vec<f64> = (0..k).map(ratio).collect();
    move |rho| {
        // Weights C(k, j) (1 - rho)^j rho^(k - j) from j = k downwards, so
        // that the running sum is P[X >= j].
        let mut powers = [1.0; 65];
        for i in 1..=ratios.len() {
            powers[i] = powers[i - 1] * (1.0 - rho);
        }
        let (mut at_least, mut sum, mut weight) = (0.0, 0.0, 1.0);
        for (ratio, power) in ratios.iter().zip(powers[1..=ratios.len()].iter().rev()) {
            at_least += weight * power;
            sum += at_least * at_least;
            weight *= rho * ratio;
        }
        sum
    }
}

/// Bits per key and probes per group of the smallest two-choice Bloom filter.
///
/// Least over k = 1..=32 of the size at which [`two_choice_fpr`] is `fpr`.
/// `None` unless `0 < fpr < 1`.
pub fn two_choice_size(fpr: f64) -> Option<(f64, u32)> {
    if !is_rate(fpr) {
        return None;
    }
    // Keys per bit at which the fill reaches what the rate allows: the same
    // equation solved for its time, one short sum for each k.
    let group = -((-fpr).ln_1p() / 2.0).exp_m1();
    let keys_per_bit = |k: u32| {
        const PARTS: u32 = 64;
        let step = group.powf(1.0 / f64::from(k)) / f64::from(PARTS);
        let middle = |i: u32| step * (f64::from(i) + 0.5);
        let growth = fewer_new_bits(k);
        (0..PARTS).map(|i| step / growth(middle(i))).sum::<f64>()
    };
    // It rises to the best k and falls from there.
    let (mut most, mut k) = (keys_per_bit(1), 1);
    while k < MAX_K && keys_per_bit(k + 1) > most {
        k += 1;
        most = keys_per_bit(k);
    }
    // That sum is nearly right.
    let size = least_size_near(0.999 / most, 1.002, fpr, |size| two_choice_fpr(size, k))?;
    Some((size, k))
}

/// Bits and probes per group of the smallest two-choice filter for `keys`.
///
/// The k of [`two_choice_size`] and the least number of whole 64-bit words at
/// which [`two_choice_fpr`] is at most `fpr`. A small filter's fill varies, and
/// its rate is raised as [`bloom_fpr_exact`] raises that of a Bloom filter of
/// its size. `None` unless `0 < fpr < 1` and there are at most 2^63 bits.
pub fn two_choice_bits(keys: u64, fpr: f64) -> Option<(u64, u32)> {
    let (bits_per_key, k) = two_choice_size(fpr)?;
    let keys = keys.max(1);
    let bits = (keys as f64 * bits_per_key).ceil();
    if !(bits <= 2f64.powi(63) - 1024.0) {
        return None;
    }
    let rate = |words: u64| {
        let bits = 64 * words;
        let raised = bloom_fpr(bits, keys, k) / bloom_fpr_asymptotic(bits, keys, k);
        two_choice_fpr(bits as f64 / keys as f64, k) * raised.max(1.0)
    };
    let words = (bits as u64).div_ceil(64).max(1);
    let words = least_count(words, |words| words >= 1 << 57 || rate(words) <= fpr)?;
    Some((64 * words, k))
}

/// Chance that some level of an attenuated Bloom filter answers falsely.
///
/// `1 - product over levels of (1 - fill^k)` (Rhea, Kubiatowicz 2002), where
/// `fills` are the shares of set bits, one per level.
pub fn attenuated_fpr(fills: &[f64], k: u32) -> f64 {
    let all_silent: f64 = fills
        .iter()
        .map(|fill| (-fill.powf(f64::from(k))).ln_1p())
        .sum();
    -all_silent.exp_m1()
}

#[cfg(test)]
mod tests;
