# SPDX-License-Identifier: 0BSD
# Commands of four senders to three gateways behind a shared subscription of a
# real broker, while gateways are killed or suspended and the store is killed
# and started again.  Audited from outside: each command in the pump's log once,
# each answered, each answer right.  Without a store the same must find commands
# that were executed twice.

build fleet/gateway $F/gateway.c $F/effect.c $STORES -lmosquitto $LIBS
build fleet/pour examples/mqtt/pour.c -lmosquitto

# The amount of a command is made from its number; senders use the same keys.
commands() {
    awk -v n="$1" 'BEGIN {
        for (i = 1; i <= n; i++) print "c" i, 1 + i * 7 % 9 }'
}

start_broker() {
    cat >"$work/broker.conf" <<END
listener $broker_port 127.0.0.1
allow_anonymous true
set_tcp_nodelay true
user $(id -un)
log_type error
END
    mosquitto -c "$work/broker.conf" >>"$work/broker.log" 2>&1 &
    broker=$!
}

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
restart_store() {
    case $1 in
    redis)
        signal=KILL; end $redis
        sleep 0.5
        start_redis ;;
    postgres)
        kill -QUIT "$postgres"      # at once, as a crash: it recovers
        wait "$postgres" 2>/dev/null
        sleep 0.5
        start_postgres ;;
    dynamodb)
        signal=KILL; end $dynalite
        sleep 0.5
        start_dynalite ;;
    esac
}

# chaos KILLS COMMANDS STORE [OPTIONS]
chaos() {
    kills=$1 count=$2 store=$3
    shift 3
    for g in 1 2 3; do
        start_gateway $g "$@"
        wait_for test -s "$work/$name/ready-$g"
    done
    senders=
    for s in 1 2 3 4; do
        commands "$count" | "$B/fleet/pour" --port "$broker_port" \
            --id "$name-$s" --retry 300 >"$work/$name/answers-$s" &
        senders="$senders $!"
    done
    children="$children $senders"
    i=0
    while [ $i -lt "$kills" ]; do
        i=$((i + 1)) g=$((i % 3 + 1))
        sleep "0.$((2 + i % 5))"
        eval "pid=\$gateway_$g"
        if [ $((i % 2)) = 0 ]; then     # away for longer than a sender waits
            kill -STOP "$pid"
            sleep 1
            kill -CONT "$pid"
            sleep 0.2
        fi
        signal=KILL; end "$pid"
        start_gateway $g "$@"
        [ $((i % 4)) != 2 ] || restart_store "$store"
    done
    for s in $senders; do
        wait "$s" || fail "$name: a sender gave up"
    done
    signal=TERM
    end $gateway_1 $gateway_2 $gateway_3
    children=
}

# audit COMMANDS: how many were executed more than once; fails if one was not
# executed, or not answered, or answered wrongly
audit() {
    for s in 1 2 3 4; do
        commands "$1" | sed "s,^,command $name-$s ,"
        sed "s,^,answer $name-$s ," "$work/$name/answers-$s"
    done >"$work/$name/audit"
    sed 's,^pump/\(.*\)/command,log \1,' "$work/$name/log" \
        >>"$work/$name/audit"
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
        $1 == "command" { ml[id] = $4; commands++ }
        $1 == "answer" {
            if (!(id in ml) || $4 != ml[id] || $5 != "0x00" ||
                $6 " " $7 " " $8 != "poured " ml[id] " ml" || answered[id]++)
                wrong($0)
        }
        $1 == "log" {
            if (!(id in ml) || $4 != ml[id])
                wrong($0)
            if (poured[id]++ == 1)
                twice++
        }
        END {
            if (commands != wanted) wrong(commands " commands")
            for (id in ml) {
                if (!answered[id]) wrong("no answer: " id)
                if (!poured[id]) wrong("answered, not poured: " id)
            }
            print twice + 0
            exit bad
        }' wanted=$(($1 * 4)) "$work/$name/audit" || fail "$name: see above"
}

# scene STORE KILLS COMMANDS URL
scene() {
    name=with-$1
    mkdir "$work/$name"
    chaos "$2" "$3" "$1" --store "$4#scene"
    twice=$(audit "$3") || exit 1
    [ "$twice" = 0 ] || fail "$name: $twice commands were executed twice"
    passed=$((passed + $3 * 4))
    echo "$name: $(($3 * 4)) commands, each executed once and answered;" \
        "$2 kills of gateways, $((($2 + 2) / 4)) of the store;" \
        "$(grep -c 'it had poured' "$work/$name-gateways.log") cut short" \
        "after they had poured"
}

# blind KILLS COMMANDS: the same without; the scene must be able to fail
blind() {
    name=blind
    mkdir "$work/$name"
    chaos "$1" "$2" none --no-idem
    twice=$(audit "$2") || exit 1
    [ "$twice" -gt 0 ] || fail "nothing was executed twice; a blunt scene"
    passed=$((passed + 1))
    echo "without a store: $(($2 * 4)) commands, $twice executed more than once"
}

broker_port=$("$B/proxy")
start_broker
head -c 16 /dev/urandom >"$work/secret"
kills=8 count=250
[ "${SHORT:-}" != 1 ] || kills=4
need redis postgres
scene redis $kills $count "$redis_url"
scene postgres $kills $count "$postgres_url"
if [ "${SHORT:-}" != 1 ]; then
    need dynalite
    scene dynamodb $kills $count "$dynamodb_url"
fi
blind $kills $count
signal=KILL; end $broker
broker=
