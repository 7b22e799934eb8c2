//! The list of kinds, and a filter whose kind is known only at run time.
//!
//! [`KINDS`] is the one list: the program, the file reader, the conformance suite, the golden files, the benches and
//! the tables in the documentation all iterate it. Adding a filter is one file and one line here.

use std::any::Any;
use std::fmt;

use crate::bits::mix64;
use crate::config::{Config, Param};
use crate::error::{
    BuildError, BuildErrorKind, DecodeError, DecodeErrorKind, MergeError, MergeErrorKind,
};
use crate::filter::{Count, Filter, Insert, Kind, Remove};
use crate::format::{Decoder, Encoder, ParamValue};
use crate::keyed::Stored;
use crate::{
    bloom, chained, coded, cuckoo, exact, growing, peel, perfect, ribbon, tinyset, window,
};

/// Every kind of filter, in the order of the documentation.
pub static KINDS: &[KindInfo] = &[
    KindInfo::of::<bloom::Bloom>(),
    KindInfo::of::<bloom::BloomG>(),
    KindInfo::of::<bloom::Blocked>(),
    KindInfo::of::<bloom::SplitBlock512>(),
    KindInfo::of::<bloom::SplitBlock256>(),
    KindInfo::of::<bloom::Balanced>(),
    KindInfo::of::<bloom::TwoChoice>(),
    KindInfo::of::<bloom::Counting>(),
    KindInfo::of::<bloom::VariableIncrement>(),
    KindInfo::of::<chained::DLeft>(),
    KindInfo::of::<bloom::CountingMinimal>(),
    KindInfo::of::<bloom::SpectralRecurring>(),
    KindInfo::of::<growing::Scalable>(),
    KindInfo::of::<growing::Folded>(),
    KindInfo::of::<bloom::Compressed>(),
    KindInfo::of::<window::Sliding>(),
    KindInfo::of::<window::AgePartitioned>(),
    KindInfo::of::<tinyset::TinySet>(),
    KindInfo::of::<tinyset::TinySetRemovable>(),
    KindInfo::of::<chained::RankIndexed>(),
    KindInfo::of::<cuckoo::Cuckoo>(),
    KindInfo::of::<exact::HashCompaction>(),
    KindInfo::of::<coded::Golomb>(),
    KindInfo::of::<peel::BinaryFuse8>(),
    KindInfo::of::<peel::BinaryFuse16>(),
    KindInfo::of::<peel::BinaryFuse32>(),
    KindInfo::of::<growing::Compacting>(),
    KindInfo::of::<peel::Xor8>(),
    KindInfo::of::<peel::Xor16>(),
    KindInfo::of::<peel::XorPlus8>(),
    KindInfo::of::<peel::XorPlus16>(),
    KindInfo::of::<peel::Bloomier>(),
    KindInfo::of::<perfect::Perfect>(),
    KindInfo::of::<ribbon::Ribbon>(),
    KindInfo::of::<ribbon::RibbonHomogeneous>(),
    KindInfo::of::<ribbon::RibbonBumped>(),
];

/// What is known of a kind without having a filter of it.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct KindInfo {
    /// The number in files.
    pub id: u16,
    /// The name in configurations and in the program.
    pub name: &'static str,
    /// The version of the kind's own layout in files.
    pub version: u16,
    /// What it is good for, in one line.
    pub about: &'static str,
    /// The source file of the algorithm, below `crates/tamis/src`.
    pub source: &'static str,
    /// Whether it forgets by itself: only the last `capacity` insertions are sure to be found.
    pub window: bool,
    /// The parameters that a configuration may give beside capacity and rate.
    pub params: &'static [Param],
    build: fn(&Config, &mut [u64]) -> Result<AnyFilter, BuildError>,
    decode: fn(&mut Decoder<'_>) -> Result<AnyFilter, DecodeError>,
}

/// What filters of a kind can do beside looking up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Takes new keys after it was built ([`Insert`]).
    pub insert: bool,
    /// Forgets keys ([`Remove`]).
    pub remove: bool,
    /// Tells how often a key was inserted ([`Count`]).
    pub count: bool,
    /// Takes in another filter without its keys ([`Merge`](crate::Merge)).
    pub merge: bool,
}

impl KindInfo {
    /// The registration of a kind.
    pub const fn of<F: Kind>() -> KindInfo {
        KindInfo {
            id: F::ID,
            name: F::NAME,
            version: F::VERSION,
            about: F::ABOUT,
            source: F::SOURCE,
            window: F::WINDOW,
            params: F::PARAMS,
            build: |config, hashes| F::build(config, hashes).map(AnyFilter::new),
            decode: |input| F::decode(input).map(AnyFilter::new),
        }
    }

