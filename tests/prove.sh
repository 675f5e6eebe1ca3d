#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Frama-C on idem.h: WP proves the functions that tests/prove/contracts.acsl
# lists, all of their goals; Eva looks for undefined behaviour in what eva.c,
# calls.c and file.c in tests/prove run, and finds none.  Then with faults
# planted.  SHORT=1 leaves out WP's longest proofs, the longer of Eva's parts,
# and most of the faults.
#     prove.sh [PART...]      of $parts below, which may run beside each other;
#                             none are all
set -eu

parts="wp opening ring in_ram cells left"
root=$PWD

fail() {
    cat "$out/log"
    echo "FAILED: prove: $*"
    exit 1
}

# long COMMAND...: what the short form leaves out
long() {
    [ "${SHORT:-}" = 1 ] || "$@"
}

# wp HEADER FLAGS...: all goals of what is listed; the last line has how many
wp() {
    header=$1
    shift
    { echo '#include "idem.h"'
      awk -f tests/prove/extract.awk "$header" tests/prove/contracts.acsl |
          grep -v '^ *IDEMI_UNROLL$'
      cat tests/prove/decoded.h
    } > "$out/wp.c" || fail "the contracts do not fit the header"
    frama-c -machdep gcc_x86_64 -cpp-extra-args=-I. -wp -wp-rte \
        -wp-model Typed+Cast -wp-prover cvc4 -wp-timeout 30 "$@" \
        "$out/wp.c" > "$out/log" 2>&1 || fail "Frama-C stopped"
    goals=$(sed -n 's/.*Proved goals: *//p' "$out/log")
    [ "${goals% / *}" = "${goals#* / }" ]
}

# plant FUNCTION SCRIPT: sed's script on a function, which is not proved then
plant() {
    sed "/^[A-Za-z].*[ *]$1(/,/^}/{
        $2
        }" idem.h > "$out/planted.h"
    ! cmp -s idem.h "$out/planted.h" || fail "$1: nothing is changed by it"
    ! wp "$out/planted.h" -wp-fct "$1" -wp-timeout 10 ||
        fail "$1: proved with a fault"
    echo "prove: planted and not proved: $1: $goals"
}

part_wp() {
    skipped=
    [ "${SHORT:-}" != 1 ] ||
        skipped="idemi_record_rest idemi_record_decode idemi_record_claim
            decoded idemi_index_erase idemi_index_insert idemi_order_insert"
    wp idem.h ${skipped:+-wp-skip-fct "$(echo $skipped | tr ' ' ,)"} ||
        fail "not everything is proved: $goals"
    echo "prove: WP and RTE: $goals goals of" \
        "$(grep -c ^function tests/prove/contracts.acsl) functions" \
        ${skipped:+but $skipped}
    plant idemi_clock_reached 's/<= IDEMI_PAST_MS/<= 3 * IDEMI_PAST_MS/'
    long plant idemi_index_next 's/++at < /++at <= /'
    long plant idemi_index_find 's/slot == IDEMI_NONE ||/0 ||/'
    long plant idemi_index_insert 's/(slot + 1)/slot/'
    long plant idemi_index_erase 's/ gap = at;/ gap = at + 1;/'
    long plant idemi_order_append \
        's/(idem_number)ends;/(idem_number)(ends + 1);/'
    long plant idemi_order_remove 's/= link->newer/= link->newer + 1/'
    long plant idemi_order_free 's/= t->free;/= t->free + 1;/'
    long plant idemi_order_take 's/links\[slot\].newer/links[slot].older/'
    long plant idemi_order_insert \
        's/(idem_number)newer;/(idem_number)(newer + 1);/'
    long plant idemi_crc_rows 's/len >= 8; len -= 8/len >= 7; len -= 8/'
    long plant idemi_record_bytes 's/p + len/p + len + 1/'
    long plant idemi_record_claim 's/id_len > t->/id_len > 1u + t->/'
    long plant idemi_record_take 's/if (len > /if (len > 1 + /'
    long plant idemi_record_decode 's/front + 4 > have/front + 3 > have/'
}

# ran: keeps what the run that has just ended looked at of each function
ran() {
    sed -n 's/^ *\([a-z0-9_]*\): \([0-9]*\) stmts out of.*/\1/p' "$out/log" \
        >> "$out/ran"
}

