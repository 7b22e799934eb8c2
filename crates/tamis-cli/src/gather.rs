//! From the keys of the input to a filter, within the memory that there is.
//!
//! Eight bytes per key are kept until all keys are known: the set is then sorted, and its filter
//! is the same whatever the order and the repeats. Where `--max-memory` does not allow that, the
//! hashes wait on disk, if the filter's kind can be built from there; or keys go into the filter
//! as they come, if it takes insertions: into one of the capacity that was given, or that a first
//! pass over the files has counted, or into one that grows.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;

use tamis::{
    AnyFilter, BinaryFuse8, Config, Encoded, Filter, Hashed, Hashing, Keyed, Spill, Spilled,
};

use crate::failure::Failure;
use crate::input::{Files, InputArgs, Purpose, Source};
use crate::progress::Progress;
use crate::{choice, clock, target};

/// What is held per key while a set is gathered, built, encoded and verified, at most. Of 10⁶
/// keys the program's peak (`/usr/bin/time -v tamis build --threads 1`) is 41 bytes per key for
/// `spectral_recurring`, the highest of all kinds, and 30 for `binary_fuse8`; of 10⁷ keys it is
/// 11 for that.
const BYTES_PER_KEY: u64 = 48;
/// What is held per key of a shard while a filter is built from disk, by [`Spill`]'s account.
const BYTES_PER_SPILLED_KEY: u64 = 17;
/// What building from disk takes in any case.
const LEAST_FOR_SPILL: u64 = 16 << 20;
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

/// As [`each_batch`], with several files at a time, so that the order of the keys is left to
/// chance.
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
        let readers = (0..threads.min(files.number())).map_while(|_| {
            let (send, next) = (send.clone(), &next);
            let read_files = move || {
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
            };
            // Those that the system gives read all files.
            thread::Builder::new().spawn_scoped(scope, read_files).ok()
        });
        if readers.count() == 0 {
            return each_batch(files, input, purpose, progress, take);
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
    source: Source,
    input: &InputArgs,
    purpose: Purpose,
    mut take: impl FnMut(&[u64], u64) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (taken, mut told) = (source.taken(), 0);
    let mut reader = input.read(source, purpose)?;
    while let Some(batch) = reader.next_batch()? {
        let now = taken.load(Relaxed);
        take(batch.hashes, now - told)?;
        told = now;
    }
    reader.warn();
    Ok(())
}

/// A filter, and hashes to verify it by.
pub(crate) struct Gathered {
    filter: Keyed<AnyFilter>,
    hashes: Hashes,
    /// Why the filter is of its kind, where nobody named one.
    pub(crate) why: Option<&'static str>,
}

enum Hashes {
    /// Of all keys, or of some where they were inserted as they came.
    Held(Vec<u64>),
    /// Of all keys.
    OnDisk(Spilled),
}

impl Gathered {
    /// The filter, opened anew from the bytes that will be its file, with every hash found in it.
    pub(crate) fn verified(
        mut self,
        threads: usize,
        what: &str,
    ) -> Result<Encoded<AnyFilter>, Failure> {
        clock::start(&mut self.filter)?;
        match self.hashes {
            Hashes::Held(hashes) => target::verified(self.filter, &hashes, threads, what),
            Hashes::OnDisk(mut hashes) => {
                let filter = target::encoded(self.filter, what)?;
                let mut all = true;
                let seen = hashes.for_each(|some| all &= target::holds_all(&filter, some));
                seen.map_err(|e| Failure::build(what, &e))?;
                match all {
                    true => Ok(filter),
                    false => Err(Failure::verification(what)),
                }
            }
        }
    }
}

/// What is wanted.
pub(crate) struct Gather<'a> {
    pub(crate) files: Files<'a>,
    pub(crate) input: &'a InputArgs,
    pub(crate) config: Config,
    pub(crate) hashing: Hashing,
    /// In bytes.
    pub(crate) max_memory: Option<u64>,
    /// Where hashes wait that are too many to be held.
    pub(crate) directory: PathBuf,
    /// What to call the filter in messages.
    pub(crate) target: String,
}

/// How far a stream of keys is.
enum State {
    Collected(Vec<u64>),
    /// So many keys: the first pass only counts on.
    Counted(u64),
    Inserted(Box<Stream>),
    Spilled(Box<Spill>),
}

