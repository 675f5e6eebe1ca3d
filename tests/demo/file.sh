#!/bin/sh
# SPDX-License-Identifier: 0BSD
# examples/file.c twice with one command, which is executed once; and what
# examples/inspect.c says of the journal then, and when a record in it is lost.
set -eu

B=${B:-build}
rm -f "$B/file.journal"
for again in 1 2; do
    "$B/file" "$B/file.journal" 42 'pour 5 ml'
done
"$B/inspect" "$B/file.journal"

for key in 43 44; do
    "$B/file" "$B/file.journal" $key 'pour 5 ml' > "$B/file.said"
done
# In the second sector, which the first run began: behind header and seal.
printf 'damaged' |
    dd of="$B/file.journal" bs=1 seek=4160 conv=notrunc 2> "$B/file.said"
"$B/inspect" "$B/file.journal" > "$B/file.said" && exit 1
grep -q 'lost 1' "$B/file.said"
grep 'in doubt: unknown keys, for 86' "$B/file.said"
