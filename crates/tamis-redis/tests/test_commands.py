"""Every command: replies in both protocols, defaults, errors."""

import contextlib
import time

import pytest
import redis
import valkey

from conftest import GOLDEN, call, refused


def test_bloom_filters_reply_as_clients_expect(client):
    resp3 = client.connection_pool.connection_kwargs["protocol"] == 3
    assert call(client, "BF.RESERVE f 0.01 1000") in (b"OK", True)
    for expected, line in [
        (1, "BF.ADD f a"),
        (0, "BF.ADD f a"),
        ([0, 1, 1], "BF.MADD f a b c"),
        ([0, 1], "BF.INSERT f ITEMS a d"),
        (1, "BF.EXISTS f a"),
        (0, "BF.EXISTS f nobody"),
        ([1, 0], "BF.MEXISTS f b nobody"),
        (0, "BF.EXISTS missing a"),
        ([0, 0], "BF.MEXISTS missing a b"),
        (4, "BF.CARD f"),
        (0, "BF.CARD missing"),
    ]:
        got = call(client, line)
        assert got == expected, line
        first = got[0] if isinstance(got, list) else got
        assert isinstance(first, bool) == (resp3 and "CARD" not in line), line
    info = call(client, "BF.INFO f")
    if not resp3:
        info = dict(zip(info[::2], info[1::2], strict=True))
    assert info[b"Capacity"] == 1000
    assert info[b"Number of filters"] == 1
    assert info[b"Number of items inserted"] == 4
    assert info[b"Expansion rate"] == 2
    assert float(info[b"Error rate"]) == 0.01
    for field, name, value in [
        ("CAPACITY", b"Capacity", 1000),
        ("ITEMS", b"Number of items inserted", 4),
        ("FILTERS", b"Number of filters", 1),
        ("EXPANSION", b"Expansion rate", 2),
        ("SIZE", b"Size", info[b"Size"]),
    ]:
        assert call(client, f"BF.INFO f {field}") == ({name: value} if resp3 else [value])
    assert call(client, "BF.INFO f ERROR") == b"0.01"
    assert call(client, "BF.INFO f TIGHTENING") == b"square"
    assert call(client, "BF.DEBUG f")[0] == b"size:4"
    assert "not found" in refused(client, "BF.DEBUG missing")


def test_bloom_filters_refuse_what_they_must(client):
    call(client, "SET string 1")
    for line, error in [
        ("BF.RESERVE f 0 100", "0 < error rate range < 1"),
        ("BF.RESERVE f 1 100", "0 < error rate range < 1"),
        ("BF.RESERVE f x 100", "bad error rate"),
        ("BF.RESERVE f nan 100", "0 < error rate range < 1"),
        ("BF.RESERVE f 1e-30 100", "rate"),
        ("BF.RESERVE f 0.01 0", "larger than 0"),
        ("BF.RESERVE f 0.01 -1", "bad capacity"),
        ("BF.RESERVE f 0.01 99999999999999999999", "bad capacity"),
        ("BF.RESERVE f 0.01 4000000000000000000", ""),
        ("BF.RESERVE f 0.01 100 EXPANSION", "needs a value"),
        ("BF.RESERVE f 0.01 100 NONSCALING EXPANSION 2", "Nonscaling filters cannot expand"),
        ("BF.RESERVE f 0.01 100 SOMETHING", "Unknown argument"),
        ("BF.RESERVE f 0.01", "wrong number of arguments"),
        ("BF.ADD f", "wrong number of arguments"),
        ("BF.ADD string a", "WRONGTYPE"),
        ("BF.MADD string a", "WRONGTYPE"),
        ("BF.CARD string", "WRONGTYPE"),
        ("BF.INFO missing", "not found"),
        ("BF.INSERT missing NOCREATE ITEMS a", "not found"),
        ("BF.INSERT f CAPACITY 0 ITEMS a", "larger than 0"),
        ("BF.INSERT f ITEMS", "wrong number"),
        ("BF.SCANDUMP missing 0", "not found"),
        ("BF.LOADCHUNK f 1 nonsense", "received bad data"),
        ("BF.LOADCHUNK f x y", "must be numeric"),
        ("BF.LOAD f short", "too short"),
    ]:
        assert error in refused(client, line), line
    assert call(client, "BF.EXISTS string a") == 0
    assert call(client, "EXISTS f") == 0
    call(client, "BF.ADD f a")
    assert "item exists" in refused(client, "BF.RESERVE f 0.01 100")
    assert "Invalid information" in refused(client, "BF.INFO f NOTHING")
    assert "WRONGTYPE" in refused(client, "CF.ADD f a")
    assert "WRONGTYPE" in refused(client, "LPUSH f a")


