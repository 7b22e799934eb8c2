"""What a server expects of its data types: memory, limits, events, rights, settings."""

import re
import threading
import time

import pytest
import redis

from conftest import call, digest, refused, synced, waiting


def test_memory_usage_is_what_the_allocator_gave(start):
    # Keys are freed at once, so that the difference is one key's.
    server = start("--lazyfree-lazy-user-del", "no")
    client = server.client()
    # Whatever clients need is there before.
    client.memory_usage("nothing")
    for line, adds in [
        ("BF.RESERVE big 0.01 3000000", "BF.MADD big"),
        ("BF.RESERVE grown 0.01 1000", "BF.MADD grown"),
        ("CF.RESERVE removable 100000", "CF.INSERT removable ITEMS"),
        ("TAMIS.CREATE kind KIND split_block CAPACITY 1000000", "TAMIS.ADD kind"),
    ]:
        key = line.split()[1]
        call(client, line)
        with server.client() as writer:
            for at in range(0, 200_000, 10_000):
                call(writer, adds, *range(at, at + 10_000))
        told = client.memory_usage(key)
        client.execute_command("DEBUG", "RELOAD")
        again = client.memory_usage(key)
        assert abs(again - told) <= 0.01 * told + 4096, (key, again, told)
        client.copy(key, "copy")
        assert abs(client.memory_usage("copy") - again) <= 0.01 * again + 4096, key
        client.delete("copy")
        if key == "big":
            size = call(client, "BF.INFO big SIZE")[0]
            # 10.62 bits an item by the library's formula.
            assert abs(size * 8 / 3_000_000 - 10.62) < 0.05
            assert abs(told - size) <= 0.01 * size
        before = client.info("memory")["used_memory"]
        client.delete(key)
        freed = before - client.info("memory")["used_memory"]
        assert abs(freed - again) <= 0.01 * again, (key, freed, again)


def test_ten_million_items_take_what_the_library_says(start):
    """By MEMORY USAGE, by the server's account, and by the system's."""
    server = start("--lazyfree-lazy-user-del", "no")
    client = server.client()
    for more, bits in ("NONSCALING", 9.59), ("EXPANSION 2", 10.62):
        client.memory_usage("nothing")
        before = client.info("memory")
        call(client, f"BF.RESERVE f 0.01 10000000 {more}")
        # The first item is added when all pages are there.
        call(client, "BF.ADD f x")
        after = client.info("memory")
        library = bits * 10_000_000 / 8
        for told in (
            client.memory_usage("f"),
            call(client, "BF.INFO f SIZE")[0],
            after["used_memory"] - before["used_memory"],
        ):
            assert abs(told - library) <= 0.01 * library, (more, told, library)
        assert after["used_memory_rss"] - before["used_memory_rss"] <= 1.3 * library
        client.delete("f")


def test_nothing_changes_while_writers_are_paused(start):
    """A failover relies on that; the server ends itself where a module sends a change."""
    server = start("--appendonly", "yes", "--appendfsync", "no")
    replica = start("--replicaof", f"127.0.0.1 {server.port}")
    client, follower = server.client(), replica.client()
    synced(client, follower)
    call(client, "TAMIS.CREATE window WINDOW 1s CAPACITY 100")
    call(client, "TAMIS.ADD window a")
    call(client, "CF.RESERVE table 200000")

    def write():
        with server.client() as mine:
            # It doubles the table, in the thread.
            assert all(call(mine, "CF.INSERT table ITEMS", *range(300_000)))

    writer = threading.Thread(target=write)
    writer.start()
    while not client.info("clients")["blocked_clients"]:
        assert writer.is_alive(), "the table has doubled before the pause"
    call(client, "CLIENT PAUSE 60000 WRITE")
    offset = client.info("replication")["master_repl_offset"]
    for _ in range(20):
        call(client, "TAMIS.HAS window a")
        call(client, "BF.EXISTS table 1")
        time.sleep(0.05)
    assert client.info("replication")["master_repl_offset"] == offset
    assert writer.is_alive(), "the change waits for the end of the pause"
    call(client, "CLIENT UNPAUSE")
    writer.join()
    assert all(call(client, "CF.MEXISTS table", *range(20_000)))
    synced(client, follower)
    assert digest(client) == digest(follower)


