#!/usr/bin/env python3
# SPDX-License-Identifier: 0BSD
"""ahead.py CLOCK SECONDS: sets the clocks of the programs that have the file
CLOCK (ahead.c) ahead by that more."""
import struct
import sys


def set_ahead(clock, seconds):
    with open(clock, "r+b") as file:
        us, = struct.unpack("q", file.read(8))
        file.seek(0)
        file.write(struct.pack("q", us + int(1000000 * seconds)))


if __name__ == "__main__":
    set_ahead(sys.argv[1], float(sys.argv[2]))
