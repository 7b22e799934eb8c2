//! What goes wrong: damaged, missing and unwilling files, and input that nobody wishes for.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::Command as Process;
use std::thread;

use assert_cmd::cargo_bin;

use common::{Ran, Room, numbers};

#[test]
fn every_flipped_bit_is_a_damaged_file_and_never_a_list_of_keys() {
    let room = Room::with_filter(b"a\nb\n");
    let whole = room.get("keys.tamis");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        room.put("flipped", &bytes);
        room.feed(b"a\n", ["check", "flipped"])
            .exits(3)
            .prints("")
            .complains(&["flipped: "]);
    }
    room.run(["info", "flipped"])
        .exits(3)
        .complains(&["flipped: "]);
}

#[test]
fn every_truncation_is_a_damaged_file_and_never_a_list_of_keys() {
    let room = Room::with_filter(b"a\nb\n");
    let whole = room.get("keys.tamis");
    for len in 1..whole.len() {
        room.put("cut", &whole[..len]);
        room.feed(b"a\n", ["check", "cut"])
            .exits(3)
            .prints("")
            .complains(&["cut: "]);
    }
    room.run(["info", "cut"]).exits(3).complains(&["cut short"]);
    room.feed(&whole[..100], ["check", "-", "keys.txt"])
        .exits(3)
        .complains(&["standard input: "]);
}

#[test]
fn what_is_no_filter_is_told_so() {
    let room = Room::with_filter(b"a\n");
    room.put("empty", b"");
    for file in ["keys.txt", "empty"] {
        room.run(["info", file]).exits(3).complains(&[file]);
    }
    room.run(["build", "keys.tamis", "-o", "f"])
        .exits(2)
        .complains(&["keys.tamis", "not a list of keys"]);
}

#[test]
fn a_missing_file_is_exit_code_4_and_named() {
    let room = Room::with_filter(b"a\n");
    for args in [
        &["build", "absent", "-o", "f"][..],
        &["check", "absent"],
        &["check", "keys.tamis", "absent"],
        &["info", "absent"],
    ] {
        room.run(args).exits(4).complains(&["absent: No such file"]);
    }
    room.run(["build", "keys.txt", "-o", "absent/f"])
        .exits(4)
        .complains(&["absent/f: No such file"]);
    room.run(["info", "two\nlines"])
        .exits(4)
        .complains(&[r"two\nlines"]);
}

