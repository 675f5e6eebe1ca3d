/* SPDX-License-Identifier: 0BSD */
/* The opening of a ring of sectors that hold any bytes (calls.c with RING), in
 * five parts, for all at once is too much for Eva.  Where one ends that another
 * goes on from, it asserts what the other sets out from:
 *
 *     HEADERS   all headers, and the way back from the head; or all of the
 *               opening, where there is no journal.  Ends with `promised`.
 *     RECORDS   the records of one sector, taken apart one after the other,
 *               through the reading buffer; up to each limit, one by one.  What
 *               they do is left out; what it is given is asserted.
 *     REPLAY    what records do, and the opening from the headers to its end:
 *               from any headers that keep the promise, any records in any
 *               order and number, anywhere in the buffer.
 *     SAME      whether a slot has a key, for REPLAY, which takes any answer.
 *     ENTER     how a key comes into the index where another is, for REPLAY has
 *               one slot only.  Set out from is what T1, T2 and O1 say.
 */
static int promised(idem_table *t)
{
    const idem_journal *j = t->journal;
    unsigned i;

    //@ loop unroll SECTORS;
    for (i = 0; i < SECTORS; i++) {
        const idem_sector *s = idemi_journal_sector(t, i);
        //@ assert s->link < SECTORS && s->tail < SECTORS;
        //@ assert s->sum == 0;
        (void)s;
    }
    //@ assert j->head < SECTORS && j->tail < SECTORS && j->kept < SECTORS;
    //@ assert j->attempt == IDEMI_NOWHERE || j->attempt < SECTORS;
    //@ assert j->loaded == IDEMI_NOWHERE;
    //@ assert j->doubt <= 0xFFFF && j->opened_high <= 0xFFFF;
    //@ assert j->known_sum <= 63;
    //@ assert j->record.id_at <= IN_SIZE;
    //@ assert j->in_size == IN_SIZE && j->record_max == IN_SIZE / 2;
    //@ assert j->shift == 9;
    (void)j;
    return 1;
}

#ifdef HEADERS
/* The opening as far as the records, with any check of the secret; or all of
   it, where there is no journal.  What is set before is as idemi_recover_open
   sets it. */
static void part(void)
{
    int seen;

    table.journal->check = any();
    table.journal->attempt = IDEMI_NOWHERE;
    if (idemi_recover_headers(&table, &seen) && promised(&table))
        idemi_recover_chain(&table);
    else
        idemi_recover_blank(&table, seen);
}
#else
/* Any record, as far as anything looks at one before it is taken apart. */
static void any_record(idem_record *r)
{
    r->parts = any_byte();
    r->more = any_byte();
    r->id_at = below(IN_SIZE + 1);
    r->body.scope_len = any_byte();
    r->body.key_len = any_byte();
    r->body.response_len = (uint16_t)any();
    r->body.retention = any();
    r->age = any();
}

/* Any headers that keep the promise, and what looking for them leaves. */
static int any_headers(idem_table *t, int *seen)
{
    idem_journal *j = t->journal;
    unsigned i;

    (void)seen;
    //@ loop unroll SECTORS;
    for (i = 0; i < SECTORS; i++) {
        idem_sector *s = idemi_journal_sector(t, i);
        any_sector(s);
        s->tail = (uint16_t)below(SECTORS);
        s->link = (uint8_t)below(SECTORS);
    }
    j->check = any();
    j->sequence = any();
    j->doubt = below(0x10000);
    j->own_end = any();
    j->opened = any();
    j->opened_high = below(0x10000);
    j->attempt = below(2) ? below(SECTORS) : IDEMI_NOWHERE;
    j->loaded = IDEMI_NOWHERE;
    j->head = below(SECTORS);
    j->tail = below(SECTORS);
    j->kept = below(SECTORS);
    j->known = any_byte();
    j->known_sum = (uint8_t)below(64);
    t->storage_error = (int)any();
    any_record(&j->record);
    ring_any(0, t->in, IN_SIZE);
    return promised(t);
}
#endif

