"""A key means what it means in Rust, alone and by the million."""

from __future__ import annotations

import array
import ipaddress
import pathlib
import signal
import struct
import sys
import uuid

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import tamis
from hypothesis import given
from hypothesis import strategies as st

FILTER = tamis.Filter(capacity=1000)
SECRET = tamis.Filter(capacity=1000, secret=bytes(range(16)))


def test_hashes_are_those_of_rust():
    # As `tuples_and_addresses_hash_as_in_other_languages` in crates/tamis/src/key.rs.
    keys = [
        -1,
        ipaddress.ip_address("127.0.0.1"),
        ipaddress.ip_address("2001:db8::1"),
        ("a", "bc"),
        ("alice", 42, b"\0"),
        (1, 2, 3, 4),
        ("a", ("b", "c")),
    ]
    xxh3 = [
        0x5111_C7E4_7D78_4413,
        0xAB57_9567_62B0_28C1,
        0x275C_8FA5_8C2D_19A0,
        0x14B6_B905_EE69_2897,
        0x16E6_CDFC_7FC0_85FF,
        0xE4D6_DCE6_74D8_EB5C,
        0x0CA9_D4E6_1478_ED97,
    ]
    assert [FILTER.hash(key) for key in keys] == xxh3 == FILTER.hash_many(keys)
    siphash = [0x823F_3073_1145_3347, 0xEB5B_87B8_FC21_4947, 0x1B55_009D_1F66_1474]
    assert SECRET.hash_many(keys[:3]) == siphash


def test_a_number_is_one_key_whatever_its_type():
    kinds = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, int]
    assert {FILTER.hash(kind(42)) for kind in kinds} == {FILTER.hash(42)}
    assert FILTER.hash(42) == FILTER.hash((42).to_bytes(8, "little"))
    assert FILTER.hash(2**64 - 1) == FILTER.hash(b"\xff" * 8) == FILTER.hash(-1)


def test_text_is_its_utf8():
    for text in ("", "a", "é", "日本", "🦀", "a\0b"):
        same = [text, np.str_(text), text.encode(), bytearray(text.encode())]
        same += [memoryview(text.encode()), np.bytes_(text.encode())]
        if "\0" not in text and text:
            same.append(pathlib.PurePath(text))
        assert len({FILTER.hash(key) for key in same}) == 1, text


class NoNumber:
    """Breaks the promise of its method."""

    def __index__(self):
        return "a"


MORE = [np.array("a"), np.array([1]), np.array([1, 2]), np.array(True), NoNumber()]
MORE += [np.float64(1), uuid.uuid4(), Ellipsis, int, {1}, lambda: 0]


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        1.0,
        True,
        np.bool_(1),
        1j,
        object(),
        [],
        {},
        (),
        (1,),
        (1, 2, 3, 4, 5),
        (1, None),
        *MORE,
    ],
    ids=repr,
)
def test_what_is_no_key_is_refused_with_a_hint(wrong):
    made = tamis.Filter("cuckoo", 100)
    for call in (made.add, made.__contains__, made.discard, made.hash, made.count, made.seen):
        with pytest.raises(TypeError, match="key"):
            call(wrong)
    for call in (made.update, made.contains_many, made.hash_many, made.count_many):
        with pytest.raises(TypeError, match="key"):
            call(["a", wrong])
        with pytest.raises(TypeError, match="key"):
            call(key for key in ["a", wrong])
    # Of a list nothing is inserted before all of it is understood; of a generator, what came.
    assert len(made) <= 1
    assert "a" in made or len(made) == 0


def test_of_many_keys_the_wrong_one_is_named():
    keys = [*range(100), None, *range(50_000), 2**64]
    for call in (FILTER.update, FILTER.contains_many, FILTER.hash_many, tamis.build):
        for form in (keys, tuple(keys), np.array(keys, dtype=object)):
            with pytest.raises(TypeError, match=r"^item 100: a key is text"):
                call(form)
        with pytest.raises(OverflowError, match=r"^item 50000: a whole number .* 2\*\*64 - 1"):
            call(keys[101:])
    # What a function of the caller's raises is left alone.
    with pytest.raises(TypeError, match=r"^'int' object is not subscriptable"):
        tamis.Filter(capacity=9, key=lambda row: row[0]).update(["a", 5])


def test_numbers_beyond_64_bits_are_refused():
    for wrong in (2**64, -(2**63) - 1, 10**100):
        with pytest.raises(OverflowError, match="64"):
            FILTER.add(wrong)
    with pytest.raises(UnicodeEncodeError):
        FILTER.add("\ud800")
    with pytest.raises(ValueError, match="surrogate"):
        FILTER.contains_many(np.array(["\ud800"]))
    nested = ("a", "b")
    for _ in range(100_000):
        nested = (nested, "x")
    with pytest.raises(RecursionError):
        FILTER.add(nested)


