//! Which filter? Every kind of the core is asked whether it can do the work and what it takes;
//! those that can are ranked. [`Needs::all`] asks the kinds of the literature too.
//!
//! Where nothing is needed but lookups, and maybe insertions, the [usual](usual()) kind comes
//! first: that which the program builds. Nothing else here knows a kind by name. What a kind can do
//! is declared ([`KindInfo::can`]); what it takes is the size of one that is built:
//!
//! - A kind whose filter is as large empty as full is built empty for all of the keys, which
//!   touches no memory, up to 16 MiB; above that, for so many halves of them that it fits, and
//!   the size is multiplied.
//! - Any other, static or growing, is built from 131 072 keys at most, and the size is multiplied
//!   likewise. Static kinds waste a few percent less at millions of keys than there.
//!
//! Speed is the number of instructions of a lookup in a batch, and of an insertion, as
//! `docs/INSTRUCTIONS.md` has them. They do not depend on the machine or the day; but out of
//! cache the lines that are read decide, and only a measurement with your own keys tells (`tamis
//! bench`).
//!
//! # When a filter is the wrong tool
//!
//! *The Bloom paradox* (Rottenstreich, Keslassy, *The Bloom paradox: when not to use a Bloom
//! filter*, 2012): of all lookups a share p asks for members. A "yes" is then true with
//! probability p / (p + (1 − p)ε); where ε > p/(1 − p) most are false, and who believes them
//! would err less often by never asking. [`Needs::hit_rate`] is p. Where a member that is missed
//! costs more than a stranger that is let through, the bound is that many times higher
//! ([`Needs::miss_cost`]).
//!
//! Of few or short keys an exact set ([`Dictionary`](crate::Dictionary)) is as small and never
//! wrong, and where nearly all lookups are for members a filter spares nothing. [`Warning`] has the
//! list.

mod usual;

use std::fmt;

use crate::bits::mix64;
use crate::config::Config;
use crate::error::{BuildError, BuildErrorKind};
use crate::filter::Filter;
use crate::kinds::{KINDS, KindInfo, Tier};
use crate::math;

pub use usual::{Usual, usual};

/// What a filter is needed for. Made by [`Needs::new`]; set the fields that apply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Needs {
    /// How many keys.
    pub keys: u64,
    /// The false-positive rate that is acceptable with all of them in.
    pub fpr: f64,
    /// All keys are there when the filter is built, so that kinds without insertion serve too. Of
    /// no effect beside `grow` or `window`, which insert.
    pub fixed: bool,
    /// Keys leave again.
    pub remove: bool,
    /// How many copies of a key are to be told apart; 0 where nobody counts.
    pub copies: u64,
    /// Filters are united without their keys.
    pub merge: bool,
    /// Filters give up half their space without their keys.
    pub halve: bool,
    /// Each key has a value. Maps are built once, so that nothing is inserted.
    pub map: bool,
    /// The number of keys is not known in advance; `keys` is a first guess.
    pub grow: bool,
    /// Only the last `keys` insertions matter.
    pub window: bool,
    /// The most memory that it may take, in bytes.
    pub most_bytes: Option<u64>,
    /// The share of lookups that ask for members, from 0 to 1.
    pub hit_rate: Option<f64>,
    /// How many times worse it is to miss a member than to let a stranger through.
    pub miss_cost: f64,
    /// The mean length of a key in bytes.
    pub key_bytes: Option<f64>,
    /// What to rank by.
    pub prefer: Prefer,
    /// Whether kinds of the literature are considered too, and not the core alone.
    pub all: bool,
}

/// What a ranking goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Prefer {
    /// Space, weighed with speed, and with the rate where it is below the one asked for
    /// ([`Choice::balance`]); but the [usual](usual()) kind first, where that is what is asked for.
    #[default]
    Balance,
    /// Space alone.
    Space,
    /// Speed alone.
    Speed,
}

impl Needs {
    /// So many keys at this rate, inserted over time, and nothing else.
    pub fn new(keys: u64, fpr: f64) -> Needs {
        Needs {
            keys,
            fpr,
            fixed: false,
            remove: false,
            copies: 0,
            merge: false,
            halve: false,
            map: false,
            grow: false,
            window: false,
            most_bytes: None,
            hit_rate: None,
            miss_cost: 1.0,
            key_bytes: None,
            prefer: Prefer::Balance,
            all: false,
        }
    }

