//! `tamis compare`: the lines of one file, of the other, and of both, in any order.

use crate::ExitCode;
use std::collections::TryReserveError;
use std::path::PathBuf;

use serde_json::{Value, json};
use tamis::{AnyFilter, Hashed, Hashing, Keyed};

use crate::failure::Failure;
use crate::input::{
    AskedArgs, Batch, Files, InputArgs, Purpose, Reader, Source, content, unmarked,
};
use crate::secret::{self, SecretArgs};
use crate::{clock, output, units};

/// Print the lines only in the first file, only in the second, and in both, as `comm` does, of
/// files in any order
///
/// Three columns, a tab before the second and two before the third; -1, -2 and -3 leave columns
/// out, so that -12 prints what both files have and -23 what only the first has. Lines come in
/// the order of the first file, and then those of the second that the first lacks, in its order.
/// A line that its file repeats is printed as often as it is there: what counts is whether the
/// other file has it, not how often. A CSV header stands above the lines of its file; where both
/// files have the same, once. With -0, -f, --json-key or --column records are compared by
/// their keys, as for `tamis check`; those without a key, such as empty lines, count as equal. One
/// that cannot be read, such as a word with --int, is an error.
///
/// Each file is read once. Of the second, 9 bytes a line are held, 17 with --exact; where its own
/// lines are to be printed, their text and 12 or 20 bytes a line beside. So give the smaller file
/// second, and -2 if its column is not wanted.
///
/// Lines are compared by 64 bits of their hashes, under a seed of this run: of two files of 10⁷
/// lines, one line is put into a wrong column in 180 000 runs. --exact takes 128 bits, half of
/// them under a secret of this run, so that nobody can write lines that are taken for one another.
///
/// One of the two may be a filter file: its lines cannot be printed (so -1 or -2 is needed), and
/// the third column errs at its rate. That takes the memory of the filter alone. A line that cannot
/// be read is in no filter. Of two filters, `tamis diff` estimates the sizes.
///
/// Exit code 0 if some line was printed or counted, 1 if none was: `tamis compare -3 A B` tells
/// whether both have the same lines.
#[derive(clap::Args)]
#[command(
    visible_alias = "comm",
    before_help = "Examples:
  tamis compare monday.txt tuesday.txt            what came, what went, what stayed
  tamis compare -12 --exact a.txt b.txt           the lines that both have
  tamis compare -23 all.csv.gz done.csv -f id     the records still to be done
  tamis compare -c a.txt b.txt                    how many of each
  find . -type f | tamis compare -3 - wanted.txt  what is missing, and what is too much
  tamis compare -2 visits.txt blocklist.tamis     each visit, those on the list set apart"
)]
pub(crate) struct Args {
    /// A file of lines, or a filter file; - for standard input
    first: PathBuf,

    /// Another, which is held in memory
    second: PathBuf,

    /// Leave out the lines that only the first has
    #[arg(short = '1')]
    no_first: bool,

    /// Leave out the lines that only the second has
    #[arg(short = '2')]
    no_second: bool,

    /// Leave out the lines that both have
    #[arg(short = '3')]
    no_both: bool,

    /// Compare lines by 128 bits of their hashes, half of them secret: exact, in twice the memory
    #[arg(long)]
    exact: bool,

    /// Print only how many lines each column has
    #[arg(short, long)]
    count: bool,

    /// What stands before the second and the third column in place of tabs
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "\t",
        hide_default_value = true
    )]
    output_delimiter: String,

    /// The most memory that the second file may take; beyond it nothing is printed
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    max_memory: Option<u64>,

    #[command(flatten)]
    secret: SecretArgs,

    /// Print only how many lines there are, as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    input: AskedArgs,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let paths = [args.first.clone(), args.second.clone()];
    let files = Files::new(&paths)?;
    let (mut first, mut second) = (files.open(0)?, files.open(1)?);
    match (first.is_filter()?, second.is_filter()?) {
        (false, false) => {
            one_key_each(&args.input.given)?;
            match args.exact {
                true => Lines::<u128>::compare(args, first, second),
                false => Lines::<u64>::compare(args, first, second),
            }
        }
        (false, true) => with_filter(args, first, second, [Column::First, Column::Second]),
        (true, false) => with_filter(args, second, first, [Column::Second, Column::First]),
        (true, true) => {
            let why = "both are filters, which do not list their keys; `tamis diff` estimates what \
                       two have in common";
            Err(Failure::usage(first.name, why))
        }
    }
}

