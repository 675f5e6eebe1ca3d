/* SPDX-License-Identifier: 0BSD */
/*
 * Keys chosen by an attacker (S9).  He knows the code, and crafts keys that all
 * collide in FNV-1a, in all of its 32 bits; with -DIDEM_HASH=IDEM_HASH_FNV the
 * table is as slow as he wants.  Under a keyed hash the same keys cost what
 * random ones do.
 *
 *     build/chosen KEYS           prints the cost; returns 1 on a miss
 *
 * The cost is a number of basic blocks (blocks.h).  Under FNV-1a it is at least
 * ten times as much, else less than a tenth more.
 */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"
#include "blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 15 };                 // of a key's number; a block for each

/* Crafting for FNV-1a, one step of which is hash = (hash ^ byte) * prime: the
   first four bytes make the hash 0, which a byte 0 leaves as it is, and five
   others do too.  After the key comes the scope's length, 0. */
static const unsigned char to_zero[] = { 0xCC, 0x24, 0x31, 0xC4 };
static const unsigned char back_to_zero[] = { 0x7C, 0x00, 0x94, 0x24, 0x34 };

typedef unsigned char key[sizeof to_zero + BITS * sizeof back_to_zero];

static void craft(unsigned char *k, uint32_t number)
{
    memset(k, 0, sizeof(key));
    memcpy(k, to_zero, sizeof to_zero);
    for (k += sizeof to_zero; number; number /= 2) {
        if (number % 2)
            memcpy(k, back_to_zero, sizeof back_to_zero);
        k += sizeof back_to_zero;
    }
}

static void draw(unsigned char *k)
{
    for (size_t i = 0; i < sizeof(key); i++)
        k[i] = (unsigned char)(rand() >> 4);
}

/* Memory, cleared; there always is some. */
static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (memory)
        return memory;
    fputs("out of memory\n", stderr);
    exit(2);
}

/* Basic blocks to claim each key, and then to ask for it again, of one call */
static double cost(key *keys, uint32_t count)
{
    idem_config config = { .capacity = count, .key_max = sizeof(key),
                           .secret = "sixteen secrets" };
    size_t size = IDEM_MEMORY_SIZE((size_t)count, sizeof(key), 0, 0);
    void *memory = allocate(size, 1);
    idem_table table;
    uint64_t start;

    if (idem_open(&table, &config, memory, size, 0) < 0)
        exit(2);
    start = blocks;
    for (uint32_t i = 0; i < 2 * count; i++) {
        idem_request rq = { .key = keys[i % count], .key_len = sizeof(key) };
        idem_claim claim;
        idem_reply reply;
        if (idem_begin(&table, &claim, &reply, &rq, 0) !=
            (i < count ? IDEM_EXECUTE : IDEM_BUSY))
            exit(2);
    }
    free(memory);
    return (double)(blocks - start) / (2 * count);
}

int main(int argc, char **argv)
{
    uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    key *chosen = (key *)allocate(count, sizeof *chosen);
    key *random = (key *)allocate(count, sizeof *random);
    double of_chosen, of_random;

    for (uint32_t i = 0; i < count && count <= 1u << BITS; i++) {
        craft(chosen[i], i);
        draw(random[i]);
    }
    of_random = cost(random, count);
    of_chosen = cost(chosen, count);
    printf("%u keys: %.1f basic blocks a command; crafted against FNV-1a, "
           "%.1f\n", (unsigned)count, of_random, of_chosen);
    free(chosen);
    free(random);
    // Under FNV-1a they must be that bad, or the others prove nothing.
#if IDEM_HASH == IDEM_HASH_FNV
    return of_chosen < 10 * of_random;
#else
    return of_chosen > 1.1 * of_random;
#endif
}
