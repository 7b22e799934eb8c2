"""Moving filters: chunks of ours and of RedisBloom, damage of every sort."""

import random
import struct
import threading
import time

import pytest
import redis

from conftest import GOLDEN, call, digest, refused, waiting
from redisbloom import Bloom, Cuckoo, murmur


def chunks_of(client, key, family="BF"):
    chunks, at = [], 0
    while True:
        at, chunk = client.execute_command(f"{family}.SCANDUMP", key, at)
        if at == 0:
            return chunks
        chunks.append((at, chunk))


def load(client, key, chunks, family="BF"):
    for at, chunk in chunks:
        client.execute_command(f"{family}.LOADCHUNK", key, at, chunk)


def test_a_dump_is_one_moments_and_loads_in_order_only(client):
    call(client, "BF.RESERVE f 0.01 50")
    call(client, "BF.MADD f", *range(500))
    header = call(client, "BF.SCANDUMP f 0")
    call(client, "BF.MADD f", *range(1000, 1500))
    at, chunk = call(client, "BF.SCANDUMP f 1")
    load(client, "g", [header, (at, chunk)])
    assert all(call(client, "BF.MEXISTS g", *range(500)))
    assert call(client, "BF.CARD g") < call(client, "BF.CARD f")
    chunks = chunks_of(client, "f")
    half = len(chunks[1][1]) // 2
    parts = [chunks[0], (half + 1, chunks[1][1][:half]), (chunks[1][0], chunks[1][1][half:])]
    for wrong in [parts[2], (half + 2, parts[1][1]), (0, b"x"), (1, parts[0][1]), (half + 1, b"")]:
        call(client, "DEL h")
        load(client, "h", parts[:1])
        assert refused(client, f"BF.LOADCHUNK h {wrong[0]}", wrong[1])
        for line in "BF.ADD h x", "BF.EXISTS h x", "BF.CARD h", "BF.SCANDUMP h 0":
            assert "not complete" in refused(client, line), line
        # What is half loaded survives a reload, and is completed after it.
        load(client, "h", parts[1:2])
        client.execute_command("DEBUG", "RELOAD")
        load(client, "h", parts[2:])
        assert len(set(digest(client, "f", "h"))) == 1
    assert refused(client, f"BF.LOADCHUNK h {parts[2][0]}", parts[2][1])


def test_bloom_filters_move_in_from_redisbloom(client):
    theirs = Bloom(1000, 0.01)
    items = [f"theirs-{i}".encode() for i in range(900)]
    for item in items:
        theirs.add(item)
    load(client, "f", theirs.chunks())
    assert all(call(client, "BF.MEXISTS f", *items))
    strangers = [f"stranger-{i}" for i in range(20_000)]
    assert sum(call(client, "BF.MEXISTS f", *strangers)) < 0.01 * 20_000
    assert call(client, "BF.CARD f") == 900
    # It takes more items, grows, and goes on in the same form.
    more = [f"more-{i}" for i in range(3000)]
    call(client, "BF.MADD f", *more)
    assert all(call(client, "BF.MEXISTS f", *more, *items))
    assert sum(call(client, "BF.MEXISTS f", *strangers)) < 0.013 * 20_000
    info = call(client, "BF.INFO f")
    info = info if isinstance(info, dict) else dict(zip(info[::2], info[1::2], strict=True))
    assert info[b"Number of filters"] == 3
    assert info[b"Capacity"] == 7000
    again = chunks_of(client, "f")
    assert len(again[0][1]) == 20 + 3 * 53
    load(client, "g", again)
    client.execute_command("DEBUG", "RELOAD")
    assert len(set(digest(client, "f", "g"))) == 1


def test_a_chain_of_redisbloom_answers_as_it_did(resp2):
    """Several links, and one that does not scale: every bit of them is understood."""
    items = [f"theirs-{i}".encode() for i in range(1500)]
    strangers = [f"stranger-{i}".encode() for i in range(3000)]
    for theirs in Bloom(100, 0.05), Bloom(1500, 0.05, scales=False):
        for item in items:
            theirs.add(item)
        call(resp2, "DEL f")
        load(resp2, "f", theirs.chunks())
        expected = [any(link.contains(item) for link in theirs.links) for item in items + strangers]
        assert call(resp2, "BF.MEXISTS f", *items, *strangers) == expected
        assert any(expected[1500:])
        assert call(resp2, "BF.INFO f FILTERS") == [len(theirs.links)]
        assert call(resp2, "BF.INFO f ERROR") == b"0.05"
        # What goes out is what came in.
        ours = chunks_of(resp2, "f")
        assert [ours[0], b"".join(chunk for _, chunk in ours[1:])] == [
            next(iter(theirs.chunks(1 << 20))),
            b"".join(bytes(link.data) for link in theirs.links),
        ]


