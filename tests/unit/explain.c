/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that idem_explain says in words what is wrong with a configuration,
 * where idem_open only says that something is; each thing in words of its own.
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

static void no_capacity(idem_config *c) { c->capacity = 0; }
static void no_key(idem_config *c) { c->key_max = 0; }
static void long_key(idem_config *c) { c->key_max = 300; }
static void many_attempts(idem_config *c) { c->max_attempts = 300; }
static void no_secret(idem_config *c) { memset(c->secret, 0, 16); }
static void long_lease(idem_config *c) { c->lease_ms = IDEM_LEASE_MAX + 1; }
static void no_such_policy(idem_config *c) { c->full = 2; }
static void no_such_durability(idem_config *c) { c->durability = 2; }
static void quota_alone(idem_config *c) { c->quota = 1; }
static void lock_alone(idem_config *c) { c->lock = take; }
static void unlock_alone(idem_config *c) { c->unlock = give; }

static void large_capacity(idem_config *c)
{
    c->capacity = IDEM_CAPACITY_MAX + 1;
}

static void many_senders(idem_config *c)
{
    c->senders = IDEM_SENDERS_MAX + 1;
}

static void long_retention(idem_config *c)
{
    c->retention_ms = IDEM_RETENTION_MAX + 1;
}

static void first_half_zero(idem_config *c)
{
    memset(c->secret, 0, 8);
}

static void last_half_zero(idem_config *c)
{
    memset(c->secret + 8, 0, 8);
}

// Neighbours with the same number may be said in the same words.
static const struct { int what; void (*spoil)(idem_config *); } mistakes[] = {
    { 1, no_capacity },    { 1, large_capacity },     { 2, no_key },
    { 2, long_key },       { 9, many_attempts },
    { 3, no_secret },      { 3, first_half_zero },    { 3, last_half_zero },
    { 4, long_lease },     { 5, long_retention },     { 6, no_such_policy },
    { 7, no_such_durability }, { 8, lock_alone },     { 8, unlock_alone },
    { 10, many_senders },  { 11, quota_alone },
};

/* FNV-1a has no secret. */
static int is_mistake(size_t i)
{
    return IDEM_HASH != IDEM_HASH_FNV || mistakes[i].what != 3;
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

TEST(what_idem_open_refuses_is_explained_and_not_asserted)
{
    for (size_t i = 0; i < COUNT(mistakes); i++) {
        idem_config config = f->config;
        unsigned misuse = unit_misuse;
        mistakes[i].spoil(&config);
        if (!is_mistake(i)) {
            assert_null(idem_explain(&config));
            continue;
        }
        assert_non_null(idem_explain(&config));
        assert_true(strlen(idem_explain(&config)) > 0);
        is(unit_misuse, misuse);
        is(idem_open(&f->table, &config, f->memory, 100000, 0), IDEM_E_ARG);
        is(unit_misuse, misuse + 1);
    }
}

TEST(each_mistake_has_words_of_its_own)
{
    for (size_t i = 0; i < COUNT(mistakes); i++)
        for (size_t j = 0; j < i; j++) {
            idem_config one = f->config, other = f->config;
            if (!is_mistake(i) || !is_mistake(j) ||
                mistakes[i].what == mistakes[j].what)
                continue;
            mistakes[i].spoil(&one);
            mistakes[j].spoil(&other);
            assert_string_not_equal(idem_explain(&one), idem_explain(&other));
        }
}

TEST(no_configuration_is_explained)
{
    assert_non_null(idem_explain(NULL));
}
