#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Constant time: runs ct.c under valgrind with both keyed hashes, optimized for
# speed, for size and not; then with two faults planted, which it must find.
# SHORT=1 takes one level of optimization.
set -eu

out=build/ct
rm -rf "$out"
mkdir -p "$out"

# build DIRECTORY FLAGS...: with the header in that directory
build() {
    header=$1
    shift
    ${CC:-cc} -std=c99 -g "$@" -I"$header" tests/ct.c -o "$out/ct"
}

watch() {
    valgrind -q --error-exitcode=0 "$out/ct" 2> "$out/log"
}

levels="-O0 -O2 -Os"
[ "${SHORT:-}" != 1 ] || levels=-O2
runs=0
for hash in SIPHASH HALFSIPHASH; do
    for level in $levels; do
        build . "-DIDEM_HASH=IDEM_HASH_$hash" $level
        watch > "$out/said" || {
            cat "$out/said" "$out/log"
            echo "FAILED: ct: $hash $level"
            exit 1
        }
        runs=$((runs + 1))
    done
done
cat "$out/said"

# plant NAME FUNCTION SCRIPT: sed's script, on one function
plant() {
    sed "/^static.*[ *]$2(\|^IDEM_API.*[ *]$2(/,/^}/{
        $3
        }" idem.h > "$out/idem.h"
    if cmp -s idem.h "$out/idem.h"; then
        echo "FAILED: ct: $1: nothing is changed by it"
        exit 1
    fi
    build "$out" -O1
    if watch > "$out/said"; then
        echo "FAILED: ct: $1: not found"
        exit 1
    fi
    echo "ct: planted and found: $1"
}
plant "one half is compared first" idemi_command_again \
    's/fingerprint\[0\]) |$/fingerprint[0]) ||/'
plant "a branch in the hash" idemi_hash_rotate64 \
    's/return/if (x \& 1) __asm__ volatile (""); return/'
echo "ct: $runs builds, no branch and no address but the answer"
