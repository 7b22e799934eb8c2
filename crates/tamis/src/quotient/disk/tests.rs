use std::cell::Cell;
use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::bits::mix64;
use crate::error::{DecodeErrorKind, FullKind, MergeErrorKind, MergeFilesErrorKind};
use crate::filter::{Insert, Kind, Merge};
use crate::format::repair_checksums;
use crate::{Config, Hashed, Hashing, Keyed, Open, Quotient, QuotientCounting};

/// A directory of filters, and one that was there before.
struct Room(TempDir);

const OLD: &[u8] = b"what was there before";

impl Room {
    fn new() -> Room {
        let room = Room(tempfile::tempdir().unwrap());
        fs::write(room.path("union"), OLD).unwrap();
        room
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, files: &[Vec<u8>]) -> Vec<PathBuf> {
        let put = |(i, bytes): (usize, &Vec<u8>)| {
            let path = self.path(&format!("file {i}"));
            fs::write(&path, bytes).unwrap();
            path
        };
        files.iter().enumerate().map(put).collect()
    }

    /// Nothing was written, and nothing is left behind.
    fn is_untouched(&self, files: usize) {
        assert_eq!(fs::read(self.path("union")).unwrap(), OLD);
        assert_eq!(fs::read_dir(self.0.path()).unwrap().count(), files + 1);
    }
}

/// Merges files, and compares what comes of it with merging in memory: bytes, or errors.
fn agrees<F: Kind + Merge>(filters: &[Keyed<F>]) -> Result<Keyed<F>, MergeErrorKind> {
    let room = Room::new();
    let files: Vec<_> = filters.iter().map(Keyed::to_bytes).collect();
    let paths = room.put(&files);
    let merged = Open::new().merge_files(&paths, room.path("union"));
    let mut union = filters[0].clone();
    for (i, other) in filters.iter().enumerate().skip(1) {
        let before = union.to_bytes();
        if let Err(e) = union.merge(other) {
            assert!(before == union.to_bytes());
            room.is_untouched(filters.len());
            let error = merged.unwrap_err();
            let MergeFilesErrorKind::Merge { path, error } = error.kind() else {
                panic!("{error}, and not {e}");
            };
            match (error.kind(), e.kind()) {
                // In memory it is one of the first that leaves no room, here they are one.
                (MergeErrorKind::Full(a), MergeErrorKind::Full(b)) => {
                    assert_eq!(a.kind(), b.kind());
                    assert_eq!(Some(path), paths.last());
                }
                _ => {
                    assert_eq!(path, &paths[i]);
                    assert_eq!(error.to_string(), e.to_string());
                }
            }
            return Err(e.kind().clone());
        }
    }
    let merged = merged.unwrap();
    let bytes = fs::read(room.path("union")).unwrap();
    assert!(bytes == union.to_bytes(), "other bytes");
    assert_eq!(merged.kind.name, F::INFO.name);
    let (keys, capacity) = (union.len(), union.capacity());
    assert_eq!((merged.keys, merged.capacity), (keys, capacity));
    assert_eq!(merged.bytes, union.file_len());
    let rates = (union.fpr(), union.requested_fpr());
    assert_eq!((merged.fpr, merged.requested_fpr), rates);
    Ok(union)
}

/// So many hashes, others for every seed; some come twice.
fn hashes(seed: u64, len: u64) -> impl Iterator<Item = Hashed> {
    (0..len).map(move |i| Hashed(mix64(seed << 40 | i.saturating_sub(i % 7 / 6))))
}

fn quotient(config: &Config, seed: u64, len: u64) -> Keyed<Quotient> {
    Keyed::build(config, hashes(seed, len)).unwrap()
}

