/* SPDX-License-Identifier: 0BSD */
/* FNV-1a of 64 bits with the length after the message, and that of 32 bits. */
#undef IDEM_HASH
#define IDEM_HASH 3
#include "hash.h"

#include "vectors_fnv.h"

static const size_t vectors = COUNT(fnv_vectors);

// The hash of a message, and of eight bytes with its length.
static uint64_t with_length(uint64_t hash, size_t len)
{
    for (int i = 0; i < 8; i++) {
        hash ^= (uint64_t)len >> 8 * i & 0xff;
        hash *= UINT64_C(1099511628211);
    }
    return hash;
}

static struct vector vector_at(size_t i)
{
    struct vector v = { (const uint8_t *)fnv_vectors[i].text,
                        fnv_vectors[i].len,
                        with_length(fnv_vectors[i].fnv1a64, fnv_vectors[i].len),
                        fnv_vectors[i].fnv1a32 };

    return v;
}
