#!/bin/sh
# SPDX-License-Identifier: 0BSD
# examples/file.c twice with one command, which is executed once; and what
# examples/inspect.c says of the journal then.
set -eu

B=${B:-build}
rm -f "$B/file.journal"
for again in 1 2; do
    "$B/file" "$B/file.journal" 42 'pour 5 ml'
done
"$B/inspect" "$B/file.journal"