/// Refuses records that have many keys.
fn one_key_each(input: &InputArgs) -> Result<(), Failure> {
    if input.many_keys() {
        let why = "a sequence has many keys, and no one place; write a k-mer in each line";
        return Err(Failure::usage("--kmer", why));
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Column {
    First,
    Second,
    Both,
}

/// What is printed, and how many lines are in each column.
struct Table<'a> {
    args: &'a Args,
    before: [Vec<u8>; 3],
    out: output::Records,
    /// What stands above the first file's lines, without its end.
    header: Vec<u8>,
    counts: [u64; 3],
}

impl Table<'_> {
    fn new(args: &Args) -> Table<'_> {
        let shown = [args.no_first, args.no_second, args.no_both].map(|no| usize::from(!no));
        let before = [0, shown[0], shown[0] + shown[1]];
        Table {
            args,
            before: before.map(|columns| args.output_delimiter.repeat(columns).into_bytes()),
            out: output::Records::new(args.prints(), args.input.given.end()),
            header: Vec::new(),
            counts: [0; 3],
        }
    }

    /// A header without what need not be the same in two files of the same fields.
    fn bare<'h>(&self, header: &'h [u8]) -> &'h [u8] {
        unmarked(content(header, self.args.input.given.end()))
    }

    /// A line of a column.
    fn put(&mut self, column: Column, record: &[u8]) {
        self.counts[column as usize] += 1;
        if self.args.shows(column) {
            self.out.text(&self.before[column as usize]);
            self.out.record(record);
        }
    }

    /// Reads a file to its end, and puts each line into the column of both or its own.
    fn read(
        &mut self,
        mut reader: Reader,
        own: Column,
        other: &mut impl Other,
    ) -> Result<(), Failure> {
        let mut found = Vec::new();
        while let Some(batch) = reader.next_batch()? {
            found.resize(batch.hashes.len(), false);
            other.look_up(&batch, &mut found)?;
            if self.args.shows(own) || self.args.shows(Column::Both) {
                self.out.header(batch.header());
                self.header.extend_from_slice(self.bare(batch.header()));
            }
            for (record, keys) in batch.records() {
                let in_both = match keys.is_empty() {
                    true => other.has_keyless(),
                    false => found[keys.start],
                };
                self.put(if in_both { Column::Both } else { own }, record);
            }
            self.out.write()?;
        }
        reader.warn();
        Ok(())
    }

    /// Tells the numbers, if they are wanted; `unknown` is the column of a filter.
    fn finish(
        mut self,
        unknown: Option<Column>,
        names: [&[u8]; 2],
        key_form: &Value,
        fpr: f64,
    ) -> Result<ExitCode, Failure> {
        self.out.write()?;
        let args = self.args;
        let columns = [Column::First, Column::Second, Column::Both];
        let count = |column: Column| self.counts[column as usize];
        if args.json {
            let known = |column| (unknown != Some(column)).then(|| count(column));
            output::json(&json!({
                "only_first": known(Column::First),
                "only_second": known(Column::Second),
                "both": count(Column::Both),
                "exact": args.exact,
                "key_form": key_form,
                "fpr": fpr,
            }))?;
        } else if args.count {
            let shown: Vec<Column> = columns.into_iter().filter(|c| args.shows(*c)).collect();
            let mut text = Vec::new();
            for &column in &shown {
                text.extend_from_slice(count(column).to_string().as_bytes());
                if shown.len() > 1 {
                    text.extend(match column {
                        Column::Both => b"\tin both".to_vec(),
                        column => [b"\tonly in ", names[column as usize]].concat(),
                    });
                }
                text.push(b'\n');
            }
            output::write(&text)?;
        }
        let some = columns.into_iter().any(|c| args.shows(c) && count(c) > 0);
        Ok(ExitCode::from(u8::from(!some)))
    }
}

impl Args {
    fn shows(&self, column: Column) -> bool {
        !match column {
            Column::First => self.no_first,
            Column::Second => self.no_second,
            Column::Both => self.no_both,
        }
    }

    /// Whether lines are printed, and not only counted.
    fn prints(&self) -> bool {
        !(self.count || self.json)
    }
}

/// What the lines of a file are looked up in.
trait Other {
    fn look_up(&mut self, batch: &Batch<'_>, found: &mut [bool]) -> Result<(), Failure>;
    /// Whether it has a line without a key.
    fn has_keyless(&mut self) -> bool;
}

impl Other for Keyed<AnyFilter> {
    fn look_up(&mut self, batch: &Batch<'_>, found: &mut [bool]) -> Result<(), Failure> {
        // Input may come slowly.
        clock::advance(self)?;
        self.contains_batch(batch.hashes.iter().copied().map(Hashed), found);
        Ok(())
    }

