//! Files as they meet the world: readers that give little at a time, pipes, secrets kept apart,
//! forged sizes, full disks.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::io::{self, Read, Write};

use support::counting::{Counting, peak_of};
use support::{config, hash, hashes, must};
use tamis::testing::repair_checksums;
use tamis::{
    AnyFilter, Bloom, Compressed, Config, Cuckoo, DecodeErrorKind, Filter, Hashing, KINDS, KeyForm,
    Keyed, Mapped, Open, SplitBlock512,
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Any = Keyed<AnyFilter>;

/// Gives a byte at a time, and is interrupted between any two.
struct Trickle<'a>(&'a [u8], bool);

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let n = self.0.len().min(out.len()).min(1);
        out[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

#[test]
fn a_reader_that_gives_a_byte_at_a_time_gives_the_same_filter() {
    for info in KINDS {
        for n in [0, 10, 100_000] {
            let file = must(info, &config(info, n), &hashes(1, n)).to_bytes();
            let read = Open::new()
                .read::<AnyFilter>(Trickle(&file, false))
                .unwrap();
            assert!(read.to_bytes() == file, "{}, {n} keys", info.name);
            // The end comes too early, or not in time.
            assert!(
                Open::new()
                    .read::<AnyFilter>(Trickle(&file[..file.len() - 1], false))
                    .is_err()
            );
            let longer = [&file[..], &[0]].concat();
            assert!(
                Open::new()
                    .read::<AnyFilter>(Trickle(&longer, false))
                    .is_err()
            );
        }
    }
}

#[test]
fn a_reader_that_fails_is_an_error_not_a_short_filter() {
    struct Breaks(usize);
    impl Read for Breaks {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let n = self.0.min(out.len());
            self.0 -= n;
            out[..n].fill(0);
            if n > 0 {
                Ok(n)
            } else {
                Err(io::ErrorKind::ConnectionReset.into())
            }
        }
    }
    for after in [0, 1, 100] {
        let error = Open::new().read::<AnyFilter>(Breaks(after)).unwrap_err();
        assert!(
            matches!(error.kind(), DecodeErrorKind::Io(e) if e.kind() == io::ErrorKind::ConnectionReset)
        );
    }
    let file = KINDS[0]
        .build(&Config::new(10), &mut hashes(1, 10))
        .unwrap();
    let file = Keyed::from_filter(file, Hashing::default(), &Config::new(10))
        .unwrap()
        .to_bytes();
    let broken = (&file[..file.len() / 2]).chain(Breaks(0));
    assert!(matches!(
        Open::new().read::<AnyFilter>(broken).unwrap_err().kind(),
        DecodeErrorKind::Io(_)
    ));
}

#[test]
fn a_filter_can_go_through_a_pipe() {
    let filter = must(&KINDS[0], &config(&KINDS[0], 50_000), &hashes(2, 50_000));
    let (reader, writer) = io::pipe().unwrap();
    let file = filter.to_bytes();
    let received = std::thread::scope(|scope| {
        // More than a pipe holds, so both sides must work at once.
        scope.spawn(move || filter.write_to(writer).unwrap());
        Open::new().read::<AnyFilter>(reader).unwrap()
    });
    assert!(received.to_bytes() == file);
}

