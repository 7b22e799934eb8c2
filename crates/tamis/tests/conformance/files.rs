//! Laws 7, 8 and 11: a file is read back byte for byte, anything else is refused, and the bytes
//! never change.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tamis::testing::repair_checksums;
use tamis::{AnyFilter, Bloomier, Config, Family, Filter, Hashing, Keyed, KindInfo, Open};
use xxhash_rust::xxh3::xxh3_64;

use crate::members::map;
use crate::rates_of;
use crate::support::{Rng, assert_holds, bytes, config, hash, hashes, must, times, tried};

type Any = Keyed<AnyFilter>;

/// Bytes that do not start where the allocator put them.
struct Shifted(Vec<u8>, usize);

impl AsRef<[u8]> for Shifted {
    fn as_ref(&self) -> &[u8] {
        &self.0[self.1..]
    }
}

pub(crate) fn round_trip(info: &'static KindInfo) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    for n in tried((0..=10).chain([100, 1000, 60_000])) {
        for config in rates_of(info, n) {
            let filter = must(info, &config, &hashes(30, n));
            let file = filter.to_bytes();
            assert_eq!(file.len() as u64, filter.file_len(), "{config}");
            filter.save(&path).unwrap();
            assert!(
                fs::read(&path).unwrap() == file,
                "{config}: saved otherwise than encoded"
            );
            let shifted = Shifted([&[0; 3][..], &file].concat(), 3);
            let readers: [(&str, Any); 5] = [
                ("opened", Keyed::open(file.clone()).unwrap()),
                ("opened at an odd address", Keyed::open(shifted).unwrap()),
                ("loaded", Keyed::load(&path).unwrap()),
                ("read", Open::new().read(&file[..]).unwrap()),
                ("mapped", map(&path)),
            ];
            for (how, read) in readers {
                assert!(read.to_bytes() == file, "{config}, {how}: other bytes");
                answers_alike(
                    filter.filter(),
                    read.filter(),
                    n,
                    &format!("{config}, {how}"),
                );
                assert_eq!(read.capacity(), filter.capacity());
                assert_eq!(read.requested_fpr(), filter.requested_fpr());
                assert_eq!(read.hashing(), filter.hashing());
            }
        }
    }
    for hashing in [
        Hashing::fast(0),
        Hashing::fast(u64::MAX),
        Hashing::secret([9; 16]),
    ] {
        let config = config(info, 3).kind(info.name);
        let filter: Any = Keyed::build_with(&config, hashing, ["a", "b", "c"]).unwrap();
        let read: Any = Keyed::open(filter.to_bytes()).unwrap();
        assert_eq!(read.hashing(), &hashing);
        assert!(["a", "b", "c"].iter().all(|key| read.contains(key)));
        assert!(read.to_bytes() == filter.to_bytes());
    }
}

/// Two filters that must be the same one: the same about members, absent keys and themselves.
fn answers_alike(a: &AnyFilter, b: &AnyFilter, n: u64, what: &str) {
    assert_eq!(
        (a.len(), a.kind().name, a.params()),
        (b.len(), b.kind().name, b.params()),
        "{what}"
    );
    assert_eq!(a.fpr(), b.fpr(), "{what}");
    let asked = (0..n.min(5000))
        .map(|i| hash(30, i))
        .chain((0..times(5000)).map(|i| hash(31, i)));
    for hash in asked {
        assert_eq!(a.contains(hash), b.contains(hash), "{what}: {hash:#x}");
        let count = |f: &AnyFilter| f.as_count().map(|c| c.count(hash));
        assert_eq!(count(a), count(b), "{what}: {hash:#x}");
    }
}

