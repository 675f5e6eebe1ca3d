#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Runs fuzz/template.c: as it is, nothing must be found; with -DPLANT a command
# that is executed twice must be, by libFuzzer and by AFL++, and what is found
# must happen again in the plain program.
set -eu

out=build/fuzz-template
seconds=60
[ "${SHORT:-}" != 1 ] || seconds=10
rm -rf "$out"
mkdir -p "$out/corpus" "$out/planted-corpus"
flags="-std=c99 -g -O1 -Wall -Wextra -Werror -Wno-missing-field-initializers
    -I."
libfuzzer="clang-19 $flags -fsanitize=fuzzer,address,undefined
    -fno-sanitize-recover=all"

$libfuzzer fuzz/template.c -o "$out/clean"
$libfuzzer -DPLANT fuzz/template.c -o "$out/planted"
afl-clang-fast $flags -fsanitize=fuzzer -DPLANT fuzz/template.c \
    -o "$out/afl-planted" > "$out/afl.log" 2>&1 ||
    { cat "$out/afl.log"; exit 1; }
cc $flags -DREPLAY -DPLANT fuzz/template.c -o "$out/replay"

# replay FILE: the planted bug, and not something else
replay() {
    "$out/replay" "$1" 2> "$out/replay.err" || true
    grep -qx 'executed twice' "$out/replay.err" ||
        { echo "not the planted bug: $1"; exit 1; }
}

echo "-- as it is, $seconds s"
"$out/clean" -max_total_time="$seconds" -max_len=512 -timeout=60 \
    -artifact_prefix="$out/clean-" "$out/corpus" fuzz/seeds \
    > "$out/clean.log" 2>&1 || { tail -n 40 "$out/clean.log"; exit 1; }
tail -n 1 "$out/clean.log"

echo "-- with a bug, libFuzzer"
if "$out/planted" -max_total_time=60 -max_len=512 -timeout=60 -seed=1 \
    -artifact_prefix="$out/planted-" "$out/planted-corpus" fuzz/seeds \
    > "$out/planted.log" 2>&1
then
    echo "the planted bug was not found"
    exit 1
fi
replay "$out"/planted-crash-*
echo "found: $(od -An -tx1 "$out"/planted-crash-* | tr -d '\n')"

echo "-- with a bug, AFL++"
AFL_NO_UI=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_SKIP_CPUFREQ=1 \
    AFL_NO_AFFINITY=1 AFL_BENCH_UNTIL_CRASH=1 afl-fuzz -V 60 -s 1 -t 10000 \
    -i fuzz/seeds -o "$out/afl" -- "$out/afl-planted" \
    > "$out/afl-fuzz.log" 2>&1 || true
set -- "$out"/afl/default/crashes/id*
[ -f "$1" ] || { tail -n 20 "$out/afl-fuzz.log"
    echo "the planted bug was not found"; exit 1; }
replay "$1"
echo "found: $(od -An -tx1 "$1" | tr -d '\n')"
