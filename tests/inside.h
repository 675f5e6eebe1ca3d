/* SPDX-License-Identifier: 0BSD */
/*
 * What tests name that is private to idem.h; nothing else does.  To be included
 * after idem.h, even where that is implemented: there the functions are that
 * need it.
 */
#ifndef INSIDE_H
#define INSIDE_H

/* The sequence at which a journal's tokens are at their end: of 48 bits where
   numbers are wide, else of 32. */
static inline uint32_t inside_last_sequence(const idem_table *t)
{
    uint64_t last = (IDEM_WIDE ? UINT64_MAX >> 16 : UINT32_MAX) /
                    t->config->storage->sector_size;

    return last < UINT32_MAX ? (uint32_t)last : UINT32_MAX;
}

/* A journal that was just opened on blank storage goes on as if many sectors
   had been filled: the end of their numbers is years away. */
static inline void inside_start_far(idem_table *t, uint32_t sequence)
{
    t->journal->sequence = t->journal->head = sequence;
    t->journal->tail = sequence + 1;
    t->token = ((idem_token)sequence + 1) * t->config->storage->sector_size - 1;
}

/* Sets another sector as the oldest that is needed. */
static inline void inside_move_tail(idem_table *t, uint32_t by)
{
    t->journal->tail += by;
}

/* Changes a part of a journal's state; 0: there is no such part. */
static inline int inside_move_state(idem_table *t, unsigned part, uint32_t by)
{
    idem_journal *j = t->journal;

    switch (part) {
    case 0:  j->at += by; return 1;
    case 1:  j->end += by; return 1;
    case 2:  j->head += by; return 1;
    case 3:  j->rotated ^= 1; return 1;
    default: return 0;
    }
}

/* Changes a size that is copied from the configuration; 0: there is no more. */
static inline int inside_move_size(idem_table *t, unsigned part, int by)
{
    idem_journal *j = t->journal;

    switch (part) {
    case 0:  t->stride += (size_t)by; return 1;
    case 1:  j->sector_size += (uint32_t)by; return 1;
    case 2:  j->sector_count = (uint16_t)(j->sector_count + by); return 1;
    case 3:  j->granule = (uint16_t)(j->granule + by); return 1;
    default: return 0;
    }
}

/* Marks idle work as done, or as not done. */
static inline void inside_set_prepared(idem_table *t, int prepared)
{
    t->journal->prepared = prepared != 0;
}

/* Sets another sector as the one that is needed for an item; of the items
   after `capacity`: senders. */
static inline void inside_set_need(idem_table *t, uint32_t item, uint32_t sector)
{
    ((uint32_t *)(void *)(t->journal + 1))[item] = sector;
}

/* Takes a claim's token from its slot. */
static inline void inside_clear_token(idem_table *t, uint32_t slot)
{
    ((idem_slot *)(void *)(t->slots + slot * t->stride))->token = 0;
}

/* The number of dead sectors, which no call returns. */
static inline uint32_t inside_dead(const idem_table *t)
{
    const idem_journal *j = t->journal;

    return j->sector_count - (j->sequence + 1 - j->tail);
}

/* Logical time, which no call returns. */
static inline uint32_t inside_clock(const idem_table *t)
{
    return t->clock;
}

/* Logical time of the journal's newest record, which no call returns. */
static inline uint32_t inside_last_time(const idem_table *t)
{
    return t->journal->last_time;
}

/* The sequence of the sector that a callback of this table is called for. */
static inline uint32_t inside_sequence(const idem_table *t)
{
    return t->journal->sequence;
}

/* How far a sender is in its numbers, epoch and sequence; 0: not at all.  What
   is at or below it is refused, but no call returns it. */
uint64_t inside_floor(const idem_table *t, const char *scope);

/* .. and how far the next boot will know that it is; 0: nothing that it must. */
uint64_t inside_saved_floor(const idem_table *t, const char *scope);

/* How many keys a sender's entry counts; 0: none, or it has no entry. */
unsigned inside_counted(const idem_table *t, const char *scope);

/* What the check of a header (offset 0) or record would be, whose last four
   bytes it is. */
uint32_t inside_check(const idem_table *t, const uint8_t *bytes,
                      uint32_t sequence, uint32_t offset, uint32_t len);

/* What the index knows of a key, where in it the key belongs, and how many
   positions there are: no call returns which keys meet. */
unsigned inside_hash(const idem_table *t, const char *scope, const char *key);
unsigned inside_home(const idem_table *t, const char *scope, const char *key);
unsigned inside_positions(const idem_table *t);

/* The next claim's token is above this one: four thousand million claims would
   take too long. */
static inline void inside_set_token(idem_table *t, uint64_t token)
{
    t->token = token;
}

