#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Commands from several senders to examples/mqtt/pumpd.c through a Mosquitto
# broker of its own, over a network that swallows acknowledgements and breaks
# connections, while daemon and broker are killed.  Audited from outside: each
# command in the pump's log once, each answered, each answer right.  Without
# idem.h the same must find commands that were executed twice.
# Needs in $B: pumpd, pour, inspect, proxy.
set -u

B=$(cd "${B:-build}" && pwd)
conf=$(pwd)/examples/mqtt/inspect.conf
PATH=$PATH:/usr/sbin
work=$(mktemp -d)
mosquitto= daemon= proxy= senders=

cleanup() {
    trap - EXIT
    for pid in $senders $proxy $daemon $mosquitto; do
        kill -9 "$pid" 2>/dev/null
    done
    wait 2>/dev/null
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' HUP INT TERM

fail() {
    echo "mqtt: $*" >&2
    for file in "$name"/pumpd.err "$name"/broker.log; do
        [ ! -s "$file" ] || { echo "--- $file"; tail -n 20 "$file"; } >&2
    done
    exit 1
}

# Runs the rest of the arguments until they succeed, for up to two minutes.
wait_for() {
    tries=1200
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || fail "in vain: $*"
        sleep 0.1
    done
}

start_broker() {
    mosquitto -c broker.conf >>"$name/broker.log" 2>&1 &
    mosquitto=$!
}

stop_broker() {
    kill -"$1" "$mosquitto"
    wait "$mosquitto" 2>/dev/null
}

# start_daemon PORT QOS [options]
start_daemon() {
    port=$1 qos=$2
    shift 2
    : >"$name/total"            # the one before it said that it was ready
    "$B/pumpd" --port "$port" --qos "$qos" --id "pumpd-$name" --ml-ms 1 \
        --journal "$name/journal" --log "$name/log" "$@" \
        >"$name/total" 2>>"$name/pumpd.err" &
    daemon=$!
}

# Ends the daemon as a service manager does; it must agree.
stop_daemon() {
    wait_for grep -q ready "$name/total"
    kill -TERM "$daemon"
    wait "$daemon" || fail "pumpd did not end well"
    daemon=
}

kill_daemon() {
    kill -9 "$daemon"
    wait "$daemon" 2>/dev/null
}

# The amount of a command is made from its number; senders use the same keys.
commands() {
    awk -v n="$1" 'BEGIN {
        for (i = 1; i <= n; i++) print "c" i, 1 + i * 7 % 9 }'
}

sender_is_done() { ! kill -0 "$1"; }

# chaos QOS KILLS COMMANDS [options of pumpd]: four senders at once
chaos() {
    qos=$1 kills=$2 count=$3
    shift 3
    "$B/proxy" 6 "$((qos * 31 + kills))" "$broker_port" >"$name/proxy" &
    proxy=$!
    wait_for test -s "$name/proxy"
    proxy_port=$(head -n 1 "$name/proxy")
    start_daemon "$proxy_port" "$qos" "$@"
    senders=
    for s in 1 2 3 4; do
        commands "$count" | "$B/pour" --port "$proxy_port" --qos "$qos" \
            --id "$name-$s" --retry 300 >"$name/answers-$s" &
        senders="$senders $!"
    done
    i=0
    while [ $i -lt "$kills" ]; do
        i=$((i + 1))
        sleep "0.$((2 + i % 5))"
        if [ $((i % 2)) = 0 ]; then     # away for longer than a sender waits
            kill -STOP "$daemon"
            sleep 1
            kill -CONT "$daemon"
            sleep 0.2
        fi
        kill_daemon
        start_daemon "$proxy_port" "$qos" "$@"
        if [ $((i % 4)) = 2 ]; then
            stop_broker $([ $((i % 8)) = 2 ] && echo TERM || echo 9)
            start_broker
        fi
    done
    for s in $senders; do
        wait_for sender_is_done "$s"
        wait "$s" || fail "a sender gave up"
    done
    senders=
    stop_daemon
    kill "$proxy"
    wait "$proxy"
    proxy=
}

# What a daemon would know that were started now
look() {
    "$B/inspect" --config "$conf" --secret-file "$name/journal.secret" \
        "$name/journal"
}

# Prints how many commands were executed twice or more; says more, and fails,
# if something is wrong otherwise.  audit COMMANDS
audit() {
    for s in 1 2 3 4; do
        commands "$1" | sed "s,^,command $name-$s ,"
        sed "s,^,answer $name-$s ," "$name/answers-$s"
    done >"$name/audit"
    sed 's,^pump/\(.*\)/command,log \1,; s,$, .,' "$name/log" >>"$name/audit"
    sed 's,^,total ,' "$name/total" >>"$name/audit"
    awk '
        function hex(key,  i, text) {
            for (i = 1; i <= length(key); i++)
                text = text code[substr(key, i, 1)]
            return text
        }
        function wrong(what) { print "wrong: " what > "/dev/stderr"; bad = 1 }
        BEGIN {
            for (i = 32; i < 127; i++)
                code[sprintf("%c", i)] = sprintf("%02x", i)
        }
        { id = $2 " " ($1 == "log" ? $3 : hex($3)) }
        $1 == "command" { ml[id] = $4 }
        $1 == "answer" {
            if (!(id in ml) || $4 != ml[id] || $5 != "0x00" ||
                $6 " " $7 " " $8 != "poured " ml[id] " ml" || answered[id]++)
                wrong($0)
        }
        $1 == "log" {
            sum += $4
            if (!(id in ml) || $4 != ml[id])
                wrong($0)
            if (poured[id]++)
                twice++
        }
        $1 == "total" { total = $3 }
        END {
            for (id in ml) {
                if (!answered[id]) wrong("no answer: " id)
                if (!poured[id]) wrong("answered, not poured: " id)
            }
            if (idem && total != sum) wrong("total " total ", poured " sum)
            print twice + 0
            exit bad
        }' idem="$2" "$name/audit" || fail "$name: see above"
}

