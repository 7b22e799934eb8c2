"""The figures of docs/REDIS.md: `cargo xtask redis bench`, `pauses` and `latency`.

Work is counted in seconds of the server's processor time, which a busy machine does not change
much: items, or commands, for each of them; and how long a single one takes. Only what a second
client waits for is wall-clock time, and is shown beside the same of a server that has nothing to
do.
"""

import multiprocessing
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("TAMIS_SERVERS", f"it={sys.argv[1]}")
from conftest import Server, call

RANGE = 10_000_000
RAND = "__rand_int__"


def cpu(client):
    info = client.info("cpu")
    return info["used_cpu_user_main_thread"] + info["used_cpu_sys_main_thread"]


def load(server, words, calls, pipeline):
    """Calls a command so often by redis-benchmark; commands for each second of the server's."""
    program = pathlib.Path(server.program).with_name("valkey-benchmark")
    program = program if program.exists() else "redis-benchmark"
    with server.client() as client:
        before = cpu(client)
        command = [program, "-p", server.port, "-n", calls, "-P", pipeline, "-c", 4, "-q"]
        command += ["-r", RANGE, *words]
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)
        return calls / (cpu(client) - before)


def best(*arguments, rounds=3):
    return max(load(*arguments) for _ in range(rounds))


def speed(server):
    with server.client() as client:
        call(client, f"BF.RESERVE bloom 0.01 {RANGE}")
        call(client, f"CF.RESERVE cuckoo {RANGE} ERROR 0.01")
        call(client, f"TAMIS.CREATE split KIND split_block CAPACITY {RANGE}")
    one, hundred = [f"item:{RAND}"], [f"item:{RAND}"] * 100
    rates = {}

    def row(name, words, calls, pipeline, items=1):
        rates[name] = items * best(server, words, calls, pipeline)
        print(f"| `{name}` | {pipeline} | {rates[name] / 1e6:.2f} |", flush=True)

    print("\n| command | pipelined by | million items a second of the main thread |\n|---|---|---|")
    row("SET", ["SET", f"key:{RAND}", "x"], 200_000, 16)
    row("GET", ["GET", f"key:{RAND}"], 300_000, 16)
    row("BF.EXISTS", ["BF.EXISTS", "bloom", *one], 300_000, 16)
    row("CF.EXISTS", ["CF.EXISTS", "cuckoo", *one], 300_000, 16)
    row("SADD", ["SADD", "set", *one], 200_000, 16)
    row("SISMEMBER", ["SISMEMBER", "set", *one], 300_000, 16)
    row("BF.ADD", ["BF.ADD", "bloom", *one], 200_000, 16)
    row("SADD, deeper", ["SADD", "set", *one], 200_000, 100)
    row("SISMEMBER, deeper", ["SISMEMBER", "set", *one], 300_000, 100)
    row("BF.MADD of 100", ["BF.MADD", "bloom", *hundred], 10_000, 16, 100)
    row("BF.MEXISTS of 100", ["BF.MEXISTS", "bloom", *hundred], 10_000, 16, 100)
    row("CF.MEXISTS of 100", ["CF.MEXISTS", "cuckoo", *hundred], 10_000, 16, 100)
    row("TAMIS.HAS of 100, split_block", ["TAMIS.HAS", "split", *hundred], 10_000, 16, 100)
    print()
    for ours, theirs in [
        ("BF.EXISTS", "GET"),
        ("BF.MADD of 100", "SADD"),
        ("BF.MEXISTS of 100", "SISMEMBER"),
        ("BF.MADD of 100", "SADD, deeper"),
        ("BF.MEXISTS of 100", "SISMEMBER, deeper"),
    ]:
        print(f"{ours} / {theirs}: {rates[ours] / rates[theirs]:.2f}")


def schedule(task):
    """Milliseconds that a thread has run, and that it has waited for a processor."""
    ran, waited, _ = os.pread(task, 64, 0).split()
    return int(ran) / 1e6, int(waited) / 1e6


def main_thread(server):
    pid = server.process.pid
    return os.open(f"/proc/{pid}/task/{pid}/schedstat", os.O_RDONLY)


class Longest:
    """Calls, and for how long at most the server's main thread ran for one of them.

    Wall-clock time would tell how busy the machine is.
    """

    def __init__(self, server, client):
        self.task, self.client, self.longest, self.calls = main_thread(server), client, 0.0, 0

    def __call__(self, *words):
        before, _ = schedule(self.task)
        reply = self.client.execute_command(*words)
        after, _ = schedule(self.task)
        self.longest, self.calls = max(self.longest, after - before), self.calls + 1
        return reply


