# SPDX-License-Identifier: 0BSD
# Commands of four senders to three gateways behind a shared subscription of a
# real broker, while gateways are killed or suspended and the store is killed
# and started again.  Audited from outside: each command in the pump's log once,
# each answered, each answer right.  Without a store the same must find commands
# that were executed twice.

build fleet/gateway $F/gateway.c $F/gateway_pump.c $F/effect.c $STORES \
    -lmosquitto $LIBS
build fleet/pour examples/mqtt/pour.c -lmosquitto
pour=$B/fleet/pour
. tests/servers/pours.sh

# begin_scene NAME: its folder, and a log
begin_scene() {
    name=$1
    mkdir "$work/$name"
    "$B/fleet/gateway" --new-log "$work/$name/log" ||
        fail "gateway --new-log failed"
}

# start_gateway NUMBER [OPTIONS]
start_gateway() {
    number=$1
    shift
    ${run_with:-} "$B/fleet/gateway" --port "$broker_port" \
        --id "gateway-$name-$number" --ml-ms 2 --lease-ms 3000 \
        --secret "$work/secret" --log "$work/$name/log" "$@" \
        >"$work/$name/ready-$number" 2>>"$work/$name-gateways.log" &
    eval "gateway_$number=$!"
    children="$children $!"
}

# restart STORE: kills it, and lets it be away for a while
restart() {
    crash "$1"
    sleep 0.5
    "start_$1"
}

# chaos KILLS COMMANDS STORE [OPTIONS]
chaos() {
    kills=$1 count=$2 store=$3
    shift 3
    for g in 1 2 3; do
        start_gateway $g "$@"
        wait_for test -s "$work/$name/ready-$g"
    done
    start_senders "$broker_port" "$count"
    i=0
    while [ $i -lt "$kills" ]; do
        i=$((i + 1)) g=$((i % 3 + 1))
        sleep "0.$((2 + i % 5))"
        eval "pid=\$gateway_$g"
        [ $((i % 2)) != 0 ] || suspend "$pid"
        signal=KILL; end "$pid"
        start_gateway $g "$@"
        [ $((i % 4)) != 2 ] || [ "$store" = none ] || restart "$store"
    done
    await_senders
    signal=TERM
    end $gateway_1 $gateway_2 $gateway_3
    children=
}

# end_scene CHECKS: ends its programs; CHECKS have passed
end_scene() {
    end_children TERM
    passed=$((passed + $1))
}

# scene STORE KILLS COMMANDS URL
scene() {
    begin_scene "with-$1"
    chaos "$2" "$3" "$1" --store "$4#scene"
    all_once "$3"
    passed=$((passed + $3 * 4))
    echo "$name: $(($3 * 4)) commands, each executed once and answered;" \
        "$2 kills of gateways, $((($2 + 2) / 4)) of the store;" \
        "interrupted: $(grep -c 'it had poured' "$work/$name-gateways.log")" \
        "after they had poured," \
        "$(grep -c 'it had begun' "$work/$name-gateways.log") in the middle"
}

# An effect that takes longer than the lease, and nobody is killed: it is poured
# once, to the end, for the lease is renewed.
slow() {
    begin_scene slow
    export FLEET_STORE="$1#slow"
    chaos 0 1 none --ml-ms 600
    unset FLEET_STORE
    all_once 1
    ! grep check "$work/$name"/answers-* || fail "slow: a pour was interrupted"
    # A sender asks for 12 hours, and the broker may keep that for a while.
    key=$(redis-cli -s "$work/redis.sock" --scan --pattern 'slow:k:*' |
        head -n 1)
    [ "$(redis-cli -s "$work/redis.sock" ttl "$key")" -gt 80000 ] ||
        fail "slow: a key is forgotten before its sender gives up"
    passed=$((passed + 4))
    echo "slow: 4 commands of up to 5 s with leases of 3 s, each executed once"
}

