/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that what a table takes is known when it is compiled: IDEM_MEMORY_SIZE,
 * IDEM_JOURNAL_MEMORY_SIZE and IDEM_SECTORS are constant expressions, and what
 * idem_open asks for, whatever the configuration.
 */
#include "fixture.h"

// Constant also in the sense of the compiler: these would not compile.
static uint32_t memory[IDEM_MEMORY_SIZE(64, 24, 16, 0) / 4];
static uint32_t journal_memory[IDEM_JOURNAL_MEMORY_SIZE(64, 24, 16, 4, 8) / 4];
typedef char sectors_are_enough
    [IDEM_SECTORS(64, 24, 16, 4, 4096, 8) <= 16 ? 1 : -1];
typedef char sectors_too_small_are_told
    [IDEM_SECTORS(64, 24, 16, 4, 64, 8) == 0 ? 1 : -1];
enum { AS_A_NUMBER = IDEM_SECTORS(1000, 255, 255, 255, 65536, 256) };

/* Blank storage of any size, which is only read. */
static int read_blank(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx;
    (void)at;
    memset(dst, 0xFF, len);
    return 0;
}

static int refuse_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    return ctx || at || src || len ? -1 : -2;
}

static int refuse_erase(void *ctx, uint32_t sector)
{
    return ctx || sector ? -1 : -2;
}

static const idem_storage blank = {
    .read = read_blank, .prog = refuse_prog, .erase = refuse_erase,
    .sector_size = 4096, .sector_count = 4, .prog_size = 8, .erased = 0xFF,
};

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

static void draw(sizing *s, uint32_t *seed)
{
    uint16_t granule = (uint16_t)(1u << dice(seed) % 9);
    uint32_t size = (UINT32_C(1) << between(seed, 8, 18)) /
                    (1 + dice(seed) % 3);
    idem_config *c = &s->config;

    memset(s, 0, sizeof *s);
    s->storage = blank;
    s->storage.sector_size = size < granule ? granule : size - size % granule;
    s->storage.prog_size = granule;
    c->capacity = between(seed, 1, 1u << between(seed, 0, 11));
    c->key_max = (uint16_t)between(seed, 1, 255);
    c->response_max = (uint16_t)(dice(seed) >> between(seed, 16, 32) % 32);
    c->state_max = (uint16_t)(dice(seed) >> between(seed, 16, 32) % 32);
    c->secret[0] = c->secret[8] = 1;
    c->storage = &s->storage;
    s->sectors = IDEM_SECTORS(c->capacity, c->key_max, c->response_max,
                              c->state_max, s->storage.sector_size, granule);
    s->bytes = IDEM_JOURNAL_MEMORY_SIZE(c->capacity, c->key_max,
                                        c->response_max, c->state_max,
                                        granule);
}

/* What idem_open answers, given so many bytes. */
static int open_in(const sizing *s, idem_table *table, size_t size)
{
    void *bytes = malloc(size);
    int result;

    assert_non_null(bytes);
    result = idem_open(table, &s->config, bytes, size, 0);
    free(bytes);
    return result;
}

TEST(what_idem_open_asks_for_is_what_the_macros_say)
{
    static sizing s;            // config.storage points into it
    uint32_t seed = 23, small = 0, few = 0, enough = 0;

    skip_without_journal();
    for (int i = 0; i < 1000; i++) {
        idem_table table;
        int result;
        draw(&s, &seed);
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

TEST(bytes_without_a_journal_are_what_the_macro_says)
{
    static sizing s;
    const idem_config *c = &s.config;
    uint32_t seed = 29;

    for (int i = 0; i < 1000; i++) {
        idem_table table;
        size_t size;
        draw(&s, &seed);
        s.config.storage = NULL;
        size = IDEM_MEMORY_SIZE(c->capacity, c->key_max, c->response_max,
                                c->state_max);
        is(size % 4, 0);
        is(open_in(&s, &table, size - 1), IDEM_E_MEMORY);
        is(table.needed, size);
        is(open_in(&s, &table, size), IDEM_OK);
    }
}
