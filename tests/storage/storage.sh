#!/bin/sh
# SPDX-License-Identifier: 0BSD
# What the storage must do and what is done to it, power cuts apart (crash.sh).
#     storage.sh [PART...]
#         failures    every callback fails at every call
#         extremes    the smallest and the largest configurations
#         erases      no call erases more than it may, on random rings
# SHORT=1 takes fewer.  IDEM_ONE_IN: each so many-th failure; IDEM_SEEDS: so many
# configurations, rings.
set -eu

B=${B:-build}
here=tests/storage
mkdir -p "$B"

# either LONG SHORT: the one that is asked for
either() {
    if [ "${SHORT:-}" = 1 ]; then echo "$2"; else echo "$1"; fi
}

build() {
    name=$1
    shift
    ${CC:-cc} -std=c99 -Wall -Wextra -Wpedantic -Wshadow -Werror \
        -Wno-unused-function -I. -Itests -I$here "$@" $here/"$name".c \
        -o "$B/$name"
}

part_failures() {
    build failures -O2
    "$B/failures" "${IDEM_ONE_IN:-$(either 29 997)}"
}

# With a wide index and with a narrow one, each with seeds of its own.
part_extremes() {
    first=$(either 1 16)        # from here on there are cuts and failures
    count=${IDEM_SEEDS:-$(either 250 4)}
    build extremes -O1 -DIDEM_WIDE=1
    "$B/extremes" "$first" "$count"
    build extremes -O1 -DIDEM_WIDE=0
    "$B/extremes" $((first + count)) "$count"
}

part_erases() {
    build erases -O2
    "$B/erases" 1 "${IDEM_SEEDS:-$(either 30000 1500)}"
}

for part in ${*:-failures extremes erases}; do
    echo "-- $part"
    part_$part
done
