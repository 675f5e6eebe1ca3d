/* SPDX-License-Identifier: 0BSD */
/* The calls on a journal in cells, with one key and four cells (calls.c with
 * IDEM_CELLS and CALLED), each from any state of the journal and the table that
 * D1 to D3 and slot.h allow.  What is run ends so again: so it is any calls in
 * any order.  In parts:
 *
 *     RECORD    a record, of the slot as it is or any other, is put together
 *               and programmed in any cell; and any bytes anywhere.
 *     PUT       a record goes to the first free cell, after what was left there
 *               is mended or given up, and the cell before is free: with the
 *               free cells in any order.  RECORD is left out here and below:
 *               what it is given is asserted, and that it is the record that
 *               came.
 *     SETTLE    what comes before the first record of a boot, and then that.
 *               PUT is left out: asserted is what it sets out from, and the
 *               queue is not looked at behind it.
 *     CALLS     CALL, a call, with any arguments, and callbacks that do
 *               anything.  SETTLE is left out: asserted is that it gets a
 *               record that RECORD sets out from.  It leaves any journal that
 *               PUT and SETTLE assert; nothing else looks at the queue.  In
 *               idem_run idem_begin is left out, too.
 *
 * PUT and SETTLE assert that no cell is twice in the queue, none there is the
 * slot's, and one that is given up is counted.  Believed is, and asserted
 * nowhere:
 *
 *   - that cells are alike which differ by number alone, and so are places in
 *     the queue.  In PUT and SETTLE the queue begins at its last place, and
 *     goes on at the first; the slot's cell is the last, but for a queue that
 *     is yet to be collected; and in SETTLE the free ones are in order.
 *   - what called.h says of eva_over
 *
 * That what an opening leaves is among this is not proved, but looked at
 * wherever tests open a table (../ready.h).
 */

/* A record that means nothing, and a state of a slot: PUT and SETTLE hand them
   on, and look at no more than IDEMI_UNTOLD. */
static const char eva_said;
enum { EVA_LEN = 0x5A5A5A, EVA_STATE = 0xFF };

/* eva_queue once PUT has had it; and what PUT is known not to touch */
enum { EVA_ANY = 1 << 20, EVA_SETTLED = 7 };

/* What is not mixed of the slot. */
static void eva_slots_of(const idem_table *t)
{
    const idem_body *b = idemi_cells_own(t, 0);

    eva_slot(t);
    eva_owns = *idemi_cells_of(t, 0) != 0;
    //@ split eva_owns;
    eva_scope_0 = 0;
    if (eva_slots != KIND_FREE) {
        //@ split b->scope_len;
        eva_scope_0 = b->scope_len;
    }
}

/* Any journal; the slot has a cell, or not. */
static void any_journal(idem_table *t, unsigned owns)
{
    idem_journal *j = t->journal;

    j->blank = any_bit();
    j->torn = (uint8_t)below(4);
    j->settled = any_bit();
    j->tentative = any_bit();
    j->whole = any_bit();
    j->failed = any_bit();
    j->broken = any_bit();
    j->synced = any_bit();
    j->in_doubt = any_bit();
    j->beyond = any_bit();
    j->census = (uint16_t)any();
    j->check = any();
    j->clock_high = any();
    j->sequence = owns ? 1 + below(UINT32_MAX) : 0;
    j->newest = 0;
    j->replaced = below(CELLS + 1);
    j->copied = below(CELLS + 1);
    if (!owns)
        j->tentative = j->replaced = j->copied = 0;
    j->doubt = any();
    j->retentions[0] = any();
    j->frees = below(CELLS + 1);
    j->first = below(CELLS);
    *idemi_cells_of(t, 0) = (idem_number)(owns ? 1 + below(CELLS) : 0);
    t->stats.retired = below(2);
    cells_any(0, t->in, CELL);
}

/* What is asserted of the journal but for the queue. */
static void ready_journal(const idem_table *t)
{
    const idem_journal *j = t->journal;
    unsigned own = *idemi_cells_of(t, 0);

    //@ assert own <= CELLS && (own == 0 <==> j->sequence == 0);
    //@ assert j->newest == 0 && j->torn < 4;
    //@ assert j->replaced <= CELLS && j->copied <= CELLS;
    //@ assert own || (!j->tentative && !j->replaced && !j->copied);
    //@ assert j->count == CELLS && j->cell_size == CELL && j->wide == 1;
    //@ assert t->stats.retired <= 1 && j->first < CELLS && j->frees <= CELLS;
    (void)own, (void)j;
}

