#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Builds build/bench_durable with those of its peers that are installed, and
# names the others.
set -eu

out=${B:-build}/durable
. tests/bench/probe.sh

# store NAME MACRO HEADER LIBRARIES [FLAGS]: one whose source is called after it
store() {
    name=$(echo "$1" | tr '[:upper:]' '[:lower:]')
    peer "$1" "tests/bench/store_$name.c" "$2" "$3" "$cc" \
        "-std=gnu99 ${5:-}" "$4"
}
store SQLite BENCH_SQLITE sqlite3.h -lsqlite3
store LMDB BENCH_LMDB lmdb.h -llmdb
store LevelDB BENCH_LEVELDB leveldb/c.h -lleveldb
store Redis BENCH_REDIS hiredis/hiredis.h -lhiredis
store Postgres BENCH_POSTGRES libpq-fe.h -lpq -I/usr/include/postgresql

$cc -std=gnu99 -O2 $defines -I. tests/bench/durable.c $objects \
    -o "${B:-build}/bench_durable" $libraries
