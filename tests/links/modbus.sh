#!/bin/sh
# SPDX-License-Identifier: 0BSD
# examples/modbus: registers that are written in every way; numbers that come
# late, too late, or of another epoch; and masters behind a network that
# swallows and tears, while they and the gateway are killed.  Needs gateway,
# master and statuses in $B/modbus.
set -u

. tests/servers/station.sh
name=modbus
port=$(free_port)
server="$B/modbus/gateway --port $port --journal journal --log log"

ask() { python3 "$tests/links/registers.py" "$port" "$@" | paste -sd '|' -; }

answers() {
    name=answers
    "$B/modbus/statuses" || fail "a status of the gateway is wrong: see above"
    start
    # epoch, sequence, ml; then status, retry, reason
    is "$(ask "0 7 1 5" "0 7 1 5" "0 7 3 4" "0 7 2 1")" "1|1|1|1"
    is "$(ask "0 7 1 6" "0 7 9 0" "0 7 0 5" "0 7 9 1001")" "3|3|3|3"
    is "$(ask "1 7 1 6" "0 8 1 1" "0 7 3 4" "0 7 4 4" "0 8 1 1")" "1|1|1|4|1"
    # In two messages, in part, with one register too many, elsewhere
    is "$(ask "raw 10 0 2 0 7" "raw 10 0 4 0 7 0 1" "raw 10 0 6 0 7 0 1 5 0" \
        "raw 10 1 5 0 7 0 1 5" "raw 10 256 5 0 7 0 1 5")" \
        "exception 2|exception 2|exception 2|exception 2|exception 2"
    is "$(ask "raw 6 4 5" "raw 5 0 1")" "exception 1|exception 1"
    # Read in the same message: what is not there, none, too much
    is "$(ask "raw 23 256 7 0 7 0 5 5" "raw 23 250 7 0 7 0 5 5" \
        "raw 23 16 0 0 7 0 5 5" "raw 23 16 126 0 7 0 5 5")" \
        "exception 2|exception 2|exception 2|exception 2"
    # Who takes long over a message is not waited for.
    is "$(ask slow)" closed
    is "$(grep -c poured "$work/answers/log")" 5
    stop
    echo "answers: a number pours once, and half a number is none"
}

# An outcome is forgotten after its retention, its number never: not by a
# gateway that was killed either.
forgotten() {
    name=forgotten
    start --retention 1
    is "$(ask "0 7 1 5" "0 7 2 5")" "1|1"
    wait_for forgot
    crash_server
    start --retention 1
    is "$(ask "0 7 1 5" "0 7 2 5" "0 7 3 5")" "4|4|1"
    is "$(grep -c poured "$work/forgotten/log")" 3
    stop
    echo "forgotten: too old, and not executed"
}
forgot() { [ "$(ask "0 7 1 5")" = 4 ]; }

# One window has used up its quota; the other has not.
quota() {
    name=quota
    start
    is "$(ask flood | cut -d '|' -f 200,201,202)" "1|2|2"
    is "$(ask "1 7 1 5" "0 7 1 1")" "1|1"
    stop
    echo "quota: a window that is full leaves room for the others"
}

# Masters that lost power have left their connections open, perhaps as many as
# the gateway may have files.
crowd() {
    name=crowd
    echo 'ulimit -n $1; shift; exec "$@"' >"$work/few-files"
    for files in 100 34; do
        run_with="sh $work/few-files $files"
        start
        got=$(ask "crowd $daemon 0 7 $files 5")
        is "${got% *}" 1
        [ "${got#* }" -lt 60 ] || fail "crowd: ${got#* } files are open"
        is "$(ask "0 7 $files 5" "0 7 $((files + 1)) 5")" "1|1"
        stop
    done
    run_with="sh $work/few-files 20"
    refuses "poll: Invalid argument"
    unset run_with
    # Who begins a message does not make the pump run on: while the gateway
    # waits for 20 of them it stops, and pours for the next window.
    start --ml-ms 100
    is "$(ask "mute $daemon 0 7 3 5")" 1
    is "$(grep -c "begins 01" "$work/crowd/log")" 1
    wait_for next_poured
    # Nor does who does not read his answers, or what libmodbus calls an error:
    # it waits half a second after that.
    is "$(ask "deaf 0 7 4 5")" 1
    is "$(ask "none 100")" "exception 3"
    stop
    echo "crowd: 200 silent connections, and one that is served"
}

