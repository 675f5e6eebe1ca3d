# SPDX-License-Identifier: 0BSD
# Faults of a store: it is down, goes away or falls silent, has data of another
# fleet, was emptied, or is full.

build fleet/faults -fsanitize=address,undefined \
    -fno-sanitize-recover=all $here/scenarios.c $STORES $LIBS
need redis postgres dynamodb
redis_cli="redis-cli -s $work/redis.sock"
psql="psql -q -h $work/postgres -U fleet postgres"
mkfifo "$work/go" "$work/lines"

# faults WHAT URL NAME: does our part, when it is asked for: help 1, help 2
faults() {
    "$B/fleet/faults" "$1" "$2" <"$work/go" >"$work/lines" \
        2>"$work/faults.log" &
    children=$!
    exec 3>"$work/go" 4<"$work/lines"
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
    3killed) crash $store; start_$store ;;
    1silent) signal_all STOP ;;
    2silent) signal_all CONT ;;
    3silent) signal_all STOP; wake_after 6 ;;   # its timeout is 5 s
    esac
}

help_largest() { how=silent; help_away "$1"; }

# It answers after 3.5 s: half of a lease of 2 s is gone then.
help_late() { signal_all STOP; wake_after 3.5; }

# wake_after SECONDS
wake_after() {
    (sleep "$1"; signal_all CONT) >/dev/null 2>&1 &
}

# All processes of the server
signal_all() {
    eval "pid=\$$store"
    kill -"$1" $pid $(ps -o pid= --ppid $pid)
}

help_emptied() {
    case $store in
    redis) $redis_cli flushall ;;
    postgres) $psql -c "$how emptied" ;;
    dynamodb)
        sleep 1.1               # its time has whole seconds
        dynamodb DeleteTable '{"TableName":"emptied"}' ;;
    esac
}

# Emptied while it was away
help_made_anew() {
    crash redis
    rm -r "$work/redis"
    start_redis
}

# What was written since the first time is gone.
help_restored() {
    case $1$store in
    1redis) cp -r "$work/redis" "$work/older" ;;
    2redis)
        crash redis
        rm -r "$work/redis"
        mv "$work/older" "$work/redis"
        start_redis ;;
    1postgres) older=$($psql -Atc 'SELECT max(token) FROM restored') ;;
    2postgres)
        $psql -c "DELETE FROM restored WHERE token > $older" \
            -c "SELECT setval('restored_token', $older)" \
            -c "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE pid <> pg_backend_pid()" ;;
    esac
}

# A record of ours is somebody else's.
help_foreign_key() {
    bucket=$($redis_cli keys 'foreign_key:k:*')
    $redis_cli del "$bucket"
    case $1 in
    1) $redis_cli set "$bucket" x ;;
    2) $redis_cli hset "$bucket" 70756d70:31 x ;;       # pump, 1
    esac
}

# Outcomes that have expired, before that which has not
help_undelivered() {
    $redis_cli eval "for i = 1, 50000 do
        redis.call('ZADD', 'undelivered:pending', i, i .. ':' .. i) end" 0
}

# One is in the index of the undelivered, and was read there.
help_passed_by() {
    dynamodb Query '{"TableName":"passed_by","IndexName":"pending",
        "Select":"COUNT","KeyConditionExpression":"due = :one",
        "ExpressionAttributeValues":{":one":{"S":"1"}}}' >"$work/listed"
    grep -q '"Count":1[,}]' "$work/listed" ||
        fail "faults: not one item is undelivered, $1: $(cat "$work/listed")"
}

help_replica() {
    case $1 in
    1) $redis_cli replicaof 127.0.0.1 1 ;;
    2) $redis_cli replicaof no one ;;
    3) $redis_cli script flush ;;
    esac
}

# What stands before the service does next (proxy.py)
help_refused() {
    set -- $1 403 429 503 mixed text undated pass
    shift "$1"
    echo "$1" >"$work/mode"
}

help_throttled() {
    [ "$1" = 1 ] && echo throttle >"$work/mode" || echo pass >"$work/mode"
}

# Other credentials are wanted; they are there.
help_expired() {
    [ "$1" = 1 ] && echo "only renewed 4096" >"$work/mode" ||
        write_credentials renewed 4096
}

# write_credentials KEY LENGTH: with a token of that length; 4096 is the most
# that the service gives
write_credentials() {
    printf '[other]\naws_access_key_id = no\n[default]\n%s\n%s\n%s%0*d\n' \
        "aws_access_key_id = $1" "aws_secret_access_key=fleet" \
        "aws_session_token = " "$2" 0 >"$work/credentials"
}

help_full() {
    [ "$1" = 1 ] && $redis_cli config set maxmemory 1 ||
        $redis_cli config set maxmemory 0
}