def test_a_limit_of_memory_is_kept_before_the_change(start):
    server = start("--maxmemory", "20mb")
    client = server.client()
    for line in [
        "BF.RESERVE f 0.01 100000000",
        "CF.RESERVE f 100000000",
        "TAMIS.CREATE f KIND cuckoo CAPACITY 100000000",
    ]:
        assert "maxmemory" in refused(client, line), line
        assert not client.exists("f")
    assert client.info("memory")["used_memory"] < 20 << 20
    call(client, "BF.RESERVE f 0.01 10000000")

    def fill():
        for at in range(0, 40_000_000, 100_000):
            call(client, "BF.INSERT g CAPACITY 1000000 EXPANSION 8 ITEMS", *range(at, at + 100_000))

    with pytest.raises(redis.ResponseError, match="maxmemory"):
        fill()
    assert client.info("memory")["used_memory"] < 21 << 20
    client.config_set("maxmemory-policy", "allkeys-lru")
    assert "maxmemory" in refused(client, "BF.RESERVE h 0.01 100000000")
    assert call(client, "BF.RESERVE h 0.01 5000000") == b"OK"
    client.config_set("maxmemory", 0)
    client.config_set("bf.bloom-memory-usage-limit", "1mb")
    assert "memory limit" in refused(client, "BF.RESERVE i 0.01 5000000")
    # More than any machine has is refused, not tried.
    client.config_set("bf.bloom-memory-usage-limit", "0")
    assert refused(client, "BF.RESERVE i 0.0000001 100000000000000")
    assert refused(client, "TAMIS.CREATE i KIND bloom CAPACITY 100000000000000")


def test_settings_are_checked_and_obeyed(start):
    secret = "00112233445566778899aabbccddeeff"
    server = start("--bf.bloom-capacity", "500", "--bf.secret", secret)
    client = server.client()
    call(client, "BF.ADD f x")
    assert call(client, "BF.INFO f CAPACITY") == [500]
    client.config_set("bf.bloom-fp-rate", "0.001")
    client.config_set("bf.bloom-expansion", "0")
    call(client, "BF.ADD g x")
    assert call(client, "BF.INFO g ERROR") == b"0.001"
    assert call(client, "BF.INFO g EXPANSION") == [None]
    for name, value in [
        ("bf.bloom-fp-rate", "2"),
        ("bf.bloom-capacity", "0"),
        ("bf.secret", "short"),
        ("bf.bloom-tightening-ratio", "0.1"),
    ]:
        with pytest.raises(redis.ResponseError):
            client.config_set(name, value)
    # The same secret, the same filter, whichever server makes it.
    other = start("--bf.secret", secret, "--bf.bloom-capacity", "500")
    call(other.client(), "BF.ADD f x")
    assert digest(client, "f") == digest(other.client(), "f")
    third = start("--bf.bloom-capacity", "500")
    call(third.client(), "BF.ADD f x")
    assert digest(client, "f") != digest(third.client(), "f")


