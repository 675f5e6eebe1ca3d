/* SPDX-License-Identifier: 0BSD */
/* What tests name that is private to idem.h; nothing else does. */
#ifndef INSIDE_H
#define INSIDE_H

/* A journal that was just opened on blank storage goes on as if so many sectors
   had been filled: numbers near their end are years away. */
static inline void inside_start_far(idem_table *t, uint32_t sequence)
{
    t->journal->sequence = t->journal->tried = sequence;
    t->journal->before = sequence;
    t->journal->tail = sequence + 1;
    t->token = ((uint64_t)sequence + 1) * t->journal->sector_size - 1;
}

/* Logical time, which no call tells. */
static inline uint32_t inside_clock(const idem_table *t)
{
    return t->clock;
}

#endif /* INSIDE_H */
