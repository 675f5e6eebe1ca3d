#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Every benchmark: one table, each figure beside its budget and its moonshot.
# Wrong answers fail it, times never do.  SHORT=1 takes fewer turns; README=1
# writes the table in tests/FIGURES.md.  wear.svg is always written: it is the
# same on every machine that has the same SQLite and LMDB.
set -eu

out=${B:-build}
short=
[ "${SHORT:-}" != 1 ] || short=--short
mkdir -p "$out"

# build NAME FLAGS...
build() {
    name=$1
    shift
    "${CC:-cc}" -std=gnu99 -O2 -I. "tests/bench/$name.c" \
        -o "$out/bench_$name" "$@"
}

# has HEADER: whether it can be included
has() {
    echo "#include <$1>" | "${CC:-cc}" -E - > /dev/null 2>&1
}

sqlite='-DBENCH_SQLITE -lsqlite3'
has sqlite3.h || sqlite=

build ram
build journal $sqlite
status=0
measure() {
    "$@" > "$out/bench.rows" || status=1
    cat "$out/bench.rows"
    cat "$out/bench.rows" >> "$out/bench.md"
}

printf '| figure | value | budget | moonshot |\n|---|--:|--:|--:|\n' |
    tee "$out/bench.md"
measure "$out/bench_journal"
if has sqlite3.h && has lmdb.h && [ -r /proc/self/io ]; then
    build wear -lsqlite3 -llmdb
    measure "$out/bench_wear" "$out"
    awk -f tests/bench/plot.awk "$out/bench.md" > tests/bench/wear.svg
fi
measure "$out/bench_ram" $short
measure "$out/bench_journal" $short "$out"
! grep -q 'missed$' "$out/bench.md" || echo "bench: budgets are missed"
if [ "${README:-}" = 1 ] && [ "$status" = 0 ]; then
    sed '/of 1000/b
         /W2\|granule 8\|erases\|no idle\|: ns\|for each\|M[12].*uthash/d
         s/ missed$//' "$out/bench.md" > "$out/bench.readme"
    sh tests/tools/readme.sh bench "$out/bench.readme"
fi
exit $status
