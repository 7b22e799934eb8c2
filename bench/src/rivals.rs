//! Other crates' filters: one implementation of [`Rival`] each.
//!
//! All are given the same 64-bit keys, which are uniform. Who takes hashes gets the keys as they
//! are; who insists on hashing gets [`Mix`], a hasher of two multiplications, so that nobody is
//! measured by the cost of `SipHash`; who brings a hash of its own that cannot be replaced keeps
//! it (README.md says which).

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Mutex, PoisonError};

use crate::keys::mix;
use crate::subject::{Built, Calls, Contestant, Inserting, Subject};

/// How another crate's filter is built.
trait Rival: Calls + Sized {
    const NAME: &'static str;
    /// The directory that its algorithm would have in the library.
    const FAMILY: &'static str;
    /// Whether it takes keys one by one: then it has [`empty`](Rival::empty) and
    /// [`Calls::insert`], and `build` uses them.
    const INSERTS: bool = false;
    /// The lowest rate it can be asked for: that of its fingerprint where the width is fixed. Who
    /// expects just that says so, as of 2⁻¹⁶ too few false positives are seen to know it by.
    const LEAST_FPR: f64 = 0.0;
    /// Bytes per key at the peak of a build, roughly.
    const PEAK: usize = 40;
    /// Whether it can be built on several threads.
    const THREADED: bool = false;

    /// An empty filter for so many keys.
    fn empty(_n: usize, _fpr: f64) -> Result<Self, String> {
        Err("it takes all keys at once".into())
    }

    /// A filter of these keys, on one thread.
    fn build(keys: &[u64], fpr: f64) -> Result<Self, String> {
        let mut filter = Self::empty(keys.len(), fpr)?;
        for &key in keys {
            if filter.insert(key) != Some(true) {
                return Err("it refused a key".into());
            }
        }
        Ok(filter)
    }

    /// The same on several, where it can.
    fn build_on(keys: &[u64], fpr: f64, _threads: usize) -> Result<Self, String> {
        Self::build(keys, fpr)
    }
}

pub(crate) fn contestants() -> Vec<Contestant> {
    vec![
        rival::<fastbloom::BloomFilter<Mixing>>(),
        rival::<bloomfilter::Bloom<u64>>(),
        rival::<growable_bloom_filter::GrowableBloom>(),
        rival::<sbbf_rs_safe::Filter>(),
        rival::<parquet::bloom_filter::Sbbf>(),
        rival::<cuckoofilter::CuckooFilter<Mix>>(),
        rival::<ScalableCuckoo>(),
        rival::<AutoscaleCuckoo>(),
        rival::<qfilter::Filter>(),
        rival::<aleph_filter::AlephFilter>(),
        rival::<xorf::Xor8>(),
        rival::<xorf::BinaryFuse8>(),
        rival::<xorf::BinaryFuse16>(),
        rival::<VFilter<u8>>(),
        rival::<VFilter<u16>>(),
        rival::<VFilterOfOne<u8>>(),
        pleat(),
        rival::<PtrHash>(),
        rival::<ribbon_filter::RibbonFilter<Mixing>>(),
        rival::<hashbrown::HashSet<u64, Mixing>>(),
    ]
}

fn rival<R: Rival>() -> Contestant {
    let refuse = |fpr| {
        if fpr < R::LEAST_FPR {
            return Err(format!("its rate is {:.4} % or more", R::LEAST_FPR * 100.0));
        }
        Ok(())
    };
    let build = move |keys: &mut [u64], fpr| {
        refuse(fpr)?;
        Ok(Box::new(R::build(keys, fpr)?) as Box<dyn Subject>)
    };
    let empty = move |n, fpr| {
        refuse(fpr)?;
        Ok(Box::new(R::empty(n, fpr)?) as Box<dyn Subject>)
    };
    let threaded = |keys: &mut [u64], fpr, threads| {
        Ok(Box::new(R::build_on(keys, fpr, threads)?) as Box<dyn Subject>)
    };
    Contestant {
        name: R::NAME,
        family: R::FAMILY,
        ours: false,
        build: Box::new(build),
        insert: if R::INSERTS {
            Inserting::AsBuild(Box::new(empty))
        } else {
            Inserting::Never
        },
        threaded: R::THREADED.then_some(Box::new(threaded)),
        peak: R::PEAK,
    }
}

/// A hasher for keys that are uniform already, and for the small integers that cuckoo filters
/// hash again.
#[derive(Clone, Default)]
struct Mix(u64);

