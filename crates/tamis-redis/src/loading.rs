//! A filter whose chunks come one after another.

use std::sync::{Arc, OnceLock};

use crate::redisbloom::{BloomChain, CuckooChain};
use crate::server::Refusal;
use crate::value::{Body, Face, Family, Head, Served, open};

/// What has come so far.
#[derive(Clone, Debug)]
pub(crate) struct Loading {
    family: Family,
    /// What came first, where the family's chunks begin with a header.
    header: Option<Vec<u8>>,
    pieces: Vec<Arc<[u8]>>,
    /// The filter of all chunks and its bytes of memory, once the thread has opened it: for this
    /// value and its copies, under whatever names they are by then.
    opened: Arc<OnceLock<(Body, isize)>>,
}

/// Where the length of a filter's file stands in it.
const FILE_LEN: std::ops::Range<usize> = 16..24;

/// The length of a filter's file by its first bytes; `None` where these are too few to tell.
///
/// # Errors
///
/// Bytes that are none of a filter's file.
pub(crate) fn file_len(start: &[u8]) -> Result<Option<u64>, Refusal> {
    let Some(len) = start.get(FILE_LEN) else {
        return Ok(None);
    };
    if !tamis::looks_like_filter(start) {
        return Err("ERR these are not the bytes of a filter's file".into());
    }
    Ok(Some(len.try_into().map_or(0, u64::from_le_bytes)))
}

impl Loading {
    /// Begins with a header: one of this module, or one of `RedisBloom`.
    ///
    /// # Errors
    ///
    /// A header that is damaged, or of another family.
    pub(crate) fn with_header(family: Family, header: &[u8]) -> Result<Loading, Refusal> {
        let loading = Loading {
            family,
            header: Some(header.to_vec()),
            pieces: Vec::new(),
            opened: Arc::default(),
        };
        loading.total()?;
        Ok(loading)
    }

    /// Begins with the file of a filter.
    pub(crate) fn of_file() -> Loading {
        Loading {
            family: Family::Tamis,
            header: None,
            pieces: Vec::new(),
            opened: Arc::default(),
        }
    }

    pub(crate) fn family(&self) -> Family {
        self.family
    }

    pub(crate) fn header(&self) -> Option<&[u8]> {
        self.header.as_deref()
    }

    pub(crate) fn received(&self) -> Vec<u8> {
        self.pieces.concat()
    }

    /// Leaves the filter to all values that began with these chunks.
    pub(crate) fn leave(self, body: Body, held: isize) {
        let _ = self.opened.set((body, held));
    }

    /// Takes the filter that was left, or a copy of it where others are to come for it.
    pub(crate) fn collect(&mut self) -> Option<(Body, isize)> {
        self.opened.get()?;
        match Arc::get_mut(&mut self.opened) {
            Some(own) => own.take(),
            None => self.opened.get().map(|(body, _)| body.copied()),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len() as u64).sum()
    }

    /// Bytes that come in all; `None` until enough have come to tell.
    pub(crate) fn total(&self) -> Result<Option<u64>, Refusal> {
        let Some(header) = &self.header else {
            let start: Vec<u8> = self
                .pieces
                .iter()
                .flat_map(|piece| piece.iter())
                .copied()
                .take(FILE_LEN.end)
                .collect();
            return file_len(&start);
        };
        if Head::is_one(header) {
            let head = Head::read(header)?;
            return match head.family() == Some(self.family) {
                true => Ok(Some(head.len)),
                false => Err("ERR received bad data: a chunk of another command".into()),
            };
        }
        match self.family {
            Family::Bloom => BloomChain::data_len(header).map(Some),
            Family::Cuckoo => CuckooChain::data_len(header).map(Some),
            Family::Tamis => Err("ERR received bad data".into()),
        }
    }

    /// Whether all has come.
    pub(crate) fn is_complete(&self) -> Result<bool, Refusal> {
        Ok(self.total()? == Some(self.len()))
    }

    /// Takes the chunk that begins at a position.
    ///
    /// # Errors
    ///
    /// One that does not follow the last, or more than was announced; nothing has changed then.
    pub(crate) fn add(&mut self, position: u64, chunk: &[u8]) -> Result<(), Refusal> {
        let len = self.len();
        if position != len {
            return Err(format!(
                "ERR received bad data: expected the chunk at {len}, got the one at {position}"
            )
            .into());
        }
        if chunk.is_empty() {
            return Err("ERR received bad data: an empty chunk".into());
        }
        self.pieces.push(chunk.into());
        let fits = self
            .total()
            .map(|total| total.is_none_or(|total| self.len() <= total));
        match fits {
            Ok(true) => Ok(()),
            other => {
                self.pieces.pop();
                other?;
                Err("ERR received bad data: more bytes than were announced".into())
            }
        }
    }

    /// The filter of all chunks.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with them.
    pub(crate) fn finish(&self) -> Result<Body, Refusal> {
        let bytes = Arc::new(self.received());
        let Some(header) = &self.header else {
            return Ok(Body::Filter(Served {
                face: Face::Plain,
                filter: Arc::new(open(bytes)?),
            }));
        };
        if Head::is_one(header) {
            return Body::decode(header, &bytes);
        }
        match self.family {
            Family::Cuckoo => CuckooChain::new(header, &bytes)
                .map(Arc::new)
                .map(Body::CuckooChain),
            _ => BloomChain::new(header, &bytes)
                .map(Arc::new)
                .map(Body::BloomChain),
        }
    }

    /// Family, length of the header, header, and what has come.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let header = self.header.as_deref().unwrap_or_default();
        let mut bytes = vec![self.family as u8];
        bytes.extend_from_slice(&(header.len() as u64).to_le_bytes());
        bytes.extend_from_slice(header);
        bytes.extend(self.pieces.iter().flat_map(|piece| piece.iter()));
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Loading, Refusal> {
        let damaged = || Refusal::from("ERR the chunks of a filter are damaged");
        let (&family, rest) = bytes.split_first().ok_or_else(damaged)?;
        let (len, rest) = rest.split_at_checked(8).ok_or_else(damaged)?;
        let len = len.try_into().map_or(u64::MAX, u64::from_le_bytes);
        let len = usize::try_from(len).map_err(|_| damaged())?;
        let (header, received) = rest.split_at_checked(len).ok_or_else(damaged)?;
        let family = [Family::Bloom, Family::Cuckoo, Family::Tamis]
            .into_iter()
            .find(|known| *known as u8 == family)
            .ok_or_else(damaged)?;
        let mut loading = match family {
            Family::Tamis if header.is_empty() => Loading::of_file(),
            Family::Tamis => return Err(damaged()),
            _ => Loading::with_header(family, header)?,
        };
        if !received.is_empty() {
            loading.add(0, received)?;
        }
        Ok(loading)
    }
}
