//! The one declaration of every kind: a line gives its id, name, file, type, tier and what it can
//! do.
//!
//! Everything that goes through all kinds goes through this list: the file reader, the program,
//! the conformance suite, the golden files, the bench ([`for_each_kind`]) and the tables in the
//! documentation. Adding a kind is its file and its line.

use std::any::Any;
use std::fmt;

use crate::any::AnyFilter;
use crate::config::{Config, Param};
use crate::error::{
    BuildError, BuildErrorKind, DecodeError, DecodeErrorKind, MergeError, MergeFilesError,
    Unsupported,
};
#[cfg(feature = "essays")]
use crate::essay;
use crate::file::{Files, MergeFiles, MergedFile, Output};
use crate::filter::{Count, Filter, Halve, Insert, Kind, Map, Merge, Remove, Window};
use crate::format::{Decoder, Encoder};

// family "feature" { id name: file::Type, tier, [what its filters can do beside lookups]; … }
kinds! {
    bloom "bloom" {
        1  bloom: standard::Bloom, Core, [insert, merge, halve];
        10 bloom_g: bloom_g::BloomG, Study, [insert, merge];
        11 blocked: blocked::Blocked, Study, [insert, merge, halve];
        2  split_block: split_block::SplitBlock512, Core, [insert, merge, halve];
        3  split_block_256: split_block::SplitBlock256, Study, [insert, merge, halve];
        13 balanced: balanced::Balanced, Study, [insert];
        14 two_choice: two_choice::TwoChoice, Study, [insert, merge];
        15 counting: counting::Counting, Study, [insert, remove, count(14), merge];
        16 variable_increment: variable_increment::VariableIncrement, Study, [insert, remove, merge];
        18 counting_minimal: counting::CountingMinimal, Study, [insert, count(254), merge];
        19 spectral_recurring: spectral_recurring::SpectralRecurring, Study, [insert, remove];
        20 compressed: compressed::Compressed, Study, [insert, merge];
    }
    tinyset "tinyset" {
        8  tinyset: filter::TinySet, Core, [insert, count(448), merge];
        9  tinyset_removable: filter::TinySetRemovable, Core, [insert, remove, count(446), merge];
    }
    chained "chained" {
        26 d_left: d_left::DLeft, Study, [insert, remove, count(96), merge];
        27 rank_indexed: rank_indexed::RankIndexed, Study, [insert, remove, count(300), merge];
        49 prefix: prefix::Prefix, Study, [insert, merge];
    }
    cuckoo "cuckoo" {
        4  cuckoo: standard::Cuckoo, Core, [insert, remove, count(8), merge];
        48 morton: morton::Morton, Study, [insert, remove, count(6), merge];
    }
    quotient "quotient" {
        40 quotient: rank_select::Quotient, Core, [insert, remove, count(64), merge, merge_files, halve];
        41 quotient_counting: counting::QuotientCounting, Core, [insert, remove, count_all, merge, merge_files];
        42 quotient_standard: standard::QuotientStandard, Study, [insert, remove, count(128), merge, halve];
        43 quotient_vector: vector::QuotientVector, Study, [insert, remove, count(104), merge];
        46 multiset: multiset::Multiset, Study, [insert, remove, count_all, merge];
        47 cleary: cleary::Cleary, Study, [insert];
    }
    exact "exact" {
        28 hash_compaction: hash_compaction::HashCompaction, Study, [insert];
    }
    growing "growing" {
        44 aleph: aleph::Aleph, Core, [insert, remove, count(64), merge, grow];
        21 scalable: scalable::Scalable, Study, [insert, merge, grow];
        24 folded: folded::Folded, Study, [insert];
        25 compacting: compacting::Compacting, Study, [insert, grow];
    }
    window "window" {
        45 sliding_table: table::SlidingTable, Core, [insert, remove, window];
        22 sliding: sliding::Sliding, Study, [insert, window];
        23 age_partitioned: age_partitioned::AgePartitioned, Study, [insert, window];
    }
    coded "coded" {
        37 golomb: golomb::Golomb, Core, [merge];
    }
    peel "peel" {
        5  binary_fuse8: binary_fuse::BinaryFuse8, Core, [];
        6  binary_fuse16: binary_fuse::BinaryFuse16, Core, [];
        7  binary_fuse32: binary_fuse::BinaryFuse32, Study, [];
        29 xor8: xor::Xor8, Study, [];
        30 xor16: xor::Xor16, Study, [];
        32 xor_plus8: xor_plus::XorPlus8, Study, [];
        33 xor_plus16: xor_plus::XorPlus16, Study, [];
        39 bloomier: bloomier::Bloomier, Core, [map];
    }
    perfect "perfect" {
        38 perfect: filter::Perfect, Core, [remove, map];
    }
    ribbon "ribbon" {
        34 ribbon: standard::Ribbon, Study, [];
        35 ribbon_homogeneous: homogeneous::RibbonHomogeneous, Study, [];
        36 ribbon_bumped: bumped::RibbonBumped, Core, [];
    }
}

