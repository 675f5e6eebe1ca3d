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

/* The sequence of the sector that a callback of this table is called for. */
static inline uint32_t inside_sequence(const idem_table *t)
{
    return t->journal->sequence;
}

#ifdef IDEM_IMPLEMENTATION
/* What the check of a header (offset 0) or record would be, whose last four
   bytes it is. */
static inline uint32_t inside_check(const idem_table *t, const uint8_t *bytes,
                                    uint32_t sequence, uint32_t offset,
                                    uint32_t len)
{
    return idemi_storage_check(t, offset ? sequence : 0, offset, bytes,
                               len - 4);
}

/* `is` was made out of `was`, whose check is right where that stands: so is that
   of `is` then.  (An enemy who writes the storage is none that is promised
   anything; a fuzzer is, whose bytes would else not be looked at.) */
static inline void inside_seal(const idem_table *t, const uint8_t *was,
                               uint32_t was_sequence, uint32_t was_offset,
                               uint8_t *is, uint32_t sequence, uint32_t offset,
                               uint32_t len)
{
    uint32_t check;

    if (len < 8)
        return;
    memcpy(&check, was + len - 4, 4);
    check ^= inside_check(t, was, was_sequence, was_offset, len) ^
             inside_check(t, is, sequence, offset, len);
    memcpy(is + len - 4, &check, 4);
}
#endif

#endif /* INSIDE_H */
