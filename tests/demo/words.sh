#!/bin/sh
# SPDX-License-Identifier: 0BSD
# What the programs of examples/ print: help for --help, and at a failure its
# reason, with the file, the error of the system, or the number that would do.
# Also: a daemon that is killed while it makes its secret starts again.
# Programs that are not built (pumpd and pour need libmosquitto) are left out.
set -eu

B=${B:-build}
B=$(cd "$B" && pwd)
tests=$(pwd)/tests
. tests/servers/wait.sh
work=$(mktemp -d)
broker=
trap 'rm -rf "$work"; [ -z "$broker" ] || kill $broker' EXIT
cd "$work"
passed=0

fail() { echo "words: $*" >&2; cat printed >&2; exit 1; }

# prints STATUS WORDS COMMAND...: it ends so, and prints that
prints() {
    expected=$1 words=$2
    shift 2
    status=0
    timeout 20 "$@" >printed 2>&1 </dev/null || status=$?
    [ "$status" = "$expected" ] || fail "status $status, not $expected: $*"
    grep -qF -- "$words" printed || fail "no \"$words\": $*"
    passed=$((passed + 1))
}

file() { prints "$1" "$2" "$B/file" "$3" 42 'pour 5 ml'; }

for name in file inspect patterns migrate sender burst pumpd pour serial/demo \
    serial/controller serial/device coap/coapd coap/pour http/httpd \
    modbus/gateway modbus/master
do
    [ ! -x "$B/$name" ] || prints 0 "$(basename "$name")" "$B/$name" --help
done

file 1 "none/journal: the storage failed, or was not ready; No such file or directory" \
    none/journal
echo "not a journal" >short
file 1 "such a journal is a file of 28672 bytes.  If it is one of another" short
yes "not a journal" | head -c 28672 >other
file 1 "other.secret: the journal is there, its secret is not" other
head -c 16 /dev/urandom >other.secret
file 1 "other: the storage holds something else; not a journal" other
file 0 "PUMP RUNS" journal
[ "$(stat -c '%s %a' journal.secret)" = "16 600" ] ||
    fail "journal.secret has not 16 bytes, or not mode 600"

file 0 "finished before" journal
prints 1 "the key was used for another payload" "$B/file" journal 42 'pour 6 ml'
# One that is killed while it pours is a failure, each time.
preloaded killed <<'END'
#include <signal.h>
unsigned sleep(unsigned s)
{
    raise(SIGKILL);
    return s;
}
END
LD_PRELOAD=$work/killed.so "$B/file" killed 42 'pour 5 ml' >printed 2>&1 || :
file 1 "handled, and the outcome is recorded: check the cup" killed
file 1 "finished before: send the stored outcome: check the cup" killed
# A machine that has not gathered noise yet makes no secret.
preloaded early <<'END'
#include <poll.h>
int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    (void)fds, (void)count, (void)timeout_ms;
    return 0;
}
END
prints 1 "/dev/random: Resource temporarily unavailable" \
    env LD_PRELOAD="$work/early.so" "$B/file" early 42 'pour 5 ml'
[ ! -e early.secret ] || fail "it made a secret without noise"
file 0 "PUMP RUNS" early
# Time passes only while it runs, so it forgets by number: it is never full.
echo 'unsigned sleep(unsigned s) { (void)s; return 0; }' | preloaded awake
for key in $(seq 0 64); do
    LD_PRELOAD=$work/awake.so "$B/file" many $key 'pour 5 ml' >printed ||
        fail "file: command $key failed"
done
prints 0 "finished before" "$B/file" many 64 'pour 5 ml'
# Nor is it full of commands that were killed while they poured, and not
# repeated: it still knows the last of them.
for key in $(seq 0 64); do
    LD_PRELOAD=$work/killed.so "$B/file" poured $key 'pour 5 ml' \
        >printed 2>&1 ||
        grep -q "PUMP RUNS" printed || fail "file: command $key did not begin"
done
prints 0 "PUMP RUNS" "$B/file" poured 65 'pour 5 ml'
prints 1 "check the cup" "$B/file" poured 64 'pour 5 ml'

