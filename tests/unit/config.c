/* SPDX-License-Identifier: 0BSD */
/*
 * Shows which configurations idem_open takes, and that idem_explain has a text
 * of its own for each fault of another; and that the size of a table is known
 * when it is compiled: IDEM_MEMORY_SIZE, IDEM_JOURNAL_MEMORY_SIZE and
 * IDEM_SECTORS are constant expressions, and idem_open needs as much.  The
 * texts of idem_explain about a journal are in journal_opening.c.
 */
#include "scenario.h"

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

static const idem_storage blank = {
    .read = read_blank, .prog = device_prog, .erase = device_erase,
    .sector_size = 4096, .sector_count = 16, .prog_size = 8, .erased = 0xFF,
};

enum { HASHED = 3, STORAGE = 20 };      // of the mistakes

/* Makes the n-th mistake; returns which it is, and 0 if there are no more.
   Those of one kind may have the same words. */
static int mistake(unsigned n, idem_config *c, idem_storage *s)
{
    switch (n) {
    case 0: c->capacity = 0; return 1;
    case 1: c->capacity = IDEM_CAPACITY_MAX + 1; return 1;
    case 2: c->capacity = UINT32_MAX; return 1;
    case 3: c->key_max = 0; return 2;
    case 4: c->key_max = 300; return 2;
    case 5: memset(c->secret, 0, 16); return HASHED;
    case 6: memset(c->secret, 0, 8); return HASHED;
    case 7: memset(c->secret + 8, 0, 8); return HASHED;
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
    case 32: s->sector_count = 4; return STORAGE + 3;
    case 33: s->sector_count = 65536; return STORAGE + 3;
    case 34:
        s->sector_size = 262144;
        s->sector_count = 65535;
        return STORAGE + 4;
    case 35: s->sync_unlocked = take; return STORAGE;
    case 36: s->erased = 0xC9; return STORAGE + 2;
    }
    return 0;
}

/* A configuration with the n-th mistake, in RAM or with storage.  Returns 0 if
   there are no more, less if it is none: FNV-1a has no secret. */
static int wrong(unsigned n, idem_config *c, idem_storage *s, int in_ram)
{
    int what;

    *c = the.config;
    *s = blank;
    what = mistake(n, c, s);
    c->storage = in_ram ? NULL : s;
    return (what == HASHED && IDEM_HASH == IDEM_HASH_FNV) ||
           (what >= STORAGE && in_ram) ? -1 : what;
}

TEST(what_cannot_be_is_refused_and_explained_in_words_of_its_own)
{
    idem_config c, other;
    idem_storage s, t;
    int what, another;

    device_on(&nor, "ram");
    assert_non_null(idem_explain(NULL));
    for (unsigned n = 0; (what = wrong(n / 2, &c, &s, n % 2)) != 0; n++) {
        const char *words = idem_explain(&c);
        if (what < 0) {
            assert_true(c.storage || !words);
            continue;
        }
        unit_misuse = 0;                        // to explain it is none
        assert_non_null(words);
        assert_true(strlen(words) > 0);
        for (unsigned m = 0; m < n / 2; m++) {
            another = wrong(m, &other, &t, 0);
            if (another > 0 && another != what)
                assert_string_not_equal(words, idem_explain(&other));
        }
        is(unit_misuse, 0);
        is(idem_open(the.table, &c, the.memory, 100000, 0), IDEM_E_ARG);
        is(unit_misuse, 1);
        is(idem_format(the.table, &c, the.memory, 100000, 0), IDEM_E_ARG);
        is(unit_misuse, 2);
    }
}

/* There are no words for it, and there would be memory. */
static void is_right(void)
{
    if (idem_explain(&the.config))
        fail_msg("%s", idem_explain(&the.config));
    is(idem_open(the.table, &the.config, NULL, 0, 0), IDEM_E_MEMORY);
}

TEST(what_is_at_its_limit_is_right)
{
    idem_config *c = &device_on(&nor, "ram")->config;

    is_right();
    c->lock = take;
    c->unlock = give;
    c->full = IDEM_EVICT_OLDEST;
    c->durability = IDEM_BATCH;
    c->lease_ms = IDEM_LEASE_NONE;
    c->retention_ms = IDEM_RETENTION_MAX;
    c->capacity = IDEM_CAPACITY_MAX;
    c->key_max = c->max_attempts = 255;
    c->senders = IDEM_SENDERS_MAX;
    c->quota = c->capacity / c->senders;
    c->response_max = c->state_max = 65535;
    is_right();
    c->lease_ms = IDEM_LEASE_MAX;
    is_right();
    memset(c, 0, sizeof *c);
    c->capacity = c->key_max = 1;
    // HalfSipHash takes one half for the index, the other for fingerprints.
    for (int i = 0; i < 64; i++) {
        memset(c->secret, 0, sizeof c->secret);
        c->secret[i / 8] = c->secret[8 + i % 8] = 0x80;
        is_right();
    }
}

/* Where a sender could evict the outcomes of others, idem_explain reports it;
   it is no mistake. */
