//! The compacting filter: keys go into a table that can be read back, and full tables become
//! static filters.
//!
//! The essay is at [`Compacting`].

use crate::bits::mix64;
use crate::buf::Buf;
use crate::chained::{RankIndexed, chains_for, most_chains, whole_fingerprint};
use crate::config::Config;
use crate::error::{BuildError, BuildErrorKind, DecodeError, Full, FullKind};
use crate::filter::{Filter, Insert, Kind};
use crate::format::{Decoder, Encoder};
use crate::growing::narrow::{Narrow, WIDTHS};
use crate::kinds::Declared;
use crate::math::{self, ScalableSchedule};

/// A filter that grows and compacts what is full into static filters. Insert.
///
/// ```
/// use tamis::{Compacting, Config, Filter, Keyed};
///
/// let mut seen: Keyed<Compacting> = Keyed::new(&Config::new(100).fpr(0.01))?;
/// for i in 0..10_000u64 {
///     seen.insert(&i)?; // a hundred times the capacity
/// }
/// assert!((0..10_000u64).all(|i| seen.contains(&i)));
/// assert_eq!(seen.filter().runs(), 6);
/// assert!(seen.filter().fpr() <= 0.01);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # The idea
///
/// ```text
///   runs     0  │ n₀ keys, w₀ bits │                          sealed: binary fuse filters
///            1  │ 2·n₀ keys, w₁ bits        │
///            2  │ 4·n₀ keys, w₂ bits                          │
///   active   3  │ 8·n₀ keys, chains of fingerprints of r₃ bits  ██████░░░░░░░░░░ │
///               takes the insertions
///
///   hash ──► F = chain, fingerprint     all that the active part keeps of a key,
///                                       as one number of 0 to chains·2^r − 1
///   sealing: every F is read back, and a binary fuse filter with w bits a slot is built
///            on mix64(F + φ·number)
/// ```
///
/// A static filter is the smallest there is, but it must know all its keys. A table of
/// fingerprints takes keys one by one, and it can tell what it holds: not the keys, but a number
/// F for each, which is the leading part of its hash. That is enough, as any lookup can make the
/// same number of its own hash. So keys go into a table, here a [`RankIndexed`]; when it is full,
/// a static filter is made of its numbers and a table for twice the keys is begun. A lookup
/// reduces the hash to the F of each part and asks the active part, then the runs from the newest
/// on.
///
/// A run cannot be read back, so runs are never united. They double in size, and there are few:
/// 17 growths make 131 072 times the first capacity. There are 30 runs at most.
///
/// # The rate
///
/// Slice i, active or sealed, has the share ε·0.15·0.85ⁱ of the rate asked for, and the shares
/// sum to ε, however many slices follow. A run errs where the F of an absent key is that of a
/// member, 2⁻ʳ, or where its w bits agree, 2⁻ʷ; both are within the share
/// (`math::compacting_widths`). The active part errs in the first way only. At 1 % the first
/// slice has r = 11 and w = 10, the tenth r = 14 and w = 12.
///
/// # Insert
///
/// A hash that the filter contains already is counted and not stored: the answer to it can never
/// change. Others go to the active part, at the cost of its insertion and of a lookup in every
/// run. Sealing takes time and, for a moment, 30 bytes for each key sealed, beside both tables;
/// where memory is refused, the insertion is, and nothing has changed.
///
/// # Cost
///
/// Bits per key at 1 %, measured with a first capacity of 1000 after nine growths, against one
/// Bloom filter sized in advance, and [`Scalable`](crate::Scalable):
///
/// | | runs alone | active part full | just after a growth |
/// |---|---|---|---|
/// | this | 13.23 | 15.37 | 30.78 |
/// | `scalable` | | 16.24 | 33 |
/// | `bloom` | | 9.59 | |
///
/// The runs hold as many keys as the active part has room for. The active part costs
/// 1.09·(r + 1) + 1.25 bits a slot whether it is in use or not: that is what is paid for not
/// knowing the number of keys.
///
/// # What folding promised
///
/// The fuzzy-folded filter ([`Folded`](crate::Folded)) is said to hold 1.9 times the keys of a
/// Bloom filter in the same bits, by compacting what is full. It cannot: n keys at the rate ε
/// need n·log₂(1/ε) bits in any filter, and an optimal Bloom filter takes 1.4427 times that, so
/// 1.4427 times the keys is the limit. The bits for 1.9 times the keys at 1 % allow for 3.03 % at
/// best, 0.01^(1.4427/1.9). What nears the limit is a static filter made of fingerprints that
/// were kept, as here. Were the final size known, 7/8 of the keys sealed and the rest in an
/// active part without slack, 7.85 bits per key would do at 1 %: 1.22 times the keys.
///
/// This filter does not know the final size and does not come near: 15.37 bits are 0.62 times the
/// keys of a Bloom filter that was sized in advance. Half of the keys are in the active part;
/// each slice has a smaller share of the rate than the one before; and F must be a bit or two
/// longer than the share of the active part alone would ask for. Against the list of Bloom
/// filters, which does not know the size either, it saves 5 %, and 19 % on what is sealed.
///
/// # When to choose it
///
/// When the number of keys is not known, and [`Scalable`](crate::Scalable) is too large; or
/// when keys repeat, which takes no room here. A lookup reads four lines a run where `scalable`
/// reads two a slice, and an insertion moves kilobytes. There is no removal and no merging:
/// a run does not tell what it holds; [`Aleph`](crate::Aleph) does all that in about the same
/// space. Whoever can choose hashes can put them all into one chain, and have the filter grow
/// for little: where strangers send the keys, hash them under a [secret](crate::Hashing::secret).
///
/// # Bibliography
///
/// - Singh, Garg, Kaur, Batra, Kumar, Choo, *Fuzzy-folded Bloom filter-as-a-service for big data
///   storage in the cloud*, 2019: full filters are compacted as others fill. How is this
///   library's own.
/// - Hua, Zhao, Lin, Xu, *Rank-indexed hashing*, 2008: the active part.
/// - Graf, Lemire, *Binary fuse filters: fast and smaller than xor filters*, 2022: the runs.
/// - O'Neil, Cheng, Gawlick, O'Neil, *The log-structured merge-tree*, 1996: an active part that
///   is sealed when full.
/// - Almeida, Baquero, Preguiça, Hutchison, *Scalable Bloom filters*, 2007: geometric shares.
/// - Carter, Floyd, Gill, Markowsky, Wegman, *Exact and approximate membership testers*, 1978:
///   the bound.
#[derive(Clone, Debug)]
pub struct Compacting {
    /// Keys that the first active part is made for, and the rate that all shares sum to.
    first: u64,
    fpr: f64,
    active: RankIndexed,
    /// From the oldest on.
    runs: Vec<Run>,
    /// Insertions, repeats and all.
    len: u64,
}

