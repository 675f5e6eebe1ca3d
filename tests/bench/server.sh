#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Starts or stops a database server for durable.c, with its data and its unix
# socket in a folder: server.sh redis|postgres start|stop FOLDER.  Status 1 if
# it is not installed.
set -eu

which=$1 what=$2
folder=$(cd "$3" && pwd)

# PostgreSQL does not run as root.
as_other() {
    if [ "$(id -u)" = 0 ]; then
        runuser -u postgres -- "$@"
    else
        "$@"
    fi
}

postgres_bin() {
    command -v pg_ctl 2>/dev/null ||
        ls /usr/lib/postgresql/*/bin/pg_ctl 2>/dev/null | tail -n 1
}

postgres_start() {
    pg_ctl=$(postgres_bin)
    [ -n "$pg_ctl" ] || exit 1
    if [ ! -d "$folder/data" ]; then
        mkdir -p "$folder/data" "$folder/socket"
        [ "$(id -u)" != 0 ] || chown -R postgres "$folder" || exit 1
        as_other "$(dirname "$pg_ctl")/initdb" -D "$folder/data" -U postgres \
            -A trust >"$folder/log" 2>&1 || exit 1
    fi
    as_other "$pg_ctl" -D "$folder/data" -l "$folder/socket/log" -w \
        -o "-c listen_addresses= -c unix_socket_directories=$folder/socket" \
        start >/dev/null || exit 1
}

case "$which $what" in
"redis start")
    command -v redis-server >/dev/null || exit 1
    cd "$folder"
    redis-server --port 0 --unixsocket "$folder/redis.sock" --dir "$folder" \
        --appendonly yes --appendfsync always --save '' --daemonize yes \
        --pidfile "$folder/redis.pid" --logfile "$folder/redis.log" >/dev/null
    ;;
"redis stop")
    pid=$(cat "$folder/redis.pid")
    kill "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
    ;;
"postgres start")
    postgres_start
    ;;
"postgres stop")
    as_other "$(postgres_bin)" -D "$folder/data" -m fast -w stop >/dev/null
    ;;
*)
    echo "usage: server.sh redis|postgres start|stop FOLDER"
    exit 2
    ;;
esac
