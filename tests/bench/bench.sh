#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Every benchmark: one table, each figure beside its budget and its moonshot.
# Wrong answers fail it, times never do.  SHORT=1 takes fewer turns.
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

sqlite='-DBENCH_SQLITE -lsqlite3'
echo '#include <sqlite3.h>' | "${CC:-cc}" -E - > /dev/null 2>&1 || sqlite=

build flash
build ram
build durable $sqlite
{
    echo "| figure | value | budget | moonshot |"
    echo "|---|--:|--:|--:|"
    "$out/bench_flash"
    "$out/bench_ram" $short
    "$out/bench_durable" $short "$out"
} | tee "$out/bench.md"
! grep -q 'missed$' "$out/bench.md" || echo "bench: budgets are missed"
