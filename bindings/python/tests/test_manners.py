"""Filters behave like sets, as far as each kind can."""

from __future__ import annotations

import copy
import gc
import math
import os
import pickle
import subprocess
import sys
import threading
import weakref

import numpy as np
import pyarrow as pa
import pytest
import tamis
from conftest import KINDS
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule


def of(capability):
    return [name for name, kind in KINDS.items() if capability in kind.can]


def test_every_kind_does_what_it_says_and_refuses_the_rest(kind):
    can = KINDS[kind].can
    made = tamis.Filter(kind, 1000, keys=["a", "b"])
    other = tamis.Filter(kind, 1000, keys=["b", "c"])
    assert made.kind == kind
    assert made.can == can
    assert len(made) == 2
    assert made
    assert "a" in made
    calls = {
        "insert": [lambda: made.add("x"), lambda: made.update(["y"]), lambda: made.seen("z")],
        "remove": [lambda: made.remove("a")],
        "count": [
            lambda: made.count("b"),
            lambda: made.count_limit,
            lambda: made.count_many(["b"]),
        ],
        "merge": [lambda: made | other, lambda: made.update(other), lambda: made.union(other)],
        "map": [lambda: tamis.Map({"a": 1}, kind=kind)],
        "window": [lambda: tamis.Window(100, kind=kind)],
    }
    for capability, each in calls.items():
        for call in each:
            if capability in can:
                call()
            else:
                with pytest.raises(tamis.UnsupportedError, match=f"`{kind}`"):
                    call()
    if "halve" not in can:
        with pytest.raises(tamis.UnsupportedError, match=f"`{kind}`"):
            made.halve()
    if kind != "bloom":
        for call in (lambda: made & other, lambda: made.issubset(other)):
            with pytest.raises(tamis.UnsupportedError, match=f"`{kind}`"):
                call()


def test_an_empty_filter_is_one(kind):
    made = tamis.Filter(kind, 100)
    assert not made
    assert len(made) == 0
    assert "a" not in made
    assert made.contains_many(range(1000)) == [False] * 1000
    assert made == tamis.Filter(kind, 100)


def test_use_after_clear(kind):
    made = tamis.Filter(kind, 100, keys=["a"])
    for filter_ in (made, tamis.load(made.to_bytes()), pickle.loads(pickle.dumps(made))):
        filter_.clear()
        assert not filter_
        assert "a" not in filter_
        assert filter_ == tamis.Filter(kind, 100)
        if "insert" in filter_.can:
            filter_.add("b")
            assert "b" in filter_


def test_parameters_reach_the_kind_and_clear_keeps_them():
    made = tamis.Filter("cuckoo", 100, bits=20)
    params = made.params
    made.clear()
    assert made.params == params
    assert made != tamis.Filter("cuckoo", 100)
    assert pickle.loads(pickle.dumps(made)).params == params
    with pytest.raises(tamis.BuildError, match="nonsense"):
        tamis.Filter("cuckoo", 100, nonsense=1)
    with pytest.raises(tamis.BuildError, match="did you mean `cuckoo`"):
        tamis.Filter("cukoo", 100)
    with pytest.raises(TypeError, match="kind="):
        tamis.Filter(capacity=100, bits=20)


def test_the_default_kind_suits():
    assert tamis.Filter().kind == "scalable"
    assert tamis.Filter(capacity=100).kind == "split_block"
    assert tamis.Filter(keys=["a"]).kind == "binary_fuse8"
    assert tamis.Filter(keys=["a"], capacity=100).kind == "split_block"


@pytest.mark.parametrize("kind", of("merge"))
def test_a_union_holds_the_keys_of_both(kind):
    a = tamis.Filter(kind, 4000, keys=range(1000))
    b = tamis.Filter(kind, 4000, keys=range(500, 1500))
    if "insert" not in a.can:
        a, b = (tamis.build(keys, kind) for keys in (range(1000), range(1000, 2000)))
    before = a.to_bytes()
    both = a | b
    assert a.to_bytes() == before
    assert both.issuperset(range(1500))
    assert both == a.union(b)
    a |= b
    assert a == both
    assert type(both) is tamis.Filter
    if "count" not in a.can:
        # Copies are added up otherwise, and may not fit.
        a |= a
        assert a.issuperset(range(1500))
    with pytest.raises(tamis.MergeError):
        a |= tamis.Filter(kind, 4000, seed=1)
    with pytest.raises(TypeError):
        a |= ["x"]
    with pytest.raises(TypeError):
        _ = a | {1}


