//! From the keys of the input to a filter, within the memory that there is.
//!
//! Eight bytes per key are kept until all keys are known: the set is then sorted, and its filter is the same whatever
//! the order and the repeats. Where `--max-memory` does not allow that, keys go into the filter as they come, if its
//! kind takes insertions: into one of the capacity that was given, or that a first pass over the files has counted, or
//! into one that grows.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

use tamis::{AnyFilter, Config, Filter, Hashing, Keyed};

use crate::choice;
use crate::failure::{self, Failure};
use crate::input::{Files, InputArgs, Purpose, Source};
use crate::progress::Progress;

/// What is held per key while a set is gathered, built, encoded and verified, at most. Of 10⁶ keys the program's peak
/// (`/usr/bin/time -v tamis build --threads 1`) is 41 bytes per key for `spectral_recurring`, the highest of all kinds, and
/// 30 for `binary_fuse8`; of 10⁷ keys it is 11 for that.
const BYTES_PER_KEY: u64 = 48;
/// How many hashes are kept to verify a filter whose keys were not kept.
const SAMPLE: usize = 1 << 20;

/// Reads all files, and gives the hashes of their keys to `take`, many at a time.
pub(crate) fn each_batch(
    files: &Files<'_>,
    input: &InputArgs,
    purpose: Purpose,
    progress: &Progress,
    mut take: impl FnMut(&[u64]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for number in 0..files.number() {
        read(files.open(number)?, input, purpose, |hashes, bytes| {
            progress.advance(bytes);
            take(hashes)
        })?;
    }
    Ok(())
}

/// As [`each_batch`], with several files at a time, so that the order of the keys is left to chance.
fn each_batch_in_any_order(
    files: &Files<'_>,
    input: &InputArgs,
    purpose: Purpose,
    threads: usize,
    progress: &Progress,
    mut take: impl FnMut(&[u64]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::sync_channel(2 * threads);
    thread::scope(|scope| {
        for _ in 0..threads.min(files.number()) {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    if number >= files.number() {
                        return;
                    }
                    let done = files.open(number).and_then(|source| {
                        read(source, input, purpose, |hashes, bytes| {
                            // Where nobody receives, another file has failed and said so.
                            send.send(Ok((hashes.to_vec(), bytes)))
                                .map_err(|_| Failure::Closed)
                        })
                    });
                    if let Err(failure) = done {
                        let _ = send.send(Err(failure));
                        return;
                    }
                }
            });
        }
        drop(send);
        for batch in receive {
            let (hashes, bytes) = batch?;
            progress.advance(bytes);
            take(&hashes)?;
        }
        Ok(())
    })
}

/// Reads one file. `take` is given hashes, and how many bytes of the file they took.
fn read(
    mut source: Source,
    input: &InputArgs,
    purpose: Purpose,
    mut take: impl FnMut(&[u64], u64) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if source.is_filter()? {
        let why = "this is a filter, not a list of keys";
        return Err(Failure::usage(source.name, why));
    }
    let (taken, mut told) = (source.taken(), 0);
    let mut reader = input.read(source, purpose)?;
    while let Some(batch) = reader.next_batch()? {
        let now = taken.load(Relaxed);
        take(batch.hashes, now - told)?;
        told = now;
    }
    for remark in reader.remarks() {
        failure::say(&format!("warning: {remark}"));
    }
    Ok(())
}

/// A filter, and hashes to verify it by: of all its keys, or of some where they are too many.
pub(crate) struct Gathered {
    pub(crate) filter: Keyed<AnyFilter>,
    pub(crate) hashes: Vec<u64>,
}

/// What is wanted.
pub(crate) struct Gather<'a> {
    pub(crate) files: Files<'a>,
    pub(crate) input: &'a InputArgs,
    pub(crate) config: Config,
    pub(crate) hashing: Hashing,
    /// In bytes.
    pub(crate) max_memory: Option<u64>,
    /// What to call the filter in messages.
    pub(crate) target: String,
}

/// How far a stream of keys is.
enum State {
    Collected(Vec<u64>),
    /// So many keys: the first pass only counts on.
    Counted(u64),
    Inserted(Box<Stream>),
}

