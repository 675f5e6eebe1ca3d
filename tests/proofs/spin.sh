#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Checks the model of the protocol exhaustively (protocol.pml), and
# that each variant which breaks a rule is found out.  SHORT=1 makes one call
# of idem_begin less, and takes three of the variants.
set -eu

out=build/prove/spin
model=$PWD/tests/proofs/protocol.pml
calls=${BEGINS:-3}
[ "${SHORT:-}" != 1 ] || calls=2
rm -rf "$out"
mkdir -p "$out"
cd "$out"

# explore FLAGS...: all states, in ./log
explore() {
    spin -a "$@" "$model" > log 2>&1
    ${CC:-cc} -O1 -DSAFETY -DCOLLAPSE -w -o pan pan.c
    ./pan -m1000000 > log 2>&1
    if grep -q 'search depth too small\|out of memory' log; then
        cat log
        echo "FAILED: spin: not all states were visited"
        exit 1
    fi
    grep -q 'errors: 0' log
}

states() {
    sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' log
}

explore -DCUTS=2 -DBEGINS=$calls || {
    cat log
    echo "FAILED: spin: a promise is broken"
    exit 1
}
echo "spin: 2 workers, 2 keys, $calls calls of begin, 2 cuts:" \
    "$(states) states, 0 errors"
variants="FENCE CLAIM REPLY SEAL CARRY CONFIRM RELY BEHIND"
[ "${SHORT:-}" != 1 ] || variants="FENCE CLAIM SEAL RELY"
for broken in $variants; do
    if explore -DCUTS=2 -DBEGINS=3 -DBROKEN_$broken; then
        echo "FAILED: spin: BROKEN_$broken is not found out"
        exit 1
    fi
    echo "spin: BROKEN_$broken: $(sed -n 's/^pan:[0-9]*: *//p' log | head -n 1)"
done