    fn inserts(&self) -> bool {
        !(self.fixed || self.map) || self.grow || self.window
    }

    /// What this kind lacks; `None` if it can do all that is needed.
    fn lacks(&self, kind: &KindInfo) -> Option<String> {
        let can = kind.can;
        if kind.can.window && !self.window {
            return Some("it forgets all but the last keys".into());
        }
        if self.window && !kind.can.window {
            return Some("it does not forget old keys".into());
        }
        for (needed, can, lack) in [
            (self.inserts(), can.insert, "it takes no insertions"),
            (self.remove, can.remove, "it does not remove"),
            (self.copies > 0, can.count, "it does not count"),
            (self.merge, can.merge, "it does not merge"),
            (self.halve, can.halve, "it cannot be halved"),
            (self.map, can.map, "it holds no values"),
        ] {
            if needed && !can {
                return Some(lack.into());
            }
        }
        if self.grow && !kind.can.grow {
            return Some("it does not outgrow its capacity".into());
        }
        if self.copies == 0 {
            return None;
        }
        let copies = kind.copies.max(widest(kind));
        (copies < self.copies)
            .then(|| format!("it is sure to tell only {copies} copies of a key apart"))
    }

    /// The usual kind, where it is all that is needed.
    fn usual(&self) -> Option<Usual> {
        let special = self.remove || self.copies > 0 || self.merge || self.halve || self.map;
        let plain = !(special || self.grow || self.window || self.all);
        (plain && self.prefer == Prefer::Balance).then(|| usual(self.fpr, self.fixed))
    }

    /// What a filter of this kind is built with: counters are as wide as the copies need.
    fn config(&self, kind: &KindInfo, fpr: f64) -> Config {
        let config = Config::new(self.keys).kind(kind.name).fpr(fpr);
        if self.copies == 0 || self.copies <= kind.copies {
            return config;
        }
        // The greatest value of a counter stands for more as well.
        let bits = u64::BITS - self.copies.saturating_add(1).leading_zeros();
        config.set(COUNTER_BITS, bits)
    }
}

/// The parameter that makes counters wider.
const COUNTER_BITS: &str = "counter_bits";

/// How many copies counters of 32 bits tell apart, where a kind that counts can have them.
fn widest(kind: &KindInfo) -> u64 {
    let wide = kind.params.iter().any(|param| param.name == COUNTER_BITS);
    if wide { (1 << 32) - 2 } else { 0 }
}

/// The answer to [`advise`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Advice {
    /// The kinds that can do all that is needed, the best first.
    pub choices: Vec<Choice>,
    /// The others that were considered.
    pub refused: Vec<Refused>,
    /// Why a filter may be the wrong tool, or the wish beyond reach.
    pub warnings: Vec<Warning>,
}

impl Advice {
    /// What the second choice would give in place of the first, in a sentence; `None` where there
    /// is no second.
    pub fn runner_up(&self, needs: &Needs) -> Option<String> {
        let [first, second, ..] = &self.choices[..] else {
            return None;
        };
        let against = second.against(first, needs);
        let mut told = format!(
            "the runner-up, `{}`, would have {against} `{}`",
            second.kind.name, first.kind.name
        );
        let times = second.fpr / first.fpr;
        if times.is_finite() && times > 0.0 && !(0.95..=1.05).contains(&times) {
            told += &match times > 1.0 {
                true => format!(", and err {} as often", in_times(times)),
                false => format!(", and err {} less often", in_times(1.0 / times)),
            };
        }
        if let Some(extras) = extras(second.kind, first.kind) {
            told += &format!("; it {extras}");
        }
        Some(told)
    }
}

/// A kind that can do all that is needed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Choice {
    /// The kind.
    pub kind: &'static KindInfo,
    /// What to build it with.
    pub config: Config,
    /// What it takes.
    pub bytes: f64,
    /// The same per key.
    pub bits_per_key: f64,
    /// The rate to expect with all keys in; many kinds can only have some rates, and take one
    /// below that asked for.
    pub fpr: f64,
    /// Whether the size is that of one that was built for so many keys, and not multiplied.
    pub exact: bool,
    /// Instructions of a lookup in a batch, if counted.
    pub lookup: Option<u32>,
    /// Instructions of an insertion, if counted.
    pub insert: Option<u32>,
    /// Why it stands where it does; empty outside a ranking.
    pub why: String,
}

