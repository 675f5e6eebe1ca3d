#!/bin/sh
# SPDX-License-Identifier: 0BSD
# examples/coap: each answer; a restart command that is repeated after the
# restart; and senders behind a network that loses, repeats and delays, while
# the server is killed.  Needs coapd and pour in $B/coap, coap-client.
set -u

. tests/servers/station.sh
name=coap
port=$(free_port DGRAM)
server="$B/coap/coapd --port $port --journal journal --log log --boots boots"
mismatch="4.22 the key was used for another payload"
back="5.03 max-age N not done, given back: a retry is new"

# ask MESSAGE...: what the server answers to each, in one line
ask() {
    python3 "$tests/links/messages.py" "$port" "$@" | paste -sd '|' -
}

# messages MESSAGE...: in the background; it is this one that a kill ends
messages() {
    exec python3 "$tests/links/messages.py" "$port" "$@"
}

# pouring KEY: a pour that does not end, and has begun
pouring() {
    start --ml-ms 60000
    messages "0 51 pour 65001=$1 2" >/dev/null &
    children=$!
    wait_for grep -q "begins $(hex 127.0.0.1)/$(hex "$1")" "$work/$name/log"
}

# .. and is cut off by a kill.
cut_off() {
    crash_server
    end_children
}

boots() { [ "$(wc -l <"$work/$name/boots")" = "$1" ]; }

# answers: the table of the manual, by messages as they are
answers() {
    name=answers
    start
    is "$(ask "0 1 pour 65001=a 5" "0 2 pour 65001=a 5" "0 3 pour 65001=b 7")" \
        "2.04 poured 5 ml|2.04 poured 5 ml|2.04 poured 7 ml"
    is "$(ask "0 4 pour 65001=a 6" "0 5 pour 65001=c 0" "0 5 pour 65001=c 0")" \
        "$mismatch|4.00 not 1 to 1000 ml|4.00 not 1 to 1000 ml"
    is "$(ask "0 6 pour 65001=old 15=age=3000000 5" | cut -c 1-4)" 4.12
    # A longer key, two, none, a block, a query or an option that is not known
    long=$(printf %033d 0)
    is "$(ask "0 7 pour 65001=$long 5" "0 8 pour 65001=d 65001=e 5" \
        "0 9 pour 65001= 5" "0 10 pour 65001=f 27=$(printf '\010') 5" \
        "0 11 pour 65001=f 15=key=f 5" "0 12 pour 65001=f 65003=f 5")" \
        "4.00|4.00|4.00|4.00|4.00|4.02 Bad Option"
    # Conditions: who sends one wants nothing executed unless it holds.
    is "$(ask "0 13 pour 65001=f 1=etag 5" "0 14 pour 65001=f 5= 5")" \
        "4.00|4.00"
    # A younger age after that which is too old
    is "$(ask "0 15 pour 65001=f 15=age=3000000 15=age=0 5")" 4.00
    # A client of libcoap's: another method is another command
    put() {
        coap-client-notls -m "$1" -O 65001,g -e "$2" \
            "coap://127.0.0.1:$port/pour" 2>&1
    }
    is "$(put put 4; put put 4; put post 4)" \
        "poured 4 ml
poured 4 ml
$mismatch"
    # Without a key: message id, token and port, which are all that there is
    from=$(free_port DGRAM)
    is "$(ask "$from 20 pour 1" "$from 20 pour 1" "$from 21 pour 1" \
        "$from 20 pour 2")" \
        "2.04 poured 1 ml|2.04 poured 1 ml|2.04 poured 1 ml|$mismatch"
    is "$(grep -c poured "$work/answers/log")" 5
    is "$("$B/coap/pour" "$port" h 3 h 4)" \
        "h 3 2.04 poured 3 ml
h 4 $mismatch"
    "$B/coap/pour" "$port" h 3 >/dev/full 2>>"$work/answers.log"
    is "$?" 2                           # what cannot be printed is no answer
    # What is no line of commands is not taken for one.
    for text in "$(printf %040d 1) 2" "i 12345678" "i 1 i 1" i; do
        echo "$text" | timeout 60 "$B/coap/pour" "$port" \
            >"$work/answers/printed" 2>>"$work/answers.log"
        is "$text: $? $(cat "$work/answers/printed")" "$text: 2 "
    done
    printf 'i 2' | timeout 60 "$B/coap/pour" "$port" \
        >"$work/answers/printed" 2>>"$work/answers.log"
    is "interrupted: $? $(cat "$work/answers/printed")" "interrupted: 2 "
    for words in "x a 1" "70000 a 1" "$port a"; do
        "$B/coap/pour" $words 2>>"$work/answers.log"
        is "$words: $?" "$words: 2"
    done
    is "$(grep -c poured "$work/answers/log")" 6
    stop
    # Nor is an answer's text taken for a line of answers.  And the answer to a
    # sender before it, which may have had the same port, has another token.
    python3 -c 'import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
tokens = set()
for _ in range(2):
    asked, sender = s.recvfrom(1500)
    n = asked[0] & 15
    head = bytes([0x60 | n, 0x44]) + asked[2:4 + n]
    s.sendto(head + b"\xffx\033\ni 5", sender)
    tokens.add(asked[4:4 + n])
print(len(tokens), "tokens")
' >"$work/forger" &
    children=$!
    wait_for test -s "$work/forger"
    for _ in 1 2; do
        is "$("$B/coap/pour" "$(head -n 1 "$work/forger")" h 3)" \
            "h 3 2.04 x..i 5"
    done
    wait $children
    is "$(tail -n 1 "$work/forger")" "2 tokens"
    children=
    echo "answers: as the manual has them"
}

