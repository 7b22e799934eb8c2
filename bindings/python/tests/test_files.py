"""A file is the same bytes whoever made it, and comes back as it was."""

from __future__ import annotations

import errno
import io
import multiprocessing
import os
import pickle
import subprocess
import sys

import pytest
import tamis
from conftest import KINDS, ROOT

GOLDEN = ROOT / "crates/tamis/tests/golden"


def words(n):
    return [f"present-{i}" for i in range(n)]


def config_of(text):
    kind, _, params = text.partition(":")
    pairs = dict(pair.split("=") for pair in params.split(","))
    return kind, int(pairs.pop("capacity")), float(pairs.pop("fpr")), pairs


def test_the_same_keys_make_the_bytes_that_rust_makes(kind):
    told = (GOLDEN / f"{kind}.txt").read_text().splitlines()
    named, capacity, fpr, params = config_of(told[0])
    assert named == kind
    made = tamis.Filter(kind, capacity, fpr, words(capacity), **params)
    assert made.to_bytes() == (GOLDEN / f"{kind}.tamis").read_bytes()
    absent = [f"absent-{i}" for i in range(100_000)]
    found = [key for key, hit in zip(absent, made.contains_many(absent)) if hit]
    assert found[:20] == told[4:]


def test_the_same_keys_make_the_bytes_that_the_program_makes(kind, program, tmp_path):
    keys = [f"k{i * i}" for i in range(3000)] + ["k0", "k1"]
    (tmp_path / "keys").write_text("".join(f"{key}\n" for key in keys))
    command = [program, "build", "keys", "-o", "made.tamis", "--kind", kind]
    command += ["--capacity", "3200"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    made = tamis.build(keys, kind, 3200)
    assert made.to_bytes() == (tmp_path / "made.tamis").read_bytes()
    made.save(tmp_path / "saved.tamis")
    assert (tmp_path / "saved.tamis").read_bytes() == (tmp_path / "made.tamis").read_bytes()
    if "insert" in made.can:
        # Keys that come later, by Rust's insertions in both.
        (tmp_path / "more").write_text("".join(f"more-{i}\n" for i in range(2)))
        command = [program, "add", "made.tamis", "more"]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
        made.update(["more-0", "more-1"])
        assert made.to_bytes() == (tmp_path / "made.tamis").read_bytes()


@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if "map" in kind.can])
def test_the_same_pairs_make_the_bytes_that_the_program_makes(kind, program, tmp_path):
    pairs = {f"item {i}": i * i for i in range(3000)}
    lines = "".join(f"{key},{value}\n" for key, value in pairs.items())
    (tmp_path / "prices.csv").write_text(f"item,cents\n{lines}")
    command = [program, "build", "prices.csv", "-f", "item", "--value-field", "cents"]
    command += ["-o", "made.tamis", "--kind", kind]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    files = tamis.Map(pairs, kind=kind).to_bytes(), (tmp_path / "made.tamis").read_bytes()
    assert tamis.open(tmp_path / "made.tamis").key_field == "item"

    # The program remembers the field, in the header and nowhere else.
    def but_for_the_field(file):
        header, parameters = (int.from_bytes(file[a:b], "little") for a, b in [(12, 16), (38, 40)])
        return file[32:46], file[48 : 96 + 8 * parameters], file[header:-16]

    assert but_for_the_field(files[0]) == but_for_the_field(files[1])


@pytest.mark.parametrize("fpr", [0.2, 0.01, 0.001, 1e-4, 1e-9])
@pytest.mark.parametrize("capacity", [None, 1050, 5000])
def test_the_default_kind_is_the_programs(fpr, capacity, program, tmp_path):
    keys = [str(i % 1000) for i in range(1100)]
    (tmp_path / "keys").write_text("".join(f"{key}\n" for key in keys))
    command = [program, "build", "keys", "-o", "made.tamis", "--fpr", str(fpr)]
    if capacity:
        command += ["--capacity", str(capacity)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    made = tamis.build(keys, fpr=fpr, capacity=capacity)
    assert made.to_bytes() == (tmp_path / "made.tamis").read_bytes()


def test_python_runs_the_same_program(program, tmp_path):
    (tmp_path / "keys").write_text("a\nb\n")

    def run(*command):
        return subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)

    python = [sys.executable, "-m", "tamis"]
    for arguments in (
        ["--version"],
        ["--help"],
        ["kinds", "--json"],
        ["nonsense"],
        ["info", "none"],
    ):
        ours, theirs = run(*python, *arguments), run(program, *arguments)
        assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout)
        assert ours.stderr == theirs.stderr
    assert run(*python, "build", "keys", "-o", "f.tamis").returncode == 0
    assert run(*python, "check", "f.tamis", "keys").stdout == b"a\nb\n"
    assert run(*python, "check", "-v", "f.tamis", "keys").returncode == 1


