#!/usr/bin/env python3
"""Writes the sample data beside this script, the same at every run: made-up names, visits, users and sequences.

The names end in .example, .test and .invalid, which belong to nobody (RFC 2606).
"""

import pathlib

HERE = pathlib.Path(__file__).parent
WORDS = """
    acorn amber apple arch ash aspen atlas barley basil bay beacon birch bison blue bolt brook cabin cedar chalk cliff
    clover cobalt copper coral crane creek crow dale dawn delta drift dune eagle echo elm ember falcon fern finch flint
    forest fox frost garnet gate ginger glade gold granite grove hawk hazel heron hill holly honey indigo iris iron
    island ivy jade jay juniper kelp kite lake lark laurel lemon lichen lilac lily linden lotus lynx maple marble marsh
    meadow mint mist moon moss north nut oak oasis ocean olive onyx opal orchid otter owl palm peak pearl pebble pepper
    pine plum pond poppy prairie quartz quill rain raven reed ridge river robin rose ruby rush sage salt sand shell
    silver sky slate snow sparrow spruce star stone storm sun swan thistle thyme tide timber topaz tulip valley vine
    violet walnut wave west wheat willow wind wolf wren yarrow zinc
""".split()
SITES = ["ads", "banner", "click", "metrics", "pixel", "promo", "stats", "track"]
PAGES = ["www", "blog", "shop", "mail", "docs", "news", "api", "img"]
ENDS = ["example", "test", "invalid"]


class Random:
    """A 64-bit linear congruential generator (Knuth's MMIX), so that the files depend on no library's version."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (6364136223846793005 * self.state + 1442695040888963407) % 2**64
        return (self.state >> 33) * n >> 31

    def choice(self, items):
        return items[self.below(len(items))]


def names(random, hosts, count):
    """So many different names under one list of hosts."""
    found = {}
    while len(found) < count:
        name = f"{random.choice(WORDS)}-{random.choice(WORDS)}"
        if random.below(4) == 0:
            name += str(random.below(100))
        found[f"{random.choice(hosts)}.{name}.{random.choice(ENDS)}"] = None
    return list(found)


def log_line(random, number, user, host):
    """A row of a log: a visit every few seconds of one morning."""
    seconds = 8 * 3600 + 7 * number + random.below(7)
    time = f"2026-03-02T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"
    return f"{time},{user},{host}"


def genome(random):
    """Three sequences in lines of 60 bases, some of them unknown."""
    lines = []
    for number in range(1, 4):
        lines.append(f">contig{number} made up")
        for _ in range(40):
            lines.append("".join("ACGT"[random.below(4)] for _ in range(60)))
        lines.append("N" * 10 + "ACGT" * 5)
    return lines


def main():
    random = Random(2026)
    blocked = names(random, SITES, 2000)
    clean = names(random, PAGES, 1500)
    # The lower of two draws makes some names common and most rare, as in a real log.
    draw = lambda items: items[min(random.below(len(items)), random.below(len(items)))]
    visits = [draw(blocked) if random.below(10) == 0 else draw(clean) for _ in range(5000)]
    users = [f"{random.choice(WORDS)}.{random.choice(WORDS)}" for _ in range(400)]
    table = ["time,user,host"] + [log_line(random, i, draw(users), visit) for i, visit in enumerate(visits[:1500])]
    known = sorted(set(users[:250]))
    for name, lines in [
        ("blocklist.txt", sorted(blocked)),
        ("visits.txt", visits),
        ("visits.csv", table),
        ("users.txt", known),
        ("joined.txt", sorted(set(users[250:300]) - set(known))),
        ("left.txt", known[::12]),
        ("genome.fa", genome(random)),
        ("prices.csv", ["item,cents"] + [f"{word},{100 + random.below(900)}" for word in WORDS]),
        ("basket.txt", WORDS[::15] + ["saffron"]),
    ]:
        (HERE / name).write_bytes("".join(line + "\n" for line in lines).encode())


if __name__ == "__main__":
    main()
