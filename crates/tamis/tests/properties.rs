//! Properties that hold for any input: operations against a model, configurations as text, and
//! the decoder on bytes that no writer produced. What the decoder accepts is judged by the fuzz
//! target's own body. At the end, what an adversary who chooses keys can do, and that a secret
//! stops it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../fuzz/src/filters.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "this test uses a part of the targets"
)]
mod fuzz;
mod support;

use std::collections::{HashMap, HashSet};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tamis::testing::{math, repair_checksums};
use tamis::{
    AnyFilter, Bloom, BuildErrorKind, Config, Cuckoo, Filter, Hashing, KINDS, Keyed, KindInfo,
};

use support::{bytes, config, hash, hashes, made, must, promised};

type Any = Keyed<AnyFilter>;

/// The same cases in every run, unless `PROPTEST_RNG_SEED` or `PROPTEST_CASES` says otherwise.
fn cases(cases: u32) -> ProptestConfig {
    let given = ProptestConfig::default();
    ProptestConfig {
        cases: if std::env::var_os("PROPTEST_CASES").is_some() {
            given.cases
        } else {
            cases
        },
        rng_seed: match given.rng_seed {
            RngSeed::Random => RngSeed::Fixed(1),
            seed => seed,
        },
        failure_persistence: None,
        ..given
    }
}

/// What a program may do to a filter. Keys are numbers of a small universe, so that they meet
/// again.
#[derive(Clone, Debug)]
enum Op {
    Insert(u8),
    InsertBatch(Vec<u8>),
    Remove(u8),
    RemoveAll(u8),
    Reopen,
    Clone,
    Merge(Vec<u8>),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => any::<u8>().prop_map(Op::Insert),
        2 => vec(any::<u8>(), 0..40).prop_map(Op::InsertBatch),
        4 => any::<u8>().prop_map(Op::Remove),
        1 => any::<u8>().prop_map(Op::RemoveAll),
        1 => Just(Op::Reopen),
        1 => Just(Op::Clone),
        1 => vec(any::<u8>(), 0..20).prop_map(Op::Merge),
    ]
}

fn key(number: u8) -> u64 {
    hash(1, u64::from(number))
}

/// The filter, and the keys that it must hold.
struct Pair {
    info: &'static KindInfo,
    config: Config,
    filter: AnyFilter,
    /// Every insertion in its order, `None` where it was removed: window kinds promise the last
    /// ones.
    order: Vec<Option<u8>>,
}

impl Pair {
    fn new(info: &'static KindInfo, capacity: u64) -> Pair {
        let config = config(info, capacity);
        let filter = must(info, &config, &[]).filter().clone();
        Pair {
            info,
            config,
            filter,
            order: Vec::new(),
        }
    }

    fn inserted(&mut self, number: u8) {
        self.order.push(Some(number));
    }

    fn promised(&self) -> &[Option<u8>] {
        promised(self.info, self.config.capacity, &self.order)
    }

    fn apply(&mut self, op: &Op) {
        match op {
            Op::Insert(number) => self.insert(*number),
            Op::InsertBatch(numbers) => self.insert_batch(numbers),
            Op::Remove(number) => drop(self.remove(*number)),
            Op::RemoveAll(number) => while self.remove(*number) {},
            Op::Reopen => self.filter = Any::open(bytes(&self.filter)).unwrap().filter().clone(),
            Op::Clone => self.filter = self.filter.clone(),
            Op::Merge(numbers) => self.merge(numbers),
        }
    }

    fn insert(&mut self, number: u8) {
        let before = bytes(&self.filter);
        match self.filter.as_insert().unwrap().insert(key(number)) {
            Ok(()) => self.inserted(number),
            Err(_) => assert_eq!(bytes(&self.filter), before, "changed by a refusal"),
        }
    }

    fn insert_batch(&mut self, numbers: &[u8]) {
        let keys: Vec<u64> = numbers.iter().map(|&n| key(n)).collect();
        let result = self.filter.as_insert().unwrap().insert_batch(&keys);
        let accepted = result.map_or_else(|full| full.accepted(), |()| keys.len());
        for &number in &numbers[..accepted] {
            self.inserted(number);
        }
    }

    /// Removes only what is in: more would be against the filter's contract. Of several copies
    /// the model drops the newest: none that is older is promised for longer.
    fn remove(&mut self, number: u8) -> bool {
        let promised = self.promised();
        let first = self.order.len() - promised.len();
        let held = promised.iter().rposition(|&held| held == Some(number));
        let (Some(at), Some(remove)) = (held, self.filter.as_remove()) else {
            return false;
        };
        assert!(remove.remove(key(number)), "a member could not be removed");
        self.order[first + at] = None;
        true
    }

