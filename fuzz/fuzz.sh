#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Fuzzes idem.h with libFuzzer and AFL++, over the same harnesses:
#     image       any bytes as a journal's image
#     calls       calls, cuts and failures against a model of the promises
#     template    the harness for users to start from; it must find an injected
#                 bug
#     lives       not a fuzzer: random calls, with both kinds of index, and
#                 random images.  SEEDS: how many, FIRST: the first of them
# Each starts from its inputs in fuzz/seeds.txt, or from random ones: first
# under the address and undefined behaviour sanitizers, then once with the
# memory sanitizer and with AFL++.  Its corpus grows in build/fuzz/found, from
# which the next run starts.
#
#     fuzz.sh [PART...]       these; TIME=300 seconds for each, and fuzzer
#     SHORT=1 fuzz.sh         the seeds, and some thousand executions each, under
#                             the first sanitizers; not the injected bug
# SEED: the seed of the fuzzers, 1 by default.
#
# An input that makes a harness abort is left in build/fuzz; to see its calls
# run TRACE=1 build/fuzz/<harness> FILE.
set -eu

out=build/fuzz
seconds=${TIME:-300}
seed=${SEED:-1}
flags="-std=c99 -g -O2 -w -I. -Itests"
sanitize="-fno-sanitize-recover=all -fsanitize=address,undefined"
total=0
mkdir -p "$out"

# seeds NAME: the inputs of fuzz/seeds.txt for a harness, in $out/seeds/NAME; of
# one that has none there a few by chance
seeds() {
    mkdir -p "$out/seeds/$1"
    { sed -n "s/^$1 //p" fuzz/seeds.txt | grep . || awk 'BEGIN {
        srand(1)
        for (name = 1; name <= 20; name++) {
            printf "%d ", name
            for (i = 0; i < 30 * name; i++) printf "%02X", int(256 * rand())
            print ""
        }
    }'; } | while read -r name bytes; do
        echo "$bytes" | tr -d ' ' | basenc --base16 -d > "$out/seeds/$1/$name"
    done
}

# libfuzzer NAME PROGRAM HOW_MUCH: fuzzes, and adds up the executions
libfuzzer() {
    mkdir -p "$out/found/$1"
    "$out/$2" "$3" -seed="$seed" -max_len=600 -timeout=60 -rss_limit_mb=0 \
        -print_final_stats=1 -verbosity=1 -artifact_prefix="$out/$2-" \
        "$out/found/$1" "$out/seeds/$1" > "$out/log" 2>&1 || {
        grep -a -e '^violation' -e '^    [a-z]' -e 'ERROR' -e 'Test unit' \
            "$out/log" || cat "$out/log"
        echo "FAILED: $2; again: TRACE=1 $out/$2 FILE, the test unit above"
        exit 1
    }
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/log")
    total=$((total + runs))
    echo "$2: $runs executions"
}

# afl NAME: the same with AFL++
afl() {
    AFL_NO_UI=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_SKIP_CPUFREQ=1 \
        AFL_NO_AFFINITY=1 AFL_QUIET=1 \
        afl-fuzz -V "$seconds" -s "$seed" -G 600 -t 60000 -i "$out/seeds/$1" \
            -o "$out/afl-$1" -- "$out/$1-afl" > "$out/log" 2>&1 || {
        tail -n 20 "$out/log"
        echo "FAILED: afl-fuzz stopped on $1-afl"
        exit 1
    }
    runs=$(sed -n 's/^execs_done *: *//p' "$out/afl-$1/default/fuzzer_stats")
    total=$((total + runs))
    echo "$1-afl: $runs executions"
    crashes=$(find "$out/afl-$1/default/crashes" "$out/afl-$1/default/hangs" \
        -name 'id*')
    [ -z "$crashes" ] || { echo "FAILED: crashes or hangs: $crashes"; exit 1; }
}

# harness NAME: all that is to be done with one
harness() {
    name=$1
    seeds "$name"
    clang-19 $flags -fsanitize=fuzzer $sanitize "fuzz/$name.c" \
        -o "$out/$name"
    if [ "${SHORT:-}" = 1 ]; then
        libfuzzer "$name" "$name" -runs=10000
        return
    fi
    libfuzzer "$name" "$name" -max_total_time="$seconds"
    clang-19 $flags -fsanitize=fuzzer,memory -fno-sanitize-recover=all \
        "fuzz/$name.c" -o "$out/$name-memory"
    libfuzzer "$name" "$name-memory" -max_total_time=$((seconds / 5))
    afl-clang-fast $flags -fsanitize=fuzzer "fuzz/$name.c" \
        -o "$out/$name-afl" > "$out/log" 2>&1 || { cat "$out/log"; exit 1; }
    afl "$name"
}

# injected: the bug in template.c is found by both, and not something else
injected() {
    clang-19 $flags -fsanitize=fuzzer $sanitize -DINJECT fuzz/template.c \
        -o "$out/injected"
    afl-clang-fast $flags -fsanitize=fuzzer -DINJECT fuzz/template.c \
        -o "$out/injected-afl" > "$out/log" 2>&1 || { cat "$out/log"; exit 1; }
    cc $flags -DREPLAY -DINJECT fuzz/template.c -o "$out/replay"
    "$out/injected" -max_total_time=60 -max_len=512 -timeout=60 -seed=1 \
        -artifact_prefix="$out/injected-" "$out/seeds/template" \
        > "$out/log" 2>&1 || :
    AFL_NO_UI=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_SKIP_CPUFREQ=1 \
        AFL_NO_AFFINITY=1 AFL_BENCH_UNTIL_CRASH=1 afl-fuzz -V 60 -s 1 \
        -t 10000 -i "$out/seeds/template" -o "$out/afl-injected" \
        -- "$out/injected-afl" > "$out/log" 2>&1 || :
    for found in "$out"/injected-crash-* "$out"/afl-injected/*/crashes/id*; do
        "$out/replay" "$found" 2>&1 | grep 'executed twice' ||
            { echo "FAILED: does not show the injected bug: $found"; exit 1; }
        echo "found: $(od -An -tx1 "$found" | tr -d '\n')"
    done
}

# lives: calls and images by chance
lives() {
    first=${FIRST:-3000}
    count=1000000
    [ "${SHORT:-}" != 1 ] || count=2000
    count=${SEEDS:-$count}
    for how in IDEM_WIDE=1 IDEM_WIDE=0 IMAGE; do
        cc $flags "-D$how" fuzz/lives.c -o "$out/lives-$how"
        "$out/lives-$how" "$first" "$count" > "$out/log" 2>&1 || {
            cat "$out/log"
            life=$(sed -n 's/^life \([0-9]*\).*/\1/p' "$out/log")
            echo "FAILED: lives-$how; again: TRACE=1 $out/lives-$how $life 1"
            exit 1
        }
    done
    total=$((total + 3 * count))
    echo "lives: $count of each kind"
}

rm -rf "$out"/afl-* "$out/seeds" "$out"/injected-crash-*
for part in ${*:-image calls template lives}; do
    case $part in
    lives)  lives ;;
    image | calls | template)
            harness "$part" ;;
    *)      echo "fuzz: no part $part: image calls template lives"
            exit 2 ;;
    esac
    [ "$part" != template ] || [ "${SHORT:-}" = 1 ] || injected
done
[ "${SHORT:-}" != 1 ] ||
    echo "skipped: AFL++, the memory sanitizer, the injected bug"
echo "fuzz: $total executions from seed $seed, nothing found"
