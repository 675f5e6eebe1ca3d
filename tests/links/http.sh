#!/bin/sh
# SPDX-License-Identifier: 0BSD
# examples/http: each answer; the same request from many at once; and clients
# behind a network that swallows and tears, while the server is killed.  Needs
# httpd in $B/http, curl.
set -u

. tests/servers/station.sh
name=http
token=5f0e1d2c3b4a69788796a5b4c3d2e1f0
other=00112233445566778899aabbccddeeff
port=$(free_port)
server="$B/http/httpd --port $port --journal journal --log log"
server="$server --tokens $work/tokens"

# ask KEY ML [options of curl]: status, headers that matter, body
ask() {
    key=$1 ml=$2
    shift 2
    curl -s -i "http://127.0.0.1:$port/pours" -d "$ml" \
        -H "Authorization: Bearer $token" -H "Idempotency-Key: \"$key\"" "$@" |
        tr -d '\r' | awk '
            NR == 1 { answer = $2; next }
            !$0 { body = 1; next }
            /^(Location|Retry-After|Content-Type):/ { answer = answer "|" $0 }
            body {
                sub(/.*"title":"/, ""); sub(/".*/, ""); answer = answer "|" $0 }
            END { print answer }'
}

# code OPTIONS OF CURL...: the status alone
code() {
    curl -s -o /dev/null -w '%{http_code}' "$@" "http://127.0.0.1:$port/pours"
}

answers() {
    name=answers
    start
    first=$(ask a 5)
    is "$first" "201|Location: /pours/${first##*/pours/}"
    is "$(echo "$first" | sed 's,/pours/[0-9]*,/pours/N,')" \
        "201|Location: /pours/N|Content-Type: text/plain|poured 5 ml"
    is "$(ask a 5)" "$first"
    problem="Content-Type: application/problem+json"
    is "$(ask a 6)" "422|$problem|the key was used for another payload"
    is "$(ask b 0)" "400|Content-Type: text/plain|not 1 to 1000 ml"
    is "$(ask b 0)" "400|Content-Type: text/plain|not 1 to 1000 ml"
    # Keys that are none
    one="400|$problem|one Idempotency-Key is required"
    is "$(ask c 5 -H 'Idempotency-Key;')" "$one"
    is "$(ask c 5 -H 'Idempotency-Key: "d"')" "$one"
    is "$(code -d 5 -H "Authorization: Bearer $token")" 400
    for key in d '"d' '"d";a=1' '"d", "e"' '""' ; do
        is "$(code -d 5 -H "Authorization: Bearer $token" \
            -H "Idempotency-Key: $key")" 400
    done
    is "$(ask "$(printf %092d 0)" 5 | cut -c 1-3)" 400
    # Who it is, and what a key of somebody else's gives: nothing
    for header in 'Authorization;' 'Authorization: Bearer x' \
        "Authorization: Basic $token" "Authorization: Bearer ${token}0"; do
        is "$(code -d 5 -H "$header" -H 'Idempotency-Key: "a"')" 401
    done
    is "$(token=$other; ask a 6 | cut -d '|' -f 1,4)" "201|poured 6 ml"
    head -c 3000 /dev/zero | tr '\0' 1 >"$work/long"
    is "$(ask e "@$work/long" | cut -c 1-3)" 413
    is "$(ask e 5 -X PUT | cut -c 1-3)" 405
    is "$(grep -c poured "$work/answers/log")" 2
    refuses "the port: Address already in use" --journal other --log other.log
    stop
    echo "answers: as the draft and the manual have it"
}

# status TEXT: what is answered to the headers of a request, before its body
status() {
    printf 'POST /pours HTTP/1.1\r\nHost: a\r\n%s\r\n\r\n' "$1" |
        python3 -c 'import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as link:
    link.sendall(sys.stdin.buffer.read())
    link.settimeout(60)
    print(link.recv(12).decode()[9:])' "$port"
}

# Nobody's body is waited for before it is known whose it is; a list of clients
# is not misread.
strangers() {
    name=strangers
    start
    is "$(status 'Content-Length: 5')" 401
    is "$(status 'Transfer-Encoding: chunked')" 401
    is "$(status "Content-Length: 1025
Authorization: Bearer $token")" 413
    is "$(status "$(printf 'a\r\n:')")" 400
    # Who is cut at the first of two lengths pours another amount.
    for second in 'Content-Length: 2' 'Transfer-Encoding: chunked'; do
        is "$(status "Content-Length: 1
$second
Authorization: Bearer $token")" 400
    done
    is "$(wc -l <"$work/strangers.log")" 0  # anybody could fill the disk
    is "$(head -c 3000 /dev/zero | code -T - -X POST -H Expect: \
        -H "Authorization: Bearer $token" -H 'Idempotency-Key: "a"')" 000
    stop
    long=$(printf %064d 7)
    for line in "$long$long $token" "$(printf %033d 7) $token" "a ${long}8" \
        "a $token b" "a" "a $(printf %031d 7)" "#a $token"; do
        printf 'panel %s\n%s\n' "$other" "$line" >"$work/bad-tokens"
        "$B/http/httpd" --port "$port" --journal strangers/journal \
            --log strangers/log --tokens "$work/bad-tokens" >>"$work/bad" 2>&1
        is "$line: $?" "$line: 1"
    done
    is "$(grep -c 'up to 32 lines\|32 characters at least' "$work/bad")" 7
    # As the last of two names it would be another client: what it repeats would
    # be poured again.
    printf 'panel %s\nkitchen %s\n' "$other" "$other" >"$work/bad-tokens"
    refuses "two lines have the same token" --tokens "$work/bad-tokens"
    echo "strangers: are not listened to"
}