#[test]
fn the_form_of_keys_is_kept_and_one_that_is_not_known_is_refused() {
    let form = KeyForm::Kmer(31.try_into().unwrap());
    for info in KINDS {
        let plain = must(info, &config(info, 100), &hashes(3, 100));
        assert_eq!(plain.key_form(), KeyForm::Plain);
        assert_eq!(plain.to_bytes()[42..48], [0; 6]);
        let file = plain.clone().with_key_form(form).to_bytes();
        assert_eq!(file[42..48], [4, 0, 31, 0, 0, 0]);
        let again: Any = Keyed::open(file.clone()).unwrap();
        assert_eq!((again.key_form(), &again.to_bytes()), (form, &file));
        let encoded = again.clone().encoded().unwrap();
        assert_eq!((encoded.key_form(), encoded.as_bytes()), (form, &file[..]));
        // The form changes no other byte before the header's checksum.
        assert!(file[..42] == plain.to_bytes()[..42] && file[48..64] == plain.to_bytes()[48..64]);
        if info.can.merge {
            let told = again.clone().merge(&plain).unwrap_err().to_string();
            assert!(told.contains("k-mers of 31 bases here"), "{told}");
        }
        for (at, value) in [(42, 5), (42, 0), (43, 1), (44, 0), (46, 1), (47, 1)] {
            let mut forged = file.clone();
            forged[at] = value;
            repair_checksums(&mut forged);
            let refused = Keyed::<AnyFilter>::open(forged).unwrap_err();
            let unknown = matches!(refused.kind(), DecodeErrorKind::UnknownKeyForm(_));
            assert_eq!(
                unknown,
                (at, value) == (42, 5) || at == 43,
                "{at} {refused}"
            );
        }
    }
}

#[test]
fn the_field_of_keys_is_kept_and_no_other_file_changes() {
    for info in KINDS {
        let plain = must(info, &config(info, 100), &hashes(3, 100));
        assert_eq!(plain.key_field(), None);
        let longest = "é".repeat(512);
        for field in ["url", "user.id", &longest] {
            let named = plain.clone().with_key_field(Some(field));
            let file = named.to_bytes();
            assert_eq!(named.file_len(), file.len() as u64);
            assert_eq!(file[46..48], (field.len() as u16).to_le_bytes());
            let again: Any = Keyed::open(file.clone()).unwrap();
            assert_eq!((again.key_field(), &again.to_bytes()), (Some(field), &file));
            let encoded = again.clone().encoded().unwrap();
            assert_eq!(
                (encoded.key_field(), encoded.as_bytes()),
                (Some(field), &file[..])
            );
            let unnamed = again.with_key_field(None);
            assert!(unnamed.to_bytes() == plain.to_bytes());
        }
        // What could command a terminal, or is no name, is neither written nor read.
        let too_long = "x".repeat(1025);
        for no_field in ["", "a\nb", "\u{1B}[2J", "\u{9B}2J", &too_long] {
            let unnamed = plain.clone().with_key_field(Some(no_field));
            assert!(unnamed.to_bytes() == plain.to_bytes(), "{no_field:?}");
        }
        let file = plain.clone().with_key_field(Some("url")).to_bytes();
        let at = file.windows(3).position(|bytes| bytes == b"url").unwrap();
        for (at, value) in [
            (46, 2),
            (46, 4),
            (46, 0),
            (47, 1),
            (47, 8),
            (at, 0),
            (at, 0xFF),
        ] {
            let mut forged = file.clone();
            forged[at] = value;
            repair_checksums(&mut forged);
            assert!(Any::open(forged).is_err(), "{at} {value}");
        }
        if info.can.merge {
            let [url, link] =
                ["url", "link"].map(|field| plain.clone().with_key_field(Some(field)));
            for (other, field) in [(&url, Some("url")), (&link, None), (&plain, None)] {
                let mut union = url.clone();
                if union.merge(other).is_ok() {
                    assert_eq!(union.key_field(), field);
                }
            }
        }
    }
}

#[test]
fn what_is_no_filter_is_refused_after_its_first_bytes() {
    let (result, peak) = peak_of(|| Open::new().read::<AnyFilter>(io::repeat(b'x')));
    assert!(matches!(
        result.unwrap_err().kind(),
        DecodeErrorKind::NotAFilter
    ));
    assert!(peak < 1 << 20, "{peak} bytes were taken");
}