# A record is lost in the second sector, which the first run began: after its
# header and commit record.
for key in 43 44; do
    "$B/file" damaged $key 'pour 5 ml' > printed
done
printf 'damaged' | dd of=damaged bs=1 seek=4160 conv=notrunc 2> printed
prints 1 "lost 1" "$B/inspect" damaged
[ ! -w /dev/full ] || prints 2 "stdout: No space left on device" \
    sh -c '"$0" journal >/dev/full' "$B/inspect"
prints 1 "records were lost: every claim is uncertain, for 86" \
    "$B/inspect" damaged

migrate() { prints "$1" "$2" "$B/migrate" "$3" 64,32,32,0,4096 "$4" "$5"; }
migrate 0 "1 keys copied" journal new 200,32,64,8,8192
prints 0 'key "42": completed' "$B/inspect" --capacity 200 --response-max 64 \
    --state-max 8 --sector 8192 --secret-file journal.secret new
truncate -s 80K spare               # larger than it need be
cp journal.secret spare.secret
migrate 0 "1 keys copied" journal spare 64,32,32,0,4096
migrate 0 "1 keys copied" spare new5 200,32,64,8,8192
migrate 1 "new: holds a journal" journal new 200,32,64,8,8192
truncate -s 20000 stray
migrate 1 "stray: an argument is impossible; no journal has 2 sectors of 8192" \
    journal stray 200,32,64,8,8192
migrate 1 "has the file open, or this one" journal journal 64,32,32,0,4096
migrate 1 "none: No such file" none new2 200,32,64,8,8192
: >empty
migrate 1 "empty: it was a journal" empty new2 200,32,64,8,8192
migrate 1 "not a geometry, see" journal new2 200,32
for geometry in 0,32,32,0,4096 20000000,1,0,0,262144; do
    migrate 1 "$geometry: capacity: at least 1" journal new4 "$geometry"
    [ ! -e new4 ] || fail "a file was made for \"$geometry\""
done
for geometry in 4294967360,32,32,0,4096 \
    64,32,32,0,4096x 64,32,32,0,4096, 64,32,32,0,4096,5,7 \
    64,32,32,0,4096,-5 64,32,32,0,4096,32768 64,-1,32,0,4096 ''; do
    migrate 1 "not a geometry, see" journal new4 "$geometry"
    [ ! -e new4 ] || fail "a file was made for \"$geometry\""
done
migrate 1 "damaged: records were lost" damaged new3 200,32,64,8,8192
prints 1 "journal: over the limit" "$B/file" journal "$(printf '%040d' 1)" x
prints 1 "journal: an argument is impossible" "$B/file" journal '' x
prints 0 "4: nobody knows: look at the cup" "$B/answers_test" outbox3
# What could not be printed stays in the outbox.
[ ! -w /dev/full ] || prints 2 "stdout: No space left on device" \
    sh -c '"$0" outbox4 2>&1 >/dev/full' "$B/answers_test"
prints 1 "nobody knows: look at the cup" "$B/controller_test"
prints 1 "4 commands: 2 done, 1 to be looked at;" "$B/controller_test"
prints 2 "a number from 1" "$B/serial/controller" /dev/null --window 0
# Longer than a device remembers a key it must not be asked.
prints 2 "a number from 1" "$B/serial/controller" /dev/null --patience 0
prints 2 '"43201" is not a number up to 43200' \
    "$B/serial/controller" /dev/null --patience 43201
prints 2 "No such file or directory" "$B/inspect" none

# The serial device: two processes with one flash; a flash that is lost, or
# truncated, and its secret is not.
device() { prints 2 "device/flash: $1" "$B/serial/device" --line /dev/null \
    --dir device; }
mkdir device
printf 'half a label' >device/labels
mkfifo line
"$B/serial/device" --line line --dir device &
pid=$!
wait_for grep -q VOID device/labels
printf 'half a label' >>device/labels
device "Device or resource busy"
[ "$(tail -n 1 device/labels)" = 'half a label' ] ||
    fail "a device that is refused has cut a label short"
