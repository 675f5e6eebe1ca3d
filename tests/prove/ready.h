/* SPDX-License-Identifier: 0BSD */
/* What a table and its journal in a ring are, with one key, when nothing is
   under way: the parts of calls begin and end with it (writer.h, called.h).
   That an opening ends with it is believed, and asserted nowhere. */
enum {
    KIND_FREE, KIND_STALE, KIND_CUT, KIND_OWED, KIND_FINISHED, KIND_CLAIMED
};

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

/* What the journal is between two writes. */
static void ready_journal(const idem_table *t)
{
    const idem_journal *j = t->journal;

    //@ assert j->head < SECTORS && j->tail < SECTORS;
    //@ assert j->kept < SECTORS && j->clean < SECTORS;
    //@ assert j->at == 0 || (FRONT <= j->at <= SECTOR);
    //@ assert j->at % GRANULE == 0 && j->leave <= SECTOR;
    //@ assert j->blank <= 2;
    //@ assert j->state_at == IDEMI_NOWHERE || IS_ADDRESS(j->state_at);
    //@ assert j->newest == IDEMI_NOWHERE || IS_ADDRESS(j->newest);
    //@ assert j->newest_slot == IDEMI_NOWHERE || j->newest_slot < CAPACITY;
    //@ assert j->newest_len <= IN_SIZE / 2;
    //@ assert j->loaded == IDEMI_NOWHERE || j->loaded < CAPACITY;
    //@ assert j->in_size == IN_SIZE && j->record_max == IN_SIZE / 2;
    //@ assert j->shift == SHIFT;
    (void)j;
}

/* What the table is between two steps.  What is split is what is not mixed
   anyway. */
static void ready(const idem_table *t)
{
    const idem_slot *s = idemi_slot_at(t, 0);
    const idem_place *place = idemi_slot_place(t, 0);
    unsigned kind, finished, listed, words;

    eva_slots_of(t);
    kind = eva_slots;
    finished = kind == KIND_OWED || kind == KIND_FINISHED;
    ready_journal(t);
    //@ assert s->state <= 0x11 || s->state == 0x31;
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
    listed = place->written.newer;
    //@ assert listed <= 1 && place->written.older == listed;
    //@ assert t->journal->written.newer == 1 - listed;
    //@ assert t->journal->written.older == 1 - listed;
#if !IN_RAM
    //@ assert s->terms < IDEMI_RETENTIONS;
    //@ assert kind == KIND_FREE || listed == 1;
#else
    if (kind != KIND_FREE) {
        const idem_body *b = idemi_slot_own(idemi_slot_at(t, 0));
        //@ assert b->scope_len < KEY_MAX && 1 <= b->key_len <= KEY_MAX;
        //@ assert b->response_len <= RESPONSE_MAX;
        (void)b;
    }
#endif
    //@ assert kind == KIND_FREE || listed == 0 || IS_ADDRESS(place->claim);
    //@ assert listed == 1 || kind == KIND_FREE || kind == KIND_CLAIMED;
    /*@ assert listed == 1 || kind == KIND_FREE ||
               place->claim == IDEMI_NOWHERE; */
    //@ assert finished == 0 || IS_ADDRESS(place->outcome);
    (void)finished, (void)listed, (void)words, (void)s;
}
