# SPDX-License-Identifier: 0BSD
# Records of a topic, each executed once: by a consumer that is killed before
# each of its writes in turn (to the store, to the log, to Kafka); and by a
# group of which one is killed again and again.

build fleet/consumer $F/consumer.c $F/effect.c $STORES -lrdkafka $LIBS
build fleet/broker $here/broker.c -lrdkafka
need redis
[ -s "$work/secret" ] || head -c 16 /dev/urandom >"$work/secret"

# start_kafka NAME PARTITIONS RECORDS
start_kafka() {
    kafka_name=$1 records=$3
    "$B/fleet/broker" "$2" "$3" >"$work/$1.kafka" 2>>"$work/broker.log" &
    kafka=$!
    children="$children $kafka"
    wait_for test -s "$work/$1.kafka"
    "$B/fleet/consumer" --new-log "$work/$1.log" ||
        fail "consumer --new-log failed"
}

stop_kafka() {
    signal=KILL
    end "$kafka"
}

# consume [BEFORE IT]...: a consumer, until nothing comes any more
consume() {
    FLEET_STORE="$redis_url#$kafka_name" "$@" "$B/fleet/consumer" \
        --brokers "$(cat "$work/$kafka_name.kafka")" --secret "$work/secret" \
        --log "$work/$kafka_name.log" --lease-ms 10000 $options \
        2>>"$work/$kafka_name-printed.log"
}

# The same beside this; its number is in $started.
start_consumer() {
    consume exec &
    started=$!
    children="$children $started"
}

# Fails unless the log has each record once.
audit_records() {
    sed -n 's/^begins [^ ]* [^ ]* //p' "$work/$kafka_name.log" |
        sort >"$work/executed"
    i=0
    while [ $i -lt "$records" ]; do
        i=$((i + 1))
        echo c$i
    done | sort | diff - "$work/executed" || fail "$kafka_name: see above"
    passed=$((passed + records))
}

# kill_at NUMBER CALLS [OPTION OF STRACE]: it must die of that
kill_at() {
    { consume strace ${3:-} -qq -o /dev/null -e trace="$2" \
        -e inject="$2:signal=SIGKILL:when=$1"; } 2>/dev/null &&
        fail "the consumer ended before call $1 of $2"
    kills=$((kills + 1))
    ahead redis 10                  # its lease has ended
}

# Killed before write number 1, 2, 3 ... of its main thread, and of the thread
# that speaks with the broker
at_each_write() {
    start_kafka "at_each_write" 1 $(($1 * $1))
    options='--partition 0 --idle-ms 3000'
    kills=0
    n=0
    while [ $n -lt "$1" ]; do
        n=$((n + 1))
        kill_at $n write,fdatasync
        kill_at $n sendmsg -f           # the threads of librdkafka
    done
    consume || fail "the last consumer failed"
    audit_records
    stop_kafka
    done=$(grep -c 'it was done' "$work/$kafka_name-printed.log")
    begun=$(grep -c 'it was begun' "$work/$kafka_name-printed.log")
    not_done=$(grep -c 'it was not done' "$work/$kafka_name-printed.log")
    [ "$done" -gt 0 ] && [ "$not_done" -gt 0 ] && [ "$begun" -gt 0 ] ||
        fail "at each write: nothing was interrupted: the test shows nothing"
    echo "at each write: $records records, each executed once; $kills kills," \
        "$done with a record done and not recorded, $begun while it was" \
        "executed, $not_done before"
}

# One that was killed while it executed, and comes again when its number is too
# old, is not executed, nor passed over without a word.
too_late() {
    start_kafka too_late 1 1
    options='--partition 0 --idle-ms 3000'
    kills=0
    until grep -q '^begins' "$work/$kafka_name.log"; do
        kill_at $((kills + 1)) write,fdatasync
    done
    ahead redis 90000
    consume || fail "too late: the consumer failed"
    grep -q '^ends' "$work/$kafka_name.log" && fail "too late: it was executed"
    grep -q 'it was begun: check' "$work/$kafka_name-printed.log" ||
        fail "too late: nobody hears that it was interrupted"
    audit_records
    stop_kafka
    echo "too late: a record that was interrupted is reported"
}

# A store that is silent is waited for, and that is printed once.
silent_store() {
    start_kafka silent_store 1 300
    options='--partition 0'
    start_consumer
    consumer=$started
    wait_for has_begun 10
    kill -STOP "$redis"
    wait_for grep -q 'trying again' "$work/$kafka_name-printed.log"
    sleep 6
    kill -CONT "$redis"
    ahead redis 10                      # it may have got the claim
    wait_for has_begun "$records"
    signal=TERM; end "$consumer"
    audit_records
    [ "$(grep -c 'trying again' "$work/$kafka_name-printed.log")" = 1 ] ||
        fail "silent store: it was not printed once"
    stop_kafka
    echo "silent store: the consumer prints that once"
}

# has_begun NUMBER: at least that many records
has_begun() {
    [ "$(grep -c '^begins' "$work/$kafka_name.log")" -ge "$1" ]
}

# Two consumers of a group; the older one is killed again and again, when there
# is more done, and a new one started
in_a_group() {
    start_kafka in_a_group 4 $(($1 * 200))
    options='--session-ms 6000'
    start_consumer
    older=$started
    kills=0
    while [ $kills -lt "$1" ]; do
        start_consumer
        younger=$started
        kills=$((kills + 1))
        wait_for has_begun $((kills * records / ($1 + 1)))
        signal=KILL; end "$older"
        ahead redis 10
        older=$younger
    done
    wait_for has_begun "$records"
    signal=TERM; end "$younger"
    audit_records
    stop_kafka
    echo "in a group: $records records, each executed once; $kills kills"
}

if [ "${SHORT:-}" = 1 ]; then
    at_each_write 18
    in_a_group 3
else
    at_each_write 40
    in_a_group 6
fi
too_late
silent_store