type Mixing = BuildHasherDefault<Mix>;

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    #[inline(always)]
    fn write_u64(&mut self, word: u64) {
        self.0 = mix(self.0 ^ word);
    }
}

/// Fingerprint bits for a rate.
fn bits_for(fpr: f64) -> usize {
    (-fpr.log2()).ceil() as usize
}

impl Rival for fastbloom::BloomFilter<Mixing> {
    const NAME: &'static str = "fastbloom";
    const FAMILY: &'static str = "bloom";
    const INSERTS: bool = true;

    fn empty(n: usize, fpr: f64) -> Result<Self, String> {
        let filter = fastbloom::BloomFilter::with_false_pos(fpr).hasher(Mixing::default());
        Ok(filter.expected_items(n))
    }
}

impl Calls for fastbloom::BloomFilter<Mixing> {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.contains_hash(key)
    }

    #[inline(always)]
    fn insert(&mut self, key: u64) -> Option<bool> {
        self.insert_hash(key);
        Some(true)
    }
}

impl Rival for bloomfilter::Bloom<u64> {
    const NAME: &'static str = "bloomfilter";
    const FAMILY: &'static str = "bloom";
    const INSERTS: bool = true;

    fn empty(n: usize, fpr: f64) -> Result<Self, String> {
        // Its two hash functions are keyed by the halves of the seed, which must differ.
        let seed = std::array::from_fn(|i| i as u8);
        Ok(bloomfilter::Bloom::new_for_fp_rate_with_seed(
            n, fpr, &seed,
        )?)
    }
}

impl Calls for bloomfilter::Bloom<u64> {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.check(&key)
    }

    #[inline(always)]
    fn insert(&mut self, key: u64) -> Option<bool> {
        self.set(&key);
        Some(true)
    }
}

impl Rival for growable_bloom_filter::GrowableBloom {
    const NAME: &'static str = "growable-bloom-filter";
    const FAMILY: &'static str = "bloom";
    const INSERTS: bool = true;

    fn empty(n: usize, fpr: f64) -> Result<Self, String> {
        Ok(growable_bloom_filter::GrowableBloom::new(fpr, n))
    }
}

impl Calls for growable_bloom_filter::GrowableBloom {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.contains(key)
    }

    #[inline(always)]
    fn insert(&mut self, key: u64) -> Option<bool> {
        self.insert(key);
        Some(true)
    }
}

impl Rival for sbbf_rs_safe::Filter {
    const NAME: &'static str = "sbbf-rs";
    const FAMILY: &'static str = "bloom";
    const INSERTS: bool = true;

    /// It takes whole bits per key: the fewest that reach the rate.
    fn empty(n: usize, fpr: f64) -> Result<Self, String> {
        Ok(sbbf_rs_safe::Filter::new(split_block_bits(fpr), n))
    }
}

/// Whole bits per key of a split-block filter. Its user would read them off a table, so they are
/// found once, by the first build, whose time a median forgets.
fn split_block_bits(fpr: f64) -> usize {
    static KNOWN: Mutex<Vec<(f64, usize)>> = Mutex::new(Vec::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&(_, bits)) = known.iter().find(|(rate, _)| *rate == fpr) {
        return bits;
    }
    let bits = tamis::math::split_block_bits_per_key(fpr, 32).unwrap_or(64.0);
    known.push((fpr, bits.ceil() as usize));
    bits.ceil() as usize
}

impl Calls for sbbf_rs_safe::Filter {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.contains_hash(key)
    }

    #[inline(always)]
    fn insert(&mut self, key: u64) -> Option<bool> {
        self.insert_hash(key);
        Some(true)
    }
}

impl Rival for parquet::bloom_filter::Sbbf {
    const NAME: &'static str = "parquet";
    const FAMILY: &'static str = "bloom";
    const INSERTS: bool = true;

    fn empty(n: usize, fpr: f64) -> Result<Self, String> {
        parquet::bloom_filter::Sbbf::new_with_ndv_fpp(n as u64, fpr).map_err(|e| e.to_string())
    }
}

impl Calls for parquet::bloom_filter::Sbbf {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.check(&key.to_le_bytes()[..])
    }

    #[inline(always)]
    fn insert(&mut self, key: u64) -> Option<bool> {
        self.insert(&key.to_le_bytes()[..]);
        Some(true)
    }
}

