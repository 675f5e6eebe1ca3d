// SPDX-License-Identifier: 0BSD
//
// Any bytes are looked through for records, from any offset in a sector on, and
// for whether they are blank.
// That words and bytes are taken from inside the buffer is assumed, and shown
// by WP (contracts.acsl): here the cursor moves as far as it likes in that.
#include "journal.h"
#include "bytes.h"

static void advance(idemi_cursor *p, uint32_t len)
{
    uint32_t at = (uint32_t)(p->at - table.buffer) + below(len + 1);
    uint32_t end = (uint32_t)(p->end - table.buffer);

    if (at > end)
        at = end;
    p->at = table.buffer + at;
    p->bad = (uint8_t)below(2);
}

static void idemi_cursor_words(idemi_cursor *p, uint32_t *words, unsigned count)
{
    Frama_C_make_unknown((char *)words, 4 * count);
    advance(p, 4 * count);
}

static const unsigned char *idemi_cursor_bytes(idemi_cursor *p,
                                               const unsigned char *bytes,
                                               uint32_t len)
{
    const unsigned char *at = p->at;

    (void)bytes;
    advance(p, len);
    return at;
}

/* The key's bytes are those that the cursor has met. */
static void idemi_index_identify(const idem_config *of, const idem_slot *s,
                                 const unsigned char *where, idemi_id *id)
{
    (void)of, (void)s, (void)where;
    id->hash = (idem_short)any();
}

/* Any bytes may be another journal's header; bytes.c shows how it is read.  The
   window stays: else each of them would part the states. */
static int idemi_opening_is_foreign(idem_table *t, uint32_t sector, uint32_t at)
{
    (void)sector, (void)at;
    Frama_C_make_unknown((char *)t->buffer, t->buffer_size);
    return (int)below(2);
}

/* What opening.c and replay.c take for granted */
static void look(uint32_t at)
{
    idemi_found found;
    const idemi_record *r = &found.r;
    uint32_t len;

    idemi_reading_reset(&table, &found);
    len = idemi_reading_record(&table, any(), at, &found.r);
    //@ assert window: table.journal->from.window <= at < table.journal->window_end;
    if (!len)
        return;
    //@ assert length: len == GRANULE || len == 2 * GRANULE;
    //@ assert end: at % GRANULE != 0 || len <= SECTOR - at;
    if (!r->fits)
        return;
    //@ assert slot: r->slot <= CAPACITY;
    //@ assert state: r->state_len <= STATE_MAX;
    if (r->flags & IDEMI_FINISHED) {
        //@ assert response: r->of.s->response_len <= RESPONSE_MAX;
    }
    if (r->flags & IDEMI_HAS_KEY) {
        //@ assert scope: r->of.s->scope_len <= KEY_MAX;
    }
    if (r->flags & (IDEMI_HAS_KEY | IDEMI_STATUS)) {
        //@ assert named: r->slot != 0;
    }
}

/* The same, of a key: from a sum Eva learns nothing of its parts, so each
   length is tried by itself. */
static void look_at_keys(void)
{
    idemi_found found;
    uint32_t len;
    int possible;

    idemi_reading_reset(&table, &found);
    //@ loop unroll 256;
    for (len = KEY_MAX + 1; len <= UINT8_MAX; len++) {
        ANY(found.data.slot);
        found.data.slot.key_len = (uint8_t)len;
        found.r.flags = (uint16_t)(IDEMI_HAS_KEY | below(IDEMI_HAS_KEY));
        found.r.slot = any();
        possible = idemi_reading_fits(&table, &found.r);
        //@ assert key: !possible;
    }
}

/* Eva loses an offset that may be one of two.  So both places at which records
   are looked for after the relocated ones are tried by themselves, for each end
   of those; and the relocated ones where only two fit. */
static void look_for_records(void)
{
    uint32_t end;

    //@ loop unroll SECTOR;
    for (end = 0; end <= SECTOR; end += STEP) {
        idemi_reading_has_record(&table, any(), end, end, any());
        idemi_reading_has_record(&table, any(), IDEMI_AFTER_COMMIT, end, any());
    }
    idemi_reading_has_record(&table, any(), SECTOR - 2 * GRANULE,
                             IDEMI_OFFSET, any());
}

int main(void)
{
    uint32_t at;
    int result;

    configure_journal();
    if (idemi_public_prepare(&table, &config, memory, sizeof memory,
                             IDEM_BUILD) != IDEM_OK)
        return 1;
    Frama_C_make_unknown((char *)table.slots, CAPACITY * table.stride);
    ANY(table.journal->defaults);
    look_at_keys();
    //@ loop unroll SECTOR;
    for (at = 0; at < SECTOR; at += STEP)
        look(at);
    result = idemi_opening_check_blank(&table);
    look_for_records();
    return result;
}