# eva DIRECTORY FLAGS...: no alarm in what the driver runs of the header there
eva() {
    directory=$1
    shift
    (cd "$directory" && frama-c -machdep gcc_x86_64 \
        -cpp-extra-args="-I. $*" -eva -eva-precision 3 -eva-slevel 100 \
        -eva-msg-key=-initial-state,-final-states -metrics-eva-cover \
        -main main \
        "$root/tests/prove/eva.c") > "$out/log" 2>&1 || fail "Frama-C stopped"
    alarms=$(grep -c '^\[eva:alarm\]' "$out/log" || :)
    [ "$alarms" = 0 ]
}

# hinted HEADER HINTS...: the header with the hints in front of its lines
hinted() {
    header=$1
    shift
    rm -rf "$out/calls"
    mkdir "$out/calls"
    cat "$@" > "$out/hints.txt"
    awk -f tests/prove/hint.awk "$out/hints.txt" "$header" \
        > "$out/calls/idem.h" || fail "the hints do not fit the header"
    apart=$(sed -n 's/^apart //p' "$out/hints.txt" | tr ' ' : |
        paste -s -d , -)
    returns=$(sed -n 's/^returns //p' "$out/hints.txt" | tr ' ' : |
        paste -s -d , -)
}

# analysed DRIVER DEFINES FLAGS...: no alarm in what it runs of that
analysed() {
    driver=$1 defines=$2
    shift 2
    (cd "$out/calls" && frama-c -machdep gcc_x86_64 \
        -cpp-extra-args="-I. -I$root/tests/prove $defines" \
        -eva -eva-precision 1 -main main \
        -eva-split-return-function "$returns" \
        ${apart:+-eva-slevel-function "$apart"} \
        -eva-msg-key=-initial-state,-final-states -metrics-eva-cover "$@" \
        "$root/tests/prove/$driver") > "$out/log" 2>&1 ||
        grep -q '^\[eva:alarm\]' "$out/log" || fail "Frama-C stopped"
    alarms=$(grep -c '^\[eva:alarm\]' "$out/log" || :)
    functions=$(sed -n 's/^ *\([0-9]*\) functions analyzed.*/\1/p' "$out/log")
    reached=$(sed -n 's/^ *In these .*: \([0-9]*\)% .*/\1/p' "$out/log")
    [ "$alarms" = 0 ]
}

# calls HEADER MORE-HINTS SPECS DEFINES FLAGS...: no alarm in what calls.c runs
# of the header, with the hints.  Of the functions in SPECS, which WP has
# proved, Eva takes the contracts instead of the code; $words are what is
# defined for those
words=
calls() {
    header=$1 more=$2 specs=$3 defines=$4
    shift 4
    hinted "$header" tests/prove/hints.txt $more
    awk -v only="$specs${words:+ $words}" -f tests/prove/extract.awk "$header" \
        tests/prove/contracts.acsl > "$out/calls/specs.h" ||
        fail "the contracts do not fit the header"
    words=
    analysed calls.c "$defines" -eva-use-spec "$(echo "$specs" | tr ' ' ,)" "$@"
}

# stored HEADER: no alarm in what file.c runs of it
stored() {
    hinted "$1" tests/prove/file.txt
    analysed file.c "" -eva-slevel 0 -eva-ilevel 64 -eva-split-limit 300 \
        -eva-partition-value \
        open_now,eva_path_len,eva_slashes,eva_whole,eva_left
}

# no_storage HEADER: any calls on a table without storage
no_storage() {
    calls "$1" tests/prove/table.txt idem_siphash_update "" -eva-slevel 20
}

# cells HEADER CAPACITY: the opening of cells that hold any bytes
cells() {
    calls "$1" tests/prove/cells.txt "idem_siphash_update idemi_crc_update" \
        "-DIDEM_CELLS -DCAPACITY=$2" -eva-slevel 0 -eva-ilevel 64 \
        -eva-partition-value eva_scope,eva_scope_0,eva_scope_1
}

# formatted HEADER: cells are formatted
formatted() {
    calls "$1" tests/prove/cells.txt "idem_siphash_update idemi_crc_update" \
        "-DIDEM_CELLS -DCAPACITY=1 -DFORMAT" -eva-slevel 0 -eva-ilevel 64
}

# ring HEADER PART VALUES DEFINES FLAGS...: a part (replay.h) of the opening of
# a ring of sectors that hold any bytes; runs in which VALUES differ are not
# mixed
ring() {
    header=$1 part=$2 values=$3 more=$4
    shift 4
    specs="idem_siphash_update idemi_crc_update idemi_storage_all"
    words=placed
    calls "$header" tests/prove/ring.txt "$specs idemi_record_decode" \
        "-DRING -D$part $more" -eva-slevel 0 -eva-ilevel 64 \
        -eva-partition-value "$values" "$@"
}

