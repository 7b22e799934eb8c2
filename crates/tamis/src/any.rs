//! A filter whose kind is known only at run time.

use std::any::Any;
use std::fmt;

use crate::config::Config;
use crate::error::{BuildError, DecodeErrorKind, MergeError, MergeErrorKind};
use crate::filter::{Count, Filter, Insert, Kind, Map, Remove, Window};
use crate::format::{Encoder, ParamValue};
use crate::kinds::sealed::Holds;
use crate::kinds::{self, KINDS, KindInfo};

/// A filter of any kind: one that a configuration or a file names.
///
/// Lookups are those of [`Filter`]. What not every kind can do is an `Option`:
/// [`as_insert`](AnyFilter::as_insert) and the like.
/// [`Keyed<AnyFilter>`](crate::Keyed) does the same with keys.
///
/// ```
/// use tamis::{AnyFilter, Config, Filter};
///
/// let config: Config = "cuckoo:capacity=1000,fpr=0.001".parse()?;
/// let mut filter = AnyFilter::build(&config, &mut [])?;
/// let hash = tamis::Hashing::default().hash("alice");
/// filter.as_insert().ok_or("this kind takes no insertions")?.insert(hash)?;
/// assert!(filter.contains(hash) && filter.kind().name == "cuckoo");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AnyFilter {
    kind: &'static KindInfo,
    /// Of the type that `kind` was made for.
    filter: Box<dyn Filter>,
}

impl AnyFilter {
    /// Wraps a filter of a known kind.
    pub fn new<F: Kind>(filter: F) -> AnyFilter {
        AnyFilter {
            kind: F::INFO,
            filter: Box::new(filter),
        }
    }

    /// Builds a filter of the kind that the configuration names; see [`Kind::build`].
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the configuration names no kind, or is not possible.
    pub fn build(config: &Config, hashes: &mut [u64]) -> Result<AnyFilter, BuildError> {
        kinds::kind(config.kind.as_deref().unwrap_or_default())?.build(config, hashes)
    }

    /// What is known of its kind: name, capabilities, parameters.
    pub fn kind(&self) -> &'static KindInfo {
        self.kind
    }

    /// The filter as its own type, if it is of that kind.
    pub fn downcast_ref<F: Kind>(&self) -> Option<&F> {
        (&*self.filter as &dyn Any).downcast_ref()
    }

    /// The filter as its own type, for changing, if it is of that kind.
    pub fn downcast_mut<F: Kind>(&mut self) -> Option<&mut F> {
        (&mut *self.filter as &mut dyn Any).downcast_mut()
    }

    /// The filter itself, if it is of that kind.
    pub fn downcast<F: Kind>(self) -> Option<F> {
        let filter: Box<dyn Any> = self.filter;
        filter.downcast().ok().map(|filter| *filter)
    }

    /// The filter as something that takes insertions, if its kind does.
    pub fn as_insert(&mut self) -> Option<&mut dyn Insert> {
        self.kind.as_insert(&mut *self.filter)
    }

    /// The filter as something that takes removals, if its kind does.
    pub fn as_remove(&mut self) -> Option<&mut dyn Remove> {
        self.kind.as_remove(&mut *self.filter)
    }

    /// The filter as something that counts, if its kind does.
    pub fn as_count(&self) -> Option<&dyn Count> {
        self.kind.as_count(&*self.filter)
    }

    /// The filter as a map, if its kind is one.
    pub fn as_map(&self) -> Option<&dyn Map> {
        self.kind.as_map(&*self.filter)
    }

    /// The filter as a window, if its kind has one.
    pub fn as_window(&self) -> Option<&dyn Window> {
        self.kind.as_window(&*self.filter)
    }

    /// The filter as a window, for changing, if its kind has one.
    pub fn as_window_mut(&mut self) -> Option<&mut dyn Window> {
        self.kind.as_window_mut(&mut *self.filter)
    }

    /// Takes in another filter. On `Err` this one is exactly as it was.
    ///
    /// # Errors
    ///
    /// [`MergeError`] when the kinds or parameters differ, the kind cannot merge, or the union
    /// does not fit.
    pub fn try_merge(&mut self, other: &AnyFilter) -> Result<(), MergeError> {
        let (ours, theirs) = (self.kind.name, other.kind.name);
        if ours != theirs {
            return Err(MergeErrorKind::Kind { ours, theirs }.into());
        }
        self.kind
            .try_merge(&mut *self.filter, &*other.filter)
            .unwrap_or_else(|| Err(MergeErrorKind::Unsupported(ours).into()))
    }

    /// The same keys in half the space, at a higher rate; `None` where the kind cannot.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when this filter cannot be halved as its kind can: its size is odd.
    pub fn try_halve(&self) -> Option<Result<AnyFilter, BuildError>> {
        self.kind.try_halve(&*self.filter)
    }

    /// The filter's shape: every parameter that its file holds, by name.
    pub fn params(&self) -> Vec<(&'static str, ParamValue)> {
        let mut out = Encoder::default();
        self.kind.encode(&*self.filter, &mut out);
        out.into_params()
    }
}

