/* SPDX-License-Identifier: 0BSD */
/* The calls on a journal in a ring, with one key (calls.c with RING, WRITER and
 * CALLED), each from any state of the journal and the table that `ready`
 * (ready.h) allows: the slot free or in use in any way, its word in the index,
 * the order and the list of what was written as T1, O1, O2, J5 and K3 say.
 * What is run ends so again: so it is any calls in any order.  In parts:
 *
 *     CARRY     one step of cleaning, and what a new head confirms, in the
 *               midst of filling one too.  Left out here and below is what
 *               APPEND and LOAD (writer.h) look at: what they are given is
 *               asserted, what they leave is any of what they assert.
 *     TURN      a new head, and all that makes room.  CARRY is left out; and
 *               whether a sector holds records of its sequence, at which
 *               HEADERS (replay.h) looks.
 *     CALLS     CALL, a call, with any arguments, and callbacks that do
 *               anything.  TURN is left out; in idem_run idem_begin is, too.
 *
 * What CARRY and TURN may make of the slot they assert (made_room).  A part
 * that leaves them out goes on with that, and else with any ready table.
 * Believed is, and asserted nowhere, that this is as before then:
 *
 *   - whether the slot is over (eva_over).  That the clock does not move once
 *     something is done in a call is asserted; a slot's time is set only where
 *     a claim is granted, renewed or completed (slot.txt).
 *   - that what was read of a slot is in t->journal->record while
 *     t->journal->loaded says so
 *
 * That an opening ends with what the calls set out from is not proved, but
 * looked at wherever tests open a table (../ready.h).
 */

/* What the slot is, and whether it is in the order of writing. */
static void eva_slots_of(const idem_table *t)
{
    eva_slot(t);
    //@ split t->journal->written.newer;
    eva_late = t->journal->written.newer;
}

/* Where the slot's records are, and whether it is in the order of writing: not
   if it is a volatile claim, unless `listed`, and if it is free it may be. */
static void any_place(idem_table *t, unsigned kind, unsigned listed)
{
    idem_place *place = idemi_slot_place(t, 0);

    if (kind == KIND_FREE || (IN_RAM && kind == KIND_CLAIMED && !listed))
        listed = below(2);
    else
        listed = 1;
    //@ split listed;
    place->claim = any_address();
    if (kind == KIND_FREE)
        place->claim = any();
    else if (!listed)
        place->claim = IDEMI_NOWHERE;
    place->outcome = any();
    if (kind == KIND_OWED || kind == KIND_FINISHED)
        place->outcome = any_address();
    place->written.older = place->written.newer = (idem_number)listed;
    t->journal->written.older = t->journal->written.newer =
        (idem_number)(1 - listed);
}

/* Any open table, with a slot of a kind. */
static void any_table(idem_table *t, unsigned kind, unsigned listed)
{
    any_journal(t);
    any_open(t, kind);
    any_place(t, kind, listed);
    eva_slots_of(t);
}

/* What the slot may have become of another kind while room was made for
   something: gone, for it was over, or could not be read; or stale.  A claim
   that is written does not become a volatile one. */
static void made_room(const idem_table *t, unsigned was, unsigned listed)
{
    /*@ assert eva_slots == was || eva_slots == KIND_FREE ||
               (eva_slots == KIND_STALE && eva_over == 1 &&
                (was == KIND_CUT || was == KIND_CLAIMED)); */
    /*@ assert eva_slots == KIND_FREE || listed == 0 ||
               t->journal->written.newer == 0; */
    (void)t, (void)was, (void)listed;
}

/* The same, done. */
static void make_room(idem_table *t)
{
    unsigned kind = eva_slots, listed = 1 - eva_late;
    unsigned filling = t->journal->filling;

    ready(t);           // says eva_record anew
    switch (below(3)) {
    case 0: kind = KIND_FREE; break;
    case 1:
        if (eva_over && (kind == KIND_CUT || kind == KIND_CLAIMED))
            kind = KIND_STALE;
        break;
    default: break;
    }
    //@ split kind;
    any_table(t, kind, listed);
    t->journal->filling = (uint8_t)filling;
}

