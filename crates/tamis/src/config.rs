//! What a filter is to be: capacity, false-positive rate, and the kind's own parameters.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{BuildError, BuildErrorKind};
use crate::filter::Kind;
use crate::kinds::KindInfo;
use crate::math;
use crate::number;
use crate::option::Opt;

/// A parameter that a kind takes beside capacity and rate.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Param {
    /// Its name in configurations.
    pub name: &'static str,
    /// The values it takes.
    pub values: &'static str,
    /// What it is where a configuration does not say.
    pub default: &'static str,
    /// What it changes, in one line.
    pub about: &'static str,
}

/// How far a build has come, in keys; or the merging of files, in bytes that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Keys whose part of the filter is finished, or bytes. Where all keys go through one step
    /// after another, a step counts for as many keys as it is a part of the whole.
    pub done: u64,
    /// All keys, fewer once repeated ones are dropped; or all bytes, more where files must be read
    /// again.
    pub total: u64,
}

/// Counts what is done of one attempt at a filter, on any thread, and tells whoever watches.
#[derive(Debug)]
pub(crate) struct Tally<'a> {
    config: &'a Config,
    /// Locked while it is told, so that it is told in order, and the last is the end.
    done: Mutex<u64>,
    total: u64,
}

impl Tally<'_> {
    /// Tells that so many keys more are done.
    pub(crate) fn add(&self, keys: u64) {
        self.advance(|done| done + keys);
    }

    fn advance(&self, advance: impl FnOnce(u64) -> u64) {
        let mut locked = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        *locked = advance(*locked);
        let (done, total) = (*locked, self.total);
        self.config.tell(Progress { done, total });
    }

    /// Tells that so many of so many equal steps are done, by the one thread that takes them.
    pub(crate) fn step(&self, step: u64, of: u64) {
        let reached = u128::from(self.total) * u128::from(step) / u128::from(of.max(1));
        self.advance(|done| done.max(reached as u64));
    }
}

/// Who is told how far a build has come. Any two are equal: who watches does not change what is
/// built.
#[derive(Clone, Default)]
struct Watch(Option<Arc<dyn Fn(Progress) + Send + Sync>>);

impl PartialEq for Watch {
    fn eq(&self, _: &Watch) -> bool {
        true
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() {
            "watched"
        } else {
            "unwatched"
        })
    }
}

/// The size and shape of a filter to be built.
///
/// ```
/// use tamis::Config;
///
/// let config = Config::new(1_000_000).fpr(0.001).set("bits", 14);
/// let same: Config = "capacity=1000000,fpr=0.001,bits=14".parse()?;
/// assert_eq!(config, same);
///
/// let with_kind: Config = "cuckoo:fpr=0.001,bits=14".parse()?;
/// assert_eq!(with_kind.kind.as_deref(), Some("cuckoo"));
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// As text it is `kind:param=value,param=value`; the kind, the colon and every parameter may be
/// left out.
///
/// Fields are for reading; the methods of the same names set them and can be chained.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// The kind's name, if one is given.
    pub kind: Option<String>,
    /// The number of keys to make room for, if they are more than are given; 0 where nothing is
    /// said.
    pub capacity: u64,
    /// The false-positive rate at capacity.
    pub fpr: f64,
    /// How many threads a builder may use.
    pub threads: usize,
    watch: Watch,
    /// In the order given; a later value replaces an earlier one of the same name.
    params: Vec<(String, String)>,
}

/// What the text form is made of.
const SEPARATORS: [char; 3] = [',', ':', '='];

impl Config {
    /// The rate where none is asked for.
    pub const DEFAULT_FPR: f64 = 0.01;

    /// A configuration for this many keys at 1 % false positives.
    pub fn new(capacity: u64) -> Config {
        Config::default().capacity(capacity)
    }

    /// Sets the false-positive rate at capacity. Checked when a filter is built.
    #[must_use]
    pub fn fpr(mut self, fpr: f64) -> Config {
        self.params.retain(|(known, _)| known != "fpr");
        self.fpr = fpr;
        self
    }

