#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Code, RAM and stack of idem.h on Cortex-M0 at -Os, beside the budgets of the
# project.  Writes the table into README between its two markers; CI fails if
# that changes it.
set -eu

out=build/size
rm -rf "$out"
mkdir -p "$out"
arm="arm-none-eabi-gcc -std=c99 -mcpu=cortex-m0 -mthumb -Os -ffunction-sections
    -fdata-sections -I."

# functions FLAGS...: "bytes name" of each of our functions that gets linked
functions() {
    $arm "$@" -nostdlib -Wl,--gc-sections -Wl,-e,firmware \
        tests/size/firmware.c -lc -lgcc -o "$out/firmware.elf"
    arm-none-eabi-nm -S -t d "$out/firmware.elf" |
        awk '$3 ~ /[tT]/ && $4 ~ /^idem/ { print $2 + 0, $4 }'
}

text() {
    functions "$@" | awk '{ n += $1 } END { print n }'
}

# object NAME: its bytes
object() {
    arm-none-eabi-nm -S -t d "$out/ram.o" |
        awk -v name="$1" '$4 == name { print $2 + 0 }'
}

# part PATTERN: bytes of the functions whose names match
part() {
    awk -v pattern="$1" '$2 ~ pattern { n += $1 } END { print n + 0 }' \
        "$out/functions"
}

# sections FLAGS...: what each section of the header takes of that, as text; what
# was inlined counts where it went
sections() {
    awk -f tests/defined.awk idem.h > "$out/defined"
    functions "$@" | awk '
        FNR == NR {
            if (!($1 in where))         # cells have some of them anew
                where[$1] = $2
            next
        }
        {
            sub(/\..*/, "", $2)         # .part.0 and the like
            if (!(where[$2] in bytes))
                names[++n] = where[$2]
            bytes[where[$2]] += $1
        }
        END {
            for (i = 1; i <= n; i++)
                print bytes[names[i]], names[i]
        }' "$out/defined" - | sort -rn |
        awk '{ printf "%s%s %d", (NR > 1 ? ", " : ""), $2, $1 }'
}

functions -DIDEM_NO_JOURNAL > "$out/functions"
core=$(text -DIDEM_NO_JOURNAL)
hash=$(part '^idemi_load64|^idemi_hash|^idem_halfsiphash|^idem_fingerprint')
$arm -c tests/size/ram.c -o "$out/ram.o"
$arm -DWHOLE -fstack-usage -fcallgraph-info=su -c tests/size/firmware.c \
    -o "$out/stack.o"
$arm -DWHOLE -DIDEM_CELLS -fstack-usage -fcallgraph-info=su \
    -c tests/size/firmware.c -o "$out/cells.o"

# stack GRAPH: the deepest call and what it takes, frame by frame, as a row
stack() {
    awk -f tests/size/stack.awk "$out/$1.ci" | sort -rn | head -n 1 |
        while read -r bytes name frames; do
            echo "(\`$name\`: $frames) | $bytes | 256 |"
        done
}

# row COUNT: the table's line for that many keys
row() {
    bytes=$(object "memory_$1")
    echo "| RAM, $1 keys of 16 bytes with responses of 16 bytes" \
        "| $bytes ($(echo "$bytes $1" | awk '{ printf "%.1f", $1 / $2 }')" \
        "per key) | |"
}

{
    echo "| Cortex-M0, gcc $(arm-none-eabi-gcc -dumpversion), -Os | bytes" \
        "| budget |"
    echo "|---|---|---|"
    echo "| code: open, begin, complete, release, maintain, without journal" \
        "(and without memcpy, memset, memcmp) | $core | 2048 |"
    echo "| of that, HalfSipHash in its two uses | $hash | |"
    echo "| the same with SipHash" \
        "| $(text -DIDEM_NO_JOURNAL -DIDEM_HASH=IDEM_HASH_SIPHASH) | |"
    echo "| the same with FNV-1a" \
        "| $(text -DIDEM_NO_JOURNAL -DIDEM_HASH=IDEM_HASH_FNV) | |"
    echo "| the same with a 32-bit index" \
        "| $(text -DIDEM_NO_JOURNAL -DIDEM_WIDE=1) | |"
    echo "| the same with the journal | $(text) | 5120 |"
    echo "| of that, by section of the header | $(sections) | |"
    echo "| the same with cells (EEPROM, FRAM) | $(text -DIDEM_CELLS) | 5120 |"
    echo "| code: every function, with the journal | $(text -DWHOLE) | |"
    echo "| RAM, the table itself | $(object table_struct) | 192 |"
    echo "| RAM, per key beyond what is stored of it" \
        "| $(object beyond_stored) | 16 |"
    row 16
    row 64
    row 256
    echo "| RAM, per key with a journal, all of it |" \
        "$(object journal_key) | 24 |"
    echo "| RAM, 64 such keys, 8 sectors, buffers | $(object journal_64) | |"
    echo "| stack, deepest call, frame by frame $(stack stack)"
    echo "| the same with cells $(stack cells)"
} > "$out/table"
cat "$out/table"

sh tests/readme.sh size "$out/table"
