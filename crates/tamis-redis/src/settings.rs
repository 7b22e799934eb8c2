//! What the server's administrator decides: `CONFIG SET bf.…`.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};

use tamis::Hashing;

use crate::server::Refusal;

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Count,
    /// Perhaps as `128mb`.
    Bytes,
    /// As `yes` or `no`.
    Switch,
}

/// A whole number.
#[derive(Debug)]
pub(crate) struct Number {
    pub(crate) name: &'static str,
    pub(crate) default: i64,
    pub(crate) range: (i64, i64),
    pub(crate) form: Form,
    value: AtomicI64,
}

impl Number {
    const fn switch(name: &'static str, default: bool) -> Number {
        Number {
            form: Form::Switch,
            ..Number::new(name, default as i64, (0, 1))
        }
    }

    const fn new(name: &'static str, default: i64, range: (i64, i64)) -> Number {
        Number {
            name,
            default,
            range,
            form: Form::Count,
            value: AtomicI64::new(default),
        }
    }

    pub(crate) fn get(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, value: i64) {
        self.value.store(value, Ordering::Relaxed);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.get() != 0
    }
}

/// Keys of a Bloom filter that is made by its first `BF.ADD`.
pub(crate) static CAPACITY: Number = Number::new("bloom-capacity", 100, (1, 1 << 40));
/// How many times the keys of a slice the next one has; 0 for filters that do not grow.
pub(crate) static EXPANSION: Number = Number::new("bloom-expansion", 2, (0, 32768));
/// The most bytes of one filter; 0 for no limit.
pub(crate) static MEMORY: Number = Number {
    form: Form::Bytes,
    ..Number::new("bloom-memory-usage-limit", 0, (0, i64::MAX))
};
/// Whether keys are hashed under a secret; without, the same filters come out on every server.
pub(crate) static RANDOM: Number = Number::switch("bloom-use-random-seed", true);
/// Whether active defragmentation may move filters.
pub(crate) static DEFRAG: Number = Number::switch("bloom-defrag-enabled", true);
/// Keys of a cuckoo filter that is made by its first `CF.ADD`.
pub(crate) static CUCKOO_CAPACITY: Number = Number::new("cuckoo-capacity", 1024, (1, 1 << 40));
/// What `CF.INFO` tells where `CF.RESERVE` does not say; see docs/REDIS.md.
pub(crate) static BUCKET_SIZE: Number = Number::new("cuckoo-bucket-size", 2, (1, 255));
/// As above.
pub(crate) static ITERATIONS: Number = Number::new("cuckoo-max-iterations", 20, (1, 65535));
/// 0 for cuckoo filters that do not grow.
pub(crate) static CUCKOO_EXPANSION: Number = Number::new("cuckoo-expansion", 1, (0, 32768));

pub(crate) static NUMBERS: [&Number; 9] = [
    &CAPACITY,
    &EXPANSION,
    &MEMORY,
    &RANDOM,
    &DEFRAG,
    &CUCKOO_CAPACITY,
    &BUCKET_SIZE,
    &ITERATIONS,
    &CUCKOO_EXPANSION,
];

/// A text with a form.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) name: &'static str,
    pub(crate) default: &'static str,
    /// Whether it is to be kept out of logs.
    pub(crate) is_secret: bool,
    check: fn(&str) -> Result<(), String>,
    /// `None` for the default.
    value: Mutex<Option<String>>,
}

impl Text {
    const fn new(
        name: &'static str,
        default: &'static str,
        check: fn(&str) -> Result<(), String>,
    ) -> Text {
        Text {
            name,
            default,
            is_secret: false,
            check,
            value: Mutex::new(None),
        }
    }

    const fn hidden(mut self) -> Text {
        self.is_secret = true;
        self
    }

    pub(crate) fn get(&self) -> String {
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        value.clone().unwrap_or_else(|| self.default.to_string())
    }

    pub(crate) fn set(&self, value: &[u8]) -> Result<(), String> {
        let text = std::str::from_utf8(value).map_err(|_| "not a text".to_string())?;
        (self.check)(text)?;
        let mut held = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Some(text.to_string());
        Ok(())
    }
}