#[test]
fn a_withheld_secret_is_needed_and_must_be_the_right_one() {
    let secret = Hashing::secret(*b"0123456789abcdef").withheld();
    for info in KINDS {
        let config = config(info, 100).kind(info.name);
        let filter: Any = Keyed::build_with(&config, secret, 0..100u64).unwrap();
        let file = filter.to_bytes();
        assert!(
            !file.windows(16).any(|w| w == b"0123456789abcdef"),
            "the secret is in the file"
        );

        let error = Any::open(file.clone()).unwrap_err();
        assert!(
            matches!(error.kind(), DecodeErrorKind::SecretNeeded),
            "{error}"
        );
        for wrong in [Hashing::secret([0; 16]), Hashing::fast(0)] {
            let error = Open::new()
                .hashing(wrong)
                .bytes::<AnyFilter>(file.clone())
                .unwrap_err();
            assert!(
                matches!(error.kind(), DecodeErrorKind::WrongSecret),
                "{error}"
            );
        }
        // With or without the wish to withhold it: it is the same secret, and stays out of files.
        for right in [secret, Hashing::secret(*b"0123456789abcdef")] {
            let opened = Open::new()
                .hashing(right)
                .bytes::<AnyFilter>(file.clone())
                .unwrap();
            assert!((0..100u64).all(|key| opened.contains(&key)));
            assert!(opened.to_bytes() == file);
        }
    }
}

#[test]
fn a_secret_in_the_file_must_agree_with_the_one_given() {
    let secret = Hashing::secret([7; 16]);
    let filter: Keyed<SplitBlock512> =
        Keyed::build_with(&Config::new(10), secret, 0..10u64).unwrap();
    let file = filter.to_bytes();
    assert!((0..10u64).all(|key| Any::open(file.clone()).unwrap().contains(&key)));
    assert!(
        Open::new()
            .hashing(secret)
            .bytes::<AnyFilter>(file.clone())
            .is_ok()
    );
    let error = Open::new()
        .hashing(Hashing::secret([8; 16]))
        .bytes::<AnyFilter>(file)
        .unwrap_err();
    assert!(
        matches!(error.kind(), DecodeErrorKind::WrongSecret),
        "{error}"
    );
}

/// Writes a number into every field of the header that can announce something, and opens the
/// result.
#[test]
fn a_forged_file_takes_no_memory_on_its_word() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("forged.tamis");
    for info in KINDS {
        let file = must(info, &config(info, 20), &hashes(3, 20)).to_bytes();
        let header_len = u32::from_le_bytes(file[12..16].try_into().unwrap()) as usize;
        for at in (8..header_len - 8).step_by(2) {
            for huge in [
                u64::MAX,
                1 << 63,
                1 << 48,
                1 << 40,
                1 << 32,
                1 << 31,
                0xFFFF,
                1 << 16,
                64,
                0,
            ] {
                for width in [8, 4, 2] {
                    let mut forged = file.clone();
                    let end = (at + width).min(header_len - 8);
                    forged[at..end].copy_from_slice(&huge.to_le_bytes()[..end - at]);
                    repair_checksums(&mut forged);
                    let (result, peak) = peak_of(|| Any::open(forged.clone()));
                    assert!(
                        peak < 1 << 20,
                        "{}: {huge} at {at}: {peak} bytes",
                        info.name
                    );
                    if let Ok(opened) = result {
                        opened.filter().contains(hash(3, 0));
                    }
                    if width == 8 && at % 8 == 0 {
                        let (_, peak) = peak_of(|| Open::new().read::<AnyFilter>(&forged[..]));
                        assert!(
                            peak < 1 << 20,
                            "{}, read: {huge} at {at}: {peak}",
                            info.name
                        );
                    }
                }
            }
        }
        // The announced length alone, without the checksums: what a reader sees first.
        let mut forged = file.clone();
        forged[16..24].copy_from_slice(&(1u64 << 40).to_le_bytes());
        fs::write(&path, &forged).unwrap();
        let (result, peak) = peak_of(|| Any::load(&path));
        assert!(
            result.is_err() && peak < 1 << 20,
            "{}: {peak} bytes",
            info.name
        );
    }
}

#[test]
fn a_long_file_takes_no_memory_for_what_it_only_announces() {
    let mut file = must(&KINDS[0], &config(&KINDS[0], 100_000), &hashes(1, 100_000)).to_bytes();
    file[16..24].copy_from_slice(&(1u64 << 32).to_le_bytes());
    let (result, peak) = peak_of(|| Open::new().read::<AnyFilter>(&file[..]));
    assert!(result.is_err() && peak < 8 * file.len(), "{peak} bytes");
}