/// A kind that cannot do what is needed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Refused {
    /// The kind.
    pub kind: &'static KindInfo,
    /// What it lacks.
    pub why: String,
}

/// Why a filter may be the wrong tool, or the wish beyond reach. Prints as a sentence.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// The Bloom paradox: most answers "yes" are false.
    Paradox {
        /// The share of false answers among those that say "yes".
        false_share: f64,
        /// The rate below which asking pays.
        needed: f64,
    },
    /// Nearly all lookups are for members, and spare nothing.
    MostlyHits {
        /// Their share.
        hit_rate: f64,
    },
    /// A 64-bit hash cannot promise this rate; the advice is for the lowest that it can.
    HashFloor {
        /// What was asked for.
        asked: f64,
        /// 16·n/2⁶⁴.
        least: f64,
    },
    /// The keys themselves take no more than the smallest filter.
    Exact {
        /// The bytes of all keys.
        keys: f64,
        /// The bytes of the smallest filter.
        filter: f64,
        /// Whether the length of keys is known; otherwise 64-bit hashes stand for them.
        known: bool,
    },
    /// So few keys that a filter gains nothing worth an error.
    Few {
        /// The bytes of all keys.
        bytes: f64,
    },
    /// No kind has the rate in that memory; the choices are the lowest rates that fit.
    Memory {
        /// The most bytes that it may take.
        most: u64,
        /// The bytes that no filter at all can do without.
        least: f64,
    },
    /// No filter of so many keys that can do this is so small, at whatever rate.
    NoRoom {
        /// The most bytes that it may take.
        most: u64,
    },
    /// No kind can do all of it.
    Nothing,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Paradox {
                false_share,
                needed,
            } => write!(
                f,
                "the Bloom paradox: {:.1} % of the answers \"yes\" will be false, as so few lookups ask for members; \
                 verify them, or take a rate below {needed:.1e}",
                100.0 * false_share
            ),
            Warning::MostlyHits { hit_rate } => write!(
                f,
                "{:.0} % of the lookups ask for members, and a filter spares only the others; ask the set itself",
                100.0 * hit_rate
            ),
            Warning::HashFloor { asked, least } if *least >= 1.0 => write!(
                f,
                "a 64-bit hash cannot promise {asked:.1e}, nor any other rate, for so many keys"
            ),
            Warning::HashFloor { asked, least } => write!(
                f,
                "a 64-bit hash cannot promise {asked:.1e} for so many keys; this is for {least:.1e}, the lowest that it can"
            ),
            Warning::Exact {
                keys,
                filter,
                known,
            } => write!(
                f,
                "{} take {keys:.0} bytes and the smallest filter {filter:.0}; an exact set is as small, and never wrong",
                if *known {
                    "the keys themselves"
                } else {
                    "64-bit hashes of the keys"
                }
            ),
            Warning::Few { bytes } => write!(
                f,
                "all keys together take about {bytes:.0} bytes, less than a page of memory; keep them in an exact set"
            ),
            Warning::Memory { most, least } => write!(
                f,
                "no kind that can do this has the rate in {most} bytes ({least:.0} are the least for any filter); \
                 these are the lowest rates that fit"
            ),
            Warning::NoRoom { most } => write!(
                f,
                "no filter that can do this holds so many keys in {most} bytes, at whatever rate; allow more"
            ),
            Warning::Nothing => write!(f, "no kind can do all of this; ask for less"),
        }
    }
}

