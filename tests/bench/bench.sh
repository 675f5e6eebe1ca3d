#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Every benchmark, one after the other; tables and plots go to build/bench-out.
# With SHORT=1 the short form of each.  Wrong answers fail it, times never do.
set -eu

out=${B:-build}
results=$out/bench-out
short=
[ "${SHORT:-}" != 1 ] || short=--short
rm -rf "$results"
mkdir -p "$results/rows"
BENCH_ROWS=$results/rows
export BENCH_ROWS

# bench NAME COMMAND...: what it prints is kept as NAME.md
bench() {
    name=$1
    shift
    echo "== $name"
    "$@" > "$results/$name.md" || { cat "$results/$name.md"; exit 1; }
    cat "$results/$name.md"
}

# A missed budget is told, and no failure.
flash() {
    "$out/bench_flash" $short || echo "flash: a budget is missed"
}

sh tests/bench/build_ram.sh
sh tests/bench/build_durable.sh
bench ram "$out/bench" $short
bench count sh tests/bench/count.sh $short
bench file "$out/bench_file" $short "$out"
bench durable "$out/bench_durable" $short "$out"
bench flash flash
bench scale sh tests/bench/scale.sh $short

sh tests/bench/plots.sh "$results"
echo "bench: tables and plots are in $results"
