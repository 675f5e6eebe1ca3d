#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Power cuts and extreme configurations of the storage.
#     storage.sh [PART...]
#         cuts        power cut at every operation, torn in every way (crash.c)
#         pairs       two cuts on media with sectors of 64 KB, with erases that
#                     are polled, and whose next two sectors fail
#         extremes    the smallest and the largest configurations
#         erases      no call erases more than it may, on random rings
# SHORT=1 takes fewer.  IDEM_STATES: samples that many states, three cuts deep;
# IDEM_SEEDS: that many seeds, rings, from FIRST on.
set -eu

B=${B:-build}
here=tests/storage
mkdir -p "$B"

# either LONG SHORT: the one that is asked for
either() {
    if [ "${SHORT:-}" = 1 ]; then echo "$2"; else echo "$1"; fi
}

# build SOURCE PROGRAM FLAG...
build() {
    source=$here/$1.c program=$B/$2
    shift 2
    ${CC:-cc} -std=c99 -Wall -Wextra -Wpedantic -Wshadow -Werror \
        -Wno-unused-function -I. -Itests "$@" "$source" -o "$program"
}

# With a wide index and with a narrow one, which does not depend on the medium.
part_cuts() {
    extent=$(either "" --short)
    [ -z "${IDEM_STATES:-}" ] || extent="--states $IDEM_STATES"
    build crash crash -O3
    build crash crash_narrow -O3 -DIDEM_WIDE=0
    "$B/crash" $extent
    if [ "${SHORT:-}" != 1 ]; then
        "$B/crash_narrow" $extent
    else
        "$B/crash_narrow" $extent --geometry nor8
        "$B/crash_narrow" $extent --geometry eeprom
    fi
}

part_pairs() {
    build crash crash -O3
    for geometry in split failing $(either vast ""); do
        "$B/crash" --depth 2 --states "${IDEM_STATES:-$(either 300000 1)}" \
            --geometry "$geometry"
    done
    [ "${SHORT:-}" != 1 ] || echo "skipped: sectors of 64 KB"
}

# With a wide index and with a narrow one, each with seeds of its own.
part_extremes() {
    first=${FIRST:-$(either 1 16)}      # from here on there are cuts and failures
    count=${IDEM_SEEDS:-$(either 250 4)}
    build extremes extremes -O1 -DIDEM_WIDE=1
    "$B/extremes" profiles "$first" "$count"
    build extremes extremes -O1 -DIDEM_WIDE=0
    "$B/extremes" profiles $((first + count)) "$count"
}

part_erases() {
    build extremes erases -O2
    "$B/erases" rings "${FIRST:-1}" "${IDEM_SEEDS:-$(either 30000 1500)}"
}

for part in ${*:-cuts pairs extremes erases}; do
    echo "-- $part"
    part_$part
done
