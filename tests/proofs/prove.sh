#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Proofs, without running the header; then the same with injected faults.
#     prove.sh [PART...]
#         wp          Frama-C's WP proves what contracts.acsl asks of functions
#         eva         Frama-C's Eva runs calls.c, records.c, replay.c,
#                     bytes.c and opening.c: all values at once, and no undefined
#                     behaviour is possible
# SHORT=1 leaves out one call of idem_begin, and most of the faults.
set -eu

fail() {
    cat "$out/log"
    echo "FAILED: prove: $*"
    exit 1
}

# long COMMAND...: what the short form leaves out
long() {
    [ "${SHORT:-}" = 1 ] || "$@"
}

# named LIST HEADER: the header as $out/named/idem.h, where functions call their
# own what the list calls it
named() {
    mkdir -p "$out/named"
    python3 tests/tools/locals.py "tests/proofs/$1" "$2" \
        > "$out/named/idem.h" ||
            fail "$1: a function has other parameters or variables"
}

# wp DIRECTORY FUNCTIONS FLAGS...: all goals of these functions of the header
# there; the last line has how many
wp() {
    functions=$2
    named contracts.acsl "$1/idem.h"
    shift 2
    awk -f tests/proofs/annotate.awk $contracts "$out/named/idem.h" \
        > "$out/idem.h" ||
        fail "$contracts: a function or a loop is not in the header"
    printf '#define %s\n' IDEM_STATIC IDEM_IMPLEMENTATION > "$out/wp.c"
    echo '#include "idem.h"' >> "$out/wp.c"
    frama-c -machdep gcc_x86_64 \
        -cpp-extra-args=-DIDEM_HASH=IDEM_HASH_SIPHASH -wp -wp-rte \
        -wp-model Typed+Cast -wp-prover cvc4 -wp-timeout 30 \
        -wp-fct "$functions" "$@" "$out/wp.c" > "$out/log" 2>&1 ||
        fail "Frama-C stopped"
    goals=$(sed -n 's/.*Proved goals: *//p' "$out/log")
    [ "${goals% / *}" = "${goals#* / }" ]
}

# injected HEADER FUNCTION SCRIPT: the header as $out/injected/idem.h, with what
# sed does to a function
injected() {
    mkdir -p "$out/injected"
    sed "/^[A-Za-z].*[ *]$2(/,/^}/{
        $3
        }" "$1" > "$out/injected/idem.h"
    ! cmp -s "$1" "$out/injected/idem.h" || fail "$2: nothing is changed"
}

# broken FUNCTION SCRIPT: it is not proved with what sed does to it
broken() {
    named contracts.acsl idem.h
    injected "$out/named/idem.h" "$1" "$2"
    ! wp "$out/injected" "$1" -wp-timeout 10 || fail "$1: proved with a fault"
    echo "prove: injected and not proved: $1: $goals"
}

contracts=tests/proofs/contracts.acsl
part_wp() {
    all=$(sed -n 's/^function \([a-z0-9_]*\).*/\1/p' $contracts)
    wp . "$(echo "$all" | paste -sd,)" || fail "not everything is proved: $goals"
    echo "prove: WP and RTE: $goals goals of $(echo "$all" | wc -l) functions"
    broken idemi_clock_reached 's/<= IDEMI_PAST_MS/<= 3 * IDEMI_PAST_MS/'
    broken idemi_cursor_byte 's/p->at == p->end/p->at > p->end/'
    long broken idemi_cursor_bytes 's/if (len > /if (len > 1 + /'
    long broken idemi_cursor_words 's/ < 4 / < 3 /'
}

# eva DRIVER HEADER FLAGS...: all of it is run but for senders, and there is no
# alarm.  The driver may have its own of a function that Eva cannot follow: the header's is
# a declaration then.
eva() {
    driver=$1 header=$2
    shift 2
    mkdir -p "$out/own"
    (cd tests/proofs && sed -n 's/^static .*[ *]\(idemi_[a-z_]*\)(.*/\1/p' \
        any.h "$driver.c" $(grep -o 'bytes\.h' "$driver.c")) \
        > "$out/own/names"
    while read -r own; do
        printf '/^static .*[ *]%s(/,/^}/{\n/^{/,/^}/d\ns/)$/);/\n}\n' "$own"
    done < "$out/own/names" > "$out/own/script"
    printf '%s\n' 's/^\(#define IDEMI_EVER_SENDERS *\).*/\10/' \
        >> "$out/own/script"
    sed -f "$out/own/script" "$header" > "$out/own/idem.h"
    proofs=$PWD/tests/proofs
    (cd "$out/own" &&
        frama-c -machdep gcc_x86_64 -eva -eva-precision 0 \
            -eva-msg-key=-initial-state,-final-states -eva-print-callstacks \
            -metrics-eva-cover "$@" "$proofs/$driver.c"
    ) > "$out/log" 2>&1 || fail "Frama-C stopped"
    grep -q '^  0 alarms generated' "$out/log" &&
        grep -q '^  100% of the logical properties reached' "$out/log"
}

# apart FUNCTION...: what they return is not mixed
apart() {
    echo -eva-split-return-function "$(printf '%s:full\n' "$@" | paste -sd,)"
}

# shown DRIVER: no alarm; what of the header was reached
shown() {
    "eva_$1" idem.h || fail "eva: $1: an alarm, see $out/log"
    sed -n 's/^  \([a-z0-9_]*\): [0-9]* stmts out of.*/\1/p' "$out/log" |
        grep -Fvxf "$out/own/names" > "$out/$1"
    echo "eva: $1: 0 alarms in $(grep -c ^idem "$out/$1") functions"
}

