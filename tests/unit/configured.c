/* SPDX-License-Identifier: 0BSD */
/*
 * With IDEM_CONFIG the configuration is known when compiling: the table takes no
 * configuration but that, or that with another secret.  That it works as any
 * other is shown by check/configured.c.
 */
static unsigned mistakes;
#define IDEM_MISUSE() ((void)mistakes++)
#define IDEM_STATIC
#include "idem.h"

#include "configured.h"

static const idem_config the_one = {
    .capacity = 4, .key_max = 16, .response_max = 16, .state_max = 4,
    .secret = "sixteen secrets", .storage = &storage,
};

#define IDEM_CONFIG the_one
#define IDEM_IMPLEMENTATION
#include "idem.h"

static idem_table table;
static uint32_t memory[(IDEM_JOURNAL_MEMORY_SIZE(4, 16, 16, 4, 8) + 3) / 4];
static idem_claim claim;
static idem_reply reply;
static const idem_request request = { .key = "a", .key_len = 1 };

static int nothing(void *ctx)
{
    (void)ctx;
    return 0;
}

static void undo(void *ctx)
{
    (void)ctx;
}

static int opened(const idem_config *with)
{
    return idem_open(&table, with, memory, sizeof memory, 0);
}

static void on_new_storage(void)
{
    begin_new_storage();
    mistakes = 0;
}

TEST(another_configuration_is_refused_and_explained)
{
    const idem_storage same = storage;
    idem_config others[6];
    size_t i;

    on_new_storage();
    for (i = 0; i < COUNT(others); i++)
        others[i] = the_one;
    others[0].capacity = 3;
    others[1].key_max = 8;
    others[2].full = IDEM_EVICT_OLDEST;
    others[3].retention_ms = 1000;
    others[4].storage = &same;
    others[5].lock = nothing;
    others[5].unlock = undo;
    for (i = 0; i < COUNT(others); i++) {
        const char *words = idem_explain(&others[i]);
        assert_non_null(words);
        assert_non_null(strstr(words, "IDEM_CONFIG"));
        is(idem_memory_size(&others[i]), 0);
        is(mistakes, i);
        is(opened(&others[i]), IDEM_E_ARG);
    }
    assert_null(idem_explain(&the_one));
}

/* A copy that is assigned field by field has any bytes between its fields. */
TEST(what_stands_between_the_fields_of_a_copy_is_not_compared)
{
    idem_config copy;

    memset(&copy, 0xA5, sizeof copy);
    copy.capacity = the_one.capacity;
    copy.senders = the_one.senders;
    copy.key_max = the_one.key_max;
    copy.response_max = the_one.response_max;
    copy.state_max = the_one.state_max;
    memcpy(copy.secret, the_one.secret, sizeof copy.secret);
    copy.storage = the_one.storage;
    copy.lease_ms = the_one.lease_ms;
    copy.retention_ms = the_one.retention_ms;
    copy.max_attempts = the_one.max_attempts;
    copy.full = the_one.full;
    copy.quota = the_one.quota;
    copy.durability = the_one.durability;
    copy.lock_ctx = the_one.lock_ctx;
    copy.lock = the_one.lock;
    copy.unlock = the_one.unlock;
    assert_null(idem_explain(&copy));
    copy.max_attempts++;
    assert_non_null(idem_explain(&copy));
}

TEST(a_copy_with_another_secret_is_taken)
{
    idem_config copy = the_one;

    on_new_storage();
    memcpy(copy.secret, "another of them", sizeof copy.secret);
    assert_null(idem_explain(&copy));
    is(opened(&copy), IDEM_OK);
    is(idem_begin(&table, &claim, &reply, &request, 0), IDEM_EXECUTE);
    is(opened(&copy), IDEM_OK);
    is(idem_begin(&table, &claim, &reply, &request, 0), IDEM_RECOVER);
    // Its journal is that of its secret.
    is(opened(&the_one), IDEM_E_FORMAT);
}