/// A mapped filter takes insertions in memory of its own: the file and other maps of it stay as
/// they are.
pub(crate) fn copy_on_write(info: &'static KindInfo) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    for n in tried([0, 1, 100, 20_000]) {
        let config = config(info, 2 * n + 10);
        let owned = must(info, &config, &hashes(32, n));
        owned.save(&path).unwrap();
        let file = owned.to_bytes();
        let (mut mapped, other) = (map(&path), map(&path));
        let (mut in_memory, sibling) = (owned.clone(), mapped.clone());
        let new = hashes(33, n + 10);
        for filter in [&mut mapped, &mut in_memory] {
            let insert = filter
                .filter_mut()
                .as_insert()
                .expect("a kind that inserts");
            insert.insert_batch(&new).unwrap();
        }
        assert!(
            mapped.to_bytes() == in_memory.to_bytes(),
            "{n} keys: mapped differs from owned"
        );
        assert_holds(
            mapped.filter(),
            &hashes(32, n),
            "mapped, then inserted into",
        );
        assert_holds(mapped.filter(), &new, "mapped, then inserted into");
        assert!(
            fs::read(&path).unwrap() == file,
            "{n} keys: the file was changed"
        );
        assert!(
            other.to_bytes() == file,
            "{n} keys: another map was changed"
        );
        assert!(sibling.to_bytes() == file, "{n} keys: a clone was changed");
        if let Some(remove) = mapped.filter_mut().as_remove() {
            assert!(remove.remove(new[0]));
            assert!(fs::read(&path).unwrap() == file);
        }
    }
}

#[track_caller]
fn refused(bytes: Vec<u8>, what: impl FnOnce() -> String) {
    let opened = Keyed::<AnyFilter>::open(bytes);
    assert!(opened.is_err(), "{} was opened", what());
}

pub(crate) fn damage_is_refused(info: &'static KindInfo) {
    let mut rng = Rng(40);
    for n in [0, 1, 7] {
        let file = must(info, &config(info, n), &hashes(34, n)).to_bytes();
        assert!(Keyed::<AnyFilter>::open(file.clone()).is_ok());
        for len in 0..file.len() {
            refused(file[..len].to_vec(), || {
                format!("a file cut to {len} of {}", file.len())
            });
        }
        for bit in 0..file.len() * 8 {
            let mut damaged = file.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            refused(damaged, || {
                format!("a file with bit {bit} of {} flipped", file.len() * 8)
            });
        }
        for extra in [
            &[0][..],
            &[0; 8],
            &[0; 64],
            &[0xFF; 16],
            &file[file.len() - 16..],
            &file,
        ] {
            refused([&file[..], extra].concat(), || {
                format!("{} bytes more", extra.len())
            });
        }
        refused(file[1..].to_vec(), || {
            "a file without its first byte".into()
        });
        bursts(&file, 10_000, &mut rng);
    }
    // Several blocks of checksums: damage anywhere, blocks in another order, a hole.
    let file = must(info, &config(info, 200_000), &hashes(35, 200_000)).to_bytes();
    assert!(Keyed::<AnyFilter>::open(file.clone()).is_ok());
    bursts(&file, 300, &mut rng);
    // Each checksum covers 64 KiB from the end of the header, whose length it states.
    const BLOCK: usize = 64 << 10;
    let data = u32::from_le_bytes([file[12], file[13], file[14], file[15]]) as usize;
    let whole = (file.len() - data) / (BLOCK + 8);
    assert!(
        whole >= 2,
        "{} bytes are too few for two blocks",
        file.len()
    );
    for block in 1..whole {
        let mut swapped = file.clone();
        let (left, right) = swapped.split_at_mut(data + block * BLOCK);
        left[data..data + BLOCK].swap_with_slice(&mut right[..BLOCK]);
        refused(swapped, || {
            format!("a file with its blocks 0 and {block} exchanged")
        });
    }
    for _ in 0..50 {
        let len = rng.below(file.len() as u64) as usize;
        refused(file[..len].to_vec(), || format!("a file cut to {len}"));
        let mut zeroed = file.clone();
        let end = (len + 4096).min(file.len());
        zeroed[len..end].fill(0);
        if zeroed != file {
            refused(zeroed, || format!("a file with a hole at {len}"));
        }
    }
}

/// Runs of up to 64 bytes overwritten by noise.
fn bursts(file: &[u8], times: usize, rng: &mut Rng) {
    for _ in 0..times {
        let mut damaged = file.to_vec();
        let at = rng.below(file.len() as u64) as usize;
        let len = 1 + rng.below(64) as usize;
        for byte in damaged.iter_mut().skip(at).take(len) {
            *byte = rng.next() as u8;
        }
        if damaged != file {
            refused(damaged, || {
                format!("a file with {len} bytes of noise at {at}")
            });
        }
    }
}

