#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Cuts every C block out of the manual and README and compiles it; a block with
# a main() is run too, and if a text block follows, that is what it must print.
# README's first block must be examples/hello.c.  The examples are C++20 too, where
# initialisers stand in the order of the fields.
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
diff "$out/readme1.c" examples/hello.c ||
    { echo "README's first block is not examples/hello.c"; exit 1; }

passed=0
for block in "$out"/*.c; do
    flags="-std=c99 -Wall -Wextra -Wpedantic -Werror -I."
    if grep -q 'int main(' "$block"; then
        $CC $flags "$block" -o "${block%.c}"
        "${block%.c}" > "${block%.c}.out"
        [ ! -f "${block%.c}.txt" ] || diff "${block%.c}.txt" "${block%.c}.out"
    else
        $CC $flags -Wno-unused-function -c "$block" -o "${block%.c}.o"
    fi
    passed=$((passed + 1))
done
if echo 'int main() {}' | $CXX -std=c++20 -x c++ -fsyntax-only - \
    2> /dev/null
then
    for example in examples/*.c examples/serial/*.c; do
        $CXX -std=c++20 -Wall -Wextra -Wno-missing-field-initializers -Werror \
            -D_XOPEN_SOURCE=700 -I. -x c++ -fsyntax-only "$example"
        passed=$((passed + 1))
    done
fi
[ "$passed" -ge 4 ] || { echo "only $passed blocks found"; exit 1; }
echo "docs: $passed passed, 0 failed"
