/* SPDX-License-Identifier: 0BSD */
/* What a table with one key is while nothing is under way, but for its journal:
   any of it, and what is asserted of it; and the calls on it that begin with a
   request.  BODIES: what a slot keeps of its command is in memory.  MEDIUM_ANY
   is like memset, with any bytes.

   With FROM=2 the slot's word is at the index's last position before a call; a
   search goes on at the first then, and wherever it begins, for any hash may be
   at home anywhere. */
#ifndef FROM
#define FROM 0
#endif

enum {
    KIND_FREE, KIND_STALE, KIND_CUT, KIND_OWED, KIND_FINISHED, KIND_CLAIMED
};

/* A slot may be free, claimed, cut short, stale, or finished. */
static const uint8_t eva_states[] = {
    0, IDEMI_IN_PROGRESS, IDEMI_IN_PROGRESS | IDEMI_ENDLESS,
    IDEMI_IN_PROGRESS | IDEMI_CUT, IDEMI_IN_PROGRESS | IDEMI_CUT | IDEMI_STALE,
    IDEM_COMPLETED, IDEM_FAILED, IDEM_COMPLETED | IDEMI_UNDELIVERED,
    IDEM_FAILED | IDEMI_UNDELIVERED };

/* The states of each kind: from here, how many */
static const uint8_t kinds[][2] = {
    { 0, 1 }, { 4, 1 }, { 3, 1 }, { 7, 2 }, { 5, 2 }, { 1, 2 } };

/* Which kind the one slot is of, and where its word is: runs in which these
   differ are not mixed. */
static void eva_slot(const idem_table *t)
{
    const idem_slot *s = idemi_slot_at(t, 0);
    unsigned i;

    //@ split s->state;
    eva_slots = KIND_FREE;
    if (s->state & IDEMI_STALE)
        eva_slots = KIND_STALE;
    else if (s->state & IDEMI_CUT)
        eva_slots = KIND_CUT;
    else if (s->state & IDEMI_UNDELIVERED)
        eva_slots = KIND_OWED;
    else if (s->state & IDEMI_FINISHED)
        eva_slots = KIND_FINISHED;
    else if (s->state)
        eva_slots = KIND_CLAIMED;
    eva_index = 0;
    //@ loop unroll 3;
    for (i = 0; i < IDEMI_WORDS; i++) {
        //@ split t->index[i].slot;
        eva_index = eva_index * 2 + t->index[i].slot;
    }
}

static uint8_t any_bit(void)
{
    return (uint8_t)below(2);
}

/* What a slot keeps of its command, or a record that was read of its claim. */
static void any_body(idem_body *b)
{
    b->retention = any();
    b->token = any();
    b->fingerprint[0] = any();
    b->fingerprint[1] = any();
    b->code = (int32_t)any();
    b->response_len = (uint16_t)below(RESPONSE_MAX + 1);
    b->scope_len = (uint8_t)below(KEY_MAX);
    b->key_len = (uint8_t)(1 + below(KEY_MAX));
}

/* The slot, of a kind: its word in the index, what links it to others, and how
   many there are of it. */
static void any_slot(idem_table *t, unsigned kind)
{
    idem_slot *s = idemi_slot_at(t, 0);
    unsigned at = FROM + below(IDEMI_WORDS - FROM), i;

    //@ split at;
    s->state = eva_states[kinds[kind][0] + below(kinds[kind][1])];
    s->time = any();
    s->hash = any();
    s->terms = BODIES ? any_byte() : (uint8_t)below(IDEMI_RETENTIONS);
#if BODIES
    any_body(idemi_slot_own(s));
    if (kind == KIND_FREE) {
        idemi_slot_own(s)->scope_len = any_byte();
        idemi_slot_own(s)->key_len = any_byte();
        idemi_slot_own(s)->response_len = (uint16_t)any();
    }
    MEDIUM_ANY(0, idemi_slot_own(s) + 1, KEY_MAX + RESPONSE_MAX);
#endif
    //@ loop unroll 3;
    for (i = 0; i < IDEMI_WORDS; i++) {
        t->index[i].slot = kind != KIND_FREE && i == at;
        t->index[i].past = below(8);
        t->index[i].tag = below(32);
    }
    t->free = (idem_number)(kind == KIND_FREE ? 0 : CAPACITY);
    t->links[0].older = (idem_number)below(CAPACITY + 1);
    t->links[0].newer = (idem_number)below(CAPACITY + 1);
    t->links[1].older = t->links[1].newer = CAPACITY;
    if (kind == KIND_FREE)
        t->links[0].newer = CAPACITY;
    if (kind == KIND_OWED || kind == KIND_FINISHED) {
        t->links[0].older = t->links[0].newer = CAPACITY;
        t->links[1].older = t->links[1].newer = 0;
    }
    t->used = kind != KIND_FREE;
    t->claimed = kind == KIND_CLAIMED;
    t->pending = kind == KIND_OWED;
    t->stale = kind == KIND_STALE;
    eva_slot(t);
}