/* What RECORD sets out from. */
static void recorded(const idem_table *t, const idemi_cell *c)
{
    const uint32_t *f = c->field;

    //@ split f[IDEMI_CELL_SCOPE_LEN];
    //@ assert (f[IDEMI_CELL_FLAGS] & ~IDEMI_CELL_KEPT) == 0;
    //@ assert f[IDEMI_CELL_STATE_LEN] <= STATE_MAX;
    /*@ assert \valid_read((char *)c->state +
                           (0 .. f[IDEMI_CELL_STATE_LEN] - 1)); */
    //@ assert f[IDEMI_CELL_SCOPE_LEN] <= KEY_MAX;
    //@ assert f[IDEMI_CELL_KEY_LEN] <= KEY_MAX - f[IDEMI_CELL_SCOPE_LEN];
    /*@ assert \valid_read((char *)c->scope +
                           (0 .. f[IDEMI_CELL_SCOPE_LEN] - 1)); */
    /*@ assert \valid_read((char *)c->key +
                           (0 .. f[IDEMI_CELL_KEY_LEN] - 1)); */
    //@ split f[IDEMI_CELL_FLAGS] & IDEMI_FINISHED;
    if (f[IDEMI_CELL_FLAGS] & IDEMI_FINISHED) {
        //@ assert f[IDEMI_CELL_RESPONSE_LEN] <= RESPONSE_MAX;
        /*@ assert \valid_read((char *)c->response +
                               (0 .. f[IDEMI_CELL_RESPONSE_LEN] - 1)); */
    }
    (void)t, (void)f;
}

/* Any table that is open, with a slot of a kind. */
static void any_table(idem_table *t, unsigned kind)
{
    idem_body *b = idemi_cells_own(t, 0);
    unsigned owns = kind == KIND_FREE ? below(2) : 1;

    //@ split owns;
    any_open(t, kind);
    any_journal(t, owns);
    if (kind == KIND_CUT && below(2))
        idemi_slot_at(t, 0)->state |= IDEMI_UNTOLD;
    if (kind != KIND_FREE) {
        b->scope_len = (uint8_t)below(KEY_MAX);
        //@ split b->scope_len;
        b->key_len = (uint8_t)(1 + below(KEY_MAX - b->scope_len));
    }
    eva_slots_of(t);
}

static void any_kind(void)
{
    unsigned kind = below(sizeof kinds / sizeof *kinds);

    eva_opened = table;
    table.inside = any_bit();
    //@ split kind;
    any_table(&table, kind);
    eva_over_or_not();
}

/* PUT and SETTLE, of which this is what CALLS are to know. */
static int done_or_not(idem_table *t, int settles)
{
    unsigned owns = eva_owns, result = below(3);

    ready_journal(t);
    //@ split result;
    if (result == 0 && !settles)
        owns = 1;
    any_journal(t, owns);
    if (result == 0)
        t->journal->settled = 1;
    if (below(2))
        idemi_slot_at(t, 0)->state &= (uint8_t)~IDEMI_UNTOLD;
    t->storage_error = (int)any();
    eva_slots_of(t);
    if (result == 0)
        return IDEM_OK;
    return result == 1 ? IDEM_E_STORAGE : IDEM_E_SPACE;
}

static int settled_or_not(idem_table *t)
{
    return done_or_not(t, 1);
}

static int written_or_not(idem_table *t, unsigned slot, idemi_cell *c)
{
    //@ assert slot == 0;
    (void)slot;
    recorded(t, c);
    return done_or_not(t, 0);
}

/* RECORD, for PUT and SETTLE. */
static int programmed_or_not(idem_table *t, uint32_t at, uint32_t len)
{
    //@ assert at % GRANULE == 0 && len % GRANULE == 0 && len <= CELL;
    //@ assert at <= SIZE - CELL;
    (void)at, (void)len;
    t->storage_error = (int)any();
    return below(2) ? IDEM_OK : IDEM_E_STORAGE;
}

