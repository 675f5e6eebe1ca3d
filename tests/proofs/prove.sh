#!/bin/sh
# SPDX-License-Identifier: 0BSD
# What is shown without running it, each then with faults planted.
#     prove.sh [PART...]
#         spin        a model of the protocol, in all of its states (spin.sh)
#         wp          Frama-C's WP proves what contracts.acsl asks of functions,
#                     and siphash.acsl, halfsiphash.acsl, fnv.acsl of each hash
#         file        its Eva finds no undefined behaviour in what file.c runs of
#                     the storage in a file
# SHORT=1 leaves out WP's longest proofs, and most of the faults.
set -eu

root=$PWD

fail() {
    cat "$out/log"
    echo "FAILED: prove: $*"
    exit 1
}

# long COMMAND...: what the short form leaves out
long() {
    [ "${SHORT:-}" = 1 ] || "$@"
}

# named LIST HEADER: the header as $out/named/idem.h, where functions call their
# own what the list calls it
named() {
    mkdir -p "$out/named"
    python3 tests/tools/locals.py "tests/proofs/$1" "$2" \
        > "$out/named/idem.h" || fail "$1 does not fit the header"
}

# planted LIST FUNCTION SCRIPT: the same with what sed does to one function
planted() {
    named "$1" idem.h
    mkdir -p "$out/planted"
    sed "/^[A-Za-z].*[ *]$2(/,/^}/{
        $3
        }" "$out/named/idem.h" > "$out/planted/idem.h"
    ! cmp -s "$out/named/idem.h" "$out/planted/idem.h" ||
        fail "$2: nothing is changed"
}

# wp CONTRACTS HASH DIRECTORY FLAGS...: all goals of what is listed; the last
# line has how many
wp() {
    contracts=tests/proofs/$1.acsl hash=$2
    named "$1.acsl" "$3/idem.h"
    shift 3
    awk -v hash="$hash" -f tests/proofs/extract.awk "$out/named/idem.h" \
        "$contracts" \
        > "$out/functions" || fail "the contracts do not fit the header"
    { echo '#include "idem.h"'
      grep -v '^ *IDEMI_UNROLL$' "$out/functions"
    } > "$out/wp.c"
    frama-c -machdep gcc_x86_64 \
        -cpp-extra-args="-I. -DIDEM_HASH=IDEM_HASH_$hash" -wp -wp-rte \
        -wp-model Typed+Cast -wp-prover cvc4 -wp-timeout 30 "$@" \
        "$out/wp.c" > "$out/log" 2>&1 || fail "Frama-C stopped"
    goals=$(sed -n 's/.*Proved goals: *//p' "$out/log")
    [ "${goals% / *}" = "${goals#* / }" ]
}

# proved CONTRACTS HASH FLAGS...
proved() {
    contracts=$1
    wp "$1" "$2" . ${3:-} || fail "$contracts: not everything is proved: $goals"
    echo "prove: WP and RTE: $1: $goals goals of" \
        "$(grep -c ^function "tests/proofs/$1.acsl") functions" ${4:-}
}

# unproved CONTRACTS HASH FUNCTION SCRIPT: it is not proved with that fault
unproved() {
    planted "$1.acsl" "$3" "$4"
    ! wp "$1" "$2" "$out/planted" -wp-fct "$3" -wp-timeout 10 ||
        fail "$3: proved with a fault"
    echo "prove: planted and not proved: $3: $goals"
}

# broken FUNCTION SCRIPT: the same, of contracts.acsl
broken() {
    unproved contracts SIPHASH "$@"
}