def test_a_chain_of_redisbloom_begins_a_large_link_in_the_thread(start):
    theirs = Bloom(3_000_000, 0.01)
    theirs.links[0].items = 3_000_000
    server = start()
    client = server.client()
    load(client, "f", theirs.chunks(1 << 20))

    def write(number):
        with server.client() as mine:
            for at in range(0, 3000, 100):
                items = [f"{number}-{i}" for i in range(at, at + 100)]
                call(mine, "BF.MADD f", *items)
                assert all(call(mine, "BF.MEXISTS f", *items))

    writers = [threading.Thread(target=write, args=[number]) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    everything = [f"{number}-{i}" for number in range(4) for i in range(3000)]
    assert all(call(client, "BF.MEXISTS f", *everything))
    assert call(client, "BF.INFO f FILTERS") == [2]
    expected = digest(client)
    client.execute_command("DEBUG", "RELOAD")
    assert digest(client) == expected


def test_large_filters_move_whole_and_in_chunks_while_they_are_written(start):
    """What is written while a dump is made waits for it, and is not part of it."""
    server = start()
    client = server.client()
    call(client, "BF.RESERVE f 0.01 5000000")
    call(client, "BF.MADD f", *range(20_000))
    stop, written = threading.Event(), []

    def write():
        with server.client() as mine:
            while not stop.is_set():
                item = f"new-{len(written)}"
                call(mine, f"BF.ADD f {item}")
                written.append(item)

    writer = threading.Thread(target=write)
    writer.start()
    for key in "g", "h":
        load(client, key, chunks_of(client, "f"))
        assert all(call(client, f"BF.MEXISTS {key}", *range(20_000)))
        assert 0 < call(client, f"BF.CARD {key}") <= call(client, "BF.CARD f")
    stop.set()
    writer.join()
    assert all(call(client, "BF.MEXISTS f", *written))
    chunks = chunks_of(client, "f")
    whole = b"".join(chunk for _, chunk in chunks)
    assert call(client, "BF.LOAD i", whole) == b"OK"
    assert len(set(digest(client, "f", "i"))) == 1
    assert "damaged" in refused(client, "BF.LOAD j", whole[:-1] + bytes([whole[-1] ^ 1]))
    assert not client.exists("j")


def test_a_dump_that_nobody_reads_on_is_freed_with_its_key(start):
    client = start("--lazyfree-lazy-user-del", "no").client()
    call(client, "BF.RESERVE f 0.01 8000000")
    call(client, "BF.ADD f x")
    call(client, "BF.SCANDUMP f 0")
    call(client, "TAMIS.DUMP f 0")
    before = client.info("memory")["used_memory"]
    assert before > 30 << 20
    client.delete("f")
    deadline = time.monotonic() + 30
    while client.info("memory")["used_memory"] > before - (30 << 20):
        assert time.monotonic() < deadline, "three times ten megabytes are held"
        time.sleep(0.02)


def test_a_filter_is_not_lost_while_it_is_opened(start):
    """It is renamed, copied, dumped and saved as what it becomes, before or after."""
    server = start()
    client = server.client()
    call(client, "TAMIS.CREATE large KIND bloom CAPACITY 30000000")
    call(client, "TAMIS.CREATE f KIND split_block CAPACITY 3000000")
    call(client, "TAMIS.ADD f", *range(1000))
    chunks, at = [], 0
    while True:
        end, chunk = call(client, f"TAMIS.DUMP f {at}")
        if end == 0:
            break
        chunks.append((at, chunk))
        at = end

    for turn in range(3):
        call(client, "DEL renamed copied restored")
        for at, chunk in chunks[:-1]:
            call(client, f"TAMIS.LOAD g {at}", chunk)
        # The thread has something else to do first.
        clients = [waiting(server, 1, "TAMIS.MERGE union large large")]
        clients.append(waiting(server, 2, f"TAMIS.LOAD g {chunks[-1][0]}", chunks[-1][1]))
        if turn == 0:
            client.restore("restored", 0, client.dump("g"))
        elif turn == 1:
            client.execute_command("DEBUG", "RELOAD")
        client.copy("g", "copied")
        client.rename("g", "renamed")
        for thread in clients:
            thread.join()
        keys = ["f", "renamed", "copied", *(["restored"] if turn == 0 else [])]
        assert len(set(digest(client, *keys))) == 1
        for key in keys:
            assert all(call(client, f"TAMIS.HAS {key}", *range(1000))), key
        assert call(client, f"TAMIS.ADD renamed more-{turn}") == [1]


def test_cuckoo_filters_move_in_from_redisbloom(client):
    theirs = Cuckoo(1024)
    items = [f"theirs-{i}".encode() for i in range(1000)]
    items = [item for item in items if theirs.add(item)]
    load(client, "f", theirs.chunks(), "CF")
    assert all(call(client, "CF.MEXISTS f", *items))
    assert call(client, "CF.COUNT f", items[0]) >= 1
    assert call(client, "CF.DEL f", items[0]) == 1
    more = [f"more-{i}" for i in range(4000)]
    assert all(call(client, "CF.INSERT f ITEMS", *more))
    assert all(call(client, "CF.MEXISTS f", *more, *items[1:]))
    again = chunks_of(client, "f", "CF")
    load(client, "g", again, "CF")
    client.execute_command("DEBUG", "RELOAD")
    assert len(set(digest(client, "f", "g"))) == 1
    for item in [*more, *items[1:]]:
        assert call(client, "CF.DEL f", item) == 1
    info = call(client, "CF.INFO f")
    info = info if isinstance(info, dict) else dict(zip(info[::2], info[1::2], strict=True))
    assert info[b"Number of items inserted"] == 0


def test_murmur_is_the_public_one():
    """Values that the function's public implementations give."""
    assert murmur(b"", 0) == 0
    assert murmur(b"hello", 0) == 0x1E68D17C457BF117
    assert murmur(b"hello world", 0) == 0xD3BA2368A832AFCE


def crc64(data):
    """The checksum at the end of a DUMP payload: CRC-64/Jones, reflected, starting at 0."""
    crc = 0
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc


def table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x95AC9329AC4BC9B5 if byte & 1 else 0)
        yield byte