pub(crate) fn same_input_same_bytes(info: &'static KindInfo) {
    for n in tried([0, 1, 10, 1000, 50_000]) {
        let config = config(info, n);
        let members = hashes(36, n);
        let first = must(info, &config, &members).to_bytes();
        // On another thread, after other work, and through a clone.
        let again = std::thread::scope(|scope| {
            let other = scope.spawn(|| must(info, &config, &members).to_bytes());
            other.join().unwrap()
        });
        assert!(again == first, "{config}: other bytes from the same keys");
        let clone = must(info, &config, &members).clone();
        assert!(
            clone.to_bytes() == first,
            "{config}: a clone has other bytes"
        );
        let mut grown = must(info, &config, &[]).filter().clone();
        if let Some(insert) = grown.as_insert() {
            insert.insert_batch(&members).unwrap();
            let built = must(info, &config, &members);
            assert!(
                bytes(&grown) == bytes(built.filter()),
                "{config}: building is not inserting"
            );
        }
    }
}

const GOLDEN_KEYS: u64 = 400;
/// Kinds of a very low rate have few false positives or none: the search ends here.
const GOLDEN_SEARCHED: u64 = 100_000;

/// The header's number of keys is held to the table that it comes with. A kind that merges adds
/// such numbers up, whatever the parts have in common, so there it is no more than a count; the
/// rate is not computed from it.
pub(crate) fn forged_len(info: &'static KindInfo) {
    for n in [1, 1000] {
        let config = config(info, n);
        let filter = must(info, &config, &hashes(1, n));
        for len in [100 * n + 1000, 1 << 40, 1 << 62, u64::MAX] {
            let mut forged = filter.to_bytes();
            forged[64..72].copy_from_slice(&len.to_le_bytes());
            repair_checksums(&mut forged);
            match Any::open(forged) {
                Err(_) => assert!(!info.can.merge, "{len} keys"),
                Ok(read) => {
                    assert!(info.can.merge, "{len} keys, of {n}");
                    assert_eq!(read.filter().fpr(), filter.filter().fpr());
                }
            }
        }
    }
}

fn golden_path(name: &str, extension: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(format!("{name}.{extension}"))
}

/// A committed file per kind: it opens, answers as it did when it was written, and is what would
/// be written today.
pub(crate) fn golden(info: &'static KindInfo) {
    let config = config(info, GOLDEN_KEYS).kind(info.name);
    let len = pin(info.name, &config, Hashing::default());
    assert!(len <= 8 << 10, "{len} bytes are too many to commit");
}

/// What no kind's default file shows: other hashings, no keys, several shards and salts, several
/// blocks of checksums.
pub(crate) fn golden_variants() {
    let secret = Hashing::secret(*b"sixteen letters!");
    for (name, config, hashing) in [
        ("seed", "bloom:capacity=400,fpr=0.01", Hashing::fast(7)),
        ("secret", "bloom:capacity=400,fpr=0.01", secret),
        ("withheld", "bloom:capacity=400,fpr=0.01", secret.withheld()),
        (
            "multiply-shift",
            "multiset:capacity=400,fpr=0.01",
            Hashing::universal(Family::MultiplyShift, 7),
        ),
        (
            "multiply-add-shift",
            "multiset:capacity=400,fpr=0.01",
            Hashing::universal(Family::MultiplyAddShift, 7),
        ),
        (
            "prime-field",
            "multiset:capacity=400,fpr=0.01",
            Hashing::universal(Family::PrimeField, 7),
        ),
        (
            "tabulation",
            "multiset:capacity=400,fpr=0.01",
            Hashing::universal(Family::Tabulation, 7),
        ),
        (
            "four-wise",
            "multiset:capacity=400,fpr=0.01",
            Hashing::universal(Family::FourWise, 7),
        ),
        (
            "blocks",
            "bloom:capacity=60000,fpr=0.01",
            Hashing::default(),
        ),
        (
            "empty",
            "binary_fuse8:capacity=0,fpr=0.01",
            Hashing::default(),
        ),
        (
            "shards",
            "binary_fuse8:capacity=400,fpr=0.01,arity=4,shards=40",
            Hashing::default(),
        ),
        (
            "bumped",
            "ribbon_bumped:capacity=4000,fpr=0.1",
            Hashing::default(),
        ),
        (
            "narrow",
            "ribbon:capacity=400,fpr=0.3,width=64",
            Hashing::default(),
        ),
        (
            "folds",
            "folded:capacity=3000,fpr=0.01,folds=1",
            Hashing::default(),
        ),
        (
            "gathered",
            "scalable:capacity=400,fpr=0.01,slice=bloom_g",
            Hashing::default(),
        ),
        (
            "semi-sorted",
            "cuckoo:capacity=400,fpr=0.01,semi_sort=1",
            Hashing::default(),
        ),
        (
            "words",
            "quotient_vector:capacity=400,fpr=0.001",
            Hashing::default(),
        ),
        (
            "uneven",
            "perfect:capacity=400,fpr=0.01,bucket=3.5",
            Hashing::default(),
        ),
    ] {
        pin(
            &format!("variant-{name}"),
            &config.parse().unwrap(),
            hashing,
        );
    }
}