def test_arguments_of_the_wrong_kind_are_named():
    made = tamis.Filter("bloom", 100)
    data = made.to_bytes()
    wrong = [
        lambda: tamis.Filter(capacity=9, key=5),
        lambda: tamis.build(["a"], key="upper"),
        lambda: tamis.Filter.from_hashes([1], key=5),
        lambda: tamis.Map({"a": 1}, key=5),
        lambda: tamis.load(data, key=5),
    ]
    for call in wrong:
        with pytest.raises(TypeError, match="`key=` takes a function"):
            call()
    for keys in ({"a"}, ["a"], None):
        with pytest.raises(TypeError, match="`issuperset` takes keys"):
            made.issubset(keys)


def test_bloom_filters_intersect_and_compare():
    a = tamis.Filter("bloom", 4000, keys=range(2000))
    b = tamis.Filter("bloom", 4000, keys=range(1500, 3500))
    both = a & b
    assert both.issuperset(range(1500, 2000))
    assert abs(len(both) - 500) < 100
    assert both.issubset(a)
    assert both.issubset(b)
    assert not a.issubset(b)
    assert a.issuperset(tamis.Filter("bloom", 4000, keys=range(10)))
    assert math.isclose(a.approx_items, 2000, rel_tol=0.05)
    with pytest.raises(ValueError, match="seed"):
        a.issubset(tamis.Filter("bloom", 4000, seed=3))
    with pytest.raises(tamis.MergeError):
        a.issubset(tamis.Filter("bloom", 9))


def test_what_keeps_no_keys_does_not_list_them():
    for made in (tamis.Filter(capacity=9), tamis.Counter(9), tamis.Map({"a": 1})):
        for call in (iter, reversed, made.insert_many if "insert" in made.can else iter):
            with pytest.raises(TypeError):
                call(made)


class Tagged(tamis.Filter):
    """A class with an attribute of its own."""


def test_attributes_of_a_class_that_extends_are_copied():
    made = Tagged(capacity=9)
    made.tag = ["x"]
    shallow, deep = copy.copy(made), copy.deepcopy(made)
    assert shallow.tag is made.tag
    assert deep.tag == made.tag
    assert deep.tag is not made.tag
    assert repr(made).startswith(f"<{__name__}.Tagged split_block: 0 of 9 keys")
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is Tagged
    assert again.tag == ["x"]


def test_copies_are_apart():
    made = tamis.Counter(100, keys=["a"])
    for copied in (made.copy(), copy.copy(made), copy.deepcopy(made)):
        assert type(copied) is tamis.Counter
        assert copied == made
        copied.add("b")
        assert copied != made
        assert "b" not in made


def test_comparing_with_anything_else():
    made = tamis.Filter(capacity=9)
    assert made != 5
    assert made != "x"
    assert (made == None) is False  # noqa: E711
    with pytest.raises(TypeError):
        hash(made)
    with pytest.raises(TypeError):
        _ = made < made


def test_counts():
    made = tamis.Counter(1000, keys=["a", "b", "a"])
    made.add("a")
    assert made["a"] == 3
    assert made.count("nobody") == 0
    assert made.count_many(["a", "b", "c"]) == [3, 1, 0]
    assert made.count_many(np.array(["a", "c"])).tolist() == [3, 0]
    assert made.count_limit == 255
    removable = tamis.Counter(1000, kind="counting", keys=["a", "a"])
    removable.remove("a")
    assert removable["a"] == 1
    with pytest.raises(tamis.UnsupportedError, match="`counting`"):
        tamis.Counter(1000, kind="bloom")