# reached SECTIONS BUT DRIVER...: all functions of these sections, but those
# that match BUT
reached() {
    awk -v sections=" $1 " '/^   >>/ { section = " " substr($1, 3) " " }
        index(sections, section) && /^(static|IDEM_API|IDEMI_INLINE)[^;]*\(/ {
            sub(/\(.*/, "")
            sub(/.*[ *]/, "")
            print
        }' idem.h | sort -u | grep -Evx "$2" > "$out/ought"
    shift 2
    missed=$(cd "$out" && sort -u "$@" | comm -23 ought - | paste -sd' ' -)
    [ -z "$missed" ] || fail "$*: not reached: $missed"
    echo "eva: $*: reach all $(wc -l < "$out/ought") that they ought to"
}

# alarmed DRIVER FUNCTION SCRIPT: there is an alarm with what sed does to it
alarmed() {
    injected idem.h "$2" "$3"
    ! "eva_$1" "$out/injected/idem.h" || fail "$2: no alarm with a fault"
    echo "eva: injected and alarmed: $2:" \
        "$(grep -c '^\[eva:alarm' "$out/log") alarms"
}

eva_calls() {
    eva calls "$1" -eva-slevel 15 -eva-ilevel 64 \
        -eva-domains symbolic-locations \
        $(apart idem_open_ idemi_opening_memory idemi_public_prepare \
            idemi_public_query idemi_public_request idemi_public_lookup \
            idemi_command_drop_expired idemi_command_answer_unknown idemi_command_slot_of)
}

# The long form looks at every seventh offset; the short one, and one with a
# fault, at those where records begin.  All of them (STEP=1) take far longer.
eva_records() {
    step=64
    [ "$1" != idem.h ] || step=$(long echo 7)
    eva records "$1" -cpp-extra-args=-DSTEP="${step:-64}" -eva-slevel 500 \
        -eva-slevel-function idemi_opening_check_blank:40000 \
        -eva-ilevel 512 -eva-min-loop-unroll 70 \
        -eva-slevel-merge-after-loop idemi_reading_has_record \
        $(apart idemi_opening_memory idemi_public_prepare idemi_record_codec \
            idemi_reading_fits idemi_reading_parse idemi_reading_record)
}

eva_replay() {
    eva replay "$1" -eva-slevel 15 -eva-ilevel 512 \
        $(apart idemi_opening_memory idemi_public_prepare idemi_index_find)
}

# Each of a buffer's bytes may fail to be read.
eva_bytes() {
    eva bytes "$1" -eva-slevel 1000 -eva-min-loop-unroll 200 \
        $(apart idemi_opening_memory idemi_public_prepare)
}

eva_opening() {
    paths=idemi_reading_scan_headers:200,idemi_reading_record:100
    paths=$paths,idemi_reading_find_head:50,idemi_reading_is_used:50,idemi_basics_code_words:30
    for f in main idem_open_ idemi_public_load idemi_public_prepare \
        idemi_opening_memory idemi_opening_finish idemi_reading_header \
        idemi_opening_next_header idemi_opening_next_sector \
        idemi_opening_journal idemi_opening_sectors idemi_opening_follow_time; do
        paths=$paths,$f:10
    done
    turns=idemi_reading_find_head,idemi_reading_is_used,idemi_opening_next_header
    turns=$turns,idemi_opening_sectors
    eva opening "$1" -eva-ilevel 512 -eva-partition-value met \
        -eva-interprocedural-splits -eva-slevel-function "$paths" \
        -eva-slevel-merge-after-loop "$turns" \
        $(apart idemi_opening_memory idemi_public_prepare idemi_reading_header \
            idemi_reading_scan_headers idemi_opening_next_header idemi_opening_next_sector \
            idemi_reading_find_head)
}

# But what only a journal or a sender needs; what WP alone shows
part_eva() {
    shown calls
    reached "clock slots index order keys commands check rules public run" \
        'idem_format_|idemi_index_remove'`:
            `'|idem_(explain|memory_size|sector_count|fingerprint_.*)'`:
            `'|idemi_.*_(journal|save_refused|scope|geometry|numbers?'`:
            `'|record|record_max|storage|erase|interrupt|unlock|unlocked'`:
            `'|forget(_sender)?|find_keys|is_of|has_sender|sweep_if_expired'`:
            `'|finish_key)' calls
    shown records
    shown replay
    shown bytes
    shown opening
    reached "records reading opening" \
        'idemi_cursor_(bytes|words)|idemi_record_has_left'`:
            `'|idemi_opening_(apply_(sender|takeover|left)|make_sender)' \
        records replay bytes opening
    long alarmed records idemi_reading_fits 's/->slot <=/->slot - 1 <=/'
    long alarmed records idemi_reading_parse 's/ -= 4;/ -= 3;/'
    long alarmed records idemi_cursor_varint 's/ < 35/ < 42/'
    long alarmed records idemi_reading_bytes 's/ + [^ ]* <= / <= /'
    long alarmed calls idemi_command_replay 's/<= .*buffer_size/& + 1/'
    long alarmed calls idemi_command_response 's/if (.* > .*len)/if (0)/'
    long alarmed calls idemi_command_slot_of 's/>= IDEMI_CAPACITY/> IDEMI_CAPACITY/'
    alarmed replay idemi_opening_apply 's/if (!.*->slot)/if (0)/'
    long alarmed opening idemi_opening_sector 's/ && .*SECTOR_SIZE(.*))/)/'
}

why3 config detect > /dev/null 2>&1
for part in ${*:-wp eva}; do
    command -v "part_$part" > /dev/null ||
        { echo "prove: no part $part: wp eva"; exit 2; }
    out=build/prove/$part
    rm -rf "$out"
    mkdir -p "$out"
    "part_$part"
done
