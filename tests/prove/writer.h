/* SPDX-License-Identifier: 0BSD */
/* What the calls on a journal in a ring do to the storage, with one key
   (calls.c with RING and WRITER), in two parts, each from any state of the
   journal that `ready_journal` allows, in the midst of a call too:

       APPEND    a record of any parts is put together and programmed, wherever
                 the head ends; and a header.  Ends with `ready_journal`.
       LOAD      what the storage has of a slot is read, whatever it gives;
                 asserted is what is known then.

   The calls between them are called.h's.  Believed is, and asserted nowhere,
   that a slot's records begin in front of where those of their sector end
   (LOAD). */

static uint32_t any_offset(void)
{
    return GRANULE * below(WHOLE);
}

/* Where a record may be. */
static uint32_t any_address(void)
{
    return below(SECTORS) << SHIFT | any_offset();
}

/* Any record, whatever is not known of it. */
static void any_record(idem_record *r)
{
    r->parts = any_byte();
    r->more = any_byte();
    r->attempts = any_byte();
    r->state_len = (uint16_t)any();
    r->body.retention = any();
    r->body.token = any();
    r->body.fingerprint[0] = any();
    r->body.fingerprint[1] = any();
    r->body.code = (int32_t)any();
    r->body.response_len = (uint16_t)any();
    r->body.scope_len = any_byte();
    r->body.key_len = any_byte();
    r->time = any();
    r->time_high = any();
    r->slot = any();
    r->age = any();
    r->state_at = any();
    r->id_at = any();
    r->response_at = any();
}

static void any_sectors(idem_table *t)
{
    unsigned i;

    //@ loop unroll SECTORS;
    for (i = 0; i < SECTORS; i++) {
        idem_sector *s = idemi_journal_sector(t, i);
        any_sector(s);
        s->tail = (uint16_t)any();
        s->sum = any_byte();
        s->link = any_byte();
        s->lost = any_byte();
    }
}

static void any_own(idem_journal *j)
{
    unsigned i;

    j->blank = (uint8_t)below(3);
    j->filling = 0;
    j->sealing = any_bit();
    j->worn = any_bit();
    j->turned = any_bit();
    j->failed = any_bit();
    j->broken = any_bit();
    j->stray = any_bit();
    j->had_erase = any_bit();
    j->had_turn = any_bit();
    j->in_doubt = any_bit();
    j->synced = any_bit();
    j->outcome_loaded = any_bit();
    j->clock_high = any();
    j->opened = any();
    j->opened_high = any();
    j->sequence = any();
    j->head = below(SECTORS);
    j->tail = below(SECTORS);
    j->kept = below(SECTORS);
    j->clean = below(SECTORS);
    j->at = below(2) ? FRONT + GRANULE * below(WHOLE - 1) : 0;
    j->end = any();
    j->spare = any();
    j->erasing = any();
    j->state_at = below(2) ? any_address() : IDEMI_NOWHERE;
    j->newest = below(2) ? any_address() : IDEMI_NOWHERE;
    j->newest_slot = below(2) ? below(CAPACITY) : IDEMI_NOWHERE;
    j->newest_len = below(IN_SIZE / 2 + 1);
    j->doubt = any();
    j->leave = 0;
    j->loaded = below(2) ? below(CAPACITY) : IDEMI_NOWHERE;
    j->check = any();
    j->unread = any();
    any_record(&j->record);
    //@ loop unroll IDEMI_RETENTIONS;
    for (i = 0; i < IDEMI_RETENTIONS; i++)
        j->retentions[i] = any();
}

/* Any state of a journal, and any clock. */
static void any_journal(idem_table *t)
{
    any_sectors(t);
    any_own(t->journal);
    ring_any(0, idemi_journal_out(t), IN_SIZE);
    ring_any(0, t->in, IN_SIZE);
    t->clock = any();
    t->storage_error = (int)any();
}

/* What is known of a record that was read, by the parts that it has; the rest
   is as before. */