/* Any open table, with a slot of a kind. */
static void any_open(idem_table *t, unsigned kind)
{
    unsigned i;

    any_slot(t, kind);
    MEDIUM_ANY(0, t->state, STATE_MAX);
    t->magic = IDEMI_MAGIC;
    t->state_len = (uint16_t)below(STATE_MAX + 1);
    t->tidy = below(CAPACITY + 1);
    t->clock = any();
    t->tick = any();
    t->counted = any();
    t->swept = any();
    t->soonest = any();
    t->token = (uint64_t)any() << 32 | any();
    t->evicted = any();
    //@ loop unroll IDEMI_REACHES;
    for (i = 0; i < IDEMI_REACHES; i++)
        t->reach[i] = any();
    t->stats.retired = any();
    t->storage_error = (int)any();
}

/* What of that is asserted.  What is split is what is not mixed anyway. */
static void ready_slot(const idem_table *t)
{
    const idem_slot *s = idemi_slot_at(t, 0);
    unsigned kind = eva_slots, words;
    unsigned finished = kind == KIND_OWED || kind == KIND_FINISHED;

    //@ assert (s->state & ~IDEMI_UNTOLD) <= 0x11 || s->state == 0x31;
    //@ assert t->used == (kind == KIND_FREE ? 0 : 1);
    //@ assert t->claimed == (kind == KIND_CLAIMED ? 1 : 0);
    //@ assert t->stale == (kind == KIND_STALE ? 1 : 0);
    //@ assert t->pending == (kind == KIND_OWED ? 1 : 0);
    //@ assert t->free == t->used;
    //@ assert t->state_len <= STATE_MAX && t->tidy <= CAPACITY;
    //@ assert t->links[1].newer == (finished ? 0 : 1);
    //@ assert t->links[1].older == (finished ? 0 : 1);
    //@ assert t->links[0].newer <= 1 && t->links[0].older <= 1;
    //@ assert t->links[0].newer == 1 || (kind != KIND_FREE && !finished);
    //@ assert t->links[0].older == 1 || !finished;
    words = t->index[0].slot + t->index[1].slot + t->index[2].slot;
    //@ assert words == t->used;
#if BODIES
    if (kind != KIND_FREE) {
        const idem_body *b = idemi_slot_own(idemi_slot_at(t, 0));
        //@ assert b->scope_len < KEY_MAX && 1 <= b->key_len <= KEY_MAX;
        //@ assert b->response_len <= RESPONSE_MAX;
        (void)b;
    }
#else
    //@ assert s->terms < IDEMI_RETENTIONS;
#endif
    (void)finished, (void)words, (void)s;
}

#ifdef CALLED
/* Whether the slot is over, said anew. */
static void eva_over_or_not(void)
{
    eva_record = 0;
    eva_over = below(2);
    //@ split eva_over;
    ;
}

/* The clock moves.  So it does not while something is written. */
static void eva_clock(void)
{
#ifndef CALLS
    //@ assert \false;
#endif
    eva_over_or_not();
}

/* What never changes while a table is open: its sizes and pointers. */
static idem_table eva_opened;

static void unmoved_table(const idem_table *t)
{
    const idem_table *o = &eva_opened;

    //@ assert t->config == &config && t->slots == o->slots;
    //@ assert t->links == o->links && t->index == o->index;
    //@ assert t->state == o->state && t->in == o->in;
    //@ assert t->journal == o->journal;
    //@ assert t->stride == o->stride && t->capacity == CAPACITY;
    //@ assert t->index_size == o->index_size;
    (void)t, (void)o;
}

/* Any table that is open, in any of its kinds. */
static void any_kind(void);

/* What idem_begin leaves, for idem_run, which calls others then. */
static int begun_or_not(idem_table *t, idem_claim *c, idem_reply *r,
                        const idem_request *rq, uint32_t now_ms)
{
    (void)t, (void)rq, (void)now_ms;
    any_kind();
    any_claim(c, below(CAPACITY + 1));
    r->response_len = any();
    r->status = (int)any();
    r->code = (int32_t)any();
    return below(2) ? (int)below(IDEM_EXHAUSTED + 1) : -1 - (int)below(10);
}

#ifdef CALLS
static void call_begin(void)
{
    unsigned null = below(12);

    //@ split null;
    any_bytes();
    any_request(null);
    //@ split request.scope_len;
    any_reply();
    idem_begin(&table, &claim, &reply, &request, any());
}

/* What looks at the request is left out with idem_begin. */
static void call_run(void)
{
    unsigned handled = below(9);

    any_reply();
    //@ split handled;
    any_bytes();
    idem_run(&table, &claim, &reply, &request, handler, &handled, any());
}

static void call_find(void)
{
    unsigned null = below(12);

    //@ split null;
    any_bytes();
    any_request(null);
    //@ split request.scope_len;
    any_entry();
    if (below(2))
        idem_find(&table, &entry, &request, any());
    else
        idem_forget(&table, &request, any());
}
#endif
#endif
