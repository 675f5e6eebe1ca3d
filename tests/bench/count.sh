#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Instructions a step of each table in build/bench, as callgrind counts them:
# the same on every run.  With --short three tables, one workload.
set -eu

bench=${B:-build}/bench
command -v valgrind >/dev/null || { echo "skipped: no valgrind"; exit 0; }

# count WORKLOAD KEYS SUBJECT: instructions of one step
count() {
    valgrind --tool=callgrind --toggle-collect=timed \
        --callgrind-out-file=/dev/null "$bench" --one "$1" "$2" "$3" 2>&1 |
        awk '/Collected/ { all = $4 }
             / steps, /  { steps = $(NF - 5) }
             END         { printf " %.0f |", all / steps }'
}

workloads='M1 M2 absent'
"$bench" --names > "${B:-build}/names"
if [ "${1:-}" = --short ]; then
    workloads=M1
    grep -xE 'idem.h|khash|uthash' "${B:-build}/names" > "${B:-build}/some"
    mv "${B:-build}/some" "${B:-build}/names"
fi

printf '\nInstructions a step, N = 1000\n\n| |'
for workload in $workloads; do printf ' %s |' "$workload"; done
printf '\n|---|'
for workload in $workloads; do printf -- '--:|'; done
printf '\n'
while read -r subject; do
    printf '| %s |' "$subject"
    for workload in $workloads; do
        count "$workload" 1000 "$subject" </dev/null
    done
    printf '\n'
done < "${B:-build}/names"
