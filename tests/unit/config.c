/* SPDX-License-Identifier: 0BSD */
/*
 * Shows which configurations a table is opened with, and that idem_explain says
 * in words what is wrong with another, each thing in words of its own, where
 * idem_open only says that something is; and that what a table takes is known
 * when it is compiled: IDEM_MEMORY_SIZE, IDEM_JOURNAL_MEMORY_SIZE and
 * IDEM_SECTORS are constant expressions, and what idem_open asks for.
 * What idem_explain says of a journal is in journal_opening.c.
 */
#include "fixture.h"

static int take(void *ctx)
{
    (void)ctx;
    return 0;
}

static void give(void *ctx)
{
    (void)ctx;
}

/* Blank storage of any size, which is only read. */
static int read_blank(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx, (void)at;
    memset(dst, 0xFF, len);
    return 0;
}

static int refuse_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx, (void)at, (void)src, (void)len;
    return -1;
}

static int refuse_erase(void *ctx, uint32_t sector)
{
    (void)ctx, (void)sector;
    return -1;
}

static const idem_storage blank = {
    .read = read_blank, .prog = refuse_prog, .erase = refuse_erase,
    .sector_size = 4096, .sector_count = 16, .prog_size = 8, .erased = 0xFF,
};

/* ------------------------------------------------------------- what is wrong */

enum { SECRET = 3, STORAGE = 20 };      // of the mistakes

/* Makes the n-th mistake; returns which it is, and 0 if there are no more.
   Those of one kind may be said in the same words. */
static int spoil(unsigned n, idem_config *c, idem_storage *s)
{
    switch (n) {
    case 0: c->capacity = 0; return 1;
    case 1: c->capacity = IDEM_CAPACITY_MAX + 1; return 1;
    case 2: c->capacity = UINT32_MAX; return 1;
    case 3: c->key_max = 0; return 2;
    case 4: c->key_max = 300; return 2;
    case 5: memset(c->secret, 0, 16); return SECRET;
    case 6: memset(c->secret, 0, 8); return SECRET;
    case 7: memset(c->secret + 8, 0, 8); return SECRET;
    case 8: c->lease_ms = IDEM_LEASE_MAX + 1; return 4;
    case 9: c->lease_ms = IDEM_LEASE_NONE - 1; return 4;
    case 10: c->retention_ms = IDEM_RETENTION_MAX + 1; return 5;
    case 11: c->retention_ms = UINT32_MAX; return 5;
    case 12: c->full = 2; return 6;
    case 13: c->full = 255; return 6;
    case 14: c->durability = 2; return 7;
    case 15: c->durability = 255; return 7;
    case 16: c->lock = take; return 8;
    case 17: c->unlock = give; return 8;
    case 18: c->max_attempts = 300; return 9;
    case 19: c->senders = IDEM_SENDERS_MAX + 1; return 10;
    case 20: c->senders = UINT32_MAX; return 10;
    case 21: c->quota = 1; return 11;           // of nobody
    case 22: s->read = NULL; return STORAGE;
    case 23: s->prog = NULL; return STORAGE;
    case 24: s->erase = NULL; s->erasing = take; return STORAGE;
    case 25: s->prog_size = 0; return STORAGE + 1;
    case 26: s->prog_size = 3; s->sector_size = 768; return STORAGE + 1;
    case 27: s->prog_size = 512; s->sector_size = 65536; return STORAGE + 1;
    case 28: s->prog_size = 8; s->sector_size = 516; return STORAGE + 2;
    case 29: s->sector_size = 0; return STORAGE + 2;
    case 30: s->sector_size = 262144 + 256; return STORAGE + 2;
    case 31: s->sector_count = 0; return STORAGE + 3;
    case 32: s->sector_count = 3; return STORAGE + 3;
    case 33: s->sector_count = 65536; return STORAGE + 3;
    case 34:
        s->sector_size = 262144;
        s->sector_count = 65535;
        return STORAGE + 4;
    }
    return 0;
}

/* A configuration with the n-th mistake, in RAM or with storage.  Returns 0 if
   there are no more, less if it is none: FNV-1a has no secret. */
static int wrong(const fixture *f, unsigned n, idem_config *c, idem_storage *s,
                 int in_ram)
{
    int what;

    *c = f->config;
    *s = blank;
    what = spoil(n, c, s);
    c->storage = in_ram ? NULL : s;
    return (what == SECRET && IDEM_HASH == IDEM_HASH_FNV) ||
           (what >= STORAGE && in_ram) ? -1 : what;
}