def test_one_key_where_many_are_wanted_is_refused():
    for wrong in ("abc", b"abc", bytearray(b"abc"), memoryview(b"abc"), 5, None, 1.5):
        for call in (FILTER.update, FILTER.contains_many, tamis.build):
            with pytest.raises(TypeError):
                call(wrong)


def test_a_function_makes_keys():
    made = tamis.Filter(capacity=100, key=lambda row: row["id"])
    made.add({"id": 7})
    made.update([{"id": 8}, {"id": 9}])
    assert {"id": 8} in made
    assert made.contains_many([{"id": 9}, {"id": 10}]) == [True, False]
    with pytest.raises(KeyError):
        made.add({})
    with pytest.raises(TypeError, match="key="):
        made.add({"id": None})
    # A function may use the filter itself.
    holder = []
    made = tamis.Filter(capacity=100, key=lambda word: (word, len(holder[0])))
    holder.append(made)
    made.update(["a", "b"])
    assert len(made) == 2


INTEGERS = st.integers(-(2**63), 2**64 - 1)
KEYS = st.one_of(st.text(), st.binary(), INTEGERS)


@given(st.lists(KEYS))
def test_many_keys_hash_as_each_does(keys):
    one_by_one = [FILTER.hash(key) for key in keys]
    assert FILTER.hash_many(keys) == one_by_one
    assert FILTER.hash_many(tuple(keys)) == one_by_one
    assert FILTER.hash_many(key for key in keys) == one_by_one
    assert FILTER.hash_many(np.array(keys, dtype=object)).tolist() == one_by_one


TEXTS = st.lists(st.one_of(st.none(), st.text()), max_size=30)


@given(TEXTS, st.integers(0, 5))
def test_columns_of_text_and_bytes_hash_as_their_values(texts, skip):
    expected = [None if text is None else FILTER.hash(text) for text in texts]
    text = pa.array(texts, pa.string())
    forms = [text, text.cast(pa.large_string()), text.dictionary_encode()]
    forms += [text.cast(pa.binary()), text.cast(pa.large_binary())]
    # Not by a cast: pyarrow 21, the last for Python 3.9, makes a broken column of nulls alone.
    forms += [pa.array(texts, pa.string_view())]
    encoded = [None if each is None else each.encode() for each in texts]
    forms += [pa.array(encoded, pa.binary_view())]
    for form in forms:
        assert FILTER.hash_many(form).to_pylist() == expected, form.type
        # A slice has an offset.
        assert FILTER.hash_many(form[skip:]).to_pylist() == expected[skip:], form.type
        chunked = pa.chunked_array([form[:skip], form[skip:]])
        assert FILTER.hash_many(chunked).to_pylist() == expected, form.type
    table = pa.table({"key": text})
    assert FILTER.hash_many(table).to_pylist() == expected
    assert FILTER.hash_many(table.slice(skip)).to_pylist() == expected[skip:]
    batches = [batch.slice(min(skip, batch.num_rows)) for batch in table.to_batches()]
    for batch in batches:
        assert FILTER.hash_many(batch).to_pylist() == expected[skip:]
    series = pl.Series("key", texts, dtype=pl.String)
    assert FILTER.hash_many(series).to_list() == expected
    assert FILTER.hash_many(series).name == "key"
    assert FILTER.hash_many(series.cast(pl.Categorical)).to_list() == expected
    answers = FILTER.hash_many(pd.Series(texts, dtype="str", index=range(5, 5 + len(texts))))
    assert [None if pd.isna(value) else value for value in answers] == expected
    assert list(answers.index) == list(range(5, 5 + len(texts)))


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_arrays_of_text_and_bytes_hash_as_their_values(texts):
    expected = [FILTER.hash(text) for text in texts]
    as_text = np.array(texts, dtype="U20" if not texts else None)
    assert FILTER.hash_many(as_text).tolist() == expected
    assert FILTER.hash_many(as_text.astype(as_text.dtype.newbyteorder())).tolist() == expected
    as_bytes = np.array([text.encode() for text in texts], dtype="S20" if not texts else None)
    assert FILTER.hash_many(as_bytes).tolist() == expected
    assert FILTER.hash_many(as_bytes[::-1]).tolist() == expected[::-1]


DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


