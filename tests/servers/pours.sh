# SPDX-License-Identifier: 0BSD
# To be sourced after servers.sh: commands of four senders to a pump, over MQTT,
# and the audit of their results.  Needs $pour.

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

# They must have got all answers (2: not all are "poured").
await_senders() {
    for s in $senders; do
        wait_for is_over "$s"
        wait "$s" || [ $? = 2 ] || fail "$name: a sender gave up"
    done
}

# suspend PID: for longer than a sender waits
suspend() {
    kill -STOP "$1"
    sleep 1
    kill -CONT "$1"
    sleep 0.2
}

# make_nap: nap.so, with which a program is suspended for a day when it has read
# a command, and has not looked it up yet: once, if there is a file $work/nap,
# which names the clocks that go on meanwhile
make_nap() {
    preloaded nap <<END
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

const void *mosquitto_property_read_binary(const void *list, int which,
                                           void **value, uint16_t *len,
                                           _Bool skip)
{
    FILE *clocks = fopen("$work/nap", "r"), *clock;
    int64_t us;
    char path[500];

    while (clocks && fscanf(clocks, "%499s", path) == 1 &&
           (clock = fopen(path, "r+")) != NULL) {
        if (fread(&us, sizeof us, 1, clock) != 1)
            _exit(127);
        us += 90000 * INT64_C(1000000);
        rewind(clock);
        fwrite(&us, sizeof us, 1, clock);
        fclose(clock);
        unlink("$work/nap");
    }
    if (clocks)
        fclose(clocks);
    return ((const void *(*)(const void *, int, void **, uint16_t *, _Bool))
                dlsym(RTLD_NEXT, "mosquitto_property_read_binary"))(
        list, which, value, len, skip);
}
END
}

# audit_senders COMMANDS: how many of the scene's were begun more than once, from the
# pump's log; fails if one was not begun, not answered, or answered wrongly: as
# poured, if it has not ended, or as interrupted, if it has
audit_senders() {
    for s in 1 2 3 4; do
        commands "$1" | sed "s,^,command $name-$s ,"
        sed "s,^,answer $name-$s ," "$work/$name/answers-$s"
    done >"$work/$name/audit"
    sed -n -e 's,^\(begins\|ends\) pump/\(.*\)/command,\1 \2,p' \
        -e '/^pump/ { s,^pump/\(.*\)/command,begins \1,p; s,^begins,ends,p; }' \
        "$work/$name/log" >>"$work/$name/audit"
    several=$(head -n 1 "$work/$name/log" | grep -vc '^pumpd log')
    awk '
        function hex(key,  i, text) {
            for (i = 1; i <= length(key); i++)
                text = text code[substr(key, i, 1)]
            return text
        }
        function wrong(what) { print "wrong: " what > "/dev/stderr"; bad = 1 }
        BEGIN {
            for (i = 32; i < 127; i++)
                code[sprintf("%c", i)] = sprintf("%02x", i)
        }
        { id = $2 " " ($1 ~ /s$/ ? $3 : hex($3)) }
        $1 == "command" { ml[id] = $4; commands++ }
        $1 == "answer" {
            if (!(id in ml) || $4 != ml[id] || answered[id]++)
                wrong($0)
            text[id] = $5
            for (i = 6; i <= NF; i++)
                text[id] = text[id] " " $i
        }
        $1 ~ /s$/ && (!(id in ml) || $4 != ml[id]) { wrong($0) }
        $1 == "begins" && begun[id]++ == 1 { twice++ }
        $1 == "ends" { ended[id] = 1 }
        END {
            unknown = "0x83 check the cup"
            if (commands != wanted) wrong(commands " commands")
            for (id in ml) {
                if (!answered[id]) wrong("no answer: " id)
                if (!begun[id]) wrong("answered, not poured: " id)
                true_one = unknown
                if (ended[id]) true_one = "0x00 poured " ml[id] " ml"
                # Of several gateways one may be suspended while it pours, and
                # end after another has answered that nobody knows.
                if (text[id] != true_one && !(several && text[id] == unknown))
                    wrong(id ": " text[id])
            }
            print twice + 0
            exit bad
        }' wanted=$(($1 * 4)) several="$several" \
        "$work/$name/audit" || fail "$name: see above"
}

# Each of the scene's commands was executed once.
all_once() {
    twice=$(audit_senders "$1") || exit 1
    [ "$twice" = 0 ] || fail "$name: $twice commands were executed twice"
}

# Without what is tested some are executed twice: else it shows nothing.
some_twice() {
    twice=$(audit_senders "$1") || exit 1
    [ "$twice" -gt 0 ] || fail "$name: nothing was executed twice: the test shows nothing"
    echo "$name: $(($1 * 4)) commands, $twice executed more than once"
}
