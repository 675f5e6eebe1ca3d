#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Commands from several senders to examples/mqtt/pumpd.c through a Mosquitto
# broker of its own, over a network that swallows and tears what is sent and
# breaks connections, while daemon and broker are killed.  Audited from outside:
# each command in the pump's log once, each answered, each answer right.  The
# same without idem.h must find commands that were executed twice.
# Needs in $B: pumpd, pour, inspect.
set -u

. tests/servers/station.sh
. tests/servers/pours.sh
pour=$B/pour

# chaos QOS KILLS COMMANDS [options of pumpd]: four senders at once
chaos() {
    qos=$1 kills=$2 count=$3
    shift 3
    take_name "$name"
    network tcp 6 "$broker_port"
    launch --port "$network_port" --qos "$qos" "$@"
    start_senders "$network_port" "$count" --qos "$qos"
    i=0
    while [ $i -lt "$kills" ]; do
        i=$((i + 1))
        sleep "0.$((2 + i % 5))"
        [ $((i % 2)) != 0 ] || suspend "$daemon"
        crash_server
        launch --port "$network_port" --qos "$qos" "$@"
        if [ $((i % 4)) = 2 ]; then
            signal=$([ $((i % 8)) = 2 ] && echo TERM || echo KILL)
            end $broker
            start_broker
        fi
    done
    await_senders
    wait_for is_ready
    chaos_ends
}

# What a daemon would know that were started now
look() {
    "$B/inspect" --config "$examples/mqtt/inspect.conf" \
        --secret-file "$name/journal.secret" "$name/journal"
}

# run NAME QOS KILLS COMMANDS: with idem.h
run() {
    name=$1
    chaos "$2" "$3" "$4"
    all_once "$4"
    is "$(tail -n 1 "$name/out")" \
        "$(awk '$1 == "ends" { ml += $4 } END { print "total", ml, "ml" }' \
            "$name/log")"
    look >/dev/null || fail "$name: inspect finds a loss in the journal"
    echo "$name: $(($4 * 4)) commands, each once; $3 kills," \
        "$(grep -c 'interrupted before' "$name.log") interrupted; $harm"
}

# The same without: the test must be able to fail.
run_blindly() {
    name=$1
    chaos "$2" "$3" "$4" --no-idem
    some_twice "$4"
}

# ask KEY ML [options]: one command of the sender "panel"; its status must be
# whether it has poured
ask() {
    key=$1 ml=$2
    shift 2
    printed=$(timeout 120 "$B/pour" --port "$broker_port" --id panel \
        --retry 500 "$@" "$key" "$ml")
    case "$? $printed" in
        "0 $key $ml 0x00 "* | "2 $key $ml 0x"[89]?\ *) echo "$printed" ;;
        *) fail "no answer to $key, or another status: $printed" ;;
    esac
}

# line WHAT KEY ML: of the log, for a key of one letter
line() { printf '%s pump/panel/command %02x %s ml\n' "$1" "'$2" "$3"; }

# ends_with WORDS: the daemon has ended, and its last line has them
ends_with() {
    wait_for is_over "$daemon"
    wait "$daemon" && fail "pumpd ended with status 0"
    daemon=
    tail -n 1 "$name.log" | grep -q "$1" ||
        fail "the last line of pumpd has not \"$1\""
}

# interrupt KEY ML WHAT ANSWER: the daemon is killed while it pours, then WHAT
# is done to its log; the answer after that
interrupt() {
    start --ml-ms 60000
    ask "$1" "$2" >"$name/$1" &
    children=$!
    wait_for grep -q "^$(line begins "$1" "$2")" "$name/log"
    crash_server
    $3 "$1" "$2"
    start
    wait_for is_over $children
    children=
    is "$(cat "$name/$1")" "$1 $2 $4"
    stop
}

count() { cat "$name"/log* | grep -c "^$(line "$1" "$2" "$3")"; }

nothing() { :; }
before_it() { sed -i '$d' "$name/log"; }
after_it() { line ends "$1" "$2" >>"$name/log"; }
torn() { line ends "$1" "$2" | head -c 20 >>"$name/log"; }
rotated() { mv "$name/log" "$name/log.1"; }
emptied() { : >"$name/log"; }
truncated() { truncate -s 70 "$name/log"; }
long_ago() {                            # and its key was forgotten since
    before=$(line begins "$1" "$2" && line ends "$1" "$2")
    sed -i "1r /dev/stdin" "$name/log" <<END
$before
END
}

# There is no memory for a line of the log: what is in it is not known.
unread() {
    preloaded_unread
    interrupt j 9 unread_once "$unknown"
    is "$(count begins j 9) $(count ends j 9)" "1 0"
}
unread_once() {
    run_with="env LD_PRELOAD=$work/unread.so"
    launch
    unset run_with
    ends_with "log: Cannot allocate memory"
}

