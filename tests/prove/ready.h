/* SPDX-License-Identifier: 0BSD */
/* What a table and its journal in a ring are, with one key, when nothing is
   under way: the parts of calls begin and end with it (writer.h, called.h).
   That an opening ends with it is not proved, but looked at by tests, with any
   number of keys (../ready.h). */

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

/* What the table is between two steps. */
static void ready(const idem_table *t)
{
    const idem_place *place = idemi_slot_place(t, 0);
    unsigned kind, finished, listed;

    eva_slots_of(t);
    kind = eva_slots;
    finished = kind == KIND_OWED || kind == KIND_FINISHED;
    ready_journal(t);
    ready_slot(t);
    listed = place->written.newer;
    //@ assert listed <= 1 && place->written.older == listed;
    //@ assert t->journal->written.newer == 1 - listed;
    //@ assert t->journal->written.older == 1 - listed;
    //@ assert IN_RAM || kind == KIND_FREE || listed == 1;
    //@ assert kind == KIND_FREE || listed == 0 || IS_ADDRESS(place->claim);
    //@ assert listed == 1 || kind == KIND_FREE || kind == KIND_CLAIMED;
    /*@ assert listed == 1 || kind == KIND_FREE ||
               place->claim == IDEMI_NOWHERE; */
    //@ assert finished == 0 || IS_ADDRESS(place->outcome);
    (void)finished, (void)listed;
}