@given(st.data(), st.sampled_from(DTYPES))
def test_arrays_and_columns_of_numbers_hash_as_their_values(data, dtype):
    limits = np.iinfo(dtype)
    numbers = data.draw(st.lists(st.integers(int(limits.min), int(limits.max))))
    expected = [FILTER.hash(number) for number in numbers]
    plain = np.array(numbers, dtype=dtype)
    forms = [plain, plain.astype(plain.dtype.newbyteorder()), np.repeat(plain, 3)[::3]]
    read_only = plain.copy()
    read_only.flags.writeable = False
    forms += [read_only, np.frombuffer(b"x" + plain.tobytes(), "u1")[1:].view(dtype)]
    for form in forms:
        assert FILTER.hash_many(form).tolist() == expected
    assert FILTER.hash_many(plain[::-1]).tolist() == expected[::-1]
    assert FILTER.hash_many(pa.array(plain)).to_pylist() == expected
    assert FILTER.hash_many(pl.Series(plain)).to_list() == expected
    assert FILTER.hash_many(pd.Series(plain)).tolist() == expected
    assert FILTER.hash_many(pd.Index(plain)).tolist() == expected
    missing = pa.array([*numbers, None], pa.from_numpy_dtype(np.dtype(dtype)))
    assert FILTER.hash_many(missing).to_pylist() == [*expected, None]
    if dtype in "i8u8":
        code = "q" if dtype == "i8" else "Q"
        assert FILTER.hash_many(array.array(code, numbers)).tolist() == expected


def test_answers_come_as_the_keys_did():
    made = tamis.Filter(capacity=1000, keys=["a", "b", 1, 2])
    assert made.contains_many(["a", "z"]) == [True, False]
    assert made.contains_many(iter(("a", "z"))) == [True, False]
    assert made.contains_many({"a": 1, "z": 2}) == [True, False]
    answers = made.contains_many(np.array([1, 9]))
    assert answers.dtype == bool
    answers[0] = False  # It is the caller's own.
    for chunked in (False, True):
        column = pa.array(["a", None, "z"])
        column = pa.chunked_array([column]) if chunked else column
        answers = made.contains_many(column)
        assert isinstance(answers, pa.ChunkedArray if chunked else pa.BooleanArray)
        assert answers.to_pylist() == [True, None, False]
    answers = made.contains_many(pl.Series("name", ["a", None, "z"]))
    assert answers.to_list() == [True, None, False]
    assert answers.name == "name"
    frame = pd.DataFrame({"name": ["z", "a", "b"]}, index=[7, 8, 9])
    assert frame[made.contains_many(frame["name"])].index.tolist() == [8, 9]
    relation = duckdb.sql("select unnest(['a', null, 'z']) as name")
    assert pa.array(made.contains_many(relation)).to_pylist() == [True, None, False]
    assert pa.array(made.contains_many(relation)).type == pa.bool_()
    assert "pyarrow.array" in repr(made.contains_many(relation))
    for empty in ([], (), np.array([], "i8"), np.array([], "U"), pa.array([], "string")):
        assert len(made.contains_many(empty)) == 0
    assert made.contains_many(pa.nulls(3)).to_pylist() == [None] * 3
    before = len(made)
    made.update(pa.array(["new", None]), pl.Series([None, 5]), [6])
    assert len(made) == before + 3


@pytest.mark.parametrize(
    "wrong",
    [
        np.array([1.5]),
        np.array([True]),
        np.array([["a"]]),
        np.array("a"),
        np.array(["2020-01-01"], "M8[D]"),
        np.array([(1, 2)], "i4,i4"),
        np.array([1j]),
        np.array([None]),
        pa.array([1.5]),
        pa.array([True]),
        pa.array([[1]]),
        pa.array([{"a": 1, "b": 2}]),
        pa.table({"a": [1], "b": [2]}),
        pa.array([1.5]).dictionary_encode(),
        pl.Series([1.5]),
        pl.Series([[1]]),
        pd.Series([1.5]),
        pl.Series([True]),
        pd.Series(pd.to_datetime(["2020-01-01"])),
    ],
    ids=lambda wrong: f"{type(wrong).__name__}-{getattr(wrong, 'dtype', None)}",
)
def test_columns_of_no_keys_are_refused(wrong):
    made = tamis.Filter(capacity=100)
    for call in (made.update, made.contains_many, made.hash_many, tamis.build):
        with pytest.raises((TypeError, ValueError), match=r"key|dimension"):
            call(wrong)
    assert len(made) == 0


class Forged:
    """Claims to hold Arrow data."""

    def __init__(self, answer):
        self.answer = answer

    def __arrow_c_array__(self, requested_schema=None):
        return self.answer