    /// Builds a filter of this kind; see [`Kind::build`].
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the configuration is not possible.
    pub fn build(&self, config: &Config, hashes: &mut [u64]) -> Result<AnyFilter, BuildError> {
        (self.build)(config, hashes)
    }

    /// What filters of this kind can do, asked of a filter of one key.
    ///
    /// That every registered kind can be built for one key is a law, and tested; one that cannot is said to do nothing.
    pub fn capabilities(&self) -> Capabilities {
        // Half of all answers may be wrong: a rate that kinds of any width offer.
        let Ok(mut filter) = self.build(&Config::new(1).fpr(0.5), &mut [1]) else {
            return Capabilities::default();
        };
        let other = filter.clone();
        Capabilities {
            insert: filter.as_insert().is_some(),
            remove: filter.as_remove().is_some(),
            count: filter.as_count().is_some(),
            merge: filter.0.try_merge(&other).is_some(),
        }
    }

    /// Whether filters of this kind outgrow their capacity at the rate that was asked for, and forget nothing. Asked of a
    /// filter that is filled to eight times its capacity.
    pub fn grows(&self) -> bool {
        const CAPACITY: u64 = 1000;
        let Ok(mut filter) = self.build(&Config::new(CAPACITY), &mut []) else {
            return false;
        };
        let hashes: Vec<u64> = (1..=8 * CAPACITY).map(mix64).collect();
        let fits = filter
            .as_insert()
            .is_some_and(|filter| filter.insert_batch(&hashes).is_ok());
        // A rate that is measured on the filter's own bits scatters; one of a filter that is too full is far above.
        fits && !self.window && filter.fpr() <= 1.2 * Config::DEFAULT_FPR
    }

    /// Whether filters of this kind can be halved, if their size is even ([`AnyFilter::try_halve`]).
    pub fn halves(&self) -> bool {
        let filter = self.build(&Config::new(1).fpr(0.5), &mut []);
        filter.is_ok_and(|filter| filter.try_halve().is_some())
    }

    /// How many copies of a key filters of this kind tell apart, up to 300; 0 where they do not count. Asked of a filter
    /// with room for as many.
    pub fn copies(&self) -> u64 {
        const MOST: u64 = 300;
        let Ok(mut filter) = self.build(&Config::new(MOST), &mut []) else {
            return 0;
        };
        let hash = mix64(1);
        for copies in 1..=MOST {
            let inserted = filter.as_insert().is_some_and(|f| f.insert(hash).is_ok());
            // The limit stands for more as well.
            let counted = filter
                .as_count()
                .filter(|filter| copies < filter.count_limit())
                .map(|filter| filter.count(hash));
            if !inserted || counted != Some(copies) {
                return copies - 1;
            }
        }
        MOST
    }
}

impl fmt::Debug for KindInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KindInfo({} = {})", self.id, self.name)
    }
}

/// The registration of a kind by its name.
///
/// # Errors
///
/// [`BuildError`] that suggests the nearest name.
pub fn kind(name: &str) -> Result<&'static KindInfo, BuildError> {
    KINDS.iter().find(|info| info.name == name).ok_or_else(|| {
        let similar = KINDS
            .iter()
            .map(|info| info.name)
            .min_by_key(|known| edits(name, known))
            .unwrap_or_default();
        BuildErrorKind::UnknownKind {
            name: name.into(),
            similar,
        }
        .into()
    })
}

/// Refuses an empty filter that was made for no keys, where keys can come and the filter does not grow with them.
pub(crate) fn check_room(id: u16) -> Result<(), BuildError> {
    match KINDS.iter().find(|info| info.id == id) {
        Some(info) if info.capabilities().insert && !info.grows() => {
            Err(BuildErrorKind::NoCapacity { kind: info.name }.into())
        }
        _ => Ok(()),
    }
}

/// How many letters must be added, dropped or changed to make one word of the other.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// A filter of any registered kind.
///
/// ```
/// use tamis::{AnyFilter, Config, Keyed};
///
/// let config: Config = "cuckoo:capacity=1000,fpr=0.001".parse()?;
/// let mut seen: Keyed<AnyFilter> = Keyed::build(&config, ["alice", "bob"])?;
/// assert!(seen.contains("alice"));
///
/// let carol = seen.hash("carol");
/// seen.filter_mut().as_insert().expect("cuckoo filters take insertions").insert(carol)?;
/// assert!(seen.contains("carol"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AnyFilter(Box<dyn AnyKind>);

