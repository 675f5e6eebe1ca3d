#!/bin/sh
# SPDX-License-Identifier: 0BSD
# The tests in every configuration, and checks that do not run the header.
#     check.sh [PART...]
#         compile     without a warning in each language, compiler and option
#         tests       in each option, word size, byte order, sanitizer
#         builds      two builds give the same bytes; no stale object is used;
#                     lives are the same with IDEM_CONFIG and without
#         lint        static analysis, MISRA, complexity, stack, spelling
#         attack      crafted keys cost no more, times show no secret
# SHORT=1 leaves out configurations that differ little from others.
set -eu

short=${SHORT:-}
cc=${CC:-cc}
build=${B:-build}
passed=0
failed=0

# run NAME COMMAND...: one check; those that fail are shown, and the rest goes on
run() {
    what=$1
    shift
    if "$@" > "$out/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what: $1"
        grep -E 'error|warning|[Ff]ail|not ok|died|violation|reports' \
            "$out/log" | head -n 3
    fi
}

not() {
    ! "$@"
}

gcc_warn="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wcast-align=strict
    -Wcast-qual -Wundef -Wwrite-strings -Wstrict-overflow=2 -Werror"
c_warn="-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition
    -Wc++-compat"
# Of -Weverything, less:
#   padded                   structs are laid out for size and reading
#   unsafe-buffer-usage      pointers with lengths are what C has
#   declaration-after-...    a warning for C90
#   c++98-compat             C++11 is the oldest supported
#   old-style-cast           one source for C and C++
#   zero-as-null-pointer...  the same: NULL is C's
clang_warn="-Weverything -Werror -Wno-padded -Wno-unsafe-buffer-usage
    -Wno-declaration-after-statement -Wno-c++98-compat
    -Wno-c++98-compat-pedantic -Wno-old-style-cast
    -Wno-zero-as-null-pointer-constant"

gcc_c="gcc $gcc_warn $c_warn"
clang_c="clang-19 $clang_warn"
source=tests/check/compile

# compile STD FLAGS... SOURCE: with both compilers of its language
compile() {
    std=$1
    shift
    case $std in
    c++*) compilers="g++ $gcc_warn:clang++-19 $clang_warn" ;;
    *)    compilers="$gcc_c:$clang_c" ;;
    esac
    for compiler in "${compilers%%:*}" "${compilers#*:}"; do
        run "$std $*" $compiler -std=$std -I. -c "$@" -o "$out/o"
    done
}

options="-Os
-DIDEM_WIDE=0
-DIDEM_WIDE=1
-DIDEM_HASH=IDEM_HASH_HALFSIPHASH
-DIDEM_HASH=IDEM_HASH_FNV
-DIDEM_FILE_STORAGE -D_POSIX_C_SOURCE=200809L
-m32 -idirafter /usr/include/$(gcc -print-multiarch)"
more_options="-O2
-O3
-DIDEM_DEBUG
-DIDEM_STATIC
-DIDEM_API=extern
-fshort-enums
-funsigned-char
-ffreestanding"

# each_option STD SOURCE: compiles with none, then with each
each_option() {
    compile $1 -O0 $2
    echo "$options" > "$out/options"
    while read -r option; do
        compile $1 $option $2
    done < "$out/options"
}

# Every language and option, with both compilers
languages() {
    [ "$short" = 1 ] || options="$options
$more_options"
    each_option c99 $source/c.c
    if [ "$short" = 1 ]; then
        compile c++11 -O0 $source/cpp.cpp
        compile c99 -O0 $source/own_memory.c
    else
        each_option c99 $source/own_memory.c
        for std in c11 c17; do each_option $std $source/c.c; done
        for std in c++11 c++17; do each_option $std $source/cpp.cpp; done
    fi
    # F_GETFL stands in for what only macOS has, and succeeds.
    run "file storage for macOS" gcc -std=c99 -Wall -Wextra -Werror \
        -D__APPLE__ -DF_FULLFSYNC=F_GETFL -I. examples/file.c -o "$out/mac"
    run "file storage for macOS runs" "$out/mac" "$out/journal" 42 pour
    run windows $gcc_c -std=c99 -I. -c $source/windows.c -o "$out/o"
    run "callbacks' names as macros" $gcc_c -std=c99 -I. \
        -c $source/callbacks.c -o "$out/o"
    run "callbacks' names as macros, C++" g++ $gcc_warn -std=c++11 -x c++ -I. \
        -c $source/callbacks.c -o "$out/o"
    run tcc tcc -std=c99 -Wall -Werror -I. -c $source/c.c -o "$out/o"
}

