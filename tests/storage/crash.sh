#!/bin/sh
# SPDX-License-Identifier: 0BSD
# The power-cut explorer (crash.c), with a wide index and with a narrow one.
#     SHORT=1 crash.sh                seconds
#     IDEM_STATES=5000000 crash.sh    samples so many states, three cuts deep
set -eu

B=${B:-build}
[ "${FAULTS:-}" != 1 ] || exec python3 tests/mutate/faults.py
extent=
[ "${SHORT:-}" != 1 ] || extent=--short
[ -z "${IDEM_STATES:-}" ] || extent="--states $IDEM_STATES"
"$B/crash" $extent
if [ "${SHORT:-}" != 1 ]; then
    "$B/crash_narrow" $extent
else                            # an index does not depend on the medium
    "$B/crash_narrow" $extent --geometry nor8
    "$B/crash_narrow" $extent --geometry eeprom
fi
