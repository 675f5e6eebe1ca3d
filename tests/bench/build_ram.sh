#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Builds build/bench with those of its peers that are installed, and names the
# others.  khash and uthash must be there.
set -eu

out=${B:-build}/ram
. tests/bench/probe.sh

glib=$(pkg-config --cflags glib-2.0 2>/dev/null || true)
peer stb_ds tests/bench/peer_stb.c BENCH_STB stb/stb_ds.h "$cc" -std=gnu99 ''
peer GLib tests/bench/peer_glib.c BENCH_GLIB glib.h "$cc" "-std=gnu99 $glib" \
    -lglib-2.0
peer C++ tests/bench/peer_map.cpp BENCH_MAP unordered_map "${CXX:-c++}" \
    '-std=c++17 -x c++' -lstdc++
peer SQLite tests/bench/peer_sqlite.c BENCH_SQLITE sqlite3.h "$cc" -std=gnu99 \
    -lsqlite3

flags='-std=gnu99 -O2'
$cc $flags -DBENCH_FLAGS="\"$flags\"" $defines -I. tests/bench/bench.c \
    $objects -o "${B:-build}/bench" $libraries
