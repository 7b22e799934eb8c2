"""RedisBloom's structures, written from the description of its dumps, to make chunks of them."""

import math
import struct

M64 = (1 << 64) - 1


def murmur(data, seed):
    m, r = 0xC6A4A7935BD1E995, 47
    h = seed ^ (len(data) * m & M64)
    for i in range(0, len(data) // 8 * 8, 8):
        k = int.from_bytes(data[i : i + 8], "little") * m & M64
        k ^= k >> r
        h = (h ^ (k * m & M64)) * m & M64
    tail = data[len(data) // 8 * 8 :]
    if tail:
        h = (h ^ int.from_bytes(tail, "little")) * m & M64
    h ^= h >> r
    h = h * m & M64
    return h ^ h >> r


class Link:
    """One Bloom filter of a chain."""

    def __init__(self, capacity, rate):
        self.capacity, self.rate = capacity, rate
        self.per_item = -math.log(rate) / 0.480453013918201
        self.data = bytearray((int(capacity * self.per_item) + 63) // 64 * 8)
        self.hashes = math.ceil(0.693147180559945 * self.per_item)
        self.items = 0

    def bits(self, item):
        a = murmur(item, 0xC6A4A7935BD1E995)
        b = murmur(item, a)
        for i in range(self.hashes):
            yield (a + i * b & M64) % (8 * len(self.data))

    def contains(self, item):
        return all(self.data[bit // 8] >> bit % 8 & 1 for bit in self.bits(item))

    def add(self, item):
        for bit in self.bits(item):
            self.data[bit // 8] |= 1 << bit % 8
        self.items += 1

    def row(self):
        sizes = len(self.data), 8 * len(self.data), self.items
        rest = self.rate, self.per_item, self.hashes, self.capacity, 0
        return struct.pack("<QQQddIQB", *sizes, *rest)


class Bloom:
    """A chain of Bloom filters; one, if it does not scale."""

    def __init__(self, capacity, rate, scales=True):
        self.scales = scales
        self.links = [Link(capacity, rate / 2 if scales else rate)]

    def add(self, item):
        if any(link.contains(item) for link in self.links):
            return
        last = self.links[-1]
        if last.items >= last.capacity and self.scales:
            self.links.append(Link(2 * last.capacity, last.rate / 2))
        self.links[-1].add(item)

    def chunks(self, size=1000):
        items, options = sum(link.items for link in self.links), 5 if self.scales else 13
        head = struct.pack("<QIII", items, len(self.links), options, 2)
        yield 1, head + b"".join(link.row() for link in self.links)
        data = b"".join(link.data for link in self.links)
        for at in range(0, len(data), size):
            chunk = data[at : at + size]
            yield at + len(chunk) + 1, chunk


class Cuckoo:
    """One cuckoo table, filled without evictions."""

    def __init__(self, buckets, bucket_size=2):
        self.buckets, self.bucket_size, self.items = buckets, bucket_size, 0
        self.data = bytearray(buckets * bucket_size)

    def add(self, item):
        h = murmur(item, 0)
        fingerprint = h % 255 + 1
        for hash_ in h, h ^ fingerprint * 0x5BD1E995:
            start = hash_ % self.buckets * self.bucket_size
            for slot in range(start, start + self.bucket_size):
                if not self.data[slot]:
                    self.data[slot] = fingerprint
                    self.items += 1
                    return True
        return False

    def chunks(self, size=300):
        yield 1, struct.pack("<QQQQHHH", self.items, self.buckets, 0, 1, self.bucket_size, 20, 1)
        for at in range(0, len(self.data), size):
            chunk = bytes(self.data[at : at + size])
            yield at + len(chunk) + 1, chunk
