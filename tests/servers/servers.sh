# SPDX-License-Identifier: 0BSD
# To be sourced: starts a broker and the stores of a fleet, on sockets in the
# folder $work or on free ports.  They and the folder are removed in any case.

PATH=$PATH:/usr/sbin:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
servers=$(pwd)/tests/servers
work=$(mktemp -d)
chmod 711 "$work"
redis= postgres= dynamodb= broker= daemon= children=

# Ends what was started here, by its number, and waits for it.
end() {
    for pid in "$@"; do
        kill -"$signal" "$pid" 2>/dev/null
    done
    for pid in "$@"; do
        wait "$pid" 2>/dev/null
    done
}

# end_children [SIGNAL]: all that run in the background
end_children() {
    signal=${1:-KILL}
    end $children
    children=
}

# Waits until they have ended by themselves.
await_children() {
    wait $children
    children=
}

# crash SERVER: at once.  The processes of PostgreSQL end with their first one
# if they are asked to, and then recover as after kill -9.
crash() {
    signal=KILL
    [ "$1" != postgres ] || signal=QUIT
    eval "end \$$1"
}

clean_up() {
    trap - EXIT
    kill -CONT $children ${postgres:+$postgres $(ps -o pid= --ppid $postgres)} \
        2>/dev/null             # what is suspended hears nothing
    signal=TERM
    end $children               # they may have children of their own
    signal=KILL
    end $redis $dynamodb $broker $daemon
    signal=INT
    end $postgres               # its children end with it
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' HUP INT TERM

fail() {
    echo "${0##*/}: $*" >&2
    for log in "$work"/*.log; do
        [ ! -s "$log" ] || { echo "--- ${log##*/}"; tail -n 15 "$log"; } >&2
    done
    exit 1
}

is() {
    [ "$1" = "$2" ] || fail "$name: \"$1\", expected \"$2\""
}

is_over() { ! kill -0 "$1"; }

# damaged FILE TEXT: harms whatever begins with that there
damaged() {
    for at in $(grep -abo "$2" "$1" | cut -d : -f 1); do
        printf damaged | dd of="$1" bs=1 seek="$at" conv=notrunc 2>/dev/null
    done
}

. tests/servers/wait.sh

# A store has a clock that a test may set ahead, in the file STORE.ahead of
# $CLOCKS (ahead.c).
export CLOCKS=$work
make_clock() {
    [ -e "$work/clock.so" ] ||
        ${CC:-cc} -O1 -fPIC -shared $servers/ahead.c -o "$work/clock.so" ||
        fail ahead.c
    [ -e "$work/$1.ahead" ] || head -c 8 /dev/zero >"$work/$1.ahead"
    chmod a+r "$work/clock.so" "$work/$1.ahead"
}

# ahead STORE SECONDS: sets its clock ahead
ahead() {
    python3 $servers/ahead.py "$work/$1.ahead" "$2"
}

# with_clock STORE COMMAND...
with_clock() {
    clock_of=$work/$1.ahead
    shift
    [ "${clocks:-}" != real ] || exec "$@"
    AHEAD=$clock_of LD_PRELOAD=$work/clock.so exec "$@"
}

# with_clocks STORE COMMAND...: all clocks are ahead, as if it had been suspended
with_clocks() {
    export AHEAD_ALL=1
    with_clock "$@"
}

# need SERVER...: those that are not running yet are started
need() {
    for server in "$@"; do
        eval "[ -n \"\$$server\" ]" || start_$server
    done
}

# free_port [DGRAM]: one that no server has, of TCP or UDP
free_port() {
    python3 -c "import socket
s = socket.socket(socket.AF_INET, socket.SOCK_${1:-STREAM})
s.bind(('127.0.0.1', 0))
print(s.getsockname()[1])"
}

start_broker() {
    : "${broker_port:=$(free_port)}"
    mkdir -p "$work/broker"
    cat >"$work/broker.conf" <<END
listener $broker_port 127.0.0.1
allow_anonymous true
set_tcp_nodelay true
persistence true
persistence_location $work/broker/
user $(id -un)
log_type warning
log_type error
log_dest stderr
END
    mosquitto -c "$work/broker.conf" >>"$work/broker.log" 2>&1 &
    broker=$!
    wait_for mosquitto_pub -p "$broker_port" -t started -n
}

start_redis() {
    mkdir -p "$work/redis"
    make_clock redis
    with_clock redis redis-server --port 0 --unixsocket "$work/redis.sock" \
        --dir "$work/redis" --appendonly yes --appendfsync always --save '' \
        "$@" >>"$work/redis.log" 2>&1 &
    redis=$!
    wait_for redis-cli -s "$work/redis.sock" ping
    redis_url=redis://$work/redis.sock
}

# PostgreSQL does not run as root.
as_postgres=
[ "$(id -u)" != 0 ] ||
    as_postgres='setpriv --reuid=postgres --regid=postgres --init-groups'

make_postgres() {
    mkdir "$work/postgres"
    [ -z "$as_postgres" ] || chown postgres "$work/postgres"
    (cd "$work/postgres" && $as_postgres initdb -N -A trust -U fleet \
        -D "$work/postgres/data" >"$work/initdb.log" 2>&1) || fail initdb
    rm "$work/initdb.log"
}

start_postgres() {
    [ -d "$work/postgres" ] || make_postgres
    make_clock postgres
    (cd "$work/postgres" && with_clock postgres $as_postgres postgres \
        -D "$work/postgres/data" -k "$work/postgres" -c listen_addresses= \
        -c max_connections=200) >>"$work/postgres.log" 2>&1 &
    postgres=$!
    wait_for psql -h "$work/postgres" -U fleet -c 'SELECT 1' postgres
    postgres_url="postgres:///postgres?user=fleet&host=$work/postgres"
}

# dynalite comes from npm, once, into $B, as the lock file has it.  (Of what npm
# writes there it has versions, hashes and dependencies.)
modules=$B/fleet/npm
get_dynalite() {
    if [ -x "$modules/node_modules/.bin/dynalite" ] &&
        cmp -s $servers/npm/package-lock.json "$modules/package-lock.json"; then
        return
    fi
    mkdir -p "$modules"
    cp $servers/npm/package.json $servers/npm/package-lock.json "$modules"
    npm ci --silent --no-audit --no-fund --prefix "$modules" \
        >"$work/npm.log" 2>&1 || fail "npm ci: $(cat "$work/npm.log")"
}

start_dynamodb() {
    get_dynalite
    : "${dynalite_port:=$(free_port)}"
    make_clock dynamodb
    # Node writes the same Date for a second, whatever its clock shows.
    cat >"$work/date.js" <<'END'
const answer = require('http').ServerResponse.prototype
const write = answer.writeHead
answer.writeHead = function (...how) {
    this.setHeader('Date', new Date().toUTCString())
    return write.apply(this, how)
}
END
    with_clock dynamodb node -r "$work/date.js" \
        "$modules/node_modules/dynalite/cli.js" --host 127.0.0.1 \
        --port "$dynalite_port" --path "$work/dynalite" --createTableMs 0 \
        --deleteTableMs 0 \
        >>"$work/dynalite.log" 2>&1 &
    dynamodb=$!
    wait_for grep -q listening "$work/dynalite.log"
    dynamodb_url=dynamodb://127.0.0.1:$dynalite_port
    export AWS_ACCESS_KEY_ID=fleet AWS_SECRET_ACCESS_KEY=fleet
}