impl AnyFilter {
    /// Wraps a filter of a known kind.
    pub fn new<F: Kind>(filter: F) -> AnyFilter {
        AnyFilter(Box::new(filter))
    }

    /// The name of the filter's kind.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// The filter as its own type, if it is of that kind.
    pub fn downcast_ref<F: Kind>(&self) -> Option<&F> {
        (&*self.0 as &dyn Any).downcast_ref()
    }

    /// The filter as something that takes insertions, if its kind does.
    pub fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        self.0.as_insert()
    }

    /// The filter as something that takes removals, if its kind does.
    pub fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        self.0.as_remove()
    }

    /// The filter as something that counts, if its kind does.
    pub fn as_count(&self) -> Option<&dyn Count> {
        self.0.as_count()
    }

    /// Takes in another filter. On `Err` this one is exactly as it was.
    ///
    /// # Errors
    ///
    /// [`MergeError`] when the kinds or parameters differ, the kind cannot merge, or the union does not fit.
    pub fn try_merge(&mut self, other: &AnyFilter) -> Result<(), MergeError> {
        let (ours, theirs) = (self.name(), other.name());
        if ours != theirs {
            return Err(MergeErrorKind::Kind { ours, theirs }.into());
        }
        self.0
            .try_merge(other)
            .unwrap_or_else(|| Err(MergeErrorKind::Unsupported(ours).into()))
    }

    /// The same keys in half the space, at a higher rate; `None` where the kind cannot.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when this filter cannot be halved as its kind can: its size is odd.
    pub fn try_halve(&self) -> Option<Result<AnyFilter, BuildError>> {
        self.0.try_halve_any()
    }

    /// The filter's shape: every parameter that its file holds, by name.
    pub fn params(&self) -> Vec<(&'static str, ParamValue)> {
        let mut out = Encoder::default();
        self.0.encode(&mut out);
        out.into_params()
    }
}

/// The bytes that an [`AnyFilter`] takes beside what its filter holds, so that a test can account for every one.
#[doc(hidden)]
pub fn size_of_box(filter: &AnyFilter) -> usize {
    size_of_val(&*filter.0)
}

impl Clone for AnyFilter {
    fn clone(&self) -> AnyFilter {
        self.0.clone_any()
    }
}

impl fmt::Debug for AnyFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Filter for AnyFilter {
    fn contains(&self, hash: u64) -> bool {
        self.0.contains(hash)
    }

    fn len(&self) -> u64 {
        self.0.len()
    }

    fn size_in_bytes(&self) -> usize {
        self.0.size_in_bytes()
    }

    fn fpr(&self) -> f64 {
        self.0.fpr()
    }

    fn prefetch(&self, hash: u64) {
        self.0.prefetch(hash);
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        self.0.contains_batch(hashes, out);
    }
}

impl Stored for AnyFilter {
    fn from_hashes(config: &Config, hashes: &mut [u64]) -> Result<AnyFilter, BuildError> {
        kind(config.kind.as_deref().unwrap_or_default())?.build(config, hashes)
    }

    fn identity(&self) -> (u16, u16) {
        (self.0.id(), self.0.version())
    }

    fn write_parts<'a>(&'a self, out: &mut Encoder<'a>) {
        self.0.encode(out);
    }

    fn read_parts(
        id: u16,
        version: u16,
        input: &mut Decoder<'_>,
    ) -> Result<AnyFilter, DecodeError> {
        let info = KINDS
            .iter()
            .find(|info| info.id == id)
            .ok_or(DecodeErrorKind::UnknownKind(id))?;
        if version != info.version {
            return Err(DecodeErrorKind::KindVersion {
                kind: info.name,
                version,
            }
            .into());
        }
        (info.decode)(input)
    }

    fn merge_stored(&mut self, other: &AnyFilter) -> Result<(), MergeError> {
        self.try_merge(other)
    }
}