/// Ranks the kinds of filters for a need.
///
/// ```
/// use tamis::advise::{self, Needs};
///
/// let mut needs = Needs::new(1_000_000, 0.01);
/// needs.remove = true;
/// let advice = advise::advise(&needs)?;
/// let best = &advice.choices[0];
/// assert!(best.kind.can.remove && best.fpr <= 0.01);
/// println!("{}: {:.1} bits per key; {}", best.config, best.bits_per_key, best.why);
///
/// // One lookup in a million asks for a member: then 1 % of false positives drown them.
/// needs.hit_rate = Some(1e-6);
/// assert!(matches!(advise::advise(&needs)?.warnings[0], advise::Warning::Paradox { .. }));
/// # Ok::<(), tamis::BuildError>(())
/// ```
///
/// # Errors
///
/// [`BuildError`] when a number is out of its range: the rate, the hit rate, the cost, or the
/// length of keys.
pub fn advise(needs: &Needs) -> Result<Advice, BuildError> {
    check(needs)?;
    let mut warnings = Vec::new();
    let mut fpr = needs.fpr;
    let least = 16.0 * math::hash_floor(needs.keys.max(1));
    if math::hash_is_too_short(needs.keys.max(1), fpr) {
        let asked = fpr;
        warnings.push(Warning::HashFloor { asked, least });
        fpr = least;
    }
    if let Some(hit_rate) = needs.hit_rate {
        warnings.extend(odds(hit_rate, fpr, needs.miss_cost));
    }

    let (mut choices, mut refused, mut able) = (Vec::new(), Vec::new(), Vec::new());
    let considered = |kind: &&KindInfo| needs.all || kind.tier == Tier::Core;
    for kind in KINDS.iter().filter(considered) {
        let sized = match needs.lacks(kind) {
            Some(why) => Err(why),
            None => {
                able.push(kind);
                let config = needs.config(kind, fpr);
                size(kind, &config, LARGEST_BUILD)
                    .map(|size| (config, size))
                    .map_err(|e| e.to_string())
            }
        };
        let too_large = |size: &Size| {
            needs
                .most_bytes
                .is_some_and(|most| size.bytes > most as f64)
        };
        match sized {
            Err(why) => refused.push(Refused { kind, why }),
            Ok((_, size)) if too_large(&size) => {
                let why = format!("it takes {:.0} bytes", size.bytes);
                refused.push(Refused { kind, why });
            }
            Ok((config, size)) => choices.push(Choice::new(kind, config, &size)),
        }
    }
    match needs.most_bytes {
        Some(most) if choices.is_empty() && !able.is_empty() => {
            let bits = needs.keys as f64 * math::lower_bound_bits_per_key(fpr);
            let least = bits / 8.0;
            choices = able
                .into_iter()
                .filter_map(|kind| lowest_rate(needs, kind, most))
                .collect();
            warnings.push(match choices.is_empty() {
                true => Warning::NoRoom { most },
                false => Warning::Memory { most, least },
            });
            choices.sort_by(|a, b| a.fpr.total_cmp(&b.fpr));
            refused.retain(|refused| choices.iter().all(|c| c.kind.id != refused.kind.id));
        }
        _ => rank(&mut choices, needs),
    }
    if choices.is_empty() && !matches!(warnings.last(), Some(Warning::NoRoom { .. })) {
        warnings.push(Warning::Nothing);
    }
    explain(&mut choices, needs);
    warnings.extend(exact_is_better(&choices, needs));
    Ok(Advice {
        choices,
        refused,
        warnings,
    })
}

fn check(needs: &Needs) -> Result<(), BuildError> {
    if !(needs.fpr > 0.0 && needs.fpr < 1.0) {
        return Err(BuildErrorKind::Fpr(needs.fpr).into());
    }
    let bad = |name, value: f64, expected: &str| Err(BuildError::parameter(name, value, expected));
    match (needs.hit_rate, needs.key_bytes) {
        (Some(p), _) if !(0.0..=1.0).contains(&p) => bad("hit_rate", p, "a number from 0 to 1"),
        (_, Some(len)) if !(len > 0.0 && len.is_finite()) => bad("key_bytes", len, "above 0"),
        _ if !(needs.miss_cost > 0.0 && needs.miss_cost.is_finite()) => {
            bad("miss_cost", needs.miss_cost, "above 0")
        }
        _ => Ok(()),
    }
}

/// Above this share of members among the lookups a filter spares next to nothing.
const MOSTLY: f64 = 0.9;

