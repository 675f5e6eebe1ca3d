/* SPDX-License-Identifier: 0BSD */
/*
 * Keys chosen by an enemy (S9).  He knows the code, and crafts keys that all
 * collide in FNV-1a, in all of its 32 bits; with -DIDEM_HASH=IDEM_HASH_FNV the
 * table is as slow as he wants.  Under a keyed hash the same keys cost what
 * random ones do.
 *
 *     build/chosen [KEYS]         prints the cost; returns 1 on a miss
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

enum { KEY = 12 };                  // bytes
enum { TAIL = 3 };                  // of them: the last, which make it collide
enum { TURNS = 9 };

#define TAILS (1u << (8 * TAIL))
#define FIRST UINT32_C(0x811c9dc5)  // the hash of nothing
#define TARGET UINT32_C(0x12345678) // the hash that all keys have

typedef unsigned char key[KEY];

static const char *const hash_name =
#if IDEM_HASH == IDEM_HASH_SIPHASH
    "SipHash";
#elif IDEM_HASH == IDEM_HASH_HALFSIPHASH
    "HalfSipHash";
#else
    "FNV-1a";
#endif

/* Memory, cleared; there always is some. */
static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (memory)
        return memory;
    fputs("no memory\n", stderr);
    exit(2);
}

static uint32_t draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state ^ *state >> 16;
}

static void draw_key(unsigned char *k, uint32_t *state)
{
    for (unsigned i = 0; i < KEY; i++)
        k[i] = (unsigned char)(draw(state) >> 8);
}

/* Crafting for FNV-1a: each of its steps can be undone.  From the hash that is
   wanted go back over every tail; what begins a key and has a hash that comes
   out of that has its tail.  A step is h' = (h ^ byte) * prime. */
static uint32_t step_back(uint32_t hash, unsigned byte)
{
    return hash * UINT32_C(0x359c449b) ^ byte;      // the prime's inverse
}

static uint32_t steps(uint32_t hash, const void *bytes, size_t len)
{
    const unsigned char *p = (const unsigned char *)bytes;

    for (; len > 0; len--)
        hash = (hash ^ *p++) * UINT32_C(0x01000193);    // the prime
    return hash;
}

/* Tails by the low bytes of the hash they start from, plus one. */
static uint32_t *all_tails(void)
{
    uint32_t *tails = (uint32_t *)allocate(TAILS, sizeof *tails);
    uint32_t end = step_back(TARGET, 0);    // the scope's length comes last

    for (uint32_t tail = 0; tail < TAILS; tail++) {
        uint32_t hash = end;
        for (unsigned i = TAIL; i-- > 0;)
            hash = step_back(hash, tail >> (8 * i) & 0xFF);
        tails[hash % TAILS] = tail + 1;
    }
    return tails;
}

/* Keys that all have the hash TARGET. */
static void craft(key *keys, uint32_t count)
{
    static const unsigned char front[KEY - TAIL - 4] = "front";
    uint32_t begun = steps(FIRST, front, sizeof front);
    uint32_t *tails = all_tails();
    uint32_t middle = 0;

    for (uint32_t n = 0; n < count; middle++) {
        unsigned char *k = keys[n] + sizeof front;
        uint32_t hash = steps(begun, &middle, sizeof middle);
        uint32_t tail = tails[hash % TAILS] - 1;
        memcpy(keys[n], front, sizeof front);
        memcpy(k, &middle, sizeof middle);
        for (unsigned i = 0; i < TAIL; i++)
            k[sizeof middle + i] = (unsigned char)(tail >> (8 * i));
        hash = steps(hash, k + sizeof middle, TAIL);
        n += steps(hash, "", 1) == TARGET;
    }
    free(tails);
}

/* Nanoseconds to claim each key, and then to ask for it again */
static double cost(key *keys, uint32_t count)
{
    idem_config config = { .capacity = count, .key_max = KEY,
                           .secret = "sixteen secrets" };
    size_t size = IDEM_MEMORY_SIZE((size_t)count, KEY, 0, 0);
    void *memory = allocate(size, 1);
    idem_table table;
    clock_t start;
    uint32_t i;

    if (idem_open(&table, &config, memory, size, 0) < 0)
        exit(2);
    start = clock();
    for (i = 0; i < 2 * count; i++) {
        idem_request rq = { .key = keys[i % count], .key_len = KEY };
        idem_claim claim;
        idem_reply reply = { .buffer = NULL };
        if (idem_begin(&table, &claim, &reply, &rq, 0) !=
            (i < count ? IDEM_EXECUTE : IDEM_BUSY))
            exit(2);
    }
    start = clock() - start;
    free(memory);
    return 1e9 * (double)start / CLOCKS_PER_SEC / (2 * count);
}

static double less(double a, double b)
{
    return a < b ? a : b;
}

int main(int argc, char **argv)
{
    uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 20000;
    uint32_t state = 1, i;
    key *chosen = (key *)allocate(count, sizeof *chosen);
    key *random = (key *)allocate(count, sizeof *random);
    double least_chosen = 1e18, least_random = 1e18;

    for (i = 0; i < count; i++)
        draw_key(random[i], &state);
    craft(chosen, count);
    for (i = 0; i < TURNS; i++) {
        least_random = less(least_random, cost(random, count));
        least_chosen = less(least_chosen, cost(chosen, count));
    }
    printf("chosen: %s, %u keys: %.0f ns a command; crafted against FNV-1a, "
           "%.0f ns\n", hash_name, (unsigned)count, least_random,
           least_chosen);
    free(chosen);
    free(random);
    // Under FNV-1a they must be that bad, or the others prove nothing.
#if IDEM_HASH == IDEM_HASH_FNV
    return least_chosen < 10 * least_random;
#else
    return least_chosen > 2 * least_random;
#endif
}
