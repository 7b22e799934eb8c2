#!/bin/sh
# Times tamis on one thread beside what people use for the same job: the lines of one file that are also in another,
# exactly (`tamis compare --exact`) or by a filter (`tamis build` and `tamis check`). Prints a Markdown table; seconds
# are of processor time, so that a busy machine does not matter much, with elapsed time beside them.
#
#   scripts/compare-cli.sh [LINES [DIRECTORY]]        10,000,000 lines, in a temporary directory
#   scripts/compare-cli.sh table                      the README's: short and long lines, a million and five
#
# LENGTH is `short` (8 letters), `long` (76) or `mixed` (12 and 24, the default): what is gained depends on it.
# Of the programs that are not installed, nothing is said: GNU grep and sort; Python with rbloom or pybloomfilter
# (PYTHON=… to name one); DCSO's `bloom`. Needs GNU time as /usr/bin/time. What takes more than LIMIT kilobytes of
# address space (default 12000000) is stopped, and said to be.
set -eu

if [ "${1:-}" = table ]; then
    columns=$(mktemp -d)
    trap 'rm -rf "$columns"' EXIT
    for shape in 1000000-short 1000000-long 5000000-short 5000000-long; do
        BRIEF=1 LENGTH=${shape#*-} "$0" "${shape%-*}" >"$columns/$shape"
    done
    echo "| processor time, one thread | 10⁶ short lines | 10⁶ long | 5·10⁶ short | 5·10⁶ long |"
    echo "|---|---|---|---|---|"
    cut -f 1 "$columns/1000000-short" | while read -r name; do
        printf '| %s |' "$name"
        for shape in 1000000-short 1000000-long 5000000-short 5000000-long; do
            NAME=$name awk -F '\t' '$1 == ENVIRON["NAME"] { printf " %s |", $2 }' "$columns/$shape"
        done
        echo
    done
    exit
fi

lines=${1:-10000000}
length=${LENGTH:-mixed}
limit=${LIMIT:-12000000}
python=${PYTHON:-python3}
here=$(cd "$(dirname "$0")/.." && pwd)
tamis=${TAMIS:-$here/target/release/tamis}
[ -x "$tamis" ] || (cd "$here" && cargo build --release -p tamis-cli)
if [ $# -ge 2 ]; then
    mkdir -p "$2"
    cd "$2"
else
    room=$(mktemp -d)
    trap 'rm -rf "$room"' EXIT
    cd "$room"
fi
export LC_ALL=C

# Names as of hosts, hashes and addresses, in no order; half of the visits are keys.
[ -f visits.txt ] || "$python" - "$lines" "$length" <<'PY'
import sys
n, length, mask = int(sys.argv[1]), sys.argv[2], 2**64 - 1
def mixed(i):
    x = (i * 0x9E3779B97F4A7C15 + 12345) & mask
    x ^= x >> 31
    x = x * 0xBF58476D1CE4E5B9 & mask
    x ^= x >> 29
    return "%016x.example\n" % x if i & 1 else "%012x\n" % (x >> 16)
def short(i):
    x = i * 0x9E3779B1 & 0xFFFFFFFF
    x ^= x >> 15
    return "%08x\n" % (x * 0x85EBCA6B & 0xFFFFFFFF)
def long(i):
    return "https://www.example.org/catalogue/items/by-number/%s?from=list\n" % mixed(2 * i + 1)[:16]
line = {"mixed": mixed, "short": short, "long": long}[length]
for name, start in ("keys.txt", 0), ("visits.txt", n // 2):
    with open(name, "w") as out:
        for at in range(start, start + n, 10000):
            out.write("".join(map(line, range(at, min(at + 10000, start + n)))))
PY

# run STEP COMMAND…: its processor time, elapsed time and peak memory go to STEP.time.
run() {
    step=$1
    shift
    if (ulimit -v "$limit" && exec /usr/bin/time -o "$step.time" -f "%U %S %e %M" "$@" >"$step.out" 2>"$step.err"); then
        return 0
    fi
    code=$?
    # 1 is also grep's answer for no line.
    [ $code -eq 1 ] && [ ! -s "$step.err" ] || echo "stopped" >"$step.time"
}

# row NAME STEP…: a line of the table, from the times of the steps. In the README's table a cell has the seconds, the
# peak memory, and how many times the seconds of tamis that is; other ways of tamis are not there.
row() {
    name=$1
    shift
    if [ -n "${BRIEF:-}" ]; then
        case $name in "the same"*) return ;; esac
        if cat "$@" | grep -q stopped; then
            printf '%s\t%s\n' "$name" "over $((limit / 1000000)) GB"
            return
        fi
        cat "$@" | awk -v name="$name" -v base="$base" '{ cpu += $1 + $2; if ($4 > peak) peak = $4 }
            END { printf "%s\t%.2f s, %.0f MB, %.1f×\n", name, cpu, peak / 1000, cpu / base }'
        return
    fi
    if cat "$@" | grep -q stopped; then
        echo "| $name | - | - | more than $((limit / 1000)) MB, or failed | - |"
        return
    fi
    cat "$@" | awk -v name="$name" -v base="$base" '
        { cpu += $1 + $2; wall += $3; if ($4 > peak) peak = $4; parts = parts (NR > 1 ? " + " : "") sprintf("%.2f", $1 + $2) }
        END { printf "| %s | %s = %.2f s | %.1f s | %.0f MB | %.1f |\n", name, parts, cpu, wall, peak / 1000, cpu / base }'
}

# Once before, so that all find the files in memory.
cat keys.txt visits.txt >/dev/null
[ -n "${BRIEF:-}" ] || {
    echo "| $lines lines, one thread | processor time | elapsed | peak memory | times tamis |"
    echo "|---|---|---|---|---|"
}

# Exactly. The base of the ratios is tamis's way to do the same.
run compare "$tamis" compare -12 --exact visits.txt keys.txt
base=$(awk '{ print $1 + $2 }' compare.time)
row "\`tamis compare -12 --exact\`" compare.time
run columns "$tamis" compare --exact visits.txt keys.txt
row "the same, all three columns" columns.time
run sort1 sort --parallel=1 -u keys.txt -o keys.sorted
run sort2 sort --parallel=1 -u visits.txt -o visits.sorted
run comm comm -12 keys.sorted visits.sorted
row "\`sort -u\` twice, \`comm -12\`" sort1.time sort2.time comm.time
[ "$(sort compare.out | cksum)" = "$(cksum <comm.out)" ] || { echo "tamis and comm differ" >&2; exit 1; }
rm -f keys.sorted visits.sorted
run grep grep -F -x -f keys.txt visits.txt
row "\`grep -F -x -f\`" grep.time

# By a filter that errs once in a hundred times or less.
run build "$tamis" build keys.txt -o keys.tamis --force --threads 1
run check "$tamis" check keys.tamis visits.txt
base=$(cat build.time check.time | awk '{ cpu += $1 + $2 } END { print cpu }')
row "\`tamis build\` + \`tamis check\`" build.time check.time
run secret "$tamis" build keys.txt -o keys.tamis --force --threads 1 --secret random
run check "$tamis" check keys.tamis visits.txt
row "the same under a secret" secret.time check.time
run ribbon "$tamis" build keys.txt -o keys.tamis --force --threads 1 --kind ribbon_bumped
run check "$tamis" check keys.tamis visits.txt
row "the same, \`--kind ribbon_bumped\`" ribbon.time check.time
run disk "$tamis" build keys.txt -o keys.tamis --force --threads 1 --max-memory 64M
run check "$tamis" check keys.tamis visits.txt
row "the same, \`--max-memory 64M\`: from disk" disk.time check.time
run growing "$tamis" build keys.txt -o keys.tamis --force --threads 1 --kind split_block --max-memory 64M
run check "$tamis" check keys.tamis visits.txt
row "the same, \`--kind split_block --max-memory 64M\`" growing.time check.time

if "$python" -c 'import rbloom' 2>/dev/null; then
    run rbloom "$python" -c '
import rbloom, sys
out = sys.stdout.buffer.write
n = sum(1 for _ in open("keys.txt", "rb"))
keys = rbloom.Bloom(n, 0.01)
keys.update(open("keys.txt", "rb"))
for line in open("visits.txt", "rb"):
    if line in keys: out(line)'
    row "Python, rbloom" rbloom.time
fi
if "$python" -c 'import pybloomfilter' 2>/dev/null; then
    run pybloom "$python" -c '
import pybloomfilter, sys
out = sys.stdout.buffer.write
n = sum(1 for _ in open("keys.txt", "rb"))
keys = pybloomfilter.BloomFilter(n, 0.01)
keys.update(open("keys.txt", "rb"))
for line in open("visits.txt", "rb"):
    if line in keys: out(line)'
    row "Python, pybloomfiltermmap3" pybloom.time
fi
if command -v bloom >/dev/null; then
    run dcso1 sh -c "bloom -p 0.01 -n $lines create keys.bloom && bloom insert keys.bloom <keys.txt"
    run dcso2 sh -c "bloom check keys.bloom <visits.txt"
    row "DCSO bloom" dcso1.time dcso2.time
fi
