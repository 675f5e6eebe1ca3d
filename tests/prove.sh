#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Frama-C on idem.h: WP proves the functions that tests/prove/contracts.acsl
# lists, all of their goals; Eva looks for undefined behaviour in what
# tests/prove/eva.c and tests/prove/calls.c run, and finds none.  Then with
# faults planted.  SHORT=1 leaves out the longer of Eva's parts, and faults.
set -eu

root=$PWD
out=$root/build/prove
rm -rf "$out"
mkdir -p "$out"
why3 config detect > "$out/log" 2>&1

fail() {
    cat "$out/log"
    echo "FAILED: prove: $*"
    exit 1
}

# wp HEADER FLAGS...: all goals of what is listed; the last line has how many
wp() {
    header=$1
    shift
    { echo '#include "idem.h"'
      awk -f tests/prove/extract.awk "$header" tests/prove/contracts.acsl |
          grep -v '^ *IDEMI_UNROLL$'
    } > "$out/wp.c" || fail "the contracts do not fit the header"
    frama-c -machdep gcc_x86_64 -cpp-extra-args=-I. -wp -wp-rte \
        -wp-model Typed+Cast -wp-prover cvc4 -wp-timeout 30 "$@" \
        "$out/wp.c" > "$out/log" 2>&1 || fail "Frama-C stopped"
    goals=$(sed -n 's/.*Proved goals: *//p' "$out/log")
    [ "${goals% / *}" = "${goals#* / }" ]
}

wp idem.h || fail "not everything is proved: $goals"
echo "prove: WP and RTE: $goals goals of" \
    "$(grep -c ^function tests/prove/contracts.acsl) functions"

# plant FUNCTION SCRIPT: sed's script on a function, which is not proved then
plant() {
    sed "/^[A-Za-z].*[ *]$1(/,/^}/{
        $2
        }" idem.h > "$out/planted.h"
    ! cmp -s idem.h "$out/planted.h" || fail "$1: nothing is changed by it"
    ! wp "$out/planted.h" -wp-fct "$1" -wp-timeout 10 ||
        fail "$1: proved with a fault"
    echo "prove: planted and not proved: $1: $goals"
}
plant idemi_clock_reached 's/<= IDEMI_PAST_MS/<= 3 * IDEMI_PAST_MS/'
if [ "${SHORT:-}" != 1 ]; then
    plant idemi_index_next 's/++at < /++at <= /'
    plant idemi_index_find 's/slot == IDEMI_NONE ||/0 ||/'
    plant idemi_index_insert 's/(slot + 1)/slot/'
    plant idemi_index_erase 's/ gap = at;/ gap = at + 1;/'
    plant idemi_order_append 's/(idem_number)ends;/(idem_number)(ends + 1);/'
    plant idemi_order_remove 's/= link->newer/= link->newer + 1/'
    plant idemi_order_free 's/= t->free;/= t->free + 1;/'
    plant idemi_order_take 's/links\[slot\].newer/links[slot].older/'
    plant idemi_order_insert 's/(idem_number)newer;/(idem_number)(newer + 1);/'
    plant idemi_crc_update 's/len >= 8; len -= 8/len >= 7; len -= 8/'
    plant idemi_record_bytes 's/p + len/p + len + 1/'
    plant idemi_record_claim 's/id_len > t->/id_len > 1u + t->/'
    plant idemi_record_take 's/if (len > /if (len > 1 + /'
fi

# eva DIRECTORY FLAGS...: no alarm in what the driver runs of the header there
eva() {
    directory=$1
    shift
    (cd "$directory" && frama-c -machdep gcc_x86_64 \
        -cpp-extra-args="-I. $*" -eva -eva-precision 3 -eva-slevel 100 \
        -eva-msg-key=-initial-state,-final-states -main main \
        "$root/tests/prove/eva.c") > "$out/log" 2>&1 || fail "Frama-C stopped"
    alarms=$(grep -c '^\[eva:alarm\]' "$out/log" || :)
    [ "$alarms" = 0 ]
}
eva . "" || fail "Eva: headers: $alarms alarms"
echo "prove: Eva: headers of any bytes: 0 alarms"
if [ "${SHORT:-}" != 1 ]; then
    eva . -DEVA_HASH || fail "Eva: hashes: $alarms alarms"
    echo "prove: Eva: hashes and CRC of any bytes, 180 lengths: 0 alarms"
fi

# calls HEADER: any calls on a table without storage.  Of a function that WP has
# proved Eva takes the contract instead of the code
calls() {
    rm -rf "$out/calls"
    mkdir "$out/calls"
    cp "$1" "$out/calls/idem.h"
    awk -v only=idem_siphash_update -f tests/prove/extract.awk "$1" \
        tests/prove/contracts.acsl > "$out/calls/specs.h" ||
        fail "the contracts do not fit the header"
    returns=$(sed -n 's/^returns //p' tests/prove/hints.txt | tr ' ' : |
        paste -s -d , -)
    (cd "$out/calls" && frama-c -machdep gcc_x86_64 -cpp-extra-args=-I. \
        -eva -eva-precision 1 -eva-slevel 20 -main main \
        -eva-split-return-function "$returns" \
        -eva-use-spec idem_siphash_update \
        -eva-msg-key=-initial-state,-final-states \
        "$root/tests/prove/calls.c") > "$out/log" 2>&1 || fail "Frama-C stopped"
    alarms=$(grep -c '^\[eva:alarm\]' "$out/log" || :)
    functions=$(sed -n 's/^ *\([0-9]*\) functions analyzed.*/\1/p' "$out/log")
    reached=$(sed -n 's/^ *In these .*: \([0-9]*\)% .*/\1/p' "$out/log")
    [ "$alarms" = 0 ]
}

if [ "${SHORT:-}" != 1 ]; then
    calls idem.h || fail "Eva: calls: $alarms alarms"
    # What stops early has no alarms either.
    [ "${functions:-0}" -ge 150 ] && [ "${reached:-0}" -ge 89 ] ||
        fail "Eva: calls: $functions functions, $reached% of their statements"
    echo "prove: Eva: any calls, without storage: 0 alarms," \
        "$functions functions, $reached% of their statements"
    sed '/idemi_index_next(/,/^}/s/++at < /++at <= /' idem.h \
        > "$out/planted.h"
    ! cmp -s idem.h "$out/planted.h" || fail "Eva: nothing is changed"
    ! calls "$out/planted.h" || fail "Eva: no alarm with a fault"
    echo "prove: planted and found: past the index's end: $alarms alarms"
fi

mkdir "$out/planted"
sed '/idemi_recover_mend(/,/^}/s/bit < 8 \*/bit < 80 */' idem.h \
    > "$out/planted/idem.h"
! cmp -s idem.h "$out/planted/idem.h" || fail "Eva: nothing is changed"
! eva "$out/planted" "" || fail "Eva: no alarm with a fault"
echo "prove: planted and found: a header read past its end: $alarms alarms"