# The server's memory, in kB
resident() { awk '/^VmRSS/ { print $2 }' "/proc/$daemon/status"; }

# Messages from many ports of one address are those of one sender: they leave
# room for others.
ports() {
    name=ports
    start
    seq -f "0 %.0f pour 1" 70 | tr '\n' '\0' |
        xargs -0 python3 "$tests/links/messages.py" "$port" >"$work/ports/many"
    is "$(sort "$work/ports/many" | uniq -c | tr -s ' ')" " 70 2.04 poured 1 ml"
    is "$(ask "0 1 pour 65001=a 2")" "2.04 poured 2 ml"
    # Nor does a message from each of many ports take memory.
    before=$(resident)
    python3 -c 'import socket, sys
for _ in range(6000):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.settimeout(60)
        link.connect(("127.0.0.1", int(sys.argv[1])))
        link.send(b"@\1\0\1\xb1x")     # GET /x
        link.recv(100)' "$port" || fail "ports: a message was not answered"
    [ "$(resident)" -lt $((before + 1000)) ] ||
        fail "ports: $before kB, then $(resident) kB"
    # Another server would get the repeats, and does not know the commands.
    refuses "the port: Address already in use" --journal other --log other.log
    stop
    echo "ports: many are one sender's, one is one server's"
}

# Two hosts use up both of their quotas, with keys and with message ids: they
# leave room for others.
floods() {
    name=floods
    start
    for host in 2 3; do
        awk -v from="127.0.0.$host:0" 'BEGIN { for (i = 1; i <= 501; i++) {
            printf "%s %d pour 65001=%d 0", from, i, i
            printf "%c%s %d pour 0%c", 0, from, i, 0 } }' |
            xargs -0 python3 "$tests/links/messages.py" "$port" \
                >"$work/floods/$host" &
        children="$children $!"
    done
    await_children
    is "$(cut -c 1-4 "$work/floods/2" "$work/floods/3" | sort -u |
        paste -sd '|' -)" "4.00|5.03"
    is "$(ask "0 1 pour 65001=a 2")" "2.04 poured 2 ml"
    stop
    echo "floods: leave room for others"
}

# What is asked for while the pump runs: the same key, and another one
busy() {
    name=busy
    pouring a
    answers=$(ask "0 31 pour 65001=a 2" "0 32 pour 65001=b 1" |
        sed 's/max-age [1-9][0-9]*/max-age N/g')
    is "${answers%%:*}" "5.03 max-age N being executed"
    is "${answers##*|}" "$back"
    cut_off
}

# LwM2M's Reboot: the answer is lost, and the message comes again after it.
reboot() {
    name=reboot
    from=$(free_port DGRAM)
    start
    is "$(ask "$from 40 3/0/4 -")" 2.04
    wait_for boots 2
    is "$(ask "$from 40 3/0/4 -" "$from 40 3/0/4 -")" "2.04|2.04"
    is "$(ask "$from 41 3/0/4 -")" 2.04
    wait_for boots 3
    crash_server
    start
    is "$(ask "$from 41 3/0/4 -" "$from 40 3/0/4 -" "0 1 pour 65001=a 1")" \
        "2.04|2.04|2.04 poured 1 ml"
    boots 4 || fail "reboot: a message that came again restarted it"
    stop
    echo "reboot: 3 messages that came again after it were answered"
}