def test_effects_are_replicated_and_nothing_else(start):
    primary = start("--notify-keyspace-events", "KEAd")
    replica = start("--replicaof", f"127.0.0.1 {primary.port}")
    client, follower = primary.client(), replica.client()
    synced(client, follower)
    call(client, "BF.MADD f a b c")
    call(client, "CF.ADD c a")
    synced(client, follower)
    offset = client.info("replication")["master_repl_offset"]
    for line in [
        "BF.ADD f a",
        "BF.MADD f a b",
        "BF.INSERT f ITEMS c",
        "CF.ADDNX c a",
        "BF.MEXISTS f a z",
        "CF.INSERTNX c ITEMS a",
        "CF.DEL c nobody",
        "BF.INFO f",
        "BF.SCANDUMP f 0",
        "CF.COUNT c a",
    ]:
        call(client, line)
    assert client.info("replication")["master_repl_offset"] == offset
    listener = client.pubsub()
    listener.psubscribe("__keyspace@0__:*")
    for line in (
        "BF.MADD f c d",
        "CF.DEL c a",
        "TAMIS.CREATE t KIND bloom CAPACITY 9",
        "TAMIS.ADD t x",
    ):
        call(client, line)
    heard = []
    while len(heard) < 4:
        message = listener.get_message(timeout=5)
        assert message, heard
        if message["type"] == "pmessage":
            heard.append((message["channel"].split(b":")[1], message["data"]))
    assert heard == [
        (b"f", b"bf.add"),
        (b"c", b"cf.del"),
        (b"t", b"tamis.create"),
        (b"t", b"tamis.add"),
    ]
    synced(client, follower)
    assert digest(client) == digest(follower)
    assert "read only replica" in refused(follower, "BF.ADD f z")
    assert call(follower, "BF.MEXISTS f a d z") == [1, 1, 0]
    # A replica that lets clients write does so at once, whatever it takes.
    follower.config_set("replica-read-only", "no")
    call(follower, "BF.RESERVE large 0.01 2000000")
    assert call(follower, "BF.ADD large x") == 1
    assert call(follower, "TAMIS.MERGE larger large large") == b"OK"
    assert call(follower, "BF.EXISTS larger x") == 1


def test_a_merge_is_of_what_replicas_have_then(start):
    """What a script changes, or a client renames, while the merge waits for the thread."""
    primary = start()
    replica = start("--replicaof", f"127.0.0.1 {primary.port}")
    client, follower = primary.client(), replica.client()
    synced(client, follower)
    call(client, "TAMIS.CREATE large KIND bloom CAPACITY 10000000")
    for key in "a", "b":
        call(client, f"TAMIS.CREATE {key} KIND bloom CAPACITY 1000000")
        call(client, f"TAMIS.ADD {key} in-{key}")
    for both, renames in ("new", False), ("new", True), ("a", False):
        clients = [waiting(primary, 1, "TAMIS.MERGE union large large")]
        clients.append(waiting(primary, 2, f"TAMIS.MERGE {both} a b"))
        client.eval("return redis.call('TAMIS.ADD', KEYS[1], 'late')", 1, "a")
        if renames:
            client.rename("b", "c")
        for thread in clients:
            thread.join()
        synced(client, follower)
        assert call(client, f"TAMIS.HAS {both} in-a nobody") == [1, 0]
        assert digest(client) == digest(follower)
        if renames:
            client.rename("c", "b")


def test_scripts_transactions_expiry_and_lazy_freeing(resp2):
    script = (
        "redis.call('BF.MADD', KEYS[1], 'a', 'b'); return redis.call('BF.EXISTS', KEYS[1], 'a')"
    )
    assert resp2.eval(script, 1, "f") == 1
    with resp2.pipeline(transaction=True) as pipeline:
        pipeline.execute_command("CF.ADD", "c", "x")
        pipeline.execute_command("CF.COUNT", "c", "x")
        assert pipeline.execute() == [1, 1]
    with resp2.pipeline() as pipeline:
        pipeline.watch("f")
        call(resp2, "BF.ADD f other")
        pipeline.multi()
        pipeline.execute_command("BF.ADD", "f", "lost")
        with pytest.raises(redis.WatchError):
            pipeline.execute()
    resp2.pexpire("f", 1)
    while resp2.exists("f"):
        pass
    call(resp2, "BF.RESERVE big 0.01 20000000")
    before = resp2.info("memory")["used_memory"]
    resp2.unlink("big")
    while resp2.info("memory")["used_memory"] > before - (20 << 20):
        pass
    call(resp2, "BF.ADD a x")
    resp2.rename("a", "b")
    resp2.move("b", 1)
    assert not resp2.exists("b")
    assert resp2.execute_command("OBJECT", "ENCODING", "c")
    assert resp2.type("c") == b"tamis-flt"


