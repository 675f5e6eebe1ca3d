#!/bin/sh
# SPDX-License-Identifier: 0BSD
# examples/python: waits as idem_retry does; and has each command of an outbox
# poured once by pumpd, while outbox.py, broker and pumpd are killed.  Needs
# retry in $B/python, pumpd in $B, paho-mqtt.
set -u

. tests/servers/station.sh
name=outbox
outbox=$examples/python/outbox.py
# Pours for long enough to be killed in the middle.
server="$B/pumpd --id pump --journal journal --log log --ml-ms 20"
# paho-mqtt is a package of Debian's Python, which need not be first in PATH.
python=python3
$python -c 'import paho.mqtt' 2>/dev/null || python=/usr/bin/python3
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

# Both wait alike: those of the file, and others by chance.
alike() {
    for numbers in "$examples/python/retry.txt" "$work/chance"; do
        "$B/python/retry" <"$numbers" >c || fail "build/python/retry failed"
        python3 "$tests/links/retry.py" "$examples/python" <"$numbers" >py
        cmp c py || fail "idem_retry and outbox.py do not wait alike:" \
            "SEED=$seed"
    done
    "$B/python/retry" <"$examples/python/retry.txt" |
        diff - "$examples/python/retry.txt" >&2 ||
        fail "idem_retry does not wait as in retry.txt"
    echo "retry: C and Python wait alike," \
        "$(grep -vc '^#' "$examples/python/retry.txt") cases and" \
        "$(wc -l <"$work/chance") by chance, SEED=$seed"
}

# with_outbox WORD...: runs the Python of stdin, which has outbox.py, with these
# words
with_outbox() {
    { echo 'import sys; sys.path.insert(0, sys.argv.pop(1))
import queue, time, types, outbox'; cat; } | timeout 60 python3 - "$examples/python" "$@"
}

# heard [NAME VALUE]...: what an answer with these user properties is taken for,
# whose text cannot end a line of the list, or print escapes on a terminal
heard() {
    with_outbox "$@" <<'END'
link = outbox.Link.__new__(outbox.Link)
link.answers = queue.Queue()
pairs = list(zip(sys.argv[1::2], sys.argv[2::2]))
link.on_message(None, None, types.SimpleNamespace(
    payload=b"\x1b[2J\xfft\n", properties=types.SimpleNamespace(
        UserProperty=pairs, CorrelationData=b"key")))
answer = link.answers.get() if link.answers.qsize() else [0, "none"]
assert not answer[4:] or answer[4:] == (".[2J\ufffdt.",), answer
print(*answer[1:3])
END
}

# What is no answer of the device's does not end a command, nor this program.
answers() {
    is "$(heard)|$(heard reason x)|$(heard retry-after-ms 5)" "none|none|none"
    is "$(heard reason 0x00)|$(heard reason 0x97)" "OK 0|BUSY 0"
    is "$(heard reason 0x99)|$(heard reason 0x83)" "MISMATCH 0|UNCERTAIN 0"
    is "$(heard reason 0x97 retry-after-ms 5)" "BUSY 5"
    is "$(heard reason 0x97 retry-after-ms "$(printf %05000d 9)")" "BUSY 0"
    is "$(heard reason 0x97 retry-after-ms 99999999999)" "BUSY 0"
    echo "answers: one without a reason is ignored"
}

# Two processes with one outbox and one name: an answer to what the other one
# sent ends a command that this one has not sent yet.
early() {
    is "$(with_outbox <<'END'
box = outbox.Outbox("early.box")
link = types.SimpleNamespace(answers=queue.Queue(), ready=False)
link.answers.put((box.add("a", b"5"), "OK", 0, "0x00", "poured"))
outbox.run(box, link)
print(*box.all()[0][3:])
END
    )" "done 0x00 poured"
    echo "early: an answer before this process has sent"
}

# One that was sent is too late for another time while there is no broker, too.
late() {
    is "$(with_outbox <<'END'
box = outbox.Outbox("late.box")
box.add("a", b"5")
box.db.execute("UPDATE command SET first_s = ?", (outbox.time.time() - 46800,))
outbox.run(box, types.SimpleNamespace(answers=queue.Queue(), ready=False))
print(box.all()[0][3])
END
    )" "give up"
    echo "late: given up without a broker"
}

