#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Proves on emulated machines what idem.h promises to firmware.
#     run.sh [PART...]        selftest
# SHORT=1 takes fewer power cuts.
set -eu
cd "$(dirname "$0")/../.."

out=build/targets
here=tests/targets
header=${HEADER:-.}
mkdir -p "$out"
warn="-Wall -Wextra -Wpedantic -Wshadow -Werror"
passed=0

fail() {
    echo "FAILED: $*"
    exit 1
}

# memory BOARD: where its code and its memory are
memory() {
    case $1 in
    microbit)      set -- 0x0 256K 0x20000000 16K ;;
    lm3s6965evb)   set -- 0x0 256K 0x20000000 64K ;;
    mps2-an385)    set -- 0x0 4M 0x20000000 4M ;;
    mps2-an386)    set -- 0x0 4M 0x20000000 4M ;;
    mps2-an500)    set -- 0x0 4M 0x20000000 4M ;;
    netduinoplus2) set -- 0x08000000 1M 0x20000000 128K ;;
    mps2-an505)    set -- 0x10000000 4M 0x38000000 4M ;;
    ast1030-evb)   set -- 0x0 256K 0x40000 256K ;;
    virt-arm)      set -- 0x40010000 1M 0x40200000 64K ;;
    virt-riscv)    set -- 0x80000000 1M 0x80200000 64K ;;
    esac
    echo "-DCODE_AT=$1 -DCODE_SIZE=$2 -DMEMORY_AT=$3 -DMEMORY_SIZE=$4"
}

arm="arm-none-eabi-gcc -mthumb"
riscv="riscv64-unknown-elf-gcc --specs=picolibc.specs -mabi=ilp32
    -mcmodel=medany"

# compiler BOARD: with the flags of its processor
compiler() {
    case $1 in
    microbit)                   echo "$arm -mcpu=cortex-m0" ;;
    lm3s6965evb | mps2-an385)   echo "$arm -mcpu=cortex-m3" ;;
    mps2-an386 | netduinoplus2 | ast1030-evb)
                                echo "$arm -mcpu=cortex-m4" ;;
    mps2-an500)                 echo "$arm -mcpu=cortex-m7" ;;
    mps2-an505)                 echo "$arm -mcpu=cortex-m33" ;;
    virt-arm)                   echo "$arm -mcpu=cortex-a15" ;;
    virt-riscv)                 echo "$riscv -march=rv32imac" ;;
    esac
}

# machine BOARD: the emulator with it; -kernel or a loader goes behind
machine() {
    case $1 in
    virt-arm)   echo "qemu-system-arm -M virt -cpu cortex-a15 -m 64M" ;;
    virt-riscv) echo "qemu-system-riscv32 -M virt -bios none -m 64M" ;;
    *)          echo "qemu-system-arm -M $1" ;;
    esac
}

# build BOARD PROGRAM FLAGS...: $out/PROGRAM-BOARD.elf from the sources
build() {
    board=$1
    program=$2
    shift 2
    $(compiler "$board") -E -P -x c $(memory "$board") $here/board.ld \
        > "$out/$board.ld"
    $(compiler "$board") -std=c99 -Os -g -ffreestanding -nostdlib \
        -ffunction-sections -fdata-sections -Wl,--gc-sections $warn \
        -I"$header" "$@" -T "$out/$board.ld" $here/start.c $here/string.c \
        $here/"$program".c -lgcc -o "$out/$program-$board.elf"
}

# emulate BOARD ELF OPTIONS...: runs it; its text goes to stderr
emulate() {
    board=$1
    elf=$2
    shift 2
    case $board in
    virt-riscv) set -- "$@" -device "loader,file=$elf" ;;
    *)          set -- "$@" -kernel "$elf" ;;
    esac
    timeout 600 $(machine "$board") -nographic -nic none -monitor none \
        -serial none -semihosting-config enable=on,target=native \
        "$@" < /dev/null
}

# expect NAME COMMAND...: runs it, shows what it said, demands success
expect() {
    name=$1
    shift
    "$@" > "$out/log" 2>&1 || { cat "$out/log"; fail "$name: status $?"; }
    echo "$name: $(cat "$out/log")"
    passed=$((passed + 1))
}

boards="microbit lm3s6965evb mps2-an385 netduinoplus2 mps2-an386 mps2-an500
    mps2-an505 virt-riscv"

part_selftest() {
    echo "-- self-test on bare machines"
    for board in $boards; do
        build "$board" selftest
        expect "$(compiler "$board" | sed 's/.* -m[a-z]*=//') ($board)" \
            emulate "$board" "$out/selftest-$board.elf"
    done
}

for part in ${*:-selftest}; do
    "part_$part"
done
echo "targets: $passed passed, 0 failed"
