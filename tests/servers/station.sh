# SPDX-License-Identifier: 0BSD
# To be sourced: servers of examples/ in a folder that is removed, killed and
# started again, and the audit of their pump's log.  Set $server, the command
# that starts one in $work, before.

B=$(cd "${B:-build}" && pwd)
tests=$(pwd)/tests
examples=$(pwd)/examples
. tests/servers/servers.sh

# launch [options]: $server, after the words $run_with, in $work/$name
launch() {
    mkdir -p "$work/$name"
    cd "$work/$name"
    : >out
    ${run_with:-} $server "$@" >out 2>>"$work/$name.log" &
    daemon=$!
    cd "$work"
}

is_ready() { grep -q ready "$work/$name/out"; }

# start [options]: the same, until it is ready
start() {
    launch "$@"
    wait_for is_ready
}

# start_clocked [options]: the same, for a_day_passes
start_clocked() {
    make_clock "$name"
    run_with="with_clocks $name"
    start "$@"
    unset run_with
}

# The server was suspended for a day, and goes on.
a_day_passes() {
    ahead "$name" 90000
    kill -CONT "$daemon"
}

# runs_on COMMAND...: asks for a pour, during which the server is suspended for
# a day.  The pump runs on meanwhile, and is stopped once the server goes on.
runs_on() {
    name=runs_on
    start_clocked --ml-ms 1000000
    "$@" >"$work/runs_on/answer" &
    children=$!
    wait_for grep -q begins "$work/runs_on/log"
    kill -STOP "$daemon"
    a_day_passes
    wait_for grep -q '^poured\|^ends' "$work/runs_on/log"
    await_children
    stop
}

# Ends it as a service manager does; it must agree.
stop() {
    kill -TERM "$daemon"
    wait "$daemon" || fail "$name: the server did not end well"
    daemon=
}

# Power goes.
crash_server() {
    signal=KILL
    end "$daemon"
    daemon=
}

# refuses WORDS [options]: to start
refuses() {
    words=$1
    shift
    (cd "$work/$name" && timeout 20 ${run_with:-} $server "$@") >refused 2>&1 &&
        fail "$name: the server started: expected \"$words\""
    grep -qF -- "$words" refused ||
        fail "$name: $(cat refused): expected \"$words\""
}

chaos_options="--ml-ms 1"       # of the server

# network PROTOCOL ONE_IN PORT: before that port, harms one piece in ONE_IN; is
# at $network_port.  The same $kills, the same harm.
network() {
    : >"$work/network"
    python3 "$servers/network.py" "$1" "$2" "$kills" "$3" >"$work/network" &
    network=$!
    children=$network
    wait_for test -s "$work/network"
    network_port=$(head -n 1 "$work/network")
}

# chaos_begins PROTOCOL ONE_IN: the server, behind such a network
chaos_begins() {
    name=chaos
    start $chaos_options
    network "$1" "$2" "$port"
}

# chaos_kills [COMMAND]: the server $kills times, each after COMMAND 0, 1 or 2
chaos_kills() {
    i=0
    while [ $i -lt "$kills" ]; do
        i=$((i + 1))
        sleep "0.$((3 + i % 5))"
        ${1:-:} $((i % 3))
        crash_server
        start $chaos_options
    done
}

# The network must have done harm of each kind.
chaos_ends() {
    stop
    signal=TERM
    end "$network"
    children=
    harm=$(tail -n 1 "$work/network")
    ! echo "$harm" | grep -qE '(swallowed 0 torn|lost|repeated|delayed) 0\b' ||
        fail "chaos: $harm: this shows nothing"
}

# audit ANSWERS [LOG]: no command began or ended twice in the pump's log, and
# each answer is right: lines "ID ML poured" or "ID ML interrupted", ID as in the
# log
audit() {
    awk '
        function wrong(what) { print "wrong: " what > "/dev/stderr"; bad = 1 }
        FILENAME != "-" && $1 == "begins" && begins[$2 " " $3]++ { wrong($0) }
        FILENAME != "-" && $1 == "poured" && poured[$2 " " $3]++ { wrong($0) }
        FILENAME != "-" { next }
        $3 == "poured" && !poured[$1 " " $2] { wrong($0 ", and it has not") }
        $3 == "interrupted" && (!begins[$1 " " $2] || poured[$1 " " $2]) {
            wrong($0 ", and it was not")
        }
        $3 == "poured" { all++ }
        $3 == "interrupted" { all++; interrupted++ }
        $3 != "poured" && $3 != "interrupted" { wrong($0) }
        END {
            for (id in poured)
                if (!begins[id]) wrong("poured, not begun: " id)
            if (all != wanted) wrong(all + 0 " answers of " wanted)
            print interrupted + 0
            exit bad
        }' wanted="$1" "${2:-$work/$name/log}" - || fail "$name: see above"
}

# damage SCOPE KEY: of its records in the journal; later ones have been written
damage() { damaged "$work/$name/journal" "$1$2"; }

# hex TEXT
hex() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; }
