//! The words of a command after its key.

use crate::server::{Call, Refusal};
use crate::settings::{self, Secret};

/// Words that are read one after another.
#[derive(Debug)]
pub(crate) struct Words<'c, 'a> {
    call: &'c Call<'a>,
    at: usize,
}

impl<'c, 'a> Words<'c, 'a> {
    pub(crate) fn new(call: &'c Call<'a>, from: usize) -> Words<'c, 'a> {
        Words { call, at: from }
    }

    /// The next option, in capitals; `None` at the end. One that is longer than any there is comes
    /// in part, as errors show it.
    pub(crate) fn option(&mut self) -> Option<String> {
        const MOST: usize = 32;
        if self.at >= self.call.len() {
            return None;
        }
        let word = self.call.word(self.at);
        self.at += 1;
        let shown = &word[..word.len().min(MOST)];
        Some(String::from_utf8_lossy(shown).to_ascii_uppercase())
    }

    /// The value of an option.
    pub(crate) fn value(&mut self, option: &str) -> Result<&'a [u8], Refusal> {
        if self.at >= self.call.len() {
            return Err(format!("ERR {option} needs a value").into());
        }
        self.at += 1;
        Ok(self.call.word(self.at - 1))
    }

    pub(crate) fn text(&mut self, option: &str) -> Result<&'a str, Refusal> {
        let value = self.value(option)?;
        std::str::from_utf8(value).map_err(|_| format!("ERR bad {option}").into())
    }

    pub(crate) fn number(&mut self, option: &str, most: u64) -> Result<u64, Refusal> {
        number(self.value(option)?, option, most)
    }

    pub(crate) fn rate(&mut self, option: &str) -> Result<f64, Refusal> {
        rate(self.value(option)?, option)
    }

    /// `SEED` or `SECRET`.
    pub(crate) fn secret(&mut self, option: &str) -> Result<Secret, Refusal> {
        if option == "SEED" {
            // A seed of 32 bytes is valkey-bloom's; its hash is not ours, so it is refused.
            return self.number(option, u64::MAX).map(Secret::Seed);
        }
        let secret = settings::parse_secret(self.value(option)?);
        let secret = secret.ok_or("ERR bad SECRET: expected 32 hexadecimal digits")?;
        Ok(Secret::Key(secret))
    }

    /// Where the next word is.
    pub(crate) fn position(&self) -> usize {
        self.at
    }
}

/// A whole number that is not negative.
pub(crate) fn number(word: &[u8], name: &str, most: u64) -> Result<u64, Refusal> {
    let number = std::str::from_utf8(word)
        .ok()
        .and_then(|text| text.parse().ok());
    let number = number.filter(|&number: &u64| number <= most);
    number.ok_or_else(|| format!("ERR bad {}", name.to_lowercase()).into())
}

/// A rate between 0 and 1.
pub(crate) fn rate(word: &[u8], name: &str) -> Result<f64, Refusal> {
    let rate = std::str::from_utf8(word)
        .ok()
        .and_then(|text| text.parse::<f64>().ok());
    match rate {
        Some(rate) if rate > 0.0 && rate < 1.0 => Ok(rate),
        Some(_) => Err("ERR (0 < error rate range < 1)".into()),
        None => Err(format!("ERR bad {}", name.to_lowercase()).into()),
    }
}