start_proxy() {
    proxy_port=$(free_port)
    echo pass >"$work/mode"
    python3 $here/proxy.py "$proxy_port" "$dynalite_port" "$work/mode" \
        2>"$work/proxy.log" &
    proxy=$!
    daemon="$daemon $proxy"
    proxy_url=dynamodb://127.0.0.1:$proxy_port
    wait_for curl -s "http://127.0.0.1:$proxy_port/"
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
    faults largest "$url#largest" "$store, largest key and response, silent"
    faults numbers "$url#numbers" "$store, many numbers"
    faults repeated "$url#repeated" "$store, calls repeated"
    faults mistaken "$url#mistaken" "$store, an outcome that is refused"
    faults another_secret "$url#secret" "$store, another secret"
done
for store in redis postgres; do
    eval "url=\$${store}_url"
    faults late "$url#late" "$store, answers late"
    faults restored "$url#restored" "$store, an older state restored"
done

# Another's data
$redis_cli hset foreign:fleet mark 'not ours' >/dev/null
faults foreign "$redis_url#foreign" "Redis, another's mark"
$redis_cli set foreign_type:fleet 'not ours' >/dev/null
faults foreign "$redis_url#foreign_type" "Redis, another's key"
$psql -c 'CREATE TABLE foreign_one (a int)'
faults foreign "$postgres_url#foreign_one" "PostgreSQL, another's table"
[ "$($psql -Atc 'SELECT count(*) FROM foreign_one')" = 0 ] ||
    fail "faults: a foreign table was written to"
# The mark of another version
$redis_cli hset version:fleet mark "$($redis_cli hget secret:fleet mark |
    sed 's/fleet 3/fleet 2/')" >/dev/null
faults foreign "$redis_url#version" "Redis, another version"
$psql -c "CREATE TABLE version (LIKE secret)" \
    -c "INSERT INTO version SELECT * FROM secret WHERE slot = 0" \
    -c "UPDATE version SET response = 'idem fleet 2 00 1' WHERE id = ''"
faults foreign "$postgres_url#version" "PostgreSQL, another version"

key='{"AttributeName":"id","KeyType":"HASH"}'
dynamodb CreateTable '{"TableName":"foreign","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}],
    "KeySchema":['"$key"']}' >/dev/null
faults misfit "$dynamodb_url#foreign" "DynamoDB, another's table"
dynamodb UpdateItem '{"TableName":"secret",
    "Key":{"slot":{"S":"mark"},"id":{"S":"mark"}},
    "UpdateExpression":"SET mk = :mk",
    "ExpressionAttributeValues":{":mk":{"S":"idem fleet 2 00 1"}}}' >/dev/null
faults foreign "$dynamodb_url#secret" "DynamoDB, another version"

# Emptied, or what is in it is damaged
for store in redis dynamodb; do
    eval "url=\$${store}_url"
    faults emptied "$url#emptied" "$store, emptied"
done
store=postgres
for how in TRUNCATE 'DELETE FROM' 'DROP TABLE'; do
    faults emptied "$postgres_url#emptied" "PostgreSQL, emptied by $how"
    $psql -c 'DROP TABLE emptied'
done
faults foreign_key "$redis_url#foreign_key" "Redis, another's records"
faults made_anew "$redis_url#made_anew" "Redis, made anew"
faults undelivered "$redis_url#undelivered" "Redis, many undelivered"
faults full "$redis_url#full" "Redis, maxmemory"
faults replica "$redis_url#replica" "Redis, a replica for a while"

# How Redis is reached
port=$(free_port)
$redis_cli config set port "$port" >/dev/null
faults works "redis://127.0.0.1:$port/3#tcp" "Redis, TCP, database 3"
[ "$($redis_cli -n 3 exists tcp:fleet)" = 1 ] ||
    fail "faults: the data are not in database 3"
! redis-cli -h ::1 -p "$port" ping >/dev/null 2>&1 ||
    faults works "redis://[::1]:$port#tcp_6" "Redis, IPv6"
$redis_cli acl setuser 'li:mi@ted' on '>a/b%c' '~*' '&*' +@all -config \
    >/dev/null
limited="redis://li%3ami%40ted:a%2Fb%25c@$work/redis.sock"
faults works "$limited#limited" "Redis, a user that sees no CONFIG"
for setting in maxmemory-policy=allkeys-lru appendonly=no; do
    was=$($redis_cli config get "${setting%=*}" | tail -n 1)
    $redis_cli config set "${setting%=*}" "${setting#*=}" >/dev/null
    faults down_at_start "$limited#limited" "Redis, CONFIG hidden, $setting"
    $redis_cli config set "${setting%=*}" "$was" >/dev/null