/// Makes of each line its type's [`Declared::INFO`], and of all lines [`KINDS`], [`for_each_kind`]
/// and the names by id. What a kind can do, a line says by naming methods of [`KindInfo`] below,
/// each of which is bounded by its trait. A family is compiled with its feature.
macro_rules! kinds {
    ($($family:ident $feature:literal {$(
        $id:literal $name:ident: $file:ident :: $type:ident, $tier:ident,
        [$($can:ident $(($copies:literal))?),*];
    )*})*) => {
        $($(
            #[cfg(feature = $feature)]
            impl Sealed for crate::$family::$type {}

            #[cfg(feature = $feature)]
            impl Declared for crate::$family::$type {
                const INFO: &'static KindInfo = &KindInfo::new::<crate::$family::$type>(
                    $id,
                    stringify!($name),
                    stringify!($type),
                    concat!(stringify!($family), "/", stringify!($file), ".rs"),
                    Tier::$tier,
                )$(.$can::<crate::$family::$type>($($copies)?))*;
            }
        )*)*

        /// Every kind of filter, in the order of the documentation.
        pub static KINDS: &[KindInfo] = &[$($(
            #[cfg(feature = $feature)]
            *<crate::$family::$type as Declared>::INFO,
        )*)*];

        /// The names by id, also of kinds that are not compiled: for errors.
        static NAMES: &[(u16, &str)] = &[$($(($id, stringify!($name)),)*)*];

        /// The essays by id.
        #[cfg(feature = "essays")]
        static ESSAYS: &[(u16, &[u8])] = &[$($(
            #[cfg(feature = $feature)]
            ($id, {
                const SOURCE: &str = include_str!(concat!(
                    stringify!($family), "/", stringify!($file), ".rs"
                ));
                &essay::cut::<{ essay::len(SOURCE) }>(SOURCE)
            }),
        )*)*];

        /// Shows a visitor the type of every kind, in the order of [`KINDS`]: for loops that are to
        /// be compiled for each.
        pub fn for_each_kind(visitor: &mut impl KindVisitor) {
            let _ = &visitor;
            $($(
                #[cfg(feature = $feature)]
                visitor.visit::<crate::$family::$type>();
            )*)*
        }
    };
}
use kinds;

/// Which kinds to look at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// What someone should choose today: each of these is the best at something.
    Core,
    /// Of the literature: to compare with, to read, and for what an older system needs.
    Study,
}

/// What filters of a kind can do beside lookups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Takes new keys after it was built ([`Insert`]).
    pub insert: bool,
    /// Forgets keys ([`Remove`]).
    pub remove: bool,
    /// Tells how often a key was inserted ([`Count`]), up to [`KindInfo::copies`].
    pub count: bool,
    /// Takes in another filter without its keys ([`Merge`]).
    pub merge: bool,
    /// Gives up half its space without its keys, if its size is even ([`Halve`]).
    pub halve: bool,
    /// Knows a value for each key ([`Map`]).
    pub map: bool,
    /// Outgrows its capacity at the rate that was asked for, and forgets nothing.
    pub grow: bool,
    /// Forgets by itself: only the last `capacity` insertions are sure to be found, and older
    /// ones leave.
    pub window: bool,
}

