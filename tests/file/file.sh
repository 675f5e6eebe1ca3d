#!/bin/sh
# SPDX-License-Identifier: 0BSD
# A journal in a file, and real processes: the firmware of tests/targets, here a
# process, is killed at each of its system calls (strace) and at any instant; it
# meets others of its kind.  Then it is started again, and what it ever logged is
# audited.  (Calls that fail, and creators that die, tests/unit/file.c shows.)
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

# build NAME SOURCE: a program that has the journal for its storage
build() {
    ${CC:-cc} ${CPPFLAGS:-} -I. -Itests/targets -std=c99 -O1 -g -Wall -Wextra \
        -Wpedantic -Wshadow -Werror tests/file/medium_file.c \
        tests/targets/host.c "$2" -o "$1"
}

mkdir -p build
worker=build/file_worker
opener=build/file_open
build $worker tests/targets/firmware.c
build $opener tests/file/open.c
size=$($opener 1)                       # of the journal

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

# The file has nothing but zeros, and is not too long.
blank() {
    head -c "$size" /dev/zero | cmp -n "$(wc -c < "$journal")" - "$journal" ||
        fail "$1: the file is not zeros"
}

# The file is new: zeros, and whole.
newborn() {
    head -c "$size" /dev/zero | cmp -s - "$journal" ||
        fail "$1: the file is not zeros"
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

# ----------------------------------------------------------------- creation

creation_is_limited() {
    rm -f "$journal"
    run sh -c "trap '' XFSZ; ulimit -f 8; exec $opener"
    expect 3 "a file size limit"
    blank "a file size limit"
    run sh -c "ulimit -f 8; exec $opener"
    expect 153 "a file size limit, by signal"
    run $opener
    expect 0 "opening after a file size limit"
    newborn "a file size limit"
}

# ----------------------------------------------------------------- others

# hold NUMBER: a worker in the background, until descriptor 3 is closed
hold() {
    $opener 2 < "$dir/fifo" > "$dir/hold$1" &
    holders="$holders $!"
}

two_processes() {
    holders=
    rm -f "$dir/fifo"
    mkfifo "$dir/fifo"
    hold 1
    exec 3> "$dir/fifo"
    until [ -s "$dir/hold1" ]; do sleep 0.01; done
    run $opener
    expect 2 "a second process"
    work 1
    expect 2 "a second process that works"
    exec 3>&-
    wait $holders || fail "the first of two processes did not end well"
    run $opener
    expect 0 "the second process, when the first is gone"

    holders=
    hold 1
    exec 3> "$dir/fifo"
    until [ "$(cat "$dir/hold1")" = "0 done" ]; do sleep 0.01; done
    ( kill -9 $holders; wait $holders ) 2> /dev/null || :
    wait $holders 2> /dev/null || :
    run $opener
    expect 0 "the second process, when the first is killed"
    exec 3>&-
}

# Who works on a journal in whose place another is put stops by itself, and the
# other can be opened.
work_is_replaced() {
    rm -f "$journal" "$ledger"
    touch "$ledger"
    first=$(audit -v ask=next)
    boots=$((boots + 1))
    $worker "$first" $boots 1000000 >> "$ledger" 2> "$dir/out" &
    pid=$!
    until grep -q '^done' "$ledger" || ! kill -0 $pid 2> /dev/null; do
        sleep 0.01
    done
    cp "$journal" "$dir/copy"
    mv "$dir/copy" "$journal"
    status=0
    wait $pid || status=$?
    expect 3 "working on a journal that is replaced"
    run $opener
    expect 0 "opening the one that is there now"
}

creators_race() {
    round=0
    while [ $round -lt $((rounds * 5)) ]; do
        round=$((round + 1))
        rm -f "$journal" "$dir"/hold*
        holders=
        for i in 1 2 3 4 5 6 7 8; do hold $i; done
        exec 3> "$dir/fifo"
        until [ "$(cat "$dir"/hold* 2> /dev/null | wc -l)" = 8 ]; do
            sleep 0.01
        done
        [ "$(grep -c '^0 done' "$dir"/hold* | grep -c ':1')" = 1 ] &&
            [ "$(grep -c '^-7 ' "$dir"/hold* | grep -c ':1')" = 7 ] ||
            { cat "$dir"/hold*; fail "of 8 creators not one has the file"; }
        newborn "8 creators"
        exec 3>&-
        for holder in $holders; do
            wait "$holder" || [ $? = 2 ] ||
                fail "one of 8 creators has not the file and was not refused"
        done
        passed=$((passed + 1))
    done
    echo "of 8 creators one got the file: $round times"
}

# ----------------------------------------------------------------- at work

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

# ----------------------------------------------------------------- all of it

traced=1
if ! strace -qq -o "$dir/log" true 2> /dev/null; then
    echo "file: SKIPPED what takes strace, which is missing or may not trace:" \
        "sh tests/tools/deps.sh strace"
    traced=0
fi

creation_is_limited
two_processes
work_is_replaced
creators_race
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
