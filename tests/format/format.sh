#!/bin/sh
# SPDX-License-Identifier: 0BSD
# A reader that was written from the manual alone (reader.py) finds the same in
# journals as idem.h, with each hash; and a big-endian machine writes the same
# bytes as this one.  SEEDS: how many journals of each hash.
set -eu
cd "$(dirname "$0")/../.."

out=build/format
mkdir -p "$out"
seeds=3000
[ "${SHORT:-}" != 1 ] || seeds=300
seeds=${SEEDS:-$seeds}

# build NAME HASH COMPILER...
build() {
    name=$1 hash=$2
    shift 2
    "$@" -std=c99 -O1 -I. -Itests -DIDEM_HASH="$hash" tests/format/history.c \
        -o "$out/$name"
}

failed=0
for hash in 1 2 3; do
    build history $hash ${CC:-cc} ${CFLAGS:-}
    "$out/history" $((hash * 1000000)) "$seeds" > "$out/journals"
    python3 tests/format/reader.py < "$out/journals" || failed=1
    command -v s390x-linux-gnu-gcc > /dev/null || continue
    command -v qemu-s390x > /dev/null || continue
    build history_big $hash s390x-linux-gnu-gcc -static
    qemu-s390x "$out/history_big" $((hash * 1000000)) 50 > "$out/journals_big"
    head -n 50 "$out/journals" | cmp - "$out/journals_big" ||
        { echo "FAILED: hash $hash: other bytes on a big-endian machine"
          failed=1; }
done
exit $failed
