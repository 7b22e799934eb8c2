#!/usr/bin/env python3
"""A second reader of tamis files, made from docs/FORMAT.md alone (the § below are its sections).

    python3 reader.py GOLDEN_DIR

checks every *.tamis file there against the .txt file beside it. Needs the package `xxhash`.
"""

from __future__ import annotations

import re
import struct
import sys
from itertools import islice
from pathlib import Path
from typing import Callable, Iterator

from xxhash import xxh3_64_intdigest as xxh3

MASK = 2**64 - 1
SIGNATURE = bytes.fromhex("89544D530D0A1A0A")
FOOTER = SIGNATURE[::-1]
HEADER_SEED = 0x54414D4953484452
TABLE_SEED = 0x54414D495354424C
BLOCK = 65536
GOLDEN_RATIO = 0x9E3779B97F4A7C15
SALTS = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)


class FormatError(ValueError):
    """The file is not a tamis file, is damaged, or is one that this reader does not know."""


def need(holds: bool, where: str, what: str) -> None:
    if not holds:
        raise FormatError(f"{where}: {what}")


def scale(h: int, n: int) -> int:
    """`range` in the document, which is taken in Python."""
    return (h * n) >> 64


def pad(n: int) -> int:
    return -(-n // 64) * 64


def bit(section: bytes, i: int) -> int:
    """Bit i of a section. As words are little-endian, bit b of word w is bit w·width + b, whatever the width."""
    return section[i >> 3] >> (i & 7) & 1


def siphash13(key: bytes, secret: bytes) -> int:
    k0, k1 = struct.unpack("<QQ", secret)
    v0, v1 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D
    v2, v3 = k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573

    def rotate(x: int, by: int) -> int:
        return (x << by | x >> (64 - by)) & MASK

    def mix() -> None:
        nonlocal v0, v1, v2, v3
        v0, v2 = (v0 + v1) & MASK, (v2 + v3) & MASK
        v1, v3 = rotate(v1, 13) ^ v0, rotate(v3, 16) ^ v2
        v0, v2 = (rotate(v0, 32) + v3) & MASK, (v2 + v1) & MASK
        v1, v3 = rotate(v1, 17) ^ v2, rotate(v3, 21) ^ v0
        v2 = rotate(v2, 32)

    # The last word holds the bytes that are left over and, on top, the length modulo 256.
    padded = key + bytes(7 - len(key) % 8) + bytes([len(key) & 255])
    for (word,) in struct.iter_unpack("<Q", padded):
        v3 ^= word
        mix()
        v0 ^= word
    v2 ^= 0xFF
    for _ in range(3):
        mix()
    return v0 ^ v1 ^ v2 ^ v3


def mix(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


class Kind:
    """One kind of filter (§3): its name, its parameters, the sections they imply, and its answer to a hash."""

    name: str
    parameters: int
    lengths: tuple[int, ...]  # of the sections, in bytes
    sections: list[bytes]  # set once they are known to be whole

    def __init__(self, *parameters: int) -> None:
        raise NotImplementedError

    def check(self, keys: int) -> None:
        """What must hold of the sections' contents; called after `sections` is set."""

    def contains(self, h: int) -> bool:
        raise NotImplementedError


class Bloom(Kind):
    name, parameters = "bloom", 2

    def __init__(self, m: int, k: int) -> None:
        need(64 <= m <= 2**63 and m % 64 == 0, "parameter 0", f"{m} bits, not a multiple of 64 from 64 to 2^63")
        need(1 <= k <= 64, "parameter 1", f"k is {k}, not 1 to 64")
        self.m, self.k, self.lengths = m, k, (m // 8,)

    def contains(self, h: int) -> bool:
        for _ in range(self.k):
            if not bit(self.sections[0], scale(h, self.m)):
                return False
            h = h * GOLDEN_RATIO & MASK
            h ^= h >> 32
        return True


class SplitBlock(Kind):
    name, parameters, width, most = "split_block", 1, 64, 2**32  # bits of a word; blocks

    def __init__(self, z: int) -> None:
        need(1 <= z <= self.most, "parameter 0", f"{z} blocks, not 1 to {self.most}")
        self.z, self.lengths = z, (z * self.width,)  # eight words of width/8 bytes

    def block(self, h: int) -> int:
        return scale(h, self.z)

    def contains(self, h: int) -> bool:
        word, low, shift = self.block(h) * 8, h % 2**32, 33 - self.width.bit_length()
        return all(
            bit(self.sections[0], (word + i) * self.width + (low * salt % 2**32 >> shift))
            for i, salt in enumerate(SALTS)
        )


class SplitBlock256(SplitBlock):
    name, width, most = "split_block_256", 32, 2**31 - 1

    def block(self, h: int) -> int:
        return (h >> 32) * self.z >> 32


class Cuckoo(Kind):
    name, parameters = "cuckoo", 2

    def __init__(self, buckets: int, f: int) -> None:
        need(4 <= f <= 32, "parameter 1", f"fingerprints of {f} bits, not 4 to 32")
        most = 2 ** (56 - f)
        need(2 <= buckets <= most and buckets % 2 == 0, "parameter 0", f"{buckets} buckets, not even, 2 to {most}")
        self.buckets, self.f = buckets, f
        self.used = buckets * f // 2  # 4·B·f/8 bytes, whole because B is even
        self.lengths = (self.used + 7,)

    def slot(self, j: int) -> int:
        start = j * self.f
        window = int.from_bytes(self.sections[0][start >> 3 : (start >> 3) + 5], "little")
        return window >> (start & 7) & (2**self.f - 1)

    def check(self, keys: int) -> None:
        need(not any(self.sections[0][self.used :]), "section 0", "bits after the last slot are set")
        held = sum(self.slot(j) != 0 for j in range(4 * self.buckets))
        need(held == keys, "section 0", f"{held} slots are taken, but the header counts {keys} keys")

    def contains(self, h: int) -> bool:
        first = scale(h, self.buckets)
        v = 1 + scale(h * self.buckets & MASK, 2**self.f - 1)
        t = 1 + 2 * scale(v * GOLDEN_RATIO & MASK, self.buckets // 2)
        second = (t - first) % self.buckets
        return any(self.slot(4 * bucket + i) == v for bucket in (first, second) for i in range(4))


class BinaryFuse8(Kind):
    name, parameters, size = "binary_fuse8", 4, 1  # bytes of a fingerprint

    def __init__(self, a: int, L: int, C: int, S: int) -> None:
        need(a in (3, 4), "parameter 0", f"arity {a}, not 3 or 4")
        need(1 <= L <= 2**18 and L & (L - 1) == 0, "parameter 1", f"segment length {L}, not a power of two to 2^18")
        need(1 <= C <= 2**24, "parameter 2", f"{C} segments, not 1 to 2^24")
        need(S <= 2**16, "parameter 3", f"{S} shards, more than 2^20")
        self.a, self.L, self.C, self.S, self.T = a, L, C, S, (C + a - 1) * L
        need(self.T < 2**32, "parameters 0 to 2", f"{self.T} slots in a shard, not fewer than 2^32")
        self.lengths = (8 * S, S * self.T * self.size)

    def check(self, keys: int) -> None:
        need((self.S == 0) == (keys == 0), "parameter 3", f"{self.S} shards for {keys} keys")

    def contains(self, h: int) -> bool:
        if self.S == 0:
            return False
        shard, L = scale(h, self.S), self.L
        g = mix(h + int.from_bytes(self.sections[0][8 * shard : 8 * shard + 8], "little") & MASK)
        p = scale(g, self.C * L)
        shifts = (18, 0) if self.a == 3 else (0, 18, 36)
        found = 0
        for place in [p] + [(p + i * L) ^ ((g >> by) % L) for i, by in enumerate(shifts, 1)]:
            at = (shard * self.T + place) * self.size
            found ^= int.from_bytes(self.sections[1][at : at + self.size], "little")
        return found == (g ^ g >> 32) % 256**self.size


class BinaryFuse16(BinaryFuse8):
    name, size = "binary_fuse16", 2


class BinaryFuse32(BinaryFuse8):
    name, size = "binary_fuse32", 4


class TinySet(Kind):
    name, parameters, flags = "tinyset", 3, 0  # F

    def __init__(self, blocks: int, block: int, chains: int) -> None:
        need(block in (32, 64, 128), "parameter 1", f"blocks of {block} bytes, not 32, 64 or 128")
        least, most = block // 4, min(2 * block, 128)
        need(least <= chains <= most, "parameter 2", f"{chains} chains, not {least} to {most}")
        need(1 <= blocks <= 2**39 // chains, "parameter 0", f"{blocks} blocks, not 1 to {2**39 // chains}")
        self.blocks, self.block, self.chains, self.lengths = blocks, block, chains, (blocks * block,)

    def slots(self, b: int) -> list[tuple[int, int, int]]:
        """The slots of block b that are not free: chain, width, fingerprint. Refuses a block that is not canonical."""
        where = f"section 0, block {b}"
        bits = int.from_bytes(self.sections[0][b * self.block : (b + 1) * self.block], "little")
        index = [c for c in range(self.chains) if bits >> c & 1]
        if not index:
            need(bits == 0, where, "it has no slots, but bits are set")
            return []
        bits >>= self.chains
        free, marked = (bits & 1, bits >> 1 & 1) if self.flags else (0, 0)
        bits >>= self.flags
        A = 8 * self.block - self.chains - self.flags
        ones = [i for i in range(A) if bits >> i & 1]  # the end marks are the first of them
        need(len(ones) >= len(index) + free, where, "its end marks do not end")
        V, X = ones[len(index) - 1] + 1, ones[len(index) - 1 + free] + 1
        q, m = (25, 0) if A // X > 25 else (A // X - 1, A % X)
        E = min(m, V)
        if marked:
            most, E = E, ones[-1] - X - V * q
            need(0 <= E < most, where, f"{E} wide fingerprints before the last 1, not 0 to {most - 1}")
        else:
            need(ones[-1] < X + V * q + E, where, "bits after the last fingerprint are set")

        slots, at, ended = [], X, 0
        for i in range(V):
            width = q + (i < E)
            slots.append((index[ended], width, bits >> at & (2**width - 1)))
            at += width
            ended += bits >> i & 1
        for (c, w, v), (next_c, next_w, next_v) in zip(slots, slots[1:]):
            need(c < next_c or v >> (w - next_w) <= next_v, where, f"the fingerprints of chain {c} are not in order")
        return slots

    def check(self, keys: int) -> None:
        held = sum(len(self.slots(b)) for b in range(self.blocks))
        need(held == keys, "section 0", f"{held} slots are taken, but the header counts {keys} keys")

    def contains(self, h: int) -> bool:
        b, h = scale(h, self.blocks), h * self.blocks & MASK
        chain, r = scale(h, self.chains), h * self.chains & MASK
        return any(c == chain and v == r >> (64 - w) for c, w, v in self.slots(b))


class TinySetRemovable(TinySet):
    name, flags = "tinyset_removable", 2


def subsets(rest: int, width: int, sizes: list[int]) -> Iterator[set[int]]:
    """Distinct bits of one word of `width` bits after another (§3.7)."""
    s = draws = 0
    for size in sizes:
        drawn: set[int] = set()
        for e in range(width - size, width):
            if draws % 6 == 0:
                s = mix(rest + draws // 6 * GOLDEN_RATIO & MASK)
            draws += 1
            a, s = scale(s, e + 1), s * (e + 1) & MASK
            drawn.add(e if a in drawn else a)
        yield drawn


class BloomG(Kind):
    name, parameters = "bloom_g", 4

    def __init__(self, l: int, w: int, g: int, k: int) -> None:
        need(w in (64, 256, 512), "parameter 1", f"words of {w} bits, not 64, 256 or 512")
        need(1 <= l <= 2**63 // w, "parameter 0", f"{l} words, not 1 to {2**63 // w}")
        need(1 <= g <= 32, "parameter 2", f"g is {g}, not 1 to 32")
        need(g <= k <= 32, "parameter 3", f"k is {k}, not {g} to 32")
        self.l, self.w, self.lengths = l, w, (l * w // 8,)
        self.sizes = [k // g + (j < k % g) for j in range(g)]

    def contains(self, h: int) -> bool:
        x = h
        for drawn in subsets(h * self.l & MASK, self.w, self.sizes):
            word = scale(x, self.l)
            x = x * 0xD1B54A32D192ED03 & MASK
            x ^= x >> 32
            if not all(bit(self.sections[0], word * self.w + i) for i in drawn):
                return False
        return True


class Blocked(Kind):
    name, parameters = "blocked", 2

    def __init__(self, z: int, k: int) -> None:
        need(1 <= z <= 2**32, "parameter 0", f"{z} blocks, not 1 to 2^32")
        need(1 <= k <= 24, "parameter 1", f"k is {k}, not 1 to 24")
        self.z, self.k, self.lengths = z, k, (64 * z,)

    def contains(self, h: int) -> bool:
        block, y = scale(h, self.z), h % 2**32
        return all(
            bit(self.sections[0], block * 512 + (y * pow(0x9E3779B9, i, 2**32) % 2**32 >> 23)) for i in range(self.k)
        )


class CacheSectorised(Kind):
    name, parameters = "cache_sectorised", 3

    def __init__(self, lines: int, z: int, k: int) -> None:
        need(1 <= lines <= 2**40, "parameter 0", f"{lines} lines, not 1 to 2^40")
        need(z in (2, 4), "parameter 1", f"{z} groups, not 2 or 4")
        need(z <= k <= 24 and k % z == 0, "parameter 2", f"k is {k}, not a multiple of {z} to 24")
        self.lines, self.z, self.k, self.lengths = lines, z, k, (64 * lines,)

    def contains(self, h: int) -> bool:
        line, r, n, words = scale(h, self.lines), h * self.lines & MASK, 8 // self.z, []
        for j in range(self.z):
            words.append(8 * line + j * n + scale(r, n))
            r = r * n & MASK
        masks = subsets(r, 64, [self.k // self.z] * self.z)
        return all(bit(self.sections[0], 64 * word + i) for word, mask in zip(words, masks) for i in mask)


ALL: list[type[Kind]] = [
    Bloom, SplitBlock, SplitBlock256, Cuckoo, BinaryFuse8, BinaryFuse16, BinaryFuse32, TinySet, TinySetRemovable, BloomG,
    Blocked, CacheSectorised,
]
KINDS = dict(enumerate(ALL, 1))


class Filter:
    """A verified file. What depends on the bytes' being undamaged is looked at only after their checksum."""

    def __init__(self, data: bytes, secret: bytes | None = None) -> None:
        # §1.1, as far as it is needed to find the header's checksum
        need(data[:8] == SIGNATURE, "byte 0", "not a tamis file (signature)")
        need(len(data) >= 128, "file", f"{len(data)} bytes are too few for a header")
        (major, _minor, H, length, incompatible, _compatible, kind, layout, hashing, p, s, zero, field, self.keys,
         self.capacity, self.rate, zero_too) = struct.unpack_from("<HHIQIIHHHHH6s16sQQd8s", data, 8)
        need(major == 1, "byte 8", f"major version {major}, not 1")
        need(length == len(data), "byte 16", f"length should be {length}, the file has {len(data)} bytes")
        need(p <= 64, "byte 38", f"{p} parameters, more than 64")
        need(s <= 64, "byte 40", f"{s} sections, more than 64")
        end = 96 + 8 * p + 16 * s
        need(H == pad(end + 8), "byte 12", f"header length {H}, not {pad(end + 8)}")
        need(H <= len(data), "byte 12", f"header length {H}, but the file ends at {len(data)}")
        (total,) = struct.unpack_from("<Q", data, H - 8)
        need(total == xxh3(data[: H - 8], HEADER_SEED), f"byte {H - 8}", "wrong checksum of the header")

        # The rest of the header; minor version and compatible flags may be anything.
        need(incompatible == 0, "byte 24", f"unknown incompatible flags {incompatible:#x}")
        need(kind in KINDS, "byte 32", f"unknown kind {kind}")
        self.name = KINDS[kind].name
        need(layout == 1, "byte 34", f"version {layout} of {self.name}, not 1")
        need(not any(zero), "byte 42", "reserved bytes are not zero")
        need(not any(zero_too), "byte 88", "reserved bytes are not zero")
        need(not any(data[end : H - 8]), f"byte {end}", "header padding is not zero")
        need(0 < self.rate < 1, "byte 80", f"false-positive rate {self.rate}, not between 0 and 1")
        self.hash = self.hasher(hashing, field, secret)
        need(p == KINDS[kind].parameters, "byte 38", f"{p} parameters, {self.name} has {KINDS[kind].parameters}")
        self.kind = KINDS[kind](*struct.unpack_from(f"<{p}Q", data, 96))

        # The section table, which the parameters determine. Nothing is sliced before it fits into the file.
        lengths = self.kind.lengths
        need(s == len(lengths), "byte 40", f"{s} sections, {self.name} has {len(lengths)}")
        places, D = [], H
        for i, expected in enumerate(lengths):
            at = 96 + 8 * p + 16 * i
            offset, size = struct.unpack_from("<QQ", data, at)
            need(offset == D, f"byte {at}", f"section {i} at {offset}, not {D}")
            need(size == expected, f"byte {at + 8}", f"section {i} of {size} bytes, not {expected}")
            places.append((offset, offset + size))
            D = pad(offset + size)
        blocks = -(-(D - H) // BLOCK)
        foot = D + 8 * blocks
        need(foot + 24 == len(data), "file", f"{len(data)} bytes, but its sections need {foot + 24}")

        # §1.3, the footer first: it is the cheapest
        total, again = struct.unpack_from("<QQ", data, foot)
        need(data[foot + 16 :] == FOOTER, f"byte {foot + 16}", "wrong closing signature")
        need(again == length, f"byte {foot + 8}", f"length {again} in the footer, {length} in the header")
        need(total == xxh3(data[D:foot], TABLE_SEED), f"byte {foot}", "wrong checksum of the checksum table")
        for i, total in enumerate(struct.unpack_from(f"<{blocks}Q", data, D)):
            start = H + i * BLOCK
            need(total == xxh3(data[start : min(start + BLOCK, D)], i), f"byte {start}", f"wrong checksum of block {i}")
        for i, (_, stop) in enumerate(places):
            need(not any(data[stop : pad(stop)]), f"byte {stop}", f"padding of section {i} is not zero")
        self.kind.sections = [data[start:stop] for start, stop in places]
        self.kind.check(self.keys)

    @staticmethod
    def hasher(hashing: int, field: bytes, secret: bytes | None) -> Callable[[bytes], int]:
        """§2. A secret that is passed in is used by hashing 3 only, which needs it."""
        need(hashing in (1, 2, 3), "byte 36", f"unknown hashing {hashing}")
        value = int.from_bytes(field[:8], "little")
        need(hashing == 2 or not any(field[8:]), "byte 56", "reserved bytes are not zero")
        if hashing == 1:
            return lambda key: xxh3(key, value)
        if hashing == 2:
            return lambda key: siphash13(key, field)
        if secret is None or len(secret) != 16:
            raise FormatError("byte 36: this file's secret is kept elsewhere: pass its 16 bytes")
        kept = secret
        need(siphash13(b"tamis", bytes(255 - b for b in kept)) == value, "byte 48", "the secret is not this file's")
        return lambda key: siphash13(key, kept)

    def contains(self, key: bytes) -> bool:
        return self.kind.contains(self.hash(key))


DESCRIPTION = re.compile(
    r"(?P<kind>\w+):capacity=(?P<capacity>\d+),fpr=(?P<rate>[\d.e-]+)(?:,\w+=\w+)*\n"
    r"(?P<keys>\d+) keys from present-0 on\n"
    r"xxh3 (?P<xxh3>[0-9a-f]{16})\n"
    r"false positives among absent-0 to absent-(?P<until>\d+), the first 20:\n"
    r"(?P<positives>(?:absent-\d+\n)*)"
)


# What the golden file was built under whose secret is kept elsewhere.
SECRET = b"sixteen letters!"


def damaged(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Every damaged copy of a small file; of a large one some, so that it takes no longer."""
    step = 1 if len(data) <= 8192 else 997
    for n in range(0, len(data), step):
        yield f"cut to {n} bytes", data[:n]
    yield "one byte longer", data + b"\0"
    copy = bytearray(data)
    for i in range(0, 8 * len(data), step):
        copy[i >> 3] ^= 1 << (i & 7)
        yield f"bit {i & 7} of byte {i >> 3} flipped", bytes(copy)
        copy[i >> 3] ^= 1 << (i & 7)


def check(path: Path) -> str:
    """Compares a file with its description; returns a summary or raises ValueError."""
    data = path.read_bytes()
    told = DESCRIPTION.fullmatch(path.with_suffix(".txt").read_text(encoding="utf-8"))
    if told is None:
        raise ValueError("the .txt beside it is not such a description as this reader knows")
    need(xxh3(data) == int(told["xxh3"], 16), "file", f"its xxh3 is {xxh3(data):016x}, not {told['xxh3']}")
    f = Filter(data, SECRET)
    need(f.name == told["kind"], "byte 32", f"kind {f.name}, not {told['kind']}")
    need(f.capacity == int(told["capacity"]), "byte 72", f"capacity {f.capacity}, not {told['capacity']}")
    need(f.rate == float(told["rate"]), "byte 80", f"rate {f.rate}, not {told['rate']}")
    count = int(told["keys"])
    need(f.keys == count, "byte 64", f"{f.keys} keys, not {count}")
    for i in range(count):
        need(f.contains(b"present-%d" % i), "answer", f"present-{i} is absent")
    absent = (f"absent-{i}" for i in range(int(told["until"]) + 1))
    positives = list(islice((key for key in absent if f.contains(key.encode())), 20))
    need(positives == told["positives"].split(), "answer", f"the false positives are {positives}")
    tried = 0
    for what, bad in damaged(data):
        try:
            Filter(bad, SECRET)
        except FormatError:  # any other exception would be a defect of this reader
            tried += 1
        else:
            raise ValueError(f"{what}: not refused")
    return f"{count} keys, {len(positives)} false positives as told, {tried} damaged copies refused"


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    passed = failed = 0
    for path in sorted(Path(sys.argv[1]).glob("*.tamis")):
        try:
            print(f"ok   {path.name}: {check(path)}")
            passed += 1
        except Exception as e:  # one bad file must not hide the others
            print(f"FAIL {path.name}: {type(e).__name__}: {e}")
            failed += 1
    if passed + failed == 0:
        print(f"FAIL {sys.argv[1]}: holds no .tamis file")
        failed = 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