impl Capabilities {
    /// Each capability with its name, in the order of the fields.
    pub fn named(&self) -> [(&'static str, bool); 8] {
        [
            ("insert", self.insert),
            ("remove", self.remove),
            ("count", self.count),
            ("merge", self.merge),
            ("halve", self.halve),
            ("map", self.map),
            ("grow", self.grow),
            ("window", self.window),
        ]
    }
}

/// What is known of a kind without having a filter of it.
///
/// ```
/// use tamis::{Cuckoo, Declared, KINDS, Tier};
///
/// assert!(Cuckoo::INFO.can.remove);
/// let removing = KINDS.iter().filter(|kind| kind.tier == Tier::Core && kind.can.remove);
/// assert!(removing.map(|kind| kind.name).any(|name| name == "cuckoo"));
/// ```
#[derive(Clone, Copy)]
#[non_exhaustive]
#[allow(
    clippy::type_complexity,
    reason = "each pointer is said once, beside its field"
)]
pub struct KindInfo {
    /// The number in files. Never reused.
    pub id: u16,
    /// The name in configurations, in the program and in the documentation.
    pub name: &'static str,
    /// The name of its type in this crate.
    pub type_name: &'static str,
    /// The version of the kind's own layout in files.
    pub version: u16,
    /// What it is good for, in one line.
    pub about: &'static str,
    /// The source file of the algorithm, with its essay, below `crates/tamis/src`.
    pub source: &'static str,
    /// Whether it is one to choose today.
    pub tier: Tier,
    /// The parameters that a configuration may give beside capacity and rate.
    pub params: &'static [Param],
    /// What its filters can do beside lookups.
    pub can: Capabilities,
    /// How many copies of a key a filter with room for as many, and its parameters left alone,
    /// tells apart; `u64::MAX` where there is no limit, 0 where it does not count.
    pub copies: u64,
    build: fn(&Config, &mut [u64]) -> Result<AnyFilter, BuildError>,
    decode: fn(&mut Decoder<'_>) -> Result<AnyFilter, DecodeError>,
    encode: for<'a> fn(&'a dyn Filter, &mut Encoder<'a>),
    clone: fn(&dyn Filter) -> Option<AnyFilter>,
    insert: Option<fn(&mut dyn Filter) -> Option<&mut dyn Insert>>,
    remove: Option<fn(&mut dyn Filter) -> Option<&mut dyn Remove>>,
    count: Option<fn(&dyn Filter) -> Option<&dyn Count>>,
    map: Option<fn(&dyn Filter) -> Option<&dyn Map>>,
    from_pairs: Option<FromPairs>,
    merge: Option<fn(&mut dyn Filter, &dyn Filter) -> Option<Result<(), MergeError>>>,
    merge_files: Option<MergeFilesOf>,
    halve: Option<fn(&dyn Filter) -> Option<Result<AnyFilter, BuildError>>>,
    window: Option<fn(&dyn Filter) -> Option<&dyn Window>>,
    window_mut: Option<fn(&mut dyn Filter) -> Option<&mut dyn Window>>,
}

type MergeFilesOf = fn(&mut Files<'_>, &Output<'_>) -> Result<MergedFile, MergeFilesError>;
type FromPairs = fn(&Config, &mut dyn Iterator<Item = (u64, u64)>) -> Result<AnyFilter, BuildError>;

/// A filter as its own type, if it is of that.
fn typed<F: Filter>(filter: &dyn Filter) -> Option<&F> {
    (filter as &dyn Any).downcast_ref()
}

fn typed_mut<F: Filter>(filter: &mut dyn Filter) -> Option<&mut F> {
    (filter as &mut dyn Any).downcast_mut()
}

/// What a line of the list says. Every function pointer is given filters of type `F` only, by
/// [`AnyFilter`].
impl KindInfo {
    const fn new<F: Kind>(
        id: u16,
        name: &'static str,
        type_name: &'static str,
        source: &'static str,
        tier: Tier,
    ) -> KindInfo {
        KindInfo {
            id,
            name,
            type_name,
            version: F::VERSION,
            about: F::ABOUT,
            source,
            tier,
            params: F::PARAMS,
            can: Capabilities {
                insert: false,
                remove: false,
                count: false,
                merge: false,
                halve: false,
                map: false,
                grow: false,
                window: false,
            },
            copies: 0,
            build: |config, hashes| F::build(config, hashes).map(AnyFilter::new),
            decode: |input| F::decode(input).map(AnyFilter::new),
            encode: |filter, out| {
                if let Some(filter) = typed::<F>(filter) {
                    filter.encode(out);
                }
            },
            clone: |filter| Some(AnyFilter::new(typed::<F>(filter)?.clone())),
            insert: None,
            remove: None,
            count: None,
            map: None,
            from_pairs: None,
            merge: None,
            merge_files: None,
            halve: None,
            window: None,
            window_mut: None,
        }
    }

    const fn insert<F: Insert>(mut self) -> KindInfo {
        self.can.insert = true;
        self.insert = Some(|filter| Some(typed_mut::<F>(filter)?));
        self
    }