# What a log can have of a crash, and when it is not to be believed.
sensor() {
    poured="0x00 poured 9 ml"
    unknown="0x83 check the cup"
    start
    is "$(ask s 5)" "s 5 0x00 poured 5 ml"
    stop
    interrupt a 9 nothing "$unknown"
    interrupt b 9 before_it "$poured"
    interrupt c 9 after_it "$poured"
    interrupt d 9 torn "$unknown"
    is "$(grep -c 'had not poured' "$name.log")" 1
    is "$(count begins a 9) $(count ends a 9)" "1 0"
    is "$(count begins b 9) $(count ends b 9)" "1 1"
    is "$(count begins c 9) $(count ends c 9)" "1 1"
    is "$(count begins d 9) $(count ends d 9)" "1 0"
    interrupt i 9 long_ago "$unknown"
    unread
    interrupt e 9 rotated "$unknown"
    is "$(count begins e 9) $(count ends e 9)" "1 0"
    interrupt f 9 emptied "$unknown"
    start
    is "$(ask u 5)" "u 5 0x00 poured 5 ml"
    stop
    interrupt g 9 truncated "$unknown"
    is "$(cat "$name/log" | grep -c ' 6[67] ')" 0
    start
    is "$(ask a 9)" "a 9 $unknown"
    is "$(ask c 9)" "c 9 $poured"
    mv "$name/log" "$name/log.2"            # by somebody who asks nobody
    ask h 9 >"$name/h" &
    children=$!
    ends_with "log: No such file"
    start
    wait_for is_over $children
    children=
    is "$(cat "$name/h")" "h 9 $unknown"
    stop
    is "$(tail -n 1 "$name/out")" "total 28 ml"
}

# Records are lost: the log alone knows a key, and what it was used for.
records_lost() {
    start
    is "$(ask v 5; ask w 5)" "v 5 0x00 poured 5 ml
w 5 0x00 poured 5 ml"
    stop
    damage pump/panel/command v
    start
    is "$(ask v 6)" "v 6 0x83 check the cup"
    is "$(ask x 5)" "x 5 0x00 poured 5 ml"
    stop
    grep -q 'or forgotten, it had begun' "$name.log" ||
        fail "no damage: the test shows nothing"
    look >/dev/null
    is "$?" 1                           # lost before this boot: not sound
    damage pump/panel/command v
    start
    is "$(ask v 5)" "v 5 0x00 poured 5 ml"
    stop
    is "$(grep -c '^begins.* 76 ' "$name/log")" 1
}

