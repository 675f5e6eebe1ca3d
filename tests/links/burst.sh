#!/bin/sh
# SPDX-License-Identifier: 0BSD
# examples/burst.c: what it answers, and what it ignores; its syncs; senders
# that lose, repeat and reorder, while it is killed at its system calls and by
# chance.  Needs burst and inspect in $B.
set -u

. tests/servers/station.sh
name=burst
port=$(free_port DGRAM)
server="$B/burst $port journal log"
chaos_options=
trace="strace -D -qq -o trace"      # -D: the server is this script's child
bytes=000102030405060708090a0b0c0d0e0f

# at_once ADDRESS TEXT...: what it answers to messages that it receives together
at_once() {
    python3 "$tests/links/burst.py" together "$port" "$daemon" "$@" |
        paste -sd '|' -
}

# poured TIMES NUMBER [SCOPE]: so often the log has that key
poured() {
    is "$(grep -c "^poured ${3:-7f000001}/$(printf %032x "$2") " \
        "$work/$name/log")" "$1"
}

answers() {
    name=answers
    start
    # A copy beside it, or another command; then the outcome, as it was
    is "$(at_once 127.0.0.1 "{1} 5" "{1} 5" "{2} 1000" "{1} 6")" \
        "1 done 5 ml|1 retry $busy|2 done 1000 ml|1 refused $mismatch"
    is "$(at_once 127.0.0.1 "{1} 5" "{1} 05" "{2} 1000" "{1} 5")" \
        "1 done 5 ml|1 refused $mismatch|2 done 1000 ml|1 done 5 ml"
    # The same key of another address
    is "$(at_once 127.0.0.2 "{1} 6" "{1} 5")" \
        "1 done 6 ml|1 refused $mismatch"
    poured 1 1
    poured 1 2
    poured 1 1 7f000002
    # More than 16 at once
    is "$(at_once 127.0.0.1 $(awk 'BEGIN {
        for (i = 101; i <= 140; i++) print "{" i "}" }' | sed 's/$/\\x207/') |
        tr '|' '\n' | sort -u | wc -l)" 40
    # What is no command is not answered, nor does it come into the log.
    lines=$(wc -l <"$work/answers/log")
    is "$(at_once 127.0.0.1 "" " " "{3}" "{3} " "{3} 0" "{3} 1001" "{3} 5 " \
        "{3} -5" "{3} 5\\x00" "{3} 5\\n" "{3}\\x005" " {3} 5" "{3}5")" ""
    is "$(at_once 127.0.0.1 "{3} 00000005" "{3} 0000000005" "0{3} 5" \
        "${bytes}0 5" "${bytes%f}g 5" "${bytes%f} 5" "\\xff\\xfe 5" \
        "poured\\n{3} 5" "$(printf %01400d 0) 5" "{1} done 5 ml")" ""
    is "$(wc -l <"$work/answers/log")" "$lines"
    stop
    # As after a loss of records: the log alone knows the key
    text=$(hex 'a key of 16 byte')
    start
    is "$(at_once 127.0.0.1 "$text 7" "{4} 1" | cut -d ' ' -f 2-)" \
        "done 7 ml|4 done 1 ml"
    at_once 127.0.0.1 "{5} 1" >/dev/null
    stop
    for ml in 7 8; do
        damage '' 'a key of 16 byte'
        start
        is "$(at_once 127.0.0.1 "$text $ml" "{$ml$ml} 1" | cut -d ' ' -f 2-)" \
            "$([ $ml = 7 ] && echo "done 7 ml" ||
                echo "failed look into the log")|$ml$ml done 1 ml"
        stop
    done
    is "$(grep -c "^poured 7f000001/$text " "$work/answers/log")" 1
    # Half a line, as power leaves it; and none
    printf 'poured 7f000001/%032x 5' 6 >>"$work/answers/log"
    start
    is "$(at_once 127.0.0.1 "{6} 50" "{7} 50")" \
        "6 failed look into the log|7 done 50 ml"
    stop
    # A sender asks for 12 hours (idem_retry).
    left=$("$B/inspect" --capacity 20000 --key-max 20 --response-max 32 \
        --senders 20 --sector 65536 "$work/answers/journal" |
        sed -n 's/.*left \([0-9]*\)\..*/\1/p' | sort -n | head -n 1)
    [ "$left" -gt 43200 ] ||
        fail "answers: a key is forgotten before its sender gives up: $left s"
    echo "answers: a copy beside it waits, what is no command is silence"
}