def test_a_filter_that_does_not_grow_says_where_it_ends(resp2):
    call(resp2, "BF.RESERVE f 0.01 10 NONSCALING")
    items = [str(i) for i in range(30)]
    got = call(resp2, "BF.MADD f", *items)
    assert isinstance(got[-1], redis.ResponseError)
    assert "non scaling filter is full" in str(got[-1])
    assert sum(got[:-1]) == 10 == call(resp2, "BF.CARD f")
    assert "is full" in refused(resp2, "BF.ADD f another")
    assert call(resp2, "BF.INFO f")[9] is None


def test_the_rate_that_is_asked_for_is_got(resp2):
    """Fifty times its capacity, and still within the rate: a binomial bound at 1e-9."""
    call(resp2, "BF.RESERVE grown 0.01 1000")
    call(resp2, "CF.RESERVE removable 1000 ERROR 0.01")
    call(resp2, "BF.RESERVE fixed 0.01 50000 NONSCALING")
    for start in range(0, 50_000, 5000):
        items = [f"member-{i}" for i in range(start, start + 5000)]
        call(resp2, "BF.MADD grown", *items)
        call(resp2, "CF.INSERT removable ITEMS", *items)
        call(resp2, "BF.MADD fixed", *items)
        for key in "grown", "removable", "fixed":
            assert all(call(resp2, f"BF.MEXISTS {key}", *items)), key
    strangers, n = 0, 100_000
    for key in "grown", "removable", "fixed":
        found = 0
        for start in range(0, n, 5000):
            items = [f"stranger-{i}" for i in range(start, start + 5000)]
            found += sum(call(resp2, f"BF.MEXISTS {key}", *items))
        most = 0.01 * n + 6 * (0.01 * 0.99 * n) ** 0.5
        assert found <= most, f"{key}: {found} of {n}"
        strangers += found
    assert strangers > 0
    assert call(resp2, "BF.INFO grown")[5] > 3


def test_cuckoo_filters_reply_as_clients_expect(client):
    resp3 = client.connection_pool.connection_kwargs["protocol"] == 3
    assert call(client, "CF.RESERVE f 1000 BUCKETSIZE 4 MAXITERATIONS 10 EXPANSION 2")
    for expected, line in [
        (1, "CF.ADD f a"),
        (1, "CF.ADD f a"),
        (0, "CF.ADDNX f a"),
        (1, "CF.ADDNX f b"),
        (2, "CF.COUNT f a"),
        (0, "CF.COUNT missing a"),
        (1, "CF.EXISTS f b"),
        ([1, 0], "CF.MEXISTS f b nobody"),
        ([1, 1], "CF.INSERT f ITEMS c c"),
        ([0, 1], "CF.INSERTNX f ITEMS c d"),
        (1, "CF.DEL f a"),
        (1, "CF.COUNT f a"),
        (0, "CF.DEL f nobody"),
    ]:
        got = call(client, line)
        assert got == expected, line
        first = got[0] if isinstance(got, list) else got
        counts = "COUNT" in line or "INSERTNX" in line
        assert isinstance(first, bool) == (resp3 and not counts), line
    info = call(client, "CF.INFO f")
    if not resp3:
        info = dict(zip(info[::2], info[1::2], strict=True))
    assert info[b"Number of items inserted"] == 5
    assert info[b"Number of items deleted"] == 1
    assert info[b"Bucket size"] == 4
    assert info[b"Max iterations"] == 10
    assert info[b"Expansion rate"] == 2
    assert info[b"Number of filters"] == 1
    assert info[b"Number of buckets"] == 256
    assert info[b"Size"] > 1000
    assert len(info) == 8
    for line, error in [
        ("CF.RESERVE f 1000", "item exists"),
        ("CF.RESERVE g 3", "at least (BucketSize * 2)"),
        ("CF.RESERVE g x", "bad capacity"),
        ("CF.DEL missing a", "Not found"),
        ("CF.INFO missing", "not found"),
        ("CF.INSERT missing NOCREATE ITEMS a", "not found"),
        ("CF.INSERT f", "wrong number"),
        ("CF.INSERT f ITEMS", "wrong number"),
        ("BF.ADD f a", "WRONGTYPE"),
    ]:
        assert error in refused(client, line), line
    assert call(client, "CF.SCANDUMP f 0")[0] == 1
    call(client, "CF.RESERVE empty 100")
    assert call(client, "CF.SCANDUMP empty 0") == [0, None]