def test_maps(tmp_path):
    squares = {f"key {i}": i * i for i in range(1000)}
    for kind in of("map"):
        made = tamis.Map(squares, kind=kind)
        assert all(made[key] == value for key, value in squares.items())
        assert made.get_many(list(squares)) == list(squares.values())
        assert sum(made.get(f"absent {i}") is not None for i in range(1000)) < 50
        made.save(tmp_path / "map")
        again = tamis.open(tmp_path / "map")
        assert isinstance(again, tamis.Map)
        assert again == made
        assert pickle.loads(pickle.dumps(made))["key 7"] == 49
        columns = tamis.Map.from_columns(
            np.array(list(squares)), np.array(list(squares.values())), kind=kind
        )
        assert columns == made
        answers = columns.get_many(np.array(["key 7", "nobody at all"]))
        assert answers[0] == 49
        assert answers.tolist() == [49, None]
        with pytest.raises(KeyError):
            made["nobody at all"]
        assert made.get("nobody at all", 5) == 5
    perfect = tamis.Map([("a", 1), ("b", 200)], kind="perfect")
    perfect["a"] = 3
    assert perfect["a"] == 3
    with pytest.raises(KeyError):
        perfect["nobody at all"] = 3
    with pytest.raises(ValueError, match="bits"):
        perfect["a"] = 2**40
    with pytest.raises(tamis.UnsupportedError, match="perfect"):
        tamis.Map({"a": 1})["a"] = 2
    with pytest.raises(tamis.BuildError):
        tamis.Map([("a", 1), ("a", 2)])
    for wrong in ({"a": -1}, {"a": 2**64}, {"a": "x"}, {"a": None}, [1], ["ab", "cde"], 5, None):
        with pytest.raises((TypeError, ValueError, OverflowError)):
            tamis.Map(wrong)
    with pytest.raises(ValueError, match="2 keys and 1 values"):
        tamis.Map.from_columns(["a", "b"], [1])


def test_windows(tmp_path):
    for kind in of("window"):
        lately = tamis.Window(1000, kind=kind)
        lately.update(range(100_000))
        assert lately.issuperset(range(99_000, 100_000))
        assert sum(lately.contains_many(range(50_000))) < 2500
        assert lately.touch("new") is False
        assert lately.touch("new") is True
        lately.save(tmp_path / "window")
        assert isinstance(tamis.open(tmp_path / "window"), tamis.Window)
    timed = tamis.Window(1000, seconds=10)
    assert timed.seconds == 10
    timed.add("a")
    assert timed.now is None
    timed.advance(1e9)
    timed.advance(1e9 + 5)
    assert timed.now == 1e9 + 5
    assert timed.covered == 10
    assert "a" in timed
    with pytest.raises(tamis.FullError) as refused:
        timed.update(range(10_000))
    assert 0 < refused.value.accepted < 10_000
    assert len(timed) == 1 + refused.value.accepted
    timed.make_room()
    timed.add("room")
    timed.advance(1e9 + 1000)
    assert "a" not in timed
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="clock"):
            timed.advance(wrong)
    for kind in of("window"):
        counted = tamis.Window(1000, kind=kind, keys=["a"])
        with pytest.raises(tamis.UnsupportedError, match="seconds="):
            counted.advance(1e9)
        assert "a" in counted
        assert counted.seconds is None
        assert counted.now is None
        if "seconds" not in KINDS[kind].params:
            continue
        # Also one from a file keeps its time when it is cleared.
        timed = tamis.Window(1000, seconds=10, kind=kind, keys=["a"])
        for cleared in (timed, tamis.load(timed.to_bytes()), pickle.loads(pickle.dumps(timed))):
            cleared.clear()
            assert cleared.seconds == 10
            assert cleared == tamis.Window(1000, seconds=10, kind=kind)


def test_iblt():
    here, there = tamis.Iblt(50), tamis.Iblt(50)
    here.update(np.arange(10_000, dtype="u8"))
    there.update(range(20, 10_010))
    ours, theirs = (here - there).list()
    assert (ours, theirs) == (list(range(20)), list(range(10_000, 10_010)))
    assert not here - here
    assert here == tamis.Iblt.from_bytes(here.to_bytes()) == pickle.loads(pickle.dumps(here))
    with pytest.raises(ValueError, match="cells"):
        here.list()
    pairs = tamis.Iblt(9, values=True)
    pairs.insert(7, 49)
    assert pairs.get(7) == ("inserted", 49)
    assert pairs.get(8) == ("absent", None)
    assert pairs.list_pairs() == ([(7, 49)], [])
    pairs.delete(7, 49)
    assert not pairs
    with pytest.raises(ValueError, match="value"):
        here.insert(1, 2)
    with pytest.raises(tamis.MergeError):
        _ = here - pairs
    for wrong in (-1, 2**64, "a", None, 1.5):
        with pytest.raises((TypeError, OverflowError)):
            here.insert(wrong)
        with pytest.raises((TypeError, OverflowError)):
            here.update([wrong])
    for wrong in (-1, 2**63, "a", None):
        with pytest.raises((TypeError, OverflowError, tamis.BuildError)):
            tamis.Iblt(wrong)
    with pytest.raises(tamis.DecodeError):
        tamis.Iblt.from_bytes(b"nonsense")


