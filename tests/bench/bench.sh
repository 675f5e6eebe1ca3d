#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Every benchmark: one table, each figure beside its budget and its moonshot.
# Wrong answers fail it, times never do.  SHORT=1 takes fewer turns.
#     bench.sh [counts]       only what is counted
# What is counted (bytes, erases) is the same on every machine, and is always
# written to tests/FIGURES.md; what is timed with README=1.  wear.svg is always
# written: it is the same where there are the same SQLite and LMDB.
set -eu

case ${1:-counts} in
counts) ;;
*)      echo "bench: no part $1: counts"; exit 2 ;;
esac
out=${B:-build}
short=
[ "${SHORT:-}" != 1 ] || short=--short
mkdir -p "$out"

# build NAME SOURCE FLAGS...
build() {
    name=$1 source=$2
    shift 2
    "${CC:-cc}" -std=gnu99 -O2 -I. "tests/bench/$source.c" \
        -o "$out/bench_$name" "$@"
}

# has HEADER: whether it can be included
has() {
    echo "#include <$1>" | "${CC:-cc}" -E - > /dev/null 2>&1
}

sqlite='-DBENCH_SQLITE -lsqlite3'
has sqlite3.h || sqlite=
lmdb='-DBENCH_LMDB -llmdb'
has lmdb.h || lmdb=
rocksdb='-DBENCH_ROCKSDB -lrocksdb'
has rocksdb/c.h || rocksdb=

status=0
# table FILE: the rows that follow go there
table() {
    table=$1
    printf '| figure | value | budget | moonshot |\n|---|--:|--:|--:|\n' |
        tee "$table"
}

measure() {
    "$@" > "$out/bench.rows" || status=1
    tee -a "$table" < "$out/bench.rows"
}

# write NAME: the table as that of this name in FIGURES.md
write() {
    [ "$status" = 0 ] || return 0
    sed 's/ missed$//' "$table" > "$out/bench.rows"
    sh tests/tools/readme.sh "$1" "$out/bench.rows"
}

build journal journal
table "$out/bench_counts.md"
measure "$out/bench_journal"
write counts
[ "${1:-}" != counts ] || exit $status

build ram ram
build known ram -DBENCH_KNOWN=1000
build static ram -DBENCH_KNOWN=1000 -DIDEM_STATIC
build group group $sqlite $lmdb $rocksdb -lpthread
table "$out/bench.md"
if has sqlite3.h && has lmdb.h && [ -r /proc/self/io ]; then
    measure "$out/bench_group" --wear "$out"
    cat "$out/bench_counts.md" "$out/bench.md" |
        awk -f tests/bench/plot.awk > tests/bench/wear.svg
fi
measure "$out/bench_ram" $short
measure "$out/bench_known" $short
measure "$out/bench_static" $short
measure "$out/bench_journal" $short "$out"
measure "$out/bench_group" $short "$out"
! grep -q 'missed$' "$out/bench.md" || echo "bench: budgets are missed"
[ "${README:-}" != 1 ] || write bench
exit $status