impl Gather<'_> {
    /// Reads everything and builds the filter.
    pub(crate) fn run(&self, progress: &mut Progress) -> Result<Gathered, Failure> {
        let most = self
            .max_memory
            .map_or(u64::MAX, |m| m / BYTES_PER_KEY)
            .max(1);
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let (mut state, mut read) = (State::Collected(Vec::new()), 0);
        self.each_batch(progress, |batch| {
            read += batch.len() as u64;
            match &mut state {
                State::Counted(keys) => *keys += batch.len() as u64,
                State::Inserted(stream) => stream.insert(batch)?,
                State::Collected(hashes) => {
                    hashes
                        .try_reserve(batch.len())
                        .map_err(|e| Failure::io("the hashes of the keys", e))?;
                    hashes.extend_from_slice(batch);
                    if hashes.len() > most {
                        hashes.sort_unstable();
                        hashes.dedup();
                        // Unless half were repeats, sorting again and again would take too long.
                        if hashes.len() > most / 2 {
                            state = self.overflow(hashes, read)?;
                        }
                    }
                }
            }
            Ok(())
        })?;
        match state {
            State::Collected(mut hashes) => {
                progress.stage("building");
                let filter = choice::build(&self.config, self.hashing, &mut hashes)
                    .map_err(|e| Failure::build(&self.target, &e))?;
                Ok(Gathered { filter, hashes })
            }
            State::Inserted(stream) => Ok(stream.finish()),
            State::Counted(keys) => {
                let mut stream = self.stream(keys, true)?;
                *progress = Progress::over(self.files.len());
                self.each_batch(progress, |batch| stream.insert(batch))?;
                Ok(stream.finish())
            }
        }
    }

    fn each_batch(
        &self,
        progress: &Progress,
        take: impl FnMut(&[u64]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let (files, purpose) = (&self.files, Purpose::keys(self.hashing));
        let threads = self.config.get_threads();
        // Keys that are inserted as they come make the same file only if they come in the same order.
        if threads > 1 && files.number() > 1 && self.max_memory.is_none() {
            return each_batch_in_any_order(files, self.input, purpose, threads, progress, take);
        }
        each_batch(files, self.input, purpose, progress, take)
    }

    /// The keys are too many to be held: what else can be done.
    fn overflow(&self, hashes: &[u64], read: u64) -> Result<State, Failure> {
        let known = self.config.get_capacity() > 0 || self.files.are_regular();
        let kind = self.kind(known);
        if !tamis::kind(kind).is_ok_and(|kind| kind.capabilities().insert) {
            let why = format!(
                "a `{kind}` needs all its keys at once, and these are more than --max-memory has room for \
                 ({BYTES_PER_KEY} bytes per key); allow more memory, take a kind that inserts (see `tamis kinds`), or \
                 build filters of parts of the keys"
            );
            return Err(Failure::usage(&self.target, why));
        }
        if !known && !choice::is_endless(kind) {
            let why = format!(
                "more keys come than --max-memory has room for ({BYTES_PER_KEY} bytes per key), and a `{kind}` must \
                 know their number; give --capacity, give them in a file, allow more memory, or take `scalable`, which \
                 grows"
            );
            return Err(Failure::usage(&self.target, why));
        }
        if self.config.get_capacity() == 0 && self.files.are_regular() {
            return Ok(State::Counted(read));
        }
        let mut stream = self.stream(self.config.get_capacity().max(hashes.len() as u64), known)?;
        stream.insert(hashes)?;
        Ok(State::Inserted(Box::new(stream)))
    }

    fn kind(&self, number_is_known: bool) -> &str {
        let default = choice::default_kind_for_a_stream(&self.config, number_is_known);
        self.config.kind().unwrap_or(default)
    }

    /// An empty filter for so many keys, that takes them as they come.
    fn stream(&self, keys: u64, number_is_known: bool) -> Result<Stream, Failure> {
        let failed = |e| Failure::build(&self.target, &e);
        let kind = tamis::kind(self.kind(number_is_known)).map_err(failed)?;
        let config = self.config.clone().capacity(keys);
        let filter = kind.build(&config, &mut []).map_err(failed)?;
        let stream = Stream {
            filter: Keyed::from_filter(filter, self.hashing, &config).map_err(failed)?,
            inserter: Inserter::of(kind),
            sample: Sample::default(),
            // It is held twice while it is verified.
            most_bytes: self.max_memory.map_or(u64::MAX, |bytes| bytes / 2),
            target: self.target.clone(),
        };
        stream.fits()?;
        Ok(stream)
    }
}

