#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Runs chosen.c with each hash; the one without a secret has to be slow.
set -eu

B=${B:-build}
mkdir -p "$B"
for hash in SIPHASH HALFSIPHASH FNV; do
    keys=20000
    [ $hash != FNV ] || keys=3000
    ${CC:-cc} -std=c99 -O2 -Wall -Wextra -Wpedantic -Werror \
        -DIDEM_HASH=IDEM_HASH_$hash -I. tests/check/chosen.c -o "$B/chosen"
    "$B/chosen" $keys
done
