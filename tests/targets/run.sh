#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Tests on emulated machines what idem.h promises to firmware.
#     run.sh [PART...]        same ports powercuts injected figures keys
# SHORT=1 takes fewer power cuts.
set -eu
cd "$(dirname "$0")/../.."

out=build/targets
here=tests/targets
mkdir -p "$out"
warn="-Wall -Wextra -Wpedantic -Wshadow -Werror"
passed=0

fail() {
    echo "FAILED: $*"
    exit 1
}

# The boards: processor, where code and memory are; and of their storage the
# driver, the bytes, where they are if in memory, and the granule if there is no
# controller that has it
boards="
microbit      cortex-m0  0x0        256K 0x20000000 16K  nvmc   8K 0x3C000
mps2-an385    cortex-m3  0x0        4M   0x20000000 4M
mps2-an386    cortex-m4  0x0        4M   0x20000000 4M
mps2-an500    cortex-m7  0x0        4M   0x20000000 4M
mps2-an505    cortex-m33 0x10000000 4M   0x38000000 4M
ast1030-evb   cortex-m4  0x0        256K 0x40000    256K spinor 4M
virt-arm      cortex-a15 0x40010000 1M   0x40200000 64K  nvmc   8K 0x40300000 8
virt-riscv    rv32imac   0x80000000 1M   0x80200000 64K  nvmc   8K 0x80300000 16
"

# of BOARD COLUMN: what that table has
of() {
    echo "$boards" | awk -v board="$1" -v column="$2" \
        '$1 == board { print $column }'
}

arm="arm-none-eabi-gcc --specs=nosys.specs -mthumb"
riscv="riscv64-unknown-elf-gcc --specs=picolibc.specs -mabi=ilp32
    -mcmodel=medany"

# compiler BOARD: with the flags of its processor
compiler() {
    case $1 in
    virt-riscv) echo $riscv -march=$(of "$1" 2) ;;
    *)          echo $arm -mcpu=$(of "$1" 2) ;;
    esac
}

# machine BOARD: the emulator with it; -kernel or a loader follows
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
    case $1 in atmega*) build_avr "$@"; return ;; esac
    shift 2
    $(compiler "$board") -E -P -x c -DCODE_AT=$(of "$board" 3) \
        -DCODE_SIZE=$(of "$board" 4) -DMEMORY_AT=$(of "$board" 5) \
        -DMEMORY_SIZE=$(of "$board" 6) $here/board.ld > "$out/$board.ld"
    $(compiler "$board") -std=c99 -Os -g -ffreestanding -nostartfiles \
        -ffunction-sections -fdata-sections -Wl,--gc-sections $warn \
        -I. "$@" -T "$out/$board.ld" $here/start.c $here/"$program".c \
        -o "$out/$program-$board.elf"
}

# emulate BOARD ELF OPTIONS...: runs it; its text goes to stderr
emulate() {
    board=$1
    elf=$2
    shift 2
    case $board in
    virt-riscv) set -- "$@" -nic none -device "loader,file=$elf" ;;
    virt-arm)   set -- "$@" -nic none -kernel "$elf" ;;
    *)          set -- "$@" -kernel "$elf" ;;
    esac
    timeout 600 $(machine "$board") -nographic -monitor none -serial none \
        "$@" < /dev/null
}

# build_avr MCU PROGRAM FLAGS...: the same for an AVR
build_avr() {
    mcu=$1
    program=$2
    shift 2
    avr-gcc -std=gnu99 -mmcu="$mcu" -Os -mrelax -mcall-prologues \
        -ffunction-sections -fdata-sections -Wl,--gc-sections $warn \
        "$@" -I. $here/uart.c $here/"$program".c \
        -o "$out/$program-$mcu.elf"
}

# simulate MCU ELF EEPROM CUT [NUMBER...]: runs it on an AVR
simulate() {
    mcu=$1
    elf=$2
    shift 2
    rm -f "$out/eeprom"
    timeout 600 "$out/simavr" "$elf" "$mcu" "$@"
}

# What runs on this machine: a plugin for QEMU, and the AVR.
tools() {
    cc -O2 -fPIC -shared $warn $here/instructions.c -o "$out/instructions.so"
    cc -O2 $warn $here/simavr.c -o "$out/simavr" -lsimavr -lelf
}

# expect NAME COMMAND...: runs it, shows what it printed, demands success
expect() {
    what=$1
    shift
    "$@" > "$out/log" 2>&1 || { cat "$out/log"; fail "$what"; }
    echo "$what: $(grep -a passed "$out/log" || echo passed)"
    passed=$((passed + 1))
}

