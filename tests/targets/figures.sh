# SPDX-License-Identifier: 0BSD
# The size of idem.h on four machines, written into tests/FIGURES.md between two
# markers: code, memory, stack.  Sourced by run.sh, whose functions it uses.

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

# stack BOARD FLAGS...: the deepest call, by the compiler's own figures, which
# that of AVR does not have
stack() {
    [ "$1" != atmega2560 ] || { echo -; return; }
    on "$1"
    shift
    calls stack "$@" | deepest
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
    for machine in microbit mps2-an386 virt-riscv atmega2560; do
        $command "$machine" "$@"
    done
}

figures() {
    alone idem.h
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
        $(each stack "-I$out/alone")
    row "stack, with journal" $(each stack)
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