# aged WALL RUNNING [BEFORE]: the age of a command in s, after the clock on the
# wall went by WALL and the other one by RUNNING; sent first before a restart,
# BEFORE ago by the clock on the wall
aged() {
    with_outbox "$@" <<'END'
wall, running = map(float, sys.argv[1:3])
outbox.time = type(sys)("clocks")
outbox.time.time = lambda: 1e9
outbox.time.CLOCK_BOOTTIME = time.CLOCK_MONOTONIC
outbox.time.clock_gettime = lambda clock: 50.
command = outbox.Command(1, b"key", b"5", 1e9 - float(sys.argv[3])
                         if sys.argv[3:] else None)
command.first_s = command.first_s or 1e9
outbox.time.time = lambda: 1e9 + wall
outbox.time.clock_gettime = lambda clock: 50. + running
print(command.elapsed_ms() // 1000)
END
}

# A command does not get younger when a clock is set, or stands.
ages() {
    is "$(aged 5 5)|$(aged 5 5 7)|$(aged -86400 60)" "5|12|60"
    is "$(aged 86400 60)|$(aged 0 172800 7)|$(aged 1 1 7)" \
        "86400|172800|8"
    # Sent in the future: the clock was set back, and nobody knows by how much.
    is "$(aged 5 5 -1)|$(aged 86400 5 -1)" "4294972|4294972"
    echo "ages: no command gets younger"
}

# Two processes with one outbox, which one of them opened before the other sent:
# the first time stays.  An outbox whose keys may have been sent in one name is
# not sent in another: they would be new there.
shared() {
    is "$(with_outbox <<'END'
here, there = outbox.Outbox("shared.box"), outbox.Outbox("shared.box")
here.add("a", b"5")
number = there.pending()[0][0]
print(here.start(number) == there.start(number) == here.pending()[0][3])
END
    )" True
    $python "$outbox" shared.box run --id kitchen --port 1 >/dev/null 2>&1 &
    children=$!
    wait_for named kitchen
    end_children
    $python "$outbox" shared.box run --port 1 >other 2>&1 &&
        fail "it was sent in another name"
    grep -q "is that of kitchen, not panel" other || fail "$(cat other)"
    echo "shared: a first time stays, so does the sender's name"
}
named() {
    python3 -c 'import sqlite3, sys
sys.exit(sqlite3.connect("shared.box").execute(
    "SELECT name FROM sender").fetchall() != [(sys.argv[1],)])' "$1"
}

# What MQTT would not take is refused with a reason, and stays nowhere.
options() {
    $python "$outbox" options.box add a 5 >/dev/null
    for words in "run --id a/b" "run --id +" "run --id a#b" "run --port 0" \
        "run --port 65536" "run --answer-ms 0" "run --answer-ms -1" "add a 6" \
        "add b" "add $(printf '\377') 5" "list b 5"
    do
        timeout 20 $python "$outbox" options.box $words >printed 2>&1
        is "$words: $?, $(grep -c Traceback printed)" \
            "$words: $([ "${words%% *}" = run ] && echo 2 || echo 1), 0"
    done
    for what in run list; do            # nothing is sent, but not all was
        timeout 20 $python "$outbox" other.box $what >printed 2>&1
        is "$? $(grep -c 'there is no outbox' printed)" "1 1"
    done
    [ ! -e other.box ] || fail "options: it made an outbox of another name"
    timeout 20 $python "$outbox" options.box run --host a..b >printed 2>&1
    is "$? $(grep -c Traceback printed)" "1 0"
    timeout 2 $python "$outbox" options.box run --port 1 >printed 2>&1
    is "$? $(grep -c 'refused; trying again' printed)" "124 1" # its keys stay
    echo "options: one that cannot work is refused"
}

# What was sent and not acknowledged is sent again by the outbox alone, which
# looks at the deadline, and not by its MQTT library.
once() {
    : >once
    python3 "$tests/demo/broker.py" once >once &
    children=$!
    wait_for test -s once
    $python "$outbox" once.box add a 5 >/dev/null ||
        fail "once: outbox.py add failed"
    $python "$outbox" once.box run --port "$(head -n 1 once)" \
        2>>"$work/outbox.log" &
    children="$children $!"
    wait_for grep -q 'published\|nothing' once
    is "$(sed -n 2p once)" nothing
    end_children
    echo "once: what is in hand is not sent behind its back"
}

