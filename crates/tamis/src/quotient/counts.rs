//! Fingerprints with their counts as a list in order: read, added up, and written.

use super::Unwritten;
use super::counter::{Code, Counter};
use super::sequence::{Entries, Sink, Source, Writer};
use super::table::{BLOCK, check_used, invalid};
use crate::bits::low_mask;
use crate::error::DecodeError;

/// Fingerprints with their counts, in order, which is checked on the way.
#[derive(Clone)]
pub(super) struct Counts<S> {
    entries: Entries<S>,
    /// The symbols of the run that is being read, and where in it.
    run: Vec<u64>,
    at: usize,
    quotient: u64,
    /// Of what was read.
    sums: Sums,
    last: Option<u64>,
    /// The first fingerprint whose code is not the one that is written, or not in order.
    fault: Option<u64>,
}

/// What a filter's file says of its counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    /// Slots in use.
    pub(super) used: u64,
    /// Distinct fingerprints.
    pub(super) distinct: u64,
    /// The sum of all counts.
    pub(super) len: u64,
}

impl<S: Source> Counts<S> {
    pub(super) fn new(entries: Entries<S>) -> Counts<S> {
        Counts {
            entries,
            run: Vec::new(),
            at: 0,
            quotient: 0,
            sums: Sums::default(),
            last: None,
            fault: None,
        }
    }

    /// Reads what is left, and tells whether the table is in order and has these sums.
    pub(super) fn finish(mut self, said: Sums) -> (S, Result<(), DecodeError>) {
        while self.next().is_some() {}
        let (source, used) = self.entries.finish();
        let checked = match used.and_then(|used| check_used(used, said.used)) {
            Err(fault) => Err(invalid(fault)),
            Ok(()) => check_counts(self.fault, self.sums, said),
        };
        (source, checked)
    }
}

/// Refuses runs that are no ascending codes, and sums that are not theirs.
fn check_counts(fault: Option<u64>, sums: Sums, said: Sums) -> Result<(), DecodeError> {
    if let Some(fingerprint) = fault {
        let expected = "ascending remainders with their counts";
        return Err(DecodeError::invalid("counter", fingerprint, expected));
    }
    if sums.distinct != said.distinct {
        let expected = format!("{}, the counters", sums.distinct);
        return Err(DecodeError::invalid("distinct", said.distinct, expected));
    }
    if sums.len != said.len {
        let expected = format!("{}, the sum of all counts", sums.len);
        return Err(DecodeError::invalid("keys", said.len, expected));
    }
    Ok(())
}

impl<S: Source> Iterator for Counts<S> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let bits = self.entries.bits();
        if self.at == self.run.len() {
            self.at = 0;
            self.run.clear();
            for entry in self.entries.by_ref() {
                self.quotient = entry.quotient;
                self.run.push(entry.value);
                // Where fewer blocks are kept than a run needs, `entries` have found that.
                let is_too_long = self.run.len() as u64 / BLOCK >= S::MOST_HELD as u64;
                if entry.is_last || is_too_long {
                    break;
                }
            }
            if self.run.is_empty() {
                return None;
            }
        }
        let symbol = |i: u64| self.run[i as usize];
        let end = self.run.len() as u64;
        let counter = Counter::read(symbol, self.at as u64, end, bits);
        let fingerprint = self.quotient << bits | counter.remainder;
        let read = &self.run[self.at..self.at + counter.len as usize];
        let is_code = (counter.count, counter.len) == (1, 1)
            || read == Code::new(counter.remainder, counter.count, bits).symbols();
        let sum = self.sums.len.checked_add(counter.count);
        if !is_code || self.last >= Some(fingerprint) || sum.is_none() {
            self.fault.get_or_insert(fingerprint);
        }
        self.at += read.len();
        self.last = Some(fingerprint);
        self.sums.distinct += 1;
        self.sums.len = sum.unwrap_or(u64::MAX);
        Some((fingerprint, counter.count))
    }
}

/// Equal fingerprints of a sorted list, added up. The sum of all counts has 64 bits.
pub(super) fn added(counts: impl Iterator<Item = (u64, u64)>) -> impl Iterator<Item = (u64, u64)> {
    let mut counts = counts.peekable();
    std::iter::from_fn(move || {
        let (fingerprint, mut sum) = counts.next()?;
        while let Some((_, count)) = counts.next_if(|&(next, _)| next == fingerprint) {
            sum = sum.saturating_add(count);
        }
        Some((fingerprint, sum))
    })
}

/// The slots that a count takes.
pub(super) fn slots(fingerprint: u64, count: u64, bits: u32) -> u64 {
    let code = Code::new(fingerprint & low_mask(bits), count, bits);
    code.symbols().len() as u64
}

/// Writes these counts, which come in order.
pub(super) fn write<S: Sink>(
    writer: &mut Writer<S>,
    counts: impl Iterator<Item = (u64, u64)>,
) -> Result<(), Unwritten> {
    let (_, bits) = writer.split();
    for (fingerprint, count) in counts {
        let code = Code::new(fingerprint & low_mask(bits), count, bits);
        for &symbol in code.symbols() {
            writer.add(fingerprint >> bits, symbol)?;
        }
    }
    Ok(())
}
