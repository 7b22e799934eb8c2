//! Standard output, and how numbers look on it.

use std::io::{self, Write};

use serde_json::Value;

use crate::failure::Failure;

/// Writes everything to standard output at once.
pub(crate) fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(|e| Failure::stdout(&e))
}

/// As [`write()`], for what is of no use unless it arrives whole: a reader that goes away is an
/// error too.
pub(crate) fn deliver(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(|e| Failure::io("standard output", &e))
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

/// A false-positive rate for people: in percent, and as one in so many.
pub(crate) fn rate(fpr: f64) -> String {
    if fpr <= 0.0 {
        return "0".to_string();
    }
    let percent = 100.0 * fpr;
    // Three digits that say something, whatever the size.
    let decimals = (2.0 - percent.log10().floor()).clamp(0.0, 12.0) as usize;
    let shown = format!("{percent:.decimals$}");
    let shown = match shown.contains('.') {
        true => shown.trim_end_matches('0').trim_end_matches('.'),
        false => &shown,
    };
    format!("{shown} % (1 in {:.0})", 1.0 / fpr)
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
        assert_eq!(rate(2f64.powi(-32)), "0.0000000233 % (1 in 4294967296)");
        assert_eq!(rate(1.0), "100 % (1 in 1)");
    }

    #[test]
    fn no_keys_have_no_bits_per_key() {
        assert_eq!(bits_per_key(128, 0), None);
        assert_eq!(bits_per_key(1128, 1000), Some(9.02));
    }
}