impl Rival for cuckoofilter::CuckooFilter<Mix> {
    const NAME: &'static str = "cuckoofilter";
    const FAMILY: &'static str = "cuckoo";
    const INSERTS: bool = true;
    /// Its fingerprints have one byte, eight of which a lookup compares: it errs by 1 to 3 %,
    /// whatever is asked for.
    const LEAST_FPR: f64 = 0.01;

    /// It loses a key when it is full, so it is given 5 % of room above the keys.
    fn empty(n: usize, _fpr: f64) -> Result<Self, String> {
        Ok(cuckoofilter::CuckooFilter::with_capacity(n + n / 20))
    }
}

impl Calls for cuckoofilter::CuckooFilter<Mix> {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.contains(&key)
    }

    #[inline(always)]
    fn insert(&mut self, key: u64) -> Option<bool> {
        Some(self.add(&key).is_ok())
    }

    #[inline(always)]
    fn remove(&mut self, key: u64) -> Option<bool> {
        Some(self.delete(&key))
    }
}

type ScalableCuckoo = scalable_cuckoo_filter::ScalableCuckooFilter<u64, Mix, rand::rngs::SmallRng>;

impl Rival for ScalableCuckoo {
    const NAME: &'static str = "scalable_cuckoo_filter";
    const FAMILY: &'static str = "cuckoo";
    const INSERTS: bool = true;

    /// Its own random numbers are a thread's; with others it can be shared.
    fn empty(n: usize, fpr: f64) -> Result<Self, String> {
        use rand::SeedableRng;
        Ok(scalable_cuckoo_filter::ScalableCuckooFilterBuilder::new()
            .initial_capacity(n)
            .false_positive_probability(fpr)
            .hasher(Mix::default())
            .rng(rand::rngs::SmallRng::seed_from_u64(1))
            .finish())
    }
}

impl Calls for ScalableCuckoo {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.contains(&key)
    }

    #[inline(always)]
    fn insert(&mut self, key: u64) -> Option<bool> {
        self.insert(&key);
        Some(true)
    }

    #[inline(always)]
    fn remove(&mut self, key: u64) -> Option<bool> {
        Some(self.remove(&key))
    }
}

type AutoscaleCuckoo = autoscale_cuckoo_filter::CuckooFilter<u64, Mix>;

impl Rival for AutoscaleCuckoo {
    const NAME: &'static str = "autoscale_cuckoo_filter";
    const FAMILY: &'static str = "cuckoo";
    const INSERTS: bool = true;

    fn empty(n: usize, fpr: f64) -> Result<Self, String> {
        Ok(autoscale_cuckoo_filter::CuckooFilterBuilder::new()
            .initial_capacity(n)
            .false_positive_probability(fpr)
            .hasher(Mix::default())
            .finish())
    }
}

impl Calls for AutoscaleCuckoo {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.contains_hash(key)
    }

    fn contains_batch(&self, keys: &[u64], out: &mut [bool]) -> bool {
        self.contains_hash_batch_into(keys, out);
        true
    }

    #[inline(always)]
    fn insert(&mut self, key: u64) -> Option<bool> {
        self.add_hash(key);
        Some(true)
    }

    #[inline(always)]
    fn remove(&mut self, key: u64) -> Option<bool> {
        Some(self.remove_hash(key))
    }
}

impl Rival for qfilter::Filter {
    const NAME: &'static str = "qfilter";
    const FAMILY: &'static str = "quotient";
    const INSERTS: bool = true;

    fn empty(n: usize, fpr: f64) -> Result<Self, String> {
        qfilter::Filter::new(n as u64, fpr).map_err(|e| e.to_string())
    }
}

impl Calls for qfilter::Filter {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.contains_fingerprint(key)
    }

    #[inline(always)]
    fn count(&self, key: u64) -> Option<u64> {
        Some(self.count_fingerprint(key))
    }

    /// Copies are kept: two keys of one fingerprint can then be removed in turn.
    #[inline(always)]
    fn insert(&mut self, key: u64) -> Option<bool> {
        Some(self.insert_fingerprint(true, key).is_ok())
    }

    #[inline(always)]
    fn remove(&mut self, key: u64) -> Option<bool> {
        Some(self.remove_fingerprint(key))
    }
}

impl Rival for aleph_filter::AlephFilter {
    const NAME: &'static str = "aleph-filter";
    const FAMILY: &'static str = "quotient";
    const INSERTS: bool = true;