# alike LINES COMMAND...: it prints that many lines, which all machines print,
# the bytes of journals among them, and ends well
alike() {
    lines=$1
    shift
    "$@" > "$out/lines" 2>&1 || { cat "$out/lines"; return 1; }
    tr -d '\r' < "$out/lines" | grep -ao '[a-z0-9]* [0-9a-f]\{16\}$' \
        > "$out/digests"
    head -n "$lines" tests/targets/golden/halfsiphash.txt |
        diff - "$out/digests"
}

# stm8 PROGRAM: builds it without a journal and runs it on an STM8
stm8() {
    for source in uart "$1"; do
        sdcc -mstm8 --model-large --std-c99 --opt-code-size -DIMAGE_ALONE \
            "-I$out/alone" -I. -c $here/$source.c \
            -o "$out/$source.rel" || return
    done
    sdcc -mstm8 --model-large --code-size 131072 "$out/uart.rel" \
        "$out/$1.rel" -o "$out/stm8.ihx" || return
    timeout 600 sstm8 -t STM8S208 -S "uart=1,in=/dev/null,out=$out/printed" \
        -e run "$out/stm8.ihx" < /dev/null || return
    cat "$out/printed"
    grep -q '^status 0' "$out/printed"
}

# (Other processes than this machine's: tests/format/format.sh.)
part_same() {
    echo "-- bare machines do the same, and write journals of the same bytes"
    tested="microbit mps2-an505 virt-riscv"
    [ "${SHORT:-}" = 1 ] || tested="$tested mps2-an385 mps2-an386 mps2-an500"
    for board in $tested; do
        build "$board" image
        expect "$(of "$board" 2), $board" alike 7 \
            emulate "$board" "$out/image-$board.elf" \
            -semihosting-config enable=on,target=native
    done
    build atmega2560 image
    expect atmega2560 alike 7 \
        simulate atmega2560 "$out/image-atmega2560.elf" "$out/eeprom" 0
    alone idem.h
    build atmega328p image -DIMAGE_ALONE "-I$out/alone"
    expect "atmega328p, without journal" alike 1 \
        simulate atmega328p "$out/image-atmega328p.elf" "$out/eeprom" 0
    [ "${SHORT:-}" = 1 ] || expect "stm8, without journal" alike 1 stm8 image
}

# with_medium BOARD PROGRAM FLAGS...: builds it with the storage that the board
# has
with_medium() {
    case $1 in
    atmega*) build "$@" -Iexamples $here/medium_eeprom.c ;;
    *)  granule=$(of "$1" 10)
        build "$@" -Iexamples "$here/medium_$(of "$1" 7).c" \
            -DNVMC_AT="$(of "$1" 9)" \
            ${granule:+-DNVMC_NONE -DNVMC_GRANULE=$granule} ;;
    esac
}

# medium BOARD: makes the blank image of its storage, $case/flash.bin; no file
# is an erased EEPROM
medium() {
    rm -rf "$case"
    mkdir -p "$case"
    case $1 in
    atmega*) ;;
    *)  head -c "$(of "$1" 8)" /dev/zero | tr '\0' '\377' > "$case/flash.bin" ;;
    esac
}

# start BOARD FROM BOOT CUT: runs $program in $case until it ends, or until
# instruction (AVR: cycle) CUT if that is not 0.  What it prints is added to
# $case/printed, what it took goes to $case/took.
start() {
    board=$1
    elf=$PWD/$out/$program-$board.elf
    case $board in
    atmega*)
        simulate "$board" "$elf" "$case/flash.bin" "$4" "$2" "$3" \
            > "$case/took" || true
        cat "$case/took" >> "$case/printed"
        return ;;
    esac
    plugin=$PWD/$out/instructions.so
    [ "$4" = 0 ] || plugin=$plugin,kill=$4,settle=$settle
    set -- -plugin "$plugin" \
        -semihosting-config "enable=on,target=native,arg=it,arg=$2,arg=$3"
    at=$(of "$board" 9)
    case $board in
    ast1030-evb) set -- "$@" -drive if=mtd,format=raw,file=flash.bin ;;
    *)  set -- "$@" -device "loader,file=flash.bin,force-raw=on,addr=$at" ;;
    esac
    # The shell reports killed children.
    (cd "$case" && emulate "$board" "$elf" "$@" 2>> printed > took) \
        2> /dev/null ||
        true
}

# audited FILE [OPTIONS]: awk's verdict on what the firmware printed
audited() {
    file=$1
    shift
    awk "$@" -f $here/audit.awk "$file"
}