kill $pid
wait $pid 2>/dev/null || :
# It starts, and a line that ends is not a good end.
prints 2 "the line was closed: Broken pipe" \
    "$B/serial/device" --line /dev/null --dir device
# A path that is cut would be that of another file, the same for all of them.
long=$(printf '%0250d/%0250d/%010d' 0 0 0)
mkdir -p "$long"
prints 2 "--dir: too long" "$B/serial/device" --line /dev/null --dir "$long"
[ -z "$(find 0* -type f)" ] || fail "a file was made in another folder"
truncate -s -4K device/flash
device "the secret is there, the flash is not, or not whole"
rm device/flash
device "the secret is there, the flash is not, or not whole"
[ ! -e device/flash ] || fail "flash was made for the secret of another"

echo "pour 70000" >commands
prints 2 "a number up to 65535" "$B/sender" /dev/null outbox commands
echo "pour -18446744073709551611" >commands     # 5, to strtoul
prints 2 "a number up to 65535" "$B/sender" /dev/null outbox commands
printf 'pour %0200d\n' 5 >commands
prints 2 "a line is too long" "$B/sender" /dev/null outbox2 commands
printf 'pour 2' >commands                       # of 25
prints 2 "has no newline: pour 2" "$B/sender" /dev/null outbox2 commands
echo "pour 5" >commands
prints 2 "the line was closed: Broken pipe" "$B/sender" /dev/null outbox5 \
    commands
# Why there is no line
prints 2 "unix:none: No such file" "$B/sender" unix:none outbox5 commands
prints 2 ": File name too long" "$B/sender" "unix:$(printf '%0200d' 0)" \
    outbox5 commands
prints 2 "tcp:localhost: HOST:PORT, of at most 255" "$B/sender" tcp:localhost \
    outbox5 commands
prints 2 "tcp:localhost:none: Servname not supported" "$B/sender" \
    tcp:localhost:none outbox5 commands
# Words in another order: a file is not written over.
cp commands unharmed
prints 2 "commands: a file, whose content" "$B/sender" commands outbox5 unharmed
cmp commands unharmed || fail "a command was written into a file"
# A socket that is closed at once does not kill it without a word.
python3 -c 'import socket
with socket.socket(socket.AF_UNIX) as at:
    at.bind("closed")
    at.listen()
    print(flush=True)
    at.accept()[0].close()' >listens &
broker=$!
wait_for test -s listens
prints 2 "the line was closed: Broken pipe" "$B/sender" unix:closed outbox5 \
    commands
wait "$broker"
broker=
for text in 'pour 6' 'label 5' ''; do            # line 1 was taken
    echo "$text" >commands
    [ -n "$text" ] || : >commands
    prints 2 "commands: not the commands of this outbox" \
        "$B/sender" /dev/null outbox5 commands
done
# Two outboxes that are begun in a moment do not share numbers.
echo "pour 5" >commands
for outbox in one two; do
    prints 2 "the line was closed: Broken pipe" "$B/sender" /dev/null $outbox \
        commands
    "$B/inspect" --capacity 8 --key-max 8 --response-max 32 --state-max 8 \
        --retention 2592000000 $outbox >$outbox.state || fail "$outbox"
done
[ "$(grep ^state one.state)" != "$(grep ^state two.state)" ] ||
    fail "two outboxes have one epoch"
printf 'pour 5\npour 6\n' >commands
prints 2 "the line was closed: Broken pipe" "$B/sender" /dev/null outbox5 \
    commands
yes "not a journal" | head -c 20480 >other
prints 2 "outbox: the storage holds something else; not a journal" \
    "$B/sender" /dev/null other commands
prints 2 "none: No such file" "$B/sender" /dev/null outbox none
# What cannot be read is not the end of the commands, nor an empty file.
mkdir folder folder2.secret
cp journal folder2
prints 2 "folder: Is a directory" "$B/sender" /dev/null outbox6 folder
prints 2 "folder: Is a directory" "$B/inspect" --config folder journal
# Nor is the begin of a value a value.
for line in 'capacity 9 999' 'secret-file journal.secret of the pump'; do
    echo "$line" >options
    prints 2 "a value is one word" "$B/inspect" --config options journal