/// The bytes that an [`AnyFilter`] takes beside what its filter holds, so that a test can account
/// for every one.
#[doc(hidden)]
pub fn size_of_box(filter: &AnyFilter) -> usize {
    size_of_val(&*filter.filter)
}

impl Clone for AnyFilter {
    fn clone(&self) -> AnyFilter {
        match self.kind.clone_of(&*self.filter) {
            Some(filter) => filter,
            None => unreachable!("an AnyFilter holds a filter of its kind"),
        }
    }
}

impl fmt::Debug for AnyFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt(f)
    }
}

impl Filter for AnyFilter {
    fn contains(&self, hash: u64) -> bool {
        self.filter.contains(hash)
    }

    fn len(&self) -> u64 {
        self.filter.len()
    }

    fn size_in_bytes(&self) -> usize {
        self.filter.size_in_bytes()
    }

    fn fpr(&self) -> f64 {
        self.filter.fpr()
    }

    fn charged(&self) -> u64 {
        self.filter.charged()
    }

    fn saturated(&self) -> u64 {
        self.filter.saturated()
    }

    fn prefetch(&self, hash: u64) {
        self.filter.prefetch(hash);
    }

    fn contains_batch(&self, hashes: &[u64], out: &mut [bool]) {
        self.filter.contains_batch(hashes, out);
    }
}

/// What a [`Keyed`](crate::Keyed) is built, written and opened as: a [`Kind`], or an
/// [`AnyFilter`].
///
/// It says where the kind comes from, the type or the value; the rest is the [`KindInfo`]'s.
/// Sealed.
pub trait Held: Filter + Sized + Holds {
    /// The kind to build.
    #[doc(hidden)]
    fn asked(config: &Config) -> Result<&'static KindInfo, BuildError>;
    /// The kind to open, for an id in a file.
    #[doc(hidden)]
    fn found(id: u16) -> Result<&'static KindInfo, DecodeErrorKind>;
    /// The kind of this filter, and the filter as of that kind's own type.
    #[doc(hidden)]
    fn parts(&self) -> (&'static KindInfo, &dyn Filter);
    /// The filter, if it is of the kind that was asked for or found.
    #[doc(hidden)]
    fn from_any(filter: AnyFilter) -> Option<Self>;
}

impl<F: Kind> Holds for F {}
impl Holds for AnyFilter {}

impl<F: Kind> Held for F {
    fn asked(_: &Config) -> Result<&'static KindInfo, BuildError> {
        Ok(F::INFO)
    }

    fn found(id: u16) -> Result<&'static KindInfo, DecodeErrorKind> {
        if id == F::INFO.id {
            return Ok(F::INFO);
        }
        let expected = F::INFO.name;
        match kinds::name_of(id) {
            Some(got) => Err(DecodeErrorKind::OtherKind { expected, got }),
            None => Err(DecodeErrorKind::UnknownKind(id)),
        }
    }

    fn parts(&self) -> (&'static KindInfo, &dyn Filter) {
        (F::INFO, self)
    }

    fn from_any(filter: AnyFilter) -> Option<F> {
        filter.downcast()
    }
}

impl Held for AnyFilter {
    fn asked(config: &Config) -> Result<&'static KindInfo, BuildError> {
        kinds::kind(config.kind.as_deref().unwrap_or_default())
    }

    fn found(id: u16) -> Result<&'static KindInfo, DecodeErrorKind> {
        let known = KINDS.iter().find(|info| info.id == id);
        known.ok_or(match kinds::name_of(id) {
            Some(kind) => DecodeErrorKind::NotCompiled { kind },
            None => DecodeErrorKind::UnknownKind(id),
        })
    }

    fn parts(&self) -> (&'static KindInfo, &dyn Filter) {
        (self.kind, &*self.filter)
    }

    fn from_any(filter: AnyFilter) -> Option<AnyFilter> {
        Some(filter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bloom, Counting};

    #[test]
    fn a_filter_of_any_kind_is_its_own_type_and_no_other() {
        let config = Config::new(1000).kind("counting");
        // More copies than four bits count, so that all counters of the hash are stuck.
        let mut filter = AnyFilter::build(&config, &mut [7; 20]).unwrap();
        let own = filter.downcast_ref::<Counting>().unwrap();
        assert_eq!((own.saturated(), filter.saturated()), (7, 7));
        assert!(filter.downcast_ref::<Bloom>().is_none());
        assert!(filter.downcast_mut::<Counting>().is_some());
        assert!(filter.downcast_mut::<Bloom>().is_none());
    }
}
