//! A column of a Parquet file.
//!
//! Every value is a key: the bytes of a string or a binary, a whole number in decimal, `true` or
//! `false`; so that the same values in a CSV file are the same keys. A null is no key; each
//! element of a list is one. Dates and times are the whole numbers that they are stored as, but
//! those of 96 bits are refused, and so are fractions: which text of a number would be the key?

use std::cell::Cell;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::{Batch, Keys, Records, Source, nearest};
use crate::failure::Failure;

/// How many rows are read at a time.
const ROWS: usize = 4096;

/// The values of a column, one row group after the other.
pub(super) struct Column {
    file: SerializedFileReader<File>,
    index: usize,
    unsigned: bool,
    group: usize,
    values: Option<ColumnReader>,
    /// The values of a batch, a line each, and where each line ends.
    text: Vec<u8>,
    ends: Vec<usize>,
    keys: Keys,
}

impl Column {
    pub(super) fn open(mut source: Source, name: &str, keys: Keys) -> Result<Column, Failure> {
        if !source.peek()?.starts_with(b"PAR1") {
            return Err(Failure::io(&source.name, "this is no Parquet file"));
        }
        let file = match source.regular_path() {
            Some(path) => File::open(path),
            // It is not read from its start.
            None => spooled(&mut source),
        };
        let file = file.map_err(|e| Failure::io(&source.name, e))?;
        let file = guarded(&source.name, || SerializedFileReader::new(file))?;
        let columns = file.metadata().file_metadata().schema_descr().columns();
        let names: Vec<String> = columns.iter().map(|c| c.path().string()).collect();
        let Some(index) = names.iter().position(|known| known == name) else {
            let why = format!("no column is named `{name}`; {}", nearest(&names, name));
            return Err(Failure::usage(&source.name, why));
        };
        let (stored, meaning) = (
            columns[index].physical_type(),
            columns[index].converted_type(),
        );
        let half = columns[index].logical_type_ref() == Some(&LogicalType::Float16);
        let unfit = match stored {
            Type::INT96 => Some("times of 96 bits"),
            Type::FLOAT | Type::DOUBLE => Some("numbers with fractions"),
            _ if half || meaning == ConvertedType::DECIMAL => Some("numbers with fractions"),
            _ => None,
        };
        if let Some(unfit) = unfit {
            let why = format!("column `{name}` holds {unfit}, which are no keys");
            return Err(Failure::usage(&source.name, why));
        }
        let unsigned = matches!(
            meaning,
            ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64
        );
        Ok(Column {
            file,
            index,
            unsigned,
            group: 0,
            values: None,
            text: Vec::new(),
            ends: Vec::new(),
            keys,
        })
    }

    /// Reads some values; `false` at the end of the file.
    fn read(&mut self) -> Result<bool, ParquetError> {
        use ColumnReader as Values;
        let Some(values) = &mut self.values else {
            if self.group == self.file.num_row_groups() {
                return Ok(false);
            }
            let group = self.file.get_row_group(self.group)?;
            self.values = Some(group.get_column_reader(self.index)?);
            self.group += 1;
            return Ok(true);
        };
        let (text, ends) = (&mut self.text, &mut self.ends);
        let more = match (values, self.unsigned) {
            (Values::Int32ColumnReader(values), true) => read(values, text, ends, |value, text| {
                show(&(*value as u32), text);
            }),
            (Values::Int32ColumnReader(values), false) => read(values, text, ends, show),
            (Values::Int64ColumnReader(values), true) => read(values, text, ends, |value, text| {
                show(&(*value as u64), text);
            }),
            (Values::Int64ColumnReader(values), false) => read(values, text, ends, show),
            (Values::BoolColumnReader(values), _) => read(values, text, ends, show),
            (Values::ByteArrayColumnReader(values), _) => {
                read(values, text, ends, |value, text| {
                    text.extend_from_slice(value.data());
                })
            }
            (Values::FixedLenByteArrayColumnReader(values), _) => {
                read(values, text, ends, |value, text| {
                    text.extend_from_slice(value.data());
                })
            }
            // Refused when the column was opened.
            _ => Ok(false),
        }?;
        if !more {
            self.values = None;
        }
        Ok(true)
    }
}

/// The bytes of what is no file, or compressed, in a file that nobody else sees.
fn spooled(source: &mut Source) -> io::Result<File> {
    let mut file = tamis::nameless(&std::env::temp_dir())?;
    io::copy(source, &mut file)?;
    Ok(file)
}

thread_local! {
    /// Whether a panic of this thread is one that will be told as an error.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Reads something of a file. The library that does so panics at some that are damaged, which is
/// an error like another.
fn guarded<T>(name: &str, read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, Failure> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let told = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !GUARDED.get() {
                told(info);
            }
        }));
    });
    GUARDED.set(true);
    let read = panic::catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(false);
    match read {
        Ok(read) => read.map_err(|e| Failure::io(name, e)),
        Err(_) => Err(Failure::io(name, "this Parquet file is damaged")),
    }
}

fn show<T: Display>(value: &T, text: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = write!(text, "{value}");
}

/// Reads values of one type, and appends each as a line; `false` at the end of the row group.
fn read<T: DataType>(
    column: &mut ColumnReaderImpl<T>,
    text: &mut Vec<u8>,
    ends: &mut Vec<usize>,
    mut write: impl FnMut(&T::T, &mut Vec<u8>),
) -> Result<bool, ParquetError> {
    let (mut definition, mut repetition, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (rows, _, _) = column.read_records(
        ROWS,
        Some(&mut definition),
        Some(&mut repetition),
        &mut values,
    )?;
    for value in &values {
        write(value, text);
        text.push(b'\n');
        ends.push(text.len());
    }
    Ok(rows > 0)
}

impl Records for Column {
    fn next_batch(&mut self) -> Result<Option<Batch<'_>>, Failure> {
        self.text.clear();
        self.ends.clear();
        self.keys.clear();
        while self.ends.is_empty() {
            let name = self.keys.name.clone();
            if !guarded(&name, || self.read())? {
                return Ok(None);
            }
        }
        if u32::try_from(self.text.len()).is_err() {
            let why = format!("{} values are longer than 4 GiB", self.ends.len());
            return Err(Failure::io(&self.keys.name, why));
        }
        let mut start = 0;
        for &end in &self.ends {
            self.keys.push(&self.text[start..end - 1])?;
            self.keys.end_record(end);
            start = end;
        }
        Ok(Some(self.keys.batch(&self.text)))
    }

    fn keys(&self) -> &Keys {
        &self.keys
    }
}