done
printf '# of file.c\n\n  capacity 64 \nkey-max 32' >options
prints 0 "lost 0" "$B/inspect" --config options journal
prints 1 "folder2.secret: Is a directory" "$B/file" folder2 42 'pour 5 ml'
[ ! -x "$B/coap/pour" ] || prints 2 "standard input: Is a directory" \
    sh -c '"$0" 5683 <folder' "$B/coap/pour"
[ ! -x "$B/pour" ] || prints 1 "standard input: Is a directory" \
    sh -c '"$0" --port 1 <folder' "$B/pour"
# Nor is a line for which there is no memory.
preloaded_unread
[ ! -x "$B/coap/pour" ] || prints 2 "standard input: Cannot allocate memory" \
    env LD_PRELOAD="$work/unread.so" "$B/coap/pour" 5683
[ ! -x "$B/pour" ] || prints 1 "standard input: Cannot allocate memory" \
    env LD_PRELOAD="$work/unread.so" "$B/pour" --port 1
[ ! -x "$B/modbus/master" ] ||      # a word is missing: nothing was poured
    prints 2 "lets the gateway" "$B/modbus/master" 1502
prints 2 "another secret" "$B/inspect" --secret-file other.secret journal
prints 2 "none.secret: No such file" "$B/inspect" --secret-file none.secret \
    journal
prints 2 "no such option" \
    "$B/inspect" --secret 00112233445566778899aabbccddeeff \
    journal
prints 2 "would do" "$B/inspect" --capacity 9999 journal
prints 2 "key_max: 1 to 255" "$B/inspect" --key-max 0 journal
prints 2 "not a number" "$B/inspect" --key-max -18446744073709551584 journal
"$B/file" long 123456789012345678901234567 'pour 5 ml' >printed
prints 0 "lost 0" "$B/inspect" --key-max 032 --erased 0x00 long

# ahead NAME CONDITION: NAME.so, with which clocks are two days ahead where that
# holds
ahead() {
    preloaded "$1" <<END
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *t)
{
    static int calls;
    int result = (int)syscall(SYS_clock_gettime, clock, t);
    if ($2)
        t->tv_sec += 172800;
    return result;
}
END
}

# A process that is suspended for two days while it pours: that is its outcome.
ahead stopped 'access("stopped", F_OK) == 0'
preloaded stop <<'END'
#include <fcntl.h>
unsigned sleep(unsigned s)
{
    (void)creat("stopped", 0600);
    return s - s;
}
END
prints 0 "the outcome is recorded: poured" \
    env LD_PRELOAD="$work/stopped.so:$work/stop.so" \
    "$B/file" long 42 'pour 5 ml'
file 0 "finished before: send the stored outcome: poured" long
# Nor are others forgotten meanwhile: it keeps the last 64, however old.
prints 0 "finished before" "$B/file" long 123456789012345678901234567 \
    'pour 5 ml'

# A machine that is up for days, which no audit may take for the device's time.
ahead up 1
prints 0 "each command was executed once" env LD_PRELOAD="$work/up.so" \
    "$B/serial/demo" --count 20 --only 0

# A device that sleeps: what waits on its line may be a copy.
ahead night 'access("night", F_OK) == 0'
mkdir sleeper
prints 0 "answered as before" python3 "$tests/demo/suspended.py" \
    "$B/serial/device" sleeper "$work/night.so" night

# started COMMAND...: until it has looked for its broker, which is none, and
# ends it; status 1 if it ended before.
started() {
    : >printed
    "$@" --port 1 >>printed 2>&1 </dev/null &
    pid=$!
    until grep -q 'Connection refused; trying again' printed; do
        kill -0 $pid 2>/dev/null || break
        sleep 0.05
    done
    kill $pid 2>/dev/null || :
    wait $pid 2>/dev/null || :
    grep -q 'Connection refused; trying again' printed
}

starts() {
    started "$B/pumpd" --journal "$1" --log "$1.log" ||
        fail "$1: does not start"
    passed=$((passed + 1))
}

refuses() { prints 1 "$2" "$B/pumpd" --port 1 --journal "$1" --log "$1.log"; }