fn odds(hit_rate: f64, fpr: f64, miss_cost: f64) -> Option<Warning> {
    if hit_rate > MOSTLY {
        return Some(Warning::MostlyHits { hit_rate });
    }
    let needed = miss_cost * hit_rate / (1.0 - hit_rate);
    let false_yes = (1.0 - hit_rate) * fpr;
    let false_share = false_yes / (hit_rate + false_yes);
    (fpr > needed).then_some(Warning::Paradox {
        false_share,
        needed,
    })
}

/// A page of memory: a set within it is looked up in no time whatever it is.
const PAGE: f64 = 4096.0;
/// What a key takes where nobody said.
const HASH_BYTES: f64 = 8.0;

fn exact_is_better(choices: &[Choice], needs: &Needs) -> Option<Warning> {
    let smallest = choices.iter().map(|c| c.bytes).reduce(f64::min)?;
    let known = needs.key_bytes.is_some();
    let keys = needs.keys as f64 * needs.key_bytes.unwrap_or(HASH_BYTES);
    if needs.window || needs.keys == 0 {
        None
    } else if smallest >= keys {
        Some(Warning::Exact {
            keys,
            filter: smallest,
            known,
        })
    } else {
        (keys <= PAGE).then_some(Warning::Few { bytes: keys })
    }
}

impl Choice {
    /// What a filter of this kind takes for so many keys at this rate, whatever it is needed for.
    ///
    /// ```
    /// use tamis::advise::Choice;
    ///
    /// let bloom = Choice::of(tamis::kind("bloom")?, 1_000_000, 0.01)?;
    /// assert!((bloom.bits_per_key - 9.59).abs() < 0.01);
    /// # Ok::<(), tamis::BuildError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`BuildError`] where the kind cannot have that rate.
    pub fn of(kind: &'static KindInfo, keys: u64, fpr: f64) -> Result<Choice, BuildError> {
        let config = Config::new(keys).kind(kind.name).fpr(fpr);
        let size = size(kind, &config, LARGEST_BUILD)?;
        Ok(Choice::new(kind, config, &size))
    }

    fn new(kind: &'static KindInfo, config: Config, size: &Size) -> Choice {
        let [lookup, insert] = instructions(kind.name);
        Choice {
            kind,
            bytes: size.bytes,
            bits_per_key: 8.0 * size.bytes / config.capacity.max(1) as f64,
            config,
            fpr: size.fpr,
            exact: size.exact,
            lookup,
            insert,
            why: String::new(),
        }
    }

    /// What [`Prefer::Balance`] ranks by, the less the better: space, speed and rate together.
    /// `None` where the instructions were not counted.
    ///
    /// It is the bits per key, times the fifth root of the instructions, times the root of
    /// log₂(1/ε) asked for over that to expect. So twice the instructions count like 15 % more
    /// bits: a lookup that misses the caches waits for memory more than for instructions. And
    /// where a kind can only have a lower rate than was asked for, half of what that takes is
    /// well spent. At 1 % the smallest static kind and the fastest are then within a tenth of
    /// each other.
    pub fn balance(&self, needs: &Needs) -> Option<f64> {
        self.work(needs).map(|work| self.balance_of(work))
    }

    fn balance_of(&self, work: f64) -> f64 {
        // No rate is below what a hash of 64 bits can have.
        let fpr = self.fpr.max(2f64.powi(-64));
        let [asked, got] = [self.config.fpr, fpr].map(math::lower_bound_bits_per_key);
        self.bits_per_key * work.powf(0.2) * (asked / got).sqrt()
    }

    /// Its space and speed against another's, up to the other's name.
    fn against(&self, other: &Choice, needs: &Needs) -> String {
        let space = 100.0 * (self.bytes / other.bytes - 1.0);
        match (self.work(needs), other.work(needs)) {
            (Some(work), Some(than)) => {
                let times = work / than;
                format!("{space:+.0} % space and {times:.1} times the instructions of")
            }
            _ => format!("{space:+.0} % space of"),
        }
    }

    /// The instructions that its use takes: those of a lookup, and a quarter of an insertion's
    /// where keys come and go.
    fn work(&self, needs: &Needs) -> Option<f64> {
        let lookup = f64::from(self.lookup?);
        match self.insert {
            Some(insert) if needs.inserts() => Some(lookup + f64::from(insert) / 4.0),
            _ => Some(lookup),
        }
    }
}

