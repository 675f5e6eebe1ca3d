// SPDX-License-Identifier: 0BSD
//
// Any bytes are read, at once or one by one: a header's, and as many as the
// buffer has room for, at the end of the storage.  Where an opening looks for
// another journal's header any bytes may be one.
#include "journal.h"

static void read_last(uint32_t len)
{
    idemi_reading_read(&table, SECTORS * SECTOR - len, table.buffer, len);
}

int main(void)
{
    uint32_t at;

    configure_journal();
    if (idemi_public_prepare(&table, &config, memory, sizeof memory,
                             IDEM_BUILD) != IDEM_OK)
        return 1;
    read_last(1);
    read_last(IDEMI_HEADER);
    read_last(table.buffer_size);
    //@ loop unroll SECTOR;
    for (at = 0; at < SECTOR; at += SECTOR - 1)
        idemi_opening_is_foreign(&table, 1, at);
    return idemi_opening_is_foreign(&table, 3, SECTOR - 1);
}