# A burst has one sync for the claims, one for the log and one for the outcomes.
# Then it is answered.
syncs() {
    name=syncs
    start
    stop
    run_with="$trace -y -s 0 -e signal=none
        -e trace=recvmmsg,write,fsync,fdatasync,sendto"
    start
    unset run_with
    at_once 127.0.0.1 "{1} 1" >/dev/null    # a boot's first begins a sector
    at_once 127.0.0.1 "{11} 1" "{12} 1" "{13} 1" "{14} 1" "{15} 1" "{16} 1" \
        "{17} 1" "{18} 1" "{19} 1" "{20} 1" "{21} 1" "{22} 1" "{23} 1" \
        "{24} 1" "{25} 1" >/dev/null
    stop
    is "$(sed -n '/^recvmmsg.* = 16$/,/^recvmmsg.* = [?-]/{
            s/^\([a-z]*\)(.*\/\(journal\|log\)>.*/\1 \2/
            s/(.*//; p; }' "$work/syncs/trace" |
        uniq -c | sed 's/^ *//' | paste -sd '|' -)" \
        "1 recvmmsg|1 fdatasync journal|1 write log|1 fdatasync log|$(
        )1 fdatasync journal|16 sendto|1 recvmmsg"
    echo "syncs: 16 commands with 3, of which 2 are the journal's"
}

# What came before the server was suspended for a day is a copy, as before.
suspended() {
    name=suspended
    start_clocked
    is "$(at_once 127.0.0.1 "{1} 5")" "1 done 5 ml"
    kill -STOP "$daemon"
    python3 -c 'import socket, sys
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.sendto(b"%032x 5" % 1, ("127.0.0.1", int(sys.argv[1])))' "$port"
    a_day_passes
    is "$(at_once 127.0.0.1 "{2} 5")" "2 done 5 ml"
    poured 1 1
    stop
    echo "suspended: a copy that came a day ago is known"
}

# send PORT ADDRESS FIRST COUNT SEED: a sender in the background
send() {
    python3 "$tests/links/burst.py" send "$@" \
        >"$work/$name/answers-$2-$3" 2>>"$work/$name.log" &
    sender=$!
    children="$children $sender"
}

# audit_all COMMANDS: what the senders of $name were answered.  The log has no
# line before a pour: one that it does not have was interrupted.
audit_all() {
    sed '/^replayed/d' "$name"/answers-* >answered
    { sed 's/^/begins /' answered; grep '^poured' "$name/log"; } >poured
    audit "$1" poured <answered
}

runs() { kill -0 "$1" 2>/dev/null; }

# killed_at CALL N [FILE]: the server is killed when it comes to its Nth CALL,
# of that file; its sender waits for the next server.
killed_at() {
    cd "$work/$name"
    $trace ${3:+-P "$PWD/$3"} -e trace="$1" \
        -e "inject=$1:signal=SIGKILL:when=$2" $server >out \
        2>>"$work/$name.log" &
    daemon=$!
    cd "$work"
    send "$port" 127.0.0.1 "$first" 16 "$first"
    while runs $daemon && runs $sender; do sleep 0.05; done
    ! runs $daemon || fail "kills: was not killed at $*"
    start
    wait $sender || fail "kills: a sender gave up"
    children=
    crash_server
}

# kills CALLS...: each as killed_at has it
kills() {
    name=kills
    start
    stop
    for at in "$@"; do
        killed_at $at
        first=$((first + 20))
    done
    count=$(($(ls "$name"/answers-* | wc -l) * 16))
    interrupted=$(audit_all $count) || exit 1
    echo "kills: $count commands, none twice, $interrupted interrupted;" \
        "killed at $# calls"
}

# chaos KILLS COMMANDS: two addresses with the same keys
chaos() {
    kills=$1 count=$2
    chaos_begins udp 8
    senders=
    for address in 127.0.0.1 127.0.0.2; do
        send "$network_port" $address 1 "$count" "${address##*.}"
        senders="$senders $sender"
    done
    chaos_kills
    for sender in $senders; do
        wait "$sender" || fail "chaos: a sender gave up"
    done
    chaos_ends
    interrupted=$(audit_all $((2 * count))) || exit 1
    ! grep -q 'replayed 0$' "$name"/answers-* ||
        fail "chaos: nothing was sent again: this shows nothing"
    echo "chaos: $((2 * count)) commands, none twice; $kills kills," \
        "$interrupted interrupted; $harm"
}

cd "$work"
busy="being executed: the sender is to wait"
mismatch="the key was used for another payload"
answers
suspended
if strace -qq -o trace true 2>/dev/null; then
    syncs
    first=100
    # Within claims, log, outcomes and answers.  (The first burst of a boot has
    # four syncs more.)
    kills "pwrite64 12 journal" "write 1 log" "fdatasync 1 log" \
        "fdatasync 6 journal" "sendto 8"
    [ "${SHORT:-}" = 1 ] ||
        kills "fdatasync 1 journal" "fdatasync 3 journal" \
            "fdatasync 5 journal" "pwrite64 30 journal" "sendto 1"
else
    echo "skipped: burst: its system calls, without strace"
fi
if [ "${SHORT:-}" = 1 ]; then chaos 5 200; else chaos 40 900; fi
