/* SPDX-License-Identifier: 0BSD */
/* SipHash-2-4, and the low half of SipHash-1-3. */
#undef IDEM_HASH
#define IDEM_HASH 1
#include "hash.h"

#include "vectors_siphash.h"

static const size_t vectors = COUNT(siphash_2_4_64);

static struct vector vector_at(size_t i)
{
    struct vector v = { counting, i, siphash_2_4_64[i],
                        (uint32_t)siphash_1_3_64[i] };

    return v;
}

static const uint8_t secret[16] = {
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
};