# queued: what the server, which is suspended, has not read yet
queued() {
    awk -v at=":$(printf %04X "$port")\$" '$2 ~ at { print $5 }' /proc/net/udp
}
has_more() { [ "$(queued)" != "$before" ]; }

# held MESSAGE: sends it to the suspended server, in the background
held() {
    before=$(queued)
    messages "$1" >>"$work/$name/held" &
    children="$children $!"
    wait_for has_more
}

# What comes right after a restart is not begun before it: it would be cut off.
after() {
    name=after
    from=$(free_port DGRAM)
    start
    kill -STOP "$daemon"
    held "0 60 3/0/4 -"
    held "0 61 pour 65001=behind 2"
    kill -CONT "$daemon"
    wait $children
    wait_for boots 2
    is "$(ask "0 62 pour 65001=behind 2")" "2.04 poured 2 ml"
    kill -STOP "$daemon"
    children=
    held "0 63 3/0/4 -"
    held "$from 64 3/0/4 -"
    kill -CONT "$daemon"
    await_children
    is "$(ask "$from 64 3/0/4 -")" 2.04
    wait_for boots 4
    stop
    is "$(grep -c 'begins\|poured' "$work/after/log")" 2
    echo "after: what comes right after a restart is done after it"
}

# What came before the server was suspended for a day is a copy, as before.
suspended() {
    name=suspended
    from=$(free_port DGRAM)
    start_clocked
    is "$(ask "0 90 pour 65001=a 2" "$from 91 pour 1")" \
        "2.04 poured 2 ml|2.04 poured 1 ml"
    kill -STOP "$daemon"
    children=
    held "0 92 pour 65001=a 2"
    held "$from 91 pour 1"
    a_day_passes
    await_children
    is "$(grep -c begins "$work/suspended/log")" 2
    stop
    runs_on messages "0 93 pour 65001=a 1"
    echo "suspended: a copy is known a day later, its pump has stopped"
}

# A server that is silent for long: no message of pour is older than its age,
# or comes after its deadline; and the next command is new.
silence() {
    name=silence
    mkdir "$work/silence"
    make_clock pour
    python3 "$tests/links/silence.py" "$work/pour.ahead" \
        >"$work/silence/heard" 2>>"$work/silence.log" &
    listener=$!
    children=$listener
    wait_for test -s "$work/silence/heard"
    seq -f "k%.0f 5" 0 24 | with_clocks pour "$B/coap/pour" \
        "$(head -n 1 "$work/silence/heard")" \
        >"$work/silence/answers" 2>>"$work/silence.log" &
    children="$children $!"
    wait "$listener"
    is "$(tail -n 1 "$work/silence/heard")" \
        "0 older, 0 after the deadline, 24 others: soon"
    await_children
    is "$(cut -d ' ' -f 3-4 "$work/silence/answers" | uniq -c | tr -s ' ' |
        paste -sd '|' -)" " 1 0.00 given| 24 2.04 "
    echo "silence: no message is older than its age, none is too late"
}

# A signal ends the server when its pump has stopped, and has been answered.
ended() {
    name=ended
    start_clocked --ml-ms 1000000
    messages "0 70 pour 65001=last 2" >"$work/ended/last" &
    children=$!
    wait_for grep -q begins "$work/ended/log"
    kill -TERM "$daemon"
    is "$(ask "0 71 pour 65001=late 2" "0 72 3/0/4 -" |
        sed 's/max-age [1-9][0-9]*/max-age N/g')" "$back|$back"
    ahead ended 2000
    stop
    wait $children
    is "$(cat "$work/ended/last")" "2.04 poured 2 ml"
    # Nor does it begin anything, or start again, after a signal.
    for message in "pour 65001=later 2" "3/0/4 -"; do
        start
        kill -STOP "$daemon"
        children=
        held "0 73 $message"
        kill -TERM "$daemon"
        kill -CONT "$daemon"
        wait_for is_over "$daemon"
        wait "$daemon" || fail "ended: the server did not end well"
        end_children TERM
    done
    start
    is "$(ask "0 74 pour 65001=last 2" "0 75 pour 65001=late 2" \
        "0 76 pour 65001=later 2")" \
        "2.04 poured 2 ml|2.04 poured 2 ml|2.04 poured 2 ml"
    is "$(grep -c begins "$work/ended/log")" 3
    stop
    echo "ended: a signal ends it after its pour"
}