static uint32_t doubted(idem_table *t)
{
    t->journal->in_doubt = any_bit();
    return any();
}

static void described(const idem_table *t, unsigned slot, idemi_cell *c)
{
    unsigned i;

    //@ assert slot == 0;
    (void)t, (void)slot;
    //@ loop unroll IDEMI_CELL_FIELDS;
    for (i = 0; i < IDEMI_CELL_FIELDS; i++)
        c->field[i] = EVA_LEN;
    c->field[IDEMI_CELL_FLAGS] = IDEMI_CELL_KEPT;
    c->state = c->scope = c->key = c->response = &eva_said;
}

/* That it is this one. */
static void handed(const idemi_cell *c)
{
    const uint32_t *f = c->field;

    //@ assert (f[IDEMI_CELL_FLAGS] & IDEMI_CELL_KEPT) == IDEMI_CELL_KEPT;
    //@ assert f[IDEMI_CELL_STATE_LEN] == EVA_LEN;
    //@ assert f[IDEMI_CELL_SCOPE_LEN] == EVA_LEN;
    //@ assert f[IDEMI_CELL_KEY_LEN] == EVA_LEN;
    //@ assert f[IDEMI_CELL_RESPONSE_LEN] == EVA_LEN;
    //@ assert c->state == &eva_said && c->response == &eva_said;
    //@ assert c->scope == &eva_said && c->key == &eva_said;
    (void)f;
}

static uint32_t encoded(idem_table *t, unsigned cell, const idemi_cell *c)
{
    //@ assert cell < CELLS;
    (void)cell;
    handed(c);
    cells_any(0, t->in, CELL);
    return GRANULE * (1 + below(CELL / GRANULE));
}

#ifdef QUEUE
#ifndef FIRST
#define FIRST 0
#endif
#ifndef OWN
#define OWN 1
#endif

/* Which cell is the slot's, and which are free in which order; or that it is a
   queue that PUT leaves. */
static void eva_queue_of(const idem_table *t)
{
    const idem_journal *j = t->journal;
    const idem_number *own = idemi_cells_of(t, 0), *queue = own + CAPACITY;
    unsigned i;

    if (eva_queue >= EVA_ANY) {
        eva_queue = EVA_ANY + 2 * (*own != 0) + j->settled;
        return;
    }
    eva_queue = *own * CELLS + j->first;
    eva_queue = (2 * eva_queue + t->stats.retired) * 8 + j->settled;
    eva_queue = eva_queue * (CELLS + 1) + j->frees;
    //@ loop unroll CELLS;
    for (i = 0; i < j->frees; i++)
        eva_queue = eva_queue * CELLS + queue[(j->first + i) % CELLS];
}

/* The queue is looked at. */
static void eva_asked(void)
{
    //@ assert eva_queue < EVA_ANY;
}

/* Whether a cell will be kept, and why. */
static void eva_keep(const idem_table *t, unsigned cell)
{
    const idem_journal *j = t->journal;

    eva_replaced = 0;
    if (!j->whole && cell + 1 == j->replaced)
        eva_replaced = 1;
    eva_copied = 0;
    if (j->tentative && cell + 1 == j->copied)
        eva_copied = 1;
    if (eva_replaced || eva_copied)
        eva_kept = (((eva_kept * CELLS) + cell) * 2 + eva_replaced) * 2 +
                   eva_copied + 1;
}

/* Any queue; false if a cell would be twice in it, or is not free. */
static int any_queue(idem_table *t, unsigned own)
{
    idem_journal *j = t->journal;
    unsigned taken = own ? 1u << (own - 1) : 0, retired = below(2), i;

    *idemi_cells_of(t, 0) = (idem_number)own;
    //@ loop unroll CELLS;
    for (i = 0; i < CELLS; i++)
        *idemi_cells_of(t, CAPACITY + i) = (idem_number)below(CELLS);
    t->stats.retired = 0;
    j->frees = j->first = 0;
    eva_queue_of(t);
    if (!j->settled && below(2))
        return 1;
    if (own && own < OWN)
        return 0;
    //@ split retired;
    t->stats.retired = retired;
    j->first = FIRST + below(CELLS - FIRST);
    //@ split j->first;
    eva_queue_of(t);
    //@ loop unroll CELLS;
    while (j->frees < CELLS - (own ? 1 : 0) - t->stats.retired) {
#ifdef PUT
        unsigned cell = below(CELLS);
#else
        unsigned cell = 0;
        //@ loop unroll CELLS;
        while (taken >> cell & 1)
            cell++;
#endif
        //@ split cell;
        if (taken >> cell & 1)
            return 0;
        taken |= 1u << cell;
        idemi_cells_push(t, cell);
    }
    return 1;
}