part_wp() {
    skipped=
    [ "${SHORT:-}" != 1 ] ||
        skipped=idemi_index_erase,idemi_index_insert,idemi_order_insert
    proved contracts SIPHASH "${skipped:+-wp-skip-fct $skipped}" \
        "${skipped:+but $skipped}"
    proved siphash SIPHASH
    proved halfsiphash HALFSIPHASH
    proved fnv FNV
    broken idemi_clock_reached 's/<= IDEMI_PAST_MS/<= 3 * IDEMI_PAST_MS/'
    broken idemi_pen_byte 's/p->at == p->end/p->at > p->end/'
    long unproved siphash SIPHASH idemi_hash_update 's/>= 8/>= 7/'
    long unproved halfsiphash HALFSIPHASH idemi_hash_final 's/(24 - /(40 - /'
    long broken idemi_pen_bytes 's/if (len > /if (len > 1 + /'
    long broken idemi_pen_number 's/shift < 35/shift < 42/'
    long broken idemi_pen_words 's/ < 4) {/ < 3) {/'
    long broken idemi_index_next 's/++at < /++at <= /'
    long broken idemi_index_find 's/slot == IDEMI_NONE ||/0 ||/'
    long broken idemi_index_insert 's/(slot + 1)/slot/'
    long broken idemi_index_erase 's/ gap = at;/ gap = at + 1;/'
    long broken idemi_order_remove 's/= link->newer/= link->newer + 1/'
    long broken idemi_order_free 's/= t->free;/= t->free + 1;/'
    long broken idemi_order_insert \
        's/(idem_number)newer;/(idem_number)(newer + 1);/'
}

# eva DIRECTORY: no alarm in what file.c runs of the header there, with the hints
# of file.txt in front of its lines
eva() {
    hints=tests/proofs/file.txt
    values=open_now,eva_slash,eva_size,eva_read,eva_whole,eva_left
    named file.txt "$1/idem.h"
    rm -rf "$out/hinted"
    mkdir "$out/hinted"
    awk -f tests/proofs/hint.awk "$hints" "$out/named/idem.h" \
        > "$out/hinted/idem.h" || fail "the hints do not fit the header"
    returns=$(sed -n 's/^returns //p' "$hints" | tr ' ' : | paste -s -d , -)
    (cd "$out/hinted" && frama-c -machdep gcc_x86_64 \
        -cpp-extra-args="-I. -I$root/tests/proofs -DIDEM_HASH=1" \
        -eva -main main -eva-split-return-function "$returns" \
        -eva-precision 1 -eva-slevel 0 -eva-ilevel 64 -eva-split-limit 300 \
        -eva-partition-value $values -eva-msg-key=-initial-state,-final-states \
        -metrics-eva-cover "$root/tests/proofs/file.c") > "$out/log" 2>&1 ||
        grep -q '^\[eva:alarm\]' "$out/log" || fail "Frama-C stopped"
    alarms=$(grep -c '^\[eva:alarm\]' "$out/log" || :)
    functions=$(sed -n 's/^ *\([0-9]*\) functions analyzed.*/\1/p' "$out/log")
    reached=$(sed -n 's/^ *In these .*: \([0-9]*\)% .*/\1/p' "$out/log")
    [ "$alarms" = 0 ]
}

# found WHAT FUNCTION SCRIPT: there are alarms with that fault
found() {
    planted file.txt "$2" "$3"
    ! eva "$out/planted" || fail "Eva: no alarm with a fault: $1"
    echo "prove: planted and found: $1: $alarms alarms"
}

# No alarm, and so many functions are run; what stops early has no alarms either.
part_file() {
    eva . || fail "Eva: $alarms alarms"
    [ "${functions:-0}" -ge 30 ] && [ "${reached:-0}" -ge 90 ] ||
        fail "Eva: $functions functions, $reached% of their statements"
    echo "prove: Eva: storage in a file, on any system: 0 alarms," \
        "$functions functions, $reached% of their statements"
    long found "a path longer than there is room for" idemi_file_sync_name \
        's/len > sizeof folder - sizeof "."/len > sizeof folder/'
    found "a file that stays open" idem_file_open 's/(void)close(.*/;/'
}

part_spin() {
    sh tests/proofs/spin.sh
}

why3 config detect > /dev/null 2>&1
for part in ${*:-spin wp file}; do
    out=$root/build/prove/$part
    rm -rf "$out"
    mkdir -p "$out"
    "part_$part"
done