def test_hashes_are_reused():
    a, b = tamis.Filter(capacity=100), tamis.Filter("cuckoo", 100)
    a.add_hash(b.hash("alice"))
    assert "alice" in a
    assert a.contains_hash(b.hash("alice"))
    hashes = b.hash_many(["bob", "carol"])
    a.insert_hashes(hashes)
    assert a.contains_hashes(hashes) == [True, True]
    array = np.array([*hashes, b.hash("nobody")], dtype="u8")
    assert a.contains_hashes(array).tolist() == [True, True, False]
    assert tamis.Filter.from_hashes(array[:2]) == tamis.build(["carol", "bob"])
    for wrong in (-1, 2**64, "a", None, 1.5):
        with pytest.raises((TypeError, OverflowError)):
            a.add_hash(wrong)
        with pytest.raises((TypeError, OverflowError)):
            a.insert_hashes([wrong])


def test_a_full_filter_says_how_many_are_in():
    made = tamis.Filter("cuckoo", 100)
    with pytest.raises(tamis.FullError, match="higher capacity") as refused:
        made.update(range(100_000))
    assert len(made) == refused.value.accepted
    assert made.issuperset(range(refused.value.accepted))
    made.clear()
    with pytest.raises(tamis.FullError) as refused:
        made.update(np.arange(100_000))
    assert len(made) == refused.value.accepted
    made.clear()
    with pytest.raises(tamis.FullError) as refused:
        made.update(iter(range(100_000)))
    assert len(made) == refused.value.accepted
    made.clear()
    half = pa.array([None if i % 2 else i for i in range(500)])
    with pytest.raises(tamis.FullError) as refused:
        made.update(pa.chunked_array([half[:60], half[60:]]))
    assert len(made) == refused.value.accepted


def test_an_iterable_that_fails_leaves_what_came_before():
    def failing():
        yield from range(20_000)
        message = "no more"
        raise KeyError(message)

    made = tamis.Filter("cuckoo", 100_000)
    with pytest.raises(KeyError, match="no more"):
        made.update(failing())
    # By pieces of 16384, as the documentation of `update` says.
    assert len(made) == 16_384
    with pytest.raises(TypeError):
        made.update([*range(100_000, 120_000), None])
    assert len(made) == 16_384


def test_threads_give_the_same_answers():
    keys = np.arange(1_000_000)
    one = tamis.Filter(capacity=1_000_000)
    two = tamis.Filter(capacity=1_000_000)
    one.update(keys)
    two.update(keys, threads=3)
    assert one == two
    asked = np.arange(500_000, 1_500_000)
    assert (one.contains_many(asked) == two.contains_many(asked, threads=3)).all()
    assert one.contains_many(asked.tolist(), threads=0) == one.contains_many(asked).tolist()
    assert tamis.build(keys, threads=2) == tamis.build(keys)
    assert one.hash_many(keys, threads=5).tolist() == one.hash_many(keys).tolist()


@pytest.mark.parametrize("kind", ["split_block", "cuckoo", "scalable", "counting"])
def test_threads_that_insert_while_others_read(kind):
    made = tamis.Filter(kind, 400_000)
    parts = [range(i * 50_000, (i + 1) * 50_000) for i in range(4)]
    wrong, done = [], threading.Event()

    def insert(part):
        made.update(np.fromiter(part, "i8"))
        if not made.issuperset(part):
            wrong.append(part)

    def read():
        while not done.is_set():
            made.contains_many(parts[0])
            if 3 in made:
                len(made), made.fpr, repr(made), made == made, made.copy()
            made.to_bytes()
            made.view()

    def join():
        other = tamis.Filter(kind, 400_000)
        while not done.is_set():
            _ = made == other
            _ = other == made
            if kind == "split_block":
                other |= made

    writers = [threading.Thread(target=insert, args=[part]) for part in parts]
    readers = [threading.Thread(target=each) for each in (read, read, join, join)]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert not wrong
    assert len(made) == 200_000