/* D1 and D2; that a cell which is given up is counted. */
static void ready_queue(const idem_table *t)
{
    const idem_journal *j = t->journal;
    unsigned own = *idemi_cells_of(t, 0), i;
    unsigned taken = own ? 1u << (own - 1) : 0;

    eva_queue_of(t);
    /*@ assert j->frees + (own != 0 ? 1 : 0) + t->stats.retired == CELLS ||
               (j->frees == 0 && j->first == 0 && !j->settled &&
                t->stats.retired == 0); */
    //@ loop unroll CELLS;
    for (i = 0; i < j->frees; i++) {
        unsigned cell = *idemi_cells_free(t, i);
        //@ assert cell < CELLS;
        //@ assert (taken >> cell & 1) == 0;
        taken |= 1u << cell;
    }
    //@ assert !j->settled || j->frees >= 2;
    (void)taken, (void)own;
}

/* PUT, for SETTLE. */
static int put_or_not(idem_table *t, unsigned slot, idemi_cell *c)
{
    idem_journal *j = t->journal;
    unsigned owns = *idemi_cells_of(t, 0) != 0, settled = j->settled;
    unsigned result = below(3);

    //@ assert slot == 0 && (owns == 1 || settled == 1);
    (void)slot;
    handed(c);
    ready_journal(t);
    if (eva_queue < EVA_ANY) {
        ready_queue(t);
        //@ assert j->frees >= 2;
    }
    //@ split result;
    eva_queue = EVA_ANY;
    any_journal(t, result == 0 ? 1 : owns);
    j->settled = (uint8_t)settled;
    eva_queue_of(t);
    t->storage_error = (int)any();
    if (result == 0)
        return IDEM_OK;
    return result == 1 ? IDEM_E_STORAGE : IDEM_E_SPACE;
}

#ifdef PUT
static void put(idem_table *t, unsigned own)
{
    const idem_slot *s = idemi_slot_at(t, 0);
    idem_journal *j = t->journal;
    idemi_cell c;
    int result;

    j->settled = EVA_SETTLED;
    if (!any_queue(t, own))
        return;
    described(t, 0, &c);
    result = idemi_cells_put(t, 0, &c);
    //@ assert result != IDEM_OK || j->sequence != 0;
    //@ assert own == 0 || j->sequence != 0;
    //@ assert j->settled == EVA_SETTLED;
    //@ assert s->state == (own ? EVA_STATE : EVA_STATE - IDEMI_UNTOLD);
    /*@ assert result == IDEM_OK || result == IDEM_E_STORAGE ||
               result == IDEM_E_SPACE; */
    (void)s, (void)result;
    ready_journal(t);
    ready_queue(t);
}
#else
static void put(idem_table *t, unsigned own)
{
    const idem_slot *s = idemi_slot_at(t, 0);
    idem_journal *j = t->journal;
    idemi_cell c;
    int result;

    //@ split j->settled;
    if (!any_queue(t, own))
        return;
    described(t, 0, &c);
    result = idemi_cells_write(t, 0, &c);
    //@ split result == IDEM_OK;
    //@ assert result != IDEM_OK || j->settled == 1;
    //@ assert result != IDEM_OK || j->sequence != 0;
    //@ assert own == 0 || j->sequence != 0;
    //@ assert s->state == EVA_STATE || s->state == EVA_STATE - IDEMI_UNTOLD;
    /*@ assert result == IDEM_OK || result == IDEM_E_STORAGE ||
               result == IDEM_E_SPACE; */
    (void)s, (void)result, (void)j;
    ready_journal(t);
    if (eva_queue < EVA_ANY)
        ready_queue(t);
}
#endif

