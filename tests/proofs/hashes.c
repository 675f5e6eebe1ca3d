/* SPDX-License-Identifier: 0BSD */
/* What Frama-C's value analysis runs of the hashes (prove.sh): any bytes
 * in two pieces of all lengths that differ in how words are filled; and the
 * texts of all answers.  It follows all executions at once, with every value
 * that an argument may have; that it has no alarm says that none of them reads
 * or writes outside an object, overflows, shifts too far, or uses what was not
 * set.
 */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include "any.h"

static uint8_t bytes[128];

static void any_bytes(void)
{
    unsigned i;

    //@ loop unroll 128;
    for (i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)below(256);
}

/* The hash of two pieces. */
static void hash(uint32_t first, uint32_t second)
{
    idem_siphash_state sip;
    idem_halfsiphash_state half;

    idem_siphash_init(&sip, bytes, 2, 4);
    idem_siphash_update(&sip, bytes, first);
    idem_siphash_update(&sip, bytes + first, second);
    idem_siphash_final(&sip);
    idem_halfsiphash_init(&half, bytes, 2, 4, 64);
    idem_halfsiphash_update(&half, bytes, first);
    idem_halfsiphash_update(&half, bytes + first, second);
    idem_halfsiphash_final(&half);
    idem_siphash(bytes, 2, 4, bytes, first + second);
    idem_halfsiphash(bytes, 2, 4, 64, bytes, first + second);
    idem_fnv1a32_update(idem_fnv1a32(bytes, first), bytes, second);
    idem_fnv1a64_update(idem_fnv1a64(bytes, first), bytes, second);
}

int main(void)
{
    uint32_t first, second;

    any_bytes();
    //@ loop unroll 10;
    for (first = 0; first <= 9; first++)
        //@ loop unroll 18;
        for (second = 0; second <= 17; second++)
            hash(first, second);
    return *idem_text((int)any());
}