/// A filter that keys have left: blocks with free slots and shorter fingerprints than they need.
pub(crate) fn golden_removed() {
    let config: Config = "tinyset_removable:capacity=600,fpr=0.01".parse().unwrap();
    let mut filter: Any = Keyed::build(&config, (0..600).map(|i| format!("present-{i}"))).unwrap();
    for i in 400..600 {
        let hash = filter.hash(&format!("present-{i}"));
        assert!(filter.filter_mut().as_remove().unwrap().remove(hash));
    }
    compare("variant-removed", &config, 400, &filter);
}

fn insert_each(filter: &mut Any, keys: impl Iterator<Item = String>) {
    for key in keys {
        let hash = filter.hash(&key);
        let insert = filter.filter_mut().as_insert().unwrap();
        insert.insert(hash).unwrap();
    }
}

/// A filter that has grown: several slices, one of them added by merging.
pub(crate) fn golden_grown() {
    let config: Config = "scalable:capacity=50,fpr=0.01".parse().unwrap();
    let holding = |range: std::ops::Range<u64>| -> Any {
        let mut filter: Any = Keyed::new(&config).unwrap();
        insert_each(&mut filter, range.map(|i| format!("present-{i}")));
        filter
    };
    let mut filter = holding(0..300);
    filter.merge(&holding(300..400)).unwrap();
    compare("variant-grown", &config, 400, &filter);
}

/// A filter that has grown and that keys have left: void keys, and fingerprints of several lengths.
pub(crate) fn golden_expanded() {
    let config: Config = "aleph:capacity=30,fpr=0.3".parse().unwrap();
    let mut filter: Any = Keyed::new(&config).unwrap();
    insert_each(&mut filter, (0..450).map(|i| format!("present-{i}")));
    for i in 400..450 {
        let hash = filter.hash(&format!("present-{i}"));
        assert!(filter.filter_mut().as_remove().unwrap().remove(hash));
    }
    compare("variant-expanded", &config, 400, &filter);
}

/// A filter that has grown: three sealed runs, and a part that takes insertions.
pub(crate) fn golden_sealed() {
    let config: Config = "compacting:capacity=30,fpr=0.01".parse().unwrap();
    let mut filter: Any = Keyed::new(&config).unwrap();
    insert_each(&mut filter, (0..400).map(|i| format!("present-{i}")));
    compare("variant-sealed", &config, 400, &filter);
}

/// A map: the key number i has the value i².
pub(crate) fn golden_values() {
    let config: Config = "bloomier:capacity=400,fpr=0.01".parse().unwrap();
    let pairs = (0..400).map(|i| (format!("present-{i}"), i * i));
    let map = Keyed::<Bloomier>::from_pairs(&config, pairs).unwrap();
    let filter: Any = Keyed::open(map.to_bytes()).unwrap();
    compare("variant-values", &config, 400, &filter);
    let file = fs::read(golden_path("variant-values", "tamis")).unwrap();
    let stored: Keyed<Bloomier> = Keyed::open(file).unwrap();
    assert!((0..400).all(|i| stored.get(&format!("present-{i}")) == Some(i * i)));
}