secrets() {
    mkdir a b
    starts a/j
    [ "$(wc -c <a/j.secret)" = 16 ] || fail "no secret was made"
    head -c 7 /dev/urandom >b/j.secret.new      # killed while it was written
    starts b/j
    [ "$(stat -c %a b/j.secret)" = 600 ] || fail "others can read the secret"
    mv a/j.secret a/kept
    refuses a/j "its secret is not"
    : >a/j.secret
    refuses a/j "a/j.secret: empty"
    head -c 7 /dev/urandom >a/j.secret
    refuses a/j "a/j.secret: shorter than 16 bytes"
    mv a/kept a/j.secret
    starts a/j
    : >a/j                              # as a crash can leave a file
    refuses a/j "a/j: the secret is there, the journal is not, or is empty"
    rm a/j
    refuses a/j "a/j: the secret is there, the journal is not"
    [ ! -e a/j ] || fail "a journal was made for the secret of another"
    refuses none/j "No such file"
}

# Killed at any of the system calls that make the secret it starts again.  With
# -D it is the daemon that `started` ends and waits for: a strace that is ended
# lets go of the daemon, which may then still have the file open.
kills() {
    for call in write fsync fdatasync rename; do
        n=0 killed=1
        while [ $killed = 1 ]; do
            n=$((n + 1))
            rm -rf k
            mkdir k
            ! started strace -D -qq -o trace -e trace=$call -e \
                inject=$call:signal=SIGKILL:when=$n "$B/pumpd" --journal k/j \
                --log k/j.log ||
                killed=0
            starts k/j
        done
        [ $n -gt 1 ] || fail "never killed at $call: the test shows nothing"
    done
}

# A file system that cannot sync a folder: the journal is content with it, so is
# the log.
unsynced() {
    mkdir unsynced
    started strace -D -qq -o trace -P "$work/unsynced" -e trace=fsync \
        -e inject=fsync:error=EINVAL "$B/pumpd" --journal unsynced/j \
        --log unsynced/j.log || fail "unsynced: does not start"
    grep -q EINVAL trace || fail "no folder was synced: the test shows nothing"
    passed=$((passed + 1))
}

# The sender, killed before one of its outbox's last writes: claims and outcomes of
# two commands.  The number of an outcome that is not there is free for another
# command.
free_number() {
    printf 'pour 4\npour 5\n' >two
    printf 'pour 4\npour 6\n' >others
    strace -qq -o trace -e trace=pwrite64 "$B/sender" /dev/null outbox6 two \
        >printed 2>&1 </dev/null || true
    last=$(grep -c pwrite64 trace)
    for call in "$last" $((last - 1)) $((last - 2)); do
        rm outbox6*
        strace -qq -o trace -e trace=pwrite64 -e \
            inject=pwrite64:signal=SIGKILL:when="$call" \
            "$B/sender" /dev/null outbox6 two >printed 2>&1 </dev/null || true
        prints 2 "the line was closed: Broken pipe" \
            "$B/sender" /dev/null outbox6 others
    done
}

if [ -x "$B/pour" ]; then
    prints 1 "--deadline: a number from 1 to 43200" \
        "$B/pour" --deadline 4294968 a 5
    prints 1 "--port: a number from 1 to 65535" "$B/pour" --port 65537 a 5
    prints 1 "--id is too long" "$B/pour" --id "$(printf '%0120d' 1)" a 5
    for id in a/b + a#b; do
        prints 1 "--id is part of a topic: it must not have + # or /" \
            "$B/pour" --port 1 --retry 50 --deadline 1 --id $id a 5
    done
    prints 1 "a line is KEY ML" sh -c 'echo a | "$0" --port 1' "$B/pour"
    prints 1 "may be incomplete" sh -c 'printf "a 2" | "$0" --port 1' "$B/pour"
    prints 1 "a KEY without its ML" "$B/pour" --port 1 --deadline 1 a 5 b
    prints 1 "given up: nobody knows" \
        "$B/pour" --port 1 --retry 50 --deadline 1 a 5
    prints 1 "a key has 1 to 65535 bytes" "$B/pour" --port 1 '' 5
    prints 1 "--property: the key is not text in UTF-8" \
        "$B/pour" --port 1 --property "$(printf '\377')" 5
    # A machine that sleeps: the deadline does not wait for it.
    ahead asleep "clock != CLOCK_MONOTONIC && ++calls > 9"
    prints 1 "given up: nobody knows" \
        env LD_PRELOAD="$work/asleep.so" "$B/pour" --port 1 --retry 50 a 5
