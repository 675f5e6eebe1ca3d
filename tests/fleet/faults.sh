# SPDX-License-Identifier: 0BSD
# Bad luck: a store that is down, goes away or falls silent, that has another's
# data, was emptied, or is full.

build fleet/faults $here/faults.c $here/subject.c $FLEET $LIBS
need redis postgres dynamodb
redis_cli="redis-cli -s $work/redis.sock"
psql="psql -q -h $work/postgres -U fleet postgres"
mkfifo "$work/go"

# faults WHAT URL: none of our doing is needed
faults() {
    "$B/fleet/faults" "$1" "$2" >"$work/said" 2>"$work/faults.log" ||
        fail "faults: $1 $2: $(cat "$work/said")"
    count "$(tail -n 1 "$work/said")"
    echo "faults: $3: $(tail -n 1 "$work/said")"
}

# with_help WHAT URL NAME: does our part, when it is asked for: help 1, help 2
with_help() {
    : >"$work/said"
    "$B/fleet/faults" "$1" "$2" <"$work/go" >"$work/said" \
        2>"$work/faults.log" &
    started=$!
    children=$started
    exec 3>"$work/go"
    part=1
    while [ $part -le "$4" ]; do
        wait_for said_now $part
        help_$1 $part >/dev/null
        echo >&3
        part=$((part + 1))
    done
    wait $started || fail "faults: $1 $2: $(cat "$work/said")"
    exec 3>&-
    children=
    count "$(tail -n 1 "$work/said")"
    echo "faults: $3: $(tail -n 1 "$work/said")"
}

said_now() {
    [ "$(grep -c now "$work/said")" -ge "$1" ]
}

# The server is killed, or suspended; and back again.
help_away() {
    case $1$how in
    1killed) crash $store ;;
    2killed) start_$store ;;
    1silent) signal_all STOP ;;
    2silent) signal_all CONT ;;
    esac
}

# All processes of the server
signal_all() {
    eval "pid=\$$store"
    kill -"$1" $pid $(ps -o pid= --ppid $pid)
}

help_emptied() {
    case $store in
    redis) $redis_cli flushall ;;
    postgres) $psql -c 'DROP TABLE emptied CASCADE' ;;
    dynamodb)
        sleep 1.1               # its time is told to the second
        dynamodb DeleteTable '{"TableName":"emptied"}' ;;
    esac
}

# Emptied while it was away
help_made_anew() {
    crash redis
    rm -r "$work/redis"
    start_redis
}

help_foreign_key() {
    $redis_cli set foreign_key:k:70756d70:737472696e67 x    # pump, string
    $redis_cli hset foreign_key:k:70756d70:68617368 a b     # pump, hash
}

help_full() {
    [ "$1" = 1 ] && $redis_cli config set maxmemory 1 ||
        $redis_cli config set maxmemory 0
}

# dynamodb OPERATION BODY
dynamodb() {
    curl -sS --aws-sigv4 aws:amz:us-east-1:dynamodb --user fleet:fleet \
        -H "X-Amz-Target: DynamoDB_20120810.$1" \
        -H 'Content-Type: application/x-amz-json-1.0' -d "$2" \
        "http://127.0.0.1:$dynalite_port/"
}

faults arguments redis://localhost "arguments"
faults down_at_start redis:///nowhere.sock "Redis down at start"
faults down_at_start "postgres:///x?host=/nowhere" "PostgreSQL down at start"
faults down_at_start "dynamodb://127.0.0.1:$(free_port)" \
    "DynamoDB down at start"
for store in redis postgres dynamodb; do
    eval "url=\$${store}_url"
    for how in killed silent; do
        with_help away "$url#away_$how" "$store, $how in the middle" 2
    done
    faults another_secret "$url#secret" "$store, another secret"
done

$redis_cli set foreign:mark 'not ours' >/dev/null
faults foreign "$redis_url#foreign" "Redis, another's mark"
$psql -c 'CREATE TABLE foreign_one (a int)'
faults foreign "$postgres_url#foreign_one" "PostgreSQL, another's table"
[ "$($psql -Atc 'SELECT count(*) FROM foreign_one')" = 0 ] || fail "touched"
# The mark of another version
$redis_cli set version:mark "$($redis_cli get secret:mark |
    sed 's/fleet 2/fleet 1/')" >/dev/null
faults foreign "$redis_url#version" "Redis, another version"
$psql -c "CREATE TABLE version (a int)"
$psql -c "COMMENT ON TABLE version IS 'idem fleet 1 00 1'"
faults foreign "$postgres_url#version" "PostgreSQL, another version"

key='{"AttributeName":"id","KeyType":"HASH"}'
dynamodb CreateTable '{"TableName":"foreign","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],
    "KeySchema":['"$key"']}' >/dev/null
faults foreign "$dynamodb_url#foreign" "DynamoDB, another's table"
dynamodb UpdateItem '{"TableName":"secret",
    "Key":{"slot":{"S":"mark"},"id":{"S":"mark"}},
    "UpdateExpression":"SET mk = :mk",
    "ExpressionAttributeValues":{":mk":{"S":"idem fleet 1 00 1"}}}' >/dev/null
faults foreign "$dynamodb_url#secret" "DynamoDB, another version"

for store in redis postgres dynamodb; do
    eval "url=\$${store}_url"
    with_help emptied "$url#emptied" "$store, emptied" 1
done
with_help foreign_key "$redis_url#foreign_key" "Redis, another's keys" 1
with_help made_anew "$redis_url#made_anew" "Redis, made anew" 1
with_help full "$redis_url#full" "Redis, maxmemory" 2
$redis_cli config set requirepass open-sesame >/dev/null
faults another_secret "redis://:open-sesame@$work/redis.sock#password" \
    "Redis, with a password"
faults down_at_start "redis://:open-barley@$work/redis.sock" \
    "Redis, a wrong password"
! grep open- "$work/faults.log" || fail "a password was told"
faults down_at_start "redis://$work/redis.sock" "Redis, no password"
$redis_cli -a open-sesame config set requirepass '' >/dev/null 2>&1
$redis_cli config set appendfsync everysec >/dev/null
faults down_at_start "$redis_url#settings" "Redis that would forget"
$redis_cli config set appendfsync always >/dev/null
faults transaction "$postgres_url#bought" "PostgreSQL, own transaction"
faults dropped "$postgres_url#dropped" "PostgreSQL, what is over"
