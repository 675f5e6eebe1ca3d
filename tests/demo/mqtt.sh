#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Commands from several senders to examples/mqtt/pumpd.c through a Mosquitto
# broker of its own, over a network that swallows and tears what is sent and
# breaks connections, while daemon and broker are killed.  Audited from outside:
# each command in the pump's log once, each answered, each answer right.  Without
# idem.h the same must find commands that were executed twice.
# Needs in $B: pumpd, pour, inspect.
set -u

B=$(cd "${B:-build}" && pwd)
conf=$(pwd)/examples/mqtt/inspect.conf
network=$(pwd)/tests/demo/proxy.py
pour=$B/pour
. tests/fleet/servers.sh
. tests/demo/pours.sh

# start_daemon PORT QOS [options]
start_daemon() {
    port=$1 qos=$2
    shift 2
    : >"$name/total"            # the one before it said that it was ready
    "$B/pumpd" --port "$port" --qos "$qos" --id "pumpd-$name" --ml-ms 1 \
        --journal "$name/journal" --log "$name/log" "$@" \
        >"$name/total" 2>>"$name-pumpd.log" &
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
    signal=KILL
    end "$daemon"
}

# chaos QOS KILLS COMMANDS [options of pumpd]: four senders at once
chaos() {
    qos=$1 kills=$2 count=$3
    shift 3
    python3 "$network" 6 "$((qos * 31 + kills))" "$broker_port" \
        >"$name/proxy" &
    proxy=$!
    children=$proxy
    wait_for test -s "$name/proxy"
    proxy_port=$(head -n 1 "$name/proxy")
    start_daemon "$proxy_port" "$qos" "$@"
    start_senders "$proxy_port" "$count" --qos "$qos"
    i=0
    while [ $i -lt "$kills" ]; do
        i=$((i + 1))
        sleep "0.$((2 + i % 5))"
        [ $((i % 2)) != 0 ] || suspend "$daemon"
        kill_daemon
        start_daemon "$proxy_port" "$qos" "$@"
        if [ $((i % 4)) = 2 ]; then
            signal=$([ $((i % 8)) = 2 ] && echo TERM || echo KILL)
            end $broker
            start_broker
        fi
    done
    await_senders
    stop_daemon
    signal=TERM
    end $proxy
    children=
}

# What a daemon would know that were started now
look() {
    "$B/inspect" --config "$conf" --secret-file "$name/journal.secret" \
        "$name/journal"
}

# run NAME QOS KILLS COMMANDS: with idem.h
run() {
    name=$1
    mkdir "$name"
    chaos "$2" "$3" "$4"
    all_once "$4"
    is "$(tail -n 1 "$name/total")" \
        "$(awk '{ ml += $3 } END { print "total", ml, "ml" }' "$name/log")"
    look >/dev/null || fail "$name: the journal"
    case $(tail -n 1 "$name/proxy") in
        swallowed\ [1-9]*\ torn\ [1-9]*) ;;
        *) fail "$name: nothing was swallowed or torn; a blunt test" ;;
    esac
    echo "$name: $(($4 * 4)) commands, each once;" \
        "$3 kills, $(grep -c 'cut short' "$name-pumpd.log") cut short;" \
        "$(tail -n 1 "$name/proxy")"
}

# The same without: the test must be able to fail.
run_blindly() {
    name=$1
    mkdir "$name"
    chaos "$2" "$3" "$4" --no-idem
    some_twice "$4"
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

# cut_short KEY ML [LOGGED]: the daemon is killed while it pours, before it is in
# the log, or, if that is LOGGED, after
cut_short() {
    start_daemon "$broker_port" 1 --ml-ms 60000
    ask "$1" "$2" >"$name/$1" &
    children=$!
    wait_for in_progress
    kill_daemon
    [ $# = 2 ] || echo "$3" >>"$name/log"
    start_daemon "$broker_port" 1
    wait_for is_over $children
    children=
    is "$(cat "$name/$1")" "$1 $2 0x00 poured $2 ml"
    is "$(grep -c " $2\$" "$name/log")" 1
}

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
    cut_short cut 900
    stop_daemon
    cut_short late 800 "pump/panel/command 6c617465 800"
    is "$(ask a 5)" "a 5 0x00 poured 5 ml"
    stop_daemon
    is "$(tail -n 1 "$name/total")" "total 1708 ml"
    is "$(grep -c 'it had poured' "$name-pumpd.log")" 1
    echo "answers: as the manual says"
}

cd "$work"
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