    /// Sets the number of keys to make room for.
    #[must_use]
    pub fn capacity(mut self, capacity: u64) -> Config {
        self.params.retain(|(known, _)| known != "capacity");
        self.capacity = capacity;
        self
    }

    /// Names the kind of filter.
    #[must_use]
    pub fn kind(mut self, name: &str) -> Config {
        self.kind = Some(name.to_string());
        self
    }

    /// Sets one of the kind's own parameters by name, as [`with`](Config::with) does by constant;
    /// `capacity` and `fpr` too, where the value is a number for them.
    ///
    /// Checked when a filter is built: a name that the kind does not know is refused, and so is a
    /// name or value with one of the characters `,`, `:` and `=`, which the text form is made of.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl fmt::Display) -> Config {
        let value = value.to_string();
        self.params.retain(|(known, _)| known != name);
        // A rate that is no number is refused as such when a filter is built.
        let fpr = || number::share(&value).or_else(|| value.parse().ok());
        match name {
            "capacity" if let Some(capacity) = number::count(&value) => self.capacity = capacity,
            "fpr" if let Some(fpr) = fpr() => self.fpr = fpr,
            _ => self.params.push((name.to_string(), value)),
        }
        self
    }

    /// Sets one of the kind's own parameters by its constant in [`option`](crate::option).
    #[must_use]
    pub fn with<T: fmt::Display>(self, option: Opt<T>, value: T) -> Config {
        self.set(option.name, value)
    }

    /// Sets how many threads a builder may use, as far as its kind can; 1 where nothing is said.
    /// The outcome is the same whatever the number, so it is no part of the text form.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Config {
        self.threads = threads;
        self
    }

    /// Has a builder say how far it has come. All kinds that are built once do, at the start and
    /// at the end; those that cut large sets into shards (binary fuse filters, in memory and from
    /// [`Spill`](crate::Spill), and ribbons) tell it after each of them, and the others after
    /// each step. A build that has to start anew begins at 0 again. Kinds that take insertions
    /// tell nothing.
    ///
    /// The function is called on the threads that build, one at a time, and is no part of the
    /// text form.
    ///
    /// ```
    /// use tamis::{BinaryFuse8, Config, Keyed};
    ///
    /// let config = Config::default().set("shards", 4).progress(|progress| {
    ///     eprintln!("{} of {} keys", progress.done, progress.total);
    /// });
    /// let filter: Keyed<BinaryFuse8> = Keyed::build(&config, 0..100_000u64)?;
    /// assert!(filter.contains(&7u64));
    /// # Ok::<(), tamis::BuildError>(())
    /// ```
    #[must_use]
    pub fn progress(mut self, watch: impl Fn(Progress) + Send + Sync + 'static) -> Config {
        self.watch = Watch(Some(Arc::new(watch)));
        self
    }

    /// Begins to count what is done of so many keys, and tells that it is nothing yet.
    pub(crate) fn tally(&self, total: u64) -> Tally<'_> {
        let tally = Tally {
            config: self,
            done: Mutex::new(0),
            total,
        };
        tally.add(0);
        tally
    }

    /// Tells whoever watches.
    fn tell(&self, progress: Progress) {
        if let Some(watch) = &self.watch.0 {
            watch(progress);
        }
    }

    /// What every builder checks first: the rate is one, a 64-bit hash can promise it, the
    /// configuration is for this kind, and it knows every parameter. Returns the number of keys
    /// to size for and the rate.
    pub(crate) fn check<F: Kind>(&self, hashes: &[u64]) -> Result<(u64, f64), BuildError> {
        self.check_for(F::INFO, hashes.len() as u64)
    }

    /// As [`check`](Self::check), for so many hashes.
    pub(crate) fn check_for(
        &self,
        kind: &'static KindInfo,
        hashes: u64,
    ) -> Result<(u64, f64), BuildError> {
        if let Some(named) = &self.kind
            && named != kind.name
        {
            return Err(BuildErrorKind::OtherKind {
                named: named.clone(),
                built: kind.name,
            }
            .into());
        }
        for (name, value) in &self.params {
            if value.contains(SEPARATORS) {
                let expected = "a value without `,`, `:` and `=`";
                return Err(BuildError::parameter(name, value, expected));
            }
            let expected = match &**name {
                "capacity" => Some("a whole number below 2^64"),
                "fpr" => Some("a number between 0 and 1"),
                _ => None,
            };
            if let Some(expected) = expected {
                return Err(BuildError::parameter(name, value, expected));
            }
            if !kind.params.iter().any(|p| p.name == name) {
                let names: Vec<_> = ["capacity", "fpr"]
                    .into_iter()
                    .chain(kind.params.iter().map(|p| p.name))
                    .collect();
                let (kind, name, known) = (kind.name, name.clone(), names.join(", "));
                return Err(BuildErrorKind::UnknownParameter { kind, name, known }.into());
            }
        }
        if !(self.fpr > 0.0 && self.fpr < 1.0) {
            return Err(BuildErrorKind::Fpr(self.fpr).into());
        }
        let keys = self.capacity.max(hashes);
        let keys_or_one = keys.max(1);
        if math::hash_is_too_short(keys_or_one, self.fpr) {
            let least = 16.0 * math::hash_floor(keys_or_one);
            return Err(BuildErrorKind::HashFloor {
                fpr: self.fpr,
                least,
            }
            .into());
        }
        Ok((keys, self.fpr))
    }

    /// The size that a kind finds for the rate. Where it finds none the rate is refused, and the
    /// lowest of three digits for which it finds one is advised: asked for as printed, it is
    /// reached.
    pub(crate) fn sized<F: Kind, S>(
        &self,
        size: impl Fn(f64) -> Option<S>,
    ) -> Result<S, BuildError> {
        if let Some(size) = size(self.fpr) {
            return Ok(size);
        }
        // 1.00e-19, below what a hash can promise, to 0.999; a quotient of whole numbers is
        // rounded as their text is.
        let rate = |i: u32| f64::from(100 + i % 900) / 10f64.powi(21 - (i / 900) as i32);
        let (mut low, mut high) = (0, 19 * 900 - 1);
        // Above 0.999 a filter is refused for being too small for its keys, and nothing higher
        // does.
        while high - low > 1 && self.fpr < rate(high) {
            let middle = (low + high) / 2;
            if rate(middle) > self.fpr && size(rate(middle)).is_some() {
                high = middle;
            } else {
                low = middle;
            }
        }
        Err(BuildErrorKind::Unreachable {
            kind: F::INFO.name,
            fpr: self.fpr,
            least: rate(high),
        }
        .into())
    }

    /// The parameter `bits`, within limits: what the rate needs where it is left to the kind, and
    /// never less. `needed` is `None`, or above the limits, where no width within them has the
    /// rate; `least` is the rate of the greatest.
    pub(crate) fn bits<F: Kind>(
        &self,
        limits: RangeInclusive<u64>,
        needed: Option<u32>,
        least: f64,
    ) -> Result<u32, BuildError> {
        let fpr = self.fpr;
        let (fewest, most) = (*limits.start() as u32, *limits.end() as u32);
        let needed = needed.filter(|&bits| bits <= most);
        let needed = needed.ok_or(BuildErrorKind::Unreachable {
            kind: F::INFO.name,
            fpr,
            least,
        })?;
        let needed = needed.max(fewest);
        let expected = format!("a whole number from {fewest} to {most}");
        let bits = self.param::<u32>("bits", &expected)?.unwrap_or(needed);
        if !(fewest..=most).contains(&bits) {
            return Err(BuildError::parameter("bits", bits, expected));
        }
        if bits < needed {
            let expected = format!("at least {needed} for a rate of {fpr}");
            return Err(BuildError::parameter("bits", bits, expected));
        }
        Ok(bits)
    }

    /// The value of one of the kind's own parameters, or `None` where it is left to the kind.
    pub(crate) fn param<T: FromStr>(
        &self,
        name: &str,
        expected: &str,
    ) -> Result<Option<T>, BuildError> {
        let Some((_, text)) = self.params.iter().find(|(known, _)| known == name) else {
            return Ok(None);
        };
        // What `T` itself does not read may be a number as people write it.
        let count = || number::count(text)?.to_string().parse().ok();
        let value = text.parse().ok().or_else(count);
        let refused = || BuildError::parameter(name, text, expected);
        value.map(Some).ok_or_else(refused)
    }
}