#[test]
fn the_checksum_of_a_block_depends_on_its_place() {
    let file = must(&KINDS[0], &config(&KINDS[0], 100_000), &hashes(1, 100_000)).to_bytes();
    // The sections, and a file of one block, are as the format says: see the golden files.
    let mut repaired = file.clone();
    repair_checksums(&mut repaired);
    assert!(repaired == file);
    assert!(file.len() > 65_536 + 4096, "one block");
}

#[test]
fn a_bit_after_the_last_field_is_refused() {
    let filter: Keyed<Cuckoo> = Keyed::build(&Config::new(10), ["a", "b"]).unwrap();
    let file = filter.to_bytes();
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    // After the fixed header and two parameters: where the table lies, and how long it is.
    let end = number(112) + number(120);
    for byte in end - 7..end {
        let mut forged = file.clone();
        assert_eq!(forged[byte], 0);
        forged[byte] = 1;
        repair_checksums(&mut forged);
        let error = Keyed::<Cuckoo>::open(forged).unwrap_err().to_string();
        assert!(error.contains("zero bits after the last field"), "{error}");
    }
}

#[test]
fn what_cannot_be_written_is_an_error_and_the_old_file_stays() {
    let filter: Keyed<Cuckoo> = Keyed::build(&Config::new(10), ["a", "b"]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing").join("f.tamis");
    assert_eq!(
        filter.save(&missing).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    assert!(!missing.parent().unwrap().exists());
    // A directory in the place of the file, or of its parent.
    assert!(filter.save(dir.path()).is_err());
    let file = dir.path().join("f.tamis");
    filter.save(&file).unwrap();
    assert!(filter.save(file.join("g.tamis")).is_err());
    assert!(Keyed::<Cuckoo>::load(&file).unwrap().contains("a"));
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "a temporary file was left"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error() {
    let filter: Keyed<Cuckoo> = Keyed::build(&Config::new(10), ["a", "b"]).unwrap();
    let error = filter.save("/dev/full").unwrap_err();
    assert_eq!(
        error.kind(),
        io::ErrorKind::InvalidInput,
        "not a regular file: {error}"
    );
    // Written to directly it is full, at once or when the buffer is flushed.
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let error = filter.write_to(&full).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
    let mut buffered = io::BufWriter::new(full);
    filter.write_to(&mut buffered).unwrap();
    assert_eq!(
        buffered.flush().unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );
    let _ = buffered.into_parts();
}

/// A sink that fails after so many bytes: every write of the file is tried as the one that fails.
#[test]
fn a_write_that_fails_anywhere_is_reported() {
    struct Holds(usize);
    impl Write for Holds {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            let n = data.len().min(self.0);
            self.0 -= n;
            if n == 0 && !data.is_empty() {
                Err(io::ErrorKind::StorageFull.into())
            } else {
                Ok(n)
            }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let filter: Keyed<Cuckoo> = Keyed::build(&Config::new(10), ["a", "b"]).unwrap();
    let len = filter.file_len() as usize;
    for room in 0..len {
        let error = filter.write_to(Holds(room)).unwrap_err();
        assert_eq!(
            error.kind(),
            io::ErrorKind::StorageFull,
            "room for {room} of {len}"
        );
    }
    filter.write_to(Holds(len)).unwrap();
}

#[cfg(unix)]
#[test]
fn a_directory_that_cannot_be_written_keeps_the_old_file() {
    use std::os::unix::fs::PermissionsExt;
    let old: Keyed<Cuckoo> = Keyed::build(&Config::new(10), ["old"]).unwrap();
    let new: Keyed<Cuckoo> = Keyed::build(&Config::new(10), ["new"]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    old.save(&path).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    // The superuser may write anywhere; then there is nothing to see.
    let enforced = fs::write(dir.path().join("probe"), b"").is_err();
    if enforced {
        let error = new.save(&path).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}");
        assert!(Keyed::<Cuckoo>::load(&path).unwrap().contains("old"));
    }
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_file_can_be_replaced_while_it_is_mapped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    let config = config(&KINDS[0], 100_000);
    let old = must(&KINDS[0], &config, &hashes(4, 100_000));
    old.save(&path).unwrap();
    #[allow(unsafe_code, reason = "the test is about mapping")]
    // SAFETY: the file is only replaced by a rename, which leaves the mapped one as it is.
    let mapped = unsafe { Mapped::open(&path) }.unwrap();
    let mapped: Any = Open::new().mapped(mapped).unwrap();
    must(&KINDS[0], &config, &hashes(5, 100_000))
        .save(&path)
        .unwrap();
    assert!(
        hashes(4, 100_000)
            .iter()
            .all(|&h| mapped.filter().contains(h))
    );
    assert!(mapped.to_bytes() == old.to_bytes());
    let new = Any::load(&path).unwrap();
    assert!(hashes(5, 100_000).iter().all(|&h| new.filter().contains(h)));
}

#[test]
fn every_flip_of_the_header_is_told_as_damage_of_the_header() {
    // A flipped version must not pass for a file of a newer program.
    let file = must(&KINDS[0], &config(&KINDS[0], 10), &hashes(1, 10)).to_bytes();
    for bit in 8 * 8..8 * 12 {
        let mut flipped = file.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let error = Any::open(flipped).unwrap_err();
        let is_damage = matches!(
            error.kind(),
            DecodeErrorKind::Checksum {
                part: "header",
                offset: 0
            }
        );
        assert!(is_damage, "bit {bit}: {error}");
    }
    let mut newer = file.clone();
    newer[8] = 2;
    repair_checksums(&mut newer);
    let error = Any::open(newer).unwrap_err();
    assert!(
        matches!(error.kind(), DecodeErrorKind::Newer { major: 2 }),
        "{error}"
    );
}

#[test]
fn damage_in_the_data_is_told_with_its_place() {
    let file = must(&KINDS[0], &config(&KINDS[0], 100_000), &hashes(1, 100_000)).to_bytes();
    let mut flipped = file.clone();
    let at = 192 + 65_536 + 17;
    flipped[at] ^= 4;
    let error = Any::open(flipped).unwrap_err();
    let DecodeErrorKind::Checksum {
        part: "data",
        offset,
    } = error.kind()
    else {
        panic!("{error}")
    };
    assert!(
        (*offset..offset + 65_536).contains(&(at as u64)) && *offset > 65_536,
        "{error}"
    );
}

#[test]
fn a_filter_without_a_rate_used_to_be_written_and_never_read() {
    for fpr in [0.0, 1.0, 2.0, f64::NAN] {
        let filter = KINDS[0].build(&Config::new(10), &mut []).unwrap();
        let config = Config::new(10).fpr(fpr);
        assert!(
            Keyed::from_filter(filter, Hashing::default(), &config).is_err(),
            "{fpr}"
        );
    }
}

#[test]
fn a_small_file_used_to_keep_a_large_buffer() {
    let file = must(&KINDS[0], &config(&KINDS[0], 10), &hashes(1, 10)).to_bytes();
    let before = support::counting::live();
    let loaded = Open::new().read::<AnyFilter>(&file[..]).unwrap();
    let held = support::counting::live() - before;
    assert!(
        held < 2 * file.len() as isize + 512,
        "{held} bytes held for a file of {}",
        file.len()
    );
    assert_eq!(loaded.filter().len(), 10);
}

#[test]
fn a_withheld_secret_opens_loaded_and_mapped_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f.tamis");
    let hashing = Hashing::secret([7; 16]).withheld();
    let filter: Keyed<Cuckoo> = Keyed::build_with(&Config::default(), hashing, ["alice"]).unwrap();
    filter.save(&path).unwrap();
    assert!(matches!(
        Any::load(&path).unwrap_err().kind(),
        DecodeErrorKind::SecretNeeded
    ));
    assert!(
        Open::new()
            .hashing(hashing)
            .load::<AnyFilter>(&path)
            .unwrap()
            .contains("alice")
    );
    #[allow(unsafe_code, reason = "mapping is unsafe; nobody changes the file")]
    // SAFETY: the file is this test's own and stays as it is.
    let mapped = unsafe { Mapped::open(&path) }.unwrap();
    let mapped: Any = Open::new().hashing(hashing).mapped(mapped).unwrap();
    assert!(mapped.contains("alice"));
}

#[test]
fn an_error_names_the_file_and_both_kinds() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f.tamis");
    let absent = Keyed::<Bloom>::load(&path).unwrap_err();
    assert!(absent.to_string().contains("f.tamis"), "{absent}");
    assert!(matches!(absent.kind(), DecodeErrorKind::Io(_)));

    let filter: Keyed<Cuckoo> = Keyed::build(&Config::default(), ["alice"]).unwrap();
    filter.save(&path).unwrap();
    let other = Keyed::<Bloom>::load(&path).unwrap_err();
    assert_eq!(other.path(), Some(&*path));
    let told = other.to_string();
    assert!(
        told.contains("f.tamis: ") && told.contains("a `cuckoo`"),
        "{told}"
    );
    assert!(told.contains("where a `bloom` was expected"), "{told}");
    assert!(!other.kind().to_string().contains("f.tamis"));
    let unnamed = Keyed::<Bloom>::open(filter.to_bytes()).unwrap_err();
    assert_eq!(unnamed.path(), None);
}

#[test]
fn what_is_not_to_be_verified_is_opened_as_it_is() {
    let filter: Keyed<SplitBlock512> = Keyed::build(&Config::default(), 0..1000u64).unwrap();
    let mut damaged = filter.to_bytes();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    assert!(matches!(
        Any::open(damaged.clone()).unwrap_err().kind(),
        DecodeErrorKind::Checksum { part: "data", .. }
    ));
    let open = Open::new().verify(false);
    let opened: Any = open.bytes(damaged.clone()).unwrap();
    assert_eq!(opened.len(), 1000);
    // The header and the length are compared in any case.
    assert!(open.bytes::<AnyFilter>(damaged[..middle].to_vec()).is_err());
    damaged[70] ^= 1;
    assert!(open.bytes::<AnyFilter>(damaged).is_err());
}

#[test]
fn what_was_verified_is_what_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("f.tamis");
    for hashing in [Hashing::default(), Hashing::secret([7; 16]).withheld()] {
        let filter: Keyed<SplitBlock512> =
            Keyed::build_with(&Config::default(), hashing, 0..10_000u64).unwrap();
        let expected = filter.to_bytes();
        let encoded = filter.encoded().unwrap();
        assert!(encoded.as_bytes() == expected);
        assert_eq!(encoded.file_len(), expected.len() as u64);
        assert!((0..10_000u64).all(|key| encoded.contains(&key)));
        // The arrays that are looked up lie in the bytes that are written, where numbers in memory
        // are as those in files.
        let blocks = encoded.filter().blocks().as_ptr_range();
        let bytes = encoded.as_bytes().as_ptr_range();
        let inside =
            bytes.start.addr() < blocks.start.addr() && blocks.end.addr() < bytes.end.addr();
        assert_eq!(inside, cfg!(target_endian = "little"));
        encoded.save(&path).unwrap();
        assert!(fs::read(&path).unwrap() == expected);
        let stopped = encoded.save_unless(&path, || true).unwrap_err();
        assert_eq!(stopped.to_string(), "stopped");
        assert!(fs::read(&path).unwrap() == expected);

        let mut changed = encoded.clone().into_filter();
        changed.insert("new").unwrap();
        assert!(encoded.as_bytes() == expected, "a change is of a copy");
    }
    // A kind whose file is coded otherwise than its memory is opened from its code.
    let coded: Keyed<Compressed> = Keyed::build(&Config::default(), 0..1000u64).unwrap();
    let expected = coded.to_bytes();
    assert!(coded.encoded().unwrap().as_bytes() == expected);
}