def test_a_cuckoo_filter_counts_beyond_its_buckets_and_ends_where_it_says(resp2):
    for _ in range(64):
        assert call(resp2, "CF.ADD f often") == 1
    assert call(resp2, "CF.COUNT f often") == 64
    assert "64" in refused(resp2, "CF.ADD f often")
    call(resp2, "CF.RESERVE fixed 20 EXPANSION 0")
    got = call(resp2, "CF.INSERT fixed ITEMS", *range(25))
    assert got.count(1) == 20
    assert got.count(-1) == 5
    assert refused(resp2, "CF.ADD fixed another") == "Filter is full"


def test_every_kind_is_made_filled_asked_merged_and_shipped(resp2):
    """The kinds that take insertions; those that do not are loaded."""
    inserting = set()
    for path in GOLDEN.glob("*.tamis"):
        resp2.delete("golden")
        with contextlib.suppress(redis.ResponseError):
            call(resp2, "TAMIS.LOAD golden 0", path.read_bytes())
            info = call(resp2, "TAMIS.INFO golden")
            info = dict(zip(info[::2], info[1::2], strict=True))
            if b"insert" in info[b"can"]:
                inserting.add(info[b"kind"].decode())
    assert len(inserting) > 30
    items = [f"item-{i}" for i in range(300)]
    for kind in sorted(inserting):
        assert call(resp2, f"TAMIS.CREATE {kind} KIND {kind} CAPACITY 1000 ERROR 0.01") == b"OK", (
            kind
        )
        assert sum(call(resp2, f"TAMIS.ADD {kind}", *items)) > 290, kind
        assert all(call(resp2, f"TAMIS.HAS {kind}", *items)), kind
        info = call(resp2, f"TAMIS.INFO {kind}")
        info = dict(zip(info[::2], info[1::2], strict=True))
        assert info[b"kind"].decode() == kind
        assert info[b"hashing"] == b"SipHash-1-3"
        can = [word.decode() for word in info[b"can"]]
        if "count" in can:
            assert call(resp2, f"TAMIS.COUNT {kind} item-1") >= [1]
        else:
            assert f"`{kind}`" in refused(resp2, f"TAMIS.COUNT {kind} item-1")
        if "merge" in can:
            assert call(resp2, f"TAMIS.MERGE {kind}-2 {kind} {kind}") == b"OK", kind
            assert all(call(resp2, f"TAMIS.HAS {kind}-2", *items)), kind
        if "remove" in can:
            assert call(resp2, f"TAMIS.REM {kind} item-1 item-2") == [1, 1], kind
        file, at = b"", 0
        while True:
            at, chunk = call(resp2, f"TAMIS.DUMP {kind} {at} COUNT 777")
            if at == 0:
                break
            file += chunk
        left = None
        for start in range(0, len(file), 1000):
            left = call(resp2, f"TAMIS.LOAD {kind}-3 {start}", file[start : start + 1000])
        assert left == 0, kind
        digests = resp2.execute_command("DEBUG", "DIGEST-VALUE", kind, f"{kind}-3")
        assert digests[0] == digests[1], kind
        assert "item exists" in refused(resp2, f"TAMIS.LOAD {kind} 0", file)
    assert "takes no items" in refused(resp2, "TAMIS.CREATE k KIND binary_fuse8 CAPACITY 10")
    assert "did you mean" in refused(resp2, "TAMIS.CREATE k KIND blom CAPACITY 10")
    assert "KIND is missing" in refused(resp2, "TAMIS.CREATE k CAPACITY 10")
    assert "not found" in refused(resp2, "TAMIS.ADD k a")


