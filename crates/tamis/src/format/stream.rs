//! A file that is read from its first byte to its last, and never held in memory.
//!
//! Header, checksum table and footer are read when the file is opened. The data follows block by
//! block, each compared with its checksum before a byte of it is handed out.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use super::{ALIGN, BLOCK, Decoder, FOOTER, Header, Layout, u64_at, zeros};
use crate::buf::Bytes;
use crate::config::Progress;
use crate::error::DecodeError;

/// A filter's file, for reading its data in order.
pub(crate) struct Stored {
    file: File,
    pub(crate) header: Header,
    layout: Layout,
    head: Bytes,
    /// A checksum for each block of data.
    table: Vec<u8>,
}

impl Stored {
    pub(crate) fn open(mut file: File) -> Result<Stored, DecodeError> {
        let file_len = file.metadata()?.len();
        let mut head = Vec::new();
        let most = Layout::MOST_HEAD as u64;
        (&mut file).take(most).read_to_end(&mut head)?;
        let (header, layout) = Layout::read(&head, file_len)?;
        // The file is as long as its header says, so that this is a small part of it.
        let mut table = vec![0; (layout.footer() - layout.data_end) as usize];
        let mut footer = [0; FOOTER];
        file.seek(SeekFrom::Start(layout.data_end))?;
        file.read_exact(&mut table)?;
        file.read_exact(&mut footer)?;
        let sum = table.split_off(table.len() - 8);
        layout.check_table(&table, u64_at(&sum, 0))?;
        layout.check_footer(&footer)?;
        Ok(Stored {
            file,
            header,
            layout,
            head: Arc::new(head),
            table,
        })
    }

    /// The parameters, and the places of the arrays.
    pub(crate) fn decoder(&self) -> Decoder<'_> {
        self.layout.decoder(&self.head, &self.header, true)
    }

    /// How many bytes of data there are.
    pub(crate) fn data_len(&self) -> u64 {
        self.layout.data_end - self.layout.data
    }

    /// The data from its first byte on. One reader at a time: they share the file's position.
    pub(crate) fn data<'a>(&'a mut self, watch: &'a Watch<'a>) -> Result<Data<'a>, DecodeError> {
        let position = self.layout.data;
        self.file.seek(SeekFrom::Start(position))?;
        Ok(Data {
            stored: self,
            watch,
            block: Vec::new(),
            at: 0,
            number: 0,
            position,
            error: None,
        })
    }
}

/// The data of a file, on its way.
pub(crate) struct Data<'a> {
    stored: &'a mut Stored,
    watch: &'a Watch<'a>,
    /// The block that was read last, and how much of it was handed out.
    block: Vec<u8>,
    at: usize,
    /// How many blocks were read.
    number: usize,
    /// Where in the file the next byte stands.
    position: u64,
    error: Option<DecodeError>,
}

impl Data<'_> {
    /// The next bytes; `false` if they cannot be had, and then nothing after them can.
    /// [`finish`](Data::finish) tells why.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> bool {
        let mut rest = out;
        while !rest.is_empty() {
            if self.at == self.block.len() && !self.read_block() {
                return false;
            }
            let n = rest.len().min(self.block.len() - self.at);
            let (now, later) = rest.split_at_mut(n);
            now.copy_from_slice(&self.block[self.at..self.at + n]);
            self.at += n;
            self.position += n as u64;
            rest = later;
        }
        true
    }

    /// Goes on to where an array begins, over the zeros before it.
    pub(crate) fn go_to(&mut self, start: u64) -> bool {
        let mut gap = [0; ALIGN];
        let len = start.saturating_sub(self.position).min(ALIGN as u64);
        let gap = &mut gap[..len as usize];
        self.read(gap) && {
            let checked = zeros("a padding byte", gap);
            self.keep(checked)
        }
    }

    /// Whether the file is in order to its end, or why it is not.
    pub(crate) fn finish(mut self) -> Result<(), DecodeError> {
        self.go_to(self.stored.layout.data_end);
        self.error.map_or(Ok(()), Err)
    }

    fn read_block(&mut self) -> bool {
        if self.error.is_some() {
            return false;
        }
        let read = self.next_block();
        self.keep(read)
    }

    fn next_block(&mut self) -> Result<(), DecodeError> {
        let Stored {
            file,
            layout,
            table,
            ..
        } = &mut *self.stored;
        let len = (layout.data_end - self.position).min(BLOCK as u64);
        if len == 0 || !self.watch.goes_on(len) {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        self.block.resize(len as usize, 0);
        file.read_exact(&mut self.block)?;
        layout.check_block(self.number, &self.block, table)?;
        (self.number, self.at) = (self.number + 1, 0);
        Ok(())
    }

    /// Keeps the first error for the end, after which nothing is read.
    fn keep(&mut self, done: Result<(), DecodeError>) -> bool {
        let Err(e) = done else {
            return true;
        };
        (self.block, self.at) = (Vec::new(), 0);
        self.error.get_or_insert(e);
        false
    }
}

/// Counts the bytes that are read of all files, and asks whether to go on.
pub(crate) struct Watch<'a> {
    progress: Cell<Progress>,
    stop: &'a dyn Fn(Progress) -> bool,
    stopped: Cell<bool>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(stop: &'a dyn Fn(Progress) -> bool) -> Watch<'a> {
        Watch {
            progress: Cell::new(Progress { done: 0, total: 0 }),
            stop,
            stopped: Cell::new(false),
        }
    }

    /// So many bytes are to be read, more than those before.
    pub(crate) fn expect(&self, bytes: u64) {
        let Progress { done, total } = self.progress.get();
        let total = total.max(done + bytes);
        self.progress.set(Progress { done, total });
    }

    /// Whether it was told to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// So many bytes are read now, unless it is told to stop.
    fn goes_on(&self, bytes: u64) -> bool {
        let mut progress = self.progress.get();
        progress.done += bytes;
        self.progress.set(progress);
        let stopped = self.stopped.get() || (self.stop)(progress);
        self.stopped.set(stopped);
        !stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DecodeErrorKind;

    #[test]
    fn damage_is_told_with_its_place_also_beyond_what_32_bits_count() {
        let layout = Layout {
            params: 0..0,
            sections: Vec::new(),
            data: 128,
            data_end: 1 << 40,
            file_len: 1 << 41,
        };
        let number = 1 << 17;
        let table = vec![0; 8 * (number + 1)];
        let error = layout.check_block(number, b"damaged", &table).unwrap_err();
        let expected = DecodeErrorKind::Checksum {
            part: "data",
            offset: (1 << 33) + 128,
        };
        assert_eq!(format!("{:?}", error.kind()), format!("{expected:?}"));
    }
}
