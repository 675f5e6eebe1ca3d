/* SPDX-License-Identifier: 0BSD */
/* What Frama-C's value analysis runs of a hash (prove.sh): any bytes in two
 * pieces of all lengths that differ in how words are filled, with any secret;
 * and the texts of all answers.  It follows all executions at once, with every
 * value that an argument may have; that it has no alarm says that none of them
 * reads or writes outside an object, overflows, shifts too far, or uses what
 * was not set.
 */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "any.h"

static idem_config config;
static uint8_t bytes[32];

static void any_bytes(void)
{
    unsigned i;

    //@ loop unroll 32;
    for (i = 0; i < sizeof bytes; i++)
        bytes[i] = any_byte();
    //@ loop unroll 16;
    for (i = 0; i < sizeof config.secret; i++)
        config.secret[i] = any_byte();
}

/* The hash of two pieces. */
static void hash(uint32_t first, uint32_t second, int strong)
{
    idem_fingerprint_state state;

    idemi_hash_init(&state, &config, strong);
    idemi_hash_update(&state, bytes, first);
    idemi_hash_update(&state, bytes + first, second);
    idemi_hash_final(&state);
}

int main(void)
{
    uint32_t first, second;

    any_bytes();
    //@ loop unroll 10;
    for (first = 0; first <= 9; first++)
        //@ loop unroll 18;
        for (second = 0; second <= 17; second++) {
            hash(first, second, 0);
            hash(first, second, 1);
        }
    return *idem_text((int)any());
}
