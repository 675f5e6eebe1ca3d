# SPDX-License-Identifier: 0BSD
# The promises, asked of everything that keeps them; the table of who keeps
# which must be the one in README.md of examples/fleet.

build fleet/conformance $here/conformance.c $here/subject.c $FLEET $LIBS
mkdir "$work/told"
need redis postgres dynamodb

# ask NAME PLACE: all are asked at the same time
ask() {
    "$B/fleet/conformance" "$2" >"$work/told/$1" 2>"$work/$1.log" &
    eval "asked_$1=$!"
    children="$children $!"
}

# heard NAME
heard() {
    eval "wait \$asked_$1" || {
        cat "$work/told/$1"
        fail "conformance: $1"
    }
    tail -n 1 "$work/told/$1"
    count "$(tail -n 1 "$work/told/$1")"
    sed '$d' "$work/told/$1" | cut -f 3 >"$work/told/$1.column"
}

ask ram ram
ask file "file:$work/journal"
ask redis "$redis_url"
ask postgres "$postgres_url"
ask dynamodb "$dynamodb_url"
for place in ram file redis postgres dynamodb; do
    heard $place
done
children=

{
    echo '| | promise | RAM | file | Redis | PostgreSQL | DynamoDB |'
    echo '|---|---|---|---|---|---|---|'
    sed '$d' "$work/told/ram" | cut -f 1,2 | tr '\t' '|' |
        paste -d '|' - "$work"/told/ram.column "$work"/told/file.column \
            "$work"/told/redis.column "$work"/told/postgres.column \
            "$work"/told/dynamodb.column | sed 's/|/ | /g; s/^/| /; s/$/ |/'
} | sed 's/^|  *|/| |/' >"$work/table"
sed -n '/^<!-- conformance: begin/,/^<!-- conformance: end/p' $F/README.md |
    sed '1d; $d' | diff - "$work/table" ||
    fail "conformance: the table of $F/README.md is not what was seen"
echo "conformance: the table of $F/README.md is what was seen"