TABLE = list(table())


def payloads(client):
    call(client, "BF.RESERVE bloom 0.01 20")
    call(client, "BF.MADD bloom", *range(60))
    call(client, "CF.INSERT cuckoo CAPACITY 30 ITEMS", *range(60))
    call(client, "TAMIS.CREATE window WINDOW 1h CAPACITY 50")
    call(client, "TAMIS.ADD window", *range(20))
    theirs = Bloom(20, 0.01)
    theirs.add(b"x")
    load(client, "chain", theirs.chunks(20))
    table = Cuckoo(16)
    table.add(b"x")
    load(client, "table", table.chunks(20), "CF")
    load(client, "half", [next(iter(theirs.chunks(20)))])
    return {
        key: client.dump(key) for key in ("bloom", "cuckoo", "window", "chain", "table", "half")
    }


def test_damaged_payloads_are_refused(resp2):
    """Flipped bits, cuts and forged sizes, with the payload's own checksum repaired."""
    dice, tried = random.Random(7), 0
    for key, payload in payloads(resp2).items():
        body = payload[:-8]
        assert struct.pack("<Q", crc64(body)) == payload[-8:], "the checksum is understood"
        damaged = [body[:cut] + body[-2:] for cut in range(12, len(body) - 2, 7)]
        # Not the type's name and version, nor the version of the RDB format at the end.
        for at in range(10, len(body) - 2):
            damaged.append(body[:at] + bytes([body[at] ^ 1 << dice.randrange(8)]) + body[at + 1 :])
        for value in (0, 0xFFFFFFFF, 2**63, 2**64 - 1):
            for at in range(12, len(body) - 10, 5):
                damaged.append(body[:at] + struct.pack("<Q", value) + body[at + 8 :])
        for bad in damaged:
            if bad == body:
                continue
            tried += 1
            try:
                resp2.restore("damaged", 0, bad + struct.pack("<Q", crc64(bad)), replace=True)
            except redis.ResponseError:
                continue
            # A flip that says the same in other words, such as a longer form of a length.
            assert digest(resp2, "damaged") == digest(resp2, key), (key, tried)
    assert tried > 2000
    assert resp2.ping()