def test_without_more_threads_the_one_does_all():
    code = (
        "import numpy as np, tamis\n"
        "keys = np.arange(300_000)\n"
        "made = tamis.Filter(capacity=300_000)\n"
        "made.update(keys, threads=4)\n"
        "assert made.contains_many(keys, threads=4).all()\n"
        "for kind in ('bloom', 'binary_fuse8'):\n"
        "    assert tamis.build(keys, kind, threads=4).issuperset(keys)\n"
    )
    # No machine has room for such a stack.
    environment = {**os.environ, "RUST_MIN_STACK": str(1 << 47)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_other_threads_run_while_a_batch_does():
    keys = np.arange(3_000_000)
    made = tamis.Filter("bloom", 3_000_000, fpr=1e-6)
    ticks, done = [0], threading.Event()

    def tick():
        while not done.is_set():
            ticks[0] += 1

    thread = threading.Thread(target=tick)
    thread.start()
    before = ticks[0]
    made.update(keys)
    during = ticks[0] - before
    done.set()
    thread.join()
    # With Python held for the whole batch there would be none.
    assert during > 100


def test_filters_are_collected():
    class Holder:
        def key(self, key):
            return key

    holder = Holder()
    holder.filter = tamis.Filter(capacity=9, key=holder.key)
    seen = weakref.ref(holder.filter)
    del holder
    gc.collect()
    assert seen() is None


def test_what_is_told(kind):
    made = tamis.Filter(kind, 100, keys=["a"])
    assert repr(made).startswith(f"<tamis.Filter {kind}: 1 ")
    html = made._repr_html_()
    assert kind in html
    assert html.startswith("<table>")
    assert made.capacity == 100
    assert made.requested_fpr == 0.01
    assert 0 <= made.fpr <= 0.02
    assert made.nbytes > 0
    assert made.seed == 0
    assert made.params
    assert made.fill is None or 0 <= made.fill <= 1


def test_advice():
    advice = tamis.advise(10**6, 0.001, remove=True, all=True)
    assert all("remove" in KINDS[choice.kind].can for choice in advice.choices)
    assert "bloom" in advice.refused
    assert tamis.advise(10**6, hit_rate=1e-6).warnings
    smallest = tamis.advise(10**6, fixed=True, prefer="space").choices
    assert smallest[0].bits_per_key == min(choice.bits_per_key for choice in smallest)
    for wrong in ({"fpr": 2}, {"hit_rate": -1}, {"prefer": "luck"}):
        with pytest.raises(ValueError, match=r".+"):
            tamis.advise(10, **wrong)


KEYS = st.integers(0, 60).map(lambda i: f"key {i}" if i % 2 else i)


class Model(RuleBasedStateMachine):
    """A filter of any kind against a list of what was put in."""

    def __init__(self):
        super().__init__()
        self.made, self.model = None, []

    @initialize(kind=st.sampled_from(sorted(KINDS)), keys=st.lists(KEYS, max_size=6))
    def make(self, kind, keys):
        self.kind, self.model = KINDS[kind], list(dict.fromkeys(keys))
        self.made = tamis.Filter(kind, 500, keys=self.model)

    @precondition(lambda self: self.made is not None and "insert" in self.kind.can)
    @rule(keys=st.lists(KEYS, max_size=6))
    def insert(self, keys):
        # A key that is inserted eight times fills its places in some kinds.
        keys = [key for key in dict.fromkeys(keys) if self.model.count(key) < 4]
        self.made.update(keys)
        self.model += keys

    @precondition(lambda self: self.made is not None and "remove" in self.kind.can)
    @rule(key=KEYS)
    def remove(self, key):
        if key in self.model:
            self.made.remove(key)
            self.model.remove(key)
        elif key not in self.made:
            assert self.made.discard(key) is False
            with pytest.raises(KeyError):
                self.made.remove(key)

    @precondition(lambda self: self.made is not None)
    @rule()
    def clear(self):
        self.made.clear()
        self.model.clear()

    @precondition(lambda self: self.made is not None)
    @rule(how=st.sampled_from(["copy", "pickle", "bytes", "view"]))
    def replace(self, how):
        before = self.made
        if how == "copy":
            self.made = before.copy()
        elif how == "pickle":
            self.made = pickle.loads(pickle.dumps(before))
        elif how == "bytes":
            self.made = tamis.load(before.to_bytes())
        else:
            before.view()
        assert self.made == before

    @invariant()
    def agrees(self):
        if self.made is None:
            return
        assert self.made.issuperset(self.model)
        assert all(key in self.made for key in self.model)
        assert self.made.contains_many(self.model) == [True] * len(self.model)
        assert bool(self.made) == bool(self.model)
        if "count" in self.kind.can:
            counts = self.made.count_many(self.model)
            assert all(count >= self.model.count(key) for key, count in zip(self.model, counts))
        absent = sum(f"absent {i}" in self.made for i in range(100))
        # Of 100 at 1 %, more have a probability of 6e-9.
        assert absent <= 10


TestModel = Model.TestCase


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.binary(max_size=20),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=3),
    st.tuples(st.integers(), st.text(max_size=3)),
    st.sampled_from([object(), int, len, np.arange(3), np.array(1.5), float("nan"), 2**63, 10**30]),
    st.sampled_from([-1, 2**64, 2**62, 1e300, b"x" * 16, "random", "bloom", "cuckoo", {"a": 1}]),
)
ERRORS = (TypeError, ValueError, OverflowError, OSError, KeyError, tamis.TamisError, MemoryError)
MADE = {kind: tamis.Filter(kind, 100, keys=["a"]) for kind in KINDS}
METHODS = sorted(name for name in dir(tamis.Filter) if callable(getattr(tamis.Filter, name)))
METHODS = [name for name in METHODS if name not in {"__class__", "__init_subclass__", "save"}]


