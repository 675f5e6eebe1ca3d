#!/bin/sh
# SPDX-License-Identifier: 0BSD
# A journal in a file, and real processes: the firmware of tests/targets, here a
# process, is killed at each of its system calls (strace) and at any instant.
# Then it is started again, and what it ever logged is audited.  (Calls that
# fail, creators that meet or die, a second process, and a file that is replaced
# or full: tests/unit/file.c shows them.)
# SHORT=1 goes through it once, in seconds, in memory; else many times, on disk.
set -eu

rounds=20
home=${TMPDIR:-/tmp}
if [ "${SHORT:-}" = 1 ]; then
    rounds=1
    [ ! -w /dev/shm ] || home=/dev/shm
fi
dir=$(mktemp -d "$home/idem-file-XXXXXX")
dir=$(cd "$dir" && pwd -P)              # strace compares paths as text
trap 'rm -rf "$dir"' EXIT
journal=$dir/journal
ledger=$dir/ledger                      # what the worker logged
boots=0
passed=0
export JOURNAL="$journal"

mkdir -p build
worker=build/file_worker
${CC:-cc} ${CPPFLAGS:-} -I. -Itests/targets -std=c99 -O1 -g -Wall -Wextra \
    -Wpedantic -Wshadow -Werror tests/file/medium_file.c tests/targets/host.c \
    tests/targets/firmware.c -o $worker

fail() {
    echo "FAILED: $*"
    [ ! -s "$dir/out" ] || cat "$dir/out"
    exit 1
}

# run COMMAND...: its exit status is in $status, what it prints in $dir/out.  (A
# shell of its own, for it prints it when a command is killed.)
run() {
    status=0
    ( "$@" > "$dir/out" 2>&1; exit $? ) 2> "$dir/shell" || status=$?
}

# expect STATUS WHEN: of the last run
expect() {
    [ "$status" = "$1" ] || fail "$2: exit status $status, not $1"
    passed=$((passed + 1))
}

audit() { awk "$@" -f tests/targets/audit.awk "$ledger"; }
log() { "$@" >> "$ledger"; }

# work COUNT [BEFORE IT...]: that many commands more
work() {
    count=$1
    shift
    boots=$((boots + 1))
    touch "$ledger"
    run log "$@" $worker "$(audit -v ask=next)" $boots "$count"
    echo " cut" >> "$ledger"
}

# Nothing that was ever logged is broken now.
check() {
    work 1
    expect 0 "$1"
    run audit
    expect 0 "$1, the audit"
}

# killed_at CALL N COMMAND...: at the N-th CALL on the journal, its directory or
# the ledger
killed_at() {
    spec=$1:signal=KILL:when=$2
    call=$1
    shift 2
    strace -qq -o "$dir/log" -P "$journal" -P "$dir" -P "$ledger" \
        -e "trace=$call" -e "inject=$spec" "$@"
}

work_is_killed() {
    killed=0
    for call in pwrite64 fdatasync pread64 write fsync flock openat newfstatat \
        close; do
        n=1
        while :; do
            work 2 killed_at "$call" $n
            [ "$status" = 137 ] || break
            killed=$((killed + 1))
            n=$((n + 1))
            # Every other time it is killed again before it could look back.
            [ $((n % 2)) = 0 ] || check "after being killed at $call $n"
        done
        expect 0 "work to be killed at $call $n"
        check "after being killed at $call"
    done
    [ "$killed" -ge 60 ] || fail "killed at $killed calls only"
    echo "killed at each of $killed calls"
}

work_is_killed_anywhere() {
    n=0
    while [ $n -lt 30 ]; do
        boots=$((boots + 1))
        $worker "$(audit -v ask=next)" $boots 100000 >> "$ledger" &
        pid=$!
        sleep "0.0$((n * 7 % 10))$((n * 3 % 10))"
        kill -9 $pid 2> /dev/null || :
        { wait $pid; } 2> /dev/null || status=$?
        [ "$status" = 137 ] || fail "killed anywhere, $n: $status"
        echo " cut" >> "$ledger"
        n=$((n + 1))
        [ $((n % 3)) != 0 ] || check "after being killed anywhere, $n"
    done
    echo "killed anywhere: $n times"
}

traced=1
if ! strace -qq -o "$dir/log" true 2> /dev/null; then
    echo "file: SKIPPED what takes strace, which is missing or may not trace:" \
        "sh tests/tools/deps.sh strace"
    traced=0
fi

round=0
events=0
while [ $round -lt $rounds ]; do
    round=$((round + 1))
    rm -f "$journal" "$ledger"
    [ $traced = 0 ] || work_is_killed
    work_is_killed_anywhere
    events=$((events + $(wc -l < "$ledger")))
done
echo "file: $passed passed, 0 failed; $events events audited"
