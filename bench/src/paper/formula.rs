//! Rates and sizes by formula, for each way to treat the extra bit of a longer slot.

use tamis::testing::math;

/// How a block treats slots with one bit more than the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Add-only: the bit is compared. `TinySet`.
    P0,
    /// The paper's removal: the bit is compared only where the stored one is 1.
    P1,
    /// One size: no slot has the bit.
    P2,
    /// Removal with a marked boundary, for two bits a block: the bit is compared.
    /// `TinySetRemovable`.
    P3,
}

impl Policy {
    pub(crate) fn flags(self) -> u32 {
        if self == Policy::P3 { 2 } else { 0 }
    }

    /// Chance that a longer slot matches a random remainder, relative to a shorter one.
    fn longer(self) -> f64 {
        match self {
            Policy::P0 | Policy::P3 => 0.5,
            // A stored 0, which half of them are, matches always; a stored 1 matches half the
            // time.
            Policy::P1 => 0.75,
            Policy::P2 => 1.0,
        }
    }

    /// Rate of one block of `array` bits beside its header.
    pub(crate) fn block_rate(self, array: u32, chains: u32, slots: u32) -> f64 {
        if slots == 0 {
            return 0.0;
        }
        let Some((width, longer)) = math::tinyset_widths(array, slots) else {
            return 1.0;
        };
        let short = math::fingerprint_fpr(width) / f64::from(chains);
        let ln_none = f64::from(longer) * (-self.longer() * short).ln_1p()
            + f64::from(slots - longer) * (-short).ln_1p();
        -ln_none.exp_m1()
    }

    /// Rate of many blocks at a mean load.
    pub(crate) fn rate(self, load: f64, bits: u32, chains: u32) -> f64 {
        if self.longer() == 0.5 {
            return math::tinyset_fpr(load, bits, chains, self.flags());
        }
        // Beyond it lies less than 1e-20 of Poisson's law.
        let most = (load + 12.0 * load.sqrt() + 30.0) as u32;
        (0..=most)
            .map(|r| {
                let rate = self.block_rate(bits - chains - self.flags(), chains, r);
                math::poisson_pmf(u64::from(r), load) * rate
            })
            .sum()
    }

    /// Bits a key of blocks with as many chains as keys on average; blocks have whole bits.
    pub(crate) fn size_by_items(self, items: u32, rate: f64) -> f64 {
        let mean = f64::from(items);
        let block = (6 * items..)
            .find(|&bits| self.rate(mean, bits, items) <= rate)
            .unwrap_or(u32::MAX);
        f64::from(block) / mean
    }

    /// Bits a key of blocks of a fixed size.
    pub(crate) fn size_by_block(self, bits: u32, chains: u32, rate: f64) -> f64 {
        let (mut low, mut high) = (1.0, f64::from(bits));
        while high > low * (1.0 + 1e-9) {
            let middle = f64::midpoint(low, high);
            if self.rate(middle, bits, chains) <= rate {
                low = middle;
            } else {
                high = middle;
            }
        }
        f64::from(bits) / low
    }

    /// Bits a key of one block that holds exactly its mean.
    pub(crate) fn size_of_one(self, items: u32, rate: f64) -> f64 {
        let (mut low, mut high) = (items, 32 * items);
        while high - low > 1 {
            let middle = u32::midpoint(low, high);
            if self.block_rate(middle, items, items) <= rate {
                high = middle;
            } else {
                low = middle;
            }
        }
        f64::from(high + items) / f64::from(items)
    }
}

/// Mean of the highest load that a block has had by each of these times, in ascending order; time
/// 1 is when as many keys were replaced as the filter holds.
///
/// A block gains keys at rate `mean` and loses each at rate 1, from Poisson's law on. For each
/// bound, the probability of never having been above it follows from the equations of that
/// process without the states above it.
pub(crate) fn highest_load(mean: f64, times: &[f64]) -> Vec<f64> {
    const STEP: f64 = 1.0 / 256.0;
    let most = (2.0 * mean + 10.0 * mean.sqrt()) as usize;
    let mut highest = vec![0.0; times.len()];
    for bound in 0..most {
        let mut p: Vec<f64> = (0..=bound)
            .map(|i| math::poisson_pmf(i as u64, mean))
            .collect();
        let change = |p: &[f64], out: &mut [f64]| {
            for i in 0..p.len() {
                let below = if i > 0 { p[i - 1] } else { 0.0 };
                let above = p.get(i + 1).copied().unwrap_or(0.0);
                out[i] = mean * below + (i + 1) as f64 * above - (mean + i as f64) * p[i];
            }
        };
        let (mut slope, mut at, mut sum) = (p.clone(), vec![0.0; p.len()], vec![0.0; p.len()]);
        let mut steps = 0u32;
        for (&time, highest) in times.iter().zip(&mut highest) {
            while f64::from(steps) * STEP < time - 1e-9 {
                // Runge and Kutta's four slopes.
                at.copy_from_slice(&p);
                sum.fill(0.0);
                for (weight, next) in [(1.0, 0.5), (2.0, 0.5), (2.0, 1.0), (1.0, 0.0)] {
                    change(&at, &mut slope);
                    for i in 0..p.len() {
                        sum[i] += weight * slope[i];
                        at[i] = p[i] + next * STEP * slope[i];
                    }
                }
                for (p, sum) in p.iter_mut().zip(&sum) {
                    *p += STEP / 6.0 * sum;
                }
                steps += 1;
            }
            *highest += 1.0 - p.iter().sum::<f64>();
        }
    }
    highest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} {expected}");
    }

    #[test]
    fn the_exact_policy_is_the_librarys() {
        for slots in 0..=448 {
            let ours = Policy::P0.block_rate(448, 64, slots);
            near(ours, math::tinyset_block_fpr(448, 64, slots), 1e-12);
        }
        near(Policy::P0.size_by_items(64, 0.01), 9.02, 0.005);
        near(Policy::P0.size_by_block(512, 64, 0.001), 12.82, 0.005);
        near(Policy::P3.size_by_block(512, 64, 0.001), 12.87, 0.005);
    }

    #[test]
    fn the_other_policies_need_what_was_computed_for_them_apart() {
        near(Policy::P1.size_by_items(64, 0.001), 12.95, 0.006);
        near(Policy::P2.size_by_items(64, 0.001), 13.19, 0.006);
        near(Policy::P1.size_by_block(512, 80, 0.01), 9.18, 0.005);
        near(Policy::P2.size_by_block(256, 32, 1e-4), 19.91, 0.005);
        near(Policy::P0.size_of_one(100_000, 0.01), 8.71, 0.005);
    }

    #[test]
    fn the_highest_load_starts_at_the_mean_and_grows_as_simulated() {
        let highest = highest_load(40.0, &[0.0, 0.5, 1.0, 10.0]);
        for (highest, percent) in highest.iter().zip([0.0, 11.1, 15.6, 35.7]) {
            near(100.0 * (highest / 40.0 - 1.0), percent, 0.3);
        }
    }
}