@given(st.sampled_from(METHODS), st.sampled_from(sorted(KINDS)), st.lists(ANYTHING, max_size=3))
def test_no_argument_of_any_method_does_harm(method, kind, arguments):
    made = MADE[kind].copy()
    try:
        getattr(made, method)(*arguments)
    except (*ERRORS, AttributeError, RecursionError, RuntimeError) as refused:
        assert "panic" not in type(refused).__name__.lower()  # noqa: PT017
    assert len(made.contains_many(["a"])) == 1
    assert repr(made)


@given(
    st.sampled_from(
        ["Filter", "build", "load", "Counter", "Window", "Map", "Iblt", "advise", "open"]
    ),
    st.lists(ANYTHING, max_size=3),
    st.dictionaries(
        st.sampled_from(
            ["kind", "capacity", "fpr", "keys", "secret", "seed", "key", "threads", "k"]
        ),
        ANYTHING,
        max_size=4,
    ),
)
def test_no_argument_of_any_constructor_does_harm(name, arguments, options):
    if name == "open":
        # A whole number would be the descriptor of somebody's file.
        arguments = [argument for argument in arguments if not isinstance(argument, (int, str))]
    try:
        getattr(tamis, name)(*arguments, **options)
    except (*ERRORS, AttributeError) as refused:
        assert str(refused)  # noqa: PT017


@pytest.mark.parametrize("capacity", [0, -1, 2**40, 2**63, 2**64 - 1, 2**64, 1.5, "x", None])
def test_sizes_are_met_or_refused(kind, capacity):
    try:
        made = tamis.Filter(kind, capacity)
    except (ValueError, TypeError, OverflowError):
        return
    assert "a" not in made


@pytest.mark.parametrize(
    "fpr", [0, 1, -1, 2, math.nan, math.inf, 1e-300, 1e-15, 0.999999, "x", None]
)
def test_rates_are_met_or_refused(kind, fpr):
    try:
        made = tamis.Filter(kind, 100, fpr)
    except (ValueError, TypeError):
        return
    assert made.fpr <= 1


def test_a_class_takes_only_filters_that_can_do_what_it_is_for(tmp_path):
    plain = tamis.build(["a", "b"])
    plain.save(tmp_path / "plain.tamis")
    for kind in (tamis.Counter, tamis.Window, tamis.Map):
        with pytest.raises(tamis.UnsupportedError, match="kinds that can"):
            kind.build(["a", "a"])
        with pytest.raises(tamis.UnsupportedError, match="kinds that can"):
            kind.open(tmp_path / "plain.tamis")
        with pytest.raises(tamis.UnsupportedError, match="kinds that can"):
            kind.load(plain.to_bytes())
    assert tamis.Counter.build(["a", "a"], "quotient_counting")["a"] >= 1
