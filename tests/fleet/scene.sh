# SPDX-License-Identifier: 0BSD
# Commands of four senders to three gateways behind a shared subscription of a
# real broker, while gateways are killed or suspended and the store is killed
# and started again.  Audited from outside: each command in the pump's log once,
# each answered, each answer right.  Without a store the same must find commands
# that were executed twice.

build fleet/gateway $F/gateway.c $F/effect.c $STORES -lmosquitto $LIBS
build fleet/pour examples/mqtt/pour.c -lmosquitto
pour=$B/fleet/pour
. tests/demo/pours.sh

# start_gateway NUMBER [OPTIONS]
start_gateway() {
    number=$1
    shift
    "$B/fleet/gateway" --port "$broker_port" --id "gateway-$name-$number" \
        --ml-ms 2 \
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

# scene STORE KILLS COMMANDS URL
scene() {
    name=with-$1
    mkdir "$work/$name"
    chaos "$2" "$3" "$1" --store "$4#scene"
    all_once "$3"
    passed=$((passed + $3 * 4))
    echo "$name: $(($3 * 4)) commands, each executed once and answered;" \
        "$2 kills of gateways, $((($2 + 2) / 4)) of the store;" \
        "$(grep -c 'it had poured' "$work/$name-gateways.log") cut short" \
        "after they had poured"
}

# blind KILLS COMMANDS: the same without; the scene must be able to fail
blind() {
    name=without-a-store
    mkdir "$work/$name"
    chaos "$1" "$2" none --no-idem
    some_twice "$2"
    passed=$((passed + 1))
}

head -c 16 /dev/urandom >"$work/secret"
kills=8 count=250
[ "${SHORT:-}" != 1 ] || kills=4
need broker redis postgres
scene redis $kills $count "$redis_url"
scene postgres $kills $count "$postgres_url"
if [ "${SHORT:-}" != 1 ]; then
    need dynamodb
    scene dynamodb $kills $count "$dynamodb_url"
fi
blind $kills $count
signal=KILL; end $broker
broker=