/// A window in the middle of a generation, which has cleared its slice in a part of the blocks
/// only.
pub(crate) fn golden_window() {
    let config: Config = "sliding:capacity=400,fpr=0.01".parse().unwrap();
    let mut filter: Any = Keyed::new(&config).unwrap();
    let old = (0..200).map(|i| format!("old-{i}"));
    insert_each(
        &mut filter,
        old.chain((0..450).map(|i| format!("present-{i}"))),
    );
    compare("variant-window", &config, 450, &filter);
}

/// Files whose bytes a builder would choose otherwise today: they open, answer as they did, and
/// are written as they were.
pub(crate) fn golden_earlier() {
    for name in ["binary_fuse8", "binary_fuse16", "binary_fuse32", "sealed"] {
        let name = format!("earlier-{name}");
        let bytes = fs::read(golden_path(&name, "tamis")).unwrap();
        let told = fs::read_to_string(golden_path(&name, "txt")).unwrap();
        let config: Config = told.lines().next().unwrap().parse().unwrap();
        let stored: Any = Keyed::open(bytes.clone()).unwrap();
        assert!((0..400).all(|i| stored.contains(&format!("present-{i}"))));
        assert!(stored.to_bytes() == bytes, "{name}");
        assert_eq!(description(&config, 400, &stored), told, "{name}");
    }
}

/// A filter whose keys came from a field of records.
pub(crate) fn golden_field() {
    let config: Config = "bloom:capacity=400,fpr=0.01".parse().unwrap();
    let keys = (0..400).map(|i| format!("present-{i}"));
    let filter: Any = Keyed::build_with(&config, Hashing::default(), keys).unwrap();
    let filter = filter.with_key_field(Some("Straße/№ 7"));
    compare("variant-field", &config, 400, &filter);
    let file = fs::read(golden_path("variant-field", "tamis")).unwrap();
    assert_eq!(Any::open(file).unwrap().key_field(), Some("Straße/№ 7"));
}

/// Holds a file of as many keys as its capacity to its golden one, and returns its length.
fn pin(name: &str, config: &Config, hashing: Hashing) -> usize {
    let keys = config.capacity;
    let filter = Keyed::build_with(config, hashing, (0..keys).map(|i| format!("present-{i}")));
    compare(name, config, keys, &filter.unwrap())
}

/// Holds a filter of the first so many keys to its golden file.
fn compare(name: &str, config: &Config, keys: u64, fresh: &Any) -> usize {
    let file = fresh.to_bytes();
    agree(&golden_path(name, "tamis"), &file);
    agree(
        &golden_path(name, "txt"),
        description(config, keys, fresh).as_bytes(),
    );

    let bytes = fs::read(golden_path(name, "tamis")).unwrap();
    let stored: Any = Open::new().hashing(*fresh.hashing()).bytes(bytes).unwrap();
    assert!((0..keys).all(|i| stored.contains(&format!("present-{i}"))));
    assert!(stored.to_bytes() == file);
    assert_eq!(
        description(config, keys, &stored),
        description(config, keys, fresh)
    );
    file.len()
}

/// What a reader in another language can check without knowing how to build the filter.
fn description(config: &Config, keys: u64, filter: &Any) -> String {
    let mut text = format!(
        "{config}\n{keys} keys from present-0 on\nxxh3 {:016x}\nfalse positives among absent-0 to absent-{}, the first 20:\n",
        xxh3_64(&filter.to_bytes()),
        GOLDEN_SEARCHED - 1,
    );
    let absent = (0..GOLDEN_SEARCHED).map(|i| format!("absent-{i}"));
    for key in absent.filter(|key| filter.contains(key)).take(20) {
        let _ = writeln!(text, "{key}");
    }
    text
}

/// Compares with a golden file. A missing one is written when asked for; a differing one never
/// is.
fn agree(path: &Path, expected: &[u8]) {
    match fs::read(path) {
        Ok(golden) => assert!(
            golden == expected,
            "{} differs from what is written today: files that exist would be read otherwise. If that is meant, delete it and bless it again",
            path.display()
        ),
        Err(_) if std::env::var_os("TAMIS_BLESS").is_some() => {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, expected).unwrap();
        }
        Err(_) => panic!(
            "{} is missing; write it with `TAMIS_BLESS=1 cargo test --test conformance`, look at it, and commit it",
            path.display()
        ),
    }
}
