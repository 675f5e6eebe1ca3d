#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Builds the unit tests that are named, or all, and runs them: `unit.sh table`.
#
# Every tests/unit/*.c is a program of its own, a main that runs cmocka's tests,
# and is picked up by being there.  It is linked with the header, which idem.c
# compiles once for all; but one that implements the header itself, to replace
# what that calls, gets its own.
#
# SEED and CALLS: of the model, which prints them when it fails.
# A program run by hand, build/unit/table, prints more about what fails.
set -eu

: "${CC:=cc}" "${CFLAGS:=-std=c99 -O0 -g}" "${B:=build}"
unit=$B/unit
export CC CFLAGS B unit
[ -z "${SEED:-}" ] || export IDEM_SEED="$SEED"
[ -z "${CALLS:-}" ] || export IDEM_CALLS="$CALLS"
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)

# These run so long that optimizing them, and the header for them, pays.
long=" burst config journal journal_damage journal_failing journal_opening"
long="$long journal_rotation journal_senders lives model numbers port_esp_idf"
long="$long port_esp_idf_esp32 port_nrf_nvmc port_stm32_g0 port_stm32_g4"
long="$long port_stm32_g4_one_bank port_stm32_l4 port_stm32_u5 port_stm32_wb"
long="$long idem_long "

# compiled NAME SOURCE: the object file of this name
compiled() {
    more=
    case $CFLAGS in
    *-O0*) case $long in *" $1 "*) more=-Og ;; *) ;; esac ;;
    *) ;;
    esac
    sh tests/tools/build.sh "$unit/$1.o" $CC $CFLAGS $more \
        -I"$unit/include" -I. -Itests \
        -Itests/targets/vendor -Itests/targets/vendor_avr \
        -c "tests/unit/$2.c" \
        -o "$unit/$1.o"
}

# The header's declarations alone: an edit in the implementation compiles only
# the tests that implement the header again.
declarations() {
    mkdir -p "$unit/include"
    {
        sed '/^#if defined(IDEM_IMPLEMENTATION)/,$d' idem.h
        echo '#ifdef IDEM_IMPLEMENTATION'
        echo "#include \"$PWD/idem.h\""
        echo '#endif'
    } > "$unit/include/$$"
    mv "$unit/include/$$" "$unit/include/idem.h"
}

compile() { compiled "$1" "${1%_long}"; }

# A test that implements the header itself takes nothing from the archive.
link() {
    header=$unit/idem
    case $long in *" $1 "*) header=${header}_long ;; *) ;; esac
    sh tests/tools/build.sh "$unit/$1" $CC $CFLAGS "$unit/$1.o" "$header.a" \
        -o "$unit/$1" -lcmocka -lpthread
}

archive() {
    [ -e "$unit/$1.o" ] ||
        { echo "FAILED: the header does not compile"; exit 1; }
    sh tests/tools/build.sh "$unit/$1.a" ar rc "$unit/$1.a" "$unit/$1.o"
}

# Leaves what a program printed in $unit/NAME.tap, as TAP; one that dies has failed
# once more.
run() {
    [ -e "$unit/$1.o" ] && link "$1" || return 0
    CMOCKA_MESSAGE_OUTPUT=tap ${RUNNER-} "$unit/$1" >"$unit/$1.tap" 2>&1 ||
        grep -q '^not ok ' "$unit/$1.tap" ||
        echo "not ok - $1 died" >>"$unit/$1.tap"
}

[ "${declared-}" = 1 ] || declarations
export declared=1
if [ "${1-}" = --do ]; then
    [ -z "${3-}" ] || $2 "$3"
    exit
fi

names() { for f in tests/unit/*.c; do basename "$f" .c; done; }
each() { xargs -n 1 -P "$jobs" sh "$0" --do "$1"; }

rm -f "$unit"/*.tap
c=${*:-$(names | grep -vx idem)}
headers=idem
for name in $c; do
    [ -e "tests/unit/$name.c" ] || { echo "no tests/unit/$name.c"; exit 2; }
    case $long in *" $name "*) headers="idem idem_long"; break ;; *) ;; esac
done
echo $headers $c | each compile || :
for header in $headers; do archive $header; done
echo $c | each run

for name in $c; do
    [ -e "$unit/$name.tap" ] || echo "not ok - $name does not compile" \
        >"$unit/$name.tap"
    printf '%-20s%5d\n' "$name" "$(grep -c '^ok ' "$unit/$name.tap" || :)"
    grep -q '^not ok ' "$unit/$name.tap" || continue
    grep -v '^ok \|^1\.\.\|^# not ok' "$unit/$name.tap"
    [ ! -e "$unit/$name.o" ] || echo "again: TRACE=1 $unit/$name"
done
cat "$unit"/*.tap | awk '
    /^ok /                              { passed++ }
    /^not ok / && !/# SKIP/             { failed++ }
    END { printf "%d passed, %d failed\n", passed, failed; exit failed > 0 }'
