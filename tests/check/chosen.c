/* SPDX-License-Identifier: 0BSD */
/*
 * Keys chosen by an enemy (S9).  He knows the code, and crafts keys that all
 * collide in FNV-1a, in all of its 32 bits; with -DIDEM_HASH=IDEM_HASH_FNV the
 * table is as slow as he wants.  Under a keyed hash the same keys cost what
 * random ones do.
 *
 *     build/chosen KEYS           prints the cost; returns 1 on a miss
 *
 * The cost is processor time, the least of some turns that crafted and random
 * keys take by turns: under FNV-1a it is at least ten times as much, else less
 * than twice.
 */
#define _POSIX_C_SOURCE 200809L
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BITS = 15 };                 // of a key's number: so many blocks
enum { TURNS = 9 };

/* Crafting for FNV-1a, one step of which is hash = (hash ^ byte) * prime: the
   first four bytes make the hash 0, which a byte 0 leaves as it is, and five
   others do too.  Behind the key comes the scope's length, 0. */
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
    fputs("no memory\n", stderr);
    exit(2);
}

/* Nanoseconds to claim each key, and then to ask for it again; or what it was
   before if that is less */
static double cost(key *keys, uint32_t count, double before)
{
    idem_config config = { .capacity = count, .key_max = sizeof(key),
                           .secret = "sixteen secrets" };
    size_t size = IDEM_MEMORY_SIZE((size_t)count, sizeof(key), 0, 0);
    void *memory = allocate(size, 1);
    idem_table table;
    clock_t start;
    double ns;

    if (idem_open(&table, &config, memory, size, 0) < 0)
        exit(2);
    start = clock();
    for (uint32_t i = 0; i < 2 * count; i++) {
        idem_request rq = { .key = keys[i % count], .key_len = sizeof(key) };
        idem_claim claim;
        idem_reply reply;
        if (idem_begin(&table, &claim, &reply, &rq, 0) !=
            (i < count ? IDEM_EXECUTE : IDEM_BUSY))
            exit(2);
    }
    ns = 1e9 * (double)(clock() - start) / CLOCKS_PER_SEC / (2 * count);
    free(memory);
    return ns < before ? ns : before;
}

int main(int argc, char **argv)
{
    uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    key *chosen = (key *)allocate(count, sizeof *chosen);
    key *random = (key *)allocate(count, sizeof *random);
    double least_chosen = 1e18, least_random = 1e18;

    for (uint32_t i = 0; i < count && count <= 1u << BITS; i++) {
        craft(chosen[i], i);
        draw(random[i]);
    }
    for (int turn = 0; turn < TURNS; turn++) {
        least_random = cost(random, count, least_random);
        least_chosen = cost(chosen, count, least_chosen);
    }
    printf("%u keys: %.0f ns a command; crafted against FNV-1a, %.0f ns\n",
           (unsigned)count, least_random, least_chosen);
    free(chosen);
    free(random);
    // Under FNV-1a they must be that bad, or the others prove nothing.
#if IDEM_HASH == IDEM_HASH_FNV
    return least_chosen < 10 * least_random;
#else
    return least_chosen > 2 * least_random;
#endif
}
