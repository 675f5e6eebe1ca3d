#!/bin/sh
# SPDX-License-Identifier: 0BSD
# The firmware as `demo --device` wants it: firmware.elf, which is beside DIR,
# in an emulated micro:bit that has its flash and its printer in DIR.  This
# process becomes the emulator, so that a kill -9 is a power cut.
#     device.sh --line TERMINAL --dir DIR --seed N [--away MS]
#               [--no-idem first|last]
set -eu

mode=0 away=0
while [ $# -gt 1 ]; do
    case $1 in
    --line) line=$2 ;;
    --dir)  dir=$2 ;;
    --seed) seed=$2 ;;
    --away) away=$2 ;;
    --no-idem) if [ "$2" = first ]; then mode=1; else mode=2; fi ;;
    esac
    shift 2
done
cd "$dir"

# Blank flash, whole or not at all: who is killed here may leave behind children
# that still write to a file of their own.
if [ ! -f flash ]; then
    head -c $((FLASH_PAGES * 1024)) /dev/zero | tr '\000' '\377' > blank.$$
    mv blank.$$ flash
fi

cp ../secret secret             # for who reads the journal

# When the demo ends, so does the emulator.
exec setpriv --pdeathsig KILL qemu-system-arm -M microbit -display none \
    -monitor none -serial "$line" -kernel ../firmware.elf \
    -device loader,file=flash,addr="$FLASH_AT",force-raw=on \
    -semihosting-config \
    enable=on,target=native,arg=firmware,arg="$seed",arg="$mode",arg="$away"
