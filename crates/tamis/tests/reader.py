#!/usr/bin/env python3
"""A second reader of tamis files, made from docs/FORMAT.md alone (the § below are its sections).

    python3 reader.py GOLDEN_DIR

checks every *.tamis file there against the .txt file beside it. Needs the package `xxhash`.
"""

from __future__ import annotations

import math
import re
import struct
import sys
from ipaddress import IPv4Address, IPv6Address
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


def mix(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


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


P = 2**61 - 1


def universal(hashing: int, seed: int, key: bytes) -> int:
    """The hash of a key in one of the families of §2."""

    def w(i: int, s: int = seed) -> int:
        return mix(mix(s ^ GOLDEN_RATIO) + (i + 1) * GOLDEN_RATIO & MASK)

    def r(i: int, s: int = seed) -> int:
        return w(i, s) * P >> 64

    if len(key) == 8:
        x = int.from_bytes(key, "little")
    else:
        x, point = (len(key) + 1) % P, r(0, MASK - seed)
        for i in range(0, len(key), 7):
            x = (x * point + int.from_bytes(key[i : i + 7], "little")) % P
        x = x * point % P
    y, z = divmod(x, 2**32)

    def f(i: int, t: int) -> int:
        return ((r(i + 3) * t + r(i)) * t + r(i + 1)) * t + r(i + 2)

    match hashing:
        case 4:
            return (w(0) | 1) * x & MASK
        case 5:
            return ((w(0) << 64 | w(1)) * x + (w(2) << 64 | w(3))) % 2**128 >> 64
        case 6:
            return 8 * ((r(0) * y + r(1) * z + r(2)) % P)
        case 7:
            h = 0
            for i, byte in enumerate(x.to_bytes(8, "little")):
                h ^= w(256 * i + byte)
            return h
        case _:
            return 8 * ((f(0, y) + f(4, z) + f(8, y + z)) % P)


class Kind:
    """One kind of filter (§3): its name, its parameters, the sections they imply, and its answer to a hash."""

    name: str
    parameters: int
    optional = 0  # parameters after those that a file may leave out
    lengths: tuple[int, ...]  # of the sections, in bytes, as far as the parameters tell
    sections: list[bytes]  # set once they are known to be whole

    def __init__(self, *parameters: int) -> None:
        raise NotImplementedError

    def whole(self, sizes: list[int]) -> tuple[int, ...]:
        """The lengths that sections of these sizes should have. A kind that takes a size as it is checks it later."""
        return self.lengths

    def check(self, keys: int) -> None:
        """What must hold of the sections' contents; called after `sections` is set."""

    def contains(self, h: int) -> bool:
        raise NotImplementedError


def places(h: int, n: int, k: int) -> Iterator[int]:
    """The places of a key in the Bloom family."""
    for _ in range(k):
        yield scale(h, n)
        h = h * GOLDEN_RATIO & MASK
        h ^= h >> 32


class Bloom(Kind):
    name, parameters = "bloom", 2

    def __init__(self, m: int, k: int) -> None:
        need(64 <= m <= 2**63 and m % 64 == 0, "parameter 0", f"{m} bits, not a multiple of 64 from 64 to 2^63")
        need(1 <= k <= 64, "parameter 1", f"k is {k}, not 1 to 64")
        self.m, self.k, self.lengths = m, k, (m // 8,)

    def contains(self, h: int) -> bool:
        return all(bit(self.sections[0], place) for place in places(h, self.m, self.k))


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
    name, parameters, optional = "cuckoo", 2, 1
    multisets = [(a, b, c, d) for d in range(16) for c in range(d + 1) for b in range(c + 1) for a in range(b + 1)]

    def __init__(self, buckets: int, f: int, semi_sort: int | None = None) -> None:
        need(4 <= f <= 32, "parameter 1", f"fingerprints of {f} bits, not 4 to 32")
        most = 2 ** (56 - f)
        need(2 <= buckets <= most and buckets % 2 == 0, "parameter 0", f"{buckets} buckets, not even, 2 to {most}")
        need(semi_sort in (None, 1), "parameter 2", f"semi_sort is {semi_sort}, not 1")
        self.buckets, self.f, self.sorted = buckets, f, semi_sort is not None
        self.w = f - self.sorted
        self.used = buckets * self.w // 2  # 4·B·w/8 bytes, whole because B is even
        self.lengths = (self.used + 7,)

    def slot(self, j: int) -> int:
        start = j * self.w
        window = int.from_bytes(self.sections[0][start >> 3 : (start >> 3) + 5], "little")
        return window >> (start & 7) & (2**self.w - 1)

    def bucket(self, i: int) -> list[int]:
        slots = [self.slot(4 * i + j) for j in range(4)]
        if not self.sorted:
            return slots
        code = sum(slot % 8 << 3 * j for j, slot in enumerate(slots))
        need(code < len(self.multisets), "section 0", f"bucket {i} has the code {code}, which is none")
        return [(slot >> 3) * 16 + low for slot, low in zip(slots, self.multisets[code])]

    def check(self, keys: int) -> None:
        need(not any(self.sections[0][self.used :]), "section 0", "bits after the last slot are set")
        for i in range(self.buckets if self.sorted else 0):
            held = self.bucket(i)
            need(held == sorted(held, key=lambda v: (v % 16, v)), "section 0", f"bucket {i} is not in order")
        held = sum(v != 0 for i in range(self.buckets) for v in self.bucket(i))
        need(held == keys, "section 0", f"{held} slots are taken, but the header counts {keys} keys")

    def contains(self, h: int) -> bool:
        first = scale(h, self.buckets)
        v = 1 + scale(h * self.buckets & MASK, 2**self.f - 1)
        t = 1 + 2 * scale(v * GOLDEN_RATIO & MASK, self.buckets // 2)
        second = (t - first) % self.buckets
        return v in self.bucket(first) or v in self.bucket(second)


class BinaryFuse8(Kind):
    name, parameters, size = "binary_fuse8", 4, 1  # bytes of a fingerprint

    def __init__(self, a: int, L: int, C: int, S: int) -> None:
        need(a in (3, 4), "parameter 0", f"arity {a}, not 3 or 4")
        need(1 <= L <= 2**18 and L & (L - 1) == 0, "parameter 1", f"segment length {L}, not a power of two to 2^18")
        need(1 <= C <= 2**24, "parameter 2", f"{C} segments, not 1 to 2^24")
        need(S <= 2**16, "parameter 3", f"{S} shards, more than 2^16")
        self.a, self.L, self.C, self.S, self.T = a, L, C, S, (C + a - 1) * L
        need(self.T < 2**32, "parameters 0 to 2", f"{self.T} slots in a shard, not fewer than 2^32")
        self.lengths = (8 * S, S * self.T * self.size)

    def check(self, keys: int) -> None:
        need((self.S == 0) == (keys == 0), "parameter 3", f"{self.S} shards for {keys} keys")
        need(keys <= self.S * self.T, "byte 64", f"{keys} keys in {self.S * self.T} slots")

    def contains(self, h: int) -> bool:
        if self.S == 0:
            return False
        shard, L = scale(h * GOLDEN_RATIO & MASK, self.S), self.L
        g = mix(h + int.from_bytes(self.sections[0][8 * shard : 8 * shard + 8], "little") & MASK)
        p = scale(g, self.C * L)
        shifts = (18, 0) if self.a == 3 else (0, 18, 36)
        found = 0
        for place in [p] + [(p + i * L) ^ ((g >> by) % L) for i, by in enumerate(shifts, 1)]:
            found ^= self.slot(shard * self.T + place)
        return found == self.fingerprint(g)

    def slot(self, at: int) -> int:
        return int.from_bytes(self.sections[1][at * self.size : (at + 1) * self.size], "little")

    def fingerprint(self, g: int) -> int:
        return (g ^ g >> 32) % 256**self.size


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
    """Distinct bits of one word of `width` bits after another (§3.10)."""
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
class Compressed(Bloom):
    name = "compressed"

    def whole(self, sizes: list[int]) -> tuple[int, ...]:
        need(len(sizes) == 1, "byte 40", f"{len(sizes)} sections, compressed has 1")
        need(self.m <= 2**19 * (sizes[0] // 16), "section 0", f"{sizes[0]} bytes are too few for {self.m} bits")
        return (sizes[0],)

    def check(self, keys: int) -> None:
        code, at, array = self.sections[0], 0, bytearray()
        for start in range(0, self.m, 2**19):
            where, n = f"section 0, byte {at}", min(self.m - start, 2**19)
            need(at + 8 <= len(code), where, "no room for a chunk")
            ones, length = struct.unpack_from("<II", code, at)
            at += 8
            need(8 <= length <= len(code) - at, where, f"a code of {length} bytes, not 8 to {len(code) - at}")
            array += self.chunk(code[at : at + length], n, ones, where).to_bytes(n // 8, "little")
            at += length
        need(at == len(code), "section 0", f"{len(code) - at} bytes after the last chunk")
        self.sections = [bytes(array)]

    @staticmethod
    def chunk(code: bytes, n: int, ones: int, where: str) -> int:
        low, high, x, at = 0, MASK, int.from_bytes(code[:8], "big"), 8
        p = min(max((ones << 32) // n, 1), 2**32 - 1)
        bits = 0
        for i in range(n):
            split = low + ((high - low) >> 32) * p
            if x <= split:
                bits, high = bits | 1 << i, split
            else:
                low = split + 1
            while (low ^ high) >> 56 == 0:
                need(at < len(code), where, "its code ends too early")
                low, high, x, at = low << 8 & MASK, high << 8 & MASK | 255, x << 8 & MASK | code[at], at + 1
        need(at == len(code) and x == low, where, "not the one code of its bits")
        need(bits.bit_count() == ones, where, f"{bits.bit_count()} ones, not {ones}")
        return bits


class Scalable(Kind):
    name, parameters = "scalable", 5

    def __init__(self, first: int, growth: int, fpr: int, ratio: int, layout: int) -> None:
        need(first >= 1, "parameter 0", "a first slice for no keys")
        need(2 <= growth <= 8, "parameter 1", f"growth {growth}, not 2 to 8")
        rate, r = struct.unpack("<dd", struct.pack("<QQ", fpr, ratio))
        need(2**-60 <= rate < 1, "parameter 2", f"a rate of {rate}, not 2^-60 to 1")
        need(ratio == 0 or 0.5 <= r <= 0.95, "parameter 3", f"a ratio of {r}, neither 0 nor 0.5 to 0.95")
        need(layout <= 1, "parameter 4", f"slices of layout {layout}, not 0 or 1")
        self.first, self.growth, self.layout = first, growth, layout

    def whole(self, sizes: list[int]) -> tuple[int, ...]:
        need(2 <= len(sizes) <= 63, "byte 40", f"{len(sizes)} sections, not a table and 1 to 62 slices")
        return (32 * (len(sizes) - 1), *sizes[1:])  # the slices are measured by the table, in `check`

    def check(self, keys: int) -> None:
        self.slices: list[tuple[int, Kind]] = []
        held, last = 0, 0
        for row, (i, n, m, k) in enumerate(struct.iter_unpack("<4Q", self.sections[0])):
            where, section = f"section 0, row {row}", self.sections[row + 1]
            need(i == last or row > 0 and i == last + 1, where, f"slice number {i} after {last}")
            need(m >= min(self.first * self.growth**i, MASK), where, f"{m} bits, fewer than its keys")
            need(m % 512 == 0 or self.layout == 0, where, f"{m} bits, not a multiple of 512")
            slice = BloomG(m // 512, 512, 2, k) if self.layout else Bloom(m, k)
            need(len(section) == m // 8, f"section {row + 1}", f"{len(section)} bytes, not {m // 8}")
            slice.sections = [section]
            self.slices.append((i, slice))
            held, last = held + n, i
        need(min(held, MASK) == keys, "section 0", f"slices of {held} keys, but the header counts {keys}")

    def contains(self, h: int) -> bool:
        return any(slice.contains(mix(h + i * GOLDEN_RATIO & MASK)) for i, slice in self.slices)


class Folded(Kind):
    name, parameters = "folded", 4

    def __init__(self, s: int, k: int, f: int, t: int) -> None:
        need(1 <= k <= 64, "parameter 1", f"k is {k}, not 1 to 64")
        need(f <= 16, "parameter 2", f"{f} folds, more than 16")
        need(64 <= s <= 2**62 and s % (64 << f) == 0, "parameter 0", f"{s} buckets, not a multiple of {64 << f} to 2^62")
        need(f == 0 or 2 * (s >> f) >= 4096, "parameter 0", f"{s} buckets are too few for {f} folds")
        need(t >= 1 and t % (1 << f) == 0, "parameter 3", f"sides of {t} keys, not a multiple of {1 << f}")
        self.s, self.k, self.f, self.t = s, k, f, t

    def whole(self, sizes: list[int]) -> tuple[int, ...]:
        levels = len(sizes) - 1
        need(1 <= levels <= self.f + 1, "byte 40", f"{len(sizes)} sections, not a table and 1 to {self.f + 1} levels")
        return (16 * levels, *((self.s >> j) // 4 for j in range(levels)))

    def check(self, keys: int) -> None:
        rows = list(struct.iter_unpack("<2Q", self.sections[0]))
        for j, (a, b) in enumerate(rows):
            t, newest = self.t >> j, j + 1 == len(rows)
            need(a > 0 or j == 0, f"section 0, row {j}", "a level without keys")
            need(a == t or newest and a < t and b == 0, f"section 0, row {j}", f"A has {a} keys, not {t}")
            need(b == t or newest and b < t, f"section 0, row {j}", f"B has {b} keys, not {t}")
        held = min(sum(a + b for a, b in rows), MASK)
        need(held == keys, "section 0", f"{held} keys in the sides, but the header counts {keys}")

    def contains(self, h: int) -> bool:
        for j, level in enumerate(self.sections[1:]):
            x, sides = h, 3
            for _ in range(self.k):
                i = scale(x, self.s >> j)
                sides &= bit(level, 2 * i) | bit(level, 2 * i + 1) << 1
                x = x * GOLDEN_RATIO & MASK
                x ^= x >> 32
            if sides:
                return True
        return False


class Sliding(Kind):
    name, parameters = "sliding", 5

    def __init__(self, m: int, k: int, generations: int, share: int, seconds: int) -> None:
        need(64 <= m <= 2**58 and m % 64 == 0, "parameter 0", f"{m} places, not a multiple of 64 from 64 to 2^58")
        need(1 <= k <= 64, "parameter 1", f"k is {k}, not 1 to 64")
        need(1 <= generations <= 15, "parameter 2", f"{generations} generations, not 1 to 15")
        need(share >= 1, "parameter 3", "no insertions in a generation")
        need(seconds <= 2**32, "parameter 4", f"{seconds} seconds, more than 2^32")
        self.m, self.k, self.w, self.share, self.seconds = m, k, generations + 1, share, seconds
        self.lengths = (-(-m * self.w // 8) + 7, -(-m // 4096) * 8, (4 + 2 * self.w) * 8)

    def check(self, keys: int) -> None:
        fields, flags, state = self.sections
        need(not any(fields[self.m * self.w // 8 :]), "section 0", "bits after the last field are set")
        self.r, turn, clock, since, *slices = struct.unpack(f"<{4 + 2 * self.w}Q", state)
        need(self.r < 2 * self.w, "section 2", f"{self.r} generations begun, not fewer than {2 * self.w}")
        need(turn <= min(self.share, slices[2 * (self.r % self.w)]), "section 2", f"turn {turn} is too large")
        need(sum(slices[::2]) == keys, "section 2", f"the slices do not hold {keys} keys")
        latest = max(clock, since, *slices[1::2])
        need(latest <= (clock + 1 if self.seconds else 0), "section 2", f"a time of {latest} is after the clock's")
        blocks = self.m // 64
        swept = min(blocks, turn * -(-blocks // self.share))
        need(all(self.valid(b) for b in range(swept)), "section 1", "a block is not valid that must be")
        need(int.from_bytes(flags, "little") >> blocks == 0, "section 1", "flags after the last block are set")

    def valid(self, block: int) -> bool:
        return bit(self.sections[1], block) == self.r % 2

    def contains(self, h: int) -> bool:
        at = list(places(h, self.m, self.k))
        return any(
            all(bit(self.sections[0], p * self.w + s) and (s != self.r % self.w or self.valid(p // 64)) for p in at)
            for s in range(self.w)
        )


class AgePartitioned(Kind):
    name, parameters = "age_partitioned", 6

    def __init__(self, m: int, k: int, l: int, g: int, turn: int, shifts: int) -> None:
        need(64 <= m <= 2**60 and m % 64 == 0, "parameter 0", f"{m} bits, not a multiple of 64 from 64 to 2^60")
        need(1 <= k <= 64, "parameter 1", f"k is {k}, not 1 to 64")
        need(1 <= l <= 1024, "parameter 2", f"l is {l}, not 1 to 1024")
        need(1 <= g, "parameter 3", "no insertions in a generation")
        need(turn <= g, "parameter 4", f"{turn} insertions since the last shift, more than {g}")
        need(shifts < k * (k + l), "parameter 5", f"{shifts} shifts, not fewer than {k * (k + l)}")
        self.m, self.k, self.l, self.g, self.turn, self.shifts = m, k, l, g, turn, shifts
        self.lengths = (m // 8 * (k + l),)

    def check(self, keys: int) -> None:
        need((self.turn == 0) == (keys == 0) and self.turn <= keys, "parameter 4", f"{self.turn} is not for {keys} keys")
        whole = keys - self.turn
        need(whole % self.g == 0 and whole <= self.l * self.g, "header", f"{keys} keys are not whole generations")

    def contains(self, h: int) -> bool:
        at, run = list(places(h, self.m, self.k)), 0
        for a in range(self.k + self.l):
            c = self.shifts - a
            run = run + 1 if bit(self.sections[0], c % (self.k + self.l) * self.m + at[c % self.k]) else 0
            if run == self.k:
                return True
        return False


class DLeft(Kind):
    name, parameters = "d_left", 2

    def __init__(self, buckets: int, r: int) -> None:
        need(4 <= r <= 32, "parameter 1", f"remainders of {r} bits, not 4 to 32")
        need(1 <= buckets <= 2 ** (56 - r), "parameter 0", f"{buckets} buckets, not 1 to {2 ** (56 - r)}")
        self.buckets, self.r, self.used = buckets, r, 4 * buckets * (r + 2)
        self.lengths = (self.used + 7,)

    def cell(self, i: int) -> tuple[int, int]:
        cell = field(self.sections[0], i, self.r + 2)
        return cell & 3, cell >> 2

    def check(self, keys: int) -> None:
        need(not any(self.sections[0][self.used :]), "section 0", "bits after the last cell are set")
        cells = [self.cell(i) for i in range(32 * self.buckets)]
        need(all(n or not v for n, v in cells), "section 0", "a cell without copies has a remainder")
        held = sum(n for n, _ in cells)
        need(held == keys, "section 0", f"{held} copies are held, but the header counts {keys} keys")
        part_full = set()
        for i, (n, v) in enumerate(cells):
            j, b = divmod(i // 8, self.buckets)
            fingerprint = ((b - self.offsets(v)[j]) % self.buckets, v)
            need(n in (0, 3) or fingerprint not in part_full, "section 0", "two cells of one fingerprint are part full")
            if n in (1, 2):
                part_full.add(fingerprint)

    def offsets(self, v: int) -> list[int]:
        offsets, x = [0], mix(MASK - v)
        for _ in range(3):
            offsets.append(scale(x, self.buckets))
            x = x * GOLDEN_RATIO & MASK
            x ^= x >> 32
        return offsets

    def contains(self, h: int) -> bool:
        B = self.buckets
        b, v = divmod(scale(h, B << self.r), 1 << self.r)
        buckets = [j * B + (b + offset) % B for j, offset in enumerate(self.offsets(v))]
        return any(n and u == v for i in buckets for n, u in (self.cell(8 * i + c) for c in range(8)))


class QuotientStandard(Kind):
    name, parameters = "quotient_standard", 2

    def __init__(self, m: int, r: int) -> None:
        need(1 <= r <= 32, "parameter 1", f"remainders of {r} bits, not 1 to 32")
        need(1 <= m <= 2 ** (56 - r), "parameter 0", f"{m} slots, not 1 to {2 ** (56 - r)}")
        self.m, self.r, self.slots = m, r, m + min(m, 128)
        self.used = -(-self.slots * (r + 3) // 8)
        self.lengths = (self.used + 7,)

    def check(self, keys: int) -> None:
        need(not any(self.sections[0][self.used :]), "section 0", "bits after the last slot are set")
        table = [field(self.sections[0], i, self.r + 3) for i in range(self.slots)]
        homes = iter([i for i, slot in enumerate(table) if slot & 1])
        q, pairs = self.m, []
        for slot in table:
            if slot & 7:
                q = q if slot & 2 else next(homes, self.m)
                pairs.append((q, slot >> 3))
        need(len(pairs) == keys, "section 0", f"{len(pairs)} slots are taken, but the header counts {keys} keys")
        need(keys <= 19 * self.m // 20, "byte 64", f"{keys} keys, at most {19 * self.m // 20}")
        need(table == self.laid_out(pairs), "section 0", "not the table of its fingerprints")
        need(all(pairs[i] != pairs[i - 128] for i in range(128, keys)), "section 0", "129 copies of a fingerprint")
        self.pairs = set(pairs)

    def laid_out(self, pairs: list[tuple[int, int]]) -> list[int] | None:
        """The table of these fingerprints, or None if they are not sorted, or do not fit."""
        if pairs != sorted(pairs) or any(q >= self.m for q, _ in pairs):
            return None
        table, free, before = [0] * self.slots, 0, -1
        for q, v in pairs:
            at = max(q, free)
            if at == self.slots:
                return None
            table[at] |= v << 3 | (at != q) << 2 | (q == before) << 1
            table[q] |= 1
            free, before = at + 1, q
        return table

    def contains(self, h: int) -> bool:
        return (scale(h, self.m), (h * self.m & MASK) >> (64 - self.r)) in self.pairs


class RankIndexed(Kind):
    name, parameters = "rank_indexed", 4

    def __init__(self, banks: int, n: int, slots: int, r: int) -> None:
        need(1 <= n <= 64, "parameter 1", f"{n} buckets, not 1 to 64")
        need(1 <= slots <= 65535, "parameter 2", f"{slots} slots, not 1 to 65535")
        need(1 <= r <= 32, "parameter 3", f"fingerprints of {r} bits, not 1 to 32")
        most = 2 ** (56 - r) // (64 * n)
        need(1 <= banks <= most, "parameter 0", f"{banks} banks, not 1 to {most}")
        self.banks, self.n, self.slots, self.r = banks, n, slots, r
        self.parts = [n, -(-n // 4), -(-slots // 64), -(-slots * r // 64)]
        self.lengths = (8 * banks * sum(self.parts),)

    def bank(self, b: int) -> list[int]:
        """Index, ends, marks and fingerprints of a bank, each as one number."""
        at, numbers = 8 * b * sum(self.parts), []
        for words in self.parts:
            numbers.append(int.from_bytes(self.sections[0][at : at + 8 * words], "little"))
            at += 8 * words
        return numbers

    def bucket(self, bank: list[int], i: int) -> dict[int, list[int]]:
        """The fingerprints of each chain of a bucket."""
        index, ends, marks, items = bank
        slot = ends >> 16 * (i - 1) & 0xFFFF if i else 0
        end = ends >> 16 * i & 0xFFFF
        need(slot <= end <= self.slots, "section 0", f"bucket {i} ends at {end}, but starts at {slot} of {self.slots}")
        level = [c for c in range(64) if index >> 64 * i + c & 1]
        chains: dict[int, list[int]] = {c: [] for c in level}
        while level:
            need(slot + len(level) <= end, "section 0", f"the levels of bucket {i} have more slots than it")
            following = []
            for c in level:
                chains[c].append(items >> slot * self.r & (2**self.r - 1))
                if marks >> slot & 1:
                    following.append(c)
                slot += 1
            level = following
        need(slot == end, "section 0", f"the levels of bucket {i} have fewer slots than it")
        return chains

    def check(self, keys: int) -> None:
        held = 0
        for b in range(self.banks):
            bank = self.bank(b)
            for i in range(self.n):
                self.bucket(bank, i)
            end = bank[1] >> 16 * (self.n - 1)
            need(end <= 0xFFFF, "section 0", "bits after the last end are set")
            need(not bank[2] >> end and not bank[3] >> end * self.r, "section 0", "a slot that is not in use is not 0")
            held += end
        need(held == keys, "section 0", f"{held} slots are taken, but the header counts {keys} keys")

    def contains(self, h: int) -> bool:
        N = 64 * self.n * self.banks
        g, fingerprint = scale(h, N), (h * N & MASK) >> (64 - self.r)
        chains = self.bucket(self.bank(g // (64 * self.n)), g // 64 % self.n)
        return fingerprint in chains.get(g % 64, [])


class Narrow(BinaryFuse8):
    """A binary fuse filter with slots of w bits, packed."""

    def __init__(self, w: int, L: int, C: int, S: int) -> None:
        super().__init__(4, L, C, S)
        need(1 <= w <= 32, "section 1", f"slots of {w} bits, not 1 to 32")
        self.w, self.lengths = w, (8 * S, -(-S * self.T * w // 8) + 7)

    def check(self, keys: int) -> None:
        super().check(keys)
        need(not int.from_bytes(self.sections[1], "little") >> self.S * self.T * self.w, "a run", "bits after its slots")

    def slot(self, at: int) -> int:
        start = at * self.w
        window = int.from_bytes(self.sections[1][start >> 3 : (start >> 3) + 5], "little")
        return window >> (start & 7) & (2**self.w - 1)

    def fingerprint(self, g: int) -> int:
        return (g ^ g >> 32) % 2**self.w


class Compacting(RankIndexed):
    name, parameters = "compacting", 6

    def __init__(self, first: int, fpr: int, *active: int) -> None:
        super().__init__(*active)
        need(first >= 1, "parameter 0", "a first part for no keys")
        (rate,) = struct.unpack("<d", struct.pack("<Q", fpr))
        self.first = first
        need(0.15 * rate >= 2**-31 * (1 - 1e-9) and rate < 1, "parameter 1", f"a rate of {rate}")

    def whole(self, sizes: list[int]) -> tuple[int, ...]:
        runs, odd = divmod(len(sizes) - 2, 2)
        need(0 <= runs <= 30 and not odd, "byte 40", f"{len(sizes)} sections, not two and two for each of 0 to 30 runs")
        return (*self.lengths, 56 * runs, *sizes[2:])  # the runs are measured by the table, in `check`

    def check(self, keys: int) -> None:
        held = 0
        for b in range(self.banks):
            bank = self.bank(b)
            for i in range(self.n):
                for c, items in self.bucket(bank, i).items():
                    need(len(set(items)) == len(items), "section 0", f"chain {c} of bucket {i} has an item twice")
            held += bank[1] >> 16 * (self.n - 1)
        super().check(held)
        self.runs: list[tuple[int, int, Narrow]] = []
        active = held
        for i, (N, r, n, *shape) in enumerate(struct.iter_unpack("<7Q", self.sections[1])):
            need(1 <= r <= 32 and 1 <= N <= 2 ** (56 - r), "section 1", f"run {i} of {N} chains and {r} bits")
            need(N == self.chains(i), "section 1", f"run {i} of {N} chains, not {self.chains(i)}")
            need(1 <= n <= N << r, "section 1", f"{n} keys in run {i}")
            run = Narrow(*shape)
            run.sections = self.sections[2 + 2 * i : 4 + 2 * i]
            sizes = tuple(len(section) for section in run.sections)
            need(sizes == run.lengths, f"section {2 + 2 * i}", f"run {i} of {sizes} bytes, not {run.lengths}")
            run.check(n)
            self.runs.append((N, r, run))
            held += n
        need(held <= keys and (held > 0) == (keys > 0), "section 1", f"{held} held, but the header counts {keys} keys")
        need(active > 0 or not self.runs, "section 0", "no item beside runs")
        N = 64 * self.n * self.banks
        need(N == self.chains(len(self.runs)), "parameters", f"{N} chains, not {self.chains(len(self.runs))}")

    def chains(self, i: int) -> int:
        """Chains of slice i."""
        c = min(self.first << i, MASK)
        banks = -(-c // 4096)
        return 64 * banks * -(-c // (64 * banks))

    def contains(self, h: int) -> bool:
        if super().contains(h):
            return True
        for i, (N, r, run) in enumerate(self.runs):
            whole = scale(h, N) << r | (h * N & MASK) >> (64 - r)
            if run.contains(mix(whole + i * GOLDEN_RATIO & MASK)):
                return True
        return False


class HashCompaction(Kind):
    name, parameters = "hash_compaction", 2

    def __init__(self, slots: int, b: int) -> None:
        need(2 <= b <= 32, "parameter 1", f"signatures of {b} bits, not 2 to 32")
        need(2 <= slots <= 2 ** (56 - b), "parameter 0", f"{slots} slots, not 2 to {2 ** (56 - b)}")
        divisor = next((d for d in range(2, 1001) if d * d <= slots and slots % d == 0), None)
        need(divisor is None, "parameter 0", f"{slots} slots, which {divisor} divides")
        self.slots, self.b, self.lengths = slots, b, (-(-slots * b // 8) + 7,)

    def check(self, keys: int) -> None:
        table = int.from_bytes(self.sections[0], "little")
        need(not table >> self.slots * self.b, "section 0", "bits after the last slot are set")
        held = sum(field(self.sections[0], i, self.b) != 0 for i in range(self.slots))
        most = min(int(self.slots * 0.9), self.slots - 1)
        need(held <= most, "section 0", f"{held} slots are taken, more than {most}")
        need(held <= keys and (held == 0) == (keys == 0), "section 0", f"{held} slots are taken by {keys} keys")

    def contains(self, h: int) -> bool:
        slot, rest = scale(h, self.slots), h * self.slots & MASK
        v, step = 1 + scale(rest, 2**self.b - 1), 1 + scale(mix(h), self.slots - 1)
        for _ in range(512):
            held = field(self.sections[0], slot, self.b)
            if held in (0, v):
                return held == v
            slot = (slot + step) % self.slots
        return False


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


def field(section: bytes, i: int, width: int) -> int:
    """Field i of an array of numbers of so many bits."""
    start = i * width
    window = int.from_bytes(section[start >> 3 : (start + width + 7) >> 3], "little")
    return window >> (start & 7) & (2**width - 1)


class Counting(Kind):
    name, parameters, widths = "counting", 3, (2, 32)

    def __init__(self, m: int, k: int, w: int) -> None:
        need(64 <= m <= 2**63 and m % 64 == 0, "parameter 0", f"{m} counters, not a multiple of 64 from 64 to 2^63")
        need(1 <= k <= 64, "parameter 1", f"k is {k}, not 1 to 64")
        need(self.widths[0] <= w <= self.widths[1], "parameter 2", f"counters of {w} bits, not {self.widths}")
        self.m, self.k, self.w, self.used = m, k, w, m * w // 8  # whole because m is a multiple of 64
        self.lengths = (self.used + 7,)

    def check(self, keys: int) -> None:
        need(not any(self.sections[0][self.used :]), "section 0", "bits after the last counter are set")

    def contains(self, h: int) -> bool:
        return all(field(self.sections[0], place, self.w) for place in places(h, self.m, self.k))


class VariableIncrement(Kind):
    name, parameters = "variable_increment", 4

    def __init__(self, m: int, k: int, L: int, w: int) -> None:
        need(64 <= m <= 2**57, "parameter 0", f"{m} counters, not 64 to 2^57")
        need(1 <= k <= 64, "parameter 1", f"k is {k}, not 1 to 64")
        need(L in (2, 4, 8, 16), "parameter 2", f"{L} steps, not 2, 4, 8 or 16")
        self.log = L.bit_length() - 1
        need(self.log + 2 <= w <= 12, "parameter 3", f"counters of {w} bits, not {self.log + 2} to 12")
        self.m, self.k, self.L, self.w, self.lengths = m, k, L, w, (-(-m * w // 8) + 7,)

    def check(self, keys: int) -> None:
        rest = int.from_bytes(self.sections[0][self.m * self.w // 8 :], "little") >> self.m * self.w % 8
        need(rest == 0, "section 0", "bits after the last counter are set")
        low = [c for c in (field(self.sections[0], i, self.w) for i in range(self.m)) if 0 < c < self.L]
        need(not low, "section 0", f"{len(low)} counters are less than the least step, {self.L}, and not 0")

    def contains(self, h: int) -> bool:
        for _ in range(self.k):
            c = field(self.sections[0], scale(h, self.m), self.w)
            v = self.L + ((h * self.m & MASK) >> (64 - self.log))
            if not (c == v or c >= v + self.L or c == 2**self.w - 1):
                return False
            h = h * GOLDEN_RATIO & MASK
            h ^= h >> 32
        return True


class CountingMinimal(Counting):
    name = "counting_minimal"


class SpectralRecurring(Counting):
    name, widths = "spectral_recurring", (8, 32)

    def __init__(self, m: int, k: int, w: int) -> None:
        super().__init__(m, k, w)
        self.lengths = (self.used + 7, self.used // 2 + 7)

    def check(self, keys: int) -> None:
        super().check(keys)
        need(not any(self.sections[1][self.used // 2 :]), "section 1", "bits after the last counter are set")
        need(keys > 0 or not any(self.sections[1]), "section 1", "counters are left, but the header counts no keys")


class Balanced(Blocked):
    name, parameters = "balanced", 5

    def __init__(self, z: int, k: int, cap: int, most: int, listed: int) -> None:
        super().__init__(z, k)
        need(1 <= cap <= 512, "parameter 2", f"cap is {cap}, not 1 to 512")
        need(most <= 2**36, "parameter 3", f"a list of up to {most}, more than 2^36")
        need(listed <= most, "parameter 4", f"{listed} in the list, more than {most}")
        self.cap, self.listed, self.s = cap, listed, 0
        while listed > self.s // 5 * 4:
            self.s += 5 * (self.s // 20 + 2)
        self.used = z * (cap + 1).bit_length()
        self.lengths = (64 * z, -(-self.used // 8) + 7, 8 * self.s)

    def check(self, keys: int) -> None:
        bits, c = int.from_bytes(self.sections[1], "little"), (self.cap + 1).bit_length()
        need(bits >> self.used == 0, "section 1", "bits after the last count are set")
        self.counts = [bits >> c * i & (2**c - 1) for i in range(self.z)]
        total = self.listed
        for i, count in enumerate(self.counts):
            need(count <= self.cap + 1, "section 1", f"count {i} is {count}, more than {self.cap + 1}")
            taken = min(count, self.cap)
            ones = int.from_bytes(self.sections[0][64 * i : 64 * i + 64], "little").bit_count()
            need(ones <= self.k * taken and (ones > 0) == (taken > 0), "section 0", f"block {i} has {ones} bits set")
            total += taken
        need(total <= keys, "sections", f"{total} keys are held, but the header counts {keys}")
        self.list = struct.unpack(f"<{self.s}Q", self.sections[2])
        held = [v for v in self.list if v]
        need(len(held) == self.listed == len(set(held)), "section 2", f"not {self.listed} different hashes")
        need(all(self.lists(v) for v in held), "section 2", "a hash is not where it is looked for")
        full = {i for i, count in enumerate(self.counts) if count > self.cap}
        need({scale(v, self.z) for v in held} == full, "section 2", "its blocks are not those whose counts say so")

    def lists(self, v: int) -> bool:
        at = scale(mix(v), self.s)
        while self.list[at] not in (0, v):
            at = (at + 1) % self.s
        return self.list[at] == v

    def contains(self, h: int) -> bool:
        full = self.counts[scale(h, self.z)] > self.cap
        return super().contains(h) or full and self.lists(max(h, 1))


class TwoChoice(Bloom):
    name = "two_choice"

    def __init__(self, m: int, k: int) -> None:
        super().__init__(m, k)
        need(k <= 32, "parameter 1", f"k is {k}, not 1 to 32")

    def contains(self, h: int) -> bool:
        return super().contains(h) or super().contains(mix(h))


class Xor8(Kind):
    name, parameters, size = "xor8", 2, 1  # bytes of a fingerprint

    def __init__(self, b: int, salt: int) -> None:
        need(b <= (2**32 - 1) // 3, "parameter 0", f"blocks of {b} slots, more than (2^32 - 1)/3")
        self.b, self.salt, self.lengths = b, salt, (3 * b * self.size,)

    def check(self, keys: int) -> None:
        need((self.b == 0) == (keys == 0), "parameter 0", f"blocks of {self.b} slots for {keys} keys")
        need(3 * self.b >= keys, "parameter 0", f"{3 * self.b} slots for {keys} keys")
        need(self.b > 0 or self.salt == 0, "parameter 1", "a salt for no keys")

    def contains(self, h: int) -> bool:
        if self.b == 0:
            return False
        g = mix(h + self.salt & MASK)
        turned = [(g << 21 * i | g >> (64 - 21 * i)) & MASK for i in range(3)]
        found = 0
        for i, x in enumerate(turned):
            found ^= self.slot(i * self.b + scale(x, self.b))
        return found == (g ^ g >> 32) % 256**self.size

    def slot(self, at: int) -> int:
        return int.from_bytes(self.sections[0][at * self.size : (at + 1) * self.size], "little")


class Xor16(Xor8):
    name, size = "xor16", 2


class XorPlus8(Xor8):
    name = "xor_plus8"

    def whole(self, sizes: list[int]) -> tuple[int, ...]:
        groups = -(-self.b // 224)
        need(len(sizes) == 3, "byte 40", f"{len(sizes)} sections, not 3")
        return (2 * self.b * self.size, 32 * groups, sizes[2])  # the last is measured in `check`

    def check(self, keys: int) -> None:
        super().check(keys)
        kept: list[int] = []  # the slots of block 2 that are not 0
        for i in range(0, len(self.sections[1]), 32):
            group = int.from_bytes(self.sections[1][i : i + 32], "little")
            need(group % 2**32 == len(kept), "section 1", f"group {i // 32} does not count the ones before it")
            kept += [i // 32 * 224 + j for j in range(224) if group >> 32 + j & 1]
        need(all(slot < self.b for slot in kept), "section 1", "a bit after the last slot is set")
        size = len(self.sections[2])
        need(size == (1 + len(kept)) * self.size, "section 2", f"{size} bytes for {len(kept)} slots")
        need(not any(self.sections[2][: self.size]), "section 2", "entry 0 is not 0")
        self.kept: dict[int, int] = {}
        for i, slot in enumerate(kept, 1):
            self.kept[slot] = int.from_bytes(self.sections[2][i * self.size : (i + 1) * self.size], "little")
            need(self.kept[slot] != 0, "section 2", f"entry {i} is 0")

    def slot(self, at: int) -> int:
        return super().slot(at) if at < 2 * self.b else self.kept.get(at - 2 * self.b, 0)


class XorPlus16(XorPlus8):
    name, size = "xor_plus16", 2


class Bloomier(Kind):
    name, parameters = "bloomier", 5

    def __init__(self, f: int, v: int, L: int, C: int, salt: int) -> None:
        need(f <= 32, "parameter 0", f"fingerprints of {f} bits, more than 32")
        need(v <= 64 and f + v > 0, "parameter 1", f"values of {v} bits")
        self.f, self.v, self.L, self.C, self.salt, self.T = f, v, L, C, salt, (C + 3) * L
        if L or C or salt:
            need(1 <= L <= 2**18 and L & (L - 1) == 0, "parameter 2", f"segment length {L}, not a power of two to 2^18")
            need(1 <= C <= 2**24, "parameter 3", f"{C} segments, not 1 to 2^24")
            need(self.T < 2**32, "parameters 2 and 3", f"{self.T} slots, not fewer than 2^32")
        self.lengths = (-(-self.T * (f + v) // 8) + 15 if self.T else 0,)

    def check(self, keys: int) -> None:
        need((self.T == 0) == (keys == 0) and keys <= self.T, "parameter 2", f"{self.T} slots for {keys} keys")
        table = int.from_bytes(self.sections[0], "little")
        need(not table >> self.T * (self.f + self.v), "section 0", "bits after the last slot are set")

    def get(self, h: int) -> int | None:
        if self.T == 0:
            return None
        g, L, w = mix(h + self.salt & MASK), self.L, self.f + self.v
        p = scale(g, self.C * L)
        found = (g ^ g >> 32) % 2**self.f
        for place in [p] + [(p + i * L) ^ ((g >> by) % L) for i, by in enumerate((0, 18, 36), 1)]:
            start = place * w
            window = int.from_bytes(self.sections[0][start >> 3 : (start >> 3) + 13], "little")
            found ^= window >> (start & 7) & (2**w - 1)
        return found >> self.f if found % 2**self.f == 0 else None

    def contains(self, h: int) -> bool:
        return self.get(h) is not None


def packed(count: int, width: int) -> int:
    """Bytes of an array of so many numbers of so many bits."""
    return -(-count * width // 8) + 7


class Golomb(Kind):
    name, parameters = "golomb", 2

    def __init__(self, U: int, K: int) -> None:
        need(1 <= U <= 2**61, "parameter 0", f"a range of {U}, not 1 to 2^61")
        need(8 <= K <= 4096, "parameter 1", f"{K} keys a chunk, not 8 to 4096")
        self.U, self.K = U, K

    def whole(self, sizes: list[int]) -> tuple[int, ...]:
        need(len(sizes) == 3, "byte 40", f"{len(sizes)} sections, not 3")
        return (32, *sizes[1:])  # measured by the counts, in `check`

    def check(self, keys: int) -> None:
        n, self.T, self.w, self.a = struct.unpack("<4Q", self.sections[0])
        need(n <= min(keys, self.U) and (n == 0) == (keys == 0), "section 0", f"{n} values of {keys} keys")
        need(1 <= self.w <= 57, "section 0", f"an index of {self.w} bits")
        need(self.T < 2**60, "section 0", f"{self.T} bits of code")
        least = -(-self.U * 2066789051 // 2**32)
        self.P = next((p for p in range(56) if n << p >= least), 56)
        q = self.K * self.U // max(n, 1)
        b = q.bit_length() - 1
        self.s = min(b + (q >> (b - 1) == 3), self.U.bit_length())
        self.C = -(-self.U // 2**self.s) if n else 0
        sizes = (packed(self.C + 1, self.w), packed(self.T + 64, 1))
        need(tuple(map(len, self.sections[1:])) == sizes, "sections", f"not of {sizes} bytes")
        for section, bits in zip(self.sections[1:], ((self.C + 1) * self.w, self.T)):
            need(not int.from_bytes(section, "little") >> bits, "sections", "bits after the end are set")
        numbers = [field(self.sections[1], c, self.w) for c in range(self.C + 1)]
        need(min(numbers) == 0 and max(max(numbers).bit_length(), 1) == self.w, "section 1", "numbers of another width")
        starts = [self.start(c) for c in range(self.C + 1)]
        need(starts[0] == 0 and starts[-1] == self.T and starts == sorted(starts), "section 1", "chunks out of order")
        self.code = int.from_bytes(self.sections[2], "little")
        self.values = {value for c in range(self.C) for value in self.chunk(c, starts[c], starts[c + 1])}
        need(len(self.values) == n, "section 2", f"{len(self.values)} values, not {n}")

    def start(self, c: int) -> int:
        slope = (self.T << 32) // self.C if self.C else 0
        return (field(self.sections[1], c, self.w) + (c * slope >> 32) + self.a) & MASK

    def chunk(self, c: int, at: int, end: int) -> Iterator[int]:
        value, above = c << self.s, min(c + 1 << self.s, self.U)
        while at < end:
            quotient = 0
            while self.code >> at & 1:
                quotient, at = quotient + 1, at + 1
            at, end = at + 1, end - self.P
            need(at <= end, "section 2", f"chunk {c} ends within a code")
            value += quotient << self.P | self.code >> end & (1 << self.P) - 1
            need(value < above, "section 2", f"value {value} in chunk {c}")
            yield value
            value += 1

    def contains(self, h: int) -> bool:
        return scale(mix(h + GOLDEN_RATIO & MASK), self.U) in self.values


class Perfect(Kind):
    name, parameters = "perfect", 7

    def __init__(self, f: int, v: int, n: int, S: int, B: int, u: int, salt: int) -> None:
        need(2 <= f <= 32 and v <= 57 - f, "parameters 0 and 1", f"{f} bits and values of {v}")
        need(n < 2**32, "parameter 2", f"{n} keys, not fewer than 2^32")
        if n == 0:
            need(S == B == u == salt == 0, "parameters 3 to 6", f"{S}, {B}, {u} and {salt} without keys")
        else:
            most = math.ceil(n / 0.99 * 1.16) + 17
            need(n <= S <= most and 1 <= B <= n, "parameters 3 and 4", f"{S} slots and {B} buckets for {n} keys")
            need(u <= 1 and salt % 2 == 1, "parameters 5 and 6", f"{u}, neither 0 nor 1, or an even salt {salt}")
        self.f, self.v, self.n, self.S, self.B, self.u, self.salt = f, v, n, S, B, u, salt
        self.w = max((n - 1).bit_length(), 1) if n else 1
        self.lengths = (B, packed(S - n, self.w), packed(n, f + v))

    def check(self, keys: int) -> None:
        for section, bits in zip(self.sections[1:], ((self.S - self.n) * self.w, self.n * (self.f + self.v))):
            need(not int.from_bytes(section, "little") >> bits, "sections", "bits after the end are set")
        moved = [field(self.sections[1], i, self.w) for i in range(self.S - self.n)]
        need(all(number < self.n for number in moved), "section 1", f"a number of {self.n} or more")
        entries = [field(self.sections[2], i, self.f + self.v) for i in range(self.n)]
        held = sum(entry % 2**self.f != 0 for entry in entries)
        need(held == keys, "section 2", f"{held} entries, but the header counts {keys} keys")
        need(all(entry == 0 or entry % 2**self.f for entry in entries), "section 2", "a value without a key")

    def contains(self, h: int) -> bool:
        if self.n == 0:
            return False
        g = (h ^ h >> 32) * self.salt & MASK
        g = (g ^ g >> 32) * 0xBF58476D1CE4E5B9 & MASK
        y = scale(scale(g, g), 2**63 + (g >> 1))
        pilot = self.sections[0][scale(y - (y >> 8) + (g >> 8) if self.u else g, self.B)]
        i = scale((g ^ pilot * GOLDEN_RATIO & MASK) * 0x94D049BB133111EB & MASK, self.S)
        if i >= self.n:
            i = field(self.sections[1], i - self.n, self.w)
        fingerprint = 1 + scale((g << 32 | g >> 32) & MASK, 2**self.f - 1)
        return field(self.sections[2], i, self.f + self.v) % 2**self.f == fingerprint


class Ribbon(Kind):
    name, parameters, salted = "ribbon", 5, True
    multipliers = (0x9216D5D98979FB1B, 0xB7E151628AED2A6B, 0xA4093822299F31D1)

    def __init__(self, w: int, c: int, S: int, B: int, q: int) -> None:
        need(w in (64, 128), "parameter 0", f"rows of {w} bits, not 64 or 128")
        need(1 <= c <= 32, "parameter 1", f"{c} columns, not 1 to 32")
        need(S <= 2**16, "parameter 2", f"{S} shards, more than 2^16")
        need(w // 64 < B <= 2**36, "parameter 3", f"{B} blocks, not {w // 64 + 1} to 2^36")
        need(q <= B - w // 64, "parameter 4", f"{q} short blocks, more than {B - w // 64}")
        self.w, self.c, self.S, self.B, self.q = w, c, S, B, q
        self.starts, self.words = 64 * (B - w // 64), B * c - q
        self.lengths = (8 * S,) * self.salted + (8 * S * self.words,)

    def check(self, keys: int) -> None:
        need((self.S == 0) == (keys == 0), "parameter 2", f"{self.S} shards for {keys} keys")
        need(keys <= 64 * self.S * self.B, "byte 64", f"{keys} keys in {64 * self.S * self.B} slots")

    def equation(self, g: int) -> tuple[int, int]:
        """The row and the result of a hash."""
        def product(x: int, i: int) -> int:
            return x * self.multipliers[i] & MASK

        y = product(g, 0)
        u = y ^ y >> 32
        if self.w == 64:
            return u | 1, product(u, 1) >> 32
        y = product(u, 1)
        v = y ^ y >> 32
        return v << 64 | u | 1, product(v, 2) >> 32

    def agrees(self, shard: int, s: int, row: int, result: int) -> bool:
        for i in range(self.c - (s // 64 < self.q)):
            odd = result >> i & 1
            for slot in (s + t for t in range(self.w) if row >> t & 1):
                b = slot // 64
                word = shard * self.words + b * (self.c - 1) + max(b - self.q, 0) + i
                odd ^= bit(self.sections[-1], 64 * word + slot % 64)
            if odd:
                return False
        return True

    def contains(self, h: int) -> bool:
        if self.S == 0:
            return False
        shard = scale(h * GOLDEN_RATIO & MASK, self.S)
        g = mix(h + int.from_bytes(self.sections[0][8 * shard : 8 * shard + 8], "little") & MASK)
        return self.agrees(shard, scale(g, self.starts), *self.equation(g))


class RibbonHomogeneous(Ribbon):
    name, salted = "ribbon_homogeneous", False

    def contains(self, h: int) -> bool:
        if self.S == 0:
            return False
        g = mix(h + self.B * GOLDEN_RATIO & MASK)
        shard, start = scale(h * GOLDEN_RATIO & MASK, self.S), scale(g, self.starts)
        return self.agrees(shard, start, self.equation(g)[0], 0)


class RibbonBumped(Kind):
    name, parameters = "ribbon_bumped", 3

    def __init__(self, c: int, layers: int, listed: int) -> None:
        need(1 <= c <= 32, "parameter 0", f"{c} columns, not 1 to 32")
        need(layers <= 8, "parameter 1", f"{layers} layers, more than 8")
        self.c, self.count, self.listed = c, layers, listed

    def whole(self, sizes: list[int]) -> tuple[int, ...]:
        need(len(sizes) == 2 + 2 * self.count, "byte 40", f"{len(sizes)} sections, not {2 + 2 * self.count}")
        return (16 * self.count, *sizes[1:-1], 8 * self.listed)  # the layers are measured by the table, in `check`

    def check(self, keys: int) -> None:
        self.layers: list[Ribbon] = []
        for i, (B, q) in enumerate(struct.iter_unpack("<2Q", self.sections[0])):
            layer = Ribbon(64, self.c, 1, B, q)
            layer.sections = self.sections[1 + 2 * i : 3 + 2 * i]
            buckets = -(-(B - 1) // 2)
            lengths = (-(-buckets // 4), 8 * layer.words)
            sizes = tuple(len(section) for section in layer.sections)
            need(sizes == lengths, f"section {1 + 2 * i}", f"layer {i} of {sizes} bytes, not {lengths}")
            spare = int.from_bytes(layer.sections[0], "little") >> 2 * buckets
            need(spare == 0, f"section {1 + 2 * i}", "bits after the last threshold")
            self.layers.append(layer)
        need(self.listed <= keys, "parameter 2", f"{self.listed} of {keys} keys listed")
        need(self.listed == keys or self.layers, "parameter 2", f"{self.listed} of {keys} keys listed, and no layer")
        slots = 64 * self.layers[0].B if self.layers else 0
        need(keys <= self.listed + slots + slots // 16, "byte 64", f"{keys} keys in {slots} slots and a list of {self.listed}")
        self.list = [h for (h,) in struct.iter_unpack("<Q", self.sections[-1])]
        need(all(a < b for a, b in zip(self.list, self.list[1:])), "last section", "hashes out of order")

    def contains(self, h: int) -> bool:
        g = h * GOLDEN_RATIO & MASK
        for layer in self.layers:
            s = scale(g, layer.starts)
            bucket = s // 128
            threshold = (0, 14, 40, 128)[layer.sections[0][bucket // 4] >> bucket % 4 * 2 & 3]
            if s % 128 >= threshold:
                return layer.agrees(0, s, *layer.equation(g ^ g >> 32))
            g = mix(g + GOLDEN_RATIO & MASK) * GOLDEN_RATIO & MASK
        return g in self.list


class QuotientTable(Kind):
    """Runs of values by quotient, in the last section."""

    quotients: int
    bits: int

    def size(self, quotients: int, bits: int) -> int:
        """Takes the shape, and tells the bytes of the section."""
        self.quotients, self.bits = quotients, bits
        self.blocks = -(-(quotients + min(64 + 6 * math.isqrt(quotients), 512)) // 64)
        return self.blocks * (17 + 8 * bits) + 7

    def read_runs(self) -> int:
        """Reads the runs, checks all that is said of the table, and tells how many slots are in use."""
        table, stride = self.sections[-1], 17 + 8 * self.bits
        need(not any(table[self.blocks * stride :]), "table", "bytes after the last block are set")
        self.runs: dict[int, list[int]] = {}
        open_runs: list[int] = []
        used = 0
        for j in range(self.blocks):
            block = table[j * stride : (j + 1) * stride]
            open_runs += [64 * j + i for i in range(64) if bit(block[1:9], i)]
            for i in range(64):
                slot, ends, value = 64 * j + i, bit(block[9:17], i), field(block[17:], i, self.bits)
                if open_runs and open_runs[0] <= slot:
                    self.runs.setdefault(open_runs[0], []).append(value)
                    used += 1
                    if ends:
                        open_runs.pop(0)
                else:
                    need(not ends and value == 0, "table", f"slot {slot} is free and not zero")
        need(not open_runs, "table", "a run does not end")
        ends_at, last = {}, -1
        for quotient, run in self.runs.items():
            need(quotient < self.quotients, "table", f"quotient {quotient} of {self.quotients}")
            last = max(quotient, last + 1) + len(run) - 1
            ends_at[quotient] = last
        reached, quotients = -1, sorted(ends_at)
        for j in range(self.blocks):
            while quotients and quotients[0] < 64 * j:
                reached = ends_at[quotients.pop(0)]
            offset = max(0, reached + 1 - 64 * j)
            need(table[j * stride] == min(offset, 255), "table", f"offset of block {j}, not {offset}")
        return used

    def place(self, h: int) -> tuple[int, int]:
        return divmod(h * self.quotients * 2**self.bits >> 64, 2**self.bits)


class Quotient(QuotientTable):
    name, parameters = "quotient", 2

    def __init__(self, N: int, r: int) -> None:
        need(1 <= r <= 57, "parameter 1", f"remainders of {r} bits, not 1 to 57")
        need(1 <= N <= 2 ** (61 - r), "parameter 0", f"{N} slots, not 1 to 2^{61 - r}")
        self.lengths = (self.size(N, r),)

    def check(self, keys: int) -> None:
        used = self.read_runs()
        need(used == keys, "table", f"{used} slots in use, but the header counts {keys} keys")
        for run in self.runs.values():
            need(run == sorted(run), "table", "a run does not ascend")
            need(all(run.count(value) <= 64 for value in run), "table", "more than 64 copies")

    def contains(self, h: int) -> bool:
        quotient, remainder = self.place(h)
        return remainder in self.runs.get(quotient, [])


class QuotientCounting(QuotientTable):
    name, parameters = "quotient_counting", 4

    def __init__(self, N: int, r: int, _keys: int, d: int) -> None:
        need(4 <= r <= 57, "parameter 1", f"remainders of {r} bits, not 4 to 57")
        need(1 <= N <= 2 ** (61 - r), "parameter 0", f"{N} slots, not 1 to 2^{61 - r}")
        need(d <= r - 2, "parameter 3", f"{d} doublings, not 0 to {r - 2}")
        self.lengths = (16, self.size(N << d, r - d))

    def code(self, x: int, count: int) -> list[int]:
        if count <= 2:
            return [x] * count
        if (x, count) == (0, 3):
            return [0, 0, 0]
        base, rest, digits = (2**self.bits - 2, count - 3, []) if x else (2**self.bits - 1, count - 4, [])
        while not digits or rest:
            rest, digit = divmod(rest, base)
            digits.insert(0, digit + 1 + (0 < x <= digit + 1))
        if x == 0:
            return [0, *digits, 0, 0]
        return [x, *([0] if digits[0] > x else []), *digits, x]

    def counts(self, run: list[int]) -> dict[int, int]:
        """Remainders with their counts."""
        counts, at = {}, 0
        while at < len(run):
            x, after = run[at], run[at + 1 :]
            if x == 0 and after[:1] == [0]:
                count = 3 if after[1:2] == [0] else 2
            elif x == 0:
                pair = next((i for i in range(len(after) - 1) if after[i : i + 2] == [0, 0]), None)
                count = 1
                if pair is not None:
                    count = 0
                    for symbol in after[:pair]:
                        count = count * (2**self.bits - 1) + symbol - 1
                    count += 4
            elif not after or after[0] > x:
                count = 1
            elif after[0] == x:
                count = 2
            else:
                count = 0
                for symbol in after[after[0] == 0 :]:
                    if symbol == x:
                        break
                    count = count * (2**self.bits - 2) + symbol - 1 - (symbol > x)
                count += 3
            code = self.code(x, count)
            need(run[at : at + len(code)] == code, "table", f"the code of {x}, {count} times, is another")
            need(not counts or max(counts) < x, "table", "remainders do not ascend")
            counts[x] = count
            at += len(code)
        return counts

    def check(self, keys: int) -> None:
        used, distinct = struct.unpack("<2Q", self.sections[0])
        slots = self.read_runs()
        need(slots == used, "table", f"{slots} slots in use, not {used}")
        self.held = {quotient: self.counts(run) for quotient, run in self.runs.items()}
        found = sum(map(len, self.held.values()))
        need(found == distinct, "table", f"{found} fingerprints, not {distinct}")
        total = sum(sum(counts.values()) for counts in self.held.values())
        need(total == keys, "table", f"counts of {total}, but the header counts {keys} keys")

    def contains(self, h: int) -> bool:
        quotient, remainder = self.place(h)
        return remainder in self.held.get(quotient, {})
class NumberList(QuotientTable):
    """Numbers below a bound, with tags, in order: one of the lists of a multiset."""

    def __init__(self, bound: int, slots: int, tag: int, step: int) -> None:
        for _ in range(step):
            slots += slots // 8 + 1
            need(slots <= 2**61, "section 0", f"step {step} has more slots than any memory")
        self.bound, self.divisor, self.tag = bound, max(1, bound // slots), tag
        self.factor = -(-slots // bound) if self.divisor == 1 else 1
        table = -(-bound // self.divisor) * self.factor
        self.lengths = (self.size(table, max(1, (self.divisor - 1).bit_length() + tag)),)

    def read(self, section: bytes, used: int) -> dict[int, list[int]]:
        """The tags of each number."""
        self.sections = [section]
        found = self.read_runs()
        need(found == used, "list", f"{found} slots in use, not {used}")
        numbers: dict[int, list[int]] = {}
        last = 0
        for quotient, run in self.runs.items():
            for value in run:
                rest, tag = divmod(value, 2**self.tag)
                need(quotient % self.factor == 0, "list", f"a run of {quotient}")
                number = quotient // self.factor * self.divisor + rest
                need(rest < self.divisor and last <= number < self.bound, "list", f"number {number} is out of order")
                numbers.setdefault(number, []).append(tag)
                last = number
        return numbers


class Multiset(Kind):
    name, parameters = "multiset", 2

    def __init__(self, N: int, r: int) -> None:
        need(1 <= r <= 57, "parameter 1", f"rests of {r} bits, not 1 to 57")
        need(1 <= N <= 2 ** (61 - r), "parameter 0", f"{N} slots, not 1 to 2^{61 - r}")
        self.slots, self.u = N, N << r

    def whole(self, sizes: list[int]) -> tuple[int, ...]:
        return (40, *sizes[1:3])  # the steps are in the first section

    def check(self, keys: int) -> None:
        step, base_used, upper_step, upper_used, distinct = struct.unpack("<5Q", self.sections[0])
        base = NumberList(self.u, self.slots, 0, step)
        upper = NumberList(self.u, -(-self.u >> 55), 2, upper_step)
        need(len(self.sections) == 3, "file", "not three sections")
        for section, expected in zip(self.sections[1:], (base, upper)):
            need((len(section),) == expected.lengths, "list", f"{len(section)} bytes, not {expected.lengths[0]}")
        self.held = {number: len(tags) for number, tags in base.read(self.sections[1], base_used).items()}
        columns = upper.read(self.sections[2], upper_used)
        need(columns.keys() <= self.held.keys(), "upper list", "a number is not in the base")
        total = 0
        for number, copies in self.held.items():
            tags = columns.get(number, [])
            need(copies <= 3 and max(tags, default=0) <= 2, "lists", f"digits of {number}")
            digits = [2 - copies, *(tag if tag < 2 else -1 for tag in tags)]
            need(all(a * b != -1 for a, b in zip(digits, digits[1:])), "lists", f"neighbours of {number}")
            need(digits[-1] == 1 and len(digits) <= 65, "lists", f"columns of {number}")
            count = sum(digit << column for column, digit in enumerate(digits))
            need(0 < count < 2**64, "lists", f"the count of {number}")
            total += count
        need(len(self.held) == distinct, "section 0", f"{distinct} numbers, not {len(self.held)}")
        need(total == keys, "lists", f"counts of {total}, but the header counts {keys} keys")

    def contains(self, h: int) -> bool:
        return scale(h, self.u) in self.held


class Cleary(Kind):
    name, parameters = "cleary", 2

    def __init__(self, m: int, r: int) -> None:
        need(1 <= r <= 32, "parameter 1", f"remainders of {r} bits, not 1 to 32")
        need(1 <= m <= 2 ** (56 - r), "parameter 0", f"{m} cells, not 1 to 2^{56 - r}")
        self.m, self.r, self.lengths = m, r, (-(-m * (r + 2) // 8) + 7,)

    def check(self, keys: int) -> None:
        section, v, c = self.sections[0], 1 << self.r, 2 << self.r
        need(not int.from_bytes(section, "little") >> self.m * (self.r + 2), "section 0", "bits after the last cell are set")
        self.groups: dict[int, list[int]] = {}
        used, homes, groups = 0, [], []
        for i in range(self.m + 1):
            cell = field(section, i, self.r + 2) if i < self.m else 0
            if cell == 0:
                need(len(homes) == len(groups), "section 0", f"the cluster before cell {i}")
                self.groups.update(zip(homes, groups))
                homes, groups = [], []
                continue
            used += 1
            if cell & v:
                homes.append(i)
            remainder = cell & (v - 1)
            if cell & c:
                groups.append([remainder])
            else:
                need(bool(groups) and groups[-1][-1] < remainder, "section 0", f"cell {i} does not ascend")
                groups[-1].append(remainder)
        most = self.m - 1 - self.m // (4 * self.r)
        need(used <= most, "section 0", f"{used} cells in use, more than {most}")
        need(used <= keys and (used == 0) == (keys == 0), "section 0", f"{used} cells in use by {keys} keys")

    def contains(self, h: int) -> bool:
        return (h * self.m & MASK) >> (64 - self.r) in self.groups.get(scale(h, self.m), [])


class QuotientVector(Kind):
    name, parameters = "quotient_vector", 3

    def __init__(self, blocks: int, f: int, s: int) -> None:
        need(2 <= blocks <= 2**31 and blocks % 2 == 0, "parameter 0", f"{blocks} blocks, not even, 2 to 2^31")
        need(f in (8, 16), "parameter 1", f"fingerprints of {f} bits, not 8 or 16")
        low, high = (43, 56) if f == 8 else (23, 29)
        need(low <= s <= high, "parameter 2", f"{s} slots of {f} bits, not {low} to {high}")
        self.blocks, self.f, self.s, self.b = blocks, f, s, 512 - (f + 1) * s
        self.lengths = (64 * blocks,)

    def block(self, i: int) -> tuple[int, int]:
        """The metadata of a block, and its slots."""
        block = int.from_bytes(self.sections[0][64 * i : 64 * i + 64], "little")
        return block & (1 << self.b + self.s) - 1, block >> self.b + self.s

    def buckets(self, metadata: int) -> list[int]:
        """For each slot in use its bucket."""
        buckets, bucket = [], 0
        for i in range(self.b + self.s):
            if metadata >> i & 1:
                buckets.append(bucket)
            else:
                bucket += 1
        return buckets

    def check(self, keys: int) -> None:
        held = 0
        for i in range(self.blocks):
            metadata, slots = self.block(i)
            buckets = self.buckets(metadata)
            need(len(buckets) <= self.s, "section 0", f"block {i} has {len(buckets)} fingerprints in {self.s} slots")
            need(max(buckets, default=0) < self.b, "section 0", f"block {i} has bits after its last bucket")
            need(slots >> self.f * len(buckets) == 0, "section 0", f"block {i} has bits in free slots")
            held += len(buckets)
        need(held == keys, "section 0", f"{held} slots are taken, but the header counts {keys} keys")

    def contains(self, h: int) -> bool:
        first, rest = scale(h, self.blocks), h * self.blocks & MASK
        c, v = scale(rest, self.b), (rest * self.b & MASK) >> 64 - self.f
        t = 1 + 2 * scale((c * 2**16 + v) * GOLDEN_RATIO & MASK, self.blocks // 2)
        for i in (first, (t - first) % self.blocks):
            metadata, slots = self.block(i)
            for j, bucket in enumerate(self.buckets(metadata)):
                if bucket == c and slots >> self.f * j & (1 << self.f) - 1 == v:
                    return True
        return False


class Morton(Kind):
    name, parameters = "morton", 2

    def __init__(self, blocks: int, s: int) -> None:
        need(2 <= blocks <= 2**31 and blocks % 2 == 0, "parameter 0", f"{blocks} blocks, not even, 2 to 2^31")
        need(38 <= s <= 54, "parameter 1", f"{s} slots, not 38 to 54")
        self.blocks, self.s, self.b, self.lengths = blocks, s, 248 - 4 * s, (64 * blocks,)

    def block(self, i: int) -> tuple[int, list[int], bytes]:
        """The overflow bits of a block, its counters, and its slots."""
        block = self.sections[0][64 * i : 64 * i + 64]
        counters = [block[2 + c // 4] >> 2 * (c % 4) & 3 for c in range(self.b)]
        return int.from_bytes(block[:2], "little"), counters, block[64 - self.s :]

    def check(self, keys: int) -> None:
        held = overflows = 0
        for i in range(self.blocks):
            overflow, counters, slots = self.block(i)
            used = sum(counters)
            need(used <= self.s, "section 0", f"block {i} has {used} fingerprints in {self.s} slots")
            need(not any(slots[used:]), "section 0", f"block {i} has bits in free slots")
            held, overflows = held + used, overflows | overflow
        need(held == keys, "section 0", f"{held} slots are taken, but the header counts {keys} keys")
        need(keys > 0 or overflows == 0, "section 0", "an overflow bit of no key")

    def holds(self, i: int, c: int, v: int) -> bool:
        _, counters, slots = self.block(i)
        start = sum(counters[:c])
        return v in slots[start : start + counters[c]]

    def contains(self, h: int) -> bool:
        i, rest = scale(h, self.blocks), h * self.blocks & MASK
        c, v = scale(rest, self.b), (rest * self.b & MASK) >> 56
        g, r = v * GOLDEN_RATIO & MASK, min(128, self.blocks) // 2
        d, t = 1 + 2 * scale(g, r), scale(g * r & MASK, self.b)
        second = (i - d if i % 2 else i + d) % self.blocks
        overflows = self.block(i)[0] >> c % 16 & 1
        return self.holds(i, c, v) or bool(overflows) and self.holds(second, (t - c) % self.b, v)


class Prefix(RankIndexed):
    name, parameters = "prefix", 6

    def __init__(self, pockets: int, k: int, banks: int, n: int, slots: int, r: int) -> None:
        need(2 <= pockets <= 2**32 and pockets % 2 == 0, "parameter 0", f"{pockets} pockets, not even, 2 to 2^32")
        need(24 <= k <= 27, "parameter 1", f"{k} remainders, not 24 to 27")
        super().__init__(banks, n, slots, r)
        self.pockets, self.k, self.q = pockets, k, 255 - 9 * k
        self.lengths = (32 * pockets, *self.lengths)

    def pocket(self, p: int) -> tuple[list[int], int]:
        """The fingerprints of a pocket, and its flag."""
        pocket = self.read[32 * p : 32 * p + 32]
        header, slots = int.from_bytes(pocket[: 32 - self.k], "little"), pocket[32 - self.k :]
        ones = [i for i in range(self.q + self.k) if header >> i & 1]
        need(len(ones) <= self.k, "section 0", f"pocket {p} has {len(ones)} remainders")
        need(not any(slots[len(ones) :]), "section 0", f"pocket {p} has bits in free slots")
        return [(i - j) << 8 | slots[j] for j, i in enumerate(ones)], header >> self.q + self.k

    def check(self, keys: int) -> None:
        self.read, *self.sections = self.sections
        held = 0
        for p in range(self.pockets):
            fingerprints, flag = self.pocket(p)
            need(fingerprints == sorted(set(fingerprints)), "section 0", f"pocket {p} does not ascend")
            need(all(f < self.q << 8 for f in fingerprints), "section 0", f"pocket {p} has bits after its last list")
            need(not flag or len(fingerprints) == self.k, "section 0", f"pocket {p} is flagged, but has room")
            held += len(fingerprints)
        spared = sum(self.bank(b)[1] >> 16 * (self.n - 1) for b in range(self.banks))
        super().check(spared)
        held += spared
        need(held <= keys and (held == 0) == (keys == 0), "section 0", f"{held} fingerprints of {keys} keys")

    def contains(self, h: int) -> bool:
        p, rest = scale(h, self.pockets), h * self.pockets & MASK
        fingerprint = scale(rest, self.q) << 8 | (rest * self.q & MASK) >> 56
        fingerprints, flag = self.pocket(p)
        if flag and fingerprint > fingerprints[-1]:
            return super().contains(mix(p << 16 | fingerprint))
        return fingerprint in fingerprints


class Aleph(QuotientTable):
    name, parameters = "aleph", 7

    def __init__(self, N: int, F: int, m: int, d: int, M: int, V: int, v: int) -> None:
        need(N >= 32, "parameter 0", f"{N} slots, fewer than 32")
        need(F >= 1 and m <= 1, "parameter 1", f"fingerprints of {F} bits and {m} more")
        need(d <= 60, "parameter 3", f"{d} doublings, more than 60")
        lengths = [F + (x > 0) * (m + x.bit_length()) for x in range(d + 1)]
        w = lengths[d] + 1
        need(w <= 57 and N << d <= 2 ** (61 - w), "parameter 0", f"{N << d} slots of {w} bits")
        need((V == 0) == (v == 0) and v <= 57, "parameter 6", f"{V} void keys of {v} bits")
        self.N, self.d, self.M, self.V = N, d, M, V
        self.held = {x + length for x, length in enumerate(lengths)}
        table = self.size(N << d, w)
        self.shapes = [(N << d, w)] + [(-(-(2 * N << d) >> v), v)] * (V > 0)
        self.lengths = (table,) + ((self.size(*self.shapes[1]),) if V else ())

    def check(self, keys: int) -> None:
        tables, sections = [], self.sections
        for shape, section in zip(self.shapes, sections):
            self.size(*shape)
            self.sections = [section]
            tables.append((self.read_runs(), self.runs))
        self.sections, N, d = sections, self.N, self.d
        (used, self.runs), (voids, runs) = tables[0], tables[1] if self.V else (0, {})
        need(voids == self.V and used == keys - self.V + self.M, "table", f"{used} slots in use, and {voids}")
        marked = set()
        for quotient, run in self.runs.items():
            need(run == sorted(run), "table", "a run does not ascend")
            need(all(1 <= run.count(value) <= (1 if value == 1 else 64) for value in run), "table", "too many copies")
            lengths = {d + value.bit_length() - 1 for value in run if value != 1}
            need(0 not in run and lengths <= self.held, "table", f"fingerprints of {lengths} bits")
            if 1 in run:
                moves = int(f"{quotient // N:064b}"[::-1], 2) >> (64 - d)
                marked.add((quotient % N << d) + moves)
        covered, last = set(), 0
        for quotient in sorted(runs):
            for value in runs[quotient]:
                a = quotient << self.shapes[1][1] | value
                need(last <= a and 0 < a < 2 * N << d, "voids", f"{a} after {last}")
                half = a & -a
                need(half <= 1 << d and d - half.bit_length() + 1 in self.held, "voids", f"{a} has no generation's length")
                covered.update(range((a - half) // 2, (a + half) // 2))
                last = a
        need(marked == covered and len(marked) == self.M, "table", f"{len(marked)} marks, not {len(covered)}")

    def contains(self, h: int) -> bool:
        rest = h >> self.d
        run = self.runs.get(scale(h, self.N) + self.N * (h % 2**self.d), [])
        return any((value ^ rest) % (1 << value.bit_length() - 1) == 0 for value in run)


class SlidingTable(QuotientTable):
    name, parameters = "sliding_table", 6

    def __init__(self, N: int, w: int, R: int, G: int, share: int, seconds: int) -> None:
        need(1 <= N <= 2**58, "parameter 0", f"{N} slots, not 1 to 2^58")
        need(1 <= w <= 57, "parameter 1", f"values of {w} bits, not 1 to 57")
        need(1 <= G <= 15, "parameter 3", f"{G} generations, not 1 to 15")
        most = min(2**w // (G + 1), 2**62 // N)
        need(2 <= R <= most, "parameter 2", f"{R} remainders, not 2 to {most}")
        need(1 <= share <= 2**58, "parameter 4", f"{share} insertions in a generation, not 1 to 2^58")
        need(seconds <= 2**32, "parameter 5", f"{seconds} seconds, more than 2^32")
        self.N, self.R, self.G, self.share, self.seconds = N, R, G, share, seconds
        self.lengths = (self.size(N + min(10 * math.isqrt(N), 1536), w), (3 + G) * 8)

    def check(self, keys: int) -> None:
        ring, turn, clock, *readings = struct.unpack(f"<{3 + self.G}Q", self.sections[1])
        need(ring <= self.G, "section 1", f"ring {ring}, not 0 to {self.G}")
        turns = 1 << (-(-self.N // 128) - 1).bit_length() if self.seconds else self.share
        need(turn < turns, "section 1", f"turn {turn}, not below {turns}")
        need(self.seconds > 0 or clock == 0, "section 1", f"clock {clock} where insertions are counted")
        latest = min(clock + 1, MASK) if self.seconds else 0
        need([latest, *readings] == sorted([latest, *readings], reverse=True), "section 1", "readings ascend")
        used = self.read_runs()
        need(used == keys, "table", f"{used} slots in use, but the header counts {keys} keys")
        need(used > 0 or (ring, turn) == (0, 0), "section 1", "an empty window whose hand has moved")
        most = self.quotients - self.quotients // 32
        need(used <= (min(most, self.share * (self.G + 1)) if self.seconds else most), "table", "too many keys")
        for quotient, run in self.runs.items():
            remainders = [value // (self.G + 1) for value in run]
            need(quotient < self.N and max(remainders) < self.R, "table", "a fingerprint that no hash has")
            need(run == sorted(run), "table", "a run does not ascend")
            need(all(remainders.count(v) <= 8 for v in remainders), "table", "more than 8 copies")

    def read_runs(self) -> int:
        self.sections.reverse()  # the table is the last section of others
        used = super().read_runs()
        self.sections.reverse()
        return used

    def contains(self, h: int) -> bool:
        quotient, v = scale(h, self.N), scale(h * self.N & MASK, self.R)
        return any(value // (self.G + 1) == v for value in self.runs.get(quotient, []))


KINDS: dict[int, type[Kind]] = {
    1: Bloom,
    2: SplitBlock,
    3: SplitBlock256,
    4: Cuckoo,
    5: BinaryFuse8,
    6: BinaryFuse16,
    7: BinaryFuse32,
    8: TinySet,
    9: TinySetRemovable,
    10: BloomG,
    11: Blocked,
    13: Balanced,
    14: TwoChoice,
    15: Counting,
    16: VariableIncrement,
    18: CountingMinimal,
    19: SpectralRecurring,
    20: Compressed,
    21: Scalable,
    22: Sliding,
    23: AgePartitioned,
    24: Folded,
    25: Compacting,
    26: DLeft,
    27: RankIndexed,
    28: HashCompaction,
    29: Xor8,
    30: Xor16,
    32: XorPlus8,
    33: XorPlus16,
    39: Bloomier,
    37: Golomb,
    38: Perfect,
    34: Ribbon,
    35: RibbonHomogeneous,
    36: RibbonBumped,
    40: Quotient,
    41: QuotientCounting,
    42: QuotientStandard,
    43: QuotientVector,
    45: SlidingTable,
    44: Aleph,
    46: Multiset,
    47: Cleary,
    48: Morton,
    49: Prefix,
}


class Filter:
    """A verified file. What depends on the bytes' being undamaged is looked at only after their checksum."""

    def __init__(self, data: bytes, secret: bytes | None = None) -> None:
        # §1.1, as far as it is needed to find the header's checksum
        need(data[:8] == SIGNATURE, "byte 0", "not a tamis file (signature)")
        need(len(data) >= 128, "file", f"{len(data)} bytes are too few for a header")
        (major, _minor, H, length, incompatible, _compatible, kind, layout, hashing, p, s, self.form, self.k, named, field,
         self.keys, self.capacity, self.rate, zero_too) = struct.unpack_from("<HHIQIIHHHHHHHH16sQQd8s", data, 8)
        need(major == 1, "byte 8", f"major version {major}, not 1")
        need(length == len(data), "byte 16", f"length should be {length}, the file has {len(data)} bytes")
        need(p <= 64, "byte 38", f"{p} parameters, more than 64")
        need(s <= 64, "byte 40", f"{s} sections, more than 64")
        need(named <= 1024, "byte 46", f"the field's name has {named} bytes, more than 1024")
        name = 96 + 8 * p + 16 * s
        end = name + named
        need(H == pad(end + 8), "byte 12", f"header length {H}, not {pad(end + 8)}")
        need(H <= len(data), "byte 12", f"header length {H}, but the file ends at {len(data)}")
        (total,) = struct.unpack_from("<Q", data, H - 8)
        need(total == xxh3(data[: H - 8], HEADER_SEED), f"byte {H - 8}", "wrong checksum of the header")

        # The rest of the header; minor version and compatible flags may be anything.
        need(incompatible == 0, "byte 24", f"unknown incompatible flags {incompatible:#x}")
        need(kind in KINDS, "byte 32", f"unknown kind {kind}")
        self.name = KINDS[kind].name
        need(layout == 1, "byte 34", f"version {layout} of {self.name}, not 1")
        need(self.form <= 4, "byte 42", f"unknown form {self.form} of keys")
        need((self.form == 4) == (self.k > 0), "byte 44", f"k-mers of {self.k} bases in form {self.form}")
        try:
            self.field = data[name:end].decode()
        except UnicodeDecodeError:
            self.field = "\0"
        need(not re.search("[\0-\x1F\x7F-\x9F]", self.field), f"byte {name}", "the field's name is no text without control characters")
        need(not any(zero_too), "byte 88", "reserved bytes are not zero")
        need(not any(data[end : H - 8]), f"byte {end}", "header padding is not zero")
        need(0 < self.rate < 1, "byte 80", f"false-positive rate {self.rate}, not between 0 and 1")
        self.hash = self.hasher(hashing, field, secret)
        fewest, most = KINDS[kind].parameters, KINDS[kind].parameters + KINDS[kind].optional
        need(fewest <= p <= most, "byte 38", f"{p} parameters, {self.name} has {fewest} to {most}")
        self.kind = KINDS[kind](*struct.unpack_from(f"<{p}Q", data, 96))

        # The section table, which the parameters determine. Nothing is sliced before it fits into the file.
        at = 96 + 8 * p
        lengths = self.kind.whole([struct.unpack_from("<Q", data, at + 16 * i + 8)[0] for i in range(s)])
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
        need(1 <= hashing <= 8, "byte 36", f"unknown hashing {hashing}")
        value = int.from_bytes(field[:8], "little")
        need(hashing == 2 or not any(field[8:]), "byte 56", "reserved bytes are not zero")
        if hashing == 1:
            return lambda key: xxh3(key, value)
        if hashing == 2:
            return lambda key: siphash13(key, field)
        if hashing > 3:
            return lambda key: universal(hashing, value, key)
        if secret is None or len(secret) != 16:
            raise FormatError("byte 36: this file's secret is kept elsewhere: pass its 16 bytes")
        kept = secret
        need(siphash13(b"tamis", bytes(255 - b for b in kept)) == value, "byte 48", "the secret is not this file's")
        return lambda key: siphash13(key, kept)

    def contains(self, key: bytes) -> bool:
        return self.kind.contains(self.hash(key))


Key = bytes | str | int | IPv4Address | IPv6Address | tuple["Key", ...]


def key_hash(key: Key, hash: Callable[[bytes], int]) -> int:
    """The hash of a key of the library, after docs/KEYS.md."""
    match key:
        case tuple():
            return hash(b"".join(key_hash(part, hash).to_bytes(8, "little") for part in key))
        case bytes():
            return hash(key)
        case str():
            return hash(key.encode())
        case int():
            return hash((key & MASK).to_bytes(8, "little"))
        case _:
            return hash(key.packed)


# Keys, and their hashes by XXH3 with seed 0 and by SipHash-1-3 under the bytes 0 to 15. The library has the same.
KEYS: list[tuple[Key, int, int]] = [
    (-1, 0x5111C7E47D784413, 0x823F307311453347),
    (IPv4Address("127.0.0.1"), 0xAB57956762B028C1, 0xEB5B87B8FC214947),
    (IPv6Address("2001:db8::1"), 0x275C8FA58C2D19A0, 0x1B55009D1F661474),
    (("a", "bc"), 0x14B6B905EE692897, 0x98181BB937AD6D95),
    (("alice", 42, b"\0"), 0x16E6CDFC7FC085FF, 0xD09AF53935CE5E60),
    ((1, 2, 3, 4), 0xE4D6DCE674D8EB5C, 0x5BF6D5357B5A5ACF),
    (("a", ("b", "c")), 0x0CA9D4E61478ED97, 0x53443DF5FA1C366D),
]


def check_keys() -> None:
    for key, fast, secret in KEYS:
        told = key_hash(key, xxh3), key_hash(key, lambda data: siphash13(data, bytes(range(16))))
        need(told == (fast, secret), f"key {key!r}", f"its hashes are {told[0]:016x} and {told[1]:016x}")


DESCRIPTION = re.compile(
    r"(?P<kind>\w+):capacity=(?P<capacity>\d+),fpr=(?P<rate>[\d.e-]+)(?:,\w+=[\w.]+)*\n"
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
        if isinstance(f.kind, Bloomier) and f.kind.v:  # a golden map has the squares as values
            value = f.kind.get(f.hash(b"present-%d" % i))
            need(value == i * i, "answer", f"present-{i} has the value {value}")
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
    check_keys()
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
