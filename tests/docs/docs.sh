#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Cuts every C block out of the manual and README, that of the ports too, and
# compiles it; a block with a main() is run too, and if a text block follows,
# that is what it must print.
# README's first block must be examples/hello.c.  Blocks and examples are C++20
# too, where initialisers stand in the order of the fields, and two examples are
# run as that.  A block that includes nothing gets tests/docs/callbacks.h.  Then
# the programs of tests/docs/.
set -eu

CC=${CC:-cc}
CXX=${CXX:-c++}
out=build/docs
rm -rf "$out"
mkdir -p "$out"

# blocks FILE PREFIX: writes PREFIX1.c, PREFIX1.txt (if any), PREFIX2.c, ...
blocks() {
    awk -v prefix="$2" '
        /^ *```c$/    { n++; file = prefix n ".c"; match($0, /^ */)
                        indent = RLENGTH; next }
        /^ *```text$/ { file = prefix n ".txt"; match($0, /^ */)
                        indent = RLENGTH; next }
        /^ *```/      { file = ""; next }
        file != ""    { print substr($0, indent + 1) > file }' "$1"
}

blocks idem.h "$out/manual"
blocks README.md "$out/readme"
blocks examples/port/README.md "$out/port"
diff "$out/readme1.c" examples/hello.c ||
    { echo "README's first block is not examples/hello.c"; exit 1; }

# callbacks BLOCK: the flag with which a block that includes nothing compiles
callbacks() {
    grep -q '#include' "$1" || echo "-include tests/docs/callbacks.h"
}

passed=0
ports="-Iexamples/port -Itests/targets/vendor"
for block in "$out"/*.c; do
    flags="$(callbacks "$block") -std=c99 -Wall -Wextra -Wpedantic -Werror -I.
        $ports"
    if grep -q 'int main(' "$block"; then
        $CC $flags "$block" -o "${block%.c}"
        "${block%.c}" > "${block%.c}.out"
        [ ! -f "${block%.c}.txt" ] || diff "${block%.c}.txt" "${block%.c}.out"
    else
        $CC $flags -Wno-unused-function -Wno-unused-variable \
            -c "$block" -o "${block%.c}.o"
    fi
    passed=$((passed + 1))
done
has() { echo "#include <$1>" | $CC -E -x c - > /dev/null 2>&1; }

# cpp20 COMPILER: examples and blocks are C++20 too, those that want libraries
# or a board with stand-ins.  A field that is not named is zero, which is what
# idem.h wants.
cpp20() {
    echo 'int main() {}' | "$1" -std=c++20 -x c++ -fsyntax-only - \
        2> /dev/null || return 0
    for source in "$out"/*.c examples/*.c examples/serial/*.c \
        examples/port/*.h tests/demo/firmware/*.c examples/mqtt/*.c \
        tests/docs/initialisers.cpp; do
        stand_ins="$ports $(callbacks "$source")"
        case $source in
        */port/avr_eeprom.h) continue ;;
        */mqtt/*) has mosquitto.h || continue ;;
        */stm32_flash.h) stand_ins="$stand_ins -include stm32l4xx_hal.h" ;;
        *) ;;
        esac
        "$1" -std=c++20 -Wall -Wextra -Wno-missing-field-initializers -Werror \
            -Wno-unused-function -Wno-unused-variable \
            -D_XOPEN_SOURCE=700 -DBOARD_INTERRUPT=2 \
            -DDEVICE_SECRET=0 -I. -Iexamples/serial -Itests/targets $stand_ins \
            -x c++ -fsyntax-only "$source"
        passed=$((passed + 1))
    done
}
cpp20 "$CXX"
cpp20 clang++-19

warn="-Wall -Wextra -Wpedantic -Wshadow -Werror"
# trial COMMAND...: builds a program
trial() {
    "$@" $warn
    passed=$((passed + 1))
}
runs() {
    "$@" > "$out/printed" || { cat "$out/printed"; echo "FAILED: $*"; exit 1; }
    passed=$((passed + 1))
}
if has sqlite3.h; then
    trial $CC -std=c99 tests/docs/sqlite.c -lsqlite3 -o "$out/sqlite"
    runs "$out/sqlite"
fi
# The class that owns table, memory and lock
for std in c++11 "c++17 -fno-exceptions"; do
    trial $CXX -std=$std -I. tests/docs/keeper.cpp -lpthread -o "$out/keeper"
    runs "$out/keeper"
done
# A table and a journal, implemented and run in C++
for example in hello file; do
    trial $CXX -std=c++20 -Wno-missing-field-initializers -I. -x c++ \
        examples/$example.c -o "$out/$example"
done
runs "$out/hello"
runs "$out/file" "$out/journal" 42 pour
runs "$out/file" "$out/journal" 42 pour
grep -q "^finished before" "$out/printed" ||
    { echo "FAILED: examples/file.c did not replay its command"; exit 1; }
[ "$passed" -ge 4 ] || { echo "only $passed blocks found"; exit 1; }
echo "docs: $passed passed, 0 failed"
