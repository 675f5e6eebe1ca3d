/* SPDX-License-Identifier: 0BSD */
/*
 * Keys chosen by an enemy (S9).  He knows the code, and crafts keys that all
 * collide in FNV-1a, in all of its 32 bits; with -DIDEM_HASH=IDEM_HASH_FNV the
 * table is as slow as he wants.  Under a keyed hash the same keys may cost at
 * most twice what random ones do.  And who knows the secret crafts such keys
 * for a keyed hash, too; under other secrets they cost what random ones do.
 *
 *     build/chosen [KEYS]         prints the cost; returns 1 on a miss
 *
 * The cost is the number of words of the index that a lookup looks at: exact,
 * and the same on every machine.
 */
#define IDEM_STATIC
#define IDEM_IMPLEMENTATION
#include "idem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY = 12 };                  // bytes
enum { TAIL = 3 };                  // of them: the last, which make it collide
enum { SEED = 1 };

#define TAILS (1u << (8 * TAIL))
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

/* >>crafting FNV-1a: each of its steps can be undone.  From the hash that is
   wanted go back over every tail; what begins a key and has a hash that comes
   out of that has its tail.  A step is h' = (h ^ byte) * prime. */
static uint32_t step_back(uint32_t hash, unsigned byte)
{
    return hash * UINT32_C(0x359c449b) ^ byte;      // the prime's inverse
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
    uint32_t begun = idem_fnv1a32(front, sizeof front);
    uint32_t *tails = all_tails();
    uint32_t middle = 0;

    for (uint32_t n = 0; n < count; middle++) {
        unsigned char *k = keys[n] + sizeof front;
        uint32_t hash = idem_fnv1a32_update(begun, &middle, sizeof middle);
        uint32_t tail = tails[hash % TAILS] - 1;
        memcpy(keys[n], front, sizeof front);
        memcpy(k, &middle, sizeof middle);
        for (unsigned i = 0; i < TAIL; i++)
            k[sizeof middle + i] = (unsigned char)(tail >> (8 * i));
        hash = idem_fnv1a32_update(hash, k + sizeof middle, TAIL);
        n += idem_fnv1a32_update(hash, "", 1) == TARGET;
    }
    free(tails);
}

/* ---------------------------------------------------------- >>table  cost */

typedef struct cost {
    uint64_t lookups;
    uint64_t words;                 // that all of them look at
    uint32_t longest;               // by one of them
} cost;

/* Words from the key's home to its own, or to the empty one if it has none. */
static uint32_t probes(idem_table *t, const idem_request *rq)
{
    idem_number hash = idemi_index_hash(
        idemi_hash_id(t->config, NULL, 0, rq->key, rq->key_len));
    unsigned slot = idemi_index_find(t, hash, rq);
    unsigned at = idemi_index_home(t, hash);
    uint32_t count = 1;

    for (; idemi_index_slot(t, at) != slot; at = idemi_index_next(t, at))
        count++;
    return count;
}

/* Adds the cost of looking up every key, once before it comes and once when all
   are there. */
static void measure(cost *c, key *keys, uint32_t count,
                    const uint8_t secret[16])
{
    idem_config config = { .capacity = count, .key_max = KEY };
    size_t size = IDEM_MEMORY_SIZE((size_t)count, KEY, 0, 0);
    void *memory = allocate(size, 1);
    idem_table table;

    memcpy(config.secret, secret, sizeof config.secret);
    if (idem_open(&table, &config, memory, size, 0) < 0)
        exit(2);
    for (uint32_t i = 0; i < 2 * count; i++) {
        idem_request rq = { .key = keys[i % count], .key_len = KEY };
        idem_claim claim;
        idem_reply reply = { .buffer = NULL };
        uint32_t words = probes(&table, &rq);
        c->words += words;
        c->lookups++;
        if (words > c->longest)
            c->longest = words;
        if (i < count &&
            idem_begin(&table, &claim, &reply, &rq, 0) != IDEM_EXECUTE)
            exit(2);
    }
    free(memory);
}

static void print(const char *what, uint32_t count, cost c)
{
    printf("chosen: %-11s %-24s %7u keys, %8.2f words a lookup, at most %u\n",
           hash_name, what, (unsigned)count,
           (double)c.words / (double)c.lookups, (unsigned)c.longest);
}

#if IDEM_HASH != IDEM_HASH_FNV
/* Whether the chosen keys cost more than twice what the random ones do. */
static int dear(cost chosen, cost random)
{
    return chosen.words * random.lookups > 2 * random.words * chosen.lookups ||
           chosen.longest > 2 * random.longest;
}

/* Keys whose home is one of a few, found by trying, by who knows the secret. */
static void find_neighbours(key *keys, uint32_t count,
                            const uint8_t secret[16])
{
    idem_config config = { .capacity = count };
    uint32_t state = SEED + 2;

    memcpy(config.secret, secret, sizeof config.secret);
    for (uint32_t n = 0; n < count;) {
        draw_key(keys[n], &state);
        n += idemi_hash_id(&config, NULL, 0, keys[n], KEY) >> 21 == 0;
    }
}

/* The cost under secrets other than the one that the keys were crafted for: of
   a hundred, for the longest search of so few keys is chance. */
static cost measure_others(key *keys, uint32_t count)
{
    uint8_t other[16] = "another secret!";
    cost c = { 0, 0, 0 };

    for (other[15] = 0; other[15] < 100; other[15]++)
        measure(&c, keys, count, other);
    return c;
}

/* What is so with a secret that is known, and with others. */
static int judge_secret(key *keys, const uint8_t secret[16])
{
    enum { COUNT = 1000 };
    uint32_t state = SEED + 1;
    cost random, known = { 0, 0, 0 }, others;

    for (uint32_t i = 0; i < COUNT; i++)
        draw_key(keys[i], &state);
    random = measure_others(keys, COUNT);
    print("random keys, 100 secrets", COUNT, random);
    find_neighbours(keys, COUNT, secret);
    measure(&known, keys, COUNT, secret);
    print("by who knows the secret", COUNT, known);
    others = measure_others(keys, COUNT);
    print("the same, other secrets", COUNT, others);
    return !dear(known, random) || dear(others, random);
}
#endif

int main(int argc, char **argv)
{
    static const uint8_t secret[16] = "sixteen secrets";
    uint32_t count = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 100000;
    uint32_t state = SEED;
    key *keys = (key *)allocate(count, sizeof *keys);
    cost random = { 0, 0, 0 }, chosen = { 0, 0, 0 };
    int failed;

    printf("chosen: %-11s seed %d\n", hash_name, SEED);
    for (uint32_t i = 0; i < count; i++)
        draw_key(keys[i], &state);
    measure(&random, keys, count, secret);
    print("random keys", count, random);
    craft(keys, count);
    measure(&chosen, keys, count, secret);
    print("crafted against FNV-1a", count, chosen);
#if IDEM_HASH == IDEM_HASH_FNV
    // They must be as bad as that, or the others prove nothing.
    failed = chosen.words < (uint64_t)count * (count / 2);
#else
    failed = dear(chosen, random) || judge_secret(keys, secret);
#endif
    free(keys);
    return failed;
}