    fn merge(&mut self, numbers: &[u8]) {
        let keys: Vec<u64> = numbers.iter().map(|&n| key(n)).collect();
        // The same shape: built for the same configuration.
        let Ok(other) = made(self.info, &self.config, &keys) else {
            return;
        };
        let before = bytes(&self.filter);
        match self.filter.try_merge(other.filter()) {
            Ok(()) => {
                for &number in numbers {
                    self.inserted(number);
                }
            }
            Err(_) => assert_eq!(bytes(&self.filter), before, "changed by a refusal"),
        }
    }

    fn check(&self) {
        let mut model: HashMap<u8, u64> = HashMap::new();
        for &number in self.promised().iter().flatten() {
            *model.entry(number).or_default() += 1;
        }
        let held = self.order.iter().flatten().count() as u64;
        let least: u64 = model.values().sum();
        let (name, len) = (self.info.name, self.filter.len());
        // Of a key that a window was given too often not every copy is kept, nor removed.
        assert!(
            (least..=held).contains(&len) || self.info.can.window && self.filter.saturated() > 0,
            "{name}: len() is {len}, of {held} insertions {least} are promised"
        );
        for (number, copies) in model {
            assert!(self.filter.contains(key(number)), "{number} is denied");
            if let Some(count) = self.filter.as_count() {
                assert!(
                    count.count(key(number)) >= copies.min(count.count_limit()),
                    "{number} is counted too low"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn any_sequence_of_operations_agrees_with_a_multiset(
        capacity in 1u64..150,
        ops in vec(op(), 0..200),
    ) {
        for info in KINDS.iter().filter(|info| info.can.insert) {
            let mut pair = Pair::new(info, capacity);
            for op in &ops {
                pair.apply(op);
                pair.check();
            }
        }
    }

    #[test]
    fn building_from_any_hashes_holds_them(seeds in vec(any::<u64>(), 0..300), copies in 0usize..4) {
        // Few copies, and mixed: filters ask for hashes that are spread.
        let mut members: Vec<u64> = seeds.iter().map(|&seed| hash(2, seed >> 24)).collect();
        for _ in 0..copies {
            members.extend_from_within(..members.len().min(20));
        }
        let distinct: HashSet<u64> = members.iter().copied().collect();
        for info in KINDS {
            match made(info, &config(info, 0), &members) {
                Ok(filter) => {
                    let held = members.iter().all(|&hash| filter.filter().contains(hash));
                    prop_assert!(held, "{}: a member is denied", info.name);
                    let again = must(info, &config(info, 0), &members);
                    prop_assert!(filter.to_bytes() == again.to_bytes(), "{}", info.name);
                }
                // A filter that holds every copy may have no room for them; for distinct keys it
                // has.
                Err(e) => prop_assert!(
                    distinct.len() < members.len() && matches!(e.kind(), BuildErrorKind::Full(_)),
                    "{}: {}",
                    info.name,
                    e
                ),
            }
        }
    }
}

/// A word that can stand in a configuration: no comma, colon, equals sign, nor space at an end.
fn word() -> impl Strategy<Value = String> {
    "[a-z_][a-z0-9_.+-]{0,12}"
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn a_configuration_is_its_text(
        kind in proptest::option::of(word()),
        capacity in any::<u64>(),
        fpr in any::<f64>().prop_filter("a rate is a number", |f| !f.is_nan()),
        params in vec((word(), word()), 0..5),
    ) {
        let mut config = Config::new(capacity).fpr(fpr);
        if let Some(kind) = &kind {
            config = config.kind(kind);
        }
        for (name, value) in &params {
            if !["capacity", "fpr"].contains(&name.as_str()) {
                config = config.set(name, value);
            }
        }
        let read: Config = config.to_string().parse().unwrap();
        prop_assert_eq!(&read, &config);
        prop_assert_eq!(read.to_string(), config.to_string());
    }

    #[test]
    fn any_text_is_a_configuration_or_an_error(text in "\\PC{0,60}") {
        if let Ok(config) = text.parse::<Config>() {
            // What was read can be written and read again. NaN, which a builder refuses, is like
            // nothing.
            let again = config.to_string().parse::<Config>().unwrap();
            prop_assert!(again == config || config.fpr.is_nan(), "{} became {}", text, config);
            for info in KINDS {
                // Not too large a filter: only that nothing panics.
                if config.capacity < 1000 {
                    let _ = made(info, &config, &[]);
                }
            }
        }
    }
}

/// A place and what to write there.
fn edits() -> impl Strategy<Value = Vec<(usize, u8, u64)>> {
    vec((any::<usize>(), 0u8..4, any::<u64>()), 1..6)
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn arbitrary_bytes_never_make_the_decoder_panic(mut file in vec(any::<u8>(), 0..600)) {
        prop_assert!(Any::open(file.clone()).is_err());
        // With the right signature, and then with every checksum right.
        let magic = [0x89, b'T', b'M', b'S', 0x0D, 0x0A, 0x1A, 0x0A, 1, 0, 0, 0];
        if file.len() >= magic.len() {
            file[..magic.len()].copy_from_slice(&magic);
            prop_assert!(Any::open(file.clone()).is_err());
        }
        repair_checksums(&mut file);
        fuzz::try_open(&file);
    }

    #[test]
    fn forged_files_are_refused_or_behave(
        kind in 0..KINDS.len(),
        n in 0u64..60,
        edits in edits(),
        cut in proptest::option::of(any::<usize>()),
    ) {
        let info = &KINDS[kind];
        let mut file = must(info, &config(info, n), &hashes(4, n)).to_bytes();
        for (place, how, value) in edits {
            // Most of the sense is in the header: half the edits go there, on a field's border.
            let at = if how < 2 { 8 + place % 23 * 8 } else { place % file.len() };
            let width = [8, 2, 1, 4][usize::from(how)];
            let small = if value % 3 == 0 { value % 70 } else { value };
            let bytes = small.to_le_bytes();
            for (byte, new) in file.iter_mut().skip(at).zip(&bytes[..width]) {
                *byte = *new;
            }
        }
        if let Some(cut) = cut {
            file.truncate(cut % (file.len() + 1));
        }
        repair_checksums(&mut file);
        fuzz::try_open(&file);
    }
}

/// Hits among 200 000 keys that are in no filter of these tests, and how many are in order at a
/// rate.
fn strangers<F: Filter>(filter: &Keyed<F>, fpr: f64) -> (u64, u64) {
    let queries = 200_000;
    let hits = (0..queries).filter(|i| filter.contains(&(1u64 << 40 | i)));
    let (_, most) = math::binomial_interval(queries, fpr, 1e-9);
    (hits.count() as u64, most)
}

/// Whoever knows the hash inserts only keys that set new bits, and the filter errs three times as
/// often and more. Under a secret the same keys are as good as any others.
#[test]
fn a_known_hash_can_be_polluted_and_a_secret_one_cannot() {
    let (n, fpr) = (500, 0.01);
    let config = Config::new(n).fpr(fpr);
    let mut known = Keyed::<Bloom>::new(&config).unwrap();
    let mut chosen = Vec::new();
    for key in 0u64.. {
        let mut with = known.clone();
        with.insert(&key).unwrap();
        let new = with.filter().ones() - known.filter().ones();
        if new == u64::from(known.filter().k()) {
            known = with;
            chosen.push(key);
        }
        if chosen.len() as u64 == n {
            break;
        }
    }
    let (hits, _) = strangers(&known, fpr);
    assert!(hits as f64 > 3.0 * fpr * 200_000.0, "{hits}");
    let hashing = Hashing::secret([7; 16]);
    let secret = Keyed::<Bloom>::build_with(&config, hashing, chosen).unwrap();
    let (hits, most) = strangers(&secret, fpr);
    assert!(hits <= most, "{hits} hits, {most} are in order");
}

/// Whoever knows the hash finds strangers that the filter takes for members, and has members
/// removed in their names. Under a secret these strangers are found at the filter's rate, and no
/// more.
#[test]
fn a_known_hash_lets_members_be_removed_and_a_secret_one_does_not() {
    let members: Vec<u64> = (0..10_000).collect();
    let config = Config::new(10_000).fpr(0.001);
    let mut known = Keyed::<Cuckoo>::build(&config, members.iter().copied()).unwrap();
    let absent = 1u64 << 32..(1 << 32) + 1_000_000;
    let found: Vec<u64> = absent.filter(|key| known.contains(key)).collect();
    assert!(found.len() > 200, "{}", found.len());
    for key in &found {
        known.remove(key);
    }
    let lost = members.iter().filter(|key| !known.contains(*key)).count();
    assert!(lost > 100, "{lost}");

    let hashing = Hashing::secret([7; 16]);
    let secret = Keyed::<Cuckoo>::build_with(&config, hashing, members).unwrap();
    let hits = found.iter().filter(|key| secret.contains(*key)).count() as u64;
    let (_, most) = math::binomial_interval(found.len() as u64, 0.001, 1e-9);
    assert!(hits <= most, "{hits} of {}", found.len());
}
