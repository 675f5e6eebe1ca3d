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

# plot ROWS TITLE UNIT KIND LOG [XTITLE]
plot() {
    [ -s "$results/rows/$1.tsv" ] || return 0
    awk -f tests/bench/plot.awk -v title="$2" -v unit="$3" -v kind="$4" \
        -v log_scale="$5" -v xtitle="${6:-}" "$results/rows/$1.tsv" \
        > "$results/$1.svg"
}

sh tests/bench/build_ram.sh
sh tests/bench/build_durable.sh
bench ram "$out/bench" $short
bench count sh tests/bench/count.sh $short
bench file "$out/bench_file" $short "$out"
bench durable "$out/bench_durable" $short "$out"
bench flash flash
bench scale sh tests/bench/scale.sh $short

for keys in 1000 100000 1000000; do
    plot "ram_M1_$keys" "Claim and complete one of $keys keys" ns bars 1
    plot "ram_M2_$keys" "Replay one of $keys keys" ns bars 1
    plot "ram_absent_$keys" "Look for an absent key, $keys present" ns bars 1
done
plot ram_M3_49152 "Churn, 75 % of 65536 slots live" ns bars 0
plot ram_full_65536 "Churn, all of 65536 slots live" ns bars 0
for depth in 1 8 64; do
    plot "durable_$depth" "Durable command, $depth in flight" \
        "times two bare writes, synced" bars 1
done
plot durable_open "Open with all keys" ms bars 1
for granule in 1 8 16 256; do
    for mix in W1 W2; do
        at="$mix, granule $granule"
        plot "flash_bytes_${mix}_$granule" "$at: bytes per 1000 commands" \
            bytes bars 1
        plot "flash_worst_${mix}_$granule" "$at: worst call, SPI NOR" ms bars 1
        plot "flash_life_${mix}_$granule" "$at: commands until worn out" \
            million bars 1
    done
done
plot scale_keys "A fresh command, all slots live" ns lines 1 keys
plot scale_load "A table of 65536 slots" ns lines 0 "% of the slots live"
plot scale_open "Opening" ms lines 1 "bytes of journal"
plot options "A fresh command, journal in memory" ns bars 0
plot builds "A fresh command, without journal" ns bars 0
echo "bench: tables and plots are in $results"
