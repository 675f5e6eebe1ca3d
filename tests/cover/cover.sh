#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Coverage of idem.h by the unit, model and file tests together: lines, branches
# and, in every decision, each condition on its own (MC/DC).  gate.py decides.
# The tests are deterministic and quick enough: SHORT=1 changes nothing.
set -eu

out=build/cover
rm -rf "$out"
mkdir -p "$out"

# A static function is known by its file's name: with the same one everywhere,
# what the tests see of it adds up.  A process writes down what it saw when it
# calls exit.
compile="clang-19 -std=c99 -O1 -fprofile-instr-generate -fcoverage-mapping
    -fcoverage-mcdc -Xclang -main-file-name -Xclang idem.h -D_exit=exit
    -Wno-everything -I."

export IDEM_CALLS=${IDEM_CALLS:-100000}
names="hash table keys time full api threads model journal edges file cells
    images failures failures_cells"
for name in $names; do
    source=tests/test_$name.c
    test=$out/$name
    $compile "$source" -o "$test" -lcmocka -lpthread 2>> "$out/warnings"
    LLVM_PROFILE_FILE=$test-%p.profraw "$test" > "$test.log" 2>&1 ||
        { cat "$test.log"; echo "FAILED: $source"; exit 1; }
done
llvm-profdata-19 merge "$out"/*.profraw -o "$out/profile"
for name in $names; do
    llvm-cov-19 export "$out/$name" -instr-profile="$out/profile" \
        > "$out/$name.json" 2> "$out/log" || { cat "$out/log"; exit 1; }
done
sed -n 's/.*\(idem.h:[0-9]*\):.*unsupported MC.*/\1: MC\/DC not measured/p' \
    "$out/warnings" | sort -u
python3 tests/cover/gate.py idem.h tests/cover/exceptions.txt "$out"/*.json
