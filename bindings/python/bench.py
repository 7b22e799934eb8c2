"""Speed beside other packages: `python bench.py [keys ...]`, in an environment with the peers.

    pip install rbloom abloom pybloomfiltermmap3 pyprobables fastbloom-rs pyfusefilter "xxhash<4"
    pip install numpy pyarrow

Each table is one task. All take part in turns, in one process, and the median of the turns counts,
in processor time; of lookups a turn is 20 000 keys. A peer does a task in its own best way: a bulk
call where it has one.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import tamis
from tamis import _tamis

FPR = 0.01
#: Keys of a turn.
PART = 20_000


def timed(run):
    """Processor time, as others may use the machine."""
    start = time.process_time()
    run()
    return time.process_time() - start


def duel(contestants, rounds):
    """Median seconds of each, in turns; what takes long takes fewer."""
    seconds = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, run in contestants.items():
            taken = seconds[name]
            if taken and sum(taken) > 20:
                continue
            taken.append(run())
    return {name: statistics.median(taken) for name, taken in seconds.items()}


def turns(contestants, asked):
    """Seconds of each for all keys, by the median of parts that all of them take in turns."""
    parts = [asked[i : i + PART] for i in range(0, len(asked), PART)]
    seconds = {name: [] for name in contestants}
    for part in parts:
        for name, (ask, most) in contestants.items():
            few = part[:most]
            seconds[name].append(timed(lambda ask=ask, few=few: ask(few)) / len(few))
    return {name: len(asked) * statistics.median(taken) for name, taken in seconds.items()}


def peer(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"   {name} is not installed", file=sys.stderr)
        return None


def filled_peers(keys):
    """Each peer's way to look up a list, with the keys in."""
    found = {}
    if rbloom := peer("rbloom"):
        bloom = rbloom.Bloom(len(keys), FPR)
        bloom.update(keys)
        found["rbloom"] = lambda asked: [key in bloom for key in asked]
    if abloom := peer("abloom"):
        stable = abloom.BloomFilter(len(keys), FPR)
        stable.update(keys)
        found["abloom"] = lambda asked: [key in stable for key in asked]
    if mapped := peer("pybloomfilter"):
        path = Path(tempfile.mkdtemp()) / "bloom"
        classic = mapped.BloomFilter(len(keys), FPR, str(path))
        classic.update(keys)
        found["pybloomfiltermmap3"] = lambda asked: [key in classic for key in asked]
    if fast := peer("fastbloom_rs"):
        builder = fast.FilterBuilder(len(keys), FPR)
        rust = builder.build_bloom_filter()
        rust.add_str_batch(keys)
        found["fastbloom-rs"] = rust.contains_str_batch
    if fuse := peer("pyfusefilter"):
        static = fuse.Fuse8(len(keys))
        static.populate(keys)
        found["pyfusefilter"] = lambda asked: [static.contains(key) for key in asked]
    if probables := peer("probables"):
        pure = probables.BloomFilter(est_elements=len(keys), false_positive_rate=FPR)
        for key in keys[:20_000]:
            pure.add(key)
        found["pyprobables"] = lambda asked: [key in pure for key in asked]
    return found


def lookups_of_text(n):
    keys = [f"user-{i}@example.com" for i in range(n)]
    asked = [f"user-{i}@example.com" for i in range(n // 2, n // 2 + n)]
    ours = tamis.Filter(capacity=n, fpr=FPR)
    ours.update(keys)
    contestants = {"tamis": (ours.contains_many, PART)}
    for name, ask in filled_peers(keys).items():
        # Pure Python has not the whole day.
        contestants[name] = (ask, PART if name != "pyprobables" else 500)
    tell(f"look up a list of {n:.0e} str", turns(contestants, asked), n)


def single_lookups(n):
    rbloom = peer("rbloom")
    if rbloom is None:
        return
    keys = [f"user-{i}@example.com" for i in range(n)]
    asked = keys
    ours = tamis.Filter(capacity=n, fpr=FPR)
    ours.update(keys)
    static = tamis.build(keys, fpr=FPR)
    theirs = rbloom.Bloom(n, FPR)
    theirs.update(keys)

    def loop(filter_):
        def run(part):
            for key in part:
                key in filter_  # noqa: B015

        return run, PART

    contestants = {
        "tamis": loop(ours),
        "tamis, of a fixed set": loop(static),
        "rbloom": loop(theirs),
    }
    tell(f"`in`, of {n:.0e} str", turns(contestants, asked), len(asked))


def insertions_of_numbers(n, rounds):
    keys = np.arange(n)

    def ours(kind):
        made = tamis.Filter(kind, n, FPR)
        return timed(lambda: made.update(keys))

    def rust(kind):
        made = tamis.Filter(kind, n, FPR)
        return timed(lambda: _tamis._extend(made, keys))

    contestants = {}
    for kind in ("split_block", "bloom"):
        contestants[f"tamis, {kind}"] = lambda kind=kind: ours(kind)
        contestants[f"Rust's `extend`, {kind}"] = lambda kind=kind: rust(kind)
    tell(f"insert {n:.0e} numpy int64", duel(contestants, rounds), n)


def builds(n, rounds):
    fuse = peer("pyfusefilter")
    if fuse is None:
        return
    column = pa.array([f"user-{i}@example.com" for i in range(n)])

    def theirs():
        made = fuse.Fuse8(n)
        made.populate(column.to_pylist())

    contestants = {
        "tamis": lambda: timed(lambda: tamis.build(column, "binary_fuse8")),
        "pyfusefilter": lambda: timed(theirs),
    }
    tell(f"build of an Arrow column of {n:.0e} strings", duel(contestants, rounds), n)


def tell(task, seconds, n):
    first = next(iter(seconds.values()))
    print(f"\n{task}\n")
    print("| | ns a key | times the first |\n|---|---|---|")
    for name, taken in seconds.items():
        print(f"| {name} | {1e9 * taken / n:.1f} | {taken / first:.2f} |", flush=True)


def main():
    sizes = [int(float(size)) for size in sys.argv[1:]] or [1_000_000, 10_000_000]
    for n in sizes:
        rounds = 7 if n <= 1_000_000 else 3
        insertions_of_numbers(n, rounds)
        lookups_of_text(n)
        single_lookups(n)
        builds(n, rounds)


if __name__ == "__main__":
    main()