static int fetched_or_not(idem_table *t, unsigned slot, uint32_t at,
                          uint32_t where)
{
    idem_record *r = &t->journal->record;
    unsigned parts = below(4);

    //@ assert slot < CAPACITY && IS_ADDRESS(at);
    //@ assert where == 0 || where == IN_SIZE / 2;
    (void)at, (void)where;
    t->storage_error = (int)any();
    ring_any(0, t->in, IN_SIZE);
    eva_record = 0;
    if (below(2)) {
        any_record(r);
        return IDEM_E_STORAGE;
    }
    //@ split parts;
    eva_record = 1 + parts + (where ? 4 : 0);
    r->parts = (uint8_t)(4 * below(64) + parts);
    r->more = any_byte();
    r->time = any();
    r->time_high = any();
    r->slot = slot;
    r->age = any();
    r->body.token = any();
    r->state_len = (uint16_t)any();
    r->state_at = any();
    if (parts & IDEMI_HAS_CLAIM) {
        any_body(&r->body);
        r->attempts = any_byte();
        r->id_at = below(IN_SIZE - KEY_MAX);
    }
    if (parts & IDEMI_HAS_OUTCOME) {
        r->body.response_len = (uint16_t)below(RESPONSE_MAX + 1);
        r->response_at = below(IN_SIZE - RESPONSE_MAX);
        r->body.code = (int32_t)any();
    }
    return IDEM_OK;
}

#ifdef APPEND
/* Any record that a caller puts together, of parts anywhere; or a header. */
static void part(void)
{
    idem_record *r = &table.journal->record;
    idemi_parts from = { NULL, NULL, NULL, NULL };
    unsigned parts = below(16);
    uint32_t at;

    any_journal(&table);
    idemi_slot_place(&table, 0)->claim = any_address();
    any_bytes();
    //@ split table.journal->at;
    if (below(2)) {
        idemi_journal_header(&table, below(2), any(), any(), any());
        ready_journal(&table);
        return;
    }
    //@ split parts;
    r->parts = (uint8_t)parts;
    r->more = (uint8_t)below(16);
    r->slot = below(CAPACITY);
    if (parts & IDEMI_HAS_CLAIM)
        any_body(&r->body);
    r->body.response_len = (uint16_t)any();
    if (parts & IDEMI_HAS_OUTCOME)
        r->body.response_len = (uint16_t)below(RESPONSE_MAX + 1);
    if (parts & IDEMI_HAS_STATE)
        r->state_len = (uint16_t)below(STATE_MAX + 1);
    from.scope = from.key = from.response = from.state = bytes;
    table.journal->leave = below(SECTOR + 1);
    idemi_journal_append(&table, &from, &at);
    table.journal->leave = 0;
    ready_journal(&table);
}
#endif

#ifdef LOAD
/* What a claim says, and an outcome. */
static void read_well(const idem_record *r, unsigned parts)
{
    if (parts & IDEMI_HAS_CLAIM) {
        //@ assert r->body.scope_len < KEY_MAX;
        //@ assert 1 <= r->body.key_len <= KEY_MAX;
        //@ assert r->id_at + KEY_MAX < IN_SIZE;
    }
    if (parts) {
        //@ assert r->body.response_len <= RESPONSE_MAX;
    }
    if (parts & IDEMI_HAS_OUTCOME) {
        //@ assert r->response_at + RESPONSE_MAX < IN_SIZE;
    }
    (void)r;
}

/* One record of a slot, in front of where those of its sector end; or both of
   them. */
static void part(void)
{
    idem_journal *j = table.journal;
    idem_slot *s = idemi_slot_at(&table, 0);
    idem_place *place = idemi_slot_place(&table, 0);
    uint32_t offset = any_offset(), i;
    unsigned state = below(sizeof eva_states), outcome = below(2);

    any_journal(&table);
    place->claim = any_address();
    place->outcome = any_address();
    if (below(2)) {
        //@ split offset;
        j->end = Frama_C_unsigned_int_interval(offset + 1, SECTOR);
        //@ loop unroll SECTORS;
        for (i = 0; i < SECTORS; i++)
            idemi_journal_sector(&table, i)->end =
                Frama_C_unsigned_int_interval(offset + 1, SECTOR);
        if (idemi_journal_fetch(&table, 0, below(SECTORS) << SHIFT | offset,
                                below(2) * j->record_max) == IDEM_OK)
            read_well(&j->record, (eva_record - 1) & 3);
        return;
    }
    //@ split state;
    //@ split outcome;
    s->state = eva_states[state];
    j->loaded = IDEMI_NOWHERE;
    if (s->state & IDEMI_FINISHED || !outcome) {
        if (idemi_journal_load(&table, 0, (int)outcome) != IDEM_OK)
            return;
        //@ split j->record.body.key_len == 0;
        if (!(s->state & IDEMI_STALE) || j->record.body.key_len)
            read_well(&j->record, IDEMI_HAS_CLAIM | (outcome ? 2 : 0));
    }
}
#endif