# What are the parts of it
headers() {
    header=$1
    shift
    ring "$header" HEADERS eva_valid,eva_first,eva_pair "" "$@"
}
records() {
    header=$1 step=$2
    shift 2
    ring "$header" RECORDS eva_record "-DSTEP=$step" "$@"
}
format() {
    header=$1
    shift
    ring "$header" FORMAT eva_valid,eva_first,eva_pair -DWRITER "$@"
}
replay() {
    header=$1 in_ram=$2
    shift 2
    ring "$header" REPLAY eva_record,eva_slots,eva_index,eva_late \
        "-DIN_RAM=$in_ram" "$@"
}
same() {
    ring "$1" SAME eva_record ""
}
enter() {
    header=$1
    shift
    ring "$header" ENTER eva_record "" "$@"
}

# writer HEADER PART FLAGS...: a part (writer.h) of what calls do to a ring,
# from any state
writer() {
    header=$1 part=$2
    shift 2
    specs="idem_siphash_update idemi_crc_update idemi_storage_all"
    words=placed
    calls "$header" tests/prove/writer.txt "$specs idemi_record_decode" \
        "-DRING -DWRITER -D$part" -eva-slevel 0 -eva-ilevel 128 \
        -eva-split-limit 300 -eva-partition-value eva_record "$@"
}

# called HEADER DEFINES FLAGS...: a part (called.h) of the calls on a ring, from
# any state; the slot's word may be anywhere in the index from FROM on
called() {
    header=$1 more=$2
    shift 2
    specs="idem_siphash_update idemi_crc_update idemi_storage_all"
    values=eva_record,eva_slots,eva_index,eva_late,eva_over,eva_was,eva_found
    words=placed
    hints="tests/prove/writer.txt tests/prove/slot.txt"
    calls "$header" "$hints tests/prove/called.txt" \
        "$specs idemi_record_decode" "-DRING -DWRITER -DCALLED $more" \
        -eva-slevel 0 -eva-ilevel 128 -eva-partition-value "$values" "$@"
}

# in_cells HEADER VALUES DEFINES FLAGS...: a part (cells_called.h) of the calls
# on cells, from any state
in_cells() {
    header=$1 values=$2 more=$3
    shift 3
    calls "$header" "tests/prove/slot.txt tests/prove/cells_called.txt" \
        "idem_siphash_update idemi_crc_update" \
        "-DIDEM_CELLS -DCAPACITY=1 -DCALLED -DFROM=2 $more" -eva-slevel 0 \
        -eva-ilevel 128 -eva-split-limit 300 -eva-partition-value "$values" "$@"
}

# What are the parts of it
recorded() {
    in_cells "$1" eva_scope,eva_record,eva_scope_0,eva_slots -DRECORD
}
queued() {
    header=$1 part=$2
    shift 2
    in_cells "$header" eva_queue,eva_kept,eva_replaced,eva_copied \
        "-DQUEUE -D$part -DFIRST=3 -DOWN=4" "$@"
}
called_cells() {
    header=$1 call=$2
    shift 2
    values=eva_slots,eva_index,eva_over,eva_found,eva_record,eva_owns
    in_cells "$header" "$values,eva_scope_0" "-DCALLS -DCALL=$call" "$@"
}

# blind WHAT FUNCTION SCRIPT DEFINES: with a fault, until the first alarm
blind() {
    found "$1" "$2" "$3" called "$out/planted.h" "$4" -eva-stop-at-nth-alarm 1
}

# shown WHAT FUNCTIONS PERCENT RUN...: no alarm, and so many functions are run;
# what stops early has no alarms either
shown() {
    what=$1 least=$2 percent=$3
    shift 3
    "$@" || fail "Eva: $what: $alarms alarms"
    [ "${functions:-0}" -ge "$least" ] && [ "${reached:-0}" -ge "$percent" ] ||
        fail "Eva: $what: $functions functions, $reached% of their statements"
    ran
    echo "prove: Eva: $what: 0 alarms, $functions functions," \
        "$reached% of their statements"
}

# looked WHAT FUNCTIONS PERCENT DEFINES: the same of a part of the calls
looked() {
    shown "$1" "$2" "$3" called idem.h "$4"
}

# found WHAT FUNCTION SCRIPT RUN...: sed's script on a function makes alarms
found() {
    what=$1
    sed "/$2(/,/^}/$3" idem.h > "$out/planted.h"
    ! cmp -s idem.h "$out/planted.h" || fail "Eva: nothing is changed"
    shift 3
    ! "$@" || fail "Eva: no alarm with a fault"
    echo "prove: planted and found: $what: $alarms alarms"
}

