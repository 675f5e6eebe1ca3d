# SPDX-License-Identifier: 0BSD
# The cost of a command (claim and outcome) beside the same written by hand; and
# the bytes of a key.

clocks=real
build fleet/cost -O2 $here/cost.c $STORES $LIBS
need redis postgres dynamodb

# bench NAME PLACE COMMANDS GATEWAYS
bench() {
    printf '| %s | ' "$1"
    shift
    "$B/fleet/cost" "$@" || fail "bench: $1"
    passed=$((passed + 1))
}

commands=2000
[ "${SHORT:-}" != 1 ] || commands=400
echo '| | gateways | by hand, commands/s | fleet | of by hand |'
echo '|---|--:|--:|--:|--:|'
for gateways in 1 4; do
    bench Redis "$redis_url#bench" $commands $gateways
    bench PostgreSQL "$postgres_url#bench" $commands $gateways
done

echo
echo 'Bytes that a key takes, of 20 bytes with its scope, response 11:'
redis_keys=$(redis-cli -s "$work/redis.sock" keys 'bench:k:*')
for key in $redis_keys; do
    echo "memory usage $key"
done | redis-cli -s "$work/redis.sock" |
    awk '{ all += $1 } END { printf "Redis %d\n", all / NR }'
"$B/fleet/cost" "$dynamodb_url#bench" || fail "bench: DynamoDB"
psql -q -h "$work/postgres" -U fleet postgres -At -c 'VACUUM bench' -c "
    SELECT 'PostgreSQL ' || pg_total_relation_size('bench') / count(*) || ', of'
        || ' which indexes ' || pg_indexes_size('bench') / count(*) FROM bench"
curl -sS --aws-sigv4 aws:amz:us-east-1:dynamodb --user fleet:fleet \
    -H 'X-Amz-Target: DynamoDB_20120810.Scan' \
    -H 'Content-Type: application/x-amz-json-1.0' \
    -d '{"TableName":"bench","Limit":50}' "http://127.0.0.1:$dynalite_port/" |
    python3 -c 'import json, sys
items = json.load(sys.stdin)["Items"]
print("DynamoDB", sum(len(name) + len(text) for item in items
      for name, value in item.items() for text in value.values())
      // len(items))'