    fn empty(n: usize, fpr: f64) -> Result<Self, String> {
        Ok(aleph_filter::AlephFilter::new(n, fpr))
    }
}

impl Calls for aleph_filter::AlephFilter {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.contains(&key.to_le_bytes())
    }

    #[inline(always)]
    fn insert(&mut self, key: u64) -> Option<bool> {
        self.insert(&key.to_le_bytes());
        Some(true)
    }

    #[inline(always)]
    fn remove(&mut self, key: u64) -> Option<bool> {
        Some(self.delete(&key.to_le_bytes()))
    }
}

impl Rival for xorf::Xor8 {
    const NAME: &'static str = "xorf/Xor8";
    const FAMILY: &'static str = "peel";
    const LEAST_FPR: f64 = 1.0 / 256.0;
    const PEAK: usize = 140;

    fn build(keys: &[u64], _fpr: f64) -> Result<Self, String> {
        Ok(xorf::Xor8::from(keys))
    }
}

impl Calls for xorf::Xor8 {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        xorf::Filter::contains(self, &key)
    }

    fn expected_fpr(&self) -> Option<f64> {
        Some(Self::LEAST_FPR)
    }
}

impl Rival for xorf::BinaryFuse8 {
    const NAME: &'static str = "xorf/BinaryFuse8";
    const FAMILY: &'static str = "peel";
    const LEAST_FPR: f64 = 1.0 / 256.0;

    fn build(keys: &[u64], _fpr: f64) -> Result<Self, String> {
        Ok(xorf::BinaryFuse8::try_from(keys)?)
    }
}

impl Calls for xorf::BinaryFuse8 {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        xorf::Filter::contains(self, &key)
    }

    fn expected_fpr(&self) -> Option<f64> {
        Some(Self::LEAST_FPR)
    }
}

impl Rival for xorf::BinaryFuse16 {
    const NAME: &'static str = "xorf/BinaryFuse16";
    const FAMILY: &'static str = "peel";
    const LEAST_FPR: f64 = 1.0 / 65536.0;

    fn build(keys: &[u64], _fpr: f64) -> Result<Self, String> {
        Ok(xorf::BinaryFuse16::try_from(keys)?)
    }
}

impl Calls for xorf::BinaryFuse16 {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        xorf::Filter::contains(self, &key)
    }

    fn expected_fpr(&self) -> Option<f64> {
        Some(Self::LEAST_FPR)
    }
}

type VFilter<W> = sux::dict::VFilter<u64, Box<[W]>>;
/// By signatures of 64 bits and in one table, which its authors advise for smaller sets.
type VFilterOfOne<W> =
    sux::dict::VFilter<u64, Box<[W]>, [u64; 1], sux::func::shard_edge::Fuse3NoShards>;

/// Keys in memory, and one thread unless more are asked for: the same terms as everyone's.
macro_rules! vfilter {
    ($($filter:ident, $word:ty, $name:literal;)*) => {$(
        impl Rival for $filter<$word> {
            const NAME: &'static str = $name;
            const FAMILY: &'static str = "peel";
            const THREADED: bool = true;
            const LEAST_FPR: f64 = 1.0 / (1u64 << <$word>::BITS) as f64;

            fn build(keys: &[u64], fpr: f64) -> Result<Self, String> {
                Self::build_on(keys, fpr, 1)
            }

            fn build_on(keys: &[u64], _fpr: f64, threads: usize) -> Result<Self, String> {
                let builder = sux::func::VBuilder::default()
                    .expected_num_keys(keys.len())
                    .max_num_threads(threads);
                let mut logger = dsi_progress_logger::ProgressLogger::default();
                $filter::<$word>::try_par_new_with_builder(keys, builder, &mut logger)
                    .map_err(|e| e.to_string())
            }
        }

        impl Calls for $filter<$word> {
            #[inline(always)]
            fn contains(&self, key: u64) -> bool {
                self.contains(key)
            }

            fn expected_fpr(&self) -> Option<f64> {
                Some(Self::LEAST_FPR)
            }
        }
    )*};
}

vfilter! {
    VFilter, u8, "sux/VFilter8";
    VFilter, u16, "sux/VFilter16";
    VFilterOfOne, u8, "sux/VFilter8-one-table";
}

/// The homogeneous ribbon of pleat; its width is part of its type, so it is chosen by rate.
struct Pleat<const R: usize>(pleat::filter::Ribbon<R>);