def fill(call, *words):
    """Calls a command with 10^7 items, 1000 at a time."""
    for at in range(0, RANGE, 1000):
        call(*words, *range(at, at + 1000))


def chunks(call, command, key):
    """What a filter is dumped as: pairs of the next position and bytes."""
    at = 0
    while True:
        at, chunk = call(command, key, at)
        if at == 0:
            return
        yield at, chunk


def ship(call, family, key):
    """Copies a filter in chunks, as clients know it."""
    for at, chunk in list(chunks(call, f"{family}.SCANDUMP", key)):
        call(f"{family}.LOADCHUNK", f"{key}-2", at, chunk)


def ship_file(call, key):
    """Copies a filter as its file."""
    for end, chunk in list(chunks(call, "TAMIS.DUMP", key)):
        call("TAMIS.LOAD", f"{key}-3", end - len(chunk), chunk)


def pauses(server):
    """For how long a single call holds the server, with ten million items in a filter.

    That is for as long as the main thread runs for it, or the thread for long work has the lock.
    """
    # A client may wait for minutes; it is the server that may not.
    with server.client(socket_timeout=600) as client:
        client.flushall()
        print("\n| with 10^7 items | calls | the longest, ms | the lock so far, ms |")
        print("|---|---|---|---|")

        def row(name, calls, longest):
            lock = client.info("bf")["bf_longest_lock_us"] / 1000
            print(f"| {name} | {calls} | {longest:.1f} | {lock:.1f} |", flush=True)

        def watch(name, work):
            call, begin = Longest(server, client), time.monotonic()
            work(call)
            row(name, call.calls, call.longest)
            return time.monotonic() - begin

        client.execute_command("BF.RESERVE", "bloom", 0.01, RANGE)
        grown = ["BF.INSERT", "grown", "CAPACITY", 1000, "ITEMS"]
        watch("`SADD` of 1000", lambda call: fill(call, "SADD", "set"))
        client.unlink("set")
        watch("`BF.MADD` of 1000, room for all", lambda call: fill(call, "BF.MADD", "bloom"))
        watch("`BF.MADD` of 1000, growing from 1000", lambda call: fill(call, *grown))
        watch(
            "`CF.INSERT` of 1000, growing from 1024",
            lambda call: fill(call, "CF.INSERT", "cuckoo", "ITEMS"),
        )
        for family, key in ("BF", "bloom"), ("CF", "cuckoo"):
            watch(f"`{family}.SCANDUMP`, `LOADCHUNK`", lambda c, f=family, k=key: ship(c, f, k))
            watch(f"`TAMIS.DUMP`, `LOAD` of `{family}`", lambda c, k=key: ship_file(c, k))
            pair = [f"{key}-4", key, f"{key}-2"]
            seconds = watch(f"`TAMIS.MERGE` of `{family}`", lambda c, p=pair: c("TAMIS.MERGE", *p))
            task = main_thread(server)
            before, _ = schedule(task)
            time.sleep(seconds)
            row(f"nothing, for the {seconds:.1f} s that this took", 0, schedule(task)[0] - before)
        client.execute_command("TAMIS.CREATE", "window", "WINDOW", "20s", "CAPACITY", RANGE)
        watch("`TAMIS.ADD` of 1000 to a window of 20 s", lambda c: fill(c, "TAMIS.ADD", "window"))
        time.sleep(15)
        watch("`TAMIS.HAS` 15 s later", lambda call: call("TAMIS.HAS", "window", 1))
        watch("the server's own `COPY`", lambda call: call("COPY", "bloom", "copy"))
        watch("the server's own `DUMP`", lambda call: call("DUMP", "bloom"))
        watch("`UNLINK`", lambda call: call("UNLINK", *client.keys()))


def ping(server, pipe):
    """Pings a server every half millisecond until it is told to end.

    Of each ping: how long it took; for how long the server's main thread ran meanwhile, which is
    at least the step that the ping had to wait for, and more where this process was waiting for a
    processor; and for how long this process and that thread did so.
    """
    taken = []
    theirs = main_thread(server)
    ours = os.open("/proc/self/schedstat", os.O_RDONLY)
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        while not pipe.poll():
            (ran, waited), (_, idle) = schedule(theirs), schedule(ours)
            begin = time.monotonic()
            connection.sendall(b"PING\r\n")
            if not connection.recv(16):
                break
            wall = 1000 * (time.monotonic() - begin)
            if not taken:
                pipe.send("ready")
            (ran_now, waited_now), (_, idle_now) = schedule(theirs), schedule(ours)
            taken.append((wall, ran_now - ran, waited_now - waited + idle_now - idle))
            time.sleep(0.0005)
    pipe.send(taken)