/// The kinds' table of `docs/INSTRUCTIONS.md`; `cargo xtask instructions` writes both.
const INSTRUCTIONS: &str = include_str!("advise/instructions.md");

/// The instructions of a lookup in a batch and of an insertion.
fn instructions(name: &str) -> [Option<u32>; 2] {
    let row = INSTRUCTIONS.lines().map(|line| line.split('|'));
    let row = row.map(|cells| cells.map(|cell| cell.trim().trim_matches('`')));
    let cells = row.map(Iterator::collect::<Vec<_>>);
    let cells = cells.into_iter().find(|cells| cells.get(1) == Some(&name));
    [4, 5].map(|column| cells.as_ref()?.get(column)?.parse().ok())
}

fn rank(choices: &mut [Choice], needs: &Needs) {
    let mut known: Vec<f64> = choices.iter().filter_map(|c| c.work(needs)).collect();
    known.sort_by(f64::total_cmp);
    // A kind that was not counted yet is taken for an ordinary one.
    let ordinary = known.get(known.len() / 2).copied().unwrap_or(1.0);
    let score = |choice: &Choice| {
        let (bits, work) = (choice.bits_per_key, choice.work(needs).unwrap_or(ordinary));
        match needs.prefer {
            Prefer::Balance => (choice.balance_of(work), bits),
            Prefer::Space => (bits, work),
            Prefer::Speed => (work, bits),
        }
    };
    choices.sort_by(|a, b| {
        let (a, b) = (score(a), score(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    if let Some(usual) = needs.usual()
        && let Some(place) = choices.iter().position(|c| c.kind.name == usual.kind)
    {
        choices[..=place].rotate_right(1);
    }
}

/// Says of each choice why it stands where it does: what it is the best at, and how it differs
/// from the first.
fn explain(choices: &mut [Choice], needs: &Needs) {
    let all = choices.len();
    // The first of equals is the smallest, or the fastest.
    let least = |of: &dyn Fn(&Choice) -> f64| {
        let places = choices.iter().map(of).enumerate();
        places.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(i, _)| i)
    };
    let smallest = least(&|choice| choice.bytes);
    let fastest = least(&|choice| choice.work(needs).unwrap_or(f64::INFINITY));
    let first = choices.first().cloned();
    for (place, choice) in choices.iter_mut().enumerate() {
        let mut reasons = Vec::new();
        if all == 1 {
            reasons.push("the only one that can do this".to_string());
        }
        if all > 1 && Some(place) == smallest {
            reasons.push(format!("the smallest of the {all} that can do this"));
        }
        if all > 1 && Some(place) == fastest && choice.lookup.is_some() {
            reasons.push("the fewest instructions".to_string());
        }
        match &first {
            Some(first) if place > 0 => {
                let against = choice.against(first, needs);
                reasons.push(format!("{against} `{}`", first.kind.name));
                reasons.extend(extras(choice.kind, first.kind));
            }
            _ => {
                match needs.usual().filter(|usual| usual.kind == choice.kind.name) {
                    Some(usual) => reasons.insert(0, format!("the usual choice: {}", usual.why)),
                    None if reasons.is_empty() => {
                        reasons.push("the best of space and speed together".to_string());
                    }
                    None => {}
                }
                let least = math::lower_bound_bits_per_key(choice.fpr);
                if least.is_finite() && least > 0.0 {
                    let times = choice.bits_per_key / least;
                    let few = match needs.keys < FEW && times > 2.0 {
                        true => ", as the keys are so few",
                        false => "",
                    };
                    let times = in_times(times);
                    reasons.push(format!("{times} what its rate needs at least{few}"));
                }
            }
        }
        if choice.fpr < needs.fpr / 2.0 {
            let times = in_times(needs.fpr / choice.fpr);
            reasons.push(format!("errs {times} less often than asked"));
        }
        choice.why = reasons.join("; ");
    }
}

/// Below so many keys, what a filter takes beside them counts.
const FEW: u64 = 1000;

/// A factor above 1 for people. In a filter of few keys a rate can be anything.
fn in_times(factor: f64) -> String {
    match factor {
        ..10.0 => format!("{factor:.2} times"),
        ..1000.0 => format!("{factor:.0} times"),
        _ => "over 1000 times".to_string(),
    }
}

/// What filters of one kind can do that those of another cannot, in words.
fn extras(kind: &KindInfo, other: &KindInfo) -> Option<String> {
    let pairs = kind.can.named().into_iter().zip(other.can.named());
    let more = pairs.filter(|((_, can), (_, other))| *can && !other);
    let word = |name| match (name, kind.copies) {
        ("count", u64::MAX) => "count without limit".into(),
        ("count", copies) => format!("count to {copies}"),
        _ => String::from(name),
    };
    let more: Vec<String> = more.map(|((name, _), _)| word(name)).collect();
    (!more.is_empty()).then(|| format!("can also {}", more.join(", ")))
}

/// What a filter of so many keys takes, and the rate that it has then.
struct Size {
    bytes: f64,
    fpr: f64,
    exact: bool,
}

/// Keys of the first filter, which tells whether its kind takes all memory at once.
const SAMPLE: u64 = 1 << 14;
/// The most keys that a filter is filled with to know its size.
const LARGEST_BUILD: u64 = 1 << 17;
/// The most bytes that a filter is made with to know its size.
const LARGEST_TABLE: f64 = (16 << 20) as f64;

fn size(kind: &KindInfo, asked: &Config, largest: u64) -> Result<Size, BuildError> {
    let keys = asked.capacity;
    let config = |keys| asked.clone().capacity(keys);
    let full = |keys| kind.build(&config(keys), &mut hashes(keys));
    let empty = |keys| kind.build(&config(keys), &mut []);
    let sample = keys.clamp(1, SAMPLE);
    let filled = full(sample)?;
    let bytes = filled.size_in_bytes();
    let (built, of, fpr) = if bytes == empty(sample)?.size_in_bytes() {
        let per_key = bytes as f64 / sample as f64;
        let of = halved(keys, |keys| keys as f64 * per_key <= LARGEST_TABLE);
        (empty(of)?.size_in_bytes(), of, filled.fpr())
    } else {
        let of = halved(keys, |keys| keys <= largest);
        let filled = full(of)?;
        (filled.size_in_bytes(), of, filled.fpr())
    };
    Ok(Size {
        bytes: built as f64 * (keys.max(1) as f64 / of as f64),
        // It is made for this rate at most; that of one that was filled scatters around it.
        fpr: fpr.min(asked.fpr),
        exact: of == keys.max(1),
    })
}

/// Half of the keys, and again, until it fits. Halves, because some kinds round up to a power of
/// two.
fn halved(keys: u64, fits: impl Fn(u64) -> bool) -> u64 {
    let mut keys = keys.max(1);
    while keys > 1 && !fits(keys) {
        keys /= 2;
    }
    keys
}

fn hashes(keys: u64) -> Vec<u64> {
    (1..=keys).map(mix64).collect()
}

/// The lowest rate of this kind that fits into so much memory, by quarters of a bit.
fn lowest_rate(needs: &Needs, kind: &'static KindInfo, most: u64) -> Option<Choice> {
    let keys = needs.keys;
    let rate = |quarters: u32| (-f64::from(quarters) / 4.0).exp2();
    let fits = |quarters: u32, largest| {
        let fpr = rate(quarters);
        if math::hash_is_too_short(keys.max(1), fpr) {
            return None;
        }
        let config = needs.config(kind, fpr);
        let size = size(kind, &config, largest).ok()?;
        (size.bytes <= most as f64).then_some((config, size))
    };
    let bits = 8.0 * most as f64 / keys.max(1) as f64;
    // No filter can have more than this, and none a rate of 1.
    let (mut fitting, mut not) = (0, (4.0 * bits).min(240.0) as u32 + 1);
    while not - fitting > 1 {
        let middle = fitting + (not - fitting) / 2;
        match fits(middle, SAMPLE) {
            Some(_) => fitting = middle,
            None => not = middle,
        }
    }
    // The search was among small filters; the last word has a larger one.
    (fitting.saturating_sub(3).max(1)..=fitting)
        .rev()
        .find_map(|quarters| {
            let (config, size) = fits(quarters, LARGEST_BUILD)?;
            Some(Choice::new(kind, config, &size))
        })
}

#[cfg(test)]
mod tests;