def test_filters_with_another_secret_or_shape_do_not_merge(resp2):
    call(resp2, "TAMIS.CREATE a KIND bloom CAPACITY 100 SEED 1")
    call(resp2, "TAMIS.CREATE b KIND bloom CAPACITY 100 SEED 2")
    call(resp2, "TAMIS.CREATE c KIND bloom CAPACITY 200 SEED 1")
    call(resp2, "TAMIS.CREATE d KIND cuckoo CAPACITY 100 SEED 1")
    for other in "bcd":
        assert refused(resp2, f"TAMIS.MERGE a {other}"), other
        assert refused(resp2, f"TAMIS.MERGE new a {other}"), other
        assert not resp2.exists("new")
    call(resp2, "TAMIS.CREATE e KIND bloom CAPACITY 100 SEED 1")
    call(resp2, "TAMIS.ADD a", *range(80))
    call(resp2, "TAMIS.ADD e", *range(100, 180))
    assert "more than the 100" in refused(resp2, "TAMIS.MERGE a e")
    assert call(resp2, "TAMIS.HAS a 150") == [0]
    call(resp2, "BF.RESERVE one 0.01 100")
    call(resp2, "BF.RESERVE two 0.01 100")
    call(resp2, "BF.MADD one a b c")
    call(resp2, "BF.MADD two d e")
    assert call(resp2, "TAMIS.MERGE three one two") == b"OK"
    assert call(resp2, "BF.MEXISTS three a b c d e f") == [1, 1, 1, 1, 1, 0]
    assert call(resp2, "BF.CARD three") == 5


def test_a_filter_is_halved(resp2):
    call(resp2, "TAMIS.CREATE h KIND quotient CAPACITY 100000 ERROR 0.001")
    call(resp2, "TAMIS.ADD h", *range(10_000))
    size = resp2.memory_usage("h")
    assert call(resp2, "TAMIS.RESIZE h HALF") == b"OK"
    assert resp2.memory_usage("h") < size
    assert all(call(resp2, "TAMIS.HAS h", *range(10_000)))
    assert "expected HALF" in refused(resp2, "TAMIS.RESIZE h DOUBLE")
    call(resp2, "TAMIS.CREATE c KIND cuckoo CAPACITY 1000")
    assert "`cuckoo`" in refused(resp2, "TAMIS.RESIZE c HALF")


def test_an_error_shows_a_long_word_in_part(resp2):
    for line in "TAMIS.CREATE f", "TAMIS.ADVISE 100 0.01", "TAMIS.DUMP f 0":
        call(resp2, "DEL f")
        if line.startswith("TAMIS.DUMP"):
            call(resp2, "BF.ADD f x")
        assert len(refused(resp2, line, "A" * 100_000)) < 100, line


def test_windows_forget_by_count_and_by_time(resp2):
    call(resp2, "TAMIS.CREATE last LAST 1000")
    for start in range(0, 10_000, 1000):
        call(resp2, "TAMIS.ADD last", *range(start, start + 1000))
    assert all(call(resp2, "TAMIS.HAS last", *range(9000, 10_000)))
    assert sum(call(resp2, "TAMIS.HAS last", *range(1000))) < 100
    call(resp2, "TAMIS.CREATE recent WINDOW 1s CAPACITY 1000")
    assert call(resp2, "TAMIS.ADD recent a b") == [1, 1]
    assert call(resp2, "TAMIS.ADD recent a") == [0]
    assert call(resp2, "TAMIS.HAS recent a b c") == [1, 1, 0]
    deadline = time.monotonic() + 20
    while call(resp2, "TAMIS.HAS recent a b") != [0, 0]:
        assert time.monotonic() < deadline, "a window of a second keeps its keys"
        time.sleep(0.05)
    assert "WINDOW" in refused(resp2, "TAMIS.CREATE k WINDOW soon CAPACITY 10")
    assert "forgets nothing" in refused(resp2, "TAMIS.CREATE k KIND bloom LAST 10")