/// [`Kind`] without its constants and constructors, so that it can be boxed.
trait AnyKind: Filter {
    fn id(&self) -> u16;
    fn version(&self) -> u16;
    fn name(&self) -> &'static str;
    fn encode<'a>(&'a self, out: &mut Encoder<'a>);
    fn clone_any(&self) -> AnyFilter;
    fn as_insert(&mut self) -> Option<&mut dyn Insert>;
    fn as_remove(&mut self) -> Option<&mut dyn Remove>;
    fn as_count(&self) -> Option<&dyn Count>;
    /// `None` when the kind cannot merge. `other` is of the same kind.
    fn try_merge(&mut self, other: &AnyFilter) -> Option<Result<(), MergeError>>;
    fn try_halve_any(&self) -> Option<Result<AnyFilter, BuildError>>;
}

impl<F: Kind> AnyKind for F {
    fn id(&self) -> u16 {
        F::ID
    }

    fn version(&self) -> u16 {
        F::VERSION
    }

    fn name(&self) -> &'static str {
        F::NAME
    }

    fn encode<'a>(&'a self, out: &mut Encoder<'a>) {
        Kind::encode(self, out);
    }

    fn clone_any(&self) -> AnyFilter {
        AnyFilter::new(self.clone())
    }

    fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        Kind::as_insert(self)
    }

    fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        Kind::as_remove(self)
    }

    fn as_count(&self) -> Option<&dyn Count> {
        Kind::as_count(self)
    }

    fn try_merge(&mut self, other: &AnyFilter) -> Option<Result<(), MergeError>> {
        Kind::try_merge(self, other.downcast_ref()?)
    }

    fn try_halve_any(&self) -> Option<Result<AnyFilter, BuildError>> {
        Some(Kind::try_halve(self)?.map(AnyFilter::new))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kind_can_do_is_found_out_by_trying() {
        let found = |name: &str| kind(name).map(|info| (info.grows(), info.copies()));
        assert_eq!(found("scalable"), Ok((true, 0)));
        assert_eq!(found("bloom"), Ok((false, 0)), "overfilled, it errs more");
        assert_eq!(found("sliding"), Ok((false, 0)), "it forgets");
        assert_eq!(found("cuckoo"), Ok((false, 8)), "two buckets of four");
        assert_eq!(found("counting"), Ok((false, 14)), "15 stands for more");
        assert_eq!(found("binary_fuse8"), Ok((false, 0)), "it is static");
        for info in KINDS {
            assert_eq!(info.copies() > 0, info.capabilities().count, "{info:?}");
        }
    }

    #[test]
    fn a_misspelt_kind_is_answered_with_the_nearest_name() {
        let error = kind("cukoo").unwrap_err();
        assert_eq!(
            error.kind(),
            &BuildErrorKind::UnknownKind {
                name: "cukoo".into(),
                similar: "cuckoo"
            }
        );
        assert!(kind("").is_err());
    }

    #[test]
    fn a_half_holds_all_keys_in_half_the_bytes_at_the_rate_that_it_says() {
        let kinds: Vec<_> = KINDS.iter().filter(|info| info.halves()).collect();
        assert!(kinds.len() >= 4, "{kinds:?}");
        let mut hashes: Vec<u64> = (1..=10_000).map(mix64).collect();
        for info in kinds {
            // For twice the keys and some, until the size is even.
            let half = (20_000..20_100).find_map(|capacity| {
                let filter = info.build(&Config::new(capacity), &mut hashes).unwrap();
                let half = filter.try_halve()?.ok()?;
                // Each array starts on a cache line.
                let twice = 2 * half.size_in_bytes();
                assert!(twice.abs_diff(filter.size_in_bytes()) < 128, "{info:?}");
                assert_eq!(half.len(), 10_000);
                Some(half)
            });
            let half = half.unwrap_or_else(|| panic!("{info:?} has no even size"));
            assert!(hashes.iter().all(|&hash| half.contains(hash)), "{info:?}");
            let strangers = 200_000;
            let found = (1..=strangers)
                .filter(|&i| half.contains(mix64(i << 32)))
                .count() as u64;
            let (low, high) = crate::math::binomial_interval(strangers, half.fpr(), 1e-9);
            assert!(
                (low..=high).contains(&found),
                "{info:?}: {found} {}",
                half.fpr()
            );
        }
        let odd = kind("split_block").unwrap().build(&Config::new(1), &mut []);
        assert!(odd.unwrap().try_halve().unwrap().is_err(), "one block");
    }

    #[test]
    fn edit_distance_counts_letters() {
        assert_eq!(edits("bloom", "bloom"), 0);
        assert_eq!(edits("blom", "bloom"), 1);
        assert_eq!(edits("", "bloom"), 5);
        assert_eq!(edits("kitten", "sitting"), 3);
    }
}
