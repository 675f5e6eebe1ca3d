# SPDX-License-Identifier: 0BSD
# What a command costs, claim and outcome, beside idem.h in a file.

build fleet/bench -O2 $here/stories.c $STORES $LIBS
need redis postgres dynamodb

# bench NAME PLACE COMMANDS GATEWAYS
bench() {
    printf '| %s | ' "$1"
    shift
    "$B/fleet/bench" cost "$@" || fail "bench: $1"
    passed=$((passed + 1))
}

commands=2000
[ "${SHORT:-}" != 1 ] || commands=400
echo '| | gateways | commands/s | ms, 10 of 100 | 50 of 100 | 99 of 100 |'
echo '|---|--:|--:|--:|--:|--:|'
bench '`idem.h` in a file' "file:$work/bench" $commands 1
for gateways in 1 4; do
    bench Redis "$redis_url#bench_$gateways" $commands $gateways
    bench PostgreSQL "$postgres_url#bench_$gateways" $commands $gateways
done
bench 'DynamoDB (dynalite)' "$dynamodb_url#bench" $((commands / 4)) 1