@pytest.mark.parametrize("family", ["BF", "CF", "TAMIS"])
def test_damaged_chunks_are_refused(resp2, family):
    dice = random.Random(11)
    if family == "TAMIS":
        call(resp2, "TAMIS.CREATE f KIND cuckoo CAPACITY 50")
        call(resp2, "TAMIS.ADD f", *range(30))
        _, file = call(resp2, "TAMIS.DUMP f 0")
        chunks = [(0, file)]
        verb = "TAMIS.LOAD"
    else:
        add = {"BF": "BF.MADD f", "CF": "CF.INSERT f ITEMS"}[family]
        call(resp2, add, *range(30))
        chunks = chunks_of(resp2, "f", family)
        verb = f"{family}.LOADCHUNK"
    refusals = tries = 0
    for number, (_, chunk) in enumerate(chunks):
        for at in range(0, len(chunk), 3):
            bad = bytearray(chunk)
            bad[at] ^= 1 << dice.randrange(8)
            resp2.delete("g")
            tries += 1
            try:
                for other, (place, good) in enumerate(chunks):
                    resp2.execute_command(verb, "g", place, bytes(bad) if other == number else good)
            except redis.ResponseError:
                refusals += 1
            if resp2.exists("g"):
                assert "not complete" in refused(resp2, "BF.EXISTS g x")
                refusals += family == "TAMIS"
    assert refusals == tries > 50


def test_forged_headers_of_redisbloom_are_refused(resp2):
    good = next(iter(Bloom(100, 0.01).chunks()))[1]
    table = next(iter(Cuckoo(64).chunks()))[1]
    for family, header in ("BF", good), ("CF", table):
        refusals = 0
        for at in range(0, len(header), 2):
            for value in (0, 0xFFFF):
                bad = header[:at] + struct.pack("<H", value) + header[at + 2 :]
                resp2.delete("f")
                try:
                    resp2.execute_command(f"{family}.LOADCHUNK", "f", 1, bad)
                    resp2.execute_command(f"{family}.LOADCHUNK", "f", 1001, bytes(1000))
                except redis.ResponseError:
                    refusals += 1
        assert refusals > 10
    # More items than can be told, and nearly so many.
    call(resp2, "DEL f")
    forged = struct.pack("<q", -1) + good[8:]
    assert "number of links, or of items" in refused(resp2, "BF.LOADCHUNK f 1", forged)
    chunks = list(Bloom(100, 0.01).chunks())
    load(resp2, "f", [(1, struct.pack("<q", (1 << 63) - 1) + good[8:]), *chunks[1:]])
    assert call(resp2, "BF.ADD f x") == 1
    assert resp2.ping()
    assert resp2.info("memory")["used_memory"] < 100 << 20


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.tamis")), ids=lambda path: path.stem)
def test_files_made_elsewhere_are_served_and_given_back(resp2, path):
    """Static kinds and maps too; the answers are those of the library, false ones as well."""
    file, told = path.read_bytes(), path.with_suffix(".txt").read_text().splitlines()
    for at in range(0, len(file), 333):
        chunk = file[at : at + 333]
        try:
            left = call(resp2, f"TAMIS.LOAD f {at}", chunk)
        except redis.ResponseError as error:
            assert "secret" in str(error)
            assert "withheld" in path.stem
            assert not resp2.exists("f")
            return
        assert left == (len(file) - at - len(chunk) if at + len(chunk) >= 24 else -1)
    keys = [f"present-{i}" for i in range(int(told[1].split()[0]))]
    keys += [line for line in told if line.startswith("absent-")]
    assert not keys or all(call(resp2, "TAMIS.HAS f", *keys))
    info = call(resp2, "TAMIS.INFO f")
    can = info[1 + info.index(b"can")]
    if b"insert" not in can:
        assert "insert" in str(call(resp2, "TAMIS.ADD f x")[0])
    if path.stem == "bloomier":
        assert len(call(resp2, "TAMIS.GET f present-1 present-2")) == 2
    resp2.execute_command("DEBUG", "RELOAD")
    assert call(resp2, "TAMIS.DUMP f 0")[1] == file