static int done_or_not(idem_table *t)
{
    make_room(t);
    if (below(2))
        return IDEM_OK;
    return below(2) ? IDEM_E_STORAGE : IDEM_E_SPACE;
}

/* CARRY */
static int carried_or_not(idem_table *t)
{
    int result = done_or_not(t);

    if (t->journal->leave)
        t->journal->leave = below(SECTOR + 1);
    return result;
}

/* TURN */
static int reserved_or_not(idem_table *t, uint32_t len, uint32_t outcomes)
{
    //@ assert len <= SECTOR / 2 && outcomes <= CAPACITY + 1;
    (void)len, (void)outcomes;
    return done_or_not(t);
}

static int room_or_not(idem_table *t, uint32_t len)
{
    //@ assert len <= SECTOR / 2;
    (void)len;
    return done_or_not(t);
}

static int maintained_or_not(idem_table *t)
{
    int result = done_or_not(t);

    return result == IDEM_OK && below(2) ? IDEM_MORE : result;
}

static int loaded_or_not(idem_table *t, unsigned slot, int outcome)
{
    idem_journal *j = t->journal;
    const idem_place *place = idemi_slot_place(t, slot);
    unsigned state = idemi_slot_at(t, slot)->state;

    //@ assert slot < CAPACITY && IS_ADDRESS(place->claim);
    if (outcome) {
        //@ assert (state & IDEMI_FINISHED) != 0;
        //@ assert IS_ADDRESS(place->outcome);
    }
    (void)place;
    if (j->loaded == slot) {
        //@ assert eva_record != EVA_EMPTY;
        ;
    }
    eva_record = 0;
    any_record(&j->record);
    ring_any(0, t->in, IN_SIZE);
    t->storage_error = (int)any();
    if (state & IDEMI_STALE && j->loaded != slot && below(2)) {
        j->record.body.key_len = 0;
        j->loaded = slot;
        eva_record = EVA_EMPTY;
        return IDEM_OK;
    }
    j->loaded = IDEMI_NOWHERE;
    if (below(2))
        return IDEM_E_STORAGE;
    j->loaded = slot;
    j->outcome_loaded = any_bit();
    any_body(&j->record.body);
    j->record.id_at = below(IN_SIZE - KEY_MAX);
    if (outcome) {
        j->record.response_at = below(IN_SIZE - RESPONSE_MAX);
        j->outcome_loaded = 1;
    }
    return IDEM_OK;
}

/* What APPEND sets out from. */
static void described(const idem_table *t, const idemi_parts *from)
{
    const idem_record *r = &t->journal->record;

    ready_journal(t);
    //@ assert r->slot < CAPACITY && r->parts < 16 && r->more < 16;
    //@ split r->parts;
    if (r->parts & IDEMI_HAS_CLAIM) {
        //@ assert r->body.scope_len < KEY_MAX;
        //@ assert 1 <= r->body.key_len <= KEY_MAX;
        /*@ assert \valid_read((char *)from->scope +
                               (0 .. r->body.scope_len - 1)); */
        /*@ assert \valid_read((char *)from->key +
                               (0 .. r->body.key_len - 1)); */
    }
    if (r->parts & IDEMI_HAS_OUTCOME) {
        //@ assert r->body.response_len <= RESPONSE_MAX;
        /*@ assert \valid_read((char *)from->response +
                               (0 .. r->body.response_len - 1)); */
    }
    if (r->parts & IDEMI_HAS_STATE) {
        //@ assert r->state_len <= STATE_MAX;
        /*@ assert \valid_read((char *)from->state +
                               (0 .. r->state_len - 1)); */
    }
    if (!(r->parts & (IDEMI_HAS_CLAIM | IDEMI_MOVED))) {
        uint32_t at = idemi_slot_place(t, 0)->claim;
        //@ assert IS_ADDRESS(at);
        (void)at;
    }
    (void)from;
}

/* What programming does. */
static void written_or_not(idem_table *t)
{
    idem_journal *j = t->journal;

    j->synced = any_bit();
    j->loaded = IDEMI_NOWHERE;
    j->worn = any_bit();
    t->storage_error = (int)any();
    ring_any(0, t->in, IN_SIZE);
}

