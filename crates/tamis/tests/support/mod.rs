//! What several test programs share: hashes, filters of any kind, and their bytes.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test program uses a part of this"
)]

pub mod counting;

use std::cell::Cell;

use tamis::{AnyFilter, BuildError, BuildErrorKind, Config, Filter, Hashing, Keyed, KindInfo};

/// Hash number `i` of a stream. No hash is in two streams, so absent keys are absent for certain:
/// every step is a bijection of the pair, for `i` below 2⁴⁰.
pub fn hash(stream: u64, i: u64) -> u64 {
    mix(mix(stream << 40 | i) ^ 0x6A09_E667_F3BC_C908)
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}

/// The first `n` hashes of a stream.
pub fn hashes(stream: u64, n: u64) -> Vec<u64> {
    (0..n).map(|i| hash(stream, i)).collect()
}

/// Random numbers that are the same in every run.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 += 1;
        mix(mix(self.0).wrapping_add(0x9E37_79B9_7F4A_7C15))
    }

    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

/// A filter of this kind that holds these hashes, with the key layer that gives it bytes.
pub fn made(
    info: &KindInfo,
    config: &Config,
    hashes: &[u64],
) -> Result<Keyed<AnyFilter>, BuildError> {
    let filter = info.build(config, &mut hashes.to_vec())?;
    Keyed::from_filter(filter, Hashing::default(), config)
}

/// As [`made`], where failure is a failure of the test.
#[track_caller]
pub fn must(info: &KindInfo, config: &Config, hashes: &[u64]) -> Keyed<AnyFilter> {
    made(info, config, hashes)
        .unwrap_or_else(|e| panic!("{config} of {} hashes: {e}", hashes.len()))
}

/// A parameter of a kind and a value for it.
pub type Choice = (&'static str, u64);

thread_local! {
    static CHOICE: Cell<Option<Choice>> = const { Cell::new(None) };
}

/// Has [`asked`] choose, on this thread, for laws that are tried with a parameter.
pub fn choose(choice: Option<Choice>) {
    CHOICE.set(choice);
}

/// What was chosen on this thread.
pub fn chosen() -> Option<Choice> {
    CHOICE.get()
}

/// The configuration for so many keys, with the parameter that the law is tried with.
pub fn asked(n: u64) -> Config {
    let config = Config::new(n);
    match chosen() {
        Some((name, value)) => config.set(name, value),
        None => config,
    }
}

/// Whether the kind offers this rate for so many keys. Any other error than "not so low" is a
/// failure.
pub fn reaches(info: &KindInfo, n: u64, fpr: f64) -> bool {
    match info.build(&asked(n).fpr(fpr), &mut []) {
        Ok(_) => true,
        Err(e) if matches!(e.kind(), BuildErrorKind::Unreachable { .. }) => false,
        Err(e) => panic!("{} at {fpr} for {n} keys: {e}", info.name),
    }
}

/// A configuration at 1 %, or at the lowest of a few rates that the kind offers.
pub fn config(info: &KindInfo, n: u64) -> Config {
    let fpr = [0.01, 0.05, 0.1, 0.5]
        .into_iter()
        .find(|&fpr| reaches(info, n, fpr))
        .unwrap_or_else(|| panic!("{} offers no rate", info.name));
    asked(n).fpr(fpr)
}

/// The parts of a filter that its file holds, compared as one.
pub fn bytes(filter: &AnyFilter) -> Vec<u8> {
    Keyed::from_filter(filter.clone(), Hashing::default(), &Config::default())
        .unwrap()
        .to_bytes()
}

/// What a filter must still hold after these insertions, in this order: all of them; a window
/// kind, which forgets on purpose, the last `capacity`. The laws know of windows only here and in
/// [`assert_len`].
pub fn promised<'a, T>(info: &KindInfo, capacity: u64, inserted: &'a [T]) -> &'a [T] {
    if info.can.window {
        &inserted[inserted.len().saturating_sub(capacity as usize)..]
    } else {
        inserted
    }
}

/// A filter counts every insertion; a window kind those that it holds, which are at least the
/// promised ones.
#[track_caller]
pub fn assert_len(info: &KindInfo, capacity: u64, filter: &AnyFilter, inserted: u64, when: &str) {
    let least = if info.can.window {
        inserted.min(capacity)
    } else {
        inserted
    };
    let len = filter.len();
    assert!(
        (least..=inserted).contains(&len),
        "{when}: len() is {len} after {inserted} insertions"
    );
}

/// Whether the laws are to be brief (`TAMIS_BRIEF`), as under an emulator.
pub fn is_brief() -> bool {
    std::env::var_os("TAMIS_BRIEF").is_some()
}

/// Of some sizes, those that are tried: where the laws are brief, the small ones.
pub fn tried(sizes: impl IntoIterator<Item = u64>) -> impl Iterator<Item = u64> {
    let most = if is_brief() { 1100 } else { u64::MAX };
    sizes.into_iter().filter(move |&n| n <= most)
}

/// How often something is done: a twentieth of the times where the laws are brief.
pub fn times(usual: u64) -> u64 {
    if is_brief() { usual / 20 } else { usual }
}

/// Fails with the first hash that should be contained and is not.
#[track_caller]
pub fn assert_holds(filter: &AnyFilter, members: &[u64], when: &str) {
    if let Some(i) = members.iter().position(|&hash| !filter.contains(hash)) {
        let n = members.len();
        panic!("{when}: member {i} of {n} ({:#x}) is denied", members[i]);
    }
}

/// Hits among `n` hashes of a stream that holds no member.
pub fn hits(filter: &AnyFilter, stream: u64, n: u64) -> u64 {
    let (mut block, mut out) = ([0; 1024], [false; 1024]);
    let mut hits = 0;
    for start in (0..n).step_by(1024) {
        let len = (n - start).min(1024) as usize;
        for (i, slot) in block[..len].iter_mut().enumerate() {
            *slot = hash(stream, start + i as u64);
        }
        filter.contains_batch(&block[..len], &mut out[..len]);
        hits += out[..len].iter().filter(|&&hit| hit).count() as u64;
    }
    hits
}