#[test]
fn a_directory_is_neither_keys_nor_filter_nor_target() {
    let room = Room::with_filter(b"a\n");
    fs::create_dir(room.path("dir")).unwrap();
    for args in [
        &["build", "dir", "-o", "f"][..],
        &["build", "keys.txt", "-o", "dir"],
        &["build", "keys.txt", "-o", "dir", "--force"],
        &["check", "dir"],
        &["check", "keys.tamis", "dir"],
        &["info", "dir"],
        &["add", "dir"],
        &["remove", "dir"],
    ] {
        room.run(args).exits(4).complains(&["dir: "]);
    }
    let verified = room.run(["verify", "dir"]).exits(4).prints("dir: bad\n");
    verified.complains(&["dir: "]);
    assert_eq!(room.names(), ["dir", "keys.tamis", "keys.txt"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output_is_exit_code_4() {
    let room = Room::with_filter(b"a\n");
    for args in [
        &["build", "keys.txt", "-o", "-"][..],
        &["build", "keys.txt", "-o", "f", "--json"],
        &["check", "keys.tamis", "keys.txt"],
        &["check", "keys.tamis", "keys.txt", "-c"],
        &["check", "keys.tamis", "keys.txt", "--json"],
        &["info", "keys.tamis"],
        &["verify", "keys.tamis"],
        &["verify", "keys.tamis", "--json"],
        &["kinds"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = Process::new(cargo_bin!("tamis"))
            .args(args)
            .current_dir(room.0.path())
            .stdout(full)
            .output();
        Ran(ran.unwrap()).exits(4).complains(&["standard output: "]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_standard_error_that_takes_nothing_changes_nothing() {
    let room = Room::with_filter(b"a\n");
    for (args, code) in [
        (&["build", "keys.txt", "-o", "f", "--verbose"][..], 0),
        (&["info", "absent"], 4),
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let ran = Process::new(cargo_bin!("tamis"))
            .args(args)
            .current_dir(room.0.path())
            .stderr(full)
            .output();
        Ran(ran.unwrap()).exits(code);
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_be_written_whole_leaves_the_old_one() {
    let room = Room::with_filter(&numbers(0..10_000));
    room.put("old", b"old");
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" build keys.txt -o old --force";
    let ran = Process::new("sh")
        .args([
            "-c".as_ref(),
            script.as_ref(),
            cargo_bin!("tamis").as_os_str(),
        ])
        .current_dir(room.0.path())
        .output();
    Ran(ran.unwrap())
        .exits(4)
        .complains(&["old: ", "too large"]);
    assert_eq!(room.get("old"), b"old");
    assert_eq!(room.names(), ["keys.tamis", "keys.txt", "old"]);
}

#[test]
fn a_reader_that_leaves_is_no_error_unless_it_was_to_have_a_filter() {
    let room = Room::with_filter(&numbers(0..1_000_000));
    let left_alone = |args: &[&str]| {
        let mut child = room.spawn(args);
        let mut line = Vec::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_until(b'\n', &mut line).unwrap();
        drop(output);
        Ran(child.wait_with_output().unwrap())
    };
    left_alone(&["check", "keys.tamis", "keys.txt"])
        .exits(0)
        .says_nothing();
    // Lines that nobody wants any more are not missed; a filter of which half arrived is of no
    // use.
    left_alone(&["build", "keys.txt", "-o", "-"])
        .exits(4)
        .complains(&["standard output"]);
}

#[test]
fn keys_may_hold_any_byte_but_a_line_end() {
    let room = Room::new();
    let keys: Vec<u8> = (0..=255u8)
        .filter(|&byte| byte != b'\n')
        .flat_map(|byte| [byte, b'x', byte, b'y', b'\n'])
        .collect();
    room.put("keys.txt", &keys);
    let build = ["build", "keys.txt", "-o", "f", "--json", "--fpr", "1e-9"];
    assert_eq!(room.run(build).exits(0).json()["keys"], 255);
    room.run(["check", "f", "keys.txt"]).exits(0).prints(&keys);
    room.feed(b"\0\n\xFF\n", ["check", "f"]).exits(1);
}

#[test]
fn a_carriage_return_belongs_to_the_line_end_only_before_it() {
    let room = Room::with_filter(b"a\r\nb\rc\r\n");
    room.feed(b"a\nb\rc\na\r", ["check", "keys.tamis"])
        .exits(0)
        .prints("a\nb\rc\n");
}

#[test]
fn a_line_of_64_mib_is_a_key_like_any_other() {
    let room = Room::new();
    let mut keys = b"x".repeat(64 << 20);
    keys.extend(b"\nshort\n");
    room.put("keys.txt", &keys);
    let build = ["build", "keys.txt", "-o", "f", "--json", "--fpr", "1e-9"];
    assert_eq!(room.run(build).exits(0).json()["keys"], 2);
    room.run(["check", "f", "keys.txt"]).exits(0).prints(&keys);
    keys[0] = b'y';
    room.feed(&keys, ["check", "f"]).exits(0).prints("short\n");
}

#[cfg(unix)]
#[test]
fn a_named_pipe_serves_as_keys_as_lines_and_as_a_filter() {
    let room = Room::with_filter(b"a\nb\n");
    let made = Process::new("mkfifo")
        .arg(room.path("pipe"))
        .status()
        .unwrap();
    assert!(made.success());
    let filter = room.get("keys.tamis");
    for (args, bytes, out) in [
        (
            &["build", "pipe", "-o", "-"][..],
            &b"a\nb\n"[..],
            &filter[..],
        ),
        (&["check", "keys.tamis", "pipe"], b"a\nc\n", b"a\n"),
        (&["check", "pipe", "keys.txt"], &filter, b"a\nb\n"),
        (&["check", "pipe", "keys.txt"], b"b\n", b"b\n"),
    ] {
        let (path, bytes) = (room.path("pipe"), bytes.to_vec());
        let writer = thread::spawn(move || fs::write(path, bytes).unwrap());
        room.run(args).exits(0).prints(out);
        writer.join().unwrap();
    }
    room.run(["build", "keys.txt", "-o", "pipe", "--force"])
        .exits(4)
        .complains(&["pipe: not a regular file"]);
}

#[cfg(unix)]
#[test]
fn a_record_beyond_a_gibibyte_is_refused() {
    let room = Room::with_filter(b"a\n");
    // A file of holes: it takes no room on the disk.
    let file = File::create(room.path("long")).unwrap();
    file.set_len((1 << 30) + 100).unwrap();
    room.run(["build", "long", "-o", "f"])
        .exits(4)
        .complains(&["long: a record is longer than 1.0 GiB"]);
    assert!(!room.path("f").exists());
}

/// Files that nobody may read: by their mode where that holds for this user, and for one who
/// reads everything the memory of a process, whose first page is never there.
#[cfg(target_os = "linux")]
#[test]
fn an_unreadable_file_is_exit_code_4() {
    use std::os::unix::fs::PermissionsExt;
    let room = Room::with_filter(b"a\n");
    room.filter("bloom", 0..9, &["--kind", "bloom"]);
    room.put("locked", b"a\n");
    fs::set_permissions(room.path("locked"), fs::Permissions::from_mode(0o000)).unwrap();
    let (file, why) = match File::open(room.path("locked")) {
        Err(_) => ("locked", "Permission denied"),
        Ok(_) => ("/proc/self/mem", "Input/output error"),
    };
    for args in [
        &["build", file, "-o", "f"][..],
        &["check", "keys.tamis", file],
        &["check", file],
        &["verify", "-q", "keys.tamis", "--keys", file],
        &["info", file],
        &["dedup", file],
        &["verify", "-q", file],
        &["add", file],
        &["add", "bloom", file],
        &["diff", file, file],
    ] {
        let ran = room.run(args).exits(4);
        if !args.contains(&"-q") {
            ran.complains(&[file, why]);
        }
    }
    assert!(!room.path("f").exists());
}

/// Sends a signal to a program of ours.
#[cfg(unix)]
fn signal(child: &std::process::Child, name: &str) {
    let id = child.id().to_string();
    Process::new("kill")
        .args(["-s", name, &id])
        .status()
        .unwrap();
}

#[cfg(unix)]
#[test]
fn an_interrupted_build_leaves_the_old_file_and_no_other() {
    use std::os::unix::process::ExitStatusExt;
    let room = Room::with_filter(&numbers(0..400_000));
    let new = room.get("keys.tamis");
    let mut interrupted = 0;
    for (round, name) in ["INT", "TERM", "HUP"].iter().cycle().take(24).enumerate() {
        room.put("old", b"old");
        let mut child = room.spawn(["build", "keys.txt", "-o", "old", "--force"]);
        thread::sleep(std::time::Duration::from_millis(4 * round as u64));
        signal(&child, name);
        let status = child.wait().unwrap();
        let left = room.get("old");
        if status.success() {
            assert!(left == new);
        } else {
            assert!(status.signal().is_some(), "{status}");
            assert!(left == b"old" || left == new, "half a file");
            interrupted += 1;
        }
        assert_eq!(room.names(), ["keys.tamis", "keys.txt", "old"]);
    }
    assert!(interrupted > 0);
}

#[cfg(unix)]
#[test]
fn an_interrupt_while_the_file_is_saved_takes_the_temporary_file_away() {
    use std::os::unix::process::ExitStatusExt;
    let room = Room::with_filter(b"a\n");
    room.put("old", b"old");
    // 120 MB, which take some time to write.
    let large = ["--kind", "bloom", "--capacity", "100000000"];
    let args = ["build", "keys.txt", "-o", "old", "--force"];
    let mut child = room.spawn([&args[..], &large].concat());
    while !room.names().iter().any(|name| name.ends_with(".tmp")) {
        assert!(child.try_wait().unwrap().is_none(), "it has ended too soon");
    }
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    assert_eq!(room.names(), ["keys.tamis", "keys.txt", "old"]);
    assert_eq!(room.get("old"), b"old");
}

#[cfg(unix)]
#[test]
fn a_build_that_waits_for_keys_is_interrupted_at_once() {
    use std::os::unix::process::ExitStatusExt;
    let room = Room::new();
    let mut child = room.spawn(["build", "-o", "f"]);
    // Held, as waiting for the program would close it, and then there are no more keys.
    let input = child.stdin.take();
    thread::sleep(std::time::Duration::from_millis(300));
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    drop(input);
    assert!(room.names().is_empty());
}

#[cfg(unix)]
#[test]
fn a_disk_without_room_for_the_hashes_is_exit_code_4() {
    let room = Room::new();
    room.put("keys.txt", numbers(0..600_000));
    // No file of more than 1 KiB: the disk is full for the hashes.
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$0\" build keys.txt -o f --max-memory 1M";
    let ran = Process::new("sh")
        .args([
            "-c".as_ref(),
            script.as_ref(),
            cargo_bin!("tamis").as_os_str(),
        ])
        .current_dir(room.0.path())
        .output();
    Ran(ran.unwrap())
        .exits(4)
        .complains(&["f: the hashes cannot be kept", "too large"]);
    assert_eq!(room.names(), ["keys.txt"]);
}

#[test]
fn no_colour_where_none_is_wanted() {
    let room = Room::new();
    let mut command = room.command();
    let out = command
        .env("NO_COLOR", "1")
        .env("CLICOLOR_FORCE", "1")
        .arg("buld")
        .output()
        .unwrap();
    assert!(!out.stderr.contains(&0x1B));
    assert_eq!(out.status.code(), Some(2));
}

#[test]
fn what_is_read_is_not_written_over() {
    let room = Room::with_filter(b"a\nb\n");
    fs::create_dir(room.path("dir")).unwrap();
    for args in [
        &["build", "keys.txt", "-o", "keys.txt", "--force"][..],
        &["build", "keys.txt", "-o", "dir/../keys.txt", "--force"],
        &["report", "keys.tamis", "-o", "keys.tamis", "--force"],
    ] {
        room.run(args).exits(2).complains(&["read"]);
    }
    assert_eq!(room.get("keys.txt"), b"a\nb\n");
    room.run(["info", "keys.tamis"]).exits(0);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("keys.txt", room.path("link")).unwrap();
        room.run(["build", "keys.txt", "-o", "link", "--force"])
            .exits(2);
    }
}

/// Appended to what is read, the output would never end.
#[cfg(unix)]
#[test]
fn standard_output_is_no_file_that_is_read() {
    let room = Room::with_filter(b"a\nb\n");
    let tamis = cargo_bin!("tamis");
    for script in [
        "\"$0\" check keys.tamis keys.txt >> keys.txt",
        "\"$0\" check keys.tamis < keys.txt >> keys.txt",
        "\"$0\" dedup keys.txt >> keys.txt",
    ] {
        let ran = Process::new("sh")
            .args(["-c".as_ref(), script.as_ref(), tamis.as_os_str()])
            .current_dir(room.0.path())
            .output();
        Ran(ran.unwrap()).exits(2).complains(&["also the output"]);
        assert_eq!(room.get("keys.txt"), b"a\nb\n");
    }
}

#[test]
fn a_target_that_cannot_be_written_is_refused_before_keys_are_read() {
    let room = Room::with_filter(b"a\n");
    for args in [
        &["build", "-o", "absent/f"][..],
        &["build", "-o", "f", "--temp-dir", "absent"],
    ] {
        let mut child = room.spawn(args);
        // The keys never end; only a refusal lets this return.
        let input = child.stdin.take();
        let mut said = String::new();
        let mut stderr = child.stderr.take().unwrap();
        std::io::Read::read_to_string(&mut stderr, &mut said).unwrap();
        assert!(said.contains("absent"), "{said}");
        assert_eq!(child.wait().unwrap().code(), Some(4));
        drop(input);
    }
    assert_eq!(room.names(), ["keys.tamis", "keys.txt"]);
}

#[test]
fn standard_input_is_read_once() {
    let room = Room::with_filter(b"a\n");
    let filter = room.get("keys.tamis");
    for args in [
        &["diff", "-", "-"][..],
        &["merge", "-", "-", "-o", "f"],
        &["bench", "--against", "-"],
        &["bench", "-", "--against", "-"],
    ] {
        room.feed(&filter, args)
            .exits(2)
            .complains(&["standard input: can be read only once"]);
    }
}

/// As under `nohup`, or in the background of a script.
#[cfg(target_os = "linux")]
#[test]
fn a_signal_that_is_ignored_stays_so() {
    let room = Room::with_filter(b"a\n");
    // The hashes wait on disk while the signals come.
    let script = "trap '' HUP INT; (seq 60000; sleep 1) | \"$0\" build -o f --max-memory 1M & \
                  sleep 0.5; kill -HUP $!; kill -INT $!; wait $!";
    let ran = Process::new("sh")
        .args([
            "-c".as_ref(),
            script.as_ref(),
            cargo_bin!("tamis").as_os_str(),
        ])
        .current_dir(room.0.path())
        .output();
    Ran(ran.unwrap()).exits(0).says_nothing();
    room.run(["info", "f"]).exits(0);
}

#[cfg(unix)]
#[test]
fn an_interrupted_merge_or_fold_leaves_no_temporary_file() {
    use std::os::unix::process::ExitStatusExt;
    let room = Room::new();
    // 60 MB, which take some time to write.
    let large = ["--kind", "bloom", "--capacity", "50000000"];
    room.filter("a", 0..9, &large);
    room.filter("q", 0..9, &["--kind", "quotient", "--capacity", "50000000"]);
    for args in [
        &["merge", "a", "a", "-o", "f"][..],
        &["merge", "q", "q", "-o", "f", "--max-memory", "1M"],
        &["halve", "a", "-o", "f"],
    ] {
        let interrupted = (0..20).any(|_| {
            let mut child = room.spawn(args);
            while !room.names().iter().any(|name| name.ends_with(".tmp")) {
                assert!(child.try_wait().unwrap().is_none(), "it has ended too soon");
            }
            signal(&child, "INT");
            let status = child.wait().unwrap();
            if room.names() == ["a", "q"] {
                assert_eq!(status.signal(), Some(2));
                return true;
            }
            // The signal came when all was written and in its place: the file is whole, and this
            // was no test.
            assert_eq!(room.names(), ["a", "f", "q"]);
            room.run(["verify", "f"]).exits(0);
            std::fs::remove_file(room.path("f")).unwrap();
            false
        });
        assert!(interrupted, "{args:?} was never interrupted while it wrote");
    }
}

#[cfg(unix)]
#[test]
fn a_secret_without_end_is_refused() {
    let room = Room::with_filter(b"a\n");
    room.run(["build", "keys.txt", "-o", "f", "--secret", "file:/dev/zero"])
        .exits(2)
        .complains(&["/dev/zero: ", "32 hexadecimal"]);
}

/// The program reads filters whole: what becomes of the file afterwards cannot end it, as it
/// could where it is mapped.
#[cfg(unix)]
#[test]
fn a_filter_that_is_cut_or_replaced_while_it_is_used_answers_on() {
    use std::io::Write;
    let room = Room::new();
    room.filter("f", 0..200_000, &["--kind", "bloom"]);
    room.filter("other", 0..10, &["--kind", "bloom"]);
    for cut in [true, false] {
        let mut child = room.spawn(["check", "f", "-"]);
        let mut input = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (half, rest) = (numbers(0..100_000), numbers(100_000..200_000));
        let first = thread::spawn(move || {
            input.write_all(&half).unwrap();
            input
        });
        // Whoever answers has read the filter.
        assert_eq!(lines.next().unwrap().unwrap(), "0");
        if cut {
            File::options()
                .write(true)
                .open(room.path("f"))
                .and_then(|file| file.set_len(100))
                .unwrap();
        } else {
            fs::copy(room.path("other"), room.path("f")).unwrap();
        }
        let second = thread::spawn(move || first.join().unwrap().write_all(&rest).unwrap());
        assert_eq!(lines.count(), 199_999);
        second.join().unwrap();
        assert!(child.wait().unwrap().success());
        room.filter("f", 0..200_000, &["--kind", "bloom"]);
    }
}