# program NAME COMMAND...: builds it, and it runs
program() {
    name=$1
    shift
    run "$name" "$@" -I. -o "$out/program"
    run "$name runs" "$out/program"
}

# refused IMPLEMENTED USED COMPILER...: of two files, each with a flag of its own,
# one may not open the table of the other.
refused() {
    implemented=$1
    used=$2
    shift 2
    "$@" $implemented -I. -c $source/public.c -o "$out/a.o" &&
        "$@" $used -I. -c $source/mixed.c -o "$out/b.o" || return
    gcc "$out/a.o" "$out/b.o" -o "$out/mixed" || return
    status=0
    "$out/mixed" || status=$?
    [ "$status" = 1 ]
}

# C++; two files with one implementation, two of which one has its own; two
# that are compiled with different options
links() {
    program cpp g++ -std=c++11 $source/cpp.cpp
    for flag in -O0 -DIDEM_WIDE=0; do
        program "two, $flag" $gcc_c -std=c99 $flag $source/public.c \
            $source/mixed.c
    done
    for flag in -DIDEM_WIDE=0 -DIDEM_HASH=IDEM_HASH_FNV; do
        run "mixed, $flag there" refused "$flag" -O0 gcc
        run "mixed, $flag here" refused -O0 "$flag" gcc
        run "mixed, $flag, C++" refused -O0 "$flag" g++ -x c++
    done
    program private $gcc_c -std=c99 $source/private.c $source/public.c
    run "too small sectors" small_sectors
}

# A user's file in C++, with the warnings that C++ projects have on; and a class
# with a table in it, which is not moved in silence.
cplusplus() {
    warn="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow
        -Wold-style-cast -Werror"
    for std in c++11 c++14 c++17 c++20; do
        for compiler in "g++ -Wuseless-cast" clang++-19; do
            run "a user's $std" $compiler -std=$std $warn -I. \
                -c $source/user.cpp -o "$out/o"
            run "a table is moved, $std" moved $compiler -std=$std
        done
    done
}

# moved COMPILER...: refuses, and prints why
moved() {
    ! "$@" -DMOVED -I. -c $source/user.cpp -o "$out/o" 2> "$out/moved" &&
        grep -q 'deleted' "$out/moved" && grep -q idem_table "$out/moved"
}

# in_sectors SIZE COMPILER...: compiles IDEM_DEFINE_JOURNAL_MEMORY of such sectors
in_sectors() {
    size=$1
    shift
    printf '%s\n' '#include "idem.h"' \
        "IDEM_DEFINE_JOURNAL_MEMORY(it, 64, 24, 16, 0, 0, $size, 8);" |
        "$@" -I. -fsyntax-only -x c -
}

# too_small SIZE: it does not compile
too_small() {
    in_sectors "$1" gcc -std=c99 2>"$out/too_small" && return 1
    grep -q it_sectors_too_small "$out/too_small"
}
small_sectors() {
    too_small 256 && ! too_small 512
}

# True if an object asks for no more than three functions of a C library, and
# what the compiler brings.
freestanding() {
    ! arm-none-eabi-nm -u "$1" | grep -Ev \
        ' (memcpy|memset|memcmp|__aeabi_.*|__gnu_.*|protocol_.*)$'
}

# Cortex-M0, AVR, STM8, big-endian
machines() {
    arm="arm-none-eabi-gcc -std=c99 -mcpu=cortex-m0 -mthumb -Os $gcc_warn
        $c_warn"
    avr="avr-gcc -std=c99 -mmcu=atmega328p -Os -Wall -Wextra -Wpedantic
        -Wconversion -Werror"
    run cortex-m0 $arm -I. -c $source/c.c -o "$out/o"
    run avr $avr -I. -c $source/c.c -o "$out/o"
    run 'sectors of 64 KB on avr' in_sectors 65536 $avr -Wno-unused-variable
    run s390x s390x-linux-gnu-gcc -std=c99 -O2 $gcc_warn -I. -c $source/c.c \
        -o "$out/o"
    [ "$short" = 1 ] ||
        run stm8 sdcc -mstm8 --std-c99 --opt-code-size -I. -c $source/c.c \
            -o "$out/c.rel"
    for name in protocol device; do
        run "$name.c on cortex-m0" $arm -ffreestanding -I. -c \
            examples/serial/$name.c -o "$out/o"
        run "$name.c is freestanding" freestanding "$out/o"
        run "$name.c on avr" $avr -I. -c examples/serial/$name.c -o "$out/o"
    done
}

part_compile() {
    languages
    links
    cplusplus
    machines
}