    const fn remove<F: Remove>(mut self) -> KindInfo {
        self.can.remove = true;
        self.remove = Some(|filter| Some(typed_mut::<F>(filter)?));
        self
    }

    const fn count<F: Count>(mut self, copies: u64) -> KindInfo {
        self.can.count = true;
        self.copies = copies;
        self.count = Some(|filter| Some(typed::<F>(filter)?));
        self
    }

    const fn count_all<F: Count>(self) -> KindInfo {
        self.count::<F>(u64::MAX)
    }

    const fn map<F: Map + Kind>(mut self) -> KindInfo {
        self.can.map = true;
        self.map = Some(|filter| Some(typed::<F>(filter)?));
        self.from_pairs = Some(|config, pairs| F::from_pairs(config, pairs).map(AnyFilter::new));
        self
    }

    const fn merge<F: Merge>(mut self) -> KindInfo {
        self.can.merge = true;
        self.merge = Some(|filter, other| Some(typed_mut::<F>(filter)?.merge(typed::<F>(other)?)));
        self
    }

    const fn merge_files<F: Merge + MergeFiles>(mut self) -> KindInfo {
        self.merge_files = Some(F::merge_files);
        self
    }

    const fn halve<F: Halve + Kind>(mut self) -> KindInfo {
        self.can.halve = true;
        self.halve = Some(|filter| Some(typed::<F>(filter)?.halve().map(AnyFilter::new)));
        self
    }

    #[allow(
        clippy::extra_unused_type_parameters,
        reason = "what takes no insertions cannot be said to grow"
    )]
    const fn grow<F: Insert>(mut self) -> KindInfo {
        self.can.grow = true;
        self
    }

    const fn window<F: Window>(mut self) -> KindInfo {
        self.can.window = true;
        self.window = Some(|filter| Some(typed::<F>(filter)?));
        self.window_mut = Some(|filter| Some(typed_mut::<F>(filter)?));
        self
    }
}

impl KindInfo {
    /// Whether a person may mean this kind: by its name or its type's, whatever the case of the
    /// letters and what stands between them.
    ///
    /// ```
    /// let kind = tamis::kind("split_block")?;
    /// assert!(kind.is_called("SplitBlock512") && kind.is_called("split-block"));
    /// assert!(!kind.is_called("SplitBlock256"));
    /// # Ok::<(), tamis::BuildError>(())
    /// ```
    pub fn is_called(&self, name: &str) -> bool {
        let plain = |name: &str| name.replace(['_', '-', ' '], "").to_ascii_lowercase();
        [self.name, self.type_name]
            .map(plain)
            .contains(&plain(name))
    }

    /// Builds a filter of this kind; see [`Kind::build`].
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the configuration is not possible.
    pub fn build(&self, config: &Config, hashes: &mut [u64]) -> Result<AnyFilter, BuildError> {
        (self.build)(config, hashes)
    }

    /// Builds a map of this kind from pairs of hash and value; see [`Map::from_pairs`].
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the kind is no map, the configuration is not possible, or a hash has
    /// two values.
    pub fn from_pairs(
        &self,
        config: &Config,
        pairs: impl IntoIterator<Item = (u64, u64)>,
    ) -> Result<AnyFilter, BuildError> {
        let cannot = BuildErrorKind::Unsupported(Unsupported::new(self, "map"));
        let from_pairs = self.from_pairs.ok_or(cannot)?;
        from_pairs(config, &mut pairs.into_iter())
    }

    /// Whether files of this kind merge without being held in memory; see
    /// [`Open::merge_files`](crate::Open::merge_files).
    pub fn merges_files(&self) -> bool {
        self.merge_files.is_some()
    }

    pub(crate) fn files_merger(&self) -> Option<MergeFilesOf> {
        self.merge_files
    }

    /// Whether so many keys are more than a filter of this kind for `capacity` should hold.
    pub(crate) fn is_over_capacity(&self, keys: u64, capacity: u64) -> bool {
        !self.can.grow && !self.can.window && !self.can.count && keys > capacity
    }

    /// Refuses a layout that this library does not read.
    pub(crate) fn check_version(&self, version: u16) -> Result<(), DecodeError> {
        let kind = self.name;
        match version == self.version {
            true => Ok(()),
            false => Err(DecodeErrorKind::KindVersion { kind, version }.into()),
        }
    }

    /// Reads a filter of this kind; see [`Kind::decode`].
    pub(crate) fn decode(&self, input: &mut Decoder<'_>) -> Result<AnyFilter, DecodeError> {
        (self.decode)(input)
    }

