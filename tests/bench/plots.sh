#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Draws the plots of what bench.sh has measured: plots.sh FOLDER
set -eu

results=$1

# plot ROWS TITLE UNIT KIND [LOG XTITLE]
plot() {
    [ -s "$results/rows/$1.tsv" ] || return 0
    awk -f tests/bench/plot.awk -v title="$2" -v unit="$3" -v kind="$4" \
        -v log_scale="${5:-0}" -v xtitle="${6:-}" "$results/rows/$1.tsv" \
        > "$results/$1.svg"
}

for keys in 1000 100000 1000000; do
    plot "ram_M1_$keys" "Claim and complete one of $keys keys" ns bars
    plot "ram_M2_$keys" "Replay one of $keys keys" ns bars
    plot "ram_absent_$keys" "Look for an absent key, $keys present" ns bars
done
plot ram_M3_49152 "Churn, 75 % of 65536 slots live" ns bars
plot ram_full_65536 "Churn, all of 65536 slots live" ns bars
for depth in 1 8 64; do
    plot "durable_$depth" "Durable command, $depth in flight" \
        "times two bare writes, synced" bars
done
plot durable_open "Open with all keys" ms bars
for granule in 1 8 16 256; do
    for mix in W1 W2; do
        at="$mix, granule $granule"
        plot "flash_bytes_${mix}_$granule" "$at: bytes per 1000 commands" \
            bytes bars
        plot "flash_worst_${mix}_$granule" "$at: worst call, SPI NOR" ms bars
        plot "flash_life_${mix}_$granule" "$at: commands until worn out" \
            million bars
    done
done
plot scale_keys "A fresh command, all slots live" ns lines 1 keys
plot scale_load "A table of 65536 slots" ns lines 0 "% of the slots live"
plot scale_open "Opening" ms lines 1 "bytes of journal"
plot options "A fresh command, journal in memory" ns bars
plot builds "A fresh command, without journal" ns bars