# The server is killed while it pours: what the log shows decides.
interrupted() {
    name=interrupted
    start
    is "$(ask "0 50 pour 65001=z 1")" "2.04 poured 1 ml"
    stop
    for case in begun ended neither; do
        id=$(hex 127.0.0.1)/$(hex $case)
        pouring $case
        cut_off
        case $case in
        ended) echo "poured $id 2" >>"$work/interrupted/log" ;;
        neither) sed -i "\|$id|d" "$work/interrupted/log" ;;
        esac
        start
        is "$(ask "0 52 pour 65001=$case 2")" \
            "$([ $case = begun ] && echo "5.00 interrupted: look at the cup" ||
                echo "2.04 poured 2 ml")"
        stop
    done
    # Records are lost: the log alone knows a key, and what it was used for.
    damage 127.0.0.1 ended
    start
    is "$(ask "0 54 pour 65001=ended 3" "0 55 pour 65001=neither 2")" \
        "5.00 interrupted: look at the cup|2.04 poured 2 ml"
    stop
    damage 127.0.0.1 ended
    start
    is "$(ask "0 56 pour 65001=ended 2")" "2.04 poured 2 ml"
    stop
    is "$(grep -c "^begins $(hex 127.0.0.1)/$(hex ended) " \
        "$work/interrupted/log")" 1
    # Nor is a restart that may have been forgotten given back as not done.
    damage 127.0.0.1 ended
    pouring long
    is "$(ask "0 58 3/0/4 -")" "5.00 look at its uptime"
    cut_off
    printf 'begins half a l' >>"$work/interrupted/log"
    start
    is "$(ask "0 53 pour 65001=begun 2")" "5.00 interrupted: look at the cup"
    stop
    sed -i 1d "$work/interrupted/log"
    refuses "not the log of this journal"
    mv "$work/interrupted/log" "$work/interrupted/rotated"
    refuses "log: No such file"
    mv "$work/interrupted/journal" "$work/interrupted/lost"
    refuses "the secret is there, the journal is not"
    echo "interrupted: the log decides; without it nothing starts"
}

# What is no request is no line of the log: anybody could fill the disk.
noise() {
    name=noise
    start
    python3 -c 'import socket, sys
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for at in range(300):
    for head in b"\x70\0", b"\x60\0", b"\x40\xff", b"\x4f\2", b"\0":
        link.sendto(head + at.to_bytes(2, "big"),
                    ("127.0.0.1", int(sys.argv[1])))' "$port"
    is "$(ask "0 1 pour 65001=noise 2")" "2.04 poured 2 ml"
    is "$(wc -l <"$work/noise.log")" 0
    stop
    echo "noise: answers nothing"
}

# chaos KILLS COMMANDS: four senders at once
chaos() {
    kills=$1 count=$2
    chaos_begins udp 8
    senders=
    for s in 1 2 3 4; do
        awk -v s=$s -v n="$count" 'BEGIN {
            for (i = 1; i <= n; i++) print s "-" i, 1 + i * 7 % 9 }' |
            "$B/coap/pour" "$network_port" \
            >"$work/chaos/answers-$s" 2>>"$work/chaos.log" &
        senders="$senders $!"
    done
    children="$children $senders"
    chaos_kills
    for s in $senders; do
        wait "$s"
        [ $? -lt 2 ] || fail "chaos: a sender could not run"
    done
    chaos_ends
    interrupted=$(cat "$work"/chaos/answers-* |
        while read -r key ml code text; do
            echo "$(hex 127.0.0.1)/$(hex "$key") $ml ${text%%[: ]*}"
        done | audit $((4 * count))) || exit 1
    echo "chaos: $((4 * count)) commands, none twice; $kills kills," \
        "$interrupted interrupted; $harm"
}

cd "$work"
answers
ports
floods
busy
reboot
after
suspended
silence
ended
interrupted
noise
if [ "${SHORT:-}" = 1 ]; then chaos 5 10; else chaos 40 100; fi