    /// Writes a filter of this kind; see [`Kind::encode`].
    pub(crate) fn encode<'a>(&self, filter: &'a dyn Filter, out: &mut Encoder<'a>) {
        (self.encode)(filter, out);
    }

    pub(crate) fn clone_of(&self, filter: &dyn Filter) -> Option<AnyFilter> {
        (self.clone)(filter)
    }

    /// A filter as something that takes insertions, if this is its kind and does.
    #[inline]
    pub fn as_insert<'a>(&self, filter: &'a mut dyn Filter) -> Option<&'a mut dyn Insert> {
        self.insert?(filter)
    }

    /// A filter as something that takes removals, if this is its kind and does.
    #[inline]
    pub fn as_remove<'a>(&self, filter: &'a mut dyn Filter) -> Option<&'a mut dyn Remove> {
        self.remove?(filter)
    }

    /// A filter as something that counts, if this is its kind and does.
    #[inline]
    pub fn as_count<'a>(&self, filter: &'a dyn Filter) -> Option<&'a dyn Count> {
        self.count?(filter)
    }

    /// A filter as a map, if this is its kind and is one.
    #[inline]
    pub fn as_map<'a>(&self, filter: &'a dyn Filter) -> Option<&'a dyn Map> {
        self.map?(filter)
    }

    /// A filter as a window, if this is its kind and has one.
    #[inline]
    pub fn as_window<'a>(&self, filter: &'a dyn Filter) -> Option<&'a dyn Window> {
        self.window?(filter)
    }

    /// A filter as a window, for changing, if this is its kind and has one.
    #[inline]
    pub fn as_window_mut<'a>(&self, filter: &'a mut dyn Filter) -> Option<&'a mut dyn Window> {
        self.window_mut?(filter)
    }

    pub(crate) fn try_merge(
        &self,
        filter: &mut dyn Filter,
        other: &dyn Filter,
    ) -> Option<Result<(), MergeError>> {
        self.merge?(filter, other)
    }

    pub(crate) fn try_halve(&self, filter: &dyn Filter) -> Option<Result<AnyFilter, BuildError>> {
        self.halve?(filter)
    }

    /// Refuses an empty filter that is made for no keys, where keys can come and the filter does
    /// not grow with them.
    pub(crate) fn check_room(&self) -> Result<(), BuildError> {
        if self.can.insert && !self.can.grow {
            return Err(BuildErrorKind::NoCapacity { kind: self.name }.into());
        }
        Ok(())
    }

    /// What its source tells of it, in Markdown: the idea with a drawing, what it costs, when to
    /// choose it, and who thought of it.
    ///
    /// ```
    /// let essay = tamis::kind("cuckoo")?.essay();
    /// assert!(essay.contains("# When to choose it"));
    /// # Ok::<(), tamis::BuildError>(())
    /// ```
    #[cfg(feature = "essays")]
    pub fn essay(&self) -> String {
        let essay = ESSAYS.iter().find(|(id, _)| *id == self.id);
        essay.map_or_else(String::new, |(_, essay)| essay::uncommented(essay))
    }

    /// The family that it belongs to: the directory of its source.
    pub fn family(&self) -> &'static str {
        self.source.split('/').next().unwrap_or(self.source)
    }
}

impl fmt::Debug for KindInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KindInfo({} = {})", self.id, self.name)
    }
}

/// A type that has a line in the list of kinds, which implements this. Sealed.
pub trait Declared: Sealed {
    /// What the line says.
    const INFO: &'static KindInfo;
}

pub(crate) mod sealed {
    /// Only the list of kinds makes a type declared.
    pub trait Sealed {}
    /// Only a declared kind is held in a file, or any of them.
    pub trait Holds {}
}
use sealed::Sealed;

/// What [`for_each_kind`] calls.
pub trait KindVisitor {
    /// Called with the type of a kind.
    fn visit<F: Kind>(&mut self);
}

/// The declaration of a kind by its name.
///
/// # Errors
///
/// [`BuildError`] that suggests the nearest name, if one is near.
pub fn kind(name: &str) -> Result<&'static KindInfo, BuildError> {
    KINDS.iter().find(|info| info.name == name).ok_or_else(|| {
        if let Some(&(_, kind)) = NAMES.iter().find(|named| named.1 == name) {
            return BuildErrorKind::NotCompiled { kind }.into();
        }
        let called = KINDS.iter().find(|info| info.is_called(name));
        let nearest = || {
            let near = KINDS.iter().map(|info| (edits(name, info.name), info.name));
            let near = near.min().filter(|&(edits, _)| 3 * edits <= name.len());
            near.map(|(_, known)| known)
        };
        let similar = called.map(|info| info.name).or_else(nearest);
        BuildErrorKind::UnknownKind {
            name: name.into(),
            similar,
        }
        .into()
    })
}