TEST(what_cannot_be_is_refused_and_explained_in_words_of_its_own)
{
    idem_config c, other;
    idem_storage s, t;
    int what, another;

    assert_non_null(idem_explain(NULL));
    for (unsigned n = 0; (what = wrong(f, n / 2, &c, &s, n % 2)) != 0; n++) {
        const char *words = idem_explain(&c);
        if (what < 0) {
            assert_true(c.storage || !words);
            continue;
        }
        unit_misuse = 0;                        // to explain it is none
        assert_non_null(words);
        assert_true(strlen(words) > 0);
        for (unsigned m = 0; m < n / 2; m++) {
            another = wrong(f, m, &other, &t, 0);
            if (another > 0 && another != what)
                assert_string_not_equal(words, idem_explain(&other));
        }
        is(unit_misuse, 0);
        is(idem_open(&f->table, &c, f->memory, 100000, 0), IDEM_E_ARG);
        is(unit_misuse, 1);
        is(idem_format(&f->table, &c, f->memory, 100000, 0), IDEM_E_ARG);
        is(unit_misuse, 2);
    }
}

/* There are no words for it, and there would be memory. */
static void is_right(fixture *f)
{
    assert_null(idem_explain(&f->config));
    is(idem_open(&f->table, &f->config, NULL, 0, 0), IDEM_E_MEMORY);
}

TEST(what_is_at_its_limit_is_right)
{
    idem_config *c = &f->config;

    is_right(f);
    c->lock = take;
    c->unlock = give;
    c->full = IDEM_EVICT_OLDEST;
    c->durability = IDEM_BATCH;
    c->lease_ms = IDEM_LEASE_NONE;
    c->retention_ms = IDEM_RETENTION_MAX;
    c->capacity = IDEM_CAPACITY_MAX;
    c->key_max = c->max_attempts = 255;
    c->senders = IDEM_SENDERS_MAX;
    c->quota = UINT32_MAX;
    c->response_max = c->state_max = 65535;
    is_right(f);
    c->lease_ms = IDEM_LEASE_MAX;
    is_right(f);
    memset(c, 0, sizeof *c);
    c->capacity = c->key_max = 1;
    c->secret[7] = c->secret[15] = 0x80;
    is_right(f);
}

TEST(a_storage_at_its_limit_is_right)
{
    static const struct { uint32_t size, count; uint16_t granule; } rows[] = {
        { 262144, 8192, 256 }, { 32768, 65535, 256 },
    };
    static idem_storage s;          // config.storage points to it

    s = blank;
    f->config.storage = &s;
    for (size_t i = 0; i < COUNT(rows); i++) {
        s.sector_size = rows[i].size;
        s.sector_count = rows[i].count;
        s.prog_size = rows[i].granule;
        is_right(f);
    }
}

/* HalfSipHash takes one half for the index, the other for fingerprints. */
TEST(s9_a_secret_with_a_zero_half_is_refused_where_it_is_used)
{
    for (int i = -1; i < 8; i++)
        for (int j = -1; j < 8; j++) {
            int keyed = IDEM_HASH != IDEM_HASH_FNV;
            memset(f->config.secret, 0, sizeof f->config.secret);
            if (i >= 0)
                f->config.secret[i] = 1;
            if (j >= 0)
                f->config.secret[8 + j] = 1;
            is(idem_open(&f->table, &f->config, NULL, 0, 0),
               keyed && (i < 0 || j < 0) ? IDEM_E_ARG : IDEM_E_MEMORY);
        }
}

/* -------------------------------------------------------------- what it takes */

// Constant also in the sense of the compiler: these would not compile.
static uint32_t memory[IDEM_MEMORY_SIZE(64, 24, 16, 0) / 4];
static uint32_t journal_memory[IDEM_JOURNAL_MEMORY_SIZE(64, 24, 16, 4, 8) / 4];
typedef char sectors_are_enough
    [IDEM_SECTORS(64, 24, 16, 4, 4096, 8) <= 16 ? 1 : -1];
typedef char sectors_too_small_are_told
    [IDEM_SECTORS(64, 24, 16, 4, 64, 8) == 0 ? 1 : -1];
enum { AS_A_NUMBER = IDEM_SECTORS(1000, 255, 255, 255, 65536, 256) };

TEST(constants_open_what_they_are_for)
{
    idem_storage storage = blank;

    storage.sector_count = IDEM_SECTORS(64, 24, 16, 4, 4096, 8);
    f->config.capacity = 64;
    f->config.state_max = 0;
    is(idem_open(&f->table, &f->config, memory, sizeof memory, 0), IDEM_OK);
    f->config.state_max = 4;
    f->config.storage = &storage;
    is(idem_open(&f->table, &f->config, journal_memory, sizeof journal_memory,
                 0),
       IDEM_OK);
    assert_true(AS_A_NUMBER > 4);
}