/// What became of an active part.
#[derive(Clone, Debug)]
struct Run {
    number: u64,
    /// Chains, and bits of a fingerprint, of the table that it was.
    chains: u64,
    bits: u32,
    filter: Narrow,
}

/// The runs that a file has room for, two sections each, beside the active part and the table.
const MOST_RUNS: usize = 30;
/// The share of a slice over that of the one before.
const RATIO: f64 = 0.85;
/// Words of a run in the table: chains, bits, and the row of its filter.
const ROW: usize = 7;

/// Keys that a slice is made for.
fn capacity(first: u64, number: usize) -> u64 {
    first.saturating_mul(1 << number)
}

/// Widths of a slice: of a fingerprint while it is active, and in the run.
fn widths(fpr: f64, number: usize) -> Option<(u32, u32)> {
    let schedule = ScalableSchedule::Geometric { ratio: RATIO };
    let share = math::scalable_slice_fpr(schedule, fpr, number as u32);
    math::compacting_widths(share)
}

/// The hash that the filter of a run has for a whole fingerprint. Runs have their own, so that
/// what one takes for a member is no likelier to fool the next.
#[inline]
fn salted(whole: u64, number: u64) -> u64 {
    mix64(whole.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

impl Run {
    /// Makes a run of an active part, which holds at least one key.
    fn seal(active: &RankIndexed, number: u64, width: u32) -> Result<Run, BuildError> {
        let mut hashes = Buf::zeroed(active.len())?;
        let hashes = hashes.make_mut();
        for (hash, whole) in hashes.iter_mut().zip(active.whole_fingerprints()) {
            *hash = salted(whole, number);
        }
        Ok(Run {
            number,
            chains: active.chains(),
            bits: active.fingerprint_bits(),
            filter: Narrow::build(hashes, width)?,
        })
    }

    /// The hash as this run sees it: this filter's geometry.
    #[inline]
    fn hash(&self, hash: u64) -> u64 {
        salted(whole_fingerprint(hash, self.chains, self.bits), self.number)
    }

    fn fpr(&self) -> f64 {
        let universe = self.chains as f64 * 2f64.powi(self.bits as i32);
        math::compacting_run_fpr(self.filter.len() as f64, universe, self.filter.width())
    }
}

impl Compacting {
    /// How many tables have been sealed.
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// How many keys the active part takes before it is sealed.
    fn active_capacity(&self) -> u64 {
        capacity(self.first, self.runs.len())
    }

    /// Seals the active part, and begins a new one with a hash in it.
    #[cold]
    fn grow(&mut self, hash: u64) -> Result<(), Full> {
        let refused = |kind| Full::new(kind, self.len);
        let refusal = |error: BuildError| match error.kind() {
            &BuildErrorKind::Memory { bytes } => refused(FullKind::Memory(bytes)),
            _ => refused(FullKind::Capacity),
        };
        let number = self.runs.len();
        if number == MOST_RUNS {
            return Err(refused(FullKind::Capacity));
        }
        let next_bits = widths(self.fpr, number + 1).map(|(bits, _)| bits);
        let width = widths(self.fpr, number).map(|(_, width)| width);
        let (Some(next_bits), Some(width)) = (next_bits, width) else {
            return Err(refused(FullKind::Capacity));
        };
        let next = capacity(self.first, number + 1);
        let mut next = RankIndexed::with_bits(next, next_bits).map_err(refusal)?;
        next.insert(hash).map_err(|full| refused(full.kind()))?;
        let run = Run::seal(&self.active, number as u64, width).map_err(refusal)?;
        if self.runs.try_reserve_exact(1).is_err() {
            let bytes = size_of::<Run>() as u64;
            return Err(Full::new(FullKind::Memory(bytes), self.len));
        }
        self.runs.push(run);
        self.active = next;
        Ok(())
    }
}

impl Filter for Compacting {
    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.active.contains(hash)
            || self
                .runs
                .iter()
                .rev()
                .any(|run| run.filter.contains(run.hash(hash)))
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn size_in_bytes(&self) -> usize {
        let runs = self.runs.iter().map(|run| run.filter.size_in_bytes());
        self.runs.capacity() * size_of::<Run>() + self.active.size_in_bytes() + runs.sum::<usize>()
    }

    fn fpr(&self) -> f64 {
        let active = std::iter::once(self.active.fpr());
        math::any(active.chain(self.runs.iter().map(Run::fpr)))
    }

    #[inline]
    fn prefetch(&self, hash: u64) {
        self.active.prefetch(hash);
        for run in &self.runs {
            run.filter.prefetch(run.hash(hash));
        }
    }
}

impl Insert for Compacting {
    /// Where the filter contains the hash already, the insertion is only counted.
    fn insert(&mut self, hash: u64) -> Result<(), Full> {
        if !self.contains(hash) {
            let full = self.active.len() >= self.active_capacity();
            // A bank may refuse a key before the whole is full.
            if full || self.active.insert(hash).is_err() {
                self.grow(hash)?;
            }
        }
        self.len = self.len.saturating_add(1);
        Ok(())
    }
}

impl Kind for Compacting {
    const ABOUT: &'static str =
        "grows with its keys and compacts them: smaller than a list of Bloom filters";

    /// The capacity is that of the first active part: what comes after it makes the filter grow.
    fn build(config: &Config, hashes: &mut [u64]) -> Result<Compacting, BuildError> {
        let (keys, fpr) = config.check::<Compacting>(hashes)?;
        let (bits, _) = widths(fpr, 0).ok_or(BuildErrorKind::Unreachable {
            kind: Compacting::INFO.name,
            fpr,
            // Two errors of 32 bits each are the least share, of which the first slice has 0.15
            // times the whole.
            least: 2.0 * math::fingerprint_fpr(32) / (1.0 - RATIO),
        })?;
        let mut filter = Compacting {
            first: keys.max(1),
            fpr,
            active: RankIndexed::with_bits(keys, bits)?,
            runs: Vec::new(),
            len: 0,
        };
        filter.insert_batch(hashes)?;
        Ok(filter)
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        out.param("first", self.first);
        out.param("fpr", self.fpr);
        self.active.encode(out);
        let row = |run: &Run| {
            let own = [run.chains, u64::from(run.bits)];
            own.into_iter().chain(run.filter.row())
        };
        let table = self.runs.iter().flat_map(row).flat_map(u64::to_le_bytes);
        out.made(table.collect());
        for run in &self.runs {
            run.filter.encode(out);
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Compacting, DecodeError> {
        let first = input.param_in("first", 1..=u64::MAX)?;
        let fpr = input.real("fpr", |fpr| fpr < 1.0 && widths(fpr, 0).is_some())?;
        let active = RankIndexed::read(input)?;
        let distinct = active.distinct();
        if distinct != active.len() {
            let expected = format!("{distinct}, each once");
            return Err(DecodeError::invalid("items", active.len(), expected));
        }
        let bytes = input.next_bytes();
        let rows = bytes / (8 * ROW as u64);
        if rows > MOST_RUNS as u64 {
            let expected = format!("rows of {} bytes, at most {MOST_RUNS}", 8 * ROW);
            return Err(DecodeError::invalid("the table of runs", bytes, expected));
        }
        let table = input.section::<u64>("the table of runs", rows * ROW as u64)?;
        let mut runs: Vec<Run> = Vec::with_capacity(rows as usize);
        let mut held = active.len();
        for (number, row) in (0..).zip(table.as_chunks::<ROW>().0) {
            let &[chains, bits, filter @ ..] = row;
            if !WIDTHS.contains(&bits) {
                return Err(DecodeError::invalid("a run's bits", bits, "1 to 32"));
            }
            let bits = bits as u32;
            let needed = chains_for(capacity(first, number));
            if chains != needed || chains > most_chains(bits) {
                let expected = format!("{needed}, for its keys, and few enough for {bits} bits");
                return Err(DecodeError::invalid("a run's chains", chains, expected));
            }
            let filter = Narrow::decode(input, filter)?;
            // Not more than 2⁵⁶, as many as there are whole fingerprints, so that the sum is no
            // surprise either.
            if filter.len() > chains << bits {
                let expected = format!("at most {}", chains << bits);
                return Err(DecodeError::invalid("a run's keys", filter.len(), expected));
            }
            held += filter.len();
            runs.push(Run {
                number: number as u64,
                chains,
                bits,
                filter,
            });
        }
        let needed = chains_for(capacity(first, runs.len()));
        if active.chains() != needed {
            let expected = format!("{needed}, for the keys that it takes");
            return Err(DecodeError::invalid("chains", active.chains(), expected));
        }
        let len = input.len();
        if len < held || (len == 0) != (held == 0) || (active.is_empty() && !runs.is_empty()) {
            let expected = format!("{held} or more, some of them in the active part");
            return Err(DecodeError::invalid("keys", len, expected));
        }
        Ok(Compacting {
            first,
            fpr,
            active,
            runs,
            len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::repair_checksums;
    use crate::key::Hashing;
    use crate::keyed::Keyed;

    fn grown(config: &Config, keys: u64) -> Compacting {
        let mut filter = Compacting::build(config, &mut []).unwrap();
        for i in 0..keys {
            filter.insert(mix64(i)).unwrap();
        }
        filter
    }

    #[track_caller]
    fn assert_rate(filter: &Compacting, asked: f64, queries: u64) {
        let absent = (0..queries).map(|q| mix64(1 << 63 | q));
        let hits = absent.filter(|&hash| filter.contains(hash)).count() as u64;
        let (low, high) = math::binomial_interval(queries, filter.fpr(), 1e-9);
        assert!(
            (low..=high).contains(&hits),
            "{hits} hits, {low} to {high} are in order"
        );
        assert!(filter.fpr() <= asked, "{}", filter.fpr());
    }

    fn bits_per_key(filter: &Compacting, bytes: usize) -> f64 {
        bytes as f64 * 8.0 / filter.len() as f64
    }

    #[test]
    fn size_and_rate_after_a_thousandfold_growth_are_those_of_the_essay() {
        let mut filter = grown(&Config::new(1000).fpr(0.01), 0);
        let mut keys = 0;
        let mut put = |filter: &mut Compacting, until: &dyn Fn(&Compacting) -> bool| {
            while !until(filter) {
                filter.insert(mix64(keys)).unwrap();
                keys += 1;
            }
        };
        // Nine sealed, and the tenth full: keys that some part takes for members already are in
        // none.
        put(&mut filter, &|f| f.runs() == 9);
        let runs = filter.runs.iter().map(|run| run.filter.size_in_bytes());
        let runs = bits_per_key(&filter, runs.sum());
        let just_grown = bits_per_key(&filter, filter.size_in_bytes());
        assert_rate(&filter, 0.01, 1_000_000);
        put(&mut filter, &|f| f.active.len() == f.active_capacity());
        assert_eq!(filter.runs(), 9);
        assert!((1_023_000..1_030_000).contains(&filter.len()));
        let full = bits_per_key(&filter, filter.size_in_bytes());
        assert_rate(&filter, 0.01, 1_000_000);
        let text = format!("{runs:.2} {full:.2} {just_grown:.2}");
        assert_eq!(text, "13.23 15.37 30.78");
        assert!((0..filter.len()).all(|i| filter.contains(mix64(i))));
    }

    #[test]
    fn a_million_keys_known_in_advance_are_all_in_the_active_part() {
        let mut hashes: Vec<u64> = (0..1_000_000).map(mix64).collect();
        let filter = Compacting::build(&Config::default().fpr(0.01), &mut hashes).unwrap();
        assert_eq!(filter.runs(), 0);
        assert_rate(&filter, 0.01, 1_000_000);
        let bits = bits_per_key(&filter, filter.size_in_bytes());
        assert_eq!(
            format!("{bits:.2} {:.3} %", 100.0 * filter.fpr()),
            "14.36 0.049 %"
        );
    }

    #[test]
    fn any_first_size_and_rate_grow_and_keep_their_promise() {
        for (first, fpr, keys) in [(1, 0.01, 5000), (10, 0.3, 20_000), (300, 1e-4, 30_000)] {
            let filter = grown(&Config::new(first).fpr(fpr), keys);
            assert!((0..keys).all(|i| filter.contains(mix64(i))));
            assert_eq!(filter.len(), keys);
            assert_rate(&filter, fpr, 300_000);
            for (number, run) in filter.runs.iter().enumerate() {
                let (bits, width) = widths(fpr, number).unwrap();
                assert_eq!((run.bits, run.filter.width()), (bits, width));
                let schedule = ScalableSchedule::Geometric { ratio: RATIO };
                let share = math::scalable_slice_fpr(schedule, fpr, number as u32);
                assert!(run.fpr() <= share, "run {number}");
            }
        }
    }

    #[test]
    fn repeats_are_counted_and_take_no_room() {
        let mut filter = grown(&Config::new(100).fpr(0.01), 1000);
        let (held, runs) = (filter.active.len(), filter.runs());
        for i in 0..100_000 {
            filter.insert(mix64(i % 1000)).unwrap();
        }
        assert_eq!((filter.active.len(), filter.runs()), (held, runs));
        assert_eq!(filter.len(), 101_000);
    }

    #[test]
    fn a_growth_that_is_refused_changes_nothing() {
        // The shares of so low a rate soon need more than 32 bits.
        let mut filter = grown(&Config::new(10).fpr(4e-9), 0);
        let mut keys = 0;
        let full = loop {
            match filter.insert(mix64(keys)) {
                Ok(()) => keys += 1,
                Err(full) => break full,
            }
            assert!(keys < 1000);
        };
        assert_eq!((full.kind(), full.keys()), (FullKind::Capacity, keys));
        let (before, runs) = (filter.active.whole_fingerprints().count(), filter.runs());
        assert!(filter.insert(mix64(1 << 50)).is_err());
        assert_eq!(filter.active.whole_fingerprints().count(), before);
        assert_eq!((filter.len(), filter.runs()), (keys, runs));
        assert!((0..keys).all(|i| filter.contains(mix64(i))));
        // What it contains is still taken.
        filter.insert(mix64(0)).unwrap();
    }

    #[test]
    fn a_rate_below_that_of_32_bits_is_refused() {
        let error = Compacting::build(&Config::new(10).fpr(3e-9), &mut []).unwrap_err();
        let least = match error.kind() {
            BuildErrorKind::Unreachable { least, .. } => *least,
            _ => panic!("{error}"),
        };
        assert!(Compacting::build(&Config::new(10).fpr(least * 1.001), &mut []).is_ok());
    }

    #[test]
    fn forged_files_are_refused_or_answer() {
        let mut filter: Keyed<Compacting> = Keyed::new(&Config::new(20).fpr(0.01)).unwrap();
        for i in 0..120u64 {
            filter.insert(&i).unwrap();
        }
        assert_eq!(filter.filter().runs(), 2);
        let file = filter.to_bytes();
        // The number of keys, the six parameters, and all sections: banks, table, runs.
        let header = u32::from_le_bytes([file[12], file[13], file[14], file[15]]) as usize;
        let bytes = (64..72).chain(96..144).chain(header..file.len() - 40);
        let (mut refused, mut opened) = (0, 0);
        for bit in bytes.flat_map(|byte| 8 * byte..8 * byte + 8) {
            let mut forged = file.clone();
            forged[bit / 8] ^= 1 << (bit % 8);
            repair_checksums(&mut forged);
            let Ok(mut forged) = Keyed::<Compacting>::open(forged) else {
                refused += 1;
                continue;
            };
            opened += 1;
            assert!((0.0..=1.0).contains(&forged.filter().fpr()));
            for i in 0..300u64 {
                forged.contains(&i);
                // More bits of a run's slots, or another first capacity: it goes on, or is full.
                let _ = forged.insert(&i);
            }
        }
        assert!(refused > 1000 && opened > 1000, "{refused}, {opened}");
    }

    #[test]
    fn what_no_insertion_makes_is_refused() {
        let config = Config::new(20).fpr(0.01);
        let built = grown(&config, 150);
        let open = |change: &dyn Fn(&mut Compacting)| {
            let mut filter = built.clone();
            change(&mut filter);
            let keyed = Keyed::from_filter(filter, Hashing::default(), &config).unwrap();
            Keyed::<Compacting>::open(keyed.to_bytes()).map(|_| ())
        };
        assert!(open(&|_| ()).is_ok());
        let held = built.active.len() + built.runs.iter().map(|r| r.filter.len()).sum::<u64>();
        assert!(open(&|f| f.len = held).is_ok() && open(&|f| f.len = u64::MAX).is_ok());
        assert!(open(&|f| f.len = held - 1).is_err());
        assert!(open(&|f| f.active = RankIndexed::with_bits(160, 13).unwrap()).is_err());
        assert!(open(&|f| f.first = 40).is_err());
        // The last key is in the active part; once more, it would be there twice.
        let twice = |f: &mut Compacting| {
            f.active.insert(mix64(149)).unwrap();
            f.len += 1;
        };
        assert!(open(&twice).is_err());
        assert!(open(&|f| f.runs[0].bits = 33).is_err());
        assert!(open(&|f| f.runs[1].chains = 0).is_err());
        assert!(open(&|f| f.first = 0).is_err());
        assert!(open(&|f| f.fpr = 1e-9).is_err());
    }
}