# What a log cannot be: the one before, with a new journal.
lost() {
    start
    is "$(ask l 5)" "l 5 0x00 poured 5 ml"
    stop
    mkdir "$name/kept"
    mv "$name/journal" "$name/kept"
    refuses "the secret is there, the journal is not"
    [ ! -e "$name/journal" ] || fail "a new journal was made"
    mv "$name/journal.secret" "$name/kept"
    refuses "the journal is new"
    mv "$name"/kept/* "$name"
}

# publish SENDER KEY ML [options]
publish() {
    from=$1 key=$2 ml=$3
    shift 3
    mosquitto_pub -V 5 -p "$broker_port" -q 1 -t "pump/$from/command" -m "$ml" \
        -D publish correlation-data "$key" "$@" || fail "mosquitto_pub"
}

# A sender that wants more than its own.
hostile() {
    mosquitto_sub -V 5 -p "$broker_port" -t 'pump/#' -v >"$name/heard" &
    listener=$!
    children=$listener
    start
    for to in pump/panel/command pump/panel/answer pump/mallory/answer; do
        publish mallory m 5 -D publish response-topic $to
    done
    wait_for grep -q 'pump/mallory/answer poured' "$name/heard"
    is "$(ask m 7)" "m 7 0x00 poured 7 ml"
    wait_for grep -q 'pump/panel/answer poured 7' "$name/heard"
    is "$(grep pump/panel "$name/heard" | sort -u | tr '\n' ,)" \
        "pump/panel/answer poured 7 ml,pump/panel/command 7,"
    publish mallory r 3 -r                  # for whoever comes, for ever
    wait_for grep -q 'must not be retained' "$name/heard"
    stop
    publish mallory r2 3 -r                 # waits in the daemon's session
    start --id "other-$name"
    is "$(ask n 7)" "n 7 0x00 poured 7 ml"
    stop
    start
    is "$(ask o 7)" "o 7 0x00 poured 7 ml"
    too_long
    is "$(grep -c 'pump/mallory/command 72' "$name/log")" 0
    signal=TERM
    end $listener
    children=
}

# Longer than any command: the broker drops it.  One that does not fit into the
# daemon's memory would come again at each of its connections.
too_long() {
    head -c 200000 /dev/zero | tr '\0' 9 >"$name/long"
    mosquitto_pub -V 5 -p "$broker_port" -q 1 -t pump/mallory/command \
        -f "$name/long" -D publish correlation-data long || fail "mosquitto_pub"
    is "$(ask y 8)" "y 8 0x00 poured 8 ml"
    wait_for grep -q 'pump/panel/answer poured 8 ml' "$name/heard"
    is "$(grep -c 'pump/mallory/answer not 1' "$name/heard")" 0
}

# One sender's quota is its own; a key may be as long as MQTT lets it.
flood() {
    seq -f 'q%.0f 1' 250 | "$pour" --port "$broker_port" --id flood \
        >"$name/flood"
    is "$(grep -c '0x00 poured' "$name/flood")" 250
    "$pour" --port "$broker_port" --id flood --retry 200 --deadline 1 more 1 \
        2>&1 | grep -q 'given up' ||
        fail "flood: more keys than the quota were taken"
    is "$(ask p 7)" "p 7 0x00 poured 7 ml"
    stop
    start --no-idem
    long=$(printf '%0300d' 7)
    is "$(ask "$long" 2)" "$long 2 0x00 poured 2 ml"
    stop
}

# What nobody asks for any more is not poured when the daemon comes back.  A
# broker counts whole seconds: it may keep a second longer what has one left.
given_up() {
    "$pour" --port "$broker_port" --id panel --retry 100 --deadline 1 g 6 \
        2>&1 | grep -q 'given up' || fail "answered while the daemon is away"
    sleep 2
    start
    is "$(ask p 7)" "p 7 0x00 poured 7 ml"
    is "$(grep -c "$(line begins g 6)" "$name/log")" 0
    stop
}

# Two daemons with one id print why they lose their connections.
twins() {
    start
    is "$(ask t 7)" "t 7 0x00 poured 7 ml"
    "$B/pumpd" --port "$broker_port" --id "pumpd-$name" --journal "$name/twin" \
        --log "$name/twin.log" >"$name/twins" 2>&1 &
    children=$!
    wait_for grep -q "another client with the id pumpd-$name" \
        "$name.log" "$name/twins"
    end_children TERM
    stop
}

# A signal ends the daemon after the pour that it is at, not after all that has
# come meanwhile.
ended() {
    start --qos 2 --ml-ms 500
    is "$(ask z 1)" "z 1 0x00 poured 1 ml"
    kill -STOP "$daemon"
    for key in a b c d e; do
        ask $key 2 --id $key --qos 2 >"$name/$key" &
        children="$children $!"
    done
    sleep 1
    kill -CONT "$daemon"
    wait_for begun_again
    kill -TERM "$daemon"
    at_most=$(($(grep -c begins "$name/log") + 1))  # one may be at its claim
    stop
    begun=$(grep -c begins "$name/log")
    [ "$begun" -le $at_most ] || fail "pours were begun after a signal"
    [ "$begun" -lt 6 ] || fail "all have poured: the test shows nothing"
    is "$(grep -c ends "$name/log")" "$begun"
    start --qos 2
    await_children
    for key in a b c d e; do
        is "$(cat "$name/$key")" "$key 2 0x00 poured 2 ml"
    done
    stop
    is "$(grep -c begins "$name/log")" 6
}
begun_again() { [ "$(grep -c begins "$name/log")" -gt 1 ]; }

# A daemon that was suspended for a day finds in its socket what came before.
# It must not execute a command whose answer it forgets at that moment.
suspended() {
    start_clocked
    is "$(ask a 5)" "a 5 0x00 poured 5 ml"
    kill -STOP "$daemon"
    publish panel a 5
    a_day_passes
    is "$(ask b 5)" "b 5 0x00 poured 5 ml"
    is "$(count begins a 5)" 1
    stop
}

# Nor if it was suspended when it had read that, and had not looked it up yet.
suspended_late() {
    make_clock "$name"
    make_nap
    run_with="with_clocks $name env LD_PRELOAD=$work/clock.so:$work/nap.so"
    start
    unset run_with
    is "$(ask c 5)" "c 5 0x00 poured 5 ml"
    echo "$work/$name.ahead" >"$work/nap"
    publish panel c 5
    is "$(ask d 5)" "d 5 0x00 poured 5 ml"
    [ ! -e "$work/nap" ] || fail "it was not suspended: the test shows nothing"
    is "$(count begins c 5)" 1
    stop
}

# Its machine sleeps for a day while it pours: the pump has run on, and is
# stopped at once.
asleep() {
    runs_on ask s 1
    is "$(cat "$work/runs_on/answer")" "s 1 0x00 poured 1 ml"
}

# start_script WHAT ...: a broker that does as in broker.py, at $script_port
start_script() {
    what=$1
    shift
    : >"$name/$what"
    python3 "$tests/demo/broker.py" "$what" "$@" >"$name/$what" 2>>"$name.log" &
    broker_script=$!
    children=$broker_script
    wait_for test -s "$name/$what"
    script_port=$(head -n 1 "$name/$what")
}

# What a connection that broke had in hand is not executed on a later one, when
# its key is forgotten.
come_round() {
    make_clock "$name"
    start_script round "$work/$name.ahead"
    start_clocked --port "$script_port" --qos 2
    wait $broker_script
    children=
    is "$(sed 1d "$name/round" | paste -sd ' ' -)" "x y"
    is "$(count begins x 5) $(count begins y 5)" "1 1"
    stop
}

# A broker acknowledges nothing for 1000 s: a sender makes its messages when it
# sends them, so that none may be kept for longer than the sender waits.
slow() {
    make_clock pour
    for qos in 1 2; do
        start_script slow "$work/pour.ahead" $qos
        with_clocks pour "$pour" --port "$script_port" --qos $qos --retry 20 \
            --deadline 2000 a 5 >"$name/a" 2>>"$name.log" &
        children="$children $!"
        wait $broker_script
        is "$(sed 1d "$name/slow")" "kept for as long as there is left"
        end_children
    done
}

forge() {
    mosquitto_pub -V 5 -p "$broker_port" -t pump/panel/answer -m "$2" \
        -D publish correlation-data "$1" \
        -D publish user-property reason 0x00
    ! kill -0 $children
}

# Every kind of answer.
answers() {
    start
    is "$(ask a 5)" "a 5 0x00 poured 5 ml"
    is "$(ask a 5)" "a 5 0x00 poured 5 ml"
    is "$(ask a 6)" "a 6 0x99 the key was used for another payload"
    "$B/pour" --port "$broker_port" a 5 >/dev/full
    is "$?" 1                           # what cannot be printed is no answer
    is "$(ask b 0)" "b 0 0x99 not 1 to 1000 ml"
    is "$(ask b 0)" "b 0 0x99 not 1 to 1000 ml"
    for ml in ' 5' +5 -5 05x 5.0; do
        is "$(ask "c$ml" "$ml")" "c$ml $ml 0x99 not 1 to 1000 ml"
    done
    printf '5\0' >"$name/zero"
    mosquitto_pub -V 5 -p "$broker_port" -t pump/panel/command -f "$name/zero" \
        -D publish correlation-data z || fail "mosquitto_pub"
    is "$(ask p 3 --property)" "p 3 0x00 poured 3 ml"
    is "$(ask p 3 --qos 2)" "p 3 0x00 poured 3 ml"
    # Answers to the first are still coming.
    is "$("$B/pour" --port "$broker_port" --retry 20 d 99 d 98)" \
        "d 99 0x00 poured 99 ml
d 98 0x99 the key was used for another payload"
    long=$(printf '%0120d' 7)
    is "$(ask "$long$long" 1 | cut -d ' ' -f 3-)" \
        "0x83 over the limit, or the buffer is too short"
    stop
    is "$(tail -n 1 "$name/out")" "total 107 ml"
    # An answer's text is not taken for a line of answers.
    "$B/pour" --port "$broker_port" f 5 >"$name/forged" &
    children=$!
    wait_for forge f "$(printf 'x\033\ng 5')"
    children=
    is "$(cat "$name/forged")" "f 5 0x00 x..g 5"
}

# take_name NAME: of a pump of its own
take_name() {
    name=$1
    mkdir "$name"
    server="$B/pumpd --port $broker_port --qos 1 --id pumpd-$name --ml-ms 5
        --journal journal --log log"
}

# scene NAME FUNCTION...: with such a pump
scene() {
    take_name "$1"
    shift
    for part in "$@"; do
        "$part"
    done
    echo "$name: passed"
}

cd "$work"
start_broker
scene answers answers
scene sensor sensor lost
scene damaged records_lost
scene hostile hostile flood given_up
scene ended ended
scene suspended suspended suspended_late
scene runs_on asleep
scene round come_round
scene slow slow
scene twins twins
if [ "${SHORT:-}" = 1 ]; then kills=4 count=25; else kills=16 count=150; fi
run qos-1 1 $kills $count
run qos-2 2 $kills $count
# A daemon that lives long sees more broken connections than its client library
# can hold messages in hand.
[ "${SHORT:-}" = 1 ] || run long-2 2 0 250
run_blindly blind-1 1 $kills $count
run_blindly blind-2 2 $kills $count