TEST(s9_where_a_quota_does_not_keep_it_that_is_explained)
{
    static const struct { uint32_t quota, senders; int full, keeps; } each[] = {
        { 5, 2, IDEM_EVICT_OLDEST, 1 }, { 6, 2, IDEM_EVICT_OLDEST, 0 },
        { 3, 3, IDEM_EVICT_OLDEST, 1 }, { 4, 3, IDEM_EVICT_OLDEST, 0 },
        { 0, 3, IDEM_EVICT_OLDEST, 0 }, { UINT32_MAX, 2, IDEM_EVICT_OLDEST, 0 },
        { 1, 11, IDEM_EVICT_OLDEST, 0 }, { 6, 2, IDEM_REJECT, 1 },
        { 0, 1, IDEM_EVICT_OLDEST, 1 }, { 0, 3, IDEM_REJECT, 1 },
        { 11, 1, IDEM_EVICT_OLDEST, 1 },        // there are no others
    };

    for (size_t i = 0; i < COUNT(each); i++) {
        idem_config *c = &device_on(&nor, "ram capacity=10 key=9")->config;
        c->quota = each[i].quota;
        c->senders = each[i].senders;
        c->full = (uint16_t)each[i].full;
        is(idem_explain(c) == NULL, each[i].keeps);
        is(idem_open(the.table, c, NULL, 0, 0), IDEM_E_MEMORY);
    }
}

/* idem_explain would read all of its gigabytes; idem_memory_size asks the same
   rules. */
TEST(a_storage_at_its_limit_is_right)
{
    static const struct { uint32_t size, count; uint16_t granule; } rows[] = {
        { 262144, 8192, 256 }, { 32768, 65535, 256 },
    };
    idem_storage *s = &device_on(&nor, "")->storage;

    *s = blank;
    for (size_t i = 0; i < COUNT(rows); i++) {
        s->sector_size = rows[i].size;
        s->sector_count = rows[i].count;
        s->prog_size = rows[i].granule;
        assert_true(idem_memory_size(&the.config) > 0);
        is(idem_open(the.table, &the.config, NULL, 0, 0), IDEM_E_MEMORY);
    }
}

// Constant also in the sense of the compiler: these would not compile.
typedef char memory_is_constant[IDEM_MEMORY_SIZE(64, 24, 16, 0)];
typedef char so_is_that_with_a_journal
    [IDEM_JOURNAL_MEMORY_SIZE(64, 24, 16, 4, 8)];
typedef char sectors_are_enough
    [IDEM_SECTORS(64, 24, 16, 4, 4096, 8) <= 16 ? 1 : -1];
typedef char sectors_too_small_are_refused
    [IDEM_SECTORS(64, 24, 16, 4, 64, 8) == 0 ? 1 : -1];
typedef char the_largest_have_a_number
    [IDEM_SECTORS(1000, 255, 255, 255, 65536, 256) > 4 ? 1 : -1];

// Tables out of one list of numbers each
IDEM_DEFINE_MEMORY(pump, 64, 24, 16, 4, 3);
IDEM_DEFINE_JOURNAL_MEMORY(valve, 64, 24, 16, 4, 3, 4096, 8);

// What the macros compute for the.config with a journal.
static size_t bytes;
static uint32_t sectors;

static void measure(void)
{
    const idem_config *c = &the.config;
    const idem_storage *s = &the.storage;

    sectors = medium_sectors(c, s);
    bytes = IDEM_JOURNAL_MEMORY_SIZE(c->capacity, c->key_max, c->response_max,
                                     c->state_max, s->prog_size);
}

static uint32_t chance;

static uint32_t between(uint32_t least, uint32_t most)
{
    return least + (chance = flash_mix(chance + 1)) % (most - least + 1);
}

/* A random configuration. */
static void draw(void)
{
    uint16_t granule = (uint16_t)(1u << between(0, 8));
    uint32_t size = (UINT32_C(1) << between(8, 18)) / between(1, 3);
    idem_config *c = &the.config;

    the.storage = blank;
    the.storage.sector_count = 5;
    the.storage.sector_size = size < granule ? granule : size - size % granule;
    the.storage.prog_size = granule;
    c->capacity = between(1, 1u << between(0, 11));
    c->key_max = (uint16_t)between(1, 255);
    c->response_max = (uint16_t)(between(0, UINT16_MAX) >> between(0, 16));
    c->state_max = (uint16_t)(between(0, UINT16_MAX) >> between(0, 16));
    measure();
}

/* What idem_open answers, given `size` bytes, and asks for, if it is that.
   What is no table is closed, and too few sectors are reported. */
static int open_in(size_t size, size_t needed)
{
    void *there = malloc(size);
    int result;

    assert_non_null(there);
    result = idem_open(the.table, &the.config, there, size, 0);
    if (result) {
        is(the.table->needed, needed);
        is(idem_maintain(the.table, 0), IDEM_E_ARG);
    }
    if (result != IDEM_E_MEMORY)
        is(idem_explain(&the.config) != NULL, result == IDEM_E_SPACE);
    free(there);
    return result;
}