/// The name of the kind that has this id, if any.
pub(crate) fn name_of(id: u16) -> Option<&'static str> {
    NAMES
        .iter()
        .find(|named| named.0 == id)
        .map(|named| named.1)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Keyed;
    use crate::bits::mix64;

    #[test]
    fn no_two_kinds_are_called_alike() {
        for kind in KINDS {
            for name in [kind.name, kind.type_name] {
                let called = KINDS.iter().filter(|other| other.is_called(name));
                assert!(called.map(|other| other.name).eq([kind.name]), "{name}");
            }
        }
    }

    #[test]
    fn a_misspelt_kind_is_answered_with_the_nearest_name() {
        let error = kind("cukoo").unwrap_err();
        assert_eq!(
            error.kind(),
            &BuildErrorKind::UnknownKind {
                name: "cukoo".into(),
                similar: Some("cuckoo")
            }
        );
        assert!(kind("").is_err());
        for (name, nearest) in [
            ("blom", Some("bloom")),
            ("binary_fuse", Some("binary_fuse8")),
            ("splitblock", Some("split_block")),
            ("SplitBlock512", Some("split_block")),
            ("SplitBlock256", Some("split_block_256")),
            ("hello", None),
            ("hyperloglog", None),
            ("set", None),
        ] {
            let error = kind(name).unwrap_err();
            let told = error.to_string();
            assert_eq!(told.contains("did you mean"), nearest.is_some(), "{told}");
            assert!(
                nearest.is_none_or(|nearest| told.contains(nearest)),
                "{told}"
            );
        }
    }

    #[test]
    fn the_core_is_about_a_dozen() {
        let core = KINDS.iter().filter(|kind| kind.tier == Tier::Core).count();
        assert!((10..=15).contains(&core), "{core}");
    }

    #[test]
    fn each_type_leads_to_its_own_line() {
        struct Names(Vec<&'static str>);
        impl KindVisitor for Names {
            fn visit<F: Kind>(&mut self) {
                self.0.push(F::INFO.name);
            }
        }
        let mut names = Names(Vec::new());
        for_each_kind(&mut names);
        assert!(names.0.into_iter().eq(KINDS.iter().map(|info| info.name)));
        assert!(KINDS.iter().all(|info| name_of(info.id) == Some(info.name)));
    }

    /// The code of every kind that reads a file and answers, in steps that are few enough for
    /// Miri. Building has its laws.
    #[test]
    fn every_golden_file_answers_in_batches_as_one_by_one() {
        const BATCH: u64 = 70;
        let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        for info in KINDS {
            let name = info.name;
            let file = std::fs::read(golden.join(format!("{name}.tamis"))).unwrap();
            let filter: Keyed<AnyFilter> = Keyed::open(file.clone()).unwrap();
            let present = (0..BATCH).map(|i| filter.hash(&format!("present-{i}")));
            let hashes: Vec<u64> = present.chain((0..BATCH).map(mix64)).collect();
            let mut answers = vec![false; hashes.len()];
            filter.filter().contains_batch(&hashes, &mut answers);
            for (&hash, &answer) in hashes.iter().zip(&answers) {
                assert_eq!(filter.filter().contains(hash), answer, "{name}");
            }
            let window = info.can.window;
            assert!(
                window || answers[..BATCH as usize].iter().all(|&found| found),
                "{name}"
            );
            // What is lent is copied before it is changed.
            let mut changed = filter.filter().clone();
            if let Some(insert) = changed.as_insert() {
                let inserted = insert.insert(mix64(BATCH)).is_ok();
                assert!(!inserted || changed.contains(mix64(BATCH)), "{name}");
            }
            assert!(filter.to_bytes() == file, "{name}");
        }
    }

    #[test]
    fn edit_distance_counts_letters() {
        assert_eq!(edits("bloom", "bloom"), 0);
        assert_eq!(edits("blom", "bloom"), 1);
        assert_eq!(edits("", "bloom"), 5);
        assert_eq!(edits("kitten", "sitting"), 3);
    }
}