def test_forged_capsules_are_refused():
    schema, array_ = pa.array([1]).__arrow_c_array__()
    for answer in (None, (), (1, 2), (array_, schema), (schema, schema), "ab", (schema, None)):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            FILTER.contains_many(Forged(answer))
    # What was moved out once is empty.
    schema, array_ = pa.array([1]).__arrow_c_array__()
    pa.Array._import_from_c_capsule(schema, array_)
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        FILTER.contains_many(Forged((schema, array_)))


def test_what_stands_where_a_null_is_is_not_read():
    # The second view is of memory that is not there, and null.
    views = struct.pack("<i12s", 1, b"a") + struct.pack("<i4sii", 2**31 - 1, b"xxxx", 0, 2**31 - 1)
    for kind in (pa.string_view(), pa.binary_view()):
        buffers = [pa.py_buffer(b"\x01"), pa.py_buffer(views), pa.py_buffer(b"data")]
        column = pa.Array.from_buffers(kind, 2, buffers)
        assert FILTER.hash_many(column).to_pylist() == [FILTER.hash("a"), None]
        assert FILTER.hash_many(column[1:]).to_pylist() == [None]
        made = tamis.Filter(capacity=9)
        made.update(column)
        assert len(made) == 1


def test_a_stream_that_fails_is_an_error():
    def batches():
        yield pa.record_batch({"a": [1]})
        message = "the network is down"
        raise OSError(message)

    reader = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches())
    with pytest.raises(RuntimeError, match="network is down"):
        FILTER.contains_many(reader)


def test_no_reference_is_kept_or_lost():
    keys = [f"some text {i}" for i in range(100)] + [10**15, b"some bytes", ("a", "b"), "é" * 9]
    columns = [np.arange(100), pa.array(["a", "b"]), pl.Series(["a"]), array.array("q", [1])]
    made = tamis.Filter("counting_minimal", 100_000)
    one = keys[0]
    calls = [made.update, made.contains_many, made.hash_many, made.count_many, tamis.build]

    def counts():
        return [sys.getrefcount(each) for each in (*keys, *columns, one, keys, True, None)]

    for call in calls:
        call(keys)
    before = counts()
    for _ in range(50):
        for call in calls:
            call(keys)
            call(tuple(keys))
            for column in columns:
                call(column)
        assert one in made
        with pytest.raises(TypeError):
            made.update([*keys, None])
    del column
    after = counts()
    # `True` and `None` are immortal from 3.12 on, and counted by others too.
    assert before[:-2] == after[:-2]
    assert abs(after[-1] - before[-1]) < 100
    assert abs(after[-2] - before[-2]) < 100


def test_lists_that_lie_about_their_length_do_no_harm():
    for base in (list, tuple):

        class Lying(base):
            def __len__(self):
                return 1 << 40

        class Doubled(base):
            def __iter__(self):
                return iter(["b", "c"])

        # Python asks for the length as well, and may have no memory for it.
        for call in (FILTER.contains_many, FILTER.contains_hashes, tamis.Iblt(9).update):
            try:
                answers = call(Lying([1]))
            except (MemoryError, OverflowError):
                continue
            assert answers is None or len(answers) == 1
        assert FILTER.hash_many(Doubled(["a"])) == FILTER.hash_many(["b", "c"])

    class Endless:
        def __len__(self):
            return 1 << 62

        __length_hint__ = __len__

        def __iter__(self):
            return iter(["a"])

    assert FILTER.hash_many(Endless()) == [FILTER.hash("a")]


def test_arrays_that_extend_numpys_are_read_as_arrays(tmp_path):
    plain = np.arange(1000)
    expected = FILTER.hash_many(plain)
    plain.tofile(tmp_path / "numbers")

    class Own(np.ndarray):
        pass

    for keys in (np.memmap(tmp_path / "numbers", dtype="i8"), plain.view(Own)):
        answers = FILTER.hash_many(keys)
        assert isinstance(answers, np.ndarray)
        assert (answers == expected).all()
    masked = np.ma.array(plain, mask=plain % 3 == 0)
    answers = FILTER.hash_many(masked)
    assert answers.tolist() == [
        None if number % 3 == 0 else int(hash_) for number, hash_ in zip(plain, expected)
    ]
    made = tamis.Filter("cuckoo", 2000)
    made.update(masked)
    assert len(made) == 666
    assert FILTER.hash_many(np.ma.array(["a", "b"])).tolist() == FILTER.hash_many(["a", "b"])


