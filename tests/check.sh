#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Every configuration: compiles without a warning in each language, compiler and
# option; passes the tests in each option, word size, byte order, sanitizer.
# SHORT=1 leaves out what differs least from something that stays in.
set -eu

out=build/check
rm -rf "$out"
mkdir -p "$out"
passed=0

# run NAME COMMAND...: one check; those that fail are shown, and the rest goes on
failed=0
run() {
    what=$1
    shift
    if "$@" > "$out/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what: $1"
        grep -E 'error|warning|[Ff]ail|not ok|died' "$out/log" | head -n 3
    fi
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

short=${SHORT:-}
c_standards="c99 c11 c17"
cpp_standards="c++11 c++17"
[ "$short" != 1 ] || { c_standards=c99; cpp_standards=c++11; }

options="-DIDEM_WIDE=0
-DIDEM_WIDE=1
-DIDEM_HASH=IDEM_HASH_SIPHASH
-DIDEM_HASH=IDEM_HASH_HALFSIPHASH
-DIDEM_HASH=IDEM_HASH_FNV
-DIDEM_DEBUG
-DIDEM_STATIC
-DIDEM_NO_JOURNAL
-DIDEM_API=extern
-fshort-enums
-funsigned-char
-m32
-ffreestanding
-O3"

compile="tests/compile"
file="-D_POSIX_C_SOURCE=200809L -DIDEM_FILE_STORAGE"
echo "-- compiles"
for option in "" -DIDEM_NO_JOURNAL; do
    run "windows $option" gcc -std=c99 $gcc_warn $c_warn $option -I. -c \
        $compile/windows.c -o "$out/o"
done
for std in $c_standards; do
    for source in c.c own_memory.c; do
        run "$std" gcc -std=$std -O2 $gcc_warn $c_warn -I. -c \
            $compile/$source -o "$out/o"
        run "$std" clang-19 -std=$std -O2 $clang_warn -I. -c \
            $compile/$source -o "$out/o"
        for option in $options; do
            [ "$short/$source" != 1/own_memory.c ] || break
            run "$std $option" gcc -std=$std $gcc_warn $c_warn $option -I. \
                -c $compile/$source -o "$out/o"
            [ "$short" != 1 ] || continue
            run "$std $option" clang-19 -std=$std $clang_warn $option -I. \
                -c $compile/$source -o "$out/o"
        done
    done
    run "$std file" gcc -std=$std -O2 $gcc_warn $c_warn $file -I. -c \
        $compile/c.c -o "$out/o"
    run "$std file" clang-19 -std=$std -O2 $clang_warn $file -I. -c \
        $compile/c.c -o "$out/o"
done
for std in $cpp_standards; do
    for option in -O2 $options; do
        run "$std $option" clang++-19 -std=$std $clang_warn $option -I. -c \
            $compile/cpp.cpp -o "$out/o"
        [ "$short" != 1 ] || [ "$option" = -O2 ] || continue
        run "$std $option" g++ -std=$std $gcc_warn $option -I. -c \
            $compile/cpp.cpp -o "$out/o"
    done
    run "$std file" g++ -std=$std $gcc_warn $file -I. -c $compile/cpp.cpp \
        -o "$out/o"
    run "$std" g++ -std=$std -I. $compile/cpp.cpp -o "$out/cpp"
    run "$std runs" "$out/cpp"
done

echo "-- links: two files with one implementation, two with private ones"
run two gcc -std=c99 $gcc_warn -I. $compile/two_a.c $compile/two_b.c \
    -o "$out/two"
run "two runs" "$out/two"
run private gcc -std=c99 $gcc_warn -I. $compile/private_a.c \
    $compile/private_b.c -o "$out/private"
run "private runs" "$out/private"

echo "-- other machines: Cortex-M0, AVR, STM8, big-endian; tcc"
run cortex-m0 arm-none-eabi-gcc -std=c99 -mcpu=cortex-m0 -mthumb -Os \
    $gcc_warn $c_warn -I. -c $compile/c.c -o "$out/o"
run avr avr-gcc -std=c99 -mmcu=atmega328p -Os -Wall -Wextra -Wconversion \
    -Werror -I. -c $compile/c.c -o "$out/o"
[ "$short" = 1 ] ||
    run stm8 sdcc -mstm8 --std-c99 --opt-code-size -I. -c $compile/c.c \
        -o "$out/c.rel"
run s390x s390x-linux-gnu-gcc -std=c99 -O2 $gcc_warn -I. -c $compile/c.c \
    -o "$out/o"
# Whether an object asks for no more than three functions of a C library, and
# what the compiler brings.
freestanding() {
    ! arm-none-eabi-nm -u "$1" | grep -Ev \
        ' (memcpy|memset|memcmp|__aeabi_.*|__gnu_.*|protocol_.*)$'
}
for source in protocol device; do
    run "$source.c on cortex-m0" arm-none-eabi-gcc -std=c99 -mcpu=cortex-m0 \
        -mthumb -Os -ffreestanding $gcc_warn $c_warn -I. -c \
        examples/serial/$source.c -o "$out/o"
    run "$source.c is freestanding" freestanding "$out/o"
    run "$source.c on avr" avr-gcc -std=c99 -mmcu=atmega328p -Os -Wall \
        -Wextra -Wconversion -Werror -I. -c examples/serial/$source.c \
        -o "$out/o"
done
run tcc tcc -std=c99 -Wall -Werror -I. -c $compile/c.c -o "$out/o"

# tests NAME FLAGS: the unit tests, built by $CC with these and run by $RUNNER
IDEM_CALLS=${IDEM_CALLS:-100000}
RUNNER=
export CC CFLAGS B IDEM_CALLS RUNNER
tests() {
    name=$1
    CFLAGS=$2
    B=$PWD/$out/unit
    rm -rf "$B"
    run "tests: $name" sh tests/unit.sh $unit
    echo "-- tests: $name: $(tail -n 1 "$out/log")"
}

# bare NAME FLAGS: the same where there is no cmocka
bare() {
    ar rc "$out/libcmocka.a"
    tests "$1" "$2 -Itests/bare -L$out"
}

san="-fsanitize=address,undefined -fno-sanitize-recover=all -g1"
small="-DIDEM_WIDE=0 -DIDEM_HASH=IDEM_HASH_HALFSIPHASH"
unit=
CC=clang-19
tests "clang, address, undefined, integer" \
    "-std=c99 -O1 $san -fsanitize=implicit-conversion"
CC=gcc
bare "gcc -m32 -Os, 16-bit index, HalfSipHash" "-m32 -idirafter /usr/include/$(gcc -print-multiarch) -std=c99 -Os $small"
unit=threads
tests "threads, watched" "-std=c99 -O1 -g -fsanitize=thread"
unit=
if [ "$short" != 1 ]; then
    tests "gcc, address and undefined" "-std=c99 -O1 $san"
    tests "gcc -m64 -Os, 16-bit index, HalfSipHash" "-std=c99 -Os $small"
    tests "gcc -O3" "-std=c99 -O3"
    tests FNV "-std=c99 -O1 -DIDEM_HASH=IDEM_HASH_FNV"
    CC=clang-19
    bare "clang, memory" "-std=c99 -O1 -g -fsanitize=memory"
    CC=s390x-linux-gnu-gcc
    RUNNER=qemu-s390x
    bare "big-endian s390x" "-std=c99 -O2 -static"
fi
echo "check: $passed passed, $failed failed"
[ "$failed" = 0 ]