static void part(void)
{
    unsigned owns = below(2), own = 0;

    eva_opened = table;
    //@ split owns;
    any_open(&table, KIND_FREE);
    any_journal(&table, owns);
    idemi_slot_at(&table, 0)->state = EVA_STATE;
    if (owns)
        own = 1 + below(CELLS);
    else
        idemi_slot_at(&table, 0)->state = EVA_STATE - IDEMI_UNTOLD;
    //@ split own;
    put(&table, own);
    unmoved_table(&table);
    eva_queue = 0;
}
#else
static void eva_queue_of(const idem_table *t)
{
    (void)t;
}

static void eva_keep(const idem_table *t, unsigned cell)
{
    (void)t, (void)cell;
}

static void eva_asked(void)
{
    //@ assert \false;
}
#endif

#ifdef RECORD
/* What matters of a record is not mixed, what the slot was is. */
static void eva_record_of(const idemi_cell *c)
{
    const uint32_t *f = c->field;
    unsigned status = f[IDEMI_CELL_FLAGS] & IDEMI_STATUS;

    //@ split status;
    eva_record = 1 + status;
    //@ split f[IDEMI_CELL_SCOPE_LEN];
    eva_scope = f[IDEMI_CELL_SCOPE_LEN];
    eva_slots = eva_scope_0 = 0;
}

static void part(void)
{
    idemi_cell c;
    unsigned cell = below(CELLS), scope = below(KEY_MAX + 1);
    unsigned status = below(IDEMI_STATUS + 1), i;
    unsigned pieces = below(CELL / GRANULE + 1);
    uint32_t len;

    if (below(2)) {
        any_journal(&table, 1);
        //@ split pieces;
        idemi_cells_prog(&table, GRANULE * below((SIZE - CELL) / GRANULE + 1),
                         GRANULE * pieces);
        return;
    }
    any_kind();
    if (below(2)) {
        idemi_cells_describe(&table, 0, &c);
        recorded(&table, &c);
        eva_record_of(&c);
    } else {
        any_bytes();
        //@ loop unroll IDEMI_CELL_FIELDS;
        for (i = 0; i < IDEMI_CELL_FIELDS; i++)
            c.field[i] = any();
        //@ split status;
        c.field[IDEMI_CELL_FLAGS] = 4 * below(6) + status;
        c.field[IDEMI_CELL_STATE_LEN] = below(STATE_MAX + 1);
        //@ split scope;
        c.field[IDEMI_CELL_SCOPE_LEN] = scope;
        c.field[IDEMI_CELL_KEY_LEN] = below(KEY_MAX + 1 - scope);
        if (status & IDEMI_FINISHED)
            c.field[IDEMI_CELL_RESPONSE_LEN] = below(RESPONSE_MAX + 1);
        c.state = c.scope = c.key = c.response = bytes;
        eva_record_of(&c);
    }
    c.field[IDEMI_CELL_FLAGS] |= IDEMI_CELL_MARK;
    if (below(2))
        c.field[IDEMI_CELL_FLAGS] |= IDEMI_CELL_TENTATIVE;
    //@ split cell;
    idemi_cells_doubt(&table);
    len = idemi_cells_encode(&table, cell, &c);
    //@ assert 0 < len <= CELL && len % GRANULE == 0;
    idemi_cells_prog(&table, idemi_cells_at(&table, cell), len);
    unmoved_table(&table);
}
#endif

#ifdef CALLS
static void part(void)
{
    const idem_slot *s;
    const idem_body *b;

    any_kind();
    CALL();
    eva_slots_of(&table);
    ready_journal(&table);
    ready_slot(&table);
    s = idemi_slot_at(&table, 0);
    b = idemi_cells_own(&table, 0);
    //@ assert !(s->state & IDEMI_UNTOLD) || eva_slots == KIND_CUT;
    //@ assert eva_slots == KIND_FREE || eva_owns == 1;
    if (eva_slots != KIND_FREE) {
        //@ assert b->key_len <= KEY_MAX - b->scope_len;
        ;
    }
    (void)s, (void)b;
    unmoved_table(&table);
}
#endif
