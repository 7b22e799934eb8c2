"""Random commands against an exact model, and the same data set on every way that data takes."""

import collections
import contextlib
import random
import threading
import time

import redis

from conftest import call, digest, synced

SEED = 20_260_101
COMMANDS = 8000
BATCH = 1000


class Model:
    """What a server's filters must at least contain, by key."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.sets = collections.defaultdict(collections.Counter)
        self.kinds = {}
        self.calls = collections.Counter()

    def key(self, prefix):
        return f"{prefix}{self.random.randrange(6)}"

    def items(self):
        return [f"i{self.random.randrange(3000)}" for _ in range(self.random.randint(1, 12))]

    def send(self, client, *words):
        self.calls[words[0]] += 1
        return client.execute_command(*words)

    def step(self, client):
        choice = self.random.choice(
            [
                self.bloom,
                self.bloom,
                self.cuckoo,
                self.cuckoo,
                self.tamis,
                self.tamis,
                self.nonsense,
            ]
        )
        choice(client)

    def bloom(self, client):
        key, items = self.key("bf"), self.items()
        known = self.sets[key]
        verb = self.random.choice(["add", "madd", "insert", "exists", "reserve", "card", "delete"])
        if verb == "add":
            try:
                reply = self.send(client, "BF.ADD", key, items[0])
            except redis.ResponseError as full:
                reply = full
            self.note(client, key, [reply], items[:1])
        elif verb == "madd":
            self.note(client, key, self.send(client, "BF.MADD", key, *items), items)
        elif verb == "insert":
            words = ["CAPACITY", 50, "ERROR", 0.001, "EXPANSION", 3, "ITEMS", *items]
            self.note(client, key, self.send(client, "BF.INSERT", key, *words), items)
        elif verb == "exists":
            found = self.send(client, "BF.MEXISTS", key, *items)
            assert all(f for f, item in zip(found, items, strict=True) if known[item])
        elif verb == "reserve" and not known and not client.exists(key):
            fixed = ["NONSCALING"] if self.random.random() < 0.3 else ["EXPANSION", 2]
            assert self.send(client, "BF.RESERVE", key, 0.01, 200, *fixed)
        elif verb == "card":
            assert self.send(client, "BF.CARD", key) == sum(known.values())
        elif verb == "delete" and self.random.random() < 0.05:
            client.delete(key)
            known.clear()

    def note(self, client, key, replies, items):
        for reply, item in zip(replies, items, strict=False):
            if isinstance(reply, redis.ResponseError):
                assert "full" in str(reply)
                return
            assert reply in (0, 1)
            if reply == 1:
                assert not self.sets[key][item], "an item that is there was new"
                self.sets[key][item] = 1

    def cuckoo(self, client):
        key, items = self.key("cf"), self.items()
        known = self.sets[key]
        verb = self.random.choice(["add", "addnx", "insert", "del", "count", "exists", "reserve"])
        if verb == "add" and known[items[0]] < 50:
            assert self.send(client, "CF.ADD", key, items[0]) == 1
            known[items[0]] += 1
        elif verb == "addnx":
            added = self.send(client, "CF.ADDNX", key, items[0])
            assert not (added and known[items[0]])
            known[items[0]] += int(added)
        elif verb == "insert":
            items = [item for item in items if known[item] < 40]
            if items:
                assert all(self.send(client, "CF.INSERT", key, "ITEMS", *items))
                known.update(items)
        elif verb == "del" and known:
            present = [item for item, copies in known.items() if copies]
            if present:
                item = self.random.choice(present)
                assert self.send(client, "CF.DEL", key, item) == 1
                known[item] -= 1
        elif verb == "count":
            assert self.send(client, "CF.COUNT", key, items[0]) >= known[items[0]]
        elif verb == "exists":
            found = self.send(client, "CF.MEXISTS", key, *items)
            assert all(f for f, item in zip(found, items, strict=True) if known[item])
        elif verb == "reserve" and not client.exists(key):
            self.send(client, "CF.RESERVE", key, 300, "ERROR", 0.001)

    KINDS = (
        "cuckoo",
        "quotient_counting",
        "bloom",
        "aleph",
        "last",
        "time",
        "tinyset",
        "split_block",
    )

    def tamis(self, client):
        kind = self.random.choice(self.KINDS)
        key, items = f"t-{kind}", self.items()
        known = self.sets[key]
        if not client.exists(key):
            words = ["KIND", kind, "CAPACITY", 5000]
            if kind == "last":
                words = ["LAST", 100]
            elif kind == "time":
                words = ["WINDOW", "1h", "CAPACITY", 100_000]
            self.send(client, "TAMIS.CREATE", key, *words)
            known.clear()
        if kind in ("last", "time"):
            self.send(client, "TAMIS.ADD", key, *items)
            assert all(self.send(client, "TAMIS.HAS", key, *items))
            return
        verb = self.random.choice(["add", "add", "has", "rem", "count", "merge"])
        counts = kind in ("cuckoo", "quotient_counting", "aleph")
        if verb == "add":
            items = [item for item in items if known[item] < 3]
            if items:
                for reply, item in zip(
                    self.send(client, "TAMIS.ADD", key, *items), items, strict=False
                ):
                    if isinstance(reply, redis.ResponseError):
                        break
                    known[item] += int(reply)
        elif verb == "has":
            found = self.send(client, "TAMIS.HAS", key, *items)
            assert all(f for f, item in zip(found, items, strict=True) if known[item])
        elif verb == "rem" and counts:
            present = [item for item in items if known[item]]
            if present:
                assert all(self.send(client, "TAMIS.REM", key, present[0]))
                known[present[0]] -= 1
        elif verb == "count" and counts:
            got = self.send(client, "TAMIS.COUNT", key, *items)
            assert all(n >= known[item] for n, item in zip(got, items, strict=True))
        elif verb == "merge" and kind == "split_block":
            client.delete(f"{key}-union")
            self.send(client, "TAMIS.MERGE", f"{key}-union", key)
            present = [item for item in known if known[item]][:50]
            if present:
                assert all(self.send(client, "TAMIS.HAS", f"{key}-union", *present))

    def nonsense(self, client):
        """Commands that are refused, and change nothing."""
        client.set("string", "x")
        words = self.random.choice(
            [
                ("BF.ADD", "string", "a"),
                ("BF.ADD", "bf0"),
                ("BF.RESERVE", "bf0", "x", 1),
                ("BF.RESERVE", "bf9", 2, 1),
                ("BF.RESERVE", "bf9", 0.01, 1 << 61),
                ("BF.INSERT", "bf9", "NOCREATE", "ITEMS", "a"),
                ("BF.INSERT", "bf0", "WHAT", "ITEMS", "a"),
                ("CF.RESERVE", "cf9", 0),
                ("CF.DEL", "cf9", "a"),
                ("CF.ADD", "bf-is-no-cf", "a", "b"),
                ("TAMIS.ADD", "t9", "a"),
                ("TAMIS.CREATE", "t9", "KIND", "nothing"),
                ("TAMIS.CREATE", "t9", "KIND", "cuckoo", "CAPACITY", 1 << 60),
                ("TAMIS.MERGE", "t9", "t8"),
                ("TAMIS.LOAD", "t9", 0, b"these bytes are not the file of a filter"),
                ("BF.LOADCHUNK", "bf9", 1, b"TMSV" + bytes(60)),
                ("CF.LOADCHUNK", "cf9", 1, bytes(38)),
            ]
        )
        try:
            self.send(client, *words)
        except redis.ResponseError:
            return
        raise AssertionError(f"{words} was not refused")


def wait_for_rewrite(client):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        info = client.info("persistence")
        if not info["aof_rewrite_in_progress"] and not info["aof_rewrite_scheduled"]:
            assert info["aof_last_bgrewrite_status"] == "ok"
            return
        time.sleep(0.02)
    raise TimeoutError


def test_every_way_leads_to_the_same_data(start):
    """Primary = replica = RDB = AOF = rewritten AOF = DUMP/RESTORE = COPY, by digest."""
    primary = start("--appendonly", "yes", "--appendfsync", "no")
    # A replica with other settings follows its primary all the same.
    replica = start(
        "--replicaof",
        f"127.0.0.1 {primary.port}",
        "--bf.bloom-capacity",
        "7",
        "--bf.bloom-use-random-seed",
        "no",
        "--bf.cuckoo-capacity",
        "4000",
    )
    model = Model(SEED)
    clients = [primary.client(protocol=2), primary.client(protocol=3), primary.client(protocol=3)]
    follower = replica.client()
    synced(clients[0], follower)
    for batch in range(COMMANDS // BATCH):
        for i in range(BATCH):
            model.step(clients[i % len(clients)])
        control = clients[0]
        expected = digest(control)
        synced(control, follower)
        assert digest(follower) == expected, "the replica"
        control.execute_command("DEBUG", "RELOAD")
        assert digest(control) == expected, "the RDB file"
        control.execute_command("DEBUG", "LOADAOF")
        assert digest(control) == expected, "the append-only file"
        control.config_set("aof-use-rdb-preamble", "no" if batch % 2 else "yes")
        control.bgrewriteaof()
        wait_for_rewrite(control)
        control.execute_command("DEBUG", "LOADAOF")
        assert digest(control) == expected, "the rewritten append-only file"
        for key in [key for key in control.keys() if key != b"string"]:
            control.restore("restored", 0, control.dump(key))
            control.copy(key, "copied")
            same = digest(control, key, "restored", "copied")
            assert same[0] == same[1] == same[2], key
            control.delete("restored", "copied")
    assert len(model.calls) > 20
    assert sum(model.calls.values()) > COMMANDS / 2
    # The follower takes over, and has everything.
    follower.execute_command("REPLICAOF", "NO", "ONE")
    for key, known in model.sets.items():
        present = [item for item, copies in known.items() if copies]
        if present:
            assert all(call(follower, f"BF.MEXISTS {key}", *present)), key


def test_a_write_that_was_acknowledged_survives_a_kill(start):
    server = start("--appendonly", "yes", "--appendfsync", "always")
    acknowledged, stop = [], threading.Event()

    def write(number):
        client, mine = server.client(), []
        try:
            for i in range(20_000):
                if stop.is_set():
                    break
                item = f"{number}-{i}"
                key = f"{'bf' if i % 2 else 'cf'}{number}"
                if i % 2:
                    client.execute_command("BF.ADD", key, item)
                else:
                    client.execute_command("CF.INSERT", key, "CAPACITY", 100, "ITEMS", item)
                mine.append((key, item))
        except redis.RedisError:
            pass
        acknowledged.extend(mine)

    writers = [threading.Thread(target=write, args=[number]) for number in range(4)]
    for writer in writers:
        writer.start()
    time.sleep(1.5)
    server.kill()
    stop.set()
    for writer in writers:
        writer.join()
    assert len(acknowledged) > 200
    server.start()
    client = server.client()
    for key in {key for key, _ in acknowledged}:
        items = [item for held, item in acknowledged if held == key]
        assert all(call(client, f"BF.MEXISTS {key}", *items)), key


def test_growth_merges_and_loads_of_large_filters_wait_in_a_thread(start):
    """Several clients write while tables double; the replica ends with the same bytes."""
    primary = start()
    replica = start("--replicaof", f"127.0.0.1 {primary.port}")
    client, follower = primary.client(), replica.client()
    synced(client, follower)
    call(client, "CF.RESERVE c 700000")
    call(client, "TAMIS.CREATE q KIND quotient_counting CAPACITY 700000")

    def write(number):
        with primary.client(protocol=2 + number % 2) as mine:
            for start_at in range(number * 300_000, (number + 1) * 300_000, 10_000):
                items = range(start_at, start_at + 10_000)
                assert all(call(mine, "CF.INSERT c ITEMS", *items))
                assert call(mine, f"CF.DEL c {start_at}") == 1

    writers = [threading.Thread(target=write, args=[number]) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert call(client, "CF.INFO c")[7] == 1_200_000 - 120
    gone = set(range(0, 1_200_000, 10_000))
    for start_at in range(0, 1_200_000, 20_000):
        items = [i for i in range(start_at, start_at + 20_000) if i not in gone]
        assert all(call(client, "CF.MEXISTS c", *items))
    call(client, "TAMIS.ADD q", *range(100_000))
    call(client, "TAMIS.MERGE u c c")
    chunks, at = [], 0
    while True:
        at, chunk = call(client, f"CF.SCANDUMP u {at}")
        if at == 0:
            break
        chunks.append((at, chunk))
    for at, chunk in chunks:
        assert call(client, f"CF.LOADCHUNK v {at}", chunk) == b"OK"
    assert len(set(digest(client, "u", "v"))) == 1
    # In a transaction nothing can wait, and the command is done at once.
    with client.pipeline(transaction=True) as pipeline:
        pipeline.execute_command("CF.INSERT", "v", "ITEMS", *range(5_000_000, 5_400_000))
        pipeline.execute_command("CF.COUNT", "v", 5_000_001)
        replies = pipeline.execute()
    assert all(replies[0])
    assert replies[1] >= 1
    expected = digest(client)
    synced(client, follower, seconds=120)
    assert digest(follower) == expected


def test_the_replica_follows_whatever_happens_to_a_key_that_the_thread_has(start):
    """Keys are deleted, renamed, copied, swapped, changed by scripts, and their clients killed."""
    primary = start("--appendonly", "yes", "--appendfsync", "no")
    replica = start("--replicaof", f"127.0.0.1 {primary.port}")
    client, follower = primary.client(), replica.client()
    synced(client, follower)
    call(client, "CF.RESERVE large 200000")
    call(client, "CF.INSERT large ITEMS", *range(20_000))
    payload, chunks, at = client.dump("large"), [], 0
    while True:
        at, chunk = call(client, f"CF.SCANDUMP large {at}")
        if at == 0:
            break
        chunks.append((at, chunk))

    def change(mine, dice):
        key, other = f"k{dice.randrange(4)}", f"k{dice.randrange(4)}"
        items = [dice.randrange(10**7) for _ in range(dice.choice([1, 100, 10_000]))]
        one = dice.choice(["CF.ADD", "TAMIS.ADD", "CF.DEL", "TAMIS.REM", "BF.ADD"])
        verb = dice.randrange(16)
        if verb < 2:
            size = dice.choice([1000, 100_000])
            call(mine, f"CF.INSERT {key} CAPACITY {size} ITEMS", *items)
        elif verb == 2:
            size = dice.choice([1000, 900_000])
            call(mine, f"BF.INSERT {key} CAPACITY {size} ITEMS", *items)
        elif verb < 5:
            call(mine, f"TAMIS.MERGE {key} {other} k0")
        elif verb == 5:
            mine.rename(key, other)
        elif verb == 6:
            mine.unlink(key)
        elif verb == 7:
            mine.copy(key, other, replace=True)
        elif verb == 8:
            mine.restore(key, 0, payload, replace=True)
        elif verb == 9:
            for at, chunk in chunks:
                call(mine, f"CF.LOADCHUNK {key} {at}", chunk)
        elif verb == 10:
            mine.eval("return redis.pcall(ARGV[1], KEYS[1], ARGV[2])", 1, key, one, items[0])
        elif verb == 11:
            with mine.pipeline(transaction=True) as pipeline:
                pipeline.execute_command(one, key, items[0])
                pipeline.execute_command("TAMIS.MERGE", other, key)
                pipeline.execute(raise_on_error=False)
        elif verb == 12:
            waiting = [c["id"] for c in mine.client_list() if "b" in c["flags"]]
            if waiting:
                call(mine, f"CLIENT KILL ID {waiting[0]}")
        elif verb == 13:
            mine.execute_command("SWAPDB", 0, 1)
        elif verb == 14:
            mine.pexpire(key, dice.randrange(1000))
        elif dice.random() < 0.3:
            mine.execute_command(dice.choice(["FLUSHALL", "FLUSHDB"]))

    def drive(number):
        dice = random.Random(number)
        with primary.client(protocol=2 + number % 2, socket_timeout=120) as mine:
            for _ in range(150):
                with contextlib.suppress(redis.ResponseError, redis.ConnectionError):
                    change(mine, dice)

    drivers = [threading.Thread(target=drive, args=[number]) for number in range(4)]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join()
    # A client that was killed is waited for no more; its work may be.
    while client.info("clients")["blocked_clients"]:
        time.sleep(0.02)
    assert client.info("bf")["bf_commands_by_thread"] > 10
    for database in 0, 1:
        with primary.client(db=database) as mine:
            call(mine, "BF.ADD last x")
            for key in mine.keys():
                mine.persist(key)
    synced(client, follower, seconds=120)
    expected = digest(client)
    assert digest(follower) == expected
    client.execute_command("DEBUG", "LOADAOF")
    assert digest(client) == expected