next_poured() { [ "$(ask "1 7 3 5")" = 1 ]; }

interrupted() {
    name=interrupted
    start --ml-ms 60000
    is "$(ask "0 7 1 5" "0 7 1 5" "0 7 2 5" "1 7 1 5")" "2|2|2|2"
    crash_server
    start
    is "$(ask "0 7 1 5" "0 7 2 5" "1 7 1 5")" "4|1|1"
    # A newer epoch while the pump runs for an older one
    stop
    start --ml-ms 1000
    is "$(ask "once 0 7 3 1" "once 0 8 1 1")" "2|2"
    wait_for begun_anew
    stop
    is "$(grep -c poured "$work/interrupted/log")" 4
    echo "interrupted: look at the cup"
}

# A signal ends the gateway when its pump has stopped.
ended() {
    name=ended
    start_clocked --ml-ms 1000000
    is "$(ask "once 0 7 1 2")" 2
    kill -TERM "$daemon"
    is "$(ask "once 0 7 1 2" "once 1 7 1 2")" "2|2"
    ahead ended 2000
    stop
    start
    is "$(ask "0 7 1 2" "1 7 1 2")" "1|1"
    is "$(grep -c begins "$work/ended/log")" 2
    stop
    echo "ended: a signal ends it after its pour"
}

suspended() {
    runs_on ask "once 0 7 1 1"
    echo "suspended: its pump has stopped a day later"
}

# master COMMANDS [PORT WINDOW]: with these and its number; prints its status
master() {
    printf "$1" >"$work/lines/commands"
    timeout 20 "$B/modbus/master" "${2:-$port}" "${3:-0}" "$work/lines/number" \
        "$work/lines/commands" >"$work/lines/printed" 2>>"$work/lines.log"
    echo $?
}