/* One sector less is not enough; that number is, if memory allows it. */
static int open_in_as_many(void)
{
    uint64_t size = (uint64_t)sectors * the.storage.sector_size;

    if (!sectors || sectors > 65535 || size > 20000000)
        return 0;
    the.storage.sector_count = sectors - 1;
    is(open_in(bytes, sectors), IDEM_E_SPACE);
    if (size > 100000)
        return 0;
    the.storage.sector_count = sectors;
    is(open_in(bytes, 0), IDEM_OK);
    return 1;
}

/* 0 if the storage could not have that many. */
static uint32_t possible_sectors(void)
{
    uint64_t size = (uint64_t)sectors * the.storage.sector_size;

    return sectors <= 65535 && size < UINT64_C(1) << 32 ? sectors : 0;
}

TEST(idem_open_asks_for_what_the_macros_compute)
{
    idem_config *c = &device_on(&nor, "")->config;
    int small = 0, few = 0, enough = 0;

    chance = 23;
    for (int i = 0; i < 1000; i++) {
        size_t size;
        draw();
        c->storage = NULL;
        size = IDEM_MEMORY_SIZE(c->capacity, c->key_max, c->response_max,
                                c->state_max);
        is(size % 4, 0);
        is(open_in(size - 1, size), IDEM_E_MEMORY);
        is(open_in(size, 0), IDEM_OK);
        is(idem_memory_size(c), size);
        is(idem_sector_count(c), 0);
        c->storage = &the.storage;
        is(idem_memory_size(c), bytes);
        is(idem_sector_count(c), possible_sectors());
        is(open_in(bytes - 1, bytes), IDEM_E_MEMORY);
        is(open_in(bytes, sectors), sectors == 5 ? IDEM_OK : IDEM_E_SPACE);
        small += sectors == 0;
        few += sectors > 5;
        enough += sectors != 5 && open_in_as_many();
    }
    assert_true(small > 30 && few > 100 && enough > 3);
}

/* The sectors that a journal has suffice for smaller limits, too: of a response
   here, by one, as far as granules round it. */
TEST(a_smaller_response_never_needs_larger_or_more_sectors)
{
    static const uint32_t granules[] = { 1, 4, 8, 16, 64, 256 };

    for (size_t g = 0; g < COUNT(granules); g++)
        for (uint32_t state = 0; state < 300; state += 20)
            for (uint32_t response = 1; response < 300; response++) {
                uint32_t n = granules[g], size = 256, most, less;
                while (!IDEM_SECTORS(10, 8, response, state, size, n))
                    size += n;
                most = IDEM_SECTORS(10, 8, response, state, size, n);
                less = IDEM_SECTORS(10, 8, response - 1, state, size, n);
                assert_in_range(less, 1, most);
            }
}

/* .. and of what can be none the functions return 0, and that is no mistake. */
TEST(what_cannot_be_has_no_size)
{
    idem_config c;
    idem_storage s;
    int what;

    device_on(&nor, "ram");
    unit_misuse = 0;
    is(idem_memory_size(NULL), 0);
    is(idem_sector_count(NULL), 0);
    for (unsigned n = 0; (what = wrong(n, &c, &s, 0)) != 0; n++) {
        if (what < 0)
            continue;
        is(idem_memory_size(&c), 0);
        if (what < STORAGE + 3)                 // of these the number is wrong
            is(idem_sector_count(&c), 0);
        else
            assert_true(idem_sector_count(&c) > 0);
    }
    is(unit_misuse, 0);
}

TEST(one_list_of_numbers_makes_memory_and_sizes)
{
    const idem_config sizes = { IDEM_SIZES(pump) };
    idem_config *c = &device_on(&nor, "ram")->config;
    static idem_table table;

    *c = sizes;
    memcpy(c->secret, SECRET, sizeof c->secret);
    c->quota = 2;
    c->full = IDEM_EVICT_OLDEST;
    assert_true(sizeof pump_memory >= idem_memory_size(c));
    is(idem_open(&table, c, pump_memory, sizeof pump_memory, 0), IDEM_OK);
    the.storage = blank;
    the.storage.sector_size = valve_sector_size;
    the.storage.sector_count = valve_sector_count;
    the.storage.prog_size = valve_prog_size;
    c->storage = &the.storage;
    is(valve_sector_count, idem_sector_count(c));
    assert_true(sizeof valve_memory >= idem_memory_size(c));
    is(idem_open(&table, c, valve_memory, sizeof valve_memory, 0), IDEM_OK);
}

#if IDEM_WIDE
TEST(a_capacity_that_no_ring_holds_is_refused)
{
    idem_config *c = &device_on(&nor, "key=8 response=0 state=0")->config;

    c->capacity = 300000;
    measure();
    assert_true(sectors > 65535);
    is(open_in(bytes, 0), IDEM_E_SPACE);    // no number suffices
    is(idem_sector_count(c), 0);
}
#endif