    fn has_keyless(&mut self) -> bool {
        false
    }
}

/// Compares a file of lines with a filter; `own` are the columns of the file and of the filter.
fn with_filter(
    args: &Args,
    lines: Source,
    filter: Source,
    [own, unknown]: [Column; 2],
) -> Result<ExitCode, Failure> {
    let name = filter.name.clone();
    let file = lines.name_as_data();
    if args.exact {
        let why = "this is a filter, which errs at its rate; for --exact give the list of its keys";
        return Err(Failure::usage(name, why));
    }
    if args.shows(unknown) {
        let option = unknown as usize + 1;
        let why = format!(
            "this is a filter, which does not list its keys; leave them out by -{option}, or give \
             the list"
        );
        return Err(Failure::usage(name, why));
    }
    let mut filter = filter.filter(args.secret.known()?.as_ref())?;
    let input = args.input.of(&name, &filter, args.json)?;
    let input = input.of_single_kmers();
    let mut table = Table::new(args);
    let reader = input.read(lines, Purpose::lookup(*filter.hashing()))?;
    table.read(reader, own, &mut filter)?;
    // The filter's name is not told, as its column is left out.
    table.finish(Some(unknown), [&file; 2], &input.in_json(), filter.fpr())
}

/// What stands for a key: so many bits of hashes, of which the first are evenly spread.
trait Id: Copy + Ord {
    const BITS: i32;
    /// Of a record without a key.
    const KEYLESS: Self;
    fn of(batch: &Batch<'_>, key: usize) -> Self;
    fn high(self) -> u64;
}

impl Id for u64 {
    const BITS: i32 = 64;
    const KEYLESS: u64 = 0;

    fn of(batch: &Batch<'_>, key: usize) -> u64 {
        batch.hashes[key]
    }

    fn high(self) -> u64 {
        self
    }
}

impl Id for u128 {
    const BITS: i32 = 128;
    const KEYLESS: u128 = 0;

    fn of(batch: &Batch<'_>, key: usize) -> u128 {
        u128::from(batch.hashes[key]) << 64 | u128::from(batch.seconds[key])
    }

    fn high(self) -> u64 {
        (self >> 64) as u64
    }
}

/// The lines of the second file.
struct Lines<K> {
    /// Of every record, in order until they are sorted.
    ids: Vec<K>,
    /// What is printed of them: the header, the text, the length of each record, and the ids in
    /// order.
    header: Vec<u8>,
    text: Vec<u8>,
    lengths: Vec<u32>,
    in_order: Vec<K>,
    /// Where the ids start whose first bits are the index, and how many bits are no such.
    starts: Vec<usize>,
    shift: u32,
    /// A bit for each id: set at the first of equal ones once the other file has it.
    met: Vec<u64>,
}

/// Ids with the same first bits, on average.
const TOGETHER: usize = 8;

impl<K: Id> Lines<K> {
    fn compare(args: &Args, first: Source, second: Source) -> Result<ExitCode, Failure> {
        let drawn = secret::random()?;
        let seed = drawn
            .iter()
            .fold(0, |seed, &byte| seed << 8 | u64::from(byte));
        let mut purpose = Purpose::lookup(Hashing::fast(seed));
        // What cannot be read is not the same in both.
        purpose.strict = true;
        if args.exact {
            purpose.second = Some(Hashing::secret(secret::random()?));
        }
        let names = [first.name_as_data(), second.name_as_data()];
        let name = second.name.clone();
        let reader = args.input.given.read(second, purpose)?;
        let mut lines = Lines::<K>::read(args, reader, &name)?;
        let mut table = Table::new(args);
        let reader = args.input.given.read(first, purpose)?;
        table.read(reader, Column::First, &mut lines)?;
        lines.put_unmet(&mut table)?;
        let fpr = lines.ids.len() as f64 * 2f64.powi(-K::BITS);
        let form = args.input.given.in_json();
        table.finish(None, [&names[0], &names[1]], &form, fpr)
    }

    fn read(args: &Args, mut reader: Reader, name: &str) -> Result<Lines<K>, Failure> {
        let mut lines = Lines {
            ids: Vec::new(),
            header: Vec::new(),
            text: Vec::new(),
            lengths: Vec::new(),
            in_order: Vec::new(),
            starts: Vec::new(),
            shift: 0,
            met: Vec::new(),
        };
        let listed = args.prints() && args.shows(Column::Second);
        let no_memory = |e| Failure::io(name, format!("{e}; the second file is held in memory"));
        while let Some(batch) = reader.next_batch()? {
            lines.take(&batch, listed).map_err(&no_memory)?;
            let most = args.max_memory.unwrap_or(u64::MAX);
            if lines.bytes(listed) > most {
                let why = format!(
                    "it takes more than {}; give the smaller file second, leave its own lines out \
                     by -2, or make a filter of it (`tamis build --max-memory`) and compare with that",
                    units::show_bytes(most as f64)
                );
                return Err(Failure::usage(name, why));
            }
        }
        reader.warn();
        lines.index(listed).map_err(no_memory)?;
        Ok(lines)
    }

