#!/bin/sh
# SPDX-License-Identifier: 0BSD
# Plants faults in copies of idem.h that small configurations do not show, and
# demands that extreme ones (extremes.c) find every one.
#     extremes_faults.sh [NAME]
# SHORT=1 takes a few.
set -eu

few="tail-of-a-byte end-of-16-bits erase-not-waited-for cell-address-of-16-bits"
. tests/faults.sh

seeds=360
told='BROKEN, '

# explore: extreme configurations with the header in $out
explore() {
    ${CC:-cc} -std=c99 -O1 -w $journal -I"$out" -Itests tests/extremes.c \
        -o "$out/extremes" > "$out/log" 2>&1 || return 2
    status=0
    timeout 600 "$out/extremes" 1 "$seeds" > "$out/log" 2>&1 || status=1
    sed -n 's/^seed/    seed/p' "$out/log" | cut -c 1-60
    return $status
}

seeds=24 sound

echo "-- numbers too short"
fault tail-of-a-byte idemi_recover_sector 's/(p\[28\] | p\[29\] << 8)/p[28]/'
fault token-of-32-bits idemi_journal_token 's/(uint64_t)//'
fault full-token-of-32-bits idemi_keys_token 's/return /&(uint32_t)/'
fault end-of-16-bits idemi_journal_header \
    's/store(p, end, 3)/store(p, end \& 0xFFFF, 3)/'
fault clock-of-32-bits idemi_recover_sector \
    's/s->time_high = .*/s->time_high = 0;/'

echo "-- retentions, erases, sequences"
fault retention-always-default idemi_keys_terms \
    's/known\[i\] == retention_ms/1/'
fault erase-not-waited-for idemi_journal_erased \
    's/result == 1 && wait/0/
     s/if (result == 1)/if (result == 1 \&\& !wait)/
     s/idemi_storage_result(t, result)/IDEM_OK/'
fault sequences-used-up idemi_journal_sound \
    's/UINT32_MAX - t->journal->sequence > 2 \* sectors/1/'

echo "-- cells"
journal=-DIDEM_CELLS
seeds=24 sound
fault cell-size-of-16-bits idemi_public_cell 's/(idemi_size)/(uint16_t)/'
fault cell-address-of-16-bits idemi_cells_at \
    's/cell \* t->journal->cell_size/(uint16_t)(&)/'
fault cell-numbers-too-short idemi_public_wide 's/wide < 3/wide < 2/'

counted
