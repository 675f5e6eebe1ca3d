# SPDX-License-Identifier: 0BSD
# The cost of idem.h on four machines, written into tests/FIGURES.md between two
# markers: code, memory, stack; instructions and cycles, counted.  Sourced by
# run.sh, whose functions it uses.

. tests/size/link.sh

# on BOARD: what is measured from now on is for it
on() {
    cc="$(compiler "$1") -std=c99"
    case $1 in
    microbit | mps2-an386) nm=arm-none-eabi-nm ;;
    virt-riscv)            nm=riscv64-unknown-elf-nm ;;
    atmega2560)            nm=avr-nm cc="avr-gcc -std=gnu99 -mmcu=$1" ;;
    esac
}

# text BOARD FLAGS...: bytes that open, begin, complete, release and maintain
# link of us, constants too
text() {
    on "$1"
    shift
    compile size "$@"
    link size $firmware
    $nm -S -t d "$out/size.elf" |
        awk '$3 ~ /[tTrR]/ && $4 ~ /^idem/ { n += $2 } END { print n }'
}

# ram BOARD NAME: bytes of one of tests/size/ram.c
ram() {
    on "$1"
    object "$2"
}

# stack BOARD FLAGS...: the deepest call, by the compiler's own figures
stack() {
    on "$1"
    shift
    calls stack "$@" | deepest
}

# regions BOARD NUMBER: what measure.c finds between its marks, a line each
regions() {
    case $1 in
    atmega2560)
        simulate "$1" "$out/measure-$1.elf" "$out/eeprom" 0 "$2" > "$out/took"
        ;;
    *)
        on "$1"
        from=$($nm "$out/measure-$1.elf" | awk '$3 == "mark_from" { print $1 }')
        to=$($nm "$out/measure-$1.elf" | awk '$3 == "mark_to" { print $1 }')
        emulate "$1" "$out/measure-$1.elf" -plugin \
            "$PWD/$out/instructions.so,from=0x$from,to=0x$to" \
            -semihosting-config "enable=on,target=native,arg=it,arg=$2" \
            > "$out/took"
        ;;
    esac
    sed -n 's/^region //p' "$out/took"
}

# worst BOARD NUMBER: the largest of them
worst() {
    regions "$1" "$2" | sort -n | tail -n 1
}

# row NAME COLUMN...: a line of the table
row() {
    printf '|'
    printf ' %s |' "$@"
    echo
}

# each COMMAND ARGUMENTS...: what COMMAND BOARD ARGUMENTS prints, for each
each() {
    command=$1
    shift
    for machine in $machines; do
        $command "$machine" "$@"
    done
}

# measure HASH: builds measure.c for each machine, and keeps what its calls take
measure() {
    for machine in $machines; do
        build "$machine" measure -DIDEM_HASH=IDEM_HASH_$1
        regions "$machine" 0 > "$out/calls-$1-$machine"
    done
}

# call N [HASH]: the n-th of those calls, for each machine
call() {
    for machine in $machines; do
        sed -n "$1p" "$out/calls-${2:-HALFSIPHASH}-$machine"
    done
}

machines="microbit mps2-an386 virt-riscv atmega2560"

figures() {
    alone idem.h
    # Last the one that is measured on.
    measure SIPHASH
    measure FNV
    measure HALFSIPHASH
    row "gcc -Os" "Cortex-M0" "Cortex-M4" "RV32IMAC" "ATmega2560"
    echo "|---|---|---|---|---|"
    row "code, without journal" $(each text "-I$out/alone")
    row "the same with SipHash" \
        $(each text "-I$out/alone" -DIDEM_HASH=IDEM_HASH_SIPHASH)
    row "the same with FNV-1a" \
        $(each text "-I$out/alone" -DIDEM_HASH=IDEM_HASH_FNV)
    row "code, with journal" $(each text)
    row "RAM, the table, with journal" $(each ram table_journal)
    row "RAM, 16 keys of 16 bytes, responses of 16, with journal" \
        $(each ram journal_16)
    row "stack, deepest call but idem_begin_many, without journal" \
        $(machines="microbit mps2-an386 virt-riscv"
          each stack "-I$out/alone") "-"
    row "stack, with journal" \
        $(machines="microbit mps2-an386 virt-riscv"; each stack) \
        "$(sed -n 's/^stack //p' "$out/took") (as run)"
    row "**instructions** (AVR: cycles) of" "" "" "" ""
    row "SipHash-2-4 of 32 bytes" $(call 1 SIPHASH)
    row "HalfSipHash-2-4 of 32 bytes" $(call 1)
    row "FNV-1a, 64 bits, of 32 bytes" $(call 1 FNV)
    row "begin, new key" $(call 3)
    row "complete" $(call 4)
    row "begin, duplicate" $(call 5)
    row "begin, new key, with journal" $(call 10)
    row "complete, with journal" $(call 11)
    row "begin, duplicate, with journal" $(call 12)
    row "open, journal of eight keys" $(call 31)
    row "longest that a begin holds the lock, of 300" $(each worst 1)
    row "longest that a complete holds the lock" $(each worst 2)
}

part_figures() {
    echo "-- figures"
    figures > "$out/figures"
    cat "$out/figures"
    # A number that could not be had is a column that is missing.
    awk -F'|' 'NF != 7 { print; bad = 1 } END { exit bad }' "$out/figures" ||
        fail "a figure is missing: see the lines above"
    passed=$((passed + 1))
    sh tests/tools/readme.sh targets "$out/figures" arm-none-eabi-gcc \
        riscv64-unknown-elf-gcc avr-gcc
}