# run NAME QOS KILLS COMMANDS: with idem.h
run() {
    name=$1
    mkdir "$name"
    chaos "$2" "$3" "$4"
    twice=$(audit "$4" 1) || exit 1
    [ "$twice" = 0 ] || fail "$name: $twice commands were executed twice"
    look >/dev/null || fail "$name: the journal"
    case $(tail -n 1 "$name/proxy") in
        swallowed\ [1-9]*\ torn\ [1-9]*) ;;
        *) fail "$name: nothing was swallowed or torn; a blunt test" ;;
    esac
    echo "$name: $(($4 * 4)) commands, each once;" \
        "$3 kills, $(grep -c 'cut short' "$name/pumpd.err") cut short;" \
        "$(tail -n 1 "$name/proxy")"
}

# The same without: the test must be able to fail.
run_blindly() {
    name=$1
    mkdir "$name"
    chaos "$2" "$3" "$4" --no-idem
    twice=$(audit "$4" 0) || exit 1
    [ "$twice" -gt 0 ] || fail "$name: nothing was executed twice; a blunt test"
    echo "$name: $(($4 * 4)) commands, $twice executed more than once"
}

# ask KEY ML [options]: one command of the sender "panel"
ask() {
    key=$1 ml=$2
    shift 2
    timeout 120 "$B/pour" --port "$broker_port" --id panel --retry 500 "$@" \
        "$key" "$ml" || fail "no answer to $key"
}

is() {
    [ "$1" = "$2" ] || fail "$name: \"$1\", expected \"$2\""
}

in_progress() { look | grep 'in progress'; }

# Every kind of answer, and the two crashes that a log can tell apart.
answers() {
    name=answers
    mkdir "$name"
    start_daemon "$broker_port" 1
    is "$(ask a 5)" "a 5 0x00 poured 5 ml"
    is "$(ask a 5)" "a 5 0x00 poured 5 ml"
    is "$(ask a 6)" "a 6 0x99 the key was used for another payload"
    is "$(ask b 0)" "b 0 0x99 not 1 to 1000 ml"
    is "$(ask b 0)" "b 0 0x99 not 1 to 1000 ml"
    is "$(ask p 3 --property)" "p 3 0x00 poured 3 ml"
    is "$(ask p 3 --qos 2)" "p 3 0x00 poured 3 ml"
    long=$(printf '%0120d' 7)
    is "$(ask "$long$long" 1 | cut -d ' ' -f 3-)" \
        "0x83 over the limit, or the buffer is too short"
    stop_daemon
    is "$(tail -n 1 "$name/total")" "total 8 ml"

    start_daemon "$broker_port" 1 --ml-ms 60000     # cut short before it poured
    ask cut 900 >"$name/cut" &
    senders=$!
    wait_for in_progress
    kill_daemon
    start_daemon "$broker_port" 1
    wait_for sender_is_done "$senders"
    is "$(cat "$name/cut")" "cut 900 0x00 poured 900 ml"
    is "$(grep -c ' 900$' "$name/log")" 1
    stop_daemon

    start_daemon "$broker_port" 1 --ml-ms 60000     # and after it poured
    ask late 800 >"$name/late" &
    senders=$!
    wait_for in_progress
    kill_daemon
    echo "pump/panel/command 6c617465 800" >>"$name/log"
    start_daemon "$broker_port" 1
    wait_for sender_is_done "$senders"
    senders=
    is "$(cat "$name/late")" "late 800 0x00 poured 800 ml"
    is "$(grep -c ' 800$' "$name/log")" 1
    is "$(ask a 5)" "a 5 0x00 poured 5 ml"
    stop_daemon
    is "$(tail -n 1 "$name/total")" "total 1708 ml"
    is "$(grep -c 'it had poured' "$name/pumpd.err")" 1
    echo "answers: as the manual says"
}

cd "$work"
broker_port=$("$B/proxy")
mkdir db broker
name=broker
cat >broker.conf <<END
listener $broker_port 127.0.0.1
allow_anonymous true
persistence true
persistence_location $work/db/
user $(id -un)
log_type warning
log_type error
log_dest stderr
END
start_broker
answers
if [ "${SHORT:-}" = 1 ]; then kills=4 count=25; else kills=16 count=150; fi
run qos-1 1 $kills $count
run qos-2 2 $kills $count
# A daemon that lives long sees more broken connections than its client library
# can hold messages in hand.
[ "${SHORT:-}" = 1 ] || run long-2 2 0 250
run_blindly blind-1 1 $kills $count
run_blindly blind-2 2 $kills $count