# suffer BOARD N...: runs the firmware from blank storage; the first start ends
# before instruction N, the second before the next N, ..., the last ends itself
suffer() {
    board=$1
    shift
    medium "$board"
    : > "$case/printed"
    boot=0
    for last in "$@" 0; do
        from=$(audited "$case/printed" -v ask=next)
        start "$board" "$from" "$boot" "$last"
        ! grep -q '^end \.$' "$case/printed" || return 0
        echo " cut" >> "$case/printed"
        boot=$((boot + 1))
    done
}

# soon K: where the i-th case is cut in its K-th restart
soon() {
    echo $((1 + (i * 104729 + $1 * 15485863) % (total / 20)))
}

# powercuts BOARD COUNT SETTLE FLAGS...: cuts a firmware at COUNT instructions,
# evenly spread over its run; every other one is cut again soon after it is
# restarted, every eighth six times
powercuts() {
    board=$1
    count=$2
    settle=$3
    shift 3
    case=$out/cut
    unit=instructions
    [ "${board#atmega}" = "$board" ] || unit=cycles
    program=firmware
    with_medium "$board" firmware "$@"
    suffer "$board"
    audited "$case/printed" ||
        { cat "$case/printed"; fail "$board: without a cut"; }
    total=$(sed -n 's/^instructions //p; s/^cycles //p' "$case/took")
    rm -f "$out/cuts" "$out/torn"
    i=0
    while [ "$i" -lt "$count" ]; do
        n=$((total * (2 * i + 1) / (2 * count) + i * 7919 % 1000))
        again=
        case $((i % 8)) in
        1 | 3 | 5) again=$(soon 1) ;;
        7)         again="$(soon 1) $(soon 2) $(soon 3) $(soon 4) $(soon 5)" ;;
        esac
        suffer "$board" "$n" $again
        audited "$case/printed" ||
            fail "$board: cut at $unit $n $again, see $case/printed"
        audited "$case/printed" -v ask=cuts >> "$out/cuts"
        grep -a '^torn' "$case/printed" >> "$out/torn" || true
        i=$((i + 1))
    done
    echo "$board${*:+ $*}: $total $unit," \
        "cut $(wc -l < "$out/cuts") times, during" \
        $(sort "$out/cuts" | uniq -c | awk '{ print $2, $1 }')
    [ ! -s "$out/torn" ] ||
        echo "    $(wc -l < "$out/torn") bytes of EEPROM torn"
    [ "$(wc -l < "$out/cuts")" -ge "$count" ] || fail "$board: not cut"
    passed=$((passed + 1))
}

part_powercuts() {
    echo "-- power cuts of a running firmware, audited from outside"
    count=250
    [ "${SHORT:-}" != 1 ] || count=8
    powercuts microbit $count 0
    powercuts virt-arm $count 0
    powercuts virt-riscv $count 0
    powercuts atmega2560 $count 0
    # QEMU writes that file later, by itself.
    powercuts ast1030-evb $count 200
}

# refused NAME COMPILER... < SOURCE: it compiles, but not with its mistake: an
# array's name or size is the cause
refused() {
    what=$1
    shift
    cat > "$out/refused.c"
    for mistake in 0 1; do
        status=0
        "$@" -std=gnu99 $warn -DMISTAKE=$mistake -I. -Iexamples -I$here/vendor \
            -c "$out/refused.c" -o "$out/o" > "$out/log" 2>&1 || status=1
        [ $status = $mistake ] || { cat "$out/log"; fail "refused: $what"; }
    done
    grep -q 'is negative' "$out/log" || { cat "$out/log"; fail "$what"; }
    echo "refused when compiling: $what"
    passed=$((passed + 1))
}

# compile_port FILE FLAGS...: the use of one port, or of several
compile_port() {
    file=$1
    shift
    $arm -mthumb -mcpu=cortex-m4 -std=gnu99 -Os $warn "$@" -I. -Iexamples \
        -I$here/vendor -c $here/vendor/$file.c -o "$out/$file.o"
}

# compile_stm32 FLAGS...: with the handler's file, in one program
compile_stm32() {
    compile_port stm32 "$@" && compile_port stm32_it "$@" &&
        $arm -nostdlib -r "$out/stm32.o" "$out/stm32_it.o" \
            -o "$out/linked.o" &&
        [ "$(arm-none-eabi-nm "$out/linked.o" | grep -c flash_state)" = 1 ]
}

