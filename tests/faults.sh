# SPDX-License-Identifier: 0BSD
# What plants faults in copies of idem.h, one in each, and demands that a test
# finds every one; for the scripts that say which faults and which test.  They
# are run with the name of one fault, or none for all; SHORT=1 takes those in
# $few, which is set before.  Needs explore(), which runs the test with the
# header in $out (2: it does not compile), and $told, with which a line of its
# log begins that says what was found.

out=build/faults
only=${1:-}
[ -n "$only" ] || [ "${SHORT:-}" != 1 ] || only=$few
journal=
count=0
found=0
failed=0
rm -rf "$out"
mkdir -p "$out"

fail() {
    echo "FAILED: $1: $2"
    failed=$((failed + 1))
}

# sound: without a fault nothing is found
sound() {
    cp idem.h "$out/idem.h"
    explore && return
    cat "$out/log"
    echo "FAILED: already without a fault"
    exit 1
}

# fault NAME FUNCTION SCRIPT: a fault is what sed does to one function; it must
# change something
fault() {
    case " $only " in
    "  " | *" $1 "*) ;;
    *) return 0 ;;
    esac
    count=$((count + 1))
    sed "/^static.*[ *]$2(/,/^}/{
        $3
        }" idem.h > "$out/idem.h"
    status=0
    if cmp -s idem.h "$out/idem.h"; then
        fail "$1" "nothing is changed by it"
        return
    fi
    explore || status=$?
    case $status in
    0) fail "$1" "not found" ;;
    2) fail "$1" "does not compile" ;;
    *) sed -n "s/^$told/$1: /p" "$out/log" | head -n 1
       found=$((found + 1)) ;;
    esac
}

# counted: the last line, and whether all were found
counted() {
    echo "faults: $found found, $failed not"
    [ -z "$only" ] || [ "$count" = "$(echo "$only" | wc -w)" ] ||
        fail "$only" "no such fault"
    [ "$failed" = 0 ]
}