# tests NAME FLAGS: the unit tests in $unit, or all, built by $CC with these and
# run by $RUNNER
tests() {
    name=$1
    CFLAGS=$2
    B=$(cd "$out" && pwd)/unit
    rm -rf "$B"
    run "tests: $name" sh tests/unit/unit.sh $unit
    echo "-- tests: $name: $(tail -n 1 "$out/log")"
}

# bare NAME FLAGS: the same where there is no cmocka
bare() {
    ar rc "$out/libcmocka.a"
    tests "$1" "$2 -Itests/unit/bare -L$out"
}

part_tests() {
    [ "$short" != 1 ] || CALLS=${CALLS:-20000}
    CALLS=${CALLS:-100000} RUNNER= unit=
    export CC CFLAGS B CALLS RUNNER
    san="-fsanitize=address,undefined -fno-sanitize-recover=all -g1"
    narrow="-DIDEM_WIDE=0 -DIDEM_HASH=2"
    geometries="nor8 ecc-odd fram"
    all=$(cd tests/unit && ls *.c | sed 's/\.c$//' | grep -vx idem)
    units=$all level=-O1
    if [ "$short" = 1 ]; then
        # A fuzzer lives the same lives under the same sanitizers.
        unit=$(echo "$all" | grep -vx lives)
        units="config life keys numbers journal_opening journal_damage
            journal_failing journal_senders journal_hash table hash_siphash
            hash_halfsiphash hash_fnv"
        geometries=ecc-odd level=-O0
        echo "skipped: $(echo $(echo "$all" | grep -vxF "$(echo $units |
            tr ' ' '\n')")), with 32 bits; all with -O3, MSan, s390x"
    fi
    CC=clang-19
    tests "clang, address, undefined, integer" \
        "-std=c99 $level $san -fsanitize=implicit-conversion"
    run "crash, sanitized" clang-19 -std=c99 -O1 $san -I. \
        tests/storage/crash.c -o "$out/crash"
    for geometry in $geometries; do
        run "crash, sanitized, $geometry" "$out/crash" --short \
            --geometry $geometry
    done
    CC=gcc
    RUNNER="sh tests/tools/narrow.sh"
    unit=$units
    bare "gcc -m32 -Os, 16-bit index, HalfSipHash" \
        "-m32 -idirafter /usr/include/$(gcc -print-multiarch) -std=c99 -Os
        $narrow"
    RUNNER=
    unit=group
    tests "threads, watched" "-std=c99 -O1 -g -fsanitize=thread"
    unit="keys life journal_hash table"
    tests FNV "-std=c99 -O0 -DIDEM_HASH=3"
    unit=
    if [ "$short" != 1 ]; then
        tests "gcc, address and undefined" "-std=c99 -O1 $san"
        tests "gcc -Os, 16-bit index, HalfSipHash" "-std=c99 -Os $narrow"
        tests "gcc -O3" "-std=c99 -O3"
        tests FNV "-std=c99 -O1 -DIDEM_HASH=3"
        CC=clang-19
        bare "clang, memory" "-std=c99 -O1 -g -fsanitize=memory"
        CC=s390x-linux-gnu-gcc
        RUNNER=qemu-s390x
        bare "big-endian s390x" "-std=c99 -O2 -static"
    fi
}

# built DIRECTORY: the tree as it is in git's index, built there
built() {
    mkdir -p "$1"
    git checkout-index -a --prefix="$1/"
    make -s -C "$1" $programs \
        CFLAGS="-std=c99 -O1 -g -ffile-prefix-map=$1=."
}

alike() {
    for program in $programs; do
        cmp "$one/$program" "$two/$program" || return
    done
}

# In two directories with names of different lengths; what is injected (the time
# of the build) shows.
part_builds() {
    programs=build/hello
    [ "$short" = 1 ] ||
        programs="$programs build/patterns build/file build/serial/demo"
    one=$PWD/$out/one
    two=$PWD/$out/a/second/one
    run "a build" built "$one"
    run "another" built "$two"
    run "both are alike" alike
    echo 'const char *const built = __FILE__ " " __TIME__;' \
        >> "$one/examples/hello.c"
    sleep 1
    run "a build that has the time in it" make -s -C "$one" build/hello
    run "that differs" not alike
    nothing_stale
    if [ "$short" = 1 ]; then
        echo "skipped: lives with IDEM_CONFIG, but of one kind"
        configured 1
    else
        configured 0 1 2 3 4
    fi
}