    fn take(&mut self, batch: &Batch<'_>, listed: bool) -> Result<(), TryReserveError> {
        let lengths = || batch.records().map(|(record, _)| record.len());
        self.ids.try_reserve(lengths().count())?;
        if listed {
            self.header.extend_from_slice(batch.header());
            self.text.try_reserve(lengths().sum())?;
            self.lengths.try_reserve(lengths().count())?;
        }
        for (record, keys) in batch.records() {
            self.ids.push(match keys.is_empty() {
                true => K::KEYLESS,
                false => K::of(batch, keys.start),
            });
            if listed {
                self.text.extend_from_slice(record);
                self.lengths.push(record.len() as u32);
            }
        }
        Ok(())
    }

    /// What the lines take once they are sorted.
    fn bytes(&self, listed: bool) -> u64 {
        let id = size_of::<K>() * if listed { 2 } else { 1 };
        let each = self.ids.len() * (id + 1) + self.lengths.len() * size_of::<u32>();
        (each + self.text.len()) as u64
    }

    /// Makes ids known by their first bits.
    fn index(&mut self, listed: bool) -> Result<(), TryReserveError> {
        if listed {
            self.in_order.try_reserve_exact(self.ids.len())?;
            self.in_order.extend_from_slice(&self.ids);
        }
        self.ids.sort_unstable();
        // Two parts at least, as no hash can be shifted by all its bits.
        let bits = (self.ids.len() / TOGETHER).max(2).ilog2();
        self.shift = u64::BITS - bits;
        self.starts.try_reserve_exact((1 << bits) + 1)?;
        for (at, id) in self.ids.iter().enumerate() {
            let part = (id.high() >> self.shift) as usize;
            while self.starts.len() <= part {
                self.starts.push(at);
            }
        }
        self.starts.resize((1 << bits) + 1, self.ids.len());
        self.met.try_reserve_exact(self.ids.len().div_ceil(64))?;
        self.met.resize(self.ids.len().div_ceil(64), 0);
        Ok(())
    }

    /// The place of the first of the ids that are equal to this one.
    #[inline]
    fn find(&self, id: K) -> Option<usize> {
        let part = (id.high() >> self.shift) as usize;
        let (start, end) = (self.starts[part], self.starts[part + 1]);
        let at = start + self.ids[start..end].partition_point(|&other| other < id);
        (at < end && self.ids[at] == id).then_some(at)
    }

    /// Whether this id is there; from now on the other file has it, too.
    #[inline]
    fn meet(&mut self, id: K) -> bool {
        let found = self.find(id);
        if let Some(at) = found {
            self.met[at / 64] |= 1 << (at % 64);
        }
        found.is_some()
    }

    fn is_met(&self, at: usize) -> bool {
        self.met[at / 64] >> (at % 64) & 1 == 1
    }

    /// Puts the lines that the first file has not into their column.
    fn put_unmet(&self, table: &mut Table<'_>) -> Result<(), Failure> {
        const WRITTEN_AT_A_TIME: usize = 1 << 14;
        if self.in_order.is_empty() {
            // Only their number is asked for, if anything.
            let mut met = false;
            for (at, id) in self.ids.iter().enumerate() {
                let is_first = at == 0 || self.ids[at - 1] != *id;
                met = if is_first { self.is_met(at) } else { met };
                table.counts[Column::Second as usize] += u64::from(!met);
            }
            return Ok(());
        }
        // Where another is above the first file's lines, it stands above these, in their column.
        let mut other = None;
        match table.header.is_empty() {
            true => table.out.header(&self.header),
            false => other = Some(&self.header).filter(|own| table.bare(own) != table.header),
        }
        let mut text = &self.text[..];
        let lines = self.in_order.iter().zip(&self.lengths);
        for (number, (&id, &length)) in lines.enumerate() {
            let (record, rest) = text.split_at(length as usize);
            text = rest;
            if !self.find(id).is_some_and(|at| self.is_met(at)) {
                if let Some(header) = other.take() {
                    table.out.text(&table.before[Column::Second as usize]);
                    table.out.record(header);
                }
                table.put(Column::Second, record);
            }
            if number % WRITTEN_AT_A_TIME == 0 {
                table.out.write()?;
            }
        }
        Ok(())
    }
}

impl<K: Id> Other for Lines<K> {
    fn look_up(&mut self, batch: &Batch<'_>, found: &mut [bool]) -> Result<(), Failure> {
        for (key, found) in found.iter_mut().enumerate() {
            *found = self.meet(K::of(batch, key));
        }
        Ok(())
    }

    fn has_keyless(&mut self) -> bool {
        self.meet(K::KEYLESS)
    }
}
