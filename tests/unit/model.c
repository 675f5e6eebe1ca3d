/* SPDX-License-Identifier: 0BSD */
/*
 * Shows that a table without storage answers as in its manual, call for call:
 * random calls go to it and to the model (tests/model), which knows the answer
 * exactly.
 *
 * A run is a sequence of rounds.  Each opens a table with a configuration of
 * its own: from a slot to two hundred, few keys, so that duplicates, mismatches
 * and full tables are frequent, durations from a millisecond to weeks, and a
 * clock that stands still, steps, jumps to the edge of a deadline, wraps and
 * goes backwards.  Each takes a lock once, copies nothing without it, and
 * touches nothing but its table and memory (S8).
 *
 * In the environment, IDEM_CALLS is the number of calls, IDEM_SEED the first
 * round.  A failure prints its round; TRACE=1 shows the calls.
 */
#include "unit.h"

#include "../model/chance.h"

#define CALLS_DEFAULT 300000
#define CALLS_FOR_ALL 100000        // from then on each answer must have come

static uint32_t round_seed;

static void broken(const char *what, const char *file, int line)
{
    const idem_config *c = &the.config;

    print_error("%s:%d: %s\nagain: IDEM_SEED=%u IDEM_CALLS=%u\n", file, line,
                what, round_seed, the.model.calls);
    print_error("capacity %u, quota %u, full %d, attempts %d\n", c->capacity,
                c->quota, c->full, c->max_attempts);
    device_print(&the);
    fail();
    abort();
}

/* A lock that its holder may not take again. */
static int locked;

static int lock(void *ctx)
{
    PROMISE(ctx == &the && !locked);
    locked = 1;
    return 0;
}

static void unlock(void *ctx)
{
    PROMISE(ctx == &the && locked);
    locked = 0;
}

/* But what a handler has made is not the table's. */
static void copying(const void *src)
{
    PROMISE(locked || src == the.bytes);
}

static void choose_config(void)
{
    idem_config *c = &the.config;

    choose_modes("ram capacity=1-6/1-40 key=8-10/8-10/8-10/8-10/8-10/8-10/1-8/"
                 "255 response=0-20/0-20/0-20/0-20/0-20/0-20/0-20/0-20/300 "
                 "state=0-8 evict=0/1 attempts=0-5/0-5/0-5/0-5/0-5/255 "
                 "scopes=1-4");
    // Where the steps of maintenance end, and where they do not.
    if (one_in(16))
        call_modes(&the, "capacity=63/64/65/128/129/200");
    if (the.scopes > c->key_max)
        the.scopes = c->key_max;
    c->lease_ms = one_in(3) ? choose_lease() : chance_long(29);
    c->retention_ms = one_in(40) ? IDEM_RETENTION_MAX : chance_long(31);
    c->senders = one_in(2) ? 0 : the.scopes + chance(2);
    c->quota = c->senders && one_in(2) ? chance(6) : 0;
    for (size_t i = 0; i < sizeof c->secret; i++)
        c->secret[i] = (uint8_t)(chance_word() | (i % 8 == 0));
    c->lock = lock;
    c->unlock = unlock;
    c->lock_ctx = &the;
    play.strange = one_in(3) ? 0 : one_in(2) ? 20 : 500;
    play.mistakes = one_in(2);
    the.now = one_in(4) ? 0 : one_in(3) ? 0u - chance(100) : chance_word();
}

static void play_round(uint64_t left)
{
    unsigned misuse = unit_misuse;
    const idem_table *other;
    unsigned long count;

    chance_start(round_seed);
    count = 100 + chance_long(13);
    choose_config();
    device_make(&the, keys,
                device_keys(&the, 1 + chance(2 * the.config.capacity + 4)));
    PROMISE(the.memory_size ==
            IDEM_MEMORY_SIZE(the.config.capacity, the.config.key_max,
                             the.config.response_max, the.config.state_max) +
                the.config.senders * sizeof(idem_sender) +
                (the.config.quota && the.config.full == IDEM_EVICT_OLDEST
                     ? IDEM_QUOTA_MEMORY_SIZE(the.config.capacity,
                                              the.config.senders) : 0));
    memset(&the.tables[1], 0x5A, sizeof *the.tables);   // as one is left
    device_open(&the);
    play_calls(count < left ? count : (unsigned long)left);
    other = the.tables + (the.table == the.tables);
    for (size_t i = 0; i < sizeof *other; i++)
        PROMISE(((const uint8_t *)other)[i] == 0x5A);
    // A handler that fills in too much is mistaken.
    PROMISE(!locked &&
            (play.mistakes || unit_misuse == misuse + the.spoilt));
    device_end(&the);
    round_seed++;
}

static uint64_t environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

TEST(the_table_agrees_with_the_model)
{
    uint64_t calls = environment("IDEM_CALLS", CALLS_DEFAULT);

    unit_copying = copying;
    round_seed = (uint32_t)environment("IDEM_SEED", 1);
    while (play.calls < calls)
        play_round(calls - play.calls);
    for (int answer = IDEM_EXECUTE; answer <= IDEM_EXHAUSTED; answer++) {
        printf("%s: %lu\n", idem_text(answer), play.answered[answer]);
        if (answer == IDEM_UNCERTAIN)       // nothing is lost here
            assert_false(play.answered[answer]);
        else if (calls >= CALLS_FOR_ALL)
            assert_true(play.answered[answer]);
    }
    printf("%lu calls\n", play.calls);
}