# What is no line of commands is not taken for one, nor for the end of them.
lines() {
    name=lines
    start
    # The last one ends too soon: it was 25.
    for text in '65541\n7\n' '5 7\n7\n' 'x\n7\n' '-5\n7\n' '0\n7\n' '\n7\n' \
        '00000000000000000005\n7\n' 2
    do
        rm -f "$work/lines/number"
        is "$text: $(master "5\n$text") $(wc -l <"$work/lines/printed")" \
            "$text: 2 1"
    done
    for words in "x 0" "70000 0" "$port 8" "$port -1"; do
        is "$words: $(master '5\n' $words)" "$words: 2"
    done
    # Nor is a number that is damaged, or has lost its end, sent.
    poured=$(grep -c poured "$work/lines/log")
    for text in '7 1 65541\n' '4294967303 1 5\n' '7 4294967297 5\n' '7 1 -5\n' \
        '7 1 0\n' '7 0 5\n' '7 1 25' '7 1 5 \n' '07 1 5\n' '7 1\n' '' \
        '7 1 5\n7 2 5\n' '7 1 5\n\0'
    do
        printf "$text" >"$work/lines/number"
        is "$text: $(master '') $(wc -l <"$work/lines/printed")" "$text: 2 0"
    done
    is "$(grep -c poured "$work/lines/log")" "$poured"
    # Other commands would be passed over as far as the number has come.
    rm -f "$work/lines/number"
    is "$(master '5\n6\n')" 0
    for text in '9\n' '5\n7\n' ''; do
        is "$text: $(master "$text")" "$text: 2"
    done
    is "$(master '5\n6\n7\n')" 0
    is "$(wc -l <"$work/lines/printed")" 2
    # Two number files that are made in a moment do not share numbers.
    poured=$(grep -c poured "$work/lines/log")
    echo 5 >"$work/lines/commands"
    for number in one two; do
        "$B/modbus/master" "$port" 0 "$work/lines/$number" \
            "$work/lines/commands" >"$work/lines/printed" \
            2>>"$work/lines.log" || fail "lines: $number"
    done
    is "$(grep -c poured "$work/lines/log")" $((poured + 2))
    # Nor do two masters share one: they would make it with two epochs.
    rm -f "$work/lines/number"
    "$B/modbus/master" 1 0 "$work/lines/number" "$work/lines/commands" \
        >"$work/lines/printed" 2>>"$work/lines.log" &
    children=$!
    wait_for test -s "$work/lines/number"
    is "$(master '5\n')" 2
    grep -q "number: another master has it" "$work/lines.log" ||
        fail "lines: two masters have one number"
    signal=KILL
    end "$children"
    children=
    is "$(master '5\n')" 0
    # Another device, which does not know function 23, will never pour.
    python3 -c 'import socket
with socket.create_server(("127.0.0.1", 0)) as other:
    print(other.getsockname()[1], flush=True)
    link, _ = other.accept()
    asked = link.recv(260)
    link.sendall(asked[:4] + b"\0\3" + asked[6:7] + b"\x97\1")
    link.recv(260)' >"$work/lines/other" &
    children=$!
    wait_for test -s "$work/lines/other"
    timeout 5 "$B/modbus/master" "$(cat "$work/lines/other")" 0 \
        "$work/lines/number" "$work/lines/commands" >"$work/lines/printed" 2>&1
    is "$? $(cat "$work/lines/printed")" "2 master: gateway: Illegal function"
    await_children
    # A file system that cannot sync a folder is good enough.
    preloaded folder <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>
int fsync(int fd)
{
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    struct stat is;

    if (fstat(fd, &is) != 0 || !S_ISDIR(is.st_mode))
        return real(fd);
    errno = EINVAL;
    return -1;
}
END
    echo 5 >"$work/lines/commands"
    rm "$work/lines/number"
    LD_PRELOAD=$work/folder.so "$B/modbus/master" "$port" 0 \
        "$work/lines/number" "$work/lines/commands" 2>>"$work/lines.log" \
        >"$work/lines/printed" || fail "lines: a folder that cannot be synced"
    stop
    echo "lines: a number from 1 to 1000 each"
}

begun_anew() { [ "$(ask "once 0 8 1 1")" = 1 ]; }

# Lines "ID ML poured" or "ID ML interrupted" of what the masters printed
printed() {
    for w in 0 1 2; do
        sort -u "$work/chaos/answers-$w" |
            sed "s,^,0$w/,; s/look.*/interrupted/"
    done
}

# kill_master W: the shell that is its parent starts it again
kill_master() {
    eval "parent=\$master_$1"
    kill -KILL $(ps -o pid= --ppid "$parent") 2>/dev/null
}

chaos() {
    kills=$1 count=$2
    chaos_begins tcp 12
    awk -v n="$count" 'BEGIN {
        for (i = 1; i <= n; i++) print 1 + i * 7 % 9 }' >"$work/commands"
    # Each master is started again until it has come to the end.
    for w in 0 1 2; do
        sh -c 'until "$0" "$@"; [ $? -lt 2 ]; do :; done' \
            "$B/modbus/master" "$network_port" $w \
            "$work/chaos/number-$w" "$work/commands" \
            >>"$work/chaos/answers-$w" 2>>"$work/chaos.log" &
        eval "master_$w=$!"
        children="$children $!"
    done
    chaos_kills kill_master
    for w in 0 1 2; do
        eval "pid=\$master_$w"
        wait_for is_over "$pid"
    done
    chaos_ends
    interrupted=$(printed | audit $((3 * count))) || exit 1
    echo "chaos: $((3 * count)) commands, none twice; $kills kills of gateway" \
        "and masters, $interrupted interrupted; $harm"
}

cd "$work"
answers
forgotten
quota
crowd
interrupted
ended
suspended
lines
if [ "${SHORT:-}" = 1 ]; then chaos 5 20; else chaos 40 150; fi