# A signal does not cut a pour short: it ends after that.
ended() {
    begin_scene ended
    start_gateway 1 --no-idem --ml-ms 1000
    wait_for test -s "$work/ended/ready-1"
    begun=$(date +%s%N)
    "$pour" --port "$broker_port" --retry 500 a 3 >"$work/ended/answer" &
    children="$children $!"
    wait_for grep -q begins "$work/ended/log"
    kill -TERM "$gateway_1"
    wait "$gateway_1" || fail "ended: the gateway did not end well"
    [ $((($(date +%s%N) - begun) / 1000000)) -ge 3000 ] ||
        fail "ended: a pour of 3 s took less"
    grep -q "^ends" "$work/ended/log" || fail "ended: the pour was interrupted"
    end_scene 2
    echo "ended: a signal ends a gateway after its pour"
}

# A gateway that was suspended for a day finds in its socket what came before.
# It must not execute a command that the store forgets at that moment.
suspended() {
    begin_scene suspended
    make_clock gateway
    run_with="with_clocks gateway"
    start_gateway 1 --store "$redis_url#suspended"
    unset run_with
    wait_for test -s "$work/$name/ready-1"
    "$pour" --port "$broker_port" a 3 >"$work/$name/answer"
    kill -STOP "$gateway_1"
    mosquitto_pub -V 5 -p "$broker_port" -q 1 -t pump/panel/command -m 3 \
        -D publish correlation-data a
    for clock in gateway redis; do
        ahead $clock 90000
    done
    kill -CONT "$gateway_1"
    "$pour" --port "$broker_port" b 3 >>"$work/$name/answer"
    [ "$(grep -c "begins.* 61 3" "$work/$name/log")" = 1 ] ||
        fail "suspended: poured again: $(cat "$work/$name/log")"
    end_scene 1
    echo "suspended: a gateway leaves what came long ago"
}

# Nor if it was suspended when it had read that, and had not looked it up yet.
suspended_late() {
    begin_scene suspended_late
    make_clock gateway
    make_nap
    run_with="with_clocks gateway env LD_PRELOAD=$work/clock.so:$work/nap.so"
    start_gateway 1 --store "$redis_url#suspended_late"
    unset run_with
    wait_for test -s "$work/$name/ready-1"
    "$pour" --port "$broker_port" a 3 >"$work/$name/answer"
    printf '%s\n' "$work/gateway.ahead" "$work/redis.ahead" >"$work/nap"
    mosquitto_pub -V 5 -p "$broker_port" -q 1 -t pump/panel/command -m 3 \
        -D publish correlation-data a
    "$pour" --port "$broker_port" b 3 >>"$work/$name/answer"
    [ ! -e "$work/nap" ] ||
        fail "suspended late: it was not: the test shows nothing"
    [ "$(grep -c "begins.* 61 3" "$work/$name/log")" = 1 ] ||
        fail "suspended late: poured again: $(cat "$work/$name/log")"
    end_scene 1
    echo "suspended late: nor does it execute that after its claim"
}

# gateway_refuses WORDS [OPTIONS]: to start
gateway_refuses() {
    words=$1
    shift
    ! timeout 20 "$B/fleet/gateway" --port "$broker_port" \
        --secret "$work/secret" --log "$work/bad.log" \
        --store "$redis_url#logs" "$@" 2>"$work/refused" >/dev/null ||
        fail "a gateway started: expected \"$words\""
    grep -q -- "$words" "$work/refused" ||
        fail "$(cat "$work/refused"): expected \"$words\""
    passed=$((passed + 1))
}