def test_a_file_comes_back_as_it_was(kind, tmp_path):
    made = tamis.Filter(kind, 1000, keys=words(1000))
    path = tmp_path / "f.tamis"
    made.save(path)
    again = [
        tamis.open(path),
        tamis.open(str(path)),
        tamis.open(os.fsencode(path)),
        tamis.open(path, mmap=True),
        tamis.open(path, mmap=True, verify=False),
        tamis.load(path.read_bytes()),
        tamis.load(bytearray(path.read_bytes())),
        tamis.load(memoryview(path.read_bytes())),
        tamis.load(made.view()),
        tamis.load(io.BytesIO(path.read_bytes())),
        pickle.loads(pickle.dumps(made)),
        made.copy(),
    ]
    with path.open("rb") as file:
        again.append(tamis.open(file))
    assert all(made == other for other in again)
    assert all(all(other.contains_many(words(1000))) for other in again)
    assert made.to_bytes() == path.read_bytes() == bytes(made.view())


def test_a_filter_in_lent_bytes_can_be_changed_and_leaves_them_alone():
    made = tamis.Filter("split_block", 1000, keys=words(10))
    view = made.view()
    before = bytes(view)
    assert view.readonly
    assert made.view() == view
    made.add("new")
    assert "new" in made
    assert bytes(view) == before
    assert "new" not in tamis.load(view)
    assert "new" in tamis.load(made.view())
    del made
    assert bytes(view) == before


def test_nobody_writes_to_lent_bytes(tmp_path):
    path = tmp_path / "f.tamis"
    tamis.Filter("bloom", 1000, keys=words(10)).save(path)
    mapped = tamis.open(path, mmap=True)
    view = mapped.view()
    for writable in (view, view.obj):
        with pytest.raises(TypeError):
            writable[0] = 1
    assert view.nbytes == path.stat().st_size
    # Another object of the class behind it holds nothing.
    try:
        other = type(view.obj)()
    except TypeError:
        pass
    else:
        assert bytes(other) == b""
    with pytest.raises((BufferError, TypeError)):
        io.BytesIO(b"x").readinto(view)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="`view` is the way before Python 3.12")
def test_a_filter_is_a_buffer():
    for made in (tamis.Filter("bloom", 1000, keys=words(10)), tamis.Map({"a": 1})):
        view = memoryview(made)
        assert view == made.view()
        assert view.readonly
        assert bytes(made) == made.to_bytes()
        assert tamis.load(made) == made
        del made
        assert tamis.load(view)


def test_files_that_take_a_part_get_the_rest(tmp_path):
    class Slow(io.RawIOBase):
        taken = b""

        def writable(self):
            return True

        def write(self, data):
            self.taken += bytes(data)[:100]
            return min(len(data), 100)

    made = tamis.Filter("bloom", 1000, keys=words(10))
    slow = Slow()
    made.save(slow)
    assert slow.taken == made.to_bytes()

    class Wrong:
        def __init__(self, answer):
            self.answer = answer

        def write(self, data):
            return self.answer

    made.save(Wrong(None))
    with pytest.raises(OSError, match="no more"):
        made.save(Wrong(0))
    with pytest.raises(OSError, match="no more"):
        made.save(Wrong(-1))
    with pytest.raises(TypeError):
        made.save(io.StringIO())


def test_bytes_are_lent_and_not_copied():
    data = tamis.Filter("split_block", 1_000_000).to_bytes()
    before = sys.getrefcount(data)
    lent = tamis.load(data)
    assert sys.getrefcount(data) > before
    del lent
    assert sys.getrefcount(data) == before


