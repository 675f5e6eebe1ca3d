// SPDX-License-Identifier: 0BSD
//
// Any records change a table, in any order and number, with any restarts among
// them; then it begins to work.  What may be a record is assumed, and shown by
// records.c; that its bytes are in the buffer, by WP (contracts.acsl).
#include "journal.h"

static idem_slot parsed;
static idemi_record r;

static const unsigned char *any_bytes(uint32_t len)
{
    return table.buffer + below(table.buffer_size - len + 1);
}

static void any_record(void)
{
    Frama_C_make_unknown((char *)table.buffer, table.buffer_size);
    ANY(parsed);
    parsed.scope_len = (uint8_t)below(KEY_MAX + 1);
    parsed.key_len = (uint8_t)below(KEY_MAX + 1);
    r.of.s = &parsed;
    idemi_index_identify(&config, &parsed, any_bytes(2 * KEY_MAX), &r.id);
    r.response = any_bytes(RESPONSE_MAX);
    r.state = any_bytes(STATE_MAX);
    r.state_len = (uint16_t)below(STATE_MAX + 1);
    r.flags = (uint16_t)(below(256) | below(2) * IDEMI_RELOCATED);
    r.time = any();
    r.age = any();
}

static void replay(uint32_t slot, int finished)
{
    any_record();
    r.slot = slot;
    if (finished)
        parsed.response_len = (uint16_t)below(RESPONSE_MAX + 1);
    else
        r.flags &= (uint16_t)~IDEMI_FINISHED;
    table.journal->last_item = idemi_opening_apply(&table, &r, any());
}

int main(void)
{
    configure_journal();
    if (idemi_public_prepare(&table, &config, memory, sizeof memory,
                             IDEM_BUILD) != IDEM_OK)
        return 1;
    table.journal->last_item = IDEMI_NONE;
    table.clock = table.swept = any();
    while (below(2))
        switch (below(7)) {
        case 0: replay(0, (int)below(2)); break;
        case 1: replay(1, 0); break;
        case 2: replay(1, 1); break;
        case 3: replay(2, 0); break;
        case 4: replay(2, 1); break;
        case 5:
            idemi_keys_interrupt(&table,
                                 idemi_slot_at(&table, below(CAPACITY)));
            break;
        default:
            idemi_opening_follow_time(&table, any(), (int)below(2));
            break;
        }
    idemi_opening_finish(&table, any());
    return 0;
}
