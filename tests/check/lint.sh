#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Static analysis without a warning: gcc -fanalyzer, clang-tidy, cppcheck with
# its MISRA C:2012 addon (misra.txt has what is not followed, and why),
# complexity, stack, spelling, licence tags, a test for each rule of the header.
# SHORT=1 leaves out the journal's file and the other hashes.
set -eu

complexity_max=22                   # of one function, McCabe
out=build/check/lint
rm -rf "$out"
mkdir -p "$out"
source=tests/check/compile/c.c
file="-D_POSIX_C_SOURCE=200809L -DIDEM_FILE_STORAGE"

failed=0
fail() {
    echo "FAILED: lint: $*"
    failed=$((failed + 1))
}

# clean NAME COMMAND...: prints nothing, and succeeds
clean() {
    name=$1
    shift
    if "$@" > "$out/log" 2>&1 && ! grep -qv 'warnings generated' "$out/log"
    then
        echo "lint: $name: clean"
    else
        cat "$out/log"
        fail "$name"
    fi
}

clean "licence tags" sh -c '
    for f in $(git ls-files); do
        case $f in
        LICENSE | *README.md | .gitignore) continue ;;
        tests/targets/golden/* | tests/servers/npm/*) continue ;;
        *compile_flags.txt | *.json) continue ;;  # have no comments
        esac
        head -n 4 "$f" | grep -q "SPDX-License-Identifier: 0BSD" || echo "$f"
    done'
clean spelling codespell -L nd --skip '*vectors_*,*.base64' \
    $(git ls-files)
clean "a test for each rule" python3 tests/mutate/rules.py
clean "gcc -fanalyzer" gcc -std=c99 -O0 -fanalyzer $file -I. -c $source \
    -o "$out/o"
# This also warns of a frame without a bound.
# But of one for hosts, whose contract has that.
stack_frames() {
    gcc -std=c99 -Os -fstack-usage -I. -c $source -o "$out/o.o" &&
        awk '$1 !~ /:idem_begin_many$/ && ($2 > 512 || $3 == "dynamic")' \
            "$out/o.su"
}
clean "stack frames" stack_frames

variants="-DIDEM_WIDE=1"
[ "${SHORT:-}" = 1 ] || variants="$variants -DIDEM_WIDE=0
    -DIDEM_HASH=IDEM_HASH_FNV
    -DIDEM_HASH=IDEM_HASH_HALFSIPHASH -DIDEM_FILE_STORAGE"
for variant in $variants; do
    clean "clang-tidy $variant" clang-tidy-19 --quiet $source -- -std=c99 \
        -D_POSIX_C_SOURCE=200809L "$variant" -I.
done

# What it sees wrongly: a loop's bound that a call sets, one width of a token of
# two, and writers that are set up field by field (MSan watches those).
clean cppcheck cppcheck -q --std=c99 --enable=warning,style,performance \
    --suppress=unsignedLessThanZero --suppress=knownConditionTrueFalse \
    --suppress=ctuuninitvar --suppress=constParameter \
    --suppress=variableScope --suppress=missingIncludeSystem --inline-suppr \
    --error-exitcode=1 -D__GNUC__=12 -UIDEM_FILE_STORAGE -UO_CLOEXEC -I. \
    $source
cppcheck -q --std=c99 --addon=misra --enable=style -D__GNUC__=12 \
    -UIDEM_FILE_STORAGE -UO_CLOEXEC -I. --template='{id}' $source \
    > "$out/misra" 2>&1
sed -n 's/^misra-c2012-//p' "$out/misra" | sort -V > "$out/reports"
uniq "$out/reports" > "$out/broken"
sed -n 's/^\([0-9.]*\) .*/\1/p' tests/check/misra.txt | sort -V > "$out/table"
for rule in $(grep -vxFf "$out/table" "$out/broken"); do
    fail "MISRA: rule $rule is broken, and tests/check/misra.txt has no" \
        "reason for it"
done
for rule in $(grep -vxFf "$out/broken" "$out/table"); do
    fail "MISRA: rule $rule is followed: remove it from tests/check/misra.txt"
done
! grep -q '^[0-9.]* *mandatory' tests/check/misra.txt ||
    fail "MISRA: misra.txt excepts a mandatory rule"
echo "lint: MISRA C:2012: 0 mandatory," \
    "$(grep -c ' required ' tests/check/misra.txt) required and" \
    "$(grep -c ' advisory ' tests/check/misra.txt) advisory rules not" \
    "followed, in" \
    "$(wc -l < "$out/reports") places"

# Each feature and each fault for Eva and WP changes as many lines of a header
# in which everything local has another name: who changes one there changes
# nothing in the tests.
python3 tests/tools/locals.py --all idem.h > "$out/renamed.h"
# changes HEADER SED...: how many lines
changes() {
    header=$1
    shift
    sed "$@" "$header" | diff "$header" - | grep -c '^>' || :
}
{
    sed '/^#/d; s/: /\t/' tests/size/features.txt
    sed -n "s/.* alarmed [a-z]* \([a-z_]*\) '\(.*\)'$/\1\t\/^[A-Za-z].*[ *]\1(\/,\/^}\/{\2;}/p" \
        tests/proofs/prove.sh
} > "$out/scripts"
while IFS='	' read -r name script; do
    extended=-E
    case $name in idemi_*) extended=-e ;; *) ;; esac
    one=$(changes idem.h $extended "$script")
    another=$(changes "$out/renamed.h" $extended "$script")
    [ "$one" != 0 ] || fail "$name: takes nothing out of the header"
    [ "$one" = "$another" ] || fail "$name: is tied to the name of a local"
done < "$out/scripts"
echo "lint: $(wc -l < "$out/scripts") features and faults, whatever locals" \
    "are called"

# pmccabe understands no attributes and no preprocessor.
gcc -std=c99 -E -P -U__GNUC__ -I. $source |
    sed 's/__attribute__ *(([a-z_]*))//' > "$out/plain.c"
pmccabe "$out/plain.c" | sort -rn > "$out/complexity"
most=$(sed -n '1s/[^0-9].*//p' "$out/complexity")
echo "lint: complexity: at most $most in one of $(wc -l < "$out/complexity")" \
    "functions:" $(sed -n '1,3s/.*: //p' "$out/complexity")
[ "$most" -le $complexity_max ] || fail "complexity over $complexity_max"

[ "$failed" = 0 ] || { echo "lint: $failed failed"; exit 1; }
echo "lint: clean"
