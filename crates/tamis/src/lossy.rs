//! A filter that leaves out a share of its keys, to be smaller by that share.
//!
//! The essay is at [`Lossy`].

use crate::bits::mix64;
use crate::config::Config;
use crate::error::{BuildError, Full};
use crate::filter::{Count, Filter, Insert, Kind, Remove};

/// A lossy dictionary: a filter `F` of all keys but a share γ, which are denied.
///
/// ```
/// use tamis::{Config, Cuckoo, Hashing, Lossy};
///
/// let hashing = Hashing::default();
/// // Room for 100 000 keys at 1 %, of which one in ten may be forgotten.
/// let mut seen: Lossy<Cuckoo> = Lossy::build(&Config::new(100_000), 0.1, 0, &mut [])?;
/// for key in 0..100_000u64 {
///     seen.insert(hashing.hash(&key))?;
/// }
/// let denied = (0..100_000u64).filter(|key| !seen.contains(hashing.hash(key)));
/// assert!(denied.count().abs_diff(10_000) < 500);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///   hash ──► ρ(hash), a number of 64 bits ──┬── below γ·2⁶⁴ ──► left out: "no", nothing stored
///                                           └── otherwise  ──► the filter
/// ```
///
/// Where an error of either side is bearable, as in a cache that asks elsewhere, a set may deny
/// some of its keys. A filter with a share γ of false negatives needs 1 − γ of the space of one
/// without, but for O(n) bits, and to leave keys out reaches that. Which keys, must be known again
/// when they are removed: a key that was left out must not take another's fingerprint along. So a
/// second function ρ, of a family in which any two hashes are independent, decides, and decides the
/// same for insertions, lookups and removals.
///
/// # Cost
///
/// A filter for (1 − γ)·n keys, and four standard deviations more, at the rate ε/(1 − γ): a share
/// γ of absent keys is denied before it is asked, which leaves ε. One multiplication more.
///
/// # Why it is no filter
///
/// Every [`Filter`] promises that what was inserted is found. This one does not, so it has the
/// words without the trait, and nothing that relies on the promise takes it. It has no file: save
/// [`filter`](Lossy::filter), remember γ and the seed, and put them together again by
/// [`from_filter`](Lossy::from_filter).
///
/// # Bibliography
///
/// - Pagh, Rodler, *Lossy dictionaries*, 2001: the lower bound, and static ones.
/// - Pagh, Pagh, Rao, *An optimal Bloom filter replacement*, 2005, section 6.3: dynamic ones, by ρ.
#[derive(Clone, Debug)]
pub struct Lossy<F> {
    filter: F,
    /// γ, and γ·2⁶⁴.
    share: f64,
    threshold: u64,
    /// ρ is the upper half of a·x + b modulo 2¹²⁸.
    a: u128,
    b: u128,
}

impl<F: Kind> Lossy<F> {
    /// A lossy filter for `max(config.capacity, hashes.len())` keys, `share` of which are left out,
    /// that holds the given hashes but for those. `seed` draws ρ. May reorder the slice.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the share is not at least 0 and below 1, or the filter is not possible.
    pub fn build(
        config: &Config,
        share: f64,
        seed: u64,
        hashes: &mut [u64],
    ) -> Result<Lossy<F>, BuildError> {
        let choice = Lossy::from_filter((), share, seed)?;
        // Those that are kept to the front.
        let mut kept = 0;
        for i in 0..hashes.len() {
            if !choice.is_left_out(hashes[i]) {
                hashes.swap(kept, i);
                kept += 1;
            }
        }
        let all = config.capacity.max(hashes.len() as u64) as f64;
        let (mean, deviation) = (all * (1.0 - share), (all * share * (1.0 - share)).sqrt());
        // A rate that is none is refused by name, as it was given.
        let rate = if config.fpr > 0.0 && config.fpr < 1.0 {
            (config.fpr / (1.0 - share)).min(f64::midpoint(config.fpr, 1.0))
        } else {
            config.fpr
        };
        let inner = config
            .clone()
            .capacity((mean + 4.0 * deviation).ceil() as u64);
        let filter = F::build(&inner.fpr(rate), &mut hashes[..kept])?;
        Lossy::from_filter(filter, share, seed)
    }
}

