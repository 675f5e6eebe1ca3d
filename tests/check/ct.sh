#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Constant time: runs ct.c under valgrind with both keyed hashes, optimized for
# speed, for size and not; then with a fault planted, which it must find.
# SHORT=1 takes one level of optimization.
set -eu

out=build/check/ct
rm -rf "$out"
mkdir -p "$out"

build() {
    ${CC:-cc} -std=c99 -g "$@" -I. tests/check/ct.c -o "$out/ct"
}

watch() {
    valgrind -q --error-exitcode=0 "$out/ct" 2> "$out/log"
}

levels="-O0 -O2 -Os"
[ "${SHORT:-}" != 1 ] || levels=-O2
runs=0
for hash in SIPHASH HALFSIPHASH; do
    for level in $levels; do
        build "-DIDEM_HASH=IDEM_HASH_$hash" $level
        watch > "$out/said" || {
            cat "$out/said" "$out/log"
            echo "FAILED: ct: $hash $level"
            exit 1
        }
        runs=$((runs + 1))
    done
done
cat "$out/said"

build -O1 -DPLANT_BRANCH
if watch > "$out/said"; then
    echo "FAILED: ct: a planted branch was not found"
    exit 1
fi
echo "ct: planted and found: a branch on a bit of a hash"
echo "ct: $runs builds, no branch and no address but the answer"
