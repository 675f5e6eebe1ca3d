#!/bin/sh
# SPDX-License-Identifier: 0BSD
# What is shown without running it, each then with faults planted.
#     prove.sh [PART...]
#         spin        a model of the protocol, in all of its states (spin.sh)
#         wp          Frama-C's WP proves what contracts.acsl asks of functions
#         hashes      its Eva finds no undefined behaviour in what hashes.c runs
#         file        likewise file.c: the storage in a file
# SHORT=1 leaves out WP's longest proofs, the longer of Eva's parts, and most of
# the faults.
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

# planted FUNCTION SCRIPT: the header with what sed does to one function
planted() {
    mkdir -p "$out/planted"
    sed "/^[A-Za-z].*[ *]$1(/,/^}/{
        $2
        }" idem.h > "$out/planted/idem.h"
    ! cmp -s idem.h "$out/planted/idem.h" || fail "$1: nothing is changed"
}

# wp DIRECTORY FLAGS...: all goals of what is listed; the last line has how many
wp() {
    header=$1/idem.h
    shift
    { echo '#include "idem.h"'
      awk -f tests/proofs/extract.awk "$header" tests/proofs/contracts.acsl |
          grep -v '^ *IDEMI_UNROLL$'
    } > "$out/wp.c" || fail "the contracts do not fit the header"
    frama-c -machdep gcc_x86_64 -cpp-extra-args=-I. -wp -wp-rte \
        -wp-model Typed+Cast -wp-prover cvc4 -wp-timeout 30 "$@" \
        "$out/wp.c" > "$out/log" 2>&1 || fail "Frama-C stopped"
    goals=$(sed -n 's/.*Proved goals: *//p' "$out/log")
    [ "${goals% / *}" = "${goals#* / }" ]
}

# unproved FUNCTION SCRIPT: it is not proved with that fault
unproved() {
    planted "$@"
    ! wp "$out/planted" -wp-fct "$1" -wp-timeout 10 ||
        fail "$1: proved with a fault"
    echo "prove: planted and not proved: $1: $goals"
}

part_wp() {
    skipped=
    [ "${SHORT:-}" != 1 ] ||
        skipped=idemi_index_erase,idemi_index_insert,idemi_order_insert
    wp . ${skipped:+-wp-skip-fct $skipped} ||
        fail "not everything is proved: $goals"
    echo "prove: WP and RTE: $goals goals of" \
        "$(grep -c ^function tests/proofs/contracts.acsl) functions" \
        ${skipped:+but $skipped}
    unproved idemi_clock_reached 's/<= IDEMI_PAST_MS/<= 3 * IDEMI_PAST_MS/'
    unproved idemi_pen_byte 's/p->at == p->end/p->at > p->end/'
    long unproved idemi_pen_bytes 's/if (len > /if (len > 1 + /'
    long unproved idemi_pen_number 's/shift < 35/shift < 42/'
    long unproved idemi_index_next 's/++at < /++at <= /'
    long unproved idemi_index_find 's/slot == IDEMI_NONE ||/0 ||/'
    long unproved idemi_index_insert 's/(slot + 1)/slot/'
    long unproved idemi_index_erase 's/ gap = at;/ gap = at + 1;/'
    long unproved idemi_order_remove 's/= link->newer/= link->newer + 1/'
    long unproved idemi_order_free 's/= t->free;/= t->free + 1;/'
    long unproved idemi_order_take 's/links\[slot\].newer/links[slot].older/'
    long unproved idemi_order_insert \
        's/(idem_number)newer;/(idem_number)(newer + 1);/'
}

# eva DRIVER DIRECTORY HINTS FLAGS...: no alarm in what a driver runs of the
# header there, with hints in front of its lines
eva() {
    driver=$1 header=$2/idem.h hints=$3
    shift 3
    rm -rf "$out/hinted"
    mkdir "$out/hinted"
    awk -f tests/proofs/hint.awk "tests/proofs/$hints" "$header" \
        > "$out/hinted/idem.h" || fail "the hints do not fit the header"
    returns=$(sed -n 's/^returns //p' "tests/proofs/$hints" | tr ' ' : |
        paste -s -d , -)
    (cd "$out/hinted" && frama-c -machdep gcc_x86_64 \
        -cpp-extra-args="-I. -I$root/tests/proofs" \
        -eva -main main ${returns:+-eva-split-return-function "$returns"} \
        -eva-msg-key=-initial-state,-final-states -metrics-eva-cover "$@" \
        "$root/tests/proofs/$driver") > "$out/log" 2>&1 ||
        grep -q '^\[eva:alarm\]' "$out/log" || fail "Frama-C stopped"
    alarms=$(grep -c '^\[eva:alarm\]' "$out/log" || :)
    functions=$(sed -n 's/^ *\([0-9]*\) functions analyzed.*/\1/p' "$out/log")
    reached=$(sed -n 's/^ *In these .*: \([0-9]*\)% .*/\1/p' "$out/log")
    [ "$alarms" = 0 ]
}

# shown WHAT FUNCTIONS PERCENT RUN...: no alarm, and so many functions are run;
# what stops early has no alarms either
shown() {
    what=$1 least=$2 percent=$3
    shift 3
    "$@" . || fail "Eva: $what: $alarms alarms"
    [ "${functions:-0}" -ge "$least" ] && [ "${reached:-0}" -ge "$percent" ] ||
        fail "Eva: $what: $functions functions, $reached% of their statements"
    echo "prove: Eva: $what: 0 alarms, $functions functions," \
        "$reached% of their statements"
}

# found WHAT FUNCTION SCRIPT RUN...: there are alarms with that fault
found() {
    what=$1
    planted "$2" "$3"
    shift 3
    ! "$@" "$out/planted" || fail "Eva: no alarm with a fault: $what"
    echo "prove: planted and found: $what: $alarms alarms"
}

hashes() {
    eva hashes.c "$1" hashes.txt -eva-precision 3 -eva-slevel 100
}

part_hashes() {
    long shown "hashes of any bytes, 180 lengths" 10 80 hashes
}

stored() {
    eva file.c "$1" file.txt -eva-precision 1 -eva-slevel 0 \
        -eva-ilevel 64 -eva-split-limit 300 -eva-partition-value \
        open_now,eva_path_len,eva_slashes,eva_whole,eva_left
}

part_file() {
    shown "storage in a file, on any system" 30 90 stored
    long found "a path longer than there is room for" idem_file_open \
        's/sizeof unborn - sizeof suffix/sizeof unborn/' stored
    found "a file that stays open" idemi_file_take 's/(void)close(.*/;/' stored
}

part_spin() {
    sh tests/proofs/spin.sh
}

why3 config detect > /dev/null 2>&1
for part in ${*:-spin wp hashes file}; do
    out=$root/build/prove/$part
    rm -rf "$out"
    mkdir -p "$out"
    "part_$part"
done