fi
# refused WORDS COMMAND...: by a broker that grants no subscription
refused() {
    words=$1
    shift
    timeout 20 "$@" --port "$refusing" >printed 2>&1 </dev/null || :
    grep -qF -- "$words" printed || fail "no \"$words\": $*"
    passed=$((passed + 1))
}

# refusing WHAT: a broker that does (broker.py), at $refusing; what it prints is
# in the file of that name
refusing() {
    [ -z "$broker" ] || kill $broker 2>/dev/null || :
    : >refusing
    python3 "$tests/demo/broker.py" "$1" >refusing 2>refusing.log &
    broker=$!
    wait_for test -s refusing
    refusing=$(head -n 1 refusing)
}

# has_printed LINES: more than that
has_printed() { [ "$(wc -l <refusing)" -gt "$1" ]; }

if [ -x "$B/pumpd" ] && [ -x "$B/pour" ]; then
    refusing subscriptions
    refused "refuses the subscription: Not authorized" \
        "$B/pumpd" --journal s --log s.log
    echo a 5 >command
    refused "refuses the subscription: Not authorized" \
        sh -c '"$0" --retry 50 --deadline 1 "$@" <command' "$B/pour"
    grep -q "given up" printed || fail "it was not given up"
    # A broker that refuses the client: printed once, however often it is asked.
    refusing all
    "$B/pumpd" --port "$refusing" --journal s --log s.log >printed 2>&1 &
    pid=$!
    wait_for has_printed 4
    kill $pid
    wait $pid || :
    [ "$(grep -c 'refuses: Not authorized' printed)" = 1 ] &&
        [ "$(wc -l <printed)" -le 4 ] ||
            fail "the refusal was not printed exactly once"
    passed=$((passed + 1))
    # One that refuses each command: printed once, too.
    refusing each
    timeout 20 "$B/pour" --port "$refusing" --retry 50 --deadline 1 a 5 \
        >printed 2>&1 || :
    [ "$(grep -c 'refuses the command: Not authorized' printed)" = 1 ] ||
        fail "it was not printed once that the command is refused"
    passed=$((passed + 1))
    # One that takes QoS 0 alone: it would never get a command.
    refusing qos
    prints 1 "QoS not supported on server" \
        "$B/pour" --port "$refusing" --retry 50 --deadline 3 a 5
    # A machine that sleeps while it waits to ask again: it is too late then.
    refusing busy
    ahead later 'clock != CLOCK_MONOTONIC && access("slept", F_OK) == 0'
    LD_PRELOAD="$work/later.so" "$B/pour" --port "$refusing" a 5 >printed 2>&1 &
    pid=$!
    wait_for grep -q published refusing
    sleep 0.5                           # the answer comes
    : >slept
    status=0
    wait $pid || status=$?
    [ $status = 1 ] && grep -q "given up" printed || fail "it was not given up"
    [ "$(grep -c published refusing)" = 1 ] || fail "asked after the deadline"
    passed=$((passed + 1))
    # What is in hand when the connection breaks is not sent again behind our
    # back: the broker would keep it for as long as at its first time.
    refusing once
    "$B/pour" --port "$refusing" --retry 60000 a 5 >printed 2>&1 &
    pid=$!
    wait_for has_printed 1
    kill $pid
    [ "$(sed -n 2p refusing)" = nothing ] || fail "sent again: $(cat refusing)"
    passed=$((passed + 1))
    kill $broker 2>/dev/null || :          # it may have ended
    broker=
fi
if [ -x "$B/pumpd" ]; then
    secrets
    ! command -v strace >/dev/null || { kills; unsynced; }
fi
! command -v strace >/dev/null || free_number
echo "words: $passed passed, 0 failed"