def test_rights_are_those_of_the_commands(start):
    server = start()
    client = server.client()
    version = client.info("server")
    if "valkey_version" not in version and version["redis_version"] < "7.2":
        client.acl_setuser("reader", enabled=True, nopass=True, keys=["f"], commands=["+bf.exists"])
    else:
        client.acl_setuser("reader", enabled=True, nopass=True, keys=["f"], categories=["+@read"])
    call(client, "BF.ADD f x")
    reader = server.client(username="reader", password="any")
    assert call(reader, "BF.EXISTS f x") == 1
    for line in "BF.ADD f y", "CF.DEL f x", "BF.EXISTS g x", "TAMIS.MERGE f g":
        with pytest.raises(redis.exceptions.NoPermissionError):
            call(reader, line)


def either_side(limit, measure):
    """The largest number that measures less than a limit, and the smallest that does not."""
    low, high = 1, 2 * limit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if measure(middle) < limit else (low, middle)
    return low, high


def test_the_thread_does_what_is_large_and_nothing_else(start):
    """On either side of the limits that docs/REDIS.md tells; bytes decide, and no clock."""
    client = start().client()

    def waited(line, *more):
        """How many commands the thread did of this one."""
        before = client.info("bf")["bf_commands_by_thread"]
        call(client, line, *more)
        return client.info("bf")["bf_commands_by_thread"] - before

    def size(kind, capacity):
        call(client, f"DEL {kind}")
        call(client, f"TAMIS.CREATE {kind} KIND {kind} CAPACITY {capacity}")
        info = call(client, f"TAMIS.INFO {kind}")
        return info[info.index(b"size") + 1]

    slots = 128 << 10
    sides = either_side(slots + 1, lambda capacity: size("quotient", capacity))
    for waits, capacity in enumerate(sides):
        size("quotient", capacity)
        try:
            assert waited("TAMIS.RESIZE quotient HALF") == waits
        except redis.ResponseError:
            # An odd number of slots is not halved; the next is even, away from the limit.
            size("quotient", capacity + (1 if waits else -1))
            assert waited("TAMIS.RESIZE quotient HALF") == waits
    sides = either_side(slots // 2 + 1, lambda capacity: size("bloom", capacity))
    for waits, capacity in enumerate(sides):
        size("bloom", capacity)
        assert waited("TAMIS.MERGE union bloom bloom") == waits
        call(client, "DEL union")

    def file(capacity):
        size("bloom", capacity)
        return call(client, f"TAMIS.DUMP bloom 0 COUNT {1 << 29}")[1]

    sides = either_side(slots + 1, lambda capacity: len(file(capacity)))
    for waits, capacity in enumerate(sides):
        assert waited("TAMIS.LOAD loaded 0", file(capacity)) == waits
        call(client, "DEL loaded")

    def table(capacity):
        call(client, "DEL table")
        call(client, f"CF.RESERVE table {capacity}")
        return call(client, "CF.INFO table")[1]

    for waits, capacity in enumerate(either_side(slots, table)):
        before = table(capacity)
        assert waited("CF.INSERT table ITEMS", *range(capacity + 1000)) == waits
        assert call(client, "CF.INFO table")[1] > before
    # In a transaction nothing waits.
    table(capacity)
    with client.pipeline(transaction=True) as pipeline:
        pipeline.execute_command("CF.INSERT", "table", "ITEMS", *range(capacity + 1000))
        assert waited("PING") == 0
        pipeline.execute()
    assert waited("PING") == 0

    def roomy(capacity):
        call(client, "DEL roomy")
        call(client, f"BF.RESERVE roomy 0.01 {capacity}")
        return client.memory_usage("roomy")

    pages = 1 << 20
    # Smaller arrays are rounded up by the allocator, by a quarter at most.
    for waits, capacity in enumerate((600_000, 810_000)):
        assert (roomy(capacity) > pages) == bool(waits)
        assert waited("BF.ADD roomy x") == waits
        assert waited("BF.ADD roomy y") == 0
    for waits, capacity in enumerate((250_000, 500_000)):
        before = roomy(capacity)
        assert waited("BF.MADD roomy", *range(capacity - 1000)) == 0
        assert waited("BF.MADD roomy", *range(capacity, capacity + 10_000)) == waits
        assert (client.memory_usage("roomy") - before > pages) == bool(waits)

    # Windows whose clock has stood still since 1970.
    for waits, capacity in enumerate((50_000, 500_000)):
        for line in "TAMIS.HAS window x", "TAMIS.COUNT window x", "TAMIS.ADD window x":
            call(client, "DEL window")
            call(client, f"TAMIS.CREATE window WINDOW 10m CAPACITY {capacity} CLOCK 1")
            if "COUNT" in line:
                # A refusal waits for its turn as well.
                assert refused(client, line)
                assert waited(line.replace("COUNT", "HAS")) == 0
                continue
            assert waited(line) == waits, line
            assert waited(line) == 0
        assert call(client, "TAMIS.HAS window x y") == [1, 0]


def test_large_filters_leave_no_gaps(start):
    """What is freed of arrays with pages of their own is whole pages; of small ones it is not."""

    def gaps(keys, capacity):
        """When seven of eight filters are gone: bytes that nobody can use, and the bytes of a
        filter, for each that is left."""
        client = start("--lazyfree-lazy-user-del", "no").client()

        def unusable():
            told = call(client, "MEMORY MALLOC-STATS")
            allocated, active = re.search(rb"Allocated: (\d+), active: (\d+)", told).groups()
            return int(active) - int(allocated)

        before = unusable()
        with client.pipeline(transaction=False) as pipeline:
            for key in range(keys):
                pipeline.execute_command("BF.RESERVE", key, 0.01, capacity)
            for key in range(keys):
                if key % 8:
                    pipeline.delete(key)
            pipeline.execute()
        call(client, "MEMORY PURGE")
        return (unusable() - before) / (keys / 8), client.memory_usage(0)

    # By the array: 1, 27, 106 and 1328 kB. Every filter has small parts as well.
    small, size = gaps(20_000, 800)
    assert small > size
    for keys, capacity in (3000, 20_000), (1000, 80_000), (80, 1_000_000):
        large, size = gaps(keys, capacity)
        assert large < small + size / 20, capacity


def test_defragmentation_moves_small_filters(start):
    server = start()
    client = server.client()
    try:
        client.config_set("activedefrag", "yes")
    except redis.ResponseError:
        pytest.skip("this server is built without active defragmentation")
    client.config_set("activedefrag", "no")
    keys = 20_000
    with client.pipeline(transaction=False) as pipeline:
        for key in range(keys):
            pipeline.execute_command("BF.RESERVE", f"bf:{key}", 0.01, 1000)
            pipeline.execute_command("BF.ADD", f"bf:{key}", key)
        pipeline.execute()
        for key in range(keys):
            if key % 8:
                pipeline.delete(f"bf:{key}")
        pipeline.execute()
    expected, wasted = digest(client), client.info("memory")["allocator_frag_bytes"]
    usage = client.memory_usage("bf:0")
    for name, value in [
        ("active-defrag-ignore-bytes", "100kb"),
        ("active-defrag-threshold-lower", 5),
        ("active-defrag-cycle-min", 50),
        ("active-defrag-cycle-max", 75),
        ("activedefrag", "yes"),
    ]:
        client.config_set(name, value)
    deadline = time.monotonic() + 120
    while client.info("memory")["allocator_frag_bytes"] > wasted / 4:
        assert time.monotonic() < deadline, client.info("memory")
        time.sleep(0.1)
    assert client.info("bf")["bf_filters_moved"] >= keys / 8
    assert digest(client) == expected
    assert client.memory_usage("bf:0") == usage
    assert all(call(client, f"BF.EXISTS bf:{key} {key}") for key in range(0, keys, 8))