// A random configuration with a journal.
typedef struct sizing {
    idem_config config;
    idem_storage storage;
    size_t bytes;               // what the macros say
    uint32_t sectors;
} sizing;

static uint32_t between(uint32_t *seed, uint32_t least, uint32_t most)
{
    return least + dice(seed) % (most - least + 1);
}

/* .. and what the macros say of it. */
static void measure(sizing *s)
{
    const idem_config *c = &s->config;
    uint16_t granule = s->storage.prog_size;

    s->sectors = IDEM_SECTORS(c->capacity, c->key_max, c->response_max,
                              c->state_max, s->storage.sector_size, granule);
    s->bytes = IDEM_JOURNAL_MEMORY_SIZE(c->capacity, c->key_max,
                                        c->response_max, c->state_max,
                                        granule);
}

static void draw(sizing *s, uint32_t *seed)
{
    uint16_t granule = (uint16_t)(1u << dice(seed) % 9);
    uint32_t size = (UINT32_C(1) << between(seed, 8, 18)) /
                    (1 + dice(seed) % 3);
    idem_config *c = &s->config;

    memset(s, 0, sizeof *s);
    s->storage = blank;
    s->storage.sector_count = 4;
    s->storage.sector_size = size < granule ? granule : size - size % granule;
    s->storage.prog_size = granule;
    c->capacity = between(seed, 1, 1u << between(seed, 0, 11));
    c->key_max = (uint16_t)between(seed, 1, 255);
    c->response_max = (uint16_t)(dice(seed) >> between(seed, 16, 32) % 32);
    c->state_max = (uint16_t)(dice(seed) >> between(seed, 16, 32) % 32);
    c->secret[0] = c->secret[8] = 1;
    c->storage = &s->storage;
    measure(s);
}

/* What idem_open answers, given so many bytes.  What is no table is closed, and
   that the sectors are too few is told. */
static int open_in(const sizing *s, idem_table *table, size_t size)
{
    void *bytes = malloc(size);
    int result;

    assert_non_null(bytes);
    result = idem_open(table, &s->config, bytes, size, 0);
    if (result)
        is(idem_maintain(table, 0), IDEM_E_ARG);
    if (result != IDEM_E_MEMORY)
        is(idem_explain(&s->config) != NULL, result == IDEM_E_SPACE);
    free(bytes);
    return result;
}

TEST(what_idem_open_asks_for_is_what_the_macros_say)
{
    static sizing s;            // config.storage points into it
    uint32_t seed = 23, small = 0, few = 0, enough = 0;

    for (int i = 0; i < 1000; i++) {
        idem_config *c = &s.config;
        idem_table table;
        size_t size;
        int result;
        draw(&s, &seed);
        c->storage = NULL;
        size = IDEM_MEMORY_SIZE(c->capacity, c->key_max, c->response_max,
                                c->state_max);
        is(size % 4, 0);
        is(open_in(&s, &table, size - 1), IDEM_E_MEMORY);
        is(table.needed, size);
        is(open_in(&s, &table, size), IDEM_OK);
        c->storage = &s.storage;
        is(open_in(&s, &table, s.bytes - 1), IDEM_E_MEMORY);
        is(table.needed, s.bytes);
        result = open_in(&s, &table, s.bytes);
        small += s.sectors == 0;
        few += s.sectors > 4;
        is(result, s.sectors == 4 ? IDEM_OK : IDEM_E_SPACE);
        if (s.sectors == 4)
            continue;
        is(table.needed, s.sectors);
        if (!s.sectors || s.sectors > 65535 ||
            (uint64_t)s.sectors * s.storage.sector_size > 20000000)
            continue;
        // One less is not enough, and so many are.
        s.storage.sector_count = s.sectors - 1;
        is(open_in(&s, &table, s.bytes), IDEM_E_SPACE);
        is(table.needed, s.sectors);
        if ((uint64_t)s.sectors * s.storage.sector_size > 100000)
            continue;
        s.storage.sector_count = s.sectors;
        is(open_in(&s, &table, s.bytes), IDEM_OK);
        enough++;
    }
    assert_true(small > 30 && few > 100 && enough > 3);
}

#if IDEM_WIDE
TEST(a_capacity_that_no_ring_holds_is_told_so)
{
    static sizing s;
    uint32_t seed = 1;
    idem_table table;

    draw(&s, &seed);
    s.storage.sector_size = 512;
    s.storage.prog_size = 1;
    s.config.capacity = 300000;
    s.config.key_max = 8;
    s.config.response_max = s.config.state_max = 0;
    measure(&s);
    assert_true(s.sectors > 65535);
    is(open_in(&s, &table, s.bytes), IDEM_E_SPACE);
    is(table.needed, s.sectors);
}
#endif