impl<F> Lossy<F> {
    /// The lossy filter whose [`filter`](Lossy::filter) was saved and is open again, with the share
    /// and the seed that it was built with. With others it would deny keys that it holds.
    ///
    /// ```
    /// use tamis::{Config, Cuckoo, Hashing, Keyed, Lossy, Open};
    ///
    /// let (config, hashing) = (Config::new(1000), Hashing::default());
    /// let mut hashes: Vec<u64> = (0..1000u64).map(|key| hashing.hash(&key)).collect();
    /// let lossy: Lossy<Cuckoo> = Lossy::build(&config, 0.1, 7, &mut hashes)?;
    /// let file = Keyed::from_filter(lossy.filter().clone(), hashing, &config)?.to_bytes();
    ///
    /// let opened: Keyed<Cuckoo> = Open::new().bytes(file)?;
    /// let again = Lossy::from_filter(opened.filter().clone(), 0.1, 7)?;
    /// assert!(hashes.iter().all(|&hash| again.contains(hash) == lossy.contains(hash)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the share is not at least 0 and below 1.
    pub fn from_filter(filter: F, share: f64, seed: u64) -> Result<Lossy<F>, BuildError> {
        if !(0.0..1.0).contains(&share) {
            let expected = "a number from 0 to 1, without 1";
            return Err(BuildError::parameter("share", share, expected));
        }
        let word = |i: u64| mix64(mix64(seed ^ 0x6A09_E667_F3BC_C909).wrapping_add(i));
        let wide = |i| u128::from(word(i)) << 64 | u128::from(word(i + 1));
        Ok(Lossy {
            filter,
            share,
            threshold: (share * 64f64.exp2()) as u64,
            a: wide(1),
            b: wide(3),
        })
    }

    /// Whether the hash is one of those that are left out.
    #[inline]
    pub fn is_left_out(&self, hash: u64) -> bool {
        rho(self.a, self.b, hash) < self.threshold
    }
}

/// Which number of 64 bits ρ makes of a hash.
#[inline(always)]
fn rho(a: u128, b: u128, hash: u64) -> u64 {
    (a.wrapping_mul(u128::from(hash)).wrapping_add(b) >> 64) as u64
}

impl<F: Filter> Lossy<F> {
    /// Whether the hash may have been inserted. "Yes" is wrong at the rate [`fpr`](Self::fpr), "no"
    /// for the [share](Self::share) of keys that are left out.
    #[inline]
    pub fn contains(&self, hash: u64) -> bool {
        !self.is_left_out(hash) && self.filter.contains(hash)
    }

    /// How many keys the filter holds, without those that were left out.
    pub fn len(&self) -> u64 {
        self.filter.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.filter.is_empty()
    }

    /// The share of keys that is left out, in the mean.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// The false-positive rate to expect now.
    pub fn fpr(&self) -> f64 {
        (1.0 - self.share) * self.filter.fpr()
    }

    /// Every byte held on the heap.
    pub fn size_in_bytes(&self) -> usize {
        self.filter.size_in_bytes()
    }

    /// The filter of the keys that are not left out.
    pub fn filter(&self) -> &F {
        &self.filter
    }
}

impl<F: Insert> Lossy<F> {
    /// Inserts a hash, unless it is left out.
    ///
    /// # Errors
    ///
    /// As the filter's own [`insert`](Insert::insert).
    pub fn insert(&mut self, hash: u64) -> Result<(), Full> {
        if self.is_left_out(hash) {
            return Ok(());
        }
        self.filter.insert(hash)
    }
}

impl<F: Remove> Lossy<F> {
    /// Takes out one copy of a hash; `false`, and nothing has changed, if it is left out or none
    /// matches. See [`Remove::remove`].
    pub fn remove(&mut self, hash: u64) -> bool {
        !self.is_left_out(hash) && self.filter.remove(hash)
    }
}