/* Flips a bit of a number in the table that is not promised, the n-th of them;
   0 if there are fewer.  Its pointers stay as they are: what is after a wrong
   one nobody can check. */
int inside_flip(idem_table *t, unsigned n, unsigned bit);

#ifdef IDEM_IMPLEMENTATION
/* Both hashes in pieces: what is promised, a fingerprint, is the strong one. */
static inline void inside_hash_init(idem_fingerprint_state *state,
                                    const idem_config *config, int strong)
{
    idemi_hash_init(&state->state, config, strong);
}

static inline void inside_hash_update(idem_fingerprint_state *state,
                                      const void *data, size_t len)
{
    idemi_hash_update(&state->state, data, len);
}

static inline uint64_t inside_hash_final(idem_fingerprint_state *state)
{
    return idemi_hash_final(&state->state);
}

/* What the index is asked with: the quick hash of scope and key. */
static inline uint32_t inside_hash_id(const idem_config *config,
                                      const void *scope, size_t scope_len,
                                      const void *key, size_t key_len)
{
    return idemi_hash_pair(config, (const unsigned char *)scope, scope_len,
                           (const unsigned char *)key, key_len);
}

uint32_t inside_check(const idem_table *t, const uint8_t *bytes,
                      uint32_t sequence, uint32_t offset, uint32_t len)
{
    return idemi_record_check(t->config, offset ? sequence : 0,
                               offset ^ t->journal->layout, bytes, len - 4);
}

/* `is` was made out of `was`, whose check is right where that stands: so is that
   of `is` then.  A header's sum is not in its check, nor right then.  (An enemy
   who writes the storage is none that is promised anything; a fuzzer is, whose
   bytes would else not be looked at.) */
static inline void inside_sign(const idem_table *t, uint8_t *was,
                               uint32_t was_sequence, uint32_t was_offset,
                               uint8_t *is, uint32_t sequence, uint32_t offset,
                               uint32_t len)
{
    uint32_t check;

    if (len < 8)
        return;
    if (!offset) {
        memset(was + IDEMI_SUM_AT, 0, 2);
        memset(is + IDEMI_SUM_AT, 0, 2);
    }
    memcpy(&check, was + len - 4, 4);
    check ^= inside_check(t, was, was_sequence, was_offset, len) ^
             inside_check(t, is, sequence, offset, len);
    memcpy(is + len - 4, &check, 4);
}

static const idem_sender *inside_sender(const idem_table *t, const char *scope)
{
    static const idem_sender none;
    const idem_sender *a = NULL;
    idem_table copy;

    copy = *t;                  // looking changes nothing in it
    if (t->config->senders)
        a = idemi_sender_find(
            &copy, idemi_sender_name(&copy, (const unsigned char *)scope,
                                     strlen(scope)));
    return a ? a : &none;
}

uint64_t inside_floor(const idem_table *t, const char *scope)
{
    const idem_sender *a = inside_sender(t, scope);

    return (uint64_t)a->floor[1] << 32 | a->floor[0];
}

uint64_t inside_saved_floor(const idem_table *t, const char *scope)
{
    return inside_sender(t, scope)->unsaved ? 0 : inside_floor(t, scope);
}

unsigned inside_counted(const idem_table *t, const char *scope)
{
    return (unsigned)inside_sender(t, scope)->keys;
}

unsigned inside_hash(const idem_table *t, const char *scope, const char *key)
{
    idemi_id id;

    id.scope = (const unsigned char *)scope;
    id.scope_len = strlen(scope);
    id.key = (const unsigned char *)key;
    id.key_len = strlen(key);
    idemi_index_hash_id(t->config, &id);
    return id.hash;
}

unsigned inside_home(const idem_table *t, const char *scope, const char *key)
{
    return idemi_index_home(t, (idem_short)inside_hash(t, scope, key));
}

unsigned inside_positions(const idem_table *t)
{
    return idemi_index_size(t);
}

int inside_flip(idem_table *t, unsigned n, unsigned bit)
{
    const unsigned number_bits = 8 * sizeof(idem_short);

    switch (n) {
    case 0: t->state_len ^= (uint16_t)(1u << bit % 16); return 1;
    case 1: t->free ^= (idem_short)(1u << bit % number_bits); return 1;
    case 2: t->capacity ^= 1u << bit; return 1;
    case 3: t->clock ^= 1u << bit; return 1;
    case 4: t->swept ^= 1u << bit; return 1;
    case 5: t->soonest ^= 1u << bit; return 1;
    case 6: t->token ^= 1u << bit; return 1;
    default: return 0;
    }
}
#endif

#endif /* INSIDE_H */
