// SPDX-License-Identifier: 0BSD
//
// An opening of any bytes: which headers, sectors and records it goes through.
// What it may find as a record is assumed here, and shown by records.c; what a
// record changes in the table is replay.c's.
#include "journal.h"
#include "bytes.h"

static uint32_t idemi_reading_record(idem_table *t, uint32_t sequence,
                                     uint32_t at, idemi_record *r)
{
    (void)sequence;
    //@ assert in_a_sector: FRONT <= at < SECTOR && at % GRANULE == 0;
    //@ loop unroll 8;
    for (met = FRONT; met != at; met += GRANULE)
        ;
    t->journal->from.window = met - below(GRANULE);
    t->journal->window_end = met + 1 + below(GRANULE);
    Frama_C_make_unknown((char *)t->buffer, t->buffer_size);
    r->flags = (uint16_t)any();
    r->slot = any();
    r->time = any();
    met += below(3);
    if (met % GRANULE == 0 || met == SECTOR - GRANULE + 2)
        return 0;
    r->slot = below(CAPACITY + 1);
    return met % GRANULE * GRANULE;
}

static unsigned idemi_opening_apply(idem_table *t, idemi_record *r,
                                    uint32_t sequence)
{
    (void)r, (void)sequence;
    return below(t->capacity + 1);
}

static void read_on(const idem_table *t)
{
    t->journal->from.window = any();
    t->journal->window_end = any();
    Frama_C_make_unknown((char *)t->buffer, t->buffer_size);
}

/* Whatever offset a header names as the first */
static int idemi_reading_has_record(idem_table *t, uint32_t sequence,
                                    uint32_t at, uint32_t relocated_end,
                                    unsigned which)
{
    (void)sequence, (void)at, (void)relocated_end, (void)which;
    read_on(t);
    return (int)below(2);
}

static int idemi_opening_check_blank(idem_table *t)
{
    read_on(t);
    return below(2) ? IDEM_OK : IDEM_E_FORMAT;
}

int main(void)
{
    int result;

    configure_journal();
    if (below(2))
        return idem_open(&table, &config, memory, sizeof memory, any());
    result = idemi_public_prepare(&table, &config, memory, sizeof memory,
                                  IDEM_BUILD);
    return result == IDEM_OK ? idemi_opening_format(&table) : result;
}
