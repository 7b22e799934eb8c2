//! Standard output, and how numbers look on it.

use std::io::{self, Write};
use std::path::Path;

use serde_json::Value;

use crate::closed;
use crate::failure::Failure;

/// Writes everything to standard output at once.
pub(crate) fn write(bytes: &[u8]) -> Result<(), Failure> {
    put(bytes).map_err(|e| Failure::stdout(&e))
}

fn put(bytes: &[u8]) -> io::Result<()> {
    if closed::stdout() {
        return Err(io::Error::other("it is closed"));
    }
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

/// As [`write()`], for what is of no use unless it arrives whole: a reader that goes away is an
/// error too.
pub(crate) fn deliver(bytes: &[u8]) -> Result<(), Failure> {
    put(bytes).map_err(|e| Failure::io("standard output", &e))
}

/// Records on their way to standard output, many at a time.
pub(crate) struct Records {
    out: Vec<u8>,
    /// Whether records are printed, or only counted.
    print: bool,
    /// The byte that a record ends with.
    end: u8,
    header: bool,
}

impl Records {
    pub(crate) fn new(print: bool, end: u8) -> Records {
        Records {
            out: Vec::new(),
            print,
            end,
            header: false,
        }
    }

    /// The header of the input, if it has one: printed once, whether or not a record is.
    pub(crate) fn header(&mut self, header: &[u8]) {
        if !self.header {
            self.record(header);
            self.header = !header.is_empty();
        }
    }

    /// What stands before a record.
    pub(crate) fn text(&mut self, text: &[u8]) {
        self.record(text);
    }

    /// A record without its end, which it is given.
    pub(crate) fn whole(&mut self, content: &[u8]) {
        self.record(content);
        self.record(&[self.end]);
    }

    pub(crate) fn record(&mut self, record: &[u8]) {
        if self.print {
            self.out.extend_from_slice(record);
        }
    }

    /// Writes what there is. A last record that lacked its end gets one.
    pub(crate) fn write(&mut self) -> Result<(), Failure> {
        if self.out.last().is_some_and(|&last| last != self.end) {
            self.out.push(self.end);
        }
        let written = write(&self.out);
        self.out.clear();
        written
    }
}

/// Writes one JSON document.
pub(crate) fn json(value: &Value) -> Result<(), Failure> {
    write(format!("{value:#}\n").as_bytes())
}

/// The name of a file as data: its own bytes, which need not be text.
pub(crate) fn name(path: &Path) -> &[u8] {
    path.as_os_str().as_encoded_bytes()
}

/// So many of something: 1 key, 2 keys.
pub(crate) fn counted(number: u64, one: &str) -> String {
    format!("{number} {}", plural(number, one))
}

/// The word for so many of something.
pub(crate) fn plural(number: u64, one: &str) -> String {
    format!("{one}{}", if number == 1 { "" } else { "s" })
}

/// A false-positive rate for people: in percent, and as one in so many.
pub(crate) fn rate(fpr: f64) -> String {
    if fpr <= 0.0 {
        return "0".to_string();
    }
    match fpr > 0.1 {
        // One in two, or in three, is too coarse to tell.
        true => percent(fpr),
        false => format!("{} (1 in {})", percent(fpr), in_words(1.0 / fpr)),
    }
}

/// A rate in percent: three digits that say something, whatever the size.
pub(crate) fn percent(rate: f64) -> String {
    let percent = 100.0 * rate;
    let percent = match percent {
        ..=0.0 => "0".to_string(),
        ..1e-3 => format!("{percent:.2e}"),
        _ => {
            let decimals = (2.0 - percent.log10().floor()).clamp(0.0, 5.0) as usize;
            let shown = format!("{percent:.decimals$}");
            match shown.contains('.') {
                true => shown
                    .trim_end_matches('0')
                    .trim_end_matches('.')
                    .to_string(),
                false => shown,
            }
        }
    };
    format!("{percent} %")
}

/// A number of one or more for people: in digits, or three of them and a word.
fn in_words(number: f64) -> String {
    let words = [(1e12, "trillion"), (1e9, "billion"), (1e6, "million")];
    match words.into_iter().find(|(least, _)| number >= *least) {
        _ if number >= 1e15 => "10¹⁵ or more".to_string(),
        Some((one, word)) => {
            let value = number / one;
            let decimals = (2.0 - value.log10().floor()).clamp(0.0, 2.0) as usize;
            format!("{value:.decimals$} {word}")
        }
        None => format!("{number:.0}"),
    }
}

/// What a filter takes per key; `None` where there are none.
pub(crate) fn bits_per_key(bytes: u64, keys: u64) -> Option<f64> {
    (keys > 0).then(|| (800.0 * bytes as f64 / keys as f64).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_well_at_every_size() {
        assert_eq!(rate(0.0), "0");
        assert_eq!(rate(0.01), "1 % (1 in 100)");
        assert_eq!(rate(1.0 / 256.0), "0.391 % (1 in 256)");
        assert_eq!(rate(1e-5), "0.001 % (1 in 100000)");
        assert_eq!(rate(2f64.powi(-20)), "9.54e-5 % (1 in 1.05 million)");
        assert_eq!(rate(2f64.powi(-32)), "2.33e-8 % (1 in 4.29 billion)");
        assert_eq!(rate(1.0 / 123.4e12), "8.10e-13 % (1 in 123 trillion)");
        assert_eq!(rate(7.5e-29), "7.50e-27 % (1 in 10¹⁵ or more)");
        assert_eq!(rate(0.1), "10 % (1 in 10)");
        assert_eq!(rate(0.375), "37.5 %");
        assert_eq!(rate(1.0), "100 %");
        let percents = [0.0, 2f64.powi(-16), 0.0099, 0.5].map(percent);
        assert_eq!(percents, ["0 %", "0.00153 %", "0.99 %", "50 %"]);
    }

    #[test]
    fn one_is_one_and_any_other_number_many() {
        let told = [0, 1, 2].map(|number| counted(number, "key"));
        assert_eq!(told, ["0 keys", "1 key", "2 keys"]);
    }

    #[test]
    fn no_keys_have_no_bits_per_key() {
        assert_eq!(bits_per_key(128, 0), None);
        assert_eq!(bits_per_key(1128, 1000), Some(9.02));
    }
}