#[test]
fn files_merge_into_the_bytes_of_merged_filters() {
    // One slot to several blocks of the file; remainders of one bit to many.
    for (capacity, bits) in [
        (1, 8),
        (60, 1),
        (500, 7),
        (3000, 13),
        (120_000, 9),
        (30_000, 40),
    ] {
        let config = Config::new(capacity).fpr(0.9).set("bits", bits);
        for files in 1..=5 {
            // Up to what fits, and beyond.
            for len in [0, capacity / files, capacity * 3 / 4] {
                let filters: Vec<_> = (0..files)
                    .map(|seed| quotient(&config, seed, len))
                    .collect();
                match agrees(&filters) {
                    Ok(union) => {
                        let slots = union.filter().slots();
                        let enlarged = slots > filters[0].filter().slots();
                        assert_eq!(enlarged, union.len() > capacity * 102 / 100, "{capacity}");
                    }
                    Err(e) => {
                        let full =
                            matches!(e, MergeErrorKind::Full(f) if f.kind() == FullKind::Capacity);
                        assert!(full && bits == 1, "{e:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_filter_that_was_doubled_merges_with_one_that_was_not() {
    let config = Config::new(5000);
    let (a, mut b) = (quotient(&config, 1, 3000), quotient(&config, 2, 1000));
    *b.filter_mut() = b.filter().double().unwrap();
    let union = agrees(&[a.clone(), b.clone()]).unwrap();
    assert_eq!(union.filter().slots(), 2 * a.filter().slots());
    assert!(agrees(&[b.clone(), a.clone()]).is_ok() && agrees(&[a, b.clone(), b]).is_ok());
}

#[test]
fn a_tail_that_overflows_though_the_sum_fits_takes_twice_the_slots() {
    let config = Config::new(1000);
    let last = |from: u64| (from..from + 150).map(|i| Hashed(u64::MAX - (i << 44)));
    let [a, b] = [0, 150].map(|from| Keyed::<Quotient>::build(&config, last(from)).unwrap());
    let union = agrees(&[a.clone(), b]).unwrap();
    assert!(union.len() < a.filter().slots() / 2);
    assert_eq!(union.filter().slots(), 2 * a.filter().slots());
}

#[test]
fn copies_that_are_too_many_and_other_shapes_are_refused_as_in_memory() {
    let config = Config::new(1000);
    let same = |len: u64| -> Keyed<Quotient> {
        Keyed::build(&config, (0..len).map(|_| Hashed(1 << 60))).unwrap()
    };
    assert!(agrees(&[same(30), same(34)]).is_ok());
    let error = agrees(&[same(31), same(34)]).unwrap_err();
    assert!(matches!(error, MergeErrorKind::Full(f) if f.kind() == FullKind::Duplicates(64)));
    let parameter = |error| match error {
        MergeErrorKind::Parameter { name, .. } => name,
        other => panic!("{other:?}"),
    };
    let (a, b) = (quotient(&config, 1, 9), quotient(&Config::new(2000), 2, 9));
    assert_eq!(
        parameter(agrees(&[a.clone(), a.clone(), b]).unwrap_err()),
        "slots"
    );
    let b = quotient(&config.clone().set("bits", 20), 2, 9);
    assert_eq!(parameter(agrees(&[a.clone(), b]).unwrap_err()), "bits");
    let b = Keyed::build_with(&config, Hashing::fast(7), hashes(2, 9)).unwrap();
    assert_eq!(agrees(&[a, b]).unwrap_err(), MergeErrorKind::Hashing);
    let counts = |config: &Config| Keyed::<QuotientCounting>::build(config, hashes(1, 9)).unwrap();
    let (a, b) = (counts(&Config::new(100)), counts(&Config::new(101)));
    assert_eq!(parameter(agrees(&[a, b]).unwrap_err()), "slots");
}

/// Keys of which some come far more often than others.
fn counted(config: &Config, seed: u64, len: u64) -> Keyed<QuotientCounting> {
    let mut counts = Keyed::<QuotientCounting>::new(config).unwrap();
    for i in 0..len {
        let draw = mix64(seed << 32 | i);
        let own = seed * (draw >> 10 & 1);
        let key = mix64(own << 50 | ((draw >> 20) % len) >> (draw % 8));
        let copies = if draw.is_multiple_of(97) {
            draw >> 34
        } else {
            1
        };
        counts.filter_mut().insert_many(key, copies).unwrap();
    }
    counts
}

#[test]
fn counts_are_added_up_on_disk_as_in_memory() {
    let (mut enlarged, mut refused) = (0, 0);
    for (capacity, bits) in [(10, 4), (700, 6), (700, 20), (60_000, 9)] {
        let config = Config::new(capacity).fpr(0.9).set("bits", bits);
        for files in 1..=4 {
            for len in [0, capacity / 5, capacity * 9 / 10] {
                let filters: Vec<_> = (0..files).map(|seed| counted(&config, seed, len)).collect();
                match agrees(&filters) {
                    Ok(union) => {
                        let slots = |filter: &Keyed<QuotientCounting>| filter.filter().slots();
                        enlarged += u32::from(filters.iter().all(|f| slots(f) < slots(&union)));
                    }
                    Err(_) => refused += 1,
                }
            }
        }
    }
    assert!(enlarged > 2 && refused > 2, "{enlarged} {refused}");
    let mut most = Keyed::<QuotientCounting>::new(&Config::new(10)).unwrap();
    most.filter_mut().insert_many(7, u64::MAX - 1).unwrap();
    let mut one = Keyed::<QuotientCounting>::new(&Config::new(10)).unwrap();
    one.filter_mut().insert(7).unwrap();
    assert_eq!(
        agrees(&[most.clone(), one.clone()]).unwrap().len(),
        u64::MAX
    );
    assert!(agrees(&[most, one.clone(), one]).is_err());
}

/// Whatever is wrong with a file is told as opening it tells, and the old file stays.
fn damage_is_found<F: Kind + Merge>(filter: &Keyed<F>, step: usize) {
    let whole = filter.to_bytes();
    let mut found = [0, 0];
    for at in (0..whole.len()).step_by(step) {
        for (repaired, found) in found.iter_mut().enumerate() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at / step % 8);
            if repaired == 1 {
                repair_checksums(&mut bytes);
            }
            let Err(expected) = Keyed::<F>::open(bytes.clone()) else {
                continue;
            };
            let room = Room::new();
            let paths = room.put(&[whole.clone(), bytes, whole.clone()]);
            let error = Open::new().merge_files(&paths, room.path("union"));
            let error = error.unwrap_err();
            let MergeFilesErrorKind::Read(e) = error.kind() else {
                panic!("{error}, and not {expected}, at {at}");
            };
            assert_eq!(e.path(), Some(&*paths[1]), "{e}");
            if repaired == 0 {
                assert_eq!(e.kind().to_string(), expected.kind().to_string(), "at {at}");
            }
            room.is_untouched(3);
            *found += 1;
        }
    }
    assert!(found.iter().all(|&found| found > 50), "{found:?}");
}

#[test]
fn damage_and_forgery_are_found_on_the_way() {
    damage_is_found(&quotient(&Config::new(300), 1, 250), 3);
    damage_is_found(&quotient(&Config::new(150_000), 1, 140_000), 997);
    damage_is_found(
        &counted(&Config::new(300).fpr(0.9).set("bits", 6), 1, 300),
        3,
    );
}

#[test]
fn a_file_that_is_cut_short_absent_or_no_filter_is_named() {
    let whole = quotient(&Config::new(150_000), 1, 140_000).to_bytes();
    for cut in [0, 7, 50, 100, 200, 70_000, whole.len() - 1] {
        let room = Room::new();
        let paths = room.put(&[whole.clone(), whole[..cut].to_vec()]);
        let error = Open::new().merge_files(&paths, room.path("union"));
        let expected = Keyed::<Quotient>::load(&paths[1]).unwrap_err();
        assert_eq!(error.unwrap_err().to_string(), expected.to_string());
        room.is_untouched(2);
    }
    let room = Room::new();
    let error = Open::new().merge_files(&[room.path("absent")], room.path("union"));
    assert!(error.unwrap_err().to_string().contains("absent"));
    assert!(
        Open::new()
            .merge_files::<PathBuf>(&[], room.path("union"))
            .is_err()
    );
    let paths = room.put(&[whole]);
    let error = Open::new().merge_files(&paths, room.path("no directory/union"));
    assert!(matches!(
        error.unwrap_err().kind(),
        MergeFilesErrorKind::Write(_)
    ));
    room.is_untouched(1);
}

#[test]
fn other_kinds_are_refused_by_name() {
    let room = Room::new();
    let bloom: Keyed<crate::Bloom> = Keyed::new(&Config::new(10)).unwrap();
    let paths = room.put(&[
        quotient(&Config::new(10), 1, 9).to_bytes(),
        bloom.to_bytes(),
    ]);
    let merge = |paths: &[PathBuf]| Open::new().merge_files(paths, room.path("union"));
    let kind = |error: crate::MergeFilesError| match error.kind() {
        MergeFilesErrorKind::Merge { path, error } => (path.clone(), error.kind().clone()),
        other => panic!("{other:?}"),
    };
    let (ours, theirs) = ("quotient", "bloom");
    let expected = (paths[1].clone(), MergeErrorKind::Kind { ours, theirs });
    assert_eq!(kind(merge(&paths).unwrap_err()), expected);
    let error = merge(&paths[1..]).unwrap_err();
    let is_unsupported = matches!(error.kind(), MergeFilesErrorKind::Unsupported("bloom"));
    assert!(is_unsupported, "{error}");
    room.is_untouched(2);
}

#[test]
fn secrets_are_asked_for_and_stay_where_they_are() {
    let secret = Hashing::secret([7; 16]);
    let build = |hashing, seed| -> Keyed<Quotient> {
        Keyed::build_with(&Config::new(100), hashing, hashes(seed, 40)).unwrap()
    };
    let (a, b) = (build(secret.withheld(), 1), build(secret.withheld(), 2));
    let room = Room::new();
    let paths = room.put(&[a.to_bytes(), b.to_bytes()]);
    let error = Open::new().merge_files(&paths, room.path("union"));
    let error = error.unwrap_err();
    let is_needed = matches!(error.kind(), MergeFilesErrorKind::Read(e)
        if matches!(e.kind(), DecodeErrorKind::SecretNeeded));
    assert!(is_needed, "{error}");
    room.is_untouched(2);
    let open = Open::new().hashing(secret);
    open.merge_files(&paths, room.path("union")).unwrap();
    let mut union = a;
    union.merge(&b).unwrap();
    assert!(fs::read(room.path("union")).unwrap() == union.to_bytes());
}

#[test]
fn the_old_file_stays_when_it_is_told_to_stop() {
    let filter = quotient(&Config::new(300_000), 1, 200_000);
    let room = Room::new();
    let paths = room.put(&[filter.to_bytes(), filter.to_bytes()]);
    let told = Cell::new(Vec::new());
    let tell = |stop_at: usize| {
        let told = &told;
        move |progress: crate::Progress| {
            let mut all = told.take();
            all.push((progress.done, progress.total));
            let stop = all.len() == stop_at;
            told.set(all);
            stop
        }
    };
    let merge = |stop_at| {
        told.set(Vec::new());
        Open::new().merge_files_unless(&paths, room.path("union"), tell(stop_at))
    };
    for stop_at in [1, 5] {
        let error = merge(stop_at).unwrap_err();
        let is_stop =
            matches!(error.kind(), MergeFilesErrorKind::Write(e) if e.to_string() == "stopped");
        assert!(is_stop, "{error}");
        room.is_untouched(2);
    }
    merge(usize::MAX).unwrap();
    let told = told.take();
    assert!(told.len() > 8 && told.is_sorted());
    let (done, total) = told[told.len() - 1];
    assert_eq!(done, total);
}

/// Whatever files hold, merging them takes no more memory than it should: all keys in one run.
#[test]
fn runs_that_are_too_long_for_little_memory_are_refused() {
    let config = Config::new(200_000).set("bits", 30);
    let crowd = |from: u64, len: u64| (from..from + len).map(|i| Hashed(i << 20));
    let error = |files: &[Vec<u8>]| {
        let room = Room::new();
        let merged = Open::new().merge_files(&room.put(files), room.path("union"));
        room.is_untouched(files.len());
        merged.unwrap_err().to_string()
    };
    // Each is short enough, both together are not.
    let [a, b] = [0, 40_000].map(|from| {
        let filter = Keyed::<Quotient>::build(&config, crowd(from, 40_000)).unwrap();
        filter.to_bytes()
    });
    let said = error(&[a, b]);
    assert!(said.contains("merge the filters in memory"), "{said}");
    let long = Keyed::<Quotient>::build(&config, crowd(0, 70_000)).unwrap();
    let said = error(&[long.to_bytes(), long.to_bytes()]);
    assert!(said.contains("merge the filter in memory"), "{said}");
    let long = Keyed::<QuotientCounting>::build(&config, crowd(0, 70_000)).unwrap();
    let said = error(&[long.to_bytes(), long.to_bytes()]);
    assert!(said.contains("merge the filter in memory"), "{said}");
}
