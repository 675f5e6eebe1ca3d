/* SPDX-License-Identifier: 0BSD */
/* HalfSipHash-2-4 of 64 bits, and HalfSipHash-1-3 of 32. */
#undef IDEM_HASH
#define IDEM_HASH 2
#include "hash.h"

#include "vectors_siphash.h"

static const size_t vectors = COUNT(halfsiphash_2_4_64);

static struct vector vector_at(size_t i)
{
    struct vector v = { counting, i, halfsiphash_2_4_64[i],
                        halfsiphash_1_3_32[i] };

    return v;
}

// Each hash is made with a half of it, and the vectors have one key.
static const uint8_t secret[16] = {
    0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7,
};