impl Default for Config {
    /// Room for as many keys as are given, at 1 % false positives.
    fn default() -> Config {
        Config {
            kind: None,
            capacity: 0,
            fpr: Config::DEFAULT_FPR,
            threads: 1,
            watch: Watch::default(),
            params: Vec::new(),
        }
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kind) = &self.kind {
            write!(f, "{kind}:")?;
        }
        write!(f, "capacity={},fpr={}", self.capacity, self.fpr)?;
        // What would be read as something else is refused by builders, and so is this.
        let plain = |text: &str| text.replace(SEPARATORS, "?");
        self.params
            .iter()
            .try_for_each(|(name, value)| write!(f, ",{}={}", plain(name), plain(value)))
    }
}

impl FromStr for Config {
    type Err = BuildError;

    fn from_str(text: &str) -> Result<Config, BuildError> {
        let (kind, params) = match text.split_once(':') {
            Some((kind, params)) => (Some(kind), params),
            None if text.contains('=') || text.is_empty() => (None, text),
            None => (Some(text), ""),
        };
        let mut config = Config::default();
        if let Some(kind) = kind {
            config = config.kind(kind.trim());
        }
        for pair in params.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let Some((name, value)) = pair.split_once('=').map(|(n, v)| (n.trim(), v.trim()))
            else {
                return Err(BuildErrorKind::Syntax(format!("`{pair}` has no value")).into());
            };
            if name.contains(SEPARATORS) || value.contains(SEPARATORS) {
                let why = format!("`{pair}` has more than one `=`, or a `:`");
                return Err(BuildErrorKind::Syntax(why).into());
            }
            config = match name {
                "" => return Err(BuildErrorKind::Syntax(format!("`{pair}` has no name")).into()),
                "capacity" => config.capacity(number::count(value).ok_or_else(|| {
                    let what = "a whole number below 2^64, such as 1000000, 1e6 or 10M";
                    BuildError::parameter(name, value, what)
                })?),
                "fpr" => config.fpr(number::share(value).ok_or_else(|| {
                    let what = "a number between 0 and 1, such as 0.01, 1%, 1/256 or 2^-8";
                    BuildError::parameter(name, value, what)
                })?),
                _ => config.set(name, value),
            };
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_would_be_read_otherwise_is_no_configuration() {
        for text in ["k==", "k=1=2", "bloom:k=1:2", "a=b=c"] {
            let error = text.parse::<Config>().unwrap_err().to_string();
            assert!(error.contains("more than one `=`"), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_set_later_counts() {
        let config = Config::new(10).set("capacity", "x").set("capacity", 7);
        assert_eq!(
            (config.capacity, config.to_string()),
            (7, Config::new(7).to_string())
        );
        let config = Config::new(10).set("fpr", "x").fpr(0.02);
        assert_eq!(config.to_string(), Config::new(10).fpr(0.02).to_string());
        let config = Config::new(10).set("capacity", "x").capacity(7);
        assert_eq!(config.to_string(), Config::new(7).to_string());
    }

    #[test]
    fn a_parameter_cannot_smuggle_another() {
        let smuggled = Config::new(10).kind("bloom").set("k", "3,fpr=0.5");
        let told = crate::kind("bloom").unwrap().build(&smuggled, &mut []);
        let told = told.unwrap_err().to_string();
        assert!(
            told.contains("k=3,fpr=0.5") && told.contains("without"),
            "{told}"
        );
        let again: Config = smuggled.to_string().parse().unwrap();
        assert_eq!(again.fpr, Config::DEFAULT_FPR);
        assert!(
            crate::kind("bloom")
                .unwrap()
                .build(&again, &mut [])
                .is_err()
        );
        for (name, value) in [
            ("k", "a:b"),
            ("k,fpr", "1"),
            ("k=1,k", "1"),
            ("fpr", "high"),
        ] {
            let config = Config::new(10).kind("bloom").set(name, value);
            let built = crate::kind("bloom").unwrap().build(&config, &mut []);
            assert!(built.is_err(), "{name} {value}");
            let again: Config = config.to_string().parse().unwrap_or(config.clone());
            assert_eq!(again.fpr, Config::DEFAULT_FPR, "{name} {value}");
        }
        let config = Config::default().set("fpr", 0.5).set("capacity", 7);
        assert_eq!(config, Config::new(7).fpr(0.5));
    }

    #[test]
    fn text_and_configuration_are_two_forms_of_one_thing() {
        let config = Config::new(5).kind("cuckoo").fpr(0.25).set("bits", 9);
        assert_eq!(config.to_string(), "cuckoo:capacity=5,fpr=0.25,bits=9");
        assert_eq!(config.to_string().parse::<Config>().unwrap(), config);
        assert_eq!(
            "cuckoo".parse::<Config>().unwrap().kind.as_deref(),
            Some("cuckoo")
        );
        assert_eq!("".parse::<Config>().unwrap(), Config::default());
        assert_eq!(
            " cuckoo : bits = 9 , fpr=0.5,"
                .parse::<Config>()
                .unwrap()
                .fpr,
            0.5
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, at_fault) in [
            ("cuckoo:bits", "`bits` has no value"),
            ("cuckoo:=9", "has no name"),
            ("capacity=-1", "capacity=-1"),
            ("capacity=18446744073709551616", "capacity"),
            ("fpr=few", "fpr=few"),
            ("fpr=NaN", "fpr=NaN"),
        ] {
            let message = text.parse::<Config>().unwrap_err().to_string();
            assert!(message.contains(at_fault), "{text}: {message}");
        }
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        let config: Config = "capacity=10M,fpr=1/256,bits=1e1".parse().unwrap();
        assert_eq!((config.capacity, config.fpr), (10_000_000, 1.0 / 256.0));
        assert_eq!(config.param("bits", "").unwrap(), Some(10u32));
        let set = Config::default().set("capacity", "1_000").set("fpr", "1%");
        assert_eq!((set.capacity, set.fpr), (1000, 0.01));
        assert!(Config::default().set("fpr", f64::NAN).fpr.is_nan());
    }

    #[test]
    fn bits_are_what_the_rate_needs_or_more() {
        let config = Config::new(9).fpr(0.25);
        let bits = |config: &Config, needed| config.bits::<crate::Cuckoo>(4..=32, needed, 0.5);
        for (needed, got) in [(1, 4), (4, 4), (9, 9), (32, 32)] {
            assert_eq!(bits(&config, Some(needed)), Ok(got));
        }
        assert_eq!(bits(&config.clone().set("bits", 32), Some(9)), Ok(32));
        for (asked, needed, at_fault) in [
            ("3", 1, "from 4 to 32"),
            ("33", 1, "from 4 to 32"),
            ("few", 1, "from 4 to 32"),
            ("8", 9, "at least 9 for a rate of 0.25"),
        ] {
            let error = bits(&config.clone().set("bits", asked), Some(needed)).unwrap_err();
            assert!(error.to_string().contains(at_fault), "{asked}: {error}");
        }
        for needed in [None, Some(33)] {
            let error = bits(&config, needed).unwrap_err();
            assert!(error.to_string().contains("its lowest is 5e-1"), "{error}");
        }
    }

    #[test]
    fn a_later_value_replaces_an_earlier_one() {
        let config: Config = "bits=8,bits=9".parse().unwrap();
        assert_eq!(config.param::<u32>("bits", "").unwrap(), Some(9));
    }
}
