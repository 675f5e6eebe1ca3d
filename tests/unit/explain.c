/* SPDX-License-Identifier: 0BSD */
/*
 * Shows what no table is opened with, and that idem_explain says in words what
 * is wrong, where idem_open only says that something is; each thing in words of
 * its own.
 * What it says of a journal is in the tests of journals.
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

/* Storage that is not reached. */
static int no_read(void *ctx, uint32_t at, void *dst, uint32_t len)
{
    (void)ctx, (void)at, (void)dst, (void)len;
    return 1;
}

static int no_prog(void *ctx, uint32_t at, const void *src, uint32_t len)
{
    (void)ctx, (void)at, (void)src, (void)len;
    return 1;
}

static int no_erase(void *ctx, uint32_t sector)
{
    (void)ctx, (void)sector;
    return 1;
}

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
    static const idem_storage right = {
        .read = no_read, .prog = no_prog, .erase = no_erase,
        .sector_size = 4096, .sector_count = 16, .prog_size = 8, .erased = 0xFF,
    };
    int what;

    *c = f->config;
    *s = right;
    what = spoil(n, c, s);
    c->storage = in_ram ? NULL : s;
    return (what == SECRET && IDEM_HASH == IDEM_HASH_FNV) ||
           (what >= STORAGE && in_ram) ? -1 : what;
}

TEST(what_is_right_needs_no_words)
{
    assert_null(idem_explain(&f->config));
    f->config.lock = take;
    f->config.unlock = give;
    f->config.full = IDEM_EVICT_OLDEST;
    f->config.durability = IDEM_BATCH;
    f->config.lease_ms = IDEM_LEASE_NONE;
    f->config.retention_ms = IDEM_RETENTION_MAX;
    f->config.capacity = IDEM_CAPACITY_MAX;
    f->config.key_max = f->config.max_attempts = 255;
    f->config.senders = IDEM_SENDERS_MAX;
    f->config.quota = UINT32_MAX;
    f->config.response_max = f->config.state_max = 65535;
    assert_null(idem_explain(&f->config));
    memset(&f->config, 0, sizeof f->config);
    f->config.capacity = f->config.key_max = 1;
    f->config.secret[7] = f->config.secret[15] = 0x80;
    assert_null(idem_explain(&f->config));
}

TEST(what_cannot_be_is_refused_and_explained_and_that_is_not_asserted)
{
    idem_config c;
    idem_storage s;
    int what;

    for (unsigned n = 0; (what = wrong(f, n / 2, &c, &s, n % 2)) != 0; n++) {
        if (what < 0) {
            assert_true(c.storage || !idem_explain(&c));
            continue;
        }
        unit_misuse = 0;
        assert_non_null(idem_explain(&c));
        assert_true(strlen(idem_explain(&c)) > 0);
        is(unit_misuse, 0);
        is(idem_open(&f->table, &c, f->memory, 100000, 0), IDEM_E_ARG);
        is(unit_misuse, 1);
        is(idem_format(&f->table, &c, f->memory, 100000, 0), IDEM_E_ARG);
        is(unit_misuse, 2);
    }
}

TEST(each_mistake_has_words_of_its_own)
{
    idem_config one, other;
    idem_storage s, t;
    int this, that;

    for (unsigned i = 0; (this = wrong(f, i, &one, &s, 0)) != 0; i++)
        for (unsigned j = 0; j < i; j++) {
            that = wrong(f, j, &other, &t, 0);
            if (this < 0 || that < 0 || this == that)
                continue;
            assert_string_not_equal(idem_explain(&one), idem_explain(&other));
        }
}

TEST(no_configuration_is_explained)
{
    assert_non_null(idem_explain(NULL));
}