#ifdef RECORDS
/* Taken apart is what stands at a whole granule of the buffer, and of the
   storage. */
static uint32_t given(idem_table *t, uint32_t at, const unsigned char *start,
                      const unsigned char *p, uint32_t have)
{
    //@ assert start == t->in && start <= p;
    //@ assert (p - start) % GRANULE == 0;
    //@ assert p - start + have <= IN_SIZE;
    //@ assert at < SIZE && at % GRANULE == 0;
    return decoded(t, at, start, p, have);
}

static void enter_later(idem_table *t, idemi_late *late)
{
    (void)t;
    late->slot = IDEMI_NONE;
}

static void apply_later(idem_table *t, uint32_t at, idemi_late *late)
{
    //@ assert at < SIZE && at % GRANULE == 0;
    (void)t, (void)at;
    late->slot = below(2) ? below(CAPACITY) : IDEMI_NONE;
    late->id_at = any();
    late->scope_len = any_byte();
    late->key_len = any_byte();
}

static void newest_later(idem_table *t, uint32_t at, const unsigned char *p,
                         uint32_t len)
{
    //@ assert p - t->in + len <= IN_SIZE;
    //@ assert at < SIZE && at % GRANULE == 0;
    (void)t, (void)at, (void)p, (void)len;
}

/* Each limit, for where the buffer ends depends on it; or each so many. */
static void part(void)
{
    uint32_t limit;
    int seen;

    any_headers(&table, &seen);
    //@ loop unroll SECTOR + 1;
    for (limit = 0; limit <= SECTOR; limit += STEP)
        idemi_recover_records(&table, below(SECTORS), limit, (int)below(2));
}
#endif

#ifdef SAME
/* A slot with any claim, a late key anywhere, any record before. */
static void part(void)
{
    unsigned slot = below(CAPACITY);
    idemi_late late;
    int seen;

    any_headers(&table, &seen);
    idemi_slot_place(&table, slot)->claim = GRANULE * below(SIZE / GRANULE);
    late.slot = any();
    late.id_at = below(IN_SIZE - KEY_MAX);
    late.scope_len = (uint8_t)below(KEY_MAX);
    late.key_len = (uint8_t)below(KEY_MAX + 1);
    idemi_recover_same(&table, slot, &late);
}
#endif

#if defined REPLAY || defined ENTER
/* What SAME sets out from.  Any answer. */
static int same_or_not(idem_table *t, unsigned slot, const idemi_late *key)
{
    const idem_journal *j = t->journal;
    uint32_t claim = idemi_slot_place(t, slot)->claim;

    //@ assert slot < CAPACITY && claim < SIZE && claim % GRANULE == 0;
    //@ assert key->scope_len < KEY_MAX && key->key_len <= KEY_MAX;
    //@ assert key->id_at + KEY_MAX < IN_SIZE;
    //@ assert j->record.id_at <= IN_SIZE;
    (void)claim, (void)key, (void)j;
    ring_any(0, idemi_journal_out(t), t->journal->record_max);
    return (int)below(2);
}
#endif

#ifdef ENTER
/* One of two slots is to come into the index; the other is there, anywhere, and
   in any state that an opening gives. */