def test_a_file_that_changes_does_not_change_a_filter_that_was_opened(tmp_path):
    path = tmp_path / "f.tamis"
    made = tamis.Filter("bloom", 100_000, keys=range(100_000))
    made.save(path)
    opened = tamis.open(path)
    path.write_bytes(b"")
    assert opened == made


def test_a_damaged_file_is_an_error(tmp_path):
    data = bytearray(tamis.build(words(1000)).to_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "f.tamis").write_bytes(data)
    for opened in (
        lambda: tamis.load(bytes(data)),
        lambda: tamis.open(tmp_path / "f.tamis"),
        lambda: tamis.open(tmp_path / "f.tamis", mmap=True),
        lambda: tamis.load(b""),
        lambda: tamis.load(b"nonsense"),
        lambda: tamis.open(io.BytesIO(b"x" * 1000)),
    ):
        with pytest.raises(tamis.DecodeError):
            opened()
    for mmap in (False, True):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            tamis.open(tmp_path / "nowhere", mmap=mmap)
    with pytest.raises(OSError, match="nowhere"):
        tamis.Filter(capacity=9).save(tmp_path / "nowhere" / "f.tamis")
    with (tmp_path / "text").open("w+") as text, pytest.raises(TypeError, match="`rb`"):
        tamis.open(text)
    with (tmp_path / "f.tamis").open("rb") as file, pytest.raises(TypeError, match="path"):
        tamis.open(file, mmap=True)
    closed = (tmp_path / "f.tamis").open("rb")
    closed.close()
    with pytest.raises(ValueError, match="closed"):
        tamis.open(closed)


def test_a_secret_is_kept_out_of_files_and_carried_by_pickles():
    secret = bytes(range(16))
    made = tamis.Filter(capacity=100, secret=secret, keys=["alice"])
    assert made.seed is None
    assert secret not in made.to_bytes()
    with pytest.raises(tamis.DecodeError, match="secret"):
        tamis.load(made.to_bytes())
    with pytest.raises(tamis.DecodeError, match="secret"):
        tamis.load(made.to_bytes(), secret=b"\0" * 16)
    for other in (
        tamis.load(made.to_bytes(), secret=secret.hex()),
        pickle.loads(pickle.dumps(made)),
    ):
        assert "alice" in other
        assert other == made
    random = tamis.Filter(capacity=100, secret="random", keys=["alice"])
    assert "alice" in tamis.load(random.to_bytes())
    assert random.hash("alice") != tamis.Filter(capacity=100, secret="random").hash("alice")
    for wrong in (b"short", "nonsense", "0" * 31, "é" * 16):
        with pytest.raises(ValueError, match="a secret is"):
            tamis.Filter(capacity=9, secret=wrong)


def work(made):
    made.add("from a worker")
    return made


def test_filters_go_to_other_processes_and_come_back():
    made = tamis.Filter("cuckoo", 1000, keys=["alice"])
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (back,) = pool.map(work, [made])
    assert "from a worker" in back
    assert "alice" in back
    assert "from a worker" not in made


def test_a_forked_process_has_a_filter_of_its_own():
    code = (
        "import os, numpy as np, tamis\n"
        "keys = np.arange(200_000)\n"
        "made = tamis.build(keys, 'bloom', threads=2)\n"
        "child = os.fork()\n"
        "made.add('from here')\n"
        # The threads that built it are not there.
        "assert tamis.build(keys, 'binary_fuse8', threads=2).issuperset(keys)\n"
        "made.update(keys + 200_000, threads=2)\n"
        "if child == 0:\n"
        "    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert len(made) == 400_001\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_hashes_are_the_same_in_every_process():
    code = (
        "import tamis; f = tamis.Filter(capacity=9); print(f.hash('a'), f.hash(42), f.hash(b'x'))"
    )

    def hashed(seed):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.check_output([sys.executable, "-c", code], env=environment)

    made = tamis.Filter(capacity=9)
    assert hashed("1") == hashed("2")
    assert hashed("1").split() == [str(made.hash(key)).encode() for key in ("a", 42, b"x")]


def test_a_file_that_is_not_there_has_its_number():
    for mapped in (False, True):
        with pytest.raises(FileNotFoundError) as told:
            tamis.open("nowhere.tamis", mmap=mapped)
        assert told.value.errno == errno.ENOENT
        assert "nowhere.tamis" in str(told.value)
