#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Coverage of idem.h by the unit tests: lines, branches and, in every decision,
# each condition on its own (MC/DC).  gate.py decides.  The tests are
# deterministic and quick enough: SHORT=1 changes nothing.
set -eu

out=$PWD/build/cover
rm -rf "$out"
mkdir -p "$out"

# A static function is known by its file's name: with the same one everywhere,
# what the tests see of it adds up.  A process writes down what it saw when it
# calls exit.
CC=clang-19
CFLAGS="-std=c99 -O0 -fprofile-instr-generate -fcoverage-mapping
    -fcoverage-mcdc -Xclang -main-file-name -Xclang idem.h -D_exit=exit
    -Wno-everything"
LLVM_PROFILE_FILE=$out/%p-%m.profraw
CALLS=${CALLS:-100000}
export CC CFLAGS LLVM_PROFILE_FILE CALLS
# What a test that fails has covered counts; that it fails, `make test` reports.
B=$out sh tests/unit/unit.sh > "$out/log" 2>&1 || tail -n 1 "$out/log"

llvm-profdata-19 merge "$out"/*.profraw -o "$out/profile"
programs=
for test in tests/unit/*.c; do
    name=$(basename "$test" .c)
    # With a configuration that is known the conditions are other ones.
    case $name in idem | configured*) continue ;; esac
    for format in text=json lcov=lcov; do
        llvm-cov-19 export -format=${format%=*} "$out/unit/$name" \
            -instr-profile="$out/profile" > "$out/$name.${format#*=}" \
            2> "$out/log" || { cat "$out/log"; exit 1; }
    done
    llvm-cov-19 show -show-mcdc -show-branches=count "$out/unit/$name" \
        -instr-profile="$out/profile" idem.h 2> "$out/log" |
        sed -n '/Decision Region/p; /-Pair: constant folded/p; /: \[Folded/p' \
            > "$out/$name.folded"
    programs="$programs $out/$name"
done
python3 tests/cover/gate.py idem.h tests/cover/exceptions.txt $programs