def test_arrays_of_pandas_are_answered_by_such():
    made = tamis.Filter(capacity=100, keys=["a", 1, ("a", 1)])
    answers = made.contains_many(pd.array([1, 5, None]))
    assert answers.tolist() == [True, False, pd.NA]
    assert made.contains_many(pd.Categorical(["a", "z"])).tolist() == [True, False]
    # What is no column of Arrow is read as the objects that it holds.
    assert made.contains_many(pd.Series(["a", 5, 1])).tolist() == [True, False, True]
    assert made.contains_many(pd.Series([("a", 1), ("a", 2)])).tolist() == [True, False]
    with pytest.raises(TypeError, match="key"):
        made.contains_many(pd.Series(["a", 5, 1.5]))


def test_what_is_lent_is_given_back_when_the_filter_is_free():
    made = tamis.Filter(capacity=1000)

    class Lender(np.ndarray):
        def __del__(self):
            # Would wait for ever, if the thread that runs this held the lock.
            made.add("given back")

    class Series:
        """Only the buffer holds the array that this makes."""

        __module__ = "pandas"
        dtype = np.dtype("i8")

        def to_numpy(self):
            return np.arange(10).view(Lender)

    made.update(Series())
    assert "given back" in made
    assert made.issuperset(range(10))


def test_lists_that_change_while_they_are_read_do_no_harm():
    class Clearing:
        def __index__(self):
            keys.clear()
            return 1

    keys = [Clearing(), *(f"text {i}" for i in range(1000))]
    assert len(FILTER.contains_many(keys)) == 1

    class Growing:
        def __index__(self):
            keys.append("more")
            return 1

    keys = [Growing(), "a"]
    assert len(FILTER.hash_many(keys)) >= 2


def test_a_list_that_shrinks_before_an_object_that_is_no_plain_key():
    class Shrinks:
        def __index__(self):
            del shrinking[3:]
            return 5

    shrinking: list[object] = []
    shrinking += [Shrinks(), Shrinks(), Shrinks(), *[1] * 50]
    assert tamis.Filter(capacity=1000).contains_many(shrinking) == [False] * 3


def test_arrays_longer_than_memory_are_refused():
    filter_ = tamis.Filter(capacity=1000)
    for length in (2**50, 2**60):
        endless = np.broadcast_to(np.int8(1), (length,))
        for call in (filter_.contains_many, filter_.hash_many, tamis.build):
            with pytest.raises(MemoryError, match="fewer keys at a time"):
                call(endless)
        with pytest.raises(MemoryError):
            filter_.contains_hashes(endless)


def test_text_of_any_length_is_read():
    texts = ["a", "é" * 100, "", "a\0"]
    array_ = np.array(texts, dtype=np.dtypes.StringDType())
    assert FILTER.hash_many(array_).tolist() == FILTER.hash_many(texts)
    missing = np.array(["a", None], dtype=np.dtypes.StringDType(na_object=None))
    with pytest.raises(TypeError, match="item 1: a key"):
        FILTER.hash_many(missing)


def test_a_series_of_objects_is_read_by_value():
    filter_ = tamis.Filter(capacity=1000)
    names = pl.Series(["alice", "bob"], dtype=pl.Object)
    filter_.update(names)
    assert "alice" in filter_
    assert "bob" in filter_
    assert filter_.contains_many(names).to_list() == [True, True]


def test_a_function_that_makes_keys_is_not_given_a_table():
    columns = {"id": ["alice", "bob"]}
    filter_ = tamis.Filter(capacity=1000, key=str.lower)
    for table in (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)):
        with pytest.raises(TypeError, match="one of its columns"):
            filter_.update(table)
    assert len(filter_) == 0


def test_masked_numbers_are_no_hashes():
    filter_ = tamis.Filter(capacity=1000)
    words = np.array([1, 2, 3], "u8")
    some = np.ma.array(words, mask=[0, 1, 0])
    for call in (filter_.insert_hashes, filter_.contains_hashes):
        with pytest.raises(TypeError, match="masked"):
            call(some)
    with pytest.raises(TypeError, match="masked"):
        tamis.Map.from_columns(["a", "b", "c"], some)
    assert filter_.contains_hashes(np.ma.array(words)).tolist() == [False] * 3


def test_an_endless_iterable_of_hashes_can_be_interrupted():
    def endless():
        for i in range(10**9):
            if i == 100_000:
                signal.raise_signal(signal.SIGINT)
            assert i < 10**6, "nobody heeds the signal"
            yield 5

    # Whoever starts the tests in the background may have them ignore this signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            tamis.Filter(capacity=1000).insert_hashes(endless())
    finally:
        signal.signal(signal.SIGINT, before)
