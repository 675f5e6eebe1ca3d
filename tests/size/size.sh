#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Code, RAM, stack and lines of idem.h, for Cortex-M0 at -Os, beside the budgets
# of the project.  Writes that table into tests/FIGURES.md, and a plain one into
# README; CI fails if README changes.
#     size.sh             all of it; with SHORT=1 not what each feature costs
#     size.sh functions   bytes of every function that firmware links, sorted
#     size.sh hints       finds again which functions to inline: an hour
set -eu
case ${1:-functions} in
functions) ;;
hints)     exec python3 tests/size/hints.py ;;
*)         echo "size: no part $1: functions hints"; exit 2 ;;
esac

out=build/size
mkdir -p "$out"
cc="arm-none-eabi-gcc -std=c99 -mcpu=cortex-m0 -mthumb"
nm=arm-none-eabi-nm
. tests/size/link.sh

# bytes NAME: of code and constants, with alignment
bytes() {
    arm-none-eabi-size -A "$out/$1.elf" |
        awk '$1 ~ /^\.(text|rodata)/ { n += $2 } END { print n }'
}

# text NAME CALLS...: the bytes of all that
text() {
    link "$@"
    bytes "$1"
}

# image FLAGS...: the bytes of a whole program with one configuration, and of
# what it takes of the C library
image() {
    $cc -Os -ffunction-sections -fdata-sections -w -DIMAGE "$@" -I. \
        tests/size/configured.c -nostartfiles --specs=nano.specs \
        -Wl,--gc-sections -Wl,-e,main \
        -Wl,--unresolved-symbols=ignore-all -o "$out/image.elf"
    bytes image
}

calls whole > "$out/calls"
if [ "${1-}" = functions ]; then
    link whole $firmware
    $nm -S -t d "$out/whole.elf" |
        awk '$3 ~ /^[tTrR]$/ { print $2 + 0, $4 }' | sort -rn
    exit
fi
alone idem.h
compile table "-I$out/alone"
compile_of tests/size/configured.c random
compile_of tests/size/configured.c random_journal -DJOURNAL
compile_of tests/size/configured.c features -DFEATURES
compile_of tests/size/configured.c features_journal -DFEATURES -DJOURNAL
awk -v of="storage items records journal opening" -f tests/size/lines.awk idem.h \
    > "$out/lines"
# per_key NAME: RAM per key
per_key() {
    echo $((($(object "$1_116") - $(object "$1_16")) / 100))
}

# nth N FILE: that word of its first line
nth() {
    awk -v n="$1" 'NR == 1 { print $n }' "$2"
}

table=$(text table $firmware)
whole=$(text whole $firmware)
random=$(text random $firmware)
random_journal=$(text random_journal $firmware)
features=$(text features $firmware)
features_journal=$(text features_journal $firmware)
deep=$(deepest < "$out/calls")
burst=$(awk '$3 == "idem_begin_many" { print $1 }' "$out/calls")
long=$(sort -k 2,2rn "$out/calls" | awk 'NR == 1 { print $2 }')
{
    echo "| Cortex-M0, gcc $(arm-none-eabi-gcc -dumpversion), -Os, bytes | is" \
        "| budget | moonshot |"
    echo "|---|---|---|---|"
    echo "| code: open, begin, complete, release, maintain, table alone" \
        "| $table | 4100 | 3900 |"
    echo "| the same with the journal | $whole | 10800 | 10450 |"
    echo "| code if configured when compiling: senders, state, eviction" \
        "| $features | 3550 | 3350 |"
    echo "| the same with the journal" \
        "| $features_journal | 9300 | 8800 |"
    echo "| code so configured: random keys, refused when full" \
        "| $random | 2900 | 2650 |"
    echo "| the same with the journal | $random_journal | 8150 | 7600 |"
    echo "| the whole image of that, all in one file (\`IDEM_STATIC\`), the C" \
        "library's part too | $(image) | 3000 | 2750 |"
    echo "| the same with the journal | $(image -DJOURNAL) | 8800 | 8300 |"
    echo "| stack: the deepest call, callbacks aside" \
        "| $deep | 420 | 320 |"
    echo "| stack of \`idem_begin_many\`, which is left out there | $burst | | |"
    echo "| longest chain of private functions below a call" \
        "| $long | 11 | 9 |"
    echo "| RAM per key beside key and response, table alone" \
        "| $(($(per_key keys) - 32)) | 40 | 36 |"
    echo "| the same with the journal | $(($(per_key journal) - 32)) | 44 | 40 |"
    echo "| RAM per sender, table alone | $(object sender_alone) | 24 | |"
    echo "| RAM per sender, with the journal | $(object sender_journal) | | |"
    echo "| more RAM per key and per sender, to evict by quota" \
        "| $(object quota_1) | | |"
    echo "| RAM: the table itself, with the journal" \
        "| $(object table_journal) | 256 | 192 |"
    echo "| lines (not bytes) of the header | $(nth 1 "$out/lines") | 6000 | |"
    echo "| of these, the manual | $(nth 2 "$out/lines") | 450 | |"
    echo "| of these, code of storage, items, records, journal, opening" \
        "| $(nth 3 "$out/lines") | | |"
} > "$out/table"
sed 's/^| //; s/ |$//; /^|---/d' "$out/table" | awk -F ' *[|] *' '
    { printf "%-64s %8s %8s %9s\n", $1, $2, $3, $4 }'