part_opening() {
    eva . "" || fail "Eva: headers: $alarms alarms"
    ran
    echo "prove: Eva: headers of any bytes: 0 alarms"
    if [ "${SHORT:-}" != 1 ]; then
        eva . -DEVA_HASH || fail "Eva: hashes: $alarms alarms"
        ran
        echo "prove: Eva: hashes and CRC of any bytes, 180 lengths: 0 alarms"
    fi
    mkdir "$out/planted"
    sed '/idemi_recover_mend(/,/^}/s/bit < 8 \*/bit < 80 */' idem.h \
        > "$out/planted/idem.h"
    ! cmp -s idem.h "$out/planted/idem.h" || fail "Eva: nothing is changed"
    ! eva "$out/planted" "" || fail "Eva: no alarm with a fault"
    echo "prove: planted and found: a header read past its end: $alarms alarms"
    long shown "any calls, without storage" 150 87 no_storage idem.h
    long found "past the index's end" idemi_index_next 's/++at < /++at <= /' \
        no_storage "$out/planted.h"
    long shown "opening of cells of any bytes" 100 88 cells idem.h 2
    [ "${SHORT:-}" != 1 ] ||
        shown "opening of cells of any bytes, for one key" 95 85 cells idem.h 1
    long found "a record as long as it says" idemi_cells_fits \
        's/config->key_max &&/config->key_max + 1 \&\&/' \
        cells "$out/planted.h" 1
    shown "storage in a file, on any system" 35 95 stored idem.h
    long found "a path longer than there is room for" idem_file_open \
        's/sizeof unborn - sizeof suffix/sizeof unborn/' stored "$out/planted.h"
    found "a file that stays open" idemi_file_take 's/(void)close(.*/;/' \
        stored "$out/planted.h"
    shown "cells of any bytes are formatted" 30 85 formatted idem.h
    found "more than the buffer holds" idemi_recover_format \
        's/if (len > j->cell_size)/if (0)/' formatted "$out/planted.h"
    long shown "a ring of any bytes is formatted" 70 90 format idem.h
    long found "a piece that is no granules" idemi_recover_wipe \
        's/& ~(uint32_t)(m->prog_size - 1u)/- 1u/' format "$out/planted.h" \
        -eva-stop-at-nth-alarm 1
    shown "headers of a ring of any bytes" 50 90 headers idem.h
    long found "a distance round the ring" idemi_recover_header \
        's/p\[26\] >= count ||//' headers "$out/planted.h" \
        -eva-stop-at-nth-alarm 1
    long found "a window past its sector's end" idemi_journal_window \
        's/if (space > limit.*/if (0)/' headers "$out/planted.h" \
        -eva-stop-at-nth-alarm 1
    [ "${SHORT:-}" != 1 ] ||
        shown "records of a sector of any bytes, 12 limits" 40 90 \
            records idem.h 43
    long shown "records of a sector of any bytes, all limits" 40 90 \
        records idem.h 1
    found "more bytes than there are" idemi_recover_records \
        's/have = w.from + w.have - at;/have = w.from + w.have;/' \
        records "$out/planted.h" 43 -eva-stop-at-nth-alarm 1
    long shown "what any records of a ring do" 100 90 replay idem.h 0
    long found "a claim that is not counted" idemi_recover_claim \
        's/t->claimed += .*/;/' replay "$out/planted.h" 0 \
        -eva-stop-at-nth-alarm 1
    long shown "what any records of a ring do, in_ram" 100 90 replay idem.h 1
    long found "a response as long as its age" idemi_recover_outcome \
        's/r->body.response_len);/r->age);/' replay "$out/planted.h" 1 \
        -eva-stop-at-nth-alarm 1
    long shown "a key that comes again in a ring" 35 85 same idem.h
    long found "a record past its sector's end" idemi_recover_same \
        's/(t, at, other, len);/(t, at + 1, other, len);/' same "$out/planted.h"
    long shown "a key that comes into the index beside another" 45 85 \
        enter idem.h
    long found "a slot that there is not" idemi_index_slot 's/ - 1u;/;/' \
        enter "$out/planted.h" -eva-stop-at-nth-alarm 1
}