static int appended_or_not(idem_table *t, const idemi_parts *from,
                           uint32_t *address)
{
    idem_journal *j = t->journal;

    described(t, from);
    //@ assert j->leave <= SECTOR;
    any_record(&j->record);
    ring_any(0, idemi_journal_out(t), IN_SIZE / 2);
    if (below(2))
        return IDEM_E_SPACE;
    written_or_not(t);
    if (below(2)) {
        j->at = 0;
        return IDEM_E_STORAGE;
    }
    j->at = j->end = FRONT + GRANULE + GRANULE * below(WHOLE - FRONT / GRANULE);
    *address = any_address();
    return IDEM_OK;
}

static int header_or_not(idem_table *t, unsigned copy, unsigned flags,
                         uint32_t back, uint32_t end)
{
    //@ assert copy < 2;
    (void)copy, (void)flags, (void)back, (void)end;
    ready_journal(t);
    written_or_not(t);
    t->journal->broken = any_bit();
    return below(2) ? IDEM_OK : IDEM_E_STORAGE;
}

static int used_or_not(idem_table *t, uint32_t sector, uint32_t at)
{
    //@ assert sector < SECTORS && at == FRONT;
    (void)sector, (void)at;
    any_record(&t->journal->record);
    t->storage_error = (int)any();
    ring_any(0, t->in, IN_SIZE);
    return (int)below(2);
}

/* What never changes while a table is open. */
static idem_journal eva_first_journal;

static void unmoved(const idem_table *t)
{
    const idem_journal *j = t->journal, *f = &eva_first_journal;

    unmoved_table(t);
    //@ assert j->front == FRONT;
    //@ assert j->outcome_max == f->outcome_max && j->low == f->low;
    //@ assert j->carry_max == f->carry_max && j->least == f->least;
    //@ assert j->filling == 0 && j->leave == 0;
    (void)j, (void)f;
}

/* Any table, in any of its kinds. */
static void any_kind(void)
{
    unsigned kind = below(sizeof kinds / sizeof *kinds);

    eva_opened = table;
    eva_first_journal = *table.journal;
    table.inside = any_bit();
    //@ split kind;
    any_table(&table, kind, 0);
    eva_over_or_not();
    eva_was = 2 * kind + 1 - eva_late;
#if IN_RAM
    config.volatile_claims = any_bit();
#endif
}

#ifdef CARRY
/* In the midst of filling a head, too. */
static void part(void)
{
    unsigned filling = below(2), leaves = below(2);
    int result;

    any_kind();
    //@ split filling;
    table.journal->filling = (uint8_t)filling;
    //@ split leaves;
    table.journal->leave = leaves ? below(SECTOR + 1) : 0;
    if (below(2))
        result = idemi_journal_clean(&table);
    else
        result = idemi_journal_confirm(&table);
    /*@ assert result == IDEM_OK || result == IDEM_E_STORAGE ||
               result == IDEM_E_SPACE; */
    ready(&table);
    //@ assert table.journal->filling == filling;
    //@ assert leaves || table.journal->leave == 0;
    table.journal->filling = 0;
    table.journal->leave = 0;
    (void)result;
    unmoved(&table);
    made_room(&table, eva_was / 2, eva_was % 2);
}
#elif defined TURN
static void part(void)
{
    uint32_t len = below(SECTOR / 2 + 1);
    int result;

    any_kind();
    switch (below(4)) {
    case 0: result = idemi_journal_turn(&table, len, any()); break;
    case 1:
        result = idemi_journal_reserve(&table, len, below(CAPACITY + 2));
        break;
    case 2: result = idemi_journal_reserved(&table, len); break;
    default:
        result = idemi_journal_maintain(&table);
        if (result == IDEM_MORE)
            result = IDEM_OK;
        break;
    }
    /*@ assert result == IDEM_OK || result == IDEM_E_STORAGE ||
               result == IDEM_E_SPACE; */
    (void)result;
    ready(&table);
    unmoved(&table);
    made_room(&table, eva_was / 2, eva_was % 2);
}
#else
static void part(void)
{
    any_kind();
    CALL();
    ready(&table);
    unmoved(&table);
}
#endif