# Four clients use up their quotas: they leave room for others.
floods() {
    name=floods
    start
    python3 -c 'import http.client, sys
for client in range(4):
    link = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    for key in range(501):
        link.request("POST", "/pours", "0", {
            "Authorization": f"Bearer {client:032}",
            "Idempotency-Key": f"\"{key}\""})
        answer = link.getresponse()
        answer.read()
    print(answer.status)' "$port" >"$work/floods/last"
    is "$(paste -sd '|' "$work/floods/last")" "503|503|503|503"
    is "$(ask a 5 | cut -c 1-3)" 201
    stop
    echo "floods: leave room for others"
}

# At once: one of them pours, the others are answered to wait; and ask again.
concurrent() {
    name=concurrent
    start --ml-ms 60000
    ask a 1 >/dev/null &
    children=$!
    wait_for grep -q begins "$work/concurrent/log"
    is "$(ask a 1 | cut -d '|' -f 1,3)" "409|Retry-After: 1"
    crash_server
    await_children
    start --ml-ms 20
    is "$(ask a 1 | cut -d '|' -f 1,3)" \
        "500|interrupted: look at the cup"
    for i in 1 2 3 4 5 6 7 8; do
        curl -s -o /dev/null -w '%{http_code}\n' --retry 50 --retry-delay 0 \
            --retry-all-errors -f "http://127.0.0.1:$port/pours" -d 5 \
            -H "Authorization: Bearer $token" -H 'Idempotency-Key: "b"' \
            >"$work/concurrent/answer-$i" &
        children="$children $!"
    done
    await_children
    is "$(tail -q -n 1 "$work"/concurrent/answer-* | sort | uniq -c |
        tr -s ' ')" " 8 201"
    is "$(grep -c poured "$work/concurrent/log")" 1
    stop
    echo "concurrent: 8 at once, one poured"
}

# A signal ends the server after the pour that it is at, not after all that wait
# for the pump.  All of them are answered.
ended() {
    name=ended
    start_clocked --ml-ms 1000000       # no pour ends before the clock is set
    for i in 1 2 3 4; do
        ask "e$i" 2 >"$work/ended/answer-$i" &
        children="$children $!"
    done
    wait_for all_claimed
    wait_for grep -q begins "$work/ended/log"
    kill -TERM "$daemon"
    ahead ended 3600
    stop
    await_children
    is "$(grep -c begins "$work/ended/log")" 1
    is "$(grep -c poured "$work/ended/log")" 1
    is "$(grep -c '^\(201\|409\|503\)|' "$work"/ended/answer-* |
        cut -d : -f 2 | paste -sd '|' -)" "1|1|1|1"
    start
    for i in 1 2 3 4; do
        is "$(ask "e$i" 2 | cut -d '|' -f 1,4)" "201|poured 2 ml"
    done
    is "$(grep -c begins "$work/ended/log")" 4
    stop
    echo "ended: a signal ends it after its pour"
}
all_claimed() {
    for i in 1 2 3 4; do
        ask "e$i" 2 -m 1 | grep -q '^\(409\|201\)' || return 1
    done
}

# What came before the server was suspended for a day is a copy, as before.
suspended() {
    name=suspended
    start_clocked
    first=$(ask a 5)
    kill -STOP "$daemon"
    ask a 5 >"$work/suspended/copy" &
    children=$!
    sleep 0.5
    a_day_passes
    await_children
    is "$(cat "$work/suspended/copy")" "$first"
    is "$(grep -c begins "$work/suspended/log")" 1
    stop
    runs_on ask a 1
    echo "suspended: a copy is known a day later, its pump has stopped"
}

# client NAME TOKEN COMMANDS PORT: asks for each until the answer is final, and
# whole: curl takes an answer that ends within its headers for one without body
client() {
    i=0
    while [ $i -lt "$3" ]; do
        i=$((i + 1)) tries=0 ml=$((1 + i * 7 % 9))
        until answer=$(curl -s -m 5 "http://127.0.0.1:$4/pours" -d $ml \
            -w ' %{http_code}' -H "Authorization: Bearer $2" \
            -H "Idempotency-Key: \"$i\"") &&
            case $answer in poured*\ 201 | *look*\ 500) true ;; *) false ;; esac
        do
            tries=$((tries + 1))
            [ $tries -lt 600 ] || return 1
            sleep 0.2
        done
        echo "$(hex "$1")/$(hex $i) $ml ${answer%%[: ]*}"
    done
}

chaos() {
    kills=$1 count=$2
    chaos_begins tcp 8
    # Each has a twin that asks for the same.
    clients=
    for i in 1 2; do
        client panel $token "$count" "$network_port" >"$work/panel-$i" &
        clients="$clients $!"
        client phone $other "$count" "$network_port" >"$work/phone-$i" &
        clients="$clients $!"
    done
    children="$children $clients"
    chaos_kills
    for client in $clients; do
        wait "$client" || fail "chaos: a client gave up"
    done
    chaos_ends
    for twin in panel phone; do
        diff "$work/$twin-1" "$work/$twin-2" >&2 ||
            fail "chaos: twins got two answers"
    done
    interrupted=$(cat "$work/panel-1" "$work/phone-1" |
        audit $((2 * count))) || exit 1
    echo "chaos: $((2 * count)) commands, none twice; $kills kills," \
        "$interrupted interrupted; $harm"
}

cd "$work"
printf 'panel %s\nphone %s\n' $token $other >tokens
printf 'flood%d %032d\n' 0 0 1 1 2 2 3 3 >>tokens
answers
strangers
floods
concurrent
suspended
ended
if [ "${SHORT:-}" = 1 ]; then chaos 5 15; else chaos 40 100; fi