# same_lives KIND COUNT: with a configuration that is known when compiling, that
# many random lives have the same calls, answers and bytes as without
same_lives() {
    for known in -DCONFIGURED -UCONFIGURED; do
        "$cc" -std=c99 -O1 -DKIND=$1 $known -I. -Itests -Itests/storage \
            tests/check/configured.c -o "$out/lives" &&
            TRACE=1 "$out/lives" 1 $2 > "$out/lives$known" 2>&1 || return
    done
    cmp "$out/lives-DCONFIGURED" "$out/lives-UCONFIGURED"
}

configured() {
    for kind in "$@"; do
        run "lives with IDEM_CONFIG, kind $kind" same_lives $kind 200
    done
}

# built_anew FLAGS...: whether build.sh makes the program, and has it print
# $expected
built_anew() {
    sh tests/tools/build.sh "$out/anew/print" ${compiler:-"$cc"} "$@" \
        "$out/anew/print.c" -o "$out/anew/print" &&
        [ "$("$out/anew/print")" = "$expected" ]
}

# What was made of the file before
kept() {
    before=$(stat -c %Y%i "$out/anew/print") &&
        built_anew "$@" && [ "$(stat -c %Y%i "$out/anew/print")" = "$before" ]
}

# A header that changes and keeps its time, flags, a compiler, a source that
# does not compile: each is seen.  What nothing has changed in is left.
nothing_stale() {
    header=$out/anew/number.h expected=1
    mkdir -p "$out/anew"
    echo '#define LEVEL 1' > "$header"
    cat > "$out/anew/print.c" << 'END'
#include <stdio.h>
#include "number.h"
#ifndef MORE
#define MORE 0
#endif
int main(void) { printf("%d\n", LEVEL + MORE); return 0; }
END
    touch -d '1 hour ago' "$header" "$out/anew/print.c"
    run "built" built_anew
    run "built once" kept
    touch "$header"
    run "touched, and not built" kept
    expected=2
    sed -i s/1/2/ "$header"
    touch -d '1 hour ago' "$header"
    run "a header has changed" built_anew
    expected=3
    run "flags have" built_anew -DMORE=1
    run "flags have not" kept -DMORE=1
    compiler=/bin/false
    run "the compiler has" not built_anew -DMORE=1
    compiler=
    run "it is there again" built_anew -DMORE=1
    echo '#error' >> "$header"
    run "a header does not compile" not built_anew -DMORE=1
    run "nor now" not built_anew -DMORE=1
}

# checked COMMAND...: one check that reports itself what it finds
checked() {
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

part_lint() {
    checked sh tests/check/lint.sh
}

# chosen HASH: what crafted keys cost under it, fewer where they cost much
chosen() {
    keys=20000
    [ $1 != FNV ] || keys=3000
    "$cc" -std=c99 -O1 -Wall -Wextra -Wpedantic -Werror \
        -fsanitize-coverage=trace-pc -DIDEM_HASH=IDEM_HASH_$1 -I. \
        tests/check/chosen.c -o "$out/chosen" &&
        printf 'chosen: %s, ' $1 && "$out/chosen" $keys
}

# costs: that they do not grow with what else is in the table
costs() {
    "$cc" -std=c99 -O1 -Wall -Wextra -Wpedantic -Werror \
        -fsanitize-coverage=trace-pc -I. -Itests tests/check/costs.c \
        -o "$out/costs" && "$out/costs"
}

# timeless FLAGS...: ct.c under valgrind, in which nothing takes a time that
# shows a secret
timeless() {
    "$cc" -std=c99 -g "$@" -I. tests/check/ct.c -o "$out/ct" &&
        valgrind -q --error-exitcode=0 "$out/ct"
}

# An injected branch on a bit of a hash is reported.
reported() {
    ! timeless -O1 -DINJECT_BRANCH > "$out/reports" 2>&1 &&
        grep 'both hashes.* [1-9][0-9]* reports, 0 expected' "$out/reports"
}

part_attack() {
    for hash in SIPHASH HALFSIPHASH FNV; do
        checked chosen $hash
    done
    checked costs
    levels="-O0 -O2 -Os"
    [ "$short" != 1 ] || levels=-O2
    for level in $levels; do
        for hash in SIPHASH HALFSIPHASH; do
            run "constant time, $hash, $level" timeless $level \
                -DIDEM_HASH=IDEM_HASH_$hash
        done
    done
    run "no constant time" reported
}

for part in ${*:-compile tests builds lint attack}; do
    command -v "part_$part" > /dev/null ||
        { echo "check: no part $part: compile tests builds lint attack"; exit 2; }
    echo "-- $part"
    out=$build/check/$part
    rm -rf "$out"
    mkdir -p "$out"
    "part_$part"
done
echo "check: $passed passed, $failed failed"
[ "$failed" = 0 ]