/// A filter that takes keys as they come.
struct Stream {
    filter: Keyed<AnyFilter>,
    inserter: Inserter,
    sample: Sample,
    most_bytes: u64,
    target: String,
}

impl Stream {
    fn insert(&mut self, hashes: &[u64]) -> Result<(), Failure> {
        self.sample.take(hashes);
        self.inserter
            .insert(self.filter.filter_mut(), hashes, &self.target)?;
        self.fits()
    }

    fn fits(&self) -> Result<(), Failure> {
        let filter = self.filter.filter();
        let bytes = filter.size_in_bytes() as u64;
        if bytes <= self.most_bytes {
            return Ok(());
        }
        let why = format!(
            "a `{}` of these keys has {bytes} bytes or more, and more than half of --max-memory; allow more memory, or a \
             higher --fpr",
            filter.name()
        );
        Err(Failure::usage(&self.target, why))
    }

    fn finish(self) -> Gathered {
        Gathered {
            filter: self.filter,
            hashes: self.sample.hashes,
        }
    }
}

/// Inserts keys that may have been inserted before.
pub(crate) struct Inserter {
    /// Whether a key that is held already is left out. Not where the copies of a key count, be it for removing them or
    /// for telling their number; and not where a key that comes again stays longer.
    once: bool,
    found: Vec<bool>,
    fresh: Vec<u64>,
}

impl Inserter {
    pub(crate) fn of(kind: &tamis::KindInfo) -> Inserter {
        let can = kind.capabilities();
        Inserter {
            once: !(can.remove || can.count || kind.window),
            found: Vec::new(),
            fresh: Vec::new(),
        }
    }

    /// Inserts what is new; returns how many that are.
    pub(crate) fn insert(
        &mut self,
        filter: &mut AnyFilter,
        hashes: &[u64],
        target: &str,
    ) -> Result<u64, Failure> {
        let mut fresh = hashes;
        if self.once {
            self.found.resize(hashes.len(), false);
            filter.contains_batch(hashes, &mut self.found);
            self.fresh.clear();
            let missing = hashes.iter().zip(&self.found).filter(|(_, found)| !**found);
            self.fresh.extend(missing.map(|(hash, _)| hash));
            fresh = &self.fresh;
        }
        let name = filter.name();
        let Some(insert) = filter.as_insert() else {
            let why =
                format!("a `{name}` takes no insertions; see `tamis kinds` for those that do");
            return Err(Failure::usage(target, why));
        };
        insert
            .insert_batch(fresh)
            .map_err(|full| Failure::full(target, &full))?;
        Ok(fresh.len() as u64)
    }
}

/// Hashes of some keys, spread over all that come.
#[derive(Default)]
struct Sample {
    hashes: Vec<u64>,
    /// A hash is kept if it has none of these bits; more are set whenever the sample is full.
    mask: u64,
}

impl Sample {
    fn take(&mut self, hashes: &[u64]) {
        for &hash in hashes {
            if hash & self.mask == 0 {
                self.hashes.push(hash);
                if self.hashes.len() == SAMPLE {
                    self.mask = self.mask << 1 | 1;
                    let mask = self.mask;
                    self.hashes.retain(|hash| hash & mask == 0);
                    // A key that comes again and again must not fill it.
                    self.hashes.sort_unstable();
                    self.hashes.dedup();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_bounded_and_spread() {
        let mut sample = Sample::default();
        let hashes: Vec<u64> = (0..5 << 20)
            .map(|i: u64| Hashing::default().hash(&i))
            .collect();
        hashes.chunks(1000).for_each(|batch| sample.take(batch));
        assert!(sample.hashes.len() < SAMPLE && sample.hashes.len() > SAMPLE / 4);
        let last = &hashes[4 << 20..];
        assert!(last.iter().any(|hash| hash & sample.mask == 0));
        let mut sample = Sample::default();
        (0..3).for_each(|_| sample.take(&vec![0; SAMPLE]));
        assert!(sample.hashes.len() <= SAMPLE);
    }
}