impl<const R: usize> Calls for Pleat<R> {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.0.contains(key)
    }

    fn contains_batch(&self, keys: &[u64], out: &mut [bool]) -> bool {
        self.0.contains_batch(keys, out);
        true
    }
}

fn pleat() -> Contestant {
    fn boxed<const R: usize>(keys: &[u64]) -> Built {
        Ok(Box::new(Pleat(
            pleat::filter::Ribbon::<R>::from_keys_pleated(keys),
        )))
    }
    let build = |keys: &mut [u64], fpr| match bits_for(fpr) {
        ..=5 => boxed::<5>(keys),
        6 => boxed::<6>(keys),
        7 => boxed::<7>(keys),
        8 => boxed::<8>(keys),
        9 => boxed::<9>(keys),
        10 => boxed::<10>(keys),
        11 => boxed::<11>(keys),
        12 => boxed::<12>(keys),
        13 => boxed::<13>(keys),
        14 => boxed::<14>(keys),
        15 => boxed::<15>(keys),
        16 => boxed::<16>(keys),
        bits => Err(format!("{bits} bits: only widths to 16 are compiled here")),
    };
    Contestant {
        name: "pleat",
        family: "ribbon",
        ours: false,
        build: Box::new(build),
        insert: Inserting::Never,
        threaded: None,
        peak: 40,
    }
}

/// A minimal perfect hash function, which becomes a filter by a fingerprint for each key: its low
/// byte.
struct PtrHash {
    function: ptr_hash::DefaultPtrHash,
    fingerprints: Vec<u8>,
}

impl Rival for PtrHash {
    const NAME: &'static str = "ptr_hash";
    const FAMILY: &'static str = "perfect";
    const LEAST_FPR: f64 = 1.0 / 256.0;

    fn build(keys: &[u64], _fpr: f64) -> Result<Self, String> {
        let params = ptr_hash::PtrHashParams::default();
        let function = ptr_hash::DefaultPtrHash::try_new(keys, params);
        let function = function.ok_or("no function was found")?;
        let mut fingerprints = vec![0; keys.len()];
        for key in keys {
            fingerprints[function.index(key)] = *key as u8;
        }
        Ok(PtrHash {
            function,
            fingerprints,
        })
    }
}

impl Calls for PtrHash {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.fingerprints[self.function.index(&key)] == key as u8
    }

    fn contains_batch(&self, keys: &[u64], out: &mut [bool]) -> bool {
        let places = self.function.index_stream::<32, _>(keys);
        let mut asked = keys.iter().zip(out);
        // Its iterator can only be gone through as a whole.
        places.for_each(|place| {
            if let Some((&key, out)) = asked.next() {
                *out = self.fingerprints[place] == key as u8;
            }
        });
        true
    }
}

impl Rival for ribbon_filter::RibbonFilter<Mixing> {
    const NAME: &'static str = "ribbon-filter";
    const FAMILY: &'static str = "ribbon";

    /// Width 128 and 8 % above the keys; it grows the table when a build fails.
    fn build(keys: &[u64], fpr: f64) -> Result<Self, String> {
        use ribbon_filter::{Mode, Params, RibbonBuilder};
        let bits = bits_for(fpr);
        let params = Params::from_expected_items(keys.len(), 0.08, 128, bits, Mode::Standard)
            .and_then(|params| params.with_retry_policy(2, 20))
            .map_err(|e| e.to_string())?;
        RibbonBuilder::new(params, Mixing::default())
            .and_then(|builder| builder.build(keys))
            .map_err(|e| e.to_string())
    }
}

impl Calls for ribbon_filter::RibbonFilter<Mixing> {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.contains(&key)
    }
}

impl Rival for hashbrown::HashSet<u64, Mixing> {
    const NAME: &'static str = "hashbrown";
    const FAMILY: &'static str = "exact";
    const INSERTS: bool = true;

    fn empty(n: usize, _fpr: f64) -> Result<Self, String> {
        Ok(hashbrown::HashSet::with_capacity_and_hasher(
            n,
            Mixing::default(),
        ))
    }
}

impl Calls for hashbrown::HashSet<u64, Mixing> {
    #[inline(always)]
    fn contains(&self, key: u64) -> bool {
        self.contains(&key)
    }

    #[inline(always)]
    fn insert(&mut self, key: u64) -> Option<bool> {
        self.insert(key);
        Some(true)
    }

    #[inline(always)]
    fn remove(&mut self, key: u64) -> Option<bool> {
        Some(self.remove(&key))
    }
}