echo
echo "stack of each call, its longest chain of private functions:"
awk '{ printf "%6d %4d  %s\n", $1, $2, $3 }' "$out/calls"

# without NAME HOW: a row, how much smaller each build is if sed takes that out
without() {
    mkdir -p "$out/without"
    sed -E "$2" idem.h > "$out/without/idem.h"
    if cmp -s idem.h "$out/without/idem.h"; then
        echo "features.txt: $1: nothing is taken out" >&2
        return 1
    fi
    alone "$out/without/idem.h"
    compile less "-I$out/alone"
    set -- "$1" $((table - $(text less $firmware)))
    compile less "-I$out/without"
    set -- "$1" "$2" $((whole - $(text less $firmware)))
    if [ "$3" = 0 ]; then
        echo "features.txt: $1: no byte is gone without it" >&2
        return 1
    fi
    compile_of tests/size/configured.c less "-I$out/without" -DFEATURES
    set -- "$@" $((features - $(text less $firmware)))
    compile_of tests/size/configured.c less "-I$out/without" -DFEATURES \
        -DJOURNAL
    echo "| $1 | $2 | $3 | $4 |" \
        "$((features_journal - $(text less $firmware))) |"
}

if [ "${SHORT:-}" != 1 ]; then
    echo
    echo "what a feature costs:"
    {
        echo "| feature | table alone | with the journal | configured, table" \
            "alone | configured, with the journal |"
        echo "|---|--:|--:|--:|--:|"
        grep -v '^#' tests/size/features.txt | while IFS= read -r feature; do
            without "${feature%%: *}" "${feature#*: }"
        done
    } > "$out/features"
    sed 's/^| //; s/ |$//; /^|---/d' "$out/features" | awk -F ' *[|] *' '
        { printf "%-34s %12s %17s %12s %12s\n", $1, $2, $3, $4, $5 }'
    sh tests/tools/readme.sh features "$out/features" arm-none-eabi-gcc
fi

# What README has: the smallest builds that are of use, and all of it
{
    echo "| Cortex-M0, -Os, bytes | code | RAM for 16 keys | survives |"
    echo "|---|--:|--:|---|"
    echo "| random keys, in RAM only (\`IDEM_CONFIG\`)" \
        "| $random | $(object ram_alone)" \
        "| nothing: it works for one boot |"
    echo "| the same with a journal" \
        "| $random_journal | $(object ram_journal)" \
        "| a power cut at any instant |"
    echo "| everything, 4 senders with numbers and quotas too" \
        "| $whole | $(object ram_senders) | the same |"
} > "$out/takes"
{
    echo "120 keys of 24 bytes with responses of 16 take" \
        "$(object example_sectors) sectors of 4096 bytes"
    echo "(granules of 8) and, on a 32-bit machine," \
        "$(object example_memory) bytes of RAM beside the table."
} > "$out/example"
sh tests/tools/readme.sh takes "$out/takes" arm-none-eabi-gcc
sh tests/tools/readme.sh example "$out/example" arm-none-eabi-gcc
sh tests/tools/readme.sh budgets "$out/table" arm-none-eabi-gcc