done
for setting in appendfsync=everysec no-appendfsync-on-rewrite=yes; do
    was=$($redis_cli config get "${setting%=*}" | tail -n 1)
    $redis_cli config set "${setting%=*}" "${setting#*=}" >/dev/null
    faults down_at_start "$redis_url#settings" "Redis, $setting"
    $redis_cli config set "${setting%=*}" "$was" >/dev/null
done
$redis_cli config set requirepass open-sesame >/dev/null
faults another_secret "redis://:open-sesame@$work/redis.sock#password" \
    "Redis, with a password"
faults down_at_start "redis://:open-barley@$work/redis.sock" \
    "Redis, a wrong password"
! grep open- "$work/faults.log" || fail "a password was printed"
faults down_at_start "redis://$work/redis.sock" "Redis, no password"
$redis_cli -a open-sesame config set requirepass '' >/dev/null 2>&1
mkdir "$work/without"
redis-server --port 0 --unixsocket "$work/without/sock" --rename-command \
    AUTH '' --dir "$work/without" >"$work/without/log" 2>&1 &
without=$!
daemon="$daemon $without"
wait_for redis-cli -s "$work/without/sock" ping
faults refuses_password "redis://:open-sesame@$work/without/sock" \
    "Redis without AUTH, which repeats the password"
signal=TERM; end $without
mkdir "$work/cluster"
redis-server --port 0 --unixsocket "$work/cluster/sock" --cluster-enabled yes \
    --dir "$work/cluster" --appendonly yes --appendfsync always \
    >"$work/cluster/log" 2>&1 &
cluster=$!
wait_for redis-cli -s "$work/cluster/sock" ping
faults down_at_start "redis://$work/cluster/sock" "Redis Cluster"
signal=TERM; end $cluster

# PostgreSQL
faults transaction "$postgres_url#bought" "PostgreSQL, own transaction"
faults dropped "$postgres_url#dropped" "PostgreSQL, what has expired"
faults forgotten "$postgres_url#forgotten" "PostgreSQL, gone before its lease"
for setting in fsync full_page_writes; do
    $psql -c "ALTER SYSTEM SET $setting = off" -c 'SELECT pg_reload_conf()' \
        >/dev/null
    wait_for test "$($psql -Atc "SHOW $setting")" = off
    faults down_at_start "$postgres_url#settings" "PostgreSQL, $setting off"
    $psql -c "ALTER SYSTEM RESET $setting" -c 'SELECT pg_reload_conf()' \
        >/dev/null
done
faults works "postgresql${postgres_url#postgres}#other_scheme" "postgresql://"

mkdir "$work/pooler"
[ -z "$as_postgres" ] || chown postgres "$work/pooler"
cat >"$work/pooler/ini" <<END
[databases]
postgres = host=$work/postgres user=fleet
[pgbouncer]
unix_socket_dir = $work/pooler
auth_type = any
pool_mode = transaction
END
$as_postgres pgbouncer "$work/pooler/ini" >"$work/pooler/log" 2>&1 &
pooler=$!
daemon="$daemon $pooler"
wait_for psql -h "$work/pooler" -p 6432 -U fleet -c 'SELECT 1' postgres
faults down_at_start \
    "postgres:///postgres?user=fleet&host=$work/pooler&port=6432" \
    "PostgreSQL behind pgbouncer"
signal=TERM; end $pooler

faults passed_by "$dynamodb_url#passed_by" "DynamoDB, undelivered and expired"

# What stands before DynamoDB
start_proxy
faults refused "$proxy_url#refused" "DynamoDB refuses"
faults throttled "$proxy_url#throttled" "DynamoDB throttles"
echo deny CreateTable >"$work/mode"
faults no_right "$proxy_url#no_right" "DynamoDB, no table, no right to make one"
faults works "$proxy_url#refused" "DynamoDB, a table, no right to make one"
store=dynamodb
dynamodb DeleteTable '{"TableName":"emptied"}' >/dev/null
echo deny UpdateTimeToLive >"$work/mode"
faults emptied "$proxy_url#emptied" "DynamoDB, emptied, no right to its TTL"
AWS_SHARED_CREDENTIALS_FILE=$work/credentials
export AWS_SHARED_CREDENTIALS_FILE
faults no_credentials "$proxy_url" "DynamoDB, no file of credentials"
write_credentials fleet 10000
faults no_credentials "$proxy_url" "DynamoDB, a token that is too long"
echo only fleet 4096 >"$work/mode"
write_credentials fleet 4096
faults expired "$proxy_url#expired" "DynamoDB, credentials that expire"
echo pass >"$work/mode"
faults threads "$proxy_url#expired" "DynamoDB, opened by many threads"
unset AWS_SHARED_CREDENTIALS_FILE
signal=TERM; end $proxy
