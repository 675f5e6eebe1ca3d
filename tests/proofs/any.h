/* SPDX-License-Identifier: 0BSD */
/* For the programs that Eva runs: all values at once.  prove.sh removes from a
   copy of the header the functions that a program has itself. */
#include "__fc_builtin.h"

#define IDEM_STATIC
#define IDEM_HASH IDEM_HASH_FNV
#define IDEM_IMPLEMENTATION
#include "idem.h"

static uint32_t below(uint32_t end)
{
    return Frama_C_unsigned_int_interval(0, end - 1);
}

static uint32_t any(void)
{
    return Frama_C_unsigned_int_interval(0, UINT32_MAX);
}

#define ANY(object) Frama_C_make_unknown((char *)&(object), sizeof(object))

/* Hashes are any; WP proves that they stay in what they hash. */
/*@ requires hashed: len == 0 || \valid_read((char *)data + (0 .. len - 1));
    assigns *state \from *state; */
static void idemi_hash_update(idemi_hash_state *state, const void *data,
                              size_t len);

/* Closes a gap in the index: copies words in it to others, and frees one.  WP
   proves that it stays in the index; Eva fears that words overlap. */
static void idemi_index_remove(idem_table *t, unsigned slot)
{
    //@ assert slot: slot < t->capacity;
    while (below(2)) {
        idem_word word = t->index[below(IDEMI_WORDS * t->capacity)];
        t->index[below(IDEMI_WORDS * t->capacity)] = word;
    }
    t->index[below(IDEMI_WORDS * t->capacity)].slot = 0;
}