fn is_rate(text: &str) -> Result<(), String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate < 1.0 => Ok(()),
        _ => Err(format!("`{text}` is no number between 0 and 1")),
    }
}

/// The shares of a filter's slices: `square`, or the ratio of one to the one before.
pub(crate) fn is_tightening(text: &str) -> Result<(), String> {
    match text.parse::<f64>() {
        Ok(ratio) if (0.5..=0.95).contains(&ratio) => Ok(()),
        _ if text == "square" => Ok(()),
        _ => Err(format!("`{text}` is neither `square` nor from 0.5 to 0.95")),
    }
}

fn is_secret(text: &str) -> Result<(), String> {
    if text.is_empty() || parse_secret(text.as_bytes()).is_some() {
        return Ok(());
    }
    Err("expected 32 hexadecimal digits, or nothing for a secret drawn at the start".into())
}

/// The rate of a Bloom filter that is made by its first `BF.ADD`.
pub(crate) static RATE: Text = Text::new("bloom-fp-rate", "0.01", is_rate);
/// How the rate is shared out among slices.
pub(crate) static TIGHTENING: Text = Text::new("bloom-tightening-ratio", "square", is_tightening);
/// The rate of a cuckoo filter where `CF.RESERVE` does not say.
pub(crate) static CUCKOO_RATE: Text = Text::new("cuckoo-fp-rate", "0.01", is_rate);
/// What keys are hashed under, of filters that are made from now on.
static SECRET: Text = Text::new("secret", "", is_secret).hidden();

pub(crate) static TEXTS: [&Text; 4] = [&RATE, &TIGHTENING, &CUCKOO_RATE, &SECRET];

/// A rate that a setting holds.
pub(crate) fn rate(text: &Text) -> f64 {
    text.get().parse().unwrap_or(0.01)
}

/// Reads 32 hexadecimal digits.
pub(crate) fn parse_secret(text: &[u8]) -> Option<[u8; 16]> {
    let text = std::str::from_utf8(text).ok().filter(|t| t.len() == 32)?;
    let digits = text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u128::from_str_radix(text, 16).ok().filter(|_| digits)?;
    Some(number.to_be_bytes())
}

/// How the keys of a new filter are hashed: under the server's secret, which is drawn where the
/// administrator gives none, or not under a secret at all.
///
/// # Errors
///
/// Where the system has no random numbers to give.
pub(crate) fn secret() -> Result<Secret, Refusal> {
    static DRAWN: Mutex<Option<[u8; 16]>> = Mutex::new(None);
    if !RANDOM.is_set() {
        return Ok(Secret::Seed(0));
    }
    let given = parse_secret(SECRET.get().as_bytes());
    let key = match given {
        Some(key) => key,
        None => {
            let mut drawn = DRAWN.lock().unwrap_or_else(PoisonError::into_inner);
            match *drawn {
                Some(key) => key,
                None => *drawn.insert(draw()?),
            }
        }
    };
    Ok(Secret::Key(key))
}

/// Sixteen bytes of the system's randomness.
fn draw() -> Result<[u8; 16], Refusal> {
    let mut key = [0; 16];
    getrandom::fill(&mut key)
        .map_err(|e| Refusal::from(format!("ERR no random numbers for a secret: {e}")))?;
    Ok(key)
}

/// What keys are hashed with, as a command says it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Secret {
    Seed(u64),
    Key([u8; 16]),
}

impl Secret {
    pub(crate) fn hashing(self) -> Hashing {
        match self {
            Secret::Seed(seed) => Hashing::fast(seed),
            Secret::Key(key) => Hashing::secret(key),
        }
    }

    /// The option and its value, for a command that is replicated.
    pub(crate) fn words(self) -> [String; 2] {
        match self {
            Secret::Seed(seed) => ["SEED".into(), seed.to_string()],
            Secret::Key(key) => [
                "SECRET".into(),
                format!("{:032x}", u128::from_be_bytes(key)),
            ],
        }
    }
}