impl<F: Count> Lossy<F> {
    /// How many copies of the hash are held; 0 if it is left out.
    pub fn count(&self, hash: u64) -> u64 {
        if self.is_left_out(hash) {
            return 0;
        }
        self.filter.count(hash)
    }
}

#[cfg(all(test, feature = "quotient"))]
mod tests {
    use super::*;
    use crate::{Multiset, math};

    #[test]
    fn a_share_is_left_out_and_removing_it_does_nothing() {
        let (n, share) = (1_000_000u64, 0.1);
        let config = Config::new(n).fpr(1.0 / 256.0);
        let mut hashes: Vec<u64> = (0..n).map(mix64).collect();
        let mut lossy: Lossy<Multiset> = Lossy::build(&config, share, 7, &mut hashes).unwrap();
        let left_out = (0..n).filter(|&i| lossy.is_left_out(mix64(i))).count() as f64;
        let deviation = (n as f64 * share * (1.0 - share)).sqrt();
        assert!(
            (left_out - share * n as f64).abs() < 5.0 * deviation,
            "{left_out}"
        );
        assert_eq!(lossy.len(), n - left_out as u64);
        for i in 0..n {
            let hash = mix64(i);
            assert_eq!(lossy.contains(hash), !lossy.is_left_out(hash));
            assert_eq!(lossy.count(hash) == 0, lossy.is_left_out(hash));
        }
        // Absent keys are let pass as rarely as was asked for.
        let queries = 2_000_000;
        let hits = (0..queries)
            .filter(|q| lossy.contains(mix64(1 << 40 | q)))
            .count() as u64;
        let (low, high) = math::binomial_interval(queries, lossy.fpr(), 1e-9);
        assert!(
            (low..=high).contains(&hits),
            "{hits}, {low} to {high} expected"
        );
        let (_, most) = math::binomial_interval(queries, config.fpr, 1e-9);
        assert!(hits <= most, "{hits}, {most} at most");
        // The space of a filter without loss, but for the share and a whole number of bits.
        let whole =
            Multiset::build(&config.clone().fpr(config.fpr / (1.0 - share)), &mut []).unwrap();
        let space = lossy.size_in_bytes() as f64 / whole.size_in_bytes() as f64;
        assert!((space / (1.0 - share) - 1.0).abs() < 0.01, "{space}");
        // To remove those that were left out changes nothing, and the others can go.
        for i in 0..n {
            let hash = mix64(i);
            let (kept, before) = (!lossy.is_left_out(hash), lossy.len());
            assert_eq!(lossy.remove(hash), kept);
            assert_eq!(lossy.len(), before - u64::from(kept));
        }
        assert!(lossy.is_empty());
    }

    #[test]
    fn shares_that_are_none_are_refused() {
        for share in [1.0, -0.1, 2.0, f64::NAN, f64::INFINITY] {
            let built: Result<Lossy<Multiset>, _> =
                Lossy::build(&Config::new(10), share, 0, &mut []);
            assert!(built.unwrap_err().to_string().contains("share"));
        }
        for fpr in [0.0, 1.0, 2.0, -1.0, f64::NAN, f64::INFINITY] {
            let config = Config::new(10).fpr(fpr);
            let refused = Lossy::<Multiset>::build(&config, 0.5, 0, &mut []).unwrap_err();
            let named = format!("rate of {fpr} makes");
            assert!(refused.to_string().contains(&named), "{refused}");
        }
        let config = Config::new(10).fpr(0.7);
        assert!(
            Lossy::<Multiset>::build(&config, 0.9, 0, &mut []).is_ok(),
            "0.7/0.1 is no rate"
        );
        let none: Lossy<Multiset> = Lossy::build(&Config::new(10), 0.0, 0, &mut [1, 2, 3]).unwrap();
        assert!([1, 2, 3].iter().all(|&hash| none.contains(hash)));
    }
}