def latency(server):
    """How long a second client waits for an answer, while the first has long work done."""
    steps = [1, 3, 10, 30, 100]
    print("\n| meanwhile | seconds | pings | longest, ms |", end="")
    print("".join(f" above {step} ms |" for step in steps), end="")
    print(" the server ran, ms | no processor, ms | else, ms |")
    print("|---" * (7 + len(steps)) + "|")
    with server.client(socket_timeout=600) as client:
        call = client.execute_command

        def watch(name, work):
            ours, theirs = multiprocessing.Pipe()
            pings = multiprocessing.Process(target=ping, args=(server, theirs))
            pings.start()
            ours.recv()
            begin = time.monotonic()
            work()
            seconds = time.monotonic() - begin
            ours.send("end")
            taken = ours.recv()
            pings.join()
            above = [sum(wall > step for wall, _, _ in taken) for step in steps]
            longest = [max(parts) for parts in zip(*taken, strict=True)]
            longest.append(max(wall - ran - waited for wall, ran, waited in taken))
            wall, *parts = (f"{ms:.1f}" for ms in longest)
            cells = [name, f"{seconds:.1f}", len(taken), wall, *above, *parts]
            print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)

        def rewrite():
            client.bgrewriteaof()
            time.sleep(0.1)
            while client.info("persistence")["aof_rewrite_in_progress"]:
                time.sleep(0.1)

        watch("nothing", lambda: time.sleep(20))
        call("BF.RESERVE", "roomy", 0.01, RANGE)
        watch("`BF.MADD`, room for all", lambda: fill(call, "BF.MADD", "roomy"))
        call("UNLINK", "roomy")
        watch("`BF.MADD`, growing", lambda: fill(call, "BF.MADD", "bloom"))
        watch("`CF.INSERT`, growing", lambda: fill(call, "CF.INSERT", "cuckoo", "ITEMS"))
        for family, key in ("BF", "bloom"), ("CF", "cuckoo"):
            watch(f"`{family}.SCANDUMP`, `LOADCHUNK`", lambda f=family, k=key: ship(call, f, k))
            watch(f"`TAMIS.DUMP`, `LOAD` of `{family}`", lambda k=key: ship_file(call, k))
            pair = [key, f"{key}-2"]
            watch(
                f"`TAMIS.MERGE` of `{family}`",
                lambda k=key, p=pair: call("TAMIS.MERGE", f"{k}-4", *p),
            )
        watch("`BGREWRITEAOF`", rewrite)
        watch("`COPY`", lambda: call("COPY", "bloom", "copy"))
        watch("`DUMP`", lambda: call("DUMP", "bloom"))
        watch("`UNLINK`", lambda: call("UNLINK", *client.keys()))
        watch("nothing, again", lambda: time.sleep(20))


def memory(server):
    with server.client() as client:
        client.flushall()
        call(client, f"BF.RESERVE scaling 0.01 {RANGE}")
        call(client, f"BF.RESERVE fixed 0.01 {RANGE} NONSCALING")
        call(client, f"CF.RESERVE cuckoo {RANGE} ERROR 0.01")
        some = RANGE // 10
        for at in range(0, some, 1000):
            call(client, "SADD set", *(f"item:{i:012}" for i in range(at, at + 1000)))
        print("\n| memory | bytes an item by `MEMORY USAGE` | by the library |\n|---|---|---|")
        print(f"| a set of 10^6 | {client.memory_usage('set', samples=0) / some:.2f} | |")
        for family, key in ("BF", "scaling"), ("BF", "fixed"), ("CF", "cuckoo"):
            info = call(client, f"{family}.INFO {key}")
            size = info[1 + info.index(b"Size")] / RANGE
            told = client.memory_usage(key) / RANGE
            print(f"| `{family}.RESERVE` for 10^7, {key} | {told:.4f} | {size:.4f} |")


PARTS = {"bench": [speed, memory], "pauses": [pauses], "latency": [latency]}


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as directory:
        server = Server(program, pathlib.Path(directory))
        try:
            with server.client() as client:
                info = client.info("server")
            valkey = info.get("valkey_version")
            print(f"\n## Valkey {valkey}" if valkey else f"\n## Redis {info['redis_version']}")
            for part in PARTS[sys.argv[2]]:
                part(server)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
