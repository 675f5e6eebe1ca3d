#!/bin/sh
# SPDX-License-Identifier: 0BSD
# The fleet of examples/fleet, against real servers that are started here and
# stopped again (servers.sh).  Parts: conformance scene kafka faults bench; with
# none named all but bench, beside one another, for they mostly wait.  SHORT=1:
# fewer kills.
set -u

B=${B:-build}
CC=${CC:-cc}
mkdir -p "$B/fleet"
B=$(cd "$B" && pwd)
here=tests/fleet
F=examples/fleet
STORES="$F/fleet.c $F/connect.c $F/text.c $F/decide.c $F/redis.c
    $F/postgres.c $F/postgres_connection.c $F/dynamodb.c $F/dynamodb_http.c"
LIBS="-lhiredis -lpq -lcurl -ljansson"
POSTGRES_H=-I/usr/include/postgresql
passed=0

. tests/servers/servers.sh

# build NAME SOURCES AND LIBRARIES...
build() {
    name=$1
    shift
    $CC ${CFLAGS:--std=c99 -Og -g} -I. -I$F $POSTGRES_H "$@" \
        -o "$B/$name.$$" && mv "$B/$name.$$" "$B/$name" || exit 1
}

# count TEXT: adds the number of checks that a program's last line reports
count() {
    more=$(echo "$1" | sed -n 's/.*: \([0-9]*\) checks passed.*/\1/p')
    passed=$((passed + more))
}

# beside PART...: all at the same time, each with servers of its own
beside() {
    get_dynalite
    for part in "$@"; do
        B=$B CC=$CC sh $here/fleet.sh $part >"$work/$part" 2>&1 &
        eval "pid_$part=$!"
        children="$children $!"
    done
    failed=
    for part in "$@"; do
        eval "wait \$pid_$part" || {
            failed="$failed $part"
            echo >>"$work/$part"        # its last line has the cause
        }
        sed '$d' "$work/$part"
        count "$(tail -n 1 "$work/$part")"
    done
    children=
    [ -z "$failed" ] || fail "parts that failed:$failed"
}

if [ $# = 0 ]; then
    beside conformance scene kafka faults
fi
for part in "$@"; do
    case $part in
    conformance | scene | kafka | faults | bench) . $here/$part.sh ;;
    *) fail "no part $part: conformance scene kafka faults bench" ;;
    esac
done
echo "fleet: $passed checks passed"