impl Gather<'_> {
    /// Reads everything and builds the filter, which remembers how its keys were written.
    pub(crate) fn run(&self, progress: &mut Progress) -> Result<Gathered, Failure> {
        let gathered = self.gathered(progress)?;
        Ok(Gathered {
            filter: gathered
                .filter
                .with_key_form(self.input.form())
                .with_key_field(self.input.place().as_deref()),
            ..gathered
        })
    }

    fn gathered(&self, progress: &mut Progress) -> Result<Gathered, Failure> {
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
                State::Spilled(spill) => self.push(spill, batch)?,
                State::Collected(hashes) => {
                    hashes.try_reserve(batch.len()).map_err(|e| {
                        let why = format!("{e}; --max-memory keeps them on disk");
                        Failure::io("the hashes of the keys", why)
                    })?;
                    hashes.extend_from_slice(batch);
                    if hashes.len() > most {
                        if !self.counts_all() {
                            hashes.sort_unstable();
                            hashes.dedup();
                        }
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
                let config = progress.building(&self.config);
                let filter = choice::build(&config, self.hashing, &mut hashes)
                    .map_err(|e| Failure::build(&self.target, &e))?;
                let keys = hashes.len() as u64;
                Ok(Gathered {
                    filter,
                    hashes: Hashes::Held(hashes),
                    why: self.why(|| choice::default_kind(&self.config, keys).why),
                })
            }
            State::Spilled(spill) => self.build_on_disk(*spill, progress),
            State::Inserted(stream) => Ok(stream.finish()),
            State::Counted(keys) => {
                let mut stream = self.stream(keys)?;
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
        let (files, mut purpose) = (&self.files, Purpose::keys(self.hashing));
        if let Some(memory) = self.max_memory {
            purpose = purpose.within(memory);
        }
        let threads = self.config.threads;
        // Keys that are inserted as they come make the same file only if they come in the same
        // order.
        if threads > 1 && files.number() > 1 && self.max_memory.is_none() {
            return each_batch_in_any_order(files, self.input, purpose, threads, progress, take);
        }
        each_batch(files, self.input, purpose, progress, take)
    }

    /// The keys are too many to be held: what else can be done.
    fn overflow(&self, hashes: &[u64], read: u64) -> Result<State, Failure> {
        // A first pass counts keys, but not how many of them are distinct.
        let can_count = self.files.are_regular() && !self.counts_all();
        let known = self.config.capacity > 0 || can_count;
        let kind = self.kind();
        if choice::is_on_disk(kind) {
            tamis::sweep(&self.directory);
            let spill = Spill::new(&self.directory);
            let mut spill = spill.map_err(|e| Failure::build(&self.target, &e))?;
            self.push(&mut spill, hashes)?;
            return Ok(State::Spilled(Box::new(spill)));
        }
        if !tamis::kind(kind).is_ok_and(|kind| kind.can.insert) {
            let why = format!(
                "a `{kind}` needs all its keys at once, and these are more than --max-memory has room for \
                 ({BYTES_PER_KEY} bytes per key); allow more memory, take a `binary_fuse8`, 16 or 32, which is built \
                 from disk, or a kind that inserts (see `tamis kinds`)"
            );
            return Err(Failure::usage(&self.target, why));
        }
        if !known && self.counts_all() {
            let why = format!(
                "more keys come than --max-memory has room for ({BYTES_PER_KEY} bytes per key), and a `{kind}` must \
                 know how many of them are distinct; give that as --capacity, or allow more memory"
            );
            return Err(Failure::usage(&self.target, why));
        }
        if !known && !choice::is_endless(kind) {
            let why = format!(
                "more keys come than --max-memory has room for ({BYTES_PER_KEY} bytes per key), and a `{kind}` must \
                 know their number; give --capacity, give them in a file, allow more memory, or take `aleph`, which grows, \
                 or `scalable` if keys come again and again"
            );
            return Err(Failure::usage(&self.target, why));
        }
        if self.config.capacity == 0 && can_count {
            return Ok(State::Counted(read));
        }
        // Of copies that are counted in place, more may have come than the capacity says.
        let come = if self.counts_all() {
            0
        } else {
            hashes.len() as u64
        };
        let mut stream = self.stream(self.config.capacity.max(come))?;
        stream.insert(hashes)?;
        Ok(State::Inserted(Box::new(stream)))
    }

    /// Whether copies of a key count.
    fn counts_all(&self) -> bool {
        self.config.kind.as_deref().is_some_and(choice::counts_all)
    }

    /// The kind of a filter of more keys than can be held.
    fn kind(&self) -> &str {
        self.config
            .kind
            .as_deref()
            .unwrap_or_else(|| self.default_kind().kind)
    }

    fn default_kind(&self) -> choice::Chosen {
        match self.config.capacity {
            0 => choice::default_kind_on_disk(&self.config),
            _ => choice::default_kind_for_a_stream(&self.config),
        }
    }

    /// Why a kind was chosen, where none was named.
    fn why(&self, why: impl FnOnce() -> &'static str) -> Option<&'static str> {
        self.config.kind.as_deref().is_none().then(why)
    }

    fn push(&self, spill: &mut Spill, hashes: &[u64]) -> Result<(), Failure> {
        let pushed = hashes.iter().try_for_each(|&hash| spill.push(hash));
        pushed.map_err(|e| Failure::build(&self.target, &e))
    }

    /// Builds the filter of hashes on disk.
    fn build_on_disk(&self, spill: Spill, progress: &Progress) -> Result<Gathered, Failure> {
        let failed = |e| Failure::build(&self.target, &e);
        let keys = spill.len();
        // Half for the shards that are built at a time, half for the filter.
        let most = self.max_memory.map_or(u64::MAX, |bytes| bytes / 2);
        let at_a_time = most.max(LEAST_FOR_SPILL) / BYTES_PER_SPILLED_KEY;
        let shards = BinaryFuse8::shards_for(keys);
        let threads = (at_a_time / keys.div_ceil(shards).max(1)) as usize;
        let at_most = self.config.threads.min(threads).max(1);
        let mut config = self.config.clone().threads(at_most);
        if threads == 0 && !config.to_string().contains("shards=") {
            config = config.set("shards", keys.div_ceil(at_a_time));
        }
        let built = choice::build_on_disk(&progress.building(&config), self.kind(), spill);
        let (filter, hashes) = built.map_err(failed)?;
        let (bytes, keys) = (filter.size_in_bytes() as u64, filter.len());
        fits(bytes, most, filter.kind().name, &self.target)?;
        let config = config.capacity(keys);
        Ok(Gathered {
            filter: Keyed::from_filter(filter, self.hashing, &config).map_err(failed)?,
            hashes: Hashes::OnDisk(hashes),
            why: self.why(|| self.default_kind().why),
        })
    }

    /// An empty filter for so many keys, that takes them as they come.
    fn stream(&self, keys: u64) -> Result<Stream, Failure> {
        let failed = |e| Failure::build(&self.target, &e);
        let config = self.config.clone().capacity(keys).kind(self.kind());
        let filter = Keyed::new_with(&config, self.hashing).map_err(failed)?;
        let stream = Stream {
            inserter: Inserter::of(filter.kind()),
            filter,
            sample: Sample::default(),
            // It is held twice while it is verified.
            most_bytes: self.max_memory.map_or(u64::MAX, |bytes| bytes / 2),
            target: self.target.clone(),
            why: self.why(|| self.default_kind().why),
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
    why: Option<&'static str>,
}

impl Stream {
    fn insert(&mut self, hashes: &[u64]) -> Result<(), Failure> {
        self.sample.take(hashes);
        self.inserter
            .insert(&mut self.filter, hashes, &self.target)?;
        self.fits()
    }

    fn fits(&self) -> Result<(), Failure> {
        let bytes = self.filter.size_in_bytes() as u64;
        let kind = self.filter.kind().name;
        fits(bytes, self.most_bytes, kind, &self.target)
    }

    fn finish(self) -> Gathered {
        Gathered {
            filter: self.filter,
            hashes: Hashes::Held(self.sample.hashes),
            why: self.why,
        }
    }
}

/// Refuses a filter of more than half of the memory: it is held twice while it is verified.
fn fits(bytes: u64, most: u64, kind: &str, target: &str) -> Result<(), Failure> {
    if bytes <= most {
        return Ok(());
    }
    let why = format!(
        "a `{kind}` of these keys has {bytes} bytes or more, and more than half of --max-memory; allow more memory, or a \
         higher --fpr"
    );
    Err(Failure::usage(target, why))
}

/// Inserts keys that may have been inserted before.
pub(crate) struct Inserter {
    /// Whether a key that is held already is left out. Not where the copies of a key count, be it
    /// for removing them or for telling their number; and not where a key that comes again stays
    /// longer.
    once: bool,
    found: Vec<bool>,
    fresh: Vec<u64>,
}

impl Inserter {
    pub(crate) fn of(kind: &tamis::KindInfo) -> Inserter {
        let can = kind.can;
        Inserter {
            once: !(can.remove || can.count || kind.can.window),
            found: Vec::new(),
            fresh: Vec::new(),
        }
    }

    /// Inserts what is new; returns how many that are.
    pub(crate) fn insert(
        &mut self,
        filter: &mut Keyed<AnyFilter>,
        hashes: &[u64],
        target: &str,
    ) -> Result<u64, Failure> {
        let mut fresh = hashes;
        if self.once {
            self.found.resize(hashes.len(), false);
            filter.contains_batch(hashes.iter().copied().map(Hashed), &mut self.found);
            self.fresh.clear();
            let missing = hashes.iter().zip(&self.found).filter(|(_, found)| !**found);
            self.fresh.extend(missing.map(|(hash, _)| hash));
            fresh = &self.fresh;
        }
        filter
            .extend(fresh.iter().copied().map(Hashed))
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
