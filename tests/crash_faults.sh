#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Plants faults in copies of idem.h, one in each, and demands that the power-cut
# explorer (crash.c) finds every one.  A fault is what sed does to one function;
# if it changes nothing, or the explorer finds nothing, that is a failure.
#     crash_faults.sh [NAME]
# SHORT=1 takes a few, and without a fault one medium.
set -eu

few="no-crc trimmed-sectors-live tokens-again cell-no-crc cell-tokens-again"
. tests/faults.sh

extent=--short
medium=
told='violation: '

# explore: the explorer with the header in $out
explore() {
    ${CC:-cc} -std=c99 -Og -w $journal -I"$out" -Itests tests/crash.c \
        -o "$out/crash" > "$out/log" 2>&1 || return 2
    "$out/crash" $extent $medium --first > "$out/log" 2>&1
}

# sound_on MEDIUM: without a fault; in the short form on that medium alone
sound_on() {
    [ "${SHORT:-}" != 1 ] || medium="--geometry $1"
    sound
    medium=
}

sound_on nor8

echo "-- records"
fault no-crc idemi_record_decode '/idemi_crc_update/{
        N
        s/idemi_crc_update.*load32(p + len)/0/
        }'
fault no-sequence-in-crc idemi_record_seed \
    's/idemi_journal_sector(t, sector)->sequence/0/'
fault no-offset-in-crc idemi_record_seed \
    's/\^$/+/
     s/~idemi_storage_offset(t, at)/0/'
fault unbound-outcome idemi_recover_apply 's/!idemi_record_mine(t, at)/0/'
fault state-left-out idemi_journal_outcome \
    's/r->parts |= IDEMI_HAS_STATE;/;/'
fault not-synced idemi_journal_commit \
    's/durability == IDEM_EACH/durability > IDEM_BATCH/'

fault granules-read-askew idemi_storage_salvage 's/step = granule - .*/step = granule;/'

echo "-- carrying"
fault state-not-carried idemi_journal_clean \
    's/if (idemi_journal_leaving(t, j->state_at))/if (0)/'
fault debt-not-carried idemi_journal_describe \
    's/more |= IDEMI_MORE_CONFIRM;/;/'
fault attempts-not-carried idemi_journal_describe \
    's/idemi_journal_record(/r->attempts = 1, &/'
fault age-not-carried idemi_journal_describe 's/r->age = t->clock.*/;/'

echo "-- turning"
fault one-dead-sector '[a-z_]*' '
        s/\(idemi_journal_gap(t, j->clean) <\) want/\1 1/
        s/idemi_journal_gap(t, j->clean) >= 2/1/'
fault not-erased idemi_journal_attempt \
    's/!j->spare && j->blank != IDEMI_BLANK/!j->spare \&\& !j->blank/'
fault header-not-synced idemi_journal_header \
    's/result == IDEM_OK ? idemi_storage_sync(t) : result/result/'
fault one-header idemi_recover_pair 's/idemi_recover_similar(/(/'
fault not-confirmed idemi_journal_confirm \
    's/if (newest == IDEMI_NOWHERE)/if (1)/'
fault relied-upon idemi_journal_unconfirmed \
    's/if (j->newest == IDEMI_NOWHERE ||/if (1 ||/'

echo "-- opening"
fault appended-behind-doubt idemi_recover_open 's/j->clean = j->tail;/&\
    j->turned = 1;\
    j->at = j->newest == IDEMI_NOWHERE ? idemi_journal_front(t)\
        : idemi_storage_offset(t, j->newest) +\
          idemi_storage_granules(t, j->newest_len);\
    j->end = j->at;/'
fault trimmed-sectors-live idemi_recover_chain \
    's/uint32_t left = .*/uint32_t left = t->config->storage->sector_count - 1;/'
fault end-not-believed idemi_recover_replay 's/ && end < limit/ \&\& !end/'
fault tokens-again idemi_recover_open 's/t->token = .*/t->token = 0;/'
fault claims-dropped idemi_recover_cut \
    's/s->state = IDEMI_IN_PROGRESS | IDEMI_CUT;/idemi_keys_remove(t, slot);\
        continue;/'
fault newest-read-again idemi_journal_fetch 's/at == j->newest/0/'

echo "-- cells"
journal=-DIDEM_CELLS
sound_on eeprom
fault cell-no-crc idemi_cells_decode '/idemi_crc_update/{
        N
        s/idemi_crc_update.*load32(p)/1/
        }'
fault cell-not-synced idemi_cells_program \
    's/result = idemi_storage_sync(t);/;/'
fault cell-not-confirmed idemi_cells_settle \
    's/result == IDEM_OK \&\& j->sequence/0/'
fault cell-tentative-last idemi_cells_confirm \
    's/result = idemi_cells_put(t, slot, &c);$/;/'
fault cell-relied-upon idemi_journal_unconfirmed 's/if (j->settled ||/if (1 ||/'
fault cell-replaced-wiped idemi_cells_clear \
    's/(!j->whole && cell + 1 == j->replaced)/0/'
fault cell-replaced-first idemi_cells_put 's/idemi_cells_push(t, own - 1);/{\
        idemi_cells_push(t, own - 1);\
        while (*idemi_cells_free(t, 0) != own - 1)\
            idemi_cells_push(t, idemi_cells_pop(t));\
    }/'
fault cell-older-kept idemi_cells_take \
    's/if (f\[IDEMI_CELL_SEQUENCE\] + 1 == j->sequence)/if (1)/'
fault cell-tokens-again '[a-z_]*' 's/t->token = j->sequence;/t->token = 0;/
        s/t->token = t->journal->sequence;/t->token++;/'
fault cell-cut-untold idemi_cells_tell 's/result = idemi_cells_put.*/;/'
fault cell-claims-dropped idemi_cells_enlist \
    's/s->state = IDEMI_IN_PROGRESS.*/return s->state = 0;/'
fault cell-state-not-carried idemi_cells_empty \
    's/= t->state_len/= 0/'
fault cell-debt-not-carried idemi_cells_describe \
    's/s->state & IDEMI_CELL_KEPT/s->state \& (IDEMI_STATUS | IDEMI_CUT)/'
fault cell-age-not-carried idemi_cells_describe 's/= t->clock - s->time/= 0/'
fault cell-census-old idemi_cells_program 's/j->census = census;/;/'

# Takes a cell that reads as before at one boot, and as meant at a later one.
extent="--geometry words --workload ring --draws 100"
fault cell-not-wiped idemi_cells_clear \
    's/result = idemi_cells_wipe(t, cell);/;/'

counted