part_ports() {
    echo "-- ports compile, and those that can run here pass their check"
    expect "STM32L4" compile_stm32
    for family in G0 G4 WB U5; do
        expect "STM32$family" compile_stm32 -DSTAND_IN_$family
    done
    expect "the other ports" compile_port ports
    expect "RP2350" compile_port ports -DSTAND_IN_RP2350
    for bits in 32 64; do
        expect "ticks of $bits bits" compile_port ports -DSTAND_IN_HZ=100 \
            -DSTAND_IN_WIDTH=TICK_TYPE_WIDTH_${bits}_BITS
    done
    mkdir -p "$out/esp/freertos"
    for name in FreeRTOS semphr task; do
        echo "#include <$name.h>" > "$out/esp/freertos/$name.h"
    done
    expect "ESP32" compile_port ports -DESP_PLATFORM -DSTAND_IN_ESP32 \
        -I"$out/esp"
    expect "the other ports, RISC-V" $riscv -march=rv32imac_zicsr -std=c99 \
        $warn -I. -Iexamples -I$here/vendor -c $here/vendor/ports.c \
        -o "$out/ports.o"

    m4="$arm -mcpu=cortex-m4"
    tick='#include "port/freertos.h"'
    refused "FreeRTOS ticks of 16 bits" $m4 << END
#define configUSE_16_BIT_TICKS MISTAKE
$tick
END
    refused "FreeRTOS ticks of 1024 Hz" $m4 << END
#define STAND_IN_HZ (1000 + 24 * MISTAKE)
$tick
END
    while read -r before header storage; do
        refused "$storage" $m4 -include "$before" << END
#include "port/$header"
// Four records with the longer response are more than a sector.
#define SECTORS(size, granule)                                                 \
    IDEM_SECTORS(32, 16, MISTAKE ? 4000 : 8, 0, size, granule)
extern const idem_storage storage;
const idem_storage storage = $storage;
END
    done << 'END'
idem.h spi_nor.h SPI_NOR_STORAGE(NULL, SECTORS(4096, 1))
stm32l4xx_hal.h stm32_flash.h STM32_FLASH_STORAGE(NULL, SECTORS(2048, 8))
idem.h zephyr.h ZEPHYR_STORAGE(NULL, 4096, SECTORS(4096, 8), 8)
idem.h nrf_nvmc.h NRF_NVMC_STORAGE(0x76000, SECTORS(4096, 4))
idem.h nrf_nvmc.h NRF_NVMC_STORAGE(0x76000 + MISTAKE * 1024, 8)
idem.h rp2040_flash.h RP2040_FLASH_STORAGE(0x100000, SECTORS(4096, 1))
idem.h rp2040_flash.h RP2040_FLASH_STORAGE(0x1F5000, 8 + MISTAKE)
END
    for storage in "MISTAKE ? 0 : 1, 511, 8" "1, 511 + MISTAKE, 8" \
        "1, 511, MISTAKE ? 0 : 8"; do
        refused "EEPROM, $storage" avr-gcc -mmcu=atmega2560 << END
#include "port/avr_eeprom.h"
extern const idem_storage storage;
const idem_storage storage = AVR_EEPROM_STORAGE($storage);
END
    done
    case=$out/port
    settle=0
    program=portcheck
    for board in microbit virt-arm virt-riscv ast1030-evb atmega2560; do
        medium "$board"
        with_medium "$board" portcheck
        start "$board" 0 0 0
        expect "$board" grep -a 'port check passed' "$case/printed"
    done
}

# injected WHAT: the audit of power cuts must find it.  It is not found if it does
# not even compile or run: set -e does not hold within "if".
injected() {
    with_medium microbit firmware "-DINJECT_$1"
    # Enough cuts for some in each kind of call, however long the code is; the
    # first that shows the fault ends them.
    if (powercuts microbit 100 0 "-DINJECT_$1") > "$out/log" 2>&1; then
        fail "injected, not found: $1"
    fi
    if ! grep -q '^violation' "$out/log" ||
        grep -q '^FAILED.*without a cut' "$out/log"; then
        tail -n 20 "$out/log"
        fail "injected: $1: something else"
    fi
    echo "injected, found: $1: $(sed -n 's/^violation: //p' "$out/log" | head -n 1)"
    passed=$((passed + 1))
}

part_injected() {
    echo "-- the audit finds faults that are injected around the header"
    injected LATE
    injected AGAIN
    injected BLANK
}

# How many keys fit an EEPROM or FRAM
part_keys() {
    "${CC:-cc}" -std=c99 $warn -I. $here/keys.c -o "$out/keys"
    "$out/keys" | tee "$out/keys.md"
    sh tests/tools/readme.sh keys "$out/keys.md"
}

. $here/figures.sh

tools
for part in ${*:-same ports powercuts injected figures keys}; do
    command -v "part_$part" > /dev/null ||
        fail "no part $part: same ports powercuts injected figures keys"
    "part_$part"
done
echo "targets: $passed passed, 0 failed"
