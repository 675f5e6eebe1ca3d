#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Builds board_main.c for a nRF51 and runs the demo with it, emulated.  The chip
# has 256 KB of flash, the code in front, and 16 KB of RAM, for 140 commands;
# the program that reads the journal must have the same sizes and hash.
set -eu

export FLASH_AT=0x18000 FLASH_PAGES=64
serial=examples/serial
board=tests/targets
here=tests/demo/firmware
out=${B:-build}/firmware
warn="-Wall -Wextra -Wpedantic -Wshadow -Werror"
sizes="-DDEVICE_KEYS=140 -DFLASH_SECTOR=1024 -DFLASH_GRANULE=4
    -DFLASH_SECTORS=$FLASH_PAGES -DIDEM_HASH=IDEM_HASH_HALFSIPHASH"
chip="-DCODE_AT=0 -DCODE_SIZE=96K -DMEMORY_AT=0x20000000 -DMEMORY_SIZE=16K
    -DNVMC_AT=$FLASH_AT -DNVMC_PAGES=$FLASH_PAGES -DNVMC_FILE=\"flash\"
    -DBOARD_INTERRUPT=2"
arm="arm-none-eabi-gcc -mthumb -mcpu=cortex-m0"
mkdir -p "$out"
head -c 16 /dev/urandom >"$out/secret"
secret=$(od -An -v -tu1 "$out/secret" | tr -s ' \n' ',,')
secret=${secret#,}

$arm -E -P -x c $chip $board/board.ld > "$out/board.ld"
$arm -std=c99 -Os -g -ffreestanding -nostdlib -ffunction-sections \
    -fdata-sections -Wl,--gc-sections $warn $sizes $chip \
    "-DDEVICE_SECRET=$secret" \
    -I. -I$serial -I$board -T "$out/board.ld" \
    $here/board_main.c $here/board_flash.c $serial/naive.c \
    $serial/protocol.c $board/medium_nvmc.c $board/start.c -lc -lgcc \
    -o "$out/firmware.elf"

# host NAME SOURCE...: a program that runs here
host() {
    name=$1
    shift
    ${CC:-cc} -std=c99 -Og -g $warn -D_XOPEN_SOURCE=700 -I. "$@" \
        -o "$out/$name"
}

host controller $serial/controller.c $serial/traffic.c $serial/protocol.c \
    $serial/host.c
host demo $sizes $serial/demo.c $serial/run.c $serial/line.c $serial/audit.c \
    $serial/traffic.c $serial/device.c $serial/flash_file.c \
    $serial/protocol.c $serial/host.c

count=140
[ "${SHORT:-}" != 1 ] || count=100
for numbers in 0 1; do
    "$out/demo" --device $here/device.sh --count $count \
        --early 300 --numbers $numbers $([ $numbers = 0 ] || echo --only 0)
done