part_ring() {
    request="-DCALLS -DFROM=2 -DCALL="
    shown "what is read of a slot" 50 90 writer idem.h LOAD
    found "a claim that is none" idemi_journal_load \
        's/if (!(r->parts & IDEMI_HAS_CLAIM))/if (0)/' writer \
        "$out/planted.h" LOAD -eva-stop-at-nth-alarm 1
    shown "what is written to a ring" 65 92 writer idem.h APPEND
    found "a record past its sector's end" idemi_journal_append \
        's/if (len + j->leave > .*/if (0)/' writer "$out/planted.h" APPEND \
        -eva-stop-at-nth-alarm 1
    looked "what carries a slot to a new sector" 85 85 "-DCARRY -DFROM=0"
    blind "an address that is none" idemi_journal_leaving \
        's/if (at == IDEMI_NOWHERE)/if (0)/' "-DCARRY -DFROM=2"
    looked "what makes room for a record" 95 90 "-DTURN -DFROM=2"
    blind "an erase asked for that there is not" idemi_journal_erased \
        's/m->erasing ? m->erasing(m->ctx) : 0/m->erasing(m->ctx)/' \
        "-DTURN -DFROM=2"
    looked "idem_begin" 150 85 "${request}call_begin"
    blind "the address of what was not written" idemi_journal_claim \
        's/q->at = IDEMI_NOWHERE;/;/' "${request}call_begin"
    looked "idem_run behind it" 105 85 "${request}call_run"
    blind "an outcome for no claim" idemi_command_complete \
        's/if (!s)/if (0)/' "${request}call_run"
    looked "idem_find, idem_forget" 125 85 "${request}call_find"
    blind "the slot of a key that was not looked for" idem_forget \
        's/if (result != IDEM_OK)/if (0)/' "${request}call_find"
    looked "calls that name a claim" 120 85 \
        "-DCALLS -DCALL=call_claim -DFROM=0"
    blind "a claim's slot that there is not" idemi_command_named \
        's/claim->slot >= t->capacity ||//' "${request}call_claim"
    looked "the other calls" 130 80 "-DCALLS -DCALL=call_other -DFROM=0"
    blind "an order without end" idem_pending \
        's/if (slot == table->capacity)/if (0)/' \
        "-DCALLS -DCALL=call_other -DFROM=0"
}

part_in_ram() {
    for each in -DCARRY -DTURN "-DCALLS -DCALL=call_begin" \
        "-DCALLS -DCALL=call_run" "-DCALLS -DCALL=call_find" \
        "-DCALLS -DCALL=call_claim" "-DCALLS -DCALL=call_other"; do
        looked "in_ram: $each" 80 85 "$each -DFROM=2 -DIN_RAM=1"
    done
}

part_cells() {
    shown "a record is put into a cell" 62 90 recorded idem.h
    shown "which cell it goes to, and which is free then" 58 88 \
        queued idem.h PUT
    found "a cell too many given up" idemi_cells_give_up \
        's/j->count - t->stats.retired <= .*/0 ||/' queued \
        "$out/planted.h" PUT -eva-stop-at-nth-alarm 1
    shown "what comes before the first record of a boot" 66 90 \
        queued idem.h SETTLE
    found "more cells set aside than two" idemi_cells_clear \
        's/j->tentative && cell + 1 == j->copied/1/' queued \
        "$out/planted.h" SETTLE -eva-stop-at-nth-alarm 1
    shown "cells: idem_begin" 135 88 called_cells idem.h call_begin
    shown "cells: idem_run behind it" 95 88 called_cells idem.h call_run
    shown "cells: idem_find, idem_forget" 110 88 \
        called_cells idem.h call_find
    shown "cells: calls that name a claim" 105 88 \
        called_cells idem.h call_claim
    found "a response longer than what was claimed for it" \
        idemi_command_complete 's/out->response_len > body->response_len ||//' \
        called_cells "$out/planted.h" call_claim -eva-stop-at-nth-alarm 1
    shown "cells: the other calls" 120 85 called_cells idem.h call_other
}

# Functions that no part has run, and WP has not proved
part_left() {
    awk -f tests/defined.awk idem.h | cut -d ' ' -f 1 |
        sort -u > "$out/defined"
    sed -n 's/^function //p' tests/prove/contracts.acsl |
        cat - build/prove/*/ran | sort -u |
        comm -13 - "$out/defined" > "$out/left"
    echo "prove: of $(wc -l < "$out/defined") functions not run or proved:" \
        "$(wc -l < "$out/left"):" $(cat "$out/left")
}

[ "${SHORT:-}" != 1 ] || parts="wp opening"
why3 config detect > /dev/null 2>&1
for part in ${*:-$parts}; do
    out=$root/build/prove/$part
    rm -rf "$out"
    mkdir -p "$out"
    "part_$part"
done