# add FROM TO: commands into the outbox, in pieces, killed in between and begun
# again: an intention has one key
add() {
    awk -v from="$1" -v to="$2" 'BEGIN {
        for (i = from; i <= to; i++) printf "glass-%d %d ", i, 1 + i * 7 % 9 }'
}

enter() {
    $python "$outbox" box add $(add 1 "$1") >first &
    adding=$!
    sleep 0.2
    kill -KILL $adding 2>/dev/null
    wait $adding 2>/dev/null
    $python "$outbox" box add $(add 1 "$1") >keys || fail "outbox.py add failed"
    head -n "$(wc -l <first)" keys | cmp - first ||
        fail "an intention got another key"
    [ -x "$outbox" ] || fail "it is not run as in README"
    $python "$outbox" box add glass-1 9 2>/dev/null &&
        fail "an intention was entered with another payload"
}

# audit_box COMMANDS: each is in the pump's log once, and was answered so; one
# that was interrupted is not "done"
audit_box() {
    $python "$outbox" box list >list || fail "outbox.py list failed"
    sed 's,pump/panel/command ,,; s,^ends,poured,' outbox/log >poured
    awk '
        $4 == "done" && $5 == "0x00" && $7 == $3 { print $2, $3, $6; next }
        $4 == "look" && $5 != "0x00" { print $2, $3, "interrupted"; next }
        { print $0, "is not right" }' list | audit "$1" poured
}

# chaos KILLS COMMANDS: all of one sender, so fewer than pumpd's quota of 250: the
# next one would wait for a day.
chaos() {
    kills=$1 count=$2
    enter "$count"
    start_broker
    server="$server --port $broker_port"
    start
    i=0
    until $python "$outbox" box list | awk '$4 == "-" { n++ } END { exit n }'
    do
        $python "$outbox" box run --port "$broker_port" --answer-ms 400 \
            2>>"$work/outbox.log" &
        sender=$!
        children=$sender
        if [ $i -ge "$kills" ]; then
            wait $sender || is $? 3
            children=
            break
        fi
        i=$((i + 1))
        sleep "$((i % 2)).$((4 + i % 5))"
        signal=KILL
        end $sender
        children=
        [ $((i % 2)) = 0 ] || { crash_server; start; }
        [ $((i % 3)) != 0 ] || { end "$broker"; start_broker; }
    done
    $python "$outbox" box run --port "$broker_port" || is $? 3
    # One that was sent 13 hours ago is too late for another time; one that the
    # device refuses is not done.
    $python "$outbox" box add late 9 no-amount 1001 >/dev/null
    $python -c 'import sqlite3, time
db = sqlite3.connect("box", isolation_level=None)
db.execute("UPDATE command SET first_s = ? WHERE intention = ?",
           (time.time() - 13 * 3600, "late"))'
    $python "$outbox" box run --port "$broker_port" 2>said
    is "$? $(cat said)" "3 outbox.py: 2 not done: see list"
    $python "$outbox" box list | grep -q '^late .* give up - nobody knows' ||
        fail "a command was sent after the deadline"
    $python "$outbox" box list |
        grep -q '^no-amount .* 1001 refused 0x99 not 1 to 1000 ml' ||
        fail "a refused command is not listed as refused"
    $python -c 'import sqlite3
db = sqlite3.connect("box", isolation_level=None)
db.execute("DELETE FROM command WHERE intention IN (?, ?)",
           ("late", "no-amount"))'
    stop
    interrupted=$(audit_box "$count") || exit 1
    echo "outbox: $count commands, none twice; $i kills of outbox.py, broker" \
        "and pumpd, $interrupted interrupted"
}

seed=${SEED:-1}
python3 "$tests/links/retry.py" examples/python "$seed" 2000 >"$work/chance"
cd "$work"
alike
answers
early
late
ages
shared
options
once
if [ "${SHORT:-}" = 1 ]; then chaos 4 60; else chaos 30 240; fi