def test_advice_ranks_kinds(client):
    advice = call(client, "TAMIS.ADVISE 1000000 0.01 REMOVE COUNT 1000")
    first = (
        advice[0]
        if isinstance(advice[0], dict)
        else dict(zip(advice[0][::2], advice[0][1::2], strict=False))
    )
    assert first[b"kind"] == b"quotient_counting"
    assert first[b"bytes"] > 1_000_000
    assert "rate" in refused(client, "TAMIS.ADVISE 1000 7")


def test_redis_py_works_unchanged(shared):
    with shared.client(decode_responses=True) as client:
        client.flushall()
        drive(client)


def test_valkey_py_works_unchanged(shared):
    with valkey.Valkey(port=shared.port, decode_responses=True) as client:
        client.flushall()
        drive(client)


def drive(client):
    """What the clients' own helpers send and read."""
    bf, cf = client.bf(), client.cf()
    assert bf.create("b", 0.01, 1000, expansion=1)
    assert bf.create("n", 0.01, 1000, noScale=True)
    assert bf.add("b", "x") == 1
    assert bf.madd("b", "x", "y") == [0, 1]
    assert bf.insert("i", ["x", "y"], capacity=1000, error=0.001) == [1, 1]
    assert bf.exists("b", "x") == 1
    assert bf.mexists("b", "x", "z") == [1, 0]
    assert bf.card("b") == 2
    info = bf.info("i")
    assert info.get("capacity") == 1000
    assert info.get("insertedNum") == 2
    assert info.get("filterNum") == 1
    chunks, at = [], 0
    while True:
        at, chunk = client.execute_command("BF.SCANDUMP", "b", at, NEVER_DECODE=[])
        if at == 0:
            break
        chunks.append((at, chunk))
    assert len(chunks) == 2
    client.delete("b")
    for at, chunk in chunks:
        assert bf.loadchunk("b", at, chunk)
    assert bf.mexists("b", "x", "y", "z") == [1, 1, 0]
    assert cf.create("c", 1000)
    assert cf.add("c", "x") == 1
    assert cf.addnx("c", "x") == 0
    assert cf.insert("c", ["x", "y"]) == [1, 1]
    assert cf.insertnx("c", ["y"]) == [0]
    assert cf.count("c", "x") == 2
    assert cf.delete("c", "x") == 1
    assert cf.exists("c", "x") == 1
    assert cf.mexists("c", "x", "z") == [1, 0]
    assert cf.info("c").get("insertedNum") == 2
    assert cf.info("c").get("deletedNum") == 1


def test_commands_are_documented(resp2):
    names = [name.decode() for name in resp2.execute_command("COMMAND LIST")]
    ours = [
        name for name in names if name.split(".")[0] in ("bf", "cf", "tamis", "BF", "CF", "TAMIS")
    ]
    assert len(ours) == 38
    info = resp2.execute_command("COMMAND DOCS", *ours)
    docs = info if isinstance(info, dict) else dict(zip(info[::2], info[1::2], strict=True))
    assert len(docs) == len(ours)
    for name, doc in docs.items():
        doc = doc if isinstance(doc, dict) else dict(zip(doc[::2], doc[1::2], strict=True))
        assert doc[b"summary"], name
        assert doc[b"arguments"], name
    keys = resp2.execute_command("COMMAND GETKEYS", "TAMIS.MERGE", "a", "b", "c")
    assert keys == ["a", "b", "c"]


@pytest.mark.parametrize("line", ["BF.ADD", "CF.ADD", "TAMIS.HAS", "BF.INFO", "TAMIS.CREATE"])
def test_a_command_without_words_is_refused(resp2, line):
    assert "wrong number" in refused(resp2, line)
