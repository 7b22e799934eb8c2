//! Asking a filter for a number of each key: what `count` and `get` share.

use crate::ExitCode;
use std::path::PathBuf;

use serde_json::{Value, json};
use tamis::{AnyFilter, Keyed, Unsupported};

use crate::failure::Failure;
use crate::input::{AskedArgs, Files, Purpose, Source, content};
use crate::secret::SecretArgs;
use crate::{clock, output};

/// What `count` and `get` are given.
#[derive(clap::Args)]
pub(crate) struct AskArgs {
    /// The filter file; - for standard input
    filter: PathBuf,

    /// The files of keys; - or nothing for standard input
    #[arg(value_name = "KEYS")]
    keys: Vec<PathBuf>,

    #[command(flatten)]
    secret: SecretArgs,

    /// Say nothing of how keys are read
    #[arg(short, long)]
    quiet: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: AskedArgs,
}

/// The numbers of some hashes; `None` where the filter knows none.
pub(crate) type Answers = Result<Vec<Option<u64>>, Unsupported>;

/// How a number is asked for.
pub(crate) struct Question {
    /// What the number is called, in JSON and in a header.
    pub(crate) name: &'static str,
    /// The numbers of some hashes.
    pub(crate) ask: fn(&Keyed<AnyFilter>, &[u64]) -> Answers,
    /// Whether a number tells that the key is held.
    pub(crate) held: fn(u64) -> bool,
    /// What JSON tells of the filter beside.
    pub(crate) beside: fn(&Keyed<AnyFilter>) -> Option<(&'static str, Value)>,
}

impl Question {
    /// Prints each record that has a number, and the number after a tab.
    pub(crate) fn run(&self, args: &AskArgs) -> Result<ExitCode, Failure> {
        let files = Files::new(&args.keys)?;
        let source = Source::open(Some(&args.filter))?;
        if source.is_stdin() && files.have_stdin() {
            let why = "can be one of the filter and the keys; give a file's name for the other";
            return Err(Failure::usage("standard input", why));
        }
        let name = source.name.clone();
        let mut filter = source.filter(args.secret.known()?.as_ref())?;
        // Refused before any key is read.
        (self.ask)(&filter, &[]).map_err(|e| Failure::usage(&name, e))?;

        let input = args.input.of(&name, &filter, args.quiet || args.json)?;
        let input = input.of_single_kmers();
        let purpose = Purpose::lookup(*filter.hashing());
        let end = input.end();
        let mut out = output::Records::new(!args.json, end);
        let (mut keys, mut held, mut list) = (0u64, 0u64, Vec::new());
        for number in 0..files.number() {
            let mut reader = input.read(files.open(number)?, purpose)?;
            while let Some(batch) = reader.next_batch()? {
                clock::advance(&mut filter)?;
                let numbers = (self.ask)(&filter, batch.hashes);
                let numbers = numbers.map_err(|e| Failure::usage(&name, e))?;
                if !batch.header().is_empty() {
                    out.header(&row(content(batch.header(), end), self.name, end));
                }
                for (record, hashes) in batch.records() {
                    keys += u64::from(!hashes.is_empty());
                    let Some(Some(number)) = numbers.get(hashes.clone()).and_then(<[_]>::first)
                    else {
                        continue;
                    };
                    held += u64::from((self.held)(*number));
                    let record = content(record, end);
                    if args.json {
                        let text = String::from_utf8_lossy(record);
                        list.push(json!({ "record": text, self.name: number }));
                    } else {
                        out.record(&row(record, number, end));
                    }
                }
                out.write()?;
            }
            reader.warn();
        }
        if args.json {
            let mut report = json!({
                "file": name,
                "kind": filter.kind().name,
                "fpr": filter.fpr(),
                "key_form": input.in_json(),
                "keys": keys,
                "held": held,
                "records": list,
            });
            if let Some((name, value)) = (self.beside)(&filter) {
                report[name] = value;
            }
            output::json(&report)?;
        }
        Ok(ExitCode::from(u8::from(held == 0)))
    }
}

/// A record, and something after it.
fn row(record: &[u8], more: impl std::fmt::Display, end: u8) -> Vec<u8> {
    let mut row = record.to_vec();
    row.extend_from_slice(format!("\t{more}").as_bytes());
    row.push(end);
    row
}
