#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Runs a 32-bit program; under qemu-i386 where the kernel runs none.
#     narrow.sh PROGRAM ARGUMENT...
status=0
"$@" || status=$?
[ "$status" != 126 ] || exec qemu-i386 "$@"
exit "$status"
