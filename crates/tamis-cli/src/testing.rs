//! A door to the readers of keys, for tests and fuzzers. Nothing in it is promised.

use std::io::Read;

use clap::Parser;
use tamis::Hashing;

use crate::input::{InputArgs, Purpose, Source};

/// Where the keys are, as the options of the command line say.
#[derive(Parser, Debug)]
#[command(no_binary_name = true)]
pub struct Options {
    #[command(flatten)]
    input: InputArgs,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Records {
    /// The text of the header and of all records.
    pub text: Vec<u8>,
    /// The hashes of each record's keys.
    pub records: Vec<Vec<u64>>,
    /// The hashes of all keys. A sequence that is not looked up has no records, but has these.
    pub all: Vec<u64>,
}

impl Options {
    /// Reads these words as the program reads its arguments.
    pub fn new(words: &[&str]) -> Result<Options, String> {
        Options::try_parse_from(words).map_err(|e| e.to_string())
    }

    /// Reads all records: to put their keys in, or to look them up.
    pub fn read(&self, bytes: impl Read + 'static, lookup: bool) -> Result<Records, String> {
        let purpose = match lookup {
            true => Purpose::lookup(Hashing::default()),
            false => Purpose::keys(Hashing::default()),
        };
        let read = || {
            let source = Source::new("input".to_string(), bytes);
            let mut reader = self.input.read(source, purpose)?;
            let mut all = Records::default();
            while let Some(batch) = reader.next_batch()? {
                all.text.extend_from_slice(batch.header());
                for (text, hashes) in batch.records() {
                    all.text.extend_from_slice(text);
                    all.records.push(batch.hashes[hashes].to_vec());
                }
                all.all.extend_from_slice(batch.hashes);
            }
            Ok(all)
        };
        read().map_err(|failure: crate::failure::Failure| format!("{failure:?}"))
    }
}
