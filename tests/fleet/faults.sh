# SPDX-License-Identifier: 0BSD
# Bad luck: a store that is down, goes away or falls silent, that has another's
# data, was emptied, or is full.

build fleet/faults $here/stories.c $STORES $LIBS
need redis postgres dynamodb
redis_cli="redis-cli -s $work/redis.sock"
psql="psql -q -h $work/postgres -U fleet postgres"
mkfifo "$work/go" "$work/said"

# faults WHAT URL NAME: does our part, when it is asked for: help 1, help 2
faults() {
    "$B/fleet/faults" "$1" "$2" <"$work/go" >"$work/said" \
        2>"$work/faults.log" &
    children=$!
    exec 3>"$work/go" 4<"$work/said"
    part=0
    while read -r line <&4 && [ "$line" = now ]; do
        part=$((part + 1))
        help_$1 $part >/dev/null 3>&- 4<&-
        echo >&3
    done
    wait $children || fail "faults: $1 $2: $line"
    exec 3>&- 4<&-
    children=
    count "$line"
    echo "faults: $3: $line"
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
        faults away "$url#away_$how" "$store, $how in the middle"
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
faults misfit "$dynamodb_url#foreign" "DynamoDB, another's table"
dynamodb UpdateItem '{"TableName":"secret",
    "Key":{"slot":{"S":"mark"},"id":{"S":"mark"}},
    "UpdateExpression":"SET mk = :mk",
    "ExpressionAttributeValues":{":mk":{"S":"idem fleet 1 00 1"}}}' >/dev/null
faults foreign "$dynamodb_url#secret" "DynamoDB, another version"

for store in redis postgres dynamodb; do
    eval "url=\$${store}_url"
    faults emptied "$url#emptied" "$store, emptied"
done
faults foreign_key "$redis_url#foreign_key" "Redis, another's keys"
faults made_anew "$redis_url#made_anew" "Redis, made anew"
faults full "$redis_url#full" "Redis, maxmemory"
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
