/* SPDX-License-Identifier: 0BSD */
/*
 * What a table with a journal is while no call is under way, beside what
 * idem_check looks at: Eva's calls set out from any state in which both hold
 * (prove/ready.h, slot.h, cells_called.h).  That calls end so is asserted
 * there; that openings do is looked at with this, wherever tests open a table.
 */
#ifndef READY_H
#define READY_H

/* The first condition that does not hold: its text; or NULL. */
#define READY(condition)                                                       \
    do {                                                                       \
        if (!(condition))                                                      \
            return #condition;                                                 \
    } while (0)

#ifdef IDEM_CELLS
static inline const char *unready_journal(const idem_table *t)
{
    const idem_journal *j = t->journal;
    unsigned slot, owned = 0;

    for (slot = 0; slot < t->capacity; slot++) {
        unsigned own = *idemi_cells_of(t, slot);
        READY(own <= j->count);
        READY(own || !idemi_slot_at(t, slot)->state);
        owned += own != 0;
    }
    READY((owned == 0) == (j->sequence == 0));
    READY(j->newest < t->capacity && j->torn < 4);
    READY(j->replaced <= j->count && j->copied <= j->count);
    READY(j->sequence || (!j->tentative && !j->replaced && !j->copied));
    READY(j->first < j->count && j->frees <= j->count);
    // The queue is collected before the first record of a boot.
    READY(j->frees + owned + t->stats.retired == j->count ||
          (!j->frees && !j->first && !j->settled && !t->stats.retired));
    for (slot = 0; slot < j->frees; slot++) {
        unsigned cell = *idemi_cells_free(t, slot), other;
        READY(cell < j->count);
        for (other = 0; other < t->capacity; other++)
            READY(*idemi_cells_of(t, other) != cell + 1);
        for (other = 0; other < slot; other++)
            READY(*idemi_cells_free(t, other) != cell);
    }
    return NULL;
}

static inline const char *unready_slot(const idem_table *t, unsigned slot)
{
    const idem_slot *s = idemi_slot_at(t, slot);

    READY(!(s->state & IDEMI_UNTOLD) || s->state & IDEMI_CUT);
    return NULL;
}
#else
/* Where a record may be, or nowhere */
static inline int ready_address(const idem_table *t, uint32_t at)
{
    const idem_storage *m = t->config->storage;

    return at == IDEMI_NOWHERE ||
           (idemi_storage_sector(t, at) < m->sector_count &&
            idemi_storage_offset(t, at) < m->sector_size &&
            idemi_storage_offset(t, at) % m->prog_size == 0);
}

static inline const char *unready_journal(const idem_table *t)
{
    const idem_storage *m = t->config->storage;
    const idem_journal *j = t->journal;

    READY(j->head < m->sector_count && j->tail < m->sector_count);
    READY(j->kept < m->sector_count && j->clean < m->sector_count);
    READY(!j->at || (j->at >= idemi_journal_front(t) &&
                     j->at <= idemi_journal_size(t)));
    READY(j->at % m->prog_size == 0 && !j->leave && !j->filling);
    READY(j->blank <= 2);
    READY(ready_address(t, j->state_at) && ready_address(t, j->newest));
    READY(j->newest_slot == IDEMI_NOWHERE || j->newest_slot < t->capacity);
    READY(j->newest_len <= j->record_max);
    READY(j->record_max <= j->in_size / 2);
    READY(j->loaded == IDEMI_NOWHERE || j->loaded < t->capacity);
    return NULL;
}

static inline const char *unready_slot(const idem_table *t, unsigned slot)
{
    const idem_slot *s = idemi_slot_at(t, slot);
    const idem_place *place = idemi_slot_place(t, slot);
    int claimed = idemi_keys_claimed(s);

    READY(idemi_slot_bodies(t) || s->terms < IDEMI_RETENTIONS);
    READY(ready_address(t, place->claim));
    READY(place->claim != IDEMI_NOWHERE || claimed);
    READY(!(s->state & IDEMI_FINISHED) ||
          (place->outcome != IDEMI_NOWHERE &&
           ready_address(t, place->outcome)));
#if IDEM_WIDE
    // What is not in the order of claims is its own neighbour there.
    READY((place->written.newer == slot) == (place->written.older == slot));
    READY((place->written.newer == slot) == (place->claim == IDEMI_NOWHERE));
#endif
    return NULL;
}
#endif

static inline const char *unready(const idem_table *t)
{
    const char *what = IDEMI_JOURNAL(t) ? unready_journal(t) : NULL;
    unsigned slot;

    READY(t->tidy <= t->capacity);
    for (slot = 0; IDEMI_JOURNAL(t) && slot < t->capacity && !what; slot++) {
        unsigned state = idemi_slot_at(t, slot)->state;
        if (!state)
            continue;
        READY(!(state & IDEMI_STALE) || state & IDEMI_CUT);
        READY(!(state & IDEMI_CUT) || !(state & IDEMI_ENDLESS));
        READY(t->links[slot].newer <= t->capacity);
        READY(t->links[slot].older <= t->capacity);
        what = unready_slot(t, slot);
    }
    return what;
}
#endif
