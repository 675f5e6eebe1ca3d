#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Runs build/bench_scale, then the same for each hash and width of the index;
# with --short for one of each.
set -eu

cc=${CC:-cc}
out=${B:-build}
mkdir -p "$out"

# build PROGRAM FLAGS...
build() {
    program=$1
    shift
    $cc -std=gnu99 -O2 "$@" -I. tests/bench/scale.c -o "$out/$program"
}

build bench_scale
"$out/bench_scale" "$@"

printf '\nEach build: 10000 slots, all live, without journal\n\n'
printf '| | fresh, ns | duplicate, ns |\n|---|--:|--:|\n'
widths='1 0' hashes='SIPHASH HALFSIPHASH FNV'
[ "${1:-}" != --short ] || widths=0 hashes=HALFSIPHASH
for wide in $widths; do
    for hash in $hashes; do
        build bench_row -DIDEM_WIDE=$wide -DIDEM_HASH=IDEM_HASH_$hash
        "$out/bench_row" --row "$hash, $((16 + 16 * wide))-bit index"
    done
done