# The log that shows what was done is not what it was: no gateway goes on.
logs() {
    rm -f "$work/bad.log"
    gateway_refuses "bad.log: no log"
    : >"$work/bad.log"
    gateway_refuses "bad.log"
    echo 'begins x' >"$work/bad.log"
    gateway_refuses "bad.log"
    for option in "--port 70000" "--lease-ms 4294968296" "--ml-ms 5x"; do
        gateway_refuses "^${option% *}: not a number, or too large" $option
    done
    gateway_refuses "^--lease-ms: at least 1000" --lease-ms 999
    # Digits instead of bytes, and too few: half a secret is none.
    "$B/fleet/gateway" --new-log "$work/good.log"
    for size in 8 32; do
        head -c $size /dev/zero | tr '\0' a >"$work/digits"
        gateway_refuses "digits: not 16 bytes" --secret "$work/digits" \
            --log "$work/good.log"
    done
    build fleet/effect -DLOCK_TURNS=50 $here/effect.c $F/effect.c
    "$B/fleet/effect" "$work" >"$work/effect" || fail "$(cat "$work/effect")"
    count "$(tail -n 1 "$work/effect")"
    cat "$work/effect"
}

# A response that is longer than this gateway's, of one that may have longer
# ones: nothing that is beside the buffer is sent instead.
longer() {
    begin_scene longer
    start_gateway 1 --store "$redis_url#longer"
    wait_for test -s "$work/$name/ready-1"
    "$pour" --port "$broker_port" a 3 >"$work/$name/answer"
    redis-cli -s "$work/redis.sock" eval "
        local slot = redis.call('KEYS', 'longer:k:*')[1]
        local all = redis.call('HGETALL', slot)
        redis.call('HSET', slot, all[1], all[2] .. ('2e'):rep(500))" 0 \
        >>"$work/$name/redis.log"
    "$pour" --port "$broker_port" a 3 >>"$work/$name/answer"
    [ "$(cat "$work/$name/answer")" = "a 3 0x00 poured 3 ml
a 3 0x00 " ] || fail "longer: $(cat "$work/$name/answer")"
    end_scene 1
    echo "longer: of a response that does not fit nothing is sent"
}

# The pump stops before another gateway may take over, and after a sleep.
stops() {
    build fleet/pouring $here/pouring.c -lmosquitto
    "$B/fleet/pouring" >"$work/pouring" || fail "$(cat "$work/pouring")"
    count "$(tail -n 1 "$work/pouring")"
    cat "$work/pouring"
}

# A log that is not the fleet's does not have what another gateway has begun: as
# one that is made anew on a second machine, or after a loss.
another_log() {
    begin_scene another_log
    "$B/fleet/gateway" --new-log "$work/$name/log-2"
    start_gateway 1 --store "$redis_url#another_log" --ml-ms 60000
    wait_for test -s "$work/$name/ready-1"
    "$pour" --port "$broker_port" --retry 500 a 3 >"$work/$name/answer" &
    children="$children $!"
    wait_for grep -q begins "$work/$name/log"
    signal=KILL; end "$gateway_1"
    ahead redis 10                      # its lease has ended
    gateway_refuses "another fleet's.*another log" --id other \
        --log "$work/$name/log-2" --store "$redis_url#another_log"
    [ "$(grep -c begins "$work/$name/log-2")" = 0 ] ||
        fail "another log: poured again: $(cat "$work/$name/log-2")"
    start_gateway 1 --store "$redis_url#another_log"
    wait_for test -s "$work/$name/answer"
    [ "$(cat "$work/$name/answer")" = "a 3 0x83 check the cup" ] ||
        fail "another log: $(cat "$work/$name/answer")"
    end_scene 3
    echo "another log: a gateway with a log of its own is refused"
}

# blind KILLS COMMANDS: the same without; the scene must be able to fail
blind() {
    begin_scene without-a-store
    chaos "$1" "$2" none --no-idem
    some_twice "$2"
    passed=$((passed + 1))
}

head -c 16 /dev/urandom >"$work/secret"
need broker redis postgres
stops
logs
another_log
ended
suspended
suspended_late
longer
slow "$redis_url"
kills=8 count=250
[ "${SHORT:-}" != 1 ] || kills=4
scene redis $kills $count "$redis_url"
scene postgres $kills $count "$postgres_url"
if [ "${SHORT:-}" != 1 ]; then
    need dynamodb
    scene dynamodb $kills $count "$dynamodb_url"
fi
blind $kills $count
signal=KILL; end $broker
broker=