static void part(void)
{
    static const uint8_t states[] = {
        IDEM_COMPLETED, IDEM_FAILED, IDEM_COMPLETED | IDEMI_UNDELIVERED,
        IDEM_FAILED | IDEMI_UNDELIVERED, IDEMI_IN_PROGRESS | IDEMI_ENDLESS,
        IDEMI_IN_PROGRESS | IDEMI_CUT,
        IDEMI_IN_PROGRESS | IDEMI_CUT | IDEMI_STALE };
    unsigned slot = below(CAPACITY), at = below(IDEMI_WORDS * CAPACITY);
    unsigned state = below(sizeof states);
    idemi_late late;
    idem_slot *s;
    int seen;

    any_headers(&table, &seen);
    //@ split slot;
    //@ split at;
    //@ split state;
    late.slot = slot;
    late.id_at = below(IN_SIZE - KEY_MAX);
    late.scope_len = (uint8_t)below(KEY_MAX);
    late.key_len = (uint8_t)below(KEY_MAX + 1);
    idemi_slot_at(&table, slot)->hash = any();
    idemi_slot_at(&table, slot)->state = IDEMI_IN_PROGRESS | IDEMI_ENDLESS;
    slot = 1 - slot;
    s = idemi_slot_at(&table, slot);
    s->hash = any();
    s->time = any();
    s->terms = (uint8_t)below(IDEMI_RETENTIONS);
    s->state = states[state];
    idemi_slot_place(&table, slot)->claim = GRANULE * below(SIZE / GRANULE);
    table.index[at].slot = slot + 1;
    table.index[at].past = below(8);
    table.index[at].tag = s->hash % IDEMI_WORD_TAGS;
    if (s->state & IDEMI_FINISHED)
        idemi_order_append(&table, slot);
    table.clock = any();
    table.free = (idem_number)below(CAPACITY + 1);
    idemi_recover_enter(&table, &late);
    //@ assert late.slot == IDEMI_NONE;
}
#endif

#ifdef REPLAY
/* The key that is to come into the index; what idemi_recover_records has. */
static idemi_late late = { IDEMI_NONE, 0, 0, 0 };

/* What the slots and the index are. */
static void eva_slots_of(const idem_table *t)
{
    unsigned i;

    eva_slots = eva_index = 0;
    eva_late = late.slot + 1;
    //@ loop unroll CAPACITY;
    for (i = 0; i < CAPACITY; i++) {
        const idem_slot *s = idemi_slot_at(t, i);
        eva_slots <<= 2;
        if (s->state & IDEMI_ENDLESS)
            eva_slots |= 1;
        else if (s->state)
            eva_slots |= 2;
    }
    //@ loop unroll 3 * CAPACITY;
    for (i = 0; i < IDEMI_WORDS * CAPACITY; i++) {
        //@ split t->index[i].slot;
        eva_index = eva_index * (CAPACITY + 1) + t->index[i].slot;
    }
}

/* One record, at a whole granule of a sector and of the buffer. */
static void one_record(idem_table *t, uint32_t sector, int head)
{
    uint32_t at = GRANULE * below(SECTOR / GRANULE);
    uint32_t from = GRANULE * below(IN_SIZE / GRANULE + 1), len;

    //@ split from;
    at = idemi_storage_place(t, sector, at);
    len = idemi_record_decode(t, at, t->in, t->in + from, IN_SIZE - from);
    if (!len)
        return;
    if (head)
        idemi_recover_newest(t, at, t->in + from, len);
    //@ merge from;
    idemi_recover_apply(t, at, &late);
}

/* One of the things that come about when records are looked at. */
static void one_step(idem_table *t, uint32_t sector, int head)
{
    idem_sector *s = idemi_journal_sector(t, sector);

    switch (below(5)) {
    case 0: idemi_recover_time(t, s, 0); break;
    case 1: idemi_recover_cut(t); break;
    case 2: idemi_recover_enter(t, &late); break;
    case 3: ring_any(0, t->in, IN_SIZE); break;
    default: one_record(t, sector, head); break;
    }
    //@ assert t->journal->in_size == IN_SIZE;
    //@ assert t->journal->record_max == IN_SIZE / 2;
    //@ assert t->journal->shift == 9;
    eva_record = 0;
    eva_slots_of(t);
}

/* Instead of the records of a sector: any steps.  Those of the head are all
   here.  Of any other it is one, but the sector may come again, any number of
   times, for its link is any then. */
static uint32_t any_records(idem_table *t, uint32_t sector, uint32_t limit,
                            int head)
{
    idem_sector *s = idemi_journal_sector(t, sector);

    //@ assert sector < SECTORS && limit <= SECTOR;
    (void)limit;
    if (!head)
        one_step(t, sector, 0);
    else
        while (below(2))
            one_step(t, sector, 1);
    if (head || below(2))
        idemi_recover_enter(t, &late);
    s->lost = any_byte();
    s->sum = any_byte();
    s->link = (uint8_t)below(SECTORS);
    return any();
}
#endif
