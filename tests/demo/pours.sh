# SPDX-License-Identifier: 0BSD
# To be sourced behind tests/fleet/servers.sh: commands of four senders to a
# pump, over MQTT, and the audit of what came of them.  Needs $pour.

# The amount of a command is made from its number; senders use the same keys.
commands() {
    awk -v n="$1" 'BEGIN {
        for (i = 1; i <= n; i++) print "c" i, 1 + i * 7 % 9 }'
}

# start_senders PORT COMMANDS [OPTIONS]: of the scene $name
start_senders() {
    sent_to=$1 sent=$2
    shift 2
    senders=
    for s in 1 2 3 4; do
        commands "$sent" | "$pour" --port "$sent_to" --id "$name-$s" \
            --retry 300 "$@" >"$work/$name/answers-$s" &
        senders="$senders $!"
    done
    children="$children $senders"
}

is_over() { ! kill -0 "$1"; }

# They must have got all answers.
await_senders() {
    for s in $senders; do
        wait_for is_over "$s"
        wait "$s" || fail "$name: a sender gave up"
    done
}

# suspend PID: for longer than a sender waits
suspend() {
    kill -STOP "$1"
    sleep 1
    kill -CONT "$1"
    sleep 0.2
}

# audit COMMANDS: how many of the scene's were executed more than once, from the
# pump's log; fails if one was not executed, not answered, or answered wrongly
audit() {
    for s in 1 2 3 4; do
        commands "$1" | sed "s,^,command $name-$s ,"
        sed "s,^,answer $name-$s ," "$work/$name/answers-$s"
    done >"$work/$name/audit"
    sed 's,^pump/\(.*\)/command,log \1,
        s,^begins pump/\(.*\)/command,log \1,
        s,^ends pump/\(.*\)/command,end \1,' "$work/$name/log" |
        grep '^log \|^end ' >>"$work/$name/audit"
    awk '
        function hex(key,  i, text) {
            for (i = 1; i <= length(key); i++)
                text = text code[substr(key, i, 1)]
            return text
        }
        function wrong(what) { print "wrong: " what > "/dev/stderr"; bad = 1 }
        $1 == "end" { ends++ }
        BEGIN {
            for (i = 32; i < 127; i++)
                code[sprintf("%c", i)] = sprintf("%02x", i)
        }
        { id = $2 " " ($1 == "log" || $1 == "end" ? $3 : hex($3)) }
        $1 == "command" { ml[id] = $4; commands++ }
        $1 == "end" { ended[id]++ }
        # Begun and not ended: nobody knows, and the answer says so.
        $1 == "answer" && $5 == "0x83" && $6 == "check" {
            checked[id] = answered[id] = 1
            next
        }
        $1 == "answer" {
            if (!(id in ml) || $4 != ml[id] || $5 != "0x00" ||
                $6 " " $7 " " $8 != "poured " ml[id] " ml" || answered[id]++)
                wrong($0)
        }
        $1 == "log" {
            if (!(id in ml) || $4 != ml[id])
                wrong($0)
            if (poured[id]++ == 1)
                twice++
        }
        END {
            if (commands != wanted) wrong(commands " commands")
            for (id in ml) {
                if (!answered[id]) wrong("no answer: " id)
                if (!poured[id]) wrong("answered, not poured: " id)
                if (ends && !ended[id] && !checked[id])
                    wrong("not poured to the end: " id)
            }
            print twice + 0
            exit bad
        }' wanted=$(($1 * 4)) "$work/$name/audit" || fail "$name: see above"
}

# Each of the scene's commands was executed once.
all_once() {
    twice=$(audit "$1") || exit 1
    [ "$twice" = 0 ] || fail "$name: $twice commands were executed twice"
}

# Without what is tested some are executed twice: else it shows nothing.
some_twice() {
    twice=$(audit "$1") || exit 1
    [ "$twice" -gt 0 ] || fail "$name: nothing was executed twice; a blunt test"
    echo "$name: $(($1 * 4)) commands, $twice executed more than once"
}
